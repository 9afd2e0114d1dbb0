/*
 * bgp_feed.c - what taking routes and losing them costs a BGP speaker, whichever it is
 *
 * usage: bgp_feed target=ADDRESS local=ADDRESS as=N pid=PID count=COMMAND prefixes=N paths=N
 *
 * Opens one iBGP session with the target, and says UPDATEs that were encoded before: N path ids of
 * each prefix (add-path), or plain prefixes at paths=0. Then it withdraws all, says all again, and
 * closes the connection. After each step it waits until the process rests and COMMAND, run by the
 * shell, prints as many routes as there must be.
 *
 * Prints one JSON object: for each step the CPU time of the process (all threads, from the kernel's
 * own count), and the wall time until it rested; resident memory before, and with all routes.
 * Writing blocks while the target doesn't read; the feeder's own CPU time is feeder_cpu_s.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "base/cursor.h"

#define MESSAGE_MAX 4096u
#define PER_UPDATE  100u /* plain prefixes */
#define WITH_IDS    300u /* prefixes with path ids */
#define SAMPLE_MS   5
#define REST        20u /* samples without CPU time */
#define LIMIT_S     300.0

struct stream {
	uint8_t *bytes;
	size_t size, cap;
};

struct step {
	double cpu_s, wall_s;
};

static struct in6_addr target, local;
static uint16_t as;
static unsigned prefixes, paths;
static long pid;
static const char *count_command;
static int fd;
static double ask_cpu_s;

static void fail(const char *what)
{
	fprintf(stderr, "bgp_feed: %s: %s\n", what, strerror(errno));
	exit(1);
}

