/*
 * One recorded list of inputs through both drivers' glue: a device must be told the same at the
 * same instants, and what it sends must be the same to the last byte.
 *
 * The list is recorded around a fabric node and around an interface node of mini.json while all
 * its hosts send to each other and links flap. Departures are then moved so that many frames are
 * due at one instant, with each other and with deadlines of the device. The simulator plays it with
 * the neighbours as players. The emulator's process plays it over a kernel of the test's, on time
 * and late, with few receive buffers, wake-ups for nothing and news of links before the frames that
 * came with them.
 */
#include <stdio.h>
#include "tests/tap.h"
#include "tests/unit/glue_kernel.h"
#include "topo/file.h"
#include "workload/spec.h"

#define SEED         20260u
#define GRID_NS      40u  /* departures of trains are multiples of it */
#define SNAP_NS      250u /* trains that are due so shortly before a deadline are due with it */
#define READY_NS     (400 * NS_PER_US)
#define TRAFFIC_NS   (60 * NS_PER_US)
#define END_NS       (READY_NS + 160 * NS_PER_US)
#define BEFORE_NS    300u /* a late process turns at least so shortly before news of links */
#define DATAGRAM     3000u
#define RANKS        8u
#define FLOW_BPS     90000000000ull
#define TURNS_MAX    10000000u
#define MARGIN_NS    10u               /* frames arrive at least so long before they are due */
#define COALESCE_NS  (147 * NS_PER_US) /* wall: half a train at 445G, dilated */
#define BUFFERS_FEW  16u
#define BUFFERS_MANY 64u

static struct topo *load(void)
{
	const char *source = getenv("DSF_SOURCE");
	struct topo *t = NULL;
	struct topo_error error;
	char path[4096], *text = malloc(1 << 16);
	FILE *file;
	size_t size;

	snprintf(path, sizeof(path), "%s/topologies/mini.json", source == NULL ? "." : source);
	file = fopen(path, "r");
	if (text == NULL || file == NULL)
		return NULL;
	size = fread(text, 1, 1 << 16, file);
	fclose(file);
	if (topo_load_text(text, size, path, &t, &error) < 0)
		t = NULL;
	free(text);
	return t;
}

/* Recording. */

static void start_traffic(struct sim *s)
{
	struct workload_flow flows[RANKS * RANKS];
	struct workload_spec spec = { .kind = WORKLOAD_UDP,
		.flows = flows,
		.size_bytes = DATAGRAM,
		.rate_bps = FLOW_BPS,
		.plane = UINT32_MAX,
		.seed = SEED,
		.start_at = dsf_time_after(sim_now(s), NS_PER_US),
		.stop_at = dsf_time_after(sim_now(s), TRAFFIC_NS) };
	struct node_command command = { .kind = NODE_COMMAND_WORKLOAD_START, .workload = &spec };

	for (uint32_t i = 0; i < RANKS * RANKS; i++)
		if (i / RANKS != i % RANKS)
			flows[spec.flows_count++] = (struct workload_flow){ i / RANKS, i % RANKS };
	for (uint32_t i = 0; i < glue.topo->nodes_count; i++)
		if (glue.topo->nodes[i].role == TOPO_ROLE_HOST)
			sim_command(s, i, &command);
}

/* Cells reach the device late and out of order. */
static void impair_neighbors(struct sim *s)
{
	for (uint32_t i = 0; i < glue.topo->nodes[glue.self].ports_count; i++) {
		const struct topo_port *far = far_port(glue.self, i);
		struct node_command command = { .kind = NODE_COMMAND_IMPAIR,
			.port = far->number,
			.impairment = { .jitter_ns = 300, .reorder_ppm = 30000 } };

		if (!far->ethernet)
			sim_command(s, far->node, &command);
	}
}

static void set_link(struct sim *s, uint32_t port, bool up)
{
	const struct topo_node *self = &glue.topo->nodes[glue.self];

	sim_link_set(s, topo_node_port(glue.topo, self, port)->link, up);
}

/* Takes a port down and up again under load. */
static void flap(struct sim *s, uint32_t port, uint64_t from_us)
{
	sim_run_until(s, (dsf_instant){ READY_NS + from_us * NS_PER_US });
	set_link(s, port, false);
	sim_run_until(s, (dsf_instant){ READY_NS + (from_us + 9) * NS_PER_US });
	set_link(s, port, true);
}

