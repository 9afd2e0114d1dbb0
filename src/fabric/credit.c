#include "fabric/credit.h"
#include <assert.h>
#include "base/err.h"
#include "fabric/voq.h"

/* A port with more than its mark waiting gives less than its rate. The mark is what it sends in a
 * quarter of a credit loop, about what ways through the fabric differ by, or this. */
#define MARK_BYTES_MIN (4u * FABRIC_CREDIT_BURST_BYTES)
#define MARK_LOOPS     4u
#define BACKLOG_LESS   16u
#define BACKLOG_MORE   32u

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
	if (p->full)
		at = dsf_time_after(p->full_at, s->config.silent_ns);
	if (!p->up || !has_waiting(p) || dsf_time_is_never(at))
		dsf_heap_remove(&s->timers, &p->timer);
	else
		(void)dsf_heap_set(&s->timers, &p->timer, at);
}

static void size_window(struct fabric_credits *s, struct fabric_credit_port *p, uint64_t rate_bps,
	uint32_t queue_bytes)
{
	uint64_t loop = dsf_bytes_of_time(s->config.loop_ns, rate_bps);
	uint64_t least = loop * FABRIC_CREDIT_WINDOW_HALVES / 2 + 2 * FABRIC_CREDIT_BURST_BYTES;
	uint64_t most = queue_bytes - queue_bytes / FABRIC_CREDIT_WINDOW_SPARE;

	p->window_bytes = most > least ? most : least;
	p->mark_bytes = loop / MARK_LOOPS > MARK_BYTES_MIN ? loop / MARK_LOOPS : MARK_BYTES_MIN;
	if (rate_bps == 0) /* nothing waits there */
		p->window_bytes = p->mark_bytes = UINT64_MAX;
}

void fabric_credit_port(struct fabric_credits *s, uint32_t system_port, uint64_t rate_bps,
	uint32_t queue_bytes, bool up, dsf_instant now)
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
	p->full = false;
	size_window(s, p, rate_bps, queue_bytes);
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

static bool wants(const struct fabric_credit_source *source)
{
	return source->requested > source->granted;
}

/* What counts of a source's credit that hasn't come back as packets. */
static uint64_t under_way(const struct fabric_credits *s, const struct fabric_credit_source *source)
{
	uint64_t spare = (uint64_t)FABRIC_VOQ_SPARE_CREDITS * s->config.credit_bytes;

	return source->granted > source->arrived + spare ? source->granted - source->arrived - spare
							 : 0;
}

/* Takes a source out of its port's sums, and back in when it has changed. */
static void uncount(const struct fabric_credits *s, struct fabric_credit_port *p,
	const struct fabric_credit_source *source)
{
	p->under_way_bytes -= under_way(s, source);
	p->active -= wants(source) || under_way(s, source) > 0;
}

static void count(const struct fabric_credits *s, struct fabric_credit_port *p,
	const struct fabric_credit_source *source)
{
	p->under_way_bytes += under_way(s, source);
	p->active += wants(source) || under_way(s, source) > 0;
}

static bool has_share(const struct fabric_credits *s, const struct fabric_credit_port *p,
	const struct fabric_credit_source *source)
{
	return under_way(s, source) < p->window_bytes / (p->active > 0 ? p->active : 1);
}

/* What waits at the port by now: it has been draining since the node last said. */
static uint64_t backlog(const struct fabric_credit_port *p, dsf_instant now)
{
	uint64_t drained = dsf_bytes_of_time(dsf_time_since(p->backlog_at, now), p->rate_bps);

	return p->backlog_bytes > drained ? p->backlog_bytes - drained : 0;
}

