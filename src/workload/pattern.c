#include "workload/pattern.h"
#include <string.h>
#include "base/err.h"
#include "base/rng.h"

#define RNG_KIND  0x7065726d75746573ull /* "permutes" */
#define STEPS_MAX 64u                   /* of a repair, an endpoint */

static const char *const kinds[] = { [WORKLOAD_UDP] = "udp",
	[WORKLOAD_WRITE] = "write",
	[WORKLOAD_PERMUTATION] = "permutation",
	[WORKLOAD_INCAST] = "incast" };
static const char *const scopes[] = { [WORKLOAD_SCOPE_ANY] = "any",
	[WORKLOAD_SCOPE_CROSS_RDSW] = "cross-rdsw",
	[WORKLOAD_SCOPE_CROSS_ZONE] = "cross-zone",
	[WORKLOAD_SCOPE_CROSS_BUILDING] = "cross-building",
	[WORKLOAD_SCOPE_SAME_RAIL] = "same-rail" };

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static bool same_text(const char *a, const char *b)
{
	size_t size = strlen(a);

	return size == strlen(b) && memcmp(a, b, size) == 0;
}

static int find_name(const char *const *names, unsigned count, const char *name)
{
	for (unsigned i = 0; i < count; i++)
		if (same_text(names[i], name))
			return (int)i;
	return -DSF_E_UNKNOWN;
}

const char *workload_kind_name(enum workload_kind kind)
{
	return (unsigned)kind < COUNT(kinds) ? kinds[kind] : "unknown";
}

const char *workload_scope_name(enum workload_scope scope)
{
	return (unsigned)scope < COUNT(scopes) ? scopes[scope] : "unknown";
}

int workload_kind_parse(const char *name, enum workload_kind *kind)
{
	int index = find_name(kinds, COUNT(kinds), name);

	if (index >= 0)
		*kind = (enum workload_kind)index;
	return index < 0 ? index : 0;
}

int workload_scope_parse(const char *name, enum workload_scope *scope)
{
	int index = find_name(scopes, COUNT(scopes), name);

	if (index >= 0)
		*scope = (enum workload_scope)index;
	return index < 0 ? index : 0;
}

bool workload_in_scope(enum workload_scope scope, const struct workload_endpoint *a,
	const struct workload_endpoint *b)
{
	if (a->rank == b->rank)
		return false;
	switch (scope) {
	case WORKLOAD_SCOPE_ANY: return true;
	case WORKLOAD_SCOPE_CROSS_RDSW: return a->rdsw != b->rdsw;
	case WORKLOAD_SCOPE_CROSS_ZONE: return a->zone != b->zone || a->building != b->building;
	case WORKLOAD_SCOPE_CROSS_BUILDING: return a->building != b->building;
	case WORKLOAD_SCOPE_SAME_RAIL: return a->rail == b->rail && a->host != b->host;
	}
	return false;
}

static bool flow_before(const struct workload_flow *a, const struct workload_flow *b)
{
	return a->source != b->source ? a->source < b->source : a->target < b->target;
}

static void sift_down(struct workload_flow *flows, uint32_t root, uint32_t count)
{
	for (uint32_t child = 2 * root + 1; child < count; root = child, child = 2 * root + 1) {
		struct workload_flow swapped = flows[root];

		if (child + 1 < count && flow_before(&flows[child], &flows[child + 1]))
			child++;
		if (!flow_before(&swapped, &flows[child]))
			return;
		flows[root] = flows[child];
		flows[child] = swapped;
	}
}

/* Heap sort: no libc in a core, and no quadratic time at 18,000 GPUs. */
static void sort(struct workload_flow *flows, uint32_t count)
{
	for (uint32_t i = count / 2; i-- > 0;)
		sift_down(flows, i, count);
	for (uint32_t i = count; i-- > 1;) {
		struct workload_flow swapped = flows[0];

		flows[0] = flows[i];
		flows[i] = swapped;
		sift_down(flows, 0, i);
	}
}

static int to_first(enum workload_scope scope, const struct workload_endpoint *e, uint32_t count,
	struct workload_flow *flows)
{
	int made = 0;

