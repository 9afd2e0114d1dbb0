/*
 * generator.h - hosts that only make and check packets, for tests of the fabric
 *
 * Linked in place of src/node/host.c: it defines the same functions. A host answers NDP and sends
 * UDP packets of flows, each at a rate of its own; the receiving host checks of every packet that
 * it came to the right port, once, in order and with the right bytes. Flows are numbered in the
 * order of their adding, and the table of them is the test's, one at a time.
 */
#ifndef DSF_TESTS_GENERATOR_H
#define DSF_TESTS_GENERATOR_H
#include "base/time.h"
#include "sim/sim.h"

#define GENERATOR_FLOWS_MAX 512u
#define GENERATOR_SIZE_MIN  88u /* frame: headers and what the receiver checks */

struct generator_flow {
	uint32_t source, target, plane; /* ranks, and the plane of both */
	uint32_t size;                  /* of a frame, Ethernet header included, no FCS */
	uint8_t dscp, ecn;
	uint64_t rate_bps; /* on the wire; 0: the port's */
	dsf_instant start, stop;
	bool whole; /* every byte is carried and checked, not only the head */
	uint8_t routers; /* on its way; 0: 1, the ingress switch of a cell fabric */
};

struct generator_count {
	uint64_t sent, received, bytes; /* bytes received: frames + 24 each */
	uint64_t reordered, duplicated; /* came after a later one; is the last one again */
	uint64_t wrong;                 /* bytes, port, class or hop limit not as they should be */
	uint64_t marked;                /* CE */
	uint64_t no_carrier;            /* not sent: the port had none */
	dsf_instant first_at, last_at;
	uint64_t delay_sum_ns, delay_max_ns;
};

/* Forgets all flows; before sim_new. */
void generator_reset(const struct topo *t);

/* Returns the flow's number. Sends from start on, or from the next generator_kick. */
uint32_t generator_add(const struct generator_flow *flow);

/* Lets the hosts see new flows. */
void generator_kick(struct sim *s);

/* No flow sends after now. */
void generator_stop(dsf_instant now);

uint32_t generator_flows(void);
const struct generator_count *generator_count(uint32_t flow);

/* Counts bytes and packets from now on only: for rates of a while. */
struct generator_count generator_since(uint32_t flow, const struct generator_count *before);

#endif
