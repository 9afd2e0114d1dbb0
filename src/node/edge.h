/*
 * edge.h - the Ethernet side of a routed switch
 *
 * What interface nodes and routers have in common: Ethernet ports with addresses, the neighbours
 * behind them, the host port, and the way of a packet but for the question where it goes. In at an
 * Ethernet port, or from the host port: node_edge_input parses it, serves NDP, and hands over what
 * is to be passed on. The node finds out where to. node_edge_pass lowers the hop limit, checks the
 * size, answers what can't be passed on, and makes the packet with its new Ethernet header. The
 * node queues it. node_edge_output puts out what has been given to a port.
 *
 * A hyperport has one place with NDP, that of the member that stands for it (topo/model.h); what
 * comes in at any of them has come in there. Carrier and impairments are each member's own.
 *
 * The host port is the one behind the topology's ports. What the kernel sends there is routed like
 * any packet, but for its hop limit, which falls on the way only.
 */
#ifndef DSF_NODE_EDGE_H
#define DSF_NODE_EDGE_H
#include "ip/icmp.h"
#include "ip/ndp.h"
#include "ip/neighbor.h"
#include "ip/route.h"
#include "node/ethernet.h"
#include "node/row.h"

/* Rate of the published recycle port. */
#define NODE_INBAND_RATE_BPS 100000000000ull
#define NODE_INBAND_MTU      9000u

struct node_edge {
	const struct topo *topo;
	const struct topo_node *self;
	const struct dsf_memory *memory;
	const struct dsf_trace *trace;
	uint32_t index;
	uint32_t inband_port; /* index in ethernet.ports: one behind the topology's ports */
	struct fabric_packets packets;
	struct node_ethernet ethernet;
	struct ip_ndp *ndp; /* NULL without Ethernet ports */
	struct ip_icmp icmp;
	struct ip_route connected;            /* prefixes of our ports: NDP's port index */
	uint32_t *ndp_port;                   /* NDP's port index of a port number */
	uint32_t *ndp_number;                 /* port number of NDP's port index */
	uint32_t ports_count;                 /* NDP's: Ethernet ports, hyperports as one */
	uint32_t links_count, carriers_count; /* Ethernet ports, members one by one; with carrier */
	uint64_t packets_rx;
	uint64_t errors[DSF_ERR_COUNT];
	uint8_t icmp_frame[IP_ICMP_FRAME_MAX];
};

/* Where a packet goes: MACs of its new Ethernet header, what fits, and whether that is up our host
 * port. */
struct node_edge_target {
	struct dsf_mac target, source;
	uint32_t mtu;
	bool up;
};

/* Will somebody answer at the other end of an Ethernet port? External nodes are mute in the
 * simulator. */
static inline bool node_edge_answered(
	const struct node_config *config, const struct topo_port *port)
{
	const struct topo_port *peer = &config->topo->ports[port->peer];

	return !config->simulated || config->topo->nodes[peer->node].role != TOPO_ROLE_EXTERNAL;
}

/* Packets may take buffer_bytes in each of their sizes. Every Ethernet port looks for the neighbour
 * that the lab file has there. 0, or -DSF_E_NOMEM; to be closed in any case. */
int node_edge_init(struct node_edge *e, const struct node_config *config, uint64_t buffer_bytes,
	dsf_instant now);
void node_edge_close(struct node_edge *e);

/* False: it was so before. */
bool node_edge_carrier(struct node_edge *e, uint32_t port, bool up, dsf_instant now);

void node_edge_impair(struct node_edge *e, uint32_t port, const struct node_impairment *impairment);

/* port: of a hyperport what stands for it, and inband_port for the host port.
 * 1: *p, parsed from the frame, is to be passed on. 0: it was NDP's. Else the error under which it
 * is to be dropped. */
int node_edge_input(struct node_edge *e, uint32_t port, const struct node_frame *frame,
	struct ip_packet *p, dsf_instant now);

/* The packet that leaves, owned by the caller, in *packet: bytes, size, class and ecn_capable are
 * set. 0, or the error under which the packet is dropped; its sender has been told where that is
 * due. */
int node_edge_pass(struct node_edge *e, uint32_t port, struct ip_packet *p,
	const struct node_frame *frame, const struct node_edge_target *target,
	struct fabric_packet **packet, dsf_instant now);

/* Tells the sender of a packet that came in at port why it can't be passed on. */
void node_edge_answer(struct node_edge *e, uint32_t port, enum ip_icmp_error error,
	const struct ip_packet *p, const struct node_frame *frame, uint32_t mtu, dsf_instant now);

/* Solicits an address that should be behind a port of ours. -DSF_E_NOROUTE: none has its subnet;
 * else what ip_ndp_resolve says. */
int node_edge_resolve(struct node_edge *e, const struct dsf_ip6 *address, dsf_instant now);

/* What has become of a neighbour, told once; false when all was told. change->port is a port
 * number here. */
bool node_edge_changed(struct node_edge *e, struct ip_ndp_change *change, dsf_instant now);

/* NDP's frames go to their ports. */
void node_edge_settle(struct node_edge *e, dsf_instant now);

dsf_instant node_edge_deadline(const struct node_edge *e);
void node_edge_expire(struct node_edge *e, dsf_instant now);

/* Marks a whole frame: congestion experienced. */
static inline void node_edge_set_ce(uint8_t *frame)
{
	/* traffic class ends in byte 1's high half */
	frame[IP_ETHERNET_SIZE + 1] |= IP_ECN_CE << 4;
}

/* The next frame that leaves; its buffer is the packet, which comes back to e->packets. */
bool node_edge_output(struct node_edge *e, struct node_output *out);

/* Every Ethernet port has carrier and knows its neighbour. */
bool node_edge_ready(const struct node_edge *e);

/* edge_view.c: a port's row; a neighbour's, as its table has it; connected prefixes; what is
 * missing; counters of Ethernet ports. */
struct node_row node_edge_port_row(const struct node_edge *e, uint32_t port);
struct node_row node_edge_neighbor_row(
	const struct node_edge *e, const struct ip_neighbor *neighbor);
void node_edge_view_routes(const struct node_edge *e, node_row_fn row_fn, void *user);
void node_edge_view_missing(const struct node_edge *e, node_row_fn row_fn, void *user);
void node_edge_count(const struct node_edge *e, struct node_row_counters *c);

#endif
