#include "node/drill.h"
#include <assert.h>
#include <string.h>
#include "node/drill_state.h"

#define SETTLE_REFRESHES 24u  /* 3 of silence, 8 clean ones, and what phases and fills add */
#define SETTLE_LOOKS     100u /* live: a process that starts, a machine that is busy */
#define STEADY_REFRESHES 2u   /* that the lab must stay as it has to be after the last heal */
#define FINISH_SETTLES   8u   /* for paths to come back and the last messages to arrive */
#define LOOK_SHARE       8u   /* of the time since a change: between two looks */
#define QUIET_LOOKS_MAX  50u /* with cells on their way before the drill; then they aren't judged */

/* Start and end. */

static void *new_array(const struct node_drill *d, size_t count, size_t size)
{
	return dsf_memory_new(d->config.memory, (count + 1) * size);
}

static void delete_array(const struct node_drill *d, void *array, size_t count, size_t size)
{
	dsf_memory_delete(d->config.memory, array, (count + 1) * size);
}

static uint32_t count_actions(const struct topo_drill *drill)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < drill->faults_count; i++)
		count += drill->faults[i].kind == TOPO_DRILL_LINK_FLAP ? 2 * drill->faults[i].flaps
								       : 2;
	return count;
}

void node_drill_free(struct node_drill *d)
{
	const struct topo *t;
	size_t rows;

	if (d == NULL)
		return;
	t = d->config.topo;
	rows = (size_t)t->ports_count * d->switch_words;
	delete_array(d, d->links, t->links_count, sizeof(*d->links));
	delete_array(d, d->ports, t->ports_count, sizeof(*d->ports));
	delete_array(d, d->nodes, t->nodes_count, sizeof(*d->nodes));
	delete_array(d, d->flows, d->config.flows_count, sizeof(*d->flows));
	delete_array(d, d->active, d->config.drill->faults_count, sizeof(*d->active));
	delete_array(d, d->actions, count_actions(d->config.drill), sizeof(*d->actions));
	delete_array(d, d->samples, count_actions(d->config.drill), sizeof(*d->samples));
	delete_array(d, d->heard, rows, sizeof(*d->heard));
	delete_array(d, d->failed, DSF_BITSET_WORDS(t->links_count), sizeof(*d->failed));
	delete_array(d, d->starved, t->nodes_count, sizeof(*d->starved));
	delete_array(d, d->starves, t->nodes_count, sizeof(*d->starves));
	topo_fixed_free(d->fixed);
	dsf_memory_delete(d->config.memory, d, sizeof(*d));
}

uint64_t node_drill_stretch(const struct node_drill *d, uint64_t ns)
{
	uint64_t file_ns = d->config.topo->fabric.reach_refresh_ns;

	if (file_ns == 0 || d->config.refresh_ns <= file_ns)
		return ns;
	return (uint64_t)((unsigned __int128)ns * d->config.refresh_ns / file_ns);
}

static void add_action(struct node_drill *d, uint64_t at_ns, uint32_t fault, bool on, bool last)
{
	struct drill_action a = { node_drill_stretch(d, at_ns), fault, on, last };
	uint32_t i = d->actions_count++;

	/* Ends before beginnings at one instant, so that what follows at once finds its link. */
	for (; i > 0 && (d->actions[i - 1].at_ns > a.at_ns || (d->actions[i - 1].at_ns == a.at_ns &&
								      d->actions[i - 1].on && !on));
		i--)
		d->actions[i] = d->actions[i - 1];
	d->actions[i] = a;
	if (a.at_ns > d->end_ns)
		d->end_ns = a.at_ns;
}

static void make_actions(struct node_drill *d)
{
	const struct topo_drill *drill = d->config.drill;

	for (uint32_t i = 0; i < drill->faults_count; i++) {
		const struct topo_drill_fault *f = &drill->faults[i];
		uint32_t times = f->kind == TOPO_DRILL_LINK_FLAP ? f->flaps : 1;
		uint64_t on_ns =
			times > 1 || f->kind == TOPO_DRILL_LINK_FLAP ? f->period_ns / 2 : f->for_ns;

		for (uint32_t k = 0; k < times; k++) {
			uint64_t at_ns = f->at_ns + k * f->period_ns;

			add_action(d, at_ns, i, true, false);
			add_action(d, at_ns + on_ns, i, false, k + 1 == times);
		}
	}
}

