#include "uring/memory.h"
#include <errno.h>
#include "base/err.h"
#include "metaroce/memory.h"

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
