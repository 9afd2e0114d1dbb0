#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "cli/commands.h"
#include "cli/fidelity.h"
#include "cli/lab.h"
#include "cli/lab_call.h"
#include "cli/log.h"
#include "cli/output.h"
#include "cli/workload.h"
#include "node/report.h"
#include "topo/memory.h"
#include "view/json.h"
#include "view/read.h"
#include "view/report.h"
#include "view/rows.h"
#include "view/skew.h"

#define MARGIN_WALL_NS                                                                             \
	(200 * NS_PER_MS) /* from the command to the start: every host has it by then */
/* How long until the next look at all flows of all hosts: a part of what the run has taken so far.
 * A look costs hosts and supervisor more than a small run does, and a long one ends late by at most
 * that part. */
#define POLL_MS_MIN  50
#define POLL_MS_MAX  2000
#define POLL_DIVISOR 8
/* Wall time without a single byte moved, and fabric time: the run has failed. Transports give up
 * sooner than that. */
#define STALL_MS        60000
#define STALL_RTTS      400
#define STALL_DATAGRAMS 4
#define PROGRESS_MS     2000 /* before that nobody wants to know how long it takes */
/* A host that doesn't answer, but isn't dead, is waited for so long. */
#define SILENT_MS 10000
#define STOP      "{\"op\":\"workload_stop\"}"

struct session {
	const struct cli_options *options;
	struct topo *topo;
	struct lab_client client;
	struct cli_workload workload;
	struct node_report *report;
	uint64_t drops_before, drops;
	struct node_skew_meter before, after;
	cJSON *fidelity;
	bool sent_told;
	bool silent; /* a host of the workload that isn't dead didn't answer last time */
};

static volatile sig_atomic_t interrupted; /* the signal's number */

static void on_signal(int number)
{
	interrupted = number;
}

static bool takes_part(const struct session *s, const char *name)
{
	const struct workload_spec *w = &s->workload.spec;
	uint32_t node = topo_find_node(s->topo, name);

	for (uint32_t i = 0; i < w->flows_count; i++)
		if (topo_endpoint(s->topo, w->flows[i].source).host == node ||
			topo_endpoint(s->topo, w->flows[i].target).host == node)
			return true;
	return false;
}

static bool is_gone(const char *why)
{
	return strcmp(why, "dead") == 0 || strcmp(why, "stopped") == 0;
}

/* Has a host of the workload refused a request, or couldn't it be asked? With say, tells the first.
 * Sets s->silent. */
static bool refused(struct session *s, const char *failed, bool say)
{
	cJSON *rows = cJSON_Parse(failed);
	const cJSON *row;
	bool any = false;

	s->silent = false;
	cJSON_ArrayForEach(row, rows)
	{
		const cJSON *node = cJSON_GetObjectItemCaseSensitive(row, "node");
		const cJSON *reason = cJSON_GetObjectItemCaseSensitive(row, "why");
		const char *why = cJSON_IsString(reason) ? reason->valuestring : "no reason given";

		if (!cJSON_IsString(node) || !takes_part(s, node->valuestring))
			continue;
		if (say && !any)
			log_err("run: %s: %s", node->valuestring, why);
		s->silent = s->silent || !is_gone(why);
		any = true;
	}
	cJSON_Delete(rows);
	return any;
}

/* A request to all nodes (of a role): the array of their answers put together, the caller's. NULL:
 * told. With all set each host of the workload must have agreed. */
static cJSON *ask(struct session *s, const char *role, const char *request, bool all)
{
	const char *result, *failed;
	char *text;
	cJSON *array;

	if (asprintf(&text, "{\"op\":\"nodes\",\"role\":%s,\"request\":%s}", role, request) < 0) {
		log_err("out of memory");
		return NULL;
	}
	if (lab_call(&s->client, text, &result, &failed) != CLI_OK) {
		free(text);
		return NULL;
	}
	free(text);
	if (refused(s, failed, all) && all)
		return NULL;
	array = view_json_parse(result, strlen(result));
	if (!cJSON_IsArray(array)) {
		log_err("run: the lab's answer can't be read");
		cJSON_Delete(array);
		return NULL;
	}
	return array;
}

