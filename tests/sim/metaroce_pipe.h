/*
 * metaroce_pipe.h - several NICs' transports over a made-up network in virtual time
 *
 * Every NIC has one port a plane. A packet leaves when its port is free, crosses a pipe with loss,
 * duplication and jitter, queues at the receiver's port (drop and marking by queue delay) and is
 * handed in. Payload goes by name; what lands is checked against the region's pattern. Memory is
 * counted, and can be told to fail.
 */
#ifndef DSF_TESTS_METAROCE_PIPE_H
#define DSF_TESTS_METAROCE_PIPE_H
#include <stdlib.h>
#include "base/err.h"
#include "base/heap.h"
#include "base/rng.h"
#include "metaroce/memory.h"
#include "metaroce/metaroce.h"
#include "tests/tap.h"

#define PIPE_NICS_MAX 80

struct pipe_fault {
	uint32_t loss_ppm, duplicate_ppm, reorder_ppm;
	uint64_t jitter_ns; /* keeps the order of a path unless reorder_ppm hits */
};

struct pipe_port {
	bool up;
	bool silent; /* what is sent disappears */
	uint64_t tx_free, rx_free;
	uint64_t sent_bytes, received_bytes; /* on the wire */
	uint64_t dropped, marked;
};

struct pipe_nic {
	struct metaroce *m;
	struct pipe_port ports[METAROCE_PLANES_MAX];
	uint64_t errors[DSF_ERR_COUNT];
	uint64_t bytes_wrong, placements, completed, failed;
	uint64_t completed_bytes, last_completion;
};

struct pipe {
	struct dsf_memory memory;
	long blocks;     /* that are out */
	long fail_after; /* allocations until one fails; < 0: never */
	struct pipe_nic nics[PIPE_NICS_MAX];
	uint32_t nics_count, planes;
	uint64_t now, rate_bps, delay_ns, queue_mark_ns, queue_drop_ns;
	uint64_t place_delay_ns; /* placements are answered after up to so long, in any order */
	struct pipe_fault fault;
	uint64_t last_of_port[0x10000]; /* arrival of the latest packet of a source port */
	struct dsf_heap events;
	struct dsf_rng rng;
	uint64_t packets, data_packets, lost;
	struct dsf_trace *trace;
	void (*completed)(struct pipe *pipe, uint32_t nic, const struct metaroce_completion *c);
	void *user;
	bool (*drop)(struct pipe *pipe, uint32_t nic, uint32_t plane, const uint8_t *bytes,
		uint32_t size);
};

struct pipe_event {
	struct dsf_heap_entry entry;
	uint32_t nic, plane;
	struct dsf_ip6 source;
	bool placed, marked;
	uint64_t request;
	int status;
	uint32_t stored, size;
	uint8_t bytes[METAROCE_HEAD_MAX + METAROCE_NAME_SIZE];
};

static void *pipe_alloc(void *user, size_t size)
{
	struct pipe *pipe = user;
	void *block;

	if (pipe->fail_after == 0)
		return NULL;
	if (pipe->fail_after > 0)
		pipe->fail_after--;
	block = calloc(1, size);
	pipe->blocks += block != NULL;
	return block;
}

static void pipe_release(void *user, void *block, size_t size)
{
	struct pipe *pipe = user;

	(void)size;
	pipe->blocks--;
	free(block);
}

static struct dsf_ip6 pipe_address(uint32_t nic, uint32_t plane)
{
	struct dsf_ip6 a = { { 0xfd, 0x5f, (uint8_t)plane, 0, 0, 0, (uint8_t)(nic >> 8),
		(uint8_t)nic, 0, 0, 0, 0, 0, 0, 0, 2 } };

	return a;
}

static struct metaroce_peer pipe_peer(const struct pipe *pipe, uint32_t nic)
{
	struct metaroce_peer peer = { .planes = pipe->planes };

	for (uint32_t i = 0; i < pipe->planes; i++)
		peer.address[i] = pipe_address(nic, i);
	return peer;
}

