/*
 * node.h - one device, driven by whoever has packets and a clock
 *
 * A switch or a host is cores put together. The emulator drives one node per process over
 * io_uring, the simulator thousands in one process; both use this header and nothing else.
 *
 * Time. `now` is fabric time and never decreases. A driver handles inputs and deadlines in the
 * order in which they are DUE and passes the due instant as now, also when it comes late; so a
 * late process catches up exactly as if it had been on time, and lateness shows only where it
 * exceeds the slack of a link's delay. Between two inputs with different instants the driver first
 * runs node_expire for every deadline that is due before the later one. At one instant deadlines
 * come before inputs, and inputs in order of port number; those of one port in order of arrival.
 * All members of a hyperport count as the port that stands for it (topo/model.h). A
 * deadline that is still due after node_expire is that of an output: the driver takes outputs.
 *
 * Frames. A train leaves with the instant its last cell has finished serialising; the receiving
 * driver hands it over at departure + the link's delay. A frame of an Ethernet port may be output
 * before it departs (the queue is first in, first out, so its departure is known on arrival); it
 * is due at the other end at departure + delay. Live, towards a host or external node, the driver
 * holds it that long before it sends, and holds what it receives from there for the delay; both
 * directions of such a link are the switch's. Carrier loss discards what a driver holds for a port.
 * In the simulator payload may be carried by name: then `stored` bytes of a frame of `size` bytes
 * exist (the head and the name), and everything that computes lengths uses size.
 *
 * Streams. Control protocols run over ordered byte streams of the host port (live: the kernel's
 * TCP, simulated: sim/stream.h). The node gives each its number; one that was closed, by either
 * side, is never named again but in a close that crossed the other's. The node asks for a stream by
 * an output and is told when it is connected, or closed if that fails. It is told how many bytes a
 * stream takes and writes no more. It takes all input at once.
 *
 * Memory. Input bytes are borrowed for the call. Output bytes belong to the node until the driver
 * calls node_frame_done with the output's buffer.
 */
#ifndef DSF_NODE_NODE_H
#define DSF_NODE_NODE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/memory.h"
#include "base/time.h"
#include "base/trace.h"
#include "topo/model.h"

struct ip_neighbor_table;
struct node;
struct workload_spec;
struct node_row;

/* Port numbers are those of the topology; this one is the host port (TUN inband0) of a routed
 * switch: bare IPv6 packets, no Ethernet header. */
#define NODE_PORT_INBAND 0xffffu

#define NODE_CHECKSUM_NONE 0xffffu

struct node_frame {
	const uint8_t *bytes;
	uint32_t stored; /* bytes present; live: always == size */
	uint32_t size;   /* bytes the frame stands for, Ethernet header included, no FCS */
	/* Partial checksum as veth leaves it (virtio net header): sum from checksum_start to the
	 * end of the frame is to be put at checksum_start + checksum_offset. NODE_CHECKSUM_NONE:
	 * none. */
	uint16_t checksum_start;
	uint16_t checksum_offset;
};

struct node_config {
	const struct topo *topo; /* shared, outlives the node */
	uint32_t index;          /* which of topo->nodes */
	const struct dsf_memory *memory;
	const struct dsf_trace *trace; /* NULL: nobody listens */
	uint64_t seed;
	/* Timers of control protocols are divided by it: D live, 1 simulated. */
	uint32_t control_dilation;
	/* What the lab file promises of this node's plane and building, shared by all its switches
	 * (node_neighbors_init); outlives the node. NULL: it makes its own. */
	const struct ip_neighbor_table *neighbors;
	/* The driver carries streams: BGP runs, and neighbours behind other switches come over
	 * FSDB. Without them, or where that is asked for, the lab file's promise stands for them.
	 */
	bool streams;
	bool promised;
	/* Switches: the lab is starting. Until NODE_COMMAND_STARTED the host port has no rate, so
	 * that nobody waits for what everybody has to tell first. */
	bool starting;
	bool simulated; /* host: answer NDP and ping itself; payload by name */
	/* Least values of timers in fabric ns, so that a live machine's noise doesn't fire them; 0
	 * in the simulator. The longer of these and the topology's value holds. */
	uint64_t reach_refresh_min_ns;
	uint64_t reassembly_min_ns;
	uint64_t watchdog_min_ns;
	uint64_t probe_min_ns;
	uint64_t credit_retry_min_ns;
	uint64_t credit_age_min_ns;
};

