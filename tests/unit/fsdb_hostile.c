/*
 * fsdb_hostile.c - a peer that wants to do harm: what it can make others keep, and for how long
 *
 * Node 0 is a victim of node 1, which says what it likes on its stream; node 2 is an honest peer
 * that must not notice.
 */
#include <stdlib.h>
#include "fsdb/mesh.h"
#include "tests/unit/fsdb_net.h"

#define VICTIM 0u
#define LIAR   1u
#define HONEST 2u
#define FLOOD  5000u
#define CLAIMS 100u /* neighbors in an UPDATE: what fits */

static struct test_memory memory = TEST_MEMORY(memory);
static struct net n;
static uint64_t flaps; /* of the honest session */

#define HOST ((struct dsf_ip6){ { 0xfd, 0x5f, [15] = 2 } })

static struct dsf_ip6 host(uint32_t number)
{
	return (struct dsf_ip6){ { 0xfd,
		0x5f, [13] = 1, [14] = (uint8_t)(number >> 8), [15] = (uint8_t)number } };
}

static uint32_t stream_of(uint32_t a, uint32_t b)
{
	uint32_t i = 0;

	while (i < n.streams_count &&
		!((n.streams[i].ends[0].node == a && n.streams[i].ends[1].node == b) ||
			(n.streams[i].ends[0].node == b && n.streams[i].ends[1].node == a)))
		i++;
	if (i == n.streams_count)
		abort();
	return i;
}

/* Bytes from the liar, all at once. */
static int say_bytes(const uint8_t *bytes, size_t size)
{
	struct net_stream *s = &n.streams[stream_of(LIAR, VICTIM)];
	struct net_end *end = &s->ends[s->ends[0].node == VICTIM ? 0 : 1];

	return fsdb_mesh_input(n.meshes[VICTIM], end->stream, bytes, size, n.now);
}

static int say(const struct fsdb_message *m, const struct fsdb_record *records, uint32_t count)
{
	uint8_t bytes[FSDB_MESSAGE_MAX];
	struct dsf_writer w = { bytes, bytes + sizeof(bytes), false };

	fsdb_wire_write(&w, m);
	for (uint32_t i = 0; i < count; i++)
		fsdb_wire_write_record(&w, &records[i], true);
	fsdb_wire_finish(bytes, (size_t)(w.at - bytes));
	return say_bytes(bytes, (size_t)(w.at - bytes));
}

static const struct fsdb_session *liar(void)
{
	return net_session(&n, VICTIM, LIAR);
}

/* The next change. */
static int update(const struct fsdb_record *records, uint32_t count)
{
	struct fsdb_message m = { .type = FSDB_UPDATE, .revision = liar()->revision + 1 };

	return say(&m, records, count);
}

static uint32_t told(const struct dsf_ip6 *address, uint32_t *system_port)
{
	struct fsdb_change change;
	uint32_t news = 0;

	while (fsdb_mesh_changed(n.meshes[VICTIM], &change)) {
		if (!dsf_ip6_equal(&change.address, address))
			continue;
		news++;
		*system_port = change.present ? change.system_port : UINT32_MAX;
	}
	return news;
}

static void move(void)
{
	while (net_step(&n))
		;
}

static void open_net(void)
{
	struct dsf_ip6 address = HOST;
	struct fsdb_record r = net_neighbor(HONEST, 0, &address, 5);

	if (!net_open(&n, 3, &memory.memory) || fsdb_mesh_publish(n.meshes[HONEST], &r) < 0)
		abort();
	net_reach_all(&n);
	flaps = net_session(&n, VICTIM, HONEST)->flaps;
}

/* The honest peer is as it was, and so are its records. */
static void check_honest(const char *name)
{
	const struct fsdb_session *s = net_session(&n, VICTIM, HONEST);

	TAP_OK(fsdb_session_state(s) == FSDB_ESTABLISHED && s->flaps == flaps && !s->stale &&
			s->table.count == 5,
		"%s: the other peer and its records are as they were", name);
}

