#include "fabric/reasm.h"
#include "base/err.h"
#include "base/rng.h"
#include "tests/memory.h"
#include "tests/tap.h"

#define CELL_BYTES 512u
#define PAYLOAD    (CELL_BYTES - FABRIC_CELL_HEADER)
#define TIMEOUT_NS 20000u
#define IDLE_NS    1000000000u
#define PORT       77u
#define EPOCH      1001u

static struct test_memory memory = TEST_MEMORY(memory);
static struct fabric_packets packets;
static struct fabric_reasm reasm;

static void open_all(void)
{
	fabric_packets_init(&packets, &memory.memory, 64 << 20);
	fabric_reasm_init(&reasm, &memory.memory, &packets, CELL_BYTES, TIMEOUT_NS, IDLE_NS);
}

static void close_all(const char *name)
{
	fabric_reasm_close(&reasm);
	for (int i = 0; i < FABRIC_PACKET_POOLS; i++)
		if (packets.pools[i].used != 0)
			TAP_EQ(packets.pools[i].used, 0, "%s: packets of pool %d are out", name, i);
	fabric_packets_close(&packets);
	TAP_EQ(memory.live, 0, "%s: nothing is left", name);
}

static uint32_t cells_of(uint32_t size)
{
	return (size + PAYLOAD - 1) / PAYLOAD;
}

/* A right cell: number index of packet sequence, whose bytes are a function of both. */
static struct fabric_cell cell_of(uint32_t sequence, uint32_t size, uint32_t index)
{
	uint32_t left = size - index * PAYLOAD;
	struct fabric_cell cell = { .kind = FABRIC_CELL_DATA,
		.class = FABRIC_CLASS_RDMA,
		.index = (uint8_t)index,
		.source = 3,
		.system_port = PORT,
		.packet_sequence = sequence,
		.packet_size = (uint16_t)size,
		.packet_stored = (uint16_t)size,
		.epoch = EPOCH };

	cell.size = cell.stored = (uint16_t)(left < PAYLOAD ? left : PAYLOAD);
	return cell;
}

static uint8_t byte_of(uint32_t sequence, uint32_t at)
{
	return (uint8_t)dsf_mix((uint64_t)sequence << 32 | at);
}

static int put_cell(const struct fabric_cell *cell, uint64_t now_ns)
{
	uint8_t payload[PAYLOAD];

	for (uint32_t i = 0; i < cell->stored; i++)
		payload[i] = byte_of(cell->packet_sequence, cell->index * PAYLOAD + i);
	return fabric_reasm_input(&reasm, cell, payload, (dsf_instant){ now_ns });
}

static int put(uint32_t sequence, uint32_t size, uint32_t index, uint64_t now_ns)
{
	struct fabric_cell cell = cell_of(sequence, size, index);

	return put_cell(&cell, now_ns);
}

static int put_whole(uint32_t sequence, uint32_t size, uint64_t now_ns)
{
	for (uint32_t i = 0; i < cells_of(size); i++) {
		int err = put(sequence, size, i, now_ns);

		if (err < 0)
			return err;
	}
	return 0;
}

/* Takes one whole packet; its size, 0: none. Checks its bytes against sequence. */
static uint32_t take(uint32_t sequence)
{
	struct fabric_packet *p = fabric_packet_queue_pop(&reasm.done);
	uint32_t size = 0, wrong = 0;

	if (p == NULL)
		return 0;
	size = p->size;
	for (uint32_t i = 0; i < p->stored; i++)
		wrong += p->bytes[i] != byte_of(sequence, i);
	fabric_packet_free(&packets, p);
	if (wrong > 0)
		TAP_EQ(wrong, 0, "bytes of packet %u", sequence);
	return size;
}

static uint32_t take_all(void)
{
	struct fabric_packet *p;
	uint32_t count = 0;

	while ((p = fabric_packet_queue_pop(&reasm.done)) != NULL) {
		fabric_packet_free(&packets, p);
		count++;
	}
	return count;
}

