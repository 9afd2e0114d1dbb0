/*
 * finish.c - a draft becomes the read-only table
 *
 * Ports of a node: gpu<rail>p<plane> by rail and plane; eth before fab, by number. A port's number
 * is its place in that order, whatever the order of the links. The lowest port of a hyperport at
 * its EDSW, and that one's peer, stand for it.
 */
#include "topo/draft.h"
#include <stdlib.h>
#include <string.h>
#include "base/bitset.h"
#include "base/err.h"

/* One end of a link on its way to its place. */
struct slot {
	uint64_t order; /* node, class, ordinal, plane */
	uint32_t link;
	uint32_t side; /* 0: a, 1: b */
};

static uint64_t slot_order(const struct topo_draft_end *end)
{
	return (uint64_t)end->node << 32 | (uint64_t)end->class << 28 |
	       (uint64_t)end->ordinal << 8 | end->plane;
}

static int slot_compare(const void *a, const void *b)
{
	const struct slot *x = a, *y = b;

	if (x->order != y->order)
		return x->order < y->order ? -1 : 1;
	return (x->link > y->link) - (x->link < y->link);
}

/* The end whose node serves the link's subnet: ::1 and the MAC without the far bit. */
static uint32_t near_side(const struct topo_draft_link *l)
{
	return l->link.kind == TOPO_LINK_GPU ? 1 : 0;
}

static void set_addresses(const struct topo_draft *d, const struct topo_draft_link *l,
	uint32_t link, uint32_t side, struct topo_port *p)
{
	const struct topo_draft_end *near = &l->end[near_side(l)];
	const struct topo_draft_node *server = &d->nodes[near->node];
	bool far = side != near_side(l);

	if (near->class == TOPO_PORT_FAB)
		p->mac = (struct dsf_mac){ { far ? 0x0e : 0x0a, 0, (uint8_t)(link >> 24),
			(uint8_t)(link >> 16), (uint8_t)(link >> 8), (uint8_t)link } };
	else
		p->mac = topo_scheme_mac(server->scheme, near->ordinal, far);
	if (!p->ethernet)
		return;
	p->address = topo_scheme_address(server->scheme, near, far);
	p->prefix_length = 64;
}

static void set_port(
	const struct topo_draft *d, struct topo *t, struct topo_port *p, const struct slot *slot)
{
	const struct topo_draft_link *l = &d->links[slot->link];
	const struct topo_draft_end *end = &l->end[slot->side];
	const struct topo_node *n = &t->nodes[end->node];

	*p = (struct topo_port){
		.node = end->node,
		.link = slot->link,
		.number = (uint32_t)(p - t->ports) - n->first_port,
		.ordinal = end->class == TOPO_PORT_GPU ? 0 : end->ordinal,
		.rail = end->class == TOPO_PORT_GPU ? end->ordinal : TOPO_NONE,
		.plane = end->class == TOPO_PORT_GPU ? end->plane : n->plane,
		.withhold = TOPO_NONE,
		.system_port = TOPO_NONE,
		.hyperport = TOPO_NONE,
		.expected_node = TOPO_NONE,
		.ethernet = end->class != TOPO_PORT_FAB || d->fabric.mode == TOPO_FABRIC_ECMP,
	};
	if (!p->ethernet) {
		p->expected_node = l->expected[slot->side].node;
		p->expected_ordinal = l->expected[slot->side].ordinal;
	}
	topo_draft_port_name(end, p->name);
	if (end->class == TOPO_PORT_ETH && topo_is_interface_node(n->role))
		p->system_port = n->switch_index * TOPO_PORTS_PER_SWITCH + end->ordinal;
	set_addresses(d, l, slot->link, slot->side, p);
}

static int fail_port_twice(const struct topo_draft *d, const struct slot *slot)
{
	const struct topo_draft_link *l = &d->links[slot->link];
	const struct topo_draft_end *end = &l->end[slot->side];
	char name[TOPO_PORT_NAME_MAX + 1];

	topo_draft_port_name(end, name);
	return topo_draft_fail(d, l->origin, slot->side == 0 ? "a" : "b",
		"two links on one port: %s:%s has one already; take another interface",
		d->nodes[end->node].name, name);
}

static int sort_slots(const struct topo_draft *d, struct slot *slots)
{
	for (uint32_t i = 0; i < d->links_count; i++) {
		for (uint32_t side = 0; side < 2; side++)
			slots[2 * i + side] =
				(struct slot){ slot_order(&d->links[i].end[side]), i, side };
	}
	if (d->links_count > 0)
		qsort(slots, 2 * (size_t)d->links_count, sizeof(*slots), slot_compare);
	for (uint32_t i = 1; i < 2 * d->links_count; i++) {
		if (slots[i - 1].order == slots[i].order)
			return fail_port_twice(d, &slots[i]);
	}
	return 0;
}

static int place_ports(const struct topo_draft *d, struct topo *t, struct topo_node *nodes,
	struct topo_port *ports, struct topo_link *links)
{
	struct slot *slots = calloc(2 * (size_t)d->links_count + 1, sizeof(*slots));
	int err = slots == NULL ? -DSF_E_NOMEM : sort_slots(d, slots);

