/*
 * routed.h - the routes that a routed fabric comes to when all of it is up
 *
 * From the topology alone, so that a router knows what it has to wait for, and tests have something
 * to compare with. Each switch of a routed fabric has a prefix of its own (fd5f:PPBB:ZZSS::/48: its
 * loopback and the subnets that it serves), which its building and plane know; other buildings have
 * one of each building (fd5f:PPBB::/32), and so have SSWs. A way is a shortest one; leaves are on
 * no way but at its ends, and an EDSW is on ways to and from SSWs only.
 */
#ifndef DSF_NODE_ROUTED_H
#define DSF_NODE_ROUTED_H
#include "base/memory.h"
#include "topo/model.h"

#define NODE_ROUTED_SWITCH_LENGTH 48u

struct node_routed {
	struct dsf_ip6 prefix;
	unsigned length;
	uint32_t node;              /* whose it is; TOPO_NONE: a building's */
	const struct dsf_ip6 *hops; /* rising; valid for the call */
	uint32_t count;
};

/* 0, or an error that ends the walk. */
typedef int (*node_routed_fn)(void *user, const struct node_routed *route);

/* The routes of a router, but for connected ones: switches in order of nodes, then buildings. 0, an
 * error of fn, or -DSF_E_NOMEM. */
int node_routed_walk(const struct topo *t, uint32_t self, const struct dsf_memory *memory,
	node_routed_fn fn, void *user);

/* The prefix of a routed switch. */
struct dsf_ip6 node_routed_prefix(const struct topo_node *n);

#endif
