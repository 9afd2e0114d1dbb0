#include "topo/plan.h"
#include <stdlib.h>
#include <string.h>
#include "base/time.h"
#include "topo/bgp.h"
#include "topo/pod.h"

/* Measured on the development machine; a laptop should do better. */
#define TRAIN_HOP_NS    1500u /* one frame through one process, whatever it holds */
#define CELL_HOP_NS     150u  /* one 512-B cell in a 16 KB train */
#define PACKET_HOP_NS   4000u /* one packet at a GPU port, both ends' kernels included */
#define QUANTUM_WALL_NS 250000u
/* Of the cores' time, by the costs above. The rest goes to wake-ups and cache misses: on two cores
 * saturated labs were valid and within 3 % of the simulator from half of what this gives. */
#define LOAD_PERCENT       7u
#define ROUND_TRIP_WALL_NS NS_PER_S /* nobody waits longer for a ping */
#define WIRE_BYTES         170u /* transport, UDP, IPv6 headers and 24 B of wire around a payload */

/* Kernel memory of a namespace and a veth pair (upper ends of what was measured), of a process at
 * rest, and of its receive buffers (64 x 16 KB on cell ports, 128 x 9.2 KB on Ethernet ports). */
#define NAMESPACE_BYTES  (200u << 10)
#define LINK_BYTES       (96u << 10)
#define PROCESS_BYTES    (1u << 20)
#define CELL_RING_BYTES  (64u * 16384u)
#define FRAME_RING_BYTES (128u * 9421u)

/* Sum of the rates of a node's links of one kind. */
static uint64_t node_rate(const struct topo *t, const struct topo_node *n, enum topo_link_kind kind)
{
	uint64_t sum = 0;

	for (uint32_t k = 0; k < n->ports_count; k++) {
		const struct topo_link *l = &t->links[topo_node_port(t, n, k)->link];

		if (l->kind == kind && !l->loop)
			sum = topo_rate_add(sum, l->rate_bps);
	}
	return sum;
}

static void plan_node(const struct topo *t, const struct topo_node *n, struct topo_plan *plan)
{
	uint64_t gpu = node_rate(t, n, TOPO_LINK_GPU), fabric = node_rate(t, n, TOPO_LINK_FABRIC);
	uint64_t spine = node_rate(t, n, TOPO_LINK_SPINE);

	if (n->role == TOPO_ROLE_RDSW && gpu != 0) {
		uint32_t speedup = topo_rate_ratio_milli(fabric, gpu),
			 over = topo_rate_ratio_milli(gpu, fabric);

		if (speedup != 0 && (plan->speedup_milli == 0 || speedup < plan->speedup_milli))
			plan->speedup_milli = speedup;
		if (over > plan->over_rdsw_milli)
			plan->over_rdsw_milli = over;
	}
	if (n->role == TOPO_ROLE_FDSW && spine != 0) {
		uint32_t over = topo_rate_ratio_milli(fabric, spine);

		if (over > plan->over_fdsw_milli)
			plan->over_fdsw_milli = over;
	}
}

#define BUILDINGS_MAX 256

static void plan_buildings(const struct topo *t, struct topo_plan *plan)
{
	uint8_t clusters[BUILDINGS_MAX][BUILDINGS_MAX / 8] = { { 0 } };
	bool seen[BUILDINGS_MAX] = { false };

	for (uint32_t i = 0; i < t->nodes_count; i++) {
		const struct topo_node *n = &t->nodes[i];

		if (n->building == TOPO_NONE)
			continue;
		if (!seen[n->building])
			plan->buildings++;
		seen[n->building] = true;
		if (n->cluster != TOPO_NONE) {
			uint8_t *byte = &clusters[n->building][n->cluster / 8];
			uint8_t bit = (uint8_t)(1u << (n->cluster % 8));

			plan->clusters += (*byte & bit) == 0;
			*byte |= bit;
		}
	}
}

