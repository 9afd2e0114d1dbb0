#include <stdio.h>
#include <string.h>
#include "cli/commands.h"
#include "cli/lab_call.h"
#include "cli/log.h"

static const char *const actions[] = { "stop", "start", "restart", "kill", "freeze", NULL };

static int run_node(int argc, char **argv, const struct cli_options *options)
{
	char lab[TOPO_LAB_NAME_MAX + 1], request[128 + TOPO_NODE_NAME_MAX];
	int action = 0, code;

	(void)argc;
	while (actions[action] != NULL && strcmp(actions[action], argv[0]) != 0)
		action++;
	if (actions[action] == NULL)
		return cli_wrong(options, "stop, start, restart, kill or freeze, not %s", argv[0]);
	code = lab_call_root("node");
	if (code == CLI_OK)
		code = lab_call_choose(options, NULL, lab);
	if (code != CLI_OK)
		return code;
	if (strlen(argv[1]) > TOPO_NODE_NAME_MAX ||
		strspn(argv[1], "abcdefghijklmnopqrstuvwxyz0123456789-") != strlen(argv[1])) {
		log_err("no such node: %s", argv[1]);
		return CLI_FAILED;
	}
	snprintf(request, sizeof(request), "{\"op\":\"process\",\"node\":\"%s\",\"action\":\"%s\"}",
		argv[1], actions[action]);
	return lab_call_once(lab, request);
}

const struct cli_command cmd_node = {
	.name = "node",
	.usage = "stop|start|restart|kill|freeze NODE",
	.summary = "end, freeze, start a node's process",
	.help = "kill and stop: its ports go down, as those of a dead box. freeze: it does nothing "
		"any\n"
		"more but its ports stay up: a gray failure. start and restart bring it back, with "
		"what\n"
		"was asked of its links; they return when it is ready. Other nodes are never "
		"restarted.",
	.words_min = 2,
	.words_max = 2,
	.run = run_node,
};
