/* Batches, links and the kernel's answers, inside a namespace that has no name. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <poll.h>
#include <unistd.h>
#include <linux/if_packet.h>
#include <sys/socket.h>
#include "netns/netns.h"
#include "tests/tap.h"

static struct netns_batch batch;

struct seen {
	struct netns_link_state last[8];
	unsigned count;
};

static void see(void *user, const struct netns_link_state *state)
{
	struct seen *seen = user;

	if (state->ifindex < 8)
		seen->last[state->ifindex] = *state;
	seen->count++;
}

static int pair(int ns_fd, uint32_t a, uint32_t z)
{
	struct netns_link_end one = { .ns_fd = ns_fd,
		.ifindex = a,
		.name = "fab0",
		.mtu = 65535,
		.mac = { { 2, 0, 0, 0, 0, (uint8_t)a } } };
	struct netns_link_end two = { .ns_fd = ns_fd,
		.ifindex = z,
		.name = "gpu0p1",
		.mtu = 9000,
		.mac = { { 6, 0, 0, 0, 0, (uint8_t)z } },
		.single_segment = true };

	netns_link_add(&batch, &one, &two, 77);
	return netns_batch_flush(&batch);
}

static void test_failures(int ns_fd)
{
	/* The failing message is in the middle: its tag is told, nothing later is lost silently. */
	netns_link_set(&batch, NETNS_LINK_LO, true, 1);
	netns_link_set(&batch, 4242, true, 2);
	netns_link_set(&batch, NETNS_LINK_LO, true, 3);
	TAP_EQ(netns_batch_flush(&batch), -ENODEV, "a link that isn't there is an error");
	TAP_EQ(batch.error.tag, 2, "the error has the tag of its message");
	TAP_OK(strcmp(batch.error.what, "set link up") == 0, "and says what was to be done");
	netns_link_set(&batch, NETNS_LINK_LO, true, 4);
	TAP_EQ(netns_batch_flush(&batch), -ENODEV, "the error stays until reset");
	netns_batch_reset(&batch);
	netns_link_set(&batch, NETNS_LINK_LO, true, 5);
	TAP_EQ(netns_batch_flush(&batch), 0, "after reset the batch works again");
	TAP_EQ(netns_batch_flush(&batch), 0, "an empty batch is no error");
	TAP_EQ(pair(ns_fd, 2, 3), 0, "a pair is made");
	TAP_EQ(pair(ns_fd, 4, 5), -EEXIST, "a second one of the same name is not");
	TAP_EQ(batch.error.tag, 77, "and is named by its tag");
	netns_batch_reset(&batch);

	batch.fd = -1;
	netns_link_set(&batch, NETNS_LINK_LO, true, 6);
	TAP_EQ(netns_batch_flush(&batch), -EBADF, "a socket that is no socket is an error");
	netns_batch_reset(&batch);
}

static void test_many(int nl)
{
	netns_batch_use(&batch, nl);
	for (unsigned i = 0; i < 10 * NETNS_BATCH_MESSAGES_MAX + 3; i++)
		netns_link_set(&batch, NETNS_LINK_LO, i % 2 == 0, i);
	netns_link_set(&batch, 4242, true, 4242);
	TAP_EQ(netns_batch_flush(&batch), -ENODEV,
		"more messages than a batch holds: all are sent");
	TAP_EQ(batch.error.tag, 4242, "an error in the last one is told");
	netns_batch_reset(&batch);
}

static void test_alias(int nl)
{
	char text[NETNS_LINK_ALIAS_MAX + 1];

	TAP_EQ(netns_link_alias_get(nl, 2, text), 0, "a link without alias");
	TAP_OK(text[0] == '\0', "has an empty one");
	netns_link_alias(&batch, 2, "dsfemu:lab:node", 0);
	TAP_EQ(netns_batch_flush(&batch), 0, "an alias is set");
	TAP_EQ(netns_link_alias_get(nl, 2, text), 0, "and read");
	TAP_OK(strcmp(text, "dsfemu:lab:node") == 0, "and is the same");
	TAP_EQ(netns_link_alias_get(nl, 99, text), -ENODEV, "alias of a link that isn't there");
}

