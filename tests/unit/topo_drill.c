/*
 * Drill files: wrong ones end with line, path and reason; right ones become what they say. Random
 * drills: the same seed gives the same faults.
 */
#include <stdlib.h>
#include <string.h>
#include "base/err.h"
#include "tests/source.h"
#include "tests/tap.h"
#include "topo/drill.h"
#include "topo/drill_keys.h"
#include "topo/file.h"
#include "workload/pattern.h"

struct bad {
	const char *name;
	const char *text;
	uint32_t line;
	const char *path; /* NULL: it is right */
	const char *part;
};

/* A fault at line 2. */
#define FAULT(fault) "{\"name\": \"x\", \"faults\": [\n" fault "]}"
/* Keys more at line 2. */
#define TOP(more)                                                                                  \
	"{\"name\": \"x\", \"faults\": [{\"at\": 0, \"for\": \"1us\", \"kind\": \"link down\", "   \
	"\"target\": \"any fabric\"}],\n" more "}"
#define DOWN "\"at\": \"1us\", \"for\": \"9us\", \"kind\": \"link down\""
#define R0F0 "\"target\": \"b0-z0-p0-rdsw0:fab0\""

static const struct bad bad[] = {
	{ "a right one", TOP("\"seed\": 18446744073709551615"), 0, NULL, "" },
	{ "a right fault", FAULT("{" DOWN ", " R0F0 "}"), 0, NULL, "" },
	{ "a right flap",
		FAULT("{\"at\": 0, \"kind\": \"link flap\", \"period\": \"8us\", " R0F0 "}"), 0,
		NULL, "" },
	{ "both impairments of one link",
		FAULT("{\"at\": 0, \"for\": \"9us\", \"kind\": \"link impair\", \"loss\": \"1%\", "
		      "\"target\": \"b0-z0-p0-rdsw0:fab0\"}, {\"at\": \"1us\", \"for\": \"9us\", "
		      "\"kind\": \"link impair\", \"silent\": true, \"target\": "
		      "\"b0-z0-p0-fdsw0:fab0\"}"),
		0, NULL, "" },
	{ "no JSON", "{", 1, "(top)", "not JSON" },
	{ "no object", "[]", 1, "(top)", "must be an object" },
	{ "no name", "{\"faults\": []}", 1, "faults", "has 0 elements" },
	{ "no faults", "{\"name\": \"x\"}", 1, "(top)", "\"faults\" is missing" },
	{ "unknown key", TOP("\"fautls\": 1"), 2, "fautls", "unknown key" },
	{ "key twice", TOP("\"name\": \"y\""), 2, "name", "duplicate key" },
	{ "name with a blank", "{\"name\": \"a b\", \"faults\": [{}]}", 1, "name", "a-z" },
	{ "seed is no number", TOP("\"seed\": \"1\""), 2, "seed", "wrong type" },
	{ "negative seed", TOP("\"seed\": -1"), 2, "seed", "digits only" },
	{ "settle of a word", TOP("\"settle\": \"soon\""), 2, "settle", "a time as" },
	{ "settle too short", TOP("\"settle\": 1"), 2, "settle", "out of bounds" },
	{ "workload unknown", TOP("\"workload\": {\"kind\": \"dance\"}"), 2, "workload.kind",
		"must be one of" },
	{ "datagrams", TOP("\"workload\": {\"kind\": \"udp\"}"), 2, "workload.kind",
		"must be one of" },
	{ "workload without kind", TOP("\"workload\": {}"), 2, "workload", "\"kind\" is missing" },
	{ "hold of nothing known", TOP("\"hold\": [\"links\", \"luck\"]"), 2, "hold[1]",
		"must be one of" },
	{ "hold of numbers", TOP("\"hold\": [1]"), 2, "hold[0]", "must be one of" },
	{ "fault is a string", FAULT("\"x\""), 2, "faults[0]", "must be an object" },
	{ "fault without target", FAULT("{" DOWN "}"), 2, "faults[0]", "\"target\" is missing" },
	{ "fault without instant", FAULT("{\"for\": 1000, \"kind\": \"link down\", " R0F0 "}"), 2,
		"faults[0]", "\"at\" is missing" },
	{ "fault without end", FAULT("{\"at\": 0, \"kind\": \"link down\", " R0F0 "}"), 2,
		"faults[0]", "every fault of a drill is healed" },
	{ "kind unknown", FAULT("{\"at\": 0, \"for\": \"9us\", \"kind\": \"link cut\", " R0F0 "}"),
		2, "faults[0].kind", "must be one of link down" },
	{ "wall time", FAULT("{\"at\": \"1sw\", \"for\": 1000, \"kind\": \"link down\", " R0F0 "}"),
		2, "faults[0].at", "a time as" },
	{ "for too long",
		FAULT("{\"at\": 0, \"for\": \"7200s\", \"kind\": \"link down\", " R0F0 "}"), 2,
		"faults[0].for", "out of bounds" },
	{ "flap with for", FAULT("{" DOWN ", \"period\": \"2us\", " R0F0 "}"), 2,
		"faults[0].period", "is for link flap" },
	{ "flap without period", FAULT("{\"at\": 0, \"kind\": \"link flap\", " R0F0 "}"), 2,
		"faults[0]", "\"period\" is missing" },
	{ "flap that says how long",
		FAULT("{\"at\": 0, \"for\": \"9us\", \"period\": \"8us\", \"kind\": \"link "
		      "flap\", " R0F0 "}"),
		2, "faults[0].for", "leave \"for\" out" },
	{ "flap of no times",
		FAULT("{\"at\": 0, \"kind\": \"link flap\", \"count\": 0, \"period\": 2000, " R0F0
		      "}"),
		2, "faults[0].count", "out of bounds" },
	{ "loss of a link that is down", FAULT("{" DOWN ", \"loss\": \"1%\", " R0F0 "}"), 2,
		"faults[0].loss", "is for link impair" },
	{ "impairment of nothing",
		FAULT("{\"at\": 0, \"for\": \"9us\", \"kind\": \"link impair\", " R0F0 "}"), 2,
		"faults[0]", "at least one of" },
	{ "loss above all",
		FAULT("{\"at\": 0, \"for\": \"9us\", \"kind\": \"link impair\", \"loss\": "
		      "\"101%\", " R0F0 "}"),
		2, "faults[0].loss", "out of bounds" },
	{ "no such link", FAULT("{" DOWN ", \"target\": \"b0-z0-p0-rdsw0:fab9\"}"), 2,
		"faults[0].target", "no such link" },
	{ "a node for a link", FAULT("{" DOWN ", \"target\": \"b0-z0-p0-rdsw0\"}"), 2,
		"faults[0].target", "no such link" },
	{ "a link for a node",
		FAULT("{\"at\": 0, \"for\": \"9us\", \"kind\": \"node kill\", " R0F0 "}"), 2,
		"faults[0].target", "no such node" },
	{ "a kind that the lab has not", FAULT("{" DOWN ", \"target\": \"any spine\"}"), 2,
		"faults[0].target", "no such link that is free" },
	{ "a role for a link", FAULT("{" DOWN ", \"target\": \"any rdsw\"}"), 2, "faults[0].target",
		"no such link that is free" },
	{ "control characters", FAULT("{" DOWN ", \"target\": \"\\u001b[2J\"}"), 2,
		"faults[0].target", "\\x1b" },
	{ "two faults on one link",
		FAULT("{" DOWN ", " R0F0 "}, {" DOWN ", \"target\": \"b0-z0-p0-fdsw0:fab0\"}"), 2,
		"faults[1].target", "at the same time" },
};

