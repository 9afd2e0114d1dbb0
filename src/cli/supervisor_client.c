#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "cli/json_span.h"
#include "cli/supervisor.h"

#define BACKLOG      64
#define LAST_WORD_MS 1000 /* for clients to take what the lab's end tells them */
/* Who connects and asks for nothing makes room, after so long, for one who would find none. */
#define IDLE_MS 3000

/* A client that sends no more isn't waited for as a reader of requests; it may still read. */
static void watch_again(struct supervisor_client *c)
{
	supervisor_rewatch(c->s, c->channel.fd, &c->source,
		(c->channel.eof ? 0u : EPOLLIN) | (channel_sending(&c->channel) ? EPOLLOUT : 0u));
}

void supervisor_client_put(struct supervisor_client *c, const char *text, size_t size)
{
	if (c->ended || c->channel.ended)
		return;
	if (channel_put(&c->channel, text, size) < 0) {
		supervisor_log(c->s, "a client doesn't read what it asked for: closed");
		c->ended = true;
	}
}

void supervisor_client_flush(struct supervisor_client *c)
{
	if (c->ended || c->channel.ended)
		return;
	if (channel_send(&c->channel) < 0)
		c->ended = true;
	else if (channel_sending(&c->channel))
		watch_again(c);
}

static void put_id(struct supervisor_client *c, const char *id)
{
	supervisor_client_put(c, "{", 1);
	if (id == NULL)
		return;
	supervisor_client_put(c, "\"id\":", 5);
	supervisor_client_put(c, id, strlen(id));
	supervisor_client_put(c, ",", 1);
}

void supervisor_client_result(
	struct supervisor_client *c, const char *id, const char *text, size_t size)
{
	if (c == NULL)
		return;
	put_id(c, id);
	supervisor_client_put(c, "\"result\":", 9);
	supervisor_client_put(c, text, size);
	supervisor_client_put(c, "}\n", 2);
	supervisor_client_flush(c);
}

void supervisor_client_result_json(struct supervisor_client *c, const char *id, cJSON *result)
{
	char *text = result != NULL ? cJSON_PrintUnformatted(result) : NULL;

	cJSON_Delete(result);
	if (text == NULL)
		supervisor_client_error(c, id, "out of memory");
	else
		supervisor_client_result(c, id, text, strlen(text));
	cJSON_free(text);
}

static void put_error(struct supervisor_client *c, const char *id, const char *code,
	const char *format, va_list arguments)
{
	char text[512];
	cJSON *string;
	char *quoted;

	vsnprintf(text, sizeof(text), format, arguments);
	string = cJSON_CreateString(text);
	quoted = string != NULL ? cJSON_PrintUnformatted(string) : NULL;
	cJSON_Delete(string);
	put_id(c, id);
	supervisor_client_put(c, code, strlen(code));
	supervisor_client_put(c, "\"error\":", 8);
	supervisor_client_put(
		c, quoted != NULL ? quoted : "\"\"", quoted != NULL ? strlen(quoted) : 2);
	supervisor_client_put(c, "}\n", 2);
	cJSON_free(quoted);
	supervisor_client_flush(c);
}

void supervisor_client_error(struct supervisor_client *c, const char *id, const char *format, ...)
{
	va_list arguments;

	if (c == NULL)
		return;
	va_start(arguments, format);
	put_error(c, id, "", format, arguments);
	va_end(arguments);
}

void supervisor_client_wrong(struct supervisor_client *c, const char *id, const char *format, ...)
{
	va_list arguments;

	if (c == NULL)
		return;
	va_start(arguments, format);
	put_error(c, id, "\"code\":2,", format, arguments);
	va_end(arguments);
}

static void hear_client(void *user, uint32_t events)
{
	struct supervisor_client *c = user;
	size_t size;
	char *line;
	int err = 0;

	if (c->ended)
		return;
	if ((events & (EPOLLIN | EPOLLHUP)) != 0 && !c->channel.eof)
		err = channel_receive(&c->channel);
	while (!c->ended && (line = channel_line(&c->channel, &size)) != NULL) {
		c->asked = true;
		supervisor_op(c, line, size);
	}
	if (!c->ended && (events & EPOLLOUT) != 0)
		(void)channel_send(&c->channel);
	if (!c->ended)
		supervisor_event_missed(c);
	if (c->channel.ended || (events & (EPOLLHUP | EPOLLERR)) != 0)
		c->ended = true;
	else if (err == -EPIPE || (events & EPOLLOUT) != 0)
		watch_again(c);
}

/* One that has gone, or that sends no more and has got everything it asked for. */
static bool client_over(const struct supervisor_client *c)
{
	if (c->ended)
		return true;
	return c->channel.eof && !c->events && !c->wants_end && !channel_sending(&c->channel) &&
	       !supervisor_jobs_wait(c->s, c);
}

