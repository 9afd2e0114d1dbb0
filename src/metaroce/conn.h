/*
 * conn.h - the insides of a NIC's transport: connections, paths, streams, packets under way
 *
 * Only metaroce/ includes this. Sizes matter: per connection the state is paths x (sender's path +
 * receiver's path) plus a plane's share of pacing each, however many streams there are.
 */
#ifndef DSF_METAROCE_CONN_H
#define DSF_METAROCE_CONN_H
#include "base/bitset.h"
#include "base/hash.h"
#include "base/heap.h"
#include "base/pool.h"
#include "base/rng.h"
#include "metaroce/cc.h"
#include "metaroce/list.h"
#include "metaroce/metaroce.h"
#include "metaroce/sack.h"
#include "metaroce/share.h"

/* An ACK leaves at the latest after so many DATA packets of a connection, or base RTT / so much. */
#define METAROCE_ACK_PACKETS       8u
#define METAROCE_ACK_DELAY_DIVISOR 8u
/* Probe time-outs double so many times. */
#define METAROCE_BACKOFF_MAX 4u
/* A connection with work on which nothing went on for so many time-outs of its hello or query is
 * given up, some 300 round trips after the last answer (ours). */
#define METAROCE_TRIES_MAX 5u
/* But not sooner than this (ours), where time-outs follow the network alone: they may be so short
 * that it had no time to find another way. Who sets a least time-out has said how long to wait. */
#define METAROCE_PATIENCE_NS (20 * NS_PER_MS)
/* What a hint allows may be under way for so many round trips of the empty path: one to keep the
 * pipe full, one of queue. */
#define METAROCE_HINT_INFLIGHT 2u
/* A hint is forgotten after so many round trips of silence. */
#define METAROCE_HINT_ROUNDS 16u
/* Unanswered probes of a path on an idle connection before it rests. */
#define METAROCE_IDLE_PROBES_MAX 8u
/* Round trips a packet of an older epoch gets before a gap counts as loss. */
#define METAROCE_EPOCH_GUARD 1u

enum metaroce_timer_kind {
	METAROCE_TIMER_PATH,
	METAROCE_TIMER_PACE,
	METAROCE_TIMER_ACK,
	METAROCE_TIMER_HELLO,
	METAROCE_TIMER_QUERY,
};

struct metaroce_timer {
	struct dsf_heap_entry entry;
	uint32_t kind; /* enum metaroce_timer_kind */
};

/* A posted message. Lives until it is complete, told, and no record needs it. */
struct metaroce_message {
	struct metaroce_message *next;
	struct metaroce_qp *qp; /* NULL: the stream is gone */
	struct metaroce_write write;
	uint32_t msn;
	uint32_t sent; /* bytes */
	uint32_t records;
	int status;
	bool begun; /* a packet was sent (messages may be empty) */
	bool done;  /* complete: nothing of it is sent again */
	bool told;
	dsf_instant posted_at;
};

#define METAROCE_RECORD_ACKED  0x01u /* known to be at the receiver, under this number */
#define METAROCE_RECORD_QUEUED 0x02u /* waits to be sent again, or to move */
#define METAROCE_RECORD_RTX    0x04u /* was sent again */
#define METAROCE_RECORD_MOVED  0x08u /* came from another path: moved_* say which number */
#define METAROCE_RECORD_GHOST  0x10u /* moved away: `other` travels for it */
#define METAROCE_RECORD_FILL   0x20u /* number to be filled with nothing */
#define METAROCE_RECORD_GONE   0x40u /* out of its path's list, still queued */
#define METAROCE_RECORD_MOVING 0x80u /* in the connection's queue of packets to move */

/* A packet under way: one sequence number of one path. */
struct metaroce_record {
	struct metaroce_record *next;       /* in its path, by sequence */
	struct metaroce_record *queue_next; /* waiting to be sent again or moved */
	struct metaroce_record *other;      /* ghost <-> what travels for it */
	struct metaroce_message *message;   /* NULL: fill */
	dsf_instant tx_at;                  /* last time */
	uint32_t sequence, offset, size, moved_sequence;
	uint16_t path, moved_path;
	uint8_t moved_epoch, epoch, flags;
};

