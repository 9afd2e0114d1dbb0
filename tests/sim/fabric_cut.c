/*
 * What a failure costs, to the cell: an incast on an L2 zone loses links, drawn from the seed. Lost
 * are the cells on the dying link and those already committed to a switch that lost its only way;
 * nothing is committed to a link once its sender has heard that it leads nowhere; every packet that
 * lost a cell is counted once, where its cells are missed. And how soon all switches have followed:
 * at once where carrier tells, after silence where nothing does, within 500 us by published timers.
 */
#include <string.h>
#include "base/bitset.h"
#include "tests/sim/lab.h"

#define CONVERGE_NS  (500 * NS_PER_US)
#define ENDPOINT_BPS 360000000000ull /* of 400G: nothing waits but for the failure */

static struct lab lab;
static char name[128];
static uint32_t destination; /* the node that everything is sent to */

/* By port of the topology: data cells sent when its switch last heard that it doesn't lead to the
 * destination; cells received by the switch when it lost its last way, UINT64_MAX: it has one. */
static struct {
	bool leads, known;
	uint64_t cells_tx;
} ports[1024];
static uint64_t lost_way_at[256];
static dsf_instant changed_at;

static struct {
	uint64_t tx[TOPO_PORTS_PER_SWITCH], rx;
	uint64_t output[DSF_BITSET_WORDS(TOPO_PORTS_MAX)];
} seen; /* of one switch */

static void see(void *user, const struct node_row *row)
{
	(void)user;
	if (row->query == NODE_QUERY_REACHABILITY) {
		memcpy(seen.output, row->reachability.output,
			DSF_BITSET_WORDS(lab.topo->nodes[row->node].ports_count) *
				sizeof(uint64_t));
	} else if (row->port.port < TOPO_PORTS_PER_SWITCH) {
		seen.tx[row->port.port] = row->port.cells_tx;
		seen.rx += row->port.cells_rx;
	}
}

static void look(uint32_t node)
{
	memset(&seen, 0, sizeof(seen));
	sim_view(lab.sim, node, NODE_QUERY_REACHABILITY, destination, see, NULL);
	sim_view(lab.sim, node, NODE_QUERY_PORT, TOPO_NONE, see, NULL);
}

/* Links of a switch to the destination as it knows them now. */
static void note_links(uint32_t node)
{
	const struct topo_node *n = &lab.topo->nodes[node];
	uint32_t ways = 0;

	look(node);
	for (uint32_t i = 0; i < n->ports_count; i++) {
		uint32_t at = n->first_port + i;
		bool leads = dsf_bitset_has(seen.output, i);

		ways += leads;
		if (!leads && (ports[at].leads || !ports[at].known))
			ports[at].cells_tx = seen.tx[i];
		ports[at].leads = leads;
		ports[at].known = true;
	}
	if (ways > 0)
		lost_way_at[node] = UINT64_MAX;
	else if (lost_way_at[node] == UINT64_MAX)
		lost_way_at[node] = seen.rx;
}

static void hear(void *user, const struct dsf_event *event)
{
	(void)user;
	lab.events[event->kind]++;
	if (event->kind != DSF_EVENT_REACH_CHANGED)
		return;
	changed_at = event->at;
	if (event->a == lab.topo->nodes[destination].switch_index && event->node != destination)
		note_links(event->node);
}

static void open_lab(const char *what, uint64_t seed)
{
	lab_open(&lab, "l2-zone.json", seed);
	lab.trace.emit = hear;
	snprintf(name, sizeof(name), "%s, seed %" PRIu64, what, seed);
	destination = lab_node(&lab, TOPO_ROLE_RDSW,
		(uint32_t)dsf_rng_below(&lab.rng, lab_count(&lab, TOPO_ROLE_RDSW)));
	memset(ports, 0, sizeof(ports));
	memset(lost_way_at, 0, sizeof(lost_way_at));
	for (uint32_t i = 0; i < lab.topo->nodes_count; i++) {
		lost_way_at[i] = UINT64_MAX;
		if (lab.topo->nodes[i].switch_index != TOPO_NONE && i != destination)
			note_links(i);
	}
}

