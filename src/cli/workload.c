#include "cli/workload.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/log.h"
#include "cli/units.h"
#include "metaroce/metaroce.h"
#include "view/json.h"

#define SIZE_DEFAULT       (1u << 20)
#define UDP_SIZE_DEFAULT   4096u
#define ITERATIONS_DEFAULT 4u
#define DURATION_DEFAULT   (200 * NS_PER_US)
#define DSCP_RDMA          50u
#define DURATION_MAX       (3600 * NS_PER_S)
#define UDP_SIZE_MIN       32u   /* room for the sequence and the pattern */
#define UDP_SIZE_MAX       8932u /* in a 9,000-byte packet, headers and headroom off */
#define WORDS_MAX          32

/* A number option within bounds; leaves *value when it is absent. False: told. */
static bool number(const char *(*get)(const void *, const char *), const void *user,
	const char *option, bool (*parse)(const char *text, uint64_t *value), uint64_t min,
	uint64_t max, uint64_t *value)
{
	const char *text = get(user, option);
	uint64_t read;

	if (text == NULL)
		return true;
	if (!parse(text, &read) || read < min || read > max) {
		log_err("--%s: %s: want a number from %llu to %llu", option, text,
			(unsigned long long)min, (unsigned long long)max);
		return false;
	}
	*value = read;
	return true;
}

/* Leaves *ns when text is NULL. False: told. */
static bool read_duration(const struct topo *t, const char *text, uint64_t *ns)
{
	uint64_t read;

	if (text == NULL)
		return true;
	if (!units_fabric_duration(text, t->time_dilation, &read) || read < NS_PER_US ||
		read > DURATION_MAX) {
		log_err("--duration: %s: want a time like 200us, from 1us to 60min", text);
		return false;
	}
	*ns = read;
	return true;
}

static void describe(const struct topo *t, uint32_t rank, struct workload_endpoint *e)
{
	struct topo_endpoint where = topo_endpoint(t, rank);

	*e = (struct workload_endpoint){ .rank = rank, .host = where.host, .rail = where.rail };
	for (uint32_t plane = 0; plane < t->planes; plane++) {
		const struct topo_port *port = topo_endpoint_port(t, rank, plane);
		const struct topo_node *peer;

		if (port == NULL)
			continue;
		peer = &t->nodes[t->ports[port->peer].node];
		e->rdsw = (uint32_t)(peer - t->nodes);
		e->zone = peer->cluster;
		e->building = peer->building;
		return;
	}
}

/* Adds the endpoints that one word names. False: none, told. */
static bool add_endpoints(
	const struct topo *t, const char *word, struct workload_endpoint *list, uint32_t *count)
{
	char name[TOPO_NODE_NAME_MAX + 1];
	size_t size = strcspn(word, ":");
	uint64_t rail = UINT64_MAX;
	uint32_t node, before = *count;

	if (size < sizeof(name)) {
		memcpy(name, word, size);
		name[size] = '\0';
		node = topo_find_node(t, name);
	} else {
		node = TOPO_NONE;
	}
	if (node == TOPO_NONE || t->nodes[node].role != TOPO_ROLE_HOST) {
		log_err("--hosts: %s: no such host in lab %s", word, t->name);
		return false;
	}
	if (word[size] == ':' &&
		(strncmp(word + size, ":gpu", 4) != 0 || !units_count(word + size + 4, &rail))) {
		log_err("--hosts: %s: want HOST or HOST:gpuR", word);
		return false;
	}
	for (uint32_t rank = 0; rank < t->endpoints_count; rank++) {
		struct topo_endpoint e = topo_endpoint(t, rank);

		if (e.host == node && (rail == UINT64_MAX || e.rail == rail))
			describe(t, rank, &list[(*count)++]);
	}
	if (*count == before)
		log_err("--hosts: %s: that host has no such GPU", word);
	return *count > before;
}

static bool named_twice(const struct workload_endpoint *list, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		for (uint32_t j = 0; j < i; j++)
			if (list[i].rank == list[j].rank)
				return true;
	return false;
}

