/* rib.c - paths that came in, by (peer, prefix, path id) */
#include <assert.h>
#include <stddef.h>
#include "base/err.h"
#include "base/rng.h"
#include "bgp/speaker.h"

#define SLOT_BITS 20u

static_assert(1u << SLOT_BITS == BGP_PATHS_MAX, "a path's number has room for its slot");
static_assert(BGP_PEERS_MAX < 1u << (32 - SLOT_BITS), "and for its peer");

static struct bgp_prefix *prefix_of(struct bgp_link *link)
{
	return (struct bgp_prefix *)(void *)link;
}

static struct bgp_path *path_of(struct bgp_link *link)
{
	return (struct bgp_path *)(void *)link;
}

static uint32_t hash_prefix(const struct bgp *b, const struct bgp_prefix_key *key)
{
	uint64_t words[2];

	memcpy(words, key->address.bytes, sizeof(words));
	words[0] = dsf_mix(words[0] ^ b->store.seed ^ key->length);
	words[1] = dsf_mix(words[1] ^ words[0]);
	return (uint32_t)(words[1] ^ words[1] >> 32);
}

static bool is_same_key(const struct bgp_prefix_key *a, const struct bgp_prefix_key *b)
{
	return a->length == b->length && dsf_ip6_equal(&a->address, &b->address);
}

static struct bgp_prefix *find_prefix(const struct bgp *b, const struct bgp_sought *sought)
{
	struct bgp_link *link = bgp_table_first(&b->prefixes, sought->prefix_hash);

	while (link != NULL && !is_same_key(&prefix_of(link)->key, &sought->nlri.key))
		link = bgp_table_again(link);
	return link == NULL ? NULL : prefix_of(link);
}

/* ---- memory of prefixes: a slab goes with the last of its prefixes */

static void link_slab(struct bgp *b, struct bgp_prefix_slab *slab)
{
	slab->previous = NULL;
	slab->next = b->roomy;
	if (slab->next != NULL)
		slab->next->previous = slab;
	b->roomy = slab;
}

static void unlink_slab(struct bgp *b, struct bgp_prefix_slab *slab)
{
	*(slab->previous != NULL ? &slab->previous->next : &b->roomy) = slab->next;
	if (slab->next != NULL)
		slab->next->previous = slab->previous;
}

static struct bgp_prefix_slab *make_prefix_slab(struct bgp *b)
{
	struct bgp_prefix_slab *slab = dsf_memory_new(b->config.memory, sizeof(*slab));

	if (slab == NULL)
		return NULL;
	for (uint32_t i = BGP_SLAB_PREFIXES; i-- > 0;) {
		slab->prefixes[i].link.id = i;
		slab->prefixes[i].next = slab->free;
		slab->free = &slab->prefixes[i];
	}
	link_slab(b, slab);
	return slab;
}

/* All zero but for its place. */
static struct bgp_prefix *take_prefix(struct bgp *b)
{
	struct bgp_prefix_slab *slab = b->roomy != NULL ? b->roomy : make_prefix_slab(b);
	struct bgp_prefix *prefix;

	if (slab == NULL)
		return NULL;
	prefix = slab->free;
	slab->free = prefix->next;
	slab->used++;
	if (slab->free == NULL)
		unlink_slab(b, slab);
	*prefix = (struct bgp_prefix){ .link.id = prefix->link.id };
	return prefix;
}

static void give_prefix(struct bgp *b, struct bgp_prefix *prefix)
{
	struct bgp_prefix *first = prefix - prefix->link.id;
	struct bgp_prefix_slab *slab =
		(void *)((uint8_t *)first - offsetof(struct bgp_prefix_slab, prefixes));

	if (slab->free == NULL)
		link_slab(b, slab);
	prefix->next = slab->free;
	slab->free = prefix;
	if (--slab->used > 0)
		return;
	unlink_slab(b, slab);
	dsf_memory_delete(b->config.memory, slab, sizeof(*slab));
}

/* ---- prefixes */

static struct bgp_prefix *make_prefix(struct bgp *b, const struct bgp_sought *sought)
{
	struct bgp_prefix *prefix = take_prefix(b);

	if (prefix == NULL)
		return NULL;
	prefix->link.hash = sought->prefix_hash;
	if (!bgp_table_add(&b->prefixes, &prefix->link)) {
		give_prefix(b, prefix);
		return NULL;
	}
	prefix->key = sought->nlri.key;
	prefix->previous = b->last;
	*(b->last != NULL ? &b->last->next : &b->first) = prefix;
	b->last = prefix;
	return prefix;
}

