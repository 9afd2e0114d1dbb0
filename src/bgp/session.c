#include "bgp/session.h"
#include <assert.h>
#include "base/cursor.h"
#include "base/err.h"

const char *bgp_state_name(enum bgp_state state)
{
	switch (state) {
	case BGP_IDLE: return "Idle";
	case BGP_CONNECT: return "Connect";
	case BGP_ACTIVE: return "Active";
	case BGP_OPEN_SENT: return "OpenSent";
	case BGP_OPEN_CONFIRM: return "OpenConfirm";
	case BGP_ESTABLISHED: return "Established";
	}
	return "unknown";
}

void bgp_session_init(struct bgp_session *s, const struct bgp_session_config *config)
{
	assert((config->hold_s == 0 || config->hold_s >= 3) && config->retry_ns > 0);
	memset(s, 0, sizeof(*s));
	s->config = *config;
	dsf_rng_init(&s->rng, config->seed);
	s->retry_at = DSF_NEVER;
}

static void free_slot(struct bgp_session *s, struct bgp_connection *c)
{
	dsf_memory_delete(s->config.memory, c->partial, c->partial_cap);
	memset(c, 0, sizeof(*c));
	c->hold_at = c->keepalive_at = c->send_hold_at = DSF_NEVER;
}

void bgp_session_close(struct bgp_session *s)
{
	for (unsigned i = 0; i < BGP_SLOTS; i++)
		free_slot(s, &s->slots[i]);
}

/* RFC 4271 10: between three quarters and all of it. */
static uint64_t jittered(struct bgp_session *s, uint64_t duration_ns)
{
	return duration_ns - dsf_rng_below(&s->rng, duration_ns / 4 + 1);
}

static bool is_idle(const struct bgp_session *s)
{
	return s->slots[0].state == BGP_IDLE && s->slots[1].state == BGP_IDLE;
}

/* When the last connection is gone, the next attempt is due after a while. */
static void plan_retry(struct bgp_session *s, dsf_instant now)
{
	if (!s->started || s->config.passive) {
		s->retry_at = DSF_NEVER;
	} else if (is_idle(s) && dsf_time_is_never(s->retry_at)) {
		s->retry_at = dsf_time_max(
			s->idle_until, dsf_time_after(now, jittered(s, s->config.retry_ns)));
	}
}

/* The connection ends, with a NOTIFICATION unless n is NULL; its slot is free when the owner has
 * closed it. */
static void end(struct bgp_session *s, struct bgp_connection *c, const struct bgp_notification *n)
{
	if (c->state == BGP_ESTABLISHED)
		s->notified = n != NULL;
	c->closing = true;
	c->open_due = c->keepalive_due = false;
	c->hold_at = c->keepalive_at = c->send_hold_at = DSF_NEVER;
	c->notification.code = 0;
	if (n != NULL && c->state != BGP_CONNECT) {
		c->notification = *n;
		s->sent = *n;
	}
}

static void refuse(struct bgp_session *s, struct bgp_connection *c, uint8_t code, uint8_t subcode)
{
	struct bgp_notification n;

	(void)bgp_wire_refuse(&n, code, subcode, NULL, 0);
	end(s, c, &n);
}

void bgp_session_start(struct bgp_session *s, dsf_instant now)
{
	s->started = true;
	s->idle_until = DSF_EPOCH;
	s->retry_at = s->config.passive || !is_idle(s) ? DSF_NEVER : now;
}

void bgp_session_stop(struct bgp_session *s, enum bgp_cease subcode, const char *text)
{
	struct bgp_notification n;

	(void)bgp_wire_refuse(&n, BGP_ERR_CEASE, (uint8_t)subcode, NULL, 0);
	if (text != NULL)
		bgp_wire_text_set(&n, text);
	s->started = false;
	s->retry_at = DSF_NEVER;
	for (unsigned i = 0; i < BGP_SLOTS; i++) {
		if (s->slots[i].state != BGP_IDLE && !s->slots[i].closing)
			end(s, &s->slots[i], &n);
	}
}

void bgp_session_fail(
	struct bgp_session *s, const struct bgp_notification *n, uint64_t idle_ns, dsf_instant now)
{
	int slot = bgp_session_established(s);

	assert(slot >= 0);
	end(s, &s->slots[slot], n);
	s->idle_until = dsf_time_after(now, idle_ns);
}

