/*
 * plan.h - what a topology is able to do and what it costs, computed from the table alone
 */
#ifndef DSF_TOPO_PLAN_H
#define DSF_TOPO_PLAN_H
#include <stdint.h>
#include "topo/model.h"

#define TOPO_UNLIMITED UINT64_MAX /* a sum of rates with an unlimited one in it */

struct topo_plan {
	uint32_t roles[TOPO_ROLES_COUNT];
	uint32_t kinds[TOPO_KINDS_COUNT]; /* links */
	uint32_t buildings, clusters;
	uint32_t system_ports;
	uint64_t fsdb_sessions, bgp_sessions; /* of two switches, or a switch and another router */
	uint64_t ibgp_sessions;               /* those of bgp_sessions that are internal */
	uint64_t gpu_bps; /* of each GPU, over all planes; 0: they differ, or are unlimited */
	uint64_t rates_bps[TOPO_KINDS_COUNT]; /* sums, one direction; TOPO_UNLIMITED */
	/* Half the lab to the other half, over the narrowest tier between them; TOPO_UNLIMITED. */
	uint64_t bisection_bps;
	/* Thousandths, the worst node; 0: doesn't apply or unlimited. */
	uint32_t speedup_milli;   /* RDSW: fabric links over GPU ports */
	uint32_t over_rdsw_milli; /* oversubscription: GPU ports over fabric links */
	uint32_t over_fdsw_milli; /* links to INs over links to SDSWs */
	uint32_t over_edge_milli; /* a building's GPU ports over its edge links, on one plane */
	uint64_t memory_bytes;    /* live, under load, kernel included */
	uint32_t dilation_quantum, dilation_load; /* the two lower bounds of D */
	uint32_t dilation;                        /* what "auto" means */
};

/* Of rates, where 0 is unlimited as in the table. */
static inline uint64_t topo_rate_add(uint64_t sum, uint64_t rate_bps)
{
	return sum == TOPO_UNLIMITED || rate_bps == 0 ? TOPO_UNLIMITED : sum + rate_bps;
}

/* a / b in thousandths, rounded; 0 where that says nothing. */
static inline uint32_t topo_rate_ratio_milli(uint64_t a, uint64_t b)
{
	if (a == TOPO_UNLIMITED || b == TOPO_UNLIMITED || b == 0)
		return 0;
	return (uint32_t)(((unsigned __int128)a * 1000 + b / 2) / b);
}

/* cores: how many the lab may use; at least 1. */
void topo_plan(const struct topo *t, uint32_t cores, struct topo_plan *plan);

/*
 * D for "time_dilation": "auto", at least 1, rounded up to two digits. The greater of two bounds:
 *  - quantum: the time of one train on the fastest cell link must last 250 us of wall time, so that
 *    a process wakes at most that often for each of its links;
 *  - load: with every link saturated both ways, the CPU time of all frames, cells and packets of a
 *    fabric second must fit into 60 % of D seconds of the cores. Costs: plan.c.
 */
uint32_t topo_auto_dilation(const struct topo *t, uint32_t cores);

#endif
