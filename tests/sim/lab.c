#include "tests/sim/lab.h"
#include <stdlib.h>
#include <string.h>
#include "tests/tap.h"
#include "topo/file.h"

#define READY_NS (10 * NS_PER_MS)
#define QUIET_NS (100 * NS_PER_US) /* until sessions have acknowledged all that made them ready */

static char replay[512];
static const char *program;
static uint32_t control_dilation;

bool lab_result(bool held, const char *file, int line, const char *text, const char *format, ...)
{
	char name[512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(name, sizeof(name), format, arguments);
	va_end(arguments);
	if (!held)
		printf("# %s:%d: %s\n# replay: %s\n", file, line, text, replay);
	return tap_result(held, "%s", name);
}

static void fail(const char *what, const char *why)
{
	TAP_OK(false, "%s: %s", what, why);
	exit(TAP_DONE());
}

void lab_sessions(uint32_t dilation)
{
	control_dilation = dilation;
}

static void run_seed(void (*test)(uint64_t seed), uint64_t seed)
{
	snprintf(replay, sizeof(replay), "%s %" PRIu64, program, seed);
	test(seed);
}

/* What is kept in tests/sim/seeds for this program. */
static void run_kept(void (*test)(uint64_t seed))
{
	const char *source = getenv("DSF_SOURCE"), *slash = strrchr(program, '/');
	char line[512], name[128];
	uint64_t seed;
	FILE *f;

	snprintf(line, sizeof(line), "%s/tests/sim/seeds", source == NULL ? "." : source);
	f = fopen(line, "r");
	if (f == NULL)
		fail(line, "can't be opened");
	while (fgets(line, sizeof(line), f) != NULL)
		if (sscanf(line, "%127s %" SCNu64, name, &seed) == 2 &&
			strcmp(name, slash == NULL ? program : slash + 1) == 0)
			run_seed(test, seed);
	fclose(f);
}

int lab_main(int argc, char **argv, void (*test)(uint64_t seed), uint64_t seeds)
{
	const char *more = getenv("DSF_SEEDS");

	program = argv[0];
	if (more != NULL)
		seeds = strtoull(more, NULL, 0);
	for (int i = 1; i < argc; i++)
		run_seed(test, strtoull(argv[i], NULL, 0));
	for (uint64_t seed = 1; argc == 1 && seed <= seeds; seed++)
		run_seed(test, seed);
	if (argc == 1)
		run_kept(test);
	return TAP_DONE();
}

static void count_event(void *user, const struct dsf_event *event)
{
	struct lab *l = user;

	l->events[event->kind]++;
}

static void open_sim(struct lab *l, uint64_t seed)
{
	struct sim_config config = { .topo = l->topo,
		.seed = seed,
		.trace = &l->trace,
		.control_dilation = control_dilation,
		.sessions_max = control_dilation > 0 ? SIM_SESSIONS_MAX : 0 };

	l->seed = seed;
	dsf_rng_fork(&l->rng, seed, 0x74657374, 0);
	l->trace = (struct dsf_trace){ count_event, l };
	generator_reset(l->topo);
	l->sim = sim_new(&config);
	if (l->sim == NULL)
		fail("sim_new", "no simulation");
	if (!lab_wait_ready(l, READY_NS))
		LAB_OK(false, "ready within 10 ms");
	if (control_dilation > 0)
		lab_run(l, QUIET_NS);
}

void lab_open_text(struct lab *l, const char *text, uint64_t seed)
{
	struct topo_error err;
	char line[1024];

	memset(l, 0, sizeof(*l));
	if (topo_load_text(text, strlen(text), "test", &l->topo, &err) < 0)
		fail("topology", topo_error_line(&err, line, sizeof(line)));
	open_sim(l, seed);
}

const char *lab_read(const char *file)
{
	const char *source = getenv("DSF_SOURCE");
	static char text[1 << 16];
	char path[4096];
	size_t size;
	FILE *f;

	snprintf(path, sizeof(path), "%s/topologies/%s", source == NULL ? "." : source, file);
	f = fopen(path, "rb");
	if (f == NULL)
		fail(path, "can't be opened");
	size = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[size] = '\0';
	return text;
}

void lab_open(struct lab *l, const char *file, uint64_t seed)
{
	lab_open_text(l, lab_read(file), seed);
}

void lab_open_zone(struct lab *l, const struct lab_zone *z, uint64_t seed)
{
	char text[4096];

	snprintf(text, sizeof(text),
		"{\"name\":\"test\",\"seed\":1,\"planes\":%u,\"buildings\":[{\"name\":\"b0\","
		"\"zones\":"
		"[{\"name\":\"z0\",\"scaling_units\":%u,\"rails\":%u,\"hosts_per_unit\":%u,"
		"\"fdsw\":%u"
		"}]}],\"link_defaults\":{\"gpu\":{\"rate\":\"%s\",\"delay\":\"500ns\"},\"fabric\":{"
		"\"rate\":\"%s\",\"delay\":\"%s\"%s}},\"fabric\":{\"mode\":\"dsf\"%s}}",
		z->planes, z->units, z->rails, z->hosts_per_unit, z->fdsw,
		z->gpu_rate == NULL ? "400G" : z->gpu_rate,
		z->fabric_rate == NULL ? "445G" : z->fabric_rate,
		z->fabric_delay == NULL ? "500ns" : z->fabric_delay,
		z->fabric_more == NULL ? "" : z->fabric_more,
		z->settings == NULL ? "" : z->settings);
	lab_open_text(l, text, seed);
}

void lab_close(struct lab *l)
{
	sim_free(l->sim);
	topo_free(l->topo);
	memset(l, 0, sizeof(*l));
}

void lab_run(struct lab *l, uint64_t ns)
{
	if (sim_run_until(l->sim, dsf_time_after(sim_now(l->sim), ns)) < 0)
		fail("sim_run_until", "no memory");
}

static bool not_ready(void *user, struct sim *sim)
{
	(void)user;
	return !sim_ready(sim);
}

bool lab_wait_ready(struct lab *l, uint64_t ns)
{
	return sim_run_while(l->sim, not_ready, NULL, dsf_time_after(sim_now(l->sim), ns));
}

bool lab_wait_rest(struct lab *l, uint64_t ns)
{
	for (uint64_t waited = 0;; waited += 10 * NS_PER_US) {
		struct lab_totals t;

		lab_total(l, &t);
		if (t.voq_packets == 0 && lab_missing(l) == 0)
			return true;
		if (waited >= ns)
			return false;
		lab_run(l, 10 * NS_PER_US);
	}
}

struct adding {
	struct lab_totals *totals;
	const struct lab *lab;
};

static void add_counters(const struct lab *l, struct lab_totals *t, const struct node_row *row)
{
	const struct node_row_counters *c = &row->counters;

	t->cells_tx += c->cells_tx + c->control_cells_tx;
	t->cells_rx += c->cells_rx + c->control_cells_rx;
	t->cells_lost += c->cells_lost;
	t->impaired += c->impaired_drops;
	t->corrupt += c->corrupt_drops;
	t->link_down += c->fabric_link_down_dropped;
	t->unreachable += c->fabric_unreachable_dropped;
	t->fabric_drops += c->fabric_drops;
	t->reassembly_errors += c->reassembly_errors;
	t->reassembled += c->packets_reassembled;
	t->voq_drops += c->voq_drops;
	t->watchdog_drops += c->watchdog_drops;
	t->ecn_marks += c->ecn_marks;
	t->egress_drops += c->egress_drops;
	t->credits_sent += c->credits_sent;
	t->credits_received += c->credits_received;
	for (unsigned i = 0; c->errors != NULL && i < DSF_ERR_COUNT; i++)
		t->errors[i] += c->errors[i];
	(void)l;
}

static void add_row(void *user, const struct node_row *row)
{
	const struct adding *a = user;

	if (row->query == NODE_QUERY_COUNTERS) {
		add_counters(a->lab, a->totals, row);
		return;
	}
	a->totals->voq_packets += row->voq.packets;
	a->totals->voq_watchdog_drops += row->voq.watchdog_dropped;
	a->totals->over_granted += row->voq.credits_granted >=
				   row->voq.credits_requested + a->lab->topo->fabric.credit_bytes;
}

void lab_total_node(const struct lab *l, uint32_t node, struct lab_totals *t)
{
	struct adding a = { t, l };

	memset(t, 0, sizeof(*t));
	sim_view(l->sim, node, NODE_QUERY_COUNTERS, TOPO_NONE, add_row, &a);
	sim_view(l->sim, node, NODE_QUERY_VOQ, TOPO_NONE, add_row, &a);
}

void lab_total(const struct lab *l, struct lab_totals *t)
{
	lab_total_node(l, TOPO_NONE, t);
}

int64_t lab_missing(const struct lab *l)
{
	struct lab_totals t;
	int64_t missing = 0;

	lab_total(l, &t);
	for (uint32_t i = 0; i < generator_flows(); i++)
		missing += (int64_t)(generator_count(i)->sent - generator_count(i)->received);
	return missing -
	       (int64_t)(t.voq_drops + t.watchdog_drops + t.reassembly_errors + t.egress_drops);
}

void lab_check_order(struct lab *l, const char *name)
{
	uint64_t received = 0, reordered = 0, duplicated = 0, wrong = 0;

	(void)l;
	for (uint32_t i = 0; i < generator_flows(); i++) {
		const struct generator_count *c = generator_count(i);

		received += c->received;
		reordered += c->reordered;
		duplicated += c->duplicated;
		wrong += c->wrong;
	}
	LAB_OK(received > 0 && reordered == 0 && duplicated == 0 && wrong == 0,
		"%s: %" PRIu64 " packets, %" PRIu64 " out of order, %" PRIu64 " twice, %" PRIu64
		" wrong",
		name, received, reordered, duplicated, wrong);
}

void lab_check_rest(struct lab *l, const char *name)
{
	struct lab_totals t;
	int64_t missing = lab_missing(l);

	lab_total(l, &t);
	LAB_OK(missing == 0, "%s: every packet came or is counted: %" PRId64 " are not", name,
		missing);
	LAB_OK(t.voq_packets == 0, "%s: %" PRIu64 " packets wait in VOQs", name, t.voq_packets);
	LAB_OK(t.over_granted == 0, "%s: %" PRIu64 " VOQs got more than they asked for", name,
		t.over_granted);
	LAB_OK(t.credits_received <= t.credits_sent, "%s: no credit that nobody gave", name);
}

void lab_check_lossless(struct lab *l, const char *name)
{
	struct lab_totals t;

	lab_total(l, &t);
	LAB_OK(t.fabric_drops == 0 && t.cells_lost == 0 && t.unreachable == 0 && t.link_down == 0,
		"%s: cells dropped %" PRIu64 ", lost %" PRIu64 ", unreachable %" PRIu64, name,
		t.fabric_drops, t.cells_lost, t.unreachable);
	LAB_OK(t.reassembly_errors == 0, "%s: %" PRIu64 " reassembly errors", name,
		t.reassembly_errors);
	LAB_OK(t.egress_drops == 0, "%s: %" PRIu64 " packets dropped at the egress", name,
		t.egress_drops);
}

void lab_check_cells(struct lab *l, const char *name)
{
	struct lab_totals t;
	uint64_t cut, out;

	for (uint32_t i = 0; i < l->topo->links_count; i++)
		sim_link_set(l->sim, i, false);
	lab_run(l, 100 * NS_PER_MS); /* what was on the links is counted when it would have come */
	lab_total(l, &t);
	cut = sim_stats(l->sim).cells_cut;
	out = t.cells_rx + t.impaired + t.corrupt + t.link_down + cut;
	LAB_OK(t.cells_tx > 0 && t.cells_tx == out,
		"%s: of %" PRIu64 " cells %" PRIu64 " came, %" PRIu64 " were impaired, %" PRIu64
		" corrupt, %" PRIu64 " discarded, %" PRIu64 " cut",
		name, t.cells_tx, t.cells_rx, t.impaired, t.corrupt, t.link_down, cut);
}

uint32_t lab_count(const struct lab *l, enum topo_role role)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < l->topo->nodes_count; i++)
		count += l->topo->nodes[i].role == role;
	return count;
}

