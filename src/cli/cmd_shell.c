#include <stdlib.h>
#include "cli/commands.h"
#include "cli/lab_enter.h"

static int run_shell(int argc, char **argv, const struct cli_options *options)
{
	char *shell = getenv("SHELL");
	char *command[] = { shell != NULL && shell[0] == '/' ? shell : "/bin/sh", NULL };

	(void)argc;
	return lab_enter(options, argv[0], command);
}

const struct cli_command cmd_shell = {
	.name = "shell",
	.usage = "NODE",
	.summary = "a shell in a node's namespace",
	.help = "$SHELL, or /bin/sh. DSFEMU_LAB and DSFEMU_NODE say where you are.",
	.words_min = 1,
	.words_max = 1,
	.run = run_shell,
};