static uint32_t switch_of(uint32_t rank)
{
	struct topo_endpoint e = topo_endpoint(lab.topo, rank);
	const struct topo_node *host = &lab.topo->nodes[e.host];

	for (uint32_t i = 0; i < host->ports_count; i++) {
		const struct topo_port *p = topo_node_port(lab.topo, host, i);

		if (p->rail == e.rail)
			return lab.topo->ports[p->peer].node;
	}
	return TOPO_NONE;
}

/* All endpoints behind other switches send to the first one behind the destination. */
static void add_flows(void)
{
	uint32_t count = lab.topo->endpoints_count, target = 0;

	while (switch_of(target) != destination)
		target++;
	for (uint32_t i = 0; i < count; i++) {
		struct generator_flow flow = { .source = i,
			.target = target,
			.size = 4174,
			.dscp = 50,
			.rate_bps = ENDPOINT_BPS / count,
			.start = sim_now(lab.sim),
			.stop = DSF_NEVER };

		if (switch_of(i) != destination)
			generator_add(&flow);
	}
	generator_kick(lab.sim);
}

/* A switch of that role in the destination's zone, or anywhere for SDSWs. */
static uint32_t draw_switch(enum topo_role role)
{
	uint32_t node;

	do {
		node = lab_node(
			&lab, role, (uint32_t)dsf_rng_below(&lab.rng, lab_count(&lab, role)));
	} while (role == TOPO_ROLE_FDSW &&
		 lab.topo->nodes[node].cluster != lab.topo->nodes[destination].cluster);
	return node;
}

/* The link between two switches. */
static uint32_t link_between(uint32_t a, uint32_t b)
{
	const struct topo_node *n = &lab.topo->nodes[a];

	for (uint32_t i = 0; i < n->ports_count; i++) {
		const struct topo_port *p = topo_node_port(lab.topo, n, i);

		if (lab.topo->ports[p->peer].node == b)
			return p->link;
	}
	return TOPO_NONE;
}

/* Nothing was committed to a link that its sender knew to lead nowhere. */
static void check_sent(void)
{
	uint64_t late = 0;

	for (uint32_t i = 0; i < lab.topo->nodes_count; i++) {
		const struct topo_node *n = &lab.topo->nodes[i];

		if (n->switch_index == TOPO_NONE || i == destination)
			continue;
		look(i);
		for (uint32_t j = 0; j < n->ports_count; j++)
			if (ports[n->first_port + j].known && !ports[n->first_port + j].leads)
				late += seen.tx[j] - ports[n->first_port + j].cells_tx;
	}
	LAB_OK(late == 0, "%s: %" PRIu64 " cells sent where their sender knew no way", name, late);
}

/* A fabric node drops exactly the data cells that came after it had lost its last way. */
static void check_dropped(uint64_t *dropped)
{
	uint64_t wrong = 0, uncounted = 0;

	*dropped = 0;
	for (uint32_t i = 0; i < lab.topo->nodes_count; i++) {
		uint64_t here, late;
		struct lab_totals t;

		if (!topo_is_fabric_node(lab.topo->nodes[i].role))
			continue;
		look(i);
		here = seen.rx;
		for (uint32_t j = 0; j < lab.topo->nodes[i].ports_count; j++)
			here -= seen.tx[j];
		late = lost_way_at[i] == UINT64_MAX ? 0 : seen.rx - lost_way_at[i];
		lab_total_node(&lab, i, &t);
		*dropped += here;
		wrong += here != late;
		uncounted += here > t.unreachable; /* control cells count there too */
	}
	LAB_OK(wrong == 0 && uncounted == 0,
		"%s: %" PRIu64 " switches dropped other cells than came too late, %" PRIu64
		" without counting",
		name, wrong, uncounted);
}

/* Data cells that didn't come over a link, both ways. */
static uint64_t missed_on(uint32_t link)
{
	const struct topo_link *l = &lab.topo->links[link];
	struct node_row_port a = lab_port(&lab, l->port_a), b = lab_port(&lab, l->port_b);

	return a.cells_tx - b.cells_rx + b.cells_tx - a.cells_rx;
}

