#include <assert.h>
#include "metaroce/conn.h"

static void queue_push(struct metaroce_queue *q, struct metaroce_record *r)
{
	r->queue_next = NULL;
	if (q->last != NULL)
		q->last->queue_next = r;
	else
		q->first = r;
	q->last = r;
}

static struct metaroce_record *queue_pop(struct metaroce_queue *q)
{
	struct metaroce_record *r = q->first;

	if (r != NULL) {
		q->first = r->queue_next;
		if (q->first == NULL)
			q->last = NULL;
		r->queue_next = NULL;
	}
	return r;
}

static uint16_t draw_port(struct metaroce *m, uint16_t before)
{
	uint16_t port;

	do {
		port = (uint16_t)(METAROCE_SOURCE_PORT |
				  dsf_rng_below(&m->rng, 0x10000u - METAROCE_SOURCE_PORT));
	} while (port == before);
	return port;
}

void metaroce_path_init(struct metaroce_path *p, struct metaroce_conn *c, uint32_t index)
{
	struct metaroce *m = c->m;
	uint32_t usable = 0, wanted = 0;

	for (uint32_t plane = 0; plane < m->config.planes; plane++) {
		usable += metaroce_address_set(&m->config.address[plane]) &&
			  metaroce_address_set(&c->peer.address[plane]);
	}
	assert(usable > 0);
	wanted = index % usable;
	for (uint32_t plane = 0; plane < m->config.planes; plane++) {
		if (metaroce_address_set(&m->config.address[plane]) &&
			metaroce_address_set(&c->peer.address[plane]) && wanted-- == 0) {
			p->home = p->plane = (uint8_t)plane;
			break;
		}
	}
	p->conn = c;
	p->index = (uint16_t)index;
	p->timer.kind = METAROCE_TIMER_PATH;
	p->source_port = draw_port(m, 0);
	p->state = m->carrier[p->plane] ? METAROCE_PATH_GOOD : METAROCE_PATH_DEAD;
	c->good_count += p->state == METAROCE_PATH_GOOD;
}

uint64_t metaroce_path_timeout_ns(const struct metaroce_path *p)
{
	const struct metaroce *m = p->conn->m;
	uint64_t least = 3 * m->config.base_rtt_ns;
	uint64_t measured = p->rtt_ns == 0
				    ? m->probe_first_ns
				    : (uint64_t)p->rtt_ns + 4ull * p->rtt_var_ns +
					      m->config.base_rtt_ns / METAROCE_ACK_DELAY_DIVISOR;

	if (least < m->config.probe_min_ns)
		least = m->config.probe_min_ns;
	return measured > least ? measured : least;
}

static bool in_flight(const struct metaroce_record *r)
{
	return (r->flags & (METAROCE_RECORD_ACKED | METAROCE_RECORD_QUEUED | METAROCE_RECORD_GHOST |
				   METAROCE_RECORD_FILL)) == 0;
}

static void leave_flight(struct metaroce_path *p, const struct metaroce_record *r)
{
	if (in_flight(r)) {
		assert(p->inflight >= r->size && p->conn->inflight >= r->size);
		assert(p->conn->planes[p->plane].inflight >= p->inflight);
		p->inflight -= r->size;
		p->conn->inflight -= r->size;
		p->conn->planes[p->plane].inflight -= r->size;
	}
}

static void release(struct metaroce_path *p, struct metaroce_record *r)
{
	struct metaroce *m = p->conn->m;

	if (r->message != NULL)
		metaroce_message_unuse(m, r->message);
	if (r->other != NULL)
		r->other->other = NULL;
	p->conn->records--;
	dsf_pool_give(&m->records, r);
}

struct metaroce_record *metaroce_path_record(struct metaroce_path *p)
{
	struct metaroce *m = p->conn->m;
	struct metaroce_record *r = dsf_pool_take(&m->records);

	if (r == NULL) {
		m->counters.records_full++;
		return NULL;
	}
	memset(r, 0, sizeof(*r));
	r->path = p->index;
	r->sequence = p->next_sequence++;
	if (p->under_way.last != NULL)
		p->under_way.last->next = r;
	else
		p->under_way.first = r;
	p->under_way.last = r;
	p->conn->records++;
	return r;
}