static bool tell(struct session *s, const char *role, const char *request, bool all)
{
	cJSON *answer = ask(s, role, request, all);

	cJSON_Delete(answer);
	return answer != NULL;
}

static bool count_drops(struct session *s, uint64_t *drops)
{
	cJSON *rows = ask(s, "null", "{\"op\":\"view\",\"query\":\"counters\"}", false);

	if (rows != NULL)
		*drops = view_report_network_drops(rows);
	cJSON_Delete(rows);
	return rows != NULL;
}

/* What has left every port by now. */
static bool read_meter(struct session *s, struct node_skew_meter *m)
{
	struct view_read *read = malloc(sizeof(*read));
	cJSON *rows = NULL;

	if (read == NULL || node_skew_open(m, s->topo, &topo_memory) < 0)
		log_err("out of memory");
	else
		rows = ask(s, "null", "{\"op\":\"view\",\"query\":\"port\"}", false);
	for (const cJSON *row = rows != NULL ? rows->child : NULL; row != NULL; row = row->next)
		if (view_read_row(s->topo, row, NODE_QUERY_PORT, read) == 0)
			node_skew_read(m, &read->row);
	free(read);
	cJSON_Delete(rows);
	return rows != NULL;
}

/* Fabric time of the lab: the latest of its hosts' clocks. */
static bool fabric_now(struct session *s, uint64_t *now_ns)
{
	cJSON *answers = ask(s, "\"host\"", "{\"op\":\"now\"}", false);

	*now_ns = 0;
	for (const cJSON *a = answers != NULL ? answers->child : NULL; a != NULL; a = a->next)
		if (view_json_u64(a, "now_ns") > *now_ns)
			*now_ns = view_json_u64(a, "now_ns");
	cJSON_Delete(answers);
	return answers != NULL;
}

static bool start(struct session *s)
{
	uint64_t now_ns, dilation = s->topo->time_dilation > 0 ? s->topo->time_dilation : 1;
	cJSON *request, *spec;
	char *text;
	bool started;

	/* What a killed run left: nobody else runs one, the lock is ours. */
	if (!tell(s, "\"host\"", STOP, false) || !count_drops(s, &s->drops_before) ||
		!read_meter(s, &s->before) ||
		!tell(s, "null", "{\"op\":\"fidelity\",\"reset\":true}", false) ||
		!fabric_now(s, &now_ns))
		return false;
	request = cJSON_CreateObject();
	spec = cli_workload_json(&s->workload.spec,
		now_ns + MARGIN_WALL_NS / dilation + WORKLOAD_START_RTTS * s->topo->base_rtt_ns);
	if (request == NULL || !view_json_add_text(request, "op", "workload") ||
		!view_json_add(request, "spec", spec)) {
		log_err("out of memory");
		cJSON_Delete(request);
		return false;
	}
	text = cJSON_PrintUnformatted(request);
	cJSON_Delete(request);
	started = text != NULL && tell(s, "\"host\"", text, true);
	free(text);
	if (!started)
		tell(s, "\"host\"", STOP, false);
	return started;
}

/* Takes the state of all flows. False: told. */
static bool collect(struct session *s)
{
	struct dsf_histogram *fct = malloc(sizeof(*fct));
	cJSON *rows = ask(s, "\"host\"", "{\"op\":\"view\",\"query\":\"workload\"}", false);
	struct node_row_flow flow;

	if (fct == NULL || rows == NULL) { /* what was there before is still true */
		free(fct);
		cJSON_Delete(rows);
		return false;
	}
	node_report_clear(s->report);
	for (const cJSON *row = rows->child; row != NULL; row = row->next)
		if (view_rows_read_flow(row, &flow, fct) == 0)
			(void)node_report_add(s->report, &flow);
	free(fct);
	cJSON_Delete(rows);
	return true;
}

