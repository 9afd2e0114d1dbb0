/*
 * bgp_file.c - the objects "bgp" of nodes
 *
 * Read when the table is finished: a neighbour's address says over which port, or between which
 * loopbacks, and whom it reaches.
 */
#include <stdlib.h>
#include <string.h>
#include "base/err.h"
#include "base/time.h"
#include "topo/bgp.h"
#include "topo/draft.h"

#define HOLD_S         90u  /* RFC 4271 10 */
#define HOLD_S_MIN     3u   /* RFC 4271 4.2 */
#define RESTART_S      120u /* as bgp/session.h */
#define ROUTER_ID_SIZE 4u

/* What the table doesn't have yet. */
struct reading {
	const struct topo_draft *draft;
	struct topo *topo;
	struct topo_bgp *bgp;
	struct topo_bgp_neighbor *neighbors;
	struct topo_bgp_rule *rules;
	struct topo_bgp_origin *origins;
	uint32_t bgp_count, neighbors_count, rules_count, origins_count;
	const struct topo_node *self; /* whose neighbours are read */
};

/* One more item; NULL when memory is short. Arrays double at powers of two. */
static void *add(void *array, uint32_t *count, size_t size)
{
	void **at = array;

	if ((*count & (*count - 1)) == 0) {
		void *grown = realloc(*at, (*count == 0 ? 1 : 2 * (size_t)*count) * size);

		if (grown == NULL)
			return NULL;
		*at = grown;
	}
	memset((char *)*at + *count * size, 0, size);
	return (char *)*at + (*count)++ * size;
}

static int fail_text(const struct reading *r, const struct topo_path *path,
	const struct topo_slot *slot, const char *want)
{
	struct topo_quote quote;
	const char *text = slot->item->valuestring;

	return topo_fail(r->draft->reader, path, slot, "%s: must be %s",
		topo_quote(&quote, text, strlen(text)), want);
}

/* "ADDRESS/LENGTH" without host bits. */
static bool parse_prefix(const char *text, struct dsf_ip6 *prefix, uint8_t *length)
{
	const char *slash = strchr(text, '/');
	char address[DSF_IP6_TEXT_MAX], *end;
	unsigned long value;

	if (slash == NULL || (size_t)(slash - text) >= sizeof(address) || slash[1] < '0' ||
		slash[1] > '9' || (slash[1] == '0' && slash[2] != '\0'))
		return false;
	memcpy(address, text, (size_t)(slash - text));
	address[slash - text] = '\0';
	value = strtoul(slash + 1, &end, 10);
	if (*end != '\0' || value > 128 || dsf_ip6_parse(address, prefix) < 0)
		return false;
	*length = (uint8_t)value;
	for (unsigned bit = *length; bit < 128; bit++) {
		if ((prefix->bytes[bit / 8] >> (7 - bit % 8) & 1) != 0)
			return false;
	}
	return true;
}

static int read_prefix(const struct reading *r, const struct topo_path *path,
	const struct topo_slot *slot, struct dsf_ip6 *prefix, uint8_t *length)
{
	if (parse_prefix(slot->item->valuestring, prefix, length))
		return 0;
	return fail_text(
		r, path, slot, "a prefix as \"2001:db8::/32\", with no bit set behind its length");
}

