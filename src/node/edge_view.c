#include "node/edge.h"

struct node_row node_edge_port_row(const struct node_edge *e, uint32_t port)
{
	const struct node_ethernet_port *p = &e->ethernet.ports[port];
	struct node_row row = { .query = NODE_QUERY_PORT, .node = e->index };

	row.port = (struct node_row_port){ .port = port == e->inband_port ? NODE_PORT_INBAND : port,
		.carrier = p->carrier,
		.live = p->carrier,
		.active = p->carrier,
		.rate_bps = p->rate_bps,
		.frames_tx = p->frames_tx,
		.frames_rx = p->frames_rx,
		.bytes_tx = p->bytes_tx,
		.bytes_rx = p->bytes_rx,
		.dropped_tx = p->dropped + p->impaired + p->corrupted,
		.impairment = p->impairment };
	return row;
}

struct node_row node_edge_neighbor_row(
	const struct node_edge *e, const struct ip_neighbor *neighbor)
{
	struct node_row row = { .query = NODE_QUERY_NDP, .node = e->index };

	row.neighbor = (struct node_row_neighbor){ .address = neighbor->address,
		.mac = neighbor->mac,
		.system_port = neighbor->system_port,
		.owner = neighbor->owner,
		.local = neighbor->local };
	switch (neighbor->state) {
	case IP_NEIGHBOR_INCOMPLETE: row.neighbor.state = NODE_NEIGHBOR_INCOMPLETE; break;
	case IP_NEIGHBOR_REACHABLE: row.neighbor.state = NODE_NEIGHBOR_REACHABLE; break;
	case IP_NEIGHBOR_STATIC: row.neighbor.state = NODE_NEIGHBOR_STATIC; break;
	}
	return row;
}

void node_edge_view_routes(const struct node_edge *e, node_row_fn row_fn, void *user)
{
	for (uint32_t i = 0; i < e->ports_count; i++) {
		const struct topo_port *port = topo_node_port(e->topo, e->self, e->ndp_number[i]);
		struct node_row row = { .query = NODE_QUERY_ROUTE, .node = e->index };

		row.route = (struct node_row_route){ .prefix = port->address,
			.prefix_length = port->prefix_length,
			.origin = "connected",
			.system_port = port->system_port,
			.port = e->ndp_number[i] };
		memset(row.route.prefix.bytes + port->prefix_length / 8, 0,
			sizeof(row.route.prefix) - port->prefix_length / 8);
		row_fn(user, &row);
	}
}

void node_edge_view_missing(const struct node_edge *e, node_row_fn row_fn, void *user)
{
	struct node_row row = { .query = NODE_QUERY_READY, .node = e->index };

	for (uint32_t i = 0; i < e->self->ports_count; i++) {
		const struct topo_port *port = topo_node_port(e->topo, e->self, i);
		const struct topo_port *peer = &e->topo->ports[port->peer];

		if (!port->ethernet)
			continue;
		if (!e->ethernet.ports[i].carrier)
			row.missing.what = "port";
		else if (topo_port_has_address(port) &&
			 ip_ndp_lookup(e->ndp, e->ndp_port[i], &peer->address) == NULL)
			row.missing.what = "neighbor";
		else
			continue;
		row.missing.port = i;
		row.missing.other = peer->node;
		row_fn(user, &row);
	}
}

void node_edge_count(const struct node_edge *e, struct node_row_counters *c)
{
	for (uint32_t i = 0; i <= e->inband_port; i++) {
		const struct node_ethernet_port *p = &e->ethernet.ports[i];

		c->packets_tx += p->frames_tx;
		c->egress_drops += p->dropped;
		c->impaired_drops += p->impaired;
		c->corrupt_drops += p->corrupted;
	}
	c->packets_rx += e->packets_rx;
}