static void try(const struct topo *t, const struct bad *b)
{
	struct topo_drill *d = (struct topo_drill *)(uintptr_t)1;
	struct topo_error err;
	char line[2048];
	int code = topo_drill_load(b->text, strlen(b->text), "bad.json", t, &d, &err);

	if (b->path == NULL) {
		TAP_EQ(code, 0, "%s: is right (%s)", b->name, err.text);
		topo_drill_free(d);
		return;
	}
	TAP_EQ(code, -DSF_E_BADFIELD, "%s: refused", b->name);
	TAP_OK(d == NULL, "%s: nothing made", b->name);
	if (!TAP_OK(err.line == b->line && strcmp(err.path, b->path) == 0 &&
			    strstr(err.text, b->part) != NULL && strcmp(err.file, "bad.json") == 0,
		    "%s: file, line, path, reason", b->name))
		printf("# got %s\n", topo_error_line(&err, line, sizeof(line)));
	if (code == 0)
		topo_drill_free(d);
}

static void says_what_it_says(const struct topo *t)
{
	static const char text[] =
		"{\"_comment\": \"x\", \"name\": \"a-1\", \"seed\": 7, \"settle\": \"300us\",\n"
		"\"workload\": {\"kind\": \"incast\", \"size\": \"64K\", \"hosts\": "
		"\"b0-z0-h0\"},\n"
		"\"hold\": [\"links\", \"delivery\"],\n"
		"\"faults\": [\n"
		"{\"at\": \"90us\", \"for\": \"1us\", \"kind\": \"node stop\", \"target\": "
		"\"b0-z0-p1-fdsw1\"},\n"
		"{\"at\": \"5us\", \"kind\": \"link flap\", \"count\": 3, \"period\": \"8us\", "
		"\"target\": \"b0-z0-h1:gpu1p0\"},\n"
		"{\"at\": \"7us\", \"for\": \"2us\", \"kind\": \"link impair\", \"loss\": "
		"\"0.5%\", "
		"\"rate\": \"100G\", \"silent\": true, \"target\": \"b0-z0-p0-rdsw0:fab1\"}]}";
	struct topo_drill *d;
	struct topo_error err;
	char name[TOPO_DRILL_TARGET_MAX];

	if (!TAP_EQ(topo_drill_load(text, strlen(text), "x", t, &d, &err), 0, "it loads: %s",
		    err.text))
		return;
	TAP_OK(strcmp(d->name, "a-1") == 0 && d->seed == 7, "name and seed");
	TAP_OK(strcmp(d->workload_kind, "incast") == 0 && d->workload_bytes == 65536 &&
			strcmp(d->workload_scope, "cross-rdsw") == 0 &&
			strcmp(d->hosts, "b0-z0-h0") == 0,
		"workload");
	TAP_EQ(d->settle_ns, 300000, "settle");
	TAP_EQ(d->finish_ns, 0, "finish is auto");
	TAP_EQ(d->hold,
		1u << TOPO_DRILL_STEADY_BEFORE | 1u << TOPO_DRILL_LINKS |
			1u << TOPO_DRILL_DELIVERY | 1u << TOPO_DRILL_STEADY_AFTER,
		"what must hold: what is said, and steadiness before and after");
	TAP_OK(d->faults[0].kind == TOPO_DRILL_LINK_FLAP && d->faults[0].for_ns == 24000 &&
			d->faults[0].flaps == 3,
		"sorted by instant: the flap first");
	TAP_OK(strcmp(topo_drill_target(t, &d->faults[0], name), "b0-z0-h1:gpu1p0") == 0,
		"its target");
	TAP_OK(d->faults[1].impairment.loss_ppm == 5000 &&
			d->faults[1].impairment.rate_bps == 100000000000u &&
			d->faults[1].impairment.silent,
		"the impairment's knobs");
	TAP_OK(strcmp(topo_drill_target(t, &d->faults[2], name), "b0-z0-p1-fdsw1") == 0,
		"the node");
	TAP_EQ(topo_drill_end_ns(d), 91000, "its end");
	topo_drill_free(d);
}

