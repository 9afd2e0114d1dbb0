#include "bgp/attributes.h"
#include <assert.h>

#define AS_SIZE 4u

/* Where type is or would be. */
static uint32_t place_of(const struct bgp_attributes *a, uint8_t type)
{
	uint32_t i = 0;

	while (i < a->count && a->list[i].type < type)
		i++;
	return i;
}

const struct bgp_attribute *bgp_attributes_find(const struct bgp_attributes *a, uint8_t type)
{
	uint32_t i = place_of(a, type);

	return i < a->count && a->list[i].type == type ? &a->list[i] : NULL;
}

/* Its entry, made where there is none; NULL when the list is full. */
static struct bgp_attribute *entry_of(struct bgp_attributes *a, uint8_t type)
{
	uint32_t i = place_of(a, type);

	if (i < a->count && a->list[i].type == type)
		return &a->list[i];
	if (a->count == BGP_ATTRIBUTES_MAX)
		return NULL;
	memmove(&a->list[i + 1], &a->list[i], (a->count - i) * sizeof(a->list[0]));
	a->count++;
	a->list[i].type = type;
	return &a->list[i];
}

bool bgp_attributes_set(
	struct bgp_attributes *a, uint8_t type, uint8_t flags, const uint8_t *bytes, size_t size)
{
	struct bgp_attribute *entry = entry_of(a, type);

	assert(size <= UINT16_MAX);
	if (entry == NULL)
		return false;
	entry->flags = flags & (uint8_t)~BGP_FLAG_EXTENDED;
	entry->size = (uint16_t)size;
	entry->bytes = size > 0 ? bytes : NULL;
	return true;
}

bool bgp_attributes_set32(struct bgp_attributes *a, uint8_t type, uint8_t flags, uint32_t value)
{
	struct bgp_attribute *entry = entry_of(a, type);

	if (entry == NULL)
		return false;
	entry->flags = flags;
	entry->size = sizeof(value);
	entry->bytes = NULL;
	dsf_store_be32(entry->own, value);
	return true;
}

void bgp_attributes_remove(struct bgp_attributes *a, uint8_t type)
{
	uint32_t i = place_of(a, type);

	if (i == a->count || a->list[i].type != type)
		return;
	a->count--;
	memmove(&a->list[i], &a->list[i + 1], (a->count - i) * sizeof(a->list[0]));
}

uint32_t bgp_attributes_get32(const struct bgp_attributes *a, uint8_t type, uint32_t otherwise)
{
	const struct bgp_attribute *entry = bgp_attributes_find(a, type);

	return entry == NULL || entry->size != 4 ? otherwise
						 : dsf_load_be32(bgp_attribute_bytes(entry));
}

bool bgp_attributes_has_community(const struct bgp_attributes *a, uint32_t community)
{
	const struct bgp_attribute *entry = bgp_attributes_find(a, BGP_COMMUNITIES);

	for (size_t at = 0; entry != NULL && at + 4 <= entry->size; at += 4) {
		if (dsf_load_be32(bgp_attribute_bytes(entry) + at) == community)
			return true;
	}
	return false;
}

void bgp_attribute_write(
	struct dsf_writer *w, uint8_t type, uint8_t flags, const uint8_t *bytes, size_t size)
{
	bool extended = size > UINT8_MAX;

	dsf_writer_be(w, flags | (extended ? BGP_FLAG_EXTENDED : 0u), 1);
	dsf_writer_be(w, type, 1);
	dsf_writer_be(w, size, extended ? 2 : 1);
	dsf_writer_bytes(w, bytes, size);
}

void bgp_attributes_write(const struct bgp_attributes *a, struct dsf_writer *w)
{
	for (uint32_t i = 0; i < a->count; i++)
		bgp_attribute_write(w, a->list[i].type, a->list[i].flags,
			bgp_attribute_bytes(&a->list[i]), a->list[i].size);
}

void bgp_attributes_read(struct bgp_attributes *a, const uint8_t *bytes, size_t size)
{
	struct dsf_cursor in = { bytes, bytes + size, false };

	a->count = 0;
	while (dsf_cursor_left(&in) > 0) {
		uint8_t flags = (uint8_t)dsf_cursor_be(&in, 1),
			type = (uint8_t)dsf_cursor_be(&in, 1);
		size_t length = dsf_cursor_be(&in, (flags & BGP_FLAG_EXTENDED) != 0 ? 2 : 1);
		const uint8_t *value = dsf_cursor_bytes(&in, length);

		assert(!in.failed && a->count < BGP_ATTRIBUTES_MAX);
		bgp_attributes_set(a, type, flags, value, length);
	}
}

void bgp_as_walk_start(struct bgp_as_walk *w, const struct bgp_attributes *a)
{
	const struct bgp_attribute *path = bgp_attributes_find(a, BGP_AS_PATH);
	const uint8_t *bytes = path == NULL ? NULL : bgp_attribute_bytes(path);

	memset(w, 0, sizeof(*w));
	if (path != NULL)
		w->in = (struct dsf_cursor){ bytes, bytes + path->size, false };
}

bool bgp_as_walk_next(struct bgp_as_walk *w, uint32_t *as)
{
	while (w->left == 0) {
		if (dsf_cursor_left(&w->in) == 0)
			return false;
		w->segment = (uint8_t)dsf_cursor_be(&w->in, 1);
		w->left = (uint32_t)dsf_cursor_be(&w->in, 1);
	}
	w->left--;
	*as = (uint32_t)dsf_cursor_be(&w->in, AS_SIZE);
	return !w->in.failed;
}

bool bgp_as_path_is_good(const uint8_t *bytes, size_t size, unsigned as_size)
{
	struct dsf_cursor in = { bytes, bytes + size, false };

	while (dsf_cursor_left(&in) > 0) {
		uint64_t segment = dsf_cursor_be(&in, 1), count = dsf_cursor_be(&in, 1);

		if (in.failed || count == 0 ||
			(segment != BGP_AS_SET && segment != BGP_AS_SEQUENCE))
			return false;
		for (; count > 0; count--) {
			if (dsf_cursor_be(&in, as_size) == 0)
				return false; /* AS 0, or the path ends */
		}
	}
	return true;
}

uint32_t bgp_as_path_hops(const uint8_t *bytes, size_t size, unsigned as_size)
{
	struct dsf_cursor in = { bytes, bytes + size, false };
	uint32_t hops = 0;

	while (dsf_cursor_left(&in) > 0) {
		uint64_t segment = dsf_cursor_be(&in, 1), count = dsf_cursor_be(&in, 1);

		hops += segment == BGP_AS_SET ? 1u : (uint32_t)count;
		dsf_cursor_skip(&in, count * as_size);
	}
	return hops;
}

size_t bgp_as_path_prepend(uint8_t *to, const uint8_t *bytes, size_t size, uint32_t as)
{
	if (size > 0 && bytes[0] == BGP_AS_SEQUENCE && bytes[1] < UINT8_MAX) {
		to[0] = BGP_AS_SEQUENCE;
		to[1] = (uint8_t)(bytes[1] + 1);
		dsf_store_be32(to + 2, as);
		memcpy(to + 2 + AS_SIZE, bytes + 2, size - 2);
		return size + AS_SIZE;
	}
	to[0] = BGP_AS_SEQUENCE;
	to[1] = 1;
	dsf_store_be32(to + 2, as);
	if (size > 0)
		memcpy(to + 2 + AS_SIZE, bytes, size);
	return size + 2 + AS_SIZE;
}
