#include "node/routed.h"
#include "base/err.h"
#include "topo/bgp.h"

#define FAR           UINT16_MAX
#define BUILDINGS_MAX 256u

/* Distances from each port's neighbour to every node. */
struct picture {
	const struct topo *t;
	const struct topo_node *self;
	uint16_t *distances;  /* [ports_count][nodes_count] */
	uint32_t *queue;      /* [nodes_count] */
	struct dsf_ip6 *hops; /* [ports_count] */
};

struct dsf_ip6 node_routed_prefix(const struct topo_node *n)
{
	struct dsf_ip6 prefix = { { 0 } };

	memcpy(prefix.bytes, n->loopback.bytes, NODE_ROUTED_SWITCH_LENGTH / 8);
	return prefix;
}

/* May a way that came from a node of role before go on from at to next? */
static bool goes_on(enum topo_role at, enum topo_role next)
{
	if (at == TOPO_ROLE_RDSW)
		return false;
	return at != TOPO_ROLE_EDSW || next == TOPO_ROLE_SSW;
}

static uint16_t *row_of(const struct picture *p, uint32_t port)
{
	return p->distances + (size_t)port * p->t->nodes_count;
}

/* No building is a way to another: what comes down to an EDSW from the super spine ends there. */
static bool ends_at(enum topo_role from, enum topo_role at)
{
	return from == TOPO_ROLE_SSW && at == TOPO_ROLE_EDSW;
}

/* Breadth first from a neighbour, never through ourselves. */
static void measure(const struct picture *p, uint32_t from, uint16_t *distances)
{
	const struct topo *t = p->t;
	uint32_t first = 0, last = 0;

	memset(distances, 0xff, t->nodes_count * sizeof(*distances));
	distances[from] = 0;
	if (!ends_at(p->self->role, t->nodes[from].role))
		p->queue[last++] = from;
	while (first < last) {
		uint32_t node = p->queue[first++];
		const struct topo_node *n = &t->nodes[node];

		for (uint32_t i = 0; i < n->ports_count; i++) {
			const struct topo_port *port = topo_node_port(t, n, i);
			uint32_t next = t->ports[port->peer].node;
			const struct topo_node *other = &t->nodes[next];

			if (!topo_port_has_address(port) || !topo_is_routed(other) ||
				other == p->self || distances[next] != FAR ||
				!goes_on(n->role, other->role))
				continue;
			distances[next] = (uint16_t)(distances[node] + 1);
			if (!ends_at(n->role, other->role))
				p->queue[last++] = next;
		}
	}
}

static uint32_t neighbor_of(const struct picture *p, uint32_t port)
{
	return p->t->ports[topo_node_port(p->t, p->self, port)->peer].node;
}

static void measure_all(const struct picture *p)
{
	for (uint32_t i = 0; i < p->self->ports_count; i++) {
		uint32_t neighbor = neighbor_of(p, i), same = 0;

		while (same < i && neighbor_of(p, same) != neighbor)
			same++;
		if (same < i)
			memcpy(row_of(p, i), row_of(p, same), p->t->nodes_count * sizeof(uint16_t));
		else if (topo_is_routed(&p->t->nodes[neighbor]))
			measure(p, neighbor, row_of(p, i));
		else
			memset(row_of(p, i), 0xff, p->t->nodes_count * sizeof(uint16_t));
	}
}

/* Adds the neighbour's address at port to the hops, so that they rise. */
static void add_hop(const struct picture *p, uint32_t port, uint32_t *count)
{
	const struct topo_port *own = topo_node_port(p->t, p->self, port);
	struct dsf_ip6 address = p->t->ports[own->peer].address;
	uint32_t at = (*count)++;

	for (; at > 0 && memcmp(&p->hops[at - 1], &address, sizeof(address)) > 0; at--)
		p->hops[at] = p->hops[at - 1];
	p->hops[at] = address;
}

