/*
 * Load without faults: permutation, incast, a victim beside it, classes, one elephant flow over
 * links none of which could carry it, links filled evenly. Nothing is lost inside the fabric.
 */
#include "tests/sim/lab.h"

#define RDMA    50u
#define DEFAULT 0u
#define WARM_NS (100 * NS_PER_US)
#define LOAD_NS (150 * NS_PER_US)
#define RANKS   64u

static struct lab lab;
static char name[128];
static uint64_t slower = 1; /* a slow lab needs this many times longer */
static struct generator_count before[GENERATOR_FLOWS_MAX];

static uint32_t add(uint32_t source, uint32_t target, uint32_t plane, uint32_t size, uint8_t dscp,
	uint64_t rate_bps)
{
	struct generator_flow flow = { .source = source,
		.target = target,
		.plane = plane,
		.size = size,
		.dscp = dscp,
		.ecn = 2,
		.rate_bps = rate_bps,
		.start = sim_now(lab.sim),
		.stop = DSF_NEVER };

	return generator_add(&flow);
}

/* The switch that rank's port on plane 0 leads to. */
static uint32_t switch_of(uint32_t rank)
{
	return lab.topo->ports[topo_endpoint_port(lab.topo, rank, 0)->peer].node;
}

/* The nth rank that is (or isn't) behind the same switch as rank, itself left out. */
static uint32_t other_rank(uint32_t rank, bool same_switch, uint32_t nth)
{
	for (uint32_t i = 0; i < lab.topo->endpoints_count; i++)
		if (i != rank && (switch_of(i) == switch_of(rank)) == same_switch && nth-- == 0)
			return i;
	LAB_OK(false, "%s: too few ranks", name);
	return 0;
}

/* A rank behind the nth switch of plane 0 that isn't rank's; which of its ranks, by chance. */
static uint32_t rank_behind(uint32_t rank, uint32_t nth)
{
	uint32_t number = 0, found[RANKS], count = 0;

	for (uint32_t s = 0; count == 0 && s < lab.topo->nodes_count; s++) {
		if (lab.topo->nodes[s].role != TOPO_ROLE_RDSW || lab.topo->nodes[s].plane != 0 ||
			s == switch_of(rank) || number++ != nth)
			continue;
		for (uint32_t i = 0; i < lab.topo->endpoints_count; i++)
			if (switch_of(i) == s)
				found[count++] = i;
	}
	LAB_OK(count > 0, "%s: there is a switch %u", name, nth);
	return count == 0 ? 0 : found[dsf_rng_below(&lab.rng, count)];
}

static void open_lab(const char *file, const char *what, uint32_t size, uint64_t seed)
{
	lab_open(&lab, file, seed);
	snprintf(name, sizeof(name), "%s, %s, %u B, seed %" PRIu64, what, file, size, seed);
}

/* Lets the flows settle and then counts for LOAD_NS. */
static void load(void)
{
	generator_kick(lab.sim);
	lab_run(&lab, WARM_NS * slower);
	for (uint32_t i = 0; i < generator_flows(); i++)
		before[i] = *generator_count(i);
	lab_run(&lab, LOAD_NS * slower);
}

static double gbps(uint32_t flow)
{
	struct generator_count c = generator_since(flow, &before[flow]);

	return (double)c.bytes * 8 / (double)(LOAD_NS * slower);
}

static void close_lab(void)
{
	generator_stop(sim_now(lab.sim));
	LAB_OK(lab_wait_rest(&lab, 5 * NS_PER_MS), "%s: comes to rest", name);
	lab_check_order(&lab, name);
	lab_check_rest(&lab, name);
	lab_check_lossless(&lab, name);
	lab_check_cells(&lab, name);
	lab_close(&lab);
}

/* Everyone sends to one other, on all planes. */
static void draw_permutation(uint32_t *target, uint32_t count)
{
	bool again = true;

	for (uint32_t i = 0; i < count; i++)
		target[i] = i;
	while (again) {
		dsf_rng_shuffle(&lab.rng, target, count);
		again = false;
		for (uint32_t i = 0; i < count; i++)
			again = again || target[i] == i;
	}
}

static void permutation(const char *file, uint32_t size, uint64_t seed)
{
	uint32_t target[RANKS], count;
	struct lab_totals t;
	double least = 1e9;

	open_lab(file, "permutation", size, seed);
	count = lab.topo->endpoints_count;
	draw_permutation(target, count);
	for (uint32_t plane = 0; plane < lab.topo->planes; plane++)
		for (uint32_t i = 0; i < count; i++)
			add(i, target[i], plane, size, RDMA, 0);
	load();
	for (uint32_t i = 0; i < generator_flows(); i++)
		least = gbps(i) < least ? gbps(i) : least;
	LAB_OK(least >= 400 * 0.95, "%s: every flow has %.1f Gbit/s of 400 at least", name, least);
	lab_total(&lab, &t);
	LAB_OK(t.voq_drops == 0, "%s: VOQs dropped %" PRIu64, name, t.voq_drops);
	close_lab();
}

