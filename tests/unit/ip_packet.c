#include "ip/packet.h"
#include <string.h>
#include "base/cursor.h"
#include "base/err.h"
#include "base/rng.h"
#include "tests/tap.h"

#define SIZE 128u

static const struct dsf_ip6 a = { { 0xfd, 0x5f, [7] = 1, [15] = 2 } };
static const struct dsf_ip6 b = { { 0xfd, 0x5f, [7] = 2, [15] = 2 } };
static const struct dsf_mac mac_a = { { 2, 0, 0, 0, 0, 1 } }, mac_b = { { 2, 0, 0, 0, 0, 2 } };

/* A UDP packet with a valid checksum in an Ethernet frame of size bytes. */
static void make_udp(uint8_t *frame, uint32_t size)
{
	uint8_t *udp = frame + IP_ETHERNET_SIZE + IP_HEADER_SIZE;
	uint32_t udp_size = size - IP_ETHERNET_SIZE - IP_HEADER_SIZE;

	for (uint32_t i = 0; i < size; i++)
		frame[i] = (uint8_t)(i * 7);
	ip_packet_write_ethernet(frame, &mac_b, &mac_a);
	ip_packet_write_header(
		frame + IP_ETHERNET_SIZE, &a, &b, 50, IP_ECN_ECT0, IP_PROTOCOL_UDP, 64, udp_size);
	dsf_store_be16(udp, 1000);
	dsf_store_be16(udp + 2, 4791);
	dsf_store_be16(udp + 4, (uint16_t)udp_size);
	dsf_store_be16(udp + 6, 0);
	ip_checksum_store(
		udp + 6, ip_checksum_add(ip_checksum_pseudo(&a, &b, udp_size, IP_PROTOCOL_UDP), 0,
				 udp, udp_size));
}

static void test_parse(void)
{
	uint8_t frame[SIZE];
	struct ip_packet p;

	make_udp(frame, SIZE);
	TAP_EQ(ip_packet_parse_frame(&p, frame, SIZE, SIZE), 0, "a UDP packet is read");
	TAP_OK(dsf_ip6_equal(&p.source, &a) && dsf_ip6_equal(&p.destination, &b), "addresses");
	TAP_OK(memcmp(&p.source_mac, &mac_a, 6) == 0 && memcmp(&p.target_mac, &mac_b, 6) == 0,
		"MACs");
	TAP_OK(p.dscp == 50 && p.ecn == IP_ECN_ECT0 && p.hop_limit == 64, "DSCP, ECN, hop limit");
	TAP_OK(p.source_port == 1000 && p.target_port == 4791, "ports");
	TAP_OK(p.size == SIZE - 14 && p.padding == 0 && p.transport_offset == 54 &&
			p.transport_size == SIZE - 54 && p.protocol == IP_PROTOCOL_UDP,
		"sizes and offsets");
	TAP_OK(ip_checksum_valid(&p, frame), "checksum is valid");
	frame[100] ^= 1;
	TAP_OK(!ip_checksum_valid(&p, frame), "a flipped bit is seen");

	TAP_EQ(ip_packet_parse_frame(&p, frame, 58, 9000), 0, "payload by name: 58 of 9000 bytes");
	TAP_OK(p.padding == 9000 - SIZE && p.source_port == 1000,
		"padding counts the absent bytes");
	TAP_EQ(ip_packet_parse_bare(&p, frame + 14, SIZE - 14, SIZE - 14), 0, "without Ethernet");
	TAP_OK(p.transport_offset == 40 && p.header_offset == 0 && p.source_port == 1000,
		"offsets count from the IPv6 header");
}

