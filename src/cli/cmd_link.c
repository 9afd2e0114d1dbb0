#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <cjson/cJSON.h>
#include "base/time.h"
#include "cli/commands.h"
#include "cli/lab_call.h"
#include "cli/log.h"
#include "cli/units.h"

#define FLAP_COUNT          5u
#define FLAP_PERIOD_WALL_NS (1 * NS_PER_S)

#define NAME_MAX_SIZE (TOPO_NODE_NAME_MAX + 1 + TOPO_PORT_NAME_MAX)

/* The knobs that were given, as members of "set". */
struct knobs {
	const struct cli_options *options;
	char text[512];
	size_t size;
	uint32_t time_dilation;
	int code;
};

static void add(struct knobs *k, const char *key, uint64_t value)
{
	k->size += (size_t)snprintf(k->text + k->size, sizeof(k->text) - k->size,
		"%s\"%s\":%" PRIu64, k->size > 0 ? "," : "", key, value);
}

static void wrong(struct knobs *k, const char *option, const char *takes, const char *text)
{
	if (k->code == CLI_OK)
		k->code = cli_wrong(k->options, "--%s takes %s, not %s", option, takes, text);
}

static void add_parts(struct knobs *k, const char *option, const char *key)
{
	const char *text = cli_option(k->options, option);
	uint32_t ppm;

	if (text == NULL)
		return;
	if (units_ppm(text, &ppm))
		add(k, key, ppm);
	else
		wrong(k, option, "parts like 1% or 100ppm", text);
}

static void add_duration(struct knobs *k, const char *option, const char *key)
{
	const char *text = cli_option(k->options, option);
	uint64_t ns;

	if (text == NULL)
		return;
	if (units_fabric_duration(text, k->time_dilation, &ns))
		add(k, key, ns);
	else
		wrong(k, option, "a duration like 5us", text);
}

static void add_rate(struct knobs *k)
{
	const char *text = cli_option(k->options, "rate");
	uint64_t bps;

	if (text == NULL)
		return;
	if (units_rate(text, &bps))
		add(k, "rate_bps", bps);
	else
		wrong(k, "rate", "bit/s like 100G (0: the link's own)", text);
}

static void add_silent(struct knobs *k)
{
	if (!cli_flag(k->options, "silent"))
		return;
	k->size += (size_t)snprintf(k->text + k->size, sizeof(k->text) - k->size,
		"%s\"silent\":true", k->size > 0 ? "," : "");
}

static int read_knobs(struct knobs *k, const char *lab)
{
	struct lab_client client;
	const char *result;
	cJSON *answer;
	const cJSON *dilation;

	/* Wall durations need the lab's dilation. */
	if (lab_call_open(&client, lab) != CLI_OK)
		return CLI_FAILED;
	k->code = lab_call(&client, "{\"op\":\"lab\"}", &result, NULL);
	answer = k->code == CLI_OK ? cJSON_Parse(result) : NULL;
	dilation = cJSON_GetObjectItemCaseSensitive(answer, "time_dilation");
	if (cJSON_IsNumber(dilation))
		k->time_dilation = (uint32_t)dilation->valuedouble;
	cJSON_Delete(answer);
	lab_client_close(&client);
	add_parts(k, "loss", "loss_ppm");
	add_parts(k, "corrupt", "corrupt_ppm");
	add_parts(k, "reorder", "reorder_ppm");
	add_duration(k, "delay", "delay_ns");
	add_duration(k, "jitter", "jitter_ns");
	add_rate(k);
	add_silent(k);
	if (k->code == CLI_OK && k->size == 0)
		return cli_wrong(k->options, "impair needs at least one of its options");
	return k->code;
}

static int set_link(
	const char *lab, const char *action, const char *link, const char *knobs, const char *term)
{
	char request[1024];

	if (strlen(link) > NAME_MAX_SIZE ||
		strspn(link, "abcdefghijklmnopqrstuvwxyz0123456789-:") != strlen(link)) {
		log_err("%s: no such link", link);
		return CLI_USAGE;
	}
	if (strstr(action, "drain") != NULL)
		snprintf(request, sizeof(request),
			"{\"op\":\"drain\",\"link\":\"%s\",\"drained\":%s%s}", link,
			strcmp(action, "drain") == 0 ? "true" : "false", term);
	else
		snprintf(request, sizeof(request),
			"{\"op\":\"link\",\"link\":\"%s\",\"action\":\"%s\"%s%s%s%s}", link, action,
			knobs != NULL ? ",\"set\":{" : "", knobs != NULL ? knobs : "",
			knobs != NULL ? "}" : "", term);
	return lab_call_once(lab, request);
}

