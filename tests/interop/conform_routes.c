/* conform_routes.c - cases: what is told to whom, add-path, refresh, restarts, long messages */
#include <stdio.h>
#include <string.h>
#include "base/cursor.h"
#include "tests/interop/conform.h"

#define GRACEFUL "40 06 0078 0002 01 80"
#define ENHANCED "46 00 " GRACEFUL
#define BOTH     "45 04 0002 01 03"
#define EXTENDED "06 00"

/* ---- AS numbers of two octets */

/* A session of a speaker that knows no others. */
static const char *old_speaker(struct peer **p)
{
	TRY(peer_connect(p, neighbour_next(false)));
	(void)say_open(*p, 240, false, "");
	return peer_establish(*p);
}

static const char *as4_to_old(const struct conform_case *c)
{
	struct peer *p;

	(void)c;
	TRY(old_speaker(&p));
	(void)say_update(observer, "R1 O P");
	AWAIT(route_of(p, 1) != NULL, "the route isn't told");
	WANT(attribute_is(route_of(p, 1), AS_PATH, "0202 fde8 5ba0"),
		"AS_PATH isn't 65000 23456, of two octets each");
	WANT(attribute_is(route_of(p, 1), AS4_PATH, "0202 0000fde8 fa56ea64") ||
			attribute_is(route_of(p, 1), AS4_PATH, "0201 fa56ea64"),
		"AS4_PATH doesn't say what AS_PATH can't");
	return NULL;
}

static const char *as4_from_old(const struct conform_case *c)
{
	struct peer *p;
	uint8_t flags;
	size_t size;

	TRY(old_speaker(&p));
	(void)say_update(p, c->text);
	TRY(barrier(p));
	WANT(route_of(observer, 1) != NULL, "the route isn't told on");
	WANT(attribute_is(route_of(observer, 1), AS_PATH, c->data), "AS_PATH is another one");
	WANT(attribute_of(route_of(observer, 1), AS4_PATH, &size, &flags) == NULL,
		"AS4_PATH goes to a speaker of four octets");
	return NULL;
}

/* ---- from whom to whom */

static const char *not_reflected(const struct conform_case *c)
{
	struct peer *p;

	(void)c;
	TRY(peer_up(&p, neighbour_next(true), ""));
	(void)say_update(p, "R1 O P L");
	AWAIT(route_of(observer, 1) != NULL, "the route isn't told by eBGP");
	TRY(barrier(p));
	WANT(route_of(inside, 1) == NULL, "an iBGP route is told to another iBGP neighbour");
	WANT(route_of(p, 1) == NULL, "an iBGP route is told to where it came from");
	return NULL;
}

static bool is_on_link(const struct route *r)
{
	return memcmp(r->hop, conform_target.s6_addr, 8) == 0;
}

static const char *inside_to_outside(const struct conform_case *c)
{
	struct peer *p;
	const struct route *r;
	uint8_t flags;
	size_t size;

	(void)c;
	TRY(peer_up(&p, neighbour_next(true), ""));
	(void)say_update(p, "R1 O P 400504000000aa 8004040000004d");
	AWAIT(route_of(observer, 1) != NULL, "the route isn't told on");
	r = route_of(observer, 1);
	WANT(attribute_is(r, AS_PATH, "0201 0000fde8"), "AS_PATH isn't 65000");
	WANT(attribute_of(r, LOCAL_PREF, &size, &flags) == NULL, "LOCAL_PREF goes out by eBGP");
	WANT(is_on_link(r), "its next hop isn't on the link");
	return NULL;
}

/* 4271 5.1.4: a MED stays in the AS that it was said to. */
static const char *med_stays(const struct conform_case *c)
{
	struct peer *p;

	(void)c;
	TRY(peer_up(&p, neighbour_next(false), ""));
	(void)say_update(p, "R1 O P 8004040000002a");
	AWAIT(route_of(observer, 1) != NULL && route_of(inside, 1) != NULL,
		"the route isn't told on");
	WANT(attribute_is(route_of(inside, 1), MED, "0000002a"), "MED is lost on the way inside");
	WANT(!attribute_is(route_of(observer, 1), MED, "0000002a"), "MED goes to another AS");
	return NULL;
}

