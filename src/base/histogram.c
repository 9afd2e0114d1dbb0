#include "base/histogram.h"

/* Values below 16 have a bin each; above, the top bit picks the octave, the next four the bin. */
static unsigned bin_of(uint64_t value)
{
	unsigned octave;

	if (value < 16)
		return (unsigned)value;
	octave = 63u - (unsigned)__builtin_clzll(value);
	return (octave - 3) * 16 + (unsigned)(value >> (octave - 4) & 15);
}

static uint64_t bin_upper(unsigned bin)
{
	unsigned octave = bin / 16 + 3;

	if (bin < 16)
		return bin;
	return ((16ull + bin % 16 + 1) << (octave - 4)) - 1;
}

static uint64_t add_saturating(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static void halve(struct dsf_histogram *h)
{
	for (unsigned i = 0; i < DSF_HISTOGRAM_BINS; i++)
		h->bins[i] = h->bins[i] / 2 + h->bins[i] % 2; /* nothing seen is forgotten */
}

void dsf_histogram_add(struct dsf_histogram *h, uint64_t value)
{
	unsigned bin = bin_of(value);

	h->count++;
	h->sum = add_saturating(h->sum, value);
	if (value > h->max)
		h->max = value;
	if (h->bins[bin] == UINT32_MAX)
		halve(h);
	h->bins[bin]++;
}

void dsf_histogram_merge(struct dsf_histogram *to, const struct dsf_histogram *from)
{
	unsigned shift = 0;

	for (unsigned i = 0; i < DSF_HISTOGRAM_BINS; i++) {
		if ((uint64_t)to->bins[i] + from->bins[i] > UINT32_MAX)
			shift = 1;
	}
	to->count += from->count;
	to->sum = add_saturating(to->sum, from->sum);
	if (from->max > to->max)
		to->max = from->max;
	for (unsigned i = 0; i < DSF_HISTOGRAM_BINS; i++)
		to->bins[i] = (uint32_t)(((uint64_t)to->bins[i] + from->bins[i] + shift) >> shift);
}

uint64_t dsf_histogram_quantile(const struct dsf_histogram *h, unsigned permille)
{
	uint64_t total = 0, wanted, seen = 0;

	for (unsigned i = 0; i < DSF_HISTOGRAM_BINS; i++)
		total += h->bins[i];
	wanted = (total * permille + 999) / 1000;
	for (unsigned i = 0; i < DSF_HISTOGRAM_BINS; i++) {
		seen += h->bins[i];
		if (seen >= wanted && seen > 0)
			return bin_upper(i) < h->max ? bin_upper(i) : h->max;
	}
	return h->max;
}
