/*
 * session.h - one peer: two subscriptions over one stream
 *
 * Either side subscribes to the other. Ours is connected (local) once the peer's full state has
 * come and was valid; the peer's to us is connected (remote) when it says so. The state is a
 * function of the two (published: FBOSS DsfSession):
 *
 *   not local             CONNECT
 *   local, not remote     WAIT_FOR_REMOTE
 *   both                  ESTABLISHED
 *
 * What the peer said before we are connected doesn't count, and when local ends remote is
 * forgotten, so no bounce jumps straight to ESTABLISHED; whoever sends a full state says behind it
 * how its own subscription stands.
 *
 * A change is tried on a copy of the table and takes its place when all of it is valid. When it
 * isn't, the old table stays, our subscription is over, and after the retry time we subscribe anew
 * on the same stream. Bytes that are no messages end the stream.
 *
 * The end of local starts the hold time; what the peer said is used on. When the hold time ends its
 * ports and interfaces are STALE and its neighbors are gone, until the next full state. A peer that
 * ends the stream in good order without saying that it will be back (GOODBYE), or says that it
 * won't, is forgotten at once; a stream that breaks says nothing about the peer. (Published: a
 * publisher that exits ungracefully is flushed, one that restarts or isn't heard is held.)
 */
#ifndef DSF_FSDB_SESSION_H
#define DSF_FSDB_SESSION_H
#include "base/time.h"
#include "fsdb/publish.h"

/* Published (FBOSS), protocol time; who dilates divides them. */
#define FSDB_HEARTBEAT_NS (2 * NS_PER_S)   /* server heartbeat of DSF sessions */
#define FSDB_SILENCE_NS   (15 * NS_PER_S)  /* client chunk time-out of DSF sessions */
#define FSDB_CONNECT_NS   (4 * NS_PER_S)   /* connect time-out */
#define FSDB_RETRY_NS     (1 * NS_PER_S)   /* reconnect period, constant */
#define FSDB_HOLD_NS      (120 * NS_PER_S) /* graceful restart, production and tests */
/* Ours: a neighbor may be resolved so far ahead of our clock. That is what the clocks of two
 * machines, and a process that was held up while the other one wasn't, differ by at most; and it is
 * asked for again after the retry time. */
#define FSDB_AHEAD_NS (1 * NS_PER_S)

#define FSDB_WRITE_MIN 32u /* room that all control messages at once need */

enum fsdb_session_state { FSDB_CONNECT, FSDB_WAIT_FOR_REMOTE, FSDB_ESTABLISHED };

struct fsdb_timers {
	uint64_t heartbeat_ns, silence_ns, connect_ns, retry_ns, hold_ns, ahead_ns;
};

enum fsdb_stream_state { FSDB_STREAM_NONE, FSDB_STREAM_OPENING, FSDB_STREAM_OPEN };

struct fsdb_session {
	const struct dsf_memory *memory;
	const struct fsdb_timers *timers;
	uint32_t self, peer;   /* ids; an id's system ports begin at id * FSDB_PORTS_MAX */
	bool reachable, fresh; /* fresh: since a little while, and no stream has ended since */
	bool local, remote;    /* subscriptions: ours, the peer's */
	bool stale;            /* the hold time is over */
	/* The stream. */
	enum fsdb_stream_state stream;
	uint32_t generation; /* of the stream: which one since the beginning */
	bool open_wanted;
	uint32_t close_first, close_count; /* generations that have still to be closed */
	bool close_reset;
	bool hello_heard, restarting; /* said GOODBYE and will be back */
	uint8_t wants;                /* control messages to send: bits of enum fsdb_message_type */
	enum fsdb_goodbye goodbye;    /* ours */
	uint32_t room;                /* bytes that the stream takes now */
	uint8_t *partial; /* FSDB_MESSAGE_MAX bytes while a message isn't whole, or NULL */
	uint32_t partial_size;
	/* What the peer says. */
	struct fsdb_table table, stage, old;
	bool syncing;  /* between SYNC and SYNCED: stage is filled */
	bool replaced; /* old holds what table was */
	uint64_t revision;
	/* What we say to it. */
	bool subscribed, full_wanted, chunk_full;
	struct fsdb_chunk *chunk; /* being sent, held */
	uint32_t chunk_at;
	uint64_t sent_revision;
	/* Timers; DSF_NEVER: off. */
	dsf_instant heard_at, connect_at, retry_at, heartbeat_at, subscribe_at, hold_at;
	/* For views. */
	dsf_instant established_at, disconnected_at; /* last time; DSF_NEVER: not yet */
	uint64_t flaps;                              /* times it left ESTABLISHED */
	uint64_t rejected, expired, broken; /* updates, hold times, streams that the peer broke */
};