/* All addresses of the interface nodes of a plane of a building, and (behind) of what the lab file
 * has behind them. 0 or -DSF_E_NOMEM and nothing to close; else ip_neighbor_close. */
int node_neighbors_init(struct ip_neighbor_table *table, const struct dsf_memory *memory,
	const struct topo *t, uint32_t plane, uint32_t building, bool behind);

/* NULL when memory is short or the role has no core (external). All ports start without carrier. */
struct node *node_new(const struct node_config *config, dsf_instant now);
void node_free(struct node *n);

/* 0, or -DSF_E_*: the frame was dropped and counted under that error. */
int node_frame_input(
	struct node *n, uint32_t port, const struct node_frame *frame, dsf_instant now);

void node_carrier(struct node *n, uint32_t port, bool up, dsf_instant now);

/* The earliest instant at which node_expire must run; DSF_NEVER if never. */
dsf_instant node_deadline(const struct node *n);
void node_expire(struct node *n, dsf_instant now);

/* True while everything the topology promises of this node is there: ports, live links,
 * reachability, neighbours. O(1); NODE_QUERY_READY names what is missing. */
bool node_ready(const struct node *n);

/* Sessions of control protocols: those that stand, and those that there should be. */
struct node_sessions {
	uint32_t fsdb_established, fsdb_expected;
	uint32_t bgp_established, bgp_expected; /* with routers that aren't ours, too */
};

/* O(1). */
struct node_sessions node_sessions(const struct node *n);

/* Ordered byte streams of control protocols, at the host port of routed switches: these listen on
 * these ports at all addresses of theirs. */
#define NODE_STREAM_FSDB 5957u
#define NODE_STREAM_BGP  179u

struct node_stream_ends {
	struct dsf_ip6 local, remote;
	uint16_t local_port, remote_port; /* local_port 0: any */
};

/* Somebody has connected to us. The stream's number, or -DSF_E_*: refuse it. */
int node_stream_accept(struct node *n, const struct node_stream_ends *ends, dsf_instant now);

/* A stream that was asked for stands. */
void node_stream_connected(struct node *n, uint32_t stream, dsf_instant now);

/* Bytes came, in order. */
void node_stream_input(
	struct node *n, uint32_t stream, const uint8_t *bytes, uint32_t size, dsf_instant now);

/* The stream takes room bytes from now on; told first when it stands, then as room comes back. */
void node_stream_writable(struct node *n, uint32_t stream, uint32_t room, dsf_instant now);

/* The other side has closed it in good order, or (reset) it was refused or broke. */
void node_stream_closed(struct node *n, uint32_t stream, bool reset, dsf_instant now);

/* What a host asks its driver to do with registered memory. Offsets are bytes. */
struct node_span {
	uint64_t memory; /* which memory: see metaroce/memory.h */
	uint64_t offset;
	uint32_t size;
};

#define NODE_SPANS_MAX 4

enum node_output_kind {
	NODE_OUTPUT_FRAME, /* a frame on a port */
	NODE_OUTPUT_PLACE, /* host: write `head` (borrowed, valid for this call) to spans[0]; answer
			      with node_memory_done */
	NODE_OUTPUT_OPEN,  /* a stream between ends */
	NODE_OUTPUT_WRITE, /* head (borrowed, valid for this call) on a stream */
	NODE_OUTPUT_CLOSE, /* a stream: behind what was written, or (reset) at once */
};

