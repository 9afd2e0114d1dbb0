/*
 * What is under way to a switch that is drained arrives, from wherever it comes: at line rate over
 * the spine, however often and soon drains begin and end, at several switches at once, by minimum
 * links, and beside failures, which alone lose anything. And cells climb once and descend once,
 * whatever they go by.
 */
#include <stdlib.h>
#include <string.h>
#include "node/cells.h"
#include "tests/sim/lab.h"

#define RDMA      50u
#define WARM_NS   (50 * NS_PER_US)
#define FOLLOW_NS (60 * NS_PER_US) /* a fabric has followed, and what was lost is counted */
#define ROUNDS    12

static struct lab lab;
static char name[128];

/* Where cells go. */

static uint64_t cells_forwarded, cells_astray;

static const struct topo_node *peer_of(const struct node_cells *c, uint32_t port)
{
	const struct topo *t = c->topo;

	return &t->nodes[t->ports[topo_node_port(t, c->self, port)->peer].node];
}

/* May a cell that came from one neighbour go on to another? */
static bool is_right(const struct node_cells *c, uint32_t to, uint32_t destination)
{
	const struct topo_node *target = &c->topo->nodes[c->topo->switch_node[destination]];
	const struct topo_node *next = peer_of(c, to);

	if (c->self->role == TOPO_ROLE_SDSW)
		return next->cluster == target->cluster;
	if (c->self->role == TOPO_ROLE_FDSW && (peer_of(c, c->input_port)->role == TOPO_ROLE_SDSW ||
						       c->self->cluster == target->cluster))
		return next == target;
	return true;
}

uint32_t __real_fabric_spray_next(struct fabric_spray *s, uint32_t destination,
	const struct fabric_reach *reach, const struct fabric_ports *ports);
uint32_t __wrap_fabric_spray_next(struct fabric_spray *s, uint32_t destination,
	const struct fabric_reach *reach, const struct fabric_ports *ports);
uint32_t __wrap_fabric_spray_next(struct fabric_spray *s, uint32_t destination,
	const struct fabric_reach *reach, const struct fabric_ports *ports)
{
	uint32_t port = __real_fabric_spray_next(s, destination, reach, ports);
	struct node_cells *c = DSF_CONTAINER(s, struct node_cells, spray);

	cells_forwarded++;
	cells_astray += port != FABRIC_SPRAY_NONE && !is_right(c, port, destination);
	return port;
}

/* Labs. */

/* The L2 zone, with this in front of its other settings of the fabric. */
static void open_lab(const char *what, const char *settings, uint64_t seed)
{
	static const char at_text[] = "\"mode\": \"dsf\"";
	const char *text = lab_read("l2-zone.json"), *at = strstr(text, at_text);
	static char with[1 << 16];

	if (at == NULL)
		abort();
	snprintf(with, sizeof(with), "%.*s%s%s", (int)(at - text), text, settings, at);
	snprintf(name, sizeof(name), "%s, seed %" PRIu64, what, seed);
	cells_forwarded = cells_astray = 0;
	lab_open_text(&lab, with, seed);
}

static uint32_t switch_of(uint32_t rank)
{
	return lab.topo->ports[topo_endpoint_port(lab.topo, rank, 0)->peer].node;
}

static void add_flow(uint32_t source, uint32_t target)
{
	struct generator_flow flow = { .source = source,
		.target = target,
		.size = 4174,
		.dscp = RDMA,
		.start = sim_now(lab.sim),
		.stop = DSF_NEVER };

	generator_add(&flow);
}

/* Everybody elsewhere sends to all ports of one switch. */
static void load_one(uint32_t node)
{
	for (uint32_t source = 0; source < lab.topo->endpoints_count; source++)
		for (uint32_t target = 0; target < lab.topo->endpoints_count; target++)
			if (switch_of(target) == node && switch_of(source) != node)
				add_flow(source, target);
	generator_kick(lab.sim);
}

/* Everybody sends to one in another zone. */
static void load_all(void)
{
	uint32_t count = lab.topo->endpoints_count;

	for (uint32_t i = 0; i < count; i++)
		add_flow(i, (i + count / 4) % count);
	generator_kick(lab.sim);
}

