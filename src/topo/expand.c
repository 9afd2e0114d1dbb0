/*
 * expand.c - templates (buildings, zones, edge PoDs, super spine) to nodes and links
 *
 * Nodes: by building: its hosts, then by plane: zones' RDSWs and FDSWs, SDSWs, the edge PoD; at
 * the end the super spine by plane. So the switches of one cell fabric (building and plane) are
 * neighbours. Links: by building: GPUs, zones' fabric links, the PoD's, spine; at the end edge
 * links. A device's downward ports thus come before its upward ones.
 */
#include "topo/draft.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/err.h"

#define PART_NAME_MAX 16 /* characters of a building's or zone's name */

struct zone {
	char name[PART_NAME_MAX + 1];
	struct topo_origin origin;
	uint32_t scaling_units, rails, hosts_per_unit, fdsw;
	uint32_t first_host;
	uint32_t first_rdsw[TOPO_PLANES_MAX], first_fdsw[TOPO_PLANES_MAX]; /* node indexes */
};

struct building {
	char name[PART_NAME_MAX + 1];
	struct topo_origin origin;
	uint32_t number; /* ordinal */
	uint32_t sdsw, edsw, edge_fdsw;
	struct zone *zones;
	uint32_t zones_count;
	uint32_t first_sdsw[TOPO_PLANES_MAX], first_edsw[TOPO_PLANES_MAX],
		first_edge_fdsw[TOPO_PLANES_MAX];
};

struct site {
	struct topo_draft *draft;
	struct building *buildings;
	uint32_t buildings_count;
	uint32_t ssw, per_edsw; /* 0: no super spine */
	uint32_t first_ssw[TOPO_PLANES_MAX];
};

static int read_part_name(const struct topo_draft *d, const struct topo_path *path,
	const struct topo_slot *slot, char letter, uint32_t number, char *name)
{
	const char *given = slot->given ? slot->item->valuestring : NULL;
	struct topo_quote quote;
	size_t size;

	if (given == NULL) {
		snprintf(name, PART_NAME_MAX + 1, "%c%u", letter, number);
		return 0;
	}
	size = strlen(given);
	if (size == 0 || size > PART_NAME_MAX || given[0] < 'a' || given[0] > 'z' ||
		strspn(given, "abcdefghijklmnopqrstuvwxyz0123456789") != size)
		return topo_fail(d->reader, path, slot,
			"bad name %s: must be 1 to 16 of a-z and 0-9, a letter first",
			topo_quote(&quote, given, size));
	if (strcmp(given, "e") == 0)
		return topo_fail(d->reader, path, slot,
			"bad name \"e\": it is the edge PoD's; take another");
	memcpy(name, given, size + 1);
	return 0;
}

static int read_zone(const struct topo_draft *d, const struct topo_path *path, struct zone *z)
{
	struct topo_slot s[TOPO_ZONE_COUNT];
	int err = topo_read(d->reader, path, &topo_keys_zone, s);

	if (err < 0)
		return err;
	err = read_part_name(d, path, &s[TOPO_ZONE_NAME], 'z', path->child, z->name);
	if (err < 0)
		return err;
	z->scaling_units = (uint32_t)s[TOPO_ZONE_SCALING_UNITS].number;
	z->rails = (uint32_t)s[TOPO_ZONE_RAILS].number;
	z->hosts_per_unit = (uint32_t)s[TOPO_ZONE_HOSTS_PER_UNIT].number;
	z->fdsw = (uint32_t)s[TOPO_ZONE_FDSW].number;
	if (z->scaling_units * z->rails > 256)
		return topo_fail(d->reader, path, &s[TOPO_ZONE_SCALING_UNITS],
			"scaling_units x rails makes %u RDSWs in a zone and plane: at most 256",
			z->scaling_units * z->rails);
	return 0;
}

static int read_edge(const struct topo_draft *d, const struct topo_path *up,
	const struct topo_slot *slot, struct building *b)
{
	struct topo_path path = { .up = up, .item = slot->item, .child = slot->child };
	struct topo_slot s[TOPO_POD_COUNT];
	int err;

	if (!slot->given)
		return 0;
	err = topo_read(d->reader, &path, &topo_keys_edge, s);
	if (err < 0)
		return err;
	b->edsw = (uint32_t)s[TOPO_POD_EDSW].number;
	b->edge_fdsw = (uint32_t)s[TOPO_POD_FDSW].number;
	if (b->sdsw == 0)
		return topo_fail(d->reader, &path, NULL,
			"an edge PoD hangs on the building's SDSWs: set \"sdsw\" above 0");
	return 0;
}

