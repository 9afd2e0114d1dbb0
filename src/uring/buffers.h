/*
 * buffers.h - provided buffers that the kernel receives into
 *
 * A group of equal buffers that all ports of one kind share. The kernel takes them in order, so
 * what is in circulation is what the cache must hold: a group starts small and doubles only when
 * the kernel found none (ENOBUFS: the frame stays in its socket, nothing is lost). A buffer that
 * was taken is ours until it is given back.
 */
#ifndef DSF_URING_BUFFERS_H
#define DSF_URING_BUFFERS_H
#include <stdbool.h>
#include <stdint.h>
#include "base/pool.h"
#include "uring/loop.h"

#define URING_BUFFERS_FIRST 16u
#define URING_COPIES_MAX    4096u /* frames that wait outside the ring, per group */

struct uring_buffers {
	struct uring_loop *loop; /* NULL: not open */
	struct io_uring_buf_ring *ring;
	uint8_t *bytes;
	uint32_t size; /* of one buffer */
	uint16_t group;
	uint16_t count;     /* in circulation */
	uint16_t count_max; /* power of two */
	uint16_t taken;     /* of them, in our hands */
	struct dsf_pool copies;
};

/* 0 or -errno. */
int uring_buffers_open(struct uring_buffers *b, struct uring_loop *loop,
	const struct dsf_memory *memory, uint16_t group, uint32_t size, uint16_t count_max);
void uring_buffers_close(struct uring_buffers *b);

/* The kernel filled buffer id; it is ours now. */
static inline uint8_t *uring_buffers_take(struct uring_buffers *b, uint16_t id)
{
	b->taken++;
	return b->bytes + (size_t)id * b->size;
}

/* Back to the kernel. */
static inline void uring_buffers_give(struct uring_buffers *b, uint16_t id)
{
	b->taken--;
	io_uring_buf_ring_add(b->ring, b->bytes + (size_t)id * b->size, b->size, id,
		io_uring_buf_ring_mask(b->count_max), 0);
	io_uring_buf_ring_advance(b->ring, 1);
}

/* The kernel ran out: doubles what is in circulation. False when all are. */
bool uring_buffers_grow(struct uring_buffers *b);

#endif