static bool wait_carrier(struct netns_monitor *m, struct seen *seen, uint32_t ifindex, bool up)
{
	struct pollfd poller = { .fd = netns_monitor_fd(m), .events = POLLIN };

	for (int tries = 0; tries < 100; tries++) {
		if (netns_monitor_read(m, see, seen) < 0)
			return false;
		if (seen->last[ifindex].ifindex == ifindex && seen->last[ifindex].carrier == up)
			return true;
		if (poll(&poller, 1, 5000) <= 0)
			return false;
	}
	return false;
}

static void test_monitor(void)
{
	struct netns_monitor monitor;
	struct seen seen = { .count = 0 };

	TAP_EQ(netns_monitor_open(&monitor), 0, "a monitor opens");
	TAP_OK(wait_carrier(&monitor, &seen, 2, false), "the first news is the present state");
	TAP_OK(strcmp(seen.last[3].name, "gpu0p1") == 0, "with names");
	netns_link_set(&batch, 2, true, 2);
	netns_link_set(&batch, 3, true, 3);
	TAP_EQ(netns_batch_flush(&batch), 0, "both ends are set up");
	TAP_OK(wait_carrier(&monitor, &seen, 2, true), "carrier comes at one end");
	TAP_OK(wait_carrier(&monitor, &seen, 3, true), "and at the other");
	netns_link_set(&batch, 2, false, 2);
	TAP_EQ(netns_batch_flush(&batch), 0, "one end is set down");
	TAP_OK(wait_carrier(&monitor, &seen, 3, false), "carrier goes at the other");
	TAP_OK(seen.last[3].up, "which is still up itself");
	netns_monitor_input(&monitor, (const uint8_t *)"\x03\x00\x00", 3, see, &seen);
	TAP_OK(true, "half a message is ignored");
	netns_monitor_close(&monitor);
	TAP_EQ(netns_monitor_fd(&monitor), -1, "a closed monitor has no descriptor");
}

static void test_host(int nl)
{
	struct dsf_ip6 own = { { 0xfd, 0x5f, 0, 0, 0, 0, 0, 0, [15] = 2 } };
	struct dsf_ip6 gateway = { { 0xfd, 0x5f, 0, 0, 0, 0, 0, 0, [15] = 1 } };
	struct dsf_mac mac = { { 2, 0, 0, 0, 0, 1 } };
	struct netns_route route = { .target = { { 0xfd, 0x5f } },
		.prefix_length = 24,
		.gateway = &gateway,
		.source = &own,
		.ifindex = 3,
		.table = NETNS_ROUTE_TABLE_MAIN,
		.rto_min_ms = 500 };
	struct netns_qdisc_tbf slow = {
		.rate_bps = 400000000, .burst_bytes = 64000, .limit_bytes = 4194304
	};
	struct netns_qdisc_tbf fast = {
		.rate_bps = 400000000000, .burst_bytes = 4000000, .limit_bytes = 4194304
	};
	struct seen seen = { .count = 0 };

	netns_addr_add(&batch, 3, &own, 64, 0);
	netns_addr_neighbor(&batch, 3, &gateway, &mac, 1);
	netns_route_add(&batch, &route, 2);
	route.prefix_length = 0;
	route.table = 1000;
	netns_route_add(&batch, &route, 3);
	netns_route_rule(&batch, &own, 1000, 1000, 4);
	netns_qdisc_tbf(&batch, 3, &slow, 5);
	netns_qdisc_tbf(&batch, 3, &fast, 6);
	TAP_EQ(netns_batch_flush(&batch), 0, "address, neighbour, routes, rule, shaper are set");
	TAP_EQ(batch.error.tag, 0, "none failed");
	netns_batch_reset(&batch);
	/* Twice the same is no error where restoring does it again, but a rule would be double. */
	netns_addr_add(&batch, 3, &own, 64, 0);
	netns_route_add(&batch, &route, 2);
	TAP_EQ(netns_batch_flush(&batch), 0, "address and route once more");
	TAP_EQ(netns_link_stats(nl, see, &seen), 0, "counters of all links");
	TAP_OK(seen.count >= 3, "lo and both ends are there");
}

/* Carrier is told when what is sent goes out, not earlier, and it is told of all links. */
#define CROWD_PAIRS 60u
#define CROWD_FIRST 1000u

struct crowd {
	int packet_fd;
	uint32_t sent, dropped, arrived;
	bool told[2 * CROWD_PAIRS];
};

