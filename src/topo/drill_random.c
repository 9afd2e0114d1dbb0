/*
 * Random drills: a pure function of topology, seed, duration and number of faults.
 */
#include <stdio.h>
#include <stdlib.h>
#include "base/err.h"
#include "base/rng.h"
#include "topo/drill.h"

#define RNG_KIND     0x6472696c6cull /* "drill": its streams are its own */
#define TRIES        64u             /* to find a target that is free at that time */
#define DURATION_MIN 100u            /* ns: below, instants couldn't differ */

enum shape {
	DOWN,
	FLAP,
	SILENT,
	GRAY,
	CORRUPT,
	DELAY,
	REORDER,
	SLOW,
	DRAIN,
	KILL, /* from here on: nodes */
	STOP,
	FREEZE,
	DRAIN_NODE,
	SHAPES
};

/* Out of 100: links break more often than boxes. */
static const uint32_t weights[SHAPES] = { [DOWN] = 20,
	[FLAP] = 8,
	[SILENT] = 10,
	[GRAY] = 10,
	[CORRUPT] = 6,
	[DELAY] = 6,
	[REORDER] = 6,
	[SLOW] = 4,
	[DRAIN] = 8,
	[KILL] = 6,
	[STOP] = 4,
	[FREEZE] = 6,
	[DRAIN_NODE] = 6 };

static enum shape draw_shape(struct dsf_rng *r)
{
	uint32_t at = (uint32_t)dsf_rng_below(r, 100);

	for (uint32_t s = 0; s < SHAPES; s++) {
		if (at < weights[s])
			return (enum shape)s;
		at -= weights[s];
	}
	return DOWN;
}

/* Links and boxes of the fabric: hosts and their links break in files that say so, since what a
 * host had under way ends with it. */
static bool draw_port(const struct topo *t, struct dsf_rng *r, uint32_t *port)
{
	uint32_t fabric = 0, pick;

	for (uint32_t i = 0; i < t->links_count; i++)
		fabric += !t->ports[t->links[i].port_a].ethernet && !t->links[i].loop;
	if (fabric == 0)
		return false;
	pick = (uint32_t)dsf_rng_below(r, fabric);
	for (uint32_t i = 0; i < t->links_count; i++) {
		if (t->ports[t->links[i].port_a].ethernet || t->links[i].loop || pick-- > 0)
			continue;
		*port = dsf_rng_below(r, 2) == 0 ? t->links[i].port_a : t->links[i].port_b;
		return true;
	}
	return false;
}

static uint32_t draw_node(const struct topo *t, struct dsf_rng *r)
{
	uint32_t switches = 0, pick;

	for (uint32_t i = 0; i < t->nodes_count; i++)
		switches +=
			topo_is_fabric_node(t->nodes[i].role) || t->nodes[i].role == TOPO_ROLE_RDSW;
	if (switches == 0)
		return TOPO_NONE;
	pick = (uint32_t)dsf_rng_below(r, switches);
	for (uint32_t i = 0; i < t->nodes_count; i++) {
		if (!topo_is_fabric_node(t->nodes[i].role) && t->nodes[i].role != TOPO_ROLE_RDSW)
			continue;
		if (pick-- == 0)
			return i;
	}
	return TOPO_NONE;
}

