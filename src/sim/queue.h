/*
 * queue.h - events of a simulation in order of (instant, rank, sequence number)
 *
 * A four-way heap with the keys in line: the order depends on instants, on the caller's ranks and
 * on the order in which events were added, never on addresses.
 */
#ifndef DSF_SIM_QUEUE_H
#define DSF_SIM_QUEUE_H
#include <stdbool.h>
#include <stdint.h>
#include "base/time.h"

#define SIM_QUEUE_RANK_BITS 21u /* the rest is sequence: 8.8e12 events of a run keep their order */

struct sim_entry {
	dsf_instant at;
	uint64_t sequence; /* rank above, sequence number below */
	uint64_t value;    /* the caller's */
};

struct sim_queue {
	struct sim_entry *entries;
	uint64_t sequence;
	uint32_t count, capacity;
};

/* Starts empty when zeroed. 0, or -ENOMEM. */
int sim_queue_push(struct sim_queue *q, dsf_instant at, uint32_t rank, uint64_t value);

/* The earliest entry, taken off; false when empty. */
bool sim_queue_pop(struct sim_queue *q, struct sim_entry *entry);

static inline dsf_instant sim_queue_at(const struct sim_queue *q)
{
	return q->count == 0 ? DSF_NEVER : q->entries[0].at;
}

void sim_queue_close(struct sim_queue *q);

#endif
