#include "uring/stream.h"
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/err.h"
#include "uring/log.h"

#define BACKLOG        128
#define TRAFFIC_CLASS  0xc0 /* DSCP 48, class nc: published for FSDB, usual for BGP */
#define SLOTS_FIRST    16u
#define ROOM_TELL_FROM (URING_STREAM_BUFFER / 2)

enum state {
	CONNECTING,
	OPEN,
	CLOSING, /* the node is done with it; what it wrote still leaves */
	OVER,    /* waits for its last entry */
};

struct uring_stream {
	enum state state;
	uint32_t index, number;
	int fd;
	struct sockaddr_in6 remote;
	bool connect_wanted, receiving, sending, cancelled, reset;
	uint32_t entries; /* in the ring */
	uint8_t *out;     /* URING_STREAM_BUFFER, while something waits */
	uint32_t size, room;
	struct uring_stream *work_next;
	bool in_work;
};

struct number {
	uint32_t number; /* key */
	struct uring_stream *stream;
};

/* Of a neighbour. */
struct key {
	struct dsf_ip6 remote; /* key of the table */
	char text[URING_STREAM_KEY_MAX + 1];
};

static_assert(URING_STREAM_KEY_MAX == TCP_MD5SIG_MAXKEYLEN, "what the kernel takes");
static_assert(URING_STREAM_KEY_MAX == TOPO_BGP_MD5_MAX, "what a file may say");

static const uint16_t listener_ports[URING_STREAM_LISTENERS] = { NODE_STREAM_FSDB,
	NODE_STREAM_BGP };

static void enqueue(struct uring_streams *s, struct uring_stream *c)
{
	if (c->in_work)
		return;
	c->in_work = true;
	c->work_next = s->work;
	s->work = c;
}

static struct uring_stream *find(const struct uring_streams *s, uint32_t number)
{
	const struct number *n = dsf_hash_get(&s->numbers, &number);

	return n == NULL ? NULL : n->stream;
}

static void forget_number(struct uring_streams *s, struct uring_stream *c)
{
	struct number *n = dsf_hash_get(&s->numbers, &c->number);

	if (n != NULL && n->stream == c)
		dsf_hash_remove(&s->numbers, n);
}

/* The index of a free slot; UINT32_MAX: none. */
static uint32_t find_slot(struct uring_streams *s)
{
	uint32_t count = s->slots_count == 0 ? SLOTS_FIRST : 2 * s->slots_count;
	void *grown;

	for (uint32_t i = 0; s->slots_used < s->slots_count; i++)
		if (s->slots[i] == NULL)
			return i;
	if (s->slots_count == URING_STREAMS_MAX)
		return UINT32_MAX;
	grown = dsf_memory_grow(s->memory, s->slots, s->slots_count * sizeof(struct uring_stream *),
		count * sizeof(struct uring_stream *));
	if (grown == NULL)
		return UINT32_MAX;
	s->slots = grown;
	s->slots_count = count;
	return s->slots_used;
}

/* Owns fd, also when it fails. */
static struct uring_stream *stream_new(struct uring_streams *s, int fd, enum state state)
{
	uint32_t slot = find_slot(s);
	struct uring_stream *c = slot == UINT32_MAX ? NULL : dsf_memory_new(s->memory, sizeof(*c));

	if (c == NULL) {
		close(fd);
		s->refused++;
		return NULL;
	}
	c->state = state;
	c->index = slot;
	c->fd = fd;
	s->slots[slot] = c;
	s->slots_used++;
	return c;
}

