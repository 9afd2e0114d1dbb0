#include "node/cells.h"
#include "topo/draw.h"

static enum fabric_tier tier_of(enum topo_role role)
{
	switch (role) {
	case TOPO_ROLE_RDSW:
	case TOPO_ROLE_EDSW: return FABRIC_TIER_INTERFACE;
	case TOPO_ROLE_FDSW: return FABRIC_TIER_LEAF;
	case TOPO_ROLE_SDSW: return FABRIC_TIER_SPINE;
	case TOPO_ROLE_SSW:
	case TOPO_ROLE_HOST:
	case TOPO_ROLE_EXTERNAL: break;
	}
	return FABRIC_TIER_NONE;
}

static const struct topo_node *peer_node(const struct topo *t, const struct topo_port *port)
{
	return &t->nodes[t->ports[port->peer].node];
}

/* Adds what stands directly above a switch: its peers of a role. */
static void add_above(
	const struct topo *t, const struct topo_node *n, enum topo_role role, uint64_t *into)
{
	for (uint32_t i = 0; i < n->ports_count; i++) {
		const struct topo_node *peer = peer_node(t, topo_node_port(t, n, i));

		if (peer->role == role)
			dsf_bitset_add(into, peer->switch_index);
	}
}

/* Adds what stands below the switches of a set; not what is in a cluster. */
static void add_below(
	const struct topo *t, const uint64_t *from, uint32_t but_cluster, uint64_t *into)
{
	uint64_t all[DSF_BITSET_WORDS(TOPO_SWITCHES_MAX)] = { 0 };

	for (uint32_t s = dsf_bitset_next(from, 0, t->switches_count); s < t->switches_count;
		s = dsf_bitset_next(from, s + 1, t->switches_count))
		for (uint32_t w = 0; w < t->switch_words; w++)
			all[w] |= topo_below(t, s)[w];
	for (uint32_t d = dsf_bitset_next(all, 0, t->switches_count); d < t->switches_count;
		d = dsf_bitset_next(all, d + 1, t->switches_count))
		if (t->switch_cluster[d] != but_cluster)
			dsf_bitset_add(into, d);
}

/* The interface nodes that a healthy fabric reaches from here: what is below the FDSWs, and over
 * SDSWs what is in other clusters. */
static void expect(struct node_cells *c)
{
	uint64_t leaves[DSF_BITSET_WORDS(TOPO_SWITCHES_MAX)] = { 0 };
	uint64_t spines[DSF_BITSET_WORDS(TOPO_SWITCHES_MAX)] = { 0 };
	const struct topo *t = c->topo;

	if (c->self->role == TOPO_ROLE_SDSW) {
		memcpy(c->expected, topo_below(t, c->self->switch_index),
			t->switch_words * sizeof(uint64_t));
		return;
	}
	if (c->self->role == TOPO_ROLE_FDSW)
		dsf_bitset_add(leaves, c->self->switch_index);
	else
		add_above(t, c->self, TOPO_ROLE_FDSW, leaves);
	for (uint32_t s = dsf_bitset_next(leaves, 0, t->switches_count); s < t->switches_count;
		s = dsf_bitset_next(leaves, s + 1, t->switches_count))
		add_above(t, &t->nodes[t->switch_node[s]], TOPO_ROLE_SDSW, spines);
	add_below(t, leaves, TOPO_NONE, c->expected);
	add_below(t, spines, c->self->cluster, c->expected);
	dsf_bitset_remove(c->expected, c->self->switch_index);
}

static void init_port(struct node_cells *c, const struct topo_port *port)
{
	const struct topo *t = c->topo;
	struct fabric_port *p = &c->ports.ports[port->number];

	p->rate_bps = t->links[port->link].rate_bps;
	p->full_bytes = t->links[port->link].queue_bytes;
	p->impairment.loss_ppm = t->links[port->link].loss_ppm;
	p->impairment.corrupt_ppm = t->links[port->link].corrupt_ppm;
	p->impairment.jitter_ns = t->links[port->link].jitter_ns;
	memcpy(p->macs, t->ports[port->peer].mac.bytes, 6);
	memcpy(p->macs + 6, port->mac.bytes, 6);
	c->fabric_ports_count += !t->links[port->link].loop;
}

static uint64_t *new_counters(struct node_cells *c)
{
	return dsf_memory_new(c->memory, c->self->ports_count * sizeof(uint64_t));
}

