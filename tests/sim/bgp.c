/*
 * BGP over the fabric: interface nodes of a building find each other, learn routes by add-path,
 * forward by them, and let go at once of what can no longer be sent to.
 */
#include "bgp/bgp.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "base/cursor.h"
#include "fabric/cell.h"
#include "ip/packet.h"
#include "tests/sim/lab.h"
#include "topo/bgp.h"

/* Protocol time is divided by this: hold 45 ms, decisions 5 us apart. */
#define DILATION 2000u
#define BACK_NS  (20 * NS_PER_MS) /* a session's way back: what TCP repeats has become so rare */

/* Two leaves, which are each other's neighbours by the file too, with a key; two edge switches,
 * which tell a prefix both, and one of their own. */
static const char small[] =
	"{\"name\":\"bgp\",\"buildings\":[{\"sdsw\":2,\"zones\":[{\"scaling_units\":1,\"rails\":2,"
	"\"hosts_per_unit\":2,\"fdsw\":2}],\"edge\":{\"edsw\":2,\"fdsw\":2}}],\"nodes\":["
	"{\"name\":\"b0-e-p0-edsw0\",\"bgp\":{\"originate\":[{\"prefix\":\"2001:db8::/32\"}]}},"
	"{\"name\":\"b0-e-p0-edsw1\",\"bgp\":{\"originate\":[{\"prefix\":\"2001:db8::/32\"},"
	"{\"prefix\":\"2001:db8:1::/48\"}]}},"
	"{\"name\":\"b0-z0-p0-rdsw0\",\"bgp\":{\"neighbors\":[{\"address\":\"fd5f:0:1:ff00::1\","
	"\"asn\":4200000000,\"md5\":\"key\",\"add_path\":\"both\"}]}},"
	"{\"name\":\"b0-z0-p0-rdsw1\",\"bgp\":{\"neighbors\":[{\"address\":\"fd5f:0:0:ff00::1\","
	"\"asn\":4200000000,\"md5\":\"key\",\"add_path\":\"both\"}],\"originate\":[{\"prefix\":"
	"\"2001:db8:2::/48\"}]}}]}";

static struct lab lab;
static char name[128];

struct sessions {
	uint32_t of; /* node that takes part; TOPO_NONE: any */
	uint32_t count, established;
	uint64_t times; /* established, ever */
};

static void count_session(void *user, const struct node_row *row)
{
	const struct node_row_bgp_peer *r = &row->bgp_peer;
	struct sessions *s = user;

	if (s->of != TOPO_NONE && row->node != s->of && r->peer != s->of)
		return;
	s->count++;
	s->established += r->view->state == BGP_ESTABLISHED;
	s->times += r->view->session->counters.established;
}

static struct sessions sessions(uint32_t of)
{
	struct sessions s = { .of = of };

	sim_view(lab.sim, TOPO_NONE, NODE_QUERY_BGP_PEER, TOPO_NONE, count_session, &s);
	return s;
}

/* Where a prefix leads from a node. */
struct route {
	struct dsf_ip6 prefix;
	uint32_t hops, usable;
};

static void find_route(void *user, const struct node_row *row)
{
	struct route *r = user;

	if (row->route.set == NULL || !dsf_ip6_equal(&row->route.prefix, &r->prefix))
		return;
	r->hops = row->route.set->count;
	r->usable = row->route.set->usable;
}

static struct route route(uint32_t node, const char *prefix)
{
	struct route r = { .hops = 0 };

	(void)dsf_ip6_parse(prefix, &r.prefix);
	sim_view(lab.sim, node, NODE_QUERY_ROUTE, TOPO_NONE, find_route, &r);
	return r;
}

static bool is_established(void *user, struct sim *sim)
{
	struct sessions s = sessions(*(const uint32_t *)user);

	(void)sim;
	return s.established == s.count;
}

