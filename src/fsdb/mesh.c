#include "fsdb/mesh.h"
#include <assert.h>
#include "base/err.h"
#include "base/heap.h"

#define GENERATIONS (1u << 18) /* numbers of streams stay below 2^30 */

struct peer {
	struct fsdb_session session;
	struct dsf_heap_entry timer;
	struct peer *ready_next;
	bool ready;      /* is in the ready list */
	bool incomplete; /* a claim found no room: make all of them next time */
	bool told_established;
};

struct fsdb_mesh {
	struct fsdb_config config;
	struct fsdb_publisher publisher;
	struct fsdb_imports imports;
	struct peer *peers;
	struct dsf_heap timers;
	struct peer *ready_first, *ready_last;
	uint64_t announced; /* revision of which all sessions know */
	uint32_t established;
	uint8_t scratch[FSDB_WRITE_MIN];
};

struct fsdb_timers fsdb_mesh_timers(uint32_t control_dilation)
{
	return (struct fsdb_timers){ FSDB_HEARTBEAT_NS / control_dilation,
		FSDB_SILENCE_NS / control_dilation, FSDB_CONNECT_NS / control_dilation,
		FSDB_RETRY_NS / control_dilation, FSDB_HOLD_NS / control_dilation,
		FSDB_AHEAD_NS / control_dilation };
}

struct fsdb_mesh *fsdb_mesh_new(const struct fsdb_config *config)
{
	struct fsdb_mesh *m = dsf_memory_new(config->memory, sizeof(*m));

	assert(config->peers_count <= FSDB_PEERS_MAX);
	if (m == NULL)
		return NULL;
	m->config = *config;
	fsdb_publish_init(&m->publisher, config->memory);
	fsdb_import_init(&m->imports, config->memory, config->id * FSDB_PORTS_MAX);
	dsf_heap_init(&m->timers, config->memory);
	m->peers = dsf_memory_new(config->memory, config->peers_count * sizeof(*m->peers));
	if (m->peers == NULL || dsf_heap_reserve(&m->timers, config->peers_count) < 0) {
		fsdb_mesh_free(m);
		return NULL;
	}
	for (uint32_t i = 0; i < config->peers_count; i++)
		fsdb_session_init(&m->peers[i].session, config->memory, &m->config.timers,
			config->id, config->peers[i].id);
	return m;
}

void fsdb_mesh_free(struct fsdb_mesh *m)
{
	const struct dsf_memory *memory;

	if (m == NULL)
		return;
	memory = m->config.memory;
	for (uint32_t i = 0; m->peers != NULL && i < m->config.peers_count; i++)
		fsdb_session_close(&m->peers[i].session);
	dsf_memory_delete(memory, m->peers, m->config.peers_count * sizeof(*m->peers));
	dsf_heap_close(&m->timers);
	fsdb_import_close(&m->imports);
	fsdb_publish_close(&m->publisher);
	dsf_memory_delete(memory, m, sizeof(*m));
}

static void make_ready(struct fsdb_mesh *m, struct peer *p)
{
	if (p->ready)
		return;
	p->ready = true;
	p->ready_next = NULL;
	*(m->ready_last != NULL ? &m->ready_last->ready_next : &m->ready_first) = p;
	m->ready_last = p;
}

static struct peer *take_ready(struct fsdb_mesh *m)
{
	struct peer *p = m->ready_first;

	if (p == NULL)
		return NULL;
	m->ready_first = p->ready_next;
	if (m->ready_first == NULL)
		m->ready_last = NULL;
	p->ready = false;
	return p;
}

/* Claims to one address in one table. */
static void claim_table(
	struct fsdb_mesh *m, const struct fsdb_table *t, bool own, const struct dsf_ip6 *address)
{
	struct fsdb_record key = { .kind = FSDB_KIND_NEIGHBOR, .address = *address };
	uint32_t at = fsdb_table_seek(t, &key);

