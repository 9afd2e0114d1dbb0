/*
 * Random two-stage fabrics under random failures, in random order and timing: whatever happens, the
 * devices come to the one fixed point that the planner computes by another way.
 */
#include <stdlib.h>
#include <string.h>
#include "base/bitset.h"
#include "sim/sim.h"
#include "tests/sim/lab.h"
#include "tests/tap.h"
#include "topo/file.h"
#include "topo/fixed.h"
#include "topo/memory.h"

#define CLUSTERS_MAX 5u
#define FAULTS_MAX   8u
#define LINKS_MAX    1024u
#define NODES_MAX    128u
#define SETTLE_NS    (60 * NS_PER_US) /* four hops of 6 us at most, with room */
#define REST_NS      (100 * NS_PER_US)

static struct lab lab;
static struct dsf_rng rng;
static char text[1 << 18], name[128];
static size_t size;
static uint64_t down[DSF_BITSET_WORDS(LINKS_MAX)]; /* taken down */
static uint64_t dead[DSF_BITSET_WORDS(NODES_MAX)]; /* stopped nodes */

__attribute__((format(printf, 1, 2))) static void add(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	size += (size_t)vsnprintf(text + size, sizeof(text) - size, format, args);
	va_end(args);
	if (size >= sizeof(text))
		abort();
}

static uint32_t draw(uint32_t from, uint32_t to)
{
	return from + (uint32_t)dsf_rng_below(&rng, to - from + 1);
}

/* How a fabric is made; drawn once, so that it can be written again without its gaps. */
struct shape {
	uint32_t clusters, sdsw, spine_parallel;
	uint32_t rdsw[CLUSTERS_MAX], fdsw[CLUSTERS_MAX], parallel[CLUSTERS_MAX];
	bool mixed_rates;
	uint32_t gap_ppm; /* links that are left out */
	const char *kind;
};

static void add_link(const struct shape *s, bool *first, const char *a, uint32_t a_port,
	const char *b, uint32_t b_port)
{
	static const uint32_t rates_g[] = { 100, 200, 300, 400 };

	add("%s{\"a\":\"%s:fab%u\",\"b\":\"%s:fab%u\",\"delay\":\"%uns\",\"rate\":\"%uG\"}",
		*first ? "" : ",", a, a_port, b, b_port, draw(100, 6000),
		s->mixed_rates ? rates_g[draw(0, 3)] : 400u);
	*first = false;
}

static void add_nodes(const struct shape *s)
{
	for (uint32_t c = 0; c < s->clusters; c++) {
		for (uint32_t i = 0; i < s->rdsw[c]; i++)
			add("{\"name\":\"r%u-%u\",\"role\":\"rdsw\",\"cluster\":%u},", c, i, c);
		for (uint32_t i = 0; i < s->fdsw[c]; i++)
			add("{\"name\":\"f%u-%u\",\"role\":\"fdsw\",\"cluster\":%u},", c, i, c);
	}
	for (uint32_t i = 0; i < s->sdsw; i++)
		add("%s{\"name\":\"s%u\",\"role\":\"sdsw\"}", i > 0 ? "," : "", i);
}

