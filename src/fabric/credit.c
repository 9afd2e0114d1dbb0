#include "fabric/credit.h"
#include <assert.h>
#include "base/err.h"

/* A port with more than this waiting gives less than its rate; with twice that, nothing. */
#define BACKLOG_MARK_BYTES (4u * FABRIC_CREDIT_BURST_BYTES)
#define BACKLOG_LESS       16u
#define BACKLOG_MORE       32u

void fabric_credits_close(struct fabric_credits *s)
{
	const struct dsf_memory *memory = s->timers.memory;

	dsf_hash_close(&s->sources);
	dsf_heap_close(&s->timers);
	dsf_memory_delete(memory, s->ports, s->config.ports_count * sizeof(*s->ports));
	s->ports = NULL;
}

int fabric_credits_init(struct fabric_credits *s, const struct dsf_memory *memory,
	const struct fabric_credit_config *config)
{
	memset(s, 0, sizeof(*s));
	s->config = *config;
	s->ports = dsf_memory_new(memory, config->ports_count * sizeof(*s->ports));
	if (s->ports == NULL)
		return -DSF_E_NOMEM;
	for (uint32_t i = 0; i < config->ports_count; i++)
		for (int class = 0; class < FABRIC_CLASSES; class ++)
			s->ports[i].classes[class].weight = config->weights[class];
	dsf_hash_init(&s->sources, memory, sizeof(struct fabric_credit_key),
		sizeof(struct fabric_credit_source), FABRIC_CREDIT_SOURCES_MAX);
	dsf_heap_init(&s->timers, memory);
	s->sweep_at = DSF_NEVER;
	if (dsf_heap_reserve(&s->timers, config->ports_count) < 0) {
		fabric_credits_close(s);
		return -DSF_E_NOMEM;
	}
	return 0;
}

static struct fabric_credit_port *find_port(struct fabric_credits *s, uint32_t system_port)
{
	uint32_t index = system_port - s->config.first_system_port;

	if (index >= s->config.ports_count || !s->ports[index].used)
		return NULL;
	return &s->ports[index];
}

static bool has_waiting(const struct fabric_credit_port *p)
{
	for (int class = 0; class < FABRIC_CLASSES; class ++)
		if (p->classes[class].first != NULL)
			return true;
	return false;
}

static void schedule(struct fabric_credits *s, struct fabric_credit_port *p, dsf_instant now)
{
	dsf_instant at = dsf_time_max(p->next_at, now);

	if (p->held)
		at = s->fabric_live ? dsf_time_max(at, s->fabric_next_at) : DSF_NEVER;
	if (!p->up || !has_waiting(p) || dsf_time_is_never(at))
		dsf_heap_remove(&s->timers, &p->timer);
	else
		(void)dsf_heap_set(&s->timers, &p->timer, at);
}

void fabric_credit_port(
	struct fabric_credits *s, uint32_t system_port, uint64_t rate_bps, bool up, dsf_instant now)
{
	struct fabric_credit_port *p = &s->ports[system_port - s->config.first_system_port];

	p->used = true;
	/* What was given away at a slower rate must not hold up a faster one. */
	if (p->rate_bps != rate_bps || p->up != up)
		p->next_at = dsf_time_min(p->next_at, now);
	p->rate_bps = rate_bps;
	p->up = up;
	p->factor = FABRIC_CREDIT_FACTOR_ONE;
	p->backlog_bytes = 0;
	schedule(s, p, now);
}

void fabric_credit_fabric(struct fabric_credits *s, bool live, uint64_t rate_bps, dsf_instant now)
{
	if (s->fabric_live == live && s->fabric_bps == rate_bps)
		return;
	s->fabric_live = live;
	s->fabric_bps = rate_bps;
	s->fabric_next_at = dsf_time_min(s->fabric_next_at, now);
	for (uint32_t i = 0; i < s->config.ports_count; i++) {
		s->ports[i].held = false;
		schedule(s, &s->ports[i], now);
	}
}

