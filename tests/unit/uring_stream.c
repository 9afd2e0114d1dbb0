/*
 * Streams over the kernel's TCP, two ends in one process: bytes arrive whole and in order, whoever
 * closes and however; what fails is told once; nothing is left.
 */
#include "uring/stream.h"
#include <arpa/inet.h>
#include <malloc.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/err.h"
#include "tests/descriptors.h"
#include "tests/memory.h"
#include "tests/tap.h"
#include "uring/clock.h"

#define NUMBERS_MAX 4096u
#define PATIENCE_NS (20 * NS_PER_S)
#define GROUP       3

struct ear {
	bool connected, closed, reset;
	uint32_t room;
	uint64_t bytes;
	uint64_t wrong; /* bytes that aren't the next of the pattern */
};

struct node {
	struct uring_streams streams;
	struct uring_loop loop;
	struct ear ears[NUMBERS_MAX];
	uint32_t next; /* number for what is accepted */
	bool refuses;
	struct node_stream_ends last; /* accepted */
	uint32_t unknown;             /* calls for numbers that aren't known or are over */
};

static struct test_memory memory = TEST_MEMORY(memory);
static struct node a, b;
static const dsf_instant now = { 1 };

static struct ear *ear(struct node *n, uint32_t stream)
{
	n->unknown += stream >= NUMBERS_MAX || n->ears[stream].closed;
	return &n->ears[stream % NUMBERS_MAX];
}

int node_stream_accept(struct node *n, const struct node_stream_ends *ends, dsf_instant at)
{
	(void)at;
	n->last = *ends;
	return n->refuses ? -DSF_E_UNKNOWN : (int)n->next++;
}

void node_stream_connected(struct node *n, uint32_t stream, dsf_instant at)
{
	(void)at;
	ear(n, stream)->connected = true;
}

void node_stream_input(
	struct node *n, uint32_t stream, const uint8_t *bytes, uint32_t size, dsf_instant at)
{
	struct ear *e = ear(n, stream);

	(void)at;
	for (uint32_t i = 0; i < size; i++)
		e->wrong += bytes[i] != (uint8_t)((e->bytes + i) * 7 / 5);
	e->bytes += size;
}

void node_stream_writable(struct node *n, uint32_t stream, uint32_t room, dsf_instant at)
{
	(void)at;
	ear(n, stream)->room = room;
}

void node_stream_closed(struct node *n, uint32_t stream, bool reset, dsf_instant at)
{
	struct ear *e = ear(n, stream);

	(void)at;
	e->closed = true;
	e->reset = reset;
}

static struct dsf_ip6 address_of(const char *text)
{
	struct dsf_ip6 address;

	inet_pton(AF_INET6, text, address.bytes);
	return address;
}

static bool start(struct node *n, const char *address)
{
	struct dsf_ip6 ip = address_of(address);

	memset(n, 0, sizeof(*n));
	n->next = 1000;
	return uring_loop_open(&n->loop, 1) == 0 &&
	       uring_streams_open(&n->streams, &n->loop, &memory.memory, n, GROUP, &ip) == 0;
}

static void stop(struct node *n)
{
	uring_loop_close(&n->loop);
	uring_streams_close(&n->streams);
}

static void turn(struct node *n)
{
	struct io_uring_cqe *cqe;

	uring_streams_arm(&n->streams);
	uring_loop_wait(&n->loop, 1, NS_PER_MS);
	while (io_uring_peek_cqe(&n->loop.ring, &cqe) == 0) {
		uring_streams_note(&n->streams, cqe);
		io_uring_cqe_seen(&n->loop.ring, cqe);
	}
	uring_streams_handle(&n->streams, now);
}

/* Turns both until *flag; false: a good while has passed. */
static bool until(const bool *flag)
{
	uint64_t end_ns = uring_clock_wall_ns() + PATIENCE_NS;

	while (!*flag && uring_clock_wall_ns() < end_ns) {
		turn(&a);
		turn(&b);
	}
	return *flag;
}

/* The same until *number is what it is to become. */
static bool comes_to(const uint32_t *number, uint32_t want)
{
	uint64_t end_ns = uring_clock_wall_ns() + PATIENCE_NS;

	while (*number != want && uring_clock_wall_ns() < end_ns) {
		turn(&a);
		turn(&b);
	}
	return *number == want;
}

/* Time for what must not happen. */
static void some_turns(void)
{
	for (unsigned i = 0; i < 50; i++) {
		turn(&a);
		turn(&b);
	}
}

