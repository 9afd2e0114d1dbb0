/*
 * A speaker among peers that say anything, at any time. Two peers speak whole messages, half ones
 * and noise; connections come and go, block, and time passes. At the end nothing may be left, and
 * after each step what every peer was told must be what its group says, as far as it was told.
 */
#include <stdlib.h>
#include <string.h>
#include "bgp/bgp.h"
#include "bgp/update.h"
#include "tests/memory.h"

#define PEERS   3u
#define STREAMS 4u
#define AS      65000u
#define ROUTES  64u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct test_memory memory = TEST_MEMORY(memory);
static uint8_t scratch[4 * 65536];

/* What a peer knows, by what it was told: a set of (prefix, path id). */
struct listener {
	uint32_t stream;
	bool up, add_path;
	uint32_t count;
	struct bgp_nlri routes[ROUTES];
	bool overflow;
};

static struct listener listeners[PEERS];

static void require(bool held)
{
	if (!held)
		abort();
}

static struct listener *listener_of(uint32_t stream)
{
	for (uint32_t i = 0; i < PEERS; i++) {
		if (listeners[i].up && listeners[i].stream == stream)
			return &listeners[i];
	}
	return NULL;
}

static void learn(struct listener *l, struct bgp_span span, bool withdrawn)
{
	struct dsf_cursor in = bgp_span_read(span);
	struct bgp_nlri nlri;
	uint32_t i;

	while (bgp_nlri_decode(&in, l->add_path, &nlri)) {
		for (i = 0; i < l->count; i++) {
			if (l->routes[i].path_id == nlri.path_id &&
				memcmp(&l->routes[i].key, &nlri.key, sizeof(nlri.key)) == 0)
				break;
		}
		if (withdrawn && i < l->count)
			l->routes[i] = l->routes[--l->count];
		else if (!withdrawn && i == l->count && i < ROUTES)
			l->routes[l->count++] = nlri;
		else if (!withdrawn && i == l->count)
			l->overflow = true;
	}
	require(!in.failed);
}

/* What the speaker writes must be good messages. */
static void hear(struct bgp *b, uint32_t peer, uint32_t stream, const uint8_t *bytes, size_t size,
	dsf_instant now)
{
	struct bgp_peer_view view;
	struct bgp_update_rules rules = {
		.as = AS, .external = peer != 1, .scratch = scratch, .scratch_size = sizeof(scratch)
	};
	struct bgp_notification n;
	struct bgp_update u;
	struct bgp_header h;

	bgp_peer_view(b, peer, now, &view);
	while (size > 0) {
		require(bgp_wire_header_decode(bytes, size, true, &h, &n) == 1 && h.size <= size);
		if (h.type == BGP_UPDATE) {
			struct listener *l = listener_of(stream);

			if (l == NULL) {
				l = &listeners[peer];
				*l = (struct listener){ .stream = stream, .up = true };
			}
			l->add_path = rules.add_path = view.add_path_send;
			for (unsigned slot = 0; slot < BGP_SLOTS; slot++) {
				const struct bgp_connection *c = &view.session->slots[slot];

				if (c->state == BGP_ESTABLISHED)
					rules.as4 = c->peer.as4;
			}
			require(bgp_update_decode(bytes + BGP_HEADER_SIZE, h.size - BGP_HEADER_SIZE,
					&rules, &u, &n) == 0);
			require(!u.withdraw);
			learn(l, u.unreach, true);
			learn(l, u.reach, false);
		}
		bytes += h.size;
		size -= h.size;
	}
}

static void check(const struct bgp *b, dsf_instant now)
{
	for (uint32_t i = 0; i < PEERS; i++) {
		const struct listener *l = &listeners[i];
		struct bgp_peer_view view;

		bgp_peer_view(b, i, now, &view);
		require(view.paths_stale <= view.paths && view.paths <= view.config->paths_max);
		/* its own routes are in the group, but aren't told */
		if (view.told_all && l->up && !l->overflow && view.state == BGP_ESTABLISHED)
			require(l->count <= view.told);
	}
}