/* The size of the only lost packet that is handed on; 0: none, or several. */
static uint32_t take_lost(void)
{
	struct fabric_packet *p = fabric_packet_queue_pop(&reasm.lost);
	uint32_t size = p == NULL || p->next != NULL ? 0 : p->size;

	if (p != NULL)
		fabric_packet_free(&packets, p);
	return size;
}

static void malformed(void)
{
	static const struct {
		const char *name;
		uint32_t size, stored, index;
		uint16_t cell_size, cell_stored;
	} cases[] = {
		{ "packet of no bytes", 0, 0, 0, 0, 0 },
		{ "packet larger than any", FABRIC_PACKET_MAX + 1, 0, 0, PAYLOAD, 0 },
		{ "more present than its size", 100, 101, 0, 100, 100 },
		{ "cell behind the packet's end", 100, 100, 1, 100, 100 },
		{ "cell number 255", 1000, 1000, 255, PAYLOAD, PAYLOAD },
		{ "inner cell that is short", 1000, 1000, 0, PAYLOAD - 1, PAYLOAD - 1 },
		{ "last cell that is long", 1000, 1000, 2, PAYLOAD, PAYLOAD },
		{ "last cell that is short", 1000, 1000, 2, 39, 39 },
		{ "more payload present than of the packet", 1000, 500, 1, PAYLOAD, 21 },
		{ "less payload present than of the packet", 1000, 500, 1, PAYLOAD, 19 },
		{ "no payload where some is present", 1000, 1000, 0, PAYLOAD, 0 },
		{ "payload behind what is present", 1000, 480, 1, PAYLOAD, 1 },
	};

	open_all();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fabric_cell cell = cell_of(0, 1000, 0);

		cell.packet_size = (uint16_t)cases[i].size;
		cell.packet_stored = (uint16_t)cases[i].stored;
		cell.index = (uint8_t)cases[i].index;
		cell.size = cases[i].cell_size;
		cell.stored = cases[i].cell_stored;
		TAP_EQ(put_cell(&cell, 0), -DSF_E_BADFIELD, "malformed: %s", cases[i].name);
	}
	TAP_EQ(reasm.contexts.count, 0, "malformed: makes no state");
	TAP_EQ(put(0, 1000, 0, 0), 0, "a right cell is taken");
	TAP_EQ(put(0, 1001, 1, 0), -DSF_E_BADFIELD, "malformed: another size for the same packet");
	TAP_EQ(put(0, 1000, 0, 0), -DSF_E_DUPLICATE, "a second copy is told");
	TAP_EQ(put(0, 1000, 1, 0), 0, "middle cell");
	TAP_EQ(take(0), 0, "not whole yet");
	TAP_EQ(put(0, 1000, 2, 0), 0, "last cell");
	TAP_EQ(take(0), 1000, "whole");
	TAP_EQ(put(0, 1000, 2, 0), -DSF_E_STALE, "a cell of a packet that was handed on");
	TAP_EQ(reasm.cells_duplicate, 2, "both copies are counted");
	close_all("malformed");
}

/* The smallest cell that a topology may ask for, the largest packet. */
static void many_cells(void)
{
	struct fabric_cell cell = { .kind = FABRIC_CELL_DATA,
		.system_port = PORT,
		.packet_size = FABRIC_PACKET_MAX,
		.epoch = EPOCH };
	uint32_t payload = FABRIC_CELL_MIN - FABRIC_CELL_HEADER;
	uint32_t count = (FABRIC_PACKET_MAX + payload - 1) / payload, wrong = 0;

	fabric_packets_init(&packets, &memory.memory, 1 << 20);
	fabric_reasm_init(&reasm, &memory.memory, &packets, FABRIC_CELL_MIN, TIMEOUT_NS, IDLE_NS);
	for (uint32_t i = count; i-- > 0;) {
		uint32_t left = FABRIC_PACKET_MAX - i * payload;

		cell.index = (uint8_t)i;
		cell.size = (uint16_t)(left < payload ? left : payload);
		wrong += fabric_reasm_input(&reasm, &cell, NULL, DSF_EPOCH) != 0;
	}
	TAP_OK(wrong == 0 && take_all() == 1, "%u cells make one packet of %u bytes", count,
		FABRIC_PACKET_MAX);
	close_all("many cells");
}

