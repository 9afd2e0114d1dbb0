#include "metaroce/metaroce.h"
#include <assert.h>
#include "base/err.h"
#include "metaroce/conn.h"

#define RECORDS_SLAB       256u
#define MESSAGES_SLAB      32u
#define PLACINGS_SLAB      64u
#define PROBE_FIRST_ROUNDS 3u

static bool possible(const struct metaroce_config *config)
{
	bool any = false;

	for (uint32_t i = 0; i < config->planes && i < METAROCE_PLANES_MAX; i++)
		any |= metaroce_address_set(&config->address[i]);
	return any && config->planes <= METAROCE_PLANES_MAX && config->paths > 0 &&
	       config->paths <= METAROCE_PATHS_MAX && config->payload_bytes > 0 &&
	       config->payload_bytes <= UINT16_MAX - METAROCE_DATA_HEAD_MAX - METAROCE_OVERHEAD;
}

struct metaroce *metaroce_new(const struct metaroce_config *config)
{
	const struct dsf_memory *memory = config->memory;
	struct metaroce *m;

	if (!possible(config))
		return NULL;
	m = dsf_memory_new(memory, sizeof(*m));
	if (m == NULL)
		return NULL;
	m->config = *config;
	if (m->config.base_rtt_ns == 0)
		m->config.base_rtt_ns = 1;
	m->probe_first_ns = PROBE_FIRST_ROUNDS * m->config.base_rtt_ns;
	m->patience_ns = config->probe_min_ns > 0 ? 0 : METAROCE_PATIENCE_NS;
	if (m->probe_first_ns < config->probe_min_ns)
		m->probe_first_ns = config->probe_min_ns;
	dsf_rng_init(&m->rng, config->seed);
	dsf_heap_init(&m->timers, memory);
	dsf_pool_init(&m->records, memory, sizeof(struct metaroce_record), RECORDS_SLAB,
		METAROCE_RECORDS_MAX);
	dsf_pool_init(&m->messages, memory, sizeof(struct metaroce_message), MESSAGES_SLAB,
		METAROCE_MESSAGES_MAX);
	dsf_pool_init(&m->placings, memory, sizeof(struct metaroce_placing), PLACINGS_SLAB,
		METAROCE_PLACINGS_MAX);
	dsf_hash_init(
		&m->qps, memory, sizeof(uint32_t), sizeof(struct metaroce_qp), METAROCE_QPS_MAX);
	dsf_hash_init(&m->regions, memory, sizeof(uint32_t), sizeof(struct metaroce_region),
		METAROCE_REGIONS_MAX);
	dsf_hash_init(&m->peers, memory, sizeof(struct dsf_ip6), sizeof(struct metaroce_key),
		METAROCE_CONNECTIONS_MAX);
	for (uint32_t i = 0; i < config->planes; i++) {
		metaroce_list_init(&m->control[i]);
		metaroce_list_init(&m->acks[i]);
		metaroce_list_init(&m->ready[i]);
		metaroce_share_init(&m->share[i], config->rate_bps[i], m->config.base_rtt_ns);
	}
	return m;
}

void metaroce_free(struct metaroce *m)
{
	const struct dsf_memory *memory;
	struct metaroce_qp *qp;

	if (m == NULL)
		return;
	memory = m->config.memory;
	while ((qp = dsf_hash_next(&m->qps, NULL)) != NULL)
		metaroce_qp_free(m, qp);
	for (uint32_t i = 0; i < m->conns_count; i++) {
		if (m->conns[i] != NULL)
			metaroce_conn_free(m->conns[i]);
	}
	dsf_memory_delete(memory, m->conns, m->conns_capacity * sizeof(*m->conns));
	dsf_hash_close(&m->peers);
	dsf_hash_close(&m->regions);
	dsf_hash_close(&m->qps);
	dsf_pool_close(&m->placings);
	dsf_pool_close(&m->messages);
	dsf_pool_close(&m->records);
	dsf_heap_close(&m->timers);
	dsf_memory_delete(memory, m, sizeof(*m));
}

int metaroce_region_add(
	struct metaroce *m, uint32_t key, uint64_t base, uint64_t size, uint64_t memory)
{
	struct metaroce_region *region;

	if (dsf_hash_get(&m->regions, &key) != NULL)
		return -DSF_E_DUPLICATE;
	region = dsf_hash_put(&m->regions, &key);
	if (region == NULL)
		return m->regions.count >= METAROCE_REGIONS_MAX ? -DSF_E_FULL : -DSF_E_NOMEM;
	region->base = base;
	region->size = size;
	region->memory = memory;
	return 0;
}

void metaroce_region_remove(struct metaroce *m, uint32_t key)
{
	struct metaroce_region *region = dsf_hash_get(&m->regions, &key);

	if (region != NULL)
		dsf_hash_remove(&m->regions, region);
}

