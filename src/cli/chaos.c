#include "cli/chaos.h"
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/json_span.h"
#include "cli/lab_call.h"
#include "cli/log.h"
#include "topo/memory.h"
#include "uring/setup.h"
#include "view/json.h"
#include "view/read.h"
#include "view/rows.h"

#define LOOK_WALL_NS   (50 * NS_PER_MS)  /* a look costs every node some answers */
#define MARGIN_WALL_NS (200 * NS_PER_MS) /* from the command to the load's start */
#define BACKSTOP_NS    (2 * NS_PER_S)    /* wall: behind our own heal, should we stand still */
#define WAIT_MS        20                /* longest sleep, for signals and refusals */
#define STOP           "{\"op\":\"workload_stop\"}"

/* Asking. */

/* A request to all nodes (of a role): the array of their answers put together, the caller's. NULL:
 * told. */
static cJSON *ask_nodes(struct chaos *c, const char *role, const char *request)
{
	const char *result;
	char *text;
	cJSON *array;
	int code;

	if (asprintf(&text, "{\"op\":\"nodes\",\"role\":%s,\"request\":%s}", role, request) < 0) {
		log_err("out of memory");
		return NULL;
	}
	code = lab_call(&c->ask, text, &result, NULL);
	free(text);
	if (code != CLI_OK)
		return NULL;
	array = view_json_parse(result, strlen(result));
	if (!cJSON_IsArray(array)) {
		log_err("chaos: the lab's answer can't be read");
		cJSON_Delete(array);
		return NULL;
	}
	return array;
}

static bool tell_nodes(struct chaos *c, const char *role, const char *request)
{
	cJSON *answer = ask_nodes(c, role, request);

	cJSON_Delete(answer);
	return answer != NULL;
}

static bool add_fidelity(struct chaos *c)
{
	cJSON *answers = ask_nodes(c, "null", "{\"op\":\"fidelity\",\"reset\":false}");

	for (const cJSON *a = answers != NULL ? answers->child : NULL; a != NULL; a = a->next) {
		char *text = cJSON_PrintUnformatted(a);

		if (text != NULL)
			fidelity_add(c->fidelity, text, strlen(text));
		free(text);
	}
	cJSON_Delete(answers);
	return answers != NULL;
}

/* Lateness is counted from here on, or what was counted is taken down. */
static bool trust(struct chaos *c, bool on)
{
	bool was = c->trusting;

	c->trusting = on;
	if (on)
		return tell_nodes(c, "null", "{\"op\":\"fidelity\",\"reset\":true}");
	return !was || add_fidelity(c);
}

/* Looks. */

static enum node_drill_state state_of(const char *name)
{
	if (name != NULL && strcmp(name, "frozen") == 0)
		return NODE_DRILL_FROZEN;
	return NODE_DRILL_DEAD;
}

/* What the supervisor keeps. */
static bool look_asked(struct chaos *c)
{
	const char *result, *name;
	const cJSON *row;
	cJSON *asked;

	if (lab_call(&c->ask, "{\"op\":\"asked\"}", &result, NULL) != CLI_OK)
		return false;
	asked = cJSON_Parse(result);
	for (uint32_t i = 0; i < c->topo->nodes_count; i++)
		node_drill_node(c->course, i, NODE_DRILL_RUNNING);
	for (uint32_t i = 0; i < c->topo->links_count; i++)
		node_drill_asked(c->course, i, false, false, false);
	cJSON_ArrayForEach(row, cJSON_GetObjectItemCaseSensitive(asked, "nodes"))
	{
		uint32_t node;

		name = view_json_text(row, "node");
		node = name != NULL ? topo_find_node(c->topo, name) : TOPO_NONE;
		if (node != TOPO_NONE)
			node_drill_node(c->course, node, state_of(view_json_text(row, "state")));
	}
	cJSON_ArrayForEach(row, cJSON_GetObjectItemCaseSensitive(asked, "links"))
	{
		uint32_t port;

		name = view_json_text(row, "link");
		port = name != NULL ? topo_find_port(c->topo, name) : TOPO_NONE;
		if (port != TOPO_NONE)
			node_drill_asked(c->course, c->topo->ports[port].link,
				cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(row, "down")),
				cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(row, "impaired")),
				cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(row, "drained")));
	}
	cJSON_Delete(asked);
	return true;
}

