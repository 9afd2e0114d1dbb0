/* routing_expect.c - the routes that a routed switch has when all of the lab is up */
#include "base/err.h"
#include "node/routed.h"
#include "node/routing_state.h"
#include "node/row.h"

struct expecting {
	struct node_routing *routing;
	dsf_instant now;
};

static int expect(void *user, const struct node_routed *route)
{
	const struct expecting *e = user;
	struct node_routing_expected key = { .address = route->prefix, .length = route->length };
	struct node_routing_expected *x = dsf_hash_put(&e->routing->expected, &key);

	if (x == NULL)
		return -DSF_E_NOMEM;
	x->node = route->node;
	x->hops = route->count;
	if (e->routing->config.promised)
		node_routing_route(e->routing, &route->prefix, route->length, route->hops,
			route->count, e->now);
	return 0;
}

#define BUILDINGS_MAX 256u /* a byte of an address */

/* The next session that follows from a link to a switch of that role; false: there is no other. */
static bool next_link(const struct topo *t, uint32_t node, enum topo_role role,
	struct topo_bgp_walk *walk, struct topo_bgp_peer *peer)
{
	while (topo_bgp_next(t, node, walk, peer) && peer->kind != TOPO_BGP_INTERNAL)
		if (peer->kind == TOPO_BGP_LINK && t->nodes[peer->node].role == role)
			return true;
	return false;
}

/* Adds the links of an edge switch over whose spine switches each building is. */
static void count_links(const struct topo *t, uint32_t edge, uint32_t hops[BUILDINGS_MAX])
{
	struct topo_bgp_walk links = { 0 };
	struct topo_bgp_peer spine, other;
	uint32_t last = TOPO_NONE;
	bool has[BUILDINGS_MAX];

	while (next_link(t, edge, TOPO_ROLE_SSW, &links, &spine)) {
		struct topo_bgp_walk walk = { 0 };

		if (spine.node != last)
			memset(has, 0, sizeof(has));
		while (spine.node != last &&
			next_link(t, spine.node, TOPO_ROLE_EDSW, &walk, &other))
			has[t->nodes[other.node].building] = true;
		last = spine.node;
		for (uint32_t b = 0; b < BUILDINGS_MAX; b++)
			hops[b] += has[b];
	}
}

/* An edge switch has other buildings by its own links, a leaf by those of all edge switches. */
static int expect_buildings(struct node_routing *r)
{
	const struct topo *t = r->config.topo;
	struct node_routing_expected key = { .length = TOPO_BGP_AGGREGATE_LENGTH }, *x;
	uint32_t hops[BUILDINGS_MAX] = { 0 };
	struct topo_bgp_walk walk = { 0 };
	struct topo_bgp_peer peer;

	if (r->self->role == TOPO_ROLE_EDSW)
		count_links(t, r->config.index, hops);
	while (r->self->role == TOPO_ROLE_RDSW && topo_bgp_next(t, r->config.index, &walk, &peer))
		if (peer.kind == TOPO_BGP_INTERNAL)
			count_links(t, peer.node, hops);
	for (uint32_t b = 0; b < BUILDINGS_MAX; b++) {
		if (hops[b] == 0 || b == r->self->building)
			continue;
		key.address = topo_bgp_aggregate(r->self->plane, b);
		x = dsf_hash_put(&r->expected, &key);
		if (x == NULL)
			return -DSF_E_NOMEM;
		x->node = TOPO_NONE;
		x->hops = hops[b];
	}
	return 0;
}

int node_routing_expect(struct node_routing *r, dsf_instant now)
{
	bool cells = r->config.topo->fabric.mode == TOPO_FABRIC_DSF;
	struct expecting e = { r, now };

	dsf_hash_init(&r->expected, r->config.memory, sizeof(struct dsf_ip6) + sizeof(uint32_t),
		sizeof(struct node_routing_expected), NODE_ROUTING_PREFIXES_MAX);
	if (cells && topo_is_interface_node(r->self->role))
		return expect_buildings(r);
	return node_routed_walk(r->config.topo, r->config.index, r->config.memory, expect, &e);
}

void node_routing_count(
	struct node_routing *r, const struct dsf_ip6 *prefix, uint32_t length, uint32_t hops)
{
	struct node_routing_expected key = { .address = *prefix, .length = length };
	struct node_routing_expected *x = dsf_hash_get(&r->expected, &key);

	if (x == NULL || x->there == (hops >= x->hops))
		return;
	x->there = !x->there;
	r->expected_there += x->there ? 1u : ~0u;
}

void node_routing_view_expected(const struct node_routing *r, node_row_fn row_fn, void *user)
{
	for (const struct node_routing_expected *x = NULL;
		(x = dsf_hash_next(&r->expected, x)) != NULL;) {
		struct node_row row = { .query = NODE_QUERY_READY, .node = r->config.index };

		if (x->there)
			continue;
		row.missing = (struct node_row_missing){ "route", TOPO_NONE, x->node };
		row_fn(user, &row);
	}
}
