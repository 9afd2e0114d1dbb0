/* routing_config.c - file and topology as the configuration of a speaker */
#include <assert.h>
#include "base/err.h"
#include "base/rng.h"
#include "node/routed.h"
#include "node/routing_state.h"

static_assert(TOPO_BGP_PATHS_MAX == BGP_PATHS_MAX, "a file can't ask for more");

/* Policies of an edge switch, at these places; those of the file come behind. */
enum own_policy {
	OWN_TO_SPINE,   /* the aggregate and what the file has it originate, nothing else */
	OWN_FROM_SPINE, /* nothing that is in our own building */
	/* To the building: not the aggregate, for who isn't known in it isn't there. In a routed
	 * fabric our own prefix and nothing else of the building, in which edges are no way. */
	OWN_INWARD,
	OWN_POLICIES,
};

/* The policy of a leaf of a routed fabric, which is a way to nobody: what it originates. */
#define LEAF_POLICY 0

struct making {
	struct node_routing *routing;
	struct bgp_peer_config *peers;
	struct bgp_origin *origins;
	uint32_t origins_count, rules_at, policies_at;
};

static const struct topo_bgp *given(const struct node_routing *r)
{
	return r->self->bgp == TOPO_NONE ? NULL : &r->config.topo->bgp[r->self->bgp];
}

static bool is_routed_fabric(const struct node_routing *r)
{
	return r->config.topo->fabric.mode == TOPO_FABRIC_ECMP;
}

static bool is_edge(const struct node_routing *r)
{
	return r->self->role == TOPO_ROLE_EDSW;
}

static bool is_routed_leaf(const struct node_routing *r)
{
	return r->self->role == TOPO_ROLE_RDSW && is_routed_fabric(r);
}

/* Tells a prefix of its own: every switch of a routed fabric. */
static bool has_prefix(const struct node_routing *r)
{
	return is_routed_fabric(r) && r->self->building != TOPO_NONE;
}

static struct bgp_prefix_key key_of(const struct dsf_ip6 *prefix, uint8_t length)
{
	return (struct bgp_prefix_key){ *prefix, length };
}

/* Rules go where the array has room: it was counted before. */
static void add_rule(struct making *m, const struct bgp_rule *rule)
{
	assert(m->rules_at < m->routing->rules_count);
	m->routing->rules[m->rules_at++] = *rule;
}

/* A policy of the rules that are added next. */
static struct bgp_policy *add_policy(struct making *m, bool otherwise)
{
	struct node_routing *r = m->routing;
	struct bgp_policy *policy = &r->policies[m->policies_at++];

	assert(m->policies_at <= r->policies_count);
	*policy = (struct bgp_policy){ .rules = r->rules + m->rules_at, .otherwise = otherwise };
	return policy;
}

static void add_exact(struct making *m, struct bgp_policy *policy, const struct bgp_origin *origin,
	uint8_t length_max, bool permit)
{
	struct bgp_rule rule = { .prefix = origin->prefix,
		.length_min = origin->prefix.length,
		.length_max = length_max,
		.permit = permit };

	add_rule(m, &rule);
	policy->rules_count++;
}

/* The aggregate is the first origin, in a routed fabric the switch's own prefix the second. */
static void add_edge_policies(struct making *m)
{
	const struct bgp_origin *aggregate = &m->origins[0], *own = &m->origins[1];
	bool has_own = has_prefix(m->routing);
	struct bgp_policy *policy = add_policy(m, false);

	for (uint32_t i = 0; i < m->origins_count; i++)
		if (!has_own || i != 1)
			add_exact(m, policy, &m->origins[i], m->origins[i].prefix.length, true);
	add_exact(m, add_policy(m, true), aggregate, 128, false);
	policy = add_policy(m, true);
	if (has_own)
		add_exact(m, policy, own, own->prefix.length, true);
	add_exact(m, policy, aggregate, has_own ? 128 : aggregate->prefix.length, false);
}

static void add_leaf_policy(struct making *m)
{
	struct bgp_policy *policy = add_policy(m, false);

	for (uint32_t i = 0; i < m->origins_count; i++)
		add_exact(m, policy, &m->origins[i], m->origins[i].prefix.length, true);
}

