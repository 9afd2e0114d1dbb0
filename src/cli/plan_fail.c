#include "cli/plan_fail.h"
#include <stdlib.h>
#include <string.h>
#include "base/bitset.h"
#include "topo/fixed.h"
#include "topo/memory.h"
#include "view/rows.h"

#define FABRICS_MAX (256u * TOPO_PLANES_MAX) /* a plane of a building each */

/* What the nodes of one fabric come to: of each node and destination, three sets of ports. */
struct sheet {
	uint32_t *destinations; /* nodes, by rising switch index */
	uint32_t count;
	uint64_t *words;
};

/* Of each node of a fabric: where its part of the sheet's words begins. */
struct place {
	size_t first;
	uint32_t set_words; /* of one set of ports; a row has three, and its flags */
	bool last;          /* of its fabric */
};

enum { FLAG_CUT = 1, FLAG_DIFFERS = 2 };

struct failing {
	const struct topo *topo;
	const uint64_t *failed;
	struct topo_fixed *broken, *healthy; /* healthy: only where it is compared with */
	struct place *places;                /* [nodes_count] */
	struct sheet *sheets;                /* [FABRICS_MAX] */
};

static uint32_t fabric_of(const struct topo_node *n)
{
	return n->building * TOPO_PLANES_MAX + n->plane;
}

static bool is_switch(const struct topo_node *n)
{
	return topo_is_interface_node(n->role) || topo_is_fabric_node(n->role);
}

static size_t row_words(const struct place *p)
{
	return 3 * (size_t)p->set_words + 1;
}

static uint64_t *row_of(
	const struct failing *f, const struct sheet *s, uint32_t node, uint32_t destination)
{
	const struct place *p = &f->places[node];

	return s->words + s->count * p->first + destination * row_words(p);
}

/* Has this fabric lost a link? */
static bool is_hurt(const struct failing *f, uint32_t fabric)
{
	const struct topo *t = f->topo;

	for (uint32_t i = dsf_bitset_next(f->failed, 0, t->links_count); i < t->links_count;
		i = dsf_bitset_next(f->failed, i + 1, t->links_count))
		if (fabric_of(&t->nodes[t->ports[t->links[i].port_b].node]) == fabric)
			return true;
	return false;
}

static void fill_row(const struct failing *f, const struct sheet *s, uint32_t node, uint32_t d)
{
	uint32_t words = f->places[node].set_words;
	uint64_t *to = row_of(f, s, node, d);
	size_t size = words * sizeof(*to);
	struct topo_fixed_row row;

	if (!topo_fixed_row(f->broken, node, &row))
		return;
	memcpy(to, row.output, size);
	memcpy(to + words, row.advertised, size);
	memcpy(to + 2 * words, row.withdrawn, size);
	to[3 * words] = row.cut_by_balance ? FLAG_CUT : 0;
	if (f->healthy != NULL && topo_fixed_row(f->healthy, node, &row) &&
		(memcmp(to, row.output, size) != 0 ||
			memcmp(to + words, row.advertised, size) != 0 ||
			memcmp(to + 2 * words, row.withdrawn, size) != 0))
		to[3 * words] |= FLAG_DIFFERS;
}

/* False: memory is short. */
static bool open_sheet(const struct failing *f, struct sheet *s, uint32_t fabric)
{
	const struct topo *t = f->topo;
	size_t words = 0;

	s->destinations = calloc(t->switches_count + 1u, sizeof(*s->destinations));
	for (uint32_t i = 0; s->destinations != NULL && i < t->switches_count; i++) {
		uint32_t node = t->switch_node[i];

		if (node != TOPO_NONE && topo_is_interface_node(t->nodes[node].role) &&
			fabric_of(&t->nodes[node]) == fabric)
			s->destinations[s->count++] = node;
	}
	for (uint32_t i = 0; i < t->nodes_count; i++)
		if (is_switch(&t->nodes[i]) && fabric_of(&t->nodes[i]) == fabric)
			words += row_words(&f->places[i]);
	s->words = calloc(words * s->count + 1, sizeof(*s->words));
	if (s->destinations == NULL || s->words == NULL)
		return false;
	for (uint32_t d = 0; d < s->count; d++) {
		topo_fixed_destination(f->broken, s->destinations[d]);
		if (f->healthy != NULL)
			topo_fixed_destination(f->healthy, s->destinations[d]);
		for (uint32_t i = 0; i < t->nodes_count; i++)
			if (is_switch(&t->nodes[i]) && fabric_of(&t->nodes[i]) == fabric)
				fill_row(f, s, i, d);
	}
	return true;
}

static void close_sheet(struct sheet *s)
{
	free(s->destinations);
	free(s->words);
	*s = (struct sheet){ .count = 0 };
}

