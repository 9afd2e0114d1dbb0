#include "cli/commands.h"
#include "cli/log.h"
#include "cli/output.h"
#include "cli/topology.h"

static int print_json(const struct topo *t)
{
	cJSON *doc = cJSON_CreateObject();

	cJSON_AddBoolToObject(doc, "valid", true);
	cJSON_AddStringToObject(doc, "name", t->name);
	cJSON_AddNumberToObject(doc, "nodes", t->nodes_count);
	cJSON_AddNumberToObject(doc, "links", t->links_count);
	cJSON_AddNumberToObject(doc, "gpus", t->endpoints_count);
	return output_json(doc);
}

static int run(int argc, char **argv, const struct cli_options *options)
{
	struct topo *t;
	int code = cli_load_topology(argv[0], &t);

	(void)argc;
	if (code != CLI_OK)
		return code;
	if (options->json) {
		code = print_json(t);
	} else {
		struct output_text text = { .failed = false };

		output_text_add(&text, "%s is valid: %u nodes, %u links, %u GPUs\n", t->name,
			t->nodes_count, t->links_count, t->endpoints_count);
		code = output_text_write(&text);
	}
	topo_free(t);
	return code;
}

const struct cli_command cmd_validate = {
	.name = "validate",
	.usage = "FILE",
	.summary = "checks a topology file",
	.help = "Reads the file, works out every node and link, and checks that they fit "
		"together.\n"
		"The first fault is told with file, line and JSON path; then the exit code is 2.\n"
		"Needs no rights and changes nothing.",
	.words_min = 1,
	.words_max = 1,
	.run = run,
};
