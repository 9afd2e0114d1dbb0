/*
 * What a fault changes: how links and nodes are to be, and which drops it explains.
 */
#include <string.h>
#include "node/drill_state.h"

/* Losses that the lab file itself has. */
void node_drill_fault_own_losses(struct node_drill *d)
{
	const struct topo *t = d->config.topo;

	for (uint32_t i = 0; i < t->links_count; i++) {
		uint32_t ends[2] = { t->links[i].port_a, t->links[i].port_b };

		for (int e = 0; e < 2; e++) {
			uint32_t node = t->ports[ends[e]].node, plane = t->nodes[node].plane;

			d->nodes[node].cause[DRILL_CAUSE_LOSS] += t->links[i].loss_ppm > 0;
			d->nodes[node].cause[DRILL_CAUSE_CORRUPT] += t->links[i].corrupt_ppm > 0;
			if (plane < TOPO_PLANES_MAX)
				d->planes[plane].active +=
					t->links[i].loss_ppm > 0 || t->links[i].corrupt_ppm > 0;
		}
	}
}

static void mark_cause(
	struct node_drill *d, uint32_t node, enum drill_cause cause, bool on, dsf_instant now)
{
	struct drill_node *n = &d->nodes[node];

	n->touched = true;
	n->cause[cause] += on ? 1u : ~0u;
	n->caused[cause] = true;
	n->cause_until[cause] = dsf_time_after(now, d->settle_ns);
}

static void mark_plane(struct node_drill *d, uint32_t node, bool on, dsf_instant now)
{
	uint32_t plane = d->config.topo->nodes[node].plane;

	if (plane >= TOPO_PLANES_MAX)
		return;
	d->planes[plane].active += on ? 1u : ~0u;
	d->planes[plane].had = true;
	d->planes[plane].until = dsf_time_after(now, d->settle_ns);
}

static void mark_link(struct node_drill *d, const struct topo_drill_fault *f, uint32_t link,
	bool on, dsf_instant now)
{
	const struct topo *t = d->config.topo;
	uint32_t ends[2] = { t->links[link].port_a, t->links[link].port_b };

	d->links[link].touched = true;
	for (int e = 0; e < 2; e++) {
		uint32_t node = t->ports[ends[e]].node;

		mark_plane(d, node, on, now);
		if (f->kind != TOPO_DRILL_LINK_IMPAIR) {
			mark_cause(d, node, DRILL_CAUSE_CARRIER, on, now);
			continue;
		}
		mark_cause(d, node, DRILL_CAUSE_LOSS, on, now);
		if (f->impairment.corrupt_ppm > 0)
			mark_cause(d, node, DRILL_CAUSE_CORRUPT, on, now);
	}
}

static void mark_node(struct node_drill *d, uint32_t node, bool on, dsf_instant now)
{
	const struct topo *t = d->config.topo;
	const struct topo_node *n = &t->nodes[node];

	mark_cause(d, node, DRILL_CAUSE_CARRIER, on, now);
	mark_plane(d, node, on, now);
	for (uint32_t i = 0; i < n->ports_count; i++) {
		const struct topo_port *p = topo_node_port(t, n, i);
		uint32_t other = t->ports[p->peer].node;

		d->links[p->link].touched = true;
		mark_cause(d, other, DRILL_CAUSE_CARRIER, on, now);
		if (n->plane >= TOPO_PLANES_MAX) /* a host: in the planes of its switches */
			mark_plane(d, other, on, now);
	}
}

