/*
 * The small parts of the transport alone: the acknowledgement bits against a plain list, pattern
 * memory, windows, shares; and a NIC whose memory fails at every possible call.
 */
#include <stdlib.h>
#include <string.h>
#include "metaroce/cc.h"
#include "metaroce/sack.h"
#include "metaroce/share.h"
#include "tests/sim/metaroce_pipe.h"

#define NUMBERS 4000u

static void sack_agrees_with_a_list(uint64_t seed)
{
	static bool seen[NUMBERS];
	struct metaroce_sack s = { .next = UINT32_MAX - 1000 }; /* wraps on the way */
	uint32_t base = s.next, next = 0, wrong = 0, outside = 0;
	struct dsf_rng rng;

	memset(seen, 0, sizeof(seen));
	dsf_rng_init(&rng, seed);
	for (uint32_t i = 0; i < 30000 && next < NUMBERS - 400; i++) {
		uint32_t number = next + (uint32_t)dsf_rng_below(&rng, i % 7 == 0 ? 400 : 20);
		enum metaroce_sack_result want = number - next > METAROCE_SACK_BITS
							 ? METAROCE_SACK_OUTSIDE
						 : seen[number] ? METAROCE_SACK_SEEN
								: METAROCE_SACK_NEW;
		uint32_t highest = next - 1;

		if (metaroce_sack_look(&s, base + number) != want)
			wrong++;
		outside += want == METAROCE_SACK_OUTSIDE;
		if (want == METAROCE_SACK_NEW) {
			seen[number] = true;
			metaroce_sack_add(&s, base + number);
		}
		while (seen[next])
			next++;
		wrong += s.next != base + next;
		for (uint32_t j = next; j < next + METAROCE_SACK_BITS + 1; j++) {
			wrong += metaroce_sack_has(s.next, s.bits, base + j) != seen[j];
			if (seen[j])
				highest = j;
		}
		wrong += highest + 1 > next &&
			 metaroce_sack_highest(s.next, s.bits) != base + highest;
	}
	TAP_OK(next > 500 && outside > 100, "sack, seed %u: went far (%u)", (unsigned)seed, next);
	TAP_EQ(wrong, 0, "sack, seed %u: agrees with a list", (unsigned)seed);
}

static void pattern_is_the_same_however_it_is_cut(void)
{
	uint64_t memory = metaroce_memory_pattern(99), other = metaroce_memory_pattern(100);
	static uint8_t whole[5000], part[5000];
	uint32_t wrong = 0;

	metaroce_pattern_fill(memory, 1000003, whole, sizeof(whole));
	for (size_t at = 0; at < sizeof(whole);) {
		size_t size = 1 + at % 97;

		if (size > sizeof(whole) - at)
			size = sizeof(whole) - at;
		metaroce_pattern_fill(memory, 1000003 + at, part + at, size);
		wrong += metaroce_pattern_check(memory, 1000003 + at, whole + at, size) != 0;
		at += size;
	}
	TAP_EQ(wrong, 0, "pattern: any cut checks");
	TAP_OK(memcmp(whole, part, sizeof(whole)) == 0, "pattern: any cut is the same");
	TAP_OK(metaroce_pattern_check(memory, 1000004, whole, 4096) > 4000,
		"pattern: shifted by one is wrong");
	TAP_OK(metaroce_pattern_check(other, 1000003, whole, 4096) > 4000,
		"pattern: another seed is wrong");
	whole[4000] ^= 1;
	whole[7] ^= 0x80;
	TAP_EQ(metaroce_pattern_check(memory, 1000003, whole, sizeof(whole)), 2,
		"pattern: wrong bytes are counted");
	TAP_EQ(metaroce_name_put(part, memory, 12345, 4096), METAROCE_NAME_SIZE,
		"name: has its size");
	TAP_EQ(metaroce_payload_check(memory, 12345, part, METAROCE_NAME_SIZE, 4096), 0,
		"name: stands for its payload");
	TAP_EQ(metaroce_payload_check(memory, 12346, part, METAROCE_NAME_SIZE, 4096), 4096,
		"name: not for another offset");
	TAP_EQ(metaroce_payload_check(other, 12345, part, METAROCE_NAME_SIZE, 4096), 4096,
		"name: not for another memory");
	TAP_EQ(metaroce_payload_check(memory, 12345, part, 15, 4096), 4096,
		"name: cut short is wrong");
	TAP_EQ(metaroce_name_put(part, memory, 3, 7), 7, "name: short payload goes itself");
	TAP_EQ(metaroce_payload_check(memory, 3, part, 7, 7), 0, "name: and checks");
}

