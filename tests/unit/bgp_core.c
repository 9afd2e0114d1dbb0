/*
 * Whole speakers in virtual time: routes through a super spine, an edge and a leaf, add-path,
 * aggregates, refresh, graceful restart, limits, and that nothing of a peer is left when it goes.
 */
#include "tests/unit/bgp_net.h"
#include "tests/tap.h"

enum { LEAF, EDGE, SPINE0, SPINE1, RAW, RAW2 };

#define BUILDING 4200000000u
#define SUPER    4200065536u

static struct net_raw raw, raw2;

static struct bgp_peer_config peer(unsigned to, uint32_t as, uint8_t add_path)
{
	struct dsf_ip6 address = net_address(to);
	struct bgp_peer_config c;

	bgp_peer_config_init(&c, &address, as);
	c.add_path = add_path;
	return c;
}

static void make(unsigned i, uint32_t as, const struct bgp_peer_config *peers, uint32_t peers_count,
	const struct bgp_origin *origins, uint32_t origins_count)
{
	struct bgp_config c;

	bgp_config_init(&c);
	c.memory = &net_memory.memory;
	c.as = as;
	c.id = 0x0a000000 + i;
	c.seed = i;
	c.peers = peers;
	c.peers_count = peers_count;
	c.origins = origins;
	c.origins_count = origins_count;
	net_speaker[i] = bgp_new(&c, net_now);
	for (uint32_t j = 0; j < peers_count; j++)
		bgp_peer_start(net_speaker[i], j, net_now);
}

static void finish(const char *name)
{
	for (unsigned i = 0; i < NET_SPEAKERS; i++)
		net_kill(i);
	TAP_EQ(net_memory.blocks, 0, "%s: all memory is given back", name);
	net_forbidden = false;
}

static bool next_hop_is(const struct bgp_row *row, unsigned speaker)
{
	struct dsf_ip6 a = net_address(speaker);

	return dsf_ip6_equal(&row->next_hop, &a);
}

static uint32_t hops_of(unsigned speaker, struct bgp_prefix_key key)
{
	uint32_t count = UINT32_MAX;
	struct bgp_change c;

	while (bgp_changed(net_speaker[speaker], &c)) {
		if (memcmp(&c.prefix, &key, sizeof(key)) == 0)
			count = c.hops_count;
	}
	return count;
}

/* A building with an edge and a leaf, and two super spines that another building hangs on. */
static void region(uint8_t far_count)
{
	static struct bgp_rule rule;
	static struct bgp_policy own_only = { &rule, 1, false };
	struct bgp_peer_config edge[] = { peer(LEAF, BUILDING, BGP_ADD_PATH_SEND),
		peer(SPINE0, SUPER, 0), peer(SPINE1, SUPER, 0) };
	struct bgp_peer_config leaf[] = { peer(EDGE, BUILDING, BGP_ADD_PATH_RECEIVE) };
	struct bgp_peer_config spine[] = { peer(EDGE, BUILDING, 0) };
	struct bgp_origin building = { net_prefix(1, 0, 24), 1, true };
	struct bgp_origin rack = { net_prefix(1, 7, 32), 0, true };
	struct bgp_origin far[8];

	for (uint8_t i = 0; i < 8; i++)
		far[i] = (struct bgp_origin){ net_prefix((uint8_t)(2 + i), 0, 24), 0, true };
	rule = (struct bgp_rule){
		.prefix = building.prefix, .length_min = 24, .length_max = 24, .permit = true
	};
	edge[1].export = edge[2].export = &own_only;
	make(LEAF, BUILDING, leaf, 1, &rack, 1);
	make(EDGE, BUILDING, edge, 3, &building, 1);
	make(SPINE0, SUPER, spine, 1, far, far_count);
	make(SPINE1, SUPER, spine, 1, far, far_count);
	net_pass(NS_PER_S);
}

