/* conform_state.c - cases: the state machine, collisions, timers, NOTIFICATION */
#include <stdio.h>
#include <string.h>
#include "tests/interop/conform.h"

#define ROUTE_REFRESH "0002 00 01"
#define GRACEFUL      "40 06 0078 0002 01 80"

/* Messages before their time; code 0 for subcode: RFC 4271 alone knows no subcodes. */
static const char *want_state_error(struct peer *p, uint8_t subcode)
{
	TRY(want_notification(p, 5, 0, NULL));
	WANT(p->subcode == 0 || p->subcode == subcode, "NOTIFICATION 5/%u, not 5/%u", p->subcode,
		subcode);
	return NULL;
}

static const char *in_open_sent(const struct conform_case *c)
{
	struct peer *p;

	TRY(peer_connect(&p, neighbour_next(false)));
	(void)say(p, c->attribute, c->text);
	return want_state_error(p, 1);
}

static const char *in_open_confirm(const struct conform_case *c)
{
	struct peer *p;

	TRY(peer_connect(&p, neighbour_next(false)));
	(void)say_open(p, 240, true, "");
	TRY(peer_confirm(p)); /* and no KEEPALIVE of ours yet */
	(void)say(p, c->attribute, c->text);
	return want_state_error(p, 2);
}

static const char *open_again(const struct conform_case *c)
{
	struct peer *p;

	(void)c;
	TRY(peer_up(&p, neighbour_next(false), ""));
	TRY(barrier(p));
	(void)say_open(p, 240, true, "");
	return want_state_error(p, 3);
}

/* A NOTIFICATION is answered by the end of the connection, and no more. */
static const char *want_silence(struct peer *p)
{
	AWAIT(p->closed || p->noted, "it doesn't close the connection");
	WANT(!p->noted, "it answers a NOTIFICATION with NOTIFICATION %u/%u", p->code, p->subcode);
	return NULL;
}

static const char *notified(const struct conform_case *c)
{
	struct peer *p;

	TRY(peer_up(&p, neighbour_next(false), ""));
	(void)say(p, NOTIFICATION, c->text);
	return want_silence(p);
}

/* Texts of a shutdown: none, right, empty, longer than there is, longer than it says, not UTF-8. */
static const char *shutdown_texts(const struct conform_case *c)
{
	static const char *const texts[] = { "06 02", "06 02 05 68656c6c6f", "06 02 00",
		"06 02 ff 68656c6c6f68656c6c6f", "06 02 01 68656c6c6f", "06 02 03 fffe80" };
	const struct neighbour *first = NULL;
	struct peer *p;

	(void)c;
	for (unsigned i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		const struct neighbour *n = neighbour_next(false);

		first = first == NULL ? n : first;
		TRY(peer_up(&p, n, ""));
		(void)say(p, NOTIFICATION, texts[i]);
		TRY(want_silence(p));
	}
	TRY(peer_up(&p, first, ""));
	return barrier(p);
}

/* ---- collisions */

/* The target's connection is in OpenConfirm when ours says OPEN. code: whether our identifier is
 * the higher one, so that ours stays. */
static const char *collision(const struct conform_case *c)
{
	bool higher = c->code != 0;
	struct peer *theirs, *ours, *loser, *winner;

	neighbour_active.id = higher ? 0xfffffffeu : 1;
	TRY(peer_accept(&theirs, &neighbour_active));
	(void)say_open(theirs, 240, true, "");
	TRY(peer_confirm(theirs));
	WANT(peer_try(&ours, &neighbour_active), "it refuses a second connection");
	(void)say_open(ours, 240, true, "");
	loser = higher ? theirs : ours;
	winner = higher ? ours : theirs;
	AWAIT(loser->noted || loser->closed || winner->noted || winner->closed,
		"both connections stay");
	WANT(!winner->noted && !winner->closed,
		"it closes the connection of the higher identifier");
	WANT(loser->noted, "it closes the other connection without NOTIFICATION");
	WANT(loser->code == 6 && loser->subcode == 7, "NOTIFICATION %u/%u, not 6/7", loser->code,
		loser->subcode);
	TRY(peer_establish(winner));
	return barrier(winner);
}

/* A second connection beside an established one. */
static const char *collision_later(const struct conform_case *c)
{
	const struct neighbour *n = neighbour_next(false);
	struct peer *first, *second;

	(void)c;
	TRY(peer_up(&first, n, ""));
	TRY(barrier(first));
	if (peer_try(&second, n)) {
		(void)say_open(second, 240, true, "");
		AWAIT(second->noted || second->closed || second->confirmed || first->closed,
			"it says nothing on the second connection");
		WANT(!second->confirmed, "it takes the second connection");
	}
	return barrier(first);
}

/* The same of a neighbour that has promised to come back without a word. */
static const char *comes_back(const struct conform_case *c)
{
	const struct neighbour *n = neighbour_next(false);
	struct peer *first, *second;

	(void)c;
	TRY(peer_up(&first, n, GRACEFUL));
	TRY(barrier(first));
	WANT(is_capable(first, 64, ""), "n/a: it offers no graceful restart");
	WANT(peer_try(&second, n), "it refuses the connection");
	AWAIT(second->opened || second->closed, "it says no OPEN");
	WANT(second->opened, "it closes the new connection");
	(void)say_open(second, 240, true, "40 06 8078 0002 01 80");
	TRY(peer_establish(second));
	AWAIT(first->closed || first->noted, "it keeps the old connection");
	return barrier(second);
}