static const struct bgp_policy *add_given_policy(
	struct making *m, const struct topo_bgp_policy *given_policy)
{
	const struct topo *t = m->routing->config.topo;
	struct bgp_policy *policy;

	if (!given_policy->given)
		return NULL;
	policy = add_policy(m, false);
	for (uint32_t i = 0; i < given_policy->count; i++) {
		const struct topo_bgp_rule *g = &t->bgp_rules[given_policy->first + i];
		struct bgp_rule rule = { .prefix = key_of(&g->prefix, g->length),
			.length_min = g->length_min,
			.length_max = g->length_max,
			.permit = g->permit,
			.set_local_pref = g->set_local_pref,
			.set_med = g->set_med,
			.local_pref = g->local_pref,
			.med = g->med };

		add_rule(m, &rule);
		policy->rules_count++;
	}
	return policy;
}

static uint8_t add_path_of(enum topo_bgp_add_path add_path)
{
	switch (add_path) {
	case TOPO_BGP_ADD_PATH_NONE: return 0;
	case TOPO_BGP_ADD_PATH_RECEIVE: return BGP_ADD_PATH_RECEIVE;
	case TOPO_BGP_ADD_PATH_SEND: return BGP_ADD_PATH_SEND;
	case TOPO_BGP_ADD_PATH_BOTH: return BGP_ADD_PATH_RECEIVE | BGP_ADD_PATH_SEND;
	}
	return 0;
}

static void configure_given(
	struct making *m, const struct topo_bgp_neighbor *g, struct bgp_peer_config *c)
{
	c->passive = g->passive;
	c->hold_s = g->hold_s;
	c->add_path = add_path_of(g->add_path);
	c->restart_s = g->restart_s;
	c->next_hop_self = g->next_hop_self;
	c->paths_max = g->paths_max;
	c->md5 = g->md5[0] == '\0' ? NULL : g->md5;
	c->import = add_given_policy(m, &g->import);
	c->export = add_given_policy(m, &g->export);
}

/* Nothing is kept of a session that is gone (restart_s 0): a next hop that is gone has to go. */
static void configure_derived(
	struct making *m, const struct topo_bgp_peer *peer, struct bgp_peer_config *c)
{
	const struct node_routing *r = m->routing;
	bool outward = r->config.topo->nodes[peer->node].role == TOPO_ROLE_SSW;

	c->restart_s = 0;
	c->passive = peer->node < r->config.index;
	if (peer->kind == TOPO_BGP_INTERNAL)
		c->add_path = is_edge(r) ? BGP_ADD_PATH_SEND : BGP_ADD_PATH_RECEIVE;
	if (is_routed_leaf(r))
		c->export = &r->policies[LEAF_POLICY];
	if (!is_edge(r))
		return;
	c->import = outward ? &r->policies[OWN_FROM_SPINE] : NULL;
	c->export = &r->policies[outward ? OWN_TO_SPINE : OWN_INWARD];
}

static int add_peer(struct making *m, const struct topo_bgp_peer *peer, uint32_t index)
{
	struct node_routing *r = m->routing;
	struct node_routing_address *a = dsf_hash_put(&r->addresses, &peer->address);
	struct node_routing_peer *p = &r->peers[index];

	if (a == NULL)
		return -DSF_E_NOMEM;
	a->peer = index;
	bgp_peer_config_init(&m->peers[index], &peer->address, peer->asn);
	if (peer->kind == TOPO_BGP_GIVEN)
		configure_given(m, peer->given, &m->peers[index]);
	else
		configure_derived(m, peer, &m->peers[index]);
	p->topo = *peer;
	p->listens = m->peers[index].passive;
	p->ours = topo_is_routed(&r->config.topo->nodes[peer->node]);
	r->ours_count += p->ours;
	return 0;
}

/* An edge switch's aggregate comes first, and isn't told before there is a leaf; in a routed
 * fabric, before anything of the building is known. */
