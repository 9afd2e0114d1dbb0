#include "topo/fixed.h"
#include <string.h>
#include "base/bitset.h"
#include "topo/draw.h"

#define ROW_WORDS DSF_BITSET_WORDS(TOPO_PORTS_MAX)

/* As the fabric numbers its groups, since the draw depends on it. */
enum side { SIDE_DOWN, SIDE_UP, SIDE_NODE, SIDE_CLUSTER };

/* Links of one fabric node by which traffic comes in together. */
struct group {
	enum side side;
	uint32_t key;          /* NODE: switch index; CLUSTER: number */
	uint32_t first, count; /* ports (of the topology) in order, the first is withheld first */
};

/* Who hears of the destination, by port of the topology. */
struct pass {
	bool *heard;
	bool failures, balanced;
};

struct topo_fixed {
	const struct topo *t;
	const struct dsf_memory *memory;
	const uint64_t *failed;
	struct group *groups;
	uint32_t *first_group; /* of each node, and behind the last */
	uint32_t *order;
	uint32_t *capacity; /* of each port */
	struct dsf_draw_link *links;
	struct pass healthy, unbalanced, balanced;
	uint32_t destination;
	uint64_t output[ROW_WORDS], advertised[ROW_WORDS], withdrawn[ROW_WORDS];
};

static const struct topo_node *peer_of(const struct topo *t, const struct topo_port *p)
{
	return &t->nodes[t->ports[p->peer].node];
}

static struct group group_of(const struct topo *t, const struct topo_port *p, bool down)
{
	const struct topo_node *peer = peer_of(t, p);

	if (topo_is_interface_node(peer->role))
		return down ? (struct group){ .side = SIDE_DOWN }
			    : (struct group){ .side = SIDE_NODE, .key = peer->switch_index };
	if (peer->role == TOPO_ROLE_FDSW)
		return (struct group){ .side = SIDE_CLUSTER, .key = peer->cluster };
	return (struct group){ .side = SIDE_UP };
}

static bool is_in(const struct topo *t, const struct topo_port *p, const struct group *g)
{
	struct group own = group_of(t, p, g->side == SIDE_DOWN);

	return own.side == g->side && own.key == g->key;
}

/* Which link to its peer a port is, counted from the node's first. */
static uint32_t parallel_of(const struct topo *t, const struct topo_node *n, uint32_t number)
{
	const struct topo_node *peer = peer_of(t, topo_node_port(t, n, number));
	uint32_t before = 0;

	for (uint32_t i = 0; i < number; i++)
		before += peer_of(t, topo_node_port(t, n, i)) == peer;
	return before;
}

static uint32_t draw_group(struct topo_fixed *f, const struct dsf_draw *draw, uint32_t node,
	struct group *g, uint32_t first)
{
	const struct topo_node *n = &f->t->nodes[node];

	g->first = first;
	for (uint32_t i = 0; i < n->ports_count; i++) {
		const struct topo_port *p = topo_node_port(f->t, n, i);

		if (!is_in(f->t, p, g))
			continue;
		f->links[g->count++] = (struct dsf_draw_link){ .port = n->first_port + i,
			.peer = peer_of(f->t, p)->switch_index,
			.parallel = parallel_of(f->t, n, i),
			.place = p->withhold };
	}
	dsf_draw_order(draw, (uint64_t)g->side << 32 | g->key, f->links, g->count);
	for (uint32_t i = 0; i < g->count; i++)
		f->order[first + i] = f->links[i].port;
	return first + g->count;
}

static bool has_group(const struct topo_fixed *f, uint32_t node, const struct group *g)
{
	for (uint32_t i = f->first_group[node]; i < f->first_group[node + 1]; i++)
		if (f->groups[i].side == g->side && f->groups[i].key == g->key)
			return true;
	return false;
}

/* Finds and draws a node's groups, behind those of the node before; their ports from first on. */
static uint32_t make_groups(struct topo_fixed *f, uint32_t node, uint64_t seed, uint32_t first)
{
	const struct topo_node *n = &f->t->nodes[node];
	struct dsf_draw draw = topo_draw(f->t, node, seed);
	uint64_t unit = topo_draw_unit(f->t, n);

	for (uint32_t i = 0; i < n->ports_count; i++) {
		const struct topo_port *p = topo_node_port(f->t, n, i);

		f->capacity[n->first_port + i] = topo_draw_capacity(f->t, p, unit);
		for (int down = 0; down < 2; down++) {
			struct group g = group_of(f->t, p, down != 0);

			if (has_group(f, node, &g))
				continue;
			first = draw_group(f, &draw, node, &g, first);
			f->groups[f->first_group[node + 1]++] = g;
		}
	}
	return first;
}

static void *new_array(const struct topo_fixed *f, size_t count, size_t size)
{
	return dsf_memory_new(f->memory, count * size);
}

/* Counts of the arrays, at least 1. */
static size_t ports_of(const struct topo_fixed *f)
{
	return f->t->ports_count + 1u;
}