/* Packets of all sizes, cells shuffled within a span, some twice: all come out, in order. */
static void any_interleaving(uint64_t seed)
{
	enum { PACKETS = 300, CELLS_MAX = PACKETS * 20 };
	static struct fabric_cell cells[CELLS_MAX];
	static uint32_t order[CELLS_MAX];
	struct dsf_rng rng;
	uint32_t count = 0, next = 0, bad = 0, span;
	uint32_t first = (uint32_t)seed * 0x40000000u - 100; /* over the wrap of sequences */

	dsf_rng_init(&rng, seed);
	open_all();
	put_whole(first - 1, 64, 0); /* the context knows where it is */
	fabric_reasm_expire(&reasm, (dsf_instant){ 2 * TIMEOUT_NS });
	take_all();
	for (uint32_t i = 0; i < PACKETS; i++) {
		uint32_t size = 1 + (uint32_t)dsf_rng_below(&rng, FABRIC_PACKET_MAX);

		for (uint32_t c = 0; c < cells_of(size); c++)
			cells[count++] = cell_of(first + i, size, c);
	}
	span = 1 + (uint32_t)dsf_rng_below(&rng, count);
	for (uint32_t i = 0; i < count; i++)
		order[i] = i;
	for (uint32_t at = 0; at < count; at += span)
		dsf_rng_shuffle(&rng, order + at, count - at < span ? count - at : span);
	for (uint32_t i = 0; i < count; i++) {
		const struct fabric_cell *cell = &cells[order[i]];

		bad += put_cell(cell, 2 * TIMEOUT_NS + i) != 0;
		if (dsf_rng_below(&rng, 10) == 0)
			bad += put_cell(cell, 2 * TIMEOUT_NS + i) >= 0;
		while (take(first + next) > 0) /* checks every byte against its sequence */
			next++;
	}
	TAP_OK(bad == 0 && next == PACKETS && reasm.packets_lost == 0,
		"seed %" PRIu64 ": %u packets in %u cells shuffled over %u, in order", seed, next,
		count, span);
	close_all("interleaving");
}

static void lost_cells(void)
{
	open_all();
	put_whole(0, 1000, 0);
	TAP_EQ(take_all(), 1, "first packet");
	put(1, 1000, 0, 100);
	put(1, 1000, 2, 110); /* the middle is lost */
	put_whole(2, 1000, 200);
	put_whole(4, 1000, 300); /* 3 is lost whole */
	put(5, 1000, 1, 400);
	TAP_EQ(take_all(), 0, "nothing overtakes what may still come");
	fabric_reasm_expire(&reasm, (dsf_instant){ 99 + TIMEOUT_NS });
	TAP_EQ(take_all(), 0, "nothing is given up too early");
	TAP_EQ(fabric_reasm_deadline(&reasm).ns, 100 + TIMEOUT_NS,
		"the time-out counts from the packet's first cell");
	fabric_reasm_expire(&reasm, (dsf_instant){ 100 + TIMEOUT_NS });
	TAP_EQ(take(2), 1000, "then the next whole one goes");
	TAP_EQ(take_all(), 0, "alone");
	TAP_EQ(reasm.packets_lost, 1, "one is lost");
	TAP_EQ(take_lost(), 1000, "and handed on as such, for its credit");
	TAP_EQ(put(1, 1000, 1, 101 + TIMEOUT_NS), -DSF_E_STALE, "its late cell is dropped");
	fabric_reasm_expire(&reasm, (dsf_instant){ 300 + TIMEOUT_NS });
	TAP_EQ(take(4), 1000, "the one behind a packet that never came");
	TAP_EQ(reasm.packets_lost, 2, "which is lost too");
	TAP_EQ(take_lost(), 1000, "and taken to be as long as others");
	put(5, 1000, 0, 350 + TIMEOUT_NS);
	put(5, 1000, 2, 350 + TIMEOUT_NS);
	TAP_EQ(take(5), 1000, "a cell that comes in time saves its packet");
	fabric_reasm_expire(&reasm, (dsf_instant){ 10 * TIMEOUT_NS });
	TAP_EQ(reasm.timers.count, 0, "no timer is left");
	TAP_OK(reasm.packets_lost == 2 && reasm.packets_done == 4, "counted once each");
	close_all("lost cells");
}

