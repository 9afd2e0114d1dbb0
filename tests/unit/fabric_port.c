#include "fabric/port.h"
#include "base/err.h"
#include "tests/memory.h"
#include "tests/tap.h"

#define RATE   400000000000ull /* 50 bytes a nanosecond */
#define SWITCH 12u
#define CELL   512u
#define NUMBER 40u /* where a test's cell carries its number: in the payload */

static struct test_memory memory = TEST_MEMORY(memory);
static struct fabric_ports ports;
static dsf_instant now;

static int open_ports(uint32_t count, uint32_t train_bytes, uint64_t rate, uint64_t seed)
{
	int err = fabric_ports_init(&ports, &memory.memory, count, SWITCH, train_bytes, seed);

	now = (dsf_instant){ 1000 };
	if (err < 0)
		return err;
	for (uint32_t i = 0; i < count; i++) {
		ports.ports[i].rate_bps = rate;
		fabric_port_carrier(&ports, i, true, now);
	}
	return 0;
}

static void close_ports(const char *name)
{
	if (ports.frames.used + ports.short_frames.used != 0)
		for (uint32_t i = 0; i < ports.count; i++)
			fabric_port_carrier(&ports, i, false, now);
	TAP_EQ(ports.frames.used + ports.short_frames.used, 0, "%s: no train is out", name);
	fabric_ports_close(&ports);
	TAP_EQ(memory.live, 0, "%s: nothing is left", name);
}

static bool push(uint32_t port, uint32_t number, uint32_t wire)
{
	struct fabric_cell cell = { .kind = FABRIC_CELL_DATA,
		.size = (uint16_t)(wire - FABRIC_CELL_HEADER),
		.stored = (uint16_t)(wire - FABRIC_CELL_HEADER) };
	uint8_t *at = fabric_port_push(&ports, port, wire, wire, now);

	if (at == NULL)
		return false;
	memset(at, 0xee, wire);
	fabric_cell_encode(&cell, at);
	dsf_store_be32(at + NUMBER, number);
	return true;
}

static bool push_control(uint32_t port, uint32_t number)
{
	struct fabric_cell cell = { .kind = FABRIC_CELL_REACH, .size = 16, .stored = 16 };
	uint8_t *at = fabric_port_push_control(&ports, port, FABRIC_CELL_HEADER + 16, now);

	if (at == NULL)
		return false;
	memset(at, 0xee, FABRIC_CELL_HEADER + 16);
	fabric_cell_encode(&cell, at);
	dsf_store_be32(at + NUMBER, number);
	return true;
}

/* What came out of the ports. */
static struct seen {
	uint64_t trains, cells, control, bytes, wire, corrupt, wrong;
	uint64_t numbers; /* data cells whose number was the next one */
	uint32_t next_number, next_sequence, sequence_gaps;
	uint32_t first_kind, largest;
	dsf_instant depart, first_depart;
	uint64_t earlier; /* trains that depart before the one before them */
} seen;

static void look_cell(const uint8_t *raw, const struct fabric_cell *cell)
{
	uint32_t number = dsf_load_be32(raw + NUMBER);

	seen.sequence_gaps += cell->link_sequence - seen.next_sequence;
	seen.next_sequence = cell->link_sequence + 1;
	seen.corrupt += (cell->flags & FABRIC_CELL_CORRUPT) != 0;
	seen.wire += fabric_cell_wire_bytes(raw);
	if (cell->kind != FABRIC_CELL_DATA) {
		seen.control++;
		return;
	}
	seen.cells++;
	seen.numbers += number == seen.next_number;
	seen.next_number = number + 1;
}

static void look(const struct fabric_frame *f)
{
	struct fabric_train train;
	const uint8_t *at = f->bytes + FABRIC_TRAIN_HEADER, *end = f->bytes + f->used;

	if (fabric_train_decode(&train, f->bytes, f->used) != 0 ||
		train.depart.ns != f->depart.ns || train.cells != f->cells ||
		train.source_port != f->port || train.source_switch != SWITCH ||
		train.bytes != f->used - FABRIC_TRAIN_HEADER || train.cells == 0)
		seen.wrong++;
	for (uint32_t i = 0; i < train.cells; i++) {
		struct fabric_cell cell;
		int taken = fabric_cell_decode(&cell, at, (size_t)(end - at));

		if (taken < 0) {
			seen.wrong++;
			return;
		}
		if (i == 0)
			seen.first_kind = cell.kind;
		look_cell(at, &cell);
		at += taken;
	}
	seen.wrong += at != end;
	seen.earlier += seen.trains > 0 && f->depart.ns < seen.depart.ns;
	if (seen.trains++ == 0)
		seen.first_depart = f->depart;
	seen.depart = f->depart;
	seen.bytes += f->used;
	seen.largest = f->used > seen.largest ? f->used : seen.largest;
}

