#include "metaroce/cc.h"

#define ALPHA_SHIFT 4u /* weight of one round in alpha: 1/16, as DCTCP */

void metaroce_cc_init(struct metaroce_window *w, uint32_t bytes, uint32_t bytes_min,
	uint32_t bytes_max, uint32_t step)
{
	*w = (struct metaroce_window){ .bytes = bytes > bytes_min ? bytes : bytes_min,
		.bytes_min = bytes_min,
		.bytes_max = bytes_max > bytes_min ? bytes_max : bytes_min,
		.step = step,
		.alpha = METAROCE_CC_ONE, /* the first mark halves */
		.slow_start = true };
	if (w->bytes > w->bytes_max)
		w->bytes = w->bytes_max;
}

static void round_over(struct metaroce_window *w, dsf_instant now)
{
	if (w->packets > 0) {
		uint32_t fraction = (uint32_t)((uint64_t)w->marked * METAROCE_CC_ONE / w->packets);

		if (fraction > METAROCE_CC_ONE)
			fraction = METAROCE_CC_ONE;
		w->alpha = w->alpha - (w->alpha >> ALPHA_SHIFT) + (fraction >> ALPHA_SHIFT);
	}
	w->packets = w->marked = 0;
	w->cut = false;
	w->round_at = now;
}

static void cut(struct metaroce_window *w, uint32_t alpha, dsf_instant now)
{
	uint32_t bytes = w->bytes - (uint32_t)((uint64_t)w->bytes * alpha / (2 * METAROCE_CC_ONE));

	w->bytes = bytes > w->bytes_min ? bytes : w->bytes_min;
	w->cut = true;
	w->round_at = now;
	w->slow_start = false;
}

static void grow(struct metaroce_window *w, uint32_t acked_bytes)
{
	uint64_t bytes = w->bytes;

	if (w->slow_start) {
		bytes += acked_bytes;
	} else {
		uint64_t owed = (uint64_t)w->step * acked_bytes + w->grown;

		bytes += owed / w->bytes;
		w->grown = (uint32_t)(owed % w->bytes);
	}
	w->bytes = bytes > w->bytes_max ? w->bytes_max : (uint32_t)bytes;
}

bool metaroce_cc_input(
	struct metaroce_window *w, const struct metaroce_cc_news *news, dsf_instant now)
{
	bool risen = news->rtt_ns > news->rtt_least_ns + news->rtt_least_ns / 2;
	bool was_cut = false;

	w->packets += news->packets;
	w->marked += news->marked;
	if (!w->cut && news->marked > 0) {
		cut(w, w->alpha, now);
		was_cut = true;
	} else if (!w->cut && news->lost && risen) {
		cut(w, METAROCE_CC_ONE / 2, now);
		was_cut = true;
	} else if (w->limited && !w->cut && news->acked_bytes > 0) {
		grow(w, news->acked_bytes);
	}
	if (dsf_time_before(w->round_at, news->sent_at)) {
		round_over(w, now);
		w->limited = false;
	}
	return was_cut;
}