static void drain(struct bgp *b, uint32_t *streams, dsf_instant now)
{
	static uint8_t buf[65536];
	struct bgp_action a;
	struct bgp_change change;

	while (bgp_output(b, &a, buf, sizeof(buf), now)) {
		require(a.peer < PEERS);
		if (a.kind == BGP_ACTION_CONNECT)
			streams[3] = a.stream; /* ours: the input connects it or not */
		else if (a.kind == BGP_ACTION_WRITE)
			hear(b, a.peer, a.stream, buf, a.size, now);
		else if (listener_of(a.stream) != NULL)
			listener_of(a.stream)->up = false;
	}
	while (bgp_changed(b, &change))
		require(change.hops_count == 0 || change.hops != NULL);
}

static struct dsf_ip6 address_of(uint32_t peer)
{
	return (struct dsf_ip6){ { 0x20, 1, [15] = (uint8_t)peer } };
}

static void say_open(struct bgp *b, uint32_t stream, uint8_t how, dsf_instant now)
{
	static const uint32_t as[] = { 65001, AS, 65002, 70000 };
	struct bgp_open open = { .as = as[how & 3u],
		.hold_s = how & 4u ? 90 : 3,
		.id = (how & 7u) + 1u,
		.ipv6 = true,
		.as4 = how & 8u || as[how & 3u] > UINT16_MAX,
		.refresh = true,
		.enhanced = how & 16u,
		.graceful = how & 32u,
		.graceful_ipv6 = how & 32u,
		.forwarding = how & 32u,
		.restart_s = 5,
		.extended = how & 64u,
		.add_path = how & 128u ? 3 : 0 };
	uint8_t bytes[BGP_MESSAGE_MAX];
	size_t size = bgp_wire_open_encode(bytes, &open);

	size += bgp_wire_keepalive_encode(bytes + size);
	bgp_input(b, stream, bytes, size, now);
}

/* A route of few prefixes and ids, so that they meet. */
static void say_route(
	struct bgp *b, uint32_t stream, const uint8_t *how, bool add_path, dsf_instant now)
{
	uint8_t attributes[64] = { 0x40, 1, 1, how[0] & 1u, 0x40, 2, 6, 2, 1, 0, 0, 0xfd,
		how[1] & 1u ? 0xea : 0xe9, 0x40, 5, 4, 0, 0, 0, 100, 0x80, 4, 4, 0, 0, 0,
		how[1] & 3u };
	struct dsf_ip6 hop = { { 0x20, 2, [15] = how[2] & 7u } };
	struct bgp_nlri nlri = { { { { 0x20, 1, how[0] >> 4 } }, 24 }, how[2] >> 5 };
	uint8_t bytes[BGP_MESSAGE_MAX];
	struct bgp_update_writer w;

	if ((how[0] & 2u) != 0)
		bgp_update_unreach(&w, bytes, sizeof(bytes), add_path);
	else
		(void)bgp_update_reach(&w, bytes, sizeof(bytes), add_path, &hop, attributes, 27);
	if ((how[0] & 6u) != 6u)
		(void)bgp_update_add(&w, &nlri);
	bgp_input(b, stream, bytes, bgp_update_finish(&w), now);
}

static void say_refresh(struct bgp *b, uint32_t stream, uint8_t subtype, dsf_instant now)
{
	uint8_t bytes[BGP_MESSAGE_MAX];

	bgp_input(b, stream, bytes,
		bgp_wire_refresh_encode(bytes, (enum bgp_refresh_subtype)(subtype & 3u)), now);
}

static void pass(struct bgp *b, uint8_t how, dsf_instant *now)
{
	dsf_instant at = bgp_deadline(b);

	if (how < 128 && !dsf_time_is_never(at))
		*now = dsf_time_max(*now, at);
	else
		*now = dsf_time_after(*now, (how & 127u) * 100 * NS_PER_MS);
	bgp_expire(b, *now);
	require(dsf_time_before(*now, bgp_deadline(b)));
}

