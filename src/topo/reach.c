#include "topo/reach.h"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "base/bitset.h"
#include "base/err.h"

#define BUILDINGS_MAX 256
#define CLUSTERS_MAX  256
#define FABRICS_MAX   (BUILDINGS_MAX * TOPO_PLANES_MAX)

/* One fabric at a time; sets are of interface nodes by their place in `in`. */
struct fabric {
	const struct topo *t;
	uint32_t *in; /* node indexes */
	uint32_t in_count, words;
	uint32_t *local;    /* [nodes_count]: place of a node's set, or of an IN in `in` */
	uint64_t *sets;     /* per fabric node: INs below it; then what it reaches */
	uint64_t *reach;    /* per FDSW: INs that it reaches */
	uint64_t *clusters; /* per cluster: its INs */
	uint64_t *all;      /* scratch */
};

static uint64_t *set_of(const struct fabric *f, uint64_t *base, uint32_t node)
{
	return base + (size_t)f->local[node] * f->words;
}

static void add_set(uint64_t *to, const uint64_t *from, const uint64_t *without, uint32_t words)
{
	for (uint32_t w = 0; w < words; w++)
		to[w] |= without == NULL ? from[w] : from[w] & ~without[w];
}

static const struct topo_node *peer_node(const struct topo *t, const struct topo_port *p)
{
	return &t->nodes[t->ports[p->peer].node];
}

/* What stands directly below each FDSW, then below each SDSW. */
static void hear_up(const struct fabric *f, const uint32_t *nodes, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct topo_node *n = &f->t->nodes[nodes[i]];

		for (uint32_t k = 0; n->role == TOPO_ROLE_FDSW && k < n->ports_count; k++) {
			const struct topo_port *p = topo_node_port(f->t, n, k);
			uint32_t peer = f->t->ports[p->peer].node;

			if (topo_is_interface_node(f->t->nodes[peer].role))
				dsf_bitset_add(set_of(f, f->sets, nodes[i]), f->local[peer]);
		}
	}
	for (uint32_t i = 0; i < count; i++) {
		const struct topo_node *n = &f->t->nodes[nodes[i]];

		for (uint32_t k = 0; n->role == TOPO_ROLE_SDSW && k < n->ports_count; k++) {
			uint32_t peer = f->t->ports[topo_node_port(f->t, n, k)->peer].node;

			add_set(set_of(f, f->sets, nodes[i]), set_of(f, f->sets, peer), NULL,
				f->words);
		}
	}
}

/* An FDSW reaches what is below it, and over SDSWs what is in other clusters. */
static void hear_down(const struct fabric *f, const uint32_t *nodes, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct topo_node *n = &f->t->nodes[nodes[i]];
		uint64_t *reach = set_of(f, f->reach, nodes[i]);

		if (n->role != TOPO_ROLE_FDSW)
			continue;
		add_set(reach, set_of(f, f->sets, nodes[i]), NULL, f->words);
		for (uint32_t k = 0; k < n->ports_count; k++) {
			const struct topo_port *p = topo_node_port(f->t, n, k);
			uint32_t peer = f->t->ports[p->peer].node;

			if (peer_node(f->t, p)->role == TOPO_ROLE_SDSW)
				add_set(reach, set_of(f, f->sets, peer),
					f->clusters + (size_t)n->cluster * f->words, f->words);
		}
	}
}

/* The first interface node that an interface node doesn't reach; TOPO_NONE when it reaches all. */
static uint32_t first_missing(const struct fabric *f, uint32_t in)
{
	const struct topo_node *n = &f->t->nodes[f->in[in]];

	memset(f->all, 0, f->words * sizeof(*f->all));
	dsf_bitset_add(f->all, in);
	for (uint32_t k = 0; k < n->ports_count; k++) {
		const struct topo_port *p = topo_node_port(f->t, n, k);
		uint32_t peer = f->t->ports[p->peer].node;

		if (f->t->nodes[peer].role == TOPO_ROLE_FDSW)
			add_set(f->all, set_of(f, f->reach, peer), NULL, f->words);
	}
	for (uint32_t i = 0; i < f->in_count; i++) {
		if (!dsf_bitset_has(f->all, i))
			return f->in[i];
	}
	return TOPO_NONE;
}