static void open_to(
	struct node *n, uint32_t stream, const char *from, const char *to, uint16_t port)
{
	struct node_output out = { .kind = NODE_OUTPUT_OPEN, .stream = stream };

	out.ends.local = address_of(from);
	out.ends.remote = address_of(to);
	out.ends.remote_port = port;
	uring_streams_output(&n->streams, &out, now);
}

static void write_some(struct node *n, uint32_t stream, uint64_t from, uint32_t size)
{
	struct node_output out = { .kind = NODE_OUTPUT_WRITE, .stream = stream, .head_size = size };
	uint8_t *bytes = malloc(size);

	for (uint32_t i = 0; i < size; i++)
		bytes[i] = (uint8_t)((from + i) * 7 / 5);
	out.head = bytes;
	n->ears[stream].room -= size;
	uring_streams_output(&n->streams, &out, now);
	free(bytes);
}

static void close_it(struct node *n, uint32_t stream, bool reset)
{
	struct node_output out = { .kind = NODE_OUTPUT_CLOSE, .stream = stream, .reset = reset };

	n->ears[stream].closed = true; /* nothing may be told any more */
	uring_streams_output(&n->streams, &out, now);
}

/* Stream number of a to the next number of b. */
static bool join(uint32_t stream, const char *name)
{
	uint32_t there = b.next;

	open_to(&a, stream, "fd00::1", "fd00::2", NODE_STREAM_FSDB);
	return TAP_OK(until(&a.ears[stream].connected) && comes_to(&b.next, there + 1),
		"%s: connected and accepted", name);
}

/* As much as there is room for, until all has been written and has arrived. */
static void send_all(struct node *from, uint32_t stream, struct node *to, uint32_t there,
	uint64_t total, const char *name)
{
	uint64_t end_ns = uring_clock_wall_ns() + PATIENCE_NS, written = 0;

	while (to->ears[there].bytes < total && uring_clock_wall_ns() < end_ns) {
		uint64_t room = from->ears[stream].room, left = total - written;
		uint32_t size = (uint32_t)(left < room ? left : room);

		if (size > 0)
			write_some(from, stream, written, size);
		written += size;
		turn(&a);
		turn(&b);
	}
	TAP_EQ(to->ears[there].bytes, total, "%s: all bytes arrive", name);
	TAP_EQ(to->ears[there].wrong, 0, "%s: in order", name);
}

static void both_ways(void)
{
	if (!join(1, "both ways"))
		return;
	some_turns();
	TAP_EQ(b.next, 1001, "both ways: accepted once");
	TAP_EQ(b.last.local_port, NODE_STREAM_FSDB, "both ways: at the port it was asked at");
	TAP_OK(a.ears[1].room > 0 && b.ears[1000].room > 0, "both ways: both may write");
	send_all(&a, 1, &b, 1000, 3000000, "there");
	send_all(&b, 1000, &a, 1, 3000000, "back");
	close_it(&a, 1, false);
	TAP_OK(until(&b.ears[1000].closed), "closed: told");
	TAP_OK(!b.ears[1000].reset, "closed: in good order");
}

/* What was written before the close arrives, all of it. */
static void last_words(void)
{
	uint32_t there = b.next;

	if (!join(2, "last words"))
		return;
	write_some(&a, 2, 0, a.ears[2].room);
	close_it(&a, 2, false);
	TAP_OK(until(&b.ears[there].closed), "last words: closed");
	TAP_EQ(b.ears[there].bytes, URING_STREAM_BUFFER, "last words: all arrived before");
	TAP_OK(!b.ears[there].reset && b.ears[there].wrong == 0, "last words: in good order");
}

/* Bytes from the other side that nobody will read don't spoil them. */
static void last_words_while_the_other_talks(void)
{
	uint32_t there = b.next;

	if (!join(3, "crossing"))
		return;
	write_some(&a, 3, 0, 30000);
	write_some(&b, there, 0, 20000);
	close_it(&a, 3, false);
	TAP_OK(until(&b.ears[there].closed), "crossing: closed");
	TAP_EQ(b.ears[there].bytes, 30000, "crossing: the last words arrived");
}

static void resets(void)
{
	uint32_t there = b.next;

	if (!join(4, "reset"))
		return;
	close_it(&a, 4, true);
	TAP_OK(until(&b.ears[there].closed) && b.ears[there].reset, "reset: told as one");
}

