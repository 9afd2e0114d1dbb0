#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/commands.h"
#include "cli/fidelity.h"
#include "cli/lab_call.h"
#include "cli/lab_status.h"
#include "cli/log.h"
#include "cli/output.h"

/* The object of a lab whose supervisor has died, from what it wrote. NULL: nothing is known. */
static cJSON *dead_status(const char *lab)
{
	static const struct lab_sessions sessions;
	char text[1400], name[TOPO_NODE_NAME_MAX + TOPO_LAB_NAME_MAX + 2];
	struct topo *topo = NULL;
	cJSON *status, *nodes;

	if (lab_topology(lab, &topo, NULL, text, sizeof(text)) < 0)
		return NULL;
	status = cJSON_CreateObject();
	cJSON_AddStringToObject(status, "lab", lab);
	cJSON_AddStringToObject(status, "state", "failed");
	cJSON_AddNumberToObject(status, "time_dilation", topo->time_dilation);
	nodes = cJSON_AddArrayToObject(status, "nodes");
	for (uint32_t i = 0; i < topo->nodes_count; i++) {
		cJSON *node = cJSON_CreateObject();

		snprintf(name, sizeof(name), "%s-%s", lab, topo->nodes[i].name);
		cJSON_AddStringToObject(node, "name", topo->nodes[i].name);
		cJSON_AddStringToObject(node, "role", topo_role_name(topo->nodes[i].role));
		cJSON_AddNullToObject(node, "pid");
		cJSON_AddStringToObject(node, "netns", name);
		cJSON_AddStringToObject(node, "state", "dead");
		cJSON_AddItemToArray(nodes, node);
	}
	cJSON_AddItemToObject(status, "links", lab_status_links(topo, NULL));
	cJSON_AddItemToObject(status, "sessions", lab_status_sessions(&sessions));
	cJSON_AddItemToObject(status, "fidelity", fidelity_json(NULL, topo));
	topo_free(topo);
	return status;
}

static int print(cJSON *status, bool json)
{
	bool ready = strcmp(lab_status_text(status, "state"), "ready") == 0;
	int code;

	if (json) {
		code = output_json(status);
	} else {
		code = lab_status_print(status);
		cJSON_Delete(status);
	}
	return code == CLI_OK && !ready ? CLI_FAILED : code;
}

static int run_status(int argc, char **argv, const struct cli_options *options)
{
	char lab[TOPO_LAB_NAME_MAX + 1];
	struct lab_client client;
	const char *result = NULL;
	cJSON *status;
	int code = lab_call_choose(options, argc > 0 ? argv[0] : NULL, lab);

	if (code != CLI_OK)
		return code;
	code = lab_call_open(&client, lab);
	if (code != CLI_OK) {
		status = lab_running(lab) ? NULL : dead_status(lab);
		return status != NULL ? print(status, options->json) : code;
	}
	code = lab_call(&client, "{\"op\":\"status\"}", &result, NULL);
	status = code == CLI_OK ? cJSON_Parse(result) : NULL;
	lab_client_close(&client);
	if (code == CLI_OK && status == NULL) {
		log_err("lab %s: out of memory", lab);
		code = CLI_FAILED;
	}
	return status != NULL ? print(status, options->json) : code;
}

const struct cli_command cmd_status = {
	.name = "status",
	.usage = "[LAB]",
	.summary = "nodes, links, sessions and fidelity of a lab",
	.help = "Ends with 1 when the lab is degraded: a node that isn't ready, a link that is "
		"down.",
	.words_min = 0,
	.words_max = 1,
	.run = run_status,
};