static void output(void)
{
	struct fabric_frame *f;

	while ((f = fabric_ports_output(&ports, now)) != NULL) {
		look(f);
		fabric_frame_free(&ports, f);
	}
}

/* Runs every deadline until then. */
static void run_until(uint64_t ns)
{
	dsf_instant until = { ns };

	while (dsf_time_due(fabric_ports_deadline(&ports), until)) {
		now = dsf_time_max(now, fabric_ports_deadline(&ports));
		fabric_ports_expire(&ports, now);
		output();
	}
	now = until;
	output();
}

static void see_again(void)
{
	memset(&seen, 0, sizeof(seen));
}

/* One cell departs when it has been serialised, and takes those along that came meanwhile. */
static void one_train(void)
{
	see_again();
	open_ports(2, FABRIC_TRAIN_MAX, RATE, 1);
	TAP_OK(fabric_ports_output(&ports, now) == NULL, "nothing to send");
	push(0, 0, CELL);
	TAP_EQ(fabric_ports_deadline(&ports).ns, 1000 + 11, "512 B at 50 B/ns take 10.24 ns");
	run_until(1010);
	TAP_EQ(seen.trains, 0, "not gone before");
	push(0, 1, CELL);
	run_until(1020);
	TAP_EQ(seen.trains, 0, "a cell that joins puts the departure off");
	push(0, 2, CELL);
	fabric_ports_settle(&ports);
	TAP_EQ(fabric_ports_deadline(&ports).ns, 1000 + 31, "which is then known");
	run_until(1031);
	TAP_OK(seen.trains == 1 && seen.cells == 3, "all leave in one train");
	TAP_EQ(seen.depart.ns, 1000 + 31, "when the third has been serialised: 30.72 ns");
	run_until(2000);
	push(0, 3, CELL);
	run_until(5000);
	TAP_EQ(seen.depart.ns, 2000 + 11, "an idle port starts at once");
	TAP_EQ(seen.numbers, 4, "in order");
	TAP_OK(seen.wrong == 0 && seen.sequence_gaps == 0 && ports.ports[0].queue_bytes == 0,
		"well formed, numbered without gaps");
	close_ports("one train");
}

/* Saturated for long: exactly the port's rate, full trains, no rounding that adds up. */
static void saturated(uint64_t rate, uint32_t wire)
{
	uint64_t cells = 40000, end_ns;
	uint32_t pushed = 0;

	see_again();
	open_ports(1, FABRIC_TRAIN_MAX, rate, 1);
	while (seen.cells < cells) {
		while (pushed < cells && fabric_port_has_room(&ports, 0))
			push(0, pushed++, wire);
		now = fabric_ports_deadline(&ports);
		fabric_ports_expire(&ports, now);
		output();
	}
	end_ns = 1000 + dsf_time_of_bytes(cells * wire, rate);
	TAP_OK(seen.depart.ns >= end_ns && seen.depart.ns <= end_ns + 1,
		"%" PRIu64 " cells of %u B at %" PRIu64 " bit/s end at %" PRIu64
		" ns, not %" PRIu64,
		cells, wire, rate, end_ns, seen.depart.ns);
	TAP_OK(seen.numbers == cells && seen.wrong == 0 && seen.largest <= FABRIC_TRAIN_MAX &&
			seen.bytes / seen.trains > FABRIC_TRAIN_MAX * 85 / 100,
		"in order, in full trains of at most 16 KB: %" PRIu64 " trains", seen.trains);
	close_ports("saturated");
}

static void one_cell_a_frame(void)
{
	static const uint32_t sizes[] = { 0, 192 + 64, 1000, 1056 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		see_again();
		open_ports(1, sizes[i], RATE, 1);
		for (uint32_t n = 0; n < 20; n++) {
			push(0, n, 192);
			push_control(0, n);
		}
		run_until(100000);
		TAP_OK(seen.trains == 40 && seen.cells == 20 && seen.numbers == 20 &&
				seen.wrong == 0,
			"train_bytes %u: one cell a frame", sizes[i]);
		close_ports("one cell a frame");
	}
}

