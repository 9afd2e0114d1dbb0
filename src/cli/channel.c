#include "cli/channel.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define GROW_FIRST  4096u
#define RECEIVE_MAX 1048576u /* bytes of one call, so that lines are taken in between */

int channel_open(struct channel *c, int fd, size_t in_max, size_t out_max)
{
	int flags = fcntl(fd, F_GETFL);

	*c = (struct channel){ .fd = fd, .in_max = in_max, .out_max = out_max };
	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return -errno;
	return 0;
}

static void release(struct channel_buffer *b)
{
	free(b->bytes);
	*b = (struct channel_buffer){ .bytes = NULL };
}

void channel_close(struct channel *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	c->ended = true;
	release(&c->in);
	release(&c->out);
}

/* Room for size more bytes and a zero. */
static int reserve(struct channel_buffer *b, size_t size, size_t max)
{
	size_t used = b->end - b->start, cap = b->cap;
	char *grown;

	if (used + size > max)
		return -EMSGSIZE;
	if (b->start > 0 && b->end + size + 1 > b->cap) {
		memmove(b->bytes, b->bytes + b->start, used);
		b->start = 0;
		b->end = used;
	}
	if (b->end + size + 1 <= b->cap)
		return 0;
	while (cap < b->end + size + 1)
		cap = cap == 0 ? GROW_FIRST : 2 * cap;
	grown = realloc(b->bytes, cap);
	if (grown == NULL)
		return -ENOMEM;
	b->bytes = grown;
	b->cap = cap;
	return 0;
}

static int end(struct channel *c, int err)
{
	c->ended = true;
	return err;
}

int channel_receive(struct channel *c)
{
	size_t total = 0;

	if (c->in.start == c->in.end) {
		release(&c->in); /* an idle peer costs nothing */
		c->scanned = 0;
	}
	while (total < RECEIVE_MAX) {
		size_t before = c->in.start;
		int err = reserve(&c->in, GROW_FIRST, c->in_max);
		size_t room;
		ssize_t got;

		if (err < 0)
			return end(c, err);
		c->scanned -= before - c->in.start;
		room = c->in.cap - c->in.end - 1;
		got = recv(c->fd, c->in.bytes + c->in.end, room, 0);
		if (got > 0) {
			c->in.end += (size_t)got;
			total += (size_t)got;
		} else if (got == 0) {
			c->eof = true;
			return -EPIPE;
		} else if (errno == EAGAIN) {
			return 0;
		} else if (errno != EINTR) {
			return end(c, -errno);
		}
	}
	return 0;
}

char *channel_line(struct channel *c, size_t *size)
{
	char *start, *newline = NULL;

	if (c->scanned < c->in.start)
		c->scanned = c->in.start;
	if (c->in.end > c->scanned)
		newline = memchr(c->in.bytes + c->scanned, '\n', c->in.end - c->scanned);
	if (newline == NULL) {
		c->scanned = c->in.end;
		return NULL;
	}
	start = c->in.bytes + c->in.start;
	*newline = '\0';
	*size = (size_t)(newline - start);
	c->in.start = c->scanned = (size_t)(newline + 1 - c->in.bytes);
	return start;
}

int channel_put(struct channel *c, const char *bytes, size_t size)
{
	int err;

	if (c->ended)
		return -EPIPE;
	err = reserve(&c->out, size, c->out_max);
	if (err < 0)
		return end(c, err);
	memcpy(c->out.bytes + c->out.end, bytes, size);
	c->out.end += size;
	return 0;
}

int channel_send(struct channel *c)
{
	while (channel_sending(c)) {
		ssize_t sent = send(c->fd, c->out.bytes + c->out.start, c->out.end - c->out.start,
			MSG_NOSIGNAL);

		if (sent >= 0)
			c->out.start += (size_t)sent;
		else if (errno == EAGAIN)
			return 0;
		else if (errno != EINTR)
			return end(c, -errno);
	}
	release(&c->out);
	return 0;
}
