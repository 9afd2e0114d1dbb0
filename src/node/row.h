/*
 * row.h - rows of a node's state
 *
 * node_view gives typed rows; view/ turns them into the JSON of the commands. Names of nodes and
 * ports are indexes into the topology. Counters are totals since the node started. A pointer in a
 * row is valid for the call only.
 */
#ifndef DSF_NODE_ROW_H
#define DSF_NODE_ROW_H
#include <stdbool.h>
#include <stdint.h>
#include "base/address.h"
#include "base/err.h"
#include "base/histogram.h"
#include "bgp/bgp.h"
#include "fabric/balance.h"
#include "fsdb/session.h"
#include "ip/hops.h"
#include "node/node.h"

/* Why a switch is drained. */
enum node_drain { NODE_DRAIN_NONE, NODE_DRAIN_ASKED, NODE_DRAIN_MIN_LINKS };

/* One port: NODE_QUERY_PORT. */
struct node_row_port {
	uint32_t port; /* number, or NODE_PORT_INBAND */
	bool carrier;
	bool live; /* fabric ports: heard both ways; Ethernet ports: carrier */
	bool isolated;
	bool active; /* fabric ports: live and drained at neither end; Ethernet ports: carrier */
	bool drained, peer_drained; /* at this end; at the other */
	bool disabled;              /* fabric ports: it heard itself */
	/* Fabric ports against the plan. attached: something was heard since the carrier came, of
	 * this switch index and port number. */
	bool attached, missing, mismatch, bogus;
	uint16_t neighbor_switch, neighbor_port;
	enum node_drain switch_drain; /* if drained: the whole switch is */
	uint64_t rate_bps;
	uint64_t frames_tx, frames_rx; /* frames on the veth (trains or packets) */
	uint64_t bytes_tx, bytes_rx;   /* of those frames, Ethernet header included, no FCS */
	uint64_t cells_tx, cells_rx;   /* fabric ports: data cells */
	uint64_t cell_bytes_tx, cell_bytes_rx; /* of all cells, control cells too */
	uint64_t dropped_tx;                   /* modelled: queue full, loss, carrier loss */
	uint64_t lost_rx;                      /* gaps in the link sequence */
	uint64_t corrupt_rx;
	uint64_t queue_bytes; /* waiting to leave */
	uint64_t ecn_marked;  /* routers: packets */
	uint64_t stops_tx;    /* fabric ports: times that the peer was told to send no data */
	struct node_impairment impairment; /* in force; its rate is rate_bps above */
};

/* Whole node: NODE_QUERY_COUNTERS, one row. */
struct node_row_counters {
	uint64_t packets_rx, packets_tx; /* Ethernet ports */
	uint64_t cells_tx, cells_rx, cells_lost;
	uint64_t control_cells_tx, control_cells_rx;
	uint64_t reassembly_errors;          /* packets given up: cells missing at the time-out */
	uint64_t fabric_link_down_dropped;   /* cells on a link that lost carrier */
	uint64_t fabric_unreachable_dropped; /* cells at a fabric node without a link to their
						target */
	uint64_t fabric_drops;   /* cells dropped by a full queue inside the fabric: always 0 */
	uint64_t voq_drops;      /* packets: tail drop at a VOQ */
	uint64_t watchdog_drops; /* packets deleted by the credit watchdog */
	uint64_t ecn_marks;
	uint64_t impaired_drops; /* cells or packets that loss or silence took */
	uint64_t corrupt_drops;  /* cells or packets that arrived corrupted */
	uint64_t egress_drops;   /* packets: Ethernet port without carrier or full */
	uint64_t credits_sent, credits_received; /* bytes */
	const uint64_t *errors; /* [DSF_ERR_COUNT], inputs dropped by cause: base/err.h */
	uint64_t packets_reassembled;
	uint64_t cabling_missing, cabling_mismatch, cabling_bogus; /* fabric ports, now */
	uint64_t retransmits, duplicates;                          /* hosts */
};

/* NODE_QUERY_REACHABILITY: one per destination interface node of this node's plane. */
struct node_row_reachability {
	uint32_t destination;                            /* node */
	const uint64_t *output, *advertised, *withdrawn; /* bitsets over port numbers */
	bool cut_by_balance;
};

/* NODE_QUERY_BALANCE: one per destination and input group of a fabric node. In link capacity:
 * units of the greatest rate that divides those of all links of the node. */
struct node_row_balance {
	uint32_t destination; /* node */
	enum fabric_balance_kind kind;
	uint32_t key; /* NODE: node; CLUSTER: number */
	uint64_t input, output, allowed;
	bool balanced;
};

struct node_row_voq {
	uint32_t system_port;
	uint8_t traffic_class; /* enum fabric_class */
	uint64_t packets, bytes;
	uint64_t credits_requested, credits_granted; /* bytes, totals */
	uint64_t dropped, ecn_marked;
	uint64_t watchdog_dropped; /* packets deleted for want of credit */
	uint64_t sent_packets, sent_bytes;
};

