#include <string.h>
#include "cli/commands.h"
#include "cli/log.h"
#include "cli/output.h"

#define USAGE_ENDS " |" /* around an action in a usage like "down|up NODE:IF" */

/* Is it among the actions that the command's usage begins with? */
static bool has_action(const struct cli_command *command, const char *word)
{
	size_t size = strlen(word);
	const char *at = command->usage;

	while (*at >= 'a' && *at <= 'z') {
		size_t action = strcspn(at, USAGE_ENDS);

		if (action == size && strncmp(at, word, size) == 0)
			return true;
		if (at[action] != '|')
			return false;
		at += action + 1;
	}
	return false;
}

/* Help of all commands that have the action: "drain" is one of link and of node. */
static int help_action(const char *word)
{
	const struct cli_command *const *command = cli_commands;
	int code = CLI_OK;
	bool any = false;

	for (; *command != NULL && code == CLI_OK; command++) {
		if (!has_action(*command, word))
			continue;
		if (any)
			code = output_write("\n", 1);
		any = true;
		if (code == CLI_OK)
			code = cli_help(cli_commands, *command);
	}
	if (!any) {
		log_err("help: %s: unknown command: see dsfemu help", word);
		return CLI_USAGE;
	}
	return code;
}

static int run(int argc, char **argv, const struct cli_options *options)
{
	const struct cli_command *command;

	if (argc == 0)
		return cli_help(cli_commands, NULL);
	command = cli_find_command(cli_commands, argv[0]);
	if (argc > 1 && (command == NULL || !has_action(command, argv[1])))
		return cli_wrong(options, "%s %s: unknown command", argv[0], argv[1]);
	return command == NULL ? help_action(argv[0]) : cli_help(cli_commands, command);
}

const struct cli_command cmd_help = {
	.name = "help",
	.usage = "[COMMAND | ACTION]",
	.summary = "tells what a command does and takes",
	.help = "An action is a command's first word, like drain in link drain.",
	.words_max = 2,
	.run = run,
};
