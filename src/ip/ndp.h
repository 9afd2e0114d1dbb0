/*
 * ndp.h - neighbours behind the Ethernet ports of one node (RFC 4861, 9131)
 *
 * Each port has an address and a MAC of ours. Addresses that the lab file promises are targets:
 * they are solicited from the moment their port has carrier until they answer, and again whenever
 * they are lost. Others are learned when they speak to us (a solicitation for our address, an
 * advertisement, as RFC 9131 lets a router do), or are resolved when a packet wants them.
 *
 * States. INCOMPLETE: solicited by multicast, MAC unknown. REACHABLE: MAC known. A REACHABLE entry
 * that hasn't been confirmed for reachable_ns is probed by unicast; IP_NDP_PROBES_MAX unanswered
 * probes make it INCOMPLETE (targets) or remove it. That is one timer of reachable_ns an entry; no
 * faster tick stands. A new MAC in an advertisement that may override replaces the old at once; one
 * that may not override makes us probe the old.
 *
 * Packets are never queued: while an address is INCOMPLETE the caller drops and counts.
 *
 * Durations are fabric time. Who runs under time dilation D and wants the protocol's durations in
 * wall time divides them by D.
 */
#ifndef DSF_IP_NDP_H
#define DSF_IP_NDP_H
#include "base/hash.h"
#include "base/heap.h"
#include "base/memory.h"
#include "base/time.h"
#include "ip/ndp_wire.h"

#define IP_NDP_RETRANSMIT_NS (1 * NS_PER_S)  /* RETRANS_TIMER, RFC 4861 section 10 */
#define IP_NDP_BACKOFF_MAX   5u              /* targets: the interval doubles this often */
#define IP_NDP_REACHABLE_NS  (30 * NS_PER_S) /* REACHABLE_TIME */
#define IP_NDP_SOLICITS_MAX  3u              /* MAX_MULTICAST_SOLICIT, for what isn't a target */
#define IP_NDP_PROBES_MAX    3u              /* MAX_UNICAST_SOLICIT */
#define IP_NDP_ENTRIES_MAX   256u            /* a port: entries of all kinds */
#define IP_NDP_INCOMPLETE_MAX                                                                      \
	64u /* a port: unresolved ones that aren't targets, so that a scan \
	       of the subnet can't take every place */
#define IP_NDP_PORTS_MAX   1024u
#define IP_NDP_ANSWERS_MAX 64u /* advertisements that wait for ip_ndp_output */
#define IP_NDP_FRAME_SIZE                                                                          \
	86u /* every frame we make: Ethernet + IPv6 + NS or NA with one option \
				*/

enum ip_ndp_state {
	IP_NDP_INCOMPLETE,
	IP_NDP_REACHABLE,
	IP_NDP_GONE, /* removed, until ip_ndp_changed has told */
};

/* A port of ours. */
struct ip_ndp_port {
	struct dsf_mac mac;
	struct dsf_ip6 address; /* its link-local address follows from mac */
	uint8_t prefix_length;  /* neighbours lie in address/prefix_length or are link-local */
};

struct ip_ndp_config {
	const struct dsf_memory *memory;
	const struct ip_ndp_port *ports; /* copied */
	uint32_t ports_count;            /* 1 .. IP_NDP_PORTS_MAX */
	bool router;                     /* what advertisements say of us */
	uint64_t retransmit_ns;          /* 0: IP_NDP_RETRANSMIT_NS */
	uint64_t reachable_ns;           /* 0: IP_NDP_REACHABLE_NS */
};

struct ip_ndp_key {
	struct dsf_ip6 address;
	uint32_t port; /* index in the config's ports */
};

/* One neighbour; read-only for the caller. */
struct ip_ndp_entry {
	struct ip_ndp_key key;
	enum ip_ndp_state state;
	bool target;  /* promised: never given up */
	bool probing; /* REACHABLE but unconfirmed */
	struct dsf_mac mac;
	uint32_t tries; /* solicitations since the last answer */
	struct dsf_heap_entry timer;
	bool solicit_due, changed;
	bool told_reachable; /* what ip_ndp_changed said last */
	struct dsf_mac told_mac;
	struct ip_ndp_entry *solicit_next, *changed_next;
};

