/*
 * table.h - hash tables whose links lie in the entries
 *
 * For what comes and goes by the hundred thousand and must leave nothing behind: entries are the
 * owner's, the buckets shrink again. The owner chooses hashes (seeded where a peer chooses keys)
 * and compares keys.
 */
#ifndef DSF_BGP_TABLE_H
#define DSF_BGP_TABLE_H
#include <stdbool.h>
#include <stdint.h>
#include "base/memory.h"

struct bgp_link {
	struct bgp_link *chain;
	uint32_t hash;
	uint32_t id; /* the owner's; a place that would be padding otherwise */
};

struct bgp_table {
	const struct dsf_memory *memory;
	struct bgp_link **buckets; /* power of two of them, or NULL while empty */
	uint32_t buckets_count, count;
};

static inline void bgp_table_init(struct bgp_table *t, const struct dsf_memory *memory)
{
	*t = (struct bgp_table){ .memory = memory };
}

/* A hash that will soon be looked for: its bucket comes into the cache meanwhile. */
static inline void bgp_table_expect(const struct bgp_table *t, uint32_t hash)
{
	if (t->buckets_count > 0)
		__builtin_prefetch(&t->buckets[hash & (t->buckets_count - 1)]);
}

/* Later, when the bucket is there: its first entry comes too. */
static inline void bgp_table_near(const struct bgp_table *t, uint32_t hash)
{
	if (t->buckets_count > 0)
		__builtin_prefetch(t->buckets[hash & (t->buckets_count - 1)]);
}

/* The first entry with that hash, and the next one after it; NULL when there is none. */
struct bgp_link *bgp_table_first(const struct bgp_table *t, uint32_t hash);
struct bgp_link *bgp_table_again(const struct bgp_link *link);

/* Adds an entry whose hash is set. False: no memory for the first buckets. */
bool bgp_table_add(struct bgp_table *t, struct bgp_link *link);

/* Takes an entry out; buckets stay until they are trimmed. */
void bgp_table_remove(struct bgp_table *t, struct bgp_link *link);

/* Gives buckets back that are no longer needed. */
void bgp_table_trim(struct bgp_table *t);

/* Gives the buckets back. */
void bgp_table_close(struct bgp_table *t);

#endif