/* A packet of a new context whose first sequences nobody will ever send again. */
static void late_join(void)
{
	open_all();
	put_whole(100, 1000, 0);
	put_whole(99, 1000, 10);
	TAP_EQ(take_all(), 0, "late join: what came before may be under way");
	fabric_reasm_expire(&reasm, (dsf_instant){ 20 + TIMEOUT_NS });
	TAP_EQ(take(99), 1000, "late join: the earliest first");
	TAP_EQ(take(100), 1000, "late join: in order");
	TAP_EQ(reasm.packets_lost, 0, "late join: what was sent to an earlier life isn't lost");
	put_whole(101, 64, 30 + TIMEOUT_NS);
	TAP_EQ(take(101), 64, "late join: from there on at once");
	put_whole(103, 64, 40 + TIMEOUT_NS);
	fabric_reasm_expire(&reasm, (dsf_instant){ 3 * TIMEOUT_NS });
	TAP_EQ(take(103), 64, "late join: a gap later on");
	TAP_EQ(reasm.packets_lost, 1, "late join: is a loss");
	close_all("late join");
}

static void late_join_far(void)
{
	uint32_t first = 0x87654321u;

	open_all();
	TAP_EQ(put_whole(first, 1000, 0), 0, "joined at a sequence far from 0");
	TAP_EQ(put_whole(first + 1, 1000, 0), 0, "and the next");
	fabric_reasm_expire(&reasm, (dsf_instant){ TIMEOUT_NS });
	TAP_OK(take(first) == 1000 && take(first + 1) == 1000, "both come out");
	TAP_EQ(reasm.packets_lost, 0, "nothing is lost");
	close_all("late join far");
}

static void window(void)
{
	uint32_t got = 0;

	open_all();
	put_whole(0, 64, 0);
	take_all();
	/* Sequence 1 lacks a cell; the window behind it fills. */
	put(1, 1000, 0, 0);
	for (uint32_t i = 2; i <= FABRIC_REASM_WINDOW_MAX; i++)
		if (put_whole(i, 64, 1) < 0)
			TAP_OK(false, "packet %u of the window", i);
	TAP_EQ(reasm.packets_lost, 0, "window: holds %u packets", FABRIC_REASM_WINDOW_MAX);
	TAP_EQ(take_all(), 0, "window: nothing overtakes");
	put(FABRIC_REASM_WINDOW_MAX + 1, 1000, 0, 2); /* one more than there is room for */
	TAP_EQ(reasm.packets_lost, 1, "window: one more pushes out the first");
	got = take_all();
	TAP_EQ(got, FABRIC_REASM_WINDOW_MAX - 1, "window: and lets the rest go");
	put(FABRIC_REASM_WINDOW_MAX + 1, 1000, 1, 2);
	put(FABRIC_REASM_WINDOW_MAX + 1, 1000, 2, 2);
	TAP_EQ(take(FABRIC_REASM_WINDOW_MAX + 1), 1000, "window: the new one completes");
	close_all("window");
}

