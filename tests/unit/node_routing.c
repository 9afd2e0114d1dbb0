/*
 * BGP of the switches of a region, wired together by streams in memory: who learns what, which next
 * hops a prefix leads to, and what becomes of them when links, switches and sessions go.
 */
#include "node/routing.h"
#include <stdlib.h>
#include <string.h>
#include "base/err.h"
#include "node/row.h"
#include "tests/memory.h"
#include "tests/source.h"
#include "tests/tap.h"
#include "topo/bgp.h"

#define NODES_MAX   64u
#define STREAMS_MAX 1024u
#define ROOM        3000u /* less than a message: what is left waits */
#define PASS_NS     (2 * NS_PER_S)

struct stream {
	bool open;
	uint32_t node[2], number[2];
};

static struct test_memory memory = TEST_MEMORY(memory);
static struct topo *topo;
static struct node_routing *routing[NODES_MAX];
static bool dead[NODES_MAX], cut[512]; /* nodes, links */
static struct stream streams[STREAMS_MAX];
static dsf_instant now;

/* ---- the network between them */

/* The node that has an address, and its port (of topo->ports); TOPO_NONE: a loopback. */
static uint32_t find_address(const struct dsf_ip6 *address, uint32_t *port)
{
	for (*port = 0; *port < topo->ports_count; ++*port)
		if (dsf_ip6_equal(&topo->ports[*port].address, address))
			return topo->ports[*port].node;
	*port = TOPO_NONE;
	for (uint32_t i = 0; i < topo->nodes_count; i++)
		if (dsf_ip6_equal(&topo->nodes[i].loopback, address))
			return i;
	return TOPO_NONE;
}

static bool one_fabric(uint32_t a, uint32_t b)
{
	const struct topo_node *m = &topo->nodes[a], *n = &topo->nodes[b];

	return topo_is_interface_node(m->role) && topo_is_interface_node(n->role) &&
	       m->plane == n->plane && m->building == n->building && !dead[a] && !dead[b];
}

/* Behind a port of its own, or of a switch in its fabric; or such a switch. */
static bool usable(void *user, const struct dsf_ip6 *address)
{
	uint32_t self = (uint32_t)(uintptr_t)user, port, node = find_address(address, &port);

	if (node == TOPO_NONE || node == self || dead[node] || dead[self])
		return false;
	if (port == TOPO_NONE)
		return one_fabric(self, node);
	if (cut[topo->ports[port].link])
		return false;
	node = topo->ports[topo->ports[port].peer].node;
	return node == self || one_fabric(self, node);
}

static void start(uint32_t i)
{
	struct node_routing_config config = { .topo = topo,
		.index = i,
		.memory = &memory.memory,
		.seed = 7,
		.control_dilation = 1,
		.usable = usable,
		.user = (void *)(uintptr_t)i };

	TAP_OK(node_routing_new(&routing[i], &config, now) == 0, "%s starts", topo->nodes[i].name);
}

static void look(void)
{
	for (uint32_t i = 0; i < topo->nodes_count; i++)
		node_routing_look_all(routing[i], now);
}

static struct stream *find_stream(uint32_t node, uint32_t number, unsigned *side)
{
	for (uint32_t i = 0; i < STREAMS_MAX; i++)
		for (*side = 0; *side < 2; ++*side)
			if (streams[i].open && streams[i].node[*side] == node &&
				streams[i].number[*side] == number)
				return &streams[i];
	return NULL;
}

static void open_stream(uint32_t node, const struct node_output *out)
{
	struct node_stream_ends ends = { out->ends.remote, out->ends.local, out->ends.remote_port,
		50000 };
	uint32_t port, other = find_address(&out->ends.remote, &port), i = 0;
	int number = -DSF_E_UNKNOWN;

	if (other != TOPO_NONE && !dead[other])
		number = node_routing_accept(routing[other], &ends, now);
	if (number < 0) {
		node_routing_closed(routing[node], out->stream, now);
		return;
	}
	while (streams[i].open)
		i++;
	streams[i] = (struct stream){ true, { node, other }, { out->stream, (uint32_t)number } };
	node_routing_writable(routing[other], (uint32_t)number, ROOM, now);
	node_routing_connected(routing[node], out->stream, now);
	node_routing_writable(routing[node], out->stream, ROOM, now);
}

