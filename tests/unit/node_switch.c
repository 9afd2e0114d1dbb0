/*
 * An FDSW and an RDSW of a small zone by hand: an allocator that fails at any call, cells that no
 * right peer would send, commands that can't be.
 */
#include "base/err.h"
#include "fabric/cell.h"
#include "fabric/reach.h"
#include "node/node.h"
#include "node/row.h"
#include "tests/memory.h"
#include "tests/tap.h"
#include "topo/file.h"

static const char zone[] =
	"{\"name\":\"unit\",\"seed\":1,\"planes\":1,\"buildings\":[{\"name\":\"b0\",\"zones\":[{"
	"\"name\":\"z0\",\"scaling_units\":1,\"rails\":2,\"hosts_per_unit\":2,\"fdsw\":2}]}],"
	"\"fabric\":{\"mode\":\"dsf\"}}";

static struct test_memory memory = TEST_MEMORY(memory);
static struct topo *topo;
static struct node *node;
static const struct topo_node *self;
static dsf_instant now;
static uint32_t peer_switch; /* another RDSW */
static bool starting;
static uint64_t short_frames;
static uint16_t from_switch = UINT16_MAX, from_port; /* what trains say of their source */

static bool make(enum topo_role role)
{
	struct node_config config = { .topo = topo,
		.memory = &memory.memory,
		.seed = 1,
		.control_dilation = 1,
		.starting = starting };

	while (topo->nodes[config.index].role != role)
		config.index++;
	self = &topo->nodes[config.index];
	peer_switch = 0;
	while (peer_switch == self->switch_index ||
		topo->nodes[topo->switch_node[peer_switch]].role != TOPO_ROLE_RDSW)
		peer_switch++;
	now = (dsf_instant){ 1000 };
	node = node_new(&config, now);
	return node != NULL;
}

static uint32_t fabric_port(void)
{
	uint32_t i = 0;

	while (topo_node_port(topo, self, i)->ethernet)
		i++;
	return i;
}

static void drain(void)
{
	struct node_output out;

	while (node_output(node, &out, now)) {
		short_frames +=
			out.head_size > out.size || (out.port != NODE_PORT_INBAND && out.size < 14);
		node_frame_done(node, out.buffer);
	}
}

static void pass(uint64_t ns)
{
	dsf_instant until = dsf_time_after(now, ns);

	while (dsf_time_due(node_deadline(node), until)) {
		now = dsf_time_max(now, node_deadline(node));
		node_expire(node, now);
		drain();
	}
	now = until;
}

/* One cell with its payload in a right train; what it sets off stays inside. */
static int input_cell(uint32_t port, const struct fabric_cell *cell, const uint8_t *payload)
{
	uint8_t frame[FABRIC_TRAIN_HEADER + FABRIC_CELL_HEADER + 512] = { 0 };
	uint32_t bytes = FABRIC_CELL_HEADER + cell->stored;
	struct fabric_train train = { .flags = FABRIC_TRAIN_HEARD,
		.cells = 1,
		.bytes = (uint16_t)bytes,
		.source_switch = from_switch,
		.source_port = from_port };
	struct node_frame in = { frame, FABRIC_TRAIN_HEADER + bytes, FABRIC_TRAIN_HEADER + bytes,
		NODE_CHECKSUM_NONE, 0 };

	fabric_train_encode(&train, frame);
	fabric_cell_encode(cell, frame + FABRIC_TRAIN_HEADER);
	if (payload != NULL)
		memcpy(frame + FABRIC_TRAIN_HEADER + FABRIC_CELL_HEADER, payload, cell->stored);
	return node_frame_input(node, port, &in, now);
}

static int send_cell(uint32_t port, const struct fabric_cell *cell, const uint8_t *payload)
{
	int err = input_cell(port, cell, payload);

	drain();
	return err;
}

static int send_reach(uint32_t port, uint8_t bits)
{
	uint8_t payload[5] = { 0, 0, 0, (uint8_t)topo->switches_count, bits };
	struct fabric_cell cell = { .kind = FABRIC_CELL_REACH, .size = 5, .stored = 5 };

	return send_cell(port, &cell, payload);
}

