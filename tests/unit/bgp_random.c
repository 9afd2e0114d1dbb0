/*
 * One speaker and five peers that announce, withdraw, break off, block and ask again at random.
 * When all is quiet its table must be what the peers said, and every peer must have been told what
 * a decision by the book, path against path, says. Usage: bgp_random [FIRST-SEED [SEEDS]]
 */
#include "tests/unit/bgp_net.h"
#include "base/rng.h"
#include "tests/tap.h"

#define DUT      1u
#define AS       65000u
#define PEERS    5u
#define PREFIXES 6u
#define IDS      4u
#define STEPS    150u

/* Two peers of one AS, so that MEDs count; add-path and not; eBGP and iBGP. */
static const struct {
	uint32_t as;
	bool add_path;
} kinds[PEERS] = { { 65001, true }, { 65002, false }, { AS, true }, { AS, false },
	{ 65001, false } };

/* A path as a peer has told it, or what it was told. */
struct path {
	bool there;
	uint32_t id; /* told: by the speaker */
	struct dsf_ip6 hop;
	uint32_t med, local_pref, neighbor_as;
	uint32_t peer;
};

static struct path said[PEERS][PREFIXES][IDS];
static struct path told[PEERS][PREFIXES][PEERS * IDS];
static struct net_raw raws[PEERS];

/* What prefixes are forwarded to, as it was told last. */
static struct {
	struct dsf_ip6 list[PEERS * IDS];
	uint32_t count;
} hops[PREFIXES];
static struct dsf_rng rng;

static uint32_t draw(uint32_t below)
{
	return (uint32_t)dsf_rng_below(&rng, below);
}

static uint32_t number_of(const struct net_raw *raw)
{
	return (uint32_t)(raw - raws);
}

static void hear(struct net_raw *raw, const struct bgp_nlri *nlri, const struct bgp_update *u)
{
	struct path *list = told[number_of(raw)][nlri->key.address.bytes[3]], *free = NULL;

	for (uint32_t i = 0; i < PEERS * IDS; i++) {
		if (!list[i].there) {
			free = free == NULL ? &list[i] : free;
		} else if (list[i].id == nlri->path_id) {
			free = &list[i];
			break;
		}
	}
	if (free == NULL)
		abort();
	free->there = u != NULL;
	if (u == NULL)
		return;
	free->id = nlri->path_id;
	free->hop = u->next_hop;
	free->med = bgp_attributes_get32(&u->attributes, BGP_MED, UINT32_MAX);
	free->local_pref = bgp_attributes_get32(&u->attributes, BGP_LOCAL_PREF, UINT32_MAX);
}

static void open_peer(uint32_t i)
{
	struct bgp_open open = net_open(kinds[i].as, 100 - i);
	struct net_raw *raw = &raws[i];

	memset(told[i], 0, sizeof(told[i]));
	open.add_path = kinds[i].add_path ? 3 : 0;
	raw->heard = hear;
	if (!net_raw_open(raw, DUT, 10 + i, &open, AS))
		abort();
}

static void make(uint64_t seed)
{
	static struct bgp_peer_config peers[PEERS];
	struct bgp_config c;

	dsf_rng_init(&rng, seed);
	memset(said, 0, sizeof(said));
	for (uint32_t i = 0; i < PEERS; i++) {
		struct dsf_ip6 address = net_address(10 + i);

		bgp_peer_config_init(&peers[i], &address, kinds[i].as);
		peers[i].passive = true;
		peers[i].add_path = kinds[i].add_path ? 3 : 0;
	}
	bgp_config_init(&c);
	c.memory = &net_memory.memory;
	c.as = AS;
	c.id = 1;
	c.seed = seed;
	c.peers = peers;
	c.peers_count = PEERS;
	net_speaker[DUT] = bgp_new(&c, net_now);
	for (uint32_t i = 0; i < PEERS; i++)
		bgp_peer_start(net_speaker[DUT], i, net_now);
	for (uint32_t i = 0; i < PEERS; i++)
		open_peer(i);
}

static struct bgp_nlri nlri_of(uint32_t prefix, uint32_t id)
{
	return (struct bgp_nlri){ net_prefix(0, (uint8_t)prefix, 32), id };
}