static int64_t wall_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* A slow flow of datagrams moves nothing between two of them. */
static uint64_t interval_ns(const struct workload_spec *w)
{
	return w->rate_bps == 0 ? 0
				: dsf_time_of_bytes(STALL_DATAGRAMS * w->size_bytes, w->rate_bps);
}

static int64_t stall_ms(const struct session *s)
{
	uint64_t ns = STALL_RTTS * s->topo->base_rtt_ns + interval_ns(&s->workload.spec);
	unsigned __int128 fabric_ms = (unsigned __int128)ns * s->topo->time_dilation / NS_PER_MS;

	if (fabric_ms > INT32_MAX)
		return INT32_MAX;
	return fabric_ms > STALL_MS ? (int64_t)fabric_ms : STALL_MS;
}

static int poll_ms(int64_t elapsed_ms)
{
	int64_t part = elapsed_ms / POLL_DIVISOR;

	return part < POLL_MS_MIN ? POLL_MS_MIN : part > POLL_MS_MAX ? POLL_MS_MAX : (int)part;
}

/* How far it is, and by that how long it still takes. */
static void show_progress(const struct session *s, int64_t elapsed_ms)
{
	uint64_t all = (uint64_t)s->workload.spec.iterations * s->workload.spec.flows_count;
	uint64_t done = s->report->messages;

	if (s->options->quiet || s->options->json || !isatty(STDERR_FILENO))
		return;
	fprintf(stderr, "\r\033[K%" PRIu64 " bytes moved", s->report->bytes);
	if (all > 0)
		fprintf(stderr, ", %" PRIu64 " of %" PRIu64 " messages", done, all);
	if (all > 0 && done > 0 && elapsed_ms > PROGRESS_MS)
		fprintf(stderr, ", about %.0f s more",
			(double)elapsed_ms / 1e3 * ((double)all / (double)done - 1));
	fflush(stderr);
}

/* Once: a run whose load is over doesn't end while datagrams may be in queues. */
static void tell_sent(struct session *s)
{
	if (s->sent_told || !node_report_sent(s->report))
		return;
	s->sent_told = true;
	log_info("run: all is sent, and some hasn't arrived: waiting for what is late");
}

/* Until every flow is done, nothing moves any more, or a signal came. CLI_OK: done. */
static int follow(struct session *s)
{
	int64_t begun_at = wall_ms(), moved_at = begun_at, heard_at = begun_at;
	uint64_t moved = 0;

	for (;;) {
		poll(NULL, 0, poll_ms(wall_ms() - begun_at));
		if (interrupted)
			return 128 + interrupted;
		if (!collect(s))
			return CLI_FAILED;
		show_progress(s, wall_ms() - begun_at);
		if (!s->silent)
			heard_at = wall_ms();
		/* What only hasn't answered in time is not gone. */
		if (node_report_done(s->report) && (!s->silent || wall_ms() - heard_at > SILENT_MS))
			return CLI_OK;
		tell_sent(s);
		if (s->report->bytes != moved) {
			moved = s->report->bytes;
			moved_at = wall_ms();
		}
		if (wall_ms() - moved_at > stall_ms(s)) {
			log_err("run: nothing has moved for %lld s; see `dsfemu status` and "
				"`dsfemu show paths`",
				(long long)stall_ms(s) / 1000);
			return CLI_FAILED;
		}
	}
}

static bool judge(struct session *s)
{
	cJSON *answers = ask(s, "null", "{\"op\":\"fidelity\",\"reset\":false}", false);
	struct fidelity *f = calloc(1, sizeof(*f));
	uint64_t drops;

	for (const cJSON *a = answers != NULL ? answers->child : NULL; f != NULL && a != NULL;
		a = a->next) {
		char *text = cJSON_PrintUnformatted(a);

		if (text != NULL)
			fidelity_add(f, text, strlen(text));
		free(text);
	}
	if (answers != NULL && f != NULL)
		s->fidelity = fidelity_json(f, s->topo);
	cJSON_Delete(answers);
	free(f);
	if (s->fidelity == NULL || !count_drops(s, &drops) || !read_meter(s, &s->after))
		return false;
	s->drops = drops - s->drops_before;
	return true;
}

