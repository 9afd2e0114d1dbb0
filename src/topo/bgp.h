/*
 * bgp.h - who speaks BGP with whom
 *
 * The neighbours of a routed switch: those that the file gives it ("bgp" of its node), and those
 * that follow from the topology, which need no memory of their own:
 *
 *   internal  every EDSW and every RDSW of a building and plane, between loopbacks. The EDSW tells
 *             what it has learnt outside by add-path, next hops as they are
 *   link      the two ends of each link of EDSW and SSW (a hyperport is one), between the link's
 *             addresses. The EDSW tells its building's aggregate. In ecmp mode: of each link of two
 *             switches
 *
 * A neighbour that the file gives takes the place of a derived one with its address.
 */
#ifndef DSF_TOPO_BGP_H
#define DSF_TOPO_BGP_H
#include "topo/model.h"

#define TOPO_BGP_AGGREGATE_LENGTH 32u

enum topo_bgp_kind { TOPO_BGP_GIVEN, TOPO_BGP_LINK, TOPO_BGP_INTERNAL };

struct topo_bgp_peer {
	enum topo_bgp_kind kind;
	uint32_t node; /* at the other end */
	uint32_t port; /* number of our port; TOPO_NONE: by loopbacks */
	uint32_t asn;
	struct dsf_ip6 address, local;
	const struct topo_bgp_neighbor *given; /* GIVEN, else NULL */
};

/* Where a walk is; begins all zero. */
struct topo_bgp_walk {
	enum topo_bgp_kind kind;
	uint32_t at;
};

/* The next neighbour of a node: given ones in the file's order, then by port, then by switch index.
 * False at the end; nodes that aren't routed have none. */
bool topo_bgp_next(const struct topo *t, uint32_t node, struct topo_bgp_walk *walk,
	struct topo_bgp_peer *peer);

/* Is that a switch of ours, which has a loopback? */
bool topo_is_routed(const struct topo_node *n);

/* As the file says, else from the loopback: plane + 1, building, zone, switch. */
uint32_t topo_bgp_router_id(const struct topo *t, uint32_t node);

/* Prefix of all addresses of a building in a plane, of length TOPO_BGP_AGGREGATE_LENGTH. */
struct dsf_ip6 topo_bgp_aggregate(uint32_t plane, uint32_t building);

#endif
