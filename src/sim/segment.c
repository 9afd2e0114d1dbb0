#include "sim/segment.h"
#include "base/cursor.h"
#include "base/err.h"
#include "ip/packet.h"

#define HEADERS (IP_HEADER_SIZE + SIM_SEGMENT_HEADER)

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
		.size = p.transport_size - offset };
	return 0;
}

uint32_t sim_segment_write(const struct sim_segment *s, uint16_t window, uint8_t *packet)
{
	uint32_t size = SIM_SEGMENT_HEADER + s->size;
	uint8_t *header = packet + IP_HEADER_SIZE;
	struct dsf_writer w = { header, header + size, false };

	ip_packet_write_header(packet, &s->ends.local, &s->ends.remote, SIM_SEGMENT_DSCP,
		IP_ECN_NOT_ECT, IP_PROTOCOL_TCP, IP_HOP_LIMIT, size);
	dsf_writer_be(&w, s->ends.local_port, 2);
	dsf_writer_be(&w, s->ends.remote_port, 2);
	dsf_writer_be(&w, s->sequence, 4);
	dsf_writer_be(&w, s->acknowledged, 4);
	dsf_writer_be(&w, SIM_SEGMENT_HEADER / 4 << 4, 1);
	dsf_writer_be(&w, s->flags, 1);
	dsf_writer_be(&w, window, 2);
	dsf_writer_be(&w, 0, 4); /* checksum, urgent pointer */
	dsf_writer_bytes(&w, s->data, s->size);
	ip_checksum_store(header + 16,
		ip_checksum_add(
			ip_checksum_pseudo(&s->ends.local, &s->ends.remote, size, IP_PROTOCOL_TCP),
			0, header, size));
	return HEADERS + s->size;
}
