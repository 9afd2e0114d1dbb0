#include "fabric/reach.h"
#include "base/err.h"
#include "base/rng.h"
#include "tests/memory.h"
#include "tests/tap.h"

#define REFRESH_NS 45000u
#define SWITCHES   200u

static struct test_memory memory = TEST_MEMORY(memory);
static struct fabric_reach reach;
static dsf_instant now;

/* An FDSW: ports 0 and 1 to interface nodes 10 and 11, 2 to a spine 20, 3 isn't fabric. */
static int open_reach(struct fabric_reach *r)
{
	static const struct fabric_peer peers[4] = {
		{ .tier = FABRIC_TIER_INTERFACE, .switch_index = 10, .capacity = 1 },
		{ .tier = FABRIC_TIER_INTERFACE, .switch_index = 11, .capacity = 1 },
		{ .tier = FABRIC_TIER_SPINE, .switch_index = 20, .capacity = 1 },
	};
	struct fabric_reach_config config = { .self = 5,
		.tier = FABRIC_TIER_LEAF,
		.ports_count = 4,
		.switches_count = SWITCHES,
		.peers = peers,
		.balanced = true,
		.draw = { .siblings = 1 },
		.cell_bytes = 512,
		.refresh_ns = REFRESH_NS,
		.first_refresh_at = dsf_time_after(now, REFRESH_NS) };

	return fabric_reach_init(r, &memory.memory, &config);
}

static void open_leaf(void)
{
	now = (dsf_instant){ 1000 };
	open_reach(&reach);
	for (uint32_t i = 0; i < 3; i++)
		fabric_reach_carrier(&reach, i, true, now);
}

static void close_reach(const char *name)
{
	fabric_reach_close(&reach);
	TAP_EQ(memory.live, 0, "%s: nothing is left", name);
}

/* The peer at port says that it reaches these. */
static int say(uint32_t port, const uint32_t *switches, uint32_t count)
{
	uint8_t payload[4 + SWITCHES / 8] = { 0, 0, 0, SWITCHES };

	for (uint32_t i = 0; i < count; i++)
		payload[4 + switches[i] / 8] |= (uint8_t)(1u << switches[i] % 8);
	return fabric_reach_input(&reach, port, payload, sizeof(payload), now);
}

static int say_one(uint32_t port, uint32_t one)
{
	return say(port, &one, 1);
}

static bool advertises(uint32_t port, uint32_t destination)
{
	uint64_t set[DSF_BITSET_WORDS(SWITCHES)];

	fabric_reach_advertised(&reach, port, set);
	return dsf_bitset_has(set, destination);
}

static bool reaches(uint32_t port, uint32_t destination)
{
	return dsf_bitset_has(fabric_reach_ports(&reach, destination), port);
}

/* A bitset of the ports that want to speak. */
static uint32_t sends(void)
{
	uint64_t busy[1] = { 0 };
	uint32_t port = 0, set = 0;

	while (fabric_reach_next_send(&reach, busy, &port))
		set |= 1u << port;
	return set;
}

static uint32_t changes(void)
{
	uint32_t destination, count = 0;

	while (fabric_reach_next_changed(&reach, &destination))
		count++;
	return count;
}

static void live_ports(void)
{
	for (uint32_t i = 0; i < 3; i++)
		fabric_reach_heard(&reach, i, true, now);
	sends();
}

