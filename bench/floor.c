/*
 * floor - what the kernel alone takes for a lab's namespaces and links
 *
 *   floor [-f] TOPOLOGY.json
 *
 * Makes the same namespaces and veth pairs as `dsfemu up`, by batched netlink, sets all links up
 * and takes everything down again; with -f a process is forked into each namespace too, which waits
 * and is killed. Prints "UP_MS DOWN_MS". Needs root. Its namespaces have no marks and names of
 * their own: floor-<node>.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "netns/link.h"
#include "netns/nl.h"
#include "netns/ns.h"
#include "tests/source.h"

#define LAB          "floor"
#define IFINDEX_BASE 1000u

struct lab {
	struct topo *topo;
	struct netns_ns *ns;
	pid_t *pids;
	struct netns_batch batch;
};

static void die(const char *what, int err)
{
	fprintf(stderr, "floor: %s: %s\n", what, strerror(-err));
	exit(1);
}

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static struct netns_link_end end_of(const struct lab *l, uint32_t port)
{
	const struct topo_port *p = &l->topo->ports[port];

	return (struct netns_link_end){ .ns_fd = l->ns[p->node].fd,
		.ifindex = IFINDEX_BASE + port,
		.name = p->name,
		.mtu = p->ethernet ? 9000 : 65000,
		.mac = p->mac };
}

static void make_namespaces(struct lab *l)
{
	struct netns_ns_maker maker;
	int err = netns_ns_maker_open(&maker, LAB);

	for (uint32_t i = 0; i < l->topo->nodes_count && err == 0; i++)
		err = netns_ns_create(&maker, l->topo->nodes[i].name, NETNS_NS_CELLS, &l->ns[i]);
	netns_ns_maker_close(&maker);
	if (err < 0)
		die("namespaces", err);
}

static void make_links(struct lab *l)
{
	const struct topo *t = l->topo;

	netns_batch_use(&l->batch, l->ns[0].nl);
	for (uint32_t i = 0; i < t->links_count; i++) {
		struct netns_link_end a = end_of(l, t->links[i].port_a);
		struct netns_link_end z = end_of(l, t->links[i].port_b);

		netns_link_add(&l->batch, &a, &z, i);
	}
	if (netns_batch_flush(&l->batch) < 0)
		die("links", l->batch.error.err);
	for (uint32_t i = 0; i < t->nodes_count; i++) {
		netns_batch_use(&l->batch, l->ns[i].nl);
		for (uint32_t p = 0; p < t->nodes[i].ports_count; p++)
			netns_link_set(
				&l->batch, IFINDEX_BASE + t->nodes[i].first_port + p, true, p);
		if (netns_batch_flush(&l->batch) < 0)
			die("links up", l->batch.error.err);
	}
}

static void fork_nodes(struct lab *l)
{
	for (uint32_t i = 0; i < l->topo->nodes_count; i++) {
		l->pids[i] = fork();
		if (l->pids[i] < 0)
			die("fork", -errno);
		if (l->pids[i] > 0)
			continue;
		if (netns_ns_enter(l->ns[i].fd) < 0)
			_exit(1);
		for (;;)
			pause();
	}
}

static void take_down(struct lab *l)
{
	char name[NETNS_NS_NAME_MAX + 1];

	for (uint32_t i = 0; i < l->topo->nodes_count; i++)
		if (l->pids[i] > 0)
			kill(l->pids[i], SIGKILL);
	for (uint32_t i = 0; i < l->topo->nodes_count; i++)
		if (l->pids[i] > 0)
			waitpid(l->pids[i], NULL, 0);
	for (uint32_t i = 0; i < l->topo->nodes_count; i++) {
		snprintf(name, sizeof(name), "%s-%s", LAB, l->topo->nodes[i].name);
		netns_ns_close(&l->ns[i]);
		(void)netns_ns_unname(name);
	}
}

int main(int argc, char **argv)
{
	bool with_processes = argc == 3 && strcmp(argv[1], "-f") == 0;
	struct lab l = { 0 };
	double start, up, down;

	if (argc != 2 && !with_processes) {
		fprintf(stderr, "usage: floor [-f] TOPOLOGY.json\n");
		return 2;
	}
	l.topo = source_topo_path(argv[argc - 1]);
	l.ns = calloc(l.topo->nodes_count, sizeof(*l.ns));
	l.pids = calloc(l.topo->nodes_count, sizeof(*l.pids));
	if (l.ns == NULL || l.pids == NULL)
		die("memory", -ENOMEM);
	netns_batch_init(&l.batch);
	start = now_ms();
	make_namespaces(&l);
	make_links(&l);
	if (with_processes)
		fork_nodes(&l);
	up = now_ms();
	take_down(&l);
	down = now_ms();
	printf("%.1f %.1f\n", up - start, down - up);
	free(l.ns);
	free(l.pids);
	topo_free(l.topo);
	return 0;
}