static uint64_t gpu_rate(const struct topo *t)
{
	uint64_t rate = 0;

	for (uint32_t i = 0; i < t->endpoints_count; i++) {
		uint64_t sum = 0;

		for (uint32_t plane = 0; plane < t->planes; plane++) {
			const struct topo_port *p = topo_endpoint_port(t, i, plane);

			if (p != NULL)
				sum = topo_rate_add(sum, t->links[p->link].rate_bps);
		}
		if (sum == TOPO_UNLIMITED || (i > 0 && sum != rate))
			return 0;
		rate = sum;
	}
	return rate;
}

static void plan_edge(const struct topo *t, struct topo_plan *plan)
{
	struct topo_pod pod;

	for (bool any = topo_pod_next(t, NULL, &pod); any; any = topo_pod_next(t, &pod, &pod)) {
		if (pod.over_milli > plan->over_edge_milli)
			plan->over_edge_milli = pod.over_milli;
	}
}

/* Halves of hosts; of clusters where there are several; of buildings where there are several. Each
 * half's share of a tier's links is what it can send into the other half. */
static uint64_t bisection(const struct topo_plan *plan)
{
	uint64_t least = plan->rates_bps[TOPO_LINK_GPU];

	if (plan->kinds[TOPO_LINK_FABRIC] > 0 && plan->rates_bps[TOPO_LINK_FABRIC] < least)
		least = plan->rates_bps[TOPO_LINK_FABRIC];
	if (plan->kinds[TOPO_LINK_SPINE] > 0 && plan->rates_bps[TOPO_LINK_SPINE] < least)
		least = plan->rates_bps[TOPO_LINK_SPINE];
	if (plan->buildings > 1 && plan->rates_bps[TOPO_LINK_EDGE] < least)
		least = plan->rates_bps[TOPO_LINK_EDGE];
	return least == TOPO_UNLIMITED ? least : least / 2;
}

static uint64_t memory(const struct topo *t)
{
	uint64_t bytes = (uint64_t)t->links_count * LINK_BYTES;

	for (uint32_t i = 0; i < t->nodes_count; i++) {
		bool cells = false, frames = false;

		for (uint32_t k = 0; k < t->nodes[i].ports_count; k++) {
			bool ethernet = topo_node_port(t, &t->nodes[i], k)->ethernet;

			frames = frames || ethernet;
			cells = cells || !ethernet;
		}
		bytes += NAMESPACE_BYTES + PROCESS_BYTES + (cells ? CELL_RING_BYTES : 0) +
			 (frames ? FRAME_RING_BYTES : 0);
	}
	return bytes;
}

/* CPU nanoseconds that one direction of a link costs in a fabric second at its rate. */
static uint64_t link_cost(const struct topo *t, const struct topo_link *l)
{
	uint64_t bytes = l->rate_bps / 8;
	uint32_t cell = t->fabric.cell_bytes;
	uint32_t train = t->fabric.train_bytes != 0 ? t->fabric.train_bytes : cell;

	if (!t->ports[l->port_a].ethernet)
		return bytes / train * TRAIN_HOP_NS + bytes / cell * CELL_HOP_NS;
	return bytes / (t->transport.payload_bytes + WIRE_BYTES) * PACKET_HOP_NS;
}

static uint32_t dilation_quantum(const struct topo *t)
{
	uint64_t fastest = 0, bits = 8u * TOPO_TRAIN_BYTES_MAX;

	if (t->fabric.train_bytes != 0)
		bits = 8u * t->fabric.train_bytes;
	for (uint32_t i = 0; i < t->links_count; i++) {
		const struct topo_link *l = &t->links[i];

		if ((l->kind == TOPO_LINK_FABRIC || l->kind == TOPO_LINK_SPINE) &&
			l->rate_bps > fastest)
			fastest = l->rate_bps;
	}
	return (uint32_t)(((unsigned __int128)QUANTUM_WALL_NS * fastest / bits + 999999999u) /
			  1000000000u);
}