static void set_drain(uint32_t node, bool drained)
{
	struct node_command command = { .kind = NODE_COMMAND_DRAIN_NODE, .drained = drained };

	LAB_OK(sim_command(lab.sim, node, &command) == 0, "%s: the command is taken", name);
}

static void set_port_drain(uint32_t port, bool drained)
{
	const struct topo_port *p = &lab.topo->ports[port];
	struct node_command command = {
		.kind = NODE_COMMAND_DRAIN_PORT, .port = p->number, .drained = drained
	};

	LAB_OK(sim_command(lab.sim, p->node, &command) == 0, "%s: the command is taken", name);
}

static uint32_t draw(uint32_t count)
{
	return (uint32_t)dsf_rng_below(&lab.rng, count);
}

static uint32_t draw_node(enum topo_role role)
{
	return lab_node(&lab, role, draw(lab_count(&lab, role)));
}

static enum topo_role draw_role(void)
{
	static const enum topo_role roles[] = { TOPO_ROLE_RDSW, TOPO_ROLE_FDSW, TOPO_ROLE_SDSW };

	return roles[draw(3)];
}

/* Mostly within the time in which switches tell each other, sometimes none at all. */
static void linger(void)
{
	uint64_t up_to_ns = draw(4) == 0 ? FOLLOW_NS : 3 * NS_PER_US;

	lab_run(&lab, dsf_rng_below(&lab.rng, up_to_ns));
}

static void check_ways(void)
{
	LAB_OK(cells_forwarded > 1000 && cells_astray == 0,
		"%s: of %" PRIu64 " cells %" PRIu64 " took a way that isn't one", name,
		cells_forwarded, cells_astray);
}

static void close_lab(void)
{
	generator_stop(sim_now(lab.sim));
	LAB_OK(lab_wait_rest(&lab, 30 * NS_PER_MS), "%s: comes to rest", name);
	lab_check_rest(&lab, name);
	lab_check_order(&lab, name);
	check_ways();
	lab_close(&lab);
}

/* Tests. */

/* Fabric ports that are drained, know of a drain, or aren't active. */
static uint32_t ports_out_of_use(void)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < lab.topo->ports_count; i++) {
		struct node_row_port row;

		if (lab.topo->ports[i].ethernet)
			continue;
		row = lab_port(&lab, i);
		count += row.drained || row.peer_drained || !row.active;
	}
	return count;
}

/* One switch that all send to, drained for as long as it takes, or hardly at all. */
static void interface_switch(uint64_t seed)
{
	uint32_t node;

	open_lab("an RDSW under incast", "", seed);
	node = draw_node(TOPO_ROLE_RDSW);
	load_one(node);
	lab_run(&lab, WARM_NS);
	for (int i = 0; i < ROUNDS; i++) {
		set_drain(node, true);
		linger();
		set_drain(node, false);
		linger();
	}
	lab_run(&lab, FOLLOW_NS);
	lab_check_lossless(&lab, name);
	LAB_OK(ports_out_of_use() == 0 && sim_ready(lab.sim), "%s: all is as before", name);
	set_drain(node, true);
	lab_run(&lab, FOLLOW_NS);
	set_drain(node, false);
	lab_run(&lab, FOLLOW_NS);
	lab_check_lossless(&lab, name);
	close_lab();
}

/* The same, link by link, at either end, until none is left. */
static void link_by_link(uint64_t seed)
{
	uint32_t node, ports[64], count;

	open_lab("an RDSW's links", "", seed);
	node = draw_node(TOPO_ROLE_RDSW);
	load_one(node);
	lab_run(&lab, WARM_NS);
	count = lab_fabric_ports(&lab, node);
	for (int i = 0; i < 3; i++) {
		for (uint32_t k = 0; k < count; k++) {
			ports[k] = lab_fabric_port(&lab, node, k);
			if (draw(2) == 0)
				ports[k] = lab.topo->ports[ports[k]].peer;
			set_port_drain(ports[k], true);
			linger();
		}
		for (uint32_t k = count; k-- > 0;) {
			linger();
			set_port_drain(ports[k], false);
		}
	}
	lab_run(&lab, FOLLOW_NS);
	lab_check_lossless(&lab, name);
	close_lab();
}