struct node_drill *node_drill_new(const struct node_drill_config *config, dsf_instant now)
{
	const struct topo *t = config->topo;
	struct node_drill *d = dsf_memory_new(config->memory, sizeof(*d));
	size_t rows;

	if (d == NULL)
		return NULL;
	d->config = *config;
	d->switch_words = DSF_BITSET_WORDS(t->switches_count + 1);
	rows = (size_t)t->ports_count * d->switch_words;
	d->links = new_array(d, t->links_count, sizeof(*d->links));
	d->ports = new_array(d, t->ports_count, sizeof(*d->ports));
	d->nodes = new_array(d, t->nodes_count, sizeof(*d->nodes));
	d->flows = new_array(d, config->flows_count, sizeof(*d->flows));
	d->active = new_array(d, config->drill->faults_count, sizeof(*d->active));
	d->actions = new_array(d, count_actions(config->drill), sizeof(*d->actions));
	d->samples = new_array(d, count_actions(config->drill), sizeof(*d->samples));
	d->heard = new_array(d, rows, sizeof(*d->heard));
	d->failed = new_array(d, DSF_BITSET_WORDS(t->links_count), sizeof(*d->failed));
	d->starved = new_array(d, t->nodes_count, sizeof(*d->starved));
	d->starves = new_array(d, t->nodes_count, sizeof(*d->starves));
	d->fixed = d->failed == NULL
			   ? NULL
			   : topo_fixed_new(t, d->failed, config->draw_seed, config->memory);
	if (d->links == NULL || d->ports == NULL || d->nodes == NULL || d->flows == NULL ||
		d->active == NULL || d->actions == NULL || d->samples == NULL || d->heard == NULL ||
		d->starved == NULL || d->starves == NULL || d->fixed == NULL) {
		node_drill_free(d);
		return NULL;
	}
	for (uint32_t i = 0; i < t->nodes_count; i++)
		d->starved[i] = true; /* one starts so */
	for (uint32_t i = 0; i < t->links_count; i++)
		d->links[i].impairment[0] = d->links[i].impairment[1] =
			node_impairment_own(&t->links[i]);
	make_actions(d);
	node_drill_fault_own_losses(d);
	d->before_ns = SETTLE_REFRESHES * config->refresh_ns + SETTLE_LOOKS * config->look_min_ns;
	d->settle_ns = config->drill->settle_ns > 0
			       ? node_drill_stretch(d, config->drill->settle_ns)
			       : d->before_ns;
	d->finish_ns = config->drill->finish_ns > 0
			       ? node_drill_stretch(d, config->drill->finish_ns)
			       : FINISH_SETTLES * d->settle_ns;
	d->changed_at = d->last_look_at = now;
	d->look_at = now;
	return d;
}

/* Something has changed; look until the lab has followed. */
static void change(struct node_drill *d, dsf_instant now)
{
	node_drill_look_expect(d);
	node_drill_look_isolation(d, now);
	d->settled = false;
	d->measured = true;
	d->changed_at = now;
	d->look_at = dsf_time_after(now, d->config.look_min_ns);
}

static dsf_instant action_at(const struct node_drill *d)
{
	if (d->phase != DRILL_RUN || d->action_next == d->actions_count)
		return DSF_NEVER;
	return dsf_time_after(d->start_at, d->actions[d->action_next].at_ns);
}

void node_drill_expire(struct node_drill *d, dsf_instant now)
{
	bool changed = false;

	while (dsf_time_due(action_at(d), now)) {
		const struct drill_action *a = &d->actions[d->action_next++];

		node_drill_fault_set(d, a->fault, a->on, now);
		changed = true;
	}
	if (changed) {
		d->changes++;
		change(d, now);
	}
	if (dsf_time_due(d->look_at, now)) {
		d->look_at = DSF_NEVER;
		d->want_observe = true;
	}
}

dsf_instant node_drill_deadline(const struct node_drill *d)
{
	return d->phase == DRILL_DONE ? DSF_NEVER : dsf_time_min(d->look_at, action_at(d));
}

/* Commands. */