static bool same(const struct topo_drill *a, const struct topo_drill *b)
{
	return a->faults_count == b->faults_count &&
	       memcmp(a->faults, b->faults, a->faults_count * sizeof(*a->faults)) == 0;
}

/* Faults of one link or node never overlap, but for two impairments. */
static bool is_free(const struct topo *t, const struct topo_drill *d)
{
	for (uint32_t i = 0; i < d->faults_count; i++)
		if (topo_drill_collides(t, d, &d->faults[i]))
			return false;
	return true;
}

static void any_is_drawn_by_the_seed(const struct topo *t)
{
	static const char format[] =
		"{\"name\": \"x\", \"seed\": %d, \"faults\": ["
		"{\"at\": 0, \"for\": \"9us\", \"kind\": \"link down\", \"target\": \"any "
		"fabric\"},"
		"{\"at\": 0, \"for\": \"9us\", \"kind\": \"link down\", \"target\": \"any "
		"fabric\"},"
		"{\"at\": 0, \"for\": \"9us\", \"kind\": \"link down\", \"target\": "
		"\"b0-z0-p0-rdsw0:fab0\"},"
		"{\"at\": 0, \"for\": \"9us\", \"kind\": \"node kill\", \"target\": \"any "
		"fdsw\"}]}";
	bool equal = true, differ = false, all_free = true, right = true;
	struct topo_drill *first = NULL;

	for (int seed = 1; seed <= 50; seed++) {
		struct topo_drill *a, *b;
		struct topo_error err;
		char text[1024];
		int size = snprintf(text, sizeof(text), format, seed);

		if (topo_drill_load(text, (size_t)size, "x", t, &a, &err) < 0 ||
			topo_drill_load(text, (size_t)size, "x", t, &b, &err) < 0) {
			TAP_OK(false, "seed %d loads: %s", seed, err.text);
			return;
		}
		equal = equal && same(a, b);
		differ = differ || (first != NULL && !same(first, a));
		all_free = all_free && is_free(t, a);
		right = right &&
			t->links[t->ports[a->faults[0].port].link].kind == TOPO_LINK_FABRIC;
		right = right && t->nodes[a->faults[3].node].role == TOPO_ROLE_FDSW;
		topo_drill_free(b);
		topo_drill_free(first);
		first = a;
	}
	topo_drill_free(first);
	TAP_OK(equal, "any: the same seed draws the same targets");
	TAP_OK(differ, "any: other seeds draw others");
	TAP_OK(all_free, "any: never one that another fault has at that time");
	TAP_OK(right, "any: targets are of the kind");
}

