/*
 * scale - what a whole fabric costs in the simulator
 *
 *   scale TOPOLOGY.json [FAILURES]
 *
 * Wakes the lab up from cold, then fails links and switches one after the other (FAILURES of each
 * kind, drawn by the file's seed; default 6), and prints one JSON object: CPU time and memory until
 * the fabric has come to rest the first time; CPU time and fabric time from each failure to the
 * last change of reachability anywhere; and whether sampled destinations are reached, told and
 * withheld at the end as the planner computes. CPU time of a failure includes all that the lab does
 * meanwhile: keeping its links alive costs refresh_ms for each refresh period. Exits 1 when the
 * planner comes to something else.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include "base/bitset.h"
#include "base/rng.h"
#include "sim/run.h"
#include "tests/source.h"
#include "topo/fixed.h"
#include "topo/memory.h"

#define STEP_NS       250u
#define QUIET_NS      (5u * NS_PER_US) /* without a change for so long: at rest */
#define CONVERGE_NS   NS_PER_S
#define FAILURES_MAX  100u
#define SAMPLES       16u /* destinations that are compared with the planner */
#define FAILURE_KINDS 4u

struct figures {
	double cpu_ms[FAILURES_MAX];
	uint64_t converged_ns[FAILURES_MAX];
	uint32_t count;
};

struct lab {
	struct topo *topo;
	struct sim *sim;
	struct dsf_rng rng;
	dsf_instant changed_at;
	uint64_t *failed; /* bitset over links */
	uint64_t *dead;   /* bitset over nodes */
	struct figures figures[FAILURE_KINDS];
	uint32_t wrong, compared;
};

static const char *const kinds[FAILURE_KINDS] = { "fabric_link", "spine_link", "fdsw", "sdsw" };

static void die(const char *what, const char *why)
{
	fprintf(stderr, "scale: %s: %s\n", what, why);
	exit(1);
}

static double cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void note(void *user, const struct dsf_event *event)
{
	struct lab *l = user;

	if (event->kind == DSF_EVENT_REACH_CHANGED || event->kind == DSF_EVENT_BALANCE_CUT ||
		event->kind == DSF_EVENT_BALANCE_BACK)
		l->changed_at = event->at;
}

/* Runs until nothing has changed for a while. CPU time until the last change. */
static double settle(struct lab *l, double started_ms)
{
	dsf_instant seen = l->changed_at;
	double spent = cpu_ms() - started_ms;

	while (dsf_time_since(dsf_time_max(seen, l->changed_at), sim_now(l->sim)) < QUIET_NS) {
		sim_run_until(l->sim, dsf_time_after(sim_now(l->sim), STEP_NS));
		if (seen.ns != l->changed_at.ns)
			spent = cpu_ms() - started_ms;
		seen = l->changed_at;
	}
	return spent;
}

/* Takes a random one of a kind that is whole down. */
static bool fail(struct lab *l, uint32_t kind)
{
	enum topo_link_kind link = kind == 0 ? TOPO_LINK_FABRIC : TOPO_LINK_SPINE;
	enum topo_role role = kind == 2 ? TOPO_ROLE_FDSW : TOPO_ROLE_SDSW;
	uint32_t count = kind < 2 ? l->topo->links_count : l->topo->nodes_count;
	uint32_t from = (uint32_t)dsf_rng_below(&l->rng, count);

	for (uint32_t k = 0; k < count; k++) {
		uint32_t i = (from + k) % count;

		if (kind < 2 && l->topo->links[i].kind == link && !dsf_bitset_has(l->failed, i)) {
			dsf_bitset_add(l->failed, i);
			sim_link_set(l->sim, i, false);
			return true;
		}
		if (kind >= 2 && l->topo->nodes[i].role == role && !dsf_bitset_has(l->dead, i)) {
			dsf_bitset_add(l->dead, i);
			sim_node_stop(l->sim, i);
			return true;
		}
	}
	return false;
}

static void measure(struct lab *l, uint32_t kind, uint32_t failures)
{
	struct figures *f = &l->figures[kind];

	while (f->count < failures) {
		dsf_instant at = sim_now(l->sim);
		double started = cpu_ms();

		l->changed_at = at;
		if (!fail(l, kind))
			return;
		f->cpu_ms[f->count] = settle(l, started);
		f->converged_ns[f->count++] = dsf_time_since(at, l->changed_at);
	}
}

static double refresh_ms(struct lab *l)
{
	double started = cpu_ms();

	sim_run_until(
		l->sim, dsf_time_after(sim_now(l->sim), l->topo->fabric.reach_refresh_ns));
	return cpu_ms() - started;
}

struct comparing {
	struct lab *lab;
	struct topo_fixed *fixed;
};

