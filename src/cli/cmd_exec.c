#include "cli/commands.h"
#include "cli/lab_enter.h"
#include "cli/log.h"

static int run_exec(int argc, char **argv, const struct cli_options *options)
{
	(void)argc;
	if (options->rest_count < 1) {
		log_err("exec: no command: dsfemu exec NODE -- COMMAND [ARGUMENTS]");
		return LAB_ENTER_FAILED;
	}
	return lab_enter(options, argv[0], options->rest);
}

const struct cli_command cmd_exec = {
	.name = "exec",
	.usage = "NODE -- COMMAND",
	.summary = "run a command in a node's namespace",
	.help = "Its exit code is passed on. 125: dsfemu failed, 126: the command can't be "
		"executed,\n"
		"127: there is no such command, 128+N: signal N.",
	.words_min = 1,
	.words_max = 1,
	.takes_rest = true,
	.run = run_exec,
};
