/*
 * check.c - whether the nodes and links of a finished table fit together
 */
#include <stdlib.h>
#include "base/err.h"
#include "topo/draft.h"
#include "topo/reach.h"

/* Headers of the transport around a payload, IPv6 and UDP included: 84 + 8 + 40, with room. */
#define TRANSPORT_HEADERS_MAX 160

static int check_node(const struct topo_draft *d, const struct topo *t, uint32_t index)
{
	const struct topo_node *n = &t->nodes[index];
	struct topo_origin origin = d->nodes[index].origin;
	uint32_t rail = 0;

	if (n->ports_count == 0)
		return topo_draft_fail(d, origin, NULL, "%s %s has no links: add one or remove it",
			topo_role_name(n->role), n->name);
	if (n->role != TOPO_ROLE_HOST)
		return 0;
	for (uint32_t k = 0; k < n->ports_count; k++) {
		const struct topo_port *p = topo_node_port(t, n, k);

		if (p->rail > rail)
			return topo_draft_fail(d, d->links[p->link].origin, NULL,
				"%s has gpu%u but no gpu%u: rails are numbered from 0 without gaps",
				n->name, p->rail, rail);
		rail = p->rail + 1;
	}
	return 0;
}

static int fail_apart(const struct topo_draft *d, const struct topo *t, uint32_t link,
	const char *what, uint32_t a, uint32_t b)
{
	const struct topo_link *l = &t->links[link];

	return topo_draft_fail(d, d->links[link].origin, NULL,
		"%s and %s are in %ss %u and %u: a %s link can't join them",
		t->nodes[t->ports[l->port_a].node].name, t->nodes[t->ports[l->port_b].node].name,
		what, a, b, topo_link_kind_name(l->kind));
}

static int check_places(const struct topo_draft *d, const struct topo *t, uint32_t link)
{
	const struct topo_link *l = &t->links[link];
	const struct topo_port *p = &t->ports[l->port_a], *q = &t->ports[l->port_b];
	const struct topo_node *a = &t->nodes[p->node], *b = &t->nodes[q->node];

	switch (l->kind) {
	case TOPO_LINK_GPU:
		if (a->role == TOPO_ROLE_HOST && p->plane != b->plane)
			return topo_draft_fail(d, d->links[link].origin, NULL,
				"%s:%s leads to %s of plane %u: must be gpu%up%u", a->name, p->name,
				b->name, b->plane, p->rail, b->plane);
		return 0;
	case TOPO_LINK_FABRIC:
		if (a->cluster != b->cluster)
			return fail_apart(d, t, link, "cluster", a->cluster, b->cluster);
		/* fall through */
	case TOPO_LINK_SPINE:
		if (a->building != b->building)
			return fail_apart(d, t, link, "building", a->building, b->building);
		/* fall through */
	case TOPO_LINK_EDGE:
		if (a->plane != b->plane && b->role != TOPO_ROLE_EXTERNAL)
			return fail_apart(d, t, link, "plane", a->plane, b->plane);
		return 0;
	}
	return 0;
}

static int check_link(const struct topo_draft *d, const struct topo *t, uint32_t link)
{
	const struct topo_link *l = &t->links[link];
	struct topo_origin origin = d->links[link].origin;
	uint32_t least = TOPO_ETHERNET_MTU_MIN;

	if (!t->ports[l->port_a].ethernet) {
		least = t->fabric.train_bytes != 0 ? t->fabric.train_bytes
						   : t->fabric.cell_bytes + TOPO_TRAIN_HEADER_MAX;
		if (l->mtu < least)
			return topo_draft_fail(d, origin, "mtu",
				"mtu %u of a cell link: must hold a train, at least %u", l->mtu,
				least);
		return 0;
	}
	if (l->kind == TOPO_LINK_GPU)
		least = t->transport.payload_bytes + TRANSPORT_HEADERS_MAX;
	if (least < TOPO_ETHERNET_MTU_MIN)
		least = TOPO_ETHERNET_MTU_MIN;
	if (l->mtu > TOPO_ETHERNET_MTU_MAX)
		return topo_draft_fail(d, origin, "mtu", "mtu %u: must be at most %u on Ethernet",
			l->mtu, TOPO_ETHERNET_MTU_MAX);
	if (l->mtu < least)
		return topo_draft_fail(d, origin, "mtu", "mtu %u: must be at least %u%s", l->mtu,
			least,
			l->kind == TOPO_LINK_GPU
				? " (transport payload_bytes and headers; IPv6 needs 1280)"
				: " (IPv6)");
	return 0;
}

