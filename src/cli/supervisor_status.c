#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/fidelity.h"
#include "cli/lab_status.h"
#include "cli/supervisor.h"

#define ASK_PORTS    "\"op\":\"view\",\"query\":\"port\""
#define ASK_FIDELITY "\"op\":\"fidelity\",\"reset\":false"

static bool all_ready(const struct supervisor *s)
{
	return s->ready_count == s->processes_count && s->started_count == s->processes_count;
}

/* Has an interface node no way into the fabric, though nothing failed: are all its links drained,
 * which was asked of them one by one or of the switches at their other ends? */
static bool is_cut_off(const struct supervisor *s, uint32_t node)
{
	const struct topo_node *n = &s->topo->nodes[node];
	uint32_t links = 0;

	if (!topo_is_interface_node(n->role) || s->nodes[node].drained)
		return false;
	for (uint32_t i = n->first_port; i < n->first_port + n->ports_count; i++) {
		uint32_t link = s->topo->ports[i].link;

		if (s->topo->ports[i].ethernet || s->topo->links[link].loop)
			continue;
		if (!supervisor_drain_asked(s, link))
			return false;
		links++;
	}
	return links > 0;
}

const char *supervisor_state_name(const struct supervisor *s)
{
	switch (s->phase) {
	case SUPERVISOR_BUILDING:
	case SUPERVISOR_STARTING: return "starting";
	case SUPERVISOR_RUNNING: break;
	case SUPERVISOR_ENDING: return "ending";
	}
	for (uint32_t i = 0; i < s->topo->nodes_count; i++)
		if (s->nodes[i].state == SUPERVISOR_NODE_FROZEN || is_cut_off(s, i))
			return "degraded";
	return all_ready(s) ? "ready" : "degraded";
}

/*
 * Where every node says that it is ready, every link is live: that is what ready means. Else the
 * ports are asked for. A frozen node can't answer, so it isn't asked.
 */
struct supervisor_job *supervisor_status_ask(struct supervisor *s, struct supervisor_client *client,
	const char *id, void (*done)(struct supervisor_job *job))
{
	struct supervisor_job *job = supervisor_job_new(s, client, id, SUPERVISOR_ANSWER_MS, done);
	bool ports = !all_ready(s);

	for (uint32_t i = 0; job != NULL && i < s->topo->nodes_count; i++) {
		if (!supervisor_node_answers(&s->nodes[i]))
			continue;
		supervisor_job_ask(
			job, &s->nodes[i], "fidelity", ASK_FIDELITY, strlen(ASK_FIDELITY));
		if (ports)
			supervisor_job_ask(job, &s->nodes[i], "port", ASK_PORTS, strlen(ASK_PORTS));
	}
	return job;
}

/* How an external node's command ended. */
static void add_end(const struct supervisor_node *n, cJSON *node)
{
	char why[sizeof(n->last_line) + 32];

	if (n->s->topo->nodes[n->index].role != TOPO_ROLE_EXTERNAL ||
		(n->state != SUPERVISOR_NODE_DEAD && n->state != SUPERVISOR_NODE_STOPPED))
		return;
	supervisor_external_why(n, why, sizeof(why));
	cJSON_AddNumberToObject(node, "exit_code", n->exit_code);
	cJSON_AddStringToObject(node, "why", why);
}

/* True: a switch is cut off. */
static bool add_nodes(const struct supervisor *s, cJSON *status)
{
	cJSON *nodes = cJSON_AddArrayToObject(status, "nodes");
	char name[NETNS_NS_NAME_MAX + 1];
	bool any = false;

	for (uint32_t i = 0; i < s->topo->nodes_count; i++) {
		const struct supervisor_node *n = &s->nodes[i];
		bool cut_off = is_cut_off(s, i);
		cJSON *node = cJSON_CreateObject();

		snprintf(name, sizeof(name), "%s-%s", s->topo->name, s->topo->nodes[i].name);
		cJSON_AddStringToObject(node, "name", s->topo->nodes[i].name);
		cJSON_AddStringToObject(node, "role", topo_role_name(s->topo->nodes[i].role));
		if (n->pid != 0)
			cJSON_AddNumberToObject(node, "pid", n->pid);
		else
			cJSON_AddNullToObject(node, "pid");
		cJSON_AddStringToObject(node, "netns", name);
		cJSON_AddStringToObject(node, "state", supervisor_node_state_name(n));
		if (n->drained)
			cJSON_AddBoolToObject(node, "drained", true);
		if (cut_off)
			cJSON_AddBoolToObject(node, "cut_off", true);
		any = any || cut_off;
		add_end(n, node);
		cJSON_AddItemToArray(nodes, node);
	}
	return any;
}

/* The worse state of a link's two ends is the link's. */
enum port_state {
	PORT_UNKNOWN,
	PORT_UP,
	PORT_DRAINED,
	PORT_SILENT,
	PORT_ISOLATED,
	PORT_NO_CARRIER,
	PORT_DEAD,
};

