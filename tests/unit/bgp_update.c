/*
 * UPDATE: what RFC 7606 makes of every wrong attribute, AS numbers of two octets, and that what is
 * written is read back.
 */
#include <stdlib.h>
#include <string.h>
#include "base/err.h"
#include "bgp/update.h"
#include "tests/hex.h"
#include "tests/tap.h"

static uint8_t scratch[2 * BGP_MESSAGE_MAX];

static struct bgp_update_rules rules(bool external)
{
	return (struct bgp_update_rules){ .external = external,
		.as4 = true,
		.as = 65001,
		.scratch = scratch,
		.scratch_size = sizeof(scratch) };
}

/* The body of an UPDATE with these attributes, no IPv4. */
static size_t body_of(const char *attributes, uint8_t *to)
{
	size_t size = from_hex(attributes, to + 4);

	dsf_store_be16(to, 0);
	dsf_store_be16(to + 2, (uint16_t)size);
	return size + 4;
}

#define ORIGIN  "40 01 01 00 "
#define PATH    "40 02 06 02 01 0000fde9 "
#define REACH   "80 0e 1a 0002 01 10 20010db8000000000000000000000001 00 20 20010db8 "
#define GOOD    ORIGIN PATH REACH
#define PREF    "40 05 04 00000064 "
#define UNREACH "80 0f 08 0002 01 20 20010db9 "

