/*
 * sim.h - driver 1: a whole lab in one process, in virtual time
 *
 * Theory. The simulator owns what lies between devices: links with their delay, and time. It holds
 * every device of the lab, takes the earliest event (a frame that arrives, a deadline, an action of
 * the caller), hands it to its device with the instant at which it is due, and turns what the
 * device puts out into new events. Frames are not copied: the bytes stay in the sender's buffer
 * until they have been delivered. At the host port of an interface node stands stream.h for the
 * kernel and carries the node's streams. Nothing depends on addresses or on the host's clock, so
 * the same topology, seed and actions give the same run to the last event; sim_hash shows it.
 */
#ifndef DSF_SIM_SIM_H
#define DSF_SIM_SIM_H
#include "node/node.h"
#include "node/row.h"

/* A session costs 0.4 ms of CPU and 40 KB to set up. A zone of the published scale has 8,128 a
 * plane, an L2 zone 130,816: minutes, and nothing that a smaller lab doesn't show. (Measured.) */
#define SIM_SESSIONS_MAX 4096u

struct sim;

struct sim_config {
	const struct topo *topo; /* outlives the simulation */
	uint64_t seed;
	const struct dsf_trace *trace; /* NULL: nobody listens */
	/* Timers of control protocols are divided by it; 0: 1, protocol time is fabric time. */
	uint32_t control_dilation;
	/* Where the lab has more FSDB sessions than that, none is run: the lab file tells of all
	 * neighbours instead. 0: none; SIM_SESSIONS_MAX: what the commands take. */
	uint32_t sessions_max;
};

struct sim_stats {
	uint64_t events;
	uint64_t frames;     /* delivered */
	uint64_t frames_cut; /* lost with the link they were on */
	uint64_t cells_cut;
};

/* All devices, all links up at instant 0. NULL when memory is short or a role has no core. */
struct sim *sim_new(const struct sim_config *config);
void sim_free(struct sim *s);

dsf_instant sim_now(const struct sim *s);
uint64_t sim_seed(const struct sim *s);

/* Runs every event that is due at or before until; now is until afterwards. 0 or -ENOMEM. */
int sim_run_until(struct sim *s, dsf_instant until);

/* Runs while go_on says so (asked once a microsecond of fabric time, or when something happens if
 * that is later), until at most. True when go_on ended it. */
bool sim_run_while(
	struct sim *s, bool (*go_on)(void *user, struct sim *s), void *user, dsf_instant until);

/* True while every device says that it is ready; a dead one isn't. */
bool sim_ready(const struct sim *s);

/* NULL: it is dead. */
struct node *sim_node(struct sim *s, uint32_t index);

/* Takes a link (topo->links index) down or up, now: both ends see the carrier, what is on it is
 * lost. */
void sim_link_set(struct sim *s, uint32_t link, bool up);

/* A device dies: its links lose carrier, what it held and what is on its links is lost, its state
 * is gone. Nothing when it is dead already. */
void sim_node_stop(struct sim *s, uint32_t node);

/* A dead device comes back empty, with carrier on every link that is up at both ends. 0, or
 * -ENOMEM: it stays dead. */
int sim_node_start(struct sim *s, uint32_t node);

/* A device stands still: its links keep carrier, what is sent to it waits, its deadlines pass.
 * Thawed it finds all of it at once. Nothing for one that is dead. */
void sim_node_freeze(struct sim *s, uint32_t node, bool frozen);
bool sim_node_frozen(const struct sim *s, uint32_t node);

/* Stop and start at one instant. */
int sim_node_restart(struct sim *s, uint32_t node);

/* -DSF_E_STATE: the node is dead or frozen. */
int sim_command(struct sim *s, uint32_t node, const struct node_command *command);

/* Rows of one node, or of all in order of nodes (TOPO_NONE); dead and frozen ones give none. */
void sim_view(const struct sim *s, uint32_t node, enum node_query query, uint32_t filter,
	node_row_fn row_fn, void *user);

/* A hash over every frame that was delivered: who, where, when, how long. */
uint64_t sim_hash(const struct sim *s);
struct sim_stats sim_stats(const struct sim *s);

#endif