uint32_t lab_node(const struct lab *l, enum topo_role role, uint32_t number)
{
	for (uint32_t i = 0; i < l->topo->nodes_count; i++)
		if (l->topo->nodes[i].role == role && number-- == 0)
			return i;
	fail("lab_node", "no such node");
	return 0;
}

uint32_t lab_fabric_ports(const struct lab *l, uint32_t node)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < l->topo->nodes[node].ports_count; i++)
		count += !topo_node_port(l->topo, &l->topo->nodes[node], i)->ethernet;
	return count;
}

uint32_t lab_fabric_port(const struct lab *l, uint32_t node, uint32_t number)
{
	for (uint32_t i = 0; i < l->topo->nodes[node].ports_count; i++) {
		const struct topo_port *p = topo_node_port(l->topo, &l->topo->nodes[node], i);

		if (!p->ethernet && number-- == 0)
			return (uint32_t)(p - l->topo->ports);
	}
	fail("lab_fabric_port", "no such port");
	return 0;
}

struct finding {
	uint32_t number;
	struct node_row_port row;
};

static void find_port(void *user, const struct node_row *row)
{
	struct finding *f = user;

	if (row->port.port == f->number)
		f->row = row->port;
}

struct node_row_port lab_port(const struct lab *l, uint32_t port)
{
	const struct topo_port *p = &l->topo->ports[port];
	struct finding f = { .number = p->number };

	sim_view(l->sim, p->node, NODE_QUERY_PORT, TOPO_NONE, find_port, &f);
	return f.row;
}

int lab_impair(struct lab *l, uint32_t port, const struct node_impairment *impairment)
{
	const struct topo_port *p = &l->topo->ports[port];
	struct node_command command = {
		.kind = NODE_COMMAND_IMPAIR, .port = p->number, .impairment = *impairment
	};

	return sim_command(l->sim, p->node, &command);
}

double lab_jain(const double *values, uint32_t count)
{
	double sum = 0, squares = 0;

	for (uint32_t i = 0; i < count; i++) {
		sum += values[i];
		squares += values[i] * values[i];
	}
	return squares > 0 ? sum * sum / (count * squares) : 0;
}
