#include "uring/memory.h"
#include <errno.h>
#include <stdlib.h>

static void *core_alloc(void *user, size_t size)
{
	(void)user;
	return calloc(1, size);
}

static void core_release(void *user, void *block, size_t size)
{
	(void)user;
	(void)size;
	free(block);
}

const struct dsf_memory uring_memory_core = { core_alloc, core_release, NULL };

int uring_memory_gather(struct uring_memory *m, const struct node_span *span, uint8_t *at)
{
	(void)m;
	(void)span;
	(void)at;
	return -EFAULT;
}

int uring_memory_place(struct uring_memory *m, const struct node_span *span, const uint8_t *bytes)
{
	(void)m;
	(void)span;
	(void)bytes;
	return -EFAULT;
}
