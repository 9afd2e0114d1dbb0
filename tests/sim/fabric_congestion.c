/*
 * Congestion inside a fabric of two stages: clusters of 16 RDSWs and 8 FDSWs under 16 SDSWs, with
 * 1.11 times the ports' rate in fabric; everyone sends all he can to one other behind the next
 * cluster. What must hold once the fabric has followed a failure and given up what it
 * cost (80 us here; reassembly waits for 36):
 *
 *   bounded   no link's queue is above its queue_bytes, at any look (once a microsecond), nobody is
 *             told to stop, and the longest queue of the second half of the time is at most a train
 *             longer than that of the first half
 *   lossless  no cell is lost, unreachable or dropped by a queue, no packet overruns its port
 *   shares    an RDSW that has w of its 8 ways to its target gets what w links carry, or its rate
 *
 * Until then a queue may hold a credit loop's worth that was granted for links that are gone; no
 * queue drops for that either. With Input Balanced Mode off and half the uplinks of an FDSW down
 * that FDSW pushes back, and all lose.
 *
 * Seed 1 plays one failure of each class of links and nodes that symmetry leaves. DSF_SEEDS: seed
 * s > 1 plays failure s - 2 of all single ones: links first, then switches (scripts/check --long).
 */
#include <stdlib.h>
#include <string.h>
#include "base/bitset.h"
#include "fabric/cell.h"
#include "sim/sim.h"
#include "tests/sim/lab.h"

#define RDSWS     16u /* of a cluster */
#define FDSWS     8u
#define SDSWS     16u
#define FOLLOW_NS (80 * NS_PER_US)
#define LOOK_NS   NS_PER_US
#define TRAIN     FABRIC_TRAIN_MAX
#define ROLES     7u

static struct lab lab;
static char name[160];
static uint32_t clusters;

static void open_lab(uint32_t count, bool balanced, const char *what, uint64_t seed)
{
	char text[4096];
	int at = snprintf(text, sizeof(text),
		"{\"name\":\"test\",\"seed\":1,\"planes\":1,\"buildings\":[{\"name\":\"b0\","
		"\"sdsw\":%u,\"zones\":[",
		SDSWS);

	clusters = count;
	for (uint32_t i = 0; i < clusters; i++)
		at += snprintf(text + at, sizeof(text) - (size_t)at,
			"{\"name\":\"z%u\",\"scaling_units\":%u,\"rails\":2,\"hosts_per_unit\":2,"
			"\"fdsw\":%u}%s",
			i, RDSWS / 2, FDSWS, i + 1 < clusters ? "," : "");
	snprintf(text + at, sizeof(text) - (size_t)at,
		"]}],\"link_defaults\":{\"gpu\":{\"rate\":\"400G\",\"delay\":\"500ns\","
		"\"queue_bytes\":\"2M\"},\"fabric\":{\"rate\":\"111.25G\",\"delay\":\"500ns\"},"
		"\"spine\":{\"rate\":\"111.25G\",\"delay\":\"1us\"}},"
		"\"fabric\":{\"mode\":\"dsf\",\"input_balanced\":%s}}",
		balanced ? "true" : "false");
	lab_open_text(&lab, text, seed);
	snprintf(name, sizeof(name), "%s, %u clusters, IBM %s, seed %" PRIu64, what, clusters,
		balanced ? "on" : "off", seed);
}

static void add_flow(uint32_t source, uint32_t target)
{
	struct generator_flow flow = { .source = source,
		.target = target,
		.size = 4174,
		.dscp = 50,
		.ecn = 2,
		.start = sim_now(lab.sim),
		.stop = DSF_NEVER };

	generator_add(&flow);
}

static void load(void)
{
	uint32_t count = lab.topo->endpoints_count;

	for (uint32_t i = 0; i < count; i++)
		add_flow(i, (i + count / clusters) % count);
	generator_kick(lab.sim);
	lab_run(&lab, 60 * NS_PER_US);
}

/* Longest queues by role of who sends, and stops, since reset. */
static struct watch {
	uint64_t peak[ROLES];
	uint64_t stops;
} watch;

static void look(void *user, const struct node_row *row)
{
	enum topo_role role = lab.topo->nodes[row->node].role;

	(void)user;
	if (!topo_is_interface_node(role) && !topo_is_fabric_node(role))
		return;
	if (row->port.queue_bytes > watch.peak[role])
		watch.peak[role] = row->port.queue_bytes;
	watch.stops += row->port.stops_tx;
}

static uint64_t longest(const struct watch *w)
{
	uint64_t longest = 0;

	for (uint32_t i = 0; i < ROLES; i++)
		longest = w->peak[i] > longest ? w->peak[i] : longest;
	return longest;
}

