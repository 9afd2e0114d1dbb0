#include <arpa/inet.h>
#include "base/address.h"
#include "base/err.h"
#include "base/rng.h"
#include "tests/tap.h"

static const char *const good[][2] = {
	/* text, RFC 5952 form */
	{ "::", "::" },
	{ "::1", "::1" },
	{ "1::", "1::" },
	{ "0:0:0:0:0:0:0:0", "::" },
	{ "0:0:0:0:0:0:0:1", "::1" },
	{ "fd5f:0001:0200:0300::2", "fd5f:1:200:300::2" },
	{ "2001:DB8::A", "2001:db8::a" },
	{ "2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1" },    /* first of two equal runs */
	{ "2001:0:0:1:0:0:0:1", "2001:0:0:1::1" },          /* the longer run */
	{ "2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1" }, /* one group alone stays */
	{ "1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0" },
	{ "::2:3:4:5:6:7:8", "0:2:3:4:5:6:7:8" },
	{ "1:0:0:4:5:6:7:8", "1::4:5:6:7:8" },
	{ "1:2:3:4:5:6:0:0", "1:2:3:4:5:6::" },
	{ "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff" },
};

static const char *const bad[] = { "", ":", ":::", ":1", "1:", "1", "1:2", "1:::2",
	"::1::", "1::2::3", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9",
	"1:2:3:4:5:6:7:8::", "::1:2:3:4:5:6:7:8", "1:2:3:4::5:6:7:8",
	"12345::", "g::", "fe80::1%eth0", "::/64", "::1/64", " ::1", "::1 ", "::ffff:192.0.2.1",
	"1.2.3.4", "0x1::", "-1::", "1: :2", "::1\n", "[::1]" };

static void parse_good(void)
{
	char text[DSF_IP6_TEXT_MAX];
	struct dsf_ip6 a, theirs;

	for (unsigned i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		memset(&a, 0xaa, sizeof(a));
		TAP_EQ(dsf_ip6_parse(good[i][0], &a), 0, "%s is an address", good[i][0]);
		TAP_OK(inet_pton(AF_INET6, good[i][0], &theirs) == 1 && dsf_ip6_equal(&a, &theirs),
			"%s: the same as inet_pton", good[i][0]);
		TAP_OK(strcmp(dsf_ip6_text(&a, text), good[i][1]) == 0,
			"%s: written as %s (got %s)", good[i][0], good[i][1], text);
	}
}

static void parse_bad(void)
{
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct dsf_ip6 a, before;

		memset(&a, 0x5c, sizeof(a));
		before = a;
		TAP_EQ(dsf_ip6_parse(bad[i], &a), -DSF_E_BADFIELD, "'%s' is no address", bad[i]);
		TAP_OK(dsf_ip6_equal(&a, &before), "'%s': nothing was written", bad[i]);
	}
}

/* Addresses with many zero groups, against libc in both directions. */
static void round_trip(void)
{
	struct dsf_rng rng;
	unsigned wrong = 0;

	dsf_rng_init(&rng, 1);
	for (int i = 0; i < 20000; i++) {
		struct dsf_ip6 a = { { 0 } }, back;
		char text[DSF_IP6_TEXT_MAX], theirs[INET6_ADDRSTRLEN];

		for (int group = 0; group < 8; group++) {
			if (dsf_rng_below(&rng, 2) == 0) {
				a.bytes[2 * group] = (uint8_t)dsf_rng_below(&rng, 256) &
						     (uint8_t)dsf_rng_below(&rng, 256);
				a.bytes[2 * group + 1] = (uint8_t)dsf_rng_below(&rng, 256);
			}
		}
		dsf_ip6_text(&a, text);
		inet_ntop(AF_INET6, &a, theirs, sizeof(theirs));
		if (dsf_ip6_parse(text, &back) != 0 || !dsf_ip6_equal(&a, &back))
			wrong++;
		/* libc writes ::a.b.c.d for what looks like an embedded IPv4 address; we never do.
		 */
		if (strchr(theirs, '.') == NULL && strcmp(text, theirs) != 0)
			wrong++;
	}
	TAP_EQ(wrong, 0, "20000 addresses survive text and agree with inet_ntop");
}

static void kinds(void)
{
	static const struct {
		const char *text;
		bool multicast, link_local;
	} cases[] = {
		{ "ff02::1", true, false },
		{ "ff00::", true, false },
		{ "fe80::", false, true },
		{ "febf:ffff::1", false, true },
		{ "fec0::1", false, false },
		{ "fe7f::1", false, false },
		{ "fd5f::1", false, false },
		{ "::", false, false },
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct dsf_ip6 a;

		TAP_EQ(dsf_ip6_parse(cases[i].text, &a), 0, "%s parses", cases[i].text);
		TAP_EQ(dsf_ip6_is_multicast(&a), cases[i].multicast, "%s: multicast",
			cases[i].text);
		TAP_EQ(dsf_ip6_is_link_local(&a), cases[i].link_local, "%s: link-local",
			cases[i].text);
	}
}

static void macs(void)
{
	/* RFC 4291 appendix A: the universal/local bit is inverted, ff:fe goes into the middle. */
	struct dsf_mac mac = { { 0x00, 0x34, 0x56, 0x78, 0x9a, 0xbc } };
	struct dsf_mac local = { { 0x02, 0x00, 0xff, 0x01, 0x02, 0x03 } };
	char text[DSF_IP6_TEXT_MAX], mac_text[DSF_MAC_TEXT_MAX];
	struct dsf_ip6 a = dsf_ip6_link_local(&mac);

	TAP_OK(strcmp(dsf_ip6_text(&a, text), "fe80::234:56ff:fe78:9abc") == 0, "link-local: %s",
		text);
	a = dsf_ip6_link_local(&local);
	TAP_OK(strcmp(dsf_ip6_text(&a, text), "fe80::ffff:fe01:203") == 0,
		"link-local of a local MAC: %s", text);
	TAP_EQ(a.bytes[8], 0x00, "local bit inverted");
	TAP_EQ(a.bytes[11] << 8 | a.bytes[12], 0xfffe, "ff:fe in the middle");
	TAP_OK(strcmp(dsf_mac_text(&local, mac_text), "02:00:ff:01:02:03") == 0, "MAC text: %s",
		mac_text);
	TAP_EQ(strlen(mac_text) + 1, DSF_MAC_TEXT_MAX, "MAC text fills its buffer");
}

int main(void)
{
	struct dsf_ip6 all_ones;
	char text[DSF_IP6_TEXT_MAX];

	parse_good();
	parse_bad();
	round_trip();
	kinds();
	macs();
	memset(&all_ones, 0xff, sizeof(all_ones));
	TAP_OK(strlen(dsf_ip6_text(&all_ones, text)) < DSF_IP6_TEXT_MAX, "the longest text fits");
	return TAP_DONE();
}
