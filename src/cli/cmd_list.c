#include <errno.h>
#include <string.h>
#include <cjson/cJSON.h>
#include "cli/commands.h"
#include "cli/lab_call.h"
#include "cli/lab_status.h"
#include "cli/log.h"
#include "cli/output.h"

#define ANSWER_MS 500 /* a lab that is busy starting is listed all the same */

/* What the lab says of itself; NULL: nothing. */
static cJSON *ask(const char *lab)
{
	struct lab_client client;
	cJSON *answer = NULL, *about;
	size_t size;
	char *line;
	int err;

	if (lab_client_open(&client, lab) < 0)
		return NULL;
	if (lab_client_send(&client, "{\"op\":\"lab\"}") == 0) {
		line = lab_client_receive(&client, ANSWER_MS, &size, &err);
		answer = line != NULL ? cJSON_ParseWithLength(line, size) : NULL;
	}
	lab_client_close(&client);
	about = cJSON_DetachItemFromObjectCaseSensitive(answer, "result");
	cJSON_Delete(answer);
	return about;
}

static void add_number(cJSON *row, const cJSON *about, const char *key)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(about, key);

	if (cJSON_IsNumber(item))
		cJSON_AddNumberToObject(row, key, item->valuedouble);
	else
		cJSON_AddNullToObject(row, key);
}

static void add_lab(cJSON *array, const char *lab)
{
	bool running = lab_running(lab);
	cJSON *about = running ? ask(lab) : NULL, *row = cJSON_CreateObject();
	pid_t pid = running ? lab_lock_owner(lab) : 0;

	cJSON_AddStringToObject(row, "lab", lab);
	if (about != NULL)
		cJSON_AddStringToObject(row, "state", lab_status_text(about, "state"));
	else
		cJSON_AddStringToObject(row, "state", running ? "unknown" : "failed");
	add_number(row, about, "nodes");
	add_number(row, about, "links");
	add_number(row, about, "time_dilation");
	if (pid > 0)
		cJSON_AddNumberToObject(row, "pid", pid);
	else
		cJSON_AddNullToObject(row, "pid");
	cJSON_AddItemToArray(array, row);
	cJSON_Delete(about);
}

static void add_cell(struct output_table *table, const cJSON *row, const char *key)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(row, key);

	if (cJSON_IsNumber(item))
		output_table_cell(table, "%.0f", item->valuedouble);
	else if (cJSON_IsString(item))
		output_table_cell(table, "%s", item->valuestring);
	else
		output_table_cell(table, "-");
}

static int print_table(cJSON *array)
{
	static const char *const titles[] = { "LAB", "STATE", "NODES", "LINKS", "DILATION", "PID" };
	static const char *const keys[] = { "lab", "state", "nodes", "links", "time_dilation",
		"pid" };
	struct output_text text = { .bytes = NULL };
	struct output_table table;
	const cJSON *row;

	output_table_begin(&table, 6, titles);
	cJSON_ArrayForEach(row, array)
	{
		for (int i = 0; i < 6; i++)
			add_cell(&table, row, keys[i]);
	}
	output_table_end(&table, &text);
	cJSON_Delete(array);
	return output_text_write(&text);
}

static int run_list(int argc, char **argv, const struct cli_options *options)
{
	struct lab_list list;
	cJSON *array = cJSON_CreateArray();
	int err = lab_list_open(&list);

	(void)argc;
	(void)argv;
	for (uint32_t i = 0; err == 0 && i < list.count; i++)
		add_lab(array, list.names[i]);
	lab_list_close(&list);
	if (err < 0) {
		log_err("can't look for labs: %s", strerror(-err));
		cJSON_Delete(array);
		return CLI_FAILED;
	}
	return options->json ? output_json(array) : print_table(array);
}

const struct cli_command cmd_list = {
	.name = "list",
	.usage = "",
	.summary = "the labs of this machine",
	.help = "State \"failed\": its supervisor was killed; dsfemu down removes what is left.",
	.words_min = 0,
	.words_max = 0,
	.run = run_list,
};
