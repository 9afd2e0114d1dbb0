#include "fsdb/table.h"
#include "base/err.h"
#include "tests/memory.h"
#include "tests/tap.h"

#define ID    3u
#define FIRST (ID * FSDB_PORTS_MAX)

#define LATEST 1000u

static struct test_memory memory = TEST_MEMORY(memory);

static struct fsdb_record record(enum fsdb_kind kind, uint32_t port, uint8_t address)
{
	return (struct fsdb_record){ .kind = (uint8_t)kind,
		.system_port = FIRST + port,
		.address = { { 0xfd, [15] = address } } };
}

static int set(struct fsdb_table *t, enum fsdb_kind kind, uint32_t port, uint8_t address)
{
	struct fsdb_record r = record(kind, port, address);

	return fsdb_table_set(t, &memory.memory, &r);
}

static void test_order(void)
{
	struct fsdb_table t = { 0 }, copy = { 0 };
	struct fsdb_record key;
	bool ordered = true;

	set(&t, FSDB_KIND_NEIGHBOR, 2, 9);
	set(&t, FSDB_KIND_INTERFACE, 1, 1);
	set(&t, FSDB_KIND_NEIGHBOR, 1, 9);
	set(&t, FSDB_KIND_PORT, 2, 0);
	set(&t, FSDB_KIND_NEIGHBOR, 9, 3);
	set(&t, FSDB_KIND_PORT, 1, 0);
	set(&t, FSDB_KIND_INTERFACE, 1, 2);
	TAP_EQ(t.count, 6, "an interface that is set again takes its own place");
	for (uint32_t i = 1; i < t.count; i++)
		ordered &= fsdb_table_order(&t.records[i - 1], &t.records[i]) < 0;
	TAP_OK(ordered, "kinds, then ports; neighbors by address, then port");
	key = record(FSDB_KIND_INTERFACE, 1, 0);
	TAP_EQ(fsdb_table_find(&t, &key)->address.bytes[15], 2, "with what it said last");
	key = record(FSDB_KIND_NEIGHBOR, 1, 9);
	TAP_OK(fsdb_table_find(&t, &key) != NULL, "one address at two ports is two neighbors");
	TAP_EQ(fsdb_table_remove(&t, &key), 0, "one of which is removed");
	TAP_EQ(fsdb_table_remove(&t, &key), -DSF_E_UNKNOWN, "and isn't there then");
	TAP_EQ(t.count, 5, "the others stay");
	TAP_EQ(fsdb_table_copy(&copy, &t, &memory.memory), 0, "a copy");
	fsdb_table_drop_neighbors(&copy);
	TAP_EQ(copy.count, 3, "without neighbors has ports and interfaces");
	TAP_EQ(t.count, 5, "and is a table of its own");
	fsdb_table_close(&copy, &memory.memory);
	fsdb_table_close(&t, &memory.memory);
	TAP_EQ(memory.live, 0, "nothing is left");
}

struct check {
	const char *name;
	struct fsdb_record records[4];
	int want;
};

#define P(port)                                                                                    \
	{                                                                                          \
		.kind = FSDB_KIND_PORT, .system_port = (port)                                      \
	}
#define I(port, a)                                                                                 \
	{                                                                                          \
		.kind = FSDB_KIND_INTERFACE, .system_port = (port), .address = a                   \
	}
#define N(port, a)                                                                                 \
	{                                                                                          \
		.kind = FSDB_KIND_NEIGHBOR, .system_port = (port), .address = a                    \
	}
#define SINCE(port, a, ns)                                                                         \
	{                                                                                          \
		.kind = FSDB_KIND_NEIGHBOR, .system_port = (port), .address = a, .since_ns = (ns)  \
	}
#define HOST                                                                                       \
	{                                                                                          \
		{                                                                                  \
			0xfd, [15] = 1                                                             \
		}                                                                                  \
	}
#define GROUP                                                                                      \
	{                                                                                          \
		{                                                                                  \
			0xff, 2, [15] = 1                                                          \
		}                                                                                  \
	}
#define NONE                                                                                       \
	{                                                                                          \
		{                                                                                  \
			0                                                                          \
		}                                                                                  \
	}

