#include "fabric/balance.h"
#include "base/err.h"
#include "base/rng.h"
#include "tests/memory.h"
#include "tests/tap.h"

#define SWITCHES 100u
#define PORTS    12u

static struct test_memory memory = TEST_MEMORY(memory);
static struct fabric_balance balance;
static struct fabric_peer peers[PORTS];
static uint32_t ports_count;

/* By the published formula, in the slowest way: how many units may come in. */
static void formula(void)
{
	static const struct {
		uint64_t nominal, out, nominal_out, want;
		const char *name;
	} cases[] = {
		{ 4, 4, 4, 4, "healthy" },
		{ 4, 2, 4, 2, "half the way out" },
		{ 4, 3, 4, 3, "one of four lost" },
		{ 4, 0, 4, 0, "none left" },
		{ 4, 1, 1, 4, "a narrow way out that is whole takes all" },
		{ 16, 1, 2, 8, "a wide group keeps its share of a narrow way out" },
		{ 7, 2, 3, 4, "rounded down" },
		{ 2, 3, 4, 2, "a narrow group isn't touched before it must be" },
		{ 2, 1, 4, 1, "and then only to the way out" },
		{ 3, 1, 7, 1, "never below the way out" },
		{ 5, 6, 4, 5, "more than healthy is healthy" },
		{ 5, 2, 0, 5, "a way out that nobody expected" },
		{ 5, 0, 0, 0, "none of none" },
		{ 1ull << 48, 1ull << 47, 1ull << 48, 1ull << 47, "without overflow" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		TAP_EQ(fabric_balance_allowed(cases[i].nominal, cases[i].out, cases[i].nominal_out),
			cases[i].want, "formula: %s", cases[i].name);
}

/* What a healthy spine tells: switches 50 to 59. */
static const uint64_t *remote(void)
{
	static uint64_t set[DSF_BITSET_WORDS(SWITCHES)];

	for (uint32_t d = 50; d < 60; d++)
		dsf_bitset_add(set, d);
	return set;
}

static void add_peer(enum fabric_tier tier, uint32_t switch_index, uint32_t capacity)
{
	peers[ports_count++] = (struct fabric_peer){ .tier = tier,
		.switch_index = (uint16_t)switch_index,
		.capacity = capacity,
		.place = DSF_DRAW_UNPLACED,
		.tells = tier == FABRIC_TIER_SPINE ? remote() : NULL };
}

static int open_leaf(const struct dsf_draw *draw)
{
	struct fabric_balance_config config = { .tier = FABRIC_TIER_LEAF,
		.enabled = true,
		.ports_count = ports_count,
		.switches_count = SWITCHES,
		.peers = peers,
		.draw = *draw };
	int err = fabric_balance_init(&balance, &memory.memory, &config);

	for (uint32_t i = 0; err == 0 && i < ports_count; i++)
		fabric_balance_live(&balance, i, true);
	return err;
}

/* Four interface nodes 10 to 13, two links to each of the spines 30 and 31. */
static void open_figure(const struct dsf_draw *draw)
{
	ports_count = 0;
	for (uint32_t i = 0; i < 4; i++)
		add_peer(FABRIC_TIER_INTERFACE, 10 + i, 1);
	for (uint32_t i = 0; i < 4; i++)
		add_peer(FABRIC_TIER_SPINE, 30 + i / 2, 1);
	open_leaf(draw);
}

static void close_leaf(const char *name)
{
	fabric_balance_close(&balance);
	TAP_EQ(memory.live, 0, "%s: nothing is left", name);
}

static uint64_t told(uint32_t destination, bool upwards)
{
	uint64_t told, may;

	fabric_balance_tell(&balance, destination, upwards, &told, &may);
	if ((told & ~may) != 0)
		TAP_OK(false, "told within what may be told");
	return told;
}

static void hear(uint32_t destination, uint32_t first, uint32_t count, bool heard)
{
	for (uint32_t i = first; i < first + count; i++)
		fabric_balance_heard(&balance, destination, i, heard);
}

static void remote_destination(void)
{
	static const struct dsf_draw draw = { .siblings = 1, .seed = 4 };
	uint64_t three, two, one;

	open_figure(&draw);
	TAP_EQ(told(50, false), 0, "remote: unheard, untold");
	hear(50, 4, 4, true);
	TAP_EQ(told(50, false), 0x0f, "remote: told to all interface nodes, and to them alone");
	hear(50, 4, 1, false);
	three = told(50, false);
	hear(50, 5, 1, false);
	two = told(50, false);
	hear(50, 6, 1, false);
	one = told(50, false);
	TAP_OK(dsf_bitset_count(&three, 1) == 3 && dsf_bitset_count(&two, 1) == 2 &&
			dsf_bitset_count(&one, 1) == 1,
		"remote: each lost uplink takes back a downlink");
	TAP_OK((two & ~three) == 0 && (one & ~two) == 0, "remote: what is withheld nests");
	hear(51, 4, 3, true);
	TAP_EQ(told(51, false), three, "remote: alike for every destination");
	hear(50, 4, 3, true);
	TAP_EQ(told(50, false), 0x0f, "remote: restored");
	close_leaf("remote");
}

/* A dead link counts as withheld: nothing more is taken back for it. */
static void dead_links(void)
{
	static const struct dsf_draw draw = { .siblings = 1, .seed = 9 };

	for (uint32_t dead = 0; dead < 4; dead++) {
		uint64_t all = 0x0f & ~(1ull << dead), some;

		open_figure(&draw);
		hear(50, 4, 3, true);
		some = told(50, false);
		fabric_balance_live(&balance, dead, false);
		TAP_EQ(told(50, false), all, "dead downlink %u: three in, three out", dead);
		hear(50, 4, 1, false);
		TAP_EQ(dsf_bitset_count(&(uint64_t){ told(50, false) }, 1), 2,
			"dead downlink %u: one more is taken back with the next uplink", dead);
		hear(50, 4, 1, true);
		fabric_balance_live(&balance, dead, true);
		TAP_EQ(told(50, false), some, "dead downlink %u: it comes back, all is as before",
			dead);
		fabric_balance_close(&balance);
	}
}

static void local_destination(void)
{
	static const struct dsf_draw draw = { .siblings = 1 };

	open_figure(&draw);
	hear(12, 2, 1, true);
	TAP_EQ(told(12, true), 0xfb, "local: told to the others and to the spine, not to itself");
	TAP_EQ(told(12, false), 0x0b, "local: what the spine said isn't told to it");
	hear(12, 2, 1, false);
	TAP_EQ(told(12, false), 0, "local: gone");
	close_leaf("local");
	/* Four links to each of two interface nodes, four to a spine. */
	ports_count = 0;
	for (uint32_t i = 0; i < 8; i++)
		add_peer(FABRIC_TIER_INTERFACE, 10 + i / 4, 1);
	for (uint32_t i = 0; i < 4; i++)
		add_peer(FABRIC_TIER_SPINE, 30, 1);
	open_leaf(&draw);
	hear(10, 0, 4, true);
	TAP_EQ(told(10, true), 0xff0, "parallel: healthy");
	hear(10, 0, 1, false);
	TAP_EQ(dsf_bitset_count(&(uint64_t){ told(10, true) & 0x0f0 }, 1), 3,
		"parallel: the other node's links to it are three");
	TAP_EQ(dsf_bitset_count(&(uint64_t){ told(10, true) & 0xf00 }, 1), 3,
		"parallel: the spine's too");
	close_leaf("parallel");
}

static void spine(void)
{
	static uint64_t below[3][DSF_BITSET_WORDS(SWITCHES)];
	static uint32_t clusters[SWITCHES];
	struct fabric_balance_config config = { .tier = FABRIC_TIER_SPINE,
		.enabled = true,
		.ports_count = 6,
		.switches_count = SWITCHES,
		.peers = peers,
		.clusters = clusters,
		.draw = { .siblings = 1 } };
	uint64_t set;

	ports_count = 0;
	for (uint32_t d = 0; d < SWITCHES; d++) {
		clusters[d] = d / 10;
		if (d / 10 < 3)
			dsf_bitset_add(below[d / 10], d);
	}
	for (uint32_t i = 0; i < 6; i++) {
		add_peer(FABRIC_TIER_LEAF, 40 + i, 1);
		peers[i].cluster = i / 2;
		peers[i].tells = below[i / 2];
	}
	fabric_balance_init(&balance, &memory.memory, &config);
	for (uint32_t i = 0; i < 6; i++)
		fabric_balance_live(&balance, i, true);
	hear(15, 2, 2, true);
	TAP_EQ(told(15, false), 0x33, "spine: told to other clusters, not to its own");
	hear(15, 2, 1, false);
	set = told(15, false);
	TAP_OK(dsf_bitset_count(&(uint64_t){ set & 0x03 }, 1) == 1 &&
			dsf_bitset_count(&(uint64_t){ set & 0x30 }, 1) == 1,
		"spine: half the way out, half of each cluster");
	close_leaf("spine");
}

/* Mixed rates: within allowed, and no withheld link would fit, at any seed and any way out. */
static void mixed_rates(void)
{
	uint64_t wrong = 0, partial = 0;

	for (uint64_t seed = 1; seed <= 200; seed++) {
		struct dsf_draw draw = { .kind = seed % 2 ? DSF_DRAW_RANDOM : DSF_DRAW_STRATIFIED,
			.seed = seed,
			.siblings = 1 };
		struct dsf_rng rng;
		uint64_t all[PORTS + 1];

		dsf_rng_init(&rng, seed);
		ports_count = 0;
		for (uint32_t i = 0; i < PORTS; i++)
			add_peer(i < 8 ? FABRIC_TIER_INTERFACE : FABRIC_TIER_SPINE, 10 + i,
				1 + (uint32_t)dsf_rng_below(&rng, 4));
		open_leaf(&draw);
		if (dsf_rng_below(&rng, 2) == 0)
			fabric_balance_live(&balance, (uint32_t)dsf_rng_below(&rng, 8), false);
		for (uint32_t i = 8; i <= PORTS; i++) {
			struct fabric_balance_view view;

			all[i] = told(50, false);
			if (!fabric_balance_view(&balance, 0, 50, false, &all[i], &view) ||
				!view.balanced)
				wrong++;
			partial += view.input > 0 && view.input < balance.groups[0].live;
			if (i < PORTS)
				hear(50, i, 1, true);
		}
		fabric_balance_close(&balance);
	}
	TAP_OK(wrong == 0 && partial > 200,
		"mixed rates: %" PRIu64 " sets too large or too small, %" PRIu64 " real cuts",
		wrong, partial);
	TAP_EQ(memory.live, 0, "mixed rates: nothing is left");
}

static void disabled(void)
{
	struct fabric_balance_config config = { .tier = FABRIC_TIER_LEAF,
		.ports_count = PORTS,
		.switches_count = SWITCHES,
		.peers = peers,
		.draw = { .siblings = 1 } };
	struct fabric_balance_view view;
	uint64_t set;

	ports_count = 0;
	for (uint32_t i = 0; i < PORTS; i++)
		add_peer(i < 8 ? FABRIC_TIER_INTERFACE : FABRIC_TIER_SPINE, 10 + i, 1);
	fabric_balance_init(&balance, &memory.memory, &config);
	for (uint32_t i = 0; i < PORTS; i++)
		fabric_balance_live(&balance, i, true);
	hear(50, 8, 1, true);
	set = told(50, false);
	TAP_EQ(set, 0xff, "off: nothing is withheld");
	TAP_OK(fabric_balance_view(&balance, 0, 50, false, &set, &view) && view.input == 8 &&
			view.allowed == 2 && !view.balanced,
		"off: and the view says that too much comes in");
	close_leaf("off");
}

/* Orders: the same for who asks again, complementary for pairs of siblings, given ones first. */
static void orders(void)
{
	struct dsf_draw_link a[8], b[8];
	uint32_t same = 0, opposite = 0, seen = 0;

	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct dsf_draw draw = { .seed = seed, .device = 7, .family = 7, .siblings = 2 };

		for (uint32_t i = 0; i < 8; i++) {
			a[i] = (struct dsf_draw_link){ .port = i,
				.peer = 20 + i / 2,
				.parallel = i % 2,
				.place = DSF_DRAW_UNPLACED };
			b[7 - i] = a[i];
		}
		dsf_draw_order(&draw, 3, a, 8);
		draw.device = 8;
		draw.sibling = 1;
		dsf_draw_order(&draw, 3, b, 8);
		for (uint32_t i = 0; i < 8; i++) {
			opposite += a[i].port == b[7 - i].port;
			seen |= 1u << a[i].port;
		}
		same += a[0].peer != a[1].peer && a[0].parallel == a[3].parallel;
		draw.kind = DSF_DRAW_FORCED;
		b[5].place = 1;
		b[2].place = 0;
		a[0] = b[2];
		a[1] = b[5];
		dsf_draw_order(&draw, 3, b, 8);
		same += b[0].port == a[0].port && b[1].port == a[1].port;
	}
	TAP_EQ(seen, 0xff, "orders: of all links");
	TAP_EQ(opposite, 160, "orders: two siblings go through one circle from both ends");
	TAP_EQ(same, 40, "orders: parallel links lie a round apart; given places come first");
}

/* Four siblings with equal needs lose every neighbour equally often, whatever they need. */
static void strata(void)
{
	uint32_t wrong = 0;

	for (uint32_t siblings = 1; siblings <= 6; siblings++)
		for (uint32_t count = 1; count <= 24; count++)
			for (uint32_t withheld = 0; withheld <= count; withheld++) {
				uint32_t lost[24] = { 0 }, least = UINT32_MAX, most = 0;

				for (uint32_t s = 0; s < siblings; s++) {
					struct dsf_draw draw = { .seed = count,
						.device = s,
						.sibling = s,
						.siblings = siblings };
					struct dsf_draw_link l[24];

					for (uint32_t i = 0; i < count; i++)
						l[i] = (struct dsf_draw_link){ .port = i,
							.peer = i };
					dsf_draw_order(&draw, 0, l, count);
					for (uint32_t i = 0; i < withheld; i++)
						lost[l[i].port]++;
				}
				for (uint32_t i = 0; i < count; i++) {
					least = lost[i] < least ? lost[i] : least;
					most = lost[i] > most ? lost[i] : most;
				}
				/* Offsets are whole, so with few links a stretch is uneven. */
				wrong += most - least > (count % siblings == 0 ? 1u : 2u);
			}
	TAP_EQ(wrong, 0, "strata: siblings with equal needs take equally from all");
}

static void no_memory(void)
{
	static const struct dsf_draw draw = { .siblings = 1 };

	ports_count = 0;
	for (uint32_t i = 0; i < PORTS; i++)
		add_peer(i < 8 ? FABRIC_TIER_INTERFACE : FABRIC_TIER_SPINE, 10 + i, 1);
	for (unsigned long nth = 1; nth <= 9; nth++) {
		memory.fail_at = nth;
		TAP_EQ(open_leaf(&draw), -DSF_E_NOMEM, "allocation %lu fails", nth);
		TAP_EQ(memory.live, 0, "allocation %lu: nothing is left", nth);
	}
	memory.fail_at = 0;
}

int main(void)
{
	formula();
	remote_destination();
	dead_links();
	local_destination();
	spine();
	mixed_rates();
	disabled();
	orders();
	strata();
	no_memory();
	return TAP_DONE();
}
