/*
 * The published failures of Input Balanced Mode on the published network (figures.json), which are
 * the vectors 0, A, B, C1 and C2: forced to the published choices, link by link; stratified and
 * random, by what any choice must give.
 */
#include <stdlib.h>
#include <string.h>
#include "base/bitset.h"
#include "sim/sim.h"
#include "tests/sim/lab.h"
#include "tests/tap.h"

#define INS 4u /* interface nodes of a cluster */

static struct lab lab;
static char name[128];

/* Failures, by the ends that the figures name. */
#define FAIL_A       "x-rdsw3:fab1" /* RDSW3(X) - FDSW1(X) */
#define FAIL_B       "x-fdsw1:fab7" /* FDSW1(X) - SDSW1, the second of two links */
#define FAIL_C       "y-rdsw0:fab0" /* and RDSW0(Y) - FDSW0(Y) */
#define FORCED       "\"draw\": \"forced\", \"orders\": ["
#define ORDER(n, ps) "{\"node\": \"" n "\", \"ports\": [" ps "]}"

static const char orders_a[] = FORCED ORDER("sdsw0", "\"fab4\", \"fab5\"") "," ORDER(
	"sdsw1", "\"fab6\", \"fab7\"") "," ORDER("y-fdsw0",
	"\"fab0\", \"fab1\"") "," ORDER("y-fdsw1", "\"fab2\", \"fab3\"") "]";
static const char orders_bc[] = FORCED ORDER("sdsw0", "\"fab0\", \"fab2\"") "," ORDER(
	"sdsw1", "\"fab4\", \"fab2\"") "," ORDER("x-fdsw0", "\"fab0\"") "," ORDER("x-fdsw1",
	"\"fab2\", \"fab0\", \"fab1\"") "," ORDER("y-fdsw0", "\"fab1\"") "]";

static void open_figures(const char *draw, uint64_t seed, const char *vector)
{
	static const char stratified[] = "\"draw\": \"stratified\"";
	const char *text = lab_read("figures.json"), *at = strstr(text, stratified);
	static char with[1 << 16];

	snprintf(name, sizeof(name), "%s, %s, seed %" PRIu64, vector,
		strstr(draw, "orders") != NULL  ? "forced"
		: strcmp(draw, stratified) == 0 ? "stratified"
						: "random",
		seed);
	if (at == NULL) {
		LAB_OK(false, "figures.json is stratified");
		exit(TAP_DONE());
	}
	snprintf(with, sizeof(with), "%.*s%s%s", (int)(at - text), text, draw,
		at + strlen(stratified));
	lab_open_text(&lab, with, seed);
}

static void set_link(const char *port, bool up)
{
	sim_link_set(lab.sim, lab.topo->ports[topo_find_port(lab.topo, port)].link, up);
	lab_run(&lab, 20 * NS_PER_US); /* three hops of a few microseconds each */
}

/* Sets of cell ports by their number: fab0 is bit 0. */
struct sets {
	uint64_t output, advertised, withdrawn;
	bool cut;
};

static void take(void *user, const struct node_row *row)
{
	const struct node_row_reachability *r = &row->reachability;

	*(struct sets *)user =
		(struct sets){ r->output[0], r->advertised[0], r->withdrawn[0], r->cut_by_balance };
}

static struct sets look(uint32_t node, uint32_t destination)
{
	struct sets sets = { 0 };

	sim_view(lab.sim, node, NODE_QUERY_REACHABILITY, destination, take, &sets);
	for (uint32_t i = 0; i < lab.topo->nodes[node].ports_count; i++) {
		if (!topo_node_port(lab.topo, &lab.topo->nodes[node], i)->ethernet)
			continue;
		sets.output >>= 1; /* Ethernet ports come first */
		sets.advertised >>= 1;
		sets.withdrawn >>= 1;
	}
	return sets;
}

static struct sets look_at(const char *node, const char *destination)
{
	return look(topo_find_node(lab.topo, node), topo_find_node(lab.topo, destination));
}

static uint32_t count(uint64_t set)
{
	return dsf_bitset_count(&set, 1);
}

static void count_unbalanced(void *user, const struct node_row *row)
{
	*(uint32_t *)user += !row->balance.balanced;
}

