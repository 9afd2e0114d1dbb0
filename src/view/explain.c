#include "view/explain.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/err.h"
#include "topo/fixed.h"
#include "topo/memory.h"
#include "view/json.h"

#define NAME_MAX (TOPO_NODE_NAME_MAX + 1 + TOPO_PORT_NAME_MAX + 1)

struct explain {
	const struct topo *topo;
	uint32_t destination;
	struct topo_fixed *healthy; /* who should hear of the destination, and where */
	cJSON *ports, *reach, *balance;
	cJSON *failures;
};

static const struct topo_node *node_of(const struct explain *e, uint32_t port)
{
	return &e->topo->nodes[e->topo->ports[port].node];
}

static void name_port(const struct explain *e, uint32_t port, char name[NAME_MAX])
{
	snprintf(name, NAME_MAX, "%s:%s", node_of(e, port)->name, e->topo->ports[port].name);
}

static bool member_is(const cJSON *row, const char *key, const char *value)
{
	const char *text = view_json_text(row, key);

	return text != NULL && strcmp(text, value) == 0;
}

/* The row of a node about something (key has value); NULL when there is none. */
static const cJSON *find_row(
	const cJSON *rows, const char *node, const char *key, const char *value)
{
	const cJSON *row;

	cJSON_ArrayForEach(row, rows)
	{
		if (member_is(row, "node", node) && member_is(row, key, value))
			return row;
	}
	return NULL;
}

/* Is the port in a set of its node's row about the destination? */
static bool in_set(const struct explain *e, uint32_t port, const char *set)
{
	const cJSON *row = find_row(e->reach, node_of(e, port)->name, "destination",
		e->topo->nodes[e->destination].name);
	const cJSON *name;

	cJSON_ArrayForEach(name, cJSON_GetObjectItemCaseSensitive(row, set))
	{
		if (strcmp(name->valuestring, e->topo->ports[port].name) == 0)
			return true;
	}
	return false;
}

static const cJSON *port_row(const struct explain *e, uint32_t port)
{
	return find_row(e->ports, node_of(e, port)->name, "port", e->topo->ports[port].name);
}

static bool is_true(const cJSON *row, const char *key)
{
	return cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(row, key));
}

/* Why a link is no way, from what one end says of it; NULL: this end knows no reason. A dead node
 * says nothing. */
static const char *why_not(const struct explain *e, uint32_t port)
{
	const cJSON *row = port_row(e, port);

	if (row == NULL)
		return "dead";
	if (!is_true(row, "carrier"))
		return "no carrier";
	if (is_true(row, "isolated"))
		return "isolated";
	if (!is_true(row, "live"))
		return "silent";
	return is_true(row, "drained") ? "drained" : NULL;
}

/* Of both ends: a link that is isolated by one is silent to the other, and so on. *at: the end that
 * says so, where both do this one. */
static const char *link_why(const struct explain *e, uint32_t port, uint32_t *at)
{
	static const char *const order[] = { "dead", "no carrier", "isolated", "silent",
		"drained" };
	uint32_t peer = e->topo->ports[port].peer;
	const char *a = why_not(e, port), *b = why_not(e, peer);

	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		*at = a != NULL && strcmp(a, order[i]) == 0 ? port : peer;
		if (*at == port || (b != NULL && strcmp(b, order[i]) == 0))
			return order[i];
	}
	*at = port;
	return NULL;
}

/* The input group that a teller's link belongs to, as its rows name it. */
static void name_group(const struct explain *e, uint32_t port, char name[NAME_MAX])
{
	const struct topo_node *teller = node_of(e, port);
	const struct topo_node *listener = node_of(e, e->topo->ports[port].peer);

	if (teller->role == TOPO_ROLE_SDSW)
		snprintf(name, NAME_MAX, "cluster %u", listener->cluster);
	else if (listener->role == TOPO_ROLE_SDSW)
		snprintf(name, NAME_MAX, "up");
	else if (teller->cluster == e->topo->nodes[e->destination].cluster)
		snprintf(name, NAME_MAX, "%s", listener->name);
	else
		snprintf(name, NAME_MAX, "down");
}

/* What the teller's group comes to, from its row of `show fabric inputbalance`. */
static bool add_group(const struct explain *e, uint32_t port, cJSON *o)
{
	static const char *const keys[] = { "input", "output", "allowed" };
	char group[NAME_MAX];
	const cJSON *row;

	name_group(e, port, group);
	if (!view_json_add_text(o, "group", group))
		return false;
	cJSON_ArrayForEach(row, e->balance)
	{
		if (!member_is(row, "node", node_of(e, port)->name) ||
			!member_is(row, "group", group) ||
			!member_is(row, "destination", e->topo->nodes[e->destination].name))
			continue;
		for (int i = 0; i < 3; i++)
			if (!view_json_add_u64(o, keys[i], view_json_u64(row, keys[i])))
				return false;
	}
	return true;
}

