/*
 * The sending side of an Ethernet port: when frames leave, in which order, and which don't.
 */
#include "node/ethernet.h"
#include "base/err.h"
#include "tests/memory.h"
#include "tests/tap.h"

#define RATE   100000000000ull /* 8 bytes in 0.64 ns */
#define FRAMES 20000u

static struct test_memory memory = TEST_MEMORY(memory);
static struct fabric_packets packets;
static struct node_ethernet ethernet;

static void open_port(uint64_t seed, const struct node_impairment *impairment)
{
	fabric_packets_init(&packets, &memory.memory, 64u << 20);
	TAP_EQ(node_ethernet_init(&ethernet, &memory.memory, &packets, 2, seed, 3), 0, "a port");
	ethernet.ports[1].used = true;
	ethernet.ports[1].queue_bytes = 1u << 20;
	node_ethernet_impair(&ethernet, 1, impairment, RATE);
	node_ethernet_carrier(&ethernet, 1, true, (dsf_instant){ 0 });
}

static void close_port(void)
{
	node_ethernet_close(&ethernet);
	fabric_packets_close(&packets);
	TAP_EQ(memory.live, 0, "all memory given back");
}

static bool send(uint32_t size, dsf_instant now)
{
	struct fabric_packet *packet = fabric_packet_new(&packets, 64);

	packet->size = size;
	return node_ethernet_send(&ethernet, 1, packet, now);
}

/* Departure of the next frame in the port's order; DSF_NEVER: none. */
static dsf_instant next(void)
{
	struct fabric_packet *packet = fabric_packet_queue_pop(&ethernet.out);
	dsf_instant at = packet == NULL ? DSF_NEVER : packet->since;

	if (packet != NULL)
		fabric_packet_free(&packets, packet);
	return at;
}

static void in_turn(void)
{
	struct node_impairment none = { 0 };

	open_port(1, &none);
	send(1226, (dsf_instant){ 0 }); /* 1,250 with what is around it: 100 ns */
	send(1226, (dsf_instant){ 50 });
	send(1226, (dsf_instant){ 1000 });
	TAP_EQ(next().ns, 100, "it leaves when its last bit has");
	TAP_EQ(next().ns, 200, "the next one behind it");
	TAP_EQ(next().ns, 1100, "a free port starts at once");
	node_ethernet_carrier(&ethernet, 1, false, (dsf_instant){ 2000 });
	TAP_OK(!send(1226, (dsf_instant){ 2000 }) && ethernet.ports[1].dropped == 1,
		"nothing leaves without carrier");
	close_port();
}

/* Frames a microsecond apart through a port that reorders: how many come behind a later one. */
static uint32_t overtaken(
	uint64_t seed, const struct node_impairment *impairment, uint64_t *hash, uint64_t *most_ns)
{
	dsf_instant highest = { 0 };
	uint32_t held = 0;

	open_port(seed, impairment);
	*hash = *most_ns = 0;
	for (uint32_t i = 0; i < FRAMES; i++) {
		dsf_instant now = { 1000 + i * 110ull }, at;

		send(1226, now);
		at = next();
		/* Put out in order of sending: who leaves later than one behind it was held. */
		if (dsf_time_before(at, highest))
			held++;
		highest = dsf_time_max(highest, at);
		*hash = dsf_mix(*hash ^ at.ns);
		if (dsf_time_since(now, at) > *most_ns)
			*most_ns = dsf_time_since(now, at);
	}
	TAP_EQ(ethernet.ports[1].frames_tx, FRAMES, "every frame leaves");
	close_port();
	return held;
}

static void reordering(void)
{
	struct node_impairment none = { 0 }, some = { .reorder_ppm = 10000 },
			       jitter = { .jitter_ns = 5000, .delay_ns = 100 },
			       both = { .jitter_ns = 5000, .reorder_ppm = 10000 },
			       all = { .reorder_ppm = 1000000 };
	uint64_t hash, same, most_ns;
	uint32_t count;

	TAP_EQ(overtaken(1, &none, &hash, &most_ns), 0, "nothing overtakes on a good port");
	TAP_EQ(most_ns, 100, "nothing waits on it either");
	TAP_EQ(overtaken(1, &jitter, &hash, &most_ns), 0, "jitter keeps the order");
	TAP_OK(most_ns > 5000 && most_ns <= 5300, "and delays by up to %u ns", (unsigned)most_ns);
	/* One in a hundred is held for two largest packets: 1.5 us or so, 13 others pass it. */
	count = overtaken(1, &some, &hash, &most_ns);
	TAP_OK(count > FRAMES / 100 * 10 && count < FRAMES / 100 * 16,
		"reorder: %u of %u frames pass one that is held", count, FRAMES);
	TAP_OK(most_ns > 1000 && most_ns < 2000, "reorder: held for %u ns", (unsigned)most_ns);
	(void)overtaken(1, &some, &same, &most_ns);
	TAP_EQ(same, hash, "reorder: the same seed, the same frames");
	(void)overtaken(2, &some, &same, &most_ns);
	TAP_OK(same != hash, "reorder: another seed, others");
	TAP_OK(overtaken(1, &both, &hash, &most_ns) > 0, "reorder: with jitter too");
	TAP_EQ(overtaken(1, &all, &hash, &most_ns), 0, "reorder: when all are held none is passed");
}

static void losses_are_counted(void)
{
	struct node_impairment loss = { .loss_ppm = 100000 }, corrupt = { .corrupt_ppm = 100000 },
			       silent = { .silent = true };
	uint32_t sent = 0;

	open_port(5, &loss);
	for (uint32_t i = 0; i < FRAMES; i++) {
		sent += send(1226, (dsf_instant){ i * 1000ull });
		(void)next();
	}
	TAP_OK(ethernet.ports[1].impaired > FRAMES / 11 &&
			ethernet.ports[1].impaired < FRAMES / 9 &&
			sent + ethernet.ports[1].impaired == FRAMES,
		"loss: %u of %u", (unsigned)ethernet.ports[1].impaired, FRAMES);
	close_port();
	open_port(5, &corrupt);
	for (uint32_t i = 0; i < FRAMES; i++) {
		(void)send(1226, (dsf_instant){ i * 1000ull });
		(void)next();
	}
	TAP_OK(ethernet.ports[1].corrupted > FRAMES / 11 &&
			ethernet.ports[1].corrupted < FRAMES / 9 &&
			ethernet.ports[1].corrupted + ethernet.ports[1].frames_tx == FRAMES,
		"corruption: %u of %u", (unsigned)ethernet.ports[1].corrupted, FRAMES);
	close_port();
	open_port(5, &silent);
	TAP_OK(!send(1226, (dsf_instant){ 0 }) && dsf_time_is_never(next()), "silence");
	TAP_EQ(node_ethernet_backlog(&ethernet, 1, (dsf_instant){ 0 }), 1250,
		"silence: it takes its time all the same");
	close_port();
}

int main(void)
{
	in_turn();
	reordering();
	losses_are_counted();
	return TAP_DONE();
}
