/*
 * Drills in virtual time: the shipped ones and random ones hold on mini.json, the same seed gives
 * the same run; and what is planted (a link that nobody heals, a switch that loses cells and says
 * nothing, one that tells lies) is found, by the invariant that is about it.
 */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include "base/cursor.h"
#include "fabric/reach.h"
#include "node/cells.h"
#include "node/drill.h"
#include "sim/drill.h"
#include "sim/run.h"
#include "tests/memory.h"
#include "tests/source.h"
#include "tests/tap.h"
#include "topo/file.h"
#include "topo/memory.h"
#include "workload/pattern.h"

#define RANKS_MAX 64u
#define SEEDS     12u
#define IPV6      0x86ddu /* EtherType: the other frames are trains */

/* Plants. */

enum plant { NOTHING, UNHEALED, LOSER, LIAR, GREEDY, LAST_RESORTLESS, LOSSY_WIRES };

static enum plant plant;
static uint32_t planted; /* link or switch index */
static uint64_t passed;
static const struct node *expired; /* has done what was due, and not been asked for output since */
static uint64_t inputs_too_early;

void __real_sim_link_set(struct sim *s, uint32_t link, bool up);
void __wrap_sim_link_set(struct sim *s, uint32_t link, bool up);
void __wrap_sim_link_set(struct sim *s, uint32_t link, bool up)
{
	if (plant == UNHEALED && link == planted && up && dsf_time_before(DSF_EPOCH, sim_now(s)))
		return;
	__real_sim_link_set(s, link, up);
}

void __real_node_cells_forward(
	struct node_cells *c, const struct fabric_cell *cell, const uint8_t *raw, dsf_instant now);
void __wrap_node_cells_forward(
	struct node_cells *c, const struct fabric_cell *cell, const uint8_t *raw, dsf_instant now);
void __wrap_node_cells_forward(
	struct node_cells *c, const struct fabric_cell *cell, const uint8_t *raw, dsf_instant now)
{
	if (plant == LOSER && c->self->switch_index == planted && cell->kind == FABRIC_CELL_DATA &&
		++passed % 5000 == 0)
		return;
	__real_node_cells_forward(c, cell, raw, now);
}

/* What Input Balanced Mode withholds, the second bitmap if there is one, is told too. */
static void tell_all(uint8_t *payload)
{
	uint32_t flags = dsf_load_be16(payload + 2);
	size_t bytes = ((flags & FABRIC_REACH_CELL_COUNT) + 7u) / 8u;

	for (size_t i = FABRIC_REACH_CELL_HEADER;
		(flags & FABRIC_REACH_CELL_WITHHELD) && i < FABRIC_REACH_CELL_HEADER + bytes; i++)
		payload[i] |= payload[i + bytes];
}

/* Last resorts, the last bitmap if there is one, aren't told. */
static size_t tell_no_resorts(uint8_t *payload, size_t size)
{
	uint32_t flags = dsf_load_be16(payload + 2);

	if (!(flags & FABRIC_REACH_CELL_RESORT))
		return size;
	payload[2] &= (uint8_t) ~(FABRIC_REACH_CELL_RESORT >> 8);
	return size - ((flags & FABRIC_REACH_CELL_COUNT) + 7u) / 8u;
}

size_t __real_fabric_reach_output(
	const struct fabric_reach *r, uint32_t port, uint32_t part, uint8_t *payload, size_t cap);
size_t __wrap_fabric_reach_output(
	const struct fabric_reach *r, uint32_t port, uint32_t part, uint8_t *payload, size_t cap);
size_t __wrap_fabric_reach_output(
	const struct fabric_reach *r, uint32_t port, uint32_t part, uint8_t *payload, size_t cap)
{
	size_t size = __real_fabric_reach_output(r, port, part, payload, cap);

	/* It goes on telling of the four leaf switches, which come first. */
	if (plant == LIAR && r->self == planted && size > FABRIC_REACH_CELL_HEADER)
		payload[FABRIC_REACH_CELL_HEADER] |= 0x0f;
	if (plant == GREEDY && r->self == planted && size > 0)
		tell_all(payload);
	if (plant == LAST_RESORTLESS && r->tier == FABRIC_TIER_LEAF && size > 0)
		size = tell_no_resorts(payload, size);
	return size;
}