static bool record(struct glue_list *inputs)
{
	struct sim_config config = { .topo = glue.topo, .seed = SEED };
	struct sim *s;
	bool ready;

	glue.record = true;
	glue.inputs = inputs;
	glue.told = glue.sent = NULL;
	dsf_rng_init(&glue.rng, SEED);
	s = sim_new(&config);
	sim_run_until(s, (dsf_instant){ READY_NS });
	ready = sim_ready(s);
	start_traffic(s);
	impair_neighbors(s);
	flap(s, 0, 20);
	flap(s, glue.topo->nodes[glue.self].ports_count - 1, 35);
	sim_run_until(s, (dsf_instant){ END_NS - 30 * NS_PER_US });
	sim_free(s);
	return ready;
}

/* Playing. */

static void play_sim(const struct glue_list *inputs, struct glue_list *told, struct glue_list *sent)
{
	struct sim_config config = { .topo = glue.topo, .seed = SEED };
	struct sim *s;

	glue.record = false;
	glue.told = told;
	glue.sent = sent;
	dsf_rng_init(&glue.rng, SEED + 1);
	s = sim_new(&config);
	for (uint32_t i = 0; i < inputs->count; i++) {
		const struct glue_item *item = &inputs->items[i];

		if (item->kind == GLUE_FRAME || item->at.ns == 0)
			continue;
		sim_run_until(s, item->at);
		set_link(s, item->port, item->kind == GLUE_UP);
	}
	sim_run_until(s, (dsf_instant){ END_NS });
	sim_free(s);
}

/* Instants at which the device has something to do of its own accord. */
static void find_ticks(const struct glue_list *inputs, struct glue_list *ticks)
{
	struct glue_list carriers = { 0 };

	for (uint32_t i = 0; i < inputs->count; i++)
		if (inputs->items[i].kind != GLUE_FRAME)
			glue_list_add(&carriers, inputs->items[i].kind, inputs->items[i].port,
				inputs->items[i].at, NULL, 0);
	glue.inputs = &carriers;
	play_sim(&carriers, ticks, NULL);
	glue_list_free(&carriers);
}

static uint64_t delay_of(uint32_t port)
{
	const struct topo_node *self = &glue.topo->nodes[glue.self];

	return glue.topo->links[topo_node_port(glue.topo, self, port)->link].delay_ns;
}

static void crowd(struct glue_list *inputs)
{
	struct glue_list ticks = { 0 };

	find_ticks(inputs, &ticks);
	for (uint32_t i = 0; i < inputs->count; i++) {
		struct glue_item *item = &inputs->items[i];
		dsf_instant at, due;

		if (!glue_item_is_train(item))
			continue;
		at.ns = (item->at.ns + GRID_NS - 1) / GRID_NS * GRID_NS;
		due = dsf_time_after(at, delay_of(item->port));
		for (uint32_t k = 0; k < ticks.count; k++)
			if (ticks.items[k].kind == GLUE_EXPIRE &&
				dsf_time_since(due, ticks.items[k].at) > 0 &&
				dsf_time_since(due, ticks.items[k].at) < SNAP_NS) {
				at.ns += dsf_time_since(due, ticks.items[k].at);
				break;
			}
		glue_item_depart(item, at);
	}
	glue_list_free(&ticks);
}

struct manner {
	const char *name;
	uint16_t buffers_max;
	uint64_t late_max_ns;
	bool spurious, shuffled;
};

static int compare_arrivals(const void *left, const void *right)
{
	const struct arrival *a = left, *b = right;

	if (a->at_ns != b->at_ns)
		return a->at_ns < b->at_ns ? -1 : 1;
	return a->item < b->item ? -1 : a->item > b->item;
}

/* Frames of a port arrive in the order in which they were sent, each before it is due and before
 * its link goes down; else at any time after its departure. */