static bool look_rows(struct chaos *c, const char *role, enum node_query query)
{
	struct view_read *read = malloc(sizeof(*read));
	char request[64];
	cJSON *rows;

	snprintf(request, sizeof(request), "{\"op\":\"view\",\"query\":\"%s\"}",
		view_rows_query_name(query));
	rows = read != NULL ? ask_nodes(c, role, request) : NULL;
	for (const cJSON *row = rows != NULL ? rows->child : NULL; row != NULL; row = row->next)
		if (view_read_row(c->topo, row, query, read) == 0)
			node_drill_row(c->course, &read->row);
	cJSON_Delete(rows);
	free(read);
	return rows != NULL;
}

static bool look(struct chaos *c, const struct node_drill_output *out)
{
	if (!look_asked(c) || !look_rows(c, "null", NODE_QUERY_PORT) ||
		!look_rows(c, "null", NODE_QUERY_REACHABILITY) ||
		!look_rows(c, "null", NODE_QUERY_COUNTERS) ||
		(out->flows && !look_rows(c, "\"host\"", NODE_QUERY_WORKLOAD)))
		return false;
	node_drill_observed(c->course, uring_clock_read(&c->clock));
	return true;
}

/* Load. */

static bool start_load(struct chaos *c, uint64_t load_ns)
{
	struct workload_spec spec = c->drill->load.spec;
	uint64_t start_ns;
	cJSON *request = cJSON_CreateObject();
	char *text = NULL;
	bool told;

	if (request == NULL || !tell_nodes(c, "\"host\"", STOP)) {
		cJSON_Delete(request);
		return false;
	}
	start_ns = uring_clock_read(&c->clock).ns + MARGIN_WALL_NS / c->topo->time_dilation +
		   WORKLOAD_START_RTTS * c->topo->base_rtt_ns;
	spec.iterations = 0;
	spec.start_at = DSF_EPOCH;
	spec.stop_at = (dsf_instant){ load_ns };
	if (view_json_add_text(request, "op", "workload") &&
		view_json_add(request, "spec", cli_workload_json(&spec, start_ns)))
		text = cJSON_PrintUnformatted(request);
	cJSON_Delete(request);
	told = text != NULL && tell_nodes(c, "\"host\"", text);
	free(text);
	node_drill_started(c->course, (dsf_instant){ start_ns });
	return told;
}

/* Breaking and healing. */

