#include "cli/compare.h"
#include <stdlib.h>
#include "base/bitset.h"
#include "cli/log.h"
#include "cli/options.h"
#include "cli/workload.h"
#include "fabric/packet.h"
#include "sim/run.h"
#include "topo/memory.h"
#include "view/json.h"
#include "view/report.h"

#define CONVERGE_NS NS_PER_S        /* fabric time */
#define LIMIT_NS    (10 * NS_PER_S) /* of the workload */

/* What left every port of the topology by now, on the wire. */
struct meter {
	const struct topo *topo;
	uint64_t *bytes;
};

static void read_port(void *user, const struct node_row *row)
{
	struct meter *m = user;
	const struct topo_node *n = &m->topo->nodes[row->node];
	const struct node_row_port *r = &row->port;

	if (r->port >= n->ports_count)
		return; /* the host port */
	m->bytes[n->first_port + r->port] =
		topo_node_port(m->topo, n, r->port)->ethernet
			? r->bytes_tx + r->frames_tx * FABRIC_ETHERNET_OVERHEAD
			: r->cell_bytes_tx;
}

/* NULL: no memory. The caller frees it. */
static uint64_t *read_meters(const struct sim *s, const struct topo *t)
{
	struct meter m = { t, calloc(t->ports_count + 1, sizeof(uint64_t)) };

	if (m.bytes != NULL)
		sim_view(s, TOPO_NONE, NODE_QUERY_PORT, TOPO_NONE, read_port, &m);
	return m.bytes;
}

/* Tiers of links between switches, lower tier first. A zone's links and an edge PoD's carry other
 * traffic, so they are never taken together. */
static const struct tier {
	enum topo_link_kind kind;
	bool pod;
	const char *name, *key;
} tiers[] = {
	{ TOPO_LINK_FABRIC, false, "fabric", "skew_fabric" },
	{ TOPO_LINK_SPINE, false, "spine", "skew_spine" },
	{ TOPO_LINK_FABRIC, true, "pod fabric", "skew_pod_fabric" },
	{ TOPO_LINK_SPINE, true, "pod spine", "skew_pod_spine" },
	{ TOPO_LINK_EDGE, true, "edge", "skew_edge" },
};

struct sums {
	uint64_t links, most, sum;
};

static bool is_in(const struct topo *t, const struct topo_link *l, const struct tier *tier)
{
	bool pod = t->nodes[t->ports[l->port_a].node].zone == TOPO_NONE;

	return l->kind == tier->kind && pod == tier->pod && !l->loop;
}

static struct sums measure(const struct compare_run *run, const uint64_t *before,
	const uint64_t *after, const struct tier *tier, bool up)
{
	const struct topo *t = run->topo;
	struct sums s = { 0 };

	for (uint32_t i = 0; i < t->links_count; i++) {
		uint32_t port = up ? t->links[i].port_a : t->links[i].port_b;
		uint64_t bytes = after[port] - before[port];

		if (!is_in(t, &t->links[i], tier) || dsf_bitset_has(run->failed, i))
			continue;
		s.links++;
		s.sum += bytes;
		s.most = bytes > s.most ? bytes : s.most;
	}
	return s;
}

static double skew_of(const struct sums *s)
{
	return s->sum == 0 ? 1 : (double)s->most * (double)s->links / (double)s->sum;
}

/* To four digits behind the point. */
static cJSON *rounded(double value)
{
	return cJSON_CreateNumber((double)(int64_t)(value * 1e4 + 0.5) / 1e4);
}

static bool add_sums(cJSON *rows, const struct sums *s, const struct tier *tier, bool up)
{
	cJSON *o = cJSON_CreateObject();

	if (view_json_add_text(o, "tier", tier->name) &&
		view_json_add_text(o, "direction", up ? "up" : "down") &&
		view_json_add_u64(o, "links", s->links) &&
		view_json_add_u64(o, "bytes_max", s->most) &&
		view_json_add_u64(o, "bytes_mean", s->sum / s->links) &&
		view_json_add(o, "skew", rounded(skew_of(s))))
		return view_json_append(rows, o);
	cJSON_Delete(o);
	return false;
}

