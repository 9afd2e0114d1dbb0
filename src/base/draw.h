/*
 * draw.h - in which order a device gives up links
 *
 * Input Balanced Mode withholds links by a priority order that each device has for each group of
 * its links, once and for all: a function of the seed, so that whoever knows the lab (the device,
 * the planner) knows the order without a word between them.
 *
 *   random      every device its own shuffle, as published
 *   stratified  siblings (devices with the same neighbours) share one cyclic shuffle, in which
 *               parallel links lie as far apart as they can. Each sibling starts at its own of
 *               evenly spaced offsets. An even number of them goes by pairs: the second of a pair
 *               starts at the far end of its stretch and goes backwards, so that two siblings lose
 *               no common neighbour as long as what they keep covers all neighbours between them
 *   forced      orders that the file gives; links that it doesn't name follow, stratified
 */
#ifndef DSF_BASE_DRAW_H
#define DSF_BASE_DRAW_H
#include <stdint.h>

#define DSF_DRAW_UNPLACED UINT32_MAX

enum dsf_draw_kind { DSF_DRAW_STRATIFIED, DSF_DRAW_RANDOM, DSF_DRAW_FORCED };

/* Who draws. */
struct dsf_draw {
	enum dsf_draw_kind kind;
	uint64_t seed;
	uint32_t device;            /* its number in the lab */
	uint32_t family;            /* siblings have one number in common */
	uint32_t sibling, siblings; /* which of how many; 0 of 1 without siblings */
};

struct dsf_draw_link {
	uint32_t port;
	uint32_t peer;     /* the neighbour's number in the lab */
	uint32_t parallel; /* which of the links to this peer, from 0 */
	uint32_t place;    /* in a forced order, or DSF_DRAW_UNPLACED */
	uint64_t key;      /* of the sort; no need to set it */
};

/* Puts the links of a group in order: the first is withheld first. Equal arguments give equal
 * orders, however the links came; group is the same number for siblings' like groups. */
void dsf_draw_order(
	const struct dsf_draw *draw, uint64_t group, struct dsf_draw_link *links, uint32_t count);

#endif
