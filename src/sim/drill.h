/*
 * drill.h - a drill in the simulator
 */
#ifndef DSF_SIM_DRILL_H
#define DSF_SIM_DRILL_H
#include "node/drill.h"
#include "sim/sim.h"

/* Plays the drill to its end on a simulation that has converged. load: its flows are those the
 * drill was made with; NULL: none. 0, or the first error of a command; then the drill is not done.
 */
int sim_drill_run(struct sim *s, const struct topo *t, struct node_drill *d,
	const struct workload_spec *load);

#endif