static void test_region(void)
{
	struct bgp_row row;
	struct bgp_as_walk walk;
	struct bgp_peer_view view;
	uint32_t as = 0;

	region(3);
	TAP_OK(net_up(LEAF, 0) && net_up(EDGE, 0) && net_up(EDGE, 1) && net_up(EDGE, 2),
		"all sessions are up");
	TAP_EQ(net_paths(LEAF, net_prefix(2, 0, 24), &row), 2, "the leaf has a path by each spine");
	TAP_OK(row.best && (next_hop_is(&row, SPINE0) || next_hop_is(&row, SPINE1)),
		"with the next hop unchanged");
	TAP_EQ(bgp_attributes_get32(&row.attributes, BGP_LOCAL_PREF, 0), 100,
		"LOCAL_PREF is there");
	TAP_EQ(hops_of(LEAF, net_prefix(2, 0, 24)), 2, "and forwards to both");
	TAP_EQ(net_paths(EDGE, net_prefix(1, 7, 32), &row), 1, "the edge knows the leaf's prefix");
	TAP_OK(next_hop_is(&row, LEAF), "by the leaf");
	TAP_EQ(net_paths(SPINE0, net_prefix(1, 0, 24), &row), 1, "a spine has the building");
	TAP_OK(next_hop_is(&row, EDGE), "by the edge");
	bgp_as_walk_start(&walk, &row.attributes);
	TAP_OK(bgp_as_walk_next(&walk, &as) && as == BUILDING && !bgp_as_walk_next(&walk, &as),
		"from its AS alone");
	TAP_EQ(net_paths(SPINE0, net_prefix(1, 7, 32), &row), 0, "but not the leaf's prefix");
	TAP_EQ(net_paths(SPINE0, net_prefix(3, 0, 24), &row), 1,
		"and nothing of the other spine (same AS)");
	bgp_peer_view(net_speaker[EDGE], 0, net_now, &view);
	TAP_OK(view.told == 7 && view.told_all && view.add_path_send,
		"told: %u paths of three prefixes, and the building", view.told);

	bgp_originate(net_speaker[LEAF], 0, false, net_now);
	net_pass(NS_PER_S);
	TAP_EQ(net_paths(SPINE0, net_prefix(1, 0, 24), &row), 0,
		"without its only leaf's prefix the building is withdrawn");
	bgp_originate(net_speaker[LEAF], 0, true, net_now);
	net_pass(NS_PER_S);
	TAP_EQ(net_paths(SPINE0, net_prefix(1, 0, 24), &row), 1, "and comes back");
	bgp_originate(net_speaker[EDGE], 0, false, net_now);
	net_pass(NS_PER_S);
	TAP_EQ(net_paths(SPINE0, net_prefix(1, 0, 24), &row), 0, "disabled it goes too");

	bgp_originate(net_speaker[SPINE0], 1, false, net_now);
	net_pass(NS_PER_S);
	TAP_EQ(net_paths(LEAF, net_prefix(3, 0, 24), &row), 1, "one spine's route goes");
	TAP_OK(next_hop_is(&row, SPINE1), "the other's stays");
	TAP_EQ(hops_of(LEAF, net_prefix(3, 0, 24)), 1, "and carries all");
	bgp_originate(net_speaker[SPINE1], 1, false, net_now);
	net_pass(NS_PER_S);
	TAP_EQ(net_paths(LEAF, net_prefix(3, 0, 24), &row), 0, "both are gone");
	TAP_EQ(hops_of(LEAF, net_prefix(3, 0, 24)), 0, "nothing to forward to");
	finish("region");
}

