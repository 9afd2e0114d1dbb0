/*
 * Two sessions joined by streams in memory, time in our hands: coming up, crossing connections,
 * timers, and what is answered to a peer that says the wrong thing.
 */
#include <stdlib.h>
#include <string.h>
#include "base/err.h"
#include "bgp/session.h"
#include "tests/memory.h"
#include "tests/tap.h"

static struct test_memory memory = TEST_MEMORY(memory);
static dsf_instant now;

/* One TCP connection: a slot at each end, and what is under way. */
struct wire {
	bool up;
	unsigned slot[2];
};

static struct bgp_session session[2];
static struct wire wires[4];
static bool reachable;

static struct bgp_session_config config(uint32_t as, uint32_t id, uint32_t peer_as)
{
	return (struct bgp_session_config){ .memory = &memory.memory,
		.as = as,
		.id = id,
		.peer_as = peer_as,
		.hold_s = 90,
		.retry_ns = BGP_RETRY_NS,
		.restart_s = 0,
		.seed = id };
}

static void start(struct bgp_session_config a, struct bgp_session_config b)
{
	memset(wires, 0, sizeof(wires));
	reachable = true;
	now = (dsf_instant){ NS_PER_S };
	bgp_session_init(&session[0], &a);
	bgp_session_init(&session[1], &b);
	bgp_session_start(&session[0], now);
	bgp_session_start(&session[1], now);
}

static struct wire *wire_of(unsigned side, unsigned slot)
{
	for (size_t i = 0; i < 4; i++) {
		if (wires[i].up && wires[i].slot[side] == slot)
			return &wires[i];
	}
	return NULL;
}

static void cut(struct wire *w, unsigned by)
{
	w->up = false;
	bgp_session_closed(&session[!by], w->slot[!by], now);
}

static void connect_from(unsigned side)
{
	int slot = bgp_session_connect(&session[side]), peer;
	struct wire *w = wires;

	if (slot < 0)
		return;
	peer = reachable ? bgp_session_accept(&session[!side], now) : -1;
	if (peer < 0) {
		bgp_session_closed(&session[side], (unsigned)slot, now);
		return;
	}
	while (w->up)
		w++;
	w->up = true;
	w->slot[side] = (unsigned)slot;
	w->slot[!side] = (unsigned)peer;
	bgp_session_connected(&session[side], (unsigned)slot, now);
}

/* Hands bytes over in two pieces; anything but session messages is an error of the test. */
static void deliver(unsigned side, unsigned slot, const uint8_t *bytes, size_t size)
{
	struct bgp_message m;
	size_t first = size / 2, second = size - first;
	const uint8_t *rest = bytes + first;

	while (bgp_session_input(&session[side], slot, &bytes, &first, now, &m) > 0)
		continue;
	while (bgp_session_input(&session[side], slot, &rest, &second, now, &m) > 0)
		continue;
}

static bool move_slot(unsigned side, unsigned slot)
{
	uint8_t message[BGP_MESSAGE_MAX];
	struct wire *w = wire_of(side, slot);
	size_t size = bgp_session_output(&session[side], slot, message);

	if (size > 0 && w != NULL)
		deliver(!side, w->slot[!side], message, size);
	if (bgp_session_closing(&session[side], slot, now)) {
		if (w != NULL && w->up)
			cut(w, side);
		return true;
	}
	return size > 0;
}

/* Everything that happens without time. cross: both connect before either hears the other. */
static void settle(bool cross)
{
	bool moved = true;

	connect_from(0);
	if (cross)
		connect_from(1);
	while (moved) {
		moved = false;
		for (unsigned i = 0; i < 4; i++)
			moved = move_slot(i / 2, i % 2) || moved;
	}
	connect_from(1);
	for (moved = true; moved;) {
		moved = false;
		for (unsigned i = 0; i < 4; i++)
			moved = move_slot(i / 2, i % 2) || moved;
	}
}

