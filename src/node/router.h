/*
 * router.h - a plain IPv6 router: SSW, and every switch of a routed fabric
 *
 * The way of a packet. In at a port (or from the host port): parsed and checked (edge.c). Its
 * destination is a neighbour, or an address of ours, or BGP's longest prefix that holds it leads to
 * a set of next hops, of which the flow takes one: by its addresses, protocol and ports, hashed
 * with a seed of this switch, so that routers in a row don't all choose alike (routing.h). The hop
 * limit falls, the packet gets a new Ethernet header and waits in the queue of its port and class,
 * or is marked or dropped there (queue.h).
 *
 * A next hop is used while NDP knows its MAC. Loss of carrier makes NDP forget at once, so flows of
 * a port that is gone take another way with the next packet, and no others move; BGP tells the
 * rest. Where the driver carries no streams, the routes that the topology promises stand for BGP's.
 */
#ifndef DSF_NODE_ROUTER_H
#define DSF_NODE_ROUTER_H
#include "ip/neighbor.h"
#include "node/edge.h"
#include "node/queue.h"
#include "node/routing.h"

struct node_router {
	const struct topo *topo;
	const struct topo_node *self;
	const struct dsf_memory *memory;
	uint32_t index;
	struct node_edge edge;
	struct node_queues queues;
	struct ip_neighbor_table neighbors; /* system_port: port number */
	struct node_routing *routing;       /* whose all streams are; NULL: no router beside us */
};

struct node_router *node_router_new(const struct node_config *config, dsf_instant now);
void node_router_free(struct node_router *r);
int node_router_frame_input(
	struct node_router *r, uint32_t port, const struct node_frame *frame, dsf_instant now);
void node_router_carrier(struct node_router *r, uint32_t port, bool up, dsf_instant now);
dsf_instant node_router_deadline(const struct node_router *r);
void node_router_expire(struct node_router *r, dsf_instant now);
bool node_router_output(struct node_router *r, struct node_output *out, dsf_instant now);
void node_router_frame_done(struct node_router *r, void *buffer);
int node_router_command(struct node_router *r, const struct node_command *command, dsf_instant now);
bool node_router_ready(const struct node_router *r);
void node_router_view(const struct node_router *r, enum node_query query, node_row_fn row_fn,
	void *user, dsf_instant now);

#endif
