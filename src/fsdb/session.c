#include "fsdb/session.h"
#include <assert.h>
#include "base/err.h"

#define WANT(type) ((uint8_t)(1u << (type) % 8u)) /* GOODBYE takes the bit of no other */

static_assert(FSDB_GOODBYE == 8, "one bit a type");

void fsdb_session_init(struct fsdb_session *s, const struct dsf_memory *memory,
	const struct fsdb_timers *timers, uint32_t self, uint32_t peer)
{
	assert(self != peer);
	*s = (struct fsdb_session){ .memory = memory,
		.timers = timers,
		.self = self,
		.peer = peer,
		.heard_at = DSF_NEVER,
		.connect_at = DSF_NEVER,
		.retry_at = DSF_NEVER,
		.heartbeat_at = DSF_NEVER,
		.subscribe_at = DSF_NEVER,
		.hold_at = DSF_NEVER,
		.established_at = DSF_NEVER,
		.disconnected_at = DSF_NEVER };
}

static void want(struct fsdb_session *s, enum fsdb_message_type type)
{
	s->wants |= WANT(type);
}

/* The one place where the two halves of the state change. */
static void set_state(struct fsdb_session *s, bool local, bool remote, dsf_instant now)
{
	enum fsdb_session_state before = fsdb_session_state(s);

	if (s->local != local) {
		s->hold_at = local ? DSF_NEVER : dsf_time_after(now, s->timers->hold_ns);
		s->stale = s->stale && !local;
		want(s, FSDB_STATE);
	}
	s->local = local;
	s->remote = local && remote;
	if (before == FSDB_ESTABLISHED && fsdb_session_state(s) != FSDB_ESTABLISHED) {
		s->flaps++;
		s->disconnected_at = now;
	}
	if (before != FSDB_ESTABLISHED && fsdb_session_state(s) == FSDB_ESTABLISHED)
		s->established_at = now;
	assert(s->local || !s->remote);
}

static void drop_stage(struct fsdb_session *s)
{
	fsdb_table_close(&s->stage, s->memory);
	s->syncing = false;
}

static void drop_partial(struct fsdb_session *s)
{
	dsf_memory_delete(s->memory, s->partial, FSDB_MESSAGE_MAX);
	s->partial = NULL;
	s->partial_size = 0;
}

/* Takes over what table holds. */
static void replace(struct fsdb_session *s, struct fsdb_table *table)
{
	assert(!s->replaced);
	s->old = s->table;
	s->table = *table;
	*table = (struct fsdb_table){ 0 };
	s->replaced = true;
}

/* Everything that belongs to the stream. */
static void end_stream(struct fsdb_session *s, dsf_instant now)
{
	set_state(s, false, false, now);
	drop_stage(s);
	drop_partial(s);
	fsdb_chunk_release(s->memory, s->chunk);
	s->chunk = NULL;
	s->stream = FSDB_STREAM_NONE;
	s->hello_heard = s->subscribed = s->full_wanted = s->open_wanted = false;
	s->wants = 0;
	s->room = 0;
	s->heard_at = s->connect_at = s->heartbeat_at = s->subscribe_at = DSF_NEVER;
	s->retry_at =
		fsdb_session_connects(s) ? dsf_time_after(now, s->timers->retry_ns) : DSF_NEVER;
}

/* The peer won't be back: nothing of what it said stays. */
static void forget(struct fsdb_session *s, dsf_instant now)
{
	set_state(s, false, false, now);
	drop_stage(s);
	s->hold_at = DSF_NEVER;
	s->stale = false;
	if (s->table.count > 0)
		replace(s, &s->stage);
}

void fsdb_session_close(struct fsdb_session *s)
{
	if (s->memory == NULL)
		return;
	end_stream(s, DSF_EPOCH);
	fsdb_table_close(&s->table, s->memory);
	fsdb_table_close(&s->old, s->memory);
}

/* The current stream is over for us; the driver has still to hear it. */
static void close_later(struct fsdb_session *s, bool reset)
{
	if (s->close_count == 0)
		s->close_first = s->generation;
	s->close_count = s->generation - s->close_first + 1; /* accepted ones may pile up */
	s->close_reset = reset;
}

static void open_stream(struct fsdb_session *s, dsf_instant now)
{
	s->stream = FSDB_STREAM_OPENING;
	s->generation++;
	s->open_wanted = true;
	s->retry_at = DSF_NEVER;
	s->connect_at = dsf_time_after(now, s->timers->connect_ns);
}

