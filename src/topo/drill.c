#include "topo/drill.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const kind_names[] = {
	[TOPO_DRILL_LINK_DOWN] = "link down",
	[TOPO_DRILL_LINK_FLAP] = "link flap",
	[TOPO_DRILL_LINK_IMPAIR] = "link impair",
	[TOPO_DRILL_LINK_DRAIN] = "link drain",
	[TOPO_DRILL_NODE_STOP] = "node stop",
	[TOPO_DRILL_NODE_KILL] = "node kill",
	[TOPO_DRILL_NODE_FREEZE] = "node freeze",
	[TOPO_DRILL_NODE_DRAIN] = "node drain",
};

const char *topo_drill_kind_name(enum topo_drill_kind kind)
{
	return kind_names[kind];
}

static const char *const invariant_names[TOPO_DRILL_INVARIANTS] = {
	[TOPO_DRILL_STEADY_BEFORE] = "steady_before",
	[TOPO_DRILL_LINKS] = "links",
	[TOPO_DRILL_REACHABILITY] = "reachability",
	[TOPO_DRILL_DROPS] = "drops",
	[TOPO_DRILL_CELLS] = "cells",
	[TOPO_DRILL_DELIVERY] = "delivery",
	[TOPO_DRILL_QUEUES] = "queues",
	[TOPO_DRILL_STEADY_AFTER] = "steady_after",
};

const char *topo_drill_invariant_name(enum topo_drill_invariant invariant)
{
	return invariant_names[invariant];
}

char *topo_drill_target(const struct topo *t, const struct topo_drill_fault *f, char *text)
{
	if (topo_drill_kind_is_link(f->kind))
		snprintf(text, TOPO_DRILL_TARGET_MAX, "%s:%s",
			t->nodes[t->ports[f->port].node].name, t->ports[f->port].name);
	else
		snprintf(text, TOPO_DRILL_TARGET_MAX, "%s", t->nodes[f->node].name);
	return text;
}

static bool overlap(const struct topo_drill_fault *a, const struct topo_drill_fault *b)
{
	return a->at_ns <= b->at_ns + b->for_ns && b->at_ns <= a->at_ns + a->for_ns;
}

static bool same_target(
	const struct topo *t, const struct topo_drill_fault *a, const struct topo_drill_fault *b)
{
	if (topo_drill_kind_is_link(a->kind) != topo_drill_kind_is_link(b->kind))
		return false;
	return topo_drill_kind_is_link(a->kind) ? t->ports[a->port].link == t->ports[b->port].link
						: a->node == b->node;
}

bool topo_drill_collides(
	const struct topo *t, const struct topo_drill *d, const struct topo_drill_fault *f)
{
	for (uint32_t i = 0; i < d->faults_count; i++) {
		const struct topo_drill_fault *other = &d->faults[i];

		if (other == f || (other->port == TOPO_NONE && other->node == TOPO_NONE))
			continue; /* the latter: not drawn yet */
		if (!overlap(other, f) || !same_target(t, other, f))
			continue;
		if (other->kind != TOPO_DRILL_LINK_IMPAIR || f->kind != TOPO_DRILL_LINK_IMPAIR)
			return true;
	}
	return false;
}

uint64_t topo_drill_end_ns(const struct topo_drill *d)
{
	uint64_t end = 0;

	for (uint32_t i = 0; i < d->faults_count; i++)
		if (d->faults[i].at_ns + d->faults[i].for_ns > end)
			end = d->faults[i].at_ns + d->faults[i].for_ns;
	return end;
}

/* Insertion: stable, and drills are short or sorted already. */
void topo_drill_sort(struct topo_drill *d)
{
	for (uint32_t i = 1; i < d->faults_count; i++) {
		struct topo_drill_fault f = d->faults[i];
		uint32_t j = i;

		for (; j > 0 && d->faults[j - 1].at_ns > f.at_ns; j--)
			d->faults[j] = d->faults[j - 1];
		d->faults[j] = f;
	}
}

void topo_drill_free(struct topo_drill *d)
{
	if (d == NULL)
		return;
	free(d->hosts);
	free(d->faults);
	free(d);
}