static bool add_failure(const struct explain *e, const char *link)
{
	const cJSON *known;

	cJSON_ArrayForEach(known, e->failures)
	{
		if (strcmp(known->valuestring, link) == 0)
			return true;
	}
	return view_json_append(e->failures, cJSON_CreateString(link));
}

static cJSON *explain_link(const struct explain *e, uint32_t port);

/* Where the teller should hear of the destination and doesn't, and why. */
static bool add_causes(const struct explain *e, uint32_t port, cJSON *o)
{
	const struct topo_node *teller = node_of(e, port);
	cJSON *causes = cJSON_AddArrayToObject(o, "causes");

	for (uint32_t i = 0; causes != NULL && i < teller->ports_count; i++) {
		uint32_t way = teller->first_port + i;

		if (!topo_fixed_expects(e->healthy, way) || in_set(e, way, "output"))
			continue;
		if (!view_json_append(causes, explain_link(e, e->topo->ports[way].peer)))
			return false;
	}
	return causes != NULL;
}

/* What a teller says, or doesn't, on its port. Recursion: each step is one tier nearer. */
static cJSON *explain_link(const struct explain *e, uint32_t port)
{
	cJSON *o = cJSON_CreateObject();
	uint32_t at;
	const char *state = "unreached", *why = link_why(e, port, &at);
	char name[NAME_MAX], at_name[NAME_MAX];
	bool held;

	name_port(e, port, name);
	name_port(e, at, at_name);
	if (why != NULL)
		state = strcmp(why, "drained") == 0 ? why : "down";
	else if (in_set(e, port, "advertised"))
		state = "told";
	else if (in_set(e, port, "withdrawn"))
		state = "withheld";
	held = o != NULL && view_json_add_text(o, "link", name) &&
	       view_json_add_text(o, "teller", node_of(e, port)->name) &&
	       view_json_add_text(o, "listener", node_of(e, e->topo->ports[port].peer)->name) &&
	       view_json_add_text(o, "destination", e->topo->nodes[e->destination].name) &&
	       view_json_add_text(o, "state", state);
	if (held && strcmp(state, "withheld") == 0)
		held = add_group(e, port, o);
	if (held && why != NULL)
		held = view_json_add_text(o, "why", why) && view_json_add_text(o, "at", at_name) &&
		       add_failure(e, at_name);
	else if (held && strcmp(state, "told") != 0)
		held = add_causes(e, port, o);
	if (held)
		return o;
	cJSON_Delete(o);
	return NULL;
}

/* Nobody tells of the destination over this link, whatever lives. */
static cJSON *explain_never(const struct explain *e, uint32_t port)
{
	cJSON *o = cJSON_CreateObject();
	char name[NAME_MAX];

	name_port(e, port, name);
	if (o != NULL && view_json_add_text(o, "link", name) &&
		view_json_add_text(o, "teller", NULL) &&
		view_json_add_text(o, "destination", e->topo->nodes[e->destination].name) &&
		view_json_add_text(o, "state", "never"))
		return o;
	cJSON_Delete(o);
	return NULL;
}

static cJSON *ask(const struct view_show_source *source, enum node_query query, bool go_on)
{
	return go_on ? source->rows(source->user, query, TOPO_NONE) : NULL;
}

int view_explain_parse(const struct topo *t, const char *link, const char *name, uint32_t *port,
	uint32_t *destination, char why[VIEW_SHOW_WHY_MAX])
{
	const struct topo_node *d, *n;

	*port = topo_find_port(t, link);
	*destination = topo_find_node(t, name);
	if (*port == TOPO_NONE || t->ports[*port].ethernet) {
		snprintf(why, VIEW_SHOW_WHY_MAX, "no cell link %.64s", link);
		return -DSF_E_UNKNOWN;
	}
	if (*destination == TOPO_NONE || !topo_is_interface_node(t->nodes[*destination].role)) {
		snprintf(why, VIEW_SHOW_WHY_MAX, "no interface node %.64s", name);
		return -DSF_E_UNKNOWN;
	}
	n = &t->nodes[t->ports[*port].node];
	d = &t->nodes[*destination];
	if (n->building == d->building && n->plane == d->plane)
		return 0;
	snprintf(why, VIEW_SHOW_WHY_MAX, "%.64s and %.64s are in different fabrics", link, name);
	return -DSF_E_UNKNOWN;
}

