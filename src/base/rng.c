#include "base/rng.h"
#include <assert.h>

#define GOLDEN 0x9e3779b97f4a7c15ull

void dsf_rng_init(struct dsf_rng *r, uint64_t seed)
{
	for (int i = 0; i < 4; i++) {
		seed += GOLDEN;
		r->state[i] = dsf_mix(seed);
	}
}

void dsf_rng_fork(struct dsf_rng *r, uint64_t seed, uint64_t kind, uint64_t id)
{
	dsf_rng_init(r, dsf_mix(dsf_mix(seed + GOLDEN) ^ dsf_mix(kind + 2 * GOLDEN)) ^
				dsf_mix(id + 3 * GOLDEN));
}

static uint64_t rotate_left(uint64_t x, int by)
{
	return x << by | x >> (64 - by);
}

uint64_t dsf_rng_next(struct dsf_rng *r)
{
	uint64_t *s = r->state;
	uint64_t result = rotate_left(s[1] * 5, 7) * 9;
	uint64_t t = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rotate_left(s[3], 45);
	return result;
}

uint64_t dsf_rng_below(struct dsf_rng *r, uint64_t limit)
{
	assert(limit > 0);
	/* Multiply-shift: the bias is below limit / 2^64, nothing a simulation can see. */
	return (uint64_t)((unsigned __int128)dsf_rng_next(r) * limit >> 64);
}

void dsf_rng_shuffle(struct dsf_rng *r, uint32_t *values, uint32_t count)
{
	for (uint32_t i = count; i > 1; i--) {
		uint32_t j = (uint32_t)dsf_rng_below(r, i);
		uint32_t swapped = values[i - 1];

		values[i - 1] = values[j];
		values[j] = swapped;
	}
}
