/*
 * Requests about the processes of nodes: to end, to begin, to stand still.
 */
#include <signal.h>
#include <string.h>
#include "cli/supervisor_call.h"

#define RESTART_MS 30000 /* until a node that was started is ready, at least */
#define OTHERS_MS  1000  /* for the others, once it is */

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

static void wait_process(const struct supervisor_call *r, struct supervisor_node *n, int time_ms,
	bool (*over)(struct supervisor_job *job), void (*done)(struct supervisor_job *job))
{
	struct supervisor_job *job = supervisor_call_job(r, time_ms, done);

	if (job == NULL)
		return;
	job->node = n->index;
	job->over = over;
}

/* One that runs is only waited for. */
static void run_process(const struct supervisor_call *r, struct supervisor_node *n)
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
	struct supervisor_call r = { .client = job->client, .s = job->s, .id = job->id };
	struct supervisor_node *n = &job->s->nodes[job->node];

	if (process_ended(job))
		run_process(&r, n);
	else
		process_done(job);
}

static void start_process(const struct supervisor_call *r, struct supervisor_node *n)
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

static void stop_process(
	const struct supervisor_call *r, struct supervisor_node *n, int signal_number)
{
	end_process(n, signal_number);
	wait_process(r, n, SUPERVISOR_ANSWER_MS, process_ended, process_done);
}

static void restart_process(const struct supervisor_call *r, struct supervisor_node *n)
{
	if (n->pid != 0 && !n->ending)
		end_process(n, SIGTERM);
	start_process(r, n);
}

void supervisor_op_process(const struct supervisor_call *r)
{
	struct supervisor_node *n = supervisor_call_node(r);
	struct json_span action = supervisor_call_member(r, "action");
	struct supervisor_term term;

	if (n == NULL || !supervisor_call_term(r, &term))
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
