#include <stdlib.h>
#include <string.h>
#include "cli/graph.h"

#define CHAR_WIDTH   7 /* of the 11 px monospace font, with room */
#define NODE_MIN     34
#define NODE_PAD     8
#define NODE_GAP     8
#define NODE_HIGH    24
#define BOX_PAD      8  /* around what lies in a box */
#define BOX_TITLE    16 /* above it */
#define BOX_GAP      10
#define BUILDING_GAP 30
#define MARGIN       24
#define TITLE_HIGH   44
#define ROW_GAP      150
#define LEGEND_GAP   130 /* between entries */
#define LEGEND_HIGH  60

struct picture {
	const struct graph *g;
	int step; /* from node to node, the widest with its gap */
	int width;
	int y[GRAPH_TIERS]; /* top of a tier's nodes */
	int height;         /* of all rows */
};

static int larger(int a, int b)
{
	return a > b ? a : b;
}

/* How wide a box has to be; that of the boxes in it is known. */
static int box_width(const struct picture *p, uint32_t box)
{
	const struct graph_box *b = &p->g->boxes[box];
	int inside = 0, widest = 0;

	for (uint32_t i = box + 1; i < p->g->boxes_count; i++)
		if (p->g->boxes[i].parent == box)
			inside += p->g->boxes[i].width + (inside > 0 ? BOX_GAP : 0);
	for (unsigned tier = 0; tier < GRAPH_TIERS; tier++)
		widest = larger(widest, (int)b->counts[tier] * p->step);
	return larger(inside, widest) + 2 * BOX_PAD;
}

/* Boxes in a box side by side, with what is left of its width between them. */
static void put_inside(const struct picture *p, uint32_t box)
{
	const struct graph_box *b = &p->g->boxes[box];
	int inside = 0, x = b->x + BOX_PAD;
	int spare = 0, count = 0;

	for (uint32_t i = box + 1; i < p->g->boxes_count; i++) {
		if (p->g->boxes[i].parent != box)
			continue;
		inside += p->g->boxes[i].width;
		count++;
	}
	if (count > 0)
		spare = (b->width - 2 * BOX_PAD - inside - (count - 1) * BOX_GAP) / count;
	for (uint32_t i = box + 1; i < p->g->boxes_count; i++) {
		struct graph_box *c = &p->g->boxes[i];

		if (c->parent != box)
			continue;
		c->x = x;
		c->width += spare;
		x += c->width + BOX_GAP;
	}
}

/* How deep a box lies in others. */
static int depth_of(const struct graph *g, uint32_t box)
{
	int depth = 0;

	for (; g->boxes[box].parent != TOPO_NONE; box = g->boxes[box].parent)
		depth++;
	return depth;
}

static void lay_out_boxes(struct picture *p)
{
	int x = MARGIN, outside[GRAPH_TIERS] = { 0 };

	for (uint32_t i = p->g->boxes_count; i-- > 0;)
		p->g->boxes[i].width = box_width(p, i);
	for (uint32_t i = 0; i < p->g->boxes_count; i++) {
		struct graph_box *b = &p->g->boxes[i];

		if (b->parent == TOPO_NONE) {
			b->x = x;
			x += b->width + BUILDING_GAP;
		}
		put_inside(p, i);
	}
	for (uint32_t i = 0; i < p->g->topo->nodes_count; i++)
		if (p->g->box_of[i] == TOPO_NONE)
			outside[graph_tier(p->g->topo->nodes[i].role)]++;
	p->width = x - BUILDING_GAP - MARGIN;
	for (unsigned tier = 0; tier < GRAPH_TIERS; tier++)
		p->width = larger(p->width, outside[tier] * p->step);
}

/* Tiers that have nodes, from the top. */
static void lay_out_rows(struct picture *p)
{
	bool used[GRAPH_TIERS] = { false };
	int y = TITLE_HIGH + 2 * BOX_TITLE;

	for (uint32_t i = 0; i < p->g->topo->nodes_count; i++)
		used[graph_tier(p->g->topo->nodes[i].role)] = true;
	for (unsigned tier = GRAPH_TIERS; tier-- > 0;) {
		p->y[tier] = y;
		y += used[tier] ? ROW_GAP : 0;
	}
	p->height = y - ROW_GAP + NODE_HIGH + 3 * BOX_PAD + MARGIN;
}

