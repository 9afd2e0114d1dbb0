/*
 * A routed Clos (clos.json) under packets: everybody reaches everybody, flows spread as dice do,
 * queues mark and drop, every packet comes or is counted once, and a link that fails moves its own
 * flows only.
 */
#include <stdlib.h>
#include <string.h>
#include "ip/packet.h"
#include "node/routed.h"
#include "tests/sim/lab.h"
#include "tests/tap.h"

#define SLOT_NS (20 * NS_PER_US) /* in which one flow sends one packet */
#define SIZE    1000u

static const struct topo_node *leaf_of(const struct topo *t, uint32_t rank)
{
	return &t->nodes[t->ports[topo_endpoint_port(t, rank, 0)->peer].node];
}

static uint8_t routers_between(const struct topo *t, uint32_t source, uint32_t target)
{
	const struct topo_node *a = leaf_of(t, source), *b = leaf_of(t, target);

	return a == b ? 1 : a->cluster == b->cluster ? 3 : 5;
}

static struct generator_flow flow_of(const struct lab *l, uint32_t source, uint32_t target)
{
	return (struct generator_flow){ .source = source,
		.target = target,
		.size = SIZE,
		.dscp = 50,
		.ecn = IP_ECN_ECT0,
		.rate_bps = 1000000000,
		.start = sim_now(l->sim),
		.stop = dsf_time_after(sim_now(l->sim), 40 * NS_PER_US),
		.routers = routers_between(l->topo, source, target) };
}

/* What flows sent, got, and what the network says that it lost of it. */
struct sum {
	uint64_t sent, received, marked, wrong, disorder;
	struct lab_totals totals;
	uint64_t cut, unroutable;
};

static struct sum sum_of(const struct lab *l)
{
	struct sum s = { .cut = sim_stats(l->sim).frames_cut };

	lab_total(l, &s.totals);
	s.unroutable = s.totals.errors[DSF_ERR_INDEX(-DSF_E_NOROUTE)] +
		       s.totals.errors[DSF_ERR_INDEX(-DSF_E_STATE)];
	for (uint32_t i = 0; i < generator_flows(); i++) {
		const struct generator_count *c = generator_count(i);

		s.sent += c->sent;
		s.received += c->received;
		s.marked += c->marked;
		s.wrong += c->wrong;
		s.disorder += c->reordered + c->duplicated;
	}
	return s;
}

/* Half of all pairs at a time, for the table of flows is smaller than their number. */
static void all_pairs(uint64_t seed)
{
	for (uint32_t half = 0; half < 2; half++) {
		struct lab l;
		uint32_t missing = 0, n;
		struct sum s;

		lab_open(&l, "clos.json", seed);
		n = l.topo->endpoints_count;
		for (uint32_t i = 0; i < n * (n - 1); i++) {
			uint32_t a = i / (n - 1), b = i % (n - 1);
			struct generator_flow flow;

			if (i % 2 != half)
				continue;
			flow = flow_of(&l, a, b + (b >= a));
			generator_add(&flow);
		}
		generator_kick(l.sim);
		lab_run(&l, NS_PER_MS);
		for (uint32_t i = 0; i < generator_flows(); i++)
			missing += generator_count(i)->received == 0 ||
				   generator_count(i)->received != generator_count(i)->sent;
		s = sum_of(&l);
		LAB_OK(missing == 0 && generator_flows() == n * (n - 1) / 2,
			"every pair, half %u: %u of %u flows miss something", half, missing,
			generator_flows());
		LAB_OK(s.wrong == 0 && s.disorder == 0, "as sent, in order, a hop less a router");
		lab_close(&l);
	}
}

struct ports {
	const struct topo *topo;
	uint64_t *frames; /* by port of the topology */
};

static void take_frames(void *user, const struct node_row *row)
{
	struct ports *p = user;
	const struct topo_node *n = &p->topo->nodes[row->node];

	if (row->port.port < n->ports_count && n->role != TOPO_ROLE_HOST)
		p->frames[n->first_port + row->port.port] = row->port.frames_tx;
}

static void count_frames(const struct lab *l, uint64_t *frames)
{
	struct ports p = { l->topo, frames };

	memset(frames, 0, l->topo->ports_count * sizeof(*frames));
	sim_view(l->sim, TOPO_NONE, NODE_QUERY_PORT, TOPO_NONE, take_frames, &p);
}

/* Of the ports of a tier that go up: how far the frames are from dice, in deviations squared. */
static double uneven(const struct lab *l, const uint64_t *before, const uint64_t *after,
	enum topo_role role, enum topo_link_kind kind, double packets_a_flow)
{
	double sum = 0, chi = 0, off;
	uint32_t count = 0;

