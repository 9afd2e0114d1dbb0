/*
 * reach.h - who is reached over which link
 *
 * Theory. Each device tells each neighbour, per link, the set of interface nodes it reaches, in
 * reachability cells: at once when the set changes, and again every refresh period, so that a lost
 * cell costs one period. A link has one such cell in its queue at a time: what changes while it
 * waits is told by the next one. Cells carry the words of their own fabric's switches only. Every
 * train carries "I hear you"; a link is live only while we hear the peer and the peer hears us, so
 * a link that died in one direction is left by both ends. Carrier loss acts at once, silence after
 * three periods. Every cell carries a link sequence: gaps that don't close within a period are
 * losses, as corrupted cells are, and a link that loses more than a threshold (a gray link) is
 * isolated: we tell the peer that we don't hear it, and both stop. A link that isn't live is tested
 * with fill cells; it returns after eight clean periods.
 *
 * Valley-free: an interface node tells of itself only. An FDSW tells what it hears directly from
 * an interface node to the others and to the SDSWs; what an SDSW told it, to its interface nodes
 * only. An SDSW tells of a destination only to other clusters than the destination's own. So cells
 * climb once and descend once, and no set of failures makes a loop. Of what these rules let a
 * device tell, Input Balanced Mode (balance.h) withholds a part; a dead link is told nothing.
 *
 * Beside what it reaches a device tells what it withholds, or would reach if nobody withheld
 * anything: by that an interface node that is left without a path knows whether links failed or
 * balance cut it off. Cells go by the first set, while there is one link of it.
 *
 * Incremental: sets are bitsets over switch indexes (what a link reaches) and over port numbers (by
 * which links a destination is reached, on which it is told), kept both ways. A cell is compared
 * with the last one by words; a destination whose links changed is balanced anew, once a cell, in
 * one go with those that change alike; a port on which that changed something speaks. A link that
 * dies or comes changes groups, and so concerns all destinations, but only those on which its
 * groups' answer differs cost a message.
 *
 * Drain. A link (or all links of a switch) can be drained: it stays up and live, but isn't
 * *active*: for reachability and balance it counts as dead. The drained end says so in its cells;
 * the other end keeps that through a flap, until it is told that it is over. A drain takes back
 * nothing that is known, it only makes it count for less; so it may end at any moment.
 *
 * Last resort. What is under way to a destination must arrive when the last way to it is drained or
 * withheld. So there is a third set: on each live link, drained or not, a device tells all that the
 * valley-free rules let it tell there, that it can pass on over whatever live link, and that it
 * neither tells nor withholds; without drains that is nothing. Cells that no active link leads on
 * go over all live links whose peers have the destination in any of their sets. Sources stop
 * sending to it as if it were out of reach, so that those cells come to an end; control cells
 * still reach a drained switch.
 *
 * That a drain loses nothing: the three sets together follow the same rules as the first does
 * alone, whatever comes late, so cells still climb once and descend once. And a device takes a
 * destination out of all three only when no live link leads there any more: the last one has failed
 * or, seen from the destination upwards, the last peer has taken it out for the same reason. A
 * destination changes sets within one cell, and what came behind that cell is sent by the new ones.
 *
 * An interface node that has fewer usable links than its minimum drains itself until it has enough
 * to join again; it starts drained.
 */
#ifndef DSF_FABRIC_REACH_H
#define DSF_FABRIC_REACH_H
#include <stdbool.h>
#include "base/bitset.h"
#include "base/memory.h"
#include "base/time.h"
#include "base/trace.h"
#include "fabric/balance.h"
#include "fabric/cell.h"
#include "fabric/loss.h"
#include "fabric/reach_cell.h"

#define FABRIC_REACH_PORTS_MAX 2048u /* as topo/model.h */

#define FABRIC_REACH_SILENCE_PERIODS 3u /* DESIGN: silence is 3 refreshes */
#define FABRIC_REACH_CLEAN_PERIODS   8u /* published (SONiC): back after 8 clean polls */

/* Fill cells a period on a link that isn't live: 8 clean periods are then 1,000 cells, which a
 * link that loses 1 % passes once in 40,000 tries. */
#define FABRIC_REACH_FILL_CELLS 128u