static struct fabric_cell data_cell(uint32_t system_port, uint16_t size, uint16_t stored)
{
	return (struct fabric_cell){ .kind = FABRIC_CELL_DATA,
		.flags = FABRIC_CELL_LAST,
		.class = FABRIC_CLASS_RDMA,
		.size = size,
		.stored = stored,
		.source = (uint16_t)peer_switch,
		.destination = (uint16_t)self->switch_index,
		.system_port = system_port,
		.packet_size = size,
		.packet_stored = stored,
		.epoch = 7 };
}

static void all_up(void)
{
	for (uint32_t i = 0; i < self->ports_count; i++)
		node_carrier(node, i, true, now);
	drain();
}

/* Everything a switch does, under an allocator that may fail. */
static void live(void)
{
	uint8_t payload[480] = { 2 };
	struct fabric_cell cell = data_cell(self->switch_index * 64u + 2, 100, 100);
	struct fabric_cell request = { .kind = FABRIC_CELL_REQUEST,
		.class = FABRIC_CLASS_RDMA,
		.source = (uint16_t)peer_switch,
		.destination = (uint16_t)self->switch_index,
		.system_port = self->switch_index * 64u + 2,
		.epoch = 7,
		.waiting = 9000,
		.total = 9000 };

	all_up();
	for (uint32_t i = 0; i < self->ports_count; i++) {
		if (topo_node_port(topo, self, i)->ethernet)
			continue;
		send_reach(i, 0xff);
		for (uint32_t k = 0; k < 8; k++) {
			cell.packet_sequence = k;
			cell.destination = (uint16_t)(k & 3u);
			send_cell(i, &cell, payload);
		}
		send_cell(i, &request, NULL);
	}
	pass(200000);
	node_carrier(node, fabric_port(), false, now);
	node_carrier(node, fabric_port(), true, now);
	pass(200000);
}

static void failing_memory(enum topo_role role, const char *name)
{
	unsigned long nth, failed = 0;

	for (nth = 1; nth < 400; nth++) {
		memory.failed = false;
		memory.fail_at = nth;
		if (make(role)) {
			live();
			node_free(node);
		}
		failed += memory.failed;
		memory.fail_at = 0;
		if (memory.live != 0)
			TAP_EQ(memory.live, 0, "%s: allocation %lu fails: a leak", name, nth);
		if (!memory.failed)
			break;
	}
	TAP_OK(failed >= 10, "%s: each of %lu allocations failed once, no crash, no leak", name,
		failed);
	for (nth = 1; nth < failed; nth += 3) {
		test_memory_fail_from(&memory, nth);
		if (make(role)) {
			live();
			node_free(node);
		}
		test_memory_fail_from(&memory, 0);
		if (memory.live != 0)
			TAP_EQ(memory.live, 0, "%s: all from %lu fail: a leak", name, nth);
	}
	TAP_OK(memory.live == 0, "%s: all allocations from the nth on failed", name);
}

static struct node_row_counters counted;
static uint64_t counted_errors;

static void count(void *user, const struct node_row *row)
{
	(void)user;
	counted = row->counters;
	counted_errors = 0;
	for (int i = 0; i < DSF_ERR_COUNT; i++)
		counted_errors += row->counters.errors[i];
}

static uint64_t errors(void)
{
	node_view(node, NODE_QUERY_COUNTERS, TOPO_NONE, count, NULL, now);
	return counted_errors;
}

