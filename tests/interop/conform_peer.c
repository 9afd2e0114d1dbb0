/* conform_peer.c - connections with the target, and what is wanted of it */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "base/cursor.h"
#include "tests/interop/conform.h"

#define PEERS      64u
#define EXTERNAL   16u
#define INTERNAL   4u
#define CONNECT_MS 30000u /* some rest for long after an error */
#define AGAIN_MS   100u   /* between attempts to connect */
#define KEEPALIVE_MS                                                                               \
	3000u            /* in all sessions: the shortest hold time that a case agrees on is 9 s */
#define REFUSED       5u /* connections in a row, that mean that nobody is there */
#define GRACE_MS      300u /* a NOTIFICATION has so long to come before we go on talking */
#define MARKER_NUMBER 0xffffu

struct neighbour neighbour_observer, neighbour_inside, neighbour_active, neighbour_limited,
	neighbour_slow[3];
struct peer *observer, *inside;

static struct neighbour external[EXTERNAL], internal[INTERNAL];
static struct peer *peers[PEERS];
static unsigned turn, turn_internal, markers;

uint64_t peers_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000u + (uint64_t)t.tv_nsec / 1000000u;
}

static void set_neighbour(struct neighbour *n, uint16_t group, uint16_t last, uint32_t as)
{
	n->address = conform_target;
	dsf_store_be16(n->address.s6_addr + 12, group);
	dsf_store_be16(n->address.s6_addr + 14, last);
	n->as = as;
	n->internal = as == AS_TARGET;
	n->id = 0x0a640000u | (uint32_t)group << 8 | last;
}

void peers_init(void)
{
	set_neighbour(&neighbour_observer, 0, 0xa, 4200000100u);
	set_neighbour(&neighbour_inside, 0, 0xb, AS_TARGET);
	set_neighbour(&neighbour_active, 0, 0xc, AS_OTHER);
	set_neighbour(&neighbour_limited, 0, 0xd, AS_OTHER);
	for (uint16_t i = 0; i < 3; i++)
		set_neighbour(&neighbour_slow[i], 0xf, (uint16_t)(i + 1), AS_OTHER);
	for (uint16_t i = 0; i < EXTERNAL; i++)
		set_neighbour(&external[i], 0xe, (uint16_t)(i + 1), AS_OTHER);
	for (uint16_t i = 0; i < INTERNAL; i++)
		set_neighbour(&internal[i], 1, (uint16_t)(i + 1), AS_TARGET);
}

const struct neighbour *neighbour_next(bool is_internal)
{
	return is_internal ? &internal[turn_internal++ % INTERNAL] : &external[turn++ % EXTERNAL];
}

static void take_bytes(struct peer *p)
{
	ssize_t got = read(p->fd, p->in + p->in_size, sizeof(p->in) - p->in_size);

	if (got > 0) {
		p->in_size += (size_t)got;
		peer_hear(p);
	} else if (got == 0 || errno != EAGAIN) {
		p->closed = true;
	}
}

static void finish_connecting(struct peer *p)
{
	socklen_t size = sizeof(int);
	int error = 0;

	getsockopt(p->fd, SOL_SOCKET, SO_ERROR, &error, &size);
	p->connecting = false;
	p->closed = error != 0;
	p->refused = error == ECONNREFUSED;
}

static void keep_alive(struct peer *p, uint64_t now_ms)
{
	if (!p->established || p->silent || p->closed || p->noted || now_ms < p->keepalive_at_ms)
		return;
	p->keepalive_at_ms = now_ms + KEEPALIVE_MS;
	(void)say(p, KEEPALIVE, "");
}

bool peers_turn(uint64_t until_ms)
{
	struct pollfd polls[PEERS];
	uint64_t now_ms = peers_now_ms();
	uint64_t left_ms = until_ms > now_ms ? until_ms - now_ms : 0;

	for (unsigned i = 0; i < PEERS; i++) {
		struct peer *p = peers[i];

		polls[i] = (struct pollfd){ -1, 0, 0 };
		if (p == NULL || p->closed || p->deaf)
			continue;
		keep_alive(p, now_ms);
		polls[i].fd = p->fd;
		polls[i].events = p->connecting ? POLLOUT : POLLIN;
	}
	if (poll(polls, PEERS, (int)(left_ms < 100 ? left_ms : 100)) < 0 && errno != EINTR)
		abort();
	for (unsigned i = 0; i < PEERS; i++) {
		if (polls[i].revents == 0)
			continue;
		if (peers[i]->connecting)
			finish_connecting(peers[i]);
		else
			take_bytes(peers[i]);
	}
	return left_ms > 0;
}

/* ---- connections */

