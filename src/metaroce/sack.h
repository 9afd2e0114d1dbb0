/*
 * sack.h - which sequence numbers of one path have arrived
 *
 * Everything before `next` has; bit i says whether next + 1 + i has. next itself is missing by
 * definition. A path keeps order, so a clear bit below a set one is a lost packet.
 */
#ifndef DSF_METAROCE_SACK_H
#define DSF_METAROCE_SACK_H
#include <stdbool.h>
#include <stdint.h>
#include "metaroce/wire.h"

struct metaroce_sack {
	uint32_t next;
	uint64_t bits[METAROCE_SACK_WORDS];
};

enum metaroce_sack_result {
	METAROCE_SACK_NEW,
	METAROCE_SACK_SEEN,
	METAROCE_SACK_OUTSIDE, /* too far ahead to be remembered */
};

/* What sequence would be; changes nothing. */
enum metaroce_sack_result metaroce_sack_look(const struct metaroce_sack *s, uint32_t sequence);

/* Remembers sequence, which looked NEW. */
void metaroce_sack_add(struct metaroce_sack *s, uint32_t sequence);

/* True when (next, bits) says that sequence has arrived. */
static inline bool metaroce_sack_has(uint32_t next, const uint64_t *bits, uint32_t sequence)
{
	int32_t ahead = (int32_t)(sequence - next);

	if (ahead < 0)
		return true;
	if (ahead == 0 || ahead > METAROCE_SACK_BITS)
		return false;
	return bits[(ahead - 1) / 64] >> ((ahead - 1) % 64) & 1u;
}

/* The highest sequence that has arrived; next - 1 when no bit is set. */
static inline uint32_t metaroce_sack_highest(uint32_t next, const uint64_t *bits)
{
	for (int i = METAROCE_SACK_WORDS; i-- > 0;) {
		if (bits[i] != 0)
			return next + 64u * (uint32_t)i + 64u - (uint32_t)__builtin_clzll(bits[i]);
	}
	return next - 1;
}

#endif