	for (int pass = 0; pass < 2; pass++)
		for (uint32_t i = 0; i < l->topo->ports_count; i++) {
			const struct topo_port *p = &l->topo->ports[i];
			double flows = (double)(after[i] - before[i]) / packets_a_flow;

			if (l->topo->nodes[p->node].role != role ||
				l->topo->links[p->link].kind != kind ||
				l->topo->links[p->link].port_a != i)
				continue;
			if (pass == 0) {
				sum += flows;
				count++;
			} else {
				chi += (flows - sum / count) * (flows - sum / count) * count / sum;
			}
		}
	off = chi - (count - 1);
	return count < 2 ? 1e9 : off * off / (2.0 * (count - 1));
}

static void spread(uint64_t seed)
{
	uint64_t *before, *after;
	struct lab l;
	double up, spine;

	lab_open(&l, "clos.json", seed);
	before = calloc(l.topo->ports_count, sizeof(*before));
	after = calloc(l.topo->ports_count, sizeof(*after));
	for (uint32_t i = 0; i < GENERATOR_FLOWS_MAX; i++) {
		uint32_t n = l.topo->endpoints_count, source = i % n;
		/* Another zone: half of the ranks further, give or take some. */
		struct generator_flow flow =
			flow_of(&l, source, (source + n / 2 + i / n % (n / 4)) % n);

		generator_add(&flow);
	}
	count_frames(&l, before);
	generator_kick(l.sim);
	lab_run(&l, NS_PER_MS);
	count_frames(&l, after);
	up = uneven(&l, before, after, TOPO_ROLE_RDSW, TOPO_LINK_FABRIC,
		(double)generator_count(0)->sent);
	spine = uneven(&l, before, after, TOPO_ROLE_FDSW, TOPO_LINK_SPINE,
		(double)generator_count(0)->sent);
	/* As many flows from every leaf, so a little more even than dice. */
	LAB_OK(up < 25 && spine < 25, "flows spread as dice over uplinks and spine: %.1f, %.1f", up,
		spine);
	free(before);
	free(after);
	lab_close(&l);
}

/* clos.json with links between switches that are never full. */
static void open_wide(struct lab *l, uint64_t seed)
{
	static char text[1 << 16];
	char *at;

	snprintf(text, sizeof(text), "%s", lab_read("clos.json"));
	while ((at = strstr(text, "222.5G")) != NULL)
		memcpy(at, "3.200T", 6);
	lab_open_text(l, text, seed);
}

/* Eight send to one, each at this rate. */
static struct sum send_to_one(uint64_t seed, uint64_t rate_bps, uint64_t ns)
{
	struct lab l;
	struct sum s;

	open_wide(&l, seed);
	for (uint32_t i = 8; i < 16; i++) {
		struct generator_flow flow = flow_of(&l, i, 0);

		flow.size = 4200;
		flow.rate_bps = rate_bps;
		flow.stop = dsf_time_after(flow.start, ns);
		generator_add(&flow);
	}
	generator_kick(l.sim);
	lab_run(&l, 2 * NS_PER_MS);
	s = sum_of(&l);
	LAB_OK(s.wrong == 0 && s.disorder == 0, "what comes is right and in order");
	lab_close(&l);
	return s;
}

/* The port takes 400G. Slightly more makes a queue that marks; far more one that drops. */
static void incast(uint64_t seed)
{
	struct sum s = send_to_one(seed, 52000000000, 400 * NS_PER_US);

	LAB_OK(s.marked > 100 && s.marked == s.totals.ecn_marks,
		"a long queue marks: %" PRIu64 " came, %" PRIu64 " counted", s.marked,
		s.totals.ecn_marks);
	LAB_OK(s.totals.egress_drops == 0 && s.sent == s.received, "and drops nothing");
	s = send_to_one(seed, 100000000000, 100 * NS_PER_US);
	LAB_OK(s.totals.egress_drops > 100 && s.sent == s.received + s.totals.egress_drops,
		"a full one drops: %" PRIu64 " of %" PRIu64, s.totals.egress_drops, s.sent);
	LAB_OK(s.marked > 100 && s.marked == s.totals.ecn_marks, "and marks");
}

