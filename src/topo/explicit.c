/*
 * explicit.c - the arrays "nodes" and "links"
 *
 * They stand alone or beside the templates, whose nodes their links may name. What `dsfemu expand`
 * prints is such a file; so every value that we derive (addresses, system ports) may be written in
 * it, but must then be the derived one.
 */
#include "topo/draft.h"
#include <stdio.h>
#include <string.h>

#define ROLE_BIT(role) (1u << (role))

static const unsigned has_building = ROLE_BIT(TOPO_ROLE_RDSW) | ROLE_BIT(TOPO_ROLE_EDSW) |
				     ROLE_BIT(TOPO_ROLE_FDSW) | ROLE_BIT(TOPO_ROLE_SDSW) |
				     ROLE_BIT(TOPO_ROLE_HOST);
static const unsigned has_plane = ROLE_BIT(TOPO_ROLE_RDSW) | ROLE_BIT(TOPO_ROLE_EDSW) |
				  ROLE_BIT(TOPO_ROLE_FDSW) | ROLE_BIT(TOPO_ROLE_SDSW) |
				  ROLE_BIT(TOPO_ROLE_SSW);
static const unsigned has_cluster = ROLE_BIT(TOPO_ROLE_RDSW) | ROLE_BIT(TOPO_ROLE_EDSW) |
				    ROLE_BIT(TOPO_ROLE_FDSW) | ROLE_BIT(TOPO_ROLE_HOST);
static const unsigned has_switch_index = ROLE_BIT(TOPO_ROLE_RDSW) | ROLE_BIT(TOPO_ROLE_EDSW) |
					 ROLE_BIT(TOPO_ROLE_FDSW) | ROLE_BIT(TOPO_ROLE_SDSW);

/* A number that only some roles have; 0 where it is left out, TOPO_NONE where there is none. */
static int take_place(const struct topo_draft *d, const struct topo_path *path,
	const struct topo_slot *slot, unsigned roles, enum topo_role role, uint32_t *value)
{
	bool has = (roles & ROLE_BIT(role)) != 0;

	if (slot->given && !has)
		return topo_fail(d->reader, path, slot, "a node of role %s has none: leave it out",
			topo_role_name(role));
	*value = slot->given ? (uint32_t)slot->number : TOPO_NONE;
	if (!slot->given && has && role != TOPO_ROLE_HOST) /* a host is where its links lead */
		*value = 0;
	return 0;
}

/* More about a node that a template has made: its BGP, which topo_draft_bgp reads. */
static int read_more(
	const struct topo_draft *d, const struct topo_path *path, const struct topo_slot *s)
{
	const char *name = s[TOPO_NODE_NAME].item->valuestring;
	uint32_t index = topo_draft_find(d, name);

	if (index == TOPO_NONE || d->nodes[index].origin.kind == TOPO_ORIGIN_NODE)
		return topo_fail(d->reader, path, NULL,
			"key \"role\" is missing: only an entry about a node of a template has "
			"none");
	for (uint32_t i = 0; i < TOPO_NODE_COUNT; i++) {
		if (s[i].given && i != TOPO_NODE_NAME && i != TOPO_NODE_BGP)
			return topo_fail(d->reader, path, &s[i],
				"a template has made %s: only \"bgp\" can be added to it",
				d->nodes[index].name);
	}
	return 0;
}

