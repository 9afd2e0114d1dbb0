/*
 * Load with faults, drawn from the seed: skewed delays, jitter, reordering, loss, corruption,
 * one-way silence, links down and up, all links down, switches that restart. Order always holds,
 * every packet comes or is counted, and when the faults end everything works as before.
 */
#include "tests/sim/lab.h"

#define RDMA 50u

static struct lab lab;
static char name[128];

static void open_lab(const char *what, uint64_t seed)
{
	lab_open(&lab, seed % 2 == 0 ? "l1-zone.json" : "mini.json", seed);
	snprintf(name, sizeof(name), "%s, seed %" PRIu64, what, seed);
}

/* Everyone sends to the next one behind another switch, on plane 0, at a part of the rate. */
static void add_flows(uint64_t rate_bps, uint32_t size, bool whole)
{
	uint32_t count = lab.topo->endpoints_count;
	uint32_t shift = lab.topo->nodes[topo_endpoint(lab.topo, 0).host].rails + 1;

	for (uint32_t i = 0; i < count; i++) {
		struct generator_flow flow = { .source = i,
			.target = (i + shift) % count,
			.size = size,
			.dscp = RDMA,
			.rate_bps = rate_bps,
			.whole = whole,
			.start = sim_now(lab.sim),
			.stop = DSF_NEVER };

		generator_add(&flow);
	}
	generator_kick(lab.sim);
}

/* Every flow has got something in the last ns of the load: nobody is stuck. */
static void check_all_flow(uint64_t ns, const char *when)
{
	uint64_t before[GENERATOR_FLOWS_MAX], stuck = 0;

	for (uint32_t i = 0; i < generator_flows(); i++)
		before[i] = generator_count(i)->received;
	lab_run(&lab, ns);
	for (uint32_t i = 0; i < generator_flows(); i++)
		stuck += generator_count(i)->received == before[i];
	LAB_OK(stuck == 0, "%s: %s, %" PRIu64 " flows are stuck", name, when, stuck);
}

/* What can be shown at the end. Every packet: unless a link to a switch died for longer than its
 * packets' cells were missed, so that the last ones are nobody's loss. Every cell: unless a device
 * took its counters with it. */
enum known { KNOWN_ALL, KNOWN_CELLS, KNOWN_ORDER };

static void close_lab(enum known known)
{
	generator_stop(sim_now(lab.sim));
	if (known == KNOWN_ALL) {
		LAB_OK(lab_wait_rest(&lab, 20 * NS_PER_MS), "%s: comes to rest", name);
		lab_check_rest(&lab, name);
	} else {
		lab_run(&lab, 10 * NS_PER_MS);
	}
	lab_check_order(&lab, name);
	if (known != KNOWN_ORDER)
		lab_check_cells(&lab, name);
	lab_close(&lab);
}

/* A fabric port of plane 0 by chance, as an index of topo->ports: an RDSW's end of its link. */
static uint32_t draw_port(void)
{
	uint32_t count = lab_count(&lab, TOPO_ROLE_RDSW), node;

	do {
		node = lab_node(&lab, TOPO_ROLE_RDSW, (uint32_t)dsf_rng_below(&lab.rng, count));
	} while (lab.topo->nodes[node].plane != 0);
	return lab_fabric_port(
		&lab, node, (uint32_t)dsf_rng_below(&lab.rng, lab_fabric_ports(&lab, node)));
}

static void impair_all(const struct node_impairment *base, uint64_t delay_max_ns)
{
	for (uint32_t i = 0; i < lab.topo->ports_count; i++) {
		struct node_impairment impairment = *base;

		if (!topo_is_interface_node(lab.topo->nodes[lab.topo->ports[i].node].role) &&
			!topo_is_fabric_node(lab.topo->nodes[lab.topo->ports[i].node].role))
			continue;
		if (lab.topo->ports[i].ethernet)
			continue;
		impairment.delay_ns =
			delay_max_ns == 0 ? 0 : dsf_rng_below(&lab.rng, delay_max_ns + 1);
		lab_impair(&lab, i, &impairment);
	}
}

