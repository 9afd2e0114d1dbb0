/*
 * draw.h - what a topology says about Input Balanced Mode
 *
 * Who draws with whom, and what links count. The fabric core is given these by the device; the
 * planner (fixed.c) uses them itself.
 */
#ifndef DSF_TOPO_DRAW_H
#define DSF_TOPO_DRAW_H
#include "base/draw.h"
#include "topo/model.h"

/* How a fabric node draws: FDSWs of a cluster are siblings, and so are the SDSWs of a building, in
 * each plane. */
struct dsf_draw topo_draw(const struct topo *t, uint32_t node, uint64_t seed);

/* The greatest rate that divides those of all cell links of a node; bit/s, above 0. A link without
 * limit counts as one of TOPO_RATE_MAX. */
uint64_t topo_draw_unit(const struct topo *t, const struct topo_node *n);

/* A port's share of that. */
uint32_t topo_draw_capacity(const struct topo *t, const struct topo_port *p, uint64_t unit);

#endif
