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

#define MEMBERS 4u

/* Members 0 to 3; the last but one stands for all. */
#define WHOLE 2u

static void open_hyperport(uint64_t seed, const struct node_impairment *impairment)
{
	fabric_packets_init(&packets, &memory.memory, 64u << 20);
	TAP_EQ(node_ethernet_init(&ethernet, &memory.memory, &packets, MEMBERS + 1, seed, 3), 0,
		"a hyperport");
	for (uint32_t i = 0; i < MEMBERS; i++) {
		ethernet.ports[i].used = true;
		ethernet.ports[i].queue_bytes = 1u << 20;
		node_ethernet_join(&ethernet, i, WHOLE);
		node_ethernet_impair(&ethernet, i, impairment, RATE);
	}
	TAP_OK(!node_ethernet_is_up(&ethernet, WHOLE), "down without members");
	for (uint32_t i = 0; i < MEMBERS; i++) {
		node_ethernet_carrier(&ethernet, i, true, (dsf_instant){ 0 });
		TAP_OK(node_ethernet_is_up(&ethernet, WHOLE), "up with any member");
		TAP_EQ(node_ethernet_rate(&ethernet, WHOLE), (i + 1) * RATE, "%u members", i + 1);
	}
	TAP_EQ(node_ethernet_queue_bytes(&ethernet, WHOLE), MEMBERS << 20, "its queue is theirs");
}

struct burst {
	uint64_t wire_bytes;
	dsf_instant last;        /* departure of the last frame */
	uint32_t disordered;     /* frames that depart before one that was sent before */
	uint32_t count[MEMBERS]; /* by member */
};

static bool send_whole(uint32_t size, dsf_instant now)
{
	struct fabric_packet *packet = fabric_packet_new(&packets, 64);

	packet->size = (uint16_t)size;
	return node_ethernet_send(&ethernet, WHOLE, packet, now);
}

/* What has been put out so far. */
static void take(struct burst *b)
{
	struct fabric_packet *packet;

	while ((packet = fabric_packet_queue_pop(&ethernet.out)) != NULL) {
		b->disordered += dsf_time_before(packet->since, b->last);
		b->last = dsf_time_max(b->last, packet->since);
		b->wire_bytes += fabric_packet_wire_bytes(packet);
		b->count[packet->system_port]++;
		fabric_packet_free(&packets, packet);
	}
}

/* Sends frames of mixed sizes, at rate percent of what all members come to. */
static struct burst send_mixed(
	struct dsf_rng *rng, uint32_t frames, uint32_t percent, dsf_instant *now)
{
	struct burst b = { 0 };

	for (uint32_t i = 0; i < frames; i++) {
		uint32_t size = 64 + (uint32_t)dsf_rng_below(rng, 9000);

		send_whole(size, *now);
		take(&b);
		*now = dsf_time_after(
			*now, dsf_time_of_bytes(size + 24u, MEMBERS * RATE) * 100 / percent);
	}
	return b;
}

/* As fast as all members, in order, whatever the sizes; each has its share. */
static void members_send_as_one(void)
{
	struct node_impairment none = { 0 }, jitter = { .jitter_ns = 3000 };
	dsf_instant now = { 1000 };
	struct dsf_rng rng;
	struct burst b;
	uint64_t ideal_ns;

	dsf_rng_init(&rng, 7);
	open_hyperport(1, &none);
	b = send_mixed(&rng, FRAMES, 100, &now);
	ideal_ns = dsf_time_of_bytes(b.wire_bytes, MEMBERS * RATE);
	TAP_EQ(b.disordered, 0, "none overtakes another");
	TAP_OK(b.last.ns - 1000 < ideal_ns + ideal_ns / 100, "%u ns for %u ns of frames",
		(unsigned)(b.last.ns - 1000), (unsigned)ideal_ns);
	for (uint32_t i = 0; i < MEMBERS; i++)
		TAP_OK(b.count[i] > FRAMES / 4 - FRAMES / 40 &&
				b.count[i] < FRAMES / 4 + FRAMES / 40 &&
				ethernet.ports[i].frames_tx == b.count[i],
			"member %u sends %u of %u", i, b.count[i], FRAMES);
	close_port();
	open_hyperport(1, &jitter);
	b = send_mixed(&rng, FRAMES, 90, &now);
	TAP_EQ(b.disordered, 0, "nor where members delay");
	close_port();
}

