/*
 * The same seed gives the same run to the last event; another seed another one. The hashes are
 * printed, so that builds by different compilers, with and without sanitizers, can be compared.
 */
#include "tests/sim/lab.h"

struct run {
	uint64_t hash, events, received;
};

static struct run run_once(const char *file, uint64_t seed)
{
	struct node_impairment impairment = {
		.loss_ppm = 2000, .jitter_ns = 700, .reorder_ppm = 3000, .corrupt_ppm = 500
	};
	struct lab lab;
	struct run run;
	uint32_t node;

	lab_open(&lab, file, seed);
	for (uint32_t i = 0; i < lab.topo->endpoints_count; i++) {
		struct generator_flow flow = { .source = i,
			.plane = i % lab.topo->planes,
			.size = 200 + (uint32_t)dsf_rng_below(&lab.rng, 8800),
			.dscp = (uint8_t)(i % 3 == 0   ? 48
					  : i % 3 == 1 ? 55
						       : 0),
			.start = sim_now(lab.sim),
			.stop = DSF_NEVER };

		do {
			flow.target = (uint32_t)dsf_rng_below(&lab.rng, lab.topo->endpoints_count);
		} while (flow.target == i);
		generator_add(&flow);
	}
	generator_kick(lab.sim);
	node = lab_node(&lab, TOPO_ROLE_FDSW, 0);
	lab_impair(&lab, lab_fabric_port(&lab, node, 0), &impairment);
	lab_run(&lab, 50 * NS_PER_US);
	sim_link_set(lab.sim, lab.topo->ports[lab_fabric_port(&lab, node, 1)].link, false);
	lab_run(&lab, 30 * NS_PER_US);
	sim_node_restart(lab.sim, lab_node(&lab, TOPO_ROLE_RDSW, 1));
	sim_link_set(lab.sim, lab.topo->ports[lab_fabric_port(&lab, node, 1)].link, true);
	lab_run(&lab, 100 * NS_PER_US);
	run.hash = sim_hash(lab.sim);
	run.events = sim_stats(lab.sim).events;
	run.received = 0;
	for (uint32_t i = 0; i < generator_flows(); i++)
		run.received += generator_count(i)->received;
	lab_close(&lab);
	return run;
}

static void test(uint64_t seed)
{
	static const char *const files[] = { "mini.json", "l1-zone.json" };

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		struct run a = run_once(files[i], seed), b = run_once(files[i], seed);
		struct run other = run_once(files[i], seed + 1000);

		printf("# hash %s seed %" PRIu64 ": %016" PRIx64 "\n", files[i], seed, a.hash);
		LAB_OK(a.received > 1000 && a.hash == b.hash && a.events == b.events &&
				a.received == b.received,
			"%s, seed %" PRIu64 ": twice the same %" PRIu64 " events", files[i], seed,
			a.events);
		LAB_OK(other.hash != a.hash, "%s: another seed is another run", files[i]);
	}
}

int main(int argc, char **argv)
{
	return lab_main(argc, argv, test, 3);
}
