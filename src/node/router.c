#include "node/router.h"
#include <assert.h>
#include "base/rng.h"
#include "node/routed.h"

#define SEED_KIND 0x65636d7020666c6full /* "ecmp flo" */

static_assert(IP_HOPS_SETS_MAX < NODE_ROUTER_CONNECTED, "a set is told from a port");

/* What leaves waits in a queue, or on a link for its delay. */
static uint64_t buffer_bytes(const struct topo *t, const struct topo_node *self)
{
	uint64_t bytes = t->fabric.buffer_bytes;

	for (uint32_t i = 0; i < self->ports_count; i++)
		bytes += (uint64_t)FABRIC_CLASSES *
			 t->links[topo_node_port(t, self, i)->link].queue_bytes;
	return bytes;
}

/* One whose MAC is known. */
static const struct ip_neighbor *find_hop(
	const struct node_router *r, const struct dsf_ip6 *address)
{
	const struct ip_neighbor *to = ip_neighbor_lookup(&r->neighbors, address);

	return to == NULL || to->state != IP_NEIGHBOR_REACHABLE ? NULL : to;
}

static bool is_usable(void *user, const struct dsf_ip6 *address)
{
	return find_hop(user, address) != NULL;
}

static int add_own(struct node_router *r, const struct dsf_ip6 *address)
{
	struct ip_neighbor own = { .address = *address,
		.system_port = r->edge.inband_port,
		.owner = r->index,
		.state = IP_NEIGHBOR_STATIC,
		.local = true };

	return ip_neighbor_set(&r->neighbors, &own);
}

static int add_all_own(struct node_router *r)
{
	int err = add_own(r, &r->self->loopback);

	for (uint32_t i = 0; i < r->self->ports_count && err == 0; i++) {
		const struct topo_port *port = topo_node_port(r->topo, r->self, i);

		err = add_own(r, &port->address);
		if (err == 0)
			err = ip_route_set(&r->routes, &port->address, port->prefix_length,
				NODE_ROUTER_CONNECTED | i);
	}
	return err;
}

static int init_queues(struct node_router *r, const struct node_config *config)
{
	int err = node_queues_init(
		&r->queues, &r->edge.ethernet, &r->topo->fabric, config->seed, config->index);

	for (uint32_t i = 0; i < r->self->ports_count && err == 0; i++) {
		const struct topo_link *link =
			&r->topo->links[topo_node_port(r->topo, r->self, i)->link];

		r->queues.ports[i].ecn_min_bytes = link->ecn_min_bytes;
		r->queues.ports[i].ecn_max_bytes = link->ecn_max_bytes;
	}
	return err;
}

int node_router_route(struct node_router *r, const struct dsf_ip6 *prefix, unsigned length,
	const struct dsf_ip6 *hops, uint32_t count)
{
	uint32_t old, id = 0;
	bool had = ip_route_get(&r->routes, prefix, length, &old) == 0;
	int err = 0;

	if (had && (old & NODE_ROUTER_CONNECTED) != 0)
		return 0; /* nobody knows better */
	if (count == 0) {
		(void)ip_route_remove(&r->routes, prefix, length);
	} else {
		err = ip_hops_find(&r->hops, hops, count, &id);
		if (err < 0)
			return err;
		err = ip_route_set(&r->routes, prefix, length, id);
	}
	if (err < 0)
		ip_hops_drop(&r->hops, id);
	else if (had)
		ip_hops_drop(&r->hops, old);
	return err;
}

static int set_route(void *user, const struct dsf_ip6 *prefix, unsigned length,
	const struct dsf_ip6 *hops, uint32_t count)
{
	return node_router_route(user, prefix, length, hops, count);
}

struct node_router *node_router_new(const struct node_config *config, dsf_instant now)
{
	struct node_router *r = dsf_memory_new(config->memory, sizeof(*r));
	struct dsf_rng rng;
	int err;

	if (r == NULL)
		return NULL;
	r->topo = config->topo;
	r->self = &config->topo->nodes[config->index];
	r->memory = config->memory;
	r->index = config->index;
	dsf_rng_fork(&rng, config->seed, SEED_KIND, config->index);
	r->flow_seed = dsf_rng_next(&rng);
	ip_neighbor_init(&r->neighbors, r->memory, NULL);
	ip_route_init(&r->routes, r->memory);
	ip_hops_init(&r->hops, r->memory, is_usable, r);
	err = node_edge_init(&r->edge, config, buffer_bytes(r->topo, r->self), now);
	if (err == 0)
		err = init_queues(r, config);
	if (err == 0)
		err = add_all_own(r);
	if (err == 0)
		err = node_routed_walk(r->topo, r->index, r->memory, set_route, r);
	if (err == 0)
		return r;
	node_router_free(r);
	return NULL;
}

void node_router_free(struct node_router *r)
{
	const struct dsf_memory *memory = r->memory;

	if (r->queues.ports != NULL)
		node_queues_close(&r->queues);
	ip_route_close(&r->routes);
	ip_hops_close(&r->hops);
	ip_neighbor_close(&r->neighbors);
	node_edge_close(&r->edge);
	dsf_memory_delete(memory, r, sizeof(*r));
}

