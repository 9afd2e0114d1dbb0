/*
 * drill.h - plays a drill on a lab and judges what the lab makes of it
 *
 * Theory. A drill (topo/drill.h) is a list of faults; here it becomes a course of commands to a
 * driver and of looks at the lab:
 *
 *   before  look until the lab is as its file says, twice in a row with the same cell counts
 *   run     the load runs; faults begin and end at their instants; after each change look until
 *           the lab is as it now has to be, then go on looking now and then
 *   after   the last fault is healed: the lab must be as its file says again, in bounded time
 *   finish  the load ends: each message once, in order, with the right bytes
 *   rest    cells that went into untouched links and switches must have come out
 *
 * How the lab has to be follows from its wiring and from what is broken at the moment: which ends
 * have carrier, which links are live, who reaches whom over which links (Input Balanced Mode
 * included: topo/fixed.h). It is worked out from the table alone, and compared with what the
 * devices (and, live, the keeper of the asked state) say. A link that loses part of its cells may
 * be live or isolated, so there both ends only have to agree. Drops are right where a fault
 * explains them: at its link, at its node, in its plane, until the fabric has settled after its
 * end; anywhere else they break an invariant. Drains explain none.
 *
 * Events in, commands out, like every core; the simulator and the live command drive the same one.
 * The driver calls node_drill_output until false, does what it says, and comes back at
 * node_drill_deadline (node_drill_expire). On NODE_DRILL_OBSERVE it tells, in this order, the state
 * of every node, the port rows of all running nodes, then their other rows, then
 * node_drill_observed.
 *
 * Two machines' clocks don't meet here: a live look takes some milliseconds of wall time, so one
 * that doesn't fit counts only when no later one fits within the bound.
 */
#ifndef DSF_NODE_DRILL_H
#define DSF_NODE_DRILL_H
#include "base/memory.h"
#include "node/node.h"
#include "node/row.h"
#include "topo/drill.h"
#include "workload/spec.h"

enum node_drill_state { NODE_DRILL_RUNNING, NODE_DRILL_FROZEN, NODE_DRILL_DEAD };

struct node_drill_config {
	const struct topo *topo;           /* outlives the drill, as all that is borrowed here */
	const struct topo_drill *drill;    /* of this topology */
	const struct workload_flow *flows; /* the load's; NULL: none */
	uint32_t flows_count;
	uint64_t draw_seed;   /* of Input Balanced Mode, as the devices have it */
	uint64_t refresh_ns;  /* reachability refresh in force: the file's or, live, longer */
	uint64_t look_min_ns; /* least time between two looks */
	const struct dsf_memory *memory;
};

enum node_drill_do {
	NODE_DRILL_OBSERVE, /* see above; with flows: also workload rows */
	NODE_DRILL_START,   /* start the load until stop_at; answer by node_drill_started */
	NODE_DRILL_STOP,    /* stop the load */
	NODE_DRILL_LINK,    /* the link is to be like this from now on */
	NODE_DRILL_NODE,    /* the node is to be in this state */
	NODE_DRILL_DRAIN,   /* the switch is to be drained, or no longer */
	NODE_DRILL_TRUST,   /* from now on lateness counts, or (frozen and dead nodes) doesn't */
};

struct node_drill_output {
	enum node_drill_do what;
	uint32_t link, node;
	bool down;
	struct node_impairment impairment[2]; /* of ends a and b */
	bool drained[2];                      /* LINK: ends a and b; DRAIN: the first */
	enum node_drill_state state;
	bool polite;         /* node: asked to end, not killed */
	bool healthy;        /* as the lab file says: nothing is to heal */
	dsf_instant heal_at; /* else it is to be healthy by then, whatever becomes of the driver */
	uint64_t load_ns;    /* START: how long the load is to go on posting */
	bool flows;          /* OBSERVE: wants workload rows */
	bool trust;
};