static int read_rule(struct reading *r, const struct topo_path *path)
{
	struct topo_slot s[TOPO_BGP_RULE_COUNT];
	int err = topo_read(r->draft->reader, path, &topo_keys_bgp_rule, s);
	struct topo_bgp_rule *rule;

	if (err < 0)
		return err;
	rule = add(&r->rules, &r->rules_count, sizeof(*rule));
	if (rule == NULL)
		return -DSF_E_NOMEM;
	err = read_prefix(r, path, &s[TOPO_BGP_RULE_PREFIX], &rule->prefix, &rule->length);
	if (err < 0)
		return err;
	rule->permit = !s[TOPO_BGP_RULE_PERMIT].given || s[TOPO_BGP_RULE_PERMIT].number != 0;
	rule->length_min =
		s[TOPO_BGP_RULE_GE].given ? (uint8_t)s[TOPO_BGP_RULE_GE].number : rule->length;
	rule->length_max = s[TOPO_BGP_RULE_GE].given ? 128 : rule->length;
	if (s[TOPO_BGP_RULE_LE].given)
		rule->length_max = (uint8_t)s[TOPO_BGP_RULE_LE].number;
	rule->set_local_pref = s[TOPO_BGP_RULE_LOCAL_PREF].given;
	rule->local_pref = (uint32_t)s[TOPO_BGP_RULE_LOCAL_PREF].number;
	rule->set_med = s[TOPO_BGP_RULE_MED].given;
	rule->med = (uint32_t)s[TOPO_BGP_RULE_MED].number;
	if (rule->length_min < rule->length || rule->length_max < rule->length_min)
		return topo_fail(r->draft->reader, path, NULL,
			"no prefix matches: its length (%u) <= ge (%u) <= le (%u) must hold",
			rule->length, rule->length_min, rule->length_max);
	if (!rule->permit && (rule->set_local_pref || rule->set_med))
		return topo_fail(r->draft->reader, path, NULL,
			"a rule that doesn't permit sets nothing: leave local_pref and med out");
	return 0;
}

static int read_origin(struct reading *r, const struct topo_path *path)
{
	struct topo_slot s[TOPO_BGP_ORIGIN_COUNT];
	int err = topo_read(r->draft->reader, path, &topo_keys_bgp_origin, s);
	struct topo_bgp_origin *origin;

	if (err < 0)
		return err;
	origin = add(&r->origins, &r->origins_count, sizeof(*origin));
	if (origin == NULL)
		return -DSF_E_NOMEM;
	origin->contributors_min = (uint32_t)s[TOPO_BGP_ORIGIN_MIN_CONTRIBUTORS].number;
	return read_prefix(r, path, &s[TOPO_BGP_ORIGIN_PREFIX], &origin->prefix, &origin->length);
}

static int read_list(struct reading *r, const struct topo_path *path, const struct topo_slot *slot,
	int (*read_one)(struct reading *r, const struct topo_path *path))
{
	struct topo_path list = { .up = path, .item = slot->item, .child = slot->child };
	uint32_t child = 0;
	int err = 0;

	if (!slot->given)
		return 0;
	for (const cJSON *c = slot->item->child; c != NULL && err == 0; c = c->next, child++) {
		struct topo_path at = { .up = &list, .item = c, .child = child };

		err = read_one(r, &at);
	}
	return err;
}

static int read_policy(struct reading *r, const struct topo_path *path,
	const struct topo_slot *slot, struct topo_bgp_policy *policy)
{
	int err;

	*policy = (struct topo_bgp_policy){ .given = slot->given, .first = r->rules_count };
	err = read_list(r, path, slot, read_rule);
	policy->count = r->rules_count - policy->first;
	return err;
}

/* Over which port, or between which loopbacks, the address is; false: it is our own, or nowhere. */
static bool find_way(const struct reading *r, struct topo_bgp_neighbor *b)
{
	const struct topo *t = r->topo;
	const struct topo_node *n = r->self;

	for (uint32_t i = 0; i < n->ports_count; i++) {
		const struct topo_port *port = topo_node_port(t, n, i);

		if (port->prefix_length == 0 ||
			memcmp(&port->address, &b->address, port->prefix_length / 8u) != 0)
			continue;
		b->port = i;
		b->local = port->address;
		b->node = t->ports[port->peer].node;
		return !dsf_ip6_equal(&port->address, &b->address);
	}
	b->port = TOPO_NONE;
	b->local = n->loopback;
	for (b->node = 0; b->node < t->nodes_count; b->node++) {
		if (dsf_ip6_equal(&t->nodes[b->node].loopback, &b->address))
			return &t->nodes[b->node] != n;
	}
	return false;
}

