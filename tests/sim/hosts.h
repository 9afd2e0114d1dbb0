/*
 * hosts.h - a shipped lab with its hosts in virtual time, and what a workload on it came to
 */
#ifndef DSF_TESTS_HOSTS_H
#define DSF_TESTS_HOSTS_H
#include <stdlib.h>
#include <string.h>
#include "base/err.h"
#include "node/report.h"
#include "sim/sim.h"
#include "tests/source.h"
#include "tests/tap.h"
#include "topo/file.h"
#include "workload/pattern.h"

#define RANKS_MAX 64u

static void *test_alloc(void *user, size_t size)
{
	(void)user;
	return calloc(1, size);
}

static void test_release(void *user, void *block, size_t size)
{
	(void)user;
	(void)size;
	free(block);
}

static const struct dsf_memory memory = { test_alloc, test_release, NULL };

static uint32_t facts(const struct topo *t, struct workload_endpoint *endpoints)
{
	for (uint32_t i = 0; i < t->endpoints_count && i < RANKS_MAX; i++) {
		struct topo_endpoint e = topo_endpoint(t, i);
		const struct topo_port *port = topo_endpoint_port(t, i, 0);
		uint32_t rdsw = t->ports[port->peer].node;

		endpoints[i] = (struct workload_endpoint){ .rank = i,
			.host = e.host,
			.rail = e.rail,
			.rdsw = rdsw,
			.zone = t->nodes[rdsw].zone,
			.building = t->nodes[rdsw].building };
	}
	return t->endpoints_count;
}

struct collector {
	struct node_report report;
	const struct topo *topo;
};

static void collect(void *user, const struct node_row *row)
{
	struct collector *c = user;

	if (row->query == NODE_QUERY_WORKLOAD)
		node_report_add(&c->report, &row->flow);
}

static struct sim *started(const struct topo *t, uint64_t seed)
{
	struct sim_config config = { .topo = t, .seed = seed, .sessions_max = SIM_SESSIONS_MAX };
	struct sim *s = sim_new(&config);

	for (uint64_t at = 0; s != NULL && !sim_ready(s) && at < 100; at++)
		sim_run_until(s, (dsf_instant){ (at + 1) * NS_PER_MS });
	return s;
}

/* A workload that begins soon among all GPUs, told to every host. False: a check has failed. */
static bool begin(struct sim *s, const struct topo *t, struct workload_spec *spec,
	struct workload_flow *flows)
{
	struct workload_endpoint endpoints[RANKS_MAX];
	int count = workload_flows(spec->kind, WORKLOAD_SCOPE_CROSS_RDSW, spec->seed, endpoints,
		facts(t, endpoints), flows);

	if (!TAP_OK(count > 0, "%s has flows", workload_kind_name(spec->kind)))
		return false;
	spec->flows = flows;
	spec->flows_count = (uint32_t)count;
	spec->dscp = 50;
	spec->plane = UINT32_MAX;
	spec->start_at = (dsf_instant){ sim_now(s).ns + 50000 };
	spec->stop_at = DSF_NEVER;
	for (uint32_t i = 0; i < t->nodes_count; i++) {
		struct node_command command = { .kind = NODE_COMMAND_WORKLOAD_START,
			.workload = spec };

		if (t->nodes[i].role == TOPO_ROLE_HOST && sim_command(s, i, &command) < 0)
			return TAP_OK(false, "host %u takes the workload", i);
	}
	return true;
}

/* Looks each 100 us whether all is done, so many times; the caller closes the report. */
static bool finish(struct sim *s, const struct topo *t, const struct workload_spec *spec,
	struct collector *c, uint32_t looks)
{
	bool done = false;

	for (uint32_t i = 0; i < looks && !done; i++) {
		if (i > 0)
			node_report_close(&c->report);
		sim_run_until(s, (dsf_instant){ sim_now(s).ns + 100000 });
		node_report_init(&c->report, t, spec, &memory);
		sim_view(s, TOPO_NONE, NODE_QUERY_WORKLOAD, TOPO_NONE, collect, c);
		done = node_report_done(&c->report);
	}
	node_report_finish(&c->report);
	return done;
}

#endif
