#include "fabric/reach.h"
#include <assert.h>
#include "base/err.h"

#define SWITCHES_MAX 16384u /* as topo/model.h; a set on the stack */
#define PORTS_MAX    FABRIC_REACH_PORTS_MAX

static size_t table_size(const struct fabric_reach *r)
{
	return (size_t)r->switches_count * r->port_words * sizeof(uint64_t);
}

static size_t set_size(const struct fabric_reach *r)
{
	return r->switch_words * sizeof(uint64_t);
}

/* What a fabric node keeps by port and by destination to know what it tells. */
static size_t tell_size(const struct fabric_reach *r)
{
	return r->ports_count * set_size(r);
}

static int init_telling(struct fabric_reach *r, const struct fabric_reach_config *config)
{
	struct fabric_balance_config balance = { .tier = r->tier,
		.enabled = config->balanced,
		.ports_count = r->ports_count,
		.switches_count = r->switches_count,
		.peers = config->peers,
		.clusters = config->clusters,
		.cluster = config->cluster,
		.draw = config->draw };

	if (r->tier != FABRIC_TIER_LEAF && r->tier != FABRIC_TIER_SPINE)
		return 0;
	r->told_ports = dsf_memory_new(r->memory, table_size(r));
	r->withheld_ports = dsf_memory_new(r->memory, table_size(r));
	r->tell = dsf_memory_new(r->memory, tell_size(r));
	r->withhold = dsf_memory_new(r->memory, tell_size(r));
	if (r->told_ports == NULL || r->withheld_ports == NULL || r->tell == NULL ||
		r->withhold == NULL)
		return -DSF_E_NOMEM;
	return fabric_balance_init(&r->balance, r->memory, &balance);
}

static int allocate(struct fabric_reach *r)
{
	r->ports = dsf_memory_new(r->memory, r->ports_count * sizeof(*r->ports));
	r->by_destination = dsf_memory_new(r->memory, table_size(r));
	r->direct = dsf_memory_new(r->memory, set_size(r));
	r->any = dsf_memory_new(r->memory, set_size(r));
	r->unbalanced = dsf_memory_new(r->memory, set_size(r));
	r->unbalanced_count =
		dsf_memory_new(r->memory, r->switches_count * sizeof(*r->unbalanced_count));
	r->changed = dsf_memory_new(r->memory, set_size(r));
	r->stale = dsf_memory_new(r->memory, set_size(r));
	r->cut = dsf_memory_new(r->memory, set_size(r));
	r->resorts = dsf_memory_new(r->memory, set_size(r));
	r->resorts_count = dsf_memory_new(r->memory, r->switches_count * sizeof(*r->resorts_count));
	r->resort_told = dsf_memory_new(r->memory, set_size(r));
	r->live = dsf_memory_new(r->memory, r->port_words * sizeof(uint64_t));
	r->active = dsf_memory_new(r->memory, r->port_words * sizeof(uint64_t));
	r->down = dsf_memory_new(r->memory, r->port_words * sizeof(uint64_t));
	r->wants = dsf_memory_new(r->memory, r->port_words * sizeof(uint64_t));
	return r->ports == NULL || r->by_destination == NULL || r->direct == NULL ||
			       r->any == NULL || r->unbalanced == NULL ||
			       r->unbalanced_count == NULL || r->changed == NULL ||
			       r->stale == NULL || r->cut == NULL || r->resorts == NULL ||
			       r->resorts_count == NULL || r->resort_told == NULL ||
			       r->live == NULL || r->active == NULL || r->down == NULL ||
			       r->wants == NULL
		       ? -DSF_E_NOMEM
		       : 0;
}

/* Cells carry the words of the switches that may be told of: a lab may have many fabrics. */
static void init_range(struct fabric_reach *r, const uint64_t *expected)
{
	r->first_word = expected == NULL ? 0 : r->self / 64;
	r->end_word = expected == NULL ? r->switch_words : r->first_word + 1;
	for (uint32_t w = 0; expected != NULL && w < r->switch_words; w++) {
		if (expected[w] == 0)
			continue;
		r->first_word = w < r->first_word ? w : r->first_word;
		r->end_word = w >= r->end_word ? w + 1 : r->end_word;
	}
}

