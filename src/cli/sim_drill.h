/*
 * sim_drill.h - `sim --drill`
 */
#ifndef DSF_CLI_SIM_DRILL_H
#define DSF_CLI_SIM_DRILL_H
#include <cjson/cJSON.h>
#include "cli/options.h"
#include "sim/sim.h"

/* "DRILL.json", or "random" with options: "random --seed 7 --duration 2ms --faults 10". CLI_OK or
 * CLI_FAILED (it did not hold) with the result and its text; else both are NULL and the error is
 * told. */
int cli_sim_drill(
	struct sim *s, const struct topo *t, const char *words, cJSON **result, char **text);

#endif
