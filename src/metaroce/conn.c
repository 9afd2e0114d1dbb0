#include "metaroce/conn.h"
#include <assert.h>
#include "base/err.h"

#define SLOT_BITS 16u
#define SLOT_MASK ((1u << SLOT_BITS) - 1)

void metaroce_timer_set(struct metaroce *m, struct metaroce_timer *t, dsf_instant at)
{
	int err = dsf_heap_set(&m->timers, &t->entry, at);

	assert(err == 0);
	(void)err;
}

void metaroce_timer_stop(struct metaroce *m, struct metaroce_timer *t)
{
	dsf_heap_remove(&m->timers, &t->entry);
}

bool metaroce_conn_uses(const struct metaroce_conn *c, uint32_t plane)
{
	const struct metaroce *m = c->m;

	return m->carrier[plane] && metaroce_address_set(&m->config.address[plane]) &&
	       metaroce_address_set(&c->peer.address[plane]);
}

struct metaroce_conn *metaroce_conn_by_id(const struct metaroce *m, uint32_t id)
{
	struct metaroce_conn *c;

	if ((id & SLOT_MASK) >= m->conns_count)
		return NULL;
	c = m->conns[id & SLOT_MASK];
	return c != NULL && c->id == id ? c : NULL;
}

static bool shares_plane(const struct metaroce *m, const struct metaroce_peer *peer)
{
	for (uint32_t i = 0; i < m->config.planes && i < peer->planes; i++) {
		if (metaroce_address_set(&m->config.address[i]) &&
			metaroce_address_set(&peer->address[i]))
			return true;
	}
	return false;
}

/* A NIC is named by its first port's address. */
static const struct dsf_ip6 *name_of(const struct dsf_ip6 *address, uint32_t planes)
{
	for (uint32_t i = 0; i < planes; i++) {
		if (metaroce_address_set(&address[i]))
			return &address[i];
	}
	return &address[0];
}

static int take_slot(struct metaroce *m, struct metaroce_conn *c)
{
	uint32_t slot = 0;

	while (slot < m->conns_count && m->conns[slot] != NULL)
		slot++;
	if (slot == METAROCE_CONNECTIONS_MAX)
		return -DSF_E_FULL;
	if (slot == m->conns_capacity) {
		uint32_t capacity = m->conns_capacity == 0 ? 16 : 2 * m->conns_capacity;
		void *grown = dsf_memory_grow(m->config.memory, m->conns,
			m->conns_capacity * sizeof(*m->conns), capacity * sizeof(*m->conns));

		if (grown == NULL)
			return -DSF_E_NOMEM;
		m->conns = grown;
		m->conns_capacity = capacity;
	}
	if (slot == m->conns_count)
		m->conns_count++;
	m->conns[slot] = c;
	c->id = slot | (uint32_t)(c->cookie >> 32) << SLOT_BITS;
	return 0;
}

static uint32_t timers_of(const struct metaroce *m)
{
	return m->config.paths + m->config.planes + 3;
}

static void init_planes(struct metaroce_conn *c)
{
	for (uint32_t i = 0; i < c->m->config.planes; i++) {
		struct metaroce_conn_plane *cp = &c->planes[i];

		cp->conn = c;
		cp->plane = (uint8_t)i;
		cp->pace.kind = METAROCE_TIMER_PACE;
		cp->cursor = (uint32_t)dsf_rng_below(&c->m->rng, c->paths_count);
		metaroce_list_init(&cp->urgent);
	}
}

/* First windows: the connection may have one bandwidth-delay product of the empty network under
 * way, each plane its part of that, each path twice its part. */
