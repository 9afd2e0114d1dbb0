/*
 * cmd_graph.c - a picture of a topology: dot (for graphviz), svg (drawn here), mermaid
 *
 * Tiers are rows, hosts at the bottom. Parallel links of one pair are one line with their number.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cli/commands.h"
#include "cli/log.h"
#include "cli/output.h"
#include "cli/topology.h"

#define LAB_FOLDER "/run/dsfemu"

#define BOX_WIDTH_MIN 60
#define BOX_HEIGHT    26
#define CHAR_WIDTH    7 /* of the 11 px monospace font, with room */
#define BOX_GAP       14
#define ROW_GAP       110
#define MARGIN        30
#define TITLE_HEIGHT  50

/* A pair of nodes and the links between them. */
struct pair {
	uint32_t lower, upper; /* nodes */
	uint32_t links;        /* how many in parallel */
	enum topo_link_kind kind;
};

struct picture {
	const struct topo *topo;
	struct pair *pairs;
	uint32_t pairs_count;
	int *x, *width; /* per node: left edge and width of its box */
	int total_width;
};

static const char *role_color(enum topo_role role)
{
	switch (role) {
	case TOPO_ROLE_RDSW: return "#cfe3f7";
	case TOPO_ROLE_EDSW: return "#bfe8e0";
	case TOPO_ROLE_FDSW: return "#f9e2b8";
	case TOPO_ROLE_SDSW: return "#f5cdb6";
	case TOPO_ROLE_SSW: return "#e3d0f0";
	case TOPO_ROLE_HOST: return "#e4e4e4";
	case TOPO_ROLE_EXTERNAL: return "#ffffff";
	}
	return "#ffffff";
}

static const char *kind_color(enum topo_link_kind kind)
{
	switch (kind) {
	case TOPO_LINK_GPU: return "#777777";
	case TOPO_LINK_FABRIC: return "#b8860b";
	case TOPO_LINK_SPINE: return "#b5532a";
	case TOPO_LINK_EDGE: return "#7a4fa0";
	}
	return "#000000";
}

#define TIERS_COUNT 5

/* Row of a node from the bottom: hosts, interface nodes, FDSWs, SDSWs, SSWs and externals. */
static int tier_of(enum topo_role role)
{
	switch (role) {
	case TOPO_ROLE_HOST: return 0;
	case TOPO_ROLE_RDSW:
	case TOPO_ROLE_EDSW: return 1;
	case TOPO_ROLE_FDSW: return 2;
	case TOPO_ROLE_SDSW: return 3;
	case TOPO_ROLE_SSW:
	case TOPO_ROLE_EXTERNAL: return 4;
	}
	return 0;
}

static int pair_compare(const void *a, const void *b)
{
	const struct pair *x = a, *y = b;

	if (x->lower != y->lower)
		return x->lower < y->lower ? -1 : 1;
	return (x->upper > y->upper) - (x->upper < y->upper);
}

/* Parallel links become one pair. */
static bool make_pairs(struct picture *p)
{
	const struct topo *t = p->topo;
	uint32_t count = 0;

	p->pairs = calloc(t->links_count + 1u, sizeof(*p->pairs));
	if (p->pairs == NULL)
		return false;
	for (uint32_t i = 0; i < t->links_count; i++)
		p->pairs[i] = (struct pair){ .lower = t->ports[t->links[i].port_a].node,
			.upper = t->ports[t->links[i].port_b].node,
			.links = 1,
			.kind = t->links[i].kind };
	if (t->links_count > 0)
		qsort(p->pairs, t->links_count, sizeof(*p->pairs), pair_compare);
	for (uint32_t i = 0; i < t->links_count; i++) {
		if (count > 0 && pair_compare(&p->pairs[count - 1], &p->pairs[i]) == 0)
			p->pairs[count - 1].links++;
		else
			p->pairs[count++] = p->pairs[i];
	}
	p->pairs_count = count;
	return true;
}

