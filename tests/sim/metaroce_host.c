/*
 * The built-in workloads on a whole lab in virtual time: everything arrives, once, right, at near
 * the rate that the ports have.
 */
#include <stdlib.h>
#include <string.h>
#include "base/err.h"
#include "node/report.h"
#include "sim/sim.h"
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

static struct topo *load(const char *name)
{
	const char *source = getenv("DSF_SOURCE");
	struct topo_error err;
	struct topo *t = NULL;
	char path[4096];
	char *text;
	FILE *file;
	size_t size;

	snprintf(path, sizeof(path), "%s/topologies/%s", source != NULL ? source : ".", name);
	file = fopen(path, "rb");
	if (file == NULL)
		return NULL;
	text = malloc(1 << 20);
	size = fread(text, 1, 1 << 20, file);
	fclose(file);
	if (topo_load_text(text, size, name, &t, &err) < 0)
		t = NULL;
	free(text);
	return t;
}

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
	struct sim_config config = { .topo = t, .seed = seed };
	struct sim *s = sim_new(&config);

	for (uint64_t at = 0; s != NULL && !sim_ready(s) && at < 20; at++)
		sim_run_until(s, (dsf_instant){ (at + 1) * NS_PER_MS });
	return s;
}

static void run(const char *file, enum workload_kind kind, uint64_t size, uint32_t iterations,
	uint64_t seed)
{
	struct workload_endpoint endpoints[RANKS_MAX];
	struct workload_flow flows[RANKS_MAX];
	struct topo *t = load(file);
	struct workload_spec spec;
	struct collector c = { .topo = t };
	struct sim *s;
	int count;

	if (!TAP_OK(t != NULL, "%s loads", file))
		return;
	s = started(t, seed);
	if (!TAP_OK(s != NULL && sim_ready(s), "%s is ready", file))
		return;
	count = workload_flows(
		kind, WORKLOAD_SCOPE_CROSS_RDSW, seed, endpoints, facts(t, endpoints), flows);
	if (!TAP_OK(count > 0, "%s: %s has flows", file, workload_kind_name(kind)))
		return;
	spec = (struct workload_spec){ .kind = kind,
		.flows = flows,
		.flows_count = (uint32_t)count,
		.size_bytes = size,
		.iterations = iterations,
		.dscp = 50,
		.plane = UINT32_MAX,
		.seed = seed,
		.start_at = { sim_now(s).ns + 50000 },
		.stop_at = DSF_NEVER };
	for (uint32_t i = 0; i < t->nodes_count; i++) {
		struct node_command command = { .kind = NODE_COMMAND_WORKLOAD_START,
			.workload = &spec };

		if (t->nodes[i].role == TOPO_ROLE_HOST && sim_command(s, i, &command) < 0)
			TAP_OK(false, "host %u takes the workload", i);
	}
	for (uint32_t i = 0; i < 200; i++) {
		sim_run_until(s, (dsf_instant){ sim_now(s).ns + 100000 });
		node_report_init(&c.report, t, &spec, &memory);
		sim_view(s, TOPO_NONE, NODE_QUERY_WORKLOAD, TOPO_NONE, collect, &c);
		if (node_report_done(&c.report) || i == 199)
			break;
		node_report_close(&c.report);
	}
	node_report_finish(&c.report);
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
	TAP_OK(node_report_done(&c.report), "%s %s: done", file, workload_kind_name(kind));
	TAP_EQ(c.report.messages, (uint64_t)iterations * (uint64_t)count, "%s %s: every message",
		file, workload_kind_name(kind));
	TAP_OK(c.report.verified, "%s %s: verified", file, workload_kind_name(kind));
	node_report_close(&c.report);
	sim_free(s);
	topo_free(t);
}

int main(void)
{
	run("mini.json", WORKLOAD_WRITE, 1 << 20, 40, 1);
	run("mini.json", WORKLOAD_PERMUTATION, 1 << 20, 40, 2);
	run("mini.json", WORKLOAD_INCAST, 1 << 18, 10, 3);
	run("mini.json", WORKLOAD_WRITE, 4096, 50, 4);
	run("mini.json", WORKLOAD_WRITE, 65536, 50, 4);
	run("l1-zone.json", WORKLOAD_PERMUTATION, 1 << 20, 5, 5);
	run("l1-zone.json", WORKLOAD_INCAST, 1 << 18, 5, 6);
	return TAP_DONE();
}
