#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/commands.h"
#include "cli/log.h"
#include "cli/output.h"
#include "cli/sim_drill.h"
#include "cli/topology.h"
#include "cli/units.h"
#include "cli/workload.h"
#include "sim/run.h"
#include "base/bitset.h"
#include "topo/memory.h"
#include "view/explain.h"
#include "view/json.h"
#include "view/report.h"
#include "view/rows.h"
#include "view/show.h"
#include "view/skew.h"

#define CONVERGE_NS    NS_PER_S        /* fabric time; a fabric takes microseconds */
#define LIMIT_NS       (10 * NS_PER_S) /* of one workload */
#define SHOW_WORDS_MAX 16

struct session {
	const struct cli_options *options;
	const struct topo *topo;
	struct sim *sim;
	uint64_t limit_ns;
	char **links; /* words behind the file: more links that fail */
	int links_count;
	cJSON *results;          /* [{"command","result"}] */
	struct output_text text; /* the same for people */
	dsf_instant failed_at;   /* --fail, --drain; else DSF_NEVER */
	dsf_instant changed_at;  /* reachability, anywhere, for the last time */
	int code;
};

static void note_change(void *user, const struct dsf_event *event)
{
	struct session *s = user;

	if (event->kind == DSF_EVENT_REACH_CHANGED || event->kind == DSF_EVENT_BALANCE_CUT ||
		event->kind == DSF_EVENT_BALANCE_BACK)
		s->changed_at = event->at;
}

/* Adds a result; takes it and its text. */
static bool add_result(struct session *s, const char *command, cJSON *result, char *text)
{
	cJSON *entry = cJSON_CreateObject();
	bool added = entry != NULL && text != NULL &&
		     view_json_add_text(entry, "command", command) &&
		     view_json_add(entry, "result", result);

	if (added)
		added = view_json_append(s->results, entry);
	else
		cJSON_Delete(entry);
	if (added)
		output_text_add(
			&s->text, "%s# %s\n%s", s->text.size > 0 ? "\n" : "", command, text);
	else
		log_err("out of memory");
	free(text);
	return added;
}

static cJSON *hash_value(uint64_t hash)
{
	char text[24];

	snprintf(text, sizeof(text), "\"%016llx\"", (unsigned long long)hash);
	return cJSON_CreateRaw(text);
}

static bool run_workload(struct session *s, const char *command)
{
	struct cli_workload w;
	struct node_report *r = calloc(1, sizeof(*r));
	struct view_fidelity fidelity = { .valid = true }; /* nothing is late here */
	struct node_skew_meter before = { 0 }, after = { 0 };
	uint64_t drops = 0;
	cJSON *result = NULL;
	char *text = NULL;
	int err = r == NULL ? CLI_FAILED : cli_workload_parse(&w, s->topo, command);

	if (err != CLI_OK) {
		s->code = err;
		free(r);
		return false;
	}
	err = node_report_init(r, s->topo, &w.spec, &topo_memory);
	if (err == 0)
		err = node_skew_open(&before, s->topo, &topo_memory);
	if (err == 0)
		err = node_skew_open(&after, s->topo, &topo_memory);
	if (err == 0) {
		sim_view(s->sim, TOPO_NONE, NODE_QUERY_PORT, TOPO_NONE, node_skew_read, &before);
		err = sim_run_workload(s->sim, s->topo, &w.spec, s->limit_ns, r, &drops);
		sim_view(s->sim, TOPO_NONE, NODE_QUERY_PORT, TOPO_NONE, node_skew_read, &after);
	}
	if (err < 0)
		log_err("sim: %s: %s", command, log_text(err));
	else
		result = view_report_json(r, drops, &fidelity);
	if (result != NULL && view_skew_add(result, &before, &after) &&
		view_json_add(result, "trace_hash", hash_value(sim_hash(s->sim))))
		text = view_report_text(result);
	if (err == 0 && !r->verified)
		s->code = CLI_FAILED;
	if (err == 0 && !node_report_done(r))
		log_err("sim: %s: not done after %llu us of fabric time", command,
			(unsigned long long)(s->limit_ns / NS_PER_US));
	node_skew_close(&before);
	node_skew_close(&after);
	node_report_close(r);
	free(r);
	cli_workload_free(&w);
	if (err == 0 && add_result(s, command, result, text))
		return true;
	s->code = CLI_FAILED;
	return false;
}

