/*
 * What plan says of small labs: sums, ratios, bounds of the time dilation.
 */
#include <stdlib.h>
#include <string.h>
#include "base/time.h"
#include "tests/source.h"
#include "tests/tap.h"
#include "topo/file.h"
#include "topo/plan.h"

/* Two zones of 2 RDSWs and 2 FDSWs a plane, 2 SDSWs, an edge PoD of 2 EDSWs, 2 SSWs; 8 GPUs. */
static struct topo *lab(const char *gpu, const char *fabric, const char *spine, const char *edge)
{
	char text[2048];
	struct topo_error err;
	struct topo *t;

	snprintf(text, sizeof(text),
		"{\"name\": \"x\", \"planes\": 1, \"buildings\": [{\"sdsw\": 2, \"zones\": ["
		"{\"scaling_units\": 1, \"rails\": 2, \"hosts_per_unit\": 2, \"fdsw\": 2},"
		"{\"scaling_units\": 1, \"rails\": 2, \"hosts_per_unit\": 2, \"fdsw\": 2}],"
		"\"edge\": {\"edsw\": 2, \"fdsw\": 2}}],"
		"\"superspine\": {\"switches\": 2, \"per_edsw\": 1}, \"link_defaults\": {"
		"\"gpu\": {\"rate\": \"%s\"}, \"fabric\": {\"rate\": \"%s\"},"
		"\"spine\": {\"rate\": \"%s\"}, \"edge\": {\"rate\": \"%s\"}}}",
		gpu, fabric, spine, edge);
	if (!TAP_OK(topo_load_text(text, strlen(text), "plan", &t, &err) == 0, "a lab loads")) {
		printf("# %s\n", err.text);
		exit(TAP_DONE());
	}
	return t;
}

#define G 1000000000ull

static void sums_and_ratios(void)
{
	struct topo *t = lab("400G", "500G", "250G", "100G");
	struct topo_plan p;

	topo_plan(t, 2, &p);
	TAP_EQ(p.roles[TOPO_ROLE_RDSW], 4, "RDSWs");
	TAP_EQ(p.roles[TOPO_ROLE_FDSW], 6, "FDSWs");
	TAP_EQ(p.roles[TOPO_ROLE_HOST], 4, "hosts");
	TAP_EQ(p.buildings, 1, "buildings");
	TAP_EQ(p.clusters, 3, "two zones and the PoD");
	TAP_EQ(p.system_ports, 8 + 2, "GPU ports and edge ports");
	TAP_EQ(p.rates_bps[TOPO_LINK_GPU], 8 * 400 * G, "GPU links");
	TAP_EQ(p.rates_bps[TOPO_LINK_FABRIC], 12 * 500 * G, "fabric links");
	TAP_EQ(p.rates_bps[TOPO_LINK_SPINE], 12 * 250 * G, "spine links");
	TAP_EQ(p.speedup_milli, 2 * 500 * 1000 / (2 * 400), "fabric over GPU ports");
	TAP_EQ(p.over_rdsw_milli, 2 * 400 * 1000 / (2 * 500), "GPU ports over fabric");
	TAP_EQ(p.over_fdsw_milli, 2 * 500 * 1000 / (2 * 250), "down over up");
	TAP_EQ(p.over_edge_milli, 8 * 400 * 1000 / (2 * 100), "GPU ports over edge links");
	TAP_EQ(p.bisection_bps, 12 * 250 * G / 2, "the spine is the narrowest between halves");
	topo_free(t);
}

static void unlimited_links_limit_nothing(void)
{
	struct topo *t = lab("unlimited", "unlimited", "unlimited", "unlimited");
	struct topo_plan p;

	topo_plan(t, 2, &p);
	TAP_OK(p.rates_bps[TOPO_LINK_GPU] == TOPO_UNLIMITED, "sum of unlimited links");
	TAP_OK(p.bisection_bps == TOPO_UNLIMITED, "bisection");
	TAP_EQ(p.speedup_milli, 0, "no speed-up");
	TAP_EQ(p.dilation, 1, "no dilation");
	TAP_OK(t->fabric.ecn_min_ns > 0, "a mark still needs a queue");
	topo_free(t);
	t = lab("400G", "unlimited", "500G", "500G");
	topo_plan(t, 2, &p);
	TAP_EQ(p.bisection_bps, 8 * 400 * G / 2, "GPU ports are then the narrowest");
	topo_free(t);
}

/* Two digits, then zeroes. */
static bool is_round(uint32_t d)
{
	while (d >= 100 && d % 10 == 0)
		d /= 10;
	return d < 100;
}

