#include "cli/lab_status.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/json_span.h"
#include "cli/log.h"
#include "cli/options.h"
#include "cli/output.h"
#include "view/table.h"

#define MISSING_MAX 40 /* lines of them that are told */

static const char *state_name(const struct lab_status_link *link)
{
	switch (link->state) {
	case LAB_LINK_DOWN: return "down";
	case LAB_LINK_UP: return "up";
	case LAB_LINK_DRAINED: return "drained";
	}
	return "down";
}

cJSON *lab_status_links(const struct topo *t, const struct lab_status_link *states)
{
	cJSON *links = cJSON_CreateArray();
	char name[TOPO_NODE_NAME_MAX + TOPO_PORT_NAME_MAX + 2];

	for (uint32_t i = 0; i < t->links_count; i++) {
		uint32_t ends[2] = { t->links[i].port_a, t->links[i].port_b };
		cJSON *link = cJSON_CreateObject();

		for (int end = 0; end < 2; end++) {
			const struct topo_port *p = &t->ports[ends[end]];

			snprintf(name, sizeof(name), "%s:%s", t->nodes[p->node].name, p->name);
			cJSON_AddStringToObject(link, end == 0 ? "a" : "b", name);
		}
		cJSON_AddStringToObject(link, "kind", topo_link_kind_name(t->links[i].kind));
		cJSON_AddStringToObject(
			link, "state", states != NULL ? state_name(&states[i]) : "down");
		if (states != NULL && states[i].why != NULL)
			cJSON_AddStringToObject(link, "why", states[i].why);
		cJSON_AddItemToArray(links, link);
	}
	return links;
}

static void add_count(struct lab_sessions_count *count, struct json_span of, const char *key)
{
	struct json_span both = json_span_get(of.at, of.size, key);
	int64_t established, expected;

	if (both.at == NULL ||
		!json_span_integer(
			json_span_get(both.at, both.size, "established"), &established) ||
		!json_span_integer(json_span_get(both.at, both.size, "expected"), &expected))
		return;
	count->established += (uint64_t)established;
	count->expected += (uint64_t)expected;
}

void lab_status_add_sessions(struct lab_sessions *sessions, const char *text, size_t size)
{
	struct json_span of = json_span_get(text, size, "sessions");

	if (of.at == NULL)
		return;
	add_count(&sessions->fsdb, of, "fsdb");
	add_count(&sessions->bgp, of, "bgp");
}

static void print_count(cJSON *sessions, const char *key, const struct lab_sessions_count *count)
{
	cJSON *counts = cJSON_AddObjectToObject(sessions, key);

	cJSON_AddNumberToObject(counts, "established", (double)count->established);
	cJSON_AddNumberToObject(counts, "expected", (double)count->expected);
}

cJSON *lab_status_sessions(const struct lab_sessions *sessions)
{
	cJSON *object = cJSON_CreateObject();

	print_count(object, "fsdb", &sessions->fsdb);
	print_count(object, "bgp", &sessions->bgp);
	return object;
}

const char *lab_status_text(const cJSON *object, const char *key)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);

	return cJSON_IsString(item) ? item->valuestring : "";
}

static double number(const cJSON *object, const char *key)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);

	return cJSON_IsNumber(item) ? item->valuedouble : 0;
}

static void add_nodes(const cJSON *nodes, struct output_text *text)
{
	static const char *const titles[] = { "NODE", "ROLE", "PID", "STATE" };
	struct output_table table;
	const cJSON *node;

	output_table_begin(&table, 4, titles);
	cJSON_ArrayForEach(node, nodes)
	{
		const cJSON *pid = cJSON_GetObjectItemCaseSensitive(node, "pid");

		output_table_cell(&table, "%s", lab_status_text(node, "name"));
		output_table_cell(&table, "%s", lab_status_text(node, "role"));
		if (cJSON_IsNumber(pid))
			output_table_cell(&table, "%.0f", pid->valuedouble);
		else
			output_table_cell(&table, "-");
		output_table_cell(&table, "%s%s%s%s%s", lab_status_text(node, "state"),
			cJSON_HasObjectItem(node, "drained") ? ", drained" : "",
			cJSON_HasObjectItem(node, "cut_off") ? ", all its links are drained" : "",
			cJSON_HasObjectItem(node, "why") ? ", " : "", lab_status_text(node, "why"));
	}
	output_table_end(&table, text);
}

