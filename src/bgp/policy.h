/*
 * policy.h - which routes come in or go out, and what is changed on the way
 *
 * Rules in order; the first whose prefixes match decides. A route that no rule matches is taken or
 * not as the policy says. Communities and everything unknown stay with the route.
 */
#ifndef DSF_BGP_POLICY_H
#define DSF_BGP_POLICY_H
#include "bgp/update.h"

struct bgp_rule {
	struct bgp_prefix_key prefix;   /* prefixes that lie in it ... */
	uint8_t length_min, length_max; /* ... and have a length of these bounds */
	bool permit;
	bool set_local_pref, set_med;
	uint32_t local_pref, med;
};

struct bgp_policy {
	const struct bgp_rule *rules; /* borrowed */
	uint32_t rules_count;
	bool otherwise; /* what no rule matches is permitted */
};

/* True when inner lies in outer; a prefix lies in itself. */
bool bgp_prefix_covers(const struct bgp_prefix_key *outer, const struct bgp_prefix_key *inner);

/* False: the route is not permitted. *rule is the one that matched, NULL when none did. policy may
 * be NULL: everything is permitted. */
bool bgp_policy_permits(const struct bgp_policy *policy, const struct bgp_prefix_key *prefix,
	const struct bgp_rule **rule);

/* What the rule sets; rule may be NULL. */
void bgp_policy_apply(const struct bgp_rule *rule, struct bgp_attributes *a);

#endif
