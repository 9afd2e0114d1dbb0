#include "fabric/spray.h"
#include "base/err.h"
#include "tests/memory.h"
#include "tests/tap.h"

#define PORTS       9u
#define SWITCHES    40u
#define DESTINATION 7u
#define RATE        400000000000ull

static struct test_memory memory = TEST_MEMORY(memory);
static struct fabric_ports ports;
static struct fabric_reach reach;
static struct fabric_spray spray;
static dsf_instant now = { 1000 };

static int open_spray(uint64_t seed)
{
	return fabric_spray_init(&spray, &memory.memory, SWITCHES, seed, 3);
}

/* Ports 0 to 8, of which those in live reach the destination. */
static void open_all(uint32_t live, uint64_t seed)
{
	struct fabric_peer peers[PORTS];
	struct fabric_reach_config config = { .self = 1,
		.tier = FABRIC_TIER_INTERFACE,
		.peers = peers,
		.ports_count = PORTS,
		.switches_count = SWITCHES,
		.cell_bytes = 512,
		.refresh_ns = 45000 };
	static const uint8_t payload[] = { 0, 0, 0, 8, 1u << DESTINATION };

	for (uint32_t i = 0; i < PORTS; i++)
		peers[i] = (struct fabric_peer){ .tier = FABRIC_TIER_LEAF, .switch_index = 20 };
	fabric_ports_init(&ports, &memory.memory, PORTS, 1, FABRIC_TRAIN_MAX, seed);
	fabric_reach_init(&reach, &memory.memory, &config);
	open_spray(seed);
	for (uint32_t i = 0; i < PORTS; i++) {
		ports.ports[i].rate_bps = RATE;
		fabric_port_carrier(&ports, i, true, now);
		if (!(live >> i & 1u))
			continue;
		fabric_reach_carrier(&reach, i, true, now);
		fabric_reach_heard(&reach, i, true, now);
		fabric_reach_input(&reach, i, payload, sizeof(payload), now);
	}
}

static void close_all(const char *name)
{
	fabric_spray_close(&spray);
	fabric_reach_close(&reach);
	fabric_ports_close(&ports);
	TAP_EQ(memory.live, 0, "%s: nothing is left", name);
}

static uint32_t next(void)
{
	return fabric_spray_next(&spray, DESTINATION, &reach, &ports);
}

static void none(void)
{
	open_all(0, 1);
	TAP_EQ(next(), FABRIC_SPRAY_NONE, "no live link, no port");
	TAP_EQ(fabric_spray_next(&spray, SWITCHES, &reach, &ports), FABRIC_SPRAY_NONE,
		"a destination that can't be");
	TAP_EQ(fabric_spray_next(&spray, 0xffff, &reach, &ports), FABRIC_SPRAY_NONE,
		"nor the largest");
	TAP_OK(!fabric_spray_has_room(&spray, DESTINATION, &reach, &ports), "and no room");
	TAP_OK(!fabric_spray_has_room(&spray, 0xffff, &reach, &ports), "anywhere");
	fabric_spray_forget(&spray, DESTINATION);
	close_all("none");
}

/* Every link once a round, and short cells in any rhythm don't fall on one. */
static void even(uint32_t live, uint64_t seed)
{
	uint32_t count = (uint32_t)__builtin_popcount(live), wrong = 0;
	uint64_t bytes[PORTS] = { 0 }, least = UINT64_MAX, most = 0;

	open_all(live, seed);
	for (uint32_t i = 0; i < 90000; i++) {
		uint32_t port = next(), round = 0;

		if (port >= PORTS || !(live >> port & 1u)) {
			wrong++;
			continue;
		}
		bytes[port] += i % count == 0 ? 32 : 512;
		for (uint32_t p = 0; p < PORTS; p++)
			round += bytes[p] > 0;
		wrong += i + 1 == count && round != count;
	}
	for (uint32_t p = 0; p < PORTS; p++) {
		if (!(live >> p & 1u))
			continue;
		least = bytes[p] < least ? bytes[p] : least;
		most = bytes[p] > most ? bytes[p] : most;
	}
	TAP_OK(wrong == 0, "links %03x: live ones only, all in the first round", live);
	TAP_OK(most - least <= most / 20, "bytes within 5 %%: %" PRIu64 " to %" PRIu64, least,
		most);
	close_all("even");
}