/* The node's rows; NULL: memory is short. */
static cJSON *rows_of(const struct failing *f, const struct sheet *s, uint32_t node)
{
	uint32_t words = f->places[node].set_words;
	struct view_rows rows;

	view_rows_begin(&rows, f->topo, NULL);
	for (uint32_t d = 0; d < s->count; d++) {
		const uint64_t *from = row_of(f, s, node, d);
		struct node_row row = { .query = NODE_QUERY_REACHABILITY, .node = node };

		if (f->healthy != NULL && (from[3 * words] & FLAG_DIFFERS) == 0)
			continue;
		row.reachability =
			(struct node_row_reachability){ .destination = s->destinations[d],
				.output = from,
				.advertised = from + words,
				.withdrawn = from + 2 * words,
				.cut_by_balance = (from[3 * words] & FLAG_CUT) != 0 };
		view_rows_append(&rows, &row);
	}
	return view_rows_finish(&rows);
}

static enum plan_fail_end tell_node(
	const struct failing *f, uint32_t node, plan_fail_fn fn, void *user)
{
	uint32_t fabric = fabric_of(&f->topo->nodes[node]);
	struct sheet *s = &f->sheets[fabric];
	cJSON *rows;

	/* Nothing changes in fabrics that are whole, of which a region has many. */
	if (f->healthy != NULL && !is_hurt(f, fabric))
		return PLAN_FAIL_DONE;
	if (s->words == NULL && !open_sheet(f, s, fabric))
		return PLAN_FAIL_NOMEM;
	rows = rows_of(f, s, node);
	if (f->places[node].last)
		close_sheet(s);
	if (rows == NULL)
		return PLAN_FAIL_NOMEM;
	return fn(user, rows) ? PLAN_FAIL_DONE : PLAN_FAIL_REFUSED;
}

/* Where each node's part of its fabric's sheet is. False: memory is short. */
static bool find_places(struct failing *f)
{
	size_t *words = calloc(FABRICS_MAX, sizeof(*words));
	uint32_t *last = calloc(FABRICS_MAX, sizeof(*last));
	const struct topo *t = f->topo;

	for (uint32_t i = 0; words != NULL && last != NULL && i < t->nodes_count; i++) {
		uint32_t fabric;

		if (!is_switch(&t->nodes[i]))
			continue;
		fabric = fabric_of(&t->nodes[i]);
		f->places[i].set_words = DSF_BITSET_WORDS(t->nodes[i].ports_count);
		f->places[i].first = words[fabric];
		words[fabric] += row_words(&f->places[i]);
		f->places[last[fabric]].last = false;
		f->places[i].last = true;
		last[fabric] = i;
	}
	free(last);
	free(words);
	return words != NULL && last != NULL;
}

/* Minimum links, of the healthy fabric and then of the broken one. False: memory is short. */
static bool starve(const struct topo *t, uint64_t *none, uint64_t *failed)
{
	bool *starved = calloc(t->nodes_count + 1u, sizeof(*starved));

	if (starved == NULL)
		return false;
	for (uint32_t i = 0; i < t->nodes_count; i++)
		starved[i] = true;
	topo_fixed_starve(t, none, starved);
	topo_fixed_starve(t, failed, starved);
	free(starved);
	return true;
}

enum plan_fail_end plan_fail_rows(const struct topo *t, uint64_t *failed, uint64_t seed, bool all,
	plan_fail_fn fn, void *user)
{
	uint64_t *none = calloc(DSF_BITSET_WORDS(t->links_count) + 1, sizeof(*none));
	struct failing f = { .topo = t,
		.failed = failed,
		.broken = topo_fixed_new(t, failed, seed, &topo_memory),
		.healthy = none == NULL || all ? NULL : topo_fixed_new(t, none, seed, &topo_memory),
		.places = calloc(t->nodes_count + 1u, sizeof(*f.places)),
		.sheets = calloc(FABRICS_MAX, sizeof(*f.sheets)) };
	enum plan_fail_end end = PLAN_FAIL_NOMEM;

	if (none != NULL && f.broken != NULL && (all || f.healthy != NULL) && f.places != NULL &&
		f.sheets != NULL && find_places(&f) && starve(t, none, failed))
		end = PLAN_FAIL_DONE;
	for (uint32_t i = 0; end == PLAN_FAIL_DONE && i < t->nodes_count; i++)
		if (is_switch(&t->nodes[i]))
			end = tell_node(&f, i, fn, user);
	for (uint32_t i = 0; f.sheets != NULL && i < FABRICS_MAX; i++)
		close_sheet(&f.sheets[i]);
	free(f.sheets);
	free(f.places);
	topo_fixed_free(f.broken);
	topo_fixed_free(f.healthy);
	free(none);
	return end;
}
