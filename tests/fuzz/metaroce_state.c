/*
 * Two NICs with traffic between them while the input decides what the network does: each byte
 * pair is an action (let time pass, lose, repeat, hold back, corrupt a packet, forge one from
 * scratch, take carrier away, post a message, answer a placement late). Whatever it does, nothing
 * breaks; payload that counts as received was received once; memory is bounded and given back.
 */
#include <stdlib.h>
#include <string.h>
#include "base/err.h"
#include "metaroce/memory.h"
#include "metaroce/metaroce.h"

#define NICS    2u
#define PLANES  2u
#define WIRE    64u
#define ANSWERS 64u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct packet {
	uint32_t target, plane, stored, size;
	struct dsf_ip6 source;
	uint8_t bytes[METAROCE_HEAD_MAX + METAROCE_NAME_SIZE];
};

struct world {
	struct dsf_memory memory;
	long blocks;
	struct metaroce *nics[NICS];
	struct metaroce_qp *out, *in;
	struct packet wire[WIRE];
	uint32_t wire_count;
	uint64_t answers[ANSWERS][2];
	uint32_t answers_count;
	uint64_t now, posted;
	bool touched; /* the input wrote bytes of its own: wrong payload is no fault then */
};

static void *fuzz_alloc(void *user, size_t size)
{
	struct world *w = user;

	w->blocks++;
	return calloc(1, size);
}

static void fuzz_release(void *user, void *block, size_t size)
{
	struct world *w = user;

	(void)size;
	w->blocks--;
	free(block);
}

static void must(bool held)
{
	if (!held)
		abort();
}

static struct dsf_ip6 address_of(uint32_t nic, uint32_t plane)
{
	return (struct dsf_ip6){ { 0xfd, (uint8_t)plane, [15] = (uint8_t)(nic + 1) } };
}

static struct metaroce_peer peer_of(uint32_t nic)
{
	struct metaroce_peer peer = { .planes = PLANES };

	for (uint32_t i = 0; i < PLANES; i++)
		peer.address[i] = address_of(nic, i);
	return peer;
}

static void begin(struct world *w)
{
	struct metaroce_peer peers[NICS] = { peer_of(0), peer_of(1) };
	int err = 0;

	w->memory = (struct dsf_memory){ fuzz_alloc, fuzz_release, w };
	w->now = 1000000;
	for (uint32_t i = 0; i < NICS; i++) {
		struct metaroce_config config = { .memory = &w->memory,
			.seed = i + 1,
			.planes = PLANES,
			.paths = 4,
			.payload_bytes = 1000,
			.base_rtt_ns = 5000 };

		for (uint32_t p = 0; p < PLANES; p++) {
			config.address[p] = address_of(i, p);
			config.rate_bps[p] = 100000000000ull;
		}
		w->nics[i] = metaroce_new(&config);
		must(w->nics[i] != NULL);
		for (uint32_t p = 0; p < PLANES; p++)
			metaroce_carrier(w->nics[i], p, true, (dsf_instant){ w->now });
	}
	w->out = metaroce_qp_new(w->nics[0], 2, 3, &peers[1], 0, &err);
	w->in = metaroce_qp_new(w->nics[1], 3, 2, &peers[0], 0, &err);
	must(w->out != NULL && w->in != NULL);
	must(metaroce_region_add(w->nics[1], 9, 0, 1 << 20, metaroce_memory_pattern(1)) == 0);
}

/* Takes what NICs send onto the wire; what doesn't fit is lost. */
static void pump(struct world *w)
{
	for (uint32_t i = 0; i < NICS; i++) {
		struct metaroce_completion done;

		while (metaroce_complete(w->nics[i], &done))
			must(done.status <= 0);
		for (uint32_t plane = 0; plane < PLANES; plane++) {
			for (uint32_t burst = 0; burst < 16; burst++) {
				struct metaroce_packet packet;
				struct packet *p =
					&w->wire[w->wire_count < WIRE ? w->wire_count : WIRE - 1];

				if (!metaroce_output(w->nics[i], plane, p->bytes, &packet,
					    (dsf_instant){ w->now }))
					break;
				p->target = 1 - i;
				p->plane = plane;
				p->source = packet.source;
				p->stored = packet.head_size;
				if (packet.payload_size > 0)
					p->stored += metaroce_name_put(p->bytes + p->stored,
						packet.memory, packet.offset, packet.payload_size);
				p->size = packet.head_size + packet.payload_size;
				if (w->wire_count < WIRE)
					w->wire_count++;
			}
		}
	}
}

