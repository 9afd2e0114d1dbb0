/*
 * tun.h - the host port of a routed switch: TUN device inband0
 *
 * Bare IPv6 packets, no Ethernet header. Packets for the switch's own addresses go up it into the
 * namespace's kernel, what the kernel sends there is routed like any packet. The device has the
 * switch's loopback and all its port addresses as /128, and the lab's prefix as its route. It is
 * handled as a port whose frames are due when they are read.
 */
#ifndef DSF_URING_TUN_H
#define DSF_URING_TUN_H
#include "topo/model.h"
#include "uring/port.h"

#define URING_TUN_NAME "inband0"

/* Makes the device in this process's namespace and opens it as port p. index: its place among the
 * process's ports. 0 or a negative error. The device goes when the port is closed. */
int uring_tun_open(struct uring_port *p, uint32_t index, const struct topo *topo,
	const struct topo_node *self, struct uring_loop *loop, struct uring_buffers *buffers);

#endif
