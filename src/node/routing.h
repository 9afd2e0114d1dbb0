/*
 * routing.h - BGP of one routed switch, and where it leads packets
 *
 * Theory. One speaker (bgp/bgp.h) with the neighbours that file and topology give the switch
 * (topo/bgp.h), over streams of its host port. What it decides goes into a route table from
 * prefixes to sets of next hops (ip/hops.h); a packet takes one of its set by its flow.
 *
 *   - Who owns this struct (an interface node, a router) knows which addresses can be sent to right
 *     now: it is asked (usable), and says when that may have changed. A next hop that can't be
 *     sent to is passed over at once, whatever BGP still believes.
 *   - So is a session's other end: when it can't be sent to, its session ends, without waiting for
 *     the hold time; when it can, we connect. Of a session that follows from the topology the node
 *     with the lower number connects, and the other one always listens, so that none collide.
 *   - An edge switch tells its building's aggregate while it can send to a leaf of it: who loses
 *     its last one, or is drained, withdraws it at once.
 *
 * Time. BGP's durations are protocol time: fabric time multiplied by the control dilation, which
 * live is wall time.
 */
#ifndef DSF_NODE_ROUTING_H
#define DSF_NODE_ROUTING_H
#include "ip/hops.h"
#include "ip/packet.h"
#include "node/node.h"

/* Numbers of BGP's streams have this bit, FSDB's don't. */
#define NODE_ROUTING_STREAM (1u << 30)

struct node_routing;

struct node_routing_config {
	const struct topo *topo;
	uint32_t index; /* of topo->nodes */
	const struct dsf_memory *memory;
	const struct dsf_trace *trace; /* or NULL */
	uint64_t seed;
	uint32_t control_dilation;
	bool promised; /* no BGP: the routes that the topology promises stand for its */
	ip_hops_usable_fn usable;
	void *user;
};

/* 0 and *out, which is NULL where the switch has nobody to speak with; -DSF_E_NOMEM or -DSF_E_FULL
 * (more neighbours than a speaker has). */
int node_routing_new(
	struct node_routing **out, const struct node_routing_config *config, dsf_instant now);
void node_routing_free(struct node_routing *r); /* NULL is fine, here and below */

/* Whether an address can be sent to may have changed; or, of all that there are. */
void node_routing_look(struct node_routing *r, const struct dsf_ip6 *address, dsf_instant now);
void node_routing_look_hops(struct node_routing *r); /* of all next hops */
void node_routing_look_all(struct node_routing *r, dsf_instant now);

/* The next hop of a packet. False: no route, or none whose next hop can be used. */
bool node_routing_find(
	const struct node_routing *r, const struct ip_packet *p, struct dsf_ip6 *next_hop);

/* Streams, as in node.h. */
int node_routing_accept(
	struct node_routing *r, const struct node_stream_ends *ends, dsf_instant now);
void node_routing_connected(struct node_routing *r, uint32_t stream, dsf_instant now);
void node_routing_input(struct node_routing *r, uint32_t stream, const uint8_t *bytes,
	uint32_t size, dsf_instant now);
void node_routing_writable(struct node_routing *r, uint32_t stream, uint32_t room, dsf_instant now);
void node_routing_closed(struct node_routing *r, uint32_t stream, dsf_instant now);
bool node_routing_output(struct node_routing *r, struct node_output *out, dsf_instant now);

dsf_instant node_routing_deadline(const struct node_routing *r);
void node_routing_expire(struct node_routing *r, dsf_instant now);

/* All sessions between our own switches stand, and have brought the routes that the topology
 * promises; those with others may come later. */
bool node_routing_ready(const struct node_routing *r);

/* Adds BGP's. */
void node_routing_sessions(const struct node_routing *r, struct node_sessions *sessions);

/* NODE_QUERY_BGP_PEER, NODE_QUERY_BGP_TABLE, NODE_QUERY_ROUTE (BGP's), NODE_QUERY_READY. */
void node_routing_view(const struct node_routing *r, enum node_query query, node_row_fn row_fn,
	void *user, dsf_instant now);

#endif
