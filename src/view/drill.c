#include "view/drill.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "view/json.h"
#include "view/table.h"

#define DETAIL_MAX (VIEW_DRILL_BREACH_MAX + 64)

const char *view_drill_verdict_name(enum node_drill_verdict verdict)
{
	switch (verdict) {
	case NODE_DRILL_HELD: return "held";
	case NODE_DRILL_BROKEN: return "broken";
	case NODE_DRILL_UNKNOWN: return "unknown";
	}
	return "unknown";
}

static const char *state_name(uint64_t state)
{
	switch ((enum node_drill_state)state) {
	case NODE_DRILL_RUNNING: return "running";
	case NODE_DRILL_FROZEN: return "frozen";
	case NODE_DRILL_DEAD: return "dead";
	}
	return "unknown";
}

static const char *counter_name(uint32_t counter)
{
	static const char *const names[NODE_DRILL_COUNTERS] = {
		[NODE_DRILL_IMPAIRED] = "impaired_drops",
		[NODE_DRILL_CORRUPT] = "corrupt_drops",
		[NODE_DRILL_LINK_DOWN] = "fabric_link_down_dropped",
		[NODE_DRILL_EGRESS] = "egress_drops",
		[NODE_DRILL_UNREACHABLE] = "fabric_unreachable_dropped",
		[NODE_DRILL_REASSEMBLY] = "reassembly_errors",
		[NODE_DRILL_WATCHDOG] = "watchdog_drops",
		[NODE_DRILL_LOST_CELLS] = "cells_lost",
		[NODE_DRILL_FABRIC] = "fabric_drops",
	};

	return counter < NODE_DRILL_COUNTERS ? names[counter] : "drops";
}

static const char *yes(uint64_t value)
{
	return value ? "yes" : "no";
}

/* "h0:gpu1" of a rank. */
static const char *rank_name(const struct topo *t, uint32_t rank, char *text, size_t size)
{
	struct topo_endpoint e = topo_endpoint(t, rank);

	snprintf(text, size, "%s:gpu%" PRIu32, t->nodes[e.host].name, e.rail);
	return text;
}

/* Breaches of links, nodes and reachability. False: it is another kind. */
static bool place_breach(const struct topo *t, const struct node_drill_breach *b, char *text)
{
	const char *node = t->nodes[b->node].name, *port = t->ports[b->port].name;
	const char *peer = t->nodes[t->ports[t->ports[b->port].peer].node].name;
	const char *other = t->nodes[b->other].name;
	size_t size = VIEW_DRILL_BREACH_MAX;

	switch (b->kind) {
	case NODE_DRILL_NO_ANSWER: snprintf(text, size, "%s gives no answer", node); return true;
	case NODE_DRILL_NODE_STATE:
		snprintf(text, size, "%s is %s, has to be %s", node, state_name(b->got),
			state_name(b->want));
		return true;
	case NODE_DRILL_ASKED:
		snprintf(text, size,
			"%s:%s is asked to be %s, impaired or drained, and not by the drill", node,
			port, b->got ? "down" : "up");
		return true;
	case NODE_DRILL_CARRIER:
		snprintf(text, size, "%s:%s to %s: carrier %s, has to be %s", node, port, peer,
			yes(b->got), yes(b->want));
		return true;
	case NODE_DRILL_LIVE:
		snprintf(text, size, "%s:%s to %s: live %s, has to be %s", node, port, peer,
			yes(b->got), yes(b->want));
		return true;
	case NODE_DRILL_ACTIVE:
		snprintf(text, size, "%s:%s to %s: active %s, has to be %s", node, port, peer,
			yes(b->got), yes(b->want));
		return true;
	case NODE_DRILL_ENDS:
		snprintf(text, size, "%s:%s to %s: live %s at this end, %s at the other", node,
			port, peer, yes(b->got), yes(b->want));
		return true;
	case NODE_DRILL_REACH:
		snprintf(text, size, "%s:%s to %s: reaches %s %s, has to be %s", node, port, peer,
			other, yes(b->got), yes(b->want));
		return true;
	case NODE_DRILL_NOTHING:
	case NODE_DRILL_DROP:
	case NODE_DRILL_CELLS_LINK:
	case NODE_DRILL_CELLS_NODE:
	case NODE_DRILL_QUEUE:
	case NODE_DRILL_WRONG_BYTES:
	case NODE_DRILL_MESSAGES:
	case NODE_DRILL_LOST:
	case NODE_DRILL_UNFINISHED: break;
	}
	return false;
}