static const char *outside_to_inside(const struct conform_case *c)
{
	struct peer *p;
	const struct route *r;
	uint8_t flags;
	size_t size;

	(void)c;
	TRY(peer_up(&p, neighbour_next(false), ""));
	(void)say_update(p, "R1 O P 4005040000022b");
	AWAIT(route_of(inside, 1) != NULL, "the route isn't told on");
	r = route_of(inside, 1);
	WANT(attribute_is(r, AS_PATH, "0201 0000fe4c"), "AS_PATH isn't what it was");
	WANT(attribute_of(r, LOCAL_PREF, &size, &flags) != NULL, "there is no LOCAL_PREF");
	WANT(!attribute_is(r, LOCAL_PREF, "0000022b"), "LOCAL_PREF is the eBGP neighbour's");
	return NULL;
}

static const char *outside_to_outside(const struct conform_case *c)
{
	struct peer *p;
	const struct route *r;

	(void)c;
	TRY(peer_up(&p, neighbour_next(false), ""));
	(void)say_update(p, "R1 O P");
	AWAIT(route_of(observer, 1) != NULL, "the route isn't told on");
	r = route_of(observer, 1);
	WANT(attribute_is(r, AS_PATH, "0202 0000fde8 0000fe4c"), "AS_PATH isn't 65000 65100");
	WANT(is_on_link(r), "its next hop isn't on the link");
	return NULL;
}

/* text: the route with a community; code 1: iBGP neighbours hear of it. */
static const char *community(const struct conform_case *c)
{
	struct peer *p;

	TRY(peer_up(&p, neighbour_next(false), ""));
	(void)say_update(p, c->text);
	TRY(barrier(p));
	if (c->code == 1)
		AWAIT(route_of(inside, 1) != NULL, "the route isn't told inside");
	WANT(c->code == 1 || route_of(inside, 1) == NULL, "the route is told inside");
	WANT(route_of(observer, 1) == NULL, "the route is told outside");
	return NULL;
}

static const char *replaced(const struct conform_case *c)
{
	struct peer *p;

	(void)c;
	TRY(peer_up(&p, neighbour_next(false), ""));
	(void)say_update(p, "R1 O P");
	AWAIT(route_of(observer, 1) != NULL, "the route isn't told on");
	(void)say_update(p, "R1 40010102 P");
	AWAIT(attribute_is(route_of(observer, 1), ORIGIN, "02"), "the new route isn't told on");
	WANT(routes_of(observer, 1) == 1, "both routes are told");
	(void)say_update(p, "U1");
	AWAIT(route_of(observer, 1) == NULL, "the withdrawal isn't told on");
	return NULL;
}

/* Bits behind a prefix's length mean nothing; the longest prefix and the shortest are prefixes. */
static const char *prefixes(const struct conform_case *c)
{
	struct peer *p;

	TRY(peer_up(&p, neighbour_next(c->internal), ""));
	(void)say_update(p, c->text);
	AWAIT(routes_of_case(observer) == 1, "the route isn't told on");
	return NULL;
}

static const char *gone_with_session(const struct conform_case *c)
{
	struct peer *p;

	TRY(peer_up(&p, neighbour_next(false), c->text));
	(void)say_update(p, "R1 O P");
	AWAIT(route_of(observer, 1) != NULL, "the route isn't told on");
	(void)say(p, NOTIFICATION, "06 04");
	AWAIT(route_of(observer, 1) == NULL, "the route outlives its session");
	return NULL;
}

/* ---- add-path */