/* Cells that are well formed and can't be right: counted, no more. */
static void wrong_cells(void)
{
	struct fabric_cell cell;
	uint8_t payload[480] = { 2 };
	uint64_t before, memory_before;
	uint32_t port;

	make(TOPO_ROLE_RDSW);
	all_up();
	port = fabric_port();
	send_reach(port, 0xff);
	before = errors();
	memory_before = memory.live;
	cell = data_cell(self->switch_index * 64u + 60, 100, 100);
	send_cell(port, &cell, payload);
	TAP_EQ(errors() - before, 1, "a system port that isn't there");
	cell = data_cell(peer_switch * 64u + 2, 100, 100);
	send_cell(port, &cell, payload);
	TAP_EQ(errors() - before, 2, "another switch's system port");
	cell = data_cell(self->switch_index * 64u + 2, 100, 100);
	cell.source = 999;
	send_cell(port, &cell, payload);
	TAP_EQ(errors() - before, 3, "a source that the lab doesn't have");
	cell.source =
		(uint16_t)topo->nodes[topo->ports[topo_node_port(topo, self, port)->peer].node]
			.switch_index;
	send_cell(port, &cell, payload);
	TAP_EQ(errors() - before, 4, "a source that is no interface node");
	cell = data_cell(self->switch_index * 64u + 2, 100, 100);
	cell.destination = (uint16_t)peer_switch;
	send_cell(port, &cell, payload);
	TAP_EQ(errors() - before, 5, "a cell for another switch");
	TAP_EQ(memory.live, memory_before, "none of them makes state");
	cell = data_cell(self->switch_index * 64u + 63, 20, 0);
	send_cell(port, &cell, payload);
	cell = data_cell(self->switch_index * 64u + 63, 13, 13);
	cell.packet_sequence = 1;
	send_cell(port, &cell, payload);
	TAP_EQ(errors() - before, 7, "packets that are no frames, for the host port");
	TAP_EQ(short_frames, 0, "never come out");
	cell = data_cell(self->switch_index * 64u + 2, 100, 100);
	cell.kind = FABRIC_CELL_GRANT;
	cell.size = cell.stored = 0;
	send_cell(port, &cell, NULL);
	TAP_EQ(errors() - before, 8, "a grant that nobody asked for");
	node_carrier(node, port, false, now);
	TAP_EQ(send_reach(port, 1), -DSF_E_STATE, "a train on a port without carrier");
	node_free(node);
	TAP_EQ(memory.live, 0, "wrong cells: nothing is left");
}

static void commands(void)
{
	struct node_command command = { .kind = NODE_COMMAND_IMPAIR, .port = 1000 };

	make(TOPO_ROLE_RDSW);
	TAP_EQ(node_command(node, &command, now), -DSF_E_UNKNOWN, "a port that isn't there");
	command.kind = NODE_COMMAND_WORKLOAD_START;
	TAP_EQ(node_command(node, &command, now), -DSF_E_UNSUPPORTED, "a workload on a switch");
	node_free(node);
	make(TOPO_ROLE_FDSW);
	TAP_EQ(node_command(node, &command, now), -DSF_E_UNSUPPORTED, "or on a fabric node");
	command = (struct node_command){ .kind = NODE_COMMAND_IMPAIR, .port = UINT32_MAX };
	TAP_EQ(node_command(node, &command, now), -DSF_E_UNKNOWN, "the largest port");
	node_free(node);
	TAP_EQ(memory.live, 0, "commands: nothing is left");
}

/* How long a packet that has come through the fabric takes at the host port; UINT64_MAX: it never
 * comes out. */
static uint64_t host_port_takes(uint32_t sequence)
{
	struct fabric_cell cell = data_cell(self->switch_index * 64u + 63, 400, 400);
	static const uint8_t payload[400];
	uint64_t takes_ns = UINT64_MAX;
	struct node_output out;

	cell.packet_sequence = sequence;
	input_cell(fabric_port(), &cell, payload);
	while (node_output(node, &out, now)) {
		if (out.port == NODE_PORT_INBAND)
			takes_ns = dsf_time_since(now, out.depart);
		node_frame_done(node, out.buffer);
	}
	return takes_ns;
}