/* No frame is larger than the link may carry, whatever is pushed. */
static void small_trains(void)
{
	static const uint32_t sizes[] = { 1057, 2000, 4096, 9000, FABRIC_TRAIN_MAX };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint32_t n = 0;

		see_again();
		open_ports(1, sizes[i], RATE, 1);
		for (uint32_t k = 0; k < 600; k++)
			push_control(0, 0);
		for (uint32_t k = 0; k < 600; k++) {
			push(0, n++, CELL);
			if (k % 3 == 0)
				push_control(0, 0);
		}
		run_until(10000000);
		TAP_OK(seen.largest <= sizes[i] && seen.cells == 600 && seen.numbers == 600 &&
				seen.control == 800 && seen.wrong == 0,
			"train_bytes %u: the largest frame has %u", sizes[i], seen.largest);
		close_ports("small trains");
	}
}

static void control_first(void)
{
	uint64_t before;

	see_again();
	open_ports(1, FABRIC_TRAIN_MAX, RATE, 1);
	for (uint32_t n = 0; n < 200; n++) /* seven trains */
		push(0, n, CELL);
	push_control(0, 0);
	before = 1000 + dsf_time_of_bytes(FABRIC_TRAIN_MAX, RATE);
	run_until(before);
	TAP_OK(seen.control == 1 && seen.trains == 1,
		"a control cell leaves with the first train, ahead of six that wait");
	for (uint32_t n = 0; n < 100; n++)
		push_control(0, 0);
	run_until(before + 5 * dsf_time_of_bytes(FABRIC_TRAIN_MAX, RATE));
	TAP_EQ(seen.control, 101, "many take the room that each train keeps for them");
	run_until(1000000);
	TAP_OK(seen.cells == 200 && seen.numbers == 200 && seen.wrong == 0, "data keeps its order");
	close_ports("control first");
}

/* A train gets a large buffer when it grows out of a short one, wherever in the queue it is. */
static void short_trains(void)
{
	uint32_t control = FABRIC_TRAIN_CONTROL_BYTES / (FABRIC_CELL_HEADER + 16), data = 0;

	see_again();
	open_ports(1, FABRIC_TRAIN_MAX, RATE, 1);
	for (uint32_t n = 0; n < 10; n++)
		push_control(0, n);
	push(0, data++, CELL);
	TAP_EQ(ports.frames.count, 0, "few cells take no buffer for a whole train");
	push(0, data++, CELL);
	TAP_OK(ports.frames.used == 1 && ports.short_frames.used == 0,
		"a train that grows out of a short buffer leaves it");
	while (ports.ports[0].first == ports.ports[0].last)
		push(0, data++, CELL);
	for (uint32_t n = 10; n < 2 * control + 1; n++)
		push_control(0, n);
	TAP_OK(ports.short_frames.used == 1, "what is behind a full train begins short");
	for (uint32_t n = 0; n < 40; n++)
		push(0, data++, CELL);
	run_until(100000);
	TAP_OK(seen.numbers == data && seen.control == 2 * control + 1 && seen.wrong == 0 &&
			seen.sequence_gaps == 0 && ports.ports[0].queue_bytes == 0,
		"all cells leave, in order: %" PRIu64, seen.cells);
	close_ports("short trains");
}