/* Closing with bytes unread would break the stream off, and with it what the peer hasn't read. */
static void discard_unread(int fd)
{
	uint8_t bytes[4096];

	while (recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
}

static void stream_free(struct uring_streams *s, struct uring_stream *c)
{
	assert(c->entries == 0);
	dsf_memory_delete(s->memory, c->out, URING_STREAM_BUFFER);
	if (!c->reset)
		discard_unread(c->fd);
	close(c->fd);
	s->slots[c->index] = NULL;
	s->slots_used--;
	dsf_memory_delete(s->memory, c, sizeof(*c));
}

static bool know(struct uring_streams *s, struct uring_stream *c, uint32_t number)
{
	struct number *n = dsf_hash_put(&s->numbers, &number);

	if (n == NULL)
		return false;
	assert(n->stream == NULL); /* the node names each but once */
	n->stream = c;
	c->number = number;
	return true;
}

/* A stream of a process that ends, or is killed, ends with it and without a word: one that the
 * kernel went on to close would say, once a new process had given it a device again, that its peer
 * has left in good order. */
static void set_linger(int fd, bool close_in_order)
{
	const struct linger at_once = { .l_onoff = !close_in_order, .l_linger = 0 };

	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
}

/* Nothing more is told of it; it goes with its last entry. */
static void end(struct uring_streams *s, struct uring_stream *c, bool reset)
{
	forget_number(s, c);
	c->state = OVER;
	c->reset = reset;
	set_linger(c->fd, !reset);
	enqueue(s, c);
}

static void tell_closed(
	struct uring_streams *s, struct uring_stream *c, bool reset, dsf_instant now)
{
	uint32_t number = c->number;

	end(s, c, reset);
	node_stream_closed(s->node, number, reset, now);
}

static void tell_room(struct uring_streams *s, struct uring_stream *c, dsf_instant now)
{
	c->room = URING_STREAM_BUFFER - c->size;
	node_stream_writable(s->node, c->number, c->room, now);
}

/* Sockets. */

static void set_options(int fd)
{
	int yes = 1, traffic_class = TRAFFIC_CLASS;

	/* Without them all works, only slower. */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
	(void)setsockopt(fd, IPPROTO_IPV6, IPV6_TCLASS, &traffic_class, sizeof(traffic_class));
	set_linger(fd, false);
}

static struct sockaddr_in6 address_of(const struct dsf_ip6 *address, uint16_t port)
{
	struct sockaddr_in6 a = { .sin6_family = AF_INET6, .sin6_port = htons(port) };

	memcpy(&a.sin6_addr, address->bytes, sizeof(a.sin6_addr));
	return a;
}

/* A socket at that address, or -errno. */
static int open_socket(const struct dsf_ip6 *address, uint16_t port)
{
	struct sockaddr_in6 local = address_of(address, port);
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1, err;

	if (fd < 0)
		return -errno;
	set_options(fd);
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) == 0 &&
		bind(fd, (struct sockaddr *)&local, sizeof(local)) == 0)
		return fd;
	err = -errno;
	close(fd);
	return err;
}

static int open_listener(struct uring_streams *s, unsigned i, const struct dsf_ip6 *address)
{
	int fd = open_socket(address, listener_ports[i]);

	if (fd < 0)
		return fd;
	s->listeners[i].fd = fd;
	return listen(fd, BACKLOG) < 0 ? -errno : 0;
}

int uring_streams_open(struct uring_streams *s, struct uring_loop *loop,
	const struct dsf_memory *memory, struct node *node, uint16_t group,
	const struct dsf_ip6 *address)
{
	int err;

	memset(s, 0, sizeof(*s));
	s->memory = memory;
	s->node = node;
	for (unsigned i = 0; i < URING_STREAM_LISTENERS; i++)
		s->listeners[i].fd = -1;
	dsf_hash_init(
		&s->numbers, memory, sizeof(uint32_t), sizeof(struct number), URING_STREAMS_MAX);
	dsf_hash_init(&s->keys, memory, sizeof(struct dsf_ip6), sizeof(struct key),
		TOPO_BGP_NEIGHBORS_MAX);
	s->loop = loop;
	err = uring_buffers_open(&s->buffers, loop, memory, group, URING_STREAM_RECEIVE_SIZE,
		URING_STREAM_RECEIVES_MAX);
	for (unsigned i = 0; i < URING_STREAM_LISTENERS && err == 0; i++)
		err = open_listener(s, i, address);
	if (err < 0)
		uring_streams_close(s);
	return err;
}

void uring_streams_close(struct uring_streams *s)
{
	if (s->loop == NULL)
		return;
	for (unsigned i = 0; i < URING_STREAM_LISTENERS; i++)
		if (s->listeners[i].fd >= 0)
			close(s->listeners[i].fd);
	for (uint32_t i = 0; i < s->slots_count; i++) {
		if (s->slots[i] == NULL)
			continue;
		s->slots[i]->entries = 0; /* the ring is gone */
		stream_free(s, s->slots[i]);
	}
	dsf_memory_delete(s->memory, s->slots, s->slots_count * sizeof(struct uring_stream *));
	dsf_hash_close(&s->numbers);
	dsf_hash_close(&s->keys);
	uring_buffers_close(&s->buffers);
	s->loop = NULL;
}