/* Which options an action takes. */
static bool options_fit(const struct cli_options *options, const char *action)
{
	bool impair = strcmp(action, "impair") == 0, flap = strcmp(action, "flap") == 0;

	for (int i = 0; i < options->given_count; i++) {
		const char *name = options->given[i].name;
		bool is_for = strcmp(name, "for") == 0;
		bool is_flap = strcmp(name, "count") == 0 || strcmp(name, "period") == 0;

		if (is_for ? !impair && strcmp(action, "down") != 0 && strcmp(action, "drain") != 0
			: is_flap ? !flap
				  : !impair) {
			(void)cli_wrong(options, "%s doesn't take --%s", action, name);
			return false;
		}
	}
	return true;
}

/* The members of the request that say for how long. */
static int read_term(const struct cli_options *options, const char *action, char *text, size_t size)
{
	const char *count = cli_option(options, "count"), *period = cli_option(options, "period");
	uint64_t times = FLAP_COUNT;
	int code;

	if (strcmp(action, "flap") != 0)
		return lab_call_term(options, "for", "for_ns", text, size);
	if (count != NULL && !units_count(count, &times))
		return cli_wrong(options, "--count takes a number, not %s", count);
	if (period == NULL) {
		snprintf(text, size, ",\"period_ns\":%llu,\"wall\":true", FLAP_PERIOD_WALL_NS);
		code = CLI_OK;
	} else {
		code = lab_call_term(options, "period", "period_ns", text, size);
	}
	if (code == CLI_OK)
		snprintf(text + strlen(text), size - strlen(text), ",\"count\":%" PRIu64, times);
	return code;
}

static int run_link(int argc, char **argv, const struct cli_options *options)
{
	static const char *const actions[] = { "down", "up", "flap", "reset", "impair", "drain",
		"undrain", NULL };
	struct knobs knobs = { .options = options, .time_dilation = 1 };
	char lab[TOPO_LAB_NAME_MAX + 1], term[128];
	int action = 0, code;
	bool impair;

	(void)argc;
	while (actions[action] != NULL && strcmp(actions[action], argv[0]) != 0)
		action++;
	if (actions[action] == NULL)
		return cli_wrong(options, "down, up, flap, reset, impair, drain or undrain, not %s",
			argv[0]);
	impair = strcmp(argv[0], "impair") == 0;
	if (!options_fit(options, argv[0]))
		return CLI_USAGE;
	code = read_term(options, argv[0], term, sizeof(term));
	if (code == CLI_OK)
		code = lab_call_root("link");
	if (code == CLI_OK)
		code = lab_call_choose(options, NULL, lab);
	if (code == CLI_OK && impair)
		code = read_knobs(&knobs, lab);
	return code == CLI_OK ? set_link(lab, argv[0], argv[1], impair ? knobs.text : NULL, term)
			      : code;
}

static const struct cli_option link_options[] = {
	{ "loss", "PART", false, "impair: parts that get lost, like 1% or 100ppm" },
	{ "corrupt", "PART", false, "impair: parts that arrive corrupted" },
	{ "reorder", "PART", false, "impair: parts that overtake or fall behind" },
	{ "delay", "TIME", false, "impair: time added to the link's delay" },
	{ "jitter", "TIME", false, "impair: most that a delay varies by; keeps order" },
	{ "rate", "RATE", false, "impair: bit/s, like 100G; 0: the link's own" },
	{ "silent", NULL, false, "impair: nothing leaves the named end, its carrier stays" },
	{ "for", "TIME", false, "down, impair, drain: heals by itself after that time (2ms, 5sw)" },
	{ "count", "N", false, "flap: how often it goes down; default 5" },
	{ "period", "TIME", false, "flap: from one down to the next; default 1sw" },
	{ NULL, NULL, false, NULL },
};

const struct cli_command cmd_link = {
	.name = "link",
	.usage = "down|up|flap|reset|impair|drain|undrain NODE:IF",
	.summary = "break a link, impair it, drain it, mend it",
	.help = "A link is named by either end. down takes the carrier of both ends, up gives it "
		"back.\n"
		"impair sets what is given and leaves the rest as it was, in both directions "
		"(--silent:\n"
		"from the named end only). drain takes the named port of a switch out of use "
		"without loss:\n"
		"the link stays up, nobody sprays on it; undrain undrains both ends. reset takes "
		"all of\n"
		"it back. flap takes it down for half of each period. With --for, and after a "
		"flap, the\n"
		"lab itself heals what it was asked for: the command doesn't wait. node drain "
		"drains a\n"
		"whole switch.",
	.options = link_options,
	.words_min = 2,
	.words_max = 2,
	.run = run_link,
};
