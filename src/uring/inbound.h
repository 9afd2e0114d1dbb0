/*
 * inbound.h - what impairs the way from a host to its switch
 *
 * Impairments act where a port sends. But what a host's kernel sends, or a real router in an
 * external node, passes no port model of ours: so for that way the switch does it, as frames come
 * in, for the kernel's and dsf-host's alike (which live leaves it alone: node/host_port.c). Rates
 * are the host's own tbf qdisc.
 */
#ifndef DSF_URING_INBOUND_H
#define DSF_URING_INBOUND_H
#include "base/rng.h"
#include "node/node.h"

struct uring_inbound {
	bool used; /* the peer is a host or external */
	struct node_impairment impairment;
	uint64_t rate_bps; /* the link's */
	struct dsf_rng rng;
	dsf_instant last_due;
	uint64_t lost, corrupted; /* frames */
};

/* The way from the peer to a port of the node; unused where the peer sees to itself. */
void uring_inbound_init(struct uring_inbound *in, const struct topo *t,
	const struct topo_node *self, uint32_t number);

/* A frame came in that is due at *due, which is put off. False: it is lost, and counted. */
bool uring_inbound_pass(struct uring_inbound *in, dsf_instant *due);

#endif
