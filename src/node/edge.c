#include "node/edge.h"
#include "ip/ndp_wire.h"

/* Neighbours are few and one hop away: the first solicitation is repeated sooner than hosts do it,
 * and backs off from there (protocol time). */
#define NDP_RETRANSMIT_NS (50 * NS_PER_MS)

static int init_ports(struct node_edge *e, const struct node_config *config)
{
	struct node_ethernet_port *inband;
	int err = node_ethernet_init(&e->ethernet, e->memory, &e->packets, e->inband_port + 1,
		config->seed, config->index);

	if (err < 0)
		return err;
	for (uint32_t i = 0; i < e->self->ports_count; i++) {
		const struct topo_port *port = topo_node_port(e->topo, e->self, i);
		const struct topo_link *link = &e->topo->links[port->link];
		struct node_impairment impairment = node_impairment_own(link);

		if (!port->ethernet)
			continue;
		e->links_count++;
		e->ethernet.ports[i].used = true;
		e->ethernet.ports[i].queue_bytes = link->queue_bytes;
		node_ethernet_join(&e->ethernet, i, topo_port_whole(e->topo, port)->number);
		node_ethernet_impair(&e->ethernet, i, &impairment, link->rate_bps);
	}
	inband = &e->ethernet.ports[e->inband_port];
	inband->used = inband->carrier = true;
	inband->rate_bps = NODE_INBAND_RATE_BPS;
	inband->queue_bytes = e->topo->fabric.voq_bytes;
	return 0;
}

static int add_subnets(struct node_edge *e, const struct node_config *config, dsf_instant now)
{
	for (uint32_t i = 0; i < e->ports_count; i++) {
		const struct topo_port *port = topo_node_port(e->topo, e->self, e->ndp_number[i]);
		int err = ip_route_set(&e->connected, &port->address, port->prefix_length, i);

		if (err == 0 && node_edge_answered(config, port))
			err = ip_ndp_solicit(e->ndp, i, &e->topo->ports[port->peer].address, now);
		if (err < 0)
			return err;
	}
	return 0;
}

static int init_ndp(struct node_edge *e, const struct node_config *config, dsf_instant now)
{
	uint32_t most = e->self->ports_count;
	struct ip_ndp_port *ports = dsf_memory_new(e->memory, most * sizeof(*ports));
	struct ip_ndp_config ndp = { .memory = e->memory,
		.ports = ports,
		.router = true,
		.retransmit_ns = NDP_RETRANSMIT_NS / config->control_dilation,
		.reachable_ns = IP_NDP_REACHABLE_NS / config->control_dilation };

	if (ports == NULL)
		return -DSF_E_NOMEM;
	for (uint32_t i = 0; i < most; i++) {
		const struct topo_port *port = topo_node_port(e->topo, e->self, i);

		if (!topo_port_has_address(port))
			continue;
		ports[e->ports_count] =
			(struct ip_ndp_port){ port->mac, port->address, port->prefix_length };
		e->ndp_port[i] = e->ports_count;
		e->ndp_number[e->ports_count++] = i;
	}
	for (uint32_t i = 0; i < most; i++)
		e->ndp_port[i] = e->ndp_port[e->ethernet.ports[i].whole];
	ndp.ports_count = e->ports_count;
	if (e->ports_count > 0)
		e->ndp = ip_ndp_new(&ndp);
	dsf_memory_delete(e->memory, ports, most * sizeof(*ports));
	if (e->ports_count == 0)
		return 0;
	return e->ndp == NULL ? -DSF_E_NOMEM : add_subnets(e, config, now);
}

int node_edge_init(struct node_edge *e, const struct node_config *config, uint64_t buffer_bytes,
	dsf_instant now)
{
	const struct topo_node *self = &config->topo->nodes[config->index];
	size_t table = self->ports_count * sizeof(uint32_t);
	int err;

	e->topo = config->topo;
	e->self = self;
	e->memory = config->memory;
	e->trace = config->trace;
	e->index = config->index;
	e->inband_port = self->ports_count;
	ip_icmp_init(&e->icmp, IP_ICMP_INTERVAL_NS / config->control_dilation);
	fabric_packets_init(&e->packets, e->memory, buffer_bytes);
	ip_route_init(&e->connected, e->memory);
	e->ndp_port = dsf_memory_new(e->memory, table);
	e->ndp_number = dsf_memory_new(e->memory, table);
	if (e->ndp_port == NULL || e->ndp_number == NULL)
		return -DSF_E_NOMEM;
	err = init_ports(e, config);
	return err < 0 ? err : init_ndp(e, config, now);
}

