#include "ip/route.h"
#include <string.h>
#include "base/err.h"
#include "base/rng.h"
#include "tests/memory.h"
#include "tests/tap.h"

#define PREFIXES 300u

struct prefix {
	struct dsf_ip6 address;
	unsigned length;
	uint32_t value;
	bool there;
};

static bool holds(const struct prefix *p, const struct dsf_ip6 *address)
{
	for (unsigned bit = 0; bit < p->length; bit++) {
		unsigned mask = 0x80u >> bit % 8;

		if (((p->address.bytes[bit / 8] ^ address->bytes[bit / 8]) & mask) != 0)
			return false;
	}
	return true;
}

/* What a lookup should give, by looking at every prefix. */
static int lookup_slowly(const struct prefix *all, const struct dsf_ip6 *address, uint32_t *value)
{
	const struct prefix *best = NULL;

	for (unsigned i = 0; i < PREFIXES; i++) {
		if (all[i].there && holds(&all[i], address) &&
			(best == NULL || all[i].length > best->length))
			best = &all[i];
	}
	if (best == NULL)
		return -DSF_E_NOROUTE;
	*value = best->value;
	return 0;
}

/* Few different bits, so that prefixes overlap a lot. */
static struct dsf_ip6 random_address(struct dsf_rng *rng)
{
	struct dsf_ip6 a = { { 0 } };

	for (unsigned i = 0; i < 16; i++)
		a.bytes[i] = dsf_rng_below(rng, 2) ? 0x80 : 0;
	return a;
}

static bool same_prefix(const struct prefix *p, const struct prefix *q)
{
	return p->length == q->length && holds(p, &q->address);
}

static void test_against_model(void)
{
	static struct prefix all[PREFIXES];
	struct test_memory memory = TEST_MEMORY(memory);
	struct dsf_rng rng;
	struct ip_route r;
	unsigned wrong = 0, there = 0;

	ip_route_init(&r, &memory.memory);
	dsf_rng_init(&rng, 7);
	for (unsigned round = 0; round < 20000; round++) {
		struct prefix *p = &all[dsf_rng_below(&rng, PREFIXES)];
		struct dsf_ip6 address = random_address(&rng);
		uint32_t got = 0, want = 0;
		int err;

		if (p->there) {
			wrong += ip_route_remove(&r, &p->address, p->length) != 0;
			p->there = false;
			there--;
		} else {
			*p = (struct prefix){ random_address(&rng),
				(unsigned)dsf_rng_below(&rng, 129), round, false };
			bool duplicate = false;
			for (unsigned i = 0; i < PREFIXES; i++)
				duplicate |= all[i].there && same_prefix(&all[i], p);
			if (!duplicate) {
				wrong += ip_route_set(&r, &p->address, p->length, round) != 0;
				p->there = true;
				there++;
			}
		}
		err = ip_route_lookup(&r, &address, &got);
		if (err != lookup_slowly(all, &address, &want) || got != want)
			wrong++;
	}
	TAP_EQ(wrong, 0, "lookups equal those of a plain search, 20000 changes");
	TAP_EQ(r.count, there, "the count is right");
	ip_route_close(&r);
	TAP_EQ(memory.live, 0, "nothing leaks");
}

static void test_edges(void)
{
	struct test_memory memory = TEST_MEMORY(memory);
	struct dsf_ip6 a = { { 0xfd, 0x5f, [15] = 1 } };
	struct ip_route r;
	uint32_t value = 0;

	ip_route_init(&r, &memory.memory);
	TAP_EQ(ip_route_lookup(&r, &a, &value), -DSF_E_NOROUTE, "an empty table has no route");
	TAP_EQ(ip_route_set(&r, &a, 129, 1), -DSF_E_BADFIELD, "length 129");
	TAP_EQ(ip_route_remove(&r, &a, 128), -DSF_E_NOROUTE, "remove what isn't there");
	TAP_EQ(ip_route_set(&r, &a, 0, 5), 0, "a default route");
	TAP_OK(ip_route_lookup(&r, &a, &value) == 0 && value == 5, "is found");
	TAP_EQ(ip_route_set(&r, &a, 0, 6), 0, "and set again");
	TAP_OK(ip_route_lookup(&r, &a, &value) == 0 && value == 6 && r.count == 1, "replaces");
	memory.fail_at = 1;
	TAP_EQ(ip_route_set(&r, &a, 64, 7), -DSF_E_NOMEM, "no memory");
	TAP_OK(ip_route_lookup(&r, &a, &value) == 0 && value == 6, "changes nothing");
	ip_route_close(&r);
	TAP_EQ(memory.live, 0, "nothing leaks");
}

static void test_large(void)
{
	struct test_memory memory = TEST_MEMORY(memory);
	struct dsf_ip6 a = { { 0xfd, 0x5f } };
	struct ip_route r;
	unsigned wrong = 0;
	uint32_t value;

	ip_route_init(&r, &memory.memory);
	for (uint32_t i = 0; i < 100000; i++) {
		memcpy(&a.bytes[4], &i, 4);
		wrong += ip_route_set(&r, &a, 64, i) != 0;
	}
	a.bytes[15] = 2;
	for (uint32_t i = 0; i < 100000; i++) {
		memcpy(&a.bytes[4], &i, 4);
		wrong += ip_route_lookup(&r, &a, &value) != 0 || value != i;
	}
	TAP_EQ(wrong, 0, "100000 prefixes are all found");
	ip_route_close(&r);
}

int main(void)
{
	test_against_model();
	test_edges();
	test_large();
	return TAP_DONE();
}
