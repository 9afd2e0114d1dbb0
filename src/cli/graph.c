#include "cli/graph.h"
#include <stdlib.h>
#include <string.h>

#define BOXES_STEP 64u

const char *graph_role_color(enum topo_role role)
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

const char *graph_kind_color(enum topo_link_kind kind)
{
	switch (kind) {
	case TOPO_LINK_GPU: return "#777777";
	case TOPO_LINK_FABRIC: return "#b8860b";
	case TOPO_LINK_SPINE: return "#b5532a";
	case TOPO_LINK_EDGE: return "#7a4fa0";
	}
	return "#000000";
}

unsigned graph_tier(enum topo_role role)
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
	const struct graph_pair *x = a, *y = b;

	if (x->lower != y->lower)
		return x->lower < y->lower ? -1 : 1;
	return (x->upper > y->upper) - (x->upper < y->upper);
}

/* Parallel links become one pair. */
static bool make_pairs(struct graph *g)
{
	const struct topo *t = g->topo;
	uint32_t count = 0;

	g->pairs = calloc(t->links_count + 1u, sizeof(*g->pairs));
	if (g->pairs == NULL)
		return false;
	for (uint32_t i = 0; i < t->links_count; i++)
		g->pairs[i] = (struct graph_pair){ .lower = t->ports[t->links[i].port_a].node,
			.upper = t->ports[t->links[i].port_b].node,
			.links = 1,
			.kind = t->links[i].kind };
	if (t->links_count > 0)
		qsort(g->pairs, t->links_count, sizeof(*g->pairs), pair_compare);
	for (uint32_t i = 0; i < t->links_count; i++) {
		if (count > 0 && pair_compare(&g->pairs[count - 1], &g->pairs[i]) == 0)
			g->pairs[count - 1].links++;
		else
			g->pairs[count++] = g->pairs[i];
	}
	g->pairs_count = count;
	return true;
}

/* What two names have in common, up to a '-'. */
static size_t common_size(const char *a, const char *b, size_t most)
{
	size_t size = 0;

	for (size_t i = 0; i < most && a[i] != '\0' && a[i] == b[i]; i++)
		if (a[i] == '-')
			size = i + 1;
	return size;
}

static size_t last_part(const char *name)
{
	const char *dash = strrchr(name, '-');

	return dash == NULL ? 0 : (size_t)(dash - name) + 1;
}

/* The box of these, made if it isn't there; TOPO_NONE: no memory. */
static uint32_t find_box(struct graph *g, uint32_t parent, struct graph_box want, uint32_t node)
{
	const char *name = g->topo->nodes[node].name;

	for (uint32_t i = 0; i < g->boxes_count; i++) {
		struct graph_box *b = &g->boxes[i];

		if (b->building != want.building || b->cluster != want.cluster ||
			b->plane != want.plane)
			continue;
		b->common = common_size(g->topo->nodes[b->first].name, name, b->common);
		return i;
	}
	if (g->boxes_count % BOXES_STEP == 0) {
		struct graph_box *grown =
			realloc(g->boxes, (g->boxes_count + BOXES_STEP) * sizeof(*grown));

		if (grown == NULL)
			return TOPO_NONE;
		g->boxes = grown;
	}
	want.parent = parent;
	want.first = node;
	want.common = last_part(name);
	g->boxes[g->boxes_count] = want;
	return g->boxes_count++;
}

/* The innermost box of a node, and those around it. */
static bool place(struct graph *g, uint32_t node)
{
	const struct topo_node *n = &g->topo->nodes[node];
	struct graph_box want = {
		.building = n->building, .cluster = TOPO_NONE, .plane = TOPO_NONE
	};
	uint32_t box = TOPO_NONE;

	g->box_of[node] = TOPO_NONE;
	if (n->building == TOPO_NONE)
		return true;
	box = find_box(g, TOPO_NONE, want, node);
	want.cluster = n->cluster;
	if (box != TOPO_NONE && want.cluster != TOPO_NONE)
		box = find_box(g, box, want, node);
	want.plane = n->plane;
	if (box != TOPO_NONE && want.cluster != TOPO_NONE && want.plane != TOPO_NONE)
		box = find_box(g, box, want, node);
	if (box == TOPO_NONE)
		return false;
	g->box_of[node] = box;
	g->boxes[box].counts[graph_tier(n->role)]++;
	return true;
}

