#include "bgp/bgp.h"
#include <assert.h>
#include "base/err.h"
#include "base/rng.h"
#include "bgp/speaker.h"

#define STREAM_PEER_BITS 13u /* of a stream's name: slot 1, peer 12; its generation is above them */

static_assert(BGP_PEERS_MAX < 1u << (STREAM_PEER_BITS - 1), "a name has room for a peer");

void bgp_peer_config_init(
	struct bgp_peer_config *config, const struct dsf_ip6 *address, uint32_t as)
{
	*config = (struct bgp_peer_config){ .address = *address,
		.as = as,
		.hold_s = BGP_HOLD_S,
		.restart_s = BGP_RESTART_S,
		.retry_ns = BGP_RETRY_NS,
		.paths_max = BGP_PATHS_MAX,
		.idle_ns = UINT64_MAX };
}

void bgp_config_init(struct bgp_config *config)
{
	*config = (struct bgp_config){ .multipath_max = BGP_MULTIPATH_MAX,
		.defer_ns = BGP_DEFER_NS,
		.stale_ns = BGP_STALE_NS };
}

/* ---- making and ending */

static void init_peer(struct bgp *b, uint16_t number)
{
	struct bgp_peer *p = &b->peers[number];
	struct bgp_session_config session = {
		.memory = b->config.memory, .as = b->config.as, .id = b->config.id
	};

	p->number = number;
	p->bgp = b;
	p->stale_until = DSF_NEVER;
	bgp_table_init(&p->paths, b->config.memory);
	if (number == 0) {
		p->config.as = b->config.as;
		p->config.paths_max = BGP_PATHS_MAX;
		return;
	}
	p->config = b->config.peers[number - 1];
	session.peer_as = p->config.as;
	session.hold_s = p->config.hold_s;
	session.retry_ns = p->config.retry_ns;
	session.add_path = p->config.add_path;
	session.restart_s = p->config.restart_s;
	session.passive = p->config.passive;
	session.seed = dsf_mix(b->config.seed ^ dsf_mix(number));
	bgp_session_init(&p->session, &session);
	p->session.restarting = b->config.restarting;
}

static bool init_all(struct bgp *b, dsf_instant now)
{
	const struct dsf_memory *memory = b->config.memory;

	b->peers = dsf_memory_new(memory, (b->config.peers_count + 1) * sizeof(*b->peers));
	b->peers_count = b->peers == NULL ? 0 : b->config.peers_count + 1;
	b->own = dsf_memory_new(memory, (b->config.origins_count + 1) * sizeof(*b->own));
	b->scratch = dsf_memory_new(memory, BGP_SCRATCH);
	if (b->peers == NULL || b->own == NULL || b->scratch == NULL ||
		dsf_heap_reserve(&b->timers, b->peers_count) < 0)
		return false;
	for (uint32_t i = 0; i < b->peers_count; i++)
		init_peer(b, (uint16_t)i);
	for (uint32_t i = 0; i < b->config.origins_count; i++) {
		b->own[i].origin = b->config.origins[i];
		bgp_own_check(b, &b->own[i], now);
		if (b->own[i].told !=
			(b->own[i].origin.enabled && b->own[i].origin.contributors_min == 0))
			return false;
	}
	return true;
}

struct bgp *bgp_new(const struct bgp_config *config, dsf_instant now)
{
	struct bgp *b = dsf_memory_new(config->memory, sizeof(*b));

	assert(config->peers_count <= BGP_PEERS_MAX && config->multipath_max > 0);
	if (b == NULL)
		return NULL;
	b->config = *config;
	b->decide_at = DSF_NEVER;
	b->defer_until = config->restarting ? dsf_time_after(now, config->defer_ns) : DSF_NEVER;
	bgp_store_init(&b->store, config->memory, dsf_mix(config->seed));
	bgp_table_init(&b->prefixes, config->memory);
	dsf_heap_init(&b->timers, config->memory);
	if (init_all(b, now))
		return b;
	bgp_free(b);
	return NULL;
}

static void tell_nothing(struct bgp *b)
{
	struct bgp_change change;

	while (bgp_changed(b, &change))
		continue;
}