static void write_fabric(const struct shape *s, uint64_t seed)
{
	uint32_t ports[3 * NODES_MAX] = { 0 }, *r = ports, *f = ports + NODES_MAX;
	uint32_t *up = ports + 2 * NODES_MAX;
	bool first = true;
	char a[24], b[24];

	size = 0;
	add("{\"name\":\"random\",\"seed\":%u,\"fabric\":{\"draw\":\"%s\"},\"nodes\":[",
		(unsigned)seed, s->kind);
	add_nodes(s);
	add("],\"links\":[");
	for (uint32_t c = 0; c < s->clusters; c++) {
		for (uint32_t i = 0; i < s->rdsw[c]; i++)
			for (uint32_t k = 0; k < s->fdsw[c] * s->parallel[c]; k++) {
				uint32_t leaf = k % s->fdsw[c];

				if (dsf_rng_chance(&rng, s->gap_ppm))
					continue;
				snprintf(a, sizeof(a), "r%u-%u", c, i);
				snprintf(b, sizeof(b), "f%u-%u", c, leaf);
				add_link(s, &first, a, r[c * 8 + i]++, b, f[c * 4 + leaf]++);
			}
		for (uint32_t i = 0; i < s->fdsw[c]; i++)
			for (uint32_t k = 0; k < s->sdsw * s->spine_parallel; k++) {
				uint32_t spine = k % s->sdsw;

				if (dsf_rng_chance(&rng, s->gap_ppm))
					continue;
				snprintf(a, sizeof(a), "f%u-%u", c, i);
				snprintf(b, sizeof(b), "s%u", spine);
				add_link(s, &first, a, f[c * 4 + i]++, b, up[spine]++);
			}
	}
	add("]}");
}

/* A fabric that the loader takes: with gaps it may leave somebody out of reach. */
static void open_fabric(uint64_t seed)
{
	struct shape s = { .clusters = draw(1, CLUSTERS_MAX),
		.sdsw = draw(1, 4),
		.spine_parallel = draw(1, 4),
		.mixed_rates = draw(0, 2) == 0,
		.gap_ppm = draw(0, 2) == 0 ? 100000 : 0,
		.kind = draw(0, 2) == 0 ? "random" : "stratified" };
	struct topo_error err;
	struct topo *t;

	for (uint32_t c = 0; c < s.clusters; c++) {
		s.rdsw[c] = draw(1, 8);
		s.fdsw[c] = draw(1, 4);
		s.parallel[c] = draw(1, 4);
	}
	write_fabric(&s, seed);
	if (topo_load_text(text, size, "random", &t, &err) < 0) {
		s.gap_ppm = 0;
		write_fabric(&s, seed);
	} else {
		topo_free(t);
	}
	snprintf(name, sizeof(name), "seed %" PRIu64 ", %u clusters, %u SDSWs x %u, %s%s%s", seed,
		s.clusters, s.sdsw, s.spine_parallel, s.kind, s.mixed_rates ? ", mixed rates" : "",
		s.gap_ppm > 0 ? ", with gaps" : "");
	memset(down, 0, sizeof(down));
	memset(dead, 0, sizeof(dead));
	lab_open_text(&lab, text, seed);
	if (lab.topo->links_count > LINKS_MAX || lab.topo->nodes_count > NODES_MAX)
		abort();
}

/* A set of ports: an SDSW may have 80. */
typedef unsigned __int128 ports;

static ports load(uint32_t node, const uint64_t *set)
{
	ports high = lab.topo->nodes[node].ports_count > 64 ? set[1] : 0;

	return high << 64 | set[0];
}

/* What nodes say, by node and destination. */
struct said {
	ports output, advertised, withdrawn;
	bool cut, there;
};

static struct said said[NODES_MAX][NODES_MAX];
static uint64_t rows_withdrawn, rows_cut; /* of all runs: to see that there are some */

static void take(void *user, const struct node_row *row)
{
	const struct node_row_reachability *r = &row->reachability;

	(void)user;
	said[row->node][r->destination] =
		(struct said){ load(row->node, r->output), load(row->node, r->advertised),
			load(row->node, r->withdrawn), r->cut_by_balance, true };
	rows_withdrawn += load(row->node, r->withdrawn) != 0;
	rows_cut += r->cut_by_balance;
}

static uint64_t dead_links[DSF_BITSET_WORDS(LINKS_MAX)];

/* The links that don't live, for whatever reason. */
static const uint64_t *find_dead_links(void)
{
	for (uint32_t i = 0; i < lab.topo->links_count; i++) {
		const struct topo_link *l = &lab.topo->links[i];

		if (dsf_bitset_has(down, i) ||
			dsf_bitset_has(dead, lab.topo->ports[l->port_a].node) ||
			dsf_bitset_has(dead, lab.topo->ports[l->port_b].node))
			dsf_bitset_add(dead_links, i);
		else
			dsf_bitset_remove(dead_links, i);
	}
	return dead_links;
}

