#include <string.h>
#include "base/histogram.h"
#include "base/rng.h"
#include "tests/tap.h"

static struct dsf_histogram h, other;

static void one_value(void)
{
	static const uint64_t values[] = { 0, 1, 15, 16, 17, 31, 32, 33, 1000, 65535, 65536,
		1ull << 32, (1ull << 63) - 1, 1ull << 63, UINT64_MAX - 1, UINT64_MAX };

	for (unsigned i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		memset(&h, 0, sizeof(h));
		dsf_histogram_add(&h, values[i]);
		TAP_EQ(dsf_histogram_quantile(&h, 500), values[i], "one value alone is the median");
		TAP_EQ(dsf_histogram_quantile(&h, 0), values[i], "and the least");
		TAP_EQ(h.max, values[i], "and the greatest");
	}
}

/* Every value is at most the upper edge that stands for it, and that is at most 1/16 above it. */
static void edges(void)
{
	unsigned wrong = 0;

	for (unsigned octave = 0; octave < 64; octave++) {
		for (int delta = -3; delta <= 3; delta++) {
			uint64_t value = (1ull << octave) + (uint64_t)delta, upper;

			if (value >= UINT64_MAX - 3 || value == 0)
				continue;
			memset(&h, 0, sizeof(h));
			dsf_histogram_add(&h, value);
			dsf_histogram_add(&h, UINT64_MAX); /* so that max does not clip the edge */
			upper = dsf_histogram_quantile(&h, 500);
			if (upper < value || upper - value > value / 16)
				wrong++;
		}
	}
	TAP_EQ(wrong, 0, "every value is within 1/16 of its bin's edge");
}

static void quantiles(void)
{
	memset(&h, 0, sizeof(h));
	TAP_EQ(dsf_histogram_quantile(&h, 500), 0, "empty: 0");
	TAP_EQ(dsf_histogram_quantile(&h, 1000), 0, "empty: maximum 0");
	for (uint64_t value = 1; value <= 10; value++)
		dsf_histogram_add(&h, value);
	TAP_EQ(dsf_histogram_quantile(&h, 500), 5, "1..10: median");
	TAP_EQ(dsf_histogram_quantile(&h, 501), 6, "1..10: just above it");
	TAP_EQ(dsf_histogram_quantile(&h, 900), 9, "1..10: p90");
	TAP_EQ(dsf_histogram_quantile(&h, 901), 10, "1..10: p90.1");
	TAP_EQ(dsf_histogram_quantile(&h, 1000), 10, "1..10: p100");
	TAP_EQ(dsf_histogram_quantile(&h, 2000), 10, "1..10: above p100 is the maximum");
	TAP_EQ(dsf_histogram_quantile(&h, 1), 1, "1..10: p0.1");
	TAP_EQ(h.count, 10, "count");
	TAP_EQ(h.sum, 55, "sum");
}

static void merges(void)
{
	struct dsf_rng rng;
	static struct dsf_histogram both;

	memset(&h, 0, sizeof(h));
	memset(&other, 0, sizeof(other));
	memset(&both, 0, sizeof(both));
	dsf_rng_init(&rng, 1);
	for (int i = 0; i < 10000; i++) {
		uint64_t value = dsf_rng_next(&rng) >> (8 + dsf_rng_below(&rng, 56));

		dsf_histogram_add(i % 3 == 0 ? &h : &other, value);
		dsf_histogram_add(&both, value);
	}
	dsf_histogram_merge(&h, &other);
	TAP_OK(memcmp(&h, &both, sizeof(h)) == 0, "merged is the same as added together");
	memset(&other, 0, sizeof(other));
	dsf_histogram_merge(&h, &other);
	TAP_OK(memcmp(&h, &both, sizeof(h)) == 0, "merging an empty one changes nothing");
}

/* Quantiles stay true when a bin is full: weeks of a million events a second. */
static void full_bins(void)
{
	memset(&h, 0, sizeof(h));
	for (int i = 0; i < 100; i++) {
		dsf_histogram_add(&h, 5);
		dsf_histogram_add(&h, 7);
	}
	h.bins[7] = UINT32_MAX;
	h.count = UINT32_MAX;
	dsf_histogram_add(&h, 7);
	TAP_EQ(h.bins[7], UINT32_MAX / 2 + 2, "a full bin is halved, then counts on");
	TAP_EQ(h.bins[5], 50, "and so is every other");
	TAP_EQ(h.count, 1ull << 32, "count is exact");
	TAP_EQ(dsf_histogram_quantile(&h, 500), 7, "the median stays");
	h.bins[9] = 1;
	h.bins[7] = UINT32_MAX;
	h.max = 9;
	dsf_histogram_add(&h, 7);
	TAP_EQ(h.bins[9], 1, "a single value is not forgotten");
	other = h;
	other.bins[7] = h.bins[7] = UINT32_MAX;
	dsf_histogram_merge(&h, &other);
	TAP_EQ(h.bins[7], UINT32_MAX, "merging two full bins halves the sum");
	TAP_EQ(h.bins[9], 1, "of all bins");
	h.sum = UINT64_MAX - 1;
	dsf_histogram_add(&h, 3);
	TAP_EQ(h.sum, UINT64_MAX, "the sum saturates");
}

int main(void)
{
	one_value();
	edges();
	quantiles();
	merges();
	full_bins();
	return TAP_DONE();
}
