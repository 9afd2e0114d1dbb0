/*
 * lab_limits.h - does this machine let a lab of this size be made?
 *
 * Asked before anything is made, so that a limit is named instead of met half-way. Limits of this
 * process are raised as far as they go; those of the machine are only looked at.
 */
#ifndef DSF_CLI_LAB_LIMITS_H
#define DSF_CLI_LAB_LIMITS_H
#include <stddef.h>
#include <stdint.h>
#include "topo/model.h"

/* What a lab needs of everything that has a limit. */
struct lab_needs {
	uint64_t descriptors; /* of the supervisor, the most of all processes */
	uint64_t processes;
	uint64_t namespaces; /* and mounts */
	uint64_t neighbors;  /* entries of the neighbour table that aren't permanent */
	uint64_t memory_bytes;
};

void lab_needs(const struct topo *t, struct lab_needs *needs);

enum lab_limit {
	LAB_LIMIT_DESCRIPTORS,
	LAB_LIMIT_CGROUP_PIDS,
	LAB_LIMIT_THREADS,
	LAB_LIMIT_PROCESSES,
	LAB_LIMIT_NAMESPACES,
	LAB_LIMIT_MOUNTS,
	LAB_LIMIT_NEIGHBORS,
	LAB_LIMIT_MEMORY,
	LAB_LIMIT_COUNT
};

/* What is free of a limit (UINT64_MAX: no limit, or unknown), its name and how to raise it into
 * texts of size each. */
uint64_t lab_limit_free(enum lab_limit limit, char *name, char *mend, size_t size);

/* How much of it the needs are. */
uint64_t lab_limit_need(enum lab_limit limit, const struct lab_needs *needs);

/* CLI_OK, or CLI_UNABLE with the first limit that is too low told. */
int lab_limits_check(const struct topo *t);

#endif
