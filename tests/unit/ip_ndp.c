#include "ip/ndp.h"
#include <string.h>
#include "base/cursor.h"
#include "base/err.h"
#include "base/rng.h"
#include "tests/memory.h"
#include "tests/tap.h"

static const struct dsf_mac our_mac = { { 2, 0, 0, 0, 0, 1 } };
static const struct dsf_mac host_mac = { { 2, 0, 0, 0, 0, 2 } };
static const struct dsf_mac other_mac = { { 2, 0, 0, 0, 0, 3 } };
static const struct dsf_ip6 ours = { { 0xfd, 0x5f, [7] = 1, [15] = 1 } };
static const struct dsf_ip6 host = { { 0xfd, 0x5f, [7] = 1, [15] = 2 } };
static const struct dsf_ip6 elsewhere = { { 0xfd, 0x5f, [7] = 2, [15] = 2 } };

static struct test_memory memory = TEST_MEMORY(memory);
static uint8_t frame[IP_NDP_FRAME_SIZE];
static uint32_t frame_port;
static dsf_instant now;

static struct ip_ndp *make(void)
{
	struct ip_ndp_port ports[2] = {
		{ our_mac, ours, 64 },
		{ { { 2, 0, 0, 0, 0, 9 } }, { { 0xfd, 0x5f, [7] = 2, [15] = 1 } }, 64 },
	};
	struct ip_ndp_config config = {
		.memory = &memory.memory, .ports = ports, .ports_count = 2, .router = true
	};

	now = (dsf_instant){ 1000 };
	return ip_ndp_new(&config);
}

static size_t output(struct ip_ndp *n)
{
	return ip_ndp_output(n, &frame_port, frame, sizeof(frame), now);
}

/* Parses and hands in what is in frame. */
static int input(struct ip_ndp *n, uint32_t port, uint32_t size)
{
	struct ip_packet p;

	if (ip_packet_parse_frame(&p, frame, size, size) < 0 || !ip_ndp_wire_is(&p, frame, size))
		return -1;
	return ip_ndp_input(n, port, &p, frame, size, now);
}

static int advertise(
	struct ip_ndp *n, const struct dsf_ip6 *target, const struct dsf_mac *mac, uint32_t flags)
{
	ip_ndp_wire_write(frame, IP_NDP_ADVERTISE, flags, target, mac, target, &our_mac, &ours);
	return input(n, 0, IP_NDP_FRAME_SIZE);
}

static int solicit(struct ip_ndp *n, const struct dsf_ip6 *target, const struct dsf_ip6 *source,
	const struct dsf_mac *mac)
{
	struct dsf_ip6 group = ip_ndp_wire_group(target);
	struct dsf_mac group_mac = ip_ndp_wire_mac(&group);

	ip_ndp_wire_write(frame, IP_NDP_SOLICIT, 0, target, mac, source, &group_mac, &group);
	return input(n, 0, IP_NDP_FRAME_SIZE);
}

static void finish_checksum(uint32_t size)
{
	struct dsf_ip6 source, destination;

	memcpy(&source, frame + 22, 16);
	memcpy(&destination, frame + 38, 16);
	dsf_store_be16(frame + 56, 0);
	ip_checksum_store(frame + 56,
		ip_checksum_add(ip_checksum_pseudo(&source, &destination, size - 54, 58), 0,
			frame + 54, size - 54));
}

/* Runs deadlines and output until then; returns the solicitations that came out. */
static unsigned run_until(struct ip_ndp *n, uint64_t ns)
{
	unsigned sent = 0;

	for (;;) {
		while (output(n) > 0)
			sent++;
		if (ip_ndp_deadline(n).ns > ns)
			break;
		now = ip_ndp_deadline(n);
		ip_ndp_expire(n, now);
	}
	now.ns = ns;
	return sent;
}