static void check_balanced(void)
{
	uint32_t unbalanced = 0;

	sim_view(lab.sim, TOPO_NONE, NODE_QUERY_BALANCE, TOPO_NONE, count_unbalanced, &unbalanced);
	LAB_OK(unbalanced == 0, "%s: %u groups are not balanced", name, unbalanced);
}

static bool same_cluster(uint32_t a, uint32_t b)
{
	return lab.topo->nodes[a].cluster == lab.topo->nodes[b].cluster;
}

/* Everything as the figures have it before any failure. */
static bool is_healthy(void)
{
	uint32_t wrong = 0;

	for (uint32_t i = 0; i < lab.topo->nodes_count; i++) {
		enum topo_role role = lab.topo->nodes[i].role;

		for (uint32_t d = 0; d < lab.topo->nodes_count; d++) {
			struct sets s;

			if (lab.topo->nodes[d].role != TOPO_ROLE_RDSW || d == i)
				continue;
			s = look(i, d);
			wrong += s.withdrawn != 0 || s.cut;
			if (role == TOPO_ROLE_RDSW)
				wrong += count(s.output) != 2;
			if (role == TOPO_ROLE_SDSW)
				wrong += count(s.output) != 4 || count(s.advertised) != 4;
			if (role == TOPO_ROLE_FDSW && !same_cluster(i, d))
				wrong += count(s.output) != 4 || count(s.advertised) != 4;
			if (role == TOPO_ROLE_FDSW && same_cluster(i, d))
				wrong += count(s.output) != 1 || count(s.advertised) != 7;
		}
	}
	return wrong == 0;
}

/* What one device says of one destination; sets are ports as bits. */
struct want {
	const char *node, *destination;
	uint64_t output, advertised, withdrawn;
};

static void check_wants(const struct want *wants, size_t wants_count)
{
	for (size_t i = 0; i < wants_count; i++) {
		const struct want *w = &wants[i];
		struct sets s = look_at(w->node, w->destination);

		LAB_OK(s.output == w->output && s.advertised == w->advertised &&
				s.withdrawn == w->withdrawn && !s.cut,
			"%s: %s for %s: output %02" PRIx64 ", advertised %02" PRIx64
			", withdrawn %02" PRIx64,
			name, w->node, w->destination, s.output, s.advertised, s.withdrawn);
	}
}

static void forced_a(uint64_t seed)
{
	static const struct want wants[] = {
		{ "x-fdsw1", "x-rdsw3", 0, 0, 0 },
		{ "x-fdsw0", "x-rdsw3", 0x08, 0xf7, 0 },
		{ "sdsw0", "x-rdsw3", 0x03, 0xc0, 0x30 },
		{ "sdsw1", "x-rdsw3", 0x03, 0x30, 0xc0 },
		{ "y-fdsw0", "x-rdsw3", 0xc0, 0x0c, 0x03 },
		{ "y-fdsw1", "x-rdsw3", 0x30, 0x03, 0x0c },
		{ "y-rdsw0", "x-rdsw3", 0x02, 0, 0 },
		{ "y-rdsw1", "x-rdsw3", 0x02, 0, 0 },
		{ "y-rdsw2", "x-rdsw3", 0x01, 0, 0 },
		{ "y-rdsw3", "x-rdsw3", 0x01, 0, 0 },
		/* Everything else is untouched. */
		{ "sdsw0", "x-rdsw2", 0x0f, 0xf0, 0 },
		{ "y-fdsw0", "x-rdsw2", 0xf0, 0x0f, 0 },
		{ "x-fdsw1", "y-rdsw0", 0xf0, 0x07, 0 },
		{ "x-rdsw3", "y-rdsw0", 0x01, 0, 0 },
	};

	open_figures(orders_a, seed, "A");
	LAB_OK(is_healthy(), "%s: vector 0", name);
	set_link(FAIL_A, false);
	check_wants(wants, sizeof(wants) / sizeof(wants[0]));
	check_balanced();
	set_link(FAIL_A, true);
	LAB_OK(is_healthy(), "%s: restored", name);
	lab_close(&lab);
}

