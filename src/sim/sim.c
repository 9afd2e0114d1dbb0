#include "sim/sim.h"
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include "base/err.h"
#include "base/heap.h"
#include "base/pool.h"
#include "base/rng.h"
#include "fabric/cell.h"
#include "ip/neighbor.h"
#include "sim/queue.h"
#include "sim/stream.h"
#include "topo/bgp.h"
#include "topo/memory.h"

#define FRAMES_SLAB 512u
#define FRAMES_MAX  (1u << 24)
#define CHECK_NS    NS_PER_US

/* A frame on its way. */
struct sim_frame {
	struct sim_frame *next_free;
	const uint8_t *bytes;
	void *buffer; /* the node's */
	uint32_t stored, size;
	uint32_t source, target; /* ports, indexes in the topology */
	uint32_t epoch;          /* of the link: another one by now means that it was cut */
	uint16_t checksum_start, checksum_offset;
	bool inband; /* up the sender's own host port: target is its first port */
};

struct sim_device {
	struct node *node;
	struct sim_streams *streams; /* NULL: it has no host port */
	bool frozen;
	struct sim_frame *held, **held_end; /* frozen: what has arrived, in order */
	struct dsf_heap_entry timer;        /* its deadline */
};

struct sim_link {
	uint32_t epoch;
	bool down; /* was taken down */
	bool up;   /* carries: not taken down, both ends live */
};

/* Neighbours that the lab file promises of one plane of one building: all its switches' base. */
struct sim_neighbors {
	struct sim_neighbors *next;
	uint32_t plane, building;
	struct ip_neighbor_table table;
};

struct sim {
	const struct topo *topo;
	uint64_t seed;
	const struct dsf_trace *trace;
	uint32_t control_dilation;
	bool streams; /* FSDB and BGP run */
	bool fsdb;    /* it does; else the lab file tells of neighbours */
	struct sim_device *devices;
	struct sim_link *links;
	struct sim_queue queue;    /* frames on their way: pointers */
	struct dsf_heap deadlines; /* of devices */
	struct sim_neighbors *neighbors;
	struct dsf_pool frames;
	dsf_instant now;
	uint64_t hash;
	struct sim_stats stats;
	int err;
};

dsf_instant sim_now(const struct sim *s)
{
	return s->now;
}

uint64_t sim_seed(const struct sim *s)
{
	return s->seed;
}

uint64_t sim_hash(const struct sim *s)
{
	return s->hash;
}

struct sim_stats sim_stats(const struct sim *s)
{
	return s->stats;
}

struct node *sim_node(struct sim *s, uint32_t index)
{
	return s->devices[index].node;
}

/* Frames of one instant come by the port that they go to, as node.h has it; a hyperport's by what
 * stands for it. */
static_assert(2u * TOPO_LINKS_MAX <= 1u << SIM_QUEUE_RANK_BITS, "a port's index is a rank");
#define RANK_INBAND ((1u << SIM_QUEUE_RANK_BITS) - 1) /* the host port is the last of a node's */

static void push(struct sim *s, dsf_instant at, struct sim_frame *f)
{
	const struct topo *t = s->topo;
	uint32_t rank = f->inband ? RANK_INBAND
				  : (uint32_t)(topo_port_whole(t, &t->ports[f->target]) - t->ports);
	int err = sim_queue_push(&s->queue, at, rank, (uint64_t)(uintptr_t)f);

	if (err < 0)
		s->err = err;
}

static void schedule(struct sim *s, uint32_t index)
{
	struct sim_device *d = &s->devices[index];
	dsf_instant at = d->node == NULL || d->frozen ? DSF_NEVER : node_deadline(d->node);

	if (d->streams != NULL && !d->frozen)
		at = dsf_time_min(at, sim_stream_deadline(d->streams));
	if (dsf_time_is_never(at)) {
		dsf_heap_remove(&s->deadlines, &d->timer);
		return;
	}
	at = dsf_time_max(at, s->now);
	if (d->timer.place == 0 || d->timer.at.ns != at.ns)
		(void)dsf_heap_set(&s->deadlines, &d->timer, at); /* there is room for all */
}

