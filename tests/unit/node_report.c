/*
 * What halves of flows come to when they are put together: what is lost, when a run is over, what
 * would have been ideal, how fair it was.
 */
#include "node/report.h"
#include "base/err.h"
#include "tests/memory.h"
#include "tests/tap.h"
#include "topo/file.h"

/* Two planes, four hosts of one GPU at 400G a plane: a port for each in two RDSWs a plane. */
static const char zone[] =
	"{\"name\":\"unit\",\"seed\":1,\"planes\":2,\"buildings\":[{\"name\":\"b0\",\"zones\":[{"
	"\"name\":\"z0\",\"scaling_units\":2,\"rails\":1,\"hosts_per_unit\":2,\"fdsw\":2}]}],"
	"\"fabric\":{\"mode\":\"dsf\"}}";

static struct test_memory memory = TEST_MEMORY(memory);
static struct topo *topo;
static struct workload_flow flows[3] = { { 0, 2 }, { 1, 2 }, { 3, 2 } };
static struct workload_spec spec;
static struct node_report report;

static void begin(enum workload_kind kind, uint32_t count)
{
	spec = (struct workload_spec){ .kind = kind,
		.flows = flows,
		.flows_count = count,
		.size_bytes = 4096,
		.iterations = 10,
		.plane = UINT32_MAX,
		.stop_at = DSF_NEVER };
	TAP_EQ(node_report_init(&report, topo, &spec, &memory.memory), 0, "a report");
}

static struct node_row_flow row_of(uint32_t flow, bool sender, uint64_t messages)
{
	return (struct node_row_flow){ .source = flows[flow].source,
		.target = flows[flow].target,
		.sender = sender,
		.done = true,
		.messages = messages,
		.bytes = messages * 4096,
		.first_at = { 1000 },
		.last_at = { 2000 } };
}

static void add(uint32_t flow, bool sender, uint64_t messages)
{
	struct node_row_flow row = row_of(flow, sender, messages);

	node_report_add(&report, &row);
}

static void add_failed(uint32_t flow, uint64_t messages, uint64_t failed)
{
	struct node_row_flow row = row_of(flow, true, messages);

	row.lost = failed;
	node_report_add(&report, &row);
}

static void end(void)
{
	node_report_finish(&report);
	node_report_close(&report);
}

static void lost_messages(void)
{
	struct node_row_flow row;

	begin(WORKLOAD_WRITE, 1);
	add(0, true, 10);
	add(0, false, 10);
	end();
	TAP_OK(report.verified && report.lost == 0, "all came");

	begin(WORKLOAD_WRITE, 1);
	add_failed(0, 4, 3);
	add(0, false, 5); /* one more than was acknowledged */
	end();
	TAP_EQ(report.lost, 5, "failed at the sender: lost, and what was never posted after it");
	TAP_OK(!report.verified, "and not verified");

	begin(WORKLOAD_WRITE, 1);
	spec.iterations = 0;
	add_failed(0, 4, 3);
	add(0, false, 4);
	end();
	TAP_EQ(report.lost, 3, "without a number of messages: what failed");

	begin(WORKLOAD_WRITE, 2);
	add_failed(0, 4, 6);
	add(0, false, 4);
	add(1, true, 10);
	add(1, false, 10);
	end();
	TAP_EQ(report.lost, 6, "another flow makes up for nothing");

	begin(WORKLOAD_WRITE, 1);
	add(0, true, 10);
	end();
	TAP_OK(report.lost == 10 && !report.verified,
		"the receiver is gone: nobody vouches for any");

	begin(WORKLOAD_WRITE, 1);
	add(0, false, 7);
	end();
	TAP_OK(report.lost == 3 && !report.verified, "the sender is gone: the rest is lost");

	begin(WORKLOAD_WRITE, 1);
	for (int sender = 0; sender < 2; sender++) {
		row = row_of(0, sender == 1, 0);
		row.done = false;
		row.last_at = DSF_NEVER;
		node_report_add(&report, &row);
	}
	end();
	TAP_EQ(report.duration_ns, 0, "interrupted before anything came: no time");

	begin(WORKLOAD_UDP, 1);
	add(0, true, 10);
	row = row_of(0, false, 6);
	row.lost = 2; /* it saw gaps of two; the last two left none */
	node_report_add(&report, &row);
	end();
	TAP_OK(report.lost == 4 && report.verified, "datagrams: gaps and the end that never came");
}

