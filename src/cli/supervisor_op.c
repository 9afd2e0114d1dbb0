/*
 * Requests of clients: {"id":ID?,"op":"...", ...}, one line each; answers {"id":ID?,"result":...}
 * or {"id":ID?,"code":2?,"error":"text"} (2: wrong use). Several may be under way at once.
 *
 *   lab                                      {"lab","state","time_dilation","epoch_ns","nodes",
 *                                            "links"}, at once: no node is asked
 *   status                                   the object of `status`
 *   node     node, request                   hands request to one node: its result
 *   nodes    role?, request                  to all (of a role): all results in node order; arrays
 *                                            are put together; nodes that did not answer are told
 *                                            in "failed" beside "result"
 *   link     link, action: down up reset     sets a link
 *   link     link, action: impair, set       loss_ppm corrupt_ppm delay_ns jitter_ns reorder_ppm
 *                                            rate_bps silent: what is given changes
 *   link     link, action: flap, count, period_ns  down for half a period, count times
 *   drain    link or node, drained           a link's end, or a switch; undrained are both ends
 *   process  node, action: kill freeze stop start restart
 *   asked    what differs from the lab file  {"links":[{"link","down","impaired","drained"}],
 *                                             "nodes":[{"node","state"}],"drained":[node]}
 *   events                                   from now on what happens is sent: supervisor_event.c
 *   down     kill?                           ends the lab; answered when nothing is left
 *
 * link, drain and process also take for_ns, after which what they asked is taken back, and hold,
 * which takes it back when the client goes. Times are fabric time, or wall time with "wall":true.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/supervisor_call.h"

/* Members of the request object inside a request; absent: answered. */
static struct json_span inner_members(const struct supervisor_call *r)
{
	struct json_span request = supervisor_call_member(r, "request");

	if (request.at == NULL || request.size < 2 || request.at[0] != '{') {
		supervisor_client_error(r->client, r->id, "no request for the node");
		return (struct json_span){ NULL, 0 };
	}
	if (json_span_get(request.at, request.size, "id").at != NULL) {
		supervisor_client_error(r->client, r->id, "a node's request has no id of its own");
		return (struct json_span){ NULL, 0 };
	}
	return (struct json_span){ request.at + 1, request.size - 2 };
}

/* node, nodes */

static void relayed(struct supervisor_job *job)
{
	const struct supervisor_answer *a = &job->answers[0];

	if (job->answers_count == 0 || a->text == NULL)
		supervisor_client_error(
			job->client, job->id, "%s: no answer", job->s->topo->nodes[job->node].name);
	else if (a->failed)
		supervisor_client_error(job->client, job->id, "%s: %s",
			job->s->topo->nodes[job->node].name, a->text);
	else
		supervisor_client_result(job->client, job->id, a->text, a->size);
}

static void op_node(const struct supervisor_call *r)
{
	struct supervisor_node *n = supervisor_call_node(r);
	struct json_span members = n != NULL ? inner_members(r) : (struct json_span){ NULL, 0 };
	struct supervisor_job *job =
		members.at != NULL ? supervisor_call_job(r, SUPERVISOR_ANSWER_MS, relayed) : NULL;

	if (job == NULL)
		return;
	job->node = n->index;
	supervisor_job_ask(job, n, "relay", members.at, members.size);
}

static void put_failed(struct supervisor_job *job)
{
	struct supervisor_client *c = job->client;
	bool first = true;

	supervisor_client_put(c, "],\"failed\":[", 12);
	for (uint32_t i = 0; i < job->answers_count; i++) {
		const struct supervisor_answer *a = &job->answers[i];
		cJSON *object;
		char *text;

		if (a->text != NULL && !a->failed)
			continue;
		object = cJSON_CreateObject();
		cJSON_AddStringToObject(object, "node", job->s->topo->nodes[a->node].name);
		cJSON_AddStringToObject(object, "why", a->text != NULL ? a->text : "no answer");
		text = cJSON_PrintUnformatted(object);
		cJSON_Delete(object);
		if (text == NULL)
			continue;
		if (!first)
			supervisor_client_put(c, ",", 1);
		supervisor_client_put(c, text, strlen(text));
		cJSON_free(text);
		first = false;
	}
	supervisor_client_put(c, "]}\n", 3);
}