/* While a lab starts the host port has no rate, then it has its own. */
static void host_port_rate(void)
{
	struct node_command command = { .kind = NODE_COMMAND_STARTED };

	starting = true;
	make(TOPO_ROLE_RDSW);
	starting = false;
	all_up();
	send_reach(fabric_port(), 0xff);
	TAP_EQ(host_port_takes(0), 0, "a lab that starts: the host port takes no time");
	TAP_EQ(node_command(node, &command, now), 0, "it has started");
	/* 400 B and 24 B of the wire at 100G */
	TAP_EQ(host_port_takes(1), 34, "a packet takes as long as at 100G");
	node_free(node);
	TAP_EQ(memory.live, 0, "started: nothing is left");
}

/* Reachability cells that leave by a port within so long; *last is the bitmap of the last one. */
static uint32_t told_within(uint32_t port, uint64_t ns, uint8_t *last)
{
	dsf_instant until = dsf_time_after(now, ns);
	struct node_output out;
	uint32_t cells = 0;

	for (;;) {
		while (node_output(node, &out, now)) {
			const uint8_t *at = out.head + FABRIC_TRAIN_HEADER;
			struct fabric_cell cell;

			while (out.port == port && at < out.head + out.head_size) {
				int taken = fabric_cell_decode(
					&cell, at, (size_t)(out.head + out.head_size - at));

				if (taken < 0)
					break;
				if (cell.kind == FABRIC_CELL_REACH) {
					*last = at[FABRIC_CELL_HEADER + 4];
					cells++;
				}
				at += taken;
			}
			node_frame_done(node, out.buffer);
		}
		if (!dsf_time_due(node_deadline(node), until))
			break;
		now = dsf_time_max(now, node_deadline(node));
		node_expire(node, now);
	}
	now = until;
	return cells;
}

/* Changes that come while a reachability cell waits don't make a cell each. */
static void one_telling_at_a_time(void)
{
	uint8_t bits = 0, last = 0;

	make(TOPO_ROLE_FDSW);
	all_up();
	send_reach(0, 0);
	send_reach(1, 0);
	(void)told_within(1, 10000, &last);
	for (uint32_t i = 0; i < 9; i++) {
		uint8_t payload[5] = { 0, 0, 0, (uint8_t)topo->switches_count, bits ^= 1u };
		struct fabric_cell cell = { .kind = FABRIC_CELL_REACH, .size = 5, .stored = 5 };

		input_cell(0, &cell, payload);
	}
	TAP_EQ(told_within(1, 1000, &last), 2, "nine changes at one instant are told by two cells");
	TAP_EQ(last, 1, "the last one tells how it is now");
	for (uint32_t port = 0; port < 2; port++)
		node_carrier(node, port, false, now);
	node_free(node);
	TAP_EQ(memory.live, 0, "one telling at a time: nothing is left");
}

static struct node_row_port port_rows[64];

static void take_port(void *user, const struct node_row *row)
{
	(void)user;
	if (row->port.port < 64)
		port_rows[row->port.port] = row->port;
}

static const struct node_row_port *look_at(uint32_t port)
{
	node_view(node, NODE_QUERY_PORT, TOPO_NONE, take_port, NULL, now);
	return &port_rows[port];
}

static const struct node_row_port *hear_from(uint32_t port, uint32_t switch_index, uint32_t number)
{
	from_switch = (uint16_t)switch_index;
	from_port = (uint16_t)number;
	send_reach(port, 0);
	from_switch = UINT16_MAX;
	return look_at(port);
}