/* Delays that differ by microseconds, jitter, trains that overtake: nothing is lost. */
static void skew(uint64_t seed)
{
	static const struct {
		const char *name;
		struct node_impairment impairment;
		uint64_t delay_max_ns;
	} cases[] = {
		{ "delay skew", { 0 }, 6000 },
		{ "jitter", { .jitter_ns = 3000 }, 0 },
		{ "reordering", { .reorder_ppm = 20000 }, 0 },
		{ "skew, jitter and reordering", { .jitter_ns = 2000, .reorder_ppm = 10000 },
			2000 },
	};
	struct lab_totals t;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		open_lab(cases[i].name, seed);
		impair_all(&cases[i].impairment, cases[i].delay_max_ns);
		add_flows(300000000000ull, i == 0 ? 9014 : 4174, i == 1);
		lab_run(&lab, 200 * NS_PER_US);
		check_all_flow(50 * NS_PER_US, "under it");
		impair_all(&(struct node_impairment){ 0 }, 0);
		lab_run(&lab, 50 * NS_PER_US); /* what was held back comes late */
		lab_total(&lab, &t);
		LAB_OK(t.reassembly_errors == 0 && t.cells_lost == 0 && t.fabric_drops == 0,
			"%s: %" PRIu64 " reassembly errors, %" PRIu64 " cells lost", name,
			t.reassembly_errors, t.cells_lost);
		LAB_OK(lab.events[DSF_EVENT_LINK_ISOLATED] == 0, "%s: no link was isolated", name);
		close_lab(KNOWN_ALL);
	}
}

/* 1 % of a link's cells are lost (or corrupted): the link is left, and taken again afterwards. */
static void gray(uint64_t seed, bool corrupt)
{
	struct node_impairment impairment = { .loss_ppm = corrupt ? 0 : 10000,
		.corrupt_ppm = corrupt ? 10000 : 0 };
	uint32_t port;
	uint64_t before;

	open_lab(corrupt ? "1 % corruption" : "1 % loss", seed);
	port = draw_port();
	add_flows(100000000000ull, 4174, false);
	lab_run(&lab, 100 * NS_PER_US);
	lab_impair(&lab, port, &impairment);
	lab_run(&lab, 400 * NS_PER_US);
	LAB_OK(lab_port(&lab, lab.topo->ports[port].peer).isolated,
		"%s: the receiving end has isolated the link", name);
	LAB_OK(!lab_port(&lab, port).live && !lab_port(&lab, lab.topo->ports[port].peer).live,
		"%s: both ends have left it", name);
	before = lab_port(&lab, port).cells_tx;
	check_all_flow(100 * NS_PER_US, "without it");
	LAB_OK(lab_port(&lab, port).cells_tx == before, "%s: it carries no data", name);
	impairment = (struct node_impairment){ 0 };
	lab_impair(&lab, port, &impairment);
	LAB_OK(lab_wait_ready(&lab, 2 * NS_PER_MS), "%s: it comes back", name);
	lab_run(&lab, 100 * NS_PER_US);
	LAB_OK(lab_port(&lab, port).cells_tx > before, "%s: and carries data again", name);
	close_lab(KNOWN_ALL);
}

static void silence(uint64_t seed, bool far)
{
	struct node_impairment impairment = { .silent = true };
	uint32_t port;

	open_lab(far ? "silence of the fabric node" : "silence of the RDSW", seed);
	port = draw_port();
	if (far)
		port = lab.topo->ports[port].peer;
	add_flows(100000000000ull, 4174, false);
	lab_run(&lab, 100 * NS_PER_US);
	lab_impair(&lab, port, &impairment);
	lab_run(&lab, 250 * NS_PER_US);
	LAB_OK(!lab_port(&lab, port).live && !lab_port(&lab, lab.topo->ports[port].peer).live,
		"%s: both ends have left the link", name);
	LAB_OK(lab_port(&lab, port).carrier, "%s: which has carrier", name);
	check_all_flow(100 * NS_PER_US, "without it");
	impairment.silent = false;
	lab_impair(&lab, port, &impairment);
	LAB_OK(lab_wait_ready(&lab, 200 * NS_PER_US), "%s: it comes back", name);
	check_all_flow(100 * NS_PER_US, "with it");
	close_lab(KNOWN_ALL);
}

/* Links go down and come up at random, never all of a switch. */
static void flaps(uint64_t seed)
{
	uint32_t port, link;

	open_lab("link flaps", seed);
	add_flows(150000000000ull, 1414, true);
	for (int i = 0; i < 30; i++) {
		port = draw_port();
		link = lab.topo->ports[port].link;
		lab_run(&lab, dsf_rng_below(&lab.rng, 20 * NS_PER_US));
		sim_link_set(lab.sim, link, false);
		lab_run(&lab, dsf_rng_below(&lab.rng, 20 * NS_PER_US));
		sim_link_set(lab.sim, link, true);
	}
	LAB_OK(lab_wait_ready(&lab, 200 * NS_PER_US), "%s: reachability recovers", name);
	check_all_flow(100 * NS_PER_US, "afterwards");
	close_lab(KNOWN_ALL);
}

