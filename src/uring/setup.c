#include "uring/setup.h"
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include "fabric/cell.h"
#include "metaroce/wire.h"
#include "netns/netns.h"
#include "node/edge.h"
#include "node/host.h"
#include "topo/bgp.h"
#include "topo/memory.h"
#include "uring/files.h"
#include "uring/guard.h"
#include "uring/log.h"
#include "uring/tun.h"

#define TRAIN_BUFFERS_MAX  64u
#define PACKET_BUFFERS_MAX 128u
#define BUFFER_ALIGN       64u
#define OTHER_FILES        2u /* than ports: the TUN device, the control socket */
#define NS_PER_100_MS      (100 * NS_PER_MS)

/* DESIGN: of reassembly and of MetaRoCE's probes. */
#define LEAST_TIMEOUT_WALL_NS (3 * NS_PER_100_MS)

enum buffer_group { GROUP_TRAINS, GROUP_PACKETS, GROUP_STREAMS };

/* A peer that holds what it sends for the link's delay. */
static bool is_ours(enum topo_role role)
{
	return role != TOPO_ROLE_HOST && role != TOPO_ROLE_EXTERNAL;
}

struct uring_port_config uring_setup_port(
	const struct topo *t, const struct topo_node *self, uint32_t number)
{
	const struct topo_port *port = topo_node_port(t, self, number);
	enum topo_role peer_role = t->nodes[t->ports[port->peer].node].role;
	struct uring_port_config c;

	memset(&c, 0, sizeof(c));
	c.name = port->name;
	c.number = c.index = number;
	c.joined = port->hyperport != TOPO_NONE;
	c.whole = topo_port_whole(t, port)->number;
	c.kind = !port->ethernet
			 ? URING_PORT_FABRIC
			 : (self->role == TOPO_ROLE_HOST ? URING_PORT_HOST : URING_PORT_ETHERNET);
	/* A train's delay counts from the departure it carries. A packet carries none: towards a
	 * host, which holds nothing, the switch holds both ways; between two of our switches the
	 * sender holds. */
	if (c.kind == URING_PORT_FABRIC || (c.kind == URING_PORT_ETHERNET && !is_ours(peer_role)))
		c.delay_ns = t->links[port->link].delay_ns;
	if (c.kind == URING_PORT_ETHERNET)
		c.hold_ns = t->links[port->link].delay_ns;
	return c;
}

/* Buffers fit the largest MTU among the node's links of that kind, and its host port's; 0: it has
 * none. */
static uint32_t buffer_size(const struct uring_process *p, bool ethernet)
{
	uint32_t mtu = ethernet && topo_is_routed(p->self) ? NODE_INBAND_MTU : 0, overhead;

	for (uint32_t i = 0; i < p->self->ports_count; i++) {
		const struct topo_port *port = topo_node_port(p->topo, p->self, i);

		if (port->ethernet == ethernet && p->topo->links[port->link].mtu > mtu)
			mtu = p->topo->links[port->link].mtu;
	}
	if (mtu == 0)
		return 0;
	overhead = uring_port_overhead(ethernet ? URING_PORT_ETHERNET : URING_PORT_FABRIC);
	overhead += 18; /* Ethernet header and a VLAN tag */
	return (mtu + overhead + BUFFER_ALIGN - 1) / BUFFER_ALIGN * BUFFER_ALIGN;
}

static int open_buffers(struct uring_process *p)
{
	uint32_t train_size = buffer_size(p, false), packet_size = buffer_size(p, true);
	int err = 0;

	if (train_size > 0)
		err = uring_buffers_open(&p->trains, &p->loop, &topo_memory, GROUP_TRAINS,
			train_size, TRAIN_BUFFERS_MAX);
	if (err == 0 && packet_size > 0)
		err = uring_buffers_open(&p->packets, &p->loop, &topo_memory, GROUP_PACKETS,
			packet_size, PACKET_BUFFERS_MAX);
	return err;
}

/* The UDP ports that dsf-host speaks; the kernel keeps the rest. */
static void choose_udp_ports(struct uring_port_config *c)
{
	c->udp_ports[0] = METAROCE_UDP_PORT;
	c->udp_ports[1] = NODE_HOST_UDP_PORT;
	c->udp_ports_count = 2;
}

static int open_port(struct uring_process *p, uint32_t number)
{
	struct uring_port_config c = uring_setup_port(p->topo, p->self, number);
	const struct topo_link *link =
		&p->topo->links[topo_node_port(p->topo, p->self, number)->link];
	struct node_impairment own;
	int err;

	if (p->config.starting)
		c.delay_ns = c.hold_ns = 0;
	if (c.kind == URING_PORT_HOST)
		choose_udp_ports(&c);
	err = uring_port_open(&p->ports[number], &c, &p->loop,
		c.kind == URING_PORT_FABRIC ? &p->trains : &p->packets);
	if (err < 0)
		log_err("port %s: %s", c.name, uring_err_text(err));
	uring_inbound_init(&p->ports[number].inbound, p->topo, p->self, number);
	own = node_impairment_own(link);
	uring_port_expect(&p->ports[number], &own, link->rate_bps);
	return err;
}