static void write_arrivals(const struct glue_list *inputs, const struct manner *manner)
{
	uint64_t *latest = calloc(inputs->count, sizeof(*latest));
	uint64_t next[TOPO_PORTS_PER_SWITCH], last[TOPO_PORTS_PER_SWITCH] = { 0 };

	kernel.arrivals = calloc(inputs->count, sizeof(*kernel.arrivals));
	memset(next, 0xff, sizeof(next));
	for (uint32_t i = inputs->count; i-- > 0;) {
		const struct glue_item *item = &inputs->items[i];
		uint64_t due_ns = item->at.ns + delay_of(item->port);
		dsf_instant down = glue_list_down_after(inputs, item->port, item->at);

		if (item->kind != GLUE_FRAME)
			continue;
		latest[i] = next[item->port];
		if (due_ns - MARGIN_NS < latest[i])
			latest[i] = due_ns - MARGIN_NS;
		if (down.ns < latest[i])
			latest[i] = down.ns;
		next[item->port] = latest[i];
	}
	for (uint32_t i = 0; i < inputs->count; i++) {
		const struct glue_item *item = &inputs->items[i];
		uint64_t at_ns = item->at.ns;

		if (item->kind != GLUE_FRAME)
			continue;
		if (manner->shuffled && latest[i] > at_ns)
			at_ns += dsf_rng_below(&kernel.rng, latest[i] - at_ns + 1);
		if (at_ns < last[item->port])
			at_ns = last[item->port];
		if (at_ns > latest[i])
			at_ns = latest[i];
		last[item->port] = at_ns;
		kernel.arrivals[kernel.arrivals_count++] =
			(struct arrival){ wall_of((dsf_instant){ at_ns }), item };
	}
	free(latest);
	qsort(kernel.arrivals, kernel.arrivals_count, sizeof(*kernel.arrivals), compare_arrivals);
	for (uint32_t i = 0; i < glue.topo->nodes[glue.self].ports_count; i++)
		kernel.sockets[i].waiting =
			calloc(kernel.arrivals_count, sizeof(*kernel.sockets[i].waiting));
}

/* False: it turns without end. */
static bool turn_until(struct uring_process *p, uint64_t fabric_ns)
{
	kernel.limit_ns = wall_of((dsf_instant){ fabric_ns });
	for (unsigned turns = 0; kernel.wall_ns < kernel.limit_ns; turns++) {
		uint64_t enters = kernel.enters;

		if (turns == TURNS_MAX || uring_process_turn(p) < 0)
			return false;
		if (kernel.enters == enters)
			spin();
	}
	return true;
}

/* Up to a carrier change, whose news is found before the last frames that came. A packet that was
 * due on the dying link has been sent. */
static bool turn_until_news(struct uring_process *p, const struct glue_item *item)
{
	bool ended = item->at.ns < BEFORE_NS || turn_until(p, item->at.ns - BEFORE_NS);

	if (p->ports[item->port].config.kind == URING_PORT_FABRIC)
		kernel.news[kernel.news_count++] = item;
	ended = ended && turn_until(p, item->at.ns);
	if (p->ports[item->port].config.kind != URING_PORT_FABRIC) {
		for (unsigned i = 0; i < 4; i++)
			uring_process_turn(p);
		kernel.news[kernel.news_count++] = item;
	}
	bring_in_arrivals();
	return ended;
}

static bool play_list(struct uring_process *p, const struct glue_list *inputs)
{
	bool ended = true;

	uring_process_turn(p); /* arms everything */
	for (uint32_t i = 0; ended && i < inputs->count; i++) {
		if (inputs->items[i].kind == GLUE_FRAME)
			continue;
		ended = turn_until_news(p, &inputs->items[i]);
		if (inputs->items[i].at.ns > 0)
			uring_process_turn(p);
	}
	return ended && turn_until(p, END_NS);
}

static void play_uring(const struct glue_list *inputs, const struct manner *manner,
	struct glue_list *told, struct glue_list *sent)
{
	static struct uring_process process;
	struct node_config node = { .topo = glue.topo,
		.index = glue.self,
		.memory = &glue_memory.memory,
		.seed = SEED,
		.control_dilation = 1,
		.simulated = true };
	uint32_t peak;

