#include "ip/hops.h"
#include <string.h>
#include "base/cursor.h"
#include "base/err.h"
#include "base/rng.h"
#include "ip/packet.h"
#include "tests/memory.h"
#include "tests/tap.h"

#define FLOWS (1u << 20)

/* Addresses as a lab has them: port i of switch i / 64, rising. */
static struct dsf_ip6 address(uint32_t i)
{
	return (struct dsf_ip6){ { 0xfd, 0x5f, 0, 0xff, 0xff, (uint8_t)(i / 64),
		(uint8_t)(i % 64), [15] = 2 } };
}

static void addresses(struct dsf_ip6 *hops, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		hops[i] = address(i);
}

static uint32_t number_of(const struct dsf_ip6 *a)
{
	return a == NULL ? UINT32_MAX : a->bytes[5] * 64u + a->bytes[6];
}

static double root(double x)
{
	double r = x > 1 ? x : 1;

	for (int i = 0; i < 60; i++)
		r = (r + x / r) / 2;
	return r;
}

/* Of all flows, how many took each member, against dice: chi squared, in its deviations. */
static double off(const uint32_t *counts, uint32_t count, uint32_t flows)
{
	double mean = (double)flows / count, chi = 0;

	for (uint32_t i = 0; i < count; i++)
		chi += (counts[i] - mean) * (counts[i] - mean) / mean;
	return (chi - (count - 1)) / root(2.0 * (count - 1));
}

static bool is_dice(double sigmas)
{
	return sigmas > -5 && sigmas < 5;
}

static void tell(const uint32_t *counts, uint32_t count)
{
	double mean = (double)FLOWS / count, squares = 0, most = 0;

	for (uint32_t i = 0; i < count; i++) {
		squares += (counts[i] / mean - 1) * (counts[i] / mean - 1);
		most = counts[i] / mean - 1 > most ? counts[i] / mean - 1 : most;
	}
	printf("# %u members: most %+.2f %%, deviation %.2f %% (dice %.2f %%)\n", count, 100 * most,
		100 * root(squares / count), 100 / root(mean));
}

static void test_even(uint32_t count)
{
	static uint32_t counts[IP_HOPS_MEMBERS_MAX];
	static struct dsf_ip6 hops[IP_HOPS_MEMBERS_MAX];
	struct test_memory memory = TEST_MEMORY(memory);
	struct ip_hops h;
	struct dsf_rng rng;
	double sigmas;
	uint32_t id;

	ip_hops_init(&h, &memory.memory, NULL, NULL);
	dsf_rng_init(&rng, count);
	addresses(hops, count);
	memset(counts, 0, sizeof(counts));
	TAP_EQ(ip_hops_find(&h, hops, count, &id), 0, "a set of %u", count);
	for (uint32_t i = 0; i < FLOWS; i++)
		counts[number_of(ip_hops_pick(&h, id, dsf_rng_next(&rng)))]++;
	tell(counts, count);
	sigmas = off(counts, count, FLOWS);
	TAP_OK(is_dice(sigmas), "%u members are as even as dice: %+.1f sigma", count, sigmas);
	printf("# %u members: %zu bytes\n", count, memory.live);
	ip_hops_close(&h);
	TAP_EQ(memory.live, 0, "nothing leaks");
}

/* A flow's hash as a switch with this seed has it: hosts that differ in a byte, ports in a row. */
static uint64_t flow_hash(uint32_t flow, uint64_t seed)
{
	struct ip_packet p = { .protocol = IP_PROTOCOL_UDP,
		.source = { { 0xfd, 0x5f, [5] = (uint8_t)(flow / 16 % 64), [15] = 2 } },
		.destination = { { 0xfd, 0x5f, [3] = 1, [5] = (uint8_t)(flow / 1024), [15] = 2 } },
		.source_port = (uint16_t)(49152 + flow % 16),
		.target_port = 4791 };

	return ip_packet_hash(&p, seed);
}

