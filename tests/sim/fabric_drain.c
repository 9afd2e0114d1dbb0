/*
 * Drains under load: ports of any switch and whole switches, at line rate and below it. Nothing is
 * lost inside the fabric, both ends are inactive, the links stay up, a flap changes nothing, and
 * who reaches whom is as if the drained links had failed.
 */
#include <stdlib.h>
#include <string.h>
#include "tests/sim/lab.h"
#include "tests/tap.h"
#include "topo/fixed.h"
#include "topo/memory.h"

#define RDMA       50u
#define CONTROL_NS (20 * NS_PER_US) /* three hops of a few microseconds each */

static struct lab lab;
static char name[128];

static const char *const files[] = { "mini.json", "l1-zone.json", "figures.json", "l2-zone.json" };

static const char miscabled_text[] =
	"{\"name\": \"miscabled\", \"nodes\": ["
	"{\"name\": \"h0\", \"role\": \"host\"}, {\"name\": \"h1\", \"role\": \"host\"},"
	"{\"name\": \"r0\", \"role\": \"rdsw\"}, {\"name\": \"r1\", \"role\": \"rdsw\"},"
	"{\"name\": \"f0\", \"role\": \"fdsw\"}, {\"name\": \"f1\", \"role\": \"fdsw\"}],"
	"\"links\": ["
	"{\"a\": \"h0:gpu0p0\", \"b\": \"r0:eth0\"}, {\"a\": \"h1:gpu0p0\", \"b\": \"r1:eth0\"},"
	"{\"a\": \"r0:fab0\", \"b\": \"f0:fab1\", \"expected_a\": \"f0:fab0\","
	" \"expected_b\": \"r1:fab0\"},"
	"{\"a\": \"r1:fab0\", \"b\": \"f0:fab0\", \"expected_a\": \"f0:fab1\","
	" \"expected_b\": \"r0:fab0\"},"
	"{\"a\": \"r0:fab1\", \"b\": \"f1:fab0\"}, {\"a\": \"r1:fab1\", \"b\": \"f1:fab1\"},"
	"{\"a\": \"f1:fab2\", \"b\": \"f1:fab3\"}]}";

static void open_lab(const char *what, uint64_t seed)
{
	const char *file = files[seed % (sizeof(files) / sizeof(files[0]))];

	lab_open(&lab, file, seed);
	snprintf(name, sizeof(name), "%s, %s, seed %" PRIu64, what, file, seed);
}

static void set_drain(uint32_t port, bool drained)
{
	const struct topo_port *p = &lab.topo->ports[port];
	struct node_command command = {
		.kind = NODE_COMMAND_DRAIN_PORT, .port = p->number, .drained = drained
	};

	LAB_OK(sim_command(lab.sim, p->node, &command) == 0, "%s: the command is taken", name);
}

static void set_drain_node(uint32_t node, bool drained)
{
	struct node_command command = { .kind = NODE_COMMAND_DRAIN_NODE, .drained = drained };

	LAB_OK(sim_command(lab.sim, node, &command) == 0, "%s: the command is taken", name);
}

/* Everyone sends to the next one behind another switch, on plane 0; rate 0: the port's. */
static void add_flows(uint64_t rate_bps)
{
	uint32_t count = lab.topo->endpoints_count;
	uint32_t shift = lab.topo->nodes[topo_endpoint(lab.topo, 0).host].rails + 1;

	for (uint32_t i = 0; i < count; i++) {
		struct generator_flow flow = { .source = i,
			.target = (i + shift) % count,
			.size = 4174,
			.dscp = RDMA,
			.rate_bps = rate_bps,
			.start = sim_now(lab.sim),
			.stop = DSF_NEVER };

		generator_add(&flow);
	}
	generator_kick(lab.sim);
}

/* A fabric port of plane 0 by chance, of a switch of this role. */
static uint32_t draw_port(enum topo_role role)
{
	uint32_t count = lab_count(&lab, role), node;

	do {
		node = lab_node(&lab, role, (uint32_t)dsf_rng_below(&lab.rng, count));
	} while (lab.topo->nodes[node].plane != 0);
	return lab_fabric_port(
		&lab, node, (uint32_t)dsf_rng_below(&lab.rng, lab_fabric_ports(&lab, node)));
}

static enum topo_role draw_role(void)
{
	uint32_t roles = lab_count(&lab, TOPO_ROLE_SDSW) > 0 ? 3 : 2;