static void frame_done(struct sim *s, const struct sim_frame *f)
{
	node_frame_done(s->devices[s->topo->ports[f->source].node].node, f->buffer);
}

static void send_frame(struct sim *s, uint32_t index, const struct node_output *out)
{
	const struct topo_port *port = topo_node_port(s->topo, &s->topo->nodes[index], out->port);
	const struct topo_link *link = &s->topo->links[port->link];
	struct sim_frame *f;

	if (!s->links[port->link].up) {
		s->stats.frames_cut++;
		if (!port->ethernet)
			s->stats.cells_cut += dsf_load_be16(out->head + 16);
		node_frame_done(s->devices[index].node, out->buffer);
		return;
	}
	f = dsf_pool_take(&s->frames);
	if (f == NULL) {
		s->err = -ENOMEM;
		node_frame_done(s->devices[index].node, out->buffer);
		return;
	}
	assert(out->spans_count == 0); /* payload goes by name here */
	*f = (struct sim_frame){ .bytes = out->head,
		.buffer = out->buffer,
		.stored = out->head_size,
		.size = out->size,
		.source = (uint32_t)(port - s->topo->ports),
		.target = port->peer,
		.epoch = s->links[port->link].epoch,
		.checksum_start = out->checksum_start,
		.checksum_offset = out->checksum_offset };
	/* One that was frozen first puts out what should have left meanwhile. */
	push(s, dsf_time_max(dsf_time_after(out->depart, link->delay_ns), s->now), f);
}

/* A packet that goes up the host port, to the streams, when it has left. */
static void send_up(struct sim *s, uint32_t index, const struct node_output *out)
{
	struct sim_frame *f = dsf_pool_take(&s->frames);
	uint32_t port = s->topo->nodes[index].first_port;

	if (f == NULL) {
		s->err = -ENOMEM;
		node_frame_done(s->devices[index].node, out->buffer);
		return;
	}
	*f = (struct sim_frame){ .bytes = out->head,
		.buffer = out->buffer,
		.stored = out->head_size,
		.size = out->size,
		.source = port,
		.target = port,
		.inband = true };
	push(s, dsf_time_max(out->depart, s->now), f);
}

/* What the node wants of its streams. */
static void serve_streams(struct sim *s, uint32_t index, const struct node_output *out)
{
	struct sim_device *d = &s->devices[index];

	switch (out->kind) {
	case NODE_OUTPUT_OPEN:
		if (sim_stream_open(d->streams, out->stream, &out->ends, s->now) < 0)
			node_stream_closed(d->node, out->stream, true, s->now);
		break;
	case NODE_OUTPUT_WRITE:
		sim_stream_write(d->streams, out->stream, out->head, out->size, s->now);
		break;
	case NODE_OUTPUT_CLOSE:
		sim_stream_close(d->streams, out->stream, out->reset, s->now);
		break;
	case NODE_OUTPUT_FRAME:
	case NODE_OUTPUT_PLACE: break;
	}
}

/* The streams' packets, which the node routes. True: there were some. */
static bool send_down(struct sim *s, uint32_t index)
{
	struct sim_device *d = &s->devices[index];
	uint8_t packet[SIM_STREAM_PACKET];
	bool any = false;
	uint32_t size;

	while (d->streams != NULL && (size = sim_stream_output(d->streams, packet, s->now)) > 0) {
		struct node_frame frame = { packet, size, size, NODE_CHECKSUM_NONE, 0 };

		(void)node_frame_input(d->node, NODE_PORT_INBAND, &frame, s->now);
		any = true;
	}
	return any;
}

static void drain(struct sim *s, uint32_t index)
{
	struct node *n = s->devices[index].node;
	struct node_output out;

	do {
		while (node_output(n, &out, s->now)) {
			switch (out.kind) {
			case NODE_OUTPUT_FRAME:
				if (out.port == NODE_PORT_INBAND)
					send_up(s, index, &out);
				else
					send_frame(s, index, &out);
				break;
			case NODE_OUTPUT_PLACE: node_memory_done(n, out.request, 0, s->now); break;
			case NODE_OUTPUT_OPEN:
			case NODE_OUTPUT_WRITE:
			case NODE_OUTPUT_CLOSE: serve_streams(s, index, &out); break;
			}
		}
	} while (send_down(s, index));
	schedule(s, index);
}