/* Three at line rate to one; local says how many of them are behind its own switch. */
static void incast(uint32_t local, uint32_t size, uint64_t seed)
{
	uint32_t target, flow[3];
	double rate[3], sum = 0;

	open_lab("mini.json", local > 0 ? "incast, one local" : "incast", size, seed);
	target = (uint32_t)dsf_rng_below(&lab.rng, lab.topo->endpoints_count);
	for (uint32_t i = 0; i < 3; i++)
		flow[i] = add(i < local ? other_rank(target, true, i) : rank_behind(target, i),
			target, 0, size, RDMA, 0);
	load();
	for (uint32_t i = 0; i < 3; i++) {
		rate[i] = gbps(flow[i]);
		sum += rate[i];
	}
	LAB_OK(lab_jain(rate, 3) >= 0.99, "%s: shares %.1f %.1f %.1f, Jain %.5f", name, rate[0],
		rate[1], rate[2], lab_jain(rate, 3));
	LAB_OK(sum >= 400 * 0.97, "%s: the port is full: %.1f Gbit/s", name, sum);
	close_lab();
}

/* A flow beside an incast, from a switch that sends to it to the switch that receives it. */
static double victim(bool alone, uint32_t size, uint64_t seed)
{
	uint32_t target, flow, source;
	double rate;

	open_lab("mini.json", alone ? "victim alone" : "victim", size, seed);
	target = (uint32_t)dsf_rng_below(&lab.rng, lab.topo->endpoints_count);
	source = rank_behind(target, 0);
	for (uint32_t i = 0; i < 3 && !alone; i++)
		add(i == 0 ? other_rank(source, true, 0) : rank_behind(target, i), target, 0, size,
			RDMA, 0);
	flow = add(source, other_rank(target, true, 0), 0, size, RDMA, 0);
	load();
	rate = gbps(flow);
	close_lab();
	return rate;
}

static void victims(uint32_t size, uint64_t seed)
{
	double solo = victim(true, size, seed), beside = victim(false, size, seed);

	LAB_OK(solo >= 400 * 0.95 && beside >= solo * 0.95,
		"%s: alone %.1f Gbit/s, beside an incast %.1f", name, solo, beside);
}

static void classes(uint32_t size, uint64_t seed)
{
	uint32_t target, rdma, other;
	double ratio;

	open_lab("mini.json", "classes", size, seed);
	target = (uint32_t)dsf_rng_below(&lab.rng, lab.topo->endpoints_count);
	rdma = add(rank_behind(target, 0), target, 0, size, RDMA, 0);
	other = add(rank_behind(target, 1), target, 0, size, DEFAULT, 0);
	add(rank_behind(target, 2), target, 0, 128, 48, 1000000000);
	load();
	ratio = gbps(rdma) / gbps(other);
	LAB_OK(ratio > 8.0 / 5 * 0.95 && ratio < 8.0 / 5 * 1.05,
		"%s: rdma %.1f : default %.1f is 8 : 5 within 5 %%", name, gbps(rdma), gbps(other));
	LAB_OK(gbps(2) > 0.98, "%s: nc has all it wants: %.3f of 1 Gbit/s", name, gbps(2));
	close_lab();
}

static void elephant(const char *file, uint32_t size, uint64_t seed)
{
	uint32_t source, flow, link;
	uint64_t link_bps;

	open_lab(file, "elephant", size, seed);
	source = (uint32_t)dsf_rng_below(&lab.rng, lab.topo->endpoints_count);
	flow = add(source, other_rank(source, false, (uint32_t)seed % 5), 0, size, RDMA, 0);
	load();
	link = lab.topo->ports[lab_fabric_port(&lab, switch_of(source), 0)].link;
	link_bps = lab.topo->links[link].rate_bps;
	LAB_OK(gbps(flow) >= 400 * 0.95, "%s: %.1f of 400 Gbit/s over links of %.1f", name,
		gbps(flow), (double)link_bps / 1e9);
	close_lab();
}

