/*
 * heap.h - deadlines in order
 *
 * A binary heap of (instant, rank, sequence): entries of one instant come out by rank, those of one
 * rank in the order in which they were set. The owner embeds a dsf_heap_entry in its struct and
 * finds itself by DSF_CONTAINER.
 */
#ifndef DSF_BASE_HEAP_H
#define DSF_BASE_HEAP_H
#include <stddef.h>
#include <stdint.h>
#include "base/memory.h"
#include "base/time.h"

#define DSF_CONTAINER(pointer, type, member)                                                       \
	((type *)(void *)((char *)(pointer)-offsetof(type, member)))

struct dsf_heap_entry {
	dsf_instant at;
	uint64_t sequence; /* rank above, sequence below */
	uint32_t place;    /* 1 + index in the heap; 0 when it is not in it */
};

struct dsf_heap {
	const struct dsf_memory *memory;
	struct dsf_heap_entry **entries;
	uint64_t sequence;
	dsf_instant
		first_at; /* of the earliest entry, so that asking for it touches nothing else */
	uint32_t count;
	uint32_t capacity;
};

void dsf_heap_init(struct dsf_heap *h, const struct dsf_memory *memory);

/* Makes room for capacity entries in all, so that dsf_heap_set can't fail below that.
 * 0 or -DSF_E_NOMEM. */
int dsf_heap_reserve(struct dsf_heap *h, uint32_t capacity);

/* Adds entry at instant at, or moves it there. 0, or -DSF_E_NOMEM and nothing changed; moving an
 * entry that is in the heap can't fail. */
int dsf_heap_set_ranked(
	struct dsf_heap *h, struct dsf_heap_entry *entry, dsf_instant at, uint16_t rank);

/* The same at rank 0. */
static inline int dsf_heap_set(struct dsf_heap *h, struct dsf_heap_entry *entry, dsf_instant at)
{
	return dsf_heap_set_ranked(h, entry, at, 0);
}

/* Takes entry out; nothing happens when it is not in it. */
void dsf_heap_remove(struct dsf_heap *h, struct dsf_heap_entry *entry);

/* The earliest entry, still in the heap; NULL when empty. */
static inline struct dsf_heap_entry *dsf_heap_first(const struct dsf_heap *h)
{
	return h->count == 0 ? NULL : h->entries[0];
}

/* The earliest instant; DSF_NEVER when empty. */
static inline dsf_instant dsf_heap_at(const struct dsf_heap *h)
{
	return h->count == 0 ? DSF_NEVER : h->first_at;
}

void dsf_heap_close(struct dsf_heap *h);

#endif
