/*
 * hash.h - a table from fixed-size keys to entries of the caller's struct
 *
 * Each entry's first key_size bytes are its key. Entries live in a pool, so a pointer stays valid
 * until its entry is removed. Iteration is in order of insertion, never of address or hash, so
 * that what depends on it repeats exactly.
 */
#ifndef DSF_BASE_HASH_H
#define DSF_BASE_HASH_H
#include <stdint.h>
#include "base/pool.h"

struct dsf_hash_node;

struct dsf_hash {
	struct dsf_pool pool;
	struct dsf_hash_node **buckets;     /* power of two of them, or NULL while empty */
	struct dsf_hash_node *first, *last; /* in order of insertion */
	uint32_t buckets_count;
	uint32_t count;
	uint32_t key_size;
};

/* Allocates nothing yet. At most count_max entries; entry_size includes the key. */
void dsf_hash_init(struct dsf_hash *h, const struct dsf_memory *memory, uint32_t key_size,
	size_t entry_size, uint32_t count_max);

/* NULL when the key is absent. */
void *dsf_hash_get(const struct dsf_hash *h, const void *key);

/* The entry of key, made (zeroed but for its key) where absent; NULL when full or out of memory. */
void *dsf_hash_put(struct dsf_hash *h, const void *key);

/* Removes and frees one entry. */
void dsf_hash_remove(struct dsf_hash *h, void *entry);

/* First entry with previous == NULL, then the one after previous; NULL at the end. Entries put
 * meanwhile come last; who removes entries on the way asks for the next one first. */
void *dsf_hash_next(const struct dsf_hash *h, const void *previous);

/* Gives back what entries that are gone took: the others move to memory of their own, in their
 * order, and pointers to them are invalid. Without memory for that all stays as it was. */
void dsf_hash_shrink(struct dsf_hash *h);

void dsf_hash_close(struct dsf_hash *h);

#endif