/* A session of the edge that ends hard takes its paths with it; one that was graceful doesn't. */
static void test_graceful(void)
{
	struct bgp_row row;
	struct bgp_peer_view view;
	uint64_t blocks;

	region(2);
	net_forbidden = true;
	net_cut(EDGE, SPINE0);
	net_pass(NS_PER_S);
	bgp_peer_view(net_speaker[EDGE], 1, net_now, &view);
	TAP_OK(view.state != BGP_ESTABLISHED && view.paths == 2 && view.paths_stale == 2,
		"helper: paths stay, stale");
	TAP_EQ(net_paths(LEAF, net_prefix(2, 0, 24), &row), 2, "helper: the leaf keeps both");
	net_forbidden = false;
	net_pass(20 * NS_PER_S);
	bgp_peer_view(net_speaker[EDGE], 1, net_now, &view);
	TAP_OK(view.state == BGP_ESTABLISHED && view.paths == 2 && view.paths_stale == 0,
		"helper: fresh again after it came back");
	net_forbidden = true;
	net_cut(EDGE, SPINE0);
	net_pass((BGP_RESTART_S + 1) * NS_PER_S);
	bgp_peer_view(net_speaker[EDGE], 1, net_now, &view);
	TAP_EQ(view.paths, 0, "helper: who doesn't come back in time is forgotten");
	TAP_EQ(net_paths(LEAF, net_prefix(2, 0, 24), &row), 1, "helper: also by the leaf");
	blocks = net_memory.blocks;
	net_forbidden = false;
	net_pass(20 * NS_PER_S);
	bgp_peer_stop(net_speaker[SPINE0], 0, BGP_CEASE_SHUTDOWN, "maintenance", net_now);
	net_pass(NS_PER_S);
	bgp_peer_view(net_speaker[EDGE], 1, net_now, &view);
	TAP_OK(view.paths == 0 && view.session->received.subcode == BGP_CEASE_SHUTDOWN,
		"a shutdown isn't graceful");
	TAP_OK(net_memory.blocks <= blocks + 8, "and leaves nothing behind");
	finish("graceful");
}

static void make_dut(uint8_t add_path, uint32_t paths_max)
{
	struct bgp_peer_config peers[] = { peer(RAW, 65001, add_path),
		peer(RAW2, 65002, add_path) };

	peers[0].passive = peers[1].passive = true;
	peers[0].paths_max = paths_max;
	peers[0].idle_ns = 60 * NS_PER_S;
	make(EDGE, 65000, peers, 2, NULL, 0);
}

static void test_add_path(void)
{
	struct bgp_open open = net_open(65001, 1), open2 = net_open(65002, 2);
	struct bgp_nlri nlri = { net_prefix(9, 0, 32), 0 };
	uint8_t attributes[256];
	size_t size = net_attributes(attributes, 65001, UINT32_MAX, 0);
	struct bgp_row row;

	make_dut(BGP_ADD_PATH_SEND | BGP_ADD_PATH_RECEIVE, 1000);
	open.add_path = BGP_ADD_PATH_SEND;
	open2.add_path = BGP_ADD_PATH_RECEIVE;
	TAP_OK(net_raw_open(&raw, EDGE, RAW, &open, 65000), "the sender is up");
	TAP_OK(net_raw_open(&raw2, EDGE, RAW2, &open2, 65000), "the receiver is up");
	for (nlri.path_id = 1; nlri.path_id <= 20; nlri.path_id++)
		net_raw_announce(
			&raw, &nlri, true, net_address(100 + nlri.path_id), attributes, size);
	net_raw_wait(&raw2);
	TAP_EQ(net_paths(EDGE, nlri.key, &row), 20, "20 paths are taken");
	TAP_EQ(hops_of(EDGE, nlri.key), 20, "and used");
	TAP_OK(raw2.announced == 20 && raw2.withdrawn == 0, "20 are told: %u", raw2.announced);
	nlri.path_id = 2;
	net_raw_withdraw(&raw, &nlri, true);
	net_raw_wait(&raw2);
	TAP_OK(raw2.announced == 20 && raw2.withdrawn == 1, "one is withdrawn, and no other");
	net_raw_withdraw(&raw, &nlri, true);
	net_raw_wait(&raw2);
	TAP_EQ(raw2.withdrawn, 1, "withdrawn again: nothing");
	nlri.path_id = 3;
	net_raw_announce(&raw, &nlri, true, net_address(103), attributes, size);
	net_raw_wait(&raw2);
	TAP_EQ(raw2.announced, 20, "told again as it was: nothing");
	size = net_attributes(attributes, 65001, 5, 0);
	net_raw_announce(&raw, &nlri, true, net_address(103), attributes, size);
	net_raw_wait(&raw2);
	TAP_EQ(raw2.announced, 20, "another MED isn't told to another AS");
	net_raw_announce(&raw, &nlri, true, net_address(200), attributes, size);
	net_raw_wait(&raw2);
	TAP_EQ(hops_of(EDGE, nlri.key), 18, "a path with a higher MED isn't used");
	(void)bgp_wire_refuse(&raw.notification, BGP_ERR_CEASE, BGP_CEASE_SHUTDOWN, NULL, 0);
	{
		uint8_t bytes[BGP_MESSAGE_MAX];

		net_raw_say(&raw, bytes, bgp_wire_notification_encode(bytes, &raw.notification));
	}
	net_raw_wait(&raw2);
	TAP_EQ(raw2.withdrawn, 20, "with the session all are withdrawn");
	TAP_EQ(net_paths(EDGE, nlri.key, &row), 0, "and gone");
	finish("add-path");
}

