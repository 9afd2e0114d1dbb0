/*
 * time.h - instants and durations of fabric time
 *
 * An instant is a type of its own, so that the compiler keeps it apart from a duration: plain
 * uint64_t/int64_t nanoseconds whose name ends in _ns. Time 0 is the lab's epoch. DSF_NEVER is
 * later than every instant and stays so under addition.
 */
#ifndef DSF_BASE_TIME_H
#define DSF_BASE_TIME_H
#include <stdbool.h>
#include <stdint.h>

typedef struct {
	uint64_t ns;
} dsf_instant;

#define NS_PER_US 1000ull
#define NS_PER_MS 1000000ull
#define NS_PER_S  1000000000ull

#define DSF_NEVER ((dsf_instant){ UINT64_MAX })
#define DSF_EPOCH ((dsf_instant){ 0 })

static inline bool dsf_time_before(dsf_instant a, dsf_instant b)
{
	return a.ns < b.ns;
}

/* True when t has come at now: t <= now. */
static inline bool dsf_time_due(dsf_instant t, dsf_instant now)
{
	return t.ns <= now.ns;
}

static inline bool dsf_time_is_never(dsf_instant t)
{
	return t.ns == UINT64_MAX;
}

static inline dsf_instant dsf_time_min(dsf_instant a, dsf_instant b)
{
	return a.ns < b.ns ? a : b;
}

static inline dsf_instant dsf_time_max(dsf_instant a, dsf_instant b)
{
	return a.ns > b.ns ? a : b;
}

/* t + duration_ns, saturating at DSF_NEVER. */
static inline dsf_instant dsf_time_after(dsf_instant t, uint64_t duration_ns)
{
	return t.ns > UINT64_MAX - duration_ns ? DSF_NEVER : (dsf_instant){ t.ns + duration_ns };
}

/* later - earlier in nanoseconds; 0 where earlier is not earlier. */
static inline uint64_t dsf_time_since(dsf_instant earlier, dsf_instant later)
{
	return later.ns > earlier.ns ? later.ns - earlier.ns : 0;
}

/* Nanoseconds that size bytes take at rate_bps, rounded up; 0 at rate 0, which means unlimited.
 * Saturates at UINT64_MAX. */
static inline uint64_t dsf_time_of_bytes(uint64_t size, uint64_t rate_bps)
{
	unsigned __int128 bits_ns = (unsigned __int128)size * (8u * NS_PER_S);

	if (rate_bps == 0)
		return 0;
	if (bits_ns <= UINT64_MAX - rate_bps) /* no 128-bit division where it isn't needed */
		return ((uint64_t)bits_ns + rate_bps - 1) / rate_bps;
	bits_ns = (bits_ns + rate_bps - 1) / rate_bps;
	return bits_ns > UINT64_MAX ? UINT64_MAX : (uint64_t)bits_ns;
}

/* Bytes that fit into duration_ns at rate_bps, rounded down; saturates at UINT64_MAX. */
static inline uint64_t dsf_bytes_of_time(uint64_t duration_ns, uint64_t rate_bps)
{
	unsigned __int128 bits_ns = (unsigned __int128)duration_ns * rate_bps;

	if (bits_ns <= UINT64_MAX)
		return (uint64_t)bits_ns / (8u * NS_PER_S);
	bits_ns /= 8u * NS_PER_S;
	return bits_ns > UINT64_MAX ? UINT64_MAX : (uint64_t)bits_ns;
}

#endif
