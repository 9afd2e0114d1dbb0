#include "sim/stream.h"
#include <stdlib.h>
#include "base/err.h"
#include "base/rng.h"
#include "ip/packet.h"
#include "sim/segment.h"
#include "tests/memory.h"
#include "tests/tap.h"

#define DELAY_NS    (5 * NS_PER_US)
#define PACKETS_MAX 4096u
#define STREAMS_MAX 8u
#define PORT        NODE_STREAM_FSDB

static struct test_memory memory = TEST_MEMORY(memory);

/* The owner of one device's streams: sends bytes that are a function of their place, checks what
 * comes. */
struct end {
	bool open, closed, reset;
	uint32_t to_send, sent, room, received, wrong;
};

struct device {
	struct sim_streams *streams;
	struct dsf_ip6 address;
	struct end ends[STREAMS_MAX];
	uint32_t count; /* ends that were numbered */
	bool refuses;
};

struct packet {
	dsf_instant at;
	uint64_t sequence;
	uint32_t to, size;
	uint8_t bytes[SIM_STREAM_PACKET];
};

struct world {
	struct device devices[2];
	struct packet *packets;
	uint32_t count;
	uint64_t sequence, sent;
	uint32_t loss_ppm, double_ppm, jitter_ns;
	struct dsf_rng rng;
	dsf_instant now;
	uint64_t hash;
};

static struct world w;

static uint8_t byte_at(uint32_t stream, uint32_t at)
{
	return (uint8_t)(at * 7 + (at >> 8) + stream);
}

static int owner_accept(void *user, const struct node_stream_ends *ends, dsf_instant now)
{
	struct device *d = user;

	(void)now;
	if (d->refuses || (ends->local_port != PORT && ends->local_port != NODE_STREAM_BGP))
		return -DSF_E_UNKNOWN;
	d->ends[d->count].open = true;
	return (int)d->count++;
}

static void owner_connected(void *user, uint32_t stream, dsf_instant now)
{
	struct device *d = user;

	(void)now;
	d->ends[stream].open = true;
}

static void owner_input(
	void *user, uint32_t stream, const uint8_t *bytes, uint32_t size, dsf_instant now)
{
	struct device *d = user;
	struct end *e = &d->ends[stream];

	w.hash = dsf_mix(w.hash ^ now.ns ^ (uint64_t)size << 40);
	for (uint32_t i = 0; i < size; i++)
		e->wrong += bytes[i] != byte_at(0, e->received++);
}

static void owner_writable(void *user, uint32_t stream, uint32_t room, dsf_instant now)
{
	struct device *d = user;

	(void)now;
	d->ends[stream].room = room;
}

static void owner_closed(void *user, uint32_t stream, bool reset, dsf_instant now)
{
	struct device *d = user;

	(void)now;
	d->ends[stream].open = false;
	d->ends[stream].closed = true;
	d->ends[stream].reset = reset;
}

static bool start(uint32_t device)
{
	struct device *d = &w.devices[device];
	struct sim_stream_owner owner = { owner_accept, owner_connected, owner_input,
		owner_writable, owner_closed, d };

	*d = (struct device){ .address = { { 0xfd, [15] = (uint8_t)(device + 1) } } };
	d->streams = sim_streams_new(&memory.memory, &owner, device + w.now.ns);
	return d->streams != NULL;
}

static void open_world(uint64_t seed)
{
	struct packet *packets = w.packets;

	if (packets == NULL)
		packets = malloc(PACKETS_MAX * sizeof(*packets));
	w = (struct world){ .packets = packets, .now = { NS_PER_MS } };
	dsf_rng_init(&w.rng, seed);
	start(0);
	start(1);
}

static void close_world(const char *name)
{
	sim_streams_free(w.devices[0].streams);
	sim_streams_free(w.devices[1].streams);
	TAP_EQ(memory.live, 0, "%s: nothing is left", name);
}