static void malformed(void)
{
	static const struct {
		const char *name;
		uint8_t bytes[16];
		size_t size;
		int want;
	} cases[] = {
		{ "empty", { 0 }, 0, -DSF_E_TRUNCATED },
		{ "half a header", { 0, 0, 0 }, 3, -DSF_E_TRUNCATED },
		{ "no bitmap", { 0, 0, 0, 64 }, 4, -DSF_E_TRUNCATED },
		{ "a byte short", { 0, 0, 0, 64, 1, 2, 3, 4, 5, 6, 7 }, 11, -DSF_E_TRUNCATED },
		{ "not on a word", { 0, 1, 0, 8, 1 }, 5, -DSF_E_BADFIELD },
		{ "behind the last switch", { 1, 0, 0, 8, 1 }, 5, -DSF_E_BADFIELD },
		{ "over the last switch", { 0, 192, 0, 9, 1, 1 }, 6, -DSF_E_BADFIELD },
		{ "very far", { 0xff, 0xc0, 0, 8, 1 }, 5, -DSF_E_BADFIELD },
		{ "a byte too many", { 0, 0, 0, 8, 1, 1 }, 6, -DSF_E_BADFIELD },
		{ "more switches than there can be", { 0, 0, 0x1f, 0xff, 1 }, 5, -DSF_E_TRUNCATED },
		{ "nothing withheld, said to be", { 0, 0, 0x40, 8, 1 }, 5, -DSF_E_TRUNCATED },
		{ "one bitmap of two", { 0, 0, 0x60, 8, 1, 1 }, 6, -DSF_E_TRUNCATED },
	};

	open_leaf();
	live_ports();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		TAP_EQ(fabric_reach_input(&reach, 0, cases[i].bytes, cases[i].size, now),
			cases[i].want, "malformed: %s", cases[i].name);
	TAP_EQ(changes(), 0, "malformed: changes nothing");
	TAP_EQ(fabric_reach_input(&reach, 0, (const uint8_t[]){ 0, 0, 0, 0 }, 4, now), 0,
		"a cell about no switch");
	TAP_EQ(fabric_reach_input(&reach, 0, (const uint8_t[]){ 0, 192, 0, 8, 0xff }, 5, now), 0,
		"the last eight switches");
	TAP_OK(reaches(0, 199) && changes() == 8, "are reached");
	close_reach("malformed");
}

static void both_ways(void)
{
	open_leaf();
	TAP_EQ(sends(), 7, "a port with carrier speaks at once");
	TAP_OK(!fabric_reach_hears(&reach, 0), "it has heard nothing");
	fabric_reach_heard(&reach, 0, false, now);
	TAP_OK(fabric_reach_hears(&reach, 0) && !reach.ports[0].live,
		"we hear the peer, it doesn't hear us: not live");
	TAP_EQ(sends(), 1, "but we tell it that we do");
	say_one(0, 10);
	TAP_OK(!reaches(0, 10), "what it says doesn't count yet");
	fabric_reach_heard(&reach, 0, true, now);
	TAP_OK(reach.ports[0].live && reaches(0, 10) && reach.live_count == 1, "now it does");
	fabric_reach_heard(&reach, 0, false, now);
	TAP_OK(!reach.ports[0].live && !reaches(0, 10) && reach.live_count == 0,
		"it hears us no more: left at once");
	fabric_reach_heard(&reach, 0, true, now);
	TAP_OK(reaches(0, 10), "and back");
	close_reach("both ways");
}

static void valley_free(void)
{
	open_leaf();
	live_ports();
	say_one(0, 10);
	TAP_EQ(sends() & 6, 2 | 4, "a direct destination is told to the other nodes and the spine");
	TAP_OK(advertises(1, 10) && advertises(2, 10), "with its name");
	TAP_OK(!advertises(0, 10), "never to itself");
	say_one(2, 60);
	TAP_EQ(sends() & ~4u, 1 | 2, "what the spine says is told to interface nodes");
	TAP_OK(advertises(0, 60) && advertises(1, 60) && !advertises(2, 60),
		"and never back to the spine");
	say(2, (const uint32_t[]){ 10, 60 }, 2);
	sends();
	TAP_OK(advertises(2, 10), "heard both ways: the direct one counts for the spine");
	fabric_reach_carrier(&reach, 0, false, now);
	TAP_OK(!advertises(2, 10) && advertises(1, 10),
		"without the direct link it is the spine's alone");
	fabric_reach_carrier(&reach, 2, false, now);
	TAP_OK(!advertises(1, 10) && !advertises(1, 60), "and then nobody's");
	close_reach("valley-free");
}

static void stale_word(void)
{
	open_leaf();
	live_ports();
	say(0, (const uint32_t[]){ 10, 77 }, 2);
	fabric_reach_carrier(&reach, 0, false, now);
	fabric_reach_carrier(&reach, 0, true, now);
	fabric_reach_heard(&reach, 0, true, now);
	TAP_OK(!reaches(0, 77), "who comes back must say anew what it reaches");
	say_one(0, 10);
	TAP_OK(reaches(0, 10) && !reaches(0, 77), "and only that counts");
	close_reach("stale");
}

