#include "netns/monitor.h"
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <linux/rtnetlink.h>

int netns_monitor_open(struct netns_monitor *m)
{
	struct sockaddr_nl address = { .nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK };
	int err;

	m->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
	if (m->fd < 0)
		return -errno;
	err = bind(m->fd, (struct sockaddr *)&address, sizeof(address)) < 0
		      ? -errno
		      : netns_monitor_refresh(m);
	if (err < 0)
		netns_monitor_close(m);
	return err;
}

int netns_monitor_fd(const struct netns_monitor *m)
{
	return m->fd;
}

void netns_monitor_close(struct netns_monitor *m)
{
	if (m->fd >= 0)
		close(m->fd);
	m->fd = -1;
}

int netns_monitor_refresh(struct netns_monitor *m)
{
	uint8_t bytes[64] __attribute__((aligned(8)));
	struct nlmsghdr *message = mnl_nlmsg_put_header(bytes);

	mnl_nlmsg_put_extra_header(message, sizeof(struct ifinfomsg));
	message->nlmsg_type = RTM_GETLINK;
	message->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	message->nlmsg_seq = 1;
	if (send(m->fd, message, message->nlmsg_len, 0) < 0 && errno != EBUSY)
		return -errno; /* EBUSY: a dump is on its way already */
	return 0;
}

void netns_monitor_input(const uint8_t *bytes, size_t size, netns_link_fn fn, void *user)
{
	const struct nlmsghdr *message = (const struct nlmsghdr *)bytes;
	struct netns_link_state state;
	int left = (int)size;

	for (; mnl_nlmsg_ok(message, left); message = mnl_nlmsg_next(message, &left))
		if (netns_link_decode(message, &state))
			fn(user, &state);
}

int netns_monitor_read(struct netns_monitor *m, netns_link_fn fn, void *user)
{
	uint8_t bytes[NETNS_MONITOR_BYTES] __attribute__((aligned(8)));

	for (;;) {
		ssize_t got = recv(m->fd, bytes, sizeof(bytes), 0);
		int err = got < 0 ? -errno : 0;

		if (err == -EAGAIN)
			return 0;
		if (err == -ENOBUFS)
			err = netns_monitor_refresh(m);
		if (err < 0 && err != -EINTR)
			return err;
		if (got > 0)
			netns_monitor_input(bytes, (size_t)got, fn, user);
	}
}
