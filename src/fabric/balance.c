#include "fabric/balance.h"
#include <assert.h>
#include "base/err.h"

#define GROUP_DOWN 0u /* a leaf's group DOWN is its first */

static size_t ports_size(const struct fabric_balance *b)
{
	return b->port_words * sizeof(uint64_t);
}

/* Room for members and kept of every group, and for the live ports. */
static size_t bits_size(const struct fabric_balance *b)
{
	return (2 * (size_t)b->groups_cap + 1) * ports_size(b);
}

static int allocate(struct fabric_balance *b)
{
	b->groups = dsf_memory_new(b->memory, b->groups_cap * sizeof(*b->groups));
	b->capacity = dsf_memory_new(b->memory, b->ports_count * sizeof(*b->capacity));
	b->order = dsf_memory_new(b->memory, 2 * b->ports_count * sizeof(*b->order));
	b->bits = dsf_memory_new(b->memory, bits_size(b));
	b->behind = dsf_memory_new(b->memory, b->switches_count * sizeof(*b->behind));
	b->out = dsf_memory_new(b->memory, b->switches_count * sizeof(*b->out));
	b->nominal_out = dsf_memory_new(b->memory, b->switches_count * sizeof(*b->nominal_out));
	if (b->groups == NULL || b->capacity == NULL || b->order == NULL || b->bits == NULL ||
		b->behind == NULL || b->out == NULL || b->nominal_out == NULL)
		return -DSF_E_NOMEM;
	b->live = b->bits + 2 * (size_t)b->groups_cap * b->port_words;
	return 0;
}

void fabric_balance_close(struct fabric_balance *b)
{
	if (b->memory == NULL)
		return;
	dsf_memory_delete(b->memory, b->groups, b->groups_cap * sizeof(*b->groups));
	dsf_memory_delete(b->memory, b->capacity, b->ports_count * sizeof(*b->capacity));
	dsf_memory_delete(b->memory, b->order, 2 * b->ports_count * sizeof(*b->order));
	dsf_memory_delete(b->memory, b->bits, bits_size(b));
	dsf_memory_delete(b->memory, b->behind, b->switches_count * sizeof(*b->behind));
	dsf_memory_delete(b->memory, b->out, b->switches_count * sizeof(*b->out));
	dsf_memory_delete(b->memory, b->nominal_out, b->switches_count * sizeof(*b->nominal_out));
	memset(b, 0, sizeof(*b));
}

static uint32_t take_group(struct fabric_balance *b, enum fabric_balance_kind kind, uint32_t key)
{
	struct fabric_balance_group *g;

	for (uint32_t i = 0; i < b->groups_count; i++)
		if (b->groups[i].kind == kind && b->groups[i].key == key)
			return i;
	assert(b->groups_count < b->groups_cap);
	g = &b->groups[b->groups_count];
	*g = (struct fabric_balance_group){ .kind = kind,
		.key = key,
		.members = b->bits + 2 * (size_t)b->groups_count * b->port_words };
	g->kept = g->members + b->port_words;
	return b->groups_count++;
}

static void join(struct fabric_balance *b, uint32_t group, uint32_t port)
{
	struct fabric_balance_group *g = &b->groups[group];

	dsf_bitset_add(g->members, port);
	g->count++;
	g->nominal += b->capacity[port];
}

static void place_port(struct fabric_balance *b, uint32_t port, const struct fabric_peer *peer)
{
	uint32_t own;

	b->capacity[port] = peer->capacity;
	switch (peer->tier) {
	case FABRIC_TIER_INTERFACE:
		join(b, take_group(b, FABRIC_BALANCE_DOWN, 0), port);
		own = take_group(b, FABRIC_BALANCE_NODE, peer->switch_index);
		join(b, own, port);
		b->behind[peer->switch_index] = own;
		break;
	case FABRIC_TIER_LEAF:
		join(b, take_group(b, FABRIC_BALANCE_CLUSTER, peer->cluster), port);
		break;
	case FABRIC_TIER_SPINE: join(b, take_group(b, FABRIC_BALANCE_UP, 0), port); break;
	case FABRIC_TIER_NONE: break;
	}
}

/* Adds what a healthy peer tells on this port to the healthy way out. */
static void expect_heard(
	struct fabric_balance *b, const struct fabric_balance_config *config, uint32_t port)
{
	const struct fabric_peer *peer = &config->peers[port];

	if (peer->tier == FABRIC_TIER_NONE)
		return;
	if (peer->tells == NULL) {
		b->nominal_out[peer->switch_index] += b->capacity[port];
		return;
	}
	for (uint32_t d = dsf_bitset_next(peer->tells, 0, b->switches_count); d < b->switches_count;
		d = dsf_bitset_next(peer->tells, d + 1, b->switches_count)) {
		/* The spine tells a cluster only of others. */
		if (peer->tier != FABRIC_TIER_SPINE || config->clusters == NULL ||
			config->clusters[d] != config->cluster)
			b->nominal_out[d] += b->capacity[port];
	}
}

