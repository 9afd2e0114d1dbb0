/*
 * balance.h - Input Balanced Mode: no more comes in than can go out
 *
 * Theory. A device that has lost links towards a destination d would be sent more cells for d than
 * it can pass on. So it takes back, on some of its links, what it told of d: senders then spray
 * less its way. Traffic to d comes in by *input groups*, each of which could fill the way out:
 *
 *   FDSW, d in another cluster   all its links to interface nodes, together
 *   FDSW, d below it             each other interface node's links; and its links to the spine
 *   SDSW                         the links of each cluster but d's
 *
 * and for each group, in link capacity,
 *
 *   allowed = min(nominal, max(out, floor(nominal * out / nominal_out)))
 *
 * where out counts the live links on which d is heard, nominal_out those on which a healthy fabric
 * would hear d, and nominal all links of the group. So a healthy fabric withholds nothing, whatever
 * its shape, and a group that is narrower than the way out isn't touched before it must be. Of a
 * group's live links we keep telling d on a *maximal* set whose capacity is at most allowed.
 *
 * Which ones is *memoryless*: a group has one priority order of its links for all destinations and
 * all times (base/draw.h). Kept is, from the end of the order to its start, each live link that
 * still fits. With equal rates the withheld links are then the first live ones of the order, so
 * that what is withheld for two destinations nests, a second failure only adds, and a link that
 * comes back moves nothing but what it makes room for. What a device withholds follows from the
 * links that live now, and since cells climb once and descend once (reach.h), a fabric has exactly
 * one fixed point and finds it in as many messages as it has tiers.
 *
 * Capacity is counted in units of the greatest rate that divides the rates of all links of a
 * device: with equal rates, in links.
 */
#ifndef DSF_FABRIC_BALANCE_H
#define DSF_FABRIC_BALANCE_H
#include <stdbool.h>
#include "base/bitset.h"
#include "base/draw.h"
#include "base/memory.h"

#define FABRIC_BALANCE_NONE UINT32_MAX

enum fabric_tier { FABRIC_TIER_NONE, FABRIC_TIER_INTERFACE, FABRIC_TIER_LEAF, FABRIC_TIER_SPINE };

/* What is at the other end of a port. */
struct fabric_peer {
	enum fabric_tier tier; /* NONE: not a fabric port, or a loop */
	bool loop;             /* a cable to ourselves: it is heard, but never used */
	uint16_t switch_index;
	uint32_t cluster;  /* of a leaf; else unused */
	uint32_t capacity; /* of the link, in units; at least 1 */
	uint32_t place;    /* in the device's forced order, or DSF_DRAW_UNPLACED */
	const uint64_t
		*tells; /* what it tells us in a healthy fabric; NULL: itself. Used by init */
};

enum fabric_balance_kind {
	FABRIC_BALANCE_DOWN,    /* a leaf's links to interface nodes */
	FABRIC_BALANCE_UP,      /* a leaf's links to the spine */
	FABRIC_BALANCE_NODE,    /* a leaf's links to one interface node */
	FABRIC_BALANCE_CLUSTER, /* a spine's links to one cluster */
};

struct fabric_balance_group {
	enum fabric_balance_kind kind;
	uint32_t key;          /* switch of NODE, number of CLUSTER */
	uint32_t first, count; /* its links: fabric_balance.order[first...] */
	uint64_t nominal, live;
	uint64_t kept_allowed; /* what `kept` was computed for */
	bool kept_known;
	uint64_t *members, *kept; /* bitsets over ports */
};

struct fabric_balance {
	const struct dsf_memory *memory;
	enum fabric_tier tier;
	bool enabled;
	uint32_t ports_count, port_words, switches_count;
	struct fabric_balance_group *groups;
	uint32_t groups_count, groups_cap;
	uint32_t *capacity;    /* of ports */
	uint32_t *order;       /* ports, by group */
	uint64_t *bits;        /* of all groups */
	uint64_t *live;        /* ports */
	uint32_t *behind;      /* destination -> group of the links that lead down to it, or NONE */
	uint64_t *out;         /* destination -> capacity of the live links on which it is heard */
	uint64_t *nominal_out; /* the same in a healthy fabric */
};

struct fabric_balance_config {
	enum fabric_tier tier;
	bool enabled; /* false: everything live is told */
	uint32_t ports_count, switches_count;
	const struct fabric_peer *peers; /* [ports_count] */
	const uint32_t *clusters;        /* [switches_count]; NULL: there is no spine */
	uint32_t cluster;                /* our own; a leaf's */
	struct dsf_draw draw;
};

/* 0, or -DSF_E_NOMEM. Everything is dead and unheard. */
int fabric_balance_init(struct fabric_balance *b, const struct dsf_memory *memory,
	const struct fabric_balance_config *config);
void fabric_balance_close(struct fabric_balance *b);

/* The formula. */
uint64_t fabric_balance_allowed(uint64_t nominal, uint64_t out, uint64_t nominal_out);

void fabric_balance_live(struct fabric_balance *b, uint32_t port, bool live);

/* Destination is heard on a live port from now on, or no more. */
void fabric_balance_heard(
	struct fabric_balance *b, uint32_t destination, uint32_t port, bool heard);

/*
 * On which live ports destination is told: told, when balanced; may, when it is reached and nobody
 * anywhere withholds anything. told is a subset of may. upwards: a leaf hears it from below, and
 * tells the spine.
 */
void fabric_balance_tell(struct fabric_balance *b, uint32_t destination, bool upwards,
	uint64_t *told, uint64_t *may);

/* Of the ports of a set those by which traffic to destination comes in, in whatever group. */
void fabric_balance_inputs(const struct fabric_balance *b, uint32_t destination, bool upwards,
	const uint64_t *ports, uint64_t *inputs);

/* The ports that lead down to destination; NULL: none does. */
static inline const uint64_t *fabric_balance_behind(
	const struct fabric_balance *b, uint32_t destination)
{
	uint32_t behind = b->behind[destination];

	return behind == FABRIC_BALANCE_NONE ? NULL : b->groups[behind].members;
}

/* Is destination told like no other, whatever happens? */
static inline bool fabric_balance_alone(const struct fabric_balance *b, uint32_t destination)
{
	return b->tier == FABRIC_TIER_LEAF && b->behind[destination] != FABRIC_BALANCE_NONE;
}

/* Are two destinations told alike: is fabric_balance_tell's answer the same, when both are heard
 * from below or neither? False: not known. */
static inline bool fabric_balance_alike(
	const struct fabric_balance *b, uint32_t one, uint32_t other)
{
	return b->behind[one] == b->behind[other] && b->out[one] == b->out[other] &&
	       b->nominal_out[one] == b->nominal_out[other];
}

struct fabric_balance_view {
	uint64_t input; /* capacity of the group's links on which destination is told */
	uint64_t output, allowed;
	bool balanced; /* input within allowed, and no withheld live link would fit */
};

/* Looks at group number i for destination, which is told on these ports. False: the group isn't
 * one of its input groups. */
bool fabric_balance_view(const struct fabric_balance *b, uint32_t i, uint32_t destination,
	bool upwards, const uint64_t *told, struct fabric_balance_view *view);

#endif
