#include "fabric/voq.h"
#include <assert.h>
#include "base/err.h"

/* For so long after it has gone a VOQ's epoch may be remembered at the other end: 8.6 s. */
#define EPOCH_REMEMBERED (1u << 27)

void fabric_voqs_init(struct fabric_voqs *s, const struct dsf_memory *memory,
	struct fabric_packets *packets, const struct fabric_voq_config *config)
{
	memset(s, 0, sizeof(*s));
	s->config = *config;
	s->packets = packets;
	dsf_hash_init(&s->table, memory, sizeof(struct fabric_voq_key), sizeof(struct fabric_voq),
		FABRIC_VOQS_MAX);
	dsf_heap_init(&s->timers, memory);
	s->sweep_at = DSF_NEVER;
}

static uint64_t drop_all(struct fabric_voqs *s, struct fabric_voq *q)
{
	struct fabric_packet *packet;
	uint64_t count = 0;

	while ((packet = fabric_packet_queue_pop(&q->queue)) != NULL) {
		fabric_packet_free(s->packets, packet);
		count++;
	}
	s->bytes -= q->bytes;
	q->bytes = q->packets = 0;
	return count;
}

void fabric_voqs_close(struct fabric_voqs *s)
{
	for (struct fabric_voq *q = dsf_hash_next(&s->table, NULL); q != NULL;
		q = dsf_hash_next(&s->table, q))
		drop_all(s, q);
	dsf_hash_close(&s->table);
	dsf_heap_close(&s->timers);
}

/* Not 0 and not what an earlier life of this switch used: the egress sees a new one. */
static uint32_t epoch_at(dsf_instant now)
{
	return (uint32_t)(now.ns / FABRIC_EPOCH_UNIT_NS) | 1u;
}

struct fabric_voq *fabric_voq_get(struct fabric_voqs *s, struct fabric_voq_key key,
	uint16_t destination, bool reachable, dsf_instant now)
{
	struct fabric_voq *q = dsf_hash_get(&s->table, &key);

	if (q != NULL)
		return q;
	/* Its timer must never lack a place: the watchdog depends on it. */
	if (dsf_heap_reserve(&s->timers, s->table.count + 1) < 0)
		return NULL;
	q = dsf_hash_put(&s->table, &key);
	if (q == NULL)
		return NULL;
	q->destination = destination;
	q->reachable = reachable;
	q->epoch = epoch_at(now);
	q->used = true;
	if (dsf_time_is_never(s->sweep_at))
		s->sweep_at = dsf_time_after(now, s->config.idle_ns);
	return q;
}

static bool has_credit(const struct fabric_voq *q)
{
	return q->granted > q->spent;
}

static void make_ready(struct fabric_voqs *s, struct fabric_voq *q)
{
	if (q->ready || q->packets == 0 || !q->reachable || !has_credit(q))
		return;
	q->ready = true;
	q->ready_next = NULL;
	*(s->ready_last != NULL ? &s->ready_last->ready_next : &s->ready_first) = q;
	s->ready_last = q;
}

void fabric_voq_requeue(struct fabric_voqs *s, struct fabric_voq *q)
{
	make_ready(s, q);
}

void fabric_voq_block(struct fabric_voqs *s, struct fabric_voq *q)
{
	assert(!q->ready);
	q->ready = true;
	q->ready_next = NULL;
	*(s->blocked_last != NULL ? &s->blocked_last->ready_next : &s->blocked_first) = q;
	s->blocked_last = q;
}

void fabric_voqs_unblock(struct fabric_voqs *s)
{
	if (s->blocked_first == NULL)
		return;
	/* They waited longest: before the others. */
	s->blocked_last->ready_next = s->ready_first;
	if (s->ready_first == NULL)
		s->ready_last = s->blocked_last;
	s->ready_first = s->blocked_first;
	s->blocked_first = s->blocked_last = NULL;
}

struct fabric_voq *fabric_voqs_next_ready(struct fabric_voqs *s)
{
	struct fabric_voq *q = s->ready_first;

