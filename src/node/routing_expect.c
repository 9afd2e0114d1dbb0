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

int node_routing_expect(struct node_routing *r, dsf_instant now)
{
	struct expecting e = { r, now };

	dsf_hash_init(&r->expected, r->config.memory, sizeof(struct dsf_ip6) + sizeof(uint32_t),
		sizeof(struct node_routing_expected), NODE_ROUTING_PREFIXES_MAX);
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