struct node_output {
	enum node_output_kind kind;
	uint32_t port;
	dsf_instant depart; /* frame: when its last bit has left; may lie ahead on Ethernet ports */
	const uint8_t *head;
	uint32_t head_size; /* bytes at head */
	uint32_t size;      /* frame: bytes it stands for: head + spans, or head + name */
	uint16_t checksum_start, checksum_offset; /* as in node_frame; NODE_CHECKSUM_NONE: none */
	uint32_t spans_count;
	struct node_span spans[NODE_SPANS_MAX]; /* payload behind head */
	void *buffer;                           /* frame: give back by node_frame_done */
	uint64_t request;                       /* place: for node_memory_done */
	uint32_t stream;
	struct node_stream_ends ends; /* open */
	bool reset;                   /* close */
};

/* The next thing to do; false when there is nothing. The driver calls it until false after it has
 * handled a batch of inputs; what is due on unlimited links leaves then. */
bool node_output(struct node *n, struct node_output *out, dsf_instant now);

/* The driver is done with an output frame's bytes. */
void node_frame_done(struct node *n, void *buffer);

/* The driver has placed (or gathered) what request asked for; status 0 or a negative error. */
void node_memory_done(struct node *n, uint64_t request, int status, dsf_instant now);

/* Commands. */

struct node_impairment {
	uint32_t loss_ppm;
	uint32_t corrupt_ppm;
	uint64_t delay_ns;  /* added to the link's */
	uint64_t jitter_ns; /* keeps order */
	uint32_t reorder_ppm;
	uint64_t rate_bps; /* 0: the link's own */
	bool silent;       /* one-way silence: nothing leaves this end, carrier stays */
};

/* What the lab file says of a link: both ends start with it, a reset goes back to it. */
static inline struct node_impairment node_impairment_own(const struct topo_link *link)
{
	return (struct node_impairment){ .loss_ppm = link->loss_ppm,
		.corrupt_ppm = link->corrupt_ppm,
		.jitter_ns = link->jitter_ns };
}

static inline bool node_impairment_equal(
	const struct node_impairment *a, const struct node_impairment *b)
{
	return a->loss_ppm == b->loss_ppm && a->corrupt_ppm == b->corrupt_ppm &&
	       a->delay_ns == b->delay_ns && a->jitter_ns == b->jitter_ns &&
	       a->reorder_ppm == b->reorder_ppm && a->rate_bps == b->rate_bps &&
	       a->silent == b->silent;
}

enum node_command_kind {
	NODE_COMMAND_IMPAIR,         /* port, impairment: the whole state, not a change */
	NODE_COMMAND_DRAIN_PORT,     /* switches: port (a fabric port), drained */
	NODE_COMMAND_DRAIN_NODE,     /* switches: drained; all fabric ports */
	NODE_COMMAND_STARTED,        /* switches: what starting was for is over */
	NODE_COMMAND_WORKLOAD_START, /* hosts: spec, copied */
	NODE_COMMAND_WORKLOAD_STOP,  /* hosts: stop sending, keep the report */
};

struct node_command {
	enum node_command_kind kind;
	uint32_t port;
	struct node_impairment impairment;
	bool drained;
	const struct workload_spec *workload;
};

/* 0 or -DSF_E_*. */
int node_command(struct node *n, const struct node_command *command, dsf_instant now);

/* Views: rows of state, in a fixed order. filter: a system port, destination switch, … or
 * TOPO_NONE for all. Row types: node/row.h. */
enum node_query {
	NODE_QUERY_PORT,
	NODE_QUERY_COUNTERS,
	NODE_QUERY_REACHABILITY,
	NODE_QUERY_BALANCE, /* fabric nodes */
	NODE_QUERY_VOQ,
	NODE_QUERY_SYSTEM_PORT,
	NODE_QUERY_NDP,
	NODE_QUERY_FSDB_SESSION,
	NODE_QUERY_FSDB,
	NODE_QUERY_BGP_PEER,
	NODE_QUERY_BGP_TABLE,
	NODE_QUERY_ROUTE,
	NODE_QUERY_NIC,
	NODE_QUERY_PATHS,
	NODE_QUERY_QP,
	NODE_QUERY_WORKLOAD,
	NODE_QUERY_READY, /* what is still missing; no row when ready */
};

typedef void (*node_row_fn)(void *user, const struct node_row *row);

void node_view(const struct node *n, enum node_query query, uint32_t filter, node_row_fn row_fn,
	void *user, dsf_instant now);

#endif