static bool output_node(struct node_drill *d, struct node_drill_output *out)
{
	for (uint32_t i = 0; i < d->config.topo->nodes_count; i++) {
		struct drill_node *n = &d->nodes[i];

		if (!n->dirty)
			continue;
		n->dirty = false;
		*out = (struct node_drill_output){ .what = NODE_DRILL_NODE,
			.link = TOPO_NONE,
			.node = i,
			.state = n->want,
			.polite = n->polite,
			.healthy = n->want == NODE_DRILL_RUNNING,
			.heal_at = node_drill_fault_heal_at(d, TOPO_NONE, i) };
		return true;
	}
	return false;
}

static bool output_link(struct node_drill *d, struct node_drill_output *out)
{
	for (uint32_t i = 0; i < d->config.topo->links_count; i++) {
		struct node_impairment own = node_impairment_own(&d->config.topo->links[i]);
		struct drill_link *l = &d->links[i];

		if (!l->dirty)
			continue;
		l->dirty = false;
		*out = (struct node_drill_output){ .what = NODE_DRILL_LINK,
			.link = i,
			.node = TOPO_NONE,
			.down = l->down,
			.drained = { l->drained[0], l->drained[1] },
			.impairment = { l->impairment[0], l->impairment[1] },
			.healthy = !l->down && !l->drained[0] && !l->drained[1] &&
				   node_impairment_equal(&l->impairment[0], &own) &&
				   node_impairment_equal(&l->impairment[1], &own),
			.heal_at = node_drill_fault_heal_at(d, i, TOPO_NONE) };
		return true;
	}
	return false;
}

static bool output_drain(struct node_drill *d, struct node_drill_output *out)
{
	for (uint32_t i = 0; i < d->config.topo->nodes_count; i++) {
		struct drill_node *n = &d->nodes[i];

		if (!n->drain_dirty)
			continue;
		n->drain_dirty = false;
		*out = (struct node_drill_output){ .what = NODE_DRILL_DRAIN,
			.link = TOPO_NONE,
			.node = i,
			.drained = { n->drained },
			.healthy = !n->drained,
			.heal_at = node_drill_fault_heal_at(d, TOPO_NONE, i) };
		return true;
	}
	return false;
}

static bool take(bool *flag)
{
	bool was = *flag;

	*flag = false;
	return was;
}

bool node_drill_output(struct node_drill *d, struct node_drill_output *out, dsf_instant now)
{
	(void)now;
	if (take(&d->want_trust)) {
		*out = (struct node_drill_output){ .what = NODE_DRILL_TRUST, .trust = d->trust };
		return true;
	}
	if (output_node(d, out) || output_drain(d, out) || output_link(d, out))
		return true;
	if (take(&d->want_start)) {
		*out = (struct node_drill_output){ .what = NODE_DRILL_START, .load_ns = d->end_ns };
		return true;
	}
	if (take(&d->want_stop)) {
		*out = (struct node_drill_output){ .what = NODE_DRILL_STOP };
		return true;
	}
	if (d->phase == DRILL_DONE || !take(&d->want_observe))
		return false;
	node_drill_look_begin(d);
	*out = (struct node_drill_output){ .what = NODE_DRILL_OBSERVE,
		.flows = d->phase > DRILL_BEFORE && d->config.flows_count > 0 };
	return true;
}

/* The course. */

void node_drill_breach_set(struct node_drill *d, enum topo_drill_invariant invariant,
	const struct node_drill_breach *breach, dsf_instant now)
{
	struct node_drill_result *r = &d->results[invariant];

	if (r->breach.kind != NODE_DRILL_NOTHING || breach->kind == NODE_DRILL_NOTHING)
		return;
	r->breach = *breach;
	r->breach.at = (dsf_instant){ dsf_time_since(d->start_at, now) };
}

static void finish(struct node_drill *d)
{
	d->phase = DRILL_DONE;
	d->look_at = DSF_NEVER;
}

/* What the look found wrong, under its own name or as a steady state that wasn't reached. */
static void breach_misfits(
	struct node_drill *d, bool steady, enum topo_drill_invariant as, dsf_instant now)
{
	static const enum topo_drill_invariant both[] = { TOPO_DRILL_LINKS,
		TOPO_DRILL_REACHABILITY };

	for (int i = 0; i < 2; i++)
		node_drill_breach_set(d, steady ? as : both[i], &d->misfit[both[i]], now);
}

