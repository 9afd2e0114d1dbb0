#include <string.h>
#include "base/bitset.h"
#include "base/rng.h"
#include "tests/tap.h"

#define BITS 200u

static void against_a_model(void)
{
	uint64_t set[DSF_BITSET_WORDS(BITS) + 1] = { 0 };
	bool model[BITS] = { false };
	struct dsf_rng rng;
	unsigned wrong = 0;

	dsf_rng_init(&rng, 1);
	for (int i = 0; i < 5000; i++) {
		uint32_t bit = (uint32_t)dsf_rng_below(&rng, BITS), count = 0, next = BITS;
		uint32_t from = (uint32_t)dsf_rng_below(&rng, BITS + 1);

		model[bit] = dsf_rng_below(&rng, 8) == 0;
		if (model[bit])
			dsf_bitset_add(set, bit);
		else
			dsf_bitset_remove(set, bit);
		for (uint32_t j = 0; j < BITS; j++) {
			count += model[j];
			wrong += dsf_bitset_has(set, j) != model[j];
		}
		for (uint32_t j = BITS; j-- > from;)
			next = model[j] ? j : next;
		wrong += dsf_bitset_count(set, DSF_BITSET_WORDS(BITS)) != count;
		wrong += dsf_bitset_next(set, from, BITS) != next;
	}
	TAP_EQ(wrong, 0, "5000 steps agree with an array");
	TAP_EQ(set[DSF_BITSET_WORDS(BITS)], 0, "nothing was written behind the set");
}

static void edges(void)
{
	uint64_t set[2] = { 0, 0 };

	TAP_EQ(DSF_BITSET_WORDS(0), 0, "words for no bits");
	TAP_EQ(DSF_BITSET_WORDS(1), 1, "words for 1 bit");
	TAP_EQ(DSF_BITSET_WORDS(64), 1, "words for 64 bits");
	TAP_EQ(DSF_BITSET_WORDS(65), 2, "words for 65 bits");
	TAP_EQ(dsf_bitset_next(set, 0, 128), 128, "next in an empty set");
	TAP_EQ(dsf_bitset_next(set, 0, 0), 0, "next in a set of no bits");
	dsf_bitset_add(set, 63);
	dsf_bitset_add(set, 64);
	dsf_bitset_add(set, 127);
	TAP_EQ(dsf_bitset_next(set, 0, 128), 63, "last bit of a word");
	TAP_EQ(dsf_bitset_next(set, 64, 128), 64, "first bit of a word");
	TAP_EQ(dsf_bitset_next(set, 65, 128), 127, "last bit of all");
	TAP_EQ(dsf_bitset_next(set, 65, 127), 127, "a member at the limit is none");
	TAP_EQ(dsf_bitset_next(set, 65, 100), 100, "a member above the limit is none");
	TAP_EQ(dsf_bitset_next(set, 128, 128), 128, "from the end");
	dsf_bitset_add(set, 64);
	TAP_EQ(dsf_bitset_count(set, 2), 3, "adding twice is adding once");
	dsf_bitset_remove(set, 64);
	dsf_bitset_remove(set, 64);
	TAP_EQ(dsf_bitset_count(set, 2), 2, "removing twice is removing once");
}

int main(void)
{
	against_a_model();
	edges();
	return TAP_DONE();
}
