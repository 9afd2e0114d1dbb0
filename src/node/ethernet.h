/*
 * ethernet.h - the sending side of a switch's Ethernet ports
 *
 * A port's queue is first in, first out, so the instant at which a packet will have left is known
 * when it joins: a packet is put out at once with that instant, and no timer is needed. Impairments
 * act here: loss, corruption (a frame with a bad FCS is dropped by the far end, so it is counted
 * here and not sent), silence, delay, jitter (keeps order), reordering, rate.
 *
 * A hyperport is several ports as one (published: at the level of the ASIC; how is not, so this is
 * ours). Its packets have one queue, and each goes to the member that is free first. Small ones
 * would overtake large ones on other members; a real receiver puts them back in order before it
 * looks at them. Here the sender does it for him: no packet of a hyperport departs before the one
 * that was given to it before, so with equal delays, which topologies guarantee, they arrive in
 * order and nothing has to be said in a header. Members are as busy as they would be without. What
 * a member was given is lost with its carrier; from then on the others take all.
 *
 * Functions that take a port by number mean the hyperport when that port stands for one; carrier,
 * impairments and counters are each member's own. What is dropped before a member was chosen counts
 * at the port that stands for it.
 */
#ifndef DSF_NODE_ETHERNET_H
#define DSF_NODE_ETHERNET_H
#include "base/rng.h"
#include "fabric/packet.h"
#include "node/node.h"

/* A reordered frame is held for the time of two largest packets, at least for this (ours). */
#define NODE_ETHERNET_REORDER_NS_MIN 1000u

struct node_ethernet_port {
	bool used, carrier;
	uint32_t whole;       /* what stands for the hyperport of which this is a member; itself */
	uint32_t next;        /* another member, in a ring */
	uint64_t rate_bps;    /* 0: unlimited */
	uint32_t queue_bytes; /* most that waits; of a hyperport for each member */
	dsf_instant free_at;  /* the last packet of the queue has left */
	dsf_instant last_depart;
	struct node_impairment impairment;
	struct dsf_rng rng;
	uint64_t frames_tx, bytes_tx, frames_rx, bytes_rx;
	uint64_t dropped, impaired, corrupted;
};

struct node_ethernet {
	const struct dsf_memory *memory;
	struct fabric_packets *packets;
	struct node_ethernet_port *ports; /* by port number */
	uint32_t count;
	struct fabric_packet_queue out; /* since: departure, system_port: port number */
};

/* 0, or -DSF_E_NOMEM. */
int node_ethernet_init(struct node_ethernet *e, const struct dsf_memory *memory,
	struct fabric_packets *packets, uint32_t count, uint64_t seed, uint64_t id);
void node_ethernet_close(struct node_ethernet *e);

/* From now on member is one of the hyperport for which whole stands. */
void node_ethernet_join(struct node_ethernet *e, uint32_t member, uint32_t whole);

/* Of a member. */
void node_ethernet_carrier(struct node_ethernet *e, uint32_t port, bool up, dsf_instant now);

/* Can it send: has it, or any of its members, carrier? */
bool node_ethernet_is_up(const struct node_ethernet *e, uint32_t port);

/* 0: unlimited. Of a hyperport what its members with carrier come to; without any, all. */
uint64_t node_ethernet_rate(const struct node_ethernet *e, uint32_t port);

/* Most that waits at the port, in bytes, whichever members have carrier. */
uint64_t node_ethernet_queue_bytes(const struct node_ethernet *e, uint32_t port);

/* Bytes that wait at the port. */
uint64_t node_ethernet_backlog(const struct node_ethernet *e, uint32_t port, dsf_instant now);

/* When the port, or the first of its members, will have sent what it was given. */
dsf_instant node_ethernet_free_at(const struct node_ethernet *e, uint32_t port);

/* Queues packet at port, whose number, or its member's, it gets as system_port; owns it from here
 * on. False: dropped and counted. */
bool node_ethernet_send(
	struct node_ethernet *e, uint32_t port, struct fabric_packet *packet, dsf_instant now);

static inline uint64_t node_ethernet_reorder_ns(uint64_t rate_bps)
{
	uint64_t packets_ns = dsf_time_of_bytes(2u * FABRIC_PACKET_MAX, rate_bps);

	return packets_ns > NODE_ETHERNET_REORDER_NS_MIN ? packets_ns
							 : NODE_ETHERNET_REORDER_NS_MIN;
}

/* When a frame whose last bit was serialised at sent_at leaves a port of rate_bps: put off by the
 * impairments' delay, jitter and reordering. *last_depart is the port's, kept by this. */
static inline dsf_instant node_ethernet_departure(const struct node_impairment *i,
	struct dsf_rng *rng, uint64_t rate_bps, dsf_instant sent_at, dsf_instant *last_depart)
{
	dsf_instant at = dsf_time_after(sent_at, i->delay_ns);

	if (i->jitter_ns > 0)
		at = dsf_time_after(at, dsf_rng_below(rng, i->jitter_ns + 1));
	at = dsf_time_max(at, *last_depart);
	if (dsf_rng_chance(rng, i->reorder_ppm))
		return dsf_time_after(at, node_ethernet_reorder_ns(rate_bps));
	*last_depart = at;
	return at;
}

void node_ethernet_impair(struct node_ethernet *e, uint32_t port,
	const struct node_impairment *impairment, uint64_t link_rate_bps);

#endif