static void init_windows(struct metaroce_conn *c)
{
	const struct metaroce *m = c->m;
	uint64_t rate = 0, product;
	uint32_t payload = m->config.payload_bytes, planes = 0;

	for (uint32_t i = 0; i < m->config.planes; i++) {
		if (metaroce_address_set(&m->config.address[i]) &&
			metaroce_address_set(&c->peer.address[i])) {
			rate += m->config.rate_bps[i];
			planes++;
		}
	}
	product = dsf_bytes_of_time(m->config.base_rtt_ns, rate);
	if (rate == 0 || product > (1u << 30))
		product = 1u << 20;
	product += 8 * payload;
	for (uint32_t i = 0; i < m->config.planes; i++) {
		uint64_t bytes = planes > 0 ? product / planes : product;

		metaroce_cc_init(&c->planes[i].window, (uint32_t)bytes, 2 * payload, UINT32_MAX / 2,
			payload > bytes / 16 ? payload : (uint32_t)(bytes / 16));
	}
	c->inflight_max = UINT32_MAX;
	c->rtt_least_ns = 0;
	for (uint32_t i = 0; i < c->paths_count; i++)
		metaroce_cc_init(&c->paths[i].window,
			(uint32_t)(2 * product / c->paths_count) + payload, payload,
			METAROCE_SACK_BITS * payload, payload);
}

static int fill_conn(struct metaroce_conn *c, const struct metaroce_peer *peer)
{
	struct metaroce *m = c->m;
	const struct dsf_memory *memory = m->config.memory;

	c->peer = *peer;
	c->paths_count = m->config.paths;
	c->paths = dsf_memory_new(memory, c->paths_count * sizeof(*c->paths));
	c->planes = dsf_memory_new(memory, m->config.planes * sizeof(*c->planes));
	if (c->paths == NULL || c->planes == NULL)
		return -DSF_E_NOMEM;
	if (dsf_heap_reserve(&m->timers, m->timers_reserved + timers_of(m)) < 0)
		return -DSF_E_NOMEM;
	m->timers_reserved += timers_of(m);
	c->cookie = dsf_rng_next(&m->rng);
	metaroce_list_init(&c->streams);
	metaroce_list_init(&c->told);
	metaroce_list_init(&c->qps);
	c->query.kind = METAROCE_TIMER_QUERY;
	c->hello.kind = METAROCE_TIMER_HELLO;
	c->ack_timer.kind = METAROCE_TIMER_ACK;
	init_planes(c);
	for (uint32_t i = 0; i < c->paths_count; i++)
		metaroce_path_init(&c->paths[i], c, i);
	init_windows(c);
	return 0;
}

static void delete_conn(struct metaroce *m, struct metaroce_conn *c)
{
	const struct dsf_memory *memory = m->config.memory;

	dsf_memory_delete(memory, c->rx_paths, c->rx_paths_count * sizeof(*c->rx_paths));
	dsf_memory_delete(memory, c->planes, m->config.planes * sizeof(*c->planes));
	dsf_memory_delete(memory, c->paths, c->paths_count * sizeof(*c->paths));
	dsf_memory_delete(memory, c, sizeof(*c));
}

struct metaroce_conn *metaroce_conn_to(
	struct metaroce *m, const struct metaroce_peer *peer, int *err)
{
	const struct dsf_ip6 *name = name_of(peer->address, peer->planes);
	struct metaroce_key *key = dsf_hash_get(&m->peers, name);
	struct metaroce_conn *c;

	if (key != NULL)
		return key->conn;
	if (!shares_plane(m, peer)) {
		*err = -DSF_E_UNREACHABLE;
		return NULL;
	}
	c = dsf_memory_new(m->config.memory, sizeof(*c));
	if (c == NULL) {
		*err = -DSF_E_NOMEM;
		return NULL;
	}
	c->m = m;
	*err = fill_conn(c, peer);
	if (*err == 0) {
		key = dsf_hash_put(&m->peers, name);
		*err = key == NULL ? -DSF_E_NOMEM : take_slot(m, c);
	}
	if (*err < 0) {
		if (key != NULL)
			dsf_hash_remove(&m->peers, key);
		delete_conn(m, c);
		return NULL;
	}
	key->conn = c;
	return c;
}

static void clear_paths(struct metaroce_conn *c)
{
	metaroce_path_clear_moving(c);
	for (uint32_t i = 0; i < c->paths_count; i++)
		metaroce_path_clear(&c->paths[i]);
	assert(c->inflight == 0 && c->records == 0);
}

