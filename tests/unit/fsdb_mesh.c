#include "fsdb/mesh.h"
#include "tests/unit/fsdb_net.h"

static struct test_memory memory = TEST_MEMORY(memory);
static struct net n;

#define HOST ((struct dsf_ip6){ { 0xfd, 0x5f, [15] = 2 } })

static void open_net(uint32_t count)
{
	if (!net_open(&n, count, &memory.memory))
		TAP_OK(false, "meshes are made");
}

static void close_net(const char *name)
{
	net_close(&n);
	TAP_EQ(memory.live, 0, "%s: nothing is left", name);
}

/* Sessions of all pairs in this state, from either side. */
static bool all_in(enum fsdb_session_state state)
{
	bool all = true;

	for (uint32_t a = 0; a < n.count; a++)
		for (uint32_t b = 0; b < n.count; b++)
			if (a != b && n.meshes[a] != NULL && n.meshes[b] != NULL)
				all &= fsdb_session_state(net_session(&n, a, b)) == state;
	return all;
}

/* What mesh a told of an address, by asking its imports anew: the last change, or none. */
struct seen {
	bool told;
	struct fsdb_change change;
};

static struct seen see(uint32_t node, const struct dsf_ip6 *address)
{
	struct seen seen = { 0 };
	struct fsdb_change change;

	while (fsdb_mesh_changed(n.meshes[node], &change))
		if (dsf_ip6_equal(&change.address, address))
			seen = (struct seen){ true, change };
	return seen;
}

/* Lets everything move, without asking what has changed. */
static void move(void)
{
	while (net_step(&n))
		;
}

static bool has(uint32_t node, uint32_t other, const struct fsdb_record *record)
{
	return fsdb_table_find(&net_session(&n, node, other)->table, record) != NULL;
}

static void publish(uint32_t node, const struct fsdb_record *record)
{
	if (fsdb_mesh_publish(n.meshes[node], record) < 0)
		TAP_OK(false, "a record is published");
}

static void test_states(void)
{
	const struct fsdb_session *s, *t;

	open_net(2);
	s = net_session(&n, 0, 1);
	t = net_session(&n, 1, 0);
	net_settle(&n);
	TAP_OK(all_in(FSDB_CONNECT) && n.streams_count == 0, "out of reach nobody connects");
	fsdb_mesh_reachable(n.meshes[1], net_id(0), true, n.now);
	net_settle(&n);
	TAP_EQ(n.streams_count, 0, "the higher id waits");
	fsdb_mesh_reachable(n.meshes[0], net_id(1), true, n.now);
	while (!s->local && net_step(&n))
		TAP_OK(!s->remote, "remote doesn't count before local");
	TAP_EQ(fsdb_session_state(s), FSDB_WAIT_FOR_REMOTE, "then WAIT_FOR_REMOTE");
	net_settle(&n);
	TAP_OK(all_in(FSDB_ESTABLISHED), "then ESTABLISHED, at both");
	TAP_EQ(fsdb_mesh_established(n.meshes[0]), 1, "which is counted");
	TAP_EQ(s->table.count, 4, "all records have come");
	net_pass(&n, 100 * NS_PER_S);
	TAP_OK(all_in(FSDB_ESTABLISHED) && s->flaps + t->flaps == 0, "heartbeats keep it up");
	close_net("states");
}

/* While we are connected and the peer isn't, it says so. */
static void test_wait_for_remote(void)
{
	struct fsdb_record bad = net_record(FSDB_KIND_PORT, 0, 2);

	open_net(2);
	bad.system_port = net_port(1, 5); /* node 1's own */
	publish(0, &bad);
	net_reach_all(&n);
	TAP_EQ(fsdb_session_state(net_session(&n, 0, 1)), FSDB_WAIT_FOR_REMOTE,
		"who says what can't be waits");
	TAP_EQ(fsdb_session_state(net_session(&n, 1, 0)), FSDB_CONNECT, "the other connects");
	TAP_EQ(net_session(&n, 1, 0)->rejected, 1, "it has rejected");
	net_pass(&n, 10 * NS_PER_S + 1);
	TAP_EQ(net_session(&n, 1, 0)->rejected, 11, "and asks again once a retry time");
	fsdb_mesh_withdraw(n.meshes[0], &bad);
	net_pass(&n, NS_PER_S);
	TAP_OK(all_in(FSDB_ESTABLISHED), "until it is mended");
	TAP_EQ(net_session(&n, 0, 1)->broken, 0, "all on one stream");
	close_net("wait for remote");
}

