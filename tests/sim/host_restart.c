/*
 * Hosts that die, or die and come back, with messages under way: the run ends, and says what was
 * lost. Nobody sends to one who isn't there for ever.
 */
#include "tests/sim/hosts.h"

#define SIZE       (1u << 20)
#define ITERATIONS 40u
#define HOSTS_MAX  16u

enum fate { RESTARTED, STOPPED, STOPPED_THEN_STARTED };

static const char *const fates[] = { "restarted", "stopped", "stopped, then started" };

static uint32_t host_of(const struct topo *t, const struct workload_flow *f, bool target)
{
	return topo_endpoint(t, target ? f->target : f->source).host;
}

static void add_packets(void *user, const struct node_row *row)
{
	*(uint64_t *)user += row->counters.packets_tx;
}

static uint64_t packets_of(struct sim *s, uint32_t host)
{
	uint64_t packets = 0;

	sim_view(s, host, NODE_QUERY_COUNTERS, TOPO_NONE, add_packets, &packets);
	return packets;
}

/* Nobody sends more than now and then a question once the run is over. */
static void check_quiet(struct sim *s, const struct topo *t, const char *name)
{
	uint64_t before = 0, after = 0;

	sim_run_until(s, (dsf_instant){ sim_now(s).ns + 10 * NS_PER_MS });
	for (uint32_t i = 0; i < t->nodes_count; i++)
		before += t->nodes[i].role == TOPO_ROLE_HOST ? packets_of(s, i) : 0;
	sim_run_until(s, (dsf_instant){ sim_now(s).ns + 10 * NS_PER_MS });
	for (uint32_t i = 0; i < t->nodes_count; i++)
		after += t->nodes[i].role == TOPO_ROLE_HOST ? packets_of(s, i) : 0;
	TAP_EQ(after - before, 0, "%s: all hosts are quiet afterwards", name);
}

static void hit(struct sim *s, uint32_t host, enum fate fate)
{
	sim_node_stop(s, host);
	if (fate == STOPPED_THEN_STARTED)
		sim_run_until(s, (dsf_instant){ sim_now(s).ns + 100000 });
	if (fate != STOPPED)
		sim_node_start(s, host);
}

/* A second workload on the same lab, all of it back: everything is as new. */
static void check_again(struct sim *s, const struct topo *t, const char *name)
{
	struct workload_spec spec = {
		.kind = WORKLOAD_WRITE, .size_bytes = 65536, .iterations = 4, .seed = 99
	};
	struct workload_flow flows[RANKS_MAX];
	struct collector c = { .topo = t };

	sim_run_until(s, (dsf_instant){ sim_now(s).ns + 20 * NS_PER_MS });
	if (!begin(s, t, &spec, flows))
		return;
	TAP_OK(finish(s, t, &spec, &c, 200) && c.report.verified, "%s: another run is verified",
		name);
	node_report_close(&c.report);
}

static void run(enum workload_kind kind, bool target, enum fate fate, uint64_t at_ns)
{
	bool udp = kind == WORKLOAD_UDP;
	struct workload_spec spec = { .kind = kind,
		.size_bytes = udp ? 4096 : SIZE,
		.iterations = udp ? 256 * ITERATIONS : ITERATIONS,
		.seed = 7 };
	struct workload_flow flows[RANKS_MAX];
	struct topo *t = source_topo("topologies/mini.json");
	struct collector c = { .topo = t };
	uint64_t due, messages;
	char name[128];
	struct sim *s;
	uint32_t host;
	bool done;

	snprintf(name, sizeof(name), "%s, a %s host %s at %" PRIu64 " us", workload_kind_name(kind),
		target ? "receiving" : "sending", fates[fate], at_ns / 1000);
	s = t != NULL ? started(t, 7) : NULL;
	if (!TAP_OK(s != NULL && sim_ready(s), "mini.json is ready") || !begin(s, t, &spec, flows))
		return;
	host = host_of(t, &flows[target ? 0 : spec.flows_count - 1], target);
	sim_run_until(s, (dsf_instant){ spec.start_at.ns + at_ns });
	hit(s, host, fate);
	done = finish(s, t, &spec, &c, 400);
	due = (uint64_t)spec.iterations * spec.flows_count;
	messages = c.report.messages;
	printf("# %s: %" PRIu64 " messages, %" PRIu64 " lost, %" PRIu64 " us\n", name, messages,
		c.report.lost, (sim_now(s).ns - spec.start_at.ns) / 1000);
	TAP_OK(done, "%s: the run ends", name);
	TAP_OK(!c.report.verified, "%s: it isn't verified", name);
	TAP_OK(messages < due, "%s: not every message came", name);
	TAP_EQ(messages + c.report.lost, due, "%s: every message came or is lost", name);
	node_report_close(&c.report);
	check_quiet(s, t, name);
	if (fate != STOPPED)
		check_again(s, t, name);
	sim_free(s);
	topo_free(t);
}

int main(void)
{
	static const enum workload_kind kinds[] = { WORKLOAD_WRITE, WORKLOAD_PERMUTATION,
		WORKLOAD_INCAST, WORKLOAD_UDP };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		for (int target = 0; target < 2; target++) {
			run(kinds[i], target != 0, RESTARTED, 300000);
			run(kinds[i], target != 0, STOPPED, 300000);
			run(kinds[i], target != 0, STOPPED_THEN_STARTED, 300000);
		}
	}
	/* Before any message, and in the middle of the handshake. */
	run(WORKLOAD_PERMUTATION, true, RESTARTED, 0);
	run(WORKLOAD_PERMUTATION, true, STOPPED, 0);
	return TAP_DONE();
}