void fsdb_session_reachable(struct fsdb_session *s, bool reachable, dsf_instant now)
{
	bool begins = reachable && !s->reachable;

	s->reachable = reachable;
	s->fresh = begins || (s->fresh && reachable);
	if (begins && s->stream == FSDB_STREAM_OPEN)
		want(s, FSDB_HEARTBEAT); /* does the peer still know it? */
	if (begins && fsdb_session_connects(s) && s->stream == FSDB_STREAM_NONE)
		open_stream(s, now);
}

void fsdb_session_connected(struct fsdb_session *s, dsf_instant now)
{
	s->stream = FSDB_STREAM_OPEN;
	s->restarting = false;
	s->heard_at = now;
	s->connect_at = s->retry_at = DSF_NEVER;
	s->heartbeat_at = dsf_time_after(now, s->timers->heartbeat_ns);
	s->wants = 0;
	want(s, FSDB_HELLO);
	want(s, FSDB_SUBSCRIBE);
}

bool fsdb_session_accept(struct fsdb_session *s, dsf_instant now)
{
	if (fsdb_session_connects(s))
		return false;
	fsdb_session_break(s, now);
	s->generation++;
	fsdb_session_connected(s, now);
	return true;
}

void fsdb_session_closed(struct fsdb_session *s, bool reset, dsf_instant now)
{
	bool open = s->stream == FSDB_STREAM_OPEN, orderly = open && !reset && !s->restarting;

	end_stream(s, now);
	if (orderly)
		forget(s, now);
	if (open && reset && s->fresh && fsdb_session_connects(s))
		open_stream(s, now);
	s->fresh = false;
}

void fsdb_session_break(struct fsdb_session *s, dsf_instant now)
{
	if (s->stream == FSDB_STREAM_NONE)
		return;
	if (!s->open_wanted) /* one that was never asked for needn't be closed */
		close_later(s, true);
	end_stream(s, now);
}

void fsdb_session_writable(struct fsdb_session *s, uint32_t room)
{
	if (s->stream == FSDB_STREAM_OPEN)
		s->room = room;
}

bool fsdb_session_replaced(struct fsdb_session *s, struct fsdb_table *old)
{
	if (!s->replaced)
		return false;
	*old = s->old;
	s->old = (struct fsdb_table){ 0 };
	s->replaced = false;
	return true;
}

void fsdb_session_leave(struct fsdb_session *s, enum fsdb_goodbye goodbye)
{
	if (s->stream != FSDB_STREAM_OPEN)
		return;
	s->goodbye = goodbye;
	want(s, FSDB_GOODBYE);
}

void fsdb_session_reject(struct fsdb_session *s, dsf_instant now)
{
	s->rejected++;
	drop_stage(s);
	set_state(s, false, false, now);
	s->subscribe_at = dsf_time_after(now, s->timers->retry_ns);
}

/* Records of an UPDATE into the stage. 0, or the error of the first that can't be. */
static int stage_records(struct fsdb_session *s, struct dsf_cursor records)
{
	struct fsdb_record record;
	bool set = false;
	int err;

	while ((err = fsdb_wire_read_record(&records, &record, &set)) > 0) {
		if (set)
			err = fsdb_table_set(&s->stage, s->memory, &record);
		else if (s->syncing || fsdb_table_remove(&s->stage, &record) < 0)
			err = -DSF_E_PEER;
		if (err < 0)
			return err;
	}
	return err;
}

static int commit(struct fsdb_session *s, uint64_t revision, dsf_instant now)
{
	dsf_instant latest = dsf_time_after(now, s->timers->ahead_ns);
	int err = fsdb_table_check(&s->stage, s->peer * FSDB_PORTS_MAX, latest);

	if (err < 0)
		return err;
	replace(s, &s->stage);
	s->revision = revision;
	return 0;
}

static int take_update(struct fsdb_session *s, const struct fsdb_message *m, dsf_instant now)
{
	uint64_t expected = s->syncing ? s->revision : s->revision + 1;
	int err = 0;

	if (!s->syncing && !s->local)
		return 0; /* changes of what we don't have */
	if (m->revision != expected)
		err = -DSF_E_PEER;
	if (err == 0 && !s->syncing)
		err = fsdb_table_copy(&s->stage, &s->table, s->memory);
	if (err == 0)
		err = stage_records(s, m->records);
	if (err == 0 && !s->syncing)
		err = commit(s, m->revision, now);
	if (err < 0)
		fsdb_session_reject(s, now);
	return 0;
}