bool metaroce_path_span_full(const struct metaroce_path *p)
{
	return p->under_way.first != NULL &&
	       p->next_sequence - p->under_way.first->sequence >= METAROCE_SACK_BITS;
}

static void arm(struct metaroce_path *p)
{
	uint32_t doublings = p->probes < METAROCE_BACKOFF_MAX ? p->probes : METAROCE_BACKOFF_MAX;

	if (!metaroce_timer_runs(&p->timer))
		metaroce_timer_set(p->conn->m, &p->timer,
			dsf_time_after(p->last_at, metaroce_path_timeout_ns(p) << doublings));
}

void metaroce_path_sent(struct metaroce_path *p, struct metaroce_record *r, dsf_instant now)
{
	r->tx_at = now;
	r->epoch = p->epoch;
	if (in_flight(r)) {
		p->inflight += r->size;
		p->conn->inflight += r->size;
		p->conn->planes[p->plane].inflight += r->size;
	}
	p->bytes += r->size;
	p->last_at = now;
	arm(p);
}

void metaroce_path_trim(struct metaroce_path *p)
{
	struct metaroce_record *r;

	while ((r = p->under_way.first) != NULL && (r->flags & METAROCE_RECORD_ACKED) != 0) {
		p->under_way.first = r->next;
		if (p->under_way.first == NULL)
			p->under_way.last = NULL;
		r->next = NULL;
		r->flags |= METAROCE_RECORD_GONE;
		if ((r->flags & METAROCE_RECORD_QUEUED) == 0)
			release(p, r);
	}
}

void metaroce_record_fill(struct metaroce_record *r, struct metaroce_path *p)
{
	leave_flight(p, r);
	if (r->message != NULL)
		metaroce_message_unuse(p->conn->m, r->message);
	r->message = NULL;
	r->flags |= METAROCE_RECORD_FILL;
	r->size = 0;
}

void metaroce_path_acked(struct metaroce_path *p, struct metaroce_record *r)
{
	struct metaroce_record *other = r->other;

	leave_flight(p, r);
	r->flags |= METAROCE_RECORD_ACKED;
	if (other == NULL)
		return;
	/* One of ghost and copy arrived, so the payload did. */
	r->other = other->other = NULL;
	if (r->flags & METAROCE_RECORD_GHOST) {
		metaroce_record_fill(other, &p->conn->paths[other->path]);
	} else {
		other->flags |= METAROCE_RECORD_ACKED;
		if (other->path != p->index)
			metaroce_path_trim(&p->conn->paths[other->path]);
	}
}

static void be_urgent(struct metaroce_path *p)
{
	metaroce_list_push(&p->conn->planes[p->plane].urgent, &p->urgent);
	metaroce_conn_wake(p->conn, p->plane);
}

void metaroce_path_lost(struct metaroce_path *p, struct metaroce_record *r)
{
	if ((r->flags & (METAROCE_RECORD_QUEUED | METAROCE_RECORD_GHOST | METAROCE_RECORD_ACKED)) !=
		0)
		return;
	leave_flight(p, r);
	r->flags |= METAROCE_RECORD_QUEUED;
	queue_push(&p->resend, r);
	if (p->state == METAROCE_PATH_GOOD)
		be_urgent(p);
}

struct metaroce_record *metaroce_path_take_resend(struct metaroce_path *p)
{
	struct metaroce_record *r;

	while ((r = queue_pop(&p->resend)) != NULL) {
		bool filled = r->message != NULL && r->message->done;

		if (filled && (r->flags & METAROCE_RECORD_GONE) == 0)
			metaroce_record_fill(r, p); /* while it is not in flight */
		r->flags &= (uint8_t)~METAROCE_RECORD_QUEUED;
		if (r->flags & METAROCE_RECORD_GONE)
			release(p, r);
		else if ((r->flags & METAROCE_RECORD_ACKED) == 0)
			return r;
	}
	return NULL;
}

