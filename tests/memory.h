/*
 * memory.h - dsf_memory for tests: malloc that counts, and that can fail at the n-th call
 *
 *	struct test_memory memory = TEST_MEMORY(memory);
 *	memory.fail_at = 3;    the third allocation from now gives NULL; 0: none does
 *	memory.live            bytes that are out: 0 at the end, or something leaks
 */
#ifndef DSF_TESTS_MEMORY_H
#define DSF_TESTS_MEMORY_H
#include <stdbool.h>
#include <stdlib.h>
#include "base/memory.h"

struct test_memory {
	struct dsf_memory memory;
	size_t live;
	unsigned long calls;
	unsigned long fail_at; /* counts down */
	bool failed;
};

__attribute__((unused)) static void *test_memory_alloc(void *user, size_t size)
{
	struct test_memory *m = user;
	void *block;

	m->calls++;
	if (m->fail_at > 0 && --m->fail_at == 0) {
		m->failed = true;
		return NULL;
	}
	block = calloc(1, size);
	if (block == NULL)
		abort();
	m->live += size;
	return block;
}

__attribute__((unused)) static void test_memory_release(void *user, void *block, size_t size)
{
	struct test_memory *m = user;

	m->live -= size;
	free(block);
}

#define TEST_MEMORY(name)                                                                          \
	{                                                                                          \
		.memory = { test_memory_alloc, test_memory_release, &(name) }                      \
	}

#endif
