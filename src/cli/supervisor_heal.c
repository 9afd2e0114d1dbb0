/*
 * What was asked for a time only: `--for`, flaps, and what a client holds (`chaos`). The supervisor
 * keeps it, so it heals also when nobody is left who asked for it.
 *
 * The last word on a knob decides: a newer request takes the knob out of what older ones will heal,
 * and inherits what they would have restored. So overlapping faults end where they began.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include "cli/supervisor.h"

#define DRAINS    (SUPERVISOR_KNOB_DRAIN(0) | SUPERVISOR_KNOB_DRAIN(1))
#define ENDING_MS 20 /* until a process that was killed is looked at again */

struct supervisor_heal {
	struct supervisor_heal *next;
	const struct supervisor_client *client; /* heals when it goes; NULL: nobody's */
	int64_t at_ms;                          /* INT64_MAX: when the client goes */
	uint32_t link, node;                    /* one of them is TOPO_NONE */
	bool drain, drained;                    /* of the node: its drain; what it restores */
	uint32_t knobs;                         /* of the link: what it restores */
	struct supervisor_link before;
	pid_t pid;        /* of the node's process when it was frozen or ended */
	uint32_t toggles; /* flap: changes to come before the heal */
	int64_t half_ms;  /* flap */
};

static void copy_end(struct node_impairment *to, const struct node_impairment *from, uint32_t knobs)
{
	if (knobs & SUPERVISOR_KNOB_LOSS)
		to->loss_ppm = from->loss_ppm;
	if (knobs & SUPERVISOR_KNOB_CORRUPT)
		to->corrupt_ppm = from->corrupt_ppm;
	if (knobs & SUPERVISOR_KNOB_REORDER)
		to->reorder_ppm = from->reorder_ppm;
	if (knobs & SUPERVISOR_KNOB_DELAY)
		to->delay_ns = from->delay_ns;
	if (knobs & SUPERVISOR_KNOB_JITTER)
		to->jitter_ns = from->jitter_ns;
	if (knobs & SUPERVISOR_KNOB_RATE)
		to->rate_bps = from->rate_bps;
}

static void copy_knobs(
	struct supervisor_link *to, const struct supervisor_link *from, uint32_t knobs)
{
	if (knobs & SUPERVISOR_KNOB_DOWN)
		to->down = from->down;
	for (int end = 0; end < 2; end++) {
		copy_end(&to->impairment[end], &from->impairment[end], knobs);
		if (knobs & SUPERVISOR_KNOB_SILENT(end))
			to->impairment[end].silent = from->impairment[end].silent;
		if (knobs & SUPERVISOR_KNOB_DRAIN(end))
			to->drained[end] = from->drained[end];
	}
}

static void remove_at(struct supervisor_heal **at)
{
	struct supervisor_heal *heal = *at;

	*at = heal->next;
	free(heal);
}

static struct supervisor_heal *add(
	struct supervisor *s, const struct supervisor_client *client, int64_t for_ms)
{
	struct supervisor_heal *heal = calloc(1, sizeof(*heal));

	if (heal == NULL)
		return NULL;
	heal->client = client;
	heal->at_ms = for_ms > 0 ? supervisor_clock_ms() + for_ms : INT64_MAX;
	heal->link = heal->node = TOPO_NONE;
	heal->next = s->heals;
	s->heals = heal;
	return heal;
}

/* Takes the knobs away from older heals of the link; what those would restore goes to *before. */
static void take_over(
	struct supervisor *s, uint32_t link, uint32_t knobs, struct supervisor_link *before)
{
	struct supervisor_heal **at = &s->heals;

	while (*at != NULL) {
		struct supervisor_heal *heal = *at;

		if (heal->link == link && (heal->knobs & knobs) != 0) {
			copy_knobs(before, &heal->before, heal->knobs & knobs);
			heal->knobs &= ~knobs;
		}
		if (heal->link == link && heal->knobs == 0)
			remove_at(at);
		else
			at = &heal->next;
	}
}

int supervisor_heal_link(
	struct supervisor *s, uint32_t link, uint32_t knobs, const struct supervisor_term *term)
{
	struct supervisor_link before = s->links[link];
	struct supervisor_heal *heal;

	take_over(s, link, knobs, &before);
	if (term->for_ms == 0 && term->client == NULL)
		return 0;
	heal = add(s, term->client, term->for_ms);
	if (heal == NULL)
		return -ENOMEM;
	heal->link = link;
	heal->knobs = knobs;
	heal->before = before;
	heal->toggles = term->toggles;
	heal->half_ms = term->half_ms;
	if (term->toggles > 0)
		heal->at_ms = supervisor_clock_ms() + term->half_ms;
	return 0;
}

int supervisor_heal_node(
	struct supervisor *s, struct supervisor_node *n, const struct supervisor_term *term)
{
	struct supervisor_heal **at = &s->heals, *heal;

