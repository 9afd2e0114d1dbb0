/*
 * The output queues of a router: order and shares of classes, tail drop, marks, flush.
 */
#include "node/queue.h"
#include "base/err.h"
#include "ip/packet.h"
#include "tests/memory.h"
#include "tests/tap.h"

#define RATE  400000000000ull /* 50 bytes a nanosecond */
#define SIZE  4976u           /* 5,000 with what is around it: 100 ns */
#define TRAIN 16384u
#define LIMIT 1000000u

static struct test_memory memory = TEST_MEMORY(memory);
static struct fabric_packets packets;
static struct node_ethernet ethernet;
static struct node_queues queues;

static void open_port(uint64_t rate_bps, uint32_t train_bytes)
{
	struct topo_fabric fabric = {
		.train_bytes = train_bytes, .weight_rdma = 8, .weight_default = 5
	};
	struct node_impairment none = { 0 };

	fabric_packets_init(&packets, &memory.memory, 64u << 20);
	node_ethernet_init(&ethernet, &memory.memory, &packets, 2, 1, 3);
	ethernet.ports[1].used = true;
	ethernet.ports[1].queue_bytes = LIMIT;
	node_ethernet_impair(&ethernet, 1, &none, rate_bps);
	node_ethernet_carrier(&ethernet, 1, true, (dsf_instant){ 0 });
	TAP_EQ(node_queues_init(&queues, &ethernet, &fabric, 1, 3), 0, "queues");
}

static void close_port(void)
{
	node_queues_close(&queues);
	node_ethernet_close(&ethernet);
	fabric_packets_close(&packets);
	TAP_EQ(memory.live, 0, "all memory given back");
}

/* A packet whose number stands in its last bytes. */
static int push(enum fabric_class class, uint32_t number, bool ecn, dsf_instant now)
{
	struct fabric_packet *packet = fabric_packet_new(&packets, 64);

	memset(packet->bytes, 0, 64);
	packet->size = SIZE;
	packet->class = (uint8_t) class;
	packet->ecn_capable = ecn;
	memcpy(packet->bytes + 60, &number, sizeof(number));
	return node_queues_push(&queues, 1, packet, now);
}

struct gone {
	dsf_instant at;
	enum fabric_class class;
	uint32_t number;
	bool marked;
};

/* The next that leaves, time passing as far as it has to; false: all has left. */
static bool next(struct gone *g)
{
	struct fabric_packet *packet;

	while ((packet = fabric_packet_queue_pop(&ethernet.out)) == NULL) {
		dsf_instant at = node_queues_deadline(&queues);

		if (dsf_time_is_never(at))
			return false;
		node_queues_expire(&queues, at);
	}
	g->at = packet->since;
	g->class = (enum fabric_class)packet->class;
	g->marked = (packet->bytes[IP_ETHERNET_SIZE + 1] >> 4 & 3) == IP_ECN_CE;
	memcpy(&g->number, packet->bytes + 60, sizeof(g->number));
	fabric_packet_free(&packets, packet);
	return true;
}

static void in_order(uint32_t train_bytes)
{
	uint32_t wrong = 0, idle = 0, count = 0;
	struct gone g;

	open_port(RATE, train_bytes);
	for (uint32_t i = 0; i < 100; i++)
		push(FABRIC_CLASS_RDMA, i, false, (dsf_instant){ 0 });
	for (; next(&g); count++) {
		wrong += g.number != count;
		idle += g.at.ns != 100 * (count + 1);
	}
	TAP_OK(count == 100 && wrong == 0, "trains of %u: one class leaves in order", train_bytes);
	TAP_EQ(idle, 0, "and the line never idles");
	close_port();
}

static void classes(void)
{
	uint32_t shares[FABRIC_CLASSES] = { 0 };
	dsf_instant last_nc = DSF_EPOCH;
	struct gone g;

	open_port(RATE, TRAIN);
	for (uint32_t i = 0; i < 190; i++) {
		push(FABRIC_CLASS_RDMA, i, false, (dsf_instant){ 0 });
		push(FABRIC_CLASS_DEFAULT, i, false, (dsf_instant){ 0 });
	}
	for (uint32_t i = 0; i < 10; i++)
		push(FABRIC_CLASS_NC, i, false, (dsf_instant){ 0 });
	for (uint32_t i = 0; i < 140 && next(&g); i++) {
		shares[g.class]++;
		if (g.class == FABRIC_CLASS_NC)
			last_nc = g.at;
	}
	TAP_EQ(shares[FABRIC_CLASS_NC], 10, "all of class nc has left");
	TAP_OK(last_nc.ns <= 1000 + 400, "behind one train at most: %" PRIu64 " ns", last_nc.ns);
	/* 130 others: 80 and 50, but for the beginning and the end of a turn. */
	TAP_OK(shares[FABRIC_CLASS_RDMA] >= 76 && shares[FABRIC_CLASS_RDMA] <= 84,
		"rdma has 8 of 13: %u", shares[FABRIC_CLASS_RDMA]);
	while (next(&g))
		shares[g.class]++;
	TAP_OK(shares[FABRIC_CLASS_RDMA] == 190 && shares[FABRIC_CLASS_DEFAULT] == 190,
		"who is alone has all");
	close_port();
}

