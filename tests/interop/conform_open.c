/* conform_open.c - cases: message headers, OPEN, capabilities */
#include <string.h>
#include "tests/interop/conform.h"

/* Capabilities: IPv6 unicast, AS numbers of four octets. */
#define MP  "0104 0002 00 01 "
#define AS4 "4104 A "

/* An OPEN: what comes before its optional parameters, and with both capabilities in one. */
#define HEAD   "04 M 00f0 I "
#define USUAL  "0e 02 0c " MP AS4
#define MARKER "ffffffffffffffffffffffffffffffff "

/* text: a message, in OpenSent */
static const char *refused_first(const struct conform_case *c)
{
	struct peer *p;

	TRY(peer_connect(&p, neighbour_next(false)));
	(void)say_text(p, c->text);
	return want_notification(p, c->code, c->subcode, c->data);
}

/* text: a message, in Established */
static const char *refused_later(const struct conform_case *c)
{
	struct peer *p;

	TRY(peer_up(&p, neighbour_next(false), ""));
	(void)say_text(p, c->text);
	return want_notification(p, c->code, c->subcode, c->data);
}

/* text: the body of an OPEN */
static const char *open_refused(const struct conform_case *c)
{
	struct peer *p;

	TRY(peer_connect(&p, neighbour_next(c->internal)));
	(void)say(p, OPEN, c->text);
	return want_notification(p, c->code, c->subcode, c->data);
}

static const char *open_taken(const struct conform_case *c)
{
	struct peer *p;

	TRY(peer_connect(&p, neighbour_next(c->internal)));
	(void)say(p, OPEN, c->text);
	TRY(peer_establish(p));
	return barrier(p);
}

/* 300 octets of capabilities that nobody knows, each of ten octets, before those that count. */
static const char *open_long(const struct conform_case *c)
{
	char text[1024] = HEAD "ff ff 0138 02 0135 ";
	struct peer *p;

	for (unsigned i = 0; i < 297 / 11; i++)
		strcat(text, "ef 09 000000000000000000 ");
	strcat(text, MP AS4);
	TRY(peer_connect(&p, neighbour_next(c->internal)));
	(void)say(p, OPEN, text);
	TRY(peer_establish(p));
	return barrier(p);
}

/* The target's own OPEN has the capability. */
static const char *offers(const struct conform_case *c)
{
	struct peer *p;

	TRY(peer_connect(&p, neighbour_next(c->internal)));
	WANT(is_capable(p, c->code, c->text), "its OPEN doesn't have it");
	return NULL;
}

static const char *open_fields(const struct conform_case *c)
{
	struct peer *p;

	TRY(peer_connect(&p, neighbour_next(c->internal)));
	WANT(p->open[0] == 4, "its version is %u", p->open[0]);
	WANT(p->open[1] == AS_TARGET >> 8 && p->open[2] == (AS_TARGET & 0xff), "its AS is wrong");
	WANT((p->open[3] | p->open[4]) == 0 || p->open[3] > 0 || p->open[4] > 2,
		"its hold time is one that nobody may take");
	WANT((p->open[5] | p->open[6] | p->open[7] | p->open[8]) != 0, "its identifier is 0");
	return NULL;
}

/* The target's own identifier, said by a neighbour in its AS or in another one. */
static const char *same_identifier(const struct conform_case *c)
{
	struct peer *p;
	const struct neighbour *who = neighbour_next(c->internal);
	struct neighbour n = *who;

	TRY(peer_connect(&p, who));
	n.id = (uint32_t)p->open[5] << 24 | (uint32_t)p->open[6] << 16 | (uint32_t)p->open[7] << 8 |
	       p->open[8];
	p->who = &n;
	(void)say(p, OPEN, HEAD USUAL);
	p->who = who;
	if (c->code != 0)
		return want_notification(p, c->code, c->subcode, NULL);
	return peer_establish(p);
}

/* Without the family that is spoken: refused with what is missing, or nothing is told. */
static const char *no_family(const struct conform_case *c)
{
	struct peer *p;

	(void)c;
	TRY(peer_connect(&p, neighbour_next(false)));
	(void)say(p, OPEN, HEAD "08 02 06 " AS4);
	AWAIT(p->confirmed || p->noted || p->closed, "it doesn't answer");
	if (p->noted) {
		WANT(p->code == 2 && p->subcode == 7, "NOTIFICATION %u/%u, not 2/7", p->code,
			p->subcode);
		WANT(p->data_size >= 6 && memcmp(p->data, "\1\4\0\2\0\1", 6) == 0,
			"its NOTIFICATION doesn't name the capability");
		return NULL;
	}
	WANT(p->confirmed, "it closes without a word");
	(void)say(p, KEEPALIVE, "");
	(void)say_update(observer, "R1 O P");
	AWAIT(route_of(inside, 1) != NULL, "a route isn't told on");
	TRY(barrier(observer));
	WANT(p->routes == NULL, "it tells routes of a family that wasn't agreed on");
	return NULL;
}

/* In pieces of an octet, and several in one piece. */
static const char *in_pieces(const struct conform_case *c)
{
	struct peer *p;
	uint8_t bytes[256];
	size_t size;

	TRY(peer_connect(&p, neighbour_next(c->internal)));
	size = compose(p, bytes, sizeof(bytes), MARKER "002b 01 " HEAD USUAL);
	bytes[17] = (uint8_t)size;
	for (size_t i = 0; i < size; i++) {
		WANT(say_bytes(p, bytes + i, 1), "it closes after %zu octets", i);
		(void)peers_turn(0);
	}
	TRY(peer_establish(p));
	(void)say_text(
		p, MARKER "0013 04 " MARKER "0013 04 " MARKER "0013 04 " MARKER "0017 02 00000000");
	return barrier(p);
}