static int set_key(int fd, const struct key *key)
{
	struct sockaddr_in6 remote = address_of(&key->remote, 0);
	struct tcp_md5sig md5 = { .tcpm_keylen = (uint16_t)strlen(key->text) };

	memcpy(&md5.tcpm_addr, &remote, sizeof(remote));
	memcpy(md5.tcpm_key, key->text, md5.tcpm_keylen);
	return setsockopt(fd, IPPROTO_TCP, TCP_MD5SIG, &md5, sizeof(md5)) < 0 ? -errno : 0;
}

int uring_streams_key(struct uring_streams *s, const struct dsf_ip6 *remote, const char *key)
{
	struct key *k = dsf_hash_put(&s->keys, remote);
	int err = 0;

	if (k == NULL)
		return -ENOMEM;
	assert(strlen(key) <= URING_STREAM_KEY_MAX);
	memcpy(k->text, key, strlen(key) + 1);
	for (unsigned i = 0; i < URING_STREAM_LISTENERS && err == 0; i++)
		if (listener_ports[i] == NODE_STREAM_BGP)
			err = set_key(s->listeners[i].fd, k);
	return err;
}

/* What the node asks for. */

static void open_stream(struct uring_streams *s, uint32_t number,
	const struct node_stream_ends *ends, dsf_instant now)
{
	const struct key *key = dsf_hash_get(&s->keys, &ends->remote);
	int fd = open_socket(&ends->local, ends->local_port);
	struct uring_stream *c = fd < 0 ? NULL : stream_new(s, fd, CONNECTING);

	/* Without its signature the neighbour's kernel hears nothing: that is how it shows. */
	if (c != NULL && key != NULL && ends->remote_port == NODE_STREAM_BGP)
		(void)set_key(fd, key);

	if (c != NULL && know(s, c, number)) {
		c->remote = address_of(&ends->remote, ends->remote_port);
		c->connect_wanted = true;
		enqueue(s, c);
		return;
	}
	if (fd < 0)
		log_warn("a stream: %s", uring_err_text(fd));
	if (c != NULL)
		stream_free(s, c);
	node_stream_closed(s->node, number, true, now);
}

static void write_stream(struct uring_streams *s, struct uring_stream *c, const uint8_t *bytes,
	uint32_t size, dsf_instant now)
{
	assert(size <= c->room);
	if (c->out == NULL)
		c->out = dsf_memory_new(s->memory, URING_STREAM_BUFFER);
	if (c->out == NULL) { /* a stream with a hole is none */
		tell_closed(s, c, true, now);
		return;
	}
	memcpy(c->out + c->size, bytes, size);
	c->size += size;
	c->room -= size;
	enqueue(s, c);
}

static void close_stream(struct uring_streams *s, struct uring_stream *c, bool reset)
{
	if (reset || c->state != OPEN || c->size == 0) {
		end(s, c, reset);
		return;
	}
	forget_number(s, c);
	c->state = CLOSING;
}

void uring_streams_output(struct uring_streams *s, const struct node_output *out, dsf_instant now)
{
	struct uring_stream *c = find(s, out->stream);

	if (out->kind == NODE_OUTPUT_OPEN)
		open_stream(s, out->stream, &out->ends, now);
	else if (c == NULL)
		return; /* it was closed from the other side at the same time */
	else if (out->kind == NODE_OUTPUT_WRITE)
		write_stream(s, c, out->head, out->head_size, now);
	else
		close_stream(s, c, out->reset);
}

/* What the kernel says. */

void uring_streams_note(struct uring_streams *s, const struct io_uring_cqe *cqe)
{
	struct uring_stream_event *e = &s->events[s->events_count++];

	assert(s->events_count <= URING_STREAM_EVENTS_MAX);
	e->kind = uring_tag_kind(cqe->user_data);
	e->index = uring_tag_index(cqe->user_data);
	e->result = cqe->res;
	e->more = (cqe->flags & IORING_CQE_F_MORE) != 0;
	e->has_buffer = (cqe->flags & IORING_CQE_F_BUFFER) != 0;
	e->buffer = (uint16_t)(cqe->flags >> IORING_CQE_BUFFER_SHIFT);
	if (e->has_buffer)
		(void)uring_buffers_take(&s->buffers, e->buffer);
}