void bgp_rib_release(struct bgp *b, struct bgp_prefix *prefix)
{
	if (prefix->paths != NULL || prefix->arrivals != NULL || prefix->outs_count > 0 ||
		prefix->dirty || prefix->changed)
		return;
	assert(prefix->hops == NULL && !prefix->reachable);
	*(prefix->previous != NULL ? &prefix->previous->next : &b->first) = prefix->next;
	*(prefix->next != NULL ? &prefix->next->previous : &b->last) = prefix->previous;
	bgp_table_remove(&b->prefixes, &prefix->link);
	bgp_table_trim(&b->prefixes);
	give_prefix(b, prefix);
}

void bgp_rib_touch(struct bgp *b, struct bgp_prefix *prefix, dsf_instant now)
{
	if (prefix->dirty)
		return;
	b->decide_at = dsf_time_min(b->decide_at, dsf_time_max(now, b->undecided_at));
	prefix->dirty = true;
	prefix->dirty_next = NULL;
	*(b->dirty_last != NULL ? &b->dirty_last->dirty_next : &b->dirty_first) = prefix;
	b->dirty_last = prefix;
}

/* Seeded: a peer chooses its ids. */
static uint32_t hash_path(const struct bgp *b, uint32_t prefix_hash, uint32_t id)
{
	return (uint32_t)dsf_mix(b->store.seed ^ ((uint64_t)prefix_hash << 32 | id));
}

void bgp_rib_seek(const struct bgp_peer *p, struct bgp_sought *sought)
{
	const struct bgp *b = p->bgp;

	sought->prefix_hash = hash_prefix(b, &sought->nlri.key);
	sought->path_hash = hash_path(b, sought->prefix_hash, sought->nlri.path_id);
	bgp_table_expect(&b->prefixes, sought->prefix_hash);
	bgp_table_expect(&p->paths, sought->path_hash);
}

void bgp_rib_near(const struct bgp_peer *p, const struct bgp_sought *sought)
{
	bgp_table_near(&p->bgp->prefixes, sought->prefix_hash);
	bgp_table_near(&p->paths, sought->path_hash);
}

static struct bgp_path *find_path(
	const struct bgp_peer *p, const struct bgp_prefix *prefix, const struct bgp_sought *sought)
{
	struct bgp_path *lone = prefix->lone;
	uint32_t id = sought->nlri.path_id;
	struct bgp_link *link;

	if (lone != NULL && lone->peer == p && lone->link.id == id)
		return lone;
	link = bgp_table_first(&p->paths, sought->path_hash);
	while (link != NULL && (link->id != id || path_of(link)->prefix != prefix))
		link = bgp_table_again(link);
	return link == NULL ? NULL : path_of(link);
}

static bool make_slab(struct bgp_peer *p)
{
	const struct dsf_memory *memory = p->bgp->config.memory;
	struct bgp_slab *slab;

	if (p->slots_made + BGP_SLAB_PATHS > BGP_PATHS_MAX)
		return false;
	slab = dsf_memory_new(memory, sizeof(*slab));
	if (slab == NULL)
		return false;
	slab->next = p->slabs;
	p->slabs = slab;
	for (uint32_t i = BGP_SLAB_PATHS; i-- > 0;) {
		slab->paths[i].number = (uint32_t)p->number << SLOT_BITS | (p->slots_made + i);
		slab->paths[i].next = p->free;
		p->free = &slab->paths[i];
	}
	p->slots_made += BGP_SLAB_PATHS;
	return true;
}

/* With a peer's last path its memory goes. */
static void free_slabs(struct bgp_peer *p)
{
	const struct dsf_memory *memory = p->bgp->config.memory;

	while (p->slabs != NULL) {
		struct bgp_slab *slab = p->slabs;

		p->slabs = slab->next;
		dsf_memory_delete(memory, slab, sizeof(*slab));
	}
	p->free = NULL;
	p->slots_made = 0;
}

/* One path of a prefix is found by the prefix, so that what has only one costs no place in a table.
 * It needn't be the first, nor the best. */
static bool index_path(struct bgp_prefix *prefix, struct bgp_path *path)
{
	if (prefix->lone != NULL)
		return bgp_table_add(&path->peer->paths, &path->link);
	prefix->lone = path;
	return true;
}

