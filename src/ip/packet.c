#include "ip/packet.h"
#include <assert.h>
#include "base/cursor.h"
#include "base/err.h"
#include "base/rng.h"

#define OFFSET_PAYLOAD_SIZE 4u
#define OFFSET_NEXT_HEADER  6u
#define OFFSET_HOP_LIMIT    7u
#define OFFSET_SOURCE       8u
#define OFFSET_DESTINATION  24u

#define EXTENSION_HOP_BY_HOP  0u
#define EXTENSION_ROUTING     43u
#define EXTENSION_FRAGMENT    44u
#define EXTENSION_DESTINATION 60u
#define FRAGMENT_OFFSET_MASK  0xfff8u

static bool is_loopback(const struct dsf_ip6 *a)
{
	static const struct dsf_ip6 loopback = { { [15] = 1 } };

	return dsf_ip6_equal(a, &loopback);
}

static bool is_extension(uint8_t protocol)
{
	return protocol == EXTENSION_HOP_BY_HOP || protocol == EXTENSION_ROUTING ||
	       protocol == EXTENSION_FRAGMENT || protocol == EXTENSION_DESTINATION;
}

/* Walks the extension headers to the upper protocol. stored and end are offsets like those in p.
 * What can't be read isn't an error (a router needn't understand it): the protocol stays hidden. */
static void find_transport(struct ip_packet *p, const uint8_t *bytes, uint32_t stored, uint32_t end)
{
	uint32_t at = p->header_offset + IP_HEADER_SIZE;
	uint8_t protocol = p->next_header;
	bool first = true;

	for (unsigned i = 0; is_extension(protocol); i++) {
		uint32_t size;

		if (i == IP_EXTENSIONS_MAX || at + 8 > end || at + 8 > stored)
			break;
		size = protocol == EXTENSION_FRAGMENT ? 8 : (bytes[at + 1] + 1u) * 8;
		if (size > end - at)
			break;
		if (protocol == EXTENSION_FRAGMENT) {
			p->fragment = true;
			first = first &&
				(dsf_load_be16(bytes + at + 2) & FRAGMENT_OFFSET_MASK) == 0;
		}
		protocol = bytes[at];
		at += size;
	}
	p->transport_offset = at;
	p->transport_size = end - at;
	p->protocol = is_extension(protocol) || !first ? IP_PROTOCOL_HIDDEN : protocol;
	if ((p->protocol == IP_PROTOCOL_TCP || p->protocol == IP_PROTOCOL_UDP) && at + 4 <= end &&
		at + 4 <= stored) {
		p->source_port = dsf_load_be16(bytes + at);
		p->target_port = dsf_load_be16(bytes + at + 2);
	}
}

static int parse_at(
	struct ip_packet *p, const uint8_t *bytes, uint32_t offset, uint32_t stored, uint32_t size)
{
	const uint8_t *header = bytes + offset;
	uint32_t word, payload_size;

	assert(stored <= size);
	if (stored < offset + IP_HEADER_SIZE)
		return -DSF_E_TRUNCATED;
	word = dsf_load_be32(header);
	if (word >> 28 != 6)
		return -DSF_E_VERSION;
	payload_size = dsf_load_be16(header + OFFSET_PAYLOAD_SIZE);
	p->next_header = header[OFFSET_NEXT_HEADER];
	if (payload_size == 0 && p->next_header == EXTENSION_HOP_BY_HOP)
		return -DSF_E_UNSUPPORTED; /* jumbogram, RFC 2675 */
	if (payload_size > size - offset - IP_HEADER_SIZE)
		return -DSF_E_TRUNCATED;
	p->header_offset = offset;
	p->size = IP_HEADER_SIZE + payload_size;
	p->padding = size - offset - p->size;
	p->dscp = word >> 22 & 0x3f;
	p->ecn = word >> 20 & 0x3;
	p->flow_label = word & 0xfffff;
	p->hop_limit = header[OFFSET_HOP_LIMIT];
	memcpy(&p->source, header + OFFSET_SOURCE, sizeof(p->source));
	memcpy(&p->destination, header + OFFSET_DESTINATION, sizeof(p->destination));
	if (dsf_ip6_is_multicast(&p->source) || dsf_ip6_is_unspecified(&p->destination) ||
		is_loopback(&p->source) || is_loopback(&p->destination))
		return -DSF_E_BADFIELD;
	find_transport(p, bytes, stored, offset + p->size);
	return 0;
}