int __real_node_frame_input(
	struct node *n, uint32_t port, const struct node_frame *frame, dsf_instant now);
int __wrap_node_frame_input(
	struct node *n, uint32_t port, const struct node_frame *frame, dsf_instant now);
int __wrap_node_frame_input(
	struct node *n, uint32_t port, const struct node_frame *frame, dsf_instant now)
{
	bool cells = frame->size > 14 && dsf_load_be16(frame->bytes + 12) != IPV6;

	inputs_too_early += n == expired;
	if (plant == LOSSY_WIRES && cells && ++passed % 500 == 0)
		return 0; /* a train that vanishes on the wire */
	return __real_node_frame_input(n, port, frame, now);
}

void __real_node_expire(struct node *n, dsf_instant now);
void __wrap_node_expire(struct node *n, dsf_instant now);
void __wrap_node_expire(struct node *n, dsf_instant now)
{
	expired = n;
	__real_node_expire(n, now);
}

bool __real_node_output(struct node *n, struct node_output *out, dsf_instant now);
bool __wrap_node_output(struct node *n, struct node_output *out, dsf_instant now);
bool __wrap_node_output(struct node *n, struct node_output *out, dsf_instant now)
{
	expired = n == expired ? NULL : expired;
	return __real_node_output(n, out, now);
}

struct outcome {
	enum node_drill_verdict verdict;
	struct node_drill_result results[TOPO_DRILL_INVARIANTS];
	uint64_t hash, messages, p50_ns, max_ns;
	uint32_t changes;
	size_t leaked;
};

static int make_flows(const struct topo *t, const struct topo_drill *drill,
	struct workload_spec *spec, struct workload_flow *flows)
{
	struct workload_endpoint endpoints[RANKS_MAX];
	enum workload_scope scope;

	memset(spec, 0, sizeof(*spec));
	if (drill->workload_kind == NULL)
		return 0;
	for (uint32_t i = 0; i < t->endpoints_count; i++) {
		uint32_t rdsw = t->ports[topo_endpoint_port(t, i, 0)->peer].node;
		struct topo_endpoint e = topo_endpoint(t, i);

		endpoints[i] = (struct workload_endpoint){ .rank = i,
			.host = e.host,
			.rail = e.rail,
			.rdsw = rdsw,
			.zone = t->nodes[rdsw].zone,
			.building = t->nodes[rdsw].building };
	}
	if (workload_kind_parse(drill->workload_kind, &spec->kind) < 0 ||
		workload_scope_parse(drill->workload_scope, &scope) < 0)
		return -1;
	spec->size_bytes = drill->workload_bytes;
	spec->dscp = 50;
	spec->seed = drill->seed;
	spec->flows = flows;
	return workload_flows(spec->kind, scope, drill->seed, endpoints, t->endpoints_count, flows);
}

static void play(
	const struct topo *t, const struct topo_drill *drill, uint64_t seed, struct outcome *o)
{
	struct test_memory memory = TEST_MEMORY(memory);
	struct workload_flow flows[RANKS_MAX];
	struct workload_spec spec;
	int count = make_flows(t, drill, &spec, flows);
	struct node_drill_config config = { .topo = t,
		.drill = drill,
		.flows = flows,
		.flows_count = count > 0 ? (uint32_t)count : 0,
		.draw_seed = seed,
		.refresh_ns = t->fabric.reach_refresh_ns,
		.look_min_ns = NS_PER_US,
		.memory = &memory.memory };
	struct sim *s = sim_new(
		&(struct sim_config){ .topo = t, .seed = seed, .sessions_max = SIM_SESSIONS_MAX });
	struct node_drill *d;

	memset(o, 0, sizeof(*o));
	o->verdict = NODE_DRILL_UNKNOWN;
	spec.flows_count = config.flows_count;
	if (plant != LIAR) /* who lies from the start isn't ready */
		(void)sim_converge(s, NS_PER_S);
	else
		(void)sim_run_until(s, (dsf_instant){ NS_PER_MS });
	d = node_drill_new(&config, sim_now(s));
	if (sim_drill_run(s, t, d, &spec) == 0)
		o->verdict = node_drill_verdict(d, true);
	for (uint32_t i = 0; i < TOPO_DRILL_INVARIANTS; i++)
		node_drill_result(d, (enum topo_drill_invariant)i, &o->results[i]);
	o->messages = node_drill_messages(d);
	node_drill_convergence(d, &o->p50_ns, &o->max_ns);
	o->changes = node_drill_convergences(d);
	o->hash = sim_hash(s);
	node_drill_free(d);
	sim_free(s);
	o->leaked = memory.live;
}