static void test_neighbor(void)
{
	struct dsf_ip6 host = HOST;
	struct fsdb_record r = net_neighbor(1, 0, &host, 5);
	struct seen seen;

	open_net(4);
	net_reach_all(&n);
	TAP_OK(all_in(FSDB_ESTABLISHED), "four nodes: all pairs");
	publish(1, &r);
	move();
	for (uint32_t i = 0; i < 4; i++) {
		seen = see(i, &host);
		TAP_EQ(seen.told, i != 1, "a neighbor of 1: told at %u", i);
		TAP_OK(i == 1 ||
				(seen.change.present && seen.change.system_port == net_port(1, 0) &&
					memcmp(&seen.change.mac, &r.mac, 6) == 0),
			"with port and MAC");
	}
	r.mac.bytes[0] = 0x22;
	publish(1, &r);
	move();
	seen = see(2, &host);
	TAP_OK(seen.told && seen.change.mac.bytes[0] == 0x22, "another MAC is news");
	r.state = FSDB_INCOMPLETE;
	publish(1, &r);
	move();
	seen = see(2, &host);
	TAP_OK(seen.told && !seen.change.present, "its port goes down: gone at the others");
	TAP_OK(has(2, 1, &r), "which still have the record");
	r.state = FSDB_REACHABLE;
	publish(1, &r);
	move();
	TAP_OK(see(2, &host).change.present, "and back");
	fsdb_mesh_withdraw(n.meshes[1], &r);
	move();
	seen = see(2, &host);
	TAP_OK(seen.told && !seen.change.present, "removed: gone");
	TAP_OK(!has(2, 1, &r), "with the record");
	close_net("neighbor");
}

static void test_rules(void)
{
	struct dsf_ip6 host = HOST, local = { { 0xfe, 0x80, [15] = 2 } };
	struct fsdb_record r = net_neighbor(1, 0, &host, 5);
	struct fsdb_record port = net_record(FSDB_KIND_PORT, 1, 0);
	struct fsdb_record interface = net_record(FSDB_KIND_INTERFACE, 1, 0);
	struct fsdb_record link_local = net_neighbor(1, 0, &local, 5);
	struct fsdb_record fixed = net_neighbor(0, 0, &host, 1);

	open_net(2);
	net_reach_all(&n);
	publish(1, &link_local);
	move();
	TAP_OK(has(0, 1, &link_local) && !see(0, &local).told, "link-local: never imported");
	r.state = FSDB_STATIC;
	publish(1, &r);
	move();
	TAP_OK(has(0, 1, &r) && !see(0, &host).told, "STATIC: never imported");
	r.state = FSDB_REACHABLE;
	publish(1, &r);
	move();
	TAP_OK(see(0, &host).change.present, "REACHABLE: imported");
	interface.scope = FSDB_SCOPE_LOCAL;
	publish(1, &interface);
	move();
	TAP_OK(see(0, &host).told, "its interface becomes LOCAL: gone");
	interface.scope = FSDB_SCOPE_GLOBAL;
	port.scope = FSDB_SCOPE_LOCAL;
	publish(1, &port);
	publish(1, &interface);
	move();
	TAP_OK(!see(0, &host).told, "LOCAL port, GLOBAL interface: not imported");
	port.scope = FSDB_SCOPE_GLOBAL;
	publish(1, &port);
	move();
	TAP_OK(see(0, &host).change.present, "both GLOBAL: back");
	fixed.state = FSDB_STATIC;
	publish(0, &fixed);
	move();
	TAP_OK(see(0, &host).told, "a STATIC one of our own takes its place");
	r.since_ns = 100;
	publish(1, &r);
	move();
	TAP_OK(!see(0, &host).told, "and keeps it against later ones");
	fsdb_mesh_withdraw(n.meshes[0], &fixed);
	TAP_OK(see(0, &host).change.present, "until it is gone");
	close_net("rules");
}