int fabric_reach_init(struct fabric_reach *r, const struct dsf_memory *memory,
	const struct fabric_reach_config *config)
{
	int err;

	memset(r, 0, sizeof(*r));
	r->memory = memory;
	assert(config->switches_count <= SWITCHES_MAX && config->ports_count <= PORTS_MAX);
	r->self = config->self;
	r->tier = config->tier;
	r->ports_count = config->ports_count;
	r->switches_count = config->switches_count;
	r->cell_bytes = config->cell_bytes;
	r->refresh_ns = config->refresh_ns;
	r->refresh_at = config->first_refresh_at;
	r->min_links_to_join = config->min_links_to_join;
	r->min_links_to_remain = config->min_links_to_remain;
	r->starved = config->min_links_to_join > 0; /* published: boots isolated */
	r->trace = config->trace;
	r->node = config->node;
	r->switch_words = DSF_BITSET_WORDS(r->switches_count);
	r->port_words = DSF_BITSET_WORDS(r->ports_count);
	init_range(r, config->expected);
	err = allocate(r);
	if (err == 0)
		err = init_telling(r, config);
	if (err < 0) {
		fabric_reach_close(r);
		return err;
	}
	for (uint32_t i = 0; i < r->ports_count; i++) {
		r->ports[i].peer_tier = config->peers[i].tier;
		r->ports[i].loop = config->peers[i].loop;
		r->ports[i].peer_switch = config->peers[i].switch_index;
		if (config->peers[i].tier == FABRIC_TIER_INTERFACE)
			dsf_bitset_add(r->down, i);
	}
	return 0;
}

void fabric_reach_close(struct fabric_reach *r)
{
	fabric_balance_close(&r->balance);
	for (uint32_t i = 0; r->ports != NULL && i < r->ports_count; i++) {
		dsf_memory_delete(r->memory, r->ports[i].told, 2 * set_size(r));
		dsf_memory_delete(r->memory, r->ports[i].resort, set_size(r));
	}
	dsf_memory_delete(r->memory, r->ports, r->ports_count * sizeof(*r->ports));
	dsf_memory_delete(r->memory, r->by_destination, table_size(r));
	dsf_memory_delete(r->memory, r->direct, set_size(r));
	dsf_memory_delete(r->memory, r->any, set_size(r));
	dsf_memory_delete(r->memory, r->unbalanced, set_size(r));
	dsf_memory_delete(
		r->memory, r->unbalanced_count, r->switches_count * sizeof(*r->unbalanced_count));
	dsf_memory_delete(r->memory, r->changed, set_size(r));
	dsf_memory_delete(r->memory, r->stale, set_size(r));
	dsf_memory_delete(r->memory, r->cut, set_size(r));
	dsf_memory_delete(r->memory, r->resorts, set_size(r));
	dsf_memory_delete(
		r->memory, r->resorts_count, r->switches_count * sizeof(*r->resorts_count));
	dsf_memory_delete(r->memory, r->resort_told, set_size(r));
	dsf_memory_delete(r->memory, r->live, r->port_words * sizeof(uint64_t));
	dsf_memory_delete(r->memory, r->active, r->port_words * sizeof(uint64_t));
	dsf_memory_delete(r->memory, r->down, r->port_words * sizeof(uint64_t));
	dsf_memory_delete(r->memory, r->wants, r->port_words * sizeof(uint64_t));
	dsf_memory_delete(r->memory, r->told_ports, table_size(r));
	dsf_memory_delete(r->memory, r->withheld_ports, table_size(r));
	dsf_memory_delete(r->memory, r->tell, tell_size(r));
	dsf_memory_delete(r->memory, r->withhold, tell_size(r));
	dsf_memory_delete(r->memory, r->resort_ports, table_size(r));
	dsf_memory_delete(r->memory, r->resort, tell_size(r));
	memset(r, 0, sizeof(*r));
}

static void want_send(struct fabric_reach *r, uint32_t port)
{
	if (!r->ports[port].carrier || dsf_bitset_has(r->wants, port))
		return;
	dsf_bitset_add(r->wants, port);
	r->wants_count++;
}

static void forget_want(struct fabric_reach *r, uint32_t port)
{
	if (!dsf_bitset_has(r->wants, port))
		return;
	dsf_bitset_remove(r->wants, port);
	r->wants_count--;
}

static void set_bit(uint64_t *set, uint32_t bit, bool on)
{
	if (on)
		dsf_bitset_add(set, bit);
	else
		dsf_bitset_remove(set, bit);
}

static bool any_of(const uint64_t *set, const uint64_t *mask, uint32_t words)
{
	uint64_t any = 0;

	for (uint32_t w = 0; w < words; w++)
		any |= set[w] & mask[w];
	return any != 0;
}

