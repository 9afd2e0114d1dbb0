#include "sim/segment.h"
#include "base/cursor.h"
#include "base/err.h"
#include "ip/packet.h"

#define OPTION_END  0u
#define OPTION_NOP  1u
#define OPTION_MD5  19u
#define MD5_SIZE    18u
#define DIGEST_SIZE 8u /* of its 16 bytes; the others are 0 */

/* The signature among options; 0: none. */
static uint64_t find_signature(const uint8_t *options, uint32_t size)
{
	for (uint32_t at = 0; at < size && options[at] != OPTION_END;) {
		uint32_t option = options[at] == OPTION_NOP || at + 1 == size ? 1 : options[at + 1];

		if (option == 0 || option > size - at)
			break;
		if (options[at] == OPTION_MD5 && option == MD5_SIZE)
			return dsf_load_be64(options + at + 2);
		at += option;
	}
	return 0;
}

static void write_signature(struct dsf_writer *w, uint64_t signature)
{
	static const uint8_t rest[MD5_SIZE - 2 - DIGEST_SIZE] = { 0 };

	dsf_writer_be(w, OPTION_NOP << 8 | OPTION_NOP, 2);
	dsf_writer_be(w, OPTION_MD5 << 8 | MD5_SIZE, 2);
	dsf_writer_be(w, signature, DIGEST_SIZE);
	dsf_writer_bytes(w, rest, sizeof(rest));
}

int sim_segment_read(struct sim_segment *s, const uint8_t *packet, uint32_t size)
{
	struct ip_packet p;
	const uint8_t *header;
	uint32_t offset;
	int err = ip_packet_parse_bare(&p, packet, size, size);

	if (err < 0)
		return err;
	if (p.protocol != IP_PROTOCOL_TCP)
		return -DSF_E_UNSUPPORTED;
	if (p.transport_size < SIM_SEGMENT_HEADER)
		return -DSF_E_TRUNCATED;
	if (!ip_checksum_valid(&p, packet))
		return -DSF_E_CHECKSUM;
	header = packet + p.transport_offset;
	offset = (uint32_t)(header[12] >> 4) * 4;
	if (offset < SIM_SEGMENT_HEADER || offset > p.transport_size)
		return -DSF_E_BADFIELD;
	*s = (struct sim_segment){ .ends = { p.destination, p.source, p.target_port,
					   p.source_port },
		.sequence = dsf_load_be32(header + 4),
		.acknowledged = dsf_load_be32(header + 8),
		.flags = header[13],
		.data = header + offset,
		.size = p.transport_size - offset,
		.signature =
			find_signature(header + SIM_SEGMENT_HEADER, offset - SIM_SEGMENT_HEADER) };
	return 0;
}

uint32_t sim_segment_write(const struct sim_segment *s, uint16_t window, uint8_t *packet)
{
	uint32_t head = SIM_SEGMENT_HEADER + (s->signature != 0 ? SIM_SEGMENT_SIGNED : 0);
	uint32_t size = head + s->size;
	uint8_t *header = packet + IP_HEADER_SIZE;
	struct dsf_writer w = { header, header + size, false };

	ip_packet_write_header(packet, &s->ends.local, &s->ends.remote, SIM_SEGMENT_DSCP,
		IP_ECN_NOT_ECT, IP_PROTOCOL_TCP, IP_HOP_LIMIT, size);
	dsf_writer_be(&w, s->ends.local_port, 2);
	dsf_writer_be(&w, s->ends.remote_port, 2);
	dsf_writer_be(&w, s->sequence, 4);
	dsf_writer_be(&w, s->acknowledged, 4);
	dsf_writer_be(&w, head / 4 << 4, 1);
	dsf_writer_be(&w, s->flags, 1);
	dsf_writer_be(&w, window, 2);
	dsf_writer_be(&w, 0, 4); /* checksum, urgent pointer */
	if (s->signature != 0)
		write_signature(&w, s->signature);
	dsf_writer_bytes(&w, s->data, s->size);
	ip_checksum_store(header + 16,
		ip_checksum_add(
			ip_checksum_pseudo(&s->ends.local, &s->ends.remote, size, IP_PROTOCOL_TCP),
			0, header, size));
	return IP_HEADER_SIZE + size;
}
