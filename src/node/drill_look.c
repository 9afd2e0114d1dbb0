#include "node/drill_state.h"
#include <string.h>

static uint64_t *row_of(const struct node_drill *d, uint64_t *table, uint32_t port)
{
	return table + (size_t)port * d->switch_words;
}

/* How links have to be. */

static bool silent(const struct drill_link *l)
{
	return l->impairment[0].silent || l->impairment[1].silent;
}

static bool lossy(const struct node_drill *d, uint32_t link)
{
	const struct drill_link *l = &d->links[link];

	return l->impairment[0].loss_ppm > 0 || l->impairment[0].corrupt_ppm > 0;
}

static bool has_carrier(const struct node_drill *d, uint32_t link)
{
	const struct topo_link *l = &d->config.topo->links[link];

	return !d->links[link].down &&
	       d->nodes[d->config.topo->ports[l->port_a].node].want != NODE_DRILL_DEAD &&
	       d->nodes[d->config.topo->ports[l->port_b].node].want != NODE_DRILL_DEAD;
}

static bool both_run(const struct node_drill *d, uint32_t link)
{
	const struct topo_link *l = &d->config.topo->links[link];

	return d->nodes[d->config.topo->ports[l->port_a].node].want == NODE_DRILL_RUNNING &&
	       d->nodes[d->config.topo->ports[l->port_b].node].want == NODE_DRILL_RUNNING;
}

static enum drill_live wanted(const struct node_drill *d, uint32_t link)
{
	if (!has_carrier(d, link))
		return DRILL_LIVE_NO;
	if (d->config.topo->ports[d->config.topo->links[link].port_a].ethernet)
		return DRILL_LIVE_YES; /* nobody but the carrier tells */
	if (silent(&d->links[link]) || !both_run(d, link))
		return DRILL_LIVE_NO;
	return lossy(d, link) ? DRILL_LIVE_ANY : DRILL_LIVE_YES;
}

static bool drained(const struct node_drill *d, uint32_t link)
{
	const struct topo *t = d->config.topo;

	return d->links[link].drained[0] || d->links[link].drained[1] ||
	       d->nodes[t->ports[t->links[link].port_a].node].drained ||
	       d->nodes[t->ports[t->links[link].port_b].node].drained;
}

void node_drill_look_expect(struct node_drill *d)
{
	for (uint32_t i = 0; i < d->config.topo->links_count; i++) {
		struct drill_link *l = &d->links[i];

		l->want = wanted(d, i);
		l->drained_now = drained(d, i);
		l->live = l->want == DRILL_LIVE_YES && !l->drained_now;
	}
}

/* Who is reached: the planner's fixed point, found without the devices' code. */

static void hear(struct node_drill *d, uint32_t destination)
{
	const struct topo *t = d->config.topo;
	struct topo_fixed_row row;

	topo_fixed_destination(d->fixed, destination);
	for (uint32_t i = 0; i < t->nodes_count; i++) {
		const struct topo_node *n = &t->nodes[i];

		if (!topo_fixed_row(d->fixed, i, &row))
			continue;
		for (uint32_t p = dsf_bitset_next(row.output, 0, n->ports_count);
			p < n->ports_count; p = dsf_bitset_next(row.output, p + 1, n->ports_count))
			dsf_bitset_add(row_of(d, d->heard, n->first_port + p),
				t->nodes[destination].switch_index);
	}
}

/* What the fabric comes to with the links that are live, for each destination and port. */
static void work_out_reach(struct node_drill *d)
{
	const struct topo *t = d->config.topo;

	for (uint32_t i = 0; i < t->links_count; i++)
		if (d->links[i].live)
			dsf_bitset_remove(d->failed, i);
		else
			dsf_bitset_add(d->failed, i);
	memcpy(d->starves, d->starved, t->nodes_count * sizeof(*d->starves));
	topo_fixed_starve(t, d->failed, d->starves);
	memset(d->heard, 0, (size_t)t->ports_count * d->switch_words * sizeof(*d->heard));
	for (uint32_t i = 0; i < t->nodes_count; i++)
		if (topo_is_interface_node(t->nodes[i].role))
			hear(d, i);
}

static bool is_heard(const struct node_drill *d, uint32_t port, uint32_t destination)
{
	return dsf_bitset_has(
		row_of(d, d->heard, port), d->config.topo->nodes[destination].switch_index);
}

