#include "sim/queue.h"
#include "base/rng.h"
#include "tests/tap.h"

static void order(uint64_t seed)
{
	struct sim_queue q = { 0 };
	struct sim_entry e, last = { 0 };
	struct dsf_rng rng;
	uint64_t pushed = 0, popped = 0, wrong = 0;

	dsf_rng_init(&rng, seed);
	TAP_OK(!sim_queue_pop(&q, &e) && dsf_time_is_never(sim_queue_at(&q)), "empty");
	while (popped < 50000) {
		if (dsf_rng_below(&rng, 3) > 0 && pushed < 50000) {
			/* from now on, as a simulation does; many at one instant */
			dsf_instant at = dsf_time_after(last.at, dsf_rng_below(&rng, 20));

			uint32_t rank = (uint32_t)dsf_rng_below(&rng, 4);

			/* A rank below that of the last one at the same instant comes too late. */
			if (at.ns == last.at.ns && rank < last.value >> 32)
				rank = (uint32_t)(last.value >> 32);
			wrong += sim_queue_push(&q, at, rank, (uint64_t)rank << 32 | pushed++) != 0;
			continue;
		}
		if (!sim_queue_pop(&q, &e)) {
			wrong += pushed != popped;
			continue;
		}
		wrong += e.at.ns < last.at.ns;
		/* at one instant: by rank, then in the order of pushing; both are in the value */
		wrong += popped > 0 && e.at.ns == last.at.ns && e.value <= last.value;
		last = e;
		popped++;
	}
	TAP_OK(wrong == 0 && q.count == 0, "seed %" PRIu64 ": by instant, rank, then as they came",
		seed);
	sim_queue_close(&q);
	TAP_OK(q.entries == NULL && q.count == 0, "closed");
}

int main(void)
{
	for (uint64_t seed = 1; seed <= 3; seed++)
		order(seed);
	return TAP_DONE();
}