static void tell_breaches(const struct outcome *o)
{
	for (uint32_t i = 0; i < TOPO_DRILL_INVARIANTS; i++)
		if (o->results[i].checked && !o->results[i].held)
			printf("# %s: breach %d at %" PRIu64 " ns: node %u port %u want %" PRIu64
			       " got %" PRIu64 "\n",
				topo_drill_invariant_name((enum topo_drill_invariant)i),
				o->results[i].breach.kind, o->results[i].breach.at.ns,
				o->results[i].breach.node, o->results[i].breach.port,
				o->results[i].breach.want, o->results[i].breach.got);
}

static struct topo_drill *load_drill(const struct topo *t, const char *path)
{
	struct topo_error err;
	struct topo_drill *d;
	size_t size;
	char *text = source_read(path, &size);

	if (topo_drill_load(text, size, path, t, &d, &err) < 0) {
		printf("# %s: %s\n", path, err.text);
		d = NULL;
	}
	free(text);
	return d;
}

/* Tests. */

static void shipped_drills_hold(const struct topo *t)
{
	const char *source = getenv("DSF_SOURCE");
	char path[4096], file[512];
	struct dirent *entry;
	uint32_t count = 0;
	DIR *folder;

	snprintf(path, sizeof(path), "%s/drills", source != NULL ? source : ".");
	folder = opendir(path);
	while (folder != NULL && (entry = readdir(folder)) != NULL) {
		const char *end = strrchr(entry->d_name, '.');
		struct topo_drill *drill;
		struct outcome o;

		if (end == NULL || strcmp(end, ".json") != 0 ||
			strcmp(entry->d_name, "drill.schema.json") == 0)
			continue;
		snprintf(file, sizeof(file), "drills/%s", entry->d_name);
		drill = load_drill(t, file);
		if (!TAP_OK(drill != NULL, "%s loads", entry->d_name))
			continue;
		play(t, drill, 1, &o);
		if (!TAP_OK(o.verdict == NODE_DRILL_HELD, "%s holds", entry->d_name))
			tell_breaches(&o);
		TAP_OK(o.messages > 0 && o.results[TOPO_DRILL_DELIVERY].checked &&
				o.results[TOPO_DRILL_CELLS].checked,
			"%s: under load, all of it judged", entry->d_name);
		topo_drill_free(drill);
		count++;
	}
	if (folder != NULL)
		closedir(folder);
	TAP_OK(count >= 10, "%u shipped drills were played", count);
}

static void random_drills_hold(const struct topo *t, uint64_t first, uint64_t seeds)
{
	for (uint64_t seed = first; seed < first + seeds; seed++) {
		struct topo_drill_random c = { seed, 2 * NS_PER_MS, 10 };
		struct topo_drill *drill;
		struct outcome o;

		if (!TAP_EQ(topo_drill_draw(t, &c, &drill), 0, "seed %" PRIu64 " is drawn", seed))
			continue;
		play(t, drill, seed, &o);
		if (!TAP_OK(o.verdict == NODE_DRILL_HELD,
			    "seed %" PRIu64 " holds: dsfemu sim mini.json --drill "
			    "'random --seed %" PRIu64 "'",
			    seed, seed))
			tell_breaches(&o);
		TAP_EQ(o.leaked, 0, "seed %" PRIu64 ": no memory is left", seed);
		topo_drill_free(drill);
	}
}