static void test_refused(void)
{
	static const struct {
		const char *name;
		uint32_t at;
		uint8_t value;
		int want;
	} cases[] = {
		{ "VLAN tag", 12, 0x81, -DSF_E_UNSUPPORTED },
		{ "version 4", 14, 0x45, -DSF_E_VERSION },
		{ "payload longer than the frame", 18, 0x40, -DSF_E_TRUNCATED },
		{ "one byte longer than the frame", 19, SIZE - 54 + 1, -DSF_E_TRUNCATED },
		{ "multicast source", 22, 0xff, -DSF_E_BADFIELD },
	};
	uint8_t frame[SIZE];
	struct ip_packet p;

	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		make_udp(frame, SIZE);
		frame[cases[i].at] = cases[i].value;
		TAP_EQ(ip_packet_parse_frame(&p, frame, SIZE, SIZE), cases[i].want, "%s",
			cases[i].name);
	}
	make_udp(frame, SIZE);
	for (uint32_t size = 0; size < SIZE; size++) {
		if (ip_packet_parse_frame(&p, frame, size, size) != -DSF_E_TRUNCATED)
			TAP_EQ(size, SIZE, "a frame cut to this is refused");
	}
	TAP_OK(true, "every shorter frame is refused");
	TAP_EQ(ip_packet_parse_frame(&p, frame, 53, SIZE), -DSF_E_TRUNCATED, "header not stored");
	memset(frame + 38, 0, 16);
	TAP_EQ(ip_packet_parse_frame(&p, frame, SIZE, SIZE), -DSF_E_BADFIELD, "destination ::");
	frame[53] = 1;
	TAP_EQ(ip_packet_parse_frame(&p, frame, SIZE, SIZE), -DSF_E_BADFIELD, "destination ::1");
	make_udp(frame, SIZE);
	frame[18] = frame[19] = frame[20] = 0;
	TAP_EQ(ip_packet_parse_frame(&p, frame, SIZE, SIZE), -DSF_E_UNSUPPORTED, "jumbogram");
}

static void test_extensions(void)
{
	uint8_t frame[SIZE];
	struct ip_packet p;

	make_udp(frame, SIZE);
	frame[20] = 0; /* hop-by-hop, 16 bytes, then fragment, then UDP */
	frame[54] = 44;
	frame[55] = 1;
	frame[70] = IP_PROTOCOL_UDP;
	frame[71] = 0;
	dsf_store_be16(frame + 72, 0x0001); /* first fragment, more follow */
	dsf_store_be16(frame + 78, 77);
	dsf_store_be16(frame + 80, 78);
	TAP_EQ(ip_packet_parse_frame(&p, frame, SIZE, SIZE), 0, "extension headers are walked");
	TAP_OK(p.fragment && p.protocol == IP_PROTOCOL_UDP && p.transport_offset == 78 &&
			p.source_port == 77 && p.target_port == 78,
		"first fragment shows its ports");
	uint64_t hash = ip_packet_hash(&p, 1);
	dsf_store_be16(frame + 72, 0x0101);
	TAP_OK(ip_packet_parse_frame(&p, frame, SIZE, SIZE) == 0 &&
			p.protocol == IP_PROTOCOL_HIDDEN && p.source_port == 0,
		"a later fragment has none");
	TAP_OK(ip_packet_hash(&p, 1) == hash, "fragments of a packet hash alike");
	frame[55] = 255;
	TAP_OK(ip_packet_parse_frame(&p, frame, SIZE, SIZE) == 0 &&
			p.protocol == IP_PROTOCOL_HIDDEN,
		"an extension header that runs out of the packet hides the rest");
	for (unsigned i = 0; i < 9; i++) {
		frame[54 + 8 * i] = i < 8 ? 60 : IP_PROTOCOL_UDP;
		frame[55 + 8 * i] = 0;
	}
	frame[20] = 60;
	TAP_OK(ip_packet_parse_frame(&p, frame, SIZE, SIZE) == 0 &&
			p.protocol == IP_PROTOCOL_HIDDEN,
		"nine extension headers are one too many");
	TAP_OK(ip_packet_parse_frame(&p, frame, 60, SIZE) == 0 && p.protocol == IP_PROTOCOL_HIDDEN,
		"an extension header that isn't stored hides the rest");
}