/* Those that stand for hyperports hear for all of them. */
static int join_ports(struct uring_process *p)
{
	int err = 0;

	for (uint32_t i = 0; i < p->ports_count && err == 0; i++) {
		struct uring_port *port = &p->ports[i];

		if (port->config.joined && !uring_port_is_deaf(port))
			err = uring_port_join(port, p->ports, p->ports_count);
		if (err < 0)
			log_err("port %s: %s", port->config.name, uring_err_text(err));
	}
	return err;
}

static int open_ports(struct uring_process *p)
{
	uint32_t count = p->self->ports_count;
	int err = 0;

	p->ports = calloc(count + 1, sizeof(*p->ports));
	if (p->ports == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i <= count; i++)
		p->ports[i].fd = -1;
	for (; p->ports_count < count && err == 0; p->ports_count++)
		err = open_port(p, p->ports_count);
	if (err == 0)
		err = join_ports(p);
	if (err == 0 && topo_is_routed(p->self)) {
		err = uring_tun_open(
			&p->ports[count], count, p->topo, p->self, &p->loop, &p->packets);
		if (err < 0)
			log_err("%s: %s", URING_TUN_NAME, uring_err_text(err));
		else
			p->ports_count++;
	}
	p->rearm = true;
	return err;
}

/* Before the first port has carrier: what is drained was never anything else. */
static void drain(struct uring_process *p)
{
	struct node_command command = { .kind = NODE_COMMAND_DRAIN_NODE, .drained = true };

	if (p->config.drained)
		(void)node_command(p->node, &command, p->now);
	command.kind = NODE_COMMAND_DRAIN_PORT;
	for (; p->config.drained_ports != NULL && command.port < p->self->ports_count;
		command.port++)
		if (p->config.drained_ports[command.port])
			(void)node_command(p->node, &command, p->now);
}

/* FSDB's, or BGP's. */
static bool has_streams(const struct uring_process *p)
{
	struct topo_bgp_walk walk = { 0 };
	struct topo_bgp_peer peer;

	return (p->config.sessions && topo_is_interface_node(p->self->role)) ||
	       topo_bgp_next(p->topo, p->config.index, &walk, &peer);
}

/* Where the node has peers; before anybody reaches us, so that nobody's first word is lost. BGP
 * comes to the addresses of all ports, so we listen at ::. */
static int open_streams(struct uring_process *p)
{
	static const struct dsf_ip6 everywhere;
	struct topo_bgp_walk walk = { 0 };
	struct topo_bgp_peer peer;
	int err = 0;

	if (has_streams(p))
		err = uring_streams_open(
			&p->streams, &p->loop, &topo_memory, p->node, GROUP_STREAMS, &everywhere);
	while (err == 0 && topo_bgp_next(p->topo, p->config.index, &walk, &peer))
		if (peer.given != NULL && peer.given->md5[0] != '\0')
			err = uring_streams_key(&p->streams, &peer.address, peer.given->md5);
	if (err < 0)
		log_err("streams: %s", uring_err_text(err));
	return err;
}

static int open_node(struct uring_process *p)
{
	uint32_t dilation = p->topo->time_dilation;
	struct node_config config = {
		.topo = p->topo,
		.index = p->config.index,
		.memory = &topo_memory,
		.trace = &p->trace,
		.seed = p->topo->seed,
		.control_dilation = dilation,
		.starting = p->config.starting,
		.streams = has_streams(p),
		.promised = !p->config.sessions,
		/* Noise of a live machine must not look like silence or loss. */
		.reach_refresh_min_ns = URING_REFRESH_MIN_WALL_NS / dilation,
		.reassembly_min_ns = LEAST_TIMEOUT_WALL_NS / dilation,
		.watchdog_min_ns = NS_PER_S / dilation,
		.probe_min_ns = LEAST_TIMEOUT_WALL_NS / dilation,
		/* Five wake-ups are a loop; thin flows pay it once. */
		.credit_retry_min_ns = 10 * NS_PER_MS / dilation,
		.credit_age_min_ns = NS_PER_100_MS / dilation,
	};

	p->node = node_new(&config, p->clock.last);
	p->now = p->clock.last;
	if (p->node == NULL)
		return -ENOMEM;
	drain(p);
	return 0;
}

/* Half a train's time on the fastest port, in wall time; 0 where nothing is dilated. */
static uint64_t coalescing_gap(const struct uring_process *p)
{
	uint64_t fastest_bps = 0;

	for (uint32_t i = 0; i < p->self->ports_count; i++) {
		const struct topo_port *port = topo_node_port(p->topo, p->self, i);
		uint64_t rate_bps = p->topo->links[port->link].rate_bps;

		if (rate_bps == 0)
			return 0;
		if (rate_bps > fastest_bps)
			fastest_bps = rate_bps;
	}
	if (fastest_bps == 0 || p->topo->time_dilation <= 1)
		return 0;
	return dsf_time_of_bytes(p->topo->fabric.train_bytes, fastest_bps) *
	       p->topo->time_dilation / 2;
}

