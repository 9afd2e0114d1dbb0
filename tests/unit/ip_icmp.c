#include "ip/icmp.h"
#include <string.h>
#include "base/cursor.h"
#include "tests/tap.h"

#define SIZE 9014u

static const struct dsf_ip6 a = { { 0xfd, 0x5f, [7] = 1, [15] = 2 } };
static const struct dsf_ip6 b = { { 0xfd, 0x5f, [7] = 2, [15] = 2 } };
static const struct dsf_ip6 us = { { 0xfd, 0x5f, [7] = 1, [15] = 1 } };
static const struct dsf_mac mac_a = { { 2, 0, 0, 0, 0, 1 } }, mac_us = { { 2, 0, 0, 0, 0, 2 } };

static uint8_t frame[SIZE];

/* An ICMPv6 message of the given type, or UDP for type 0, with a right checksum. */
static void make(struct ip_packet *p, uint32_t size, uint8_t type)
{
	uint8_t *transport = frame + 54;
	uint8_t protocol = type == 0 ? IP_PROTOCOL_UDP : IP_PROTOCOL_ICMP6;
	unsigned field = type == 0 ? 6 : 2;

	for (uint32_t i = 0; i < size; i++)
		frame[i] = (uint8_t)(i * 13);
	ip_packet_write_ethernet(frame, &mac_us, &mac_a);
	ip_packet_write_header(frame + 14, &a, &b, 50, IP_ECN_ECT0, protocol, 1, size - 54);
	if (type != 0) {
		transport[0] = type;
		transport[1] = 0;
	}
	dsf_store_be16(transport + field, 0);
	ip_checksum_store(
		transport + field, ip_checksum_add(ip_checksum_pseudo(&a, &b, size - 54, protocol),
					   0, transport, size - 54));
	if (ip_packet_parse_frame(p, frame, size, size) < 0)
		memset(p, 0, sizeof(*p));
}

static void test_errors(void)
{
	static const struct {
		enum ip_icmp_error error;
		uint8_t type, code;
	} cases[] = {
		{ IP_ICMP_NO_ROUTE, 1, 0 },
		{ IP_ICMP_ADDRESS_UNREACHABLE, 1, 3 },
		{ IP_ICMP_TOO_BIG, 2, 0 },
		{ IP_ICMP_HOP_LIMIT, 3, 0 },
	};
	uint8_t buf[IP_ICMP_FRAME_MAX];
	struct ip_packet p, reply;
	struct ip_icmp icmp;

	ip_icmp_init(&icmp, 0);
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		size_t size;

		make(&p, SIZE, 0);
		size = ip_icmp_error(&icmp, cases[i].error, &p, frame, SIZE, &us, 1500, buf,
			sizeof(buf), DSF_EPOCH);
		TAP_EQ(size, 14 + 1280, "type %u code %u: as much as fits", cases[i].type,
			cases[i].code);
		TAP_EQ(ip_packet_parse_frame(&reply, buf, (uint32_t)size, (uint32_t)size), 0,
			"the reply is a packet");
		TAP_OK(ip_checksum_valid(&reply, buf), "checksum");
		TAP_OK(buf[54] == cases[i].type && buf[55] == cases[i].code &&
				dsf_load_be32(buf + 58) == (cases[i].type == 2 ? 1500 : 0),
			"type, code, MTU");
		TAP_OK(dsf_ip6_equal(&reply.source, &us) && dsf_ip6_equal(&reply.destination, &a) &&
				memcmp(&reply.target_mac, &mac_a, 6) == 0 &&
				memcmp(&reply.source_mac, &mac_us, 6) == 0,
			"goes back from us");
		TAP_OK(memcmp(buf + 62, frame + 14, 1280 - 48) == 0, "quotes the packet");
	}
	make(&p, 100, 0);
	TAP_EQ(ip_icmp_error(
		       &icmp, IP_ICMP_NO_ROUTE, &p, frame, 60, &us, 0, buf, sizeof(buf), DSF_EPOCH),
		14 + 48 + 46, "quotes what is stored of a short packet");
}