static size_t groups_of(const struct topo_fixed *f)
{
	return ports_of(f) + 2 * (size_t)f->t->nodes_count;
}

static size_t nodes_of(const struct topo_fixed *f)
{
	return f->t->nodes_count + 2u;
}

static bool allocate(struct topo_fixed *f)
{
	size_t ports = ports_of(f);

	f->groups = new_array(f, groups_of(f), sizeof(*f->groups));
	f->first_group = new_array(f, nodes_of(f), sizeof(*f->first_group));
	f->order = new_array(f, 2 * ports, sizeof(*f->order));
	f->capacity = new_array(f, ports, sizeof(*f->capacity));
	f->links = new_array(f, TOPO_PORTS_MAX, sizeof(*f->links));
	f->healthy.heard = new_array(f, ports, sizeof(bool));
	f->unbalanced.heard = new_array(f, ports, sizeof(bool));
	f->balanced.heard = new_array(f, ports, sizeof(bool));
	return f->groups != NULL && f->first_group != NULL && f->order != NULL &&
	       f->capacity != NULL && f->links != NULL && f->healthy.heard != NULL &&
	       f->unbalanced.heard != NULL && f->balanced.heard != NULL;
}

struct topo_fixed *topo_fixed_new(const struct topo *t, const uint64_t *failed, uint64_t seed,
	const struct dsf_memory *memory)
{
	struct topo_fixed *f = dsf_memory_new(memory, sizeof(*f));
	uint32_t first = 0;

	if (f == NULL)
		return NULL;
	f->t = t;
	f->memory = memory;
	f->failed = failed;
	if (!allocate(f)) {
		topo_fixed_free(f);
		return NULL;
	}
	f->unbalanced.failures = f->balanced.failures = true;
	f->balanced.balanced = t->fabric.input_balanced;
	for (uint32_t i = 0; i < t->nodes_count; i++) {
		f->first_group[i + 1] = f->first_group[i];
		if (topo_is_fabric_node(t->nodes[i].role))
			first = make_groups(f, i, seed, first);
	}
	return f;
}

void topo_fixed_free(struct topo_fixed *f)
{
	size_t ports;

	if (f == NULL)
		return;
	ports = ports_of(f);
	dsf_memory_delete(f->memory, f->balanced.heard, ports * sizeof(bool));
	dsf_memory_delete(f->memory, f->unbalanced.heard, ports * sizeof(bool));
	dsf_memory_delete(f->memory, f->healthy.heard, ports * sizeof(bool));
	dsf_memory_delete(f->memory, f->links, TOPO_PORTS_MAX * sizeof(*f->links));
	dsf_memory_delete(f->memory, f->capacity, ports * sizeof(*f->capacity));
	dsf_memory_delete(f->memory, f->order, 2 * ports * sizeof(*f->order));
	dsf_memory_delete(f->memory, f->first_group, nodes_of(f) * sizeof(*f->first_group));
	dsf_memory_delete(f->memory, f->groups, groups_of(f) * sizeof(*f->groups));
	dsf_memory_delete(f->memory, f, sizeof(*f));
}

static bool lives(const struct topo_fixed *f, const struct pass *pass, uint32_t port)
{
	const struct topo_port *p = &f->t->ports[port];

	return !p->ethernet && !f->t->links[p->link].loop &&
	       !(pass->failures && dsf_bitset_has(f->failed, p->link));
}

static bool starves(const struct topo *t, const uint64_t *failed, uint32_t node, bool starved)
{
	const struct topo_node *n = &t->nodes[node];
	uint32_t usable = 0;

	for (uint32_t i = n->first_port; i < n->first_port + n->ports_count; i++)
		usable += !t->ports[i].ethernet && !t->links[t->ports[i].link].loop &&
			  !dsf_bitset_has(failed, t->ports[i].link);
	return usable < (starved ? t->fabric.min_links_to_join : t->fabric.min_links_to_remain);
}

/* A link has one interface node at most: whether one starves is nothing to another. */
void topo_fixed_starve(const struct topo *t, uint64_t *failed, bool *starved)
{
	for (uint32_t i = 0; i < t->nodes_count; i++) {
		const struct topo_node *n = &t->nodes[i];

		starved[i] = topo_is_interface_node(n->role) && starves(t, failed, i, starved[i]);
		for (uint32_t p = n->first_port; starved[i] && p < n->first_port + n->ports_count;
			p++)
			if (!t->ports[p].ethernet)
				dsf_bitset_add(failed, t->ports[p].link);
	}
}

static bool same_fabric(const struct topo_fixed *f, const struct topo_node *n)
{
	const struct topo_node *d = &f->t->nodes[f->destination];

	return n->switch_index != TOPO_NONE && n->building == d->building && n->plane == d->plane;
}

/* Does traffic to the destination come in by this group of the node? */
static bool comes_in(const struct topo_fixed *f, const struct topo_node *n, const struct group *g)
{
	const struct topo_node *d = &f->t->nodes[f->destination];
	bool local = n->cluster == d->cluster;

	switch (g->side) {
	case SIDE_DOWN: return !local;
	case SIDE_UP: return local;
	case SIDE_NODE: return local && g->key != d->switch_index;
	case SIDE_CLUSTER: return g->key != d->cluster;
	}
	return false;
}