	switch (dsf_rng_below(&lab.rng, roles)) {
	case 0: return TOPO_ROLE_RDSW;
	case 1: return TOPO_ROLE_FDSW;
	default: return TOPO_ROLE_SDSW;
	}
}

static void check_ends(uint32_t port, bool drained, const char *when)
{
	struct node_row_port near = lab_port(&lab, port);
	struct node_row_port far = lab_port(&lab, lab.topo->ports[port].peer);

	LAB_OK(near.carrier && near.live && far.carrier && far.live, "%s: %s, the link is up", name,
		when);
	LAB_OK(near.active == !drained && far.active == !drained, "%s: %s, both ends are %s", name,
		when, drained ? "inactive" : "active");
	LAB_OK(near.drained == drained && !near.peer_drained && !far.drained &&
			far.peer_drained == drained,
		"%s: %s, the near end is %s and the far end knows", name, when,
		drained ? "drained" : "not drained");
}

/* Rows of all switches against the planner's, for one destination. */
struct comparing {
	struct topo_fixed *fixed;
	uint32_t wrong, rows;
};

static bool same(const uint64_t *a, const uint64_t *b, uint32_t bits)
{
	return memcmp(a, b, DSF_BITSET_WORDS(bits) * sizeof(uint64_t)) == 0;
}

static void compare(void *user, const struct node_row *row)
{
	const struct node_row_reachability *r = &row->reachability;
	uint32_t ports = lab.topo->nodes[row->node].ports_count;
	struct comparing *c = user;
	struct topo_fixed_row want;

	c->rows++;
	c->wrong += !topo_fixed_row(c->fixed, row->node, &want) ||
		    !same(r->output, want.output, ports) ||
		    !same(r->advertised, want.advertised, ports) ||
		    !same(r->withdrawn, want.withdrawn, ports) ||
		    r->cut_by_balance != want.cut_by_balance;
}

/* As if these links had failed. */
static void check_reach(const uint64_t *drained, const char *when)
{
	struct comparing c = { .fixed = topo_fixed_new(lab.topo, drained, lab.seed, &topo_memory) };

	if (c.fixed == NULL)
		abort();
	for (uint32_t d = 0; d < lab.topo->nodes_count; d++) {
		if (lab.topo->nodes[d].role != TOPO_ROLE_RDSW)
			continue;
		topo_fixed_destination(c.fixed, d);
		sim_view(lab.sim, TOPO_NONE, NODE_QUERY_REACHABILITY, d, compare, &c);
	}
	topo_fixed_free(c.fixed);
	LAB_OK(c.rows > 0 && c.wrong == 0, "%s: %s, %u of %u rows aren't as with failed links",
		name, when, c.wrong, c.rows);
}

static uint64_t *no_links(void)
{
	uint64_t *set = calloc(DSF_BITSET_WORDS(lab.topo->links_count), sizeof(*set));

	if (set == NULL)
		abort();
	return set;
}

static void close_lab(void)
{
	generator_stop(sim_now(lab.sim));
	LAB_OK(lab_wait_rest(&lab, 20 * NS_PER_MS), "%s: comes to rest", name);
	lab_check_rest(&lab, name);
	lab_check_order(&lab, name);
	lab_check_lossless(&lab, name);
	lab_check_cells(&lab, name);
	lab_close(&lab);
}

/* Ports are drained and undrained one after the other, at whatever instant. */
static void ports(uint64_t seed, uint64_t rate_bps)
{
	open_lab(rate_bps == 0 ? "ports, line rate" : "ports", seed);
	add_flows(rate_bps);
	lab_run(&lab, 50 * NS_PER_US);
	for (int i = 0; i < 12; i++) {
		uint32_t port = draw_port(draw_role());

		set_drain(port, true);
		lab_run(&lab, CONTROL_NS + dsf_rng_below(&lab.rng, 20 * NS_PER_US));
		check_ends(port, true, "drained");
		set_drain(port, false);
		lab_run(&lab, dsf_rng_below(&lab.rng, CONTROL_NS));
	}
	lab_run(&lab, CONTROL_NS);
	LAB_OK(sim_ready(lab.sim), "%s: all is as before", name);
	if (rate_bps > 0) {
		struct lab_totals t;

		lab_total(&lab, &t);
		LAB_OK(t.voq_drops == 0 && t.watchdog_drops == 0,
			"%s: VOQs dropped nothing: %" PRIu64, name, t.voq_drops);
	}
	close_lab();
}

