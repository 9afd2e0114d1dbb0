#include "fabric/reach_cell.h"
#include "base/bitset.h"
#include "base/err.h"
#include "base/rng.h"
#include "fabric/cell.h"
#include "tests/tap.h"

#define SWITCHES_MAX 16384u

static struct dsf_rng rng;

static void decode(void)
{
	static const struct {
		const char *name;
		uint8_t bytes[8];
		size_t size;
		int want;
	} cases[] = {
		{ "empty", { 0 }, 0, -DSF_E_TRUNCATED },
		{ "half a header", { 0, 0, 0 }, 3, -DSF_E_TRUNCATED },
		{ "about no switch", { 0 }, 4, 0 },
		{ "a bitmap", { 0, 64, 0, 9, 1, 1 }, 6, 0 },
		{ "too short", { 0, 64, 0, 9, 1 }, 5, -DSF_E_TRUNCATED },
		{ "too long", { 0, 64, 0, 9, 1, 1, 1 }, 7, -DSF_E_BADFIELD },
		{ "not on a word", { 0, 63, 0, 8, 1 }, 5, -DSF_E_BADFIELD },
		{ "drained, all three", { 0, 0, 0xe0, 8, 1, 2, 4 }, 7, 0 },
		{ "drained, two of three", { 0, 0, 0xe0, 8, 1, 2 }, 6, -DSF_E_TRUNCATED },
		{ "drained, one too many", { 0, 0, 0xa0, 8, 1, 2, 4 }, 7, -DSF_E_BADFIELD },
	};
	struct fabric_reach_cell cell;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		TAP_EQ(fabric_reach_cell_decode(&cell, cases[i].bytes, cases[i].size),
			cases[i].want, "decode: %s", cases[i].name);
	fabric_reach_cell_decode(&cell, cases[7].bytes, 7);
	TAP_OK(cell.drained && fabric_reach_cell_word(&cell, cell.told, 0) == 1 &&
			fabric_reach_cell_word(&cell, cell.withheld, 0) == 2 &&
			fabric_reach_cell_word(&cell, cell.resort, 0) == 4,
		"each bitmap is its own");
	fabric_reach_cell_decode(&cell, (const uint8_t[]){ 0, 0, 0, 3, 0xff }, 5);
	TAP_OK(!cell.drained && fabric_reach_cell_word(&cell, cell.told, 0) == 7 &&
			fabric_reach_cell_word(&cell, cell.resort, 0) == 0,
		"bits behind the last switch mean nothing, what is absent is empty");
}

/* Words of one set that all cells together gave otherwise than it is. */
static uint32_t differ(const uint64_t *set, const uint64_t *got, uint32_t first, uint32_t end)
{
	uint32_t wrong = 0;

	for (uint32_t d = first; d < end; d++)
		wrong += (set != NULL && dsf_bitset_has(set, d)) != dsf_bitset_has(got, d);
	return wrong;
}

/* Sets, some of them empty, through cells of any size and back. */
static void round_trip(uint32_t cell_bytes)
{
	static uint64_t sets[3][SWITCHES_MAX / 64], got[3][SWITCHES_MAX / 64];
	uint32_t first = 64 * (uint32_t)dsf_rng_below(&rng, 20), wrong = 0, part;
	struct fabric_reach_telling t = { .drained = dsf_rng_below(&rng, 2),
		.told = dsf_rng_below(&rng, 4) == 0 ? NULL : sets[0],
		.withheld = dsf_rng_below(&rng, 2) == 0 ? NULL : sets[1],
		.resort = dsf_rng_below(&rng, 2) == 0 ? NULL : sets[2],
		.first = first,
		.end = first + 1 + (uint32_t)dsf_rng_below(&rng, SWITCHES_MAX - first),
		.cell_bytes = cell_bytes };
	uint8_t payload[FABRIC_CELL_MAX];
	struct fabric_reach_cell c;
	size_t size, largest = 0;

	memset(got, 0, sizeof(got));
	for (uint32_t i = 0; i < 3; i++)
		for (uint32_t w = 0; w < SWITCHES_MAX / 64; w++)
			sets[i][w] = dsf_rng_next(&rng);
	for (part = 0; (size = fabric_reach_cell_encode(&t, part, payload, sizeof(payload))) > 0;
		part++) {
		largest = size > largest ? size : largest;
		if (fabric_reach_cell_decode(&c, payload, size) < 0 || c.drained != t.drained) {
			wrong++;
			break;
		}
		for (uint32_t at = 0; at < c.count; at += 64) {
			got[0][(c.first + at) / 64] = fabric_reach_cell_word(&c, c.told, at);
			got[1][(c.first + at) / 64] = fabric_reach_cell_word(&c, c.withheld, at);
			got[2][(c.first + at) / 64] = fabric_reach_cell_word(&c, c.resort, at);
		}
	}
	wrong += differ(t.told, got[0], t.first, t.end) +
		 differ(t.withheld, got[1], t.first, t.end) +
		 differ(t.resort, got[2], t.first, t.end);
	TAP_OK(wrong == 0 && largest + FABRIC_CELL_HEADER <= cell_bytes,
		"switches %u to %u, %s%s, in %u cells of at most %zu of %u B", t.first, t.end - 1,
		t.withheld != NULL ? "withheld, " : "", t.resort != NULL ? "resorts" : "none", part,
		largest + FABRIC_CELL_HEADER, cell_bytes);
}

int main(void)
{
	dsf_rng_init(&rng, 1);
	decode();
	for (uint32_t i = 0; i < 40; i++)
		round_trip(i % 4 == 0 ? FABRIC_CELL_MIN : i % 4 == 1 ? FABRIC_CELL_MAX : 512);
	return TAP_DONE();
}