static void close_net(const char *name)
{
	net_close(&n);
	TAP_EQ(memory.live, 0, "%s: nothing is left", name);
}

/* Who says that an address was resolved in the future doesn't have it for good. */
static void test_future(void)
{
	struct dsf_ip6 address = HOST;
	struct fsdb_record r = net_neighbor(LIAR, 0, &address, UINT64_MAX), fixed;
	uint32_t port = 0;

	open_net();
	TAP_EQ(told(&address, &port), 0, "future: the honest one has the address, as told before");
	update(&r, 1);
	TAP_OK(liar()->rejected == 1 && told(&address, &port) == 0,
		"future: the end of time is rejected");
	net_pass(&n, FSDB_RETRY_NS);
	r.since_ns = n.now.ns + FSDB_AHEAD_NS + 1;
	update(&r, 1);
	TAP_EQ(liar()->rejected, 2, "future: so is what no clock of the lab can say");
	net_pass(&n, FSDB_RETRY_NS);
	TAP_EQ(fsdb_session_state(liar()), FSDB_ESTABLISHED, "future: and asked for again");
	r.since_ns = n.now.ns + FSDB_AHEAD_NS;
	update(&r, 1);
	TAP_OK(liar()->rejected == 2 && told(&address, &port) == 1 && port == net_port(LIAR, 0),
		"future: a clock that is ahead may");
	net_pass(&n, FSDB_AHEAD_NS + 1);
	(void)told(&address, &port);
	r = net_neighbor(HONEST, 1, &address, n.now.ns);
	(void)fsdb_mesh_publish(n.meshes[HONEST], &r);
	move();
	TAP_OK(told(&address, &port) == 1 && port == net_port(HONEST, 1),
		"future: who resolves it after that has it again");
	fixed = net_neighbor(VICTIM, 0, &address, 1);
	fixed.state = FSDB_STATIC;
	(void)fsdb_mesh_publish(n.meshes[VICTIM], &fixed);
	TAP_OK(told(&address, &port) == 1 && port == UINT32_MAX, "future: a STATIC one of ours");
	r = net_neighbor(LIAR, 1, &address, UINT64_MAX);
	update(&r, 1);
	TAP_EQ(told(&address, &port), 0, "future: holds against all instants");
	close_net("future");
}

/* As many neighbors as a peer may have. */
static void say_many(uint32_t count)
{
	struct fsdb_record records[CLAIMS];

	for (uint32_t at = 0; at < count;) {
		uint32_t i = 0;

		for (; i < CLAIMS && at < count; i++, at++) {
			struct dsf_ip6 address = host(at);

			records[i] = net_neighbor(LIAR, 0, &address, 9);
		}
		update(records, i);
		net_settle(&n);
	}
}

enum end { BROKEN, CLOSED, EXIT };