/* All RDSWs of plane 0 send all they can to other switches. */
static void even_links(const char *file, uint32_t size, uint64_t seed)
{
	uint64_t sent[256] = { 0 };
	double worst = 0;
	uint32_t count, rdsws;

	open_lab(file, "even links", size, seed);
	count = lab.topo->endpoints_count;
	for (uint32_t i = 0; i < count; i++)
		add(i, other_rank(i, false, i % (count / 2)), 0, size, RDMA, 0);
	load();
	rdsws = lab_count(&lab, TOPO_ROLE_RDSW);
	for (uint32_t r = 0; r < rdsws; r++) {
		uint32_t node = lab_node(&lab, TOPO_ROLE_RDSW, r);
		uint32_t ports = lab_fabric_ports(&lab, node);
		uint64_t least = UINT64_MAX, most = 0;

		for (uint32_t i = 0; i < ports && lab.topo->nodes[node].plane == 0; i++) {
			sent[i] = lab_port(&lab, lab_fabric_port(&lab, node, i)).cell_bytes_tx;
			least = sent[i] < least ? sent[i] : least;
			most = sent[i] > most ? sent[i] : most;
		}
		if (most > 0 && (double)(most - least) / (double)most > worst)
			worst = (double)(most - least) / (double)most;
	}
	LAB_OK(worst > 0 && worst <= 0.05, "%s: bytes on an RDSW's links differ by %.2f %%", name,
		worst * 100);
	close_lab();
}

/* Zones unlike the shipped ones, all ports loaded: nothing is lost, everyone gets through. */
static void shapes(uint64_t seed)
{
	static const struct {
		const char *name;
		struct lab_zone zone;
		double least; /* Gbit/s of each flow */
	} cases[] = {
		{ "unlimited fabric", { 1, 2, 2, 2, 2, "400G", "unlimited", "500ns", NULL, NULL },
			370 },
		{ "one cell a frame",
			{ 1, 2, 1, 2, 2, NULL, NULL, NULL, NULL, ",\"train_bytes\":0" }, 370 },
		{ "small trains",
			{ 1, 2, 1, 2, 2, NULL, NULL, NULL, NULL, ",\"train_bytes\":2048" }, 370 },
		{ "small cells", { 1, 2, 1, 2, 2, NULL, "500G", NULL, NULL, ",\"cell_bytes\":192" },
			360 },
		{ "large cells", { 1, 2, 1, 2, 2, NULL, NULL, NULL, NULL, ",\"cell_bytes\":4096" },
			350 },
		{ "one FDSW", { 1, 2, 1, 2, 1, NULL, "890G", NULL, NULL, NULL }, 370 },
		{ "fabric of half the ports' rate",
			{ 1, 2, 1, 2, 2, NULL, "222.5G", NULL, NULL, NULL }, 160 },
		{ "parallel links",
			{ 1, 2, 1, 2, 2, NULL, "222.5G", NULL, ",\"parallel\":2", NULL }, 370 },
		{ "slow and far", { 1, 2, 1, 2, 2, "10G", "11.125G", "20us", NULL, NULL }, 8.5 },
		{ "credits of a cell",
			{ 1, 2, 1, 2, 2, NULL, NULL, NULL, NULL, ",\"credit_bytes\":512" }, 370 },
	};
	double least;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint32_t count, size = 1414 + 2500 * (uint32_t)(seed & 1);

		lab_open_zone(&lab, &cases[i].zone, seed);
		snprintf(name, sizeof(name), "%s, %u B, seed %" PRIu64, cases[i].name, size, seed);
		count = lab.topo->endpoints_count;
		for (uint32_t k = 0; k < count; k++)
			add(k, (k + count / 2) % count, 0, size, RDMA, 0);
		slower = lab.topo->credit_loop_ns > WARM_NS / 4 ? 20 : 1;
		load();
		least = 1e9;
		for (uint32_t k = 0; k < count; k++)
			least = gbps(k) < least ? gbps(k) : least;
		slower = 1;
		LAB_OK(least >= cases[i].least, "%s: every flow has %.1f Gbit/s, %.1f wanted", name,
			least, cases[i].least);
		generator_stop(sim_now(lab.sim));
		LAB_OK(lab_wait_rest(&lab, 50 * NS_PER_MS), "%s: comes to rest", name);
		lab_check_order(&lab, name);
		lab_check_rest(&lab, name);
		lab_check_lossless(&lab, name);
		lab_check_cells(&lab, name);
		lab_close(&lab);
	}
}

static void test(uint64_t seed)
{
	static const uint32_t sizes[] = { 1414, 4174, 9014, 526 };
	uint32_t size = sizes[seed % 4];

	permutation("mini.json", size, seed);
	permutation("l1-zone.json", size, seed);
	incast(0, size, seed);
	incast(1, size, seed);
	victims(size, seed);
	classes(size, seed);
	elephant("l1-zone.json", size, seed);
	even_links("mini.json", size, seed);
	even_links("l1-zone.json", size, seed);
	shapes(seed);
}

int main(int argc, char **argv)
{
	return lab_main(argc, argv, test, 2);
}