static void pass(uint64_t duration_ns)
{
	dsf_instant end = dsf_time_after(now, duration_ns);

	for (;;) {
		dsf_instant at = dsf_time_min(
			bgp_session_deadline(&session[0]), bgp_session_deadline(&session[1]));

		if (dsf_time_before(end, at))
			break;
		now = dsf_time_max(now, at);
		bgp_session_expire(&session[0], now);
		bgp_session_expire(&session[1], now);
		settle(false);
	}
	now = end;
}

static bool is_up(void)
{
	return bgp_session_established(&session[0]) >= 0 &&
	       bgp_session_established(&session[1]) >= 0;
}

static void finish(const char *name)
{
	bgp_session_close(&session[0]);
	bgp_session_close(&session[1]);
	TAP_EQ(memory.blocks, 0, "%s: all memory is given back", name);
}

static void test_up(void)
{
	struct bgp_session_config passive = config(65002, 2, 65001);

	start(config(65001, 1, 65002), config(65002, 2, 65001));
	pass(1);
	TAP_OK(is_up(), "two start at once and come up");
	TAP_EQ(bgp_session_state(&session[0], now), BGP_ESTABLISHED, "state");
	pass(3600 * NS_PER_S);
	TAP_OK(is_up() && session[0].counters.established == 1, "and stay up for an hour");
	/* every 30 s less a random quarter: 120 to 160 KEEPALIVEs, and two messages of the start */
	TAP_OK(session[0].counters.messages_sent > 120 && session[0].counters.messages_sent < 170,
		"%u messages in an hour", (unsigned)session[0].counters.messages_sent);
	bgp_session_stop(&session[0], BGP_CEASE_SHUTDOWN, "hello");
	settle(false);
	TAP_OK(session[1].received.code == BGP_ERR_CEASE &&
			session[1].received.subcode == BGP_CEASE_SHUTDOWN &&
			session[1].received.data[0] == 5,
		"shutdown is said with its text");
	pass(60 * NS_PER_S);
	TAP_EQ(bgp_session_state(&session[0], now), BGP_IDLE, "stopped is idle");
	TAP_OK(bgp_session_state(&session[1], now) == BGP_ACTIVE ||
			bgp_session_state(&session[1], now) == BGP_CONNECT,
		"the other one tries");
	bgp_session_start(&session[0], now);
	pass(1);
	TAP_OK(is_up(), "started again");
	finish("up");

	passive.passive = true;
	start(config(65001, 1, 65002), passive);
	reachable = false;
	pass(NS_PER_S);
	TAP_OK(!is_up(), "unreachable");
	reachable = true;
	pass(BGP_RETRY_NS);
	TAP_OK(is_up(), "within the retry time it is up, one end passive");
	finish("passive");
}

/* Which side opened the connection that stays. */
static unsigned winner(void)
{
	int slot = bgp_session_established(&session[0]);

	return slot >= 0 && session[0].slots[slot].ours ? 0 : 1;
}