static void test_target(void)
{
	struct ip_ndp *n = make();
	struct ip_ndp_change change;
	struct ip_packet p;
	struct ip_ndp_message m;

	TAP_EQ(ip_ndp_solicit(n, 0, &host, now), 0, "the lab's host is a target");
	TAP_EQ(ip_ndp_missing(n), 1, "and missing");
	TAP_OK(output(n) == 0 && dsf_time_is_never(ip_ndp_deadline(n)), "no carrier: nothing sent");
	ip_ndp_carrier(n, 0, true, now);
	TAP_EQ(output(n), IP_NDP_FRAME_SIZE, "carrier: solicited at once");
	TAP_OK(frame_port == 0 && ip_packet_parse_frame(&p, frame, 86, 86) == 0 &&
			ip_ndp_wire_read(&m, &p, frame, 86) == 0 && !m.advertisement &&
			dsf_ip6_equal(&m.target, &host) && m.has_mac &&
			memcmp(&m.mac, &our_mac, 6) == 0 && dsf_ip6_equal(&p.source, &ours) &&
			p.target_mac.bytes[0] == 0x33 && p.destination.bytes[0] == 0xff,
		"a valid multicast solicitation from us");
	TAP_EQ(output(n), 0, "once");
	TAP_EQ(run_until(n, now.ns + 2 * NS_PER_S + 1), 2, "again after each second");
	unsigned sent = run_until(n, now.ns + 3600 * NS_PER_S);
	TAP_OK(sent >= 100 && sent <= 130, "then slower, but for ever: %u in an hour", sent);
	TAP_OK(ip_ndp_lookup(n, 0, &host) == NULL && !ip_ndp_changed(n, &change), "no news yet");

	TAP_EQ(advertise(n, &host, &host_mac, IP_NDP_FLAG_SOLICITED | IP_NDP_FLAG_OVERRIDE), 0,
		"the host answers");
	TAP_OK(ip_ndp_lookup(n, 0, &host) != NULL &&
			memcmp(ip_ndp_lookup(n, 0, &host), &host_mac, 6) == 0,
		"its MAC is known");
	TAP_OK(ip_ndp_lookup(n, 1, &host) == NULL, "on its port alone");
	TAP_EQ(ip_ndp_missing(n), 0, "nothing missing");
	TAP_OK(ip_ndp_changed(n, &change) && change.reachable && change.port == 0 &&
			dsf_ip6_equal(&change.address, &host) &&
			memcmp(&change.mac, &host_mac, 6) == 0,
		"that is news");
	TAP_OK(!ip_ndp_changed(n, &change), "told once");
	TAP_EQ(ip_ndp_deadline(n).ns, now.ns + IP_NDP_REACHABLE_NS, "one timer stands");

	ip_ndp_carrier(n, 0, false, now);
	TAP_OK(ip_ndp_lookup(n, 0, &host) == NULL && ip_ndp_missing(n) == 1,
		"carrier loss forgets");
	TAP_OK(ip_ndp_changed(n, &change) && !change.reachable, "and is news");
	TAP_OK(dsf_time_is_never(ip_ndp_deadline(n)), "no timer stands");
	ip_ndp_free(n);
	TAP_EQ(memory.live, 0, "nothing leaks");
}

static void test_refresh(void)
{
	struct ip_ndp *n = make();
	struct ip_ndp_change change;
	struct ip_packet p;

	ip_ndp_carrier(n, 0, true, now);
	ip_ndp_solicit(n, 0, &host, now);
	advertise(n, &host, &host_mac, IP_NDP_FLAG_SOLICITED);
	while (ip_ndp_changed(n, &change) || output(n) > 0)
		;
	now = ip_ndp_deadline(n);
	ip_ndp_expire(n, now);
	TAP_OK(output(n) > 0 && ip_packet_parse_frame(&p, frame, 86, 86) == 0 &&
			dsf_ip6_equal(&p.destination, &host) &&
			memcmp(&p.target_mac, &host_mac, 6) == 0,
		"after the reachable time: a unicast probe");
	TAP_OK(ip_ndp_lookup(n, 0, &host) != NULL, "usable meanwhile");
	advertise(n, &host, &host_mac, IP_NDP_FLAG_SOLICITED);
	TAP_EQ(ip_ndp_deadline(n).ns, now.ns + IP_NDP_REACHABLE_NS, "the answer confirms");
	TAP_OK(!ip_ndp_changed(n, &change), "no news");
	advertise(n, &host, &host_mac, 0);
	now.ns += NS_PER_S;
	TAP_OK(solicit(n, &ours, &host, &host_mac) == 0 &&
			ip_ndp_deadline(n).ns == now.ns - NS_PER_S + IP_NDP_REACHABLE_NS,
		"what is no answer confirms nothing");
	output(n);
	TAP_EQ(run_until(n, now.ns + IP_NDP_REACHABLE_NS + 2 * NS_PER_S), 4,
		"silence: three probes, then multicast");
	TAP_OK(ip_ndp_lookup(n, 0, &host) == NULL && ip_ndp_missing(n) == 1, "lost");
	TAP_OK(ip_ndp_changed(n, &change) && !change.reachable, "and is news");
	ip_ndp_free(n);
}