	if (q == NULL)
		return NULL;
	s->ready_first = q->ready_next;
	if (s->ready_first == NULL)
		s->ready_last = NULL;
	q->ready = false;
	return q;
}

static uint64_t needed(const struct fabric_voq *q)
{
	return q->spent + q->bytes;
}

static void want_request(struct fabric_voqs *s, struct fabric_voq *q)
{
	if (q->request_wanted || !q->reachable)
		return;
	q->request_wanted = true;
	q->request_next = NULL;
	*(s->request_last != NULL ? &s->request_last->request_next : &s->request_first) = q;
	s->request_last = q;
}

struct fabric_voq *fabric_voqs_next_request(struct fabric_voqs *s, dsf_instant now)
{
	struct fabric_voq *q;

	(void)now;
	while ((q = s->request_first) != NULL) {
		s->request_first = q->request_next;
		if (s->request_first == NULL)
			s->request_last = NULL;
		q->request_wanted = false;
		if (!q->reachable || needed(q) <= q->granted)
			continue; /* a grant or the watchdog was faster */
		if (needed(q) > q->requested)
			q->requested_total += needed(q) - q->requested;
		q->requested = needed(q);
		return q;
	}
	return NULL;
}

/*
 * A new request is worth a cell when what was asked for and not yet granted runs low against what
 * waits: a short queue asks for every credit, a long one a few times per drain.
 */
static void consider_request(struct fabric_voqs *s, struct fabric_voq *q)
{
	uint64_t asked = q->requested > q->granted ? q->requested - q->granted : 0;
	uint64_t unasked;

	if (needed(q) <= q->granted)
		return;
	unasked = needed(q) - (q->requested > q->granted ? q->requested : q->granted);
	if (needed(q) <= q->requested)
		return;
	if (asked == 0 || unasked >= asked / 2 + s->config.credit_bytes)
		want_request(s, q);
}

/* One timer a VOQ: repeated requests and the watchdog while packets wait, aging while none do. */
static void set_timer(struct fabric_voqs *s, struct fabric_voq *q, dsf_instant now)
{
	dsf_instant at = DSF_NEVER;

	if (q->packets > 0) {
		at = dsf_time_after(q->granted_at, s->config.watchdog_ns);
		if (q->reachable)
			at = dsf_time_min(at, dsf_time_after(now, s->config.retry_ns));
	} else if (has_credit(q)) {
		at = dsf_time_after(now, s->config.age_ns);
	}
	if (dsf_time_is_never(at))
		dsf_heap_remove(&s->timers, &q->timer);
	else
		(void)dsf_heap_set(&s->timers, &q->timer, at);
}

int fabric_voq_push(
	struct fabric_voqs *s, struct fabric_voq *q, struct fabric_packet *packet, dsf_instant now)
{
	uint32_t size = fabric_packet_wire_bytes(packet);

	if (q->bytes + size > s->config.voq_bytes || s->bytes + size > s->config.buffer_bytes) {
		q->dropped++;
		s->dropped++;
		fabric_packet_free(s->packets, packet);
		return -DSF_E_FULL;
	}
	packet->since = now;
	q->used = true;
	fabric_packet_queue_push(&q->queue, packet);
	q->packets++;
	q->bytes += size;
	s->bytes += size;
	if (q->packets == 1) {
		q->granted_at = now;
		set_timer(s, q, now);
	}
	make_ready(s, q);
	consider_request(s, q);
	return 0;
}

int fabric_voq_grant(struct fabric_voqs *s, struct fabric_voq *q, uint32_t epoch, uint64_t total,
	dsf_instant now)
{
	if (epoch != q->epoch)
		return -DSF_E_STALE;
	if (total >= q->requested + s->config.credit_bytes)
		return -DSF_E_PEER;
	if (total <= q->granted)
		return 0; /* sprayed grants overtake each other */
	q->granted_total += total - q->granted;
	q->granted = total;
	q->granted_at = now;
	if (q->packets == 0)
		set_timer(s, q, now); /* it came when all had left, and ages */
	make_ready(s, q);
	consider_request(s, q);
	return 0;
}