static void windows_follow_marks(void)
{
	struct metaroce_window w;
	struct metaroce_cc_news news = {
		.acked_bytes = 4096, .packets = 1, .rtt_ns = 1000, .rtt_least_ns = 1000
	};
	uint32_t before, once;

	metaroce_cc_init(&w, 40960, 4096, 1 << 20, 4096);
	metaroce_cc_input(&w, &news, (dsf_instant){ 10 });
	TAP_EQ(w.bytes, 40960, "window: doesn't grow where it doesn't bind");
	w.limited = true;
	metaroce_cc_input(&w, &news, (dsf_instant){ 20 });
	TAP_EQ(w.bytes, 45056, "window: grows by what was acknowledged at first");
	news.lost = true;
	TAP_OK(!metaroce_cc_input(&w, &news, (dsf_instant){ 30 }),
		"window: loss alone doesn't cut");
	news.rtt_ns = 2000;
	before = w.bytes;
	TAP_OK(metaroce_cc_input(&w, &news, (dsf_instant){ 40 }),
		"window: loss with a risen round trip does");
	TAP_EQ(w.bytes, before - before / 4, "window: by a quarter");
	TAP_OK(!metaroce_cc_input(&w, &news, (dsf_instant){ 50 }), "window: once a round");
	news = (struct metaroce_cc_news){ .acked_bytes = 4096,
		.packets = 10,
		.marked = 10,
		.rtt_ns = 1000,
		.rtt_least_ns = 1000 };
	news.sent_at = (dsf_instant){ 4000 };
	metaroce_cc_input(&w, &news, (dsf_instant){ 5000 });
	before = w.bytes;
	/* All of these left before the first of them came back: one queue, one cut. */
	news.sent_at = (dsf_instant){ 5500 };
	metaroce_cc_input(&w, &news, (dsf_instant){ 10000 });
	once = w.bytes;
	for (uint64_t at = 10000; at < 50000; at += 2000) {
		news.sent_at = (dsf_instant){ 6000 + at / 20 };
		metaroce_cc_input(&w, &news, (dsf_instant){ at });
	}
	TAP_OK(once < before && w.bytes == once,
		"window: what was on its way at a cut doesn't cut again (%u, %u, %u)", before, once,
		w.bytes);
	for (uint64_t at = 50000; at < 150000; at += 2000) {
		news.sent_at = (dsf_instant){ at - 1000 };
		metaroce_cc_input(&w, &news, (dsf_instant){ at });
	}
	TAP_EQ(w.bytes, 4096, "window: marks without end lead to the least (from %u)", before);
	news.marked = 0;
	w.limited = true;
	news.sent_at = (dsf_instant){ 199000 };
	metaroce_cc_input(&w, &news, (dsf_instant){ 200000 });
	news.sent_at = (dsf_instant){ 200500 };
	w.limited = true;
	metaroce_cc_input(&w, &news, (dsf_instant){ 201500 });
	TAP_OK(w.bytes > 4096 && w.bytes <= 8192 + 1, "window: then it grows by steps");
	for (uint64_t at = 210000; at < 900000; at += 2000) {
		w.limited = true;
		news.sent_at = (dsf_instant){ at - 1000 };
		metaroce_cc_input(&w, &news, (dsf_instant){ at });
	}
	TAP_OK(w.alpha < METAROCE_CC_ONE / 100, "window: the marked fraction is forgotten");
}

