/*
 * FSDB over the fabric: what a switch learns on its ports all others use; which sessions end and
 * which don't when links, switches and processes do; what is kept of a peer that is gone.
 */
#include "fsdb/session.h"
#include <string.h>
#include "tests/sim/lab.h"

/* Protocol time is divided by this: hold 60 ms, silence 7.5 ms, heartbeat 1 ms, retry 500 us. */
#define DILATION   2000u
#define SILENCE_NS (FSDB_SILENCE_NS / DILATION)
#define HOLD_NS    (FSDB_HOLD_NS / DILATION)
#define RETRY_NS   (FSDB_RETRY_NS / DILATION)
/* A connection's way back: what TCP repeats may have become as rare as this. */
#define BACK_NS (20 * NS_PER_MS)

static struct lab lab;
static char name[128];

/* Whom a count is about. */
struct sessions {
	uint32_t of,
		not_of; /* nodes: sessions in which of takes part and not_of doesn't; or NONE */
	uint32_t established, count, stale;
	uint64_t flaps, rejected;
};

static void count_session(void *user, const struct node_row *row)
{
	const struct node_row_fsdb_session *r = &row->fsdb_session;
	struct sessions *s = user;

	if (s->of != TOPO_NONE && row->node != s->of && r->peer != s->of)
		return;
	if (s->not_of != TOPO_NONE && (row->node == s->not_of || r->peer == s->not_of))
		return;
	s->count++;
	s->established += r->state == FSDB_ESTABLISHED;
	s->stale += r->stale;
	s->flaps += r->flaps;
	s->rejected += r->rejected;
}

static struct sessions sessions(uint32_t of, uint32_t not_of)
{
	struct sessions s = { .of = of, .not_of = not_of };

	sim_view(lab.sim, TOPO_NONE, NODE_QUERY_FSDB_SESSION, TOPO_NONE, count_session, &s);
	return s;
}

/* What nodes know of an address. */
struct copies {
	struct dsf_ip6 address;
	uint32_t owner;             /* node whose port it is behind */
	uint32_t local, remote;     /* entries with a MAC */
	uint32_t incomplete, wrong; /* local ones without; ones that say something else */
	uint32_t system_port;
	struct dsf_mac mac;
};

static void count_copy(void *user, const struct node_row *row)
{
	const struct node_row_neighbor *r = &row->neighbor;
	struct copies *c = user;

	if (!dsf_ip6_equal(&r->address, &c->address))
		return;
	c->local += r->local && r->state == NODE_NEIGHBOR_REACHABLE;
	c->incomplete += r->local && r->state == NODE_NEIGHBOR_INCOMPLETE;
	c->remote += !r->local;
	c->wrong += r->owner != c->owner || r->system_port != c->system_port ||
		    (r->state == NODE_NEIGHBOR_REACHABLE && memcmp(&r->mac, &c->mac, 6) != 0);
}

/* Copies of the address of a host's port (topo->ports). */
static struct copies copies(uint32_t port)
{
	const struct topo_port *host = &lab.topo->ports[port];
	const struct topo_port *own = &lab.topo->ports[host->peer];
	struct copies c = { .address = host->address,
		.owner = own->node,
		.system_port = own->system_port,
		.mac = host->mac };

	sim_view(lab.sim, TOPO_NONE, NODE_QUERY_NDP, TOPO_NONE, count_copy, &c);
	return c;
}

/* What other switches say of a system port. */
struct ports {
	uint32_t system_port, up, down, stale;
};

static void count_port(void *user, const struct node_row *row)
{
	const struct node_row_system_port *r = &row->system_port;
	struct ports *p = user;

	if (r->local || r->system_port != p->system_port)
		return;
	*(r->up ? &p->up : &p->down) += 1;
	p->stale += r->stale;
}

static struct ports system_ports(uint32_t host_port)
{
	struct ports p = { .system_port =
				   lab.topo->ports[lab.topo->ports[host_port].peer].system_port };

	sim_view(lab.sim, TOPO_NONE, NODE_QUERY_SYSTEM_PORT, TOPO_NONE, count_port, &p);
	return p;
}

static uint32_t leaves_of(uint32_t plane)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < lab.topo->nodes_count; i++)
		count += topo_is_interface_node(lab.topo->nodes[i].role) &&
			 lab.topo->nodes[i].plane == plane;
	return count;
}

/* A host's port, drawn. */
static uint32_t draw_host_port(void)
{
	for (;;) {
		uint32_t port = (uint32_t)dsf_rng_below(&lab.rng, lab.topo->ports_count);

		if (lab.topo->nodes[lab.topo->ports[port].node].role == TOPO_ROLE_HOST)
			return port;
	}
}

static uint32_t draw_leaf(void)
{
	return lab_node(&lab, TOPO_ROLE_RDSW,
		(uint32_t)dsf_rng_below(&lab.rng, lab_count(&lab, TOPO_ROLE_RDSW)));
}

