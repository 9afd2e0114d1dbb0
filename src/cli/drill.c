#include "cli/drill.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/err.h"
#include "cli/lab.h"
#include "cli/log.h"
#include "cli/topology.h"
#include "cli/units.h"

#define FAULTS_DEFAULT   10u
#define DURATION_DEFAULT "2ms"

static const char *get_load(const void *user, const char *option)
{
	const struct topo_drill *d = user;
	static _Thread_local char size[24];

	snprintf(size, sizeof(size), "%llu", (unsigned long long)d->workload_bytes);
	if (strcmp(option, "scope") == 0)
		return d->workload_scope;
	if (strcmp(option, "hosts") == 0)
		return d->hosts;
	return strcmp(option, "size") == 0 ? size : NULL;
}

static int make_load(struct cli_drill *d, const struct topo *t)
{
	int code;

	if (d->drill->workload_kind == NULL)
		return CLI_OK;
	code = cli_workload_make(&d->load, t, d->drill->workload_kind, get_load, d->drill);
	if (code != CLI_OK)
		log_err("drill %s: its workload can't run in lab %s", d->drill->name, t->name);
	return code;
}

/* What a drill compares the lab with are cell fabrics. */
static bool can_play(const struct topo *t)
{
	if (t->fabric.mode == TOPO_FABRIC_DSF)
		return true;
	log_err("lab %s: drills are for cell fabrics, its fabric.mode is ecmp", t->name);
	return false;
}

int cli_drill_load(struct cli_drill *d, const struct topo *t, const char *file)
{
	struct topo_error error;
	char path[PATH_MAX], line[2048];
	char *text = NULL;
	size_t size = 0;
	int err;

	*d = (struct cli_drill){ .drill = NULL };
	if (!can_play(t))
		return CLI_USAGE;
	cli_find_data("drills", file, path, sizeof(path));
	err = lab_read_file(path, TOPO_DRILL_TEXT_MAX, &text, &size);
	if (err < 0) {
		log_err("%s: %s", path, log_text(err));
		return CLI_USAGE;
	}
	err = topo_drill_load(text, size, path, t, &d->drill, &error);
	free(text);
	if (err < 0) {
		log_err("%s", topo_error_line(&error, line, sizeof(line)));
		return err == -DSF_E_NOMEM ? CLI_FAILED : CLI_USAGE;
	}
	err = make_load(d, t);
	if (err != CLI_OK)
		cli_drill_free(d);
	return err;
}

int cli_drill_draw(struct cli_drill *d, const struct topo *t, const char *seed,
	const char *duration, const char *faults)
{
	struct topo_drill_random config = { .seed = t->seed };
	uint64_t count = FAULTS_DEFAULT;
	int err;

	*d = (struct cli_drill){ .drill = NULL };
	if (!can_play(t))
		return CLI_USAGE;
	if (seed != NULL && !units_count(seed, &config.seed)) {
		log_err("--seed: %s: want a number", seed);
		return CLI_USAGE;
	}
	if (faults != NULL &&
		(!units_count(faults, &count) || count == 0 || count > TOPO_DRILL_FAULTS_MAX)) {
		log_err("--faults: %s: want a number from 1 to %d", faults, TOPO_DRILL_FAULTS_MAX);
		return CLI_USAGE;
	}
	if (duration == NULL)
		duration = DURATION_DEFAULT;
	if (!units_fabric_duration(duration, t->time_dilation, &config.duration_ns) ||
		config.duration_ns < NS_PER_US || config.duration_ns > TOPO_DRILL_TIME_MAX) {
		log_err("--duration: %s: want a time like 2ms or 60sw, from 1us to 1h", duration);
		return CLI_USAGE;
	}
	config.faults_count = (uint32_t)count;
	err = topo_drill_draw(t, &config, &d->drill);
	if (err < 0) {
		log_err("lab %s: %s", t->name,
			err == -DSF_E_NOMEM ? dsf_err_text(err)
					    : "too few links and switches for so many faults");
		return CLI_FAILED;
	}
	err = make_load(d, t);
	if (err != CLI_OK)
		cli_drill_free(d);
	return err;
}

void cli_drill_free(struct cli_drill *d)
{
	cli_workload_free(&d->load);
	topo_drill_free(d->drill);
	d->drill = NULL;
}