/* Which clusters' destinations lie behind a spine's groups. */
static void place_destinations(struct fabric_balance *b, const uint32_t *clusters)
{
	for (uint32_t i = 0; i < b->groups_count; i++)
		for (uint32_t d = 0; d < b->switches_count; d++)
			if (b->groups[i].kind == FABRIC_BALANCE_CLUSTER &&
				clusters[d] == b->groups[i].key)
				b->behind[d] = i;
}

/* How many ports before this one lead to the same switch. */
static uint32_t parallel_of(const struct fabric_peer *peers, uint32_t port)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < port; i++)
		count += peers[i].tier != FABRIC_TIER_NONE &&
			 peers[i].switch_index == peers[port].switch_index;
	return count;
}

/* Puts the links of every group in the order in which they are withheld. */
static int draw_orders(struct fabric_balance *b, const struct fabric_balance_config *config)
{
	size_t size = b->ports_count * sizeof(struct dsf_draw_link);
	struct dsf_draw_link *all = dsf_memory_new(b->memory, size);
	struct dsf_draw_link *links = dsf_memory_new(b->memory, size);
	uint32_t first = 0;

	for (uint32_t i = 0; all != NULL && i < b->ports_count; i++)
		all[i] = (struct dsf_draw_link){ .port = i,
			.peer = config->peers[i].switch_index,
			.parallel = parallel_of(config->peers, i),
			.place = config->peers[i].place };
	for (uint32_t i = 0; all != NULL && links != NULL && i < b->groups_count; i++) {
		struct fabric_balance_group *g = &b->groups[i];
		uint32_t count = 0;

		for (uint32_t p = dsf_bitset_next(g->members, 0, b->ports_count);
			p < b->ports_count; p = dsf_bitset_next(g->members, p + 1, b->ports_count))
			links[count++] = all[p];
		dsf_draw_order(&config->draw, (uint64_t)g->kind << 32 | g->key, links, count);
		g->first = first;
		for (uint32_t k = 0; k < count; k++)
			b->order[first++] = links[k].port;
	}
	dsf_memory_delete(b->memory, all, size);
	dsf_memory_delete(b->memory, links, size);
	return all == NULL || links == NULL ? -DSF_E_NOMEM : 0;
}

int fabric_balance_init(struct fabric_balance *b, const struct dsf_memory *memory,
	const struct fabric_balance_config *config)
{
	int err;

	memset(b, 0, sizeof(*b));
	b->memory = memory;
	b->tier = config->tier;
	b->enabled = config->enabled;
	b->ports_count = config->ports_count;
	b->switches_count = config->switches_count;
	b->port_words = DSF_BITSET_WORDS(b->ports_count);
	b->groups_cap = b->ports_count + 2;
	err = allocate(b);
	if (err == 0) {
		memset(b->behind, 0xff, b->switches_count * sizeof(*b->behind));
		if (b->tier == FABRIC_TIER_LEAF)
			take_group(b, FABRIC_BALANCE_DOWN, 0);
		for (uint32_t i = 0; i < b->ports_count; i++) {
			place_port(b, i, &config->peers[i]);
			expect_heard(b, config, i);
		}
		if (config->tier == FABRIC_TIER_SPINE && config->clusters != NULL)
			place_destinations(b, config->clusters);
		err = draw_orders(b, config);
	}
	if (err < 0)
		fabric_balance_close(b);
	return err;
}

uint64_t fabric_balance_allowed(uint64_t nominal, uint64_t out, uint64_t nominal_out)
{
	uint64_t share;

	if (out >= nominal_out || out >= nominal)
		return out == 0 ? 0 : nominal;
	if (nominal <= UINT32_MAX && out <= UINT32_MAX)
		share = nominal * out / nominal_out;
	else
		share = (uint64_t)((unsigned __int128)nominal * out / nominal_out);
	return share > out ? share : out;
}

void fabric_balance_live(struct fabric_balance *b, uint32_t port, bool live)
{
	assert(live != dsf_bitset_has(b->live, port));
	if (live)
		dsf_bitset_add(b->live, port);
	else
		dsf_bitset_remove(b->live, port);
	for (uint32_t i = 0; i < b->groups_count; i++) {
		struct fabric_balance_group *g = &b->groups[i];

		if (!dsf_bitset_has(g->members, port))
			continue;
		g->live += live ? b->capacity[port] : -(uint64_t)b->capacity[port];
		g->kept_known = false;
	}
}