static bool ends_of(int fd, struct node_stream_ends *ends)
{
	struct sockaddr_in6 local, remote;
	socklen_t local_size = sizeof(local), remote_size = sizeof(remote);

	if (getsockname(fd, (struct sockaddr *)&local, &local_size) < 0 ||
		getpeername(fd, (struct sockaddr *)&remote, &remote_size) < 0)
		return false;
	memcpy(ends->local.bytes, &local.sin6_addr, sizeof(ends->local.bytes));
	memcpy(ends->remote.bytes, &remote.sin6_addr, sizeof(ends->remote.bytes));
	ends->local_port = ntohs(local.sin6_port);
	ends->remote_port = ntohs(remote.sin6_port);
	return true;
}

static void accept_stream(struct uring_streams *s, int fd, dsf_instant now)
{
	struct node_stream_ends ends;
	struct uring_stream *c = stream_new(s, fd, OPEN);
	int number;

	if (c == NULL)
		return;
	set_options(fd);
	number = ends_of(fd, &ends) ? node_stream_accept(s->node, &ends, now) : -DSF_E_UNKNOWN;
	if (number < 0) {
		end(s, c, true);
		return;
	}
	if (!know(s, c, (uint32_t)number)) {
		s->refused++;
		end(s, c, true);
		node_stream_closed(s->node, (uint32_t)number, true, now);
		return;
	}
	tell_room(s, c, now);
	enqueue(s, c);
}

static void handle_accept(
	struct uring_streams *s, const struct uring_stream_event *e, dsf_instant now)
{
	if (!e->more)
		s->listeners[e->index].armed = false;
	if (e->result >= 0)
		accept_stream(s, e->result, now);
	else if (e->result != -ECONNABORTED && e->result != -ECANCELED)
		log_warn("accept: %s", uring_err_text(e->result));
}

static void handle_connect(
	struct uring_streams *s, struct uring_stream *c, int result, dsf_instant now)
{
	if (c->state != CONNECTING)
		return;
	if (result < 0) {
		tell_closed(s, c, true, now);
		return;
	}
	c->state = OPEN;
	enqueue(s, c);
	node_stream_connected(s->node, c->number, now);
	if (c->state == OPEN)
		tell_room(s, c, now);
}

static void handle_receive(struct uring_streams *s, struct uring_stream *c,
	const struct uring_stream_event *e, dsf_instant now)
{
	bool ended = e->result == 0 || (e->result < 0 && e->result != -ENOBUFS &&
					       e->result != -EINTR && e->result != -EAGAIN);

	if (!e->more)
		c->receiving = false;
	if (e->result == -ENOBUFS)
		(void)uring_buffers_grow(&s->buffers);
	if (e->result > 0 && c->state == OPEN)
		node_stream_input(s->node, c->number,
			s->buffers.bytes + (size_t)e->buffer * s->buffers.size, (uint32_t)e->result,
			now);
	else if (ended && c->state == OPEN)
		tell_closed(s, c, e->result < 0, now);
	else if (ended && c->state == CLOSING)
		end(s, c, e->result < 0); /* nobody reads what is left */
	enqueue(s, c);
}

static void handle_send(
	struct uring_streams *s, struct uring_stream *c, int result, dsf_instant now)
{
	c->sending = false;
	if (result < 0 && result != -EINTR && result != -EAGAIN) {
		if (c->state == OPEN)
			tell_closed(s, c, true, now);
		else if (c->state == CLOSING)
			end(s, c, true);
		return;
	}
	if (result > 0) {
		c->size -= (uint32_t)result;
		memmove(c->out, c->out + result, c->size);
	}
	if (c->size == 0) {
		dsf_memory_delete(s->memory, c->out, URING_STREAM_BUFFER);
		c->out = NULL;
	}
	if (c->state == CLOSING && c->size == 0)
		end(s, c, false);
	if (c->state == OPEN && c->room < ROOM_TELL_FROM &&
		URING_STREAM_BUFFER - c->size >= ROOM_TELL_FROM)
		tell_room(s, c, now);
	enqueue(s, c);
}

