/*
 * routing_state.h - what the parts of routing share (routing.h has the theory)
 */
#ifndef DSF_NODE_ROUTING_STATE_H
#define DSF_NODE_ROUTING_STATE_H
#include "base/hash.h"
#include "bgp/bgp.h"
#include "ip/route.h"
#include "node/routing.h"
#include "topo/bgp.h"

#define NODE_ROUTING_WRITE_BYTES  16384u /* at a time; ours */
#define NODE_ROUTING_PREFIXES_MAX IP_ROUTE_PREFIXES_MAX

struct node_routing_peer {
	struct topo_bgp_peer topo;
	bool usable;  /* its address can be sent to */
	bool listens; /* even while it can't */
	bool ours;    /* a switch of ours: counts for being ready */
	bool up;
};

/* By its number, while the driver has it. */
struct node_routing_stream {
	uint32_t number; /* key: BGP's name of it and NODE_ROUTING_STREAM */
	uint32_t peer;
	uint32_t room;
	bool broken;      /* to be closed; BGP knows no longer of it */
	uint8_t *pending; /* written by BGP, not yet taken; NULL: none */
	uint32_t pending_size, pending_at;
	bool in_work;
	struct node_routing_stream *work_next;
};

struct node_routing_address {
	struct dsf_ip6 address; /* key: no two peers have one */
	uint32_t peer;
};

struct node_routing_prefix {
	struct dsf_ip6 address; /* key, with length */
	uint32_t length;
	uint32_t set; /* of hops */
};

/* What the prefix has to lead to when all of the lab is up. */
struct node_routing_expected {
	struct dsf_ip6 address; /* key, with length */
	uint32_t length;
	uint32_t node; /* whose it is; TOPO_NONE: a building's */
	uint32_t hops; /* so many next hops */
	bool there;
};

struct node_routing {
	struct node_routing_config config;
	const struct topo_node *self;
	struct bgp *bgp;
	struct node_routing_peer *peers; /* by BGP's numbers */
	uint32_t peers_count;
	uint32_t up_count; /* sessions */
	uint32_t ours_count, ours_up;
	uint32_t leaves_usable; /* RDSWs of its building, for an edge switch */
	bool originates;        /* the aggregate is BGP's origin 0 */
	struct dsf_hash addresses, streams;
	struct node_routing_stream *work_first, *work_last; /* with something to do */
	struct ip_hops hops;
	struct ip_route table; /* prefix -> set */
	struct dsf_hash prefixes;
	struct dsf_hash expected;
	uint32_t expected_there;
	uint64_t flow_seed;
	uint64_t refused; /* routes that found no room */
	uint8_t buffer[NODE_ROUTING_WRITE_BYTES];
	/* Policies of sessions that follow from the topology, and those of the file. */
	struct bgp_rule *rules;
	struct bgp_policy *policies;
	uint32_t rules_count, policies_count;
};

static inline dsf_instant node_routing_protocol(const struct node_routing *r, dsf_instant now)
{
	return (dsf_instant){ now.ns * r->config.control_dilation };
}

/* routing_expect.c: what there has to be, from the topology; without BGP it is so from the
 * beginning. 0, -DSF_E_NOMEM or -DSF_E_FULL. */
int node_routing_expect(struct node_routing *r, dsf_instant now);
/* routing_expect.c: a prefix leads to so many next hops now. */
void node_routing_count(
	struct node_routing *r, const struct dsf_ip6 *prefix, uint32_t length, uint32_t hops);
void node_routing_view_expected(const struct node_routing *r, node_row_fn row_fn, void *user);

/* routing.c: a prefix leads to other next hops from now on, or (0) to none. */
void node_routing_route(struct node_routing *r, const struct dsf_ip6 *prefix, uint32_t length,
	const struct dsf_ip6 *hops, uint32_t hops_count, dsf_instant now);

/* routing_config.c: makes the speaker and its peers. 0 or -DSF_E_NOMEM, -DSF_E_FULL. */
int node_routing_configure(struct node_routing *r, dsf_instant now);

/* routing.c: after anything was said to the speaker. */
void node_routing_settle(struct node_routing *r, dsf_instant now);

/* routing_stream.c: all streams of a peer are broken off. */
void node_routing_break(struct node_routing *r, uint32_t peer, dsf_instant now);
void node_routing_close_streams(struct node_routing *r);

#endif
