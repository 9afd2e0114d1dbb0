#include "base/hash.h"
#include <assert.h>
#include "base/rng.h"

#define BUCKETS_FIRST 16u

struct dsf_hash_node {
	struct dsf_hash_node *chain;
	struct dsf_hash_node *previous, *next;
	uint64_t hash;
	/* the caller's entry follows, aligned to 16 */
};

#define NODE_SIZE ((sizeof(struct dsf_hash_node) + 15u) & ~15ul)

static void *entry_of(struct dsf_hash_node *node)
{
	return node == NULL ? NULL : (uint8_t *)node + NODE_SIZE;
}

static struct dsf_hash_node *node_of(const void *entry)
{
	return (struct dsf_hash_node *)(void *)((uintptr_t)entry - NODE_SIZE);
}

static uint64_t hash_key(const void *key, uint32_t size)
{
	const uint8_t *at = key;
	uint64_t hash = size;

	for (; size >= 8; size -= 8, at += 8) {
		uint64_t word;

		memcpy(&word, at, 8);
		hash = dsf_mix(hash ^ word) + 0x9e3779b97f4a7c15ull;
	}
	if (size > 0) {
		uint64_t word = 0;

		memcpy(&word, at, size);
		hash = dsf_mix(hash ^ word) + 0x9e3779b97f4a7c15ull;
	}
	return hash;
}

void dsf_hash_init(struct dsf_hash *h, const struct dsf_memory *memory, uint32_t key_size,
	size_t entry_size, uint32_t count_max)
{
	assert(entry_size >= key_size);
	memset(h, 0, sizeof(*h));
	dsf_pool_init(&h->pool, memory, NODE_SIZE + entry_size, 8, count_max);
	h->key_size = key_size;
}

static struct dsf_hash_node *find(const struct dsf_hash *h, const void *key, uint64_t hash)
{
	struct dsf_hash_node *node;

	if (h->buckets_count == 0)
		return NULL;
	node = h->buckets[hash & (h->buckets_count - 1)];
	while (node != NULL &&
		(node->hash != hash || memcmp(entry_of(node), key, h->key_size) != 0))
		node = node->chain;
	return node;
}

void *dsf_hash_get(const struct dsf_hash *h, const void *key)
{
	return entry_of(find(h, key, hash_key(key, h->key_size)));
}

static int grow_buckets(struct dsf_hash *h)
{
	uint32_t count = h->buckets_count == 0 ? BUCKETS_FIRST : h->buckets_count * 2;
	struct dsf_hash_node **buckets = dsf_memory_new(h->pool.memory, count * sizeof(*buckets));

	if (buckets == NULL)
		return -1;
	for (struct dsf_hash_node *node = h->first; node != NULL; node = node->next) {
		node->chain = buckets[node->hash & (count - 1)];
		buckets[node->hash & (count - 1)] = node;
	}
	dsf_memory_delete(h->pool.memory, h->buckets, h->buckets_count * sizeof(*buckets));
	h->buckets = buckets;
	h->buckets_count = count;
	return 0;
}

void *dsf_hash_put(struct dsf_hash *h, const void *key)
{
	uint64_t hash = hash_key(key, h->key_size);
	struct dsf_hash_node *node = find(h, key, hash);

	if (node != NULL)
		return entry_of(node);
	/* Without memory for more buckets a table still works, with longer chains. */
	if (h->count >= h->buckets_count && grow_buckets(h) < 0 && h->buckets == NULL)
		return NULL;
	node = dsf_pool_take(&h->pool);
	if (node == NULL)
		return NULL;
	memset(node, 0, h->pool.object_size);
	memcpy(entry_of(node), key, h->key_size);
	node->hash = hash;
	node->chain = h->buckets[hash & (h->buckets_count - 1)];
	h->buckets[hash & (h->buckets_count - 1)] = node;
	node->previous = h->last;
	*(h->last != NULL ? &h->last->next : &h->first) = node;
	h->last = node;
	h->count++;
	return entry_of(node);
}

void dsf_hash_remove(struct dsf_hash *h, void *entry)
{
	struct dsf_hash_node *node = node_of(entry);
	struct dsf_hash_node **at = &h->buckets[node->hash & (h->buckets_count - 1)];

	while (*at != node)
		at = &(*at)->chain;
	*at = node->chain;
	*(node->previous != NULL ? &node->previous->next : &h->first) = node->next;
	*(node->next != NULL ? &node->next->previous : &h->last) = node->previous;
	dsf_pool_give(&h->pool, node);
	h->count--;
}

void *dsf_hash_next(const struct dsf_hash *h, const void *previous)
{
	return entry_of(previous == NULL ? h->first : node_of(previous)->next);
}

void dsf_hash_shrink(struct dsf_hash *h)
{
	size_t entry_size = h->pool.object_size - NODE_SIZE;
	struct dsf_hash moved;

	dsf_hash_init(&moved, h->pool.memory, h->key_size, entry_size, h->pool.count_max);
	for (const void *e = dsf_hash_next(h, NULL); e != NULL; e = dsf_hash_next(h, e)) {
		void *copy = dsf_hash_put(&moved, e);

		if (copy == NULL) {
			dsf_hash_close(&moved);
			return;
		}
		memcpy(copy, e, entry_size);
	}
	dsf_hash_close(h);
	*h = moved;
}

void dsf_hash_close(struct dsf_hash *h)
{
	dsf_memory_delete(h->pool.memory, h->buckets, h->buckets_count * sizeof(*h->buckets));
	dsf_pool_close(&h->pool);
	h->buckets = NULL;
	h->first = h->last = NULL;
	h->buckets_count = 0;
	h->count = 0;
}
