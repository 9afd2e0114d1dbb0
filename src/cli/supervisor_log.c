#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "base/utf8.h"
#include "cli/supervisor.h"

/*
 * All nodes write their stderr into one datagram socket, each write a datagram with its writer's
 * pid. So a node never waits for its log (a full socket refuses), 400 nodes don't need 400 pipes,
 * and no file exists for a node that has nothing to say.
 */

#define LINE_BYTES 4096u

/* Appends to log/<name>.log. Beyond the limit the file becomes <name>.log.old, so that the newest
 * lines are always there and two files are the most there are. */
static void append(
	struct supervisor *s, const char *name, uint32_t *bytes, const char *text, size_t size)
{
	char path[LAB_PATH_MAX], old[LAB_PATH_MAX + 4], file[TOPO_NODE_NAME_MAX + 16];
	int fd;

	snprintf(file, sizeof(file), "log/%s.log", name);
	lab_path(path, s->options.lab, file);
	if (*bytes + size > SUPERVISOR_LOG_BYTES_MAX) {
		snprintf(old, sizeof(old), "%s.old", path);
		(void)rename(path, old);
		*bytes = 0;
	}
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (fd < 0)
		return; /* there is nobody to tell */
	if (write(fd, text, size) > 0)
		*bytes += (uint32_t)size;
	close(fd);
}

void supervisor_log(struct supervisor *s, const char *format, ...)
{
	char text[1200];
	struct timespec now;
	struct tm day;
	va_list arguments;
	size_t size;

	clock_gettime(CLOCK_REALTIME, &now);
	localtime_r(&now.tv_sec, &day);
	size = strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &day);
	size += (size_t)snprintf(
		text + size, sizeof(text) - size, ".%03ld ", now.tv_nsec / 1000000);
	va_start(arguments, format);
	vsnprintf(text + size, sizeof(text) - size - 1, format, arguments);
	va_end(arguments);
	strcat(text, "\n");
	append(s, "supervisor", &s->log_bytes, text, strlen(text));
}

/* Strangers' bytes as a JSON string and a terminal may have them: one that is a control character
 * or no UTF-8 becomes a question mark. */
static void copy_plain(char *to, const char *from, size_t size)
{
	const uint8_t *bytes = (const uint8_t *)from;
	unsigned count;

	memset(to, '?', size);
	to[size] = '\0';
	for (size_t i = 0; i < size; i += count > 0 ? count : 1) {
		count = dsf_utf8_size(bytes + i, size - i);
		if (bytes[i] >= 0x20 && bytes[i] != 0x7f &&
			!(bytes[i] == 0xc2 && count == 2 && bytes[i + 1] < 0xa0))
			memcpy(to + i, from + i, count);
	}
}

static void remember_line(struct supervisor_node *n, const char *text, size_t size)
{
	size_t end = size, start;

	while (end > 0 && (text[end - 1] == '\n' || text[end - 1] == '\r'))
		end--;
	start = end;
	while (start > 0 && text[start - 1] != '\n')
		start--;
	if (end - start >= sizeof(n->last_line))
		end = start + sizeof(n->last_line) - 1;
	if (end == start)
		return;
	copy_plain(n->last_line, text + start, end - start);
}

void supervisor_log_node(struct supervisor_node *n, const char *text, size_t size)
{
	append(n->s, n->s->topo->nodes[n->index].name, &n->log_bytes, text, size);
	remember_line(n, text, size);
}

static void hear(struct supervisor *s, pid_t pid, const char *text, size_t size)
{
	for (uint32_t i = 0; s->nodes != NULL && i < s->topo->nodes_count; i++) {
		struct supervisor_node *n = &s->nodes[i];

		if (n->pid != pid)
			continue;
		supervisor_log_node(n, text, size);
		return;
	}
	append(s, "supervisor", &s->log_bytes, text, size); /* a child of a node */
}

static void read_logs(void *user, uint32_t events)
{
	struct supervisor *s = user;
	char text[LINE_BYTES];
	union {
		char bytes[CMSG_SPACE(sizeof(struct ucred))];
		struct cmsghdr align;
	} extra;

	(void)events;
	for (;;) {
		struct iovec part = { text, sizeof(text) };
		struct msghdr message = { .msg_iov = &part,
			.msg_iovlen = 1,
			.msg_control = extra.bytes,
			.msg_controllen = sizeof(extra.bytes) };
		ssize_t got = recvmsg(s->log_fd[0], &message, MSG_DONTWAIT);
		struct cmsghdr *c = got > 0 ? CMSG_FIRSTHDR(&message) : NULL;
		struct ucred from = { .pid = 0 };

		if (got <= 0)
			return;
		if (c != NULL && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_CREDENTIALS)
			memcpy(&from, CMSG_DATA(c), sizeof(from));
		hear(s, from.pid, text, (size_t)got);
	}
}

int supervisor_log_open(struct supervisor *s)
{
	char path[LAB_PATH_MAX];
	int on = 1;

	if (mkdir(lab_path(path, s->options.lab, "log"), 0755) < 0 && errno != EEXIST)
		return -errno;
	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, s->log_fd) < 0)
		return -errno;
	if (setsockopt(s->log_fd[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0)
		return -errno;
	s->log_source = (struct supervisor_source){ read_logs, s };
	return supervisor_watch(s, s->log_fd[0], &s->log_source, EPOLLIN);
}