/* Deadlines pass for ns; ports in heard get a train every period. */
static void pass(uint64_t periods, uint32_t heard)
{
	while (periods-- > 0) {
		for (uint32_t i = 0; i < 3; i++)
			if (heard >> i & 1u)
				fabric_reach_heard(&reach, i, true, now);
		now = fabric_reach_deadline(&reach);
		fabric_reach_expire(&reach, now);
		sends();
	}
}

static void silence(void)
{
	open_leaf();
	live_ports();
	say_one(0, 10);
	pass(10, 7);
	TAP_EQ(reach.live_count, 3, "a train a period keeps a link");
	pass(2, 6); /* it was heard a period before the first of these */
	TAP_OK(reach.ports[0].live, "three periods of silence are borne");
	pass(1, 6);
	TAP_OK(!reach.ports[0].live && !fabric_reach_hears(&reach, 0) && !reaches(0, 10),
		"then it is left, and told so");
	TAP_OK(reach.ports[1].live && reach.ports[2].live, "the others stay");
	fabric_reach_heard(&reach, 0, true, now);
	TAP_OK(reach.ports[0].live && reaches(0, 10), "one train brings it back");
	now = dsf_time_after(now, 1000 * REFRESH_NS);
	fabric_reach_expire(&reach, now);
	TAP_OK(dsf_time_before(now, fabric_reach_deadline(&reach)),
		"a late driver skips the periods that are gone");
	close_reach("silence");
}

static uint32_t next_sequence;

/* A period in which port 0 carries cells of which some are lost, then the deadline. */
static void period(uint32_t cells, uint32_t lost)
{
	fabric_reach_heard(&reach, 0, true, now);
	for (uint32_t i = 0; i < cells; i++) {
		if (lost > 0 && i % (cells / lost) == cells / lost / 2)
			next_sequence++;
		fabric_reach_sequence(&reach, 0, next_sequence++);
	}
	pass(1, 7);
}

static void gray(uint32_t first)
{
	uint32_t periods;

	open_leaf();
	live_ports();
	say_one(0, 10);
	next_sequence = first;
	for (int i = 0; i < 50; i++)
		period(1000, 0);
	TAP_OK(reach.ports[0].loss.lost == 0 && reach.ports[0].live, "first %u: no loss", first);
	period(100, 3);
	pass(3, 7);
	TAP_OK(reach.ports[0].live && reach.ports[0].loss.lost == 3, "three lost cells are borne");
	for (int i = 0; i < 50; i++)
		period(1000, 1);
	TAP_OK(reach.ports[0].live, "0.1 %% is borne");
	for (periods = 0; periods < 20 && !reach.ports[0].isolated; periods++)
		period(1000, 10);
	TAP_OK(reach.ports[0].isolated && !reach.ports[0].live && !reaches(0, 10),
		"1 %% isolates: after %u periods", periods);
	TAP_OK(!fabric_reach_hears(&reach, 0), "the peer is told");
	TAP_OK(reach.ports[0].fill_wanted, "and the link is tested");
	for (int i = 0; i < 20; i++)
		period(FABRIC_REACH_FILL_CELLS, 1);
	TAP_OK(reach.ports[0].isolated, "while it loses it stays away");
	for (int i = 0; i < 30; i++)
		period(10, 0);
	TAP_OK(reach.ports[0].isolated, "also when there is too little to judge by");
	for (int i = 0; i < 7; i++)
		period(FABRIC_REACH_FILL_CELLS, 0);
	TAP_OK(reach.ports[0].isolated, "seven clean periods are not enough");
	period(FABRIC_REACH_FILL_CELLS, 0);
	TAP_OK(!reach.ports[0].isolated && reach.ports[0].live && reaches(0, 10),
		"eight bring it back");
	close_reach("gray");
}

static void corrupted(void)
{
	open_leaf();
	live_ports();
	next_sequence = 0;
	for (int i = 0; i < 20 && !reach.ports[0].isolated; i++) {
		fabric_reach_bad(&reach, 0, 10);
		period(1000, 0);
	}
	TAP_OK(reach.ports[0].isolated, "1 %% of corrupted cells isolates too");
	TAP_EQ(reach.ports[0].loss.lost, 0, "but they were not lost");
	close_reach("corrupted");
}