bool graph_open(struct graph *g, const struct topo *t)
{
	bool placed = true;

	*g = (struct graph){ .topo = t };
	g->box_of = calloc(t->nodes_count + 1u, sizeof(*g->box_of));
	if (g->box_of == NULL || !make_pairs(g))
		return false;
	for (uint32_t i = 0; placed && i < t->nodes_count; i++)
		placed = place(g, i);
	return placed;
}

void graph_close(struct graph *g)
{
	free(g->pairs);
	free(g->boxes);
	free(g->box_of);
}

static size_t common_of(const struct graph *g, uint32_t box)
{
	return box == TOPO_NONE ? 0 : g->boxes[box].common;
}

const char *graph_box_name(const struct graph *g, uint32_t box, size_t *size)
{
	const struct graph_box *b = &g->boxes[box];
	size_t from = common_of(g, b->parent);

	*size = b->common > from ? b->common - from - 1 : 0; /* without its '-' */
	return g->topo->nodes[b->first].name + from;
}

const char *graph_label(const struct graph *g, uint32_t node)
{
	return g->topo->nodes[node].name + common_of(g, g->box_of[node]);
}

static void dot_node(const struct graph *g, uint32_t node, struct output_text *text)
{
	const struct topo_node *n = &g->topo->nodes[node];

	output_text_add(text, "    \"%s\" [label=\"%s\", tooltip=\"%s\", fillcolor=\"%s\"];\n",
		n->name, graph_label(g, node), n->name, graph_role_color(n->role));
}

/* A box with what lies right in it. */
static void dot_box(const struct graph *g, uint32_t box, struct output_text *text)
{
	size_t size;
	const char *name = graph_box_name(g, box, &size);

	output_text_add(
		text, "  subgraph cluster_%u {\n    label=\"%.*s\";\n", box, (int)size, name);
	for (uint32_t i = 0; i < g->topo->nodes_count; i++)
		if (g->box_of[i] == box)
			dot_node(g, i, text);
	for (uint32_t i = box + 1; i < g->boxes_count; i++)
		if (g->boxes[i].parent == box)
			dot_box(g, i, text);
	output_text_add(text, "  }\n");
}

static void dot_ranks(const struct graph *g, struct output_text *text)
{
	for (unsigned tier = 0; tier < GRAPH_TIERS; tier++) {
		output_text_add(text, "  { rank=same;");
		for (uint32_t i = 0; i < g->topo->nodes_count; i++)
			if (graph_tier(g->topo->nodes[i].role) == tier)
				output_text_add(text, " \"%s\";", g->topo->nodes[i].name);
		output_text_add(text, " }\n");
	}
}

static bool has_role(const struct topo *t, enum topo_role role)
{
	for (uint32_t i = 0; i < t->nodes_count; i++)
		if (t->nodes[i].role == role)
			return true;
	return false;
}

static bool has_kind(const struct graph *g, enum topo_link_kind kind)
{
	for (uint32_t i = 0; i < g->pairs_count; i++)
		if (g->pairs[i].kind == kind)
			return true;
	return false;
}

static void dot_legend(const struct graph *g, struct output_text *text)
{
	output_text_add(text, "  subgraph cluster_legend {\n    label=<");
	for (int k = 0; k < TOPO_KINDS_COUNT; k++)
		if (has_kind(g, (enum topo_link_kind)k))
			output_text_add(text, "<font color=\"%s\">%s links</font> ",
				graph_kind_color((enum topo_link_kind)k),
				topo_link_kind_name((enum topo_link_kind)k));
	output_text_add(text, "(a number: parallel links)>;\n");
	for (int r = 0; r < TOPO_ROLES_COUNT; r++)
		if (has_role(g->topo, (enum topo_role)r))
			output_text_add(text,
				"    \"legend %s\" [label=\"%s\", fillcolor=\"%s\"];\n",
				topo_role_name((enum topo_role)r),
				topo_role_name((enum topo_role)r),
				graph_role_color((enum topo_role)r));
	output_text_add(text, "  }\n");
}