static bool is_reached(const struct node_drill *d, uint32_t node, uint32_t destination)
{
	const struct topo_node *n = &d->config.topo->nodes[node];

	for (uint32_t p = n->first_port; p < n->first_port + n->ports_count; p++)
		if (is_heard(d, p, destination))
			return true;
	return false;
}

/* Flows. */

static bool usable(const struct node_drill *d, const struct topo_port *port)
{
	return has_carrier(d, port->link) && both_run(d, port->link) &&
	       !silent(&d->links[port->link]) && !lossy(d, port->link);
}

static bool has_way(const struct node_drill *d, const struct workload_flow *f, uint32_t plane)
{
	const struct topo *t = d->config.topo;
	const struct topo_port *a = topo_endpoint_port(t, f->source, plane);
	const struct topo_port *b = topo_endpoint_port(t, f->target, plane);
	uint32_t from, to;

	if (a == NULL || b == NULL || !usable(d, a) || !usable(d, b))
		return false;
	from = t->ports[a->peer].node;
	to = t->ports[b->peer].node;
	return from == to || is_reached(d, from, to);
}

/* Do two interface nodes of a plane not reach each other? */
static bool is_cut(const struct node_drill *d, uint32_t plane)
{
	const struct topo *t = d->config.topo;

	for (uint32_t i = 0; i < t->nodes_count; i++) {
		const struct topo_node *a = &t->nodes[i];

		if (!topo_is_interface_node(a->role) || a->plane != plane)
			continue;
		for (uint32_t k = 0; k < t->nodes_count; k++) {
			const struct topo_node *b = &t->nodes[k];

			if (k != i && topo_is_interface_node(b->role) && b->plane == plane &&
				b->building == a->building && !is_reached(d, i, k))
				return true;
		}
	}
	return false;
}

/* What has no way waits at its source, until the watchdog comes. */
static void look_cuts(struct node_drill *d, dsf_instant now)
{
	for (uint32_t plane = 0; plane < d->config.topo->planes && plane < TOPO_PLANES_MAX;
		plane++) {
		struct drill_plane *p = &d->planes[plane];

		if (p->cut)
			p->cut_until = dsf_time_after(now, d->settle_ns);
		p->was_cut |= p->cut;
		p->cut = is_cut(d, plane);
	}
}

void node_drill_look_isolation(struct node_drill *d, dsf_instant now)
{
	const struct topo *t = d->config.topo;

	work_out_reach(d); /* a link that may be live counts as dead here */
	look_cuts(d, now);
	for (uint32_t i = 0; i < d->config.flows_count; i++) {
		const struct workload_flow *f = &d->config.flows[i];
		bool way = false;

		for (uint32_t plane = 0; plane < t->planes && !way; plane++)
			way = has_way(d, f, plane);
		d->flows[i].isolated |= !way;
		d->flows[i].exempt |= d->nodes[topo_endpoint(t, f->source).host].lost_state ||
				      d->nodes[topo_endpoint(t, f->target).host].lost_state;
	}
}

bool node_drill_look_flows(struct node_drill *d, bool over, struct node_drill_breach *breach)
{
	bool all = true;

	breach->kind = NODE_DRILL_NOTHING;
	for (uint32_t i = 0; i < d->config.flows_count; i++) {
		const struct drill_flow *f = &d->flows[i];
		enum node_drill_breach_kind kind = NODE_DRILL_NOTHING;
		bool done = f->sender_done && f->arrived >= f->completed;

		if (f->wrong > 0)
			kind = NODE_DRILL_WRONG_BYTES;
		else if (f->exempt)
			continue;
		else if (f->sender_done && f->arrived > f->completed + f->failed)
			kind = NODE_DRILL_MESSAGES;
		else if (f->failed > 0 && !f->isolated)
			kind = NODE_DRILL_LOST;
		else if (over && !done)
			kind = f->sender_done ? NODE_DRILL_MESSAGES : NODE_DRILL_UNFINISHED;
		all = all && done;
		if (kind == NODE_DRILL_NOTHING || breach->kind != NODE_DRILL_NOTHING)
			continue;
		*breach = (struct node_drill_breach){ .kind = kind,
			.source = d->config.flows[i].source,
			.target = d->config.flows[i].target,
			.want = f->completed,
			.got = kind == NODE_DRILL_WRONG_BYTES ? f->wrong
			       : kind == NODE_DRILL_LOST      ? f->failed
							      : f->arrived };
	}
	return all;
}

