/*
 * fsdb_mesh.c - an FSDB node with two peers under a script of streams, messages and time
 *
 * Input: records of one command byte (low 4 bits; bit 4: which peer) and its arguments. Messages
 * get their header made right, so that the machine behind it is met; raw bytes come too.
 */
#include "fsdb/mesh.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define SELF       5u
#define LIVE_LIMIT (1u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t live;

static void *alloc(void *user, size_t size)
{
	void *block = calloc(1, size);

	(void)user;
	if (block == NULL)
		abort();
	live += size;
	assert(live < LIVE_LIMIT); /* whatever peers say */
	return block;
}

static void release(void *user, void *block, size_t size)
{
	(void)user;
	live -= size;
	free(block);
}

static const struct fsdb_peer peers[2] = {
	{ 3, { { 0xfd, [15] = 3 } } }, /* it connects */
	{ 8, { { 0xfd, [15] = 8 } } }, /* we do */
};

struct world {
	struct fsdb_mesh *mesh;
	uint32_t streams[2]; /* last that there was */
	uint32_t room[2];
	dsf_instant now;
};

static void drain(struct world *w)
{
	struct fsdb_output out;
	struct fsdb_change change;

	while (fsdb_mesh_output(w->mesh, &out, w->now)) {
		uint32_t peer = out.stream % FSDB_PEERS_MAX;

		assert(peer < 2 && out.address == &peers[peer].address);
		switch (out.kind) {
		case FSDB_OUTPUT_OPEN: w->streams[1] = out.stream; break;
		case FSDB_OUTPUT_WRITE:
			assert(out.stream == w->streams[peer]);
			assert(out.size > 0 && out.size <= w->room[peer]);
			w->room[peer] -= out.size;
			break;
		case FSDB_OUTPUT_CLOSE: break;
		}
	}
	while (fsdb_mesh_changed(w->mesh, &change))
		assert(!change.present || change.system_port / FSDB_PORTS_MAX == 3 ||
			change.system_port / FSDB_PORTS_MAX == 8);
}

static void publish(struct world *w, struct dsf_cursor *in, bool withdraw)
{
	struct fsdb_record r = { .kind = (uint8_t)(1 + dsf_cursor_be(in, 1) % 3) };

	r.system_port = SELF * FSDB_PORTS_MAX + (uint32_t)dsf_cursor_be(in, 1) % FSDB_PORTS_MAX;
	r.state = (uint8_t)(dsf_cursor_be(in, 1) % (r.kind == FSDB_KIND_PORT ? 2 : 3));
	if (r.kind != FSDB_KIND_PORT)
		r.address.bytes[15] = (uint8_t)dsf_cursor_be(in, 1);
	if (r.kind == FSDB_KIND_NEIGHBOR)
		r.since_ns = dsf_cursor_be(in, 1);
	if (withdraw)
		fsdb_mesh_withdraw(w->mesh, &r);
	else
		(void)fsdb_mesh_publish(w->mesh, &r);
}

static void input(struct world *w, struct dsf_cursor *in, uint32_t peer, bool raw)
{
	size_t size = (size_t)dsf_cursor_be(in, 2) % FSDB_MESSAGE_MAX;
	const uint8_t *body;
	uint8_t bytes[FSDB_MESSAGE_MAX + FSDB_HEADER_SIZE];

	if (size > dsf_cursor_left(in))
		size = dsf_cursor_left(in);
	body = dsf_cursor_bytes(in, size);
	if (size == 0)
		return;
	if (raw || size + 3 > FSDB_MESSAGE_MAX) {
		(void)fsdb_mesh_input(w->mesh, w->streams[peer], body, size, w->now);
		return;
	}
	/* The body's first byte is the type. */
	dsf_store_be16(bytes, (uint16_t)(size + 3));
	bytes[2] = FSDB_WIRE_VERSION;
	memcpy(bytes + 3, body, size);
	(void)fsdb_mesh_input(w->mesh, w->streams[peer], bytes, size + 3, w->now);
}

static void hello(struct world *w, uint32_t peer)
{
	struct fsdb_message m = { .type = FSDB_HELLO, .id = peers[peer].id };
	uint8_t bytes[FSDB_CONTROL_MAX];
	struct dsf_writer writer = { bytes, bytes + sizeof(bytes), false };

	fsdb_wire_write(&writer, &m);
	(void)fsdb_mesh_input(w->mesh, w->streams[peer], bytes, sizeof(bytes), w->now);
}

static void step(struct world *w, struct dsf_cursor *in)
{
	uint64_t command = dsf_cursor_be(in, 1);
	uint32_t peer = command >> 4 & 1;
	int stream;

	switch (command & 15) {
	case 0: fsdb_mesh_reachable(w->mesh, peers[peer].id, command >> 5 & 1, w->now); break;
	case 1:
		stream = fsdb_mesh_accept(w->mesh, &peers[peer].address, w->now);
		if (stream >= 0)
			w->streams[peer] = (uint32_t)stream;
		break;
	case 2: fsdb_mesh_connected(w->mesh, w->streams[peer], w->now); break;
	case 3:
		w->room[peer] = (uint32_t)dsf_cursor_be(in, 1) * 8;
		fsdb_mesh_writable(w->mesh, w->streams[peer], w->room[peer]);
		break;
	case 4: fsdb_mesh_closed(w->mesh, w->streams[peer], command >> 5 & 1, w->now); break;
	case 5:
		w->now.ns += dsf_cursor_be(in, 1) * NS_PER_S;
		fsdb_mesh_expire(w->mesh, w->now);
		assert(dsf_time_before(w->now, fsdb_mesh_deadline(w->mesh)));
		break;
	case 6: publish(w, in, peer); break;
	case 7: fsdb_mesh_leave(w->mesh, (enum fsdb_goodbye)peer); break;
	case 8: hello(w, peer); break;
	case 9: input(w, in, peer, true); break;
	case 10: input(w, in, peer, false); break;
	default: drain(w);
	}
}

static void check(const struct world *w)
{
	uint32_t established = 0;

	for (uint32_t i = 0; i < 2; i++) {
		const struct fsdb_session *s = fsdb_mesh_session(w->mesh, i);

		established += fsdb_session_state(s) == FSDB_ESTABLISHED;
		assert(fsdb_table_check(&s->table, peers[i].id * FSDB_PORTS_MAX,
			       dsf_time_after(w->now, FSDB_AHEAD_NS)) == 0);
		assert(s->table.count <= FSDB_RECORDS_MAX && s->stage.count <= FSDB_RECORDS_MAX);
		assert(!s->local || s->stream == FSDB_STREAM_OPEN);
	}
	assert(established == fsdb_mesh_established(w->mesh));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct dsf_memory memory = { alloc, release, NULL };
	struct fsdb_config config = { .memory = &memory,
		.id = SELF,
		.peers = peers,
		.peers_count = 2,
		.timers = fsdb_mesh_timers(1) };
	struct dsf_cursor in = { data, data + size, false };
	struct world w = { .mesh = fsdb_mesh_new(&config), .now = { NS_PER_S } };

	while (!in.failed && dsf_cursor_left(&in) > 0) {
		step(&w, &in);
		check(&w);
	}
	drain(&w);
	fsdb_mesh_free(w.mesh);
	assert(live == 0);
	return 0;
}