/* Links fail under load: each packet comes, or is counted once. */
static void conservation(uint64_t seed)
{
	struct lab l;
	struct sum s;

	lab_open(&l, "clos.json", seed);
	for (uint32_t i = 0; i < l.topo->endpoints_count; i++) {
		uint32_t n = l.topo->endpoints_count;
		struct generator_flow flow =
			flow_of(&l, i, (i + 1 + (uint32_t)dsf_rng_below(&l.rng, n - 1)) % n);

		flow.size = 4200;
		flow.rate_bps = 200000000000;
		flow.stop = dsf_time_after(flow.start, 200 * NS_PER_US);
		generator_add(&flow);
	}
	generator_kick(l.sim);
	for (uint32_t i = 0; i < 8; i++) {
		uint32_t link = (uint32_t)dsf_rng_below(&l.rng, l.topo->links_count);

		lab_run(&l, 10 * NS_PER_US);
		if (l.topo->links[link].kind == TOPO_LINK_GPU)
			continue;
		sim_link_set(l.sim, link, false);
		lab_run(&l, 10 * NS_PER_US);
		sim_link_set(l.sim, link, true);
	}
	lab_run(&l, 2 * NS_PER_MS);
	s = sum_of(&l);
	LAB_OK(s.sent > 0 && s.sent == s.received + s.totals.egress_drops + s.cut + s.unroutable,
		"%" PRIu64 " sent: %" PRIu64 " came, %" PRIu64 " dropped, %" PRIu64 " cut, %" PRIu64
		" had no route",
		s.sent, s.received, s.totals.egress_drops, s.cut, s.unroutable);
	LAB_OK(s.wrong == 0, "what comes is right");
	lab_close(&l);
}

#define PROBES 64u

/* Which ports every flow's packet leaves, as a hash (0: it came nowhere), and whether it takes the
 * link; each sends one in its own slot. */
static void take_paths(struct lab *l, uint64_t *paths, uint32_t link, bool *uses)
{
	uint32_t a = l->topo->links[link].port_a, b = l->topo->links[link].port_b;
	uint64_t *before = calloc(l->topo->ports_count, sizeof(*before));
	uint64_t *after = calloc(l->topo->ports_count, sizeof(*after));
	uint64_t got[PROBES];

	for (uint32_t i = 0; i < PROBES; i++)
		got[i] = generator_count(i)->received;
	count_frames(l, before);
	for (uint32_t i = 0; i < PROBES; i++) {
		lab_run(l, SLOT_NS);
		count_frames(l, after);
		paths[i] = 0;
		for (uint32_t p = 0; p < l->topo->ports_count; p++)
			if (after[p] != before[p])
				paths[i] = dsf_mix(paths[i] ^ (p + 1));
		uses[i] = after[a] != before[a] || after[b] != before[b];
		if (generator_count(i)->received == got[i])
			paths[i] = 0;
		got[i] = generator_count(i)->received;
		memcpy(before, after, l->topo->ports_count * sizeof(*before));
	}
	free(before);
	free(after);
}

/* A rank behind the lower end of a link, or (same is false) in another zone. */
static uint32_t pick_rank(struct lab *l, const struct topo_link *link, bool same)
{
	const struct topo_port *port = &l->topo->ports[link->port_a];
	const struct topo_node *lower = &l->topo->nodes[port->node];

	for (;;) {
		uint32_t rank = (uint32_t)dsf_rng_below(&l->rng, l->topo->endpoints_count);
		const struct topo_node *leaf = leaf_of(l->topo, rank);

		if (same ? leaf == lower || (link->kind == TOPO_LINK_SPINE &&
						    leaf->cluster == lower->cluster)
			 : leaf->cluster != lower->cluster)
			return rank;
	}
}

/* Half of the probes go up the link's side of the fabric, half come down to it. */
static void add_probes(struct lab *l, const struct topo_link *link)
{
	for (uint32_t i = 0; i < PROBES; i++) {
		uint32_t near = pick_rank(l, link, true), far = pick_rank(l, link, false);
		struct generator_flow flow =
			flow_of(l, i % 2 == 0 ? near : far, i % 2 == 0 ? far : near);

		flow.rate_bps = (SIZE + 24) * 8ull * NS_PER_S / (PROBES * SLOT_NS);
		flow.start = dsf_time_after(flow.start, i * SLOT_NS + SLOT_NS / 4);
		flow.stop = DSF_NEVER;
		generator_add(&flow);
	}
	generator_kick(l->sim);
}

struct paths {
	uint64_t hash[PROBES];
	bool uses[PROBES]; /* the link */
};