	for (; at < t->count && dsf_ip6_equal(&t->records[at].address, address); at++) {
		const struct fsdb_record *r = &t->records[at];
		uint64_t global = own ? UINT64_MAX : fsdb_table_global(t);
		bool usable = fsdb_import_usable(r) || (own && r->state == FSDB_STATIC);

		if (usable && (global >> r->system_port % FSDB_PORTS_MAX & 1) != 0)
			(void)fsdb_import_claim(&m->imports, r); /* the address has its entry */
	}
}

/* The holder's claim is gone or weaker: who has the address now? */
static void claim_again(struct fsdb_mesh *m, const struct dsf_ip6 *address)
{
	claim_table(m, &m->publisher.table, true, address);
	for (uint32_t i = 0; i < m->config.peers_count; i++)
		claim_table(m, &m->peers[i].session.table, false, address);
}

static void claim(struct fsdb_mesh *m, struct peer *p, const struct fsdb_record *r)
{
	int err = fsdb_import_claim(&m->imports, r);

	if (err > 0)
		claim_again(m, &r->address);
	if (err < 0 && p != NULL)
		p->incomplete = true;
}

static void drop_claim(struct fsdb_mesh *m, const struct fsdb_record *r)
{
	struct fsdb_import *e = fsdb_import_drop(&m->imports, r);

	if (e == NULL)
		return;
	claim_again(m, &r->address);
	fsdb_import_settle(&m->imports, e);
}

static bool is_usable(const struct fsdb_record *r, uint64_t global)
{
	return (global >> r->system_port % FSDB_PORTS_MAX & 1) != 0 && fsdb_import_usable(r);
}

static const struct fsdb_record *neighbor_at(const struct fsdb_table *t, uint32_t at)
{
	return at < t->count ? &t->records[at] : NULL;
}

/* What a peer says has become other: its claims with it. */
static void compare(struct fsdb_mesh *m, struct peer *p, const struct fsdb_table *old)
{
	const struct fsdb_table *table = &p->session.table;
	const struct fsdb_record first = { .kind = FSDB_KIND_NEIGHBOR }, *was, *is;
	uint64_t old_global = fsdb_table_global(old), global = fsdb_table_global(table);
	uint32_t i = fsdb_table_seek(old, &first), j = fsdb_table_seek(table, &first);
	bool all = p->incomplete;

	p->incomplete = false;
	for (;;) {
		bool used, use;
		int order;

		was = neighbor_at(old, i);
		is = neighbor_at(table, j);
		if (was == NULL && is == NULL)
			return;
		order = was == NULL ? 1 : is == NULL ? -1 : fsdb_table_order(was, is);
		used = order <= 0 && is_usable(was, old_global);
		use = order >= 0 && is_usable(is, global);
		if (use && (!used || all || !fsdb_table_same(was, is)))
			claim(m, p, is);
		else if (used && !use)
			drop_claim(m, was);
		i += order <= 0;
		j += order >= 0;
	}
}

/* After everything that happened to a peer's session. */
static void settle(struct fsdb_mesh *m, struct peer *p, dsf_instant now)
{
	struct fsdb_table old;
	bool established;
	dsf_instant at;

	if (fsdb_session_replaced(&p->session, &old)) {
		compare(m, p, &old);
		fsdb_table_close(&old, m->config.memory);
		if (p->incomplete)
			fsdb_session_reject(&p->session, now);
	}
	established = fsdb_session_state(&p->session) == FSDB_ESTABLISHED;
	at = fsdb_session_deadline(&p->session);
	if (established != p->told_established) {
		p->told_established = established;
		m->established += established ? 1u : ~0u;
		dsf_trace_emit(m->config.trace, now,
			established ? DSF_EVENT_FSDB_UP : DSF_EVENT_FSDB_DOWN, m->config.node,
			p->session.peer, 0);
	}
	/* A timer that comes too early is set anew then; an input mustn't cost a heap. */
	if (p->timer.place == 0 || dsf_time_before(at, p->timer.at)) {
		if (!dsf_time_is_never(at))
			(void)dsf_heap_set(&m->timers, &p->timer, at); /* has its place */
	}
	make_ready(m, p);
}

