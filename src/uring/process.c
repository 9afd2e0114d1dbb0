#include "uring/process.h"
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>
#include "fabric/cell.h"
#include "uring/log.h"
#include "uring/request.h"

#define INPUTS_MAX           64u   /* handled before outputs are taken */
#define CATCH_UP_BATCHES_MAX 256u  /* before a command */
#define OUTPUTS_MAX          1024u /* taken in one turn */
#define COMPLETIONS_MAX      512u
#define COALESCED_COUNT      (URING_CQ_ENTRIES / 2) /* completions that end the sleep early */
#define SPIN_NS              5000u /* less than a timer is late by: not worth sleeping */
#define IDLE_TURNS           2u    /* the kernel is asked between two of them */
#define CLOCK_EVERY          16u   /* inputs between two readings of the clock */

/* Outputs. */

static struct uring_port *port_of(struct uring_process *p, uint32_t number)
{
	if (number == NODE_PORT_INBAND) {
		assert(p->ports_count > p->self->ports_count);
		return &p->ports[p->self->ports_count];
	}
	assert(number < p->self->ports_count);
	return &p->ports[number];
}

/* What should have left while we stood still leaves now. */
static void put_off(const struct uring_port *port, struct node_output *out, dsf_instant depart)
{
	out->depart = depart;
	if (port->config.kind == URING_PORT_FABRIC)
		fabric_train_put_off((uint8_t *)(uintptr_t)out->head, out->head_size, depart);
}

static void send_or_wait(struct uring_process *p, struct node_output *out)
{
	struct uring_port *port = port_of(p, out->port);

	if (dsf_time_before(out->depart, p->fidelity.thawed_at))
		put_off(port, out, p->fidelity.thawed_at);
	out->depart = dsf_time_after(out->depart, port->config.hold_ns);
	if (port->config.kind != URING_PORT_FABRIC && !dsf_time_due(out->depart, p->clock.last) &&
		uring_transmit_wait(&p->transmit, port, out))
		return;
	uring_transmit_send(&p->transmit, port, out);
}

static unsigned take_outputs(struct uring_process *p)
{
	struct node_output out;
	unsigned count = 0;
	int status;

	uring_transmit_due(&p->transmit, p->clock.last);
	for (; count < OUTPUTS_MAX && node_output(p->node, &out, p->now); count++) {
		switch (out.kind) {
		case NODE_OUTPUT_FRAME: send_or_wait(p, &out); break;
		case NODE_OUTPUT_PLACE:
			status = uring_memory_place(&p->payload, &out.spans[0], out.head);
			node_memory_done(p->node, out.request, status, p->now);
			break;
		case NODE_OUTPUT_OPEN:
		case NODE_OUTPUT_WRITE:
		case NODE_OUTPUT_CLOSE: uring_streams_output(&p->streams, &out, p->now); break;
		}
	}
	return count;
}

/* Fidelity and order. */

/* What was due by now is late because this process was stopped: it is done now. */
static void look_for_thaw(struct uring_process *p)
{
	if (!uring_fidelity_went_on())
		return;
	p->fidelity.catching_up = IDLE_TURNS;
	p->fidelity.thawed_at = uring_clock_read(&p->clock);
	p->now = dsf_time_max(p->now, p->fidelity.thawed_at);
}

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
	look_for_thaw(p);
	/* At one instant deadlines come before inputs, as in the simulator. */
	if (dsf_time_before(frame_at, deadline)) {
		uring_fidelity_late(&p->fidelity, frame_at, p->clock.last);
		uring_fidelity_behind(&p->fidelity, frame_at, p->now, p->timeout_ns);
		p->now = dsf_time_max(p->now, frame_at);
		handle_frame(p, uring_hold_pop(&p->hold));
		return true;
	}
	/* A host's port that was free may have got something to send just now: it isn't late. */
	p->now = dsf_time_max(p->now, deadline);
	uring_fidelity_late(&p->fidelity, p->now, p->clock.last);
	node_expire(p->node, p->now);
	/* A host's deadline is also when it can send again: then it stays until we have asked. */
	if (dsf_time_due(node_deadline(p->node), p->now))
		take_outputs(p);
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

