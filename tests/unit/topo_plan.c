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
#include "topo/pod.h"

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
	TAP_EQ(p.gpu_bps, 800 * G, "a GPU's rate");
	TAP_EQ(p.fsdb_sessions, 10 * 640 * 639 / 2, "640 interface nodes in each fabric");
	TAP_EQ(p.ibgp_sessions, 10 * 65536, "65,536 iBGP sessions in each fabric");
	TAP_EQ(p.bgp_sessions - p.ibgp_sessions, 5 * 2 * 2048, "an eBGP session a link");
	TAP_EQ(p.over_fdsw_milli, 1000, "1 : 1 at an FDSW");
	TAP_OK(p.over_rdsw_milli <= 1000, "an RDSW has more fabric than GPU ports: %u",
		p.over_rdsw_milli);
	topo_free(t);
}

static void edge_pods_are_told(const char *file, uint32_t count, const struct topo_pod *want)
{
	struct topo *t = source_topo(file);
	struct topo_pod pod;
	uint32_t i = 0;

	for (bool any = topo_pod_next(t, NULL, &pod); any && i < count; i++) {
		char name[64];

		snprintf(name, sizeof(name), "building %u, plane %u", want[i].building,
			want[i].plane);
		TAP_OK(pod.building == want[i].building && pod.plane == want[i].plane, "%s", name);
		TAP_EQ(pod.gpus, want[i].gpus, "%s: GPUs", name);
		TAP_EQ(pod.edsws, want[i].edsws, "%s: EDSWs", name);
		TAP_EQ(pod.rdsws, want[i].rdsws, "%s: RDSWs", name);
		TAP_EQ(pod.asn, want[i].asn, "%s: AS", name);
		TAP_OK(dsf_ip6_equal(&pod.aggregate, &want[i].aggregate), "%s: aggregate", name);
		TAP_EQ(pod.ports, want[i].ports, "%s: edge ports", name);
		TAP_EQ(pod.port_bps, want[i].port_bps, "%s: their rate", name);
		TAP_EQ(pod.over_milli, want[i].over_milli, "%s: oversubscription", name);
		any = topo_pod_next(t, &pod, &pod);
	}
	TAP_EQ(i, count, "%s: edge PoDs", file);
	topo_free(t);
}

static void edge_pods(void)
{
	static const struct topo_pod shipped[] = {
		{ 0, 0, 16, 2, 8, 4200000000u, { { 0xfd, 0x5f, 0, 0 } }, 4, 400 * G, 0, 0, 4000 },
		{ 0, 1, 16, 2, 8, 4200000000u, { { 0xfd, 0x5f, 1, 0 } }, 4, 400 * G, 0, 0, 4000 },
		{ 1, 0, 16, 2, 8, 4200000001u, { { 0xfd, 0x5f, 0, 1 } }, 4, 400 * G, 0, 0, 4000 },
		{ 1, 1, 16, 2, 8, 4200000001u, { { 0xfd, 0x5f, 1, 1 } }, 4, 400 * G, 0, 0, 4000 },
	};
	static const struct topo_pod joined[] = {
		{ 0, 0, 6, 2, 4, 4200000000u, { { 0xfd, 0x5f, 0, 0 } }, 8, 800 * G, 0, 0, 375 },
		{ 0, 1, 6, 2, 4, 4200000000u, { { 0xfd, 0x5f, 1, 0 } }, 8, 800 * G, 0, 0, 375 },
		{ 1, 0, 4, 3, 2, 4200000001u, { { 0xfd, 0x5f, 0, 1 } }, 12, 800 * G, 0, 0, 167 },
		{ 1, 1, 4, 3, 2, 4200000001u, { { 0xfd, 0x5f, 1, 1 } }, 12, 800 * G, 0, 0, 167 },
	};
	struct topo *t = source_topo("topologies/region.json");
	struct topo_pod pod;
	struct topo_plan p;

	edge_pods_are_told("topologies/region.json", 4, shipped);
	edge_pods_are_told("tests/topologies/region.json", 4, joined);
	topo_plan(t, 2, &p);
	TAP_OK(t->nodes_count >= 80 && t->nodes_count <= 120, "region.json: %u nodes",
		t->nodes_count);
	TAP_OK(p.over_rdsw_milli <= 1000 && p.over_fdsw_milli <= 1000,
		"region.json: nothing is oversubscribed below L3");
	TAP_EQ(p.over_edge_milli, 4000, "region.json: 4 : 1 there");
	TAP_EQ(p.fsdb_sessions, 4 * 10 * 9 / 2, "region.json: FSDB");
	TAP_EQ(p.ibgp_sessions, 4 * 8 * 2, "region.json: iBGP");
	TAP_EQ(p.bgp_sessions - p.ibgp_sessions, 4 * 4, "region.json: eBGP");
	topo_free(t);
	t = source_topo("tests/topologies/hyperport.json");
	topo_plan(t, 2, &p);
	TAP_EQ(p.bgp_sessions - p.ibgp_sessions, 3 + 2, "a hyperport has one session");
	TAP_EQ(p.system_ports, 4 + 3 + 2, "and one system port");
	topo_free(t);
	t = source_topo("topologies/mini.json");
	TAP_OK(!topo_pod_next(t, NULL, &pod), "a zone has no edge PoD");
	topo_plan(t, 2, &p);
	TAP_OK(p.bgp_sessions == 0, "nor BGP");
	topo_free(t);
	t = source_topo("tests/topologies/ecmp.json");
	topo_plan(t, 2, &p);
	TAP_OK(p.fsdb_sessions == 0 && p.ibgp_sessions == 0, "a routed fabric has no FSDB or iBGP");
	TAP_EQ(p.bgp_sessions,
		p.kinds[TOPO_LINK_FABRIC] + p.kinds[TOPO_LINK_SPINE] + p.kinds[TOPO_LINK_EDGE],
		"but eBGP on all links of switches");
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
	edge_pods();
	a_lone_rdsw_is_a_lab();
	return TAP_DONE();
}
