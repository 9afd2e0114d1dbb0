/*
 * report.h - what a workload came to, over all hosts
 *
 * Each host tells of its half of each flow (node_row_flow); here the halves are put together. All
 * times are fabric time.
 *
 * Lost is what ought to have come and isn't there at the end: what was sent or given up, and of a
 * flow that ended early (its sender failed, or a host of it lost its state) all that it was to
 * send.
 *
 * The duration is from the first post to the last completion. Ideal goodput: what the ports of the
 * endpoints could carry of payload, headers and Ethernet overhead taken off: the smaller of all
 * sources' and all targets' port rates. Jain's index is taken over the flows' goodputs: (sum)^2 /
 * (n * sum of squares), in parts per million.
 */
#ifndef DSF_NODE_REPORT_H
#define DSF_NODE_REPORT_H
#include "base/histogram.h"
#include "node/row.h"
#include "workload/spec.h"

struct node_report_flow {
	bool sender_seen, receiver_seen, sender_done, receiver_done;
	uint64_t sent_messages, messages, bytes;
	uint64_t failed;          /* messages that the sender gave up */
	uint64_t missed;          /* datagrams that the receiver missed */
	dsf_instant first_at;     /* first message posted */
	dsf_instant completed_at; /* last completion at the sender */
	dsf_instant last_at;      /* last arrival */
};

struct node_report {
	const struct topo *topo;
	const struct workload_spec *spec; /* borrowed */
	const struct dsf_memory *memory;
	struct node_report_flow *flows; /* as spec->flows */
	struct dsf_histogram fct;
	uint64_t bytes;                                          /* payload that arrived */
	uint64_t bytes_local, bytes_zone, bytes_spine, bytes_l3; /* by the farthest tier crossed */
	uint64_t bytes_wrong;
	uint64_t messages, lost, duplicated, reordered;
	uint64_t retransmits, ecn_marks;
	bool verified; /* all of it arrived, once, and was what it should be */
	uint64_t duration_ns;
	uint64_t goodput_bps, goodput_ideal_bps;
	uint64_t jain_ppm;
};

/* 0, or -DSF_E_NOMEM. */
int node_report_init(struct node_report *r, const struct topo *topo,
	const struct workload_spec *spec, const struct dsf_memory *memory);
void node_report_close(struct node_report *r);

/* Forgets all rows. */
void node_report_clear(struct node_report *r);

/* One row of one host. Rows of other flows than the spec's are -DSF_E_UNKNOWN. */
int node_report_add(struct node_report *r, const struct node_row_flow *row);

/* True when both halves of every flow say that they are done. A receiver alone doesn't know how
 * much was sent and waits a while for what may be late; once all that was sent is there nothing is.
 * All hosts were told the workload, so who knows nothing of it has lost its state, and his half
 * won't come back. Then, or when the sender has given up, the receiver waits for nothing more. */
bool node_report_done(const struct node_report *r);

/* True when no sender has anything left to send: receivers wait for what is late. */
bool node_report_sent(const struct node_report *r);

/* Packets that the modelled network dropped, of a node's counters. */
static inline uint64_t node_report_drops(const struct node_row_counters *c)
{
	return c->voq_drops + c->watchdog_drops + c->egress_drops + c->reassembly_errors;
}

/* Works out the sums from what was added. */
void node_report_finish(struct node_report *r);

#endif
