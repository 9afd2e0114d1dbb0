#include "node/router.h"

static void view_ports(const struct node_router *r, node_row_fn row_fn, void *user)
{
	for (uint32_t i = 0; i <= r->edge.inband_port; i++) {
		struct node_row row = node_edge_port_row(&r->edge, i);

		row.port.queue_bytes = node_queues_bytes(&r->queues, i);
		row.port.ecn_marked = r->queues.ports[i].marked;
		row.port.dropped_tx += r->queues.ports[i].dropped;
		row_fn(user, &row);
	}
}

static void view_counters(const struct node_router *r, node_row_fn row_fn, void *user)
{
	struct node_row row = { .query = NODE_QUERY_COUNTERS, .node = r->index };

	node_edge_count(&r->edge, &row.counters);
	row.counters.errors = r->edge.errors;
	for (uint32_t i = 0; i < r->queues.count; i++) {
		row.counters.egress_drops += r->queues.ports[i].dropped;
		row.counters.ecn_marks += r->queues.ports[i].marked;
	}
	row_fn(user, &row);
}

static void view_neighbors(const struct node_router *r, node_row_fn row_fn, void *user)
{
	for (const struct ip_neighbor *e = ip_neighbor_next(&r->neighbors, NULL); e != NULL;
		e = ip_neighbor_next(&r->neighbors, e)) {
		struct node_row row = node_edge_neighbor_row(&r->edge, e);

		row.neighbor.system_port = TOPO_NONE;
		row.neighbor.owner = r->index;
		row.neighbor.local = true;
		row_fn(user, &row);
	}
}

void node_router_view(const struct node_router *r, enum node_query query, node_row_fn row_fn,
	void *user, dsf_instant now)
{
	switch (query) {
	case NODE_QUERY_PORT: view_ports(r, row_fn, user); break;
	case NODE_QUERY_COUNTERS: view_counters(r, row_fn, user); break;
	case NODE_QUERY_NDP: view_neighbors(r, row_fn, user); break;
	case NODE_QUERY_BGP_PEER:
	case NODE_QUERY_BGP_TABLE: node_routing_view(r->routing, query, row_fn, user, now); break;
	case NODE_QUERY_ROUTE:
		node_edge_view_routes(&r->edge, row_fn, user);
		node_routing_view(r->routing, query, row_fn, user, now);
		break;
	case NODE_QUERY_READY:
		node_edge_view_missing(&r->edge, row_fn, user);
		node_routing_view(r->routing, query, row_fn, user, now);
		break;
	case NODE_QUERY_REACHABILITY:
	case NODE_QUERY_BALANCE:
	case NODE_QUERY_VOQ:
	case NODE_QUERY_SYSTEM_PORT:
	case NODE_QUERY_FSDB_SESSION:
	case NODE_QUERY_FSDB:
	case NODE_QUERY_NIC:
	case NODE_QUERY_PATHS:
	case NODE_QUERY_QP:
	case NODE_QUERY_WORKLOAD: break;
	}
}
