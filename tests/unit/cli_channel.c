#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "cli/channel.h"
#include "tests/tap.h"

#define IN_MAX  20000
#define OUT_MAX 3000000

static int peer;
static struct channel channel;

static void begin(void)
{
	int ends[2] = { -1, -1 };

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0)
		abort();
	peer = ends[1];
	TAP_EQ(channel_open(&channel, ends[0], IN_MAX, OUT_MAX), 0, "a channel opens");
}

static void say(const char *text, size_t size)
{
	if (send(peer, text, size, 0) != (ssize_t)size)
		abort();
}

static bool line_is(const char *want)
{
	size_t size = 0;
	char *line = channel_line(&channel, &size);

	if (want == NULL)
		return line == NULL;
	return line != NULL && size == strlen(want) && strcmp(line, want) == 0;
}

static void test_lines(void)
{
	begin();
	TAP_EQ(channel_receive(&channel), 0, "nothing has come");
	TAP_OK(line_is(NULL), "so there is no line");
	say("one\ntw", 6);
	TAP_EQ(channel_receive(&channel), 0, "a line and a half");
	TAP_OK(line_is("one"), "the line");
	TAP_OK(line_is(NULL), "not the half");
	say("o\n\nthree\n", 9);
	TAP_EQ(channel_receive(&channel), 0, "the other half and more");
	TAP_OK(line_is("two") && line_is("") && line_is("three") && line_is(NULL), "three lines");
	say("last\nhalf", 9);
	close(peer);
	TAP_EQ(channel_receive(&channel), -EPIPE, "the peer has gone");
	TAP_OK(line_is("last"), "what it said before is there");
	TAP_OK(line_is(NULL) && channel.eof && !channel.ended, "half a line isn't");
	channel_close(&channel);
}

static void test_long(void)
{
	static char text[IN_MAX + 5000];
	int err = 0;

	begin();
	memset(text, 'x', sizeof(text));
	text[10000] = '\n';
	say(text, 10001);
	TAP_EQ(channel_receive(&channel), 0, "a long line");
	text[10000] = '\0';
	TAP_OK(line_is(text), "comes whole");
	text[10000] = 'x';
	for (size_t at = 0; at < sizeof(text) && err == 0; at += 1000) {
		say(text + at, 1000);
		err = channel_receive(&channel);
	}
	TAP_EQ(err, -EMSGSIZE, "an endless one ends the channel");
	TAP_OK(channel.ended && line_is(NULL), "without a line");
	channel_close(&channel);
	close(peer);

	/* Many lines at once are no long line. */
	begin();
	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = i % 100 == 99 ? '\n' : 'y';
	for (size_t at = 0; at < 5 * sizeof(text) && err != 0; at += 5000) {
		size_t size;

		say(text + at % 20000, 5000);
		if (channel_receive(&channel) < 0)
			err = 0;
		while (channel_line(&channel, &size) != NULL)
			;
	}
	TAP_EQ(err, -EMSGSIZE, "more short lines than fit at once go through");
	channel_close(&channel);
	close(peer);
}

static void test_output(void)
{
	static char text[1000000], back[1000000];
	size_t left = sizeof(text), at = 0;

	begin();
	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (char)(i * 31 % 251);
	TAP_EQ(channel_put(&channel, text, sizeof(text)), 0, "more than a socket takes");
	TAP_EQ(channel_send(&channel), 0, "is sent as far as it goes");
	TAP_OK(channel_sending(&channel), "the rest waits");
	while (left > 0) {
		ssize_t got = recv(peer, back + at, left, 0);

		if (got <= 0 || channel_send(&channel) < 0)
			break;
		at += (size_t)got;
		left -= (size_t)got;
	}
	TAP_OK(left == 0 && memcmp(text, back, sizeof(text)) == 0, "everything comes, in order");
	TAP_OK(!channel_sending(&channel) && channel.out.bytes == NULL, "and no memory is kept");
	TAP_EQ(channel_put(&channel, text, sizeof(text)), 0, "a peer that doesn't read");
	TAP_EQ(channel_put(&channel, text, sizeof(text)), 0, "still");
	TAP_EQ(channel_put(&channel, text, sizeof(text)), 0, "still");
	TAP_EQ(channel_put(&channel, "x", 1), -EMSGSIZE, "loses its channel in the end");
	TAP_EQ(channel_put(&channel, "x", 1), -EPIPE, "for good");
	channel_close(&channel);
	close(peer);

	begin();
	close(peer);
	TAP_EQ(channel_put(&channel, "x", 1), 0, "a peer that has gone");
	TAP_EQ(channel_send(&channel), -EPIPE, "is noticed, without a signal");
	channel_close(&channel);
}

int main(void)
{
	test_lines();
	test_long();
	test_output();
	return TAP_DONE();
}
