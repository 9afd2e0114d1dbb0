/*
 * What a transport does about faults and company: silent paths and planes, carrier, loss over a
 * long time, marks, and the receiver's shares among many senders.
 */
#include "tests/sim/metaroce_pipe.h"

#define MS NS_PER_MS

static struct pipe pipe;

static uint32_t paths_in(uint32_t nic, enum metaroce_path_state state, uint32_t plane)
{
	struct metaroce_path_view view;
	uint64_t cursor = 0;
	uint32_t count = 0;

	while (metaroce_path_look(pipe.nics[nic].m, &cursor, &view))
		count += view.state == state && (plane == UINT32_MAX || view.plane == plane);
	return count;
}

static void pair(uint32_t planes, uint32_t paths, uint64_t seed, struct pipe_flow *flow)
{
	pipe_init(&pipe, planes, seed);
	pipe_nic_add(&pipe, paths, 0);
	pipe_nic_add(&pipe, paths, 0);
	TAP_OK(pipe_flow_open(&pipe, flow, 0, 1, 1), "a flow opens");
}

static void post_many(struct pipe_flow *flow, uint32_t count, uint32_t size)
{
	for (uint32_t i = 0; i < count; i++)
		pipe_flow_post(&pipe, flow, size);
}

static void finish(const char *name, struct pipe_flow *flow)
{
	struct metaroce_qp_view in, out;

	metaroce_qp_look(flow->in, &in);
	metaroce_qp_look(flow->out, &out);
	TAP_EQ(out.messages_done, flow->posted, "%s: all complete", name);
	TAP_EQ(in.bytes_received, flow->offset, "%s: each byte once", name);
	TAP_EQ(pipe.nics[1].bytes_wrong, 0, "%s: no byte wrong", name);
	pipe_close(&pipe);
	TAP_EQ(pipe.blocks, 0, "%s: memory given back", name);
}

static uint16_t dead_port;

static bool drop_port(
	struct pipe *p, uint32_t nic, uint32_t plane, const uint8_t *bytes, uint32_t size)
{
	struct metaroce_path_view view;
	uint64_t cursor = 0;
	uint32_t path = (uint32_t)bytes[2] << 8 | bytes[3];

	(void)plane;
	(void)size;
	/* A route that swallows one source port of NIC 0: its paths' data and probes. */
	if (nic != 0 || (bytes[0] & 0x0f) == METAROCE_TYPE_ACK ||
		(bytes[0] & 0x0f) == METAROCE_TYPE_CONN)
		return false;
	while (metaroce_path_look(p->nics[0].m, &cursor, &view)) {
		if (view.path == path)
			return view.source_port == dead_port;
	}
	return false;
}

static void a_silent_path_is_left(void)
{
	struct metaroce_path_view view;
	struct pipe_flow flow;
	uint64_t cursor = 0, begin;

	pair(2, 8, 31, &flow);
	post_many(&flow, 1, 4096);
	pipe_run(&pipe, 50000);
	metaroce_path_look(pipe.nics[0].m, &cursor, &view);
	dead_port = view.source_port;
	pipe.drop = drop_port;
	begin = pipe.now;
	post_many(&flow, 60, 200000);
	pipe_run(&pipe, begin + 2 * MS);
	printf("# silent path: done %" PRIu64 " us after, moved %" PRIu64 ", sent again %" PRIu64
	       "\n",
		(pipe.nics[0].last_completion - begin) / 1000,
		metaroce_counters(pipe.nics[0].m)->moved,
		metaroce_counters(pipe.nics[0].m)->retransmits);
	cursor = 0;
	metaroce_path_look(pipe.nics[0].m, &cursor, &view);
	TAP_OK(view.source_port != dead_port, "silent path: it has another source port");
	TAP_OK(metaroce_counters(pipe.nics[0].m)->moved > 0, "silent path: its packets moved");
	TAP_EQ(paths_in(0, METAROCE_PATH_GOOD, UINT32_MAX), 8,
		"silent path: all paths are good again");
	/* 12 MB at 800 Gbit/s take 120 us; finding out takes a few round trips of 4.4 us. */
	TAP_OK(pipe.nics[0].last_completion - begin < 250000, "silent path: little time lost");
	finish("silent path", &flow);
}

