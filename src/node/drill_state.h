/*
 * drill_state.h - what drill.c (the course), drill_fault.c and drill_look.c share
 */
#ifndef DSF_NODE_DRILL_STATE_H
#define DSF_NODE_DRILL_STATE_H
#include "base/bitset.h"
#include "base/histogram.h"
#include "node/drill.h"
#include "topo/fixed.h"

enum drill_phase { DRILL_BEFORE, DRILL_STARTING, DRILL_RUN, DRILL_FINISH, DRILL_REST, DRILL_DONE };

enum drill_live { DRILL_LIVE_NO, DRILL_LIVE_YES, DRILL_LIVE_ANY };

/* Why drops may happen. */
enum drill_cause { DRILL_CAUSE_CARRIER, DRILL_CAUSE_LOSS, DRILL_CAUSE_CORRUPT, DRILL_CAUSES };

struct drill_link {
	bool down;                            /* wanted */
	struct node_impairment impairment[2]; /* wanted, ends a and b */
	bool drained[2];                      /* wanted */
	bool dirty;                           /* not told yet */
	bool touched;                         /* at any time, itself or an end's node */
	bool asked_known, asked_down, asked_impaired, asked_drained;
	enum drill_live want; /* as things are now */
	bool drained_now;     /* at an end, by itself or with its node */
	bool live;            /* for reachability: want, or what both ends say; not drained */
};

struct drill_port {
	bool seen, carrier, live, active;
	uint64_t cells_tx, cells_rx;
	uint64_t base_tx, base_rx; /* when the drill began */
	uint64_t stops;
};

struct drill_node {
	enum node_drill_state want, is;
	bool polite, dirty;
	bool drained, drain_dirty; /* wanted; not told yet */
	bool touched;              /* itself, or a link of it */
	bool lost_state;           /* was dead at some time */
	bool port_seen;
	dsf_instant looked_at; /* last answer: what it counted since may be older than a look */
	uint32_t reach_rows;
	bool counted;
	uint64_t counters[NODE_DRILL_COUNTERS];
	uint64_t base_unreachable;
	dsf_instant cause_until[DRILL_CAUSES]; /* epoch: never had it */
	uint32_t cause[DRILL_CAUSES];          /* faults that are one now */
	bool caused[DRILL_CAUSES];             /* had it: cause_until says until when */
};

struct drill_plane {
	uint32_t active; /* faults */
	bool had;
	dsf_instant until;
	bool cut, was_cut; /* some of its interface nodes don't reach each other */
	dsf_instant cut_until;
};

struct drill_flow {
	bool exempt;   /* an end lost its state */
	bool isolated; /* had no way for some time */
	bool sender_done;
	uint64_t completed, failed, arrived, wrong;
};

struct drill_action {
	uint64_t at_ns;
	uint32_t fault;
	bool on;   /* the fault begins (flap: goes down again), or ends (comes up) */
	bool last; /* of its fault */
};

struct node_drill {
	struct node_drill_config config;
	enum drill_phase phase;
	bool interrupted;
	struct drill_link *links;
	struct drill_port *ports;
	struct drill_node *nodes;
	struct drill_plane planes[TOPO_PLANES_MAX];
	struct drill_flow *flows;
	bool *active;                 /* faults */
	struct drill_action *actions; /* by instant */
	uint32_t actions_count, action_next;
	/* What is to be heard over the links that are live, by the planner: a bitset over switch
	 * indexes for each port. */
	uint64_t *heard;
	uint32_t switch_words;
	struct topo_fixed *fixed;
	uint64_t *failed; /* links, for it */
	/* Nodes below their minimum links: at the last look; by what is worked out. */
	bool *starved, *starves;
	bool reach_known; /* in this look */

	bool want_observe, want_start, want_stop, want_trust, trust;
	dsf_instant start_at, look_at;
	uint64_t before_ns, settle_ns, finish_ns, end_ns;

	/* Convergence. */
	bool settled, measured; /* measured: a change since which nothing else happened */
	dsf_instant changed_at, settled_at, last_look_at;
	uint64_t *samples;
	uint32_t samples_count, changes;

	/* This look. */
	struct node_drill_breach misfit[TOPO_DRILL_INVARIANTS]; /* first of each */
	bool cells_moved;
	uint32_t quiet_looks, looks;
	bool cells_checked;

	struct node_drill_result results[TOPO_DRILL_INVARIANTS];
};

/* drill_fault.c */
/* Losses that the lab file itself has. */
void node_drill_fault_own_losses(struct node_drill *d);
void node_drill_fault_set(struct node_drill *d, uint32_t fault, bool on, dsf_instant now);
/* When what is broken at a link or a node (the other is TOPO_NONE) is healed at the latest. */
dsf_instant node_drill_fault_heal_at(const struct node_drill *d, uint32_t link, uint32_t node);

/* drill_look.c */
void node_drill_look_begin(struct node_drill *d);
/* Works out how links have to be. */
void node_drill_look_expect(struct node_drill *d);
/* Flows and planes that have no way as things are. */
void node_drill_look_isolation(struct node_drill *d, dsf_instant now);
/* After the last row: fills d->misfit. True: the lab is as it has to be. */
bool node_drill_look_end(struct node_drill *d, dsf_instant now);
void node_drill_look_base(struct node_drill *d);
bool node_drill_look_cells(struct node_drill *d, struct node_drill_breach *breach);
/* All flows ended as they should; else *breach says which did not. */
bool node_drill_look_flows(struct node_drill *d, bool over, struct node_drill_breach *breach);
void node_drill_breach_set(struct node_drill *d, enum topo_drill_invariant invariant,
	const struct node_drill_breach *breach, dsf_instant now);

#endif
