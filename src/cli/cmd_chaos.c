#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cli/chaos.h"
#include "cli/commands.h"
#include "cli/lab_call.h"
#include "cli/log.h"
#include "cli/output.h"
#include "view/drill.h"

#define INTERRUPTED 128 /* + the signal */

static volatile sig_atomic_t interrupts, last_signal;

static void on_signal(int number)
{
	interrupts++;
	last_signal = number;
}

static int print(const struct chaos *c, bool json, enum node_drill_verdict *verdict)
{
	struct view_fidelity fidelity;
	cJSON *result;
	char *text;
	int code;

	chaos_fidelity(c, &fidelity);
	*verdict = node_drill_verdict(c->course, fidelity.valid);
	result = view_drill_json(c->topo, c->drill->drill, c->course, &fidelity);
	if (json || result == NULL)
		return output_json(result);
	text = view_drill_text(result);
	cJSON_Delete(result);
	code = text == NULL ? CLI_FAILED : output_write(text, strlen(text));
	free(text);
	return code;
}

static int play(const char *lab, const struct topo *t, const struct cli_drill *drill,
	uint64_t epoch_ns, const struct cli_options *options)
{
	struct chaos c = { .topo = t,
		.drill = drill,
		.ask = { .fd = -1 },
		.hold = { .fd = -1 },
		.interrupts = &interrupts,
		.progress = !options->quiet && !options->json && isatty(STDERR_FILENO) };
	struct sigaction action = { .sa_handler = on_signal };
	enum node_drill_verdict verdict = NODE_DRILL_UNKNOWN;
	int code;

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	code = chaos_open(&c, lab, epoch_ns);
	if (code == CLI_OK)
		code = chaos_play(&c);
	if (c.progress)
		fprintf(stderr, "\r\033[K");
	if (code == CLI_OK)
		code = print(&c, options->json, &verdict);
	chaos_close(&c);
	if (interrupts > 0)
		return INTERRUPTED + last_signal;
	return code == CLI_OK && verdict != NODE_DRILL_HELD ? CLI_FAILED : code;
}

static int run(int argc, char **argv, const struct cli_options *options)
{
	bool random = cli_flag(options, "random");
	struct cli_drill drill = { .drill = NULL };
	struct topo *t = NULL;
	char lab[TOPO_LAB_NAME_MAX + 1], why[512];
	uint64_t epoch_ns;
	int code;

	if (random == (argc > 0))
		return cli_wrong(options, "want a drill's file, or --random");
	if (!random && options->given_count > 0)
		return cli_wrong(options, "--%s goes with --random", options->given[0].name);
	code = lab_call_root("chaos");
	if (code == CLI_OK)
		code = lab_call_choose(options, NULL, lab);
	if (code != CLI_OK)
		return code;
	if (lab_topology(lab, &t, &epoch_ns, why, sizeof(why)) < 0) {
		log_err("chaos: %s", why);
		return CLI_FAILED;
	}
	if (random)
		code = cli_drill_draw(&drill, t, cli_option(options, "seed"),
			cli_option(options, "duration"), cli_option(options, "faults"));
	else
		code = cli_drill_load(&drill, t, argv[0]);
	if (code == CLI_OK)
		code = lab_call_lock("chaos", lab) ? play(lab, t, &drill, epoch_ns, options)
						   : CLI_FAILED;
	cli_drill_free(&drill);
	topo_free(t);
	return code;
}

static const struct cli_option options[] = {
	{ "random", NULL, false, "a drill that is drawn instead of a file" },
	{ "seed", "N", false, "random: the same one gives the same faults; default: the lab's" },
	{ "duration", "TIME", false, "random: fabric time until the last heal; default 2ms" },
	{ "faults", "N", false, "random: how many; default 10" },
	{ NULL, NULL, false, NULL },
};

const struct cli_command cmd_chaos = {
	.name = "chaos",
	.usage = "DRILL.json|--random",
	.summary = "breaks a lab by a drill, under load, and judges what it makes of it",
	.help = "Waits until the lab is steady, starts the drill's load, breaks and heals what the "
		"drill\n"
		"says, and looks all the while whether what must hold does hold: links and\n"
		"reachability as asked, no drop that no fault explains, every message once and "
		"right,\n"
		"steady again in bounded time. Verdict: held, broken, or unknown when this machine "
		"was\n"
		"too slow to tell. Whatever ends this command, the lab is healed. Exits 0 when it "
		"held.\n"
		"dsfemu-drill(5) has the file's format; `sim --drill` plays the same drill in "
		"virtual\n"
		"time.",
	.options = options,
	.words_min = 0,
	.words_max = 1,
	.run = run,
};
