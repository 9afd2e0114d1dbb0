#include <assert.h>
#include "base/err.h"
#include "metaroce/conn.h"

void metaroce_input_nack(struct metaroce *m, struct metaroce_conn *c, uint32_t plane,
	const struct dsf_ip6 *target, const struct metaroce_nack *nack)
{
	struct metaroce_nack_due *due;

	if (m->nacks_count == METAROCE_NACKS_MAX)
		return; /* the sender will ask again */
	due = &m->nacks[(m->nacks_first + m->nacks_count++) % METAROCE_NACKS_MAX];
	due->nack = *nack;
	due->plane = plane;
	due->target = target != NULL ? *target : c->peer.address[plane];
	due->mch = (struct metaroce_mch){ .type = METAROCE_TYPE_NACK,
		.connection = c != NULL ? c->peer_id : 0,
		.sequence = ++m->nack_sequence,
		.plane = (uint8_t)plane };
}

/* A packet of a path came, whatever is in it: clock, marks, route. */
static void heard(
	struct metaroce_rx_path *rx, const struct metaroce_mch *mch, bool marked, dsf_instant now)
{
	int8_t newer = (int8_t)(mch->epoch - rx->epoch);

	if (newer > 0) {
		rx->epoch = mch->epoch;
		rx->flags |= METAROCE_PBLK_EPOCH_CROSSED;
	}
	if (newer > 0 || rx->rx_packets == 0 ||
		(newer == 0 && (int32_t)(mch->tx_ts - rx->ts) >= 0)) {
		rx->ts = mch->tx_ts;
		rx->rx_at = now;
	}
	rx->rx_packets++;
	rx->ecn_packets += marked;
}

/* The sender of a connection as a competitor for our rate. */
static void heard_sender(struct metaroce_conn *c, uint32_t plane, const struct metaroce_mch *mch,
	size_t size, bool marked, dsf_instant now)
{
	struct metaroce *m = c->m;
	uint64_t backlog = (uint64_t)mch->backlog * METAROCE_BACKLOG_UNIT / m->config.planes;
	bool limited = (mch->flags & METAROCE_FLAG_HINT_LIMITED) != 0;

	if (!metaroce_list_linked(&c->planes[plane].sender.link)) {
		/* New here: it will want the other planes too. */
		for (uint32_t i = 0; i < m->config.planes; i++) {
			if (i != plane && metaroce_conn_uses(c, i))
				metaroce_share_heard(&m->share[i], &c->planes[i].sender, 0, backlog,
					limited, false, now);
		}
	}
	metaroce_share_heard(&m->share[plane], &c->planes[plane].sender,
		(uint32_t)size + METAROCE_OVERHEAD, backlog, limited, marked, now);
}

static void acknowledge(struct metaroce_conn *c, uint32_t plane, const struct metaroce_mch *mch,
	bool new_hole, dsf_instant now)
{
	dsf_bitset_add(c->pending, mch->path);
	c->unacked++;
	if (new_hole || c->unacked >= METAROCE_ACK_PACKETS ||
		(mch->flags & (METAROCE_FLAG_ACKREQ | METAROCE_FLAG_IDLE_AFTER)) != 0)
		metaroce_ack_now(c, plane);
	else
		metaroce_ack_soon(c, plane, now);
}

static const struct metaroce_region *region_of(
	const struct metaroce *m, const struct metaroce_data *data)
{
	const struct metaroce_region *region = dsf_hash_get(&m->regions, &data->key);

	if (region == NULL || data->address < region->base ||
		data->address - region->base > region->size ||
		data->payload > region->size - (data->address - region->base))
		return NULL;
	return region;
}

static uint8_t refusal(const struct metaroce *m, const struct metaroce_data *data,
	const struct metaroce_region **region)
{
	*region = NULL;
	if (data->opcode != METAROCE_OP_WRITE)
		return METAROCE_NACK_INVALID;
	*region = region_of(m, data);
	return data->payload > 0 && *region == NULL ? METAROCE_NACK_ACCESS : 0;
}

/* First time: the message's stream takes it. 0 or -DSF_E_* and nothing changed. */
static int deliver(struct metaroce *m, struct metaroce_conn *c, uint32_t plane,
	const struct metaroce_data *data, struct metaroce_placement *placement, dsf_instant now)
{
	struct metaroce_qp *qp = metaroce_qp_by_number(m, data->target_qp);
	const struct metaroce_region *region;
	struct metaroce_placing *placing = NULL;
	uint8_t code;
	int err;

	/* As in InfiniBand nobody answers for a stream that doesn't exist: the peer tries again. */
	if (qp == NULL || qp->conn != c)
		return -DSF_E_UNKNOWN;
	err = metaroce_qp_check(qp, data);
	if (err < 0)
		return err;
	code = refusal(m, data, &region);
	if (code != 0) {
		struct metaroce_nack nack = { .code = code,
			.qp = qp->peer_number,
			.msn = data->msn,
			.offset = data->offset };

		metaroce_input_nack(m, c, plane, NULL, &nack);
		metaroce_qp_fail(qp, -DSF_E_ACCESS);
		return 0;
	}
	if (data->payload > 0) {
		placing = dsf_pool_take(&m->placings);
		if (placing == NULL)
			return -DSF_E_FULL;
		*placing =
			(struct metaroce_placing){ qp->number, qp->life, data->msn, data->payload };
		placement->request = (uint64_t)(uintptr_t)placing;
		placement->memory = region->memory;
		placement->offset = data->address - region->base;
		placement->size = data->payload;
	}
	c->rx_bytes += data->payload;
	metaroce_qp_arrived(qp, data, now);
	return 0;
}