static void count_breach(const struct topo *t, const struct node_drill_breach *b, char *text)
{
	char from[TOPO_NODE_NAME_MAX + 16], to[TOPO_NODE_NAME_MAX + 16];
	const char *node = t->nodes[b->node].name, *port = t->ports[b->port].name;
	size_t size = VIEW_DRILL_BREACH_MAX;
	bool flow = b->kind >= NODE_DRILL_WRONG_BYTES;

	if (flow) {
		rank_name(t, b->source, from, sizeof(from));
		rank_name(t, b->target, to, sizeof(to));
	}
	if (b->kind == NODE_DRILL_DROP)
		snprintf(text, size, "%s: %s rose by %" PRIu64 " and no fault explains it", node,
			counter_name(b->counter), b->got);
	else if (b->kind == NODE_DRILL_CELLS_LINK)
		snprintf(text, size, "%s:%s: %" PRIu64 " cells went in, %" PRIu64 " came out at %s",
			node, port, b->want, b->got,
			t->nodes[t->ports[t->ports[b->port].peer].node].name);
	else if (b->kind == NODE_DRILL_CELLS_NODE)
		snprintf(text, size,
			"%s: %" PRIu64 " cells went in, %" PRIu64 " came out or were counted", node,
			b->want, b->got);
	else if (b->kind == NODE_DRILL_QUEUE)
		snprintf(text, size,
			"%s:%s: %s was told to stop %" PRIu64
			" times by a full queue, long after the last change",
			node, port, t->nodes[t->ports[t->ports[b->port].peer].node].name, b->got);
	else if (b->kind == NODE_DRILL_WRONG_BYTES)
		snprintf(text, size, "%s to %s: %" PRIu64 " wrong bytes", from, to, b->got);
	else if (b->kind == NODE_DRILL_MESSAGES)
		snprintf(text, size,
			"%s to %s: %" PRIu64 " messages completed, %" PRIu64 " arrived", from, to,
			b->want, b->got);
	else if (b->kind == NODE_DRILL_LOST)
		snprintf(text, size,
			"%s to %s: %" PRIu64 " messages failed though there was always a way", from,
			to, b->got);
	else if (b->kind == NODE_DRILL_UNFINISHED)
		snprintf(text, size,
			"%s to %s: not at its end in time: %" PRIu64 " messages completed, %" PRIu64
			" arrived",
			from, to, b->want, b->got);
}

char *view_drill_breach(const struct topo *t, const struct node_drill_breach *b, char *text)
{
	text[0] = '\0';
	if (!place_breach(t, b, text))
		count_breach(t, b, text);
	return text;
}

static void hold_detail(
	const struct node_drill *d, enum topo_drill_invariant invariant, char *text, size_t size)
{
	uint32_t followed = node_drill_convergences(d), changes = node_drill_changes(d);

	text[0] = '\0';
	if (invariant == TOPO_DRILL_DELIVERY)
		snprintf(text, size, "%" PRIu64 " messages", node_drill_messages(d));
	else if (invariant != TOPO_DRILL_REACHABILITY && invariant != TOPO_DRILL_LINKS)
		return;
	else if (followed >= changes)
		snprintf(text, size, "as it had to be after %" PRIu32 " changes", changes);
	else
		snprintf(text, size,
			"as it had to be after %" PRIu32 " of %" PRIu32
			" changes; it wasn't seen to settle between the others",
			followed, changes);
}

static cJSON *invariants(const struct topo *t, const struct node_drill *d)
{
	cJSON *array = cJSON_CreateArray();

	for (uint32_t i = 0; array != NULL && i < TOPO_DRILL_INVARIANTS; i++) {
		struct node_drill_result r;
		char detail[DETAIL_MAX], breach[VIEW_DRILL_BREACH_MAX];
		cJSON *o;

		node_drill_result(d, (enum topo_drill_invariant)i, &r);
		if (!r.checked)
			continue;
		hold_detail(d, (enum topo_drill_invariant)i, detail, sizeof(detail));
		if (!r.held)
			snprintf(detail, sizeof(detail), "at %.1f us: %s",
				(double)r.breach.at.ns / 1e3,
				view_drill_breach(t, &r.breach, breach));
		o = cJSON_CreateObject();
		if (o == NULL ||
			!view_json_add_text(o, "name",
				topo_drill_invariant_name((enum topo_drill_invariant)i)) ||
			!view_json_add_bool(o, "held", r.held) ||
			!view_json_add_text(o, "detail", detail)) {
			cJSON_Delete(o);
			cJSON_Delete(array);
			return NULL;
		}
		if (!view_json_append(array, o)) {
			cJSON_Delete(array);
			return NULL;
		}
	}
	return array;
}

