#include "fabric/reach.h"
#include <assert.h>
#include "base/err.h"

#define SWITCHES_MAX 16384u /* as topo/model.h; a set on the stack */
#define PORTS_MAX    FABRIC_REACH_PORTS_MAX
#define BITMAP_AT    4u /* in a reachability cell's payload */

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
	r->active = dsf_memory_new(r->memory, r->port_words * sizeof(uint64_t));
	r->down = dsf_memory_new(r->memory, r->port_words * sizeof(uint64_t));
	r->wants = dsf_memory_new(r->memory, r->port_words * sizeof(uint64_t));
	return r->ports == NULL || r->by_destination == NULL || r->direct == NULL ||
			       r->any == NULL || r->unbalanced == NULL ||
			       r->unbalanced_count == NULL || r->changed == NULL ||
			       r->stale == NULL || r->cut == NULL || r->active == NULL ||
			       r->down == NULL || r->wants == NULL
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
	for (uint32_t i = 0; r->ports != NULL && i < r->ports_count; i++)
		dsf_memory_delete(r->memory, r->ports[i].told, 2 * set_size(r));
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
	dsf_memory_delete(r->memory, r->active, r->port_words * sizeof(uint64_t));
	dsf_memory_delete(r->memory, r->down, r->port_words * sizeof(uint64_t));
	dsf_memory_delete(r->memory, r->wants, r->port_words * sizeof(uint64_t));
	dsf_memory_delete(r->memory, r->told_ports, table_size(r));
	dsf_memory_delete(r->memory, r->withheld_ports, table_size(r));
	dsf_memory_delete(r->memory, r->tell, tell_size(r));
	dsf_memory_delete(r->memory, r->withhold, tell_size(r));
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

/* 64 destinations of which a peer has told some and withheld others. */
struct claim {
	uint64_t told, withheld;
};

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

