/*
 * The course of a drill, in a world that is made up here: what the lab says is computed from the
 * commands alone, right at first and then with one lie at a time, which the right invariant finds.
 */
#include <stdlib.h>
#include <string.h>
#include "node/drill.h"
#include "tests/memory.h"
#include "tests/tap.h"
#include "topo/file.h"

#define REFRESH_NS 45000u
#define FLOWS      2u

static const char lab[] =
	"{\"name\": \"mini\", \"planes\": 2, \"buildings\": [{\"name\": \"b0\", \"zones\": "
	"[{\"name\": \"z0\", \"scaling_units\": 2, \"rails\": 2, \"hosts_per_unit\": 2, \"fdsw\": "
	"2}]}]}";

static const char file[] =
	"{\"name\": \"x\", \"workload\": {\"kind\": \"permutation\"}, \"faults\": ["
	"{\"at\": \"50us\", \"for\": \"99us\", \"kind\": \"link down\", \"target\": "
	"\"b0-z0-p0-rdsw0:fab0\"},"
	"{\"at\": \"400us\", \"for\": \"99us\", \"kind\": \"node freeze\", \"target\": "
	"\"b0-z0-p1-fdsw0\"},"
	"{\"at\": \"2ms\", \"for\": \"2ms\", \"kind\": \"link impair\", \"silent\": true, "
	"\"target\": "
	"\"b0-z0-p0-fdsw1:fab2\"},"
	"{\"at\": \"5ms\", \"for\": \"2ms\", \"kind\": \"link drain\", \"target\": "
	"\"b0-z0-p0-fdsw1:fab1\"},"
	"{\"at\": \"8ms\", \"for\": \"2ms\", \"kind\": \"node drain\", \"target\": "
	"\"b0-z0-p1-fdsw1\"}]}";

enum lie {
	NO_LIE,
	NEVER_STEADY, /* a link that is down from the start */
	UNHEALED,     /* the link stays down */
	UNNOTICED,    /* the silent link stays live at one end */
	FAR_DROP,     /* cells lost in the plane before anything is broken there */
	FULL_QUEUE,   /* a full queue inside the fabric, while much is broken */
	STRANGER,     /* somebody else asks for an impairment */
	MUTE,         /* a switch that runs and doesn't answer */
	WRONG_BYTES,  /* of one flow */
	TWICE,        /* one message more arrives than was sent */
	FAILED,       /* a message fails though there was always a way */
	UNFINISHED,   /* a flow that never ends */
	SWALLOWED,    /* cells go into a healthy link and don't come out */
	STAYS_ACTIVE, /* a port of a link that was drained */
	NOT_DRAINED,  /* a switch that was told to be */
	DRAIN_LOSES,  /* a packet is lost after a drain */
	PUSHED_BACK,  /* a full queue, long after anything has changed */
	DIES_LATER,   /* a link goes down some time after the last heal */
};

struct world {
	const struct topo *topo;
	struct node_drill *drill;
	enum lie lie;
	bool down[64], silent[64], asked[64], drained[64]; /* links */
	bool drained_nodes[32];
	enum node_drill_state nodes[32];
	bool loaded, stopped;
	uint32_t looks, trusts;
	dsf_instant now, load_end;
	bool heal_in_time;
};

static bool carrier(const struct world *w, uint32_t link)
{
	if (w->lie == NEVER_STEADY && link == 16)
		return false;
	if (w->lie == DIES_LATER && link == 16 && w->now.ns > 4050000)
		return false;
	return !w->down[link];
}

static bool live(const struct world *w, uint32_t port)
{
	const struct topo *t = w->topo;
	const struct topo_link *l = &t->links[t->ports[port].link];

	if (w->lie == UNNOTICED && w->silent[t->ports[port].link] && port == l->port_a)
		return true;
	return carrier(w, t->ports[port].link) && !w->silent[t->ports[port].link] &&
	       w->nodes[t->ports[l->port_a].node] == NODE_DRILL_RUNNING &&
	       w->nodes[t->ports[l->port_b].node] == NODE_DRILL_RUNNING;
}

static bool active(const struct world *w, uint32_t port)
{
	const struct topo *t = w->topo;
	const struct topo_link *l = &t->links[t->ports[port].link];
	bool drained_nodes =
		w->lie != NOT_DRAINED && (w->drained_nodes[t->ports[l->port_a].node] ||
						 w->drained_nodes[t->ports[l->port_b].node]);

	if (w->lie == STAYS_ACTIVE && port == l->port_b)
		return live(w, port);
	return live(w, port) && !w->drained[t->ports[port].link] && !drained_nodes;
}

