#include "node/routing.h"
#include "base/err.h"
#include "base/rng.h"
#include "node/routing_state.h"

int node_routing_new(
	struct node_routing **out, const struct node_routing_config *config, dsf_instant now)
{
	struct node_routing *r;
	struct topo_bgp_walk walk = { 0 };
	struct topo_bgp_peer peer;
	int err;

	*out = NULL;
	if (!topo_bgp_next(config->topo, config->index, &walk, &peer))
		return 0;
	r = dsf_memory_new(config->memory, sizeof(*r));
	if (r == NULL)
		return -DSF_E_NOMEM;
	r->config = *config;
	r->self = &config->topo->nodes[config->index];
	r->flow_seed = dsf_mix(config->seed ^ dsf_mix(config->index + 1));
	dsf_hash_init(&r->addresses, config->memory, sizeof(struct dsf_ip6),
		sizeof(struct node_routing_address), BGP_PEERS_MAX);
	dsf_hash_init(&r->streams, config->memory, sizeof(uint32_t),
		sizeof(struct node_routing_stream), BGP_SLOTS * BGP_PEERS_MAX);
	dsf_hash_init(&r->prefixes, config->memory, sizeof(struct dsf_ip6) + sizeof(uint32_t),
		sizeof(struct node_routing_prefix), NODE_ROUTING_PREFIXES_MAX);
	ip_hops_init(&r->hops, config->memory, config->usable, config->user);
	ip_route_init(&r->table, config->memory);
	err = node_routing_expect(r, now);
	if (err == 0 && !config->promised)
		err = node_routing_configure(r, now);
	if (err < 0) {
		node_routing_free(r);
		return err;
	}
	node_routing_look_all(r, now);
	*out = r;
	return 0;
}

void node_routing_free(struct node_routing *r)
{
	const struct dsf_memory *memory;

	if (r == NULL)
		return;
	memory = r->config.memory;
	node_routing_close_streams(r);
	if (r->bgp != NULL)
		bgp_free(r->bgp);
	ip_route_close(&r->table);
	ip_hops_close(&r->hops);
	dsf_hash_close(&r->expected);
	dsf_hash_close(&r->prefixes);
	dsf_hash_close(&r->streams);
	dsf_hash_close(&r->addresses);
	dsf_memory_delete(memory, r->rules, r->rules_count * sizeof(*r->rules));
	dsf_memory_delete(memory, r->policies, r->policies_count * sizeof(*r->policies));
	dsf_memory_delete(memory, r->peers, r->peers_count * sizeof(*r->peers));
	dsf_memory_delete(memory, r, sizeof(*r));
}

/* ---- routes */

static void forget_prefix(struct node_routing *r, struct node_routing_prefix *p)
{
	(void)ip_route_remove(&r->table, &p->address, p->length);
	ip_hops_drop(&r->hops, p->set);
	dsf_hash_remove(&r->prefixes, p);
}

void node_routing_route(struct node_routing *r, const struct dsf_ip6 *prefix, uint32_t length,
	const struct dsf_ip6 *hops, uint32_t hops_count, dsf_instant now)
{
	struct node_routing_prefix key = { .address = *prefix, .length = length };
	struct node_routing_prefix *p = dsf_hash_get(&r->prefixes, &key);
	uint32_t set;

	node_routing_count(r, prefix, length, hops_count);
	dsf_trace_emit(r->config.trace, now, DSF_EVENT_ROUTE_CHANGED, r->config.index,
		dsf_load_be64(key.address.bytes), (uint64_t)length << 32 | hops_count);
	if (hops_count == 0) {
		if (p != NULL)
			forget_prefix(r, p);
		return;
	}
	if (ip_hops_find(&r->hops, hops, hops_count, &set) == 0) {
		bool known = p != NULL;

		if (!known)
			p = dsf_hash_put(&r->prefixes, &key);
		if (p != NULL && ip_route_set(&r->table, &key.address, key.length, set) == 0) {
			if (known)
				ip_hops_drop(&r->hops, p->set);
			p->set = set;
			return;
		}
		ip_hops_drop(&r->hops, set);
		if (p != NULL && !known)
			dsf_hash_remove(&r->prefixes, p);
	}
	/* What it led to before is no longer true. */
	r->refused++;
	node_routing_count(r, prefix, length, 0);
	p = dsf_hash_get(&r->prefixes, &key);
	if (p != NULL)
		forget_prefix(r, p);
}

static void take_peer(struct node_routing *r, uint32_t peer, bool up, dsf_instant now)
{
	struct node_routing_peer *p = &r->peers[peer];

	p->up = up;
	r->up_count += up ? 1u : ~0u;
	if (p->ours)
		r->ours_up += up ? 1u : ~0u;
	dsf_trace_emit(r->config.trace, now, up ? DSF_EVENT_BGP_UP : DSF_EVENT_BGP_DOWN,
		r->config.index, peer, 0);
}