struct node_row_system_port {
	uint32_t system_port;
	uint32_t port; /* index in topo->ports */
	uint64_t rate_bps;
	bool local, up;
	bool stale; /* remote: its switch was gone for FSDB's hold time */
};

struct node_row_neighbor {
	struct dsf_ip6 address;
	struct dsf_mac mac;
	uint32_t system_port;
	uint32_t owner; /* node that owns the port */
	enum { NODE_NEIGHBOR_INCOMPLETE, NODE_NEIGHBOR_REACHABLE, NODE_NEIGHBOR_STATIC } state;
	bool local;
};

/* A session with the FSDB of another interface node. */
struct node_row_fsdb_session {
	uint32_t peer; /* node */
	enum fsdb_session_state state;
	bool stale;
	dsf_instant established_at, disconnected_at; /* last time; DSF_NEVER: not yet */
	uint64_t flaps, rejected, expired;
	uint32_t records;
};

/* A record of FSDB: our own, or a peer's. */
struct node_row_fsdb {
	uint32_t publisher; /* node */
	bool stale;         /* of a peer whose hold time is over */
	const struct fsdb_record *record;
};

/* A neighbour of BGP. */
struct node_row_bgp_peer {
	struct dsf_ip6 address, local;
	uint32_t peer;              /* node at the other end */
	bool internal;              /* of our own AS */
	bool derived;               /* it follows from the topology */
	dsf_instant established_at; /* DSF_NEVER: it isn't */
	const struct bgp_peer_view *view;
};

/* A path of BGP's table. */
struct node_row_bgp_path {
	struct dsf_ip6 from; /* all zero: our own */
	uint32_t peer;       /* node it came from; TOPO_NONE */
	const struct bgp_row *row;
};

struct node_row_route {
	struct dsf_ip6 prefix;
	uint8_t prefix_length;
	const char *origin;            /* "connected", "bgp" */
	uint32_t system_port;          /* of a connected one, where there is one; else TOPO_NONE */
	uint32_t port;                 /* connected: its number; else TOPO_NONE */
	const struct ip_hops_set *set; /* next hops; NULL: connected */
};

struct node_row_nic {
	uint32_t rail;
	uint32_t ports, ports_up;
	uint64_t connections;
	uint64_t packets_tx, packets_rx, bytes_tx, bytes_rx; /* transport packets */
	uint64_t retransmits, duplicates;
};

struct node_row_path {
	uint32_t rail;
	uint32_t connection, path;
	uint32_t plane;
	uint16_t udp_source_port;
	enum { NODE_PATH_GOOD, NODE_PATH_SUSPECT, NODE_PATH_DEAD } state;
	uint64_t rtt_ns, cwnd_bytes;
	uint32_t ecn_ppm;
	uint64_t bytes, retransmits;
};

struct node_row_qp {
	uint32_t rail;
	uint32_t connection, qp;
	uint64_t messages_sent, messages_done, bytes_sent, bytes_received;
};

/* Hosts, NODE_QUERY_WORKLOAD: one per flow that this host sends or receives. */
struct node_row_flow {
	uint32_t source, target;       /* ranks */
	bool sender;                   /* this row is the sender's half */
	bool done;                     /* nothing more will happen on this half */
	uint64_t messages;             /* sent and completed, or received whole */
	uint64_t bytes;                /* payload */
	uint64_t bytes_wrong;          /* payload that was not what it should be */
	uint64_t lost, duplicated;     /* udp: datagrams; else messages */
	uint64_t reordered;            /* udp: datagrams that came after a later one */
	dsf_instant first_at, last_at; /* first send or arrival, last completion or arrival */
	/* Sender: completion times; udp receiver: from sending to arrival. NULL: none. */
	const struct dsf_histogram *fct;
	uint64_t retransmits, ecn_marks;
};

struct node_row_missing {
	/* "port", "link", "minimum links", "reachability", "neighbor", "session" */
	const char *what;
	uint32_t port;  /* number or TOPO_NONE */
	uint32_t other; /* node at the other end or destination, or TOPO_NONE */
};

struct node_row {
	enum node_query query;
	uint32_t node; /* whose row */
	union {
		struct node_row_port port;
		struct node_row_counters counters;
		struct node_row_reachability reachability;
		struct node_row_balance balance;
		struct node_row_voq voq;
		struct node_row_system_port system_port;
		struct node_row_neighbor neighbor;
		struct node_row_fsdb_session fsdb_session;
		struct node_row_fsdb fsdb;
		struct node_row_bgp_peer bgp_peer;
		struct node_row_bgp_path bgp_path;
		struct node_row_route route;
		struct node_row_nic nic;
		struct node_row_path path;
		struct node_row_qp qp;
		struct node_row_flow flow;
		struct node_row_missing missing;
	};
};

/* Books an input that was dropped under its error; what is none of ours isn't. */
static inline void node_count_error(uint64_t *errors, int err)
{
	int index = DSF_ERR_INDEX(err);

	if (index >= 0 && index < DSF_ERR_COUNT)
		errors[index]++;
}

#endif