/* Without add-path: the best alone, implicit replacement, split horizon, loops, and MED. */
static void test_best(void)
{
	struct bgp_open open = net_open(65001, 1), open2 = net_open(65002, 2);
	struct bgp_nlri nlri = { net_prefix(9, 0, 32), 0 };
	uint8_t attributes[256];
	size_t size;
	struct bgp_row row;

	make_dut(0, 1000);
	TAP_OK(net_raw_open(&raw, EDGE, RAW, &open, 65000) &&
			net_raw_open(&raw2, EDGE, RAW2, &open2, 65000),
		"two peers");
	size = net_attributes(attributes, 65001, 50, 0);
	net_raw_announce(&raw, &nlri, false, net_address(RAW), attributes, size);
	net_raw_wait(&raw2);
	TAP_OK(raw2.announced == 1 && bgp_attributes_find(&raw2.attributes, BGP_MED) == NULL &&
			bgp_attributes_find(&raw2.attributes, BGP_LOCAL_PREF) == NULL &&
			bgp_attributes_find(&raw2.attributes, BGP_AS_PATH)->size == 10,
		"told with our AS in front, without MED and LOCAL_PREF");
	net_raw_listen(&raw);
	TAP_EQ(raw.announced + raw.withdrawn, 0, "nothing goes back to where it came from");
	size = net_attributes(attributes, 65002, 10, 0);
	net_raw_announce(&raw2, &nlri, false, net_address(RAW2), attributes, size);
	net_raw_wait(&raw2);
	net_raw_listen(&raw);
	(void)net_paths(EDGE, nlri.key, &row);
	TAP_EQ(row.peer, 0, "MEDs of different ASes don't compare: the lower id is best");
	TAP_EQ(hops_of(EDGE, nlri.key), 2, "both are used");
	net_raw_withdraw(&raw, &nlri, false);
	net_raw_wait(&raw);
	net_raw_listen(&raw2);
	TAP_OK(raw.announced == 1 && raw2.withdrawn == 1,
		"the other route is best: told to the first, gone for who told it");
	net_raw_withdraw(&raw2, &nlri, false);
	net_raw_wait(&raw);
	TAP_EQ(raw.withdrawn, 1, "the last one is withdrawn");
	size = net_attributes(attributes, 65001, UINT32_MAX, 0);
	{
		uint8_t path[] = { 2, 2, 0, 0, 0xfd, 0xe9, 0, 0, 0xfd, 0xe8 };
		struct bgp_attributes a;
		struct dsf_writer w = { attributes, attributes + sizeof(attributes), false };
		uint8_t copy[256];

		memcpy(copy, attributes, size);
		bgp_attributes_read(&a, copy, size);
		bgp_attributes_set(&a, BGP_AS_PATH, BGP_FLAG_TRANSITIVE, path, sizeof(path));
		bgp_attributes_write(&a, &w);
		net_raw_announce(&raw, &nlri, false, net_address(RAW), attributes,
			(size_t)(w.at - attributes));
	}
	net_raw_wait(&raw);
	TAP_EQ(net_paths(EDGE, nlri.key, &row), 0, "a path with our AS isn't taken");
	finish("best");
}

