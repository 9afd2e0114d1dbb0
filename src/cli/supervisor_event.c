/*
 * What happens, a line each, for clients that asked for "events":
 *
 *   {"node","event","at_ns","wall_us", ...}
 *
 * at_ns is fabric time since the lab's epoch, wall_us Unix time in microseconds. Nodes tell most of
 * it (uring/news.h): started, ready, link_down, link_up, link_isolated, link_healed, reachability
 * and more. Of our own are
 *
 *   asked     link, down, drained, impairment?  what a link is asked to be, before it is made so
 *   died stopped frozen thawed                  a node's process
 *   drained undrained                           a switch is asked to be
 *   missed    lines                     to a client that reads too slowly: so many were left out
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "cli/supervisor.h"
#include "uring/clock.h"
#include "view/rows.h"

#define BACKLOG_BYTES_MAX (256u << 10) /* of events, to a client that doesn't read */

/* "at_ns" and "wall_us" of now. */
static int stamps(const struct supervisor *s, char *text, size_t size)
{
	struct timespec wall;
	uint64_t since_ns = uring_clock_wall_ns() - s->epoch_ns;

	clock_gettime(CLOCK_REALTIME, &wall);
	return snprintf(text, size, "\"at_ns\":%" PRIu64 ",\"wall_us\":%" PRIu64,
		since_ns / s->topo->time_dilation,
		(uint64_t)wall.tv_sec * 1000000 + (uint64_t)wall.tv_nsec / 1000);
}

static void put(struct supervisor_client *c, const char *head, const char *rest)
{
	supervisor_client_put(c, head, strlen(head));
	supervisor_client_put(c, rest, strlen(rest));
	supervisor_client_put(c, "\n", 1);
}

/* It doesn't read: lines for it count as missed. */
static bool is_backlogged(const struct supervisor_client *c)
{
	return c->channel.out.end - c->channel.out.start > BACKLOG_BYTES_MAX;
}

void supervisor_event_missed(struct supervisor_client *c)
{
	char text[128], line[192];

	if (c->missed == 0 || is_backlogged(c))
		return;
	stamps(c->s, text, sizeof(text));
	snprintf(line, sizeof(line), "%s,\"lines\":%" PRIu64 "}", text, c->missed);
	put(c, "{\"node\":null,\"event\":\"missed\",", line);
	c->missed = 0;
}

/* {"node":"NAME", and rest. */
static void tell(struct supervisor *s, uint32_t node, const char *rest)
{
	char head[TOPO_NODE_NAME_MAX + 16];

	snprintf(head, sizeof(head), "{\"node\":\"%s\",", s->topo->nodes[node].name);
	for (struct supervisor_client *c = s->clients; c != NULL; c = c->next) {
		if (!c->events || c->ended)
			continue;
		if (is_backlogged(c)) {
			c->missed++;
			continue;
		}
		supervisor_event_missed(c);
		put(c, head, rest);
		supervisor_client_flush(c);
	}
}

void supervisor_event_relay(const struct supervisor_node *n, const char *line)
{
	const char *members = strchr(line, '{');

	if (members != NULL)
		tell(n->s, n->index, members + 1);
}

void supervisor_event_process(const struct supervisor_node *n, const char *event)
{
	char text[128], line[192];

	stamps(n->s, text, sizeof(text));
	snprintf(line, sizeof(line), "\"event\":\"%s\",%s}", event, text);
	tell(n->s, n->index, line);
}

static cJSON *port_name(const struct topo *t, uint32_t port)
{
	char name[TOPO_NODE_NAME_MAX + TOPO_PORT_NAME_MAX + 2];

	snprintf(name, sizeof(name), "%s:%s", t->nodes[t->ports[port].node].name,
		t->ports[port].name);
	return cJSON_CreateString(name);
}

cJSON *supervisor_impairment(const struct supervisor *s, uint32_t link)
{
	const struct topo_link *l = &s->topo->links[link];
	const struct node_impairment *ends = s->links[link].impairment;
	struct node_impairment own = node_impairment_own(l);
	cJSON *o, *silent;

	if (node_impairment_equal(&ends[0], &own) && node_impairment_equal(&ends[1], &own))
		return NULL;
	o = view_impairment(&ends[0], &own);
	if (o == NULL || (!ends[0].silent && !ends[1].silent))
		return o;
	silent = cJSON_AddArrayToObject(o, "silent");
	if (ends[0].silent)
		cJSON_AddItemToArray(silent, port_name(s->topo, l->port_a));
	if (ends[1].silent)
		cJSON_AddItemToArray(silent, port_name(s->topo, l->port_b));
	return o;
}

void supervisor_event_asked(struct supervisor *s, uint32_t link)
{
	const struct topo_port *p = &s->topo->ports[s->topo->links[link].port_a];
	cJSON *impairment = supervisor_impairment(s, link);
	char *knobs = impairment != NULL ? cJSON_PrintUnformatted(impairment) : NULL;
	char text[128], line[1024];

	stamps(s, text, sizeof(text));
	snprintf(line, sizeof(line),
		"\"event\":\"asked\",%s,\"link\":\"%s:%s\",\"down\":%s,\"drained\":%s%s%s}", text,
		s->topo->nodes[p->node].name, p->name, s->links[link].down ? "true" : "false",
		s->links[link].drained[0] || s->links[link].drained[1] ? "true" : "false",
		knobs != NULL ? ",\"impairment\":" : "", knobs != NULL ? knobs : "");
	cJSON_Delete(impairment);
	free(knobs);
	tell(s, p->node, line);
}
