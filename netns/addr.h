/*
 * addr.h - IPv6 addresses and neighbours of links
 */
#ifndef DSF_NETNS_ADDR_H
#define DSF_NETNS_ADDR_H
#include <stdint.h>
#include "base/address.h"
#include "netns/nl.h"

/* Usable at once: no duplicate address detection. */
void netns_addr_add(struct netns_batch *b, uint32_t ifindex, const struct dsf_ip6 *address,
	unsigned prefix_length, uint32_t tag);

/* A permanent neighbour: never asked for, and outside the table's limit, which all
 * namespaces share. */
void netns_addr_neighbor(struct netns_batch *b, uint32_t ifindex, const struct dsf_ip6 *address,
	const struct dsf_mac *mac, uint32_t tag);

#endif
