/*
 * skew.h - how evenly the links of each tier between switches are used
 *
 * The skew of a tier is the most that a link carried one way, divided by the mean over all its
 * links that are up, each way counted for itself: 1 is even. Bytes are those on the wire: of cell
 * links all cells', of Ethernet frames with what is around them. A zone's links and an edge PoD's
 * carry other traffic, so they are never taken together.
 */
#ifndef DSF_NODE_SKEW_H
#define DSF_NODE_SKEW_H
#include "base/memory.h"
#include "node/row.h"

struct node_skew_tier {
	enum topo_link_kind kind;
	bool pod;         /* of edge PoDs, whose switches are in no zone */
	const char *name; /* "pod fabric" */
	const char *key;  /* "skew_pod_fabric" */
};
#define NODE_SKEW_TIERS 5

/* Lower tier first. */
const struct node_skew_tier *node_skew_tier(uint32_t i);

/* What had left every port of the topology at one instant, and which had carrier. */
struct node_skew_meter {
	const struct topo *topo;
	const struct dsf_memory *memory;
	uint64_t *bytes;
	uint64_t *up; /* bitset */
};

/* 0, or -DSF_E_NOMEM; to be closed in any case. */
int node_skew_open(
	struct node_skew_meter *m, const struct topo *t, const struct dsf_memory *memory);
void node_skew_close(struct node_skew_meter *m);

/* Takes a row of a port; user: a meter. What no row is of carries nothing and is down. */
void node_skew_read(void *user, const struct node_row *row);

struct node_skew {
	uint64_t links, bytes_max, bytes_sum;
};

/* Between two readings, over links that were up at the second; up: towards the higher tier. */
struct node_skew node_skew_of(const struct node_skew_meter *before,
	const struct node_skew_meter *after, const struct node_skew_tier *tier, bool up);

/* In ten thousandths; links that carried nothing are even. */
uint64_t node_skew_value(const struct node_skew *s);

#endif
