#include "uring/control.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include "uring/log.h"

#define LINE_FIRST 16384u

int uring_control_open(struct uring_control *c, int fd, struct uring_loop *loop)
{
	int slot;

	memset(c, 0, sizeof(*c));
	c->fd = fd;
	if (fd < 0)
		return 0;
	c->line = malloc(LINE_FIRST);
	if (c->line == NULL)
		return -ENOMEM;
	c->line_capacity = LINE_FIRST;
	slot = uring_loop_add_file(loop, fd);
	if (slot < 0) {
		uring_control_close(c);
		return slot;
	}
	c->slot = slot;
	return 0;
}

void uring_control_close(struct uring_control *c)
{
	free(c->line);
	c->line = NULL;
	uring_text_close(&c->next);
	uring_text_close(&c->current);
	c->fd = -1;
}

static void arm_receive(struct uring_control *c, struct uring_loop *loop)
{
	struct io_uring_sqe *sqe;

	if (c->receiving || c->ended || uring_control_backlogged(c))
		return;
	sqe = uring_loop_entry(loop);
	if (sqe == NULL)
		return;
	/* One byte is kept for the zero behind a line. */
	io_uring_prep_recv(
		sqe, c->slot, c->line + c->line_size, c->line_capacity - c->line_size - 1, 0);
	uring_loop_entry_done(loop, sqe, uring_tag(URING_KIND_CONTROL_RX, 0));
	c->receiving = true;
}

static void arm_send(struct uring_control *c, struct uring_loop *loop)
{
	struct io_uring_sqe *sqe;

	if (c->sending || c->ended)
		return;
	if (c->current_sent == c->current.size) {
		struct uring_text empty = c->current;

		if (c->next.size == 0)
			return;
		c->current = c->next;
		c->current_sent = 0;
		uring_text_cut(&empty, 0);
		c->next = empty;
	}
	sqe = uring_loop_entry(loop);
	if (sqe == NULL)
		return;
	io_uring_prep_send(sqe, c->slot, c->current.bytes + c->current_sent,
		c->current.size - c->current_sent, MSG_NOSIGNAL);
	uring_loop_entry_done(loop, sqe, uring_tag(URING_KIND_CONTROL_TX, 0));
	c->sending = true;
}

void uring_control_arm(struct uring_control *c, struct uring_loop *loop)
{
	if (c->fd < 0)
		return;
	arm_send(c, loop);
	arm_receive(c, loop);
}

void uring_control_sent(struct uring_control *c, int res)
{
	c->sending = false;
	if (res == -EINTR || res == -EAGAIN)
		return;
	if (res < 0) {
		c->ended = true;
		return;
	}
	c->current_sent += (size_t)res;
}

/* Hands over all whole lines; what is left moves to the front. */
static void split(struct uring_control *c, size_t from, uring_control_fn fn, void *user)
{
	char *start = c->line, *end = c->line + c->line_size, *newline;
	char *look = c->line + from;

	while ((newline = memchr(look, '\n', (size_t)(end - look))) != NULL) {
		*newline = '\0';
		if (c->skipping)
			fn(user, NULL, 0);
		else if (newline > start)
			fn(user, start, (size_t)(newline - start));
		c->skipping = false;
		start = look = newline + 1;
	}
	c->line_size = (size_t)(end - start);
	if (start != c->line)
		memmove(c->line, start, c->line_size);
	if (c->skipping)
		c->line_size = 0;
}

/* Room for more of a line; a line over the limit is given up. */
static void make_room(struct uring_control *c)
{
	char *grown;

	if (c->line_size + 1 < c->line_capacity)
		return;
	grown = c->line_capacity >= URING_CONTROL_LINE_MAX ? NULL
							   : realloc(c->line, 2 * c->line_capacity);
	if (grown == NULL) {
		c->skipping = true;
		c->line_size = 0;
		return;
	}
	c->line = grown;
	c->line_capacity *= 2;
}

void uring_control_input(struct uring_control *c, int res, uring_control_fn fn, void *user)
{
	size_t from = c->line_size;

	c->receiving = false;
	if (res == -EINTR || res == -EAGAIN)
		return;
	if (res <= 0) {
		if (res < 0 && res != -ECONNRESET)
			log_err("control socket: %s", uring_err_text(res));
		c->ended = true;
		return;
	}
	c->line_size += (size_t)res;
	split(c, from, fn, user);
	make_room(c);
}