static int read_address(const struct reading *r, const struct topo_path *path,
	const struct topo_slot *slot, struct topo_bgp_neighbor *b)
{
	const struct topo_bgp *bgp = &r->bgp[r->bgp_count - 1];

	if (dsf_ip6_parse(slot->item->valuestring, &b->address) < 0 ||
		dsf_ip6_is_unspecified(&b->address))
		return fail_text(r, path, slot, "an IPv6 address");
	for (uint32_t i = bgp->first_neighbor; &r->neighbors[i] != b; i++) {
		if (dsf_ip6_equal(&r->neighbors[i].address, &b->address))
			return topo_fail(r->draft->reader, path, slot,
				"duplicate neighbour: %s has it already", r->self->name);
	}
	if (find_way(r, b))
		return 0;
	return topo_fail(r->draft->reader, path, slot,
		"%s has no way to it: must be in the subnet of one of its Ethernet ports, or "
		"another switch's loopback",
		r->self->name);
}

static int read_seconds(const struct reading *r, const struct topo_path *path,
	const struct topo_slot *slot, uint16_t otherwise, uint16_t *seconds)
{
	*seconds = slot->given ? (uint16_t)(slot->number / NS_PER_S) : otherwise;
	if (slot->given && slot->number % NS_PER_S != 0)
		return topo_fail(r->draft->reader, path, slot, "must be whole seconds");
	return 0;
}

static int read_key(const struct reading *r, const struct topo_path *path,
	const struct topo_slot *slot, char key[TOPO_BGP_MD5_MAX + 1])
{
	const char *text = slot->given ? slot->item->valuestring : "";
	size_t size = strlen(text);

	if (slot->given && (size == 0 || size > TOPO_BGP_MD5_MAX))
		return topo_fail(r->draft->reader, path, slot, "must have 1 to %d characters",
			TOPO_BGP_MD5_MAX);
	for (size_t i = 0; i < size; i++) {
		if (text[i] < ' ' || text[i] > '~')
			return topo_fail(
				r->draft->reader, path, slot, "must have printable ASCII only");
	}
	memcpy(key, text, size + 1);
	return 0;
}

static int read_neighbor(struct reading *r, const struct topo_path *path)
{
	struct topo_slot s[TOPO_BGP_NEIGHBOR_COUNT];
	const struct topo_slot *add_path = &s[TOPO_BGP_NEIGHBOR_ADD_PATH];
	int err = topo_read(r->draft->reader, path, &topo_keys_bgp_neighbor, s);
	struct topo_bgp_neighbor *b;

	if (err < 0)
		return err;
	b = add(&r->neighbors, &r->neighbors_count, sizeof(*b));
	if (b == NULL)
		return -DSF_E_NOMEM;
	b->asn = (uint32_t)s[TOPO_BGP_NEIGHBOR_ASN].number;
	b->passive = s[TOPO_BGP_NEIGHBOR_PASSIVE].number != 0;
	b->next_hop_self = s[TOPO_BGP_NEIGHBOR_NEXT_HOP_SELF].number != 0;
	b->add_path =
		add_path->given ? (enum topo_bgp_add_path)add_path->number : TOPO_BGP_ADD_PATH_NONE;
	b->paths_max = s[TOPO_BGP_NEIGHBOR_MAX_PATHS].given
			       ? (uint32_t)s[TOPO_BGP_NEIGHBOR_MAX_PATHS].number
			       : TOPO_BGP_PATHS_MAX;
	err = read_address(r, path, &s[TOPO_BGP_NEIGHBOR_ADDRESS], b);
	if (err == 0)
		err = read_seconds(r, path, &s[TOPO_BGP_NEIGHBOR_HOLD], HOLD_S, &b->hold_s);
	if (err == 0 && b->hold_s > 0 && b->hold_s < HOLD_S_MIN)
		err = topo_fail(r->draft->reader, path, &s[TOPO_BGP_NEIGHBOR_HOLD],
			"must be 0 (no hold time) or at least %u s", HOLD_S_MIN);
	if (err == 0)
		err = read_seconds(
			r, path, &s[TOPO_BGP_NEIGHBOR_GRACEFUL_RESTART], RESTART_S, &b->restart_s);
	if (err == 0)
		err = read_key(r, path, &s[TOPO_BGP_NEIGHBOR_MD5], b->md5);
	if (err == 0)
		err = read_policy(r, path, &s[TOPO_BGP_NEIGHBOR_IMPORT], &b->import);
	return err < 0 ? err : read_policy(r, path, &s[TOPO_BGP_NEIGHBOR_EXPORT], &b->export);
}