static void random_drills(const struct topo *t)
{
	bool equal = true, differ = true, all_free = true, bounded = true, sorted = true;
	uint32_t kinds = 0;

	for (uint64_t seed = 1; seed <= 200; seed++) {
		struct topo_drill_random c = { seed, 2000000, 10 };
		struct topo_drill *a, *b, *other;

		if (topo_drill_draw(t, &c, &a) < 0 || topo_drill_draw(t, &c, &b) < 0) {
			TAP_OK(false, "seed %" PRIu64 " is drawn", seed);
			return;
		}
		c.seed += 1000;
		if (topo_drill_draw(t, &c, &other) < 0) {
			TAP_OK(false, "seed %" PRIu64 " is drawn", c.seed);
			return;
		}
		equal = equal && same(a, b);
		differ = differ && !same(a, other);
		all_free = all_free && is_free(t, a);
		bounded = bounded && topo_drill_end_ns(a) <= c.duration_ns && a->faults_count == 10;
		for (uint32_t i = 0; i < a->faults_count; i++) {
			kinds |= 1u << a->faults[i].kind;
			sorted = sorted && (i == 0 || a->faults[i - 1].at_ns <= a->faults[i].at_ns);
		}
		topo_drill_free(a);
		topo_drill_free(b);
		topo_drill_free(other);
	}
	TAP_OK(equal, "random: the same seed gives the same list");
	TAP_OK(differ, "random: other seeds give others");
	TAP_OK(all_free, "random: no two faults of a target at once");
	TAP_OK(bounded, "random: healed within the duration");
	TAP_OK(sorted, "random: by instant");
	TAP_EQ(kinds, 0xff, "random: every kind of fault occurs");
}