static const char *several_paths(struct peer **p)
{
	TRY(peer_up(p, neighbour_next(false), BOTH));
	WANT((*p)->sends_ids && observer->takes_ids, "n/a: it doesn't do add-path both ways");
	(void)say_update(*p, "R1#1 40010100 P");
	(void)say_update(*p, "R1#2 40010101 P");
	(void)say_update(*p, "R1#3 40010102 P");
	AWAIT(routes_of(observer, 1) == 3, "%u of 3 paths are told on", routes_of(observer, 1));
	return NULL;
}

static bool has_origin(const char *origin)
{
	for (const struct route *r = observer->routes; r != NULL; r = r->next) {
		if (r->length == 64 && memcmp(r->prefix, route_of(observer, 1)->prefix, 16) == 0 &&
			attribute_is(r, ORIGIN, origin))
			return true;
	}
	return false;
}

static const char *paths_told(const struct conform_case *c)
{
	struct peer *p;

	(void)c;
	TRY(several_paths(&p));
	WANT(has_origin("00") && has_origin("01") && has_origin("02"),
		"the paths are told with the wrong attributes");
	return NULL;
}

static const char *path_withdrawn(const struct conform_case *c)
{
	struct peer *p;

	(void)c;
	TRY(several_paths(&p));
	(void)say_update(p, "U1#2");
	AWAIT(routes_of(observer, 1) == 2, "%u paths are left of 2", routes_of(observer, 1));
	TRY(barrier(p));
	WANT(has_origin("00") && !has_origin("01") && has_origin("02"), "the wrong path is gone");
	return NULL;
}

static const char *path_replaced(const struct conform_case *c)
{
	struct peer *p;

	(void)c;
	TRY(several_paths(&p));
	(void)say_update(p, "R1#2 40010102 P 800404 00000007");
	AWAIT(!has_origin("01"), "the path doesn't change");
	TRY(barrier(p));
	WANT(routes_of(observer, 1) == 3, "%u paths are told of 3", routes_of(observer, 1));
	WANT(has_origin("00") && has_origin("02"), "other paths changed too");
	return NULL;
}

static const char *paths_gone(const struct conform_case *c)
{
	struct peer *p;
	char text[32];

	(void)c;
	TRY(peer_up(&p, neighbour_next(false), BOTH));
	WANT(p->sends_ids && observer->takes_ids, "n/a: it doesn't do add-path both ways");
	for (unsigned i = 1; i <= 20; i++) {
		snprintf(text, sizeof(text), "R1#%u O P", i);
		(void)say_update(p, text);
	}
	AWAIT(routes_of(observer, 1) == 20, "%u of 20 paths are told", routes_of(observer, 1));
	(void)say(p, NOTIFICATION, "06 02");
	AWAIT(routes_of(observer, 1) == 0, "%u paths outlive their session",
		routes_of(observer, 1));
	return NULL;
}

static const char *id_withdrawn_alone(const struct conform_case *c)
{
	struct peer *p;

	(void)c;
	TRY(several_paths(&p));
	(void)say_update(p, "U1#4");
	TRY(barrier(p));
	WANT(routes_of(observer, 1) == 3, "a path id that nobody knows takes others with it");
	return NULL;
}

/* text: what we offer; the target must not send path ids, nor take any. */
static const char *no_add_path(const struct conform_case *c)
{
	struct peer *p;

	TRY(peer_up(&p, neighbour_next(false), c->text));
	p->takes_ids = p->sends_ids = false;
	(void)say_update(observer, "R1#1 O P");
	(void)say_update(observer, "R1#2 40010102 P");
	AWAIT(route_of(p, 1) != NULL, "the route isn't told");
	TRY(barrier(p));
	WANT(routes_of(p, 1) == 1, "%u routes of one prefix", routes_of(p, 1));
	return NULL;
}

/* ---- refresh */