/* A slot that takes a new connection; NULL when both are busy. */
static struct bgp_connection *free_connection(struct bgp_session *s)
{
	for (unsigned i = 0; i < BGP_SLOTS; i++) {
		if (s->slots[i].state == BGP_IDLE)
			return &s->slots[i];
	}
	return NULL;
}

static void begin(struct bgp_connection *c, bool ours)
{
	memset(c, 0, sizeof(*c));
	c->ours = ours;
	c->hold_at = c->keepalive_at = c->send_hold_at = DSF_NEVER;
}

static void send_open(struct bgp_connection *c, dsf_instant now)
{
	c->state = BGP_OPEN_SENT;
	c->open_due = true;
	c->hold_at = dsf_time_after(now, BGP_OPEN_HOLD_NS);
}

int bgp_session_connect(struct bgp_session *s)
{
	for (unsigned i = 0; i < BGP_SLOTS; i++) {
		struct bgp_connection *c = &s->slots[i];

		if (c->state == BGP_CONNECT && !c->closing && c->open_due) {
			c->open_due = false;
			return (int)i;
		}
	}
	return -1;
}

void bgp_session_connected(struct bgp_session *s, unsigned slot, dsf_instant now)
{
	struct bgp_connection *c = &s->slots[slot];

	if (c->state == BGP_CONNECT && !c->closing)
		send_open(c, now);
}

int bgp_session_accept(struct bgp_session *s, dsf_instant now)
{
	struct bgp_connection *c = free_connection(s);

	if (!s->started || dsf_time_before(now, s->idle_until))
		return -DSF_E_STATE;
	for (unsigned i = 0; i < BGP_SLOTS && c == NULL; i++) {
		struct bgp_connection *old = &s->slots[i];

		/* the peer has given an older one up, as it seems: its next attempt finds room */
		if (!old->ours && old->state == BGP_OPEN_SENT && !old->closing)
			refuse(s, old, BGP_ERR_CEASE, BGP_CEASE_COLLISION);
	}
	if (c == NULL)
		return -DSF_E_STATE;
	begin(c, false);
	c->late = bgp_session_established(s) >= 0;
	send_open(c, now);
	return (int)(c - s->slots);
}

void bgp_session_closed(struct bgp_session *s, unsigned slot, dsf_instant now)
{
	struct bgp_connection *c = &s->slots[slot];

	if (c->state == BGP_ESTABLISHED && !c->closing)
		s->notified = false;
	free_slot(s, c);
	plan_retry(s, now);
}

void bgp_session_blocked(struct bgp_session *s, unsigned slot, bool blocked, dsf_instant now)
{
	struct bgp_connection *c = &s->slots[slot];
	uint64_t hold_ns = 2 * c->hold_ns;

	c->blocked = blocked;
	if (c->closing || c->state == BGP_CONNECT || c->state == BGP_IDLE)
		return;
	c->send_hold_at =
		!blocked ? DSF_NEVER
			 : dsf_time_after(
				   now, hold_ns > BGP_SEND_HOLD_NS ? hold_ns : BGP_SEND_HOLD_NS);
}

static struct bgp_connection *other(struct bgp_session *s, const struct bgp_connection *c)
{
	return &s->slots[c == &s->slots[0]];
}

/* RFC 4271 6.8: c has just heard the peer's OPEN. False: c is the one that ends. */
static bool survives(struct bgp_session *s, struct bgp_connection *c, const struct bgp_open *open)
{
	struct bgp_connection *o = other(s, c);
	bool keep_ours = s->config.id != open->id ? s->config.id > open->id
						  : s->config.as > open->as; /* RFC 6286 2.3 */

	if (o->closing || o->state < BGP_OPEN_CONFIRM)
		return true;
	if (o->state == BGP_ESTABLISHED) {
		if (!c->late || !o->peer.graceful_ipv6)
			return false;
		end(s, o, NULL); /* RFC 4724 5: the peer has restarted, without a word */
		return true;
	}
	if (c->ours != o->ours && c->ours != keep_ours)
		return false;
	refuse(s, o, BGP_ERR_CEASE, BGP_CEASE_COLLISION);
	return true;
}