static int init_tables(struct node_cells *c)
{
	c->expected = dsf_memory_new(
		c->memory, DSF_BITSET_WORDS(c->topo->switches_count) * sizeof(uint64_t));
	c->neighbors = dsf_memory_new(c->memory, c->self->ports_count * sizeof(*c->neighbors));
	c->frames_rx = new_counters(c);
	c->bytes_rx = new_counters(c);
	c->cells_rx_port = new_counters(c);
	c->cell_bytes_rx = new_counters(c);
	c->corrupt_rx = new_counters(c);
	return c->expected == NULL || c->neighbors == NULL || c->frames_rx == NULL ||
			       c->bytes_rx == NULL || c->cells_rx_port == NULL ||
			       c->cell_bytes_rx == NULL || c->corrupt_rx == NULL
		       ? -DSF_E_NOMEM
		       : 0;
}

static struct fabric_peer peer_of(
	const struct topo *t, const struct topo_port *port, uint64_t capacity_unit)
{
	const struct topo_node *peer = peer_node(t, port);

	if (port->ethernet)
		return (struct fabric_peer){ .tier = FABRIC_TIER_NONE };
	if (t->links[port->link].loop)
		return (struct fabric_peer){ .tier = FABRIC_TIER_NONE, .loop = true };
	return (struct fabric_peer){
		.tier = tier_of(peer->role),
		.switch_index = (uint16_t)peer->switch_index,
		.cluster = peer->cluster,
		.capacity = topo_draw_capacity(t, port, capacity_unit),
		.place = port->withhold,
		.tells = topo_is_fabric_node(peer->role) ? topo_below(t, peer->switch_index) : NULL,
	};
}

static uint64_t refresh_of(const struct node_config *config)
{
	uint64_t refresh_ns = config->topo->fabric.reach_refresh_ns;

	if (refresh_ns < config->reach_refresh_min_ns)
		refresh_ns = config->reach_refresh_min_ns;
	return refresh_ns > 0 ? refresh_ns : 1;
}

static int init_reach(struct node_cells *c, const struct node_config *config, dsf_instant now)
{
	const struct topo *t = c->topo;
	struct fabric_reach_config reach = {
		.self = (uint16_t)c->self->switch_index,
		.tier = tier_of(c->self->role),
		.ports_count = c->self->ports_count,
		.switches_count = t->switches_count,
		.expected = c->expected,
		.clusters = t->switch_cluster,
		.cluster = c->self->cluster,
		.balanced = t->fabric.input_balanced,
		.cell_bytes = t->fabric.cell_bytes,
		.refresh_ns = refresh_of(config),
		/* Each device its own phase, so that they don't all speak at once. */
		.first_refresh_at = dsf_time_after(
			now, 1 + dsf_mix(config->seed ^ config->index) % refresh_of(config)),
		.trace = config->trace,
		.node = config->index,
	};
	size_t size = c->self->ports_count * sizeof(struct fabric_peer);
	struct fabric_peer *peers = dsf_memory_new(c->memory, size);
	uint64_t unit = topo_draw_unit(t, c->self);
	int err;

	if (peers == NULL)
		return -DSF_E_NOMEM;
	for (uint32_t i = 0; i < c->self->ports_count; i++)
		peers[i] = peer_of(t, topo_node_port(t, c->self, i), unit);
	reach.peers = peers;
	if (topo_is_fabric_node(c->self->role)) {
		reach.draw = topo_draw(t, c->index, config->seed);
	} else { /* published: fabric switches have no minimum */
		reach.min_links_to_join = t->fabric.min_links_to_join;
		reach.min_links_to_remain = t->fabric.min_links_to_remain;
	}
	err = fabric_reach_init(&c->reach, c->memory, &reach);
	dsf_memory_delete(c->memory, peers, size);
	return err;
}

int node_cells_init(struct node_cells *c, const struct node_config *config, dsf_instant now)
{
	int err;

	memset(c, 0, sizeof(*c));
	c->topo = config->topo;
	c->index = config->index;
	c->self = &config->topo->nodes[config->index];
	c->trace = config->trace;
	c->memory = config->memory;
	c->input_port = TOPO_NONE;
	err = init_tables(c);
	if (err == 0)
		err = fabric_ports_init(&c->ports, c->memory, c->self->ports_count,
			(uint16_t)c->self->switch_index, c->topo->fabric.train_bytes, config->seed);
	if (err == 0) {
		expect(c);
		err = init_reach(c, config, now);
	}
	if (err == 0)
		err = fabric_spray_init(&c->spray, c->memory, c->topo->switches_count, config->seed,
			c->self->switch_index);
	if (err == 0 && topo_is_fabric_node(c->self->role))
		err = fabric_pressure_init(&c->pressure, c->memory, c->self->ports_count);
	if (err < 0) {
		node_cells_close(c);
		return err;
	}
	for (uint32_t i = 0; i < c->self->ports_count; i++) {
		const struct topo_port *port = topo_node_port(c->topo, c->self, i);

		if (!port->ethernet)
			init_port(c, port);
	}
	return 0;
}

