/*
 * cc.h - a congestion window, of a path or of a connection
 *
 * DCTCP's law (published: "conventional ECN-based, sender-driven AIMD"): alpha follows the marked
 * fraction per round trip; the first mark of a round cuts the window by alpha / 2. A round is over
 * when something is answered that was sent after it began, or after its cut: what was on its way
 * then, however long it waits in a queue, doesn't cut again. Without marks it
 * grows, doubling each round trip until the first mark ever, then by a step, and only where the
 * window is what held the sender back. Loss alone changes nothing; loss while the round trip time
 * has risen counts as congestion, once a round.
 */
#ifndef DSF_METAROCE_CC_H
#define DSF_METAROCE_CC_H
#include <stdbool.h>
#include <stdint.h>
#include "base/time.h"

#define METAROCE_CC_ONE 65536u /* alpha is in units of 1 / this */

struct metaroce_window {
	uint32_t bytes;
	uint32_t bytes_max;
	uint32_t step; /* growth per round trip after the first mark */
	uint32_t bytes_min;
	uint32_t alpha;           /* marked fraction, smoothed */
	uint32_t grown;           /* rest of growth below one byte, times bytes */
	uint32_t packets, marked; /* of this round */
	dsf_instant round_at;     /* its beginning, or its cut */
	bool slow_start, cut, limited;
};

struct metaroce_cc_news {
	uint32_t acked_bytes;
	uint32_t packets, marked; /* that arrived since the last news */
	bool lost;
	dsf_instant sent_at;           /* of the latest packet that this answers */
	uint32_t rtt_ns, rtt_least_ns; /* smoothed, and of the empty path */
};

void metaroce_cc_init(struct metaroce_window *w, uint32_t bytes, uint32_t bytes_min,
	uint32_t bytes_max, uint32_t step);

/* Returns true when the window was cut. */
bool metaroce_cc_input(
	struct metaroce_window *w, const struct metaroce_cc_news *news, dsf_instant now);

#endif