static void when_it_is_over(void)
{
	struct node_row_flow row;

	begin(WORKLOAD_WRITE, 2);
	add(0, true, 10);
	add(0, false, 10);
	add(1, true, 10);
	row = row_of(1, false, 9);
	row.done = false;
	node_report_add(&report, &row);
	TAP_OK(!node_report_done(&report), "not while a receiver waits");
	row.done = true;
	node_report_add(&report, &row);
	TAP_OK(node_report_done(&report), "when all say so");
	end();

	begin(WORKLOAD_UDP, 1);
	row = row_of(0, false, 9);
	row.done = false;
	add(0, true, 10);
	node_report_add(&report, &row);
	TAP_OK(!node_report_done(&report) && node_report_sent(&report),
		"not while a datagram may be late, though all are sent");
	row.messages = 10;
	node_report_add(&report, &row);
	TAP_OK(node_report_done(&report), "at once when all that was sent is there");
	end();

	begin(WORKLOAD_WRITE, 1);
	row = row_of(0, false, 3);
	row.done = false;
	node_report_add(&report, &row);
	TAP_OK(node_report_done(&report), "when the sender is gone the receiver waits for nothing");
	end();

	begin(WORKLOAD_WRITE, 1);
	node_report_add(&report, &row);
	add_failed(0, 3, 1);
	TAP_OK(node_report_done(&report), "nor when the sender has given up");
	end();

	begin(WORKLOAD_WRITE, 1);
	row = row_of(0, true, 3);
	row.done = false;
	node_report_add(&report, &row);
	TAP_OK(!node_report_done(&report) && !node_report_sent(&report),
		"a sender is waited for though its receiver is gone");
	row.source = 2;
	TAP_EQ(node_report_add(&report, &row), -DSF_E_UNKNOWN, "a flow of another run");
	end();
}

static void what_is_ideal(void)
{
	/* 4,096 B in one packet: 68 of MetaRoCE, 8 + 40 + 14 + 24 around it. */
	const uint64_t wire = 4096 + 68 + 86, port = 2 * 400000000000ull;

	begin(WORKLOAD_WRITE, 1);
	end();
	TAP_EQ(report.goodput_ideal_bps, (uint64_t)((unsigned __int128)port * 4096 / wire),
		"one flow: its port's rate, headers off");
	begin(WORKLOAD_INCAST, 3);
	end();
	TAP_EQ(report.goodput_ideal_bps, (uint64_t)((unsigned __int128)port * 4096 / wire),
		"three to one: the one's");
	begin(WORKLOAD_UDP, 1);
	spec.plane = 1;
	spec.rate_bps = 100000000000ull;
	end();
	TAP_EQ(report.goodput_ideal_bps,
		(uint64_t)((unsigned __int128)100000000000ull * 4096 / (4096 + 86)),
		"datagrams: not more than they are sent at");
	begin(WORKLOAD_WRITE, 0);
	end();
	TAP_EQ(report.goodput_ideal_bps, 0, "no flows: nothing is ideal");
	TAP_EQ(report.jain_ppm, 0, "no flows: nothing is fair");
	TAP_OK(!report.verified && report.duration_ns == 0 && report.goodput_bps == 0 &&
			report.lost == 0,
		"no flows: nothing was verified");
}

static void how_fair(void)
{
	struct node_row_flow row;

	begin(WORKLOAD_INCAST, 3);
	end();
	TAP_OK(report.jain_ppm == 0 && report.goodput_bps == 0, "nothing came: no index");

	begin(WORKLOAD_WRITE, 1);
	add(0, true, 10);
	add(0, false, 10);
	end();
	TAP_EQ(report.jain_ppm, 1000000, "one flow is fair to itself");

	begin(WORKLOAD_INCAST, 3);
	for (uint32_t i = 0; i < 3; i++) {
		add(i, true, 10);
		add(i, false, i == 2 ? 0 : 10);
	}
	end();
	TAP_EQ(report.jain_ppm, 666666, "two of three that get the same: 2/3");

	/* 10 kbit/s and 30 kbit/s: far below what Mbit/s can tell. */
	begin(WORKLOAD_UDP, 2);
	for (uint32_t i = 0; i < 2; i++) {
		add(i, true, 1);
		row = row_of(i, false, 1);
		row.bytes = i == 0 ? 1250 : 3750;
		row.last_at = (dsf_instant){ 1000 + NS_PER_S };
		node_report_add(&report, &row);
	}
	end();
	TAP_EQ(report.jain_ppm, 800000, "slow flows have an index too");

	/* The fastest there can be. */
	begin(WORKLOAD_INCAST, 3);
	for (uint32_t i = 0; i < 3; i++) {
		add(i, true, 1);
		row = row_of(i, false, 1);
		row.bytes = 1250000000000ull;
		row.last_at = (dsf_instant){ 1000 + NS_PER_S };
		node_report_add(&report, &row);
	}
	end();
	TAP_EQ(report.jain_ppm, 1000000, "10 Tbit/s each");
}

int main(void)
{
	struct topo_error err;

	if (topo_load_text(zone, sizeof(zone) - 1, "zone", &topo, &err) < 0)
		return TAP_OK(false, "the topology loads"), TAP_DONE();
	lost_messages();
	when_it_is_over();
	what_is_ideal();
	how_fair();
	topo_free(topo);
	TAP_EQ(memory.live, 0, "all memory given back");
	return TAP_DONE();
}
