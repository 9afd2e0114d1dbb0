/*
 * sim_stream.c - a device's streams under a script of segments, its owner's wishes and time
 *
 * Input: records of one command byte (low 3 bits) and its arguments. A segment's header is made
 * right and its numbers are near those that the stream is at, so that the machine is met.
 */
#include "sim/stream.h"
#include <assert.h>
#include <stdlib.h>
#include "base/cursor.h"
#include "ip/packet.h"
#include "sim/segment.h"
#include "tests/memory.h"

#define STREAMS 64u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What the owner knows of its streams. */
struct owner {
	struct sim_streams *streams;
	bool open[STREAMS], over[STREAMS];
	uint32_t room[STREAMS];
	uint32_t count;
	struct sim_segment last; /* that the device put out, from the peer's side */
	dsf_instant now;
};

static int owner_accept(void *user, const struct node_stream_ends *ends, dsf_instant now)
{
	struct owner *o = user;

	(void)now;
	if (ends->local_port != NODE_STREAM_FSDB || o->count == STREAMS)
		return -1;
	o->open[o->count] = true;
	return (int)o->count++;
}

static void owner_connected(void *user, uint32_t stream, dsf_instant now)
{
	struct owner *o = user;

	(void)now;
	assert(stream < o->count && !o->open[stream] && !o->over[stream]);
	o->open[stream] = true;
}

static void owner_input(
	void *user, uint32_t stream, const uint8_t *bytes, uint32_t size, dsf_instant now)
{
	struct owner *o = user;

	(void)now;
	assert(stream < o->count && o->open[stream] && size > 0 && bytes != NULL);
}

static void owner_writable(void *user, uint32_t stream, uint32_t room, dsf_instant now)
{
	struct owner *o = user;

	(void)now;
	assert(stream < o->count && o->open[stream] && room <= SIM_STREAM_BUFFER);
	o->room[stream] = room;
}

static void owner_closed(void *user, uint32_t stream, bool reset, dsf_instant now)
{
	struct owner *o = user;

	(void)reset;
	(void)now;
	assert(stream < o->count && !o->over[stream]);
	o->open[stream] = false;
	o->over[stream] = true;
}

static const struct dsf_ip6 ours = { { 0xfd, [15] = 1 } }, peers = { { 0xfd, [15] = 2 } };

static void drain(struct owner *o)
{
	uint8_t packet[SIM_STREAM_PACKET];
	uint32_t size;

	while ((size = sim_stream_output(o->streams, packet, o->now)) > 0)
		if (size > SIM_STREAM_PACKET || sim_segment_read(&o->last, packet, size) < 0)
			abort(); /* we must never send what we'd refuse */
	o->last.data = NULL;
}

static void segment(struct owner *o, struct dsf_cursor *in)
{
	static const uint8_t bytes[256] = { 1 };
	uint8_t packet[SIM_STREAM_PACKET];
	struct sim_segment s = { .ends = { peers, ours, 0, NODE_STREAM_FSDB } };
	uint64_t which = dsf_cursor_be(in, 1);

	s.flags = (uint8_t)dsf_cursor_be(in, 1);
	s.sequence = o->last.acknowledged + (uint32_t)(int8_t)dsf_cursor_be(in, 1);
	s.acknowledged = o->last.sequence + (uint32_t)(int8_t)dsf_cursor_be(in, 1);
	s.size = (uint32_t)dsf_cursor_be(in, 1);
	s.data = bytes;
	s.ends.local_port = (uint16_t)(which & 7);
	if (which & 8) /* the stream that spoke last */
		s.ends = (struct node_stream_ends){ peers, ours, o->last.ends.local_port,
			o->last.ends.remote_port };
	sim_stream_input(o->streams, packet, sim_segment_write(&s, 0, packet), o->now);
}

static void wish(struct owner *o, struct dsf_cursor *in, uint64_t command)
{
	static const uint8_t bytes[SIM_STREAM_BUFFER];
	struct node_stream_ends ends = { ours, peers, 0, NODE_STREAM_FSDB };
	uint32_t stream, size;

	if (command == 0 && o->count < STREAMS) {
		if (sim_stream_open(o->streams, o->count, &ends, o->now) < 0)
			o->over[o->count] = true;
		o->count++;
		return;
	}
	if (o->count == 0)
		return;
	stream = (uint32_t)dsf_cursor_be(in, 1) % o->count;
	if (command == 1) {
		size = (uint32_t)dsf_cursor_be(in, 2);
		if (size > o->room[stream])
			size = o->room[stream];
		if (!o->open[stream] || size == 0)
			return;
		o->room[stream] -= size;
		sim_stream_write(o->streams, stream, bytes, size, o->now);
	} else if (!o->over[stream]) {
		o->open[stream] = false;
		o->over[stream] = true;
		sim_stream_close(o->streams, stream, command == 2, o->now);
	}
}

static void step(struct owner *o, struct dsf_cursor *in)
{
	uint64_t command = dsf_cursor_be(in, 1) & 7;

	switch (command) {
	case 0:
	case 1:
	case 2:
	case 3: wish(o, in, command); break;
	case 4:
		o->now.ns += dsf_cursor_be(in, 1) * NS_PER_MS / 8;
		sim_stream_expire(o->streams, o->now);
		assert(dsf_time_before(o->now, sim_stream_deadline(o->streams)));
		break;
	case 5: drain(o); break;
	default: segment(o, in);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct test_memory memory = TEST_MEMORY(memory);
	struct dsf_cursor in = { data, data + size, false };
	struct owner o = { .now = { NS_PER_S } };
	struct sim_stream_owner calls = { owner_accept, owner_connected, owner_input,
		owner_writable, owner_closed, &o };

	o.streams = sim_streams_new(&memory.memory, &calls, 1);
	while (!in.failed && dsf_cursor_left(&in) > 0)
		step(&o, &in);
	drain(&o);
	sim_streams_free(o.streams);
	assert(memory.live == 0);
	return 0;
}