/* Members of a hyperport are alike, so that packets that were sprayed evenly come evenly. */
static int check_hyperport(const struct topo_draft *d, const struct topo *t, uint32_t link)
{
	const struct topo_link *l = &t->links[link], *first;
	const struct topo_node *a = &t->nodes[t->ports[l->port_a].node];
	const struct topo_node *b = &t->nodes[t->ports[l->port_b].node];
	const char *key;

	if (!l->hyperport)
		return 0;
	if (a->role != TOPO_ROLE_EDSW || b->role != TOPO_ROLE_SSW)
		return topo_draft_fail(d, d->links[link].origin, "hyperport",
			"%s and %s: only an EDSW and an SSW have hyperports", a->name, b->name);
	first = &t->links[t->ports[t->ports[l->port_a].hyperport].link];
	key = l->rate_bps != first->rate_bps   ? "rate"
	      : l->delay_ns != first->delay_ns ? "delay"
	      : l->mtu != first->mtu           ? "mtu"
					       : NULL;
	if (key == NULL)
		return 0;
	return topo_draft_fail(d, d->links[link].origin, key,
		"%s differs between members of the hyperport of %s and %s: must be the same", key,
		a->name, b->name);
}

/* Switch ids of one building and plane: what the real fabric can number. */
static int check_fabric_sizes(const struct topo_draft *d, const struct topo *t)
{
	uint32_t *counts = calloc(256 * TOPO_PLANES_MAX, sizeof(*counts));
	int err = counts == NULL ? -DSF_E_NOMEM : 0;

	for (uint32_t i = 0; i < t->nodes_count && err == 0; i++) {
		const struct topo_node *n = &t->nodes[i];

		if (n->switch_index != TOPO_NONE &&
			++counts[n->building * TOPO_PLANES_MAX + n->plane] >
				TOPO_FABRIC_SWITCHES_MAX)
			err = topo_draft_fail(d, d->nodes[i].origin, NULL,
				"too many switches in plane %u of building %u: at most %u",
				n->plane, n->building, TOPO_FABRIC_SWITCHES_MAX);
	}
	free(counts);
	return err;
}

/* One that has fewer links than it must join with never joins, and the lab is never ready. */
static int check_minimum(const struct topo_draft *d, const struct topo *t, uint32_t index)
{
	static const struct topo_origin fabric = { .kind = TOPO_ORIGIN_FABRIC };
	const struct topo_node *n = &t->nodes[index];
	uint32_t join = t->fabric.min_links_to_join, links = 0;
	const char *key =
		join > t->fabric.min_links_to_remain ? "min_links_to_join" : "min_links_to_remain";

	if (t->fabric.mode != TOPO_FABRIC_DSF || !topo_is_interface_node(n->role))
		return 0;
	for (uint32_t k = 0; k < n->ports_count; k++) {
		const struct topo_port *p = topo_node_port(t, n, k);

		links += !p->ethernet && !t->links[p->link].loop;
	}
	if (links >= join)
		return 0;
	return topo_draft_fail(d, fabric, key,
		"%s %u: %s has %u fabric links, so it would be drained for ever: at most %u", key,
		join, n->name, links, links);
}

int topo_draft_check(const struct topo_draft *d, const struct topo *t)
{
	uint32_t from, to;
	int err = 0;

	if (t->nodes_count == 0)
		return topo_fail(d->reader, &d->top, NULL, "no nodes: the lab would be empty");
	for (uint32_t i = 0; i < t->nodes_count && err == 0; i++) {
		err = check_node(d, t, i);
		if (err == 0)
			err = check_minimum(d, t, i);
	}
	for (uint32_t i = 0; i < t->links_count && err == 0; i++) {
		err = check_places(d, t, i);
		if (err == 0)
			err = check_link(d, t, i);
		if (err == 0)
			err = check_hyperport(d, t, i);
	}
	if (err == 0)
		err = check_fabric_sizes(d, t);
	if (err < 0)
		return err;
	err = topo_reach_check(t, &from, &to);
	if (err == 1)
		return topo_draft_fail(d, d->nodes[from].origin, NULL,
			"unreachable: no way for cells from %s to %s; join them by FDSWs (same "
			"cluster) or SDSWs",
			t->nodes[from].name, t->nodes[to].name);
	return err;
}