cJSON *view_explain(const struct topo *t, uint32_t port, uint32_t destination,
	const struct view_show_source *source)
{
	uint64_t *none = calloc(t->links_count / 64 + 1u, sizeof(*none));
	struct explain e = { .topo = t,
		.destination = destination,
		.healthy = none == NULL ? NULL : topo_fixed_new(t, none, t->seed, &topo_memory),
		.failures = cJSON_CreateArray() };
	cJSON *result = NULL;

	e.ports = ask(source, NODE_QUERY_PORT, e.healthy != NULL && e.failures != NULL);
	e.reach = ask(source, NODE_QUERY_REACHABILITY, e.ports != NULL);
	e.balance = ask(source, NODE_QUERY_BALANCE, e.reach != NULL);
	if (e.balance != NULL) {
		topo_fixed_destination(e.healthy, destination);
		if (topo_fixed_expects(e.healthy, port))
			result = explain_link(&e, t->ports[port].peer);
		else if (topo_fixed_expects(e.healthy, t->ports[port].peer))
			result = explain_link(&e, port);
		else
			result = explain_never(&e, port);
	}
	if (result != NULL) {
		bool added = view_json_add(result, "failures", e.failures);

		e.failures = NULL; /* the result's, or gone */
		if (!added) {
			cJSON_Delete(result);
			result = NULL;
		}
	}
	cJSON_Delete(e.failures);
	cJSON_Delete(e.ports);
	cJSON_Delete(e.reach);
	cJSON_Delete(e.balance);
	topo_fixed_free(e.healthy);
	free(none);
	return result;
}

struct text {
	char *bytes; /* NULL: memory was short */
	size_t size;
};

static void add(struct text *x, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct text *x, const char *format, ...)
{
	char line[1024], *grown;
	va_list args;
	size_t size;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	size = strlen(line);
	grown = x->bytes == NULL ? NULL : realloc(x->bytes, x->size + size + 1);
	if (grown == NULL) {
		free(x->bytes);
		x->bytes = NULL;
		return;
	}
	memcpy(grown + x->size, line, size + 1);
	x->bytes = grown;
	x->size += size;
}

static const char *text_of(const cJSON *o, const char *key)
{
	const char *text = view_json_text(o, key);

	return text == NULL ? "-" : text;
}

static const char *why_text(const char *why)
{
	if (strcmp(why, "isolated") == 0)
		return "isolated: it loses cells, though it has carrier";
	if (strcmp(why, "silent") == 0)
		return "an end hears nothing, though it has carrier";
	if (strcmp(why, "dead") == 0)
		return "down: a node at its end is dead";
	return "down";
}

static void add_link(struct text *x, const cJSON *o, int depth)
{
	const char *state = text_of(o, "state"), *link = text_of(o, "link");
	const char *destination = text_of(o, "destination"), *teller = text_of(o, "teller");
	const cJSON *cause;

	add(x, "%*s%s to %s: ", 2 * depth, "", link, text_of(o, "listener"));
	if (strcmp(state, "drained") == 0)
		add(x, "drained at %s\n", text_of(o, "at"));
	else if (strcmp(state, "down") == 0)
		add(x, "%s\n", why_text(text_of(o, "why")));
	else if (strcmp(state, "told") == 0)
		add(x, "%s tells that it reaches %s\n", teller, destination);
	else if (strcmp(state, "withheld") == 0)
		add(x, "%s withholds %s: of group %s %llu may come in, as %llu can go out\n",
			teller, destination, text_of(o, "group"),
			(unsigned long long)view_json_u64(o, "allowed"),
			(unsigned long long)view_json_u64(o, "output"));
	else
		add(x, "%s doesn't reach %s\n", teller, destination);
	cJSON_ArrayForEach(cause, cJSON_GetObjectItemCaseSensitive(o, "causes"))
	{
		add_link(x, cause, depth + 1);
	}
}

char *view_explain_text(const cJSON *result)
{
	struct text x = { .bytes = calloc(1, 1) };
	const cJSON *link, *failures = cJSON_GetObjectItemCaseSensitive(result, "failures");

	if (strcmp(text_of(result, "state"), "never") == 0) {
		add(&x, "%s: nobody tells of %s over this link, in a whole fabric either\n",
			text_of(result, "link"), text_of(result, "destination"));
		return x.bytes;
	}
	add_link(&x, result, 0);
	cJSON_ArrayForEach(link, failures)
	{
		add(&x, "%s%s%s", link == failures->child ? "caused by " : ", ", link->valuestring,
			link->next == NULL ? "\n" : "");
	}
	return x.bytes;
}
