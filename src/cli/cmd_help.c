#include <string.h>
#include "cli/commands.h"
#include "cli/log.h"

static int run(int argc, char **argv, const struct cli_options *options)
{
	const struct cli_command *command;

	(void)options;
	if (argc == 0)
		return cli_help(cli_commands, NULL);
	command = cli_find_command(cli_commands, argv[0]);
	if (command == NULL) {
		log_err("help: %s: unknown command: see dsfemu help", argv[0]);
		return CLI_USAGE;
	}
	return cli_help(cli_commands, command);
}

const struct cli_command cmd_help = {
	.name = "help",
	.usage = "[COMMAND]",
	.summary = "tells what a command does and takes",
	.words_max = 1,
	.run = run,
};
