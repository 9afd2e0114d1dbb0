/*
 * memory.h - where a core's memory comes from
 *
 * A core never calls malloc: the driver hands in a dsf_memory (malloc live, a failing one in
 * tests). new returns zeroed memory or NULL; grow keeps the old bytes, zeroes the new and returns
 * NULL with the old block untouched on failure. Sizes are bytes; the caller remembers them.
 */
#ifndef DSF_BASE_MEMORY_H
#define DSF_BASE_MEMORY_H
#include <stddef.h>
#include <string.h>

struct dsf_memory {
	/* zeroed, aligned to 16; NULL when there is none */
	void *(*alloc)(void *user, size_t size);
	void (*release)(void *user, void *block, size_t size);
	void *user;
};

static inline void *dsf_memory_new(const struct dsf_memory *m, size_t size)
{
	return m->alloc(m->user, size);
}

static inline void dsf_memory_delete(const struct dsf_memory *m, void *block, size_t size)
{
	if (block != NULL)
		m->release(m->user, block, size);
}

static inline void *dsf_memory_grow(
	const struct dsf_memory *m, void *block, size_t old_size, size_t new_size)
{
	void *grown = m->alloc(m->user, new_size);

	if (grown == NULL)
		return NULL;
	if (block != NULL) {
		memcpy(grown, block, old_size < new_size ? old_size : new_size);
		m->release(m->user, block, old_size);
	}
	return grown;
}

#endif