static void test_excluded(void)
{
	uint8_t buf[IP_ICMP_FRAME_MAX];
	struct ip_packet p, good;
	struct ip_icmp icmp;

	ip_icmp_init(&icmp, 0);
#define REFUSED(name)                                                                              \
	TAP_EQ(ip_icmp_error(&icmp, IP_ICMP_NO_ROUTE, &p, frame, 100, &us, 0, buf, sizeof(buf),    \
		       DSF_EPOCH),                                                                 \
		0, "no error about " name)
	make(&p, 100, 1);
	REFUSED("an error");
	make(&p, 100, 137);
	REFUSED("a redirect");
	make(&p, 100, 0);
	good = p;
	p.destination.bytes[0] = 0xff;
	REFUSED("multicast");
	p = good;
	p.target_mac.bytes[0] = 0x33;
	REFUSED("link-layer multicast");
	p = good;
	memset(&p.source, 0, sizeof(p.source));
	REFUSED("the unspecified source");
	p = good;
	p.protocol = IP_PROTOCOL_HIDDEN;
	REFUSED("what hides its protocol");
	make(&p, 100, 128);
	TAP_EQ(ip_icmp_error(
		       &icmp, IP_ICMP_NO_ROUTE, &p, frame, 54, &us, 0, buf, sizeof(buf), DSF_EPOCH),
		0, "no error about ICMPv6 whose type isn't stored");
	TAP_EQ(icmp.excluded, 7, "all counted");
	TAP_OK(ip_icmp_error(&icmp, IP_ICMP_NO_ROUTE, &p, frame, 100, &us, 0, buf, sizeof(buf),
		       DSF_EPOCH) > 0,
		"an echo request may be answered by an error");
}

static void test_limit(void)
{
	uint8_t buf[IP_ICMP_FRAME_MAX];
	dsf_instant now = { NS_PER_S };
	struct ip_packet p;
	struct ip_icmp icmp;
	unsigned sent = 0;

	ip_icmp_init(&icmp, NS_PER_MS);
	make(&p, 100, 0);
	for (unsigned i = 0; i < 1000; i++)
		sent += ip_icmp_error(&icmp, IP_ICMP_NO_ROUTE, &p, frame, 100, &us, 0, buf,
				sizeof(buf), now) > 0;
	TAP_EQ(sent, IP_ICMP_BURST, "a burst of so many");
	TAP_EQ(icmp.limited, 1000 - IP_ICMP_BURST, "the rest is counted");
	for (unsigned i = 0; i < 100; i++) {
		now.ns += NS_PER_MS / 2;
		sent += ip_icmp_error(&icmp, IP_ICMP_NO_ROUTE, &p, frame, 100, &us, 0, buf,
				sizeof(buf), now) > 0;
	}
	TAP_EQ(sent, IP_ICMP_BURST + 50, "then one each millisecond");
}

static void test_echo(void)
{
	struct ip_packet p, reply;

	make(&p, 101, 128);
	TAP_OK(ip_icmp_is_echo_request(&p, frame, 101), "an echo request");
	TAP_OK(ip_icmp_is_echo_request(&p, frame, 62), "of which the payload isn't stored");
	TAP_OK(!ip_icmp_is_echo_request(&p, frame, 61), "its header must be");
	ip_icmp_echo_reply(&p, frame);
	TAP_EQ(ip_packet_parse_frame(&reply, frame, 101, 101), 0, "becomes a reply");
	TAP_OK(frame[54] == 129 && ip_checksum_valid(&reply, frame), "type and checksum");
	TAP_OK(dsf_ip6_equal(&reply.source, &b) && dsf_ip6_equal(&reply.destination, &a) &&
			memcmp(&reply.target_mac, &mac_a, 6) == 0,
		"addresses swapped");
	TAP_OK(reply.hop_limit == 64 && reply.dscp == 50 && reply.ecn == IP_ECN_ECT0,
		"hop limit afresh, class kept");
	TAP_OK(memcmp(&p, &reply, sizeof(p)) == 0, "the parsed view is brought along");
	make(&p, 100, 129);
	TAP_OK(!ip_icmp_is_echo_request(&p, frame, 100), "a reply is no request");
}

int main(void)
{
	test_errors();
	test_excluded();
	test_limit();
	test_echo();
	return TAP_DONE();
}