static struct drill_flow *find_flow(struct node_drill *d, uint32_t source, uint32_t target)
{
	uint32_t low = 0, high = d->config.flows_count;

	while (low < high) { /* sorted by source, then target */
		uint32_t at = low + (high - low) / 2;
		const struct workload_flow *f = &d->config.flows[at];

		if (f->source == source && f->target == target)
			return &d->flows[at];
		if (f->source < source || (f->source == source && f->target < target))
			low = at + 1;
		else
			high = at;
	}
	return NULL;
}

static void take_flow(struct node_drill *d, const struct node_row_flow *row)
{
	struct drill_flow *f = find_flow(d, row->source, row->target);

	if (f == NULL)
		return;
	if (row->sender) {
		f->sender_done = row->done;
		f->completed = row->messages;
		f->failed = row->lost;
	} else {
		f->arrived = row->messages;
		f->wrong = row->bytes_wrong;
	}
}

/* Rows. */

static void misfit(
	struct node_drill *d, enum topo_drill_invariant invariant, struct node_drill_breach breach)
{
	if (d->misfit[invariant].kind == NODE_DRILL_NOTHING)
		d->misfit[invariant] = breach;
}

/* Long after the last change, with nothing about but links and nodes that are gone (a slow or mute
 * link may fill queues for as long as it lasts), balance has taken back what can't be carried. */
static bool is_calm(const struct node_drill *d)
{
	const struct topo_drill *drill = d->config.drill;

	for (uint32_t i = 0; i < drill->faults_count; i++)
		if (d->active[i] && (drill->faults[i].kind == TOPO_DRILL_LINK_IMPAIR ||
					    drill->faults[i].kind == TOPO_DRILL_NODE_FREEZE))
			return false;
	return d->settled && d->phase > DRILL_BEFORE &&
	       dsf_time_since(d->changed_at, d->last_look_at) >= d->settle_ns;
}

static void take_stops(struct node_drill *d, uint32_t port, uint64_t stops)
{
	struct drill_port *p = &d->ports[port];
	uint64_t before = stops < p->stops ? 0 : p->stops; /* restarted */

	p->stops = stops;
	if (stops > before && is_calm(d))
		misfit(d, TOPO_DRILL_QUEUES,
			(struct node_drill_breach){ .kind = NODE_DRILL_QUEUE,
				.node = d->config.topo->ports[port].node,
				.port = port,
				.got = stops - before });
}

static void take_port(struct node_drill *d, uint32_t node, const struct node_row_port *row)
{
	const struct topo_node *n = &d->config.topo->nodes[node];
	struct drill_port *p;

	d->nodes[node].port_seen = true;
	if (row->port >= n->ports_count)
		return; /* the host port has no link */
	p = &d->ports[n->first_port + row->port];
	d->cells_moved |= p->cells_tx != row->cells_tx || p->cells_rx != row->cells_rx;
	p->seen = true;
	p->carrier = row->carrier;
	p->live = row->live;
	p->active = row->active;
	p->cells_tx = row->cells_tx;
	p->cells_rx = row->cells_rx;
	take_stops(d, n->first_port + row->port, row->stops_tx);
}

/* Links that may be live are what their ends say. */
static void know_reach(struct node_drill *d)
{
	const struct topo *t = d->config.topo;

	for (uint32_t i = 0; i < t->links_count; i++) {
		const struct drill_port *a = &d->ports[t->links[i].port_a];
		const struct drill_port *b = &d->ports[t->links[i].port_b];

		d->links[i].live =
			!d->links[i].drained_now &&
			(d->links[i].want == DRILL_LIVE_YES ||
				(d->links[i].want == DRILL_LIVE_ANY && a->live && b->live));
	}
	work_out_reach(d);
	memcpy(d->starved, d->starves, t->nodes_count * sizeof(*d->starved));
	d->reach_known = true;
}

static void take_reach(struct node_drill *d, uint32_t node, const struct node_row_reachability *row)
{
	const struct topo_node *n = &d->config.topo->nodes[node];

	d->nodes[node].reach_rows++;
	if (!d->reach_known)
		know_reach(d);
	for (uint32_t i = 0; i < n->ports_count && row->destination != node; i++) {
		uint32_t port = n->first_port + i;
		bool want = is_heard(d, port, row->destination);
		bool got = dsf_bitset_has(row->output, i);

		if (want != got)
			misfit(d, TOPO_DRILL_REACHABILITY,
				(struct node_drill_breach){ .kind = NODE_DRILL_REACH,
					.node = node,
					.port = port,
					.other = row->destination,
					.want = want,
					.got = got });
	}
}

