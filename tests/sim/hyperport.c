/*
 * Four links of an edge switch and a super spine switch as one hyperport: one flow over them is as
 * fast as all of them, comes in order whatever the sizes beside it, and goes on over what is left
 * when members fail. Beside it the same links for themselves, where a flow takes one.
 */
#include <stdlib.h>
#include <string.h>
#include "bgp/bgp.h"
#include "tests/sim/lab.h"
#include "tests/tap.h"

#define DILATION 2000u /* of control protocols: hold 45 ms */
#define GBPS     1000000000ull
#define LINK_BPS (100 * GBPS)
#define MEMBERS  4u
#define WARM_NS  (200 * NS_PER_US)
#define RUN_NS   NS_PER_MS

/* Two buildings of a host, a leaf, an edge switch; what isn't an edge link takes a whole GPU. */
#define TEXT                                                                                       \
	"{\"name\":\"h\",\"planes\":1,\"buildings\":[%s,%s],"                                      \
	"\"superspine\":{\"switches\":1,\"per_edsw\":1},\"link_defaults\":{"                       \
	"\"fabric\":{\"rate\":\"500G\"},\"spine\":{\"rate\":\"500G\"},"                            \
	"\"edge\":{\"rate\":\"100G\",\"parallel\":4,\"hyperport\":%s}},"                           \
	"\"fabric\":{\"mode\":\"%s\"}}"
#define BUILDING                                                                                   \
	"{\"sdsw\":1,\"zones\":[{\"scaling_units\":1,\"rails\":1,\"hosts_per_unit\":1,"            \
	"\"fdsw\":1}],\"edge\":{\"edsw\":1,\"fdsw\":1}}"

static struct lab lab;
static char name[64];

static void open_lab(bool joined, const char *mode, uint64_t seed)
{
	char text[2048];

	snprintf(name, sizeof(name), "%s, %s, seed %" PRIu64, mode,
		joined ? "hyperport" : "four links", seed);
	snprintf(text, sizeof(text), TEXT, BUILDING, BUILDING, joined ? "true" : "false", mode);
	lab_open_text(&lab, text, seed);
}

/* From the first building's host to the second's. */
static uint32_t add_flow(uint32_t size, uint64_t rate_bps)
{
	bool routed = lab.topo->fabric.mode == TOPO_FABRIC_ECMP;
	struct generator_flow flow = { .source = 0,
		.target = 1,
		.size = size,
		.dscp = 50,
		.rate_bps = rate_bps,
		.start = sim_now(lab.sim),
		.stop = DSF_NEVER,
		.routers = routed ? 11 : 3 };

	return generator_add(&flow);
}

/* Bit/s on the wire that all flows get, once they have had time. */
static uint64_t rate_of_all(void)
{
	struct generator_count before[GENERATOR_FLOWS_MAX];
	uint64_t bytes = 0;

	lab_run(&lab, WARM_NS);
	for (uint32_t i = 0; i < generator_flows(); i++)
		before[i] = *generator_count(i);
	lab_run(&lab, RUN_NS);
	for (uint32_t i = 0; i < generator_flows(); i++)
		bytes += generator_since(i, &before[i]).bytes;
	return bytes * 8 * (NS_PER_S / RUN_NS);
}

static uint32_t wrong_packets(void)
{
	uint32_t wrong = 0;

	for (uint32_t i = 0; i < generator_flows(); i++) {
		const struct generator_count *c = generator_count(i);

		wrong += c->reordered + c->duplicated + c->wrong;
	}
	return wrong;
}

/* The link of member i of the first building's edge switch. */
static uint32_t member(uint32_t i)
{
	const struct topo_node *edsw = &lab.topo->nodes[lab_node(&lab, TOPO_ROLE_EDSW, 0)];

	return topo_node_port(lab.topo, edsw, i)->link;
}