	for (uint32_t i = 0; i < d->links_count; i++)
		links[i] = d->links[i].link;
	for (uint32_t i = 0, node = 0; err == 0 && node < t->nodes_count; node++) {
		nodes[node].first_port = i;
		while (i < t->ports_count && (uint32_t)(slots[i].order >> 32) == node)
			i++;
		nodes[node].ports_count = i - nodes[node].first_port;
		if (nodes[node].ports_count > TOPO_PORTS_MAX)
			err = topo_draft_fail(d, d->nodes[node].origin, NULL,
				"too many ports: %s would have %u, at most %u", d->nodes[node].name,
				nodes[node].ports_count, TOPO_PORTS_MAX);
	}
	for (uint32_t i = 0; err == 0 && i < t->ports_count; i++) {
		set_port(d, t, &ports[i], &slots[i]);
		if (slots[i].side == 0)
			links[slots[i].link].port_a = i;
		else
			links[slots[i].link].port_b = i;
	}
	for (uint32_t i = 0; err == 0 && i < t->links_count; i++) {
		ports[links[i].port_a].peer = links[i].port_b;
		ports[links[i].port_b].peer = links[i].port_a;
	}
	free(slots);
	return err;
}

static void join(struct topo_port *ports, uint32_t member, uint32_t first)
{
	struct topo_port *p = &ports[member];

	p->hyperport = first;
	if (member == first)
		return;
	p->system_port = TOPO_NONE;
	p->mac = ports[first].mac;
	p->address = (struct dsf_ip6){ { 0 } };
	p->prefix_length = 0;
}

/* Members of hyperports find the ports that stand for them. */
static void join_ports(const struct topo *t, struct topo_port *ports)
{
	for (uint32_t i = 0; i < t->links_count; i++) {
		uint32_t a = t->links[i].port_a, first = t->nodes[ports[a].node].first_port;

		if (!t->links[i].hyperport)
			continue;
		while (!t->links[ports[first].link].hyperport ||
			ports[ports[first].peer].node != ports[ports[a].peer].node)
			first++;
		join(ports, a, first);
		join(ports, ports[a].peer, ports[first].peer);
	}
}

static int node_name_compare(const void *a, const void *b, void *user)
{
	const struct topo *t = user;

	return strcmp(t->nodes[*(const uint32_t *)a].name, t->nodes[*(const uint32_t *)b].name);
}

/* Heap sort of node indexes by name: qsort has no user pointer in C11. */
static void sort_by_name(const struct topo *t, uint32_t *index, uint32_t count)
{
	for (uint32_t end = count, start = count / 2; end > 1;) {
		uint32_t root, moved;

		if (start > 0) {
			start--;
			moved = index[start];
		} else {
			end--;
			moved = index[end];
			index[end] = index[0];
		}
		for (root = start; 2 * root + 1 < end;) {
			uint32_t child = 2 * root + 1;

			if (child + 1 < end &&
				node_name_compare(&index[child], &index[child + 1], (void *)t) < 0)
				child++;
			if (node_name_compare(&moved, &index[child], (void *)t) >= 0)
				break;
			index[root] = index[child];
			root = child;
		}
		index[root] = moved;
	}
}

static int make_indexes(struct topo *t, struct topo_node *nodes)
{
	uint32_t *by_name = calloc(t->nodes_count + 1u, sizeof(*by_name));
	uint32_t *switch_node = calloc(t->switches_count + 1u, sizeof(*switch_node));
	uint32_t *switch_cluster = calloc(t->switches_count + 1u, sizeof(*switch_cluster));
	size_t system_ports = (size_t)t->switches_count * TOPO_PORTS_PER_SWITCH;
	uint32_t *system_port_port = calloc(system_ports + 1, sizeof(*system_port_port));

	t->nodes_by_name = by_name;
	t->switch_node = switch_node;
	t->switch_cluster = switch_cluster;
	t->system_port_port = system_port_port;
	if (by_name == NULL || switch_node == NULL || switch_cluster == NULL ||
		system_port_port == NULL)
		return -DSF_E_NOMEM;
	memset(switch_node, 0xff, t->switches_count * sizeof(*switch_node));
	memset(switch_cluster, 0xff, t->switches_count * sizeof(*switch_cluster));
	memset(system_port_port, 0xff, system_ports * sizeof(*system_port_port));
	for (uint32_t i = 0; i < t->nodes_count; i++) {
		by_name[i] = i;
		if (nodes[i].switch_index == TOPO_NONE)
			continue;
		switch_node[nodes[i].switch_index] = i;
		switch_cluster[nodes[i].switch_index] = nodes[i].cluster;
	}
	sort_by_name(t, by_name, t->nodes_count);
	for (uint32_t i = 0; i < t->ports_count; i++) {
		if (t->ports[i].system_port != TOPO_NONE)
			system_port_port[t->ports[i].system_port] = i;
	}
	return 0;
}