static void tell_ports(struct world *w, uint32_t node)
{
	const struct topo_node *n = &w->topo->nodes[node];

	for (uint32_t i = 0; i < n->ports_count; i++) {
		const struct topo_port *p = topo_node_port(w->topo, n, i);
		uint32_t port = n->first_port + i;
		struct node_row row = { .query = NODE_QUERY_PORT, .node = node };
		bool swallowed = w->lie == SWALLOWED && w->loaded && p->link == 20 &&
				 port == w->topo->links[20].port_a;

		row.port = (struct node_row_port){ .port = i,
			.carrier = carrier(w, p->link),
			.live = p->ethernet ? carrier(w, p->link) : live(w, port),
			.active = p->ethernet ? carrier(w, p->link) : active(w, port),
			.cells_tx = w->loaded && !p->ethernet ? 1000u + swallowed : 0,
			.cells_rx = w->loaded && !p->ethernet ? 1000 : 0,
			.stops_tx = w->lie == PUSHED_BACK && !p->ethernet && w->now.ns > 1800000 };
		node_drill_row(w->drill, &row);
	}
}

/* One stage: a leaf reaches a leaf by the fabric switches that have a live link to both. */
static void tell_reach(struct world *w, uint32_t node)
{
	const struct topo *t = w->topo;
	const struct topo_node *n = &t->nodes[node];

	for (uint32_t d = 0; d < t->nodes_count; d++) {
		struct node_row row = { .query = NODE_QUERY_REACHABILITY, .node = node };
		uint64_t output = 0;

		if (t->nodes[d].role != TOPO_ROLE_RDSW || t->nodes[d].plane != n->plane)
			continue;
		for (uint32_t i = 0; i < n->ports_count; i++) {
			const struct topo_port *p = topo_node_port(t, n, i);
			const struct topo_node *peer = &t->nodes[t->ports[p->peer].node];

			if (p->ethernet || !active(w, n->first_port + i) || d == node)
				continue;
			if (t->ports[p->peer].node == d)
				output |= 1ull << i;
			for (uint32_t k = 0; k < peer->ports_count; k++)
				if (peer->role == TOPO_ROLE_FDSW && n->role == TOPO_ROLE_RDSW &&
					active(w, peer->first_port + k) &&
					t->ports[topo_node_port(t, peer, k)->peer].node == d)
					output |= 1ull << i;
		}
		row.reachability =
			(struct node_row_reachability){ .destination = d, .output = &output };
		node_drill_row(w->drill, &row);
	}
}

static void tell_counters(struct world *w, uint32_t node)
{
	struct node_row row = { .query = NODE_QUERY_COUNTERS, .node = node };
	bool plane0 = node == topo_find_node(w->topo, "b0-z0-p0-rdsw3");

	if (w->lie == FAR_DROP && w->loaded && plane0)
		row.counters.cells_lost = 3;
	if (w->lie == DRAIN_LOSES && plane0 && w->now.ns > 5400000)
		row.counters.reassembly_errors = 1;
	if (w->lie == FULL_QUEUE && w->loaded &&
		w->down[w->topo->ports[topo_find_port(w->topo, "b0-z0-p0-rdsw0:fab0")].link])
		row.counters.fabric_drops = 1;
	node_drill_row(w->drill, &row);
}

static void tell_flows(struct world *w)
{
	static const struct workload_flow flows[FLOWS] = { { 0, 5 }, { 5, 0 } };
	bool over = dsf_time_due(w->load_end, w->now);

	for (uint32_t i = 0; i < FLOWS; i++) {
		struct node_row row = { .query = NODE_QUERY_WORKLOAD };
		bool me = i == 1;

		row.flow = (struct node_row_flow){ .source = flows[i].source,
			.target = flows[i].target,
			.sender = true,
			.done = over && !(me && w->lie == UNFINISHED),
			.messages = 10,
			.lost = me && w->lie == FAILED };
		node_drill_row(w->drill, &row);
		row.flow.sender = false;
		row.flow.lost = 0;
		row.flow.messages = 10 + (me && w->lie == TWICE);
		row.flow.bytes_wrong = me && w->lie == WRONG_BYTES ? 7 : 0;
		node_drill_row(w->drill, &row);
	}
}