static int read_building(
	const struct topo_draft *d, const struct topo_path *path, struct building *b)
{
	struct topo_slot s[TOPO_BUILDING_COUNT];
	struct topo_path zones;
	int err = topo_read(d->reader, path, &topo_keys_building, s);

	if (err < 0)
		return err;
	err = read_part_name(d, path, &s[TOPO_BUILDING_NAME], 'b', path->child, b->name);
	if (err < 0)
		return err;
	b->number = path->child;
	b->origin = (struct topo_origin){ TOPO_ORIGIN_BUILDING, path->child, 0 };
	b->sdsw = s[TOPO_BUILDING_SDSW].given ? (uint32_t)s[TOPO_BUILDING_SDSW].number : 0;
	b->zones_count = (uint32_t)cJSON_GetArraySize(s[TOPO_BUILDING_ZONES].item);
	b->zones = calloc(b->zones_count, sizeof(*b->zones));
	if (b->zones == NULL)
		return -DSF_E_NOMEM;
	zones = (struct topo_path){ .up = path,
		.item = s[TOPO_BUILDING_ZONES].item,
		.child = s[TOPO_BUILDING_ZONES].child };
	uint32_t child = 0;
	for (const cJSON *c = zones.item->child; c != NULL; c = c->next, child++) {
		struct topo_path at = { .up = &zones, .item = c, .child = child };

		b->zones[child].origin =
			(struct topo_origin){ TOPO_ORIGIN_ZONE, path->child, child };
		err = read_zone(d, &at, &b->zones[child]);
		if (err < 0)
			return err;
	}
	if (b->zones_count > 1 && b->sdsw == 0)
		return topo_fail(d->reader, path, &s[TOPO_BUILDING_SDSW],
			"%u zones without SDSWs can't reach each other: set \"sdsw\" above 0",
			b->zones_count);
	return read_edge(d, path, &s[TOPO_BUILDING_EDGE], b);
}

static int read_superspine(struct site *s, const struct topo_slot *slot)
{
	struct topo_path path = { .up = &s->draft->top, .item = slot->item, .child = slot->child };
	struct topo_slot slots[TOPO_SUPERSPINE_COUNT];
	bool edge = false;
	int err;

	if (!slot->given)
		return 0;
	err = topo_read(s->draft->reader, &path, &topo_keys_superspine, slots);
	if (err < 0)
		return err;
	s->ssw = (uint32_t)slots[TOPO_SUPERSPINE_SWITCHES].number;
	s->per_edsw = (uint32_t)slots[TOPO_SUPERSPINE_PER_EDSW].number;
	if (s->per_edsw > s->ssw)
		return topo_fail(s->draft->reader, &path, &slots[TOPO_SUPERSPINE_PER_EDSW],
			"an EDSW can't link to %u of %u super spine switches", s->per_edsw, s->ssw);
	for (uint32_t b = 0; b < s->buildings_count; b++)
		edge = edge || s->buildings[b].edsw > 0;
	if (!edge)
		return topo_fail(s->draft->reader, &path, NULL,
			"a super spine needs a building with an \"edge\"");
	return 0;
}

static int read_site(struct site *s, const struct topo_slot *top)
{
	const struct topo_slot *slot = &top[TOPO_TOP_BUILDINGS];
	struct topo_path path = { .up = &s->draft->top, .item = slot->item, .child = slot->child };
	uint32_t child = 0;

	if (slot->given) {
		s->buildings_count = (uint32_t)cJSON_GetArraySize(slot->item);
		s->buildings = calloc(s->buildings_count, sizeof(*s->buildings));
		if (s->buildings == NULL)
			return -DSF_E_NOMEM;
		for (const cJSON *c = slot->item->child; c != NULL; c = c->next, child++) {
			struct topo_path at = { .up = &path, .item = c, .child = child };
			int err = read_building(s->draft, &at, &s->buildings[child]);

			if (err < 0)
				return err;
		}
	}
	return read_superspine(s, &top[TOPO_TOP_SUPERSPINE]);
}

/* Adds count switches "<prefix><word>0..."; *first: the node index of the first. */
static int add_switches(const struct site *s, const char *prefix, const char *word,
	enum topo_role role, uint32_t count, struct topo_node place, struct topo_origin origin,
	uint32_t *first)
{
	struct topo_draft *d = s->draft;

	*first = d->nodes_count;
	for (uint32_t i = 0; i < count; i++) {
		char name[2 * TOPO_NODE_NAME_MAX];
		int64_t index;

		snprintf(name, sizeof(name), "%s%s%u", prefix, word, i);
		index = topo_draft_node(d, name, role, origin);
		if (index < 0)
			return (int)index;
		d->nodes[index].node.building = place.building;
		d->nodes[index].node.plane = place.plane;
		d->nodes[index].node.cluster = place.cluster;
	}
	return 0;
}

