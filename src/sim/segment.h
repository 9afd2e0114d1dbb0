/*
 * segment.h - TCP segments in bare IPv6 packets (RFC 9293 3.1), without options but one: a SYN may
 * have a signature of RFC 2385's form, which stands for the key and not for the segment
 */
#ifndef DSF_SIM_SEGMENT_H
#define DSF_SIM_SEGMENT_H
#include "node/node.h"

#define SIM_SEGMENT_HEADER 20u /* behind the 40 bytes of IPv6 */
#define SIM_SEGMENT_SIGNED 20u /* more with a signature, RFC 2385 3.0: 18 and padding */
#define SIM_SEGMENT_DSCP   48u /* network control: class nc (published: ToS 0xc0) */

#define SIM_SEGMENT_FIN 0x01u
#define SIM_SEGMENT_SYN 0x02u
#define SIM_SEGMENT_RST 0x04u
#define SIM_SEGMENT_ACK 0x10u

struct sim_segment {
	struct node_stream_ends ends; /* local: whose stream it is, sender or receiver */
	uint32_t sequence, acknowledged;
	uint8_t flags;
	const uint8_t *data; /* borrowed */
	uint32_t size;       /* of data */
	uint64_t signature;  /* 0: none; else there is no data */
};

/* A packet for us. 0, or -DSF_E_*: no segment, or a broken one. */
int sim_segment_read(struct sim_segment *s, const uint8_t *packet, uint32_t size);

/* A packet of ours; its size. */
uint32_t sim_segment_write(const struct sim_segment *s, uint16_t window, uint8_t *packet);

/* Sequence space that it takes. */
static inline uint32_t sim_segment_length(const struct sim_segment *s)
{
	return s->size + ((s->flags & SIM_SEGMENT_SYN) != 0) + ((s->flags & SIM_SEGMENT_FIN) != 0);
}

#endif
