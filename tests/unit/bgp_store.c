/* Things that are kept once: equal is the same, the last holder frees, bytes are booked. */
#include <stdlib.h>
#include "bgp/store.h"
#include "tests/memory.h"
#include "tests/tap.h"

static struct test_memory memory = TEST_MEMORY(memory);
static uint8_t room[256];

static struct bgp_bundle *bundle_of(
	struct bgp_store *s, uint32_t med, uint8_t hop, uint64_t *account)
{
	static const uint8_t origin[1] = { BGP_ORIGIN_EGP };
	static const uint8_t path[] = { 2, 2, 0, 0, 0, 7, 0, 0, 0, 8 };
	static const uint8_t communities[] = { 0, 1, 0, 2, 0xff, 0xff, 0xff, 1 };
	struct dsf_ip6 next_hop = { { 0x20, [15] = hop } };
	struct bgp_attributes a = { 0 };

	bgp_attributes_set(&a, BGP_ORIGIN, BGP_FLAG_TRANSITIVE, origin, sizeof(origin));
	bgp_attributes_set(&a, BGP_AS_PATH, BGP_FLAG_TRANSITIVE, path, sizeof(path));
	bgp_attributes_set(&a, BGP_COMMUNITIES, 0xc0, communities, sizeof(communities));
	bgp_attributes_set32(&a, BGP_MED, BGP_FLAG_OPTIONAL, med);
	return bgp_store_bundle(s, &a, &next_hop, account, room, sizeof(room));
}

static void test_bundles(struct bgp_store *s)
{
	uint64_t mine = 0, yours = 0;
	struct bgp_bundle *a = bundle_of(s, 5, 1, &mine), *b = bundle_of(s, 5, 1, &yours);
	struct bgp_bundle *c = bundle_of(s, 6, 1, &yours), *d = bundle_of(s, 5, 2, &yours);

	TAP_OK(a == b && a->refs == 2, "equal attributes and next hop are one bundle");
	TAP_OK(a != c && a != d && c != d, "others are not");
	TAP_OK(mine > 0 && yours == 2 * mine, "the first to bring one is charged");
	TAP_OK(a->med == 5 && a->hops == 2 && a->neighbor_as == 7 && a->origin == BGP_ORIGIN_EGP &&
			a->local_pref == BGP_LOCAL_PREF_DEFAULT && a->no_export && !a->no_advertise,
		"what decisions need is there");
	bgp_bundle_give(s, b);
	TAP_EQ(s->bundles.count, 3, "one holder is left");
	bgp_bundle_give(s, a);
	TAP_OK(s->bundles.count == 2 && mine == 0, "and then none");
	bgp_bundle_give(s, c);
	bgp_bundle_give(s, d);
	TAP_OK(yours == 0 && memory.blocks == 0, "nothing is left, buckets neither");
	memory.fail_at = 1;
	TAP_OK(bundle_of(s, 1, 1, &mine) == NULL && mine == 0, "no memory for a bundle");
	memory.fail_at = 2;
	TAP_OK(bundle_of(s, 1, 1, &mine) == NULL && mine == 0 && memory.blocks == 0,
		"no memory for buckets");
}

static void test_hops(struct bgp_store *s)
{
	struct dsf_ip6 list[] = { { { 1 } }, { { 2 } }, { { 3 } } };
	struct bgp_hops *a = bgp_store_hops(s, list, 3), *b = bgp_store_hops(s, list, 3);
	struct bgp_hops *c = bgp_store_hops(s, list, 2);

	TAP_OK(a == b && a != c && a->count == 3 && c->count == 2, "equal sets are one");
	bgp_hops_give(s, a);
	bgp_hops_give(s, b);
	bgp_hops_give(s, c);
	TAP_EQ(memory.blocks, 0, "nothing is left");
}

/* Many links, also of equal hashes; buckets grow and shrink. */
static void test_table(void)
{
	static struct bgp_link links[10000];
	struct bgp_table t;
	struct bgp_link *link = NULL;
	uint32_t seen = 0;

	bgp_table_init(&t, &memory.memory);
	for (uint32_t i = 0; i < 10000; i++) {
		links[i] = (struct bgp_link){ .hash = i / 2 * 64, .id = i };
		if (!bgp_table_add(&t, &links[i]))
			TAP_OK(false, "add %u", i);
	}
	for (uint32_t i = 0; i < 10000; i++) {
		link = bgp_table_first(&t, i / 2 * 64);
		while (link != NULL && link->id != i)
			link = bgp_table_again(link);
		seen += link == &links[i];
	}
	TAP_EQ(seen, 10000, "all are found");
	TAP_OK(bgp_table_first(&t, 1) == NULL, "and no other");
	for (uint32_t i = 0; i < 9990; i++)
		bgp_table_remove(&t, &links[i]);
	bgp_table_trim(&t);
	TAP_OK(t.count == 10 && t.buckets_count <= 16, "buckets shrink");
	TAP_OK(bgp_table_first(&t, 9999 / 2 * 64) != NULL, "what is left is found");
	bgp_table_close(&t);
	TAP_EQ(memory.blocks, 0, "closed");
}

int main(void)
{
	struct bgp_store store;

	bgp_store_init(&store, &memory.memory, 7);
	test_bundles(&store);
	test_hops(&store);
	bgp_store_close(&store);
	test_table();
	return TAP_DONE();
}