void node_cells_close(struct node_cells *c)
{
	size_t counters = c->self->ports_count * sizeof(uint64_t);

	fabric_pressure_close(&c->pressure);
	fabric_spray_close(&c->spray);
	fabric_reach_close(&c->reach);
	fabric_ports_close(&c->ports);
	dsf_memory_delete(c->memory, c->expected,
		DSF_BITSET_WORDS(c->topo->switches_count) * sizeof(uint64_t));
	dsf_memory_delete(c->memory, c->neighbors, c->self->ports_count * sizeof(*c->neighbors));
	dsf_memory_delete(c->memory, c->frames_rx, counters);
	dsf_memory_delete(c->memory, c->bytes_rx, counters);
	dsf_memory_delete(c->memory, c->cells_rx_port, counters);
	dsf_memory_delete(c->memory, c->cell_bytes_rx, counters);
	dsf_memory_delete(c->memory, c->corrupt_rx, counters);
}

/* One cell of a train. Returns the bytes it takes, or an error: the train can't be read on. */
static int input_cell(struct node_cells *c, uint32_t port, const uint8_t *raw, size_t size,
	node_cell_fn cell_fn, void *owner, dsf_instant now)
{
	struct fabric_cell cell;
	int taken = fabric_cell_decode(&cell, raw, size);

	if (taken < 0)
		return taken;
	fabric_reach_sequence(&c->reach, port, cell.link_sequence);
	c->cell_bytes_rx[port] += FABRIC_CELL_HEADER + cell.size;
	if (cell.flags & FABRIC_CELL_CORRUPT) {
		c->corrupt_dropped++;
		c->corrupt_rx[port]++;
		fabric_reach_bad(&c->reach, port, 1);
		return taken;
	}
	switch ((enum fabric_cell_kind)cell.kind) {
	case FABRIC_CELL_DATA:
		c->cells_rx++;
		c->cells_rx_port[port]++;
		cell_fn(owner, port, &cell, raw, now);
		break;
	case FABRIC_CELL_REQUEST:
	case FABRIC_CELL_GRANT:
		c->control_cells_rx++;
		cell_fn(owner, port, &cell, raw, now);
		break;
	case FABRIC_CELL_REACH: {
		int err = fabric_reach_input(
			&c->reach, port, raw + FABRIC_CELL_HEADER, cell.stored, now);

		c->control_cells_rx++;
		if (err < 0)
			node_count_error(c->errors, err);
		break;
	}
	case FABRIC_CELL_FILL:
	case FABRIC_CELL_KIND_END: c->control_cells_rx++; break;
	}
	return taken;
}

int node_cells_input(struct node_cells *c, uint32_t port, const struct node_frame *frame,
	node_cell_fn cell_fn, void *owner, dsf_instant now)
{
	struct fabric_train train;
	const uint8_t *at = frame->bytes + FABRIC_TRAIN_HEADER, *end;
	int err = fabric_train_decode(&train, frame->bytes, frame->stored), taken = 0;
	bool stop;

	if (err == 0 && !c->ports.ports[port].carrier)
		err = -DSF_E_STATE;
	if (err < 0) {
		node_count_error(c->errors, err);
		return err;
	}
	c->frames_rx[port]++;
	c->bytes_rx[port] += frame->size;
	if (!node_cells_attach(c, port, train.source_switch, train.source_port, now))
		return 0;
	fabric_reach_heard(&c->reach, port, train.flags & FABRIC_TRAIN_HEARD, now);
	c->ports.ports[port].heard = fabric_reach_hears(&c->reach, port);
	stop = train.flags & FABRIC_TRAIN_STOP;
	c->resumed |= c->ports.ports[port].stopped && !stop;
	fabric_port_stop(&c->ports, port, stop, now);
	end = at + train.bytes;
	c->input_port = port;
	for (uint32_t i = 0; i < train.cells && taken >= 0; i++, at += taken)
		taken = input_cell(c, port, at, (size_t)(end - at), cell_fn, owner, now);
	c->input_port = TOPO_NONE;
	if (taken >= 0)
		return 0;
	node_count_error(c->errors, taken);
	return taken;
}

