#include "fabric/reach_cell.h"
#include <assert.h>
#include "base/err.h"
#include "fabric/cell.h"

static_assert(FABRIC_REACH_CELL_SWITCHES <= FABRIC_REACH_CELL_COUNT, "a full cell can be told");

int fabric_reach_cell_decode(struct fabric_reach_cell *c, const uint8_t *payload, size_t size)
{
	struct dsf_cursor in = { payload, payload + size, false };
	uint32_t flags;
	size_t bytes;

	*c = (struct fabric_reach_cell){ .first = (uint32_t)dsf_cursor_be(&in, 2) };
	flags = (uint32_t)dsf_cursor_be(&in, 2);
	c->count = flags & FABRIC_REACH_CELL_COUNT;
	c->drained = flags & FABRIC_REACH_CELL_DRAINED;
	bytes = (c->count + 7) / 8;
	c->told = dsf_cursor_bytes(&in, bytes);
	if (flags & FABRIC_REACH_CELL_WITHHELD)
		c->withheld = dsf_cursor_bytes(&in, bytes);
	if (flags & FABRIC_REACH_CELL_RESORT)
		c->resort = dsf_cursor_bytes(&in, bytes);
	if (in.failed)
		return -DSF_E_TRUNCATED;
	return in.at < in.end || c->first % 64 != 0 ? -DSF_E_BADFIELD : 0;
}

/* Switches of one cell that has so many bitmaps, in whole words. */
static uint32_t cell_switches(const struct fabric_reach_telling *t, uint32_t bitmaps)
{
	uint32_t room = t->cell_bytes - FABRIC_CELL_HEADER - FABRIC_REACH_CELL_HEADER;
	uint32_t words = room / 8 / bitmaps, most = FABRIC_REACH_CELL_SWITCHES / 64 / bitmaps;

	return (words < most ? words : most) * 64;
}

static void write_bitmap(
	struct dsf_writer *out, const uint64_t *set, uint32_t first, uint32_t count)
{
	uint8_t *room = dsf_writer_room(out, (count + 7) / 8);
	uint32_t at = 0;

	if (room == NULL)
		return;
	if (set == NULL) {
		memset(room, 0, (count + 7) / 8);
		return;
	}
	for (; count - at >= 64; at += 64)
		dsf_store_le64(room + at / 8, set[(first + at) / 64]);
	for (; at < count; at += 8)
		room[at / 8] = (uint8_t)(set[(first + at) / 64] >> (at % 64));
}

size_t fabric_reach_cell_encode(
	const struct fabric_reach_telling *t, uint32_t part, uint8_t *payload, size_t cap)
{
	uint32_t most = cell_switches(t, 1u + (t->withheld != NULL) + (t->resort != NULL));
	uint32_t first = t->first + part * most, count, flags;
	struct dsf_writer out = { payload, payload + cap, false };

	if (first >= t->end)
		return 0;
	count = t->end - first < most ? t->end - first : most;
	flags = (t->drained ? FABRIC_REACH_CELL_DRAINED : 0) |
		(t->withheld != NULL ? FABRIC_REACH_CELL_WITHHELD : 0) |
		(t->resort != NULL ? FABRIC_REACH_CELL_RESORT : 0);
	dsf_writer_be(&out, first, 2);
	dsf_writer_be(&out, flags | count, 2);
	write_bitmap(&out, t->told, first, count);
	if (t->withheld != NULL)
		write_bitmap(&out, t->withheld, first, count);
	if (t->resort != NULL)
		write_bitmap(&out, t->resort, first, count);
	assert(!out.failed);
	return (size_t)(out.at - payload);
}
