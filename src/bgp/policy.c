#include "bgp/policy.h"

bool bgp_prefix_covers(const struct bgp_prefix_key *outer, const struct bgp_prefix_key *inner)
{
	unsigned bytes = outer->length / 8u, bits = outer->length % 8u;

	if (outer->length > inner->length ||
		memcmp(outer->address.bytes, inner->address.bytes, bytes) != 0)
		return false;
	return bits == 0 ||
	       ((outer->address.bytes[bytes] ^ inner->address.bytes[bytes]) >> (8 - bits)) == 0;
}

bool bgp_policy_permits(const struct bgp_policy *policy, const struct bgp_prefix_key *prefix,
	const struct bgp_rule **rule)
{
	*rule = NULL;
	if (policy == NULL)
		return true;
	for (uint32_t i = 0; i < policy->rules_count; i++) {
		const struct bgp_rule *r = &policy->rules[i];

		if (prefix->length >= r->length_min && prefix->length <= r->length_max &&
			bgp_prefix_covers(&r->prefix, prefix)) {
			*rule = r;
			return r->permit;
		}
	}
	return policy->otherwise;
}

void bgp_policy_apply(const struct bgp_rule *rule, struct bgp_attributes *a)
{
	if (rule == NULL)
		return;
	if (rule->set_local_pref)
		bgp_attributes_set32(a, BGP_LOCAL_PREF, BGP_FLAG_TRANSITIVE, rule->local_pref);
	if (rule->set_med)
		bgp_attributes_set32(a, BGP_MED, BGP_FLAG_OPTIONAL, rule->med);
}
