#include "node/interface_node.h"
#include <assert.h>

/* Output buffers are trains or packets; packets are told by the low bit of the handle, which no
 * object of a pool has. */
#define PACKET_TAG 1u

/* So many requests of a VOQ that wants something don't all get lost (ours). */
#define SILENT_RETRIES 4u

static_assert(FABRIC_TRAIN_CONTROL_BYTES == TOPO_TRAIN_CONTROL_BYTES,
	"what a file may ask for is what trains can be");

/* What leaves for the fabric besides payload: the header of every cell. */
static uint64_t deliverable_bps(const struct node_interface *n)
{
	const struct topo_fabric *f = &n->topo->fabric;
	uint64_t sum = 0;

	for (uint32_t i = 0; i < n->cells.ports.count; i++) {
		if (!n->cells.reach.ports[i].active)
			continue;
		if (n->cells.ports.ports[i].rate_bps == 0)
			return 0;
		sum += n->cells.ports.ports[i].rate_bps;
	}
	sum = sum * (f->cell_bytes - FABRIC_CELL_HEADER) / f->cell_bytes;
	return sum > 0 ? sum : 1; /* 0 would mean unlimited */
}

static void tell_fabric(struct node_interface *n, dsf_instant now)
{
	fabric_credit_fabric(&n->credits, n->cells.reach.active_count > 0, deliverable_bps(n), now);
}

/* The timers of a VOQ end long before it may be called unused. */
static uint64_t idle_ns(const struct fabric_voq_config *voq)
{
	uint64_t timer_ns = voq->retry_ns > voq->age_ns ? voq->retry_ns : voq->age_ns;
	uint64_t least_ns = FABRIC_VOQ_IDLE_TIMERS * timer_ns;

	return least_ns > FABRIC_VOQ_IDLE_NS ? least_ns : FABRIC_VOQ_IDLE_NS;
}

static int init_fabric(struct node_interface *n, const struct node_config *config)
{
	const struct topo_fabric *f = &n->topo->fabric;
	/* Cells of one packet also meet different queues. A credit loop holds the time of four
	 * trains on the slowest links, about what two queues may differ by. */
	uint64_t reassembly_ns =
		f->reassembly_timeout_ns + n->topo->delay_skew_ns + n->topo->credit_loop_ns;
	uint64_t loop_ns = n->topo->credit_loop_ns > 0 ? n->topo->credit_loop_ns : NS_PER_US;
	struct fabric_voq_config voq = { .credit_bytes = f->credit_bytes,
		.voq_bytes = f->voq_bytes,
		.buffer_bytes = f->buffer_bytes,
		.ecn_min_ns = f->ecn_min_ns,
		.watchdog_ns = f->credit_watchdog_ns,
		.retry_ns = FABRIC_VOQ_RETRY_LOOPS * loop_ns,
		.age_ns = FABRIC_VOQ_AGE_LOOPS * loop_ns };
	struct fabric_credit_config credit = { .self = (uint16_t)n->self->switch_index,
		.first_system_port = n->first_system_port,
		.ports_count = TOPO_PORTS_PER_SWITCH,
		.credit_bytes = f->credit_bytes,
		.weights = { 1, f->weight_rdma, f->weight_default },
		.loop_ns = n->topo->credit_loop_ns };

	if (voq.watchdog_ns < config->watchdog_min_ns)
		voq.watchdog_ns = config->watchdog_min_ns;
	if (voq.retry_ns < config->credit_retry_min_ns)
		voq.retry_ns = config->credit_retry_min_ns;
	if (voq.age_ns < config->credit_age_min_ns)
		voq.age_ns = config->credit_age_min_ns;
	if (reassembly_ns < config->reassembly_min_ns)
		reassembly_ns = config->reassembly_min_ns;
	voq.idle_ns = idle_ns(&voq);
	credit.idle_ns = voq.idle_ns;
	credit.settle_ns = reassembly_ns + loop_ns;
	credit.silent_ns = credit.settle_ns + SILENT_RETRIES * voq.retry_ns;
	fabric_voqs_init(&n->voqs, n->memory, &n->edge.packets, &voq);
	/* The VOQ at the other end must be gone first. */
	fabric_reasm_init(&n->reasm, n->memory, &n->edge.packets, f->cell_bytes, reassembly_ns,
		2 * voq.idle_ns + voq.watchdog_ns + reassembly_ns);
	return fabric_credits_init(&n->credits, n->memory, &credit);
}