static struct watch watch_for(uint64_t ns)
{
	uint64_t stops = watch.stops;
	struct watch seen;

	memset(watch.peak, 0, sizeof(watch.peak));
	for (uint64_t at = 0; at < ns; at += LOOK_NS) {
		lab_run(&lab, LOOK_NS);
		watch.stops = 0;
		sim_view(lab.sim, TOPO_NONE, NODE_QUERY_PORT, TOPO_NONE, look, NULL);
	}
	seen = watch;
	seen.stops = watch.stops - stops;
	return seen;
}

static void count_ways(void *user, const struct node_row *row)
{
	*(uint32_t *)user = dsf_bitset_count(row->reachability.output, DSF_BITSET_WORDS(FDSWS + 2));
}

/* What a flow can have in the shares of its leaf's ways: of the links' rate what the cells carry,
 * less a tenth: no link is ever full, and a leaf's flows share evenly over longer times only. */
static double share_gbps(uint32_t flow)
{
	const struct topo *t = lab.topo;
	uint32_t count = t->endpoints_count, ways = 0;
	uint32_t target = (flow + count / clusters) % count;
	uint32_t from = t->ports[topo_endpoint_port(t, flow, 0)->peer].node;
	uint32_t to = t->ports[topo_endpoint_port(t, target, 0)->peer].node;
	double frame = 4174 + 24, cells = 4174 + 9 * FABRIC_CELL_HEADER, least = 400;
	double in_gbps;

	if (sim_node(lab.sim, from) == NULL || sim_node(lab.sim, to) == NULL)
		return 0;
	sim_view(lab.sim, from, NODE_QUERY_REACHABILITY, to, count_ways, &ways);
	in_gbps = ways * 111.25 * frame / cells / 2;
	least = in_gbps < least ? in_gbps : least;
	return least * 0.9;
}

struct outcome {
	double mean, least_of_share;
	struct watch first, second;
	struct lab_totals lost;
};

static uint64_t lost_of(const struct lab_totals *t)
{
	return t->cells_lost + t->unreachable + t->fabric_drops + t->link_down +
	       t->reassembly_errors;
}

static struct outcome measure(uint64_t ns)
{
	struct generator_count before[GENERATOR_FLOWS_MAX];
	struct outcome o = { .least_of_share = 1e9 };
	struct lab_totals t;

	lab_total(&lab, &t);
	for (uint32_t i = 0; i < generator_flows(); i++)
		before[i] = *generator_count(i);
	o.first = watch_for(ns / 2);
	o.second = watch_for(ns / 2);
	for (uint32_t i = 0; i < generator_flows(); i++) {
		struct generator_count c = generator_since(i, &before[i]);
		double gbps = (double)c.bytes * 8 / (double)ns, share = share_gbps(i);

		o.mean += gbps / generator_flows();
		if (share > 0 && gbps / share < o.least_of_share)
			o.least_of_share = gbps / share;
	}
	lab_total(&lab, &o.lost);
	o.lost.cells_lost -= t.cells_lost;
	o.lost.unreachable -= t.unreachable;
	o.lost.link_down -= t.link_down;
	o.lost.reassembly_errors -= t.reassembly_errors;
	return o;
}

static void tell(const char *when, const struct outcome *o)
{
	printf("# %s, %s: mean %.1f of 400 Gbit/s; longest queues: RDSW %" PRIu64 ", FDSW %" PRIu64
	       ", SDSW %" PRIu64 " bytes; %" PRIu64 " stops\n",
		name, when, o->mean, o->second.peak[TOPO_ROLE_RDSW], o->second.peak[TOPO_ROLE_FDSW],
		o->second.peak[TOPO_ROLE_SDSW], o->first.stops + o->second.stops);
}

static void check(const struct outcome *o)
{
	uint64_t first = longest(&o->first), second = longest(&o->second);
	uint64_t most = lab.topo->links[lab.topo->links_count - 1].queue_bytes;

	LAB_OK(first <= most && second <= most && o->first.stops + o->second.stops == 0,
		"%s: queues are bounded: %" PRIu64 " and %" PRIu64 " of %" PRIu64 " bytes", name,
		first, second, most);
	LAB_OK(second <= first + TRAIN, "%s: and don't grow", name);
	LAB_OK(lost_of(&o->lost) == 0 && o->lost.egress_drops == 0,
		"%s: %" PRIu64 " cells or packets are lost, %" PRIu64 " overran their port", name,
		lost_of(&o->lost), o->lost.egress_drops);
	LAB_OK(o->least_of_share >= 1, "%s: every flow has its share: %.2f", name,
		o->least_of_share);
}

