/*
 * A peer that means harm: it ends, what it held is given back to the last octet, and the routes of
 * the other peer were never touched.
 */
#include "tests/unit/bgp_net.h"
#include "tests/tap.h"

#define SPEAKER_AS 65000u
#define GOOD_AS    65001u
#define BAD_AS     65002u
#define PATHS_MAX  1000u

enum { SPEAKER, GOOD, BAD };

static struct net_raw good, bad;
static size_t live_before, live_most;

static void make(void)
{
	struct dsf_ip6 addresses[] = { net_address(GOOD), net_address(BAD) };
	struct bgp_peer_config peers[2];
	struct bgp_config c;

	bgp_config_init(&c);
	c.memory = &net_memory.memory;
	c.as = SPEAKER_AS;
	c.id = 0x0a000001;
	c.peers = peers;
	c.peers_count = 2;
	for (unsigned i = 0; i < 2; i++) {
		bgp_peer_config_init(&peers[i], &addresses[i], i == 0 ? GOOD_AS : BAD_AS);
		peers[i].passive = true;
		peers[i].add_path = BGP_ADD_PATH_RECEIVE | BGP_ADD_PATH_SEND;
		peers[i].paths_max = i == 0 ? BGP_PATHS_MAX : PATHS_MAX;
		peers[i].idle_ns = NS_PER_S;
		peers[i].hold_s = 0;
	}
	net_speaker[SPEAKER] = bgp_new(&c, net_now);
	bgp_peer_start(net_speaker[SPEAKER], 0, net_now);
	bgp_peer_start(net_speaker[SPEAKER], 1, net_now);
}

static struct bgp_open open_of(uint32_t as)
{
	struct bgp_open open = net_open(as, as);

	open.extended = true;
	open.add_path = BGP_ADD_PATH_RECEIVE | BGP_ADD_PATH_SEND;
	return open;
}

static void announce(struct net_raw *raw, uint32_t as, uint32_t number)
{
	struct bgp_nlri nlri = { { { { 0x20, 2, (uint8_t)(number >> 24), (uint8_t)(number >> 16),
					   (uint8_t)(number >> 8), (uint8_t)number } },
					 48 },
		number };
	uint8_t attributes[256];
	size_t size = net_attributes(attributes, as, number, 0);

	net_raw_announce(raw, &nlri, true, net_address(GOOD), attributes, size);
}

static void withdraw(struct net_raw *raw, uint32_t number)
{
	struct bgp_nlri nlri = { { { { 0x20, 2, (uint8_t)(number >> 24), (uint8_t)(number >> 16),
					   (uint8_t)(number >> 8), (uint8_t)number } },
					 48 },
		number };

	net_raw_withdraw(raw, &nlri, true);
}

static void look(void)
{
	live_most = net_memory.live > live_most ? net_memory.live : live_most;
}

/* Decisions, and nobody forwards by them. */
static void rest(void)
{
	struct bgp_change change;

	net_raw_wait(&good);
	while (bgp_changed(net_speaker[SPEAKER], &change))
		continue;
}

/* The good peer tells routes, and withdraws all but ten: what its own paths hold is as large as it
 * is going to be. */
static void come_and_go(uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		announce(&good, GOOD_AS, i);
	rest();
	for (uint32_t i = 10; i < count; i++)
		withdraw(&good, i);
	rest();
}

/* The good peer has told ten routes; the bad one isn't there yet. */
static void begin(void)
{
	struct bgp_open open = open_of(GOOD_AS);

	make();
	(void)net_raw_open(&good, SPEAKER, GOOD, &open, SPEAKER_AS);
	come_and_go(300);
	come_and_go(30);
	live_before = live_most = net_memory.live;
}

static bool come(void)
{
	struct bgp_open open = open_of(BAD_AS);

	return net_raw_open(&bad, SPEAKER, BAD, &open, SPEAKER_AS);
}

/* The bad peer's connection breaks, where it hasn't ended. */
static void end(const char *name)
{
	struct bgp_peer_view view;

	if (!bad.closed)
		bgp_closed(net_speaker[SPEAKER], bad.stream, net_now);
	net_now = dsf_time_after(net_now, NS_PER_S);
	rest();
	bgp_peer_view(net_speaker[SPEAKER], 0, net_now, &view);
	TAP_OK(view.state == BGP_ESTABLISHED && view.paths == 10, "%s: the other peer has all",
		name);
	TAP_OK(net_memory.live <= live_before, "%s: %zu octets are held, %zu were before", name,
		net_memory.live, live_before);
	net_kill(SPEAKER);
	TAP_EQ(net_memory.blocks, 0, "%s: and none is left at the end", name);
	memset(net_raws, 0, sizeof(net_raws));
}

static void test_paths(void)
{
	begin();
	(void)come();
	for (uint32_t i = 0; i <= PATHS_MAX; i++)
		announce(&bad, BAD_AS, 0x10000 + i);
	net_raw_listen(&bad);
	TAP_OK(bad.closed && bad.notification.code == BGP_ERR_CEASE &&
			bad.notification.subcode == BGP_CEASE_PREFIXES,
		"too many paths end the session");
	end("too many paths");
}

/* One prefix by many ids, of many MEDs: what a decision over them needs goes with them. */
static void test_ids(void)
{
	struct bgp_nlri nlri = { net_prefix(9, 8, 48), 0 };
	uint8_t attributes[256];

	begin();
	(void)come();
	for (uint32_t i = 0; i < PATHS_MAX; i++) {
		size_t size = net_attributes(attributes, BAD_AS, i, 0);
		struct dsf_ip6 hop = net_address(BAD);

		nlri.path_id = i;
		dsf_store_be32(hop.bytes + 8, i);
		net_raw_announce(&bad, &nlri, true, hop, attributes, size);
	}
	rest();
	look();
	TAP_OK(live_most - live_before > PATHS_MAX * sizeof(struct dsf_ip6), "many ids");
	end("many ids");
}