static struct bgp_path *make_path(
	struct bgp_peer *p, struct bgp_prefix *prefix, const struct bgp_sought *sought)
{
	struct bgp_path *path;

	if (p->free == NULL && !make_slab(p))
		return NULL;
	path = p->free;
	path->link.hash = sought->path_hash;
	path->link.id = sought->nlri.path_id;
	path->peer = p;
	if (!index_path(prefix, path)) {
		if (p->slots_used == 0)
			free_slabs(p);
		return NULL;
	}
	p->free = path->next;
	p->slots_used++;
	path->prefix = prefix;
	path->bundle = NULL;
	path->outs = NULL;
	path->changed = path->stale = path->multipath = false;
	path->next = prefix->arrivals;
	prefix->arrivals = path;
	return path;
}

void bgp_rib_free_path(struct bgp_path *path)
{
	struct bgp_peer *p = path->peer;

	assert(path->bundle == NULL && path->outs == NULL);
	if (path->prefix->lone == path) {
		path->prefix->lone = NULL;
	} else {
		bgp_table_remove(&p->paths, &path->link);
		bgp_table_trim(&p->paths);
	}
	path->prefix = NULL;
	path->next = p->free;
	p->free = path;
	if (--p->slots_used == 0)
		free_slabs(p);
}

static void set_stale(struct bgp_path *path, bool stale)
{
	if (path->stale == stale)
		return;
	path->stale = stale;
	path->peer->paths_stale += stale ? 1 : -1u;
}

int bgp_rib_add(struct bgp_peer *p, const struct bgp_sought *sought, struct bgp_bundle *bundle,
	dsf_instant now)
{
	struct bgp *b = p->bgp;
	struct bgp_prefix *prefix = find_prefix(b, sought);
	struct bgp_path *path = prefix == NULL ? NULL : find_path(p, prefix, sought);

	if ((path == NULL || path->bundle == NULL) && p->paths_count >= p->config.paths_max) {
		bgp_bundle_give(&b->store, bundle);
		return -DSF_E_FULL;
	}
	if (path == NULL) {
		if (prefix == NULL)
			prefix = make_prefix(b, sought);
		path = prefix == NULL ? NULL : make_path(p, prefix, sought);
		if (path == NULL) {
			bgp_bundle_give(&b->store, bundle);
			if (prefix != NULL)
				bgp_rib_release(b, prefix);
			return -DSF_E_NOMEM;
		}
	}
	set_stale(path, false);
	if (path->bundle == bundle) { /* nothing new */
		bgp_bundle_give(&b->store, bundle);
		return 0;
	}
	if (path->bundle != NULL)
		bgp_bundle_give(&b->store, path->bundle);
	else
		p->paths_count++;
	path->bundle = bundle;
	path->changed = true;
	bgp_rib_touch(b, prefix, now);
	return 0;
}

/* The path stays until the next decision, which takes it out of everything. */
static void lose(struct bgp_path *path, dsf_instant now)
{
	struct bgp *b = path->peer->bgp;

	if (path->bundle == NULL)
		return;
	set_stale(path, false);
	bgp_bundle_give(&b->store, path->bundle);
	path->bundle = NULL;
	path->peer->paths_count--;
	bgp_rib_touch(b, path->prefix, now);
}

void bgp_rib_remove(struct bgp_peer *p, const struct bgp_sought *sought, dsf_instant now)
{
	struct bgp_prefix *prefix = find_prefix(p->bgp, sought);
	struct bgp_path *path = prefix == NULL ? NULL : find_path(p, prefix, sought);

	if (path != NULL)
		lose(path, now);
}

/* Both sweep the slabs: in order of memory, and free places are few. */

void bgp_rib_flush(struct bgp_peer *p, bool stale_only, dsf_instant now)
{
	for (struct bgp_slab *slab = p->slabs; slab != NULL; slab = slab->next) {
		for (uint32_t i = 0; i < BGP_SLAB_PATHS; i++) {
			struct bgp_path *path = &slab->paths[i];

			if (path->prefix != NULL && (!stale_only || path->stale))
				lose(path, now);
		}
	}
}

void bgp_rib_mark_stale(struct bgp_peer *p)
{
	for (struct bgp_slab *slab = p->slabs; slab != NULL; slab = slab->next) {
		for (uint32_t i = 0; i < BGP_SLAB_PATHS; i++) {
			struct bgp_path *path = &slab->paths[i];

			if (path->prefix != NULL && path->bundle != NULL)
				set_stale(path, true);
		}
	}
}
