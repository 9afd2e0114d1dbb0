/*
 * plan_fail.h - reachability after failures, as rows, without a device
 */
#ifndef DSF_CLI_PLAN_FAIL_H
#define DSF_CLI_PLAN_FAIL_H
#include <stdbool.h>
#include <stdint.h>
#include <cjson/cJSON.h>
#include "topo/model.h"

/*
 * The rows of `show fabric reachability` at the fixed point with these links (a bitset) failed, by
 * node, then destination; not all: those only that differ from the healthy fabric's. Adds to failed
 * the links of interface nodes that are then below their minimum. NULL when memory is short.
 */
cJSON *plan_fail_rows(const struct topo *t, uint64_t *failed, uint64_t seed, bool all);

#endif
