/*
 * main.c - the program dsfemu: its table of commands, and the way to one
 *
 * To add a command: write src/cli/cmd_<name>.c, name it in commands.h and in the table below.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cli/commands.h"
#include "cli/log.h"
#include "cli/output.h"
#include "cli/supervisor.h"
#include "config.h"

const struct cli_command *const cli_commands[] = {
	&cmd_validate,
	&cmd_expand,
	&cmd_plan,
	&cmd_sim,
	&cmd_compare,
	&cmd_graph,
	&cmd_doctor,
	&cmd_up,
	&cmd_down,
	&cmd_list,
	&cmd_status,
	&cmd_show,
	&cmd_explain,
	&cmd_events,
	&cmd_exec,
	&cmd_shell,
	&cmd_capture,
	&cmd_run,
	&cmd_chaos,
	&cmd_link,
	&cmd_node,
	&cmd_help,
	NULL,
};

/* Descriptors 0 to 2 must exist, or what we open next would be taken for them. One that was closed
 * is opened the wrong way round, so that using it still fails. */
static void open_standard_files(void)
{
	for (int fd = 0; fd <= 2; fd++) {
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF &&
			open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) != fd)
			_exit(CLI_FAILED);
	}
}

int main(int argc, char **argv)
{
	struct cli_options options;
	char **words = calloc((size_t)argc + 1, sizeof(*words));
	int count, code = CLI_USAGE;

	open_standard_files();
	/* up starts the program again under this name: not a command for people. */
	if (argc > 1 && strcmp(argv[1], SUPERVISOR_COMMAND) == 0) {
		free(words);
		return supervisor_main(argc, argv);
	}
	signal(SIGPIPE, SIG_IGN); /* a write then fails with EPIPE, and we clean up */
	if (words == NULL) {
		log_err("out of memory");
		return CLI_FAILED;
	}
	switch (cli_parse(cli_commands, argc, argv, &options, words, &count)) {
	case CLI_RUN:
		if (options.quiet)
			log_set_level(LOG_LEVEL_ERR);
		else if (options.verbose)
			log_set_level(LOG_LEVEL_DEBUG);
		code = options.command->run(count, words, &options);
		break;
	case CLI_HELP: code = cli_help(cli_commands, options.command); break;
	case CLI_VERSION:
		code = output_write(PACKAGE_STRING "\n", strlen(PACKAGE_STRING "\n"));
		break;
	case CLI_WRONG: break;
	}
	free(words);
	return code;
}