static void compare(void *user, const struct node_row *row)
{
	struct comparing *c = user;
	const struct node_row_reachability *r = &row->reachability;
	size_t size = DSF_BITSET_WORDS(c->lab->topo->nodes[row->node].ports_count) * 8;
	struct topo_fixed_row want;

	c->lab->compared++;
	c->lab->wrong += !topo_fixed_row(c->fixed, row->node, &want) ||
			 memcmp(r->output, want.output, size) != 0 ||
			 memcmp(r->advertised, want.advertised, size) != 0 ||
			 memcmp(r->withdrawn, want.withdrawn, size) != 0 ||
			 r->cut_by_balance != want.cut_by_balance;
}

static void compare_with_planner(struct lab *l)
{
	const struct topo *t = l->topo;
	struct comparing c = { .lab = l };

	for (uint32_t i = 0; i < t->links_count; i++)
		if (dsf_bitset_has(l->dead, t->ports[t->links[i].port_a].node) ||
			dsf_bitset_has(l->dead, t->ports[t->links[i].port_b].node))
			dsf_bitset_add(l->failed, i);
	c.fixed = topo_fixed_new(t, l->failed, t->seed, &topo_memory);
	if (c.fixed == NULL)
		die("planner", "out of memory");
	for (uint32_t k = 0; k < SAMPLES; k++) {
		uint32_t d = (uint32_t)dsf_rng_below(&l->rng, t->nodes_count);

		while (!topo_is_interface_node(t->nodes[d].role))
			d = d + 1 == t->nodes_count ? 0 : d + 1;
		topo_fixed_destination(c.fixed, d);
		sim_view(l->sim, TOPO_NONE, NODE_QUERY_REACHABILITY, d, compare, &c);
	}
	topo_fixed_free(c.fixed);
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void print_figures(const char *name, struct figures *f)
{
	uint64_t slowest_ns = 0;

	for (uint32_t i = 0; i < f->count; i++)
		slowest_ns = f->converged_ns[i] > slowest_ns ? f->converged_ns[i] : slowest_ns;
	qsort(f->cpu_ms, f->count, sizeof(f->cpu_ms[0]), ascending);
	if (f->count == 0)
		printf(", \"%s\": null", name);
	else
		printf(", \"%s\": {\"failures\": %u, \"cpu_ms_p50\": %.2f, \"cpu_ms_max\": %.2f, "
		       "\"converged_ns_max\": %llu}",
			name, f->count, f->cpu_ms[f->count / 2], f->cpu_ms[f->count - 1],
			(unsigned long long)slowest_ns);
}

static void run(struct lab *l, const char *path, uint32_t failures)
{
	double started = cpu_ms(), made, cold, refresh;
	struct dsf_trace trace = { note, l };
	struct rusage usage;
	uint64_t cold_ns;

	l->topo = source_topo_path(path);
	l->failed = calloc(DSF_BITSET_WORDS(l->topo->links_count), sizeof(uint64_t));
	l->dead = calloc(DSF_BITSET_WORDS(l->topo->nodes_count), sizeof(uint64_t));
	dsf_rng_init(&l->rng, l->topo->seed);
	l->sim = sim_new(&(struct sim_config){
		.topo = l->topo, .seed = l->topo->seed, .trace = &trace });
	if (l->sim == NULL || l->failed == NULL || l->dead == NULL)
		die(path, "no memory, or nodes that the simulator doesn't have");
	made = cpu_ms() - started;
	if (!sim_converge(l->sim, CONVERGE_NS))
		die(path, "doesn't become ready");
	cold = settle(l, started);
	cold_ns = l->changed_at.ns;
	getrusage(RUSAGE_SELF, &usage);
	refresh = refresh_ms(l);
	for (uint32_t kind = 0; kind < FAILURE_KINDS; kind++)
		measure(l, kind, failures);
	compare_with_planner(l);
	printf("{\"row\": \"scale\", \"file\": \"%s\", \"nodes\": %u, \"links\": %u, "
	       "\"made_cpu_s\": %.3f, \"cold_cpu_s\": %.3f, \"cold_converged_ns\": %llu, "
	       "\"rss_mib\": %ld, \"refresh_ms\": %.2f",
		l->topo->name, l->topo->nodes_count, l->topo->links_count, made / 1e3, cold / 1e3,
		(unsigned long long)cold_ns, usage.ru_maxrss / 1024, refresh);
	for (uint32_t kind = 0; kind < FAILURE_KINDS; kind++)
		print_figures(kinds[kind], &l->figures[kind]);
	printf(", \"rows_compared\": %u, \"rows_wrong\": %u}\n", l->compared, l->wrong);
}

int main(int argc, char **argv)
{
	static struct lab lab;
	unsigned long failures = argc > 2 ? strtoul(argv[2], NULL, 10) : 6;

	if (argc < 2 || failures == 0 || failures > FAILURES_MAX) {
		fprintf(stderr, "usage: scale TOPOLOGY.json [FAILURES, up to %u]\n", FAILURES_MAX);
		return 2;
	}
	run(&lab, argv[1], (uint32_t)failures);
	sim_free(lab.sim);
	topo_free(lab.topo);
	free(lab.failed);
	free(lab.dead);
	return lab.wrong == 0 && lab.compared > 0 ? 0 : 1;
}