/* It fills all it may, and goes: what stays is what a peer is known by, and nothing in the end. */
static void test_gone(enum end how, const char *name)
{
	struct fsdb_message bye = { .type = FSDB_GOODBYE, .value = FSDB_GOODBYE_EXIT };
	size_t before, full, places = 4 * sizeof(struct fsdb_record);
	uint32_t stream;

	open_net();
	before = memory.live;
	say_many(FSDB_RECORDS_MAX - 4);
	TAP_EQ(liar()->table.count, FSDB_RECORDS_MAX, "%s: it has said all it may", name);
	full = memory.live - before;
	TAP_OK(full > FSDB_RECORDS_MAX * sizeof(struct fsdb_record), "%s: which takes memory: %zu",
		name, full);
	stream = n.streams[stream_of(LIAR, VICTIM)].ends[0].node == VICTIM
			 ? n.streams[stream_of(LIAR, VICTIM)].ends[0].stream
			 : n.streams[stream_of(LIAR, VICTIM)].ends[1].stream;
	net_stop(&n, LIAR);
	if (how == EXIT) {
		uint8_t bytes[FSDB_CONTROL_MAX];
		struct dsf_writer w = { bytes, bytes + sizeof(bytes), false };

		fsdb_wire_write(&w, &bye);
		(void)fsdb_mesh_input(
			n.meshes[VICTIM], stream, bytes, (size_t)(w.at - bytes), n.now);
	}
	fsdb_mesh_closed(n.meshes[VICTIM], stream, how == BROKEN, n.now);
	fsdb_mesh_reachable(n.meshes[VICTIM], net_id(LIAR), false, n.now);
	fsdb_mesh_reachable(n.meshes[HONEST], net_id(LIAR), false, n.now);
	net_settle(&n);
	if (how == BROKEN) {
		TAP_EQ(liar()->table.count, FSDB_RECORDS_MAX, "%s: it is held for a while", name);
		net_pass(&n, FSDB_HOLD_NS + FSDB_SILENCE_NS);
		TAP_OK(liar()->stale && liar()->table.count == 4, "%s: its places are STALE", name);
	} else {
		TAP_EQ(liar()->table.count, 0, "%s: it is forgotten at once", name);
		places = 0;
		net_pass(&n, FSDB_HOLD_NS + FSDB_SILENCE_NS); /* at the honest one it was silent */
	}
	TAP_OK(memory.live <= before + places, "%s: %zu bytes of it are left, %zu were there", name,
		memory.live > before ? memory.live - before : 0, full);
	check_honest(name);
	close_net(name);
}

static void test_limits(void)
{
	struct fsdb_message sync = { .type = FSDB_SYNC, .revision = 7 };
	struct fsdb_record r;
	struct dsf_ip6 address = host(5000);

	open_net();
	say_many(FSDB_RECORDS_MAX - 4);
	r = net_neighbor(LIAR, 0, &address, 9);
	update(&r, 1);
	TAP_OK(liar()->rejected == 1 && liar()->table.count == FSDB_RECORDS_MAX,
		"limits: one record more is rejected, the others stay");
	net_pass(&n, FSDB_RETRY_NS);
	TAP_OK(fsdb_session_state(liar()) == FSDB_ESTABLISHED && liar()->table.count == 4,
		"limits: asked again it says what its mesh has");
	(void)say(&sync, NULL, 0);
	for (uint32_t i = 0; i < FSDB_RECORDS_MAX + CLAIMS; i++) {
		struct fsdb_message m = { .type = FSDB_UPDATE, .revision = 7 };

		address = host(i);
		r = net_neighbor(LIAR, 0, &address, 9);
		(void)say(&m, &r, 1);
	}
	TAP_OK(liar()->rejected == 2 && liar()->stage.records == NULL && liar()->table.count == 4,
		"limits: a full state beyond them too");
	check_honest("limits");
	close_net("limits");
}

/* What it says over and over takes no more memory than what it may say once. */
static void test_floods(void)
{
	static const struct fsdb_message floods[] = { { .type = FSDB_SUBSCRIBE },
		{ .type = FSDB_SYNC, .revision = 3 }, { .type = FSDB_SYNCED, .count = 9 },
		{ .type = FSDB_STATE, .value = 1 }, { .type = FSDB_STATE },
		{ .type = FSDB_HEARTBEAT }, { .type = FSDB_UPDATE, .revision = 99 },
		{ .type = FSDB_GOODBYE, .value = FSDB_GOODBYE_RESTART } };
	static const uint8_t half[] = { FSDB_MESSAGE_MAX >> 8, FSDB_MESSAGE_MAX & 0xff, 1 };
	size_t before, most = 0;
	bool taken = true;

	open_net();
	before = memory.live;
	for (size_t f = 0; f < sizeof(floods) / sizeof(floods[0]); f++) {
		for (uint32_t i = 0; i < FLOOD; i++) {
			taken &= say(&floods[f], NULL, 0) == 0;
			most = memory.live > most ? memory.live : most;
		}
		(void)told(&HOST, &(uint32_t){ 0 });
	}
	TAP_OK(taken, "floods: whole messages break no stream");
	TAP_OK(most <= before + 2 * FSDB_MESSAGE_MAX, "floods: %zu bytes at most", most - before);
	for (uint32_t i = 0; i < FLOOD; i++)
		taken &= say_bytes(i == 0 ? half : half + 2, i == 0 ? sizeof(half) : 1) == 0 ||
			 i > 4000;
	TAP_OK(taken && memory.live <= before + 2 * FSDB_MESSAGE_MAX,
		"floods: a message without an end takes what one takes");
	check_honest("floods");
	close_net("floods");
}

