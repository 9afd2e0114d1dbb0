#include "cli/plan_fail.h"
#include <stdlib.h>
#include <string.h>
#include "base/bitset.h"
#include "topo/fixed.h"
#include "topo/memory.h"
#include "view/json.h"
#include "view/rows.h"

struct failing {
	const struct topo *topo;
	struct topo_fixed *broken, *healthy;
	struct view_rows *rows; /* of each node: a fixed point is one destination's */
	bool all;
};

static bool differ(const struct topo_fixed_row *a, const struct topo_fixed_row *b, uint32_t ports)
{
	size_t size = DSF_BITSET_WORDS(ports) * sizeof(uint64_t);

	return memcmp(a->output, b->output, size) != 0 ||
	       memcmp(a->advertised, b->advertised, size) != 0 ||
	       memcmp(a->withdrawn, b->withdrawn, size) != 0;
}

static void add_row(struct failing *f, uint32_t node, uint32_t destination)
{
	struct node_row row = { .query = NODE_QUERY_REACHABILITY, .node = node };
	struct topo_fixed_row is, was;

	if (!topo_fixed_row(f->broken, node, &is) || !topo_fixed_row(f->healthy, node, &was))
		return;
	if (!f->all && !differ(&is, &was, f->topo->nodes[node].ports_count))
		return;
	row.reachability = (struct node_row_reachability){ .destination = destination,
		.output = is.output,
		.advertised = is.advertised,
		.withdrawn = is.withdrawn,
		.cut_by_balance = is.cut_by_balance };
	view_rows_append(&f->rows[node], &row);
}

static void add_destination(struct failing *f, uint32_t destination)
{
	topo_fixed_destination(f->broken, destination);
	topo_fixed_destination(f->healthy, destination);
	for (uint32_t i = 0; i < f->topo->nodes_count; i++)
		add_row(f, i, destination);
}

/* Has the fabric of this destination lost a link? Nothing changes in the others, of which a region
 * has many. */
static bool is_hurt(const struct topo *t, const uint64_t *failed, uint32_t destination)
{
	const struct topo_node *d = &t->nodes[destination];

	for (uint32_t i = dsf_bitset_next(failed, 0, t->links_count); i < t->links_count;
		i = dsf_bitset_next(failed, i + 1, t->links_count)) {
		const struct topo_node *n = &t->nodes[t->ports[t->links[i].port_b].node];

		if (n->building == d->building && n->plane == d->plane)
			return true;
	}
	return false;
}

/* One array of all nodes' rows. */
static cJSON *join(struct failing *f)
{
	cJSON *joined = cJSON_CreateArray();

	for (uint32_t i = 0; i < f->topo->nodes_count; i++) {
		cJSON *rows = view_rows_finish(&f->rows[i]), *row;

		if (rows == NULL) {
			cJSON_Delete(joined);
			joined = NULL;
		}
		while (joined != NULL && (row = cJSON_DetachItemFromArray(rows, 0)) != NULL)
			(void)view_json_append(joined, row); /* moves it: needs no memory */
		cJSON_Delete(rows);
	}
	return joined;
}

/* Minimum links, of the healthy fabric and then of the broken one. False: memory is short. */
static bool starve(const struct topo *t, uint64_t *none, uint64_t *failed)
{
	bool *starved = calloc(t->nodes_count + 1u, sizeof(*starved));

	if (starved == NULL || none == NULL) {
		free(starved);
		return false;
	}
	for (uint32_t i = 0; i < t->nodes_count; i++)
		starved[i] = true;
	topo_fixed_starve(t, none, starved);
	topo_fixed_starve(t, failed, starved);
	free(starved);
	return true;
}

cJSON *plan_fail_rows(const struct topo *t, uint64_t *failed, uint64_t seed, bool all)
{
	uint64_t *none = calloc(DSF_BITSET_WORDS(t->links_count) + 1, sizeof(*none));
	struct failing f = { .topo = t,
		.broken = topo_fixed_new(t, failed, seed, &topo_memory),
		.healthy = none == NULL ? NULL : topo_fixed_new(t, none, seed, &topo_memory),
		.rows = calloc(t->nodes_count + 1u, sizeof(*f.rows)),
		.all = all };
	cJSON *rows = NULL;

	if (f.broken != NULL && f.healthy != NULL && f.rows != NULL && starve(t, none, failed)) {
		for (uint32_t i = 0; i < t->nodes_count; i++)
			view_rows_begin(&f.rows[i], t, NULL);
		for (uint32_t s = 0; s < t->switches_count; s++)
			if (t->switch_node[s] != TOPO_NONE &&
				topo_is_interface_node(t->nodes[t->switch_node[s]].role) &&
				(all || is_hurt(t, failed, t->switch_node[s])))
				add_destination(&f, t->switch_node[s]);
		rows = join(&f);
	}
	free(f.rows);
	topo_fixed_free(f.broken);
	topo_fixed_free(f.healthy);
	free(none);
	return rows;
}
