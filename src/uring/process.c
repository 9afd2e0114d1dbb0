#include "uring/process.h"
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/err.h"
#include "fabric/cell.h"
#include "uring/log.h"

#define TRAIN_BUFFERS_MAX  64u
#define PACKET_BUFFERS_MAX 128u
#define BUFFER_ALIGN       64u
#define INPUTS_MAX         256u  /* handled before outputs are taken */
#define OUTPUTS_MAX        1024u /* taken in one turn */
#define COMPLETIONS_MAX    512u
#define COALESCED_COUNT    (URING_CQ_ENTRIES / 2) /* completions that end a coalescing sleep early */
#define CLOCK_EVERY        16u                    /* inputs between two readings of the clock */

#define NS_PER_100_MS (100 * NS_PER_MS)

enum buffer_group { GROUP_TRAINS, GROUP_PACKETS };

/* Fidelity and order. */

static void handle_frame(struct uring_process *p, struct uring_held *held)
{
	struct node_frame frame = {
		.bytes = held->arrival.bytes,
		.stored = held->arrival.size,
		.size = held->arrival.size,
		.checksum_start = held->arrival.checksum_start,
		.checksum_offset = held->arrival.checksum_offset,
	};

	/* The node counts what it refuses. */
	(void)node_frame_input(p->node, held->port, &frame, p->now);
	uring_hold_release(&p->hold, held);
}

/* Hands over the next thing that is due by the clock; false when nothing is. */
static bool handle_next(struct uring_process *p)
{
	dsf_instant deadline = node_deadline(p->node), frame_at = uring_hold_at(&p->hold);
	dsf_instant due = dsf_time_min(deadline, frame_at);

	if (!dsf_time_due(due, p->clock.last))
		return false;
	uring_fidelity_late(&p->fidelity, due, p->clock.last);
	p->now = dsf_time_max(p->now, due);
	if (dsf_time_before(deadline, frame_at))
		node_expire(p->node, p->now);
	else
		handle_frame(p, uring_hold_pop(&p->hold));
	return true;
}

/* Returns how many things were handled. */
static unsigned handle_due(struct uring_process *p, unsigned limit)
{
	unsigned count = 0;

	while (count < limit && handle_next(p))
		if (++count % CLOCK_EVERY == 0)
			uring_clock_read(&p->clock);
	return count;
}

static void send_or_wait(struct uring_process *p, const struct node_output *out)
{
	struct uring_port *port = &p->ports[out->port];

	if (port->config.kind != URING_PORT_FABRIC && !dsf_time_due(out->depart, p->clock.last) &&
		uring_transmit_wait(&p->transmit, out))
		return;
	uring_transmit_send(&p->transmit, port, out);
}

static unsigned take_outputs(struct uring_process *p)
{
	struct node_output out;
	unsigned count = 0;
	int status;

	uring_transmit_due(&p->transmit, p->ports, p->clock.last);
	for (; count < OUTPUTS_MAX && node_output(p->node, &out, p->now); count++) {
		switch (out.kind) {
		case NODE_OUTPUT_FRAME:
			assert(out.port < p->self->ports_count);
			send_or_wait(p, &out);
			break;
		case NODE_OUTPUT_PLACE:
			status = uring_memory_place(&p->payload, &out.spans[0], out.head);
			node_memory_done(p->node, out.request, status, p->now);
			break;
		}
	}
	return count;
}

dsf_instant uring_process_catch_up(struct uring_process *p)
{
	uring_clock_read(&p->clock);
	while (handle_due(p, INPUTS_MAX) == INPUTS_MAX)
		take_outputs(p);
	p->now = dsf_time_max(p->now, p->clock.last);
	return p->now;
}

/* Completions. */

static void drop_unreadable(struct uring_process *p, struct uring_port *port, int err)
{
	if (err == -EPROTO) {
		p->fidelity.drops[URING_DROP_SEGMENTS]++;
		log_warn("%s: dropped a frame of several segments: set gso_max_segs 1 at its peer",
			port->config.name);
	} else {
		p->fidelity.drops[URING_DROP_OVERSIZE]++;
		log_warn("%s: dropped a frame that doesn't fit the link's MTU", port->config.name);
	}
}