/* Two switches in a row: what the first sends one way, the second spreads over all of its own. */
static void test_packets(void)
{
	struct test_memory memory = TEST_MEMORY(memory);
	uint32_t counts[16] = { 0 }, flows = 0, id;
	struct dsf_ip6 hops[16];
	struct ip_hops h;
	double sigmas;

	ip_hops_init(&h, &memory.memory, NULL, NULL);
	addresses(hops, 16);
	ip_hops_find(&h, hops, 16, &id);
	for (uint32_t i = 0; i < 1 << 17; i++) {
		if (number_of(ip_hops_pick(&h, id, flow_hash(i, 1))) != 3)
			continue;
		counts[number_of(ip_hops_pick(&h, id, flow_hash(i, 2)))]++;
		flows++;
	}
	sigmas = off(counts, 16, flows);
	TAP_OK(flows > 7500 && flows < 8900, "a 16th of real flows takes a member: %u", flows);
	TAP_OK(is_dice(sigmas), "and is spread again by the next switch: %+.1f sigma", sigmas);
	ip_hops_close(&h);
}

/* A member leaves: by a change, and as the set without it. */
static void test_leave(uint32_t count)
{
	static uint32_t before[FLOWS / 16], moved[IP_HOPS_MEMBERS_MAX];
	static struct dsf_ip6 hops[IP_HOPS_MEMBERS_MAX];
	struct test_memory memory = TEST_MEMORY(memory);
	uint32_t leaver = count / 3, id, less, others = 0, left = 0, differ = 0, still = 0;
	struct dsf_ip6 gone = address(leaver);
	struct ip_hops h;
	double sigmas;

	ip_hops_init(&h, &memory.memory, NULL, NULL);
	addresses(hops, count);
	ip_hops_find(&h, hops, count, &id);
	memmove(&hops[leaver], &hops[leaver + 1], (count - leaver - 1) * sizeof(*hops));
	TAP_EQ(ip_hops_find(&h, hops, count - 1, &less), 0, "the set of %u without one", count);
	for (uint32_t i = 0; i < FLOWS / 16; i++)
		before[i] = number_of(ip_hops_pick(&h, id, dsf_mix(i + 1)));
	ip_hops_change(&h, &gone, false);
	TAP_EQ(ip_hops_get(&h, id)->usable, count - 1, "one can't be used");
	memset(moved, 0, sizeof(moved));
	for (uint32_t i = 0; i < FLOWS / 16; i++) {
		uint32_t now = number_of(ip_hops_pick(&h, id, dsf_mix(i + 1)));

		differ += now != number_of(ip_hops_pick(&h, less, dsf_mix(i + 1)));
		still += now == leaver;
		if (before[i] == leaver) {
			moved[now - (now > leaver)]++;
			left++;
		} else {
			others += now != before[i];
		}
	}
	TAP_EQ(others, 0, "of %u: no flow of another member moved", count);
	TAP_OK(left > 0 && still == 0, "all %u flows of the one that left have", left);
	TAP_EQ(differ, 0, "the set without it picks the same");
	sigmas = off(moved, count - 1, left);
	TAP_OK(count > 2 && is_dice(sigmas), "evenly over those that stay: %+.1f sigma", sigmas);
	ip_hops_change(&h, &gone, true);
	for (uint32_t i = 0, wrong = 0; i < FLOWS / 16; i++) {
		wrong += before[i] != number_of(ip_hops_pick(&h, id, dsf_mix(i + 1)));
		if (i == FLOWS / 16 - 1)
			TAP_EQ(wrong, 0, "back, it has its flows again");
	}
	ip_hops_close(&h);
	TAP_EQ(memory.live, 0, "nothing leaks");
}