static void stop_all(struct metaroce_conn *c)
{
	struct metaroce *m = c->m;

	for (uint32_t i = 0; i < m->config.planes; i++) {
		metaroce_list_remove(&c->planes[i].ready);
		metaroce_timer_stop(m, &c->planes[i].pace);
		metaroce_share_forget(&m->share[i], &c->planes[i].sender);
	}
	metaroce_list_remove(&c->ack);
	metaroce_list_remove(&c->control);
	metaroce_timer_stop(m, &c->ack_timer);
	metaroce_timer_stop(m, &c->hello);
	metaroce_timer_stop(m, &c->query);
}

void metaroce_conn_free(struct metaroce_conn *c)
{
	struct metaroce *m = c->m;
	struct metaroce_key *key =
		dsf_hash_get(&m->peers, name_of(c->peer.address, c->peer.planes));

	assert(metaroce_list_empty(&c->qps));
	clear_paths(c);
	stop_all(c);
	m->conns[c->id & SLOT_MASK] = NULL;
	if (key != NULL)
		dsf_hash_remove(&m->peers, key);
	delete_conn(m, c);
}

void metaroce_conn_reset(struct metaroce_conn *c, int status, dsf_instant now)
{
	struct metaroce *m = c->m;

	for (struct metaroce_link *at = c->qps.next; at != &c->qps; at = at->next) {
		struct metaroce_qp *qp = DSF_CONTAINER(at, struct metaroce_qp, all);

		if (!metaroce_qp_is_virgin(qp))
			metaroce_qp_fail(qp, status);
	}
	clear_paths(c);
	stop_all(c);
	dsf_memory_delete(m->config.memory, c->rx_paths, c->rx_paths_count * sizeof(*c->rx_paths));
	c->rx_paths = NULL;
	c->rx_paths_count = 0;
	memset(c->pending, 0, sizeof(c->pending));
	while (!metaroce_list_empty(&c->told))
		metaroce_list_remove(c->told.next);
	c->good_count = 0;
	for (uint32_t i = 0; i < c->paths_count; i++) {
		memset(&c->paths[i], 0, sizeof(c->paths[i]));
		metaroce_path_init(&c->paths[i], c, i);
	}
	init_windows(c);
	c->state = METAROCE_CONN_UNUSED;
	c->hello_ops = 0;
	c->control_known = false;
	c->control_sequence = 0;
	c->rx_bytes = c->unacked = 0;
	c->tries = 0;
	c->cookie = dsf_rng_next(&m->rng);
	c->id = (c->id & SLOT_MASK) | (uint32_t)(c->cookie >> 32) << SLOT_BITS;
	if (c->messages > 0)
		metaroce_conn_ask(c, now);
}

/* Nobody answers, or nothing gets on although somebody does: what was posted fails. */
static void give_up(struct metaroce_conn *c, dsf_instant now)
{
	for (struct metaroce_link *at = c->qps.next; at != &c->qps; at = at->next) {
		struct metaroce_qp *qp = DSF_CONTAINER(at, struct metaroce_qp, all);

		if (qp->first != NULL)
			metaroce_qp_fail(qp, -DSF_E_UNREACHABLE);
	}
	metaroce_conn_reset(c, -DSF_E_UNREACHABLE, now);
}

static bool tried_enough(const struct metaroce_conn *c, dsf_instant now)
{
	return c->tries >= METAROCE_TRIES_MAX &&
	       dsf_time_since(c->waits_since, now) >= c->m->patience_ns;
}

uint16_t metaroce_conn_backlog(const struct metaroce_conn *c)
{
	uint64_t units = (c->backlog + METAROCE_BACKLOG_UNIT - 1) / METAROCE_BACKLOG_UNIT;

	return units > UINT16_MAX ? UINT16_MAX : (uint16_t)units;
}

/* The count-th usable plane, so that each try takes another; the first one when none is. */
static uint32_t usable_plane(const struct metaroce_conn *c, uint32_t count)
{
	const struct metaroce *m = c->m;

	for (uint32_t i = 0; i < m->config.planes; i++) {
		uint32_t plane = (count + i) % m->config.planes;

		if (metaroce_conn_uses(c, plane))
			return plane;
	}
	return 0;
}