static void a_silent_plane_is_left_and_used_again(void)
{
	struct pipe_flow flow;
	uint64_t begin, sent;

	pair(2, 8, 32, &flow);
	post_many(&flow, 1, 4096);
	pipe_run(&pipe, 50000);
	begin = pipe.now;
	post_many(&flow, 60, 200000);
	pipe_run(&pipe, begin + 20000);
	/* NIC 0's plane 1 sends into nothing from now on. */
	pipe.nics[0].ports[1].silent = true;
	pipe_run(&pipe, begin + 3 * MS);
	printf("# silent plane: done %" PRIu64 " us after\n",
		(pipe.nics[0].last_completion - begin) / 1000);
	TAP_EQ(pipe.nics[0].completed, flow.posted,
		"silent plane: all complete over the other one");
	TAP_EQ(paths_in(0, METAROCE_PATH_GOOD, 0), 4,
		"silent plane: the other plane's paths are good");
	TAP_EQ(paths_in(0, METAROCE_PATH_GOOD, 1), 0, "silent plane: its own aren't");
	/* 12 MB at 400 Gbit/s take 245 us. */
	TAP_OK(pipe.nics[0].last_completion - begin < 400000, "silent plane: little time lost");
	pipe.nics[0].ports[1].silent = false;
	post_many(&flow, 60, 200000);
	pipe_run(&pipe, pipe.now + MS);
	TAP_EQ(paths_in(0, METAROCE_PATH_GOOD, 1), 4, "silent plane: probes brought it back");
	sent = pipe.nics[0].ports[1].sent_bytes;
	post_many(&flow, 20, 200000);
	pipe_run(&pipe, pipe.now + MS);
	TAP_OK(pipe.nics[0].ports[1].sent_bytes - sent > 1500000,
		"silent plane: it carries data again");
	finish("silent plane", &flow);
}

static void carrier_moves_at_once(void)
{
	struct pipe_flow flow;
	uint64_t begin;

	pair(2, 8, 33, &flow);
	post_many(&flow, 60, 200000);
	pipe_run(&pipe, 40000);
	begin = pipe.now;
	pipe_carrier(&pipe, 0, 1, false);
	TAP_EQ(paths_in(0, METAROCE_PATH_DEAD, 1), 4, "carrier: its paths are dead at once");
	pipe_run(&pipe, begin + 100000);
	pipe_carrier(&pipe, 0, 1, true);
	pipe_run(&pipe, begin + 2 * MS);
	TAP_EQ(paths_in(0, METAROCE_PATH_GOOD, UINT32_MAX), 8,
		"carrier: all are good when it is back");
	printf("# carrier: done %" PRIu64 " us after\n",
		(pipe.nics[0].last_completion - begin) / 1000);
	finish("carrier", &flow);
}

static void the_peers_carrier_is_found_out(void)
{
	struct pipe_flow flow;

	pair(2, 8, 34, &flow);
	post_many(&flow, 60, 200000);
	pipe_run(&pipe, 40000);
	pipe_carrier(&pipe, 1, 0, false);
	pipe_run(&pipe, 2 * MS);
	TAP_EQ(paths_in(0, METAROCE_PATH_GOOD, 0), 0,
		"peer's carrier: that plane's paths aren't good");
	finish("peer's carrier", &flow);
}

static void everything_silent_for_a_while(void)
{
	struct pipe_flow flow;

	pair(2, 8, 35, &flow);
	post_many(&flow, 60, 200000);
	pipe_run(&pipe, 40000);
	for (uint32_t i = 0; i < 4; i++)
		pipe.nics[i / 2].ports[i % 2].silent = true;
	pipe_run(&pipe, 5 * MS);
	for (uint32_t i = 0; i < 4; i++)
		pipe.nics[i / 2].ports[i % 2].silent = false;
	pipe_run(&pipe, 10 * MS);
	finish("black-out", &flow);
}

