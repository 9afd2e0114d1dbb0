#include "base/err.h"
#include "metaroce/conn.h"

/* A sender's clock value back from its low 32 bits in ticks: the latest instant before now. */
static dsf_instant echoed(uint32_t ticks, dsf_instant now)
{
	uint32_t ago = metaroce_ticks(now) - ticks;
	uint64_t now_ticks = now.ns / METAROCE_TICK_NS;

	return (dsf_instant){ now_ticks >= ago ? (now_ticks - ago) * METAROCE_TICK_NS : 0 };
}

static void measure(struct metaroce_path *p, const struct metaroce_pblk *pblk, dsf_instant tx_at,
	dsf_instant now)
{
	uint64_t rtt = dsf_time_since(tx_at, now);
	uint64_t delay = (uint64_t)pblk->ack_delay * METAROCE_TICK_NS;
	uint32_t sample;

	if (rtt > UINT32_MAX / 2)
		return; /* a clock value that never was ours, or older than an epoch can live */
	sample = (uint32_t)(rtt > delay ? rtt - delay : 1);
	if (p->conn->rtt_least_ns == 0 || sample < p->conn->rtt_least_ns)
		p->conn->rtt_least_ns = sample;
	if (p->rtt_ns == 0) {
		p->rtt_ns = sample;
		p->rtt_var_ns = sample / 2;
		p->rtt_least_ns = sample;
	} else {
		uint32_t difference = sample > p->rtt_ns ? sample - p->rtt_ns : p->rtt_ns - sample;

		p->rtt_var_ns += difference / 4 - p->rtt_var_ns / 4;
		p->rtt_ns = p->rtt_ns - p->rtt_ns / 8 + sample / 8;
		if (sample < p->rtt_least_ns)
			p->rtt_least_ns = sample;
	}
}

struct outcome {
	uint32_t acked_bytes;
	bool lost;
};

/* True when an answer to what was sent at `echo` proves r lost: it left before, on the same path,
 * and paths keep order. Across a change of route it gets a guard of a round trip. */
static bool proven_lost(const struct metaroce_path *p, const struct metaroce_record *r,
	const struct metaroce_pblk *pblk, uint32_t echo, uint32_t highest)
{
	int32_t later = (int32_t)(echo - metaroce_ticks(r->tx_at));

	if (r->epoch != pblk->epoch)
		return later > (int32_t)(METAROCE_EPOCH_GUARD * p->rtt_ns / METAROCE_TICK_NS);
	if ((r->flags & METAROCE_RECORD_RTX) == 0 && (int32_t)(highest - r->sequence) > 0)
		return true;
	return later > 0;
}

static struct outcome walk(struct metaroce_path *p, const struct metaroce_pblk *pblk, bool fresh)
{
	struct outcome outcome = { 0, false };
	uint32_t highest = metaroce_sack_highest(pblk->next, pblk->sack);
	uint32_t last = highest;
	struct metaroce_record *r;

	if (p->resent && (int32_t)(p->resent_highest - last) > 0)
		last = p->resent_highest;
	if (pblk->flags & METAROCE_PBLK_PROBE_RESPONSE)
		last = p->next_sequence - 1;
	for (r = p->under_way.first; r != NULL; r = r->next) {
		if ((int32_t)(r->sequence - last) > 0)
			break;
		if ((r->flags & METAROCE_RECORD_ACKED) != 0)
			continue;
		if (metaroce_sack_has(pblk->next, pblk->sack, r->sequence)) {
			outcome.acked_bytes += r->size;
			metaroce_path_acked(p, r);
		} else if (fresh &&
			   (r->flags & (METAROCE_RECORD_GHOST | METAROCE_RECORD_QUEUED)) == 0 &&
			   proven_lost(p, r, pblk, pblk->ts_echo, highest)) {
			outcome.lost = true;
			metaroce_path_lost(p, r);
		}
	}
	metaroce_path_trim(p);
	if (p->under_way.first == NULL)
		p->resent = false;
	return outcome;
}

/* Marked and received packets since the last news. Totals only grow; a late ACK has none. */
static void count(
	struct metaroce_path *p, const struct metaroce_pblk *pblk, struct metaroce_cc_news *news)
{
	int32_t packets = (int32_t)(pblk->rx_packets - p->rx_seen);
	int32_t marked = (int32_t)(pblk->ecn_packets - p->ecn_seen);

	if (packets <= 0 || marked < 0)
		return;
	news->packets = (uint32_t)packets;
	news->marked = (uint32_t)(marked > packets ? packets : marked);
	p->rx_seen = pblk->rx_packets;
	p->ecn_seen = pblk->ecn_packets;
}

static void path_news(
	struct metaroce_conn *c, const struct metaroce_pblk *pblk, bool fresh, dsf_instant now)
{
	struct metaroce_path *p = &c->paths[pblk->path];
	dsf_instant tx_at = echoed(pblk->ts_echo, now);
	struct metaroce_cc_news news = { 0 };
	struct outcome outcome;