/* 64 destinations of which a peer has told some, withheld others, and is a last resort for some. */
struct claim {
	uint64_t told, withheld, resort;
};

static const struct claim no_claim;

/* What the peer at a port last claimed. A whole fabric's sets don't fit any cache, so little is
 * read of those that are nearly always empty. */
static inline struct claim claim_of(const struct fabric_reach_port *p, uint32_t word)
{
	if (p->told == NULL)
		return no_claim;
	return (struct claim){ .told = p->told[word],
		.withheld = p->withheld_words == 0 ? 0 : p->withheld[word],
		.resort = p->resort_words == 0 ? 0 : p->resort[word] };
}

/* Port begins to reach some destinations of a word and ceases to reach others. */
static void change_ports(struct fabric_reach *r, uint32_t port, uint32_t word, uint64_t gained,
	uint64_t lost, dsf_instant now)
{
	r->any[word] |= gained;
	if (dsf_bitset_has(r->down, port))
		r->direct[word] |= gained;
	for (uint64_t changed = gained | lost; changed != 0; changed &= changed - 1) {
		uint32_t bit = (uint32_t)__builtin_ctzll(changed), destination = word * 64 + bit;
		uint64_t *ports = r->by_destination + (size_t)destination * r->port_words;
		bool reached = gained >> bit & 1u;

		set_bit(ports, port, reached);
		if (r->balance.memory != NULL)
			fabric_balance_heard(&r->balance, destination, port, reached);
		if (!reached) {
			set_bit(r->any, destination, any_of(ports, r->active, r->port_words));
			set_bit(r->direct, destination, any_of(ports, r->down, r->port_words));
		}
		if (r->trace != NULL)
			dsf_trace_emit(r->trace, now, DSF_EVENT_REACH_CHANGED, r->node, destination,
				dsf_bitset_count(ports, r->port_words));
	}
	r->changed[word] |= gained | lost;
	r->changed_any = true;
	if (word < r->changed_word)
		r->changed_word = word;
}

/* Counts the links that lead to destinations of a word; any has those to which one does. */
static void count_links(
	uint32_t *counts, uint64_t *any, uint32_t word, uint64_t gained, uint64_t lost)
{
	uint32_t *count = counts + (size_t)word * 64;

	any[word] |= gained;
	for (; gained != 0; gained &= gained - 1)
		count[__builtin_ctzll(gained)]++;
	for (; lost != 0; lost &= lost - 1)
		if (--count[__builtin_ctzll(lost)] == 0)
			any[word] &= ~(lost & -lost);
}

/* Applies the difference between what the port gave us so far and what it gives us now. */
static void apply_difference(struct fabric_reach *r, uint32_t port, uint32_t word, struct claim was,
	struct claim is, dsf_instant now)
{
	uint64_t before = was.told | was.withheld, after = is.told | is.withheld;
	uint64_t changed = (was.told ^ is.told) | (before ^ after);

	if (changed == 0)
		return;
	if (was.told != is.told)
		change_ports(r, port, word, is.told & ~was.told, was.told & ~is.told, now);
	count_links(r->unbalanced_count, r->unbalanced, word, after & ~before, before & ~after);
	r->stale[word] |= changed;
	r->stale_any = true;
}

/* Of a claim what a link gives for last resort alone: all, unless it counts as a way. */
static uint64_t resort_of(const struct fabric_reach_port *p, struct claim claim)
{
	if (!p->live || p->loop)
		return 0;
	return p->active ? claim.resort & ~(claim.told | claim.withheld)
			 : claim.told | claim.withheld | claim.resort;
}

static void apply_resort(struct fabric_reach *r, uint32_t word, uint64_t was, uint64_t is)
{
	if (was == is)
		return;
	count_links(r->resorts_count, r->resorts, word, is & ~was, was & ~is);
	r->stale[word] |= was ^ is;
	r->stale_any = true;
}

/* Takes a port's last resorts out before its state changes, and in again behind that. */
static void count_resorts(struct fabric_reach *r, const struct fabric_reach_port *p, bool on)
{
	if (p->told == NULL || !p->live || (p->active && p->resort_words == 0))
		return;
	for (uint32_t w = 0; w < r->switch_words; w++) {
		uint64_t resort = resort_of(p, claim_of(p, w));

		apply_resort(r, w, on ? 0 : resort, on ? resort : 0);
	}
}