/* Four numbers with points between. */
static bool parse_router_id(const char *text, uint32_t *id)
{
	*id = 0;
	for (unsigned i = 0; i < ROUTER_ID_SIZE; i++) {
		unsigned long value;
		char *end;

		if (*text < '0' || *text > '9')
			return false;
		value = strtoul(text, &end, 10);
		if (value > 255 || *end != (i + 1 < ROUTER_ID_SIZE ? '.' : '\0'))
			return false;
		*id = *id << 8 | (uint32_t)value;
		text = end + 1;
	}
	return *id != 0;
}

static int read_bgp(struct reading *r, const struct topo_path *path, uint32_t node)
{
	struct topo_slot s[TOPO_BGP_COUNT];
	struct topo_node *n = (struct topo_node *)&r->topo->nodes[node];
	int err = topo_read(r->draft->reader, path, &topo_keys_bgp, s);
	struct topo_bgp *bgp;
	uint32_t id;

	if (err < 0)
		return err;
	if (!topo_is_routed(n))
		return topo_fail(r->draft->reader, path, NULL,
			"a node of role %s is no router of ours: leave it out",
			topo_role_name(n->role));
	if (n->bgp != TOPO_NONE)
		return topo_fail(r->draft->reader, path, NULL, "%s has one already", n->name);
	id = topo_bgp_router_id(r->topo, node);
	if (s[TOPO_BGP_ROUTER_ID].given &&
		!parse_router_id(s[TOPO_BGP_ROUTER_ID].item->valuestring, &id))
		return fail_text(r, path, &s[TOPO_BGP_ROUTER_ID], "an identifier as \"10.0.0.1\"");
	bgp = add(&r->bgp, &r->bgp_count, sizeof(*bgp));
	if (bgp == NULL)
		return -DSF_E_NOMEM;
	n->bgp = r->bgp_count - 1;
	r->self = n;
	bgp->router_id = id;
	bgp->first_neighbor = r->neighbors_count;
	bgp->first_origin = r->origins_count;
	err = read_list(r, path, &s[TOPO_BGP_NEIGHBORS], read_neighbor);
	if (err == 0)
		err = read_list(r, path, &s[TOPO_BGP_ORIGINATE], read_origin);
	bgp = &r->bgp[n->bgp];
	bgp->neighbors_count = r->neighbors_count - bgp->first_neighbor;
	bgp->origins_count = r->origins_count - bgp->first_origin;
	return err;
}

static int read_node(struct reading *r, const struct topo_path *path)
{
	const cJSON *name = cJSON_GetObjectItemCaseSensitive(path->item, "name");
	struct topo_path at = { .up = path, .item = path->item->child };

	while (at.item != NULL && strcmp(at.item->string, "bgp") != 0) {
		at.item = at.item->next;
		at.child++;
	}
	if (at.item == NULL)
		return 0;
	return read_bgp(r, &at, topo_find_node(r->topo, name->valuestring));
}

int topo_draft_bgp(const struct topo_draft *d, struct topo *t, const struct topo_slot *top)
{
	struct reading r = { .draft = d, .topo = t };
	int err = read_list(&r, &d->top, &top[TOPO_TOP_NODES], read_node);

	t->bgp = r.bgp;
	t->bgp_neighbors = r.neighbors;
	t->bgp_rules = r.rules;
	t->bgp_origins = r.origins;
	return err;
}