	for (uint32_t i = 1; i < count; i++)
		if (workload_in_scope(scope, &e[i], &e[0]))
			flows[made++] = (struct workload_flow){ e[i].rank, e[0].rank };
	return made == 0 ? -DSF_E_BADFIELD : made;
}

static int halves(enum workload_scope scope, const struct workload_endpoint *e, uint32_t count,
	struct workload_flow *flows)
{
	uint32_t half = count / 2;

	for (uint32_t i = 0; i < half; i++) {
		uint32_t shift = 0;

		/* Its own place in the second half, or the next that the scope allows. */
		while (shift < half &&
			!workload_in_scope(scope, &e[i], &e[half + (i + shift) % half]))
			shift++;
		if (shift == half)
			return -DSF_E_BADFIELD;
		flows[i] = (struct workload_flow){ e[i].rank, e[half + (i + shift) % half].rank };
	}
	return (int)half;
}

/* flows[i].target holds indexes into e meanwhile. */
static bool fits(enum workload_scope scope, const struct workload_endpoint *e,
	const struct workload_flow *flows, uint32_t source, uint32_t target_of)
{
	return workload_in_scope(scope, &e[source], &e[flows[target_of].target]);
}

/* A target that fits source, of whoever holds it; count when nobody does. */
static uint32_t find_fitting(enum workload_scope scope, const struct workload_endpoint *e,
	uint32_t count, const struct workload_flow *flows, uint32_t source, struct dsf_rng *rng)
{
	uint32_t start = (uint32_t)dsf_rng_below(rng, count);

	for (uint32_t i = 0; i < count; i++) {
		uint32_t holder = (start + i) % count;

		if (holder != source && fits(scope, e, flows, source, holder))
			return holder;
	}
	return count;
}

/* Source takes a target that fits from a random holder, who takes its own; if that doesn't fit, the
 * holder goes on in the same way. The number of misfits never grows, so the walk ends soon where
 * the scope leaves choice, and is cut off where it doesn't. */
static bool repair(enum workload_scope scope, const struct workload_endpoint *e, uint32_t count,
	struct workload_flow *flows, uint32_t source, struct dsf_rng *rng)
{
	for (uint64_t steps = 0; steps < (uint64_t)STEPS_MAX * count; steps++) {
		uint32_t holder, swapped = flows[source].target;

		if (fits(scope, e, flows, source, source))
			return true;
		holder = find_fitting(scope, e, count, flows, source, rng);
		if (holder == count)
			return false;
		flows[source].target = flows[holder].target;
		flows[holder].target = swapped;
		source = holder;
	}
	return false;
}

static int permute(enum workload_scope scope, uint64_t seed, const struct workload_endpoint *e,
	uint32_t count, struct workload_flow *flows)
{
	struct dsf_rng rng;

	dsf_rng_fork(&rng, seed, RNG_KIND, count);
	for (uint32_t i = 0; i < count; i++)
		flows[i] = (struct workload_flow){ e[i].rank, i };
	for (uint32_t i = count; i > 1; i--) {
		uint32_t j = (uint32_t)dsf_rng_below(&rng, i), swapped = flows[i - 1].target;

		flows[i - 1].target = flows[j].target;
		flows[j].target = swapped;
	}
	for (uint32_t i = 0; i < count; i++)
		if (!repair(scope, e, count, flows, i, &rng))
			return -DSF_E_BADFIELD;
	for (uint32_t i = 0; i < count; i++)
		flows[i].target = e[flows[i].target].rank;
	return (int)count;
}

int workload_flows(enum workload_kind kind, enum workload_scope scope, uint64_t seed,
	const struct workload_endpoint *endpoints, uint32_t count, struct workload_flow *flows)
{
	int made = -DSF_E_BADFIELD;

	if (count < 2)
		return -DSF_E_BADFIELD;
	switch (kind) {
	case WORKLOAD_UDP:
	case WORKLOAD_INCAST: made = to_first(scope, endpoints, count, flows); break;
	case WORKLOAD_WRITE: made = halves(scope, endpoints, count, flows); break;
	case WORKLOAD_PERMUTATION: made = permute(scope, seed, endpoints, count, flows); break;
	}
	if (made > 0)
		sort(flows, (uint32_t)made);
	return made;
}