static void pipe_init(struct pipe *pipe, uint32_t planes, uint64_t seed)
{
	memset(pipe, 0, sizeof(*pipe));
	pipe->memory = (struct dsf_memory){ pipe_alloc, pipe_release, pipe };
	pipe->fail_after = -1;
	pipe->planes = planes;
	pipe->rate_bps = 400000000000ull;
	pipe->delay_ns = 2000;
	pipe->queue_mark_ns = UINT64_MAX;
	pipe->queue_drop_ns = UINT64_MAX;
	dsf_heap_init(&pipe->events, &pipe->memory);
	dsf_rng_init(&pipe->rng, seed);
}

__attribute__((unused)) static uint32_t pipe_nic_add(
	struct pipe *pipe, uint32_t paths, uint64_t probe_min_ns)
{
	uint32_t index = pipe->nics_count++;
	struct pipe_nic *nic = &pipe->nics[index];
	struct metaroce_config config = { .memory = &pipe->memory,
		.trace = pipe->trace,
		.node = index,
		.seed = dsf_rng_next(&pipe->rng),
		.planes = pipe->planes,
		.paths = paths,
		.payload_bytes = 4096,
		.base_rtt_ns = 2 * pipe->delay_ns + 400,
		.probe_min_ns = probe_min_ns };

	for (uint32_t i = 0; i < pipe->planes; i++) {
		config.address[i] = pipe_address(index, i);
		config.rate_bps[i] = pipe->rate_bps;
	}
	nic->m = metaroce_new(&config);
	for (uint32_t i = 0; nic->m != NULL && i < pipe->planes; i++) {
		nic->ports[i].up = true;
		metaroce_carrier(nic->m, i, true, (dsf_instant){ pipe->now });
	}
	return index;
}

static bool pipe_chance(struct pipe *pipe, uint32_t ppm)
{
	return ppm > 0 && dsf_rng_below(&pipe->rng, 1000000) < ppm;
}

static uint32_t pipe_nic_of(const struct dsf_ip6 *a)
{
	return (uint32_t)a->bytes[6] << 8 | a->bytes[7];
}

static void pipe_deliver(struct pipe *pipe, const struct metaroce_packet *packet, uint32_t plane,
	const uint8_t *bytes, uint32_t stored, uint32_t size, uint64_t at)
{
	uint32_t target = pipe_nic_of(&packet->target);
	struct pipe_port *port = &pipe->nics[target].ports[plane];
	uint64_t ser = dsf_time_of_bytes(size + METAROCE_OVERHEAD, pipe->rate_bps);
	uint64_t begin = at > port->rx_free ? at : port->rx_free;
	struct pipe_event *event;

	if (!port->up)
		return;
	if (begin - at > pipe->queue_drop_ns) {
		port->dropped++;
		return;
	}
	event = calloc(1, sizeof(*event));
	event->nic = target;
	event->plane = plane;
	event->source = packet->source;
	event->marked = packet->ect && begin - at > pipe->queue_mark_ns;
	port->marked += event->marked;
	event->stored = stored;
	event->size = size;
	memcpy(event->bytes, bytes, stored);
	port->rx_free = begin + ser;
	dsf_heap_set(&pipe->events, &event->entry, (dsf_instant){ begin + ser });
}

static void pipe_send(struct pipe *pipe, uint32_t index, uint32_t plane,
	const struct metaroce_packet *packet, uint8_t *bytes)
{
	struct pipe_port *port = &pipe->nics[index].ports[plane];
	uint32_t size = packet->head_size + packet->payload_size;
	uint32_t stored = packet->head_size;
	uint64_t at;

	if (packet->payload_size > 0)
		stored += metaroce_name_put(
			bytes + stored, packet->memory, packet->offset, packet->payload_size);
	port->tx_free = pipe->now + dsf_time_of_bytes(size + METAROCE_OVERHEAD, pipe->rate_bps);
	port->sent_bytes += size + METAROCE_OVERHEAD;
	pipe->packets++;
	pipe->data_packets += packet->payload_size > 0;
	if (port->silent || pipe_chance(pipe, pipe->fault.loss_ppm) ||
		(pipe->drop != NULL && pipe->drop(pipe, index, plane, bytes, packet->head_size))) {
		pipe->lost++;
		return;
	}
	at = port->tx_free + pipe->delay_ns;
	if (pipe->fault.jitter_ns > 0)
		at += dsf_rng_below(&pipe->rng, pipe->fault.jitter_ns);
	if (!pipe_chance(pipe, pipe->fault.reorder_ppm)) {
		uint64_t *last = &pipe->last_of_port[packet->source_port];

		if (at <= *last)
			at = *last + 1;
		*last = at;
	}
	pipe_deliver(pipe, packet, plane, bytes, stored, size, at);
	if (pipe_chance(pipe, pipe->fault.duplicate_ppm))
		pipe_deliver(pipe, packet, plane, bytes, stored, size, at + 100);
}