/* A peer that wants no data gets control cells and what is under way, then the rest in order. */
static void stopped(uint64_t rate)
{
	uint64_t before;

	see_again();
	open_ports(2, FABRIC_TRAIN_MAX, rate, 1);
	for (uint32_t n = 0; n < 200; n++)
		push(0, n, CELL);
	fabric_port_stop(&ports, 0, true, now);
	TAP_OK(!fabric_port_has_room(&ports, 0), "stopped: no room");
	TAP_EQ(ports.ports[0].queue_bytes, 200 * CELL, "stopped: nothing of the queue is lost");
	run_until(20000);
	before = seen.cells;
	TAP_OK(before > 0 && before < 40, "stopped: the train under way goes on: %" PRIu64 " cells",
		before);
	for (uint32_t n = 200; n < 300; n++)
		push(0, n, CELL);
	push_control(0, 1);
	run_until(40000);
	TAP_OK(seen.control == 1 && seen.cells == before,
		"stopped: control cells go, data that came later doesn't");
	fabric_port_stop(&ports, 0, false, now);
	run_until(80000);
	TAP_OK(seen.cells == 300 && seen.numbers == 300 && seen.wrong == 0 &&
			seen.sequence_gaps == 0 && ports.ports[0].queue_bytes == 0,
		"stopped: then all of it, in order");
	/* A stop while a train of one cell grows, and carrier loss while data is kept. */
	push(0, 300, CELL);
	fabric_port_stop(&ports, 0, true, now);
	push(0, 301, CELL);
	fabric_port_carrier(&ports, 0, false, now);
	TAP_OK(!ports.ports[0].stopped && ports.ports[0].queue_bytes == 0 &&
			ports.ports[0].counters.discarded_cells == 2,
		"stopped: carrier loss ends it and takes what was kept");
	close_ports("stopped");
}

/* What we tell the peer is in every train. */
static void stop_flag(void)
{
	struct fabric_frame *f;
	struct fabric_train train;

	open_ports(1, FABRIC_TRAIN_MAX, RATE, 1);
	for (int stop = 0; stop < 2; stop++) {
		ports.ports[0].stop = stop;
		push(0, 0, CELL);
		now = dsf_time_after(now, 1000);
		fabric_ports_expire(&ports, now);
		f = fabric_ports_output(&ports, now);
		TAP_OK(f != NULL && fabric_train_decode(&train, f->bytes, f->used) == 0 &&
				!(train.flags & FABRIC_TRAIN_STOP) == !stop,
			"a train says %s", stop ? "stop" : "go on");
		if (f != NULL)
			fabric_frame_free(&ports, f);
	}
	close_ports("stop flag");
}

static void unlimited(void)
{
	see_again();
	open_ports(2, FABRIC_TRAIN_MAX, 0, 1);
	for (uint32_t n = 0; n < 100; n++)
		push(0, n, CELL);
	TAP_OK(dsf_time_is_never(fabric_ports_deadline(&ports)), "an unlimited port has no timer");
	output();
	TAP_OK(seen.cells == 100 && seen.numbers == 100 && seen.depart.ns == now.ns,
		"all leaves when the driver asks, at once");
	TAP_OK(seen.trains == 4 && ports.ports[0].queue_bytes == 0, "in full trains");
	push(0, 100, CELL);
	fabric_port_rate(&ports, 0, RATE, now);
	output();
	TAP_EQ(seen.cells, 100, "limited meanwhile: it waits for its time");
	run_until(1000 + 11);
	TAP_EQ(seen.cells, 101, "and leaves then");
	push(0, 101, CELL);
	fabric_port_rate(&ports, 0, 0, now);
	output();
	TAP_EQ(seen.cells, 102, "unlimited again: at once");
	run_until(100000);
	fabric_port_rate(&ports, 0, RATE, now);
	run_until(200000);
	TAP_OK(seen.cells == 102 && seen.numbers == 102 && seen.wrong == 0, "nothing twice");
	push(0, 0, CELL);
	fabric_port_rate(&ports, 0, 0, now);
	push(0, 0, CELL);
	fabric_port_carrier(&ports, 0, false, now);
	output();
	run_until(300000);
	TAP_EQ(seen.cells, 102, "nothing of a port without carrier");
	close_ports("unlimited");
}

static void rates(void)
{
	see_again();
	open_ports(1, FABRIC_TRAIN_MAX, RATE, 1);
	for (uint32_t n = 0; n < 20; n++)
		push(0, n, 500); /* 200 ns */
	now.ns += 100;
	fabric_port_rate(&ports, 0, RATE / 2, now);
	run_until(1299);
	TAP_EQ(seen.trains, 0, "half is left, at half the rate");
	run_until(1300);
	TAP_EQ(seen.trains, 1, "it takes twice as long");
	for (uint32_t n = 20; n < 40; n++)
		push(0, n, 500);
	now.ns += 100;
	fabric_port_rate(&ports, 0, RATE / 2, now);
	fabric_port_rate(&ports, 0, 2 * RATE, now);
	run_until(1400 + 75);
	TAP_EQ(seen.trains, 2, "a faster one takes what is left faster");
	run_until(2000);
	push(0, 40, CELL);
	TAP_EQ(fabric_ports_deadline(&ports).ns, 2000 + 6, "an idle port starts at its new rate");
	close_ports("rates");
}