/* All is at rest: what was lost, where, and how often it was counted. */
static void check_loss(const uint32_t *failed, uint32_t count)
{
	uint64_t dropped, on_failed = 0, elsewhere = 0, sent = 0, received = 0;
	struct lab_totals t;

	generator_stop(sim_now(lab.sim));
	LAB_OK(lab_wait_rest(&lab, 20 * NS_PER_MS), "%s: comes to rest", name);
	lab_run(&lab, 100 * NS_PER_US);
	check_sent();
	check_dropped(&dropped);
	for (uint32_t i = 0; i < lab.topo->links_count; i++)
		if (!lab.topo->ports[lab.topo->links[i].port_a].ethernet)
			elsewhere += missed_on(i);
	for (uint32_t i = 0; i < count; i++)
		on_failed += missed_on(failed[i]);
	elsewhere -= on_failed;
	LAB_OK(elsewhere == 0, "%s: %" PRIu64 " cells lost on links that lived", name, elsewhere);
	lab_total(&lab, &t);
	for (uint32_t i = 0; i < generator_flows(); i++) {
		sent += generator_count(i)->sent;
		received += generator_count(i)->received;
	}
	LAB_OK(sent - received == t.reassembly_errors && t.voq_drops + t.egress_drops == 0 &&
			t.reassembly_errors <= on_failed + dropped,
		"%s: %" PRIu64 " cells lost on the link, %" PRIu64 " without a way: %" PRIu64
		" packets, %" PRIu64 " counted",
		name, on_failed, dropped, sent - received, t.reassembly_errors);
	lab_check_order(&lab, name);
	lab_check_cells(&lab, name);
}

static void fail(uint32_t link, uint32_t *failed, uint32_t *count)
{
	dsf_instant at = sim_now(lab.sim);

	sim_link_set(lab.sim, link, false);
	failed[(*count)++] = link;
	lab_run(&lab, 100 * NS_PER_US);
	LAB_OK(changed_at.ns >= at.ns && changed_at.ns - at.ns <= CONVERGE_NS,
		"%s: all have followed after %" PRIu64 " ns", name, changed_at.ns - at.ns);
}

/* A link down a way to the destination: its last hop, the one above, or a switch's last of four. */
static void cut_way(const char *what, uint64_t seed, bool spine, bool last_way)
{
	uint32_t failed[8], count = 0, below, link;

	open_lab(what, seed);
	below = draw_switch(TOPO_ROLE_FDSW);
	link = spine ? link_between(draw_switch(TOPO_ROLE_SDSW), below)
		     : link_between(below, destination);
	add_flows();
	lab_run(&lab, 50 * NS_PER_US + dsf_rng_below(&lab.rng, 10 * NS_PER_US));
	if (last_way) {
		const struct topo_port *p = &lab.topo->ports[lab.topo->links[link].port_a];
		uint32_t above = lab.topo->nodes[p->node].role == TOPO_ROLE_SDSW
					 ? p->node
					 : lab.topo->ports[p->peer].node;

		for (uint32_t i = 0; i < lab_count(&lab, TOPO_ROLE_FDSW); i++) {
			uint32_t other = lab_node(&lab, TOPO_ROLE_FDSW, i);

			if (other != below && lab.topo->nodes[other].cluster ==
						      lab.topo->nodes[destination].cluster)
				fail(link_between(above, other), failed, &count);
		}
	}
	fail(link, failed, &count);
	check_loss(failed, count);
	lab_close(&lab);
}

/* Nothing tells but silence. */
static void fall_silent(uint64_t seed)
{
	struct node_impairment silent = { .silent = true };
	uint32_t below, port;
	dsf_instant at;

	open_lab("a link dies in one direction", seed);
	below = draw_switch(TOPO_ROLE_FDSW);
	port = lab.topo->links[link_between(below, destination)].port_a;
	if (seed % 2 == 0)
		port = lab.topo->ports[port].peer;
	lab_run(&lab, dsf_rng_below(&lab.rng, 100 * NS_PER_US));
	at = sim_now(lab.sim);
	lab_impair(&lab, port, &silent);
	lab_run(&lab, 2 * CONVERGE_NS);
	LAB_OK(changed_at.ns > at.ns && changed_at.ns - at.ns <= CONVERGE_NS,
		"%s: all have followed after %" PRIu64 " ns", name, changed_at.ns - at.ns);
	lab_close(&lab);
}

static void test(uint64_t seed)
{
	cut_way("the destination's link", seed, false, false);
	cut_way("a spine link", seed, true, false);
	cut_way("a spine switch's last link", seed, true, true);
	fall_silent(seed);
}

int main(int argc, char **argv)
{
	return lab_main(argc, argv, test, 10);
}
