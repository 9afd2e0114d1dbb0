#include <stdio.h>
#include <stdlib.h>
#include "cli/supervisor.h"

static bool port_drained(const struct supervisor *s, uint32_t port)
{
	uint32_t link = s->topo->ports[port].link;

	return s->links[link].drained[s->topo->links[link].port_a == port ? 0 : 1];
}

bool supervisor_drain_asked(const struct supervisor *s, uint32_t link)
{
	const struct topo_link *l = &s->topo->links[link];

	if (s->topo->ports[l->port_a].ethernet)
		return false;
	return s->links[link].drained[0] || s->links[link].drained[1] ||
	       s->nodes[s->topo->ports[l->port_a].node].drained ||
	       s->nodes[s->topo->ports[l->port_b].node].drained;
}

bool *supervisor_drain_ports(const struct supervisor_node *n)
{
	const struct topo_node *node = &n->s->topo->nodes[n->index];
	bool *drained = calloc(node->ports_count + 1u, sizeof(*drained));

	for (uint32_t i = 0; drained != NULL && i < node->ports_count; i++)
		drained[i] = port_drained(n->s, node->first_port + i);
	return drained;
}

void supervisor_drain_ask_port(struct supervisor_job *job, uint32_t port)
{
	struct supervisor *s = job->s;
	const struct topo_port *p = &s->topo->ports[port];
	char text[96];
	int size = snprintf(text, sizeof(text), "\"op\":\"drain\",\"port\":\"%s\",\"drained\":%s",
		p->name, port_drained(s, port) ? "true" : "false");

	supervisor_job_ask(job, &s->nodes[p->node], "drain", text, (size_t)size);
}

void supervisor_drain_ask_node(struct supervisor_job *job, struct supervisor_node *n)
{
	char text[64];
	int size = snprintf(text, sizeof(text), "\"op\":\"drain\",\"drained\":%s",
		n->drained ? "true" : "false");

	supervisor_job_ask(job, n, "drain", text, (size_t)size);
}

static void told(struct supervisor_job *job)
{
	for (uint32_t i = 0; i < job->answers_count; i++)
		if (job->answers[i].failed)
			supervisor_log(job->s, "%s: drain not applied: %s",
				job->s->topo->nodes[job->answers[i].node].name,
				job->answers[i].text != NULL ? job->answers[i].text : "no answer");
}

static struct supervisor_job *new_job(struct supervisor_node *n)
{
	if (n->state != SUPERVISOR_NODE_ALIVE)
		return NULL;
	return supervisor_job_new(n->s, NULL, NULL, SUPERVISOR_ANSWER_MS, told);
}

void supervisor_drain_tell_port(struct supervisor *s, uint32_t port)
{
	struct supervisor_job *job = new_job(&s->nodes[s->topo->ports[port].node]);

	if (job != NULL)
		supervisor_drain_ask_port(job, port);
}

void supervisor_drain_tell_node(struct supervisor_node *n)
{
	struct supervisor_job *job = new_job(n);

	if (job != NULL)
		supervisor_drain_ask_node(job, n);
}