static bool caused(const struct node_drill *d, uint32_t node, enum drill_cause cause)
{
	const struct drill_node *n = &d->nodes[node];

	return n->cause[cause] > 0 ||
	       (n->caused[cause] && !dsf_time_before(n->cause_until[cause], n->looked_at));
}

/* A fault anywhere in a plane may cost its switches cells and packets. */
static bool plane_caused(const struct node_drill *d, uint32_t node)
{
	uint32_t plane = d->config.topo->nodes[node].plane;
	const struct drill_plane *p;

	if (plane >= TOPO_PLANES_MAX)
		return true; /* hosts count none of these */
	p = &d->planes[plane];
	return p->active > 0 || (p->had && !dsf_time_before(p->until, d->nodes[node].looked_at));
}

static bool plane_cut(const struct node_drill *d, uint32_t node)
{
	uint32_t plane = d->config.topo->nodes[node].plane;
	const struct drill_plane *p;

	if (plane >= TOPO_PLANES_MAX)
		return true;
	p = &d->planes[plane];
	return p->cut || (p->was_cut && !dsf_time_before(p->cut_until, d->nodes[node].looked_at));
}

static bool may_drop(const struct node_drill *d, uint32_t node, enum node_drill_counter counter)
{
	switch (counter) {
	case NODE_DRILL_IMPAIRED: return caused(d, node, DRILL_CAUSE_LOSS);
	case NODE_DRILL_CORRUPT: return caused(d, node, DRILL_CAUSE_CORRUPT);
	case NODE_DRILL_LINK_DOWN: return caused(d, node, DRILL_CAUSE_CARRIER);
	case NODE_DRILL_EGRESS:
		return caused(d, node, DRILL_CAUSE_CARRIER) || caused(d, node, DRILL_CAUSE_LOSS);
	case NODE_DRILL_WATCHDOG: return plane_caused(d, node) || plane_cut(d, node);
	case NODE_DRILL_UNREACHABLE:
	case NODE_DRILL_REASSEMBLY:
	case NODE_DRILL_LOST_CELLS: return plane_caused(d, node);
	case NODE_DRILL_FABRIC:
	case NODE_DRILL_COUNTERS: break;
	}
	return false;
}

static void take_counters(struct node_drill *d, uint32_t node, const struct node_row_counters *row)
{
	const uint64_t now[NODE_DRILL_COUNTERS] = { [NODE_DRILL_IMPAIRED] = row->impaired_drops,
		[NODE_DRILL_CORRUPT] = row->corrupt_drops,
		[NODE_DRILL_LINK_DOWN] = row->fabric_link_down_dropped,
		[NODE_DRILL_EGRESS] = row->egress_drops,
		[NODE_DRILL_UNREACHABLE] = row->fabric_unreachable_dropped,
		[NODE_DRILL_REASSEMBLY] = row->reassembly_errors,
		[NODE_DRILL_WATCHDOG] = row->watchdog_drops,
		[NODE_DRILL_LOST_CELLS] = row->cells_lost,
		[NODE_DRILL_FABRIC] = row->fabric_drops };
	struct drill_node *n = &d->nodes[node];

	for (uint32_t i = 0; i < NODE_DRILL_COUNTERS; i++) {
		uint64_t before = now[i] < n->counters[i] ? 0 : n->counters[i]; /* restarted */

		if (n->counted && now[i] > before && d->phase > DRILL_BEFORE &&
			!may_drop(d, node, (enum node_drill_counter)i))
			misfit(d, TOPO_DRILL_DROPS,
				(struct node_drill_breach){ .kind = NODE_DRILL_DROP,
					.node = node,
					.counter = i,
					.want = 0,
					.got = now[i] - before });
		n->counters[i] = now[i];
	}
	n->counted = true;
}