static int read_node(struct topo_draft *d, const struct topo_path *path)
{
	struct topo_slot s[TOPO_NODE_COUNT];
	struct topo_origin origin = { TOPO_ORIGIN_NODE, path->child, 0 };
	struct topo_draft_node *n;
	enum topo_role role;
	int64_t index;
	int err = topo_read(d->reader, path, &topo_keys_node, s);

	if (err < 0)
		return err;
	if (!s[TOPO_NODE_ROLE].given)
		return read_more(d, path, s);
	role = (enum topo_role)s[TOPO_NODE_ROLE].number;
	index = topo_draft_node(d, s[TOPO_NODE_NAME].item->valuestring, role, origin);
	if (index < 0)
		return (int)index;
	n = &d->nodes[index];
	err = take_place(d, path, &s[TOPO_NODE_BUILDING], has_building, role, &n->node.building);
	if (err == 0)
		err = take_place(d, path, &s[TOPO_NODE_PLANE], has_plane, role, &n->node.plane);
	if (err == 0)
		err = take_place(
			d, path, &s[TOPO_NODE_CLUSTER], has_cluster, role, &n->node.cluster);
	if (err < 0)
		return err;
	if (s[TOPO_NODE_SWITCH_INDEX].given) {
		err = take_place(d, path, &s[TOPO_NODE_SWITCH_INDEX], has_switch_index, role,
			&n->node.switch_index);
		if (err < 0)
			return err;
	}
	if (d->planes != 0 && n->node.plane != TOPO_NONE && n->node.plane >= d->planes)
		return topo_fail(d->reader, path, &s[TOPO_NODE_PLANE],
			"plane %u of %u: planes are numbered from 0", n->node.plane, d->planes);
	if (s[TOPO_NODE_ADDRESS].given)
		n->address_given = s[TOPO_NODE_ADDRESS].item->valuestring;
	if (s[TOPO_NODE_ASN].given)
		n->node.asn = (uint32_t)s[TOPO_NODE_ASN].number;
	return topo_draft_external(d, path, s, n);
}

/* Digits without a leading zero, up to max; moves *at behind them. */
static bool take_number(const char **at, uint32_t max, uint32_t *value)
{
	const char *c = *at;

	*value = 0;
	if (*c == '0' && c[1] >= '0' && c[1] <= '9')
		return false;
	for (; *c >= '0' && *c <= '9'; c++) {
		*value = *value * 10 + (uint32_t)(*c - '0');
		if (*value > max)
			return false;
	}
	if (c == *at)
		return false;
	*at = c;
	return true;
}

static bool parse_interface(const char *text, struct topo_draft_end *end)
{
	if (strncmp(text, "gpu", 3) == 0) {
		text += 3;
		end->class = TOPO_PORT_GPU;
		if (!take_number(&text, TOPO_RAILS_MAX - 1, &end->ordinal) || *text++ != 'p')
			return false;
		return take_number(&text, TOPO_PLANES_MAX - 1, &end->plane) && *text == '\0';
	}
	if (strncmp(text, "eth", 3) != 0 && strncmp(text, "fab", 3) != 0)
		return false;
	end->class = text[0] == 'e' ? TOPO_PORT_ETH : TOPO_PORT_FAB;
	text += 3;
	return take_number(&text, TOPO_PORTS_MAX - 1, &end->ordinal) && *text == '\0';
}

static int read_end(const struct topo_draft *d, const struct topo_path *path,
	const struct topo_slot *slot, struct topo_draft_end *end)
{
	const char *text = slot->item->valuestring;
	const char *colon = strchr(text, ':');
	char name[TOPO_NODE_NAME_MAX + 1];
	struct topo_quote quote;

	memset(end, 0, sizeof(*end));
	topo_quote(&quote, text, strlen(text));
	if (colon == NULL || colon == text)
		return topo_fail(d->reader, path, slot,
			"%s: a link's end is NODE:INTERFACE, as \"rdsw0:eth1\"", quote.text);
	if (colon - text > TOPO_NODE_NAME_MAX)
		return topo_fail(d->reader, path, slot, "%s: there is no such node", quote.text);
	memcpy(name, text, (size_t)(colon - text));
	name[colon - text] = '\0';
	end->node = topo_draft_find(d, name);
	if (end->node == TOPO_NONE)
		return topo_fail(d->reader, path, slot,
			"%s: there is no such node; add it to \"nodes\" or mend the name",
			quote.text);
	if (!parse_interface(colon + 1, end))
		return topo_fail(d->reader, path, slot,
			"%s: bad interface; it is eth0..., fab0... (cells) or gpu<rail>p<plane> "
			"(hosts)",
			quote.text);
	return 0;
}

/* Which roles a kind joins, lower tier first. */
struct joint {
	enum topo_link_kind kind;
	unsigned lower, upper;
	bool cells;
};

