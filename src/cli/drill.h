/*
 * drill.h - a drill on the command line, the same for `chaos` and `sim`
 */
#ifndef DSF_CLI_DRILL_H
#define DSF_CLI_DRILL_H
#include "cli/options.h"
#include "cli/workload.h"
#include "topo/drill.h"

struct cli_drill {
	struct topo_drill *drill;
	struct cli_workload load; /* without flows: no load */
};

/* The drill of a file. CLI_OK, or the error is told and its exit code returned. */
int cli_drill_load(struct cli_drill *d, const struct topo *t, const char *file);

/* A random one of seed, duration and number of faults; NULL where not given. */
int cli_drill_draw(struct cli_drill *d, const struct topo *t, const char *seed,
	const char *duration, const char *faults);

void cli_drill_free(struct cli_drill *d);

#endif