void node_drill_row(struct node_drill *d, const struct node_row *row)
{
	switch (row->query) {
	case NODE_QUERY_PORT: take_port(d, row->node, &row->port); break;
	case NODE_QUERY_REACHABILITY: take_reach(d, row->node, &row->reachability); break;
	case NODE_QUERY_COUNTERS: take_counters(d, row->node, &row->counters); break;
	case NODE_QUERY_WORKLOAD: take_flow(d, &row->flow); break;
	case NODE_QUERY_BALANCE:
	case NODE_QUERY_VOQ:
	case NODE_QUERY_SYSTEM_PORT:
	case NODE_QUERY_NDP:
	case NODE_QUERY_FSDB_SESSION:
	case NODE_QUERY_FSDB:
	case NODE_QUERY_BGP_PEER:
	case NODE_QUERY_BGP_TABLE:
	case NODE_QUERY_ROUTE:
	case NODE_QUERY_NIC:
	case NODE_QUERY_PATHS:
	case NODE_QUERY_QP:
	case NODE_QUERY_READY: break;
	}
}

void node_drill_node(struct node_drill *d, uint32_t node, enum node_drill_state state)
{
	d->nodes[node].is = state;
}

void node_drill_asked(
	struct node_drill *d, uint32_t link, bool down, bool impaired, bool is_drained)
{
	d->links[link].asked_known = true;
	d->links[link].asked_down = down;
	d->links[link].asked_impaired = impaired;
	d->links[link].asked_drained = is_drained;
}

/* The look as a whole. */

void node_drill_look_begin(struct node_drill *d)
{
	memset(d->misfit, 0, sizeof(d->misfit));
	d->reach_known = d->cells_moved = false;
	for (uint32_t i = 0; i < d->config.topo->nodes_count; i++) {
		d->nodes[i].port_seen = false;
		d->nodes[i].reach_rows = 0;
	}
	for (uint32_t i = 0; i < d->config.topo->ports_count; i++)
		d->ports[i].seen = false;
	node_drill_look_expect(d);
}

static bool is_impaired(const struct node_drill *d, uint32_t link)
{
	struct node_impairment own = node_impairment_own(&d->config.topo->links[link]);
	const struct drill_link *l = &d->links[link];

	return !node_impairment_equal(&l->impairment[0], &own) ||
	       !node_impairment_equal(&l->impairment[1], &own);
}

static void check_end(struct node_drill *d, uint32_t port)
{
	const struct topo *t = d->config.topo;
	uint32_t link = t->ports[port].link;
	const struct drill_port *p = &d->ports[port];
	const struct drill_port *peer = &d->ports[t->ports[port].peer];
	struct node_drill_breach b = { .port = port, .node = t->ports[port].node };

	if (!p->seen || d->nodes[b.node].want != NODE_DRILL_RUNNING || t->links[link].loop)
		return; /* a loop's ports are disabled, or not: as its switch finds */
	b.kind = NODE_DRILL_CARRIER;
	b.want = has_carrier(d, link);
	b.got = p->carrier;
	if (b.want != b.got) {
		misfit(d, TOPO_DRILL_LINKS, b);
		return;
	}
	if (t->ports[port].ethernet)
		return;
	b.kind = NODE_DRILL_LIVE;
	b.got = p->live;
	b.want = d->links[link].want == DRILL_LIVE_YES;
	if (d->links[link].want == DRILL_LIVE_ANY) {
		b.kind = NODE_DRILL_ENDS;
		b.want = peer->seen ? peer->live : p->live;
	}
	if (b.want != b.got) {
		misfit(d, TOPO_DRILL_LINKS, b);
		return;
	}
	b.kind = NODE_DRILL_ACTIVE;
	b.want = p->live && !d->links[link].drained_now && !d->starved[b.node] &&
		 !d->starved[t->ports[t->ports[port].peer].node];
	b.got = p->active;
	if (b.want != b.got)
		misfit(d, TOPO_DRILL_LINKS, b);
}

static void check_nodes(struct node_drill *d)
{
	const struct topo *t = d->config.topo;

	for (uint32_t i = 0; i < t->nodes_count; i++) {
		const struct drill_node *n = &d->nodes[i];
		enum topo_role role = t->nodes[i].role;
		struct node_drill_breach b = { .node = i, .want = n->want, .got = n->is };

		if (role == TOPO_ROLE_EXTERNAL)
			continue;
		b.kind = n->is != n->want ? NODE_DRILL_NODE_STATE : NODE_DRILL_NO_ANSWER;
		if (n->is != n->want || (n->want == NODE_DRILL_RUNNING && !n->port_seen))
			misfit(d, TOPO_DRILL_LINKS, b);
		else if (n->want == NODE_DRILL_RUNNING && n->reach_rows == 0 &&
			 (topo_is_interface_node(role) || topo_is_fabric_node(role)))
			misfit(d, TOPO_DRILL_REACHABILITY, b);
	}
}

