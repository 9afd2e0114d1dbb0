/*
 * neighbor.h - where an address is, in the whole virtual switch
 *
 * Exact match from an address to the system port behind which it lives, its MAC there, and the
 * switch that owns the port. Local neighbours come from ndp, remote ones from the lab file or from
 * the owners' publications. A table may lie over a base that several devices share (the neighbours
 * that the lab file promises): what it says itself hides what the base says; the base must outlive
 * it and never change.
 */
#ifndef DSF_IP_NEIGHBOR_H
#define DSF_IP_NEIGHBOR_H
#include "base/address.h"
#include "base/hash.h"

#define IP_NEIGHBORS_MAX (1u << 20)

enum ip_neighbor_state {
	IP_NEIGHBOR_INCOMPLETE, /* known to belong there, MAC not known */
	IP_NEIGHBOR_REACHABLE,
	IP_NEIGHBOR_STATIC, /* from the lab file */
};

struct ip_neighbor {
	struct dsf_ip6 address; /* key */
	struct dsf_mac mac;
	uint32_t system_port;
	uint32_t owner; /* node that owns the port */
	enum ip_neighbor_state state;
	bool local; /* owner is this device */
};

struct ip_neighbor_table {
	const struct ip_neighbor_table *base; /* or NULL */
	struct dsf_hash entries;
};

/* Allocates nothing yet. base may be NULL. */
void ip_neighbor_init(struct ip_neighbor_table *t, const struct dsf_memory *memory,
	const struct ip_neighbor_table *base);
void ip_neighbor_close(struct ip_neighbor_table *t);

/* Adds or replaces. 0, -DSF_E_FULL or -DSF_E_NOMEM. */
int ip_neighbor_set(struct ip_neighbor_table *t, const struct ip_neighbor *neighbor);

/* Removes what this table (not its base) says. 0, or -DSF_E_UNKNOWN. */
int ip_neighbor_remove(struct ip_neighbor_table *t, const struct dsf_ip6 *address);

/* NULL when nobody knows the address. Valid until the entry changes. */
const struct ip_neighbor *ip_neighbor_lookup(
	const struct ip_neighbor_table *t, const struct dsf_ip6 *address);

/* Own entries in order of insertion, then those of the base that aren't hidden; previous NULL: the
 * first; NULL at the end. */
const struct ip_neighbor *ip_neighbor_next(
	const struct ip_neighbor_table *t, const struct ip_neighbor *previous);

#endif