static void carrier_flaps_under_load(uint64_t seed)
{
	char name[40];
	struct pipe_flow flow;

	snprintf(name, sizeof(name), "flaps, seed %u", (unsigned)seed);
	pair(3, 12, seed, &flow);
	pipe.fault =
		(struct pipe_fault){ .loss_ppm = 20000, .duplicate_ppm = 5000, .jitter_ns = 2000 };
	pipe.place_delay_ns = 2000;
	for (uint32_t i = 0; i < 60; i++) {
		uint32_t nic = (uint32_t)dsf_rng_below(&pipe.rng, 2);
		uint32_t plane = (uint32_t)dsf_rng_below(&pipe.rng, 3);

		if (i % 2 == 0)
			post_many(&flow, 1, 1 + (uint32_t)dsf_rng_below(&pipe.rng, 300000));
		if (dsf_rng_below(&pipe.rng, 2) == 0)
			pipe.nics[nic].ports[plane].silent = !pipe.nics[nic].ports[plane].silent;
		else
			pipe_carrier(&pipe, nic, plane, !pipe.nics[nic].ports[plane].up);
		pipe_run(&pipe, pipe.now + dsf_rng_below(&pipe.rng, 60000));
	}
	pipe.fault = (struct pipe_fault){ 0 };
	for (uint32_t i = 0; i < 6; i++) {
		pipe.nics[i / 3].ports[i % 3].silent = false;
		pipe_carrier(&pipe, i / 3, i % 3, true);
	}
	pipe_run(&pipe, pipe.now + 20 * MS);
	/* Had the connection nothing to do for long, its paths in doubt wait for work. */
	post_many(&flow, 1, 1000);
	pipe_run(&pipe, pipe.now + MS);
	TAP_EQ(pipe.nics[0].failed, 0, "%s: no message failed", name);
	TAP_EQ(paths_in(0, METAROCE_PATH_GOOD, UINT32_MAX), 12, "%s: all paths good at rest", name);
	finish(name, &flow);
}

static double goodput_with_loss(uint32_t loss_ppm)
{
	struct pipe_flow flow;
	double gbps;
	uint64_t begin;

	pair(1, 16, 36, &flow);
	post_many(&flow, 1, 4096);
	pipe_run(&pipe, 50000);
	begin = pipe.now;
	pipe.fault.loss_ppm = loss_ppm;
	post_many(&flow, 60, 1000000);
	pipe_run(&pipe, 20 * MS);
	gbps = 60e6 * 8 / (double)(pipe.nics[0].last_completion - begin);
	finish("loss", &flow);
	return gbps;
}

static void loss_costs_little(void)
{
	double none = goodput_with_loss(0), one = goodput_with_loss(10000),
	       ten = goodput_with_loss(100000);

	printf("# goodput %.1f Gbit/s without loss, %.1f at 1 %%, %.1f at 10 %%\n", none, one, ten);
	TAP_OK(none > 0.93 * 400, "loss: without it the line is full");
	TAP_OK(one > 0.86 * none, "loss: 1 %% leaves 86 %% at least");
	TAP_OK(ten > 0.50 * none, "loss: 10 %% leaves half at least");
}

static uint32_t window_of(uint32_t nic)
{
	struct metaroce_path_view view;
	uint64_t cursor = 0;
	uint64_t sum = 0;

	while (metaroce_path_look(pipe.nics[nic].m, &cursor, &view))
		sum += view.window_bytes;
	return (uint32_t)sum;
}

static void marks_cut_and_loss_does_not(void)
{
	struct pipe_flow flow;
	uint32_t before;

	pair(1, 4, 37, &flow);
	post_many(&flow, 10, 100000);
	pipe_run(&pipe, 100000);
	before = window_of(0);
	pipe.fault.loss_ppm = 30000;
	post_many(&flow, 60, 100000);
	pipe_run(&pipe, pipe.now + MS);
	TAP_OK(window_of(0) >= before, "loss: windows as before (%u, then %u)", before,
		window_of(0));
	pipe.fault.loss_ppm = 0;
	pipe.queue_mark_ns = 0;
	/* Everything that waits at all behind another packet is marked: two senders share a port.
	 */
	before = window_of(0);
	pipe.rate_bps /= 4;
	post_many(&flow, 60, 100000);
	pipe_run(&pipe, pipe.now + 5 * MS);
	TAP_OK(window_of(0) < before, "marks: windows smaller (%u, then %u)", before, window_of(0));
	TAP_OK(pipe.nics[1].ports[0].marked > 0, "marks: there were some");
	finish("marks", &flow);
}

#define SENDERS_MAX 63u

/* All messages arrive, and nothing is left of them. */
static void shares_end(uint32_t senders)
{
	uint32_t done = 0;

	pipe_run(&pipe, 50 * MS);
	TAP_EQ(pipe.nics[0].bytes_wrong, 0, "shares, %u senders: no byte wrong", senders);
	for (uint32_t i = 0; i < senders; i++)
		done += pipe.nics[i + 1].completed == 8;
	TAP_EQ(done, senders, "shares, %u senders: all complete", senders);
	pipe_close(&pipe);
	TAP_EQ(pipe.blocks, 0, "shares, %u senders: memory given back", senders);
}