static int add_hosts(
	const struct site *s, const struct building *b, struct zone *z, uint32_t cluster)
{
	char prefix[TOPO_NODE_NAME_MAX];
	struct topo_node place = { .building = b->number, .plane = TOPO_NONE, .cluster = cluster };

	snprintf(prefix, sizeof(prefix), "%s-%s-", b->name, z->name);
	return add_switches(s, prefix, "h", TOPO_ROLE_HOST, z->scaling_units * z->hosts_per_unit,
		place, z->origin, &z->first_host);
}

static int add_zone_plane(const struct site *s, const struct building *b, struct zone *z,
	uint32_t cluster, uint32_t p)
{
	char prefix[TOPO_NODE_NAME_MAX];
	struct topo_node place = { .building = b->number, .plane = p, .cluster = cluster };
	int err;

	snprintf(prefix, sizeof(prefix), "%s-%s-p%u-", b->name, z->name, p);
	err = add_switches(s, prefix, "rdsw", TOPO_ROLE_RDSW, z->scaling_units * z->rails, place,
		z->origin, &z->first_rdsw[p]);
	if (err < 0)
		return err;
	return add_switches(
		s, prefix, "fdsw", TOPO_ROLE_FDSW, z->fdsw, place, z->origin, &z->first_fdsw[p]);
}

static int add_building_plane(const struct site *s, struct building *b, uint32_t p)
{
	struct topo_origin edge = { TOPO_ORIGIN_EDGE, b->number, 0 };
	struct topo_node place = { .building = b->number, .plane = p, .cluster = TOPO_NONE };
	char prefix[TOPO_NODE_NAME_MAX];
	int err = 0;

	for (uint32_t z = 0; z < b->zones_count && err == 0; z++)
		err = add_zone_plane(s, b, &b->zones[z], z, p);
	snprintf(prefix, sizeof(prefix), "%s-p%u-", b->name, p);
	if (err == 0)
		err = add_switches(s, prefix, "sdsw", TOPO_ROLE_SDSW, b->sdsw, place, b->origin,
			&b->first_sdsw[p]);
	snprintf(prefix, sizeof(prefix), "%s-e-p%u-", b->name, p);
	place.cluster = b->zones_count;
	if (err == 0)
		err = add_switches(
			s, prefix, "edsw", TOPO_ROLE_EDSW, b->edsw, place, edge, &b->first_edsw[p]);
	if (err == 0)
		err = add_switches(s, prefix, "fdsw", TOPO_ROLE_FDSW, b->edge_fdsw, place, edge,
			&b->first_edge_fdsw[p]);
	return err;
}

static int add_nodes(struct site *s)
{
	struct topo_origin spine = { TOPO_ORIGIN_SUPERSPINE, 0, 0 };
	uint32_t planes = s->draft->planes;
	int err = 0;

	for (uint32_t i = 0; i < s->buildings_count && err == 0; i++) {
		struct building *b = &s->buildings[i];

		for (uint32_t z = 0; z < b->zones_count && err == 0; z++)
			err = add_hosts(s, b, &b->zones[z], z);
		for (uint32_t p = 0; p < planes && err == 0; p++)
			err = add_building_plane(s, b, p);
	}
	for (uint32_t p = 0; p < planes && err == 0; p++) {
		struct topo_node place = {
			.building = TOPO_NONE, .plane = p, .cluster = TOPO_NONE
		};
		char prefix[16];

		snprintf(prefix, sizeof(prefix), "p%u-", p % TOPO_PLANES_MAX);
		err = add_switches(
			s, prefix, "ssw", TOPO_ROLE_SSW, s->ssw, place, spine, &s->first_ssw[p]);
	}
	return err;
}

static struct topo_draft_end next_end(
	struct topo_draft *d, uint32_t node, enum topo_port_class class)
{
	struct topo_draft_node *n = &d->nodes[node];
	struct topo_draft_end end = { .node = node, .class = class };

	end.ordinal = class == TOPO_PORT_ETH ? n->eth_next++ : n->fab_next++;
	return end;
}

/* GPU r of a host of unit u goes to RDSW u x rails + r of every plane. */
static int add_gpu_links(const struct site *s, const struct zone *z)
{
	struct topo_draft *d = s->draft;

	for (uint32_t h = 0; h < z->scaling_units * z->hosts_per_unit; h++) {
		for (uint32_t i = 0; i < z->rails * d->planes; i++) {
			uint32_t rail = i / d->planes, plane = i % d->planes;
			uint32_t rdsw = h / z->hosts_per_unit * z->rails + rail;
			struct topo_draft_end a = { .node = z->first_host + h,
				.class = TOPO_PORT_GPU,
				.ordinal = rail,
				.plane = plane };
			struct topo_draft_end b =
				next_end(d, z->first_rdsw[plane] + rdsw, TOPO_PORT_ETH);
			int64_t err = topo_draft_link(
				d, TOPO_LINK_GPU, &d->defaults[TOPO_LINK_GPU], a, b, z->origin);

			if (err < 0)
				return (int)err;
		}
	}
	return 0;
}