/* Sends what can be sent now. */
static void pipe_pump(struct pipe *pipe)
{
	dsf_instant now = { pipe->now };

	for (uint32_t i = 0; i < pipe->nics_count; i++) {
		struct pipe_nic *nic = &pipe->nics[i];
		struct metaroce_completion completion;

		while (metaroce_complete(nic->m, &completion)) {
			nic->completed++;
			nic->failed += completion.status < 0;
			nic->completed_bytes += completion.status == 0 ? completion.size : 0;
			nic->last_completion = pipe->now;
			if (pipe->completed != NULL)
				pipe->completed(pipe, i, &completion);
		}
		for (uint32_t plane = 0; plane < pipe->planes; plane++) {
			struct metaroce_packet packet;
			uint8_t bytes[METAROCE_HEAD_MAX + METAROCE_NAME_SIZE];

			while (nic->ports[plane].tx_free <= pipe->now &&
				metaroce_wants(nic->m, plane) &&
				metaroce_output(nic->m, plane, bytes, &packet, now))
				pipe_send(pipe, i, plane, &packet, bytes);
		}
	}
}

static uint64_t pipe_next(const struct pipe *pipe)
{
	uint64_t next = dsf_heap_at(&pipe->events).ns;

	for (uint32_t i = 0; i < pipe->nics_count; i++) {
		const struct pipe_nic *nic = &pipe->nics[i];
		uint64_t deadline = metaroce_deadline(nic->m).ns;

		if (deadline < next)
			next = deadline;
		for (uint32_t plane = 0; plane < pipe->planes; plane++) {
			if (nic->ports[plane].tx_free > pipe->now &&
				nic->ports[plane].tx_free < next && metaroce_wants(nic->m, plane))
				next = nic->ports[plane].tx_free;
		}
	}
	return next;
}

static void pipe_answer(struct pipe *pipe, uint32_t index, uint64_t request, int status)
{
	pipe->nics[index].placements++;
	metaroce_placed(pipe->nics[index].m, request, status, (dsf_instant){ pipe->now });
}

static void pipe_handle(struct pipe *pipe, struct pipe_event *event)
{
	struct pipe_nic *nic = &pipe->nics[event->nic];
	struct metaroce_placement place;
	int err;

	if (event->placed) {
		pipe_answer(pipe, event->nic, event->request, event->status);
		return;
	}
	if (!nic->ports[event->plane].up)
		return;
	nic->ports[event->plane].received_bytes += event->size + METAROCE_OVERHEAD;
	err = metaroce_input(nic->m, event->plane, &event->source, event->marked, event->bytes,
		event->stored, event->size, &place, (dsf_instant){ pipe->now });
	if (err < 0)
		nic->errors[DSF_ERR_INDEX(err)]++;
	if (place.request != 0) {
		size_t wrong = metaroce_payload_check(place.memory, place.offset,
			event->bytes + place.head, event->stored - place.head, place.size);
		int status = wrong > 0 ? -DSF_E_CORRUPT : 0;

		nic->bytes_wrong += wrong;
		if (pipe->place_delay_ns == 0) {
			pipe_answer(pipe, event->nic, place.request, status);
		} else {
			struct pipe_event *answer = calloc(1, sizeof(*answer));

			answer->placed = true;
			answer->nic = event->nic;
			answer->request = place.request;
			answer->status = status;
			dsf_heap_set(&pipe->events, &answer->entry,
				(dsf_instant){ pipe->now +
					       dsf_rng_below(&pipe->rng, pipe->place_delay_ns) });
		}
	}
}

