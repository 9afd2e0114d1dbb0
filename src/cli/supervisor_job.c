#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include "cli/json_span.h"
#include "cli/supervisor.h"

struct supervisor_job *supervisor_job_new(struct supervisor *s, struct supervisor_client *client,
	const char *id, int time_ms, void (*done)(struct supervisor_job *job))
{
	struct supervisor_job *job, **end = &s->jobs;

	if (s->jobs_count == SUPERVISOR_JOBS_MAX) {
		supervisor_log(s, "more than %d things at once are asked for", SUPERVISOR_JOBS_MAX);
		return NULL;
	}
	job = calloc(1, sizeof(*job));
	if (job == NULL)
		return NULL;
	job->s = s;
	job->client = client;
	job->id = id != NULL ? strdup(id) : NULL;
	job->deadline_ms = supervisor_clock_ms() + time_ms;
	job->node = job->link = TOPO_NONE;
	job->done = done;
	while (*end != NULL)
		end = &(*end)->next;
	*end = job;
	s->jobs_count++;
	return job;
}

static void job_free(struct supervisor_job *job)
{
	for (uint32_t i = 0; i < job->answers_count; i++)
		free(job->answers[i].text);
	free(job->answers);
	free(job->id);
	free(job);
}

/* A new slot; NULL when memory is short. */
static struct supervisor_answer *add_slot(
	struct supervisor_job *job, uint32_t node, const char *query)
{
	if (job->answers_count == job->answers_size) {
		uint32_t size = job->answers_size == 0 ? 16 : 2 * job->answers_size;
		struct supervisor_answer *grown = realloc(job->answers, size * sizeof(*grown));

		if (grown == NULL)
			return NULL;
		job->answers = grown;
		job->answers_size = size;
	}
	job->answers[job->answers_count] =
		(struct supervisor_answer){ .node = node, .query = query };
	return &job->answers[job->answers_count++];
}

static void fail_slot(struct supervisor_answer *answer, const char *why)
{
	answer->failed = true;
	answer->text = strdup(why);
	answer->size = answer->text != NULL ? strlen(why) : 0;
}

/* Sends the request; NULL or why not. */
static const char *put_request(struct supervisor_node *n, const char *members, size_t size)
{
	char head[40];
	int head_size = snprintf(
		head, sizeof(head), "{\"id\":%" PRId64 "%s", n->next_id, size > 0 ? "," : "");

	if (channel_put(&n->control, head, (size_t)head_size) < 0 ||
		channel_put(&n->control, members, size) < 0 ||
		channel_put(&n->control, "}\n", 2) < 0 || channel_send(&n->control) < 0)
		return "its control connection is stuck";
	if (channel_sending(&n->control))
		supervisor_rewatch(n->s, n->control.fd, &n->control_source, EPOLLIN | EPOLLOUT);
	return NULL;
}

void supervisor_job_ask(struct supervisor_job *job, struct supervisor_node *n, const char *query,
	const char *members, size_t size)
{
	struct supervisor_answer *answer = add_slot(job, n->index, query);
	struct supervisor_request *request;
	const char *why = NULL;

	if (answer == NULL)
		return;
	if (!supervisor_node_answers(n) || n->control.fd < 0)
		why = n->s->topo->nodes[n->index].role == TOPO_ROLE_EXTERNAL
			      ? "an external node answers no questions: see dsfemu exec"
			      : supervisor_node_state_name(n);
	request = why == NULL ? calloc(1, sizeof(*request)) : NULL;
	if (why == NULL)
		why = request == NULL ? "out of memory" : put_request(n, members, size);
	if (why != NULL) {
		free(request);
		fail_slot(answer, why);
		return;
	}
	*request = (struct supervisor_request){
		.id = n->next_id++, .job = job, .slot = job->answers_count - 1
	};
	if (n->requests == NULL)
		n->requests_end = &n->requests;
	*n->requests_end = request;
	n->requests_end = &request->next;
	job->waiting++;
}