static void add_origins(struct making *m)
{
	const struct node_routing *r = m->routing;
	const struct topo_bgp *bgp = given(r);

	if (r->originates) {
		struct dsf_ip6 aggregate = topo_bgp_aggregate(r->self->plane, r->self->building);

		m->origins[m->origins_count++] =
			(struct bgp_origin){ key_of(&aggregate, TOPO_BGP_AGGREGATE_LENGTH),
				is_routed_fabric(r), is_routed_fabric(r) };
	}
	if (has_prefix(r)) {
		struct dsf_ip6 own = node_routed_prefix(r->self);

		m->origins[m->origins_count++] =
			(struct bgp_origin){ key_of(&own, NODE_ROUTED_SWITCH_LENGTH), 0, true };
	}
	for (uint32_t i = 0; bgp != NULL && i < bgp->origins_count; i++) {
		const struct topo_bgp_origin *o =
			&r->config.topo->bgp_origins[bgp->first_origin + i];

		m->origins[m->origins_count++] = (struct bgp_origin){ key_of(&o->prefix, o->length),
			o->contributors_min, true };
	}
}

/* Counts what there is to make. */
static void count(struct node_routing *r, uint32_t *origins)
{
	const struct topo_bgp *bgp = given(r);
	struct topo_bgp_walk walk = { 0 };
	struct topo_bgp_peer peer;

	r->originates = is_edge(r);
	*origins = r->originates + has_prefix(r) + (bgp == NULL ? 0 : bgp->origins_count);
	if (r->originates) {
		r->policies_count = OWN_POLICIES;
		r->rules_count = *origins + 2;
	} else if (is_routed_leaf(r)) {
		r->policies_count = 1;
		r->rules_count = *origins;
	}
	while (topo_bgp_next(r->config.topo, r->config.index, &walk, &peer)) {
		r->peers_count++;
		if (peer.kind != TOPO_BGP_GIVEN)
			continue;
		r->policies_count += peer.given->import.given + peer.given->export.given;
		r->rules_count += peer.given->import.count + peer.given->export.count;
	}
}

static int make(struct making *m, dsf_instant now)
{
	struct node_routing *r = m->routing;
	struct topo_bgp_walk walk = { 0 };
	struct topo_bgp_peer peer;
	struct bgp_config config;
	int err = 0;

	add_origins(m);
	if (r->originates)
		add_edge_policies(m);
	else if (is_routed_leaf(r))
		add_leaf_policy(m);
	for (uint32_t i = 0;
		err == 0 && topo_bgp_next(r->config.topo, r->config.index, &walk, &peer); i++)
		err = add_peer(m, &peer, i);
	if (err < 0)
		return err;
	bgp_config_init(&config);
	config.memory = r->config.memory;
	config.as = r->self->asn;
	config.id = topo_bgp_router_id(r->config.topo, r->config.index);
	config.seed = dsf_mix(r->config.seed ^ dsf_mix(r->config.index + 1) ^ now.ns);
	config.peers = m->peers;
	config.peers_count = r->peers_count;
	config.origins = m->origins;
	config.origins_count = m->origins_count;
	r->bgp = bgp_new(&config, node_routing_protocol(r, now));
	return r->bgp == NULL ? -DSF_E_NOMEM : 0;
}

int node_routing_configure(struct node_routing *r, dsf_instant now)
{
	const struct dsf_memory *memory = r->config.memory;
	struct making m = { .routing = r };
	uint32_t origins;
	int err = -DSF_E_NOMEM;

	count(r, &origins);
	r->peers = dsf_memory_new(memory, r->peers_count * sizeof(*r->peers));
	r->policies = dsf_memory_new(memory, r->policies_count * sizeof(*r->policies));
	r->rules = dsf_memory_new(memory, r->rules_count * sizeof(*r->rules));
	m.peers = dsf_memory_new(memory, r->peers_count * sizeof(*m.peers));
	m.origins = dsf_memory_new(memory, (origins + 1) * sizeof(*m.origins));
	if (r->peers_count > BGP_PEERS_MAX)
		err = -DSF_E_FULL;
	else if (r->peers != NULL && r->policies != NULL && r->rules != NULL && m.peers != NULL &&
		 m.origins != NULL)
		err = make(&m, now);
	dsf_memory_delete(memory, m.origins, (origins + 1) * sizeof(*m.origins));
	dsf_memory_delete(memory, m.peers, r->peers_count * sizeof(*m.peers));
	if (err < 0)
		return err;
	for (uint32_t i = 0; i < r->peers_count; i++)
		if (r->peers[i].listens)
			bgp_peer_start(r->bgp, i, node_routing_protocol(r, now));
	return 0;
}