void bgp_free(struct bgp *b)
{
	const struct dsf_memory *memory = b->config.memory;

	for (uint32_t i = 0; b->own != NULL && i < b->config.origins_count; i++)
		b->own[i].origin.enabled = b->own[i].told = false;
	for (uint32_t i = 0; i < b->peers_count && b->peers[i].bgp != NULL; i++) {
		struct bgp_peer *p = &b->peers[i];

		if (p->group != NULL)
			bgp_out_leave(b, p);
		bgp_rib_flush(p, false, DSF_EPOCH);
		if (i > 0)
			bgp_session_close(&p->session);
	}
	if (b->first != NULL)
		bgp_decide(b, DSF_EPOCH);
	tell_nothing(b);
	assert(b->first == NULL);
	bgp_table_close(&b->prefixes);
	bgp_store_close(&b->store);
	dsf_heap_close(&b->timers);
	dsf_memory_delete(memory, b->scratch, BGP_SCRATCH);
	dsf_memory_delete(memory, b->own, (b->config.origins_count + 1) * sizeof(*b->own));
	dsf_memory_delete(memory, b->peers, b->peers_count * sizeof(*b->peers));
	dsf_memory_delete(memory, b, sizeof(*b));
}

/* ---- peers */

static struct bgp_peer *peer_of(struct bgp *b, uint32_t peer)
{
	assert(peer + 1 < b->peers_count);
	return &b->peers[peer + 1];
}

void bgp_peer_start(struct bgp *b, uint32_t peer, dsf_instant now)
{
	struct bgp_peer *p = peer_of(b, peer);

	bgp_session_start(&p->session, now);
	bgp_peer_settle(p, now);
}

void bgp_peer_stop(
	struct bgp *b, uint32_t peer, enum bgp_cease subcode, const char *text, dsf_instant now)
{
	struct bgp_peer *p = peer_of(b, peer);

	bgp_session_stop(&p->session, subcode, text);
	bgp_peer_settle(p, now);
	bgp_rib_flush(p, true, now); /* stopped on purpose: nothing stays */
}

void bgp_peer_refresh(struct bgp *b, uint32_t peer)
{
	struct bgp_peer *p = peer_of(b, peer);

	p->session.refresh_due = true;
	bgp_peer_ready(p);
}

void bgp_originate(struct bgp *b, uint32_t origin, bool enabled, dsf_instant now)
{
	assert(origin < b->config.origins_count);
	b->own[origin].origin.enabled = enabled;
	bgp_own_check(b, &b->own[origin], now);
}

/* RFC 4724 4.1: after a restart nothing is decided before all peers have told everything. */
void bgp_check_deferral(struct bgp *b, dsf_instant now)
{
	if (dsf_time_is_never(b->defer_until))
		return;
	for (uint32_t i = 1; i < b->peers_count && !dsf_time_due(b->defer_until, now); i++) {
		const struct bgp_peer *p = &b->peers[i];

		if (p->session.started && !(p->up && p->end_of_rib))
			return;
	}
	b->defer_until = DSF_NEVER;
	b->decide_at = now;
	for (uint32_t i = 1; i < b->peers_count; i++) {
		b->peers[i].session.restarting = false;
		bgp_peer_ready(&b->peers[i]);
	}
}

/* ---- streams */

static uint32_t stream_of(const struct bgp_peer *p, unsigned slot)
{
	return (uint32_t)p->generation[slot] << STREAM_PEER_BITS | (uint32_t)p->number << 1 | slot;
}

/* A new name for a slot's connection. */
static uint32_t open_stream(struct bgp_peer *p, unsigned slot)
{
	p->generation[slot]++;
	p->opened[slot] = true;
	memset(&p->local[slot], 0, sizeof(p->local[slot]));
	return stream_of(p, slot);
}

/* NULL when the name is no longer known. */
static struct bgp_peer *find_stream(struct bgp *b, uint32_t stream, unsigned *slot)
{
	uint32_t number = stream >> 1 & ((1u << (STREAM_PEER_BITS - 1)) - 1);
	struct bgp_peer *p;

	*slot = stream & 1u;
	if (number == 0 || number >= b->peers_count)
		return NULL;
	p = &b->peers[number];
	return p->opened[*slot] && stream_of(p, *slot) == stream ? p : NULL;
}

int64_t bgp_accept(
	struct bgp *b, const struct dsf_ip6 *remote, const struct dsf_ip6 *local, dsf_instant now)
{
	for (uint32_t i = 1; i < b->peers_count; i++) {
		struct bgp_peer *p = &b->peers[i];
		uint32_t stream;
		int slot;

		if (!dsf_ip6_equal(&p->config.address, remote))
			continue;
		slot = bgp_session_accept(&p->session, now);
		if (slot >= 0) {
			stream = open_stream(p, (unsigned)slot);
			p->local[slot] = *local;
		}
		bgp_peer_settle(p, now);
		return slot < 0 ? slot : (int64_t)stream;
	}
	return -DSF_E_UNKNOWN;
}

