/*
 * publish.h - what this node says, encoded once for all who listen
 *
 * The records that this node publishes are a table. What changes in it is collected in one UPDATE
 * until somebody wants to send: then it becomes a chunk of the log, bytes that never change, and
 * the revision rises by one. The full state is a chunk as well (SYNC, UPDATEs, SYNCED), made when
 * somebody needs it and kept until something changes. Sessions hold chunks and places in
 * them, never bytes of their own; 640 of them cost no more encoding than one.
 *
 * The log is short. Who falls further behind is sent the full state again.
 */
#ifndef DSF_FSDB_PUBLISH_H
#define DSF_FSDB_PUBLISH_H
#include "fsdb/table.h"

#define FSDB_LOG_MAX 64u /* deltas that are kept (ours) */

struct fsdb_chunk {
	uint32_t holders;
	uint32_t size;
	uint64_t revision; /* the listener's, when it has read it */
	uint8_t bytes[];
};

struct fsdb_publisher {
	const struct dsf_memory *memory;
	struct fsdb_table table;
	uint64_t revision;
	struct fsdb_chunk *log[FSDB_LOG_MAX]; /* by revision % FSDB_LOG_MAX */
	uint64_t log_first;                   /* revisions log_first .. revision are in the log */
	struct fsdb_chunk *snapshot;          /* NULL: must be made */
	uint8_t *open;                        /* FSDB_MESSAGE_MAX bytes, or NULL: the next delta */
	uint32_t open_size;                   /* 0: nothing has changed */
	uint64_t encoded;                     /* chunks that were ever made */
};

void fsdb_publish_init(struct fsdb_publisher *p, const struct dsf_memory *memory);
void fsdb_publish_close(struct fsdb_publisher *p);

/* Publishes a record, or takes back the one with its key; nothing happens when that changes
 * nothing. 0, -DSF_E_FULL or -DSF_E_NOMEM and it isn't published. */
int fsdb_publish_set(struct fsdb_publisher *p, const struct fsdb_record *record);
void fsdb_publish_remove(struct fsdb_publisher *p, const struct fsdb_record *key);

/* Ends the open delta. True: the revision has risen. */
bool fsdb_publish_commit(struct fsdb_publisher *p);

/* What comes next for who has read up to revision: a delta, or the full state where the log doesn't
 * reach back (full: in any case). The caller holds it. No delta may be open. NULL: there is
 * nothing, or no memory. */
struct fsdb_chunk *fsdb_publish_next(struct fsdb_publisher *p, uint64_t revision, bool full);

/* Gives a chunk back; NULL is fine. */
void fsdb_chunk_release(const struct dsf_memory *memory, struct fsdb_chunk *chunk);

#endif