static void test_refresh(void)
{
	struct bgp_open open = net_open(65001, 1), open2 = net_open(65002, 2);
	struct bgp_nlri nlri = { net_prefix(9, 0, 32), 0 };
	uint8_t attributes[256], bytes[BGP_MESSAGE_MAX];
	size_t size = net_attributes(attributes, 65001, UINT32_MAX, 0);
	struct bgp_row row;

	make_dut(0, 1000);
	open.enhanced = open2.enhanced = open2.graceful = true;
	TAP_OK(net_raw_open(&raw, EDGE, RAW, &open, 65000) &&
			net_raw_open(&raw2, EDGE, RAW2, &open2, 65000),
		"two peers");
	TAP_OK(raw.open.enhanced && raw.open.graceful && raw.open.extended && raw.open.refresh &&
			raw.open.as4 && raw.open.ipv6,
		"OPEN offers it all, graceful restart with enhanced refresh");
	net_raw_wait(&raw2);
	TAP_EQ(raw2.end_of_ribs, 1, "End-of-RIB, though there is nothing");
	TAP_EQ(raw.end_of_ribs, 0, "and none for who doesn't know it");
	for (uint8_t i = 0; i < 3; i++) {
		nlri.key = net_prefix(9, i, 32);
		net_raw_announce(&raw, &nlri, false, net_address(RAW), attributes, size);
	}
	net_raw_wait(&raw2);
	TAP_OK(raw2.announced == 3 && raw2.begins == 0, "three routes");
	net_raw_say(&raw2, bytes, bgp_wire_refresh_encode(bytes, BGP_REFRESH_REQUEST));
	net_raw_listen(&raw2);
	TAP_OK(raw2.announced == 6 && raw2.begins == 1 && raw2.ends == 1 && raw2.end_of_ribs == 1,
		"asked for: told again, between begin and end");
	bgp_peer_refresh(net_speaker[EDGE], 0);
	net_raw_listen(&raw);
	TAP_EQ(raw.refreshes, 1, "we ask");
	net_raw_say(&raw, bytes, bgp_wire_refresh_encode(bytes, BGP_REFRESH_BEGIN));
	net_raw_announce(&raw, &nlri, false, net_address(RAW), attributes, size);
	net_raw_wait(&raw2);
	TAP_EQ(net_paths(EDGE, net_prefix(9, 0, 32), &row), 1, "before the end nothing goes");
	net_raw_say(&raw, bytes, bgp_wire_refresh_encode(bytes, BGP_REFRESH_END));
	net_raw_wait(&raw2);
	TAP_OK(raw2.withdrawn == 2 && net_paths(EDGE, net_prefix(9, 0, 32), &row) == 0 &&
			net_paths(EDGE, net_prefix(9, 2, 32), &row) == 1,
		"at the end what wasn't told again goes");
	net_raw_say(&raw, bytes, bgp_wire_refresh_encode(bytes, (enum bgp_refresh_subtype)9));
	TAP_OK(net_up(EDGE, 0), "an unknown subtype is ignored");
	finish("refresh");
}

