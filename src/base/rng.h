/*
 * rng.h - seeded random numbers (xoshiro256**, seeded by splitmix64; both public domain algorithms)
 *
 * A generator is always handed in. Fork one stream per thing that draws (link, node, flow), by the
 * thing's id, so that one thing's draws never shift another's.
 */
#ifndef DSF_BASE_RNG_H
#define DSF_BASE_RNG_H
#include <stdbool.h>
#include <stdint.h>

struct dsf_rng {
	uint64_t state[4];
};

void dsf_rng_init(struct dsf_rng *r, uint64_t seed);

/* A stream of its own for (seed, kind, id); equal arguments give equal streams. */
void dsf_rng_fork(struct dsf_rng *r, uint64_t seed, uint64_t kind, uint64_t id);

uint64_t dsf_rng_next(struct dsf_rng *r);

/* Uniform in 0 .. limit-1; limit > 0. */
uint64_t dsf_rng_below(struct dsf_rng *r, uint64_t limit);

/* True in ppm of a million draws; draws nothing at 0. */
static inline bool dsf_rng_chance(struct dsf_rng *r, uint32_t ppm)
{
	return ppm > 0 && dsf_rng_below(r, 1000000) < ppm;
}

/* Shuffles count uint32_t in place. */
void dsf_rng_shuffle(struct dsf_rng *r, uint32_t *values, uint32_t count);

/* A well mixed 64-bit hash of one value. */
static inline uint64_t dsf_mix(uint64_t x)
{
	x ^= x >> 30;
	x *= 0xbf58476d1ce4e5b9ull;
	x ^= x >> 27;
	x *= 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

#endif
