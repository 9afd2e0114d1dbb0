#include "uring/hold.h"
#include <assert.h>
#include <string.h>
#include "base/err.h"
#include "node/node.h"

#define HELD_PER_SLAB 64u

static_assert(TOPO_PORTS_MAX <= NODE_PORT_INBAND && NODE_PORT_INBAND <= UINT16_MAX,
	"a port number is a rank");

void uring_hold_init(struct uring_hold *h, const struct dsf_memory *memory)
{
	dsf_heap_init(&h->heap, memory);
	dsf_pool_init(&h->pool, memory, sizeof(struct uring_held), HELD_PER_SLAB, URING_HELD_MAX);
}

/* Frees the receive buffer of a frame that will wait while more than half of them are held. */
static void copy_out(struct uring_held *held)
{
	void *copy = dsf_pool_take(&held->buffers->copies);

	if (copy == NULL)
		return; /* it keeps its buffer: receiving slows down, nothing is lost */
	memcpy(copy, held->arrival.bytes, held->arrival.size);
	held->arrival.bytes = copy;
	held->copy = copy;
	uring_buffers_give(held->buffers, held->id);
}

int uring_hold_push(struct uring_hold *h, struct uring_buffers *buffers, uint16_t id, uint32_t port,
	uint32_t rank, const struct uring_arrival *a, dsf_instant now)
{
	struct uring_held *held = dsf_pool_take(&h->pool);

	if (held == NULL)
		return -DSF_E_FULL;
	held->entry.place = 0;
	held->port = port;
	held->arrival = *a;
	held->buffers = buffers;
	held->copy = NULL;
	held->id = id;
	if (dsf_heap_set_ranked(&h->heap, &held->entry, a->due, (uint16_t)rank) < 0) {
		dsf_pool_give(&h->pool, held);
		return -DSF_E_NOMEM;
	}
	if (!dsf_time_due(a->due, now) && buffers->taken > buffers->count_max / 2)
		copy_out(held);
	return 0;
}

static struct uring_held *take(struct uring_hold *h, struct dsf_heap_entry *entry)
{
	dsf_heap_remove(&h->heap, entry);
	return DSF_CONTAINER(entry, struct uring_held, entry);
}

struct uring_held *uring_hold_pop(struct uring_hold *h)
{
	struct dsf_heap_entry *first = dsf_heap_first(&h->heap);

	return first == NULL ? NULL : take(h, first);
}

struct uring_held *uring_hold_pop_port(struct uring_hold *h, uint32_t port)
{
	struct dsf_heap_entry *best = NULL;

	for (uint32_t i = 0; i < h->heap.count; i++) {
		struct dsf_heap_entry *entry = h->heap.entries[i];

		if (DSF_CONTAINER(entry, struct uring_held, entry)->port != port)
			continue;
		if (best == NULL || entry->at.ns < best->at.ns ||
			(entry->at.ns == best->at.ns && entry->sequence < best->sequence))
			best = entry;
	}
	return best == NULL ? NULL : take(h, best);
}

void uring_hold_release(struct uring_hold *h, struct uring_held *held)
{
	if (held->copy != NULL)
		dsf_pool_give(&held->buffers->copies, held->copy);
	else
		uring_buffers_give(held->buffers, held->id);
	dsf_pool_give(&h->pool, held);
}

void uring_hold_close(struct uring_hold *h)
{
	dsf_heap_close(&h->heap);
	dsf_pool_close(&h->pool);
}