/* A switch loses all its fabric links: the watchdog empties what waits for it, counted. */
static void all_down(uint64_t seed)
{
	struct lab_totals t;
	uint32_t node;

	open_lab("all links of a switch down", seed);
	node = lab.topo->ports[draw_port()].node;
	add_flows(100000000000ull, 4174, false);
	lab_run(&lab, 100 * NS_PER_US);
	for (uint32_t i = 0; i < lab_fabric_ports(&lab, node); i++)
		sim_link_set(lab.sim, lab.topo->ports[lab_fabric_port(&lab, node, i)].link, false);
	lab_run(&lab, 200 * NS_PER_US);
	generator_stop(sim_now(lab.sim));
	lab_run(&lab, NS_PER_MS);
	lab_total(&lab, &t);
	LAB_OK(t.voq_packets > 0 && t.watchdog_drops == 0, "%s: packets wait for it", name);
	lab_run(&lab, lab.topo->fabric.credit_watchdog_ns);
	lab_total(&lab, &t);
	LAB_OK(t.voq_packets == 0 && t.watchdog_drops > 0 &&
			lab.events[DSF_EVENT_WATCHDOG_DROPPED] > 0,
		"%s: the watchdog deleted %" PRIu64, name, t.watchdog_drops);
	LAB_OK(t.voq_watchdog_drops == t.watchdog_drops, "%s: as its VOQs say", name);
	for (uint32_t i = 0; i < lab_fabric_ports(&lab, node); i++)
		sim_link_set(lab.sim, lab.topo->ports[lab_fabric_port(&lab, node, i)].link, true);
	LAB_OK(lab_wait_ready(&lab, 200 * NS_PER_US), "%s: reachability recovers", name);
	add_flows(100000000000ull, 4174, false);
	lab_run(&lab, 50 * NS_PER_US);
	for (uint32_t i = generator_flows() / 2; i < generator_flows(); i++)
		if (generator_count(i)->received == 0)
			LAB_OK(false, "%s: flow %u gets through again", name, i);
	close_lab(KNOWN_CELLS);
}

/* A switch restarts under load, twice: as ingress and as egress it must be known as a new one. */
static void restarts(uint64_t seed, enum topo_role role)
{
	uint32_t node;

	open_lab(role == TOPO_ROLE_RDSW ? "RDSW restarts" : "FDSW restarts", seed);
	node = lab.topo->ports[draw_port()].node;
	if (role == TOPO_ROLE_FDSW)
		node = lab_node(&lab, role, (uint32_t)(seed & 1));
	add_flows(100000000000ull, 1414, false);
	for (int i = 0; i < 2; i++) {
		lab_run(&lab, 100 * NS_PER_US);
		if (sim_node_restart(lab.sim, node) < 0)
			LAB_OK(false, "%s: no memory", name);
		LAB_OK(!sim_ready(lab.sim), "%s: it begins with nothing", name);
		LAB_OK(lab_wait_ready(&lab, 200 * NS_PER_US), "%s: it comes back", name);
		check_all_flow(60 * NS_PER_US, "afterwards");
	}
	sim_node_stop(lab.sim, node);
	lab_run(&lab, 500 * NS_PER_US);
	LAB_OK(!sim_ready(lab.sim) && sim_node(lab.sim, node) == NULL, "%s: it is dead", name);
	if (role == TOPO_ROLE_FDSW)
		check_all_flow(60 * NS_PER_US, "without it");
	LAB_OK(sim_node_start(lab.sim, node) == 0 && lab_wait_ready(&lab, 200 * NS_PER_US),
		"%s: and comes back", name);
	/* Longer dead than the watchdog waits is all_down's matter; here nothing may be stuck. */
	check_all_flow(100 * NS_PER_US, "in the end");
	close_lab(KNOWN_ORDER);
}

static void test(uint64_t seed)
{
	skew(seed);
	gray(seed, false);
	gray(seed, true);
	silence(seed, false);
	silence(seed, true);
	flaps(seed);
	all_down(seed);
	restarts(seed, TOPO_ROLE_RDSW);
	restarts(seed, TOPO_ROLE_FDSW);
}

int main(int argc, char **argv)
{
	return lab_main(argc, argv, test, 2);
}
