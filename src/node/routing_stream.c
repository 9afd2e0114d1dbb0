/* routing_stream.c - BGP's streams as the driver has them (node.h) */
#include "base/err.h"
#include "node/routing_state.h"

static struct node_routing_stream *find(const struct node_routing *r, uint32_t number)
{
	return dsf_hash_get(&r->streams, &number);
}

static uint32_t name_of(const struct node_routing_stream *s)
{
	return s->number & ~NODE_ROUTING_STREAM;
}

static void enqueue(struct node_routing *r, struct node_routing_stream *s)
{
	if (s->in_work)
		return;
	s->in_work = true;
	s->work_next = NULL;
	*(r->work_last != NULL ? &r->work_last->work_next : &r->work_first) = s;
	r->work_last = s;
}

static void dequeue(struct node_routing *r, struct node_routing_stream *s)
{
	struct node_routing_stream **at = &r->work_first, *previous = NULL;

	if (!s->in_work)
		return;
	s->in_work = false;
	for (; *at != s; at = &(*at)->work_next)
		previous = *at;
	*at = s->work_next;
	if (r->work_last == s)
		r->work_last = previous;
}

static void drop_pending(struct node_routing *r, struct node_routing_stream *s)
{
	dsf_memory_delete(r->config.memory, s->pending, s->pending_size);
	s->pending = NULL;
	s->pending_size = s->pending_at = 0;
}

static void forget(struct node_routing *r, struct node_routing_stream *s)
{
	dequeue(r, s);
	drop_pending(r, s);
	dsf_hash_remove(&r->streams, s);
}

/* NULL: no memory. */
static struct node_routing_stream *make(struct node_routing *r, uint32_t name, uint32_t peer)
{
	uint32_t number = name | NODE_ROUTING_STREAM;
	struct node_routing_stream *s = dsf_hash_put(&r->streams, &number);

	if (s != NULL)
		s->peer = peer;
	return s;
}

/* BGP is told at once, the driver by the next output. */
static void break_off(struct node_routing *r, struct node_routing_stream *s, dsf_instant now)
{
	if (s->broken)
		return;
	s->broken = true;
	drop_pending(r, s);
	enqueue(r, s);
	bgp_closed(r->bgp, name_of(s), node_routing_protocol(r, now));
}

void node_routing_break(struct node_routing *r, uint32_t peer, dsf_instant now)
{
	for (struct node_routing_stream *s = dsf_hash_next(&r->streams, NULL); s != NULL;
		s = dsf_hash_next(&r->streams, s))
		if (s->peer == peer)
			break_off(r, s, now);
}

void node_routing_close_streams(struct node_routing *r)
{
	for (struct node_routing_stream *s = dsf_hash_next(&r->streams, NULL); s != NULL;
		s = dsf_hash_next(&r->streams, s))
		drop_pending(r, s);
}

/* ---- what the driver says */

int node_routing_accept(
	struct node_routing *r, const struct node_stream_ends *ends, dsf_instant now)
{
	const struct node_routing_address *a;
	int64_t name;

	if (r == NULL || ends->local_port != NODE_STREAM_BGP)
		return -DSF_E_UNKNOWN;
	a = dsf_hash_get(&r->addresses, &ends->remote);
	if (a == NULL || !dsf_ip6_equal(&ends->local, &r->peers[a->peer].topo.local))
		return -DSF_E_UNKNOWN;
	name = bgp_accept(r->bgp, &ends->remote, &ends->local, node_routing_protocol(r, now));
	if (name < 0)
		return (int)name;
	if (make(r, (uint32_t)name, a->peer) == NULL) {
		bgp_closed(r->bgp, (uint32_t)name, node_routing_protocol(r, now));
		return -DSF_E_NOMEM;
	}
	node_routing_settle(r, now);
	return (int)((uint32_t)name | NODE_ROUTING_STREAM);
}

void node_routing_connected(struct node_routing *r, uint32_t stream, dsf_instant now)
{
	struct node_routing_stream *s = r == NULL ? NULL : find(r, stream);

	if (s == NULL || s->broken)
		return;
	bgp_connected(
		r->bgp, name_of(s), &r->peers[s->peer].topo.local, node_routing_protocol(r, now));
	node_routing_settle(r, now);
}

void node_routing_input(struct node_routing *r, uint32_t stream, const uint8_t *bytes,
	uint32_t size, dsf_instant now)
{
	struct node_routing_stream *s = r == NULL ? NULL : find(r, stream);

	if (s == NULL || s->broken)
		return;
	bgp_input(r->bgp, name_of(s), bytes, size, node_routing_protocol(r, now));
	node_routing_settle(r, now);
}

void node_routing_writable(struct node_routing *r, uint32_t stream, uint32_t room, dsf_instant now)
{
	struct node_routing_stream *s = r == NULL ? NULL : find(r, stream);

	(void)now;
	if (s == NULL)
		return;
	s->room = room;
	if (s->pending != NULL)
		enqueue(r, s);
}