static void fold(struct sim *s, uint64_t value)
{
	s->hash = dsf_mix(s->hash ^ value) + 0x9e3779b97f4a7c15ull;
}

/* A frame that its link lost. */
static void cut(struct sim *s, const struct sim_frame *f)
{
	if (f->inband)
		return; /* it was on no link */
	s->stats.frames_cut++;
	if (!s->topo->ports[f->source].ethernet)
		s->stats.cells_cut += dsf_load_be16(f->bytes + 16);
}

static void hold(struct sim_device *d, struct sim_frame *f)
{
	f->next_free = NULL;
	*d->held_end = f;
	d->held_end = &f->next_free;
}

static void deliver_up(struct sim *s, struct sim_frame *f)
{
	uint32_t index = s->topo->ports[f->target].node;
	struct sim_device *d = &s->devices[index];

	if (d->frozen) {
		hold(d, f);
		return;
	}
	fold(s, s->now.ns);
	fold(s, (uint64_t)index << 32 | f->size);
	if (d->streams != NULL)
		sim_stream_input(d->streams, f->bytes, f->size, s->now);
	frame_done(s, f);
	dsf_pool_give(&s->frames, f);
	drain(s, index);
}

static void deliver(struct sim *s, struct sim_frame *f)
{
	const struct topo_port *source = &s->topo->ports[f->source];
	const struct topo_port *target = &s->topo->ports[f->target];
	struct node_frame frame = { f->bytes, f->stored, f->size, f->checksum_start,
		f->checksum_offset };

	if (f->bytes == NULL) { /* counted when its sender died */
		dsf_pool_give(&s->frames, f);
		return;
	}
	if (f->inband) {
		deliver_up(s, f);
		return;
	}
	if (s->devices[target->node].frozen && s->links[source->link].epoch == f->epoch) {
		hold(&s->devices[target->node], f);
		return;
	}
	if (s->links[source->link].epoch != f->epoch) {
		cut(s, f);
	} else {
		s->stats.frames++;
		fold(s, s->now.ns);
		fold(s, (uint64_t)f->target << 32 | f->size);
		if (s->devices[target->node].node != NULL) /* else external */
			(void)node_frame_input(
				s->devices[target->node].node, target->number, &frame, s->now);
	}
	frame_done(s, f);
	dsf_pool_give(&s->frames, f);
	if (s->devices[target->node].node != NULL)
		drain(s, target->node);
}

/* When something happens next. */
static dsf_instant next_at(const struct sim *s)
{
	return dsf_time_min(sim_queue_at(&s->queue), dsf_heap_at(&s->deadlines));
}

static void run_deadline(struct sim *s)
{
	struct sim_device *d =
		DSF_CONTAINER(dsf_heap_first(&s->deadlines), struct sim_device, timer);
	uint32_t index = (uint32_t)(d - s->devices);

	s->now = d->timer.at;
	if (dsf_time_due(node_deadline(d->node), s->now))
		node_expire(d->node, s->now);
	if (d->streams != NULL && dsf_time_due(sim_stream_deadline(d->streams), s->now))
		sim_stream_expire(d->streams, s->now);
	drain(s, index);
}

/* The next event, of which there is one. At one instant deadlines come before inputs, in both
 * drivers. */
static void step(struct sim *s)
{
	struct sim_entry e;

	s->stats.events++;
	if (dsf_time_due(dsf_heap_at(&s->deadlines), sim_queue_at(&s->queue))) {
		run_deadline(s);
		return;
	}
	(void)sim_queue_pop(&s->queue, &e);
	assert(!dsf_time_before(e.at, s->now));
	s->now = e.at;
	deliver(s, (struct sim_frame *)(uintptr_t)e.value);
}

int sim_run_until(struct sim *s, dsf_instant until)
{
	while (dsf_time_due(next_at(s), until) && s->err == 0)
		step(s);
	s->now = dsf_time_max(s->now, until);
	return s->err;
}

