/*
 * reach_cell.h - what one reachability cell says
 *
 * Its payload, numbers big-endian:
 *
 *   0 first switch 2   2 flags and number of switches 2   4 bitmap of what is told
 *
 * and behind it, where a flag says so, a bitmap of what is withheld and one of last resorts
 * (reach.h). Bit i of byte i/8 is switch first + i; first is a multiple of 64. A set that is larger
 * than a cell goes out in parts, each about whole words; an absent bitmap is an empty one.
 */
#ifndef DSF_FABRIC_REACH_CELL_H
#define DSF_FABRIC_REACH_CELL_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/cursor.h"

#define FABRIC_REACH_CELL_DRAINED  0x8000u /* the sender's end of the link is drained */
#define FABRIC_REACH_CELL_WITHHELD 0x4000u /* a bitmap of what is withheld follows */
#define FABRIC_REACH_CELL_RESORT   0x2000u /* and then one of last resorts */
#define FABRIC_REACH_CELL_COUNT    0x1fffu /* switches in each bitmap */

#define FABRIC_REACH_CELL_HEADER 4u
#define FABRIC_REACH_CELL_SWITCHES                                                                 \
	3776u /* switches in one cell's bitmaps: (480 - 4) * 8, in words */
#define FABRIC_REACH_CELL_MAX (FABRIC_REACH_CELL_HEADER + FABRIC_REACH_CELL_SWITCHES / 8)

struct fabric_reach_cell {
	uint32_t first, count; /* switches */
	bool drained;
	const uint8_t *told, *withheld, *resort; /* in the payload; NULL: empty */
};

/* Reads a payload. 0, -DSF_E_TRUNCATED or -DSF_E_BADFIELD. */
int fabric_reach_cell_decode(struct fabric_reach_cell *c, const uint8_t *payload, size_t size);

/* Bits at to at+63 of one of a cell's bitmaps. */
static inline uint64_t fabric_reach_cell_word(
	const struct fabric_reach_cell *c, const uint8_t *bitmap, uint32_t at)
{
	uint64_t word = 0;

	if (bitmap == NULL)
		return 0;
	if (c->count - at >= 64)
		return dsf_load_le64(bitmap + at / 8);
	for (uint32_t i = 0; at + i * 8 < c->count; i++)
		word |= (uint64_t)bitmap[at / 8 + i] << (8 * i);
	return word & ((1ull << (c->count - at)) - 1);
}

/* All that there is to say on a link. */
struct fabric_reach_telling {
	bool drained;
	const uint64_t *told, *withheld, *resort; /* over switches; NULL: empty */
	uint32_t first, end;                      /* those there are to tell of; first: a word's */
	uint32_t cell_bytes;
};

/* Writes the payload of cell number part (from 0); its size, 0: there is no such part. */
size_t fabric_reach_cell_encode(
	const struct fabric_reach_telling *t, uint32_t part, uint8_t *payload, size_t cap);

#endif
