#include "fsdb/publish.h"
#include <assert.h>
#include "base/err.h"

#define UPDATE_HEADER (FSDB_HEADER_SIZE + 8u)

void fsdb_publish_init(struct fsdb_publisher *p, const struct dsf_memory *memory)
{
	*p = (struct fsdb_publisher){ .memory = memory, .log_first = 1 };
}

static struct fsdb_chunk *chunk_new(struct fsdb_publisher *p, uint32_t size)
{
	struct fsdb_chunk *chunk = dsf_memory_new(p->memory, sizeof(*chunk) + size);

	if (chunk == NULL)
		return NULL;
	chunk->holders = 1;
	chunk->size = size;
	chunk->revision = p->revision;
	p->encoded++;
	return chunk;
}

void fsdb_chunk_release(const struct dsf_memory *memory, struct fsdb_chunk *chunk)
{
	if (chunk == NULL)
		return;
	assert(chunk->holders > 0);
	if (--chunk->holders == 0)
		dsf_memory_delete(memory, chunk, sizeof(*chunk) + chunk->size);
}

static void log_drop_first(struct fsdb_publisher *p)
{
	struct fsdb_chunk **slot = &p->log[p->log_first++ % FSDB_LOG_MAX];

	fsdb_chunk_release(p->memory, *slot);
	*slot = NULL;
}

/* Everybody needs the full state. */
static void log_drop(struct fsdb_publisher *p)
{
	while (p->log_first <= p->revision)
		log_drop_first(p);
	fsdb_chunk_release(p->memory, p->snapshot);
	p->snapshot = NULL;
}

void fsdb_publish_close(struct fsdb_publisher *p)
{
	log_drop(p);
	dsf_memory_delete(p->memory, p->open, FSDB_MESSAGE_MAX);
	fsdb_table_close(&p->table, p->memory);
}

static void write_update(struct dsf_writer *w, uint64_t revision)
{
	struct fsdb_message m = { .type = FSDB_UPDATE, .revision = revision };

	fsdb_wire_write(w, &m);
}

bool fsdb_publish_commit(struct fsdb_publisher *p)
{
	struct fsdb_chunk *chunk;

	if (p->open_size == 0)
		return false;
	p->revision++;
	fsdb_wire_finish(p->open, p->open_size);
	chunk = chunk_new(p, p->open_size);
	if (chunk == NULL) {
		log_drop(p);
	} else {
		memcpy(chunk->bytes, p->open, p->open_size);
		if (p->revision - p->log_first == FSDB_LOG_MAX)
			log_drop_first(p);
		p->log[p->revision % FSDB_LOG_MAX] = chunk;
	}
	p->open_size = 0;
	return true;
}

/* A change that is already in the table goes into the open delta. */
static void log_change(struct fsdb_publisher *p, const struct fsdb_record *record, bool set)
{
	struct dsf_writer w;

	if (p->open_size + FSDB_RECORD_MAX > FSDB_MESSAGE_MAX)
		fsdb_publish_commit(p);
	if (p->open == NULL)
		p->open = dsf_memory_new(p->memory, FSDB_MESSAGE_MAX);
	if (p->open == NULL) {
		p->revision++;
		log_drop(p);
		return;
	}
	w = (struct dsf_writer){ p->open + p->open_size, p->open + FSDB_MESSAGE_MAX, false };
	if (p->open_size == 0)
		write_update(&w, p->revision + 1);
	fsdb_wire_write_record(&w, record, set);
	assert(!w.failed);
	p->open_size = (uint32_t)(w.at - p->open);
}

int fsdb_publish_set(struct fsdb_publisher *p, const struct fsdb_record *record)
{
	const struct fsdb_record *old = fsdb_table_find(&p->table, record);
	int err;

	if (old != NULL && fsdb_table_same(old, record))
		return 0;
	err = fsdb_table_set(&p->table, p->memory, record);
	if (err == 0)
		log_change(p, record, true);
	return err;
}

void fsdb_publish_remove(struct fsdb_publisher *p, const struct fsdb_record *key)
{
	if (fsdb_table_remove(&p->table, key) == 0)
		log_change(p, key, false);
}

/* An UPDATE with records from *at on, as many as fit; then *at is the first of the rest. */
static void write_some(const struct fsdb_publisher *p, struct dsf_writer *w, uint32_t *at)
{
	uint8_t *message = w->at;

	write_update(w, p->revision);
	for (; *at < p->table.count && w->at - message + FSDB_RECORD_MAX <= FSDB_MESSAGE_MAX; ++*at)
		fsdb_wire_write_record(w, &p->table.records[*at], true);
	assert(!w->failed);
	fsdb_wire_finish(message, (size_t)(w->at - message));
}

/* SYNC, all records, SYNCED, into room of the size that takes them at most. */
static uint32_t write_all(const struct fsdb_publisher *p, uint8_t *room, size_t size)
{
	struct fsdb_message sync = { .type = FSDB_SYNC, .revision = p->revision };
	struct fsdb_message synced = { .type = FSDB_SYNCED, .count = p->table.count };
	struct dsf_writer w = { room, room + size, false };
	uint32_t at = 0;

	fsdb_wire_write(&w, &sync);
	while (at < p->table.count)
		write_some(p, &w, &at);
	fsdb_wire_write(&w, &synced);
	assert(!w.failed);
	return (uint32_t)(w.at - room);
}

static void make_snapshot(struct fsdb_publisher *p)
{
	size_t updates =
		p->table.count / ((FSDB_MESSAGE_MAX - UPDATE_HEADER) / FSDB_RECORD_MAX) + 1;
	size_t size =
		2 * FSDB_CONTROL_MAX + updates * UPDATE_HEADER + p->table.count * FSDB_RECORD_MAX;
	uint8_t *room = dsf_memory_new(p->memory, size);
	uint32_t used;

	assert(p->open_size == 0); /* or the log would say it again */
	fsdb_chunk_release(p->memory, p->snapshot);
	p->snapshot = NULL;
	if (room == NULL)
		return;
	used = write_all(p, room, size);
	p->snapshot = chunk_new(p, used);
	if (p->snapshot != NULL)
		memcpy(p->snapshot->bytes, room, used);
	dsf_memory_delete(p->memory, room, size);
}

struct fsdb_chunk *fsdb_publish_next(struct fsdb_publisher *p, uint64_t revision, bool full)
{
	struct fsdb_chunk *chunk;

	if (!full && revision == p->revision)
		return NULL;
	if (full || revision + 1 < p->log_first) {
		if (p->snapshot == NULL || p->snapshot->revision != p->revision)
			make_snapshot(p);
		chunk = p->snapshot;
	} else {
		chunk = p->log[(revision + 1) % FSDB_LOG_MAX];
	}
	if (chunk != NULL)
		chunk->holders++;
	return chunk;
}