static void late_cells(void)
{
	open_leaf();
	live_ports();
	for (uint32_t sequence = 0; sequence < 60000; sequence += 60) {
		for (uint32_t i = 30; i < 60; i++) /* the second train first */
			fabric_reach_sequence(&reach, 0, sequence + i);
		for (uint32_t i = 0; i < 30; i++)
			fabric_reach_sequence(&reach, 0, sequence + i);
		if (sequence % 600 == 0)
			pass(1, 7);
	}
	TAP_OK(reach.ports[0].loss.lost == 0 && reach.ports[0].live,
		"trains that overtake are no loss, and no reason to leave the link");
	TAP_EQ(fabric_reach_sequence(&reach, 0, 0x70000000), 0x70000000 - 60000, "a jump ahead is");
	fabric_reach_sequence(&reach, 0, 3);
	TAP_EQ(fabric_reach_sequence(&reach, 0, 4), 0, "a jump back is a peer that began anew");
	close_reach("late");
}

static void flaps(void)
{
	open_leaf();
	live_ports();
	say_one(0, 10);
	changes();
	for (int i = 0; i < 1000; i++) {
		fabric_reach_carrier(&reach, 0, false, now);
		fabric_reach_carrier(&reach, 0, false, now);
		if (i % 3 == 0)
			sends();
		fabric_reach_carrier(&reach, 0, true, now);
		if (i % 2 == 0) {
			fabric_reach_heard(&reach, 0, true, now);
			say_one(0, 10);
		}
	}
	fabric_reach_carrier(&reach, 0, false, now);
	TAP_EQ(sends() & 1u, 0, "a port without carrier wants to say nothing");
	TAP_OK(reach.live_count == 2 && !reaches(0, 10) && reach.wants_count == 0,
		"flaps leave the counts right");
	TAP_EQ(changes(), 1, "one destination has changed");
	close_reach("flaps");
}

/* The first cell that we say at port. */
static struct fabric_reach_cell hear(const struct fabric_reach *r, uint32_t port)
{
	static uint8_t payload[FABRIC_CELL_MAX];
	struct fabric_reach_cell cell = { 0 };
	size_t size = fabric_reach_output(r, port, 0, payload, sizeof(payload));

	TAP_OK(size > 0 && fabric_reach_cell_decode(&cell, payload, size) == 0,
		"what is said at port %u can be read", port);
	return cell;
}

/* 'd' drained, 's' not. */
static char says(uint32_t port)
{
	return hear(&reach, port).drained ? 'd' : 's';
}

static bool has(const uint8_t *bitmap, uint32_t one)
{
	return bitmap != NULL && (bitmap[one / 8] >> one % 8 & 1u);
}

/* Do we tell at port that we are a last resort for destination, and nothing else about it? */
static bool resorts(uint32_t port, uint32_t destination)
{
	struct fabric_reach_cell cell = hear(&reach, port);

	return has(cell.resort, destination) && !has(cell.told, destination) &&
	       !has(cell.withheld, destination);
}

/* The peer at port reaches nothing, is a last resort for one, and its end is drained, or isn't. */
static int say_resort(uint32_t port, bool drained, uint32_t one)
{
	uint8_t payload[4 + 2 * SWITCHES / 8] = { 0, 0, drained ? 0xa0 : 0x20, SWITCHES };

	payload[4 + SWITCHES / 8 + one / 8] |= (uint8_t)(1u << one % 8);
	return fabric_reach_input(&reach, port, payload, sizeof(payload), now);
}

static bool is_last_resort(uint32_t port, uint32_t destination)
{
	uint64_t ports[1];

	fabric_reach_last_resort(&reach, destination, ports);
	return dsf_bitset_has(ports, port);
}

