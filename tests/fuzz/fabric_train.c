/*
 * Bytes as trains into a real FDSW and a real RDSW of a small zone. The input is a list of records:
 * one byte that says where to and how, two bytes of size, then bytes. A record is taken as a whole
 * frame, or as the cells of a frame whose header is made right, so that what is behind the header
 * is met too. What a node puts out goes to the other one where they share a link. Nobody aborts,
 * nothing leaks, memory is bounded, whatever comes.
 */
#include <stdlib.h>
#include "fabric/cell.h"
#include "node/node.h"
#include "tests/memory.h"
#include "topo/file.h"

#define FRAME_MAX 20000u
#define LIVE_MAX  (64u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char zone[] =
	"{\"name\":\"fuzz\",\"seed\":1,\"planes\":1,\"buildings\":[{\"name\":\"b0\",\"zones\":[{"
	"\"name\":\"z0\",\"scaling_units\":1,\"rails\":2,\"hosts_per_unit\":2,\"fdsw\":2}]}],"
	"\"fabric\":{\"mode\":\"dsf\",\"buffer_bytes\":1048576,\"voq_bytes\":262144}}";

static struct test_memory memory = TEST_MEMORY(memory);
static struct topo *topo;

struct device {
	uint32_t index;
	struct node *node;
};

static void require(bool held)
{
	if (!held)
		abort();
}

static struct device make(enum topo_role role)
{
	struct node_config config = {
		.topo = topo, .memory = &memory.memory, .seed = 1, .control_dilation = 1
	};

	while (topo->nodes[config.index].role != role)
		config.index++;
	return (struct device){ config.index, node_new(&config, DSF_EPOCH) };
}

static void input(
	struct device *d, uint32_t port, const uint8_t *bytes, uint32_t size, dsf_instant now)
{
	struct node_frame frame = { bytes, size, size, NODE_CHECKSUM_NONE, 0 };

	(void)node_frame_input(d->node, port, &frame, now);
}

/* Takes everything out of d; what goes to the other device arrives there. */
static void drain(struct device *d, struct device *other, dsf_instant now)
{
	struct node_output out;

	while (node_output(d->node, &out, now)) {
		const struct topo_port *port, *peer;

		require(out.kind == NODE_OUTPUT_FRAME && out.head_size <= out.size &&
			out.size <= FRAME_MAX);
		if (out.port == NODE_PORT_INBAND) {
			node_frame_done(d->node, out.buffer);
			continue;
		}
		require(out.port < topo->nodes[d->index].ports_count);
		port = topo_node_port(topo, &topo->nodes[d->index], out.port);
		peer = &topo->ports[port->peer];
		if (other != NULL && peer->node == other->index)
			input(other, peer->number, out.head, out.head_size, now);
		node_frame_done(d->node, out.buffer);
	}
}

static void expire(struct device *d, dsf_instant now)
{
	for (int i = 0; i < 1000 && dsf_time_due(node_deadline(d->node), now); i++)
		node_expire(d->node, node_deadline(d->node));
}

/* The record's bytes as a frame. */
static uint32_t make_frame(
	uint8_t *frame, bool cells, uint8_t how, const uint8_t *data, size_t size)
{
	struct fabric_train train = { .flags = how & 1u ? FABRIC_TRAIN_HEARD : 0,
		.cells = how & 2u ? UINT16_MAX : (uint16_t)(size / FABRIC_CELL_HEADER),
		.bytes = (uint16_t)size };

	if (!cells) {
		memcpy(frame, data, size);
		return (uint32_t)size;
	}
	memset(frame, 0, FABRIC_TRAIN_HEADER);
	fabric_train_encode(&train, frame);
	memcpy(frame + FABRIC_TRAIN_HEADER, data, size);
	return FABRIC_TRAIN_HEADER + (uint32_t)size;
}

static void run(struct device *devices, const uint8_t *data, size_t size)
{
	static uint8_t frame[FRAME_MAX];
	dsf_instant now = { 1000 };

	while (size >= 3) {
		struct device *d = &devices[data[0] & 1u], *other = &devices[~data[0] & 1u];
		uint32_t port = (data[0] >> 1 & 3u) % topo->nodes[d->index].ports_count;
		size_t part = dsf_load_be16(data + 1) & 0xfffu;
		uint8_t how = data[0] >> 4;

		data += 3;
		size -= 3;
		part = part < size ? part : size;
		now.ns += how * 500u;
		expire(d, now);
		drain(d, other, now);
		drain(other, NULL, now);
		if (how == 15)
			node_carrier(d->node, port, part & 1u, now);
		else
			input(d, port, frame, make_frame(frame, data[-3] & 8u, how, data, part),
				now);
		drain(d, other, now);
		drain(other, NULL, now);
		require(memory.live <= LIVE_MAX);
		data += part;
		size -= part;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct device devices[2];
	struct topo_error err;

	if (topo == NULL)
		require(topo_load_text(zone, sizeof(zone) - 1, "zone", &topo, &err) == 0);
	devices[0] = make(TOPO_ROLE_FDSW);
	devices[1] = make(TOPO_ROLE_RDSW);
	for (int i = 0; i < 2; i++)
		for (uint32_t p = 0; p < topo->nodes[devices[i].index].ports_count; p++)
			node_carrier(devices[i].node, p, true, DSF_EPOCH);
	run(devices, data, size);
	node_free(devices[0].node);
	node_free(devices[1].node);
	require(memory.live == 0);
	return 0;
}
