#include "node/interface_node.h"

/* In order of port numbers, whatever the ports carry. */
static void view_ports(const struct node_interface *n, node_row_fn row_fn, void *user)
{
	for (uint32_t i = 0; i <= n->edge.inband_port; i++) {
		if (n->edge.ethernet.ports[i].used) {
			struct node_row row = node_edge_port_row(&n->edge, i);

			row_fn(user, &row);
		} else {
			node_cells_view(&n->cells, NODE_QUERY_PORT, i, row_fn, user);
		}
	}
}

static void view_counters(const struct node_interface *n, node_row_fn row_fn, void *user)
{
	struct node_row row = { .query = NODE_QUERY_COUNTERS, .node = n->index };
	struct node_row_counters *c = &row.counters;
	uint64_t errors[DSF_ERR_COUNT];

	node_cells_count(&n->cells, c);
	for (unsigned i = 0; i < DSF_ERR_COUNT; i++)
		errors[i] = n->edge.errors[i] + n->cells.errors[i];
	node_edge_count(&n->edge, c);
	for (uint32_t i = 0; i < TOPO_PORTS_PER_SWITCH; i++)
		c->credits_sent += n->credits.ports[i].granted_total;
	for (struct fabric_voq *q = dsf_hash_next(&n->voqs.table, NULL); q != NULL;
		q = dsf_hash_next(&n->voqs.table, q))
		c->credits_received += q->granted_total;
	c->reassembly_errors = n->reasm.packets_lost;
	c->packets_reassembled = n->reasm.packets_done;
	c->voq_drops = n->voqs.dropped;
	c->watchdog_drops = n->voqs.watchdog_dropped;
	c->ecn_marks = n->voqs.marked;
	c->errors = errors;
	row_fn(user, &row);
}

static void view_voqs(
	const struct node_interface *n, uint32_t filter, node_row_fn row_fn, void *user)
{
	for (struct fabric_voq *q = dsf_hash_next(&n->voqs.table, NULL); q != NULL;
		q = dsf_hash_next(&n->voqs.table, q)) {
		struct node_row row = { .query = NODE_QUERY_VOQ, .node = n->index };

		if (filter != TOPO_NONE && filter != q->key.system_port)
			continue;
		row.voq = (struct node_row_voq){ .system_port = q->key.system_port,
			.traffic_class = (uint8_t)q->key.class,
			.packets = q->packets,
			.bytes = q->bytes,
			.credits_requested = q->requested_total,
			.credits_granted = q->granted_total,
			.dropped = q->dropped,
			.ecn_marked = q->ecn_marked,
			.watchdog_dropped = q->watchdog_dropped,
			.sent_packets = q->sent_packets,
			.sent_bytes = q->sent_bytes };
		row_fn(user, &row);
	}
}

/* The system ports that this switch knows: its own, and those its neighbours stand behind. */
static void view_system_ports(const struct node_interface *n, node_row_fn row_fn, void *user)
{
	const struct topo *t = n->topo;

	for (uint32_t sp = 0; sp < t->switches_count * TOPO_PORTS_PER_SWITCH; sp++) {
		const struct topo_node *owner =
			&t->nodes[t->switch_node[sp / TOPO_PORTS_PER_SWITCH]];
		uint32_t port = t->system_port_port[sp];
		struct node_row row = { .query = NODE_QUERY_SYSTEM_PORT, .node = n->index };

		if (port == TOPO_NONE || owner->plane != n->self->plane ||
			owner->building != n->self->building)
			continue;
		row.system_port = (struct node_row_system_port){ .system_port = sp,
			.port = port,
			.rate_bps = topo_port_rate(t, &t->ports[port]),
			.local = owner == n->self };
		if (owner == n->self) {
			const struct node_ethernet *e = &n->edge.ethernet;

			row.system_port.up = node_ethernet_is_up(e, t->ports[port].number);
			row.system_port.rate_bps = node_ethernet_rate(e, t->ports[port].number);
		} else {
			row.system_port.up = node_sessions_port_up(n, sp, &row.system_port.stale);
		}
		row_fn(user, &row);
	}
}

static void view_neighbors(const struct node_interface *n, node_row_fn row_fn, void *user)
{
	for (const struct ip_neighbor *e = ip_neighbor_next(&n->neighbors, NULL); e != NULL;
		e = ip_neighbor_next(&n->neighbors, e)) {
		struct node_row row = node_edge_neighbor_row(&n->edge, e);

		if (!node_forward_knows(n, e))
			continue;
		row_fn(user, &row);
	}
}

void node_interface_view(const struct node_interface *n, enum node_query query, uint32_t filter,
	node_row_fn row_fn, void *user, dsf_instant now)
{
	switch (query) {
	case NODE_QUERY_PORT: view_ports(n, row_fn, user); break;
	case NODE_QUERY_COUNTERS: view_counters(n, row_fn, user); break;
	case NODE_QUERY_REACHABILITY:
	case NODE_QUERY_BALANCE: node_cells_view(&n->cells, query, filter, row_fn, user); break;
	case NODE_QUERY_VOQ: view_voqs(n, filter, row_fn, user); break;
	case NODE_QUERY_SYSTEM_PORT: view_system_ports(n, row_fn, user); break;
	case NODE_QUERY_NDP: view_neighbors(n, row_fn, user); break;
	case NODE_QUERY_FSDB_SESSION:
	case NODE_QUERY_FSDB: node_sessions_view(n, query, row_fn, user); break;
	case NODE_QUERY_BGP_PEER:
	case NODE_QUERY_BGP_TABLE: node_routing_view(n->routing, query, row_fn, user, now); break;
	case NODE_QUERY_ROUTE:
		node_edge_view_routes(&n->edge, row_fn, user);
		node_routing_view(n->routing, query, row_fn, user, now);
		break;
	case NODE_QUERY_READY:
		node_edge_view_missing(&n->edge, row_fn, user);
		node_sessions_view(n, query, row_fn, user);
		node_routing_view(n->routing, query, row_fn, user, now);
		node_cells_view(&n->cells, query, filter, row_fn, user);
		break;
	case NODE_QUERY_NIC:
	case NODE_QUERY_PATHS:
	case NODE_QUERY_QP:
	case NODE_QUERY_WORKLOAD: break;
	}
}
