#include "node/skew.h"
#include <assert.h>
#include "base/bitset.h"
#include "base/err.h"
#include "fabric/packet.h"

#define EVEN 10000u

static const struct node_skew_tier tiers[NODE_SKEW_TIERS] = {
	{ TOPO_LINK_FABRIC, false, "fabric", "skew_fabric" },
	{ TOPO_LINK_SPINE, false, "spine", "skew_spine" },
	{ TOPO_LINK_FABRIC, true, "pod fabric", "skew_pod_fabric" },
	{ TOPO_LINK_SPINE, true, "pod spine", "skew_pod_spine" },
	{ TOPO_LINK_EDGE, true, "edge", "skew_edge" },
};

const struct node_skew_tier *node_skew_tier(uint32_t i)
{
	assert(i < NODE_SKEW_TIERS);
	return &tiers[i];
}

static size_t bytes_size(const struct node_skew_meter *m)
{
	return (m->topo->ports_count + 1u) * sizeof(*m->bytes);
}

static size_t up_size(const struct node_skew_meter *m)
{
	return (DSF_BITSET_WORDS(m->topo->ports_count) + 1u) * sizeof(*m->up);
}

int node_skew_open(struct node_skew_meter *m, const struct topo *t, const struct dsf_memory *memory)
{
	*m = (struct node_skew_meter){ .topo = t, .memory = memory };
	m->bytes = dsf_memory_new(memory, bytes_size(m));
	m->up = dsf_memory_new(memory, up_size(m));
	return m->bytes == NULL || m->up == NULL ? -DSF_E_NOMEM : 0;
}

void node_skew_close(struct node_skew_meter *m)
{
	if (m->topo == NULL)
		return;
	dsf_memory_delete(m->memory, m->bytes, bytes_size(m));
	dsf_memory_delete(m->memory, m->up, up_size(m));
	m->bytes = m->up = NULL;
}

void node_skew_read(void *user, const struct node_row *row)
{
	struct node_skew_meter *m = user;
	const struct topo_node *n = &m->topo->nodes[row->node];
	const struct node_row_port *r = &row->port;

	if (r->port >= n->ports_count)
		return; /* the host port */
	m->bytes[n->first_port + r->port] =
		topo_node_port(m->topo, n, r->port)->ethernet
			? r->bytes_tx + r->frames_tx * FABRIC_ETHERNET_OVERHEAD
			: r->cell_bytes_tx;
	if (r->carrier)
		dsf_bitset_add(m->up, n->first_port + r->port);
}

static bool is_in(
	const struct topo *t, const struct topo_link *l, const struct node_skew_tier *tier)
{
	const struct topo_node *a = &t->nodes[t->ports[l->port_a].node];
	const struct topo_node *b = &t->nodes[t->ports[l->port_b].node];

	return l->kind == tier->kind && (a->zone == TOPO_NONE) == tier->pod && !l->loop &&
	       a->role != TOPO_ROLE_EXTERNAL && b->role != TOPO_ROLE_EXTERNAL;
}

struct node_skew node_skew_of(const struct node_skew_meter *before,
	const struct node_skew_meter *after, const struct node_skew_tier *tier, bool up)
{
	const struct topo *t = after->topo;
	struct node_skew s = { 0 };

	for (uint32_t i = 0; i < t->links_count; i++) {
		const struct topo_link *l = &t->links[i];
		uint32_t port = up ? l->port_a : l->port_b;
		uint64_t bytes = after->bytes[port];

		if (!is_in(t, l, tier) || !dsf_bitset_has(after->up, l->port_a) ||
			!dsf_bitset_has(after->up, l->port_b))
			continue;
		/* A node that was started anew counts anew. */
		if (bytes >= before->bytes[port])
			bytes -= before->bytes[port];
		s.links++;
		s.bytes_sum += bytes;
		s.bytes_max = bytes > s.bytes_max ? bytes : s.bytes_max;
	}
	return s;
}

uint64_t node_skew_value(const struct node_skew *s)
{
	if (s->bytes_sum == 0)
		return EVEN;
	return (uint64_t)(((unsigned __int128)s->bytes_max * s->links * EVEN + s->bytes_sum / 2) /
			  s->bytes_sum);
}