const struct conform_case conform_open_cases[] = {
	{ "4271 6.1", "a marker that isn't all ones", refused_first,
		.text = "ffffffffffffffffffffffffffffff7f 0013 04", .code = 1, .subcode = 1 },
	{ "4271 6.1", "a marker that isn't all ones, once established", refused_later,
		.text = "00ffffffffffffffffffffffffffffff 0013 04", .code = 1, .subcode = 1 },
	{ "4271 6.1", "length 18", refused_first, .text = MARKER "0012 04", .code = 1, .subcode = 2,
		.data = "0012" },
	{ "4271 6.1", "length 4097", refused_later, .text = MARKER "1001 02 00000000", .code = 1,
		.subcode = 2, .data = "1001" },
	{ "4271 6.1", "a KEEPALIVE of 20 octets", refused_later, .text = MARKER "0014 04 00",
		.code = 1, .subcode = 2, .data = "0014" },
	{ "4271 6.1", "an UPDATE of 22 octets", refused_later, .text = MARKER "0016 02 000000",
		.code = 1, .subcode = 2, .data = "0016" },
	{ "4271 6.1", "an OPEN of 28 octets", refused_first, .text = MARKER "001c 01 04 M 00f0 I",
		.code = 1, .subcode = 2, .data = "001c" },
	{ "4271 6.1", "message type 9, in OpenSent", refused_first, .text = MARKER "0013 09",
		.code = 1, .subcode = 3, .data = "09" },
	{ "4271 6.1", "message type 0, once established", refused_later, .text = MARKER "0013 00",
		.code = 1, .subcode = 3, .data = "00" },
	{ "4271 4.1", "messages in pieces, and several at once", in_pieces, .text = NULL },
	{ "4271 4.2", "the fields of its OPEN", open_fields, .text = NULL },
	{ "4271 6.2", "version 3", open_refused, .text = "03 M 00f0 I " USUAL, .code = 2,
		.subcode = 1, .data = "0004" },
	{ "4271 6.2", "an AS that isn't the neighbour's", open_refused,
		.text = "04 fde7 00f0 I 0e 02 0c " MP "4104 0000fde7", .code = 2, .subcode = 2 },
	{ "6793 4.1", "the AS of four octets is the one that counts", open_refused,
		.text = HEAD "0e 02 0c " MP "4104 0000fde7", .code = 2, .subcode = 2 },
	{ "6793 9", "AS_TRANS, and nothing of four octets", open_refused,
		.text = "04 5ba0 00f0 I 08 02 06 " MP, .code = 2, .subcode = 2 },
	{ "7607 2", "AS 0", open_refused, .text = "04 0000 00f0 I 0e 02 0c " MP "4104 00000000",
		.code = 2, .subcode = 2 },
	{ "6286 2.2", "identifier 0", open_refused, .text = "04 M 00f0 00000000 " USUAL, .code = 2,
		.subcode = 3 },
	{ "6286 2.2", "the target's own identifier, by iBGP", same_identifier, .code = 2,
		.subcode = 3, .internal = true },
	{ "6286 2.1", "the target's own identifier, by eBGP, is nothing wrong", same_identifier,
		.text = NULL },
	{ "4271 6.2", "hold time 1", open_refused, .text = "04 M 0001 I " USUAL, .code = 2,
		.subcode = 6 },
	{ "4271 6.2", "hold time 2", open_refused, .text = "04 M 0002 I " USUAL, .code = 2,
		.subcode = 6 },
	{ "4271 6.2", "hold time 65535", open_taken, .text = "04 M ffff I " USUAL },
	{ "4271 6.2", "an optional parameter of type 99", open_refused,
		.text = HEAD "12 02 0c " MP AS4 "63 02 0000", .code = 2, .subcode = 4 },
	{ "4271 6.2", "an optional parameter that overruns", open_refused,
		.text = HEAD "0e 02 0d " MP AS4, .code = 2 },
	{ "5492 4", "a capability that overruns its parameter", open_refused,
		.text = HEAD "0e 02 0c " MP "4105 A", .code = 2 },
	{ "5492 3", "unknown capabilities are passed over", open_taken,
		.text = HEAD "14 02 12 ef02abcd " MP "f000 " AS4 },
	{ "5492 4", "a parameter for each capability, one twice", open_taken,
		.text = HEAD "18 02 06 " MP "02 06 " MP "02 06 " AS4 },
	{ "5492 5", "without IPv6 unicast: refused by name, or nothing is told", no_family,
		.text = NULL },
	{ "9072 2", "the extended form of optional parameters, though they are short", open_taken,
		.text = HEAD "ff ff 000f 02 000c " MP AS4 },
	{ "9072 2", "297 octets of unknown capabilities", open_long, .text = NULL },
	{ "4760 8", "it offers IPv6 unicast", offers, .code = 1, .text = "0002 00 01" },
	{ "2918 2", "it offers route refresh", offers, .code = 2, .text = "" },
	{ "6793 3", "it offers AS numbers of four octets, with its own", offers, .code = 65,
		.text = "0000fde8" },
	{ "7911 4", "it offers add-path both ways", offers, .code = 69, .text = "0002 01 03" },
	{ 0 },
};