static void shares_are_max_min(void)
{
	struct metaroce_share s;
	struct metaroce_share_sender a = { 0 }, b = { 0 }, c = { 0 };
	const uint64_t rtt = 10000, gbit = 1000000000;
	uint64_t at = 0;

	metaroce_share_init(&s, 300 * gbit, rtt);
	TAP_EQ(metaroce_share_rate(&s, &a, DSF_EPOCH), 0, "share: none for who doesn't send");
	metaroce_share_heard(&s, &a, 1000, 1 << 30, false, false, (dsf_instant){ at });
	TAP_EQ(metaroce_share_rate(&s, &a, (dsf_instant){ at }), 300 * gbit, "share: all for one");
	metaroce_share_heard(&s, &b, 1000, 1 << 30, false, false, (dsf_instant){ at });
	TAP_EQ(metaroce_share_rate(&s, &b, (dsf_instant){ at }), 150 * gbit,
		"share: half for each of two, at once");
	metaroce_share_heard(&s, &c, 1000, 1 << 30, false, false, (dsf_instant){ at });
	TAP_EQ(metaroce_share_rate(&s, &a, (dsf_instant){ at }), 100 * gbit,
		"share: a third for each of three");
	/* a and b take their share and want more; c is slow for reasons of its own, at 20 Gbit/s.
	 */
	for (; at < 20 * rtt; at += rtt / 10) {
		metaroce_share_heard(&s, &a, 12500, 1 << 30, true, false, (dsf_instant){ at });
		metaroce_share_heard(&s, &b, 12500, 1 << 30, true, false, (dsf_instant){ at });
		metaroce_share_heard(&s, &c, 2500, 1 << 30, false, false, (dsf_instant){ at });
	}
	at -= rtt / 10;
	TAP_OK(metaroce_share_rate(&s, &c, (dsf_instant){ at }) >= 24 * gbit &&
			metaroce_share_rate(&s, &c, (dsf_instant){ at }) <= 28 * gbit,
		"share: who is slow gets a little more than it uses");
	TAP_OK(metaroce_share_rate(&s, &a, (dsf_instant){ at }) >= 135 * gbit &&
			a.rate_bps + b.rate_bps + c.rate_bps <= 301 * gbit,
		"share: the others share what it leaves");
	metaroce_share_heard(&s, &a, 100, 0, false, false, (dsf_instant){ at });
	TAP_OK(metaroce_share_rate(&s, &b, (dsf_instant){ at + rtt }) > 240 * gbit,
		"share: who has nothing left leaves its share");
	at += 4 * rtt;
	metaroce_share_heard(&s, &b, 100, 1 << 30, true, false, (dsf_instant){ at });
	TAP_EQ(metaroce_share_rate(&s, &b, (dsf_instant){ at + rtt }), 300 * gbit,
		"share: who is silent is forgotten");
	TAP_EQ(s.count, 1, "share: one sender left");
	metaroce_share_heard(&s, &b, 100, 1 << 30, true, true, (dsf_instant){ at + rtt });
	TAP_EQ(metaroce_share_rate(&s, &b, (dsf_instant){ at + 3 * rtt }), 285 * gbit,
		"share: less while packets come marked");
}

static void memory_may_fail_anywhere(void)
{
	static struct pipe pipe;
	uint32_t finished = 0, runs = 0;

	for (long fail = 0; fail < 60; fail++, runs++) {
		struct pipe_flow flow = { 0 };
		bool open;

		pipe_init(&pipe, 2, 5);
		dsf_heap_reserve(&pipe.events, 4096); /* the harness's own can't fail */
		pipe.fail_after = fail;
		pipe_nic_add(&pipe, 4, 0);
		pipe_nic_add(&pipe, 4, 0);
		if (pipe.nics[0].m == NULL || pipe.nics[1].m == NULL) {
			pipe_close(&pipe);
			continue;
		}
		open = pipe_flow_open(&pipe, &flow, 0, 1, 1);
		for (int i = 0; open && i < 10; i++)
			pipe_flow_post(&pipe, &flow, 50000);
		/* It fails for a while only. */
		if (open)
			pipe_run(&pipe, 3000);
		pipe.fail_after = -1;
		if (open) {
			pipe_run(&pipe, NS_PER_MS);
			finished += pipe.nics[0].completed == flow.posted;
			if (pipe.nics[0].completed != flow.posted)
				printf("# failing at %ld: %u of %u\n", fail,
					(unsigned)pipe.nics[0].completed, flow.posted);
		} else {
			finished++;
		}
		pipe_close(&pipe);
		if (pipe.blocks != 0)
			TAP_EQ(pipe.blocks, 0, "memory fails at call %ld: all given back", fail);
	}
	TAP_OK(finished > 30, "memory: %u of %u runs got as far as traffic, and finished", finished,
		runs);
}

