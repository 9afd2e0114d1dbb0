/*
 * fsdb_net.h - some FSDB meshes and the streams between them
 *
 * Streams take room bytes and carry at most a piece at a time, so that messages are cut everywhere.
 * A pair of nodes that is cut loses nothing: its bytes wait, as TCP's would, until it is healed.
 * Time passes only in net_pass. What the first two nodes write can be kept.
 */
#ifndef DSF_TESTS_FSDB_NET_H
#define DSF_TESTS_FSDB_NET_H
#include <stdio.h>
#include "base/err.h"
#include "fsdb/mesh.h"
#include "tests/memory.h"
#include "tests/tap.h"

#define NET_NODES_MAX   8u
#define NET_STREAMS_MAX 256u
#define NET_ROOM        70u /* less than most messages with records */
#define NET_PIECE       13u
#define NET_TAP_MAX     65536u

struct net_end {
	uint32_t node, stream;
	bool open;               /* this end's node knows it */
	uint8_t bytes[NET_ROOM]; /* to the other end */
	uint32_t size;
	bool closing, closed_reset; /* behind the bytes */
};

struct net_stream {
	struct net_end ends[2];
};

struct net {
	struct fsdb_mesh *meshes[NET_NODES_MAX];
	struct fsdb_peer peers[NET_NODES_MAX][NET_NODES_MAX];
	struct net_stream streams[NET_STREAMS_MAX];
	bool cut[NET_NODES_MAX][NET_NODES_MAX];
	bool reset_unknown; /* bytes to a node that has gone are answered */
	uint32_t count, streams_count;
	dsf_instant now;
	uint64_t changes; /* that meshes told */
	uint64_t written; /* bytes */
	uint8_t *tap[2];  /* what nodes 0 and 1 wrote: NET_TAP_MAX bytes of the caller's, or NULL */
	uint32_t tap_size[2];
};

/* Ids aren't consecutive, so that index and id can't be mixed up. */
__attribute__((unused)) static uint32_t net_id(uint32_t node)
{
	return 3 + 2 * node;
}

__attribute__((unused)) static struct dsf_ip6 net_address(uint32_t a, uint32_t b)
{
	return (struct dsf_ip6){ { 0xfd, 0x5f, [6] = (uint8_t)a, [15] = (uint8_t)b } };
}

__attribute__((unused)) static uint32_t net_port(uint32_t node, uint32_t port)
{
	return net_id(node) * FSDB_PORTS_MAX + port;
}

__attribute__((unused)) static struct fsdb_record net_record(
	enum fsdb_kind kind, uint32_t node, uint32_t port)
{
	struct fsdb_record r = { .kind = (uint8_t)kind, .system_port = net_port(node, port) };

	if (kind == FSDB_KIND_PORT) {
		r.state = 1;
		r.rate_bps = 400000000000ull;
		return r;
	}
	r.address = net_address(port, 1);
	r.mac = (struct dsf_mac){ { 2, (uint8_t)node, 0, 0, 0, (uint8_t)port } };
	r.mtu = kind == FSDB_KIND_INTERFACE ? 9000 : 0;
	r.prefix_length = kind == FSDB_KIND_INTERFACE ? 64 : 0;
	return r;
}

/* A neighbor at a port of a node, resolved at since. */
__attribute__((unused)) static struct fsdb_record net_neighbor(
	uint32_t node, uint32_t port, const struct dsf_ip6 *address, uint64_t since_ns)
{
	struct fsdb_record r = net_record(FSDB_KIND_NEIGHBOR, node, port);

	r.address = *address;
	r.state = FSDB_REACHABLE;
	r.since_ns = since_ns;
	return r;
}

__attribute__((unused)) static int net_publish_port(struct net *n, uint32_t node, uint32_t port)
{
	struct fsdb_record r = net_record(FSDB_KIND_PORT, node, port);
	int err = fsdb_mesh_publish(n->meshes[node], &r);

	r = net_record(FSDB_KIND_INTERFACE, node, port);
	return err < 0 ? err : fsdb_mesh_publish(n->meshes[node], &r);
}

__attribute__((unused)) static bool net_start(
	struct net *n, uint32_t node, const struct dsf_memory *memory)
{
	struct fsdb_config config = { .memory = memory,
		.node = node,
		.id = net_id(node),
		.peers = n->peers[node],
		.peers_count = n->count - 1,
		.timers = fsdb_mesh_timers(1) };