void fabric_balance_heard(struct fabric_balance *b, uint32_t destination, uint32_t port, bool heard)
{
	b->out[destination] += heard ? b->capacity[port] : -(uint64_t)b->capacity[port];
}

/* Does traffic to destination come in by this group? */
static bool feeds(
	const struct fabric_balance *b, uint32_t group, uint32_t destination, bool upwards)
{
	uint32_t behind = b->behind[destination];
	bool below = upwards || behind != FABRIC_BALANCE_NONE;

	switch (b->groups[group].kind) {
	case FABRIC_BALANCE_DOWN: return !below;
	case FABRIC_BALANCE_UP: return upwards;
	case FABRIC_BALANCE_NODE: return below && group != behind;
	case FABRIC_BALANCE_CLUSTER: return group != behind;
	}
	return false;
}

/* The live links of a group that keep telling when so much is allowed. */
static const uint64_t *keep(
	struct fabric_balance *b, struct fabric_balance_group *g, uint64_t allowed)
{
	uint64_t sum = 0;

	if (g->kept_known && g->kept_allowed == allowed)
		return g->kept;
	memset(g->kept, 0, ports_size(b));
	for (uint32_t i = g->count; i-- > 0;) {
		uint32_t port = b->order[g->first + i];

		if (!dsf_bitset_has(b->live, port) || b->capacity[port] > allowed - sum)
			continue;
		sum += b->capacity[port];
		dsf_bitset_add(g->kept, port);
	}
	g->kept_known = true;
	g->kept_allowed = allowed;
	assert(sum <= allowed);
	return g->kept;
}

void fabric_balance_inputs(const struct fabric_balance *b, uint32_t destination, bool upwards,
	const uint64_t *ports, uint64_t *inputs)
{
	const uint64_t *not = fabric_balance_behind(b, destination);
	bool leaf = b->tier == FABRIC_TIER_LEAF;

	for (uint32_t w = 0; w < b->port_words; w++) {
		inputs[w] = ports[w];
		if (leaf && !upwards)
			inputs[w] &= b->groups[GROUP_DOWN].members[w];
		if (not != NULL)
			inputs[w] &= ~not [w];
	}
}

/* Takes from told what a group must withhold. */
static void withhold(struct fabric_balance *b, struct fabric_balance_group *g, uint32_t destination,
	uint64_t *told)
{
	uint64_t allowed = fabric_balance_allowed(
		g->nominal, b->out[destination], b->nominal_out[destination]);
	const uint64_t *kept;

	if (allowed >= g->live)
		return;
	kept = keep(b, g, allowed);
	for (uint32_t w = 0; w < b->port_words; w++)
		told[w] &= kept[w] | ~g->members[w];
}

void fabric_balance_tell(
	struct fabric_balance *b, uint32_t destination, bool upwards, uint64_t *told, uint64_t *may)
{
	uint64_t out = b->out[destination];

	fabric_balance_inputs(b, destination, upwards, b->live, may);
	memcpy(told, may, ports_size(b));
	if (out == 0)
		memset(told, 0, ports_size(b));
	if (out == 0 || !b->enabled || out >= b->nominal_out[destination])
		return; /* the most frequent cases, without a look at a hundred groups */
	if (b->tier == FABRIC_TIER_LEAF && feeds(b, GROUP_DOWN, destination, upwards)) {
		withhold(b, &b->groups[GROUP_DOWN], destination, told);
		return; /* what is far comes in by that group alone */
	}
	for (uint32_t i = 0; i < b->groups_count; i++)
		if (feeds(b, i, destination, upwards))
			withhold(b, &b->groups[i], destination, told);
}

bool fabric_balance_view(const struct fabric_balance *b, uint32_t i, uint32_t destination,
	bool upwards, const uint64_t *told, struct fabric_balance_view *view)
{
	const struct fabric_balance_group *g = &b->groups[i];

	if (!feeds(b, i, destination, upwards))
		return false;
	*view = (struct fabric_balance_view){ .output = b->out[destination] };
	view->allowed =
		fabric_balance_allowed(g->nominal, view->output, b->nominal_out[destination]);
	for (uint32_t k = 0; k < g->count; k++)
		if (dsf_bitset_has(told, b->order[g->first + k]))
			view->input += b->capacity[b->order[g->first + k]];
	view->balanced = view->input <= view->allowed;
	for (uint32_t k = 0; k < g->count; k++) {
		uint32_t port = b->order[g->first + k];

		if (dsf_bitset_has(b->live, port) && !dsf_bitset_has(told, port) &&
			view->input + b->capacity[port] <= view->allowed)
			view->balanced = false;
	}
	return true;
}