/* A host moves from 1 to 2; the news may come in any order. */
static void test_move(bool later_first)
{
	struct dsf_ip6 host = HOST;
	struct fsdb_record was = net_neighbor(1, 0, &host, 5), is = net_neighbor(2, 1, &host, 9);
	struct seen seen;

	open_net(4);
	net_reach_all(&n);
	publish(later_first ? 2 : 1, later_first ? &is : &was);
	move();
	publish(later_first ? 1 : 2, later_first ? &was : &is);
	move();
	for (uint32_t i = 0; i < 4; i++) {
		seen = see(i, &host);
		TAP_OK(i == 2 ? !seen.told || !seen.change.present
			      : seen.change.system_port == net_port(2, 1),
			"moved: %u finds it at its new place", i);
	}
	fsdb_mesh_withdraw(n.meshes[1], &was);
	move();
	TAP_OK(!see(0, &host).told && !see(3, &host).told, "the old place forgets it: no news");
	publish(1, &was);
	fsdb_mesh_withdraw(n.meshes[2], &is);
	move();
	TAP_EQ(see(3, &host).change.system_port, net_port(1, 0), "the new one does: the old again");
	TAP_EQ(see(0, &host).change.system_port, net_port(1, 0), "at all");
	TAP_EQ(see(2, &host).change.system_port, net_port(1, 0), "also for who had it");
	is.since_ns = 5;
	publish(2, &is);
	move();
	TAP_EQ(see(0, &host).change.system_port, net_port(2, 1), "at one instant: the higher port");
	is.since_ns = 4;
	publish(2, &is);
	move();
	TAP_EQ(see(0, &host).change.system_port, net_port(1, 0), "a claim that weakens loses");
	is.since_ns = 12;
	is.system_port = net_port(2, 0);
	publish(2, &is);
	move();
	TAP_EQ(see(0, &host).change.system_port, net_port(2, 0), "one node, two ports: the later");
	close_net("move");
}

/* The fabric is cut for longer than the hold time, and mended. */
static void test_hold(void)
{
	struct dsf_ip6 host = HOST;
	struct fsdb_record r = net_neighbor(1, 0, &host, 5);
	const struct fsdb_session *s;

	open_net(3);
	s = net_session(&n, 0, 1);
	publish(1, &r);
	net_reach_all(&n);
	n.changes = 0;
	net_reach(&n, 0, 1, false);
	net_pass(&n, 14 * NS_PER_S);
	TAP_OK(all_in(FSDB_ESTABLISHED), "cut: nothing happens for a while");
	net_pass(&n, 2 * NS_PER_S);
	TAP_EQ(fsdb_session_state(s), FSDB_CONNECT, "then the silence is noticed");
	TAP_EQ(fsdb_session_state(net_session(&n, 0, 2)), FSDB_ESTABLISHED, "of that peer only");
	TAP_OK(!s->stale && n.changes == 0, "what it said is held");
	net_pass(&n, 118 * NS_PER_S);
	TAP_OK(!s->stale && n.changes == 0, "until the hold time ends");
	while (n.now.ns < s->hold_at.ns && !dsf_time_is_never(s->hold_at))
		net_pass(&n, NS_PER_S);
	TAP_OK(s->stale, "then it is STALE");
	TAP_EQ(s->expired, 1, "which is counted");
	TAP_EQ(s->table.count, 4, "ports and interfaces stay");
	TAP_EQ(n.changes, 1, "the neighbor goes");
	net_reach(&n, 0, 1, true);
	net_settle(&n);
	TAP_OK(all_in(FSDB_ESTABLISHED), "mended: at once ESTABLISHED");
	TAP_OK(!s->stale && s->table.count == 5 && n.changes == 2, "LIVE, with its neighbor");
	TAP_EQ(s->flaps, 1, "one flap");
	close_net("hold");
}