static bool wait_established(uint32_t of)
{
	for (uint64_t ns = 0; ns < BACK_NS; ns += 100 * NS_PER_US) {
		if (is_established(&of, lab.sim))
			return true;
		lab_run(&lab, 100 * NS_PER_US);
	}
	return false;
}

static void open_small(const char *what, uint64_t seed)
{
	snprintf(name, sizeof(name), "%s, seed %" PRIu64, what, seed);
	lab_open_text(&lab, small, seed);
}

static uint32_t node(const char *node_name)
{
	uint32_t index = topo_find_node(lab.topo, node_name);

	if (index == TOPO_NONE)
		abort();
	return index;
}

/* ---- learning */

static void learn(uint64_t seed)
{
	uint32_t leaf;
	struct sessions s;

	open_small("learning", seed);
	leaf = node("b0-z0-p0-rdsw0");
	s = sessions(TOPO_NONE);
	LAB_OK(s.count == 10 && s.established == 10 && s.times == 10,
		"%s: %u of %u ends stand, none twice", name, s.established, s.count);
	LAB_OK(route(leaf, "2001:db8::").usable == 2, "%s: a prefix of both edge switches", name);
	LAB_OK(route(leaf, "2001:db8:1::").usable == 1, "%s: a prefix of one", name);
	LAB_OK(route(leaf, "2001:db8:2::").usable == 1, "%s: of a neighbour of the file", name);
	LAB_OK(route(leaf, "fd5f::").hops == 0, "%s: not the building's own aggregate", name);
	LAB_OK(route(node("b0-e-p0-edsw0"), "2001:db8:2::").usable == 1, "%s: the edge, too", name);
	LAB_OK(route(node("b0-e-p0-edsw0"), "2001:db8:1::").hops == 0,
		"%s: edge switches have no session", name);
	lab_close(&lab);
}

/* ---- forwarding */

struct voq {
	uint32_t system_port;
	uint64_t sent;
};

static void count_voq(void *user, const struct node_row *row)
{
	struct voq *v = user;

	if (row->voq.system_port == v->system_port &&
		row->voq.traffic_class == FABRIC_CLASS_DEFAULT)
		v->sent += row->voq.sent_packets;
}

/* Packets of best effort that a switch has sent to the host port of another. */
static uint64_t sent_up(uint32_t from, uint32_t to)
{
	struct voq v = { (lab.topo->nodes[to].switch_index + 1) * TOPO_PORTS_PER_SWITCH - 1, 0 };

	sim_view(lab.sim, from, NODE_QUERY_VOQ, TOPO_NONE, count_voq, &v);
	return v.sent;
}

/* A host's packet arrives at the first port of a leaf. */
static void inject(uint32_t leaf, const char *destination, uint16_t port)
{
	const struct topo_port *in = topo_node_port(lab.topo, &lab.topo->nodes[leaf], 0);
	uint8_t bytes[IP_ETHERNET_SIZE + IP_HEADER_SIZE + IP_UDP_SIZE] = { 0 };
	struct node_frame frame = { bytes, sizeof(bytes), sizeof(bytes), NODE_CHECKSUM_NONE, 0 };
	struct node_command command = { .kind = NODE_COMMAND_IMPAIR };
	struct dsf_ip6 to;

	(void)dsf_ip6_parse(destination, &to);
	ip_packet_write_ethernet(bytes, &in->mac, &lab.topo->ports[in->peer].mac);
	ip_packet_write_header(bytes + IP_ETHERNET_SIZE, &lab.topo->ports[in->peer].address, &to, 0,
		0, IP_PROTOCOL_UDP, 64, IP_UDP_SIZE);
	dsf_store_be16(bytes + IP_ETHERNET_SIZE + IP_HEADER_SIZE, port);
	dsf_store_be16(bytes + IP_ETHERNET_SIZE + IP_HEADER_SIZE + 4, IP_UDP_SIZE);
	(void)node_frame_input(sim_node(lab.sim, leaf), 0, &frame, sim_now(lab.sim));
	(void)sim_command(lab.sim, leaf, &command); /* has the simulator look at what it puts out */
}

