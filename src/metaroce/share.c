#include "metaroce/share.h"
#include "base/heap.h"

/* A sender counts as active for this many intervals after it was heard. */
#define ACTIVE_INTERVALS 2u
/* Added to what a sender says: it may have got more since. */
#define BACKLOG_LEAST 4096u
/* Given away while nothing is marked, and while queues must drain. */
#define SCALE_FULL_PERMILLE  1000u
#define SCALE_DRAIN_PERMILLE 950u
/* A rate is measured over this many bytes at least, or over so many intervals. */
#define MEASURE_BYTES     32768u
#define MEASURE_INTERVALS 8u
/* Nobody is granted less than an equal part divided by this: on top of what is divided, so that
 * who wants to grow can show it. */
#define FLOOR_DIVISOR 4u
/* Who is slowed elsewhere may have this much over what it got. */
#define ROOM_NUMERATOR   5u
#define ROOM_DENOMINATOR 4u

void metaroce_share_init(struct metaroce_share *s, uint64_t capacity_bps, uint64_t interval_ns)
{
	metaroce_list_init(&s->senders);
	s->count = 0;
	s->capacity_bps = capacity_bps;
	s->interval_ns = interval_ns > 0 ? interval_ns : 1;
	s->dirty = false;
	s->due = DSF_EPOCH;
	s->marked = s->heard = 0;
	s->scale_permille = SCALE_FULL_PERMILLE;
	s->epoch = 0;
}

static struct metaroce_share_sender *sender_of(struct metaroce_link *link)
{
	return DSF_CONTAINER(link, struct metaroce_share_sender, link);
}

void metaroce_share_forget(struct metaroce_share *s, struct metaroce_share_sender *sender)
{
	if (!metaroce_list_linked(&sender->link))
		return;
	metaroce_list_remove(&sender->link);
	s->count--;
	s->dirty = true;
}

void metaroce_share_heard(struct metaroce_share *s, struct metaroce_share_sender *sender,
	uint32_t wire_bytes, uint64_t backlog_bytes, bool limited, bool marked, dsf_instant now)
{
	if (!metaroce_list_linked(&sender->link)) {
		metaroce_list_push(&s->senders, &sender->link);
		s->count++;
		s->dirty = true;
		sender->got_bps = 0;
		sender->bytes = 0;
		sender->since = now;
	}
	s->heard++;
	s->marked += marked;
	sender->heard = now;
	sender->bytes += wire_bytes;
	sender->limited = limited;
	sender->backlog_bytes = backlog_bytes;
}

static uint64_t rate_of(uint64_t bytes, uint64_t duration_ns)
{
	unsigned __int128 rate =
		(unsigned __int128)bytes * 8u * NS_PER_S / (duration_ns > 0 ? duration_ns : 1);

	return rate > UINT64_MAX ? UINT64_MAX : (uint64_t)rate;
}

/* What waits at the sender, to be gone in an interval; not more than it uses when something else
 * than our hint holds it back. A new one may ask for all until we know better. */
static uint64_t demand_of(
	const struct metaroce_share *s, const struct metaroce_share_sender *sender)
{
	uint64_t waits = rate_of(sender->backlog_bytes + BACKLOG_LEAST, s->interval_ns);
	uint64_t uses = sender->got_bps / ROOM_DENOMINATOR * ROOM_NUMERATOR;

	if (sender->got_bps == 0 || sender->limited || waits < uses)
		return waits;
	return uses;
}

static void measure(struct metaroce_share *s, dsf_instant now)
{
	struct metaroce_link *next;

	for (struct metaroce_link *at = s->senders.next; at != &s->senders; at = next) {
		struct metaroce_share_sender *sender = sender_of(at);
		uint64_t passed = dsf_time_since(sender->since, now);

		next = at->next;
		if (dsf_time_since(sender->heard, now) > ACTIVE_INTERVALS * s->interval_ns) {
			metaroce_share_forget(s, sender);
			continue;
		}
		if (passed >= s->interval_ns &&
			(sender->bytes >= MEASURE_BYTES ||
				passed >= MEASURE_INTERVALS * s->interval_ns)) {
			uint64_t rate = rate_of(sender->bytes, passed);

			sender->got_bps = rate > 0 ? rate : 1;
			sender->bytes = 0;
			sender->since = now;
		}
		sender->demand_bps = demand_of(s, sender);
	}
}

/* Max-min: who asks for less than an equal part of what is left gets that; the rest share it. */
static void divide(struct metaroce_share *s)
{
	uint64_t left = s->capacity_bps / 1000u * s->scale_permille;
	uint64_t least = left / ((uint64_t)FLOOR_DIVISOR * (s->count > 0 ? s->count : 1)) + 1;
	uint32_t open = s->count;
	bool changed = true;

	for (struct metaroce_link *at = s->senders.next; at != &s->senders; at = at->next)
		sender_of(at)->rate_bps = 0;
	while (open > 0 && changed) {
		uint64_t part = left / open;

		changed = false;
		for (struct metaroce_link *at = s->senders.next; at != &s->senders; at = at->next) {
			struct metaroce_share_sender *sender = sender_of(at);

			if (sender->rate_bps == 0 && sender->demand_bps < part) {
				sender->rate_bps = sender->demand_bps > 0 ? sender->demand_bps : 1;
				left -= sender->demand_bps;
				open--;
				changed = true;
			}
		}
	}
	/* Equal parts for the others; nobody asks for more: what is left is everybody's, so that a
	 * hint never holds back who could be served. */
	for (struct metaroce_link *at = s->senders.next; at != &s->senders; at = at->next) {
		struct metaroce_share_sender *sender = sender_of(at);

		if (open == 0)
			sender->rate_bps += left / s->count;
		else if (sender->rate_bps == 0)
			sender->rate_bps = left / open;
		if (sender->rate_bps < least)
			sender->rate_bps = least;
	}
}

uint64_t metaroce_share_rate(
	struct metaroce_share *s, struct metaroce_share_sender *sender, dsf_instant now)
{
	if (s->capacity_bps == 0 || !metaroce_list_linked(&sender->link))
		return 0;
	if (s->dirty || dsf_time_due(s->due, now)) {
		if (dsf_time_due(s->due, now)) {
			s->scale_permille =
				s->marked > 0 ? SCALE_DRAIN_PERMILLE : SCALE_FULL_PERMILLE;
			s->marked = s->heard = 0;
			s->due = dsf_time_after(now, s->interval_ns);
		}
		measure(s, now);
		s->dirty = false;
		s->epoch++;
		divide(s);
	}
	return metaroce_list_linked(&sender->link) ? sender->rate_bps : 0;
}
