#include "topo/draw.h"

static enum dsf_draw_kind kind_of(enum topo_draw draw)
{
	switch (draw) {
	case TOPO_DRAW_STRATIFIED: return DSF_DRAW_STRATIFIED;
	case TOPO_DRAW_RANDOM: return DSF_DRAW_RANDOM;
	case TOPO_DRAW_FORCED: return DSF_DRAW_FORCED;
	}
	return DSF_DRAW_STRATIFIED;
}

struct dsf_draw topo_draw(const struct topo *t, uint32_t node, uint64_t seed)
{
	const struct topo_node *self = &t->nodes[node];
	struct dsf_draw draw = { .kind = kind_of(t->fabric.draw),
		.seed = seed,
		.device = self->switch_index,
		.family = self->switch_index };

	for (uint32_t i = 0; i < t->nodes_count; i++) {
		const struct topo_node *n = &t->nodes[i];

		if (n->role != self->role || n->building != self->building ||
			n->plane != self->plane || n->cluster != self->cluster)
			continue;
		draw.siblings++;
		draw.sibling += n->switch_index < self->switch_index;
		if (n->switch_index < draw.family)
			draw.family = n->switch_index;
	}
	return draw;
}

static uint64_t rate_of(const struct topo *t, const struct topo_port *p)
{
	uint64_t rate_bps = t->links[p->link].rate_bps;

	return rate_bps == 0 ? TOPO_RATE_MAX : rate_bps;
}

uint64_t topo_draw_unit(const struct topo *t, const struct topo_node *n)
{
	uint64_t unit = 0;

	for (uint32_t i = 0; i < n->ports_count; i++) {
		const struct topo_port *p = topo_node_port(t, n, i);
		uint64_t rest = p->ethernet ? 0 : rate_of(t, p);

		while (rest != 0) {
			uint64_t other = unit % rest;

			unit = rest;
			rest = other;
		}
	}
	return unit == 0 ? 1 : unit;
}

uint32_t topo_draw_capacity(const struct topo *t, const struct topo_port *p, uint64_t unit)
{
	return (uint32_t)(rate_of(t, p) / unit);
}
