/*
 * metaroce.h - the RDMA transport of one NIC
 *
 * One connection joins two NICs and uses all planes (independent networks) that both are on. Above
 * it are many ordered streams (QPs), below it many paths, and one congestion controller is in it.
 * The mechanisms are those published for MetaRoCE; formats and constants are our own.
 *
 * Paths. Each has its own UDP source port (what ECMP hashes), sequence numbers, 256-bit selective
 * acknowledgement, round trip time, marked fraction and window. Packets are sprayed over all paths
 * with room. A path keeps order, so a gap in its acknowledgements is loss and not reordering:
 * exactly the missing packet goes again at once, on the path that lost it, under its old number.
 * What no gap can show (the last packets) a probe finds, sent when nothing was answered for a
 * while. A path is in doubt only when its probe stays unanswered although something sent later to
 * that host was answered, or when its port has no carrier: then its packets move to other paths,
 * its source port changes, and probes bring it back.
 *
 * Peers that go. A NIC that was started anew draws new ids and cookies for its connections. Whoever
 * still sends under an old id is told so and begins anew: streams that have carried something fail,
 * what was posted on them completes with an error, and those that haven't are none the worse. A
 * connection that rested asks before it is used again by a new stream. A peer that doesn't answer,
 * or for whom nothing gets on whatever is sent again, is given up after METAROCE_TRIES_MAX
 * time-outs.
 *
 * Placement. Every packet says where its payload belongs, so it is placed as it comes; streams
 * only order completions. A packet that has moved names the path and number it had first, so the
 * receiver counts every byte exactly once without remembering packets of messages.
 *
 * Rates. A sender is held by its windows (of path and plane, by marks) and by what the receiver
 * grants: every ACK carries this sender's share of the receiver's port, for each plane.
 *
 * Pure. The core sees heads of packets and names of payload; the owner adds Ethernet, IPv6 and
 * UDP, gathers and places payload, and asks for the next packet of a plane whenever that plane's
 * port is free, so that nothing queues behind a decision.
 *
 * Files: wire (formats), memory (what spans mean), metaroce (one NIC), conn (handshake), qp
 * (streams), path (probes, moving), sack, loss (what ACKs tell a sender), ack (what a receiver
 * tells), input (data), output (what goes next), spray (on which path), cc (windows), share (the
 * receiver's division of its rate).
 */
#ifndef DSF_METAROCE_METAROCE_H
#define DSF_METAROCE_METAROCE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/address.h"
#include "base/memory.h"
#include "base/time.h"
#include "base/trace.h"
#include "metaroce/wire.h"

#define METAROCE_CONNECTIONS_MAX   65536u
#define METAROCE_QPS_MAX           65536u /* of one NIC */
#define METAROCE_REGIONS_MAX       65536u
#define METAROCE_RECORDS_MAX       131072u /* packets of one NIC that are under way */
#define METAROCE_MESSAGES_MAX      131072u /* of one NIC that are posted and not complete */
#define METAROCE_PLACINGS_MAX      65536u  /* placements that are not answered */
#define METAROCE_NACKS_MAX         64u     /* that wait to be sent */
#define METAROCE_STREAM_WINDOW     64u     /* messages of a stream that may be under way */
#define METAROCE_MESSAGE_BYTES_MAX UINT32_MAX

/* Bytes of a packet on the wire beside the UDP payload: Ethernet 14, IPv6 40, UDP 8, and 24 for
 * FCS, preamble and gap. */
#define METAROCE_OVERHEAD 86u

struct metaroce;
struct metaroce_qp;

struct metaroce_config {
	const struct dsf_memory *memory;
	const struct dsf_trace *trace; /* NULL: nobody listens */
	uint32_t node;                 /* for the trace */
	uint64_t seed;
	uint32_t planes;
	struct dsf_ip6 address[METAROCE_PLANES_MAX]; /* all zero: no port on this plane */
	uint64_t rate_bps[METAROCE_PLANES_MAX];      /* 0: unlimited */
	uint32_t paths;                              /* of one connection */
	uint32_t payload_bytes;                      /* of one packet, at most */
	uint64_t base_rtt_ns;                        /* of the empty network */
	uint64_t probe_min_ns; /* least probe time-out; 0: three round trips */
};

/* NULL when memory is short or the configuration is impossible. No plane has carrier yet. */
struct metaroce *metaroce_new(const struct metaroce_config *config);
void metaroce_free(struct metaroce *m);

void metaroce_carrier(struct metaroce *m, uint32_t plane, bool up, dsf_instant now);

/* Memory that peers may write to: addresses from base on, size bytes, mean offsets from 0 on of
 * memory. -DSF_E_DUPLICATE, -DSF_E_FULL, -DSF_E_NOMEM. */
int metaroce_region_add(
	struct metaroce *m, uint32_t key, uint64_t base, uint64_t size, uint64_t memory);
void metaroce_region_remove(struct metaroce *m, uint32_t key);

/* Another NIC. */
struct metaroce_peer {
	uint32_t planes;
	struct dsf_ip6 address[METAROCE_PLANES_MAX]; /* all zero: no port on this plane */
};

/* A stream to the peer's stream peer_number. Its connection is made with its first message.
 * NULL: number in use or impossible, a limit, or memory short; *err says which. */