static void single(uint32_t count, const char *what, uint32_t link, uint32_t node, uint64_t seed)
{
	struct outcome o;

	open_lab(count, true, what, seed);
	load();
	if (link != TOPO_NONE)
		sim_link_set(lab.sim, link, false);
	if (node != TOPO_NONE)
		sim_node_stop(lab.sim, node);
	(void)watch_for(FOLLOW_NS);
	o = measure(60 * NS_PER_US);
	tell("after it", &o);
	check(&o);
	lab_close(&lab);
}

static uint32_t link_at(const char *port)
{
	return lab.topo->ports[topo_find_port(lab.topo, port)].link;
}

/* Half the uplinks of one FDSW. Returns what all flows have. */
static struct outcome half(bool balanced, uint64_t seed)
{
	struct outcome o, healthy;

	open_lab(2, balanced, "half the uplinks of an FDSW down", seed);
	load();
	(void)watch_for(LOOK_NS);
	healthy = measure(40 * NS_PER_US);
	tell("before", &healthy);
	for (uint32_t i = 0; i < SDSWS / 2; i++) {
		char port[64];

		snprintf(port, sizeof(port), "b0-z0-p0-fdsw0:fab%u", RDSWS + i);
		sim_link_set(lab.sim, link_at(port), false);
	}
	(void)watch_for(FOLLOW_NS);
	o = measure(120 * NS_PER_US);
	tell("after it", &o);
	if (balanced)
		check(&o);
	lab_close(&lab);
	return o;
}

static void halves(uint64_t seed)
{
	struct outcome on = half(true, seed), off = half(false, seed);
	/* 8 of 128 links that lead out of the cluster, and as many into it. */
	double withheld = 400.0 * 8 / (RDSWS * FDSWS);

	LAB_OK(on.mean >= 400 - withheld, "%s: IBM on loses no more than it withholds: %.1f", name,
		on.mean);
	LAB_OK(off.first.stops + off.second.stops > 0 &&
			longest(&off.first) > 2 * longest(&on.first),
		"%s: IBM off pushes back: %" PRIu64 " stops, queues of %" PRIu64
		" bytes against %" PRIu64,
		name, off.first.stops + off.second.stops, longest(&off.first), longest(&on.first));
	LAB_OK(off.mean < on.mean - withheld, "%s: and loses more: %.1f against %.1f", name,
		off.mean, on.mean);
}

/* Two leaves fill both ports of a third, which loses one of its two links (or has one slowed down
 * at the far end, so that nobody but the cells can tell): it grants what is left. */
static void narrow(bool slow, uint64_t seed)
{
	struct node_impairment impairment = { .rate_bps = 100000000000ull };
	uint32_t target, port;
	uint64_t stops, full;
	struct outcome o;

	lab_open(&lab, "mini.json", seed);
	clusters = 1;
	snprintf(name, sizeof(name), "a leaf's link %s, seed %" PRIu64,
		slow ? "is slow at the far end" : "down", seed);
	target = lab_node(&lab, TOPO_ROLE_RDSW, 0);
	port = lab_fabric_port(&lab, target, 0);
	full = lab.topo->links[lab.topo->ports[port].link].queue_bytes;
	for (uint32_t i = 0, to = 0; to < 2 && i < lab.topo->endpoints_count; i++) {
		if (lab.topo->ports[topo_endpoint_port(lab.topo, i, 0)->peer].node != target)
			continue;
		add_flow(lab.topo->endpoints_count / 2 + to++, i); /* behind two other leaves */
	}
	generator_kick(lab.sim);
	lab_run(&lab, 60 * NS_PER_US);
	if (slow)
		lab_impair(&lab, lab.topo->ports[port].peer, &impairment);
	else
		sim_link_set(lab.sim, lab.topo->ports[port].link, false);
	(void)watch_for(FOLLOW_NS);
	o = measure(200 * NS_PER_US);
	tell("after it", &o);
	stops = o.first.stops + o.second.stops;
	LAB_OK(lost_of(&o.lost) == 0, "%s: nothing is lost", name);
	if (slow) {
		/* Full queues push back (else it would grow for ever), and flagged cells slow the
		 * sources down until few have to (82 stops without). */
		LAB_OK(longest(&o.first) <= 2 * full && longest(&o.second) <= 2 * full,
			"%s: a full queue pushes back: %" PRIu64 " bytes at most", name,
			longest(&o.second));
		LAB_OK(stops < 20, "%s: %" PRIu64 " times", name, stops);
	} else {
		LAB_OK(longest(&o.second) < full / 2 && stops == 0,
			"%s: the leaf grants what its links carry: queues of %" PRIu64
			" bytes, %" PRIu64 " stops",
			name, longest(&o.second), stops);
		LAB_OK(o.mean > 200, "%s: and no less: %.1f Gbit/s each", name, o.mean);
	}
	lab_close(&lab);
}

