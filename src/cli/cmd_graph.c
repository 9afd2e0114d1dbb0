/*
 * cmd_graph.c - a picture of a topology: dot (for graphviz), svg (drawn here), mermaid
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "cli/commands.h"
#include "cli/graph.h"
#include "cli/log.h"
#include "cli/output.h"
#include "cli/topology.h"

#define LAB_FOLDER "/run/dsfemu"

static int draw(const struct topo *t, const char *format)
{
	struct graph g;
	struct output_text text = { .failed = false };

	text.failed = !graph_open(&g, t);
	if (!text.failed) {
		if (strcmp(format, "svg") == 0)
			graph_svg(&g, &text);
		else if (strcmp(format, "mermaid") == 0)
			graph_mermaid(&g, &text);
		else
			graph_dot(&g, &text);
	}
	graph_close(&g);
	return output_text_write(&text);
}

/* A word that is no file is a lab's name: its expanded topology. */
static int load(const char *word, struct topo **t)
{
	char path[64 + TOPO_LAB_NAME_MAX];

	if (cli_is_file(word))
		return cli_load_topology(word, t);
	snprintf(path, sizeof(path), LAB_FOLDER "/%.*s/lab.json", TOPO_LAB_NAME_MAX, word);
	if (strlen(word) > TOPO_LAB_NAME_MAX || access(path, F_OK) < 0) {
		log_err("%s: no such lab runs (a file has a '/' or ends with .json)", word);
		return CLI_USAGE;
	}
	return cli_load_topology(path, t);
}

static int run(int argc, char **argv, const struct cli_options *options)
{
	static const char *const formats[] = { "dot", "svg", "mermaid", NULL };
	const char *format = cli_option(options, "format");
	struct topo *t;
	int code, known = 0;

	(void)argc;
	if (format == NULL)
		format = "dot";
	for (int i = 0; formats[i] != NULL; i++)
		known += strcmp(formats[i], format) == 0;
	if (known == 0) {
		const char *nearest = cli_nearest(format, formats);

		return cli_wrong(options, "--format %s: must be dot, svg or mermaid%s%s%s", format,
			nearest ? ": did you mean " : "", nearest ? nearest : "",
			nearest ? "?" : "");
	}
	code = load(argv[0], &t);
	if (code != CLI_OK)
		return code;
	code = draw(t, format);
	topo_free(t);
	return code;
}

static const struct cli_option graph_options[] = {
	{ "format", "FORMAT", false, "dot (default), svg or mermaid" },
	{ NULL, NULL, false, NULL },
};

const struct cli_command cmd_graph = {
	.name = "graph",
	.usage = "FILE|LAB",
	.summary = "draws a topology",
	.help = "A picture on stdout: tiers are rows, hosts at the bottom; buildings, zones and\n"
		"planes are boxes; parallel links are one line with their number.\n"
		"A word with a '/' or that ends with .json is a file, another one a lab that runs.",
	.options = graph_options,
	.words_min = 1,
	.words_max = 1,
	.run = run,
};
