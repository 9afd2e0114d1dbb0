/*
 * control.h - lines to and from the supervisor
 *
 * A stream socket that carries one JSON object a line, both ways. Requests have an "id", which
 * their answer repeats; what is told unasked has "event". This file moves lines, request.c knows
 * what they say:
 *
 *   {"id":1,"op":"view","query":"port","filter":N}   -> {"id":1,"result":[...]}
 *   {"id":2,"op":"impair","port":"fab0","impairment":{...},"inbound":{...}?}
 *   {"id":8,"op":"drain","port":"fab0","drained":true}   without port: all fabric ports
 *   {"id":3,"op":"workload","spec":{...}}   {"id":4,"op":"workload_stop"}
 *   {"id":5,"op":"fidelity","reset":true}   {"id":6,"op":"now"}   {"id":7,"op":"stop"}
 *   {"id":9,"op":"started"}   the lab has (node_main.h)
 *   failure: {"id":N,"error":"text"}
 *   events: news.h
 *
 * A line that is too long is refused and skipped up to its end. While more than
 * URING_CONTROL_BACKLOG bytes wait to be sent no further request is read, and events are kept for
 * later or counted.
 */
#ifndef DSF_URING_CONTROL_H
#define DSF_URING_CONTROL_H
#include <stdbool.h>
#include <stddef.h>
#include "uring/loop.h"
#include "uring/text.h"

#define URING_CONTROL_LINE_MAX (4u << 20) /* bytes of one request: a workload of 200,000 flows */
#define URING_CONTROL_BACKLOG  (1u << 20)

struct uring_control {
	int fd; /* -1: nobody to talk to; owned by the caller */
	int slot;
	char *line; /* what has come of the next lines */
	size_t line_size, line_capacity;
	bool skipping;  /* in a line that was too long */
	bool receiving; /* a receive is under way */
	bool sending;
	bool ended;                /* the other end has closed */
	struct uring_text next;    /* lines to be sent after the current ones */
	struct uring_text current; /* being sent */
	size_t current_sent;
};

/* One whole line, without its newline, zero-terminated; NULL: it was too long. */
typedef void (*uring_control_fn)(void *user, const char *line, size_t size);

/* fd may be -1. 0 or -errno. */
int uring_control_open(struct uring_control *c, int fd, struct uring_loop *loop);
void uring_control_close(struct uring_control *c);

/* Puts a receive and a send into the ring where there is something to do and none is under way. */
void uring_control_arm(struct uring_control *c, struct uring_loop *loop);

/* A receive completed: gives each whole line to fn. */
void uring_control_input(struct uring_control *c, int res, uring_control_fn fn, void *user);

/* A send completed. */
void uring_control_sent(struct uring_control *c, int res);

static inline bool uring_control_backlogged(const struct uring_control *c)
{
	return c->next.size > URING_CONTROL_BACKLOG;
}

#endif
