/*
 * conform.h - judging a BGP speaker from outside, by what it does on its sockets
 *
 * The program plays all neighbours of one speaker, the target, which is of AS 65000, takes all
 * routes and tells all it may. It shares no code with the core that it judges: messages are made
 * from text (conform_messages.c) and read by a decoder of its own (conform_heard.c).
 *
 * Neighbours, by the end of their address in the target's /64:
 *
 *   e:1 ... e:20   eBGP, AS 65100: cases take them in turn, so that no case waits until the target
 *                  takes a neighbour back whose last session ended badly
 *   1:1 ... 1:4    iBGP, in turn
 *   a              eBGP, AS 4200000100, add-path both ways: stays, and sees what the target tells
 *   b              iBGP, stays
 *   c              eBGP, AS 65100; the target connects to it, once a second
 *   d              eBGP, AS 65100; may tell five prefixes
 *   f:1 ... f:3    eBGP, AS 65100; for what takes time
 *
 * A case is a function that gives back NULL, or a reason why the target doesn't do what the RFC
 * says; a reason that begins with "n/a" tells why the case means nothing to this target. Nothing is
 * judged by a clock: a case waits for what must come until conform_limit_ms, and what must not come
 * is looked for behind a route that was told later (a barrier).
 */
#ifndef DSF_TESTS_CONFORM_H
#define DSF_TESTS_CONFORM_H
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MESSAGE_MAX  65535u
#define ORDINARY_MAX 4096u
#define HEADER_SIZE  19u
#define AS_TARGET    65000u
#define AS_OTHER     65100u

enum type { OPEN = 1, UPDATE, NOTIFICATION, KEEPALIVE, REFRESH };

enum attribute {
	ORIGIN = 1,
	AS_PATH,
	NEXT_HOP,
	MED,
	LOCAL_PREF,
	ATOMIC_AGGREGATE,
	AGGREGATOR,
	COMMUNITIES,
	MP_REACH = 14,
	MP_UNREACH = 15,
	AS4_PATH = 17,
	AS4_AGGREGATOR = 18,
};

struct neighbour {
	struct in6_addr address;
	uint32_t as, id;
	bool internal;
};

/* A route that the target tells now. */
struct route {
	struct route *next;
	uint8_t prefix[16], length;
	uint32_t path_id;
	unsigned told; /* times */
	uint8_t hop[32], hop_size;
	uint8_t *attributes; /* the UPDATE's, of this many bytes */
	size_t size;
};

/* One connection with the target. */
struct peer {
	const struct neighbour *who;
	int fd; /* -1: none */
	bool connecting, refused, closed;
	bool silent; /* sends no KEEPALIVE by itself */
	bool deaf;   /* nothing is read */
	/* what we said */
	bool as4, extended, established;
	uint8_t add_path;          /* 1: we would take several paths, 2: send them */
	bool takes_ids, sends_ids; /* agreed on */
	uint64_t keepalive_at_ms;
	/* what the target said */
	bool opened, confirmed, noted;
	uint8_t code, subcode, data[256];
	size_t data_size;
	uint8_t open[ORDINARY_MAX]; /* its OPEN, without header */
	size_t open_size;
	unsigned keepalives, begins, ends, refreshes, end_of_ribs;
	const char *wrong; /* the target's own messages are not as they must be */
	struct route *routes;
	uint8_t in[2 * MESSAGE_MAX];
	size_t in_size;
};

struct conform_case {
	const char *rfc, *name;
	const char *(*run)(const struct conform_case *c);
	const char *text;      /* what is said, as the case takes it */
	uint8_t code, subcode; /* that must come */
	const char *data;
	uint8_t attribute;
	bool internal;
	void (*start)(void); /* before all cases, for what takes time */
};

extern const struct conform_case conform_open_cases[], conform_state_cases[],
	conform_update_cases[], conform_route_cases[], conform_session_cases[],
	conform_hostile_cases[];

/* ---- conform.c: the run */

extern struct in6_addr conform_target;
extern uint64_t conform_limit_ms;
extern unsigned conform_number; /* of the case: the third group of its prefixes */

/* A reason, as printf makes it; static storage. */
__attribute__((format(printf, 1, 2))) const char *conform_reason(const char *format, ...);

/* The target's own command for what a socket can't do: shutdown, enable, reset, restart, each with
 * a neighbour's address and a text (NULL: none). False: it can't. */
bool conform_hook(const char *what, const struct neighbour *n, const char *text);

#define TRY(call)                                                                                  \
	do {                                                                                       \
		const char *why_ = (call);                                                         \
		if (why_ != NULL)                                                                  \
			return why_;                                                               \
	} while (0)

