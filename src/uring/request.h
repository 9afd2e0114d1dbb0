/*
 * request.h - what the supervisor asks for, and what it is told
 *
 * The meaning of the lines in control.h.
 */
#ifndef DSF_URING_REQUEST_H
#define DSF_URING_REQUEST_H
#include "uring/process.h"

/* Answers one line; NULL: it was too long. */
void uring_request_handle(struct uring_process *p, const char *line, size_t size);

/* The ports are open. */
void uring_request_started(struct uring_process *p);

/* Tells the supervisor what has changed since the last call: ready, the end of a workload. */
void uring_request_tell(struct uring_process *p);

/* A trace event of the node: kept if it is news to an operator and the rate allows it. */
void uring_request_trace(struct uring_process *p, const struct dsf_event *event);

#endif
