/*
 * netns.h - namespaces, links, addresses, routes, shapers, processes
 *
 * This folder is the only code that touches network namespaces and what is in them. It knows
 * nothing of switches: it is told names, numbers and addresses. Reading order: nl (batches), ns
 * (namespaces), link (veth pairs), addr and route and qdisc (what a host's kernel needs), monitor
 * (news of links), spawn (processes), sweep (finding and removing what was made).
 *
 * Cost. A lab of 400 switches is 400 namespaces, 800 veth pairs and 1,600 ports, so everything
 * is priced per piece. What the kernel charges, and what follows:
 *
 *  - A pair made in one namespace and moved to another costs 33 ms, because each move waits for
 *    the grace periods of RCU; a pair made with both ends straight in their namespaces costs
 *    0.14 ms. So both ends carry IFLA_NET_NS_FD in one RTM_NEWLINK, and nothing is ever visible in
 *    the root namespace.
 *  - Everything of netlink is under one lock (rtnl): more threads make the pairs no faster. What
 *    helps is fewer system calls: up to 64 messages a sendmsg, no look-ups (we choose the
 *    ifindexes), no second visit to a namespace (its netlink socket is kept open meanwhile).
 *  - A link that has kernel IPv6 costs a third more to make and to set up, and then sends multicast
 *    of its own. Switch ports have it off, by the namespace's default, before they exist.
 *  - Removing a namespace waits for RCU as well, 34 ms each, but the kernel removes in one go all
 *    those that are waiting: drop all references in one go, then let it work.
 *
 * The two ends of a pair never have the same ifindex: the kernel takes a link whose peer's index
 * equals its own for a link without peer, calls its carrier loss "not urgent" and reports it
 * up to one second late instead of in 0.2 ms.
 *
 * Ownership is by marks, never by names. A namespace of ours has the alias dsfemu:<lab>:<node> on
 * its lo; a process of ours is in such a namespace and has DSFEMU_LAB=<lab> in the environment it
 * was started with. A file in /run/netns that isn't a namespace yet is ours if it says so
 * inside. Clean-up needs nothing else: no state file, no topology, no supervisor.
 *
 * A namespace lives as long as anything refers to it: its name, a process in it, an open
 * descriptor. Where a stranger's process stays inside, sweep deletes the links, takes the name away
 * and says who it is.
 *
 * One thread only: several calls here move the calling thread to another namespace and say so.
 */
#ifndef DSF_NETNS_NETNS_H
#define DSF_NETNS_NETNS_H

#include "netns/addr.h"
#include "netns/link.h"
#include "netns/monitor.h"
#include "netns/nl.h"
#include "netns/ns.h"
#include "netns/qdisc.h"
#include "netns/route.h"
#include "netns/spawn.h"
#include "netns/sweep.h"

#endif