static void receive(
	struct uring_process *p, struct uring_port *port, const struct io_uring_cqe *cqe)
{
	uint16_t id = (uint16_t)(cqe->flags >> IORING_CQE_BUFFER_SHIFT);
	struct uring_arrival a;
	uint8_t *bytes;
	int err;

	assert(cqe->flags & IORING_CQE_F_BUFFER);
	bytes = uring_buffers_take(port->buffers, id);
	err = uring_port_parse(port, &p->clock, bytes, (uint32_t)cqe->res, &a);
	if (err < 0)
		drop_unreadable(p, port, err);
	else
		err = uring_hold_push(
			&p->hold, port->buffers, id, port->config.number, &a, p->clock.last);
	if (err == 0)
		return;
	if (err == -DSF_E_FULL || err == -DSF_E_NOMEM)
		p->fidelity.drops[URING_DROP_SOCKET]++;
	uring_buffers_give(port->buffers, id);
}

static void complete_receive(struct uring_process *p, const struct io_uring_cqe *cqe)
{
	struct uring_port *port = &p->ports[uring_tag_index(cqe->user_data)];

	if (cqe->res >= 0)
		receive(p, port, cqe);
	else if (cqe->res == -ENOBUFS)
		uring_buffers_grow(port->buffers);
	else if (cqe->res != -ENETDOWN) /* the link went down: said once, then it waits */
		log_warn("%s: receive: %s", port->config.name, uring_err_text(cqe->res));
	if (!(cqe->flags & IORING_CQE_F_MORE)) {
		port->armed = false;
		p->rearm = true;
	}
}

static void complete(struct uring_process *p, const struct io_uring_cqe *cqe)
{
	switch (uring_tag_kind(cqe->user_data)) {
	case URING_KIND_PORT_RX: complete_receive(p, cqe); break;
	case URING_KIND_PORT_TX:
		if (cqe->res < 0)
			p->ports[uring_tag_index(cqe->user_data)].refused++;
		break;
	case URING_KIND_TUN_RX:
	case URING_KIND_TUN_TX:
	case URING_KIND_CARRIER:
	case URING_KIND_CONTROL_RX:
	case URING_KIND_CONTROL_TX:
	case URING_KIND_SIGNAL: break;
	}
}

static unsigned reap(struct uring_process *p)
{
	struct io_uring_cqe *cqes[64];
	unsigned total = 0, count;

	do {
		count = io_uring_peek_batch_cqe(&p->loop.ring, cqes, 64);
		for (unsigned i = 0; i < count; i++)
			complete(p, cqes[i]);
		io_uring_cq_advance(&p->loop.ring, count);
		total += count;
	} while (count == 64 && total < COMPLETIONS_MAX);
	return total;
}

/* Starts receives again that have ended, where the kernel would find a buffer. */
static void rearm(struct uring_process *p)
{
	bool left = false;

	for (uint32_t i = 0; i < p->self->ports_count; i++) {
		struct uring_port *port = &p->ports[i];

		if (port->armed || port->fd < 0)
			continue;
		if (port->buffers->taken == port->buffers->count || !uring_port_arm(port, &p->loop))
			left = true;
	}
	p->rearm = left;
}

static void settle_ports(struct uring_process *p)
{
	for (uint32_t i = 0; i < p->self->ports_count; i++)
		uring_port_settle(&p->ports[i], &p->fidelity);
}

static dsf_instant next_due(const struct uring_process *p)
{
	return dsf_time_min(dsf_time_min(uring_hold_at(&p->hold), node_deadline(p->node)),
		uring_transmit_at(&p->transmit));
}

static int wait(struct uring_process *p, bool busy)
{
	uint64_t until_ns, slept_ns;
	int err;

	uring_clock_read(&p->clock);
	slept_ns = p->clock.last_wall_ns - p->worked_at;
	until_ns = uring_clock_wall_until(&p->clock, next_due(p));
	if (busy)
		err = uring_loop_flush(&p->loop);
	else if (slept_ns < p->gap_ns)
		err = uring_loop_wait(&p->loop, COALESCED_COUNT, p->gap_ns - slept_ns);
	else if (until_ns == 0)
		err = uring_loop_flush(&p->loop);
	else
		err = uring_loop_wait(&p->loop, 1, until_ns);
	uring_transmit_settle(&p->transmit);
	return err;
}

