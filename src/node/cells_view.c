/*
 * cells_view.c - rows of the fabric side's state
 */
#include "node/cells.h"

void node_cells_count(const struct node_cells *c, struct node_row_counters *counters)
{
	for (uint32_t i = 0; i < c->ports.count; i++) {
		const struct fabric_port_counters *p = &c->ports.ports[i].counters;
		struct node_row_port row = { .port = i };

		if (!topo_node_port(c->topo, c->self, i)->ethernet)
			node_cells_cabling(c, i, &row);
		counters->cabling_missing += row.missing;
		counters->cabling_mismatch += row.mismatch;
		counters->cabling_bogus += row.bogus;
		counters->cells_tx += p->data_cells;
		counters->control_cells_tx += p->control_cells;
		counters->impaired_drops += p->lost_cells;
		counters->cells_lost += c->reach.ports[i].loss.lost;
	}
	counters->cells_rx = c->cells_rx;
	counters->control_cells_rx = c->control_cells_rx;
	counters->fabric_link_down_dropped = c->link_down_dropped;
	counters->fabric_unreachable_dropped = c->unreachable_dropped;
	counters->fabric_drops = c->ports.drops;
	counters->corrupt_drops += c->corrupt_dropped;
}

static enum node_drain drain_of(const struct fabric_reach *r)
{
	if (r->asked_drained)
		return NODE_DRAIN_ASKED;
	return r->starved ? NODE_DRAIN_MIN_LINKS : NODE_DRAIN_NONE;
}

static void view_port(const struct node_cells *c, uint32_t i, node_row_fn row_fn, void *user)
{
	const struct fabric_port *p = &c->ports.ports[i];
	const struct fabric_reach_port *r = &c->reach.ports[i];
	struct node_row row = { .query = NODE_QUERY_PORT, .node = c->index };

	row.port = (struct node_row_port){ .port = i,
		.carrier = p->carrier,
		.live = r->live,
		.isolated = r->isolated,
		.active = r->active,
		.drained = r->drained || fabric_reach_drained(&c->reach),
		.peer_drained = r->peer_drained,
		.switch_drain = drain_of(&c->reach),
		.rate_bps = p->rate_bps,
		.frames_tx = p->counters.frames,
		.frames_rx = c->frames_rx[i],
		.bytes_tx = p->counters.bytes,
		.bytes_rx = c->bytes_rx[i],
		.cells_tx = p->counters.data_cells,
		.cells_rx = c->cells_rx_port[i],
		.cell_bytes_tx = p->counters.cell_bytes,
		.cell_bytes_rx = c->cell_bytes_rx[i],
		.dropped_tx = p->counters.lost_cells + p->counters.discarded_cells,
		.lost_rx = r->loss.lost,
		.corrupt_rx = c->corrupt_rx[i],
		.queue_bytes = p->queue_bytes,
		.stops_tx = p->stops,
		.impairment = { .loss_ppm = p->impairment.loss_ppm,
			.corrupt_ppm = p->impairment.corrupt_ppm,
			.delay_ns = p->impairment.delay_ns,
			.jitter_ns = p->impairment.jitter_ns,
			.reorder_ppm = p->impairment.reorder_ppm,
			.silent = p->impairment.silent } };
	node_cells_cabling(c, i, &row.port);
	row_fn(user, &row);
}

static bool is_interface(const struct node_cells *c, uint32_t switch_index)
{
	return topo_is_interface_node(c->topo->nodes[c->topo->switch_node[switch_index]].role);
}

/* Is it an interface node of this fabric, and one that was asked for? */
static bool is_destination(const struct node_cells *c, uint32_t d, uint32_t filter)
{
	uint32_t node = c->topo->switch_node[d];

	return node != TOPO_NONE && is_interface(c, d) &&
	       c->topo->nodes[node].plane == c->self->plane &&
	       c->topo->nodes[node].building == c->self->building &&
	       (filter == TOPO_NONE || filter == node);
}