/* A CLOSE may name a stream that has ended by itself meanwhile. */
enum fsdb_output_kind { FSDB_OUTPUT_OPEN, FSDB_OUTPUT_WRITE, FSDB_OUTPUT_CLOSE };

struct fsdb_output {
	enum fsdb_output_kind kind;
	uint32_t stream;               /* its generation; from a mesh: its number */
	bool reset;                    /* CLOSE: at once, nothing that is under way matters */
	uint32_t size;                 /* WRITE */
	const uint8_t *bytes;          /* WRITE: borrowed, until the next call */
	const struct dsf_ip6 *address; /* from a mesh: the peer's */
};

/* memory and timers outlive it; self != peer. The one with the lower id connects. */
void fsdb_session_init(struct fsdb_session *s, const struct dsf_memory *memory,
	const struct fsdb_timers *timers, uint32_t self, uint32_t peer);
void fsdb_session_close(struct fsdb_session *s);

static inline enum fsdb_session_state fsdb_session_state(const struct fsdb_session *s)
{
	return !s->local ? FSDB_CONNECT : !s->remote ? FSDB_WAIT_FOR_REMOTE : FSDB_ESTABLISHED;
}

/* Do we open the stream, or does the peer? */
static inline bool fsdb_session_connects(const struct fsdb_session *s)
{
	return s->self < s->peer;
}

/* The fabric reaches the peer or not: a stream is only opened while it does, and at once when it
 * begins to. One that is open goes on; a HEARTBEAT finds out whether the peer, which may have been
 * started anew, still knows it, and if it doesn't there is a new one at once, once. */
void fsdb_session_reachable(struct fsdb_session *s, bool reachable, dsf_instant now);

/* The stream that we asked for is there. */
void fsdb_session_connected(struct fsdb_session *s, dsf_instant now);

/* The peer has opened a stream; it takes the place of an old one. False: that isn't its part. */
bool fsdb_session_accept(struct fsdb_session *s, dsf_instant now);

/* The stream has ended, by itself. reset: broken, not closed in good order. As after
 * fsdb_session_input, fsdb_session_replaced has to be asked. */
void fsdb_session_closed(struct fsdb_session *s, bool reset, dsf_instant now);

/* The stream takes so many bytes from now on. */
void fsdb_session_writable(struct fsdb_session *s, uint32_t room);

/*
 * Bytes came. Takes those of one message at most and returns how many; call again with the rest.
 * -DSF_E_*: the peer broke the protocol, or no memory; the caller breaks the stream. After every
 * call fsdb_session_replaced has to be asked.
 */
int fsdb_session_input(struct fsdb_session *s, const uint8_t *bytes, size_t size, dsf_instant now);

/* Breaks the stream: it will be closed, and opened anew after the retry time. */
void fsdb_session_break(struct fsdb_session *s, dsf_instant now);

/* What came can't be used: the old records stay, the subscription is over, and after the retry time
 * we subscribe anew. */
void fsdb_session_reject(struct fsdb_session *s, dsf_instant now);

/* The peer's records are others than before: moves the old ones to *old, which the caller closes.
 */
bool fsdb_session_replaced(struct fsdb_session *s, struct fsdb_table *old);

/* Says GOODBYE; the stream is closed behind it. */
void fsdb_session_leave(struct fsdb_session *s, enum fsdb_goodbye goodbye);

/* The next thing to do; scratch: FSDB_WRITE_MIN bytes that live as long as out. Nothing may be open
 * in p. */
bool fsdb_session_output(struct fsdb_session *s, struct fsdb_publisher *p, uint8_t *scratch,
	struct fsdb_output *out, dsf_instant now);

dsf_instant fsdb_session_deadline(const struct fsdb_session *s);

/* As after fsdb_session_input, fsdb_session_replaced has to be asked. */
void fsdb_session_expire(struct fsdb_session *s, dsf_instant now);

#endif
