/*
 * The planner's fixed point. That it is the devices' is shown by tests/sim/fabric_random; here what
 * must hold of it by itself, and how often each draw cuts an interface node off: a few runs here;
 * with arguments (`topo_fixed FILE RUNS...`, scripts/check --long) so many of each file.
 */
#include "topo/fixed.h"
#include "topo/memory.h"
#include <stdlib.h>
#include <string.h>
#include "base/bitset.h"
#include "base/rng.h"
#include "tests/tap.h"
#include "topo/file.h"

#define FAULTS_MAX  8u
#define LINKS_WORDS DSF_BITSET_WORDS(1u << 17)

static uint64_t failed[LINKS_WORDS];

static struct topo *load(const char *file)
{
	const char *source = getenv("DSF_SOURCE");
	static char text[1 << 17];
	struct topo_error err;
	char path[4096];
	struct topo *t;
	size_t size;
	FILE *f;

	snprintf(path, sizeof(path), "%s/topologies/%s", source == NULL ? "." : source, file);
	f = fopen(path, "rb");
	size = f == NULL ? 0 : fread(text, 1, sizeof(text), f);
	if (f != NULL)
		fclose(f);
	if (topo_load_text(text, size, path, &t, &err) < 0 || t->links_count > 64 * LINKS_WORDS) {
		TAP_OK(false, "%s: %s", path, err.text);
		exit(TAP_DONE());
	}
	return t;
}

static void fail(const struct topo *t, const char *port)
{
	dsf_bitset_add(failed, t->ports[topo_find_port(t, port)].link);
}

/* Of all pairs of interface nodes: ways, and pairs that balance cut off. */
struct sums {
	uint32_t ways, cut;
};

static struct sums sum_up(const struct topo *t, uint64_t seed)
{
	struct topo_fixed *f = topo_fixed_new(t, failed, seed, &topo_memory);
	struct sums sums = { 0, 0 };
	struct topo_fixed_row row;

	for (uint32_t d = 0; d < t->nodes_count; d++) {
		if (!topo_is_interface_node(t->nodes[d].role))
			continue;
		topo_fixed_destination(f, d);
		for (uint32_t i = 0; i < t->nodes_count; i++) {
			if (!topo_is_interface_node(t->nodes[i].role) ||
				!topo_fixed_row(f, i, &row))
				continue;
			sums.ways += dsf_bitset_count(
				row.output, DSF_BITSET_WORDS(t->nodes[i].ports_count));
			sums.cut += row.cut_by_balance;
		}
	}
	topo_fixed_free(f);
	return sums;
}

static void figures(void)
{
	struct topo *t = load("figures.json");
	struct sums sums;

	memset(failed, 0, sizeof(failed));
	sums = sum_up(t, 1);
	TAP_EQ(sums.ways, 8 * 7 * 2, "healthy: two ways from each to each other");
	fail(t, "x-rdsw3:fab1");
	sums = sum_up(t, 1);
	TAP_EQ(sums.ways, 112 - 7 - 3 - 4,
		"A: its node loses a way to all, its cluster one to it, and so does the other");
	memset(failed, 0, sizeof(failed));
	fail(t, "x-fdsw1:fab7");
	sums = sum_up(t, 1);
	TAP_EQ(sums.ways, 112 - 4 - 4, "B: one node of each cluster loses a way to the other");
	t->fabric.input_balanced = false;
	sums = sum_up(t, 1);
	TAP_EQ(sums.ways, 112, "B without Input Balanced Mode: nothing is withheld");
	topo_free(t);
}

