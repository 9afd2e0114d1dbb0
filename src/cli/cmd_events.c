#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "base/time.h"
#include "cli/commands.h"
#include "cli/json_span.h"
#include "cli/lab_call.h"
#include "cli/log.h"
#include "cli/output.h"
#include "view/json.h"
#include "view/table.h"

/* "port fab0", "down", "not drained", "impairment loss 1 %". */
static void add_member(struct output_text *text, const cJSON *item)
{
	char *printed = NULL;

	if (cJSON_IsString(item)) {
		output_text_add(text, "%s %s", item->string, item->valuestring);
	} else if (cJSON_IsBool(item)) {
		output_text_add(text, "%s%s", cJSON_IsTrue(item) ? "" : "not ", item->string);
	} else {
		printed = cJSON_IsObject(item) ? view_members_text(item)
					       : cJSON_PrintUnformatted(item);
		output_text_add(text, "%s %s", item->string, printed != NULL ? printed : "?");
	}
	free(printed);
}

/* Is it said in front, or by the event's own name: "ready", "not ready"? */
static bool is_said(const cJSON *item, const char *event)
{
	static const char *const heads[] = { "node", "event", "at_ns", "wall_us" };

	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
		if (strcmp(item->string, heads[i]) == 0)
			return true;
	return cJSON_IsBool(item) && strcmp(item->string, event) == 0;
}

/* "15:40:29.123456 0.012345678 NODE link_down port fab0": wall time of day, fabric seconds since
 * the lab's start, node, what happened. */
static void add_line(struct output_text *text, const cJSON *event)
{
	uint64_t wall_us = view_json_u64(event, "wall_us"), at_ns = view_json_u64(event, "at_ns");
	const uint64_t second_ns = NS_PER_S;
	time_t seconds = (time_t)(wall_us / 1000000);
	const char *node = view_json_text(event, "node"), *name = view_json_text(event, "event");
	const cJSON *item;
	struct tm day;
	const char *gap = " ";
	char clock[16] = "";

	if (localtime_r(&seconds, &day) != NULL)
		strftime(clock, sizeof(clock), "%H:%M:%S", &day);
	if (name == NULL)
		name = "?";
	output_text_add(text, "%s.%06" PRIu64 " %" PRIu64 ".%09" PRIu64 " %-20s %s%s", clock,
		wall_us % 1000000, at_ns / second_ns, at_ns % second_ns, node != NULL ? node : "-",
		cJSON_IsFalse(cJSON_GetObjectItemCaseSensitive(event, name)) ? "not " : "", name);
	cJSON_ArrayForEach(item, event)
	{
		if (is_said(item, name))
			continue;
		output_text_add(text, "%s", gap);
		add_member(text, item);
		gap = ", ";
	}
	output_text_add(text, "\n");
}

static int print(const char *line, size_t size, bool json)
{
	struct output_text text = { .bytes = NULL };
	cJSON *event;

	if (json) {
		output_text_add(&text, "%s\n", line);
	} else {
		event = view_json_parse(line, size);
		if (event != NULL)
			add_line(&text, event);
		cJSON_Delete(event);
	}
	return output_text_write(&text);
}

/* Until the lab ends. */
static int follow(struct lab_client *client, bool json)
{
	int code = CLI_OK, err = 0;
	size_t size;
	char *line;

	while (code == CLI_OK && (line = lab_client_receive(client, -1, &size, &err)) != NULL)
		code = print(line, size, json);
	if (code != CLI_OK || err == -EPIPE)
		return code;
	log_err("events: %s", log_text(err));
	return CLI_FAILED;
}

static int run(int argc, char **argv, const struct cli_options *options)
{
	char lab[TOPO_LAB_NAME_MAX + 1];
	struct lab_client client;
	const char *result;
	int code = lab_call_choose(options, argc > 0 ? argv[0] : NULL, lab);

	if (code == CLI_OK)
		code = lab_call_open(&client, lab);
	if (code != CLI_OK)
		return code;
	code = lab_call(&client, "{\"op\":\"events\"}", &result, NULL);
	if (code == CLI_OK) {
		log_info("events: lab %s: listening", lab);
		code = follow(&client, options->json);
	}
	lab_client_close(&client);
	return code;
}

const struct cli_command cmd_events = {
	.name = "events",
	.usage = "[LAB]",
	.summary = "tells what changes in a lab, as it happens",
	.help = "A line for each change until Ctrl-C or the lab's end: links that are asked to be, "
		"go or\n"
		"come (link_down, link_up), are drained, isolated or healed, reachability (how "
		"many\n"
		"destinations changed, were lost, gained, are reached now), processes that start,\n"
		"die, are frozen. In front: the time of day, fabric time since the lab's start in\n"
		"seconds, and the node. With --json a JSON object a line. Who reads too slowly "
		"misses\n"
		"lines and is told how many; the lab never waits.",
	.words_min = 0,
	.words_max = 1,
	.run = run,
};
