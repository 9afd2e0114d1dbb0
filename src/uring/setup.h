/*
 * setup.h - opening and closing what a process works with
 */
#ifndef DSF_URING_SETUP_H
#define DSF_URING_SETUP_H
#include "uring/process.h"

/* Live a reachability refresh lasts at least this long, in wall time. */
#define URING_REFRESH_MIN_WALL_NS (100 * NS_PER_MS)

/* Makes the node, the ring, the ports and, on routed switches, the host port; starts watching links
 * and the control socket. 0 or a negative error, logged; everything is undone then. */
int uring_setup_open(struct uring_process *p, const struct uring_node_config *config);

void uring_setup_close(struct uring_process *p);

/* The lab has started (uring_node_config). What was sent before stays as it is. */
void uring_setup_started(struct uring_process *p);

/* How a port of the topology is driven: what it is, and where its link's delay is held. */
struct uring_port_config uring_setup_port(
	const struct topo *t, const struct topo_node *self, uint32_t number);

#endif