static void open_lab(const char *what, const char *file, uint64_t seed)
{
	struct sessions s;

	snprintf(name, sizeof(name), "%s, %s, seed %" PRIu64, what, file, seed);
	lab_open(&lab, file, seed);
	s = sessions(TOPO_NONE, TOPO_NONE);
	LAB_OK(s.count > 0 && s.established == s.count && s.flaps == 0 && s.rejected == 0,
		"%s: %u sessions", name, s.count);
}

/* A neighbour comes at one switch and is used from all others. */
static void neighbor(const char *file, uint64_t seed)
{
	uint32_t port, host, others;
	dsf_instant learned_at, seen_at;
	struct copies c;

	open_lab("neighbour", file, seed);
	port = draw_host_port();
	host = lab.topo->ports[port].node;
	others = leaves_of(lab.topo->ports[port].plane) - 1;
	c = copies(port);
	LAB_OK(c.local == 1 && c.remote == others && c.wrong == 0 &&
			system_ports(port).up == others,
		"%s: known to all %u", name, others);
	sim_node_stop(lab.sim, host);
	lab_run(&lab, 200 * NS_PER_US);
	c = copies(port);
	LAB_OK(c.local == 0 && c.incomplete == 1 && c.remote == 0,
		"%s: its port is down: only its own switch has an entry", name);
	LAB_OK(system_ports(port).down == others, "%s: all know that the port is down", name);
	if (sim_node_start(lab.sim, host) < 0)
		LAB_OK(false, "%s: no memory", name);
	while (copies(port).local == 0)
		lab_run(&lab, 100);
	learned_at = sim_now(lab.sim);
	while (copies(port).remote < others && sim_now(lab.sim).ns < learned_at.ns + NS_PER_MS)
		lab_run(&lab, 100);
	seen_at = sim_now(lab.sim);
	LAB_OK(seen_at.ns - learned_at.ns <= 3 * lab.topo->base_rtt_ns,
		"%s: everywhere %" PRIu64 " ns after it was learnt, a round trip is %" PRIu64, name,
		seen_at.ns - learned_at.ns, lab.topo->base_rtt_ns);
	LAB_OK(copies(port).wrong == 0, "%s: with its port and MAC", name);
	lab_close(&lab);
}

/* Packets go by what was learnt over FSDB alone, and stop when it is gone. */
static void usable(uint64_t seed)
{
	struct generator_flow flow = { .source = 0,
		.target = 2,
		.size = 1000,
		.dscp = 50,
		.rate_bps = 10000000000ull,
		.stop = DSF_NEVER };
	uint64_t before;
	uint32_t target;

	open_lab("traffic", "mini.json", seed);
	target = (uint32_t)(topo_endpoint_port(lab.topo, flow.target, 0) - lab.topo->ports);
	flow.start = sim_now(lab.sim);
	generator_add(&flow);
	generator_kick(lab.sim);
	lab_run(&lab, 100 * NS_PER_US);
	LAB_OK(generator_count(0)->received > 50 && generator_count(0)->wrong == 0,
		"%s: %" PRIu64 " packets cross", name, generator_count(0)->received);
	sim_link_set(lab.sim, lab.topo->ports[target].link, false);
	lab_run(&lab, 100 * NS_PER_US);
	before = generator_count(0)->received;
	lab_run(&lab, 100 * NS_PER_US);
	LAB_OK(generator_count(0)->received == before && copies(target).remote == 0,
		"%s: the target's link is down: nobody sends to it", name);
	sim_link_set(lab.sim, lab.topo->ports[target].link, true);
	lab_run(&lab, 100 * NS_PER_US);
	LAB_OK(generator_count(0)->received > before, "%s: and up again: everybody does", name);
	lab_close(&lab);
}

/* A leaf's fabric links go one by one, and come back. */
static void links(const char *file, uint64_t seed)
{
	uint32_t leaf, count;
	struct sessions s;

	open_lab("links", file, seed);
	leaf = draw_leaf();
	count = lab_fabric_ports(&lab, leaf);
	for (uint32_t i = 0; i + 1 < count; i++) {
		sim_link_set(lab.sim, lab.topo->ports[lab_fabric_port(&lab, leaf, i)].link, false);
		lab_run(&lab, SILENCE_NS + 2 * NS_PER_MS);
		s = sessions(TOPO_NONE, TOPO_NONE);
		LAB_OK(s.flaps == 0 && s.established == s.count,
			"%s: %u of %u links are down: no session flaps", name, i + 1, count);
	}
	sim_link_set(lab.sim, lab.topo->ports[lab_fabric_port(&lab, leaf, count - 1)].link, false);
	lab_run(&lab, 2 * SILENCE_NS);
	s = sessions(leaf, TOPO_NONE);
	LAB_OK(s.established == 0, "%s: the last link is down: all its sessions end", name);
	s = sessions(TOPO_NONE, leaf);
	LAB_OK(s.established == s.count && s.flaps == 0, "%s: and no other", name);
	sim_link_set(lab.sim, lab.topo->ports[lab_fabric_port(&lab, leaf, 0)].link, true);
	lab_run(&lab, BACK_NS);
	s = sessions(leaf, TOPO_NONE);
	LAB_OK(s.established == s.count, "%s: one link is back: all its sessions are", name);
	LAB_OK(s.stale == 0, "%s: nothing became STALE", name);
	lab_close(&lab);
}

