/*
 * State is there for what is in use: every pair talks, then nobody does, again and again. VOQs go
 * when nobody uses them, what comes after that passes as if it were the first, and pauses of any
 * length cost no packet, no order and no time-out.
 */
#include "tests/sim/lab.h"
#include "fabric/voq.h"

static struct lab lab;

static void count_row(void *user, const struct node_row *row)
{
	(void)row;
	++*(uint32_t *)user;
}

static uint32_t voqs(void)
{
	uint32_t count = 0;

	sim_view(lab.sim, TOPO_NONE, NODE_QUERY_VOQ, TOPO_NONE, count_row, &count);
	return count;
}

/* Everybody sends to everybody on plane 0 for a while. */
static void talk(uint64_t ns)
{
	dsf_instant now = sim_now(lab.sim);

	for (uint32_t a = 0; a < lab.topo->endpoints_count; a++) {
		for (uint32_t b = 0; b < lab.topo->endpoints_count; b++) {
			struct generator_flow flow = { .source = a,
				.target = b,
				.size = 1414,
				.dscp = 50,
				.ecn = 2,
				.rate_bps = 10000000000ull,
				.start = now,
				.stop = dsf_time_after(now, ns) };

			if (a != b)
				generator_add(&flow);
		}
	}
	generator_kick(lab.sim);
	lab_run(&lab, ns);
}

static uint64_t worst_delay(uint32_t first)
{
	uint64_t worst = 0;

	for (uint32_t i = first; i < generator_flows(); i++)
		if (generator_count(i)->delay_max_ns > worst)
			worst = generator_count(i)->delay_max_ns;
	return worst;
}

static void test(uint64_t seed)
{
	static const uint64_t pauses_ms[] = { 1, 49, 51, 99, 101, 140, 260 };
	uint64_t first_worst = 0;

	lab_open(&lab, "mini.json", seed);
	for (uint32_t i = 0; i < sizeof(pauses_ms) / sizeof(pauses_ms[0]); i++) {
		uint32_t first = generator_flows();

		talk(20 * NS_PER_US);
		LAB_OK(voqs() > 0, "idle: round %u: VOQs are in use", i);
		LAB_OK(lab_wait_rest(&lab, NS_PER_MS), "idle: round %u: all has come", i);
		if (i == 0)
			first_worst = worst_delay(first);
		/* A time-out of reassembly is longer than that. */
		LAB_OK(worst_delay(first) < first_worst + 10 * NS_PER_US,
			"idle: round %u: as fast as the first (%" PRIu64 " and %" PRIu64 " ns)", i,
			worst_delay(first), first_worst);
		lab_run(&lab, pauses_ms[i] * NS_PER_MS + dsf_rng_below(&lab.rng, NS_PER_MS));
		LAB_OK(pauses_ms[i] < 2 * FABRIC_VOQ_IDLE_NS / NS_PER_MS || voqs() == 0,
			"idle: round %u: none is left after %" PRIu64 " ms", i, pauses_ms[i]);
	}
	lab_check_order(&lab, "idle");
	lab_check_lossless(&lab, "idle");
	lab_check_rest(&lab, "idle");
	lab_close(&lab);
}

int main(int argc, char **argv)
{
	return lab_main(argc, argv, test, 2);
}