bool sim_run_while(
	struct sim *s, bool (*go_on)(void *user, struct sim *s), void *user, dsf_instant until)
{
	while (go_on(user, s)) {
		dsf_instant check_at = dsf_time_max(dsf_time_after(s->now, CHECK_NS), next_at(s));

		if (!dsf_time_before(s->now, until) || s->err != 0)
			return false;
		sim_run_until(s, dsf_time_min(check_at, until));
	}
	return true;
}

/* An external node: its ports have carrier, and that is all. */
static bool is_silent(const struct sim *s, uint32_t node)
{
	return s->topo->nodes[node].role == TOPO_ROLE_EXTERNAL;
}

bool sim_ready(const struct sim *s)
{
	for (uint32_t i = 0; i < s->topo->nodes_count; i++)
		if (!is_silent(s, i) && (s->devices[i].node == NULL || s->devices[i].frozen ||
						!node_ready(s->devices[i].node)))
			return false;
	return true;
}

static void set_carrier(struct sim *s, uint32_t port, bool up)
{
	const struct topo_port *p = &s->topo->ports[port];

	if (s->devices[p->node].node == NULL || s->devices[p->node].frozen)
		return; /* a frozen one looks when it is thawed */
	node_carrier(s->devices[p->node].node, p->number, up, s->now);
	drain(s, p->node);
}

static bool alive(const struct sim *s, uint32_t port)
{
	uint32_t node = s->topo->ports[port].node;

	return s->devices[node].node != NULL || is_silent(s, node);
}

/* Both ends see what has become of a link: it carries while it is up and both ends live. */
static void update_link(struct sim *s, uint32_t link)
{
	const struct topo_link *l = &s->topo->links[link];
	bool up = !s->links[link].down && alive(s, l->port_a) && alive(s, l->port_b);

	if (s->links[link].up == up)
		return;
	s->links[link].up = up;
	s->links[link].epoch++;
	set_carrier(s, l->port_a, up);
	set_carrier(s, l->port_b, up);
}

void sim_link_set(struct sim *s, uint32_t link, bool up)
{
	if (s->links[link].down != up)
		return;
	s->links[link].down = !up;
	update_link(s, link);
}

static void take_back_frame(struct sim *s, uint32_t node, struct sim_frame *f)
{
	if (f->bytes == NULL || s->topo->ports[f->source].node != node)
		return;
	cut(s, f);
	frame_done(s, f);
	f->bytes = NULL;
}

/* Takes back the buffers of frames on their way that a dying node sent. */
static void take_back(struct sim *s, uint32_t node)
{
	for (uint32_t i = 0; i < s->topo->nodes_count; i++)
		for (struct sim_frame *f = s->devices[i].held; f != NULL; f = f->next_free)
			take_back_frame(s, node, f);
	for (uint32_t i = 0; i < s->queue.count; i++)
		take_back_frame(s, node, (struct sim_frame *)(uintptr_t)s->queue.entries[i].value);
}

/* What waits for a frozen node goes on its way at this instant. */
static void release(struct sim *s, uint32_t node)
{
	struct sim_device *d = &s->devices[node];
	struct sim_frame *f = d->held;

	while (f != NULL) {
		struct sim_frame *next = f->next_free;

		push(s, s->now, f);
		f = next;
	}
	d->held = NULL;
	d->held_end = &d->held;
}

bool sim_node_frozen(const struct sim *s, uint32_t node)
{
	return s->devices[node].frozen;
}

void sim_node_freeze(struct sim *s, uint32_t node, bool frozen)
{
	const struct topo_node *n = &s->topo->nodes[node];
	struct sim_device *d = &s->devices[node];

	if (d->node == NULL || d->frozen == frozen)
		return;
	d->frozen = frozen;
	if (frozen) {
		schedule(s, node);
		return;
	}
	for (uint32_t i = 0; i < n->ports_count; i++)
		set_carrier(s, n->first_port + i, s->links[topo_node_port(s->topo, n, i)->link].up);
	release(s, node);
	schedule(s, node);
}

