/*
 * A host by hand: specs of workloads that can't be, and datagrams that come twice, late, or from
 * nowhere.
 */
#include "base/err.h"
#include "node/node.h"
#include "node/row.h"
#include "tests/memory.h"
#include "tests/tap.h"
#include "topo/file.h"
#include "workload/spec.h"

static const char zone[] =
	"{\"name\":\"unit\",\"seed\":1,\"planes\":1,\"buildings\":[{\"name\":\"b0\",\"zones\":[{"
	"\"name\":\"z0\",\"scaling_units\":2,\"rails\":1,\"hosts_per_unit\":1,\"fdsw\":2}]}],"
	"\"fabric\":{\"mode\":\"dsf\"}}";

#define DATAGRAMS 8192u
#define SIZE      64u

static struct test_memory memory = TEST_MEMORY(memory);
static struct topo *topo;
static struct node *sender, *receiver;
static dsf_instant now = { 1000 };
static const struct workload_flow flow = { 0, 1 };

static struct node *host_of(uint32_t rank)
{
	struct node_config config = { .topo = topo,
		.index = topo_endpoint(topo, rank).host,
		.memory = &memory.memory,
		.seed = 1,
		.control_dilation = 1,
		.simulated = true };
	struct node *n = node_new(&config, now);

	if (n != NULL)
		node_carrier(n, 0, true, now);
	return n;
}

static int start(struct node *n, const struct workload_spec *spec)
{
	struct node_command command = { .kind = NODE_COMMAND_WORKLOAD_START, .workload = spec };

	return node_command(n, &command, now);
}

static const struct workload_spec good = { .kind = WORKLOAD_WRITE,
	.flows = &flow,
	.flows_count = 1,
	.size_bytes = 4096,
	.iterations = 1,
	.plane = UINT32_MAX,
	.stop_at = { UINT64_MAX } };

static void refuse(const char *name, struct workload_spec spec, int want)
{
	TAP_EQ(start(sender, &spec), want, "spec: %s", name);
}

static void specs_that_cannot_be(void)
{
	static const struct workload_flow to_itself = { 1, 1 }, to_nowhere = { 0, 99 },
					  from_nowhere = { 99, 0 };
	struct workload_spec s;

#define REFUSE(name, field, value, want) (s = good, s.field = (value), refuse((name), s, (want)))
	REFUSE("size 0", size_bytes, 0, -DSF_E_BADFIELD);
	REFUSE("a message too large", size_bytes, 1ull << 32, -DSF_E_BADFIELD);
	REFUSE("no flows", flows_count, 0, -DSF_E_BADFIELD);
	REFUSE("flows nowhere", flows, NULL, -DSF_E_BADFIELD);
	REFUSE("too many flows", flows_count, 65537, -DSF_E_TOOBIG);
	REFUSE("no end", iterations, 0, -DSF_E_BADFIELD);
	REFUSE("an unknown kind", kind, WORKLOAD_INCAST + 1, -DSF_E_BADFIELD);
	REFUSE("to itself", flows, &to_itself, -DSF_E_BADFIELD);
	REFUSE("to nowhere", flows, &to_nowhere, -DSF_E_BADFIELD);
	REFUSE("from nowhere", flows, &from_nowhere, -DSF_E_BADFIELD);
	s = good;
	s.kind = WORKLOAD_UDP;
	s.size_bytes = 0;
	refuse("datagrams of size 0", s, -DSF_E_BADFIELD);
	s.size_bytes = 15;
	refuse("datagrams without room for their header", s, -DSF_E_BADFIELD);
	s.size_bytes = 65528;
	refuse("datagrams too large for UDP", s, -DSF_E_BADFIELD);
	refuse("a good one", good, 0);
}

struct datagram {
	uint8_t bytes[256];
	uint32_t stored, size;
};

static struct datagram datagrams[DATAGRAMS];

/* All that the sender has to say, addressed as the switches would. */
static uint32_t collect(void)
{
	const struct topo_port *port = topo_endpoint_port(topo, 1, 0);
	struct node_output out;
	uint32_t count = 0;

	for (uint32_t i = 0; i < 2 * DATAGRAMS && count < DATAGRAMS; i++) {
		while (node_output(sender, &out, now)) {
			struct datagram *d = &datagrams[count++];

			memcpy(d->bytes, out.head, out.head_size);
			memcpy(d->bytes, &port->mac, sizeof(port->mac));
			d->stored = out.head_size;
			d->size = out.size;
			node_frame_done(sender, out.buffer);
		}
		if (dsf_time_is_never(node_deadline(sender)))
			break;
		now = dsf_time_max(now, node_deadline(sender));
		node_expire(sender, now);
	}
	return count;
}

static int deliver(uint32_t index)
{
	const struct datagram *d = &datagrams[index];
	struct node_frame frame = { d->bytes, d->stored, d->size, NODE_CHECKSUM_NONE, 0 };

	return node_frame_input(receiver, 0, &frame, now);
}