/* r's payload has arrived, under this number or another: only the number is left to be filled. */
static void fill_instead(struct metaroce_path *p, struct metaroce_record *r)
{
	struct metaroce_record *ghost = r->other;

	if (ghost != NULL) {
		r->other = ghost->other = NULL;
		ghost->flags |= METAROCE_RECORD_ACKED;
		metaroce_path_trim(&p->conn->paths[ghost->path]);
	}
	metaroce_record_fill(r, p);
	queue_push(&p->resend, r);
	if (p->state == METAROCE_PATH_GOOD)
		be_urgent(p);
}

struct metaroce_record *metaroce_path_take_moving(struct metaroce_conn *c)
{
	struct metaroce_record *r;

	while ((r = queue_pop(&c->moving)) != NULL) {
		struct metaroce_path *p = &c->paths[r->path];

		r->flags &= (uint8_t)~METAROCE_RECORD_MOVING;
		if ((r->flags & (METAROCE_RECORD_GONE | METAROCE_RECORD_ACKED)) == 0 &&
			((r->flags & METAROCE_RECORD_FILL) != 0 || r->message->done)) {
			fill_instead(p, r);
			continue;
		}
		r->flags &= (uint8_t)~METAROCE_RECORD_QUEUED;
		if (r->flags & METAROCE_RECORD_GONE)
			release(p, r);
		else if ((r->flags & METAROCE_RECORD_ACKED) == 0)
			return r;
	}
	return NULL;
}

void metaroce_path_untake_moving(struct metaroce_conn *c, struct metaroce_record *r)
{
	r->flags |= METAROCE_RECORD_QUEUED | METAROCE_RECORD_MOVING;
	r->queue_next = c->moving.first;
	c->moving.first = r;
	if (c->moving.last == NULL)
		c->moving.last = r;
}

void metaroce_path_moved(
	struct metaroce_path *p, struct metaroce_record *r, struct metaroce_record *copy)
{
	copy->message = r->message;
	copy->offset = r->offset;
	copy->size = r->size;
	copy->flags |= METAROCE_RECORD_MOVED;
	r->message = NULL;
	if (r->flags & METAROCE_RECORD_MOVED) {
		copy->moved_path = r->moved_path;
		copy->moved_epoch = r->moved_epoch;
		copy->moved_sequence = r->moved_sequence;
		copy->other = r->other;
		if (copy->other != NULL)
			copy->other->other = copy;
		r->other = NULL;
		r->flags |= METAROCE_RECORD_FILL | METAROCE_RECORD_QUEUED;
		r->size = 0;
		queue_push(&p->resend, r); /* for when its path is good again */
		if (p->state == METAROCE_PATH_GOOD)
			be_urgent(p);
	} else {
		copy->moved_path = r->path;
		copy->moved_epoch = r->epoch;
		copy->moved_sequence = r->sequence;
		copy->other = r;
		r->other = copy;
		r->flags |= METAROCE_RECORD_GHOST;
	}
}

/* All that is under way goes to other paths. */
static void move_away(struct metaroce_path *p)
{
	struct metaroce_conn *c = p->conn;
	struct metaroce_record *r;

	/* QUEUED stays on what was waiting to be sent again: it is not in flight. */
	while ((r = queue_pop(&p->resend)) != NULL) {
		if ((r->flags & METAROCE_RECORD_ACKED) == 0)
			continue;
		r->flags &= (uint8_t)~METAROCE_RECORD_QUEUED;
		if (r->flags & METAROCE_RECORD_GONE)
			release(p, r);
	}
	for (r = p->under_way.first; r != NULL; r = r->next) {
		if ((r->flags & (METAROCE_RECORD_ACKED | METAROCE_RECORD_GHOST |
					METAROCE_RECORD_MOVING)) != 0)
			continue;
		leave_flight(p, r);
		r->flags |= METAROCE_RECORD_QUEUED;
		if (r->flags & METAROCE_RECORD_FILL) {
			queue_push(&p->resend, r);
		} else {
			r->flags |= METAROCE_RECORD_MOVING;
			queue_push(&c->moving, r);
			c->m->counters.moved++;
		}
	}
	assert(p->inflight == 0);
	metaroce_conn_wake_all(c);
}

