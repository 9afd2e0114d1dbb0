/*
 * bgp_net.h - speakers joined by streams in memory, in virtual time
 *
 * Speaker i has the address net_address(i). What one writes the other has at once; a connection can
 * be cut, held up (blocked), or forbidden. A speaker may be NULL: then the test plays it, with
 * net_raw_* .
 */
#ifndef DSF_TESTS_BGP_NET_H
#define DSF_TESTS_BGP_NET_H
#include <stdlib.h>
#include "base/err.h"
#include "bgp/bgp.h"
#include "bgp/update.h"
#include "tests/memory.h"

#define NET_SPEAKERS    520u
#define NET_CONNECTIONS 2048u

struct net_connection {
	bool up;
	unsigned speaker[2];
	uint32_t stream[2];
};

static struct test_memory net_memory = TEST_MEMORY(net_memory);
static struct bgp *net_speaker[NET_SPEAKERS];
static struct net_connection net_connections[NET_CONNECTIONS];
static unsigned net_count; /* connections that were ever made, modulo */
static bool net_forbidden;
static dsf_instant net_now;
static uint64_t net_bytes;

__attribute__((unused)) static struct dsf_ip6 net_address(unsigned i)
{
	return (struct dsf_ip6){ { 0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		(uint8_t)(i >> 8), (uint8_t)i } };
}

__attribute__((unused)) static struct bgp_prefix_key net_prefix(
	uint8_t a, uint8_t b, uint8_t length)
{
	struct bgp_prefix_key key = { { { 0x20, 2, a, b } }, length };

	return key;
}

static struct net_connection *net_find(unsigned speaker, uint32_t stream, unsigned *side)
{
	for (unsigned i = 0; i < NET_CONNECTIONS; i++) {
		struct net_connection *c = &net_connections[i];

		for (*side = 0; *side < 2; (*side)++) {
			if (c->up && c->speaker[*side] == speaker && c->stream[*side] == stream)
				return c;
		}
	}
	return NULL;
}

static struct net_connection *net_new(void)
{
	for (unsigned i = 0; i < NET_CONNECTIONS; i++) {
		struct net_connection *c = &net_connections[net_count++ % NET_CONNECTIONS];

		if (!c->up)
			return c;
	}
	abort();
}

static void net_connect(unsigned from, const struct bgp_action *a)
{
	struct bgp_peer_view view;
	struct net_connection *c;
	unsigned to;
	struct dsf_ip6 local = net_address(from);
	int64_t stream;

	bgp_peer_view(net_speaker[from], a->peer, net_now, &view);
	to = (unsigned)view.config->address.bytes[14] << 8 | view.config->address.bytes[15];
	if (net_forbidden || net_speaker[to] == NULL) {
		bgp_closed(net_speaker[from], a->stream, net_now);
		return;
	}
	stream = bgp_accept(net_speaker[to], &local, &view.config->address, net_now);
	if (stream < 0) {
		bgp_closed(net_speaker[from], a->stream, net_now);
		return;
	}
	c = net_new();
	*c = (struct net_connection){ true, { from, to }, { a->stream, (uint32_t)stream } };
	bgp_connected(net_speaker[from], a->stream, &local, net_now);
}

static void net_act(unsigned from, const struct bgp_action *a, const uint8_t *bytes)
{
	unsigned side;
	struct net_connection *c;

	if (a->kind == BGP_ACTION_CONNECT) {
		net_connect(from, a);
		return;
	}
	c = net_find(from, a->stream, &side);
	if (c == NULL)
		return;
	if (a->kind == BGP_ACTION_WRITE) {
		net_bytes += a->size;
		bgp_input(
			net_speaker[c->speaker[!side]], c->stream[!side], bytes, a->size, net_now);
		return;
	}
	c->up = false;
	bgp_closed(net_speaker[c->speaker[!side]], c->stream[!side], net_now);
}

/* Everything that is to be done now. */
__attribute__((unused)) static void net_settle(void)
{
	static uint8_t buf[65536];
	struct bgp_action a;
	bool moved = true;

	while (moved) {
		moved = false;
		for (unsigned i = 0; i < NET_SPEAKERS; i++) {
			while (net_speaker[i] != NULL &&
				bgp_output(net_speaker[i], &a, buf, sizeof(buf), net_now)) {
				net_act(i, &a, buf);
				moved = true;
			}
		}
	}
}