static void begin_run(struct node_drill *d, dsf_instant now)
{
	d->results[TOPO_DRILL_STEADY_BEFORE].checked = true;
	d->settled = true;
	d->trust = d->want_trust = true;
	d->phase = DRILL_STARTING;
	d->look_at = DSF_NEVER;
	node_drill_look_base(d);
	if (d->config.flows_count > 0)
		d->want_start = true;
	else
		node_drill_started(d, now);
}

void node_drill_started(struct node_drill *d, dsf_instant start_at)
{
	assert(d->phase == DRILL_STARTING);
	d->phase = DRILL_RUN;
	d->start_at = start_at;
	d->look_at = start_at;
	for (uint32_t i = 0; i < TOPO_DRILL_INVARIANTS; i++)
		d->results[i].checked = d->config.drill->hold >> i & 1u;
	d->results[TOPO_DRILL_DELIVERY].checked &= d->config.flows_count > 0;
	d->results[TOPO_DRILL_CELLS].checked &= d->cells_checked;
}

static void look_before(struct node_drill *d, bool fits, dsf_instant now)
{
	d->looks++;
	d->quiet_looks = fits && !d->cells_moved ? d->quiet_looks + 1 : 0;
	d->cells_checked = d->quiet_looks > 0;
	if (fits && d->looks > 1 && (d->cells_checked || d->looks > QUIET_LOOKS_MAX)) {
		begin_run(d, now);
	} else if (!fits && dsf_time_since(d->changed_at, now) >= d->before_ns) {
		d->results[TOPO_DRILL_STEADY_BEFORE].checked = true;
		d->start_at = now;
		breach_misfits(d, true, TOPO_DRILL_STEADY_BEFORE, now);
		finish(d);
	} else {
		d->look_at = dsf_time_after(now, d->config.look_min_ns);
	}
}

static bool node_fault_active(const struct node_drill *d)
{
	for (uint32_t i = 0; i < d->config.topo->nodes_count; i++)
		if (d->nodes[i].want != NODE_DRILL_RUNNING)
			return true;
	return false;
}

/* Has the lab followed the last change? */
static void look_settled(struct node_drill *d, bool fits, dsf_instant now)
{
	bool last = d->action_next == d->actions_count;

	if (fits) {
		if (!d->settled && d->measured)
			d->samples[d->samples_count++] = dsf_time_since(d->changed_at, now);
		if (!d->settled)
			d->settled_at = now;
		d->settled = true;
		d->measured = false;
		if (!d->trust && !node_fault_active(d))
			d->trust = d->want_trust = true;
		return;
	}
	if (d->settled) { /* it had, but did not stay so */
		d->settled = d->measured = false;
		d->changed_at = now;
	}
	if (dsf_time_since(d->changed_at, now) < d->settle_ns)
		return;
	breach_misfits(d, false, TOPO_DRILL_LINKS, now);
	if (last)
		breach_misfits(d, true, TOPO_DRILL_STEADY_AFTER, now);
	d->settled = true; /* it has been told; go on */
	d->settled_at = DSF_EPOCH;
	d->measured = false;
}

static void look_flows(struct node_drill *d, dsf_instant now)
{
	struct node_drill_breach breach;
	uint64_t since = dsf_time_since(dsf_time_after(d->start_at, d->end_ns), now);
	bool over = d->phase == DRILL_FINISH && since >= d->finish_ns;
	bool all = node_drill_look_flows(d, over, &breach);

	if (breach.kind != NODE_DRILL_NOTHING)
		node_drill_breach_set(d, TOPO_DRILL_DELIVERY, &breach, now);
	if (d->phase != DRILL_FINISH || !(all || over))
		return;
	d->want_stop = d->config.flows_count > 0;
	d->phase = DRILL_REST;
	d->changed_at = now;
}

static void look_cells(struct node_drill *d, dsf_instant now)
{
	struct node_drill_breach breach;

	if (d->results[TOPO_DRILL_CELLS].checked && !node_drill_look_cells(d, &breach)) {
		if (dsf_time_since(d->changed_at, now) < d->settle_ns)
			return;
		node_drill_breach_set(d, TOPO_DRILL_CELLS, &breach, now);
	}
	finish(d);
}