static const struct check checks[] = {
	{ "port below the block", { P(FIRST - 1) }, -DSF_E_PEER },
	{ "port above the block", { P(FIRST + FSDB_PORTS_MAX) }, -DSF_E_PEER },
	{ "a port of node 0", { P(5) }, -DSF_E_PEER },
	{ "interface without port", { P(FIRST), I(FIRST + 1, HOST) }, -DSF_E_PEER },
	{ "interface of another node", { P(FIRST), I(5, HOST) }, -DSF_E_PEER },
	{ "neighbor without interface", { P(FIRST), N(FIRST, HOST) }, -DSF_E_PEER },
	{ "neighbor at another port's interface",
		{ P(FIRST), P(FIRST + 1), I(FIRST, HOST), N(FIRST + 1, HOST) }, -DSF_E_PEER },
	{ "multicast interface", { P(FIRST), I(FIRST, GROUP) }, -DSF_E_PEER },
	{ "interface ::", { P(FIRST), I(FIRST, NONE) }, -DSF_E_PEER },
	{ "multicast neighbor", { P(FIRST), I(FIRST, HOST), N(FIRST, GROUP) }, -DSF_E_PEER },
	{ "neighbor ::", { P(FIRST), I(FIRST, HOST), N(FIRST, NONE) }, -DSF_E_PEER },
	{ "neighbor resolved later than can be",
		{ P(FIRST), I(FIRST, HOST), SINCE(FIRST, HOST, LATEST + 1) }, -DSF_E_PEER },
	{ "neighbor resolved at the end of time",
		{ P(FIRST), I(FIRST, HOST), SINCE(FIRST, HOST, UINT64_MAX) }, -DSF_E_PEER },
	{ "nothing", { { .kind = 0 } }, 0 },
	{ "neighbor resolved just now", { P(FIRST), I(FIRST, HOST), SINCE(FIRST, HOST, LATEST) },
		0 },
	{ "first and last port", { P(FIRST), P(FIRST + 63) }, 0 },
	{ "all three", { P(FIRST + 63), I(FIRST + 63, HOST), N(FIRST + 63, HOST) }, 0 },
};

static void test_check(void)
{
	for (size_t i = 0; i < sizeof(checks) / sizeof(*checks); i++) {
		struct fsdb_table t = { 0 };

		for (unsigned r = 0; r < 4 && checks[i].records[r].kind != 0; r++)
			fsdb_table_set(&t, &memory.memory, &checks[i].records[r]);
		TAP_EQ(fsdb_table_check(&t, FIRST, (dsf_instant){ LATEST }), checks[i].want,
			"check: %s", checks[i].name);
		fsdb_table_close(&t, &memory.memory);
	}
}

static void test_global(void)
{
	struct fsdb_table t = { 0 };

	for (unsigned i = 0; i < 4; i++) {
		struct fsdb_record port = record(FSDB_KIND_PORT, i, 0);
		struct fsdb_record interface = record(FSDB_KIND_INTERFACE, i, 1);

		port.scope = i & 1;
		interface.scope = i >> 1;
		fsdb_table_set(&t, &memory.memory, &port);
		fsdb_table_set(&t, &memory.memory, &interface);
	}
	set(&t, FSDB_KIND_PORT, 63, 0);
	TAP_EQ(fsdb_table_global(&t), 1, "port and interface both GLOBAL: the first alone");
	set(&t, FSDB_KIND_INTERFACE, 63, 1);
	TAP_EQ(fsdb_table_global(&t), (intmax_t)(1ull << 63 | 1), "and the last");
	fsdb_table_close(&t, &memory.memory);
}

static void test_limits(void)
{
	struct fsdb_table t = { 0 }, copy = { 0 };
	uint32_t i = 0;
	int err = 0;

	for (; err == 0; i++) {
		struct fsdb_record r = record(FSDB_KIND_NEIGHBOR, 0, 0);

		r.address.bytes[14] = (uint8_t)(i >> 8);
		r.address.bytes[15] = (uint8_t)i;
		err = fsdb_table_set(&t, &memory.memory, &r);
	}
	TAP_EQ(err, -DSF_E_FULL, "a table gets full");
	TAP_EQ(t.count, FSDB_RECORDS_MAX, "at its limit");
	TAP_EQ(set(&t, FSDB_KIND_NEIGHBOR, 0, 7), 0, "what is there can still change");
	memory.fail_at = 1;
	TAP_EQ(fsdb_table_copy(&copy, &t, &memory.memory), -DSF_E_NOMEM, "a copy without memory");
	TAP_EQ(copy.count, 0, "is empty");
	fsdb_table_close(&t, &memory.memory);
	memory.fail_at = 1;
	TAP_EQ(set(&t, FSDB_KIND_PORT, 0, 0), -DSF_E_NOMEM, "a record without memory");
	TAP_EQ(t.count, 0, "isn't there");
	TAP_EQ(memory.live, 0, "nothing is left");
}

int main(void)
{
	test_order();
	test_check();
	test_global();
	test_limits();
	return TAP_DONE();
}
