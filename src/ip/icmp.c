#include "ip/icmp.h"
#include <assert.h>
#include "base/cursor.h"

#define TYPE_UNREACHABLE   1u
#define TYPE_TOO_BIG       2u
#define TYPE_TIME_EXCEEDED 3u
#define TYPE_INFORMATION   128u /* the first that is no error */
#define TYPE_ECHO_REQUEST  128u
#define TYPE_ECHO_REPLY    129u
#define TYPE_REDIRECT      137u

#define CODE_NO_ROUTE            0u
#define CODE_ADDRESS_UNREACHABLE 3u

void ip_icmp_init(struct ip_icmp *i, uint64_t interval_ns)
{
	memset(i, 0, sizeof(*i));
	i->interval_ns = interval_ns > 0 ? interval_ns : IP_ICMP_INTERVAL_NS;
	i->full_at = DSF_EPOCH;
}

bool ip_icmp_is_error(const struct ip_packet *p, const uint8_t *bytes, uint32_t stored)
{
	uint8_t type;

	if (p->protocol == IP_PROTOCOL_HIDDEN)
		return true;
	if (p->protocol != IP_PROTOCOL_ICMP6)
		return false;
	if (p->transport_size < 1 || p->transport_offset >= stored)
		return true;
	type = bytes[p->transport_offset];
	return type < TYPE_INFORMATION || type == TYPE_REDIRECT;
}

/* RFC 4443 2.4 (e): multicast, sources that name no single node, errors about errors. Too big about
 * multicast would be allowed, but multicast is never passed on here. */
static bool is_excluded(const struct ip_packet *p, const uint8_t *bytes, uint32_t stored)
{
	return dsf_ip6_is_multicast(&p->destination) || (p->target_mac.bytes[0] & 1) != 0 ||
	       dsf_ip6_is_multicast(&p->source) || dsf_ip6_is_unspecified(&p->source) ||
	       ip_icmp_is_error(p, bytes, stored);
}

/* The bucket as one instant: each error moves the time at which it is full again. */
static bool take_token(struct ip_icmp *i, dsf_instant now)
{
	dsf_instant full_at = dsf_time_after(dsf_time_max(i->full_at, now), i->interval_ns);

	if (dsf_time_since(now, full_at) > i->interval_ns * IP_ICMP_BURST)
		return false;
	i->full_at = full_at;
	return true;
}

static void type_and_code(enum ip_icmp_error error, uint8_t *type, uint8_t *code)
{
	switch (error) {
	case IP_ICMP_NO_ROUTE:
		*type = TYPE_UNREACHABLE;
		*code = CODE_NO_ROUTE;
		return;
	case IP_ICMP_ADDRESS_UNREACHABLE:
		*type = TYPE_UNREACHABLE;
		*code = CODE_ADDRESS_UNREACHABLE;
		return;
	case IP_ICMP_TOO_BIG:
		*type = TYPE_TOO_BIG;
		*code = 0;
		return;
	case IP_ICMP_HOP_LIMIT:
		*type = TYPE_TIME_EXCEEDED;
		*code = 0;
		return;
	case IP_ICMP_ERROR_COUNT: break;
	}
	assert(!"an error");
}

size_t ip_icmp_error(struct ip_icmp *i, enum ip_icmp_error error, const struct ip_packet *p,
	const uint8_t *bytes, uint32_t stored, const struct dsf_ip6 *source, uint32_t mtu,
	uint8_t *buf, size_t cap, dsf_instant now)
{
	uint8_t *message = buf + IP_ETHERNET_SIZE + IP_HEADER_SIZE;
	uint32_t quoted = stored - p->header_offset;
	uint8_t type = 0, code = 0;
	uint64_t sum;

	assert(cap >= IP_ICMP_FRAME_MAX && stored >= p->header_offset + IP_HEADER_SIZE);
	if (is_excluded(p, bytes, stored)) {
		i->excluded++;
		return 0;
	}
	if (!take_token(i, now)) {
		i->limited++;
		return 0;
	}
	if (quoted > p->size)
		quoted = p->size;
	if (quoted > IP_MTU_MIN - IP_HEADER_SIZE - IP_ICMP_SIZE)
		quoted = IP_MTU_MIN - IP_HEADER_SIZE - IP_ICMP_SIZE;
	type_and_code(error, &type, &code);
	ip_packet_write_ethernet(buf, &p->source_mac, &p->target_mac);
	ip_packet_write_header(buf + IP_ETHERNET_SIZE, source, &p->source, 0, IP_ECN_NOT_ECT,
		IP_PROTOCOL_ICMP6, IP_HOP_LIMIT, IP_ICMP_SIZE + quoted);
	memset(message, 0, IP_ICMP_SIZE);
	message[0] = type;
	message[1] = code;
	if (error == IP_ICMP_TOO_BIG)
		dsf_store_be32(message + 4, mtu);
	memcpy(message + IP_ICMP_SIZE, bytes + p->header_offset, quoted);
	sum = ip_checksum_pseudo(source, &p->source, IP_ICMP_SIZE + quoted, IP_PROTOCOL_ICMP6);
	ip_checksum_store(message + 2, ip_checksum_add(sum, 0, message, IP_ICMP_SIZE + quoted));
	i->sent[error]++;
	return IP_ETHERNET_SIZE + IP_HEADER_SIZE + IP_ICMP_SIZE + quoted;
}

bool ip_icmp_is_echo_request(const struct ip_packet *p, const uint8_t *bytes, uint32_t stored)
{
	return p->protocol == IP_PROTOCOL_ICMP6 && !p->fragment &&
	       p->transport_size >= IP_ICMP_SIZE && p->transport_offset + IP_ICMP_SIZE <= stored &&
	       !dsf_ip6_is_multicast(&p->destination) &&
	       bytes[p->transport_offset] == TYPE_ECHO_REQUEST &&
	       bytes[p->transport_offset + 1] == 0;
}

/* RFC 1624: the checksum follows from the one word that changes. Swapped addresses change none. */
static void replace_type(uint8_t *message, uint8_t type)
{
	uint8_t word[2] = { (uint8_t)~message[0], (uint8_t)~message[1] };
	uint16_t field;
	uint64_t sum;

	memcpy(&field, message + 2, sizeof(field));
	sum = ip_checksum_add((uint16_t)~field, 0, word, sizeof(word));
	message[0] = type;
	ip_checksum_store(message + 2, ip_checksum_add(sum, 0, message, sizeof(word)));
}

void ip_icmp_echo_reply(struct ip_packet *p, uint8_t *bytes)
{
	struct dsf_ip6 address = p->source;
	struct dsf_mac mac = p->source_mac;

	assert(ip_icmp_is_echo_request(p, bytes, p->transport_offset + IP_ICMP_SIZE));
	p->source = p->destination;
	p->destination = address;
	p->source_mac = p->target_mac;
	p->target_mac = mac;
	p->hop_limit = IP_HOP_LIMIT;
	if (p->header_offset == IP_ETHERNET_SIZE)
		ip_packet_write_ethernet(bytes, &p->target_mac, &p->source_mac);
	bytes[p->header_offset + 7] = IP_HOP_LIMIT;
	memcpy(bytes + p->header_offset + 8, &p->source, sizeof(p->source));
	memcpy(bytes + p->header_offset + 24, &p->destination, sizeof(p->destination));
	replace_type(bytes + p->transport_offset, TYPE_ECHO_REPLY);
}