/* What a link's failure does to the paths of flows, once BGP has told of it, and its return. */
static void failure(uint64_t seed, enum topo_link_kind kind)
{
	struct paths before, after, back;
	uint32_t moved = 0, stuck = 0, users = 0, strayed = 0, link;
	struct lab l;

	lab_open(&l, "clos.json", seed);
	do
		link = (uint32_t)dsf_rng_below(&l.rng, l.topo->links_count);
	while (l.topo->links[link].kind != kind);
	add_probes(&l, &l.topo->links[link]);
	take_paths(&l, before.hash, link, before.uses);
	sim_link_set(l.sim, link, false);
	lab_run(&l, 2 * PROBES * SLOT_NS);
	take_paths(&l, after.hash, link, after.uses);
	sim_link_set(l.sim, link, true);
	lab_run(&l, 2 * PROBES * SLOT_NS);
	take_paths(&l, back.hash, link, back.uses);
	for (uint32_t i = 0; i < PROBES; i++) {
		users += before.uses[i];
		moved += !before.uses[i] && before.hash[i] != after.hash[i];
		stuck += before.uses[i] && (after.uses[i] || after.hash[i] == 0);
		strayed += before.hash[i] != back.hash[i];
	}
	LAB_OK(users > 0 && users < PROBES, "%u of %u flows take the link", users, PROBES);
	LAB_OK(stuck == 0, "they all take another when it fails: %u don't", stuck);
	LAB_OK(moved == 0, "of the others %u move", moved);
	LAB_OK(strayed == 0, "it is back: all go as before, but for %u", strayed);
	lab_close(&l);
}

struct route {
	struct dsf_ip6 prefix;
	uint32_t hops;
};

static void find_route(void *user, const struct node_row *row)
{
	struct route *r = user;

	if (row->route.set != NULL && dsf_ip6_equal(&row->route.prefix, &r->prefix))
		r->hops = row->route.set->count;
}

/* Next hops of a switch to another one's prefix. */
static uint32_t hops_to(const struct lab *l, uint32_t from, uint32_t to)
{
	struct route r = { .prefix = node_routed_prefix(&l->topo->nodes[to]) };

	sim_view(l->sim, from, NODE_QUERY_ROUTE, TOPO_NONE, find_route, &r);
	return r.hops;
}

/* In one stage a fabric switch that loses a leaf has no other way there: leaves aren't one. */
static void leaves_are_no_way(uint64_t seed)
{
	static char text[1 << 16];
	uint32_t port, fdsw, leaf, other;
	struct lab l;
	char *at;

	snprintf(text, sizeof(text), "%s", lab_read("mini.json"));
	at = strstr(text, "\"mode\": \"dsf\"");
	memcpy(at, "\"mode\":\"ecmp\"", 13);
	lab_open_text(&l, text, seed);
	leaf = lab_node(&l, TOPO_ROLE_RDSW, 0);
	other = lab_node(&l, TOPO_ROLE_RDSW, 1);
	fdsw = lab_node(&l, TOPO_ROLE_FDSW, 0);
	LAB_OK(hops_to(&l, fdsw, leaf) == 1 && hops_to(&l, other, leaf) == 2, "all links are ways");
	port = l.topo->nodes[fdsw].first_port;
	sim_link_set(l.sim, l.topo->ports[port].link, false);
	lab_run(&l, NS_PER_MS);
	LAB_OK(hops_to(&l, fdsw, leaf) == 0, "without its link it has none, over no leaf either");
	LAB_OK(hops_to(&l, other, leaf) == 1, "and others know");
	lab_close(&l);
}

static void repeat(uint64_t seed)
{
	uint64_t hash[2];

	for (int i = 0; i < 2; i++) {
		struct lab l;

		lab_open(&l, "clos.json", seed);
		for (uint32_t k = 0; k < 16; k++) {
			struct generator_flow flow = flow_of(&l, k, 31 - k);

			generator_add(&flow);
		}
		generator_kick(l.sim);
		lab_run(&l, NS_PER_MS);
		hash[i] = sim_hash(l.sim);
		lab_close(&l);
	}
	LAB_OK(hash[0] == hash[1], "the same seed is the same run");
}

static void test(uint64_t seed)
{
	/* BGP runs, a hundred times as fast as it does. */
	lab_sessions(100);
	all_pairs(seed);
	failure(seed, TOPO_LINK_FABRIC);
	failure(seed, TOPO_LINK_SPINE);
	leaves_are_no_way(seed);
	repeat(seed);
	/* Its packets would be among those that are counted. */
	lab_sessions(0);
	spread(seed);
	incast(seed);
	conservation(seed);
}

int main(int argc, char **argv)
{
	return lab_main(argc, argv, test, 2);
}
