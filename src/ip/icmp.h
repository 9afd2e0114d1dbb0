/*
 * icmp.h - ICMPv6 that a node says itself (RFC 4443)
 *
 * Errors about packets that can't be passed on, and answers to echo requests for our own addresses
 * (simulated hosts only; live, the kernel answers for every address of ours). Errors are limited by
 * a token bucket, as RFC 4443 2.4 (f) demands, and are never sent about what 2.4 (e) excludes.
 */
#ifndef DSF_IP_ICMP_H
#define DSF_IP_ICMP_H
#include "base/time.h"
#include "ip/packet.h"

#define IP_ICMP_BURST       50u              /* errors at once */
#define IP_ICMP_INTERVAL_NS (10 * NS_PER_MS) /* fabric time an error regains; divide by D live */
#define IP_ICMP_SIZE        8u               /* type, code, checksum, four bytes more */
#define IP_ICMP_FRAME_MAX   (IP_ETHERNET_SIZE + IP_MTU_MIN) /* largest error, Ethernet included */

enum ip_icmp_error {
	IP_ICMP_NO_ROUTE,
	IP_ICMP_ADDRESS_UNREACHABLE,
	IP_ICMP_TOO_BIG,
	IP_ICMP_HOP_LIMIT,
	IP_ICMP_ERROR_COUNT,
};

struct ip_icmp {
	uint64_t interval_ns;
	dsf_instant full_at; /* when the bucket will be full again */
	uint64_t sent[IP_ICMP_ERROR_COUNT];
	uint64_t limited;  /* not sent: bucket empty */
	uint64_t excluded; /* not sent: forbidden about such a packet */
};

/* interval_ns 0: IP_ICMP_INTERVAL_NS. */
void ip_icmp_init(struct ip_icmp *i, uint64_t interval_ns);

/* Writes the error about packet p (parsed from bytes) into buf: a frame with Ethernet header, MACs
 * of the packet swapped (zero where p had none), from our address source to the packet's source.
 * mtu is told by IP_ICMP_TOO_BIG alone. Returns the frame's size (all of it is stored), or 0 when
 * no error may be sent. cap must be IP_ICMP_FRAME_MAX at least. */
size_t ip_icmp_error(struct ip_icmp *i, enum ip_icmp_error error, const struct ip_packet *p,
	const uint8_t *bytes, uint32_t stored, const struct dsf_ip6 *source, uint32_t mtu,
	uint8_t *buf, size_t cap, dsf_instant now);

/* True for an echo request to a unicast address. */
bool ip_icmp_is_echo_request(const struct ip_packet *p, const uint8_t *bytes, uint32_t stored);

/* Makes the reply out of the request in place: addresses and MACs swapped, type and checksum
 * changed, hop limit IP_HOP_LIMIT. The payload isn't touched and needn't be stored. */
void ip_icmp_echo_reply(struct ip_packet *p, uint8_t *bytes);

/* True when p is an ICMPv6 error (or hides what it is), about which no error may be sent. */
bool ip_icmp_is_error(const struct ip_packet *p, const uint8_t *bytes, uint32_t stored);

#endif
