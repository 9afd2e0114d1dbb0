/*
 * fixed.h - what a cell fabric comes to when links have failed, without a packet
 *
 * The planner's own way to the fixed point that the devices find by telling each other (fabric/
 * reach.h, fabric/balance.h): for one destination at a time, tier by tier, from the wiring, the
 * failed links and the seed alone. Nothing of src/fabric is used; the two are compared in tests.
 * Three passes over the links say who hears of the destination on which port: in a healthy fabric;
 * with the failures, if nobody withheld anything; and with both.
 */
#ifndef DSF_TOPO_FIXED_H
#define DSF_TOPO_FIXED_H
#include <stdbool.h>
#include <stdint.h>
#include "base/memory.h"
#include "topo/model.h"

struct topo_fixed;

/* Port numbers of a node as bitsets, valid until the next call. */
struct topo_fixed_row {
	const uint64_t *output;     /* destination is heard */
	const uint64_t *advertised; /* it is told */
	const uint64_t *withdrawn;  /* it would be told, but for Input Balanced Mode */
	bool cut_by_balance;        /* not reached, though it would be */
};

/* failed: a bitset over links, borrowed, read by topo_fixed_destination; seed: of the draws. NULL
 * when memory is short. */
struct topo_fixed *topo_fixed_new(const struct topo *t, const uint64_t *failed, uint64_t seed,
	const struct dsf_memory *memory);
void topo_fixed_free(struct topo_fixed *f);

/* An interface node that lacks links to remain in its fabric (once out: to join it) drains itself:
 * adds all its links to failed. starved, of each node: whether it was so before (true of one that
 * starts), then whether it is so with these failures. */
void topo_fixed_starve(const struct topo *t, uint64_t *failed, bool *starved);

/* Computes the fixed point of an interface node's reachability. */
void topo_fixed_destination(struct topo_fixed *f, uint32_t node);

/* Does a healthy fabric tell of the destination at this port (index in the topology)? */
bool topo_fixed_expects(const struct topo_fixed *f, uint32_t port);

/* Does a node belong to the fabric of that destination? Then its row. */
bool topo_fixed_row(struct topo_fixed *f, uint32_t node, struct topo_fixed_row *row);

#endif
