#include "uring/request.h"
#include <cjson/cJSON.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "uring/log.h"
#include "uring/setup.h"
#include "view/rows.h"
#include "workload/pattern.h"

#define EXACT_MAX 9007199254740992.0 /* cJSON keeps numbers as doubles: exact up to 2^53 */

/* Reading. Each returns false when the key is there with a value that doesn't fit. */

static bool read_text_number(const char *text, uint64_t *value)
{
	char *end;

	errno = 0;
	*value = strtoull(text, &end, 10);
	return text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0;
}

/* A number of 0..max; larger than 2^53 it must be given as a string of digits. */
static bool read_number(const cJSON *object, const char *key, uint64_t max, uint64_t *value)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
	uint64_t number;

	if (item == NULL || cJSON_IsNull(item))
		return true; /* the caller's default stays */
	if (cJSON_IsString(item)) {
		if (!read_text_number(item->valuestring, &number))
			return false;
	} else {
		if (!cJSON_IsNumber(item) || item->valuedouble < 0 || item->valuedouble > EXACT_MAX)
			return false;
		number = (uint64_t)item->valuedouble;
		if ((double)number != item->valuedouble)
			return false;
	}
	if (number > max)
		return false;
	*value = number;
	return true;
}

static bool read_u32(const cJSON *object, const char *key, uint32_t *value)
{
	uint64_t number = *value;
	bool fits = read_number(object, key, UINT32_MAX, &number);

	*value = (uint32_t)number;
	return fits;
}

static bool read_flag(const cJSON *object, const char *key, bool *value)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);

	if (item == NULL)
		return true;
	*value = cJSON_IsTrue(item);
	return cJSON_IsBool(item);
}

static const char *read_string(const cJSON *object, const char *key)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);

	return cJSON_IsString(item) ? item->valuestring : "";
}

/* Writing. */

static void begin_answer(struct uring_process *p, double id)
{
	if (id >= 0)
		uring_text_print(&p->control.next, "{\"id\":%.0f,", id);
	else
		uring_text_print(&p->control.next, "{\"id\":null,");
}

static void answer_error(struct uring_process *p, double id, const char *text)
{
	size_t start = p->control.next.size;

	begin_answer(p, id);
	uring_text_print(&p->control.next, "\"error\":");
	uring_text_string(&p->control.next, text);
	uring_text_print(&p->control.next, "}");
	uring_text_end_line(&p->control.next, start);
}

static void answer_empty(struct uring_process *p, double id)
{
	size_t start = p->control.next.size;

	begin_answer(p, id);
	uring_text_print(&p->control.next, "\"result\":{}}");
	uring_text_end_line(&p->control.next, start);
}

/* Frees result; NULL: memory was short when it was made. */
static void answer_json(struct uring_process *p, double id, cJSON *result)
{
	char *text = result == NULL ? NULL : cJSON_PrintUnformatted(result);
	size_t start = p->control.next.size;
	bool failed = text == NULL;

	cJSON_Delete(result);
	if (!failed) {
		begin_answer(p, id);
		uring_text_print(&p->control.next, "\"result\":");
		uring_text_add(&p->control.next, text, strlen(text));
		uring_text_print(&p->control.next, "}");
		failed = p->control.next.failed;
		uring_text_end_line(&p->control.next, start);
	}
	free(text);
	if (failed)
		answer_error(p, id, "the answer is too long");
}

static void answer_status(struct uring_process *p, double id, int err)
{
	if (err < 0)
		answer_error(p, id, uring_err_text(err));
	else
		answer_empty(p, id);
}

/* Requests. */

static uint32_t port_number(const struct uring_process *p, const char *name)
{
	for (uint32_t i = 0; i < p->self->ports_count; i++)
		if (strcmp(topo_node_port(p->topo, p->self, i)->name, name) == 0)
			return i;
	return TOPO_NONE;
}