static void handle(struct uring_streams *s, const struct uring_stream_event *e, dsf_instant now)
{
	struct uring_stream *c;

	if (e->kind == URING_KIND_STREAM_ACCEPT) {
		handle_accept(s, e, now);
		return;
	}
	c = s->slots[e->index];
	if (!e->more)
		c->entries--;
	switch (e->kind) {
	case URING_KIND_STREAM_CONNECT: handle_connect(s, c, e->result, now); break;
	case URING_KIND_STREAM_RX: handle_receive(s, c, e, now); break;
	case URING_KIND_STREAM_TX: handle_send(s, c, e->result, now); break;
	default: break; /* a cancellation */
	}
	if (e->has_buffer)
		uring_buffers_give(&s->buffers, e->buffer);
	if (c->state == OVER)
		enqueue(s, c);
}

void uring_streams_handle(struct uring_streams *s, dsf_instant now)
{
	for (uint32_t i = 0; i < s->events_count; i++)
		handle(s, &s->events[i], now);
	s->events_count = 0;
}

/* Into the ring. Entries are plain descriptors. */

static bool put(struct uring_stream *c, struct io_uring_sqe *sqe, enum uring_kind kind)
{
	sqe->user_data = uring_tag(kind, c->index);
	c->entries++;
	return true;
}

static bool arm_connect(struct uring_streams *s, struct uring_stream *c)
{
	struct io_uring_sqe *sqe = uring_loop_entry(s->loop);

	if (sqe == NULL)
		return false;
	io_uring_prep_connect(sqe, c->fd, (struct sockaddr *)&c->remote, sizeof(c->remote));
	c->connect_wanted = false;
	return put(c, sqe, URING_KIND_STREAM_CONNECT);
}

static bool arm_receive(struct uring_streams *s, struct uring_stream *c)
{
	struct io_uring_sqe *sqe = uring_loop_entry(s->loop);

	if (sqe == NULL)
		return false;
	io_uring_prep_recv_multishot(sqe, c->fd, NULL, 0, 0);
	sqe->flags |= IOSQE_BUFFER_SELECT;
	sqe->buf_group = s->buffers.group;
	c->receiving = true;
	return put(c, sqe, URING_KIND_STREAM_RX);
}

static bool arm_send(struct uring_streams *s, struct uring_stream *c)
{
	struct io_uring_sqe *sqe = uring_loop_entry(s->loop);

	if (sqe == NULL)
		return false;
	io_uring_prep_send(sqe, c->fd, c->out, c->size, MSG_NOSIGNAL);
	c->sending = true;
	return put(c, sqe, URING_KIND_STREAM_TX);
}

static bool arm_cancel(struct uring_streams *s, struct uring_stream *c)
{
	struct io_uring_sqe *sqe = uring_loop_entry(s->loop);

	if (sqe == NULL)
		return false;
	io_uring_prep_cancel_fd(sqe, c->fd, IORING_ASYNC_CANCEL_ALL);
	c->cancelled = true;
	return put(c, sqe, URING_KIND_STREAM_CANCEL);
}

/* False: the ring takes no more now. Frees a stream that is over and has no entry left. */
static bool arm(struct uring_streams *s, struct uring_stream *c)
{
	bool done = true;

	if (c->state == OVER) {
		if (c->entries == 0)
			stream_free(s, c);
		else if (!c->cancelled)
			return arm_cancel(s, c);
		return true;
	}
	if (c->connect_wanted)
		done = arm_connect(s, c);
	if (done && c->state != CONNECTING && !c->receiving)
		done = arm_receive(s, c);
	if (done && c->state != CONNECTING && !c->sending && c->size > 0)
		done = arm_send(s, c);
	return done;
}

static void arm_listener(struct uring_streams *s, unsigned i)
{
	struct io_uring_sqe *sqe;

	if (s->listeners[i].armed || (sqe = uring_loop_entry(s->loop)) == NULL)
		return;
	io_uring_prep_multishot_accept(sqe, s->listeners[i].fd, NULL, NULL, SOCK_CLOEXEC);
	sqe->user_data = uring_tag(URING_KIND_STREAM_ACCEPT, i);
	s->listeners[i].armed = true;
}

void uring_streams_arm(struct uring_streams *s)
{
	struct uring_stream *work;

	if (s->loop == NULL)
		return;
	work = s->work;
	s->work = NULL;
	for (struct uring_stream *c = work; c != NULL; c = work) {
		work = c->work_next;
		c->in_work = false;
		if (!arm(s, c))
			enqueue(s, c); /* again in the next turn */
	}
	for (unsigned i = 0; i < URING_STREAM_LISTENERS; i++)
		arm_listener(s, i);
}