struct metaroce_queue {
	struct metaroce_record *first, *last;
};

/* Sender's side of a path. */
struct metaroce_path {
	struct metaroce_link urgent; /* in conn_plane.urgent: something to resend, or a probe */
	struct metaroce_timer timer;
	struct metaroce_conn *conn;
	struct metaroce_queue under_way, resend;
	struct metaroce_window window;
	dsf_instant last_at;  /* last sent or answered */
	dsf_instant probe_at; /* last probe sent */
	uint64_t bytes;
	uint32_t next_sequence, inflight;
	uint32_t resent_highest; /* highest sequence that was sent again */
	uint32_t rtt_ns, rtt_var_ns, rtt_least_ns;
	uint32_t ecn_seen, rx_seen, retransmits;
	uint16_t index, source_port;
	uint8_t epoch, plane, home;
	uint8_t state;  /* enum metaroce_path_state */
	uint8_t probes; /* unanswered */
	uint8_t failures;
	bool probe_due, skip, resent;
};

/* Receiver's side of a path. */
struct metaroce_rx_path {
	struct metaroce_sack sack;
	uint32_t ecn_packets, rx_packets, ts;
	dsf_instant rx_at;
	uint8_t epoch, flags; /* METAROCE_PBLK_* of the next ACK */
};

struct metaroce_conn_plane {
	struct metaroce_link ready;  /* in metaroce.ready[plane] */
	struct metaroce_link urgent; /* head: paths */
	struct metaroce_timer pace;
	struct metaroce_conn *conn;
	struct metaroce_share_sender sender; /* the peer, as one who sends to us */
	dsf_instant pace_at, hint_at;
	uint64_t hint_bps;
	struct metaroce_window window; /* over all paths of the plane */
	uint32_t inflight;
	uint32_t cursor; /* path that comes next */
	uint8_t plane;
	bool hint_limited;
};

enum metaroce_conn_state {
	METAROCE_CONN_UNUSED,
	METAROCE_CONN_ASKING,
	METAROCE_CONN_OPEN,
	METAROCE_CONN_CHECKING, /* open, asks whether the peer is still the same: sends no data */
};

struct metaroce_conn {
	struct metaroce *m;
	uint32_t id, peer_id;
	uint64_t cookie, peer_cookie;
	enum metaroce_conn_state state;
	struct metaroce_peer peer;
	uint32_t peer_payload_max;
	struct metaroce_path *paths;
	uint32_t paths_count, good_count;
	struct metaroce_rx_path *rx_paths;
	uint32_t rx_paths_count;
	struct metaroce_conn_plane *planes; /* [m->config.planes] */
	/* sending */
	struct metaroce_link streams; /* head: streams with something to send */
	struct metaroce_queue moving;
	uint32_t inflight, records;
	uint32_t inflight_max;   /* by the peer's hints and the least round trip time */
	uint32_t rtt_least_ns;   /* of all paths; 0: not measured */
	uint32_t messages;       /* posted, not complete */
	uint64_t backlog;        /* posted bytes not sent yet */
	dsf_instant answered_tx; /* latest sending instant that was answered, of all paths */
	dsf_instant progress_at; /* or when was asked last */
	dsf_instant waits_since; /* last progress, or when the work began */
	bool heard;              /* an ACK, since the last query */
	dsf_instant asked_at;    /* the only hello so far; DSF_NEVER: more than one */
	struct metaroce_timer query, hello;
	uint32_t tries;        /* of hello or query, unanswered */
	uint32_t control_seen; /* of the peer's ACKs */
	bool control_known;
	uint8_t query_plane;
	/* what to say: bit 1 << enum metaroce_conn_op */
	uint32_t hello_ops;
	struct metaroce_link control; /* in metaroce.control[plane] */
	struct metaroce_qp *query_qp;
	/* receiving */
	uint64_t pending[DSF_BITSET_WORDS(METAROCE_PATHS_MAX)]; /* paths to tell about */
	struct metaroce_link told; /* head: streams whose progress to tell */
	struct metaroce_link ack;  /* in metaroce.acks[plane] */
	struct metaroce_timer ack_timer;
	uint32_t unacked; /* DATA packets since the last ACK */
	uint32_t rx_bytes;
	uint32_t control_sequence;
	uint8_t ack_plane;
	struct metaroce_link qps; /* head: all streams */
	uint32_t qps_count;
};

