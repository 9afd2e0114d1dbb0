/* BGP messages but UPDATE: exact bytes, both ways, and every refusal with its NOTIFICATION. */
#include <stdlib.h>
#include <string.h>
#include "base/cursor.h"
#include "base/err.h"
#include "bgp/wire.h"
#include "tests/hex.h"
#include "tests/tap.h"

#define M "ffffffff ffffffff ffffffff ffffffff "

static void test_header(void)
{
	static const struct {
		const char *name, *hex;
		bool extended;
		int want;
		uint8_t code, subcode;
		const char *data;
	} rows[] = {
		{ "18 bytes of it", M "0013", false, 0, 0, 0, "" },
		{ "KEEPALIVE", M "0013 04", false, 1, 0, 0, "" },
		{ "marker", "ffffffff ffffffff fffffeff ffffffff 0013 04", false, -1, 1, 1, "" },
		{ "length 18", M "0012 04", false, -1, 1, 2, "0012" },
		{ "length 4097", M "1001 02", false, -1, 1, 2, "1001" },
		{ "length 4096", M "1000 02", false, 1, 0, 0, "" },
		{ "length 4097, extended", M "1001 02", true, 1, 0, 0, "" },
		{ "OPEN of 4097, extended", M "1001 01", true, -1, 1, 2, "1001" },
		{ "KEEPALIVE of 20", M "0014 04", false, -1, 1, 2, "0014" },
		{ "OPEN of 28", M "001c 01", false, -1, 1, 2, "001c" },
		{ "UPDATE of 22", M "0016 02", false, -1, 1, 2, "0016" },
		{ "NOTIFICATION of 20", M "0014 03", false, -1, 1, 2, "0014" },
		{ "type 9", M "0013 09", false, -1, 1, 3, "09" },
		{ "type 0", M "0013 00", false, -1, 1, 3, "00" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint8_t bytes[64], data[8];
		size_t size = from_hex(rows[i].hex, bytes),
		       data_size = from_hex(rows[i].data, data);
		struct bgp_notification n = { 0 };
		struct bgp_header h;
		int err = bgp_wire_header_decode(bytes, size, rows[i].extended, &h, &n);

		TAP_EQ(err, rows[i].want < 0 ? -DSF_E_PEER : rows[i].want, "header: %s",
			rows[i].name);
		TAP_OK(n.code == rows[i].code && n.subcode == rows[i].subcode &&
				n.size == data_size && memcmp(n.data, data, data_size) == 0,
			"header: %s: %u/%u", rows[i].name, n.code, n.subcode);
	}
}

static void test_open_bytes(void)
{
	static const struct bgp_open open = { .as = 4200000001,
		.hold_s = 90,
		.id = 0x0a000001,
		.ipv6 = true,
		.as4 = true,
		.refresh = true,
		.enhanced = true,
		.extended = true,
		.add_path = 3,
		.graceful = true,
		.restarting = true,
		.restart_s = 120,
		.graceful_ipv6 = true,
		.forwarding = true };
	uint8_t got[BGP_MESSAGE_MAX], want[128];
	struct bgp_notification n;
	struct bgp_open back;
	size_t size = bgp_wire_open_encode(got, &open);
	size_t want_size = from_hex(M "003f 01 04 5ba0 005a 0a000001 22 02 20"
				      "01 04 00020001 02 00 06 00 40 06 8078 000201 80"
				      "41 04 fa56ea01 45 04 000201 03 46 00",
		want);

	TAP_OK(size == want_size && memcmp(got, want, size) == 0, "OPEN has exactly these bytes");
	TAP_EQ(bgp_wire_open_decode(got + 19, size - 19, &back, &n), 0, "OPEN is read back");
	TAP_OK(back.as == open.as && back.hold_s == 90 && back.id == open.id && back.ipv6 &&
			back.as4 && back.refresh && back.enhanced && back.extended &&
			back.add_path == 3 && back.graceful && back.restarting &&
			back.restart_s == 120 && back.graceful_ipv6 && back.forwarding,
		"OPEN says the same");
	for (size_t cut = 0; cut < size - 19; cut++) {
		if (bgp_wire_open_decode(got + 19, cut, &back, &n) == 0)
			TAP_OK(false, "OPEN cut to %zu is taken", cut);
	}
	TAP_OK(true, "no shorter beginning of OPEN is taken");
}

static void test_open_refused(void)
{
	static const struct {
		const char *name, *hex;
		int subcode; /* -1: taken */
	} rows[] = {
		{ "version 3", "03 fde8 005a 0a000001 00", BGP_OPEN_VERSION },
		{ "AS 0", "04 0000 005a 0a000001 00", BGP_OPEN_PEER_AS },
		{ "AS 0 in the capability", "04 5ba0 005a 0a000001 08 02 06 41 04 00000000",
			BGP_OPEN_PEER_AS },
		{ "identifier 0", "04 fde8 005a 00000000 00", BGP_OPEN_IDENTIFIER },
		{ "hold 1", "04 fde8 0001 0a000001 00", BGP_OPEN_HOLD },
		{ "hold 2", "04 fde8 0002 0a000001 00", BGP_OPEN_HOLD },
		{ "hold 0", "04 fde8 0000 0a000001 00", -1 },
		{ "hold 3", "04 fde8 0003 0a000001 00", -1 },
		{ "parameter 1", "04 fde8 005a 0a000001 02 01 00", BGP_OPEN_PARAMETER },
		{ "parameters too short", "04 fde8 005a 0a000001 03 02 00", BGP_OPEN_UNSPECIFIC },
		{ "parameters too long", "04 fde8 005a 0a000001 00 02 00", BGP_OPEN_UNSPECIFIC },
		{ "capability overruns", "04 fde8 005a 0a000001 04 02 02 41 04",
			BGP_OPEN_UNSPECIFIC },
		{ "AS4 of 3 octets", "04 fde8 005a 0a000001 07 02 05 41 03 000001",
			BGP_OPEN_UNSPECIFIC },
		{ "unknown capabilities 239 and 240, empty parameter",
			"04 fde8 005a 0a000001 0a 02 04 ef 00 f0 00 02 00 02 00", -1 },
		{ "RFC 9072, though short",
			"04 fde8 005a 0a000001 ff ff 0009 02 0006 41 04 fa56ea01", -1 },
		{ "RFC 9072 with a wrong length",
			"04 fde8 005a 0a000001 ff ff 0008 02 0006 41 04 fa56ea01",
			BGP_OPEN_UNSPECIFIC },
		{ "graceful restart of 3 octets is none",
			"04 fde8 005a 0a000001 07 02 05 40 03 000000", -1 },
		{ "add-path mode 4 is none", "04 fde8 005a 0a000001 08 02 06 45 04 00020104", -1 },
	};
	struct bgp_notification n;
	struct bgp_open o;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint8_t bytes[64];
		size_t size = from_hex(rows[i].hex, bytes);
		int err = bgp_wire_open_decode(bytes, size, &o, &n);

		TAP_OK(rows[i].subcode < 0 ? err == 0
					   : err == -DSF_E_PEER && n.code == BGP_ERR_OPEN &&
						     n.subcode == rows[i].subcode,
			"OPEN: %s", rows[i].name);
		if (err == 0)
			TAP_OK(!o.graceful && o.add_path == 0, "OPEN: %s: nothing else",
				rows[i].name);
	}
	TAP_EQ(bgp_wire_open_decode((const uint8_t *)"\3", 1, &o, &n), -DSF_E_PEER, "version 3");
	TAP_OK(n.size == 2 && n.data[0] == 0 && n.data[1] == 4, "version 3: 4 is offered");
}