static void forward(uint64_t seed)
{
	uint32_t leaf, edge[2];
	uint64_t before[2];

	open_small("forwarding", seed);
	leaf = node("b0-z0-p0-rdsw0");
	edge[0] = node("b0-e-p0-edsw0");
	edge[1] = node("b0-e-p0-edsw1");
	for (uint16_t port = 1; port <= 64; port++)
		inject(leaf, "2001:db8:7::5", port);
	lab_run(&lab, 100 * NS_PER_US);
	before[0] = sent_up(leaf, edge[0]);
	before[1] = sent_up(leaf, edge[1]);
	LAB_OK(before[0] + before[1] == 64 && before[0] >= 16 && before[1] >= 16,
		"%s: flows to both edge switches, %" PRIu64 " and %" PRIu64, name, before[0],
		before[1]);
	inject(leaf, "2001:db8:1::5", 1);
	lab_run(&lab, 100 * NS_PER_US);
	LAB_OK(sent_up(leaf, edge[1]) == before[1] + 1, "%s: the longer prefix wins", name);
	inject(leaf, "2001:db9::5", 1);
	lab_run(&lab, 100 * NS_PER_US);
	LAB_OK(sent_up(leaf, edge[0]) + sent_up(leaf, edge[1]) == 65, "%s: no route, no way", name);
	lab_close(&lab);
}

/* ---- failures */

struct reach {
	uint32_t destination;
	bool reached;
};

static void find_reach(void *user, const struct node_row *row)
{
	struct reach *r = user;

	for (uint32_t w = 0; row->reachability.destination == r->destination &&
			     w < DSF_BITSET_WORDS(lab.topo->nodes[row->node].ports_count);
		w++)
		r->reached = r->reached || row->reachability.output[w] != 0;
}

static bool reaches(uint32_t from, uint32_t to)
{
	struct reach r = { to, false };

	sim_view(lab.sim, from, NODE_QUERY_REACHABILITY, TOPO_NONE, find_reach, &r);
	return r.reached;
}

/* An edge switch dies and comes back: its next hops go with reachability, its paths soon after. */
static void edge_dies(uint64_t seed)
{
	uint32_t leaf, edge, late = 0;

	open_small("edge switch dies", seed);
	leaf = node("b0-z0-p0-rdsw0");
	edge = node("b0-e-p0-edsw0");
	sim_node_stop(lab.sim, edge);
	for (unsigned i = 0; i < 2000; i++) {
		lab_run(&lab, 100);
		late += !reaches(leaf, edge) && route(leaf, "2001:db8::").usable != 1;
	}
	LAB_OK(!reaches(leaf, edge) && late == 0, "%s: at once", name);
	lab_run(&lab, 100 * NS_PER_US);
	LAB_OK(route(leaf, "2001:db8::").hops == 1, "%s: its path is gone", name);
	LAB_OK(sessions(edge).established == 0, "%s: nobody has a session with it", name);
	if (sim_node_start(lab.sim, edge) < 0)
		LAB_OK(false, "%s: no memory", name);
	LAB_OK(wait_established(TOPO_NONE), "%s: all sessions are back", name);
	lab_run(&lab, 100 * NS_PER_US);
	LAB_OK(route(leaf, "2001:db8::").usable == 2, "%s: and its path", name);
	lab_close(&lab);
}

/* A drained edge switch is none for the time being: nobody sends there, and it says so. */
static void edge_drained(uint64_t seed)
{
	struct node_command command = { .kind = NODE_COMMAND_DRAIN_NODE, .drained = true };
	uint32_t leaf, edge;

	open_small("edge switch drained", seed);
	leaf = node("b0-z0-p0-rdsw0");
	edge = node("b0-e-p0-edsw0");
	(void)sim_command(lab.sim, edge, &command);
	lab_run(&lab, 500 * NS_PER_US);
	LAB_OK(route(leaf, "2001:db8::").usable == 1, "%s: not a next hop", name);
	command.drained = false;
	(void)sim_command(lab.sim, edge, &command);
	LAB_OK(wait_established(TOPO_NONE), "%s: all sessions are back", name);
	lab_run(&lab, 100 * NS_PER_US);
	LAB_OK(route(leaf, "2001:db8::").usable == 2, "%s: as before", name);
	lab_close(&lab);
}

