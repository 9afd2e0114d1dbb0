/*
 * credit.h - the egress scheduler: who may send to an Ethernet port, and when
 *
 * Theory. The egress switch owns its ports' time. Each port hands it out in credits, at the rate
 * at which the port drains: classes first (nc strictly, then rdma and default by weight), then
 * source switches in turn, our own among them. Nothing is granted that wasn't asked for, rounded up
 * to a credit. A port that has something to grant ticks once a burst (about one train); one that
 * hasn't, doesn't. A source gets one grant cell a burst, with its running total.
 *
 * A port is granted a little more than its rate until a few trains wait at it, and less above that:
 * packets come out of reassembly in bursts, and time in which a port has nothing to send is lost.
 *
 * All remote grants of a switch together never exceed what its live fabric links can deliver; what
 * that leaves of a port's time its own switch may use. Cells that met a queue over its mark, and
 * packets that pile up at the port itself, lower the rate.
 *
 * A window bounds what may still come: what was granted and has not arrived, and what waits at the
 * port, together fit into the port's queue. Without it credit piles up at a source whose links are
 * down or busy, and packets behind one that lacks a cell, and all of it comes at once, faster than
 * the port can send. Sources with something under way share the window evenly, so that one that
 * can't send doesn't stop the others. A VOQ may keep a few credits (voq.h); so many of each source
 * don't count.
 *
 * What is lost is forgotten: reassembly tells of packets it gives up (of those of which nothing
 * came, by the size of others), a request says what its VOQ has spent, which after settle_ns has
 * arrived or never will, and a source that is silent for silent_ns is gone. Grants may be lost too:
 * a source that gets no more for the window's sake is told again what it has.
 *
 * A source that neither asked nor got anything for idle_ns or twice that is forgotten: its VOQ is
 * gone, or states what it needs when it asks again.
 */
#ifndef DSF_FABRIC_CREDIT_H
#define DSF_FABRIC_CREDIT_H
#include "base/hash.h"
#include "base/heap.h"
#include "fabric/cell.h"

#define FABRIC_CREDIT_SOURCES_MAX 131072u

/* Credits are granted in bursts of about a train (16 KB: 4 credits). */
#define FABRIC_CREDIT_BURST_BYTES 16384u

/* The window of a port isn't less than this many halves of what it sends in a credit loop, whatever
 * its queue: one loop to stay busy, half for what waits in the fabric on the way (ours). */
#define FABRIC_CREDIT_WINDOW_HALVES 3u

/* Of a port's queue this part is kept for what the window doesn't count: credit that VOQs keep, and
 * packets of the switch's own (ours). */
#define FABRIC_CREDIT_WINDOW_SPARE 8u

/* An unlimited port grants this much at a time, then looks at what else there is to do (ours). */
#define FABRIC_CREDIT_UNLIMITED_BYTES (1u << 20)

/* Rate factors are in 1/256: congestion takes a 16th off at most once a loop, down to an 8th; a
 * loop without adds 4 (ours: full rate is back after some 60 loops). */
#define FABRIC_CREDIT_FACTOR_ONE 256u
#define FABRIC_CREDIT_FACTOR_MIN 32u

struct fabric_credit_key {
	uint32_t system_port;
	uint16_t source; /* switch */
	uint16_t class;
};

struct fabric_credit_source {
	struct fabric_credit_key key; /* first: dsf_hash */
	uint32_t epoch;
	uint64_t requested, granted; /* running totals */
	uint64_t arrived;            /* of what was granted, or is known to be lost */
	uint64_t spent;              /* what the VOQ said at spent_at */
	dsf_instant spent_at, heard_at;
	bool listed;       /* waits in its class */
	bool grant_wanted; /* a grant cell is to be sent */
	bool used;         /* since sources were last looked through */
	struct fabric_credit_source *next, *grant_next;
};

struct fabric_credit_class {
	struct fabric_credit_source *first, *last; /* may hold some that want nothing any more */
	struct fabric_credit_source *local;        /* our own switch; NULL until it asked */
	uint32_t weight;
	uint32_t turn_left; /* credits left in this class's turn */
};

