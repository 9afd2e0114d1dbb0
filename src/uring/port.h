/*
 * port.h - a port is a network device with an AF_PACKET socket
 *
 * Fabric ports see only trains (our EtherType). Ethernet ports of switches see everything that
 * comes in. Ports of a host see only what dsf-host speaks, chosen by a filter in the kernel; the
 * rest is the host kernel's own traffic. Ethernet ports use the virtio net header, because a veth
 * sender may leave a checksum to be completed.
 *
 * Members of a hyperport have one receiving socket together, that of the port that stands for it:
 * it hears all of them, in the order in which the kernel handed their frames over. Their sender is
 * one thread, which sends in order of departure, each frame into the queue of this socket before
 * the next. So order over several links holds as it does on one, without a header. The others'
 * sockets send only.
 *
 * When something arrived is the kernel's stamp, not the moment at which we read it, so this
 * process's scheduling changes neither order nor timing. A train carries its own departure.
 */
#ifndef DSF_URING_PORT_H
#define DSF_URING_PORT_H
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include "base/time.h"
#include "node/node.h"
#include "uring/buffers.h"
#include "uring/clock.h"
#include "uring/fidelity.h"
#include "uring/inbound.h"
#include "uring/loop.h"

#define URING_PORT_RECEIVE_BYTES (8 * 1024 * 1024)
#define URING_PORT_SEND_BYTES    (4 * 1024 * 1024)
#define URING_PORT_VNET_HEADER   10u
#define URING_PORT_UDP_PORTS_MAX 4u

enum uring_port_kind {
	URING_PORT_FABRIC,   /* trains */
	URING_PORT_ETHERNET, /* a switch's Ethernet port */
	URING_PORT_HOST,     /* a host's: only the given UDP ports */
	URING_PORT_TUN,      /* inband0: tun.h */
};

struct uring_port_config {
	const char *name; /* of the network device; borrowed while the port is open */
	uint32_t number;  /* node.h's */
	uint32_t index;   /* place among the process's ports */
	enum uring_port_kind kind;
	bool joined;       /* a member of a hyperport */
	uint32_t whole;    /* then: number of the port that stands for it; else its own */
	uint64_t delay_ns; /* from arrival (train: departure) to due */
	uint64_t hold_ns;  /* Ethernet: from departure to sending */
	uint16_t udp_ports[URING_PORT_UDP_PORTS_MAX];
	uint32_t udp_ports_count;
};

struct uring_port {
	struct uring_port_config config;
	struct uring_buffers *buffers;
	int fd;   /* -1: closed */
	int slot; /* in the loop */
	uint32_t ifindex;
	bool carrier;
	bool armed;             /* a multishot receive is running */
	struct msghdr receive;  /* template for multishot recvmsg */
	dsf_instant arrived_at; /* the last arrival: stamps of one port never run backwards */
	uint32_t refused;       /* sends that failed since the last settle */
	uint32_t carrier_downs; /* how often the kernel saw the carrier go, as it last told */
	uint64_t ahead_ns;      /* a train's departure lies ahead of now by so much at most */
	struct uring_inbound inbound;
};

/* What came in: bytes lie in the buffer that was parsed. */
struct uring_arrival {
	const uint8_t *bytes;
	uint32_t size;
	dsf_instant due;
	uint32_t ifindex; /* hyperports: of the member that it came by; else 0 */
	uint16_t checksum_start, checksum_offset; /* as in node_frame */
};

/* Bytes that a buffer needs beyond the frame itself. */
uint32_t uring_port_overhead(enum uring_port_kind kind);

/* Opens the socket. 0 or -errno. */
int uring_port_open(struct uring_port *p, const struct uring_port_config *config,
	struct uring_loop *loop, struct uring_buffers *buffers);
void uring_port_close(struct uring_port *p);

/* From now on p, open as are the others among these ports, hears all members of the hyperport for
 * which it stands. 0 or -errno. */
int uring_port_join(struct uring_port *p, const struct uring_port *ports, uint32_t count);

/* A member that another one hears for. */
static inline bool uring_port_is_deaf(const struct uring_port *p)
{
	return p->config.joined && p->config.whole != p->config.number;
}

/* Starts the multishot receive. False: no entry was to be had, try later. */
bool uring_port_arm(struct uring_port *p, struct uring_loop *loop);

/* The peer puts its departures off by this, from now on or already: a link is impaired alike at
 * both ends. rate_bps: the link's, where the impairment has none. */
void uring_port_expect(
	struct uring_port *p, const struct node_impairment *impairment, uint64_t rate_bps);

/* Reads what a receive put into buffer. 0; -EPROTO: a frame of several segments; -EMSGSIZE: cut off
 * by the buffer; -EBADMSG: not even a header; -ERANGE: a train that departs too far ahead. */
int uring_port_parse(struct uring_port *p, const struct uring_clock *clock, uint8_t *buffer,
	uint32_t size, struct uring_arrival *a);

/* Adds what the socket has dropped since the last call. */
void uring_port_collect_drops(struct uring_port *p, struct uring_fidelity *f);

/* Books refused sends: cut when the link is down, or was (went_down) since the kernel last told of
 * it; else a drop of the emulator (or, on a host, of its own queueing discipline, which is
 * modelled). */
void uring_port_settle(struct uring_port *p, struct uring_fidelity *f, bool went_down);

#endif