struct page {
	char *text;
	size_t size, cap;
	bool failed;
};

static void add(struct page *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* What the kind alone doesn't say, for people: "loss 5 %, silent". */
static char *what_text(const struct topo_drill_fault *f)
{
	const struct topo_drill_impairment *i = &f->impairment;
	struct page p = { NULL, 0, 0, false };

	if (f->flaps > 0)
		add(&p, ", %" PRIu32 " times", f->flaps);
	if (i->silent)
		add(&p, ", silent");
	if (i->loss_ppm > 0)
		add(&p, ", loss %.4g %%", i->loss_ppm / 1e4);
	if (i->corrupt_ppm > 0)
		add(&p, ", corrupt %.4g %%", i->corrupt_ppm / 1e4);
	if (i->reorder_ppm > 0)
		add(&p, ", reorder %.4g %%", i->reorder_ppm / 1e4);
	if (i->delay_ns > 0)
		add(&p, ", delay %.4g us", (double)i->delay_ns / 1e3);
	if (i->jitter_ns > 0)
		add(&p, ", jitter %.4g us", (double)i->jitter_ns / 1e3);
	if (i->rate_bps > 0)
		add(&p, ", rate %.4g Gbit/s", (double)i->rate_bps / 1e9);
	return p.text;
}

static bool add_impairment(cJSON *o, const struct topo_drill_fault *f)
{
	const struct topo_drill_impairment *i = &f->impairment;
	const struct {
		const char *key;
		uint64_t value;
	} numbers[] = { { "flaps", f->flaps }, { "period_ns", f->period_ns },
		{ "loss_ppm", i->loss_ppm }, { "corrupt_ppm", i->corrupt_ppm },
		{ "reorder_ppm", i->reorder_ppm }, { "delay_ns", i->delay_ns },
		{ "jitter_ns", i->jitter_ns }, { "rate_bps", i->rate_bps } };

	for (size_t n = 0; n < sizeof(numbers) / sizeof(numbers[0]); n++)
		if (numbers[n].value > 0 && !view_json_add_u64(o, numbers[n].key, numbers[n].value))
			return false;
	return !i->silent || view_json_add_bool(o, "silent", true);
}

static cJSON *faults(const struct topo *t, const struct topo_drill *drill)
{
	cJSON *array = cJSON_CreateArray();
	char target[TOPO_DRILL_TARGET_MAX];

	for (uint32_t i = 0; array != NULL && i < drill->faults_count; i++) {
		const struct topo_drill_fault *f = &drill->faults[i];
		cJSON *o = cJSON_CreateObject();
		char *what = what_text(f);
		bool made = o != NULL && view_json_add_u64(o, "at_ns", f->at_ns) &&
			    view_json_add_u64(o, "for_ns", f->for_ns) &&
			    view_json_add_text(o, "kind", topo_drill_kind_name(f->kind)) &&
			    view_json_add_text(o, "target", topo_drill_target(t, f, target)) &&
			    view_json_add_text(o, "what", what != NULL ? what + 2 : NULL) &&
			    add_impairment(o, f);

		free(what);
		if (!made)
			cJSON_Delete(o);
		if (!made || !view_json_append(array, o)) {
			cJSON_Delete(array);
			return NULL;
		}
	}
	return array;
}

static cJSON *convergence(const struct node_drill *d)
{
	cJSON *o = cJSON_CreateObject();
	uint64_t p50, max;

	node_drill_convergence(d, &p50, &max);
	if (o != NULL && view_json_add_u64(o, "p50", p50) && view_json_add_u64(o, "max", max))
		return o;
	cJSON_Delete(o);
	return NULL;
}

cJSON *view_drill_json(const struct topo *t, const struct topo_drill *drill,
	const struct node_drill *d, const struct view_fidelity *fidelity)
{
	cJSON *o = cJSON_CreateObject();
	/* In parts per million of the file's instants. */
	uint64_t stretch = node_drill_stretch(d, 1000000);

	if (o != NULL && view_json_add_text(o, "drill", drill->name) &&
		view_json_add_u64(o, "seed", drill->seed) &&
		view_json_add(o, "faults", faults(t, drill)) &&
		view_json_add(o, "invariants", invariants(t, d)) &&
		view_json_add(o, "convergence_ns", convergence(d)) &&
		view_json_add_u64(o, "changes", node_drill_convergences(d)) &&
		view_json_add_u64(o, "changes_made", node_drill_changes(d)) &&
		view_json_add_u64(o, "settle_ns", node_drill_settle_ns(d)) &&
		view_json_add(o, "stretch", cJSON_CreateNumber((double)stretch / 1e6)) &&
		view_json_add_u64(o, "messages", node_drill_messages(d)) &&
		view_json_add_bool(o, "interrupted", node_drill_interrupted(d)) &&
		view_json_add(o, "fidelity", view_report_fidelity(fidelity)) &&
		view_json_add_text(o, "verdict",
			view_drill_verdict_name(node_drill_verdict(d, fidelity->valid))))
		return o;
	cJSON_Delete(o);
	return NULL;
}

/* The page. */

static void add(struct page *p, const char *format, ...)
{
	va_list args;
	int size;

	va_start(args, format);
	size = vsnprintf(NULL, 0, format, args);
	va_end(args);
	if (size < 0 || p->failed)
		return;
	if (p->size + (size_t)size + 1 > p->cap) {
		size_t cap = 2 * p->cap + (size_t)size + 1024;
		char *grown = realloc(p->text, cap);

		p->failed = grown == NULL;
		if (p->failed)
			return;
		p->text = grown;
		p->cap = cap;
	}
	va_start(args, format);
	vsnprintf(p->text + p->size, p->cap - p->size, format, args);
	va_end(args);
	p->size += (size_t)size;
}

static bool is_true(const cJSON *o, const char *key)
{
	return cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(o, key));
}

