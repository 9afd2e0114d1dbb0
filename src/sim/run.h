/*
 * run.h - workloads in the simulator
 */
#ifndef DSF_SIM_RUN_H
#define DSF_SIM_RUN_H
#include "node/report.h"
#include "sim/sim.h"

/* Runs until every device is ready, for at most limit_ns of fabric time. True: ready. */
bool sim_converge(struct sim *s, uint64_t limit_ns);

/* Runs long enough for news of what has just failed to cross the fabric, which needn't be whole
 * again: four refreshes of reachability, or in a routed fabric some decisions of BGP. */
void sim_settle(struct sim *s, const struct topo *t);

/*
 * Runs a workload whose start_at and stop_at count from its start, until both halves of every flow
 * are done or limit_ns have passed, and fills *r (initialised with the same spec; finished here).
 * *drops: packets that the network dropped meanwhile. 0, -DSF_E_* from a host, or -ENOMEM.
 */
int sim_run_workload(struct sim *s, const struct topo *t, const struct workload_spec *spec,
	uint64_t limit_ns, struct node_report *r, uint64_t *drops);

#endif
