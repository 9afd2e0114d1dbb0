#include "base/pool.h"
#include <assert.h>

#define ALIGNMENT   16u
#define SLAB_HEADER ALIGNMENT

void dsf_pool_init(struct dsf_pool *p, const struct dsf_memory *memory, size_t object_size,
	uint32_t slab_objects, uint32_t count_max)
{
	assert(object_size > 0 && slab_objects > 0);
	memset(p, 0, sizeof(*p));
	p->memory = memory;
	p->object_size = (object_size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
	p->slab_objects = slab_objects;
	p->count_max = count_max;
}

/* What a slab begins with. */
struct slab {
	struct slab *next;
	size_t size; /* bytes, this header included */
};

static_assert(sizeof(struct slab) <= SLAB_HEADER, "the header fits before the first object");

static void put_free(struct dsf_pool *p, void *object)
{
	memcpy(object, &p->free, sizeof(p->free));
	p->free = object;
}

static void add_slab(struct dsf_pool *p)
{
	uint32_t room = p->count_max - p->count;
	uint32_t objects = room < p->slab_objects ? room : p->slab_objects;
	size_t size = SLAB_HEADER + p->object_size * objects;
	struct slab *slab;

	if (objects == 0)
		return;
	slab = dsf_memory_new(p->memory, size);
	if (slab == NULL)
		return;
	slab->next = p->slabs;
	slab->size = size;
	p->slabs = slab;
	/* Last first: objects go out in address order and a half used slab touches few pages. */
	for (uint32_t i = objects; i-- > 0;)
		put_free(p, (uint8_t *)slab + SLAB_HEADER + i * p->object_size);
	p->count += objects;
}

void *dsf_pool_take(struct dsf_pool *p)
{
	void *object;

	if (p->free == NULL)
		add_slab(p);
	object = p->free;
	if (object == NULL)
		return NULL;
	memcpy(&p->free, object, sizeof(p->free));
	p->used++;
	if (p->used > p->used_peak)
		p->used_peak = p->used;
	return object;
}

void dsf_pool_give(struct dsf_pool *p, void *object)
{
	assert(p->used > 0);
	p->used--;
	put_free(p, object);
}

void dsf_pool_close(struct dsf_pool *p)
{
	while (p->slabs != NULL) {
		struct slab *slab = p->slabs;

		p->slabs = slab->next;
		dsf_memory_delete(p->memory, slab, slab->size);
	}
	p->free = NULL;
	p->count = p->used = p->used_peak = 0;
}
