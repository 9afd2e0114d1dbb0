#include "node/interface_node.h"

/* Port number of a system port of ours; the host port is one behind the topology's ports. */
uint32_t node_interface_port_of(const struct node_interface *n, uint32_t system_port)
{
	uint32_t port;

	if (system_port - n->first_system_port >= TOPO_PORTS_PER_SWITCH)
		return TOPO_NONE;
	if (system_port - n->first_system_port == NODE_SYSTEM_PORT_INBAND)
		return n->edge.inband_port;
	port = n->topo->system_port_port[system_port];
	return port == TOPO_NONE ? TOPO_NONE : n->topo->ports[port].number;
}

static int add_static(struct ip_neighbor_table *t, uint32_t owner, bool local,
	const struct dsf_ip6 *address, const struct dsf_mac *mac, uint32_t system_port)
{
	struct ip_neighbor neighbor = { .address = *address,
		.mac = *mac,
		.system_port = system_port,
		.owner = owner,
		.state = IP_NEIGHBOR_STATIC,
		.local = local };

	return ip_neighbor_set(t, &neighbor);
}

/* Addresses of a routed switch go up its host port; behind: what the lab file has behind its
 * Ethernet ports is there as well. */
static int add_switch(struct ip_neighbor_table *table, const struct topo *t,
	const struct topo_node *owner, bool local, bool behind)
{
	static const struct dsf_mac none = { { 0 } };
	uint32_t index = (uint32_t)(owner - t->nodes);
	uint32_t inband = owner->switch_index * TOPO_PORTS_PER_SWITCH + NODE_SYSTEM_PORT_INBAND;
	int err = add_static(table, index, local, &owner->loopback, &none, inband);

	for (uint32_t i = 0; i < owner->ports_count && err == 0; i++) {
		const struct topo_port *port = topo_node_port(t, owner, i);
		const struct topo_port *peer = &t->ports[port->peer];

		if (!topo_port_has_address(port))
			continue;
		err = add_static(table, index, local, &port->address, &none, inband);
		if (err == 0 && behind)
			err = add_static(
				table, index, false, &peer->address, &peer->mac, port->system_port);
	}
	return err;
}

int node_neighbors_init(struct ip_neighbor_table *table, const struct dsf_memory *memory,
	const struct topo *t, uint32_t plane, uint32_t building, bool behind)
{
	int err = 0;

	ip_neighbor_init(table, memory, NULL);
	for (uint32_t i = 0; i < t->switches_count && err == 0; i++) {
		const struct topo_node *owner = &t->nodes[t->switch_node[i]];

		if (topo_is_interface_node(owner->role) && owner->plane == plane &&
			owner->building == building)
			err = add_switch(table, t, owner, false, behind);
	}
	if (err < 0)
		ip_neighbor_close(table);
	return err;
}

int node_forward_init(struct node_interface *n, const struct node_config *config)
{
	const struct ip_neighbor_table *promised = config->neighbors;
	int err = 0;

	if (promised == NULL) {
		err = node_neighbors_init(&n->promised, n->memory, n->topo, n->self->plane,
			n->self->building, !config->streams || config->promised);
		promised = &n->promised;
	}
	ip_neighbor_init(&n->neighbors, n->memory, promised);
	if (err == 0)
		err = add_switch(&n->neighbors, n->topo, n->self, true, false);
	return err;
}

/* Is a system port ours, or of a switch that the fabric reaches? */
static bool is_reached(const struct node_interface *n, uint32_t system_port)
{
	uint32_t target = system_port / TOPO_PORTS_PER_SWITCH;

	return target == n->self->switch_index || dsf_bitset_has(n->cells.reach.any, target);
}

bool node_forward_knows(const struct node_interface *n, const struct ip_neighbor *neighbor)
{
	return neighbor->local || neighbor->owner != n->index;
}

bool node_forward_usable(void *user, const struct dsf_ip6 *address)
{
	const struct node_interface *n = user;
	const struct ip_neighbor *e = ip_neighbor_lookup(&n->neighbors, address);

	return e != NULL && e->state != IP_NEIGHBOR_INCOMPLETE && node_forward_knows(n, e) &&
	       is_reached(n, e->system_port);
}