static void list_source(
	struct fabric_credits *s, struct fabric_credit_port *p, struct fabric_credit_source *source)
{
	struct fabric_credit_class *class = &p->classes[source->key.class];

	if (source->listed)
		return;
	source->listed = true;
	source->next = NULL;
	if (source->key.source == s->config.self)
		class->local = source;
	*(class->last != NULL ? &class->last->next : &class->first) = source;
	class->last = source;
}

static void want_grant(struct fabric_credits *s, struct fabric_credit_source *source)
{
	if (source->grant_wanted)
		return;
	source->grant_wanted = true;
	source->grant_next = NULL;
	*(s->grant_last != NULL ? &s->grant_last->grant_next : &s->grant_first) = source;
	s->grant_last = source;
}

int fabric_credit_request(struct fabric_credits *s, const struct fabric_credit_key *key,
	uint32_t epoch, uint64_t total, uint32_t outstanding, dsf_instant now)
{
	struct fabric_credit_port *p = find_port(s, key->system_port);
	struct fabric_credit_source *source;

	if (p == NULL)
		return -DSF_E_UNKNOWN;
	if (total > INT64_MAX)
		return -DSF_E_BADFIELD;
	source = dsf_hash_put(&s->sources, key);
	if (source == NULL)
		return -DSF_E_FULL;
	if (dsf_time_is_never(s->sweep_at))
		s->sweep_at = dsf_time_after(now, s->config.idle_ns);
	if (source->epoch != epoch) {
		if (source->epoch != 0 && fabric_epoch_older(epoch, source->epoch))
			return -DSF_E_STALE;
		source->epoch = epoch;
		source->granted = total > outstanding ? total - outstanding : 0;
		source->requested = source->granted;
	}
	source->used = true;
	if (total <= source->granted) {
		want_grant(s, source); /* it missed the grant: say it again */
		return 0;
	}
	if (total - source->granted > UINT32_MAX)
		return -DSF_E_PEER;
	if (total > source->requested)
		source->requested = total;
	list_source(s, p, source);
	if (p->held && source->key.source == s->config.self) {
		p->held = false;
		schedule(s, p, now);
	} else if (p->timer.place == 0) {
		schedule(s, p, now);
	}
	return 0;
}

void fabric_credit_congested(struct fabric_credits *s, uint32_t system_port)
{
	struct fabric_credit_port *p = find_port(s, system_port);

	if (p != NULL)
		p->congested = true;
}

void fabric_credit_backlog(
	struct fabric_credits *s, uint32_t system_port, uint64_t bytes, dsf_instant now)
{
	struct fabric_credit_port *p = find_port(s, system_port);

	if (p != NULL) {
		p->backlog_bytes = bytes;
		p->backlog_at = now;
	}
}

static void adapt_factor(struct fabric_credits *s, struct fabric_credit_port *p, dsf_instant now)
{
	uint64_t loops;

	if (dsf_time_since(p->factor_at, now) < s->config.loop_ns)
		return;
	loops = s->config.loop_ns == 0 ? 1 : dsf_time_since(p->factor_at, now) / s->config.loop_ns;
	p->factor_at = now;
	if (p->congested)
		p->factor -= p->factor / 16;
	else
		p->factor += loops > 64 ? FABRIC_CREDIT_FACTOR_ONE : 4 * (uint32_t)loops;
	p->congested = false;
	if (p->factor > FABRIC_CREDIT_FACTOR_ONE)
		p->factor = FABRIC_CREDIT_FACTOR_ONE;
	if (p->factor < FABRIC_CREDIT_FACTOR_MIN)
		p->factor = FABRIC_CREDIT_FACTOR_MIN;
}

static bool wants(const struct fabric_credit_source *source)
{
	return source->requested > source->granted;
}

static bool class_waits(const struct fabric_credit_class *class, bool local_only)
{
	if (local_only)
		return class->local != NULL && wants(class->local);
	return class->first != NULL;
}

