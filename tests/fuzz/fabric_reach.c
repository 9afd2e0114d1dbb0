/*
 * Reachability of a leaf against peers that say anything, at any time. After each step the tables
 * must agree with what the peers said last over the links that are live, what is told must be
 * balanced, and whatever is told must be valley-free and have a link that leads on.
 */
#include <stdlib.h>
#include "fabric/reach.h"
#include "tests/memory.h"

#define PORTS    5u
#define SWITCHES 150u
#define DRAINS   200u /* first bytes from here on are drains */
#define DOWN     7u   /* ports 0 to 2 lead to interface nodes */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct test_memory memory = TEST_MEMORY(memory);

static void require(bool held)
{
	if (!held)
		abort();
}

static void check_told(const struct fabric_reach *r, uint32_t d, bool direct)
{
	uint64_t told = fabric_reach_told(r, d)[0], withheld = fabric_reach_withheld(r, d)[0];
	struct fabric_balance_view view;

	require((told & withheld) == 0 && ((told | withheld) & ~r->active[0]) == 0);
	require(told == 0 || dsf_bitset_has(r->any, d));
	for (uint32_t i = 0; i < PORTS; i++) {
		uint64_t set[DSF_BITSET_WORDS(SWITCHES)];

		fabric_reach_advertised(r, i, set);
		require(dsf_bitset_has(set, d) == (told >> i & 1u));
	}
	for (uint32_t i = 0; i < r->balance.groups_count; i++)
		if (fabric_balance_view(&r->balance, i, d, direct, &told, &view))
			require(view.balanced);
}

static bool claims(const uint64_t *set, uint32_t d)
{
	return set != NULL && dsf_bitset_has(set, d);
}

/* Ports that lead to d, be it as last resort. */
static uint64_t leading(const struct fabric_reach *r, uint32_t d)
{
	uint64_t ports[1], want = 0;

	for (uint32_t i = 0; i < PORTS; i++) {
		const struct fabric_reach_port *p = &r->ports[i];

		if (p->live &&
			(claims(p->told, d) || claims(p->withheld, d) || claims(p->resort, d)))
			want |= 1u << i;
	}
	fabric_reach_last_resort(r, d, ports);
	require(ports[0] == want);
	return want;
}

/* Ports that lead to d for last resort alone. */
static uint64_t resorting(const struct fabric_reach *r, uint32_t d)
{
	uint64_t ports = leading(r, d) & ~r->active[0];

	for (uint32_t i = 0; i < PORTS; i++) {
		const struct fabric_reach_port *p = &r->ports[i];

		if (p->active && claims(p->resort, d) && !claims(p->told, d) &&
			!claims(p->withheld, d))
			ports |= 1u << i;
	}
	return ports;
}

/* Who is told of d in any way: by the rules, while a link leads there, and in one set only. */
static void check_resort(const struct fabric_reach *r, uint32_t d)
{
	uint64_t told = fabric_reach_told(r, d)[0] | fabric_reach_withheld(r, d)[0];
	uint64_t resort = r->resort_ports == NULL ? 0 : r->resort_ports[d];
	uint64_t behind = d == 10 ? 1u : d == 11 ? 6u : 0, from = leading(r, d);
	uint64_t may = ~behind & r->live[0];

	require(dsf_bitset_has(r->resorts, d) == (resorting(r, d) != 0));
	if ((resorting(r, d) & behind) == 0 && !dsf_bitset_has(r->direct, d))
		may &= DOWN; /* what only the spine leads to isn't told to the spine */
	require((told & resort) == 0 && (told | resort) == (from != 0 ? may : 0));
	for (uint32_t i = 0; i < PORTS && r->resort != NULL; i++)
		require(dsf_bitset_has(r->resort + i * r->switch_words, d) == (resort >> i & 1u));
}

