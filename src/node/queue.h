/*
 * queue.h - the output queues of a router
 *
 * Each port has a queue a class, of finite length: a packet that doesn't fit is dropped. One that
 * joins, and says that its ends know ECN, is marked with a chance that grows with what waits before
 * it: none up to ecn_min, always from ecn_max on, linear between (bytes on the wire, of its queue).
 *
 * A port takes packets while it has taken less than a train (16 KB: 328 ns at 400G) that hasn't
 * left: class nc first, the others by deficit round robin over their weights. So a packet of class
 * nc waits for a train at most, and a busy port needs a timer for every second half of a train.
 * From there on node_ethernet knows when each packet leaves. What a port has taken is no longer in
 * the queue.
 */
#ifndef DSF_NODE_QUEUE_H
#define DSF_NODE_QUEUE_H
#include "base/heap.h"
#include "node/ethernet.h"

struct node_queue_class {
	struct fabric_packet_queue packets;
	uint64_t bytes;         /* on the wire */
	uint64_t deficit_bytes; /* what it may send in its turn */
};

struct node_queue_port {
	struct node_queue_class classes[FABRIC_CLASSES];
	enum fabric_class turn; /* whose turn it is, of those by weight */
	uint64_t limit_bytes;   /* most that waits in one queue */
	uint64_t ecn_min_bytes, ecn_max_bytes;
	struct dsf_heap_entry timer; /* set while something waits */
	struct dsf_rng rng;
	uint64_t dropped, marked;
};

struct node_queues {
	const struct dsf_memory *memory;
	struct node_ethernet *ethernet;
	struct node_queue_port *ports; /* by port number, as ethernet's */
	uint32_t count;
	uint32_t train_bytes;
	uint32_t weights[FABRIC_CLASSES];
	struct dsf_heap timers;
};

/* Queues in front of all ports of ethernet, each as long as its port's queue_bytes says, without
 * marks. 0, or -DSF_E_NOMEM; to be closed in any case. */
int node_queues_init(struct node_queues *q, struct node_ethernet *ethernet,
	const struct topo_fabric *fabric, uint64_t seed, uint64_t id);
void node_queues_close(struct node_queues *q);

/* Takes packet, which has its class. 0, or -DSF_E_FULL: it was dropped and counted. */
int node_queues_push(
	struct node_queues *q, uint32_t port, struct fabric_packet *packet, dsf_instant now);

/* Drops all that waits at the port, and counts it. */
void node_queues_flush(struct node_queues *q, uint32_t port);

uint64_t node_queues_bytes(const struct node_queues *q, uint32_t port);

dsf_instant node_queues_deadline(const struct node_queues *q);
void node_queues_expire(struct node_queues *q, dsf_instant now);

#endif
