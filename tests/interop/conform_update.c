/* conform_update.c - cases: what is wrong with an UPDATE, and what it may cost */
#include <string.h>
#include "tests/interop/conform.h"

/* A good route, then text: the route is gone, the session goes on, and the route comes back. */
static const char *withdrawn(const struct conform_case *c)
{
	struct peer *p;

	TRY(peer_up(&p, neighbour_next(c->internal), ""));
	(void)say_update(p, "R1 O P L");
	AWAIT(route_of(observer, 1) != NULL, "a good route isn't told on");
	(void)say_update(p, c->text);
	TRY(barrier(p));
	WANT(route_of(observer, 1) == NULL, "the route stays");
	(void)say_update(p, "R1 O P L");
	AWAIT(route_of(observer, 1) != NULL, "the route doesn't come back");
	return NULL;
}

/* text: the route stays, and the attribute isn't told on. */
static const char *discarded(const struct conform_case *c)
{
	struct peer *p;
	uint8_t flags;
	size_t size;

	TRY(peer_up(&p, neighbour_next(c->internal), ""));
	(void)say_update(p, c->text);
	TRY(barrier(p));
	WANT(route_of(observer, 1) != NULL, "the route isn't told on");
	WANT(attribute_of(route_of(observer, 1), c->attribute, &size, &flags) == NULL,
		"the attribute is told on");
	return NULL;
}

/* text: attributes for which the session ends. */
static const char *reset(const struct conform_case *c)
{
	struct peer *p;

	TRY(peer_up(&p, neighbour_next(c->internal), ""));
	(void)say_update(p, c->text);
	return want_notification(p, c->code, c->subcode, c->data);
}

/* text: the whole body of such an UPDATE. */
static const char *reset_body(const struct conform_case *c)
{
	struct peer *p;

	TRY(peer_up(&p, neighbour_next(c->internal), ""));
	(void)say(p, UPDATE, c->text);
	return want_notification(p, c->code, c->subcode, c->data);
}

/* text: a route that is passed over, and nothing more. */
static const char *ignored(const struct conform_case *c)
{
	struct peer *p;

	TRY(peer_up(&p, neighbour_next(c->internal), ""));
	(void)say_update(p, c->text);
	TRY(barrier(p));
	WANT(routes_of_case(observer) == 0, "the route is told on");
	return NULL;
}

static const char *multicast(const struct conform_case *c)
{
	TRY(ignored(c));
	for (const struct route *r = observer->routes; r != NULL; r = r->next)
		WANT(r->prefix[0] != 0xff, "the prefix is told on");
	return NULL;
}

/* text: attributes of a route that is told on, with an attribute of that value (data) and these
 * flags (code; 0: any). */
static const char *told(const struct conform_case *c)
{
	const struct route *r;
	uint8_t flags;
	struct peer *p;
	size_t size;

	TRY(peer_up(&p, neighbour_next(c->internal), ""));
	(void)say_update(p, c->text);
	TRY(barrier(p));
	r = route_of(observer, 1);
	WANT(r != NULL, "the route isn't told on");
	WANT(attribute_of(r, c->attribute, &size, &flags) != NULL, "the attribute is lost");
	WANT(attribute_is(r, c->attribute, c->data), "the attribute has another value");
	WANT(c->code == 0 || (flags & 0xe0) == c->code, "its flags are 0x%x", flags);
	return NULL;
}

/* Announced and withdrawn by one UPDATE: it is there. */
static const char *both(const struct conform_case *c)
{
	struct peer *p;

	TRY(peer_up(&p, neighbour_next(c->internal), ""));
	(void)say_update(p, c->text);
	TRY(barrier(p));
	WANT(route_of(observer, 1) != NULL, "the route isn't told on");
	return NULL;
}

#define HOP(text) "80 0e 1e 0002 01 10 " text " 00 N1 "

