/*
 * rows.h - rows of node state as JSON, and the theory of src/view
 *
 * A node shows its state as typed rows (node/row.h). Here they become the JSON objects of
 * `dsfemu show ... --json`, the same in both drivers: the simulator appends rows of its nodes
 * straight away, a live node does so in its own process and sends the array to the supervisor.
 *
 *   json    numbers without loss, small helpers
 *   rows    rows -> array of objects                        (this file)
 *   table   array of objects -> aligned text
 *   show    the `show` commands: which rows they need, what they make of them
 *   report  a workload's report -> the object of `run`
 *
 * Human text is always made from the JSON, so the two can't disagree.
 */
#ifndef DSF_VIEW_ROWS_H
#define DSF_VIEW_ROWS_H
#include <cjson/cJSON.h>
#include "node/row.h"

/* What the driver counts beside the node; goes into the counters row. */
struct view_driver_counts {
	uint64_t nic_drops; /* tbf qdisc towards hosts: a modelled loss */
	uint64_t impaired_drops,
		corrupt_drops;   /* on the way in from hosts: beside the node's own */
	uint64_t emulator_drops; /* the emulator's own: never part of the model */
};

struct view_rows {
	const struct topo *topo;
	struct view_driver_counts driver;
	cJSON *array;
	bool failed; /* memory was short */
};

/* driver NULL: all zero (the simulator). May be called with nodes one after the other. */
void view_rows_begin(
	struct view_rows *v, const struct topo *topo, const struct view_driver_counts *driver);

/* A node_row_fn: user is the struct view_rows. */
void view_rows_append(void *user, const struct node_row *row);

/* What an impairment has other than base, silence left out: an object, the caller's. NULL when
 * memory was short. */
cJSON *view_impairment(const struct node_impairment *i, const struct node_impairment *base);

/* The array, which the caller owns; NULL when memory was short. */
cJSON *view_rows_finish(struct view_rows *v);

/* Word of a query on the control socket ("port", "voq", ...; CONTROL documents), static storage;
 * and back: -DSF_E_UNKNOWN when there is none. */
const char *view_rows_query_name(enum node_query query);
int view_rows_query_parse(const char *name, enum node_query *query);

/* Reads a workload row back, for a report over hosts of other processes. fct receives the histogram
 * and flow->fct points to it, or to NULL where the row has none. 0 or -DSF_E_BADFIELD. */
int view_rows_read_flow(const cJSON *row, struct node_row_flow *flow, struct dsf_histogram *fct);

#endif
