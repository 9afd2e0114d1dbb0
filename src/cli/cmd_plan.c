#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/bitset.h"
#include "cli/commands.h"
#include "cli/log.h"
#include "cli/output.h"
#include "cli/plan_fail.h"
#include "cli/topology.h"
#include "cli/units.h"
#include "topo/bgp.h"
#include "topo/plan.h"
#include "topo/pod.h"
#include "view/json.h"
#include "view/show.h"

/* Cores that this process may use; 1 when the kernel doesn't say. */
static uint32_t usable_cores(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) < 0 || CPU_COUNT(&set) < 1)
		return 1;
	return (uint32_t)CPU_COUNT(&set);
}

/* "12.8T", "890G", "222.5G", "unlimited". */
static const char *rate_text(uint64_t rate_bps, char text[24])
{
	static const char units[] = { ' ', 'K', 'M', 'G', 'T', 'P', 'E' };
	double value = (double)rate_bps;
	int unit = 0;

	if (rate_bps == TOPO_UNLIMITED)
		return "unlimited";
	for (; value >= 1000 && unit < 6; unit++)
		value /= 1000;
	snprintf(text, 24, "%.4g%c", value, units[unit]);
	return text;
}

static const char *time_text(uint64_t ns, char text[24])
{
	if (ns < 1000)
		snprintf(text, 24, "%" PRIu64 " ns", ns);
	else if (ns < 1000000)
		snprintf(text, 24, "%.4g us", (double)ns / 1e3);
	else
		snprintf(text, 24, "%.4g ms", (double)ns / 1e6);
	return text;
}

static void add_rate(cJSON *object, const char *key, uint64_t rate_bps)
{
	if (rate_bps == TOPO_UNLIMITED)
		cJSON_AddStringToObject(object, key, "unlimited");
	else
		output_json_uint64(object, key, rate_bps);
}

static void add_rates(cJSON *doc, const struct topo_plan *p)
{
	cJSON *rates = cJSON_AddObjectToObject(doc, "rates_bps");

	for (int k = 0; k < TOPO_KINDS_COUNT; k++)
		add_rate(rates, topo_link_kind_name((enum topo_link_kind)k), p->rates_bps[k]);
	add_rate(doc, "bisection_bps", p->bisection_bps);
}

/* Thousandths as a number; null where it doesn't apply. */
static void add_milli(cJSON *object, const char *key, uint32_t milli)
{
	if (milli == 0)
		cJSON_AddNullToObject(object, key);
	else
		cJSON_AddNumberToObject(object, key, milli / 1000.0);
}

static cJSON *pod_json(const struct topo_pod *pod)
{
	cJSON *o = cJSON_CreateObject();
	char address[DSF_IP6_TEXT_MAX], aggregate[DSF_IP6_TEXT_MAX + 4];

	snprintf(aggregate, sizeof(aggregate), "%s/%u", dsf_ip6_text(&pod->aggregate, address),
		TOPO_BGP_AGGREGATE_LENGTH);
	cJSON_AddNumberToObject(o, "building", pod->building);
	cJSON_AddNumberToObject(o, "plane", pod->plane);
	cJSON_AddNumberToObject(o, "asn", pod->asn);
	cJSON_AddStringToObject(o, "aggregate", aggregate);
	cJSON_AddNumberToObject(o, "gpus", pod->gpus);
	cJSON_AddNumberToObject(o, "edsw", pod->edsws);
	cJSON_AddNumberToObject(o, "ports", pod->ports);
	add_rate(o, "rate_bps", pod->edge_bps);
	add_rate(o, "gpu_rate_bps", pod->gpu_bps);
	add_milli(o, "oversubscription", pod->over_milli);
	return o;
}

static void add_pods(cJSON *doc, const struct topo *t)
{
	cJSON *pods = cJSON_AddArrayToObject(doc, "edge_pods");
	struct topo_pod pod;

	for (bool any = topo_pod_next(t, NULL, &pod); any; any = topo_pod_next(t, &pod, &pod))
		cJSON_AddItemToArray(pods, pod_json(&pod));
}

