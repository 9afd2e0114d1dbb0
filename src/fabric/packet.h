/*
 * packet.h - packets that wait in a switch
 *
 * A packet is a whole Ethernet frame. Buffers come in a few sizes, each from a pool that grows
 * with use; there is no allocation per packet. `stored` bytes are present of `size` (fewer in the
 * simulator only).
 */
#ifndef DSF_FABRIC_PACKET_H
#define DSF_FABRIC_PACKET_H
#include <stdbool.h>
#include "base/pool.h"
#include "base/time.h"
#include "fabric/cell.h"

/* What a frame costs on an Ethernet link beyond its bytes: preamble 8, FCS 4, gap 12. */
#define FABRIC_ETHERNET_OVERHEAD 24u

#define FABRIC_PACKET_POOLS 4

struct fabric_packet {
	struct fabric_packet *next; /* in whatever queue holds it */
	dsf_instant since;          /* when it entered that queue */
	uint32_t system_port;       /* where it is to leave */
	uint16_t source;            /* switch where it came in */
	uint16_t size, stored;
	uint8_t class; /* enum fabric_class */
	uint8_t pool;
	bool ecn_capable;
	uint8_t bytes[];
};

struct fabric_packets {
	struct dsf_pool pools[FABRIC_PACKET_POOLS];
};

struct fabric_packet_queue {
	struct fabric_packet *first, *last;
};

/* At most bytes_max of buffer space in each size. */
void fabric_packets_init(
	struct fabric_packets *p, const struct dsf_memory *memory, uint64_t bytes_max);
void fabric_packets_close(struct fabric_packets *p);

/* Room for stored bytes, header fields unset but stored and pool; NULL when there is none or
 * stored is above FABRIC_PACKET_MAX. */
struct fabric_packet *fabric_packet_new(struct fabric_packets *p, uint32_t stored);
void fabric_packet_free(struct fabric_packets *p, struct fabric_packet *packet);

/* Bytes that the packet takes of an Ethernet link; credits are counted in these. */
static inline uint32_t fabric_packet_wire_bytes(const struct fabric_packet *packet)
{
	return packet->size + FABRIC_ETHERNET_OVERHEAD;
}

static inline void fabric_packet_queue_push(struct fabric_packet_queue *q, struct fabric_packet *p)
{
	p->next = NULL;
	*(q->last != NULL ? &q->last->next : &q->first) = p;
	q->last = p;
}

/* NULL when empty. */
static inline struct fabric_packet *fabric_packet_queue_pop(struct fabric_packet_queue *q)
{
	struct fabric_packet *p = q->first;

	if (p != NULL) {
		q->first = p->next;
		if (q->first == NULL)
			q->last = NULL;
	}
	return p;
}

#endif