__attribute__((unused)) static void net_pass(uint64_t duration_ns)
{
	dsf_instant end = dsf_time_after(net_now, duration_ns);

	for (;;) {
		dsf_instant at = DSF_NEVER;

		net_settle();
		for (unsigned i = 0; i < NET_SPEAKERS; i++) {
			if (net_speaker[i] != NULL)
				at = dsf_time_min(at, bgp_deadline(net_speaker[i]));
		}
		if (dsf_time_before(end, at))
			break;
		net_now = dsf_time_max(net_now, at);
		for (unsigned i = 0; i < NET_SPEAKERS; i++) {
			if (net_speaker[i] != NULL &&
				dsf_time_due(bgp_deadline(net_speaker[i]), net_now))
				bgp_expire(net_speaker[i], net_now);
		}
	}
	net_now = end;
}

/* Cuts what there is between two speakers, as a reset: both ends hear of it. */
__attribute__((unused)) static void net_cut(unsigned a, unsigned b)
{
	for (unsigned i = 0; i < NET_CONNECTIONS; i++) {
		struct net_connection *c = &net_connections[i];

		if (!c->up || !((c->speaker[0] == a && c->speaker[1] == b) ||
				      (c->speaker[0] == b && c->speaker[1] == a)))
			continue;
		c->up = false;
		for (unsigned side = 0; side < 2; side++) {
			if (net_speaker[c->speaker[side]] != NULL)
				bgp_closed(net_speaker[c->speaker[side]], c->stream[side], net_now);
		}
	}
}

/* Ends a speaker as a dead process would: its connections are reset. */
__attribute__((unused)) static void net_kill(unsigned i)
{
	struct bgp *b = net_speaker[i];

	net_speaker[i] = NULL;
	if (b != NULL)
		bgp_free(b);
	for (unsigned j = 0; j < NET_SPEAKERS; j++)
		net_cut(i, j);
}

static bool net_find_row(void *user, const struct bgp_row *row)
{
	struct bgp_row *wanted = user;

	if (memcmp(&row->prefix, &wanted->prefix, sizeof(row->prefix)) != 0)
		return true;
	wanted->path_id++;
	if (row->best) {
		wanted->best = true;
		wanted->peer = row->peer;
		wanted->next_hop = row->next_hop;
		wanted->attributes = row->attributes;
		wanted->stale = row->stale;
	}
	return true;
}

/* Paths that a speaker has of a prefix; *row is its best. */
__attribute__((unused)) static uint32_t net_paths(
	unsigned speaker, struct bgp_prefix_key prefix, struct bgp_row *row)
{
	memset(row, 0, sizeof(*row));
	row->prefix = prefix;
	bgp_rows(net_speaker[speaker], net_find_row, row);
	return row->path_id;
}

__attribute__((unused)) static bool net_up(unsigned speaker, uint32_t peer)
{
	struct bgp_peer_view view;

	bgp_peer_view(net_speaker[speaker], peer, net_now, &view);
	return view.state == BGP_ESTABLISHED;
}

/* ---- a peer that the test plays: what it heard last is in net_raw */

struct net_raw {
	unsigned speaker;
	uint32_t stream;
	bool closed;
	struct bgp_open open; /* heard */
	struct bgp_notification notification;
	uint32_t keepalives, updates, end_of_ribs, begins, ends, refreshes;
	uint32_t announced, withdrawn; /* prefixes */
	size_t largest;
	struct bgp_update_rules rules;
	struct bgp_attributes attributes; /* of the last announcement */
	struct dsf_ip6 next_hop;
	uint8_t kept[65536]; /* what they point into */
	/* called for each prefix that is heard, where set; u: attributes of an announcement */
	void (*heard)(struct net_raw *raw, const struct bgp_nlri *nlri, const struct bgp_update *u);
};

static struct net_raw *net_raws[8]; /* those that are open */