static void look_again(struct node_drill *d, dsf_instant now)
{
	uint64_t wait_ns = dsf_time_since(d->changed_at, now) / LOOK_SHARE;

	if (d->settled && d->phase == DRILL_RUN)
		wait_ns = d->config.refresh_ns;
	if (wait_ns > d->config.refresh_ns)
		wait_ns = d->config.refresh_ns;
	if (wait_ns < d->config.look_min_ns)
		wait_ns = d->config.look_min_ns;
	d->look_at = dsf_time_after(now, wait_ns);
}

/* Losses are judged once a refresh: a link that was lossy until now may yet be isolated. */
static bool is_steady(const struct node_drill *d, dsf_instant now)
{
	return d->settled &&
	       dsf_time_since(d->settled_at, now) >= STEADY_REFRESHES * d->config.refresh_ns;
}

void node_drill_observed(struct node_drill *d, dsf_instant now)
{
	bool fits = node_drill_look_end(d, now);

	if (d->phase == DRILL_BEFORE) {
		look_before(d, fits, now);
		return;
	}
	if (d->phase == DRILL_DONE || d->phase == DRILL_STARTING)
		return;
	if (d->phase == DRILL_RUN || !fits)
		look_settled(d, fits, now);
	if (d->phase == DRILL_RUN && d->action_next == d->actions_count && is_steady(d, now)) {
		if (d->interrupted) {
			finish(d);
			return;
		}
		d->phase = DRILL_FINISH;
	}
	look_again(d, now);
	if (d->phase == DRILL_REST)
		look_cells(d, now);
	else
		look_flows(d, now);
}

void node_drill_interrupt(struct node_drill *d, dsf_instant now)
{
	if (d->phase == DRILL_DONE || d->interrupted)
		return;
	d->interrupted = true;
	if (d->phase < DRILL_RUN) {
		finish(d);
		return;
	}
	for (uint32_t i = 0; i < d->config.drill->faults_count; i++)
		node_drill_fault_set(d, i, false, now);
	d->action_next = d->actions_count;
	d->results[TOPO_DRILL_DELIVERY].checked = d->results[TOPO_DRILL_CELLS].checked = false;
	d->phase = DRILL_RUN;
	d->want_stop = d->config.flows_count > 0;
	change(d, now);
	d->measured = false;
}

/* The result. */

bool node_drill_done(const struct node_drill *d)
{
	return d->phase == DRILL_DONE;
}

bool node_drill_interrupted(const struct node_drill *d)
{
	return d->interrupted;
}

void node_drill_result(const struct node_drill *d, enum topo_drill_invariant invariant,
	struct node_drill_result *result)
{
	*result = d->results[invariant];
	result->held = result->checked && result->breach.kind == NODE_DRILL_NOTHING;
}

enum node_drill_verdict node_drill_verdict(const struct node_drill *d, bool valid)
{
	bool held = true;

	for (uint32_t i = 0; i < TOPO_DRILL_INVARIANTS; i++)
		held = held &&
		       (!d->results[i].checked || d->results[i].breach.kind == NODE_DRILL_NOTHING);
	if (!valid || d->interrupted)
		return NODE_DRILL_UNKNOWN;
	return held ? NODE_DRILL_HELD : NODE_DRILL_BROKEN;
}

uint32_t node_drill_changes(const struct node_drill *d)
{
	return d->changes;
}

uint32_t node_drill_convergences(const struct node_drill *d)
{
	return d->samples_count;
}

/* Insertion: a drill has few changes, and this is asked for once. */
void node_drill_convergence(const struct node_drill *d, uint64_t *p50_ns, uint64_t *max_ns)
{
	uint64_t *s = d->samples;

	for (uint32_t i = 1; i < d->samples_count; i++) {
		uint64_t value = s[i];
		uint32_t j = i;

		for (; j > 0 && s[j - 1] > value; j--)
			s[j] = s[j - 1];
		s[j] = value;
	}
	*p50_ns = d->samples_count == 0 ? 0 : s[(d->samples_count - 1) / 2];
	*max_ns = d->samples_count == 0 ? 0 : s[d->samples_count - 1];
}

uint64_t node_drill_settle_ns(const struct node_drill *d)
{
	return d->settle_ns;
}

uint64_t node_drill_messages(const struct node_drill *d)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < d->config.flows_count; i++)
		sum += d->flows[i].completed;
	return sum;
}
