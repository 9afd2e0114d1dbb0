/*
 * ip_packet.c - any bytes as a frame: parse, change, answer
 *
 * The first two bytes say how many bytes the frame claims beyond those that are there.
 */
#include "ip/packet.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "base/err.h"
#include "ip/icmp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct ip_packet *p, uint32_t stored, uint32_t size)
{
	assert(stored >= p->header_offset + IP_HEADER_SIZE);
	assert(p->header_offset + p->size + p->padding == size);
	assert(p->transport_offset + p->transport_size == p->header_offset + p->size);
	assert(p->transport_offset >= p->header_offset + IP_HEADER_SIZE);
}

static void answer(struct ip_packet *p, uint8_t *bytes, uint32_t stored)
{
	static const struct dsf_ip6 us = { { 0xfd, [15] = 1 } };
	uint8_t buf[IP_ICMP_FRAME_MAX];
	struct ip_packet reply;
	struct ip_icmp icmp;
	size_t size;

	ip_icmp_init(&icmp, 0);
	size = ip_icmp_error(
		&icmp, IP_ICMP_TOO_BIG, p, bytes, stored, &us, 1280, buf, sizeof(buf), DSF_EPOCH);
	if (size > 0) {
		int err = ip_packet_parse_frame(&reply, buf, (uint32_t)size, (uint32_t)size);

		assert(err == 0 && ip_checksum_valid(&reply, buf) && reply.padding == 0);
		assert(ip_icmp_error(&icmp, IP_ICMP_NO_ROUTE, &reply, buf, (uint32_t)size, &us, 0,
			       buf, sizeof(buf), DSF_EPOCH) == 0);
	}
	if (ip_icmp_is_echo_request(p, bytes, stored)) {
		bool whole = p->transport_offset + p->transport_size <= stored;
		bool valid = whole && ip_checksum_valid(p, bytes);

		ip_icmp_echo_reply(p, bytes);
		assert(!whole || ip_checksum_valid(p, bytes) == valid);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ip_packet p;
	uint32_t stored, extra;
	uint8_t *bytes;

	if (size < 2 || size > 65535)
		return 0;
	extra = (uint32_t)(data[0] << 8 | data[1]);
	stored = (uint32_t)size - 2;
	bytes = malloc(stored > 0 ? stored : 1);
	if (bytes == NULL)
		abort();
	memcpy(bytes, data + 2, stored);
	if (ip_packet_parse_bare(&p, bytes, stored, stored + extra) == 0)
		check(&p, stored, stored + extra);
	if (ip_packet_parse_frame(&p, bytes, stored, stored + extra) == 0) {
		uint64_t hash = ip_packet_hash(&p, 1);

		check(&p, stored, stored + extra);
		if (p.hop_limit > 1)
			ip_packet_decrement_hop_limit(&p, bytes);
		ip_packet_set_ce(&p, bytes);
		assert(hash == ip_packet_hash(&p, 1));
		answer(&p, bytes, stored);
	}
	if (stored >= 4)
		(void)ip_checksum_finish(bytes, stored, data[0], data[1]);
	free(bytes);
	return 0;
}