/* A port that is drained is live but no way; cells that still come find it. */
static void drain(void)
{
	open_leaf();
	live_ports();
	say_one(0, 10);
	say_one(1, 11);
	changes();
	sends();
	fabric_reach_drain(&reach, 0, true, now);
	TAP_OK(reach.ports[0].live && !reach.ports[0].active && reach.live_count == 3 &&
			reach.active_count == 2,
		"drained: live, not active");
	TAP_OK(!reaches(0, 10) && !advertises(1, 10) && advertises(2, 11),
		"what it led to is withdrawn");
	TAP_OK(is_last_resort(0, 10) && !is_last_resort(1, 10), "and still found as last resort");
	TAP_OK(says(0) == 'd' && says(1) == 's' && sends() == 7, "all are told");
	TAP_OK(changes() == 1, "one destination has changed");
	TAP_OK(resorts(1, 10) && resorts(2, 10), "for which we are a last resort");
	TAP_OK(resorts(0, 11) && !resorts(0, 10), "as for all else on the drained link");
	say_resort(0, false, 10);
	TAP_OK(is_last_resort(0, 10) && resorts(1, 10), "the peer, which knows, too");
	fabric_reach_carrier(&reach, 0, false, now);
	TAP_OK(!is_last_resort(0, 10) && !resorts(1, 10) && !resorts(2, 10) && changes() == 1,
		"without carrier it is no resort");
	fabric_reach_carrier(&reach, 0, true, now);
	fabric_reach_heard(&reach, 0, true, now);
	TAP_OK(reach.ports[0].live && !reach.ports[0].active, "a flap doesn't end the drain");
	say_resort(0, false, 10);
	fabric_reach_drain(&reach, 0, false, now);
	TAP_OK(reach.ports[0].active && !reaches(0, 10) && says(0) == 's', "undrained: active");
	TAP_OK(is_last_resort(0, 10) && resorts(1, 10), "no way yet, but what it was");
	say_one(0, 10);
	TAP_OK(reaches(0, 10) && advertises(1, 10) && !resorts(1, 10),
		"and a way once the peer has spoken");
	TAP_OK(!resorts(0, 11) && advertises(0, 11), "as we are for it");
	fabric_reach_drain(&reach, 0, true, now);
	fabric_reach_drain(&reach, 0, false, now);
	TAP_OK(reaches(0, 10) && advertises(1, 10), "a drain that nobody heard of changes nothing");
	close_reach("drain");
}

static void peer_drain(void)
{
	open_leaf();
	live_ports();
	say_one(0, 10);
	sends();
	TAP_EQ(say_resort(0, true, 10), 0, "the peer's end is drained");
	TAP_OK(reach.ports[0].peer_drained && reach.ports[0].live && !reach.ports[0].active &&
			!reaches(0, 10) && is_last_resort(0, 10),
		"inactive, a last resort");
	TAP_OK(says(0) == 's', "we aren't");
	TAP_OK(sends() == 7 && resorts(1, 10) && resorts(2, 10) && !resorts(0, 10),
		"but a last resort ourselves, for all but the peer");
	fabric_reach_carrier(&reach, 0, false, now);
	fabric_reach_carrier(&reach, 0, true, now);
	fabric_reach_heard(&reach, 0, true, now);
	TAP_OK(reach.ports[0].live && !reach.ports[0].active, "a flap doesn't end the drain");
	say_one(0, 11);
	TAP_OK(reach.ports[0].active && reaches(0, 11) && !reaches(0, 10),
		"the peer's word does, and its set alone holds");
	close_reach("peer drain");
}

static void drain_all(void)
{
	open_leaf();
	live_ports();
	say_one(0, 10);
	say_one(1, 11);
	fabric_reach_drain(&reach, 1, true, now);
	sends();
	fabric_reach_drain_all(&reach, true, now);
	TAP_OK(reach.active_count == 0 && reach.live_count == 3 && sends() == 7 && says(2) == 'd',
		"a drained switch: no port is active, all say so");
	TAP_OK(is_last_resort(0, 10) && is_last_resort(1, 11), "what still comes finds its way");
	TAP_OK(resorts(2, 10) && resorts(2, 11) && resorts(1, 10), "which is told");
	fabric_reach_drain_all(&reach, false, now);
	TAP_OK(reach.active_count == 2 && !reach.ports[1].active && says(1) == 'd' &&
			says(0) == 's',
		"undrained: but for the port that is drained itself");
	TAP_OK(reaches(0, 10) && advertises(2, 10) && resorts(2, 11) && resorts(1, 10),
		"all is as it was for that one");
	fabric_reach_drain(&reach, 1, false, now);
	TAP_OK(advertises(2, 11) && hear(&reach, 0).resort == NULL &&
			hear(&reach, 1).resort == NULL && hear(&reach, 2).resort == NULL,
		"without drains there is no last resort");
	close_reach("drain all");
}

