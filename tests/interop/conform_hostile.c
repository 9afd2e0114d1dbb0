/*
 * conform_hostile.c - neighbours that mean harm (cases=hostile): the target lives, and another
 * neighbour's route is told once, and stays
 *
 * How much memory the target holds afterwards is for whoever runs this to look at.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "tests/interop/conform.h"

#define SOCKETS 800u

static struct peer *good;

static const char *begin(struct peer **bad, const char *more)
{
	TRY(peer_up(&good, neighbour_next(true), ""));
	(void)say_update(good, "R1 O P L");
	AWAIT(route_of(observer, 1) != NULL, "a good route isn't told on");
	return bad == NULL ? NULL : peer_up(bad, neighbour_next(false), more);
}

static const char *finish(void)
{
	TRY(barrier(good));
	WANT(route_of(observer, 1) != NULL, "another neighbour's route is gone");
	WANT(route_of(observer, 1)->told == 1, "another neighbour's route was told %u times",
		route_of(observer, 1)->told);
	return NULL;
}

/* As fast as the target takes them: routes, each with attributes of its own. */
static const char *flood(const struct conform_case *c)
{
	char text[64];
	struct peer *bad;

	(void)c;
	TRY(begin(&bad, "45 04 0002 01 03"));
	for (unsigned i = 0; i < 20000; i++) {
		snprintf(text, sizeof(text), "R2#%u O P c0f004 %08x", i % 1000, i);
		if (!say_update(bad, text))
			break;
	}
	return finish();
}

/* Routes with 3 KB of attributes, which change: 3 MB that wait for the one that doesn't read. */
static const char *deaf(const struct conform_case *c)
{
	char text[64 + 2 * 3000], *junk;
	struct peer *bad;
	int small = 4096;

	(void)c;
	TRY(begin(&bad, ""));
	(void)setsockopt(bad->fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	bad->deaf = true;
	for (unsigned i = 0; i < 1000; i++) {
		junk = text + snprintf(text, 64, "R%u O P d0f00bb8 %08x", 2 + i % 100, i);
		memset(junk, 'a', 2 * 2996);
		junk[2 * 2996] = '\0';
		(void)say_update(observer, text);
		if (i % 100 == 99)
			TRY(barrier(observer));
	}
	return finish();
}

static const char *drip(const struct conform_case *c)
{
	static const uint8_t header[19] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x10, 0, 2 };
	struct peer *bad;

	(void)c;
	TRY(begin(&bad, ""));
	bad->silent = true;
	(void)say_bytes(bad, header, sizeof(header));
	for (unsigned i = 0; i < 4000; i++) {
		WANT(say_bytes(bad, (const uint8_t[]){ 0 }, 1), "it closes the connection");
		if (i % 500 == 0)
			TRY(barrier(good));
	}
	return finish();
}

/* Connections by the hundred, which say nothing, or something that is no BGP. */
static const char *connections(const struct conform_case *c)
{
	const struct neighbour *n = neighbour_next(false);
	struct sockaddr_in6 to = {
		.sin6_family = AF_INET6, .sin6_port = htons(179), .sin6_addr = conform_target
	};
	struct sockaddr_in6 from = { .sin6_family = AF_INET6, .sin6_addr = n->address };
	int sockets[SOCKETS];

	TRY(begin(NULL, ""));
	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < SOCKETS; i++) {
			sockets[i] = socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK, 0);
			(void)bind(sockets[i], (struct sockaddr *)&from, sizeof(from));
			(void)connect(sockets[i], (struct sockaddr *)&to, sizeof(to));
		}
		TRY(barrier(good));
		for (unsigned i = 0; i < SOCKETS; i++) {
			if (c->text != NULL)
				(void)send(sockets[i], c->text, strlen(c->text), MSG_NOSIGNAL);
			close(sockets[i]);
		}
		TRY(barrier(good));
	}
	return finish();
}

/* Sessions that come and go, each with a route. */
static const char *comes_and_goes(const struct conform_case *c)
{
	const struct neighbour *n = neighbour_next(false);
	struct peer *bad;

	(void)c;
	TRY(begin(NULL, ""));
	for (unsigned i = 0; i < 50; i++) {
		TRY(peer_up(&bad, n, ""));
		(void)say_update(bad, "R2 O P");
		peer_close(bad);
		TRY(barrier(good)); /* the target knows */
	}
	return finish();
}

const struct conform_case conform_hostile_cases[] = {
	{ "4271", "20,000 routes with attributes of their own", flood, .text = NULL },
	{ "4271", "a neighbour that doesn't read", deaf, .text = NULL },
	{ "4271", "a message octet by octet, without end", drip, .text = NULL },
	{ "4271", "2,400 connections that say nothing", connections, .text = NULL },
	{ "4271", "2,400 connections that say something else", connections,
		.text = "GET / HTTP/1.1\r\nHost: nobody\r\n\r\n" },
	{ "4271", "50 sessions that come and go", comes_and_goes, .text = NULL },
	{ 0 },
};