/* Sends a request of the holding connection; its answer is looked at later. */
static bool hold(struct chaos *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool hold(struct chaos *c, const char *format, ...)
{
	va_list args;
	char *text;
	int err, size;

	va_start(args, format);
	size = vasprintf(&text, format, args);
	va_end(args);
	if (size < 0) {
		log_err("out of memory");
		return false;
	}
	err = lab_client_send(&c->hold, text);
	free(text);
	if (err < 0)
		log_err("chaos: the lab doesn't answer: %s", log_text(err));
	return err == 0;
}

/* Members that tie a request to us, and end it should we stand still. */
static const char *term(
	struct chaos *c, const struct node_drill_output *out, char *text, size_t size)
{
	uint64_t wall_ns;

	text[0] = '\0';
	(void)uring_clock_read(&c->clock);
	wall_ns = uring_clock_wall_until(&c->clock, out->heal_at);
	snprintf(text, size, ",\"hold\":true,\"for_ns\":%" PRIu64 ",\"wall\":true",
		wall_ns + (uint64_t)BACKSTOP_NS);
	return text;
}

static void port_name(const struct topo *t, uint32_t port, char name[TOPO_DRILL_TARGET_MAX])
{
	snprintf(name, TOPO_DRILL_TARGET_MAX, "%s:%s", t->nodes[t->ports[port].node].name,
		t->ports[port].name);
}

static bool same_numbers(const struct node_impairment *a, const struct node_impairment *b)
{
	struct node_impairment x = *a;

	x.silent = b->silent;
	return node_impairment_equal(&x, b);
}

static bool set_link(struct chaos *c, const struct node_drill_output *out)
{
	const struct topo_link *l = &c->topo->links[out->link];
	struct chaos_link *now = &c->links[out->link];
	char ends[2][TOPO_DRILL_TARGET_MAX], until[96];
	const struct node_impairment *i = &out->impairment[0], own = node_impairment_own(l);
	bool sent = true;

	port_name(c->topo, l->port_a, ends[0]);
	port_name(c->topo, l->port_b, ends[1]);
	if (out->down != now->down)
		sent = hold(c, "{\"op\":\"link\",\"link\":\"%s\",\"action\":\"%s\"%s}", ends[0],
			out->down ? "down" : "up",
			out->down ? term(c, out, until, sizeof(until)) : "");
	if (sent && !same_numbers(i, &now->impairment[0]))
		sent = hold(c,
			"{\"op\":\"link\",\"link\":\"%s\",\"action\":\"impair\",\"set\":{"
			"\"loss_ppm\":%" PRIu32 ",\"corrupt_ppm\":%" PRIu32
			",\"reorder_ppm\":%" PRIu32 ",\"delay_ns\":%" PRIu64
			",\"jitter_ns\":%" PRIu64 ",\"rate_bps\":%" PRIu64 "}%s}",
			ends[0], i->loss_ppm, i->corrupt_ppm, i->reorder_ppm, i->delay_ns,
			i->jitter_ns, i->rate_bps,
			same_numbers(i, &own) ? "" : term(c, out, until, sizeof(until)));
	for (int e = 0; e < 2 && sent; e++)
		if (out->impairment[e].silent != now->impairment[e].silent)
			sent = hold(c,
				"{\"op\":\"link\",\"link\":\"%s\",\"action\":\"impair\",\"set\":{"
				"\"silent\":%s}%s}",
				ends[e], out->impairment[e].silent ? "true" : "false",
				out->impairment[e].silent ? term(c, out, until, sizeof(until))
							  : "");
	for (int e = 0; e < 2 && sent; e++)
		if (out->drained[e] && !now->drained[e])
			sent = hold(c, "{\"op\":\"drain\",\"link\":\"%s\",\"drained\":true%s}",
				ends[e], term(c, out, until, sizeof(until)));
	/* A drill has one drain of a link at a time: undrained are both ends. */
	if (sent && !out->drained[0] && !out->drained[1] && (now->drained[0] || now->drained[1]))
		sent = hold(c, "{\"op\":\"drain\",\"link\":\"%s\",\"drained\":false}", ends[0]);
	memcpy(now->drained, out->drained, sizeof(now->drained));
	now->down = out->down;
	memcpy(now->impairment, out->impairment, sizeof(now->impairment));
	return sent;
}

static bool set_node(struct chaos *c, const struct node_drill_output *out)
{
	const char *action = out->state == NODE_DRILL_RUNNING  ? "start"
			     : out->state == NODE_DRILL_FROZEN ? "freeze"
			     : out->polite                     ? "stop"
							       : "kill";
	char until[96] = "";

	return hold(c, "{\"op\":\"process\",\"node\":\"%s\",\"action\":\"%s\"%s}",
		c->topo->nodes[out->node].name, action,
		out->healthy ? "" : term(c, out, until, sizeof(until)));
}

static bool drain_node(struct chaos *c, const struct node_drill_output *out)
{
	char until[96] = "";

	return hold(c, "{\"op\":\"drain\",\"node\":\"%s\",\"drained\":%s%s}",
		c->topo->nodes[out->node].name, out->drained[0] ? "true" : "false",
		out->healthy ? "" : term(c, out, until, sizeof(until)));
}

/* Answers of the holding connection; a refused fault shows in the looks, this says why. */
static bool hear_refusals(struct chaos *c)
{
	char text[512], *line;
	size_t size;
	int err;

	while ((line = lab_client_receive(&c->hold, 0, &size, &err)) != NULL) {
		struct json_span error = json_span_get(line, size, "error");

		if (error.at == NULL)
			continue;
		c->refusals++;
		log_warn("chaos: %s",
			json_span_string(error, text, sizeof(text)) ? text : "refused");
	}
	if (err == -ETIMEDOUT)
		return true;
	log_err("chaos: the lab has gone: %s", log_text(err));
	return false;
}

/* The course. */

static bool act(struct chaos *c, const struct node_drill_output *out)
{
	switch (out->what) {
	case NODE_DRILL_OBSERVE: return look(c, out);
	case NODE_DRILL_START: return start_load(c, out->load_ns);
	case NODE_DRILL_STOP: return tell_nodes(c, "\"host\"", STOP);
	case NODE_DRILL_LINK: return set_link(c, out);
	case NODE_DRILL_NODE: return set_node(c, out);
	case NODE_DRILL_DRAIN: return drain_node(c, out);
	case NODE_DRILL_TRUST: return trust(c, out->trust);
	}
	return false;
}

static void show_progress(struct chaos *c, dsf_instant now)
{
	if (c->progress)
		fprintf(stderr, "\r%.1f s of fabric time since the lab's start ",
			(double)now.ns / 1e9);
}

static void wait_turn(struct chaos *c)
{
	struct pollfd poller = { .fd = c->hold.fd, .events = POLLIN };
	uint64_t wall_ns;

	(void)uring_clock_read(&c->clock);
	wall_ns = uring_clock_wall_until(&c->clock, node_drill_deadline(c->course));
	wall_ns = (wall_ns + NS_PER_MS - 1) / NS_PER_MS;
	(void)poll(&poller, 1, wall_ns < WAIT_MS ? (int)wall_ns : WAIT_MS);
}

int chaos_play(struct chaos *c)
{
	struct node_drill_output out;

	while (!node_drill_done(c->course)) {
		dsf_instant now = uring_clock_read(&c->clock);

		if (*c->interrupts > 1)
			return CLI_FAILED;
		if (*c->interrupts == 1 && !node_drill_interrupted(c->course))
			node_drill_interrupt(c->course, now);
		node_drill_expire(c->course, now);
		while (node_drill_output(c->course, &out, now)) {
			if (!act(c, &out))
				return CLI_FAILED;
			now = uring_clock_read(&c->clock);
		}
		if (!hear_refusals(c))
			return CLI_FAILED;
		show_progress(c, now);
		if (!node_drill_done(c->course))
			wait_turn(c);
	}
	return !c->trusting || add_fidelity(c) ? CLI_OK : CLI_FAILED;
}

void chaos_fidelity(const struct chaos *c, struct view_fidelity *fidelity)
{
	cJSON *json = fidelity_json(c->fidelity, c->topo);

	*fidelity = (struct view_fidelity){
		.valid = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(json, "valid")),
		.quantum_ns = fidelity_quantum_ns(c->topo),
		.late_p99_ns = dsf_histogram_quantile(&c->fidelity->late, 990),
		.emulator_drops = c->fidelity->emulator_drops,
	};
	if (!fidelity->valid) {
		const cJSON *item =
			cJSON_GetObjectItemCaseSensitive(json, "suggested_time_dilation");

		fidelity->suggested_time_dilation =
			cJSON_IsNumber(item) ? (uint32_t)item->valuedouble : 0;
	}
	cJSON_Delete(json);
}