static void act(uint32_t node, const struct node_output *out)
{
	unsigned side;
	struct stream *s;

	if (out->kind == NODE_OUTPUT_OPEN) {
		open_stream(node, out);
		return;
	}
	s = find_stream(node, out->stream, &side);
	if (s == NULL)
		return;
	if (out->kind == NODE_OUTPUT_WRITE) {
		uint8_t bytes[ROOM];

		if (out->size > ROOM) {
			TAP_OK(false, "no more than there is room");
			exit(TAP_DONE());
		}
		memcpy(bytes, out->head, out->size);
		node_routing_input(
			routing[s->node[!side]], s->number[!side], bytes, out->size, now);
		node_routing_writable(routing[node], out->stream, ROOM, now);
		return;
	}
	s->open = false;
	node_routing_closed(routing[s->node[!side]], s->number[!side], now);
}

static void settle(void)
{
	struct node_output out;
	bool moved = true;

	while (moved) {
		moved = false;
		for (uint32_t i = 0; i < topo->nodes_count; i++) {
			while (node_routing_output(routing[i], &out, now)) {
				act(i, &out);
				moved = true;
			}
		}
	}
}

static void pass(uint64_t ns)
{
	dsf_instant end = dsf_time_after(now, ns);

	for (;;) {
		dsf_instant at = DSF_NEVER;

		settle();
		for (uint32_t i = 0; i < topo->nodes_count; i++)
			at = dsf_time_min(at, node_routing_deadline(routing[i]));
		if (dsf_time_before(end, at))
			break;
		now = dsf_time_max(now, at);
		for (uint32_t i = 0; i < topo->nodes_count; i++)
			node_routing_expire(routing[i], now);
	}
	now = end;
}

static void begin(void)
{
	now = (dsf_instant){ NS_PER_S };
	for (uint32_t i = 0; i < topo->nodes_count; i++)
		start(i);
	pass(PASS_NS);
}

static void open_lab(const char *name)
{
	topo = source_topo(name);
	begin();
}

static void close_lab(void)
{
	for (uint32_t i = 0; i < topo->nodes_count; i++) {
		node_routing_free(routing[i]);
		routing[i] = NULL;
	}
	memset(streams, 0, sizeof(streams));
	memset(dead, 0, sizeof(dead));
	memset(cut, 0, sizeof(cut));
	topo_free(topo);
	TAP_EQ(memory.live, 0, "all memory is given back");
}

/* ---- what they know */

struct route {
	uint32_t plane, building; /* whose aggregate */
	uint32_t routes, usable, unusable;
	uint32_t others; /* routes to anything else */
};

static void count_route(void *user, const struct node_row *row)
{
	struct dsf_ip6 aggregate;
	struct route *r = user;

	aggregate = topo_bgp_aggregate(r->plane, r->building);
	if (row->route.prefix_length != TOPO_BGP_AGGREGATE_LENGTH ||
		!dsf_ip6_equal(&row->route.prefix, &aggregate)) {
		r->others++;
		return;
	}
	r->routes++;
	r->usable += row->route.set->usable;
	r->unusable += row->route.set->count - row->route.set->usable;
}

static struct route route(const char *name, uint32_t building)
{
	uint32_t node = topo_find_node(topo, name);
	struct route r = { .plane = topo->nodes[node].plane, .building = building };

	node_routing_view(routing[node], NODE_QUERY_ROUTE, count_route, &r, now);
	return r;
}

static uint32_t ready(void)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < topo->nodes_count; i++)
		count += node_routing_ready(routing[i]);
	return count;
}

static void find(struct ip_packet *p, const char *destination)
{
	*p = (struct ip_packet){ .protocol = IP_PROTOCOL_UDP, .target_port = 4791 };
	(void)dsf_ip6_parse("fd5f::2", &p->source);
	(void)dsf_ip6_parse(destination, &p->destination);
}