static void learn(struct node_interface *n, const struct ip_ndp_change *change, dsf_instant now)
{
	struct ip_neighbor neighbor = { .address = change->address,
		.mac = change->mac,
		.system_port = topo_node_port(n->topo, n->self, change->port)->system_port,
		.owner = n->index,
		.state = change->reachable ? IP_NEIGHBOR_REACHABLE : IP_NEIGHBOR_INCOMPLETE,
		.local = true };

	/* A full table keeps what it has; the packet path then resolves again and counts. */
	(void)ip_neighbor_set(&n->neighbors, &neighbor);
	node_sessions_neighbor(n, change, now);
	node_routing_look(n->routing, &change->address, now);
}

void node_forward_settle(struct node_interface *n, dsf_instant now)
{
	struct ip_ndp_change change;

	while (node_edge_changed(&n->edge, &change, now))
		learn(n, &change, now);
	node_edge_settle(&n->edge, now);
}

static uint32_t mtu_of(const struct node_interface *n, uint32_t system_port)
{
	uint32_t port;

	if (system_port % TOPO_PORTS_PER_SWITCH == NODE_SYSTEM_PORT_INBAND)
		return NODE_INBAND_MTU;
	port = n->topo->system_port_port[system_port];
	return n->topo->links[n->topo->ports[port].link].mtu;
}

/* MACs of the egress port and the neighbour. */
static struct node_edge_target target_of(
	const struct node_interface *n, const struct ip_neighbor *to)
{
	uint32_t port = n->topo->system_port_port[to->system_port];

	return (struct node_edge_target){ .target = to->mac,
		.source = port == TOPO_NONE ? to->mac : n->topo->ports[port].mac,
		.mtu = mtu_of(n, to->system_port),
		.up = to->system_port == n->first_system_port + NODE_SYSTEM_PORT_INBAND };
}

static int enqueue(struct node_interface *n, struct fabric_packet *packet,
	const struct ip_neighbor *to, dsf_instant now)
{
	struct fabric_voq_key key = { to->system_port, packet->class };
	uint16_t target = (uint16_t)(to->system_port / TOPO_PORTS_PER_SWITCH);
	struct fabric_voq *q =
		fabric_voq_get(&n->voqs, key, target, is_reached(n, to->system_port), now);

	packet->system_port = to->system_port;
	packet->source = (uint16_t)n->self->switch_index;
	if (q == NULL) {
		fabric_packet_free(&n->edge.packets, packet);
		return -DSF_E_FULL;
	}
	return fabric_voq_push(&n->voqs, q, packet, now);
}

/* The neighbour to which a packet goes: its destination, or the next hop of its route. Resolves one
 * that should be behind a port of ours. */
static const struct ip_neighbor *find_neighbor(
	struct node_interface *n, const struct ip_packet *p, dsf_instant now, int *err)
{
	const struct ip_neighbor *to = ip_neighbor_lookup(&n->neighbors, &p->destination);
	struct dsf_ip6 next_hop;

	if (to != NULL && to->state != IP_NEIGHBOR_INCOMPLETE && node_forward_knows(n, to))
		return to;
	*err = node_edge_resolve(&n->edge, &p->destination, now);
	if (*err != -DSF_E_NOROUTE || !node_routing_find(n->routing, p, &next_hop))
		return NULL;
	return ip_neighbor_lookup(&n->neighbors, &next_hop);
}

int node_forward_input(
	struct node_interface *n, uint32_t port, const struct node_frame *frame, dsf_instant now)
{
	const struct ip_neighbor *to;
	struct node_edge_target target;
	struct fabric_packet *packet;
	struct ip_packet p;
	int err = node_edge_input(&n->edge, port, frame, &p, now);

	if (err <= 0)
		return err;
	to = find_neighbor(n, &p, now, &err);
	if (to == NULL) {
		if (err == -DSF_E_NOROUTE)
			node_edge_answer(&n->edge, port, IP_ICMP_NO_ROUTE, &p, frame, 0, now);
		return err;
	}
	target = target_of(n, to);
	err = node_edge_pass(&n->edge, port, &p, frame, &target, &packet, now);
	return err < 0 ? err : enqueue(n, packet, to, now);
}
