/*
 * hops.h - sets of next hops, and which of them a flow takes
 *
 * Theory. A route leads to a set of next hops that are as good as each other. Sets are kept once:
 * who asks for the same addresses gets the same set, counted, as a switch's hardware shares its
 * few wide groups (published: 16 of 2,048 members).
 *
 * A flow goes to the member with the highest random weight (rendezvous hashing, Thaler and
 * Ravishankar 1998): each member's weight for a flow is a function of its address and the flow's
 * hash alone. So all devices, both drivers and a switch that was started anew agree without
 * telling each other anything; a member that leaves moves its own flows and no others, spread
 * evenly over those that stay; one that comes takes an even share of every other's; and the way
 * back is the same. There are no buckets to fill or to remember, and nothing that is uneven by
 * construction, as tables are (65,536 buckets over 2,048 members are 18 % off).
 *
 * What remains is chance, as with dice. Measured over 1,048,576 flows (tests/unit/ip_hops): by how
 * much the busiest member is above the mean, and the standard deviation, beside that of dice:
 *
 *   members       4      16     128   2,048
 *   most       +0.4 %  +0.7 %  +2.9 %  +14 %
 *   deviation   0.3 %   0.4 %   1.2 %  4.4 %
 *   dice        0.2 %   0.4 %   1.1 %  4.4 %
 *
 * A pick looks at every member, 0.6 ns each: 10 ns of 16, 1.1 us of 2,048 (measured). Memory of a
 * set: 24 bytes a member and 48, so 49 KB at 2,048 members.
 *
 * A member that can't be used just now (its port has no carrier, its address isn't resolved) stays
 * in its sets and is passed over; that is the same pick as from the set without it. So news of a
 * neighbour touches no route: ip_hops_change is all, and it acts at once.
 */
#ifndef DSF_IP_HOPS_H
#define DSF_IP_HOPS_H
#include <stdbool.h>
#include <stdint.h>
#include "base/address.h"
#include "base/memory.h"

#define IP_HOPS_MEMBERS_MAX 4096u /* ours: twice the published 2,048 */
#define IP_HOPS_SETS_MAX    4096u /* ours: different ones at a time */
#define IP_HOPS_CHAINS      64u

struct ip_hops_set {
	struct ip_hops_set *next; /* of its chain */
	uint64_t hash;            /* of the addresses */
	uint32_t id;
	uint32_t users; /* finds without a drop yet */
	uint32_t count;
	uint32_t usable;
	uint64_t *factors;    /* [count]: of a member's weights; 0: not usable now */
	struct dsf_ip6 *hops; /* [count], rising */
};

/* Can address be used as next hop now? */
typedef bool (*ip_hops_usable_fn)(void *user, const struct dsf_ip6 *address);

struct ip_hops {
	const struct dsf_memory *memory;
	ip_hops_usable_fn usable;
	void *user;
	struct ip_hops_set **sets; /* by id; NULL: free */
	uint32_t sets_room;
	uint32_t count; /* sets that exist */
	struct ip_hops_set *chains[IP_HOPS_CHAINS];
};

/* Allocates nothing yet. usable is asked of every member of a new set; NULL: all are usable. */
void ip_hops_init(
	struct ip_hops *h, const struct dsf_memory *memory, ip_hops_usable_fn usable, void *user);
void ip_hops_close(struct ip_hops *h);

/* The set of these addresses, which must rise (as bytes) and so be different; it stays until it has
 * been dropped as often as it was found. 0 and *id, or -DSF_E_BADFIELD (none, too many or not
 * rising), -DSF_E_FULL (too many sets), -DSF_E_NOMEM: nothing has changed. */
int ip_hops_find(struct ip_hops *h, const struct dsf_ip6 *hops, uint32_t count, uint32_t *id);
void ip_hops_drop(struct ip_hops *h, uint32_t id);

/* The member that a flow takes; NULL when none can be used. flow_hash must be well mixed
 * (ip_packet_hash), and be seeded by the switch, or all switches in a row choose alike. Valid until
 * the set goes. */
const struct dsf_ip6 *ip_hops_pick(const struct ip_hops *h, uint32_t id, uint64_t flow_hash);

/* From now on address can be used, or can't, in whatever set it is. O(sets x log members). */
void ip_hops_change(struct ip_hops *h, const struct dsf_ip6 *address, bool usable);

/* A set as it is, for views; valid until it goes. */
const struct ip_hops_set *ip_hops_get(const struct ip_hops *h, uint32_t id);

#endif
