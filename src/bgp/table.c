#include "bgp/table.h"
#include <assert.h>

#define BUCKETS_MIN 16u
#define AHEAD       16u /* buckets whose entries come into the cache; ours */

struct bgp_link *bgp_table_first(const struct bgp_table *t, uint32_t hash)
{
	struct bgp_link *link;

	if (t->buckets_count == 0)
		return NULL;
	link = t->buckets[hash & (t->buckets_count - 1)];
	while (link != NULL && link->hash != hash)
		link = link->chain;
	return link;
}

struct bgp_link *bgp_table_again(const struct bgp_link *link)
{
	uint32_t hash = link->hash;
	struct bgp_link *next = link->chain;

	while (next != NULL && next->hash != hash)
		next = next->chain;
	return next;
}

/* False, and all as it was, when memory is short. */
static bool resize(struct bgp_table *t, uint32_t count)
{
	struct bgp_link **buckets = dsf_memory_new(t->memory, count * sizeof(*buckets));

	if (buckets == NULL)
		return false;
	for (uint32_t i = 0; i < t->buckets_count; i++) {
		struct bgp_link *link = t->buckets[i], *next;

		if (i + AHEAD < t->buckets_count)
			__builtin_prefetch(t->buckets[i + AHEAD]);
		for (; link != NULL; link = next) {
			next = link->chain;
			link->chain = buckets[link->hash & (count - 1)];
			buckets[link->hash & (count - 1)] = link;
		}
	}
	dsf_memory_delete(t->memory, t->buckets, t->buckets_count * sizeof(*buckets));
	t->buckets = buckets;
	t->buckets_count = count;
	return true;
}

bool bgp_table_add(struct bgp_table *t, struct bgp_link *link)
{
	/* Without memory for more buckets a table still works, with longer chains. */
	if (t->count >= t->buckets_count &&
		!resize(t, t->buckets_count == 0 ? BUCKETS_MIN : t->buckets_count * 2) &&
		t->buckets == NULL)
		return false;
	link->chain = t->buckets[link->hash & (t->buckets_count - 1)];
	t->buckets[link->hash & (t->buckets_count - 1)] = link;
	t->count++;
	return true;
}

void bgp_table_remove(struct bgp_table *t, struct bgp_link *link)
{
	struct bgp_link **at = &t->buckets[link->hash & (t->buckets_count - 1)];

	while (*at != link)
		at = &(*at)->chain;
	*at = link->chain;
	t->count--;
}

void bgp_table_trim(struct bgp_table *t)
{
	uint32_t count = BUCKETS_MIN;

	if (t->count == 0) {
		bgp_table_close(t);
		return;
	}
	if (t->count >= t->buckets_count / 8)
		return;
	while (count < t->count)
		count *= 2;
	if (count < t->buckets_count)
		(void)resize(t, count);
}

void bgp_table_close(struct bgp_table *t)
{
	dsf_memory_delete(t->memory, t->buckets, t->buckets_count * sizeof(*t->buckets));
	t->buckets = NULL;
	t->buckets_count = t->count = 0;
}