static const struct joint joints[] = {
	{ TOPO_LINK_GPU, ROLE_BIT(TOPO_ROLE_HOST) | ROLE_BIT(TOPO_ROLE_EXTERNAL),
		ROLE_BIT(TOPO_ROLE_RDSW), false },
	{ TOPO_LINK_FABRIC, ROLE_BIT(TOPO_ROLE_RDSW) | ROLE_BIT(TOPO_ROLE_EDSW),
		ROLE_BIT(TOPO_ROLE_FDSW), true },
	{ TOPO_LINK_SPINE, ROLE_BIT(TOPO_ROLE_FDSW), ROLE_BIT(TOPO_ROLE_SDSW), true },
	{ TOPO_LINK_EDGE, ROLE_BIT(TOPO_ROLE_EDSW),
		ROLE_BIT(TOPO_ROLE_SSW) | ROLE_BIT(TOPO_ROLE_EXTERNAL), false },
	{ TOPO_LINK_EDGE, ROLE_BIT(TOPO_ROLE_SSW), ROLE_BIT(TOPO_ROLE_EXTERNAL), false },
};

/* The joint of two ends, which it puts in order; NULL when no kind joins their roles. */
static const struct joint *find_joint(
	const struct topo_draft *d, struct topo_draft_end *a, struct topo_draft_end *b)
{
	unsigned role_a = ROLE_BIT(d->nodes[a->node].node.role);
	unsigned role_b = ROLE_BIT(d->nodes[b->node].node.role);

	for (size_t i = 0; i < sizeof(joints) / sizeof(joints[0]); i++) {
		if ((joints[i].lower & role_a) != 0 && (joints[i].upper & role_b) != 0)
			return &joints[i];
		if ((joints[i].lower & role_b) != 0 && (joints[i].upper & role_a) != 0) {
			struct topo_draft_end swap = *a;

			*a = *b;
			*b = swap;
			return &joints[i];
		}
	}
	return NULL;
}

static int check_interface(const struct topo_draft *d, struct topo_origin origin,
	const struct joint *joint, const struct topo_draft_end *end)
{
	const struct topo_draft_node *n = &d->nodes[end->node];
	enum topo_port_class want = joint->cells ? TOPO_PORT_FAB : TOPO_PORT_ETH;
	char name[TOPO_PORT_NAME_MAX + 1];

	if (n->node.role == TOPO_ROLE_HOST)
		want = TOPO_PORT_GPU;
	topo_draft_port_name(end, name);
	if (end->class != want)
		return topo_draft_fail(d, origin, NULL,
			"wrong interface %s:%s: on a %s link the %s's port is named %s", n->name,
			name, topo_link_kind_name(joint->kind), topo_role_name(n->node.role),
			want == TOPO_PORT_GPU   ? "gpu<rail>p<plane>"
			: want == TOPO_PORT_FAB ? "fab<number>"
						: "eth<number>");
	if (want == TOPO_PORT_ETH && topo_is_interface_node(n->node.role) &&
		end->ordinal >= TOPO_ETHERNET_PORTS_MAX)
		return topo_draft_fail(d, origin, NULL,
			"%s:%s: an interface node has Ethernet ports eth0 to eth%d", n->name, name,
			TOPO_ETHERNET_PORTS_MAX - 1);
	if (want == TOPO_PORT_ETH && end->ordinal >= 255)
		return topo_draft_fail(
			d, origin, NULL, "%s:%s: Ethernet ports are eth0 to eth254", n->name, name);
	return 0;
}

/* A switch's cable to itself: a mistake that a lab may have. */
static bool is_loop(const struct topo_draft *d, const struct topo_draft_end *a,
	const struct topo_draft_end *b, struct joint *joint)
{
	enum topo_role role = d->nodes[a->node].node.role;

	if (a->node != b->node || a->class != TOPO_PORT_FAB || b->class != TOPO_PORT_FAB ||
		d->fabric.mode != TOPO_FABRIC_DSF ||
		!(topo_is_interface_node(role) || topo_is_fabric_node(role)))
		return false;
	*joint = (struct joint){ role == TOPO_ROLE_SDSW ? TOPO_LINK_SPINE : TOPO_LINK_FABRIC,
		ROLE_BIT(role), ROLE_BIT(role), true };
	return true;
}

