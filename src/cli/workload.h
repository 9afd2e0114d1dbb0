/*
 * workload.h - a workload on the command line, the same for `run` and `sim --run`
 */
#ifndef DSF_CLI_WORKLOAD_H
#define DSF_CLI_WORKLOAD_H
#include <cjson/cJSON.h>
#include "cli/options.h"
#include "topo/model.h"
#include "workload/pattern.h"
#include "workload/spec.h"

/* Options of a workload, for the commands' tables (a macro: C tables can't be joined). */
#define CLI_WORKLOAD_OPTIONS                                                                       \
	{ "hosts", "LIST", false,                                                                  \
		"endpoints: HOST (all its GPUs) or HOST:gpuR, joined by commas" },                 \
		{ "scope", "SCOPE", false,                                                         \
			"any, cross-rdsw (default), cross-zone, cross-building, same-rail" },      \
		{ "size", "BYTES", false,                                                          \
			"of a message (K, M, G = 2^10 ...); udp: of a datagram" },                 \
		{ "iterations", "N", false, "messages a flow" },                                   \
		{ "rate", "RATE", false,                                                           \
			"udp: of a flow, on the wire (100G); default: the port's" },               \
		{ "duration", "TIME", false, "udp: how long to send (200us), in fabric time" },    \
		{ "plane", "N", false, "udp: use this plane alone" },                              \
		{ "dscp", "N", false, "udp: 50 rdma (default), 48 nc, else class default" },       \
	{                                                                                          \
		"seed", "N", false, "of pattern and data; default: the lab's"                      \
	}

struct cli_workload {
	struct workload_spec spec; /* start_at and stop_at relative to the start */
	struct workload_flow *flows;
};

/*
 * Makes a workload of its name and options (get returns an option's value or NULL). 0, or the error
 * is told and CLI_USAGE returned. The caller frees it by cli_workload_free.
 */
int cli_workload_make(struct cli_workload *w, const struct topo *t, const char *name,
	const char *(*get)(const void *user, const char *option), const void *user);
void cli_workload_free(struct cli_workload *w);

/* The same from one string: "write --size 64K --iterations 4". */
int cli_workload_parse(struct cli_workload *w, const struct topo *t, const char *text);

/* The spec as the hosts read it (uring/request.c), starting at start_ns. NULL: no memory. */
cJSON *cli_workload_json(const struct workload_spec *w, uint64_t start_ns);

#endif