static void answer(struct world *w, uint32_t index)
{
	metaroce_placed(
		w->nics[w->answers[index][0]], w->answers[index][1], 0, (dsf_instant){ w->now });
	w->answers_count--;
	memmove(w->answers[index], w->answers[w->answers_count], sizeof(w->answers[0]));
}

static void deliver(struct world *w, uint32_t index, bool keep, bool late)
{
	struct packet *p = &w->wire[index];
	struct metaroce_placement place;
	/* Exactly as large as it is, so that a sanitizer sees a byte too many. */
	uint8_t *bytes = malloc(p->stored > 0 ? p->stored : 1);

	memcpy(bytes, p->bytes, p->stored);
	(void)metaroce_input(w->nics[p->target], p->plane, &p->source, index % 3 == 0, bytes,
		p->stored, p->size, &place, (dsf_instant){ w->now });
	if (place.request != 0) {
		must(place.head <= p->stored);
		if (!w->touched)
			must(metaroce_payload_check(place.memory, place.offset, bytes + place.head,
				     p->stored - place.head, place.size) == 0);
		if (w->answers_count == ANSWERS)
			answer(w, 0);
		w->answers[w->answers_count][0] = p->target;
		w->answers[w->answers_count++][1] = place.request;
		if (!late)
			answer(w, w->answers_count - 1);
	}
	free(bytes);
	if (!keep)
		w->wire[index] = w->wire[--w->wire_count];
}

static void post(struct world *w, uint32_t size)
{
	struct metaroce_write write = { .memory = metaroce_memory_pattern(1),
		.offset = w->posted % 100000,
		.size = size,
		.address = w->posted % 100000,
		.key = 9 };

	if (metaroce_post_write(w->nics[0], w->out, &write, (dsf_instant){ w->now }) == 0)
		w->posted += size;
}

static void act(struct world *w, uint8_t action, uint8_t value, const uint8_t **data, size_t *size)
{
	uint32_t index = w->wire_count > 0 ? value % w->wire_count : 0;

	switch (action % 10) {
	case 0: post(w, value * 37u); break;
	case 1: w->now += (uint64_t)value * 256; break;
	case 2:
	case 3:
		if (w->wire_count > 0)
			deliver(w, action % 10 == 2 ? 0 : index, false, value & 1);
		break;
	case 4:
		if (w->wire_count > 0)
			deliver(w, index, true, value & 1);
		break;
	case 5:
		if (w->wire_count > 0)
			w->wire[index] = w->wire[--w->wire_count];
		break;
	case 6:
		metaroce_carrier(
			w->nics[value & 1], value >> 1 & 1, value & 4, (dsf_instant){ w->now });
		break;
	case 7:
		if (w->answers_count > 0)
			answer(w, value % w->answers_count);
		break;
	case 8: /* bytes of the input over a packet */
		if (w->wire_count > 0 && *size >= 4) {
			struct packet *p = &w->wire[index];
			uint32_t at = ((uint32_t)(*data)[0] << 8 | (*data)[1]) % (p->stored + 1);
			uint32_t count = p->stored - at < 2 ? p->stored - at : 2;

			memcpy(p->bytes + at, *data + 2, count);
			*data += 4;
			*size -= 4;
			w->touched = true;
		}
		break;
	case 9: w->now += (uint64_t)value << 14; break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct world *w = calloc(1, sizeof(*w));
	struct metaroce_qp_view view;

	begin(w);
	for (uint32_t steps = 0; size >= 2 && steps < 2000; steps++) {
		uint8_t action = data[0], value = data[1];

		data += 2;
		size -= 2;
		act(w, action, value, &data, &size);
		for (uint32_t i = 0; i < NICS; i++)
			metaroce_expire(w->nics[i], (dsf_instant){ w->now });
		pump(w);
	}
	metaroce_qp_look(w->in, &view);
	must(w->touched || view.bytes_received <= w->posted);
	while (w->answers_count > 0)
		answer(w, 0);
	for (uint32_t i = 0; i < NICS; i++)
		metaroce_free(w->nics[i]);
	must(w->blocks == 0);
	free(w);
	return 0;
}