void node_edge_close(struct node_edge *e)
{
	size_t table = e->self->ports_count * sizeof(uint32_t);

	if (e->ndp != NULL)
		ip_ndp_free(e->ndp);
	ip_route_close(&e->connected);
	node_ethernet_close(&e->ethernet);
	fabric_packets_close(&e->packets);
	dsf_memory_delete(e->memory, e->ndp_port, table);
	dsf_memory_delete(e->memory, e->ndp_number, table);
}

bool node_edge_carrier(struct node_edge *e, uint32_t port, bool up, dsf_instant now)
{
	uint32_t whole = e->ethernet.ports[port].whole;
	bool was_up = node_ethernet_is_up(&e->ethernet, whole);

	if (e->ethernet.ports[port].carrier == up)
		return false;
	node_ethernet_carrier(&e->ethernet, port, up, now);
	e->carriers_count += up ? 1u : ~0u;
	if (node_ethernet_is_up(&e->ethernet, whole) != was_up)
		ip_ndp_carrier(e->ndp, e->ndp_port[port], up, now);
	dsf_trace_emit(
		e->trace, now, up ? DSF_EVENT_PORT_UP : DSF_EVENT_PORT_DOWN, e->index, port, 0);
	return true;
}

void node_edge_impair(struct node_edge *e, uint32_t port, const struct node_impairment *impairment)
{
	const struct topo_port *p = topo_node_port(e->topo, e->self, port);

	node_ethernet_impair(&e->ethernet, port, impairment, e->topo->links[p->link].rate_bps);
}

static bool for_us(const struct node_edge *e, uint32_t port, const struct ip_packet *p)
{
	const struct topo_port *own = topo_node_port(e->topo, e->self, port);

	return memcmp(&p->target_mac, &own->mac, sizeof(own->mac)) == 0;
}

int node_edge_input(struct node_edge *e, uint32_t port, const struct node_frame *frame,
	struct ip_packet *p, dsf_instant now)
{
	int err;

	e->packets_rx++;
	if (port == e->inband_port) {
		err = ip_packet_parse_bare(p, frame->bytes, frame->stored, frame->size);
	} else {
		err = ip_packet_parse_frame(p, frame->bytes, frame->stored, frame->size);
		if (err == 0 && ip_ndp_wire_is(p, frame->bytes, frame->stored))
			return ip_ndp_input(
				e->ndp, e->ndp_port[port], p, frame->bytes, frame->stored, now);
		if (err == 0 && !for_us(e, port, p))
			return -DSF_E_UNKNOWN; /* flooded or multicast: it isn't passed on */
	}
	if (err < 0)
		return err;
	return ip_packet_routable(p) ? 1 : -DSF_E_BADFIELD;
}

/* A frame of our own making, straight to its port: it waits for nobody's leave. */
static void send_own(
	struct node_edge *e, uint32_t port, const uint8_t *bytes, uint32_t size, dsf_instant now)
{
	struct fabric_packet *packet = fabric_packet_new(&e->packets, size);

	if (packet == NULL) {
		node_count_error(e->errors, -DSF_E_NOMEM);
		return;
	}
	packet->size = (uint16_t)size;
	packet->class = FABRIC_CLASS_NC;
	packet->ecn_capable = false;
	memcpy(packet->bytes, bytes, size);
	node_ethernet_send(&e->ethernet, port, packet, now);
}

void node_edge_answer(struct node_edge *e, uint32_t port, enum ip_icmp_error error,
	const struct ip_packet *p, const struct node_frame *frame, uint32_t mtu, dsf_instant now)
{
	const struct dsf_ip6 *source = port == e->inband_port
					       ? &e->self->loopback
					       : &topo_node_port(e->topo, e->self, port)->address;
	size_t size = ip_icmp_error(&e->icmp, error, p, frame->bytes, frame->stored, source, mtu,
		e->icmp_frame, sizeof(e->icmp_frame), now);

	if (size > 0)
		send_own(e, port, e->icmp_frame, (uint32_t)size, now);
}

/* The packet in an Ethernet frame for the far end. NULL: no memory. */
static struct fabric_packet *make_packet(struct node_edge *e, const struct node_frame *frame,
	const struct ip_packet *p, const struct node_edge_target *target)
{
	uint32_t headers = p->header_offset;
	uint32_t stored = frame->stored - headers;
	struct fabric_packet *packet;

	if (stored > p->size)
		stored = p->size; /* Ethernet padding isn't carried on */
	packet = fabric_packet_new(&e->packets, IP_ETHERNET_SIZE + stored);
	if (packet == NULL)
		return NULL;
	packet->size = (uint16_t)(IP_ETHERNET_SIZE + p->size);
	packet->class = (uint8_t)fabric_class_of_dscp(p->dscp);
	packet->ecn_capable = p->ecn == IP_ECN_ECT0 || p->ecn == IP_ECN_ECT1;
	ip_packet_write_ethernet(packet->bytes, &target->target, &target->source);
	memcpy(packet->bytes + IP_ETHERNET_SIZE, frame->bytes + headers, stored);
	return packet;
}