int fsdb_mesh_publish(struct fsdb_mesh *m, const struct fsdb_record *record)
{
	const struct fsdb_record *found = fsdb_table_find(&m->publisher.table, record);
	struct fsdb_record old = { 0 };
	bool used = false, use;
	int err;

	if (found != NULL) {
		old = *found;
		used = fsdb_import_usable(&old) || old.state == FSDB_STATIC;
	}
	err = fsdb_publish_set(&m->publisher, record);
	if (err < 0 || record->kind != FSDB_KIND_NEIGHBOR)
		return err;
	use = fsdb_import_usable(record) || record->state == FSDB_STATIC;
	if (use)
		claim(m, NULL, record);
	else if (used)
		drop_claim(m, &old);
	return 0;
}

void fsdb_mesh_withdraw(struct fsdb_mesh *m, const struct fsdb_record *key)
{
	const struct fsdb_record *found = fsdb_table_find(&m->publisher.table, key);
	struct fsdb_record old;

	if (found == NULL)
		return;
	old = *found;
	fsdb_publish_remove(&m->publisher, key);
	if (old.kind == FSDB_KIND_NEIGHBOR)
		drop_claim(m, &old);
}

/* NULL: nobody has that id. */
static struct peer *find_id(const struct fsdb_mesh *m, uint32_t id)
{
	uint32_t low = 0, high = m->config.peers_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (m->config.peers[middle].id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low < m->config.peers_count && m->config.peers[low].id == id ? &m->peers[low] : NULL;
}

static uint32_t number_of(const struct fsdb_mesh *m, const struct peer *p, uint32_t generation)
{
	return generation % GENERATIONS * FSDB_PEERS_MAX + (uint32_t)(p - m->peers);
}

/* NULL: it is over. */
static struct peer *find_stream(struct fsdb_mesh *m, uint32_t stream)
{
	uint32_t index = stream % FSDB_PEERS_MAX;
	struct peer *p = &m->peers[index];

	if (index >= m->config.peers_count || p->session.stream == FSDB_STREAM_NONE ||
		number_of(m, p, p->session.generation) != stream)
		return NULL;
	return p;
}

void fsdb_mesh_reachable(struct fsdb_mesh *m, uint32_t id, bool reachable, dsf_instant now)
{
	struct peer *p = find_id(m, id);

	if (p == NULL)
		return;
	fsdb_session_reachable(&p->session, reachable, now);
	settle(m, p, now);
}

int fsdb_mesh_accept(struct fsdb_mesh *m, const struct dsf_ip6 *address, dsf_instant now)
{
	uint32_t i = 0;

	while (i < m->config.peers_count && !dsf_ip6_equal(&m->config.peers[i].address, address))
		i++;
	if (i == m->config.peers_count)
		return -DSF_E_UNKNOWN;
	if (!fsdb_session_accept(&m->peers[i].session, now))
		return -DSF_E_PEER;
	settle(m, &m->peers[i], now);
	return (int)number_of(m, &m->peers[i], m->peers[i].session.generation);
}

void fsdb_mesh_connected(struct fsdb_mesh *m, uint32_t stream, dsf_instant now)
{
	struct peer *p = find_stream(m, stream);

	if (p == NULL || p->session.stream != FSDB_STREAM_OPENING)
		return;
	fsdb_session_connected(&p->session, now);
	settle(m, p, now);
}

void fsdb_mesh_writable(struct fsdb_mesh *m, uint32_t stream, uint32_t room)
{
	struct peer *p = find_stream(m, stream);

	if (p == NULL)
		return;
	fsdb_session_writable(&p->session, room);
	make_ready(m, p);
}

void fsdb_mesh_closed(struct fsdb_mesh *m, uint32_t stream, bool reset, dsf_instant now)
{
	struct peer *p = find_stream(m, stream);

	if (p == NULL)
		return;
	fsdb_session_closed(&p->session, reset, now);
	settle(m, p, now);
}

int fsdb_mesh_input(
	struct fsdb_mesh *m, uint32_t stream, const uint8_t *bytes, size_t size, dsf_instant now)
{
	struct peer *p = find_stream(m, stream);
	int taken = 0;