static void net_raw_count(
	struct net_raw *raw, struct bgp_span span, uint32_t *count, const struct bgp_update *u)
{
	struct dsf_cursor in = bgp_span_read(span);
	struct bgp_nlri nlri;

	while (bgp_nlri_decode(&in, raw->rules.add_path, &nlri)) {
		(*count)++;
		if (raw->heard != NULL)
			raw->heard(raw, &nlri, u);
	}
}

static void net_raw_hear(struct net_raw *raw, const uint8_t *bytes, size_t size)
{
	struct bgp_notification n;
	struct bgp_update u;
	struct bgp_refresh r;
	struct bgp_header h;

	while (size > 0) {
		if (bgp_wire_header_decode(bytes, size, true, &h, &n) != 1 || h.size > size)
			abort();
		switch ((enum bgp_type)h.type) {
		case BGP_OPEN:
			if (bgp_wire_open_decode(bytes + 19, h.size - 19u, &raw->open, &n) < 0)
				abort();
			break;
		case BGP_KEEPALIVE: raw->keepalives++; break;
		case BGP_NOTIFICATION:
			bgp_wire_notification_decode(bytes + 19, h.size - 19u, &raw->notification);
			break;
		case BGP_ROUTE_REFRESH:
			if (bgp_wire_refresh_decode(bytes + 19, h.size - 19u, &r, &n) < 0)
				abort();
			raw->refreshes += r.subtype == BGP_REFRESH_REQUEST;
			raw->begins += r.subtype == BGP_REFRESH_BEGIN;
			raw->ends += r.subtype == BGP_REFRESH_END;
			break;
		case BGP_UPDATE:
			memcpy(raw->kept, bytes, h.size);
			raw->updates++;
			raw->largest = h.size > raw->largest ? h.size : raw->largest;
			if (bgp_update_decode(raw->kept + 19, h.size - 19u, &raw->rules, &u, &n) <
					0 ||
				u.withdraw)
				abort();
			raw->end_of_ribs += u.end_of_rib;
			net_raw_count(raw, u.unreach, &raw->withdrawn, NULL);
			net_raw_count(raw, u.reach, &raw->announced, &u);
			if (u.reach.size > 0) {
				raw->attributes = u.attributes;
				raw->next_hop = u.next_hop;
			}
			break;
		}
		bytes += h.size;
		size -= h.size;
	}
}

static struct net_raw *net_raw_find(unsigned speaker, uint32_t stream)
{
	for (unsigned i = 0; i < 8; i++) {
		if (net_raws[i] != NULL && net_raws[i]->speaker == speaker &&
			net_raws[i]->stream == stream)
			return net_raws[i];
	}
	return NULL;
}

/* Everything that the speaker has to say to raw peers, without time passing. */
__attribute__((unused)) static void net_raw_listen(struct net_raw *of)
{
	static uint8_t buf[65536];
	struct bgp_action a;
	unsigned speaker = of->speaker;

	while (bgp_output(net_speaker[speaker], &a, buf, sizeof(buf), net_now)) {
		struct net_raw *raw = net_raw_find(speaker, a.stream);

		if (a.kind == BGP_ACTION_CONNECT)
			bgp_closed(net_speaker[speaker], a.stream, net_now);
		else if (raw == NULL)
			net_act(speaker, &a, buf);
		else if (a.kind == BGP_ACTION_WRITE)
			net_raw_hear(raw, buf, a.size);
		else
			raw->closed = true;
	}
}

/* The same, after decisions. */
__attribute__((unused)) static void net_raw_wait(struct net_raw *raw)
{
	net_raw_listen(raw);
	net_now = dsf_time_after(net_now, BGP_DECIDE_NS);
	bgp_expire(net_speaker[raw->speaker], net_now);
	net_raw_listen(raw);
}

__attribute__((unused)) static void net_raw_say(
	struct net_raw *raw, const uint8_t *bytes, size_t size)
{
	bgp_input(net_speaker[raw->speaker], raw->stream, bytes, size, net_now);
}

__attribute__((unused)) static void net_raw_keepalive(struct net_raw *raw)
{
	uint8_t bytes[BGP_MESSAGE_MAX];

	net_raw_say(raw, bytes, bgp_wire_keepalive_encode(bytes));
}