static void announce(uint32_t i, uint32_t prefix, uint32_t id)
{
	struct path *p = &said[i][prefix][id];
	struct bgp_nlri nlri = nlri_of(prefix, id);
	bool internal = kinds[i].as == AS;
	uint8_t attributes[256];
	size_t size;

	*p = (struct path){ .there = true,
		.id = id,
		.hop = net_address(200 + draw(5)),
		.med = draw(3),
		.local_pref = internal ? 90 + 10 * draw(3) : 100,
		.neighbor_as = internal ? 65001 : kinds[i].as,
		.peer = i };
	size = net_attributes(attributes, p->neighbor_as, p->med, internal ? p->local_pref : 0);
	net_raw_announce(&raws[i], &nlri, kinds[i].add_path, p->hop, attributes, size);
}

static void withdraw(uint32_t i, uint32_t prefix, uint32_t id)
{
	struct bgp_nlri nlri = nlri_of(prefix, id);

	said[i][prefix][id].there = false;
	net_raw_withdraw(&raws[i], &nlri, kinds[i].add_path);
}

static void break_off(uint32_t i)
{
	bgp_closed(net_speaker[DUT], raws[i].stream, net_now);
	memset(said[i], 0, sizeof(said[i]));
	net_raw_listen(&raws[i]);
	open_peer(i);
}

static void step(void)
{
	uint32_t i = draw(PEERS), prefix = draw(PREFIXES), id = kinds[i].add_path ? draw(IDS) : 0;
	uint8_t bytes[BGP_MESSAGE_MAX];

	switch (draw(16)) {
	case 0: break_off(i); break;
	case 1:
	case 2: bgp_blocked(net_speaker[DUT], raws[i].stream, draw(2) == 0, net_now); break;
	case 3:
		net_raw_say(&raws[i], bytes, bgp_wire_refresh_encode(bytes, BGP_REFRESH_REQUEST));
		break;
	case 4:
	case 5:
	case 6: withdraw(i, prefix, id); break;
	case 7:
	case 8:
		net_now = dsf_time_after(net_now, draw(30) * NS_PER_MS);
		bgp_expire(net_speaker[DUT], net_now);
		break;
	case 9: net_raw_listen(&raws[0]); break;
	default: announce(i, prefix, id); break;
	}
}

/* ---- by the book */

static bool is_external(const struct path *p)
{
	return kinds[p->peer].as != AS;
}

/* True when b keeps a from being used. */
static bool beats(const struct path *b, const struct path *a)
{
	if (b->local_pref != a->local_pref)
		return b->local_pref > a->local_pref;
	return false; /* lengths and origins are all the same */
}

static bool by_med(const struct path *b, const struct path *a)
{
	return b->neighbor_as == a->neighbor_as && b->med < a->med;
}

static bool by_kind(const struct path *b, const struct path *a)
{
	return is_external(b) && !is_external(a);
}

/* Higher numbers have lower identifiers and come first; then the lower path id. */
static bool by_rest(const struct path *b, const struct path *a)
{
	return b->peer != a->peer ? b->peer > a->peer : b->id < a->id;
}

static uint32_t without(
	struct path *list, uint32_t count, bool (*rule)(const struct path *b, const struct path *a))
{
	struct path all[PEERS * IDS];
	uint32_t left = 0;

	memcpy(all, list, count * sizeof(*list));
	for (uint32_t i = 0; i < count; i++) {
		bool out = false;

		for (uint32_t j = 0; j < count; j++)
			out = out || rule(&all[j], &all[i]);
		if (!out)
			list[left++] = all[i];
	}
	return left;
}

static uint32_t all_paths(uint32_t prefix, struct path *list)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < PEERS; i++) {
		for (uint32_t id = 0; id < IDS; id++) {
			if (said[i][prefix][id].there)
				list[count++] = said[i][prefix][id];
		}
	}
	return count;
}

static bool is_told(const struct path *p, uint32_t to)
{
	return p->peer != to && (is_external(p) || kinds[to].as != AS);
}

/* What peer number to has been told must be the wanted paths, each once. */
static bool check_told(uint32_t to, uint32_t prefix, struct path *wanted, uint32_t count)
{
	struct dsf_ip6 ours = net_address(DUT);
	uint32_t found = 0;

	for (uint32_t i = 0; i < PEERS * IDS; i++) {
		const struct path *t = &told[to][prefix][i];
		bool external = kinds[to].as != AS;
		uint32_t j;

		if (!t->there)
			continue;
		found++;
		for (j = 0; j < count; j++) {
			const struct path *w = &wanted[j];

			if (w->there && dsf_ip6_equal(&t->hop, external ? &ours : &w->hop) &&
				t->med == (external ? UINT32_MAX : w->med) &&
				t->local_pref == (external ? UINT32_MAX : w->local_pref))
				break;
		}
		if (j == count)
			return false;
		wanted[j].there = false;
	}
	return found == count;
}

