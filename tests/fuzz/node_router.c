/*
 * node_router.c - a routed Clos of two leaves and a spine, with packets, BGP's streams and time
 *
 * Input: records of one command byte and its arguments. The command's low three bits say which
 * device, the next three what happens to it, the last two on which port. Frames and streams between
 * the devices are carried as they are, so sessions stand and routes lead somewhere; the input adds
 * frames, packets between addresses of the lab, bytes on streams as if the peer had sent them,
 * streams that break or have little room, and loss of carrier.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "base/cursor.h"
#include "ip/packet.h"
#include "node/node.h"
#include "topo/file.h"
#include "topo/memory.h"

#define DEVICES_MAX 8u
#define STREAMS_MAX 64u    /* ends: pairs of neighbours */
#define ROOM        16384u /* of a stream */
#define FRAME_MAX   2048u
#define STEPS_MAX   20000u /* outputs of one command: beyond, it would not end */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char text[] =
	"{\"name\":\"fuzz\",\"fabric\":{\"mode\":\"ecmp\"},\"buildings\":[{\"zones\":["
	"{\"scaling_units\":1,\"rails\":2,\"hosts_per_unit\":1,\"fdsw\":1}]}]}";

/* One end of a stream; the other one is the entry beside it (index ^ 1). */
struct end {
	struct node *node; /* NULL: free */
	uint32_t stream;
};

struct lab {
	struct topo *topo;
	struct node *nodes[DEVICES_MAX];
	struct end ends[STREAMS_MAX];
	dsf_instant now;
	uint8_t sink;
};

static struct end *find_end(struct lab *l, const struct node *n, uint32_t stream)
{
	for (uint32_t i = 0; i < STREAMS_MAX; i++)
		if (l->ends[i].node == n && l->ends[i].stream == stream)
			return &l->ends[i];
	return NULL;
}

static struct end *other_end(struct lab *l, const struct end *e)
{
	return &l->ends[(uint32_t)(e - l->ends) ^ 1u];
}

/* Tells an end that its stream is gone. */
static void close_end(struct lab *l, struct end *e, bool reset)
{
	struct node *n = e->node;

	e->node = NULL;
	if (n != NULL)
		node_stream_closed(n, e->stream, reset, l->now);
}

static bool has_address(const struct topo *t, uint32_t node, const struct dsf_ip6 *address)
{
	bool has = dsf_ip6_equal(&t->nodes[node].loopback, address);

	for (uint32_t i = 0; i < t->nodes[node].ports_count; i++)
		has |= dsf_ip6_equal(&topo_node_port(t, &t->nodes[node], i)->address, address);
	return has;
}

static int accept(struct lab *l, const struct node_stream_ends *ends, struct node **peer)
{
	const struct node_stream_ends theirs = {
		ends->remote, ends->local, ends->remote_port, 1024
	};

	for (uint32_t i = 0; i < l->topo->nodes_count; i++) {
		*peer = l->nodes[i];
		if (has_address(l->topo, i, &ends->remote))
			return node_stream_accept(*peer, &theirs, l->now);
	}
	return -1;
}

static void open_stream(struct lab *l, struct node *n, const struct node_output *out)
{
	uint32_t at = 0;
	struct node *peer;
	int stream;

	while (at < STREAMS_MAX && (l->ends[at].node != NULL || l->ends[at + 1].node != NULL))
		at += 2;
	stream = at < STREAMS_MAX ? accept(l, &out->ends, &peer) : -1;
	if (stream < 0) {
		node_stream_closed(n, out->stream, true, l->now);
		return;
	}
	l->ends[at] = (struct end){ n, out->stream };
	l->ends[at + 1] = (struct end){ peer, (uint32_t)stream };
	node_stream_connected(n, out->stream, l->now);
	node_stream_writable(n, out->stream, ROOM, l->now);
	node_stream_writable(peer, (uint32_t)stream, ROOM, l->now);
}