static const char *refresh(const struct conform_case *c)
{
	struct peer *p;
	bool enhanced = c->code == 1;

	TRY(peer_up(&p, neighbour_next(false), c->text));
	WANT(!enhanced || is_capable(p, 70, ""), "n/a: it offers no enhanced refresh");
	(void)say_update(observer, "R1 O P");
	AWAIT(route_of(p, 1) != NULL, "the route isn't told");
	(void)say(p, REFRESH, "0002 00 01");
	AWAIT(route_of(p, 1)->told > 1 && p->ends >= enhanced,
		"it tells nothing again (%u times, %u begins, %u ends)", route_of(p, 1)->told,
		p->begins, p->ends);
	WANT(p->begins == enhanced && p->ends == enhanced, "%u begins, %u ends", p->begins,
		p->ends);
	return NULL;
}

/* text: a ROUTE-REFRESH that means nothing. */
static const char *refresh_ignored(const struct conform_case *c)
{
	struct peer *p;

	TRY(peer_up(&p, neighbour_next(false), ENHANCED));
	(void)say(p, REFRESH, c->text);
	TRY(barrier(p));
	WANT(p->begins == 0, "it answers");
	return NULL;
}

static const char *refresh_refused(const struct conform_case *c)
{
	struct peer *p;

	TRY(peer_up(&p, neighbour_next(false), ENHANCED));
	WANT(is_capable(p, 70, ""), "n/a: it offers no enhanced refresh");
	(void)say(p, REFRESH, c->text);
	TRY(want_notification(p, 7, 1, NULL));
	WANT(p->data_size >= HEADER_SIZE && p->data[18] == REFRESH,
		"its NOTIFICATION doesn't hold the message");
	return NULL;
}

/* What isn't told again between both marks is gone. */
static const char *refresh_purges(const struct conform_case *c)
{
	struct peer *p;

	(void)c;
	TRY(peer_up(&p, neighbour_next(false), ENHANCED));
	WANT(is_capable(p, 70, ""), "n/a: it offers no enhanced refresh");
	(void)say_update(p, "R1 O P");
	(void)say_update(p, "R2 O P");
	(void)say_update(p, "800f03 0002 01");
	AWAIT(routes_of_case(observer) == 2, "the routes aren't told on");
	(void)say(p, REFRESH, "0002 01 01");
	(void)say_update(p, "R2 O P");
	(void)say(p, REFRESH, "0002 02 01");
	AWAIT(route_of(observer, 1) == NULL, "a route that isn't told again stays");
	TRY(barrier(p));
	WANT(route_of(observer, 2) != NULL, "a route that is told again is gone");
	return NULL;
}

/* ---- restarts */

static const char *end_of_rib(const struct conform_case *c)
{
	struct peer *p;

	(void)c;
	(void)say_update(observer, "R1 O P");
	AWAIT(route_of(inside, 1) != NULL, "a route isn't told on");
	TRY(peer_up(&p, neighbour_next(false), GRACEFUL));
	AWAIT(p->end_of_ribs > 0 || p->closed, "no End-of-RIB");
	WANT(p->end_of_ribs == 1, "%u End-of-RIBs", p->end_of_ribs);
	WANT(route_of(p, 1) != NULL, "its End-of-RIB comes before its routes");
	(void)say_update(p, "800f03 0002 01");
	return barrier(p);
}

/* The session breaks, and the target knows: it has since dealt with somebody else. */
static const char *breaks(struct peer *p)
{
	struct peer *other;

	peer_close(p);
	TRY(peer_up(&other, neighbour_next(false), ""));
	return barrier(other);
}

