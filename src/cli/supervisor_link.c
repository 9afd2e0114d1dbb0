/*
 * Requests about links: up and down, impairments, flaps and drains; drains of switches too.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "cli/supervisor_call.h"

#define FLAPS_MAX 100000

static int impairment_text(char *text, size_t size, const struct node_impairment *i)
{
	return snprintf(text, size,
		"{\"loss_ppm\":%" PRIu32 ",\"corrupt_ppm\":%" PRIu32 ",\"delay_ns\":%" PRIu64
		",\"jitter_ns\":%" PRIu64 ",\"reorder_ppm\":%" PRIu32 ",\"rate_bps\":%" PRIu64
		",\"silent\":%s}",
		i->loss_ppm, i->corrupt_ppm, i->delay_ns, i->jitter_ns, i->reorder_ppm, i->rate_bps,
		i->silent ? "true" : "false");
}

int supervisor_impair_text(const struct supervisor *s, uint32_t port, char *text, size_t size)
{
	const struct topo_port *p = &s->topo->ports[port];
	const struct node_impairment *ends = s->links[p->link].impairment;
	int end = s->topo->links[p->link].port_a == port ? 0 : 1;
	char out[256], in[256];

	impairment_text(out, sizeof(out), &ends[end]);
	impairment_text(in, sizeof(in), &ends[1 - end]);
	return snprintf(text, size,
		"\"op\":\"impair\",\"port\":\"%s\",\"impairment\":%s,\"inbound\":%s", p->name, out,
		in);
}

/* Changes *value when key is there; false: it isn't a number up to max. */
static bool take_number(struct json_span set, const char *key, uint64_t max, uint64_t *value)
{
	struct json_span span = json_span_get(set.at, set.size, key);
	int64_t number;

	if (span.at == NULL)
		return true;
	if (!json_span_integer(span, &number) || number < 0 || (uint64_t)number > max)
		return false;
	*value = (uint64_t)number;
	return true;
}

static bool take_part(struct json_span set, const char *key, uint32_t *value)
{
	uint64_t number = *value;
	bool good = take_number(set, key, 1000000, &number);

	*value = (uint32_t)number;
	return good;
}

static bool take_impairment(struct json_span set, struct node_impairment *i)
{
	return take_part(set, "loss_ppm", &i->loss_ppm) &&
	       take_part(set, "corrupt_ppm", &i->corrupt_ppm) &&
	       take_part(set, "reorder_ppm", &i->reorder_ppm) &&
	       take_number(set, "delay_ns", 1000000000000u, &i->delay_ns) &&
	       take_number(set, "jitter_ns", 1000000000000u, &i->jitter_ns) &&
	       take_number(set, "rate_bps", 1000000000000000u, &i->rate_bps);
}

static void impaired(struct supervisor_job *job)
{
	for (uint32_t i = 0; i < job->answers_count; i++) {
		const struct supervisor_answer *a = &job->answers[i];

		/* One that doesn't run is told when it is started. */
		if ((a->text == NULL || a->failed) &&
			job->s->nodes[a->node].state == SUPERVISOR_NODE_ALIVE) {
			supervisor_client_error(job->client, job->id, "%s: %s",
				job->s->topo->nodes[a->node].name,
				a->text != NULL ? a->text : "no answer");
			return;
		}
	}
	supervisor_client_result(job->client, job->id, "{}", 2);
}

static void tell_ends(const struct supervisor_call *r, uint32_t link, bool drains)
{
	const struct topo_link *l = &r->s->topo->links[link];
	uint32_t ports[2] = { l->port_a, l->port_b };
	struct supervisor_job *job = supervisor_call_job(r, SUPERVISOR_ANSWER_MS, impaired);

	for (int end = 0; job != NULL && end < 2; end++) {
		const struct topo_port *p = &r->s->topo->ports[ports[end]];
		char text[SUPERVISOR_IMPAIR_TEXT_MAX];
		int size = supervisor_impair_text(r->s, ports[end], text, sizeof(text));

		if (r->s->topo->nodes[p->node].role != TOPO_ROLE_EXTERNAL)
			supervisor_job_ask(
				job, &r->s->nodes[p->node], "impair", text, (size_t)size);
		if (drains && !p->ethernet)
			supervisor_drain_ask_port(job, ports[end]);
	}
}

