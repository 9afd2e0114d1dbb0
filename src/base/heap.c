#include "base/heap.h"
#include "base/err.h"

#define CAPACITY_FIRST 16u
#define RANK_SHIFT     48u /* above the sequence, which no heap's life uses up */

void dsf_heap_init(struct dsf_heap *h, const struct dsf_memory *memory)
{
	memset(h, 0, sizeof(*h));
	h->memory = memory;
}

static bool earlier(const struct dsf_heap_entry *a, const struct dsf_heap_entry *b)
{
	return a->at.ns != b->at.ns ? a->at.ns < b->at.ns : a->sequence < b->sequence;
}

static void place(struct dsf_heap *h, uint32_t index, struct dsf_heap_entry *entry)
{
	h->entries[index] = entry;
	entry->place = index + 1;
	if (index == 0)
		h->first_at = entry->at;
}

static void sift_up(struct dsf_heap *h, uint32_t index, struct dsf_heap_entry *entry)
{
	while (index > 0 && earlier(entry, h->entries[(index - 1) / 2])) {
		place(h, index, h->entries[(index - 1) / 2]);
		index = (index - 1) / 2;
	}
	place(h, index, entry);
}

static void sift_down(struct dsf_heap *h, uint32_t index, struct dsf_heap_entry *entry)
{
	for (;;) {
		uint32_t child = 2 * index + 1;

		if (child + 1 < h->count && earlier(h->entries[child + 1], h->entries[child]))
			child++;
		if (child >= h->count || !earlier(h->entries[child], entry))
			break;
		place(h, index, h->entries[child]);
		index = child;
	}
	place(h, index, entry);
}

int dsf_heap_reserve(struct dsf_heap *h, uint32_t capacity)
{
	uint32_t grown_capacity = h->capacity == 0 ? CAPACITY_FIRST : h->capacity;
	void *grown;

	if (capacity <= h->capacity)
		return 0;
	while (grown_capacity < capacity)
		grown_capacity *= 2;
	grown = dsf_memory_grow(h->memory, h->entries, h->capacity * sizeof(*h->entries),
		grown_capacity * sizeof(*h->entries));
	if (grown == NULL)
		return -DSF_E_NOMEM;
	h->entries = grown;
	h->capacity = grown_capacity;
	return 0;
}

int dsf_heap_set_ranked(
	struct dsf_heap *h, struct dsf_heap_entry *entry, dsf_instant at, uint16_t rank)
{
	if (entry->place == 0) {
		if (dsf_heap_reserve(h, h->count + 1) < 0)
			return -DSF_E_NOMEM;
		h->count++;
		entry->place = h->count;
	}
	entry->at = at;
	entry->sequence = (uint64_t)rank << RANK_SHIFT | h->sequence++;
	sift_up(h, entry->place - 1, entry);
	sift_down(h, entry->place - 1, entry);
	return 0;
}

void dsf_heap_remove(struct dsf_heap *h, struct dsf_heap_entry *entry)
{
	uint32_t index = entry->place - 1;
	struct dsf_heap_entry *last;

	if (entry->place == 0)
		return;
	entry->place = 0;
	last = h->entries[--h->count];
	if (last == entry)
		return;
	sift_up(h, index, last);
	sift_down(h, last->place - 1, last);
}

void dsf_heap_close(struct dsf_heap *h)
{
	dsf_memory_delete(h->memory, h->entries, h->capacity * sizeof(*h->entries));
	h->entries = NULL;
	h->count = h->capacity = 0;
}