void metaroce_conn_say(struct metaroce_conn *c, enum metaroce_conn_op op, uint32_t plane)
{
	c->hello_ops |= 1u << op;
	metaroce_list_remove(&c->control);
	metaroce_list_push(&c->m->control[plane], &c->control);
}

static uint64_t hello_timeout_ns(const struct metaroce_conn *c)
{
	uint32_t doublings = c->tries < METAROCE_BACKOFF_MAX ? c->tries : METAROCE_BACKOFF_MAX;

	return c->m->probe_first_ns << doublings;
}

static void ask(struct metaroce_conn *c, enum metaroce_conn_state state, dsf_instant now)
{
	c->state = state;
	metaroce_conn_progress(c, now);
	c->asked_at = DSF_EPOCH;
	metaroce_conn_say(c, METAROCE_CONN_REQUEST, usable_plane(c, c->id & SLOT_MASK));
	metaroce_timer_set(c->m, &c->hello, dsf_time_after(now, hello_timeout_ns(c)));
}

void metaroce_conn_check(struct metaroce_conn *c, dsf_instant now)
{
	ask(c, METAROCE_CONN_CHECKING, now);
}

void metaroce_conn_ask(struct metaroce_conn *c, dsf_instant now)
{
	if (c->state == METAROCE_CONN_UNUSED) {
		ask(c, METAROCE_CONN_ASKING, now);
	} else if (c->state == METAROCE_CONN_OPEN && !metaroce_timer_runs(&c->query)) {
		metaroce_timer_set(c->m, &c->query,
			dsf_time_after(now, 2 * metaroce_path_timeout_ns(&c->paths[0])));
	}
}

void metaroce_conn_hello_expire(struct metaroce_conn *c, dsf_instant now)
{
	if (c->state != METAROCE_CONN_ASKING && c->state != METAROCE_CONN_CHECKING)
		return;
	if (tried_enough(c, now)) {
		give_up(c, now);
		return;
	}
	c->tries++;
	c->asked_at = DSF_NEVER;
	metaroce_conn_say(
		c, METAROCE_CONN_REQUEST, usable_plane(c, c->tries + (c->id & SLOT_MASK)));
	metaroce_timer_set(c->m, &c->hello, dsf_time_after(now, hello_timeout_ns(c)));
}

/* Asks about the next stream in turn that waits. */
static void say_query(struct metaroce_conn *c)
{
	struct metaroce_link *at = c->query_qp != NULL ? c->query_qp->all.next : c->qps.next;

	for (uint32_t i = 0; i <= c->qps_count; i++, at = at->next) {
		if (at != &c->qps && DSF_CONTAINER(at, struct metaroce_qp, all)->first != NULL)
			break;
	}
	c->query_qp = DSF_CONTAINER(at, struct metaroce_qp, all);
	c->query_plane = (uint8_t)usable_plane(c, c->tries);
	c->hello_ops |= 1u; /* bit 0: no hello, a query */
	metaroce_list_remove(&c->control);
	metaroce_list_push(&c->m->control[c->query_plane], &c->control);
}

/* Everything is acknowledged but messages are not complete: the news may have been lost. */
void metaroce_conn_query_expire(struct metaroce_conn *c, dsf_instant now)
{
	uint64_t timeout_ns =
		2 * metaroce_path_timeout_ns(&c->paths[0])
		<< (c->tries < METAROCE_BACKOFF_MAX ? c->tries : METAROCE_BACKOFF_MAX);
	dsf_instant due = dsf_time_after(c->progress_at, timeout_ns);

	if (c->messages == 0 || c->state != METAROCE_CONN_OPEN)
		return;
	if (dsf_time_due(due, now)) {
		/* It has everything and answers: it takes its time to place it. */
		if (c->records == 0 && c->heard)
			metaroce_conn_progress(c, now);
		if (tried_enough(c, now)) {
			give_up(c, now);
			return;
		}
		say_query(c);
		c->tries++;
		c->heard = false;
		c->progress_at = now;
		due = dsf_time_after(now, timeout_ns);
	}
	metaroce_timer_set(c->m, &c->query, due);
}

