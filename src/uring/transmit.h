/*
 * transmit.h - frames on their way into the kernel
 *
 * Trains go as soon as the node puts them out: they carry their departure. Packets of Ethernet
 * ports go when wall time reaches their departure; until then they wait here. Each frame is one
 * SEND entry that never blocks and reports only failure. AF_PACKET sends run while the entry is
 * submitted, so bytes are given back to the node as soon as the queue is empty.
 */
#ifndef DSF_URING_TRANSMIT_H
#define DSF_URING_TRANSMIT_H
#include <stdbool.h>
#include "base/heap.h"
#include "base/pool.h"
#include "node/node.h"
#include "uring/loop.h"
#include "uring/memory.h"
#include "uring/port.h"

#define URING_WAITING_MAX 65536u

struct uring_send;

struct uring_transmit {
	struct uring_loop *loop;
	struct uring_memory *memory; /* where spans lie */
	struct node *node;
	struct uring_send *sends; /* [URING_SQ_ENTRIES] */
	uint32_t sends_count;     /* entries that the kernel hasn't taken yet */
	uint8_t *payload;         /* gathered spans of those; made when first needed */
	size_t payload_used;
	struct dsf_heap heap; /* packets before their departure */
	struct dsf_pool pool;
};

/* 0 or -errno. */
int uring_transmit_open(struct uring_transmit *t, struct uring_loop *loop,
	const struct dsf_memory *own, struct uring_memory *memory, struct node *node);
void uring_transmit_close(struct uring_transmit *t);

/* Queues a frame for the kernel; its buffer goes back to the node when that is done. A frame that
 * can't be queued is counted at the port and given back. */
void uring_transmit_send(
	struct uring_transmit *t, struct uring_port *p, const struct node_output *out);

/* Keeps a packet until its departure. False: too many wait, the caller sends it now. */
bool uring_transmit_wait(
	struct uring_transmit *t, struct uring_port *port, const struct node_output *out);

/* The earliest departure; DSF_NEVER when nothing waits. */
static inline dsf_instant uring_transmit_at(const struct uring_transmit *t)
{
	return dsf_heap_at(&t->heap);
}

/* Sends what is due. */
void uring_transmit_due(struct uring_transmit *t, dsf_instant now);

/* Gives up what waits for a port that lost carrier; returns how many frames. */
uint32_t uring_transmit_cut(struct uring_transmit *t, const struct uring_port *port);

/* Gives buffers of what was submitted back to the node. After every enter. */
void uring_transmit_settle(struct uring_transmit *t);

#endif
