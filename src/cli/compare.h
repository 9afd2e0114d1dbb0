/*
 * compare.h - one workload on one fabric with one transport, in the simulator
 *
 * What comparing needs beside the workload's report: how evenly the links of each tier between
 * switches were used. The skew of a tier is the most that a link carried one way, divided by the
 * mean over all its links that are up, each way counted for itself: 1 is even.
 */
#ifndef DSF_CLI_COMPARE_H
#define DSF_CLI_COMPARE_H
#include <cjson/cJSON.h>
#include "topo/model.h"

struct compare_run {
	const struct topo *topo;
	const char *workload;   /* as `run` has it: "permutation --size 1M" */
	const uint64_t *failed; /* links that are down, a bitset */
	uint64_t seed;
};

/* Runs it on a lab of its own that has converged. CLI_OK and *row, an object that the caller
 * deletes: fabric, transport, workload, figures of the report, "links": a row a tier and
 * direction, and the skew of each tier. Else the error is told and the exit code returned. */
int compare_run(const struct compare_run *run, cJSON **row);

#endif
