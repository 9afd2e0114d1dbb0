#include <assert.h>
#include "metaroce/conn.h"

/* Sending may run ahead of a hint's pace by so many packets to make up for a busy port. */
#define PACE_BURST 2u

/* A hint is as old as it may get; then its sender is not heard and its word counts no more. */
static dsf_instant hint_end(const struct metaroce_conn_plane *cp)
{
	const struct metaroce *m = cp->conn->m;
	uint64_t round_ns = m->config.base_rtt_ns > m->config.probe_min_ns ? m->config.base_rtt_ns
									   : m->config.probe_min_ns;

	return dsf_time_after(cp->hint_at, METAROCE_HINT_ROUNDS * round_ns);
}

static bool hint_holds(const struct metaroce_conn_plane *cp, dsf_instant now)
{
	return cp->hint_bps > 0 && dsf_time_before(now, hint_end(cp));
}

/* Books what left on the pace; true while more may leave at once. */
static void pace(struct metaroce_conn_plane *cp, uint32_t udp_size, dsf_instant now)
{
	uint64_t cost_ns, burst_ns;

	if (!hint_holds(cp, now)) {
		cp->pace_at = now;
		return;
	}
	cost_ns = dsf_time_of_bytes(udp_size + METAROCE_OVERHEAD, cp->hint_bps);
	burst_ns = PACE_BURST * cost_ns;
	if (cp->pace_at.ns + burst_ns < now.ns)
		cp->pace_at.ns = now.ns - burst_ns;
	cp->pace_at = dsf_time_after(cp->pace_at, cost_ns);
}

static void address_packet(const struct metaroce_conn *c, uint32_t plane, uint16_t port,
	struct metaroce_packet *packet)
{
	packet->source = c->m->config.address[plane];
	packet->target = c->peer.address[plane];
	packet->source_port = port;
	packet->ect = packet->control = false;
	packet->sent = NULL;
	packet->payload_size = 0;
	packet->memory = packet->offset = 0;
}

/* What a path says of itself in the common header. */
static struct metaroce_mch path_mch(
	const struct metaroce_path *p, uint8_t type, uint32_t sequence, dsf_instant now)
{
	return (struct metaroce_mch){ .type = type,
		.path = p->index,
		.connection = p->conn->peer_id,
		.sequence = sequence,
		.tx_ts = metaroce_ticks(now),
		.epoch = p->epoch,
		.plane = p->plane,
		.backlog = metaroce_conn_backlog(p->conn) };
}

static void write_probe(struct metaroce_path *p, enum metaroce_probe_kind kind, uint32_t sequence,
	uint8_t *to, struct metaroce_packet *packet, dsf_instant now)
{
	struct metaroce_mch mch = path_mch(p, METAROCE_TYPE_PROBE, sequence, now);
	struct metaroce_probe probe = {
		.id = p->probes, .tail = p->next_sequence - 1, .kind = (uint8_t)kind
	};

	address_packet(p->conn, p->plane, p->source_port, packet);
	metaroce_wire_probe_encode(to, &mch, &probe);
	packet->head_size = METAROCE_PROBE_SIZE;
	p->conn->m->counters.probes++;
}

static uint8_t data_flags(const struct metaroce_conn_plane *cp, const struct metaroce_record *r)
{
	const struct metaroce_conn *c = cp->conn;
	const struct metaroce_message *message = r->message;
	uint8_t flags = 0;

	if (r->flags & METAROCE_RECORD_RTX)
		flags |= METAROCE_FLAG_RTX;
	if (r->flags & METAROCE_RECORD_MOVED)
		flags |= METAROCE_FLAG_MOVED;
	if (r->offset == 0)
		flags |= METAROCE_FLAG_FIRST;
	if (r->offset + r->size == message->write.size)
		flags |= METAROCE_FLAG_LAST;
	if (cp->hint_limited)
		flags |= METAROCE_FLAG_HINT_LIMITED;
	if (c->moving.first == NULL && metaroce_list_empty(&c->streams))
		flags |= METAROCE_FLAG_IDLE_AFTER;
	/* The next one will have to wait for an answer. */
	if (cp->inflight + c->m->config.payload_bytes > cp->window.bytes ||
		c->inflight + c->m->config.payload_bytes > c->inflight_max)
		flags |= METAROCE_FLAG_ACKREQ;
	return flags;
}

static void write_data(struct metaroce_conn_plane *cp, struct metaroce_path *p,
	struct metaroce_record *r, uint8_t *to, struct metaroce_packet *packet, dsf_instant now)
{
	const struct metaroce_message *message = r->message;
	const struct metaroce_write *write = &message->write;
	struct metaroce_mch mch = path_mch(p, METAROCE_TYPE_DATA, r->sequence, now);
	struct metaroce_data data = { .opcode = METAROCE_OP_WRITE,
		.msn = message->msn,
		.offset = r->offset,
		.message_size = write->size,
		.source_qp = message->qp->number,
		.target_qp = message->qp->peer_number,
		.moved = (r->flags & METAROCE_RECORD_MOVED) != 0,
		.moved_path = r->moved_path,
		.moved_epoch = r->moved_epoch,
		.moved_sequence = r->moved_sequence,
		.address = write->address + r->offset,
		.key = write->key,
		.length = r->size };