/* Building 0 has 2 EDSWs, building 1 ("south") 3; each two SSWs of three, by a hyperport. */
static void region_learns_aggregates(void)
{
	struct ip_packet p;
	struct dsf_ip6 hop, first;
	uint32_t rdsw, moved = 0;

	open_lab("tests/topologies/region.json");
	rdsw = topo_find_node(topo, "b0-z0-p0-rdsw0");
	TAP_EQ(ready(), topo->nodes_count, "all sessions stand");
	TAP_EQ(route("b0-z0-p0-rdsw0", 1).usable, 4, "a leaf: by every link of the edge");
	TAP_EQ(route("b0-z0-p0-rdsw0", 1).others, 0, "and nothing else");
	TAP_EQ(route("b0-z0-p0-rdsw0", 0).routes, 0, "not its own building");
	TAP_EQ(route("south-z0-p1-rdsw1", 0).usable, 6, "and in the other building and plane");
	TAP_EQ(route("b0-e-p0-edsw0", 1).usable, 2, "an edge: by its own links");
	TAP_EQ(route("b0-e-p0-edsw0", 0).routes, 0, "not to its own building");
	/* EDSWs go round the SSWs: 0 has those of edsw 0 and 1 */
	TAP_EQ(route("p0-ssw0", 0).usable + route("p0-ssw1", 0).usable + route("p0-ssw2", 0).usable,
		4, "the spine: by all links to a building");
	TAP_EQ(route("p0-ssw0", 0).others, 1, "and the other building");
	find(&p, "fd5f:1:7:700::2");
	TAP_OK(node_routing_find(routing[rdsw], &p, &first), "a packet finds its way");
	for (uint16_t port = 0; port < 64; port++) {
		p.source_port = port;
		moved += node_routing_find(routing[rdsw], &p, &hop) && !dsf_ip6_equal(&hop, &first);
	}
	TAP_OK(moved > 32, "flows take different ways");
	find(&p, "fd5f:0:7:700::2");
	TAP_OK(!node_routing_find(routing[rdsw], &p, &hop), "what nobody has told leads nowhere");
	close_lab();
}

/* Notifications that anybody has sent. */
static void count_said(void *user, const struct node_row *row)
{
	*(uint64_t *)user += row->bgp_peer.view->session->counters.notifications_sent;
}

static uint64_t said(void)
{
	uint64_t count = 0;

	for (uint32_t i = 0; i < topo->nodes_count; i++)
		node_routing_view(routing[i], NODE_QUERY_BGP_PEER, count_said, &count, now);
	return count;
}

/* A link of the edge: its next hop isn't used from that moment on, and is gone a little later. */
static void link_goes_and_comes(void)
{
	uint32_t port;

	open_lab("tests/topologies/region.json");
	port = topo_find_port(topo, "b0-e-p0-edsw1:eth0");
	cut[topo->ports[port].link] = true;
	look();
	TAP_EQ(route("b0-z0-p0-rdsw0", 1).usable, 3, "at once: one next hop less");
	TAP_EQ(route("b0-z0-p0-rdsw0", 1).unusable, 1, "which BGP doesn't know yet");
	pass(PASS_NS);
	TAP_EQ(route("b0-z0-p0-rdsw0", 1).usable, 3, "then BGP has it too");
	TAP_EQ(route("b0-z0-p0-rdsw0", 1).unusable, 0, "and the path is gone");
	/* The spine switch had no other link to that building: two edge switches of the other one
	 * miss a next hop as well, and the four and two leaves. */
	TAP_EQ(ready(), topo->nodes_count - 10, "two miss a session, eight more a next hop");
	TAP_EQ(said(), 0, "nothing is said into the void");
	cut[topo->ports[port].link] = false;
	look();
	pass(PASS_NS);
	TAP_EQ(route("b0-z0-p0-rdsw0", 1).usable, 4, "back");
	TAP_EQ(ready(), topo->nodes_count, "all sessions stand again");
	close_lab();
}

/* Ends a node without a word. */
static void kill_node(const char *name)
{
	uint32_t node = topo_find_node(topo, name);

	dead[node] = true;
	for (uint32_t i = 0; i < STREAMS_MAX; i++)
		if (streams[i].node[0] == node || streams[i].node[1] == node)
			streams[i].open = false;
	node_routing_free(routing[node]);
	routing[node] = NULL;
	look();
}

static void revive(const char *name)
{
	uint32_t node = topo_find_node(topo, name);

	dead[node] = false;
	start(node);
	look();
}

static void edge_switch_goes_and_comes(void)
{
	open_lab("tests/topologies/region.json");
	kill_node("b0-e-p0-edsw0");
	TAP_EQ(route("b0-z0-p0-rdsw0", 1).usable, 2, "at once: none of its links");
	TAP_EQ(route("south-z0-p0-rdsw0", 0).usable, 6, "the others still send by its spines");
	pass(PASS_NS);
	TAP_EQ(route("b0-z0-p0-rdsw0", 1).unusable, 0, "its paths are gone");
	TAP_EQ(route("p0-ssw0", 0).usable + route("p0-ssw1", 0).usable + route("p0-ssw2", 0).usable,
		2, "the spine sends to the other one");
	revive("b0-e-p0-edsw0");
	pass(PASS_NS);
	TAP_EQ(route("b0-z0-p0-rdsw0", 1).usable, 4, "back");
	TAP_EQ(ready(), topo->nodes_count, "all sessions stand again");
	close_lab();
}