/* Whoever is heard is compared with the plan. An FDSW: its ports lead to the RDSWs. */
static void cabling(void)
{
	const struct topo_port *peers[2];
	const struct topo_node *rdsw[2], *other;
	const struct node_row_port *row;

	make(TOPO_ROLE_FDSW);
	for (uint32_t i = 0; i < 2; i++) {
		peers[i] = &topo->ports[topo_node_port(topo, self, i)->peer];
		rdsw[i] = &topo->nodes[peers[i]->node];
	}
	other = self;
	for (uint32_t i = 0; i < topo->nodes_count; i++)
		if (topo->nodes[i].role == TOPO_ROLE_FDSW && &topo->nodes[i] != self)
			other = &topo->nodes[i];
	node_view(node, NODE_QUERY_COUNTERS, TOPO_NONE, count, NULL, now);
	TAP_EQ(counted.cabling_missing, 2, "cabling: what is planned and isn't there is missing");
	TAP_OK(!look_at(0)->mismatch, "and no mismatch");
	all_up();
	row = hear_from(0, rdsw[0]->switch_index, peers[0]->number);
	TAP_OK(row->attached && !row->missing && !row->mismatch && !row->bogus, "as planned");
	row = hear_from(0, rdsw[1]->switch_index, peers[1]->number);
	TAP_OK(row->mismatch && !row->bogus && row->neighbor_switch == rdsw[1]->switch_index,
		"another switch: a mismatch");
	row = hear_from(0, rdsw[0]->switch_index, peers[0]->number + 1);
	TAP_OK(row->mismatch && !row->bogus, "another port of the right one: a mismatch");
	row = hear_from(0, rdsw[0]->switch_index, 999);
	TAP_OK(row->mismatch && !row->bogus, "a port that it can't have: a mismatch");
	row = hear_from(0, 999, 0);
	TAP_OK(row->mismatch && row->bogus, "a switch that the lab doesn't have: bogus");
	row = hear_from(0, other->switch_index, 0);
	TAP_OK(row->mismatch && row->bogus, "a fabric switch of our own level: bogus");
	node_view(node, NODE_QUERY_COUNTERS, TOPO_NONE, count, NULL, now);
	TAP_OK(counted.cabling_missing == 1 && counted.cabling_mismatch == 1 &&
			counted.cabling_bogus == 1,
		"they are counted");
	node_carrier(node, 0, false, now);
	TAP_OK(look_at(0)->missing && !look_at(0)->mismatch && !look_at(0)->attached,
		"unplugged it is missing, no mismatch");
	node_free(node);
	TAP_EQ(memory.live, 0, "cabling: nothing is left");
}

/* A fabric switch that hears itself disables both ports; one that is drained leaves them. */
static void loops(void)
{
	struct node_command drain_port = {
		.kind = NODE_COMMAND_DRAIN_PORT, .port = 0, .drained = true
	};
	const struct node_row_port *row;
	uint32_t port;

	make(TOPO_ROLE_FDSW);
	all_up();
	row = hear_from(0, self->switch_index, 1);
	TAP_OK(row->disabled && !row->carrier && look_at(1)->disabled,
		"loop: both ports are disabled");
	TAP_EQ(hear_from(0, self->switch_index, 1)->disabled, true, "and stay so");
	node_command(node, &drain_port, now);
	TAP_OK(!look_at(0)->disabled && look_at(0)->carrier && look_at(1)->disabled,
		"the one that is drained is enabled");
	TAP_OK(!hear_from(0, self->switch_index, 1)->disabled,
		"and stays so, though it hears itself");
	drain_port.drained = false;
	node_command(node, &drain_port, now);
	TAP_OK(hear_from(0, self->switch_index, 1)->disabled, "until it isn't drained any more");
	node_carrier(node, 0, false, now);
	node_carrier(node, 0, true, now);
	TAP_OK(!look_at(0)->disabled && look_at(0)->carrier, "down and up: another try");
	node_free(node);
	make(TOPO_ROLE_RDSW);
	all_up();
	port = fabric_port();
	row = hear_from(port, self->switch_index, port + 1);
	TAP_OK(!row->disabled && row->carrier && row->mismatch, "an interface node only tells it");
	node_free(node);
	TAP_EQ(memory.live, 0, "loops: nothing is left");
}

int main(void)
{
	struct topo_error err;

	if (topo_load_text(zone, sizeof(zone) - 1, "zone", &topo, &err) < 0) {
		TAP_OK(false, "the zone loads: %s", err.text);
		return TAP_DONE();
	}
	failing_memory(TOPO_ROLE_FDSW, "FDSW");
	failing_memory(TOPO_ROLE_RDSW, "RDSW");
	wrong_cells();
	commands();
	host_port_rate();
	one_telling_at_a_time();
	cabling();
	loops();
	topo_free(topo);
	return TAP_DONE();
}