/* Trains queued, under way, departed but not yet output: all are lost with the carrier, counted. */
static void carrier(void)
{
	struct fabric_frame *taken;

	see_again();
	open_ports(3, FABRIC_TRAIN_MAX, RATE, 1);
	for (uint32_t n = 0; n < 100; n++)
		for (uint32_t port = 0; port < 3; port++)
			push(port, n, CELL);
	now = (dsf_instant){ 1000 + 700 };
	fabric_ports_expire(&ports, now); /* two trains of each have departed */
	taken = fabric_ports_output(&ports, now);
	fabric_port_carrier(&ports, 1, false, now);
	fabric_port_carrier(&ports, 1, false, now);
	TAP_EQ(ports.ports[1].counters.discarded_cells, taken->port == 1 ? 70 : 100,
		"carrier loss counts every cell that had not left");
	TAP_EQ(ports.ports[1].queue_bytes, 0, "and leaves no queue");
	look(taken);
	fabric_frame_free(&ports, taken);
	run_until(100000);
	TAP_EQ(seen.cells, 300 - ports.ports[1].counters.discarded_cells,
		"the others are not lost");
	see_again();
	seen.next_sequence = ports.ports[1].link_sequence;
	fabric_port_carrier(&ports, 1, true, now);
	push(1, 0, CELL);
	run_until(now.ns + 11);
	TAP_OK(seen.cells == 1 && seen.sequence_gaps == 0 && seen.wrong == 0, "it works again");
	for (int flap = 0; flap < 100; flap++) {
		push(1, 0, CELL);
		push_control(1, 0);
		if (flap % 3 == 0)
			fabric_ports_expire(&ports, dsf_time_after(now, 100));
		fabric_port_carrier(&ports, 1, false, now);
		fabric_port_carrier(&ports, 1, true, now);
	}
	TAP_OK(fabric_ports_output(&ports, now) == NULL, "flaps leave nothing behind");
	close_ports("carrier");
}

static void wrap(void)
{
	see_again();
	open_ports(1, FABRIC_TRAIN_MAX, RATE, 1);
	ports.ports[0].link_sequence = UINT32_MAX - 10;
	seen.next_sequence = UINT32_MAX - 10;
	for (uint32_t n = 0; n < 20; n++)
		push(0, n, CELL);
	run_until(10000);
	TAP_OK(seen.cells == 20 && seen.sequence_gaps == 0 && seen.wrong == 0,
		"link sequences go over their wrap");
	close_ports("wrap");
}

#define TRIALS 100000u

static void drive(const struct fabric_impairment *impairment, uint64_t seed)
{
	see_again();
	open_ports(1, FABRIC_TRAIN_MAX, RATE, seed);
	ports.ports[0].impairment = *impairment;
	for (uint32_t n = 0; n < TRIALS; n++) {
		push(0, n, CELL);
		run_until(now.ns + 300); /* a train each, then idle */
	}
	run_until(now.ns + 1000000);
}

static bool within(uint64_t got, uint64_t want)
{
	/* Five standard deviations of a binomial: sqrt(want), about. */
	return (got > want ? got - want : want - got) * (got > want ? got - want : want - got) <
	       25 * want;
}

static void loss(uint64_t seed)
{
	struct fabric_impairment i = { .loss_ppm = 10000 };
	uint64_t lost;

	drive(&i, seed);
	lost = ports.ports[0].counters.lost_cells;
	TAP_OK(within(lost, TRIALS / 100), "seed %" PRIu64 ": 1 %% loss takes %" PRIu64 " of %u",
		seed, lost, TRIALS);
	TAP_OK(seen.cells + lost == TRIALS && seen.sequence_gaps <= lost &&
			seen.sequence_gaps + 100 > lost && seen.wrong == 0,
		"what is lost is a gap in the link sequence");
	close_ports("loss");
	i = (struct fabric_impairment){ .corrupt_ppm = 10000 };
	drive(&i, seed);
	TAP_OK(within(seen.corrupt, TRIALS / 100) &&
			seen.corrupt == ports.ports[0].counters.corrupted_cells &&
			seen.cells == TRIALS && seen.numbers == TRIALS,
		"seed %" PRIu64 ": 1 %% corruption marks %" PRIu64 " of %u, loses none", seed,
		seen.corrupt, TRIALS);
	close_ports("corruption");
	i = (struct fabric_impairment){ .silent = true };
	drive(&i, seed);
	TAP_OK(seen.trains == 0 && ports.ports[0].counters.lost_cells == TRIALS &&
			ports.ports[0].counters.frames == 0,
		"silence lets nothing out, and counts");
	close_ports("silence");
}