static void set_inband_rate(struct node_interface *n, uint64_t rate_bps, dsf_instant now)
{
	struct node_ethernet_port *inband = &n->edge.ethernet.ports[n->edge.inband_port];

	inband->rate_bps = rate_bps;
	fabric_credit_port(&n->credits, n->first_system_port + NODE_SYSTEM_PORT_INBAND, rate_bps,
		inband->queue_bytes, true, now);
}

/* What credits have to know of an Ethernet port: of a hyperport the one that stands for it. */
static void tell_port(struct node_interface *n, uint32_t port, dsf_instant now)
{
	const struct node_ethernet *e = &n->edge.ethernet;
	uint64_t queue_bytes = node_ethernet_queue_bytes(e, port);

	fabric_credit_port(&n->credits, topo_node_port(n->topo, n->self, port)->system_port,
		node_ethernet_rate(e, port),
		queue_bytes < UINT32_MAX ? (uint32_t)queue_bytes : UINT32_MAX,
		node_ethernet_is_up(e, port), now);
}

/* Credits have to know of the Ethernet ports and the host port. */
static void tell_ports(struct node_interface *n, bool starting, dsf_instant now)
{
	for (uint32_t i = 0; i < n->self->ports_count; i++) {
		if (topo_port_has_address(topo_node_port(n->topo, n->self, i)))
			tell_port(n, i, now);
	}
	set_inband_rate(n, starting ? 0 : NODE_INBAND_RATE_BPS, now);
}

static int init_routing(struct node_interface *n, const struct node_config *config, dsf_instant now)
{
	struct node_routing_config routing = { .topo = n->topo,
		.index = n->index,
		.memory = n->memory,
		.trace = n->trace,
		.seed = config->seed,
		.control_dilation = config->control_dilation,
		.usable = node_forward_usable,
		.user = n };

	return node_routing_new(&n->routing, &routing, now);
}

struct node_interface *node_interface_new(const struct node_config *config, dsf_instant now)
{
	struct node_interface *n = dsf_memory_new(config->memory, sizeof(*n));
	int err;

	if (n == NULL)
		return NULL;
	n->topo = config->topo;
	n->self = &config->topo->nodes[config->index];
	n->memory = config->memory;
	n->trace = config->trace;
	n->index = config->index;
	n->first_system_port = n->self->switch_index * TOPO_PORTS_PER_SWITCH;
	err = node_cells_init(&n->cells, config, now);
	if (err < 0) {
		dsf_memory_delete(config->memory, n, sizeof(*n));
		return NULL;
	}
	err = node_edge_init(&n->edge, config, n->topo->fabric.buffer_bytes, now);
	if (err == 0)
		err = init_fabric(n, config);
	if (err == 0) {
		tell_ports(n, config->starting, now);
		err = node_forward_init(n, config);
	}
	if (err == 0)
		err = node_sessions_init(n, config);
	if (err == 0 && config->streams)
		err = init_routing(n, config, now);
	if (err < 0) {
		node_interface_free(n);
		return NULL;
	}
	return n;
}

void node_interface_free(struct node_interface *n)
{
	const struct dsf_memory *memory = n->memory;

	node_routing_free(n->routing);
	node_sessions_close(n);
	if (n->credits.ports != NULL) {
		ip_neighbor_close(&n->neighbors);
		ip_neighbor_close(&n->promised);
		fabric_reasm_close(&n->reasm);
		fabric_voqs_close(&n->voqs);
		fabric_credits_close(&n->credits);
	}
	node_edge_close(&n->edge);
	node_cells_close(&n->cells);
	dsf_memory_delete(memory, n, sizeof(*n));
}

static struct fabric_credit_key credit_key(const struct fabric_packet *packet)
{
	return (struct fabric_credit_key){ packet->system_port, packet->source, packet->class };
}

