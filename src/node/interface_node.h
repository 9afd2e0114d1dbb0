/*
 * interface_node.h - RDSW and EDSW: Ethernet on one side, cells on the other
 *
 * The way of a packet. In at an Ethernet port (or from the host port): parsed, checked, its
 * neighbour looked up, hop limit lowered, Ethernet header rewritten for the far end, into the VOQ
 * of the neighbour's system port and the packet's class (forward.c). With credit: cut into cells,
 * sprayed (here). At the egress switch: reassembled, in order, out at the port. The egress side's
 * scheduler gives the credits. A neighbour on another port of this switch is reached the same way
 * but for the cells: its VOQ asks the same scheduler.
 *
 * The host port is system port NODE_SYSTEM_PORT_INBAND of the switch.
 *
 * Whom it learns of on its own ports it publishes, and what is behind the ports of others it hears,
 * over FSDB (sessions.c). The ways to the addresses of all interface nodes are static: by them the
 * sessions' streams go.
 *
 * What is no neighbour of the virtual switch goes by BGP's routes (routing.h), whose next hops are
 * neighbours: straight to the port of another switch behind which one is.
 */
#ifndef DSF_NODE_INTERFACE_NODE_H
#define DSF_NODE_INTERFACE_NODE_H
#include "fabric/credit.h"
#include "fabric/reasm.h"
#include "fabric/voq.h"
#include "fsdb/mesh.h"
#include "ip/neighbor.h"
#include "node/cells.h"
#include "node/edge.h"
#include "node/routing.h"

/* The last of a switch's 64 system ports. */
#define NODE_SYSTEM_PORT_INBAND (TOPO_PORTS_PER_SWITCH - 1u)

struct node_interface {
	const struct topo *topo;
	const struct topo_node *self;
	const struct dsf_memory *memory;
	const struct dsf_trace *trace;
	uint32_t index;
	uint32_t first_system_port;
	struct node_cells cells;
	struct node_edge edge;
	struct fabric_voqs voqs;
	struct fabric_credits credits;
	struct fabric_reasm reasm;
	struct ip_neighbor_table promised; /* unless one was handed in */
	struct ip_neighbor_table neighbors;
	struct fsdb_mesh *fsdb; /* NULL: the driver carries no streams */
	struct fsdb_peer *fsdb_peers;
	uint32_t fsdb_peers_count;
	struct node_routing *routing; /* NULL: no streams, or nobody to speak BGP with */
	/* Neighbours behind other switches that the lab file promises: all, and those imported. */
	uint32_t remote_expected, remote_count;
	uint32_t active_links; /* when credits were last told what the fabric can deliver */
};

struct node_interface *node_interface_new(const struct node_config *config, dsf_instant now);
void node_interface_free(struct node_interface *n);
int node_interface_frame_input(
	struct node_interface *n, uint32_t port, const struct node_frame *frame, dsf_instant now);
void node_interface_carrier(struct node_interface *n, uint32_t port, bool up, dsf_instant now);
dsf_instant node_interface_deadline(const struct node_interface *n);
void node_interface_expire(struct node_interface *n, dsf_instant now);
bool node_interface_output(struct node_interface *n, struct node_output *out, dsf_instant now);
void node_interface_frame_done(struct node_interface *n, void *buffer);
int node_interface_stream_accept(
	struct node_interface *n, const struct node_stream_ends *ends, dsf_instant now);
void node_interface_stream_connected(struct node_interface *n, uint32_t stream, dsf_instant now);
void node_interface_stream_input(struct node_interface *n, uint32_t stream, const uint8_t *bytes,
	uint32_t size, dsf_instant now);
void node_interface_stream_writable(
	struct node_interface *n, uint32_t stream, uint32_t room, dsf_instant now);
void node_interface_stream_closed(
	struct node_interface *n, uint32_t stream, bool reset, dsf_instant now);
int node_interface_command(
	struct node_interface *n, const struct node_command *command, dsf_instant now);
bool node_interface_ready(const struct node_interface *n);
void node_interface_view(const struct node_interface *n, enum node_query query, uint32_t filter,
	node_row_fn row_fn, void *user, dsf_instant now);

/* sessions.c: FSDB. 0, or -DSF_E_NOMEM. */
int node_sessions_init(struct node_interface *n, const struct node_config *config);
void node_sessions_close(struct node_interface *n);

/* sessions.c: an Ethernet port has changed; what a port's neighbour has become; whether the fabric
 * reaches another switch. */
void node_sessions_port(struct node_interface *n, uint32_t number);
void node_sessions_neighbor(
	struct node_interface *n, const struct ip_ndp_change *change, dsf_instant now);
void node_sessions_reachable(struct node_interface *n, uint32_t destination, dsf_instant now);

/* sessions.c: news of others into the neighbour table. */
void node_sessions_settle(struct node_interface *n, dsf_instant now);

/* sessions.c: the next stream to open, write or close. */
bool node_sessions_output(struct node_interface *n, struct node_output *out, dsf_instant now);

/* sessions.c: is another switch's port up, as far as we reach it and hear of it? */
bool node_sessions_port_up(const struct node_interface *n, uint32_t system_port, bool *stale);

bool node_sessions_ready(const struct node_interface *n);
void node_sessions_view(
	const struct node_interface *n, enum node_query query, node_row_fn row_fn, void *user);

/* forward.c: an Ethernet frame at port, or a bare packet from the host port. 0, or the error under
 * which it was dropped and counted. */
int node_forward_input(
	struct node_interface *n, uint32_t port, const struct node_frame *frame, dsf_instant now);

/* forward.c: neighbours that the lab file promises. 0, or -DSF_E_NOMEM. */
int node_forward_init(struct node_interface *n, const struct node_config *config);

/* forward.c: what is behind ports of our own is known when it was heard, not by promise. */
bool node_forward_knows(const struct node_interface *n, const struct ip_neighbor *neighbor);

/* forward.c: can an address be sent to now, as neighbour of the virtual switch? user: the node. */
bool node_forward_usable(void *user, const struct dsf_ip6 *address);

/* forward.c: NDP's news into the neighbour table, NDP's frames out. */
void node_forward_settle(struct node_interface *n, dsf_instant now);

/* forward.c: port number of a system port of ours; TOPO_NONE: not ours. */
uint32_t node_interface_port_of(const struct node_interface *n, uint32_t system_port);

#endif