static uint32_t dilation_load(const struct topo *t, uint32_t cores)
{
	unsigned __int128 cost_ns = 0;
	uint64_t room_ns = (uint64_t)cores * 10000000u * LOAD_PERCENT; /* of a wall second */

	for (uint32_t i = 0; i < t->links_count; i++)
		cost_ns += 2 * link_cost(t, &t->links[i]);
	cost_ns = (cost_ns + room_ns - 1) / room_ns;
	return cost_ns > TOPO_DILATION_MAX ? TOPO_DILATION_MAX : (uint32_t)cost_ns;
}

uint32_t topo_auto_dilation(const struct topo *t, uint32_t cores)
{
	uint32_t quantum = dilation_quantum(t), load = dilation_load(t, cores == 0 ? 1 : cores);
	uint32_t d, step = 1;

	/* Larger labs are for failures, not for line rate: fidelity says what a load would need. */
	if (t->base_rtt_ns > 0 && load > ROUND_TRIP_WALL_NS / t->base_rtt_ns)
		load = (uint32_t)(ROUND_TRIP_WALL_NS / t->base_rtt_ns);
	d = quantum > load ? quantum : load;
	if (d == 0)
		d = 1;
	while (d / step >= 100)
		step *= 10;
	d = (d + step - 1) / step * step;
	return d > TOPO_DILATION_MAX ? TOPO_DILATION_MAX : d;
}

/* Interface nodes of each building and plane speak each with each. */
static uint64_t fsdb_sessions(const struct topo *t)
{
	uint32_t *counts = calloc(BUILDINGS_MAX * TOPO_PLANES_MAX, sizeof(*counts));
	uint64_t sessions = 0;

	for (uint32_t i = 0; counts != NULL && i < t->nodes_count; i++) {
		const struct topo_node *n = &t->nodes[i];

		if (topo_is_interface_node(n->role) && t->fabric.mode == TOPO_FABRIC_DSF)
			sessions += counts[n->building * TOPO_PLANES_MAX + n->plane]++;
	}
	free(counts);
	return sessions;
}

static void count_bgp(const struct topo *t, struct topo_plan *plan)
{
	for (uint32_t i = 0; i < t->nodes_count; i++) {
		struct topo_bgp_walk walk = { 0 };
		struct topo_bgp_peer peer;

		while (topo_bgp_next(t, i, &walk, &peer)) {
			if (i > peer.node && topo_is_routed(&t->nodes[peer.node]))
				continue; /* counted at the other end */
			plan->bgp_sessions++;
			plan->ibgp_sessions += peer.asn == t->nodes[i].asn;
		}
	}
}

void topo_plan(const struct topo *t, uint32_t cores, struct topo_plan *plan)
{
	memset(plan, 0, sizeof(*plan));
	for (uint32_t i = 0; i < t->nodes_count; i++) {
		plan->roles[t->nodes[i].role]++;
		plan_node(t, &t->nodes[i], plan);
	}
	for (uint32_t i = 0; i < t->links_count; i++) {
		const struct topo_link *l = &t->links[i];

		plan->kinds[l->kind]++;
		if (!l->loop)
			plan->rates_bps[l->kind] =
				topo_rate_add(plan->rates_bps[l->kind], l->rate_bps);
	}
	for (uint32_t i = 0; i < t->ports_count; i++)
		plan->system_ports += t->ports[i].system_port != TOPO_NONE;
	plan->fsdb_sessions = fsdb_sessions(t);
	count_bgp(t, plan);
	plan->gpu_bps = gpu_rate(t);
	plan_buildings(t, plan);
	plan_edge(t, plan);
	plan->bisection_bps = bisection(plan);
	plan->memory_bytes = memory(t);
	plan->dilation_quantum = dilation_quantum(t);
	plan->dilation_load = dilation_load(t, cores == 0 ? 1 : cores);
	plan->dilation = topo_auto_dilation(t, cores);
}