/* The same, if nobody withheld anything. */
static void change_unbalanced(struct fabric_reach *r, uint32_t word, uint64_t gained, uint64_t lost)
{
	uint32_t *count = r->unbalanced_count + (size_t)word * 64;

	r->unbalanced[word] |= gained;
	for (; gained != 0; gained &= gained - 1)
		count[__builtin_ctzll(gained)]++;
	for (; lost != 0; lost &= lost - 1)
		if (--count[__builtin_ctzll(lost)] == 0)
			r->unbalanced[word] &= ~(lost & -lost);
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
	change_unbalanced(r, word, after & ~before, before & ~after);
	r->stale[word] |= changed;
	r->stale_any = true;
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

static void update_active(struct fabric_reach *r, uint32_t port, dsf_instant now)
{
	struct fabric_reach_port *p = &r->ports[port];
	bool active = p->usable && !fabric_reach_drained(r);

	if (active == p->active)
		return;
	p->active = active;
	set_bit(r->active, port, active);
	r->active_count += active ? 1u : ~0u;
	if (r->balance.memory != NULL)
		fabric_balance_live(&r->balance, port, active);
	for (uint32_t w = 0; p->told != NULL && w < r->switch_words; w++) {
		struct claim claim = { p->told[w], p->withheld[w] }, none = { 0, 0 };

		apply_difference(r, port, w, active ? none : claim, active ? claim : none, now);
	}
	/* Its groups are others now, whatever comes in by them. */
	for (uint32_t w = 0; w < r->switch_words; w++)
		r->stale[w] |= r->unbalanced[w];
	r->stale_any = true;
	want_send(r, port);
}

/* The port may no longer be somebody's last resort, or become it. */
static void change_resort(struct fabric_reach *r, const struct fabric_reach_port *p)
{
	for (uint32_t w = 0; p->told != NULL && w < r->switch_words; w++)
		r->changed[w] |= p->told[w] | p->withheld[w];
	r->changed_any = true;
	r->changed_word = 0;
}

static void forget_told(struct fabric_reach *r, struct fabric_reach_port *p)
{
	if (p->told == NULL)
		return;
	change_resort(r, p);
	memset(p->told, 0, 2 * set_size(r));
	p->withheld_words = 0;
}

static void update_live(struct fabric_reach *r, uint32_t port, dsf_instant now)
{
	struct fabric_reach_port *p = &r->ports[port];
	bool live = p->carrier && p->heard && p->hears_me && !p->isolated;
	bool usable = live && !p->loop && !p->drained && !p->peer_drained;

	if (live != p->live) {
		p->live = live;
		if (!p->loop)
			r->live_count += live ? 1u : ~0u;
		dsf_trace_emit(r->trace, now, live ? DSF_EVENT_LINK_LIVE : DSF_EVENT_LINK_SILENT,
			r->node, port, 0);
		change_resort(r, p);
		want_send(r, port);
	}
	if (usable != p->usable) {
		p->usable = usable;
		r->usable_count += usable ? 1u : ~0u;
	}
	update_active(r, port, now);
}

/* After a drain what was told before it counts no more; the peer says it anew. */
static void forget_stale(struct fabric_reach *r, struct fabric_reach_port *p)
{
	if (!p->drained && !p->peer_drained && !fabric_reach_drained(r))
		forget_told(r, p);
}

/* A drain of all ports begins or ends. */
static void update_all(struct fabric_reach *r, dsf_instant now)
{
	bool drained = fabric_reach_drained(r);

	dsf_trace_emit(r->trace, now,
		drained ? DSF_EVENT_SWITCH_DRAINED : DSF_EVENT_SWITCH_UNDRAINED, r->node,
		r->usable_count, 0);
	for (uint32_t i = 0; i < r->ports_count; i++) {
		forget_stale(r, &r->ports[i]);
		update_active(r, i, now);
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
		if (r->balance.memory != NULL) /* an interface node tells of itself alone */
			balance(r, w, r->stale[w]);
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
		p->sequence_known = false;
	update_live(r, port, now);
	want_send(r, port);
}

static void forget_losses(struct fabric_reach_port *p)
{
	p->window_received = p->window_lost = p->previous_lost = p->period_lost = 0;
}

void fabric_reach_carrier(struct fabric_reach *r, uint32_t port, bool up, dsf_instant now)
{
	struct fabric_reach_port *p = &r->ports[port];

	if (up == p->carrier)
		return;
	p->carrier = up;
	p->heard = p->hears_me = p->isolated = false;
	p->sequence_known = false;
	forget_losses(p);
	p->heard_at = now;
	if (!up)
		forget_want(r, port);
	update_live(r, port, now);
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
	forget_stale(r, p);
	update_live(r, port, now);
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
	update_live(r, port, now);
	settle(r, now);
}

static void isolate(struct fabric_reach *r, uint32_t port, dsf_instant now)
{
	struct fabric_reach_port *p = &r->ports[port];

	dsf_trace_emit(r->trace, now, DSF_EVENT_LINK_ISOLATED, r->node, port, p->window_lost);
	p->isolated = true;
	p->clean_periods = 0;
	forget_losses(p);
	update_live(r, port, now);
	want_send(r, port);
}

/* A cell that was taken for lost has come after all. */
static void take_late(struct fabric_reach_port *p)
{
	uint32_t *lost = p->period_lost > 0     ? &p->period_lost
			 : p->previous_lost > 0 ? &p->previous_lost
						: &p->window_lost;

	if (*lost > 0)
		(*lost)--;
	if (p->lost > 0)
		p->lost--;
}

uint32_t fabric_reach_sequence(struct fabric_reach *r, uint32_t port, uint32_t sequence)
{
	struct fabric_reach_port *p = &r->ports[port];
	uint32_t lost = p->sequence_known ? sequence - p->sequence_next : 0;

	if (++p->window_received > FABRIC_REACH_WINDOW) {
		p->window_received /= 2;
		p->window_lost /= 2;
	}
	if (lost == 0 && p->sequence_known) { /* nearly always */
		p->sequence_next++;
		return 0;
	}
	if (-lost - 1 < FABRIC_REACH_LATE_MAX) {
		take_late(p);
		return 0;
	}
	if (lost > UINT32_MAX / 2) /* far in the past: the peer began anew */
		lost = 0;
	p->sequence_known = true;
	p->sequence_next = sequence + 1;
	p->lost += lost;
	fabric_reach_bad(r, port, lost);
	return lost;
}

void fabric_reach_bad(struct fabric_reach *r, uint32_t port, uint32_t cells)
{
	struct fabric_reach_port *p = &r->ports[port];

	if (p->period_lost < FABRIC_REACH_WINDOW)
		p->period_lost += cells < FABRIC_REACH_WINDOW ? cells : FABRIC_REACH_WINDOW;
}

/* Bits at to at+63 of a bitmap of count bits; NULL: an empty one. */
static uint64_t load_word(const uint8_t *bits, uint32_t at, uint32_t count)
{
	uint64_t word = 0;

	if (bits == NULL)
		return 0;
	if (count - at >= 64)
		return dsf_load_le64(bits + at / 8);
	for (uint32_t i = 0; at + i * 8 < count; i++)
		word |= (uint64_t)bits[at / 8 + i] << (8 * i);
	return word & ((1ull << (count - at)) - 1);
}

/* A peer's sets, from its first cell on. */
static bool make_sets(struct fabric_reach *r, struct fabric_reach_port *p)
{
	if (p->told == NULL)
		p->told = dsf_memory_new(r->memory, 2 * set_size(r));
	if (p->told != NULL)
		p->withheld = p->told + r->switch_words;
	return p->told != NULL;
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
	forget_stale(r, p);
}

/* What a peer claims of a word's destinations. Nearly always what it did before: a whole fabric's
 * sets don't fit any cache, so nothing is written then, and of the withheld little is read. */
static void hear_word(
	struct fabric_reach *r, uint32_t port, uint32_t word, struct claim is, dsf_instant now)
{
	struct fabric_reach_port *p = &r->ports[port];
	struct claim was = { p->told[word], p->withheld_words == 0 ? 0 : p->withheld[word] };

	if (was.told == is.told && was.withheld == is.withheld)
		return;
	p->told[word] = is.told;
	p->withheld[word] = is.withheld;
	p->withheld_words += (is.withheld != 0) - (was.withheld != 0);
	if (p->active)
		apply_difference(r, port, word, was, is, now);
}

int fabric_reach_input(
	struct fabric_reach *r, uint32_t port, const uint8_t *payload, size_t size, dsf_instant now)
{
	struct dsf_cursor in = { payload, payload + size, false };
	struct fabric_reach_port *p = &r->ports[port];
	uint32_t first = (uint32_t)dsf_cursor_be(&in, 2), count = (uint32_t)dsf_cursor_be(&in, 2);
	const uint8_t *told = dsf_cursor_bytes(&in, (count + 7) / 8), *withheld = NULL;

	if (!in.failed && in.at < in.end)
		withheld = dsf_cursor_bytes(&in, (count + 7) / 8);
	if (in.failed)
		return -DSF_E_TRUNCATED;
	if (first % 64 != 0 || first + count > r->switches_count)
		return -DSF_E_BADFIELD;
	if (count > 0 && !make_sets(r, p))
		return -DSF_E_NOMEM;
	hear_drained(r, port, count == 0, now);
	if (p->drained || fabric_reach_drained(r))
		count = 0; /* it tells nothing over a drained link; what it told before holds */
	for (uint32_t at = 0; at < count; at += 64)
		hear_word(r, port, (first + at) / 64,
			(struct claim){
				load_word(told, at, count), load_word(withheld, at, count) },
			now);
	update_live(r, port, now);
	settle(r, now);
	return 0;
}

/* Is the link that was isolated clean again? Once a period. */
static void judge_isolated(struct fabric_reach *r, uint32_t port, dsf_instant now)
{
	struct fabric_reach_port *p = &r->ports[port];
	bool clean =
		p->heard && p->window_received > FABRIC_REACH_FILL_CELLS / 2 && p->period_lost == 0;

	p->clean_periods = clean ? p->clean_periods + 1 : 0;
	forget_losses(p);
	if (p->clean_periods < FABRIC_REACH_CLEAN_PERIODS)
		return;
	dsf_trace_emit(r->trace, now, DSF_EVENT_LINK_RECOVERED, r->node, port, 0);
	p->isolated = false;
	update_live(r, port, now);
}

/* Does the link lose too much? Once a period, over what had a period's time to come late. */
static void judge(struct fabric_reach *r, uint32_t port, dsf_instant now)
{
	struct fabric_reach_port *p = &r->ports[port];

	p->window_lost += p->previous_lost;
	p->previous_lost = p->period_lost;
	p->period_lost = 0;
	if (p->window_lost >= FABRIC_REACH_LOSS_MIN &&
		p->window_lost * FABRIC_REACH_LOSS_SHARE > p->window_received)
		isolate(r, port, now);
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
	else
		judge(r, port, now);
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

void fabric_reach_advertised(const struct fabric_reach *r, uint32_t port, uint64_t *set)
{
	memset(set, 0, set_size(r));
	if (r->tier == FABRIC_TIER_INTERFACE)
		dsf_bitset_add(set, r->self);
	else if (r->tell != NULL)
		memcpy(set, r->tell + (size_t)port * r->switch_words, set_size(r));
}

/* What we withhold at port; NULL: nothing. */
static const uint64_t *withheld_at(const struct fabric_reach *r, uint32_t port)
{
	const uint64_t *set =
		r->withhold == NULL ? NULL : r->withhold + (size_t)port * r->switch_words;

	for (uint32_t w = r->first_word; set != NULL && w < r->end_word; w++)
		if (set[w] != 0)
			return set;
	return NULL;
}

/* Switches of one cell that has so many bitmaps, in whole words. */
static uint32_t cell_switches(const struct fabric_reach *r, uint32_t bitmaps)
{
	uint32_t room = r->cell_bytes - FABRIC_CELL_HEADER - BITMAP_AT;
	uint32_t words = room / 8 / bitmaps, most = FABRIC_REACH_CELL_SWITCHES / 64 / bitmaps;

	return (words < most ? words : most) * 64;
}

static void write_bitmap(
	struct dsf_writer *out, const uint64_t *set, uint32_t first, uint32_t count)
{
	uint8_t *room = dsf_writer_room(out, (count + 7) / 8);
	uint32_t at = 0;

	if (room == NULL)
		return;
	for (; count - at >= 64; at += 64)
		dsf_store_le64(room + at / 8, set[(first + at) / 64]);
	for (; at < count; at += 8)
		room[at / 8] = (uint8_t)(set[(first + at) / 64] >> (at % 64));
}

size_t fabric_reach_output(
	const struct fabric_reach *r, uint32_t port, uint32_t part, uint8_t *payload, size_t cap)
{
	uint64_t set[DSF_BITSET_WORDS(SWITCHES_MAX)];
	const uint64_t *withheld = withheld_at(r, port);
	uint32_t most = cell_switches(r, withheld == NULL ? 1 : 2), count;
	uint32_t first = r->first_word * 64 + part * most, end = r->end_word * 64;
	struct dsf_writer out = { payload, payload + cap, false };

	if (r->ports[port].drained || fabric_reach_drained(r)) {
		dsf_writer_be(&out, 0, BITMAP_AT); /* a cell about no switch */
		return part == 0 ? BITMAP_AT : 0;
	}
	if (end > r->switches_count)
		end = r->switches_count;
	if (first >= end)
		return 0;
	count = end - first < most ? end - first : most;
	fabric_reach_advertised(r, port, set);
	dsf_writer_be(&out, first, 2);
	dsf_writer_be(&out, count, 2);
	write_bitmap(&out, set, first, count);
	if (withheld != NULL)
		write_bitmap(&out, withheld, first, count);
	assert(!out.failed);
	return (size_t)(out.at - payload);
}

void fabric_reach_last_resort(const struct fabric_reach *r, uint32_t destination, uint64_t *ports)
{
	memset(ports, 0, r->port_words * sizeof(uint64_t));
	for (uint32_t i = 0; i < r->ports_count; i++) {
		const struct fabric_reach_port *p = &r->ports[i];

		if (p->live && !p->loop && p->told != NULL &&
			(dsf_bitset_has(p->told, destination) ||
				dsf_bitset_has(p->withheld, destination)))
			dsf_bitset_add(ports, i);
	}
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