void node_routing_closed(struct node_routing *r, uint32_t stream, dsf_instant now)
{
	struct node_routing_stream *s = r == NULL ? NULL : find(r, stream);
	uint32_t name;
	bool known;

	if (s == NULL)
		return;
	name = name_of(s);
	known = !s->broken;
	forget(r, s);
	if (known)
		bgp_closed(r->bgp, name, node_routing_protocol(r, now));
	node_routing_settle(r, now);
}

/* ---- what the driver has to do */

static bool put(
	struct node_output *out, enum node_output_kind kind, uint32_t number, dsf_instant now)
{
	*out = (struct node_output){
		.kind = kind, .port = NODE_PORT_INBAND, .depart = now, .stream = number
	};
	return true;
}

static bool put_bytes(struct node_routing *r, struct node_routing_stream *s,
	struct node_output *out, uint32_t size, dsf_instant now)
{
	(void)put(out, NODE_OUTPUT_WRITE, s->number, now);
	out->head = r->buffer;
	out->head_size = out->size = size;
	s->room -= size;
	return true;
}

/* What BGP has written before, as far as there is room. */
static bool write_pending(struct node_routing *r, struct node_routing_stream *s,
	struct node_output *out, dsf_instant now)
{
	uint32_t size = s->pending_size - s->pending_at;

	if (s->pending == NULL || s->room == 0)
		return false;
	if (size > s->room)
		size = s->room;
	memcpy(r->buffer, s->pending + s->pending_at, size);
	s->pending_at += size;
	if (s->pending_at == s->pending_size) {
		drop_pending(r, s);
		bgp_blocked(r->bgp, name_of(s), false, node_routing_protocol(r, now));
	}
	return put_bytes(r, s, out, size, now);
}

/* size bytes of the buffer; what finds no room waits here, and BGP with it. False: all of it. */
static bool write_new(struct node_routing *r, struct node_routing_stream *s, uint32_t size,
	struct node_output *out, dsf_instant now)
{
	uint32_t taken = size < s->room ? size : s->room;

	if (taken < size) {
		s->pending = dsf_memory_new(r->config.memory, size - taken);
		if (s->pending == NULL) { /* a stream with a hole is none */
			break_off(r, s, now);
			return false;
		}
		s->pending_size = size - taken;
		memcpy(s->pending, r->buffer + taken, s->pending_size);
		bgp_blocked(r->bgp, name_of(s), true, node_routing_protocol(r, now));
	}
	return taken > 0 && put_bytes(r, s, out, taken, now);
}

static bool open_new(struct node_routing *r, const struct bgp_action *a, struct node_output *out,
	dsf_instant now)
{
	const struct topo_bgp_peer *peer = &r->peers[a->peer].topo;
	struct node_routing_stream *s = make(r, a->stream, a->peer);

	if (s == NULL) {
		bgp_closed(r->bgp, a->stream, node_routing_protocol(r, now));
		return false;
	}
	(void)put(out, NODE_OUTPUT_OPEN, s->number, now);
	out->ends = (struct node_stream_ends){ peer->local, peer->address, 0, NODE_STREAM_BGP };
	return true;
}

/* A stream that BGP is done with: in good order, unless something of it is still here. */
static bool close_old(struct node_routing *r, struct node_routing_stream *s,
	struct node_output *out, dsf_instant now)
{
	(void)put(out, NODE_OUTPUT_CLOSE, s->number, now);
	out->reset = s->broken || s->pending != NULL;
	forget(r, s);
	return true;
}

static bool act(struct node_routing *r, const struct bgp_action *a, struct node_output *out,
	dsf_instant now)
{
	struct node_routing_stream *s = find(r, a->stream | NODE_ROUTING_STREAM);

	switch (a->kind) {
	case BGP_ACTION_CONNECT: return open_new(r, a, out, now);
	case BGP_ACTION_WRITE: return s != NULL && write_new(r, s, (uint32_t)a->size, out, now);
	case BGP_ACTION_CLOSE: return s != NULL && close_old(r, s, out, now);
	}
	return false;
}

/* A stream that something is to be done with. */
static bool work(struct node_routing *r, struct node_output *out, dsf_instant now)
{
	struct node_routing_stream *s = r->work_first;

	dequeue(r, s);
	if (s->broken)
		return close_old(r, s, out, now);
	if (!write_pending(r, s, out, now))
		return false;
	if (s->pending != NULL && s->room > 0)
		enqueue(r, s);
	return true;
}

bool node_routing_output(struct node_routing *r, struct node_output *out, dsf_instant now)
{
	struct bgp_action action;
	bool done = false;

	if (r == NULL || r->bgp == NULL)
		return false;
	while (!done) {
		if (r->work_first != NULL)
			done = work(r, out, now);
		else if (bgp_output(r->bgp, &action, r->buffer, sizeof(r->buffer),
				 node_routing_protocol(r, now)))
			done = act(r, &action, out, now);
		else
			break;
	}
	node_routing_settle(r, now);
	return done;
}
