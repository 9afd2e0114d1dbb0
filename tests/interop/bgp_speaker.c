/*
 * bgp_speaker.c - the BGP core over kernel TCP, to be tried against other routers
 *
 * usage: bgp_speaker as=N id=A.B.C.D local=ADDRESS control=FIFO [origin=PREFIX/LENGTH]...
 *                    [peer=ADDRESS,as=N[,WORD]...]...
 *   WORDs of a peer: passive, add-path=0..3, hold=S, restart=S, retry=MS, max=PATHS, idle=S,
 *   md5=KEY, self (tell our address as next hop)
 *
 * Lines written to the FIFO are commands; PEER and ORIGIN count from 0:
 *   show FILE                 writes the state to FILE as one JSON object, which appears whole
 *   peers FILE                the same without routes
 *   start|refresh PEER        stop|reset PEER [TEXT]      originate ORIGIN 0|1
 *   quit
 *
 * It is only a driver for tests: poll, one buffer a connection, no more.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "base/err.h"
#include "bgp/bgp.h"

#define CONNECTIONS 128u
#define THINGS      1024u /* peers, origins */
#define OUT_SIZE    65536u

struct connection {
	int fd; /* 0: free */
	uint32_t stream;
	bool connecting;
	uint8_t out[OUT_SIZE];
	size_t out_size, out_at;
};

static struct connection connections[CONNECTIONS];
static struct bgp_peer_config peers[THINGS];
static struct bgp_origin origins[THINGS];
static struct bgp_config config;
static struct bgp *bgp;
static struct dsf_ip6 local;
static const char *control_path;
static int listener, control;
static size_t memory_bytes; /* that the core holds */

static void fail(const char *what, const char *why)
{
	fprintf(stderr, "bgp_speaker: %s: %s\n", what, why);
	exit(1);
}

static void *take(void *user, size_t size)
{
	(void)user;
	memory_bytes += size;
	return calloc(1, size);
}

static void give(void *user, void *block, size_t size)
{
	(void)user;
	memory_bytes -= size;
	free(block);
}

static dsf_instant now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (dsf_instant){ (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec };
}

/* ---- words of the command line */

static struct dsf_ip6 address_of(const char *text)
{
	struct dsf_ip6 a;

	if (dsf_ip6_parse(text, &a) < 0)
		fail(text, "not an IPv6 address");
	return a;
}

static void read_origin(char *text)
{
	struct bgp_origin *o = &origins[config.origins_count++];
	char *slash = strchr(text, '/');

	if (slash == NULL || config.origins_count == THINGS)
		fail(text, "not a prefix");
	*slash = '\0';
	*o = (struct bgp_origin){ { address_of(text), (uint8_t)atoi(slash + 1) }, 0, true };
}

static void read_peer_word(struct bgp_peer_config *p, const char *word)
{
	const char *value = strchr(word, '=');
	uint32_t number = value == NULL ? 0 : (uint32_t)strtoul(value + 1, NULL, 10);

	if (strcmp(word, "passive") == 0)
		p->passive = true;
	else if (strcmp(word, "self") == 0)
		p->next_hop_self = true;
	else if (strncmp(word, "as=", 3) == 0)
		p->as = number;
	else if (strncmp(word, "add-path=", 9) == 0)
		p->add_path = (uint8_t)number;
	else if (strncmp(word, "hold=", 5) == 0)
		p->hold_s = (uint16_t)number;
	else if (strncmp(word, "restart=", 8) == 0)
		p->restart_s = (uint16_t)number;
	else if (strncmp(word, "retry=", 6) == 0)
		p->retry_ns = number * NS_PER_MS;
	else if (strncmp(word, "max=", 4) == 0)
		p->paths_max = number;
	else if (strncmp(word, "idle=", 5) == 0)
		p->idle_ns = number * NS_PER_S;
	else if (strncmp(word, "md5=", 4) == 0)
		p->md5 = value + 1;
	else
		fail(word, "unknown");
}

static void read_peer(char *text)
{
	struct bgp_peer_config *p = &peers[config.peers_count++];
	char *word = strtok(text, ",");
	struct dsf_ip6 address = address_of(word == NULL ? "" : word);

	if (config.peers_count == THINGS)
		fail(text, "too many peers");
	bgp_peer_config_init(p, &address, 0);
	p->retry_ns = NS_PER_S;
	while ((word = strtok(NULL, ",")) != NULL)
		read_peer_word(p, word);
}