	for (uint32_t i = 0, at = 0; i < n->count; i++)
		if (i != node)
			n->peers[node][at++] =
				(struct fsdb_peer){ net_id(i), net_address(0xee, net_id(i)) };
	n->meshes[node] = fsdb_mesh_new(&config);
	return n->meshes[node] != NULL;
}

/* All nodes, two ports each, nobody reachable. */
__attribute__((unused)) static bool net_open(
	struct net *n, uint32_t count, const struct dsf_memory *memory)
{
	*n = (struct net){ .count = count, .now = { NS_PER_S } };
	for (uint32_t i = 0; i < count; i++)
		if (!net_start(n, i, memory) || net_publish_port(n, i, 0) < 0 ||
			net_publish_port(n, i, 1) < 0)
			return false;
	return true;
}

__attribute__((unused)) static void net_close(struct net *n)
{
	for (uint32_t i = 0; i < n->count; i++)
		fsdb_mesh_free(n->meshes[i]);
}

static uint32_t net_node(const struct net *n, const struct dsf_ip6 *address)
{
	for (uint32_t i = 0; i < n->count; i++)
		if (address->bytes[15] == net_id(i))
			return i;
	return NET_NODES_MAX;
}

static struct net_end *net_find(struct net *n, uint32_t node, uint32_t stream)
{
	for (uint32_t i = 0; i < n->streams_count; i++)
		for (uint32_t e = 0; e < 2; e++)
			if (n->streams[i].ends[e].open && n->streams[i].ends[e].node == node &&
				n->streams[i].ends[e].stream == stream)
				return &n->streams[i].ends[e];
	return NULL;
}

static void net_connect(struct net *n, uint32_t node, const struct fsdb_output *out)
{
	struct net_stream *s = &n->streams[n->streams_count++];

	*s = (struct net_stream){ 0 };
	s->ends[0] = (struct net_end){ .node = node, .stream = out->stream, .open = true };
	s->ends[1].node = net_node(n, out->address);
	s->ends[1].stream = UINT32_MAX; /* not there yet */
}

static void net_tap(struct net *n, uint32_t node, const struct fsdb_output *out)
{
	if (node > 1 || n->tap[node] == NULL || n->tap_size[node] + out->size > NET_TAP_MAX)
		return;
	memcpy(n->tap[node] + n->tap_size[node], out->bytes, out->size);
	n->tap_size[node] += out->size;
}

/* What a mesh wants done. */
static bool net_output(struct net *n, uint32_t node)
{
	struct fsdb_output out;
	struct net_end *end;

	if (n->meshes[node] == NULL || !fsdb_mesh_output(n->meshes[node], &out, n->now))
		return false;
	end = net_find(n, node, out.stream);
	switch (out.kind) {
	case FSDB_OUTPUT_OPEN: net_connect(n, node, &out); return true;
	case FSDB_OUTPUT_WRITE:
		n->written += out.size;
		net_tap(n, node, &out);
		if (end == NULL) {
			TAP_OK(false, "a stream that is written to is there");
			return true;
		}
		if (end->size + out.size > NET_ROOM)
			TAP_OK(false, "no more is written than there is room for");
		else
			memcpy(end->bytes + end->size, out.bytes, out.size);
		end->size += out.size;
		return true;
	case FSDB_OUTPUT_CLOSE:
		if (end == NULL)
			TAP_OK(false, "a stream that is closed is there");
		else
			end->open = false, end->closing = true, end->closed_reset = out.reset;
		return true;
	}
	return false;
}

/* The one who was asked takes the stream or refuses it. */
static bool net_accept(struct net *n, struct net_stream *s)
{
	struct net_end *from = &s->ends[0], *to = &s->ends[1];
	struct dsf_ip6 address = net_address(0xee, net_id(from->node));
	int stream;

	if (!from->open || to->stream != UINT32_MAX || n->meshes[to->node] == NULL)
		return false;
	stream = fsdb_mesh_accept(n->meshes[to->node], &address, n->now);
	if (stream < 0) {
		from->open = false;
		fsdb_mesh_closed(n->meshes[from->node], from->stream, true, n->now);
		return true;
	}
	to->stream = (uint32_t)stream;
	to->open = true;
	fsdb_mesh_writable(n->meshes[to->node], to->stream, NET_ROOM);
	fsdb_mesh_connected(n->meshes[from->node], from->stream, n->now);
	fsdb_mesh_writable(n->meshes[from->node], from->stream, NET_ROOM);
	return true;
}