/* want: 0 taken, 1 treated as withdrawal, otherwise the subcode of the NOTIFICATION negated */
static const struct {
	const char *name, *hex;
	bool internal;
	int want;
	uint32_t discarded;
} rows[] = {
	{ "as it should be", GOOD, false, 0, 0 },
	{ "from iBGP", GOOD PREF, true, 0, 0 },
	{ "32-octet next hop",
		ORIGIN PATH "80 0e 2a 0002 01 20 20010db8000000000000000000000001"
			    "fe800000000000000000000000000001 00 20 20010db8",
		false, 0, 0 },
	{ "extended length where short would do", "50 01 0001 00" PATH REACH, false, 0, 0 },
	{ "ORIGIN 7", "40 01 01 07" PATH REACH, false, 1, 0 },
	{ "ORIGIN of two octets", "40 01 02 0000" PATH REACH, false, 1, 0 },
	{ "ORIGIN empty", "40 01 00" PATH REACH, false, 1, 0 },
	{ "ORIGIN optional", "c0 01 01 00" PATH REACH, false, 1, 0 },
	{ "ORIGIN twice", ORIGIN "40 01 01 02" PATH REACH, false, 0, 1 },
	{ "no ORIGIN", PATH REACH, false, 1, 0 },
	{ "no AS_PATH", ORIGIN REACH, false, 1, 0 },
	{ "no LOCAL_PREF from iBGP", GOOD, true, 1, 0 },
	{ "LOCAL_PREF from eBGP", GOOD PREF, false, 0, 1 },
	{ "LOCAL_PREF of three octets from iBGP", GOOD "40 05 03 000000", true, 1, 0 },
	{ "LOCAL_PREF of three octets from eBGP", GOOD "40 05 03 000000", false, 0, 1 },
	{ "segment overruns", ORIGIN "40 02 06 02 02 0000fde9" REACH, false, 1, 0 },
	{ "segment of length 0", ORIGIN "40 02 08 02 01 0000fde9 02 00" REACH, false, 1, 0 },
	{ "segment type 9", ORIGIN "40 02 06 09 01 0000fde9" REACH, false, 1, 0 },
	{ "half a segment header", ORIGIN "40 02 07 02 01 0000fde9 02" REACH, false, 1, 0 },
	{ "AS 0 in the path", ORIGIN "40 02 0a 02 02 0000fde9 00000000" REACH, false, 1, 0 },
	{ "path of another AS first", ORIGIN "40 02 06 02 01 0000fdea" REACH, false, 1, 0 },
	{ "empty path from eBGP", ORIGIN "40 02 00" REACH, false, 1, 0 },
	{ "empty path from iBGP", ORIGIN "40 02 00" REACH PREF, true, 0, 0 },
	{ "path begins with a set", ORIGIN "40 02 06 01 01 0000fde9" REACH, false, 1, 0 },
	{ "NEXT_HOP is read over", GOOD "40 03 04 00000000", false, 0, 0 },
	{ "NEXT_HOP of five octets is too", GOOD "40 03 05 0000000000", false, 0, 0 },
	{ "MED of five octets", GOOD "80 04 05 0000000000", false, 1, 0 },
	{ "MED transitive", GOOD "c0 04 04 00000000", false, 1, 0 },
	{ "ATOMIC_AGGREGATE of one octet", GOOD "40 06 01 00", false, 0, 1 },
	{ "ATOMIC_AGGREGATE optional", GOOD "c0 06 00", false, 1, 0 },
	{ "AGGREGATOR of six octets", GOOD "c0 07 06 000000000000", false, 0, 1 },
	{ "AGGREGATOR with AS 0", GOOD "c0 07 08 0000000001020304", false, 0, 1 },
	{ "COMMUNITIES of five octets", GOOD "c0 08 05 0000000000", false, 1, 0 },
	{ "COMMUNITIES empty", GOOD "c0 08 00", false, 1, 0 },
	{ "COMMUNITIES partial", GOOD "e0 08 04 00010002", false, 0, 0 },
	{ "ORIGINATOR_ID from eBGP", GOOD "80 09 04 01010101", false, 0, 1 },
	{ "ORIGINATOR_ID of three octets from iBGP", GOOD PREF "80 09 03 010101", true, 1, 0 },
	{ "CLUSTER_LIST of three octets from iBGP", GOOD PREF "80 0a 03 010101", true, 1, 0 },
	{ "extended communities of seven", GOOD "c0 10 07 00000000000000", false, 1, 0 },
	{ "large communities of eight", GOOD "c0 20 08 0000000000000000", false, 1, 0 },
	{ "large communities", GOOD "c0 20 0c 000000010000000200000003", false, 0, 0 },
	{ "AS4_PATH from a new speaker", GOOD "c0 11 06 02 01 0000fde9", false, 0, 1 },
	{ "unknown optional transitive", GOOD "c0 f0 02 abcd", false, 0, 0 },
	{ "unknown optional", GOOD "80 f0 02 abcd", false, 0, 0 },
	{ "unknown well-known", GOOD "40 f0 02 abcd", false, -2, 0 },
	{ "next hop of 15 octets",
		ORIGIN PATH "80 0e 19 0002 01 0f 20010db80000000000000000000000 00 20 20010db8",
		false, -9, 0 },
	{ "next hop overruns", ORIGIN PATH "80 0e 06 0002 01 10 2001", false, -9, 0 },
	{ "next hop ::",
		ORIGIN PATH "80 0e 1a 0002 01 10 00000000000000000000000000000000 00 20 20010db8",
		false, 1, 0 },
	{ "next hop link-local only",
		ORIGIN PATH "80 0e 1a 0002 01 10 fe800000000000000000000000000001 00 20 20010db8",
		false, 1, 0 },
	{ "prefix of 129 bits",
		ORIGIN PATH "80 0e 1a 0002 01 10 20010db8000000000000000000000001 00 81 20010db8",
		false, -9, 0 },
	{ "prefix overruns",
		ORIGIN PATH "80 0e 19 0002 01 10 20010db8000000000000000000000001 00 20 20010d",
		false, -9, 0 },
	{ "MP_REACH twice", GOOD REACH, false, -1, 0 },
	{ "MP_REACH transitive",
		ORIGIN PATH "c0 0e 1a 0002 01 10 20010db8000000000000000000000001 00 20 20010db8",
		false, 1, 0 },
	{ "withdrawal alone", UNREACH, false, 0, 0 },
	{ "withdrawal that overruns", "80 0f 07 0002 01 20 20010d", false, -9, 0 },
	{ "withdrawal beside a wrong attribute, nothing announced", UNREACH "40 01 01 07", false,
		-6, 0 },
	{ "withdrawal alone, flagged transitive", "c0 0f 08 0002 01 20 20010db9", false, 1, 0 },
	{ "withdrawal beside one that is only left out", UNREACH "c0 07 06 000000000000", false, 0,
		1 },
	{ "MP_REACH without a prefix beside a wrong attribute",
		"80 0e 15 0002 01 10 20010db8000000000000000000000001 00 40 01 01 07", false, -6,
		0 },
	{ "MP_REACH of another family without a prefix, too",
		"80 0e 09 0001 80 04 01020304 00 40 01 01 07", false, -6, 0 },
	{ "MP_REACH overruns", ORIGIN PATH "80 0e 30 0002 01 10 20010db8", false, -1, 0 },
	{ "MP_UNREACH overruns, behind prefixes", GOOD "80 0f 30 0002 01", false, -1, 0 },
	{ "withdrawal beside an attribute that overruns", UNREACH "40 01 05 07", false, -1, 0 },
	{ "End-of-RIB", "80 0f 03 0002 01", false, 0, 0 },
	{ "attribute overruns, after the prefixes", GOOD "c0 08 09 0000", false, 1, 0 },
	{ "one octet left over, after the prefixes", GOOD "c0", false, 1, 0 },
	{ "prefixes of another family", ORIGIN PATH "80 0e 0e 0001 80 04 01020304 00 20 20010db8",
		false, 0, 0 },
};

