#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cli/options.h"
#include "cli/supervisor.h"

#define TURN_EVERY    16u   /* nodes built between two looks at what has come */
#define TABLE_BASE    1000u /* route table and rule priority of a host's port: this + its number */
#define BURST_WALL_NS 250000ull /* the least quantum: a shaper may let go this much at once */
#define RTO_MIN_MS    200ull    /* the kernel's own */

/* One that is the node's own network. */
static bool has_kernel(enum topo_role role)
{
	return role == TOPO_ROLE_HOST || role == TOPO_ROLE_EXTERNAL;
}

static enum netns_ns_kind kind_of(const struct topo_node *node)
{
	static const struct dsf_ip6 none;

	switch (node->role) {
	case TOPO_ROLE_HOST: return NETNS_NS_HOST;
	case TOPO_ROLE_EXTERNAL: return NETNS_NS_EXTERNAL;
	case TOPO_ROLE_RDSW:
	case TOPO_ROLE_EDSW:
	case TOPO_ROLE_FDSW:
	case TOPO_ROLE_SDSW:
	case TOPO_ROLE_SSW: break;
	}
	return dsf_ip6_equal(&node->loopback, &none) ? NETNS_NS_CELLS : NETNS_NS_ROUTED;
}

static int fail_netlink(struct supervisor *s, const char *about)
{
	const struct netns_error *e = &s->batch.error;

	supervisor_fail(s, CLI_FAILED, "%s: %s: %s%s%s", about, e->what, strerror(-e->err),
		e->text[0] != '\0' ? ": " : "", e->text);
	return e->err;
}

static int fail_namespace(struct supervisor *s, const struct topo_node *node,
	const struct netns_ns_maker *maker, int err)
{
	if (err == -EEXIST)
		supervisor_fail(s, CLI_FAILED,
			"%s: namespace %s-%s exists and isn't ours: rename it, or choose another "
			"name by --name",
			node->name, s->topo->name, node->name);
	else if (err == -EMFILE || err == -ENFILE)
		supervisor_fail(s, CLI_UNABLE,
			"%s: no more open files: raise ulimit -n (or fs.file-max)", node->name);
	else if (err == -ENOSPC)
		supervisor_fail(s, CLI_UNABLE,
			"%s: no more namespaces or mounts: raise user.max_net_namespaces or "
			"fs.mount-max",
			node->name);
	else
		supervisor_fail(s, CLI_FAILED, "%s: can't make its namespace: %s%s%s", node->name,
			strerror(-err), maker->batch.error.text[0] != '\0' ? ": " : "",
			maker->batch.error.text);
	return err;
}

static int make_namespaces(struct supervisor *s)
{
	static struct netns_ns_maker maker;
	int err = netns_ns_maker_open(&maker, s->topo->name);

	if (err < 0) {
		supervisor_fail(s, CLI_UNABLE, "%s: %s", NETNS_NS_DIR, strerror(-err));
		return err;
	}
	for (uint32_t i = 0; i < s->topo->nodes_count && err == 0; i++) {
		const struct topo_node *node = &s->topo->nodes[i];
		struct stat status;

		err = netns_ns_create(&maker, node->name, kind_of(node), &s->nodes[i].ns);
		if (err == 0 && fstat(s->nodes[i].ns.fd, &status) == 0)
			s->nodes[i].inode = status.st_ino;
		if (err < 0)
			(void)fail_namespace(s, node, &maker, err);
		if (i % TURN_EVERY == 0) {
			supervisor_progress(s, "namespaces", i, s->topo->nodes_count);
			if (!supervisor_turn(s, 0))
				err = -ECANCELED;
		}
	}
	netns_ns_maker_close(&maker);
	return err;
}

static struct netns_link_end end_of(const struct supervisor *s, uint32_t port)
{
	const struct topo_port *p = &s->topo->ports[port];
	enum topo_role role = s->topo->nodes[p->node].role;

	return (struct netns_link_end){ .ns_fd = s->nodes[p->node].ns.fd,
		.ifindex = SUPERVISOR_IFINDEX_BASE + port,
		.name = p->name,
		.mtu = s->topo->links[p->link].mtu,
		.mac = p->mac,
		.single_segment = has_kernel(role) };
}