static void shape_fault(
	const struct topo *t, struct topo_drill_fault *f, enum shape shape, struct dsf_rng *r)
{
	const struct topo_link *l = f->port == TOPO_NONE ? NULL : &t->links[t->ports[f->port].link];
	struct topo_drill_impairment *i = &f->impairment;

	f->kind = TOPO_DRILL_LINK_IMPAIR;
	switch (shape) {
	case DOWN: f->kind = TOPO_DRILL_LINK_DOWN; break;
	case FLAP:
		f->kind = TOPO_DRILL_LINK_FLAP;
		f->flaps = 2 + (uint32_t)dsf_rng_below(r, 4);
		f->period_ns = f->for_ns / f->flaps;
		break;
	case SILENT: i->silent = true; break;
	case GRAY: i->loss_ppm = 20000 + (uint32_t)dsf_rng_below(r, 480001); break;
	case CORRUPT: i->corrupt_ppm = 20000 + (uint32_t)dsf_rng_below(r, 80001); break;
	case DELAY:
		i->delay_ns = 1 + dsf_rng_below(r, 2 * l->delay_ns + 1000);
		i->jitter_ns = dsf_rng_below(r, l->delay_ns + 1);
		break;
	case REORDER: i->reorder_ppm = 1000 + (uint32_t)dsf_rng_below(r, 49001); break;
	case SLOW:
		i->rate_bps = l->rate_bps > 0 ? l->rate_bps * (2 + dsf_rng_below(r, 7)) / 10 : 0;
		i->delay_ns = l->rate_bps > 0 ? 0 : 1;
		break;
	case DRAIN: f->kind = TOPO_DRILL_LINK_DRAIN; break;
	case DRAIN_NODE: f->kind = TOPO_DRILL_NODE_DRAIN; break;
	case KILL: f->kind = TOPO_DRILL_NODE_KILL; break;
	case STOP: f->kind = TOPO_DRILL_NODE_STOP; break;
	case FREEZE: f->kind = TOPO_DRILL_NODE_FREEZE; break;
	case SHAPES: break;
	}
}

/* Each fault has a stream of its own. False: no free target was found. */
static bool draw_fault(const struct topo *t, struct topo_drill *d,
	const struct topo_drill_random *c, uint32_t index)
{
	struct dsf_rng r;

	dsf_rng_fork(&r, c->seed, RNG_KIND, index);
	for (uint32_t i = 0; i < TRIES; i++) {
		struct topo_drill_fault f = { .port = TOPO_NONE, .node = TOPO_NONE };
		enum shape shape = draw_shape(&r);

		f.for_ns = c->duration_ns / 20 + dsf_rng_below(&r, c->duration_ns / 5 + 1);
		f.at_ns = dsf_rng_below(&r, c->duration_ns - f.for_ns + 1);
		if (shape >= KILL)
			f.node = draw_node(t, &r);
		else if (!draw_port(t, &r, &f.port))
			return false;
		if (shape >= KILL && f.node == TOPO_NONE)
			return false;
		shape_fault(t, &f, shape, &r);
		if (topo_drill_collides(t, d, &f))
			continue;
		d->faults[d->faults_count++] = f;
		return true;
	}
	return false;
}

int topo_drill_draw(
	const struct topo *t, const struct topo_drill_random *config, struct topo_drill **out)
{
	struct topo_drill *d;

	*out = NULL;
	if (config->faults_count > TOPO_DRILL_FAULTS_MAX || config->faults_count == 0 ||
		config->duration_ns < DURATION_MIN || config->duration_ns > TOPO_DRILL_TIME_MAX)
		return -DSF_E_BADFIELD;
	d = calloc(1, sizeof(*d));
	if (d != NULL)
		d->faults = calloc(config->faults_count, sizeof(*d->faults));
	if (d == NULL || d->faults == NULL) {
		topo_drill_free(d);
		return -DSF_E_NOMEM;
	}
	snprintf(d->name, sizeof(d->name), "random");
	d->seed = config->seed;
	d->workload_kind = "permutation";
	d->workload_scope = "cross-rdsw";
	d->workload_bytes = 1u << 18;
	d->hold = (1u << TOPO_DRILL_INVARIANTS) - 1;
	for (uint32_t i = 0; i < config->faults_count; i++) {
		if (!draw_fault(t, d, config, i)) {
			topo_drill_free(d);
			return -DSF_E_BADFIELD;
		}
	}
	topo_drill_sort(d);
	*out = d;
	return 0;
}