/* What did not hold. Numbers, since a core writes no text: view/drill.h does. */
enum node_drill_breach_kind {
	NODE_DRILL_NOTHING,
	NODE_DRILL_NO_ANSWER,   /* node */
	NODE_DRILL_NODE_STATE,  /* node; want, got: enum node_drill_state */
	NODE_DRILL_ASKED,       /* port (end a): the keeper's asked state isn't the drill's */
	NODE_DRILL_CARRIER,     /* port; want, got: has carrier */
	NODE_DRILL_LIVE,        /* port; want, got: is live */
	NODE_DRILL_ACTIVE,      /* port; want, got: is active */
	NODE_DRILL_ENDS,        /* port, whose other end says the opposite: got is ours */
	NODE_DRILL_REACH,       /* port, other: want, got: is the destination reached over it */
	NODE_DRILL_DROP,        /* node, counter: got more than before and no fault explains it */
	NODE_DRILL_CELLS_LINK,  /* port: want cells went in at it, got came out at its peer */
	NODE_DRILL_CELLS_NODE,  /* node: want cells went in, got came out or were counted */
	NODE_DRILL_QUEUE,       /* port: its peer was told to stop, got times */
	NODE_DRILL_WRONG_BYTES, /* flow: got of them */
	NODE_DRILL_MESSAGES,    /* flow: want were completed, got arrived */
	NODE_DRILL_LOST,        /* flow: got messages reported failed, without a reason */
	NODE_DRILL_UNFINISHED,  /* flow: want were completed, got arrived, no end in time */
};

struct node_drill_breach {
	enum node_drill_breach_kind kind;
	dsf_instant at;          /* since the drill's start */
	uint32_t node, port;     /* port: index in topo->ports */
	uint32_t other;          /* destination node */
	uint32_t source, target; /* ranks */
	uint32_t counter;        /* enum node_drill_counter */
	uint64_t want, got;
};

enum node_drill_counter {
	NODE_DRILL_IMPAIRED,
	NODE_DRILL_CORRUPT,
	NODE_DRILL_LINK_DOWN,
	NODE_DRILL_EGRESS,
	NODE_DRILL_UNREACHABLE,
	NODE_DRILL_REASSEMBLY,
	NODE_DRILL_WATCHDOG,
	NODE_DRILL_LOST_CELLS,
	NODE_DRILL_FABRIC,
	NODE_DRILL_COUNTERS
};

enum node_drill_verdict { NODE_DRILL_HELD, NODE_DRILL_BROKEN, NODE_DRILL_UNKNOWN };

struct node_drill;

/* NULL: memory is short. */
struct node_drill *node_drill_new(const struct node_drill_config *config, dsf_instant now);
void node_drill_free(struct node_drill *d);

/* The next thing to do; false when there is nothing until node_drill_deadline. */
bool node_drill_output(struct node_drill *d, struct node_drill_output *out, dsf_instant now);
dsf_instant node_drill_deadline(const struct node_drill *d);
void node_drill_expire(struct node_drill *d, dsf_instant now);

/* The load starts at start_at. */
void node_drill_started(struct node_drill *d, dsf_instant start_at);

/* Parts of a look. Nodes that are running and give no port row have not answered. */
void node_drill_node(struct node_drill *d, uint32_t node, enum node_drill_state state);
/* What the keeper of the asked state has of a link; drivers without one don't call it. */
void node_drill_asked(struct node_drill *d, uint32_t link, bool down, bool impaired, bool drained);
void node_drill_row(struct node_drill *d, const struct node_row *row);
void node_drill_observed(struct node_drill *d, dsf_instant now);

/* Ends the drill early: heals at once, stops the load, waits for steadiness, judges no more. */
void node_drill_interrupt(struct node_drill *d, dsf_instant now);

bool node_drill_done(const struct node_drill *d);

/* The result, when done. */
struct node_drill_result {
	bool checked, held;
	struct node_drill_breach breach; /* the first, where it didn't hold */
};

void node_drill_result(const struct node_drill *d, enum topo_drill_invariant invariant,
	struct node_drill_result *result);
/* valid: what was seen is what the model says (fidelity). A breach that may be the machine's fault
 * is never called broken. */
enum node_drill_verdict node_drill_verdict(const struct node_drill *d, bool valid);
/* Instants at which the drill changed something. */
uint32_t node_drill_changes(const struct node_drill *d);
/* Those that were followed by a lab as it had to be, before the next one: how long it took. */
uint32_t node_drill_convergences(const struct node_drill *d);
void node_drill_convergence(const struct node_drill *d, uint64_t *p50_ns, uint64_t *max_ns);
uint64_t node_drill_settle_ns(const struct node_drill *d); /* the bound in force */
uint64_t node_drill_messages(const struct node_drill *d);  /* that were completed */
/* Faults' instants, stretched where the lab's refresh is longer than its file's. */
uint64_t node_drill_stretch(const struct node_drill *d, uint64_t ns);
bool node_drill_interrupted(const struct node_drill *d);

#endif