/* A packet that has come through the fabric, or from another port of ours, leaves. */
static void deliver(struct node_interface *n, struct fabric_packet *packet, dsf_instant now)
{
	uint32_t system_port = packet->system_port;
	uint32_t port = node_interface_port_of(n, system_port);
	struct fabric_credit_key key = credit_key(packet);
	uint32_t bytes = fabric_packet_wire_bytes(packet);

	/* Cells may say anything: what is no Ethernet frame leaves by no port. */
	if (port == TOPO_NONE || packet->stored < IP_ETHERNET_SIZE) {
		node_count_error(
			n->edge.errors, port == TOPO_NONE ? -DSF_E_UNKNOWN : -DSF_E_BADFIELD);
		fabric_packet_free(&n->edge.packets, packet);
		return;
	}
	node_ethernet_send(&n->edge.ethernet, port, packet, now);
	fabric_credit_backlog(
		&n->credits, system_port, node_ethernet_backlog(&n->edge.ethernet, port, now), now);
	fabric_credit_arrived(&n->credits, &key, bytes, now);
}

/* May cells come from there? State is kept for what the lab has, whatever a peer says. */
static bool is_source(const struct node_interface *n, uint16_t source)
{
	return source < n->topo->switches_count &&
	       topo_is_interface_node(n->topo->nodes[n->topo->switch_node[source]].role);
}

static void take_cell(void *owner, uint32_t port, const struct fabric_cell *cell,
	const uint8_t *raw, dsf_instant now)
{
	struct node_interface *n = owner;
	struct fabric_voq_key voq_key = { cell->system_port, cell->class };
	struct fabric_credit_key credit_key = { cell->system_port, cell->source, cell->class };
	struct fabric_voq *q;
	int err = 0;

	(void)port;
	if (cell->destination != n->self->switch_index || !is_source(n, cell->source)) {
		node_count_error(n->edge.errors, -DSF_E_UNKNOWN);
		return;
	}
	switch ((enum fabric_cell_kind)cell->kind) {
	case FABRIC_CELL_DATA:
		if (cell->flags & FABRIC_CELL_CONGESTED)
			fabric_credit_congested(&n->credits, cell->system_port);
		if (node_interface_port_of(n, cell->system_port) == TOPO_NONE)
			err = -DSF_E_UNKNOWN;
		else
			err = fabric_reasm_input(&n->reasm, cell, raw + FABRIC_CELL_HEADER, now);
		break;
	case FABRIC_CELL_REQUEST:
		err = fabric_credit_request(
			&n->credits, &credit_key, cell->epoch, cell->total, cell->waiting, now);
		break;
	case FABRIC_CELL_GRANT:
		q = dsf_hash_get(&n->voqs.table, &voq_key);
		err = q == NULL ? -DSF_E_UNKNOWN
				: fabric_voq_grant(&n->voqs, q, cell->epoch, cell->total, now);
		break;
	case FABRIC_CELL_REACH:
	case FABRIC_CELL_FILL:
	case FABRIC_CELL_KIND_END: break;
	}
	if (err < 0)
		node_count_error(n->edge.errors, err);
}

/* Cuts a packet into cells and sprays them. */
static void send_cells(struct node_interface *n, struct fabric_voq *q,
	const struct fabric_packet *packet, bool marked, dsf_instant now)
{
	uint32_t payload_max = n->topo->fabric.cell_bytes - FABRIC_CELL_HEADER;
	uint8_t raw[FABRIC_CELL_HEADER + FABRIC_CELL_MAX];
	struct fabric_cell cell = { .kind = FABRIC_CELL_DATA,
		.flags = marked ? FABRIC_CELL_CE : 0,
		.class = packet->class,
		.source = (uint16_t)n->self->switch_index,
		.destination = q->destination,
		.system_port = q->key.system_port,
		.packet_sequence = q->packet_sequence++,
		.packet_size = packet->size,
		.packet_stored = packet->stored,
		.epoch = q->epoch };

	for (uint32_t at = 0; at < packet->size; at += payload_max, cell.index++) {
		uint32_t left = packet->size - at;
		uint32_t present = at < packet->stored ? packet->stored - at : 0;

		cell.size = (uint16_t)(left < payload_max ? left : payload_max);
		cell.stored = (uint16_t)(present < cell.size ? present : cell.size);
		if (at + payload_max >= packet->size)
			cell.flags |= FABRIC_CELL_LAST;
		fabric_cell_encode(&cell, raw);
		if (cell.stored > 0)
			memcpy(raw + FABRIC_CELL_HEADER, packet->bytes + at, cell.stored);
		node_cells_forward(&n->cells, &cell, raw, now);
	}
}

