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

void dsf_histogram_add(struct dsf_histogram *h, uint64_t value)
{
	h->count++;
	h->sum += value;
	if (value > h->max)
		h->max = value;
	h->bins[bin_of(value)]++;
}

void dsf_histogram_merge(struct dsf_histogram *to, const struct dsf_histogram *from)
{
	to->count += from->count;
	to->sum += from->sum;
	if (from->max > to->max)
		to->max = from->max;
	for (unsigned i = 0; i < DSF_HISTOGRAM_BINS; i++)
		to->bins[i] += from->bins[i];
}

uint64_t dsf_histogram_quantile(const struct dsf_histogram *h, unsigned permille)
{
	uint64_t wanted = (h->count * permille + 999) / 1000, seen = 0;

	for (unsigned i = 0; i < DSF_HISTOGRAM_BINS; i++) {
		seen += h->bins[i];
		if (seen >= wanted && seen > 0)
			return bin_upper(i) < h->max ? bin_upper(i) : h->max;
	}
	return 0;
}
