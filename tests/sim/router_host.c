/*
 * RDMA over a routed Clos in virtual time: everything arrives, once, right, also when links and a
 * switch fail under it.
 */
#include "tests/sim/hosts.h"

static void run(const char *name, uint64_t seed, bool breaks)
{
	struct workload_flow flows[RANKS_MAX];
	struct topo *t = source_topo("topologies/clos.json");
	struct workload_spec spec = {
		.kind = WORKLOAD_PERMUTATION, .size_bytes = 1 << 20, .iterations = 8, .seed = seed
	};
	struct collector c = { .topo = t };
	struct sim *s;
	bool done;

	if (!TAP_OK(t != NULL, "clos.json loads"))
		return;
	s = started(t, seed);
	if (!TAP_OK(s != NULL && sim_ready(s), "is ready") || !begin(s, t, &spec, flows))
		return;
	if (breaks) {
		sim_run_until(s, dsf_time_after(spec.start_at, 30 * NS_PER_US));
		sim_link_set(s, t->ports[topo_find_port(t, "b0-z0-p0-rdsw0:fab0")].link, false);
		sim_link_set(s, t->ports[topo_find_port(t, "b0-z1-p0-fdsw2:fab5")].link, false);
		sim_node_stop(s, topo_find_node(t, "b0-p0-sdsw3"));
	}
	done = finish(s, t, &spec, &c, 1000);
	printf("# %s: %" PRIu64 " us, goodput %.3f of ideal, rtx %" PRIu64 ", marks %" PRIu64 "\n",
		name, c.report.duration_ns / 1000,
		(double)c.report.goodput_bps / (double)c.report.goodput_ideal_bps,
		c.report.retransmits, c.report.ecn_marks);
	TAP_OK(done, "%s: done", name);
	TAP_EQ(c.report.messages, (uint64_t)spec.iterations * spec.flows_count, "%s: every message",
		name);
	TAP_OK(c.report.verified, "%s: verified", name);
	/* Chance decides how many flows share a link: less than half would be another fault. */
	TAP_OK(breaks || c.report.goodput_bps * 2 > c.report.goodput_ideal_bps,
		"%s: at least half of ideal", name);
	TAP_OK(!breaks || c.report.retransmits > 0, "%s: what was lost was sent again", name);
	node_report_close(&c.report);
	sim_free(s);
	topo_free(t);
}

int main(void)
{
	run("healthy", 1, false);
	run("healthy", 2, false);
	run("two links and a switch fail", 3, true);
	run("two links and a switch fail", 4, true);
	return TAP_DONE();
}
