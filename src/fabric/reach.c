#include "fabric/reach.h"
#include <assert.h>
#include "base/err.h"

#define SWITCHES_MAX 16384u /* as topo/model.h; a set on the stack */
#define BITMAP_AT    4u     /* in a reachability cell's payload */

static size_t table_size(const struct fabric_reach *r)
{
	return (size_t)r->switches_count * r->port_words * sizeof(uint64_t);
}

static size_t set_size(const struct fabric_reach *r)
{
	return r->switch_words * sizeof(uint64_t);
}

/* Whole words of a bitmap that one cell holds. */
static uint32_t cell_switches(uint32_t cell_bytes)
{
	uint32_t switches = (cell_bytes - FABRIC_CELL_HEADER - BITMAP_AT) / 8 * 64;

	return switches < FABRIC_REACH_CELL_SWITCHES ? switches : FABRIC_REACH_CELL_SWITCHES;
}

int fabric_reach_init(struct fabric_reach *r, const struct dsf_memory *memory,
	const struct fabric_reach_config *config)
{
	memset(r, 0, sizeof(*r));
	r->memory = memory;
	assert(config->switches_count <= SWITCHES_MAX);
	r->self = config->self;
	r->tier = config->tier;
	r->ports_count = config->ports_count;
	r->switches_count = config->switches_count;
	r->cell_switches = cell_switches(config->cell_bytes);
	r->refresh_ns = config->refresh_ns;
	r->refresh_at = config->first_refresh_at;
	r->trace = config->trace;
	r->node = config->node;
	r->switch_words = DSF_BITSET_WORDS(r->switches_count);
	r->port_words = DSF_BITSET_WORDS(r->ports_count);
	r->ports = dsf_memory_new(memory, r->ports_count * sizeof(*r->ports));
	r->by_destination = dsf_memory_new(memory, table_size(r));
	r->direct = dsf_memory_new(memory, set_size(r));
	r->any = dsf_memory_new(memory, set_size(r));
	r->changed = dsf_memory_new(memory, set_size(r));
	r->live = dsf_memory_new(memory, r->port_words * sizeof(uint64_t));
	if (r->ports == NULL || r->by_destination == NULL || r->direct == NULL || r->any == NULL ||
		r->changed == NULL || r->live == NULL) {
		fabric_reach_close(r);
		return -DSF_E_NOMEM;
	}
	return 0;
}

void fabric_reach_close(struct fabric_reach *r)
{
	for (uint32_t i = 0; r->ports != NULL && i < r->ports_count; i++)
		dsf_memory_delete(r->memory, r->ports[i].told, set_size(r));
	dsf_memory_delete(r->memory, r->ports, r->ports_count * sizeof(*r->ports));
	dsf_memory_delete(r->memory, r->by_destination, table_size(r));
	dsf_memory_delete(r->memory, r->direct, set_size(r));
	dsf_memory_delete(r->memory, r->any, set_size(r));
	dsf_memory_delete(r->memory, r->changed, set_size(r));
	dsf_memory_delete(r->memory, r->live, r->port_words * sizeof(uint64_t));
	memset(r, 0, sizeof(*r));
}

void fabric_reach_add_port(
	struct fabric_reach *r, uint32_t port, enum fabric_tier peer_tier, uint16_t peer_switch)
{
	r->ports[port].peer_tier = peer_tier;
	r->ports[port].peer_switch = peer_switch;
}

static void want_send(struct fabric_reach *r, uint32_t port)
{
	struct fabric_reach_port *p = &r->ports[port];

	if (!p->carrier || p->send_wanted)
		return;
	p->send_wanted = true;
	r->sends_wanted++;
}

static void want_send_to(struct fabric_reach *r, enum fabric_tier tier)
{
	for (uint32_t i = 0; i < r->ports_count; i++)
		if (r->ports[i].peer_tier == tier)
			want_send(r, i);
}