static void take(void *user, const struct node_row *row)
{
	if (!row->flow.sender)
		*(struct node_row_flow *)user = row->flow;
}

static struct node_row_flow seen(void)
{
	struct node_row_flow row = { 0 };

	node_view(receiver, NODE_QUERY_WORKLOAD, TOPO_NONE, take, &row, now);
	return row;
}

static void check(
	const char *name, uint64_t messages, uint64_t lost, uint64_t duplicated, uint64_t reordered)
{
	struct node_row_flow row = seen();

	TAP_OK(row.messages == messages && row.lost == lost && row.duplicated == duplicated &&
			row.reordered == reordered,
		"datagrams: %s: %u came, %u lost, %u twice, %u late", name, (unsigned)row.messages,
		(unsigned)row.lost, (unsigned)row.duplicated, (unsigned)row.reordered);
	TAP_EQ(row.bytes, messages * SIZE, "datagrams: %s: bytes counted once", name);
	TAP_EQ(row.bytes_wrong, 0, "datagrams: %s: all right", name);
}

static void datagrams_are_told_apart(void)
{
	struct workload_spec spec = good;
	uint32_t first;

	spec.kind = WORKLOAD_UDP;
	spec.size_bytes = SIZE;
	spec.iterations = DATAGRAMS;
	spec.start_at = now;
	TAP_OK(start(sender, &spec) == 0 && start(receiver, &spec) == 0, "datagrams: begun");
	TAP_EQ(collect(), DATAGRAMS, "datagrams: all of them");

	TAP_EQ(deliver(0), 0, "datagrams: the first");
	check("in order", 1, 0, 0, 0);
	TAP_EQ(deliver(0), -DSF_E_DUPLICATE, "datagrams: again");
	check("twice", 1, 0, 1, 1);
	deliver(3);
	check("a gap of two", 2, 2, 1, 1);
	TAP_EQ(deliver(1), 0, "datagrams: late");
	check("one of them late", 3, 1, 1, 2);
	TAP_EQ(deliver(1), -DSF_E_DUPLICATE, "datagrams: late, again");
	check("late and twice", 3, 1, 2, 3);
	deliver(2);
	check("the gap filled", 4, 0, 2, 4);
	TAP_EQ(deliver(3), -DSF_E_DUPLICATE, "datagrams: the newest again");
	check("the newest twice", 4, 0, 3, 5);

	/* Gaps as long as what is remembered, and longer. */
	first = 4 + 4095;
	deliver(first);
	check("a gap of 4,095", 5, 4095, 3, 5);
	deliver(4);
	check("its oldest is remembered", 6, 4094, 3, 6);
	TAP_EQ(deliver(4), -DSF_E_DUPLICATE, "datagrams: once only");
	TAP_EQ(deliver(3), -DSF_E_DUPLICATE, "datagrams: older than that is taken for a repeat");
	check("too old", 6, 4094, 5, 8);
	deliver(DATAGRAMS - 1);
	check("a gap beyond memory", 7, DATAGRAMS - 7, 5, 8);
	TAP_EQ(deliver(DATAGRAMS - 2), 0, "datagrams: late behind it");
	TAP_EQ(deliver(DATAGRAMS - 4096), 0, "datagrams: the oldest that can be late");
	TAP_EQ(deliver(DATAGRAMS - 4097), -DSF_E_DUPLICATE, "datagrams: one older");
	check("behind the long gap", 9, DATAGRAMS - 9, 6, 11);
}

static void datagrams_of_others(void)
{
	uint64_t before = seen().messages;
	struct datagram *d = &datagrams[100];

	datagrams[100] = datagrams[5000];
	TAP_EQ(deliver(100), 0, "foreign: not yet");
	datagrams[100] = datagrams[5001];
	d->bytes[14 + 40 + 8] ^= 1;
	TAP_EQ(deliver(100), -DSF_E_CHECKSUM, "foreign: a byte changed on the way");
	datagrams[100] = datagrams[5001];
	d->size--;
	TAP_OK(deliver(100) < 0, "foreign: cut short");
	datagrams[100] = datagrams[5001];
	d->bytes[5] ^= 1;
	TAP_EQ(deliver(100), -DSF_E_UNKNOWN, "foreign: another's MAC");
	TAP_EQ(seen().messages, before + 1, "foreign: none is counted");
}

int main(void)
{
	struct topo_error err;

	if (topo_load_text(zone, sizeof(zone) - 1, "zone", &topo, &err) < 0)
		return TAP_OK(false, "the topology loads"), TAP_DONE();
	sender = host_of(0);
	receiver = host_of(1);
	if (!TAP_OK(sender != NULL && receiver != NULL, "two hosts"))
		return TAP_DONE();
	specs_that_cannot_be();
	node_free(sender);
	sender = host_of(0);
	datagrams_are_told_apart();
	datagrams_of_others();
	node_free(sender);
	node_free(receiver);
	topo_free(topo);
	TAP_EQ(memory.live, 0, "all memory given back");
	return TAP_DONE();
}