void sim_node_stop(struct sim *s, uint32_t node)
{
	const struct topo_node *n = &s->topo->nodes[node];
	struct node *dying = s->devices[node].node;

	if (dying == NULL)
		return;
	take_back(s, node);
	s->devices[node].node = NULL;
	sim_streams_free(s->devices[node].streams);
	s->devices[node].streams = NULL;
	s->devices[node].frozen = false;
	schedule(s, node);
	release(s, node);
	for (uint32_t i = 0; i < n->ports_count; i++)
		update_link(s, topo_node_port(s->topo, n, i)->link);
	node_free(dying);
}

/* NULL: no memory. */
static const struct ip_neighbor_table *neighbors_of(struct sim *s, const struct topo_node *n)
{
	struct sim_neighbors *found = s->neighbors;

	while (found != NULL && (found->plane != n->plane || found->building != n->building))
		found = found->next;
	if (found != NULL)
		return &found->table;
	found = calloc(1, sizeof(*found));
	if (found == NULL || node_neighbors_init(&found->table, &topo_memory, s->topo, n->plane,
				     n->building, !s->fsdb) < 0) {
		free(found);
		return NULL;
	}
	found->plane = n->plane;
	found->building = n->building;
	found->next = s->neighbors;
	s->neighbors = found;
	return &found->table;
}

static struct node *make_node(struct sim *s, uint32_t index)
{
	const struct topo_node *n = &s->topo->nodes[index];
	struct node_config config = { .topo = s->topo,
		.index = index,
		.neighbors = topo_is_interface_node(n->role) ? neighbors_of(s, n) : NULL,
		.memory = &topo_memory,
		.trace = s->trace,
		.seed = s->seed,
		.control_dilation = s->control_dilation,
		.streams = s->streams,
		.promised = !s->fsdb,
		.simulated = true };

	return node_new(&config, s->now);
}

/* What stands for the kernel: its streams are the node's. */

static int owner_accept(void *user, const struct node_stream_ends *ends, dsf_instant now)
{
	return node_stream_accept(user, ends, now);
}

static void owner_connected(void *user, uint32_t stream, dsf_instant now)
{
	node_stream_connected(user, stream, now);
}

static void owner_input(
	void *user, uint32_t stream, const uint8_t *bytes, uint32_t size, dsf_instant now)
{
	node_stream_input(user, stream, bytes, size, now);
}

static void owner_writable(void *user, uint32_t stream, uint32_t room, dsf_instant now)
{
	node_stream_writable(user, stream, room, now);
}

static void owner_closed(void *user, uint32_t stream, bool reset, dsf_instant now)
{
	node_stream_closed(user, stream, reset, now);
}

static bool has_streams(const struct sim *s, uint32_t index)
{
	struct topo_bgp_walk walk = { 0 };
	struct topo_bgp_peer peer;

	return (s->fsdb && topo_is_interface_node(s->topo->nodes[index].role)) ||
	       (s->streams && topo_bgp_next(s->topo, index, &walk, &peer));
}

static int give_keys(const struct sim *s, struct sim_streams *streams, uint32_t index)
{
	struct topo_bgp_walk walk = { 0 };
	struct topo_bgp_peer peer;
	int err = 0;

	while (err == 0 && topo_bgp_next(s->topo, index, &walk, &peer))
		if (peer.given != NULL && peer.given->md5[0] != '\0')
			err = sim_stream_key(streams, &peer.address, peer.given->md5);
	return err;
}

/* 0, or -ENOMEM and the device is dead. */
static int make_device(struct sim *s, uint32_t index)
{
	struct sim_device *d = &s->devices[index];
	struct sim_stream_owner owner = { owner_accept, owner_connected, owner_input,
		owner_writable, owner_closed, NULL };
	uint64_t life = dsf_mix(s->seed ^ dsf_mix(index + 1) ^ s->now.ns);

	d->node = make_node(s, index);
	if (d->node == NULL)
		return -ENOMEM;
	if (!has_streams(s, index))
		return 0;
	owner.user = d->node;
	d->streams = sim_streams_new(&topo_memory, &owner, life);
	if (d->streams != NULL && give_keys(s, d->streams, index) == 0)
		return 0;
	sim_streams_free(d->streams);
	d->streams = NULL;
	node_free(d->node);
	d->node = NULL;
	return -ENOMEM;
}