/* Capacity of a group's links that live. */
static uint64_t live_capacity(
	const struct topo_fixed *f, const struct pass *pass, const struct group *g)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < g->count; i++)
		if (lives(f, pass, f->order[g->first + i]))
			sum += f->capacity[f->order[g->first + i]];
	return sum;
}

static uint64_t allowed_in(uint64_t nominal, uint64_t out, uint64_t nominal_out)
{
	unsigned __int128 share = (unsigned __int128)nominal * out / nominal_out;

	if (share < out)
		share = out;
	return share > nominal ? nominal : (uint64_t)share;
}

/* Tells the group's peers: takes links back in their order until the rest is allowed, then gives
 * back, last first, what still fits. */
static void tell_group(struct topo_fixed *f, struct pass *pass, const struct group *g, uint64_t out,
	uint64_t nominal_out)
{
	const uint32_t *ports = f->order + g->first;
	uint64_t left = live_capacity(f, pass, g), allowed = left;
	uint32_t taken = 0;

	if (pass->balanced)
		allowed = allowed_in(live_capacity(f, &f->healthy, g), out, nominal_out);
	for (; left > allowed; taken++)
		if (lives(f, pass, ports[taken]))
			left -= f->capacity[ports[taken]];
	for (uint32_t i = taken; i < g->count; i++)
		if (lives(f, pass, ports[i]))
			pass->heard[f->t->ports[ports[i]].peer] = true;
	while (taken-- > 0) {
		if (!lives(f, pass, ports[taken]) || left + f->capacity[ports[taken]] > allowed)
			continue;
		left += f->capacity[ports[taken]];
		pass->heard[f->t->ports[ports[taken]].peer] = true;
	}
}

static void tell(struct topo_fixed *f, struct pass *pass, uint32_t node)
{
	const struct topo_node *n = &f->t->nodes[node];
	uint64_t out = 0, nominal_out = 0;

	for (uint32_t p = n->first_port; p < n->first_port + n->ports_count; p++) {
		out += pass->heard[p] ? f->capacity[p] : 0;
		nominal_out += f->healthy.heard[p] ? f->capacity[p] : 0;
	}
	for (uint32_t i = f->first_group[node]; out > 0 && i < f->first_group[node + 1]; i++)
		if (comes_in(f, n, &f->groups[i]))
			tell_group(f, pass, &f->groups[i], out, nominal_out);
}

/* Cells climb once and descend once, and what is told goes the other way: the destination, the
 * FDSWs of its cluster, the SDSWs, the other FDSWs. */
static void run(struct topo_fixed *f, struct pass *pass)
{
	const struct topo_node *d = &f->t->nodes[f->destination];

	memset(pass->heard, 0, f->t->ports_count * sizeof(bool));
	for (uint32_t p = d->first_port; p < d->first_port + d->ports_count; p++)
		if (lives(f, pass, p))
			pass->heard[f->t->ports[p].peer] = true;
	for (int tier = 0; tier < 3; tier++) {
		for (uint32_t i = 0; i < f->t->nodes_count; i++) {
			const struct topo_node *n = &f->t->nodes[i];
			int turn = n->role == TOPO_ROLE_SDSW ? 1 : n->cluster == d->cluster ? 0 : 2;

			if (turn == tier && topo_is_fabric_node(n->role) && same_fabric(f, n))
				tell(f, pass, i);
		}
	}
}

void topo_fixed_destination(struct topo_fixed *f, uint32_t node)
{
	f->destination = node;
	run(f, &f->healthy);
	run(f, &f->unbalanced);
	run(f, &f->balanced);
}

bool topo_fixed_expects(const struct topo_fixed *f, uint32_t port)
{
	return f->healthy.heard[port];
}

bool topo_fixed_row(struct topo_fixed *f, uint32_t node, struct topo_fixed_row *row)
{
	const struct topo_node *n = &f->t->nodes[node];
	bool reached = false, reachable = false;

	if (!same_fabric(f, n))
		return false;
	memset(f->output, 0, sizeof(f->output));
	memset(f->advertised, 0, sizeof(f->advertised));
	memset(f->withdrawn, 0, sizeof(f->withdrawn));
	for (uint32_t i = 0; i < n->ports_count; i++) {
		uint32_t port = n->first_port + i, peer = f->t->ports[port].peer;

		if (f->balanced.heard[port])
			dsf_bitset_add(f->output, i);
		if (f->balanced.heard[peer])
			dsf_bitset_add(f->advertised, i);
		else if (f->unbalanced.heard[peer])
			dsf_bitset_add(f->withdrawn, i);
		reached = reached || f->balanced.heard[port];
		reachable = reachable || f->unbalanced.heard[port];
	}
	*row = (struct topo_fixed_row){ f->output, f->advertised, f->withdrawn,
		reachable && !reached };
	return true;
}
