#include "view/report.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/bitset.h"
#include "node/skew.h"
#include "view/json.h"
#include "workload/pattern.h"

#define TEXT_MAX 2048

static const char *transport_name(const struct node_report *r)
{
	if (r->spec->kind == WORKLOAD_UDP)
		return "none";
	switch (r->topo->transport.name) {
	case TOPO_TRANSPORT_METAROCE: return "metaroce";
	case TOPO_TRANSPORT_ROCEV2: return "rocev2";
	}
	return NULL;
}

static const char *fabric_name(const struct topo *t)
{
	switch (t->fabric.mode) {
	case TOPO_FABRIC_DSF: return "dsf";
	case TOPO_FABRIC_ECMP: return "ecmp";
	}
	return NULL;
}

/* Names of the hosts that take part, in order of nodes. */
static cJSON *host_names(const struct node_report *r)
{
	const struct topo *t = r->topo;
	uint64_t *set = calloc(DSF_BITSET_WORDS(t->nodes_count), sizeof(*set));
	cJSON *array = set != NULL ? cJSON_CreateArray() : NULL;

	for (uint32_t i = 0; array != NULL && i < r->spec->flows_count; i++) {
		dsf_bitset_add(set, topo_endpoint(t, r->spec->flows[i].source).host);
		dsf_bitset_add(set, topo_endpoint(t, r->spec->flows[i].target).host);
	}
	for (uint32_t i = 0; array != NULL && i < t->nodes_count; i++) {
		if (dsf_bitset_has(set, i) &&
			!view_json_append(array, cJSON_CreateString(t->nodes[i].name))) {
			cJSON_Delete(array);
			array = NULL;
		}
	}
	free(set);
	return array;
}

static cJSON *quantiles(const struct dsf_histogram *h)
{
	cJSON *o = cJSON_CreateObject();

	if (o != NULL && view_json_add_u64(o, "p50", dsf_histogram_quantile(h, 500)) &&
		view_json_add_u64(o, "p99", dsf_histogram_quantile(h, 990)) &&
		view_json_add_u64(o, "max", h->max))
		return o;
	cJSON_Delete(o);
	return NULL;
}

cJSON *view_report_fidelity(const struct view_fidelity *f)
{
	cJSON *o = cJSON_CreateObject();

	if (o != NULL && view_json_add_bool(o, "valid", f->valid) &&
		view_json_add_u64(o, "late_p99_ns", f->late_p99_ns) &&
		view_json_add_u64(o, "quantum_ns", f->quantum_ns) &&
		view_json_add_u64(o, "emulator_drops", f->emulator_drops) &&
		(f->suggested_time_dilation == 0
				? view_json_add_text(o, "suggested_time_dilation", NULL)
				: view_json_add_u64(o, "suggested_time_dilation",
					  f->suggested_time_dilation)))
		return o;
	cJSON_Delete(o);
	return NULL;
}

static bool add_traffic(cJSON *o, const struct node_report *r)
{
	return view_json_add_u64(o, "bytes", r->bytes) &&
	       view_json_add_u64(o, "bytes_local", r->bytes_local) &&
	       view_json_add_u64(o, "bytes_zone", r->bytes_zone) &&
	       view_json_add_u64(o, "bytes_spine", r->bytes_spine) &&
	       view_json_add_u64(o, "bytes_l3", r->bytes_l3) &&
	       view_json_add_u64(o, "messages", r->messages) &&
	       view_json_add_bool(o, "verified", r->verified) &&
	       view_json_add_u64(o, "bytes_wrong", r->bytes_wrong) &&
	       view_json_add_u64(o, "lost", r->lost) &&
	       view_json_add_u64(o, "duplicated", r->duplicated) &&
	       view_json_add_u64(o, "reordered", r->reordered);
}

static bool add_figures(cJSON *o, const struct node_report *r)
{
	return view_json_add_u64(o, "duration_ns", r->duration_ns) &&
	       view_json_add_u64(o, "goodput_bps", r->goodput_bps) &&
	       view_json_add_u64(o, "goodput_ideal_bps", r->goodput_ideal_bps) &&
	       view_json_add(o, "fct_ns", quantiles(&r->fct)) &&
	       view_json_add(o, "jain", cJSON_CreateNumber((double)r->jain_ppm / 1e6)) &&
	       view_json_add_u64(o, "retransmits", r->retransmits) &&
	       view_json_add_u64(o, "ecn_marks", r->ecn_marks);
}

cJSON *view_report_json(
	const struct node_report *r, uint64_t network_drops, const struct view_fidelity *fidelity)
{
	cJSON *o = cJSON_CreateObject();

	if (o != NULL && view_json_add_text(o, "workload", workload_kind_name(r->spec->kind)) &&
		view_json_add_text(o, "transport", transport_name(r)) &&
		view_json_add_text(o, "fabric", fabric_name(r->topo)) &&
		view_json_add(o, "hosts", host_names(r)) &&
		view_json_add_u64(o, "flows", r->spec->flows_count) &&
		view_json_add_u64(o, "size_bytes", r->spec->size_bytes) &&
		view_json_add_u64(o, "iterations", r->spec->iterations) && add_traffic(o, r) &&
		add_figures(o, r) && view_json_add_u64(o, "network_drops", network_drops) &&
		view_json_add(o, "fidelity", view_report_fidelity(fidelity)))
		return o;
	cJSON_Delete(o);
	return NULL;
}