static void view_reachability(
	const struct node_cells *c, uint32_t filter, node_row_fn row_fn, void *user)
{
	static const uint64_t none[DSF_BITSET_WORDS(TOPO_PORTS_MAX)];
	struct node_row row = { .query = NODE_QUERY_REACHABILITY, .node = c->index };
	bool interface = c->reach.tier == FABRIC_TIER_INTERFACE;

	for (uint32_t d = 0; d < c->reach.switches_count; d++) {
		if (!is_destination(c, d, filter))
			continue;
		row.reachability = (struct node_row_reachability){
			.destination = c->topo->switch_node[d],
			.output = fabric_reach_ports(&c->reach, d),
			.advertised = !interface                   ? fabric_reach_told(&c->reach, d)
				      : d == c->self->switch_index ? c->reach.active
								   : none,
			.withdrawn = interface ? none : fabric_reach_withheld(&c->reach, d),
			.cut_by_balance = fabric_reach_cut(&c->reach, d),
		};
		row_fn(user, &row);
	}
}

static void view_balance(
	const struct node_cells *c, uint32_t filter, node_row_fn row_fn, void *user)
{
	const struct fabric_balance *b = &c->reach.balance;
	struct node_row row = { .query = NODE_QUERY_BALANCE, .node = c->index };

	for (uint32_t d = 0; d < c->reach.switches_count; d++) {
		for (uint32_t i = 0; is_destination(c, d, filter) && i < b->groups_count; i++) {
			struct fabric_balance_view v;

			if (!fabric_balance_view(b, i, d, dsf_bitset_has(c->reach.direct, d),
				    fabric_reach_told(&c->reach, d), &v))
				continue;
			row.balance = (struct node_row_balance){
				.destination = c->topo->switch_node[d],
				.kind = b->groups[i].kind,
				.key = b->groups[i].kind == FABRIC_BALANCE_NODE
					       ? c->topo->switch_node[b->groups[i].key]
					       : b->groups[i].key,
				.input = v.input,
				.output = v.output,
				.allowed = v.allowed,
				.balanced = v.balanced,
			};
			row_fn(user, &row);
		}
	}
}

static void view_missing(const struct node_cells *c, node_row_fn row_fn, void *user)
{
	struct node_row row = { .query = NODE_QUERY_READY, .node = c->index };

	for (uint32_t i = 0; i < c->ports.count; i++) {
		const struct topo_port *port = topo_node_port(c->topo, c->self, i);

		if (port->ethernet || c->reach.ports[i].live || c->reach.ports[i].loop)
			continue;
		row.missing = (struct node_row_missing){ .what = c->ports.ports[i].carrier ? "link"
											   : "port",
			.port = i,
			.other = c->topo->ports[port->peer].node };
		row_fn(user, &row);
	}
	if (c->reach.starved) {
		row.missing = (struct node_row_missing){
			.what = "minimum links", .port = TOPO_NONE, .other = TOPO_NONE
		};
		row_fn(user, &row);
	}
	if (node_cells_drained(c))
		return;
	for (uint32_t d = dsf_bitset_next(c->expected, 0, c->reach.switches_count);
		d < c->reach.switches_count;
		d = dsf_bitset_next(c->expected, d + 1, c->reach.switches_count)) {
		if (dsf_bitset_has(c->reach.any, d))
			continue;
		row.missing = (struct node_row_missing){
			.what = "reachability", .port = TOPO_NONE, .other = c->topo->switch_node[d]
		};
		row_fn(user, &row);
	}
}

void node_cells_view(const struct node_cells *c, enum node_query query, uint32_t filter,
	node_row_fn row_fn, void *user)
{
	switch (query) {
	case NODE_QUERY_PORT:
		for (uint32_t i = 0; i < c->ports.count; i++)
			if (!topo_node_port(c->topo, c->self, i)->ethernet &&
				(filter == TOPO_NONE || filter == i))
				view_port(c, i, row_fn, user);
		break;
	case NODE_QUERY_REACHABILITY: view_reachability(c, filter, row_fn, user); break;
	case NODE_QUERY_BALANCE: view_balance(c, filter, row_fn, user); break;
	case NODE_QUERY_READY: view_missing(c, row_fn, user); break;
	case NODE_QUERY_COUNTERS:
	case NODE_QUERY_VOQ:
	case NODE_QUERY_SYSTEM_PORT:
	case NODE_QUERY_NDP:
	case NODE_QUERY_FSDB_SESSION:
	case NODE_QUERY_FSDB:
	case NODE_QUERY_ROUTE:
	case NODE_QUERY_NIC:
	case NODE_QUERY_PATHS:
	case NODE_QUERY_QP:
	case NODE_QUERY_BGP_PEER:
	case NODE_QUERY_BGP_TABLE:
	case NODE_QUERY_WORKLOAD: break;
	}
}