static void test_rows(void)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint8_t body[512];
		size_t size;
		struct bgp_update_rules r = rules(!rows[i].internal);
		struct bgp_notification n = { 0 };
		struct bgp_update u;
		int err;

		size = body_of(rows[i].hex, body);
		err = bgp_update_decode(body, size, &r, &u, &n);
		if (rows[i].want < 0) {
			TAP_OK(err == -DSF_E_PEER && n.code == BGP_ERR_UPDATE &&
					n.subcode == -rows[i].want,
				"%s: NOTIFICATION %u/%u", rows[i].name, n.code, n.subcode);
			continue;
		}
		TAP_OK(err == 0 && u.withdraw == (rows[i].want == 1), "%s: %s", rows[i].name,
			rows[i].want == 1 ? "withdrawn" : "taken");
		TAP_EQ(u.discarded, rows[i].discarded, "%s: discarded", rows[i].name);
	}
}

static void test_frame(void)
{
	static const struct {
		const char *name, *hex;
		int subcode;
	} frames[] = {
		{ "attributes overrun", "0000 01f4 00", BGP_UPDATE_LIST },
		{ "withdrawn overrun", "01f4 0000", BGP_UPDATE_LIST },
		{ "no length of attributes", "0000 00", BGP_UPDATE_LIST },
		{ "IPv4 prefix of 33 bits", "0000 0000 21 0102030405", BGP_UPDATE_NETWORK },
		{ "IPv4 prefix overruns", "0000 0000 20 0102", BGP_UPDATE_NETWORK },
		{ "IPv4 withdrawal overruns", "0002 2001 0000", BGP_UPDATE_NETWORK },
		{ "IPv4 prefix", "0000 0000 08 0a", 0 },
		{ "IPv4 End-of-RIB", "0000 0000", 0 },
	};
	struct bgp_update_rules r = rules(true);
	struct bgp_update u;

	for (size_t i = 0; i < sizeof(frames) / sizeof(frames[0]); i++) {
		struct bgp_notification n = { 0 };
		uint8_t body[64];
		size_t size = from_hex(frames[i].hex, body);
		int err = bgp_update_decode(body, size, &r, &u, &n);

		TAP_OK((err == 0) == (frames[i].subcode == 0) && n.subcode == frames[i].subcode,
			"%s", frames[i].name);
		if (err == 0)
			TAP_OK(!u.end_of_rib && u.reach.size == 0, "%s: nothing of ours",
				frames[i].name);
	}
}