static void carry(uint32_t from, const uint8_t *bytes, uint32_t size)
{
	uint32_t copies = 1 + dsf_rng_chance(&w.rng, w.double_ppm);

	if (dsf_rng_chance(&w.rng, w.loss_ppm))
		copies = 0;
	w.sent++;
	while (copies-- > 0 && w.count < PACKETS_MAX) {
		struct packet *p = &w.packets[w.count++];
		uint64_t jitter_ns = w.jitter_ns > 0 ? dsf_rng_below(&w.rng, w.jitter_ns) : 0;

		p->at = dsf_time_after(w.now, DELAY_NS + jitter_ns);
		p->sequence = w.sequence++;
		p->to = !from;
		p->size = size;
		memcpy(p->bytes, bytes, size);
	}
}

static void send_some(struct device *d, uint32_t stream)
{
	struct end *e = &d->ends[stream];
	uint8_t bytes[1000];

	while (e->open && e->sent < e->to_send && e->room > 0) {
		uint32_t size = e->to_send - e->sent;

		if (size > e->room)
			size = e->room;
		if (size > sizeof(bytes))
			size = sizeof(bytes);
		for (uint32_t i = 0; i < size; i++)
			bytes[i] = byte_at(0, e->sent + i);
		sim_stream_write(d->streams, stream, bytes, size, w.now);
		e->sent += size;
		e->room -= size;
	}
}

static void settle(void)
{
	uint8_t packet[SIM_STREAM_PACKET];
	uint32_t size;

	for (uint32_t i = 0; i < 2; i++) {
		struct device *d = &w.devices[i];

		for (uint32_t e = 0; e < d->count && d->streams != NULL; e++)
			send_some(d, e);
		while (d->streams != NULL &&
			(size = sim_stream_output(d->streams, packet, w.now)) > 0)
			carry(i, packet, size);
	}
}

/* The earliest packet, swapped to the end; NULL: none before until. */
static struct packet *take_packet(dsf_instant until)
{
	uint32_t best = w.count;

	for (uint32_t i = 0; i < w.count; i++) {
		const struct packet *p = &w.packets[i], *b = &w.packets[best];

		if (dsf_time_due(p->at, until) &&
			(best == w.count || dsf_time_before(p->at, b->at) ||
				(p->at.ns == b->at.ns && p->sequence < b->sequence)))
			best = i;
	}
	if (best == w.count)
		return NULL;
	w.count--;
	if (best != w.count) {
		struct packet taken = w.packets[best];

		w.packets[best] = w.packets[w.count];
		w.packets[w.count] = taken;
	}
	return &w.packets[w.count];
}

static void pass(uint64_t ns)
{
	dsf_instant end = dsf_time_after(w.now, ns);

	for (;;) {
		dsf_instant at = end;
		struct packet *p;

		settle();
		for (uint32_t i = 0; i < 2; i++)
			if (w.devices[i].streams != NULL)
				at = dsf_time_min(at, sim_stream_deadline(w.devices[i].streams));
		p = take_packet(at);
		w.now = dsf_time_max(w.now, p != NULL ? p->at : at);
		if (p != NULL && w.devices[p->to].streams != NULL)
			sim_stream_input(w.devices[p->to].streams, p->bytes, p->size, w.now);
		for (uint32_t i = 0; p == NULL && i < 2; i++)
			if (w.devices[i].streams != NULL)
				sim_stream_expire(w.devices[i].streams, w.now);
		if (p == NULL && !dsf_time_before(at, end))
			break;
	}
}

static void connect(uint32_t from, uint16_t port)
{
	struct device *d = &w.devices[from];
	struct node_stream_ends ends = { d->address, w.devices[!from].address, 0, port };

	(void)sim_stream_open(d->streams, d->count++, &ends, w.now);
}

static bool right(const struct end *from, const struct end *to)
{
	return from->sent == from->to_send && to->received == from->sent && to->wrong == 0;
}

