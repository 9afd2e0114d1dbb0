/*
 * number.c - switch indexes, loopbacks, AS numbers; the scheme of addresses
 *
 * Port subnets are fd5f:PPBB:ZZSS:QQ00::/64 (hex bytes: plane, building, zone or ff for edge,
 * switch, its Ethernet port), the switch ::1, the other end ::2; loopbacks have QQ = ff. A super
 * spine switch has BB = ZZ = ff. MACs are 02:PP:BB:ZZ:SS:QQ, bit 0x04 of the first byte set at the
 * far end.
 *
 * Ours, where the scheme is silent: in ecmp mode fabric nodes are routers too and take ZZ = 80 +
 * zone (FDSW), fd (FDSW of the edge pod) and fe (SDSW); ports fab<n> then take QQ = n mod 256 and
 * 1 + n / 256 in the byte that is 0 for eth ports. Cell ports need MACs only for their frames'
 * headers: 0a (0e at the far end) and the link's number.
 */
#include "topo/draft.h"
#include <string.h>
#include "base/err.h"

#define AS_BUILDING   4200000000u /* + building */
#define AS_SUPERSPINE 4200065536u
#define AS_ECMP       4200100000u /* + node */

#define ZONE_EDGE         0xff
#define ZONE_FABRIC_NODES 0x80
#define ZONE_EDGE_FDSW    0xfd
#define ZONE_SDSW         0xfe
#define BUILDING_NONE     0xff

struct cluster_entry {
	uint32_t building, cluster; /* key */
	bool rdsw, edsw;
};

struct ordinal_entry {
	uint8_t plane, building, zone, unused; /* key */
	uint32_t next;
};

struct scheme_entry {
	struct topo_scheme scheme; /* key */
	uint32_t node;
};

struct dsf_ip6 topo_scheme_loopback(struct topo_scheme s)
{
	return (struct dsf_ip6){ { 0xfd, 0x5f, s.plane, s.building, s.zone, s.ordinal, 0xff, 0, 0,
		0, 0, 0, 0, 0, 0, 1 } };
}

struct dsf_ip6 topo_scheme_address(struct topo_scheme s, const struct topo_draft_end *end, bool far)
{
	struct dsf_ip6 a = topo_scheme_loopback(s);

	a.bytes[6] = (uint8_t)end->ordinal;
	a.bytes[7] = end->class == TOPO_PORT_FAB ? (uint8_t)(1 + (end->ordinal >> 8)) : 0;
	a.bytes[15] = far ? 2 : 1;
	return a;
}

struct dsf_mac topo_scheme_mac(struct topo_scheme s, uint32_t ordinal, bool far)
{
	return (struct dsf_mac){ { far ? 0x06 : 0x02, s.plane, s.building, s.zone, s.ordinal,
		(uint8_t)ordinal } };
}

static int mark_clusters(const struct topo_draft *d, struct dsf_hash *clusters)
{
	for (uint32_t i = 0; i < d->nodes_count; i++) {
		const struct topo_node *n = &d->nodes[i].node;
		uint32_t key[2] = { n->building, n->cluster };
		struct cluster_entry *entry;

		if (!topo_is_interface_node(n->role))
			continue;
		entry = dsf_hash_put(clusters, key);
		if (entry == NULL)
			return -DSF_E_NOMEM;
		entry->rdsw = entry->rdsw || n->role == TOPO_ROLE_RDSW;
		entry->edsw = entry->edsw || n->role == TOPO_ROLE_EDSW;
	}
	return 0;
}

/* An edge PoD is a cluster of EDSWs without RDSWs; others are zones. */
static void set_zone(struct topo_node *n, const struct dsf_hash *clusters)
{
	uint32_t key[2] = { n->building, n->cluster };
	const struct cluster_entry *entry = dsf_hash_get(clusters, key);
	bool pod = entry != NULL && entry->edsw && !entry->rdsw;

	n->zone = n->role == TOPO_ROLE_EDSW || pod ? TOPO_NONE : n->cluster;
}

