/* export.c - how a route looks to those whom it is told (RFC 4271 5.1, 9.2.1) */
#include "bgp/speaker.h"

/* May the group hear of it at all? */
static bool is_told(const struct bgp *b, const struct bgp_group *g, const struct bgp_path *path)
{
	const struct bgp_bundle *bundle = path->bundle;

	if (bundle->no_advertise || (g->external && bundle->no_export)) /* RFC 1997 */
		return false;
	return g->external || bgp_is_own(path->peer) || bgp_is_external(b, path->peer);
}

/* What an AS keeps for itself goes, and it puts itself in front. */
static void externalise(struct bgp *b, const struct bgp_path *path, struct bgp_attributes *a)
{
	const struct bgp_attribute *old = bgp_attributes_find(a, BGP_AS_PATH);
	uint8_t *longer = b->scratch + BGP_SCRATCH_PATH;
	size_t size = old == NULL ? 0 : old->size;

	if (size + 6 <= BGP_SCRATCH_AS2 - BGP_SCRATCH_PATH) {
		size = bgp_as_path_prepend(
			longer, size == 0 ? NULL : bgp_attribute_bytes(old), size, b->config.as);
		bgp_attributes_set(a, BGP_AS_PATH, BGP_FLAG_TRANSITIVE, longer, size);
	}
	if (!bgp_is_own(path->peer))
		bgp_attributes_remove(a, BGP_MED);
	bgp_attributes_remove(a, BGP_ORIGINATOR_ID);
	bgp_attributes_remove(a, BGP_CLUSTER_LIST);
}

bool bgp_export(struct bgp *b, const struct bgp_group *g, const struct bgp_path *path,
	struct bgp_bundle **bundle)
{
	bool ours = bgp_is_own(path->peer);
	const struct bgp_rule *rule;
	struct bgp_attributes a;

	*bundle = NULL;
	if (!is_told(b, g, path) || !bgp_policy_permits(g->policy, &path->prefix->key, &rule))
		return true;
	if (!g->external && !g->next_hop_self && !ours && rule == NULL) { /* as it came */
		*bundle = bgp_bundle_hold(path->bundle);
		return true;
	}
	bgp_attributes_read(&a, path->bundle->bytes, path->bundle->size);
	if (g->external)
		externalise(b, path, &a);
	bgp_policy_apply(rule, &a);
	if (g->external)
		bgp_attributes_remove(&a, BGP_LOCAL_PREF);
	*bundle = bgp_store_bundle(&b->store, &a,
		g->external || g->next_hop_self || ours ? &g->local : &path->bundle->next_hop,
		&b->bundle_bytes, b->scratch, BGP_SCRATCH_PATH);
	return *bundle != NULL;
}
