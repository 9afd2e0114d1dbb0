/*
 * histogram.h - counts of 64-bit values in logarithmic bins, 16 to an octave (values within 6.3 %)
 *
 * count, sum (saturating) and max are exact for ever. A bin that would overflow halves all bins, so
 * that a process which runs for weeks keeps true quantiles.
 */
#ifndef DSF_BASE_HISTOGRAM_H
#define DSF_BASE_HISTOGRAM_H
#include <stdint.h>

#define DSF_HISTOGRAM_BINS (61 * 16)

struct dsf_histogram {
	uint64_t count;
	uint64_t max;
	uint64_t sum;
	uint32_t bins[DSF_HISTOGRAM_BINS];
};

void dsf_histogram_add(struct dsf_histogram *h, uint64_t value);

void dsf_histogram_merge(struct dsf_histogram *to, const struct dsf_histogram *from);

/* The value that permille of all values do not exceed (upper edge of its bin, at most max);
 * 0 when empty. permille 500 is the median, 990 the p99, 1000 (and above) the maximum. */
uint64_t dsf_histogram_quantile(const struct dsf_histogram *h, unsigned permille);

#endif