static void print_dot(const struct picture *p, struct output_text *text)
{
	const struct topo *t = p->topo;

	output_text_add(text,
		"graph \"%s\" {\n  rankdir=BT;\n  node [shape=box, style=filled, "
		"fontname=monospace];\n",
		t->name);
	for (int tier = 0; tier < TIERS_COUNT; tier++) {
		output_text_add(text, "  { rank=same;\n");
		for (uint32_t i = 0; i < t->nodes_count; i++) {
			if (tier_of(t->nodes[i].role) == tier)
				output_text_add(text, "    \"%s\" [fillcolor=\"%s\"];\n",
					t->nodes[i].name, role_color(t->nodes[i].role));
		}
		output_text_add(text, "  }\n");
	}
	for (uint32_t i = 0; i < p->pairs_count; i++) {
		const struct pair *pair = &p->pairs[i];

		output_text_add(text, "  \"%s\" -- \"%s\" [color=\"%s\"",
			t->nodes[pair->lower].name, t->nodes[pair->upper].name,
			kind_color(pair->kind));
		if (pair->links > 1)
			output_text_add(text, ", label=\"%u\"", pair->links);
		output_text_add(text, "];\n");
	}
	output_text_add(text, "}\n");
}

/* Names may not be ids there (a '-' can be read as an edge): n<index>["name"]. */
static void print_mermaid(const struct picture *p, struct output_text *text)
{
	const struct topo *t = p->topo;

	output_text_add(text, "graph BT\n");
	for (uint32_t i = 0; i < t->nodes_count; i++)
		output_text_add(text, "  n%u[\"%s\"]:::%s\n", i, t->nodes[i].name,
			topo_role_name(t->nodes[i].role));
	for (uint32_t i = 0; i < p->pairs_count; i++) {
		const struct pair *pair = &p->pairs[i];

		output_text_add(text, "  n%u ---", pair->lower);
		if (pair->links > 1)
			output_text_add(text, "|\"%u\"|", pair->links);
		output_text_add(text, " n%u\n", pair->upper);
	}
	for (int r = 0; r < TOPO_ROLES_COUNT; r++)
		output_text_add(text, "  classDef %s fill:%s,stroke:#333\n",
			topo_role_name((enum topo_role)r), role_color((enum topo_role)r));
}

/* Boxes of a row side by side, each row as wide as the widest. */
static bool lay_out(struct picture *p)
{
	const struct topo *t = p->topo;
	int row[TIERS_COUNT] = { 0 }, count[TIERS_COUNT] = { 0 }, placed[TIERS_COUNT] = { 0 };

	p->x = calloc(t->nodes_count + 1u, sizeof(*p->x));
	p->width = calloc(t->nodes_count + 1u, sizeof(*p->width));
	if (p->x == NULL || p->width == NULL)
		return false;
	for (uint32_t i = 0; i < t->nodes_count; i++) {
		int tier = tier_of(t->nodes[i].role);

		p->width[i] = (int)strlen(t->nodes[i].name) * CHAR_WIDTH + 12;
		if (p->width[i] < BOX_WIDTH_MIN)
			p->width[i] = BOX_WIDTH_MIN;
		p->x[i] = row[tier];
		count[tier]++;
		row[tier] += p->width[i] + BOX_GAP;
		if (row[tier] - BOX_GAP > p->total_width)
			p->total_width = row[tier] - BOX_GAP;
	}
	/* What a row leaves of the widest one's width is spread evenly over it. */
	for (uint32_t i = 0; i < t->nodes_count; i++) {
		int tier = tier_of(t->nodes[i].role);
		int spare = (p->total_width - (row[tier] - BOX_GAP)) / count[tier];

		p->x[i] += MARGIN + spare / 2 + spare * placed[tier]++;
	}
	return true;
}

/* Rows that have nodes, counted from the top: y of a tier's boxes. */
static int tier_y(const struct topo *t, int tier)
{
	bool used[TIERS_COUNT] = { false };
	int y = TITLE_HEIGHT;

	for (uint32_t i = 0; i < t->nodes_count; i++)
		used[tier_of(t->nodes[i].role)] = true;
	for (int above = TIERS_COUNT - 1; above > tier; above--)
		y += used[above] ? ROW_GAP : 0;
	return y;
}

