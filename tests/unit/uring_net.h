/*
 * uring_net.h - a process with a fake node between veth pairs p0-q0, p1-q1 ... of a namespace
 *
 * The test plays the other ends: it sends and receives on q0, q1 ... and turns the process.
 */
#ifndef DSF_TESTS_URING_NET_H
#define DSF_TESTS_URING_NET_H
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "base/cursor.h"
#include "fabric/cell.h"
#include "tests/tap.h"
#include "tests/unit/uring_fake.h"
#include "uring/request.h"
#include "uring/setup.h"

static struct fake_topo lab;
static struct uring_process process;
static int lab_control_fd = -1; /* what the process gets as its control socket */
static bool lab_starting;

__attribute__((unused)) static int run(const char *command)
{
	int status = system(command);

	if (status != 0)
		printf("# %s: %d\n", command, status);
	return status;
}

__attribute__((unused)) static int packet_socket(const char *name, int protocol)
{
	struct sockaddr_ll address = { .sll_family = AF_PACKET };
	int fd = socket(AF_PACKET, SOCK_RAW, 0), bytes = 32 << 20, yes = 1;

	setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes));
	setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &yes, sizeof(yes));
	address.sll_protocol = htons((uint16_t)protocol);
	address.sll_ifindex = (int)if_nametoindex(name);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return -1;
	return fd;
}

__attribute__((unused)) static void make_pairs(unsigned count)
{
	char command[256];

	for (unsigned i = 0; i < count; i++) {
		snprintf(command, sizeof(command),
			"ip link add p%u type veth peer name q%u && ip link set p%u mtu 16384 && "
			"ip link set q%u mtu 16384 && sysctl -qw net.ipv6.conf.p%u.disable_ipv6=1 "
			"net.ipv6.conf.q%u.disable_ipv6=1 && ip link set p%u up && ip link set q%u "
			"up",
			i, i, i, i, i, i, i, i);
		run(command);
	}
}

__attribute__((unused)) static void remove_pairs(unsigned count)
{
	char command[64];

	for (unsigned i = 0; i < count; i++) {
		snprintf(command, sizeof(command), "ip link del p%u", i);
		run(command);
	}
}

__attribute__((unused)) static bool start(
	enum topo_role role, const char *kinds, uint64_t delay_ns, uint32_t dilation)
{
	struct uring_node_config config = {
		.topo = &lab.topo, .control_fd = lab_control_fd, .starting = lab_starting
	};

	fake_topo_init(&lab, role, kinds, delay_ns);
	lab.topo.time_dilation = dilation;
	config.epoch_ns = uring_clock_wall_ns();
	if (uring_setup_open(&process, &config) < 0)
		return false;
	/* Something is always due soon, so that no turn of this test waits for long. */
	fake->deadline = dsf_time_after(process.now, NS_PER_MS / dilation);
	fake->period_ns = NS_PER_MS / dilation;
	return true;
}

#define QUIET_TURNS 50

/* At least that long, and until turns bring nothing more: a slow machine takes longer. */
__attribute__((unused)) static void turn_for_ms(unsigned ms)
{
	uint64_t end_ns = uring_clock_wall_ns() + ms * NS_PER_MS;
	unsigned quiet = 0;

	while (quiet < QUIET_TURNS || uring_clock_wall_ns() < end_ns) {
		uint32_t frames = fake->frames, done = fake->done;

		uring_process_turn(&process);
		quiet = fake->frames == frames && fake->done == done ? quiet + 1 : 0;
	}
}

__attribute__((unused)) static size_t make_train(
	uint8_t *frame, size_t size, dsf_instant depart, uint8_t tag)
{
	memset(frame, 0, size);
	dsf_store_be16(frame + 12, FABRIC_ETHERTYPE);
	dsf_store_be64(frame + 24, depart.ns);
	frame[size - 1] = tag;
	return size;
}

__attribute__((unused)) static size_t make_packet(uint8_t *frame, size_t size, uint8_t tag)
{
	memset(frame, 0, size);
	frame[12] = 0x86;
	frame[13] = 0xdd;
	frame[size - 1] = tag;
	return size;
}

/* A namespace of the test's own, gone when it ends. False: not root. */
__attribute__((unused)) static bool enter_namespace(void)
{
	return geteuid() == 0 && unshare(CLONE_NEWNET) == 0;
}

#endif