static void bad_configurations_are_refused(void)
{
	static struct pipe pipe;
	struct metaroce_config config;
	struct metaroce_peer nowhere = { .planes = 1 };
	struct metaroce_peer peer;
	struct metaroce *m;
	int err = 0;

	pipe_init(&pipe, 1, 1);
	config = (struct metaroce_config){ .memory = &pipe.memory,
		.planes = 1,
		.paths = 4,
		.payload_bytes = 4096,
		.base_rtt_ns = 1000,
		.address = { pipe_address(0, 0) } };
	m = metaroce_new(&config);
	TAP_OK(m != NULL, "config: a good one");
	TAP_OK(metaroce_qp_new(m, 1, 2, &nowhere, 0, &err) == NULL && err == -DSF_E_UNREACHABLE,
		"stream: to nowhere");
	peer = pipe_peer(&pipe, 1);
	TAP_OK(metaroce_qp_new(m, 0, 2, &peer, 0, &err) == NULL && err == -DSF_E_BADFIELD,
		"stream: number 0");
	TAP_OK(metaroce_qp_new(m, 1, 1 << 24, &peer, 0, &err) == NULL && err == -DSF_E_BADFIELD,
		"stream: number too large");
	TAP_OK(metaroce_qp_new(m, 1, 2, &peer, 0, &err) != NULL, "stream: a good one");
	TAP_OK(metaroce_qp_new(m, 1, 2, &peer, 0, &err) == NULL && err == -DSF_E_DUPLICATE,
		"stream: twice");
	TAP_EQ(metaroce_region_add(m, 7, 0, 100, 1), 0, "region: a good one");
	TAP_EQ(metaroce_region_add(m, 7, 0, 100, 1), -DSF_E_DUPLICATE, "region: twice");
	metaroce_free(m);
	config.paths = 0;
	TAP_OK(metaroce_new(&config) == NULL, "config: no paths");
	config.paths = METAROCE_PATHS_MAX + 1;
	TAP_OK(metaroce_new(&config) == NULL, "config: too many paths");
	config.paths = 4;
	config.payload_bytes = 0;
	TAP_OK(metaroce_new(&config) == NULL, "config: no payload");
	config.payload_bytes = 65536;
	TAP_OK(metaroce_new(&config) == NULL, "config: too large a payload");
	config.payload_bytes = 4096;
	memset(config.address, 0, sizeof(config.address));
	TAP_OK(metaroce_new(&config) == NULL, "config: no port");
	pipe_close(&pipe);
	TAP_EQ(pipe.blocks, 0, "config: all memory given back");
}

static void bad_access_fails_the_stream(void)
{
	static struct pipe pipe;
	struct pipe_flow flow;
	struct metaroce_qp_view view;
	struct metaroce_write w;

	pipe_init(&pipe, 1, 2);
	pipe_nic_add(&pipe, 4, 0);
	pipe_nic_add(&pipe, 4, 0);
	pipe_flow_open(&pipe, &flow, 0, 1, 1);
	pipe_flow_post(&pipe, &flow, 10000);
	w = (struct metaroce_write){ .memory = flow.memory, .size = 10000, .address = 5, .key = 1 };
	metaroce_post_write(pipe.nics[0].m, flow.out, &w, (dsf_instant){ 0 });
	pipe_flow_post(&pipe, &flow, 10000);
	pipe_run(&pipe, NS_PER_MS);
	metaroce_qp_look(flow.out, &view);
	TAP_OK(view.status == -DSF_E_ACCESS, "access: the stream has failed");
	TAP_EQ(pipe.nics[0].completed, 3, "access: every message is told");
	TAP_OK(pipe.nics[0].failed >= 2, "access: those from the bad one on as failed");
	TAP_EQ(metaroce_post_write(pipe.nics[0].m, flow.out, &w, (dsf_instant){ pipe.now }),
		-DSF_E_STATE, "access: it takes no more");
	pipe_close(&pipe);
	TAP_EQ(pipe.blocks, 0, "access: all memory given back");
}

