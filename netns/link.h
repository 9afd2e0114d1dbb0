/*
 * link.h - veth pairs and the state of links
 *
 * Functions that take a batch only add messages to it; see nl.h for when they take effect.
 */
#ifndef DSF_NETNS_LINK_H
#define DSF_NETNS_LINK_H
#include <stdbool.h>
#include <stdint.h>
#include "base/address.h"
#include "netns/nl.h"

#define NETNS_LINK_LO        1u /* ifindex of lo in every namespace */
#define NETNS_LINK_NAME_MAX  15
#define NETNS_LINK_ALIAS_MAX 128 /* bytes without the final zero; the kernel takes 255 */

/* One end of a veth pair. */
struct netns_link_end {
	int ns_fd;
	uint32_t ifindex; /* chosen by us; must differ from the other end's: see netns.h */
	const char *name;
	uint32_t mtu;
	struct dsf_mac mac;
	bool single_segment; /* the kernel's own TCP sends through this end: no segments over MTU */
};

/* A pair with both ends straight in their namespaces, down. b->fd may be in any namespace. */
void netns_link_add(struct netns_batch *b, const struct netns_link_end *a,
	const struct netns_link_end *z, uint32_t tag);

void netns_link_set(struct netns_batch *b, uint32_t ifindex, bool up, uint32_t tag);

void netns_link_alias(struct netns_batch *b, uint32_t ifindex, const char *alias, uint32_t tag);

/* The alias of a link into text[NETNS_LINK_ALIAS_MAX + 1], "" when it has none. 0 or -errno. */
int netns_link_alias_get(int fd, uint32_t ifindex, char *text);

/* Deletes every link but lo of the namespace of fd, all in one go, and clears lo's alias. */
int netns_link_delete_all(int fd);

struct netns_link_state {
	uint32_t ifindex;
	char name[NETNS_LINK_NAME_MAX + 1];
	bool up;       /* administratively */
	bool carrier;  /* up at both ends, and what is sent goes out */
	bool settling; /* up at both ends, but its queue isn't there yet: what is sent vanishes */
	bool deleted;
	uint32_t carrier_downs; /* how often the carrier went since the link was made */
	uint64_t rx_packets, tx_packets, rx_bytes, tx_bytes, rx_dropped, tx_dropped;
	uint64_t qdisc_dropped; /* only from netns_link_stats */
};

typedef void (*netns_link_fn)(void *user, const struct netns_link_state *state);

/* State of an RTM_NEWLINK or RTM_DELLINK; false for any other message or a bad one. */
bool netns_link_decode(const struct nlmsghdr *message, struct netns_link_state *state);

/* State of one link as it is now. 0 or -errno. */
int netns_link_get(int fd, uint32_t ifindex, struct netns_link_state *state);

/* Every link of the namespace of fd with the kernel's counters. 0 or -errno. */
int netns_link_stats(int fd, netns_link_fn fn, void *user);

#endif
