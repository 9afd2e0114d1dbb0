/*
 * table.h - the records of one interface node
 *
 * A sorted array: ports, then interfaces, then neighbors; the first two by system port, neighbors
 * by address and port. A leaf has few records, so that copying a table to try a change on it costs
 * less than keeping a way back.
 */
#ifndef DSF_FSDB_TABLE_H
#define DSF_FSDB_TABLE_H
#include "base/memory.h"
#include "base/time.h"
#include "fsdb/wire.h"

#define FSDB_PORTS_MAX     64u   /* system ports of a node: one block of ids */
#define FSDB_NEIGHBORS_MAX 1024u /* of a node; ours: 16 addresses at each of 64 ports */
#define FSDB_RECORDS_MAX   (2 * FSDB_PORTS_MAX + FSDB_NEIGHBORS_MAX)

struct fsdb_table {
	struct fsdb_record *records;
	uint32_t count, capacity;
};

/* Adds or replaces. 0, -DSF_E_FULL or -DSF_E_NOMEM and nothing changed. */
int fsdb_table_set(
	struct fsdb_table *t, const struct dsf_memory *memory, const struct fsdb_record *record);

/* Removes the record with key's key. 0, or -DSF_E_UNKNOWN. */
int fsdb_table_remove(struct fsdb_table *t, const struct fsdb_record *key);

/* NULL: there is none. Valid until the table changes. */
const struct fsdb_record *fsdb_table_find(
	const struct fsdb_table *t, const struct fsdb_record *key);

/* Index of the first record that isn't before key. */
uint32_t fsdb_table_seek(const struct fsdb_table *t, const struct fsdb_record *key);

/* Order of two keys: negative, 0 or positive. */
int fsdb_table_order(const struct fsdb_record *a, const struct fsdb_record *b);
bool fsdb_table_same(const struct fsdb_record *a, const struct fsdb_record *b);

/* Makes an empty *to a copy of from. 0, or -DSF_E_NOMEM. */
int fsdb_table_copy(
	struct fsdb_table *to, const struct fsdb_table *from, const struct dsf_memory *memory);

/* Takes out all neighbors. */
void fsdb_table_drop_neighbors(struct fsdb_table *t);

/* May the node whose first system port is first say this? All ports lie in its block, an interface
 * has its port, a neighbor its interface, addresses are unicast, and no neighbor was resolved later
 * than latest: who could say so would have an address for good. 0, or -DSF_E_PEER. */
int fsdb_table_check(const struct fsdb_table *t, uint32_t first, dsf_instant latest);

/* The ports of the block whose neighbors others may use: port and interface are GLOBAL. */
uint64_t fsdb_table_global(const struct fsdb_table *t);

/* Empties it and gives its memory back. */
void fsdb_table_close(struct fsdb_table *t, const struct dsf_memory *memory);

#endif