/* One step of the input; how much of it was used, at least 1. */
static size_t step(
	struct bgp *b, uint32_t *streams, const uint8_t *data, size_t size, dsf_instant *now)
{
	uint8_t how[3] = { 0 };
	uint32_t which = data[0] >> 4 & 3u, stream = streams[which];
	struct dsf_ip6 remote = address_of(which % PEERS), local = address_of(9);
	size_t used = 1 + (size > 4 ? 3 : size - 1);

	memcpy(how, data + 1, used - 1);
	switch (data[0] & 15u) {
	case 0: {
		int64_t accepted = bgp_accept(b, &remote, &local, *now);

		if (accepted >= 0)
			streams[which] = (uint32_t)accepted;
		break;
	}
	case 1: bgp_connected(b, stream, &local, *now); break;
	case 2:
		bgp_closed(b, stream, *now);
		if (listener_of(stream) != NULL)
			listener_of(stream)->up = false;
		break;
	case 3: bgp_blocked(b, stream, how[0] & 1u, *now); break;
	case 4: bgp_peer_start(b, which % PEERS, *now); break;
	case 5: bgp_peer_stop(b, which % PEERS, BGP_CEASE_SHUTDOWN, "x", *now); break;
	case 6: bgp_peer_refresh(b, which % PEERS); break;
	case 7: bgp_originate(b, which & 1u, how[0] & 1u, *now); break;
	case 8: say_open(b, stream, how[0], *now); break;
	case 9: say_refresh(b, stream, how[0], *now); break;
	case 10:
	case 11: say_route(b, stream, how, data[0] & 1u, *now); break;
	case 12: memory.fail_at = how[0] & 15u; break;
	case 13:
		used = 2 < size ? 2 : size;
		if (how[0] > size - used)
			how[0] = (uint8_t)(size - used);
		bgp_input(b, stream, data + used, how[0], *now);
		used += how[0];
		break;
	default: pass(b, how[0], now); break;
	}
	return used;
}

static struct bgp *make(void)
{
	static const struct bgp_rule rules[] = {
		{ .prefix = { { { 0x20, 1, 3 } }, 24 }, .length_min = 24, .length_max = 24 },
		{ .prefix = { { { 0x20, 1, 4 } }, 24 },
			.length_min = 24,
			.length_max = 24,
			.permit = true,
			.set_local_pref = true,
			.local_pref = 7 },
	};
	static const struct bgp_policy policy = { rules, 2, true };
	static const struct bgp_origin origins[] = {
		{ { { { 0x20 } }, 8 }, 2, true },
		{ { { { 0x20, 1, 9 } }, 24 }, 0, true },
	};
	static const uint32_t as[] = { 65001, AS, 65002 };
	struct bgp_peer_config peers[PEERS];
	struct bgp_config config;

	for (uint32_t i = 0; i < PEERS; i++) {
		struct dsf_ip6 address = address_of(i);

		bgp_peer_config_init(&peers[i], &address, as[i]);
		peers[i].add_path = 3;
		peers[i].paths_max = 20;
		peers[i].idle_ns = NS_PER_S;
		peers[i].passive = i == 2;
	}
	peers[0].import = peers[2].export = &policy;
	bgp_config_init(&config);
	config.memory = &memory.memory;
	config.as = AS;
	config.id = 5;
	config.peers = peers;
	config.peers_count = PEERS;
	config.origins = origins;
	config.origins_count = 2;
	return bgp_new(&config, DSF_EPOCH);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint32_t streams[STREAMS] = { 0 };
	dsf_instant now = { NS_PER_S };
	struct bgp *b;

	memory.fail_at = 0;
	memset(listeners, 0, sizeof(listeners));
	b = make();
	require(b != NULL);
	for (uint32_t i = 0; i < PEERS; i++)
		bgp_peer_start(b, i, now);
	while (size > 0) {
		size_t used = step(b, streams, data, size, &now);

		data += used;
		size -= used;
		drain(b, streams, now);
		check(b, now);
	}
	memory.fail_at = 0;
	bgp_free(b);
	require(memory.blocks == 0);
	return 0;
}