static void read_word(char *word)
{
	struct in_addr id;

	if (strncmp(word, "as=", 3) == 0)
		config.as = (uint32_t)strtoul(word + 3, NULL, 10);
	else if (strncmp(word, "id=", 3) == 0 && inet_pton(AF_INET, word + 3, &id) == 1)
		config.id = ntohl(id.s_addr);
	else if (strncmp(word, "local=", 6) == 0)
		local = address_of(word + 6);
	else if (strncmp(word, "control=", 8) == 0)
		control_path = word + 8;
	else if (strncmp(word, "origin=", 7) == 0)
		read_origin(word + 7);
	else if (strncmp(word, "peer=", 5) == 0)
		read_peer(word + 5);
	else
		fail(word, "unknown");
}

/* ---- sockets */

static struct sockaddr_in6 socket_address(const struct dsf_ip6 *a, uint16_t port)
{
	struct sockaddr_in6 s = { .sin6_family = AF_INET6, .sin6_port = htons(port) };

	memcpy(&s.sin6_addr, a, 16);
	return s;
}

static void set_md5(int fd, const struct bgp_peer_config *p)
{
	struct sockaddr_in6 peer = socket_address(&p->address, 0);
	struct tcp_md5sig md5 = { 0 };

	if (p->md5 == NULL)
		return;
	memcpy(&md5.tcpm_addr, &peer, sizeof(peer));
	md5.tcpm_keylen = (uint16_t)strlen(p->md5);
	memcpy(md5.tcpm_key, p->md5, md5.tcpm_keylen);
	if (setsockopt(fd, IPPROTO_TCP, TCP_MD5SIG, &md5, sizeof(md5)) < 0)
		fail("md5", strerror(errno));
}

static void open_listener(void)
{
	struct sockaddr_in6 a = socket_address(&local, BGP_PORT);
	int yes = 1;

	listener = socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	for (uint32_t i = 0; i < config.peers_count; i++)
		set_md5(listener, &peers[i]);
	if (bind(listener, (struct sockaddr *)&a, sizeof(a)) < 0 || listen(listener, 64) < 0)
		fail("listen", strerror(errno));
}

static struct connection *new_connection(int fd, uint32_t stream)
{
	for (uint32_t i = 0; i < CONNECTIONS; i++) {
		if (connections[i].fd == 0) {
			connections[i].fd = fd;
			connections[i].stream = stream;
			connections[i].connecting = false;
			connections[i].out_size = connections[i].out_at = 0;
			return &connections[i];
		}
	}
	fail("connections", "too many");
	return NULL;
}

static struct connection *find(uint32_t stream)
{
	for (uint32_t i = 0; i < CONNECTIONS; i++) {
		if (connections[i].fd != 0 && connections[i].stream == stream)
			return &connections[i];
	}
	return NULL;
}

static void drop(struct connection *c)
{
	close(c->fd);
	c->fd = 0;
}

static void lost(struct connection *c)
{
	drop(c);
	bgp_closed(bgp, c->stream, now());
}

