/*
 * drill.h - a drill: faults at their instants, and what must hold meanwhile
 *
 * A drill file names faults of one lab: what breaks, when, for how long. A random drill draws them:
 * the same topology, seed, duration and number give the same list everywhere. Both are the same
 * table, which node/drill.h plays. No I/O here.
 *
 * Instants and durations are fabric time, from the moment the fabric was found steady. What a fault
 * takes to be noticed depends on the lab's reachability refresh; where that is longer than the lab
 * file says (live, at a small time dilation) the drill is played slower by the same factor.
 *
 * A target is a name (NODE:IF, NODE) or "any KIND", which the drill's seed draws among the links or
 * nodes of that kind, never one that another fault of the drill has at the same time.
 */
#ifndef DSF_TOPO_DRILL_H
#define DSF_TOPO_DRILL_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "topo/error.h"
#include "topo/model.h"

#define TOPO_DRILL_NAME_MAX   48
#define TOPO_DRILL_FAULTS_MAX 4096
#define TOPO_DRILL_FLAPS_MAX  1000
#define TOPO_DRILL_TIME_MAX   (3600ull * 1000000000ull)
#define TOPO_DRILL_TEXT_MAX   (1u << 24) /* bytes of a file */

enum topo_drill_kind {
	TOPO_DRILL_LINK_DOWN,
	TOPO_DRILL_LINK_FLAP,
	TOPO_DRILL_LINK_IMPAIR,
	TOPO_DRILL_LINK_DRAIN, /* of the named end's port */
	TOPO_DRILL_NODE_STOP,
	TOPO_DRILL_NODE_KILL,
	TOPO_DRILL_NODE_FREEZE,
	TOPO_DRILL_NODE_DRAIN,
};

/* What must hold; bits of topo_drill.hold. That the fabric is steady before, and again in bounded
 * time after, is always asked. */
enum topo_drill_invariant {
	TOPO_DRILL_STEADY_BEFORE,
	TOPO_DRILL_LINKS, /* after each change: carrier and liveness as asked, at both ends */
	TOPO_DRILL_REACHABILITY, /* after each change: who reaches whom over which links */
	TOPO_DRILL_DROPS,        /* nothing is dropped where no fault explains it */
	TOPO_DRILL_CELLS,        /* at rest: what went into untouched links and switches came out */
	TOPO_DRILL_DELIVERY,     /* every message once, in order, with the right bytes */
	TOPO_DRILL_QUEUES,       /* long after a change no fabric queue is full */
	TOPO_DRILL_STEADY_AFTER,
	TOPO_DRILL_INVARIANTS
};

struct topo_drill_impairment {
	uint32_t loss_ppm, corrupt_ppm, reorder_ppm;
	uint64_t delay_ns, jitter_ns;
	uint64_t rate_bps; /* 0: the link's own */
	bool silent;       /* nothing leaves the named end */
};

struct topo_drill_fault {
	enum topo_drill_kind kind;
	uint64_t at_ns, for_ns;
	uint32_t port; /* links: the named end, index in topo->ports; else TOPO_NONE */
	uint32_t node; /* nodes; else TOPO_NONE */
	uint32_t flaps;
	uint64_t period_ns; /* flap: down for its first half */
	struct topo_drill_impairment impairment;
};

struct topo_drill {
	char name[TOPO_DRILL_NAME_MAX + 1];
	uint64_t seed;
	/* Words of workload/pattern.h, which the driver looks up; kind NULL: no load. */
	const char *workload_kind, *workload_scope;
	uint64_t workload_bytes;         /* of a message */
	char *hosts;                     /* "h0,h1:gpu0", as for `run --hosts`; NULL: all */
	struct topo_drill_fault *faults; /* by at_ns, then as in the file */
	uint32_t faults_count;
	uint32_t hold;      /* 1 << enum topo_drill_invariant */
	uint64_t settle_ns; /* bound of convergence; 0: auto */
	uint64_t finish_ns; /* bound of the load's end after the last heal; 0: auto */
};

/* 0 and *out, which the caller frees by topo_drill_free; -DSF_E_BADFIELD with *err filled; or
 * -DSF_E_NOMEM with its text. */
int topo_drill_load(const char *text, size_t size, const char *file_name, const struct topo *t,
	struct topo_drill **out, struct topo_error *err);

struct topo_drill_random {
	uint64_t seed;
	uint64_t duration_ns; /* the last fault is healed by then */
	uint32_t faults_count;
};

/* Draws a drill: 0 and *out; -DSF_E_BADFIELD when the lab has no link that a drill may break or
 * the numbers are out of bounds; -DSF_E_NOMEM. */
int topo_drill_draw(
	const struct topo *t, const struct topo_drill_random *config, struct topo_drill **out);

void topo_drill_free(struct topo_drill *d);

/* "link down", "node freeze", ... */
const char *topo_drill_kind_name(enum topo_drill_kind kind);
const char *topo_drill_invariant_name(enum topo_drill_invariant invariant);

static inline bool topo_drill_kind_is_link(enum topo_drill_kind kind)
{
	return kind <= TOPO_DRILL_LINK_DRAIN;
}

/* Name of a fault's target: NODE:IF or NODE. text has room for TOPO_DRILL_TARGET_MAX. */
#define TOPO_DRILL_TARGET_MAX (TOPO_NODE_NAME_MAX + TOPO_PORT_NAME_MAX + 2)
char *topo_drill_target(const struct topo *t, const struct topo_drill_fault *f, char *text);

/* Whether another of the drill's faults has f's target (of a link: either end) while f lasts. Two
 * impairments of one link may overlap; everything else may not. */
bool topo_drill_collides(
	const struct topo *t, const struct topo_drill *d, const struct topo_drill_fault *f);

/* After the last heal. */
uint64_t topo_drill_end_ns(const struct topo_drill *d);

/* Sorts the faults by instant, keeping the order of equals. */
void topo_drill_sort(struct topo_drill *d);

#endif