struct ip_ndp_counters {
	uint64_t solicits_sent, solicits_received;
	uint64_t advertisements_sent, advertisements_received;
	uint64_t invalid;    /* failed validation */
	uint64_t duplicate;  /* somebody else claims our address */
	uint64_t full;       /* no place for an entry or an answer */
	uint64_t unresolved; /* resolve calls without an answer yet */
	uint64_t timed_out;  /* entries that stopped answering */
};

struct ip_ndp;

/* NULL when memory is short. All ports start without carrier. */
struct ip_ndp *ip_ndp_new(const struct ip_ndp_config *config);
void ip_ndp_free(struct ip_ndp *n);

/* Makes address a target on port. 0, -DSF_E_BADFIELD (not a unicast address of that link),
 * -DSF_E_FULL or -DSF_E_NOMEM. */
int ip_ndp_solicit(struct ip_ndp *n, uint32_t port, const struct dsf_ip6 *address, dsf_instant now);

/* Up: solicits the port's targets. Down: every MAC of the port is forgotten. */
void ip_ndp_carrier(struct ip_ndp *n, uint32_t port, bool up, dsf_instant now);

/* A frame for which ip_ndp_wire_is is true, stored whole. 0 also when it was valid but meant
 * nothing to us. -DSF_E_TRUNCATED, -DSF_E_BADFIELD, -DSF_E_CHECKSUM: counted as invalid;
 * -DSF_E_DUPLICATE: somebody else claims an address of ours; -DSF_E_STATE: port without carrier;
 * -DSF_E_FULL, -DSF_E_NOMEM: no place for what it says. */
int ip_ndp_input(struct ip_ndp *n, uint32_t port, const struct ip_packet *p, const uint8_t *frame,
	uint32_t stored, dsf_instant now);

/* The next frame to send, at most IP_NDP_FRAME_SIZE bytes into buf, and its port; 0 when there is
 * none. */
size_t ip_ndp_output(struct ip_ndp *n, uint32_t *port, uint8_t *buf, size_t cap, dsf_instant now);

dsf_instant ip_ndp_deadline(const struct ip_ndp *n);
void ip_ndp_expire(struct ip_ndp *n, dsf_instant now);

/* MAC of a REACHABLE neighbour, NULL otherwise. Valid until the next call that changes n. */
const struct dsf_mac *ip_ndp_lookup(
	const struct ip_ndp *n, uint32_t port, const struct dsf_ip6 *address);

/* A packet wants address, which lookup doesn't know: starts to solicit it. Always negative:
 * -DSF_E_NONEIGHBOR (under way), -DSF_E_BADFIELD (can't be there), -DSF_E_STATE (port without
 * carrier), -DSF_E_FULL, -DSF_E_NOMEM. */
int ip_ndp_resolve(struct ip_ndp *n, uint32_t port, const struct dsf_ip6 *address, dsf_instant now);

struct ip_ndp_change {
	uint32_t port;
	struct dsf_ip6 address;
	struct dsf_mac mac; /* all zero when not reachable */
	bool reachable;
};

/* The next neighbour whose MAC or reachability is no longer what was told last; false when all has
 * been told. */
bool ip_ndp_changed(struct ip_ndp *n, struct ip_ndp_change *change);

/* Entries in order of their making; previous NULL: the first. GONE entries are left out. */
const struct ip_ndp_entry *ip_ndp_next(const struct ip_ndp *n, const struct ip_ndp_entry *previous);

/* Targets that are not REACHABLE. O(1). */
uint32_t ip_ndp_missing(const struct ip_ndp *n);

const struct ip_ndp_counters *ip_ndp_count(const struct ip_ndp *n);

#endif
