/*
 * monitor.h - news of links, as they happen
 *
 * A monitor is a netlink socket in the calling thread's namespace that tells every change of
 * a link: a port's carrier is gone 0.2 ms after its other end was set down. For a loop that waits
 * on many things: netns_monitor_fd becomes readable; a loop that reads the socket itself hands
 * what it read to netns_monitor_input.
 */
#ifndef DSF_NETNS_MONITOR_H
#define DSF_NETNS_MONITOR_H
#include <stddef.h>
#include <stdint.h>
#include "netns/link.h"

#define NETNS_MONITOR_BYTES 32768 /* buffer that holds whatever one read brings */

struct netns_monitor {
	int fd;
	bool again; /* ask for all links once more, when the answer under way has ended */
};

/* Starts watching and asks for the present state of all links, which is the first news. */
int netns_monitor_open(struct netns_monitor *m);
int netns_monitor_fd(const struct netns_monitor *m);
void netns_monitor_close(struct netns_monitor *m);

/* Reads everything there is without waiting, calls fn per link. News that got lost (ENOBUFS) are
 * made good by asking for all links again. 0 or -errno. */
int netns_monitor_read(struct netns_monitor *m, netns_link_fn fn, void *user);

/* The same for bytes that the caller has read from the descriptor. */
void netns_monitor_input(
	struct netns_monitor *m, const uint8_t *bytes, size_t size, netns_link_fn fn, void *user);

/* Asks for the present state of all links: comes as news. 0 or -errno. */
int netns_monitor_refresh(struct netns_monitor *m);

#endif