/* Another switch, which learned the same sets in another order and lost some on the way. */
static void test_stateless(void)
{
	struct test_memory memory = TEST_MEMORY(memory);
	struct dsf_ip6 hops[64], one = address(9);
	struct ip_hops a, b;
	uint32_t id_a, id_b, other, wrong = 0;

	ip_hops_init(&a, &memory.memory, NULL, NULL);
	ip_hops_init(&b, &memory.memory, NULL, NULL);
	addresses(hops, 64);
	ip_hops_find(&a, hops, 64, &id_a);
	ip_hops_find(&b, hops, 32, &other);
	ip_hops_change(&b, &one, false);
	ip_hops_find(&b, hops, 64, &id_b);
	ip_hops_drop(&b, other);
	TAP_OK(id_a != id_b, "numbers of sets are a switch's own");
	ip_hops_change(&b, &one, true);
	for (uint32_t i = 0; i < 65536; i++)
		wrong += !dsf_ip6_equal(ip_hops_pick(&a, id_a, dsf_mix(i + 1)),
			ip_hops_pick(&b, id_b, dsf_mix(i + 1)));
	TAP_EQ(wrong, 0, "picks are everybody's");
	ip_hops_close(&a);
	ip_hops_close(&b);
	TAP_EQ(memory.live, 0, "nothing leaks");
}

static void test_shared(void)
{
	struct test_memory memory = TEST_MEMORY(memory);
	struct dsf_ip6 hops[64];
	uint32_t id, same, other;
	size_t live;
	struct ip_hops h;

	ip_hops_init(&h, &memory.memory, NULL, NULL);
	addresses(hops, 64);
	ip_hops_find(&h, hops, 64, &id);
	live = memory.live;
	TAP_OK(ip_hops_find(&h, hops, 64, &same) == 0 && same == id, "equal sets are one");
	TAP_EQ(memory.live, live, "without more memory");
	TAP_OK(ip_hops_find(&h, hops, 63, &other) == 0 && other != id, "others aren't");
	TAP_EQ(h.count, 2, "two sets");
	ip_hops_drop(&h, id);
	TAP_OK(h.count == 2 && ip_hops_pick(&h, id, 1) != NULL, "it stays for who still has it");
	ip_hops_drop(&h, id);
	TAP_EQ(h.count, 1, "and goes with the last");
	TAP_OK(ip_hops_find(&h, hops, 62, &same) == 0 && same == id, "its number is given again");
	ip_hops_drop(&h, other);
	ip_hops_drop(&h, same);
	TAP_EQ(h.count, 0, "no set");
	ip_hops_close(&h);
	TAP_EQ(memory.live, 0, "nothing leaks");
}

static void test_limits(void)
{
	static struct dsf_ip6 hops[IP_HOPS_MEMBERS_MAX + 1];
	struct test_memory memory = TEST_MEMORY(memory);
	uint32_t id, full = 0, seen[2] = { 0 };
	struct dsf_ip6 swap;
	struct ip_hops h;

	ip_hops_init(&h, &memory.memory, NULL, NULL);
	addresses(hops, IP_HOPS_MEMBERS_MAX + 1);
	TAP_EQ(ip_hops_find(&h, hops, 0, &id), -DSF_E_BADFIELD, "none");
	TAP_EQ(ip_hops_find(&h, hops, IP_HOPS_MEMBERS_MAX + 1, &id), -DSF_E_BADFIELD, "too many");
	swap = hops[1];
	hops[1] = hops[0];
	TAP_EQ(ip_hops_find(&h, hops, 2, &id), -DSF_E_BADFIELD, "one twice");
	hops[0] = swap;
	TAP_EQ(ip_hops_find(&h, hops, 2, &id), -DSF_E_BADFIELD, "falling");
	TAP_EQ(memory.blocks, 0, "nothing was made");
	addresses(hops, 2);
	TAP_EQ(ip_hops_find(&h, hops, IP_HOPS_MEMBERS_MAX, &id), 0, "the widest");
	for (uint32_t i = 0; i < 65536; i++) {
		uint32_t number = number_of(ip_hops_pick(&h, id, dsf_mix(i + 1)));

		seen[0] += number == 0;
		seen[1] += number == IP_HOPS_MEMBERS_MAX - 1;
	}
	TAP_OK(seen[0] > 0 && seen[1] > 0, "its first and last member have flows");
	for (uint32_t i = 0; i < IP_HOPS_SETS_MAX && full == 0; i++)
		full = ip_hops_find(&h, &hops[i], 1, &id) == 0 ? 0 : i + 1;
	TAP_EQ(full, IP_HOPS_SETS_MAX, "so many sets");
	TAP_EQ(ip_hops_find(&h, &hops[0], 2, &id), -DSF_E_FULL, "and no more");
	TAP_OK(ip_hops_find(&h, &hops[7], 1, &id) == 0, "but those that are there");
	TAP_EQ(number_of(ip_hops_pick(&h, id, 0)), 7, "a set of one, a hash of 0");
	ip_hops_close(&h);
	TAP_EQ(memory.live, 0, "nothing leaks");
}

