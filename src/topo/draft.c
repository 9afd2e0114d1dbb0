#include "topo/draft.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/err.h"
#include "topo/memory.h"

struct name_entry {
	char name[TOPO_NODE_NAME_MAX + 1]; /* key: padded with zeroes */
	uint32_t index;
};

void topo_draft_init(struct topo_draft *d, const struct topo_reader *r, const cJSON *root)
{
	memset(d, 0, sizeof(*d));
	d->reader = r;
	d->top = (struct topo_path){ .up = NULL, .item = root, .child = 0 };
	dsf_hash_init(&d->names, &topo_memory, TOPO_NODE_NAME_MAX + 1, sizeof(struct name_entry),
		TOPO_NODES_MAX);
}

void topo_draft_close(struct topo_draft *d)
{
	dsf_hash_close(&d->names);
	free(d->nodes);
	free(d->links);
}

/* Doubles an array of the heap; false when memory is short. */
static bool grow(void **array, uint32_t *cap, size_t item_size)
{
	uint32_t new_cap = *cap == 0 ? 64 : *cap * 2;
	void *grown = realloc(*array, new_cap * item_size);

	if (grown == NULL)
		return false;
	*array = grown;
	*cap = new_cap;
	return true;
}

static const char *bad_name(const char *name)
{
	size_t size = strlen(name);

	if (size == 0)
		return "a name may not be empty";
	if (size > TOPO_NODE_NAME_MAX)
		return "a node's name has at most 48 characters";
	if (strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != size)
		return "a node's name has only a-z, 0-9 and '-'";
	return NULL;
}

int64_t topo_draft_node(
	struct topo_draft *d, const char *name, enum topo_role role, struct topo_origin origin)
{
	struct topo_quote quote;
	const char *bad = bad_name(name);
	char key[TOPO_NODE_NAME_MAX + 1] = { 0 };
	struct topo_draft_node *n;
	struct name_entry *entry;

	topo_quote(&quote, name, strlen(name));
	if (bad != NULL)
		return topo_draft_fail(d, origin, "name", "bad node name %s: %s", quote.text, bad);
	memcpy(key, name, strlen(name));
	if (dsf_hash_get(&d->names, key) != NULL)
		return topo_draft_fail(
			d, origin, "name", "duplicate node name %s: names must differ", quote.text);
	if (d->nodes_count == TOPO_NODES_MAX)
		return topo_draft_fail(
			d, origin, NULL, "too many nodes: a lab has at most %u", TOPO_NODES_MAX);
	if (d->nodes_count == d->nodes_cap &&
		!grow((void **)&d->nodes, &d->nodes_cap, sizeof(*d->nodes)))
		return -DSF_E_NOMEM;
	entry = dsf_hash_put(&d->names, key);
	if (entry == NULL)
		return -DSF_E_NOMEM;
	entry->index = d->nodes_count;
	n = &d->nodes[d->nodes_count];
	memset(n, 0, sizeof(*n));
	memcpy(n->name, key, sizeof(key));
	n->origin = origin;
	n->node = (struct topo_node){
		.role = role,
		.building = TOPO_NONE,
		.plane = TOPO_NONE,
		.cluster = TOPO_NONE,
		.zone = TOPO_NONE,
		.switch_index = TOPO_NONE,
	};
	return d->nodes_count++;
}

uint32_t topo_draft_find(const struct topo_draft *d, const char *name)
{
	char key[TOPO_NODE_NAME_MAX + 1] = { 0 };
	const struct name_entry *entry;
	size_t size = strlen(name);

	if (size > TOPO_NODE_NAME_MAX)
		return TOPO_NONE;
	memcpy(key, name, size);
	entry = dsf_hash_get(&d->names, key);
	return entry == NULL ? TOPO_NONE : entry->index;
}

int64_t topo_draft_link(struct topo_draft *d, enum topo_link_kind kind,
	const struct topo_settings *settings, struct topo_draft_end a, struct topo_draft_end b,
	struct topo_origin origin)
{
	const uint64_t *v = settings->value;