static void test_limits(void)
{
	struct bgp_open open = net_open(65001, 1);
	struct bgp_nlri nlri = { net_prefix(9, 0, 32), 0 };
	uint8_t attributes[256];
	size_t size = net_attributes(attributes, 65001, UINT32_MAX, 0), before;
	struct bgp_peer_view view;

	make_dut(0, 100);
	before = net_memory.live;
	TAP_OK(net_raw_open(&raw, EDGE, RAW, &open, 65000), "a peer");
	for (uint8_t i = 0; i < 101 && !raw.closed; i++) {
		nlri.key = net_prefix(9, i, 32);
		net_raw_announce(&raw, &nlri, false, net_address(RAW), attributes, size);
		net_raw_listen(&raw);
		TAP_EQ(raw.closed, i == 100, "prefix %u of 100", i + 1u);
	}
	TAP_OK(raw.notification.code == 6 && raw.notification.subcode == 1 &&
			raw.notification.size == 7 && raw.notification.data[6] == 100,
		"too many end the session, with the limit as data");
	net_raw_wait(&raw);
	while (hops_of(EDGE, nlri.key) != UINT32_MAX)
		continue;
	TAP_EQ(net_memory.live, before, "and leave no byte");
	bgp_peer_view(net_speaker[EDGE], 0, net_now, &view);
	TAP_EQ(view.state, BGP_IDLE, "it is held down");
	TAP_OK(!net_raw_open(&raw, EDGE, RAW, &open, 65000), "and not taken back");
	net_now = dsf_time_after(net_now, 60 * NS_PER_S);
	bgp_expire(net_speaker[EDGE], net_now);
	TAP_OK(net_raw_open(&raw, EDGE, RAW, &open, 65000), "but for its time");
	finish("limits");
}

/* A restarting speaker decides only when its peers have told all (RFC 4724 4.1). */
static void test_restarting(void)
{
	struct bgp_peer_config peers[] = { peer(RAW, 65001, 0), peer(RAW2, 65002, 0) };
	struct bgp_open open = net_open(65001, 1), open2 = net_open(65002, 2);
	struct bgp_nlri nlri = { net_prefix(9, 0, 32), 0 };
	uint8_t attributes[256];
	size_t size = net_attributes(attributes, 65001, UINT32_MAX, 0);
	struct bgp_config c;

	peers[0].passive = peers[1].passive = true;
	bgp_config_init(&c);
	c.memory = &net_memory.memory;
	c.as = 65000;
	c.id = 77;
	c.peers = peers;
	c.peers_count = 2;
	c.restarting = true;
	net_speaker[EDGE] = bgp_new(&c, net_now);
	bgp_peer_start(net_speaker[EDGE], 0, net_now);
	bgp_peer_start(net_speaker[EDGE], 1, net_now);
	open.graceful = open2.graceful = true;
	TAP_OK(net_raw_open(&raw, EDGE, RAW, &open, 65000) &&
			net_raw_open(&raw2, EDGE, RAW2, &open2, 65000),
		"two peers");
	TAP_OK(raw.open.restarting && raw.open.graceful_ipv6 && raw.open.forwarding,
		"OPEN says that we have restarted and kept forwarding");
	net_raw_announce(&raw, &nlri, false, net_address(RAW), attributes, size);
	net_raw_withdraw(&raw, NULL, false);
	net_raw_wait(&raw2);
	TAP_OK(hops_of(EDGE, nlri.key) == UINT32_MAX && raw2.updates == 0,
		"nothing is decided or told before the second has told all");
	net_raw_withdraw(&raw2, NULL, false);
	net_raw_wait(&raw2);
	TAP_EQ(hops_of(EDGE, nlri.key), 1, "then it is");
	TAP_OK(raw2.announced == 1 && raw2.end_of_ribs == 1, "and told, with End-of-RIB");
	finish("restarting");
}