	if ((int32_t)(pblk->next - p->next_sequence) > 0)
		return; /* acknowledges what was never sent */
	if (dsf_time_before(c->answered_tx, tx_at))
		c->answered_tx = tx_at;
	count(p, pblk, &news);
	if (fresh && news.packets > 0 && pblk->epoch == p->epoch)
		measure(p, pblk, tx_at, now);
	outcome = walk(p, pblk, fresh);
	metaroce_path_answered(p, pblk->epoch, tx_at, now);
	if (outcome.acked_bytes > 0) {
		metaroce_conn_progress(c, now);
	}
	news.acked_bytes = outcome.acked_bytes;
	news.lost = outcome.lost;
	news.sent_at = tx_at;
	news.rtt_ns = p->rtt_ns;
	news.rtt_least_ns = p->rtt_least_ns;
	p->skip |= news.marked > 0;
	metaroce_cc_input(&p->window, &news, now);
	metaroce_cc_input(&c->planes[p->plane].window, &news, now);
}

/* More than the granted rates times a round trip only makes queues. Before anything was granted one
 * round trip at the ports' rates may go, so that many who begin at once don't fill the network. */
void metaroce_loss_limit(struct metaroce_conn *c)
{
	const struct metaroce *m = c->m;
	uint64_t ns = c->rtt_least_ns, rate_bps = 0, bytes;
	bool granted = true;

	c->inflight_max = UINT32_MAX;
	if (ns == 0)
		ns = m->config.base_rtt_ns;
	for (uint32_t i = 0; i < m->config.planes; i++) {
		if (!metaroce_conn_uses(c, i))
			continue;
		granted = granted && c->planes[i].hint_bps > 0;
		rate_bps += granted ? c->planes[i].hint_bps : m->config.rate_bps[i];
		if (m->config.rate_bps[i] == 0)
			return;
	}
	if (granted)
		ns *= METAROCE_HINT_INFLIGHT;
	/* On a scheduled fabric the least is measured by thin traffic that found credit waiting. */
	if (granted && ns < m->config.base_rtt_ns)
		ns = m->config.base_rtt_ns;
	bytes = dsf_bytes_of_time(ns, rate_bps) + METAROCE_ACK_PACKETS * m->config.payload_bytes;
	if (bytes < UINT32_MAX)
		c->inflight_max = (uint32_t)bytes;
}

/* A packet that waits for the pace of the old hint waits for that of the new one. */
static void change_hint(struct metaroce_conn_plane *cp, uint64_t hint_bps, dsf_instant now)
{
	if (cp->hint_bps > 0 && hint_bps > 0 && cp->hint_bps != hint_bps &&
		dsf_time_before(now, cp->pace_at)) {
		unsigned __int128 wait = cp->pace_at.ns - now.ns;

		cp->pace_at = dsf_time_after(now, (uint64_t)(wait * cp->hint_bps / hint_bps));
		if (metaroce_timer_runs(&cp->pace))
			metaroce_timer_set(cp->conn->m, &cp->pace, cp->pace_at);
	}
	cp->hint_bps = hint_bps;
	cp->hint_at = now;
}

static void take_hints(struct metaroce_conn *c, const struct metaroce_ack *ack, dsf_instant now)
{
	for (uint32_t i = 0; i < ack->planes && i < c->m->config.planes; i++)
		change_hint(&c->planes[i], (uint64_t)ack->share[i] * METAROCE_RATE_UNIT_BPS, now);
}

int metaroce_loss_input(struct metaroce *m, struct metaroce_conn *c, const uint8_t *bytes,
	size_t stored, const struct metaroce_mch *mch, dsf_instant now)
{
	struct metaroce_ack ack;
	bool fresh = !c->control_known || (int32_t)(mch->sequence - c->control_seen) > 0;
	int err = metaroce_wire_ack_decode(bytes, stored, &ack);

	if (err < 0)
		return err;
	m->counters.acks_rx++;
	c->heard = true;
	if (fresh) {
		c->control_known = true;
		c->control_seen = mch->sequence;
		take_hints(c, &ack, now);
	}
	for (uint32_t i = 0; i < ack.pblks; i++) {
		struct metaroce_pblk pblk;

		metaroce_wire_pblk_decode(bytes, &ack, i, &pblk);
		if (pblk.path < c->paths_count)
			path_news(c, &pblk, fresh, now);
	}
	if (fresh)
		metaroce_loss_limit(c);
	for (uint32_t i = 0; i < ack.sblks; i++) {
		struct metaroce_sblk sblk;
		struct metaroce_qp *qp;

		metaroce_wire_sblk_decode(bytes, &ack, i, &sblk);
		qp = metaroce_qp_by_number(m, sblk.qp);
		if (qp == NULL || qp->conn != c)
			continue;
		if (metaroce_qp_done(qp, sblk.msn, now) < 0)
			err = -DSF_E_PEER;
	}
	metaroce_conn_wake_all(c);
	return err;
}