	memset(&kernel, 0, sizeof(kernel));
	dsf_rng_init(&kernel.rng, SEED + 2);
	kernel.process = &process;
	kernel.wall_ns = KERNEL_EPOCH_NS;
	kernel.limit_ns = KERNEL_EPOCH_NS;
	kernel.late_max_ns = manner->late_max_ns;
	kernel.spurious = manner->spurious;
	glue.told = told;
	glue.sent = sent;
	write_arrivals(inputs, manner);
	open_process(&process, glue.topo, glue.self, &node, manner->buffers_max);
	process.gap_ns = manner->late_max_ns > 0 ? COALESCE_NS : 0;
	TAP_OK(play_list(&process, inputs), "%s: every turn ends", manner->name);
	peak = process.trains.copies.used_peak;
	TAP_EQ(kernel.arrived, kernel.arrivals_count, "%s: everything arrived", manner->name);
	TAP_EQ(process.hold.heap.count, 0, "%s: nothing is held at the end", manner->name);
	TAP_EQ(process.trains.taken + process.packets.taken, 0, "%s: all buffers given back",
		manner->name);
	TAP_EQ(process.trains.copies.used, 0, "%s: all copies given back", manner->name);
	TAP_OK(manner->buffers_max == BUFFERS_MANY || peak > 0 ||
			topo_is_interface_node(process.self->role),
		"%s: frames were copied (%u)", manner->name, peak);
	printf("# receives without buffer: %u\n", kernel.starved);
	TAP_EQ(uring_fidelity_drops(&process.fidelity), 0, "%s: no drop", manner->name);
	close_process(&process);
	TAP_EQ(glue_memory.live, 0, "%s: all memory given back", manner->name);
	free(kernel.arrivals);
	for (uint32_t i = 0; i < TOPO_PORTS_PER_SWITCH; i++)
		free(kernel.sockets[i].waiting);
}

/* Comparing. */

static void show(const char *whose, const struct glue_item *item)
{
	static const char *const names[] = { "frame", "up", "down", "expire" };

	if (item == NULL)
		printf("#   %s: nothing\n", whose);
	else
		printf("#   %s: %s port %u at %" PRIu64 ", %u bytes\n", whose, names[item->kind],
			item->port, item->at.ns, item->size);
}

static const struct glue_item *item_at(const struct glue_list *l, uint32_t i)
{
	return i < l->count ? &l->items[i] : NULL;
}

static bool same_told(const struct glue_list *a, const struct glue_list *b)
{
	for (uint32_t i = 0; i < a->count || i < b->count; i++) {
		const struct glue_item *x = item_at(a, i), *y = item_at(b, i);

		if (x != NULL && y != NULL && x->kind == y->kind && x->port == y->port &&
			x->at.ns == y->at.ns && x->size == y->size)
			continue;
		printf("# told, %u of %u and %u:\n", i, a->count, b->count);
		show("simulator", x);
		show("emulator", y);
		return false;
	}
	return true;
}

static const struct glue_item *next_of_port(const struct glue_list *l, uint32_t port, uint32_t *at)
{
	while (*at < l->count)
		if (l->items[(*at)++].port == port)
			return &l->items[*at - 1];
	return NULL;
}

/* A packet that an Ethernet port sends leaves when its time has come, which a late process can't
 * do; it never leaves before. */
static bool same_sent(
	const struct glue_list *a, const struct glue_list *b, uint32_t port, bool late)
{
	uint32_t i = 0, j = 0;

	for (;;) {
		const struct glue_item *x = next_of_port(a, port, &i);
		const struct glue_item *y = next_of_port(b, port, &j);
		bool same;

		if (x == NULL && y == NULL)
			return true;
		same = x != NULL && y != NULL && x->size == y->size &&
		       memcmp(x->bytes, y->bytes, x->size) == 0;
		if (same && late && !glue_item_is_train(x))
			same = !dsf_time_before(y->at, x->at);
		else if (same)
			same = x->at.ns == y->at.ns;
		if (same)
			continue;
		printf("# sent on port %u:\n", port);
		show("simulator", x);
		show("emulator", y);
		return false;
	}
}

/* What the list has in it. */

static void count_cells(const struct glue_list *l, uint32_t counts[FABRIC_CELL_KIND_END])
{
	for (uint32_t i = 0; i < l->count; i++) {
		const struct glue_item *item = &l->items[i];
		uint32_t at = FABRIC_TRAIN_HEADER;

		if (item->port == NODE_PORT_INBAND || !glue_item_is_train(item))
			continue;
		while (at < item->size) {
			struct fabric_cell cell;
			int taken = fabric_cell_decode(&cell, item->bytes + at, item->size - at);

			if (taken <= 0)
				break;
			counts[cell.kind]++;
			at += (uint32_t)taken;
		}
	}
}