static cJSON *make_json(const struct topo *t, const struct topo_plan *p, uint32_t cores)
{
	cJSON *doc = cJSON_CreateObject(), *nodes, *links, *over, *sessions;

	cJSON_AddStringToObject(doc, "name", t->name);
	cJSON_AddNumberToObject(doc, "planes", t->planes);
	cJSON_AddNumberToObject(doc, "buildings", p->buildings);
	cJSON_AddNumberToObject(doc, "clusters", p->clusters);
	cJSON_AddNumberToObject(doc, "gpus", t->endpoints_count);
	if (p->gpu_bps > 0)
		add_rate(doc, "gpu_rate_bps", p->gpu_bps);
	else
		cJSON_AddNullToObject(doc, "gpu_rate_bps");
	nodes = cJSON_AddObjectToObject(doc, "nodes");
	for (int r = 0; r < TOPO_ROLES_COUNT; r++)
		cJSON_AddNumberToObject(nodes, topo_role_name((enum topo_role)r), p->roles[r]);
	links = cJSON_AddObjectToObject(doc, "links");
	for (int k = 0; k < TOPO_KINDS_COUNT; k++)
		cJSON_AddNumberToObject(
			links, topo_link_kind_name((enum topo_link_kind)k), p->kinds[k]);
	cJSON_AddNumberToObject(doc, "system_ports", p->system_ports);
	sessions = cJSON_AddObjectToObject(doc, "sessions");
	output_json_uint64(sessions, "fsdb", p->fsdb_sessions);
	output_json_uint64(sessions, "bgp", p->bgp_sessions);
	output_json_uint64(sessions, "ibgp", p->ibgp_sessions);
	add_rates(doc, p);
	add_milli(doc, "fabric_speedup", p->speedup_milli);
	over = cJSON_AddObjectToObject(doc, "oversubscription");
	add_milli(over, "rdsw", p->over_rdsw_milli);
	add_milli(over, "fdsw", p->over_fdsw_milli);
	add_milli(over, "edge", p->over_edge_milli);
	add_pods(doc, t);
	output_json_uint64(doc, "credit_loop_ns", t->credit_loop_ns);
	output_json_uint64(doc, "ecn_min_ns", t->fabric.ecn_min_ns);
	output_json_uint64(doc, "base_rtt_ns", t->base_rtt_ns);
	output_json_uint64(doc, "delay_skew_ns", t->delay_skew_ns);
	cJSON_AddNumberToObject(
		doc, "time_dilation", t->time_dilation != 0 ? t->time_dilation : p->dilation);
	cJSON_AddNumberToObject(doc, "auto_time_dilation", p->dilation);
	cJSON_AddNumberToObject(doc, "cores", cores);
	output_json_uint64(doc, "memory_bytes", p->memory_bytes);
	return doc;
}

static void add_counts(struct output_text *text, const struct topo *t, const struct topo_plan *p)
{
	char rate[24];

	output_text_add(text, "%s: %u planes, %u buildings, %u clusters, %u GPUs%s%s\n\n", t->name,
		t->planes, p->buildings, p->clusters, t->endpoints_count,
		p->gpu_bps > 0 ? " of " : "", p->gpu_bps > 0 ? rate_text(p->gpu_bps, rate) : "");
	output_text_add(text, "nodes        %u:", t->nodes_count);
	for (int r = 0; r < TOPO_ROLES_COUNT; r++) {
		if (p->roles[r] > 0)
			output_text_add(
				text, " %u %s", p->roles[r], topo_role_name((enum topo_role)r));
	}
	output_text_add(text, "\nlinks        %u:", t->links_count);
	for (int k = 0; k < TOPO_KINDS_COUNT; k++) {
		if (p->kinds[k] > 0)
			output_text_add(text, " %u %s (%s)", p->kinds[k],
				topo_link_kind_name((enum topo_link_kind)k),
				rate_text(p->rates_bps[k], rate));
	}
	output_text_add(text, "\nsystem ports %u\n", p->system_ports);
	output_text_add(text, "sessions     %" PRIu64 " FSDB, %" PRIu64 " BGP", p->fsdb_sessions,
		p->bgp_sessions);
	if (p->ibgp_sessions > 0)
		output_text_add(text, " (%" PRIu64 " of them internal)", p->ibgp_sessions);
	output_text_add(text, "\n");
}

static void add_ratio(struct output_text *text, const char *title, uint32_t milli, const char *what)
{
	if (milli != 0)
		output_text_add(text, "%s%.3g : 1 %s\n", title, milli / 1000.0, what);
}

/* "8 x 400G", or what they come to where they differ. */
static void add_pod(struct output_text *text, const struct topo_pod *pod)
{
	char address[DSF_IP6_TEXT_MAX], aggregate[DSF_IP6_TEXT_MAX + 4], rate[24], place[40];

	snprintf(place, sizeof(place), "building %u, plane %u", pod->building, pod->plane);
	snprintf(aggregate, sizeof(aggregate), "%s/%u", dsf_ip6_text(&pod->aggregate, address),
		TOPO_BGP_AGGREGATE_LENGTH);
	output_text_add(text, "edge PoD     %s: %u GPUs, AS %u, %s, %u EDSWs, %u x %s", place,
		pod->gpus, pod->asn, aggregate, pod->edsws, pod->ports,
		pod->port_bps > 0 ? rate_text(pod->port_bps, rate) : "unlike ports");
	if (pod->over_milli > 0)
		output_text_add(text, ", %.3g : 1", pod->over_milli / 1000.0);
	output_text_add(text, "\n");
}

