/*
 * attributes.h - path attributes of one route as a list that can be looked at and changed
 *
 * The list is in order of type, one entry a type, and holds everything that travels with a route
 * but its next hop and its prefixes. AS paths are of 4-octet numbers. Encoded, the list is the
 * canonical form by which equal attributes are recognised (store.h) and which goes out as it is.
 *
 * Values are borrowed from where they were read, or lie in the entry itself when they are short.
 */
#ifndef DSF_BGP_ATTRIBUTES_H
#define DSF_BGP_ATTRIBUTES_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/address.h"
#include "base/cursor.h"

enum bgp_attribute_type {
	BGP_ORIGIN = 1,
	BGP_AS_PATH = 2,
	BGP_NEXT_HOP = 3,
	BGP_MED = 4,
	BGP_LOCAL_PREF = 5,
	BGP_ATOMIC_AGGREGATE = 6,
	BGP_AGGREGATOR = 7,
	BGP_COMMUNITIES = 8,
	BGP_ORIGINATOR_ID = 9,
	BGP_CLUSTER_LIST = 10,
	BGP_MP_REACH = 14,
	BGP_MP_UNREACH = 15,
	BGP_EXTENDED_COMMUNITIES = 16,
	BGP_AS4_PATH = 17,
	BGP_AS4_AGGREGATOR = 18,
	BGP_LARGE_COMMUNITIES = 32,
};

#define BGP_FLAG_OPTIONAL   0x80u
#define BGP_FLAG_TRANSITIVE 0x40u
#define BGP_FLAG_PARTIAL    0x20u
#define BGP_FLAG_EXTENDED   0x10u /* length of two octets; never in a list */

enum bgp_origin_code { BGP_ORIGIN_IGP, BGP_ORIGIN_EGP, BGP_ORIGIN_INCOMPLETE };
enum bgp_segment { BGP_AS_SET = 1, BGP_AS_SEQUENCE = 2 };

/* RFC 1997 */
#define BGP_COMMUNITY_NO_EXPORT    0xffffff01u
#define BGP_COMMUNITY_NO_ADVERTISE 0xffffff02u

/* Most attributes that one route may carry: all that we know, and 16 that we don't. */
#define BGP_ATTRIBUTES_MAX 32u

struct bgp_attribute {
	uint8_t type, flags;
	uint16_t size;
	const uint8_t *bytes; /* NULL: in own */
	uint8_t own[8];
};

struct bgp_attributes {
	uint32_t count;
	struct bgp_attribute list[BGP_ATTRIBUTES_MAX];
};

static inline const uint8_t *bgp_attribute_bytes(const struct bgp_attribute *a)
{
	return a->bytes != NULL ? a->bytes : a->own;
}

/* NULL when there is none of that type. */
const struct bgp_attribute *bgp_attributes_find(const struct bgp_attributes *a, uint8_t type);

/* Sets one; bytes are borrowed. False, and nothing changed: the list is full. */
bool bgp_attributes_set(
	struct bgp_attributes *a, uint8_t type, uint8_t flags, const uint8_t *bytes, size_t size);

/* Sets one of four octets, copied. False as above. */
bool bgp_attributes_set32(struct bgp_attributes *a, uint8_t type, uint8_t flags, uint32_t value);

void bgp_attributes_remove(struct bgp_attributes *a, uint8_t type);

/* One of four octets, or otherwise. */
uint32_t bgp_attributes_get32(const struct bgp_attributes *a, uint8_t type, uint32_t otherwise);

bool bgp_attributes_has_community(const struct bgp_attributes *a, uint32_t community);

/* Writes one attribute with its header. */
void bgp_attribute_write(
	struct dsf_writer *w, uint8_t type, uint8_t flags, const uint8_t *bytes, size_t size);

/* Writes the canonical form; the writer fails when there is no room. */
void bgp_attributes_write(const struct bgp_attributes *a, struct dsf_writer *w);

/* Reads what bgp_attributes_write wrote, and only that. */
void bgp_attributes_read(struct bgp_attributes *a, const uint8_t *bytes, size_t size);

/* Walks the numbers of an AS path of 4-octet numbers whose segments are all right. */
struct bgp_as_walk {
	struct dsf_cursor in;
	uint32_t left; /* numbers of the segment under way */
	uint8_t segment;
};

void bgp_as_walk_start(struct bgp_as_walk *w, const struct bgp_attributes *a);
bool bgp_as_walk_next(struct bgp_as_walk *w, uint32_t *as);

/* True when every segment of a path is whole, of a type that we know, not empty, and has no AS 0
 * (RFC 7606 7.2, 7607 2). as_size: octets of a number. */
bool bgp_as_path_is_good(const uint8_t *bytes, size_t size, unsigned as_size);

/* Length of a good path for the decision: a set counts once (RFC 4271 9.1.2.2). */
uint32_t bgp_as_path_hops(const uint8_t *bytes, size_t size, unsigned as_size);

/* The path with as in front, into to, which has room for size + 6. Returns its size. */
size_t bgp_as_path_prepend(uint8_t *to, const uint8_t *bytes, size_t size, uint32_t as);

#endif