static void dilation_keeps_its_bounds(void)
{
	static const char *const rates[] = { "1M", "10G", "100G", "445G", "3.2T", "100T" };
	uint32_t before = 0;

	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		struct topo *t = lab(rates[i], rates[i], rates[i], rates[i]);
		uint64_t rate = t->links[0].rate_bps, bits = 8 * t->fabric.train_bytes;
		struct topo_plan p;

		topo_plan(t, 2, &p);
		TAP_OK((unsigned __int128)p.dilation * bits * G >= (unsigned __int128)250000 * rate,
			"%s: a train lasts 250 us of wall time", rates[i]);
		TAP_OK((p.dilation >= p.dilation_load ||
			       p.dilation * t->base_rtt_ns >= NS_PER_S / 2) &&
				p.dilation >= p.dilation_quantum,
			"%s: both bounds hold", rates[i]);
		TAP_OK(p.dilation >= 1 && is_round(p.dilation), "%s: %u is round", rates[i],
			p.dilation);
		TAP_OK(p.dilation >= before, "%s: not below that of slower links", rates[i]);
		TAP_EQ(p.dilation, topo_auto_dilation(t, 2), "%s: both functions agree", rates[i]);
		TAP_OK(topo_auto_dilation(t, 64) <= p.dilation, "%s: less with more cores",
			rates[i]);
		TAP_EQ(topo_auto_dilation(t, 0), topo_auto_dilation(t, 1), "%s: no core is one",
			rates[i]);
		before = p.dilation;
		topo_free(t);
	}
}

static void loops_follow_from_the_links(void)
{
	struct topo *t = lab("400G", "500G", "250G", "100G");
	/* 16 KB: 263 ns at 500G, 525 at 250G (rounded up); two hops of each. */
	uint64_t path = 2 * (500 + 263) + 2 * (1000 + 525);

	TAP_EQ(t->credit_loop_ns, 2 * path, "credit loop: a request and a grant");
	TAP_EQ(t->fabric.ecn_min_ns, 2 * t->credit_loop_ns, "ecn_min is twice that");
	TAP_EQ(t->delay_skew_ns, 0, "equal links: no skew");
	TAP_OK(t->base_rtt_ns > 2 * (t->credit_loop_ns + path + 2 * 500),
		"the round trip has both and the hosts' links");
	topo_free(t);
}

/* The published figures: a building has 18K GPUs at 800G, an edge PoD 2K x 800G, towards four super
 * spine switches; 4.5 : 1 there and nothing is oversubscribed below. */
static void a_region_has_the_published_figures(void)
{
	struct topo *t = source_topo("topologies/meta-region.json");
	uint32_t gpus[5] = { 0 }, edge_ports[5][2] = { { 0 } }, wrong = 0;
	struct topo_plan p;

	for (uint32_t i = 0; i < t->endpoints_count; i++)
		gpus[t->nodes[topo_endpoint(t, i).host].building]++;
	for (uint32_t i = 0; i < t->links_count; i++) {
		const struct topo_node *n = &t->nodes[t->ports[t->links[i].port_a].node];

		if (t->links[i].kind != TOPO_LINK_EDGE)
			continue;
		wrong += t->links[i].rate_bps != 800 * G || n->role != TOPO_ROLE_EDSW;
		edge_ports[n->building][n->plane]++;
	}
	for (uint32_t b = 0; b < 5; b++)
		wrong += gpus[b] != 18432 || edge_ports[b][0] != 2048 || edge_ports[b][1] != 2048;
	TAP_EQ(wrong, 0, "five buildings of 18,432 GPUs and 2,048 x 800G in each edge PoD");
	topo_plan(t, 2, &p);
	TAP_EQ(p.buildings, 5, "buildings");
	TAP_EQ(p.roles[TOPO_ROLE_RDSW], 5 * 2 * 4 * 128, "RDSWs");
	TAP_EQ(p.roles[TOPO_ROLE_FDSW], 5 * 2 * (4 + 1) * 40, "FDSWs of zones and edge PoDs");
	TAP_EQ(p.roles[TOPO_ROLE_SDSW], 5 * 2 * 128, "SDSWs");
	TAP_EQ(p.roles[TOPO_ROLE_EDSW], 5 * 2 * 128, "EDSWs");
	TAP_EQ(p.rates_bps[TOPO_LINK_GPU], 5 * 18432 * 800 * G, "a GPU has 800G over both planes");
	TAP_EQ(p.over_edge_milli, 4500, "4.5 : 1 at L3");
	TAP_EQ(p.over_fdsw_milli, 1000, "1 : 1 at an FDSW");
	TAP_OK(p.over_rdsw_milli <= 1000, "an RDSW has more fabric than GPU ports: %u",
		p.over_rdsw_milli);
	topo_free(t);
}

/* One RDSW alone: its hosts talk, though there is no loop. */
static void a_lone_rdsw_is_a_lab(void)
{
	static const char text[] = "{\"name\": \"x\", \"nodes\": ["
				   "{\"name\": \"h\", \"role\": \"host\"},"
				   "{\"name\": \"r\", \"role\": \"rdsw\"}],"
				   "\"links\": [{\"a\": \"h:gpu0p0\", \"b\": \"r:eth0\"}]}";
	struct topo_error err;
	struct topo *t;

	if (!TAP_OK(topo_load_text(text, sizeof(text) - 1, "lone", &t, &err) == 0, "it loads"))
		return;
	TAP_EQ(t->credit_loop_ns, 0, "no loop");
	TAP_OK(t->fabric.ecn_min_ns > 0, "a mark needs a queue");
	TAP_OK(topo_auto_dilation(t, 2) >= 1, "it has a time dilation");
	topo_free(t);
}

int main(void)
{
	sums_and_ratios();
	unlimited_links_limit_nothing();
	dilation_keeps_its_bounds();
	loops_follow_from_the_links();
	a_region_has_the_published_figures();
	a_lone_rdsw_is_a_lab();
	return TAP_DONE();
}
