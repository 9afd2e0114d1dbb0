/*
 * hold.h - frames that have come in and are not due yet
 *
 * A frame is due when the modelled wire delivers it: departure or arrival plus the link's delay.
 * Everything a node gets passes through here, so that frames of all ports and the node's deadlines
 * are handled in one order: that of their due instants, then of port numbers (of a hyperport's
 * members that of what stands for it), then of arrival.
 * Frames stay in the receive buffers; once more than half of a group's buffers are held, later
 * frames are copied, so that receiving goes on.
 */
#ifndef DSF_URING_HOLD_H
#define DSF_URING_HOLD_H
#include <stdbool.h>
#include "base/heap.h"
#include "uring/buffers.h"
#include "uring/port.h"

#define URING_HELD_MAX 16384u

struct uring_held {
	struct dsf_heap_entry entry; /* at: due */
	uint32_t port;               /* node.h's numbers */
	struct uring_arrival arrival;
	struct uring_buffers *buffers;
	void *copy; /* NULL: lies in buffer id */
	uint16_t id;
};

struct uring_hold {
	struct dsf_heap heap;
	struct dsf_pool pool;
};

void uring_hold_init(struct uring_hold *h, const struct dsf_memory *memory);

/* Takes over buffer id of buffers, in which a lies, of port; rank: its number, or its hyperport's.
 * 0; or -DSF_E_FULL / -DSF_E_NOMEM: the buffer is still the caller's. */
int uring_hold_push(struct uring_hold *h, struct uring_buffers *buffers, uint16_t id, uint32_t port,
	uint32_t rank, const struct uring_arrival *a, dsf_instant now);

/* The earliest frame, out of the heap; the caller releases it. NULL: none. */
struct uring_held *uring_hold_pop(struct uring_hold *h);

/* The earliest frame of one port, out of the heap; NULL: none. Slow: for carrier loss. */
struct uring_held *uring_hold_pop_port(struct uring_hold *h, uint32_t port);

void uring_hold_release(struct uring_hold *h, struct uring_held *held);

static inline dsf_instant uring_hold_at(const struct uring_hold *h)
{
	return dsf_heap_at(&h->heap);
}

/* Buffers need not be given back before. */
void uring_hold_close(struct uring_hold *h);

#endif