static int check_open(
	struct bgp_session *s, const struct bgp_open *open, struct bgp_notification *n)
{
	static const uint8_t capability[] = { 1, 4, 0, BGP_AFI_IPV6, 0, BGP_SAFI_UNICAST };

	if (open->as != s->config.peer_as)
		return bgp_wire_refuse(n, BGP_ERR_OPEN, BGP_OPEN_PEER_AS, NULL, 0);
	if (open->as == s->config.as && open->id == s->config.id) /* RFC 6286 2.2 */
		return bgp_wire_refuse(n, BGP_ERR_OPEN, BGP_OPEN_IDENTIFIER, NULL, 0);
	if (!open->ipv6)
		return bgp_wire_refuse(
			n, BGP_ERR_OPEN, BGP_OPEN_CAPABILITY, capability, sizeof(capability));
	return 0;
}

static void restart_hold(struct bgp_connection *c, dsf_instant now)
{
	c->hold_at = c->hold_ns == 0 ? DSF_NEVER : dsf_time_after(now, c->hold_ns);
}

static void restart_keepalive(struct bgp_session *s, struct bgp_connection *c, dsf_instant now)
{
	c->keepalive_at =
		c->hold_ns == 0 ? DSF_NEVER : dsf_time_after(now, jittered(s, c->hold_ns / 3));
}

static void take_open(struct bgp_session *s, struct bgp_connection *c, const uint8_t *body,
	size_t size, dsf_instant now)
{
	struct bgp_notification n;
	struct bgp_open open;
	uint16_t hold_s;

	if (c->state != BGP_OPEN_SENT) {
		refuse(s, c, BGP_ERR_STATE,
			c->state == BGP_ESTABLISHED ? BGP_STATE_ESTABLISHED
						    : BGP_STATE_OPEN_CONFIRM);
		return;
	}
	if (bgp_wire_open_decode(body, size, &open, &n) < 0 || check_open(s, &open, &n) < 0) {
		end(s, c, &n);
		return;
	}
	if (!survives(s, c, &open)) {
		refuse(s, c, BGP_ERR_CEASE, BGP_CEASE_COLLISION);
		return;
	}
	hold_s = open.hold_s < s->config.hold_s ? open.hold_s : s->config.hold_s;
	c->peer = open;
	c->hold_ns = hold_s * NS_PER_S;
	c->state = BGP_OPEN_CONFIRM;
	c->keepalive_due = true;
	restart_hold(c, now);
	restart_keepalive(s, c, now);
}

static void take_keepalive(struct bgp_session *s, struct bgp_connection *c, dsf_instant now)
{
	if (c->state == BGP_OPEN_SENT) {
		refuse(s, c, BGP_ERR_STATE, BGP_STATE_OPEN_SENT);
		return;
	}
	restart_hold(c, now);
	if (c->state == BGP_OPEN_CONFIRM) {
		c->state = BGP_ESTABLISHED;
		s->refresh_due = false;
		s->counters.established++;
	}
}

/* True when the message is the caller's. */
static bool take_message(struct bgp_session *s, struct bgp_connection *c, uint8_t type,
	const uint8_t *body, size_t size, dsf_instant now)
{
	s->counters.messages_received++;
	switch ((enum bgp_type)type) {
	case BGP_OPEN: take_open(s, c, body, size, now); return false;
	case BGP_KEEPALIVE: take_keepalive(s, c, now); return false;
	case BGP_NOTIFICATION:
		s->counters.notifications_received++;
		bgp_wire_notification_decode(body, size, &s->received);
		end(s, c, NULL);
		s->notified = s->notified || c->state == BGP_ESTABLISHED;
		return false;
	case BGP_UPDATE:
	case BGP_ROUTE_REFRESH: break;
	}
	if (c->state != BGP_ESTABLISHED) {
		refuse(s, c, BGP_ERR_STATE,
			c->state == BGP_OPEN_SENT ? BGP_STATE_OPEN_SENT : BGP_STATE_OPEN_CONFIRM);
		return false;
	}
	restart_hold(c, now);
	return true;
}

static bool reserve_partial(struct bgp_session *s, struct bgp_connection *c, uint32_t size)
{
	uint8_t *grown;
	uint32_t cap = size > BGP_MESSAGE_MAX ? BGP_MESSAGE_EXTENDED_MAX : BGP_MESSAGE_MAX;

	if (c->partial_cap >= cap)
		return true;
	grown = dsf_memory_grow(s->config.memory, c->partial, c->partial_cap, cap);
	if (grown == NULL)
		return false;
	c->partial = grown;
	c->partial_cap = cap;
	return true;
}

