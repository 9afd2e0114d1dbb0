#include "base/pool.h"
#include "tests/memory.h"
#include "tests/tap.h"

/* Takes until NULL; every object must be aligned, its own, and writable in full. */
static uint32_t take_all(struct dsf_pool *p, void **objects, uint32_t most)
{
	uint32_t count = 0;
	bool aligned = true, alone = true;

	while (count < most && (objects[count] = dsf_pool_take(p)) != NULL) {
		aligned = aligned && (uintptr_t)objects[count] % 16 == 0;
		memset(objects[count], (int)(count + 1), p->object_size);
		count++;
	}
	for (uint32_t i = 0; i < count; i++)
		alone = alone && ((uint8_t *)objects[i])[0] == (uint8_t)(i + 1) &&
			((uint8_t *)objects[i])[p->object_size - 1] == (uint8_t)(i + 1);
	TAP_OK(aligned, "objects are aligned to 16");
	TAP_OK(alone, "no two objects overlap");
	return count;
}

static void limits(void)
{
	static const struct {
		uint32_t size, slab, most;
	} cases[] = { { 1, 8, 8 }, { 24, 8, 20 }, { 24, 8, 3 }, { 100, 1, 5 }, { 16, 7, 50 },
		{ 8, 64, 1 }, { 40, 8, 0 }, { 48, 1000, 100 } };

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct test_memory m;
		struct dsf_pool p;
		void *objects[128];
		uint32_t count;

		m = (struct test_memory)TEST_MEMORY(m);
		dsf_pool_init(&p, &m.memory, cases[i].size, cases[i].slab, cases[i].most);
		TAP_EQ(m.calls, 0, "case %u: init allocates nothing", i);
		count = take_all(&p, objects, 128);
		TAP_EQ(count, cases[i].most, "case %u: exactly as many as the limit", i);
		TAP_EQ(p.used, count, "case %u: all are out", i);
		TAP_EQ(p.used_peak, count, "case %u: peak", i);
		TAP_OK(dsf_pool_take(&p) == NULL, "case %u: full stays full", i);
		if (count > 0) {
			dsf_pool_give(&p, objects[count / 2]);
			TAP_OK(dsf_pool_take(&p) == objects[count / 2],
				"case %u: a given one is taken", i);
		}
		dsf_pool_close(&p);
		TAP_EQ(m.blocks, 0, "case %u: close gives all memory back", i);
		TAP_EQ(take_all(&p, objects, 128), cases[i].most,
			"case %u: works again after close", i);
		dsf_pool_close(&p);
		dsf_pool_close(&p);
		TAP_EQ(m.live, 0, "case %u: close twice", i);
	}
}

static void no_memory(void)
{
	struct test_memory m;
	struct dsf_pool p = { 0 };
	void *objects[64];

	dsf_pool_close(&p); /* never made */
	m = (struct test_memory)TEST_MEMORY(m);
	dsf_pool_init(&p, &m.memory, 32, 4, 64);
	test_memory_fail_from(&m, 1);
	TAP_OK(dsf_pool_take(&p) == NULL, "no memory at first: NULL");
	TAP_EQ(p.used, 0, "nothing is out");
	test_memory_fail_from(&m, 3);
	TAP_EQ(take_all(&p, objects, 64), 8, "two slabs, then no memory");
	test_memory_fail_from(&m, 0);
	TAP_OK(dsf_pool_take(&p) != NULL, "memory is back: goes on");
	dsf_pool_close(&p);
	TAP_EQ(m.blocks, 0, "all memory is back");
}

static void reuse(void)
{
	struct test_memory m;
	struct dsf_pool p;
	void *objects[16];
	uint64_t calls;

	m = (struct test_memory)TEST_MEMORY(m);
	dsf_pool_init(&p, &m.memory, 32, 16, UINT32_MAX);
	for (int i = 0; i < 16; i++)
		objects[i] = dsf_pool_take(&p);
	TAP_OK((uint8_t *)objects[1] - (uint8_t *)objects[0] == 32,
		"objects come in address order");
	calls = m.calls;
	for (int round = 0; round < 1000; round++) {
		for (int i = 0; i < 16; i++)
			dsf_pool_give(&p, objects[(i * 7 + round) % 16]);
		for (int i = 0; i < 16; i++)
			objects[i] = dsf_pool_take(&p);
	}
	TAP_EQ(m.calls, calls, "no allocation for what was given back");
	TAP_EQ(p.used, 16, "16 out");
	TAP_EQ(p.used_peak, 16, "never more");
	dsf_pool_close(&p);
}

int main(void)
{
	limits();
	no_memory();
	reuse();
	return TAP_DONE();
}