static void tail_drop(void)
{
	uint32_t taken = 0, full = 0, count = 0;
	struct gone g;

	open_port(RATE, TRAIN);
	for (uint32_t i = 0; i < 300; i++) {
		int err = push(FABRIC_CLASS_RDMA, i, false, (dsf_instant){ 0 });

		taken += err == 0;
		full += err == -DSF_E_FULL;
	}
	/* The port has taken a train (4 packets), 200 fit. */
	TAP_OK(taken == 204 && full == 96, "what doesn't fit is dropped: %u taken", taken);
	TAP_EQ(queues.ports[1].dropped, 96, "and counted");
	TAP_EQ(node_queues_bytes(&queues, 1), LIMIT, "the queue is full");
	TAP_EQ(push(FABRIC_CLASS_DEFAULT, 0, false, (dsf_instant){ 0 }), 0,
		"other classes have queues of their own");
	while (next(&g))
		count++;
	TAP_EQ(count, 205, "the others leave");
	for (uint32_t i = 0; i < 50; i++)
		push(FABRIC_CLASS_RDMA, i, false, (dsf_instant){ 50000 });
	node_queues_flush(&queues, 1);
	TAP_EQ(queues.ports[1].dropped, 96 + 46, "flushed packets are counted, once");
	TAP_OK(dsf_time_is_never(node_queues_deadline(&queues)), "nothing waits");
	for (count = 0; next(&g); count++)
		;
	TAP_EQ(count, 4, "what the port had taken leaves");
	close_port();
}

/* Marks of packets that joined where so many bytes waited: share in percent. */
static uint32_t marked_at(uint32_t waiting, bool ecn)
{
	uint32_t marked = 0, of = 0;
	struct gone g;

	for (uint32_t round = 0; round < 400; round++) {
		dsf_instant now = { round * 1000000ull };
		uint32_t before = 4 + waiting / 5000;

		queues.ports[1].ecn_max_bytes = UINT64_MAX;
		for (uint32_t i = 0; i < before; i++)
			push(FABRIC_CLASS_RDMA, i, false, now);
		queues.ports[1].ecn_min_bytes = 100000;
		queues.ports[1].ecn_max_bytes = 300000;
		push(FABRIC_CLASS_RDMA, 9999, ecn, now);
		while (next(&g)) {
			of += g.number == 9999;
			marked += g.marked;
		}
	}
	return of == 400 ? marked * 100 / of : UINT32_MAX;
}

static void marks(void)
{
	uint32_t share;

	open_port(RATE, TRAIN);
	TAP_EQ(marked_at(100000, true), 0, "no mark up to ecn_min");
	share = marked_at(200000, true);
	TAP_OK(share > 40 && share < 60, "half way to ecn_max about half: %u %%", share);
	TAP_EQ(marked_at(300000, true), 100, "all from ecn_max on");
	TAP_EQ(marked_at(300000, false), 0, "never what doesn't know ECN");
	TAP_OK(queues.ports[1].marked > 500 && queues.ports[1].marked < 700, "marks are counted");
	close_port();
}

static void unlimited(void)
{
	uint32_t count = 0;
	struct gone g;

	open_port(0, TRAIN);
	for (uint32_t i = 0; i < 1000; i++)
		push(FABRIC_CLASS_RDMA, i, true, (dsf_instant){ 7 });
	TAP_OK(dsf_time_is_never(node_queues_deadline(&queues)), "an unlimited port has no queue");
	while (next(&g))
		count += g.at.ns == 7;
	TAP_EQ(count, 1000, "all leaves at once");
	close_port();
}

static void short_memory(void)
{
	struct topo_fabric fabric = { .train_bytes = TRAIN, .weight_rdma = 8, .weight_default = 5 };
	uint32_t failed = 0;

	for (unsigned long nth = 1; nth <= 3; nth++) {
		node_ethernet_init(&ethernet, &memory.memory, &packets, 2, 1, 3);
		memory.fail_at = nth;
		failed += node_queues_init(&queues, &ethernet, &fabric, 1, 3) == -DSF_E_NOMEM;
		memory.fail_at = 0;
		node_queues_close(&queues);
		node_ethernet_close(&ethernet);
		TAP_EQ(memory.live, 0, "nothing leaks");
	}
	TAP_EQ(failed, 2, "memory is short at each of its two places");
}

int main(void)
{
	in_order(TRAIN);
	in_order(0);
	classes();
	tail_drop();
	marks();
	unlimited();
	short_memory();
	return TAP_DONE();
}