/* One array out of all answers: the elements of those that are arrays, else the answer itself. */
static void relayed_all(struct supervisor_job *job)
{
	struct supervisor_client *c = job->client;
	bool first = true;

	if (c == NULL)
		return;
	supervisor_client_put(c, "{", 1);
	if (job->id != NULL) {
		supervisor_client_put(c, "\"id\":", 5);
		supervisor_client_put(c, job->id, strlen(job->id));
		supervisor_client_put(c, ",", 1);
	}
	supervisor_client_put(c, "\"result\":[", 10);
	for (uint32_t i = 0; i < job->answers_count; i++) {
		const struct supervisor_answer *a = &job->answers[i];
		struct json_span part = { a->text, a->size };

		if (a->text == NULL || a->failed)
			continue;
		if (part.size > 0 && part.at[0] == '[')
			part = json_span_elements(part);
		if (part.at == NULL || part.size == 0)
			continue;
		if (!first)
			supervisor_client_put(c, ",", 1);
		supervisor_client_put(c, part.at, part.size);
		first = false;
	}
	put_failed(job);
	supervisor_client_flush(c);
}

static bool role_wanted(enum topo_role role, struct json_span wanted)
{
	if (wanted.at == NULL || (wanted.size == 4 && memcmp(wanted.at, "null", 4) == 0))
		return role != TOPO_ROLE_EXTERNAL;
	return json_span_is(wanted, topo_role_name(role));
}

static void op_nodes(const struct supervisor_call *r)
{
	struct json_span members = inner_members(r), role = supervisor_call_member(r, "role");
	struct supervisor_job *job =
		members.at != NULL ? supervisor_call_job(r, SUPERVISOR_ANSWER_MS, relayed_all)
				   : NULL;

	if (job == NULL)
		return;
	for (uint32_t i = 0; i < r->s->topo->nodes_count; i++)
		if (role_wanted(r->s->topo->nodes[i].role, role))
			supervisor_job_ask(job, &r->s->nodes[i], "relay", members.at, members.size);
}

/* status */

static void status_done(struct supervisor_job *job)
{
	supervisor_client_result_json(job->client, job->id, supervisor_status_object(job));
}

static void op_status(const struct supervisor_call *r)
{
	if (supervisor_status_ask(r->s, r->client, r->id, status_done) == NULL)
		supervisor_client_error(r->client, r->id, "too much is asked for at once");
}

/* lab */

static void op_lab(const struct supervisor_call *r)
{
	const struct topo *t = r->s->topo;
	char text[256];
	int size = snprintf(text, sizeof(text),
		"{\"lab\":\"%s\",\"state\":\"%s\",\"time_dilation\":%" PRIu32
		",\"epoch_ns\":%" PRIu64 ",\"nodes\":%" PRIu32 ",\"links\":%" PRIu32 "}",
		t->name, supervisor_state_name(r->s), t->time_dilation, r->s->epoch_ns,
		t->nodes_count, t->links_count);

	supervisor_client_result(r->client, r->id, text, (size_t)size);
}

static void op_asked(const struct supervisor_call *r)
{
	supervisor_client_result_json(r->client, r->id, supervisor_asked_object(r->s));
}

static void op_down(const struct supervisor_call *r)
{
	r->client->wants_end = true;
	if (json_span_is_true(supervisor_call_member(r, "kill")))
		r->s->kill_all = true;
	supervisor_fail(r->s, 1, "cancelled by dsfemu down");
}

/* What needs a whole lab. */
static bool op_running(const struct supervisor_call *r, struct json_span op)
{
	static const struct {
		const char *name;
		void (*fn)(const struct supervisor_call *r);
	} ops[] = {
		{ "node", op_node },
		{ "nodes", op_nodes },
		{ "link", supervisor_op_link },
		{ "drain", supervisor_op_drain },
		{ "process", supervisor_op_process },
		{ "asked", op_asked },
	};

	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		if (!json_span_is(op, ops[i].name))
			continue;
		if (r->s->phase != SUPERVISOR_RUNNING)
			supervisor_client_error(r->client, r->id, "the lab is %s",
				r->s->phase == SUPERVISOR_ENDING ? "ending" : "still starting");
		else
			ops[i].fn(r);
		return true;
	}
	return false;
}

void supervisor_op(struct supervisor_client *c, const char *line, size_t size)
{
	struct supervisor_call r = { .client = c, .s = c->s, .line = line, .size = size };
	struct json_span op, id;

	if (!json_span_valid(line, size) || json_span_get(line, size, "op").at == NULL) {
		supervisor_client_error(c, NULL, "not a request");
		return;
	}
	id = supervisor_call_member(&r, "id");
	if (id.at != NULL && id.size <= SUPERVISOR_CALL_ID_MAX) {
		memcpy(r.id_text, id.at, id.size);
		r.id = r.id_text;
	}
	op = supervisor_call_member(&r, "op");
	if (json_span_is(op, "status")) {
		op_status(&r);
	} else if (json_span_is(op, "lab")) {
		op_lab(&r);
	} else if (json_span_is(op, "events")) {
		c->events = true;
		supervisor_client_result(c, r.id, "{}", 2);
	} else if (json_span_is(op, "down")) {
		op_down(&r);
	} else if (!op_running(&r, op)) {
		supervisor_client_error(c, r.id, "no such op");
	}
}