static const char *stranger(const struct conform_case *c)
{
	struct neighbour n = *neighbour_next(false);
	struct peer *p;

	(void)c;
	n.address.s6_addr[13] = 0xd; /* an address that we have, of no neighbour */
	n.address.s6_addr[15] = 1;
	if (!peer_try(&p, &n))
		return NULL;
	AWAIT(p->opened || p->closed || p->noted, "it leaves the connection open");
	WANT(!p->opened, "it says OPEN to somebody it doesn't know");
	return NULL;
}

/* ---- what takes time: begun before all other cases, judged here */

static struct peer *slow[3];
static const char *slow_why[3];

static void start_slow(unsigned i, uint16_t hold_s)
{
	slow_why[i] = peer_connect(&slow[i], &neighbour_slow[i]);
	if (slow_why[i] != NULL)
		return;
	slow[i]->silent = i == 1;
	(void)say_open(slow[i], hold_s, true, "");
	slow_why[i] = peer_establish(slow[i]);
}

static void start_no_hold(void)
{
	start_slow(0, 0);
}

static void start_expiry(void)
{
	start_slow(1, 3);
}

static void start_keepalive(void)
{
	start_slow(2, 9);
}

static const char *no_hold(const struct conform_case *c)
{
	(void)c;
	TRY(slow_why[0]);
	TRY(barrier(slow[0]));
	WANT(slow[0]->keepalives == 1, "%u KEEPALIVEs, though there is no hold time",
		slow[0]->keepalives);
	return NULL;
}

static const char *expiry(const struct conform_case *c)
{
	(void)c;
	TRY(slow_why[1]);
	AWAIT(slow[1]->noted || slow[1]->closed, "the session outlives its hold time");
	WANT(slow[1]->noted, "the session ends without NOTIFICATION");
	WANT(slow[1]->code == 4 && slow[1]->subcode == 0, "NOTIFICATION %u/%u, not 4/0",
		slow[1]->code, slow[1]->subcode);
	return NULL;
}

/* The first KEEPALIVE answers the OPEN; the others have to come by themselves. */
static const char *keepalive(const struct conform_case *c)
{
	(void)c;
	TRY(slow_why[2]);
	AWAIT(slow[2]->keepalives >= 3 || slow[2]->closed || slow[2]->noted,
		"%u KEEPALIVEs, at hold time 9", slow[2]->keepalives);
	return barrier(slow[2]);
}

/* ---- what the target ends by itself */

static const char *too_many(const struct conform_case *c)
{
	struct peer *p;

	(void)c;
	TRY(peer_up(&p, &neighbour_limited, ""));
	(void)say_many(p, "O P", 1, 6, "");
	TRY(want_notification(p, 6, 1, NULL));
	WANT(p->data_size == 0 || (p->data_size == 7 && memcmp(p->data, "\0\2\1\0\0\0\5", 7) == 0),
		"its data isn't family and limit");
	return NULL;
}

/* text: the target's command; data: what its NOTIFICATION has to hold. */
static const char *commanded(const struct conform_case *c)
{
	const struct neighbour *n = neighbour_next(false);
	const char *why;
	struct peer *p;

	TRY(peer_up(&p, n, ""));
	TRY(barrier(p));
	WANT(conform_hook(c->text, n, "back at noon"), "n/a: it has no command for it");
	why = want_notification(p, c->code, c->subcode, c->data);
	(void)conform_hook("enable", n, NULL);
	return why;
}

const struct conform_case conform_state_cases[] = {
	{ "6608 4", "an UPDATE in OpenSent", in_open_sent, .attribute = UPDATE,
		.text = "00000000" },
	{ "6608 4", "a KEEPALIVE in OpenSent", in_open_sent, .attribute = KEEPALIVE, .text = "" },
	{ "6608 4", "an UPDATE in OpenConfirm", in_open_confirm, .attribute = UPDATE,
		.text = "00000000" },
	{ "6608 4", "a ROUTE-REFRESH in OpenConfirm", in_open_confirm, .attribute = REFRESH,
		.text = ROUTE_REFRESH },
	{ "6608 4", "an OPEN in Established", open_again, .text = NULL },
	{ "4271 6.4", "a NOTIFICATION is not answered with one", notified, .text = "06 00" },
	{ "4271 6.4", "nor is one of a code that nobody knows", notified, .text = "63 63" },
	{ "9003 2", "texts of shutdowns: right, empty, too long, not UTF-8", shutdown_texts,
		.text = NULL },
	{ "4271 6.8", "collision, our identifier is the higher one", collision, .code = 1 },
	{ "4271 6.8", "collision, our identifier is the lower one", collision, .text = NULL },
	{ "4271 6.8", "a second connection beside an established one", collision_later,
		.text = NULL },
	{ "4724 5", "the new connection of a neighbour that restarts", comes_back, .text = NULL },
	{ "4271 8.2.1", "a connection from no neighbour", stranger, .text = NULL },
	{ "4486 4", "more prefixes than it may tell", too_many, .text = NULL },
	{ "9003 2", "its shutdown, with a text", commanded, .text = "shutdown", .code = 6,
		.subcode = 2, .data = "0c 6261636b206174206e6f6f6e" },
	{ "4486 4", "its reset", commanded, .text = "reset", .code = 6, .subcode = 4 },
	{ 0 },
};

const struct conform_case conform_session_cases[] = {
	{ "4271 4.4", "hold time 0: no KEEPALIVEs", no_hold, .start = start_no_hold },
	{ "4271 6.5", "hold time 3, and silence", expiry, .start = start_expiry },
	{ "4271 4.4", "hold time 9: KEEPALIVEs come", keepalive, .start = start_keepalive },
	{ 0 },
};