/* The peer is there: data may go. */
static void begin(struct metaroce_conn *c, dsf_instant now)
{
	c->state = METAROCE_CONN_OPEN;
	metaroce_conn_progress(c, now);
	metaroce_timer_stop(c->m, &c->hello);
	if (c->messages > 0)
		metaroce_conn_ask(c, now); /* runs the query timer */
	metaroce_conn_wake_all(c);
}

static int open_conn(struct metaroce_conn *c, const struct metaroce_hello *hello, dsf_instant now)
{
	struct metaroce *m = c->m;
	struct metaroce_rx_path *rx = dsf_memory_new(m->config.memory, hello->paths * sizeof(*rx));

	if (rx == NULL)
		return -DSF_E_NOMEM;
	dsf_memory_delete(m->config.memory, c->rx_paths, c->rx_paths_count * sizeof(*rx));
	c->rx_paths = rx;
	c->rx_paths_count = hello->paths;
	c->peer_id = hello->connection;
	c->peer_cookie = hello->cookie;
	c->peer_payload_max = hello->payload_max;
	metaroce_loss_limit(c);
	begin(c, now);
	return 0;
}

/* The peer as its hello describes it. */
static struct metaroce_peer peer_of(const struct metaroce_hello *hello)
{
	struct metaroce_peer peer = { .planes = hello->planes };

	memcpy(peer.address, hello->plane_address, sizeof(peer.address));
	return peer;
}

static bool is_same_peer(const struct metaroce_conn *c, const struct metaroce_hello *hello)
{
	return c->peer_id == hello->connection && c->peer_cookie == hello->cookie;
}

static int request_input(struct metaroce *m, uint32_t plane, const struct metaroce_mch *mch,
	const struct metaroce_hello *hello, dsf_instant now)
{
	struct metaroce_peer peer = peer_of(hello);
	int err = 0;
	struct metaroce_conn *c = metaroce_conn_to(m, &peer, &err);

	if (c == NULL)
		return err;
	if (metaroce_conn_is_open(c) && !is_same_peer(c, hello))
		metaroce_conn_reset(c, -DSF_E_PEER, now);
	if (c->state == METAROCE_CONN_CHECKING)
		begin(c, now);
	else if (c->state != METAROCE_CONN_OPEN)
		err = open_conn(c, hello, now);
	if (err < 0)
		return err;
	metaroce_conn_say(c, METAROCE_CONN_REPLY, plane);
	/* It asks because it has something to send: it counts from now on, and its first hint goes
	 * out with the reply. */
	if (mch->backlog > 0) {
		for (uint32_t i = 0; i < m->config.planes; i++) {
			if (metaroce_conn_uses(c, i))
				metaroce_share_heard(&m->share[i], &c->planes[i].sender, 0,
					(uint64_t)mch->backlog * METAROCE_BACKLOG_UNIT, false,
					false, now);
		}
		metaroce_ack_now(c, plane);
	}
	return 0;
}

int metaroce_conn_hello(struct metaroce *m, uint32_t plane, const struct dsf_ip6 *source,
	const struct metaroce_mch *mch, const struct metaroce_hello *hello, dsf_instant now)
{
	struct metaroce_conn *c;

	if (plane >= hello->planes || !dsf_ip6_equal(source, &hello->plane_address[plane]) ||
		!dsf_ip6_equal(&hello->address, name_of(hello->plane_address, hello->planes)))
		return -DSF_E_PEER;
	if (hello->sack_bits != METAROCE_SACK_BITS)
		return -DSF_E_UNSUPPORTED;
	if (hello->op == METAROCE_CONN_REQUEST)
		return request_input(m, plane, mch, hello, now);
	c = metaroce_conn_by_id(m, mch->connection);
	if (c == NULL || !dsf_ip6_equal(source, &c->peer.address[plane]))
		return -DSF_E_UNKNOWN;
	if (hello->op != METAROCE_CONN_REPLY)
		return -DSF_E_UNSUPPORTED;
	if (mch->sequence != (uint32_t)c->cookie)
		return -DSF_E_STALE;
	if (c->state == METAROCE_CONN_CHECKING) {
		if (is_same_peer(c, hello)) {
			begin(c, now);
			return 0;
		}
		/* It is new, and so must this connection be for it. */
		metaroce_conn_reset(c, -DSF_E_PEER, now);
		metaroce_conn_ask(c, now);
		return 0;
	}
	if (c->state != METAROCE_CONN_ASKING)
		return 0;
	/* The first round trip of this connection, if this answers the only question. */
	if (!dsf_time_is_never(c->asked_at) && dsf_time_since(c->asked_at, now) < UINT32_MAX)
		c->rtt_least_ns = (uint32_t)dsf_time_since(c->asked_at, now);
	return open_conn(c, hello, now);
}