/* A cut that is shorter than the hold time: nothing is flushed. */
static void test_short_cut(void)
{
	struct dsf_ip6 host = HOST;
	struct fsdb_record r = net_neighbor(1, 0, &host, 5);

	open_net(2);
	publish(1, &r);
	net_reach_all(&n);
	n.changes = 0;
	net_reach(&n, 0, 1, false);
	net_pass(&n, 60 * NS_PER_S);
	TAP_OK(all_in(FSDB_CONNECT), "a minute's cut ends the session");
	net_reach(&n, 0, 1, true);
	net_pass(&n, 3 * NS_PER_S);
	TAP_OK(all_in(FSDB_ESTABLISHED), "it comes back");
	net_pass(&n, 200 * NS_PER_S);
	TAP_OK(!net_session(&n, 0, 1)->stale && n.changes == 0, "and nothing was flushed");
	close_net("short cut");
}

static void test_goodbye(enum fsdb_goodbye goodbye)
{
	struct dsf_ip6 host = HOST;
	struct fsdb_record r = net_neighbor(1, 0, &host, 5);
	bool exits = goodbye == FSDB_GOODBYE_EXIT;
	const char *name = exits ? "exit" : "restart";

	open_net(3);
	publish(1, &r);
	net_reach_all(&n);
	n.changes = 0;
	fsdb_mesh_leave(n.meshes[1], goodbye);
	net_settle(&n);
	TAP_EQ(fsdb_session_state(net_session(&n, 0, 1)), FSDB_CONNECT, "%s: its session ends",
		name);
	TAP_EQ(fsdb_session_state(net_session(&n, 0, 2)), FSDB_ESTABLISHED, "%s: no other", name);
	TAP_EQ(net_session(&n, 0, 1)->table.count, exits ? 0 : 5, "%s: what it said", name);
	TAP_EQ(n.changes, exits ? 2 : 0, "%s: its neighbor", name);
	net_stop(&n, 1);
	net_start(&n, 1, &memory.memory);
	net_publish_port(&n, 1, 0);
	r.since_ns = 50;
	publish(1, &r);
	net_reach(&n, 0, 1, true);
	net_reach(&n, 2, 1, true);
	net_pass(&n, 3 * NS_PER_S);
	TAP_OK(all_in(FSDB_ESTABLISHED), "%s: it is back", name);
	TAP_EQ(n.changes, exits ? 4 : 0, "%s: its neighbor again", name);
	TAP_EQ(net_session(&n, 0, 1)->table.count, 3, "%s: compared, not added", name);
	close_net(name);
}

/* Who ends the stream in good order without a word has gone for good; a reset says nothing. */
static void test_closed(bool reset)
{
	struct dsf_ip6 host = HOST;
	struct fsdb_record r = net_neighbor(1, 0, &host, 5);

	open_net(2);
	publish(1, &r);
	net_reach_all(&n);
	n.changes = 0;
	fsdb_mesh_closed(n.meshes[0], n.streams[0].ends[0].stream, reset, n.now);
	n.streams[0].ends[0].open = false;
	net_settle(&n);
	TAP_EQ(net_session(&n, 0, 1)->table.count, reset ? 5 : 0, "%s: what it said",
		reset ? "reset" : "closed");
	TAP_EQ(n.changes, reset ? 0 : 1, "%s: its neighbor", reset ? "reset" : "closed");
	net_pass(&n, 2 * NS_PER_S);
	TAP_OK(all_in(FSDB_ESTABLISHED), "and after the retry time a new stream");
	TAP_EQ(net_session(&n, 0, 1)->table.count, 5, "says it again");
	close_net("closed");
}

/* A node dies and comes back while the others still hold their ends of the streams. */
static void test_restart(void)
{
	for (uint32_t node = 0; node < 3; node++) {
		open_net(3);
		net_reach_all(&n);
		n.reset_unknown = true;
		net_stop(&n, node);
		net_pass(&n, 3 * NS_PER_S);
		net_start(&n, node, &memory.memory);
		net_publish_port(&n, node, 0);
		for (uint32_t i = 0; i < 3; i++)
			if (i != node)
				fsdb_mesh_reachable(n.meshes[node], net_id(i), true, n.now);
		net_pass(&n, 20 * NS_PER_S);
		TAP_OK(all_in(FSDB_ESTABLISHED), "node %u died: it is back", node);
		TAP_EQ(net_session(&n, (node + 1) % 3, (node + 2) % 3)->flaps, 0,
			"node %u died: the others didn't notice", node);
		TAP_EQ(net_session(&n, (node + 1) % 3, node)->table.count, 2,
			"node %u died: what it says now", node);
		close_net("restart");
	}
}

