#include "sim/drill.h"
#include <stdlib.h>
#include "base/err.h"

struct player {
	struct sim *sim;
	const struct topo *topo;
	struct node_drill *drill;
	const struct workload_spec *load;
	struct node_impairment *impairments; /* of every port, as it is to be */
	bool *drained_ports, *drained_nodes;
};

static void take_row(void *user, const struct node_row *row)
{
	const struct player *p = user;

	node_drill_row(p->drill, row);
}

static void observe(struct player *p, const struct node_drill_output *out)
{
	for (uint32_t i = 0; i < p->topo->nodes_count; i++)
		node_drill_node(p->drill, i,
			sim_node(p->sim, i) == NULL  ? NODE_DRILL_DEAD
			: sim_node_frozen(p->sim, i) ? NODE_DRILL_FROZEN
						     : NODE_DRILL_RUNNING);
	sim_view(p->sim, TOPO_NONE, NODE_QUERY_PORT, TOPO_NONE, take_row, p);
	sim_view(p->sim, TOPO_NONE, NODE_QUERY_REACHABILITY, TOPO_NONE, take_row, p);
	sim_view(p->sim, TOPO_NONE, NODE_QUERY_COUNTERS, TOPO_NONE, take_row, p);
	if (out->flows)
		sim_view(p->sim, TOPO_NONE, NODE_QUERY_WORKLOAD, TOPO_NONE, take_row, p);
	node_drill_observed(p->drill, sim_now(p->sim));
}

/* To every host that runs: a dead one has no part in it any more. */
static int command_hosts(struct player *p, const struct node_command *command)
{
	int err = 0;

	for (uint32_t i = 0; i < p->topo->nodes_count && err == 0; i++)
		if (p->topo->nodes[i].role == TOPO_ROLE_HOST) {
			err = sim_command(p->sim, i, command);
			err = err == -DSF_E_STATE ? 0 : err;
		}
	return err;
}

static int start_load(struct player *p, uint64_t load_ns)
{
	struct workload_spec spec = *p->load;
	struct node_command command = { .kind = NODE_COMMAND_WORKLOAD_START, .workload = &spec };
	int err;

	spec.iterations = 0;
	spec.start_at = dsf_time_after(sim_now(p->sim), WORKLOAD_START_RTTS * p->topo->base_rtt_ns);
	spec.stop_at = dsf_time_after(spec.start_at, load_ns);
	err = command_hosts(p, &command);
	node_drill_started(p->drill, spec.start_at);
	return err;
}

static int impair(struct player *p, uint32_t port)
{
	const struct topo_port *at = &p->topo->ports[port];
	struct node_command command = {
		.kind = NODE_COMMAND_IMPAIR, .port = at->number, .impairment = p->impairments[port]
	};
	int err = sim_command(p->sim, at->node, &command);

	return err == -DSF_E_STATE ? 0 : err; /* told when it is back */
}

static int drain_port(struct player *p, uint32_t port)
{
	const struct topo_port *at = &p->topo->ports[port];
	struct node_command command = { .kind = NODE_COMMAND_DRAIN_PORT,
		.port = at->number,
		.drained = p->drained_ports[port] };
	int err = at->ethernet ? 0 : sim_command(p->sim, at->node, &command);

	return err == -DSF_E_STATE ? 0 : err;
}

static int drain_node(struct player *p, uint32_t node)
{
	struct node_command command = { .kind = NODE_COMMAND_DRAIN_NODE,
		.drained = p->drained_nodes[node] };
	int err = p->topo->nodes[node].switch_index == TOPO_NONE
			  ? 0
			  : sim_command(p->sim, node, &command);

	return err == -DSF_E_STATE ? 0 : err;
}

static int set_link(struct player *p, const struct node_drill_output *out)
{
	const struct topo_link *l = &p->topo->links[out->link];
	int err;

	sim_link_set(p->sim, out->link, !out->down);
	p->impairments[l->port_a] = out->impairment[0];
	p->impairments[l->port_b] = out->impairment[1];
	p->drained_ports[l->port_a] = out->drained[0];
	p->drained_ports[l->port_b] = out->drained[1];
	err = impair(p, l->port_a);
	if (err == 0)
		err = impair(p, l->port_b);
	if (err == 0)
		err = drain_port(p, l->port_a);
	return err < 0 ? err : drain_port(p, l->port_b);
}

static int set_node(struct player *p, const struct node_drill_output *out)
{
	const struct topo_node *n = &p->topo->nodes[out->node];
	int err = 0;

	switch (out->state) {
	case NODE_DRILL_DEAD: sim_node_stop(p->sim, out->node); return 0;
	case NODE_DRILL_FROZEN: sim_node_freeze(p->sim, out->node, true); return 0;
	case NODE_DRILL_RUNNING: break;
	}
	sim_node_freeze(p->sim, out->node, false);
	err = sim_node_start(p->sim, out->node);
	if (err == 0)
		err = drain_node(p, out->node);
	for (uint32_t i = 0; i < n->ports_count && err == 0; i++)
		err = drain_port(p, n->first_port + i);
	for (uint32_t i = 0; i < n->ports_count && err == 0; i++)
		err = impair(p, n->first_port + i);
	return err;
}

static int act(struct player *p, const struct node_drill_output *out)
{
	static const struct node_command stop = { .kind = NODE_COMMAND_WORKLOAD_STOP };

	switch (out->what) {
	case NODE_DRILL_OBSERVE: observe(p, out); return 0;
	case NODE_DRILL_START: return start_load(p, out->load_ns);
	case NODE_DRILL_STOP: return command_hosts(p, &stop);
	case NODE_DRILL_LINK: return set_link(p, out);
	case NODE_DRILL_NODE: return set_node(p, out);
	case NODE_DRILL_DRAIN:
		p->drained_nodes[out->node] = out->drained[0];
		return drain_node(p, out->node);
	case NODE_DRILL_TRUST: return 0; /* nothing is ever late here */
	}
	return 0;
}

int sim_drill_run(
	struct sim *s, const struct topo *t, struct node_drill *d, const struct workload_spec *load)
{
	struct player p = { .sim = s, .topo = t, .drill = d, .load = load };
	struct node_drill_output out;
	int err = 0;

	p.impairments = calloc(t->ports_count + 1, sizeof(*p.impairments));
	p.drained_ports = calloc(t->ports_count + 1, sizeof(*p.drained_ports));
	p.drained_nodes = calloc(t->nodes_count + 1, sizeof(*p.drained_nodes));
	if (p.impairments == NULL || p.drained_ports == NULL || p.drained_nodes == NULL)
		err = -DSF_E_NOMEM;
	for (uint32_t i = 0; err == 0 && i < t->ports_count; i++)
		p.impairments[i] = node_impairment_own(&t->links[t->ports[i].link]);
	while (err == 0 && !node_drill_done(d)) {
		node_drill_expire(d, sim_now(s));
		while (err == 0 && node_drill_output(d, &out, sim_now(s)))
			err = act(&p, &out);
		if (err == 0 && !node_drill_done(d))
			err = sim_run_until(s, node_drill_deadline(d));
	}
	free(p.drained_nodes);
	free(p.drained_ports);
	free(p.impairments);
	return err;
}
