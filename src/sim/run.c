#include "sim/run.h"
#include <errno.h>
#include <stdlib.h>
#include "base/bitset.h"
#include "workload/spec.h"

#define ROUTES_NS (100 * NS_PER_MS) /* ten decisions of BGP, which are 10 ms apart */
#define SLICE_NS  (10 * NS_PER_US)  /* how often is looked whether all is done */

static bool not_ready(void *user, struct sim *s)
{
	(void)user;
	return !sim_ready(s);
}

bool sim_converge(struct sim *s, uint64_t limit_ns)
{
	return sim_run_while(s, not_ready, NULL, dsf_time_after(sim_now(s), limit_ns));
}

void sim_settle(struct sim *s, const struct topo *t)
{
	uint64_t ns =
		t->fabric.mode == TOPO_FABRIC_DSF ? 4 * t->fabric.reach_refresh_ns : ROUTES_NS;

	sim_run_until(s, dsf_time_after(sim_now(s), ns));
}

static void add_drops(void *user, const struct node_row *row)
{
	*(uint64_t *)user += node_report_drops(&row->counters);
}

static void add_row(void *user, const struct node_row *row)
{
	/* Every flow of a host that takes part is the spec's. */
	(void)node_report_add(user, &row->flow);
}

static uint64_t count_drops(const struct sim *s)
{
	uint64_t drops = 0;

	sim_view(s, TOPO_NONE, NODE_QUERY_COUNTERS, TOPO_NONE, add_drops, &drops);
	return drops;
}

/* The hosts that a workload names, a bitset over nodes; NULL: no memory. The caller frees. */
static uint64_t *find_hosts(const struct topo *t, const struct workload_spec *spec)
{
	uint64_t *hosts = calloc(DSF_BITSET_WORDS(t->nodes_count), sizeof(*hosts));

	for (uint32_t i = 0; hosts != NULL && i < spec->flows_count; i++) {
		dsf_bitset_add(hosts, topo_endpoint(t, spec->flows[i].source).host);
		dsf_bitset_add(hosts, topo_endpoint(t, spec->flows[i].target).host);
	}
	return hosts;
}

static void view_hosts(const struct sim *s, const struct topo *t, const uint64_t *hosts,
	node_row_fn row_fn, void *user)
{
	for (uint32_t i = dsf_bitset_next(hosts, 0, t->nodes_count); i < t->nodes_count;
		i = dsf_bitset_next(hosts, i + 1, t->nodes_count))
		sim_view(s, i, NODE_QUERY_WORKLOAD, TOPO_NONE, row_fn, user);
}

struct tally {
	uint64_t rows, done;
	bool failed; /* some sender has given up */
};

static void count(void *user, const struct node_row *row)
{
	struct tally *tally = user;

	tally->rows++;
	tally->done += row->flow.done;
	tally->failed |= row->flow.sender && row->flow.lost > 0;
}

/* Are all flows over, also those whose host has died? */
static bool all_over(const struct sim *s, const struct topo *t, const uint64_t *hosts,
	const struct workload_spec *spec, const struct dsf_memory *memory)
{
	struct node_report *r = malloc(sizeof(*r));
	bool over = false;

	if (r != NULL && node_report_init(r, t, spec, memory) == 0) {
		view_hosts(s, t, hosts, add_row, r);
		over = node_report_done(r);
		node_report_close(r);
	}
	free(r);
	return over;
}

static int command_hosts(struct sim *s, const struct topo *t, const uint64_t *hosts,
	const struct workload_spec *spec)
{
	struct workload_spec absolute = *spec;
	struct node_command command = { .kind = NODE_COMMAND_WORKLOAD_START,
		.workload = &absolute };
	dsf_instant start = dsf_time_after(sim_now(s), WORKLOAD_START_RTTS * t->base_rtt_ns);

	absolute.start_at = dsf_time_after(start, spec->start_at.ns);
	absolute.stop_at = dsf_time_after(start, spec->stop_at.ns);
	for (uint32_t i = dsf_bitset_next(hosts, 0, t->nodes_count); i < t->nodes_count;
		i = dsf_bitset_next(hosts, i + 1, t->nodes_count)) {
		int err = sim_command(s, i, &command);

		if (err < 0)
			return err;
	}
	return 0;
}

/* Both halves of every flow say that they are done; looked at closely only when some never will,
 * which is rare. */
static bool all_done(const struct sim *s, const struct topo *t, const uint64_t *hosts,
	const struct workload_spec *spec, const struct dsf_memory *memory)
{
	struct tally tally = { 0 };

	view_hosts(s, t, hosts, count, &tally);
	if (tally.rows == 2ull * spec->flows_count && !tally.failed)
		return tally.done == tally.rows;
	return all_over(s, t, hosts, spec, memory);
}

int sim_run_workload(struct sim *s, const struct topo *t, const struct workload_spec *spec,
	uint64_t limit_ns, struct node_report *r, uint64_t *drops)
{
	uint64_t drops_before = count_drops(s), *hosts = find_hosts(t, spec);
	dsf_instant limit = dsf_time_after(sim_now(s), limit_ns);
	int err = hosts == NULL ? -ENOMEM : command_hosts(s, t, hosts, spec);

	if (err == 0) {
		do
			err = sim_run_until(s, dsf_time_after(sim_now(s), SLICE_NS));
		while (err == 0 && !all_done(s, t, hosts, spec, r->memory) &&
			dsf_time_before(sim_now(s), limit));
		view_hosts(s, t, hosts, add_row, r);
	}
	free(hosts);
	node_report_finish(r);
	*drops = count_drops(s) - drops_before;
	return err;
}