/* The second NIC loses all it knew. */
static void restart(struct pipe *pipe, uint64_t seed)
{
	struct metaroce_config config = { .memory = &pipe->memory,
		.seed = seed,
		.planes = 1,
		.paths = 4,
		.payload_bytes = 4096,
		.base_rtt_ns = 4400,
		.address = { pipe_address(1, 0) },
		.rate_bps = { pipe->rate_bps } };

	metaroce_free(pipe->nics[1].m);
	pipe->nics[1].m = metaroce_new(&config);
	metaroce_carrier(pipe->nics[1].m, 0, true, (dsf_instant){ pipe->now });
}

static void a_restarted_peer_is_noticed(void)
{
	static struct pipe pipe;
	struct pipe_flow flow, again;

	pipe_init(&pipe, 1, 3);
	pipe_nic_add(&pipe, 4, 0);
	pipe_nic_add(&pipe, 4, 0);
	pipe_flow_open(&pipe, &flow, 0, 1, 1);
	pipe_flow_post(&pipe, &flow, 10000);
	pipe_run(&pipe, 100000);
	TAP_EQ(pipe.nics[0].completed, 1, "restart: a message before it");
	restart(&pipe, 1234);
	pipe_flow_post(&pipe, &flow, 10000);
	pipe_run(&pipe, pipe.now + NS_PER_MS);
	TAP_EQ(pipe.nics[0].failed, 1, "restart: what was under way fails");
	metaroce_qp_free(pipe.nics[0].m, flow.out);
	TAP_OK(pipe_flow_open(&pipe, &again, 0, 1, 1), "restart: new streams");
	pipe_flow_post(&pipe, &again, 10000);
	pipe_run(&pipe, pipe.now + NS_PER_MS);
	TAP_EQ(pipe.nics[0].completed, 3, "restart: and a message on them");
	TAP_EQ(pipe.nics[0].failed, 1, "restart: which doesn't fail");
	pipe_close(&pipe);
	TAP_EQ(pipe.blocks, 0, "restart: all memory given back");
}

/* Streams of a new run on a connection that the last one left: the peer was restarted between. */
static void a_new_stream_survives_the_restart_before_it(void)
{
	static struct pipe pipe;
	struct pipe_flow flow, again;

	pipe_init(&pipe, 1, 3);
	pipe_nic_add(&pipe, 4, 0);
	pipe_nic_add(&pipe, 4, 0);
	pipe_flow_open(&pipe, &flow, 0, 1, 1);
	pipe_flow_post(&pipe, &flow, 10000);
	pipe_run(&pipe, 100000);
	restart(&pipe, 1234);
	TAP_OK(pipe_flow_open(&pipe, &again, 0, 1, 2), "again: a stream after the restart");
	metaroce_qp_connect(again.out, (dsf_instant){ pipe.now });
	pipe_flow_post(&pipe, &again, 10000);
	pipe_run(&pipe, pipe.now + NS_PER_MS);
	TAP_EQ(pipe.nics[0].completed, 2, "again: its message is complete");
	TAP_EQ(pipe.nics[0].failed, 0, "again: it didn't fail");
	TAP_EQ(metaroce_connections(pipe.nics[0].m), 1, "again: on one connection");
	pipe_flow_post(&pipe, &flow, 10000);
	pipe_run(&pipe, pipe.now + NS_PER_MS);
	TAP_EQ(flow.posted, 1, "again: the old stream has failed and takes no more");
	/* Nothing was lost meanwhile: the check alone changes nothing. */
	metaroce_qp_connect(again.out, (dsf_instant){ pipe.now });
	pipe_flow_post(&pipe, &again, 10000);
	pipe_run(&pipe, pipe.now + NS_PER_MS);
	TAP_EQ(pipe.nics[0].completed, 3, "again: a check that finds the same peer");
	TAP_EQ(pipe.nics[0].failed, 0, "again: fails nothing");
	pipe_close(&pipe);
	TAP_EQ(pipe.blocks, 0, "again: all memory given back");
}

