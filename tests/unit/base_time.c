#include "base/rng.h"
#include "base/time.h"
#include "tests/tap.h"

static const dsf_instant early = { 100 }, late = { 101 };

static void order(void)
{
	TAP_OK(dsf_time_before(early, late) && !dsf_time_before(late, early), "before");
	TAP_OK(!dsf_time_before(early, early), "not before itself");
	TAP_OK(dsf_time_due(early, early) && dsf_time_due(early, late),
		"due at its instant and after");
	TAP_OK(!dsf_time_due(late, early), "not due before");
	TAP_OK(!dsf_time_due(DSF_NEVER, (dsf_instant){ UINT64_MAX - 1 }), "never is not due");
	TAP_EQ(dsf_time_min(early, late).ns, 100, "min");
	TAP_EQ(dsf_time_max(early, late).ns, 101, "max");
	TAP_EQ(dsf_time_min(DSF_NEVER, late).ns, 101, "min with never");
	TAP_EQ(dsf_time_since(early, late), 1, "since");
	TAP_EQ(dsf_time_since(late, early), 0, "since never is negative");
	TAP_EQ(dsf_time_after(early, 5).ns, 105, "after");
}

static void saturation(void)
{
	TAP_OK(dsf_time_is_never(dsf_time_after(DSF_NEVER, 0)), "never + 0");
	TAP_OK(dsf_time_is_never(dsf_time_after(DSF_NEVER, UINT64_MAX)), "never + all");
	TAP_OK(dsf_time_is_never(dsf_time_after(early, UINT64_MAX)), "instant + all");
	TAP_OK(dsf_time_is_never(dsf_time_after(early, UINT64_MAX - 99)), "one too many");
	TAP_EQ(dsf_time_after(early, UINT64_MAX - 101).ns, UINT64_MAX - 1, "the last instant");
	TAP_OK(!dsf_time_is_never(DSF_EPOCH), "the epoch is not never");
}

static void bytes_to_time(void)
{
	static const struct {
		uint64_t size, rate, want;
	} cases[] = {
		{ 0, 400000000000ull, 0 },
		{ 1, 400000000000ull, 1 },  /* 0.02 ns, rounded up */
		{ 50, 400000000000ull, 1 }, /* exactly 1 ns */
		{ 51, 400000000000ull, 2 },
		{ 16384, 400000000000ull, 328 },
		{ 1500, 1, 12000000000000ull }, /* one bit a second */
		{ 9000, 0, 0 },                 /* unlimited */
		{ UINT64_MAX, 0, 0 },
		{ 1ull << 31, 400000000000ull, 42949673 },
		{ 1ull << 32, 400000000000ull, 85899346 },
		{ 1ull << 40, 400000000000ull, 21990232556ull },
		{ UINT64_MAX, 8, UINT64_MAX }, /* too long for 64 bits */
		{ UINT64_MAX / 8, UINT64_MAX, 1000000000ull },
		{ 1, UINT64_MAX, 1 },
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		TAP_EQ(dsf_time_of_bytes(cases[i].size, cases[i].rate), cases[i].want,
			"time, case %u", i);
}

static void time_to_bytes(void)
{
	static const struct {
		uint64_t duration, rate, want;
	} cases[] = {
		{ 0, 400000000000ull, 0 },
		{ 1, 400000000000ull, 50 },
		{ 328, 400000000000ull, 16400 },
		{ 7, 1000000000ull, 0 }, /* 7 bits */
		{ 8, 1000000000ull, 1 },
		{ 3600000000000ull, 400000000000ull, 180000000000000ull },
		{ UINT64_MAX, UINT64_MAX, UINT64_MAX },
		{ UINT64_MAX, 8000000000ull, UINT64_MAX },
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		TAP_EQ(dsf_bytes_of_time(cases[i].duration, cases[i].rate), cases[i].want,
			"bytes, case %u", i);
}

/* What fits into the time that bytes take is at least those bytes, and no byte less would do. */
static void inverse(void)
{
	struct dsf_rng rng;
	unsigned wrong = 0;

	dsf_rng_init(&rng, 1);
	for (int i = 0; i < 20000; i++) {
		uint64_t size = 1 + dsf_rng_next(&rng) % (1ull << (1 + dsf_rng_below(&rng, 36)));
		uint64_t rate =
			1000 + dsf_rng_next(&rng) % (1ull << (20 + dsf_rng_below(&rng, 20)));
		uint64_t time = dsf_time_of_bytes(size, rate);

		wrong += dsf_bytes_of_time(time, rate) < size;
		wrong += dsf_bytes_of_time(time - 1, rate) >= size;
	}
	TAP_EQ(wrong, 0, "20000 sizes and rates: time and bytes are inverse");
}

int main(void)
{
	order();
	saturation();
	bytes_to_time();
	time_to_bytes();
	inverse();
	return TAP_DONE();
}