/* The first three bytes of a routed node's scheme. */
static void set_scheme(struct topo_draft_node *n, enum topo_fabric_mode mode)
{
	const struct topo_node *node = &n->node;
	struct topo_scheme *s = &n->scheme;

	s->plane = (uint8_t)node->plane;
	s->building = (uint8_t)node->building;
	switch (node->role) {
	case TOPO_ROLE_RDSW:
		s->zone = (uint8_t)node->cluster;
		n->routed = true;
		break;
	case TOPO_ROLE_EDSW:
		s->zone = ZONE_EDGE;
		n->routed = true;
		break;
	case TOPO_ROLE_FDSW:
		s->zone = node->zone == TOPO_NONE ? ZONE_EDGE_FDSW
						  : (uint8_t)(ZONE_FABRIC_NODES + node->zone);
		n->routed = mode == TOPO_FABRIC_ECMP;
		break;
	case TOPO_ROLE_SDSW:
		s->zone = ZONE_SDSW;
		n->routed = mode == TOPO_FABRIC_ECMP;
		break;
	case TOPO_ROLE_SSW:
		s->building = BUILDING_NONE;
		s->zone = ZONE_EDGE;
		n->routed = true;
		break;
	case TOPO_ROLE_HOST:
	case TOPO_ROLE_EXTERNAL: break;
	}
}

static int take_given_address(const struct topo_draft *d, struct topo_draft_node *n)
{
	struct topo_scheme s = n->scheme;
	struct dsf_ip6 given, want;
	struct topo_quote quote;
	char text[DSF_IP6_TEXT_MAX];

	topo_quote(&quote, n->address_given, strlen(n->address_given));
	if (!n->routed)
		return topo_draft_fail(d, n->origin, "address",
			"a node of role %s has no loopback: leave it out",
			topo_role_name(n->node.role));
	if (dsf_ip6_parse(n->address_given, &given) < 0)
		return topo_draft_fail(
			d, n->origin, "address", "%s: must be an IPv6 address", quote.text);
	s.ordinal = given.bytes[5];
	want = topo_scheme_loopback(s);
	if (!dsf_ip6_equal(&given, &want))
		return topo_draft_fail(d, n->origin, "address",
			"%s: must be fd5f:PPBB:ZZSS:ff00::1 with the node's plane, building and "
			"zone, as \"%s\"",
			quote.text, dsf_ip6_text(&want, text));
	n->scheme = s;
	return 0;
}

/* The last byte: as the address says, or the next one in file order. */
static int set_ordinal(struct topo_draft *d, struct topo_draft_node *n, struct dsf_hash *ordinals,
	struct dsf_hash *schemes)
{
	uint8_t key[4] = { n->scheme.plane, n->scheme.building, n->scheme.zone, 0 };
	struct ordinal_entry *ordinal;
	struct scheme_entry *scheme;

	if (n->address_given != NULL) {
		int err = take_given_address(d, n);

		if (err < 0)
			return err;
	}
	if (!n->routed)
		return 0;
	ordinal = dsf_hash_put(ordinals, key);
	if (ordinal == NULL)
		return -DSF_E_NOMEM;
	if (n->address_given == NULL) {
		if (ordinal->next > 255)
			return topo_draft_fail(d, n->origin, NULL,
				"no address left: a zone and plane have at most 256 %ss",
				topo_role_name(n->node.role));
		n->scheme.ordinal = (uint8_t)ordinal->next;
	}
	if (ordinal->next <= n->scheme.ordinal)
		ordinal->next = n->scheme.ordinal + 1u;
	scheme = dsf_hash_get(schemes, &n->scheme);
	if (scheme != NULL)
		return topo_draft_fail(d, n->origin, "address",
			"duplicate address: %s and %s would both have it; give addresses to all "
			"or to none",
			d->nodes[scheme->node].name, n->name);
	scheme = dsf_hash_put(schemes, &n->scheme);
	if (scheme == NULL)
		return -DSF_E_NOMEM;
	scheme->node = (uint32_t)(n - d->nodes);
	n->node.loopback = topo_scheme_loopback(n->scheme);
	return 0;
}