static double clock_s(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- the process that is looked at */

static double cpu_of_task(const char *task)
{
	unsigned long long run_ns = 0;
	char path[320];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%ld/task/%s/schedstat", pid, task);
	file = fopen(path, "r");
	if (file == NULL)
		return 0;
	if (fscanf(file, "%llu", &run_ns) != 1)
		run_ns = 0;
	fclose(file);
	return (double)run_ns / 1e9;
}

static double cpu_s(void)
{
	char path[64];
	struct dirent *entry;
	double sum = 0;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%ld/task", pid);
	tasks = opendir(path);
	if (tasks == NULL)
		fail("the target is gone");
	while ((entry = readdir(tasks)) != NULL) {
		if (entry->d_name[0] != '.')
			sum += cpu_of_task(entry->d_name);
	}
	closedir(tasks);
	return sum;
}

static double resident_mb(void)
{
	char path[64];
	long pages = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%ld/statm", pid);
	file = fopen(path, "r");
	if (file == NULL || fscanf(file, "%*d %ld", &pages) != 1)
		fail(path);
	fclose(file);
	return (double)pages * (double)sysconf(_SC_PAGESIZE) / 1e6;
}

static long count(void)
{
	long number = -1;
	FILE *file = popen(count_command, "r");

	if (file == NULL || fscanf(file, "%ld", &number) != 1)
		number = -1;
	if (file != NULL)
		pclose(file);
	return number;
}

/* ---- bytes */

static uint8_t *room(struct stream *s, size_t size)
{
	if (s->cap - s->size < size) {
		s->cap = s->cap * 2 + (1u << 20);
		s->bytes = realloc(s->bytes, s->cap);
		if (s->bytes == NULL)
			fail("memory");
	}
	return s->bytes + s->size;
}

static const uint8_t attributes[] = { 0x40, 1, 1, 0, 0x40, 2, 14, 2, 3, 0xfa, 0x57, 0, 0, 0xfa,
	0x56, 0xea, 2, 0xfa, 0x56, 0xea, 3, 0x40, 5, 4, 0, 0, 0, 100 };

/* Next hops lie on the link, so that every target resolves them. */
static void write_hop(struct dsf_writer *w, unsigned path)
{
	dsf_writer_bytes(w, local.s6_addr, 12);
	dsf_writer_be(w, 0x10000u + path, 4);
}

static void write_prefix(struct dsf_writer *w, unsigned prefix, unsigned path)
{
	uint8_t bytes[11] = { [4] = 48, [5] = 0x2a }; /* path id, length, 2a00::/16 and a number */

	dsf_store_be32(bytes, path);
	dsf_store_be32(bytes + 7, prefix);
	dsf_writer_bytes(w, paths > 0 ? bytes : bytes + 4, paths > 0 ? 11 : 7);
}

/* One UPDATE with prefixes from first on; returns the one behind the last. */
static unsigned encode_one(struct stream *s, unsigned first, unsigned path, bool withdraw)
{
	uint8_t message[MESSAGE_MAX], *size;
	size_t length;
	struct dsf_writer w = { message + 23, message + MESSAGE_MAX, false };
	unsigned most = paths > 0 ? WITH_IDS : PER_UPDATE, i = first;

	if (!withdraw)
		dsf_writer_bytes(&w, attributes, sizeof(attributes));
	dsf_writer_be(&w, withdraw ? 0x900f : 0x900e, 2);
	size = dsf_writer_room(&w, 2);
	dsf_writer_be(&w, 0x000201, 3);
	if (!withdraw) {
		dsf_writer_be(&w, 16, 1);
		write_hop(&w, path);
		dsf_writer_be(&w, 0, 1);
	}
	for (; i < prefixes && i < first + most; i++)
		write_prefix(&w, i, path);
	dsf_store_be16(size, (uint16_t)(w.at - size - 2));
	memset(message, 0xff, 16);
	length = (size_t)(w.at - message);
	dsf_store_be16(message + 16, (uint16_t)length);
	message[18] = 2;
	dsf_store_be16(message + 19, 0);
	dsf_store_be16(message + 21, (uint16_t)(length - 23));
	if (w.failed)
		abort();
	memcpy(room(s, length), message, length);
	s->size += length;
	return i;
}

static void encode(struct stream *s, bool withdraw)
{
	for (unsigned path = 1; path <= (paths > 0 ? paths : 1); path++) {
		for (unsigned i = 0; i < prefixes;)
			i = encode_one(s, i, path, withdraw);
	}
}

/* ---- the session */

static void say(const uint8_t *bytes, size_t size)
{
	uint8_t heard[4096];

	while (size > 0) { /* what the target says is read, so that it goes on */
		struct pollfd poll_fd = { fd, POLLIN | POLLOUT, 0 };
		ssize_t got;

		if (poll(&poll_fd, 1, (int)(LIMIT_S * 1e3)) <= 0)
			fail("it doesn't read");
		if ((poll_fd.revents & POLLIN) != 0 && read(fd, heard, sizeof(heard)) <= 0)
			fail("it closed the connection");
		if ((poll_fd.revents & POLLOUT) == 0)
			continue;
		got = send(fd, bytes, size < 65536 ? size : 65536, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (got < 0 && errno != EAGAIN)
			fail("write");
		bytes += got > 0 ? got : 0;
		size -= got > 0 ? (size_t)got : 0;
	}
}

static void say_keepalive(void)
{
	uint8_t message[19];

	memset(message, 0xff, 16);
	dsf_store_be16(message + 16, sizeof(message));
	message[18] = 4;
	say(message, sizeof(message));
}

static void say_open(void)
{
	uint8_t message[64];
	struct dsf_writer w = { message + 19, message + sizeof(message), false };
	unsigned size = paths > 0 ? 18 : 12;

	dsf_writer_be(&w, 4, 1);
	dsf_writer_be(&w, as, 2);
	dsf_writer_be(&w, 0, 2); /* no hold time: nobody has to speak while others work */
	dsf_writer_be(&w, 0x0a640001, 4);
	dsf_writer_be(&w, size + 2, 1);
	dsf_writer_be(&w, 2, 1);
	dsf_writer_be(&w, size, 1);
	dsf_writer_be(&w, 0x010400020001, 6);
	dsf_writer_be(&w, 0x4104, 2);
	dsf_writer_be(&w, as, 4);
	if (paths > 0)
		dsf_writer_be(&w, 0x450400020102, 6);
	memset(message, 0xff, 16);
	dsf_store_be16(message + 16, (uint16_t)(w.at - message));
	message[18] = 1;
	say(message, (size_t)(w.at - message));
}

static bool try_to_connect(void)
{
	struct sockaddr_in6 from = { .sin6_family = AF_INET6, .sin6_addr = local };
	struct sockaddr_in6 to = {
		.sin6_family = AF_INET6, .sin6_port = htons(179), .sin6_addr = target
	};
	uint8_t heard[4096];

	fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(fd, (struct sockaddr *)&from, sizeof(from)) < 0)
		fail("local");
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0 &&
		read(fd, heard, sizeof(heard)) > 0)
		return true;
	close(fd);
	return false;
}