int uring_process_turn(struct uring_process *p)
{
	unsigned completed, handled, sent;

	uring_clock_read(&p->clock);
	uring_clock_sample(&p->clock);
	completed = reap(p);
	handled = handle_due(p, INPUTS_MAX);
	sent = take_outputs(p);
	if (p->rearm)
		rearm(p);
	if (completed > 0)
		settle_ports(p);
	if (completed + handled + sent > 0)
		p->worked_at = p->clock.last_wall_ns;
	return wait(
		p, completed >= COMPLETIONS_MAX || handled == INPUTS_MAX || sent == OUTPUTS_MAX);
}

void uring_process_carrier(struct uring_process *p, uint32_t port, bool up)
{
	struct uring_held *held;

	if (p->ports[port].carrier == up)
		return;
	p->ports[port].carrier = up;
	uring_process_catch_up(p);
	node_carrier(p->node, port, up, p->now);
	if (up)
		return;
	/* What was on the wire is lost; the node counts it, as frames on a port without carrier. */
	while ((held = uring_hold_pop_port(&p->hold, port)) != NULL)
		handle_frame(p, held);
	p->fidelity.cut += uring_transmit_cut(&p->transmit, port);
}

void uring_process_collect_drops(struct uring_process *p)
{
	for (uint32_t i = 0; i < p->self->ports_count; i++)
		uring_port_collect_drops(&p->ports[i], &p->fidelity);
}

/* Setting up. */

static struct uring_port_config port_config(const struct uring_process *p, uint32_t number)
{
	const struct topo_port *port = topo_node_port(p->topo, p->self, number);
	const struct topo_port *peer = &p->topo->ports[port->peer];
	enum topo_role peer_role = p->topo->nodes[peer->node].role;
	struct uring_port_config c;

	memset(&c, 0, sizeof(c));
	c.name = port->name;
	c.number = number;
	c.kind = !port->ethernet ? URING_PORT_FABRIC
				 : (p->self->role == TOPO_ROLE_HOST ? URING_PORT_HOST
								    : URING_PORT_ETHERNET);
	/* Between two of our switches the sender of a packet has held the link's delay; towards
	 * hosts, which hold nothing, the switch models it both ways. */
	if (c.kind == URING_PORT_FABRIC ||
		(c.kind == URING_PORT_ETHERNET &&
			(peer_role == TOPO_ROLE_HOST || peer_role == TOPO_ROLE_EXTERNAL)))
		c.delay_ns = p->topo->links[port->link].delay_ns;
	return c;
}

/* Buffers fit the largest MTU among the node's links of that kind; 0: it has none. */
static uint32_t buffer_size(const struct uring_process *p, bool ethernet)
{
	uint32_t mtu = 0, overhead;

	for (uint32_t i = 0; i < p->self->ports_count; i++) {
		const struct topo_port *port = topo_node_port(p->topo, p->self, i);

		if (port->ethernet == ethernet && p->topo->links[port->link].mtu > mtu)
			mtu = p->topo->links[port->link].mtu;
	}
	if (mtu == 0)
		return 0;
	overhead = uring_port_overhead(ethernet ? URING_PORT_ETHERNET : URING_PORT_FABRIC);
	overhead += 18; /* Ethernet header and a VLAN tag */
	return (mtu + overhead + BUFFER_ALIGN - 1) / BUFFER_ALIGN * BUFFER_ALIGN;
}

static int open_buffers(struct uring_process *p)
{
	uint32_t train_size = buffer_size(p, false), packet_size = buffer_size(p, true);
	int err = 0;

	if (train_size > 0)
		err = uring_buffers_open(&p->trains, &p->loop, &uring_memory_core, GROUP_TRAINS,
			train_size, TRAIN_BUFFERS_MAX);
	if (err == 0 && packet_size > 0)
		err = uring_buffers_open(&p->packets, &p->loop, &uring_memory_core, GROUP_PACKETS,
			packet_size, PACKET_BUFFERS_MAX);
	return err;
}