static void take_changes(void)
{
	struct bgp_change c;

	while (bgp_changed(net_speaker[DUT], &c)) {
		uint32_t prefix = c.prefix.address.bytes[3];

		if (c.hops_count > PEERS * IDS)
			abort();
		hops[prefix].count = c.hops_count;
		if (c.hops_count > 0)
			memcpy(hops[prefix].list, c.hops, c.hops_count * sizeof(*c.hops));
	}
}

/* The hops of all used paths, each once, in order. */
static bool check_hops(uint32_t prefix, const struct path *used, uint32_t count)
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < hops[prefix].count; i++) {
		const struct dsf_ip6 *hop = &hops[prefix].list[i];
		bool there = false;

		if (i > 0 && memcmp(hop - 1, hop, sizeof(*hop)) >= 0)
			return false;
		for (uint32_t j = 0; j < count; j++) {
			there = there || dsf_ip6_equal(&used[j].hop, hop);
			found += dsf_ip6_equal(&used[j].hop, hop);
		}
		if (!there)
			return false;
	}
	return found == count;
}

static bool check_prefix(uint32_t prefix)
{
	struct path all[PEERS * IDS], wanted[PEERS * IDS];
	uint32_t count = all_paths(prefix, all), used = count, left;
	struct bgp_row row;
	bool held = net_paths(DUT, net_prefix(0, (uint8_t)prefix, 32), &row) == count;

	for (uint32_t to = 0; to < PEERS; to++) {
		if (!kinds[to].add_path)
			continue;
		left = 0;
		for (uint32_t i = 0; i < count; i++) {
			if (is_told(&all[i], to))
				wanted[left++] = all[i];
		}
		held = check_told(to, prefix, wanted, left) && held;
	}
	used = without(all, used, beats);
	used = without(all, used, by_med);
	used = without(all, used, by_kind);
	held = check_hops(prefix, all, used) && held;
	used = without(all, used, by_rest);
	held = held && used == (count > 0) && row.best == (count > 0);
	held = held && (count == 0 || (row.peer == all[0].peer &&
					      dsf_ip6_equal(&row.next_hop, &all[0].hop)));
	for (uint32_t to = 0; to < PEERS; to++) {
		left = used == 1 && is_told(&all[0], to);
		wanted[0] = all[0];
		held = held && (kinds[to].add_path || check_told(to, prefix, wanted, left));
	}
	return held;
}

/* With all routes withdrawn nothing of them is left but two arrays of scratch. */
static bool check_empty(unsigned long blocks)
{
	for (uint32_t i = 0; i < PEERS; i++) {
		for (uint32_t prefix = 0; prefix < PREFIXES; prefix++) {
			for (uint32_t id = 0; id < (kinds[i].add_path ? IDS : 1); id++)
				withdraw(i, prefix, id);
		}
	}
	net_raw_wait(&raws[0]);
	net_raw_wait(&raws[0]);
	take_changes();
	return net_memory.blocks <= blocks + 2;
}

static bool run(uint64_t seed)
{
	unsigned long blocks;
	bool held = true;

	make(seed);
	net_raw_wait(&raws[0]);
	blocks = net_memory.blocks;
	memset(hops, 0, sizeof(hops));
	for (uint32_t i = 0; i < STEPS; i++)
		step();
	for (uint32_t i = 0; i < PEERS; i++)
		bgp_blocked(net_speaker[DUT], raws[i].stream, false, net_now);
	net_raw_wait(&raws[0]);
	net_raw_wait(&raws[0]);
	take_changes();
	for (uint32_t prefix = 0; prefix < PREFIXES; prefix++)
		held = check_prefix(prefix) && held;
	for (uint32_t i = 0; i < PEERS; i++)
		held = held && !raws[i].closed;
	held = check_empty(blocks) && held;
	net_kill(DUT);
	memset(net_raws, 0, sizeof(net_raws));
	return held && net_memory.blocks == 0;
}

int main(int argc, char **argv)
{
	uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
	uint64_t seeds = argc > 2 ? strtoull(argv[2], NULL, 10) : 300, bad = 0;

	net_now = (dsf_instant){ NS_PER_S };
	for (uint64_t seed = first; seed < first + seeds; seed++) {
		if (!run(seed)) {
			printf("# bgp_random %llu 1\n", (unsigned long long)seed);
			bad++;
		}
	}
	TAP_EQ(bad, 0, "tables and what is told, %llu seeds", (unsigned long long)seeds);
	return TAP_DONE();
}