/* Nodes of one fabric in nodes[0..count-1]. */
static int check_fabric(
	struct fabric *f, const uint32_t *nodes, uint32_t count, uint32_t *from, uint32_t *to)
{
	uint32_t sets = 0;
	int result = -DSF_E_NOMEM;

	f->in_count = 0;
	for (uint32_t i = 0; i < count; i++) {
		if (topo_is_interface_node(f->t->nodes[nodes[i]].role)) {
			f->local[nodes[i]] = f->in_count;
			f->in[f->in_count++] = nodes[i];
		} else {
			f->local[nodes[i]] = sets++;
		}
	}
	if (f->in_count < 2)
		return 0;
	f->words = DSF_BITSET_WORDS(f->in_count);
	f->sets = calloc((size_t)sets * f->words + 1, sizeof(uint64_t));
	f->reach = calloc((size_t)sets * f->words + 1, sizeof(uint64_t));
	f->clusters = calloc((size_t)CLUSTERS_MAX * f->words, sizeof(uint64_t));
	f->all = calloc(f->words, sizeof(uint64_t));
	if (f->sets != NULL && f->reach != NULL && f->clusters != NULL && f->all != NULL) {
		result = 0;
		for (uint32_t i = 0; i < f->in_count; i++)
			dsf_bitset_add(
				f->clusters + (size_t)f->t->nodes[f->in[i]].cluster * f->words, i);
		hear_up(f, nodes, count);
		hear_down(f, nodes, count);
		for (uint32_t i = 0; i < f->in_count && result == 0; i++) {
			*from = f->in[i];
			*to = first_missing(f, i);
			result = *to != TOPO_NONE;
		}
	}
	free(f->all);
	free(f->clusters);
	free(f->reach);
	free(f->sets);
	return result;
}

static uint32_t fabric_of(const struct topo_node *n)
{
	if (n->switch_index == TOPO_NONE)
		return TOPO_NONE;
	return n->building * TOPO_PLANES_MAX + n->plane;
}

int topo_reach_check(const struct topo *t, uint32_t *from, uint32_t *to)
{
	uint32_t first[FABRICS_MAX + 1] = { 0 }, at[FABRICS_MAX];
	uint32_t *nodes = calloc(t->nodes_count + 1u, sizeof(*nodes));
	struct fabric f = { .t = t };
	int result = -DSF_E_NOMEM;

	f.in = calloc(t->nodes_count + 1u, sizeof(*f.in));
	f.local = calloc(t->nodes_count + 1u, sizeof(*f.local));
	if (nodes != NULL && f.in != NULL && f.local != NULL) {
		result = 0;
		/* Sorted by fabric: count, sum up, place. */
		for (uint32_t i = 0; i < t->nodes_count; i++) {
			if (fabric_of(&t->nodes[i]) != TOPO_NONE)
				first[fabric_of(&t->nodes[i]) + 1]++;
		}
		for (uint32_t k = 0; k < FABRICS_MAX; k++) {
			first[k + 1] += first[k];
			at[k] = first[k];
		}
		for (uint32_t i = 0; i < t->nodes_count; i++) {
			if (fabric_of(&t->nodes[i]) != TOPO_NONE)
				nodes[at[fabric_of(&t->nodes[i])]++] = i;
		}
		for (uint32_t k = 0; k < FABRICS_MAX && result == 0; k++)
			result = check_fabric(
				&f, nodes + first[k], first[k + 1] - first[k], from, to);
	}
	free(f.local);
	free(f.in);
	free(nodes);
	return result;
}