/* A message that is arriving. */
struct metaroce_arriving {
	uint32_t size, received, placed;
	bool begun;
};

struct metaroce_qp {
	uint32_t number; /* key of metaroce.qps: must be first */
	uint32_t peer_number;
	struct metaroce_conn *conn;
	uint64_t user;
	uint32_t life; /* tells streams of one number apart */
	int status;
	struct metaroce_link all;  /* in conn.qps */
	struct metaroce_link send; /* in conn.streams */
	struct metaroce_link tell; /* in conn.told */
	/* sending */
	struct metaroce_message *first, *last; /* posted, not complete, by msn */
	struct metaroce_message *sending;      /* next with something to send */
	uint32_t next_msn, done_msn;
	/* receiving */
	uint32_t expected;       /* all messages before are complete */
	uint32_t arriving_count; /* of arriving: 0 or a power of two */
	struct metaroce_arriving *arriving;
	struct metaroce_qp_view view; /* counters */
};

struct metaroce_region {
	uint32_t key; /* must be first */
	uint64_t base, size, memory;
};

struct metaroce_placing {
	uint32_t number; /* of the stream: it may be gone when the answer comes */
	uint32_t life;   /* of the stream */
	uint32_t msn, size;
};

struct metaroce_nack_due {
	struct metaroce_mch mch;
	struct metaroce_nack nack;
	struct dsf_ip6 target;
	uint32_t plane;
};

struct metaroce_key {
	struct dsf_ip6 address; /* of the peer's first port */
	struct metaroce_conn *conn;
};

struct metaroce {
	struct metaroce_config config;
	uint64_t probe_first_ns; /* probe time-out before there is a round trip time */
	uint64_t patience_ns;
	bool carrier[METAROCE_PLANES_MAX];
	struct dsf_rng rng;
	struct dsf_heap timers;
	uint32_t timers_reserved;
	struct dsf_pool records, messages, placings;
	struct dsf_hash qps, regions, peers;
	struct metaroce_conn **conns; /* by the low half of their id */
	uint32_t conns_count, conns_capacity;
	struct metaroce_link control[METAROCE_PLANES_MAX]; /* connections with hellos or queries */
	struct metaroce_link acks[METAROCE_PLANES_MAX];    /* connections with an ACK due */
	struct metaroce_link ready[METAROCE_PLANES_MAX];   /* conn_planes with data */
	struct metaroce_share share[METAROCE_PLANES_MAX];
	struct metaroce_nack_due nacks[METAROCE_NACKS_MAX];
	uint32_t nacks_first, nacks_count;
	uint32_t nack_sequence;
	uint32_t lives;                                  /* of streams, counted */
	struct metaroce_message *done_first, *done_last; /* to be told */
	struct metaroce_counters counters;
};

/* A timer's place in the heap was reserved with its connection, so setting it can't fail. */
void metaroce_timer_set(struct metaroce *m, struct metaroce_timer *t, dsf_instant at);
void metaroce_timer_stop(struct metaroce *m, struct metaroce_timer *t);

static inline bool metaroce_timer_runs(const struct metaroce_timer *t)
{
	return t->entry.place != 0;
}

static inline uint32_t metaroce_ticks(dsf_instant at)
{
	return (uint32_t)(at.ns / METAROCE_TICK_NS);
}