/* Published drill: a port of one FDSW of each cluster and of one SDSW at the same time. */
static void one_of_each(uint64_t seed)
{
	uint32_t drawn[64], count = 0;
	uint64_t done = 0; /* clusters, and the spine, as bits */

	open_lab("a port of each", seed);
	add_flows(0);
	lab_run(&lab, 50 * NS_PER_US);
	for (uint32_t i = 0; i < lab.topo->nodes_count; i++) {
		const struct topo_node *n = &lab.topo->nodes[i];
		uint64_t bit = n->role == TOPO_ROLE_FDSW ? 1ull << n->cluster : 1ull << 63;

		if (!topo_is_fabric_node(n->role) || n->plane != 0 || (done & bit) != 0)
			continue;
		done |= bit;
		drawn[count++] = lab_fabric_port(
			&lab, i, (uint32_t)dsf_rng_below(&lab.rng, lab_fabric_ports(&lab, i)));
	}
	for (int round = 0; round < 3; round++) {
		for (uint32_t i = 0; i < count; i++)
			set_drain(drawn[i], true);
		lab_run(&lab, CONTROL_NS + dsf_rng_below(&lab.rng, CONTROL_NS));
		for (uint32_t i = 0; i < count; i++)
			set_drain(drawn[i], false);
		lab_run(&lab, CONTROL_NS);
	}
	close_lab();
}

/* A whole switch at once: everybody else finds another way. */
static void fabric_switch(uint64_t seed, enum topo_role role)
{
	uint64_t *drained;
	uint32_t node, bad = 0;

	open_lab(role == TOPO_ROLE_FDSW ? "an FDSW" : "an SDSW", seed);
	if (lab_count(&lab, role) == 0) {
		lab_close(&lab);
		return;
	}
	drained = no_links();
	add_flows(0);
	lab_run(&lab, 50 * NS_PER_US);
	node = lab.topo->ports[draw_port(role)].node;
	set_drain_node(node, true);
	lab_run(&lab, CONTROL_NS + 20 * NS_PER_US);
	for (uint32_t i = 0; i < lab_fabric_ports(&lab, node); i++) {
		uint32_t port = lab_fabric_port(&lab, node, i);
		struct node_row_port near = lab_port(&lab, port);
		struct node_row_port far = lab_port(&lab, lab.topo->ports[port].peer);

		bad += near.active || far.active || !near.drained || !far.peer_drained ||
		       !near.live || !far.live;
		dsf_bitset_add(drained, lab.topo->ports[port].link);
	}
	LAB_OK(bad == 0, "%s: %u of its ports are not inactive, live and drained", name, bad);
	check_reach(drained, "drained");
	set_drain_node(node, false);
	lab_run(&lab, CONTROL_NS);
	memset(drained, 0, DSF_BITSET_WORDS(lab.topo->links_count) * sizeof(*drained));
	check_reach(drained, "undrained");
	LAB_OK(sim_ready(lab.sim), "%s: all is as before", name);
	free(drained);
	close_lab();
}

/* Drains after which balance cuts leaves off, as it may where each device draws for itself: what is
 * under way to them still arrives. */
static void cut_by_balance(uint64_t seed)
{
	static const char *const drained[] = { "x-fdsw1:fab7", "y-rdsw0:fab0", "y-fdsw1:fab5" };
	const char *text = lab_read("figures.json");
	static const char stratified[] = "\"draw\": \"stratified\"";
	const char *at = strstr(text, stratified);
	static char with[1 << 16];

	if (at == NULL)
		abort();
	snprintf(with, sizeof(with), "%.*s\"draw\": \"random\"%s", (int)(at - text), text,
		at + strlen(stratified));
	lab_open_text(&lab, with, seed);
	snprintf(name, sizeof(name), "cut by balance, seed %" PRIu64, seed);
	for (uint32_t i = 0; i < lab.topo->endpoints_count; i++) {
		uint32_t half = lab.topo->endpoints_count / 2;
		struct generator_flow flow = { .source = i,
			.target = (i + half) % lab.topo->endpoints_count,
			.size = 4174,
			.dscp = RDMA,
			.stop = DSF_NEVER };

		generator_add(&flow);
	}
	generator_kick(lab.sim);
	lab_run(&lab, 50 * NS_PER_US);
	for (size_t i = 0; i < sizeof(drained) / sizeof(drained[0]); i++) {
		set_drain(topo_find_port(lab.topo, drained[i]), true);
		lab_run(&lab, dsf_rng_below(&lab.rng, CONTROL_NS));
	}
	lab_run(&lab, 2 * CONTROL_NS);
	lab_check_lossless(&lab, name);
	lab_close(&lab);
}