/* The session ends without a word: routes stay, until the neighbour is back and has told all. */
static const char *helper(const struct conform_case *c)
{
	const struct neighbour *n = neighbour_next(false);
	struct peer *p;

	(void)c;
	TRY(peer_up(&p, n, GRACEFUL));
	WANT(is_capable(p, 64, ""), "n/a: it offers no graceful restart");
	(void)say_update(p, "R1 O P");
	(void)say_update(p, "R2 O P");
	(void)say_update(p, "800f03 0002 01");
	AWAIT(routes_of_case(observer) == 2, "the routes aren't told on");
	TRY(breaks(p));
	WANT(routes_of_case(observer) == 2, "routes go, though the neighbour only restarts");
	TRY(peer_up(&p, n, "40 06 8078 0002 01 80"));
	(void)say_update(p, "R2 O P");
	(void)say_update(p, "800f03 0002 01");
	AWAIT(route_of(observer, 1) == NULL, "a route that isn't told again stays");
	TRY(barrier(p));
	WANT(route_of(observer, 2) != NULL, "a route that is told again is gone");
	return NULL;
}

/* The neighbour comes back, and has kept nothing. */
static const char *helper_lost(const struct conform_case *c)
{
	const struct neighbour *n = neighbour_next(false);
	struct peer *p;

	(void)c;
	TRY(peer_up(&p, n, GRACEFUL));
	WANT(is_capable(p, 64, ""), "n/a: it offers no graceful restart");
	(void)say_update(p, "R1 O P");
	(void)say_update(p, "800f03 0002 01");
	AWAIT(route_of(observer, 1) != NULL, "the route isn't told on");
	TRY(breaks(p));
	TRY(peer_up(&p, n, "40 06 8078 0002 01 00"));
	AWAIT(route_of(observer, 1) == NULL, "the route stays, though nothing was kept");
	return NULL;
}

/* ---- long messages */

#define PREFIX_SIZE 9u /* of the case's, with its length */

static const char *of_size(const struct conform_case *c, unsigned size, const char *more)
{
	/* header, both lengths, ORIGIN, AS_PATH, MP_REACH without prefixes */
	unsigned count = (size - (HEADER_SIZE + 4 + 4 + 9 + 4 + 21)) / PREFIX_SIZE;
	struct peer *p;

	TRY(peer_up(&p, neighbour_next(c->internal), more));
	WANT(*more == '\0' || is_capable(p, 6, ""), "n/a: it offers no extended messages");
	(void)say_many(p, "O P", 1, count, c->text);
	AWAIT(routes_of_case(observer) == count || p->closed, "%u of %u routes are told on",
		routes_of_case(observer), count);
	return barrier(p);
}

/* 448 prefixes, and one of three octets. */
static const char *longest(const struct conform_case *c)
{
	return of_size(c, ORDINARY_MAX, "");
}

static const char *extended(const struct conform_case *c)
{
	return of_size(c, 7900, EXTENDED);
}

/* Its own messages are looked at as they come; here they are many. */
static const char *own_lengths(const struct conform_case *c)
{
	struct peer *p;

	(void)c;
	for (unsigned i = 0; i < 3; i++)
		(void)say_many(observer, "O P", 1 + 300 * i, 300, "");
	TRY(peer_up(&p, neighbour_next(false), ""));
	AWAIT(routes_of_case(p) == 900 || p->wrong != NULL, "%u of 900 routes are told",
		routes_of_case(p));
	return NULL;
}