static void test_memory_short(void)
{
	struct test_memory memory = TEST_MEMORY(memory);
	struct dsf_ip6 hops[64];
	struct ip_hops h;
	uint32_t id, failed = 0, changed = 0;

	ip_hops_init(&h, &memory.memory, NULL, NULL);
	addresses(hops, 64);
	/* So many sets that the table of sets has to grow on the way. */
	for (uint32_t i = 0; i < 40; i++) {
		for (unsigned long nth = 1; nth <= 2; nth++) {
			memory.fail_at = nth;
			if (ip_hops_find(&h, &hops[i], 24, &id) == 0)
				break;
			failed++;
			changed += h.count != i;
		}
		memory.fail_at = 0;
		if (h.count == i)
			ip_hops_find(&h, &hops[i], 24, &id);
	}
	TAP_OK(failed >= 43 && changed == 0, "no memory, %u times: nothing has changed", failed);
	TAP_EQ(h.count, 40, "all sets are there in the end");
	ip_hops_close(&h);
	TAP_EQ(memory.live, 0, "nothing leaks");
}

static bool is_even(void *user, const struct dsf_ip6 *a)
{
	++*(uint32_t *)user;
	return number_of(a) % 2 == 0;
}

static void test_usable(void)
{
	struct test_memory memory = TEST_MEMORY(memory);
	struct dsf_ip6 hops[8], stranger = address(77);
	uint32_t asked = 0, odd = 0, id, small;
	struct ip_hops h;

	ip_hops_init(&h, &memory.memory, is_even, &asked);
	addresses(hops, 8);
	TAP_OK(ip_hops_find(&h, hops, 8, &id) == 0 && asked == 8, "every member is asked about");
	TAP_OK(ip_hops_find(&h, hops, 8, &id) == 0 && asked == 8, "of a new set only");
	TAP_EQ(ip_hops_get(&h, id)->usable, 4, "half of them can be used");
	for (uint32_t i = 0; i < 1000; i++)
		odd += number_of(ip_hops_pick(&h, id, dsf_mix(i + 1))) % 2;
	TAP_EQ(odd, 0, "no flow takes another");
	ip_hops_find(&h, &hops[1], 1, &small);
	TAP_OK(ip_hops_pick(&h, small, 5) == NULL, "a set without one that can be used");
	ip_hops_change(&h, &hops[1], true);
	ip_hops_change(&h, &hops[1], true);
	TAP_EQ(number_of(ip_hops_pick(&h, small, 5)), 1, "until it can");
	TAP_EQ(ip_hops_get(&h, id)->usable, 5, "in every set, once");
	ip_hops_change(&h, &stranger, true);
	TAP_EQ(ip_hops_get(&h, id)->usable, 5, "news of who is in no set");
	for (uint32_t i = 0; i < 8; i++)
		ip_hops_change(&h, &hops[i], false);
	TAP_OK(ip_hops_get(&h, id)->usable == 0 && ip_hops_pick(&h, id, 5) == NULL, "nobody left");
	ip_hops_close(&h);
	TAP_EQ(memory.live, 0, "nothing leaks");
}

int main(void)
{
	static const uint32_t sizes[] = { 4, 16, 128, 2048 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		test_even(sizes[i]);
		test_leave(sizes[i]);
	}
	test_packets();
	test_stateless();
	test_shared();
	test_limits();
	test_memory_short();
	test_usable();
	return TAP_DONE();
}
