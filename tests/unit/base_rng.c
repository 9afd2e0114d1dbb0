#include <string.h>
#include "base/rng.h"
#include "tests/tap.h"

/* Outputs of the published algorithms, so that nobody changes a simulation by accident. */
static void known_answers(void)
{
	static const uint64_t from_1234[] = { 11520, 0, 1509978240, 1215971899390074240ull,
		1216172134540287360ull, 607988272756665600ull };
	struct dsf_rng r = { { 1, 2, 3, 4 } };

	for (unsigned i = 0; i < 6; i++)
		TAP_EQ(dsf_rng_next(&r), from_1234[i], "xoshiro256** from 1,2,3,4: output %u", i);
	dsf_rng_init(&r, 0);
	TAP_EQ(r.state[0], 0xe220a8397b1dcdafull, "splitmix64 from 0: first output");
	TAP_EQ(r.state[1], 0x6e789e6aa1b965f4ull, "splitmix64 from 0: second output");
}

static void forks(void)
{
	struct dsf_rng a, b;
	uint64_t first[64];
	unsigned same = 0;

	dsf_rng_fork(&a, 7, 1, 42);
	dsf_rng_fork(&b, 7, 1, 42);
	TAP_OK(memcmp(&a, &b, sizeof(a)) == 0, "equal arguments give equal streams");
	/* 4 x 4 x 4 neighbouring arguments, and swapped ones, give different streams. */
	for (unsigned i = 0; i < 64; i++) {
		dsf_rng_fork(&a, i & 3, i >> 2 & 3, i >> 4);
		first[i] = dsf_rng_next(&a);
		for (unsigned j = 0; j < i; j++)
			same += first[i] == first[j];
	}
	TAP_EQ(same, 0, "neighbouring seeds, kinds and ids give streams of their own");
}

static void below(void)
{
	struct dsf_rng r;
	unsigned count[7] = { 0 }, over = 0, zero = 0;

	dsf_rng_init(&r, 3);
	for (int i = 0; i < 70000; i++) {
		uint64_t value = dsf_rng_below(&r, 7);

		if (value >= 7)
			over++;
		else
			count[value]++;
	}
	TAP_EQ(over, 0, "below 7 is below 7");
	for (unsigned i = 0; i < 7; i++)
		TAP_OK(count[i] > 9500 && count[i] < 10500, "%u came %u times of 70000", i,
			count[i]);
	for (int i = 0; i < 100; i++)
		zero += dsf_rng_below(&r, 1) == 0;
	TAP_EQ(zero, 100, "below 1 is 0");
	over = 0;
	for (int i = 0; i < 1000; i++)
		over += dsf_rng_below(&r, UINT64_MAX) > UINT64_MAX / 2;
	TAP_OK(over > 400 && over < 600, "a limit of 2^64-1 uses all bits: %u of 1000 high", over);
}

static void shuffles(void)
{
	struct dsf_rng r;
	uint32_t values[10];
	unsigned place[10] = { 0 }, broken = 0;

	dsf_rng_init(&r, 5);
	for (int round = 0; round < 10000; round++) {
		uint32_t seen = 0;

		for (uint32_t i = 0; i < 10; i++)
			values[i] = i;
		dsf_rng_shuffle(&r, values, 10);
		for (uint32_t i = 0; i < 10; i++) {
			seen |= 1u << values[i];
			if (values[i] == 0)
				place[i]++;
		}
		broken += seen != 0x3ff;
	}
	TAP_EQ(broken, 0, "a shuffle loses and doubles nothing");
	for (unsigned i = 0; i < 10; i++)
		TAP_OK(place[i] > 850 && place[i] < 1150, "value 0 came to place %u %u times", i,
			place[i]);
	values[0] = 9;
	dsf_rng_shuffle(&r, values, 1);
	TAP_EQ(values[0], 9, "one value stays");
	dsf_rng_shuffle(&r, NULL, 0);
	TAP_OK(true, "no values are fine");
}

static void mix(void)
{
	unsigned least = 64, most = 0;

	/* Flipping one bit of the input flips about half of the output. */
	for (unsigned bit = 0; bit < 64; bit++) {
		unsigned flipped = 0;

		for (uint64_t x = 1; x <= 64; x++)
			flipped += (unsigned)__builtin_popcountll(
				dsf_mix(x) ^ dsf_mix(x ^ 1ull << bit));
		least = flipped / 64 < least ? flipped / 64 : least;
		most = flipped / 64 > most ? flipped / 64 : most;
	}
	TAP_OK(least >= 28 && most <= 36, "one bit flips %u to %u of 64", least, most);
}

static void chances(void)
{
	struct dsf_rng r, same;
	unsigned happened = 0;

	dsf_rng_init(&r, 1);
	same = r;
	TAP_OK(!dsf_rng_chance(&r, 0) && dsf_rng_next(&r) == dsf_rng_next(&same),
		"no chance draws nothing");
	for (unsigned i = 0; i < 10000; i++)
		happened += dsf_rng_chance(&r, 1000000);
	TAP_OK(happened == 10000, "a certain thing always happens");
	happened = 0;
	for (unsigned i = 0; i < 100000; i++)
		happened += dsf_rng_chance(&r, 10000);
	TAP_OK(happened > 800 && happened < 1200, "1 %% happened %u times of 100,000", happened);
}

int main(void)
{
	known_answers();
	forks();
	below();
	shuffles();
	chances();
	mix();
	return TAP_DONE();
}