/* Links go one after the other: while a way is left no session ends. */
static void links_go(uint64_t seed)
{
	uint32_t leaf, ports;
	uint64_t times;

	open_small("links go", seed);
	leaf = node("b0-z0-p0-rdsw0");
	ports = lab_fabric_ports(&lab, leaf);
	times = sessions(TOPO_NONE).times;
	for (uint32_t i = 0; i < ports; i++) {
		uint32_t link = lab.topo->ports[lab_fabric_port(&lab, leaf, i)].link;

		sim_link_set(lab.sim, link, false);
		lab_run(&lab, 2 * NS_PER_MS);
		sim_link_set(lab.sim, link, true);
		lab_run(&lab, 2 * NS_PER_MS);
		LAB_OK(sessions(TOPO_NONE).times == times &&
				sessions(TOPO_NONE).established == sessions(TOPO_NONE).count,
			"%s: none has ended", name);
	}
	for (uint32_t k = 0; k < ports; k++)
		sim_link_set(lab.sim, lab.topo->ports[lab_fabric_port(&lab, leaf, k)].link, false);
	lab_run(&lab, 500 * NS_PER_US);
	LAB_OK(sessions(leaf).established == 0, "%s: without a way all of its sessions end", name);
	LAB_OK(route(leaf, "2001:db8::").hops == 0, "%s: and nothing is known", name);
	for (uint32_t k = 0; k < ports; k++)
		sim_link_set(lab.sim, lab.topo->ports[lab_fabric_port(&lab, leaf, k)].link, true);
	LAB_OK(wait_established(TOPO_NONE), "%s: all are back", name);
	lab_run(&lab, 100 * NS_PER_US);
	LAB_OK(route(leaf, "2001:db8::").usable == 2, "%s: with their routes", name);
	lab_close(&lab);
}

/* Random links and switches; then all must be as at the start. */
static void storm(uint64_t seed)
{
	open_small("storm", seed);
	for (unsigned i = 0; i < 40; i++) {
		uint32_t link = (uint32_t)dsf_rng_below(&lab.rng, lab.topo->links_count);

		if (!lab.topo->ports[lab.topo->links[link].port_a].ethernet)
			sim_link_set(lab.sim, link, dsf_rng_chance(&lab.rng, 400000));
		if (dsf_rng_chance(&lab.rng, 150000)) {
			uint32_t victim = lab_node(
				&lab, TOPO_ROLE_EDSW, (uint32_t)dsf_rng_below(&lab.rng, 2));

			if (sim_node_restart(lab.sim, victim) < 0)
				LAB_OK(false, "%s: no memory", name);
		}
		lab_run(&lab, dsf_rng_below(&lab.rng, 300 * NS_PER_US));
	}
	for (uint32_t i = 0; i < lab.topo->links_count; i++)
		sim_link_set(lab.sim, i, true);
	LAB_OK(wait_established(TOPO_NONE), "%s: all sessions are back", name);
	LAB_OK(lab_wait_ready(&lab, BACK_NS), "%s: ready", name);
	lab_run(&lab, NS_PER_MS);
	for (uint32_t i = 0; i < 2; i++) {
		uint32_t leaf = lab_node(&lab, TOPO_ROLE_RDSW, i);

		LAB_OK(route(leaf, "2001:db8::").usable == 2 &&
				route(leaf, "2001:db8:1::").usable == 1 &&
				route(leaf, "2001:db8:2::").usable == (i == 0),
			"%s: leaf %u knows all", name, i);
	}
	lab_close(&lab);
}