/* What a DATA packet's numbers say: 0 new, -DSF_E_DUPLICATE, -DSF_E_FULL beyond the window. */
static int classify(const struct metaroce_conn *c, const struct metaroce_mch *mch,
	const struct metaroce_data *data, bool *fresh_number)
{
	enum metaroce_sack_result result =
		metaroce_sack_look(&c->rx_paths[mch->path].sack, mch->sequence);

	*fresh_number = result == METAROCE_SACK_NEW;
	if (result != METAROCE_SACK_NEW)
		return result == METAROCE_SACK_SEEN ? -DSF_E_DUPLICATE : -DSF_E_FULL;
	if (!data->moved)
		return 0;
	if (data->moved_path >= c->rx_paths_count)
		return -DSF_E_PEER;
	result = metaroce_sack_look(&c->rx_paths[data->moved_path].sack, data->moved_sequence);
	if (result == METAROCE_SACK_OUTSIDE ||
		(data->moved_path == mch->path && data->moved_sequence == mch->sequence)) {
		*fresh_number = false;
		return -DSF_E_PEER;
	}
	return result == METAROCE_SACK_SEEN ? -DSF_E_DUPLICATE : 0;
}

static int data_input(struct metaroce *m, struct metaroce_conn *c, uint32_t plane, bool marked,
	const uint8_t *bytes, size_t stored, size_t size, const struct metaroce_mch *mch,
	struct metaroce_placement *placement, dsf_instant now)
{
	struct metaroce_rx_path *rx;
	struct metaroce_data data;
	bool new_hole, fresh_number;
	int head = metaroce_wire_data_decode(bytes, stored, size, mch, &data);
	int err;

	if (head < 0)
		return head;
	if (mch->path >= c->rx_paths_count)
		return -DSF_E_PEER;
	m->counters.data_rx++;
	m->counters.marked_rx += marked;
	rx = &c->rx_paths[mch->path];
	err = classify(c, mch, &data, &fresh_number);
	heard(rx, mch, marked, now);
	heard_sender(c, plane, mch, size, marked, now);
	c->ack_plane = (uint8_t)plane;
	new_hole = fresh_number && (int32_t)(mch->sequence - metaroce_sack_highest(rx->sack.next,
								     rx->sack.bits)) > 1;
	if (err == 0) {
		placement->head = (uint32_t)head;
		err = deliver(m, c, plane, &data, placement, now);
		fresh_number = err == 0;
	}
	if (err == -DSF_E_DUPLICATE) {
		m->counters.duplicates++;
		rx->flags |= METAROCE_PBLK_DUPLICATE;
	}
	if (fresh_number) {
		metaroce_sack_add(&rx->sack, mch->sequence);
		if (data.moved && err == 0) {
			metaroce_sack_add(&c->rx_paths[data.moved_path].sack, data.moved_sequence);
			dsf_bitset_add(c->pending, data.moved_path);
		}
	}
	if (new_hole)
		rx->flags |= METAROCE_PBLK_GAP;
	if (marked && err == 0) {
		struct metaroce_qp *qp = metaroce_qp_by_number(m, data.target_qp);

		qp->view.marked++;
	}
	acknowledge(c, plane, mch, new_hole, now);
	return err;
}

static int probe_input(struct metaroce *m, struct metaroce_conn *c, uint32_t plane, bool marked,
	const uint8_t *bytes, size_t stored, const struct metaroce_mch *mch, dsf_instant now)
{
	struct metaroce_probe probe;
	struct metaroce_rx_path *rx;
	struct metaroce_qp *qp;
	int err = metaroce_wire_probe_decode(bytes, stored, &probe);

	if (err < 0)
		return err;
	if (probe.kind == METAROCE_PROBE_STREAM) {
		qp = metaroce_qp_by_number(m, probe.qp);
		if (qp == NULL || qp->conn != c)
			return -DSF_E_UNKNOWN;
		metaroce_ack_tell(c, qp);
		metaroce_ack_now(c, plane);
		return 0;
	}
	if (mch->path >= c->rx_paths_count)
		return -DSF_E_PEER;
	rx = &c->rx_paths[mch->path];
	if (probe.kind == METAROCE_PROBE_FILL) {
		enum metaroce_sack_result result = metaroce_sack_look(&rx->sack, mch->sequence);

		if (result == METAROCE_SACK_OUTSIDE)
			return -DSF_E_PEER;
		if (result == METAROCE_SACK_NEW)
			metaroce_sack_add(&rx->sack, mch->sequence);
		heard(rx, mch, marked, now);
		acknowledge(c, plane, mch, false, now);
		return 0;
	}
	heard(rx, mch, marked, now);
	rx->flags |= METAROCE_PBLK_PROBE_RESPONSE;
	dsf_bitset_add(c->pending, mch->path);
	metaroce_ack_now(c, plane);
	return 0;
}

