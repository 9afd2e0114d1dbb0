#include "uring/clock.h"
#include <assert.h>
#include <string.h>

void uring_clock_init(struct uring_clock *c, uint64_t epoch_ns, uint32_t dilation)
{
	assert(dilation > 0);
	memset(c, 0, sizeof(*c));
	c->epoch_ns = epoch_ns;
	c->dilation = dilation;
	uring_clock_read(c);
	uring_clock_sample(c);
}

static uint64_t clock_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

uint64_t uring_clock_wall_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static dsf_instant fabric_of_wall(const struct uring_clock *c, uint64_t wall_ns)
{
	if (wall_ns <= c->epoch_ns)
		return DSF_EPOCH;
	return (dsf_instant){ (wall_ns - c->epoch_ns) / c->dilation };
}

dsf_instant uring_clock_read(struct uring_clock *c)
{
	uint64_t wall_ns = uring_clock_wall_ns();

	if (wall_ns > c->last_wall_ns) {
		c->last_wall_ns = wall_ns;
		c->last = dsf_time_max(c->last, fabric_of_wall(c, wall_ns));
	}
	return c->last;
}

dsf_instant uring_clock_now(const struct uring_clock *c)
{
	return dsf_time_max(c->last, fabric_of_wall(c, uring_clock_wall_ns()));
}

void uring_clock_sample(struct uring_clock *c)
{
	c->realtime_ahead_ns = (int64_t)(clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC));
}

dsf_instant uring_clock_of_stamp(const struct uring_clock *c, const struct timespec *stamp)
{
	uint64_t stamp_ns = (uint64_t)stamp->tv_sec * NS_PER_S + (uint64_t)stamp->tv_nsec;
	uint64_t wall_ns = stamp_ns - (uint64_t)c->realtime_ahead_ns;

	if (wall_ns >= c->last_wall_ns)
		return c->last;
	return dsf_time_min(fabric_of_wall(c, wall_ns), c->last);
}

uint64_t uring_clock_wall_until(const struct uring_clock *c, dsf_instant at)
{
	unsigned __int128 wall_ns;

	if (dsf_time_is_never(at))
		return UINT64_MAX;
	wall_ns = (unsigned __int128)at.ns * c->dilation + c->epoch_ns;
	if (wall_ns <= c->last_wall_ns)
		return 0;
	wall_ns -= c->last_wall_ns;
	return wall_ns > UINT64_MAX ? UINT64_MAX : (uint64_t)wall_ns;
}