static void forced_bc(uint64_t seed)
{
	static const struct want b[] = {
		{ "x-fdsw1", "y-rdsw0", 0x70, 0x0b, 0x04 },
		{ "x-fdsw1", "y-rdsw3", 0x70, 0x0b, 0x04 },
		{ "x-fdsw1", "x-rdsw0", 0x01, 0x7e, 0 },
		{ "x-rdsw2", "y-rdsw1", 0x01, 0, 0 },
		{ "x-rdsw2", "x-rdsw1", 0x03, 0, 0 },
		{ "x-rdsw0", "y-rdsw1", 0x03, 0, 0 },
		{ "sdsw1", "x-rdsw0", 0x07, 0xe0, 0x10 },
		{ "sdsw1", "y-rdsw0", 0xf0, 0x07, 0 },
		{ "sdsw0", "x-rdsw0", 0x0f, 0xf0, 0 },
		{ "y-fdsw0", "x-rdsw0", 0xb0, 0x0d, 0x02 },
		{ "y-fdsw0", "x-rdsw3", 0xb0, 0x0d, 0x02 },
		{ "y-fdsw1", "x-rdsw0", 0xf0, 0x0f, 0 },
		{ "y-rdsw1", "x-rdsw0", 0x02, 0, 0 },
		{ "y-rdsw0", "x-rdsw0", 0x03, 0, 0 },
	};
	static const struct want c[] = {
		/* C1: in and out are balanced already, so it ends there. */
		{ "sdsw1", "x-rdsw0", 0x07, 0xe0, 0x10 },
		{ "y-fdsw0", "x-rdsw0", 0xb0, 0x0e, 0 },
		{ "y-rdsw0", "x-rdsw0", 0x02, 0, 0 },
		{ "y-rdsw1", "x-rdsw0", 0x03, 0, 0 },
		/* C2 */
		{ "y-fdsw0", "y-rdsw0", 0, 0, 0 },
		{ "sdsw0", "y-rdsw0", 0xc0, 0x0a, 0x05 },
		{ "sdsw1", "y-rdsw0", 0xc0, 0x03, 0x04 },
		{ "x-fdsw1", "y-rdsw0", 0x20, 0x08, 0x07 },
		{ "x-fdsw0", "y-rdsw0", 0xe0, 0x0e, 0x01 },
		{ "x-fdsw1", "y-rdsw1", 0x70, 0x0b, 0x04 },
	};

	open_figures(orders_bc, seed, "B and C");
	set_link(FAIL_B, false);
	check_wants(b, sizeof(b) / sizeof(b[0]));
	check_balanced();
	set_link(FAIL_C, false);
	check_wants(c, sizeof(c) / sizeof(c[0]));
	LAB_OK(look_at("x-rdsw0", "y-rdsw0").cut && look_at("x-rdsw0", "y-rdsw0").output == 0,
		"%s: as in the figure, RDSW0(X) is cut off from RDSW0(Y), and knows why", name);
	LAB_OK(lab.events[DSF_EVENT_BALANCE_CUT] == lab.events[DSF_EVENT_BALANCE_BACK] + 1,
		"%s: told once", name);
	check_balanced();
	set_link(FAIL_B, true);
	set_link(FAIL_C, true);
	LAB_OK(is_healthy(), "%s: restored", name);
	LAB_OK(lab.events[DSF_EVENT_BALANCE_CUT] == lab.events[DSF_EVENT_BALANCE_BACK],
		"%s: nobody is cut off", name);
	lab_close(&lab);
}

/* Ways from the interface nodes of a cluster to a destination. */
struct ways {
	uint32_t by_in[INS], sum, cut;
};

static struct ways ways_from(char cluster, const char *destination)
{
	struct ways w = { 0 };

	for (uint32_t i = 0; i < INS; i++) {
		char node[16];
		struct sets s;

		snprintf(node, sizeof(node), "%c-rdsw%u", cluster, i);
		if (strcmp(node, destination) == 0)
			continue;
		s = look_at(node, destination);
		w.by_in[i] = count(s.output);
		w.sum += w.by_in[i];
		w.cut += w.by_in[i] == 0;
		if ((w.by_in[i] == 0) != s.cut)
			LAB_OK(false, "%s: %s knows whether balance cut it off", name, node);
	}
	return w;
}

static uint32_t advertised(const char *node, const char *destination)
{
	return count(look_at(node, destination).advertised);
}