/* Those of a word's destinations that are told as the first of them is, and will be. */
static uint64_t find_alike(const struct fabric_reach *r, uint32_t word, uint64_t stale)
{
	uint64_t first = stale & -stale, alike = first;
	size_t size = r->port_words * sizeof(uint64_t), at;
	uint32_t d = word * 64 + (uint32_t)__builtin_ctzll(first);
	const uint64_t *told = r->told_ports + (size_t)d * r->port_words;
	const uint64_t *withheld = r->withheld_ports + (size_t)d * r->port_words;

	if (fabric_balance_alone(&r->balance, d))
		return first;
	stale &= r->direct[word] & first ? r->direct[word] : ~r->direct[word];
	stale &= r->unbalanced[word] & first ? r->unbalanced[word] : ~r->unbalanced[word];
	for (stale &= ~first; stale != 0; stale &= stale - 1) {
		uint32_t other = word * 64 + (uint32_t)__builtin_ctzll(stale);

		at = (size_t)other * r->port_words;
		if (fabric_balance_alike(&r->balance, d, other) &&
			memcmp(told, r->told_ports + at, size) == 0 &&
			memcmp(withheld, r->withheld_ports + at, size) == 0)
			alike |= stale & -stale;
	}
	return alike;
}

/* Brings what we say on each port of some destinations of a word, of which we said the same, up to
 * date; by is the transpose of ports. */
static void retell(struct fabric_reach *r, uint32_t word, uint64_t destinations, uint64_t *ports,
	const uint64_t *want, uint64_t *by)
{
	uint64_t *first = ports + (size_t)(word * 64 + (uint32_t)__builtin_ctzll(destinations)) *
					  r->port_words;
	bool same = true;

	for (uint32_t w = 0; w < r->port_words; w++)
		for (uint64_t changed = first[w] ^ want[w]; changed != 0; changed &= changed - 1) {
			uint32_t port = w * 64 + (uint32_t)__builtin_ctzll(changed);

			by[(size_t)port * r->switch_words + word] ^= destinations;
			want_send(r, port);
			same = false;
		}
	for (; !same && destinations != 0; destinations &= destinations - 1)
		memcpy(ports + (size_t)(word * 64 + (uint32_t)__builtin_ctzll(destinations)) *
					r->port_words,
			want, r->port_words * sizeof(*want));
}

/* Balances destinations of a word anew. */
static void balance(struct fabric_reach *r, uint32_t word, uint64_t stale)
{
	uint64_t told[DSF_BITSET_WORDS(PORTS_MAX)], withheld[DSF_BITSET_WORDS(PORTS_MAX)];

	while (stale != 0) {
		uint64_t alike = find_alike(r, word, stale);
		uint32_t destination = word * 64 + (uint32_t)__builtin_ctzll(alike);
		bool reachable = dsf_bitset_has(r->unbalanced, destination);

		fabric_balance_tell(&r->balance, destination,
			dsf_bitset_has(r->direct, destination), told, withheld);
		for (uint32_t w = 0; w < r->port_words; w++)
			withheld[w] = reachable ? withheld[w] & ~told[w] : 0;
		retell(r, word, alike, r->told_ports, told, r->tell);
		retell(r, word, alike, r->withheld_ports, withheld, r->withhold);
		stale &= ~alike;
	}
}

/* Does the link lead to destination, be it as last resort? */
static bool leads(const struct fabric_reach *r, uint32_t port, uint32_t destination)
{
	const struct fabric_reach_port *p = &r->ports[port];
	struct claim claim = claim_of(p, destination / 64);

	return p->live && !p->loop &&
	       ((claim.told | claim.withheld | claim.resort) >> destination % 64 & 1u);
}

/* Does a link lead down to destination for last resort alone? */
static bool is_below(const struct fabric_reach *r, uint32_t destination)
{
	const uint64_t *behind = fabric_balance_behind(&r->balance, destination);

	for (uint32_t i = behind == NULL ? r->ports_count
					 : dsf_bitset_next(behind, 0, r->ports_count);
		i < r->ports_count; i = dsf_bitset_next(behind, i + 1, r->ports_count)) {
		const struct fabric_reach_port *p = &r->ports[i];

		if (resort_of(p, claim_of(p, destination / 64)) >> destination % 64 & 1u)
			return true;
	}
	return false;
}

/* On which ports we tell that cells for destination find a last resort here: where the rules let us
 * tell of it, and we don't. */
