#include "node/router.h"

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

		if (topo_port_has_address(port))
			err = add_own(r, &port->address);
	}
	return err;
}

static int init_queues(struct node_router *r, const struct node_config *config)
{
	int err = node_queues_init(
		&r->queues, &r->edge.ethernet, &r->topo->fabric, config->seed, config->index);

	if (err < 0)
		return err;
	for (uint32_t i = 0; i < r->self->ports_count; i++)
		r->queues.ports[i].ecn_min_bytes = r->queues.ports[i].ecn_max_bytes = 0;
	/* A hyperport is marked at the same delay as its members would be. */
	for (uint32_t i = 0; i < r->self->ports_count; i++) {
		const struct topo_port *port = topo_node_port(r->topo, r->self, i);
		struct node_queue_port *p =
			&r->queues.ports[topo_port_whole(r->topo, port)->number];

		p->ecn_min_bytes += r->topo->links[port->link].ecn_min_bytes;
		p->ecn_max_bytes += r->topo->links[port->link].ecn_max_bytes;
	}
	return 0;
}

static int init_routing(struct node_router *r, const struct node_config *config, dsf_instant now)
{
	struct node_routing_config routing = { .topo = r->topo,
		.index = r->index,
		.memory = r->memory,
		.trace = config->trace,
		.seed = config->seed,
		.control_dilation = config->control_dilation,
		.promised = !config->streams,
		.usable = is_usable,
		.user = r };

	return node_routing_new(&r->routing, &routing, now);
}

struct node_router *node_router_new(const struct node_config *config, dsf_instant now)
{
	struct node_router *r = dsf_memory_new(config->memory, sizeof(*r));
	int err;

	if (r == NULL)
		return NULL;
	r->topo = config->topo;
	r->self = &config->topo->nodes[config->index];
	r->memory = config->memory;
	r->index = config->index;
	ip_neighbor_init(&r->neighbors, r->memory, NULL);
	err = node_edge_init(&r->edge, config, buffer_bytes(r->topo, r->self), now);
	if (err == 0)
		err = init_queues(r, config);
	if (err == 0 && config->starting)
		r->edge.ethernet.ports[r->edge.inband_port].rate_bps = 0;
	if (err == 0)
		err = add_all_own(r);
	if (err == 0)
		err = init_routing(r, config, now);
	if (err == 0)
		return r;
	node_router_free(r);
	return NULL;
}

void node_router_free(struct node_router *r)
{
	const struct dsf_memory *memory = r->memory;

	node_routing_free(r->routing);
	if (r->queues.ports != NULL)
		node_queues_close(&r->queues);
	ip_neighbor_close(&r->neighbors);
	node_edge_close(&r->edge);
	dsf_memory_delete(memory, r, sizeof(*r));
}

static void learn(struct node_router *r, const struct ip_ndp_change *change, dsf_instant now)
{
	struct ip_neighbor neighbor = { .address = change->address,
		.mac = change->mac,
		.system_port = change->port,
		.owner = r->index,
		.state = change->reachable ? IP_NEIGHBOR_REACHABLE : IP_NEIGHBOR_INCOMPLETE,
		.local = true };

	/* A full table keeps what it has; the packet path then resolves again and counts. */
	(void)ip_neighbor_set(&r->neighbors, &neighbor);
	node_routing_look(r->routing, &change->address, now);
}

/* What an input or an expiry set off. */
static void settle(struct node_router *r, dsf_instant now)
{
	struct ip_ndp_change change;

	while (node_edge_changed(&r->edge, &change, now))
		learn(r, &change, now);
	node_edge_settle(&r->edge, now);
}

/* Who gets a packet next: a neighbour, one of our own addresses, or a next hop. NULL: *err. */
static const struct ip_neighbor *find_way(
	struct node_router *r, const struct ip_packet *p, dsf_instant now, int *err)
{
	const struct ip_neighbor *to = ip_neighbor_lookup(&r->neighbors, &p->destination);
	struct dsf_ip6 hop;

	if (to != NULL && to->state != IP_NEIGHBOR_INCOMPLETE)
		return to;
	*err = node_edge_resolve(&r->edge, &p->destination, now);
	if (*err != -DSF_E_NOROUTE || !node_routing_find(r->routing, p, &hop))
		return NULL;
	return find_hop(r, &hop);
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
		err = forward(r, p->whole, frame, now);
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
	port = r->edge.ethernet.ports[port].whole;
	if (!node_ethernet_is_up(&r->edge.ethernet, port))
		node_queues_flush(&r->queues, port);
	settle(r, now);
}

dsf_instant node_router_deadline(const struct node_router *r)
{
	dsf_instant at =
		dsf_time_min(node_queues_deadline(&r->queues), node_edge_deadline(&r->edge));

	return dsf_time_min(at, node_routing_deadline(r->routing));
}

void node_router_expire(struct node_router *r, dsf_instant now)
{
	node_queues_expire(&r->queues, now);
	node_edge_expire(&r->edge, now);
	node_routing_expire(r->routing, now);
	settle(r, now);
}

bool node_router_output(struct node_router *r, struct node_output *out, dsf_instant now)
{
	return node_edge_output(&r->edge, out) || node_routing_output(r->routing, out, now);
}

void node_router_frame_done(struct node_router *r, void *buffer)
{
	fabric_packet_free(&r->edge.packets, buffer);
}

int node_router_command(struct node_router *r, const struct node_command *command, dsf_instant now)
{
	(void)now;
	if (command->kind == NODE_COMMAND_STARTED)
		r->edge.ethernet.ports[r->edge.inband_port].rate_bps = NODE_INBAND_RATE_BPS;
	else if (command->kind == NODE_COMMAND_IMPAIR)
		node_edge_impair(&r->edge, command->port, &command->impairment);
	else
		return -DSF_E_UNSUPPORTED;
	return 0;
}

bool node_router_ready(const struct node_router *r)
{
	return node_edge_ready(&r->edge) && node_routing_ready(r->routing);
}