/* A node restarts, and the fabric tells: the other side finds out and connects anew at once. */
static void test_fresh(void)
{
	open_net(2);
	net_reach_all(&n);
	n.reset_unknown = true;
	net_stop(&n, 1);
	fsdb_mesh_reachable(n.meshes[0], net_id(1), false, n.now);
	net_start(&n, 1, &memory.memory);
	net_publish_port(&n, 1, 0);
	net_reach(&n, 0, 1, true);
	fsdb_mesh_reachable(n.meshes[0], net_id(1), true, n.now); /* by one link more */
	net_settle(&n);
	TAP_OK(all_in(FSDB_ESTABLISHED), "restarted within reach: back at once");
	TAP_EQ(net_session(&n, 0, 1)->table.count, 2, "with what it says now");
	net_stop(&n, 1);
	net_start(&n, 1, &memory.memory);
	net_pass(&n, 2 * FSDB_HEARTBEAT_NS - 1);
	TAP_OK(all_in(FSDB_ESTABLISHED), "untold: after a heartbeat and the retry time");
	close_net("fresh");
}

/* A node writes what it likes to the other: raw bytes on its stream. */
static int say(uint32_t to, uint32_t from, const struct fsdb_message *m,
	const struct fsdb_record *records, uint32_t count)
{
	uint8_t bytes[FSDB_MESSAGE_MAX];
	struct dsf_writer w = { bytes, bytes + sizeof(bytes), false };

	fsdb_wire_write(&w, m);
	for (uint32_t i = 0; i < count; i++)
		fsdb_wire_write_record(&w, &records[i], true);
	fsdb_wire_finish(bytes, (size_t)(w.at - bytes));
	for (uint32_t i = 0; i < n.streams_count; i++)
		for (unsigned e = 0; e < 2; e++)
			if (n.streams[i].ends[e].node == to && n.streams[i].ends[!e].node == from)
				return fsdb_mesh_input(n.meshes[to], n.streams[i].ends[e].stream,
					bytes, (size_t)(w.at - bytes), n.now);
	return -DSF_E_STALE;
}

static void test_rollback(void)
{
	struct dsf_ip6 host = HOST, other = net_address(9, 9);
	struct fsdb_record good = net_neighbor(1, 0, &host, 5), update[2];
	struct fsdb_message m = { .type = FSDB_UPDATE };
	const struct fsdb_session *s;

	open_net(2);
	publish(1, &good);
	net_reach_all(&n);
	s = net_session(&n, 0, 1);
	n.changes = 0;
	update[0] = net_neighbor(1, 1, &other, 6);
	update[1] = net_neighbor(1, 9, &host, 6); /* no such interface */
	m.revision = s->revision + 1;
	TAP_EQ(say(0, 1, &m, update, 2), 0, "an impossible update is no fault of the stream");
	TAP_EQ(fsdb_session_state(s), FSDB_CONNECT, "but ends the subscription");
	TAP_EQ(s->rejected, 1, "is counted");
	TAP_OK(!has(0, 1, &update[0]) && has(0, 1, &good), "none of it counts, the old stays");
	net_settle(&n);
	TAP_EQ(fsdb_session_state(net_session(&n, 1, 0)), FSDB_WAIT_FOR_REMOTE, "the peer hears");
	TAP_EQ(n.changes, 0, "neighbors are as before");
	net_pass(&n, NS_PER_S);
	TAP_OK(all_in(FSDB_ESTABLISHED), "asked again, all is well");
	TAP_OK(!s->stale && n.changes == 0, "without any flapping of neighbors");
	m.revision = s->revision + 2;
	say(0, 1, &m, update, 1);
	TAP_EQ(s->rejected, 2, "a revision is missing: rejected too");
	net_pass(&n, NS_PER_S);
	TAP_OK(all_in(FSDB_ESTABLISHED), "and asked again");
	close_net("rollback");
}