static void test_changes(void)
{
	uint8_t frame[SIZE];
	struct ip_packet p, again;
	uint64_t hash;

	make_udp(frame, SIZE);
	ip_packet_parse_frame(&p, frame, SIZE, SIZE);
	hash = ip_packet_hash(&p, 1);
	ip_packet_set_ce(&p, frame);
	ip_packet_decrement_hop_limit(&p, frame);
	ip_packet_parse_frame(&again, frame, SIZE, SIZE);
	TAP_OK(again.ecn == IP_ECN_CE && p.ecn == IP_ECN_CE && again.dscp == 50, "CE is set alone");
	TAP_OK(again.hop_limit == 63 && p.hop_limit == 63, "hop limit falls by one");
	TAP_OK(ip_checksum_valid(&again, frame), "checksum doesn't mind");
	TAP_OK(ip_packet_hash(&again, 1) == hash, "nor does the hash");
	TAP_OK(ip_packet_hash(&again, 2) != hash, "another seed, another hash");
	again.source_port++;
	TAP_OK(ip_packet_hash(&again, 1) != hash, "another port, another hash");
	TAP_OK(ip_packet_routable(&p), "global unicast is routable");
	p.destination.bytes[0] = 0xff;
	TAP_OK(!ip_packet_routable(&p), "multicast isn't");
	p.destination = (struct dsf_ip6){ { 0xfe, 0x80, [15] = 1 } };
	TAP_OK(!ip_packet_routable(&p), "link-local isn't");
}

/* RFC 1071 as it is written: 16 bits at a time. */
static uint16_t slow_sum(const uint8_t *bytes, size_t size)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < size; i++)
		sum += i % 2 == 0 ? (uint32_t)bytes[i] << 8 : bytes[i];
	while (sum >> 16 != 0)
		sum = (sum >> 16) + (sum & 0xffff);
	return (uint16_t)sum;
}

static void test_checksum(void)
{
	uint8_t bytes[300], field[2];
	struct dsf_rng rng;
	unsigned wrong = 0, wrong_parts = 0;

	dsf_rng_init(&rng, 1);
	for (unsigned round = 0; round < 2000; round++) {
		size_t size = dsf_rng_below(&rng, sizeof(bytes) + 1);
		size_t cut = dsf_rng_below(&rng, size + 1);
		uint64_t sum;

		for (size_t i = 0; i < size; i++)
			bytes[i] = round % 3 == 0 ? 0xff : (uint8_t)dsf_rng_next(&rng);
		uint16_t want = (uint16_t)~slow_sum(bytes, size);

		ip_checksum_store(field, ip_checksum_add(0, 0, bytes, size));
		if (dsf_load_be16(field) != (want == 0 ? 0xffff : want))
			wrong++;
		sum = ip_checksum_add(0, cut, bytes + cut, size - cut);
		sum = ip_checksum_add(sum, 0, bytes, cut);
		if (ip_checksum_fold(sum) != ip_checksum_fold(ip_checksum_add(0, 0, bytes, size)))
			wrong_parts++;
	}
	TAP_EQ(wrong, 0, "sums equal RFC 1071 word by word");
	TAP_EQ(wrong_parts, 0, "parts at odd offsets add up to the whole");
}

static void test_finish(void)
{
	for (uint32_t size = 64; size < 67; size++) {
		uint8_t frame[SIZE], want[2], *field = frame + 54 + 6;
		struct ip_packet p;
		uint16_t partial;

		make_udp(frame, size);
		memcpy(want, field, 2);
		partial = ip_checksum_fold(ip_checksum_pseudo(&a, &b, size - 54, IP_PROTOCOL_UDP));
		memcpy(field, &partial, 2);
		TAP_EQ(ip_checksum_finish(frame, size, 54, 6), 0, "a partial checksum of %u bytes",
			size);
		ip_packet_parse_frame(&p, frame, size, size);
		TAP_OK(memcmp(want, field, 2) == 0 && ip_checksum_valid(&p, frame), "is completed");
	}
	uint8_t frame[SIZE] = { 0 };
	TAP_EQ(ip_checksum_finish(frame, SIZE, SIZE + 1, 0), -DSF_E_BADFIELD, "start outside");
	TAP_EQ(ip_checksum_finish(frame, SIZE, SIZE - 1, 0), -DSF_E_BADFIELD, "half a field");
	TAP_EQ(ip_checksum_finish(frame, SIZE, 54, 0xffff), -DSF_E_BADFIELD, "offset outside");
	TAP_EQ(ip_checksum_finish(frame, SIZE, SIZE - 2, 0), 0, "the last two bytes will do");
	memset(frame, 0xff, 8);
	TAP_EQ(ip_checksum_finish(frame, 8, 0, 6), 0, "a sum of all ones");
	TAP_EQ(dsf_load_be16(frame + 6), 0xffff, "gives ffff, never 0");
}

int main(void)
{
	test_parse();
	test_refused();
	test_extensions();
	test_changes();
	test_checksum();
	test_finish();
	return TAP_DONE();
}