static void open_session(void)
{
	double until = clock_s(CLOCK_MONOTONIC) + LIMIT_S;

	while (!try_to_connect()) {
		if (clock_s(CLOCK_MONOTONIC) > until)
			fail("connect");
		usleep(100000);
	}
	say_open();
	say_keepalive();
}

/* ---- steps */

/* Until the process rests; what it has used since cpu_before, and when it did last. */
static struct step settle(double cpu_before, double start)
{
	struct step step = { 0, 0 };
	double last = -1;

	for (unsigned quiet = 0; quiet < REST; quiet++) {
		double cpu = cpu_s(), now = clock_s(CLOCK_MONOTONIC);

		if (now - start > LIMIT_S)
			fail("the target doesn't come to an end");
		if (cpu != last) {
			quiet = 0;
			step = (struct step){ cpu - cpu_before, now - start };
		}
		last = cpu;
		usleep(SAMPLE_MS * 1000);
	}
	return step;
}

/* Until it rests with as many routes as it must have. What it cost it to be asked too early is left
 * out. */
static struct step rest(double cpu_before, double start, long wanted)
{
	for (unsigned asked = 0;; asked++) {
		struct step step = settle(cpu_before, start);

		if (count() != wanted)
			continue;
		step.cpu_s -= asked * ask_cpu_s;
		return step;
	}
}

/* What it costs the target to be asked. */
static void measure_asking(void)
{
	double before = cpu_s(), start = clock_s(CLOCK_MONOTONIC);

	(void)count();
	ask_cpu_s = settle(before, start).cpu_s;
}

static struct step tell(const struct stream *s, long wanted)
{
	double cpu_before = cpu_s(), start = clock_s(CLOCK_MONOTONIC);

	say(s->bytes, s->size);
	return rest(cpu_before, start, wanted);
}

static struct step lose(void)
{
	double cpu_before = cpu_s(), start = clock_s(CLOCK_MONOTONIC);

	close(fd);
	return rest(cpu_before, start, 0);
}

static void print_step(const char *name, struct step step)
{
	printf("\"%s\":{\"cpu_s\":%.3f,\"wall_s\":%.3f},", name, step.cpu_s, step.wall_s);
}

static void run(void)
{
	struct stream up = { 0 }, down = { 0 };
	long total = (long)prefixes * (paths > 0 ? paths : 1);
	double before, with;

	encode(&up, false);
	encode(&down, true);
	open_session();
	(void)rest(0, clock_s(CLOCK_MONOTONIC), 0);
	measure_asking();
	before = resident_mb();
	printf("{\"prefixes\":%u,\"routes\":%ld,", prefixes, total);
	print_step("absorb", tell(&up, total));
	with = resident_mb();
	print_step("withdraw", tell(&down, 0));
	print_step("again", tell(&up, total));
	print_step("loss", lose());
	printf("\"memory_mb\":%.1f,\"memory_before_mb\":%.1f,\"bytes\":%zu,\"feeder_cpu_s\":%.3f}"
	       "\n",
		with - before, before, up.size, clock_s(CLOCK_PROCESS_CPUTIME_ID));
	free(up.bytes);
	free(down.bytes);
}

static void read_word(const char *word)
{
	const char *value = strchr(word, '=');

	value = value == NULL ? "" : value + 1;
	if (strncmp(word, "target=", 7) == 0)
		inet_pton(AF_INET6, value, &target);
	else if (strncmp(word, "local=", 6) == 0)
		inet_pton(AF_INET6, value, &local);
	else if (strncmp(word, "as=", 3) == 0)
		as = (uint16_t)atoi(value);
	else if (strncmp(word, "pid=", 4) == 0)
		pid = atol(value);
	else if (strncmp(word, "count=", 6) == 0)
		count_command = value;
	else if (strncmp(word, "prefixes=", 9) == 0)
		prefixes = (unsigned)atoi(value);
	else if (strncmp(word, "paths=", 6) == 0)
		paths = (unsigned)atoi(value);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		read_word(argv[i]);
	if (as == 0 || pid == 0 || count_command == NULL || prefixes == 0) {
		fprintf(stderr, "usage: bgp_feed target=ADDRESS local=ADDRESS as=N pid=PID "
				"count=COMMAND prefixes=N paths=N\n");
		return 2;
	}
	run();
	return 0;
}