void bgp_connected(struct bgp *b, uint32_t stream, const struct dsf_ip6 *local, dsf_instant now)
{
	unsigned slot;
	struct bgp_peer *p = find_stream(b, stream, &slot);

	if (p == NULL)
		return;
	p->local[slot] = *local;
	bgp_session_connected(&p->session, slot, now);
	bgp_peer_settle(p, now);
}

void bgp_closed(struct bgp *b, uint32_t stream, dsf_instant now)
{
	unsigned slot;
	struct bgp_peer *p = find_stream(b, stream, &slot);

	if (p == NULL)
		return;
	p->opened[slot] = false;
	bgp_session_closed(&p->session, slot, now);
	bgp_peer_settle(p, now);
}

void bgp_input(struct bgp *b, uint32_t stream, const uint8_t *bytes, size_t size, dsf_instant now)
{
	unsigned slot;
	struct bgp_peer *p = find_stream(b, stream, &slot);
	struct bgp_message m;

	if (p == NULL)
		return;
	while (bgp_session_input(&p->session, slot, &bytes, &size, now, &m) > 0) {
		if (!p->up || p->slot != slot) /* the KEEPALIVE before has brought it up */
			bgp_peer_settle(p, now);
		if (!p->up || p->slot != slot)
			continue;
		if (m.type == BGP_UPDATE)
			bgp_peer_update(p, &m, now);
		else
			bgp_peer_route_refresh(p, &m, now);
	}
	bgp_peer_settle(p, now);
}

void bgp_blocked(struct bgp *b, uint32_t stream, bool blocked, dsf_instant now)
{
	unsigned slot;
	struct bgp_peer *p = find_stream(b, stream, &slot);

	if (p == NULL)
		return;
	bgp_session_blocked(&p->session, slot, blocked, now);
	bgp_peer_settle(p, now);
}

/* ---- output */

/* As many messages of a slot as there are and fit. */
static size_t write_slot(struct bgp *b, struct bgp_peer *p, unsigned slot, uint8_t *buf, size_t cap)
{
	const struct bgp_connection *c = &p->session.slots[slot];
	size_t used = 0, size = 1;

	while (size > 0 && cap - used >= BGP_MESSAGE_MAX && !c->blocked) {
		size = bgp_session_output(&p->session, slot, buf + used);
		if (size == 0 && p->up && p->slot == slot && !c->closing)
			size = bgp_out_write(b, p, buf + used, cap - used);
		used += size;
	}
	return used;
}

static bool act(struct bgp_action *a, enum bgp_action_kind kind, const struct bgp_peer *p,
	uint32_t stream, size_t size)
{
	*a = (struct bgp_action){ kind, p->number - 1u, stream, size };
	return true;
}

/* What a peer has to do next; false when that is nothing. */
static bool act_peer(struct bgp *b, struct bgp_peer *p, struct bgp_action *action, uint8_t *buf,
	size_t cap, dsf_instant now)
{
	int connect = bgp_session_connect(&p->session);

	if (connect >= 0)
		return act(action, BGP_ACTION_CONNECT, p, open_stream(p, (unsigned)connect), 0);
	for (unsigned slot = 0; slot < BGP_SLOTS; slot++) {
		size_t size = p->opened[slot] ? write_slot(b, p, slot, buf, cap) : 0;
		bool opened = p->opened[slot];

		if (size > 0)
			return act(action, BGP_ACTION_WRITE, p, stream_of(p, slot), size);
		if (!bgp_session_closing(&p->session, slot, now))
			continue;
		p->opened[slot] = false;
		bgp_peer_settle(p, now);
		if (opened)
			return act(action, BGP_ACTION_CLOSE, p, stream_of(p, slot), 0);
	}
	return false;
}

bool bgp_output(struct bgp *b, struct bgp_action *action, uint8_t *buf, size_t cap, dsf_instant now)
{
	assert(cap >= BGP_MESSAGE_MAX);
	while (b->ready_first != NULL) {
		struct bgp_peer *p = b->ready_first;

		if (act_peer(b, p, action, buf, cap, now))
			return true;
		b->ready_first = p->ready_next;
		if (b->ready_first == NULL)
			b->ready_last = NULL;
		p->ready = false;
	}
	return false;
}

