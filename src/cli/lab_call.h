/*
 * lab_call.h - one request to a lab, for commands
 *
 * Errors are told on stderr; what comes back is an exit code.
 */
#ifndef DSF_CLI_LAB_CALL_H
#define DSF_CLI_LAB_CALL_H
#include <stddef.h>
#include <stdint.h>
#include "cli/lab.h"
#include "cli/options.h"

#define LAB_CALL_MS 60000 /* longest that any request takes */

/* Which lab the command means: wanted or o->lab or the only one. CLI_OK and its name. */
int lab_call_choose(
	const struct cli_options *o, const char *wanted, char lab[TOPO_LAB_NAME_MAX + 1]);

/* CLI_OK; CLI_UNABLE with the reason told when we aren't root. */
int lab_call_root(const char *what);

/* Connects. CLI_OK; the client is closed by lab_client_close. */
int lab_call_open(struct lab_client *c, const char *lab);

/* Sends a request (JSON, one line, without "id") and waits for its answer. CLI_OK: *result is the
 * JSON text of the answer's result, zero-terminated and valid until the client's next use; for
 * "nodes" requests *failed (may be NULL) is the JSON array of nodes that gave no answer. */
int lab_call(struct lab_client *c, const char *request, const char **result, const char **failed);

/* Both, for a command that only wants something done. */
int lab_call_once(const char *lab, const char *request);

/* An option that says how long something is asked for, as members of a request: "", or
 * ",\"KEY\":N" and ",\"wall\":true" for wall time. CLI_OK, or CLI_USAGE and told. */
int lab_call_term(const struct cli_options *options, const char *option, const char *key,
	char *text, size_t size);

/* One run or drill at a time: its workload, its counters and its fidelity are the whole lab's. The
 * lock is on the lab's own file and ends with this process. False: told. */
bool lab_call_lock(const char *what, const char *lab);

#endif