static bool read_impairment(const cJSON *object, struct node_impairment *impairment)
{
	memset(impairment, 0, sizeof(*impairment));
	return cJSON_IsObject(object) && read_u32(object, "loss_ppm", &impairment->loss_ppm) &&
	       read_u32(object, "corrupt_ppm", &impairment->corrupt_ppm) &&
	       read_u32(object, "reorder_ppm", &impairment->reorder_ppm) &&
	       read_number(object, "delay_ns", UINT64_MAX / 4, &impairment->delay_ns) &&
	       read_number(object, "jitter_ns", UINT64_MAX / 4, &impairment->jitter_ns) &&
	       read_number(object, "rate_bps", UINT64_MAX / 16, &impairment->rate_bps) &&
	       read_flag(object, "silent", &impairment->silent) &&
	       impairment->loss_ppm <= 1000000 && impairment->corrupt_ppm <= 1000000 &&
	       impairment->reorder_ppm <= 1000000;
}

static void handle_view(struct uring_process *p, double id, const cJSON *request)
{
	struct view_driver_counts driver;
	struct view_rows rows;
	enum node_query query;
	uint32_t filter = TOPO_NONE;
	dsf_instant now;

	if (view_rows_query_parse(read_string(request, "query"), &query) < 0) {
		answer_error(p, id, "view: no such query");
		return;
	}
	if (!read_u32(request, "filter", &filter)) {
		answer_error(p, id, "view: filter must be a number");
		return;
	}
	uring_process_collect_drops(p);
	driver.emulator_drops = p->fidelity.past_drops + uring_fidelity_drops(&p->fidelity);
	driver.impaired_drops = driver.corrupt_drops = 0;
	for (uint32_t i = 0; i < p->ports_count; i++) {
		driver.impaired_drops += p->ports[i].inbound.lost;
		driver.corrupt_drops += p->ports[i].inbound.corrupted;
	}
	driver.nic_drops = p->fidelity.past_nic_drops + p->fidelity.nic_drops;
	now = uring_process_catch_up(p);
	view_rows_begin(&rows, p->topo, &driver);
	node_view(p->node, query, filter, view_rows_append, &rows, now);
	answer_json(p, id, view_rows_finish(&rows));
}

static uint64_t rate_of_link(const struct uring_process *p, uint32_t number)
{
	return p->topo->links[topo_node_port(p->topo, p->self, number)->link].rate_bps;
}

static void handle_impair(struct uring_process *p, double id, const cJSON *request)
{
	const cJSON *inbound = cJSON_GetObjectItemCaseSensitive(request, "inbound");
	struct node_command command;

	memset(&command, 0, sizeof(command));
	command.kind = NODE_COMMAND_IMPAIR;
	command.port = port_number(p, read_string(request, "port"));
	if (command.port == TOPO_NONE)
		answer_error(p, id, "impair: no such port");
	else if (!read_impairment(cJSON_GetObjectItemCaseSensitive(request, "impairment"),
			 &command.impairment) ||
		 (inbound != NULL &&
			 !read_impairment(inbound, &p->ports[command.port].inbound.impairment)))
		answer_error(p, id, "impair: impossible impairment");
	else {
		uring_port_expect(&p->ports[command.port], &command.impairment,
			rate_of_link(p, command.port));
		answer_status(p, id, node_command(p->node, &command, uring_process_catch_up(p)));
	}
}

/* Without a port: the whole switch. */
static void handle_drain(struct uring_process *p, double id, const cJSON *request)
{
	const cJSON *port = cJSON_GetObjectItemCaseSensitive(request, "port");
	struct node_command command;

	memset(&command, 0, sizeof(command));
	command.kind = port == NULL ? NODE_COMMAND_DRAIN_NODE : NODE_COMMAND_DRAIN_PORT;
	if (port != NULL)
		command.port = port_number(p, read_string(request, "port"));
	if (command.port == TOPO_NONE)
		answer_error(p, id, "drain: no such port");
	else if (!read_flag(request, "drained", &command.drained))
		answer_error(p, id, "drain: drained must be true or false");
	else
		answer_status(p, id, node_command(p->node, &command, uring_process_catch_up(p)));
}

static int compare_flows(const void *left, const void *right)
{
	const struct workload_flow *a = left, *b = right;

	if (a->source != b->source)
		return a->source < b->source ? -1 : 1;
	return a->target < b->target ? -1 : a->target > b->target;
}

