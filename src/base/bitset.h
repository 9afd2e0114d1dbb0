/*
 * bitset.h - sets of small numbers as 64-bit words
 */
#ifndef DSF_BASE_BITSET_H
#define DSF_BASE_BITSET_H
#include <stdbool.h>
#include <stdint.h>

#define DSF_BITSET_WORDS(bits) (((bits) + 63u) / 64u)

static inline bool dsf_bitset_has(const uint64_t *set, uint32_t bit)
{
	return set[bit / 64] >> (bit % 64) & 1u;
}

static inline void dsf_bitset_add(uint64_t *set, uint32_t bit)
{
	set[bit / 64] |= 1ull << (bit % 64);
}

static inline void dsf_bitset_remove(uint64_t *set, uint32_t bit)
{
	set[bit / 64] &= ~(1ull << (bit % 64));
}

static inline uint32_t dsf_bitset_count(const uint64_t *set, uint32_t words)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < words; i++)
		count += (uint32_t)__builtin_popcountll(set[i]);
	return count;
}

/* The first member at or after from; bits when there is none. */
static inline uint32_t dsf_bitset_next(const uint64_t *set, uint32_t from, uint32_t bits)
{
	while (from < bits) {
		uint64_t rest = set[from / 64] >> (from % 64);

		if (rest != 0) {
			from += (uint32_t)__builtin_ctzll(rest);
			return from < bits ? from : bits;
		}
		from = (from / 64 + 1) * 64;
	}
	return bits;
}

#endif