/* One piece, or the end, from one end to the other. */
static bool net_carry(struct net *n, struct net_end *from, struct net_end *to)
{
	uint32_t piece = from->size < NET_PIECE ? from->size : NET_PIECE;
	uint8_t bytes[NET_PIECE];

	if (from->size == 0 && !from->closing)
		return false;
	if (from->closing && (from->closed_reset || from->size == 0)) {
		from->closing = false;
		from->size = 0;
		if (to->open) {
			to->open = false;
			fsdb_mesh_closed(
				n->meshes[to->node], to->stream, from->closed_reset, n->now);
		}
		return true;
	}
	memcpy(bytes, from->bytes, piece);
	memmove(from->bytes, from->bytes + piece, from->size - piece);
	from->size -= piece;
	if (to->open && n->meshes[to->node] != NULL)
		(void)fsdb_mesh_input(n->meshes[to->node], to->stream, bytes, piece, n->now);
	else if (n->reset_unknown && from->open)
		to->closing = to->closed_reset = true;
	if (from->open)
		fsdb_mesh_writable(n->meshes[from->node], from->stream, NET_ROOM - from->size);
	return true;
}

static bool net_step(struct net *n)
{
	bool again = false;

	for (uint32_t i = 0; i < n->count; i++)
		while (net_output(n, i))
			again = true;
	for (uint32_t i = 0; i < n->streams_count; i++) {
		struct net_end *a = &n->streams[i].ends[0], *b = &n->streams[i].ends[1];

		if (n->cut[a->node][b->node])
			continue;
		again |= net_accept(n, &n->streams[i]);
		again |= net_carry(n, a, b);
		again |= net_carry(n, b, a);
	}
	return again;
}

/* Until nothing moves at this instant. */
__attribute__((unused)) static void net_settle(struct net *n)
{
	struct fsdb_change change;
	uint32_t kept = 0;

	while (net_step(n))
		;
	for (uint32_t i = 0; i < n->count; i++)
		while (n->meshes[i] != NULL && fsdb_mesh_changed(n->meshes[i], &change))
			n->changes++;
	for (uint32_t i = 0; i < n->streams_count; i++) {
		const struct net_stream *s = &n->streams[i];

		if (s->ends[0].open || s->ends[1].open || s->ends[0].closing || s->ends[1].closing)
			n->streams[kept++] = *s;
	}
	n->streams_count = kept;
}

__attribute__((unused)) static void net_pass(struct net *n, uint64_t ns)
{
	dsf_instant end = dsf_time_after(n->now, ns);

	net_settle(n);
	for (;;) {
		dsf_instant at = DSF_NEVER;

		for (uint32_t i = 0; i < n->count; i++)
			if (n->meshes[i] != NULL)
				at = dsf_time_min(at, fsdb_mesh_deadline(n->meshes[i]));
		if (dsf_time_before(end, at))
			break;
		n->now = dsf_time_max(n->now, at);
		for (uint32_t i = 0; i < n->count; i++)
			if (n->meshes[i] != NULL)
				fsdb_mesh_expire(n->meshes[i], n->now);
		net_settle(n);
	}
	n->now = end;
}

__attribute__((unused)) static void net_reach(struct net *n, uint32_t a, uint32_t b, bool reachable)
{
	n->cut[a][b] = n->cut[b][a] = !reachable;
	fsdb_mesh_reachable(n->meshes[a], net_id(b), reachable, n->now);
	fsdb_mesh_reachable(n->meshes[b], net_id(a), reachable, n->now);
}

__attribute__((unused)) static void net_reach_all(struct net *n)
{
	for (uint32_t i = 0; i < n->count; i++)
		for (uint32_t j = 0; j < i; j++)
			net_reach(n, i, j, true);
	net_settle(n);
}

/* a's session with b. */
__attribute__((unused)) static const struct fsdb_session *net_session(
	const struct net *n, uint32_t a, uint32_t b)
{
	return fsdb_mesh_session(n->meshes[a], b < a ? b : b - 1);
}

/* A node dies: nobody hears of it. */
__attribute__((unused)) static void net_stop(struct net *n, uint32_t node)
{
	fsdb_mesh_free(n->meshes[node]);
	n->meshes[node] = NULL;
	for (uint32_t i = 0; i < n->streams_count; i++)
		for (uint32_t e = 0; e < 2; e++)
			if (n->streams[i].ends[e].node == node)
				n->streams[i].ends[e] = (struct net_end){ .node = node };
}

#endif
