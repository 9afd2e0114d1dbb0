/*
 * The built-in workloads on a whole lab in virtual time: everything arrives, once, right, at near
 * the rate that the ports have.
 */
#include "tests/sim/hosts.h"

static void run(const char *file, enum workload_kind kind, uint64_t size, uint32_t iterations,
	uint64_t seed, uint64_t least_permille)
{
	struct workload_flow flows[RANKS_MAX];
	struct topo *t = source_topo(file);
	struct workload_spec spec = {
		.kind = kind, .size_bytes = size, .iterations = iterations, .seed = seed
	};
	struct collector c = { .topo = t };
	struct sim *s;
	bool done;

	if (!TAP_OK(t != NULL, "%s loads", file))
		return;
	s = started(t, seed);
	if (!TAP_OK(s != NULL && sim_ready(s), "%s is ready", file) || !begin(s, t, &spec, flows))
		return;
	done = finish(s, t, &spec, &c, 200);
	printf("# %s %s %u x %" PRIu64 ": %" PRIu64
	       " us, goodput %.1f of %.1f Gbit/s = %.3f, lost %" PRIu64 ", dup %" PRIu64
	       ", rtx %" PRIu64 ", marks %" PRIu64 ", p50 %" PRIu64 " p99 %" PRIu64 " max %" PRIu64
	       ", jain %" PRIu64 ", events %" PRIu64 "\n",
		file, workload_kind_name(kind), iterations, size, c.report.duration_ns / 1000,
		(double)c.report.goodput_bps / 1e9, (double)c.report.goodput_ideal_bps / 1e9,
		(double)c.report.goodput_bps / (double)c.report.goodput_ideal_bps, c.report.lost,
		c.report.duplicated, c.report.retransmits, c.report.ecn_marks,
		dsf_histogram_quantile(&c.report.fct, 500),
		dsf_histogram_quantile(&c.report.fct, 990), c.report.fct.max, c.report.jain_ppm,
		sim_stats(s).events);
	TAP_OK(done, "%s %s: done", file, workload_kind_name(kind));
	TAP_EQ(c.report.messages, (uint64_t)iterations * spec.flows_count, "%s %s: every message",
		file, workload_kind_name(kind));
	TAP_OK(c.report.verified, "%s %s: verified", file, workload_kind_name(kind));
	TAP_OK(c.report.goodput_bps * 1000 >= c.report.goodput_ideal_bps * least_permille,
		"%s %s: at least 0.%03u of ideal", file, workload_kind_name(kind),
		(unsigned)least_permille);
	node_report_close(&c.report);
	sim_free(s);
	topo_free(t);
}

int main(void)
{
	run("topologies/mini.json", WORKLOAD_WRITE, 1 << 20, 40, 1, 950);
	run("topologies/mini.json", WORKLOAD_PERMUTATION, 1 << 20, 40, 2, 930);
	run("topologies/mini.json", WORKLOAD_INCAST, 1 << 18, 10, 3, 930);
	run("topologies/mini.json", WORKLOAD_WRITE, 4096, 50, 4, 150);
	run("topologies/mini.json", WORKLOAD_WRITE, 65536, 50, 4, 700);
	run("topologies/l1-zone.json", WORKLOAD_PERMUTATION, 1 << 20, 5, 5, 750);
	run("topologies/l1-zone.json", WORKLOAD_INCAST, 1 << 18, 5, 6, 930);
	return TAP_DONE();
}
