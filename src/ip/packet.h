/*
 * packet.h - IPv6 packets in Ethernet frames, and the theory of src/ip
 *
 * src/ip is the Ethernet edge of a switch (and of a simulated host): what happens to an IPv6
 * packet before it becomes cells and after it was cells. Five parts, each usable alone:
 *
 *   packet   reads and changes headers, computes checksums                  (this file)
 *   ndp      learns and keeps the MACs behind the Ethernet ports of one node
 *   icmp     builds errors (too big, hop limit, unreachable) and echo replies
 *   route    longest-prefix match: prefix -> number of the caller
 *   neighbor exact match: address -> MAC and system port, local or remote
 *
 * The way of a packet through an interface node: parse; NDP goes to ndp; a packet for one of our
 * own addresses goes up the host port; else the neighbour of the destination is looked up (any
 * neighbour of the virtual switch is one hop away, at its system port), else a route; the hop limit
 * falls by one, here only; size is checked against the MTU of the target; the Ethernet header is
 * rewritten with the neighbour's MAC and the packet joins a VOQ. Nothing here queues: a packet to
 * an unresolved neighbour is dropped and counted while the solicitation goes out at once.
 *
 * Two sizes. In the simulator the payload may be carried by name, so that a frame of `size` bytes
 * may have only `stored` bytes in memory. Every length is checked against size, every header that
 * is read against stored.
 *
 * Left out on purpose: VLAN tags, router advertisements, fragmentation by the sender's side,
 * redirects. A switch port carries plain Ethernet II with IPv6 and hosts are configured by the lab.
 */
#ifndef DSF_IP_PACKET_H
#define DSF_IP_PACKET_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/address.h"

#define IP_ETHERNET_SIZE 14u
#define IP_HEADER_SIZE   40u
#define IP_UDP_SIZE      8u
#define IP_ETHERTYPE     0x86ddu
#define IP_MTU_MIN       1280u /* RFC 8200 section 5 */
#define IP_HOP_LIMIT     64u   /* of packets that we make, RFC 1700 */
#define IP_EXTENSIONS_MAX                                                                          \
	8u /* extension headers that are walked; a packet with more has no ports */

#define IP_PROTOCOL_TCP   6u
#define IP_PROTOCOL_UDP   17u
#define IP_PROTOCOL_ICMP6 58u
#define IP_PROTOCOL_NONE  59u /* RFC 8200 4.7: nothing follows */
#define IP_PROTOCOL_HIDDEN                                                                         \
	255u /* upper protocol not found: cut short, encrypted, later fragment \
				 */

#define IP_ECN_NOT_ECT 0u
#define IP_ECN_ECT1    1u
#define IP_ECN_ECT0    2u
#define IP_ECN_CE      3u

/* What the headers say. Offsets are from the first byte that was parsed. */
struct ip_packet {
	struct dsf_mac target_mac, source_mac; /* zero where there is no Ethernet header */
	struct dsf_ip6 source, destination;
	uint32_t header_offset;    /* of the IPv6 header: IP_ETHERNET_SIZE or 0 */
	uint32_t size;             /* IP bytes: header + payload, without Ethernet padding */
	uint32_t padding;          /* bytes of the frame behind the packet */
	uint32_t transport_offset; /* of the upper header, behind extension headers */
	uint32_t transport_size;   /* upper header and its payload */
	uint32_t flow_label;
	uint8_t next_header; /* as in the IPv6 header */
	uint8_t protocol;    /* of the upper header, or IP_PROTOCOL_HIDDEN */
	uint8_t dscp, ecn, hop_limit;
	bool fragment;                     /* has a fragment header */
	uint16_t source_port, target_port; /* TCP, UDP; else 0 */
};

/* Parses a frame (Ethernet II) or a bare IPv6 packet. 0, or
 * -DSF_E_UNSUPPORTED  another EtherType (VLAN, ARP, LLDP …) or a jumbogram
 * -DSF_E_VERSION      not version 6
 * -DSF_E_TRUNCATED    shorter than its headers say, or headers not stored
 * -DSF_E_BADFIELD     source is multicast, destination unspecified, either is loopback */
int ip_packet_parse_frame(
	struct ip_packet *p, const uint8_t *frame, uint32_t stored, uint32_t size);
int ip_packet_parse_bare(struct ip_packet *p, const uint8_t *bytes, uint32_t stored, uint32_t size);

/* May a router pass it on: unicast, global scope at both ends (RFC 4291 2.5.2, 2.5.6, 2.7). */
bool ip_packet_routable(const struct ip_packet *p);

/* Hash of (source, destination, protocol, ports), well mixed; equal for all packets of a flow. The
 * fragments of a packet, which don't all have ports, hash by addresses alone. */
uint64_t ip_packet_hash(const struct ip_packet *p, uint64_t seed);

/* Changes in the bytes that were parsed (p is brought along). No IPv6 checksum covers these. */
void ip_packet_set_ce(struct ip_packet *p, uint8_t *bytes);
/* hop_limit must be above 1: a packet with less is answered by Time Exceeded. */
void ip_packet_decrement_hop_limit(struct ip_packet *p, uint8_t *bytes);

/* Writers of headers, for packets that we make. */
void ip_packet_write_ethernet(
	uint8_t *frame, const struct dsf_mac *target, const struct dsf_mac *source);
void ip_packet_write_header(uint8_t *header, const struct dsf_ip6 *source,
	const struct dsf_ip6 *destination, uint8_t dscp, uint8_t ecn, uint8_t protocol,
	uint8_t hop_limit, uint32_t payload_size);

/*
 * Checksums, RFC 1071. A sum is kept as a number in the machine's byte order, which is why only
 * ip_checksum_* functions read or write it; ip_checksum_fold gives the complement that goes on the
 * wire, to be stored with ip_checksum_store.
 */

/* Adds bytes that stand at `offset` from the start of what is summed (only odd or even counts). */
uint64_t ip_checksum_add(uint64_t sum, size_t offset, const uint8_t *bytes, size_t size);

/* The pseudo-header of RFC 8200 8.1. */
uint64_t ip_checksum_pseudo(const struct dsf_ip6 *source, const struct dsf_ip6 *destination,
	uint32_t size, uint8_t protocol);

/* 16 bits, not complemented; 0xffff where everything that was summed is valid. */
uint16_t ip_checksum_fold(uint64_t sum);

/* Stores the complement of sum. A result of 0 becomes 0xffff, which is the same number and, for
 * UDP, not the mark "no checksum" (RFC 8200 8.1). */
void ip_checksum_store(uint8_t *field, uint64_t sum);

/* Completes a checksum that was left partial (struct node_frame): the field holds the sum of the
 * pseudo-header. 0, or -DSF_E_BADFIELD when start and offset don't lie within size bytes. */
int ip_checksum_finish(uint8_t *bytes, uint32_t size, uint32_t start, uint32_t offset);

/* True when the TCP, UDP or ICMPv6 checksum of a whole packet is right (UDP: zero is wrong). */
bool ip_checksum_valid(const struct ip_packet *p, const uint8_t *bytes);

#endif