struct fabric_reach_port {
	enum fabric_tier peer_tier; /* NONE: not a fabric port, or a loop */
	bool loop;
	uint16_t peer_switch;
	bool carrier, heard, hears_me, live, isolated;
	bool drained, peer_drained; /* asked of this port; the peer's word */
	bool usable;                /* live, drained at no end */
	bool active;                /* usable, and we ourselves aren't drained: counts as a way */
	bool fill_wanted;           /* at the next send: the link is under test */
	uint32_t clean_periods;
	dsf_instant heard_at;
	struct fabric_loss loss;
	uint64_t *told;     /* what the peer reaches, as it last said */
	uint64_t *withheld; /* what it would reach if nobody withheld anything; behind told */
	uint64_t *resort;   /* what it is a last resort for; NULL: it has never said so */
	uint32_t withheld_words, resort_words; /* of those, not 0 */
};

struct fabric_reach {
	const struct dsf_memory *memory;
	struct fabric_reach_port *ports;
	uint32_t ports_count, switches_count;
	uint32_t switch_words, port_words;
	uint32_t first_word, end_word; /* of what we may have to tell of: our fabric's switches */
	uint32_t cell_bytes;
	uint16_t self;
	enum fabric_tier tier;
	uint64_t refresh_ns;
	dsf_instant refresh_at;
	uint64_t *by_destination;   /* [switches_count][port_words]: active ports that reach it */
	uint64_t *direct;           /* heard from interface nodes themselves, over active links */
	uint64_t *any;              /* heard over any active link */
	uint64_t *unbalanced;       /* would be heard if nobody withheld anything */
	uint32_t *unbalanced_count; /* [switches_count]: over how many active links */
	uint64_t *resorts;          /* some live link leads there for last resort alone */
	uint32_t *resorts_count;    /* [switches_count]: so many */
	uint64_t *down;             /* [port_words]: ports to interface nodes */
	/* Fabric nodes: on which ports we tell and withhold a destination, and by port which
	 * destinations. */
	struct fabric_balance balance;
	uint64_t *told_ports, *withheld_ports; /* [switches_count][port_words] */
	uint64_t *tell, *withhold;             /* [ports_count][switch_words] */
	uint64_t *resort_ports, *resort; /* the same as last resort; NULL: there was no drain yet */
	uint64_t *resort_told; /* destinations that are told as last resort on some port */
	uint64_t *stale;       /* destinations to balance anew */
	uint64_t *cut; /* destinations that only balance keeps us from, as last told the trace */
	bool stale_any;
	uint64_t *changed; /* destinations whose ports changed since fabric_reach_next_changed */
	uint32_t changed_word; /* none below this word */
	bool changed_any;
	uint64_t *wants; /* [port_words]: ports that want a reachability cell */
	uint32_t wants_count;
	uint32_t live_count, usable_count, active_count;
	uint64_t *live, *active;     /* [port_words]; loops aside */
	bool asked_drained, starved; /* all links: asked; too few links */
	uint32_t min_links_to_join, min_links_to_remain;
	const struct dsf_trace *trace;
	uint32_t node;
};

struct fabric_reach_config {
	uint16_t self; /* our switch index */
	enum fabric_tier tier;
	uint32_t ports_count, switches_count;
	const uint64_t *expected; /* what a healthy fabric reaches; NULL: anything. Used by init */
	const struct fabric_peer *peers; /* [ports_count]; used by init */
	const uint32_t *clusters;        /* [switches_count]; NULL: no spine. Used by init */
	uint32_t cluster;                /* our own; a leaf's */
	bool balanced;                   /* Input Balanced Mode */
	struct dsf_draw draw;
	uint32_t cell_bytes; /* FABRIC_CELL_MIN at least */
	/* Interface nodes: fewer usable links than to_remain drain it, to_join bring it back. 0:
	 * none; to_join >= to_remain. */
	uint32_t min_links_to_join, min_links_to_remain;
	uint64_t refresh_ns;
	dsf_instant first_refresh_at;
	const struct dsf_trace *trace; /* or NULL */
	uint32_t node;                 /* whose events these are */
};