static void look(struct world *w, const struct node_drill_output *out)
{
	uint32_t mute = topo_find_node(w->topo, "b0-z0-p1-rdsw1");

	w->looks++;
	for (uint32_t i = 0; i < w->topo->nodes_count; i++)
		node_drill_node(w->drill, i, w->nodes[i]);
	for (uint32_t i = 0; i < w->topo->links_count; i++)
		node_drill_asked(w->drill, i, w->asked[i],
			w->silent[i] || (w->lie == STRANGER && w->loaded && i == 20),
			w->drained[i]);
	for (int pass = 0; pass < 3; pass++)
		for (uint32_t i = 0; i < w->topo->nodes_count; i++) {
			bool host = w->topo->nodes[i].role == TOPO_ROLE_HOST;

			if (w->nodes[i] != NODE_DRILL_RUNNING ||
				(w->lie == MUTE && w->loaded && i == mute))
				continue;
			if (pass == 0)
				tell_ports(w, i);
			else if (pass == 1 && !host)
				tell_reach(w, i);
			else if (pass == 2)
				tell_counters(w, i);
		}
	if (out->flows)
		tell_flows(w);
	node_drill_observed(w->drill, w->now);
}

static void act(struct world *w, const struct node_drill_output *out)
{
	switch (out->what) {
	case NODE_DRILL_OBSERVE: look(w, out); break;
	case NODE_DRILL_START:
		w->loaded = true;
		w->load_end = dsf_time_after(w->now, out->load_ns);
		node_drill_started(w->drill, w->now);
		break;
	case NODE_DRILL_STOP: w->stopped = true; break;
	case NODE_DRILL_LINK:
		w->asked[out->link] = out->down;
		w->down[out->link] = out->down || (w->lie == UNHEALED && w->down[out->link]);
		w->drained[out->link] = out->drained[0] || out->drained[1];
		w->silent[out->link] = out->impairment[0].silent || out->impairment[1].silent;
		w->heal_in_time =
			w->heal_in_time && (out->healthy || dsf_time_before(w->now, out->heal_at));
		break;
	case NODE_DRILL_NODE: w->nodes[out->node] = out->state; break;
	case NODE_DRILL_DRAIN:
		w->drained_nodes[out->node] = out->drained[0];
		w->heal_in_time =
			w->heal_in_time && (out->healthy || dsf_time_before(w->now, out->heal_at));
		break;
	case NODE_DRILL_TRUST: w->trusts++; break;
	}
}

/* Plays the drill; ends after 50 ms of fabric time at the latest, and then isn't done. */
static void play(struct world *w, dsf_instant interrupt_at)
{
	struct node_drill_output out;

	while (!node_drill_done(w->drill) && w->now.ns < 50 * NS_PER_MS) {
		if (dsf_time_due(interrupt_at, w->now))
			node_drill_interrupt(w->drill, w->now);
		node_drill_expire(w->drill, w->now);
		while (node_drill_output(w->drill, &out, w->now))
			act(w, &out);
		if (!node_drill_done(w->drill))
			w->now = dsf_time_min(node_drill_deadline(w->drill),
				dsf_time_before(w->now, interrupt_at) ? interrupt_at : DSF_NEVER);
	}
}

static void open(struct world *w, const struct topo *t, const struct topo_drill *drill,
	enum lie lie, struct test_memory *memory)
{
	static const struct workload_flow flows[FLOWS] = { { 0, 5 }, { 5, 0 } };
	struct node_drill_config config = { .topo = t,
		.drill = drill,
		.flows = flows,
		.flows_count = FLOWS,
		.refresh_ns = REFRESH_NS,
		.look_min_ns = NS_PER_US,
		.memory = &memory->memory };

	memset(w, 0, sizeof(*w));
	w->topo = t;
	w->lie = lie;
	w->heal_in_time = true;
	w->drill = node_drill_new(&config, w->now);
}

struct lied {
	const char *name;
	enum lie lie;
	enum topo_drill_invariant found_by;
	enum node_drill_breach_kind breach;
};