static void write_hello(struct metaroce_conn *c, enum metaroce_conn_op op, uint32_t plane,
	struct metaroce_mch *mch, struct metaroce_hello *hello)
{
	const struct metaroce *m = c->m;

	mch->type = METAROCE_TYPE_CONN;
	mch->connection = op == METAROCE_CONN_REQUEST ? 0 : c->peer_id;
	mch->sequence = op == METAROCE_CONN_REQUEST ? 0 : (uint32_t)c->peer_cookie;
	mch->plane = (uint8_t)plane;
	mch->backlog = metaroce_conn_backlog(c);
	*hello = (struct metaroce_hello){ .op = (uint8_t)op,
		.version = METAROCE_VERSION,
		.paths = (uint16_t)c->paths_count,
		.connection = c->id,
		.cookie = c->cookie,
		.address = *name_of(m->config.address, m->config.planes),
		.rate = (uint32_t)(m->config.rate_bps[plane] / METAROCE_RATE_UNIT_BPS),
		.payload_max = (uint16_t)m->config.payload_bytes,
		.sack_bits = METAROCE_SACK_BITS,
		.planes = (uint8_t)m->config.planes };
	for (uint32_t i = 0; i < m->config.planes; i++) {
		hello->plane_address[i] = m->config.address[i];
		hello->features |= (uint32_t)m->carrier[i] << i;
	}
}

uint32_t metaroce_conn_control(
	struct metaroce_conn *c, uint32_t plane, uint8_t *to, dsf_instant now)
{
	struct metaroce_mch mch = { .tx_ts = metaroce_ticks(now), .plane = (uint8_t)plane };
	uint32_t op = c->hello_ops == 0 ? 32 : (uint32_t)__builtin_ctz(c->hello_ops);

	if (op == 32)
		return 0;
	c->hello_ops &= c->hello_ops - 1;
	if (op == 0) {
		struct metaroce_probe probe = { .kind = METAROCE_PROBE_STREAM };

		if (c->query_qp == NULL || c->state != METAROCE_CONN_OPEN)
			return 0;
		probe.qp = c->query_qp->peer_number;
		probe.msn = c->query_qp->done_msn;
		mch.type = METAROCE_TYPE_PROBE;
		mch.connection = c->peer_id;
		metaroce_wire_probe_encode(to, &mch, &probe);
		c->m->counters.probes++;
		return METAROCE_PROBE_SIZE;
	}
	struct metaroce_hello hello;

	if (op == METAROCE_CONN_REQUEST && c->asked_at.ns == 0)
		c->asked_at = now;
	write_hello(c, (enum metaroce_conn_op)op, plane, &mch, &hello);
	return metaroce_wire_hello_encode(to, &mch, &hello);
}

void metaroce_conn_wake(struct metaroce_conn *c, uint32_t plane)
{
	struct metaroce_conn_plane *cp = &c->planes[plane];

	if (c->state != METAROCE_CONN_OPEN || metaroce_list_linked(&cp->ready) ||
		!c->m->carrier[plane])
		return;
	if (!metaroce_list_empty(&cp->urgent) ||
		(!metaroce_timer_runs(&cp->pace) &&
			(c->moving.first != NULL || !metaroce_list_empty(&c->streams))))
		metaroce_list_push(&c->m->ready[plane], &cp->ready);
}

void metaroce_conn_wake_all(struct metaroce_conn *c)
{
	for (uint32_t i = 0; i < c->m->config.planes; i++)
		metaroce_conn_wake(c, i);
}