static int take_synced(struct fsdb_session *s, const struct fsdb_message *m, dsf_instant now)
{
	if (!s->syncing)
		return 0;
	if (m->count != s->stage.count || commit(s, s->revision, now) < 0) {
		fsdb_session_reject(s, now);
		return 0;
	}
	s->syncing = false;
	s->subscribe_at = DSF_NEVER;
	set_state(s, true, s->remote, now);
	return 0;
}

static int take_message(struct fsdb_session *s, const struct fsdb_message *m, dsf_instant now)
{
	if (s->hello_heard == (m->type == FSDB_HELLO))
		return -DSF_E_PEER; /* it comes first, and once */
	switch (m->type) {
	case FSDB_HELLO: s->hello_heard = true; return m->id == s->peer ? 0 : -DSF_E_PEER;
	case FSDB_SUBSCRIBE: s->subscribed = s->full_wanted = true; break;
	case FSDB_SYNC:
		drop_stage(s);
		s->syncing = true;
		s->revision = m->revision;
		break;
	case FSDB_SYNCED: return take_synced(s, m, now);
	case FSDB_UPDATE: return take_update(s, m, now);
	case FSDB_STATE: set_state(s, s->local, m->value == 1, now); break;
	case FSDB_HEARTBEAT: break;
	case FSDB_GOODBYE:
		s->restarting = true;
		if (m->value == FSDB_GOODBYE_EXIT)
			forget(s, now);
		break;
	}
	return 0;
}

/* The first message is not whole: puts bytes aside until it is. Bytes taken, or an error. */
static int take_partial(struct fsdb_session *s, const uint8_t *bytes, size_t size)
{
	uint32_t goal = 2; /* the size comes first */
	size_t take;
	int whole;

	if (s->partial == NULL)
		s->partial = dsf_memory_new(s->memory, FSDB_MESSAGE_MAX);
	if (s->partial == NULL)
		return -DSF_E_NOMEM;
	whole = fsdb_wire_size(s->partial, s->partial_size);
	if (whole < 0)
		return whole;
	if (whole > 0)
		goal = (uint32_t)whole;
	take = goal - s->partial_size < size ? goal - s->partial_size : size;
	memcpy(s->partial + s->partial_size, bytes, take);
	s->partial_size += (uint32_t)take;
	return (int)take;
}

static int take_bytes(
	struct fsdb_session *s, const uint8_t *bytes, size_t size, size_t *taken, dsf_instant now)
{
	bool pieces = s->partial != NULL;
	struct fsdb_message m;
	int whole = fsdb_wire_size(bytes, size), err;

	*taken = 0;
	if (!pieces && whole > 0 && (size_t)whole <= size) {
		*taken = (size_t)whole;
	} else if (!pieces && whole < 0) {
		return whole;
	} else {
		err = take_partial(s, bytes, size);
		if (err < 0)
			return err;
		*taken = (size_t)err;
		whole = fsdb_wire_size(s->partial, s->partial_size);
		if (whole <= 0 || (uint32_t)whole > s->partial_size)
			return whole < 0 ? whole : 0;
		bytes = s->partial;
	}
	err = fsdb_wire_read(&m, bytes, (size_t)whole);
	if (err == 0)
		err = take_message(s, &m, now);
	drop_partial(s);
	return err;
}

int fsdb_session_input(struct fsdb_session *s, const uint8_t *bytes, size_t size, dsf_instant now)
{
	size_t taken;
	int err;

	if (s->stream != FSDB_STREAM_OPEN)
		return -DSF_E_STATE;
	s->heard_at = now;
	err = take_bytes(s, bytes, size, &taken, now);
	if (err < 0)
		s->broken++;
	return err < 0 ? err : (int)taken;
}

/* All control messages that are wanted, in order of their types. */
static uint32_t write_control(struct fsdb_session *s, uint8_t *scratch)
{
	struct dsf_writer w = { scratch, scratch + FSDB_WRITE_MIN, false };

	for (unsigned type = FSDB_HELLO; type <= FSDB_GOODBYE; type++) {
		struct fsdb_message m = { .type = (enum fsdb_message_type)type };

		if (!(s->wants & WANT(type)))
			continue;
		if (type == FSDB_HELLO)
			m.id = s->self;
		else if (type == FSDB_STATE)
			m.value = s->local;
		else if (type == FSDB_GOODBYE)
			m.value = (uint8_t)s->goodbye;
		fsdb_wire_write(&w, &m);
	}
	assert(!w.failed);
	s->wants = 0;
	return (uint32_t)(w.at - scratch);
}