/* A jump that pushes one packet out must not cost those behind it that still have room. */
static void slide_spares(void)
{
	uint32_t last = FABRIC_REASM_WINDOW_MAX + 1;

	open_all();
	put_whole(0, 64, 0);
	put(1, 1000, 0, 0);
	put_whole(2, 64, 0);
	put(3, 1000, 0, 0); /* lacks cells, but has room */
	put_whole(4, 64, 0);
	take_all();
	put_whole(last, 64, 0);
	TAP_EQ(reasm.packets_lost, 1, "slide: only what has no room is given up");
	TAP_EQ(take(2), 64, "slide: what is whole behind it goes");
	put(3, 1000, 1, 0);
	put(3, 1000, 2, 0);
	TAP_EQ(take(3), 1000, "slide: the next unfinished one can still be finished");
	TAP_EQ(take(4), 64, "slide: and the one behind it");
	close_all("slide");
}

static void far_jump(void)
{
	open_all();
	put_whole(0, 64, 0);
	put(1, 1000, 0, 0);
	put_whole(2, 64, 0);
	take_all();
	put_whole(1000000, 64, 0);
	TAP_EQ(take(2), 64, "far jump: what was whole is handed on");
	fabric_reasm_expire(&reasm, (dsf_instant){ TIMEOUT_NS });
	TAP_EQ(take(1000000), 64, "far jump: and what jumped");
	TAP_EQ(reasm.packets_lost, 1000000 - 2, "far jump: what was skipped is lost, once each");
	close_all("far jump");
}

static void epochs(void)
{
	struct fabric_cell cell = cell_of(0, 64, 0);

	open_all();
	put_whole(0, 64, 0);
	put_whole(1, 64, 0);
	take_all();
	put_whole(3, 64, 0);
	cell.epoch = EPOCH + 1;
	TAP_EQ(put_cell(&cell, 0), 0, "epoch: a later one begins at sequence 0");
	TAP_EQ(take(0), 64, "epoch: at once");
	TAP_EQ(reasm.packets_lost, 2, "epoch: what was held of the old one is lost");
	TAP_EQ(put(4, 64, 0, 0), -DSF_E_STALE, "epoch: the old one is over");
	cell.epoch = 0x80000000u + EPOCH + 100;
	TAP_EQ(put_cell(&cell, 0), 0, "epoch: hours later, when the number has gone half round");
	TAP_EQ(take(0), 64, "epoch: is a new one too");
	cell.epoch = EPOCH;
	TAP_EQ(put_cell(&cell, 0), 0, "epoch: once more");
	TAP_EQ(take(0), 64, "epoch: over its wrap");
	close_all("epochs");
}

static void separate(void)
{
	struct fabric_cell cell = cell_of(0, 64, 0);
	uint32_t count = 0;

	open_all();
	put(0, 1000, 0, 0);
	for (uint32_t i = 0; i < 8; i++) {
		cell.source = (uint16_t)(i & 1);
		cell.class = (uint8_t)(i >> 1 & 1);
		cell.system_port = 5 + (i >> 2);
		count += put_cell(&cell, 0) == 0;
	}
	TAP_OK(count == 8 && take_all() == 8,
		"sources, classes and system ports don't wait for each other");
	close_all("separate");
}

/* The n-th allocation fails, once: an error at most, then all goes on. */
static void failing_memory(void)
{
	uint32_t failed = 0;

	for (unsigned long nth = 1; nth < 40; nth++) {
		uint32_t errors = 0, sequence = 0;

		open_all();
		memory.fail_at = nth;
		memory.failed = false;
		for (uint32_t i = 0; i < 200; i++) {
			int err = put_whole(i, 1 + i * 40, i);

			errors += err == -DSF_E_NOMEM;
			if (err < 0 && err != -DSF_E_NOMEM)
				TAP_EQ(err, -DSF_E_NOMEM, "failing memory at %lu", nth);
		}
		fabric_reasm_expire(&reasm, (dsf_instant){ 10 * TIMEOUT_NS });
		sequence = take_all();
		failed += memory.failed;
		if (sequence + errors != 200)
			TAP_OK(false, "allocation %lu fails: %u done, %u refused", nth, sequence,
				errors);
		memory.fail_at = 0;
		fabric_reasm_close(&reasm);
		fabric_packets_close(&packets);
		if (memory.live != 0)
			TAP_EQ(memory.live, 0, "allocation %lu fails: a leak", nth);
	}
	TAP_OK(failed >= 10, "%u allocations failed, one a run", failed);
}

