#include "fabric/packet.h"
#include <assert.h>

/* Small control packets, a standard MTU, a 4 KB RDMA payload with its headers, a jumbo frame. */
static const uint32_t pool_bytes[FABRIC_PACKET_POOLS] = { 256, 1664, 4480, FABRIC_PACKET_MAX };

#define SLAB_BYTES 65536u

void fabric_packets_init(
	struct fabric_packets *p, const struct dsf_memory *memory, uint64_t bytes_max)
{
	for (unsigned i = 0; i < FABRIC_PACKET_POOLS; i++) {
		size_t size = sizeof(struct fabric_packet) + pool_bytes[i];

		dsf_pool_init(&p->pools[i], memory, size, (uint32_t)(SLAB_BYTES / size),
			(uint32_t)(bytes_max / size));
	}
}

void fabric_packets_close(struct fabric_packets *p)
{
	for (unsigned i = 0; i < FABRIC_PACKET_POOLS; i++)
		dsf_pool_close(&p->pools[i]);
}

struct fabric_packet *fabric_packet_new(struct fabric_packets *p, uint32_t stored)
{
	for (unsigned i = 0; i < FABRIC_PACKET_POOLS; i++) {
		struct fabric_packet *packet;

		if (stored > pool_bytes[i])
			continue;
		packet = dsf_pool_take(&p->pools[i]);
		if (packet == NULL)
			return NULL;
		packet->pool = (uint8_t)i;
		packet->stored = (uint16_t)stored;
		return packet;
	}
	return NULL;
}

void fabric_packet_free(struct fabric_packets *p, struct fabric_packet *packet)
{
	assert(packet->pool < FABRIC_PACKET_POOLS);
	dsf_pool_give(&p->pools[packet->pool], packet);
}