/* Every row is the planner's. */
static uint32_t differences(void)
{
	struct topo_fixed *f = topo_fixed_new(lab.topo, find_dead_links(), lab.seed, &topo_memory);
	uint32_t wrong = 0, seen = 0;
	struct topo_fixed_row row;

	for (uint32_t d = 0; d < lab.topo->nodes_count; d++) {
		if (lab.topo->nodes[d].role != TOPO_ROLE_RDSW)
			continue;
		topo_fixed_destination(f, d);
		for (uint32_t i = 0; i < lab.topo->nodes_count; i++) {
			const struct said *s = &said[i][d];

			if (dsf_bitset_has(dead, i) || !topo_fixed_row(f, i, &row))
				continue;
			seen++;
			wrong += !s->there || s->output != load(i, row.output) ||
				 s->advertised != load(i, row.advertised) ||
				 s->withdrawn != load(i, row.withdrawn) ||
				 s->cut != row.cut_by_balance;
		}
	}
	topo_fixed_free(f);
	return seen == 0 ? UINT32_MAX : wrong;
}

/* On every live link one end hears what the other tells. */
static uint32_t disagreements(void)
{
	uint32_t wrong = 0;

	for (uint32_t i = 0; i < lab.topo->ports_count; i++) {
		const struct topo_port *p = &lab.topo->ports[i], *q = &lab.topo->ports[p->peer];

		if (dsf_bitset_has(dead_links, p->link))
			continue;
		for (uint32_t d = 0; d < lab.topo->nodes_count; d++)
			wrong += (said[p->node][d].output >> p->number & 1) !=
				 (said[q->node][d].advertised >> q->number & 1);
	}
	return wrong;
}

/* Ports of a node by which traffic comes in together with that of one port, for a destination
 * beyond this node. */
static ports group_of(const struct topo_node *n, uint32_t number)
{
	const struct topo_node *peer =
		&lab.topo->nodes[lab.topo->ports[topo_node_port(lab.topo, n, number)->peer].node];
	ports set = 0;

	for (uint32_t i = 0; i < n->ports_count; i++) {
		const struct topo_port *p = topo_node_port(lab.topo, n, i);
		const struct topo_node *other = &lab.topo->nodes[lab.topo->ports[p->peer].node];

		if (other->role == peer->role && other->cluster == peer->cluster)
			set |= (ports)1 << i;
	}
	return set;
}

static bool equal_rates(const struct topo_node *n)
{
	const struct topo_link *links = lab.topo->links;

	for (uint32_t i = 1; i < n->ports_count; i++)
		if (links[topo_node_port(lab.topo, n, i)->link].rate_bps !=
			links[topo_node_port(lab.topo, n, 0)->link].rate_bps)
			return false;
	return true;
}

/* Of what one node withholds in a group, one set holds the other. */
static uint32_t not_nested(uint32_t node)
{
	const struct topo_node *n = &lab.topo->nodes[node];
	uint32_t wrong = 0;

	for (uint32_t i = 0; i < n->ports_count; i++) {
		ports group = group_of(n, i);

		for (uint32_t a = 0; a < lab.topo->nodes_count; a++) {
			for (uint32_t b = 0; b < a; b++) {
				ports x = said[node][a].withdrawn & group;
				ports y = said[node][b].withdrawn & group;

				/* Local ones of an FDSW have each its own groups. */
				if (n->role == TOPO_ROLE_FDSW &&
					(lab.topo->nodes[a].cluster == n->cluster ||
						lab.topo->nodes[b].cluster == n->cluster))
					continue;
				wrong += (x & ~y) != 0 && (y & ~x) != 0;
			}
		}
	}
	return wrong;
}

static void count_unbalanced(void *user, const struct node_row *row)
{
	*(uint32_t *)user += !row->balance.balanced;
}