static void test_text(void)
{
	static const struct {
		const char *name;
		uint8_t subcode;
		const char *hex, *want;
	} rows[] = {
		{ "hello", BGP_CEASE_SHUTDOWN, "05 68656c6c6f", "hello" },
		{ "hello after a reset", BGP_CEASE_RESET, "05 68656c6c6f", "hello" },
		{ "not with a collision", BGP_CEASE_COLLISION, "05 68656c6c6f", NULL },
		{ "empty", BGP_CEASE_SHUTDOWN, "00", NULL },
		{ "no data", BGP_CEASE_SHUTDOWN, "", NULL },
		{ "length too large", BGP_CEASE_SHUTDOWN, "ff 68656c6c6f", NULL },
		{ "length too small", BGP_CEASE_SHUTDOWN, "04 68656c6c6f", NULL },
		{ "not UTF-8", BGP_CEASE_SHUTDOWN, "02 c328", NULL },
		{ "over-long UTF-8", BGP_CEASE_SHUTDOWN, "02 c080", NULL },
		{ "surrogate", BGP_CEASE_SHUTDOWN, "03 eda080", NULL },
		{ "escape", BGP_CEASE_SHUTDOWN, "02 1b63", NULL },
		{ "two, three and four octets", BGP_CEASE_SHUTDOWN, "09 c3a9e282acf09f9880",
			"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80" },
	};
	char text[BGP_TEXT_MAX + 1], longest[400];
	struct bgp_notification n;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint8_t bytes[64] = { BGP_ERR_CEASE, rows[i].subcode };
		size_t size = 2 + from_hex(rows[i].hex, bytes + 2);
		bool found;

		bgp_wire_notification_decode(bytes, size, &n);
		found = bgp_wire_text(&n, text);
		TAP_OK(found == (rows[i].want != NULL) &&
				strcmp(text, rows[i].want == NULL ? "" : rows[i].want) == 0,
			"text: %s", rows[i].name);
	}
	memset(longest, 'x', 254);
	strcpy(longest + 254, "\xc3\xa9 and more");
	n = (struct bgp_notification){ .code = BGP_ERR_CEASE, .subcode = BGP_CEASE_SHUTDOWN };
	bgp_wire_text_set(&n, longest);
	TAP_OK(n.size == 255 && n.data[0] == 254, "text: cut before a character that doesn't fit");
	TAP_OK(bgp_wire_text(&n, text) && strlen(text) == 254, "text: and read back");
}