static void test_clean(void)
{
	struct end *a = &w.devices[0].ends[0], *b = &w.devices[1].ends[0];

	open_world(1);
	connect(0, PORT);
	pass(3 * DELAY_NS);
	TAP_OK(a->open && b->open, "a stream stands after a round trip and a half");
	TAP_EQ(a->room, SIM_STREAM_BUFFER, "and takes its buffer's bytes");
	TAP_EQ(w.sent, 3, "three packets");
	a->to_send = 10;
	pass(3 * DELAY_NS);
	TAP_EQ(w.sent, 5, "ten bytes: a segment and its acknowledgment");
	TAP_EQ(b->received, 10, "they have come");
	a->to_send = 1000000;
	b->to_send = 1000000;
	pass(100 * NS_PER_MS);
	TAP_OK(right(a, b) && right(b, a), "a million bytes both ways");
	/* Half a buffer at a time ends in a short one. */
	TAP_OK(w.sent < 5 * (1000000 / SIM_STREAM_SEGMENT), "segments and answers: no more");
	a->to_send += 5000;
	settle();
	sim_stream_close(w.devices[0].streams, 0, false, w.now);
	pass(NS_PER_MS);
	TAP_OK(b->closed && !b->reset, "closed in good order");
	TAP_OK(right(a, b), "behind what was written");
	TAP_OK(!a->closed, "who closes isn't told");
	TAP_OK(memory.live < 10000 + 2 * sizeof(struct sim_segment) * 256, "the streams are gone");
	close_world("clean");
}

/* Loss, doubles, jitter that reorders: whatever a seed draws. */
static uint64_t run_seed(uint64_t seed, bool report)
{
	struct end *a = &w.devices[0].ends[0], *b = &w.devices[1].ends[0];
	uint64_t hash;
	bool held;

	open_world(seed);
	w.loss_ppm = (uint32_t)dsf_rng_below(&w.rng, 200000);
	w.double_ppm = (uint32_t)dsf_rng_below(&w.rng, 200000);
	w.jitter_ns = (uint32_t)dsf_rng_below(&w.rng, 20000);
	connect(0, PORT);
	a->to_send = (uint32_t)dsf_rng_below(&w.rng, 100000);
	b->to_send = (uint32_t)dsf_rng_below(&w.rng, 100000);
	pass(20 * NS_PER_S);
	held = right(a, b) && right(b, a) && !a->closed && !b->closed;
	sim_stream_close(w.devices[seed % 2].streams, 0, false, w.now);
	pass(20 * NS_PER_S);
	held &= w.devices[!(seed % 2)].ends[0].closed;
	hash = w.hash;
	sim_streams_free(w.devices[0].streams);
	sim_streams_free(w.devices[1].streams);
	held &= memory.live == 0;
	if (report && !held)
		TAP_OK(held, "seed %" PRIu64 ": all bytes, once, in order, then the end", seed);
	return held ? hash : 0;
}

static void test_seeds(void)
{
	const char *more = getenv("DSF_SEEDS");
	uint64_t seeds = more == NULL ? 50 : strtoull(more, NULL, 0);
	bool all = true;

	for (uint64_t seed = 1; seed <= seeds; seed++)
		all &= run_seed(seed, true) != 0;
	TAP_OK(all, "%" PRIu64 " seeds of loss, doubles and jitter", seeds);
	TAP_OK(run_seed(3, false) == run_seed(3, false), "a seed runs the same twice");
	TAP_OK(run_seed(3, false) != run_seed(4, false), "and another one differently");
}

static void test_refused(void)
{
	struct end *a = &w.devices[0].ends[0];

	open_world(1);
	connect(0, 99);
	pass(4 * DELAY_NS + 1);
	TAP_OK(a->closed && a->reset, "nobody listens: refused");
	w.devices[1].refuses = true;
	connect(0, PORT);
	pass(4 * DELAY_NS + 1);
	TAP_OK(w.devices[0].ends[1].closed, "the owner doesn't want it: closed");
	TAP_EQ(w.devices[1].count, 0, "and never had it");
	close_world("refused");
}