static void check(const char *when)
{
	uint32_t unbalanced = 0, wrong = 0;
	uint64_t changes;

	lab_run(&lab, SETTLE_NS);
	changes = lab.events[DSF_EVENT_REACH_CHANGED];
	lab_run(&lab, REST_NS);
	LAB_OK(lab.events[DSF_EVENT_REACH_CHANGED] == changes, "%s: %s, a fixed point is reached",
		name, when);
	memset(said, 0, sizeof(said));
	sim_view(lab.sim, TOPO_NONE, NODE_QUERY_REACHABILITY, TOPO_NONE, take, NULL);
	wrong = differences();
	LAB_OK(wrong == 0, "%s: %s, %u rows are not the planner's", name, when, wrong);
	wrong = disagreements();
	LAB_OK(wrong == 0, "%s: %s, %u times one end hears what isn't told", name, when, wrong);
	sim_view(lab.sim, TOPO_NONE, NODE_QUERY_BALANCE, TOPO_NONE, count_unbalanced, &unbalanced);
	LAB_OK(unbalanced == 0, "%s: %s, %u groups are not balanced", name, when, unbalanced);
	wrong = 0;
	for (uint32_t i = 0; i < lab.topo->nodes_count; i++)
		if (topo_is_fabric_node(lab.topo->nodes[i].role) &&
			equal_rates(&lab.topo->nodes[i]))
			wrong += not_nested(i);
	LAB_OK(wrong == 0, "%s: %s, %u pairs of withheld sets don't nest", name, when, wrong);
}

static void set_link(uint32_t link, bool up)
{
	sim_link_set(lab.sim, link, up);
	if (up)
		dsf_bitset_remove(down, link);
	else
		dsf_bitset_add(down, link);
}

static void set_node(uint32_t node, bool up)
{
	if (up) {
		(void)sim_node_start(lab.sim, node);
		dsf_bitset_remove(dead, node);
	} else {
		sim_node_stop(lab.sim, node);
		dsf_bitset_add(dead, node);
	}
}

/* Something breaks, or something broken is mended. */
static void fault(void)
{
	uint32_t link = draw(0, lab.topo->links_count - 1);
	uint32_t node = lab.topo->ports[lab.topo->links[link].port_b].node;

	if (draw(0, 9) == 0)
		set_node(node, dsf_bitset_has(dead, node));
	else
		set_link(link, dsf_bitset_has(down, link));
}

static void mend_all(bool at_once)
{
	for (uint32_t i = 0; i < lab.topo->nodes_count; i++)
		if (dsf_bitset_has(dead, i))
			set_node(i, true);
	for (uint32_t i = 0; i < lab.topo->links_count; i++) {
		if (!dsf_bitset_has(down, i))
			continue;
		set_link(i, true);
		if (!at_once)
			lab_run(&lab, draw(0, 10) * NS_PER_US);
	}
}

static void test(uint64_t seed)
{
	uint32_t faults;

	dsf_rng_fork(&rng, seed, 0x66616272, 0);
	open_fabric(seed);
	faults = draw(0, FAULTS_MAX);
	check("healthy");
	for (uint32_t i = 0; i < faults; i++) {
		fault();
		lab_run(&lab, draw(0, 12) * NS_PER_US); /* often before the last one has settled */
	}
	check("after faults one by one");
	mend_all(false);
	LAB_OK(sim_ready(lab.sim) || lab_wait_ready(&lab, NS_PER_MS), "%s: mended", name);
	check("mended");
	for (uint32_t i = 0; i < faults; i++)
		fault();
	check("after faults all at once");
	mend_all(true);
	check("mended at once");
	lab_close(&lab);
}

int main(int argc, char **argv)
{
	int code = lab_main(argc, argv, test, 60);

	printf("# %" PRIu64 " rows with something withheld, %" PRIu64 " cut off\n", rows_withdrawn,
		rows_cut);
	return code;
}
