/*
 * What a failure keeps back comes at once when it is healed: it must fit into the queue of the port
 * it goes to. Sources and targets lose their links but one and get them back, links flap, fabric
 * switches stand still, while everyone sends all he can, to one or each to another.
 */
#include <string.h>
#include "sim/sim.h"
#include "tests/sim/lab.h"

#define WHOLE    4174u
#define ONE_CELL 460u

static struct lab lab;
static char name[160];
static uint32_t targets; /* ports that are sent to */

static void open_lab(const char *file, const char *what, bool incast, uint32_t size, uint64_t seed)
{
	uint32_t count, target;

	lab_open(&lab, file, seed);
	snprintf(name, sizeof(name), "%s, %s, %s of %u B, seed %" PRIu64, file, what,
		incast ? "incast" : "permutation", size, seed);
	count = lab.topo->endpoints_count;
	target = (uint32_t)dsf_rng_below(&lab.rng, count);
	targets = lab.topo->planes * (incast ? 1 : count);
	for (uint32_t plane = 0; plane < lab.topo->planes; plane++)
		for (uint32_t i = 0; i < count; i++) {
			struct generator_flow flow = { .source = i,
				.target = incast ? target : (i + count / 2 + 1) % count,
				.plane = plane,
				.size = size,
				.dscp = 50,
				.ecn = 2,
				.start = sim_now(lab.sim),
				.stop = DSF_NEVER };

			if (flow.source != flow.target)
				generator_add(&flow);
		}
	generator_kick(lab.sim);
	lab_run(&lab, 60 * NS_PER_US);
}

/* All fabric links of a node, but one, or all of them up again. */
static void cripple(uint32_t node, bool up)
{
	uint32_t spared = (uint32_t)(lab.seed % lab_fabric_ports(&lab, node));

	for (uint32_t i = 0; i < lab_fabric_ports(&lab, node); i++)
		if (i != spared)
			sim_link_set(
				lab.sim, lab.topo->ports[lab_fabric_port(&lab, node, i)].link, up);
}

static void close_lab(void)
{
	struct lab_totals t;
	uint64_t before = 0, after = 0;

	lab_run(&lab, 150 * NS_PER_US);
	lab_total(&lab, &t);
	LAB_OK(t.egress_drops == 0, "%s: %" PRIu64 " packets overran their port", name,
		t.egress_drops);
	LAB_OK(t.fabric_drops == 0, "%s: no cell was dropped by a queue", name);
	for (uint32_t i = 0; i < generator_flows(); i++)
		before += generator_count(i)->bytes;
	lab_run(&lab, 50 * NS_PER_US);
	for (uint32_t i = 0; i < generator_flows(); i++)
		after += generator_count(i)->bytes;
	/* What was lost has been forgotten: the ports are full again. */
	LAB_OK((after - before) * 8 > 50000ull * 400 * targets * 3 / 4,
		"%s: and then has %.1f of 400 Gbit/s a port", name,
		(double)(after - before) * 8 / 50000 / targets);
	lab_close(&lab);
}

static void crippled(const char *file, bool incast, uint64_t seed)
{
	uint32_t node;

	open_lab(file, "links of a leaf down and up", incast, WHOLE, seed);
	for (int round = 0; round < 3; round++) {
		node = lab_node(&lab, TOPO_ROLE_RDSW,
			(uint32_t)dsf_rng_below(&lab.rng, lab_count(&lab, TOPO_ROLE_RDSW)));
		cripple(node, false);
		lab_run(&lab, 100 * NS_PER_US);
		cripple(node, true);
		lab_run(&lab, 60 * NS_PER_US);
	}
	close_lab();
}

static void flapping(const char *file, bool incast, uint64_t seed)
{
	open_lab(file, "links flap", incast, WHOLE, seed);
	for (int i = 0; i < 40; i++) {
		uint32_t node = lab_node(&lab, TOPO_ROLE_RDSW,
			(uint32_t)dsf_rng_below(&lab.rng, lab_count(&lab, TOPO_ROLE_RDSW)));
		uint32_t port = lab_fabric_port(&lab, node,
			(uint32_t)dsf_rng_below(&lab.rng, lab_fabric_ports(&lab, node)));

		sim_link_set(lab.sim, lab.topo->ports[port].link, false);
		lab_run(&lab, dsf_rng_below(&lab.rng, 20 * NS_PER_US));
		sim_link_set(lab.sim, lab.topo->ports[port].link, true);
	}
	close_lab();
}

static void frozen(const char *file, bool incast, uint32_t size, uint64_t seed)
{
	open_lab(file, "FDSW stands still", incast, size, seed);
	for (int i = 0; i < 2; i++) {
		uint32_t node = lab_node(&lab, TOPO_ROLE_FDSW,
			(uint32_t)dsf_rng_below(&lab.rng, lab_count(&lab, TOPO_ROLE_FDSW)));

		sim_node_freeze(lab.sim, node, true);
		lab_run(&lab, 50 * NS_PER_US + dsf_rng_below(&lab.rng, 200 * NS_PER_US));
		sim_node_freeze(lab.sim, node, false);
		lab_run(&lab, 100 * NS_PER_US);
	}
	close_lab();
}

static void test(uint64_t seed)
{
	static const char *const files[] = { "mini.json", "l2-zone.json", "figures.json" };

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		for (int incast = 0; incast < 2; incast++) {
			crippled(files[i], incast, seed);
			flapping(files[i], incast, seed);
			frozen(files[i], incast, WHOLE, seed);
		}
	frozen("mini.json", false, ONE_CELL, seed); /* nobody knows the size of what is lost */
}

int main(int argc, char **argv)
{
	return lab_main(argc, argv, test, 1);
}