static void spine_switch_goes(void)
{
	open_lab("tests/topologies/region.json");
	kill_node("p0-ssw0");
	TAP_EQ(route("b0-z0-p0-rdsw0", 1).unusable, 2, "at once: its links aren't used");
	pass(PASS_NS);
	TAP_EQ(route("b0-z0-p0-rdsw0", 1).usable, 2, "what is left");
	TAP_EQ(route("b0-z0-p0-rdsw0", 1).unusable, 0, "and nothing else");
	TAP_EQ(route("b0-z0-p1-rdsw0", 1).usable, 4, "the other plane has all");
	close_lab();
}

/* Without leaves an edge switch attracts nothing. */
static void edge_without_leaves(void)
{
	static const char *const leaves[] = { "b0-z0-p0-rdsw0", "b0-z0-p0-rdsw1",
		"b0-west-p0-rdsw0", "b0-west-p0-rdsw1" };

	open_lab("tests/topologies/region.json");
	for (unsigned i = 0; i < 3; i++)
		kill_node(leaves[i]);
	pass(PASS_NS);
	TAP_EQ(route("south-z0-p0-rdsw0", 0).usable, 6, "with a leaf the building is there");
	kill_node(leaves[3]);
	pass(0);
	TAP_EQ(route("p0-ssw0", 0).routes, 0, "without, it is withdrawn at once");
	pass(PASS_NS);
	TAP_EQ(route("south-z0-p0-rdsw0", 0).routes, 0, "everywhere");
	TAP_EQ(route("south-z0-p1-rdsw0", 0).usable, 6, "but for the other plane");
	revive(leaves[2]);
	pass(PASS_NS);
	TAP_EQ(route("south-z0-p0-rdsw0", 0).usable, 6, "back with the first leaf");
	close_lab();
}

/* More than a stream takes, and than is written at a time: it waits, and goes on. */
static void many_routes(void)
{
	static char text[100000];
	struct topo_error err;
	char *at = text;
	struct route r = { .plane = 0, .building = 0 };
	uint32_t node;

	at += sprintf(at, "{\"name\":\"x\",\"buildings\":[{\"zones\":[{\"scaling_units\":1,"
			  "\"rails\":2,\"hosts_per_unit\":1,\"fdsw\":1}]}],\"nodes\":["
			  "{\"name\":\"b0-z0-p0-rdsw0\",\"bgp\":{\"neighbors\":[{\"address\":"
			  "\"fd5f:0:1:ff00::1\",\"asn\":4200000000}],\"originate\":[");
	for (unsigned i = 1; i <= 1000; i++)
		at += sprintf(at, "%s{\"prefix\":\"2001:db8::%x/128\"}", i > 1 ? "," : "", i);
	sprintf(at, "]}},{\"name\":\"b0-z0-p0-rdsw1\",\"bgp\":{\"neighbors\":[{\"address\":"
		    "\"fd5f:0:0:ff00::1\",\"asn\":4200000000}]}}]}");
	if (topo_load_text(text, strlen(text), "many", &topo, &err) < 0) {
		printf("Bail out! %s\n", err.text);
		exit(1);
	}
	begin();
	node = topo_find_node(topo, "b0-z0-p0-rdsw1");
	node_routing_view(routing[node], NODE_QUERY_ROUTE, count_route, &r, now);
	TAP_EQ(r.others, 1000, "all of a thousand routes come");
	close_lab();
}

/* No memory at any moment: nothing is broken for good, and nothing is lost. */
static void memory_is_short(void)
{
	for (long fail = 1; fail < 400; fail += 7) {
		struct node_routing *r = NULL;
		struct node_routing_config config = {
			.memory = &memory.memory, .seed = 7, .control_dilation = 1, .usable = usable
		};
		int err;

		topo = source_topo("tests/topologies/bgp.json");
		config.topo = topo;
		config.index = topo_find_node(topo, "b0-z0-p0-rdsw0");
		config.user = (void *)(uintptr_t)config.index;
		memory.fail_at = fail;
		err = node_routing_new(&r, &config, now);
		memory.fail_at = 0;
		if (err != 0 && (err != -DSF_E_NOMEM || r != NULL))
			TAP_OK(false, "fails by %d at %ld", err, fail);
		node_routing_free(r);
		if (memory.live != 0)
			TAP_OK(false, "%zu bytes are lost at %ld", memory.live, fail);
		topo_free(topo);
		if (err == 0)
			break;
	}
	TAP_OK(true, "memory may be short");
}

int main(void)
{
	region_learns_aggregates();
	link_goes_and_comes();
	edge_switch_goes_and_comes();
	spine_switch_goes();
	edge_without_leaves();
	many_routes();
	memory_is_short();
	return TAP_DONE();
}