static void send_when_up(void *user, const struct netns_link_state *state)
{
	struct crowd *c = user;
	uint32_t number = state->ifindex - CROWD_FIRST;
	struct sockaddr_ll to = {
		.sll_family = AF_PACKET, .sll_ifindex = (int)state->ifindex, .sll_halen = 6
	};

	if (number >= 2 * CROWD_PAIRS || !state->carrier || c->told[number])
		return;
	c->told[number] = true;
	c->sent += sendto(c->packet_fd, "0123456789abcdef", 16, 0, (struct sockaddr *)&to,
			   sizeof(to)) == 16;
}

static void count_crowd(void *user, const struct netns_link_state *state)
{
	struct crowd *c = user;

	if (state->ifindex - CROWD_FIRST >= 2 * CROWD_PAIRS)
		return;
	c->dropped += (uint32_t)state->tx_dropped;
	c->arrived += (uint32_t)state->rx_packets;
}

/* New links send nothing by themselves. */
static void quiet_ipv6(void)
{
	int fd = open("/proc/sys/net/ipv6/conf/default/disable_ipv6", O_WRONLY | O_CLOEXEC);

	TAP_OK(fd >= 0 && write(fd, "1", 1) == 1, "new links have no IPv6");
	close(fd);
}

static void make_crowd(int ns_fd)
{
	for (uint32_t i = 0; i < 2 * CROWD_PAIRS; i += 2) {
		char names[2][NETNS_LINK_NAME_MAX + 1];
		struct netns_link_end ends[2];

		for (uint32_t k = 0; k < 2; k++) {
			snprintf(names[k], sizeof(names[k]), "crowd%u", i + k);
			ends[k] = (struct netns_link_end){
				.ns_fd = ns_fd,
				.ifindex = CROWD_FIRST + i + k,
				.name = names[k],
				.mtu = 9000,
				.mac = { { 2, 0, 0, 1, (uint8_t)((i + k) >> 8), (uint8_t)(i + k) } }
			};
		}
		netns_link_add(&batch, &ends[0], &ends[1], i);
	}
}

static void test_crowd(int nl, int ns_fd)
{
	struct crowd crowd = { .packet_fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0) };
	struct netns_monitor monitor;
	struct pollfd poller = { .events = POLLIN };
	int err = 0;

	quiet_ipv6();
	make_crowd(ns_fd);
	TAP_EQ(netns_batch_flush(&batch), 0, "many links are made");
	for (uint32_t i = 0; i < 2 * CROWD_PAIRS && err == 0; i += 2) {
		netns_link_set(&batch, CROWD_FIRST + i, true, i);
		netns_link_set(&batch, CROWD_FIRST + i + 1, true, i);
		err = netns_batch_flush(&batch);
		if (err == 0)
			err = netns_link_stats(nl, send_when_up, &crowd);
	}
	TAP_EQ(err, 0, "each is set up and looked at");
	TAP_EQ(netns_monitor_open(&monitor), 0, "a monitor opens at once");
	poller.fd = netns_monitor_fd(&monitor);
	while (crowd.sent < 2 * CROWD_PAIRS && err == 0 && poll(&poller, 1, 5000) > 0)
		err = netns_monitor_read(&monitor, send_when_up, &crowd);
	TAP_EQ(crowd.sent, 2 * CROWD_PAIRS, "all get carrier");
	TAP_EQ(netns_link_stats(nl, count_crowd, &crowd), 0, "their counters");
	TAP_EQ(crowd.dropped, 0, "what was sent as soon as there was carrier isn't dropped");
	TAP_EQ(crowd.arrived, 2 * CROWD_PAIRS, "and arrives");
	netns_monitor_close(&monitor);
	close(crowd.packet_fd);
}

int main(void)
{
	int ns_fd, nl;

	if (geteuid() != 0 || unshare(CLONE_NEWNET) < 0) {
		TAP_SKIP("needs root");
		return TAP_DONE();
	}
	ns_fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	nl = netns_nl_open();
	TAP_OK(ns_fd >= 0 && nl >= 0, "netlink opens");
	netns_batch_init(&batch);
	netns_batch_use(&batch, nl);
	test_failures(ns_fd);
	test_many(nl);
	test_alias(nl);
	test_monitor();
	test_host(nl);
	test_crowd(nl, ns_fd);
	TAP_EQ(netns_link_delete_all(nl), 0, "all links are deleted in one go");
	TAP_EQ(netns_link_delete_all(nl), 0, "where there are none that is no error");
	close(nl);
	close(ns_fd);
	return TAP_DONE();
}
