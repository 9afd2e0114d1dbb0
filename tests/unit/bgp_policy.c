/* Which prefixes a rule is for, the order of rules, and what they set. */
#include "bgp/policy.h"
#include "tests/tap.h"

static struct bgp_prefix_key key(const char *address, uint8_t length)
{
	struct bgp_prefix_key k = { .length = length };

	if (dsf_ip6_parse(address, &k.address) < 0)
		TAP_OK(false, "%s", address);
	return k;
}

static void test_covers(void)
{
	static const struct {
		const char *outer;
		uint8_t outer_length;
		const char *inner;
		uint8_t inner_length;
		bool want;
	} rows[] = {
		{ "::", 0, "2001:db8::", 32, true },
		{ "2001:db8::", 32, "::", 0, false },
		{ "2001:db8::", 32, "2001:db8::", 32, true },
		{ "2001:db8::", 32, "2001:db8:1::", 48, true },
		{ "2001:db8::", 32, "2001:db9::", 48, false },
		{ "2001:db8::", 31, "2001:db9::", 48, true },
		{ "2001:db8::", 31, "2001:dba::", 48, false },
		{ "2001:db8:8000::", 33, "2001:db8:7fff::", 48, false },
		{ "2001:db8:8000::", 33, "2001:db8:ffff::", 48, true },
		{ "2001:db8::1", 128, "2001:db8::1", 128, true },
		{ "2001:db8::1", 128, "2001:db8::2", 128, false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct bgp_prefix_key outer = key(rows[i].outer, rows[i].outer_length);
		struct bgp_prefix_key inner = key(rows[i].inner, rows[i].inner_length);

		TAP_EQ(bgp_prefix_covers(&outer, &inner), rows[i].want, "%s/%u, %s/%u",
			rows[i].outer, rows[i].outer_length, rows[i].inner, rows[i].inner_length);
	}
}

static void test_rules(void)
{
	struct bgp_rule rules[] = {
		{ .prefix = key("2001:db8:1::", 48), .length_min = 48, .length_max = 48 },
		{ .prefix = key("2001:db8::", 32),
			.length_min = 40,
			.length_max = 64,
			.permit = true,
			.set_local_pref = true,
			.local_pref = 200,
			.set_med = true,
			.med = 9 },
	};
	struct bgp_policy policy = { rules, 2, false };
	struct bgp_attributes a = { 0 };
	const struct bgp_rule *rule;
	struct bgp_prefix_key k = key("2001:db8:1::", 48);

	TAP_OK(!bgp_policy_permits(&policy, &k, &rule) && rule == &rules[0], "the first decides");
	k = key("2001:db8:1:2::", 64);
	TAP_OK(bgp_policy_permits(&policy, &k, &rule) && rule == &rules[1],
		"longer than the first allows: the second");
	bgp_policy_apply(rule, &a);
	TAP_OK(bgp_attributes_get32(&a, BGP_LOCAL_PREF, 0) == 200 &&
			bgp_attributes_get32(&a, BGP_MED, 0) == 9,
		"what it sets");
	k = key("2001:db8::", 32);
	TAP_OK(!bgp_policy_permits(&policy, &k, &rule) && rule == NULL, "too short: no rule");
	policy.otherwise = true;
	TAP_OK(bgp_policy_permits(&policy, &k, &rule) && rule == NULL, "then as the policy says");
	TAP_OK(bgp_policy_permits(NULL, &k, &rule) && rule == NULL, "no policy: everything");
	a.count = 0;
	bgp_policy_apply(NULL, &a);
	TAP_EQ(a.count, 0, "no rule sets nothing");
}

int main(void)
{
	test_covers();
	test_rules();
	return TAP_DONE();
}