static uint32_t count_packets(const struct glue_list *l)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < l->count; i++)
		count += l->items[i].kind == GLUE_FRAME && !glue_item_is_train(&l->items[i]);
	return count;
}

/* Neighbours in the order of what the device was told: frames of two ports at one instant, and a
 * deadline with a frame. */
static void count_ties(const struct glue_list *told, uint32_t *ports, uint32_t *deadlines)
{
	*ports = *deadlines = 0;
	for (uint32_t i = 1; i < told->count; i++) {
		const struct glue_item *a = &told->items[i - 1], *b = &told->items[i];

		if (a->at.ns != b->at.ns || b->kind != GLUE_FRAME)
			continue;
		*ports += a->kind == GLUE_FRAME && a->port != b->port;
		*deadlines += a->kind == GLUE_EXPIRE;
	}
}

static void check_list(const char *node, const struct glue_list *inputs,
	const struct glue_list *told, const struct glue_list *sent)
{
	bool edge = topo_is_interface_node(glue.topo->nodes[glue.self].role);
	uint32_t in[FABRIC_CELL_KIND_END] = { 0 }, out[FABRIC_CELL_KIND_END] = { 0 };
	uint32_t ports, deadlines, backwards = 0;

	count_cells(inputs, in);
	count_cells(sent, out);
	count_ties(told, &ports, &deadlines);
	for (uint32_t i = 1; i < inputs->count; i++)
		backwards += dsf_time_before(inputs->items[i].at, inputs->items[i - 1].at);
	for (unsigned kind = FABRIC_CELL_DATA; kind <= FABRIC_CELL_REACH; kind++)
		TAP_OK(in[kind] > 30 && out[kind] > 30, "%s: cells of kind %u in: %u, out: %u",
			node, kind, in[kind], out[kind]);
	TAP_OK(!edge || (count_packets(inputs) > 300 && count_packets(sent) > 300),
		"%s: packets in: %u, out: %u", node, count_packets(inputs), count_packets(sent));
	TAP_OK(ports > 50 && deadlines > 5,
		"%s: due together: %u times two ports, %u times deadline and frame", node, ports,
		deadlines);
	TAP_OK(backwards > 100, "%s: %u departures before the one sent last", node, backwards);
}

static void test_node(const char *node)
{
	static const struct manner manners[] = {
		{ "on time, in order", BUFFERS_MANY, 0, false, false },
		{ "on time, shuffled, few buffers", BUFFERS_FEW, 0, true, true },
		{ "late, shuffled", BUFFERS_MANY, 1500, true, true },
	};
	struct glue_list inputs = { 0 }, told = { 0 }, sent = { 0 };
	uint32_t ports_count;

	glue.self = topo_find_node(glue.topo, node);
	ports_count = glue.topo->nodes[glue.self].ports_count;
	TAP_OK(record(&inputs), "%s: ready while recorded", node);
	crowd(&inputs);
	glue.inputs = &inputs;
	play_sim(&inputs, &told, &sent);
	check_list(node, &inputs, &told, &sent);
	for (unsigned i = 0; i < sizeof(manners) / sizeof(manners[0]); i++) {
		struct glue_list live_told = { 0 }, live_sent = { 0 };

		play_uring(&inputs, &manners[i], &live_told, &live_sent);
		TAP_OK(same_told(&told, &live_told), "%s, %s: told the same", node,
			manners[i].name);
		for (uint32_t p = 0; p <= ports_count; p++) {
			uint32_t port = p == ports_count ? NODE_PORT_INBAND : p;

			TAP_OK(same_sent(&sent, &live_sent, port, manners[i].late_max_ns > 0),
				"%s, %s: the same leaves port %u", node, manners[i].name, port);
		}
		glue_list_free(&live_told);
		glue_list_free(&live_sent);
	}
	glue_list_free(&inputs);
	glue_list_free(&told);
	glue_list_free(&sent);
}

int main(void)
{
	struct topo *t = load();

	if (!TAP_OK(t != NULL, "mini.json loads"))
		return TAP_DONE();
	glue.topo = t;
	test_node("b0-z0-p0-fdsw0");
	test_node("b0-z0-p0-rdsw0");
	topo_free(t);
	return TAP_DONE();
}