/* The endpoints of --hosts, or all; *list is malloc'd. False: told. */
static bool find_endpoints(
	const struct topo *t, const char *hosts, struct workload_endpoint **list, uint32_t *count)
{
	char *copy = hosts == NULL ? NULL : strdup(hosts), *rest = copy, *word;
	size_t words = 1;
	bool found = true;

	for (const char *c = hosts; c != NULL && *c != '\0'; c++)
		words += *c == ',';
	/* A word names a host once; naming it again is refused below, within this room. */
	*list = calloc((hosts == NULL ? 1 : words) * (t->endpoints_count + 1), sizeof(**list));
	*count = 0;
	if (*list == NULL || (hosts != NULL && copy == NULL)) {
		log_err("%s", strerror(ENOMEM));
		found = false;
	}
	for (uint32_t rank = 0; found && hosts == NULL && rank < t->endpoints_count; rank++)
		describe(t, rank, &(*list)[(*count)++]);
	while (found && (word = strsep(&rest, ",")) != NULL)
		found = add_endpoints(t, word, *list, count);
	if (found && hosts != NULL && named_twice(*list, *count)) {
		log_err("--hosts: a GPU is named twice");
		found = false;
	}
	free(copy);
	return found;
}

static bool make_flows(
	struct cli_workload *w, const struct topo *t, enum workload_scope scope, const char *hosts)
{
	struct workload_endpoint *list = NULL;
	uint32_t count;
	int made;

	if (!find_endpoints(t, hosts, &list, &count)) {
		free(list);
		return false;
	}
	w->flows = calloc(count + 1, sizeof(*w->flows));
	made = w->flows == NULL
		       ? -ENOMEM
		       : workload_flows(w->spec.kind, scope, w->spec.seed, list, count, w->flows);
	free(list);
	if (made <= 0) {
		log_err("%s: scope %s leaves an endpoint without a partner, name other --hosts or "
			"another --scope",
			workload_kind_name(w->spec.kind), workload_scope_name(scope));
		return false;
	}
	w->spec.flows = w->flows;
	w->spec.flows_count = (uint32_t)made;
	return true;
}

/* Options that mean nothing to a workload with a transport. */
static bool fits(const char *name, bool udp,
	const char *(*get)(const void *user, const char *option), const void *user)
{
	static const char *const datagrams[] = { "rate", "duration", "plane", "dscp" };

	for (size_t i = 0; !udp && i < sizeof(datagrams) / sizeof(datagrams[0]); i++) {
		if (get(user, datagrams[i]) == NULL)
			continue;
		log_err("--%s: only udp takes it: %s sends by its transport on all planes, as fast "
			"as it may",
			datagrams[i], name);
		return false;
	}
	return true;
}

int cli_workload_make(struct cli_workload *w, const struct topo *t, const char *name,
	const char *(*get)(const void *user, const char *option), const void *user)
{
	enum workload_scope scope = WORKLOAD_SCOPE_CROSS_RDSW;
	uint64_t size, iterations, rate = 0, duration = DURATION_DEFAULT, plane = UINT32_MAX;
	uint64_t dscp = DSCP_RDMA, seed = t->seed;
	bool udp;

	memset(w, 0, sizeof(*w));
	if (workload_kind_parse(name, &w->spec.kind) < 0) {
		log_err("%s: no such workload, want udp, write, permutation or incast", name);
		return CLI_USAGE;
	}
	udp = w->spec.kind == WORKLOAD_UDP;
	if (!fits(name, udp, get, user))
		return CLI_USAGE;
	size = udp ? UDP_SIZE_DEFAULT : SIZE_DEFAULT;
	iterations = udp ? 0 : ITERATIONS_DEFAULT;
	if (get(user, "scope") != NULL && workload_scope_parse(get(user, "scope"), &scope) < 0) {
		log_err("--scope: %s: want any, cross-rdsw, cross-zone, cross-building or "
			"same-rail",
			get(user, "scope"));
		return CLI_USAGE;
	}
	if (!number(get, user, "size", units_bytes, udp ? UDP_SIZE_MIN : 1,
		    udp ? UDP_SIZE_MAX : METAROCE_MESSAGE_BYTES_MAX, &size) ||
		!number(get, user, "iterations", units_count, 1, UINT32_MAX, &iterations) ||
		!number(get, user, "rate", units_rate, 1000, 10000000000000ull, &rate) ||
		!read_duration(t, get(user, "duration"), &duration) ||
		!number(get, user, "plane", units_count, 0, t->planes - 1, &plane) ||
		!number(get, user, "dscp", units_count, 0, 63, &dscp) ||
		!number(get, user, "seed", units_count, 0, UINT64_MAX / 2, &seed))
		return CLI_USAGE;
	w->spec.size_bytes = size;
	w->spec.iterations = (uint32_t)iterations;
	w->spec.rate_bps = rate;
	w->spec.plane = (uint32_t)plane;
	w->spec.dscp = (uint8_t)dscp;
	w->spec.seed = seed;
	w->spec.stop_at = udp && iterations == 0 ? (dsf_instant){ duration } : DSF_NEVER;
	if (make_flows(w, t, scope, get(user, "hosts")))
		return 0;
	cli_workload_free(w);
	return CLI_USAGE;
}