static inline bool metaroce_address_set(const struct dsf_ip6 *a)
{
	static const struct dsf_ip6 none;

	return !dsf_ip6_equal(a, &none);
}

/* conn.c */

/* True when both NICs have a port on the plane and ours has carrier. */
bool metaroce_conn_uses(const struct metaroce_conn *c, uint32_t plane);
/* The connection to the peer, made where there is none; NULL and *err. */
struct metaroce_conn *metaroce_conn_to(
	struct metaroce *m, const struct metaroce_peer *peer, int *err);
struct metaroce_conn *metaroce_conn_by_id(const struct metaroce *m, uint32_t id);
void metaroce_conn_free(struct metaroce_conn *c);
/* Begins the handshake when there was none. */
void metaroce_conn_ask(struct metaroce_conn *c, dsf_instant now);
/* Asks a connection that rests whether its peer is still who it was. */
void metaroce_conn_check(struct metaroce_conn *c, dsf_instant now);
/* The peer lost its state, or is given up: streams that have carried something fail with status,
 * and those that haven't begin anew. */
void metaroce_conn_reset(struct metaroce_conn *c, int status, dsf_instant now);
/* Something went on: what waits isn't given up. */
static inline void metaroce_conn_progress(struct metaroce_conn *c, dsf_instant now)
{
	c->progress_at = c->waits_since = now;
	c->tries = 0;
}

/* There is a peer that knows this connection, as far as we know. */
static inline bool metaroce_conn_is_open(const struct metaroce_conn *c)
{
	return c->state == METAROCE_CONN_OPEN || c->state == METAROCE_CONN_CHECKING;
}

/* Sends the hello op on a plane, soon. */
void metaroce_conn_say(struct metaroce_conn *c, enum metaroce_conn_op op, uint32_t plane);
int metaroce_conn_hello(struct metaroce *m, uint32_t plane, const struct dsf_ip6 *source,
	const struct metaroce_mch *mch, const struct metaroce_hello *hello, dsf_instant now);
/* Writes a control packet (hello or query) for the plane; 0 when there is none after all. */
uint32_t metaroce_conn_control(
	struct metaroce_conn *c, uint32_t plane, uint8_t *to, dsf_instant now);
void metaroce_conn_hello_expire(struct metaroce_conn *c, dsf_instant now);
void metaroce_conn_query_expire(struct metaroce_conn *c, dsf_instant now);
/* Puts the connection among those that have something to send on a plane, where it has. */
void metaroce_conn_wake(struct metaroce_conn *c, uint32_t plane);
void metaroce_conn_wake_all(struct metaroce_conn *c);
uint16_t metaroce_conn_backlog(const struct metaroce_conn *c);

/* path.c */

void metaroce_path_init(struct metaroce_path *p, struct metaroce_conn *c, uint32_t index);
uint64_t metaroce_path_timeout_ns(const struct metaroce_path *p);
/* Appends a new record for the next sequence; the caller made sure of the span. */
struct metaroce_record *metaroce_path_record(struct metaroce_path *p);
/* The record was sent, for the first time or again. */
void metaroce_path_sent(struct metaroce_path *p, struct metaroce_record *r, dsf_instant now);
bool metaroce_path_span_full(const struct metaroce_path *p);
/* The receiver has this record. */
void metaroce_path_acked(struct metaroce_path *p, struct metaroce_record *r);
/* Frees what is acknowledged at the beginning. */
void metaroce_path_trim(struct metaroce_path *p);
void metaroce_path_lost(struct metaroce_path *p, struct metaroce_record *r);
/* Next record to send again; NULL: none. */
struct metaroce_record *metaroce_path_take_resend(struct metaroce_path *p);
/* Next record to move away, out of its connection's queue; NULL: none. */
struct metaroce_record *metaroce_path_take_moving(struct metaroce_conn *c);
/* Puts back what was just taken. */
void metaroce_path_untake_moving(struct metaroce_conn *c, struct metaroce_record *r);
/* copy, on another path, goes for r of p from now on. */
void metaroce_path_moved(
	struct metaroce_path *p, struct metaroce_record *r, struct metaroce_record *copy);