static bool is_true(const cJSON *row, const char *key)
{
	return cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(row, key));
}

static enum port_state port_state(const cJSON *row)
{
	if (!is_true(row, "carrier"))
		return PORT_NO_CARRIER;
	if (is_true(row, "isolated"))
		return PORT_ISOLATED;
	if (!is_true(row, "live"))
		return PORT_SILENT;
	return is_true(row, "drained") || is_true(row, "peer_drained") ? PORT_DRAINED : PORT_UP;
}

/* A node's rows: {"port":"fab0","carrier":true,"live":true,...}. */
static void read_ports(
	const struct supervisor *s, const struct supervisor_answer *a, uint8_t *ports)
{
	const struct topo_node *node = &s->topo->nodes[a->node];
	cJSON *rows = cJSON_ParseWithLength(a->text, a->size), *row;

	cJSON_ArrayForEach(row, rows)
	{
		const cJSON *name = cJSON_GetObjectItemCaseSensitive(row, "port");

		for (uint32_t i = 0; cJSON_IsString(name) && i < node->ports_count; i++)
			if (strcmp(s->topo->ports[node->first_port + i].name, name->valuestring) ==
				0)
				ports[node->first_port + i] = (uint8_t)port_state(row);
	}
	cJSON_Delete(rows);
}

/* What is known of every port; NULL when memory is short. */
static uint8_t *port_states(struct supervisor_job *job)
{
	struct supervisor *s = job->s;
	uint8_t *ports = calloc(s->topo->ports_count + 1, 1);

	for (uint32_t i = 0; ports != NULL && i < s->topo->ports_count; i++) {
		const struct supervisor_node *n = &s->nodes[s->topo->ports[i].node];

		if (s->topo->nodes[n->index].role == TOPO_ROLE_EXTERNAL)
			continue; /* its ports are up, whatever it runs */
		if (n->state == SUPERVISOR_NODE_DEAD || n->state == SUPERVISOR_NODE_STOPPED)
			ports[i] = PORT_DEAD;
		else if (n->ready)
			ports[i] = n->state == SUPERVISOR_NODE_FROZEN ? PORT_UNKNOWN : PORT_UP;
	}
	for (uint32_t i = 0; ports != NULL && i < job->answers_count; i++)
		if (strcmp(job->answers[i].query, "port") == 0 && job->answers[i].text != NULL &&
			!job->answers[i].failed)
			read_ports(s, &job->answers[i], ports);
	return ports;
}

/* What a link is, by what is asked of it and what its ends say. */
static struct lab_status_link link_state(
	const struct supervisor *s, uint32_t link, const uint8_t *ports)
{
	const struct topo_link *l = &s->topo->links[link];
	uint8_t a = ports[l->port_a], b = ports[l->port_b];
	bool drained = supervisor_drain_asked(s, link);

	if (s->links[link].down)
		return (struct lab_status_link){ LAB_LINK_DOWN, "set down" };
	if (l->loop)
		return (struct lab_status_link){ drained ? LAB_LINK_DRAINED : LAB_LINK_DOWN,
			"a switch's cable to itself" };
	switch ((enum port_state)(a > b ? a : b)) {
	case PORT_UNKNOWN:
	case PORT_UP:
		return (struct lab_status_link){ drained ? LAB_LINK_DRAINED : LAB_LINK_UP, NULL };
	case PORT_DRAINED:
		return (struct lab_status_link){ LAB_LINK_DRAINED,
			drained                                 ? NULL
			: s->topo->fabric.min_links_to_join > 0 ? "a switch is below its minimum "
								  "links"
								: "not undrained yet" };
	case PORT_SILENT: return (struct lab_status_link){ LAB_LINK_DOWN, "an end hears nothing" };
	case PORT_ISOLATED:
		return (struct lab_status_link){ LAB_LINK_DOWN, "isolated: it loses cells" };
	case PORT_NO_CARRIER: return (struct lab_status_link){ LAB_LINK_DOWN, "no carrier" };
	case PORT_DEAD:
		return (struct lab_status_link){ LAB_LINK_DOWN, "a node at its end is dead" };
	}
	return (struct lab_status_link){ LAB_LINK_DOWN, NULL };
}

/* Adds the links; true when none is down: a drain was asked for. */
static bool add_links(const struct supervisor *s, const uint8_t *ports, cJSON *status)
{
	struct lab_status_link *states = calloc(s->topo->links_count + 1, sizeof(*states));
	uint32_t index = 0;
	bool none_down = true;
	cJSON *links;

	for (uint32_t i = 0; i < s->topo->links_count; i++) {
		struct lab_status_link state = { LAB_LINK_DOWN, NULL };

		if (ports != NULL)
			state = link_state(s, i, ports);
		if (states != NULL)
			states[i] = state;
		/* A loop is as the lab file has it. */
		none_down = none_down && (state.state != LAB_LINK_DOWN || s->topo->links[i].loop);
	}
	cJSON_AddItemToObject(status, "links", links = lab_status_links(s->topo, states));
	for (cJSON *link = links->child; link != NULL; link = link->next, index++) {
		cJSON *impairment = supervisor_impairment(s, index);

		if (impairment != NULL)
			cJSON_AddItemToObject(link, "impairment", impairment);
	}
	free(states);
	return none_down;
}