static cJSON *rows(void *user, enum node_query query, uint32_t node)
{
	struct session *s = user;
	struct view_rows v;

	view_rows_begin(&v, s->topo, NULL);
	sim_view(s->sim, node, query, TOPO_NONE, view_rows_append, &v);
	return view_rows_finish(&v);
}

/* --show 'explain NODE:IF DST' */
static bool explain(struct session *s, const char *command, const char *const *words, size_t count)
{
	struct view_show_source source = { rows, s };
	char why[VIEW_SHOW_WHY_MAX] = "want explain NODE:IF DST";
	uint32_t port, destination;
	cJSON *result;

	if (count != 3 ||
		view_explain_parse(s->topo, words[1], words[2], &port, &destination, why) < 0) {
		log_err("--show: %s", why);
		s->code = CLI_USAGE;
		return false;
	}
	result = view_explain(s->topo, port, destination, &source);
	if (result != NULL && add_result(s, command, result, view_explain_text(result)))
		return true;
	s->code = CLI_FAILED;
	return false;
}

static bool show(struct session *s, const char *command)
{
	struct view_show_source source = { rows, s };
	const char *words[SHOW_WORDS_MAX];
	char why[VIEW_SHOW_WHY_MAX], *copy = strdup(command), *rest = copy, *word;
	struct view_show what;
	size_t count = 0;
	cJSON *result = NULL;

	while (rest != NULL && (word = strsep(&rest, " ")) != NULL)
		if (*word != '\0' && count < SHOW_WORDS_MAX)
			words[count++] = word;
	/* As on the live command line, "show" itself may be said or not. */
	if (count > 0 && strcmp(words[0], "show") == 0)
		memmove(words, words + 1, --count * sizeof(words[0]));
	if (count > 0 && strcmp(words[0], "explain") == 0) {
		bool explained = explain(s, command, words, count);

		free(copy);
		return explained;
	}
	if (copy != NULL && view_show_parse(s->topo, words, count, &what, why) < 0) {
		log_err("--show: %s", why);
		s->code = CLI_USAGE;
		free(copy);
		return false;
	}
	if (copy != NULL)
		result = view_show_run(&what, s->topo, &source);
	free(copy);
	if (result != NULL && add_result(s, command, result, view_show_text(&what, result)))
		return true;
	s->code = CLI_FAILED;
	return false;
}

/* Takes the links of --fail down, all at one instant. */
static bool fail_links(struct session *s)
{
	uint64_t *failed = calloc(DSF_BITSET_WORDS(s->topo->links_count) + 1, sizeof(*failed));

	s->code = failed == NULL
			  ? CLI_FAILED
			  : cli_failed_links(s->options, s->links_count, s->links, s->topo, failed);
	for (uint32_t i = 0; s->code == CLI_OK && i < s->topo->links_count; i++)
		if (dsf_bitset_has(failed, i))
			sim_link_set(s->sim, i, false);
	free(failed);
	return s->code == CLI_OK;
}

static bool drain(struct session *s, const char *name)
{
	uint32_t port = topo_find_port(s->topo, name), node = topo_find_node(s->topo, name);
	struct node_command command = { .kind = NODE_COMMAND_DRAIN_NODE, .drained = true };
	int err;

	if (port == TOPO_NONE && node == TOPO_NONE) {
		log_err("--drain: %s: no such link or node", name);
		s->code = CLI_USAGE;
		return false;
	}
	if (port != TOPO_NONE) {
		command.kind = NODE_COMMAND_DRAIN_PORT;
		command.port = s->topo->ports[port].number;
		node = s->topo->ports[port].node;
	}
	err = sim_command(s->sim, node, &command);
	if (err == 0)
		return true;
	log_err("--drain: %s: only switches of a cell fabric and their fabric links are drained",
		name);
	s->code = CLI_USAGE;
	return false;
}

static void name_missing(void *user, const struct node_row *row)
{
	const struct session *s = user;
	const struct node_row_missing *m = &row->missing;
	const struct topo_node *n = &s->topo->nodes[row->node];

	log_err("sim: %s: %s%s%s%s%s is missing", n->name, m->what,
		m->port == TOPO_NONE ? "" : " at ",
		m->port == TOPO_NONE ? "" : topo_node_port(s->topo, n, m->port)->name,
		m->other == TOPO_NONE ? "" : " to ",
		m->other == TOPO_NONE ? "" : s->topo->nodes[m->other].name);
}