/* One packet of a VOQ that has credit. False when no link has room. */
static bool serve(struct node_interface *n, struct fabric_voq *q, dsf_instant now)
{
	bool local = q->destination == n->self->switch_index, mark = false;
	struct fabric_packet *packet;

	if (!local && !fabric_spray_has_room(
			      &n->cells.spray, q->destination, &n->cells.reach, &n->cells.ports)) {
		fabric_voq_block(&n->voqs, q);
		return false;
	}
	packet = fabric_voq_pop(&n->voqs, q, now, &mark);
	if (packet == NULL)
		return true;
	if (mark)
		node_edge_set_ce(packet->bytes);
	if (local) {
		deliver(n, packet, now);
	} else {
		send_cells(n, q, packet, mark, now);
		fabric_packet_free(&n->edge.packets, packet);
	}
	fabric_voq_requeue(&n->voqs, q);
	return true;
}

static void send_request(struct node_interface *n, const struct fabric_voq *q, dsf_instant now)
{
	struct fabric_credit_key key = { q->key.system_port, (uint16_t)n->self->switch_index,
		(uint16_t)q->key.class };
	struct fabric_cell cell = { .kind = FABRIC_CELL_REQUEST,
		.class = (uint8_t)q->key.class,
		.source = (uint16_t)n->self->switch_index,
		.destination = q->destination,
		.system_port = q->key.system_port,
		.epoch = q->epoch,
		.waiting = (uint32_t)q->bytes,
		.total = q->requested };
	int err;

	if (q->destination != n->self->switch_index) {
		node_cells_send_control(&n->cells, &cell, now);
		return;
	}
	err = fabric_credit_request(&n->credits, &key, q->epoch, q->requested, cell.waiting, now);
	if (err < 0)
		node_count_error(n->edge.errors, err);
}

static void send_grant(
	struct node_interface *n, const struct fabric_credit_grant *grant, dsf_instant now)
{
	struct fabric_voq_key key = { grant->system_port, grant->class };
	struct fabric_cell cell = { .kind = FABRIC_CELL_GRANT,
		.class = grant->class,
		.source = (uint16_t)n->self->switch_index,
		.destination = grant->source,
		.system_port = grant->system_port,
		.epoch = grant->epoch,
		.total = grant->total };
	struct fabric_voq *q;

	if (grant->source != n->self->switch_index) {
		node_cells_send_control(&n->cells, &cell, now);
		return;
	}
	q = dsf_hash_get(&n->voqs.table, &key);
	if (q != NULL)
		(void)fabric_voq_grant(&n->voqs, q, grant->epoch, grant->total, now);
}

/* One pass over the VOQs, however many destinations have changed. */
static void destinations_changed(struct node_interface *n, dsf_instant now)
{
	uint32_t destination;
	bool changed = false;

	while (node_cells_next_changed(&n->cells, &destination)) {
		node_sessions_reachable(n, destination, now);
		node_routing_look(n->routing,
			&n->topo->nodes[n->topo->switch_node[destination]].loopback, now);
		changed = true;
	}
	if (changed)
		node_routing_look_hops(n->routing);
	/* A link may come or go without changing whom we reach; capacity changes all the same. */
	if (!changed && n->active_links == n->cells.reach.active_count)
		return;
	n->active_links = n->cells.reach.active_count;
	for (struct fabric_voq *q = dsf_hash_next(&n->voqs.table, NULL); q != NULL;
		q = dsf_hash_next(&n->voqs.table, q))
		if (q->destination != n->self->switch_index)
			fabric_voq_reachable(&n->voqs, q,
				dsf_bitset_has(n->cells.reach.any, q->destination), now);
	tell_fabric(n, now);
	fabric_voqs_unblock(&n->voqs);
}