static void add_impairment(struct output_table *table, const cJSON *impairment)
{
	char *text = impairment != NULL ? view_members_text(impairment) : NULL;

	output_table_cell(table, "%s", text != NULL && text[0] != '\0' ? text : "-");
	free(text);
}

/* Only those that aren't up or are impaired: a lab has thousands of others. */
static void add_links(const cJSON *links, struct output_text *text)
{
	static const char *const titles[] = { "LINK", "TO", "KIND", "STATE", "WHY", "IMPAIRED" };
	struct output_table table;
	const cJSON *link;
	int count = 0, up = 0, shown = 0;

	output_table_begin(&table, 6, titles);
	cJSON_ArrayForEach(link, links)
	{
		const cJSON *impairment = cJSON_GetObjectItemCaseSensitive(link, "impairment");
		bool is_up = strcmp(lab_status_text(link, "state"), "up") == 0;

		count++;
		up += is_up;
		if (is_up && impairment == NULL)
			continue;
		shown++;
		output_table_cell(&table, "%s", lab_status_text(link, "a"));
		output_table_cell(&table, "%s", lab_status_text(link, "b"));
		output_table_cell(&table, "%s", lab_status_text(link, "kind"));
		output_table_cell(&table, "%s", lab_status_text(link, "state"));
		output_table_cell(&table, "%s",
			cJSON_HasObjectItem(link, "why") ? lab_status_text(link, "why") : "-");
		add_impairment(&table, impairment);
	}
	output_text_add(text, "\nlinks: %d of %d up\n", up, count);
	if (shown > 0) {
		output_text_add(text, "\n");
		output_table_end(&table, text);
	} else {
		struct output_text nowhere = { .bytes = NULL };

		output_table_end(&table, &nowhere);
		free(nowhere.bytes);
	}
}

static void add_fidelity(const cJSON *fidelity, struct output_text *text)
{
	bool valid = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(fidelity, "valid"));

	if (cJSON_IsNull(cJSON_GetObjectItemCaseSensitive(fidelity, "late_p99_ns"))) {
		output_text_add(text, "fidelity: unknown, no process is left to say\n");
		return;
	}
	output_text_add(text,
		"fidelity: %s, p99 lateness %.0f ns (allowed %.0f ns), %.0f emulator drops",
		valid ? "valid" : "invalid", number(fidelity, "late_p99_ns"),
		number(fidelity, "allowed_p99_ns"), number(fidelity, "emulator_drops"));
	if (!valid)
		output_text_add(text, ", use --time-dilation %.0f",
			number(fidelity, "suggested_time_dilation"));
	output_text_add(text, "\n");
}

int lab_status_print(const cJSON *status)
{
	const cJSON *sessions = cJSON_GetObjectItemCaseSensitive(status, "sessions"), *counts;
	struct output_text text = { .bytes = NULL };

	output_text_add(&text, "lab %s: %s, time dilation %.0f\n\n", lab_status_text(status, "lab"),
		lab_status_text(status, "state"), number(status, "time_dilation"));
	add_nodes(cJSON_GetObjectItemCaseSensitive(status, "nodes"), &text);
	add_links(cJSON_GetObjectItemCaseSensitive(status, "links"), &text);
	cJSON_ArrayForEach(counts, sessions)
	{
		if (number(counts, "expected") > 0)
			output_text_add(&text, "%s sessions: %.0f of %.0f established\n",
				counts->string, number(counts, "established"),
				number(counts, "expected"));
	}
	add_fidelity(cJSON_GetObjectItemCaseSensitive(status, "fidelity"), &text);
	return output_text_write(&text);
}

int lab_status_print_line(const cJSON *status, double seconds)
{
	struct output_text text = { .bytes = NULL };

	output_text_add(&text, "lab %s: %s, %d nodes, %d links, time dilation %.0f, after %.2f s\n",
		lab_status_text(status, "lab"), lab_status_text(status, "state"),
		cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(status, "nodes")),
		cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(status, "links")),
		number(status, "time_dilation"), seconds);
	return output_text_write(&text);
}

void lab_status_tell_missing(const cJSON *missing)
{
	const cJSON *row;
	int count = 0;

	cJSON_ArrayForEach(row, missing)
	{
		if (count++ < MISSING_MAX)
			log_err("missing: %s: %s: seen %s, expected %s",
				lab_status_text(row, "node"), lab_status_text(row, "what"),
				lab_status_text(row, "seen"), lab_status_text(row, "expected"));
	}
	if (count > MISSING_MAX)
		log_err("missing: and %d more", count - MISSING_MAX);
}