static void fill(uint32_t port, uint32_t bytes)
{
	while (ports.ports[port].queue_bytes < bytes) {
		struct fabric_cell cell = { .kind = FABRIC_CELL_DATA, .size = 480, .stored = 480 };
		uint8_t *at = fabric_port_push(&ports, port, 512, 512, now);

		fabric_cell_encode(&cell, at);
	}
}

static void queues(void)
{
	uint32_t wrong = 0;

	open_all(0x1ff, 1);
	for (uint32_t i = 0; i < PORTS - 2; i++)
		fill(i, ports.room_bytes + 512);
	for (uint32_t i = 0; i < 1000; i++)
		wrong += next() < PORTS - 2;
	TAP_EQ(wrong, 0, "links without room are passed over");
	fabric_port_stop(&ports, PORTS - 2, true, now);
	for (uint32_t i = 0; i < 1000; i++)
		wrong += next() != PORTS - 1;
	TAP_EQ(wrong, 0, "and one that was told to stop");
	TAP_OK(fabric_spray_has_room(&spray, DESTINATION, &reach, &ports), "there is room");
	fill(PORTS - 1, ports.mark_bytes + 512);
	fill(PORTS - 2, ports.mark_bytes + 512);
	for (uint32_t i = 0; i < PORTS - 1; i++)
		fill(i, ports.mark_bytes + 20000);
	TAP_OK(!fabric_spray_has_room(&spray, DESTINATION, &reach, &ports), "then none");
	for (uint32_t i = 0; i < 1000; i++)
		wrong += next() != PORTS - 1;
	TAP_EQ(wrong, 0, "where none has room, the shortest is taken");
	fabric_port_stop(&ports, PORTS - 1, true, now);
	for (uint32_t i = 0; i < 1000; i++)
		wrong += next() >= PORTS - 2;
	TAP_EQ(wrong, 0, "but a stopped one last");
	fabric_port_stop(&ports, PORTS - 2, false, now);
	fabric_port_stop(&ports, PORTS - 1, false, now);
	close_all("queues");
}

static void change(void)
{
	uint32_t wrong = 0;

	open_all(0x1ff, 1);
	next();
	fabric_reach_carrier(&reach, 4, false, now);
	fabric_spray_forget(&spray, DESTINATION);
	for (uint32_t i = 0; i < 1000; i++)
		wrong += next() == 4;
	TAP_EQ(wrong, 0, "a link that left is never taken again");
	close_all("change");
}

static void seeds(void)
{
	uint32_t first[200], same = 0, other = 0;

	open_all(0x1ff, 1);
	for (uint32_t i = 0; i < 200; i++)
		first[i] = next();
	close_all("seed 1");
	open_all(0x1ff, 1);
	for (uint32_t i = 0; i < 200; i++)
		same += next() == first[i];
	close_all("seed 1 again");
	open_all(0x1ff, 2);
	for (uint32_t i = 0; i < 200; i++)
		other += next() == first[i];
	close_all("seed 2");
	TAP_OK(same == 200 && other < 100, "one seed, one order; another seed, another");
}

static void no_memory(void)
{
	memory.fail_at = 1;
	TAP_EQ(open_spray(1), -DSF_E_NOMEM, "init fails");
	fabric_spray_close(&spray);
	memory.fail_at = 0;
	open_all(0x1ff, 1);
	memory.fail_at = 1;
	TAP_EQ(next(), FABRIC_SPRAY_NONE, "no memory for a destination: none");
	TAP_OK(next() < PORTS, "and again when there is");
	close_all("no memory");
}

int main(void)
{
	none();
	for (uint64_t seed = 1; seed <= 3; seed++) {
		even(0x1ff, seed);
		even(0x001, seed);
		even(0x104, seed);
		even(0x0fe, seed);
	}
	queues();
	change();
	seeds();
	no_memory();
	return TAP_DONE();
}