void graph_dot(const struct graph *g, struct output_text *text)
{
	const struct topo *t = g->topo;

	output_text_add(text,
		"graph \"%s\" {\n  rankdir=BT;\n  newrank=true;\n  node [shape=box, style=filled, "
		"fontname=monospace];\n",
		t->name);
	dot_legend(g, text);
	for (uint32_t i = 0; i < g->boxes_count; i++)
		if (g->boxes[i].parent == TOPO_NONE)
			dot_box(g, i, text);
	for (uint32_t i = 0; i < t->nodes_count; i++)
		if (g->box_of[i] == TOPO_NONE)
			dot_node(g, i, text);
	dot_ranks(g, text);
	for (uint32_t i = 0; i < g->pairs_count; i++) {
		const struct graph_pair *pair = &g->pairs[i];

		output_text_add(text, "  \"%s\" -- \"%s\" [color=\"%s\"",
			t->nodes[pair->lower].name, t->nodes[pair->upper].name,
			graph_kind_color(pair->kind));
		if (pair->links > 1)
			output_text_add(text, ", label=\"%u\"", pair->links);
		output_text_add(text, "];\n");
	}
	output_text_add(text, "}\n");
}

/* Names may not be ids there (a '-' can be read as an edge): n<index>["name"]. */
static void mermaid_nodes(const struct graph *g, uint32_t box, struct output_text *text)
{
	for (uint32_t i = 0; i < g->topo->nodes_count; i++)
		if (g->box_of[i] == box)
			output_text_add(text, "  n%u[\"%s\"]:::%s\n", i, g->topo->nodes[i].name,
				topo_role_name(g->topo->nodes[i].role));
}

static void mermaid_box(const struct graph *g, uint32_t box, struct output_text *text)
{
	size_t size;
	const char *name = graph_box_name(g, box, &size);

	output_text_add(text, "  subgraph g%u[\"%.*s\"]\n", box, (int)size, name);
	mermaid_nodes(g, box, text);
	for (uint32_t i = box + 1; i < g->boxes_count; i++)
		if (g->boxes[i].parent == box)
			mermaid_box(g, i, text);
	output_text_add(text, "  end\n");
}

static void mermaid_legend(const struct graph *g, struct output_text *text)
{
	output_text_add(text, "  subgraph legend\n");
	for (int r = 0; r < TOPO_ROLES_COUNT; r++)
		if (has_role(g->topo, (enum topo_role)r))
			output_text_add(text, "  l%d[\"%s\"]:::%s\n", r,
				topo_role_name((enum topo_role)r),
				topo_role_name((enum topo_role)r));
	output_text_add(text, "  end\n");
}

void graph_mermaid(const struct graph *g, struct output_text *text)
{
	output_text_add(text, "graph BT\n");
	for (uint32_t i = 0; i < g->boxes_count; i++)
		if (g->boxes[i].parent == TOPO_NONE)
			mermaid_box(g, i, text);
	mermaid_nodes(g, TOPO_NONE, text);
	for (uint32_t i = 0; i < g->pairs_count; i++) {
		const struct graph_pair *pair = &g->pairs[i];

		output_text_add(text, "  n%u ---", pair->lower);
		if (pair->links > 1)
			output_text_add(text, "|\"%u\"|", pair->links);
		output_text_add(text, " n%u\n", pair->upper);
	}
	mermaid_legend(g, text);
	for (int r = 0; r < TOPO_ROLES_COUNT; r++)
		output_text_add(text, "  classDef %s fill:%s,stroke:#333\n",
			topo_role_name((enum topo_role)r), graph_role_color((enum topo_role)r));
}