static void write_stream(struct lab *l, struct node *n, const struct node_output *out)
{
	struct end *from = find_end(l, n, out->stream), *to;

	assert(from != NULL && out->size <= ROOM);
	to = other_end(l, from);
	if (to->node != NULL)
		node_stream_input(to->node, to->stream, out->head, out->size, l->now);
	if (from->node != NULL)
		node_stream_writable(n, out->stream, ROOM, l->now);
}

static void close_stream(struct lab *l, struct node *n, const struct node_output *out)
{
	struct end *from = find_end(l, n, out->stream);

	assert(from != NULL);
	from->node = NULL;
	close_end(l, other_end(l, from), out->reset);
}

static void send_frame(struct lab *l, uint32_t node, const struct node_output *out)
{
	const struct topo *t = l->topo;
	struct node_frame frame = { .bytes = out->head,
		.stored = out->head_size,
		.size = out->size,
		.checksum_start = NODE_CHECKSUM_NONE };

	assert(out->head_size <= out->size);
	for (uint32_t i = 0; i < out->head_size; i++)
		l->sink ^= out->head[i];
	if (out->port != NODE_PORT_INBAND) {
		const struct topo_port *port = topo_node_port(t, &t->nodes[node], out->port);
		const struct topo_port *peer = &t->ports[port->peer];

		(void)node_frame_input(l->nodes[peer->node], peer->number, &frame, l->now);
	}
	node_frame_done(l->nodes[node], out->buffer);
}

static void handle(struct lab *l, uint32_t node, const struct node_output *out)
{
	struct node *n = l->nodes[node];

	switch (out->kind) {
	case NODE_OUTPUT_FRAME: send_frame(l, node, out); break;
	case NODE_OUTPUT_PLACE: node_memory_done(n, out->request, 0, l->now); break;
	case NODE_OUTPUT_OPEN: open_stream(l, n, out); break;
	case NODE_OUTPUT_WRITE: write_stream(l, n, out); break;
	case NODE_OUTPUT_CLOSE: close_stream(l, n, out); break;
	}
}

/* Until nobody has anything to do at this instant. */
static void run(struct lab *l)
{
	struct node_output out;
	bool busy = true;

	for (unsigned steps = 0; busy;) {
		busy = false;
		for (uint32_t i = 0; i < l->topo->nodes_count; i++) {
			while (node_output(l->nodes[i], &out, l->now)) {
				assert(++steps < STEPS_MAX);
				handle(l, i, &out);
				busy = true;
			}
			if (dsf_time_due(node_deadline(l->nodes[i]), l->now)) {
				assert(++steps < STEPS_MAX);
				node_expire(l->nodes[i], l->now);
				busy = true;
			}
		}
	}
}

/* Bytes of the input in memory of just their size; NULL: none are left. The caller frees it. */
static uint8_t *take(struct dsf_cursor *in, uint32_t before, uint32_t *size)
{
	uint32_t count = (uint32_t)dsf_cursor_be(in, 2) % FRAME_MAX;
	const uint8_t *bytes = dsf_cursor_bytes(in, count);
	uint8_t *exact;

	if (bytes == NULL)
		return NULL;
	exact = calloc(1, before + count + 1u);
	if (exact == NULL)
		abort();
	memcpy(exact + before, bytes, count);
	*size = before + count;
	return exact;
}

static void input_frame(
	struct lab *l, uint32_t node, uint32_t port, uint8_t *bytes, uint32_t size)
{
	struct node_frame frame = { .bytes = bytes,
		.stored = size,
		.size = size,
		.checksum_start = NODE_CHECKSUM_NONE };

	(void)node_frame_input(l->nodes[node], port, &frame, l->now);
	free(bytes);
}