/* Does any port to an interface node still hear destination from that node itself? A direct
 * destination's ports are those whose peer it is. */
static bool heard_directly(const struct fabric_reach *r, uint32_t destination)
{
	const uint64_t *ports = fabric_reach_ports(r, destination);

	for (uint32_t i = dsf_bitset_next(ports, 0, r->ports_count); i < r->ports_count;
		i = dsf_bitset_next(ports, i + 1, r->ports_count))
		if (r->ports[i].peer_tier == FABRIC_TIER_INTERFACE)
			return true;
	return false;
}

static void set_bit(uint64_t *set, uint32_t bit, bool on)
{
	if (on)
		dsf_bitset_add(set, bit);
	else
		dsf_bitset_remove(set, bit);
}

/* Port begins or ceases to reach destination; who must be told follows from what that changed. */
static void change_port(
	struct fabric_reach *r, uint32_t port, uint32_t destination, bool reached, dsf_instant now)
{
	uint64_t *ports = r->by_destination + (size_t)destination * r->port_words;
	bool any, direct;

	set_bit(ports, port, reached);
	dsf_bitset_add(r->changed, destination);
	r->changed_any = true;
	dsf_trace_emit(r->trace, now, DSF_EVENT_REACH_CHANGED, r->node, destination,
		dsf_bitset_count(ports, r->port_words));
	any = dsf_bitset_next(ports, 0, r->ports_count) < r->ports_count;
	direct = any && heard_directly(r, destination);
	if (direct != dsf_bitset_has(r->direct, destination)) {
		set_bit(r->direct, destination, direct);
		want_send_to(r, FABRIC_TIER_SPINE);
		want_send_to(r, FABRIC_TIER_INTERFACE);
	}
	if (any != dsf_bitset_has(r->any, destination)) {
		set_bit(r->any, destination, any);
		want_send_to(r, FABRIC_TIER_INTERFACE);
		if (r->tier == FABRIC_TIER_SPINE)
			want_send_to(r, FABRIC_TIER_LEAF);
	}
}

/* Applies the difference between what the port gave us so far and what it gives us now. */
static void apply_difference(struct fabric_reach *r, uint32_t port, uint32_t word, uint64_t was,
	uint64_t is, dsf_instant now)
{
	for (uint64_t changed = was ^ is; changed != 0; changed &= changed - 1) {
		uint32_t bit = (uint32_t)__builtin_ctzll(changed);

		change_port(r, port, word * 64 + bit, is >> bit & 1u, now);
	}
}