static void repeats(uint64_t seed)
{
	uint64_t hash[2];

	for (int i = 0; i < 2; i++) {
		open_small("repeats", seed);
		sim_node_stop(lab.sim, node("b0-e-p0-edsw1"));
		lab_run(&lab, NS_PER_MS);
		hash[i] = sim_hash(lab.sim);
		lab_close(&lab);
	}
	LAB_OK(hash[0] == hash[1], "%s: the same events", name);
}

/* ---- size: the published number of leaves of a building on one edge switch */

#define LEAVES 512u

static void count_paths(void *user, const struct node_row *row)
{
	(void)row;
	++*(uint32_t *)user;
}

static double cpu_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static long resident_kb(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	long pages = 0;

	if (file != NULL && fscanf(file, "%*d %ld", &pages) != 1)
		pages = 0;
	if (file != NULL)
		fclose(file);
	return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static char *many_text(void)
{
	char *text = malloc(LEAVES * 160 + 4096), *at = text;

	at += sprintf(at, "{\"name\":\"many\",\"buildings\":[{\"sdsw\":2,\"zones\":[");
	for (unsigned z = 0; z < LEAVES / 128; z++)
		at += sprintf(at,
			"%s{\"scaling_units\":128,\"rails\":1,\"hosts_per_unit\":1,\"fdsw\":1}",
			z > 0 ? "," : "");
	at += sprintf(at, "],\"edge\":{\"edsw\":1,\"fdsw\":1}}],\"nodes\":[");
	for (unsigned i = 0; i < LEAVES; i++)
		at += sprintf(at,
			"{\"name\":\"b0-z%u-p0-rdsw%u\",\"bgp\":{\"originate\":[{\"prefix\":"
			"\"2001:db8:%x::/48\"}]}},",
			i / 128, i % 128, i + 1);
	sprintf(at,
		"{\"name\":\"b0-e-p0-edsw0\",\"bgp\":{\"originate\":[{\"prefix\":\"::/0\"}]}}]}");
	return text;
}

static void many(uint64_t seed)
{
	double begin_s = cpu_s();
	long begin_kb = resident_kb();
	char *text = many_text();
	uint32_t edge, paths = 0, defaults = 0;
	struct sessions s;

	snprintf(name, sizeof(name), "%u leaves, seed %" PRIu64, LEAVES, seed);
	lab_open_text(&lab, text, seed);
	free(text);
	printf("# %s: ready at %" PRIu64 " us of virtual time, %.2f s of CPU\n", name,
		(uint64_t)(sim_now(lab.sim).ns / NS_PER_US), cpu_s() - begin_s);
	lab_run(&lab, NS_PER_MS);
	edge = node("b0-e-p0-edsw0");
	s = sessions(edge);
	LAB_OK(s.count == 2 * LEAVES && s.established == s.count && s.times == s.count,
		"%s: %u ends of sessions stand", name, s.established);
	sim_view(lab.sim, edge, NODE_QUERY_BGP_TABLE, TOPO_NONE, count_paths, &paths);
	/* and two of its own */
	LAB_OK(paths == LEAVES + 2, "%s: the edge switch has a path of each: %u", name, paths);
	for (uint32_t i = 0; i < LEAVES; i++)
		defaults += route(lab_node(&lab, TOPO_ROLE_RDSW, i), "::").usable == 1;
	LAB_OK(defaults == LEAVES, "%s: each has the edge's: %u", name, defaults);
	printf("# %s: %.2f s of CPU in all, %ld KB for all devices\n", name,
		cpu_s() - begin_s, resident_kb() - begin_kb);
	lab_close(&lab);
}

static void test(uint64_t seed)
{
	lab_sessions(DILATION);
	learn(seed);
	forward(seed);
	edge_dies(seed);
	edge_drained(seed);
	links_go(seed);
	storm(seed);
	repeats(seed);
	if (seed == 1)
		many(seed);
}

int main(int argc, char **argv)
{
	return lab_main(argc, argv, test, 3);
}