dsf_instant uring_process_catch_up(struct uring_process *p)
{
	uring_clock_read(&p->clock);
	/* Bounded: a node with ever more to do must not keep us from answering. */
	for (unsigned i = 0; i < CATCH_UP_BATCHES_MAX && handle_due(p, INPUTS_MAX) == INPUTS_MAX;
		i++)
		take_outputs(p);
	p->now = dsf_time_max(p->now, p->clock.last);
	return p->now;
}

/* Completions. */

static void drop_unreadable(struct uring_process *p, struct uring_port *port, int err)
{
	if (err == -ERANGE) {
		p->fidelity.drops[URING_DROP_AHEAD]++;
		log_warn("%s: dropped a train that says it departs later than its peer's can",
			port->config.name);
	} else if (err == -EPROTO) {
		p->fidelity.drops[URING_DROP_SEGMENTS]++;
		log_warn("%s: dropped a frame of several segments: set gso_max_segs 1 at its peer",
			port->config.name);
	} else {
		p->fidelity.drops[URING_DROP_OVERSIZE]++;
		log_warn("%s: dropped a frame that doesn't fit the link's MTU", port->config.name);
	}
}

/* The port that a frame came by: of a hyperport's one member. */
static uint32_t number_of(
	const struct uring_process *p, const struct uring_port *port, const struct uring_arrival *a)
{
	for (uint32_t i = 0; a->ifindex > 0 && i < p->self->ports_count; i++) {
		if (p->ports[i].ifindex == a->ifindex)
			return i;
	}
	return port->config.number;
}

static void receive(
	struct uring_process *p, struct uring_port *port, const struct io_uring_cqe *cqe)
{
	uint16_t id = (uint16_t)(cqe->flags >> IORING_CQE_BUFFER_SHIFT);
	struct uring_arrival a;
	uint8_t *bytes;
	int err;

	if (!(cqe->flags & IORING_CQE_F_BUFFER))
		return; /* nothing was read: the receive has ended and is armed again */
	bytes = uring_buffers_take(port->buffers, id);
	err = uring_port_parse(port, &p->clock, bytes, (uint32_t)cqe->res, &a);
	if (err < 0) {
		drop_unreadable(p, port, err);
	} else if (uring_inbound_pass(&port->inbound, &a.due)) {
		err = uring_hold_push(&p->hold, port->buffers, id, number_of(p, port, &a),
			port->config.whole, &a, p->clock.last);
		if (err == 0)
			return;
		p->fidelity.drops[URING_DROP_SOCKET]++;
	}
	uring_buffers_give(port->buffers, id);
}

/* The kernel found no buffer; the frame waits in its socket. */
static void starve(struct uring_process *p, const struct uring_port *port)
{
	uring_buffers_grow(port->buffers);
	p->starved = true;
}

static void complete_receive(struct uring_process *p, const struct io_uring_cqe *cqe)
{
	struct uring_port *port = &p->ports[uring_tag_index(cqe->user_data)];

	if (cqe->res >= 0)
		receive(p, port, cqe);
	else if (cqe->res == -ENOBUFS)
		starve(p, port);
	else if (cqe->res != -ENETDOWN) /* the link went down: said once, then it waits */
		log_warn("%s: receive: %s", port->config.name, uring_err_text(cqe->res));
	if (!(cqe->flags & IORING_CQE_F_MORE)) {
		port->armed = false;
		p->rearm = true;
	}
}

static void link_changed(void *user, const struct netns_link_state *state)
{
	struct uring_process *p = user;

	for (uint32_t i = 0; i < p->self->ports_count; i++)
		if (p->ports[i].ifindex == state->ifindex) {
			p->ports[i].carrier_downs = state->carrier_downs;
			uring_process_carrier(p, i, state->carrier && !state->deleted);
		}
}

void uring_process_read_links(struct uring_process *p)
{
	int err = netns_monitor_read(&p->links, link_changed, p);

	if (err < 0)
		log_warn("news of links: %s", uring_err_text(err));
}

