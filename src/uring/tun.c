#include "uring/tun.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "base/time.h"
#include "netns/netns.h"
#include "node/node.h"
#include "uring/log.h"

#define LAB_PREFIX_LENGTH 16u /* of the loopback: fd5f::/16 holds every address of a lab */
#define BUSY_WAIT_MS      5u
#define BUSY_TRIES_MAX    600u
#define RTO_MIN_MS        200u /* the kernel's own */

static int make_device(int fd)
{
	struct ifreq request;

	memset(&request, 0, sizeof(request));
	strcpy(request.ifr_name, URING_TUN_NAME);
	request.ifr_flags = IFF_TUN | IFF_NO_PI;
	/* The device of a process that has just ended goes when the kernel has undone its ring. */
	for (unsigned tries = 0; ioctl(fd, TUNSETIFF, &request) < 0; tries++) {
		const struct timespec pause = { .tv_nsec = BUSY_WAIT_MS * NS_PER_MS };

		if (errno != EBUSY || tries == BUSY_TRIES_MAX)
			return -errno;
		nanosleep(&pause, NULL);
	}
	/* The kernel completes checksums and cuts segments itself. */
	return ioctl(fd, TUNSETOFFLOAD, 0) < 0 ? -errno : 0;
}

/* The smallest MTU of the switch's Ethernet links, so that what the kernel sends passes all. */
static uint32_t inband_mtu(const struct topo *topo, const struct topo_node *self)
{
	uint32_t mtu = 9000;

	for (uint32_t i = 0; i < self->ports_count; i++) {
		const struct topo_port *port = topo_node_port(topo, self, i);

		if (port->ethernet && topo->links[port->link].mtu < mtu)
			mtu = topo->links[port->link].mtu;
	}
	return mtu;
}

static int set_mtu(uint32_t mtu)
{
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0), err;
	struct ifreq request;

	if (fd < 0)
		return -errno;
	memset(&request, 0, sizeof(request));
	strcpy(request.ifr_name, URING_TUN_NAME);
	request.ifr_mtu = (int)mtu;
	err = ioctl(fd, SIOCSIFMTU, &request) < 0 ? -errno : 0;
	close(fd);
	return err;
}

/* Kernel TCP must not take the dilated round trip for a loss; 0 leaves the kernel's value. */
static uint32_t rto_min_ms(const struct topo *topo)
{
	uint64_t rtt_ms = 2 * topo->base_rtt_ns * topo->time_dilation / NS_PER_MS;

	return rtt_ms <= RTO_MIN_MS ? 0 : (uint32_t)(rtt_ms < 60000 ? rtt_ms : 60000);
}

/* With the route by which packets for it go up: the kernel adds it too, but later, and the first
 * word of a peer that is as far already would be lost, which costs it a second. */
static void add_address(struct netns_batch *b, uint32_t ifindex, const struct dsf_ip6 *address)
{
	const struct netns_route up = { .target = *address,
		.prefix_length = 128,
		.ifindex = ifindex,
		.table = NETNS_ROUTE_TABLE_LOCAL,
		.local = true };

	netns_addr_add(b, ifindex, address, 128, 0);
	netns_route_add(b, &up, 0);
}

static void add_addresses(struct netns_batch *b, uint32_t ifindex, const struct topo *topo,
	const struct topo_node *self)
{
	struct netns_route route;

	netns_link_set(b, ifindex, true, 0);
	add_address(b, ifindex, &self->loopback);
	for (uint32_t i = 0; i < self->ports_count; i++) {
		const struct topo_port *port = topo_node_port(topo, self, i);

		if (port->prefix_length > 0)
			add_address(b, ifindex, &port->address);
	}
	memset(&route, 0, sizeof(route));
	route.target.bytes[0] = self->loopback.bytes[0];
	route.target.bytes[1] = self->loopback.bytes[1];
	route.prefix_length = LAB_PREFIX_LENGTH;
	route.source = &self->loopback;
	route.ifindex = ifindex;
	route.table = NETNS_ROUTE_TABLE_MAIN;
	route.rto_min_ms = rto_min_ms(topo);
	netns_route_add(b, &route, 0);
}

static int configure(uint32_t ifindex, const struct topo *topo, const struct topo_node *self)
{
	struct netns_batch batch;
	int fd = netns_nl_open(), err;

	if (fd < 0)
		return fd;
	netns_batch_init(&batch);
	netns_batch_use(&batch, fd);
	add_addresses(&batch, ifindex, topo, self);
	err = netns_batch_flush(&batch);
	if (err < 0)
		log_err("%s: %s: %s", URING_TUN_NAME, batch.error.what, batch.error.text);
	close(fd);
	return err;
}

int uring_tun_open(struct uring_port *p, uint32_t index, const struct topo *topo,
	const struct topo_node *self, struct uring_loop *loop, struct uring_buffers *buffers)
{
	int err;

	memset(p, 0, sizeof(*p));
	p->config.name = URING_TUN_NAME;
	p->config.number = NODE_PORT_INBAND;
	p->config.whole = NODE_PORT_INBAND;
	p->config.index = index;
	p->config.kind = URING_PORT_TUN;
	p->buffers = buffers;
	/* The device gets kernel IPv6, which the switch's data ports don't have. */
	err = netns_ns_ipv6_on();
	if (err < 0)
		return err;
	/* Blocking: entries on non-blocking descriptors fail instead of waiting in the ring. */
	p->fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
	if (p->fd < 0)
		return -errno;
	err = make_device(p->fd);
	if (err == 0)
		err = set_mtu(inband_mtu(topo, self));
	if (err == 0) {
		p->ifindex = if_nametoindex(URING_TUN_NAME);
		err = configure(p->ifindex, topo, self);
	}
	if (err == 0)
		err = uring_loop_add_file(loop, p->fd);
	if (err < 0) {
		uring_port_close(p);
		return err;
	}
	p->slot = err;
	return 0;
}