static int open_ports(struct uring_process *p)
{
	p->ports = calloc(p->self->ports_count + 1, sizeof(*p->ports));
	if (p->ports == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->self->ports_count; i++)
		p->ports[i].fd = -1;
	for (uint32_t i = 0; i < p->self->ports_count; i++) {
		struct uring_port_config c = port_config(p, i);
		int err = uring_port_open(&p->ports[i], &c, &p->loop,
			c.kind == URING_PORT_FABRIC ? &p->trains : &p->packets);

		if (err < 0) {
			log_err("port %s: %s", c.name, uring_err_text(err));
			return err;
		}
	}
	p->rearm = true;
	return 0;
}

static int open_node(struct uring_process *p)
{
	uint32_t dilation = p->topo->time_dilation;
	struct node_config config = {
		.topo = p->topo,
		.index = p->config.index,
		.memory = &uring_memory_core,
		.trace = &p->trace,
		.seed = p->topo->seed,
		/* Noise of a live machine must not look like silence or loss. */
		.reach_refresh_min_ns = NS_PER_100_MS / dilation,
		.reassembly_min_ns = 3 * NS_PER_100_MS / dilation,
		.watchdog_min_ns = NS_PER_S / dilation,
		.probe_min_ns = 3 * NS_PER_100_MS / dilation,
	};

	p->node = node_new(&config, p->clock.last);
	p->now = p->clock.last;
	return p->node == NULL ? -ENOMEM : 0;
}

/* Half a train's time on the fastest port, in wall time; 0 where nothing is dilated. */
static uint64_t coalescing_gap(const struct uring_process *p)
{
	uint64_t fastest_bps = 0;

	for (uint32_t i = 0; i < p->self->ports_count; i++) {
		const struct topo_port *port = topo_node_port(p->topo, p->self, i);
		uint64_t rate_bps = p->topo->links[port->link].rate_bps;

		if (rate_bps == 0)
			return 0;
		if (rate_bps > fastest_bps)
			fastest_bps = rate_bps;
	}
	if (fastest_bps == 0 || p->topo->time_dilation <= 1)
		return 0;
	return dsf_time_of_bytes(p->topo->fabric.train_bytes, fastest_bps) *
	       p->topo->time_dilation / 2;
}

static void trace_nothing(void *user, const struct dsf_event *event)
{
	(void)user;
	(void)event;
}

int uring_process_open(struct uring_process *p, const struct uring_node_config *config)
{
	int err;

	memset(p, 0, sizeof(*p));
	p->config = *config;
	p->topo = config->topo;
	p->self = &config->topo->nodes[config->index];
	p->trace = (struct dsf_trace){ trace_nothing, p };
	uring_clock_init(&p->clock, config->epoch_ns, config->topo->time_dilation);
	uring_hold_init(&p->hold, &uring_memory_core);
	p->gap_ns = coalescing_gap(p);
	err = uring_loop_open(&p->loop);
	if (err < 0) {
		log_err("io_uring: %s", uring_err_text(err));
		return err;
	}
	err = open_buffers(p);
	if (err == 0)
		err = open_node(p);
	if (err == 0)
		err = uring_transmit_open(
			&p->transmit, &p->loop, &uring_memory_core, &p->payload, p->node);
	if (err == 0)
		err = open_ports(p);
	if (err < 0)
		uring_process_close(p);
	return err;
}

void uring_process_close(struct uring_process *p)
{
	if (p->ports != NULL)
		for (uint32_t i = 0; i < p->self->ports_count; i++)
			uring_port_close(&p->ports[i]);
	/* The ring goes first: it may still hold entries that point into what follows. */
	uring_loop_close(&p->loop);
	uring_transmit_close(&p->transmit);
	uring_hold_close(&p->hold);
	uring_buffers_close(&p->trains);
	uring_buffers_close(&p->packets);
	free(p->ports);
	p->ports = NULL;
	if (p->node != NULL)
		node_free(p->node);
	p->node = NULL;
}
