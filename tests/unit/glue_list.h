/*
 * glue_list.h - lists of what a device is told and what it sends
 *
 * An input list holds, in order of sending, frames with their departure and carrier changes of the
 * device under test. What comes out is listed by port, as it reaches the far end.
 */
#ifndef DSF_TESTS_GLUE_LIST_H
#define DSF_TESTS_GLUE_LIST_H
#include <stdlib.h>
#include <string.h>
#include "base/cursor.h"
#include "base/time.h"
#include "fabric/cell.h"

enum glue_kind { GLUE_FRAME, GLUE_UP, GLUE_DOWN, GLUE_EXPIRE };

struct glue_item {
	enum glue_kind kind;
	uint32_t port;  /* of the device under test */
	dsf_instant at; /* frames of an input list: departure */
	uint8_t *bytes; /* NULL: only the size was noted */
	uint32_t size;
};

struct glue_list {
	struct glue_item *items;
	uint32_t count, capacity;
};

static inline void glue_list_add(struct glue_list *l, enum glue_kind kind, uint32_t port,
	dsf_instant at, const uint8_t *bytes, uint32_t size)
{
	struct glue_item item = { kind, port, at, NULL, size };

	if (l == NULL)
		return;
	if (l->count == l->capacity) {
		l->capacity = l->capacity == 0 ? 1024 : 2 * l->capacity;
		l->items = realloc(l->items, l->capacity * sizeof(*l->items));
		if (l->items == NULL)
			abort();
	}
	if (bytes != NULL) {
		item.bytes = malloc(size);
		if (item.bytes == NULL)
			abort();
		memcpy(item.bytes, bytes, size);
	}
	l->items[l->count++] = item;
}

static inline void glue_list_free(struct glue_list *l)
{
	for (uint32_t i = 0; i < l->count; i++)
		free(l->items[i].bytes);
	free(l->items);
	*l = (struct glue_list){ 0 };
}

/* A train says itself when it left. */
static inline void glue_item_depart(struct glue_item *item, dsf_instant at)
{
	item->at = at;
	dsf_store_be64(item->bytes + 24, at.ns);
}

static inline bool glue_item_is_train(const struct glue_item *item)
{
	return item->kind == GLUE_FRAME && dsf_load_be16(item->bytes + 12) == FABRIC_ETHERTYPE;
}

/* When a port goes down next, at or after an instant; DSF_NEVER: it doesn't. */
static inline dsf_instant glue_list_down_after(
	const struct glue_list *l, uint32_t port, dsf_instant from)
{
	dsf_instant first = DSF_NEVER;

	for (uint32_t i = 0; i < l->count; i++) {
		const struct glue_item *item = &l->items[i];

		if (item->kind == GLUE_DOWN && item->port == port &&
			!dsf_time_before(item->at, from))
			first = dsf_time_min(first, item->at);
	}
	return first;
}

/* The last change of a port's carrier at or before an instant. */
static inline dsf_instant glue_list_carrier_before(
	const struct glue_list *l, uint32_t port, dsf_instant until)
{
	dsf_instant last = DSF_EPOCH;

	for (uint32_t i = 0; i < l->count; i++) {
		const struct glue_item *item = &l->items[i];

		if (item->kind != GLUE_FRAME && item->port == port && dsf_time_due(item->at, until))
			last = dsf_time_max(last, item->at);
	}
	return last;
}

#endif