static void trace(void *user, const struct dsf_event *event)
{
	uring_news_trace(user, event);
}

static int open_guards(struct uring_process *p)
{
	struct uring_port_config c;

	if (p->self->role != TOPO_ROLE_HOST)
		return 0;
	choose_udp_ports(&c);
	for (uint32_t i = 0; i < c.udp_ports_count; i++) {
		p->guards[i] = uring_guard_open(c.udp_ports[i]);
		if (p->guards[i] < 0) {
			log_err("UDP port %u: %s", c.udp_ports[i], uring_err_text(p->guards[i]));
			return p->guards[i];
		}
	}
	return 0;
}

/* SIGTERM and SIGINT come through the ring and end the loop between two turns. */
static int open_signals(struct uring_process *p)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	p->signal_fd = signalfd(-1, &set, SFD_CLOEXEC);
	return p->signal_fd < 0 ? -errno : uring_fidelity_watch();
}

static int open_watches(struct uring_process *p)
{
	int err = netns_monitor_open(&p->links);

	if (err < 0) {
		log_err("news of links: %s", uring_err_text(err));
		return err;
	}
	err = open_signals(p);
	if (err == 0)
		err = uring_control_open(&p->control, p->config.control_fd, &p->loop);
	if (err < 0)
		log_err("signals and control: %s", uring_err_text(err));
	else
		uring_process_read_links(p); /* the state as it is now */
	return err;
}

/* What no failure has to undo. */
static void init(struct uring_process *p, const struct uring_node_config *config)
{
	memset(p, 0, sizeof(*p));
	p->config = *config;
	p->topo = config->topo;
	p->self = &config->topo->nodes[config->index];
	p->trace = (struct dsf_trace){ trace, p };
	p->links.fd = p->signal_fd = p->control.fd = -1;
	for (unsigned i = 0; i < URING_PORT_UDP_PORTS_MAX; i++)
		p->guards[i] = -1;
	uring_clock_init(&p->clock, config->epoch_ns, config->topo->time_dilation);
	uring_hold_init(&p->hold, &topo_memory);
	p->timeout_ns = LEAST_TIMEOUT_WALL_NS / p->topo->time_dilation;
	p->gap_ns = config->starting ? 0 : coalescing_gap(p);
}

void uring_setup_started(struct uring_process *p)
{
	struct node_command command = { .kind = NODE_COMMAND_STARTED };

	(void)node_command(p->node, &command, uring_process_catch_up(p)); /* hosts have no use */
	for (uint32_t i = 0; i < p->self->ports_count; i++) {
		struct uring_port_config c = uring_setup_port(p->topo, p->self, i);

		p->ports[i].config.delay_ns = c.delay_ns;
		p->ports[i].config.hold_ns = c.hold_ns;
	}
	p->gap_ns = coalescing_gap(p);
}

int uring_setup_open(struct uring_process *p, const struct uring_node_config *config)
{
	int err;

	init(p, config);
	err = uring_loop_open(&p->loop, p->self->ports_count + OTHER_FILES);
	if (err < 0) {
		log_err("io_uring: %s", uring_err_text(err));
		return err;
	}
	err = uring_news_open(p);
	if (err == 0)
		err = open_buffers(p);
	if (err == 0)
		err = open_node(p);
	if (err == 0)
		err = uring_transmit_open(
			&p->transmit, &p->loop, &topo_memory, &p->payload, p->node);
	if (err < 0)
		log_err("buffers and node: %s", uring_err_text(err));
	if (err == 0)
		err = open_guards(p);
	if (err == 0)
		err = open_ports(p);
	if (err == 0)
		err = open_streams(p);
	if (err == 0)
		err = open_watches(p);
	if (err < 0)
		uring_setup_close(p);
	return err;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void close_ports(struct uring_process *p)
{
	int *fds = p->ports_count > 0 ? malloc(p->ports_count * sizeof(*fds)) : NULL;

	for (uint32_t i = 0; i < p->ports_count; i++) {
		if (fds != NULL)
			fds[i] = p->ports[i].fd;
		else
			uring_port_close(&p->ports[i]);
		p->ports[i].fd = -1;
	}
	if (fds != NULL)
		uring_files_close(fds, p->ports_count);
	free(fds);
}

void uring_setup_close(struct uring_process *p)
{
	/* The ring goes first: it may still hold entries that point into what follows. */
	uring_loop_close(&p->loop);
	uring_streams_close(&p->streams);
	close_ports(p);
	free(p->ports);
	p->ports = NULL;
	p->ports_count = 0;
	netns_monitor_close(&p->links);
	close_fd(&p->signal_fd);
	for (unsigned i = 0; i < URING_PORT_UDP_PORTS_MAX; i++)
		close_fd(&p->guards[i]);
	uring_control_close(&p->control);
	uring_transmit_close(&p->transmit);
	uring_hold_close(&p->hold);
	uring_buffers_close(&p->trains);
	uring_buffers_close(&p->packets);
	if (p->node != NULL)
		node_free(p->node);
	p->node = NULL;
	uring_news_close(p);
}
