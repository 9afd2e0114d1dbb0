/*
 * trace.h - what cores tell their driver
 *
 * Cores emit events, drivers write them (as JSON lines) or drop them. The sink also folds every
 * event into a hash, which is how two runs are shown to be the same.
 */
#ifndef DSF_BASE_TRACE_H
#define DSF_BASE_TRACE_H
#include <stddef.h>
#include <stdint.h>
#include "base/time.h"

/* kind, name of the first number, name of the second number. ROUTE_CHANGED has the upper half of
 * the prefix, and its length x 2^32 + next hops. */
#define DSF_EVENT_LIST(X)                                                                          \
	X(PORT_UP, "port", "")                                                                     \
	X(PORT_DOWN, "port", "")                                                                   \
	X(LINK_LIVE, "port", "")                                                                   \
	X(LINK_SILENT, "port", "")                                                                 \
	X(LINK_ISOLATED, "port", "lost")                                                           \
	X(LINK_RECOVERED, "port", "")                                                              \
	X(LINK_DRAINED, "port", "")                                                                \
	X(LINK_UNDRAINED, "port", "")                                                              \
	X(LINK_PEER_DRAINED, "port", "")                                                           \
	X(LINK_PEER_UNDRAINED, "port", "")                                                         \
	X(LOOP_DETECTED, "port", "")                                                               \
	X(SWITCH_DRAINED, "links", "")                                                             \
	X(SWITCH_UNDRAINED, "links", "")                                                           \
	X(REACH_CHANGED, "destination", "links")                                                   \
	X(BALANCE_CUT, "destination", "")                                                          \
	X(BALANCE_BACK, "destination", "")                                                         \
	X(NEIGHBOR_UP, "port", "")                                                                 \
	X(NEIGHBOR_DOWN, "port", "")                                                               \
	X(FSDB_UP, "destination", "")                                                              \
	X(FSDB_DOWN, "destination", "")                                                            \
	X(FSDB_REJECTED, "destination", "count")                                                   \
	X(FSDB_STALE, "destination", "")                                                           \
	X(BGP_UP, "neighbor", "")                                                                  \
	X(BGP_DOWN, "neighbor", "")                                                                \
	X(ROUTE_CHANGED, "prefix", "length_next_hops")                                             \
	X(PACKET_LOST, "source", "sequence")                                                       \
	X(VOQ_DROPPED, "system_port", "packets")                                                   \
	X(WATCHDOG_DROPPED, "system_port", "packets")                                              \
	X(PACKET_DELIVERED, "port", "size")                                                        \
	X(MESSAGE_DONE, "connection", "message")                                                   \
	X(RETRANSMIT, "path", "sequence")                                                          \
	X(PATH_SUSPECT, "path", "")                                                                \
	X(PATH_DEAD, "path", "")                                                                   \
	X(PATH_GOOD, "path", "")                                                                   \
	X(WORKLOAD_STARTED, "ranks", "")                                                           \
	X(WORKLOAD_DONE, "messages", "")

enum dsf_event_kind {
#define X(kind, first, second) DSF_EVENT_##kind,
	DSF_EVENT_LIST(X)
#undef X
		DSF_EVENT_COUNT
};

struct dsf_event {
	dsf_instant at;
	enum dsf_event_kind kind;
	uint32_t node; /* index in the topology */
	uint64_t a, b; /* meaning: DSF_EVENT_LIST */
};

struct dsf_trace {
	void (*emit)(void *user, const struct dsf_event *event);
	void *user;
};

/* Upper-case name of kind, and of its numbers ("" where it has none); static storage. */
const char *dsf_event_name(enum dsf_event_kind kind);
const char *dsf_event_number_name(enum dsf_event_kind kind, unsigned index);

/* trace may be NULL: nobody listens. */
static inline void dsf_trace_emit(const struct dsf_trace *trace, dsf_instant at,
	enum dsf_event_kind kind, uint32_t node, uint64_t a, uint64_t b)
{
	if (trace != NULL) {
		struct dsf_event event = { at, kind, node, a, b };

		trace->emit(trace->user, &event);
	}
}

#endif