static void check_rate(const char *what, uint64_t got_bps, uint64_t links)
{
	LAB_OK(got_bps >= links * LINK_BPS / 100 * 95 && got_bps <= links * LINK_BPS / 100 * 101,
		"%s: %s: %.1f Gbit/s of %u links", name, what, (double)got_bps / 1e9,
		(unsigned)links);
}

static void one_flow(bool joined, const char *mode, uint64_t seed)
{
	uint32_t used = 0;

	open_lab(joined, mode, seed);
	add_flow(4000, 0);
	generator_kick(lab.sim);
	check_rate("one flow", rate_of_all(), joined ? MEMBERS : 1);
	LAB_OK(wrong_packets() == 0, "%s: one flow: in order", name);
	for (uint32_t i = 0; i < MEMBERS; i++)
		used += lab_port(&lab, lab.topo->links[member(i)].port_a).bytes_tx > 1000000;
	LAB_OK(used == (joined ? MEMBERS : 1), "%s: one flow: over %u of them", name, used);
	lab_close(&lab);
}

/* Short and long packets side by side; then members fail one by one, and come back. */
static void members_fail(const char *mode, uint64_t seed)
{
	uint32_t first;

	open_lab(true, mode, seed);
	first = (uint32_t)dsf_rng_below(&lab.rng, MEMBERS);
	add_flow(9000, 300 * GBPS);
	add_flow(1000, 60 * GBPS);
	add_flow(GENERATOR_SIZE_MIN, 20 * GBPS);
	generator_kick(lab.sim);
	LAB_OK(rate_of_all() > 375 * GBPS, "%s: three sizes: %u packets out of order", name,
		wrong_packets());
	for (uint32_t gone = 1; gone < MEMBERS; gone++) {
		sim_link_set(lab.sim, member((first + gone) % MEMBERS), false);
		check_rate("without members", rate_of_all(), MEMBERS - gone);
		LAB_OK(wrong_packets() == 0, "%s: %u members failed: in order", name, gone);
	}
	for (uint32_t gone = 1; gone < MEMBERS; gone++)
		sim_link_set(lab.sim, member((first + gone) % MEMBERS), true);
	LAB_OK(rate_of_all() > 375 * GBPS, "%s: members are back: as fast as before", name);
	LAB_OK(wrong_packets() == 0, "%s: members are back: in order", name);
	lab_close(&lab);
}

static void count_session(void *user, const struct node_row *row)
{
	if (row->bgp_peer.view->state == BGP_ESTABLISHED &&
		row->bgp_peer.view->session->counters.established == 1)
		++*(uint32_t *)user;
}

static uint32_t sessions(void)
{
	uint32_t count = 0;

	sim_view(lab.sim, TOPO_NONE, NODE_QUERY_BGP_PEER, TOPO_NONE, count_session, &count);
	return count;
}

/* A hyperport has a neighbour and a session while any member is up. */
static void one_session(uint64_t seed)
{
	uint32_t all;

	open_lab(true, "dsf", seed);
	all = sessions();
	/* An edge switch, its leaf and the super spine switch, in two buildings; both ends. */
	LAB_OK(all == 2 * 2 * 2, "%s: %u ends of sessions", name, all);
	for (uint32_t i = 0; i < MEMBERS; i++) {
		sim_link_set(lab.sim, member(i), false);
		lab_run(&lab, 100 * NS_PER_MS); /* two hold times */
		LAB_OK(sessions() == (i + 1 < MEMBERS ? all : all - 2), "%s: %u members gone",
			name, i + 1);
	}
	lab_close(&lab);
}

static void test(uint64_t seed)
{
	static const char *const modes[] = { "dsf", "ecmp" };

	for (int i = 0; i < 2; i++) {
		one_flow(true, modes[i], seed);
		one_flow(false, modes[i], seed);
		members_fail(modes[i], seed);
	}
	one_session(seed);
}

int main(int argc, char **argv)
{
	lab_sessions(DILATION);
	return lab_main(argc, argv, test, 3);
}
