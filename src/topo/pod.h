/*
 * pod.h - an edge PoD: what a building's plane shows to the super spine
 *
 * The EDSWs of one building and plane. Towards L3 they speak for the whole building: one AS, one
 * aggregate (of length TOPO_BGP_AGGREGATE_LENGTH), and the edge links that all of its GPUs share.
 */
#ifndef DSF_TOPO_POD_H
#define DSF_TOPO_POD_H
#include <stdbool.h>
#include <stdint.h>
#include "topo/model.h"

struct topo_pod {
	uint32_t building, plane;
	uint32_t gpus;         /* of the building */
	uint32_t edsws, rdsws; /* an iBGP session between each of these and of those */
	uint32_t asn;          /* of its EDSWs; where they differ, of the first */
	struct dsf_ip6 aggregate;
	uint32_t ports;      /* ends of edge links; members of a hyperport count one by one */
	uint64_t port_bps;   /* of each of them; 0: they differ, or are unlimited */
	uint64_t edge_bps;   /* sum; TOPO_UNLIMITED */
	uint64_t gpu_bps;    /* ports of the building's hosts on this plane; TOPO_UNLIMITED */
	uint32_t over_milli; /* gpu_bps over edge_bps, in thousandths; 0: unlimited */
};

/* The PoD behind another one, by building, then plane; the first behind NULL. False: no more. */
bool topo_pod_next(const struct topo *t, const struct topo_pod *before, struct topo_pod *pod);

#endif