static void test_content(void)
{
	struct bgp_update_rules r = rules(true);
	struct bgp_notification n;
	struct bgp_update u;
	struct bgp_nlri nlri;
	struct dsf_cursor in;
	const struct bgp_attribute *unknown;
	uint8_t body[512], canonical[512];
	struct dsf_writer w = { canonical, canonical + sizeof(canonical), false };
	struct bgp_attributes back;
	size_t size = body_of("c0 f0 02 abcd 80 04 04 0000002a" REACH PATH ORIGIN UNREACH, body);

	TAP_EQ(bgp_update_decode(body, size, &r, &u, &n), 0, "attributes in any order");
	TAP_EQ(bgp_attributes_get32(&u.attributes, BGP_MED, 7), 42, "MED");
	TAP_EQ(bgp_attributes_get32(&u.attributes, BGP_LOCAL_PREF, 7), 7, "no LOCAL_PREF");
	unknown = bgp_attributes_find(&u.attributes, 0xf0);
	TAP_OK(unknown != NULL && unknown->flags == 0xe0 && unknown->size == 2,
		"unknown transitive attribute is kept and marked partial");
	in = bgp_span_read(u.unreach);
	TAP_OK(bgp_nlri_decode(&in, false, &nlri) && nlri.key.length == 32 &&
			nlri.key.address.bytes[3] == 0xb9 && !bgp_nlri_decode(&in, false, &nlri),
		"what is withdrawn");
	bgp_attributes_write(&u.attributes, &w);
	bgp_attributes_read(&back, canonical, (size_t)(w.at - canonical));
	TAP_OK(back.count == 4 && back.list[0].type == 1 && back.list[1].type == 2 &&
			back.list[2].type == 4 && back.list[3].type == 0xf0,
		"the canonical form is in order of type");
	size = body_of("80 0f 03 0002 01", body);
	TAP_OK(bgp_update_decode(body, size, &r, &u, &n) == 0 && u.end_of_rib, "End-of-RIB");
}

static void test_nlri(void)
{
	static const uint8_t bytes[] = { 0, 0, 0, 7, 13, 0x20, 0xff, 0, 0, 0, 8, 0 };
	struct dsf_cursor in = { bytes, bytes + sizeof(bytes), false };
	struct bgp_nlri nlri;

	TAP_OK(bgp_nlri_decode(&in, true, &nlri), "a prefix with path id");
	TAP_OK(nlri.path_id == 7 && nlri.key.length == 13 && nlri.key.address.bytes[0] == 0x20 &&
			nlri.key.address.bytes[1] == 0xf8,
		"bits behind the length are cleared");
	TAP_OK(bgp_nlri_decode(&in, true, &nlri) && nlri.path_id == 8 && nlri.key.length == 0,
		"the default route");
	TAP_OK(!bgp_nlri_decode(&in, true, &nlri) && !in.failed, "the end");
}

