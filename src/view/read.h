/*
 * read.h - rows back from their JSON, where one process judges what others say (rows.h)
 */
#ifndef DSF_VIEW_READ_H
#define DSF_VIEW_READ_H
#include <cjson/cJSON.h>
#include "base/bitset.h"
#include "node/row.h"

/* What a row that was read points to. */
struct view_read {
	struct node_row row;
	uint64_t output[DSF_BITSET_WORDS(TOPO_PORTS_MAX)];
	struct dsf_histogram fct;
};

/* Reads a row of a port, counters, reachability or workload query. 0, or -DSF_E_BADFIELD when it
 * isn't one of this lab's, or -DSF_E_UNSUPPORTED for other queries. */
int view_read_row(
	const struct topo *t, const cJSON *json, enum node_query query, struct view_read *read);

#endif