void node_cells_carrier_set(struct node_cells *c, uint32_t port, bool up, dsf_instant now)
{
	struct fabric_port *p = &c->ports.ports[port];
	uint64_t discarded = p->counters.discarded_cells;

	if (p->carrier == up)
		return;
	fabric_port_carrier(&c->ports, port, up, now);
	c->link_down_dropped += p->counters.discarded_cells - discarded;
	if (!c->reach.ports[port].loop)
		c->fabric_carriers += up ? 1u : ~0u;
	dsf_trace_emit(
		c->trace, now, up ? DSF_EVENT_PORT_UP : DSF_EVENT_PORT_DOWN, c->index, port, 0);
	fabric_reach_carrier(&c->reach, port, up, now);
	p->heard = fabric_reach_hears(&c->reach, port);
}

dsf_instant node_cells_deadline(const struct node_cells *c)
{
	return dsf_time_min(fabric_ports_deadline(&c->ports), fabric_reach_deadline(&c->reach));
}

bool node_cells_expire(struct node_cells *c, dsf_instant now)
{
	bool departed = fabric_ports_expire(&c->ports, now);

	if (dsf_time_due(fabric_reach_deadline(&c->reach), now)) {
		fabric_reach_expire(&c->reach, now);
		for (uint32_t i = 0; i < c->ports.count; i++)
			c->ports.ports[i].heard = fabric_reach_hears(&c->reach, i);
	}
	return departed;
}

bool node_cells_next_changed(struct node_cells *c, uint32_t *destination)
{
	if (!fabric_reach_next_changed(&c->reach, destination))
		return false;
	fabric_spray_forget(&c->spray, *destination);
	return true;
}

static void send_fill(struct node_cells *c, uint32_t port, uint32_t count, dsf_instant now)
{
	struct fabric_cell cell = { .kind = FABRIC_CELL_FILL,
		.source = (uint16_t)c->self->switch_index,
		.class = FABRIC_CLASS_NC };

	for (uint32_t i = 0; i < count; i++) {
		uint8_t *at = fabric_port_push_control(&c->ports, port, FABRIC_CELL_HEADER, now);

		if (at != NULL)
			fabric_cell_encode(&cell, at);
	}
}

static void send_reach(struct node_cells *c, uint32_t port, dsf_instant now)
{
	uint8_t payload[FABRIC_REACH_CELL_MAX];
	struct fabric_cell cell = { .kind = FABRIC_CELL_REACH,
		.source = (uint16_t)c->self->switch_index,
		.class = FABRIC_CLASS_NC };
	size_t size;

	for (uint32_t part = 0;
		(size = fabric_reach_output(&c->reach, port, part, payload, sizeof(payload))) > 0;
		part++) {
		uint8_t *at = fabric_port_push_control(
			&c->ports, port, FABRIC_CELL_HEADER + (uint32_t)size, now);

		if (at == NULL)
			return;
		cell.size = cell.stored = (uint16_t)size;
		fabric_cell_encode(&cell, at);
		memcpy(at + FABRIC_CELL_HEADER, payload, size);
	}
	if (c->ports.ports[port].rate_bps > 0) /* else it leaves when the driver asks */
		dsf_bitset_add(c->ports.telling, port);
	if (c->reach.ports[port].fill_wanted)
		send_fill(c, port, FABRIC_REACH_FILL_CELLS, now);
	c->reach.ports[port].fill_wanted = false;
}

/* Tells a peer to send no data, or to go on: by the next train, and there is one. */
static void tell_stop(struct node_cells *c, uint32_t port, bool stop, dsf_instant now)
{
	c->ports.ports[port].stop = stop;
	c->ports.ports[port].stops += stop;
	if (c->ports.ports[port].carrier)
		send_fill(c, port, 1, now);
}

/* A cell of the port in hand has joined a queue that is full. */
static void push_back(struct node_cells *c, uint32_t port, dsf_instant now)
{
	const struct fabric_port *p = &c->ports.ports[port];

	if (p->queue_bytes > p->full_bytes && c->input_port != TOPO_NONE &&
		fabric_pressure_add(&c->pressure, port, c->input_port))
		tell_stop(c, c->input_port, true, now);
}

/* Who fed queues that have drained may go on. */
static void relieve(struct node_cells *c, dsf_instant now)
{
	const uint64_t *full = c->pressure.full;
	uint32_t count = c->pressure.ports_count, in;

	if (c->pressure.full_count == 0)
		return;
	for (uint32_t out = dsf_bitset_next(full, 0, count); out < count;
		out = dsf_bitset_next(full, out + 1, count)) {
		const struct fabric_port *p = &c->ports.ports[out];

		if (p->queue_bytes > p->full_bytes / 2)
			continue;
		while ((in = fabric_pressure_remove(&c->pressure, out)) != FABRIC_PRESSURE_NONE)
			tell_stop(c, in, false, now);
	}
}

