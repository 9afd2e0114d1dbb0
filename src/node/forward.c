#include "ip/ndp_wire.h"
#include "node/interface_node.h"

/* Neighbours are few and one hop away: the first solicitation is repeated sooner than hosts do it,
 * and backs off from there (protocol time). */
#define NDP_RETRANSMIT_NS (50 * NS_PER_MS)

/* Port number of a system port of ours; the host port is one behind the topology's ports. */
uint32_t node_interface_port_of(const struct node_interface *n, uint32_t system_port)
{
	uint32_t port;

	if (system_port - n->first_system_port >= TOPO_PORTS_PER_SWITCH)
		return TOPO_NONE;
	if (system_port - n->first_system_port == NODE_SYSTEM_PORT_INBAND)
		return n->inband_port;
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

		if (!port->ethernet)
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

static int init_ndp(struct node_interface *n, uint32_t control_dilation, dsf_instant now)
{
	struct ip_ndp_port ports[TOPO_PORTS_PER_SWITCH];
	struct ip_ndp_config config = { .memory = n->memory,
		.ports = ports,
		.router = true,
		.retransmit_ns = NDP_RETRANSMIT_NS / control_dilation,
		.reachable_ns = IP_NDP_REACHABLE_NS / control_dilation };
	uint32_t count = 0;

	for (uint32_t i = 0; i < n->self->ports_count; i++) {
		const struct topo_port *port = topo_node_port(n->topo, n->self, i);

		if (!port->ethernet)
			continue;
		ports[count] =
			(struct ip_ndp_port){ port->mac, port->address, port->prefix_length };
		n->ndp_port[i] = count;
		n->ndp_number[count++] = i;
	}
	n->ethernet_count = config.ports_count = count;
	if (count == 0)
		return 0;
	n->ndp = ip_ndp_new(&config);
	if (n->ndp == NULL)
		return -DSF_E_NOMEM;
	for (uint32_t i = 0; i < count; i++) {
		const struct topo_port *port = topo_node_port(n->topo, n->self, n->ndp_number[i]);
		int err = ip_ndp_solicit(n->ndp, i, &n->topo->ports[port->peer].address, now);

		if (err < 0)
			return err;
	}
	return 0;
}

int node_forward_init(struct node_interface *n, const struct node_config *config, dsf_instant now)
{
	const struct ip_neighbor_table *promised = config->neighbors;
	int err = 0;

	if (promised == NULL) {
		err = node_neighbors_init(&n->promised, n->memory, n->topo, n->self->plane,
			n->self->building, !config->streams);
		promised = &n->promised;
	}
	ip_neighbor_init(&n->neighbors, n->memory, promised);
	ip_icmp_init(&n->icmp, IP_ICMP_INTERVAL_NS / config->control_dilation);
	if (err == 0)
		err = init_ndp(n, config->control_dilation, now);
	if (err == 0)
		err = add_switch(&n->neighbors, n->topo, n->self, true, false);
	return err;
}

bool node_forward_knows(const struct node_interface *n, const struct ip_neighbor *neighbor)
{
	return neighbor->local || neighbor->owner != n->index;
}

static void learn(struct node_interface *n, const struct ip_ndp_change *change, dsf_instant now)
{
	uint32_t number = n->ndp_number[change->port];
	const struct topo_port *port = topo_node_port(n->topo, n->self, number);
	struct ip_neighbor neighbor = { .address = change->address,
		.mac = change->mac,
		.system_port = port->system_port,
		.owner = n->index,
		.state = change->reachable ? IP_NEIGHBOR_REACHABLE : IP_NEIGHBOR_INCOMPLETE,
		.local = true };

	/* A full table keeps what it has; the packet path then resolves again and counts. */
	(void)ip_neighbor_set(&n->neighbors, &neighbor);
	node_sessions_neighbor(n, change, now);
	dsf_trace_emit(n->trace, now,
		change->reachable ? DSF_EVENT_NEIGHBOR_UP : DSF_EVENT_NEIGHBOR_DOWN, n->index,
		number, 0);
}

/* A frame of our own making, straight to its port: it waits for nobody's credit. */
static void send_own(struct node_interface *n, uint32_t port, const uint8_t *bytes, uint32_t size,
	dsf_instant now)
{
	struct fabric_packet *packet = fabric_packet_new(&n->packets, size);

	if (packet == NULL) {
		node_count_error(n->errors, -DSF_E_NOMEM);
		return;
	}
	packet->size = (uint16_t)size;
	packet->class = FABRIC_CLASS_NC;
	packet->ecn_capable = false;
	memcpy(packet->bytes, bytes, size);
	node_ethernet_send(&n->ethernet, port, packet, now);
}

void node_forward_settle(struct node_interface *n, dsf_instant now)
{
	uint8_t frame[IP_NDP_FRAME_SIZE];
	struct ip_ndp_change change;
	uint32_t port;
	size_t size;

	if (n->ndp == NULL)
		return;
	while (ip_ndp_changed(n->ndp, &change))
		learn(n, &change, now);
	while ((size = ip_ndp_output(n->ndp, &port, frame, sizeof(frame), now)) > 0)
		send_own(n, n->ndp_number[port], frame, (uint32_t)size, now);
}

/* Answers a packet that can't be passed on, towards where it came from. */
static void answer(struct node_interface *n, uint32_t port, enum ip_icmp_error error,
	const struct ip_packet *p, const struct node_frame *frame, uint32_t mtu, dsf_instant now)
{
	const struct dsf_ip6 *source = port == n->inband_port
					       ? &n->self->loopback
					       : &topo_node_port(n->topo, n->self, port)->address;
	size_t size = ip_icmp_error(&n->icmp, error, p, frame->bytes, frame->stored, source, mtu,
		n->icmp_frame, sizeof(n->icmp_frame), now);

	if (size > 0)
		send_own(n, port, n->icmp_frame, (uint32_t)size, now);
}

static uint32_t mtu_of(const struct node_interface *n, uint32_t system_port)
{
	uint32_t port;

	if (system_port % TOPO_PORTS_PER_SWITCH == NODE_SYSTEM_PORT_INBAND)
		return NODE_INBAND_MTU;
	port = n->topo->system_port_port[system_port];
	return n->topo->links[n->topo->ports[port].link].mtu;
}

/* An Ethernet frame of the packet for the far end: MACs of the egress port and the neighbour. */
static struct fabric_packet *make_packet(struct node_interface *n, const struct node_frame *frame,
	const struct ip_packet *p, const struct ip_neighbor *to)
{
	uint32_t headers = p->header_offset;
	uint32_t stored = frame->stored - headers;
	uint32_t port = n->topo->system_port_port[to->system_port];
	struct fabric_packet *packet;

	if (stored > p->size)
		stored = p->size; /* Ethernet padding isn't carried on */
	packet = fabric_packet_new(&n->packets, IP_ETHERNET_SIZE + stored);
	if (packet == NULL)
		return NULL;
	packet->size = (uint16_t)(IP_ETHERNET_SIZE + p->size);
	packet->class = (uint8_t)fabric_class_of_dscp(p->dscp);
	packet->ecn_capable = p->ecn == IP_ECN_ECT0 || p->ecn == IP_ECN_ECT1;
	packet->system_port = to->system_port;
	packet->source = (uint16_t)n->self->switch_index;
	ip_packet_write_ethernet(
		packet->bytes, &to->mac, port == TOPO_NONE ? &to->mac : &n->topo->ports[port].mac);
	memcpy(packet->bytes + IP_ETHERNET_SIZE, frame->bytes + headers, stored);
	return packet;
}

static int enqueue(struct node_interface *n, struct fabric_packet *packet,
	const struct ip_neighbor *to, dsf_instant now)
{
	struct fabric_voq_key key = { to->system_port, packet->class };
	uint16_t target = (uint16_t)(to->system_port / TOPO_PORTS_PER_SWITCH);
	bool reachable =
		target == n->self->switch_index || dsf_bitset_has(n->cells.reach.any, target);
	struct fabric_voq *q = fabric_voq_get(&n->voqs, key, target, reachable, now);

	if (q == NULL) {
		fabric_packet_free(&n->packets, packet);
		return -DSF_E_FULL;
	}
	return fabric_voq_push(&n->voqs, q, packet, now);
}

/* The neighbour of a destination; resolves one that should be behind a port of ours. */
static const struct ip_neighbor *find_neighbor(
	struct node_interface *n, const struct dsf_ip6 *destination, dsf_instant now, int *err)
{
	const struct ip_neighbor *to = ip_neighbor_lookup(&n->neighbors, destination);

	*err = -DSF_E_NOROUTE;
	if (to != NULL && to->state != IP_NEIGHBOR_INCOMPLETE && node_forward_knows(n, to))
		return to;
	for (uint32_t i = 0; i < n->ethernet_count; i++) {
		const struct topo_port *port = topo_node_port(n->topo, n->self, n->ndp_number[i]);

		if (memcmp(destination, &port->address, port->prefix_length / 8u) == 0)
			*err = ip_ndp_resolve(n->ndp, i, destination, now);
	}
	return NULL;
}

static int forward(struct node_interface *n, uint32_t port, struct ip_packet *p,
	const struct node_frame *frame, dsf_instant now)
{
	bool ours = port == n->inband_port;
	const struct ip_neighbor *to;
	struct fabric_packet *packet;
	bool up;
	int err;

	if (!ip_packet_routable(p))
		return -DSF_E_BADFIELD;
	to = find_neighbor(n, &p->destination, now, &err);
	if (to == NULL) {
		if (err == -DSF_E_NOROUTE)
			answer(n, port, IP_ICMP_NO_ROUTE, p, frame, 0, now);
		return err;
	}
	up = to->system_port == n->first_system_port + NODE_SYSTEM_PORT_INBAND;
	if (!ours && !up && p->hop_limit <= 1) {
		answer(n, port, IP_ICMP_HOP_LIMIT, p, frame, 0, now);
		return -DSF_E_HOPLIMIT;
	}
	if (p->size > mtu_of(n, to->system_port)) {
		answer(n, port, IP_ICMP_TOO_BIG, p, frame, mtu_of(n, to->system_port), now);
		return -DSF_E_TOOBIG;
	}
	packet = make_packet(n, frame, p, to);
	if (packet == NULL)
		return -DSF_E_NOMEM;
	p->header_offset = IP_ETHERNET_SIZE;
	if (!ours && !up)
		ip_packet_decrement_hop_limit(p, packet->bytes);
	if (frame->checksum_start != NODE_CHECKSUM_NONE && packet->stored == packet->size) {
		/* The kernel counts from its frame's start; our copy's header may be larger. */
		uint32_t start = frame->checksum_start + (ours ? IP_ETHERNET_SIZE : 0);

		err = ip_checksum_finish(
			packet->bytes, packet->size, start, frame->checksum_offset);
		if (err < 0) {
			fabric_packet_free(&n->packets, packet);
			return err;
		}
	}
	return enqueue(n, packet, to, now);
}

static bool for_us(const struct node_interface *n, uint32_t port, const struct ip_packet *p)
{
	const struct topo_port *own = topo_node_port(n->topo, n->self, port);

	return memcmp(&p->target_mac, &own->mac, sizeof(own->mac)) == 0;
}

int node_forward_input(
	struct node_interface *n, uint32_t port, const struct node_frame *frame, dsf_instant now)
{
	struct ip_packet p;
	int err;

	n->packets_rx++;
	if (port == n->inband_port) {
		err = ip_packet_parse_bare(&p, frame->bytes, frame->stored, frame->size);
		return err < 0 ? err : forward(n, port, &p, frame, now);
	}
	err = ip_packet_parse_frame(&p, frame->bytes, frame->stored, frame->size);
	if (err < 0)
		return err;
	if (ip_ndp_wire_is(&p, frame->bytes, frame->stored))
		return ip_ndp_input(
			n->ndp, n->ndp_port[port], &p, frame->bytes, frame->stored, now);
	if (!for_us(n, port, &p))
		return -DSF_E_UNKNOWN; /* flooded or multicast: it never enters the fabric */
	return forward(n, port, &p, frame, now);
}