static struct peer *new_peer(const struct neighbour *n, int fd)
{
	for (unsigned i = 0; i < PEERS; i++) {
		if (peers[i] != NULL)
			continue;
		peers[i] = calloc(1, sizeof(*peers[i]));
		if (peers[i] == NULL)
			abort();
		peers[i]->who = n;
		peers[i]->fd = fd;
		peers[i]->as4 = true;
		return peers[i];
	}
	abort();
}

void peer_close(struct peer *p)
{
	for (unsigned i = 0; i < PEERS; i++) {
		if (peers[i] == p)
			peers[i] = NULL;
	}
	if (p == observer)
		observer = NULL;
	if (p == inside)
		inside = NULL;
	peer_forget(p);
	close(p->fd);
	free(p);
}

static struct sockaddr_in6 socket_address(const struct in6_addr *a, uint16_t port)
{
	return (struct sockaddr_in6){
		.sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = *a
	};
}

static struct peer *connect_once(const struct neighbour *n)
{
	struct sockaddr_in6 from = socket_address(&n->address, 0);
	struct sockaddr_in6 to = socket_address(&conform_target, 179);
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct peer *p = new_peer(n, fd);

	p->connecting = true;
	if (bind(fd, (struct sockaddr *)&from, sizeof(from)) < 0 ||
		(connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0 && errno != EINPROGRESS))
		p->closed = true;
	return p;
}

bool peer_try(struct peer **p, const struct neighbour *n)
{
	uint64_t until_ms = peers_now_ms() + conform_limit_ms;

	*p = connect_once(n);
	while ((*p)->connecting && !(*p)->closed) {
		if (!peers_turn(until_ms))
			return false;
	}
	return !(*p)->closed;
}

static void rest(uint64_t duration_ms)
{
	uint64_t until_ms = peers_now_ms() + duration_ms;

	while (peers_turn(until_ms))
		continue;
}

/* A target that has just lost a session may not take the neighbour back at once. One that listens
 * no more has died, and is started again where that can be done. */
const char *peer_connect(struct peer **p, const struct neighbour *n)
{
	uint64_t until_ms = peers_now_ms() + CONNECT_MS;
	unsigned refused = 0;

	for (;;) {
		bool taken = peer_try(p, n);

		while (taken && !(*p)->opened && !(*p)->closed && !(*p)->noted) {
			if (!peers_turn(until_ms))
				return "it takes the connection, but says no OPEN";
		}
		if ((*p)->opened)
			return NULL;
		WANT(peers_now_ms() < until_ms, "it doesn't take our connection");
		refused += (*p)->refused;
		peer_close(*p);
		if (refused > 0 && refused % REFUSED == 0)
			(void)conform_hook("restart", NULL, NULL);
		rest(AGAIN_MS);
	}
}