static uint32_t put_from(uint32_t source, uint32_t sequence, uint64_t now_ns)
{
	struct fabric_cell cell = cell_of(sequence, 40, 0);
	struct fabric_packet *packet;
	int err;

	cell.source = (uint16_t)source;
	err = put_cell(&cell, now_ns);
	while ((packet = fabric_packet_queue_pop(&reasm.done)) != NULL)
		fabric_packet_free(&packets, packet);
	return err == 0 ? 0 : (uint32_t)-err;
}

static void run_until(uint64_t now_ns)
{
	while (fabric_reasm_deadline(&reasm).ns <= now_ns)
		fabric_reasm_expire(&reasm, fabric_reasm_deadline(&reasm));
}

/* Contexts are there while something of them is under way, or was not long ago. */
static void unused(void)
{
	uint64_t at = 1000;

	open_all();
	put_from(1, 0, at);
	put_from(2, 0, at);
	for (uint32_t i = 1; i < 10; i++) {
		at += IDLE_NS - 1;
		run_until(at);
		put_from(1, i, at);
	}
	TAP_EQ(reasm.contexts.count, 1, "unused: only the one in use is left");
	TAP_EQ(reasm.slots, 64, "unused: with its window");
	/* Half a packet waits for its time-out first, then its context goes too. */
	(void)put(0, 2000, 0, at);
	run_until(at + 10ull * IDLE_NS);
	TAP_EQ(reasm.packets_lost, 1, "unused: half a packet was given up");
	TAP_OK(reasm.contexts.count == 0 && reasm.slots == 0, "unused: all are gone");
	TAP_OK(dsf_time_is_never(fabric_reasm_deadline(&reasm)), "unused: and nothing ticks");
	at += 10ull * IDLE_NS;
	TAP_OK(put_from(1, 0, at) == 0 && reasm.packets_done == 12,
		"unused: a new one begins at 0 (%u)", (unsigned)reasm.packets_done);
	close_all("unused");
}

/* Windows of all contexts together have a limit. */
static void windows_full(void)
{
	uint32_t wide = FABRIC_REASM_SLOTS_MAX / FABRIC_REASM_WINDOW_MAX, refused = 0;

	open_all();
	for (uint32_t i = 0; i < wide; i++) {
		struct fabric_cell cell = cell_of(FABRIC_REASM_WINDOW_MAX - 1, 2000, 0);

		cell.source = (uint16_t)i;
		refused += put_cell(&cell, 1000) < 0;
	}
	TAP_EQ(refused, 0, "windows: %u of the widest", wide);
	TAP_EQ(reasm.slots, FABRIC_REASM_SLOTS_MAX, "windows: as many as there may be");
	TAP_EQ(put_from(wide, 0, 1000), DSF_E_FULL, "windows: no other");
	TAP_EQ(reasm.slots_full, 1, "windows: it is counted");
	TAP_EQ(put_from(0, 0, 1000), 0, "windows: those that are there go on");
	run_until(1000 + 3ull * IDLE_NS);
	TAP_OK(reasm.slots == 0 && put_from(wide, 0, 1000 + 3ull * IDLE_NS) == 0,
		"windows: there is room when they have gone");
	close_all("windows");
}

int main(void)
{
	malformed();
	many_cells();
	for (uint64_t seed = 1; seed <= 20; seed++)
		any_interleaving(seed);
	lost_cells();
	late_join();
	late_join_far();
	window();
	slide_spares();
	far_jump();
	epochs();
	separate();
	unused();
	windows_full();
	failing_memory();
	return TAP_DONE();
}