/* Last resorts keep to the rules: down from the spine, and never back up. */
static void resorts_are_valley_free(void)
{
	open_leaf();
	live_ports();
	say_one(0, 10);
	say_resort(2, false, 60);
	TAP_OK(resorts(0, 60) && resorts(1, 60) && !resorts(2, 60),
		"the spine's last resort is told to interface nodes alone");
	TAP_OK(is_last_resort(2, 60) && !reaches(2, 60) && !fabric_reach_cut(&reach, 60),
		"it is no way, and not cut off by balance");
	fabric_reach_drain(&reach, 2, true, now);
	TAP_OK(resorts(2, 10) && !resorts(2, 60), "on a drained link up nothing comes back either");
	say_one(2, 60);
	TAP_OK(resorts(0, 60) && is_last_resort(2, 60), "what is told on a drained link is no way");
	fabric_reach_carrier(&reach, 2, false, now);
	TAP_OK(!resorts(0, 60) && !is_last_resort(2, 60), "a failure ends it");
	close_reach("last resorts");
}

/* An interface node with minimum links: starts drained, joins at 2, remains with 1. */
static void minimum(void)
{
	static const struct fabric_peer peers[3] = {
		{ .tier = FABRIC_TIER_LEAF, .switch_index = 1, .capacity = 1 },
		{ .tier = FABRIC_TIER_LEAF, .switch_index = 2, .capacity = 1 },
		{ .tier = FABRIC_TIER_LEAF, .switch_index = 3, .capacity = 1 },
	};
	struct fabric_reach_config config = { .self = 10,
		.tier = FABRIC_TIER_INTERFACE,
		.ports_count = 3,
		.switches_count = SWITCHES,
		.peers = peers,
		.cell_bytes = 512,
		.min_links_to_join = 2,
		.min_links_to_remain = 1,
		.refresh_ns = REFRESH_NS };

	now = (dsf_instant){ 1000 };
	fabric_reach_init(&reach, &memory.memory, &config);
	for (uint32_t i = 0; i < 3; i++)
		fabric_reach_carrier(&reach, i, true, now);
	TAP_OK(fabric_reach_drained(&reach) && says(0) == 'd' && resorts(0, 10) &&
			!advertises(0, 10),
		"minimum: starts drained");
	fabric_reach_heard(&reach, 0, true, now);
	TAP_OK(fabric_reach_drained(&reach), "one link is too few to join");
	fabric_reach_heard(&reach, 1, true, now);
	TAP_OK(!fabric_reach_drained(&reach) && reach.active_count == 2 && says(2) == 's' &&
			!resorts(2, 10) && advertises(2, 10),
		"two are enough");
	fabric_reach_drain(&reach, 0, true, now);
	TAP_OK(!fabric_reach_drained(&reach), "one is enough to remain");
	say_resort(1, true, 60);
	TAP_OK(fabric_reach_drained(&reach) && reach.active_count == 0, "none isn't");
	fabric_reach_drain(&reach, 0, false, now);
	TAP_OK(fabric_reach_drained(&reach), "one is too few to join again");
	fabric_reach_drain_all(&reach, true, now);
	fabric_reach_heard(&reach, 2, true, now);
	TAP_OK(fabric_reach_drained(&reach), "two don't undo what was asked");
	fabric_reach_drain_all(&reach, false, now);
	TAP_OK(!fabric_reach_drained(&reach) && reach.active_count == 2, "until it is");
	close_reach("minimum");
}

/* A set larger than a cell goes out in parts, whole words each, at any cell size; of a lab's many
 * fabrics only the words of our own, from the switch `from` on, below `end`. */