	if (p == NULL)
		return -DSF_E_STALE;
	for (size_t at = 0; at < size; at += (size_t)taken) {
		uint64_t rejected = p->session.rejected;

		taken = fsdb_session_input(&p->session, bytes + at, size - at, now);
		if (taken < 0)
			fsdb_session_break(&p->session, now);
		if (p->session.rejected > rejected)
			dsf_trace_emit(m->config.trace, now, DSF_EVENT_FSDB_REJECTED,
				m->config.node, p->session.peer, p->session.rejected);
		settle(m, p, now);
		if (taken < 0)
			return taken;
	}
	return 0;
}

void fsdb_mesh_leave(struct fsdb_mesh *m, enum fsdb_goodbye goodbye)
{
	for (uint32_t i = 0; i < m->config.peers_count; i++) {
		fsdb_session_leave(&m->peers[i].session, goodbye);
		make_ready(m, &m->peers[i]);
	}
}

bool fsdb_mesh_output(struct fsdb_mesh *m, struct fsdb_output *out, dsf_instant now)
{
	struct peer *p;

	(void)fsdb_publish_commit(&m->publisher);
	if (m->announced != m->publisher.revision)
		for (uint32_t i = 0; i < m->config.peers_count; i++)
			if (m->peers[i].session.subscribed)
				make_ready(m, &m->peers[i]);
	m->announced = m->publisher.revision;
	while ((p = take_ready(m)) != NULL) {
		if (!fsdb_session_output(&p->session, &m->publisher, m->scratch, out, now))
			continue;
		out->stream = number_of(m, p, out->stream);
		out->address = &m->config.peers[p - m->peers].address;
		settle(m, p, now);
		return true;
	}
	return false;
}

bool fsdb_mesh_changed(struct fsdb_mesh *m, struct fsdb_change *change)
{
	return fsdb_import_changed(&m->imports, change);
}

dsf_instant fsdb_mesh_deadline(const struct fsdb_mesh *m)
{
	return dsf_heap_at(&m->timers);
}

void fsdb_mesh_expire(struct fsdb_mesh *m, dsf_instant now)
{
	while (m->timers.count > 0 && dsf_time_due(dsf_heap_at(&m->timers), now)) {
		struct peer *p = DSF_CONTAINER(dsf_heap_first(&m->timers), struct peer, timer);
		uint64_t expired = p->session.expired;

		dsf_heap_remove(&m->timers, &p->timer);
		fsdb_session_expire(&p->session, now);
		if (p->session.expired > expired)
			dsf_trace_emit(m->config.trace, now, DSF_EVENT_FSDB_STALE, m->config.node,
				p->session.peer, 0);
		settle(m, p, now);
	}
}

uint32_t fsdb_mesh_established(const struct fsdb_mesh *m)
{
	return m->established;
}

const struct fsdb_session *fsdb_mesh_session(const struct fsdb_mesh *m, uint32_t index)
{
	assert(index < m->config.peers_count);
	return &m->peers[index].session;
}

const struct fsdb_session *fsdb_mesh_find(const struct fsdb_mesh *m, uint32_t id)
{
	const struct peer *p = find_id(m, id);

	return p == NULL ? NULL : &p->session;
}

const struct fsdb_publisher *fsdb_mesh_publisher(const struct fsdb_mesh *m)
{
	return &m->publisher;
}