static void set_state(struct metaroce_path *p, enum metaroce_path_state state, dsf_instant now)
{
	struct metaroce_conn *c = p->conn;
	static const enum dsf_event_kind kinds[] = { [METAROCE_PATH_GOOD] = DSF_EVENT_PATH_GOOD,
		[METAROCE_PATH_SUSPECT] = DSF_EVENT_PATH_SUSPECT,
		[METAROCE_PATH_DEAD] = DSF_EVENT_PATH_DEAD };

	if (p->state == (uint8_t)state)
		return;
	c->good_count -= p->state == METAROCE_PATH_GOOD;
	c->good_count += state == METAROCE_PATH_GOOD;
	p->state = (uint8_t)state;
	dsf_trace_emit(c->m->config.trace, now, kinds[state], c->m->config.node, p->index, 0);
}

/* What is under way goes with the path. */
static void change_plane(struct metaroce_path *p, uint32_t plane)
{
	p->conn->planes[p->plane].inflight -= p->inflight;
	p->conn->planes[plane].inflight += p->inflight;
	p->plane = (uint8_t)plane;
}

/* Another route: a new source port, and another plane where no path is good any more. */
static void reroute(struct metaroce_path *p)
{
	struct metaroce_conn *c = p->conn;
	uint32_t planes = c->m->config.planes;

	metaroce_list_remove(&p->urgent);
	p->epoch++;
	p->source_port = draw_port(c->m, p->source_port);
	change_plane(p, p->home);
	if (c->good_count > 0)
		return;
	for (uint32_t i = 0; i < planes; i++) {
		uint32_t plane = (p->home + p->failures + i) % planes;

		if (metaroce_conn_uses(c, plane)) {
			change_plane(p, plane);
			return;
		}
	}
}

static void probe(struct metaroce_path *p)
{
	p->probe_due = true;
	be_urgent(p);
}

/* Whether a silent path is to blame shows when something sent as late as its probe is answered.
 * Where nothing else is under way, somebody must ask: a good path, of another plane if there is
 * one, sends a probe of its own. */
static void probe_another(const struct metaroce_path *p)
{
	struct metaroce_conn *c = p->conn;
	struct metaroce_path *other = NULL;

	for (uint32_t i = 1; i < c->paths_count; i++) {
		struct metaroce_path *q = &c->paths[(p->index + i) % c->paths_count];

		if (q->state != METAROCE_PATH_GOOD || q->probe_due)
			continue;
		if (other == NULL || (other->plane == p->plane && q->plane != p->plane))
			other = q;
	}
	if (other != NULL)
		probe(other);
}

static bool before_tick(dsf_instant a, dsf_instant b)
{
	return a.ns / METAROCE_TICK_NS < b.ns / METAROCE_TICK_NS;
}

void metaroce_path_answered(
	struct metaroce_path *p, uint8_t epoch, dsf_instant tx_at, dsf_instant now)
{
	struct metaroce_record *r;

	/* What an older route delivered says nothing of this one; nor does, of a path in doubt,
	 * what was sent before its probe. */
	if (epoch != p->epoch)
		return;
	if (p->state != METAROCE_PATH_GOOD && (p->probe_due || before_tick(tx_at, p->probe_at)))
		return;
	p->probes = 0;
	p->failures = 0;
	p->last_at = now;
	if (p->state == METAROCE_PATH_GOOD)
		return;
	set_state(p, METAROCE_PATH_GOOD, now);
	p->rtt_ns = 0; /* another route, another time */
	p->conn->rtt_least_ns = 0;
	/* What was left to be filled can be now. */
	for (r = p->under_way.first; r != NULL; r = r->next) {
		if ((r->flags & METAROCE_RECORD_FILL) != 0)
			metaroce_path_lost(p, r);
	}
	if (p->resend.first != NULL)
		be_urgent(p);
	metaroce_conn_wake(p->conn, p->plane);
}