/* The knobs that an impair request turns. */
static uint32_t knobs_of(struct json_span set, int named)
{
	static const struct {
		const char *key;
		uint32_t knob;
	} keys[] = { { "loss_ppm", SUPERVISOR_KNOB_LOSS },
		{ "corrupt_ppm", SUPERVISOR_KNOB_CORRUPT },
		{ "reorder_ppm", SUPERVISOR_KNOB_REORDER }, { "delay_ns", SUPERVISOR_KNOB_DELAY },
		{ "jitter_ns", SUPERVISOR_KNOB_JITTER }, { "rate_bps", SUPERVISOR_KNOB_RATE } };
	uint32_t knobs = 0;

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (json_span_get(set.at, set.size, keys[i].key).at != NULL)
			knobs |= keys[i].knob;
	if (json_span_get(set.at, set.size, "silent").at != NULL)
		knobs |= SUPERVISOR_KNOB_SILENT(named);
	return knobs;
}

/* False: answered. */
static bool begin_term(const struct supervisor_call *r, uint32_t link, uint32_t knobs,
	const struct supervisor_term *term)
{
	if (supervisor_heal_link(r->s, link, knobs, term) == 0)
		return true;
	supervisor_client_error(r->client, r->id, "out of memory");
	return false;
}

/* All knobs go to both ends, but silence is one-way: of the end that was named. */
static void impair(const struct supervisor_call *r, uint32_t port, uint32_t link,
	const struct supervisor_term *term)
{
	struct supervisor_link *l = &r->s->links[link];
	struct json_span set = supervisor_call_member(r, "set"), silent;
	struct node_impairment ends[2] = { l->impairment[0], l->impairment[1] };
	int named = r->s->topo->links[link].port_a == port ? 0 : 1;

	if (set.at == NULL || set.at[0] != '{' || !take_impairment(set, &ends[0]) ||
		!take_impairment(set, &ends[1])) {
		supervisor_client_wrong(r->client, r->id, "impairment out of range");
		return;
	}
	silent = json_span_get(set.at, set.size, "silent");
	if (silent.at != NULL)
		ends[named].silent = json_span_is_true(silent);
	if (!begin_term(r, link, knobs_of(set, named), term))
		return;
	memcpy(l->impairment, ends, sizeof(ends));
	supervisor_event_asked(r->s, link);
	tell_ends(r, link, false);
}

/* down and up are toggled count times; the first one is done by who asks. False: answered. */
static bool take_flap(const struct supervisor_call *r, struct supervisor_term *term)
{
	int64_t count, period_ms;

	if (!json_span_integer(supervisor_call_member(r, "count"), &count) || count < 1 ||
		count > FLAPS_MAX || !supervisor_call_wall_ms(r, "period_ns", &period_ms) ||
		period_ms < 2) {
		supervisor_client_wrong(r->client, r->id,
			"a flap takes 1 to %d downs and a period of 2 ms to 24 h of wall time",
			FLAPS_MAX);
		return false;
	}
	term->toggles = 2 * (uint32_t)count - 2;
	term->half_ms = period_ms / 2;
	term->for_ms = period_ms;
	return true;
}