static void test_collision(void)
{
	static const struct {
		const char *name;
		uint32_t id[2], as[2];
		unsigned want;
	} rows[] = {
		{ "higher id is first", { 9, 2 }, { 65001, 65002 }, 0 },
		{ "higher id is second", { 2, 9 }, { 65001, 65002 }, 1 },
		{ "ids as unsigned numbers", { 0xfffffffe, 2 }, { 65001, 65002 }, 0 },
		{ "equal ids: higher AS", { 7, 7 }, { 65001, 65002 }, 1 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		start(config(rows[i].as[0], rows[i].id[0], rows[i].as[1]),
			config(rows[i].as[1], rows[i].id[1], rows[i].as[0]));
		bgp_session_expire(&session[0], now);
		bgp_session_expire(&session[1], now);
		settle(true);
		TAP_OK(is_up(), "collision: %s: one connection stays", rows[i].name);
		TAP_EQ(winner(), rows[i].want, "collision: %s: the right one", rows[i].name);
		TAP_OK(session[0].slots[0].state == BGP_IDLE ||
				session[0].slots[1].state == BGP_IDLE,
			"collision: %s: the other one is gone", rows[i].name);
		TAP_EQ(session[0].counters.notifications_sent +
				session[1].counters.notifications_sent,
			1 + (session[0].counters.notifications_sent > 0 &&
				    session[1].counters.notifications_sent > 0),
			"collision: %s: with a NOTIFICATION", rows[i].name);
		finish(rows[i].name);
	}
}

/* A peer made of bytes: session[0] hears them on slot 0 of a connection that the peer made. */
static size_t heard(uint8_t *to, struct bgp_notification *n)
{
	size_t size;

	n->code = 0;
	while ((size = bgp_session_output(&session[0], 0, to)) > 0) {
		if (to[18] == BGP_NOTIFICATION)
			bgp_wire_notification_decode(
				to + BGP_HEADER_SIZE, size - BGP_HEADER_SIZE, n);
	}
	return n->code;
}

static void say(const uint8_t *bytes, size_t size)
{
	struct bgp_message m;

	while (bgp_session_input(&session[0], 0, &bytes, &size, now, &m) > 0)
		continue;
}

static void say_open(uint32_t as, uint16_t hold_s, bool ipv6)
{
	struct bgp_open open = { .as = as, .hold_s = hold_s, .id = 9, .as4 = true, .ipv6 = ipv6 };
	uint8_t bytes[BGP_MESSAGE_MAX];

	say(bytes, bgp_wire_open_encode(bytes, &open));
}

static void say_type(enum bgp_type type, size_t size)
{
	uint8_t bytes[64] = { 0 };

	bgp_wire_header_encode(bytes, type, size);
	say(bytes, size);
}

/* Brings session[0] to a state. */
static void meet(enum bgp_state state, uint16_t hold_s)
{
	struct bgp_session_config c = config(65001, 1, 65002);
	uint8_t bytes[BGP_MESSAGE_MAX];
	struct bgp_notification n;

	c.passive = true;
	now = (dsf_instant){ NS_PER_S };
	bgp_session_init(&session[0], &c);
	bgp_session_init(&session[1], &c);
	bgp_session_start(&session[0], now);
	(void)bgp_session_accept(&session[0], now);
	if (state >= BGP_OPEN_CONFIRM)
		say_open(65002, hold_s, true);
	if (state >= BGP_ESTABLISHED)
		say_type(BGP_KEEPALIVE, BGP_HEADER_SIZE);
	(void)heard(bytes, &n);
}

static void test_wrong(void)
{
	static const struct {
		const char *name;
		enum bgp_state state;
		enum bgp_type type;
		size_t size;
		uint8_t code, subcode;
	} rows[] = {
		{ "UPDATE in OpenSent", BGP_OPEN_SENT, BGP_UPDATE, 23, 5, 1 },
		{ "KEEPALIVE in OpenSent", BGP_OPEN_SENT, BGP_KEEPALIVE, 19, 5, 1 },
		{ "UPDATE in OpenConfirm", BGP_OPEN_CONFIRM, BGP_UPDATE, 23, 5, 2 },
		{ "ROUTE-REFRESH in OpenConfirm", BGP_OPEN_CONFIRM, BGP_ROUTE_REFRESH, 23, 5, 2 },
		{ "OPEN in OpenConfirm", BGP_OPEN_CONFIRM, BGP_OPEN, 29, 5, 2 },
		{ "OPEN in Established", BGP_ESTABLISHED, BGP_OPEN, 29, 5, 3 },
		{ "type 9", BGP_OPEN_SENT, (enum bgp_type)9, 19, 1, 3 },
		{ "long KEEPALIVE", BGP_ESTABLISHED, BGP_KEEPALIVE, 20, 1, 2 },
	};
	uint8_t bytes[BGP_MESSAGE_MAX];
	struct bgp_notification n;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		meet(rows[i].state, 90);
		TAP_EQ(bgp_session_state(&session[0], now), rows[i].state, "%s: is there",
			rows[i].name);
		say_type(rows[i].type, rows[i].size);
		(void)heard(bytes, &n);
		TAP_OK(n.code == rows[i].code && n.subcode == rows[i].subcode, "%s: %u/%u",
			rows[i].name, n.code, n.subcode);
		TAP_OK(bgp_session_closing(&session[0], 0, now), "%s: closed", rows[i].name);
		TAP_OK(!bgp_session_closing(&session[0], 0, now), "%s: once", rows[i].name);
		finish(rows[i].name);
	}
	meet(BGP_OPEN_SENT, 90);
	say_open(64999, 90, true);
	(void)heard(bytes, &n);
	TAP_OK(n.code == 2 && n.subcode == 2, "wrong AS: %u/%u", n.code, n.subcode);
	finish("wrong AS");
	meet(BGP_OPEN_SENT, 90);
	say_open(65002, 90, false);
	(void)heard(bytes, &n);
	TAP_OK(n.code == 2 && n.subcode == 7 && n.size == 6, "no IPv6: %u/%u", n.code, n.subcode);
	finish("no IPv6");
	meet(BGP_ESTABLISHED, 90);
	say_type(BGP_NOTIFICATION, 21);
	TAP_OK(bgp_session_output(&session[0], 0, bytes) == 0 &&
			bgp_session_closing(&session[0], 0, now),
		"a NOTIFICATION isn't answered");
	TAP_OK(session[0].notified, "and remembered");
	finish("notified");
}

