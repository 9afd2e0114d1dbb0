/*
 * process.h - one node, its ring and its clock
 *
 * Theory. A turn of the loop is: read the clock; bring in what the kernel has completed; hand the
 * node everything that is due by now, frames and deadlines in the order of their due instants, each
 * with its due instant as `now`; take its outputs; go into the kernel once, which sends them and
 * waits for the next arrival or the next due instant. A process that was late thus catches up as if
 * it had been on time, and how late it was goes into a histogram.
 *
 * Turns are coalesced: while fabric time is dilated, a process sleeps at least half a quantum of
 * wall time between turns, because no train is due sooner after its departure than that matters.
 * With dilation 1, or unlimited rates, every arrival wakes it.
 *
 * What the node is given as `now` while it puts out frames is the instant of the last thing that
 * was handled, not the clock: a frame that is due between both may still be under way.
 */
#ifndef DSF_URING_PROCESS_H
#define DSF_URING_PROCESS_H
#include <stdbool.h>
#include "base/memory.h"
#include "netns/monitor.h"
#include "node/node.h"
#include "topo/model.h"
#include "uring/buffers.h"
#include "uring/clock.h"
#include "uring/control.h"
#include "uring/fidelity.h"
#include "uring/hold.h"
#include "uring/loop.h"
#include "uring/memory.h"
#include "uring/news.h"
#include "uring/node_main.h"
#include "uring/port.h"
#include "uring/stream.h"
#include "uring/transmit.h"

struct uring_process {
	struct uring_node_config config;
	const struct topo *topo;
	const struct topo_node *self;
	struct dsf_trace trace;
	struct uring_clock clock;
	struct uring_loop loop;
	struct uring_buffers trains, packets; /* receive buffers of fabric and Ethernet ports */
	struct uring_port *ports; /* the topology's by number, then inband0 where there is one */
	uint32_t ports_count;
	struct netns_monitor links;
	struct uring_control control;
	int signal_fd;
	int guards[URING_PORT_UDP_PORTS_MAX]; /* hosts; -1: none */
	uint64_t tun_overruns;                /* as the kernel counted them when last asked */
	uint8_t signal_bytes[128];            /* struct signalfd_siginfo */
	struct uring_hold hold;
	struct uring_memory payload;
	struct uring_transmit transmit;
	struct uring_streams streams; /* interface nodes */
	struct uring_fidelity fidelity;
	struct node *node;
	dsf_instant now;               /* what the node was told last */
	uint64_t timeout_ns;           /* the least that the node waits for a frame */
	uint64_t gap_ns;               /* least wall time between two turns that had work */
	uint64_t worked_at;            /* wall time of the last such turn */
	bool rearm;                    /* some receive has ended and waits to be started again */
	bool starved;                  /* for want of a buffer, in this turn */
	bool links_news, control_news; /* have come in and not been looked at */
	int control_received;          /* as the ring said it */
	bool watching_links, watching_signals; /* their entries are in the ring */
	bool stopping;
	struct uring_news news;
};

/* One turn. 0 or a negative error that ends the process. */
int uring_process_turn(struct uring_process *p);

/* Carrier of a port changed (or is reported for the first time). */
void uring_process_carrier(struct uring_process *p, uint32_t port, bool up);

/* Takes the news of links that there are. */
void uring_process_read_links(struct uring_process *p);

/* Hands the node everything that is due by the clock, so that a command finds it up to date;
 * returns the instant to give the command. */
dsf_instant uring_process_catch_up(struct uring_process *p);

/* Brings all sockets' drop counts into the fidelity record. */
void uring_process_collect_drops(struct uring_process *p);

#endif
