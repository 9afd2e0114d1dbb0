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
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/json_span.h"
#include "cli/supervisor.h"

#define ID_MAX     64
#define RESTART_MS 30000 /* until a node that was started is ready, at least */
#define OTHERS_MS  1000  /* for the others, once it is */
#define FLAPS_MAX  100000
#define TERM_MAX   (86400 * NS_PER_S) /* of wall time */

struct request {
	struct supervisor_client *client;
	struct supervisor *s;
	const char *line;
	size_t size;
	char id_text[ID_MAX + 1];
	const char *id; /* NULL: none */
};

static struct json_span member(const struct request *r, const char *key)
{
	return json_span_get(r->line, r->size, key);
}

/* The node that the request names; NULL and answered when there is none. */
static struct supervisor_node *named_node(const struct request *r)
{
	char name[TOPO_NODE_NAME_MAX + 1] = "?";
	uint32_t index = TOPO_NONE;

	if (json_span_string(member(r, "node"), name, sizeof(name)))
		index = topo_find_node(r->s->topo, name);
	if (index != TOPO_NONE)
		return &r->s->nodes[index];
	supervisor_client_wrong(r->client, r->id, "%s: no such node", name);
	return NULL;
}

static struct supervisor_job *new_job(
	const struct request *r, int time_ms, void (*done)(struct supervisor_job *job))
{
	struct supervisor_job *job = supervisor_job_new(r->s, r->client, r->id, time_ms, done);

	if (job == NULL)
		supervisor_client_error(r->client, r->id, "too much is asked for at once");
	return job;
}