const char *peer_accept(struct peer **p, const struct neighbour *n)
{
	struct sockaddr_in6 at = socket_address(&n->address, 179);
	int listener = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1, fd;
	struct pollfd wait = { listener, POLLIN, 0 };
	uint64_t until_ms = peers_now_ms() + CONNECT_MS;

	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (bind(listener, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(listener, 1) < 0)
		return "we can't listen";
	while (poll(&wait, 1, 0) == 0 && peers_turn(until_ms))
		continue;
	fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	close(listener);
	if (fd < 0)
		return "it doesn't connect to us";
	*p = new_peer(n, fd);
	AWAIT((*p)->opened || (*p)->closed, "it connects, but says no OPEN");
	WANT((*p)->opened, "it connects, but says no OPEN");
	return NULL;
}

const char *peer_confirm(struct peer *p)
{
	AWAIT(p->confirmed || p->noted || p->closed, "it doesn't answer our OPEN");
	WANT(!p->noted, "it answers our OPEN with NOTIFICATION %u/%u", p->code, p->subcode);
	WANT(p->confirmed, "it closes the connection at our OPEN");
	p->takes_ids = (p->add_path & 1) != 0 &&
		       (is_capable(p, 69, "00020102") || is_capable(p, 69, "00020103"));
	p->sends_ids = (p->add_path & 2) != 0 &&
		       (is_capable(p, 69, "00020101") || is_capable(p, 69, "00020103"));
	return NULL;
}

const char *peer_establish(struct peer *p)
{
	TRY(peer_confirm(p));
	p->established = true;
	p->keepalive_at_ms = peers_now_ms() + KEEPALIVE_MS;
	(void)say(p, KEEPALIVE, "");
	return NULL;
}

const char *peer_up(struct peer **p, const struct neighbour *n, const char *more)
{
	TRY(peer_connect(p, n));
	WANT(say_open(*p, 240, true, more), "it closes the connection before our OPEN");
	return peer_establish(*p);
}

const char *peers_observe(void)
{
	struct peer **who[] = { &observer, &inside };
	struct neighbour *neighbours[] = { &neighbour_observer, &neighbour_inside };

	for (unsigned i = 0; i < 2; i++) {
		if (*who[i] != NULL && !(*who[i])->closed && !(*who[i])->noted &&
			(*who[i])->wrong == NULL)
			continue;
		if (*who[i] != NULL)
			peer_close(*who[i]);
		TRY(peer_up(who[i], neighbours[i], i == 0 ? "45 04 0002 01 03" : ""));
	}
	return NULL;
}

const char *peers_wrong(void)
{
	for (unsigned i = 0; i < PEERS; i++) {
		if (peers[i] != NULL && peers[i]->wrong != NULL)
			return peers[i]->wrong;
	}
	return NULL;
}

static bool stays(const struct peer *p)
{
	return p == observer || p == inside ||
	       (p->who >= neighbour_slow && p->who < neighbour_slow + 3);
}

void peers_end_case(void)
{
	for (unsigned i = 0; i < PEERS; i++) {
		struct peer *p = peers[i];

		if (p == NULL || stays(p))
			continue;
		if (!p->closed && !p->noted && p->opened)
			(void)say(p, NOTIFICATION, "06 04");
	}
	rest(0);
	for (unsigned i = 0; i < PEERS; i++) {
		if (peers[i] != NULL && !stays(peers[i]))
			peer_close(peers[i]);
	}
}

void peers_free(void)
{
	peers_end_case();
	for (unsigned i = 0; i < PEERS; i++) {
		if (peers[i] != NULL)
			peer_close(peers[i]);
	}
}

/* ---- what is wanted */

/* Tells a route behind everything else; true when it is told on. */
static bool say_marker(struct peer *p, bool reach)
{
	unsigned number = conform_number;
	char text[32];
	bool said;

	conform_number = MARKER_NUMBER;
	snprintf(text, sizeof(text), reach ? "R%u O P L" : "U%u", markers);
	said = say_update(p, text);
	conform_number = number;
	return said;
}

/* Who sees what p tells: nobody hears his own routes. */
static const struct peer *witness_of(const struct peer *p)
{
	return p == observer ? inside : observer;
}

static bool has_marker(const struct peer *p)
{
	return route_numbered(witness_of(p), MARKER_NUMBER, markers) != NULL;
}

static const char *describe_end(const struct peer *p)
{
	if (p->noted)
		return conform_reason(
			"the session ends with NOTIFICATION %u/%u", p->code, p->subcode);
	return "the session ends without NOTIFICATION";
}

static bool is_over(const struct peer *p)
{
	return p->noted || p->closed;
}

const char *barrier(struct peer *p)
{
	const struct peer *witness = witness_of(p);

	markers++;
	if (!say_marker(p, true))
		rest(GRACE_MS); /* it has said why, perhaps */
	AWAIT(has_marker(p) || is_over(p) || is_over(witness), "a later route isn't told on");
	if (is_over(p))
		return describe_end(p);
	(void)say_marker(p, false);
	AWAIT(!has_marker(p) || is_over(p) || is_over(witness), "a withdrawal isn't told on");
	WANT(!is_over(witness), "it ends another neighbour's session");
	return is_over(p) ? describe_end(p) : NULL;
}

/* A target that doesn't mind what was said is found out by a route that it tells on. */
static const char *await_end(struct peer *p)
{
	uint64_t until_ms = peers_now_ms() + GRACE_MS;

	while (!is_over(p) && peers_turn(until_ms))
		continue;
	if (is_over(p) || !p->established)
		return NULL;
	markers++;
	(void)say_marker(p, true);
	AWAIT(is_over(p) || has_marker(p), "it says nothing");
	WANT(is_over(p), "it minds nothing: the session goes on");
	return NULL;
}

const char *want_notification(struct peer *p, uint8_t code, uint8_t subcode, const char *data)
{
	bool confirmed = p->confirmed;
	uint8_t want[256];
	size_t size = data == NULL ? 0 : compose(p, want, sizeof(want), data);

	TRY(await_end(p));
	AWAIT(is_over(p) || p->confirmed != confirmed, "it says nothing");
	WANT(is_over(p), "it minds nothing: the session comes up");
	WANT(p->noted, "it closes the connection without NOTIFICATION");
	WANT(p->code == code && (p->subcode == subcode || subcode == 0),
		"NOTIFICATION %u/%u, not %u/%u", p->code, p->subcode, code, subcode);
	WANT(data == NULL || (p->data_size == size && memcmp(p->data, want, size) == 0),
		"NOTIFICATION %u/%u has other data (%zu octets, first %u)", code, subcode,
		p->data_size, p->data_size > 0 ? p->data[0] : 0);
	AWAIT(p->closed, "it doesn't close the connection behind its NOTIFICATION");
	return NULL;
}
