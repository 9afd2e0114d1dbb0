/*
 * report.h - what a workload came to, as the object of `run`
 */
#ifndef DSF_VIEW_REPORT_H
#define DSF_VIEW_REPORT_H
#include <cjson/cJSON.h>
#include "node/report.h"

/* How far a run can be trusted; the simulator's is always valid. */
struct view_fidelity {
	bool valid;
	uint64_t late_p99_ns;
	uint64_t quantum_ns;
	uint64_t emulator_drops;
	uint32_t suggested_time_dilation; /* 0: none (the run is valid) */
};

/* The object; NULL when memory is short. report must be finished (node_report_finish).
 * network_drops: what the modelled network dropped during the run: view_report_network_drops. */
cJSON *view_report_json(const struct node_report *report, uint64_t network_drops,
	const struct view_fidelity *fidelity);

cJSON *view_report_fidelity(const struct view_fidelity *fidelity);

/* Sum over counters rows of everything that the modelled network dropped: packets, and cells where
 * cells were dropped. The driver subtracts the sum before the run from that after it. */
uint64_t view_report_network_drops(const cJSON *counters);

/* The object as a few lines for people; malloc'd, NULL when memory is short. */
char *view_report_text(const cJSON *report);

#endif