/* ---- time */

dsf_instant bgp_deadline(const struct bgp *b)
{
	dsf_instant at = dsf_heap_at(&b->timers);

	return dsf_time_min(at, dsf_time_is_never(b->defer_until) ? b->decide_at : b->defer_until);
}

void bgp_expire(struct bgp *b, dsf_instant now)
{
	while (dsf_time_due(dsf_heap_at(&b->timers), now)) {
		struct bgp_peer *p =
			DSF_CONTAINER(dsf_heap_first(&b->timers), struct bgp_peer, timer);

		if (dsf_time_due(p->stale_until, now))
			bgp_peer_expire_stale(p, now);
		bgp_session_expire(&p->session, now);
		bgp_peer_settle(p, now);
	}
	if (dsf_time_due(b->defer_until, now))
		bgp_check_deferral(b, now);
	if (dsf_time_is_never(b->defer_until) && dsf_time_due(b->decide_at, now))
		bgp_decide(b, now);
}

/* ---- what others see */

bool bgp_changed(struct bgp *b, struct bgp_change *change)
{
	struct bgp_prefix *prefix = b->changed_first;

	if (prefix == NULL)
		return false;
	b->changed_first = prefix->changed_next;
	if (b->changed_first == NULL)
		b->changed_last = NULL;
	else /* most likely it is released next */
		bgp_table_expect(&b->prefixes, b->changed_first->link.hash);
	prefix->changed = false;
	change->prefix = prefix->key;
	change->hops = prefix->hops == NULL ? NULL : prefix->hops->list;
	change->hops_count = prefix->hops == NULL ? 0 : prefix->hops->count;
	bgp_rib_release(b, prefix);
	return true;
}

bool bgp_peer_changed(struct bgp *b, uint32_t *peer, bool *up)
{
	while (b->news_first != NULL) {
		struct bgp_peer *p = b->news_first;

		b->news_first = p->news_next;
		if (b->news_first == NULL)
			b->news_last = NULL;
		p->news = false;
		if (p->up == p->told_up) /* both, since the last time */
			continue;
		p->told_up = *up = p->up;
		*peer = p->number - 1u;
		return true;
	}
	return false;
}

void bgp_peer_view(const struct bgp *b, uint32_t peer, dsf_instant now, struct bgp_peer_view *view)
{
	const struct bgp_peer *p = &b->peers[peer + 1];
	const struct bgp_open *open = &p->session.slots[p->slot].peer;

	assert(peer + 1 < b->peers_count);
	*view = (struct bgp_peer_view){ .config = &p->config,
		.session = &p->session,
		.state = bgp_session_state(&p->session, now),
		.up_since = p->up ? p->up_since : DSF_NEVER,
		.paths = p->paths_count,
		.paths_stale = p->paths_stale,
		.told = p->group == NULL ? 0 : p->group->told,
		.told_all = p->group != NULL && bgp_out_is_done(p),
		.add_path_send = p->group != NULL && p->group->add_path,
		.add_path_receive = p->up && (p->config.add_path & BGP_ADD_PATH_RECEIVE) != 0 &&
				    (open->add_path & BGP_ADD_PATH_SEND) != 0,
		.bundle_bytes = p->bundle_bytes,
		.updates_received = p->updates_received,
		.updates_sent = p->updates_sent,
		.refused = p->refused,
		.withdrawn_by_error = p->withdrawn_by_error,
		.attributes_discarded = p->attributes_discarded,
		.looped = p->looped,
		.limit_reached = p->limit_reached };
}

void bgp_rows(const struct bgp *b, bool (*row)(void *user, const struct bgp_row *row), void *user)
{
	struct bgp_row r;

	for (const struct bgp_prefix *prefix = b->first; prefix != NULL; prefix = prefix->next) {
		for (const struct bgp_path *p = prefix->paths; p != NULL; p = p->next) {
			if (p->bundle == NULL)
				continue;
			r.prefix = prefix->key;
			r.peer = p->peer->number - 1u;
			r.path_id = p->link.id;
			r.next_hop = p->bundle->next_hop;
			r.best = prefix->best == p;
			r.multipath = p->multipath;
			r.stale = p->stale;
			bgp_attributes_read(&r.attributes, p->bundle->bytes, p->bundle->size);
			if (!row(user, &r))
				return;
		}
	}
}
