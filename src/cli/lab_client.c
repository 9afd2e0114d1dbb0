#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include "cli/lab.h"

int lab_client_open(struct lab_client *c, const char *lab)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	char path[LAB_PATH_MAX];
	int err;

	*c = (struct lab_client){ .fd = -1 };
	if (strlen(lab_path(path, lab, "control")) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	strcpy(address.sun_path, path);
	c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (c->fd < 0)
		return -errno;
	if (connect(c->fd, (struct sockaddr *)&address, sizeof(address)) == 0)
		return 0;
	err = -errno;
	lab_client_close(c);
	return err;
}

void lab_client_close(struct lab_client *c)
{
	if (c->fd >= 0)
		close(c->fd);
	free(c->bytes);
	*c = (struct lab_client){ .fd = -1 };
}

static int send_all(int fd, const char *bytes, size_t size)
{
	while (size > 0) {
		ssize_t sent = send(fd, bytes, size, MSG_NOSIGNAL);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0)
			return -errno;
		bytes += sent;
		size -= (size_t)sent;
	}
	return 0;
}

int lab_client_send(struct lab_client *c, const char *text)
{
	int err = send_all(c->fd, text, strlen(text));

	return err < 0 ? err : send_all(c->fd, "\n", 1);
}

static int64_t clock_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int make_room(struct lab_client *c)
{
	char *grown;

	if (c->start > 0) {
		memmove(c->bytes, c->bytes + c->start, c->end - c->start);
		c->end -= c->start;
		c->start = 0;
	}
	if (c->end + 1 < c->cap)
		return 0;
	if (c->cap >= LAB_LINE_MAX)
		return -EMSGSIZE;
	grown = realloc(c->bytes, c->cap == 0 ? 65536 : 2 * c->cap);
	if (grown == NULL)
		return -ENOMEM;
	c->bytes = grown;
	c->cap = c->cap == 0 ? 65536 : 2 * c->cap;
	return 0;
}

/* Waits for bytes until end (-1: for ever) and reads some. 0 or -errno. */
static int receive_some(struct lab_client *c, int64_t end)
{
	struct pollfd poller = { .fd = c->fd, .events = POLLIN };
	int64_t left = end < 0 ? -1 : end - clock_ms();
	ssize_t got;
	int err = make_room(c);

	if (err < 0)
		return err;
	if (end >= 0 && left < 0)
		left = 0;
	err = poll(&poller, 1, left > INT32_MAX ? INT32_MAX : (int)left);
	if (err < 0 && errno == EINTR)
		return 0; /* a signal that its handler has noted: the answer still comes */
	if (err <= 0)
		return err < 0 ? -errno : -ETIMEDOUT;
	got = recv(c->fd, c->bytes + c->end, c->cap - c->end - 1, 0);
	if (got <= 0)
		return got < 0 && errno != ECONNRESET ? -errno : -EPIPE;
	c->end += (size_t)got;
	return 0;
}

char *lab_client_receive(struct lab_client *c, int time_ms, size_t *size, int *err)
{
	int64_t end = time_ms < 0 ? -1 : clock_ms() + time_ms;
	size_t scanned = c->start;

	for (;;) {
		char *newline = c->end > scanned
					? memchr(c->bytes + scanned, '\n', c->end - scanned)
					: NULL;
		char *line = c->bytes + c->start;

		if (newline != NULL) {
			*newline = '\0';
			*size = (size_t)(newline - line);
			c->start = (size_t)(newline + 1 - c->bytes);
			return line;
		}
		scanned = c->end - c->start; /* receive_some moves what is left to the front */
		*err = receive_some(c, end);
		if (*err < 0)
			return NULL;
	}
}
