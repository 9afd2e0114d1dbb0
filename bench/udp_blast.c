/*
 * udp_blast - sends numbered UDP datagrams as fast as it can, or at a given rate
 *
 * usage: udp_blast ADDRESS PORT PAYLOAD-BYTES SECONDS [PACKETS-PER-SECOND]
 *
 * Prints {"sent":N,"refused":N,"seconds":S,"cpu_seconds":S}. The first 8 bytes of each payload are
 * its number, which udp_sink checks, the next 8 CLOCK_MONOTONIC in ns when it was made.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>

#define BATCH       32
#define PAYLOAD_MAX 65000

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static double now_seconds(void)
{
	return (double)now_ns() / 1e9;
}

static double cpu_seconds(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static int connected_socket(const char *address, const char *port)
{
	struct addrinfo hints = { .ai_socktype = SOCK_DGRAM, .ai_flags = AI_NUMERICHOST };
	struct addrinfo *found;
	int fd, bytes = 4 << 20;

	if (getaddrinfo(address, port, &hints, &found) != 0)
		return -1;
	fd = socket(found->ai_family, SOCK_DGRAM, 0);
	if (fd >= 0 && connect(fd, found->ai_addr, found->ai_addrlen) < 0)
		fd = -1;
	freeaddrinfo(found);
	if (fd >= 0)
		setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes));
	return fd;
}

struct batch {
	struct mmsghdr messages[BATCH];
	struct iovec parts[BATCH];
	uint8_t payload[BATCH][PAYLOAD_MAX];
};

static struct batch batch;

static void prepare(size_t size)
{
	for (int i = 0; i < BATCH; i++) {
		batch.parts[i] = (struct iovec){ batch.payload[i], size };
		batch.messages[i].msg_hdr.msg_iov = &batch.parts[i];
		batch.messages[i].msg_hdr.msg_iovlen = 1;
	}
}

/* How many may go now; sleeps a little when none. */
static int allowance(double rate, double started, uint64_t sent)
{
	double due = (now_seconds() - started) * rate - (double)sent;

	if (rate <= 0)
		return BATCH;
	if (due < 1) {
		struct timespec pause = { .tv_nsec = 100000 };

		nanosleep(&pause, NULL);
		return 0;
	}
	return due < BATCH ? (int)due : BATCH;
}

int main(int argc, char **argv)
{
	uint64_t sent = 0, refused = 0;
	double started, end, rate;
	size_t size;
	int fd;

	if (argc < 5) {
		fprintf(stderr, "usage: udp_blast ADDRESS PORT BYTES SECONDS [PACKETS/S]\n");
		return 2;
	}
	fd = connected_socket(argv[1], argv[2]);
	size = (size_t)atol(argv[3]);
	rate = argc > 5 ? atof(argv[5]) : 0;
	if (fd < 0 || size < 2 * sizeof(sent) || size > PAYLOAD_MAX) {
		fprintf(stderr, "udp_blast: bad address or size\n");
		return 2;
	}
	prepare(size);
	started = now_seconds();
	end = started + atof(argv[4]);
	while (now_seconds() < end) {
		int count = allowance(rate, started, sent), done;

		for (int i = 0; i < count; i++) {
			uint64_t head[2] = { sent + (uint64_t)i, now_ns() };

			memcpy(batch.payload[i], head, sizeof(head));
		}
		done = count == 0 ? 0 : sendmmsg(fd, batch.messages, (unsigned)count, 0);
		if (done < 0 && errno != ENOBUFS && errno != ECONNREFUSED && errno != EAGAIN) {
			perror("udp_blast: sendmmsg");
			return 1;
		}
		if (done < 0)
			refused++;
		else
			sent += (uint64_t)done;
	}
	printf("{\"sent\":%llu,\"refused\":%llu,\"seconds\":%.6f,\"cpu_seconds\":%.6f}\n",
		(unsigned long long)sent, (unsigned long long)refused, now_seconds() - started,
		cpu_seconds());
	return 0;
}