/* The nearest of the nodes that are meant: one, or a building's EDSWs (node TOPO_NONE). */
static uint16_t nearest(const struct picture *p, uint32_t port, uint32_t node, uint32_t building)
{
	const uint16_t *distances = row_of(p, port);
	uint16_t least = FAR;

	/* SSWs know nothing inside a building. */
	if (node != TOPO_NONE)
		return p->t->nodes[neighbor_of(p, port)].role == TOPO_ROLE_SSW ? FAR
									       : distances[node];
	for (uint32_t i = 0; i < p->t->nodes_count; i++) {
		const struct topo_node *n = &p->t->nodes[i];

		if (n->role == TOPO_ROLE_EDSW && n->building == building && distances[i] < least)
			least = distances[i];
	}
	return least;
}

/* A switch's route, or (node TOPO_NONE) a building's. */
static int tell(const struct picture *p, uint32_t building, struct node_routed *route,
	node_routed_fn fn, void *user)
{
	uint16_t least = FAR;

	route->hops = p->hops;
	route->count = 0;
	for (uint32_t i = 0; i < p->self->ports_count; i++) {
		uint16_t distance = topo_port_has_address(topo_node_port(p->t, p->self, i))
					    ? nearest(p, i, route->node, building)
					    : FAR;

		if (distance < least) {
			least = distance;
			route->count = 0;
		}
		if (distance == least && distance != FAR)
			add_hop(p, i, &route->count);
	}
	return route->count == 0 ? 0 : fn(user, route);
}

static int tell_switches(const struct picture *p, node_routed_fn fn, void *user)
{
	bool routed = p->t->fabric.mode == TOPO_FABRIC_ECMP;
	int err = 0;

	for (uint32_t i = 0; routed && i < p->t->nodes_count && err == 0; i++) {
		const struct topo_node *n = &p->t->nodes[i];
		struct node_routed route = { .prefix = node_routed_prefix(n),
			.length = NODE_ROUTED_SWITCH_LENGTH,
			.node = i };

		if (topo_is_routed(n) && n != p->self && n->building != TOPO_NONE &&
			n->building == p->self->building)
			err = tell(p, n->building, &route, fn, user);
	}
	return err;
}

static int tell_buildings(const struct picture *p, node_routed_fn fn, void *user)
{
	bool told[BUILDINGS_MAX] = { false };
	int err = 0;

	for (uint32_t i = 0; i < p->t->nodes_count && err == 0; i++) {
		const struct topo_node *n = &p->t->nodes[i];
		struct node_routed route = { .prefix = topo_bgp_aggregate(n->plane, n->building),
			.length = TOPO_BGP_AGGREGATE_LENGTH,
			.node = TOPO_NONE };

		if (n->role != TOPO_ROLE_EDSW || n->plane != p->self->plane ||
			n->building == p->self->building || told[n->building])
			continue;
		told[n->building] = true;
		err = tell(p, n->building, &route, fn, user);
	}
	return err;
}

int node_routed_walk(const struct topo *t, uint32_t self, const struct dsf_memory *memory,
	node_routed_fn fn, void *user)
{
	struct picture p = { .t = t, .self = &t->nodes[self] };
	uint32_t ports = p.self->ports_count;
	size_t distances_size = (size_t)ports * t->nodes_count * sizeof(*p.distances);
	int err = -DSF_E_NOMEM;

	p.distances = dsf_memory_new(memory, distances_size);
	p.queue = dsf_memory_new(memory, t->nodes_count * sizeof(*p.queue));
	p.hops = dsf_memory_new(memory, ports * sizeof(*p.hops));
	if (p.distances != NULL && p.queue != NULL && p.hops != NULL) {
		measure_all(&p);
		err = tell_switches(&p, fn, user);
		if (err == 0)
			err = tell_buildings(&p, fn, user);
	}
	dsf_memory_delete(memory, p.distances, distances_size);
	dsf_memory_delete(memory, p.queue, t->nodes_count * sizeof(*p.queue));
	dsf_memory_delete(memory, p.hops, ports * sizeof(*p.hops));
	return err;
}
