/*
 * voq.h - virtual output queues of an interface node, and the asking side of credits
 *
 * Theory. A packet waits at its ingress switch, in a queue of its own per (egress system port,
 * class), until the egress scheduler grants it credit; the fabric itself is never asked to hold
 * what it can't deliver. Requests state an absolute figure, the bytes this VOQ will have needed in
 * all (spent + waiting), and grants a running total, so a lost control cell costs delay only: the
 * next one repairs it, and a request that shows that we missed a grant is answered with it.
 *
 * Bytes are bytes on the egress Ethernet link (frame + 24), so credits are given at the rate at
 * which the port drains. Credits come in units of credit_bytes; what is left over when the queue
 * empties (at most two credits) serves the next packets without another loop, and ages out.
 *
 * Queues are dropped from the tail at voq_bytes each and buffer_bytes a switch, and marked (ECN)
 * by the time a packet has waited. A queue that waits for the watchdog time without a grant is
 * emptied.
 *
 * A VOQ is there from its first packet until it was empty and unused for idle_ns or twice that:
 * once in idle_ns all are looked through, which costs a packet nothing but a mark. Its next packet
 * makes a new one, with a new epoch.
 */
#ifndef DSF_FABRIC_VOQ_H
#define DSF_FABRIC_VOQ_H
#include "base/hash.h"
#include "base/heap.h"
#include "fabric/packet.h"

#define FABRIC_VOQS_MAX 65536u

#define FABRIC_VOQ_SPARE_CREDITS 2u /* DESIGN: keeps at most 2 unspent */

/* In credit loops (ours): how long unspent credit of an empty VOQ lives, and after what time a
 * request without answer is repeated. */
#define FABRIC_VOQ_AGE_LOOPS   16u
#define FABRIC_VOQ_RETRY_LOOPS 8u
/* How long VOQs and what belongs to them at the other end are kept unused (ours), and at least for
 * so many of the longest of their own timers. */
#define FABRIC_VOQ_IDLE_NS     (50 * NS_PER_MS)
#define FABRIC_VOQ_IDLE_TIMERS 8u

struct fabric_voq_key {
	uint32_t system_port;
	uint32_t class; /* enum fabric_class */
};

struct fabric_voq {
	struct fabric_voq_key key; /* first: dsf_hash */
	uint16_t destination;      /* switch of the system port */
	struct fabric_packet_queue queue;
	uint64_t packets, bytes;  /* waiting */
	uint64_t spent, granted;  /* bytes, running totals */
	uint64_t requested;       /* the total that the last request stated */
	uint32_t epoch;           /* of this VOQ's totals: the egress forgets those of another */
	uint32_t packet_sequence; /* of the next packet, from 0 in each epoch */
	bool reachable;           /* some live link reaches destination (always for our own) */
	bool request_wanted;      /* is in the request list */
	bool ready;               /* is in the ready list */
	bool used;                /* since VOQs were last looked through */
	dsf_instant granted_at;   /* last grant, or when the queue began to wait */
	struct dsf_heap_entry timer;
	struct fabric_voq *request_next, *ready_next;
	/* counters */
	uint64_t requested_total, granted_total; /* bytes asked and got, for show voq */
	uint64_t dropped, ecn_marked, sent_packets, sent_bytes, watchdog_dropped;
};

struct fabric_voq_config {
	uint32_t credit_bytes;
	uint64_t voq_bytes, buffer_bytes;
	uint64_t ecn_min_ns, watchdog_ns;
	uint64_t retry_ns, age_ns, idle_ns;
};

struct fabric_voqs {
	struct fabric_voq_config config;
	struct fabric_packets *packets;
	struct dsf_hash table;
	struct dsf_heap timers;
	struct fabric_voq *request_first, *request_last;
	struct fabric_voq *ready_first, *ready_last;     /* packets and credit, in turn */
	struct fabric_voq *blocked_first, *blocked_last; /* the same, but no link has room */
	uint64_t bytes;                                  /* all queues */
	dsf_instant sweep_at;                            /* DSF_NEVER: there are none */
	uint64_t dropped, marked, watchdog_dropped;
};

void fabric_voqs_init(struct fabric_voqs *s, const struct dsf_memory *memory,
	struct fabric_packets *packets, const struct fabric_voq_config *config);
void fabric_voqs_close(struct fabric_voqs *s);

/* The VOQ of a key, made on first use; NULL when there is no room for another. */
struct fabric_voq *fabric_voq_get(struct fabric_voqs *s, struct fabric_voq_key key,
	uint16_t destination, bool reachable, dsf_instant now);

/* Queues packet, whose size, class and ecn_capable are set; owns it from here on. 0, or
 * -DSF_E_FULL: dropped, counted and freed. */
int fabric_voq_push(
	struct fabric_voqs *s, struct fabric_voq *q, struct fabric_packet *packet, dsf_instant now);

/* A grant came: total is the running total, epoch must be ours. 0, -DSF_E_STALE, or -DSF_E_PEER:
 * more than was asked for, rounded up to a credit. */
int fabric_voq_grant(struct fabric_voqs *s, struct fabric_voq *q, uint32_t epoch, uint64_t total,
	dsf_instant now);

/* Destination became reachable or not: an unreachable VOQ asks for nothing, sends nothing
 * and has lost its credit. */
void fabric_voq_reachable(
	struct fabric_voqs *s, struct fabric_voq *q, bool reachable, dsf_instant now);

/* The next VOQ that wants to send a request, taken off the list; NULL: none. The caller sends
 * total = q->requested, of which q->bytes wait. */
struct fabric_voq *fabric_voqs_next_request(struct fabric_voqs *s, dsf_instant now);

/* The next VOQ that has a packet and credit, taken off the ready list; NULL: none. After
 * fabric_voq_pop, or when it could not send, the caller puts it back by fabric_voq_requeue. */
struct fabric_voq *fabric_voqs_next_ready(struct fabric_voqs *s);
void fabric_voq_requeue(struct fabric_voqs *s, struct fabric_voq *q);

/* No link had room for q: it waits until fabric_voqs_unblock. */
void fabric_voq_block(struct fabric_voqs *s, struct fabric_voq *q);
void fabric_voqs_unblock(struct fabric_voqs *s);

/* Takes the first packet and pays for it; the caller owns it. Marks it CE when it waited too long
 * (the caller sees *mark and writes the bits). NULL: no packet, no credit or not reachable. */
struct fabric_packet *fabric_voq_pop(
	struct fabric_voqs *s, struct fabric_voq *q, dsf_instant now, bool *mark);

static inline dsf_instant fabric_voqs_deadline(const struct fabric_voqs *s)
{
	return dsf_time_min(dsf_heap_at(&s->timers), s->sweep_at);
}

/* Watchdog, repeated requests, aging of credit, unused VOQs. Returns the packets that the watchdog
 * deleted. */
uint64_t fabric_voqs_expire(struct fabric_voqs *s, dsf_instant now);

#endif