/* 0, or -DSF_E_NOMEM. */
int fabric_reach_init(struct fabric_reach *r, const struct dsf_memory *memory,
	const struct fabric_reach_config *config);
void fabric_reach_close(struct fabric_reach *r);

void fabric_reach_carrier(struct fabric_reach *r, uint32_t port, bool up, dsf_instant now);

/* Drains a port, or ends that; carrier and restarts of the peer don't change it. */
void fabric_reach_drain(struct fabric_reach *r, uint32_t port, bool drained, dsf_instant now);

/* Drains all ports at once, whatever is asked of each. */
void fabric_reach_drain_all(struct fabric_reach *r, bool drained, dsf_instant now);

/* All ports are drained: because it was asked, or for want of links. */
static inline bool fabric_reach_drained(const struct fabric_reach *r)
{
	return r->asked_drained || r->starved;
}

/* A valid train came in; heard_us is its "I hear you". */
void fabric_reach_heard(struct fabric_reach *r, uint32_t port, bool heard_us, dsf_instant now);

/* A cell with this link sequence came in. Returns how many are missing before it. */
static inline uint32_t fabric_reach_sequence(
	struct fabric_reach *r, uint32_t port, uint32_t sequence)
{
	return fabric_loss_sequence(&r->ports[port].loss, sequence);
}

/* Cells came in that were no good: as bad as lost. */
static inline void fabric_reach_bad(struct fabric_reach *r, uint32_t port, uint32_t cells)
{
	fabric_loss_bad(&r->ports[port].loss, cells);
}

/* A reachability cell's payload. 0, -DSF_E_TRUNCATED or -DSF_E_BADFIELD and nothing changed. */
int fabric_reach_input(struct fabric_reach *r, uint32_t port, const uint8_t *payload, size_t size,
	dsf_instant now);

static inline dsf_instant fabric_reach_deadline(const struct fabric_reach *r)
{
	return r->refresh_at;
}

void fabric_reach_expire(struct fabric_reach *r, dsf_instant now);

/* The next port that wants a reachability cell, from *port on, and isn't of the set busy (ports as
 * bits); false when there is none. Clears the want. */
bool fabric_reach_next_send(struct fabric_reach *r, const uint64_t *busy, uint32_t *port);

/* Payload of the reachability cell number part (from 0) for port; its size, 0: no such part. */
size_t fabric_reach_output(
	const struct fabric_reach *r, uint32_t port, uint32_t part, uint8_t *payload, size_t cap);

/* What we tell the peer at port that we reach (an interface node: itself, unless our end is
 * drained). words: switch_words. */
void fabric_reach_advertised(const struct fabric_reach *r, uint32_t port, uint64_t *set);

/* Active ports on which we tell destination, and on which only balance keeps us from it: bitsets of
 * port_words. Fabric nodes. */
static inline const uint64_t *fabric_reach_told(const struct fabric_reach *r, uint32_t destination)
{
	return r->told_ports + (size_t)destination * r->port_words;
}

static inline const uint64_t *fabric_reach_withheld(
	const struct fabric_reach *r, uint32_t destination)
{
	return r->withheld_ports + (size_t)destination * r->port_words;
}

/* Is destination out of reach though links lead to it, because they are withheld? */
static inline bool fabric_reach_cut(const struct fabric_reach *r, uint32_t destination)
{
	return dsf_bitset_has(r->unbalanced, destination) && !dsf_bitset_has(r->any, destination);
}

/* The next destination whose ports changed, cleared; false when there is none. */
bool fabric_reach_next_changed(struct fabric_reach *r, uint32_t *destination);

/* Active ports over which destination is reached: a bitset of port_words. */
static inline const uint64_t *fabric_reach_ports(const struct fabric_reach *r, uint32_t destination)
{
	return r->by_destination + (size_t)destination * r->port_words;
}

/* Live ports for cells to a destination that no active port reaches. Changes are told by
 * fabric_reach_next_changed. */
void fabric_reach_last_resort(const struct fabric_reach *r, uint32_t destination, uint64_t *ports);

/* Whether we tell the peer that we hear it. */
static inline bool fabric_reach_hears(const struct fabric_reach *r, uint32_t port)
{
	return r->ports[port].heard && !r->ports[port].isolated;
}

#endif