static void add_verdict(struct page *p, const cJSON *result)
{
	const cJSON *fidelity = cJSON_GetObjectItemCaseSensitive(result, "fidelity");
	const char *verdict = view_json_text(result, "verdict");

	if (is_true(result, "interrupted"))
		add(p, "verdict      %s: it was interrupted; everything is healed\n", verdict);
	else if (!is_true(fidelity, "valid"))
		add(p,
			"verdict      %s: this machine was too slow for what it saw to count (p99 "
			"lateness %.3g us, %" PRIu64 " emulator drops); try time dilation %" PRIu64
			"\n",
			verdict, (double)view_json_u64(fidelity, "late_p99_ns") / 1e3,
			view_json_u64(fidelity, "emulator_drops"),
			view_json_u64(fidelity, "suggested_time_dilation"));
	else
		add(p, "verdict      %s\n", verdict);
}

char *view_drill_text(const cJSON *result)
{
	static const struct view_table_column columns[] = {
		{ "AT", "at_ns", VIEW_TABLE_TIME },
		{ "FOR", "for_ns", VIEW_TABLE_TIME },
		{ "KIND", "kind", VIEW_TABLE_PLAIN },
		{ "TARGET", "target", VIEW_TABLE_PLAIN },
		{ "WHAT", "what", VIEW_TABLE_PLAIN },
	};
	const cJSON *list = cJSON_GetObjectItemCaseSensitive(result, "faults");
	const cJSON *times = cJSON_GetObjectItemCaseSensitive(result, "convergence_ns"), *row;
	char *table = view_table_text(list, columns, sizeof(columns) / sizeof(columns[0]));
	struct page p = { NULL, 0, 0, table == NULL };

	add(&p, "drill        %s, seed %" PRIu64 ", %d faults\n\n%s\n",
		view_json_text(result, "drill"), view_json_u64(result, "seed"),
		cJSON_GetArraySize(list), table);
	cJSON_ArrayForEach(row, cJSON_GetObjectItemCaseSensitive(result, "invariants"))
	{
		const char *detail = view_json_text(row, "detail");

		add(&p, "%-14s %s%s%s\n", view_json_text(row, "name"),
			is_true(row, "held") ? "held" : "BROKEN", detail[0] != '\0' ? ": " : "",
			detail);
	}
	add(&p,
		"\nconvergence  p50 %.4g us, max %.4g us after %" PRIu64 " of %" PRIu64
		" changes\n",
		(double)view_json_u64(times, "p50") / 1e3,
		(double)view_json_u64(times, "max") / 1e3, view_json_u64(result, "changes"),
		view_json_u64(result, "changes_made"));
	add_verdict(&p, result);
	free(table);
	if (!p.failed)
		return p.text;
	free(p.text);
	return NULL;
}