/* Something that this path sent at tx_at was answered. */
void metaroce_path_answered(
	struct metaroce_path *p, uint8_t epoch, dsf_instant tx_at, dsf_instant now);
void metaroce_path_expire(struct metaroce_path *p, dsf_instant now);
void metaroce_path_carrier(struct metaroce_path *p, bool up, dsf_instant now);
/* The connection has work again: a path in doubt that had come to rest probes. */
void metaroce_path_resume(struct metaroce_path *p, dsf_instant now);
/* Forgets everything under way; what waits to move first. */
void metaroce_path_clear_moving(struct metaroce_conn *c);
void metaroce_path_clear(struct metaroce_path *p);
/* The record's message needs it no more: an empty packet may fill its number. */
void metaroce_record_fill(struct metaroce_record *r, struct metaroce_path *p);

/* spray.c */

enum metaroce_spray_result {
	METAROCE_SPRAY_PATH,   /* *path has room */
	METAROCE_SPRAY_WINDOW, /* windows or spans are full: an ACK will change that */
	METAROCE_SPRAY_NONE,   /* no good path on this plane */
};
enum metaroce_spray_result metaroce_spray_pick(
	struct metaroce_conn_plane *cp, uint32_t size, struct metaroce_path **path);

/* loss.c */

/* How much may be under way by the peer's hints, or without them. */
void metaroce_loss_limit(struct metaroce_conn *c);
int metaroce_loss_input(struct metaroce *m, struct metaroce_conn *c, const uint8_t *bytes,
	size_t stored, const struct metaroce_mch *mch, dsf_instant now);

/* ack.c */

/* An ACK should leave on the plane: at once, or within the delay. */
void metaroce_ack_now(struct metaroce_conn *c, uint32_t plane);
void metaroce_ack_soon(struct metaroce_conn *c, uint32_t plane, dsf_instant now);
uint32_t metaroce_ack_output(struct metaroce_conn *c, uint32_t plane, uint8_t *to, dsf_instant now);
void metaroce_ack_tell(struct metaroce_conn *c, struct metaroce_qp *qp);

/* input.c */

void metaroce_input_nack(struct metaroce *m, struct metaroce_conn *c, uint32_t plane,
	const struct dsf_ip6 *target, const struct metaroce_nack *nack);

/* qp.c */

struct metaroce_qp *metaroce_qp_by_number(const struct metaroce *m, uint32_t number);
/* Which of a stream's messages has something to send; NULL: none (or its window is full). */
struct metaroce_message *metaroce_qp_next(const struct metaroce_qp *qp);
/* size bytes of the message were put into a packet. */
void metaroce_qp_sent(struct metaroce_qp *qp, struct metaroce_message *message, uint32_t size);
/* The peer has completed all messages before msn. */
int metaroce_qp_done(struct metaroce_qp *qp, uint32_t msn, dsf_instant now);
void metaroce_qp_fail(struct metaroce_qp *qp, int status);
/* Nothing was sent or received on it: a peer that lost its state has lost nothing of it. */
bool metaroce_qp_is_virgin(const struct metaroce_qp *qp);
/* What a DATA packet means to the stream: 0, or -DSF_E_* and nothing changed. */
int metaroce_qp_check(struct metaroce_qp *qp, const struct metaroce_data *data);
/* It arrived for the first time (check said 0 before). */
void metaroce_qp_arrived(struct metaroce_qp *qp, const struct metaroce_data *data, dsf_instant now);
void metaroce_qp_placed(struct metaroce_qp *qp, uint32_t msn, uint32_t size, int status);
/* One record less needs the message. */
void metaroce_message_unuse(struct metaroce *m, struct metaroce_message *message);

#endif
