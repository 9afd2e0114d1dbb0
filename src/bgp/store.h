/*
 * store.h - what many routes have in common, kept once
 *
 * A bundle is the next hop and the attributes of a route; a set of hops is what a prefix is
 * forwarded to. Both are immutable, found by their content, counted by who holds them, and gone
 * with the last holder. So equal content is the same pointer.
 */
#ifndef DSF_BGP_STORE_H
#define DSF_BGP_STORE_H
#include "bgp/attributes.h"
#include "bgp/table.h"

struct bgp_out;

struct bgp_bundle {
	struct bgp_link link;
	uint32_t refs;
	uint64_t *account; /* bytes of whoever brought it */
	struct dsf_ip6 next_hop;
	/* what decisions need of the attributes */
	uint32_t local_pref, med, hops;
	uint32_t neighbor_as;   /* first of the path; 0: none */
	uint32_t originator_id; /* 0: none */
	uint16_t clusters;
	uint8_t origin;
	bool no_export, no_advertise;
	uint16_t size; /* of bytes */
	/* announcements of one batch of decisions that share the bundle (out.c) */
	struct bgp_out *batch_first, *batch_last;
	struct bgp_bundle *batch_next;
	uint8_t bytes[]; /* canonical form of the attributes */
};

struct bgp_hops {
	struct bgp_link link;
	uint32_t refs;
	uint32_t count;
	struct dsf_ip6 list[]; /* in ascending order, none twice */
};

struct bgp_store {
	const struct dsf_memory *memory;
	uint64_t seed;
	struct bgp_table bundles, hops;
};

#define BGP_LOCAL_PREF_DEFAULT 100u /* RFC 4277 4.2: what speakers use */

void bgp_store_init(struct bgp_store *s, const struct dsf_memory *memory, uint64_t seed);
void bgp_store_close(struct bgp_store *s);

/* The bundle of these attributes, held once more for the caller. canonical has room for cap bytes,
 * at most 65535. A new one's bytes are booked on *account, which must outlive it. NULL: memory is
 * short, or there is no room. */
struct bgp_bundle *bgp_store_bundle(struct bgp_store *s, const struct bgp_attributes *a,
	const struct dsf_ip6 *next_hop, uint64_t *account, uint8_t *canonical, size_t cap);
struct bgp_bundle *bgp_bundle_hold(struct bgp_bundle *bundle);
void bgp_bundle_give(struct bgp_store *s, struct bgp_bundle *bundle);

/* The set of these hops, which are in order; held once more. NULL: memory is short. */
struct bgp_hops *bgp_store_hops(struct bgp_store *s, const struct dsf_ip6 *list, uint32_t count);
void bgp_hops_give(struct bgp_store *s, struct bgp_hops *hops);

/* A seeded hash of bytes. */
uint32_t bgp_store_hash(uint64_t seed, const void *bytes, size_t size);

#endif