static const struct lied lies[] = {
	{ "not steady before", NEVER_STEADY, TOPO_DRILL_STEADY_BEFORE, NODE_DRILL_CARRIER },
	{ "not healed", UNHEALED, TOPO_DRILL_LINKS, NODE_DRILL_CARRIER },
	{ "one end doesn't notice", UNNOTICED, TOPO_DRILL_LINKS, NODE_DRILL_LIVE },
	{ "cells lost before any fault", FAR_DROP, TOPO_DRILL_DROPS, NODE_DRILL_DROP },
	{ "a full queue is never explained", FULL_QUEUE, TOPO_DRILL_DROPS, NODE_DRILL_DROP },
	{ "somebody else asks", STRANGER, TOPO_DRILL_LINKS, NODE_DRILL_ASKED },
	{ "no answer", MUTE, TOPO_DRILL_LINKS, NODE_DRILL_NO_ANSWER },
	{ "wrong bytes", WRONG_BYTES, TOPO_DRILL_DELIVERY, NODE_DRILL_WRONG_BYTES },
	{ "a message twice", TWICE, TOPO_DRILL_DELIVERY, NODE_DRILL_MESSAGES },
	{ "a failure without a reason", FAILED, TOPO_DRILL_DELIVERY, NODE_DRILL_LOST },
	{ "a flow without an end", UNFINISHED, TOPO_DRILL_DELIVERY, NODE_DRILL_UNFINISHED },
	{ "cells that don't come out", SWALLOWED, TOPO_DRILL_CELLS, NODE_DRILL_CELLS_LINK },
	{ "drained at one end only", STAYS_ACTIVE, TOPO_DRILL_LINKS, NODE_DRILL_ACTIVE },
	{ "a drain that is ignored", NOT_DRAINED, TOPO_DRILL_LINKS, NODE_DRILL_ACTIVE },
	{ "a drain explains no loss", DRAIN_LOSES, TOPO_DRILL_DROPS, NODE_DRILL_DROP },
	{ "a full queue without a reason", PUSHED_BACK, TOPO_DRILL_QUEUES, NODE_DRILL_QUEUE },
	{ "steady, but not for long", DIES_LATER, TOPO_DRILL_STEADY_AFTER, NODE_DRILL_CARRIER },
};

static void lies_are_found(const struct topo *t, const struct topo_drill *drill)
{
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		struct test_memory memory = TEST_MEMORY(memory);
		struct node_drill_result r;
		struct world w;

		open(&w, t, drill, lies[i].lie, &memory);
		play(&w, DSF_NEVER);
		TAP_OK(node_drill_done(w.drill), "%s: it ends", lies[i].name);
		TAP_EQ(node_drill_verdict(w.drill, true), NODE_DRILL_BROKEN, "%s: broken",
			lies[i].name);
		TAP_EQ(node_drill_verdict(w.drill, false), NODE_DRILL_UNKNOWN,
			"%s: unknown, not broken, on a slow machine", lies[i].name);
		node_drill_result(w.drill, lies[i].found_by, &r);
		TAP_EQ(r.breach.kind, lies[i].breach, "%s: found by %s", lies[i].name,
			topo_drill_invariant_name(lies[i].found_by));
		node_drill_free(w.drill);
	}
}

static void the_truth_holds(const struct topo *t, const struct topo_drill *drill)
{
	struct test_memory memory = TEST_MEMORY(memory);
	struct node_drill_result r;
	uint64_t p50, max;
	struct world w;

	open(&w, t, drill, NO_LIE, &memory);
	play(&w, DSF_NEVER);
	TAP_OK(node_drill_done(w.drill), "it ends");
	TAP_EQ(node_drill_verdict(w.drill, true), NODE_DRILL_HELD, "held");
	TAP_EQ(node_drill_verdict(w.drill, false), NODE_DRILL_UNKNOWN, "unknown when invalid");
	for (uint32_t i = 0; i < TOPO_DRILL_INVARIANTS; i++) {
		node_drill_result(w.drill, (enum topo_drill_invariant)i, &r);
		TAP_OK(r.checked && r.held, "%s held",
			topo_drill_invariant_name((enum topo_drill_invariant)i));
	}
	TAP_EQ(node_drill_convergences(w.drill), 10, "five faults, ten changes");
	TAP_EQ(node_drill_changes(w.drill), 10, "all of which were seen to settle");
	node_drill_convergence(w.drill, &p50, &max);
	TAP_OK(p50 > 0 && max <= 2 * NS_PER_US, "this world follows at once");
	TAP_EQ(w.trusts, 3, "lateness counts, but not while a node is frozen");
	TAP_OK(w.stopped && w.looks > 20, "it looked all the while, and stopped the load");
	TAP_OK(w.heal_in_time, "every fault came with an end that lies ahead");
	for (uint32_t i = 0; i < t->links_count; i++)
		w.stopped = w.stopped && !w.down[i] && !w.silent[i] && !w.drained[i];
	TAP_OK(w.stopped, "everything is healed");
	TAP_EQ(node_drill_messages(w.drill), 20, "messages");
	node_drill_free(w.drill);
	TAP_EQ(memory.live, 0, "no memory is left");
}

