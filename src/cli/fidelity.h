/*
 * fidelity.h - is what a live lab shows what the model says?
 *
 * Every node process keeps a histogram of how late it handled things, in fabric time, and counts
 * what the emulator itself lost. Merged over a lab they give a verdict: valid when nothing was lost
 * that the model did not lose, and the 99th percentile of lateness is within the slack that the
 * model has anyway: one quantum, or a tenth of the base round-trip time. If not, more dilation
 * helps: lateness is a matter of wall time, so in fabric time it shrinks as the dilation grows.
 */
#ifndef DSF_CLI_FIDELITY_H
#define DSF_CLI_FIDELITY_H
#include <stdbool.h>
#include <stddef.h>
#include <cjson/cJSON.h>
#include "base/histogram.h"
#include "topo/model.h"

#define FIDELITY_QUANTUM_WALL_NS 250000ull /* the least quantum of a live lab */

struct fidelity {
	struct dsf_histogram late; /* fabric ns */
	uint64_t emulator_drops;
};

/* Adds a node's answer to the "fidelity" request. False: it isn't one. */
bool fidelity_add(struct fidelity *f, const char *text, size_t size);

/* Fabric nanoseconds in which a port sends one train, at least the live quantum. */
uint64_t fidelity_quantum_ns(const struct topo *t);

/* {"valid","late_p99_ns","allowed_p99_ns","quantum_ns","emulator_drops","suggested_time_dilation"}
 * (the last is null while valid); NULL when memory is short. f NULL: nobody could say, which isn't
 * valid, and what it would say is null. */
cJSON *fidelity_json(const struct fidelity *f, const struct topo *t);

#endif
