#include "metaroce/sack.h"
#include <assert.h>

static_assert(
	sizeof(((struct metaroce_sack *)0)->bits) * 8 == METAROCE_SACK_BITS, "one bit a packet");

enum metaroce_sack_result metaroce_sack_look(const struct metaroce_sack *s, uint32_t sequence)
{
	int32_t ahead = (int32_t)(sequence - s->next);

	if (ahead > METAROCE_SACK_BITS)
		return METAROCE_SACK_OUTSIDE;
	return metaroce_sack_has(s->next, s->bits, sequence) ? METAROCE_SACK_SEEN
							     : METAROCE_SACK_NEW;
}

static void shift(uint64_t *bits, uint32_t by)
{
	uint32_t words = by / 64, rest = by % 64;

	for (uint32_t i = 0; i < METAROCE_SACK_WORDS; i++) {
		uint64_t low = i + words < METAROCE_SACK_WORDS ? bits[i + words] : 0;
		uint64_t high = i + words + 1 < METAROCE_SACK_WORDS ? bits[i + words + 1] : 0;

		bits[i] = rest == 0 ? low : low >> rest | high << (64 - rest);
	}
}

/* How many bits from 0 on are set. */
static uint32_t leading(const uint64_t *bits)
{
	for (uint32_t i = 0; i < METAROCE_SACK_WORDS; i++) {
		if (~bits[i] != 0)
			return 64 * i + (uint32_t)__builtin_ctzll(~bits[i]);
	}
	return METAROCE_SACK_BITS;
}

void metaroce_sack_add(struct metaroce_sack *s, uint32_t sequence)
{
	uint32_t ahead = sequence - s->next;

	assert(metaroce_sack_look(s, sequence) == METAROCE_SACK_NEW);
	if (ahead > 0) {
		s->bits[(ahead - 1) / 64] |= 1ull << ((ahead - 1) % 64);
		return;
	}
	/* The missing one came: bit 0 stands for next + 1, so its run moves next, and one bit more
	 * goes because the first missing number has no bit. */
	if ((s->bits[0] | s->bits[1] | s->bits[2] | s->bits[3]) == 0) {
		s->next++;
	} else {
		uint32_t run = leading(s->bits);

		s->next += 1 + run;
		shift(s->bits, run + 1);
	}
}