/* Every lower node to every upper one, `parallel` times. */
static int add_mesh(const struct site *s, enum topo_link_kind kind, uint32_t lower, uint32_t lowers,
	uint32_t upper, uint32_t uppers, struct topo_origin origin)
{
	struct topo_draft *d = s->draft;
	const struct topo_settings *settings = &d->defaults[kind];
	uint32_t parallel = (uint32_t)settings->value[TOPO_SETTING_PARALLEL];

	for (uint32_t i = 0; i < lowers; i++) {
		for (uint32_t k = 0; k < uppers * parallel; k++) {
			struct topo_draft_end a = next_end(d, lower + i, TOPO_PORT_FAB);
			struct topo_draft_end b = next_end(d, upper + k / parallel, TOPO_PORT_FAB);
			int64_t err = topo_draft_link(d, kind, settings, a, b, origin);

			if (err < 0)
				return (int)err;
		}
	}
	return 0;
}

static int add_building_links(const struct site *s, const struct building *b)
{
	struct topo_origin edge = { TOPO_ORIGIN_EDGE, b->number, 0 };
	uint32_t planes = s->draft->planes;
	int err = 0;

	for (uint32_t i = 0; i < b->zones_count && err == 0; i++) {
		const struct zone *z = &b->zones[i];

		err = add_gpu_links(s, z);
		for (uint32_t p = 0; p < planes && err == 0; p++)
			err = add_mesh(s, TOPO_LINK_FABRIC, z->first_rdsw[p],
				z->scaling_units * z->rails, z->first_fdsw[p], z->fdsw, z->origin);
	}
	for (uint32_t p = 0; p < planes && err == 0; p++)
		err = add_mesh(s, TOPO_LINK_FABRIC, b->first_edsw[p], b->edsw,
			b->first_edge_fdsw[p], b->edge_fdsw, edge);
	for (uint32_t p = 0; p < planes && err == 0; p++) {
		for (uint32_t i = 0; i < b->zones_count && err == 0; i++)
			err = add_mesh(s, TOPO_LINK_SPINE, b->zones[i].first_fdsw[p],
				b->zones[i].fdsw, b->first_sdsw[p], b->sdsw, b->origin);
		if (err == 0)
			err = add_mesh(s, TOPO_LINK_SPINE, b->first_edge_fdsw[p], b->edge_fdsw,
				b->first_sdsw[p], b->sdsw, b->origin);
	}
	return err;
}

/* EDSW e of each building and plane to per_edsw super spine switches, taken in turn. */
static int add_edge_links(const struct site *s, const struct building *b, uint32_t plane)
{
	struct topo_draft *d = s->draft;
	const struct topo_settings *settings = &d->defaults[TOPO_LINK_EDGE];
	struct topo_origin origin = { TOPO_ORIGIN_SUPERSPINE, 0, 0 };
	uint32_t parallel = (uint32_t)settings->value[TOPO_SETTING_PARALLEL];

	for (uint32_t e = 0; e < b->edsw; e++) {
		for (uint32_t k = 0; k < s->per_edsw * parallel; k++) {
			uint32_t ssw = (e * s->per_edsw + k / parallel) % s->ssw;
			struct topo_draft_end a =
				next_end(d, b->first_edsw[plane] + e, TOPO_PORT_ETH);
			struct topo_draft_end z =
				next_end(d, s->first_ssw[plane] + ssw, TOPO_PORT_ETH);
			int64_t err = topo_draft_link(d, TOPO_LINK_EDGE, settings, a, z, origin);

			if (err < 0)
				return (int)err;
		}
	}
	return 0;
}

static int add_links(struct site *s)
{
	int err = 0;

	for (uint32_t i = 0; i < s->buildings_count && err == 0; i++)
		err = add_building_links(s, &s->buildings[i]);
	for (uint32_t i = 0; i < s->buildings_count && err == 0; i++) {
		for (uint32_t p = 0; p < s->draft->planes && err == 0; p++)
			err = add_edge_links(s, &s->buildings[i], p);
	}
	return err;
}

int topo_draft_templates(struct topo_draft *d, const struct topo_slot *top)
{
	struct site s = { .draft = d };
	int err = read_site(&s, top);

	if (s.buildings_count > 0 && d->planes == 0)
		d->planes = 1;
	if (err == 0)
		err = add_nodes(&s);
	if (err == 0)
		err = add_links(&s);
	for (uint32_t i = 0; i < s.buildings_count; i++)
		free(s.buildings[i].zones);
	free(s.buildings);
	return err;
}
