/*
 * ndp_wire.h - neighbour solicitations and advertisements on the wire (RFC 4861 4.3, 4.4)
 */
#ifndef DSF_IP_NDP_WIRE_H
#define DSF_IP_NDP_WIRE_H
#include "ip/packet.h"

#define IP_NDP_SOLICIT   135u
#define IP_NDP_ADVERTISE 136u

#define IP_NDP_FLAG_ROUTER    0x80000000u
#define IP_NDP_FLAG_SOLICITED 0x40000000u
#define IP_NDP_FLAG_OVERRIDE  0x20000000u

/* Every frame we make: Ethernet, IPv6, NS or NA with one option. */
#define IP_NDP_FRAME_SIZE 86u

/* What a valid message says. */
struct ip_ndp_message {
	bool advertisement;
	uint32_t flags;
	struct dsf_ip6 target;
	bool has_mac; /* solicitation: of its source; advertisement: of the target */
	struct dsf_mac mac;
};

/* True for neighbour solicitations and advertisements. */
bool ip_ndp_wire_is(const struct ip_packet *p, const uint8_t *frame, uint32_t stored);

/* Reads a frame for which ip_ndp_wire_is is true, with every check of RFC 4861 7.1.1 and 7.1.2. 0,
 * -DSF_E_TRUNCATED, -DSF_E_BADFIELD or -DSF_E_CHECKSUM. */
int ip_ndp_wire_read(
	struct ip_ndp_message *m, const struct ip_packet *p, const uint8_t *frame, uint32_t stored);

/* Writes the frame of a message of type with our mac as its option; IP_NDP_FRAME_SIZE bytes. */
size_t ip_ndp_wire_write(uint8_t *buf, unsigned type, uint32_t flags, const struct dsf_ip6 *target,
	const struct dsf_mac *mac, const struct dsf_ip6 *source, const struct dsf_mac *target_mac,
	const struct dsf_ip6 *destination);

/* The solicited-node group of an address, RFC 4291 2.7.1. */
struct dsf_ip6 ip_ndp_wire_group(const struct dsf_ip6 *a);

/* MAC of a multicast group, RFC 2464 section 7. */
struct dsf_mac ip_ndp_wire_mac(const struct dsf_ip6 *group);

#endif
