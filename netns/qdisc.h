/*
 * qdisc.h - the shaper on a host's end of a link
 *
 * A token bucket shared by everything that leaves through the port, the kernel's own packets and
 * dsf-host's frames alike. Its drops are the port's: a loss of the modelled network.
 */
#ifndef DSF_NETNS_QDISC_H
#define DSF_NETNS_QDISC_H
#include <stdint.h>
#include "netns/nl.h"

/* Preamble, FCS and gap: what a frame takes on the wire beyond its bytes. */
#define NETNS_QDISC_OVERHEAD 24u

struct netns_qdisc_tbf {
	uint64_t rate_bps;    /* wall time */
	uint32_t burst_bytes; /* what may leave back to back; at least one whole frame */
	uint32_t limit_bytes; /* what may wait */
};

/* Puts the shaper on a link, or replaces it there. */
void netns_qdisc_tbf(
	struct netns_batch *b, uint32_t ifindex, const struct netns_qdisc_tbf *tbf, uint32_t tag);

#endif
