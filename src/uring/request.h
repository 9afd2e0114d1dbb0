/*
 * request.h - what the supervisor asks for
 *
 * The meaning of the lines in control.h.
 */
#ifndef DSF_URING_REQUEST_H
#define DSF_URING_REQUEST_H
#include "uring/process.h"

/* Answers one line; NULL: it was too long. */
void uring_request_handle(struct uring_process *p, const char *line, size_t size);

#endif
