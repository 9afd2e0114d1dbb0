#include <stdio.h>
#include <string.h>
#include "cli/commands.h"
#include "cli/lab_call.h"
#include "cli/log.h"

static const char *const actions[] = { "stop", "start", "restart", "kill", "freeze", "drain",
	"undrain", NULL };

static int run_node(int argc, char **argv, const struct cli_options *options)
{
	char lab[TOPO_LAB_NAME_MAX + 1], request[256 + TOPO_NODE_NAME_MAX];
	char term[128];
	int action = 0, code;

	(void)argc;
	while (actions[action] != NULL && strcmp(actions[action], argv[0]) != 0)
		action++;
	if (actions[action] == NULL)
		return cli_wrong(options,
			"stop, start, restart, kill, freeze, drain or undrain, not %s", argv[0]);
	code = lab_call_term(options, "for", "for_ns", term, sizeof(term));
	if (code == CLI_OK && term[0] != '\0' &&
		(strstr(argv[0], "start") != NULL || strcmp(argv[0], "undrain") == 0))
		code = cli_wrong(options, "%s doesn't take --for", argv[0]);
	if (code == CLI_OK)
		code = lab_call_root("node");
	if (code == CLI_OK)
		code = lab_call_choose(options, NULL, lab);
	if (code != CLI_OK)
		return code;
	if (strlen(argv[1]) > TOPO_NODE_NAME_MAX ||
		strspn(argv[1], "abcdefghijklmnopqrstuvwxyz0123456789-") != strlen(argv[1])) {
		log_err("%s: no such node", argv[1]);
		return CLI_USAGE;
	}
	if (strstr(argv[0], "drain") != NULL)
		snprintf(request, sizeof(request),
			"{\"op\":\"drain\",\"node\":\"%s\",\"drained\":%s%s}", argv[1],
			strcmp(argv[0], "drain") == 0 ? "true" : "false", term);
	else
		snprintf(request, sizeof(request),
			"{\"op\":\"process\",\"node\":\"%s\",\"action\":\"%s\"%s}", argv[1],
			actions[action], term);
	return lab_call_once(lab, request);
}

static const struct cli_option node_options[] = {
	{ "for", "TIME", false,
		"stop, kill, freeze, drain: it is back after that time (2ms, 5sw)" },
	{ NULL, NULL, false, NULL },
};

const struct cli_command cmd_node = {
	.name = "node",
	.usage = "stop|start|restart|kill|freeze|drain|undrain NODE",
	.summary = "end, freeze, start a node's process; drain a switch",
	.help = "kill and stop: its ports go down, as those of a dead box. freeze: it does nothing "
		"any\n"
		"more but its ports stay up: a gray failure. start and restart bring it back, with "
		"what\n"
		"was asked of its links; they return when it is ready. Other nodes are never "
		"restarted.\n"
		"Of an external node all processes of its command are meant; its ports stay up.\n"
		"drain takes a switch's fabric ports out of use without loss; they stay up. On an "
		"RDSW\n"
		"packets between its own ports still pass.\n"
		"With --for the lab itself brings it back: the command doesn't wait.",
	.options = node_options,
	.words_min = 2,
	.words_max = 2,
	.run = run_node,
};
