/*
 * route.h - IPv6 routes and rules
 */
#ifndef DSF_NETNS_ROUTE_H
#define DSF_NETNS_ROUTE_H
#include <stdbool.h>
#include <stdint.h>
#include "base/address.h"
#include "netns/nl.h"

#define NETNS_ROUTE_TABLE_MAIN  254u
#define NETNS_ROUTE_TABLE_LOCAL 255u

struct netns_route {
	struct dsf_ip6 target;
	unsigned prefix_length;        /* 0: default route */
	const struct dsf_ip6 *gateway; /* NULL: on link */
	const struct dsf_ip6 *source;  /* preferred source address; NULL: the kernel's choice */
	uint32_t ifindex;
	uint32_t table;
	bool local;          /* the target is an address of ours; in the table for those */
	uint32_t rto_min_ms; /* of kernel TCP over this route; 0: the kernel's 200 ms */
};

/* Adds, or replaces the one to the same target in the same table. */
void netns_route_add(struct netns_batch *b, const struct netns_route *route, uint32_t tag);

/* What has this source address looks in this table first. */
void netns_route_rule(struct netns_batch *b, const struct dsf_ip6 *source, uint32_t table,
	uint32_t priority, uint32_t tag);

#endif