/* Takes a request out of the node's list. */
static void unlink_request(struct supervisor_node *n, struct supervisor_request **at)
{
	struct supervisor_request *request = *at;

	*at = request->next;
	if (n->requests_end == &request->next)
		n->requests_end = at;
	free(request);
}

static void take_answer(struct supervisor_answer *answer, const char *line, size_t size)
{
	struct json_span result = json_span_get(line, size, "result");
	struct json_span error = json_span_get(line, size, "error");
	char text[256];

	if (result.at == NULL) {
		fail_slot(answer,
			json_span_string(error, text, sizeof(text)) ? text : "no reason given");
		return;
	}
	answer->text = malloc(result.size + 1);
	if (answer->text == NULL) {
		answer->failed = true;
		return;
	}
	memcpy(answer->text, result.at, result.size);
	answer->text[result.size] = '\0';
	answer->size = result.size;
}

void supervisor_node_answer(struct supervisor_node *n, int64_t id, const char *line, size_t size)
{
	struct supervisor_request **at = &n->requests;

	while (*at != NULL && (*at)->id != id)
		at = &(*at)->next;
	if (*at == NULL)
		return; /* its job's time was over */
	assert((*at)->job->waiting > 0);
	(*at)->job->waiting--;
	take_answer(&(*at)->job->answers[(*at)->slot], line, size);
	unlink_request(n, at);
}

void supervisor_node_requests_fail(struct supervisor_node *n, const char *why)
{
	while (n->requests != NULL) {
		struct supervisor_job *job = n->requests->job;

		job->waiting--;
		fail_slot(&job->answers[n->requests->slot], why);
		unlink_request(n, &n->requests);
	}
}

/* Nobody may answer to a job that is gone. */
static void drop_requests(struct supervisor *s, const struct supervisor_job *job)
{
	for (uint32_t i = 0; i < job->answers_count; i++) {
		struct supervisor_node *n = &s->nodes[job->answers[i].node];
		struct supervisor_request **at = &n->requests;

		while (*at != NULL) {
			if ((*at)->job == job)
				unlink_request(n, at);
			else
				at = &(*at)->next;
		}
	}
}

static bool job_over(struct supervisor_job *job)
{
	if (job->waiting == 0 && (job->over == NULL || job->over(job)))
		return true;
	job->expired = supervisor_clock_ms() >= job->deadline_ms;
	return job->expired;
}

/* A job's end may add another one, behind it in the list. */
void supervisor_jobs_run(struct supervisor *s)
{
	struct supervisor_job **at = &s->jobs;

	while (*at != NULL) {
		struct supervisor_job *job = *at;

		if (!job_over(job)) {
			at = &job->next;
			continue;
		}
		if (job->waiting > 0)
			drop_requests(s, job);
		job->done(job);
		*at = job->next;
		s->jobs_count--;
		job_free(job);
	}
}

void supervisor_jobs_forget(struct supervisor *s, const struct supervisor_client *client)
{
	for (struct supervisor_job *job = s->jobs; job != NULL; job = job->next)
		if (job->client == client)
			job->client = NULL;
}

bool supervisor_jobs_wait(const struct supervisor *s, const struct supervisor_client *client)
{
	for (const struct supervisor_job *job = s->jobs; job != NULL; job = job->next)
		if (job->client == client)
			return true;
	return false;
}

int64_t supervisor_jobs_deadline(const struct supervisor *s)
{
	int64_t first = INT64_MAX;

	for (const struct supervisor_job *job = s->jobs; job != NULL; job = job->next)
		if (job->deadline_ms < first)
			first = job->deadline_ms;
	return first;
}

void supervisor_jobs_free(struct supervisor *s)
{
	for (uint32_t i = 0; i < s->topo->nodes_count; i++)
		while (s->nodes[i].requests != NULL)
			unlink_request(&s->nodes[i], &s->nodes[i].requests);
	while (s->jobs != NULL) {
		struct supervisor_job *job = s->jobs;

		s->jobs = job->next;
		job_free(job);
	}
}
