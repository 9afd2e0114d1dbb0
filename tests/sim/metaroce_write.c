/*
 * WRITE over one connection of two NICs: lossless, and through everything a network can do to
 * packets. Every message exactly once, in order, every byte right, and done in bounded time.
 */
#include "tests/sim/metaroce_pipe.h"

#define FLOWS 5u

struct order {
	uint64_t next[FLOWS];
	bool broken;
};

static void in_order(struct pipe *pipe, uint32_t nic, const struct metaroce_completion *c)
{
	struct order *order = pipe->user;

	(void)nic;
	if (c->user != order->next[c->qp_user - 1]++)
		order->broken = true;
}

static void check_flow(const char *name, struct pipe *pipe, struct pipe_flow *flow)
{
	struct metaroce_qp_view in, out;

	metaroce_qp_look(flow->in, &in);
	metaroce_qp_look(flow->out, &out);
	TAP_EQ(out.messages_done, flow->posted, "%s: flow %u completed", name, flow->number);
	TAP_EQ(in.messages_received, flow->posted, "%s: flow %u received whole", name,
		flow->number);
	TAP_EQ(in.bytes_received, flow->offset, "%s: flow %u bytes exactly once", name,
		flow->number);
	TAP_EQ(pipe->nics[flow->target].bytes_wrong, 0, "%s: no byte wrong", name);
}

static void run(const char *name, uint64_t seed, uint32_t planes, uint32_t paths,
	struct pipe_fault fault, uint64_t place_delay_ns, uint64_t limit_ns)
{
	static struct pipe pipe;
	struct pipe_flow flows[FLOWS];
	struct order order = { { 0 }, false };

	pipe_init(&pipe, planes, seed);
	pipe.fault = fault;
	pipe.place_delay_ns = place_delay_ns;
	pipe.completed = in_order;
	pipe.user = &order;
	pipe_nic_add(&pipe, paths, 0);
	pipe_nic_add(&pipe, paths, 0);
	for (uint32_t i = 0; i < FLOWS; i++) {
		if (!TAP_OK(pipe_flow_open(&pipe, &flows[i], i == FLOWS - 1, i != FLOWS - 1, i + 1),
			    "%s: flow opens", name))
			return;
		for (uint32_t j = 0; j < 20; j++)
			pipe_flow_post(&pipe, &flows[i],
				j == 3 ? 0 : (uint32_t)dsf_rng_below(&pipe.rng, 100000) + 1);
	}
	pipe_run(&pipe, limit_ns);
	for (uint32_t i = 0; i < FLOWS; i++)
		check_flow(name, &pipe, &flows[i]);
	TAP_OK(!order.broken, "%s: completions in order", name);
	printf("# %s: last completion at %" PRIu64 " ns, %" PRIu64 " packets, %" PRIu64
	       " lost, %" PRIu64 " sent again, %" PRIu64 " duplicates\n",
		name, pipe.nics[0].last_completion, pipe.packets, pipe.lost,
		metaroce_counters(pipe.nics[0].m)->retransmits,
		metaroce_counters(pipe.nics[1].m)->duplicates);
	if (pipe.lost == 0 && fault.duplicate_ppm == 0 && fault.reorder_ppm == 0)
		TAP_EQ(metaroce_counters(pipe.nics[0].m)->retransmits, 0, "%s: nothing sent again",
			name);
	pipe_run(&pipe, UINT64_MAX);
	TAP_OK(dsf_time_is_never(metaroce_deadline(pipe.nics[0].m)) &&
			dsf_time_is_never(metaroce_deadline(pipe.nics[1].m)),
		"%s: no timer stands on an idle connection", name);
	pipe_close(&pipe);
	TAP_EQ(pipe.blocks, 0, "%s: all memory given back", name);
}

int main(void)
{
	const uint64_t ms = NS_PER_MS;
	char name[64];

	run("lossless", 1, 1, 4, (struct pipe_fault){ 0 }, 0, ms);
	run("lossless, two planes", 2, 2, 16, (struct pipe_fault){ 0 }, 0, ms);
	run("slow placement", 3, 2, 16, (struct pipe_fault){ 0 }, 50000, ms);
	run("one path, loss", 4, 1, 1, (struct pipe_fault){ .loss_ppm = 50000 }, 0, 20 * ms);
	for (uint64_t seed = 10; seed < 30; seed++) {
		struct pipe_fault fault = { .loss_ppm = (uint32_t)(seed % 5) * 20000,
			.duplicate_ppm = (uint32_t)(seed % 3) * 20000,
			.reorder_ppm = (uint32_t)(seed % 4) * 10000,
			.jitter_ns = seed % 2 * 3000 };

		snprintf(name, sizeof(name), "seed %u", (unsigned)seed);
		run(name, seed, 1 + seed % 4, 1 + (uint32_t)(seed * 7 % 32), fault, seed % 2 * 1000,
			50 * ms);
	}
	return TAP_DONE();
}