static uint32_t larger(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

/* Adds one fault to what a link is to be like; of two the worse counts. */
static void impair(struct drill_link *l, const struct topo_drill_impairment *i, int named)
{
	for (int e = 0; e < 2; e++) {
		struct node_impairment *to = &l->impairment[e];

		to->loss_ppm = larger(to->loss_ppm, i->loss_ppm);
		to->corrupt_ppm = larger(to->corrupt_ppm, i->corrupt_ppm);
		to->reorder_ppm = larger(to->reorder_ppm, i->reorder_ppm);
		to->delay_ns = to->delay_ns > i->delay_ns ? to->delay_ns : i->delay_ns;
		to->jitter_ns = to->jitter_ns > i->jitter_ns ? to->jitter_ns : i->jitter_ns;
		if (i->rate_bps > 0 && (to->rate_bps == 0 || i->rate_bps < to->rate_bps))
			to->rate_bps = i->rate_bps;
	}
	l->impairment[named].silent |= i->silent;
}

static void set_link(struct node_drill *d, uint32_t link)
{
	const struct topo *t = d->config.topo;
	struct drill_link *l = &d->links[link];

	l->down = l->drained[0] = l->drained[1] = false;
	l->impairment[0] = l->impairment[1] = node_impairment_own(&t->links[link]);
	for (uint32_t i = 0; i < d->config.drill->faults_count; i++) {
		const struct topo_drill_fault *f = &d->config.drill->faults[i];

		if (!d->active[i] || !topo_drill_kind_is_link(f->kind) ||
			t->ports[f->port].link != link)
			continue;
		if (f->kind == TOPO_DRILL_LINK_IMPAIR)
			impair(l, &f->impairment, f->port == t->links[link].port_a ? 0 : 1);
		else if (f->kind == TOPO_DRILL_LINK_DRAIN)
			l->drained[f->port == t->links[link].port_a ? 0 : 1] = true;
		else
			l->down = true;
	}
	l->dirty = true;
}

static void set_node(struct node_drill *d, const struct topo_drill_fault *f, bool on)
{
	struct drill_node *n = &d->nodes[f->node];

	n->want = !on                                 ? NODE_DRILL_RUNNING
		  : f->kind == TOPO_DRILL_NODE_FREEZE ? NODE_DRILL_FROZEN
						      : NODE_DRILL_DEAD;
	n->polite = f->kind == TOPO_DRILL_NODE_STOP;
	n->lost_state |= n->want == NODE_DRILL_DEAD;
	n->dirty = true;
	if (on && d->trust) { /* what stands still is late, and so are those who hear from it */
		d->trust = false;
		d->want_trust = true;
	}
}

void node_drill_fault_set(struct node_drill *d, uint32_t fault, bool on, dsf_instant now)
{
	const struct topo_drill_fault *f = &d->config.drill->faults[fault];

	if (d->active[fault] == on)
		return;
	d->active[fault] = on;
	/* Drains explain nothing: they lose nothing. */
	if (f->kind == TOPO_DRILL_NODE_DRAIN) {
		d->nodes[f->node].drained = on;
		d->nodes[f->node].drain_dirty = true;
	} else if (f->kind == TOPO_DRILL_LINK_DRAIN) {
		set_link(d, d->config.topo->ports[f->port].link);
	} else if (topo_drill_kind_is_link(f->kind)) {
		mark_link(d, f, d->config.topo->ports[f->port].link, on, now);
		set_link(d, d->config.topo->ports[f->port].link);
	} else {
		mark_node(d, f->node, on, now);
		set_node(d, f, on);
	}
}

/* When what is broken now is healed at the latest, with time for the one who heals to be late. */
dsf_instant node_drill_fault_heal_at(const struct node_drill *d, uint32_t link, uint32_t node)
{
	const struct topo_drill *drill = d->config.drill;
	uint64_t end_ns = 0;

	for (uint32_t i = 0; i < drill->faults_count; i++) {
		const struct topo_drill_fault *f = &drill->faults[i];
		bool here =
			topo_drill_kind_is_link(f->kind)
				? link != TOPO_NONE && d->config.topo->ports[f->port].link == link
				: node != TOPO_NONE && f->node == node;
		uint64_t ns = node_drill_stretch(d, f->at_ns + f->for_ns);

		if (d->active[i] && here && ns > end_ns)
			end_ns = ns;
	}
	return dsf_time_after(d->start_at, end_ns + d->settle_ns);
}