static void test_moves(void)
{
	struct ip_ndp *n = make();
	struct ip_ndp_change change;

	ip_ndp_carrier(n, 0, true, now);
	advertise(n, &host, &host_mac, IP_NDP_FLAG_OVERRIDE);
	TAP_OK(ip_ndp_lookup(n, 0, &host) != NULL, "an unsolicited advertisement teaches");
	advertise(n, &host, &other_mac, IP_NDP_FLAG_OVERRIDE);
	TAP_OK(memcmp(ip_ndp_lookup(n, 0, &host), &other_mac, 6) == 0, "a moved MAC is taken over");
	TAP_OK(ip_ndp_changed(n, &change) && memcmp(&change.mac, &other_mac, 6) == 0 &&
			!ip_ndp_changed(n, &change),
		"only the last one is told");
	advertise(n, &host, &host_mac, 0);
	TAP_OK(memcmp(ip_ndp_lookup(n, 0, &host), &other_mac, 6) == 0,
		"not without the override flag");
	TAP_OK(output(n) > 0 && memcmp(frame, &other_mac, 6) == 0, "but the old one is asked");
	TAP_EQ(run_until(n, now.ns + 3 * NS_PER_S), 2, "three times");
	TAP_OK(ip_ndp_lookup(n, 0, &host) == NULL, "and given up, being no target");
	TAP_OK(ip_ndp_next(n, NULL) == NULL, "no entry is left to see");
	TAP_OK(ip_ndp_changed(n, &change) && !change.reachable, "which is news");
	advertise(n, &host, &host_mac, 0);
	ip_ndp_carrier(n, 0, false, now);
	TAP_OK(!ip_ndp_changed(n, &change), "come and gone between two looks is no news");
	ip_ndp_free(n);
	TAP_EQ(memory.live, 0, "nothing leaks");
}