static void add_pod_lines(struct output_text *text, const struct topo *t)
{
	struct topo_pod pod;

	for (bool any = topo_pod_next(t, NULL, &pod); any; any = topo_pod_next(t, &pod, &pod))
		add_pod(text, &pod);
}

/* Which rows of reachability the failures change. */
static void add_changes(struct output_text *text, cJSON *rows)
{
	struct view_show show = {
		.what = VIEW_SHOW_REACHABILITY, .node = TOPO_NONE, .destination = TOPO_NONE
	};
	char *table = view_show_text(&show, rows);

	output_text_add(text,
		"\nfailures     change %d of the rows of show fabric reachability\n\n%s",
		cJSON_GetArraySize(rows), table == NULL ? "" : table);
	text->failed = text->failed || table == NULL;
	free(table);
	cJSON_Delete(rows);
}

/* rows: of --fail, taken; NULL without. */
static int print_text(const struct topo *t, const struct topo_plan *p, uint32_t cores, cJSON *rows)
{
	struct output_text text = { .failed = false };
	char a[24], b[24];

	add_counts(&text, t, p);
	output_text_add(&text, "\nbisection    %s each way\n", rate_text(p->bisection_bps, a));
	if (p->speedup_milli != 0)
		output_text_add(&text,
			"speed-up     %.4g (fabric links over GPU ports of an RDSW)\n",
			p->speedup_milli / 1000.0);
	add_ratio(
		&text, "oversubscr.  ", p->over_rdsw_milli, "GPU ports to fabric links of an RDSW");
	add_ratio(&text, "             ", p->over_fdsw_milli, "down to up of an FDSW");
	add_ratio(&text, "             ", p->over_edge_milli,
		"GPU ports to edge links of a building");
	add_pod_lines(&text, t);
	output_text_add(&text, "credit loop  %s\n", time_text(t->credit_loop_ns, a));
	output_text_add(&text, "ecn_min      %s\n", time_text(t->fabric.ecn_min_ns, a));
	output_text_add(&text, "base RTT     %s\n", time_text(t->base_rtt_ns, a));
	output_text_add(&text, "delay skew   %s\n", time_text(t->delay_skew_ns, a));
	if (t->time_dilation != 0)
		output_text_add(&text, "\ntime dilation %u as set (auto on %u cores: %u)\n",
			t->time_dilation, cores, p->dilation);
	else
		output_text_add(&text,
			"\ntime dilation %u on %u cores (quantum asks for %u, load for %u%s)\n",
			p->dilation, cores, p->dilation_quantum, p->dilation_load,
			p->dilation < p->dilation_load
				? "; kept lower, for round trips of a second at most"
				: "");
	output_text_add(&text, "a 400G port then sends %s of wall time\n",
		rate_text(400000000000u / (t->time_dilation ? t->time_dilation : p->dilation), b));
	output_text_add(&text, "memory       %" PRIu64 " MB live, %u processes\n",
		(p->memory_bytes + (1u << 20) - 1) >> 20, t->nodes_count);
	if (rows != NULL)
		add_changes(&text, rows);
	return output_text_write(&text);
}

/* The links of --fail and the seed; *failed is the caller's, NULL without --fail. */
static int read_failures(const struct topo *t, int argc, char **argv,
	const struct cli_options *options, uint64_t **failed, uint64_t *seed)
{
	const char *text = cli_option(options, "seed");
	int code;

	*failed = NULL;
	*seed = t->seed;
	if (text != NULL && !units_count(text, seed))
		return cli_wrong(options, "--seed: %s: want a number", text);
	*failed = calloc(DSF_BITSET_WORDS(t->links_count) + 1, sizeof(**failed));
	if (*failed == NULL) {
		log_err("plan: out of memory");
		return CLI_FAILED;
	}
	code = cli_failed_links(options, argc - 1, argv + 1, t, *failed);
	if (code == CLI_OK && cli_option_at(options, "fail", 0) == NULL) {
		free(*failed);
		*failed = NULL;
	} else if (code == CLI_OK && t->fabric.mode != TOPO_FABRIC_DSF) {
		log_err("--fail: %s is no cell fabric", argv[0]);
		code = CLI_USAGE;
	}
	return code;
}

static int rows_code(enum plan_fail_end end)
{
	if (end == PLAN_FAIL_NOMEM)
		log_err("plan: out of memory");
	return end == PLAN_FAIL_DONE ? CLI_OK : CLI_FAILED;
}