/* A packet to pass on: to the device's MAC, between addresses of the lab or near them. */
static void input_packet(struct lab *l, uint32_t node, uint32_t port, struct dsf_cursor *in)
{
	const struct topo *t = l->topo;
	const struct topo_port *own = topo_node_port(t, &t->nodes[node], port);
	const struct topo_port *from = &t->ports[dsf_cursor_be(in, 1) % t->ports_count];
	struct dsf_ip6 target = t->ports[dsf_cursor_be(in, 1) % t->ports_count].address;
	uint8_t protocol = (uint8_t)dsf_cursor_be(in, 1), hop_limit = (uint8_t)dsf_cursor_be(in, 1);
	uint32_t headers = IP_ETHERNET_SIZE + IP_HEADER_SIZE, size;
	uint8_t *bytes;

	target.bytes[15] = (uint8_t)(target.bytes[15] ^ dsf_cursor_be(in, 1));
	bytes = take(in, headers, &size);
	if (bytes == NULL)
		return;
	ip_packet_write_ethernet(bytes, &own->mac, &from->mac);
	ip_packet_write_header(bytes + IP_ETHERNET_SIZE, &from->address, &target, 0, IP_ECN_ECT0,
		protocol, hop_limit, size - headers);
	input_frame(l, node, port, bytes, size);
}

/* What a peer says on one of the streams that stand. */
static void input_stream(struct lab *l, struct dsf_cursor *in)
{
	struct end *e = &l->ends[dsf_cursor_be(in, 1) % STREAMS_MAX];
	uint32_t size;
	uint8_t *bytes = take(in, 0, &size);

	if (bytes != NULL && e->node != NULL)
		node_stream_input(e->node, e->stream, bytes, size, l->now);
	free(bytes);
}

/* A stream breaks, or has only so much room until its next byte is taken. */
static void disturb_stream(struct lab *l, struct dsf_cursor *in)
{
	struct end *e = &l->ends[dsf_cursor_be(in, 1) % STREAMS_MAX];
	uint32_t room = (uint32_t)dsf_cursor_be(in, 1);

	if (e->node == NULL)
		return;
	if (room > 0) {
		node_stream_writable(e->node, e->stream, room, l->now);
		return;
	}
	close_end(l, other_end(l, e), true);
	close_end(l, e, true);
}

static void step(struct lab *l, struct dsf_cursor *in)
{
	uint32_t command = (uint32_t)dsf_cursor_be(in, 1), size;
	uint32_t node = (command & 7u) % l->topo->nodes_count;
	uint32_t port = (command >> 6) % l->topo->nodes[node].ports_count;
	uint8_t *bytes;

	switch (command >> 3 & 7) {
	case 0: node_carrier(l->nodes[node], port, dsf_cursor_be(in, 1) & 1u, l->now); break;
	case 1:
	case 2:
		bytes = take(in, 0, &size);
		if (bytes != NULL)
			input_frame(l, node, (command >> 3 & 1) != 0 ? port : NODE_PORT_INBAND,
				bytes, size);
		break;
	case 3: input_packet(l, node, port, in); break;
	case 4: input_stream(l, in); break;
	case 5: disturb_stream(l, in); break;
	case 6: l->now.ns += dsf_cursor_be(in, 1) * 10u * NS_PER_US; break;
	default: l->now.ns += dsf_cursor_be(in, 1) * 100u * NS_PER_US;
	}
	run(l);
}

static void open_lab(struct lab *l)
{
	struct topo_error err;

	if (topo_load_text(text, sizeof(text) - 1, "fuzz", &l->topo, &err) < 0)
		abort();
	assert(l->topo->nodes_count <= DEVICES_MAX);
	for (uint32_t i = 0; i < l->topo->nodes_count; i++) {
		struct node_config config = { .topo = l->topo,
			.index = i,
			.memory = &topo_memory,
			.seed = 1,
			.control_dilation = 1000, /* a second of BGP's in 1 ms */
			.streams = true,
			.simulated = true };

		l->nodes[i] = node_new(&config, l->now);
		if (l->nodes[i] == NULL)
			abort();
	}
	for (uint32_t i = 0; i < l->topo->ports_count; i++)
		node_carrier(l->nodes[l->topo->ports[i].node], l->topo->ports[i].number, true,
			l->now);
	run(l);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dsf_cursor in = { data, data + size, false };
	struct lab l = { .now = { NS_PER_S } };

	open_lab(&l);
	while (!in.failed && dsf_cursor_left(&in) > 0)
		step(&l, &in);
	for (uint32_t i = 0; i < l.topo->nodes_count; i++)
		node_free(l.nodes[i]);
	topo_free(l.topo);
	return 0;
}
