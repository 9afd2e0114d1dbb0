/*
 * wire.h - messages and records of FSDB sessions
 *
 * The public sources describe what is published and when, not bytes (theirs is Thrift); this format
 * is our own. Numbers are big-endian. A stream carries messages back to back, each
 *
 *   size 2       of the whole message, these four bytes included
 *   version 1    FSDB_WIRE_VERSION
 *   type 1       enum fsdb_message_type
 *
 * and by type
 *
 *   HELLO        magic 4 ("FSDB"), id 4         first in either direction: who speaks
 *   SUBSCRIBE    -                              send me all you have, then what changes
 *   SYNC         revision 8                     all I have follows, in UPDATEs of this revision
 *   SYNCED       records 4                      that was all: so many
 *   UPDATE       revision 8, records            else: what changed; the last revision + 1
 *   STATE        subscribed 1                   whether my own subscription to you is connected
 *   HEARTBEAT    -
 *   GOODBYE      reason 1                       enum fsdb_goodbye
 *
 * A record is operation 1 (0 remove, 1 set), kind 1, system port 4; behind them, where it is set,
 *
 *   port         scope 1, up 1, rate 8 (bit/s)
 *   interface    scope 1, prefix length 1, MTU 2, MAC 6, address 16
 *   neighbor     state 1, MAC 6, address 16, since 8 (fabric time at which it was resolved, ns)
 *
 * and where it is removed only a neighbor's address. Whoever breaks this loses the stream; what a
 * record may say beyond its syntax is judged by table.h.
 */
#ifndef DSF_FSDB_WIRE_H
#define DSF_FSDB_WIRE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/address.h"
#include "base/cursor.h"

#define FSDB_PORT 5957u /* TCP; published (FBOSS fsdb flags) */

#define FSDB_WIRE_VERSION 1u
#define FSDB_WIRE_MAGIC   0x46534442u /* "FSDB" */
#define FSDB_HEADER_SIZE  4u
#define FSDB_MESSAGE_MAX  4096u /* ours: a hundred records; bounds what a session buffers */
#define FSDB_CONTROL_MAX  12u   /* the largest message without records */
#define FSDB_RECORD_MAX   37u   /* the largest record */

enum fsdb_message_type {
	FSDB_HELLO = 1,
	FSDB_SUBSCRIBE,
	FSDB_SYNC,
	FSDB_SYNCED,
	FSDB_UPDATE,
	FSDB_STATE,
	FSDB_HEARTBEAT,
	FSDB_GOODBYE,
};

enum fsdb_goodbye {
	FSDB_GOODBYE_RESTART, /* back within the hold time: keep what I said */
	FSDB_GOODBYE_EXIT,    /* for good: forget it at once */
};

enum fsdb_kind { FSDB_KIND_PORT = 1, FSDB_KIND_INTERFACE, FSDB_KIND_NEIGHBOR };
enum fsdb_scope { FSDB_SCOPE_GLOBAL, FSDB_SCOPE_LOCAL };
enum fsdb_neighbor_state { FSDB_INCOMPLETE, FSDB_REACHABLE, FSDB_STATIC };

/* Key: kind and system port, of a neighbor address too. */
struct fsdb_record {
	struct dsf_ip6 address; /* interface, neighbor */
	union {
		uint64_t rate_bps; /* port */
		uint64_t since_ns; /* neighbor */
	};
	uint32_t system_port;
	struct dsf_mac mac; /* interface, neighbor */
	uint16_t mtu;       /* interface */
	uint8_t kind;       /* enum fsdb_kind */
	uint8_t scope;      /* port, interface: enum fsdb_scope */
	uint8_t state;      /* port: 1 up, 0 down; neighbor: enum fsdb_neighbor_state */
	uint8_t prefix_length;
};

struct fsdb_message {
	enum fsdb_message_type type;
	uint32_t id;               /* HELLO */
	uint32_t count;            /* SYNCED */
	uint8_t value;             /* STATE: 0 or 1; GOODBYE: enum fsdb_goodbye */
	uint64_t revision;         /* SYNC, UPDATE */
	struct dsf_cursor records; /* UPDATE */
};

/* Size of the message at bytes, from its first two bytes. 0: fewer are there; -DSF_E_BADFIELD: no
 * message has that size. */
int fsdb_wire_size(const uint8_t *bytes, size_t size);

/* One whole message. 0, -DSF_E_VERSION, -DSF_E_TRUNCATED, or -DSF_E_BADFIELD (also: bytes left
 * over). Records are borrowed from bytes. */
int fsdb_wire_read(struct fsdb_message *m, const uint8_t *bytes, size_t size);

/* The next record; *set: is it set or removed. 1, 0 at the end, -DSF_E_TRUNCATED or
 * -DSF_E_BADFIELD. */
int fsdb_wire_read_record(struct dsf_cursor *records, struct fsdb_record *r, bool *set);

/* Writes a message; an UPDATE's without records: they are written behind it, and then its size by
 * fsdb_wire_finish. */
void fsdb_wire_write(struct dsf_writer *w, const struct fsdb_message *m);
void fsdb_wire_write_record(struct dsf_writer *w, const struct fsdb_record *r, bool set);
void fsdb_wire_finish(uint8_t *message, size_t size);

#endif