/* A switch restarts: a fabric node costs nobody a session, a leaf its own. */
static void restart(enum topo_role role, uint64_t seed)
{
	uint32_t node, port;
	struct sessions s;

	open_lab(role == TOPO_ROLE_FDSW ? "FDSW restarts" : "RDSW restarts", "mini.json", seed);
	node = role == TOPO_ROLE_FDSW ? lab_node(&lab, role, (uint32_t)seed & 1) : draw_leaf();
	port = draw_host_port();
	if (sim_node_restart(lab.sim, node) < 0)
		LAB_OK(false, "%s: no memory", name);
	lab_run(&lab, BACK_NS);
	s = sessions(TOPO_NONE, role == TOPO_ROLE_FDSW ? TOPO_NONE : node);
	LAB_OK(s.flaps == 0 && s.established == s.count, "%s: no session of others flaps", name);
	s = sessions(node, TOPO_NONE);
	LAB_OK(s.established == s.count, "%s: its own are back", name);
	LAB_OK(role == TOPO_ROLE_FDSW || s.flaps > 0, "%s: having been gone", name);
	LAB_OK(copies(port).remote == leaves_of(lab.topo->ports[port].plane) - 1 &&
			copies(port).wrong == 0,
		"%s: all know the hosts", name);
	lab_close(&lab);
}

/* A leaf is dead for longer than the hold time, and comes back. */
static void hold(uint64_t seed)
{
	uint32_t leaf, port, others;
	struct sessions s;

	open_lab("hold", "mini.json", seed);
	leaf = draw_leaf();
	do {
		port = draw_host_port();
	} while (lab.topo->ports[lab.topo->ports[port].peer].node != leaf);
	others = leaves_of(lab.topo->nodes[leaf].plane) - 1;
	sim_node_stop(lab.sim, leaf);
	lab_run(&lab, 2 * SILENCE_NS);
	s = sessions(leaf, TOPO_NONE);
	LAB_OK(s.established == 0 && s.count == others, "%s: its sessions end", name);
	LAB_OK(s.stale == 0 && copies(port).remote == others, "%s: what it said is held", name);
	lab_run(&lab, HOLD_NS);
	s = sessions(leaf, TOPO_NONE);
	LAB_OK(s.stale == others, "%s: after the hold time it is STALE everywhere", name);
	LAB_OK(copies(port).remote == 0, "%s: its neighbours are gone", name);
	LAB_OK(system_ports(port).stale == others && system_ports(port).down == others,
		"%s: its ports are down and STALE", name);
	s = sessions(TOPO_NONE, leaf);
	LAB_OK(s.stale == 0 && s.flaps == 0, "%s: and only its", name);
	if (sim_node_start(lab.sim, leaf) < 0)
		LAB_OK(false, "%s: no memory", name);
	lab_run(&lab, BACK_NS);
	s = sessions(leaf, TOPO_NONE);
	LAB_OK(s.established == s.count && s.stale == 0 && system_ports(port).stale == 0 &&
			system_ports(port).up == others,
		"%s: back: LIVE", name);
	LAB_OK(copies(port).remote == others && copies(port).wrong == 0, "%s: with its neighbours",
		name);
	lab_close(&lab);
}

/* Heartbeats keep what is quiet; gray links and loss don't end a session. */
static void loss(uint64_t seed)
{
	struct node_impairment impairment = { .loss_ppm = 2000 };
	uint32_t leaf;
	struct sessions s;

	open_lab("loss", "mini.json", seed);
	leaf = draw_leaf();
	for (uint32_t i = 0; i < lab_fabric_ports(&lab, leaf); i++)
		if (lab_impair(&lab, lab_fabric_port(&lab, leaf, i), &impairment) < 0)
			LAB_OK(false, "%s: a link is impaired", name);
	lab_run(&lab, 3 * SILENCE_NS);
	s = sessions(TOPO_NONE, TOPO_NONE);
	LAB_OK(s.flaps == 0 && s.established == s.count && s.rejected == 0,
		"%s: every 500th cell is lost: no session flaps", name);
	lab_close(&lab);
}

static void test(uint64_t seed)
{
	lab_sessions(1);
	neighbor("mini.json", seed);
	neighbor("l2-zone.json", seed);
	usable(seed);
	lab_sessions(DILATION);
	links("mini.json", seed);
	links("figures.json", seed);
	restart(TOPO_ROLE_FDSW, seed);
	restart(TOPO_ROLE_RDSW, seed);
	hold(seed);
	loss(seed);
}

int main(int argc, char **argv)
{
	return lab_main(argc, argv, test, 3);
}