/* Several drained links count as as many failed ones; a flap of one changes nothing. */
static void port_groups(uint64_t seed)
{
	uint64_t *drained;
	uint32_t drawn[4];

	open_lab("port groups", seed);
	drained = no_links();
	for (int i = 0; i < 4; i++) {
		drawn[i] = draw_port(draw_role());
		set_drain(drawn[i], true);
		dsf_bitset_add(drained, lab.topo->ports[drawn[i]].link);
		lab_run(&lab, CONTROL_NS);
		check_reach(drained, "drained");
	}
	for (int i = 0; i < 3; i++) {
		sim_link_set(lab.sim, lab.topo->ports[drawn[0]].link, false);
		lab_run(&lab, dsf_rng_below(&lab.rng, CONTROL_NS));
		sim_link_set(lab.sim, lab.topo->ports[drawn[0]].link, true);
		lab_run(&lab, CONTROL_NS);
		LAB_OK(!lab_port(&lab, drawn[0]).active &&
				!lab_port(&lab, lab.topo->ports[drawn[0]].peer).active,
			"%s: a flap doesn't make it active", name);
	}
	check_reach(drained, "after the flaps");
	for (int i = 0; i < 4; i++)
		set_drain(drawn[i], false);
	lab_run(&lab, CONTROL_NS);
	memset(drained, 0, DSF_BITSET_WORDS(lab.topo->links_count) * sizeof(*drained));
	check_reach(drained, "undrained");
	free(drained);
	lab_close(&lab);
}

static void zone_of(const char *settings, uint32_t fdsw, uint64_t seed, const char *what)
{
	struct lab_zone zone = { .planes = 1,
		.units = 2,
		.rails = 1,
		.hosts_per_unit = 2,
		.fdsw = fdsw,
		.settings = settings };

	lab_open_zone(&lab, &zone, seed);
	snprintf(name, sizeof(name), "%s, seed %" PRIu64, what, seed);
}

/* 10,000 packets of one RDSW with one of its ports drained. */
static void spray(uint64_t seed)
{
	struct generator_flow flow = { .source = 0,
		.target = 2,
		.size = 1014,
		.dscp = RDMA,
		.rate_bps = 200000000000ull,
		.stop = DSF_NEVER };
	uint64_t before, sum = 0, most = 0, least = UINT64_MAX;
	uint32_t node, drained, count, control;

	zone_of(NULL, 6, seed, "spray");
	node = lab_node(&lab, TOPO_ROLE_RDSW, 0);
	count = lab_fabric_ports(&lab, node);
	drained = lab_fabric_port(&lab, node, (uint32_t)dsf_rng_below(&lab.rng, count));
	set_drain(drained, true);
	lab_run(&lab, CONTROL_NS);
	before = lab_port(&lab, drained).cells_tx;
	control = (uint32_t)lab_port(&lab, drained).cell_bytes_tx;
	flow.start = sim_now(lab.sim);
	generator_add(&flow);
	generator_kick(lab.sim);
	while (generator_count(0)->sent < 10000)
		lab_run(&lab, NS_PER_US);
	generator_stop(sim_now(lab.sim));
	LAB_OK(lab_wait_rest(&lab, 20 * NS_PER_MS), "%s: comes to rest", name);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t port = lab_fabric_port(&lab, node, i);
		uint64_t cells = lab_port(&lab, port).cells_tx;

		if (port == drained)
			continue;
		sum += cells;
		most = cells > most ? cells : most;
		least = cells < least ? cells : least;
	}
	LAB_OK(lab_port(&lab, drained).cells_tx == before &&
			lab_port(&lab, lab.topo->ports[drained].peer).cells_tx == 0,
		"%s: the drained link carries no data", name);
	LAB_OK(lab_port(&lab, drained).cell_bytes_tx > control, "%s: but control cells", name);
	LAB_OK((most - least) * (count - 1) * 100 <= 15 * sum,
		"%s: %" PRIu64 " to %" PRIu64 " cells on the others", name, least, most);
	LAB_OK(generator_count(0)->received == generator_count(0)->sent &&
			generator_count(0)->sent >= 10000,
		"%s: %" PRIu64 " of %" PRIu64 " packets came", name, generator_count(0)->received,
		generator_count(0)->sent);
	lab_check_lossless(&lab, name);
	lab_close(&lab);
}

