/*
 * plan_fail.h - reachability after failures, as rows, without a device
 *
 * A fixed point is one destination's, rows go by node: so what all nodes of one fabric (a plane of
 * a building) come to is kept as bits until its nodes have had their turn. That is 50 MB at the
 * published size, of one building at a time; as objects the rows of a region are hundreds of times
 * that.
 */
#ifndef DSF_CLI_PLAN_FAIL_H
#define DSF_CLI_PLAN_FAIL_H
#include <stdbool.h>
#include <stdint.h>
#include <cjson/cJSON.h>
#include "topo/model.h"

/* Takes the rows of one node: an array, its own. False: that failed, which it has told. */
typedef bool (*plan_fail_fn)(void *user, cJSON *rows);

enum plan_fail_end { PLAN_FAIL_DONE, PLAN_FAIL_NOMEM, PLAN_FAIL_REFUSED /* by fn */ };

/*
 * The rows of `show fabric reachability` at the fixed point with these links (a bitset) failed, by
 * node, then destination; not all: those only that differ from the healthy fabric's. Adds to failed
 * the links of interface nodes that are then below their minimum.
 */
enum plan_fail_end plan_fail_rows(const struct topo *t, uint64_t *failed, uint64_t seed, bool all,
	plan_fail_fn fn, void *user);

#endif