void node_cells_settle(struct node_cells *c, dsf_instant now)
{
	uint32_t port = 0;

	relieve(c, now);
	/* A link has one reachability cell in its queue: what changes meanwhile is told by the
	 * next one, when that has left, and not by one cell for each change. */
	while (fabric_reach_next_send(&c->reach, c->ports.telling, &port))
		send_reach(c, port, now);
	fabric_ports_settle(&c->ports);
}

/* Is every destination reached that a healthy fabric reaches? Where a link is drained, what is
 * missing is as it was asked for. */
static bool reaches_expected(const struct node_cells *c)
{
	if (node_cells_drained(c))
		return true;
	for (uint32_t w = 0; w < c->reach.switch_words; w++)
		if (c->expected[w] & ~c->reach.any[w])
			return false;
	return true;
}

bool node_cells_forward(
	struct node_cells *c, const struct fabric_cell *cell, const uint8_t *raw, dsf_instant now)
{
	uint32_t port = fabric_spray_next(&c->spray, cell->destination, &c->reach, &c->ports);
	uint32_t stored = FABRIC_CELL_HEADER + cell->stored;
	uint8_t *at;

	if (port == FABRIC_SPRAY_NONE) {
		c->unreachable_dropped++;
		return false;
	}
	if (cell->kind == FABRIC_CELL_DATA)
		at = fabric_port_push(
			&c->ports, port, stored, FABRIC_CELL_HEADER + cell->size, now);
	else
		at = fabric_port_push_control(&c->ports, port, stored, now);
	if (at == NULL)
		return false; /* counted by the ports */
	memcpy(at, raw, stored);
	if (cell->kind != FABRIC_CELL_DATA)
		return true;
	if (fabric_port_over_mark(&c->ports, port))
		at[FABRIC_CELL_AT_FLAGS] |= FABRIC_CELL_CONGESTED;
	push_back(c, port, now);
	return true;
}

bool node_cells_send_control(struct node_cells *c, const struct fabric_cell *cell, dsf_instant now)
{
	uint8_t raw[FABRIC_CELL_HEADER];

	fabric_cell_encode(cell, raw);
	return node_cells_forward(c, cell, raw, now);
}

bool node_cells_output(struct node_cells *c, struct node_output *out, dsf_instant now)
{
	struct fabric_frame *frame = fabric_ports_output(&c->ports, now);

	if (frame == NULL)
		return false;
	*out = (struct node_output){ .kind = NODE_OUTPUT_FRAME,
		.port = frame->port,
		.depart = frame->depart,
		.head = frame->bytes,
		.head_size = frame->used,
		.size = frame->used,
		.checksum_start = NODE_CHECKSUM_NONE,
		.buffer = frame };
	return true;
}

static void impair(struct node_cells *c, const struct node_command *command, dsf_instant now)
{
	const struct node_impairment *i = &command->impairment;
	struct fabric_port *p = &c->ports.ports[command->port];

	p->impairment = (struct fabric_impairment){ .loss_ppm = i->loss_ppm,
		.corrupt_ppm = i->corrupt_ppm,
		.reorder_ppm = i->reorder_ppm,
		.delay_ns = i->delay_ns,
		.jitter_ns = i->jitter_ns,
		.silent = i->silent };
	fabric_port_rate(&c->ports, command->port,
		i->rate_bps > 0
			? i->rate_bps
			: c->topo->links[topo_node_port(c->topo, c->self, command->port)->link]
				  .rate_bps,
		now);
}

int node_cells_command(struct node_cells *c, const struct node_command *command, dsf_instant now)
{
	switch (command->kind) {
	case NODE_COMMAND_IMPAIR: impair(c, command, now); return 0;
	case NODE_COMMAND_DRAIN_PORT:
		if (topo_node_port(c->topo, c->self, command->port)->ethernet)
			return -DSF_E_UNSUPPORTED;
		fabric_reach_drain(&c->reach, command->port, command->drained, now);
		node_cells_enable(c, now);
		return 0;
	case NODE_COMMAND_DRAIN_NODE:
		fabric_reach_drain_all(&c->reach, command->drained, now);
		node_cells_enable(c, now);
		return 0;
	case NODE_COMMAND_STARTED:
	case NODE_COMMAND_WORKLOAD_START:
	case NODE_COMMAND_WORKLOAD_STOP: break;
	}
	return -DSF_E_UNSUPPORTED;
}

bool node_cells_ready(const struct node_cells *c)
{
	return c->fabric_carriers == c->fabric_ports_count &&
	       c->reach.live_count == c->fabric_ports_count && reaches_expected(c);
}
