/*
 * drill_keys.h - every key of a drill file, as keys.h has those of a topology file
 *
 * The JSON Schema (drills/drill.schema.json) lists the same keys; a test compares the two.
 */
#ifndef DSF_TOPO_DRILL_KEYS_H
#define DSF_TOPO_DRILL_KEYS_H
#include "topo/value.h"

enum topo_drill_key {
	TOPO_DRILL_KEY_NAME,
	TOPO_DRILL_KEY_SEED,
	TOPO_DRILL_KEY_WORKLOAD,
	TOPO_DRILL_KEY_FAULTS,
	TOPO_DRILL_KEY_HOLD,
	TOPO_DRILL_KEY_SETTLE,
	TOPO_DRILL_KEY_FINISH,
	TOPO_DRILL_KEY_COUNT
};

enum topo_drill_workload_key {
	TOPO_DRILL_WORKLOAD_KIND,
	TOPO_DRILL_WORKLOAD_SCOPE,
	TOPO_DRILL_WORKLOAD_SIZE,
	TOPO_DRILL_WORKLOAD_HOSTS,
	TOPO_DRILL_WORKLOAD_COUNT
};

enum topo_drill_fault_key {
	TOPO_DRILL_FAULT_AT,
	TOPO_DRILL_FAULT_FOR,
	TOPO_DRILL_FAULT_KIND,
	TOPO_DRILL_FAULT_TARGET,
	TOPO_DRILL_FAULT_COUNT_OF, /* flaps */
	TOPO_DRILL_FAULT_PERIOD,
	TOPO_DRILL_FAULT_LOSS, /* from here to SILENT: impairments */
	TOPO_DRILL_FAULT_CORRUPT,
	TOPO_DRILL_FAULT_REORDER,
	TOPO_DRILL_FAULT_DELAY,
	TOPO_DRILL_FAULT_JITTER,
	TOPO_DRILL_FAULT_RATE,
	TOPO_DRILL_FAULT_SILENT,
	TOPO_DRILL_FAULT_KEYS
};

extern const struct topo_keys topo_drill_keys_top, topo_drill_keys_workload, topo_drill_keys_fault;

/* All of them, ended by NULL. */
extern const struct topo_keys *const topo_drill_keys_all[];

/* Words of "hold", in the order of enum topo_drill_invariant without the two that always hold;
 * ended by NULL. */
extern const char *const topo_drill_hold_words[];

#endif