/* Moves bytes to the partial message until it has size; false when memory is short. */
static bool fill_partial(struct bgp_session *s, struct bgp_connection *c, uint32_t size,
	const uint8_t **bytes, size_t *left)
{
	uint32_t wanted = size - c->partial_size;
	uint32_t count = *left < wanted ? (uint32_t)*left : wanted;

	if (!reserve_partial(s, c, size))
		return false;
	if (count > 0)
		memcpy(c->partial + c->partial_size, *bytes, count);
	c->partial_size += count;
	*bytes += count;
	*left -= count;
	return true;
}

static void drop_partial(struct bgp_session *s, struct bgp_connection *c)
{
	c->partial_size = 0;
	c->partial_done = false;
	if (c->partial_cap > BGP_MESSAGE_MAX) { /* long messages are rare */
		dsf_memory_delete(s->config.memory, c->partial, c->partial_cap);
		c->partial = NULL;
		c->partial_cap = 0;
	}
}

/* The next whole message, from the stream itself or put together. 1, 0, or -DSF_E_PEER with *n,
 * -DSF_E_NOMEM. */
static int next_message(struct bgp_session *s, struct bgp_connection *c, const uint8_t **bytes,
	size_t *left, struct bgp_header *h, const uint8_t **message, struct bgp_notification *n)
{
	bool extended = bgp_session_is_extended(c);
	const uint8_t *start = *bytes;
	size_t size = *left;
	int err;

	if (c->partial_size > 0) {
		if (c->partial_size < BGP_HEADER_SIZE &&
			!fill_partial(s, c, BGP_HEADER_SIZE, bytes, left))
			return -DSF_E_NOMEM;
		start = c->partial;
		size = c->partial_size;
	}
	err = bgp_wire_header_decode(start, size, extended, h, n);
	if (err < 0)
		return err;
	if (c->partial_size == 0 && err > 0 && h->size <= size) {
		*message = start;
		*bytes += h->size;
		*left -= h->size;
		return 1;
	}
	if (*left == 0 && c->partial_size == 0)
		return 0;
	if (!fill_partial(s, c, err > 0 ? h->size : BGP_HEADER_SIZE, bytes, left))
		return -DSF_E_NOMEM;
	if (err == 0 || c->partial_size < h->size)
		return 0;
	*message = c->partial;
	c->partial_done = true;
	return 1;
}

int bgp_session_input(struct bgp_session *s, unsigned slot, const uint8_t **bytes, size_t *size,
	dsf_instant now, struct bgp_message *m)
{
	struct bgp_connection *c = &s->slots[slot];

	for (;;) {
		struct bgp_notification n;
		struct bgp_header h;
		const uint8_t *message;
		int got;

		if (c->partial_done)
			drop_partial(s, c);
		if (c->closing || c->state < BGP_OPEN_SENT) { /* nobody listens any more */
			*size = 0;
			return 0;
		}
		got = next_message(s, c, bytes, size, &h, &message, &n);
		if (got == 0)
			return 0;
		if (got == -DSF_E_NOMEM)
			(void)bgp_wire_refuse(&n, BGP_ERR_CEASE, BGP_CEASE_RESOURCES, NULL, 0);
		if (got < 0) {
			end(s, c, &n);
			continue;
		}
		m->type = h.type;
		m->body = message + BGP_HEADER_SIZE;
		m->size = h.size - BGP_HEADER_SIZE;
		if (take_message(s, c, h.type, m->body, m->size, now))
			return 1;
	}
}

static size_t write_open(struct bgp_session *s, uint8_t *to)
{
	struct bgp_open open = { .as = s->config.as,
		.hold_s = s->config.hold_s,
		.id = s->config.id,
		.ipv6 = true,
		.as4 = true,
		.refresh = true,
		.enhanced = true,
		.extended = true,
		.add_path = s->config.add_path,
		.graceful = true, /* FRR 8.4 answers no refresh of a peer that has 70 without it */
		.restarting = s->restarting,
		.restart_s = s->config.restart_s,
		.graceful_ipv6 = s->config.restart_s > 0,
		/* a session that only lost its connection has kept what it forwards */
		.forwarding = s->restarting || s->counters.established > 0 };

	return bgp_wire_open_encode(to, &open);
}

