#include "sim/run.h"
#include "base/err.h"
#include "workload/spec.h"

#define START_NS (10 * NS_PER_US) /* after the command: time for hosts to get ready */
#define SLICE_NS (10 * NS_PER_US) /* how often is looked whether all is done */

static bool not_ready(void *user, struct sim *s)
{
	(void)user;
	return !sim_ready(s);
}

bool sim_converge(struct sim *s, uint64_t limit_ns)
{
	return sim_run_while(s, not_ready, NULL, dsf_time_after(sim_now(s), limit_ns));
}

static void add_drops(void *user, const struct node_row *row)
{
	*(uint64_t *)user += node_report_drops(&row->counters);
}

static void add_row(void *user, const struct node_row *row)
{
	/* Rows of another workload that the host still remembers are not ours. */
	(void)node_report_add(user, &row->flow);
}

static uint64_t count_drops(const struct sim *s)
{
	uint64_t drops = 0;

	sim_view(s, TOPO_NONE, NODE_QUERY_COUNTERS, TOPO_NONE, add_drops, &drops);
	return drops;
}

static bool takes_part(const struct topo *t, const struct workload_spec *spec, uint32_t host)
{
	for (uint32_t i = 0; i < spec->flows_count; i++)
		if (topo_endpoint(t, spec->flows[i].source).host == host ||
			topo_endpoint(t, spec->flows[i].target).host == host)
			return true;
	return false;
}

static int command_hosts(struct sim *s, const struct topo *t, const struct workload_spec *spec)
{
	struct workload_spec absolute = *spec;
	struct node_command command = { .kind = NODE_COMMAND_WORKLOAD_START,
		.workload = &absolute };
	dsf_instant start = dsf_time_after(sim_now(s), START_NS);

	absolute.start_at = dsf_time_after(start, spec->start_at.ns);
	absolute.stop_at = dsf_time_after(start, spec->stop_at.ns);
	for (uint32_t i = 0; i < t->nodes_count; i++) {
		int err;

		if (t->nodes[i].role != TOPO_ROLE_HOST || !takes_part(t, spec, i))
			continue;
		err = sim_command(s, i, &command);
		if (err < 0)
			return err;
	}
	return 0;
}

static void collect(const struct sim *s, const struct topo *t, const struct workload_spec *spec,
	struct node_report *r)
{
	struct node_report fresh = {
		.topo = r->topo, .spec = r->spec, .memory = r->memory, .flows = r->flows
	};

	memset(r->flows, 0, spec->flows_count * sizeof(*r->flows));
	*r = fresh;
	for (uint32_t i = 0; i < t->nodes_count; i++)
		if (t->nodes[i].role == TOPO_ROLE_HOST)
			sim_view(s, i, NODE_QUERY_WORKLOAD, TOPO_NONE, add_row, r);
}

int sim_run_workload(struct sim *s, const struct topo *t, const struct workload_spec *spec,
	uint64_t limit_ns, struct node_report *r, uint64_t *drops)
{
	uint64_t drops_before = count_drops(s);
	dsf_instant limit = dsf_time_after(sim_now(s), limit_ns);
	int err = command_hosts(s, t, spec);

	while (err == 0 && dsf_time_before(sim_now(s), limit)) {
		err = sim_run_until(s, dsf_time_after(sim_now(s), SLICE_NS));
		collect(s, t, spec, r);
		if (node_report_done(r))
			break;
	}
	node_report_finish(r);
	*drops = count_drops(s) - drops_before;
	return err;
}
