#include "cli/sim_drill.h"
#include <stdlib.h>
#include <string.h>
#include "cli/drill.h"
#include "cli/log.h"
#include "sim/drill.h"
#include "topo/memory.h"
#include "view/drill.h"

#define LOOK_NS NS_PER_US

/* The value behind "--name" among the words; NULL: not given. */
static const char *value_of(char *const *words, int count, const char *name)
{
	for (int i = 0; i + 1 < count; i++)
		if (strcmp(words[i], name) == 0)
			return words[i + 1];
	return NULL;
}

static int make(struct cli_drill *d, const struct topo *t, const char *words)
{
	static const char *const known[] = { "--seed", "--duration", "--faults", NULL };
	char *copy = strdup(words), *rest = copy, *list[8], *word;
	int count = 0, code = CLI_OK;

	while (rest != NULL && (word = strsep(&rest, " ")) != NULL && count < 8)
		if (*word != '\0')
			list[count++] = word;
	if (count == 0) {
		log_err("--drill: want a file, or random");
		code = CLI_USAGE;
	}
	for (int i = 1; i < count && code == CLI_OK; i += 2) {
		int k = 0;

		while (known[k] != NULL && strcmp(known[k], list[i]) != 0)
			k++;
		if (known[k] != NULL && i + 1 < count && strcmp(list[0], "random") == 0)
			continue;
		log_err("--drill: %s: want a file, or random with --seed, --duration, --faults",
			list[i]);
		code = CLI_USAGE;
	}
	if (code == CLI_OK && strcmp(list[0], "random") == 0)
		code = cli_drill_draw(d, t, value_of(list, count, "--seed"),
			value_of(list, count, "--duration"), value_of(list, count, "--faults"));
	else if (code == CLI_OK)
		code = cli_drill_load(d, t, list[0]);
	free(copy);
	return code;
}

int cli_sim_drill(
	struct sim *s, const struct topo *t, const char *words, cJSON **result, char **text)
{
	const struct view_fidelity fidelity = { .valid = true }; /* nothing is late here */
	struct node_drill_config config = { .topo = t,
		.draw_seed = sim_seed(s),
		.refresh_ns = t->fabric.reach_refresh_ns,
		.look_min_ns = LOOK_NS,
		.memory = &topo_memory };
	struct cli_drill drill = { .drill = NULL };
	struct node_drill *d;
	int code = make(&drill, t, words), err = 0;

	*result = NULL;
	*text = NULL;
	if (code != CLI_OK)
		return code;
	config.drill = drill.drill;
	config.flows = drill.load.flows;
	config.flows_count = drill.load.spec.flows_count;
	d = node_drill_new(&config, sim_now(s));
	if (d != NULL)
		err = sim_drill_run(s, t, d, &drill.load.spec);
	if (d != NULL && err == 0)
		*result = view_drill_json(t, drill.drill, d, &fidelity);
	if (*result != NULL)
		*text = view_drill_text(*result);
	if (*text == NULL)
		log_err("--drill: %s: %s", words, err < 0 ? log_text(err) : "out of memory");
	code = *text != NULL && node_drill_verdict(d, true) == NODE_DRILL_HELD ? CLI_OK
									       : CLI_FAILED;
	node_drill_free(d);
	cli_drill_free(&drill);
	return code;
}