/* Path and aggregator that a speaker of two octets sent: hex of the result in four. */
static void test_widen(void)
{
	static const struct {
		const char *name, *hex, *path;
		uint32_t aggregator;
	} table[] = {
		{ "path alone", "40 02 06 02 02 fde9 0001", "02 02 0000fde9 00000001", 0 },
		{ "with AS4_PATH", "40 02 06 02 02 fde9 5ba0 c0 11 06 02 01 fa56ea01",
			"02 01 0000fde9 02 01 fa56ea01", 0 },
		{ "AS4_PATH too long is ignored",
			"40 02 04 02 01 fde9 c0 11 0a 02 02 fa56ea01 fa56ea02", "02 01 0000fde9",
			0 },
		{ "AS4_PATH that is wrong is left out",
			"40 02 06 02 02 fde9 5ba0 c0 11 05 02 01 fa56ea", "02 02 0000fde9 00005ba0",
			0 },
		{ "AGGREGATOR", "40 02 04 02 01 fde9 c0 07 06 fde9 01020304", "02 01 0000fde9",
			65001 },
		{ "AS4_AGGREGATOR",
			"40 02 06 02 02 fde9 5ba0 c0 07 06 5ba0 01020304 c0 11 06 02 01 fa56ea01"
			"c0 12 08 fa56ea01 01020304",
			"02 01 0000fde9 02 01 fa56ea01", 4200000001 },
		{ "AS4_AGGREGATOR that is out of date takes AS4_PATH with it",
			"40 02 06 02 02 fde9 5ba0 c0 07 06 fde9 01020304 c0 11 06 02 01 fa56ea01"
			"c0 12 08 fa56ea01 01020304",
			"02 02 0000fde9 00005ba0", 65001 },
		{ "a set counts once",
			"40 02 0a 02 01 fde9 01 02 0001 0002 c0 11 06 02 01 fa56ea01",
			"02 01 0000fde9 02 01 fa56ea01", 0 },
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct bgp_update_rules r = rules(true);
		struct bgp_notification n;
		struct bgp_update u;
		const struct bgp_attribute *path, *aggregator;
		uint8_t body[512], want[64];
		char hex[512];
		size_t size, want_size = from_hex(table[i].path, want);
		int err;

		snprintf(hex, sizeof(hex), ORIGIN REACH "%s", table[i].hex);
		r.as4 = false;
		size = body_of(hex, body);
		err = bgp_update_decode(body, size, &r, &u, &n);
		path = bgp_attributes_find(&u.attributes, BGP_AS_PATH);
		aggregator = bgp_attributes_find(&u.attributes, BGP_AGGREGATOR);
		TAP_OK(err == 0 && !u.withdraw && path != NULL && path->size == want_size &&
				memcmp(path->bytes, want, want_size) == 0,
			"two octets: %s", table[i].name);
		TAP_EQ(aggregator == NULL ? 0 : dsf_load_be32(bgp_attribute_bytes(aggregator)),
			table[i].aggregator, "two octets: %s: aggregator", table[i].name);
		TAP_OK(bgp_attributes_find(&u.attributes, BGP_AS4_PATH) == NULL &&
				bgp_attributes_find(&u.attributes, BGP_AS4_AGGREGATOR) == NULL,
			"two octets: %s: the AS4 attributes are gone", table[i].name);
	}
}

/* Writes, narrows, reads again. */
static void test_narrow(void)
{
	struct bgp_update_rules r = rules(true);
	struct bgp_attributes a = { 0 };
	static const uint8_t origin[1], path[] = { 2, 2, 0, 0, 0xfd, 0xe9, 0xfa, 0x56, 0xea, 1 };
	static const uint8_t aggregator[] = { 0xfa, 0x56, 0xea, 1, 1, 2, 3, 4 };
	uint8_t canonical[256], narrow[512], message[BGP_MESSAGE_MAX], again[256];
	struct dsf_writer w = { canonical, canonical + sizeof(canonical), false };
	struct bgp_update_writer u;
	struct bgp_update back;
	struct bgp_notification n;
	struct bgp_nlri nlri = { .key = { .length = 48 } };
	size_t size, message_size, canonical_size;

	bgp_attributes_set(&a, BGP_ORIGIN, 0x40, origin, 1);
	bgp_attributes_set(&a, BGP_AS_PATH, 0x40, path, sizeof(path));
	bgp_attributes_set(&a, BGP_AGGREGATOR, 0xc0, aggregator, sizeof(aggregator));
	bgp_attributes_write(&a, &w);
	canonical_size = (size_t)(w.at - canonical);
	size = bgp_update_as2(narrow, sizeof(narrow), canonical, canonical_size);
	TAP_OK(size > 0, "narrowed");
	TAP_OK(bgp_update_reach(&u, message, sizeof(message), false,
		       &(struct dsf_ip6){ { 0x20, 1 } }, narrow, size),
		"begun");
	TAP_OK(bgp_update_add(&u, &nlri), "a prefix");
	message_size = bgp_update_finish(&u);
	r.as4 = false;
	TAP_EQ(bgp_update_decode(message + 19, message_size - 19, &r, &back, &n), 0, "read");
	w = (struct dsf_writer){ again, again + sizeof(again), false };
	bgp_attributes_write(&back.attributes, &w);
	TAP_OK((size_t)(w.at - again) == canonical_size &&
			memcmp(again, canonical, canonical_size) == 0,
		"all is as it was");
	TAP_EQ(bgp_update_as2(narrow, 20, canonical, canonical_size), 0, "no room is told");
}