#define WANT(held, ...)                                                                            \
	do {                                                                                       \
		if (!(held))                                                                       \
			return conform_reason(__VA_ARGS__);                                        \
	} while (0)

/* Waits until it holds. */
#define AWAIT(held, ...)                                                                           \
	do {                                                                                       \
		uint64_t until_ = peers_now_ms() + conform_limit_ms;                               \
		while (!(held)) {                                                                  \
			if (!peers_turn(until_))                                                   \
				return conform_reason(__VA_ARGS__);                                \
		}                                                                                  \
	} while (0)

/* ---- conform_messages.c: bytes from text */

/* Text is pairs of hexadecimal digits, and words that begin with a capital letter:
 *   O    ORIGIN IGP                      P      AS_PATH: the neighbour's AS (empty by iBGP)
 *   L    LOCAL_PREF 100 (nothing by eBGP)
 *   R1   MP_REACH with prefix 1 of the case and the neighbour's address; R1#7: with path id 7
 *   U1   MP_UNREACH with prefix 1        N1     prefix 1 as it stands in either; B1: its octets
 *   H    the neighbour's address         T      the target's address
 *   I    the neighbour's BGP identifier  A      its AS, of four octets
 *   M    the AS field of its OPEN
 * Returns the size. */
size_t compose(const struct peer *p, uint8_t *to, size_t cap, const char *text);

/* Messages; false when they don't go out whole. */
bool say(struct peer *p, enum type type, const char *text);
bool say_bytes(struct peer *p, const uint8_t *bytes, size_t size);
bool say_text(struct peer *p, const char *text); /* header and all */

/* An UPDATE whose attributes are text. */
bool say_update(struct peer *p, const char *text);

/* An OPEN with hold time and the usual capabilities (IPv6 unicast, refresh, AS numbers of four
 * octets unless !as4), and more of them as text. */
bool say_open(struct peer *p, uint16_t hold_s, bool as4, const char *more);

/* An UPDATE with attributes as text, and then count prefixes from first on. */
bool say_many(struct peer *p, const char *text, unsigned first, unsigned count, const char *last);

/* ---- conform_heard.c: what the target says */

/* Takes the whole messages of what was read, and moves the rest to its place. */
void peer_hear(struct peer *p);

/* Frees its routes. */
void peer_forget(struct peer *p);

/* True when the target's OPEN has the capability, with a value that holds these octets at a
 * multiple of four (hexadecimal; "": any value). */
bool is_capable(const struct peer *p, uint8_t code, const char *hex);

/* A prefix of the case, as the target tells it to p; NULL when it doesn't. */
struct route *route_of(const struct peer *p, unsigned prefix);
unsigned routes_of(const struct peer *p, unsigned prefix); /* paths */
unsigned routes_of_case(const struct peer *p);

/* One of another case's number. */
struct route *route_numbered(const struct peer *p, unsigned number, unsigned prefix);

/* An attribute's value and flags; NULL when the route has none. */
const uint8_t *attribute_of(const struct route *r, uint8_t type, size_t *size, uint8_t *flags);
bool attribute_is(const struct route *r, uint8_t type, const char *hex);

/* ---- conform_peer.c: connections */

extern struct neighbour neighbour_observer, neighbour_inside, neighbour_active, neighbour_limited,
	neighbour_slow[3];
extern struct peer *observer, *inside; /* a and b */

uint64_t peers_now_ms(void);
void peers_init(void);
void peers_free(void);

/* Takes what comes until something came; false at until. */
bool peers_turn(uint64_t until_ms);

/* Closes all that a case has opened. */
void peers_end_case(void);

/* Brings a and b up, where they aren't. */
const char *peers_observe(void);

/* What is wrong with the target's own messages, on any connection; NULL: nothing. */
const char *peers_wrong(void);

/* Next in turn. */
const struct neighbour *neighbour_next(bool internal);

/* A connection on which the target has said OPEN: ours, or (accept) its own. */
const char *peer_connect(struct peer **p, const struct neighbour *n);
const char *peer_accept(struct peer **p, const struct neighbour *n);

/* A connection that stands, whatever comes of it. False: refused. */
bool peer_try(struct peer **p, const struct neighbour *n);

/* An established session, with more capabilities as text. */
const char *peer_up(struct peer **p, const struct neighbour *n, const char *more);

/* After our OPEN: the target confirms it; and we do so too. */
const char *peer_confirm(struct peer *p);
const char *peer_establish(struct peer *p);

void peer_close(struct peer *p);

/* The session ends with this NOTIFICATION; subcode 0: with any. data: hexadecimal, NULL: any. */
const char *want_notification(struct peer *p, uint8_t code, uint8_t subcode, const char *data);

/* The session lives, and everything that was said before has been dealt with. */
const char *barrier(struct peer *p);

#endif