static void complete_links(struct uring_process *p, const struct io_uring_cqe *cqe)
{
	p->links_news |= cqe->res > 0;
	if (!(cqe->flags & IORING_CQE_F_MORE)) {
		p->watching_links = false;
		p->rearm = true;
	}
}

static void complete(struct uring_process *p, const struct io_uring_cqe *cqe)
{
	switch (uring_tag_kind(cqe->user_data)) {
	case URING_KIND_PORT_RX: complete_receive(p, cqe); break;
	case URING_KIND_PORT_TX:
		if (cqe->res == -ENETDOWN)
			p->fidelity.cut++; /* though it may be up again by now */
		else if (cqe->res < 0)
			p->ports[uring_tag_index(cqe->user_data)].refused++;
		break;
	case URING_KIND_LINKS: complete_links(p, cqe); break;
	case URING_KIND_CONTROL_RX:
		p->control_news = true;
		p->control_received = cqe->res;
		break;
	case URING_KIND_CONTROL_TX: uring_control_sent(&p->control, cqe->res); break;
	case URING_KIND_SIGNAL:
		log_info("stopping: signal");
		p->stopping = true;
		break;
	case URING_KIND_STREAM_ACCEPT:
	case URING_KIND_STREAM_CONNECT:
	case URING_KIND_STREAM_RX:
	case URING_KIND_STREAM_TX:
	case URING_KIND_STREAM_CANCEL: uring_streams_note(&p->streams, cqe); break;
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

static bool watch_links(struct uring_process *p)
{
	struct io_uring_sqe *sqe = uring_loop_entry(&p->loop);

	if (sqe == NULL)
		return false;
	/* Not a registered file: polled once in a while. */
	io_uring_prep_poll_multishot(sqe, netns_monitor_fd(&p->links), POLLIN);
	sqe->user_data = uring_tag(URING_KIND_LINKS, 0);
	return true;
}

static bool watch_signals(struct uring_process *p)
{
	struct io_uring_sqe *sqe = uring_loop_entry(&p->loop);

	if (sqe == NULL)
		return false;
	io_uring_prep_read(sqe, p->signal_fd, p->signal_bytes, sizeof(p->signal_bytes), 0);
	sqe->user_data = uring_tag(URING_KIND_SIGNAL, 0);
	return true;
}

/* Starts receives again that have ended, where the kernel would find a buffer. True: some were. */
static bool rearm(struct uring_process *p)
{
	bool left = false, armed = false;

	for (uint32_t i = 0; i < p->ports_count; i++) {
		struct uring_port *port = &p->ports[i];

		if (port->armed || port->fd < 0 || uring_port_is_deaf(port))
			continue;
		if (port->buffers->taken < port->buffers->count && uring_port_arm(port, &p->loop))
			armed = true;
		else
			left = true;
	}
	if (!p->watching_links && p->links.fd >= 0)
		left |= !(p->watching_links = watch_links(p));
	if (!p->watching_signals && p->signal_fd >= 0)
		left |= !(p->watching_signals = watch_signals(p));
	p->rearm = left;
	return armed;
}

/* Brings in what has come. A receive that ended for want of a buffer leaves frames behind that may
 * be due before what we have, so it goes on at once while there are buffers. */
static unsigned bring_in(struct uring_process *p)
{
	unsigned total = reap(p);

	while (p->starved && total < COMPLETIONS_MAX) {
		p->starved = false;
		if (!rearm(p) || uring_loop_flush(&p->loop) < 0)
			break;
		total += reap(p);
	}
	p->starved = false;
	return total;
}

static void handle_line(void *user, const char *line, size_t size)
{
	uring_request_handle(user, line, size);
}

/* All catch up with the clock, so they wait until all frames that came before are in. */
static void take_news(struct uring_process *p)
{
	if (uring_streams_news(&p->streams))
		uring_streams_handle(&p->streams, uring_process_catch_up(p));
	if (p->links_news) {
		p->links_news = false;
		uring_process_read_links(p);
	}
	if (p->control_news) {
		p->control_news = false;
		uring_control_input(&p->control, p->control_received, handle_line, p);
	}
}

static dsf_instant next_due(const struct uring_process *p)
{
	return dsf_time_min(dsf_time_min(uring_hold_at(&p->hold), node_deadline(p->node)),
		uring_transmit_at(&p->transmit));
}

/* Has a link lost its carrier since the kernel last told of it? One that flaps is up again before
 * there is news. */
static bool went_down(struct uring_port *port)
{
	struct netns_link_state state;
	int fd = netns_nl_open(), err = fd < 0 ? fd : netns_link_get(fd, port->ifindex, &state);
	bool went = err == 0 && state.carrier_downs != port->carrier_downs;

	if (err < 0)
		log_warn("%s: can't read its state: %s", port->config.name, uring_err_text(err));
	else
		port->carrier_downs = state.carrier_downs;
	if (fd >= 0)
		close(fd);
	return went;
}

static void settle_ports(struct uring_process *p)
{
	for (uint32_t i = 0; i < p->ports_count; i++) {
		struct uring_port *port = &p->ports[i];

		if (port->refused > 0)
			uring_port_settle(port, &p->fidelity,
				port->config.kind != URING_PORT_TUN && went_down(port));
	}
}

/* Nothing more comes in of what came while it was stopped; what found no room is lost by that. */
static void look_for_caught_up(struct uring_process *p, unsigned completed)
{
	if (p->fidelity.catching_up == 0 || completed > 0)
		return;
	if (p->fidelity.catching_up == 1)
		uring_process_collect_drops(p);
	p->fidelity.catching_up--;
}

static int wait(struct uring_process *p, bool busy)
{
	uint64_t until_ns, slept_ns;
	int err;

	uring_clock_read(&p->clock);
	slept_ns = p->clock.last_wall_ns - p->worked_at;
	until_ns = uring_clock_wall_until(&p->clock, next_due(p));
	if (busy || (slept_ns >= p->gap_ns && until_ns < SPIN_NS))
		err = io_uring_sq_ready(&p->loop.ring) > 0 || busy ? uring_loop_flush(&p->loop) : 0;
	else if (slept_ns < p->gap_ns)
		err = uring_loop_wait(&p->loop, COALESCED_COUNT, p->gap_ns - slept_ns);
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
	completed = bring_in(p);
	if (completed > 0) /* before there is news of links that flapped meanwhile */
		settle_ports(p);
	take_news(p);
	handled = handle_due(p, INPUTS_MAX);
	sent = take_outputs(p);
	look_for_caught_up(p, completed);
	uring_news_tell(p);
	uring_control_arm(&p->control, &p->loop);
	uring_streams_arm(&p->streams);
	p->stopping |= p->control.ended;
	if (p->rearm)
		rearm(p);
	if (completed + handled + sent > 0)
		p->worked_at = p->clock.last_wall_ns;
	return wait(p, p->stopping || completed >= COMPLETIONS_MAX || handled == INPUTS_MAX ||
			       sent == OUTPUTS_MAX);
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
	p->fidelity.cut += uring_transmit_cut(&p->transmit, &p->ports[port]);
}

static void count_overruns(void *user, const struct netns_link_state *state)
{
	struct uring_process *p = user;
	const struct uring_port *tun = port_of(p, NODE_PORT_INBAND);

	if (state->ifindex != tun->ifindex || state->tx_dropped < p->tun_overruns)
		return;
	p->fidelity.drops[URING_DROP_TUN] += state->tx_dropped - p->tun_overruns;
	p->tun_overruns = state->tx_dropped;
}

void uring_process_collect_drops(struct uring_process *p)
{
	int fd;

	for (uint32_t i = 0; i < p->ports_count; i++)
		uring_port_collect_drops(&p->ports[i], &p->fidelity);
	if (p->ports_count == p->self->ports_count)
		return;
	/* What the kernel sent to the TUN device and we didn't fetch in time. */
	fd = netns_nl_open();
	if (fd < 0 || netns_link_stats(fd, count_overruns, p) < 0)
		log_warn("%s: can't read its counters", p->ports[p->self->ports_count].config.name);
	if (fd >= 0)
		close(fd);
}