static void test_packing(void)
{
	static const uint8_t attributes[] = { 0x40, 1, 1, 0, 0x40, 2, 0 };
	uint8_t message[BGP_MESSAGE_MAX];
	struct bgp_update_rules r = rules(false);
	struct bgp_notification n;
	struct bgp_update_writer u;
	struct bgp_update back;
	struct bgp_header h;
	struct bgp_nlri nlri = { .key = { .length = 64 } };
	struct dsf_cursor in;
	uint32_t put = 0, got = 0;
	size_t size;

	TAP_OK(bgp_update_reach(&u, message, sizeof(message), true, &(struct dsf_ip6){ { 0x20 } },
		       attributes, sizeof(attributes)),
		"begun");
	for (nlri.path_id = 1; bgp_update_add(&u, &nlri); nlri.path_id++)
		put++;
	size = bgp_update_finish(&u);
	TAP_OK(size <= BGP_MESSAGE_MAX && size > BGP_MESSAGE_MAX - 13, "full: %zu", size);
	TAP_EQ(bgp_wire_header_decode(message, size, false, &h, &n), 1, "header");
	r.add_path = true;
	TAP_EQ(bgp_update_decode(message + 19, size - 19, &r, &back, &n), 0, "read");
	in = bgp_span_read(back.reach);
	while (bgp_nlri_decode(&in, true, &nlri))
		got += nlri.path_id == got + 1;
	TAP_EQ(got, put, "every prefix comes back");
	bgp_update_unreach(&u, message, sizeof(message), true);
	size = bgp_update_finish(&u);
	TAP_OK(size == 30 && bgp_update_decode(message + 19, size - 19, &r, &back, &n) == 0 &&
			back.end_of_rib,
		"a withdrawal of nothing is End-of-RIB");
	TAP_OK(!bgp_update_reach(&u, message, 60, true, &(struct dsf_ip6){ { 0x20 } }, attributes,
		       sizeof(attributes)),
		"no room for one prefix is told");
}

static void test_path(void)
{
	static const uint8_t path[] = { 2, 1, 0, 0, 0, 1, 1, 2, 0, 0, 0, 2, 0, 0, 0, 3 };
	uint8_t longer[sizeof(path) + 6], full[2 + 255 * 4] = { 2, 255 }, more[sizeof(full) + 6];

	TAP_EQ(bgp_as_path_hops(path, sizeof(path), 4), 2, "a set is one hop");
	TAP_EQ(bgp_as_path_prepend(longer, path, sizeof(path), 9), sizeof(path) + 4, "prepend");
	TAP_OK(longer[1] == 2 && longer[5] == 9 && longer[9] == 1, "in the same segment");
	TAP_EQ(bgp_as_path_prepend(longer, NULL, 0, 9), 6, "prepend to nothing");
	TAP_EQ(bgp_as_path_prepend(more, full, sizeof(full), 9), sizeof(full) + 6,
		"a full segment gets another before it");
}

int main(void)
{
	test_rows();
	test_frame();
	test_content();
	test_nlri();
	test_widen();
	test_narrow();
	test_packing();
	test_path();
	return TAP_DONE();
}