int sim_node_start(struct sim *s, uint32_t node)
{
	const struct topo_node *n = &s->topo->nodes[node];
	struct sim_device *d = &s->devices[node];

	if (d->node != NULL || is_silent(s, node))
		return 0;
	if (make_device(s, node) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < n->ports_count; i++)
		update_link(s, topo_node_port(s->topo, n, i)->link);
	drain(s, node);
	return 0;
}

int sim_node_restart(struct sim *s, uint32_t node)
{
	sim_node_stop(s, node);
	return sim_node_start(s, node);
}

int sim_command(struct sim *s, uint32_t node, const struct node_command *command)
{
	int err;

	if (s->devices[node].node == NULL || s->devices[node].frozen)
		return -DSF_E_STATE;
	err = node_command(s->devices[node].node, command, s->now);
	drain(s, node);
	return err;
}

void sim_view(const struct sim *s, uint32_t node, enum node_query query, uint32_t filter,
	node_row_fn row_fn, void *user)
{
	for (uint32_t i = 0; i < s->topo->nodes_count; i++)
		if ((node == TOPO_NONE || node == i) && s->devices[i].node != NULL &&
			!s->devices[i].frozen)
			node_view(s->devices[i].node, query, filter, row_fn, user, s->now);
}

static int make_devices(struct sim *s)
{
	for (uint32_t i = 0; i < s->topo->nodes_count; i++) {
		s->devices[i].held_end = &s->devices[i].held;
		if (!is_silent(s, i) && make_device(s, i) < 0)
			return -ENOMEM;
	}
	return 0;
}

struct sim *sim_new(const struct sim_config *config)
{
	struct sim *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return NULL;
	s->topo = config->topo;
	s->seed = config->seed;
	s->trace = config->trace;
	s->control_dilation = config->control_dilation > 0 ? config->control_dilation : 1;
	s->streams = config->sessions_max > 0;
	s->fsdb = s->streams && topo_fsdb_sessions(s->topo) <= config->sessions_max;
	dsf_pool_init(&s->frames, &topo_memory, sizeof(struct sim_frame), FRAMES_SLAB, FRAMES_MAX);
	dsf_heap_init(&s->deadlines, &topo_memory);
	s->devices = calloc(s->topo->nodes_count, sizeof(*s->devices));
	s->links = calloc(s->topo->links_count, sizeof(*s->links));
	if (s->devices == NULL || s->links == NULL ||
		dsf_heap_reserve(&s->deadlines, s->topo->nodes_count) < 0 || make_devices(s) < 0) {
		sim_free(s);
		return NULL;
	}
	for (uint32_t i = 0; i < s->topo->links_count; i++) {
		s->links[i].down = true;
		sim_link_set(s, i, true);
	}
	return s;
}

void sim_free(struct sim *s)
{
	struct sim_entry e;

	if (s == NULL)
		return;
	for (uint32_t i = 0; s->devices != NULL && i < s->topo->nodes_count; i++)
		if (s->devices[i].held != NULL)
			release(s, i);
	while (sim_queue_pop(&s->queue, &e)) {
		struct sim_frame *f = (struct sim_frame *)(uintptr_t)e.value;

		if (f->bytes != NULL)
			frame_done(s, f);
	}
	for (uint32_t i = 0; s->devices != NULL && i < s->topo->nodes_count; i++)
		node_free(s->devices[i].node);
	for (uint32_t i = 0; s->devices != NULL && i < s->topo->nodes_count; i++)
		sim_streams_free(s->devices[i].streams);
	while (s->neighbors != NULL) {
		struct sim_neighbors *n = s->neighbors;

		s->neighbors = n->next;
		ip_neighbor_close(&n->table);
		free(n);
	}
	dsf_pool_close(&s->frames);
	sim_queue_close(&s->queue);
	dsf_heap_close(&s->deadlines);
	free(s->devices);
	free(s->links);
	free(s);
}