/* What an input or an expiry set off, until nothing is left to do. */
static void settle(struct node_interface *n, dsf_instant now)
{
	struct fabric_credit_grant grant;
	struct fabric_packet *packet;
	struct fabric_voq *q;
	bool again;

	destinations_changed(n, now);
	if (n->cells.resumed)
		fabric_voqs_unblock(&n->voqs);
	n->cells.resumed = false;
	node_forward_settle(n, now);
	node_sessions_settle(n, now);
	while ((packet = fabric_packet_queue_pop(&n->reasm.done)) != NULL)
		deliver(n, packet, now);
	while ((packet = fabric_packet_queue_pop(&n->reasm.lost)) != NULL) {
		struct fabric_credit_key key = credit_key(packet);

		fabric_credit_arrived(&n->credits, &key, fabric_packet_wire_bytes(packet), now);
		fabric_packet_free(&n->edge.packets, packet);
	}
	do {
		again = false;
		while ((q = fabric_voqs_next_request(&n->voqs, now)) != NULL) {
			send_request(n, q, now);
			again = true;
		}
		if (dsf_time_due(fabric_credits_deadline(&n->credits), now))
			fabric_credits_expire(&n->credits, now);
		while (fabric_credits_next_grant(&n->credits, &grant)) {
			send_grant(n, &grant, now);
			again = true;
		}
		while ((q = fabric_voqs_next_ready(&n->voqs)) != NULL) {
			serve(n, q, now);
			again = true;
		}
	} while (again);
	node_cells_settle(&n->cells, now);
}

int node_interface_frame_input(
	struct node_interface *n, uint32_t port, const struct node_frame *frame, dsf_instant now)
{
	struct node_ethernet_port *p;
	int err;

	if (port == NODE_PORT_INBAND)
		port = n->edge.inband_port;
	if (port > n->edge.inband_port)
		return -DSF_E_UNKNOWN;
	p = &n->edge.ethernet.ports[port];
	if (!p->used) {
		err = node_cells_input(&n->cells, port, frame, take_cell, n, now);
		settle(n, now);
		return err;
	}
	if (!p->carrier) {
		err = -DSF_E_STATE;
	} else {
		p->frames_rx++;
		p->bytes_rx += frame->size;
		err = node_forward_input(n, p->whole, frame, now);
	}
	if (err < 0 && err != -DSF_E_FULL) /* the VOQ counts its own drops */
		node_count_error(n->edge.errors, err);
	settle(n, now);
	return err;
}

void node_interface_carrier(struct node_interface *n, uint32_t port, bool up, dsf_instant now)
{
	const struct topo_port *topo_port;

	if (port >= n->self->ports_count)
		return;
	topo_port = topo_node_port(n->topo, n->self, port);
	if (!topo_port->ethernet) {
		node_cells_carrier(&n->cells, port, up, now);
		settle(n, now);
		return;
	}
	if (!node_edge_carrier(&n->edge, port, up, now))
		return;
	port = n->edge.ethernet.ports[port].whole;
	tell_port(n, port, now);
	node_sessions_port(n, port);
	settle(n, now);
}

dsf_instant node_interface_deadline(const struct node_interface *n)
{
	dsf_instant at = node_cells_deadline(&n->cells);

	at = dsf_time_min(at, fabric_voqs_deadline(&n->voqs));
	at = dsf_time_min(at, fabric_credits_deadline(&n->credits));
	at = dsf_time_min(at, fabric_reasm_deadline(&n->reasm));
	at = dsf_time_min(at, node_routing_deadline(n->routing));
	if (n->fsdb != NULL)
		at = dsf_time_min(at, fsdb_mesh_deadline(n->fsdb));
	return dsf_time_min(at, node_edge_deadline(&n->edge));
}

void node_interface_expire(struct node_interface *n, dsf_instant now)
{
	uint64_t lost = n->reasm.packets_lost, deleted;

	if (node_cells_expire(&n->cells, now))
		fabric_voqs_unblock(&n->voqs);
	deleted = fabric_voqs_expire(&n->voqs, now);
	if (deleted > 0)
		dsf_trace_emit(
			n->trace, now, DSF_EVENT_WATCHDOG_DROPPED, n->index, TOPO_NONE, deleted);
	fabric_reasm_expire(&n->reasm, now);
	if (n->reasm.packets_lost > lost)
		dsf_trace_emit(n->trace, now, DSF_EVENT_PACKET_LOST, n->index,
			n->reasm.packets_lost - lost, 0);
	node_edge_expire(&n->edge, now);
	if (n->fsdb != NULL)
		fsdb_mesh_expire(n->fsdb, now);
	node_routing_expire(n->routing, now);
	settle(n, now);
}