static void test_timers(void)
{
	uint8_t bytes[BGP_MESSAGE_MAX];
	struct bgp_notification n;

	meet(BGP_ESTABLISHED, 9);
	now = dsf_time_after(now, 9 * NS_PER_S - 1);
	bgp_session_expire(&session[0], now);
	(void)heard(bytes, &n);
	TAP_EQ(n.code, 0, "before the hold time nothing happens");
	say_type(BGP_KEEPALIVE, BGP_HEADER_SIZE);
	now = dsf_time_after(now, 9 * NS_PER_S - 1);
	bgp_session_expire(&session[0], now);
	(void)heard(bytes, &n);
	TAP_EQ(n.code, 0, "a KEEPALIVE starts it anew");
	now = dsf_time_after(now, 1);
	bgp_session_expire(&session[0], now);
	(void)heard(bytes, &n);
	TAP_OK(n.code == 4 && n.subcode == 0, "hold timer: %u/%u", n.code, n.subcode);
	TAP_OK(session[0].notified, "that counts as a NOTIFICATION");
	finish("hold");

	meet(BGP_ESTABLISHED, 0);
	TAP_OK(dsf_time_is_never(bgp_session_deadline(&session[0])), "hold 0: no timer at all");
	finish("hold 0");

	meet(BGP_ESTABLISHED, 9);
	bgp_session_blocked(&session[0], 0, true, now);
	for (unsigned i = 0; i < 100; i++) {
		now = dsf_time_after(now, 5 * NS_PER_S);
		say_type(BGP_KEEPALIVE, BGP_HEADER_SIZE);
		bgp_session_expire(&session[0], now);
	}
	TAP_OK(bgp_session_closing(&session[0], 0, now), "a peer that never reads is left");
	finish("send hold");

	meet(BGP_OPEN_SENT, 90);
	now = dsf_time_after(now, BGP_OPEN_HOLD_NS);
	bgp_session_expire(&session[0], now);
	(void)heard(bytes, &n);
	TAP_EQ(n.code, 4, "a peer that never says OPEN is left");
	finish("open hold");

	meet(BGP_ESTABLISHED, 90);
	(void)bgp_wire_refuse(&n, BGP_ERR_CEASE, BGP_CEASE_PREFIXES, NULL, 0);
	bgp_session_fail(&session[0], &n, 60 * NS_PER_S, now);
	(void)heard(bytes, &n);
	TAP_OK(bgp_session_closing(&session[0], 0, now) && n.code == 6 && n.subcode == 1, "failed");
	TAP_EQ(bgp_session_accept(&session[0], now), -DSF_E_STATE, "held down");
	now = dsf_time_after(now, 60 * NS_PER_S);
	TAP_EQ(bgp_session_accept(&session[0], now), 0, "and back");
	finish("held down");
}

