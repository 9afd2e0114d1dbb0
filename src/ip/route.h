/*
 * route.h - longest-prefix match
 *
 * A table from prefixes to a number of the caller's (a system port, an index of a next hop set …).
 * One hash table for each prefix length in use; a lookup tries the lengths in use, longest first.
 * A DSF plane uses three or four lengths (/128 loopbacks, /64 port subnets, /32 aggregates), so a
 * lookup is three or four probes, whatever the number of prefixes. Lookups change nothing: a table
 * that is complete may be shared by all devices of a simulation.
 */
#ifndef DSF_IP_ROUTE_H
#define DSF_IP_ROUTE_H
#include <stdbool.h>
#include <stdint.h>
#include "base/address.h"
#include "base/memory.h"

#define IP_ROUTE_PREFIXES_MAX (1u << 20)
#define IP_ROUTE_LENGTHS      129u /* 0 .. 128 */

struct ip_route_slot {
	uint64_t high, low; /* prefix, host bits zero */
	uint32_t value;
	bool used;
};

struct ip_route {
	const struct dsf_memory *memory;
	uint64_t lengths[3]; /* bit 128 - length: so that longest comes first */
	struct ip_route_slot *slots[IP_ROUTE_LENGTHS]; /* open addressing, powers of two */
	uint32_t slots_count[IP_ROUTE_LENGTHS];
	uint32_t used[IP_ROUTE_LENGTHS];
	uint32_t count;
};

/* Allocates nothing yet. */
void ip_route_init(struct ip_route *r, const struct dsf_memory *memory);
void ip_route_close(struct ip_route *r);

/* Adds prefix/length or gives it another value. Host bits of prefix are ignored. 0, -DSF_E_BADFIELD
 * (length above 128), -DSF_E_FULL or -DSF_E_NOMEM. */
int ip_route_set(struct ip_route *r, const struct dsf_ip6 *prefix, unsigned length, uint32_t value);

/* 0, or -DSF_E_NOROUTE when it isn't there. */
int ip_route_remove(struct ip_route *r, const struct dsf_ip6 *prefix, unsigned length);

/* The value of the longest prefix that holds address. 0, or -DSF_E_NOROUTE. */
int ip_route_lookup(const struct ip_route *r, const struct dsf_ip6 *address, uint32_t *value);

#endif
