/*
 * An edge switch with 512 leaves by iBGP and add-path, as in a region: every leaf hears every path
 * once, in full messages, and again what changes; leaves that restart or block touch no other.
 */
#include "tests/unit/bgp_net.h"
#include "tests/tap.h"

#define LEAVES   512u
#define EDGE     LEAVES
#define SPINES   4u
#define FAR      64u /* aggregates */
#define BUILDING 4200000000u
#define SUPER    4200065536u

static struct bgp_peer_config peers[LEAVES + SPINES];
static struct net_raw spines[SPINES];

static void make(unsigned i, uint32_t as, const struct bgp_peer_config *of, uint32_t count)
{
	struct bgp_config c;

	bgp_config_init(&c);
	c.memory = &net_memory.memory;
	c.as = as;
	c.id = i + 1;
	c.seed = i;
	c.peers = of;
	c.peers_count = count;
	net_speaker[i] = bgp_new(&c, net_now);
	for (uint32_t j = 0; j < count; j++)
		bgp_peer_start(net_speaker[i], j, net_now);
}

static void make_leaf(unsigned i)
{
	struct dsf_ip6 address = net_address(EDGE);
	struct bgp_peer_config one;

	bgp_peer_config_init(&one, &address, BUILDING);
	one.add_path = BGP_ADD_PATH_RECEIVE;
	make(i, BUILDING, &one, 1);
}

static void make_all(void)
{
	for (unsigned i = 0; i < LEAVES + SPINES; i++) {
		struct dsf_ip6 address = net_address(i < LEAVES ? i : i + 1);

		bgp_peer_config_init(&peers[i], &address, i < LEAVES ? BUILDING : SUPER);
		peers[i].passive = true;
		peers[i].add_path = i < LEAVES ? BGP_ADD_PATH_SEND : 0;
	}
	make(EDGE, BUILDING, peers, LEAVES + SPINES);
	for (unsigned i = 0; i < LEAVES; i++)
		make_leaf(i);
	net_pass(5 * NS_PER_S);
}

static struct bgp_peer_view view_of(unsigned speaker, uint32_t peer)
{
	struct bgp_peer_view view;

	bgp_peer_view(net_speaker[speaker], peer, net_now, &view);
	return view;
}

static void announce_all(struct net_raw *spine, unsigned address)
{
	uint8_t attributes[256];
	size_t size = net_attributes(attributes, SUPER, UINT32_MAX, 0);

	for (uint8_t i = 0; i < FAR; i++) {
		struct bgp_nlri nlri = { net_prefix(i, 0, 24), 0 };

		net_raw_announce(spine, &nlri, false, net_address(address), attributes, size);
	}
}

static uint32_t leaves_with(uint32_t paths)
{
	uint32_t count = 0;

	for (unsigned i = 0; i < LEAVES; i++)
		count += net_speaker[i] != NULL && view_of(i, 0).paths == paths;
	return count;
}

static void test_start(void)
{
	struct bgp_open open = net_open(SUPER, 0);
	uint32_t up = 0, full = 0;

	make_all();
	for (uint32_t i = 0; i < LEAVES; i++)
		up += view_of(EDGE, i).state == BGP_ESTABLISHED;
	TAP_EQ(up, LEAVES, "512 leaves are up");
	open.hold_s = 0;
	for (unsigned i = 0; i < SPINES; i++) {
		open.id = 1000 + i;
		TAP_OK(net_raw_open(&spines[i], EDGE, EDGE + 1 + i, &open, BUILDING), "spine %u",
			i);
		announce_all(&spines[i], EDGE + 1 + i);
	}
	net_pass(NS_PER_S);
	TAP_EQ(leaves_with(SPINES * FAR), LEAVES, "every leaf has every path");
	for (uint32_t i = 0; i < LEAVES; i++)
		full += view_of(EDGE, i).updates_sent <= 2 * SPINES + 1;
	/* an UPDATE for each spine, two where a decision came between, and End-of-RIB */
	TAP_EQ(full, LEAVES, "in full messages");
}

static void test_changes(void)
{
	uint64_t other = view_of(EDGE, 7).updates_sent;

	bgp_closed(net_speaker[EDGE], spines[0].stream, net_now);
	net_pass(NS_PER_S);
	TAP_EQ(leaves_with((SPINES - 1) * FAR), LEAVES,
		"a spine dies: its paths are gone everywhere");
	TAP_OK(view_of(EDGE, 7).updates_sent - other <= 2, "told in %u messages",
		(unsigned)(view_of(EDGE, 7).updates_sent - other));
	other = view_of(EDGE, 7).updates_sent;
	for (unsigned i = 100; i < 110; i++)
		net_kill(i);
	net_pass(NS_PER_S);
	for (unsigned i = 100; i < 110; i++)
		make_leaf(i);
	net_pass(10 * NS_PER_S);
	TAP_EQ(leaves_with((SPINES - 1) * FAR), LEAVES, "ten leaves restart and have it all again");
	TAP_EQ(view_of(EDGE, 7).updates_sent, other, "the others hear nothing of it");
}

int main(void)
{
	size_t with_paths;

	net_now = (dsf_instant){ NS_PER_S };
	test_start();
	test_changes();
	with_paths = net_memory.live;
	for (unsigned i = 1; i < SPINES; i++)
		bgp_closed(net_speaker[EDGE], spines[i].stream, net_now);
	net_pass(NS_PER_S);
	TAP_EQ(leaves_with(0), LEAVES, "without spines there is nothing");
	TAP_OK(net_memory.live < with_paths, "and less memory");
	for (unsigned i = 0; i < NET_SPEAKERS; i++)
		net_kill(i);
	TAP_EQ(net_memory.blocks, 0, "at the end there is none");
	return TAP_DONE();
}
