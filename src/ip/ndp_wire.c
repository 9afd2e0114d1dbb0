#include "ip/ndp_wire.h"
#include <assert.h>
#include "base/cursor.h"
#include "base/err.h"

#define HOP_LIMIT         255u
#define MESSAGE_SIZE      24u /* type, code, checksum, flags, target */
#define OPTION_SIZE       8u  /* a link-layer address option for Ethernet */
#define OPTION_SOURCE_MAC 1u
#define OPTION_TARGET_MAC 2u
#define DSCP              48u /* network control, like routing protocols */

struct dsf_ip6 ip_ndp_wire_group(const struct dsf_ip6 *a)
{
	/* ff02::1:ff00:0/104 and the last 24 bits of the address. */
	struct dsf_ip6 group = { { 0xff, 0x02, [11] = 0x01, [12] = 0xff } };

	memcpy(&group.bytes[13], &a->bytes[13], 3);
	return group;
}

struct dsf_mac ip_ndp_wire_mac(const struct dsf_ip6 *group)
{
	struct dsf_mac mac = { { 0x33, 0x33 } };

	memcpy(&mac.bytes[2], &group->bytes[12], 4);
	return mac;
}

bool ip_ndp_wire_is(const struct ip_packet *p, const uint8_t *frame, uint32_t stored)
{
	if (p->protocol != IP_PROTOCOL_ICMP6 || p->transport_size < 1 ||
		p->transport_offset >= stored)
		return false;
	return frame[p->transport_offset] == IP_NDP_SOLICIT ||
	       frame[p->transport_offset] == IP_NDP_ADVERTISE;
}

/* The link-layer address option of the given type; the first of several. */
static int read_options(struct ip_ndp_message *m, struct dsf_cursor *in, uint8_t wanted)
{
	static const struct dsf_mac no_mac = { { 0 } };

	while (dsf_cursor_left(in) > 0) {
		uint64_t type = dsf_cursor_be(in, 1), units = dsf_cursor_be(in, 1);
		const uint8_t *body;

		if (in->failed || units == 0)
			return -DSF_E_BADFIELD;
		body = dsf_cursor_bytes(in, units * 8 - 2);
		if (body == NULL)
			return -DSF_E_BADFIELD;
		if (type != wanted || m->has_mac)
			continue;
		memcpy(&m->mac, body, sizeof(m->mac));
		if (units != 1 || (m->mac.bytes[0] & 1) != 0 ||
			memcmp(&m->mac, &no_mac, sizeof(no_mac)) == 0)
			return -DSF_E_BADFIELD;
		m->has_mac = true;
	}
	return 0;
}

static int check_addresses(const struct ip_ndp_message *m, const struct ip_packet *p)
{
	struct dsf_ip6 group = ip_ndp_wire_group(&m->target);

	if (dsf_ip6_is_multicast(&m->target) || dsf_ip6_is_unspecified(&m->target))
		return -DSF_E_BADFIELD;
	if (m->advertisement) {
		if (dsf_ip6_is_unspecified(&p->source) ||
			(dsf_ip6_is_multicast(&p->destination) &&
				(m->flags & IP_NDP_FLAG_SOLICITED) != 0))
			return -DSF_E_BADFIELD;
	} else if (dsf_ip6_is_unspecified(&p->source)) {
		if (m->has_mac || !dsf_ip6_equal(&group, &p->destination))
			return -DSF_E_BADFIELD;
	}
	return 0;
}

int ip_ndp_wire_read(
	struct ip_ndp_message *m, const struct ip_packet *p, const uint8_t *frame, uint32_t stored)
{
	struct dsf_cursor in = { frame + p->transport_offset,
		frame + p->transport_offset + p->transport_size, false };
	uint64_t type, code;
	int err;

	if (p->transport_size < MESSAGE_SIZE || p->transport_offset + p->transport_size > stored)
		return -DSF_E_TRUNCATED;
	memset(m, 0, sizeof(*m));
	type = dsf_cursor_be(&in, 1);
	code = dsf_cursor_be(&in, 1);
	dsf_cursor_skip(&in, 2);
	m->flags = (uint32_t)dsf_cursor_be(&in, 4);
	memcpy(&m->target, dsf_cursor_bytes(&in, sizeof(m->target)), sizeof(m->target));
	m->advertisement = type == IP_NDP_ADVERTISE;
	if (p->hop_limit != HOP_LIMIT || code != 0 || p->fragment)
		return -DSF_E_BADFIELD;
	if (!ip_checksum_valid(p, frame))
		return -DSF_E_CHECKSUM;
	err = read_options(m, &in, m->advertisement ? OPTION_TARGET_MAC : OPTION_SOURCE_MAC);
	return err < 0 ? err : check_addresses(m, p);
}

size_t ip_ndp_wire_write(uint8_t *buf, unsigned type, uint32_t flags, const struct dsf_ip6 *target,
	const struct dsf_mac *mac, const struct dsf_ip6 *source, const struct dsf_mac *target_mac,
	const struct dsf_ip6 *destination)
{
	uint8_t *message = buf + IP_ETHERNET_SIZE + IP_HEADER_SIZE;
	uint32_t size = MESSAGE_SIZE + OPTION_SIZE;
	struct dsf_writer out = { message, message + size, false };
	uint64_t sum = ip_checksum_pseudo(source, destination, size, IP_PROTOCOL_ICMP6);

	ip_packet_write_ethernet(buf, target_mac, mac);
	ip_packet_write_header(buf + IP_ETHERNET_SIZE, source, destination, DSCP, IP_ECN_NOT_ECT,
		IP_PROTOCOL_ICMP6, HOP_LIMIT, size);
	dsf_writer_be(&out, type, 1);
	dsf_writer_be(&out, 0, 1 + 2);
	dsf_writer_be(&out, flags, 4);
	dsf_writer_bytes(&out, target, sizeof(*target));
	dsf_writer_be(&out, type == IP_NDP_SOLICIT ? OPTION_SOURCE_MAC : OPTION_TARGET_MAC, 1);
	dsf_writer_be(&out, 1, 1);
	dsf_writer_bytes(&out, mac, sizeof(*mac));
	assert(!out.failed && out.at == out.end);
	ip_checksum_store(message + 2, ip_checksum_add(sum, 0, message, size));
	return IP_NDP_FRAME_SIZE;
}
