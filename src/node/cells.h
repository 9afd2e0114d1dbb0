/*
 * cells.h - the fabric side of a switch: ports, reachability, spraying
 *
 * What interface nodes and fabric nodes have in common. Trains come in, reachability and fill
 * cells end here, data and credit cells go to the owner's function; cells go out by sprayed links.
 */
#ifndef DSF_NODE_CELLS_H
#define DSF_NODE_CELLS_H
#include "base/err.h"
#include "fabric/port.h"
#include "fabric/pressure.h"
#include "fabric/reach.h"
#include "fabric/spray.h"
#include "node/node.h"
#include "node/row.h"

/* Who is at the other end of a fabric port, as its trains say. */
struct node_cells_neighbor {
	bool attached; /* something was heard since the carrier came */
	uint16_t switch_index, port;
	bool carrier;  /* the link's; the port's own is less when it is disabled */
	bool disabled; /* heard itself, until it is drained or the carrier goes */
};

struct node_cells {
	const struct topo *topo;
	const struct topo_node *self;
	uint32_t index; /* node */
	struct dsf_trace const *trace;
	struct fabric_ports ports;
	struct fabric_reach reach;
	struct fabric_spray spray;
	struct fabric_pressure pressure; /* fabric nodes */
	uint32_t input_port;             /* where the cell in hand came in; TOPO_NONE: nowhere */
	bool resumed;                    /* a link may carry data again; the owner clears it */
	uint32_t fabric_ports_count;
	uint32_t fabric_carriers; /* fabric ports with carrier */
	uint64_t *expected; /* bitset: interface nodes that a healthy fabric reaches from here */
	const struct dsf_memory *memory;
	struct node_cells_neighbor *neighbors; /* by port */
	uint64_t link_down_dropped, unreachable_dropped, corrupt_dropped;
	uint64_t cells_rx, control_cells_rx;
	uint64_t *frames_rx, *bytes_rx, *cells_rx_port, *cell_bytes_rx, *corrupt_rx; /* by port */
	uint64_t errors[DSF_ERR_COUNT]; /* inputs dropped, by cause */
};

/* A data or credit cell for the owner: decoded, and as it came (cell->stored bytes behind the
 * header). */
typedef void (*node_cell_fn)(void *owner, uint32_t port, const struct fabric_cell *cell,
	const uint8_t *raw, dsf_instant now);

/* 0, or -DSF_E_NOMEM. */
int node_cells_init(struct node_cells *c, const struct node_config *config, dsf_instant now);
void node_cells_close(struct node_cells *c);

/* A train. 0, or the error of what was wrong with it; the cells before that were handled. */
int node_cells_input(struct node_cells *c, uint32_t port, const struct node_frame *frame,
	node_cell_fn cell_fn, void *owner, dsf_instant now);

dsf_instant node_cells_deadline(const struct node_cells *c);

/* True when trains have left, so that queues are shorter. */
bool node_cells_expire(struct node_cells *c, dsf_instant now);

/* Sends what reachability wants to say; the end of everything that pushes cells. */
void node_cells_settle(struct node_cells *c, dsf_instant now);

/* The next destination whose links changed; its spray is forgotten. The owner calls it until false
 * after each input, before it sends anything. */
bool node_cells_next_changed(struct node_cells *c, uint32_t *destination);

/* Sprays one cell (header and payload of stored bytes, both written already at raw) to cell's
 * destination. Counts the cell as dropped when no link reaches it. True: sent. */
bool node_cells_forward(
	struct node_cells *c, const struct fabric_cell *cell, const uint8_t *raw, dsf_instant now);

/* Sprays a credit cell. */
bool node_cells_send_control(struct node_cells *c, const struct fabric_cell *cell, dsf_instant now);

/* The next train to send; false: none. */
bool node_cells_output(struct node_cells *c, struct node_output *out, dsf_instant now);

int node_cells_command(struct node_cells *c, const struct node_command *command, dsf_instant now);

bool node_cells_ready(const struct node_cells *c);

/* Something was asked that takes links of this switch out of use. */
static inline bool node_cells_drained(const struct node_cells *c)
{
	return c->reach.asked_drained || c->reach.usable_count < c->reach.live_count;
}

/* cabling.c: a train of this source came in. False: the port has just been disabled for a loop. */
bool node_cells_attach(struct node_cells *c, uint32_t port, uint16_t source_switch,
	uint16_t source_port, dsf_instant now);
/* cabling.c: the link's carrier, in front of node_cells_carrier_set. */
void node_cells_carrier(struct node_cells *c, uint32_t port, bool up, dsf_instant now);
/* cabling.c: after a drain began: where a loop was found the port may be heard again. */
void node_cells_enable(struct node_cells *c, dsf_instant now);
/* cells.c: the port's own carrier. */
void node_cells_carrier_set(struct node_cells *c, uint32_t port, bool up, dsf_instant now);
/* cabling.c: the port against the plan. */
void node_cells_cabling(const struct node_cells *c, uint32_t port, struct node_row_port *row);

void node_cells_count(const struct node_cells *c, struct node_row_counters *counters);
void node_cells_view(const struct node_cells *c, enum node_query query, uint32_t filter,
	node_row_fn row_fn, void *user);

#endif
