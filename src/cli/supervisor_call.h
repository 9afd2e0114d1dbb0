/*
 * supervisor_call.h - a client's request while it is being answered
 *
 * supervisor_op.c has what there is to ask for; the parts that change the lab are in files of their
 * own.
 */
#ifndef DSF_CLI_SUPERVISOR_CALL_H
#define DSF_CLI_SUPERVISOR_CALL_H
#include "cli/json_span.h"
#include "cli/supervisor.h"

#define SUPERVISOR_CALL_ID_MAX 64

struct supervisor_call {
	struct supervisor_client *client;
	struct supervisor *s;
	const char *line;
	size_t size;
	char id_text[SUPERVISOR_CALL_ID_MAX + 1];
	const char *id; /* NULL: none */
};

struct json_span supervisor_call_member(const struct supervisor_call *r, const char *key);

/* The node that the request names; NULL and answered when there is none. */
struct supervisor_node *supervisor_call_node(const struct supervisor_call *r);

/* A job that answers it; NULL and answered when there are too many. */
struct supervisor_job *supervisor_call_job(
	const struct supervisor_call *r, int time_ms, void (*done)(struct supervisor_job *job));

/* A duration of the request in wall milliseconds, rounded up; 0 when absent. False: impossible. */
bool supervisor_call_wall_ms(const struct supervisor_call *r, const char *key, int64_t *ms);

/* How long something is asked for. False: answered. */
bool supervisor_call_term(const struct supervisor_call *r, struct supervisor_term *term);

/* supervisor_link.c */
void supervisor_op_link(const struct supervisor_call *r);
void supervisor_op_drain(const struct supervisor_call *r);

/* supervisor_process.c */
void supervisor_op_process(const struct supervisor_call *r);

#endif