/* The class whose turn it is: nc before all, then by weight; work-conserving. */
static struct fabric_credit_class *pick_class(struct fabric_credit_port *p, bool local_only)
{
	if (class_waits(&p->classes[FABRIC_CLASS_NC], local_only))
		return &p->classes[FABRIC_CLASS_NC];
	for (int round = 0; round < 2; round++) {
		for (int i = FABRIC_CLASS_RDMA; i < FABRIC_CLASSES; i++)
			if (class_waits(&p->classes[i], local_only) && p->classes[i].turn_left > 0)
				return &p->classes[i];
		for (int i = FABRIC_CLASS_RDMA; i < FABRIC_CLASSES; i++)
			p->classes[i].turn_left = p->classes[i].weight;
	}
	return NULL;
}

/* The first that wants something, taken off the list; NULL: nobody does. */
static struct fabric_credit_source *pop_source(struct fabric_credit_class *class)
{
	struct fabric_credit_source *source;

	while ((source = class->first) != NULL) {
		class->first = source->next;
		if (class->first == NULL)
			class->last = NULL;
		source->listed = false;
		if (wants(source))
			break;
	}
	return source;
}

/* Whose turn it is; NULL: nobody waits. Our own switch alone keeps its place in the list. */
static struct fabric_credit_source *next_source(struct fabric_credit_port *p, bool local_only)
{
	struct fabric_credit_source *source = NULL;

	while (source == NULL) {
		struct fabric_credit_class *class = pick_class(p, local_only);

		if (class == NULL)
			return NULL;
		source = local_only ? class->local : pop_source(class);
		if (source != NULL && class->turn_left > 0)
			class->turn_left--;
	}
	return source;
}

/* One credit to the next source. Returns its bytes; 0: nobody waits. */
static uint32_t grant_one(
	struct fabric_credits *s, struct fabric_credit_port *p, bool local_only, bool *remote)
{
	struct fabric_credit_source *source = next_source(p, local_only);
	uint32_t credit = s->config.credit_bytes;

	if (source == NULL)
		return 0;
	assert(wants(source));
	source->granted += credit;
	source->used = true;
	p->granted_total += credit;
	*remote = source->key.source != s->config.self;
	want_grant(s, source);
	if (wants(source))
		list_source(s, p, source);
	return credit;
}

/* What waits at the port by now: it has been draining since the node last said. */
static uint64_t backlog(const struct fabric_credit_port *p, dsf_instant now)
{
	uint64_t drained = dsf_bytes_of_time(dsf_time_since(p->backlog_at, now), p->rate_bps);

	return p->backlog_bytes > drained ? p->backlog_bytes - drained : 0;
}

/* Packets come out of reassembly in bursts, and time in which the port has nothing to send is lost
 * for good. So it is granted a little more than its rate until enough waits there. */
static uint64_t effective_rate(const struct fabric_credit_port *p, dsf_instant now)
{
	uint64_t rate = p->rate_bps < UINT64_MAX / FABRIC_CREDIT_FACTOR_ONE
				? p->rate_bps * p->factor / FABRIC_CREDIT_FACTOR_ONE
				: p->rate_bps;

	if (backlog(p, now) > BACKLOG_MARK_BYTES)
		rate -= rate / BACKLOG_LESS;
	else
		rate += rate / BACKLOG_MORE;
	return rate > 0 ? rate : 1; /* 0 would mean unlimited */
}

static void charge_fabric(struct fabric_credits *s, uint64_t bytes, dsf_instant now)
{
	if (s->fabric_bps > 0)
		s->fabric_next_at = dsf_time_after(dsf_time_max(s->fabric_next_at, now),
			dsf_time_of_bytes(bytes, s->fabric_bps));
}

