/*
 * host_state.h - the insides of a host
 *
 * A host has a NIC a rail and a port a plane of each NIC. A port is a line with a rate: whenever it
 * is free it takes the next frame from who has one: what the host answers itself, the NIC's
 * transport, the datagram flows. So nothing queues behind a choice, and the line's rate is never
 * exceeded. The line behind it (live: a tbf qdisc of the same rate) finds its queue empty.
 *
 * Only node/host*.c include this.
 */
#ifndef DSF_NODE_HOST_STATE_H
#define DSF_NODE_HOST_STATE_H
#include "base/err.h"
#include "base/heap.h"
#include "base/histogram.h"
#include "base/pool.h"
#include "base/rng.h"
#include "fabric/packet.h"
#include "ip/packet.h"
#include "metaroce/list.h"
#include "metaroce/memory.h"
#include "metaroce/metaroce.h"
#include "node/host.h"
#include "workload/spec.h"

#define NODE_HOST_HEADERS (IP_ETHERNET_SIZE + IP_HEADER_SIZE + IP_UDP_SIZE)
#define NODE_HOST_DSCP    50u /* of MetaRoCE data and probes: class rdma */
/* ACKs and the handshake go in class nc: behind data of the other direction they would double the
 * round trip they are to measure. They are about 1.5 % of the data. */
#define NODE_HOST_CONTROL_DSCP 48u
/* Header of a datagram: run 4, flow 4, sequence 8, fabric instant of its sending 8. */
#define NODE_HOST_UDP_HEAD 24u
/* A datagram flow remembers so many of its latest sequence numbers. */
#define NODE_HOST_UDP_WINDOW 4096u

#define NODE_HOST_FRAMES_MAX  16384u /* heads that the driver holds */
#define NODE_HOST_REPLIES_MAX 64u    /* that wait at a port */
#define NODE_HOST_FLOWS_MAX   65536u
/* Frames that a port of unlimited rate sends at one instant, and its next one. */
#define NODE_HOST_BURST    64u
#define NODE_HOST_BURST_NS NS_PER_US
/* A flow posts its messages back to back: so many are posted and not wholly sent, the one that is
 * leaving and the one behind it, so the line never idles and a completion time holds at most one
 * message's wait at the sender. At most so many are not complete. */
#define NODE_HOST_MESSAGES_UNSENT 2u
#define NODE_HOST_MESSAGES_OPEN   METAROCE_STREAM_WINDOW

/* A head to be sent; the driver gives it back. */
struct node_host_frame {
	struct node_host_frame *next; /* replies that wait */
	uint32_t extra_size;          /* allocated alone with so many bytes; 0: from the pool */
	uint32_t stored, size;
	uint8_t bytes[NODE_HOST_HEADERS + METAROCE_HEAD_MAX + METAROCE_NAME_SIZE];
};

struct node_host_port {
	const struct topo_port *port;
	const struct topo_link *link;
	struct dsf_mac gateway;
	uint32_t number, rail, plane;
	bool carrier;
	bool datagram_turn; /* transport and datagrams take turns */
	struct node_impairment impairment;
	uint64_t rate_bps;
	dsf_instant free_at, last_depart;
	uint32_t burst; /* unlimited rate: frames at free_at */
	struct node_host_frame *reply_first, *reply_last;
	uint32_t replies;
	struct metaroce_link datagrams; /* head: flows with a datagram due here */
	struct dsf_rng rng;
	struct node_row_port view; /* counters */
	uint64_t impaired, corrupted;
};

struct node_host_nic {
	struct metaroce *transport;
	uint32_t rank;
	uint32_t port[METAROCE_PLANES_MAX]; /* index in ports, or TOPO_NONE */
	struct metaroce_peer self;
	uint64_t packets_tx, packets_rx; /* of the transport, of this NIC */
};

struct node_host_datagrams {
	struct metaroce_link link; /* in a port's list */
	struct node_host_flow *flow;
	dsf_instant next_at;
	uint64_t interval_ns;
	uint32_t plane; /* of the next one */
	/* receiver */
	uint64_t highest; /* sequence + 1 */
	uint64_t unique;
	uint64_t seen[NODE_HOST_UDP_WINDOW / 64];
};