/* No timer tells VOQs of room on an unlimited link: its trains leave when they are taken. */
static bool refill(struct node_interface *n, dsf_instant now)
{
	if (!n->cells.ports.flushed)
		return false;
	n->cells.ports.flushed = false;
	fabric_voqs_unblock(&n->voqs);
	settle(n, now);
	return true;
}

bool node_interface_output(struct node_interface *n, struct node_output *out, dsf_instant now)
{
	while (!node_edge_output(&n->edge, out)) {
		if (node_cells_output(&n->cells, out, now))
			return true;
		if (!refill(n, now))
			return node_sessions_output(n, out, now) ||
			       node_routing_output(n->routing, out, now);
	}
	out->buffer = (void *)((uintptr_t)out->buffer | PACKET_TAG);
	return true;
}

void node_interface_frame_done(struct node_interface *n, void *buffer)
{
	if ((uintptr_t)buffer & PACKET_TAG)
		fabric_packet_free(
			&n->edge.packets, (void *)((uintptr_t)buffer & ~(uintptr_t)PACKET_TAG));
	else
		fabric_frame_free(&n->cells.ports, buffer);
}

int node_interface_stream_accept(
	struct node_interface *n, const struct node_stream_ends *ends, dsf_instant now)
{
	if (ends->local_port != FSDB_PORT)
		return node_routing_accept(n->routing, ends, now);
	if (n->fsdb == NULL || !dsf_ip6_equal(&ends->local, &n->self->loopback))
		return -DSF_E_UNKNOWN;
	return fsdb_mesh_accept(n->fsdb, &ends->remote, now);
}

void node_interface_stream_connected(struct node_interface *n, uint32_t stream, dsf_instant now)
{
	if (stream & NODE_ROUTING_STREAM)
		node_routing_connected(n->routing, stream, now);
	else if (n->fsdb != NULL)
		fsdb_mesh_connected(n->fsdb, stream, now);
}

void node_interface_stream_input(struct node_interface *n, uint32_t stream, const uint8_t *bytes,
	uint32_t size, dsf_instant now)
{
	int err;

	if (stream & NODE_ROUTING_STREAM) {
		node_routing_input(n->routing, stream, bytes, size, now);
		return;
	}
	err = n->fsdb == NULL ? -DSF_E_STATE : fsdb_mesh_input(n->fsdb, stream, bytes, size, now);
	if (err < 0)
		node_count_error(n->edge.errors, err);
	node_sessions_settle(n, now);
}

void node_interface_stream_writable(
	struct node_interface *n, uint32_t stream, uint32_t room, dsf_instant now)
{
	if (stream & NODE_ROUTING_STREAM)
		node_routing_writable(n->routing, stream, room, now);
	else if (n->fsdb != NULL)
		fsdb_mesh_writable(n->fsdb, stream, room);
}

void node_interface_stream_closed(
	struct node_interface *n, uint32_t stream, bool reset, dsf_instant now)
{
	if (stream & NODE_ROUTING_STREAM) {
		node_routing_closed(n->routing, stream, now);
	} else if (n->fsdb != NULL) {
		fsdb_mesh_closed(n->fsdb, stream, reset, now);
		node_sessions_settle(n, now);
	}
}

int node_interface_command(
	struct node_interface *n, const struct node_command *command, dsf_instant now)
{
	const struct topo_port *port;
	int err;

	if (command->kind == NODE_COMMAND_STARTED) {
		set_inband_rate(n, NODE_INBAND_RATE_BPS, now);
		settle(n, now);
		return 0;
	}
	port = command->kind == NODE_COMMAND_IMPAIR
		       ? topo_node_port(n->topo, n->self, command->port)
		       : NULL;
	if (port == NULL || !port->ethernet) {
		err = node_cells_command(&n->cells, command, now);
		tell_fabric(n, now);
		settle(n, now);
		return err;
	}
	node_edge_impair(&n->edge, command->port, &command->impairment);
	tell_port(n, n->edge.ethernet.ports[command->port].whole, now);
	settle(n, now);
	return 0;
}

bool node_interface_ready(const struct node_interface *n)
{
	return node_edge_ready(&n->edge) && node_cells_ready(&n->cells) && node_sessions_ready(n) &&
	       node_routing_ready(n->routing);
}
