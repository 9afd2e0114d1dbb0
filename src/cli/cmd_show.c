#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/commands.h"
#include "cli/lab_call.h"
#include "cli/lab_rows.h"
#include "cli/log.h"
#include "cli/output.h"
#include "topo/model.h"
#include "view/json.h"
#include "view/show.h"

#define TEXT_MAX  512
#define WORDS_MAX 8

static int print_result(const struct view_show *show, cJSON *result, bool json)
{
	char *text = json ? view_json_print(result, false) : view_show_text(show, result);
	int code;

	cJSON_Delete(result);
	if (text == NULL) {
		log_err("show: out of memory");
		return CLI_FAILED;
	}
	code = output_write(text, strlen(text));
	free(text);
	return code;
}

static int show_lab(
	const char *lab, const struct topo *topo, const struct view_show *show, bool json)
{
	struct lab_rows rows;
	struct view_show_source source = lab_rows_source(&rows);
	int code = lab_rows_open(&rows, lab, topo, "show");
	cJSON *result;

	if (code != CLI_OK)
		return code;
	result = view_show_run(show, topo, &source);
	lab_rows_close(&rows);
	if (result != NULL)
		return print_result(show, result, json);
	if (!rows.told)
		log_err("show: out of memory");
	return CLI_FAILED;
}

static int run(int argc, char **argv, const struct cli_options *options)
{
	const char *words[WORDS_MAX], *node = cli_option(options, "node");
	char text[TEXT_MAX], why[VIEW_SHOW_WHY_MAX], lab[TOPO_LAB_NAME_MAX + 1];
	struct view_show show;
	struct topo *topo;
	uint64_t epoch_ns;
	size_t count = 0;
	int code;

	for (int i = 0; i < argc && count < WORDS_MAX - 2; i++)
		words[count++] = argv[i];
	if (node != NULL) {
		words[count++] = "--node";
		words[count++] = node;
	}
	code = lab_call_choose(options, NULL, lab);
	if (code != CLI_OK)
		return code;
	if (lab_topology(lab, &topo, &epoch_ns, text, sizeof(text)) < 0) {
		log_err("show: %s", text);
		return CLI_FAILED;
	}
	if (view_show_parse(topo, words, count, &show, why) < 0)
		code = cli_wrong(options, "%s", why);
	else
		code = show_lab(lab, topo, &show, options->json);
	topo_free(topo);
	return code;
}

static const struct cli_option show_options[] = {
	{ "node", "NODE", false, "of this node alone" },
	{ NULL, NULL, false, NULL },
};

const struct cli_command cmd_show = {
	.name = "show",
	.usage = "WHAT",
	.summary = "shows the state of a lab's nodes",
	.help = "WHAT is one of:\n"
		"  fabric                       switches: ports, live links, destinations\n"
		"  fabric reachability [DST]    by which ports each node reaches each destination\n"
		"  fabric inputbalance [DST]    what comes in, what is allowed to, what can go "
		"out\n"
		"  fabric topology              links and their state\n"
		"  systemport                   ports of the whole virtual switch\n"
		"  voq                          queues, credits, drops and marks\n"
		"  ndp                          neighbours, local and remote\n"
		"  dsf subscription             sessions between interface nodes\n"
		"  fsdb                         what each publishes, as every other has it\n"
		"  bgp summary                  BGP neighbours and how many routes they told\n"
		"  bgp neighbors                all that is known of them\n"
		"  bgp table                    every path of every prefix\n"
		"  route                        prefixes and where they lead\n"
		"  port                         ports with their counters\n"
		"  counters                     counters of nodes\n"
		"  nic, paths, qp               hosts: NICs, paths and streams of connections",
	.options = show_options,
	.words_min = 1,
	.words_max = 4,
	.run = run,
};
