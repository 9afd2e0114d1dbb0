#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include "cli/commands.h"
#include "cli/lab_call.h"
#include "cli/lab_down.h"
#include "cli/log.h"

static int down_all(bool kill)
{
	struct lab_list list;
	int err = lab_list_open(&list), code = CLI_OK;

	if (err < 0) {
		log_err("can't look for labs: %s", strerror(-err));
		code = CLI_FAILED;
	}
	for (uint32_t i = 0; i < list.count; i++)
		if (lab_down(list.names[i], kill) != CLI_OK)
			code = CLI_FAILED;
	lab_list_close(&list);
	return code;
}

/* Is there anything of it? When in doubt, there is. */
static bool is_known(const char *lab)
{
	struct lab_list list;
	bool known = lab_list_open(&list) < 0;

	for (uint32_t i = 0; i < list.count; i++)
		known |= strcmp(list.names[i], lab) == 0;
	lab_list_close(&list);
	return known;
}

static int run_down(int argc, char **argv, const struct cli_options *options)
{
	char lab[TOPO_LAB_NAME_MAX + 1];
	bool kill = cli_flag(options, "kill");
	int code = lab_call_root("down");

	if (code != CLI_OK)
		return code;
	lab_raise_limits();
	if (cli_flag(options, "all")) {
		if (argc > 0)
			return cli_wrong(options, "--all takes no lab");
		return down_all(kill);
	}
	code = lab_call_choose(options, argc > 0 ? argv[0] : NULL, lab);
	if (code != CLI_OK)
		return code;
	if (!is_known(lab)) {
		log_info("lab %s: there is nothing of it; dsfemu list shows what there is", lab);
		return CLI_OK;
	}
	return lab_down(lab, kill);
}

static const struct cli_option down_options[] = {
	{ "all", NULL, false, "every lab of this machine" },
	{ "kill", NULL, false, "end processes that aren't ours too" },
	{ NULL, NULL, false, NULL },
};

const struct cli_command cmd_down = {
	.name = "down",
	.usage = "[LAB]",
	.summary = "end a lab and leave nothing of it",
	.help = "Works whatever is left of the lab. A process that isn't ours inside a namespace "
		"stays,\n"
		"without a network, and is named.",
	.options = down_options,
	.words_min = 0,
	.words_max = 1,
	.run = run_down,
};
