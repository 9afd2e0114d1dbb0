/* routing_view.c - rows of BGP and of the routes that it made (row.h) */
#include "node/routing_state.h"
#include "node/row.h"

struct view {
	const struct node_routing *routing;
	node_row_fn row_fn;
	void *user;
};

static void view_peer(const struct view *v, uint32_t index, dsf_instant now)
{
	const struct node_routing *r = v->routing;
	const struct topo_bgp_peer *peer = &r->peers[index].topo;
	struct node_row row = { .query = NODE_QUERY_BGP_PEER, .node = r->config.index };
	struct bgp_peer_view view;
	dsf_instant at;

	bgp_peer_view(r->bgp, index, node_routing_protocol(r, now), &view);
	at = view.up_since;
	if (!dsf_time_is_never(at))
		at.ns /= r->config.control_dilation;
	row.bgp_peer = (struct node_row_bgp_peer){ .address = peer->address,
		.local = peer->local,
		.peer = peer->node,
		.internal = peer->asn == r->self->asn,
		.derived = peer->kind != TOPO_BGP_GIVEN,
		.established_at = at,
		.view = &view };
	v->row_fn(v->user, &row);
}

static bool view_path(void *user, const struct bgp_row *path)
{
	const struct view *v = user;
	const struct node_routing *r = v->routing;
	struct node_row row = { .query = NODE_QUERY_BGP_TABLE, .node = r->config.index };

	row.bgp_path = (struct node_row_bgp_path){ .peer = TOPO_NONE, .row = path };
	if (path->peer != UINT32_MAX) {
		row.bgp_path.from = r->peers[path->peer].topo.address;
		row.bgp_path.peer = r->peers[path->peer].topo.node;
	}
	v->row_fn(v->user, &row);
	return true;
}

static void view_route(const struct view *v, const struct node_routing_prefix *p)
{
	const struct node_routing *r = v->routing;
	struct node_row row = { .query = NODE_QUERY_ROUTE, .node = r->config.index };

	row.route = (struct node_row_route){ .prefix = p->address,
		.prefix_length = (uint8_t)p->length,
		.origin = r->bgp != NULL ? "bgp" : "static",
		.system_port = TOPO_NONE,
		.port = TOPO_NONE,
		.set = ip_hops_get(&r->hops, p->set) };
	v->row_fn(v->user, &row);
}

/* A session between switches of ours. */
static void view_missing(const struct view *v, uint32_t index)
{
	const struct node_routing_peer *p = &v->routing->peers[index];
	struct node_row row = { .query = NODE_QUERY_READY, .node = v->routing->config.index };

	if (!p->ours || p->up)
		return;
	row.missing = (struct node_row_missing){ "BGP session", p->topo.port, p->topo.node };
	v->row_fn(v->user, &row);
}

void node_routing_view(const struct node_routing *r, enum node_query query, node_row_fn row_fn,
	void *user, dsf_instant now)
{
	struct view v = { r, row_fn, user };

	if (r == NULL)
		return;
	if (query == NODE_QUERY_BGP_TABLE && r->bgp != NULL)
		bgp_rows(r->bgp, view_path, &v);
	if (query == NODE_QUERY_READY)
		node_routing_view_expected(r, row_fn, user);
	for (const struct node_routing_prefix *p = NULL;
		query == NODE_QUERY_ROUTE && (p = dsf_hash_next(&r->prefixes, p)) != NULL;)
		view_route(&v, p);
	for (uint32_t i = 0; i < r->peers_count; i++) {
		if (query == NODE_QUERY_BGP_PEER)
			view_peer(&v, i, now);
		else if (query == NODE_QUERY_READY)
			view_missing(&v, i);
	}
}