/* A blocked peer gets the latest state only, and withdrawals of what it had. */
static void test_blocked(void)
{
	struct bgp_open open = net_open(65001, 1), open2 = net_open(65002, 2);
	struct bgp_nlri nlri = { net_prefix(9, 0, 32), 0 };
	uint8_t attributes[256];
	size_t size = net_attributes(attributes, 65001, UINT32_MAX, 0);
	struct bgp_peer_view view;

	make_dut(0, 1000);
	TAP_OK(net_raw_open(&raw, EDGE, RAW, &open, 65000) &&
			net_raw_open(&raw2, EDGE, RAW2, &open2, 65000),
		"two peers");
	net_raw_announce(&raw, &nlri, false, net_address(RAW), attributes, size);
	net_raw_wait(&raw2);
	bgp_blocked(net_speaker[EDGE], raw2.stream, true, net_now);
	for (unsigned i = 0; i < 50; i++) {
		net_raw_withdraw(&raw, &nlri, false);
		net_raw_wait(&raw2);
		net_raw_announce(&raw, &nlri, false, net_address(200 + i), attributes, size);
		net_raw_wait(&raw2);
	}
	net_raw_withdraw(&raw, &nlri, false);
	net_raw_wait(&raw2);
	bgp_peer_view(net_speaker[EDGE], 1, net_now, &view);
	TAP_OK(raw2.announced == 1 && raw2.withdrawn == 0 && !view.told_all, "blocked: nothing");
	bgp_blocked(net_speaker[EDGE], raw2.stream, false, net_now);
	net_raw_listen(&raw2);
	TAP_OK(raw2.announced == 1 && raw2.withdrawn == 1, "then the end of it: %u %u",
		raw2.announced, raw2.withdrawn);
	bgp_peer_view(net_speaker[EDGE], 1, net_now, &view);
	TAP_OK(view.told_all && view.told == 0, "all is told");
	finish("blocked");
}

/* A peer of 2-octet AS numbers, and attributes that are too long for who knows no long messages. */
static void test_others(void)
{
	static uint8_t attributes[6000], message[BGP_MESSAGE_EXTENDED_MAX], communities[5000];
	struct bgp_open open = net_open(65001, 1), open2 = net_open(65002, 2);
	struct bgp_nlri nlri = { net_prefix(9, 0, 32), 0 };
	const struct bgp_attribute *path;
	struct dsf_writer w = { attributes, attributes + sizeof(attributes), false };
	struct bgp_update_writer u;
	struct bgp_attributes a;
	struct dsf_ip6 hop = net_address(RAW);
	uint8_t base[256], far[] = { 2, 2, 0, 0, 0xfd, 0xe9, 0xfa, 0x56, 0xea, 1 };
	size_t size;

	make_dut(0, 1000);
	open.extended = true;
	open2.as4 = false;
	TAP_OK(net_raw_open(&raw, EDGE, RAW, &open, 65000) &&
			net_raw_open(&raw2, EDGE, RAW2, &open2, 65000),
		"two peers");
	bgp_attributes_read(&a, base, net_attributes(base, 65001, UINT32_MAX, 0));
	bgp_attributes_set(&a, BGP_AS_PATH, BGP_FLAG_TRANSITIVE, far, sizeof(far));
	bgp_attributes_write(&a, &w);
	net_raw_announce(&raw, &nlri, false, hop, attributes, (size_t)(w.at - attributes));
	net_raw_wait(&raw2);
	path = bgp_attributes_find(&raw2.attributes, BGP_AS_PATH);
	TAP_OK(raw2.announced == 1 && path != NULL && path->size == 14 &&
			dsf_load_be32(bgp_attribute_bytes(path) + 10) == 4200000001,
		"2 octets: the path is put together again");
	bgp_attributes_set(&a, BGP_COMMUNITIES, 0xc0, communities, sizeof(communities));
	w.at = attributes;
	bgp_attributes_write(&a, &w);
	TAP_OK(bgp_update_reach(&u, message, sizeof(message), false, &hop, attributes,
		       (size_t)(w.at - attributes)) &&
			bgp_update_add(&u, &nlri),
		"5,000 octets of communities");
	size = bgp_update_finish(&u);
	net_raw_say(&raw, message, size);
	net_raw_wait(&raw2);
	TAP_OK(raw2.announced == 1 && raw2.withdrawn == 1,
		"too long for the other: what it had is withdrawn");
	TAP_OK(!raw.closed && !raw2.closed && raw2.largest <= BGP_MESSAGE_MAX,
		"and nobody is the worse");
	finish("others");
}

