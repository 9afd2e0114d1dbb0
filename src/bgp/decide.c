/* decide.c - which paths of a prefix are used, for all prefixes that have changed at once */
#include "base/rng.h"
#include "bgp/speaker.h"

/* ---- paths in order */

static int compare_numbers(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

/* By next hop, so that a walk gives the set of hops in order; then whatever tells them apart. */
static int compare_places(const struct bgp_path *a, const struct bgp_path *b)
{
	int order = a->bundle == b->bundle ? 0
					   : memcmp(&a->bundle->next_hop, &b->bundle->next_hop,
						     sizeof(a->bundle->next_hop));

	if (order == 0)
		order = compare_numbers(a->peer->number, b->peer->number);
	return order != 0 ? order : compare_numbers(a->link.id, b->link.id);
}

/* Cuts the run that list begins with off and returns what follows. */
static struct bgp_path *cut_run(struct bgp_path *list)
{
	struct bgp_path *last = list, *rest;

	while (last->next != NULL && compare_places(last, last->next) <= 0)
		last = last->next;
	rest = last->next;
	last->next = NULL;
	return rest;
}

static struct bgp_path **merge(struct bgp_path **at, struct bgp_path *a, struct bgp_path *b)
{
	while (a != NULL && b != NULL) {
		struct bgp_path **less = compare_places(a, b) <= 0 ? &a : &b;

		*at = *less;
		at = &(*at)->next;
		*less = *at;
	}
	*at = a != NULL ? a : b;
	return at;
}

/* Natural merge sort: what comes in order is one run. */
static struct bgp_path *sort(struct bgp_path *list)
{
	bool sorted = list == NULL;

	while (!sorted) {
		struct bgp_path *result = NULL, **at = &result;

		sorted = true;
		while (list != NULL) {
			struct bgp_path *a = list, *b = cut_run(a);

			list = b == NULL ? NULL : cut_run(b);
			sorted = sorted && list == NULL;
			at = merge(at, a, b);
			while (*at != NULL)
				at = &(*at)->next;
		}
		list = result;
	}
	return list;
}

static void drop(struct bgp *b, struct bgp_path *path)
{
	bgp_out_retire(b, &path->outs);
	bgp_rib_free_path(path);
}

/* Takes gone paths out, which withdraw what was told of them, and puts new and changed ones where
 * they belong. */
static void arrange(struct bgp *b, struct bgp_prefix *prefix)
{
	struct bgp_path **at = &prefix->paths, *fresh = NULL, *path, *next;

	for (path = prefix->arrivals; path != NULL; path = next) { /* oldest first again */
		next = path->next;
		if (path->bundle == NULL) {
			drop(b, path);
		} else {
			path->next = fresh;
			fresh = path;
		}
	}
	prefix->arrivals = NULL;
	while ((path = *at) != NULL) {
		if (path->bundle != NULL && !path->changed) {
			at = &path->next;
			continue;
		}
		*at = path->next;
		if (path->bundle == NULL) {
			drop(b, path);
		} else {
			path->next = fresh;
			fresh = path;
		}
	}
	if (fresh != NULL)
		(void)merge(&prefix->paths, prefix->paths, sort(fresh));
}

/* ---- the choice (RFC 4271 9.1.2.2) */

/* 0: ours, 1: eBGP, 2: iBGP */
static unsigned kind_of(const struct bgp *b, const struct bgp_path *path)
{
	if (bgp_is_own(path->peer))
		return 0;
	return bgp_is_external(b, path->peer) ? 1 : 2;
}

/* Steps before MED; less than 0: a is better. */
static int compare_merit(const struct bgp_path *a, const struct bgp_path *b)
{
	const struct bgp_bundle *x = a->bundle, *y = b->bundle;
	int order = compare_numbers(!bgp_is_own(a->peer), !bgp_is_own(b->peer));

	if (order == 0)
		order = compare_numbers(y->local_pref, x->local_pref);
	if (order == 0)
		order = compare_numbers(x->hops, y->hops);
	return order != 0 ? order : compare_numbers(x->origin, y->origin);
}

/* Which of equal paths speaks for the prefix: f) and g), RFC 4456 9, 7911. */
static int compare_rest(const struct bgp_path *a, const struct bgp_path *b)
{
	uint32_t id_a = a->bundle->originator_id, id_b = b->bundle->originator_id;
	int order = compare_numbers(id_a != 0 ? id_a : a->peer->id, id_b != 0 ? id_b : b->peer->id);

	if (order == 0)
		order = compare_numbers(a->bundle->clusters, b->bundle->clusters);
	if (order == 0)
		order = memcmp(&a->peer->config.address, &b->peer->config.address,
			sizeof(a->peer->config.address));
	return order != 0 ? order : compare_numbers(a->link.id, b->link.id);
}

/* Marks the paths that no other is better than, before MED. Returns how many there are. */
static uint32_t mark_merit(struct bgp_prefix *prefix)
{
	const struct bgp_path *best = prefix->paths;
	uint32_t count = 0;

	for (const struct bgp_path *p = prefix->paths; p != NULL; p = p->next) {
		if (compare_merit(p, best) < 0)
			best = p;
	}
	for (struct bgp_path *p = prefix->paths; p != NULL; p = p->next) {
		p->multipath = compare_merit(p, best) == 0;
		count += p->multipath;
	}
	return count;
}

/* The place of an AS in a table of (AS, lowest MED) of a power of two of places. */
static uint32_t *med_place(const struct bgp *b, uint32_t places, uint32_t as)
{
	uint32_t *meds = b->meds;
	uint32_t i = (uint32_t)dsf_mix(b->store.seed ^ as) & (places - 1);

	while (meds[2 * i + 1] != 0 && meds[2 * i] != as) /* MED + 1; 0 is an empty place */
		i = (i + 1) & (places - 1);
	return &meds[2 * i];
}

/* The lowest MED of each neighbouring AS; false when memory is short. MED saturates one below its
 * largest value, so that there is a mark for an empty place. */
static uint32_t med_mark(const struct bgp_path *p)
{
	return p->bundle->med == UINT32_MAX ? UINT32_MAX : p->bundle->med + 1;
}

static bool reserve_meds(struct bgp *b, uint32_t places)
{
	if (b->meds_cap < places) {
		uint32_t *grown = dsf_memory_new(b->config.memory, places * 2 * sizeof(*grown));

		if (grown == NULL)
			return false;
		dsf_memory_delete(b->config.memory, b->meds, b->meds_cap * 2 * sizeof(*b->meds));
		b->meds = grown;
		b->meds_cap = places;
	}
	memset(b->meds, 0, places * 2 * sizeof(*b->meds));
	return true;
}

/* Among paths of one neighbouring AS those with a higher MED are out. */
static bool drop_meds(struct bgp *b, struct bgp_prefix *prefix, uint32_t count)
{
	uint32_t places = 16;
	const struct bgp_path *first = NULL;
	bool differ = false;

	for (struct bgp_path *p = prefix->paths; p != NULL; p = p->next) {
		if (p->multipath && first == NULL)
			first = p;
		differ = differ || (p->multipath && p->bundle->med != first->bundle->med);
	}
	if (!differ)
		return true;
	while (places < 2 * count)
		places *= 2;
	if (!reserve_meds(b, places))
		return false;
	for (struct bgp_path *p = prefix->paths; p != NULL; p = p->next) {
		uint32_t *place;

		if (!p->multipath)
			continue;
		place = med_place(b, places, p->bundle->neighbor_as);
		place[0] = p->bundle->neighbor_as;
		if (place[1] == 0 || med_mark(p) < place[1])
			place[1] = med_mark(p);
	}
	for (struct bgp_path *p = prefix->paths; p != NULL; p = p->next) {
		if (p->multipath)
			p->multipath =
				med_mark(p) == med_place(b, places, p->bundle->neighbor_as)[1];
	}
	return true;
}

/* eBGP is better than iBGP; of what is left one path is the best. */
static struct bgp_path *drop_kinds(const struct bgp *b, struct bgp_prefix *prefix)
{
	struct bgp_path *best = NULL;
	unsigned kind = 2;

	for (struct bgp_path *p = prefix->paths; p != NULL; p = p->next) {
		if (p->multipath && kind_of(b, p) < kind)
			kind = kind_of(b, p);
	}
	for (struct bgp_path *p = prefix->paths; p != NULL; p = p->next) {
		p->multipath = p->multipath && kind_of(b, p) == kind;
		if (p->multipath && (best == NULL || compare_rest(p, best) < 0))
			best = p;
	}
	return best;
}

/* ---- what follows */

static bool reserve_hops(struct bgp *b, uint32_t count)
{
	struct dsf_ip6 *grown;

	if (b->hops_cap >= count)
		return true;
	count = count < 64 ? 64 : count + count / 2;
	grown = dsf_memory_new(b->config.memory, count * sizeof(*grown));
	if (grown == NULL)
		return false;
	dsf_memory_delete(b->config.memory, b->hops, b->hops_cap * sizeof(*b->hops));
	b->hops = grown;
	b->hops_cap = count;
	return true;
}

/* The set of next hops of the marked paths; *hops NULL where there is none. */
static bool collect_hops(
	struct bgp *b, const struct bgp_prefix *prefix, uint32_t count, struct bgp_hops **hops)
{
	uint32_t found = 0;

	*hops = NULL;
	if (prefix->best == NULL || bgp_is_own(prefix->best->peer))
		return true;
	if (!reserve_hops(b, count))
		return false;
	if (b->config.multipath_max == 1)
		b->hops[found++] = prefix->best->bundle->next_hop;
	for (const struct bgp_path *p = prefix->paths; p != NULL && found < b->config.multipath_max;
		p = p->next) {
		const struct dsf_ip6 *hop = &p->bundle->next_hop;

		if (p->multipath && (found == 0 || !dsf_ip6_equal(&b->hops[found - 1], hop)))
			b->hops[found++] = *hop;
	}
	*hops = bgp_store_hops(&b->store, b->hops, found);
	return *hops != NULL;
}

static void set_hops(struct bgp *b, struct bgp_prefix *prefix, struct bgp_hops *hops)
{
	bool same = prefix->hops == hops;

	if (prefix->hops != NULL)
		bgp_hops_give(&b->store, prefix->hops);
	prefix->hops = hops;
	if (same || prefix->changed)
		return;
	prefix->changed = true;
	prefix->changed_next = NULL;
	*(b->changed_last != NULL ? &b->changed_last->changed_next : &b->changed_first) = prefix;
	b->changed_last = prefix;
}

static struct bgp_sought sought_of(const struct bgp *b, const struct bgp_own *own)
{
	struct bgp_sought sought = { .nlri.key = own->origin.prefix };

	bgp_rib_seek(&b->peers[0], &sought);
	return sought;
}

/* The attributes of what is ours: nothing but that it is. */
static struct bgp_bundle *own_bundle(struct bgp *b)
{
	static const uint8_t origin[1] = { BGP_ORIGIN_IGP };
	static const struct dsf_ip6 none = { { 0 } };
	struct bgp_attributes a = { 0 };

	bgp_attributes_set(&a, BGP_ORIGIN, BGP_FLAG_TRANSITIVE, origin, sizeof(origin));
	bgp_attributes_set(&a, BGP_AS_PATH, BGP_FLAG_TRANSITIVE, NULL, 0);
	bgp_attributes_set32(&a, BGP_LOCAL_PREF, BGP_FLAG_TRANSITIVE, BGP_LOCAL_PREF_DEFAULT);
	return bgp_store_bundle(
		&b->store, &a, &none, &b->bundle_bytes, b->scratch, BGP_SCRATCH_PATH);
}

void bgp_own_check(struct bgp *b, struct bgp_own *own, dsf_instant now)
{
	bool wanted = own->origin.enabled && own->contributors >= own->origin.contributors_min;
	struct bgp_bundle *bundle;
	struct bgp_sought sought;

	if (wanted == own->told)
		return;
	sought = sought_of(b, own);
	if (!wanted) {
		bgp_rib_remove(&b->peers[0], &sought, now);
		own->told = false;
		return;
	}
	bundle = own_bundle(b);
	own->told = bundle != NULL && bgp_rib_add(&b->peers[0], &sought, bundle, now) == 0;
	if (!own->told) /* memory is short: the next decision tries again */
		b->decide_at = dsf_time_min(b->decide_at,
			dsf_time_max(b->undecided_at, dsf_time_after(now, BGP_DECIDE_NS)));
}

/* Counts a prefix that became reachable, or no longer is, for the aggregates that it lies in. */
static void count_contributor(struct bgp *b, struct bgp_prefix *prefix, dsf_instant now)
{
	bool reachable = prefix->best != NULL;

	if (prefix->reachable == reachable)
		return;
	prefix->reachable = reachable;
	for (uint32_t i = 0; i < b->config.origins_count; i++) {
		struct bgp_own *own = &b->own[i];

		if (own->origin.prefix.length >= prefix->key.length ||
			!bgp_prefix_covers(&own->origin.prefix, &prefix->key))
			continue;
		own->contributors += reachable ? 1 : -1u;
		bgp_own_check(b, own, now);
	}
}

/* False: memory is short. */
static bool tell_path(struct bgp *b, struct bgp_group *g, struct bgp_prefix *prefix,
	struct bgp_out **at, const struct bgp_path *path)
{
	struct bgp_bundle *bundle = NULL;

	if (path != NULL && !bgp_export(b, g, path, &bundle))
		return false;
	return bgp_out_set(b, g, prefix, at, path, bundle);
}

static bool tell(struct bgp *b, struct bgp_prefix *prefix, bool best_changed)
{
	bool held = true;

	for (struct bgp_group *g = b->groups; g != NULL; g = g->next) {
		bool all = g->building || prefix->again;

		if (!g->add_path) {
			if (all || best_changed)
				held &= tell_path(b, g, prefix, &prefix->outs, prefix->best);
			continue;
		}
		for (struct bgp_path *p = prefix->paths; p != NULL; p = p->next) {
			if (all || p->changed)
				held &= tell_path(b, g, prefix, &p->outs, p);
		}
	}
	return held;
}

/* False: memory is short, and the prefix has to be looked at again. */
static bool decide(struct bgp *b, struct bgp_prefix *prefix, dsf_instant now)
{
	struct bgp_path *old = prefix->best;
	struct bgp_hops *hops = NULL;
	uint32_t count;
	bool held = true, best_changed;

	arrange(b, prefix);
	count = prefix->paths == NULL ? 0 : mark_merit(prefix);
	held = count == 0 || drop_meds(b, prefix, count);
	prefix->best = count == 0 ? NULL : drop_kinds(b, prefix);
	best_changed = prefix->best != old || (old != NULL && old->changed);
	held &= collect_hops(b, prefix, count, &hops);
	set_hops(b, prefix, hops);
	held &= tell(b, prefix, best_changed);
	for (struct bgp_path *p = prefix->paths; p != NULL; p = p->next) {
		p->changed = false;
		b->walked++;
	}
	count_contributor(b, prefix, now);
	prefix->again = !held;
	return held;
}

/* One round: everything that is marked now. Prefixes to be looked at again are put to *again. */
static void decide_round(struct bgp *b, struct bgp_prefix **again, dsf_instant now)
{
	struct bgp_prefix *prefix = b->dirty_first, *next;

	b->dirty_first = b->dirty_last = NULL;
	for (; prefix != NULL; prefix = next) {
		next = prefix->dirty_next;
		prefix->dirty = false;
		if (decide(b, prefix, now)) {
			bgp_rib_release(b, prefix);
			continue;
		}
		prefix->dirty = true; /* keeps it from being released or marked meanwhile */
		prefix->dirty_next = *again;
		*again = prefix;
	}
	bgp_out_flush(b, now);
}

/* What a peer with many paths of one prefix has made large doesn't stay when it goes. */
static void free_scratch(struct bgp *b)
{
	dsf_memory_delete(b->config.memory, b->hops, b->hops_cap * sizeof(*b->hops));
	dsf_memory_delete(b->config.memory, b->meds, b->meds_cap * 2 * sizeof(*b->meds));
	b->hops = NULL;
	b->meds = NULL;
	b->hops_cap = b->meds_cap = 0;
}

void bgp_decide(struct bgp *b, dsf_instant now)
{
	struct bgp_prefix *again = NULL, *next;
	uint64_t gap_ns = BGP_DECIDE_NS;

	b->walked = 0;
	while (b->dirty_first != NULL) /* aggregates may come and go by what was decided */
		decide_round(b, &again, now);
	free_scratch(b);
	if (b->walked * BGP_DECIDE_PATH_NS > gap_ns)
		gap_ns = b->walked * BGP_DECIDE_PATH_NS;
	b->undecided_at = dsf_time_after(now, gap_ns);
	b->decide_at = DSF_NEVER;
	for (uint32_t i = 0; i < b->config.origins_count; i++) /* what memory was short for */
		bgp_own_check(b, &b->own[i], now);
	for (; again != NULL; again = next) {
		next = again->dirty_next;
		again->dirty = false;
		bgp_rib_touch(b, again, now);
	}
	bgp_out_built(b);
}
