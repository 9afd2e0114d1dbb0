#include "sim/queue.h"
#include <errno.h>
#include <stdlib.h>

#define CAPACITY_FIRST 1024u
#define WAYS           4u
#define RANK_SHIFT     (64u - SIM_QUEUE_RANK_BITS)

static bool earlier(const struct sim_entry *a, const struct sim_entry *b)
{
	return a->at.ns != b->at.ns ? a->at.ns < b->at.ns : a->sequence < b->sequence;
}

int sim_queue_push(struct sim_queue *q, dsf_instant at, uint32_t rank, uint64_t value)
{
	struct sim_entry entry = { at, (uint64_t)rank << RANK_SHIFT | q->sequence, value };
	uint32_t index;

	if (q->count == q->capacity) {
		uint32_t capacity = q->capacity == 0 ? CAPACITY_FIRST : 2 * q->capacity;
		struct sim_entry *grown = realloc(q->entries, capacity * sizeof(*grown));

		if (grown == NULL)
			return -ENOMEM;
		q->entries = grown;
		q->capacity = capacity;
	}
	q->sequence++;
	index = q->count++;
	while (index > 0 && earlier(&entry, &q->entries[(index - 1) / WAYS])) {
		q->entries[index] = q->entries[(index - 1) / WAYS];
		index = (index - 1) / WAYS;
	}
	q->entries[index] = entry;
	return 0;
}

bool sim_queue_pop(struct sim_queue *q, struct sim_entry *entry)
{
	struct sim_entry last;
	uint32_t index = 0;

	if (q->count == 0)
		return false;
	*entry = q->entries[0];
	last = q->entries[--q->count];
	for (;;) {
		uint32_t child = WAYS * index + 1, best = child;

		if (child >= q->count)
			break;
		for (uint32_t i = child + 1; i < child + WAYS && i < q->count; i++)
			if (earlier(&q->entries[i], &q->entries[best]))
				best = i;
		if (!earlier(&q->entries[best], &last))
			break;
		q->entries[index] = q->entries[best];
		index = best;
	}
	q->entries[index] = last;
	return true;
}

void sim_queue_close(struct sim_queue *q)
{
	free(q->entries);
	*q = (struct sim_queue){ 0 };
}