static size_t write_next(struct bgp_session *s, struct bgp_connection *c, uint8_t *to)
{
	if (c->notification.code != 0) {
		size_t size = bgp_wire_notification_encode(to, &c->notification);

		c->notification.code = 0;
		s->counters.notifications_sent++;
		return size;
	}
	if (c->open_due && c->state != BGP_CONNECT) { /* it comes first, whatever was heard */
		c->open_due = false;
		return write_open(s, to);
	}
	if (c->keepalive_due) {
		c->keepalive_due = false;
		return bgp_wire_keepalive_encode(to);
	}
	if (s->refresh_due && c->state == BGP_ESTABLISHED && !c->closing) {
		s->refresh_due = false;
		return c->peer.refresh ? bgp_wire_refresh_encode(to, BGP_REFRESH_REQUEST) : 0;
	}
	return 0;
}

size_t bgp_session_output(struct bgp_session *s, unsigned slot, uint8_t *to)
{
	size_t size = write_next(s, &s->slots[slot], to);

	if (size > 0)
		s->counters.messages_sent++;
	return size;
}

bool bgp_session_closing(struct bgp_session *s, unsigned slot, dsf_instant now)
{
	struct bgp_connection *c = &s->slots[slot];

	/* a peer that doesn't read doesn't get to hear why either */
	if (!c->closing || (c->notification.code != 0 && !c->blocked))
		return false;
	free_slot(s, c);
	plan_retry(s, now);
	return true;
}

dsf_instant bgp_session_deadline(const struct bgp_session *s)
{
	dsf_instant at = s->retry_at;

	for (unsigned i = 0; i < BGP_SLOTS; i++) {
		const struct bgp_connection *c = &s->slots[i];

		if (c->state != BGP_IDLE)
			at = dsf_time_min(at, dsf_time_min(c->send_hold_at,
						      dsf_time_min(c->hold_at, c->keepalive_at)));
	}
	return at;
}

/* RFC 4271: ConnectRetryTimer. An attempt that still hangs gives way to the next. */
static void retry(struct bgp_session *s, dsf_instant now)
{
	struct bgp_connection *c;

	s->retry_at = DSF_NEVER;
	for (unsigned i = 0; i < BGP_SLOTS; i++) {
		c = &s->slots[i];
		if (c->state == BGP_CONNECT && !c->closing)
			end(s, c, NULL);
	}
	if (!is_idle(s)) /* the last one that goes plans anew */
		return;
	c = &s->slots[0];
	begin(c, true);
	c->state = BGP_CONNECT;
	c->open_due = true;
	s->retry_at = dsf_time_after(now, jittered(s, s->config.retry_ns));
}

void bgp_session_expire(struct bgp_session *s, dsf_instant now)
{
	for (unsigned i = 0; i < BGP_SLOTS; i++) {
		struct bgp_connection *c = &s->slots[i];

		if (c->state == BGP_IDLE || c->closing)
			continue;
		if (dsf_time_due(c->hold_at, now)) {
			refuse(s, c, BGP_ERR_HOLD, 0);
		} else if (dsf_time_due(c->send_hold_at, now)) {
			end(s, c, NULL);
		} else if (dsf_time_due(c->keepalive_at, now)) {
			c->keepalive_due = true;
			restart_keepalive(s, c, now);
		}
	}
	if (dsf_time_due(s->retry_at, now))
		retry(s, now);
}

int bgp_session_established(const struct bgp_session *s)
{
	for (unsigned i = 0; i < BGP_SLOTS; i++) {
		if (s->slots[i].state == BGP_ESTABLISHED && !s->slots[i].closing)
			return (int)i;
	}
	return -1;
}

enum bgp_state bgp_session_state(const struct bgp_session *s, dsf_instant now)
{
	enum bgp_state state =
		s->started && dsf_time_due(s->idle_until, now) ? BGP_ACTIVE : BGP_IDLE;

	for (unsigned i = 0; i < BGP_SLOTS; i++) {
		const struct bgp_connection *c = &s->slots[i];

		if (!c->closing && c->state != BGP_IDLE &&
			(c->state > state || state == BGP_ACTIVE))
			state = c->state;
	}
	return state;
}