void node_routing_settle(struct node_routing *r, dsf_instant now)
{
	struct bgp_change change;
	uint32_t peer;
	bool up;

	while (r->bgp != NULL && bgp_peer_changed(r->bgp, &peer, &up))
		take_peer(r, peer, up, now);
	while (r->bgp != NULL && bgp_changed(r->bgp, &change))
		node_routing_route(r, &change.prefix.address, change.prefix.length, change.hops,
			change.hops_count, now);
}

bool node_routing_find(
	const struct node_routing *r, const struct ip_packet *p, struct dsf_ip6 *next_hop)
{
	const struct dsf_ip6 *hop;
	uint32_t set;

	if (r == NULL || ip_route_lookup(&r->table, &p->destination, &set) < 0)
		return false;
	hop = ip_hops_pick(&r->hops, set, ip_packet_hash(p, r->flow_seed));
	if (hop == NULL)
		return false;
	*next_hop = *hop;
	return true;
}

/* ---- what can be sent to */

static void look_leaves(struct node_routing *r, const struct node_routing_peer *p, dsf_instant now)
{
	if (!r->originates || p->topo.port != TOPO_NONE ||
		r->config.topo->nodes[p->topo.node].role != TOPO_ROLE_RDSW)
		return;
	r->leaves_usable += p->usable ? 1u : ~0u;
	bgp_originate(r->bgp, 0, r->leaves_usable > 0, node_routing_protocol(r, now));
}

static void set_peer_usable(struct node_routing *r, uint32_t peer, bool usable, dsf_instant now)
{
	struct node_routing_peer *p = &r->peers[peer];
	dsf_instant at = node_routing_protocol(r, now);

	if (p->usable == usable)
		return;
	p->usable = usable;
	if (!usable) {
		node_routing_break(r, peer, now);
		bgp_peer_stop(r->bgp, peer, BGP_CEASE_SHUTDOWN, NULL, at);
	}
	if (usable || p->listens)
		bgp_peer_start(r->bgp, peer, at);
	look_leaves(r, p, now);
}

void node_routing_look(struct node_routing *r, const struct dsf_ip6 *address, dsf_instant now)
{
	const struct node_routing_address *a;
	bool usable;

	if (r == NULL)
		return;
	a = dsf_hash_get(&r->addresses, address);
	usable = r->config.usable(r->config.user, address);
	ip_hops_change(&r->hops, address, usable);
	if (a != NULL)
		set_peer_usable(r, a->peer, usable, now);
	node_routing_settle(r, now);
}

static void look_set(struct node_routing *r, const struct ip_hops_set *set)
{
	for (uint32_t i = 0; i < set->count; i++) {
		bool usable = r->config.usable(r->config.user, &set->hops[i]);

		if ((set->factors[i] != 0) != usable)
			ip_hops_change(&r->hops, &set->hops[i], usable);
	}
}

void node_routing_look_hops(struct node_routing *r)
{
	for (uint32_t i = 0; r != NULL && i < r->hops.sets_room; i++)
		if (r->hops.sets[i] != NULL)
			look_set(r, r->hops.sets[i]);
}

void node_routing_look_all(struct node_routing *r, dsf_instant now)
{
	if (r == NULL)
		return;
	node_routing_look_hops(r);
	for (uint32_t i = 0; i < r->peers_count; i++)
		set_peer_usable(
			r, i, r->config.usable(r->config.user, &r->peers[i].topo.address), now);
	node_routing_settle(r, now);
}

/* ---- time */

dsf_instant node_routing_deadline(const struct node_routing *r)
{
	dsf_instant at = r == NULL || r->bgp == NULL ? DSF_NEVER : bgp_deadline(r->bgp);
	uint32_t dilation = r == NULL ? 1 : r->config.control_dilation;

	if (!dsf_time_is_never(at))
		at.ns = (at.ns + dilation - 1) / dilation;
	return at;
}

void node_routing_expire(struct node_routing *r, dsf_instant now)
{
	if (r == NULL || !dsf_time_due(node_routing_deadline(r), now))
		return;
	bgp_expire(r->bgp, node_routing_protocol(r, now));
	node_routing_settle(r, now);
}

bool node_routing_ready(const struct node_routing *r)
{
	return r == NULL || (r->ours_up == r->ours_count && r->expected_there == r->expected.count);
}

void node_routing_sessions(const struct node_routing *r, struct node_sessions *sessions)
{
	if (r == NULL || r->bgp == NULL)
		return;
	sessions->bgp_established += r->up_count;
	sessions->bgp_expected += r->peers_count;
}