static void test_answers(void)
{
	struct ip_ndp *n = make();
	struct dsf_ip6 link_local = dsf_ip6_link_local(&our_mac), nobody = { { 0 } };
	struct dsf_ip6 group = ip_ndp_wire_group(&ours);
	struct ip_ndp_message m;
	struct ip_packet p;

	ip_ndp_carrier(n, 0, true, now);
	TAP_EQ(solicit(n, &ours, &host, &host_mac), 0, "asked for our address");
	TAP_OK(output(n) > 0 && ip_packet_parse_frame(&p, frame, 86, 86) == 0 &&
			ip_ndp_wire_read(&m, &p, frame, 86) == 0 && m.advertisement &&
			m.flags == (IP_NDP_FLAG_ROUTER | IP_NDP_FLAG_SOLICITED |
					   IP_NDP_FLAG_OVERRIDE) &&
			memcmp(&m.mac, &our_mac, 6) == 0 && dsf_ip6_equal(&p.destination, &host) &&
			memcmp(&p.target_mac, &host_mac, 6) == 0,
		"we answer it by unicast");
	TAP_OK(ip_ndp_lookup(n, 0, &host) != NULL, "and know who asked");
	TAP_OK(solicit(n, &link_local, &host, &host_mac) == 0 && output(n) > 0,
		"our link-local address too");
	TAP_OK(solicit(n, &elsewhere, &host, &host_mac) == 0 && output(n) == 0, "no other");

	/* Duplicate address detection: no source, no option. */
	ip_ndp_wire_write(frame, IP_NDP_SOLICIT, 0, &ours, &host_mac, &nobody, &host_mac, &group);
	TAP_EQ(input(n, 0, 86), -DSF_E_BADFIELD, "DAD with an option is invalid");
	dsf_store_be16(frame + 18, 24);
	finish_checksum(78);
	TAP_EQ(input(n, 0, 78), 0, "DAD for our address");
	TAP_OK(output(n) > 0 && ip_packet_parse_frame(&p, frame, 86, 86) == 0 &&
			ip_ndp_wire_read(&m, &p, frame, 86) == 0 && m.advertisement &&
			(m.flags & IP_NDP_FLAG_SOLICITED) == 0 && p.destination.bytes[0] == 0xff &&
			p.destination.bytes[15] == 1,
		"is answered to all nodes");
	TAP_EQ(solicit(n, &ours, &ours, &host_mac), -DSF_E_DUPLICATE, "somebody uses our address");
	TAP_EQ(advertise(n, &ours, &host_mac, 0), -DSF_E_DUPLICATE, "or says so");
	TAP_EQ(ip_ndp_count(n)->duplicate, 2, "both counted");
	for (unsigned i = 0; i < IP_NDP_ANSWERS_MAX; i++)
		solicit(n, &ours, &host, &host_mac);
	TAP_EQ(solicit(n, &ours, &host, &host_mac), -DSF_E_FULL, "a flood of questions");
	unsigned answers = 0;
	while (output(n) > 0)
		answers++;
	TAP_EQ(answers, IP_NDP_ANSWERS_MAX, "is answered up to the limit");
	ip_ndp_free(n);
}

static void test_invalid(void)
{
	static const struct {
		const char *name;
		uint32_t at;
		uint8_t value;
		bool checksum; /* made right again */
		int want;
	} cases[] = {
		{ "hop limit 254", 21, 254, true, -DSF_E_BADFIELD },
		{ "code 1", 55, 1, true, -DSF_E_BADFIELD },
		{ "wrong checksum", 56, 0x12, false, -DSF_E_CHECKSUM },
		{ "multicast target", 62, 0xff, true, -DSF_E_BADFIELD },
		{ "option of length 0", 79, 0, true, -DSF_E_BADFIELD },
		{ "option past the end", 79, 2, true, -DSF_E_BADFIELD },
		{ "multicast MAC", 80, 0x01, true, -DSF_E_BADFIELD },
	};
	struct ip_ndp *n = make();

	TAP_EQ(advertise(n, &host, &host_mac, 0), -DSF_E_STATE, "no carrier");
	ip_ndp_carrier(n, 0, true, now);
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		ip_ndp_wire_write(
			frame, IP_NDP_ADVERTISE, 0, &host, &host_mac, &host, &our_mac, &ours);
		frame[cases[i].at] = cases[i].value;
		if (cases[i].checksum)
			finish_checksum(86);
		TAP_EQ(input(n, 0, 86), cases[i].want, "%s", cases[i].name);
	}
	ip_ndp_wire_write(frame, IP_NDP_ADVERTISE, 0, &host, &host_mac, &host, &our_mac, &ours);
	dsf_store_be16(frame + 18, 23);
	finish_checksum(77);
	TAP_EQ(input(n, 0, 77), -DSF_E_TRUNCATED, "23 bytes");
	ip_ndp_wire_write(frame, IP_NDP_ADVERTISE, IP_NDP_FLAG_SOLICITED, &host, &host_mac, &host,
		&our_mac, &(struct dsf_ip6){ { 0xff, 2, [15] = 1 } });
	TAP_EQ(input(n, 0, 86), -DSF_E_BADFIELD, "solicited multicast advertisement");
	TAP_EQ(ip_ndp_count(n)->invalid, 9, "all counted");
	TAP_EQ(advertise(n, &elsewhere, &host_mac, 0), -DSF_E_BADFIELD,
		"address of another subnet");
	TAP_OK(ip_ndp_next(n, NULL) == NULL, "nothing was learned");
	TAP_EQ(ip_ndp_solicit(n, 0, &elsewhere, now), -DSF_E_BADFIELD, "nor can it be a target");
	TAP_EQ(ip_ndp_solicit(n, 0, &ours, now), -DSF_E_BADFIELD, "nor can our own address");
	ip_ndp_free(n);
}