static void leave_plane(struct metaroce *m, struct metaroce_conn *c, uint32_t plane)
{
	metaroce_list_remove(&c->planes[plane].ready);
	metaroce_timer_stop(m, &c->planes[plane].pace);
	metaroce_share_forget(&m->share[plane], &c->planes[plane].sender);
	if (metaroce_list_linked(&c->ack) && c->ack_plane == plane)
		metaroce_ack_now(c, plane);
}

void metaroce_carrier(struct metaroce *m, uint32_t plane, bool up, dsf_instant now)
{
	struct metaroce_link *link;

	if (plane >= m->config.planes || m->carrier[plane] == up)
		return;
	m->carrier[plane] = up;
	for (uint32_t i = 0; i < m->conns_count; i++) {
		struct metaroce_conn *c = m->conns[i];

		if (c == NULL)
			continue;
		for (uint32_t j = 0; j < c->paths_count; j++) {
			struct metaroce_path *p = &c->paths[j];

			if (up ? p->home == plane : p->plane == plane)
				metaroce_path_carrier(p, up, now);
		}
		if (!up)
			leave_plane(m, c, plane);
	}
	/* What waited to be said there is said elsewhere. */
	while (!up && (link = metaroce_list_first(&m->control[plane])) != NULL) {
		struct metaroce_conn *c = DSF_CONTAINER(link, struct metaroce_conn, control);
		uint32_t other = 0;

		while (other < m->config.planes && !metaroce_conn_uses(c, other))
			other++;
		metaroce_list_remove(link);
		if (other < m->config.planes)
			metaroce_list_push(&m->control[other], link);
		else
			c->hello_ops = 0; /* its timer tries again */
	}
	while (!up && m->nacks_count > 0 && m->nacks[m->nacks_first].plane == plane) {
		m->nacks_first = (m->nacks_first + 1) % METAROCE_NACKS_MAX;
		m->nacks_count--;
	}
}

dsf_instant metaroce_deadline(const struct metaroce *m)
{
	return dsf_heap_at(&m->timers);
}

static void expire_one(struct metaroce_timer *t, dsf_instant now)
{
	struct metaroce_conn_plane *cp;
	struct metaroce_conn *c;

	switch ((enum metaroce_timer_kind)t->kind) {
	case METAROCE_TIMER_PATH:
		metaroce_path_expire(DSF_CONTAINER(t, struct metaroce_path, timer), now);
		break;
	case METAROCE_TIMER_PACE:
		cp = DSF_CONTAINER(t, struct metaroce_conn_plane, pace);
		metaroce_conn_wake(cp->conn, cp->plane);
		break;
	case METAROCE_TIMER_ACK:
		c = DSF_CONTAINER(t, struct metaroce_conn, ack_timer);
		metaroce_ack_now(c, c->ack_plane);
		break;
	case METAROCE_TIMER_HELLO:
		metaroce_conn_hello_expire(DSF_CONTAINER(t, struct metaroce_conn, hello), now);
		break;
	case METAROCE_TIMER_QUERY:
		metaroce_conn_query_expire(DSF_CONTAINER(t, struct metaroce_conn, query), now);
		break;
	}
}

void metaroce_expire(struct metaroce *m, dsf_instant now)
{
	while (dsf_time_due(dsf_heap_at(&m->timers), now)) {
		struct metaroce_timer *t =
			DSF_CONTAINER(dsf_heap_first(&m->timers), struct metaroce_timer, entry);

		dsf_heap_remove(&m->timers, &t->entry);
		expire_one(t, now);
	}
}

const struct metaroce_counters *metaroce_counters(const struct metaroce *m)
{
	return &m->counters;
}

uint32_t metaroce_connections(const struct metaroce *m)
{
	return m->peers.count;
}

bool metaroce_path_look(const struct metaroce *m, uint64_t *cursor, struct metaroce_path_view *view)
{
	uint32_t slot = (uint32_t)(*cursor >> 32), index = (uint32_t)*cursor;

	for (; slot < m->conns_count; slot++, index = 0) {
		const struct metaroce_conn *c = m->conns[slot];
		const struct metaroce_path *p;

		if (c == NULL || !metaroce_conn_is_open(c) || index >= c->paths_count)
			continue;
		p = &c->paths[index];
		*view = (struct metaroce_path_view){ .connection = c->id,
			.path = index,
			.plane = p->plane,
			.source_port = p->source_port,
			.state = (enum metaroce_path_state)p->state,
			.rtt_ns = p->rtt_ns,
			.window_bytes = p->window.bytes,
			.inflight_bytes = p->inflight,
			.bytes = p->bytes,
			.retransmits = p->retransmits,
			.marked_ppm = (uint32_t)(p->window.slow_start
							 ? 0
							 : (uint64_t)p->window.alpha * 1000000u /
								   METAROCE_CC_ONE) };
		*cursor = (uint64_t)slot << 32 | (index + 1);
		return true;
	}
	return false;
}
