/*
 * pool.h - objects of one size, taken and given back in O(1)
 *
 * Grows by slabs up to count_max objects and keeps its slabs until dsf_pool_close. Objects are
 * aligned to 16 bytes and NOT cleared when they are taken again.
 */
#ifndef DSF_BASE_POOL_H
#define DSF_BASE_POOL_H
#include <stddef.h>
#include <stdint.h>
#include "base/memory.h"

struct dsf_pool {
	const struct dsf_memory *memory;
	void *free;  /* list through the first word of each free object */
	void *slabs; /* list of struct slab */
	size_t object_size;
	uint32_t slab_objects;
	uint32_t count;     /* objects that exist */
	uint32_t used;      /* objects that are out */
	uint32_t used_peak; /* most that were ever out */
	uint32_t count_max;
};

/* Allocates nothing yet. slab_objects is how many are made at a time. */
void dsf_pool_init(struct dsf_pool *p, const struct dsf_memory *memory, size_t object_size,
	uint32_t slab_objects, uint32_t count_max);

/* NULL when count_max are out or memory is short. */
void *dsf_pool_take(struct dsf_pool *p);

void dsf_pool_give(struct dsf_pool *p, void *object);

/* Frees all slabs; every object taken from it becomes invalid. One that is all zero, because what
 * should have made it failed before, may be closed too. */
void dsf_pool_close(struct dsf_pool *p);

#endif