static void find_resort_ports(const struct fabric_reach *r, uint32_t destination, uint64_t *ports)
{
	const uint64_t *told = fabric_reach_told(r, destination);
	const uint64_t *withheld = fabric_reach_withheld(r, destination);
	bool reached = dsf_bitset_has(r->unbalanced, destination) ||
		       dsf_bitset_has(r->resorts, destination);
	bool direct = dsf_bitset_has(r->direct, destination) || is_below(r, destination);

	fabric_balance_inputs(&r->balance, destination, direct, r->live, ports);
	for (uint32_t w = 0; w < r->port_words; w++)
		ports[w] = reached ? ports[w] & ~told[w] & ~withheld[w] : 0;
}

/* There are tables of last resorts from the first drain on. */
static bool make_resort_tables(struct fabric_reach *r)
{
	if (r->resort_ports == NULL)
		r->resort_ports = dsf_memory_new(r->memory, table_size(r));
	if (r->resort == NULL)
		r->resort = dsf_memory_new(r->memory, tell_size(r));
	return r->resort_ports != NULL && r->resort != NULL;
}

/* Brings up to date for which destinations of a word we are a last resort. Without drains, none. */
static void tell_resorts(struct fabric_reach *r, uint32_t word, uint64_t stale)
{
	uint64_t ports[DSF_BITSET_WORDS(PORTS_MAX)];

	stale &= r->resorts[word] | r->resort_told[word] |
		 (r->live_count > r->active_count ? r->unbalanced[word] : 0);
	if (stale == 0 || !make_resort_tables(r))
		return;
	for (; stale != 0; stale &= stale - 1) {
		uint32_t destination = word * 64 + (uint32_t)__builtin_ctzll(stale);

		find_resort_ports(r, destination, ports);
		retell(r, word, stale & -stale, r->resort_ports, ports, r->resort);
		set_bit(r->resort_told, destination, any_of(ports, r->live, r->port_words));
	}
}

/* Tells the trace which destinations of a word only balance keeps us from. */
static void tell_cut(struct fabric_reach *r, uint32_t word, dsf_instant now)
{
	uint64_t cut = r->unbalanced[word] & ~r->any[word];
	uint64_t changed = (cut ^ r->cut[word]) & r->stale[word];

	r->cut[word] ^= changed;
	for (; changed != 0; changed &= changed - 1)
		dsf_trace_emit(r->trace, now,
			cut & changed & -changed ? DSF_EVENT_BALANCE_CUT : DSF_EVENT_BALANCE_BACK,
			r->node, word * 64 + (uint32_t)__builtin_ctzll(changed), 0);
}

/* Cells that no way is left for may go otherwise now. */
static void change_resorts(struct fabric_reach *r, const struct fabric_reach_port *p)
{
	for (uint32_t w = 0; p->told != NULL && w < r->switch_words; w++) {
		struct claim claim = claim_of(p, w);

		r->changed[w] |= claim.told | claim.withheld | claim.resort;
	}
	r->changed_any = true;
	r->changed_word = 0;
}

static void forget_told(struct fabric_reach *r, struct fabric_reach_port *p)
{
	if (p->told == NULL)
		return;
	memset(p->told, 0, 2 * set_size(r));
	if (p->resort != NULL)
		memset(p->resort, 0, set_size(r));
	p->withheld_words = p->resort_words = 0;
}

static void set_active(struct fabric_reach *r, uint32_t port, bool active, dsf_instant now)
{
	struct fabric_reach_port *p = &r->ports[port];

	if (active == p->active)
		return;
	p->active = active;
	set_bit(r->active, port, active);
	r->active_count += active ? 1u : ~0u;
	if (r->balance.memory != NULL)
		fabric_balance_live(&r->balance, port, active);
	for (uint32_t w = 0; p->told != NULL && w < r->switch_words; w++) {
		struct claim claim = claim_of(p, w);

		apply_difference(
			r, port, w, active ? no_claim : claim, active ? claim : no_claim, now);
	}
}

static void set_live(struct fabric_reach *r, uint32_t port, bool live, dsf_instant now)
{
	struct fabric_reach_port *p = &r->ports[port];

	if (live == p->live)
		return;
	p->live = live;
	if (!p->loop) {
		r->live_count += live ? 1u : ~0u;
		set_bit(r->live, port, live);
	}
	dsf_trace_emit(r->trace, now, live ? DSF_EVENT_LINK_LIVE : DSF_EVENT_LINK_SILENT, r->node,
		port, 0);
}

