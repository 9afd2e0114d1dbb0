#include "topo/pod.h"
#include "topo/bgp.h"
#include "topo/plan.h"

static void add_link(const struct topo *t, const struct topo_port *p, struct topo_pod *pod)
{
	const struct topo_link *l = &t->links[p->link];

	if (l->kind == TOPO_LINK_GPU)
		pod->gpu_bps = topo_rate_add(pod->gpu_bps, l->rate_bps);
	if (l->kind != TOPO_LINK_EDGE)
		return;
	if (pod->ports == 0)
		pod->port_bps = l->rate_bps;
	else if (pod->port_bps != l->rate_bps)
		pod->port_bps = 0;
	pod->ports++;
	pod->edge_bps = topo_rate_add(pod->edge_bps, l->rate_bps);
}

static void fill(const struct topo *t, uint32_t building, uint32_t plane, struct topo_pod *pod)
{
	*pod = (struct topo_pod){ .building = building,
		.plane = plane,
		.aggregate = topo_bgp_aggregate(plane, building) };
	for (uint32_t i = 0; i < t->nodes_count; i++) {
		const struct topo_node *n = &t->nodes[i];

		if (n->building != building || n->plane != plane ||
			!topo_is_interface_node(n->role))
			continue;
		if (n->role == TOPO_ROLE_EDSW && pod->edsws++ == 0)
			pod->asn = n->asn;
		pod->rdsws += n->role == TOPO_ROLE_RDSW;
		for (uint32_t k = 0; k < n->ports_count; k++)
			add_link(t, topo_node_port(t, n, k), pod);
	}
	for (uint32_t i = 0; i < t->endpoints_count; i++)
		pod->gpus += t->nodes[t->endpoints[i].host].building == building;
	pod->over_milli = topo_rate_ratio_milli(pod->gpu_bps, pod->edge_bps);
}

/* Of two EDSWs' places the earlier one. */
static bool is_before(const struct topo_node *a, const struct topo_node *b)
{
	return a->building != b->building ? a->building < b->building : a->plane < b->plane;
}

bool topo_pod_next(const struct topo *t, const struct topo_pod *before, struct topo_pod *pod)
{
	struct topo_node last = { .building = 0, .plane = 0 };
	const struct topo_node *first = NULL;

	if (before != NULL)
		last = (struct topo_node){ .building = before->building, .plane = before->plane };
	for (uint32_t i = 0; i < t->nodes_count; i++) {
		const struct topo_node *n = &t->nodes[i];

		if (n->role == TOPO_ROLE_EDSW && (before == NULL || is_before(&last, n)) &&
			(first == NULL || is_before(n, first)))
			first = n;
	}
	if (first != NULL)
		fill(t, first->building, first->plane, pod);
	return first != NULL;
}