const struct conform_case conform_route_cases[] = {
	{ "6793 4.2.2", "AS numbers of four octets, told to a speaker of two", as4_to_old,
		.text = NULL },
	{ "6793 4.2.3", "AS4_PATH from a speaker of two", as4_from_old,
		.text = "R1 O 4002060202 fe4c 5ba0 c0110a0202 0000fe4c fa56ea7b",
		.data = "0203 0000fde8 0000fe4c fa56ea7b" },
	{ "6793 4.2.3", "AS4_PATH that is longer than AS_PATH", as4_from_old,
		.text = "R1 O 4002040201 fe4c c0110a0202 0000fe4c fa56ea7b",
		.data = "0202 0000fde8 0000fe4c" },
	{ "6793 6", "AS4_PATH that is malformed", as4_from_old,
		.text = "R1 O 4002060202 fe4c 5ba0 c011060202 0000fe4c",
		.data = "0203 0000fde8 0000fe4c 00005ba0" },
	{ "6793 4.2.3", "AGGREGATOR that isn't AS_TRANS: AS4_PATH is out of date", as4_from_old,
		.text = "R1 O 4002060202 fe4c 5ba0 c00706 fe4c 0a000001 c0110a0202 0000fe4c "
			"fa56ea7b "
			"c01208 fa56ea7b 0a000001",
		.data = "0203 0000fde8 0000fe4c 00005ba0" },
	{ "4271 9.2.1", "an iBGP route goes to no iBGP neighbour", not_reflected, .text = NULL },
	{ "4271 5.1", "from iBGP to eBGP", inside_to_outside, .text = NULL },
	{ "4271 5.1", "from eBGP to iBGP", outside_to_inside, .text = NULL },
	{ "4271 5.1", "from eBGP to eBGP", outside_to_outside, .text = NULL },
	{ "4271 5.1.4", "MED goes inside, and not to another AS", med_stays, .text = NULL },
	{ "1997", "NO_EXPORT", community, .text = "R1 O P c00804ffffff01", .code = 1 },
	{ "1997", "NO_ADVERTISE", community, .text = "R1 O P c00804ffffff02" },
	{ "4271 3.1", "announced again, then withdrawn", replaced, .text = NULL },
	{ "4271 4.3", "a prefix of 128 bits", prefixes,
		.text = "800e26 0002 01 10 H 00 80 B1 0000000000000001 O P" },
	{ "4271 6", "routes go with their session", gone_with_session, .text = "" },
	{ "4724 4", "routes go with a session that ends by NOTIFICATION", gone_with_session,
		.text = GRACEFUL },
	{ "7911 3", "paths are told with ids of their own", paths_told, .text = NULL },
	{ "7911 3", "one path withdrawn: the others stay", path_withdrawn, .text = NULL },
	{ "7911 3", "one path announced again: only that one changes", path_replaced,
		.text = NULL },
	{ "7911 3", "a path withdrawn that isn't there", id_withdrawn_alone, .text = NULL },
	{ "7911 3", "20 paths go with their session", paths_gone, .text = NULL },
	{ "7911 4", "without add-path: no path ids", no_add_path, .text = "" },
	{ "7911 4", "add-path that is neither received nor sent", no_add_path,
		.text = "4504 0002 01 00" },
	{ "7911 4", "add-path of mode 4", no_add_path, .text = "4504 0002 01 04" },
	{ "7911 4", "add-path of another family", no_add_path, .text = "4504 0001 01 03" },
	{ "2918 4", "a refresh", refresh, .text = "" },
	{ "7313 4.1", "an enhanced refresh, from begin to end", refresh, .text = ENHANCED,
		.code = 1 },
	{ "7313 4.2", "what isn't told again by the end of a refresh is gone", refresh_purges,
		.text = NULL },
	{ "2918 4", "a refresh of a family that isn't spoken", refresh_ignored,
		.text = "0019 00 46" },
	{ "7313 5", "a ROUTE-REFRESH of subtype 9", refresh_ignored, .text = "0002 09 01" },
	{ "7313 5", "a ROUTE-REFRESH of three octets", refresh_refused, .text = "0002 01" },
	{ "7313 5", "a ROUTE-REFRESH of five octets", refresh_refused, .text = "0002 01 01 00" },
	{ "4724 2", "End-of-RIB is told behind the routes, and taken", end_of_rib, .text = NULL },
	{ "4724 4.2", "a neighbour that restarts: routes stay until it has told all", helper,
		.text = NULL },
	{ "4724 4.2", "a neighbour that has kept nothing", helper_lost, .text = NULL },
	{ "4271 4.1", "an UPDATE of 4096 octets", longest, .text = "10 2a00" },
	{ "4271 4.1", "900 routes, in messages of at most 4096 octets", own_lengths, .text = NULL },
	{ "8654 3", "an UPDATE of 7,900 octets", extended, .text = "" },
	{ 0 },
};