/* Both directions of a tier, and the worse one of them. Null: the lab has no such tier. */
static bool add_tier(cJSON *row, cJSON *rows, const struct compare_run *run, const uint64_t *before,
	const uint64_t *after, const struct tier *tier)
{
	struct sums up = measure(run, before, after, tier, true);
	struct sums down = measure(run, before, after, tier, false);
	double worse = skew_of(&up) > skew_of(&down) ? skew_of(&up) : skew_of(&down);

	if (up.links == 0)
		return view_json_add_text(row, tier->key, NULL);
	return add_sums(rows, &up, tier, true) && add_sums(rows, &down, tier, false) &&
	       view_json_add(row, tier->key, rounded(worse));
}

static bool add_tiers(
	cJSON *row, const struct compare_run *run, const uint64_t *before, const uint64_t *after)
{
	cJSON *rows = cJSON_CreateArray();
	bool added = view_json_add(row, "links", rows);

	for (size_t i = 0; added && i < sizeof(tiers) / sizeof(tiers[0]); i++)
		added = add_tier(row, rows, run, before, after, &tiers[i]);
	return added;
}

static cJSON *make_row(const struct compare_run *run, const struct node_report *r, uint64_t drops,
	const uint64_t *before, const uint64_t *after)
{
	struct view_fidelity fidelity = { .valid = true }; /* nothing is late here */
	cJSON *report = view_report_json(r, drops, &fidelity), *row = cJSON_CreateObject();
	double share = r->goodput_ideal_bps == 0
			       ? 0
			       : (double)r->goodput_bps / (double)r->goodput_ideal_bps;
	bool broken = dsf_bitset_count(run->failed, DSF_BITSET_WORDS(run->topo->links_count)) > 0;

	if (view_json_add(row, "report", report) &&
		view_json_add_text(row, "fabric", view_json_text(report, "fabric")) &&
		view_json_add_text(row, "transport", view_json_text(report, "transport")) &&
		view_json_add_text(row, "state", broken ? "failed" : "healthy") &&
		view_json_add_text(row, "workload", run->workload) &&
		view_json_add_bool(row, "verified", r->verified) &&
		view_json_add_u64(row, "goodput_bps", r->goodput_bps) &&
		view_json_add(row, "goodput_share", rounded(share)) &&
		view_json_add_u64(row, "fct_p99_ns", dsf_histogram_quantile(&r->fct, 990)) &&
		add_tiers(row, run, before, after) &&
		view_json_add_u64(row, "network_drops", drops) &&
		view_json_add_u64(row, "ecn_marks", r->ecn_marks) &&
		view_json_add_u64(row, "retransmits", r->retransmits))
		return row;
	cJSON_Delete(row);
	return NULL;
}

static int run_workload(
	const struct compare_run *run, struct sim *s, const struct workload_spec *spec, cJSON **row)
{
	struct node_report *r = calloc(1, sizeof(*r));
	uint64_t *before = read_meters(s, run->topo), *after = NULL, drops = 0;
	int err = -1;

	if (r != NULL && before != NULL &&
		node_report_init(r, run->topo, spec, &topo_memory) == 0) {
		err = sim_run_workload(s, run->topo, spec, LIMIT_NS, r, &drops);
		after = read_meters(s, run->topo);
		if (err < 0)
			log_err("compare: %s: %s", run->workload, log_text(err));
		else if (after != NULL)
			*row = make_row(run, r, drops, before, after);
		node_report_close(r);
	}
	if (err >= 0 && *row == NULL)
		log_err("compare: out of memory");
	free(r);
	free(before);
	free(after);
	return *row != NULL ? CLI_OK : CLI_FAILED;
}

int compare_run(const struct compare_run *run, cJSON **row)
{
	struct sim *s = sim_new(&(struct sim_config){
		.topo = run->topo, .seed = run->seed, .sessions_max = SIM_SESSIONS_MAX });
	struct cli_workload w;
	int code = cli_workload_parse(&w, run->topo, run->workload);

	*row = NULL;
	if (code == CLI_OK && s == NULL) {
		log_err("compare: no memory for the lab's devices");
		code = CLI_FAILED;
	} else if (code == CLI_OK && !sim_converge(s, CONVERGE_NS)) {
		log_err("compare: the lab isn't ready after a second of fabric time");
		code = CLI_FAILED;
	} else if (code == CLI_OK) {
		for (uint32_t i = 0; i < run->topo->links_count; i++)
			if (dsf_bitset_has(run->failed, i))
				sim_link_set(s, i, false);
		sim_settle(s, run->topo);
		code = run_workload(run, s, &w.spec, row);
	}
	cli_workload_free(&w);
	sim_free(s);
	return code;
}