	while (*at != NULL) {
		if ((*at)->node == n->index && !(*at)->drain)
			remove_at(at);
		else
			at = &(*at)->next;
	}
	if (term->for_ms == 0 && term->client == NULL)
		return 0;
	heal = add(s, term->client, term->for_ms);
	if (heal == NULL)
		return -ENOMEM;
	heal->node = n->index;
	heal->pid = n->pid;
	return 0;
}

int supervisor_heal_drain(
	struct supervisor *s, struct supervisor_node *n, const struct supervisor_term *term)
{
	struct supervisor_heal **at = &s->heals, *heal;
	bool before = n->drained;

	while (*at != NULL) {
		if ((*at)->node != n->index || !(*at)->drain) {
			at = &(*at)->next;
			continue;
		}
		before = (*at)->drained;
		remove_at(at);
	}
	if (term->for_ms == 0 && term->client == NULL)
		return 0;
	heal = add(s, term->client, term->for_ms);
	if (heal == NULL)
		return -ENOMEM;
	heal->node = n->index;
	heal->drain = true;
	heal->drained = before;
	return 0;
}

static void tell_end(struct supervisor *s, uint32_t port)
{
	struct supervisor_node *n = &s->nodes[s->topo->ports[port].node];

	if (supervisor_node_answers(n))
		supervisor_node_impair(n, port); /* others are told when they start */
}

static void apply(struct supervisor *s, const struct supervisor_heal *heal)
{
	const struct topo_link *l = &s->topo->links[heal->link];
	int err = 0;

	supervisor_event_asked(s, heal->link);
	if (heal->knobs & SUPERVISOR_KNOB_DOWN)
		err = supervisor_link_apply(s, heal->link);
	if (err < 0)
		supervisor_log(
			s, "link %u: can't be set as it is to be: %s", heal->link, strerror(-err));
	if (heal->knobs & SUPERVISOR_KNOB_DRAIN(0))
		supervisor_drain_tell_port(s, l->port_a);
	if (heal->knobs & SUPERVISOR_KNOB_DRAIN(1))
		supervisor_drain_tell_port(s, l->port_b);
	if ((heal->knobs & ~(SUPERVISOR_KNOB_DOWN | DRAINS)) == 0)
		return;
	tell_end(s, l->port_a);
	tell_end(s, l->port_b);
}

/* True: it is to be looked at again at heal->at_ms. */
static bool heal_node(struct supervisor *s, struct supervisor_heal *heal)
{
	struct supervisor_node *n = &s->nodes[heal->node];
	int err = 0;

	if (n->state == SUPERVISOR_NODE_FROZEN) {
		supervisor_node_thaw(n);
	} else if ((n->pid != 0 && n->pid == heal->pid) || n->leaving) {
		heal->at_ms = supervisor_clock_ms() + ENDING_MS; /* it is still ending */
		return true;
	} else if (n->pid == 0) {
		err = supervisor_node_start(n);
	}
	if (err < 0)
		supervisor_log(
			s, "%s: can't start: %s", s->topo->nodes[n->index].name, strerror(-err));
	return false;
}

static void heal_drain(struct supervisor_node *n, bool drained)
{
	n->drained = drained;
	supervisor_event_process(n, drained ? "drained" : "undrained");
	supervisor_drain_tell_node(n);
}

/* One that is due. True: it stays. */
static bool run_heal(struct supervisor *s, struct supervisor_heal *heal)
{
	if (heal->drain) {
		heal_drain(&s->nodes[heal->node], heal->drained);
		return false;
	}
	if (heal->node != TOPO_NONE)
		return heal_node(s, heal);
	if (heal->toggles > 0) {
		heal->toggles--;
		s->links[heal->link].down = !s->links[heal->link].down;
		heal->at_ms += heal->half_ms;
	} else {
		copy_knobs(&s->links[heal->link], &heal->before, heal->knobs);
		heal->at_ms = INT64_MIN; /* over */
	}
	apply(s, heal);
	return heal->at_ms != INT64_MIN;
}

void supervisor_heals_run(struct supervisor *s)
{
	struct supervisor_heal **at = &s->heals;
	int64_t now = supervisor_clock_ms();

	if (s->phase != SUPERVISOR_RUNNING)
		return;
	while (*at != NULL) {
		if ((*at)->at_ms <= now && !run_heal(s, *at))
			remove_at(at);
		else
			at = &(*at)->next;
	}
}

int64_t supervisor_heals_deadline(const struct supervisor *s)
{
	int64_t first = INT64_MAX;

	for (const struct supervisor_heal *heal = s->heals; heal != NULL; heal = heal->next)
		if (heal->at_ms < first)
			first = heal->at_ms;
	return first;
}

void supervisor_heals_client_gone(struct supervisor *s, const struct supervisor_client *client)
{
	for (struct supervisor_heal *heal = s->heals; heal != NULL; heal = heal->next) {
		if (heal->client != client)
			continue;
		heal->client = NULL;
		heal->toggles = 0;
		heal->at_ms = supervisor_clock_ms();
	}
}

void supervisor_heals_free(struct supervisor *s)
{
	while (s->heals != NULL)
		remove_at(&s->heals);
}