static void update(struct fabric_reach *r, uint32_t port, dsf_instant now)
{
	struct fabric_reach_port *p = &r->ports[port];
	bool live = p->carrier && p->heard && p->hears_me && !p->isolated;
	bool usable = live && !p->loop && !p->drained && !p->peer_drained;
	bool active = usable && !fabric_reach_drained(r);

	if (usable != p->usable) {
		p->usable = usable;
		r->usable_count += usable ? 1u : ~0u;
	}
	if (live == p->live && active == p->active)
		return;
	count_resorts(r, p, false);
	set_live(r, port, live, now);
	set_active(r, port, active, now);
	count_resorts(r, p, true);
	change_resorts(r, p);
	/* Its groups are others now, whatever comes in by them. */
	for (uint32_t w = 0; w < r->switch_words; w++)
		r->stale[w] |= r->unbalanced[w] | r->resorts[w];
	r->stale_any = true;
	want_send(r, port);
}

/* A drain of all ports begins or ends. */
static void update_all(struct fabric_reach *r, dsf_instant now)
{
	bool drained = fabric_reach_drained(r);

	dsf_trace_emit(r->trace, now,
		drained ? DSF_EVENT_SWITCH_DRAINED : DSF_EVENT_SWITCH_UNDRAINED, r->node,
		r->usable_count, 0);
	for (uint32_t i = 0; i < r->ports_count; i++) {
		update(r, i, now);
		want_send(r, i);
	}
}

/* Published: one that has fewer links than it needs to remain is drained, until it has as many as
 * it needs to join. */
static void keep_minimum(struct fabric_reach *r, dsf_instant now)
{
	bool starved =
		r->usable_count < (r->starved ? r->min_links_to_join : r->min_links_to_remain);

	if (starved == r->starved)
		return;
	r->starved = starved;
	if (!r->asked_drained)
		update_all(r, now);
}

/* Ends every change: looks at the destinations that it concerned. */
static void settle(struct fabric_reach *r, dsf_instant now)
{
	keep_minimum(r, now);
	if (!r->stale_any)
		return;
	r->stale_any = false;
	for (uint32_t w = 0; w < r->switch_words; w++) {
		if (r->stale[w] == 0)
			continue;
		if (r->balance.memory != NULL) { /* an interface node tells of itself alone */
			balance(r, w, r->stale[w]);
			tell_resorts(r, w, r->stale[w]);
		}
		tell_cut(r, w, now);
		r->stale[w] = 0;
	}
}

static void set_heard(struct fabric_reach *r, uint32_t port, bool heard, dsf_instant now)
{
	struct fabric_reach_port *p = &r->ports[port];

	if (heard == p->heard)
		return;
	p->heard = heard;
	if (!heard)
		p->loss.known = false;
	update(r, port, now);
	want_send(r, port);
}

void fabric_reach_carrier(struct fabric_reach *r, uint32_t port, bool up, dsf_instant now)
{
	struct fabric_reach_port *p = &r->ports[port];

	if (up == p->carrier)
		return;
	p->carrier = up;
	p->heard = p->hears_me = p->isolated = false;
	p->loss.known = false;
	fabric_loss_forget(&p->loss);
	p->heard_at = now;
	if (!up)
		forget_want(r, port);
	update(r, port, now);
	if (!up)
		forget_told(r, p);
	want_send(r, port);
	settle(r, now);
}

void fabric_reach_drain(struct fabric_reach *r, uint32_t port, bool drained, dsf_instant now)
{
	struct fabric_reach_port *p = &r->ports[port];

	if (drained == p->drained)
		return;
	dsf_trace_emit(r->trace, now, drained ? DSF_EVENT_LINK_DRAINED : DSF_EVENT_LINK_UNDRAINED,
		r->node, port, 0);
	p->drained = drained;
	update(r, port, now);
	want_send(r, port);
	settle(r, now);
}

void fabric_reach_drain_all(struct fabric_reach *r, bool drained, dsf_instant now)
{
	if (drained == r->asked_drained)
		return;
	r->asked_drained = drained;
	if (!r->starved)
		update_all(r, now);
	settle(r, now);
}

void fabric_reach_heard(struct fabric_reach *r, uint32_t port, bool heard_us, dsf_instant now)
{
	struct fabric_reach_port *p = &r->ports[port];

	p->heard_at = now;
	if (p->heard && p->hears_me == heard_us)
		return;
	p->hears_me = heard_us;
	set_heard(r, port, true, now);
	update(r, port, now);
	settle(r, now);
}

