/*
 * graph.h - what the pictures of a topology have in common
 *
 * Boxes lie in each other: a building, in it its zones and its edge PoD, in those their planes. A
 * box is named by what the names of its nodes begin with, as far as the box around it isn't; a node
 * is labelled by the rest of its name. Tiers are rows. Parallel links of one pair of nodes are one
 * line with their number.
 */
#ifndef DSF_CLI_GRAPH_H
#define DSF_CLI_GRAPH_H
#include <stddef.h>
#include "cli/output.h"
#include "topo/model.h"

#define GRAPH_TIERS 5

/* A pair of nodes and the links between them. */
struct graph_pair {
	uint32_t lower, upper; /* nodes */
	uint32_t links;        /* how many in parallel */
	enum topo_link_kind kind;
};

struct graph_box {
	uint32_t parent;                   /* TOPO_NONE: a building */
	uint32_t building, cluster, plane; /* TOPO_NONE: the whole of it */
	uint32_t first;                    /* a node of it */
	size_t common;                     /* characters that all names of it begin with */
	uint32_t counts[GRAPH_TIERS];      /* nodes right in it */
	int x, width, top, bottom;         /* svg */
};

struct graph {
	const struct topo *topo;
	struct graph_pair *pairs;
	uint32_t pairs_count;
	struct graph_box *boxes; /* a box comes behind the one around it */
	uint32_t boxes_count;
	uint32_t *box_of; /* per node; TOPO_NONE: it stands outside */
};

/* False: no memory; to be closed in any case. */
bool graph_open(struct graph *g, const struct topo *t);
void graph_close(struct graph *g);

const char *graph_role_color(enum topo_role role);
const char *graph_kind_color(enum topo_link_kind kind);

/* Row of a node from the bottom: hosts, interface nodes, FDSWs, SDSWs, SSWs and externals. */
unsigned graph_tier(enum topo_role role);

/* Name of a box, its size in *size; a node's, within its box. */
const char *graph_box_name(const struct graph *g, uint32_t box, size_t *size);
const char *graph_label(const struct graph *g, uint32_t node);

void graph_dot(const struct graph *g, struct output_text *text);
void graph_mermaid(const struct graph *g, struct output_text *text);
void graph_svg(const struct graph *g, struct output_text *text);

#endif