/* Below its minimum links a node is out, and comes back with more than it left with. */
static void minimum(void)
{
	struct topo *t = load("mini.json");
	bool *starved = calloc(t->nodes_count, sizeof(*starved));
	uint32_t leaf = t->ports[topo_find_port(t, "b0-z0-p0-rdsw0:fab0")].node;

	t->fabric.min_links_to_remain = 1;
	t->fabric.min_links_to_join = 2;
	memset(failed, 0, sizeof(failed));
	memset(starved, true, t->nodes_count * sizeof(*starved));
	topo_fixed_starve(t, failed, starved);
	TAP_EQ(sum_up(t, 1).ways, 2 * 4 * 3 * 2, "links enough to join: everybody is in");
	fail(t, "b0-z0-p0-rdsw0:fab0");
	topo_fixed_starve(t, failed, starved);
	TAP_OK(!starved[leaf], "enough to remain");
	fail(t, "b0-z0-p0-rdsw0:fab1");
	topo_fixed_starve(t, failed, starved);
	TAP_OK(starved[leaf], "none");
	memset(failed, 0, sizeof(failed));
	fail(t, "b0-z0-p0-rdsw0:fab0");
	topo_fixed_starve(t, failed, starved);
	TAP_OK(starved[leaf], "too few to join");
	TAP_EQ(sum_up(t, 1).ways, 2 * 4 * 3 * 2 - 2 * 3 * 2, "its other link is out too");
	free(starved);
	topo_free(t);
}

static void draw_faults(const struct topo *t, struct dsf_rng *rng, uint32_t count)
{
	memset(failed, 0, sizeof(failed));
	while (count > 0) {
		uint32_t link = (uint32_t)dsf_rng_below(rng, t->links_count);

		if (t->ports[t->links[link].port_a].ethernet || dsf_bitset_has(failed, link))
			continue;
		dsf_bitset_add(failed, link);
		count--;
	}
}

/* How many of so many runs cut somebody off, by number of failures. */
struct cuts {
	uint32_t runs, by_faults[2][FAULTS_MAX + 1], sum[2]; /* stratified, random */
};

static struct cuts draws(const char *file, uint32_t runs)
{
	struct cuts cut = { .runs = runs };
	struct topo *t = load(file);

	for (uint32_t faults = 1; faults <= FAULTS_MAX; faults++)
		for (uint32_t run = 0; run < runs; run++) {
			struct dsf_rng rng;

			dsf_rng_fork(&rng, run, faults, 0);
			draw_faults(t, &rng, faults);
			for (int random = 0; random < 2; random++) {
				t->fabric.draw = random ? TOPO_DRAW_RANDOM : TOPO_DRAW_STRATIFIED;
				cut.by_faults[random][faults] += sum_up(t, run + 1).cut > 0;
			}
		}
	for (uint32_t faults = 1; faults <= FAULTS_MAX; faults++) {
		cut.sum[0] += cut.by_faults[0][faults];
		cut.sum[1] += cut.by_faults[1][faults];
	}
	topo_free(t);
	return cut;
}

static void print_cuts(const char *file, const struct cuts *cut)
{
	for (int random = 0; random < 2; random++) {
		printf("# %-13s %6u  %-10s", file, cut->runs, random ? "random" : "stratified");
		for (uint32_t faults = 1; faults <= FAULTS_MAX; faults++)
			printf(" %7.2f", 100.0 * cut->by_faults[random][faults] / cut->runs);
		printf("\n");
	}
}

static void check_draws(const char *file, uint32_t runs)
{
	struct cuts cut = draws(file, runs);

	print_cuts(file, &cut);
	TAP_EQ(cut.by_faults[0][1], 0, "%s: one failure cuts nobody off when stratified", file);
	TAP_OK(cut.sum[0] < cut.sum[1] || cut.sum[1] == 0,
		"%s: of %u runs %u cut somebody off when stratified, %u when random", file,
		FAULTS_MAX * runs, cut.sum[0], cut.sum[1]);
}

int main(int argc, char **argv)
{
	printf("# share of runs that cut an interface node off, in %%, by failures\n"
	       "# file            runs  draw             1       2       3       4       5       6"
	       "       7       8\n");
	for (int i = 1; i + 1 < argc; i += 2)
		check_draws(argv[i], (uint32_t)strtoul(argv[i + 1], NULL, 10));
	if (argc > 1)
		return TAP_DONE();
	figures();
	minimum();
	check_draws("figures.json", 100);
	check_draws("l2-zone.json", 30);
	return TAP_DONE();
}