static void shares_begin(struct pipe_flow *flows, uint32_t senders, uint32_t planes)
{
	pipe_init(&pipe, planes, 40 + senders);
	pipe.queue_mark_ns = 10000;
	pipe_nic_add(&pipe, 16, 0);
	for (uint32_t i = 0; i < senders; i++) {
		pipe_nic_add(&pipe, 16, 0);
		pipe_flow_open(&pipe, &flows[i], i + 1, 0, i + 1);
		metaroce_qp_connect(flows[i].out, (dsf_instant){ 0 });
	}
	pipe_run(&pipe, 100000);
}

static void shares_settle(uint32_t senders, uint32_t planes)
{
	static struct pipe_flow flows[SENDERS_MAX];
	uint64_t rtt, sum = 0, least = UINT64_MAX, most = 0, onset, received;
	uint64_t share = 400000000000ull / senders;
	double total = 0, squares = 0, jain;

	shares_begin(flows, senders, planes);
	onset = pipe.now;
	for (uint32_t i = 0; i < senders; i++) {
		for (uint32_t j = 0; j < 8; j++)
			pipe_flow_post(&pipe, &flows[i], 6000000 / senders * planes);
	}
	/* A round trip holds a packet of each sender. */
	rtt = 2 * pipe.delay_ns + 400 + senders * 85;
	pipe_run(&pipe, onset + 2 * rtt);
	for (uint32_t i = 0; i < senders; i++) {
		uint64_t hint = metaroce_hint(flows[i].out, 0);

		sum += hint;
		least = hint < least ? hint : least;
		most = hint > most ? hint : most;
	}
	printf("# %u senders, %u planes, two round trips after they began: hints %.2f to %.2f "
	       "Gbit/s, fair is %.2f, sum %.1f\n",
		senders, planes, (double)least / 1e9, (double)most / 1e9, (double)share / 1e9,
		(double)sum / 1e9);
	TAP_OK(least > share / 10 * 8 && most < share / 10 * 11,
		"shares, %u senders: within 10 %% of fair below the line", senders);
	TAP_OK(sum <= 404000000000ull, "shares, %u senders: not more than the port has", senders);
	/* While all send: the port is full, nobody gets more than others. */
	pipe_run(&pipe, onset + 20 * rtt);
	received = pipe.nics[0].ports[0].received_bytes;
	for (uint32_t i = 0; i < senders; i++) {
		struct metaroce_qp_view view;

		metaroce_qp_look(flows[i].in, &view);
		flows[i].offset = view.bytes_received;
	}
	pipe_run(&pipe, onset + 60 * rtt);
	received = pipe.nics[0].ports[0].received_bytes - received;
	least = UINT64_MAX;
	most = 0;
	for (uint32_t i = 0; i < senders; i++) {
		struct metaroce_qp_view view;
		uint64_t bytes;

		metaroce_qp_look(flows[i].in, &view);
		bytes = view.bytes_received - flows[i].offset;
		least = bytes < least ? bytes : least;
		most = bytes > most ? bytes : most;
		total += (double)bytes;
		squares += (double)bytes * (double)bytes;
	}
	jain = total * total / (squares * senders);
	printf("# %u senders: Jain %.4f, port %.3f full, %.0f KB to %.0f KB each, %" PRIu64
	       " marked\n",
		senders, jain, (double)received * 8e9 / (40.0 * (double)rtt) / 400e9,
		(double)least / 1e3, (double)most / 1e3, pipe.nics[0].ports[0].marked);
	TAP_OK((double)received * 8e9 / (40.0 * (double)rtt) > 0.93 * 400e9,
		"shares, %u senders: the port is full", senders);
	/* 63 senders have about two packets a round trip each. */
	TAP_OK(jain >= (senders > 32 ? 0.97 : 0.999), "shares, %u senders: all get about the same",
		senders);
	shares_end(senders);
}

int main(void)
{
	a_silent_path_is_left();
	a_silent_plane_is_left_and_used_again();
	carrier_moves_at_once();
	the_peers_carrier_is_found_out();
	everything_silent_for_a_while();
	for (uint64_t seed = 100; seed < 120; seed++)
		carrier_flaps_under_load(seed);
	loss_costs_little();
	marks_cut_and_loss_does_not();
	shares_settle(2, 1);
	shares_settle(7, 2);
	shares_settle(15, 1);
	shares_settle(63, 2);
	return TAP_DONE();
}
