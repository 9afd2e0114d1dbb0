#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/bitset.h"
#include "cli/commands.h"
#include "cli/compare.h"
#include "cli/log.h"
#include "cli/output.h"
#include "cli/topology.h"
#include "cli/units.h"
#include "topo/file.h"
#include "view/json.h"
#include "view/table.h"

#define CHOICES_MAX 4

static const struct view_table_column columns[] = { { "FABRIC", "fabric", 0 },
	{ "TRANSPORT", "transport", 0 }, { "LINKS", "state", 0 }, { "WORKLOAD", "workload", 0 },
	{ "VERIFIED", "verified", 0 }, { "GOODPUT", "goodput_bps", VIEW_TABLE_RATE },
	{ "OF IDEAL", "goodput_share", 0 }, { "P99", "fct_p99_ns", VIEW_TABLE_TIME },
	{ "SKEW FABRIC", "skew_fabric", 0 }, { "SPINE", "skew_spine", 0 },
	{ "POD FABRIC", "skew_pod_fabric", 0 }, { "POD SPINE", "skew_pod_spine", 0 },
	{ "EDGE", "skew_edge", 0 }, { "DROPS", "network_drops", 0 },
	{ "ECN MARKS", "ecn_marks", 0 }, { "RETRANSMITS", "retransmits", 0 } };

#define COLUMNS_COUNT (sizeof(columns) / sizeof(columns[0]))

static const char *const fabrics[] = { "dsf", "ecmp", NULL };
static const char *const transports[] = { "metaroce", "rocev2", NULL };

struct comparison {
	const struct cli_options *options;
	const char *file;
	cJSON *rows;
	bool unverified;
};

/* The words of a list joined by commas, as places in `known`. Their number, or -1: told. */
static int read_list(const struct cli_options *options, const char *option, const char *fallback,
	const char *const *known, int *places)
{
	const char *given = cli_option(options, option);
	char *copy = strdup(given != NULL ? given : fallback), *rest = copy, *word;
	int count = 0;

	while (rest != NULL && count >= 0 && (word = strsep(&rest, ",")) != NULL) {
		int place = 0;

		while (known[place] != NULL && strcmp(known[place], word) != 0)
			place++;
		if (known[place] == NULL || count == CHOICES_MAX) {
			cli_wrong(options, "--%s: %s: want %s or %s, joined by commas", option,
				word, known[0], known[1]);
			count = -1;
		} else {
			places[count++] = place;
		}
	}
	free(copy);
	return copy == NULL ? -1 : count;
}

/* One workload on one lab, whose links are all up, or without those of --fail. */
static int compare(struct comparison *c, struct compare_run *run, bool broken)
{
	uint64_t *failed = calloc(DSF_BITSET_WORDS(run->topo->links_count) + 1, sizeof(*failed));
	cJSON *row = NULL;
	int code = failed == NULL ? CLI_FAILED : CLI_OK;

	if (code == CLI_OK && broken)
		code = cli_failed_links(c->options, 0, NULL, run->topo, failed);
	run->failed = failed;
	if (code == CLI_OK)
		code = compare_run(run, &row);
	free(failed);
	if (code != CLI_OK)
		return code;
	c->unverified |= !cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(row, "verified"));
	return view_json_append(c->rows, row) ? CLI_OK : CLI_FAILED;
}

/* All workloads on the file as one fabric with one transport. */
static int compare_all(struct comparison *c, const struct topo_choice *choice)
{
	const char *workload, *seed = cli_option(c->options, "seed");
	bool broken = cli_option_at(c->options, "fail", 0) != NULL;
	struct compare_run run = { 0 };
	struct topo *t;
	int code = cli_load_topology_as(c->file, choice, &t);

	if (code != CLI_OK)
		return code;
	code = cli_check_runs(c->file, t, false);
	run.topo = t;
	run.seed = t->seed;
	if (code == CLI_OK && seed != NULL && !units_count(seed, &run.seed))
		code = cli_wrong(c->options, "--seed: %s: want a number", seed);
	for (int i = 0; code == CLI_OK; i++) {
		workload = cli_option_at(c->options, "run", i);
		if (workload == NULL && i > 0)
			break;
		run.workload = workload != NULL ? workload : "permutation";
		code = compare(c, &run, false);
		if (code == CLI_OK && broken)
			code = compare(c, &run, true);
	}
	topo_free(t);
	return code;
}

/* Some row has something there: labs without edge PoDs need no columns of them. */
static bool is_used(const cJSON *rows, const char *key)
{
	const cJSON *row;

	cJSON_ArrayForEach(row, rows)
	{
		if (!cJSON_IsNull(cJSON_GetObjectItemCaseSensitive(row, key)))
			return true;
	}
	return false;
}

static int print(struct comparison *c)
{
	struct view_table_column used[COLUMNS_COUNT];
	size_t count = 0;
	char *text;
	int code;

	if (c->options->json) {
		code = output_json(c->rows);
		c->rows = NULL;
		return code;
	}
	for (size_t i = 0; i < COLUMNS_COUNT; i++)
		if (is_used(c->rows, columns[i].key))
			used[count++] = columns[i];
	text = view_table_text(c->rows, used, count);
	if (text == NULL) {
		log_err("compare: out of memory");
		return CLI_FAILED;
	}
	code = output_write(text, strlen(text));
	free(text);
	return code;
}

static int run(int argc, char **argv, const struct cli_options *options)
{
	struct comparison c = { .options = options, .file = argv[0], .rows = cJSON_CreateArray() };
	int fabric[CHOICES_MAX], transport[CHOICES_MAX];
	int fabric_count = read_list(options, "fabric", "dsf,ecmp", fabrics, fabric);
	int transport_count = read_list(options, "transport", "metaroce", transports, transport);
	int code = fabric_count < 0 || transport_count < 0 ? CLI_USAGE : CLI_OK;

	(void)argc;
	for (int i = 0; i < fabric_count * transport_count && code == CLI_OK; i++) {
		struct topo_choice choice = { (enum topo_fabric_mode)fabric[i / transport_count],
			(enum topo_transport)transport[i % transport_count] };

		code = compare_all(&c, &choice);
	}
	if (code == CLI_OK)
		code = print(&c);
	if (code == CLI_OK && c.unverified)
		code = CLI_FAILED;
	cJSON_Delete(c.rows);
	return code;
}

static const struct cli_option options[] = {
	{ "fabric", "LIST", false, "dsf, ecmp or both, joined by commas; default: dsf,ecmp" },
	{ "transport", "LIST", false, "metaroce (default), rocev2 or both" },
	{ "run", "WORKLOAD", true, "what runs: 'permutation --size 1M' (default: permutation)" },
	{ "fail", "LINK", true, "each once more without links NODE:IF" },
	{ "seed", "N", false, "seed of the simulation; default: the file's" },
	{ NULL, NULL, false, NULL },
};

const struct cli_command cmd_compare = {
	.name = "compare",
	.usage = "FILE [--fabric dsf,ecmp] [--run WORKLOAD ...]",
	.summary = "runs the same workloads on the same switches as other fabrics",
	.help = "Takes FILE as a scheduled fabric and as a routed Clos (fabric.mode dsf and ecmp): "
		"the\n"
		"same switches, links and hosts, simulated. A row tells of one workload on one of "
		"them:\n"
		"goodput, the 99th percentile of completion times, and the skew of each tier of "
		"links\n"
		"between switches, which is the most that a link carried one way, divided by the "
		"mean\n"
		"over those that are up. Exits 1 when a workload was not verified.",
	.options = options,
	.words_min = 1,
	.words_max = 1,
	.run = run,
};
