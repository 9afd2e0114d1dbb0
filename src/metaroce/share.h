/*
 * share.h - the receiver's side of fairness: how its inbound rate is shared
 *
 * For each plane a receiver keeps who sends to it. Its port's rate is divided max-min by demand:
 * who is held back by nothing but our hint may have an equal share of what the others leave; who
 * has little left, or is slowed elsewhere, gets what it can use. Every ACK carries the result, so
 * N senders that start together know their share as soon as they hear from us: one round trip.
 *
 * There is no timer: shares are worked out again when they are asked for, if senders came or went
 * or an interval (about a round trip) has passed.
 */
#ifndef DSF_METAROCE_SHARE_H
#define DSF_METAROCE_SHARE_H
#include <stdbool.h>
#include <stdint.h>
#include "base/time.h"
#include "metaroce/list.h"

struct metaroce_share {
	struct metaroce_link senders; /* that are active */
	uint32_t count;
	uint64_t capacity_bps; /* on the wire; 0: unlimited, no hints */
	uint64_t interval_ns;
	bool dirty;
	dsf_instant due;         /* of the next division */
	uint64_t marked, heard;  /* packets of this interval */
	uint32_t scale_permille; /* of capacity that is given away */
	uint16_t epoch;          /* counts divisions */
};

struct metaroce_share_sender {
	struct metaroce_link link;
	uint64_t rate_bps; /* its share */
	uint64_t got_bps;  /* measured over whole intervals; 0 until there was one */
	uint64_t backlog_bytes;
	uint64_t bytes;    /* on the wire, in this interval */
	dsf_instant since; /* interval's beginning */
	dsf_instant heard;
	bool limited; /* by our hint */
	uint64_t demand_bps;
};

void metaroce_share_init(struct metaroce_share *s, uint64_t capacity_bps, uint64_t interval_ns);

/* Something came from a sender: its wire bytes, what it says still waits there, whether our hint
 * is what holds it back, whether the packet was marked. */
void metaroce_share_heard(struct metaroce_share *s, struct metaroce_share_sender *sender,
	uint32_t wire_bytes, uint64_t backlog_bytes, bool limited, bool marked, dsf_instant now);

/* The sender's share in bit/s; 0: no bound. */
uint64_t metaroce_share_rate(
	struct metaroce_share *s, struct metaroce_share_sender *sender, dsf_instant now);

void metaroce_share_forget(struct metaroce_share *s, struct metaroce_share_sender *sender);

#endif