static bool read_flow(const struct uring_process *p, const cJSON *item, struct workload_flow *flow)
{
	const cJSON *source = cJSON_GetArrayItem(item, 0), *target = cJSON_GetArrayItem(item, 1);
	double limit = p->topo->endpoints_count;

	if (!cJSON_IsArray(item) || cJSON_GetArraySize(item) != 2 || !cJSON_IsNumber(source) ||
		!cJSON_IsNumber(target))
		return false;
	if (source->valuedouble < 0 || source->valuedouble >= limit || target->valuedouble < 0 ||
		target->valuedouble >= limit)
		return false;
	flow->source = (uint32_t)source->valuedouble;
	flow->target = (uint32_t)target->valuedouble;
	return flow->source == source->valuedouble && flow->target == target->valuedouble;
}

/* The flows, sorted; NULL: impossible, or no memory. The caller frees. */
static struct workload_flow *read_flows(
	const struct uring_process *p, const cJSON *array, uint32_t *count)
{
	int size = cJSON_GetArraySize(array);
	struct workload_flow *flows;
	const cJSON *item;

	*count = 0;
	if (!cJSON_IsArray(array) || size == 0)
		return NULL;
	flows = malloc((size_t)size * sizeof(*flows));
	if (flows == NULL)
		return NULL;
	cJSON_ArrayForEach(item, array)
	{
		if (!read_flow(p, item, &flows[*count])) {
			free(flows);
			return NULL;
		}
		(*count)++;
	}
	qsort(flows, *count, sizeof(*flows), compare_flows);
	return flows;
}

/* Everything but the flows. */
static bool read_spec(const cJSON *object, struct workload_spec *spec)
{
	uint32_t dscp = 0;

	memset(spec, 0, sizeof(*spec));
	spec->iterations = 1;
	spec->plane = UINT32_MAX;
	spec->stop_at = DSF_NEVER;
	if (!cJSON_IsObject(object) ||
		workload_kind_parse(read_string(object, "kind"), &spec->kind) < 0 ||
		!read_number(object, "size_bytes", UINT64_MAX / 16, &spec->size_bytes) ||
		!read_u32(object, "iterations", &spec->iterations) ||
		!read_number(object, "rate_bps", UINT64_MAX / 16, &spec->rate_bps) ||
		!read_u32(object, "dscp", &dscp) || dscp > 63 ||
		!read_u32(object, "plane", &spec->plane) ||
		!read_number(object, "seed", UINT64_MAX, &spec->seed) ||
		!read_number(object, "start_at_ns", UINT64_MAX, &spec->start_at.ns) ||
		!read_number(object, "stop_at_ns", UINT64_MAX, &spec->stop_at.ns))
		return false;
	spec->dscp = (uint8_t)dscp;
	return true;
}

static void handle_workload(struct uring_process *p, double id, const cJSON *request)
{
	const cJSON *object = cJSON_GetObjectItemCaseSensitive(request, "spec");
	struct node_command command;
	struct workload_spec spec;
	struct workload_flow *flows;

	if (!read_spec(object, &spec)) {
		answer_error(p, id, "workload: impossible spec");
		return;
	}
	flows = read_flows(p, cJSON_GetObjectItemCaseSensitive(object, "flows"), &spec.flows_count);
	if (flows == NULL) {
		answer_error(p, id, "workload: flows must be pairs of ranks of this lab");
		return;
	}
	memset(&command, 0, sizeof(command));
	command.kind = NODE_COMMAND_WORKLOAD_START;
	command.workload = &spec;
	spec.flows = flows;
	answer_status(p, id, node_command(p->node, &command, uring_process_catch_up(p)));
	free(flows);
}

static void handle_workload_stop(struct uring_process *p, double id)
{
	struct node_command command;

	memset(&command, 0, sizeof(command));
	command.kind = NODE_COMMAND_WORKLOAD_STOP;
	answer_status(p, id, node_command(p->node, &command, uring_process_catch_up(p)));
}

static void print_sessions(struct uring_process *p)
{
	struct node_sessions s = node_sessions(p->node);

	uring_text_print(&p->control.next,
		"\"sessions\":{\"fsdb\":{\"established\":%u,\"expected\":%u},"
		"\"bgp\":{\"established\":%u,\"expected\":%u}},",
		s.fsdb_established, s.fsdb_expected, s.bgp_established, s.bgp_expected);
}