struct fabric_credit_port {
	uint64_t rate_bps; /* 0: unlimited */
	bool used, up;
	bool held; /* only remote sources wait, for the fabric */
	bool full; /* nothing fits into the window until something arrives, or silence tells */
	dsf_instant full_at;
	uint64_t window_bytes;
	uint64_t mark_bytes;      /* more than this waiting: less than its rate is granted */
	uint64_t under_way_bytes; /* of all sources */
	uint32_t active;          /* sources that want something or have something under way */
	uint32_t factor;
	bool congested; /* since the last change of factor */
	dsf_instant factor_at;
	dsf_instant next_at;    /* the port's time is given away until here */
	uint64_t backlog_bytes; /* what waited at the port when the node last said */
	dsf_instant backlog_at; /* when that was */
	struct dsf_heap_entry timer;
	struct fabric_credit_class classes[FABRIC_CLASSES];
	uint64_t granted_total;
};

struct fabric_credit_config {
	uint16_t self; /* our switch index */
	uint32_t first_system_port, ports_count;
	uint32_t credit_bytes;
	uint32_t weights[FABRIC_CLASSES]; /* in credits a turn; nc is strict, its weight unused */
	uint64_t loop_ns, idle_ns;
	uint64_t settle_ns; /* a packet that was sent before that has arrived or was given up */
	uint64_t silent_ns; /* a source with credit or packets would have been heard by then */
};

struct fabric_credits {
	struct fabric_credit_config config;
	struct fabric_credit_port *ports; /* by system port - first_system_port */
	struct dsf_hash sources;
	struct dsf_heap timers;
	struct fabric_credit_source *grant_first, *grant_last;
	bool fabric_live;    /* some fabric link is live */
	uint64_t fabric_bps; /* what those can deliver to us in packet bytes; 0: unlimited */
	dsf_instant fabric_next_at;
	dsf_instant sweep_at; /* DSF_NEVER: there are no sources */
};

struct fabric_credit_grant {
	uint32_t system_port;
	uint16_t source;
	uint8_t class;
	uint32_t epoch;
	uint64_t total;
};

/* 0, or -DSF_E_NOMEM. */
int fabric_credits_init(struct fabric_credits *s, const struct dsf_memory *memory,
	const struct fabric_credit_config *config);
void fabric_credits_close(struct fabric_credits *s);

/* A port's rate, the bytes that its queue takes, and whether it can send; a port that can't, grants
 * nothing. */
void fabric_credit_port(struct fabric_credits *s, uint32_t system_port, uint64_t rate_bps,
	uint32_t queue_bytes, bool up, dsf_instant now);

/* Whether any fabric link is live (none at first), and what all of them can deliver; 0: unlimited.
 * What was given away before counts no more: it was at another rate. */
void fabric_credit_fabric(struct fabric_credits *s, bool live, uint64_t rate_bps, dsf_instant now);

/* A request came: the VOQ will have needed total in all, of which waiting are still in its queue
 * and the rest is spent. 0, -DSF_E_UNKNOWN (no such port here), -DSF_E_BADFIELD (a total beyond
 * any), -DSF_E_PEER (more at once than a request can state), -DSF_E_STALE (an older epoch) or
 * -DSF_E_FULL. */
int fabric_credit_request(struct fabric_credits *s, const struct fabric_credit_key *key,
	uint32_t epoch, uint64_t total, uint32_t waiting, dsf_instant now);

/* A packet of a source came to its port, or was given up: bytes as credits count them. */
void fabric_credit_arrived(struct fabric_credits *s, const struct fabric_credit_key *key,
	uint32_t bytes, dsf_instant now);

/* A cell for system_port carried the congestion bit. */
void fabric_credit_congested(struct fabric_credits *s, uint32_t system_port);

/* Bytes that wait at the port after a packet was queued there. */
void fabric_credit_backlog(
	struct fabric_credits *s, uint32_t system_port, uint64_t bytes, dsf_instant now);

static inline dsf_instant fabric_credits_deadline(const struct fabric_credits *s)
{
	return dsf_time_min(dsf_heap_at(&s->timers), s->sweep_at);
}

void fabric_credits_expire(struct fabric_credits *s, dsf_instant now);

/* The next grant to be sent; false when there is none. */
bool fabric_credits_next_grant(struct fabric_credits *s, struct fabric_credit_grant *grant);

#endif