int ip_packet_parse_frame(struct ip_packet *p, const uint8_t *frame, uint32_t stored, uint32_t size)
{
	memset(p, 0, sizeof(*p));
	if (stored < IP_ETHERNET_SIZE)
		return -DSF_E_TRUNCATED;
	if (dsf_load_be16(frame + 12) != IP_ETHERTYPE)
		return -DSF_E_UNSUPPORTED;
	memcpy(&p->target_mac, frame, sizeof(p->target_mac));
	memcpy(&p->source_mac, frame + 6, sizeof(p->source_mac));
	return parse_at(p, frame, IP_ETHERNET_SIZE, stored, size);
}

int ip_packet_parse_bare(struct ip_packet *p, const uint8_t *bytes, uint32_t stored, uint32_t size)
{
	memset(p, 0, sizeof(*p));
	return parse_at(p, bytes, 0, stored, size);
}

bool ip_packet_routable(const struct ip_packet *p)
{
	return !dsf_ip6_is_multicast(&p->destination) && !dsf_ip6_is_unspecified(&p->source) &&
	       !dsf_ip6_is_link_local(&p->source) && !dsf_ip6_is_link_local(&p->destination);
}

static uint64_t mix_address(uint64_t hash, const struct dsf_ip6 *a)
{
	hash = dsf_mix(hash ^ dsf_load_be64(a->bytes)) + 0x9e3779b97f4a7c15ull;
	return dsf_mix(hash ^ dsf_load_be64(a->bytes + 8)) + 0x9e3779b97f4a7c15ull;
}

uint64_t ip_packet_hash(const struct ip_packet *p, uint64_t seed)
{
	uint64_t hash = mix_address(mix_address(seed, &p->source), &p->destination);
	uint64_t ports = (uint64_t)p->source_port << 16 | p->target_port;

	if (p->fragment)
		return dsf_mix(hash);
	return dsf_mix(hash ^ (ports << 8 | p->protocol));
}

void ip_packet_set_ce(struct ip_packet *p, uint8_t *bytes)
{
	bytes[p->header_offset + 1] |= IP_ECN_CE << 4;
	p->ecn = IP_ECN_CE;
}

void ip_packet_decrement_hop_limit(struct ip_packet *p, uint8_t *bytes)
{
	assert(p->hop_limit > 1);
	bytes[p->header_offset + OFFSET_HOP_LIMIT] = --p->hop_limit;
}

void ip_packet_write_ethernet(
	uint8_t *frame, const struct dsf_mac *target, const struct dsf_mac *source)
{
	memcpy(frame, target, sizeof(*target));
	memcpy(frame + 6, source, sizeof(*source));
	dsf_store_be16(frame + 12, IP_ETHERTYPE);
}

void ip_packet_write_header(uint8_t *header, const struct dsf_ip6 *source,
	const struct dsf_ip6 *destination, uint8_t dscp, uint8_t ecn, uint8_t protocol,
	uint8_t hop_limit, uint32_t payload_size)
{
	assert(payload_size <= UINT16_MAX && dscp < 64 && ecn < 4);
	dsf_store_be32(header, 6u << 28 | (uint32_t)dscp << 22 | (uint32_t)ecn << 20);
	dsf_store_be16(header + OFFSET_PAYLOAD_SIZE, (uint16_t)payload_size);
	header[OFFSET_NEXT_HEADER] = protocol;
	header[OFFSET_HOP_LIMIT] = hop_limit;
	memcpy(header + OFFSET_SOURCE, source, sizeof(*source));
	memcpy(header + OFFSET_DESTINATION, destination, sizeof(*destination));
}

