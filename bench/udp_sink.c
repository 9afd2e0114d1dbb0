/*
 * udp_sink - counts what udp_blast sends
 *
 * usage: udp_sink PORT IDLE-SECONDS
 *
 * Waits for the first datagram (at most a minute), then until none has come for IDLE-SECONDS.
 * Prints {"received":N,"bytes":N,"missing":N,"duplicated":N,"reordered":N,"dropped":N,
 * "seconds":S,"cpu_seconds":S}: missing below the highest number seen; dropped by this socket's own
 * buffer; seconds from the first to the last datagram.
 */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>

#define BATCH     32
#define BYTES_MAX 65536
#define SEEN_MAX  (1u << 28) /* numbers that are told apart */

static uint8_t payload[BATCH][BYTES_MAX], control[BATCH][64];
static struct mmsghdr messages[BATCH];
static struct iovec parts[BATCH];
static uint8_t *seen; /* a bit per number */

static struct {
	uint64_t received, bytes, duplicated, reordered, highest;
	uint32_t dropped;
} total;

static double now_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double cpu_seconds(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static int bound_socket(int port)
{
	struct sockaddr_in6 address = { .sin6_family = AF_INET6,
		.sin6_port = htons((uint16_t)port) };
	int fd = socket(AF_INET6, SOCK_DGRAM, 0), bytes = 64 << 20, yes = 1, no = 0;

	if (fd < 0)
		return -1;
	setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
	setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes));
	setsockopt(fd, SOL_SOCKET, SO_RXQ_OVFL, &yes, sizeof(yes));
	return bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ? -1 : fd;
}

static void count(const struct mmsghdr *m, const uint8_t *bytes)
{
	uint64_t number;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(&m->msg_hdr); c != NULL;
		c = CMSG_NXTHDR((struct msghdr *)&m->msg_hdr, c))
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_RXQ_OVFL)
			memcpy(&total.dropped, CMSG_DATA(c), sizeof(total.dropped));
	if (m->msg_len < sizeof(number))
		return;
	memcpy(&number, bytes, sizeof(number));
	total.received++;
	total.bytes += m->msg_len;
	if (number < total.highest)
		total.reordered++;
	else
		total.highest = number;
	if (number < SEEN_MAX) {
		total.duplicated += seen[number / 8] >> (number % 8) & 1;
		seen[number / 8] |= (uint8_t)(1u << (number % 8));
	}
}

/* True while something came within seconds. */
static int receive(int fd, double seconds)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	int got;

	if (poll(&p, 1, (int)(seconds * 1000)) <= 0)
		return 0;
	for (int i = 0; i < BATCH; i++) {
		parts[i] = (struct iovec){ payload[i], BYTES_MAX };
		memset(&messages[i], 0, sizeof(messages[i]));
		messages[i].msg_hdr.msg_iov = &parts[i];
		messages[i].msg_hdr.msg_iovlen = 1;
		messages[i].msg_hdr.msg_control = control[i];
		messages[i].msg_hdr.msg_controllen = sizeof(control[i]);
	}
	got = recvmmsg(fd, messages, BATCH, MSG_DONTWAIT, NULL);
	for (int i = 0; i < got; i++)
		count(&messages[i], payload[i]);
	return 1;
}

int main(int argc, char **argv)
{
	double first = 0, last = 0, idle;
	int fd;

	if (argc != 3) {
		fprintf(stderr, "usage: udp_sink PORT IDLE-SECONDS\n");
		return 2;
	}
	idle = atof(argv[2]);
	fd = bound_socket(atoi(argv[1]));
	seen = calloc(1, SEEN_MAX / 8);
	if (fd < 0 || seen == NULL) {
		perror("udp_sink");
		return 1;
	}
	while (receive(fd, first == 0 ? 60 : idle)) {
		last = now_seconds();
		if (first == 0)
			first = last;
	}
	printf("{\"received\":%llu,\"bytes\":%llu,\"missing\":%llu,\"duplicated\":%llu,"
	       "\"reordered\":%llu,\"dropped\":%u,\"seconds\":%.6f,\"cpu_seconds\":%.6f}\n",
		(unsigned long long)total.received, (unsigned long long)total.bytes,
		(unsigned long long)(total.received == 0 ? 0
							 : total.highest + 1 + total.duplicated -
								   total.received),
		(unsigned long long)total.duplicated, (unsigned long long)total.reordered,
		total.dropped, last - first, cpu_seconds());
	return 0;
}