/* How many packets a flow between two ranks gets through in a while. */
static uint64_t passes(uint32_t source, uint32_t target)
{
	struct generator_flow flow = { .source = source,
		.target = target,
		.size = 4174,
		.dscp = RDMA,
		.rate_bps = 100000000000ull,
		.start = sim_now(lab.sim),
		.stop = dsf_time_after(sim_now(lab.sim), 20 * NS_PER_US) };
	uint32_t number = generator_add(&flow);

	generator_kick(lab.sim);
	lab_run(&lab, 50 * NS_PER_US);
	return generator_count(number)->received;
}

static bool is_drained(uint32_t node)
{
	return lab_port(&lab, lab_fabric_port(&lab, node, 0)).drained;
}

/* Inside a drained switch packets pass, through the fabric none. */
static void check_drained(uint32_t node, bool drained, const char *when)
{
	uint64_t local = passes(0, 1), far = passes(0, 2), back = passes(3, 1);

	LAB_OK(is_drained(node) == drained, "%s: %s, it is %sdrained", name, when,
		drained ? "" : "un");
	LAB_OK(local == 60 || local == 59, "%s: %s, %" PRIu64 " packets pass inside", name, when,
		local);
	LAB_OK(drained ? far == 0 && back == 0 : far == local && back == local,
		"%s: %s, %" PRIu64 " and %" PRIu64 " pass through the fabric", name, when, far,
		back);
}

static void interface_switch(uint64_t seed)
{
	uint32_t node;

	zone_of(NULL, 2, seed, "an RDSW");
	node = lab_node(&lab, TOPO_ROLE_RDSW, 0);
	check_drained(node, false, "before");
	set_drain_node(node, true);
	lab_run(&lab, CONTROL_NS);
	check_drained(node, true, "drained");
	set_drain_node(node, false);
	lab_run(&lab, 2 * lab.topo->fabric.credit_watchdog_ns); /* what waited has gone */
	check_drained(node, false, "undrained");
	lab_close(&lab);
}

/* Published: below to_remain it drains itself, at to_join it is back. */
static void minimum(uint64_t seed)
{
	static const bool drained[] = { false, false, true, true, true, true, false };
	static const int links[] = { 4, 3, 2, 1, 2, 3, 4 };
	uint32_t node;
	int up = 4;

	zone_of(",\"min_links_to_join\":4,\"min_links_to_remain\":3", 4, seed, "minimum links");
	node = lab_node(&lab, TOPO_ROLE_RDSW, 0);
	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
		for (; up > links[i]; up--)
			sim_link_set(lab.sim,
				lab.topo->ports[lab_fabric_port(&lab, node, (uint32_t)up - 1)].link,
				false);
		for (; up < links[i]; up++)
			sim_link_set(lab.sim,
				lab.topo->ports[lab_fabric_port(&lab, node, (uint32_t)up)].link,
				true);
		lab_run(&lab, CONTROL_NS);
		LAB_OK(is_drained(node) == drained[i],
			"%s: step %zu, with %d links it is %sdrained", name, i, links[i],
			drained[i] ? "" : "un");
		check_drained(node, drained[i], drained[i] ? "too few" : "enough");
		lab_run(&lab, 2 * lab.topo->fabric.credit_watchdog_ns);
	}
	lab_close(&lab);
}

static void find_missing(void *user, const struct node_row *row)
{
	*(bool *)user |= strcmp(row->missing.what, "minimum links") == 0;
}

