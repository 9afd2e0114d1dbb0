/*
 * Any history of cells, time-outs and restarts of senders into reassembly. The input is a list of
 * 8-byte steps. Whatever comes: packets of one context and epoch leave in order of their sequence,
 * each once, and memory stays within what the contexts that were named can hold.
 */
#include <stdlib.h>
#include "base/err.h"
#include "fabric/reasm.h"
#include "tests/memory.h"

#define STEP       8u
#define CELL_BYTES 192u
#define PAYLOAD    (CELL_BYTES - FABRIC_CELL_HEADER)
#define CONTEXTS   4u
#define BYTES_MAX  (8u << 20)
/* Longer than an input can take: numbers go on. */
#define IDLE_NS    NS_PER_S
#define TRAVEL_MAX (1u << 30)

static const uint32_t starts[CONTEXTS] = { 0, UINT32_MAX - 50, 0x7fffff00, 0x80000000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct test_memory memory = TEST_MEMORY(memory);

static void require(bool held)
{
	if (!held)
		abort();
}

/* The first bytes of each packet say which it is. */
static void take(
	struct fabric_reasm *r, struct fabric_packets *packets, uint64_t *last, bool *known)
{
	struct fabric_packet *p;

	while ((p = fabric_packet_queue_pop(&r->done)) != NULL) {
		uint32_t context = p->system_port, epoch, sequence;

		require(context < CONTEXTS && p->stored <= p->size);
		if (p->stored >= 8) {
			epoch = dsf_load_be32(p->bytes);
			sequence = dsf_load_be32(p->bytes + 4);
			if (known[context] && last[context] >> 32 == epoch)
				require(sequence - (uint32_t)last[context] - 1 < UINT32_MAX / 2);
			last[context] = (uint64_t)epoch << 32 | sequence;
			known[context] = true;
		}
		fabric_packet_free(packets, p);
	}
}

static void step(struct fabric_reasm *r, const uint8_t *s, uint32_t *sequence, uint32_t *epoch,
	bool *known, dsf_instant now)
{
	uint32_t context = s[0] & (CONTEXTS - 1);
	uint8_t payload[FABRIC_CELL_MAX];
	struct fabric_cell cell = { .kind = FABRIC_CELL_DATA, .system_port = context };
	uint32_t left, packet_size;

	switch (s[0] >> 2 & 7u) {
	case 0: sequence[context]++; break;
	case 1: sequence[context] += dsf_load_be16(s + 1); break;
	case 2: /* far, but never half round in all: who would be behind whom? */
		if (sequence[context] - starts[context] < TRAVEL_MAX)
			sequence[context] += dsf_load_be32(s + 1) & 0xffffffu;
		break;
	case 3: epoch[context] += s[1], known[context] = false; break;
	case 4: epoch[context] += dsf_load_be32(s + 1), known[context] = false; break;
	default: break;
	}
	packet_size = 8u + dsf_load_be16(s + 5) % 1200u;
	cell.packet_sequence = sequence[context] - (s[0] >> 5);
	cell.epoch = epoch[context];
	cell.packet_size = cell.packet_stored = (uint16_t)packet_size;
	cell.index = s[7] & 7u;
	left = packet_size > cell.index * PAYLOAD ? packet_size - cell.index * PAYLOAD : 0;
	cell.size = cell.stored = (uint16_t)(left < PAYLOAD ? left : PAYLOAD);
	if (s[7] & 0x80) { /* as no right sender makes it */
		cell.packet_size = dsf_load_be16(s + 1);
		cell.packet_stored = dsf_load_be16(s + 3);
		cell.size = s[5];
		cell.stored = s[6] < s[5] ? s[6] : s[5];
		cell.index = s[7];
	}
	memset(payload, 0, sizeof(payload));
	if (cell.index == 0) {
		dsf_store_be32(payload, cell.epoch);
		dsf_store_be32(payload + 4, cell.packet_sequence);
	}
	(void)fabric_reasm_input(r, &cell, payload, now);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint32_t sequence[CONTEXTS], epoch[CONTEXTS] = { 1, 1, 1, 1 };
	uint64_t last[CONTEXTS] = { 0 };
	bool known[CONTEXTS] = { false };
	struct fabric_packets packets;
	struct fabric_reasm reasm;
	dsf_instant now = { 0 };

	memcpy(sequence, starts, sizeof(sequence));
	fabric_packets_init(&packets, &memory.memory, 1 << 20);
	fabric_reasm_init(&reasm, &memory.memory, &packets, CELL_BYTES, 20000, IDLE_NS);
	for (; size >= STEP; data += STEP, size -= STEP) {
		now.ns += (uint64_t)(data[7] >> 3 & 15u) * 2000;
		fabric_reasm_expire(&reasm, now);
		require(dsf_time_before(now, fabric_reasm_deadline(&reasm)));
		step(&reasm, data, sequence, epoch, known, now);
		take(&reasm, &packets, last, known);
		require(memory.live <= BYTES_MAX);
	}
	now.ns += 1000000;
	fabric_reasm_expire(&reasm, now);
	take(&reasm, &packets, last, known);
	require(reasm.timers.count == 0);
	now.ns += 3 * IDLE_NS;
	while (dsf_time_due(fabric_reasm_deadline(&reasm), now))
		fabric_reasm_expire(&reasm, fabric_reasm_deadline(&reasm));
	require(reasm.contexts.count == 0 && reasm.slots == 0);
	require(dsf_time_is_never(fabric_reasm_deadline(&reasm)));
	fabric_reasm_close(&reasm);
	for (int i = 0; i < FABRIC_PACKET_POOLS; i++)
		require(packets.pools[i].used == 0);
	fabric_packets_close(&packets);
	require(memory.live == 0);
	return 0;
}