/* Has something of what is published to go out? Then s holds its chunk. */
static bool next_chunk(struct fsdb_session *s, struct fsdb_publisher *p)
{
	if (s->chunk != NULL)
		return true;
	if (!s->subscribed)
		return false;
	s->chunk = fsdb_publish_next(p, s->sent_revision, s->full_wanted);
	if (s->chunk == NULL)
		return false;
	s->chunk_full = s->chunk == p->snapshot;
	s->chunk_at = 0;
	s->full_wanted = false;
	return true;
}

static void output_chunk(struct fsdb_session *s, struct fsdb_output *out)
{
	uint32_t left = s->chunk->size - s->chunk_at;

	out->kind = FSDB_OUTPUT_WRITE;
	out->bytes = s->chunk->bytes + s->chunk_at;
	out->size = left < s->room ? left : s->room;
	s->chunk_at += out->size;
	s->room -= out->size;
}

/* Its bytes were borrowed until now. */
static void finish_chunk(struct fsdb_session *s)
{
	if (s->chunk == NULL || s->chunk_at < s->chunk->size)
		return;
	s->sent_revision = s->chunk->revision;
	if (s->chunk_full)
		want(s, FSDB_STATE);
	fsdb_chunk_release(s->memory, s->chunk);
	s->chunk = NULL;
}

/* Control messages go between chunks. */
static bool output_write(struct fsdb_session *s, struct fsdb_publisher *p, uint8_t *scratch,
	struct fsdb_output *out, dsf_instant now)
{
	finish_chunk(s);
	if (s->chunk == NULL && s->wants != 0) {
		bool leaves = (s->wants & WANT(FSDB_GOODBYE)) != 0;

		if (s->room < FSDB_WRITE_MIN)
			return false;
		out->kind = FSDB_OUTPUT_WRITE;
		out->bytes = scratch;
		out->size = write_control(s, scratch);
		s->room -= out->size;
		if (leaves) {
			close_later(s, false);
			end_stream(s, now);
		}
		return true;
	}
	if (s->room == 0 || !next_chunk(s, p))
		return false;
	output_chunk(s, out);
	return true;
}

bool fsdb_session_output(struct fsdb_session *s, struct fsdb_publisher *p, uint8_t *scratch,
	struct fsdb_output *out, dsf_instant now)
{
	*out = (struct fsdb_output){ .stream = s->generation };
	if (s->close_count > 0) {
		s->close_count--;
		out->kind = FSDB_OUTPUT_CLOSE;
		out->stream = s->close_first++;
		out->reset = s->close_reset;
		return true;
	}
	if (s->open_wanted) {
		s->open_wanted = false;
		out->kind = FSDB_OUTPUT_OPEN;
		return true;
	}
	return s->stream == FSDB_STREAM_OPEN && output_write(s, p, scratch, out, now);
}

dsf_instant fsdb_session_deadline(const struct fsdb_session *s)
{
	dsf_instant at = dsf_time_after(s->heard_at, s->timers->silence_ns);

	at = dsf_time_min(at, s->connect_at);
	at = dsf_time_min(at, s->retry_at);
	at = dsf_time_min(at, s->heartbeat_at);
	at = dsf_time_min(at, s->subscribe_at);
	return dsf_time_min(at, s->hold_at);
}

static void expire_stream(struct fsdb_session *s, dsf_instant now)
{
	if (dsf_time_due(s->connect_at, now) ||
		dsf_time_due(dsf_time_after(s->heard_at, s->timers->silence_ns), now))
		fsdb_session_break(s, now);
	if (dsf_time_due(s->retry_at, now)) {
		s->retry_at = DSF_NEVER;
		if (s->reachable)
			open_stream(s, now);
	}
	if (dsf_time_due(s->heartbeat_at, now)) {
		s->heartbeat_at = dsf_time_after(now, s->timers->heartbeat_ns);
		want(s, FSDB_HEARTBEAT);
	}
	if (dsf_time_due(s->subscribe_at, now)) {
		s->subscribe_at = DSF_NEVER;
		want(s, FSDB_SUBSCRIBE);
	}
}

/* Without memory for what would stay nothing does. */
static void expire_hold(struct fsdb_session *s)
{
	struct fsdb_table rest = { 0 }, places = s->table; /* a view of it */

	s->hold_at = DSF_NEVER;
	s->stale = true;
	s->expired++;
	fsdb_table_drop_neighbors(&places);
	(void)fsdb_table_copy(&rest, &places, s->memory);
	replace(s, &rest);
}

void fsdb_session_expire(struct fsdb_session *s, dsf_instant now)
{
	expire_stream(s, now);
	if (dsf_time_due(s->hold_at, now))
		expire_hold(s);
}