static void isolate(struct fabric_reach *r, uint32_t port, dsf_instant now)
{
	struct fabric_reach_port *p = &r->ports[port];

	dsf_trace_emit(r->trace, now, DSF_EVENT_LINK_ISOLATED, r->node, port, p->loss.window_lost);
	p->isolated = true;
	p->clean_periods = 0;
	fabric_loss_forget(&p->loss);
	update(r, port, now);
	want_send(r, port);
}

/* A peer's sets, from its first cell on; that of last resorts from the first one on. */
static bool make_sets(struct fabric_reach *r, struct fabric_reach_port *p, bool resort)
{
	if (p->told == NULL)
		p->told = dsf_memory_new(r->memory, 2 * set_size(r));
	if (p->told != NULL)
		p->withheld = p->told + r->switch_words;
	if (resort && p->resort == NULL)
		p->resort = dsf_memory_new(r->memory, set_size(r));
	return p->told != NULL && (!resort || p->resort != NULL);
}

/* The peer's end is drained, or no longer; not active before its set is in. */
static void hear_drained(struct fabric_reach *r, uint32_t port, bool drained, dsf_instant now)
{
	struct fabric_reach_port *p = &r->ports[port];

	if (drained == p->peer_drained)
		return;
	dsf_trace_emit(r->trace, now,
		drained ? DSF_EVENT_LINK_PEER_DRAINED : DSF_EVENT_LINK_PEER_UNDRAINED, r->node,
		port, 0);
	p->peer_drained = drained;
}

/* What a peer claims of a word's destinations. Nearly always what it did before: nothing is written
 * then. */
static void hear_word(
	struct fabric_reach *r, uint32_t port, uint32_t word, struct claim is, dsf_instant now)
{
	struct fabric_reach_port *p = &r->ports[port];
	struct claim was = claim_of(p, word);

	if (was.told == is.told && was.withheld == is.withheld && was.resort == is.resort)
		return;
	p->told[word] = is.told;
	p->withheld[word] = is.withheld;
	p->withheld_words += (is.withheld != 0) - (was.withheld != 0);
	if (p->resort != NULL)
		p->resort[word] = is.resort;
	p->resort_words += (is.resort != 0) - (was.resort != 0);
	if (p->active)
		apply_difference(r, port, word, was, is, now);
	apply_resort(r, word, resort_of(p, was), resort_of(p, is));
	r->changed[word] |=
		(was.told | was.withheld | was.resort) ^ (is.told | is.withheld | is.resort);
	r->changed_any = true;
	if (word < r->changed_word)
		r->changed_word = word;
}

int fabric_reach_input(
	struct fabric_reach *r, uint32_t port, const uint8_t *payload, size_t size, dsf_instant now)
{
	struct fabric_reach_cell cell;
	int err = fabric_reach_cell_decode(&cell, payload, size);

	if (err == 0 && cell.first + cell.count > r->switches_count)
		err = -DSF_E_BADFIELD;
	if (err < 0)
		return err;
	if (cell.count > 0 && !make_sets(r, &r->ports[port], cell.resort != NULL))
		return -DSF_E_NOMEM;
	hear_drained(r, port, cell.drained, now);
	for (uint32_t at = 0; at < cell.count; at += 64)
		hear_word(r, port, (cell.first + at) / 64,
			(struct claim){ fabric_reach_cell_word(&cell, cell.told, at),
				fabric_reach_cell_word(&cell, cell.withheld, at),
				fabric_reach_cell_word(&cell, cell.resort, at) },
			now);
	update(r, port, now);
	settle(r, now);
	return 0;
}

/* Is the link that was isolated clean again? Once a period. */
static void judge_isolated(struct fabric_reach *r, uint32_t port, dsf_instant now)
{
	struct fabric_reach_port *p = &r->ports[port];
	bool clean = p->heard && p->loss.window_received > FABRIC_REACH_FILL_CELLS / 2 &&
		     p->loss.period_lost == 0;

	p->clean_periods = clean ? p->clean_periods + 1 : 0;
	fabric_loss_forget(&p->loss);
	if (p->clean_periods < FABRIC_REACH_CLEAN_PERIODS)
		return;
	dsf_trace_emit(r->trace, now, DSF_EVENT_LINK_RECOVERED, r->node, port, 0);
	p->isolated = false;
	update(r, port, now);
}