/* Switches of all roles drained and undrained at random, ports of others too. */
static void several(uint64_t seed)
{
	uint32_t nodes[ROUNDS], ports[ROUNDS];

	open_lab("several drains", "", seed);
	load_all();
	lab_run(&lab, WARM_NS);
	for (int i = 0; i < ROUNDS; i++) {
		nodes[i] = draw_node(draw_role());
		ports[i] = lab_fabric_port(&lab, draw_node(draw_role()), draw(4));
		set_drain(nodes[i], true);
		set_port_drain(ports[i], draw(2) == 0);
		linger();
		if (draw(3) == 0)
			set_drain(nodes[draw((uint32_t)i + 1)], false);
	}
	for (int i = 0; i < ROUNDS; i++) {
		set_drain(nodes[i], false);
		set_port_drain(ports[i], false);
		linger();
	}
	lab_run(&lab, FOLLOW_NS);
	lab_check_lossless(&lab, name);
	LAB_OK(ports_out_of_use() == 0 && sim_ready(lab.sim), "%s: all is as before", name);
	close_lab();
}

/* All switches of a tier at once, so that nobody is left. */
static void whole_tier(uint64_t seed, enum topo_role role)
{
	open_lab(role == TOPO_ROLE_SDSW ? "all SDSWs" : "all FDSWs", "", seed);
	load_all();
	lab_run(&lab, WARM_NS);
	for (int drained = 1; drained >= 0; drained--) {
		for (uint32_t i = 0; i < lab_count(&lab, role); i++) {
			set_drain(lab_node(&lab, role, i), drained);
			if (draw(2) == 0)
				linger();
		}
		lab_run(&lab, FOLLOW_NS);
	}
	lab_check_lossless(&lab, name);
	close_lab();
}

/* A drained link makes a switch drain itself, since it has too few. */
static void minimum(uint64_t seed)
{
	uint32_t node, port;

	open_lab("minimum links", "\"min_links_to_join\": 4, \"min_links_to_remain\": 4, ", seed);
	node = draw_node(TOPO_ROLE_RDSW);
	load_one(node);
	lab_run(&lab, WARM_NS);
	for (int i = 0; i < ROUNDS; i++) {
		port = lab_fabric_port(&lab, node, draw(lab_fabric_ports(&lab, node)));
		if (draw(2) == 0)
			port = lab.topo->ports[port].peer;
		set_port_drain(port, true);
		linger();
		set_port_drain(port, false);
		linger();
	}
	lab_run(&lab, FOLLOW_NS);
	lab_check_lossless(&lab, name);
	close_lab();
}

static uint64_t losses(void)
{
	struct lab_totals t;

	lab_total(&lab, &t);
	return t.fabric_drops + t.cells_lost + t.unreachable + t.link_down + t.reassembly_errors +
	       t.egress_drops;
}

/* Drains in a fabric that has failures lose nothing, and a failure beside them loses once: when the
 * fabric has followed, nothing more. */
static void failures(uint64_t seed)
{
	uint32_t nodes[ROUNDS], port;
	uint64_t lost;

	open_lab("drains and failures", "", seed);
	load_all();
	lab_run(&lab, WARM_NS);
	for (int round = 0; round < 3; round++) {
		nodes[0] = draw_node(draw_role());
		set_drain(nodes[0], true);
		linger();
		port = lab_fabric_port(&lab, draw_node(draw_role()), draw(4));
		sim_link_set(lab.sim, lab.topo->ports[port].link, false);
		lab_run(&lab, FOLLOW_NS);
		lost = losses();
		for (int i = 1; i < ROUNDS / 2; i++) {
			nodes[i] = draw_node(draw_role());
			set_drain(nodes[i], true);
			linger();
		}
		for (int i = 0; i < ROUNDS / 2; i++) {
			set_drain(nodes[i], false);
			linger();
		}
		lab_run(&lab, FOLLOW_NS);
		LAB_OK(losses() == lost, "%s: round %d, drains lose nothing: %" PRIu64, name, round,
			losses() - lost);
	}
	close_lab();
}

static void test(uint64_t seed)
{
	interface_switch(seed);
	link_by_link(seed);
	several(seed);
	whole_tier(seed, TOPO_ROLE_SDSW);
	whole_tier(seed, TOPO_ROLE_FDSW);
	minimum(seed);
	failures(seed);
}

int main(int argc, char **argv)
{
	return lab_main(argc, argv, test, 8);
}