/* Connects to a speaker as its peer with that address, says open, and is established. False: it
 * isn't taken. */
__attribute__((unused)) static bool net_raw_open(struct net_raw *raw, unsigned speaker,
	unsigned address, const struct bgp_open *open, uint32_t speaker_as)
{
	static uint8_t scratch[4 * 65536];
	struct dsf_ip6 remote = net_address(address), local = net_address(speaker);
	int64_t stream = bgp_accept(net_speaker[speaker], &remote, &local, net_now);
	uint8_t bytes[BGP_MESSAGE_MAX];

	*raw = (struct net_raw){ .speaker = speaker, .heard = raw->heard };
	raw->stream = (uint32_t)stream;
	raw->rules = (struct bgp_update_rules){ .external = open->as != speaker_as,
		.as4 = open->as4,
		.add_path = open->add_path & BGP_ADD_PATH_RECEIVE,
		.as = speaker_as,
		.scratch = scratch,
		.scratch_size = sizeof(scratch) };
	if (stream < 0)
		return false;
	for (unsigned i = 0; i < 8; i++) {
		if (net_raws[i] == NULL || net_raws[i] == raw) {
			net_raws[i] = raw;
			break;
		}
	}
	net_raw_listen(raw);
	net_raw_say(raw, bytes, bgp_wire_open_encode(bytes, open));
	net_raw_listen(raw);
	net_raw_keepalive(raw);
	net_raw_listen(raw);
	raw->rules.add_path = raw->rules.add_path && (raw->open.add_path & BGP_ADD_PATH_SEND) != 0;
	return !raw->closed;
}

__attribute__((unused)) static struct bgp_open net_open(uint32_t as, uint32_t id)
{
	return (struct bgp_open){
		.as = as, .hold_s = 90, .id = id, .ipv6 = true, .as4 = true, .refresh = true
	};
}

/* Attributes of a route that a peer of that AS tells; local_pref 0: none. */
__attribute__((unused)) static size_t net_attributes(
	uint8_t *to, uint32_t as, uint32_t med, uint32_t local_pref)
{
	struct dsf_writer w = { to, to + 256, false };
	static const uint8_t origin[1];
	uint8_t path[6] = { BGP_AS_SEQUENCE, 1 };
	struct bgp_attributes a = { 0 };

	dsf_store_be32(path + 2, as);
	bgp_attributes_set(&a, BGP_ORIGIN, BGP_FLAG_TRANSITIVE, origin, 1);
	bgp_attributes_set(&a, BGP_AS_PATH, BGP_FLAG_TRANSITIVE, path, as == 0 ? 0 : sizeof(path));
	if (med != UINT32_MAX)
		bgp_attributes_set32(&a, BGP_MED, BGP_FLAG_OPTIONAL, med);
	if (local_pref != 0)
		bgp_attributes_set32(&a, BGP_LOCAL_PREF, BGP_FLAG_TRANSITIVE, local_pref);
	bgp_attributes_write(&a, &w);
	return (size_t)(w.at - to);
}

/* Says one route. */
__attribute__((unused)) static void net_raw_announce(struct net_raw *raw,
	const struct bgp_nlri *nlri, bool add_path, struct dsf_ip6 next_hop,
	const uint8_t *attributes, size_t size)
{
	uint8_t bytes[BGP_MESSAGE_MAX];
	struct bgp_update_writer w;

	if (!bgp_update_reach(&w, bytes, sizeof(bytes), add_path, &next_hop, attributes, size) ||
		!bgp_update_add(&w, nlri))
		abort();
	net_raw_say(raw, bytes, bgp_update_finish(&w));
}

__attribute__((unused)) static void net_raw_withdraw(
	struct net_raw *raw, const struct bgp_nlri *nlri, bool add_path)
{
	uint8_t bytes[BGP_MESSAGE_MAX];
	struct bgp_update_writer w;

	bgp_update_unreach(&w, bytes, sizeof(bytes), add_path);
	if (nlri != NULL)
		(void)bgp_update_add(&w, nlri);
	net_raw_say(raw, bytes, bgp_update_finish(&w));
}

#endif
