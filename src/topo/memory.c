#include "topo/memory.h"
#include <stdlib.h>

static void *allocate(void *user, size_t size)
{
	(void)user;
	return calloc(1, size);
}

static void release(void *user, void *block, size_t size)
{
	(void)user;
	(void)size;
	free(block);
}

const struct dsf_memory topo_memory = { allocate, release, NULL };
