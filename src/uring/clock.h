/*
 * clock.h - fabric time from the host's monotonic clock
 *
 * Fabric time is (CLOCK_MONOTONIC - epoch) / dilation, in whole nanoseconds, 0 before the epoch.
 * It never goes backwards. Arrival times that the kernel stamps with CLOCK_REALTIME are turned into
 * monotonic ones by the difference of both clocks, sampled once a turn; a stamp that would lie in
 * the future (the wall clock was set in between) counts as now.
 */
#ifndef DSF_URING_CLOCK_H
#define DSF_URING_CLOCK_H
#include <stdint.h>
#include <time.h>
#include "base/time.h"

struct uring_clock {
	uint64_t epoch_ns;
	uint32_t dilation;
	dsf_instant last;          /* what the clock read last */
	uint64_t last_wall_ns;     /* CLOCK_MONOTONIC at that reading */
	int64_t realtime_ahead_ns; /* CLOCK_REALTIME - CLOCK_MONOTONIC when it was sampled */
};

/* dilation >= 1. */
void uring_clock_init(struct uring_clock *c, uint64_t epoch_ns, uint32_t dilation);

uint64_t uring_clock_wall_ns(void);

/* Reads the clock: now in fabric time. */
dsf_instant uring_clock_read(struct uring_clock *c);

/* What the clock would read now; it keeps its last reading. */
dsf_instant uring_clock_now(const struct uring_clock *c);

/* Samples the difference of the clocks, for uring_clock_of_stamp. */
void uring_clock_sample(struct uring_clock *c);

/* Fabric instant of a CLOCK_REALTIME stamp; at most the last reading. */
dsf_instant uring_clock_of_stamp(const struct uring_clock *c, const struct timespec *stamp);

/* Wall nanoseconds from the last reading until fabric instant at; 0 when it has passed, UINT64_MAX
 * for DSF_NEVER. */
uint64_t uring_clock_wall_until(const struct uring_clock *c, dsf_instant at);

#endif