struct node_host_flow {
	struct node_host *host;
	uint32_t index; /* in the spec */
	struct workload_flow flow;
	bool sender;
	bool stopped, told;
	struct node_host_nic *nic;
	uint64_t memory;
	struct metaroce_peer peer;
	struct metaroce_qp *qp;
	struct dsf_histogram *fct;
	struct node_host_datagrams *udp;
	struct dsf_heap_entry start; /* the flow's begin, or its next datagram */
	uint64_t posted, sent, completed, failed, bytes, bytes_wrong, duplicated, reordered, marked;
	dsf_instant first_at, last_at;
};

struct node_host {
	const struct topo *topo;
	const struct topo_node *self;
	const struct dsf_memory *memory;
	const struct dsf_trace *trace;
	uint32_t index;
	uint64_t seed;
	bool simulated;
	struct node_host_port *ports;
	uint32_t ports_count, ports_up, next_port;
	struct node_host_nic *nics;
	uint32_t nics_count;
	struct dsf_pool frames;
	struct dsf_heap timers;
	/* the workload */
	struct workload_spec spec; /* flows: NULL */
	uint32_t run;              /* tells the packets of one run from another's */
	struct node_host_flow *flows;
	uint32_t flows_count, unfinished; /* unfinished: sending flows */
	uint64_t errors[DSF_ERR_COUNT];
	uint64_t packets_tx, packets_rx;
};

/* host_input.c */
int node_host_drop(struct node_host *h, int err);

/* host_port.c */
int node_host_port_init(struct node_host *h, struct node_host_port *p, uint32_t number);
void node_host_port_close(struct node_host *h, struct node_host_port *p);
void node_host_port_carrier(
	struct node_host *h, struct node_host_port *p, bool up, dsf_instant now);
void node_host_port_impair(struct node_host_port *p, const struct node_impairment *i);
/* True when the port has something to send as soon as it is free. */
bool node_host_port_wants(const struct node_host *h, const struct node_host_port *p);
/* The next frame of this port, if it is free and has one. */
bool node_host_port_output(
	struct node_host *h, struct node_host_port *p, struct node_output *out, dsf_instant now);
/* A copy of bytes waits to be sent; false: dropped, the queue is full or memory short. */
bool node_host_port_reply(struct node_host *h, struct node_host_port *p, const uint8_t *bytes,
	uint32_t stored, uint32_t size);
struct node_host_frame *node_host_frame_take(struct node_host *h);
void node_host_frame_give(struct node_host *h, struct node_host_frame *frame);
/* Ethernet, IPv6 and UDP around what stands behind them in the frame. */
struct node_host_datagram {
	struct dsf_ip6 target;
	uint16_t source_port, target_port;
	uint8_t dscp, ecn;
	uint32_t head_size; /* UDP payload that stands in the frame */
	uint64_t memory, offset;
	uint32_t payload_size; /* and what follows it */
};
void node_host_port_finish(struct node_host *h, const struct node_host_port *p,
	struct node_host_frame *frame, const struct node_host_datagram *d, struct node_output *out);

/* host_flow.c: messages through the transport; host_udp.c: datagrams */
int node_host_flow_start(struct node_host *h, const struct workload_spec *spec, dsf_instant now);
void node_host_flow_stop(struct node_host *h, dsf_instant now);
void node_host_flow_close(struct node_host *h);
void node_host_flow_completions(struct node_host *h, struct node_host_nic *nic, dsf_instant now);
/* The stream of a flow has sent a message whole. */
void node_host_flow_sent(struct node_host *h, struct node_host_flow *flow, dsf_instant now);
void node_host_flow_expire(struct node_host *h, dsf_instant now);
/* A sending flow has ended. */
void node_host_flow_ended(struct node_host *h, struct node_host_flow *flow, dsf_instant now);
void node_host_flow_row(
	const struct node_host_flow *flow, struct node_row_flow *row, dsf_instant now);

int node_host_udp_open(struct node_host *h, struct node_host_flow *flow);
void node_host_udp_close(struct node_host *h, struct node_host_flow *flow);
/* The flow's next datagram is due: it goes to its port's list. */
void node_host_udp_due(struct node_host *h, struct node_host_flow *flow, dsf_instant now);
/* Sends the datagram of the first flow in the port's list. */
bool node_host_udp_output(struct node_host *h, struct node_host_port *p,
	struct node_host_frame *frame, struct node_output *out, dsf_instant now);
int node_host_udp_input(struct node_host *h, struct node_host_port *p, const struct ip_packet *ip,
	const uint8_t *bytes, uint32_t stored, dsf_instant now);
/* When the last datagram of a flow ought to have been sent. */
dsf_instant node_host_udp_end(const struct node_host *h, const struct node_host_flow *flow);

#endif