static void test_broken(void)
{
	static const struct fsdb_message hello = { .type = FSDB_HELLO, .id = 3 };
	const struct fsdb_session *s;

	open_net(2);
	net_reach_all(&n);
	s = net_session(&n, 1, 0);
	TAP_EQ(say(1, 0, &hello, NULL, 0), -DSF_E_PEER, "a second HELLO breaks the stream");
	TAP_EQ(say(1, 0, &hello, NULL, 0), -DSF_E_STALE, "which is over then");
	TAP_EQ(s->broken, 1, "is counted");
	TAP_EQ(s->table.count, 4, "what it said before is held");
	net_pass(&n, 2 * NS_PER_S);
	TAP_OK(all_in(FSDB_ESTABLISHED), "there is a new one after the retry time");
	close_net("broken");
}

/* Nobody but a peer, and only who has to connect. */
static void test_accept(void)
{
	struct dsf_ip6 stranger = net_address(0xee, 99), lower = net_address(0xee, net_id(0)),
		       higher = net_address(0xee, net_id(2));
	int first, second;

	open_net(3);
	TAP_EQ(fsdb_mesh_accept(n.meshes[1], &stranger, n.now), -DSF_E_UNKNOWN, "a stranger");
	TAP_EQ(fsdb_mesh_accept(n.meshes[1], &higher, n.now), -DSF_E_PEER, "whom we connect to");
	first = fsdb_mesh_accept(n.meshes[1], &lower, n.now);
	second = fsdb_mesh_accept(n.meshes[1], &lower, n.now);
	TAP_OK(first >= 0 && second >= 0 && first != second, "a new stream of a peer");
	TAP_EQ(fsdb_mesh_input(n.meshes[1], (uint32_t)first, (const uint8_t *)"x", 1, n.now),
		-DSF_E_STALE, "takes the old one's place");
	close_net("accept");
}

/* Any allocation may fail: the mesh goes on, and has everything in the end. */
static void test_memory(void)
{
	struct dsf_ip6 host = HOST;
	struct fsdb_record r = net_neighbor(1, 0, &host, 5);
	unsigned long fail = 0;
	bool all = true;

	do {
		struct fsdb_change change;
		bool told = false;

		open_net(2);
		publish(1, &r);
		memory.failed = false;
		memory.fail_at = ++fail;
		for (uint32_t i = 0; i < 2; i++)
			fsdb_mesh_reachable(n.meshes[i], net_id(!i), true, n.now);
		move();
		(void)net_publish_port(&n, 1, 2);
		move();
		memory.fail_at = 0;
		(void)net_publish_port(&n, 1, 2); /* if it wasn't */
		for (uint32_t i = 0; i < 40; i++) {
			dsf_instant at = dsf_time_min(
				fsdb_mesh_deadline(n.meshes[0]), fsdb_mesh_deadline(n.meshes[1]));

			n.now = dsf_time_max(n.now, at);
			fsdb_mesh_expire(n.meshes[0], n.now);
			fsdb_mesh_expire(n.meshes[1], n.now);
			move();
			while (fsdb_mesh_changed(n.meshes[0], &change))
				told = change.present;
		}
		all &= all_in(FSDB_ESTABLISHED) && told && net_session(&n, 0, 1)->table.count == 7;
		if (!all)
			printf("# allocation %lu\n", fail);
		net_close(&n);
	} while (memory.failed && all);
	TAP_OK(all, "any of %lu allocations may fail", fail - 1);
	TAP_OK(fail > 10, "and they did");
	TAP_EQ(memory.live, 0, "memory: nothing is left");
}

#define MANY 640u

struct many {
	struct fsdb_mesh *hub, *leaves[MANY];
	struct fsdb_peer hub_peers[MANY], leaf_peer;
	uint32_t streams[MANY];     /* the leaf's number of the stream */
	uint32_t hub_streams[MANY]; /* the hub's */
	uint64_t written;
};

static struct many many;