int node_edge_pass(struct node_edge *e, uint32_t port, struct ip_packet *p,
	const struct node_frame *frame, const struct node_edge_target *target,
	struct fabric_packet **packet, dsf_instant now)
{
	bool ours = port == e->inband_port;
	int err;

	if (!ours && !target->up && p->hop_limit <= 1) {
		node_edge_answer(e, port, IP_ICMP_HOP_LIMIT, p, frame, 0, now);
		return -DSF_E_HOPLIMIT;
	}
	if (p->size > target->mtu) {
		node_edge_answer(e, port, IP_ICMP_TOO_BIG, p, frame, target->mtu, now);
		return -DSF_E_TOOBIG;
	}
	*packet = make_packet(e, frame, p, target);
	if (*packet == NULL)
		return -DSF_E_NOMEM;
	p->header_offset = IP_ETHERNET_SIZE;
	if (!ours && !target->up)
		ip_packet_decrement_hop_limit(p, (*packet)->bytes);
	if (frame->checksum_start != NODE_CHECKSUM_NONE && (*packet)->stored == (*packet)->size) {
		/* The kernel counts from its frame's start; our copy's header may be larger. */
		uint32_t start = frame->checksum_start + (ours ? IP_ETHERNET_SIZE : 0);

		err = ip_checksum_finish(
			(*packet)->bytes, (*packet)->size, start, frame->checksum_offset);
		if (err < 0) {
			fabric_packet_free(&e->packets, *packet);
			return err;
		}
	}
	return 0;
}

int node_edge_resolve(struct node_edge *e, const struct dsf_ip6 *address, dsf_instant now)
{
	uint32_t port;
	int err = ip_route_lookup(&e->connected, address, &port);

	return err < 0 ? err : ip_ndp_resolve(e->ndp, port, address, now);
}

bool node_edge_changed(struct node_edge *e, struct ip_ndp_change *change, dsf_instant now)
{
	if (e->ndp == NULL || !ip_ndp_changed(e->ndp, change))
		return false;
	change->port = e->ndp_number[change->port];
	dsf_trace_emit(e->trace, now,
		change->reachable ? DSF_EVENT_NEIGHBOR_UP : DSF_EVENT_NEIGHBOR_DOWN, e->index,
		change->port, 0);
	return true;
}

void node_edge_settle(struct node_edge *e, dsf_instant now)
{
	uint8_t frame[IP_NDP_FRAME_SIZE];
	uint32_t port;
	size_t size;

	if (e->ndp == NULL)
		return;
	while ((size = ip_ndp_output(e->ndp, &port, frame, sizeof(frame), now)) > 0)
		send_own(e, e->ndp_number[port], frame, (uint32_t)size, now);
}

dsf_instant node_edge_deadline(const struct node_edge *e)
{
	return e->ndp == NULL ? DSF_NEVER : ip_ndp_deadline(e->ndp);
}

void node_edge_expire(struct node_edge *e, dsf_instant now)
{
	if (e->ndp != NULL && dsf_time_due(ip_ndp_deadline(e->ndp), now))
		ip_ndp_expire(e->ndp, now);
}

bool node_edge_output(struct node_edge *e, struct node_output *out)
{
	struct fabric_packet *packet = fabric_packet_queue_pop(&e->ethernet.out);
	uint32_t skip;

	if (packet == NULL)
		return false;
	skip = packet->system_port == e->inband_port ? IP_ETHERNET_SIZE : 0;
	*out = (struct node_output){ .kind = NODE_OUTPUT_FRAME,
		.port = skip > 0 ? NODE_PORT_INBAND : packet->system_port,
		.depart = packet->since,
		.head = packet->bytes + skip,
		.head_size = packet->stored - skip,
		.size = packet->size - skip,
		.checksum_start = NODE_CHECKSUM_NONE,
		.buffer = packet };
	return true;
}

bool node_edge_ready(const struct node_edge *e)
{
	return e->carriers_count == e->links_count &&
	       (e->ndp == NULL || ip_ndp_missing(e->ndp) == 0);
}