static void set_asn(struct topo_draft_node *n, enum topo_fabric_mode mode, uint32_t index)
{
	if (n->node.asn != 0 || !n->routed)
		return;
	if (n->node.role == TOPO_ROLE_SSW)
		n->node.asn = AS_SUPERSPINE;
	else if (mode == TOPO_FABRIC_ECMP)
		n->node.asn = AS_ECMP + index;
	else
		n->node.asn = AS_BUILDING + n->node.building;
}

static bool has_switch_index(enum topo_role role)
{
	return topo_is_interface_node(role) || topo_is_fabric_node(role);
}

static int set_switch_indexes(struct topo_draft *d)
{
	uint32_t taken[TOPO_SWITCHES_MAX / 32] = { 0 }, next = 0;

	for (uint32_t i = 0; i < d->nodes_count; i++) {
		struct topo_draft_node *n = &d->nodes[i];
		uint32_t index = n->node.switch_index;

		if (!has_switch_index(n->node.role))
			continue;
		if (index == TOPO_NONE)
			index = next;
		if (index >= TOPO_SWITCHES_MAX)
			return topo_draft_fail(d, n->origin, NULL,
				"too many switches: a lab has at most %u", TOPO_SWITCHES_MAX);
		if ((taken[index / 32] >> (index % 32) & 1u) != 0)
			return topo_draft_fail(d, n->origin, "switch_index",
				"duplicate switch index %u of %s: give indexes to all or to none",
				index, n->name);
		taken[index / 32] |= 1u << (index % 32);
		n->node.switch_index = index;
		next = index + 1;
	}
	return 0;
}

/* A host is in the building and cluster of its RDSWs, all of them the same. */
static int place_host(struct topo_draft *d, const struct topo_draft_link *l)
{
	struct topo_draft_node *host = &d->nodes[l->end[0].node];
	const struct topo_draft_node *rdsw = &d->nodes[l->end[1].node];

	if (host->node.building == TOPO_NONE)
		host->node.building = rdsw->node.building;
	if (host->node.cluster == TOPO_NONE)
		host->node.cluster = rdsw->node.cluster;
	if (host->node.building == rdsw->node.building && host->node.cluster == rdsw->node.cluster)
		return 0;
	return topo_draft_fail(d, l->origin, NULL,
		"%s is in building %u, cluster %u, but %s in building %u, cluster %u: a host has "
		"all its links in one cluster",
		host->name, host->node.building, host->node.cluster, rdsw->name,
		rdsw->node.building, rdsw->node.cluster);
}

static int place_hosts(struct topo_draft *d)
{
	int err = 0;

	for (uint32_t i = 0; i < d->links_count && err == 0; i++) {
		const struct topo_draft_link *l = &d->links[i];

		if (l->end[0].class == TOPO_PORT_GPU)
			err = place_host(d, l);
	}
	return err;
}

int topo_draft_number(struct topo_draft *d)
{
	struct dsf_hash clusters, ordinals, schemes;
	const struct dsf_memory *memory = d->names.pool.memory;
	int err;

	dsf_hash_init(&clusters, memory, 2 * sizeof(uint32_t), sizeof(struct cluster_entry),
		TOPO_NODES_MAX);
	dsf_hash_init(&ordinals, memory, 4, sizeof(struct ordinal_entry), TOPO_NODES_MAX);
	dsf_hash_init(&schemes, memory, sizeof(struct topo_scheme), sizeof(struct scheme_entry),
		TOPO_NODES_MAX);
	err = place_hosts(d);
	if (err == 0)
		err = mark_clusters(d, &clusters);
	for (uint32_t i = 0; i < d->nodes_count && err == 0; i++) {
		struct topo_draft_node *n = &d->nodes[i];

		if (n->node.cluster != TOPO_NONE)
			set_zone(&n->node, &clusters);
		set_scheme(n, d->fabric.mode);
		err = set_ordinal(d, n, &ordinals, &schemes);
		set_asn(n, d->fabric.mode, i);
	}
	dsf_hash_close(&schemes);
	dsf_hash_close(&ordinals);
	dsf_hash_close(&clusters);
	return err < 0 ? err : set_switch_indexes(d);
}