uint64_t view_report_network_drops(const cJSON *counters)
{
	static const char *const keys[] = { "fabric_link_down_dropped",
		"fabric_unreachable_dropped", "fabric_drops", "voq_drops", "watchdog_drops",
		"egress_drops", "impaired_drops", "corrupt_drops", "nic_drops" };
	uint64_t sum = 0;
	const cJSON *row;

	cJSON_ArrayForEach(row, counters)
	{
		for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
			sum += view_json_u64(row, keys[i]);
	}
	return sum;
}

static double number(const cJSON *o, const char *key)
{
	return (double)view_json_u64(o, key);
}

/* The share of the bytes that crossed a tier, in percent. */
static double share(const cJSON *report, const char *key)
{
	double bytes = number(report, "bytes");

	return bytes > 0 ? 100 * number(report, key) / bytes : 0;
}

/* The busiest link of each tier beside the mean, where the report says so. */
static int print_skew(char *text, size_t cap, const cJSON *report)
{
	int size = 0;

	for (uint32_t i = 0; i < NODE_SKEW_TIERS; i++) {
		const struct node_skew_tier *tier = node_skew_tier(i);
		const cJSON *skew = cJSON_GetObjectItemCaseSensitive(report, tier->key);

		if (cJSON_IsNumber(skew))
			size += snprintf(text + size, cap - (size_t)size, "%s%s %.3f",
				size == 0 ? "skew        " : ", ", tier->name, skew->valuedouble);
	}
	if (size > 0)
		size += snprintf(
			text + size, cap - (size_t)size, " (busiest link over the mean)\n");
	return size;
}

static int print_fidelity(char *text, size_t cap, const cJSON *f)
{
	uint64_t suggested = view_json_u64(f, "suggested_time_dilation");

	if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(f, "valid")))
		return snprintf(text, cap,
			"fidelity    valid: p99 lateness %.3g us, quantum %.3g us\n",
			number(f, "late_p99_ns") / 1e3, number(f, "quantum_ns") / 1e3);
	return snprintf(text, cap,
		"fidelity    INVALID: p99 lateness %.3g us, quantum %.3g us, %" PRIu64
		" emulator drops; try time dilation %" PRIu64 "\n",
		number(f, "late_p99_ns") / 1e3, number(f, "quantum_ns") / 1e3,
		view_json_u64(f, "emulator_drops"), suggested);
}

char *view_report_text(const cJSON *report)
{
	const cJSON *fct = cJSON_GetObjectItemCaseSensitive(report, "fct_ns");
	const cJSON *jain = cJSON_GetObjectItemCaseSensitive(report, "jain");
	bool verified = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(report, "verified"));
	double ideal = number(report, "goodput_ideal_bps"), goodput = number(report, "goodput_bps");
	char *text = malloc(TEXT_MAX);
	int size;

	if (text == NULL)
		return NULL;
	size = snprintf(text, TEXT_MAX,
		"workload    %s, transport %s, fabric %s: %" PRIu64 " flows on %d hosts\n"
		"data        %" PRIu64 " bytes in %" PRIu64 " messages, %s: %" PRIu64
		" bytes wrong, %" PRIu64 " lost, %" PRIu64 " duplicated\n"
		"crossed     %.1f %% one switch, %.1f %% the zone, %.1f %% the spine, %.1f %% L3\n"
		"goodput     %.4g Gbit/s, %.1f %% of ideal, in %.4g ms; Jain's index %.4f\n"
		"%s p50 %.4g us, p99 %.4g us, max %.4g us\n"
		"losses      %" PRIu64 " drops in the network, %" PRIu64 " retransmits, %" PRIu64
		" ECN marks\n",
		view_json_text(report, "workload"), view_json_text(report, "transport"),
		view_json_text(report, "fabric"), view_json_u64(report, "flows"),
		cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(report, "hosts")),
		view_json_u64(report, "bytes"), view_json_u64(report, "messages"),
		verified ? "verified" : "NOT VERIFIED", view_json_u64(report, "bytes_wrong"),
		view_json_u64(report, "lost"), view_json_u64(report, "duplicated"),
		share(report, "bytes_local"), share(report, "bytes_zone"),
		share(report, "bytes_spine"), share(report, "bytes_l3"), goodput / 1e9,
		ideal > 0 ? 100 * goodput / ideal : 0, number(report, "duration_ns") / 1e6,
		jain != NULL ? jain->valuedouble : 0,
		strcmp(view_json_text(report, "workload"), "udp") == 0 ? "latency    "
								       : "completion ",
		number(fct, "p50") / 1e3, number(fct, "p99") / 1e3, number(fct, "max") / 1e3,
		view_json_u64(report, "network_drops"), view_json_u64(report, "retransmits"),
		view_json_u64(report, "ecn_marks"));
	if (size > 0 && size < TEXT_MAX / 2)
		size += print_skew(text + size, TEXT_MAX - (size_t)size, report);
	if (size > 0 && size < TEXT_MAX)
		print_fidelity(text + size, TEXT_MAX - (size_t)size,
			cJSON_GetObjectItemCaseSensitive(report, "fidelity"));
	return text;
}