static void a_seed_is_a_run(const struct topo *t)
{
	struct topo_drill_random c = { 5, 2 * NS_PER_MS, 10 };
	struct topo_drill *drill;
	struct outcome a, b, other;

	if (topo_drill_draw(t, &c, &drill) < 0)
		return;
	play(t, drill, 5, &a);
	play(t, drill, 5, &b);
	play(t, drill, 6, &other);
	TAP_OK(a.hash == b.hash && a.p50_ns == b.p50_ns && a.max_ns == b.max_ns &&
			a.messages == b.messages && a.changes == b.changes,
		"the same seed gives the same run to the last frame");
	TAP_OK(a.hash != other.hash, "another seed another one");
	topo_drill_free(drill);
}

/* Plays a drill with something planted: broken, by (at least) the invariants of the set. */
static void find(const struct topo *t, const char *file, enum plant what, uint32_t where,
	uint32_t broken, const char *name)
{
	struct topo_drill *drill = load_drill(t, file);
	struct outcome o;

	if (!TAP_OK(drill != NULL, "%s: its drill loads", name))
		return;
	plant = what;
	planted = where;
	passed = 0;
	if (what == UNHEALED) {
		planted = t->ports[drill->faults[0].port].link;
		/* Shorter than the wait for a lab that stays steady: it must end all the same. */
		drill->settle_ns = t->fabric.reach_refresh_ns;
	}
	play(t, drill, 1, &o);
	plant = NOTHING;
	TAP_EQ(o.verdict, NODE_DRILL_BROKEN, "%s: broken", name);
	for (uint32_t i = 0; i < TOPO_DRILL_INVARIANTS; i++)
		if (broken >> i & 1u)
			TAP_OK(o.results[i].checked && !o.results[i].held, "%s: found by %s", name,
				topo_drill_invariant_name((enum topo_drill_invariant)i));
	tell_breaches(&o);
	topo_drill_free(drill);
}

static void planted_faults_are_found(const struct topo *t)
{
	uint32_t fdsw = t->nodes[topo_find_node(t, "b0-z0-p0-fdsw1")].switch_index;

	find(t, "drills/link-down.json", UNHEALED, 0,
		1u << TOPO_DRILL_LINKS | 1u << TOPO_DRILL_REACHABILITY |
			1u << TOPO_DRILL_STEADY_AFTER,
		"a link that isn't healed");
	find(t, "drills/gpu-link-down.json", LOSER, fdsw,
		1u << TOPO_DRILL_CELLS | 1u << TOPO_DRILL_DROPS, "a switch that loses cells");
	find(t, "drills/gpu-link-down.json", LOSSY_WIRES, 0,
		1u << TOPO_DRILL_CELLS | 1u << TOPO_DRILL_DROPS, "wires that lose cells");
	find(t, "drills/rdsw-isolated.json", LIAR, fdsw, 1u << TOPO_DRILL_REACHABILITY,
		"a switch that lies about reachability");
}

/* Who is drained in the only plane is cut off, but what the spine holds for it arrives; were it
 * lost, it would be told. */
static void drains_that_cut_off(void)
{
	struct topo *t = source_topo("topologies/l2-zone.json");
	struct topo_drill *drill = load_drill(t, "drills/rdsw-drain.json");
	struct outcome o;

	if (!TAP_OK(drill != NULL, "rdsw-drain.json loads on l2-zone.json"))
		return;
	play(t, drill, 1, &o);
	if (!TAP_OK(o.verdict == NODE_DRILL_HELD, "and holds there"))
		tell_breaches(&o);
	find(t, "drills/rdsw-drain.json", LAST_RESORTLESS, 0, 1u << TOPO_DRILL_DROPS,
		"switches that know no last resort");
	topo_drill_free(drill);
	topo_free(t);
}

/* Balance is checked to the link: what is withheld is what the planner says. */
static void balance_is_checked(void)
{
	struct topo *t = source_topo("topologies/figures.json");
	uint32_t sdsw = t->nodes[topo_find_node(t, "sdsw0")].switch_index;

	find(t, "tests/sim/drill_balance.json", GREEDY, sdsw, 1u << TOPO_DRILL_REACHABILITY,
		"a switch that withholds nothing");
	topo_free(t);
}