void supervisor_op_link(const struct supervisor_call *r)
{
	char name[TOPO_NODE_NAME_MAX + TOPO_PORT_NAME_MAX + 2] = "?";
	struct json_span action = supervisor_call_member(r, "action");
	uint32_t port = TOPO_NONE, link;
	struct supervisor_term term;
	bool flap = json_span_is(action, "flap"), reset = json_span_is(action, "reset");
	int err;

	if (json_span_string(supervisor_call_member(r, "link"), name, sizeof(name)))
		port = topo_find_port(r->s->topo, name);
	if (port == TOPO_NONE) {
		supervisor_client_wrong(r->client, r->id, "%s: no such link", name);
		return;
	}
	link = r->s->topo->ports[port].link;
	if (!supervisor_call_term(r, &term) || (flap && !take_flap(r, &term)))
		return;
	if (json_span_is(action, "impair")) {
		impair(r, port, link, &term);
		return;
	}
	if (!json_span_is(action, "down") && !json_span_is(action, "up") && !flap && !reset) {
		supervisor_client_wrong(r->client, r->id, "no such action");
		return;
	}
	if (!begin_term(r, link, reset ? SUPERVISOR_KNOBS : SUPERVISOR_KNOB_DOWN, &term))
		return;
	r->s->links[link].down = flap || json_span_is(action, "down");
	if (reset)
		memset(r->s->links[link].drained, 0, sizeof(r->s->links[link].drained));
	if (reset)
		r->s->links[link].impairment[0] = r->s->links[link].impairment[1] =
			node_impairment_own(&r->s->topo->links[link]);
	supervisor_event_asked(r->s, link);
	err = supervisor_link_apply(r->s, link);
	if (err < 0) {
		supervisor_client_error(r->client, r->id, "%s: %s", name, strerror(-err));
	} else if (reset) {
		tell_ends(r, link, true);
	} else {
		supervisor_client_result(r->client, r->id, "{}", 2);
	}
}

/* drain */

static void drain_link(
	const struct supervisor_call *r, uint32_t port, const struct supervisor_term *term)
{
	uint32_t link = r->s->topo->ports[port].link;
	const struct topo_link *l = &r->s->topo->links[link];
	int named = l->port_a == port ? 0 : 1;
	bool drained = json_span_is_true(supervisor_call_member(r, "drained"));
	uint32_t ends = drained ? SUPERVISOR_KNOB_DRAIN(named)
				: SUPERVISOR_KNOB_DRAIN(0) | SUPERVISOR_KNOB_DRAIN(1);
	struct supervisor_job *job;

	if (r->s->topo->ports[port].ethernet) {
		supervisor_client_wrong(r->client, r->id,
			"%s:%s: only links that carry cells are drained, and this one carries "
			"packets: set it down",
			r->s->topo->nodes[r->s->topo->ports[port].node].name,
			r->s->topo->ports[port].name);
		return;
	}
	if (!begin_term(r, link, ends, term))
		return;
	r->s->links[link].drained[named] = drained;
	if (!drained)
		r->s->links[link].drained[1 - named] = false;
	supervisor_event_asked(r->s, link);
	job = supervisor_call_job(r, SUPERVISOR_ANSWER_MS, impaired);
	if (job == NULL)
		return;
	supervisor_drain_ask_port(job, l->port_a);
	supervisor_drain_ask_port(job, l->port_b);
}

static void drain_node(const struct supervisor_call *r, struct supervisor_node *n,
	const struct supervisor_term *term)
{
	struct supervisor_job *job;

	if (r->s->topo->nodes[n->index].switch_index == TOPO_NONE) {
		supervisor_client_wrong(r->client, r->id,
			"%s: only switches of a cell fabric are drained",
			r->s->topo->nodes[n->index].name);
	} else if (supervisor_heal_drain(r->s, n, term) < 0) {
		supervisor_client_error(r->client, r->id, "out of memory");
	} else {
		n->drained = json_span_is_true(supervisor_call_member(r, "drained"));
		supervisor_event_process(n, n->drained ? "drained" : "undrained");
		job = supervisor_call_job(r, SUPERVISOR_ANSWER_MS, impaired);
		if (job != NULL)
			supervisor_drain_ask_node(job, n);
	}
}

void supervisor_op_drain(const struct supervisor_call *r)
{
	char name[TOPO_NODE_NAME_MAX + TOPO_PORT_NAME_MAX + 2] = "?";
	struct supervisor_node *n;
	struct supervisor_term term;
	uint32_t port = TOPO_NONE;

	if (!supervisor_call_term(r, &term))
		return;
	if (supervisor_call_member(r, "link").at == NULL) {
		n = supervisor_call_node(r);
		if (n != NULL)
			drain_node(r, n, &term);
		return;
	}
	if (json_span_string(supervisor_call_member(r, "link"), name, sizeof(name)))
		port = topo_find_port(r->s->topo, name);
	if (port == TOPO_NONE)
		supervisor_client_wrong(r->client, r->id, "%s: no such link", name);
	else
		drain_link(r, port, &term);
}
