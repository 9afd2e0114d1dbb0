/*
 * udp_sink - counts what udp_blast sends
 *
 * usage: udp_sink PORT IDLE-SECONDS
 *
 * Waits for the first datagram (at most a minute), then until none has come for IDLE-SECONDS.
 * Prints {"received":N,"bytes":N,"missing":N,"duplicated":N,"reordered":N,"dropped":N,
 * "seconds":S,"cpu_seconds":S,"delay_us":{"min","mean","max"}}: missing below the highest number
 * seen; dropped by this socket's own buffer; seconds from the first to the last datagram; delay from
 * a datagram's making to its taking.
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
	uint64_t delay_sum_ns, delay_min_ns, delay_max_ns;
	uint32_t dropped;
} total;

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
	uint64_t head[2], number, delay_ns;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(&m->msg_hdr); c != NULL;
		c = CMSG_NXTHDR((struct msghdr *)&m->msg_hdr, c))
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_RXQ_OVFL)
			memcpy(&total.dropped, CMSG_DATA(c), sizeof(total.dropped));
	if (m->msg_len < sizeof(head))
		return;
	memcpy(head, bytes, sizeof(head));
	number = head[0];
	delay_ns = now_ns() - head[1];
	if (total.received == 0 || delay_ns < total.delay_min_ns)
		total.delay_min_ns = delay_ns;
	if (delay_ns > total.delay_max_ns)
		total.delay_max_ns = delay_ns;
	total.delay_sum_ns += delay_ns;
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
	       "\"reordered\":%llu,\"dropped\":%u,\"seconds\":%.6f,\"cpu_seconds\":%.6f,"
	       "\"delay_us\":{\"min\":%.1f,\"mean\":%.1f,\"max\":%.1f}}\n",
		(unsigned long long)total.received, (unsigned long long)total.bytes,
		(unsigned long long)(total.received == 0 ? 0
							 : total.highest + 1 + total.duplicated -
								   total.received),
		(unsigned long long)total.duplicated, (unsigned long long)total.reordered,
		total.dropped, last - first, cpu_seconds(), (double)total.delay_min_ns / 1e3,
		total.received > 0 ? (double)total.delay_sum_ns / 1e3 / (double)total.received : 0,
		(double)total.delay_max_ns / 1e3);
	return 0;
}