static int make_links(struct supervisor *s)
{
	const struct topo *t = s->topo;
	char about[2 * (TOPO_NODE_NAME_MAX + TOPO_PORT_NAME_MAX) + 8];

	netns_batch_use(&s->batch, s->nodes[0].ns.nl);
	for (uint32_t i = 0; i < t->links_count; i++) {
		struct netns_link_end a = end_of(s, t->links[i].port_a);
		struct netns_link_end z = end_of(s, t->links[i].port_b);

		netns_link_add(&s->batch, &a, &z, i);
		if (i % (4 * TURN_EVERY) != 0)
			continue;
		supervisor_progress(s, "links", i, t->links_count);
		if (!supervisor_turn(s, 0))
			return -ECANCELED;
	}
	if (netns_batch_flush(&s->batch) < 0) {
		const struct topo_link *link = &t->links[s->batch.error.tag];
		const struct topo_port *a = &t->ports[link->port_a], *z = &t->ports[link->port_b];

		snprintf(about, sizeof(about), "%s:%s - %s:%s", t->nodes[a->node].name, a->name,
			t->nodes[z->node].name, z->name);
		return fail_netlink(s, about);
	}
	return 0;
}

/* Where a port of a host, or of an external node, leads. */
static uint32_t plane_of(const struct topo *t, uint32_t port)
{
	return t->nodes[t->ports[t->ports[port].peer].node].plane;
}

/* A port that carries its plane's prefix: the plane's first. */
static bool first_of_plane(const struct topo *t, uint32_t port)
{
	const struct topo_port *p = &t->ports[port];

	for (uint32_t i = t->nodes[p->node].first_port; i < port; i++)
		if (plane_of(t, i) == plane_of(t, port) && t->ports[i].prefix_length > 0)
			return false;
	return true;
}

static struct netns_route base_route(const struct supervisor *s, uint32_t port)
{
	uint64_t rtt_ms = s->topo->base_rtt_ns * s->topo->time_dilation / NS_PER_MS;

	return (struct netns_route){ .ifindex = SUPERVISOR_IFINDEX_BASE + port,
		.table = NETNS_ROUTE_TABLE_MAIN,
		.target = s->topo->ports[port].address,
		.rto_min_ms = rtt_ms >= RTO_MIN_MS / 2 ? (uint32_t)(2 * rtt_ms) : 0 };
}

/* fd5f:PP00::/24, the plane, by its first port. */
static void add_plane_route(struct supervisor *s, uint32_t port)
{
	const struct topo_port *p = &s->topo->ports[port];
	struct netns_route route = base_route(s, port);

	if (!first_of_plane(s->topo, port))
		return;
	route.gateway = &s->topo->ports[p->peer].address;
	route.source = &p->address;
	route.prefix_length = 24;
	memset(route.target.bytes + 3, 0, 13);
	netns_route_add(&s->batch, &route, port);
}

/* What comes from the port's address goes out there. */
static void add_port_routes(struct supervisor *s, uint32_t port)
{
	const struct topo_port *p = &s->topo->ports[port];
	struct netns_route route = base_route(s, port);

	route.table = TABLE_BASE + p->number;
	route.prefix_length = 64;
	memset(route.target.bytes + 8, 0, 8);
	netns_route_add(&s->batch, &route, port); /* its own subnet */
	route.gateway = &s->topo->ports[p->peer].address;
	route.prefix_length = 0;
	netns_route_add(&s->batch, &route, port); /* everything else */
}

static void add_shaper(struct supervisor *s, uint32_t port)
{
	const struct topo_link *link = &s->topo->links[s->topo->ports[port].link];
	uint64_t wall_bps = link->rate_bps / s->topo->time_dilation;
	uint64_t burst = wall_bps / 8 * BURST_WALL_NS / NS_PER_S;
	uint64_t frame = link->mtu + 14u + NETNS_QDISC_OVERHEAD;
	struct netns_qdisc_tbf tbf = { .rate_bps = wall_bps };

	if (link->rate_bps == 0)
		return; /* unlimited */
	if (burst < 2 * frame)
		burst = 2 * frame;
	tbf.burst_bytes = burst < UINT32_MAX / 2 ? (uint32_t)burst : UINT32_MAX / 2;
	tbf.limit_bytes = link->queue_bytes > frame ? link->queue_bytes : (uint32_t)frame;
	netns_qdisc_tbf(&s->batch, SUPERVISOR_IFINDEX_BASE + port, &tbf, port);
}