static int print(struct session *s)
{
	static const struct view_fidelity unknown = { .valid = false }; /* replaced below */
	cJSON *result = view_report_json(s->report, s->drops, &unknown);
	char *text;
	int code;

	if (result == NULL || !view_skew_add(result, &s->before, &s->after) ||
		!cJSON_ReplaceItemInObjectCaseSensitive(result, "fidelity", s->fidelity)) {
		cJSON_Delete(result);
		log_err("out of memory");
		return CLI_FAILED;
	}
	s->fidelity = NULL; /* the result's */
	if (s->options->json)
		return output_json(result);
	text = view_report_text(result);
	cJSON_Delete(result);
	code = text == NULL ? CLI_FAILED : output_write(text, strlen(text));
	free(text);
	return code;
}

static int run_in_lab(struct session *s)
{
	int code = CLI_FAILED, printed;

	s->report = calloc(1, sizeof(*s->report));
	if (s->report == NULL ||
		node_report_init(s->report, s->topo, &s->workload.spec, &topo_memory) < 0) {
		log_err("out of memory");
	} else if (start(s)) {
		code = follow(s);
		if (isatty(STDERR_FILENO) && !s->options->quiet && !s->options->json)
			fprintf(stderr, "\r\033[K");
		if (code != CLI_OK)
			tell(s, "\"host\"", STOP, false);
		node_report_finish(s->report);
		printed = judge(s) ? print(s) : CLI_FAILED;
		if (code == CLI_OK)
			code = printed == CLI_OK && !s->report->verified ? CLI_FAILED : printed;
	}
	if (s->report != NULL && s->report->flows != NULL)
		node_report_close(s->report);
	free(s->report);
	cJSON_Delete(s->fidelity);
	node_skew_close(&s->before);
	node_skew_close(&s->after);
	return code;
}

static const char *get_option(const void *user, const char *option)
{
	return cli_option(user, option);
}

static int run(int argc, char **argv, const struct cli_options *options)
{
	struct session s = { .options = options };
	struct sigaction action = { .sa_handler = on_signal };
	char lab[TOPO_LAB_NAME_MAX + 1], why[512];
	int code = lab_call_root("run");
	uint64_t epoch_ns;

	(void)argc;
	if (code == CLI_OK)
		code = lab_call_choose(options, NULL, lab);
	if (code != CLI_OK)
		return code;
	if (lab_topology(lab, &s.topo, &epoch_ns, why, sizeof(why)) < 0) {
		log_err("run: %s", why);
		return CLI_FAILED;
	}
	code = cli_workload_make(&s.workload, s.topo, argv[0], get_option, options);
	if (code == CLI_OK) {
		sigaction(SIGINT, &action, NULL);
		sigaction(SIGTERM, &action, NULL);
		code = lab_call_open(&s.client, lab);
		if (code == CLI_OK) {
			code = lab_call_lock("run", lab) ? run_in_lab(&s) : CLI_FAILED;
			lab_client_close(&s.client);
		}
		cli_workload_free(&s.workload);
	}
	topo_free(s.topo);
	return code;
}

static const struct cli_option options[] = {
	CLI_WORKLOAD_OPTIONS,
	{ NULL, NULL, false, NULL },
};

const struct cli_command cmd_run = {
	.name = "run",
	.usage = "WORKLOAD",
	.summary = "runs a workload in a lab, checks every byte, reports",
	.help = "WORKLOAD is udp (datagrams without transport, all endpoints to the first), write\n"
		"(first half of the endpoints to the second), permutation (each to one other) or\n"
		"incast (all to the first). Endpoints are GPUs, by host then rail. Every byte is\n"
		"checked where it lands. Times and rates are fabric time, at true scale. Exits 1\n"
		"when something was lost (udp: nothing came), wrong or double. Ctrl-C stops\n"
		"the workload, not the lab.",
	.options = options,
	.words_min = 1,
	.words_max = 1,
	.run = run,
};