/* Whoever writes to a stream that the other side has forgotten learns it. */
static void test_half_open(void)
{
	struct end *a = &w.devices[0].ends[0];

	open_world(1);
	connect(0, PORT);
	pass(NS_PER_MS);
	sim_streams_free(w.devices[1].streams);
	w.devices[1].streams = NULL;
	a->to_send = 100;
	pass(NS_PER_S);
	TAP_OK(a->open, "the peer is gone: nothing is known");
	start(1);
	pass(2 * SIM_STREAM_RTO_MAX_NS);
	TAP_OK(a->closed && a->reset, "it is back without the stream: reset");
	connect(0, PORT);
	w.devices[0].ends[1].to_send = 100;
	pass(NS_PER_MS);
	TAP_OK(right(&w.devices[0].ends[1], &w.devices[1].ends[0]), "a new one");
	close_world("half open");
}

/* The side that connected forgets, and connects anew from the same port. */
static void test_same_port(void)
{
	struct node_stream_ends ends = { .local_port = 50000, .remote_port = PORT };

	open_world(1);
	ends.local = w.devices[0].address;
	ends.remote = w.devices[1].address;
	(void)sim_stream_open(w.devices[0].streams, w.devices[0].count++, &ends, w.now);
	pass(NS_PER_MS);
	sim_streams_free(w.devices[0].streams);
	start(0);
	(void)sim_stream_open(w.devices[0].streams, w.devices[0].count++, &ends, w.now);
	pass(4 * NS_PER_MS);
	TAP_OK(w.devices[1].ends[0].closed && w.devices[1].ends[0].reset, "the old one is reset");
	TAP_OK(w.devices[0].ends[0].open && w.devices[1].ends[1].open, "the new one stands");
	close_world("same port");
}

static void test_reset(void)
{
	open_world(1);
	connect(0, PORT);
	pass(NS_PER_MS);
	w.devices[0].ends[0].to_send = 5000;
	settle();
	sim_stream_close(w.devices[0].streams, 0, true, w.now);
	pass(NS_PER_MS);
	TAP_OK(w.devices[1].ends[0].closed && w.devices[1].ends[0].reset, "a reset is told");
	TAP_OK(w.devices[1].ends[0].wrong == 0, "what came before was right");
	close_world("reset");
}

static void test_backpressure(void)
{
	struct end *a = &w.devices[0].ends[0];

	open_world(1);
	connect(0, PORT);
	pass(NS_PER_MS);
	sim_streams_free(w.devices[1].streams);
	w.devices[1].streams = NULL;
	a->to_send = 1000000;
	pass(NS_PER_S);
	TAP_EQ(a->sent, SIM_STREAM_BUFFER, "nobody takes anything: the buffer fills");
	TAP_OK(memory.live < 3 * SIM_STREAM_BUFFER + 256 * sizeof(struct sim_segment),
		"and no more is kept");
	TAP_OK(w.sent < 500, "it is repeated ever more slowly");
	close_world("back-pressure");
}

/* Openings that never get further, from one peer. */
static void test_flood(void)
{
	struct sim_segment syn = { .flags = SIM_SEGMENT_SYN };
	uint8_t packet[SIM_STREAM_PACKET];

	open_world(1);
	syn.ends.local = (struct dsf_ip6){ { 0xfd, [15] = 9 } };
	syn.ends.remote = w.devices[1].address;
	syn.ends.remote_port = PORT;
	for (uint32_t i = 0; i < 20000; i++) {
		uint32_t size;

		syn.ends.local_port = (uint16_t)i;
		syn.sequence = i;
		size = sim_segment_write(&syn, 0, packet);
		sim_stream_input(w.devices[1].streams, packet, size, w.now);
	}
	w.loss_ppm = 1000000;
	pass(NS_PER_S);
	TAP_OK(dsf_time_is_never(sim_stream_deadline(w.devices[1].streams)),
		"openings without an end are given up");
	TAP_EQ(w.devices[1].count, 0, "the owner hasn't heard of them");
	close_world("flood");
}

