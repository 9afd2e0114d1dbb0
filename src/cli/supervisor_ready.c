#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "cli/lab_status.h"
#include "cli/options.h"
#include "cli/supervisor.h"
#include "topo/bgp.h"

#define MISSING_MS  2000 /* for nodes to say what they miss */
#define ASK_AWAITED "awaited"

/* Does a node have neighbours that aren't ours? They come when somebody starts them. */
static bool has_others(const struct topo *t, uint32_t node)
{
	struct topo_bgp_walk walk = { 0 };
	struct topo_bgp_peer peer;

	while (topo_bgp_next(t, node, &walk, &peer))
		if (!topo_is_routed(&t->nodes[peer.node]))
			return true;
	return false;
}

/* Of the BGP neighbours of a node, those that aren't ours and that haven't come yet. */
static void add_awaited(const struct topo *t, const struct supervisor_answer *a, cJSON *awaited)
{
	cJSON *rows = cJSON_ParseWithLength(a->text, a->size), *row, *next;

	for (row = cJSON_IsArray(rows) ? rows->child : NULL; row != NULL; row = next) {
		const char *state = lab_status_text(row, "state");
		uint32_t peer = topo_find_node(t, lab_status_text(row, "peer_node"));
		cJSON *entry;

		next = row->next;
		if (peer == TOPO_NONE || topo_is_routed(&t->nodes[peer]) ||
			strcmp(state, "Established") == 0)
			continue;
		entry = cJSON_CreateObject();
		cJSON_AddStringToObject(entry, "node", t->nodes[a->node].name);
		cJSON_AddStringToObject(entry, "peer", lab_status_text(row, "peer"));
		cJSON_AddStringToObject(entry, "peer_node", t->nodes[peer].name);
		cJSON_AddStringToObject(entry, "state", state);
		cJSON_AddItemToArray(awaited, entry);
	}
	cJSON_Delete(rows);
}

static void told_ready(struct supervisor_job *job)
{
	cJSON *object = cJSON_CreateObject(), *awaited = cJSON_AddArrayToObject(object, "awaited");

	for (uint32_t i = 0; i < job->answers_count; i++)
		if (strcmp(job->answers[i].query, ASK_AWAITED) == 0 &&
			job->answers[i].text != NULL && !job->answers[i].failed)
			add_awaited(job->s->topo, &job->answers[i], awaited);
	cJSON_AddItemToObject(object, "status", supervisor_status_object(job));
	if (job->s->failure[0] != '\0') { /* --keep */
		cJSON_AddStringToObject(object, "error", job->s->failure);
		cJSON_AddItemToObject(object, "missing", job->s->missing);
		job->s->missing = NULL;
		job->s->failure[0] = '\0';
	}
	cJSON_AddNumberToObject(object, "code", job->s->exit_code);
	if (job->s->phase == SUPERVISOR_RUNNING)
		supervisor_tell_last(job->s, object);
	else
		cJSON_Delete(object); /* interrupted meanwhile */
}

static void reset_fidelity(struct supervisor_job *job)
{
	static const char members[] = "\"op\":\"view\",\"query\":\"bgp_peer\"";
	struct supervisor *s = job->s;
	struct supervisor_job *status;

	if (s->phase != SUPERVISOR_RUNNING)
		return;
	status = supervisor_status_ask(s, NULL, NULL, told_ready);
	if (status == NULL)
		supervisor_fail(s, CLI_FAILED, "out of memory");
	for (uint32_t i = 0; status != NULL && i < s->topo->nodes_count; i++)
		if (has_others(s->topo, i) && supervisor_node_answers(&s->nodes[i]))
			supervisor_job_ask(
				status, &s->nodes[i], ASK_AWAITED, members, sizeof(members) - 1);
}

/* Everybody is there: links get their delays, host ports their rate. That starting a lab kept this
 * machine busy says nothing of how it runs, so lateness is counted from here. */