/* What the plan has at the other end: NODE:IF, which needn't have a cable, or "none". */
static int read_expected(const struct topo_draft *d, const struct topo_path *path,
	const struct topo_slot *slot, const struct joint *joint, struct topo_draft_end *expected)
{
	int err;

	if (!slot->given)
		return 0;
	if (!joint->cells || d->fabric.mode != TOPO_FABRIC_DSF)
		return topo_fail(d->reader, path, slot,
			"only ends of cell links have expected neighbours: leave it out");
	if (strcmp(slot->item->valuestring, "none") == 0) {
		expected->node = TOPO_NONE;
		return 0;
	}
	err = read_end(d, path, slot, expected);
	if (err < 0 || expected->class == TOPO_PORT_FAB)
		return err;
	return topo_fail(d->reader, path, slot,
		"a cell link's neighbour is a switch's fab port, or \"none\"");
}

static int read_both_expected(struct topo_draft *d, const struct topo_path *path,
	const struct topo_slot *s, const struct joint *joint, const struct topo_draft_end *first,
	struct topo_draft_link *l)
{
	bool swapped = l->end[0].node != first->node || l->end[0].ordinal != first->ordinal;
	int err = read_expected(
		d, path, &s[TOPO_LINK_EXPECTED_A], joint, &l->expected[swapped ? 1 : 0]);

	return err < 0 ? err
		       : read_expected(d, path, &s[TOPO_LINK_EXPECTED_B], joint,
				 &l->expected[swapped ? 0 : 1]);
}

static int read_link(struct topo_draft *d, const struct topo_path *path)
{
	struct topo_slot s[TOPO_LINK_COUNT];
	struct topo_origin origin = { TOPO_ORIGIN_LINK, path->child, 0 };
	struct topo_draft_end a, b, first;
	struct topo_settings settings;
	const struct joint *joint;
	struct joint loop;
	int64_t index;
	int err = topo_read(d->reader, path, &topo_keys_link, s);

	if (err == 0)
		err = read_end(d, path, &s[TOPO_LINK_A], &a);
	if (err == 0)
		err = read_end(d, path, &s[TOPO_LINK_B], &b);
	if (err < 0)
		return err;
	first = a;
	joint = is_loop(d, &a, &b, &loop) ? &loop : NULL;
	if (a.node == b.node && joint == NULL)
		return topo_fail(d->reader, path, &s[TOPO_LINK_B],
			"a link from a node to itself: only from one fab port of a cell fabric's "
			"switch to another");
	if (joint == NULL)
		joint = find_joint(d, &a, &b);
	if (joint == NULL)
		return topo_fail(d->reader, path, NULL,
			"wrong roles: no kind of link joins %s %s and %s %s",
			topo_role_name(d->nodes[a.node].node.role), d->nodes[a.node].name,
			topo_role_name(d->nodes[b.node].node.role), d->nodes[b.node].name);
	if (s[TOPO_LINK_KIND].given && s[TOPO_LINK_KIND].number != joint->kind)
		return topo_fail(d->reader, path, &s[TOPO_LINK_KIND],
			"wrong kind: a link of %s and %s is \"%s\"",
			topo_role_name(d->nodes[a.node].node.role),
			topo_role_name(d->nodes[b.node].node.role),
			topo_link_kind_name(joint->kind));
	if (s[TOPO_SETTING_HYPERPORT].given && s[TOPO_SETTING_HYPERPORT].number != 0 &&
		joint->kind != TOPO_LINK_EDGE)
		return topo_fail(d->reader, path, &s[TOPO_SETTING_HYPERPORT],
			"only edge links can be hyper ports");
	err = check_interface(d, origin, joint, &a);
	if (err == 0)
		err = check_interface(d, origin, joint, &b);
	if (err < 0)
		return err;
	settings = d->defaults[joint->kind];
	for (uint32_t i = 0; i < TOPO_SETTING_COUNT; i++) {
		if (s[i].given)
			settings.value[i] = s[i].number;
	}
	index = topo_draft_link(d, joint->kind, &settings, a, b, origin);
	if (index < 0)
		return (int)index;
	d->links[index].link.loop = joint == &loop;
	return read_both_expected(d, path, s, joint, &first, &d->links[index]);
}

static int read_array(struct topo_draft *d, const struct topo_slot *slot,
	int (*read_one)(struct topo_draft *d, const struct topo_path *path))
{
	struct topo_path path = { .up = &d->top, .item = slot->item, .child = slot->child };
	uint32_t child = 0;
	int err = 0;

	if (!slot->given)
		return 0;
	for (const cJSON *c = slot->item->child; c != NULL && err == 0; c = c->next, child++) {
		struct topo_path at = { .up = &path, .item = c, .child = child };

		err = read_one(d, &at);
	}
	return err;
}

