/*
 * cabling.c - who is at the other end of a fabric port, against the plan; loops
 *
 * Every train names the switch and port it comes from. A cable that is plugged in elsewhere than
 * planned carries data all the same; it is only told. A fabric switch that hears itself would pass
 * on cells to itself, so it disables the port, until the operator drains it (then nothing is sent
 * over it anyway) or sets the link down and up.
 */
#include "node/cells.h"

static bool is_drained(const struct node_cells *c, uint32_t port)
{
	return c->reach.ports[port].drained || fabric_reach_drained(&c->reach);
}

static void disable(struct node_cells *c, uint32_t port, dsf_instant now)
{
	if (c->neighbors[port].disabled || is_drained(c, port))
		return;
	dsf_trace_emit(c->trace, now, DSF_EVENT_LOOP_DETECTED, c->index, port, 0);
	c->neighbors[port].disabled = true;
	node_cells_carrier_set(c, port, false, now);
}

bool node_cells_attach(struct node_cells *c, uint32_t port, uint16_t source_switch,
	uint16_t source_port, dsf_instant now)
{
	struct node_cells_neighbor *n = &c->neighbors[port];

	n->attached = true;
	n->switch_index = source_switch;
	n->port = source_port;
	if (source_switch != c->self->switch_index || !topo_is_fabric_node(c->self->role))
		return true;
	disable(c, port, now);
	/* Both ends are ours, and the other one may never hear of it. */
	if (source_port < c->self->ports_count &&
		!topo_node_port(c->topo, c->self, source_port)->ethernet) {
		struct node_cells_neighbor *far = &c->neighbors[source_port];

		*far = (struct node_cells_neighbor){ .attached = true,
			.switch_index = source_switch,
			.port = (uint16_t)port,
			.carrier = far->carrier,
			.disabled = far->disabled };
		disable(c, source_port, now);
	}
	return !n->disabled;
}

void node_cells_carrier(struct node_cells *c, uint32_t port, bool up, dsf_instant now)
{
	struct node_cells_neighbor *n = &c->neighbors[port];

	n->carrier = up;
	if (!up)
		n->attached = n->disabled = false;
	node_cells_carrier_set(c, port, up && !n->disabled, now);
}

void node_cells_enable(struct node_cells *c, dsf_instant now)
{
	for (uint32_t i = 0; i < c->self->ports_count; i++) {
		if (!c->neighbors[i].disabled || !is_drained(c, i))
			continue;
		c->neighbors[i].disabled = false;
		node_cells_carrier_set(c, i, c->neighbors[i].carrier, now);
	}
}

/* Does a node of this role belong at the other end of one of ours? */
static bool fits(enum topo_role ours, enum topo_role theirs)
{
	if (ours == TOPO_ROLE_FDSW)
		return topo_is_interface_node(theirs) || theirs == TOPO_ROLE_SDSW;
	return theirs == TOPO_ROLE_FDSW;
}

void node_cells_cabling(const struct node_cells *c, uint32_t port, struct node_row_port *row)
{
	const struct topo_port *p = topo_node_port(c->topo, c->self, port);
	const struct node_cells_neighbor *n = &c->neighbors[port];
	const struct topo_node *peer = NULL;
	bool planned = p->expected_node != TOPO_NONE, known;

	row->attached = n->attached;
	row->neighbor_switch = n->switch_index;
	row->neighbor_port = n->port;
	row->disabled = n->disabled;
	if (!n->attached) {
		row->missing = planned;
		return;
	}
	if (n->switch_index < c->topo->switches_count &&
		c->topo->switch_node[n->switch_index] != TOPO_NONE)
		peer = &c->topo->nodes[c->topo->switch_node[n->switch_index]];
	known = peer != NULL && n->port < peer->ports_count;
	row->missing = !planned; /* published: an expectation that can't be derived is missing */
	row->mismatch = !planned || !known || peer != &c->topo->nodes[p->expected_node] ||
			topo_node_port(c->topo, peer, n->port)->ordinal != p->expected_ordinal;
	row->bogus = peer == NULL || (peer != c->self && !fits(c->self->role, peer->role));
}