static bool collect(void *user, cJSON *rows)
{
	cJSON *row;

	while ((row = cJSON_DetachItemFromArray(rows, 0)) != NULL)
		(void)view_json_append(user, row); /* moves it: needs no memory */
	cJSON_Delete(rows);
	return true;
}

static int plan_text(const struct topo *t, const struct topo_plan *plan, uint32_t cores,
	uint64_t *failed, uint64_t seed)
{
	cJSON *rows = failed != NULL ? cJSON_CreateArray() : NULL;
	int code = CLI_OK;

	if (failed != NULL)
		code = rows_code(rows == NULL
					 ? PLAN_FAIL_NOMEM
					 : plan_fail_rows(t, failed, seed, false, collect, rows));
	if (code == CLI_OK)
		return print_text(t, plan, cores, rows);
	cJSON_Delete(rows);
	return code;
}

static bool write_text(const char *text)
{
	return output_write(text, strlen(text)) == CLI_OK;
}

/* A node's rows, behind those of the nodes before. */
static bool write_rows(void *user, cJSON *rows)
{
	char *text = cJSON_PrintUnformatted(rows);
	const char **gap = user;
	size_t size;
	bool written = false;

	cJSON_Delete(rows);
	if (text == NULL) {
		log_err("plan: out of memory");
		return false;
	}
	size = strlen(text);
	written = size <= 2 || (write_text(*gap) && output_write(text + 1, size - 2) == CLI_OK);
	if (size > 2)
		*gap = ",\n";
	free(text);
	return written;
}

/* With --fail as many rows as nodes times destinations: written as they come, into one document
 * with the rest. A reader that goes away, or memory that ends, leaves half of it, and exit code 1.
 */
static int plan_json(const struct topo *t, const struct topo_plan *plan, uint32_t cores,
	uint64_t *failed, uint64_t seed)
{
	const char *gap = ",\n\t\"reachability\":\t[\n", *first = gap;
	cJSON *doc = make_json(t, plan, cores);
	char *text, *end;
	int code;

	if (failed == NULL)
		return output_json(doc);
	text = doc == NULL ? NULL : cJSON_Print(doc);
	cJSON_Delete(doc);
	end = text == NULL ? NULL : strrchr(text, '\n'); /* the closing brace comes last */
	if (end == NULL) {
		free(text);
		return rows_code(PLAN_FAIL_NOMEM);
	}
	code = output_write(text, (size_t)(end - text));
	free(text);
	if (code == CLI_OK)
		code = rows_code(plan_fail_rows(t, failed, seed, true, write_rows, &gap));
	if (code == CLI_OK && gap == first && !write_text(first))
		code = CLI_FAILED;
	return code == CLI_OK && !write_text("\n\t]\n}\n") ? CLI_FAILED : code;
}

static int run(int argc, char **argv, const struct cli_options *options)
{
	uint32_t cores = usable_cores();
	uint64_t *failed = NULL, seed;
	struct topo_plan plan;
	struct topo *t;
	int code = cli_load_topology(argv[0], &t);

	if (code != CLI_OK)
		return code;
	code = read_failures(t, argc, argv, options, &failed, &seed);
	if (code == CLI_OK) {
		topo_plan(t, cores, &plan);
		code = options->json ? plan_json(t, &plan, cores, failed, seed)
				     : plan_text(t, &plan, cores, failed, seed);
	}
	free(failed);
	topo_free(t);
	return code;
}

static const struct cli_option options[] = {
	{ "fail", "LINK", true, "what is reached without links NODE:IF" },
	{ "seed", "N", false, "seed of the draws of Input Balanced Mode; default: the file's" },
	{ NULL, NULL, false, NULL },
};

const struct cli_command cmd_plan = {
	.name = "plan",
	.usage = "FILE [--fail LINK ...]",
	.summary = "tells what a topology has, can do and costs",
	.help = "Counts, bisection bandwidth, oversubscription, fabric speed-up, edge PoDs with "
		"their AS\n"
		"numbers and aggregates, the sessions of a lab that is up, the credit loop, "
		"the\n"
		"base round trip, what \"time_dilation\": \"auto\" means on this machine, and the "
		"memory\n"
		"that the live lab takes. All times are fabric time. Needs no rights.\n"
		"With --fail also what every switch comes to when these links have failed, "
		"computed\n"
		"without a packet: the rows of `show fabric reachability` (as JSON all of them, "
		"else\n"
		"those that the failures change). A switch below its minimum links is out, too.",
	.options = options,
	.words_min = 1,
	.words_max = CLI_WORDS_ANY,
	.run = run,
};
