/*
 * node_main.h - one node as a process
 *
 * The supervisor forks a process per node, moves it into its namespace and calls
 * uring_node_main; dsf-switch and dsf-host call it too, to run one node under a debugger.
 */
#ifndef DSF_URING_NODE_MAIN_H
#define DSF_URING_NODE_MAIN_H
#include <stdbool.h>
#include <stdint.h>
#include "topo/model.h"

/* A session costs 1 ms of CPU until it stands and a quarter of one in each second that it does
 * (heartbeats, each of them a packet with its credit and an answer). A lab of more has none: the
 * lab file tells of all neighbours instead. (Measured.) */
#define URING_SESSIONS_MAX 512u

static inline bool uring_runs_sessions(const struct topo *t)
{
	return topo_fsdb_sessions(t) <= URING_SESSIONS_MAX;
}

struct uring_node_config {
	const struct topo *topo; /* with time_dilation decided */
	uint32_t index;
	uint64_t epoch_ns; /* CLOCK_MONOTONIC at fabric time 0 */
	/* What is drained from the beginning: fabric ports by number (NULL: none), or all. */
	const bool *drained_ports;
	bool drained;
	bool sessions; /* FSDB's, as uring_runs_sessions says */
	/* The lab is starting. Until the request "started" its links have no delay and its host
	 * ports no rate, so that what switches and hosts have to tell each other first doesn't take
	 * dilated round trips. */
	bool starting;
	int control_fd; /* stream socket to the supervisor: JSON lines, see control.h */
};

/* Runs until "stop", SIGTERM or end of control_fd. Returns the exit code. Logs to stderr. */
int uring_node_main(const struct uring_node_config *config);

#endif