void supervisor_configure_port(struct supervisor *s, uint32_t port, bool first)
{
	const struct topo_port *p = &s->topo->ports[port];
	const struct topo_port *peer = &s->topo->ports[p->peer];
	uint32_t ifindex = SUPERVISOR_IFINDEX_BASE + port;

	if (p->prefix_length == 0)
		return;
	netns_addr_add(&s->batch, ifindex, &p->address, p->prefix_length, port);
	if (s->topo->nodes[p->node].role == TOPO_ROLE_HOST) {
		netns_addr_neighbor(&s->batch, ifindex, &peer->address, &peer->mac, port);
		add_port_routes(s, port);
	}
	if (!topo_has_command(&s->topo->nodes[p->node])) /* which has routes of its own */
		add_plane_route(s, port);
	if (!first)
		return; /* rules and shapers stay while a port is down */
	if (s->topo->nodes[p->node].role == TOPO_ROLE_HOST)
		netns_route_rule(&s->batch, &p->address, TABLE_BASE + p->number,
			TABLE_BASE + p->number, port);
	add_shaper(s, port);
}

/* All ports up, and hosts' and external nodes' kernels told what they need. */
static int set_up_ports(struct supervisor *s)
{
	const struct topo *t = s->topo;
	int err = 0;

	for (uint32_t i = 0; i < t->nodes_count && err == 0; i++) {
		const struct topo_node *node = &t->nodes[i];

		netns_batch_use(&s->batch, s->nodes[i].ns.nl);
		for (uint32_t p = 0; p < node->ports_count; p++)
			netns_link_set(
				&s->batch, SUPERVISOR_IFINDEX_BASE + node->first_port + p, true, p);
		for (uint32_t p = 0; has_kernel(node->role) && p < node->ports_count; p++)
			supervisor_configure_port(s, node->first_port + p, true);
		if (netns_batch_flush(&s->batch) < 0)
			err = fail_netlink(s, node->name);
		close(s->nodes[i].ns.nl);
		s->nodes[i].ns.nl = -1;
		if (i % TURN_EVERY == 0) {
			supervisor_progress(s, "ports", i, t->nodes_count);
			if (err == 0 && !supervisor_turn(s, 0))
				err = -ECANCELED;
		}
	}
	return err;
}

static int watch_hosts(struct supervisor *s)
{
	int home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	int err = home < 0 ? -errno : 0;

	for (uint32_t i = 0; i < s->topo->nodes_count && err == 0; i++) {
		if (s->topo->nodes[i].role != TOPO_ROLE_HOST)
			continue;
		err = netns_ns_enter(s->nodes[i].ns.fd);
		if (err == 0)
			err = supervisor_node_watch_ports(&s->nodes[i]);
	}
	if (home >= 0) {
		if (netns_ns_enter(home) < 0)
			abort(); /* never go on in somebody else's namespace */
		close(home);
	}
	if (err < 0)
		supervisor_fail(s, CLI_FAILED, "can't watch the hosts' links: %s", strerror(-err));
	return err;
}

static int start_nodes(struct supervisor *s)
{
	int err = 0;

	for (uint32_t i = 0; i < s->topo->nodes_count && err == 0; i++) {
		struct supervisor_node *n = &s->nodes[i];

		if (n->state == SUPERVISOR_NODE_NONE) {
			err = supervisor_node_spawn(n);
			if (err < 0)
				supervisor_fail(s, CLI_UNABLE, "%s: can't start its process: %s%s",
					s->topo->nodes[i].name, strerror(-err),
					err == -EAGAIN ? ": raise the limit on processes (pids.max "
							 "of the cgroup, "
							 "kernel.pid_max, ulimit -u)"
						       : "");
		}
		netns_ns_close(&n->ns);
		if (i % TURN_EVERY == 0) {
			supervisor_progress(s, "processes", i, s->topo->nodes_count);
			if (err == 0 && !supervisor_turn(s, 0))
				err = -ECANCELED;
		}
	}
	return err;
}

int supervisor_build(struct supervisor *s)
{
	static const struct {
		const char *name;
		int (*fn)(struct supervisor *s);
	} parts[] = {
		{ "namespaces", make_namespaces },
		{ "files", supervisor_external_files },
		{ "links", make_links },
		{ "ports", set_up_ports },
		{ "monitors", watch_hosts },
		{ "processes", start_nodes },
	};
	int err = 0;

	for (size_t i = 0; err == 0 && i < sizeof(parts) / sizeof(parts[0]); i++) {
		int64_t began_ms = supervisor_clock_ms();

		err = parts[i].fn(s);
		supervisor_log(
			s, "%s: %" PRId64 " ms", parts[i].name, supervisor_clock_ms() - began_ms);
	}
	for (uint32_t i = 0; i < s->topo->nodes_count; i++)
		netns_ns_close(&s->nodes[i].ns);
	return err;
}