	if (d->links_count == TOPO_LINKS_MAX)
		return topo_draft_fail(
			d, origin, NULL, "too many links: a lab has at most %u", TOPO_LINKS_MAX);
	if (d->links_count == d->links_cap &&
		!grow((void **)&d->links, &d->links_cap, sizeof(*d->links)))
		return -DSF_E_NOMEM;
	if (v[TOPO_SETTING_ECN_MIN_BYTES] > v[TOPO_SETTING_ECN_MAX_BYTES])
		return topo_draft_fail(d, origin, "ecn_min_bytes",
			"ecn_min_bytes %llu is above ecn_max_bytes %llu",
			(unsigned long long)v[TOPO_SETTING_ECN_MIN_BYTES],
			(unsigned long long)v[TOPO_SETTING_ECN_MAX_BYTES]);
	d->links[d->links_count] = (struct topo_draft_link){
		.link = {
			.kind = kind,
			.rate_bps = v[TOPO_SETTING_RATE],
			.delay_ns = v[TOPO_SETTING_DELAY],
			.jitter_ns = v[TOPO_SETTING_JITTER],
			.loss_ppm = (uint32_t)v[TOPO_SETTING_LOSS],
			.corrupt_ppm = (uint32_t)v[TOPO_SETTING_CORRUPT],
			.queue_bytes = (uint32_t)v[TOPO_SETTING_QUEUE_BYTES],
			.ecn_min_bytes = (uint32_t)v[TOPO_SETTING_ECN_MIN_BYTES],
			.ecn_max_bytes = (uint32_t)v[TOPO_SETTING_ECN_MAX_BYTES],
			.mtu = (uint32_t)v[TOPO_SETTING_MTU],
			.hyperport = v[TOPO_SETTING_HYPERPORT] != 0,
		},
		.end = { a, b },
		.expected = { b, a },
		.origin = origin,
	};
	return d->links_count++;
}

/* The child of an object by key or of an array by number; NULL when it isn't there. */
static const cJSON *child_of(const cJSON *parent, const char *key, uint32_t number, uint32_t *child)
{
	const cJSON *c = parent->child;

	for (*child = 0; c != NULL; c = c->next, ++*child) {
		if (key != NULL ? strcmp(c->string, key) == 0 : *child == number)
			break;
	}
	return c;
}

#define ORIGIN_STEPS_MAX 5

struct origin_step {
	const char *key; /* NULL: number */
	uint32_t number;
};

static uint32_t origin_steps(struct topo_origin o, struct origin_step *steps)
{
	uint32_t count = 0;

	switch (o.kind) {
	case TOPO_ORIGIN_NODE:
		steps[count++].key = "nodes";
		steps[count++].number = o.a;
		break;
	case TOPO_ORIGIN_LINK:
		steps[count++].key = "links";
		steps[count++].number = o.a;
		break;
	case TOPO_ORIGIN_ZONE:
	case TOPO_ORIGIN_EDGE:
	case TOPO_ORIGIN_BUILDING:
		steps[count++].key = "buildings";
		steps[count++].number = o.a;
		if (o.kind == TOPO_ORIGIN_ZONE) {
			steps[count++].key = "zones";
			steps[count++].number = o.b;
		} else if (o.kind == TOPO_ORIGIN_EDGE) {
			steps[count++].key = "edge";
		}
		break;
	case TOPO_ORIGIN_SUPERSPINE: steps[count++].key = "superspine"; break;
	case TOPO_ORIGIN_FABRIC: steps[count++].key = "fabric"; break;
	}
	return count;
}

int topo_draft_fail(const struct topo_draft *d, struct topo_origin origin, const char *key,
	const char *format, ...)
{
	struct origin_step steps[ORIGIN_STEPS_MAX] = { { NULL, 0 } };
	struct topo_path path[ORIGIN_STEPS_MAX + 1];
	uint32_t count = origin_steps(origin, steps), depth = 0;
	char text[TOPO_ERROR_TEXT_MAX];
	va_list args;

	if (key != NULL)
		steps[count++].key = key;
	path[0] = d->top;
	for (; depth < count; depth++) {
		struct topo_path *below = &path[depth + 1];

		below->up = &path[depth];
		below->item = child_of(
			path[depth].item, steps[depth].key, steps[depth].number, &below->child);
		if (below->item == NULL)
			break; /* the key is left out: its object stands for it */
	}
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return topo_fail(d->reader, &path[depth], NULL, "%s", text);
}

void topo_draft_port_name(const struct topo_draft_end *end, char name[TOPO_PORT_NAME_MAX + 1])
{
	switch (end->class) {
	case TOPO_PORT_GPU:
		snprintf(name, TOPO_PORT_NAME_MAX + 1, "gpu%up%u", end->ordinal % 1000,
			end->plane % 1000);
		break;
	case TOPO_PORT_ETH: snprintf(name, TOPO_PORT_NAME_MAX + 1, "eth%u", end->ordinal); break;
	case TOPO_PORT_FAB: snprintf(name, TOPO_PORT_NAME_MAX + 1, "fab%u", end->ordinal); break;
	}
}