struct tally {
	uint64_t established, expected;
};

static void count_session(void *user, const struct node_row *row)
{
	struct tally *tally = user;

	tally->expected++;
	tally->established += row->query == NODE_QUERY_BGP_PEER
				      ? row->bgp_peer.view->state == BGP_ESTABLISHED
				      : row->fsdb_session.state == FSDB_ESTABLISHED;
}

static bool add_sessions(
	const struct session *s, cJSON *sessions, const char *key, enum node_query query)
{
	cJSON *counts = cJSON_CreateObject();
	struct tally tally = { 0 };

	sim_view(s->sim, TOPO_NONE, query, TOPO_NONE, count_session, &tally);
	return view_json_add(sessions, key, counts) &&
	       view_json_add_u64(counts, "established", tally.established) &&
	       view_json_add_u64(counts, "expected", tally.expected);
}

/* As `status` has them; none of FSDB where the simulator takes neighbours from the lab file. */
static cJSON *sessions_object(const struct session *s)
{
	cJSON *o = cJSON_CreateObject();

	if (add_sessions(s, o, "fsdb", NODE_QUERY_FSDB_SESSION) &&
		add_sessions(s, o, "bgp", NODE_QUERY_BGP_PEER))
		return o;
	cJSON_Delete(o);
	return NULL;
}

/* What happened, where nothing else was asked for. */
static bool summarize(struct session *s)
{
	struct sim_stats stats = sim_stats(s->sim);
	cJSON *o = cJSON_CreateObject();
	char *text = NULL, converged[64] = "";
	bool broken = !dsf_time_is_never(s->failed_at);
	uint64_t converged_ns = dsf_time_since(s->failed_at, s->changed_at);
	bool made;

	made = o != NULL && view_json_add_bool(o, "ready", sim_ready(s->sim)) &&
	       view_json_add_u64(o, "now_ns", sim_now(s->sim).ns) &&
	       (broken ? view_json_add_u64(o, "converged_ns", converged_ns)
		       : view_json_add_text(o, "converged_ns", NULL)) &&
	       view_json_add_u64(o, "events", stats.events) &&
	       view_json_add_u64(o, "frames", stats.frames) &&
	       view_json_add(o, "sessions", sessions_object(s)) &&
	       view_json_add(o, "trace_hash", hash_value(sim_hash(s->sim)));

	if (broken)
		snprintf(converged, sizeof(converged), ", converged in %.3f us",
			(double)converged_ns / 1e3);
	if (made &&
		asprintf(&text, "ready %s at %.3f us%s, %llu events, %llu frames, trace %016llx\n",
			sim_ready(s->sim) ? "yes" : "no", (double)sim_now(s->sim).ns / 1e3,
			converged, (unsigned long long)stats.events,
			(unsigned long long)stats.frames, (unsigned long long)sim_hash(s->sim)) < 0)
		text = NULL;
	if (made)
		return add_result(s, "sim", o, text);
	cJSON_Delete(o);
	s->code = CLI_FAILED;
	return false;
}

static bool play_drill(struct session *s, const char *words)
{
	cJSON *result;
	char *text;
	int code = cli_sim_drill(s->sim, s->topo, words, &result, &text);

	if (code != CLI_OK)
		s->code = code;
	if (text != NULL)
		return add_result(s, words, result, text);
	cJSON_Delete(result);
	return false;
}

static bool is_broken(const struct cli_options *options)
{
	return cli_option_at(options, "fail", 0) != NULL ||
	       cli_option_at(options, "drain", 0) != NULL;
}

static bool act(struct session *s)
{
	const char *command, *until = cli_option(s->options, "until");
	bool broken = is_broken(s->options);
	uint64_t until_ns;

	if (!sim_converge(s->sim, CONVERGE_NS)) {
		sim_view(s->sim, TOPO_NONE, NODE_QUERY_READY, TOPO_NONE, name_missing, s);
		s->code = CLI_FAILED;
		return false;
	}
	if (broken)
		s->failed_at = sim_now(s->sim);
	if (!fail_links(s))
		return false;
	for (int i = 0; (command = cli_option_at(s->options, "drain", i)) != NULL; i++)
		if (!drain(s, command))
			return false;
	if (broken)
		sim_settle(s->sim, s->topo);
	for (int i = 0; (command = cli_option_at(s->options, "run", i)) != NULL; i++)
		if (!run_workload(s, command))
			return false;
	for (int i = 0; (command = cli_option_at(s->options, "drill", i)) != NULL; i++)
		if (!play_drill(s, command))
			return false;
	if (until != NULL) {
		if (!units_fabric_duration(until, s->topo->time_dilation, &until_ns)) {
			log_err("--until: %s: want a time like 500us", until);
			s->code = CLI_USAGE;
			return false;
		}
		sim_run_until(s->sim, (dsf_instant){ until_ns });
	}
	for (int i = 0; (command = cli_option_at(s->options, "show", i)) != NULL; i++)
		if (!show(s, command))
			return false;
	return cJSON_GetArraySize(s->results) > 0 || summarize(s);
}