/* More than a switch has: it stays drained, and says what it misses; with none it isn't. */
static void minimum_above(uint64_t seed)
{
	bool missing = false;
	uint32_t node;

	zone_of(",\"min_links_to_remain\":3", 3, seed, "more minimum links than links");
	node = lab_node(&lab, TOPO_ROLE_RDSW, 0);
	sim_link_set(lab.sim, lab.topo->ports[lab_fabric_port(&lab, node, 2)].link, false);
	lab_run(&lab, CONTROL_NS);
	sim_view(lab.sim, node, NODE_QUERY_READY, TOPO_NONE, find_missing, &missing);
	LAB_OK(missing && !sim_ready(lab.sim), "%s: it says that it misses them", name);
	check_drained(node, true, "one link too few");
	lab_close(&lab);
	zone_of(",\"min_links_to_remain\":0", 3, seed, "no minimum links");
	node = lab_node(&lab, TOPO_ROLE_RDSW, 0);
	sim_link_set(lab.sim, lab.topo->ports[lab_fabric_port(&lab, node, 2)].link, false);
	lab_run(&lab, CONTROL_NS);
	check_drained(node, false, "one link down");
	lab_close(&lab);
}

/* A port that is drained isn't one of the links a switch remains by. */
static void minimum_and_drains(uint64_t seed)
{
	uint32_t node;

	zone_of(",\"min_links_to_remain\":2", 2, seed, "minimum links and a drain");
	node = lab_node(&lab, TOPO_ROLE_RDSW, 0);
	check_drained(node, false, "whole");
	set_drain(lab.topo->ports[lab_fabric_port(&lab, node, 1)].peer, true);
	lab_run(&lab, CONTROL_NS);
	check_drained(node, true, "the far end of one drained");
	set_drain(lab.topo->ports[lab_fabric_port(&lab, node, 1)].peer, false);
	lab_run(&lab, 2 * lab.topo->fabric.credit_watchdog_ns);
	check_drained(node, false, "undrained");
	lab_close(&lab);
}

/* Swapped cables carry data; an FDSW's cable to itself carries none, drained or not. */
static void miscabled(uint64_t seed)
{
	uint32_t node, near, far;

	lab_open_text(&lab, miscabled_text, seed);
	snprintf(name, sizeof(name), "miscabled, seed %" PRIu64, seed);
	near = topo_find_port(lab.topo, "f1:fab2");
	far = topo_find_port(lab.topo, "f1:fab3");
	node = lab.topo->ports[near].node;
	LAB_OK(lab_port(&lab, topo_find_port(lab.topo, "r0:fab0")).mismatch &&
			lab_port(&lab, topo_find_port(lab.topo, "f0:fab1")).mismatch &&
			!lab_port(&lab, topo_find_port(lab.topo, "r0:fab1")).mismatch,
		"%s: swapped cables are told, right ones aren't", name);
	LAB_OK(lab_port(&lab, near).disabled && lab_port(&lab, far).disabled &&
			lab.events[DSF_EVENT_LOOP_DETECTED] == 2,
		"%s: both ends of the loop are disabled", name);
	add_flows(0);
	lab_run(&lab, 50 * NS_PER_US);
	set_drain_node(node, true);
	lab_run(&lab, CONTROL_NS);
	LAB_OK(lab_port(&lab, near).live && lab_port(&lab, far).live &&
			!lab_port(&lab, near).active,
		"%s: drained, the loop is heard again", name);
	LAB_OK(lab_port(&lab, topo_find_port(lab.topo, "r0:fab0")).mismatch,
		"%s: what is known of cables stays", name);
	set_drain_node(node, false);
	lab_run(&lab, CONTROL_NS);
	LAB_OK(lab_port(&lab, near).disabled && lab_port(&lab, far).disabled,
		"%s: undrained, it is disabled again", name);
	LAB_OK(lab_port(&lab, near).cells_tx == 0 && lab_port(&lab, far).cells_tx == 0,
		"%s: the loop carried no data", name);
	LAB_OK(sim_ready(lab.sim), "%s: all else is as before", name);
	generator_stop(sim_now(lab.sim));
	LAB_OK(lab_wait_rest(&lab, 20 * NS_PER_MS), "%s: comes to rest", name);
	lab_check_order(&lab, name);
	LAB_OK(lab_missing(&lab) == 0, "%s: every packet came or is counted", name);
	lab_close(&lab);
}

static void test(uint64_t seed)
{
	ports(seed, 0);
	ports(seed, 100000000000ull);
	one_of_each(seed);
	fabric_switch(seed, TOPO_ROLE_FDSW);
	fabric_switch(seed, TOPO_ROLE_SDSW);
	cut_by_balance(seed);
	port_groups(seed);
	spray(seed);
	interface_switch(seed);
	minimum(seed);
	minimum_above(seed);
	minimum_and_drains(seed);
	miscabled(seed);
}

int main(int argc, char **argv)
{
	return lab_main(argc, argv, test, 8);
}