/* How far one more credit is above the window; 0: it fits. */
static uint64_t excess(
	const struct fabric_credits *s, const struct fabric_credit_port *p, dsf_instant now)
{
	uint64_t taken = p->under_way_bytes + backlog(p, now) + s->config.credit_bytes;

	/* A window narrower than a credit still lets one through. */
	return taken > p->window_bytes && taken > s->config.credit_bytes ? taken - p->window_bytes
									 : 0;
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

/* Something may be granted again, or for the first time. */
static void wake(struct fabric_credits *s, struct fabric_credit_port *p,
	struct fabric_credit_source *source, dsf_instant now)
{
	bool held = p->held && source->key.source != s->config.self;
	bool full = p->full && excess(s, p, now) > backlog(p, now);
	bool changed = held != p->held || full != p->full;

	if (wants(source))
		list_source(s, p, source);
	p->held = held;
	p->full = full;
	if (changed || p->timer.place == 0)
		schedule(s, p, now);
}

/* All that a VOQ had spent when it last said so has arrived or is lost, if that was long ago. */
static void settle(struct fabric_credits *s, struct fabric_credit_source *source, uint64_t spent,
	dsf_instant now)
{
	if (dsf_time_since(source->spent_at, now) < s->config.settle_ns)
		return;
	if (source->spent > source->arrived)
		source->arrived = source->spent < source->granted ? source->spent : source->granted;
	source->spent = spent;
	source->spent_at = now;
}

static void restart(
	struct fabric_credit_source *source, uint32_t epoch, uint64_t spent, dsf_instant now)
{
	source->epoch = epoch;
	source->requested = source->granted = source->arrived = source->spent = spent;
	source->spent_at = now;
}

int fabric_credit_request(struct fabric_credits *s, const struct fabric_credit_key *key,
	uint32_t epoch, uint64_t total, uint32_t waiting, dsf_instant now)
{
	struct fabric_credit_port *p = find_port(s, key->system_port);
	uint64_t spent = total > waiting ? total - waiting : 0;
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
	if (source->epoch != epoch && source->epoch != 0 &&
		fabric_epoch_older(epoch, source->epoch))
		return -DSF_E_STALE;
	uncount(s, p, source);
	if (source->epoch != epoch)
		restart(source, epoch, spent, now);
	settle(s, source, spent, now);
	source->used = true;
	source->heard_at = now;
	if (total > source->requested && total > source->granted &&
		total - source->granted <= UINT32_MAX)
		source->requested = total;
	count(s, p, source);
	/* It may have missed a grant, and gets no more that would tell it: say it again. */
	if (total <= source->granted || !has_share(s, p, source) || excess(s, p, now) > 0)
		want_grant(s, source);
	wake(s, p, source, now);
	return total > source->granted && total - source->granted > UINT32_MAX ? -DSF_E_PEER : 0;
}

void fabric_credit_arrived(struct fabric_credits *s, const struct fabric_credit_key *key,
	uint32_t bytes, dsf_instant now)
{
	struct fabric_credit_port *p = find_port(s, key->system_port);
	struct fabric_credit_source *source = dsf_hash_get(&s->sources, key);

	if (p == NULL || source == NULL)
		return;
	uncount(s, p, source);
	source->heard_at = now;
	source->arrived += bytes;
	if (source->arrived > source->granted) /* of an epoch before, or of what was settled */
		source->arrived = source->granted;
	count(s, p, source);
	wake(s, p, source, now);
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

/* The first that wants something and may have it, taken off the list; NULL: nobody. Who has his
 * share of the window under way is listed again when something of it arrives. */
static struct fabric_credit_source *pop_source(const struct fabric_credits *s,
	const struct fabric_credit_port *p, struct fabric_credit_class *class)
{
	struct fabric_credit_source *source;

	while ((source = class->first) != NULL) {
		class->first = source->next;
		if (class->first == NULL)
			class->last = NULL;
		source->listed = false;
		if (wants(source) && has_share(s, p, source))
			break;
	}
	return source;
}

/* Whose turn it is; NULL: nobody waits. Our own switch alone keeps its place in the list. */
static struct fabric_credit_source *next_source(
	const struct fabric_credits *s, struct fabric_credit_port *p, bool local_only)
{
	struct fabric_credit_source *source = NULL;

	while (source == NULL) {
		struct fabric_credit_class *class = pick_class(p, local_only);

		if (class == NULL)
			return NULL;
		source = local_only ? class->local : pop_source(s, p, class);
		if (source != NULL && class->turn_left > 0)
			class->turn_left--;
	}
	return source;
}

/* One credit to the next source. Returns its bytes; 0: nobody waits. */
static uint32_t grant_one(
	struct fabric_credits *s, struct fabric_credit_port *p, bool local_only, bool *remote)
{
	struct fabric_credit_source *source = next_source(s, p, local_only);
	uint32_t credit = s->config.credit_bytes;

	if (source == NULL)
		return 0;
	assert(wants(source));
	uncount(s, p, source);
	source->granted += credit;
	count(s, p, source);
	source->used = true;
	p->granted_total += credit;
	*remote = source->key.source != s->config.self;
	want_grant(s, source);
	if (wants(source))
		list_source(s, p, source);
	return credit;
}

/* Packets come out of reassembly in bursts, and time in which the port has nothing to send is lost
 * for good. So it is granted a little more than its rate until enough waits there. */
static uint64_t effective_rate(const struct fabric_credit_port *p, dsf_instant now)
{
	uint64_t rate = p->rate_bps < UINT64_MAX / FABRIC_CREDIT_FACTOR_ONE
				? p->rate_bps * p->factor / FABRIC_CREDIT_FACTOR_ONE
				: p->rate_bps;

	if (backlog(p, now) > p->mark_bytes)
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

/* Grants up to a burst, as the window allows. Returns its bytes. */
static uint64_t grant_burst(
	struct fabric_credits *s, struct fabric_credit_port *p, bool local_only, dsf_instant now)
{
	uint64_t granted = 0, remote_bytes = 0;
	uint64_t most =
		p->rate_bps == 0 ? FABRIC_CREDIT_UNLIMITED_BYTES : FABRIC_CREDIT_BURST_BYTES;
	bool remote = false;
	uint32_t credit;

	while (granted < most && excess(s, p, now) == 0 &&
		(credit = grant_one(s, p, local_only, &remote)) > 0) {
		granted += credit;
		remote_bytes += remote ? credit : 0;
	}
	charge_fabric(s, remote_bytes, now);
	return granted;
}

/* What sources of the port have under way that were not heard for long will not come. */
static void forget_silent(struct fabric_credits *s, struct fabric_credit_port *p, dsf_instant now)
{
	for (struct fabric_credit_source *source = dsf_hash_next(&s->sources, NULL); source != NULL;
		source = dsf_hash_next(&s->sources, source)) {
		if (find_port(s, source->key.system_port) != p ||
			dsf_time_since(source->heard_at, now) < s->config.silent_ns)
			continue;
		uncount(s, p, source);
		source->arrived = source->granted;
		count(s, p, source);
	}
}

/* The window is full: until so much has left the port, or something has arrived. */
static void hold_back(
	struct fabric_credits *s, struct fabric_credit_port *p, uint64_t over, dsf_instant now)
{
	if (over <= backlog(p, now)) {
		p->next_at = dsf_time_after(now, dsf_time_of_bytes(over, p->rate_bps) + 1);
		p->full = false;
	} else if (!p->full) {
		p->full = true;
		p->full_at = now;
	} else if (dsf_time_since(p->full_at, now) >= s->config.silent_ns) {
		forget_silent(s, p, now);
		p->full = false; /* look again */
	}
}

static void tick(struct fabric_credits *s, struct fabric_credit_port *p, dsf_instant now)
{
	uint64_t burst_ns = dsf_time_of_bytes(FABRIC_CREDIT_BURST_BYTES, p->rate_bps);
	/* The fabric gets time to deliver what all ports were granted, beyond a burst. */
	bool local_only = !s->fabric_live ||
			  (s->fabric_bps > 0 && dsf_time_since(now, s->fabric_next_at) > burst_ns);
	uint64_t over, granted;

	p->held = false;
	adapt_factor(s, p, now);
	over = excess(s, p, now);
	if (over > 0) {
		hold_back(s, p, over, now);
		return;
	}
	p->full = false;
	granted = grant_burst(s, p, local_only, now);
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
	uncount(s, p, source);
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
