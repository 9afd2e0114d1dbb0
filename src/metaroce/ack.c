#include <assert.h>
#include "metaroce/conn.h"

static void queue_ack(struct metaroce_conn *c, uint32_t plane)
{
	struct metaroce *m = c->m;

	/* Where data came from, unless that way is gone. */
	for (uint32_t i = 0; i < m->config.planes; i++) {
		uint32_t candidate = (plane + i) % m->config.planes;

		if (metaroce_conn_uses(c, candidate)) {
			plane = candidate;
			break;
		}
	}
	c->ack_plane = (uint8_t)plane;
	metaroce_list_remove(&c->ack);
	metaroce_list_push(&m->acks[plane], &c->ack);
}

void metaroce_ack_now(struct metaroce_conn *c, uint32_t plane)
{
	metaroce_timer_stop(c->m, &c->ack_timer);
	queue_ack(c, plane);
}

void metaroce_ack_soon(struct metaroce_conn *c, uint32_t plane, dsf_instant now)
{
	if (metaroce_list_linked(&c->ack))
		return;
	c->ack_plane = (uint8_t)plane;
	if (!metaroce_timer_runs(&c->ack_timer))
		metaroce_timer_set(c->m, &c->ack_timer,
			dsf_time_after(now, c->m->config.base_rtt_ns / METAROCE_ACK_DELAY_DIVISOR));
}

void metaroce_ack_tell(struct metaroce_conn *c, struct metaroce_qp *qp)
{
	metaroce_list_push(&c->told, &qp->tell);
}

static uint32_t rate_units(uint64_t bps)
{
	uint64_t units = bps / METAROCE_RATE_UNIT_BPS;

	return units > UINT32_MAX ? UINT32_MAX : units == 0 && bps > 0 ? 1 : (uint32_t)units;
}

static void write_pblk(struct metaroce_conn *c, uint32_t index, uint8_t *to, dsf_instant now)
{
	struct metaroce_rx_path *p = &c->rx_paths[index];
	uint64_t delay = dsf_time_since(p->rx_at, now) / METAROCE_TICK_NS;
	struct metaroce_pblk pblk = { .path = (uint16_t)index,
		.epoch = p->epoch,
		.flags = p->flags,
		.next = p->sack.next,
		.ecn_packets = p->ecn_packets,
		.rx_packets = p->rx_packets,
		.ts_echo = p->ts,
		.ack_delay = delay > UINT16_MAX ? UINT16_MAX : (uint16_t)delay };

	memcpy(pblk.sack, p->sack.bits, sizeof(pblk.sack));
	metaroce_wire_pblk_encode(to, &pblk);
	p->flags = 0;
}

static uint32_t write_blocks(
	struct metaroce_conn *c, struct metaroce_ack *ack, uint8_t *to, dsf_instant now)
{
	uint8_t *at = to;
	uint32_t index = 0;

	while (ack->pblks < METAROCE_PBLKS_MAX) {
		index = dsf_bitset_next(c->pending, index, c->rx_paths_count);
		if (index == c->rx_paths_count)
			break;
		dsf_bitset_remove(c->pending, index);
		write_pblk(c, index, at, now);
		at += METAROCE_PBLK_SIZE;
		ack->pblks++;
	}
	while (ack->sblks < METAROCE_SBLKS_MAX && !metaroce_list_empty(&c->told)) {
		struct metaroce_qp *qp = DSF_CONTAINER(c->told.next, struct metaroce_qp, tell);
		struct metaroce_sblk sblk = { qp->peer_number, 0, qp->expected };

		metaroce_list_remove(&qp->tell);
		metaroce_wire_sblk_encode(at, &sblk);
		at += METAROCE_SBLK_SIZE;
		ack->sblks++;
	}
	return (uint32_t)(at - to);
}

uint32_t metaroce_ack_output(struct metaroce_conn *c, uint32_t plane, uint8_t *to, dsf_instant now)
{
	struct metaroce *m = c->m;
	struct metaroce_ack ack = { .planes = (uint8_t)m->config.planes, .rx_bytes = c->rx_bytes };
	struct metaroce_mch mch = { .type = METAROCE_TYPE_ACK,
		.connection = c->peer_id,
		.sequence = ++c->control_sequence,
		.tx_ts = metaroce_ticks(now),
		.plane = (uint8_t)plane };
	uint32_t head = METAROCE_MCH_SIZE + METAROCE_ACKH_SIZE + 4u * ack.planes;
	uint32_t blocks;

	for (uint32_t i = 0; i < ack.planes; i++) {
		uint64_t rate = metaroce_share_rate(&m->share[i], &c->planes[i].sender, now);

		ack.share[i] = rate_units(rate);
	}
	ack.active_senders =
		(uint16_t)(m->share[plane].count > UINT16_MAX ? UINT16_MAX : m->share[plane].count);
	ack.hint_epoch = m->share[plane].epoch;
	blocks = write_blocks(c, &ack, to + head, now);
	metaroce_wire_ack_encode(to, &mch, &ack);
	c->unacked = 0;
	metaroce_list_remove(&c->ack);
	if (dsf_bitset_next(c->pending, 0, c->rx_paths_count) < c->rx_paths_count ||
		!metaroce_list_empty(&c->told))
		queue_ack(c, plane);
	else
		metaroce_timer_stop(m, &c->ack_timer);
	m->counters.acks_tx++;
	return head + blocks;
}