static void parts(uint32_t switches, uint32_t from, uint32_t end, uint32_t cell_bytes)
{
	static const struct fabric_peer peers[2] = {
		{ .tier = FABRIC_TIER_LEAF, .switch_index = 0, .capacity = 1 },
		{ .tier = FABRIC_TIER_LEAF, .switch_index = 0, .capacity = 1 },
	};
	uint64_t expected[DSF_BITSET_WORDS(16384u)] = { 0 };
	struct fabric_reach_config config = { .self = (uint16_t)from,
		.tier = FABRIC_TIER_SPINE,
		.ports_count = 2,
		.switches_count = switches,
		.expected = from == 0 && end == switches ? NULL : expected,
		.peers = peers,
		.draw = { .siblings = 1 },
		.cell_bytes = cell_bytes,
		.refresh_ns = REFRESH_NS };
	struct fabric_reach other;
	uint8_t payload[FABRIC_CELL_MAX];
	uint32_t part, wrong = 0, reached = 0;
	size_t size, largest = 0, bytes = 0;

	dsf_bitset_add(expected, end - 1);
	now = (dsf_instant){ 1000 };
	fabric_reach_init(&reach, &memory.memory, &config);
	fabric_reach_init(&other, &memory.memory, &config);
	for (uint32_t i = 0; i < 2; i++) {
		fabric_reach_carrier(&reach, i, true, now);
		fabric_reach_carrier(&other, i, true, now);
		fabric_reach_heard(&reach, i, true, now);
		fabric_reach_heard(&other, i, true, now);
	}
	for (uint32_t first = from / 64 * 64; first < end; first += 64) {
		uint8_t word[12] = { (uint8_t)(first >> 8), (uint8_t)first, 0, 64, 1, 2, 4, 8, 16,
			32, 64, 129 };

		if (switches - first < 64)
			word[3] = (uint8_t)(switches - first);
		wrong += fabric_reach_input(&reach, 0, word, 4 + (word[3] + 7) / 8, now) != 0;
	}
	for (part = 0; (size = fabric_reach_output(&reach, 1, part, payload, sizeof(payload))) > 0;
		part++) {
		largest = size > largest ? size : largest;
		bytes += size - 4;
		wrong += fabric_reach_input(&other, 0, payload, size, now) != 0;
	}
	for (uint32_t d = 0; d < switches; d++) {
		wrong += dsf_bitset_has(reach.any, d) != dsf_bitset_has(other.any, d);
		reached += dsf_bitset_has(other.any, d);
	}
	TAP_OK(wrong == 0 && reached >= (end - from) / 8 &&
			largest + FABRIC_CELL_HEADER <= cell_bytes &&
			bytes <= (DSF_BITSET_WORDS(end) - from / 64) * 8,
		"%u switches from %u on of %u in %u cells of at most %zu of %u B", end - from, from,
		switches, part, largest + FABRIC_CELL_HEADER, cell_bytes);
	fabric_reach_close(&other);
	close_reach("parts");
}

static void no_memory(void)
{
	unsigned long nth = 0;
	int err;

	do {
		memory.fail_at = ++nth;
		err = open_reach(&reach);
		TAP_OK(err == 0 || (err == -DSF_E_NOMEM && memory.live == 0),
			"init fails at allocation %lu without a leak, or not at all", nth);
	} while (err < 0);
	TAP_OK(nth > 10, "it has so many");
	fabric_reach_close(&reach);
	memory.fail_at = 0;
	open_leaf();
	live_ports();
	memory.fail_at = 1;
	TAP_EQ(say_one(0, 10), -DSF_E_NOMEM, "what a peer says can't be kept");
	TAP_OK(!reaches(0, 10), "and changes nothing");
	TAP_EQ(say_one(0, 10), 0, "the next time it can");
	TAP_OK(reaches(0, 10), "and does");
	memory.fail_at = 1;
	TAP_EQ(say_resort(1, false, 11), -DSF_E_NOMEM, "nor what it is a last resort for");
	TAP_OK(!is_last_resort(1, 11), "and changes nothing");
	memory.fail_at = 2; /* the first is the peer's set */
	TAP_EQ(say_resort(1, false, 11), 0, "the next time it can");
	TAP_OK(is_last_resort(1, 11) && !resorts(2, 11), "what there is no room for isn't told");
	say_resort(0, true, 10);
	say_resort(1, true, 11);
	TAP_OK(resorts(2, 10) && resorts(2, 11), "the next time it is");
	close_reach("no memory");
}

int main(void)
{
	malformed();
	both_ways();
	valley_free();
	stale_word();
	silence();
	gray(0);
	gray(UINT32_MAX - 50500); /* over the wrap, in the middle of it */
	corrupted();
	late_cells();
	flaps();
	drain();
	peer_drain();
	drain_all();
	resorts_are_valley_free();
	minimum();
	parts(1, 0, 1, 512);
	parts(64, 0, 64, 512);
	parts(3777, 0, 3777, 512);
	parts(16384, 0, 16384, 512);
	parts(16384, 0, 16384, FABRIC_CELL_MIN);
	parts(5000, 0, 5000, FABRIC_CELL_MAX);
	parts(1600, 800, 1600, 512);
	parts(1600, 700, 1599, 512);
	parts(16384, 5000, 12345, 512);
	no_memory();
	return TAP_DONE();
}