void fabric_voq_reachable(
	struct fabric_voqs *s, struct fabric_voq *q, bool reachable, dsf_instant now)
{
	if (reachable == q->reachable)
		return;
	q->reachable = reachable;
	/* Credit of before is void: the egress has forgotten it, or will. */
	if (!reachable && has_credit(q))
		q->spent = q->granted;
	if (q->packets > 0) {
		q->granted_at = now;
		set_timer(s, q, now);
	}
	if (!reachable)
		return;
	make_ready(s, q);
	if (needed(q) > q->granted)
		want_request(s, q);
}

struct fabric_packet *fabric_voq_pop(
	struct fabric_voqs *s, struct fabric_voq *q, dsf_instant now, bool *mark)
{
	struct fabric_packet *packet;
	uint32_t size;

	if (!q->reachable || !has_credit(q))
		return NULL;
	packet = fabric_packet_queue_pop(&q->queue);
	if (packet == NULL)
		return NULL;
	size = fabric_packet_wire_bytes(packet);
	q->packets--;
	q->bytes -= size;
	s->bytes -= size;
	q->spent += size;
	q->sent_packets++;
	q->sent_bytes += size;
	*mark = packet->ecn_capable && dsf_time_since(packet->since, now) > s->config.ecn_min_ns;
	if (*mark) {
		q->ecn_marked++;
		s->marked++;
	}
	if (q->packets == 0) {
		uint64_t spare = (uint64_t)FABRIC_VOQ_SPARE_CREDITS * s->config.credit_bytes;

		if (q->granted > q->spent + spare)
			q->spent = q->granted - spare;
		set_timer(s, q, now);
	}
	return packet;
}

static uint64_t expire_voq(struct fabric_voqs *s, struct fabric_voq *q, dsf_instant now)
{
	uint64_t deleted = 0;

	if (q->packets == 0) {
		q->spent = q->granted > q->spent ? q->granted : q->spent;
	} else if (dsf_time_since(q->granted_at, now) >= s->config.watchdog_ns) {
		deleted = drop_all(s, q);
		q->epoch++; /* the egress forgets what we asked for */
		q->packet_sequence = 0;
		q->requested = q->granted = q->spent;
		q->watchdog_dropped += deleted;
		s->watchdog_dropped += deleted;
	} else if (dsf_time_since(q->granted_at, now) >= s->config.retry_ns &&
		   needed(q) > q->granted) {
		want_request(s, q);
	}
	set_timer(s, q, now);
	return deleted;
}

/* One that comes after it must not be taken for an older one while it is remembered. */
static bool may_go(const struct fabric_voq *q, dsf_instant now)
{
	return !q->used && q->packets == 0 && !has_credit(q) && !q->ready && !q->request_wanted &&
	       q->epoch - epoch_at(now) >= FABRIC_EPOCH_OLDER_MAX + EPOCH_REMEMBERED;
}

static void sweep(struct fabric_voqs *s, dsf_instant now)
{
	struct fabric_voq *next;

	for (struct fabric_voq *q = dsf_hash_next(&s->table, NULL); q != NULL; q = next) {
		next = dsf_hash_next(&s->table, q);
		if (may_go(q, now)) {
			dsf_heap_remove(&s->timers, &q->timer);
			dsf_hash_remove(&s->table, q);
		} else {
			q->used = false;
		}
	}
	s->sweep_at = s->table.count > 0 ? dsf_time_after(now, s->config.idle_ns) : DSF_NEVER;
}

uint64_t fabric_voqs_expire(struct fabric_voqs *s, dsf_instant now)
{
	uint64_t deleted = 0;

	while (dsf_time_due(dsf_heap_at(&s->timers), now))
		deleted += expire_voq(s,
			DSF_CONTAINER(dsf_heap_first(&s->timers), struct fabric_voq, timer), now);
	if (dsf_time_due(s->sweep_at, now))
		sweep(s, now);
	return deleted;
}
