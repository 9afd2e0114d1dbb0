/*
 * news.h - what a node tells the supervisor unasked
 *
 * Lines with "event": started, ready, workload_done, and those events of the cores that are news to
 * an operator. Each has the instant at which it was due ("at_ns", fabric time) and the one at which
 * this process came to it ("wall_us", microseconds of Unix time, which a double still carries).
 *
 * Reachability changes by destinations, many at once, so they are put together: one line a turn of
 * the loop, stamped as the last of them. "changed" are the destinations whose links changed since
 * the line before, "lost" and "gained" those of them that went out of and into reach, "reached" all
 * that are reached now. Such a line may wait, but is never lost: the last one of a node tells when
 * it came to its fixed point. Others are dropped above a rate, and a line "missed" tells how many,
 * as soon as there is room for it.
 */
#ifndef DSF_URING_NEWS_H
#define DSF_URING_NEWS_H
#include <stdbool.h>
#include <stdint.h>
#include "base/trace.h"

struct uring_process;

struct uring_news {
	bool ready;         /* as it was last told */
	bool workload_done; /* not told yet */
	/* Interface nodes by switch index: reached now, reached when last told, changed since. */
	uint64_t *reached, *told, *changed;
	uint32_t words;
	bool reach_changed;
	dsf_instant reach_at; /* the last change */
	uint64_t reach_wall_us;
	uint32_t tokens_left;
	uint64_t filled_at, missed;
};

/* 0 or -ENOMEM. */
int uring_news_open(struct uring_process *p);
void uring_news_close(struct uring_process *p);

/* The ports are open. */
void uring_news_started(struct uring_process *p);

/* At the end of a turn: tells what has changed since the last call. */
void uring_news_tell(struct uring_process *p);

/* An event of the node's cores. */
void uring_news_trace(struct uring_process *p, const struct dsf_event *event);

#endif