void metaroce_path_expire(struct metaroce_path *p, dsf_instant now)
{
	struct metaroce_conn *c = p->conn;
	bool busy = c->records > 0 || c->messages > 0;
	uint64_t timeout_ns = metaroce_path_timeout_ns(p);
	uint32_t doublings = p->probes < METAROCE_BACKOFF_MAX ? p->probes : METAROCE_BACKOFF_MAX;

	if (p->state == METAROCE_PATH_GOOD ? p->under_way.first == NULL
					   : !busy && p->probes >= METAROCE_IDLE_PROBES_MAX)
		return;
	if (!metaroce_conn_uses(c, p->plane) && !metaroce_conn_uses(c, p->home) &&
		c->good_count > 0)
		return; /* its carrier brings it back */
	if (!dsf_time_due(dsf_time_after(p->last_at, timeout_ns << doublings), now)) {
		arm(p);
		return;
	}
	if (p->probes > 0 && !p->probe_due) {
		bool later = !before_tick(c->answered_tx, p->probe_at);

		if (later || p->state != METAROCE_PATH_GOOD) {
			if (p->failures < UINT8_MAX)
				p->failures++;
			set_state(p, p->failures > 1 ? METAROCE_PATH_DEAD : METAROCE_PATH_SUSPECT,
				now);
			move_away(p);
			reroute(p);
		} else if (p->probes % 2 == 0) {
			/* Nothing at all is answered: not this path's fault as far as we know, but
			 * another route may be better for all. */
			if (p->failures < UINT8_MAX)
				p->failures++;
			reroute(p);
		}
	}
	if (p->probes < UINT8_MAX)
		p->probes++;
	p->last_at = now;
	probe(p);
	if (p->state == METAROCE_PATH_GOOD)
		probe_another(p);
	arm(p);
}

void metaroce_path_carrier(struct metaroce_path *p, bool up, dsf_instant now)
{
	if (!metaroce_conn_is_open(p->conn)) {
		set_state(p, up ? METAROCE_PATH_GOOD : METAROCE_PATH_DEAD, now);
		return;
	}
	if (!up) {
		set_state(p, METAROCE_PATH_DEAD, now);
		p->probe_due = false;
		move_away(p);
		reroute(p);
		if (p->plane == p->home || !metaroce_conn_uses(p->conn, p->plane))
			return;
	} else {
		metaroce_list_remove(&p->urgent);
		change_plane(p, p->home);
		p->epoch++;
	}
	p->probes = 1;
	p->last_at = now;
	probe(p);
	arm(p);
}

void metaroce_path_resume(struct metaroce_path *p, dsf_instant now)
{
	if (p->state == METAROCE_PATH_GOOD || metaroce_timer_runs(&p->timer) ||
		!metaroce_conn_uses(p->conn, p->plane))
		return;
	p->probes = 1;
	p->last_at = now;
	probe(p);
	arm(p);
}

void metaroce_path_clear_moving(struct metaroce_conn *c)
{
	struct metaroce_record *r;

	while ((r = queue_pop(&c->moving)) != NULL) {
		r->flags &= (uint8_t) ~(METAROCE_RECORD_QUEUED | METAROCE_RECORD_MOVING);
		if (r->flags & METAROCE_RECORD_GONE)
			release(&c->paths[r->path], r);
	}
}

void metaroce_path_clear(struct metaroce_path *p)
{
	struct metaroce_record *r;

	while ((r = queue_pop(&p->resend)) != NULL) {
		r->flags &= (uint8_t)~METAROCE_RECORD_QUEUED;
		if (r->flags & METAROCE_RECORD_GONE)
			release(p, r);
	}
	p->conn->inflight -= p->inflight;
	p->conn->planes[p->plane].inflight -= p->inflight;
	p->inflight = 0;
	while ((r = p->under_way.first) != NULL) {
		p->under_way.first = r->next;
		release(p, r);
	}
	p->under_way.last = NULL;
	metaroce_list_remove(&p->urgent);
	metaroce_timer_stop(p->conn->m, &p->timer);
}
