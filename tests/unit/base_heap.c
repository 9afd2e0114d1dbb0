#include "base/err.h"
#include "base/heap.h"
#include "base/rng.h"
#include "tests/memory.h"
#include "tests/tap.h"

#define ENTRIES 300u

struct timer {
	int before;
	struct dsf_heap_entry entry;
	bool set;
};

/* Is it a heap, and does every entry know its place? */
static bool sound(const struct dsf_heap *h)
{
	for (uint32_t i = 0; i < h->count; i++) {
		const struct dsf_heap_entry *e = h->entries[i],
					    *up = h->entries[(i + 1) / 2 - (i > 0)];

		if (e->place != i + 1)
			return false;
		if (i > 0 && (up->at.ns > e->at.ns ||
				     (up->at.ns == e->at.ns && up->sequence > e->sequence)))
			return false;
	}
	return true;
}

static void against_a_model(uint64_t seed, uint64_t instants)
{
	static struct timer timers[ENTRIES];
	struct test_memory m;
	struct dsf_heap h;
	struct dsf_rng rng;
	uint32_t wrong = 0, count = 0;
	uint64_t at = 0, sequence = 0;

	memset(timers, 0, sizeof(timers));
	m = (struct test_memory)TEST_MEMORY(m);
	dsf_rng_init(&rng, seed);
	dsf_heap_init(&h, &m.memory);
	TAP_EQ(m.calls, 0, "seed %d: init allocates nothing", (int)seed);
	for (int i = 0; i < 30000; i++) {
		struct timer *t = &timers[dsf_rng_below(&rng, ENTRIES)];

		if (dsf_rng_below(&rng, 3) > 0) {
			wrong += dsf_heap_set(&h, &t->entry,
					 (dsf_instant){ dsf_rng_below(&rng, instants) }) != 0;
			count += !t->set;
			t->set = true;
		} else {
			dsf_heap_remove(&h, &t->entry); /* also when it is not in it */
			count -= t->set;
			t->set = false;
		}
		wrong += h.count != count || (t->entry.place != 0) != t->set;
		if (i % 100 == 0)
			wrong += !sound(&h);
	}
	while (dsf_heap_first(&h) != NULL) {
		struct dsf_heap_entry *e = dsf_heap_first(&h);

		wrong += e->at.ns < at || (e->at.ns == at && e->sequence < sequence);
		wrong += dsf_heap_at(&h).ns != e->at.ns;
		at = e->at.ns;
		sequence = e->sequence;
		wrong += !DSF_CONTAINER(e, struct timer, entry)->set;
		dsf_heap_remove(&h, e);
		count--;
	}
	TAP_EQ(wrong, 0, "seed %d: 30000 steps; what comes out is in order", (int)seed);
	TAP_EQ(count, 0, "seed %d: all came out", (int)seed);
	TAP_OK(dsf_time_is_never(dsf_heap_at(&h)), "seed %d: an empty heap is never due",
		(int)seed);
	dsf_heap_close(&h);
	TAP_EQ(m.blocks, 0, "seed %d: all memory is back", (int)seed);
}

static void ties(void)
{
	struct test_memory m;
	struct dsf_heap h;
	struct dsf_heap_entry e[50] = { 0 };
	uint32_t wrong = 0;

	m = (struct test_memory)TEST_MEMORY(m);
	dsf_heap_init(&h, &m.memory);
	for (int i = 0; i < 50; i++)
		dsf_heap_set(&h, &e[i], (dsf_instant){ 5 });
	dsf_heap_set(&h, &e[0], (dsf_instant){ 5 }); /* set again: now the last */
	for (int i = 1; i < 50; i++) {
		wrong += dsf_heap_first(&h) != &e[i];
		dsf_heap_remove(&h, &e[i]);
	}
	TAP_EQ(wrong, 0, "entries of one instant come out as they were set");
	TAP_OK(dsf_heap_first(&h) == &e[0], "and one that was set again last");
	dsf_heap_set(&h, &e[1], DSF_NEVER);
	TAP_OK(dsf_heap_first(&h) == &e[0], "never is after everything");
	dsf_heap_close(&h);
}

static void no_memory(void)
{
	struct test_memory m;
	struct dsf_heap h;
	struct dsf_heap_entry e[40] = { 0 };
	int inside = 0;

	m = (struct test_memory)TEST_MEMORY(m);
	dsf_heap_init(&h, &m.memory);
	test_memory_fail_from(&m, 1);
	TAP_EQ(dsf_heap_set(&h, &e[0], DSF_EPOCH), -DSF_E_NOMEM, "no memory for the first");
	TAP_OK(h.count == 0 && e[0].place == 0, "and nothing changed");
	test_memory_fail_from(&m, 2);
	while (inside < 40 &&
		dsf_heap_set(&h, &e[inside], (dsf_instant){ 40u - (unsigned)inside }) == 0)
		inside++;
	TAP_OK(inside > 0 && inside < 40, "%d fitted", inside);
	TAP_OK(h.count == (uint32_t)inside && e[inside].place == 0 && sound(&h),
		"the heap is whole");
	TAP_EQ(dsf_heap_set(&h, &e[0], DSF_EPOCH), 0, "moving needs no memory");
	TAP_OK(dsf_heap_first(&h) == &e[0], "and moves");
	dsf_heap_close(&h);
	TAP_EQ(m.blocks, 0, "all memory is back");
}

int main(void)
{
	against_a_model(1, 1000000);
	against_a_model(2, 10);
	against_a_model(3, 1);
	ties();
	no_memory();
	return TAP_DONE();
}