static void refusals(void)
{
	open_to(&a, 5, "fd00::1", "fd00::2", 12345);
	TAP_OK(until(&a.ears[5].closed) && a.ears[5].reset && !a.ears[5].connected,
		"nobody listens: refused");
	b.refuses = true;
	open_to(&a, 6, "fd00::1", "fd00::2", NODE_STREAM_BGP);
	TAP_OK(until(&a.ears[6].closed) && a.ears[6].reset, "the node refuses: reset");
	b.refuses = false;
	open_to(&a, 7, "fd00::99", "fd00::2", NODE_STREAM_BGP);
	TAP_OK(a.ears[7].closed && a.ears[7].reset, "an address that isn't ours: at once");
	open_to(&a, 8, "fd00::1", "fd00:9::9", NODE_STREAM_BGP);
	some_turns();
	close_it(&a, 8, false);
	TAP_OK(comes_to(&a.streams.slots_used, 0), "closed while it connects: nothing is left");
}

/* Signed streams: with one key at both ends they come up, else nobody hears anything. */
static void keys(void)
{
	struct dsf_ip6 one = address_of("fd00::1"), two = address_of("fd00::2");

	if (uring_streams_key(&b.streams, &one, "secret") == -ENOPROTOOPT) {
		TAP_SKIP("this kernel has no TCP_MD5SIG");
		return;
	}
	open_to(&a, 20, "fd00::1", "fd00::2", NODE_STREAM_BGP);
	some_turns();
	TAP_OK(!a.ears[20].connected, "unsigned: not heard");
	close_it(&a, 20, true);
	TAP_EQ(uring_streams_key(&a.streams, &two, "sesame"), 0, "another key");
	open_to(&a, 21, "fd00::1", "fd00::2", NODE_STREAM_BGP);
	some_turns();
	TAP_OK(!a.ears[21].connected, "the wrong key: not heard");
	close_it(&a, 21, true);
	TAP_EQ(uring_streams_key(&a.streams, &two, "secret"), 0, "the right key");
	open_to(&a, 22, "fd00::1", "fd00::2", NODE_STREAM_BGP);
	TAP_OK(until(&a.ears[22].connected), "the same key: connected");
	close_it(&a, 22, true);
	some_turns();
}

static void many(void)
{
	uint32_t first = b.next, connected = 0, closed = 0;

	for (uint32_t i = 0; i < 200; i++)
		open_to(&a, 100 + i, "fd00::1", "fd00::2", NODE_STREAM_FSDB);
	for (uint32_t i = 0; i < 200; i++)
		connected += until(&a.ears[100 + i].connected);
	TAP_EQ(connected, 200, "many: all connect");
	TAP_OK(comes_to(&b.next, first + 200), "many: all are accepted");
	for (uint32_t i = 0; i < 200; i++)
		write_some(&a, 100 + i, 0, 5000);
	for (uint32_t i = 0; i < 200; i++)
		close_it(&a, 100 + i, false);
	for (uint32_t i = 0; i < 200; i++)
		closed += until(&b.ears[first + i].closed) && b.ears[first + i].bytes == 5000;
	TAP_EQ(closed, 200, "many: what all said arrived");
	TAP_OK(comes_to(&a.streams.slots_used, 0) && comes_to(&b.streams.slots_used, 0),
		"many: nothing is left");
}

/* A kernel thread makes addresses usable, later: without nodad nobody may bind to them until then,
 * and until they are in the local table nobody reaches them. */
static const char network[] =
	"ip link set lo up && ip addr add fd00::1/128 dev lo nodad && "
	"ip addr add fd00::2/128 dev lo nodad && ip -6 route add fd00::/16 dev lo && "
	"for i in $(seq 400); do "
	"[ $(ip -6 route show table local | grep -c '^local fd00::[12] ') != 2 ] || exit 0; "
	"sleep 0.05; done; exit 1";

int main(void)
{
	unsigned descriptors;

	if (unshare(CLONE_NEWNET) < 0) {
		TAP_SKIP("needs root");
		return TAP_DONE();
	}
	if (system(network) != 0)
		TAP_OK(false, "a namespace with two addresses");
	descriptors = descriptors_count();
	if (TAP_OK(start(&a, "fd00::1") && start(&b, "fd00::2"), "both listen")) {
		both_ways();
		last_words();
		last_words_while_the_other_talks();
		resets();
		refusals();
		many();
		keys();
		TAP_EQ(a.unknown + b.unknown, 0, "nothing was told of streams that are over");
		join(9, "cut short");
		stop(&a);
		stop(&b);
	}
	TAP_EQ(descriptors_count(), descriptors, "no descriptor is left");
	TAP_EQ(memory.live, 0, "no memory is left");
	return TAP_DONE();
}