static void test_others(void)
{
	uint8_t got[BGP_MESSAGE_MAX], want[64];
	struct bgp_notification n = { .code = 3, .subcode = 9, .size = 2, .data = { 0xaa, 0xbb } };
	struct bgp_refresh r;
	size_t size = bgp_wire_keepalive_encode(got);

	TAP_OK(size == from_hex(M "0013 04", want) && memcmp(got, want, size) == 0, "KEEPALIVE");
	size = bgp_wire_notification_encode(got, &n);
	TAP_OK(size == from_hex(M "0017 03 03 09 aabb", want) && memcmp(got, want, size) == 0,
		"NOTIFICATION");
	bgp_wire_notification_decode(got + 19, 1, &n);
	TAP_EQ(n.code, 3, "half a NOTIFICATION says what it can");
	size = bgp_wire_refresh_encode(got, BGP_REFRESH_BEGIN);
	TAP_OK(size == from_hex(M "0017 05 0002 01 01", want) && memcmp(got, want, size) == 0,
		"ROUTE-REFRESH");
	TAP_EQ(bgp_wire_refresh_decode(got + 19, 4, &r, &n), 0, "ROUTE-REFRESH is read");
	TAP_OK(r.afi == 2 && r.safi == 1 && r.subtype == BGP_REFRESH_BEGIN, "and says the same");
	TAP_EQ(bgp_wire_refresh_decode(got + 19, 3, &r, &n), -DSF_E_PEER, "one of 3 octets");
	TAP_OK(n.code == 7 && n.subcode == 1 && n.size == 22 && n.data[17] == 22,
		"is refused with the message as data");
	TAP_EQ(bgp_wire_refresh_decode(got + 19, 4000, &r, &n), -DSF_E_PEER, "one of 4000");
	TAP_EQ(n.size, BGP_DATA_MAX, "with as much of it as there is room for");
}

int main(void)
{
	test_header();
	test_open_bytes();
	test_open_refused();
	test_text();
	test_others();
	return TAP_DONE();
}
