/*
 * ip_ndp.c - an NDP machine under a script of frames, carrier changes and time
 *
 * Input: records of one command byte (low 3 bits) and its arguments. A frame record's length byte
 * is followed by ICMPv6 bytes, whose checksum is made right so that the machine behind it is met.
 */
#include "ip/ndp.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "base/cursor.h"
#include "tests/memory.h"

#define PORTS 2u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct dsf_ip6 address(uint64_t byte)
{
	struct dsf_ip6 a = { { 0xfd, 0x5f, [7] = (uint8_t)(byte >> 7), [15] = byte & 0x3f } };

	if ((byte & 0x40) != 0)
		a.bytes[0] = 0xfe, a.bytes[1] = 0x80, a.bytes[7] = 0;
	return a;
}

static void input(struct ip_ndp *n, struct dsf_cursor *in, dsf_instant now)
{
	uint8_t frame[54 + 256];
	uint32_t port = (uint32_t)dsf_cursor_be(in, 1) % PORTS;
	struct dsf_ip6 source = address(dsf_cursor_be(in, 1));
	struct dsf_ip6 destination = address(dsf_cursor_be(in, 1));
	uint8_t hop_limit = (uint8_t)dsf_cursor_be(in, 1);
	uint32_t size = (uint32_t)dsf_cursor_be(in, 1);
	const uint8_t *body = dsf_cursor_bytes(in, size);
	struct dsf_mac mac = { { 2, 0, 0, 0, 0, 7 } };
	struct ip_packet p;

	if (body == NULL)
		return;
	if (source.bytes[15] == 0x3f)
		memset(&source, 0, sizeof(source));
	memcpy(frame + 54, body, size);
	if (size >= 24 && destination.bytes[15] == 0x3f) {
		struct dsf_ip6 target;

		memcpy(&target, frame + 54 + 8, sizeof(target));
		destination = ip_ndp_wire_group(&target);
	}
	ip_packet_write_ethernet(frame, &mac, &mac);
	ip_packet_write_header(
		frame + 14, &source, &destination, 0, 0, IP_PROTOCOL_ICMP6, hop_limit, size);
	if (size >= 4) {
		dsf_store_be16(frame + 56, 0);
		ip_checksum_store(frame + 56,
			ip_checksum_add(ip_checksum_pseudo(&source, &destination, size, 58), 0,
				frame + 54, size));
	}
	if (ip_packet_parse_frame(&p, frame, 54 + size, 54 + size) == 0 &&
		ip_ndp_wire_is(&p, frame, 54 + size))
		(void)ip_ndp_input(n, port, &p, frame, 54 + size, now);
}

static void drain(struct ip_ndp *n, dsf_instant now, bool tell)
{
	uint8_t frame[IP_NDP_FRAME_SIZE];
	struct ip_ndp_change change;
	struct ip_ndp_message m;
	struct ip_packet p;
	uint32_t port;

	while (ip_ndp_output(n, &port, frame, sizeof(frame), now) > 0) {
		assert(port < PORTS);
		if (ip_packet_parse_frame(&p, frame, sizeof(frame), sizeof(frame)) < 0 ||
			ip_ndp_wire_read(&m, &p, frame, sizeof(frame)) < 0)
			abort(); /* we must never send what we'd refuse */
	}
	while (tell && ip_ndp_changed(n, &change)) {
		const struct dsf_mac *mac = ip_ndp_lookup(n, change.port, &change.address);

		assert((mac != NULL) == change.reachable);
	}
}

static void step(struct ip_ndp *n, struct dsf_cursor *in, dsf_instant *now)
{
	uint64_t command = dsf_cursor_be(in, 1);
	uint32_t port = command >> 3 & 1;
	struct dsf_ip6 a;

	switch (command & 7) {
	case 0: ip_ndp_carrier(n, port, command >> 4 & 1, *now); break;
	case 1:
		a = address(dsf_cursor_be(in, 1));
		(void)ip_ndp_solicit(n, port, &a, *now);
		break;
	case 2:
		a = address(dsf_cursor_be(in, 1));
		(void)ip_ndp_resolve(n, port, &a, *now);
		break;
	case 3:
		now->ns += dsf_cursor_be(in, 1) * NS_PER_S / 4;
		ip_ndp_expire(n, *now);
		assert(dsf_time_before(*now, ip_ndp_deadline(n)));
		break;
	case 4: drain(n, *now, command >> 3 & 1); break;
	default: input(n, in, *now);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct test_memory memory = TEST_MEMORY(memory);
	struct ip_ndp_port ports[PORTS] = {
		{ { { 2, 0, 0, 0, 0, 1 } }, address(1), 64 },
		{ { { 2, 0, 0, 0, 1, 1 } }, address(0x81), 64 },
	};
	struct ip_ndp_config config = {
		.memory = &memory.memory, .ports = ports, .ports_count = PORTS
	};
	struct dsf_cursor in = { data, data + size, false };
	struct ip_ndp *n = ip_ndp_new(&config);
	dsf_instant now = DSF_EPOCH;
	uint32_t missing = 0;

	while (!in.failed && dsf_cursor_left(&in) > 0)
		step(n, &in, &now);
	for (const struct ip_ndp_entry *e = ip_ndp_next(n, NULL); e != NULL; e = ip_ndp_next(n, e))
		missing += e->target && e->state != IP_NDP_REACHABLE;
	assert(missing == ip_ndp_missing(n));
	drain(n, now, true);
	ip_ndp_free(n);
	assert(memory.live == 0);
	return 0;
}