static void print_fidelity(struct uring_process *p)
{
	const struct uring_fidelity *f = &p->fidelity;
	struct uring_text *t = &p->control.next;
	bool first = true;

	uring_text_print(t, "{");
	print_sessions(p);
	uring_text_print(t, "\"late_p99_ns\":%llu,\"late_max_ns\":%llu,\"handled\":%llu,",
		(unsigned long long)dsf_histogram_quantile(&f->late, 990),
		(unsigned long long)f->late.max, (unsigned long long)f->late.count);
	uring_text_print(t, "\"emulator_drops\":%llu,\"drops\":{",
		(unsigned long long)uring_fidelity_drops(f));
	for (unsigned i = 0; i < URING_DROP_COUNT; i++)
		uring_text_print(t, "%s\"%s\":%llu", i == 0 ? "" : ",", uring_drop_name(i),
			(unsigned long long)f->drops[i]);
	uring_text_print(t, "},\"cut\":%llu,\"nic_drops\":%llu,\"enters\":%llu,\"late_bins\":[",
		(unsigned long long)f->cut, (unsigned long long)f->nic_drops,
		(unsigned long long)p->loop.enters);
	for (unsigned i = 0; i < DSF_HISTOGRAM_BINS; i++) {
		if (f->late.bins[i] == 0)
			continue;
		uring_text_print(t, "%s[%u,%u]", first ? "" : ",", i, f->late.bins[i]);
		first = false;
	}
	uring_text_print(t, "]}");
}

static void handle_fidelity(struct uring_process *p, double id, const cJSON *request)
{
	size_t start = p->control.next.size;
	bool reset = false;

	if (!read_flag(request, "reset", &reset)) {
		answer_error(p, id, "fidelity: reset must be true or false");
		return;
	}
	uring_process_collect_drops(p);
	begin_answer(p, id);
	uring_text_print(&p->control.next, "\"result\":");
	print_fidelity(p);
	uring_text_print(&p->control.next, "}");
	uring_text_end_line(&p->control.next, start);
	if (reset)
		uring_fidelity_reset(&p->fidelity);
}

static void handle_now(struct uring_process *p, double id)
{
	size_t start = p->control.next.size;

	begin_answer(p, id);
	uring_text_print(&p->control.next, "\"result\":{\"now_ns\":%llu}}",
		(unsigned long long)uring_clock_read(&p->clock).ns);
	uring_text_end_line(&p->control.next, start);
}

static void handle_op(struct uring_process *p, double id, const cJSON *request)
{
	const char *op = read_string(request, "op");

	if (strcmp(op, "view") == 0)
		handle_view(p, id, request);
	else if (strcmp(op, "impair") == 0)
		handle_impair(p, id, request);
	else if (strcmp(op, "drain") == 0)
		handle_drain(p, id, request);
	else if (strcmp(op, "workload") == 0)
		handle_workload(p, id, request);
	else if (strcmp(op, "workload_stop") == 0)
		handle_workload_stop(p, id);
	else if (strcmp(op, "fidelity") == 0)
		handle_fidelity(p, id, request);
	else if (strcmp(op, "started") == 0) {
		uring_setup_started(p);
		answer_empty(p, id);
	} else if (strcmp(op, "now") == 0)
		handle_now(p, id);
	else if (strcmp(op, "stop") == 0) {
		answer_empty(p, id);
		p->stopping = true;
	} else
		answer_error(p, id, "unknown op");
}

void uring_request_handle(struct uring_process *p, const char *line, size_t size)
{
	cJSON *request;
	const cJSON *id;

	if (line == NULL) {
		answer_error(p, -1, "the request is too long");
		return;
	}
	request = cJSON_ParseWithLengthOpts(line, size + 1, NULL, 1);
	id = cJSON_GetObjectItemCaseSensitive(request, "id");
	if (!cJSON_IsObject(request))
		answer_error(p, -1, "the request is no JSON object");
	else if (!cJSON_IsNumber(id) || !(id->valuedouble >= 0 && id->valuedouble <= EXACT_MAX))
		answer_error(p, -1, "the request has no id");
	else
		handle_op(p, id->valuedouble, request);
	cJSON_Delete(request);
}