/* A box reaches from its highest node to its lowest, those of boxes in it included. */
static void lay_out_heights(const struct picture *p)
{
	for (uint32_t i = 0; i < p->g->boxes_count; i++) {
		p->g->boxes[i].top = p->height;
		p->g->boxes[i].bottom = 0;
	}
	for (uint32_t i = 0; i < p->g->topo->nodes_count; i++) {
		int y = p->y[graph_tier(p->g->topo->nodes[i].role)], edge = 1;

		for (uint32_t box = p->g->box_of[i]; box != TOPO_NONE; edge++) {
			struct graph_box *b = &p->g->boxes[box];

			if (y - edge * BOX_TITLE - BOX_PAD < b->top)
				b->top = y - edge * BOX_TITLE - BOX_PAD;
			b->bottom = larger(b->bottom, y + NODE_HIGH + edge * BOX_PAD);
			box = b->parent;
		}
	}
}

/* Left edges of all nodes: evenly over the width of their box, or of all. */
static void place_nodes(const struct picture *p, int *x)
{
	const struct graph *g = p->g;
	uint32_t slots = (g->boxes_count + 1) * GRAPH_TIERS;
	uint32_t *placed = calloc(slots, sizeof(*placed)), outside[GRAPH_TIERS] = { 0 };

	for (uint32_t i = 0; i < g->topo->nodes_count; i++)
		if (g->box_of[i] == TOPO_NONE)
			outside[graph_tier(g->topo->nodes[i].role)]++;
	for (uint32_t i = 0; placed != NULL && i < g->topo->nodes_count; i++) {
		unsigned tier = graph_tier(g->topo->nodes[i].role);
		uint32_t box = g->box_of[i];
		bool out = box == TOPO_NONE;
		uint32_t count = out ? outside[tier] : g->boxes[box].counts[tier];
		uint32_t at = placed[(out ? g->boxes_count : box) * GRAPH_TIERS + tier]++;
		int64_t from = out ? MARGIN : g->boxes[box].x + BOX_PAD / 2;
		int64_t wide = out ? p->width : g->boxes[box].width - BOX_PAD;

		x[i] = (int)(from + wide * (2 * at + 1) / (2 * count)) - (p->step - NODE_GAP) / 2;
	}
	free(placed);
}

/* Text for XML: names can't hold such characters today, but a picture must not depend on that. */
static void add_xml(struct output_text *text, const char *string, size_t size)
{
	for (size_t i = 0; i < size && string[i] != '\0'; i++) {
		switch (string[i]) {
		case '&': output_text_add(text, "&amp;"); break;
		case '<': output_text_add(text, "&lt;"); break;
		case '>': output_text_add(text, "&gt;"); break;
		case '"': output_text_add(text, "&quot;"); break;
		default: output_text_add(text, "%c", string[i]); break;
		}
	}
}

static void add_box(const struct picture *p, uint32_t box, struct output_text *text)
{
	static const char *const fills[] = { "#fafafa", "#f3f3f3", "#ffffff" };
	const struct graph_box *b = &p->g->boxes[box];
	size_t size;
	const char *name = graph_box_name(p->g, box, &size);

	output_text_add(text,
		"<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"6\" fill=\"%s\" "
		"stroke=\"#aaa\"/><text x=\"%d\" y=\"%d\" fill=\"#555\">",
		b->x, b->top, b->width, b->bottom - b->top, fills[depth_of(p->g, box) % 3],
		b->x + BOX_PAD, b->top + BOX_TITLE - 4);
	add_xml(text, name, size);
	output_text_add(text, "</text>\n");
}

/* The number of parallel links stands beside a line's lower end. */
static void add_line(const struct picture *p, const int *x, const struct graph_pair *pair,
	struct output_text *text)
{
	const struct topo_node *lower = &p->g->topo->nodes[pair->lower];
	const struct topo_node *upper = &p->g->topo->nodes[pair->upper];
	int y1 = p->y[graph_tier(lower->role)], middle = (p->step - NODE_GAP) / 2;
	int y2 = p->y[graph_tier(upper->role)] + NODE_HIGH;
	int x1 = x[pair->lower] + middle, x2 = x[pair->upper] + middle;

	output_text_add(text,
		"<line x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\" stroke=\"%s\" "
		"stroke-opacity=\"0.6\" stroke-width=\"%s\"><title>",
		x1, y1, x2, y2, graph_kind_color(pair->kind), pair->links > 1 ? "1.8" : "1");
	add_xml(text, lower->name, SIZE_MAX);
	output_text_add(text, " - ");
	add_xml(text, upper->name, SIZE_MAX);
	if (pair->links > 1)
		output_text_add(text, ", %u links", pair->links);
	output_text_add(text, "</title></line>\n");
	if (pair->links > 1)
		output_text_add(text,
			"<text x=\"%d\" y=\"%d\" font-size=\"10\" paint-order=\"stroke\" "
			"stroke=\"white\" "
			"stroke-width=\"2\" text-anchor=\"middle\" "
			"fill=\"%s\">"
			"%u</text>\n",
			x1 + (x2 - x1) / 8, y1 + (y2 - y1) / 8 + 3, graph_kind_color(pair->kind),
			pair->links);
}