static void become_running(struct supervisor *s)
{
	static const char started[] = "\"op\":\"started\"";
	static const char members[] = "\"op\":\"fidelity\",\"reset\":true";
	struct supervisor_job *job;

	s->phase = SUPERVISOR_RUNNING;
	s->deadline_ms = INT64_MAX;
	supervisor_log(s, "%" PRIu32 " of %" PRIu32 " nodes are ready", s->ready_count,
		s->processes_count);
	supervisor_write_pids(s);
	job = supervisor_job_new(s, NULL, NULL, MISSING_MS, reset_fidelity);
	if (job == NULL) {
		supervisor_fail(s, CLI_FAILED, "out of memory");
		return;
	}
	for (uint32_t i = 0; i < s->topo->nodes_count; i++) {
		if (!supervisor_node_answers(&s->nodes[i]))
			continue;
		supervisor_job_ask(job, &s->nodes[i], "started", started, sizeof(started) - 1);
		supervisor_job_ask(job, &s->nodes[i], "fidelity", members, sizeof(members) - 1);
	}
}

static void add_missing(struct supervisor *s, const char *node, const char *what, const char *seen,
	const char *expected)
{
	cJSON *row = cJSON_CreateObject();

	cJSON_AddStringToObject(row, "node", node);
	cJSON_AddStringToObject(row, "what", what);
	cJSON_AddStringToObject(row, "seen", seen);
	cJSON_AddStringToObject(row, "expected", expected);
	cJSON_AddItemToArray(s->missing, row);
}

static const char *text_of(const cJSON *row, const char *key)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(row, key);

	return cJSON_IsString(item) ? item->valuestring : NULL;
}

/* A row of the "ready" view: {"node","what","port","other"}. */
static void add_missing_row(struct supervisor *s, const char *node, const cJSON *row)
{
	const char *what = text_of(row, "what"), *port = text_of(row, "port");
	const char *other = text_of(row, "other");
	char about[64], expected[TOPO_NODE_NAME_MAX + 32];

	snprintf(about, sizeof(about), "%.30s%s%.16s", what != NULL ? what : "something",
		port != NULL ? " " : "", port != NULL ? port : "");
	snprintf(expected, sizeof(expected), "%s%.48s", other != NULL ? "to " : "present",
		other != NULL ? other : "");
	add_missing(s, node, about, "nothing", expected);
}

static void told_missing(struct supervisor_job *job)
{
	struct supervisor *s = job->s;

	for (uint32_t i = 0; i < job->answers_count; i++) {
		const struct supervisor_answer *a = &job->answers[i];
		const char *node = s->topo->nodes[a->node].name;
		cJSON *rows = a->text != NULL && !a->failed ? cJSON_Parse(a->text) : NULL;
		const cJSON *row = rows != NULL ? rows->child : NULL;

		if (s->nodes[a->node].ready)
			row = NULL; /* meanwhile */
		else if (!cJSON_IsArray(rows))
			add_missing(s, node, "process", a->text != NULL ? a->text : "no answer",
				"an answer");
		for (; row != NULL; row = row->next)
			add_missing_row(s, node, row);
		cJSON_Delete(rows);
	}
	if (s->phase != SUPERVISOR_STARTING)
		return;
	if (!s->options.keep) {
		supervisor_fail(
			s, CLI_FAILED, "not ready after %" PRIu32 " s", s->options.timeout_s);
		return;
	}
	snprintf(s->failure, sizeof(s->failure), "not ready after %" PRIu32 " s",
		s->options.timeout_s);
	s->exit_code = CLI_FAILED;
	become_running(s);
}

static void time_over(struct supervisor *s)
{
	static const char members[] = "\"op\":\"view\",\"query\":\"ready\"";
	struct supervisor_job *job = supervisor_job_new(s, NULL, NULL, MISSING_MS, told_missing);

	s->deadline_ms = INT64_MAX;
	s->missing = cJSON_CreateArray();
	if (job == NULL || s->missing == NULL) {
		supervisor_fail(
			s, CLI_FAILED, "not ready after %" PRIu32 " s", s->options.timeout_s);
		return;
	}
	for (uint32_t i = 0; i < s->topo->nodes_count; i++)
		if (supervisor_node_answers(&s->nodes[i]) && !s->nodes[i].ready)
			supervisor_job_ask(
				job, &s->nodes[i], "ready", members, sizeof(members) - 1);
}

void supervisor_ready_look(struct supervisor *s)
{
	if (s->phase != SUPERVISOR_STARTING)
		return;
	supervisor_progress(s, "ready", s->ready_count, s->processes_count);
	if (s->ready_count == s->processes_count && s->started_count == s->processes_count)
		become_running(s);
	else if (supervisor_clock_ms() >= s->deadline_ms)
		time_over(s);
}