/* One step in time; false when nothing will ever happen again, or not before until. */
static bool pipe_step(struct pipe *pipe, uint64_t until)
{
	uint64_t next;

	pipe_pump(pipe);
	next = pipe_next(pipe);
	if (next == UINT64_MAX || next > until) {
		if (until != UINT64_MAX && until > pipe->now)
			pipe->now = until;
		return false;
	}
	if (next > pipe->now)
		pipe->now = next;
	for (uint32_t i = 0; i < pipe->nics_count; i++) {
		if (dsf_time_due(metaroce_deadline(pipe->nics[i].m), (dsf_instant){ pipe->now }))
			metaroce_expire(pipe->nics[i].m, (dsf_instant){ pipe->now });
	}
	while (dsf_time_due(dsf_heap_at(&pipe->events), (dsf_instant){ pipe->now })) {
		struct pipe_event *event =
			DSF_CONTAINER(dsf_heap_first(&pipe->events), struct pipe_event, entry);

		dsf_heap_remove(&pipe->events, &event->entry);
		pipe_handle(pipe, event);
		free(event);
	}
	return true;
}

__attribute__((unused)) static void pipe_run(struct pipe *pipe, uint64_t until)
{
	while (pipe_step(pipe, until))
		;
}

__attribute__((unused)) static void pipe_carrier(
	struct pipe *pipe, uint32_t nic, uint32_t plane, bool up)
{
	pipe->nics[nic].ports[plane].up = up;
	metaroce_carrier(pipe->nics[nic].m, plane, up, (dsf_instant){ pipe->now });
}

static void pipe_close(struct pipe *pipe)
{
	while (pipe->events.count > 0) {
		struct pipe_event *event =
			DSF_CONTAINER(dsf_heap_first(&pipe->events), struct pipe_event, entry);

		dsf_heap_remove(&pipe->events, &event->entry);
		free(event);
	}
	for (uint32_t i = 0; i < pipe->nics_count; i++)
		metaroce_free(pipe->nics[i].m);
	dsf_heap_close(&pipe->events);
}

/* A stream from one NIC to another: numbers, region and pattern follow from `flow`. */
struct pipe_flow {
	uint32_t source, target, number;
	struct metaroce_qp *out, *in;
	uint64_t memory;
	uint32_t posted;
	uint64_t offset;
};

__attribute__((unused)) static bool pipe_flow_open(struct pipe *pipe, struct pipe_flow *flow,
	uint32_t source, uint32_t target, uint32_t number)
{
	struct metaroce_peer there = pipe_peer(pipe, target), here = pipe_peer(pipe, source);
	int err = 0;

	memset(flow, 0, sizeof(*flow));
	flow->source = source;
	flow->target = target;
	flow->number = number;
	flow->memory = metaroce_memory_pattern(dsf_mix(number + 77));
	flow->out = metaroce_qp_new(
		pipe->nics[source].m, 2 * number, 2 * number + 1, &there, number, &err);
	if (flow->out != NULL)
		flow->in = metaroce_qp_new(
			pipe->nics[target].m, 2 * number + 1, 2 * number, &here, number, &err);
	return flow->in != NULL && metaroce_region_add(pipe->nics[target].m, number, 0x10000,
					   1ull << 40, flow->memory) == 0;
}

__attribute__((unused)) static int pipe_flow_post(
	struct pipe *pipe, struct pipe_flow *flow, uint32_t size)
{
	struct metaroce_write w = { .memory = flow->memory,
		.offset = flow->offset,
		.size = size,
		.address = 0x10000 + flow->offset,
		.key = flow->number,
		.user = flow->posted };
	int err = metaroce_post_write(
		pipe->nics[flow->source].m, flow->out, &w, (dsf_instant){ pipe->now });

	if (err == 0) {
		flow->posted++;
		flow->offset += size;
	}
	return err;
}

#endif