static void add_node(const struct picture *p, const int *x, uint32_t node, struct output_text *text)
{
	const struct topo_node *n = &p->g->topo->nodes[node];
	int top = p->y[graph_tier(n->role)], width = p->step - NODE_GAP;

	output_text_add(text, "<g><title>");
	add_xml(text, n->name, SIZE_MAX);
	output_text_add(text,
		"</title><rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"4\" fill=\"%s\" "
		"stroke=\"#333\"/><text x=\"%d\" y=\"%d\" text-anchor=\"middle\">",
		x[node], top, width, NODE_HIGH, graph_role_color(n->role), x[node] + width / 2,
		top + 16);
	add_xml(text, graph_label(p->g, node), SIZE_MAX);
	output_text_add(text, "</text></g>\n");
}

/* Roles and kinds that there are. */
static void add_legend(const struct picture *p, struct output_text *text)
{
	bool roles[TOPO_ROLES_COUNT] = { false }, kinds[TOPO_KINDS_COUNT] = { false };
	int x = MARGIN, y = p->height + 12;

	for (uint32_t i = 0; i < p->g->topo->nodes_count; i++)
		roles[p->g->topo->nodes[i].role] = true;
	for (uint32_t i = 0; i < p->g->pairs_count; i++)
		kinds[p->g->pairs[i].kind] = true;
	for (int r = 0; r < TOPO_ROLES_COUNT; r++) {
		if (!roles[r])
			continue;
		output_text_add(text,
			"<rect x=\"%d\" y=\"%d\" width=\"20\" height=\"12\" rx=\"3\" fill=\"%s\" "
			"stroke=\"#333\"/><text x=\"%d\" y=\"%d\">%s</text>\n",
			x, y - 10, graph_role_color((enum topo_role)r), x + 26, y,
			topo_role_name((enum topo_role)r));
		x += LEGEND_GAP;
	}
	x = MARGIN;
	y += 24;
	for (int k = 0; k < TOPO_KINDS_COUNT; k++) {
		if (!kinds[k])
			continue;
		output_text_add(text,
			"<rect x=\"%d\" y=\"%d\" width=\"20\" height=\"2\" fill=\"%s\"/>"
			"<text x=\"%d\" y=\"%d\">%s links</text>\n",
			x, y - 5, graph_kind_color((enum topo_link_kind)k), x + 26, y,
			topo_link_kind_name((enum topo_link_kind)k));
		x += LEGEND_GAP;
	}
	output_text_add(
		text, "<text x=\"%d\" y=\"%d\">a number at a line: parallel links</text>\n", x, y);
}

static void draw(const struct picture *p, const int *x, struct output_text *text)
{
	const struct topo *t = p->g->topo;
	int width = larger(p->width, 6 * LEGEND_GAP) + 2 * MARGIN;
	int height = p->height + LEGEND_HIGH;

	output_text_add(text,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
		"viewBox=\"0 0 %d %d\" font-family=\"monospace\" font-size=\"11\">\n"
		"<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n"
		"<text x=\"%d\" y=\"24\" font-size=\"14\">",
		width, height, width, height, MARGIN);
	add_xml(text, t->name, SIZE_MAX);
	output_text_add(text, ": %u nodes, %u links, %u planes</text>\n", t->nodes_count,
		t->links_count, t->planes);
	for (uint32_t i = 0; i < p->g->boxes_count; i++)
		add_box(p, i, text);
	for (uint32_t i = 0; i < p->g->pairs_count; i++)
		add_line(p, x, &p->g->pairs[i], text);
	for (uint32_t i = 0; i < t->nodes_count; i++)
		add_node(p, x, i, text);
	add_legend(p, text);
	output_text_add(text, "</svg>\n");
}

void graph_svg(const struct graph *g, struct output_text *text)
{
	struct picture p = { .g = g };
	int *x = calloc(g->topo->nodes_count + 1u, sizeof(*x)), widest = NODE_MIN;

	text->failed = text->failed || x == NULL;
	for (uint32_t i = 0; i < g->topo->nodes_count; i++)
		widest = larger(widest, (int)strlen(graph_label(g, i)) * CHAR_WIDTH + NODE_PAD);
	p.step = widest + NODE_GAP;
	lay_out_rows(&p);
	lay_out_boxes(&p);
	lay_out_heights(&p);
	if (x != NULL) {
		place_nodes(&p, x);
		draw(&p, x, text);
	}
	free(x);
}