/* Each route with 60 KB of attributes that nobody else has. */
static void test_attributes(void)
{
	static uint8_t message[BGP_MESSAGE_EXTENDED_MAX], junk[60000], attributes[61000];
	struct bgp_update_writer u;
	struct bgp_nlri nlri = { net_prefix(9, 9, 48), 0 };
	struct dsf_ip6 hop = net_address(BAD);
	uint32_t i = 0;

	begin();
	(void)come();
	for (; !bad.closed && i < PATHS_MAX; i++) {
		size_t size = net_attributes(attributes, BAD_AS, i, 0);
		struct dsf_writer w = { attributes + size, attributes + sizeof(attributes), false };

		dsf_store_be32(junk, i);
		bgp_attribute_write(&w, 0xf0, BGP_FLAG_OPTIONAL | BGP_FLAG_TRANSITIVE, junk,
			i % 2 == 0 ? sizeof(junk) : sizeof(junk) - 1);
		nlri.path_id = i;
		if (!bgp_update_reach(&u, message, sizeof(message), true, &hop, attributes,
			    (size_t)(w.at - attributes)) ||
			!bgp_update_add(&u, &nlri))
			abort();
		net_raw_say(&bad, message, bgp_update_finish(&u));
		look();
		net_raw_listen(&bad);
	}
	TAP_OK(bad.closed || i == PATHS_MAX, "%u routes with 60 KB each", i);
	TAP_OK(live_most - live_before < BGP_BUNDLE_BYTES + (1u << 20),
		"they never hold more than the limit");
	end("large attributes");
}

/* Octet by octet, a message that never ends. */
static void test_drip(void)
{
	static uint8_t message[BGP_MESSAGE_EXTENDED_MAX];

	begin();
	(void)come();
	bgp_wire_header_encode(message, BGP_UPDATE, sizeof(message));
	for (size_t i = 0; i + 1 < sizeof(message); i++) {
		net_raw_say(&bad, message + i, 1);
		look();
	}
	TAP_OK(live_most - live_before < 2 * BGP_MESSAGE_EXTENDED_MAX,
		"a message under way holds its size");
	end("octet by octet");
}

/* Connections that say nothing: a peer has two at most, and they end by themselves. */
static void test_connections(void)
{
	struct dsf_ip6 local = net_address(SPEAKER), remote = net_address(BAD),
		       stranger = net_address(BAD + 1);
	unsigned taken = 0, known = 0;

	begin();
	(void)come();
	net_raw_say(&bad, (const uint8_t[]){ 0xff }, 1);
	for (unsigned i = 0; i < 5000; i++) {
		taken += bgp_accept(net_speaker[SPEAKER], &remote, &local, net_now) >= 0;
		known += bgp_accept(net_speaker[SPEAKER], &stranger, &local, net_now) >= 0;
		look();
	}
	TAP_OK(taken <= 1 && known == 0, "of 10,000 connections %u are taken", taken);
	TAP_OK(live_most - live_before < 65536, "they hold next to nothing");
	net_now = dsf_time_after(net_now, BGP_OPEN_HOLD_NS);
	bgp_expire(net_speaker[SPEAKER], net_now);
	rest();
	end("connections");
}

/* It doesn't read, while the other peer's routes come and go. */
static void test_deaf(void)
{
	struct bgp_peer_view view;

	begin();
	(void)come();
	bgp_blocked(net_speaker[SPEAKER], bad.stream, true, net_now);
	for (uint32_t i = 0; i < 20000; i++) {
		announce(&good, GOOD_AS, 0x20000 + i);
		if (i % 100 == 99)
			rest();
		look();
		withdraw(&good, 0x20000 + i);
	}
	rest();
	TAP_OK(live_most - live_before < 20000 * 512, "what waits for it is small");
	net_now = dsf_time_after(net_now, BGP_SEND_HOLD_NS);
	bgp_expire(net_speaker[SPEAKER], net_now);
	rest();
	bgp_peer_view(net_speaker[SPEAKER], 1, net_now, &view);
	TAP_OK(view.state != BGP_ESTABLISHED, "who doesn't read loses the session");
	end("not reading");
}

/* Refreshes without end, which it doesn't hear. */
static void test_refreshes(void)
{
	uint8_t message[BGP_MESSAGE_MAX];
	size_t size = bgp_wire_refresh_encode(message, BGP_REFRESH_REQUEST);

	begin();
	(void)come();
	live_before = net_memory.live;
	bgp_blocked(net_speaker[SPEAKER], bad.stream, true, net_now);
	for (unsigned i = 0; i < 10000; i++) {
		net_raw_say(&bad, message, size);
		look();
	}
	TAP_EQ(live_most, live_before, "10,000 refreshes hold nothing");
	bgp_closed(net_speaker[SPEAKER], bad.stream, net_now);
	bad.closed = true;
	rest();
	live_before = net_memory.live;
	end("refreshes");
}

/* Announced and withdrawn, over and over: nothing piles up. */
static void test_flaps(void)
{
	begin();
	(void)come();
	for (uint32_t i = 0; i < 20000; i++) {
		announce(&bad, BAD_AS, 0x30000 + i % 7);
		withdraw(&bad, 0x30000 + i % 7);
		look();
	}
	TAP_OK(live_most - live_before < 65536, "20,000 flaps of 7 routes hold next to nothing");
	end("flaps");
}

int main(void)
{
	test_paths();
	test_ids();
	test_attributes();
	test_drip();
	test_connections();
	test_deaf();
	test_refreshes();
	test_flaps();
	return TAP_DONE();
}