/* Text for XML: names can't hold such characters today, but a picture must not depend on that. */
static void add_xml(struct output_text *text, const char *string)
{
	for (; *string != '\0'; string++) {
		switch (*string) {
		case '&': output_text_add(text, "&amp;"); break;
		case '<': output_text_add(text, "&lt;"); break;
		case '>': output_text_add(text, "&gt;"); break;
		case '"': output_text_add(text, "&quot;"); break;
		default: output_text_add(text, "%c", *string); break;
		}
	}
}

static void add_line(
	const struct picture *p, const int *y, const struct pair *pair, struct output_text *text)
{
	const struct topo *t = p->topo;
	int y1 = y[tier_of(t->nodes[pair->lower].role)];
	int y2 = y[tier_of(t->nodes[pair->upper].role)] + BOX_HEIGHT;
	int x1 = p->x[pair->lower] + p->width[pair->lower] / 2;
	int x2 = p->x[pair->upper] + p->width[pair->upper] / 2;

	output_text_add(text,
		"<line x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\" stroke=\"%s\" "
		"stroke-opacity=\"0.7\"",
		x1, y1, x2, y2, kind_color(pair->kind));
	if (pair->links > 1)
		output_text_add(text, " stroke-width=\"2\"");
	output_text_add(text, "><title>");
	add_xml(text, t->nodes[pair->lower].name);
	output_text_add(text, " - ");
	add_xml(text, t->nodes[pair->upper].name);
	if (pair->links > 1)
		output_text_add(text, ", %u links", pair->links);
	output_text_add(text, "</title></line>\n");
}

static void print_svg(const struct picture *p, struct output_text *text)
{
	const struct topo *t = p->topo;
	int y[TIERS_COUNT], width = p->total_width + 2 * MARGIN, height = 0;

	for (int tier = 0; tier < TIERS_COUNT; tier++)
		y[tier] = tier_y(t, tier);
	for (uint32_t i = 0; i < t->nodes_count; i++) {
		int bottom = y[tier_of(t->nodes[i].role)] + BOX_HEIGHT + MARGIN;

		height = bottom > height ? bottom : height;
	}
	output_text_add(text,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
		"viewBox=\"0 0 %d %d\" font-family=\"monospace\" font-size=\"11\">\n"
		"<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n"
		"<text x=\"%d\" y=\"24\" font-size=\"14\">",
		width, height, width, height, MARGIN);
	add_xml(text, t->name);
	output_text_add(text, ": %u nodes, %u links, %u planes</text>\n", t->nodes_count,
		t->links_count, t->planes);
	for (uint32_t i = 0; i < p->pairs_count; i++)
		add_line(p, y, &p->pairs[i], text);
	for (uint32_t i = 0; i < t->nodes_count; i++) {
		const struct topo_node *n = &t->nodes[i];
		int top = y[tier_of(n->role)];

		output_text_add(text,
			"<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"4\" fill=\"%s\" "
			"stroke=\"#333\"/><text x=\"%d\" y=\"%d\" text-anchor=\"middle\">",
			p->x[i], top, p->width[i], BOX_HEIGHT, role_color(n->role),
			p->x[i] + p->width[i] / 2, top + 17);
		add_xml(text, n->name);
		output_text_add(text, "</text>\n");
	}
	output_text_add(text, "</svg>\n");
}

static int draw(const struct topo *t, const char *format)
{
	struct picture p = { .topo = t };
	struct output_text text = { .failed = false };

	text.failed = !make_pairs(&p) || !lay_out(&p);
	if (!text.failed) {
		if (strcmp(format, "svg") == 0)
			print_svg(&p, &text);
		else if (strcmp(format, "mermaid") == 0)
			print_mermaid(&p, &text);
		else
			print_dot(&p, &text);
	}
	free(p.pairs);
	free(p.x);
	free(p.width);
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
	.help = "A picture on stdout: tiers are rows, hosts at the bottom; parallel links are one "
		"line.\n"
		"A word with a '/' or that ends with .json is a file, another one a lab that runs.",
	.options = graph_options,
	.words_min = 1,
	.words_max = 1,
	.run = run,
};