int topo_draft_explicit(struct topo_draft *d, const struct topo_slot *top)
{
	int err = read_array(d, &top[TOPO_TOP_NODES], read_node);
	uint32_t planes = 1;

	if (err < 0)
		return err;
	for (uint32_t i = 0; i < d->nodes_count; i++) {
		uint32_t plane = d->nodes[i].node.plane;

		if (plane != TOPO_NONE && plane >= planes)
			planes = plane + 1;
	}
	if (d->planes == 0)
		d->planes = planes;
	d->first_explicit_link = d->links_count;
	return read_array(d, &top[TOPO_TOP_LINKS], read_link);
}

static int given_text(const struct topo_draft *d, const struct topo_path *path,
	const struct topo_slot *slot, const char *derived)
{
	struct topo_quote quote;
	const char *given = slot->given ? slot->item->valuestring : derived;

	if (strcmp(given, derived) == 0)
		return 0;
	if (derived[0] == '\0')
		return topo_fail(d->reader, path, slot, "this end has none: leave it out");
	return topo_fail(d->reader, path, slot,
		"%s: is derived from names and numbers and must be \"%s\"; leave it out",
		topo_quote(&quote, given, strlen(given)), derived);
}

static int given_end(const struct topo_draft *d, const struct topo_path *path,
	const struct topo_port *port, const struct topo_slot *address, const struct topo_slot *mac)
{
	char address_text[DSF_IP6_TEXT_MAX] = "", mac_text[DSF_MAC_TEXT_MAX];
	int err;

	if (port->prefix_length != 0)
		dsf_ip6_text(&port->address, address_text);
	dsf_mac_text(&port->mac, mac_text);
	err = given_text(d, path, address, address_text);
	return err < 0 ? err : given_text(d, path, mac, mac_text);
}

/* The ends of a link as the file has them: "a" may be the upper one. */
static int given_link(const struct topo_draft *d, const struct topo *t,
	const struct topo_path *path, uint32_t index)
{
	struct topo_slot s[TOPO_LINK_COUNT];
	struct topo_draft_end first;
	const struct topo_port *a = &t->ports[t->links[index].port_a];
	const struct topo_port *b = &t->ports[t->links[index].port_b];
	uint32_t system_port = a->system_port != TOPO_NONE ? a->system_port : b->system_port;
	int err = topo_read(d->reader, path, &topo_keys_link, s);

	if (err == 0)
		err = read_end(d, path, &s[TOPO_LINK_A], &first);
	if (err < 0)
		return err;
	if (first.node != a->node || (t->links[index].loop && first.ordinal != a->ordinal)) {
		const struct topo_port *swap = a;

		a = b;
		b = swap;
	}
	err = given_end(d, path, a, &s[TOPO_LINK_ADDRESS_A], &s[TOPO_LINK_MAC_A]);
	if (err == 0)
		err = given_end(d, path, b, &s[TOPO_LINK_ADDRESS_B], &s[TOPO_LINK_MAC_B]);
	if (err == 0 && s[TOPO_LINK_SYSTEM_PORT].given &&
		s[TOPO_LINK_SYSTEM_PORT].number != system_port)
		err = system_port == TOPO_NONE
			      ? topo_fail(d->reader, path, &s[TOPO_LINK_SYSTEM_PORT],
					"this link has none: leave it out")
			      : topo_fail(d->reader, path, &s[TOPO_LINK_SYSTEM_PORT],
					"must be %u (switch index x %d + eth number); leave it out",
					system_port, TOPO_PORTS_PER_SWITCH);
	return err;
}

int topo_draft_given(const struct topo_draft *d, const struct topo *t, const struct topo_slot *top)
{
	const struct topo_slot *slot = &top[TOPO_TOP_LINKS];
	struct topo_path path = { .up = &d->top, .item = slot->item, .child = slot->child };
	uint32_t child = 0;
	int err = 0;

	if (!slot->given)
		return 0;
	for (const cJSON *c = slot->item->child; c != NULL && err == 0; c = c->next, child++) {
		struct topo_path at = { .up = &path, .item = c, .child = child };

		err = given_link(d, t, &at, d->first_explicit_link + child);
	}
	return err;
}
