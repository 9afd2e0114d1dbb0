/*
 * Who sends to whom: each pattern within each scope, endpoints that can't be served, names.
 */
#include "workload/pattern.h"
#include <string.h>
#include "base/err.h"
#include "tests/tap.h"

#define MAX 256u

/* Two buildings of two zones, two hosts and two rails each; every rail of a zone has its RDSW. */
static uint32_t endpoints_of(struct workload_endpoint *e)
{
	uint32_t count = 0;

	for (uint32_t host = 0; host < 8; host++)
		for (uint32_t rail = 0; rail < 2; rail++, count++)
			e[count] = (struct workload_endpoint){ .rank = count,
				.host = host,
				.rail = rail,
				.rdsw = host / 2 * 2 + rail,
				.zone = host / 2 % 2,
				.building = host / 4 };
	return count;
}

static const struct workload_endpoint *find(
	const struct workload_endpoint *e, uint32_t count, uint32_t rank)
{
	for (uint32_t i = 0; i < count; i++)
		if (e[i].rank == rank)
			return &e[i];
	return NULL;
}

static void check_flows(enum workload_kind kind, enum workload_scope scope,
	const struct workload_endpoint *e, uint32_t count, const struct workload_flow *flows,
	int made)
{
	uint32_t sent[MAX] = { 0 }, got[MAX] = { 0 }, wrong = 0, unsorted = 0, twice = 0;

	for (int i = 0; i < made; i++) {
		const struct workload_endpoint *a = find(e, count, flows[i].source);
		const struct workload_endpoint *b = find(e, count, flows[i].target);

		if (a == NULL || b == NULL || !workload_in_scope(scope, a, b)) {
			wrong++;
			continue;
		}
		twice += sent[a->rank]++ > 0;
		twice += got[b->rank]++ > 0 &&
			 (kind == WORKLOAD_PERMUTATION || kind == WORKLOAD_WRITE);
		unsorted += i > 0 && (flows[i - 1].source > flows[i].source ||
					     (flows[i - 1].source == flows[i].source &&
						     flows[i - 1].target >= flows[i].target));
	}
	TAP_EQ(wrong, 0, "%s, %s: every flow is in scope", workload_kind_name(kind),
		workload_scope_name(scope));
	TAP_EQ(unsorted, 0, "%s, %s: sorted", workload_kind_name(kind), workload_scope_name(scope));
	TAP_EQ(twice, 0, "%s, %s: nobody twice", workload_kind_name(kind),
		workload_scope_name(scope));
}

static void every_pattern_in_every_scope(void)
{
	struct workload_endpoint e[MAX];
	struct workload_flow flows[MAX], again[MAX];
	uint32_t count = endpoints_of(e);

	for (int scope = WORKLOAD_SCOPE_ANY; scope <= WORKLOAD_SCOPE_SAME_RAIL; scope++) {
		int made = workload_flows(WORKLOAD_PERMUTATION, scope, 7, e, count, flows);
		int same = workload_flows(WORKLOAD_PERMUTATION, scope, 7, e, count, again);
		uint32_t expected = 0;

		TAP_EQ(made, (int)count, "permutation, %s: everybody sends",
			workload_scope_name(scope));
		check_flows(WORKLOAD_PERMUTATION, scope, e, count, flows, made);
		TAP_OK(same == made && memcmp(flows, again, (size_t)made * sizeof(*flows)) == 0,
			"permutation, %s: the same seed, the same flows",
			workload_scope_name(scope));
		same = workload_flows(WORKLOAD_PERMUTATION, scope, 8, e, count, again);
		TAP_OK(same == made && memcmp(flows, again, (size_t)made * sizeof(*flows)) != 0,
			"permutation, %s: another seed, others", workload_scope_name(scope));
		made = workload_flows(WORKLOAD_WRITE, scope, 7, e, count, flows);
		TAP_EQ(made, (int)count / 2, "write, %s: half of them send",
			workload_scope_name(scope));
		check_flows(WORKLOAD_WRITE, scope, e, count, flows, made);
		for (int i = 0; i < made; i++)
			expected += flows[i].source < count / 2 && flows[i].target >= count / 2;
		TAP_EQ(expected, count / 2, "write, %s: from the first half to the second",
			workload_scope_name(scope));
		for (int kind = WORKLOAD_UDP; kind <= WORKLOAD_INCAST;
			kind += WORKLOAD_INCAST - WORKLOAD_UDP) {
			made = workload_flows(kind, scope, 7, e, count, flows);
			check_flows(kind, scope, e, count, flows, made);
			expected = 0;
			for (uint32_t i = 1; i < count; i++)
				expected += workload_in_scope(scope, &e[i], &e[0]);
			TAP_EQ(made, (int)expected, "%s, %s: all that may send to the first",
				workload_kind_name(kind), workload_scope_name(scope));
		}
	}
}