static void update_live(struct fabric_reach *r, uint32_t port, dsf_instant now)
{
	struct fabric_reach_port *p = &r->ports[port];
	bool live = p->carrier && p->heard && p->hears_me && !p->isolated;

	if (live == p->live)
		return;
	p->live = live;
	set_bit(r->live, port, live);
	r->live_count += live ? 1u : ~0u;
	dsf_trace_emit(r->trace, now, live ? DSF_EVENT_LINK_LIVE : DSF_EVENT_LINK_SILENT, r->node,
		port, 0);
	for (uint32_t w = 0; p->told != NULL && w < r->switch_words; w++)
		apply_difference(r, port, w, live ? 0 : p->told[w], live ? p->told[w] : 0, now);
	want_send(r, port);
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
	if (!up && p->send_wanted) {
		p->send_wanted = false;
		r->sends_wanted--;
	}
	update_live(r, port, now);
	if (!up && p->told != NULL)
		memset(p->told, 0, set_size(r)); /* who comes back says it anew */
	want_send(r, port);
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

int fabric_reach_input(
	struct fabric_reach *r, uint32_t port, const uint8_t *payload, size_t size, dsf_instant now)
{
	struct dsf_cursor in = { payload, payload + size, false };
	struct fabric_reach_port *p = &r->ports[port];
	uint32_t first = (uint32_t)dsf_cursor_be(&in, 2), count = (uint32_t)dsf_cursor_be(&in, 2);
	const uint8_t *bits = dsf_cursor_bytes(&in, (count + 7) / 8);

	if (in.failed)
		return -DSF_E_TRUNCATED;
	if (first % 64 != 0 || first + count > r->switches_count)
		return -DSF_E_BADFIELD;
	if (p->told == NULL)
		p->told = dsf_memory_new(r->memory, set_size(r));
	if (p->told == NULL)
		return -DSF_E_NOMEM;
	for (uint32_t at = 0; at < count; at += 64) {
		uint32_t word = (first + at) / 64, left = count - at;
		uint64_t is = 0, was = p->told[word];

		for (uint32_t i = 0; i < 8 && at + i * 8 < count; i++)
			is |= (uint64_t)bits[at / 8 + i] << (8 * i);
		if (left < 64)
			is &= (1ull << left) - 1;
		if (is == was)
			continue;
		p->told[word] = is;
		if (p->live)
			apply_difference(r, port, word, was, is, now);
	}
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
		if (r->ports[i].peer_tier != FABRIC_TIER_NONE)
			refresh_port(r, i, now);
	r->refresh_at = dsf_time_after(r->refresh_at, r->refresh_ns);
	if (dsf_time_due(r->refresh_at, now)) /* a late driver skips the periods that are gone */
		r->refresh_at = dsf_time_after(now, r->refresh_ns);
}

bool fabric_reach_next_send(struct fabric_reach *r, uint32_t *port)
{
	if (r->sends_wanted == 0)
		return false;
	for (uint32_t i = *port; i < r->ports_count; i++) {
		if (!r->ports[i].send_wanted)
			continue;
		r->ports[i].send_wanted = false;
		r->sends_wanted--;
		*port = i;
		return true;
	}
	return false;
}

void fabric_reach_advertised(const struct fabric_reach *r, uint32_t port, uint64_t *set)
{
	const struct fabric_reach_port *p = &r->ports[port];

	memset(set, 0, set_size(r));
	switch (r->tier) {
	case FABRIC_TIER_INTERFACE: dsf_bitset_add(set, r->self); break;
	case FABRIC_TIER_LEAF:
		memcpy(set, p->peer_tier == FABRIC_TIER_SPINE ? r->direct : r->any, set_size(r));
		if (p->peer_tier == FABRIC_TIER_INTERFACE)
			dsf_bitset_remove(set, p->peer_switch);
		break;
	case FABRIC_TIER_SPINE: memcpy(set, r->any, set_size(r)); break;
	case FABRIC_TIER_NONE: break;
	}
}

size_t fabric_reach_output(
	const struct fabric_reach *r, uint32_t port, uint32_t part, uint8_t *payload, size_t cap)
{
	uint64_t set[DSF_BITSET_WORDS(SWITCHES_MAX)];
	uint32_t first = part * r->cell_switches, count;
	struct dsf_writer out = { payload, payload + cap, false };

	if (first >= r->switches_count)
		return 0;
	count = r->switches_count - first;
	if (count > r->cell_switches)
		count = r->cell_switches;
	fabric_reach_advertised(r, port, set);
	dsf_writer_be(&out, first, 2);
	dsf_writer_be(&out, count, 2);
	for (uint32_t at = 0; at < count; at += 8)
		dsf_writer_be(&out, set[(first + at) / 64] >> ((first + at) % 64) & 0xff, 1);
	assert(!out.failed);
	return (size_t)(out.at - payload);
}

bool fabric_reach_next_changed(struct fabric_reach *r, uint32_t *destination)
{
	uint32_t next;

	if (!r->changed_any)
		return false;
	next = dsf_bitset_next(r->changed, 0, r->switches_count);
	if (next >= r->switches_count) {
		r->changed_any = false;
		return false;
	}
	dsf_bitset_remove(r->changed, next);
	*destination = next;
	return true;
}
