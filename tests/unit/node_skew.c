/*
 * Skew of links by tier, from rows of ports.
 */
#include "node/skew.h"
#include <string.h>
#include "base/bitset.h"
#include "fabric/packet.h"
#include "tests/memory.h"
#include "tests/source.h"
#include "tests/tap.h"
#include "topo/file.h"

#define MB 1000000u

static struct test_memory memory = TEST_MEMORY(memory);
static struct topo *t;
static struct node_skew_meter before, after;

/* A reading in which every port has sent bytes on the wire. */
static void read_all(struct node_skew_meter *m, uint64_t bytes)
{
	for (uint32_t i = 0; i < t->ports_count; i++) {
		const struct topo_port *p = &t->ports[i];
		struct node_row row = { .query = NODE_QUERY_PORT, .node = p->node };

		row.port.port = p->number;
		row.port.carrier = true;
		/* A frame has its overhead; cell links count cells, whatever frames say. */
		row.port.frames_tx = p->ethernet && bytes > 0;
		row.port.bytes_tx = bytes - row.port.frames_tx * FABRIC_ETHERNET_OVERHEAD;
		row.port.cell_bytes_tx = bytes;
		if (!p->ethernet)
			row.port.bytes_tx = 7;
		node_skew_read(m, &row);
	}
}

static void open_meters(void)
{
	t = source_topo("topologies/region.json");
	TAP_EQ(node_skew_open(&before, t, &memory.memory), 0, "a reading");
	TAP_EQ(node_skew_open(&after, t, &memory.memory), 0, "another");
	read_all(&before, MB);
	read_all(&after, 3 * MB);
}

static void close_meters(void)
{
	node_skew_close(&before);
	node_skew_close(&after);
	TAP_EQ(memory.live, 0, "all memory given back");
	topo_free(t);
}

static const struct node_skew_tier *tier_named(const char *name)
{
	for (uint32_t i = 0; i < NODE_SKEW_TIERS; i++)
		if (strcmp(node_skew_tier(i)->name, name) == 0)
			return node_skew_tier(i);
	return NULL;
}

static uint32_t port_named(const char *name)
{
	return topo_find_port(t, name);
}

/* Two planes of two buildings: 2 zones of 4 x 2 links and 2 x 2 x 2 to the spine, a PoD of 2 x 2,
 * 2 x 2 x 2 and 2 x 2. */
static void every_link_is_in_one_tier(void)
{
	static const struct {
		const char *name;
		uint32_t links;
	} want[NODE_SKEW_TIERS] = { { "fabric", 4 * 16 }, { "spine", 4 * 16 },
		{ "pod fabric", 4 * 4 }, { "pod spine", 4 * 8 }, { "edge", 4 * 4 } };

	open_meters();
	for (uint32_t i = 0; i < NODE_SKEW_TIERS; i++) {
		for (int up = 0; up < 2; up++) {
			struct node_skew s =
				node_skew_of(&before, &after, tier_named(want[i].name), up);

			TAP_EQ(s.links, want[i].links, "%s: links", want[i].name);
			TAP_EQ(s.bytes_max, 2 * MB, "%s: between the readings", want[i].name);
			TAP_EQ(s.bytes_sum, 2ull * MB * want[i].links, "%s: sum", want[i].name);
			TAP_EQ(node_skew_value(&s), 10000, "%s: even", want[i].name);
		}
	}
	close_meters();
}

static void a_busy_link_shows(void)
{
	const struct node_skew_tier *edge;
	struct node_skew up, down;

	open_meters();
	edge = tier_named("edge");
	after.bytes[port_named("b1-e-p0-edsw1:eth0")] += 6 * MB;
	up = node_skew_of(&before, &after, edge, true);
	down = node_skew_of(&before, &after, edge, false);
	TAP_EQ(up.bytes_max, 8 * MB, "the busiest");
	/* 8 over (15 x 2 + 8) / 16 */
	TAP_EQ(node_skew_value(&up), (8 * 16 * 10000 + 19) / 38, "over the mean");
	TAP_EQ(node_skew_value(&down), 10000, "the other way for itself");
	close_meters();
}

static void what_is_down_counts_not(void)
{
	const struct node_skew_tier *fabric;
	struct node_skew s;
	uint32_t port;

	open_meters();
	fabric = tier_named("fabric");
	port = port_named("b0-z1-p1-fdsw1:fab3");
	dsf_bitset_remove(after.up, port); /* one end is enough */
	after.bytes[port] = after.bytes[t->ports[port].peer] = before.bytes[port];
	s = node_skew_of(&before, &after, fabric, true);
	TAP_EQ(s.links, 63, "a link less");
	TAP_EQ(node_skew_value(&s), 10000, "the others are even");
	/* A switch that was started anew counts from 0. */
	after.bytes[port_named("b0-z0-p0-rdsw0:fab0")] = MB / 2;
	s = node_skew_of(&before, &after, fabric, true);
	TAP_EQ(s.bytes_sum, 62ull * 2 * MB + MB / 2, "what was counted since then");
	close_meters();
}

static void nothing_is_even(void)
{
	struct node_skew none = { .links = 4 };

	TAP_EQ(node_skew_value(&none), 10000, "links that carried nothing");
}

int main(void)
{
	every_link_is_in_one_tier();
	a_busy_link_shows();
	what_is_down_counts_not();
	nothing_is_even();
	return TAP_DONE();
}