static cJSON *make(struct supervisor *s, const char *state, const uint8_t *ports,
	const struct fidelity *f, const struct lab_sessions *sessions)
{
	cJSON *status = cJSON_CreateObject(), *state_item;
	bool none_down, cut_off;

	cJSON_AddStringToObject(status, "lab", s->topo->name);
	cJSON_AddStringToObject(status, "state", "degraded");
	cJSON_AddNumberToObject(status, "time_dilation", s->topo->time_dilation);
	cut_off = add_nodes(s, status);
	none_down = add_links(s, ports, status);
	cJSON_AddItemToObject(status, "sessions", lab_status_sessions(sessions));
	cJSON_AddItemToObject(status, "fidelity", fidelity_json(f, s->topo));
	if (state == NULL)
		state = none_down && !cut_off && strcmp(supervisor_state_name(s), "ready") == 0
				? "ready"
				: "degraded";
	state_item = cJSON_CreateString(state);
	cJSON_ReplaceItemInObjectCaseSensitive(status, "state", state_item);
	return status;
}

cJSON *supervisor_status_object(struct supervisor_job *job)
{
	struct fidelity *f = calloc(1, sizeof(*f));
	uint8_t *ports = port_states(job);
	struct lab_sessions sessions = { .bgp = { 0, 0 } };
	uint32_t told = 0;
	cJSON *status = NULL;

	for (uint32_t i = 0; f != NULL && i < job->answers_count; i++) {
		const struct supervisor_answer *a = &job->answers[i];

		if (strcmp(a->query, "fidelity") != 0 || a->text == NULL || a->failed)
			continue;
		told++;
		lab_status_add_sessions(&sessions, a->text, a->size);
		if (!fidelity_add(f, a->text, a->size))
			supervisor_log(job->s, "%s: its fidelity answer makes no sense",
				job->s->topo->nodes[a->node].name);
	}
	if (f != NULL && ports != NULL)
		status = make(job->s, NULL, ports, told > 0 ? f : NULL, &sessions);
	free(ports);
	free(f);
	return status;
}

static void add_asked_link(const struct supervisor *s, uint32_t link, cJSON *links)
{
	const struct supervisor_link *l = &s->links[link];
	const struct topo_port *p = &s->topo->ports[s->topo->links[link].port_a];
	char name[TOPO_NODE_NAME_MAX + TOPO_PORT_NAME_MAX + 2];
	cJSON *impairment = supervisor_impairment(s, link), *row;
	bool impaired = impairment != NULL;

	cJSON_Delete(impairment);
	if (!l->down && !impaired && !l->drained[0] && !l->drained[1])
		return;
	row = cJSON_CreateObject();
	snprintf(name, sizeof(name), "%s:%s", s->topo->nodes[p->node].name, p->name);
	cJSON_AddStringToObject(row, "link", name);
	cJSON_AddBoolToObject(row, "down", l->down);
	cJSON_AddBoolToObject(row, "impaired", impaired);
	cJSON_AddBoolToObject(row, "drained", l->drained[0] || l->drained[1]);
	cJSON_AddItemToArray(links, row);
}

cJSON *supervisor_asked_object(const struct supervisor *s)
{
	cJSON *asked = cJSON_CreateObject();
	cJSON *links = cJSON_AddArrayToObject(asked, "links");
	cJSON *nodes = cJSON_AddArrayToObject(asked, "nodes");
	cJSON *drained = cJSON_AddArrayToObject(asked, "drained");

	for (uint32_t i = 0; i < s->topo->links_count; i++)
		add_asked_link(s, i, links);
	for (uint32_t i = 0; i < s->topo->nodes_count; i++) {
		const struct supervisor_node *n = &s->nodes[i];
		cJSON *row;

		if (n->drained)
			cJSON_AddItemToArray(drained, cJSON_CreateString(s->topo->nodes[i].name));
		if (n->state == SUPERVISOR_NODE_ALIVE || n->state == SUPERVISOR_NODE_EXTERNAL)
			continue;
		row = cJSON_CreateObject();
		cJSON_AddStringToObject(row, "node", s->topo->nodes[i].name);
		cJSON_AddStringToObject(row, "state", supervisor_node_state_name(n));
		cJSON_AddItemToArray(nodes, row);
	}
	return asked;
}

cJSON *supervisor_status_failed(struct supervisor *s)
{
	static const struct lab_sessions none;

	return make(s, "failed", NULL, NULL, &none);
}