static void test_limits(void)
{
	struct ip_ndp *n = make();
	struct dsf_ip6 address = host;
	struct ip_ndp_change change;
	unsigned entries = 0;

	ip_ndp_carrier(n, 0, true, now);
	TAP_EQ(ip_ndp_resolve(n, 1, &elsewhere, now), -DSF_E_STATE, "no carrier, no question");
	for (unsigned i = 0; i < IP_NDP_INCOMPLETE_MAX; i++) {
		address.bytes[14] = (uint8_t)(i + 1);
		if (ip_ndp_resolve(n, 0, &address, now) != -DSF_E_NONEIGHBOR)
			TAP_EQ(i, -1, "resolved");
	}
	TAP_EQ(ip_ndp_resolve(n, 0, &address, now), -DSF_E_NONEIGHBOR, "an old question again");
	address.bytes[13] = 1;
	TAP_EQ(ip_ndp_resolve(n, 0, &address, now), -DSF_E_FULL, "a scan comes to its limit");
	TAP_EQ(advertise(n, &host, &host_mac, 0), 0, "who speaks is still learned");
	TAP_EQ(run_until(n, now.ns + 2 * NS_PER_S + 1), 3 * IP_NDP_INCOMPLETE_MAX,
		"three tries each");
	run_until(n, now.ns + NS_PER_S);
	TAP_EQ(ip_ndp_resolve(n, 0, &address, now), -DSF_E_NONEIGHBOR, "then there is room again");
	for (unsigned i = 0; i < 2 * IP_NDP_ENTRIES_MAX; i++) {
		address.bytes[12] = 1;
		dsf_store_be16(&address.bytes[13], (uint16_t)i);
		entries += advertise(n, &address, &host_mac, 0) == 0;
	}
	TAP_EQ(entries, IP_NDP_ENTRIES_MAX - 2, "a port has so many entries and no more");
	ip_ndp_carrier(n, 0, false, now);
	while (ip_ndp_changed(n, &change))
		;
	TAP_OK(ip_ndp_next(n, NULL) == NULL, "all go with the carrier");
	ip_ndp_free(n);
	TAP_EQ(memory.live, 0, "nothing leaks");
}

/* Every allocation in turn fails: errors, never a crash, never a leak. */
static void test_no_memory(void)
{
	struct ip_ndp_change change;
	unsigned failed = 0;

	for (unsigned long fail_at = 1; fail_at < 200; fail_at++) {
		struct dsf_ip6 address = host;
		struct ip_ndp *n;

		memory.fail_at = fail_at;
		memory.failed = false;
		n = make();
		if (n == NULL) {
			failed++;
			continue;
		}
		ip_ndp_carrier(n, 0, true, now);
		for (unsigned i = 0; i < 60; i++) {
			address.bytes[15] = (uint8_t)(2 + i);
			if (i % 3 == 0)
				ip_ndp_solicit(n, 0, &address, now);
			else if (i % 3 == 1)
				ip_ndp_resolve(n, 0, &address, now);
			else
				advertise(n, &address, &host_mac, 0);
		}
		while (ip_ndp_changed(n, &change))
			;
		failed += memory.failed;
		ip_ndp_free(n);
		if (memory.live != 0)
			TAP_EQ(memory.live, 0, "leak when allocation %lu fails", fail_at);
	}
	memory.fail_at = 0;
	TAP_OK(failed > 5 && memory.live == 0, "%u allocations fail, one at a time", failed);
}

int main(void)
{
	test_target();
	test_refresh();
	test_moves();
	test_answers();
	test_invalid();
	test_limits();
	test_no_memory();
	return TAP_DONE();
}