/* silent: nothing arrives there any more. Else only the stream is missing: packets are answered,
 * but nothing gets on. asking: from the first hello on. */
static void a_peer_that_stays_away_is_given_up(bool silent, bool asking)
{
	static struct pipe pipe;
	struct metaroce_qp_view view;
	struct pipe_flow flow;
	uint64_t packets;

	pipe_init(&pipe, 1, 4);
	pipe_nic_add(&pipe, 4, 0);
	pipe_nic_add(&pipe, 4, 0);
	pipe_flow_open(&pipe, &flow, 0, 1, 1);
	if (!asking) {
		pipe_flow_post(&pipe, &flow, 10000);
		pipe_run(&pipe, 100000);
		TAP_EQ(pipe.nics[0].completed, 1, "away: a message before");
	}
	pipe.nics[1].ports[0].up = !silent;
	if (!silent)
		metaroce_qp_free(pipe.nics[1].m, flow.in);
	pipe_flow_post(&pipe, &flow, 100000);
	pipe_run(&pipe, pipe.now + 15 * NS_PER_MS);
	TAP_EQ(pipe.nics[0].failed, 0, "away: patience at first");
	pipe_run(&pipe, pipe.now + 10 * NS_PER_MS);
	metaroce_qp_look(flow.out, &view);
	TAP_EQ(pipe.nics[0].failed, 1, "away: the message is told as failed");
	TAP_EQ(view.status, -DSF_E_UNREACHABLE, "away: and says why");
	pipe_run(&pipe, pipe.now + 10 * NS_PER_MS);
	packets = pipe.packets;
	pipe_run(&pipe, pipe.now + 10 * NS_PER_MS);
	TAP_EQ(pipe.packets, packets, "away: nothing is sent to it any more");
	/* It comes back, and streams that are new find it. */
	pipe.nics[1].ports[0].up = true;
	TAP_OK(pipe_flow_open(&pipe, &flow, 0, 1, 2), "away: a new stream");
	pipe_flow_post(&pipe, &flow, 10000);
	pipe_run(&pipe, pipe.now + NS_PER_MS);
	metaroce_qp_look(flow.out, &view);
	TAP_EQ(view.messages_done, 1, "away: carries a message when it is back");
	pipe_close(&pipe);
	TAP_EQ(pipe.blocks, 0, "away: all memory given back");
}

/* The peer has everything and answers, but takes longer to place it than any time-out. */
static void a_slow_receiver_is_waited_for(void)
{
	static struct pipe pipe;
	struct pipe_flow flow;

	pipe_init(&pipe, 1, 6);
	pipe_nic_add(&pipe, 4, 0);
	pipe_nic_add(&pipe, 4, 0);
	pipe_flow_open(&pipe, &flow, 0, 1, 1);
	pipe.place_delay_ns = 400 * NS_PER_MS;
	for (int i = 0; i < 8; i++)
		pipe_flow_post(&pipe, &flow, 4096);
	pipe_run(&pipe, 500 * NS_PER_MS);
	TAP_EQ(pipe.nics[0].completed, 8, "slow: every message is told");
	TAP_EQ(pipe.nics[0].failed, 0, "slow: none has failed");
	pipe_close(&pipe);
	TAP_EQ(pipe.blocks, 0, "slow: all memory given back");
}

int main(void)
{
	for (uint64_t seed = 1; seed < 6; seed++)
		sack_agrees_with_a_list(seed);
	pattern_is_the_same_however_it_is_cut();
	windows_follow_marks();
	shares_are_max_min();
	memory_may_fail_anywhere();
	bad_configurations_are_refused();
	bad_access_fails_the_stream();
	a_restarted_peer_is_noticed();
	a_new_stream_survives_the_restart_before_it();
	a_peer_that_stays_away_is_given_up(true, false);
	a_peer_that_stays_away_is_given_up(true, true);
	a_peer_that_stays_away_is_given_up(false, false);
	a_slow_receiver_is_waited_for();
	return TAP_DONE();
}