static void refresh_port(struct fabric_reach *r, uint32_t port, dsf_instant now)
{
	struct fabric_reach_port *p = &r->ports[port];

	if (!p->carrier)
		return;
	if (p->heard &&
		dsf_time_since(p->heard_at, now) > FABRIC_REACH_SILENCE_PERIODS * r->refresh_ns)
		set_heard(r, port, false, now);
	if (p->isolated)
		judge_isolated(r, port, now);
	else if (fabric_loss_judge(&p->loss))
		isolate(r, port, now);
	p->fill_wanted = p->heard && !p->live;
	want_send(r, port);
}

void fabric_reach_expire(struct fabric_reach *r, dsf_instant now)
{
	if (!dsf_time_due(r->refresh_at, now))
		return;
	for (uint32_t i = 0; i < r->ports_count; i++)
		if (r->ports[i].peer_tier != FABRIC_TIER_NONE || r->ports[i].loop)
			refresh_port(r, i, now);
	settle(r, now);
	r->refresh_at = dsf_time_after(r->refresh_at, r->refresh_ns);
	if (dsf_time_due(r->refresh_at, now)) /* a late driver skips the periods that are gone */
		r->refresh_at = dsf_time_after(now, r->refresh_ns);
}

bool fabric_reach_next_send(struct fabric_reach *r, const uint64_t *busy, uint32_t *port)
{
	uint64_t below = (1ull << (*port % 64)) - 1; /* of the first word: asked about before */

	for (uint32_t w = *port / 64; r->wants_count > 0 && w < r->port_words; w++, below = 0) {
		uint64_t ready = r->wants[w] & ~busy[w] & ~below;

		if (ready == 0)
			continue;
		*port = w * 64 + (uint32_t)__builtin_ctzll(ready);
		forget_want(r, *port);
		return true;
	}
	return false;
}

/* Is our end of the link drained? */
static bool is_drained(const struct fabric_reach *r, uint32_t port)
{
	return r->ports[port].drained || fabric_reach_drained(r);
}

void fabric_reach_advertised(const struct fabric_reach *r, uint32_t port, uint64_t *set)
{
	memset(set, 0, set_size(r));
	if (r->tell != NULL)
		memcpy(set, r->tell + (size_t)port * r->switch_words, set_size(r));
	else if (r->tier == FABRIC_TIER_INTERFACE && !is_drained(r, port))
		dsf_bitset_add(set, r->self);
}

/* A port's row of a table, as far as there is anything to tell; NULL: nothing. */
static const uint64_t *row_of(const struct fabric_reach *r, const uint64_t *table, uint32_t port)
{
	const uint64_t *row = table == NULL ? NULL : table + (size_t)port * r->switch_words;

	for (uint32_t w = r->first_word; row != NULL && w < r->end_word; w++)
		if (row[w] != 0)
			return row;
	return NULL;
}

size_t fabric_reach_output(
	const struct fabric_reach *r, uint32_t port, uint32_t part, uint8_t *payload, size_t cap)
{
	uint64_t told[DSF_BITSET_WORDS(SWITCHES_MAX)], own[DSF_BITSET_WORDS(SWITCHES_MAX)];
	struct fabric_reach_telling t = { .drained = is_drained(r, port),
		.told = told,
		.withheld = row_of(r, r->withhold, port),
		.resort = row_of(r, r->resort, port),
		.first = r->first_word * 64,
		.end = r->end_word * 64,
		.cell_bytes = r->cell_bytes };

	if (t.end > r->switches_count)
		t.end = r->switches_count;
	fabric_reach_advertised(r, port, told);
	if (r->tier == FABRIC_TIER_INTERFACE && t.drained) {
		memset(own, 0, set_size(r));
		dsf_bitset_add(own, r->self);
		t.resort = own;
	}
	return fabric_reach_cell_encode(&t, part, payload, cap);
}

void fabric_reach_last_resort(const struct fabric_reach *r, uint32_t destination, uint64_t *ports)
{
	memset(ports, 0, r->port_words * sizeof(uint64_t));
	for (uint32_t i = 0; i < r->ports_count; i++)
		if (leads(r, i, destination))
			dsf_bitset_add(ports, i);
}

bool fabric_reach_next_changed(struct fabric_reach *r, uint32_t *destination)
{
	uint32_t next;

	if (!r->changed_any)
		return false;
	next = dsf_bitset_next(r->changed, r->changed_word * 64, r->switches_count);
	if (next >= r->switches_count) {
		r->changed_any = false;
		r->changed_word = r->switch_words;
		return false;
	}
	r->changed_word = next / 64;
	dsf_bitset_remove(r->changed, next);
	*destination = next;
	return true;
}