/* The busiest link of the published network, with and without its published failures. */
static struct busy {
	uint64_t before, most;
} busy[TOPO_PORTS_MAX];

static void note_busy(void *user, const struct node_row *row)
{
	const struct topo_node *n = &lab.topo->nodes[row->node];
	struct busy *b;

	if (row->port.port >= n->ports_count)
		return; /* the host port */
	b = &busy[n->first_port + row->port.port];
	b->most = row->port.cell_bytes_tx - b->before;
	b->before = row->port.cell_bytes_tx;
	(void)user;
}

static void figures(uint64_t seed)
{
	static const char *const failures[][2] = { { "x-rdsw3:fab1" }, { "x-fdsw1:fab7" },
		{ "x-fdsw1:fab7", "y-rdsw0:fab0" } };
	static const char *const names[] = { "healthy", "A", "B", "B and C" };
	uint64_t ns = 100 * NS_PER_US;

	for (uint32_t i = 0; i < 4; i++) {
		uint32_t port = 0;
		double share;

		lab_open(&lab, "figures.json", seed);
		snprintf(name, sizeof(name), "figures.json, %s, seed %" PRIu64, names[i], seed);
		clusters = 2;
		load();
		for (int k = 0; k < 2 && i > 0 && failures[i - 1][k] != NULL; k++)
			sim_link_set(lab.sim, link_at(failures[i - 1][k]), false);
		lab_run(&lab, FOLLOW_NS);
		memset(busy, 0, sizeof(busy));
		sim_view(lab.sim, TOPO_NONE, NODE_QUERY_PORT, TOPO_NONE, note_busy, NULL);
		lab_run(&lab, ns);
		sim_view(lab.sim, TOPO_NONE, NODE_QUERY_PORT, TOPO_NONE, note_busy, NULL);
		for (uint32_t p = 0; p < lab.topo->ports_count; p++)
			port = busy[p].most > busy[port].most ? p : port;
		share = (double)busy[port].most * 8e9 / (double)ns /
			(double)lab.topo->links[lab.topo->ports[port].link].rate_bps;
		LAB_OK(share > 0.5 && share < 1.001,
			"%s: the busiest link carries %.1f %% of its rate: %s:%s", name,
			share * 100, lab.topo->nodes[lab.topo->ports[port].node].name,
			lab.topo->ports[port].name);
		lab_close(&lab);
	}
}

/* Links to one kind of peer and the three kinds of switches are alike, up to the draw. */
static void classes(uint64_t seed)
{
	uint32_t link[2], node[3], none = TOPO_NONE;

	open_lab(2, true, "names", seed);
	link[0] = link_at("b0-z0-p0-rdsw3:fab2");
	link[1] = link_at("b0-z1-p0-fdsw5:fab20");
	node[0] = lab_node(&lab, TOPO_ROLE_RDSW, 3);
	node[1] = lab_node(&lab, TOPO_ROLE_FDSW, 2);
	node[2] = lab_node(&lab, TOPO_ROLE_SDSW, 1);
	lab_close(&lab);
	single(2, "nothing down", none, none, seed);
	single(2, "a link RDSW - FDSW down", link[0], none, seed);
	single(2, "a link FDSW - SDSW down", link[1], none, seed);
	single(2, "an RDSW down", none, node[0], seed);
	single(2, "an FDSW down", none, node[1], seed);
	single(2, "an SDSW down", none, node[2], seed);
}

/* Failure number n of all single ones, where there are so many. */
static void nth(uint64_t n, uint64_t seed)
{
	uint32_t link = TOPO_NONE, node = TOPO_NONE;

	open_lab(2, true, "names", seed);
	for (uint32_t i = 0; i < lab.topo->links_count && link == TOPO_NONE; i++)
		if (!lab.topo->ports[lab.topo->links[i].port_a].ethernet && n-- == 0)
			link = i;
	for (uint32_t i = 0; i < lab.topo->nodes_count && link == TOPO_NONE && node == TOPO_NONE;
		i++)
		if (lab.topo->nodes[i].role != TOPO_ROLE_HOST && n-- == 0)
			node = i;
	lab_close(&lab);
	if (link != TOPO_NONE || node != TOPO_NONE)
		single(2, "one of all", link, node, seed);
}

static void test(uint64_t seed)
{
	if (seed > 1) {
		nth(seed - 2, seed);
		return;
	}
	classes(seed);
	halves(seed);
	figures(seed);
	narrow(false, seed);
	narrow(true, seed);
}

int main(int argc, char **argv)
{
	return lab_main(argc, argv, test, 1);
}