static void random_bounds(const struct topo *t)
{
	struct topo_drill *d;

	TAP_EQ(topo_drill_draw(t, &(struct topo_drill_random){ 1, 2000000, 0 }, &d),
		-DSF_E_BADFIELD, "no faults are no drill");
	TAP_EQ(topo_drill_draw(t, &(struct topo_drill_random){ 1, 1, 5 }, &d), -DSF_E_BADFIELD,
		"nothing happens within 1 ns");
	TAP_EQ(topo_drill_draw(
		       t, &(struct topo_drill_random){ 1, 2000000, TOPO_DRILL_FAULTS_MAX + 1 }, &d),
		-DSF_E_BADFIELD, "more than the limit");
	TAP_OK(d == NULL, "and they make nothing");
}

/* Words that topo can't include workload/ for. */
static void workload_words_are_known(void)
{
	const struct topo_key *keys = topo_drill_keys_workload.keys;
	enum workload_kind kind;
	enum workload_scope scope;

	for (const char *const *w = keys[TOPO_DRILL_WORKLOAD_KIND].words; *w != NULL; w++)
		TAP_EQ(workload_kind_parse(*w, &kind), 0, "workload %s", *w);
	for (const char *const *w = keys[TOPO_DRILL_WORKLOAD_SCOPE].words; *w != NULL; w++)
		TAP_EQ(workload_scope_parse(*w, &scope), 0, "scope %s", *w);
	for (uint32_t i = 0; topo_drill_hold_words[i] != NULL; i++)
		TAP_OK(strcmp(topo_drill_hold_words[i],
			       topo_drill_invariant_name(
				       (enum topo_drill_invariant)(TOPO_DRILL_LINKS + i))) == 0,
			"hold: %s", topo_drill_hold_words[i]);
	for (uint32_t i = 0; topo_drill_keys_fault.keys[TOPO_DRILL_FAULT_KIND].words[i] != NULL;
		i++)
		TAP_OK(strcmp(topo_drill_keys_fault.keys[TOPO_DRILL_FAULT_KIND].words[i],
			       topo_drill_kind_name((enum topo_drill_kind)i)) == 0,
			"kind: %s", topo_drill_kind_name((enum topo_drill_kind)i));
}

static void schema_knows_the_same_keys(void)
{
	size_t size;
	char *text = source_read("drills/drill.schema.json", &size);
	cJSON *schema = cJSON_ParseWithLength(text, size);
	const cJSON *defs = cJSON_GetObjectItemCaseSensitive(schema, "$defs");

	for (int i = 0; topo_drill_keys_all[i] != NULL; i++) {
		const struct topo_keys *keys = topo_drill_keys_all[i];
		bool top = strcmp(keys->object, "top") == 0;
		const cJSON *object =
			top ? schema : cJSON_GetObjectItemCaseSensitive(defs, keys->object);
		const cJSON *properties = cJSON_GetObjectItemCaseSensitive(object, "properties");
		const cJSON *required = cJSON_GetObjectItemCaseSensitive(object, "required"), *c;

		for (uint32_t k = 0; k < keys->count; k++) {
			bool in_list = false;

			TAP_OK(cJSON_GetObjectItemCaseSensitive(properties, keys->keys[k].name) !=
					NULL,
				"schema: %s has %s", keys->object, keys->keys[k].name);
			cJSON_ArrayForEach(c, required) in_list |=
				strcmp(c->valuestring, keys->keys[k].name) == 0;
			TAP_EQ(in_list, keys->keys[k].required, "schema: %s needs %s", keys->object,
				keys->keys[k].name);
		}
		TAP_EQ(cJSON_GetArraySize(properties) - top, keys->count,
			"schema: %s has no other keys", keys->object);
		TAP_OK(cJSON_IsFalse(
			       cJSON_GetObjectItemCaseSensitive(object, "additionalProperties")),
			"schema: %s refuses unknown keys", keys->object);
	}
	cJSON_Delete(schema);
	free(text);
}

int main(void)
{
	struct topo *t = source_topo("topologies/mini.json");

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		try(t, &bad[i]);
	says_what_it_says(t);
	any_is_drawn_by_the_seed(t);
	random_drills(t);
	random_bounds(t);
	workload_words_are_known();
	schema_knows_the_same_keys();
	topo_free(t);
	return TAP_DONE();
}