/* A and B with any draw; the number of nodes that were cut off. */
static uint32_t drawn_a(const char *draw, uint64_t seed, bool stratified)
{
	struct ways w;

	open_figures(draw, seed, "A");
	set_link(FAIL_A, false);
	check_balanced();
	LAB_OK(advertised("sdsw0", "x-rdsw3") == 2 && advertised("sdsw1", "x-rdsw3") == 2,
		"%s: each SDSW takes back half", name);
	w = ways_from('y', "x-rdsw3");
	LAB_OK(w.sum == advertised("y-fdsw0", "x-rdsw3") + advertised("y-fdsw1", "x-rdsw3") &&
			w.sum == 4,
		"%s: %u ways from the other cluster", name, w.sum);
	if (stratified)
		for (uint32_t i = 0; i < INS; i++)
			LAB_OK(w.by_in[i] == 1, "%s: RDSW%u(Y) keeps one way of two", name, i);
	LAB_OK(ways_from('y', "x-rdsw2").sum == 8, "%s: others are untouched", name);
	set_link(FAIL_A, true);
	LAB_OK(is_healthy(), "%s: restored", name);
	lab_close(&lab);
	return w.cut;
}

static uint32_t drawn_bc(const char *draw, uint64_t seed, bool stratified)
{
	struct ways x, y, c1, c2;

	open_figures(draw, seed, "B and C");
	set_link(FAIL_B, false);
	check_balanced();
	x = ways_from('x', "y-rdsw0");
	y = ways_from('y', "x-rdsw0");
	LAB_OK(x.sum == 7 && y.sum == 7 && x.cut == 0 && y.cut == 0,
		"%s: B costs one way in each cluster: %u and %u of 8 are left", name, x.sum, y.sum);
	for (uint32_t i = 0; i < INS; i++) {
		char other[16];
		struct ways w;

		snprintf(other, sizeof(other), "y-rdsw%u", i);
		w = ways_from('x', other);
		LAB_OK(memcmp(&w, &x, sizeof(w)) == 0, "%s: the same one for %s", name, other);
	}
	LAB_OK(advertised("sdsw1", "x-rdsw0") == 3 && advertised("sdsw0", "x-rdsw0") == 4,
		"%s: B concerns SDSW1 alone", name);
	set_link(FAIL_C, false);
	check_balanced();
	c1 = ways_from('y', "x-rdsw0");
	c2 = ways_from('x', "y-rdsw0");
	LAB_OK(c1.sum == advertised("y-fdsw0", "x-rdsw0") + advertised("y-fdsw1", "x-rdsw0") &&
			(c1.sum == 6 || c1.sum == 7),
		"%s: C1: %u ways", name, c1.sum);
	LAB_OK(advertised("sdsw0", "y-rdsw0") == 2 && advertised("sdsw1", "y-rdsw0") == 2 &&
			c2.sum == 4,
		"%s: C2: each SDSW to 2 links, %u ways", name, c2.sum);
	/* RDSW0(Y) has one link left; nobody can know that it is the one to spare (C1). */
	if (stratified)
		LAB_OK(c1.cut <= 1 && c2.cut == 0, "%s: C2 cuts nobody off", name);
	set_link(FAIL_C, true);
	set_link(FAIL_B, true);
	LAB_OK(is_healthy(), "%s: restored", name);
	lab_close(&lab);
	return c1.cut + c2.cut;
}

static void test(uint64_t seed)
{
	static uint32_t runs, random_cut, stratified_cut;

	forced_a(seed);
	forced_bc(seed);
	LAB_OK(drawn_a("\"draw\": \"stratified\"", seed, true) == 0, "%s: none cut off", name);
	stratified_cut += drawn_bc("\"draw\": \"stratified\"", seed, true) > 0;
	runs += 2;
	random_cut += drawn_a("\"draw\": \"random\"", seed, false) > 0;
	random_cut += drawn_bc("\"draw\": \"random\"", seed, false) > 0;
	printf("# of %u runs of A and of B with C, %u cut somebody off when random, %u when "
	       "stratified\n",
		runs, random_cut, stratified_cut);
}

int main(int argc, char **argv)
{
	return lab_main(argc, argv, test, 20);
}