/* Who asks for everything and reads nothing holds a piece of what is said, not all of it. */
static void test_deaf(void)
{
	struct fsdb_message subscribe = { .type = FSDB_SUBSCRIBE };
	struct fsdb_record r = net_record(FSDB_KIND_PORT, VICTIM, 1);
	size_t before, after_few = 0;

	open_net();
	before = memory.live;
	n.cut[VICTIM][LIAR] = n.cut[LIAR][VICTIM] = true;
	(void)say(&subscribe, NULL, 0);
	for (uint32_t i = 0; i < FLOOD; i++) {
		r.rate_bps = i;
		(void)fsdb_mesh_publish(n.meshes[VICTIM], &r);
		move();
		if (i == 2 * FSDB_LOG_MAX)
			after_few = memory.live;
	}
	TAP_OK(memory.live <= after_few, "deaf: %zu bytes after %u changes, %zu after many",
		after_few - before, 2 * FSDB_LOG_MAX, memory.live - before);
	r.rate_bps = FLOOD - 1;
	TAP_OK(fsdb_table_find(&net_session(&n, HONEST, VICTIM)->table, &r)->rate_bps == FLOOD - 1,
		"deaf: the other peer has heard all of it");
	check_honest("deaf");
	n.cut[VICTIM][LIAR] = n.cut[LIAR][VICTIM] = false;
	move();
	TAP_OK(fsdb_table_find(&net_session(&n, LIAR, VICTIM)->table, &r)->rate_bps == FLOOD - 1,
		"deaf: and it, once it reads again");
	close_net("deaf");
}

/* Streams: each new one takes the place of the one before. The liar's id is the lower one here. */
static void test_accepts(void)
{
	struct dsf_ip6 address = net_address(0xee, net_id(VICTIM));
	uint32_t closes = 0, last = 0;
	struct fsdb_output out;
	size_t before, most = 0;

	open_net();
	before = memory.live;
	for (uint32_t i = 0; i < FLOOD; i++) {
		int stream = fsdb_mesh_accept(n.meshes[LIAR], &address, n.now);

		if (stream < 0)
			abort();
		last = (uint32_t)stream;
		most = memory.live > most ? memory.live : most;
	}
	while (fsdb_mesh_output(n.meshes[LIAR], &out, n.now)) {
		closes += out.kind == FSDB_OUTPUT_CLOSE;
		if (out.kind == FSDB_OUTPUT_CLOSE && out.stream == last)
			closes = UINT32_MAX / 2;
	}
	TAP_EQ(closes, FLOOD, "accepts: all but the last are closed");
	TAP_OK(most <= before, "accepts: they take no memory");
	TAP_EQ(fsdb_session_state(net_session(&n, LIAR, HONEST)), FSDB_ESTABLISHED,
		"accepts: the other session doesn't notice");
	close_net("accepts");
}

int main(void)
{
	test_future();
	test_gone(BROKEN, "broken");
	test_gone(CLOSED, "closed");
	test_gone(EXIT, "exit");
	test_limits();
	test_floods();
	test_deaf();
	test_accepts();
	return TAP_DONE();
}
