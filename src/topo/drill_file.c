#include <stdlib.h>
#include <string.h>
#include "base/err.h"
#include "base/rng.h"
#include "topo/drill.h"
#include "topo/drill_keys.h"

#define RNG_KIND   0x616e79ull /* "any": targets' streams */
#define TRIES      256u        /* to draw a target that is free at that time */
#define SIZE_BYTES (1u << 18)  /* of a message: some in flight at once, soon at their end */

struct reading {
	struct topo_reader reader;
	const struct topo *topo;
	struct topo_drill *drill;
};

/* The name: as it will stand in reports. */
static int read_name(struct reading *r, const struct topo_path *top, const struct topo_slot *slot)
{
	const char *name = slot->item->valuestring;

	if (name[0] == '\0' || strlen(name) > TOPO_DRILL_NAME_MAX ||
		strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_") != strlen(name))
		return topo_fail(&r->reader, top, slot,
			"must be 1 to %d characters of a-z, 0-9, - and _", TOPO_DRILL_NAME_MAX);
	memcpy(r->drill->name, name, strlen(name) + 1);
	return 0;
}

static int read_workload(
	struct reading *r, const struct topo_path *top, const struct topo_slot *slot)
{
	struct topo_path path = { .up = top, .item = slot->item, .child = slot->child };
	const struct topo_key *keys = topo_drill_keys_workload.keys;
	struct topo_slot slots[TOPO_DRILL_WORKLOAD_COUNT];
	struct topo_drill *d = r->drill;
	const char *hosts;
	int err = topo_read(&r->reader, &path, &topo_drill_keys_workload, slots);

	if (err < 0)
		return err;
	d->workload_kind =
		keys[TOPO_DRILL_WORKLOAD_KIND].words[slots[TOPO_DRILL_WORKLOAD_KIND].number];
	d->workload_scope = "cross-rdsw";
	if (slots[TOPO_DRILL_WORKLOAD_SCOPE].given)
		d->workload_scope = keys[TOPO_DRILL_WORKLOAD_SCOPE]
					    .words[slots[TOPO_DRILL_WORKLOAD_SCOPE].number];
	d->workload_bytes = slots[TOPO_DRILL_WORKLOAD_SIZE].given
				    ? slots[TOPO_DRILL_WORKLOAD_SIZE].number
				    : SIZE_BYTES;
	if (!slots[TOPO_DRILL_WORKLOAD_HOSTS].given)
		return 0;
	hosts = slots[TOPO_DRILL_WORKLOAD_HOSTS].item->valuestring;
	d->hosts = malloc(strlen(hosts) + 1);
	if (d->hosts == NULL)
		return -DSF_E_NOMEM;
	memcpy(d->hosts, hosts, strlen(hosts) + 1);
	return 0;
}

static int read_hold(struct reading *r, const struct topo_path *top, const struct topo_slot *slot)
{
	struct topo_path array = { .up = top, .item = slot->item, .child = slot->child };
	uint32_t child = 0;

	r->drill->hold = 0;
	for (const cJSON *item = slot->item->child; item != NULL; item = item->next, child++) {
		struct topo_path path = { .up = &array, .item = item, .child = child };
		uint32_t word = 0;

		while (topo_drill_hold_words[word] != NULL &&
			!(cJSON_IsString(item) &&
				strcmp(item->valuestring, topo_drill_hold_words[word]) == 0))
			word++;
		if (topo_drill_hold_words[word] == NULL)
			return topo_fail(&r->reader, &path, NULL,
				"must be one of links, reachability, drops, cells, delivery, "
				"queues");
		r->drill->hold |= 1u << (TOPO_DRILL_LINKS + word);
	}
	return 0;
}

/* Faults. */

static bool any_impairment(const struct topo_slot *slots)
{
	for (uint32_t i = TOPO_DRILL_FAULT_LOSS; i <= TOPO_DRILL_FAULT_SILENT; i++)
		if (slots[i].given)
			return true;
	return false;
}

/* What goes with the kind, and what doesn't. */
static int check_fault(struct reading *r, const struct topo_path *path,
	const struct topo_slot *slots, enum topo_drill_kind kind)
{
	const char *name = topo_drill_kind_name(kind);
	bool flap = kind == TOPO_DRILL_LINK_FLAP, impair = kind == TOPO_DRILL_LINK_IMPAIR;

	if (flap && !slots[TOPO_DRILL_FAULT_PERIOD].given)
		return topo_fail(&r->reader, path, NULL,
			"key \"period\" is missing: from one down "
			"of the flap to the next");
	if (!flap && !slots[TOPO_DRILL_FAULT_FOR].given)
		return topo_fail(&r->reader, path, NULL,
			"key \"for\" is missing: every fault of a drill is healed");
	if (flap && slots[TOPO_DRILL_FAULT_FOR].given)
		return topo_fail(&r->reader, path, &slots[TOPO_DRILL_FAULT_FOR],
			"%s lasts count times period: leave \"for\" out", name);
	for (uint32_t i = TOPO_DRILL_FAULT_COUNT_OF; i <= TOPO_DRILL_FAULT_PERIOD && !flap; i++)
		if (slots[i].given)
			return topo_fail(
				&r->reader, path, &slots[i], "is for link flap, not %s", name);
	for (uint32_t i = TOPO_DRILL_FAULT_LOSS; i <= TOPO_DRILL_FAULT_SILENT && !impair; i++)
		if (slots[i].given)
			return topo_fail(
				&r->reader, path, &slots[i], "is for link impair, not %s", name);
	if (impair && !any_impairment(slots))
		return topo_fail(&r->reader, path, NULL,
			"link impair needs at least one of loss, corrupt, reorder, delay, jitter, "
			"rate, silent");
	return 0;
}

static uint64_t number(const struct topo_slot *slot, uint64_t otherwise)
{
	return slot->given ? slot->number : otherwise;
}

static void take_fault(struct topo_drill_fault *f, const struct topo_slot *slots)
{
	f->kind = (enum topo_drill_kind)slots[TOPO_DRILL_FAULT_KIND].number;
	f->at_ns = slots[TOPO_DRILL_FAULT_AT].number;
	f->for_ns = number(&slots[TOPO_DRILL_FAULT_FOR], 0);
	f->port = f->node = TOPO_NONE;
	if (f->kind == TOPO_DRILL_LINK_FLAP) {
		f->flaps = (uint32_t)number(&slots[TOPO_DRILL_FAULT_COUNT_OF], 5);
		f->period_ns = slots[TOPO_DRILL_FAULT_PERIOD].number;
		f->for_ns = f->flaps * f->period_ns;
	}
	f->impairment = (struct topo_drill_impairment){
		.loss_ppm = (uint32_t)number(&slots[TOPO_DRILL_FAULT_LOSS], 0),
		.corrupt_ppm = (uint32_t)number(&slots[TOPO_DRILL_FAULT_CORRUPT], 0),
		.reorder_ppm = (uint32_t)number(&slots[TOPO_DRILL_FAULT_REORDER], 0),
		.delay_ns = number(&slots[TOPO_DRILL_FAULT_DELAY], 0),
		.jitter_ns = number(&slots[TOPO_DRILL_FAULT_JITTER], 0),
		.rate_bps = number(&slots[TOPO_DRILL_FAULT_RATE], 0),
		.silent = number(&slots[TOPO_DRILL_FAULT_SILENT], 0) != 0,
	};
}

/* Targets. */

static bool link_is(const struct topo *t, uint32_t link, const char *kind)
{
	return strcmp(topo_link_kind_name(t->links[link].kind), kind) == 0;
}

static bool node_is(const struct topo *t, uint32_t node, const char *role)
{
	return t->nodes[node].role != TOPO_ROLE_EXTERNAL &&
	       strcmp(topo_role_name(t->nodes[node].role), role) == 0;
}

static bool may_be(
	const struct topo *t, const struct topo_drill_fault *f, uint32_t i, const char *kind)
{
	return topo_drill_kind_is_link(f->kind) ? link_is(t, i, kind) : node_is(t, i, kind);
}

/* Only what carries cells can be drained; of anything else every fault may be. */
static bool fits(const struct topo *t, const struct topo_drill_fault *f)
{
	if (f->kind == TOPO_DRILL_LINK_DRAIN)
		return !t->ports[f->port].ethernet;
	return f->kind != TOPO_DRILL_NODE_DRAIN || t->nodes[f->node].switch_index != TOPO_NONE;
}

/* Draws a target of a kind that is free while f lasts. False: there is none, or none was found. */
static bool draw_target(
	struct reading *r, struct topo_drill_fault *f, uint32_t index, const char *kind)
{
	const struct topo *t = r->topo;
	bool link = topo_drill_kind_is_link(f->kind);
	uint32_t all = link ? t->links_count : t->nodes_count, count = 0;
	struct dsf_rng rng;

	dsf_rng_fork(&rng, r->drill->seed, RNG_KIND, index);
	for (uint32_t i = 0; i < all; i++)
		count += may_be(t, f, i, kind);
	for (uint32_t tries = 0; count > 0 && tries < TRIES; tries++) {
		uint32_t pick = (uint32_t)dsf_rng_below(&rng, count), i = 0;
		bool far = dsf_rng_below(&rng, 2) == 1;

		for (; i < all; i++)
			if (may_be(t, f, i, kind) && pick-- == 0)
				break;
		if (link)
			f->port = far ? t->links[i].port_b : t->links[i].port_a;
		else
			f->node = i;
		if (fits(t, f) && !topo_drill_collides(t, r->drill, f))
			return true;
	}
	f->port = f->node = TOPO_NONE;
	return false;
}

static int find_target(struct reading *r, const struct topo_path *path,
	const struct topo_slot *slot, uint32_t index, bool draw)
{
	struct topo_drill_fault *f = &r->drill->faults[index];
	bool link = topo_drill_kind_is_link(f->kind);
	const char *name = slot->item->valuestring;
	struct topo_quote quote;

	if ((strncmp(name, "any ", 4) == 0) != draw)
		return 0;
	topo_quote(&quote, name, strlen(name));
	if (draw)
		return draw_target(r, f, index, name + 4)
			       ? 0
			       : topo_fail(&r->reader, path, slot,
					 "%s: lab %s has no such %s that is free at that time",
					 quote.text, r->topo->name, link ? "link" : "node");
	if (link)
		f->port = topo_find_port(r->topo, name);
	else
		f->node = topo_find_node(r->topo, name);
	if (link ? f->port == TOPO_NONE : f->node == TOPO_NONE)
		return topo_fail(&r->reader, path, slot, "%s: lab %s has no such %s, want %s",
			quote.text, r->topo->name, link ? "link" : "node",
			link ? "NODE:IF of one of its ends, or \"any fabric\""
			     : "its name, or \"any rdsw\"");
	if (!link && r->topo->nodes[f->node].role == TOPO_ROLE_EXTERNAL)
		return topo_fail(&r->reader, path, slot,
			"%s: an external node has no process of ours", quote.text);
	if (!fits(r->topo, f))
		return topo_fail(&r->reader, path, slot,
			"%s: only switches of a cell fabric and their fabric links are drained",
			quote.text);
	if (topo_drill_collides(r->topo, r->drill, f))
		return topo_fail(&r->reader, path, slot,
			"%s: another fault has it at the same time", quote.text);
	return 0;
}

static int read_faults(struct reading *r, const struct topo_path *array)
{
	struct topo_slot slots[TOPO_DRILL_FAULT_KEYS];
	uint32_t child = 0;
	int err = 0;

	for (const cJSON *item = array->item->child; item != NULL && err == 0;
		item = item->next, child++) {
		struct topo_path path = { .up = array, .item = item, .child = child };

		err = topo_read(&r->reader, &path, &topo_drill_keys_fault, slots);
		if (err == 0)
			err = check_fault(r, &path, slots,
				(enum topo_drill_kind)slots[TOPO_DRILL_FAULT_KIND].number);
		if (err < 0)
			return err;
		take_fault(&r->drill->faults[child], slots);
		r->drill->faults_count = child + 1;
		err = find_target(r, &path, &slots[TOPO_DRILL_FAULT_TARGET], child, false);
	}
	/* Draws avoid what is named anywhere in the file. */
	child = 0;
	for (const cJSON *item = array->item->child; item != NULL && err == 0;
		item = item->next, child++) {
		struct topo_path path = { .up = array, .item = item, .child = child };

		err = topo_read(&r->reader, &path, &topo_drill_keys_fault, slots);
		if (err == 0)
			err = find_target(r, &path, &slots[TOPO_DRILL_FAULT_TARGET], child, true);
	}
	return err;
}

static int read_top(struct reading *r, const struct topo_path *top)
{
	struct topo_slot slots[TOPO_DRILL_KEY_COUNT];
	const struct topo_slot *faults = &slots[TOPO_DRILL_KEY_FAULTS];
	struct topo_path array = { .up = top };
	struct topo_drill *d = r->drill;
	int err = topo_read_duplicates(&r->reader, top);

	if (err == 0)
		err = topo_read(&r->reader, top, &topo_drill_keys_top, slots);
	if (err == 0)
		err = read_name(r, top, &slots[TOPO_DRILL_KEY_NAME]);
	if (err == 0 && slots[TOPO_DRILL_KEY_WORKLOAD].given)
		err = read_workload(r, top, &slots[TOPO_DRILL_KEY_WORKLOAD]);
	if (err == 0 && slots[TOPO_DRILL_KEY_HOLD].given)
		err = read_hold(r, top, &slots[TOPO_DRILL_KEY_HOLD]);
	if (err < 0)
		return err;
	d->seed = number(&slots[TOPO_DRILL_KEY_SEED], 1);
	d->settle_ns = number(&slots[TOPO_DRILL_KEY_SETTLE], TOPO_AUTO);
	d->finish_ns = number(&slots[TOPO_DRILL_KEY_FINISH], TOPO_AUTO);
	d->settle_ns = d->settle_ns == TOPO_AUTO ? 0 : d->settle_ns;
	d->finish_ns = d->finish_ns == TOPO_AUTO ? 0 : d->finish_ns;
	d->hold |= 1u << TOPO_DRILL_STEADY_BEFORE | 1u << TOPO_DRILL_STEADY_AFTER;
	d->faults = calloc((size_t)cJSON_GetArraySize(faults->item), sizeof(*d->faults));
	if (d->faults == NULL)
		return -DSF_E_NOMEM;
	array.item = faults->item;
	array.child = faults->child;
	err = read_faults(r, &array);
	if (err == 0)
		topo_drill_sort(d);
	return err;
}

int topo_drill_load(const char *text, size_t size, const char *file_name, const struct topo *t,
	struct topo_drill **out, struct topo_error *err)
{
	struct reading r = { .reader = { .text = text, .size = size, .err = err }, .topo = t };
	struct topo_path top = { .up = NULL };
	cJSON *root;
	int code = topo_read_text(&r.reader, file_name, &root);

	*out = NULL;
	if (code < 0)
		return code;
	r.drill = calloc(1, sizeof(*r.drill));
	top.item = root;
	if (r.drill == NULL) {
		code = -DSF_E_NOMEM;
	} else {
		r.drill->hold = (1u << TOPO_DRILL_INVARIANTS) - 1;
		code = read_top(&r, &top);
	}
	cJSON_Delete(root);
	if (code == 0) {
		*out = r.drill;
		return 0;
	}
	if (code == -DSF_E_NOMEM)
		topo_fail(&r.reader, &(struct topo_path){ .up = NULL }, NULL, "%s",
			dsf_err_text(code));
	topo_drill_free(r.drill);
	return code;
}
