#include <stdlib.h>
#include <string.h>
#include "cli/commands.h"
#include "cli/log.h"
#include "cli/output.h"
#include "cli/topology.h"
#include "topo/file.h"

static int run(int argc, char **argv, const struct cli_options *options)
{
	struct topo *t;
	char *text;
	int code = cli_load_topology(argv[0], &t);

	(void)argc;
	(void)options; /* the result is JSON anyway */
	if (code != CLI_OK)
		return code;
	text = topo_print_expanded(t);
	topo_free(t);
	if (text == NULL) {
		log_err("out of memory");
		return CLI_FAILED;
	}
	code = output_write(text, strlen(text));
	free(text);
	return code;
}

const struct cli_command cmd_expand = {
	.name = "expand",
	.usage = "FILE",
	.summary = "prints a topology file in its explicit form",
	.help = "Every node and link with all settings, addresses and numbers, as JSON. The result "
		"is\n"
		"itself a topology file, and expanding it gives the same bytes again.",
	.words_min = 1,
	.words_max = 1,
	.run = run,
};