/* One pair of partners that fit only each other: no random draw finds that often. */
static void a_permutation_with_one_way_out_is_found(void)
{
	struct workload_endpoint e[MAX];
	struct workload_flow flows[MAX];
	uint32_t found = 0;

	for (uint32_t i = 0; i < 40; i++)
		e[i] = (struct workload_endpoint){
			.rank = i, .host = i, .building = i % 2, .rdsw = i
		};
	for (uint64_t seed = 0; seed < 50; seed++) {
		int made = workload_flows(
			WORKLOAD_PERMUTATION, WORKLOAD_SCOPE_CROSS_BUILDING, seed, e, 40, flows);

		found += made == 40;
	}
	TAP_EQ(found, 50, "permutation: found for every seed, every flow must cross");
}

static void what_cannot_be_is_refused(void)
{
	struct workload_endpoint e[MAX];
	struct workload_flow flows[MAX];
	uint32_t count = endpoints_of(e);

	for (int kind = WORKLOAD_UDP; kind <= WORKLOAD_INCAST; kind++) {
		TAP_EQ(workload_flows(kind, WORKLOAD_SCOPE_ANY, 1, e, 0, flows), -DSF_E_BADFIELD,
			"%s of nobody", workload_kind_name(kind));
		TAP_EQ(workload_flows(kind, WORKLOAD_SCOPE_ANY, 1, e, 1, flows), -DSF_E_BADFIELD,
			"%s of one", workload_kind_name(kind));
		/* The first four are of one zone. */
		TAP_EQ(workload_flows(kind, WORKLOAD_SCOPE_CROSS_ZONE, 1, e, 4, flows),
			-DSF_E_BADFIELD, "%s across zones within one", workload_kind_name(kind));
	}
	/* Three in one building and one in the other: two are left without a partner. */
	e[3] = e[count - 1];
	TAP_EQ(workload_flows(WORKLOAD_PERMUTATION, WORKLOAD_SCOPE_CROSS_BUILDING, 1, e, 4, flows),
		-DSF_E_BADFIELD, "permutation: one without a partner fails all");
	TAP_EQ(workload_flows(WORKLOAD_INCAST, WORKLOAD_SCOPE_CROSS_BUILDING, 1, e, 4, flows), 1,
		"incast: those out of scope don't send");
	/* An odd one out of halves: the last one is nobody's partner. */
	(void)endpoints_of(e);
	TAP_EQ(workload_flows(WORKLOAD_WRITE, WORKLOAD_SCOPE_ANY, 1, e, 5, flows), 2,
		"write: an odd one stays out");
}

static void an_endpoint_has_no_scope_with_itself(void)
{
	struct workload_endpoint e[MAX];

	(void)endpoints_of(e);
	for (int scope = WORKLOAD_SCOPE_ANY; scope <= WORKLOAD_SCOPE_SAME_RAIL; scope++)
		TAP_OK(!workload_in_scope(scope, &e[3], &e[3]), "%s: not itself",
			workload_scope_name(scope));
	TAP_OK(!workload_in_scope(WORKLOAD_SCOPE_SAME_RAIL, &e[0], &e[1]),
		"same-rail: not its host");
	TAP_OK(workload_in_scope(WORKLOAD_SCOPE_SAME_RAIL, &e[0], &e[2]),
		"same-rail: another host");
	/* Zones are numbered within their building. */
	TAP_OK(workload_in_scope(WORKLOAD_SCOPE_CROSS_ZONE, &e[0], &e[8]),
		"cross-zone: the same number in another building");
}

static void names(void)
{
	enum workload_kind kind = WORKLOAD_INCAST;
	enum workload_scope scope = WORKLOAD_SCOPE_ANY;

	for (int i = WORKLOAD_UDP; i <= WORKLOAD_INCAST; i++)
		TAP_OK(workload_kind_parse(workload_kind_name(i), &kind) == 0 && (int)kind == i,
			"kind %s", workload_kind_name(i));
	for (int i = WORKLOAD_SCOPE_ANY; i <= WORKLOAD_SCOPE_SAME_RAIL; i++)
		TAP_OK(workload_scope_parse(workload_scope_name(i), &scope) == 0 && (int)scope == i,
			"scope %s", workload_scope_name(i));
	kind = WORKLOAD_WRITE;
	TAP_EQ(workload_kind_parse("writes", &kind), -DSF_E_UNKNOWN,
		"kind: no beginning of a name");
	TAP_EQ(workload_kind_parse("", &kind), -DSF_E_UNKNOWN, "kind: none");
	TAP_EQ(kind, WORKLOAD_WRITE, "kind: left as it was");
	TAP_EQ(workload_scope_parse("an", &scope), -DSF_E_UNKNOWN, "scope: no part of a name");
	TAP_OK(strcmp(workload_kind_name(99), "unknown") == 0 &&
			strcmp(workload_scope_name(99), "unknown") == 0,
		"names of what there isn't");
}

int main(void)
{
	every_pattern_in_every_scope();
	a_permutation_with_one_way_out_is_found();
	what_cannot_be_is_refused();
	an_endpoint_has_no_scope_with_itself();
	names();
	return TAP_DONE();
}
