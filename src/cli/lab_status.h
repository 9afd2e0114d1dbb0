/*
 * lab_status.h - the object of `up` and `status` for people
 */
#ifndef DSF_CLI_LAB_STATUS_H
#define DSF_CLI_LAB_STATUS_H
#include <stdbool.h>
#include <cjson/cJSON.h>
#include "topo/model.h"

struct lab_status_link {
	enum { LAB_LINK_DOWN, LAB_LINK_UP, LAB_LINK_DRAINED } state;
	const char *why; /* static; NULL: nothing to add */
};

/* The array "links"; links (NULL: none is up) has an entry per link. */
cJSON *lab_status_links(const struct topo *t, const struct lab_status_link *links);

/* Ends of sessions at our switches: both of one between two of them. */
struct lab_sessions {
	struct lab_sessions_count {
		uint64_t established, expected;
	} fsdb, bgp;
};

/* Adds what a node's answer to the "fidelity" request says of its sessions. */
void lab_status_add_sessions(struct lab_sessions *sessions, const char *text, size_t size);

/* The object "sessions". */
cJSON *lab_status_sessions(const struct lab_sessions *sessions);

/* Tables on stdout. CLI_OK or CLI_FAILED (stdout). */
int lab_status_print(const cJSON *status);

/* One line: "lab mini: ready, 16 nodes, 32 links, time dilation 1000". */
int lab_status_print_line(const cJSON *status, double seconds);

/* What wasn't ready in time, on stderr. */
void lab_status_tell_missing(const cJSON *missing);

/* The text of a string member, "" where it isn't one. */
const char *lab_status_text(const cJSON *object, const char *key);

#endif
