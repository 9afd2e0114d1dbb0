#include "cli/supervisor_call.h"

#define TERM_MAX (86400 * NS_PER_S) /* of wall time */

struct json_span supervisor_call_member(const struct supervisor_call *r, const char *key)
{
	return json_span_get(r->line, r->size, key);
}

struct supervisor_node *supervisor_call_node(const struct supervisor_call *r)
{
	char name[TOPO_NODE_NAME_MAX + 1] = "?";
	uint32_t index = TOPO_NONE;

	if (json_span_string(supervisor_call_member(r, "node"), name, sizeof(name)))
		index = topo_find_node(r->s->topo, name);
	if (index != TOPO_NONE)
		return &r->s->nodes[index];
	supervisor_client_wrong(r->client, r->id, "%s: no such node", name);
	return NULL;
}

struct supervisor_job *supervisor_call_job(
	const struct supervisor_call *r, int time_ms, void (*done)(struct supervisor_job *job))
{
	struct supervisor_job *job = supervisor_job_new(r->s, r->client, r->id, time_ms, done);

	if (job == NULL)
		supervisor_client_error(r->client, r->id, "too much is asked for at once");
	return job;
}

bool supervisor_call_wall_ms(const struct supervisor_call *r, const char *key, int64_t *ms)
{
	struct json_span span = supervisor_call_member(r, key);
	uint64_t dilation = json_span_is_true(supervisor_call_member(r, "wall"))
				    ? 1
				    : r->s->topo->time_dilation;
	int64_t ns;

	*ms = 0;
	if (span.at == NULL)
		return true;
	if (!json_span_integer(span, &ns) || ns <= 0 || dilation == 0 ||
		(uint64_t)ns > TERM_MAX / dilation)
		return false;
	*ms = (int64_t)(((uint64_t)ns * dilation + NS_PER_MS - 1) / NS_PER_MS);
	return true;
}

bool supervisor_call_term(const struct supervisor_call *r, struct supervisor_term *term)
{
	*term = (struct supervisor_term){
		.client = json_span_is_true(supervisor_call_member(r, "hold")) ? r->client : NULL
	};
	if (supervisor_call_wall_ms(r, "for_ns", &term->for_ms))
		return true;
	supervisor_client_wrong(
		r->client, r->id, "the time must be from 1 ms to 24 h of wall time");
	return false;
}