/* Members of the request object inside a request; absent: answered. */
static struct json_span inner_members(const struct request *r)
{
	struct json_span request = member(r, "request");

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

static void op_node(const struct request *r)
{
	struct supervisor_node *n = named_node(r);
	struct json_span members = n != NULL ? inner_members(r) : (struct json_span){ NULL, 0 };
	struct supervisor_job *job =
		members.at != NULL ? new_job(r, SUPERVISOR_ANSWER_MS, relayed) : NULL;

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

static void op_nodes(const struct request *r)
{
	struct json_span members = inner_members(r), role = member(r, "role");
	struct supervisor_job *job =
		members.at != NULL ? new_job(r, SUPERVISOR_ANSWER_MS, relayed_all) : NULL;

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

static void op_status(const struct request *r)
{
	if (supervisor_status_ask(r->s, r->client, r->id, status_done) == NULL)
		supervisor_client_error(r->client, r->id, "too much is asked for at once");
}

/* lab */

static void op_lab(const struct request *r)
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

/* How long is it asked for? */

static bool is_true(struct json_span span)
{
	return span.size == 4 && memcmp(span.at, "true", 4) == 0;
}

/* A duration of the request in wall milliseconds, rounded up; 0 when absent. False: impossible. */
static bool take_wall_ms(const struct request *r, const char *key, int64_t *ms)
{
	struct json_span span = member(r, key);
	uint64_t dilation = is_true(member(r, "wall")) ? 1 : r->s->topo->time_dilation;
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

/* False: answered. */
static bool take_term(const struct request *r, struct supervisor_term *term)
{
	*term = (struct supervisor_term){ .client = is_true(member(r, "hold")) ? r->client : NULL };
	if (take_wall_ms(r, "for_ns", &term->for_ms))
		return true;
	supervisor_client_wrong(
		r->client, r->id, "the time must be from 1 ms to 24 h of wall time");
	return false;
}

/* link */

static int impairment_text(char *text, size_t size, const struct node_impairment *i)
{
	return snprintf(text, size,
		"{\"loss_ppm\":%" PRIu32 ",\"corrupt_ppm\":%" PRIu32 ",\"delay_ns\":%" PRIu64
		",\"jitter_ns\":%" PRIu64 ",\"reorder_ppm\":%" PRIu32 ",\"rate_bps\":%" PRIu64
		",\"silent\":%s}",
		i->loss_ppm, i->corrupt_ppm, i->delay_ns, i->jitter_ns, i->reorder_ppm, i->rate_bps,
		i->silent ? "true" : "false");
}

int supervisor_impair_text(const struct supervisor *s, uint32_t port, char *text, size_t size)
{
	const struct topo_port *p = &s->topo->ports[port];
	const struct node_impairment *ends = s->links[p->link].impairment;
	int end = s->topo->links[p->link].port_a == port ? 0 : 1;
	char out[256], in[256];

	impairment_text(out, sizeof(out), &ends[end]);
	impairment_text(in, sizeof(in), &ends[1 - end]);
	return snprintf(text, size,
		"\"op\":\"impair\",\"port\":\"%s\",\"impairment\":%s,\"inbound\":%s", p->name, out,
		in);
}

/* Changes *value when key is there; false: it isn't a number up to max. */
static bool take_number(struct json_span set, const char *key, uint64_t max, uint64_t *value)
{
	struct json_span span = json_span_get(set.at, set.size, key);
	int64_t number;

	if (span.at == NULL)
		return true;
	if (!json_span_integer(span, &number) || number < 0 || (uint64_t)number > max)
		return false;
	*value = (uint64_t)number;
	return true;
}

static bool take_part(struct json_span set, const char *key, uint32_t *value)
{
	uint64_t number = *value;
	bool good = take_number(set, key, 1000000, &number);

	*value = (uint32_t)number;
	return good;
}

static bool take_impairment(struct json_span set, struct node_impairment *i)
{
	return take_part(set, "loss_ppm", &i->loss_ppm) &&
	       take_part(set, "corrupt_ppm", &i->corrupt_ppm) &&
	       take_part(set, "reorder_ppm", &i->reorder_ppm) &&
	       take_number(set, "delay_ns", 1000000000000u, &i->delay_ns) &&
	       take_number(set, "jitter_ns", 1000000000000u, &i->jitter_ns) &&
	       take_number(set, "rate_bps", 1000000000000000u, &i->rate_bps);
}

static void impaired(struct supervisor_job *job)
{
	for (uint32_t i = 0; i < job->answers_count; i++) {
		const struct supervisor_answer *a = &job->answers[i];

		/* One that doesn't run is told when it is started. */
		if ((a->text == NULL || a->failed) &&
			job->s->nodes[a->node].state == SUPERVISOR_NODE_ALIVE) {
			supervisor_client_error(job->client, job->id, "%s: %s",
				job->s->topo->nodes[a->node].name,
				a->text != NULL ? a->text : "no answer");
			return;
		}
	}
	supervisor_client_result(job->client, job->id, "{}", 2);
}

static void tell_ends(const struct request *r, uint32_t link, bool drains)
{
	const struct topo_link *l = &r->s->topo->links[link];
	uint32_t ports[2] = { l->port_a, l->port_b };
	struct supervisor_job *job = new_job(r, SUPERVISOR_ANSWER_MS, impaired);

	for (int end = 0; job != NULL && end < 2; end++) {
		const struct topo_port *p = &r->s->topo->ports[ports[end]];
		char text[SUPERVISOR_IMPAIR_TEXT_MAX];
		int size = supervisor_impair_text(r->s, ports[end], text, sizeof(text));

		if (r->s->topo->nodes[p->node].role != TOPO_ROLE_EXTERNAL)
			supervisor_job_ask(
				job, &r->s->nodes[p->node], "impair", text, (size_t)size);
		if (drains && !p->ethernet)
			supervisor_drain_ask_port(job, ports[end]);
	}
}

/* The knobs that an impair request turns. */
static uint32_t knobs_of(struct json_span set, int named)
{
	static const struct {
		const char *key;
		uint32_t knob;
	} keys[] = { { "loss_ppm", SUPERVISOR_KNOB_LOSS },
		{ "corrupt_ppm", SUPERVISOR_KNOB_CORRUPT },
		{ "reorder_ppm", SUPERVISOR_KNOB_REORDER }, { "delay_ns", SUPERVISOR_KNOB_DELAY },
		{ "jitter_ns", SUPERVISOR_KNOB_JITTER }, { "rate_bps", SUPERVISOR_KNOB_RATE } };
	uint32_t knobs = 0;

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (json_span_get(set.at, set.size, keys[i].key).at != NULL)
			knobs |= keys[i].knob;
	if (json_span_get(set.at, set.size, "silent").at != NULL)
		knobs |= SUPERVISOR_KNOB_SILENT(named);
	return knobs;
}

/* False: answered. */
static bool begin_term(
	const struct request *r, uint32_t link, uint32_t knobs, const struct supervisor_term *term)
{
	if (supervisor_heal_link(r->s, link, knobs, term) == 0)
		return true;
	supervisor_client_error(r->client, r->id, "out of memory");
	return false;
}

/* All knobs go to both ends, but silence is one-way: of the end that was named. */
static void impair(
	const struct request *r, uint32_t port, uint32_t link, const struct supervisor_term *term)
{
	struct supervisor_link *l = &r->s->links[link];
	struct json_span set = member(r, "set"), silent;
	struct node_impairment ends[2] = { l->impairment[0], l->impairment[1] };
	int named = r->s->topo->links[link].port_a == port ? 0 : 1;

	if (set.at == NULL || set.at[0] != '{' || !take_impairment(set, &ends[0]) ||
		!take_impairment(set, &ends[1])) {
		supervisor_client_wrong(r->client, r->id, "impairment out of range");
		return;
	}
	silent = json_span_get(set.at, set.size, "silent");
	if (silent.at != NULL)
		ends[named].silent = is_true(silent);
	if (!begin_term(r, link, knobs_of(set, named), term))
		return;
	memcpy(l->impairment, ends, sizeof(ends));
	supervisor_event_asked(r->s, link);
	tell_ends(r, link, false);
}

/* down and up are toggled count times; the first one is done by op_link. False: answered. */
static bool take_flap(const struct request *r, struct supervisor_term *term)
{
	int64_t count, period_ms;

	if (!json_span_integer(member(r, "count"), &count) || count < 1 || count > FLAPS_MAX ||
		!take_wall_ms(r, "period_ns", &period_ms) || period_ms < 2) {
		supervisor_client_wrong(r->client, r->id,
			"a flap takes 1 to %d downs and a period of 2 ms to 24 h of wall time",
			FLAPS_MAX);
		return false;
	}
	term->toggles = 2 * (uint32_t)count - 2;
	term->half_ms = period_ms / 2;
	term->for_ms = period_ms;
	return true;
}

static void op_link(const struct request *r)
{
	char name[TOPO_NODE_NAME_MAX + TOPO_PORT_NAME_MAX + 2] = "?";
	struct json_span action = member(r, "action");
	uint32_t port = TOPO_NONE, link;
	struct supervisor_term term;
	bool flap = json_span_is(action, "flap"), reset = json_span_is(action, "reset");
	int err;

	if (json_span_string(member(r, "link"), name, sizeof(name)))
		port = topo_find_port(r->s->topo, name);
	if (port == TOPO_NONE) {
		supervisor_client_wrong(r->client, r->id, "%s: no such link", name);
		return;
	}
	link = r->s->topo->ports[port].link;
	if (!take_term(r, &term) || (flap && !take_flap(r, &term)))
		return;
	if (json_span_is(action, "impair")) {
		impair(r, port, link, &term);
		return;
	}
	if (!json_span_is(action, "down") && !json_span_is(action, "up") && !flap && !reset) {
		supervisor_client_wrong(r->client, r->id, "no such action");
		return;
	}
	if (!begin_term(r, link, reset ? SUPERVISOR_KNOBS : SUPERVISOR_KNOB_DOWN, &term))
		return;
	r->s->links[link].down = flap || json_span_is(action, "down");
	if (reset)
		memset(r->s->links[link].drained, 0, sizeof(r->s->links[link].drained));
	if (reset)
		r->s->links[link].impairment[0] = r->s->links[link].impairment[1] =
			node_impairment_own(&r->s->topo->links[link]);
	supervisor_event_asked(r->s, link);
	err = supervisor_link_apply(r->s, link);
	if (err < 0) {
		supervisor_client_error(r->client, r->id, "%s: %s", name, strerror(-err));
	} else if (reset) {
		tell_ends(r, link, true);
	} else {
		supervisor_client_result(r->client, r->id, "{}", 2);
	}
}

/* drain */

static void drain_link(const struct request *r, uint32_t port, const struct supervisor_term *term)
{
	uint32_t link = r->s->topo->ports[port].link;
	const struct topo_link *l = &r->s->topo->links[link];
	int named = l->port_a == port ? 0 : 1;
	bool drained = is_true(member(r, "drained"));
	uint32_t ends = drained ? SUPERVISOR_KNOB_DRAIN(named)
				: SUPERVISOR_KNOB_DRAIN(0) | SUPERVISOR_KNOB_DRAIN(1);
	struct supervisor_job *job;

	if (r->s->topo->ports[port].ethernet) {
		supervisor_client_wrong(r->client, r->id,
			"%s:%s: only links that carry cells are drained, and this one carries "
			"packets: set it down",
			r->s->topo->nodes[r->s->topo->ports[port].node].name,
			r->s->topo->ports[port].name);
		return;
	}
	if (!begin_term(r, link, ends, term))
		return;
	r->s->links[link].drained[named] = drained;
	if (!drained)
		r->s->links[link].drained[1 - named] = false;
	supervisor_event_asked(r->s, link);
	job = new_job(r, SUPERVISOR_ANSWER_MS, impaired);
	if (job == NULL)
		return;
	supervisor_drain_ask_port(job, l->port_a);
	supervisor_drain_ask_port(job, l->port_b);
}

static void drain_node(
	const struct request *r, struct supervisor_node *n, const struct supervisor_term *term)
{
	struct supervisor_job *job;

	if (r->s->topo->nodes[n->index].switch_index == TOPO_NONE) {
		supervisor_client_wrong(r->client, r->id,
			"%s: only switches of a cell fabric are drained",
			r->s->topo->nodes[n->index].name);
	} else if (supervisor_heal_drain(r->s, n, term) < 0) {
		supervisor_client_error(r->client, r->id, "out of memory");
	} else {
		n->drained = is_true(member(r, "drained"));
		supervisor_event_process(n, n->drained ? "drained" : "undrained");
		job = new_job(r, SUPERVISOR_ANSWER_MS, impaired);
		if (job != NULL)
			supervisor_drain_ask_node(job, n);
	}
}

static void op_drain(const struct request *r)
{
	char name[TOPO_NODE_NAME_MAX + TOPO_PORT_NAME_MAX + 2] = "?";
	struct supervisor_node *n;
	struct supervisor_term term;
	uint32_t port = TOPO_NONE;

	if (!take_term(r, &term))
		return;
	if (member(r, "link").at == NULL) {
		n = named_node(r);
		if (n != NULL)
			drain_node(r, n, &term);
		return;
	}
	if (json_span_string(member(r, "link"), name, sizeof(name)))
		port = topo_find_port(r->s->topo, name);
	if (port == TOPO_NONE)
		supervisor_client_wrong(r->client, r->id, "%s: no such link", name);
	else
		drain_link(r, port, &term);
}

/* process */

static bool process_ended(struct supervisor_job *job)
{
	const struct supervisor_node *n = &job->s->nodes[job->node];

	return n->pid == 0 && !n->leaving;
}

/* Ready, and the others that it kept from being so, where nothing else does. */
static bool process_ready(struct supervisor_job *job)
{
	const struct supervisor_node *n = &job->s->nodes[job->node];
	int64_t others_ms = supervisor_clock_ms() + OTHERS_MS;

	if (n->state != SUPERVISOR_NODE_ALIVE || job->s->ready_count == job->s->processes_count)
		return true;
	if (n->ready && others_ms < job->deadline_ms)
		job->deadline_ms = others_ms;
	return false;
}

static void process_done(struct supervisor_job *job)
{
	const struct supervisor_node *n = &job->s->nodes[job->node];
	const char *name = job->s->topo->nodes[job->node].name;

	if (job->over == process_ended ? !job->expired : n->ready)
		supervisor_client_result(job->client, job->id, "{}", 2);
	else if (job->over == process_ended)
		supervisor_client_error(job->client, job->id, "%s: its process doesn't end", name);
	else if (n->state != SUPERVISOR_NODE_ALIVE)
		supervisor_client_error(job->client, job->id,
			"%s: its process ended with code %d: %s", name, n->exit_code, n->last_line);
	else
		supervisor_client_error(job->client, job->id,
			"%s: started, but not ready in time: see dsfemu status", name);
}

static void wait_process(const struct request *r, struct supervisor_node *n, int time_ms,
	bool (*over)(struct supervisor_job *job), void (*done)(struct supervisor_job *job))
{
	struct supervisor_job *job = new_job(r, time_ms, done);

	if (job == NULL)
		return;
	job->node = n->index;
	job->over = over;
}

/* One that runs is only waited for. */
static void run_process(const struct request *r, struct supervisor_node *n)
{
	int err = 0;

	if (r->s->phase == SUPERVISOR_ENDING) { /* nobody would end it again */
		supervisor_client_error(r->client, r->id, "the lab is ending");
		return;
	}
	if (n->state == SUPERVISOR_NODE_FROZEN) {
		supervisor_node_thaw(n);
	} else if (n->state != SUPERVISOR_NODE_ALIVE) {
		err = supervisor_node_start(n);
	}
	if (err < 0)
		supervisor_client_error(r->client, r->id, "%s: can't start: %s",
			r->s->topo->nodes[n->index].name, strerror(-err));
	else
		wait_process(r, n, RESTART_MS, process_ready, process_done);
}

/* The process that was to end first has done so. */
static void old_ended(struct supervisor_job *job)
{
	struct request r = { .client = job->client, .s = job->s, .id = job->id };
	struct supervisor_node *n = &job->s->nodes[job->node];

	if (process_ended(job))
		run_process(&r, n);
	else
		process_done(job);
}

static void start_process(const struct request *r, struct supervisor_node *n)
{
	if (n->ending)
		wait_process(r, n, SUPERVISOR_ANSWER_MS, process_ended, old_ended);
	else
		run_process(r, n);
}

static void end_process(struct supervisor_node *n, int signal_number)
{
	n->stop_asked = signal_number == SIGTERM;
	n->ending = true;
	supervisor_node_signal(n, signal_number);
	if (n->state == SUPERVISOR_NODE_FROZEN) /* it must run to hear */
		supervisor_node_signal(n, SIGCONT);
	if (n->s->topo->nodes[n->index].role == TOPO_ROLE_EXTERNAL)
		supervisor_external_ending(n);
}

static void stop_process(const struct request *r, struct supervisor_node *n, int signal_number)
{
	end_process(n, signal_number);
	wait_process(r, n, SUPERVISOR_ANSWER_MS, process_ended, process_done);
}

static void restart_process(const struct request *r, struct supervisor_node *n)
{
	if (n->pid != 0 && n->state != SUPERVISOR_NODE_FROZEN && !n->ending)
		end_process(n, SIGTERM);
	start_process(r, n);
}

static void op_process(const struct request *r)
{
	struct supervisor_node *n = named_node(r);
	struct json_span action = member(r, "action");
	struct supervisor_term term;

	if (n == NULL || !take_term(r, &term))
		return;
	if (n->state == SUPERVISOR_NODE_EXTERNAL) {
		supervisor_client_wrong(r->client, r->id,
			"%s: an external node without a command has no process",
			r->s->topo->nodes[n->index].name);
	} else if (json_span_is(action, "start")) {
		(void)supervisor_heal_node(r->s, n, &(struct supervisor_term){ .for_ms = 0 });
		start_process(r, n);
	} else if (json_span_is(action, "restart")) {
		(void)supervisor_heal_node(r->s, n, &(struct supervisor_term){ .for_ms = 0 });
		restart_process(r, n);
	} else if (n->pid == 0) {
		supervisor_client_error(r->client, r->id, "%s: it doesn't run, it is %s",
			r->s->topo->nodes[n->index].name, supervisor_node_state_name(n));
	} else if (!json_span_is(action, "kill") && !json_span_is(action, "stop") &&
		   !json_span_is(action, "freeze")) {
		supervisor_client_wrong(r->client, r->id, "no such action");
	} else if (supervisor_heal_node(r->s, n, &term) < 0) {
		supervisor_client_error(r->client, r->id, "out of memory");
	} else if (json_span_is(action, "freeze")) {
		supervisor_event_process(n, "frozen");
		supervisor_node_signal(n, SIGSTOP);
		n->state = SUPERVISOR_NODE_FROZEN;
		supervisor_client_result(r->client, r->id, "{}", 2);
	} else {
		stop_process(r, n, json_span_is(action, "kill") ? SIGKILL : SIGTERM);
	}
}

static void op_asked(const struct request *r)
{
	supervisor_client_result_json(r->client, r->id, supervisor_asked_object(r->s));
}

static void op_down(const struct request *r)
{
	r->client->wants_end = true;
	if (is_true(member(r, "kill")))
		r->s->kill_all = true;
	supervisor_fail(r->s, 1, "cancelled by dsfemu down");
}

/* What needs a whole lab. */
static bool op_running(const struct request *r, struct json_span op)
{
	static const struct {
		const char *name;
		void (*fn)(const struct request *r);
	} ops[] = {
		{ "node", op_node },
		{ "nodes", op_nodes },
		{ "link", op_link },
		{ "drain", op_drain },
		{ "process", op_process },
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
	struct request r = { .client = c, .s = c->s, .line = line, .size = size };
	struct json_span op, id;

	if (!json_span_valid(line, size) || json_span_get(line, size, "op").at == NULL) {
		supervisor_client_error(c, NULL, "not a request");
		return;
	}
	id = member(&r, "id");
	if (id.at != NULL && id.size <= ID_MAX) {
		memcpy(r.id_text, id.at, id.size);
		r.id = r.id_text;
	}
	op = member(&r, "op");
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