void cli_workload_free(struct cli_workload *w)
{
	free(w->flows);
	w->flows = NULL;
}

struct words {
	char *text;
	char *word[WORDS_MAX];
	int count;
};

static const struct cli_option known[] = { CLI_WORKLOAD_OPTIONS, { NULL, NULL, false, NULL } };

/* Value of "--option value" or "--option=value" among the words. */
static const char *get_word(const void *user, const char *option)
{
	const struct words *w = user;
	size_t size = strlen(option);
	const char *value = NULL;

	for (int i = 1; i < w->count; i++) {
		if (strncmp(w->word[i], "--", 2) != 0 || strncmp(w->word[i] + 2, option, size) != 0)
			continue;
		if (w->word[i][2 + size] == '=')
			value = w->word[i] + 3 + size;
		else if (w->word[i][2 + size] == '\0' && i + 1 < w->count)
			value = w->word[i + 1];
	}
	return value;
}

/* Every word behind the first is an option that we know, with its value. */
static bool check_words(const struct words *w)
{
	for (int i = 1; i < w->count; i++) {
		const char *word = w->word[i];
		size_t size = strcspn(word, "=");
		bool found = false;

		for (const struct cli_option *o = known; o->name != NULL; o++)
			found = found ||
				(strncmp(word, "--", 2) == 0 && size == strlen(o->name) + 2 &&
					strncmp(word + 2, o->name, size - 2) == 0);
		if (!found) {
			log_err("%s: %s: unknown option of a workload", w->word[0], word);
			return false;
		}
		if (word[size] == '=')
			continue;
		if (++i == w->count) {
			log_err("%s: %s: wants a value", w->word[0], word);
			return false;
		}
	}
	return true;
}

int cli_workload_parse(struct cli_workload *w, const struct topo *t, const char *text)
{
	struct words words = { .text = strdup(text) };
	char *rest = words.text, *word;
	int status = CLI_USAGE;

	while (rest != NULL && (word = strsep(&rest, " \t\n")) != NULL)
		if (*word != '\0' && words.count < WORDS_MAX)
			words.word[words.count++] = word;
	if (words.count == 0)
		log_err("--run: want a workload: udp, write, permutation or incast");
	else if (check_words(&words))
		status = cli_workload_make(w, t, words.word[0], get_word, &words);
	free(words.text);
	return status;
}

/* Digits in a string: nodes read bare numbers as doubles, exact up to 2^53 only. */
static bool add_digits(cJSON *spec, const char *key, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	return view_json_add_text(spec, key, text);
}

cJSON *cli_workload_json(const struct workload_spec *w, uint64_t start_ns)
{
	cJSON *spec = cJSON_CreateObject(), *flows = cJSON_CreateArray();
	bool made = spec != NULL && flows != NULL;

	for (uint32_t i = 0; made && i < w->flows_count; i++) {
		double pair[2] = { w->flows[i].source, w->flows[i].target };

		made = view_json_append(flows, cJSON_CreateDoubleArray(pair, 2));
	}
	made = made && view_json_add_text(spec, "kind", workload_kind_name(w->kind)) &&
	       add_digits(spec, "size_bytes", w->size_bytes) &&
	       view_json_add_u64(spec, "iterations", w->iterations) &&
	       add_digits(spec, "rate_bps", w->rate_bps) &&
	       view_json_add_u64(spec, "dscp", w->dscp) &&
	       add_digits(spec, "seed", w->seed) &&
	       add_digits(spec, "start_at_ns", start_ns + w->start_at.ns) &&
	       view_json_add(spec, "plane",
		       w->plane == UINT32_MAX ? cJSON_CreateNull() : cJSON_CreateNumber(w->plane));
	if (made && dsf_time_is_never(w->stop_at))
		made = view_json_add(spec, "stop_at_ns", cJSON_CreateNull());
	else if (made)
		made = add_digits(spec, "stop_at_ns", start_ns + w->stop_at.ns);
	if (made && view_json_add(spec, "flows", flows))
		return spec;
	if (!made)
		cJSON_Delete(flows);
	cJSON_Delete(spec);
	return NULL;
}