	mch.flags = data_flags(cp, r);
	address_packet(p->conn, p->plane, p->source_port, packet);
	packet->ect = true;
	packet->head_size = metaroce_wire_data_encode(to, &mch, &data);
	packet->memory = write->memory;
	packet->offset = write->offset + r->offset;
	packet->payload_size = r->size;
	cp->hint_limited = false;
	p->conn->m->counters.data_tx++;
	pace(cp, packet->head_size + r->size, now);
}

static void resend(struct metaroce_conn_plane *cp, struct metaroce_path *p,
	struct metaroce_record *r, uint8_t *to, struct metaroce_packet *packet, dsf_instant now)
{
	struct metaroce *m = p->conn->m;

	r->flags |= METAROCE_RECORD_RTX;
	if (!p->resent || (int32_t)(r->sequence - p->resent_highest) > 0)
		p->resent_highest = r->sequence;
	p->resent = true;
	metaroce_path_sent(p, r, now);
	if (r->message == NULL) {
		write_probe(p, METAROCE_PROBE_FILL, r->sequence, to, packet, now);
		return;
	}
	p->retransmits++;
	m->counters.retransmits++;
	r->message->qp->view.retransmits++;
	dsf_trace_emit(
		m->config.trace, now, DSF_EVENT_RETRANSMIT, m->config.node, p->index, r->sequence);
	write_data(cp, p, r, to, packet, now);
}

static bool send_urgent(struct metaroce_conn_plane *cp, uint8_t *to, struct metaroce_packet *packet,
	dsf_instant now)
{
	struct metaroce_link *link;

	while ((link = metaroce_list_first(&cp->urgent)) != NULL) {
		struct metaroce_path *p = DSF_CONTAINER(link, struct metaroce_path, urgent);
		struct metaroce_record *r;

		if (p->probe_due) {
			p->probe_due = false;
			p->probe_at = p->last_at = now;
			write_probe(p, METAROCE_PROBE_PATH, p->next_sequence, to, packet, now);
			return true;
		}
		r = p->state == METAROCE_PATH_GOOD ? metaroce_path_take_resend(p) : NULL;
		if (r != NULL) {
			resend(cp, p, r, to, packet, now);
			return true;
		}
		metaroce_list_remove(&p->urgent);
	}
	return false;
}

/* A packet of a path in doubt goes again on another one. */
static bool send_moving(struct metaroce_conn_plane *cp, uint8_t *to, struct metaroce_packet *packet,
	bool *blocked, dsf_instant now)
{
	struct metaroce_conn *c = cp->conn;
	struct metaroce_record *r = metaroce_path_take_moving(c), *copy;
	struct metaroce_path *p;

	if (r == NULL)
		return false;
	*blocked = true;
	if (metaroce_spray_pick(cp, r->size, &p) != METAROCE_SPRAY_PATH ||
		(copy = metaroce_path_record(p)) == NULL) {
		metaroce_path_untake_moving(c, r);
		return false;
	}
	metaroce_path_moved(&c->paths[r->path], r, copy);
	copy->message->qp->view.retransmits++;
	c->m->counters.retransmits++;
	p->retransmits++;
	metaroce_path_sent(p, copy, now);
	write_data(cp, p, copy, to, packet, now);
	return true;
}

static bool send_new(struct metaroce_conn_plane *cp, uint8_t *to, struct metaroce_packet *packet,
	dsf_instant now)
{
	struct metaroce_conn *c = cp->conn;
	struct metaroce_link *link = metaroce_list_first(&c->streams);
	struct metaroce_message *message;
	struct metaroce_record *r;
	struct metaroce_path *p;
	struct metaroce_qp *qp;
	uint32_t size;

	if (link == NULL)
		return false;
	qp = DSF_CONTAINER(link, struct metaroce_qp, send);
	message = metaroce_qp_next(qp);
	assert(message != NULL);
	size = message->write.size - message->sent;
	if (size > c->m->config.payload_bytes)
		size = c->m->config.payload_bytes;
	if (size > c->peer_payload_max)
		size = c->peer_payload_max;
	if (metaroce_spray_pick(cp, size, &p) != METAROCE_SPRAY_PATH)
		return false;
	r = metaroce_path_record(p);
	if (r == NULL) {
		/* Nobody will tell us when there is memory again. */
		metaroce_timer_set(
			c->m, &cp->pace, dsf_time_after(now, c->m->config.base_rtt_ns + NS_PER_US));
		return false;
	}
	r->message = message;
	message->records++;
	r->offset = message->sent;
	r->size = size;
	metaroce_qp_sent(qp, message, size);
	metaroce_path_sent(p, r, now);
	write_data(cp, p, r, to, packet, now);
	if (message->sent == message->write.size) {
		packet->sent = qp;
		packet->sent_user = qp->user;
	}
	return true;
}