struct metaroce_qp *metaroce_qp_new(struct metaroce *m, uint32_t number, uint32_t peer_number,
	const struct metaroce_peer *peer, uint64_t user, int *err);

/* Begins to make the stream's connection now rather than with the first message; one that rests
 * asks whether its peer is still who it was. */
void metaroce_qp_connect(struct metaroce_qp *qp, dsf_instant now);

/* Forgets the stream; what it posted and is not complete is given up without completion. */
void metaroce_qp_free(struct metaroce *m, struct metaroce_qp *qp);

struct metaroce_write {
	uint64_t memory, offset; /* what to send */
	uint32_t size;
	uint64_t address; /* where to, in the peer's region */
	uint32_t key;
	uint64_t user;
};

/* -DSF_E_FULL, -DSF_E_NOMEM, -DSF_E_STATE (the stream has failed). */
int metaroce_post_write(struct metaroce *m, struct metaroce_qp *qp, const struct metaroce_write *w,
	dsf_instant now);

/* A posted message is complete: placed at the receiver and all before it are, or failed. */
struct metaroce_completion {
	struct metaroce_qp *qp;
	uint64_t qp_user, user;
	int status; /* 0 or -DSF_E_* */
	uint32_t size;
	dsf_instant posted_at;
};

/* The next completion, in order per stream; false when there is none. */
bool metaroce_complete(struct metaroce *m, struct metaroce_completion *completion);

/* Payload to place; answer with metaroce_placed. Nothing to place: request is 0. */
struct metaroce_placement {
	uint64_t request;
	uint64_t memory, offset;
	uint32_t size;
	uint32_t head; /* the payload starts behind so many bytes of the packet */
};

/* A UDP payload from source on a plane; stored bytes of it are there (all, or head and name).
 * 0, or -DSF_E_*: it was dropped. */
int metaroce_input(struct metaroce *m, uint32_t plane, const struct dsf_ip6 *source, bool marked,
	const uint8_t *bytes, size_t stored, size_t size, struct metaroce_placement *placement,
	dsf_instant now);

/* status: 0; -DSF_E_CORRUPT: placed, but not what it should be (counted); other errors: not
 * possible, and the stream fails. */
void metaroce_placed(struct metaroce *m, uint64_t request, int status, dsf_instant now);

/* A packet to send. */
struct metaroce_packet {
	struct dsf_ip6 source, target;
	uint16_t source_port;
	bool ect;
	bool control; /* ACK, NACK, CONN: belongs before data */
	uint32_t head_size;
	uint64_t memory, offset; /* payload behind the head */
	uint32_t payload_size;
	struct metaroce_qp *sent; /* this stream's message has now been sent whole; or NULL */
	uint64_t sent_user;       /* the stream's */
};

/* True when metaroce_output may have something for the plane now. */
bool metaroce_wants(const struct metaroce *m, uint32_t plane);

/* Writes the head of the next packet for the plane to `to`, room for METAROCE_HEAD_MAX bytes. */
bool metaroce_output(struct metaroce *m, uint32_t plane, uint8_t *to,
	struct metaroce_packet *packet, dsf_instant now);

dsf_instant metaroce_deadline(const struct metaroce *m);
void metaroce_expire(struct metaroce *m, dsf_instant now);

/* Views. */

struct metaroce_counters {
	uint64_t packets_tx, packets_rx, bytes_tx, bytes_rx; /* bytes: UDP payload */
	uint64_t data_tx, data_rx;                           /* DATA packets, repeats included */
	uint64_t retransmits, moved, duplicates, marked_rx;
	uint64_t probes, acks_tx, acks_rx, nacks_tx;
	uint64_t bytes_wrong;
	uint64_t records_full; /* sending waited because METAROCE_RECORDS_MAX or memory was reached
				*/
};

const struct metaroce_counters *metaroce_counters(const struct metaroce *m);
uint32_t metaroce_connections(const struct metaroce *m);

struct metaroce_qp_view {
	uint32_t number, connection;
	uint64_t user;
	int status; /* 0, or why the stream failed */
	uint64_t messages_posted, messages_done, bytes_posted, bytes_done;
	uint64_t messages_received, bytes_received, bytes_wrong; /* exactly once */
	uint64_t retransmits;                /* packets of this stream that were sent again */
	uint64_t marked;                     /* packets of this stream that came with CE */
	dsf_instant first_rx_at, last_rx_at; /* DSF_NEVER: none */
};

void metaroce_qp_look(const struct metaroce_qp *qp, struct metaroce_qp_view *view);

enum metaroce_path_state { METAROCE_PATH_GOOD, METAROCE_PATH_SUSPECT, METAROCE_PATH_DEAD };

struct metaroce_path_view {
	uint32_t connection, path, plane;
	uint16_t source_port;
	enum metaroce_path_state state;
	uint64_t rtt_ns, window_bytes, inflight_bytes, bytes, retransmits;
	uint32_t marked_ppm;
};

/* Paths in order of connection and path: fills view for the first one at or after *cursor
 * (begin with 0) and moves it; false at the end. */
bool metaroce_path_look(
	const struct metaroce *m, uint64_t *cursor, struct metaroce_path_view *view);

/* The rate that the peer of qp grants us on a plane; 0: none. */
uint64_t metaroce_hint(const struct metaroce_qp *qp, uint32_t plane);

#endif
