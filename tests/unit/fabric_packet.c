#include "fabric/packet.h"
#include "base/rng.h"
#include "tests/memory.h"
#include "tests/tap.h"

static struct test_memory memory = TEST_MEMORY(memory);

static void sizes(void)
{
	static const struct {
		uint32_t stored;
		bool fits;
	} cases[] = { { 0, true }, { 1, true }, { 256, true }, { 257, true }, { 1664, true },
		{ 1665, true }, { 4480, true }, { 4481, true }, { FABRIC_PACKET_MAX, true },
		{ FABRIC_PACKET_MAX + 1, false }, { UINT32_MAX, false } };
	struct fabric_packets packets;

	fabric_packets_init(&packets, &memory.memory, 1 << 20);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fabric_packet *p = fabric_packet_new(&packets, cases[i].stored);

		TAP_EQ(p != NULL, cases[i].fits, "a packet of %u bytes", cases[i].stored);
		if (p == NULL)
			continue;
		memset(p->bytes, 0x5a, cases[i].stored); /* the guard behind the slab sees it */
		TAP_EQ(p->stored, cases[i].stored, "it says so");
		fabric_packet_free(&packets, p);
	}
	fabric_packets_close(&packets);
	TAP_EQ(memory.live, 0, "sizes: nothing is left");
}

static void limit(void)
{
	struct fabric_packet_queue queue = { 0 };
	struct fabric_packets packets;
	struct fabric_packet *p;
	uint64_t bytes = 0;

	fabric_packets_init(&packets, &memory.memory, 100000);
	while ((p = fabric_packet_new(&packets, 1500)) != NULL) {
		bytes += sizeof(*p) + 1664;
		fabric_packet_queue_push(&queue, p);
	}
	TAP_OK(bytes <= 100000 && bytes > 90000, "a size takes no more than its share: %" PRIu64,
		bytes);
	p = fabric_packet_new(&packets, 100);
	TAP_OK(p != NULL, "another size still has room");
	if (p != NULL)
		fabric_packet_free(&packets, p);
	fabric_packet_free(&packets, fabric_packet_queue_pop(&queue));
	p = fabric_packet_new(&packets, 1500);
	TAP_OK(p != NULL, "what was freed is there again");
	fabric_packets_close(&packets);
	TAP_EQ(memory.live, 0, "limit: nothing is left");
}

static void order(void)
{
	struct fabric_packet_queue queue = { 0 };
	struct fabric_packets packets;
	struct dsf_rng rng;
	uint32_t pushed = 0, popped = 0, wrong = 0;

	fabric_packets_init(&packets, &memory.memory, 1 << 20);
	dsf_rng_init(&rng, 7);
	TAP_OK(fabric_packet_queue_pop(&queue) == NULL, "an empty queue gives nothing");
	for (unsigned i = 0; i < 5000; i++) {
		struct fabric_packet *p;

		if (dsf_rng_below(&rng, 2) == 0 && pushed - popped < 100) {
			p = fabric_packet_new(&packets, 64);
			p->system_port = pushed++;
			fabric_packet_queue_push(&queue, p);
			continue;
		}
		p = fabric_packet_queue_pop(&queue);
		wrong += (p == NULL) != (pushed == popped);
		if (p == NULL)
			continue;
		wrong += p->system_port != popped++;
		fabric_packet_free(&packets, p);
	}
	TAP_OK(wrong == 0 && popped > 1000, "a queue keeps order");
	fabric_packets_close(&packets);
	TAP_EQ(memory.live, 0, "order: nothing is left");
}

static void no_memory(void)
{
	struct fabric_packets packets;
	struct fabric_packet *p;

	fabric_packets_init(&packets, &memory.memory, 1 << 20);
	test_memory_fail_from(&memory, 1);
	TAP_OK(fabric_packet_new(&packets, 64) == NULL, "no memory: no packet");
	test_memory_fail_from(&memory, 0);
	p = fabric_packet_new(&packets, 64);
	TAP_OK(p != NULL, "and there is one when there is memory again");
	fabric_packets_close(&packets);
	TAP_EQ(memory.live, 0, "no memory: nothing is left");
}

int main(void)
{
	sizes();
	limit();
	order();
	no_memory();
	return TAP_DONE();
}