/* Frames that are few take turns: all members are used, none has to wait. */
static void idle_members_take_turns(void)
{
	struct node_impairment none = { 0 };
	struct burst b = { 0 };

	open_hyperport(1, &none);
	for (uint32_t i = 0; i < 8; i++) {
		dsf_instant now = { 1000 + i * 1000ull }, before = b.last;

		send_whole(1226, now);
		take(&b);
		TAP_EQ(b.last.ns, now.ns + 100, "frame %u doesn't wait", i);
		TAP_OK(dsf_time_before(before, b.last), "and comes last");
	}
	for (uint32_t i = 0; i < MEMBERS; i++)
		TAP_EQ(b.count[i], 2, "member %u", i);
	/* One that is longer: the frame behind it departs with it, though it is done sooner. */
	send_whole(9976, (dsf_instant){ 20000 });
	send_whole(1226, (dsf_instant){ 20000 });
	b = (struct burst){ 0 };
	take(&b);
	TAP_EQ(b.last.ns, 20800, "a short one waits for a long one before it");
	TAP_EQ(b.disordered, 0, "in order");
	close_port();
}

static void members_come_and_go(void)
{
	struct node_impairment none = { 0 };
	dsf_instant now = { 1000 };
	struct dsf_rng rng;
	struct burst b;
	uint64_t ideal_ns, begun_ns;

	dsf_rng_init(&rng, 8);
	open_hyperport(1, &none);
	b = send_mixed(&rng, 1000, 100, &now);
	/* What the member was given and hasn't left is the driver's to throw away; others go on. */
	node_ethernet_carrier(&ethernet, WHOLE, false, now);
	TAP_EQ(node_ethernet_rate(&ethernet, WHOLE), 3 * RATE, "three members left");
	TAP_OK(node_ethernet_is_up(&ethernet, WHOLE),
		"it is up without the one that stands for it");
	begun_ns = b.last.ns;
	b = (struct burst){ .last = b.last };
	for (uint32_t i = 0; i < 1000; i++) {
		send_whole(1226, now);
		take(&b);
	}
	ideal_ns = dsf_time_of_bytes(1000 * 1250, 3 * RATE);
	TAP_EQ(b.disordered, 0, "order holds");
	TAP_EQ(b.count[WHOLE], 0, "the dead member gets nothing");
	TAP_OK(b.last.ns - begun_ns > ideal_ns - ideal_ns / 20 &&
			b.last.ns - begun_ns < ideal_ns + ideal_ns / 20,
		"at the rate of the others: %u ns, ideal %u", (unsigned)(b.last.ns - begun_ns),
		(unsigned)ideal_ns);
	node_ethernet_carrier(&ethernet, WHOLE, true, now);
	send_whole(1226, now);
	take(&b);
	TAP_EQ(b.disordered, 0, "the first one over a member that is back doesn't overtake");
	TAP_EQ(b.count[WHOLE], 1, "though that member is free");
	now = dsf_time_after(b.last, 1000);
	for (uint32_t i = 0; i < MEMBERS; i++)
		node_ethernet_carrier(&ethernet, i, false, now);
	TAP_OK(!node_ethernet_is_up(&ethernet, WHOLE) && !send_whole(1226, now) &&
			ethernet.ports[WHOLE].dropped == 1,
		"without members it is down");
	TAP_EQ(node_ethernet_rate(&ethernet, WHOLE), MEMBERS * RATE,
		"its rate is then that of all");
	close_port();
}

/* The queue of a hyperport is as long as those of its members together. */
static void a_hyperport_has_one_queue(void)
{
	struct node_impairment none = { 0 };
	uint32_t sent = 0;
	struct burst b = { 0 };

	open_hyperport(1, &none);
	while (sent < 10000 && send_whole(1226, (dsf_instant){ 0 }))
		sent++;
	TAP_OK(sent * 1250 > MEMBERS << 20 && (sent - 2) * 1250 < MEMBERS << 20, "%u frames wait",
		sent);
	TAP_EQ(node_ethernet_backlog(&ethernet, WHOLE, (dsf_instant){ 0 }), sent * 1250,
		"its backlog");
	TAP_EQ(ethernet.ports[WHOLE].dropped, 1, "the one too much is counted");
	take(&b);
	close_port();
}

int main(void)
{
	in_turn();
	reordering();
	losses_are_counted();
	members_send_as_one();
	idle_members_take_turns();
	members_come_and_go();
	a_hyperport_has_one_queue();
	return TAP_DONE();
}
