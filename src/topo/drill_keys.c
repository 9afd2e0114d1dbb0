#include "topo/drill_keys.h"
#include "base/time.h"
#include "topo/drill.h"

#define SHARE_MAX 1000000u
#define DELAY_MAX NS_PER_S

/* Datagrams promise nothing, so they are no load for a drill. */
static const char *const workload_words[] = { "permutation", "write", "incast", NULL };
static const char *const scope_words[] = { "any", "cross-rdsw", "cross-zone", "cross-building",
	"same-rail", NULL };
/* In the order of enum topo_drill_kind. */
static const char *const kind_words[] = { "link down", "link flap", "link impair", "link drain",
	"node stop", "node kill", "node freeze", "node drain", NULL };
const char *const topo_drill_hold_words[] = { "links", "reachability", "drops", "cells", "delivery",
	"queues", NULL };

static const struct topo_key top_keys[TOPO_DRILL_KEY_COUNT] = {
	[TOPO_DRILL_KEY_NAME] = { "name", TOPO_VALUE_STRING, true, 0, 0, NULL },
	[TOPO_DRILL_KEY_SEED] = { "seed", TOPO_VALUE_UINT64, false, 0, UINT64_MAX, NULL },
	[TOPO_DRILL_KEY_WORKLOAD] = { "workload", TOPO_VALUE_OBJECT, false, 0, 0, NULL },
	[TOPO_DRILL_KEY_FAULTS] = { "faults", TOPO_VALUE_ARRAY, true, 1, TOPO_DRILL_FAULTS_MAX,
		NULL },
	[TOPO_DRILL_KEY_HOLD] = { "hold", TOPO_VALUE_ARRAY, false, 0, TOPO_DRILL_INVARIANTS, NULL },
	[TOPO_DRILL_KEY_SETTLE] = { "settle", TOPO_VALUE_TIME_AUTO, false, NS_PER_US,
		TOPO_DRILL_TIME_MAX, NULL },
	[TOPO_DRILL_KEY_FINISH] = { "finish", TOPO_VALUE_TIME_AUTO, false, NS_PER_US,
		TOPO_DRILL_TIME_MAX, NULL },
};

static const struct topo_key workload_keys[TOPO_DRILL_WORKLOAD_COUNT] = {
	[TOPO_DRILL_WORKLOAD_KIND] = { "kind", TOPO_VALUE_WORD, true, 0, 0, workload_words },
	[TOPO_DRILL_WORKLOAD_SCOPE] = { "scope", TOPO_VALUE_WORD, false, 0, 0, scope_words },
	[TOPO_DRILL_WORKLOAD_SIZE] = { "size", TOPO_VALUE_BYTES, false, 1, 1u << 30, NULL },
	[TOPO_DRILL_WORKLOAD_HOSTS] = { "hosts", TOPO_VALUE_STRING, false, 0, 0, NULL },
};

static const struct topo_key fault_keys[TOPO_DRILL_FAULT_KEYS] = {
	[TOPO_DRILL_FAULT_AT] = { "at", TOPO_VALUE_TIME, true, 0, TOPO_DRILL_TIME_MAX, NULL },
	[TOPO_DRILL_FAULT_FOR] = { "for", TOPO_VALUE_TIME, false, NS_PER_US, TOPO_DRILL_TIME_MAX,
		NULL },
	[TOPO_DRILL_FAULT_KIND] = { "kind", TOPO_VALUE_WORD, true, 0, 0, kind_words },
	[TOPO_DRILL_FAULT_TARGET] = { "target", TOPO_VALUE_STRING, true, 0, 0, NULL },
	[TOPO_DRILL_FAULT_COUNT_OF] = { "count", TOPO_VALUE_INT, false, 1, TOPO_DRILL_FLAPS_MAX,
		NULL },
	[TOPO_DRILL_FAULT_PERIOD] = { "period", TOPO_VALUE_TIME, false, 2, TOPO_DRILL_TIME_MAX,
		NULL },
	[TOPO_DRILL_FAULT_LOSS] = { "loss", TOPO_VALUE_SHARE, false, 0, SHARE_MAX, NULL },
	[TOPO_DRILL_FAULT_CORRUPT] = { "corrupt", TOPO_VALUE_SHARE, false, 0, SHARE_MAX, NULL },
	[TOPO_DRILL_FAULT_REORDER] = { "reorder", TOPO_VALUE_SHARE, false, 0, SHARE_MAX, NULL },
	[TOPO_DRILL_FAULT_DELAY] = { "delay", TOPO_VALUE_TIME, false, 0, DELAY_MAX, NULL },
	[TOPO_DRILL_FAULT_JITTER] = { "jitter", TOPO_VALUE_TIME, false, 0, DELAY_MAX, NULL },
	[TOPO_DRILL_FAULT_RATE] = { "rate", TOPO_VALUE_RATE, false, 1000000, 100000000000000u,
		NULL },
	[TOPO_DRILL_FAULT_SILENT] = { "silent", TOPO_VALUE_BOOL, false, 0, 1, NULL },
};

const struct topo_keys topo_drill_keys_top = { "top", top_keys, TOPO_DRILL_KEY_COUNT };
const struct topo_keys topo_drill_keys_workload = { "workload", workload_keys,
	TOPO_DRILL_WORKLOAD_COUNT };
const struct topo_keys topo_drill_keys_fault = { "fault", fault_keys, TOPO_DRILL_FAULT_KEYS };
const struct topo_keys *const topo_drill_keys_all[] = { &topo_drill_keys_top,
	&topo_drill_keys_workload, &topo_drill_keys_fault, NULL };