/* A peer that restarted comes again while we think the old session lives (RFC 4724 5). */
static void test_restart(void)
{
	struct bgp_open open = { .as = 65002, .hold_s = 90, .id = 9, .as4 = true, .ipv6 = true };
	uint8_t bytes[BGP_MESSAGE_MAX];
	const uint8_t *at = bytes;
	struct bgp_notification n;
	struct bgp_message m;
	size_t size;

	for (unsigned graceful = 0; graceful < 2; graceful++) {
		struct bgp_session_config c = config(65001, 1, 65002);

		c.passive = true;
		now = (dsf_instant){ NS_PER_S };
		bgp_session_init(&session[0], &c);
		bgp_session_init(&session[1], &c);
		bgp_session_start(&session[0], now);
		(void)bgp_session_accept(&session[0], now);
		open.graceful = open.graceful_ipv6 = graceful > 0;
		say(bytes, bgp_wire_open_encode(bytes, &open));
		say_type(BGP_KEEPALIVE, BGP_HEADER_SIZE);
		(void)heard(bytes, &n);
		TAP_EQ(bgp_session_accept(&session[0], now), 1, "a second connection is heard");
		size = bgp_wire_open_encode(bytes, &open);
		at = bytes;
		while (bgp_session_input(&session[0], 1, &at, &size, now, &m) > 0)
			continue;
		if (graceful) {
			TAP_OK(bgp_session_closing(&session[0], 0, now) && !session[0].notified,
				"graceful: the old one goes without a word");
			TAP_EQ(session[0].slots[1].state, BGP_OPEN_CONFIRM,
				"graceful: the new stays");
		} else {
			TAP_OK(bgp_session_established(&session[0]) == 0 &&
					session[0].slots[1].closing,
				"not graceful: the old one stays");
		}
		finish("restart");
	}
}

/* Messages cut at every place are put together; long ones too. */
static void test_pieces(void)
{
	struct bgp_open open = {
		.as = 65002, .hold_s = 90, .id = 9, .as4 = true, .ipv6 = true, .extended = true
	};
	static uint8_t bytes[3 * BGP_MESSAGE_EXTENDED_MAX];
	uint8_t out[BGP_MESSAGE_MAX];
	size_t total = 0, messages = 0, cut_at = 0;
	struct bgp_notification n;

	meet(BGP_OPEN_SENT, 90);
	say(bytes, bgp_wire_open_encode(bytes, &open));
	say_type(BGP_KEEPALIVE, BGP_HEADER_SIZE);
	memset(bytes, 0, sizeof(bytes));
	bgp_wire_header_encode(bytes, BGP_UPDATE, 65535);
	total += 65535;
	bgp_wire_header_encode(bytes + total, BGP_KEEPALIVE, 19);
	total += 19;
	bgp_wire_header_encode(bytes + total, BGP_ROUTE_REFRESH, 23);
	total += 23;
	while (cut_at < total) {
		size_t size = 1 + cut_at % 977 < total - cut_at ? 1 + cut_at % 977 : total - cut_at;
		const uint8_t *at = bytes + cut_at;
		struct bgp_message m;

		cut_at += size;
		while (bgp_session_input(&session[0], 0, &at, &size, now, &m) > 0)
			messages += m.type == BGP_UPDATE ? m.size == 65516 : m.size == 4;
	}
	TAP_EQ(messages, 2, "a long message in pieces, and a short one behind it");
	(void)heard(out, &n);
	TAP_OK(n.code == 0 && bgp_session_established(&session[0]) == 0, "and all is well");
	TAP_OK(session[0].slots[0].partial_cap <= BGP_MESSAGE_MAX, "no long buffer is kept");
	memory.fail_at = 1;
	bgp_wire_header_encode(bytes, BGP_UPDATE, 65535);
	say(bytes, 5000);
	(void)heard(out, &n);
	TAP_OK(n.code == 6 && n.subcode == 8, "no memory: %u/%u", n.code, n.subcode);
	finish("pieces");
}

int main(void)
{
	test_up();
	test_collision();
	test_wrong();
	test_timers();
	test_restart();
	test_pieces();
	return TAP_DONE();
}