static void delays(uint64_t seed)
{
	struct fabric_impairment i = { .delay_ns = 5000 };
	uint64_t last;

	drive(&i, seed);
	TAP_EQ(seen.first_depart.ns, 1000 + 11 + 5000, "delay is added");
	TAP_OK(seen.earlier == 0 && seen.numbers == TRIALS, "order stays");
	ports.ports[0].impairment.delay_ns = 0;
	last = seen.depart.ns;
	see_again();
	push(0, 0, CELL);
	run_until(now.ns + 1000000);
	TAP_OK(seen.depart.ns >= last, "also when the delay ends");
	close_ports("delay");
	i = (struct fabric_impairment){ .jitter_ns = 2000 };
	drive(&i, seed);
	TAP_OK(seen.earlier == 0 && seen.numbers == TRIALS && seen.wrong == 0,
		"seed %" PRIu64 ": jitter keeps order", seed);
	TAP_OK(seen.first_depart.ns >= 1011 && seen.first_depart.ns <= 1011 + 2000,
		"and stays within its bounds");
	close_ports("jitter");
	i = (struct fabric_impairment){ .reorder_ppm = 10000 };
	drive(&i, seed);
	TAP_OK(within(seen.earlier, TRIALS / 100),
		"seed %" PRIu64 ": reordering alone reorders: %" PRIu64 " of %u trains", seed,
		seen.earlier, TRIALS);
	TAP_EQ(seen.cells, TRIALS, "and loses none");
	close_ports("reorder");
}

static void same_seed(void)
{
	struct fabric_impairment i = { .loss_ppm = 100000, .jitter_ns = 100, .corrupt_ppm = 1000 };
	struct seen first;

	drive(&i, 7);
	first = seen;
	close_ports("first");
	drive(&i, 7);
	TAP_OK(memcmp(&first, &seen, sizeof(seen)) == 0, "one seed, one run");
	close_ports("second");
	drive(&i, 8);
	TAP_OK(memcmp(&first, &seen, sizeof(seen)) != 0, "another seed, another run");
	close_ports("third");
}

static void failing_memory(void)
{
	uint32_t failed = 0;

	for (unsigned long nth = 1; nth < 12; nth++) {
		uint64_t pushed = 0;

		see_again();
		memory.fail_at = nth;
		memory.failed = false;
		if (open_ports(40, 0, RATE, 1) < 0) {
			failed++;
			TAP_EQ(memory.live, 0, "init fails at allocation %lu, without a leak", nth);
			continue;
		}
		for (uint32_t n = 0; n < 400; n++)
			pushed += push(n % 40, n, CELL);
		run_until(100000000);
		failed += memory.failed;
		if (seen.cells != pushed || ports.drops + pushed != 400)
			TAP_OK(false, "allocation %lu fails: %" PRIu64 " of %" PRIu64 " cells left",
				nth, seen.cells, pushed);
		memory.fail_at = 0;
		fabric_ports_close(&ports);
		if (memory.live != 0)
			TAP_EQ(memory.live, 0, "allocation %lu fails: a leak", nth);
	}
	TAP_OK(failed >= 8, "%u allocations failed, one a run", failed);
}

int main(void)
{
	one_train();
	saturated(RATE, CELL);
	saturated(445000000000ull, 511);
	saturated(333333333ull, 192);
	saturated(3, 512);
	one_cell_a_frame();
	small_trains();
	control_first();
	short_trains();
	unlimited();
	stopped(RATE);
	stopped(0);
	stop_flag();
	rates();
	carrier();
	wrap();
	for (uint64_t seed = 1; seed <= 3; seed++) {
		loss(seed);
		delays(seed);
	}
	same_seed();
	failing_memory();
	return TAP_DONE();
}
