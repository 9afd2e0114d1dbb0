/*
 * spec.h - one workload, as every rank is told it
 *
 * The CLI (or the simulator) makes one spec and hands the same one to every host; each host works
 * out its own part from its ranks. Endpoints are GPUs (NICs), numbered by host, then rail.
 */
#ifndef DSF_WORKLOAD_SPEC_H
#define DSF_WORKLOAD_SPEC_H
#include <stdint.h>
#include "base/time.h"

/* A run starts so many base RTTs after its command: connections are open by then (ours). */
#define WORKLOAD_START_RTTS 2u

enum workload_kind {
	WORKLOAD_UDP,   /* datagrams without transport at rate_bps */
	WORKLOAD_WRITE, /* rank i of the first half writes to its partner of the second half */
	WORKLOAD_PERMUTATION, /* every rank writes to one other, seeded, within scope */
	WORKLOAD_INCAST,      /* all other ranks write to ranks[0] */
};

enum workload_scope {
	WORKLOAD_SCOPE_ANY,
	WORKLOAD_SCOPE_CROSS_RDSW, /* default */
	WORKLOAD_SCOPE_CROSS_ZONE,
	WORKLOAD_SCOPE_CROSS_BUILDING,
	WORKLOAD_SCOPE_SAME_RAIL,
};

/* One direction of traffic: source rank sends to target rank. */
struct workload_flow {
	uint32_t source, target; /* ranks */
};

struct workload_spec {
	enum workload_kind kind;
	const struct workload_flow *flows; /* sorted by source then target; borrowed */
	uint32_t flows_count;
	uint64_t size_bytes; /* per message; udp: payload of one datagram */
	uint32_t iterations; /* messages per flow; udp: 0 = until stop_at */
	uint64_t rate_bps;   /* udp: per flow, on the wire; 0 = the port's rate */
	uint8_t dscp;        /* 50..59 rdma, 48 nc, else default */
	uint32_t plane;      /* udp: the plane it uses; UINT32_MAX: all, in turn */
	uint64_t seed;
	dsf_instant start_at; /* fabric time */
	dsf_instant stop_at;  /* DSF_NEVER: when everything is done */
};

#endif