static int print(struct session *s)
{
	cJSON *doc = s->results;
	int code;

	if (!s->options->json)
		return output_text_write(&s->text);
	if (cJSON_GetArraySize(doc) == 1)
		doc = cJSON_DetachItemFromObjectCaseSensitive(cJSON_GetArrayItem(doc, 0), "result");
	code = output_json(doc);
	if (doc == s->results)
		s->results = NULL;
	return code;
}

static int run(int argc, char **argv, const struct cli_options *options)
{
	struct session s = { .options = options, .limit_ns = LIMIT_NS, .failed_at = DSF_NEVER };
	struct dsf_trace trace = { note_change, &s };
	struct topo *t;
	const char *seed = cli_option(options, "seed");
	uint64_t seed_value;
	int code = cli_load_topology(argv[0], &t), printed;

	if (code != CLI_OK)
		return code;
	code = cli_check_runs(argv[0], t, false);
	if (code != CLI_OK) {
		topo_free(t);
		return code;
	}
	seed_value = t->seed;
	if (seed != NULL && !units_count(seed, &seed_value)) {
		topo_free(t);
		return cli_wrong(options, "--seed: %s: want a number", seed);
	}
	s.topo = t;
	s.links = argv + 1;
	s.links_count = argc - 1;
	s.results = cJSON_CreateArray();
	s.sim = sim_new(&(struct sim_config){ .topo = t,
		.seed = seed_value,
		.sessions_max = SIM_SESSIONS_MAX,
		.trace = is_broken(options) ? &trace : NULL });
	if (s.sim == NULL || s.results == NULL) {
		log_err("sim: %s: no memory for its devices", argv[0]);
		s.code = CLI_FAILED;
	} else if (act(&s)) {
		printed = print(&s);
		if (printed != CLI_OK)
			s.code = printed;
	}
	sim_free(s.sim);
	cJSON_Delete(s.results);
	free(s.text.bytes);
	topo_free(t);
	return s.code;
}

static const struct cli_option options[] = {
	{ "fail", "LINK", true, "takes links NODE:IF down, after the lab has converged" },
	{ "drain", "NAME", true, "drains a port NODE:IF or a switch, likewise" },
	{ "run", "WORKLOAD", true, "runs a workload: 'permutation --size 1M --iterations 4'" },
	{ "drill", "DRILL", true, "plays a drill: its file, or 'random --seed 7 --duration 2ms'" },
	{ "show", "WORDS", true,
		"shows state at the end: 'fabric reachability', 'explain LINK DST'" },
	{ "until", "T", false, "goes on until this instant of fabric time before it shows" },
	{ "seed", "N", false, "seed of the simulation; default: the file's" },
	{ NULL, NULL, false, NULL },
};

const struct cli_command cmd_sim = {
	.name = "sim",
	.usage = "FILE [--fail LINK ...] [--drain LINK|NODE ...]",
	.summary = "runs a topology in virtual time, in one process, without root",
	.help = "Makes every device of FILE, waits until the fabric has converged, takes the "
		"links\n"
		"of --fail down, drains those of --drain, runs the workloads in turn and shows "
		"what\n"
		"was asked for. The results are what the live commands `run` and `show` would "
		"print;\n"
		"several make a list of {\"command\", \"result\"}. The same file, options and seed "
		"give\n"
		"the same run to the last event (trace_hash). With --fail or --drain and nothing "
		"else\n"
		"it says how long after that the last switch changed its mind. Exits 1 when a "
		"workload\n"
		"was not verified or a drill did not hold.",
	.options = options,
	.words_min = 1,
	.words_max = CLI_WORDS_ANY,
	.run = run,
};
