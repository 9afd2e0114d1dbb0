/*
 * ns.h - network namespaces: making, marking, naming, removing
 */
#ifndef DSF_NETNS_NS_H
#define DSF_NETNS_NS_H
#include <stdbool.h>
#include <stdint.h>
#include "netns/nl.h"

#define NETNS_NS_DIR      "/run/netns" /* where `ip netns` looks */
#define NETNS_NS_NAME_MAX 96           /* <lab>-<node>: 32 + 1 + 48 */
#define NETNS_NS_MARK_MAX 104          /* dsfemu:<lab>:<node> */

/* What the kernel's own IPv6 does in a namespace. */
enum netns_ns_kind {
	NETNS_NS_CELLS,    /* nothing: every port carries cells */
	NETNS_NS_ROUTED,   /* nothing on the ports; lo up, for the host port */
	NETNS_NS_HOST,     /* a host without autoconfiguration; lo up */
	NETNS_NS_EXTERNAL, /* a router: it forwards; lo up */
};

struct netns_ns {
	int fd; /* the namespace */
	int nl; /* a route netlink socket in it */
};

/* Makes namespaces for one lab, one after the other. */
struct netns_ns_maker {
	const char *lab;
	int root_fd; /* where the calling thread came from */
	int mark_fd; /* file that names are made of, see netns_ns_create */
	struct netns_batch batch;
};

/* Prepares NETNS_NS_DIR. 0 or -errno. */
int netns_ns_maker_open(struct netns_ns_maker *m, const char *lab);

/* The calling thread is back in its namespace afterwards. */
void netns_ns_maker_close(struct netns_ns_maker *m);

/*
 * A namespace named <lab>-<node>, marked by the alias of its lo. LEAVES the calling thread in the
 * new namespace (going back each time would double the cost) until netns_ns_maker_close.
 * -EEXIST: the name is taken. Whatever moment the process dies at, what is left has the mark: the
 * name appears (as a hard link to a file that contains the mark) before the namespace is bound to
 * it, and the namespace is marked before.
 */
int netns_ns_create(
	struct netns_ns_maker *m, const char *node, enum netns_ns_kind kind, struct netns_ns *ns);

void netns_ns_close(struct netns_ns *ns);

/* Kernel IPv6 on again for links that the calling thread's namespace gets from now on (the host
 * port of a NETNS_NS_ROUTED one). 0 or -errno. */
int netns_ns_ipv6_on(void);

/* A descriptor of a namespace by name: -ENOENT when there is no namespace at that name. */
int netns_ns_open(const char *name);

/* Moves the calling thread into the namespace of fd. 0 or -errno. */
int netns_ns_enter(int fd);

/* The mark of a namespace into mark[NETNS_NS_MARK_MAX + 1], "" when it has none; the calling
 * thread is left in that namespace. 0 or -errno. */
int netns_ns_mark(int fd, char *mark);

/* Takes a name away: unmounts and unlinks it. The namespace lives on while anything else holds it.
 * 0 or -errno. */
int netns_ns_unname(const char *name);

/* True when name is a plain file left by a netns_ns_create of lab that was cut short. */
bool netns_ns_is_stump(const char *name, const char *lab);

#endif