/* A prefix that an UPDATE withdraws and announces is announced (RFC 4271 9, 7606 5.1). */
static void test_both(void)
{
	struct bgp_open open = net_open(65001, 1);
	struct bgp_nlri nlri = { net_prefix(9, 0, 32), 0 };
	uint8_t attributes[256], message[BGP_MESSAGE_MAX],
		unreach[] = { 0x80, 15, 8, 0, 2, 1, 32, 0x20, 2, 9, 0 };
	size_t size = net_attributes(attributes, 65001, UINT32_MAX, 0);
	struct dsf_ip6 hop = net_address(RAW);
	struct bgp_update_writer u;
	struct bgp_row row;

	make_dut(0, 1000);
	TAP_OK(net_raw_open(&raw, EDGE, RAW, &open, 65000), "a peer");
	memcpy(attributes + size, unreach, sizeof(unreach));
	(void)bgp_update_reach(
		&u, message, sizeof(message), false, &hop, attributes, size + sizeof(unreach));
	(void)bgp_update_add(&u, &nlri);
	net_raw_say(&raw, message, bgp_update_finish(&u));
	net_raw_wait(&raw);
	TAP_EQ(net_paths(EDGE, nlri.key, &row), 1, "withdrawn and announced: announced");
	finish("both");
}

/* Whatever allocation fails, nothing leaks and everything is right once there is memory again. */
static void test_memory(void)
{
	struct bgp_row row;

	region(3);
	for (unsigned long nth = 1; nth < 200; nth += 3) {
		test_memory_fail_from(&net_memory, nth);
		net_cut(EDGE, SPINE0);
		net_cut(EDGE, LEAF);
		net_pass(10 * NS_PER_S);
		test_memory_fail_from(&net_memory, 0);
		net_pass(30 * NS_PER_S);
		if (net_paths(LEAF, net_prefix(2, 0, 24), &row) != 2 ||
			net_paths(SPINE0, net_prefix(1, 0, 24), &row) != 1) {
			TAP_OK(false, "out of memory from allocation %lu on", nth);
			break;
		}
	}
	TAP_OK(net_paths(LEAF, net_prefix(3, 0, 24), &row) == 2, "out of memory: recovers");
	finish("memory");
	for (unsigned long nth = 1; nth < 12; nth++) {
		struct bgp_peer_config one = peer(RAW, 65001, 0);
		struct bgp_origin origin = { net_prefix(1, 0, 24), 0, true };
		struct bgp_config c;

		bgp_config_init(&c);
		c.memory = &net_memory.memory;
		c.as = 1;
		c.id = 1;
		c.peers = &one;
		c.peers_count = c.origins_count = 1;
		c.origins = &origin;
		net_memory.fail_at = nth;
		net_speaker[EDGE] = bgp_new(&c, net_now);
		TAP_EQ(net_speaker[EDGE] == NULL, net_memory.failed, "bgp_new: allocation %lu",
			nth);
		net_memory.fail_at = 0;
		net_memory.failed = false;
		finish("bgp_new");
	}
}

int main(void)
{
	net_now = (dsf_instant){ NS_PER_S };
	test_region();
	test_graceful();
	test_add_path();
	test_best();
	test_refresh();
	test_limits();
	test_restarting();
	test_blocked();
	test_others();
	test_both();
	test_memory();
	return TAP_DONE();
}
