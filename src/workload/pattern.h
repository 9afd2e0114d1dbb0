/*
 * pattern.h - who sends to whom
 *
 * Pure: endpoints are handed in as facts, flows come out, sorted by source then target. The same
 * (kind, scope, seed, endpoints) gives the same flows everywhere.
 */
#ifndef DSF_WORKLOAD_PATTERN_H
#define DSF_WORKLOAD_PATTERN_H
#include <stdbool.h>
#include "workload/spec.h"

/* Where an endpoint (GPU) is; equal numbers mean the same thing. */
struct workload_endpoint {
	uint32_t rank;
	uint32_t host, rail;
	uint32_t rdsw; /* its switch on the first plane it has */
	uint32_t zone, building;
};

/* True when two endpoints may talk within scope. An endpoint never talks to itself. */
bool workload_in_scope(enum workload_scope scope, const struct workload_endpoint *a,
	const struct workload_endpoint *b);

/*
 * Flows of kind among endpoints (in the order given: incast and udp send to the first of them;
 * write pairs the first half with the second). flows has room for count. Returns how many, or
 * -DSF_E_BADFIELD when fewer than two endpoints or the scope leaves some endpoint without a
 * partner.
 */
int workload_flows(enum workload_kind kind, enum workload_scope scope, uint64_t seed,
	const struct workload_endpoint *endpoints, uint32_t count, struct workload_flow *flows);

const char *workload_kind_name(enum workload_kind kind);
const char *workload_scope_name(enum workload_scope scope);

/* 0, or -DSF_E_UNKNOWN. */
int workload_kind_parse(const char *name, enum workload_kind *kind);
int workload_scope_parse(const char *name, enum workload_scope *scope);

#endif