static void check(const struct fabric_reach *r)
{
	uint32_t live = 0, active = 0, wants = 0;

	for (uint32_t i = 0; i < PORTS; i++) {
		const struct fabric_reach_port *p = &r->ports[i];

		live += p->live;
		active += p->active;
		wants += dsf_bitset_has(r->wants, i);
		require(p->live == (p->carrier && p->heard && p->hears_me && !p->isolated));
		require(p->active ==
			(p->live && !p->drained && !p->peer_drained && !fabric_reach_drained(r)));
		require(p->carrier || !dsf_bitset_has(r->wants, i));
		for (uint32_t d = 0; d < SWITCHES; d++)
			require(dsf_bitset_has(fabric_reach_ports(r, d), i) ==
				(p->active && p->told != NULL && dsf_bitset_has(p->told, d)));
	}
	require(live == r->live_count && active == r->active_count && wants == r->wants_count);
	for (uint32_t d = 0; d < SWITCHES; d++) {
		const uint64_t *ports = fabric_reach_ports(r, d);
		bool direct = (ports[0] & DOWN) != 0;

		require(dsf_bitset_has(r->any, d) == (ports[0] != 0));
		require(dsf_bitset_has(r->direct, d) == direct);
		require(fabric_reach_cut(r, d) == (ports[0] == 0 && r->unbalanced_count[d] > 0));
		check_told(r, d, direct);
		check_resort(r, d);
	}
}

static size_t step(struct fabric_reach *r, const uint8_t *data, size_t size, dsf_instant *now)
{
	uint32_t port = data[0] % PORTS, what = data[0] / PORTS % 8u, destination;
	uint64_t busy = data[1] >> 1; /* of the case in which ports speak */
	size_t used = 2;

	if (data[0] >= DRAINS) {
		if (data[1] & 2u)
			fabric_reach_drain_all(r, data[1] & 1u, *now);
		else
			fabric_reach_drain(r, port, data[1] & 1u, *now);
		return used;
	}
	switch (what) {
	case 0: fabric_reach_carrier(r, port, data[1] & 1u, *now); break;
	case 1: fabric_reach_heard(r, port, data[1] & 1u, *now); break;
	case 2:
		used += data[1] < size - 2 ? data[1] : size - 2;
		(void)fabric_reach_input(r, port, data + 2, used - 2, *now);
		break;
	case 3: fabric_reach_sequence(r, port, r->ports[port].loss.next + data[1] - 20u); break;
	case 4: fabric_reach_sequence(r, port, (uint32_t)data[1] << 24); break;
	case 5: now->ns += data[1] * 1000u; break;
	case 6:
		for (uint32_t i = 0; i < data[1]; i++)
			fabric_reach_sequence(r, port, r->ports[port].loss.next);
		break;
	default:
		for (uint32_t from = 0; data[1] > 0 && fabric_reach_next_send(r, &busy, &from);) {
			uint8_t payload[480];

			size = fabric_reach_output(r, from, 0, payload, sizeof(payload));
			require(!(busy >> from & 1u));
			for (uint32_t i = 1; size != 4 + i * ((SWITCHES + 7) / 8); i++)
				require(i < 3); /* bitmaps */
		}
		while (fabric_reach_next_changed(r, &destination))
			require(destination < SWITCHES);
		break;
	}
	return used;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint64_t tells[DSF_BITSET_WORDS(SWITCHES)] = { ~7ull << 10, ~0ull };
	static const struct fabric_peer peers[PORTS] = {
		{ .tier = FABRIC_TIER_INTERFACE, .switch_index = 10, .capacity = 1 },
		{ .tier = FABRIC_TIER_INTERFACE, .switch_index = 11, .capacity = 2 },
		{ .tier = FABRIC_TIER_INTERFACE, .switch_index = 11, .capacity = 1 },
		{ .tier = FABRIC_TIER_SPINE, .switch_index = 13, .capacity = 3, .tells = tells },
		{ .tier = FABRIC_TIER_SPINE, .switch_index = 14, .capacity = 1, .tells = tells },
	};
	struct fabric_reach_config config = { .self = 9,
		.peers = peers,
		.balanced = true,
		.draw = { .siblings = 1 },
		.tier = FABRIC_TIER_LEAF,
		.ports_count = PORTS,
		.switches_count = SWITCHES,
		.cell_bytes = 512,
		.refresh_ns = 45000,
		.first_refresh_at = { 45000 } };
	struct fabric_reach reach;
	dsf_instant now = { 0 };

	require(fabric_reach_init(&reach, &memory.memory, &config) == 0);
	while (size >= 2) {
		size_t used = step(&reach, data, size, &now);

		fabric_reach_expire(&reach, now);
		require(dsf_time_before(now, fabric_reach_deadline(&reach)));
		check(&reach);
		data += used;
		size -= used;
	}
	fabric_reach_close(&reach);
	require(memory.live == 0);
	return 0;
}
