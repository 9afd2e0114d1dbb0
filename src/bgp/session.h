/*
 * session.h - the state machine of one BGP neighbour (RFC 4271 8)
 *
 * A session owns up to two connections: ours and the peer's may cross, and which one stays is found
 * out when both have said who they are (RFC 4271 6.8, 6286 2.3). Each connection is an ordered
 * stream of bytes that somebody else carries; the session says when one is to be opened or closed.
 *
 * Times. Hold time is the smaller of both offers; we speak at a third of it, less a random quarter.
 * A connection that was refused, closed or failed is followed by a new attempt after retry_ns, less
 * a random quarter; meanwhile the peer may come to us.
 *
 * Not in here: routes. UPDATE and ROUTE-REFRESH come out of bgp_session_input as they are, and go
 * in between what bgp_session_output says.
 */
#ifndef DSF_BGP_SESSION_H
#define DSF_BGP_SESSION_H
#include "base/memory.h"
#include "base/rng.h"
#include "base/time.h"
#include "bgp/wire.h"

#define BGP_HOLD_S       90u              /* RFC 4271 10 */
#define BGP_OPEN_HOLD_NS (240 * NS_PER_S) /* RFC 4271 8.2.2: "a large value", 4 minutes */
#define BGP_RETRY_NS     (5 * NS_PER_S)   /* ours: RFC 4271's 120 s are for the Internet */
#define BGP_SEND_HOLD_NS (480 * NS_PER_S) /* RFC 9687 3: 8 minutes, or twice the hold time */
#define BGP_RESTART_S    120u             /* ours: what most routers offer */
#define BGP_SLOTS        2u

enum bgp_state {
	BGP_IDLE,    /* stopped, or held down */
	BGP_CONNECT, /* our connection is being made */
	BGP_ACTIVE,  /* waits for the peer's, or for the next attempt */
	BGP_OPEN_SENT,
	BGP_OPEN_CONFIRM,
	BGP_ESTABLISHED,
};

/* Name as in RFC 4271; static storage. */
const char *bgp_state_name(enum bgp_state state);

struct bgp_session_config {
	const struct dsf_memory *memory;
	uint32_t as, id; /* ours */
	uint32_t peer_as;
	uint16_t hold_s; /* offered; 0: none, else at least 3 */
	uint64_t retry_ns;
	uint8_t add_path;   /* BGP_ADD_PATH_* that we offer */
	uint16_t restart_s; /* graceful restart: how long the peer shall wait for us; 0: offered
			       without a family, so that nothing is kept */
	bool passive;       /* never connects itself */
	uint64_t seed;
};

struct bgp_connection {
	enum bgp_state state; /* BGP_IDLE: slot is free; never BGP_ACTIVE */
	bool ours;            /* made by us */
	bool late;            /* the peer's, while another one was established */
	bool closing;         /* ends as soon as the NOTIFICATION, if any, is out */
	bool open_due; /* CONNECT: the connection is to be made; OPEN_SENT: OPEN is to be sent */
	bool keepalive_due;
	bool blocked;                         /* what was written last isn't taken yet */
	struct bgp_notification notification; /* to send; code 0: none */
	dsf_instant hold_at, keepalive_at, send_hold_at;
	uint8_t *partial; /* beginning of a message */
	uint32_t partial_size, partial_cap;
	bool partial_done;    /* the caller has been given it: dropped at the next input */
	struct bgp_open peer; /* from OPEN_CONFIRM on */
	uint64_t hold_ns;
};

struct bgp_session_counters {
	uint64_t messages_received, messages_sent;
	uint64_t established; /* times */
	uint64_t notifications_received, notifications_sent;
};

struct bgp_session {
	struct bgp_session_config config;
	struct dsf_rng rng;
	bool started;
	bool restarting;        /* we have just begun: our OPENs say so (RFC 4724 4.1) */
	bool refresh_due;       /* a ROUTE-REFRESH is to be sent */
	bool notified;          /* the last session ended by a NOTIFICATION, of either side */
	dsf_instant retry_at;   /* next attempt of ours */
	dsf_instant idle_until; /* held down: nothing is taken before */
	struct bgp_connection slots[BGP_SLOTS];
	struct bgp_notification sent, received; /* last of each; code 0: none */
	struct bgp_session_counters counters;
};

void bgp_session_init(struct bgp_session *s, const struct bgp_session_config *config);

/* Gives memory back; connections are forgotten without a word. */
void bgp_session_close(struct bgp_session *s);

void bgp_session_start(struct bgp_session *s, dsf_instant now);

/* Ends what there is with a Cease of that subcode and text (NULL: none) and stays idle until
 * started again. */
void bgp_session_stop(struct bgp_session *s, enum bgp_cease subcode, const char *text);

/* Ends the established connection with n and takes no other for idle_ns (UINT64_MAX: until started
 * again). */
void bgp_session_fail(
	struct bgp_session *s, const struct bgp_notification *n, uint64_t idle_ns, dsf_instant now);

/* The slot on which a connection is to be made now, once; -1 when none is. */
int bgp_session_connect(struct bgp_session *s);

/* The connection of a slot stands. */
void bgp_session_connected(struct bgp_session *s, unsigned slot, dsf_instant now);

/* The peer has connected to us. Its slot, or -DSF_E_STATE: refuse it. */
int bgp_session_accept(struct bgp_session *s, dsf_instant now);

/* The connection of a slot is gone, or was never made. */
void bgp_session_closed(struct bgp_session *s, unsigned slot, dsf_instant now);

/* What was written last waits (true), or all of it was taken. */
void bgp_session_blocked(struct bgp_session *s, unsigned slot, bool blocked, dsf_instant now);

struct bgp_message {
	uint8_t type; /* BGP_UPDATE or BGP_ROUTE_REFRESH */
	const uint8_t *body;
	size_t size;
};

/* Takes bytes of a slot's stream up to and with the next UPDATE or ROUTE-REFRESH of the established
 * session. 1: m is one, borrowed until the next call; call again with the rest, also when none is
 * left. 0: all bytes are taken. */
int bgp_session_input(struct bgp_session *s, unsigned slot, const uint8_t **bytes, size_t *size,
	dsf_instant now, struct bgp_message *m);

/* The next message of a slot that isn't about routes, into room for BGP_MESSAGE_MAX; 0 when there
 * is none. */
size_t bgp_session_output(struct bgp_session *s, unsigned slot, uint8_t *to);

/* True once when the connection of a slot is to be closed; the slot is free then. */
bool bgp_session_closing(struct bgp_session *s, unsigned slot, dsf_instant now);

dsf_instant bgp_session_deadline(const struct bgp_session *s);
void bgp_session_expire(struct bgp_session *s, dsf_instant now);

/* The slot of the established connection; -1 when there is none. */
int bgp_session_established(const struct bgp_session *s);

enum bgp_state bgp_session_state(const struct bgp_session *s, dsf_instant now);

/* What was agreed on; of the established connection. */
static inline bool bgp_session_is_extended(const struct bgp_connection *c)
{
	return c->state == BGP_ESTABLISHED && c->peer.extended;
}

#endif