static int nack_input(struct metaroce *m, const struct dsf_ip6 *source, uint32_t plane,
	const uint8_t *bytes, size_t stored, const struct metaroce_mch *mch, dsf_instant now)
{
	struct metaroce_nack nack;
	struct metaroce_conn *c;
	struct metaroce_qp *qp;
	int err = metaroce_wire_nack_decode(bytes, stored, &nack);

	if (err < 0)
		return err;
	if (nack.code == METAROCE_NACK_UNKNOWN_CONNECTION) {
		/* It can't know our id: it repeats the one we used. */
		for (uint32_t i = 0; i < m->conns_count; i++) {
			c = m->conns[i];
			if (c != NULL && metaroce_conn_is_open(c) && c->peer_id == nack.msn &&
				dsf_ip6_equal(&c->peer.address[plane], source)) {
				metaroce_conn_reset(c, -DSF_E_PEER, now);
				return 0;
			}
		}
		return -DSF_E_UNKNOWN;
	}
	c = metaroce_conn_by_id(m, mch->connection);
	qp = metaroce_qp_by_number(m, nack.qp);
	if (c == NULL || qp == NULL || qp->conn != c ||
		!dsf_ip6_equal(&c->peer.address[plane], source))
		return -DSF_E_UNKNOWN;
	if (nack.code != METAROCE_NACK_ACCESS && nack.code != METAROCE_NACK_INVALID &&
		nack.code != METAROCE_NACK_OPERATION)
		return -DSF_E_UNSUPPORTED;
	metaroce_qp_fail(qp, -DSF_E_ACCESS);
	return 0;
}

static void refuse_unknown(struct metaroce *m, uint32_t plane, const struct dsf_ip6 *source,
	const struct metaroce_mch *mch)
{
	struct metaroce_nack nack = { .code = METAROCE_NACK_UNKNOWN_CONNECTION,
		.path = mch->path,
		.sequence = mch->sequence,
		.msn = mch->connection };

	if (mch->type == METAROCE_TYPE_DATA || mch->type == METAROCE_TYPE_PROBE)
		metaroce_input_nack(m, NULL, plane, source, &nack);
}

int metaroce_input(struct metaroce *m, uint32_t plane, const struct dsf_ip6 *source, bool marked,
	const uint8_t *bytes, size_t stored, size_t size, struct metaroce_placement *placement,
	dsf_instant now)
{
	struct metaroce_hello hello;
	struct metaroce_conn *c;
	struct metaroce_mch mch;
	int err = metaroce_wire_mch_decode(bytes, stored, &mch);

	placement->request = 0;
	if (err < 0)
		return err;
	m->counters.packets_rx++;
	m->counters.bytes_rx += size;
	if (mch.plane != plane || plane >= m->config.planes)
		return -DSF_E_PEER;
	if (mch.type == METAROCE_TYPE_CONN) {
		err = metaroce_wire_hello_decode(bytes, stored, &hello);
		return err < 0 ? err : metaroce_conn_hello(m, plane, source, &mch, &hello, now);
	}
	if (mch.type == METAROCE_TYPE_NACK)
		return nack_input(m, source, plane, bytes, stored, &mch, now);
	c = metaroce_conn_by_id(m, mch.connection);
	if (c == NULL) {
		refuse_unknown(m, plane, source, &mch);
		return -DSF_E_UNKNOWN;
	}
	if (!dsf_ip6_equal(&c->peer.address[plane], source))
		return -DSF_E_PEER;
	if (!metaroce_conn_is_open(c))
		return -DSF_E_STATE;
	if (mch.type == METAROCE_TYPE_DATA)
		return data_input(m, c, plane, marked, bytes, stored, size, &mch, placement, now);
	if (mch.type == METAROCE_TYPE_PROBE)
		return probe_input(m, c, plane, marked, bytes, stored, &mch, now);
	return metaroce_loss_input(m, c, bytes, stored, &mch, now);
}

void metaroce_placed(struct metaroce *m, uint64_t request, int status, dsf_instant now)
{
	struct metaroce_placing *placing = (struct metaroce_placing *)(uintptr_t)request;
	struct metaroce_placing answered;
	struct metaroce_qp *qp;

	(void)now;
	assert(placing != NULL);
	answered = *placing;
	dsf_pool_give(&m->placings, placing);
	qp = metaroce_qp_by_number(m, answered.number);
	if (qp != NULL && qp->life == answered.life && qp->status == 0)
		metaroce_qp_placed(qp, answered.msn, answered.size, status);
}