static void take_connections(void)
{
	struct sockaddr_in6 a;
	socklen_t size = sizeof(a);
	struct dsf_ip6 remote;
	int64_t stream;
	int fd;

	while ((fd = accept4(listener, (struct sockaddr *)&a, &size,
			SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		memcpy(&remote, &a.sin6_addr, 16);
		stream = bgp_accept(bgp, &remote, &local, now());
		if (stream < 0)
			close(fd);
		else
			new_connection(fd, (uint32_t)stream);
		size = sizeof(a);
	}
}

static void make_connection(const struct bgp_action *action)
{
	const struct bgp_peer_config *p = &peers[action->peer];
	struct sockaddr_in6 from = socket_address(&local, 0);
	struct sockaddr_in6 to = socket_address(&p->address, BGP_PORT);
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	set_md5(fd, p);
	if (bind(fd, (struct sockaddr *)&from, sizeof(from)) < 0 ||
		(connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0 && errno != EINPROGRESS)) {
		close(fd);
		bgp_closed(bgp, action->stream, now());
		return;
	}
	new_connection(fd, action->stream)->connecting = true;
}

static void write_out(struct connection *c)
{
	while (c->out_at < c->out_size) {
		ssize_t size = write(c->fd, c->out + c->out_at, c->out_size - c->out_at);

		if (size < 0)
			break; /* full, or an error that reading will tell */
		c->out_at += (size_t)size;
	}
	bgp_blocked(bgp, c->stream, c->out_at < c->out_size, now());
}

static void act_all(void)
{
	static uint8_t buf[OUT_SIZE];
	struct bgp_action action;
	struct bgp_change change;

	while (bgp_output(bgp, &action, buf, sizeof(buf), now())) {
		struct connection *c = find(action.stream);

		if (action.kind == BGP_ACTION_CONNECT) {
			make_connection(&action);
		} else if (c != NULL && action.kind == BGP_ACTION_CLOSE) {
			drop(c);
		} else if (c != NULL) {
			memcpy(c->out, buf, action.size);
			c->out_size = action.size;
			c->out_at = 0;
			write_out(c);
		}
	}
	while (bgp_changed(bgp, &change))
		continue;
}

static void finish_connecting(struct connection *c)
{
	socklen_t size = sizeof(int);
	int error = 0;

	getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &size);
	c->connecting = false;
	if (error != 0)
		lost(c);
	else
		bgp_connected(bgp, c->stream, &local, now());
}

static void read_in(struct connection *c)
{
	static uint8_t buf[65536];
	ssize_t size = read(c->fd, buf, sizeof(buf));

	if (size > 0)
		bgp_input(bgp, c->stream, buf, (size_t)size, now());
	else if (size == 0 || errno != EAGAIN)
		lost(c);
}

/* ---- commands */

static char *text_of(const struct dsf_ip6 *a)
{
	static char texts[4][DSF_IP6_TEXT_MAX];
	static unsigned turn;

	return dsf_ip6_text(a, texts[turn++ % 4]);
}

struct listing {
	FILE *file;
	bool more;
};

static bool write_row(void *user, const struct bgp_row *row)
{
	struct listing *l = user;
	struct bgp_as_walk walk;
	uint32_t as;

	fprintf(l->file,
		"%s\n{\"prefix\":\"%s/%u\",\"next_hop\":\"%s\",\"path_id\":%u,\"peer\":%d,"
		"\"best\":%s,\"multipath\":%s,\"stale\":%s,\"as_path\":\"",
		l->more ? "," : "", text_of(&row->prefix.address), row->prefix.length,
		text_of(&row->next_hop), row->path_id, (int)row->peer, row->best ? "true" : "false",
		row->multipath ? "true" : "false", row->stale ? "true" : "false");
	bgp_as_walk_start(&walk, &row->attributes);
	for (const char *blank = ""; bgp_as_walk_next(&walk, &as); blank = " ")
		fprintf(l->file, "%s%u", blank, as);
	fprintf(l->file, "\"}");
	l->more = true;
	return true;
}

static void write_peer(FILE *file, uint32_t i)
{
	struct bgp_peer_view v;
	char text[BGP_TEXT_MAX + 1];

	bgp_peer_view(bgp, i, now(), &v);
	(void)bgp_wire_text(&v.session->received, text);
	fprintf(file,
		"%s\n{\"peer\":\"%s\",\"as\":%u,\"state\":\"%s\",\"paths\":%u,\"stale\":%u,"
		"\"told\":%u,"
		"\"told_all\":%s,\"add_path_receive\":%s,\"add_path_send\":%s,"
		"\"established\":%u,\"updates_received\":%u,\"updates_sent\":%u,\"refused\":%u,"
		"\"withdrawn_by_error\":%u,\"looped\":%u,"
		"\"sent\":\"%u/%u\",\"received\":\"%u/%u\",\"text\":\"%s\"}",
		i > 0 ? "," : "", text_of(&v.config->address), v.config->as,
		bgp_state_name(v.state), v.paths, v.paths_stale, v.told,
		v.told_all ? "true" : "false", v.add_path_receive ? "true" : "false",
		v.add_path_send ? "true" : "false", (unsigned)v.session->counters.established,
		(unsigned)v.updates_received, (unsigned)v.updates_sent, (unsigned)v.refused,
		(unsigned)v.withdrawn_by_error, (unsigned)v.looped, v.session->sent.code,
		v.session->sent.subcode, v.session->received.code, v.session->received.subcode,
		text);
}

static void show(const char *path, bool with_rows)
{
	char part[4096];
	struct listing l = { NULL, false };

	snprintf(part, sizeof(part), "%s.part", path);
	l.file = fopen(part, "w");
	if (l.file == NULL)
		fail(path, strerror(errno));
	fprintf(l.file, "{\"peers\":[");
	for (uint32_t i = 0; i < config.peers_count; i++)
		write_peer(l.file, i);
	fprintf(l.file, "],\n\"rows\":[");
	if (with_rows)
		bgp_rows(bgp, write_row, &l);
	fprintf(l.file, "],\n\"memory\":%zu}\n", memory_bytes);
	fclose(l.file);
	rename(part, path);
}

static void obey(char *line)
{
	char *word = strtok(line, " "), *first = strtok(NULL, " "), *rest = strtok(NULL, "");
	uint32_t number = first == NULL ? 0 : (uint32_t)strtoul(first, NULL, 10);

	if (word == NULL)
		return;
	if (strcmp(word, "quit") == 0) {
		bgp_free(bgp);
		exit(0);
	}
	if (first == NULL)
		fail(word, "a word is missing");
	if (strcmp(word, "show") == 0)
		show(first, true);
	else if (strcmp(word, "peers") == 0)
		show(first, false);
	else if (strcmp(word, "start") == 0)
		bgp_peer_start(bgp, number, now());
	else if (strcmp(word, "refresh") == 0)
		bgp_peer_refresh(bgp, number);
	else if (strcmp(word, "stop") == 0)
		bgp_peer_stop(bgp, number, BGP_CEASE_SHUTDOWN, rest, now());
	else if (strcmp(word, "reset") == 0)
		bgp_peer_stop(bgp, number, BGP_CEASE_RESET, rest, now());
	else if (strcmp(word, "originate") == 0)
		bgp_originate(bgp, number, rest != NULL && rest[0] == '1', now());
	else
		fail(word, "unknown command");
}

static void read_control(void)
{
	static char line[4096];
	static size_t used;
	char *end;
	ssize_t size = read(control, line + used, sizeof(line) - 1 - used);

	if (size <= 0)
		return;
	used += (size_t)size;
	line[used] = '\0';
	while ((end = strchr(line, '\n')) != NULL) {
		*end = '\0';
		obey(line);
		used -= (size_t)(end + 1 - line);
		memmove(line, end + 1, used + 1);
	}
}

/* ---- the loop */

static void wait_turn(void)
{
	struct pollfd polls[CONNECTIONS + 2] = { { listener, POLLIN, 0 }, { control, POLLIN, 0 } };
	dsf_instant at = bgp_deadline(bgp);
	uint64_t left_ns = dsf_time_since(now(), at);
	int timeout = dsf_time_is_never(at) || left_ns > 3600 * NS_PER_S
			      ? -1
			      : (int)((left_ns + NS_PER_MS - 1) / NS_PER_MS);

	for (uint32_t i = 0; i < CONNECTIONS; i++) {
		const struct connection *c = &connections[i];

		polls[i + 2].fd = c->fd == 0 ? -1 : c->fd;
		polls[i + 2].events =
			POLLIN | (c->connecting || c->out_at < c->out_size ? POLLOUT : 0);
	}
	if (poll(polls, CONNECTIONS + 2, timeout) < 0 && errno != EINTR)
		fail("poll", strerror(errno));
	if ((polls[0].revents & POLLIN) != 0)
		take_connections();
	if ((polls[1].revents & POLLIN) != 0)
		read_control();
	for (uint32_t i = 0; i < CONNECTIONS; i++) {
		struct connection *c = &connections[i];

		if (c->fd == 0 || c->fd != polls[i + 2].fd || polls[i + 2].revents == 0)
			continue;
		if (c->connecting)
			finish_connecting(c);
		else if ((polls[i + 2].revents & POLLOUT) != 0)
			write_out(c);
		if (c->fd != 0 && (polls[i + 2].revents & (POLLIN | POLLHUP | POLLERR)) != 0)
			read_in(c);
	}
}

int main(int argc, char **argv)
{
	static const struct dsf_memory memory = { take, give, NULL };

	bgp_config_init(&config);
	config.memory = &memory;
	config.peers = peers;
	config.origins = origins;
	for (int i = 1; i < argc; i++)
		read_word(argv[i]);
	if (config.as == 0 || config.id == 0 || control_path == NULL)
		fail("usage", "as=N id=A.B.C.D local=ADDRESS control=FIFO [origin=...] [peer=...]");
	config.seed = config.id;
	control = open(control_path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (control < 0)
		fail(control_path, strerror(errno));
	bgp = bgp_new(&config, now());
	if (bgp == NULL)
		fail("bgp_new", "no memory");
	open_listener();
	for (uint32_t i = 0; i < config.peers_count; i++)
		bgp_peer_start(bgp, i, now());
	for (;;) {
		act_all();
		wait_turn();
		if (dsf_time_due(bgp_deadline(bgp), now()))
			bgp_expire(bgp, now());
	}
}
