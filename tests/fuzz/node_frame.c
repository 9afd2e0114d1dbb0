/*
 * node_frame.c - switches and a host under a script of frames, cells, carrier changes and time
 *
 * Input: records of one command byte and its arguments. The command's low two bits say which
 * device, the next three what happens to it, the last three on which port. Raw frames go in as
 * they are; cells get a train around them that is right, so that what is behind it is met.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "base/cursor.h"
#include "fabric/cell.h"
#include "node/node.h"
#include "topo/file.h"
#include "topo/memory.h"

#define DEVICES   3u
#define FRAME_MAX (FABRIC_TRAIN_HEADER + 2048u)
#define STEPS_MAX 4096u /* outputs of one command: beyond, it would not end */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char text[] =
	"{\"name\":\"fuzz\",\"nodes\":["
	"{\"name\":\"r0\",\"role\":\"rdsw\"},{\"name\":\"f0\",\"role\":\"fdsw\"},"
	"{\"name\":\"h0\",\"role\":\"host\"},{\"name\":\"r1\",\"role\":\"rdsw\"},"
	"{\"name\":\"h1\",\"role\":\"host\"}],\"links\":["
	"{\"a\":\"h0:gpu0p0\",\"b\":\"r0:eth0\",\"kind\":\"gpu\"},"
	"{\"a\":\"h1:gpu0p0\",\"b\":\"r1:eth0\",\"kind\":\"gpu\"},"
	"{\"a\":\"r0:fab0\",\"b\":\"f0:fab0\",\"kind\":\"fabric\"},"
	"{\"a\":\"r0:fab1\",\"b\":\"f0:fab2\",\"kind\":\"fabric\"},"
	"{\"a\":\"r1:fab0\",\"b\":\"f0:fab1\",\"kind\":\"fabric\"}]}";

static volatile uint8_t sink;

/* Everything that a driver would do with an output, reading each of its bytes. */
static void drain(struct node *n, dsf_instant now)
{
	struct node_output out;

	for (unsigned steps = 0; node_output(n, &out, now); steps++) {
		assert(steps < STEPS_MAX);
		for (uint32_t i = 0; i < out.head_size; i++)
			sink ^= out.head[i];
		if (out.kind == NODE_OUTPUT_PLACE) {
			node_memory_done(n, out.request, 0, now);
			continue;
		}
		assert(out.head_size <= out.size && out.size <= FABRIC_TRAIN_MAX);
		node_frame_done(n, out.buffer);
	}
}

static void run_deadlines(struct node *n, dsf_instant now)
{
	for (unsigned steps = 0; dsf_time_due(node_deadline(n), now); steps++) {
		assert(steps < STEPS_MAX);
		node_expire(n, now);
		drain(n, now);
	}
}

static void input_frame(
	struct node *n, uint32_t port, struct dsf_cursor *in, bool train, dsf_instant now)
{
	uint32_t head = train ? FABRIC_TRAIN_HEADER : 0;
	uint32_t size = (uint32_t)dsf_cursor_be(in, 2) % (FRAME_MAX - FABRIC_TRAIN_HEADER);
	uint32_t cells = train ? (uint32_t)dsf_cursor_be(in, 1) : 0;
	const uint8_t *bytes = dsf_cursor_bytes(in, size);
	struct fabric_train t = { .flags = FABRIC_TRAIN_HEARD,
		.cells = (uint16_t)cells,
		.bytes = (uint16_t)size,
		.depart = now };
	struct node_frame frame = { .checksum_start = NODE_CHECKSUM_NONE };
	uint8_t *exact;

	if (bytes == NULL)
		return;
	exact = malloc(head + size + 1u);
	if (exact == NULL)
		abort();
	memset(exact, 0, head);
	if (train)
		fabric_train_encode(&t, exact);
	memcpy(exact + head, bytes, size);
	frame.bytes = exact;
	frame.stored = frame.size = head + size;
	(void)node_frame_input(n, port, &frame, now);
	free(exact);
}

static void step(struct node **nodes, const struct topo *t, struct dsf_cursor *in, dsf_instant *now)
{
	uint32_t command = (uint32_t)dsf_cursor_be(in, 1);
	uint32_t device = (command & 3u) % DEVICES;
	uint32_t port = (command >> 5) % t->nodes[device].ports_count;
	struct node *n = nodes[device];

	switch (command >> 2 & 7) {
	case 0: node_carrier(n, port, dsf_cursor_be(in, 1) & 1u, *now); break;
	case 1: input_frame(n, port, in, false, *now); break;
	case 2: input_frame(n, NODE_PORT_INBAND, in, false, *now); break;
	case 3: now->ns += dsf_cursor_be(in, 1) * NS_PER_US; break;
	case 4: now->ns += dsf_cursor_be(in, 1) * 100u * NS_PER_US; break;
	default: input_frame(n, port, in, true, *now);
	}
	for (uint32_t i = 0; i < DEVICES; i++) {
		run_deadlines(nodes[i], *now);
		drain(nodes[i], *now);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dsf_cursor in = { data, data + size, false };
	struct node *nodes[DEVICES];
	dsf_instant now = { NS_PER_S };
	struct topo_error err;
	struct topo *t;

	if (topo_load_text(text, sizeof(text) - 1, "fuzz", &t, &err) < 0)
		abort();
	for (uint32_t i = 0; i < DEVICES; i++) {
		struct node_config config = { .topo = t,
			.index = i,
			.memory = &topo_memory,
			.seed = 1,
			.control_dilation = 1 };

		nodes[i] = node_new(&config, now);
		if (nodes[i] == NULL)
			abort();
		for (uint32_t port = 0; port < t->nodes[i].ports_count; port++)
			node_carrier(nodes[i], port, true, now);
	}
	while (!in.failed && dsf_cursor_left(&in) > 0)
		step(nodes, t, &in, &now);
	for (uint32_t i = 0; i < DEVICES; i++)
		node_free(nodes[i]);
	topo_free(t);
	return 0;
}