int chaos_open(struct chaos *c, const char *lab, uint64_t epoch_ns)
{
	struct node_drill_config config = { .topo = c->topo,
		.drill = c->drill->drill,
		.flows = c->drill->load.flows,
		.flows_count = c->drill->load.spec.flows_count,
		.draw_seed = c->topo->seed,
		.refresh_ns = URING_REFRESH_MIN_WALL_NS / c->topo->time_dilation,
		.look_min_ns = LOOK_WALL_NS / c->topo->time_dilation,
		.memory = &topo_memory };
	int code = lab_call_open(&c->ask, lab);

	if (code == CLI_OK)
		code = lab_call_open(&c->hold, lab);
	if (code != CLI_OK)
		return code;
	if (config.refresh_ns < c->topo->fabric.reach_refresh_ns)
		config.refresh_ns = c->topo->fabric.reach_refresh_ns;
	uring_clock_init(&c->clock, epoch_ns, c->topo->time_dilation);
	c->links = calloc(c->topo->links_count + 1, sizeof(*c->links));
	c->fidelity = calloc(1, sizeof(*c->fidelity));
	c->course = node_drill_new(&config, uring_clock_read(&c->clock));
	for (uint32_t i = 0; c->links != NULL && i < c->topo->links_count; i++)
		c->links[i].impairment[0] = c->links[i].impairment[1] =
			node_impairment_own(&c->topo->links[i]);
	if (c->links != NULL && c->fidelity != NULL && c->course != NULL)
		return CLI_OK;
	log_err("out of memory");
	return CLI_FAILED;
}

void chaos_close(struct chaos *c)
{
	lab_client_close(&c->hold);
	lab_client_close(&c->ask);
	node_drill_free(c->course);
	free(c->fidelity);
	free(c->links);
}
