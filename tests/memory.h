/*
 * memory.h - dsf_memory for tests: malloc that counts and checks, and that can fail
 *
 *	struct test_memory memory = TEST_MEMORY(memory);
 *	memory.fail_at = 3;                the third allocation from now gives NULL, once; 0: none
 *	test_memory_fail_from(&memory, 3)  the third from now and all after it; 0: none
 *	memory.live                        bytes that are out: 0 at the end, or something leaks
 *	memory.blocks                      blocks that are out
 *
 * A block that is given back with a wrong size, or that was written behind its end, aborts.
 */
#ifndef DSF_TESTS_MEMORY_H
#define DSF_TESTS_MEMORY_H
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include "base/memory.h"

#define TEST_MEMORY_GUARD 0xd5feedull

struct test_memory {
	struct dsf_memory memory;
	size_t live;
	unsigned long blocks;
	unsigned long calls;
	unsigned long fail_at;   /* counts down */
	unsigned long fail_from; /* a value of calls */
	bool failed;
};

__attribute__((unused)) static void *test_memory_alloc(void *user, size_t size)
{
	struct test_memory *m = user;
	uint64_t guard = TEST_MEMORY_GUARD, stored = size;
	uint8_t *block;

	m->calls++;
	if ((m->fail_at > 0 && --m->fail_at == 0) ||
		(m->fail_from > 0 && m->calls >= m->fail_from)) {
		m->failed = true;
		return NULL;
	}
	block = calloc(1, 16 + size + sizeof(guard));
	if (block == NULL)
		abort();
	memcpy(block, &stored, sizeof(stored));
	memcpy(block + 16 + size, &guard, sizeof(guard));
	m->live += size;
	m->blocks++;
	return block + 16;
}

__attribute__((unused)) static void test_memory_release(void *user, void *block, size_t size)
{
	struct test_memory *m = user;
	uint8_t *start = (uint8_t *)block - 16;
	uint64_t guard = 0, stored;

	memcpy(&stored, start, sizeof(stored));
	if (stored == size)
		memcpy(&guard, start + 16 + size, sizeof(guard));
	if (stored != size || guard != TEST_MEMORY_GUARD || m->blocks == 0)
		abort();
	m->live -= size;
	m->blocks--;
	free(start);
}

__attribute__((unused)) static void test_memory_fail_from(struct test_memory *m, unsigned long nth)
{
	m->fail_from = nth == 0 ? 0 : m->calls + nth;
}

#define TEST_MEMORY(name)                                                                          \
	{                                                                                          \
		.memory = { test_memory_alloc, test_memory_release, &(name) }                      \
	}

#endif