static void tick(struct fabric_credits *s, struct fabric_credit_port *p, dsf_instant now)
{
	uint64_t granted = 0, remote_bytes = 0;
	uint64_t burst_ns = dsf_time_of_bytes(FABRIC_CREDIT_BURST_BYTES, p->rate_bps);
	uint64_t most =
		p->rate_bps == 0 ? FABRIC_CREDIT_UNLIMITED_BYTES : FABRIC_CREDIT_BURST_BYTES;
	/* The fabric gets time to deliver what all ports were granted, beyond a burst. */
	bool local_only = !s->fabric_live ||
			  (s->fabric_bps > 0 && dsf_time_since(now, s->fabric_next_at) > burst_ns);
	bool remote = false;
	uint32_t credit;

	p->held = false;
	adapt_factor(s, p, now);
	if (backlog(p, now) > 2u * BACKLOG_MARK_BYTES) {
		p->next_at = dsf_time_after(now, burst_ns);
		return;
	}
	while (granted < most && (credit = grant_one(s, p, local_only, &remote)) > 0) {
		granted += credit;
		remote_bytes += remote ? credit : 0;
	}
	charge_fabric(s, remote_bytes, now);
	if (local_only && granted == 0)
		p->held = true;
	else if (p->rate_bps > 0)
		p->next_at = dsf_time_after(dsf_time_max(p->next_at, now),
			dsf_time_of_bytes(granted, effective_rate(p, now)));
	else
		p->next_at = dsf_time_after(now, 1);
}

/* Takes those that were not heard for long out of a class's list, whatever they wanted: who still
 * wants it asks again. */
static void unlist_unused(struct fabric_credit_class *class)
{
	struct fabric_credit_source **at = &class->first;

	class->last = NULL;
	while (*at != NULL) {
		struct fabric_credit_source *source = *at;

		if (source->used) {
			class->last = source;
			at = &source->next;
		} else {
			*at = source->next;
			source->listed = false;
		}
	}
}

static void forget(struct fabric_credits *s, struct fabric_credit_source *source)
{
	struct fabric_credit_port *p = find_port(s, source->key.system_port);
	struct fabric_credit_class *class = &p->classes[source->key.class];

	if (class->local == source)
		class->local = NULL;
	dsf_hash_remove(&s->sources, source);
}

static void sweep(struct fabric_credits *s, dsf_instant now)
{
	struct fabric_credit_source *next;

	for (uint32_t i = 0; i < s->config.ports_count; i++) {
		struct fabric_credit_port *p = &s->ports[i];

		/* What can be served is served; its sources go when they have got it. */
		if (!has_waiting(p) || (p->up && s->fabric_live))
			continue;
		for (int class = 0; class < FABRIC_CLASSES; class ++)
			unlist_unused(&p->classes[class]);
		schedule(s, p, now);
	}
	for (struct fabric_credit_source *source = dsf_hash_next(&s->sources, NULL); source != NULL;
		source = next) {
		next = dsf_hash_next(&s->sources, source);
		if (!source->used && !source->grant_wanted && !source->listed)
			forget(s, source);
		else
			source->used = false;
	}
	s->sweep_at = s->sources.count > 0 ? dsf_time_after(now, s->config.idle_ns) : DSF_NEVER;
}

void fabric_credits_expire(struct fabric_credits *s, dsf_instant now)
{
	while (dsf_time_due(dsf_heap_at(&s->timers), now)) {
		struct fabric_credit_port *p =
			DSF_CONTAINER(dsf_heap_first(&s->timers), struct fabric_credit_port, timer);

		tick(s, p, now);
		schedule(s, p, now);
	}
	if (dsf_time_due(s->sweep_at, now))
		sweep(s, now);
}

bool fabric_credits_next_grant(struct fabric_credits *s, struct fabric_credit_grant *grant)
{
	struct fabric_credit_source *source = s->grant_first;

	if (source == NULL)
		return false;
	s->grant_first = source->grant_next;
	if (s->grant_first == NULL)
		s->grant_last = NULL;
	source->grant_wanted = false;
	*grant = (struct fabric_credit_grant){ source->key.system_port, source->key.source,
		(uint8_t)source->key.class, source->epoch, source->granted };
	return true;
}
