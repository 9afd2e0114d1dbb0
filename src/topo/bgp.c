#include "topo/bgp.h"

bool topo_is_routed(const struct topo_node *n)
{
	return !dsf_ip6_is_unspecified(&n->loopback);
}

uint32_t topo_bgp_router_id(const struct topo *t, uint32_t node)
{
	const struct topo_node *n = &t->nodes[node];
	const uint8_t *a = n->loopback.bytes;

	if (n->bgp != TOPO_NONE)
		return t->bgp[n->bgp].router_id;
	return (a[2] + 1u) << 24 | (uint32_t)a[3] << 16 | (uint32_t)a[4] << 8 | a[5];
}

struct dsf_ip6 topo_bgp_aggregate(uint32_t plane, uint32_t building)
{
	return (struct dsf_ip6){ { 0xfd, 0x5f, (uint8_t)plane, (uint8_t)building } };
}

static const struct topo_bgp_neighbor *find_given(
	const struct topo *t, const struct topo_node *n, const struct dsf_ip6 *address)
{
	const struct topo_bgp *bgp = n->bgp == TOPO_NONE ? NULL : &t->bgp[n->bgp];

	for (uint32_t i = 0; bgp != NULL && i < bgp->neighbors_count; i++) {
		const struct topo_bgp_neighbor *g = &t->bgp_neighbors[bgp->first_neighbor + i];

		if (dsf_ip6_equal(&g->address, address))
			return g;
	}
	return NULL;
}

static bool take_given(
	const struct topo *t, const struct topo_node *n, uint32_t at, struct topo_bgp_peer *peer)
{
	const struct topo_bgp_neighbor *g = &t->bgp_neighbors[t->bgp[n->bgp].first_neighbor + at];

	*peer = (struct topo_bgp_peer){ .kind = TOPO_BGP_GIVEN,
		.node = g->node,
		.port = g->port,
		.asn = g->asn,
		.address = g->address,
		.local = g->local,
		.given = g };
	return true;
}

/* Over a port of ours, when its other end is a router too. */
static bool take_link(
	const struct topo *t, const struct topo_node *n, uint32_t at, struct topo_bgp_peer *peer)
{
	const struct topo_port *port = topo_node_port(t, n, at);
	const struct topo_port *far = &t->ports[port->peer];
	const struct topo_node *other = &t->nodes[far->node];

	if (!topo_port_has_address(port) || !topo_is_routed(other) || t->links[port->link].loop ||
		(t->fabric.mode == TOPO_FABRIC_DSF && t->links[port->link].kind != TOPO_LINK_EDGE))
		return false;
	*peer = (struct topo_bgp_peer){ .kind = TOPO_BGP_LINK,
		.node = far->node,
		.port = at,
		.asn = other->asn,
		.address = far->address,
		.local = port->address };
	return true;
}

/* Edge and leaves of a building and plane. */
static bool take_internal(
	const struct topo *t, const struct topo_node *n, uint32_t at, struct topo_bgp_peer *peer)
{
	uint32_t node = t->switch_node[at];
	const struct topo_node *other = node == TOPO_NONE ? n : &t->nodes[node];

	if (!topo_is_interface_node(other->role) || other->role == n->role ||
		other->plane != n->plane || other->building != n->building)
		return false;
	*peer = (struct topo_bgp_peer){ .kind = TOPO_BGP_INTERNAL,
		.node = node,
		.port = TOPO_NONE,
		.asn = other->asn,
		.address = other->loopback,
		.local = n->loopback };
	return true;
}

/* How many places of a kind a walk looks at. */
static uint32_t places(const struct topo *t, const struct topo_node *n, enum topo_bgp_kind kind)
{
	switch (kind) {
	case TOPO_BGP_GIVEN: return n->bgp == TOPO_NONE ? 0 : t->bgp[n->bgp].neighbors_count;
	case TOPO_BGP_LINK: return n->ports_count;
	case TOPO_BGP_INTERNAL:
		return t->fabric.mode == TOPO_FABRIC_DSF && topo_is_interface_node(n->role)
			       ? t->switches_count
			       : 0;
	}
	return 0;
}

static bool take(const struct topo *t, const struct topo_node *n, const struct topo_bgp_walk *walk,
	struct topo_bgp_peer *peer)
{
	switch (walk->kind) {
	case TOPO_BGP_GIVEN: return take_given(t, n, walk->at, peer);
	case TOPO_BGP_LINK:
		return take_link(t, n, walk->at, peer) && find_given(t, n, &peer->address) == NULL;
	case TOPO_BGP_INTERNAL:
		return take_internal(t, n, walk->at, peer) &&
		       find_given(t, n, &peer->address) == NULL;
	}
	return false;
}

bool topo_bgp_next(
	const struct topo *t, uint32_t node, struct topo_bgp_walk *walk, struct topo_bgp_peer *peer)
{
	const struct topo_node *n = &t->nodes[node];

	while (topo_is_routed(n)) {
		if (walk->at >= places(t, n, walk->kind)) {
			if (walk->kind == TOPO_BGP_INTERNAL)
				return false;
			walk->kind = (enum topo_bgp_kind)(walk->kind + 1);
			walk->at = 0;
			continue;
		}
		if (take(t, n, walk, peer)) {
			walk->at++;
			return true;
		}
		walk->at++;
	}
	return false;
}