static void learn(struct node_router *r, const struct ip_ndp_change *change)
{
	struct ip_neighbor neighbor = { .address = change->address,
		.mac = change->mac,
		.system_port = change->port,
		.owner = r->index,
		.state = change->reachable ? IP_NEIGHBOR_REACHABLE : IP_NEIGHBOR_INCOMPLETE,
		.local = true };

	/* A full table keeps what it has; the packet path then resolves again and counts. */
	if (ip_neighbor_set(&r->neighbors, &neighbor) == 0)
		ip_hops_change(&r->hops, &change->address, change->reachable);
}

/* What an input or an expiry set off. */
static void settle(struct node_router *r, dsf_instant now)
{
	struct ip_ndp_change change;

	while (node_edge_changed(&r->edge, &change, now))
		learn(r, &change);
	node_edge_settle(&r->edge, now);
}

/* Who gets a packet next: a neighbour, one of our own addresses, or a next hop. NULL: *err. */
static const struct ip_neighbor *find_way(
	struct node_router *r, const struct ip_packet *p, dsf_instant now, int *err)
{
	const struct ip_neighbor *to = ip_neighbor_lookup(&r->neighbors, &p->destination);
	const struct dsf_ip6 *hop;
	uint32_t value;

	if (to != NULL && to->state != IP_NEIGHBOR_INCOMPLETE)
		return to;
	*err = ip_route_lookup(&r->routes, &p->destination, &value);
	if (*err < 0)
		return NULL;
	if ((value & NODE_ROUTER_CONNECTED) != 0) {
		*err = ip_ndp_resolve(r->edge.ndp, r->edge.ndp_port[value & ~NODE_ROUTER_CONNECTED],
			&p->destination, now);
		return NULL;
	}
	hop = ip_hops_pick(&r->hops, value, ip_packet_hash(p, r->flow_seed));
	*err = -DSF_E_NOROUTE;
	return hop == NULL ? NULL : find_hop(r, hop);
}

static struct node_edge_target target_of(const struct node_router *r, const struct ip_neighbor *to)
{
	const struct topo_port *port;

	if (to->system_port == r->edge.inband_port)
		return (struct node_edge_target){ .mtu = NODE_INBAND_MTU, .up = true };
	port = topo_node_port(r->topo, r->self, to->system_port);
	return (struct node_edge_target){
		.target = to->mac, .source = port->mac, .mtu = r->topo->links[port->link].mtu
	};
}

static int forward(
	struct node_router *r, uint32_t port, const struct node_frame *frame, dsf_instant now)
{
	struct node_edge_target target;
	const struct ip_neighbor *to;
	struct fabric_packet *packet;
	struct ip_packet p;
	int err = node_edge_input(&r->edge, port, frame, &p, now);

	if (err <= 0)
		return err;
	to = find_way(r, &p, now, &err);
	if (to == NULL) {
		if (err == -DSF_E_NOROUTE)
			node_edge_answer(&r->edge, port, IP_ICMP_NO_ROUTE, &p, frame, 0, now);
		return err;
	}
	target = target_of(r, to);
	err = node_edge_pass(&r->edge, port, &p, frame, &target, &packet, now);
	return err < 0 ? err : node_queues_push(&r->queues, to->system_port, packet, now);
}

int node_router_frame_input(
	struct node_router *r, uint32_t port, const struct node_frame *frame, dsf_instant now)
{
	struct node_ethernet_port *p;
	int err = -DSF_E_STATE;

	if (port == NODE_PORT_INBAND)
		port = r->edge.inband_port;
	p = &r->edge.ethernet.ports[port];
	if (p->carrier) {
		p->frames_rx++;
		p->bytes_rx += frame->size;
		err = forward(r, port, frame, now);
	}
	if (err < 0 && err != -DSF_E_FULL) /* queues count their own drops */
		node_count_error(r->edge.errors, err);
	settle(r, now);
	return err;
}

void node_router_carrier(struct node_router *r, uint32_t port, bool up, dsf_instant now)
{
	if (!node_edge_carrier(&r->edge, port, up, now))
		return;
	if (!up)
		node_queues_flush(&r->queues, port);
	settle(r, now);
}

dsf_instant node_router_deadline(const struct node_router *r)
{
	return dsf_time_min(node_queues_deadline(&r->queues), node_edge_deadline(&r->edge));
}

void node_router_expire(struct node_router *r, dsf_instant now)
{
	node_queues_expire(&r->queues, now);
	node_edge_expire(&r->edge, now);
	settle(r, now);
}

bool node_router_output(struct node_router *r, struct node_output *out, dsf_instant now)
{
	(void)now;
	return node_edge_output(&r->edge, out);
}

void node_router_frame_done(struct node_router *r, void *buffer)
{
	fabric_packet_free(&r->edge.packets, buffer);
}

int node_router_command(struct node_router *r, const struct node_command *command, dsf_instant now)
{
	(void)now;
	if (command->kind != NODE_COMMAND_IMPAIR)
		return -DSF_E_UNSUPPORTED;
	node_edge_impair(&r->edge, command->port, &command->impairment);
	return 0;
}

bool node_router_ready(const struct node_router *r)
{
	return node_edge_ready(&r->edge);
}