bool node_drill_look_end(struct node_drill *d, dsf_instant now)
{
	const struct topo *t = d->config.topo;

	check_nodes(d);
	for (uint32_t i = 0; i < t->links_count; i++) {
		const struct drill_link *l = &d->links[i];

		if (l->asked_known &&
			(l->asked_down != l->down ||
				l->asked_drained != (l->drained[0] || l->drained[1]) ||
				l->asked_impaired != is_impaired(d, i)))
			misfit(d, TOPO_DRILL_LINKS,
				(struct node_drill_breach){ .kind = NODE_DRILL_ASKED,
					.node = t->ports[t->links[i].port_a].node,
					.port = t->links[i].port_a,
					.want = l->down,
					.got = l->asked_down });
		check_end(d, t->links[i].port_a);
		check_end(d, t->links[i].port_b);
	}
	/* Counters are facts: no later look takes them back. */
	if (d->misfit[TOPO_DRILL_DROPS].kind != NODE_DRILL_NOTHING)
		node_drill_breach_set(d, TOPO_DRILL_DROPS, &d->misfit[TOPO_DRILL_DROPS], now);
	if (d->misfit[TOPO_DRILL_QUEUES].kind != NODE_DRILL_NOTHING)
		node_drill_breach_set(d, TOPO_DRILL_QUEUES, &d->misfit[TOPO_DRILL_QUEUES], now);
	for (uint32_t i = 0; i < t->nodes_count; i++)
		if (d->nodes[i].port_seen)
			d->nodes[i].looked_at = now;
	d->last_look_at = now;
	return d->misfit[TOPO_DRILL_LINKS].kind == NODE_DRILL_NOTHING &&
	       d->misfit[TOPO_DRILL_REACHABILITY].kind == NODE_DRILL_NOTHING;
}

/* Cells. */

void node_drill_look_base(struct node_drill *d)
{
	for (uint32_t i = 0; i < d->config.topo->ports_count; i++) {
		d->ports[i].base_tx = d->ports[i].cells_tx;
		d->ports[i].base_rx = d->ports[i].cells_rx;
	}
	for (uint32_t i = 0; i < d->config.topo->nodes_count; i++)
		d->nodes[i].base_unreachable = d->nodes[i].counters[NODE_DRILL_UNREACHABLE];
}

static bool check_port_cells(struct node_drill *d, uint32_t port, struct node_drill_breach *breach)
{
	const struct drill_port *p = &d->ports[port];
	const struct drill_port *peer = &d->ports[d->config.topo->ports[port].peer];

	*breach = (struct node_drill_breach){ .kind = NODE_DRILL_CELLS_LINK,
		.node = d->config.topo->ports[port].node,
		.port = port,
		.want = p->cells_tx - p->base_tx,
		.got = peer->cells_rx - peer->base_rx };
	return breach->want == breach->got;
}

static bool check_node_cells(struct node_drill *d, uint32_t node, struct node_drill_breach *breach)
{
	const struct topo_node *n = &d->config.topo->nodes[node];
	uint64_t unreachable;

	*breach = (struct node_drill_breach){ .kind = NODE_DRILL_CELLS_NODE, .node = node };
	for (uint32_t i = 0; i < n->ports_count; i++) {
		const struct drill_port *p = &d->ports[n->first_port + i];

		breach->want += p->cells_rx - p->base_rx;
		breach->got += p->cells_tx - p->base_tx;
	}
	unreachable =
		d->nodes[node].counters[NODE_DRILL_UNREACHABLE] - d->nodes[node].base_unreachable;
	/* Some of those may have been control cells. */
	if (breach->got <= breach->want && breach->want <= breach->got + unreachable)
		return true;
	breach->got += unreachable;
	return false;
}

bool node_drill_look_cells(struct node_drill *d, struct node_drill_breach *breach)
{
	const struct topo *t = d->config.topo;

	for (uint32_t i = 0; i < t->links_count; i++) {
		const struct topo_link *l = &t->links[i];

		if (t->ports[l->port_a].ethernet || d->links[i].touched || lossy(d, i))
			continue;
		if (!check_port_cells(d, l->port_a, breach) ||
			!check_port_cells(d, l->port_b, breach))
			return false;
	}
	for (uint32_t i = 0; i < t->nodes_count; i++)
		if (topo_is_fabric_node(t->nodes[i].role) && !d->nodes[i].touched &&
			!check_node_cells(d, i, breach))
			return false;
	return true;
}