/* What the hub, or a leaf, wants done. */
static bool many_output(struct fsdb_mesh *from, uint32_t leaf, bool is_hub)
{
	struct fsdb_output out;
	int stream;

	if (!fsdb_mesh_output(from, &out, n.now))
		return false;
	if (is_hub)
		leaf = out.stream % FSDB_PEERS_MAX;
	if (out.kind == FSDB_OUTPUT_OPEN) {
		stream = fsdb_mesh_accept(many.leaves[leaf], &many.leaf_peer.address, n.now);
		many.streams[leaf] = (uint32_t)stream;
		many.hub_streams[leaf] = out.stream;
		fsdb_mesh_connected(many.hub, out.stream, n.now);
		fsdb_mesh_writable(many.hub, out.stream, UINT32_MAX);
		fsdb_mesh_writable(many.leaves[leaf], many.streams[leaf], UINT32_MAX);
	} else if (out.kind == FSDB_OUTPUT_WRITE) {
		many.written += is_hub ? out.size : 0;
		(void)fsdb_mesh_input(is_hub ? many.leaves[leaf] : many.hub,
			is_hub ? many.streams[leaf] : many.hub_streams[leaf], out.bytes, out.size,
			n.now);
	}
	return true;
}

static void many_move(void)
{
	bool again;

	do {
		again = false;
		for (uint32_t i = 0; i < MANY; i++)
			while (many_output(many.leaves[i], i, false))
				again = true;
		while (many_output(many.hub, 0, true))
			again = true;
	} while (again);
}

static void many_open(void)
{
	struct fsdb_config config = { .memory = &memory.memory,
		.id = 1,
		.peers = many.hub_peers,
		.peers_count = MANY,
		.timers = fsdb_mesh_timers(1) };

	many.leaf_peer = (struct fsdb_peer){ 1, net_address(0xee, 1) };
	for (uint32_t i = 0; i < MANY; i++)
		many.hub_peers[i] = (struct fsdb_peer){ 2 + i, net_address(2 + i / 250, i % 250) };
	many.hub = fsdb_mesh_new(&config);
	for (uint32_t i = 0; i < MANY; i++) {
		config.id = 2 + i;
		config.peers = &many.leaf_peer;
		config.peers_count = 1;
		many.leaves[i] = fsdb_mesh_new(&config);
	}
}

/* 640 sessions on one node: what it says is encoded once. */
static void test_many(void)
{
	struct fsdb_record port = { .kind = FSDB_KIND_PORT, .system_port = FSDB_PORTS_MAX };
	uint64_t encoded;

	many_open();
	for (uint32_t i = 0; i < 37; i++) {
		port.system_port = FSDB_PORTS_MAX + i;
		(void)fsdb_mesh_publish(many.hub, &port);
	}
	for (uint32_t i = 0; i < MANY; i++) {
		fsdb_mesh_reachable(many.hub, 2 + i, true, n.now);
		fsdb_mesh_reachable(many.leaves[i], 1, true, n.now);
	}
	many_move();
	TAP_EQ(fsdb_mesh_established(many.hub), MANY, "640 sessions");
	encoded = fsdb_mesh_publisher(many.hub)->encoded;
	TAP_EQ(encoded, 2, "the hub has encoded one delta and one full state");
	many.written = 0;
	port.state = 1;
	(void)fsdb_mesh_publish(many.hub, &port);
	many_move();
	TAP_EQ(fsdb_mesh_publisher(many.hub)->encoded, encoded + 1, "a change is encoded once");
	TAP_EQ(many.written, MANY * 28, "and sent as 28 bytes to each");
	for (uint32_t i = 0; i < MANY; i++)
		fsdb_mesh_free(many.leaves[i]);
	fsdb_mesh_free(many.hub);
	TAP_EQ(memory.live, 0, "many: nothing is left");
}

int main(void)
{
	test_states();
	test_wait_for_remote();
	test_neighbor();
	test_rules();
	test_move(false);
	test_move(true);
	test_hold();
	test_short_cut();
	test_goodbye(FSDB_GOODBYE_RESTART);
	test_goodbye(FSDB_GOODBYE_EXIT);
	test_closed(true);
	test_closed(false);
	test_restart();
	test_fresh();
	test_rollback();
	test_broken();
	test_accept();
	test_memory();
	test_many();
	return TAP_DONE();
}