/* Closed clients go at the end of a turn, when nothing points to them any more. */
void supervisor_clients_reap(struct supervisor *s)
{
	struct supervisor_client **at = &s->clients;

	while (*at != NULL) {
		struct supervisor_client *c = *at;

		if (!client_over(c)) {
			at = &c->next;
			continue;
		}
		*at = c->next;
		s->clients_count--;
		supervisor_jobs_forget(s, c);
		supervisor_heals_client_gone(s, c);
		channel_close(&c->channel);
		free(c);
	}
}

/* Closes the client that has been here longest without sending a whole request; at the end of the
 * turn, as all. False: there is none. */
static bool make_room(struct supervisor *s)
{
	int64_t before_ms = supervisor_clock_ms() - IDLE_MS;
	struct supervisor_client *oldest = NULL;

	for (struct supervisor_client *c = s->clients; c != NULL; c = c->next)
		if (!c->asked && !c->ended && c->accepted_ms <= before_ms &&
			(oldest == NULL || c->accepted_ms < oldest->accepted_ms))
			oldest = c;
	if (oldest == NULL)
		return false;
	supervisor_log(s, "a client that asks for nothing: closed, another needs its place");
	oldest->ended = true;
	return true;
}

static void refuse(int fd)
{
	char text[256];
	int size = snprintf(text, sizeof(text),
		"{\"error\":\"%d commands are connected to this lab, and it serves no more at "
		"once: end one that stays, like events, chaos or run, and try again\"}\n",
		SUPERVISOR_CLIENTS_MAX);

	(void)send(fd, text, (size_t)size, MSG_NOSIGNAL | MSG_DONTWAIT);
	close(fd);
}

static void accept_clients(void *user, uint32_t events)
{
	struct supervisor *s = user;
	int fd;

	(void)events;
	while ((fd = accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		struct supervisor_client *c =
			s->clients_count < SUPERVISOR_CLIENTS_MAX || make_room(s)
				? calloc(1, sizeof(*c))
				: NULL;

		if (c == NULL) {
			refuse(fd);
			continue;
		}
		c->s = s;
		c->accepted_ms = supervisor_clock_ms();
		c->source = (struct supervisor_source){ hear_client, c };
		if (channel_open(&c->channel, fd, SUPERVISOR_REQUEST_BYTES_MAX, LAB_LINE_MAX) < 0 ||
			supervisor_watch(s, fd, &c->source, EPOLLIN) < 0) {
			channel_close(&c->channel);
			free(c);
			continue;
		}
		c->next = s->clients;
		s->clients = c;
		s->clients_count++;
	}
}

int supervisor_listen(struct supervisor *s)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	char path[LAB_PATH_MAX];
	mode_t mask;
	int err = 0;

	if (strlen(lab_path(path, s->options.lab, "control")) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	strcpy(address.sun_path, path);
	unlink(path); /* of a supervisor that was killed: the lock is ours */
	s->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s->listen_fd < 0)
		return -errno;
	mask = umask(0177); /* root only */
	if (bind(s->listen_fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		err = -errno;
	umask(mask);
	if (err == 0 && listen(s->listen_fd, BACKLOG) < 0)
		err = -errno;
	s->listen_source = (struct supervisor_source){ accept_clients, s };
	return err < 0 ? err : supervisor_watch(s, s->listen_fd, &s->listen_source, EPOLLIN);
}

/* The lab has ended: tells those who asked for it, and everybody else by closing. */
void supervisor_clients_end(struct supervisor *s, cJSON *strangers)
{
	int64_t end = supervisor_clock_ms() + LAST_WORD_MS;
	cJSON *result = cJSON_CreateObject();
	char *text;
	bool waiting = true;

	cJSON_AddItemToObject(result, "strangers", strangers);
	text = cJSON_PrintUnformatted(result);
	cJSON_Delete(result);
	for (struct supervisor_client *c = s->clients; c != NULL; c = c->next) {
		c->events = false;
		if (c->wants_end && text != NULL)
			supervisor_client_result(c, NULL, text, strlen(text));
	}
	cJSON_free(text);
	while (waiting && supervisor_clock_ms() < end) {
		waiting = false;
		for (struct supervisor_client *c = s->clients; c != NULL; c = c->next)
			waiting |= c->wants_end && !c->ended && channel_sending(&c->channel);
		if (waiting)
			(void)supervisor_turn(s, 10);
	}
	for (struct supervisor_client *c = s->clients; c != NULL; c = c->next)
		c->ended = true;
	supervisor_clients_reap(s);
}
