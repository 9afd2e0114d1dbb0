/*
 * memory.h - memory of a node process that spans point into
 *
 * The node never touches payload. It names spans of registered memory; here they are gathered into
 * frames and received payload is placed or, where the bytes are a function of seed and offset,
 * checked.
 */
#ifndef DSF_URING_MEMORY_H
#define DSF_URING_MEMORY_H
#include <stdint.h>
#include "node/node.h"

struct uring_memory {
	uint64_t bytes_wrong; /* placed payload that was not what it should be */
};

/* Copies the bytes that span stands for to at. 0, or a negative error: no such memory. */
int uring_memory_gather(struct uring_memory *m, const struct node_span *span, uint8_t *at);

/* Places bytes into span. 0, or a negative error. */
int uring_memory_place(struct uring_memory *m, const struct node_span *span, const uint8_t *bytes);

#endif