/* Hosts' rails and the ranks: a rail counts when it has a port on any plane. */
static int make_endpoints(struct topo *t, struct topo_node *nodes)
{
	struct topo_endpoint *endpoints = NULL;

	for (int pass = 0; pass < 2; pass++) {
		uint32_t count = 0;

		for (uint32_t i = 0; i < t->ports_count; i++) {
			const struct topo_port *p = &t->ports[i];

			if (p->rail == TOPO_NONE || (p->number > 0 && p[-1].rail == p->rail))
				continue;
			if (pass == 1)
				endpoints[count] =
					(struct topo_endpoint){ .host = p->node, .rail = p->rail };
			count++;
			nodes[p->node].rails = p->rail + 1;
		}
		if (pass == 0)
			endpoints = calloc(count + 1u, sizeof(*endpoints));
		if (endpoints == NULL)
			return -DSF_E_NOMEM;
		t->endpoints = endpoints;
		t->endpoints_count = count;
	}
	return 0;
}

/* First the FDSWs' own neighbours, then the SDSWs' FDSWs'. */
static int make_below(struct topo *t)
{
	uint64_t *below;

	t->switch_words = DSF_BITSET_WORDS(t->switches_count);
	below = calloc((size_t)t->switches_count * t->switch_words + 1, sizeof(*below));
	t->below = below;
	if (below == NULL)
		return -DSF_E_NOMEM;
	for (uint32_t i = 0; i < t->links_count; i++) {
		const struct topo_link *l = &t->links[i];
		const struct topo_node *a = &t->nodes[t->ports[l->port_a].node];
		const struct topo_node *b = &t->nodes[t->ports[l->port_b].node];

		if (l->kind == TOPO_LINK_FABRIC && !l->loop)
			dsf_bitset_add(
				below + (size_t)b->switch_index * t->switch_words, a->switch_index);
	}
	for (uint32_t i = 0; i < t->links_count; i++) {
		const struct topo_link *l = &t->links[i];
		const struct topo_node *a = &t->nodes[t->ports[l->port_a].node];
		const struct topo_node *b = &t->nodes[t->ports[l->port_b].node];

		for (uint32_t w = 0; l->kind == TOPO_LINK_SPINE && !l->loop && w < t->switch_words;
			w++)
			below[(size_t)b->switch_index * t->switch_words + w] |=
				topo_below(t, a->switch_index)[w];
	}
	return 0;
}

static int make_externals(const struct topo_draft *d, struct topo_node *nodes)
{
	for (uint32_t i = 0; i < d->nodes_count; i++) {
		if (d->nodes[i].command == NULL && d->nodes[i].files == NULL)
			continue;
		nodes[i].external = topo_draft_external_make(&d->nodes[i]);
		if (nodes[i].external == NULL)
			return -DSF_E_NOMEM;
	}
	return 0;
}

int topo_draft_finish(struct topo_draft *d, struct topo **out)
{
	struct topo *t = calloc(1, sizeof(*t));
	struct topo_node *nodes = calloc(d->nodes_count + 1u, sizeof(*nodes));
	struct topo_port *ports = calloc(2 * (size_t)d->links_count + 1, sizeof(*ports));
	struct topo_link *links = calloc(d->links_count + 1u, sizeof(*links));
	char *names = calloc(d->nodes_count + 1u, TOPO_NODE_NAME_MAX + 1);
	int err = -DSF_E_NOMEM;

	if (t == NULL || nodes == NULL || ports == NULL || links == NULL || names == NULL) {
		free(names);
		free(links);
		free(ports);
		free(nodes);
		free(t);
		return err;
	}
	memcpy(t->name, d->name, sizeof(t->name));
	t->seed = d->seed;
	t->time_dilation = d->time_dilation == TOPO_AUTO ? 0 : (uint32_t)d->time_dilation;
	t->planes = d->planes;
	t->fabric = d->fabric;
	t->transport = d->transport;
	t->nodes = nodes;
	t->ports = ports;
	t->links = links;
	t->names = names;
	t->nodes_count = d->nodes_count;
	t->ports_count = 2 * d->links_count;
	t->links_count = d->links_count;
	for (uint32_t i = 0; i < d->nodes_count; i++) {
		char *name = names + (size_t)i * (TOPO_NODE_NAME_MAX + 1);

		nodes[i] = d->nodes[i].node;
		memcpy(name, d->nodes[i].name, TOPO_NODE_NAME_MAX + 1);
		nodes[i].name = name;
		nodes[i].bgp = TOPO_NONE;
		if (nodes[i].switch_index != TOPO_NONE &&
			nodes[i].switch_index >= t->switches_count)
			t->switches_count = nodes[i].switch_index + 1;
	}
	err = make_externals(d, nodes);
	if (err == 0)
		err = place_ports(d, t, nodes, ports, links);
	if (err == 0)
		join_ports(t, ports);
	if (err == 0)
		err = make_indexes(t, nodes);
	if (err == 0)
		err = make_endpoints(t, nodes);
	if (err == 0)
		err = make_below(t);
	if (err < 0) {
		topo_free(t);
		return err;
	}
	*out = t;
	return 0;
}