/* The one's complement sum doesn't depend on the width of its words, so it is taken 8 bytes at a
 * time with the carries counted apart, in two chains that the processor can run side by side. */
static uint64_t sum_words(const uint8_t *bytes, size_t size)
{
	uint64_t sum_a = 0, sum_b = 0, carries = 0, word_a, word_b;

	for (; size >= 16; size -= 16, bytes += 16) {
		memcpy(&word_a, bytes, 8);
		memcpy(&word_b, bytes + 8, 8);
		carries += __builtin_add_overflow(sum_a, word_a, &sum_a);
		carries += __builtin_add_overflow(sum_b, word_b, &sum_b);
	}
	if (size >= 8) {
		memcpy(&word_a, bytes, 8);
		carries += __builtin_add_overflow(sum_a, word_a, &sum_a);
		size -= 8;
		bytes += 8;
	}
	word_b = 0;
	memcpy(&word_b, bytes, size);
	carries += __builtin_add_overflow(sum_b, word_b, &sum_b);
	return (sum_a >> 32) + (uint32_t)sum_a + (sum_b >> 32) + (uint32_t)sum_b + carries;
}

uint64_t ip_checksum_add(uint64_t sum, size_t offset, const uint8_t *bytes, size_t size)
{
	uint16_t part;

	if (size == 0)
		return sum;
	part = ip_checksum_fold(sum_words(bytes, size));
	/* At an odd offset the high and low bytes of every word change places: RFC 1071 2 (B). */
	return sum + (offset % 2 == 0 ? part : __builtin_bswap16(part));
}

static uint64_t sum_be32(uint64_t sum, uint32_t value)
{
	uint8_t bytes[4];

	dsf_store_be32(bytes, value);
	return ip_checksum_add(sum, 0, bytes, sizeof(bytes));
}

uint64_t ip_checksum_pseudo(const struct dsf_ip6 *source, const struct dsf_ip6 *destination,
	uint32_t size, uint8_t protocol)
{
	uint64_t sum = ip_checksum_add(0, 0, source->bytes, sizeof(source->bytes));

	sum = ip_checksum_add(sum, 0, destination->bytes, sizeof(destination->bytes));
	return sum_be32(sum_be32(sum, size), protocol);
}

uint16_t ip_checksum_fold(uint64_t sum)
{
	sum = (sum >> 32) + (uint32_t)sum;
	sum = (sum >> 32) + (uint32_t)sum;
	sum = (sum >> 16) + (uint16_t)sum;
	sum = (sum >> 16) + (uint16_t)sum;
	return (uint16_t)sum;
}

void ip_checksum_store(uint8_t *field, uint64_t sum)
{
	uint16_t value = (uint16_t)~ip_checksum_fold(sum);

	if (value == 0)
		value = 0xffff;
	memcpy(field, &value, sizeof(value));
}

int ip_checksum_finish(uint8_t *bytes, uint32_t size, uint32_t start, uint32_t offset)
{
	if (start > size || offset > size - start || size - start - offset < 2)
		return -DSF_E_BADFIELD;
	ip_checksum_store(
		bytes + start + offset, ip_checksum_add(0, 0, bytes + start, size - start));
	return 0;
}

bool ip_checksum_valid(const struct ip_packet *p, const uint8_t *bytes)
{
	const uint8_t *transport = bytes + p->transport_offset;
	uint64_t sum =
		ip_checksum_pseudo(&p->source, &p->destination, p->transport_size, p->protocol);

	if (p->protocol == IP_PROTOCOL_UDP &&
		(p->transport_size < IP_UDP_SIZE || dsf_load_be16(transport + 6) == 0))
		return false;
	return ip_checksum_fold(ip_checksum_add(sum, 0, transport, p->transport_size)) == 0xffff;
}
