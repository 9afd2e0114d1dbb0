#include "bgp/store.h"
#include <assert.h>
#include "base/rng.h"

void bgp_store_init(struct bgp_store *s, const struct dsf_memory *memory, uint64_t seed)
{
	s->memory = memory;
	s->seed = seed;
	bgp_table_init(&s->bundles, memory);
	bgp_table_init(&s->hops, memory);
}

void bgp_store_close(struct bgp_store *s)
{
	assert(s->bundles.count == 0 && s->hops.count == 0);
	bgp_table_close(&s->bundles);
	bgp_table_close(&s->hops);
}

uint32_t bgp_store_hash(uint64_t seed, const void *bytes, size_t size)
{
	const uint8_t *at = bytes;
	uint64_t hash = seed ^ size, word;

	for (; size >= 8; size -= 8, at += 8) {
		memcpy(&word, at, 8);
		hash = dsf_mix(hash ^ word) + 0x9e3779b97f4a7c15ull;
	}
	if (size > 0) {
		word = 0;
		memcpy(&word, at, size);
		hash = dsf_mix(hash ^ word) + 0x9e3779b97f4a7c15ull;
	}
	return (uint32_t)(hash ^ hash >> 32);
}

static struct bgp_bundle *bundle_of(struct bgp_link *link)
{
	return (struct bgp_bundle *)(void *)link;
}

static void summarise(struct bgp_bundle *b, const struct bgp_attributes *a)
{
	const struct bgp_attribute *origin = bgp_attributes_find(a, BGP_ORIGIN);
	const struct bgp_attribute *path = bgp_attributes_find(a, BGP_AS_PATH);
	const struct bgp_attribute *clusters = bgp_attributes_find(a, BGP_CLUSTER_LIST);
	struct bgp_as_walk walk;

	b->local_pref = bgp_attributes_get32(a, BGP_LOCAL_PREF, BGP_LOCAL_PREF_DEFAULT);
	b->med = bgp_attributes_get32(a, BGP_MED, 0); /* RFC 4271 9.1.2.2 c: lowest where missing */
	b->originator_id = bgp_attributes_get32(a, BGP_ORIGINATOR_ID, 0);
	b->origin = origin == NULL ? BGP_ORIGIN_INCOMPLETE : bgp_attribute_bytes(origin)[0];
	b->clusters = clusters == NULL ? 0 : clusters->size / 4;
	b->hops = path == NULL ? 0 : bgp_as_path_hops(bgp_attribute_bytes(path), path->size, 4);
	b->no_export = bgp_attributes_has_community(a, BGP_COMMUNITY_NO_EXPORT);
	b->no_advertise = bgp_attributes_has_community(a, BGP_COMMUNITY_NO_ADVERTISE);
	bgp_as_walk_start(&walk, a);
	if (!bgp_as_walk_next(&walk, &b->neighbor_as))
		b->neighbor_as = 0;
}

struct bgp_bundle *bgp_store_bundle(struct bgp_store *s, const struct bgp_attributes *a,
	const struct dsf_ip6 *next_hop, uint64_t *account, uint8_t *canonical, size_t cap)
{
	struct dsf_writer w = { canonical, canonical + cap, false };
	struct bgp_bundle *bundle;
	struct bgp_link *link;
	uint32_t hash;
	size_t size;

	bgp_attributes_write(a, &w);
	size = (size_t)(w.at - canonical);
	if (w.failed || size > UINT16_MAX)
		return NULL;
	hash = bgp_store_hash(
		bgp_store_hash(s->seed, next_hop, sizeof(*next_hop)), canonical, size);
	for (link = bgp_table_first(&s->bundles, hash); link != NULL;
		link = bgp_table_again(link)) {
		bundle = bundle_of(link);
		if (bundle->size == size && dsf_ip6_equal(&bundle->next_hop, next_hop) &&
			memcmp(bundle->bytes, canonical, size) == 0)
			return bgp_bundle_hold(bundle);
	}
	bundle = dsf_memory_new(s->memory, sizeof(*bundle) + size);
	if (bundle == NULL)
		return NULL;
	bundle->link.hash = hash;
	if (!bgp_table_add(&s->bundles, &bundle->link)) {
		dsf_memory_delete(s->memory, bundle, sizeof(*bundle) + size);
		return NULL;
	}
	bundle->refs = 1;
	bundle->account = account;
	*account += sizeof(*bundle) + size;
	bundle->next_hop = *next_hop;
	bundle->size = (uint16_t)size;
	memcpy(bundle->bytes, canonical, size);
	summarise(bundle, a);
	return bundle;
}

struct bgp_bundle *bgp_bundle_hold(struct bgp_bundle *bundle)
{
	bundle->refs++;
	return bundle;
}

void bgp_bundle_give(struct bgp_store *s, struct bgp_bundle *bundle)
{
	size_t size = sizeof(*bundle) + bundle->size;

	assert(bundle->refs > 0);
	if (--bundle->refs > 0)
		return;
	bgp_table_remove(&s->bundles, &bundle->link);
	bgp_table_trim(&s->bundles);
	assert(*bundle->account >= size && bundle->batch_first == NULL);
	*bundle->account -= size;
	dsf_memory_delete(s->memory, bundle, size);
}

static struct bgp_hops *hops_of(struct bgp_link *link)
{
	return (struct bgp_hops *)(void *)link;
}

struct bgp_hops *bgp_store_hops(struct bgp_store *s, const struct dsf_ip6 *list, uint32_t count)
{
	size_t size = count * sizeof(*list);
	uint32_t hash = bgp_store_hash(s->seed, list, size);
	struct bgp_hops *hops;
	struct bgp_link *link;

	for (link = bgp_table_first(&s->hops, hash); link != NULL; link = bgp_table_again(link)) {
		hops = hops_of(link);
		if (hops->count == count && memcmp(hops->list, list, size) == 0) {
			hops->refs++;
			return hops;
		}
	}
	hops = dsf_memory_new(s->memory, sizeof(*hops) + size);
	if (hops == NULL)
		return NULL;
	hops->link.hash = hash;
	if (!bgp_table_add(&s->hops, &hops->link)) {
		dsf_memory_delete(s->memory, hops, sizeof(*hops) + size);
		return NULL;
	}
	hops->refs = 1;
	hops->count = count;
	memcpy(hops->list, list, size);
	return hops;
}

void bgp_hops_give(struct bgp_store *s, struct bgp_hops *hops)
{
	if (--hops->refs > 0)
		return;
	bgp_table_remove(&s->hops, &hops->link);
	bgp_table_trim(&s->hops);
	dsf_memory_delete(s->memory, hops, sizeof(*hops) + hops->count * sizeof(hops->list[0]));
}
