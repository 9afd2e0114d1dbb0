#include "uring/memory.h"
#include <errno.h>
#include <stdlib.h>
#include "base/err.h"
#include "metaroce/memory.h"

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
	if (metaroce_memory_kind(span->memory) != METAROCE_MEMORY_PATTERN)
		return -EFAULT;
	metaroce_pattern_fill(span->memory, span->offset, at, span->size);
	return 0;
}

int uring_memory_place(struct uring_memory *m, const struct node_span *span, const uint8_t *bytes)
{
	size_t wrong;

	if (metaroce_memory_kind(span->memory) != METAROCE_MEMORY_PATTERN)
		return -EFAULT;
	wrong = metaroce_pattern_check(span->memory, span->offset, bytes, span->size);
	m->bytes_wrong += wrong;
	return wrong > 0 ? -DSF_E_CORRUPT : 0;
}
