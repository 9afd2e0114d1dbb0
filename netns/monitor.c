#include "netns/monitor.h"
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <linux/rtnetlink.h>

#define SEQUENCE_ALL 1u
#define SEQUENCE_ONE 2u

#define RECEIVE_BYTES (4 << 20) /* a crowd of links brings a crowd of news */

/* The kernel gives a new link its queue later, after up to a second where there are many. When it
 * is asked for that one link, it does so first (Linux 6.8; before, it takes its time). */
static void hurry(struct netns_monitor *m, uint32_t ifindex)
{
	uint8_t bytes[64] __attribute__((aligned(8)));
	struct nlmsghdr *message = mnl_nlmsg_put_header(bytes);
	struct ifinfomsg *info = mnl_nlmsg_put_extra_header(message, sizeof(*info));

	message->nlmsg_type = RTM_GETLINK;
	message->nlmsg_flags = NLM_F_REQUEST;
	message->nlmsg_seq = SEQUENCE_ONE;
	info->ifi_index = (int)ifindex;
	(void)send(m->fd, message, message->nlmsg_len, 0); /* or it comes by itself */
}

int netns_monitor_open(struct netns_monitor *m)
{
	struct sockaddr_nl address = { .nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK };
	int err, bytes = RECEIVE_BYTES;

	m->again = false;
	m->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
	if (m->fd < 0)
		return -errno;
	(void)setsockopt(m->fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes));
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
	message->nlmsg_seq = SEQUENCE_ALL;
	m->again = false;
	if (send(m->fd, message, message->nlmsg_len, 0) >= 0)
		return 0;
	m->again =
		errno == EBUSY; /* an answer is on its way, which may have passed what was lost */
	return m->again ? 0 : -errno;
}

void netns_monitor_input(
	struct netns_monitor *m, const uint8_t *bytes, size_t size, netns_link_fn fn, void *user)
{
	const struct nlmsghdr *message = (const struct nlmsghdr *)bytes;
	struct netns_link_state state;
	int left = (int)size;

	for (; mnl_nlmsg_ok(message, left); message = mnl_nlmsg_next(message, &left)) {
		if (message->nlmsg_type == NLMSG_DONE && m->again)
			(void)netns_monitor_refresh(m);
		if (!netns_link_decode(message, &state))
			continue;
		if (state.settling && message->nlmsg_seq != SEQUENCE_ONE)
			hurry(m, state.ifindex);
		fn(user, &state);
	}
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
			netns_monitor_input(m, bytes, (size_t)got, fn, user);
	}
}