static void an_interrupt_heals(const struct topo *t, const struct topo_drill *drill)
{
	static const uint64_t instants[] = { 0, 60000, 420000, 2010000, 5100000, 8100000 };

	for (size_t i = 0; i < sizeof(instants) / sizeof(instants[0]); i++) {
		struct test_memory memory = TEST_MEMORY(memory);
		bool healed = true;
		struct world w;

		open(&w, t, drill, NO_LIE, &memory);
		play(&w, (dsf_instant){ instants[i] });
		for (uint32_t l = 0; l < t->links_count; l++)
			healed = healed && !w.down[l] && !w.silent[l] && !w.drained[l];
		for (uint32_t n = 0; n < t->nodes_count; n++)
			healed = healed && w.nodes[n] == NODE_DRILL_RUNNING && !w.drained_nodes[n];
		TAP_OK(healed && node_drill_done(w.drill) && w.now.ns < instants[i] + NS_PER_MS,
			"interrupted at %" PRIu64 " ns: healed, and at its end soon", instants[i]);
		TAP_EQ(node_drill_verdict(w.drill, true), NODE_DRILL_UNKNOWN, "and unknown");
		node_drill_free(w.drill);
	}
}

static void memory_may_be_short(const struct topo *t, const struct topo_drill *drill)
{
	bool all = true;

	for (unsigned long at = 1; at < 10; at++) {
		struct test_memory memory = TEST_MEMORY(memory);
		struct world w;

		memory.fail_at = at;
		open(&w, t, drill, NO_LIE, &memory);
		all = all && w.drill == NULL && memory.live == 0;
		node_drill_free(w.drill);
	}
	TAP_OK(all, "short of memory: NULL, and nothing is left");
}

/* A fault that is over before anybody looks: only its end is seen to settle. */
static void what_is_too_short_is_told(const struct topo *t)
{
	static const char text[] =
		"{\"name\": \"x\", \"faults\": [{\"at\": \"50us\", \"for\": \"1us\", "
		"\"kind\": \"link down\", \"target\": \"b0-z0-p0-rdsw0:fab0\"}]}";
	struct test_memory memory = TEST_MEMORY(memory);
	struct topo_drill *drill;
	struct topo_error err;
	struct world w;

	if (topo_drill_load(text, sizeof(text) - 1, "text", t, &drill, &err) < 0) {
		TAP_OK(false, "%s", err.text);
		return;
	}
	open(&w, t, drill, NO_LIE, &memory);
	play(&w, DSF_NEVER);
	TAP_EQ(node_drill_verdict(w.drill, true), NODE_DRILL_HELD, "a short fault: held");
	TAP_EQ(node_drill_convergences(w.drill), 1, "a short fault: only its end was seen");
	TAP_EQ(node_drill_changes(w.drill), 2, "a short fault: of two changes");
	node_drill_free(w.drill);
	topo_drill_free(drill);
}

static void slower_where_refreshes_are_longer(const struct topo *t, const struct topo_drill *drill)
{
	struct node_drill_config config = { .topo = t,
		.drill = drill,
		.refresh_ns = 3 * t->fabric.reach_refresh_ns,
		.look_min_ns = 1 };
	struct test_memory memory = TEST_MEMORY(memory);
	struct node_drill *d;

	config.memory = &memory.memory;
	d = node_drill_new(&config, DSF_EPOCH);
	TAP_EQ(node_drill_stretch(d, 100), 300, "three times the refresh: three times as slow");
	node_drill_free(d);
	config.refresh_ns = 1;
	d = node_drill_new(&config, DSF_EPOCH);
	TAP_EQ(node_drill_stretch(d, 100), 100, "never faster than the file says");
	node_drill_free(d);
}

int main(void)
{
	struct topo_error err;
	struct topo_drill *drill;
	struct topo *t;

	if (topo_load_text(lab, sizeof(lab) - 1, "lab", &t, &err) < 0 ||
		topo_drill_load(file, sizeof(file) - 1, "file", t, &drill, &err) < 0) {
		printf("Bail out! %s\n", err.text);
		return 1;
	}
	the_truth_holds(t, drill);
	lies_are_found(t, drill);
	an_interrupt_heals(t, drill);
	memory_may_be_short(t, drill);
	what_is_too_short_is_told(t);
	slower_where_refreshes_are_longer(t, drill);
	topo_drill_free(drill);
	topo_free(t);
	return TAP_DONE();
}