const struct conform_case conform_update_cases[] = {
	{ "4271 6.3", "attributes overrun the message", reset_body, .text = "0000 01f4 O P",
		.code = 3, .subcode = 1 },
	{ "4271 6.3", "withdrawn routes overrun the message", reset_body, .text = "01f4 0000 O P",
		.code = 3, .subcode = 1 },
	{ "7606 7.1", "ORIGIN 7", withdrawn, .text = "R1 40010107 P L" },
	{ "7606 7.1", "ORIGIN 7, before MP_REACH", withdrawn, .text = "40010107 P L R1" },
	{ "7606 7.1", "ORIGIN of two octets", withdrawn, .text = "R1 4001020000 P L" },
	{ "7606 3 (c)", "ORIGIN flagged as optional", withdrawn, .text = "R1 c0010100 P L" },
	{ "7606 7.2", "an AS_PATH segment that overruns", withdrawn,
		.text = "R1 O 4002060202 A L" },
	{ "7606 7.2", "an AS_PATH segment of no AS", withdrawn,
		.text = "R1 O 4002080201 A 0200 L" },
	{ "7606 7.2", "an AS_PATH segment of type 9", withdrawn, .text = "R1 O 4002060901 A L" },
	{ "7606 7.2", "one octet left in AS_PATH", withdrawn, .text = "R1 O 4002070201 A 02 L" },
	{ "7607 2", "AS 0 in AS_PATH", withdrawn, .text = "R1 O 40020a0202 A 00000000 L" },
	{ "7606 3 (d)", "no ORIGIN", withdrawn, .text = "R1 P L" },
	{ "7606 3 (d)", "no AS_PATH", withdrawn, .text = "R1 O L" },
	{ "7606 7.4", "MED of three octets", withdrawn, .text = "R1 O P 800403000001" },
	{ "7606 7.5", "LOCAL_PREF of three octets, by iBGP", withdrawn, .internal = true,
		.text = "R1 O P 400503000064" },
	{ "7606 7.5", "LOCAL_PREF of three octets, by eBGP", discarded, .attribute = LOCAL_PREF,
		.text = "R1 O P 400503000064" },
	{ "7606 7.6", "ATOMIC_AGGREGATE of one octet", discarded, .attribute = ATOMIC_AGGREGATE,
		.text = "R1 O P 40060100" },
	{ "7606 3 (c)", "ATOMIC_AGGREGATE flagged as optional", withdrawn,
		.text = "R1 O P c00600" },
	{ "7606 7.7", "AGGREGATOR of six octets among speakers of four", discarded,
		.attribute = AGGREGATOR, .text = "R1 O P c00706 fe4c 0a000001" },
	{ "7607 2", "AGGREGATOR with AS 0", discarded, .attribute = AGGREGATOR,
		.text = "R1 O P c00708 00000000 0a000001" },
	{ "7606 7.8", "COMMUNITIES of five octets", withdrawn, .text = "R1 O P c008050000000000" },
	{ "7606 7.8", "COMMUNITIES of none", withdrawn, .text = "R1 O P c00800" },
	{ "7606 7.9", "ORIGINATOR_ID of three octets, by iBGP", withdrawn, .internal = true,
		.text = "R1 O P L 800903010101" },
	{ "7606 7.9", "ORIGINATOR_ID by eBGP", discarded, .attribute = 9,
		.text = "R1 O P 80090401010101" },
	{ "7606 7.10", "CLUSTER_LIST of three octets, by iBGP", withdrawn, .internal = true,
		.text = "R1 O P L 800a03010101" },
	{ "7606 7.14", "extended communities of seven octets", withdrawn,
		.text = "R1 O P c01007 00020000000001" },
	{ "8092 6", "large communities of eight octets", withdrawn,
		.text = "R1 O P c02008 0000000100000002" },
	{ "7606 3 (g)", "ORIGIN twice: the first one counts", told, .attribute = ORIGIN,
		.data = "00", .text = "R1 O 40010102 P L" },
	{ "7606 3 (g)", "MP_REACH twice", reset, .text = "R1 R2 O P", .code = 3, .subcode = 1 },
	{ "7606 3 (g)", "MP_UNREACH twice", reset, .text = "U1 U2", .code = 3, .subcode = 1 },
	{ "7606 4", "an attribute that overruns, behind the prefixes", withdrawn,
		.text = "R1 O P c00809 0000" },
	{ "7606 4", "one octet left of the attributes", withdrawn, .text = "R1 O P c0" },
	{ "7606 3 (j)", "MP_UNREACH that overruns the attributes", reset,
		.text = "R1 O P 800f20 0002 01", .code = 3, .subcode = 0 },
	{ "7606 5.2", "ORIGIN 7, and nothing that could be withdrawn for it", reset,
		.text = "U1 40010107 P", .code = 3, .subcode = 0 },
	{ "7606 5.2", "ORIGIN 7, beside an MP_REACH without a prefix", reset,
		.text = "800e15 0002 01 10 H 00 40010107 P", .code = 3, .subcode = 0 },
	{ "7606 5.2", "AGGREGATOR of six octets without a prefix is only left out", ignored,
		.text = "U1 c00706 fe4c 0a000001" },
	{ "7606 5.2", "MP_UNREACH alone with wrong flags still withdraws", withdrawn,
		.text = "c00f0c 0002 01 N1" },
	{ "7606 5.1", "MP_REACH behind all other attributes", told, .attribute = ORIGIN,
		.data = "00", .text = "O P L R1" },
	{ "4271 4.3", "a prefix announced and withdrawn by one UPDATE is announced", both,
		.text = "R1 O P U1" },
	{ "7606 7.11", "MP_REACH with a next hop of 15 octets", reset,
		.text = "800e1d 0002 01 0f 20010db8000000000000000000000e 00 N1 O P", .code = 3,
		.subcode = 0 },
	{ "7606 7.11", "MP_REACH whose next hop overruns it", reset,
		.text = "800e05 0002 01 10 20 O P", .code = 3, .subcode = 0 },
	{ "7606 5.3", "MP_REACH with a prefix of 129 bits", reset,
		.text = "800e1e 0002 01 10 H 00 81 0000000000000000 O P", .code = 3, .subcode = 0 },
	{ "7606 5.3", "MP_REACH with a prefix that overruns", reset,
		.text = "800e1a 0002 01 10 H 00 40 20010db8 O P", .code = 3, .subcode = 0 },
	{ "7606 7.12", "MP_UNREACH with a prefix that overruns", reset,
		.text = "800f08 0002 01 40 20010db8", .code = 3, .subcode = 0 },
	{ "7606 7.12", "MP_UNREACH of two octets", reset, .text = "800f02 0002", .code = 3,
		.subcode = 0 },
	{ "4271 6.3", "a well-known attribute that nobody knows", reset,
		.text = "R1 O P 40f002abcd", .code = 3, .subcode = 2, .data = "40f002abcd" },
	{ "4271 9", "an unknown transitive attribute is told on as partial", told,
		.attribute = 0xf0, .data = "abcd", .code = 0xe0, .text = "R1 O P c0f002abcd" },
	{ "4271 9", "an unknown attribute that isn't transitive isn't told on", discarded,
		.attribute = 0xf0, .text = "R1 O P 80f002abcd" },
	{ "4271 4.3", "extended length where one octet would do", told, .attribute = ORIGIN,
		.data = "00", .text = "R1 5001000100 P" },
	{ "6793 6", "AS4_PATH from a speaker of four octets is left out", discarded,
		.attribute = AS4_PATH, .text = "R1 O P c011060201 fa56ea7b" },
	{ "6793 6", "AS4_AGGREGATOR from a speaker of four octets is left out", discarded,
		.attribute = AS4_AGGREGATOR, .text = "R1 O P c01208 fa56ea7b 0a000001" },
	{ "2545 3", "a next hop of 32 octets", told, .attribute = ORIGIN, .data = "00",
		.text = "800e2e 0002 01 20 H fe800000000000000000000000000001 00 N1 O P" },
	{ "4271 6.3", "next hop ::", ignored,
		.text = HOP("00000000000000000000000000000000") "O P" },
	{ "4271 6.3", "a next hop that is the target itself", ignored, .text = HOP("T") "O P" },
	{ "4271 9.1.2", "the target's own AS in AS_PATH", ignored,
		.text = "R1 O 40020e0203 A 0000fde8 0000fd09" },
	{ "4271 6.3", "a multicast prefix is passed over", multicast,
		.text = "800e1e 0002 01 10 H 00 40 ff0e000000000000 O P" },
	{ "4271 3.1", "a withdrawal of what was never announced", ignored, .text = "U1" },
	{ 0 },
};