/* A loop is no breach, nor is what a switch lost before it froze and tells of after its cause. */
static void loops_and_late_answers(void)
{
	static const char text[] =
		"{\"name\":\"loops\",\"nodes\":[{\"name\":\"h0\",\"role\":\"host\"},"
		"{\"name\":\"h1\",\"role\":\"host\"},{\"name\":\"r0\",\"role\":\"rdsw\"},"
		"{\"name\":\"r1\",\"role\":\"rdsw\"},{\"name\":\"f0\",\"role\":\"fdsw\"},"
		"{\"name\":\"f1\",\"role\":\"fdsw\"}],\"links\":["
		"{\"a\":\"h0:gpu0p0\",\"b\":\"r0:eth0\"},{\"a\":\"h1:gpu0p0\",\"b\":\"r1:eth0\"},"
		"{\"a\":\"r0:fab0\",\"b\":\"f0:fab0\"},{\"a\":\"r0:fab1\",\"b\":\"f1:fab0\"},"
		"{\"a\":\"r1:fab0\",\"b\":\"f0:fab1\"},{\"a\":\"r1:fab1\",\"b\":\"f1:fab1\"},"
		"{\"a\":\"f0:fab5\",\"b\":\"f0:fab6\"},{\"a\":\"r0:fab5\",\"b\":\"r0:fab6\"}]}";
	struct topo_drill_random c = { 4, 20 * NS_PER_MS, 10 };
	struct topo_drill *drill;
	struct topo_error err;
	struct outcome o;
	struct topo *t;

	if (!TAP_EQ(topo_load_text(text, sizeof(text) - 1, "loops", &t, &err), 0, "loops"))
		return;
	if (TAP_EQ(topo_drill_draw(t, &c, &drill), 0, "loops: drawn")) {
		play(t, drill, 1, &o);
		if (!TAP_EQ(o.verdict, NODE_DRILL_HELD, "loops and late answers: held"))
			tell_breaches(&o);
		topo_drill_free(drill);
	}
	topo_free(t);
}

/* Below its minimum links a switch is out by its own doing: its other links are no breach. */
static void minimum_links_are_known(void)
{
	struct topo *t = source_topo("topologies/mini.json");
	struct topo_drill *drill = load_drill(t, "drills/link-down.json");
	struct outcome o;

	t->fabric.min_links_to_remain = t->fabric.min_links_to_join = 2;
	if (TAP_OK(drill != NULL, "minimum links: the drill loads")) {
		play(t, drill, 1, &o);
		if (!TAP_EQ(o.verdict, NODE_DRILL_HELD, "minimum links: held"))
			tell_breaches(&o);
	}
	topo_drill_free(drill);
	topo_free(t);
}

/* What balance is for: the same failure under load, with it and without. */
static void balance_bounds_queues(void)
{
	struct topo *t = source_topo("topologies/l2-zone.json");
	struct topo_drill *drill = load_drill(t, "tests/sim/drill_queues.json");
	struct outcome o;

	if (TAP_OK(drill != NULL, "balance and queues: the drill loads")) {
		play(t, drill, 1, &o);
		TAP_EQ(o.verdict, NODE_DRILL_HELD, "Input Balanced Mode on: held");
		TAP_OK(o.results[TOPO_DRILL_QUEUES].checked, "with queues judged");
		t->fabric.input_balanced = false;
		play(t, drill, 1, &o);
		TAP_EQ(o.verdict, NODE_DRILL_BROKEN, "off: broken");
		TAP_OK(!o.results[TOPO_DRILL_QUEUES].held &&
				o.results[TOPO_DRILL_REACHABILITY].held,
			"found by queues alone");
		tell_breaches(&o);
	}
	topo_drill_free(drill);
	topo_free(t);
}

int main(int argc, char **argv)
{
	struct topo *t = source_topo("topologies/mini.json");
	uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
	uint64_t seeds = argc > 2 ? strtoull(argv[2], NULL, 10) : SEEDS;

	random_drills_hold(t, first, seeds);
	if (argc == 1) {
		shipped_drills_hold(t);
		a_seed_is_a_run(t);
		planted_faults_are_found(t);
		drains_that_cut_off();
		balance_is_checked();
		balance_bounds_queues();
		minimum_links_are_known();
		loops_and_late_answers();
	}
	TAP_EQ(inputs_too_early, 0, "at one instant deadlines come first, with all they set off");
	topo_free(t);
	return TAP_DONE();
}
