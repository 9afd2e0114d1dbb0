#include "cli/compare.h"
#include <stdlib.h>
#include "base/bitset.h"
#include "cli/log.h"
#include "cli/options.h"
#include "cli/workload.h"
#include "sim/run.h"
#include "topo/memory.h"
#include "view/json.h"
#include "view/report.h"
#include "view/skew.h"

#define CONVERGE_NS NS_PER_S        /* fabric time */
#define LIMIT_NS    (10 * NS_PER_S) /* of the workload */

/* To four digits behind the point. */
static cJSON *rounded(double value)
{
	return cJSON_CreateNumber((double)(int64_t)(value * 1e4 + 0.5) / 1e4);
}

static cJSON *make_row(const struct compare_run *run, const struct node_report *r, uint64_t drops,
	const struct node_skew_meter *before, const struct node_skew_meter *after)
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
		view_skew_add(row, before, after) &&
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
	struct node_skew_meter before = { 0 }, after = { 0 };
	uint64_t drops = 0;
	int err = -1;

	if (r != NULL && node_skew_open(&before, run->topo, &topo_memory) == 0 &&
		node_skew_open(&after, run->topo, &topo_memory) == 0 &&
		node_report_init(r, run->topo, spec, &topo_memory) == 0) {
		sim_view(s, TOPO_NONE, NODE_QUERY_PORT, TOPO_NONE, node_skew_read, &before);
		err = sim_run_workload(s, run->topo, spec, LIMIT_NS, r, &drops);
		sim_view(s, TOPO_NONE, NODE_QUERY_PORT, TOPO_NONE, node_skew_read, &after);
		if (err < 0)
			log_err("compare: %s: %s", run->workload, log_text(err));
		else
			*row = make_row(run, r, drops, &before, &after);
		node_report_close(r);
	}
	if (err >= 0 && *row == NULL)
		log_err("compare: out of memory");
	free(r);
	node_skew_close(&before);
	node_skew_close(&after);
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