static void test_segment(void)
{
	struct sim_segment s = { .ends = { { { 0xfd, [15] = 1 } }, { { 0xfd, [15] = 2 } }, 3, 4 },
		.sequence = 5,
		.acknowledged = 6,
		.flags = SIM_SEGMENT_ACK,
		.data = (const uint8_t *)"abc",
		.size = 3 };
	uint8_t packet[SIM_STREAM_PACKET];
	uint32_t size = sim_segment_write(&s, 7, packet);
	struct sim_segment back;

	TAP_EQ(sim_segment_read(&back, packet, size), 0, "a segment is read back");
	TAP_OK(back.ends.local_port == 4 && back.ends.remote_port == 3 && back.sequence == 5 &&
			back.acknowledged == 6 && back.flags == SIM_SEGMENT_ACK && back.size == 3 &&
			memcmp(back.data, "abc", 3) == 0 && back.ends.local.bytes[15] == 2,
		"as its receiver sees it");
	packet[62] ^= 1;
	TAP_EQ(sim_segment_read(&back, packet, size), -DSF_E_CHECKSUM, "a byte is wrong");
	packet[62] ^= 1;
	packet[52] = 0x40;
	TAP_OK(sim_segment_read(&back, packet, size) < 0, "a header of 16 bytes");
	packet[6] = IP_PROTOCOL_UDP;
	TAP_EQ(sim_segment_read(&back, packet, size), -DSF_E_UNSUPPORTED, "UDP");
}

/* BGP's streams between two that have keys for each other. */
static void test_keys(void)
{
	static const struct {
		const char *a, *b; /* NULL: none */
		bool stands;
	} tries[] = { { "key", "key", true }, { "key", "yek", false }, { "key", NULL, false },
		{ NULL, "key", false }, { "k", "kk", false } };

	for (unsigned i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
		const char *a = tries[i].a, *b = tries[i].b;

		open_world(1);
		if (a != NULL)
			(void)sim_stream_key(w.devices[0].streams, &w.devices[1].address, a);
		if (b != NULL)
			(void)sim_stream_key(w.devices[1].streams, &w.devices[0].address, b);
		connect(0, NODE_STREAM_BGP);
		connect(0, PORT);
		w.devices[0].ends[0].to_send = 5000;
		pass(NS_PER_S);
		TAP_EQ(w.devices[0].ends[0].open, tries[i].stands, "keys %s and %s",
			a == NULL ? "-" : a, b == NULL ? "-" : b);
		TAP_OK(w.devices[0].ends[1].open, "other streams need none");
		TAP_EQ(w.devices[0].ends[0].sent, tries[i].stands ? 5000 : 0, "and carry bytes");
		close_world("keys");
	}
}

/* Any allocation may fail. */
static void test_memory(void)
{
	unsigned long fail = 0;
	bool all = true;

	do {
		struct end *a = &w.devices[0].ends[0], *b = &w.devices[1].ends[0];

		open_world(1);
		memory.failed = false;
		memory.fail_at = ++fail;
		connect(0, PORT);
		a->to_send = b->to_send = 3000;
		pass(NS_PER_S);
		memory.fail_at = 0;
		all &= (right(a, b) && right(b, a)) || memory.failed;
		sim_streams_free(w.devices[0].streams);
		sim_streams_free(w.devices[1].streams);
	} while (memory.failed && fail < 100);
	TAP_OK(all && fail > 3 && fail < 100, "any of %lu allocations may fail", fail - 1);
	TAP_EQ(memory.live, 0, "memory: nothing is left");
}

int main(void)
{
	test_segment();
	test_clean();
	test_seeds();
	test_refused();
	test_half_open();
	test_same_port();
	test_reset();
	test_backpressure();
	test_flood();
	test_keys();
	test_memory();
	free(w.packets);
	return TAP_DONE();
}