/* False when this connection has nothing for the plane now; then it leaves the list of those that
 * are ready, and what changes that puts it back. */
static bool send_from(struct metaroce_conn_plane *cp, uint8_t *to, struct metaroce_packet *packet,
	dsf_instant now)
{
	struct metaroce_conn *c = cp->conn;
	bool blocked = false;

	if (send_urgent(cp, to, packet, now))
		return true;
	if (metaroce_timer_runs(&cp->pace) ||
		(c->moving.first == NULL && metaroce_list_empty(&c->streams)))
		return false;
	if (hint_holds(cp, now) && !dsf_time_due(cp->pace_at, now)) {
		cp->hint_limited = true;
		metaroce_timer_set(c->m, &cp->pace, dsf_time_min(cp->pace_at, hint_end(cp)));
		return false;
	}
	if (send_moving(cp, to, packet, &blocked, now))
		return true;
	return !blocked && send_new(cp, to, packet, now);
}

static bool send_nack(struct metaroce *m, uint32_t plane, uint8_t *to,
	struct metaroce_packet *packet, dsf_instant now)
{
	struct metaroce_nack_due *due = &m->nacks[m->nacks_first];

	if (m->nacks_count == 0 || due->plane != plane)
		return false;
	m->nacks_first = (m->nacks_first + 1) % METAROCE_NACKS_MAX;
	m->nacks_count--;
	due->mch.tx_ts = metaroce_ticks(now);
	metaroce_wire_nack_encode(to, &due->mch, &due->nack);
	*packet = (struct metaroce_packet){ .source = m->config.address[plane],
		.target = due->target,
		.source_port = METAROCE_UDP_PORT,
		.control = true,
		.head_size = METAROCE_NACK_SIZE };
	m->counters.nacks_tx++;
	return true;
}

/* Entropy of what belongs to no path: one flow for each connection and plane. */
static uint16_t control_port(const struct metaroce_conn *c)
{
	return (uint16_t)(METAROCE_SOURCE_PORT | (dsf_mix(c->cookie) & 0x3fff));
}

static bool send_control(struct metaroce *m, uint32_t plane, uint8_t *to,
	struct metaroce_packet *packet, dsf_instant now)
{
	struct metaroce_link *link;

	if (send_nack(m, plane, to, packet, now))
		return true;
	while ((link = metaroce_list_first(&m->control[plane])) != NULL) {
		struct metaroce_conn *c = DSF_CONTAINER(link, struct metaroce_conn, control);

		packet->head_size = metaroce_conn_control(c, plane, to, now);
		if (c->hello_ops == 0)
			metaroce_list_remove(&c->control);
		if (packet->head_size == 0)
			continue;
		address_packet(c, plane, control_port(c), packet);
		packet->control = true;
		return true;
	}
	link = metaroce_list_first(&m->acks[plane]);
	if (link != NULL) {
		struct metaroce_conn *c = DSF_CONTAINER(link, struct metaroce_conn, ack);

		packet->head_size = metaroce_ack_output(c, plane, to, now);
		address_packet(c, plane, control_port(c), packet);
		packet->control = true;
		return true;
	}
	return false;
}

bool metaroce_wants(const struct metaroce *m, uint32_t plane)
{
	return m->carrier[plane] &&
	       (!metaroce_list_empty(&m->ready[plane]) || !metaroce_list_empty(&m->acks[plane]) ||
		       !metaroce_list_empty(&m->control[plane]) ||
		       (m->nacks_count > 0 && m->nacks[m->nacks_first].plane == plane));
}

bool metaroce_output(struct metaroce *m, uint32_t plane, uint8_t *to,
	struct metaroce_packet *packet, dsf_instant now)
{
	struct metaroce_link *link;
	bool sent = false;

	if (!m->carrier[plane])
		return false;
	sent = send_control(m, plane, to, packet, now);
	while (!sent && (link = metaroce_list_first(&m->ready[plane])) != NULL) {
		struct metaroce_conn_plane *cp =
			DSF_CONTAINER(link, struct metaroce_conn_plane, ready);

		metaroce_list_remove(link);
		sent = send_from(cp, to, packet, now);
		if (sent)
			metaroce_conn_wake(cp->conn, plane); /* last: others have their turn */
	}
	if (sent) {
		m->counters.packets_tx++;
		m->counters.bytes_tx += packet->head_size + packet->payload_size;
	}
	return sent;
}
