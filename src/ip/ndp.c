#include "ip/ndp.h"
#include <assert.h>
#include "base/err.h"
#include "ip/ndp_wire.h"

/* A FIFO of entries through one of their two links. */
struct list {
	struct ip_ndp_entry *first, *last;
};

struct port {
	struct ip_ndp_port config;
	struct dsf_ip6 link_local;
	bool carrier;
	uint32_t entries;    /* without GONE ones */
	uint32_t incomplete; /* without targets and GONE ones */
};

struct answer {
	uint32_t port;
	struct dsf_ip6 destination, target;
	struct dsf_mac mac;
	bool solicited;
};

struct ip_ndp {
	const struct dsf_memory *memory;
	uint64_t retransmit_ns, reachable_ns;
	bool router;
	struct port *ports;
	uint32_t ports_count;
	struct dsf_hash entries;
	struct dsf_heap timers;
	struct list solicits, changes;
	struct answer answers[IP_NDP_ANSWERS_MAX]; /* ring */
	uint32_t answers_first, answers_count;
	uint32_t missing;
	struct ip_ndp_counters counters;
};

static const struct dsf_mac no_mac = { { 0 } };

static bool mac_equal(const struct dsf_mac *a, const struct dsf_mac *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

static bool same_prefix(const struct dsf_ip6 *a, const struct dsf_ip6 *b, unsigned length)
{
	unsigned whole = length / 8, rest = length % 8;

	if (memcmp(a->bytes, b->bytes, whole) != 0)
		return false;
	return rest == 0 || (a->bytes[whole] ^ b->bytes[whole]) >> (8 - rest) == 0;
}

static bool is_own(const struct port *port, const struct dsf_ip6 *address)
{
	return dsf_ip6_equal(address, &port->config.address) ||
	       dsf_ip6_equal(address, &port->link_local);
}

/* Can somebody else on the link have this address? */
static bool is_on_link(const struct port *port, const struct dsf_ip6 *address)
{
	if (dsf_ip6_is_multicast(address) || dsf_ip6_is_unspecified(address) ||
		is_own(port, address))
		return false;
	if (dsf_ip6_is_link_local(address))
		return true;
	return port->config.prefix_length > 0 &&
	       same_prefix(address, &port->config.address, port->config.prefix_length);
}

struct ip_ndp *ip_ndp_new(const struct ip_ndp_config *config)
{
	const struct dsf_memory *memory = config->memory;
	struct ip_ndp *n;

	assert(config->ports_count > 0 && config->ports_count <= IP_NDP_PORTS_MAX);
	n = dsf_memory_new(memory, sizeof(*n));
	if (n == NULL)
		return NULL;
	n->ports = dsf_memory_new(memory, config->ports_count * sizeof(*n->ports));
	if (n->ports == NULL) {
		dsf_memory_delete(memory, n, sizeof(*n));
		return NULL;
	}
	n->memory = memory;
	n->router = config->router;
	n->retransmit_ns = config->retransmit_ns ? config->retransmit_ns : IP_NDP_RETRANSMIT_NS;
	n->reachable_ns = config->reachable_ns ? config->reachable_ns : IP_NDP_REACHABLE_NS;
	n->ports_count = config->ports_count;
	for (uint32_t i = 0; i < n->ports_count; i++) {
		assert(config->ports[i].prefix_length <= 128);
		n->ports[i].config = config->ports[i];
		n->ports[i].link_local = dsf_ip6_link_local(&config->ports[i].mac);
	}
	/* Twice, because GONE entries may stand beside their successors until they are told. */
	dsf_hash_init(&n->entries, memory, sizeof(struct ip_ndp_key), sizeof(struct ip_ndp_entry),
		2 * IP_NDP_ENTRIES_MAX * n->ports_count);
	dsf_heap_init(&n->timers, memory);
	return n;
}

void ip_ndp_free(struct ip_ndp *n)
{
	if (n == NULL)
		return;
	dsf_heap_close(&n->timers);
	dsf_hash_close(&n->entries);
	dsf_memory_delete(n->memory, n->ports, n->ports_count * sizeof(*n->ports));
	dsf_memory_delete(n->memory, n, sizeof(*n));
}

static void solicit_push(struct ip_ndp *n, struct ip_ndp_entry *e)
{
	if (e->solicit_due)
		return;
	e->solicit_due = true;
	e->solicit_next = NULL;
	*(n->solicits.last != NULL ? &n->solicits.last->solicit_next : &n->solicits.first) = e;
	n->solicits.last = e;
}

static struct ip_ndp_entry *solicit_pop(struct ip_ndp *n)
{
	struct ip_ndp_entry *e = n->solicits.first;

	if (e == NULL)
		return NULL;
	n->solicits.first = e->solicit_next;
	if (n->solicits.first == NULL)
		n->solicits.last = NULL;
	e->solicit_due = false;
	return e;
}

/* Rare (an entry ends between expire and output), so a walk does. */
static void solicit_cancel(struct ip_ndp *n, struct ip_ndp_entry *e)
{
	struct ip_ndp_entry *previous = NULL, *at = n->solicits.first;

	if (!e->solicit_due)
		return;
	for (; at != e; at = at->solicit_next)
		previous = at;
	*(previous != NULL ? &previous->solicit_next : &n->solicits.first) = e->solicit_next;
	if (n->solicits.last == e)
		n->solicits.last = previous;
	e->solicit_due = false;
}

static void change_push(struct ip_ndp *n, struct ip_ndp_entry *e)
{
	bool reachable = e->state == IP_NDP_REACHABLE;

	if (e->changed || (reachable == e->told_reachable &&
				  (!reachable || mac_equal(&e->mac, &e->told_mac))))
		return;
	e->changed = true;
	e->changed_next = NULL;
	*(n->changes.last != NULL ? &n->changes.last->changed_next : &n->changes.first) = e;
	n->changes.last = e;
}

/* Adds (weight 1) or takes out (-1) what an entry counts for; unsigned wrap-around is meant. */
static void count_entry(struct ip_ndp *n, const struct ip_ndp_entry *e, uint32_t weight)
{
	struct port *port = &n->ports[e->key.port];

	if (e->state == IP_NDP_GONE)
		return;
	port->entries += weight;
	if (e->state != IP_NDP_INCOMPLETE)
		return;
	if (e->target)
		n->missing += weight;
	else
		port->incomplete += weight;
}

/* The one place where an entry's state changes. A GONE entry without news is freed: e is invalid
 * then. */
static void set_state(struct ip_ndp *n, struct ip_ndp_entry *e, enum ip_ndp_state state,
	const struct dsf_mac *mac)
{
	count_entry(n, e, UINT32_MAX);
	e->state = state;
	e->mac = *mac;
	e->probing = false;
	e->tries = 0;
	count_entry(n, e, 1);
	solicit_cancel(n, e);
	change_push(n, e);
	assert((state == IP_NDP_REACHABLE) == !mac_equal(mac, &no_mac));
	assert(n->ports[e->key.port].entries <= IP_NDP_ENTRIES_MAX);
	if (state != IP_NDP_REACHABLE)
		dsf_heap_remove(&n->timers, &e->timer);
	if (state == IP_NDP_GONE && !e->changed)
		dsf_hash_remove(&n->entries, e);
}

/* Arming can fail only for an entry that is not in the heap. Such an entry is put there when it is
 * made, so that later changes of its timer can't fail. */
static int arm(struct ip_ndp *n, struct ip_ndp_entry *e, uint64_t after_ns, dsf_instant now)
{
	return dsf_heap_set(&n->timers, &e->timer, dsf_time_after(now, after_ns));
}

static int solicit(struct ip_ndp *n, struct ip_ndp_entry *e, dsf_instant now)
{
	uint64_t after_ns = n->retransmit_ns;
	int err;

	if (e->tries >= IP_NDP_SOLICITS_MAX) {
		uint32_t doublings = e->tries - IP_NDP_SOLICITS_MAX + 1;

		after_ns <<= doublings < IP_NDP_BACKOFF_MAX ? doublings : IP_NDP_BACKOFF_MAX;
	}
	err = arm(n, e, after_ns, now);
	if (err < 0)
		return err;
	e->tries++;
	solicit_push(n, e);
	return 0;
}

/* The live entry of (port, address), made INCOMPLETE where it is absent. NULL: *err says why. */
static struct ip_ndp_entry *entry_make(
	struct ip_ndp *n, uint32_t port, const struct dsf_ip6 *address, bool target, int *err)
{
	struct ip_ndp_key key = { *address, port };
	struct ip_ndp_entry *e = dsf_hash_get(&n->entries, &key);

	if (e != NULL && e->state != IP_NDP_GONE)
		return e;
	if (n->ports[port].entries == IP_NDP_ENTRIES_MAX) {
		n->counters.full++;
		*err = -DSF_E_FULL;
		return NULL;
	}
	if (e == NULL) {
		e = dsf_hash_put(&n->entries, &key);
		if (e == NULL) {
			*err = -DSF_E_NOMEM;
			return NULL;
		}
		e->state = IP_NDP_GONE;
	}
	e->target = target;
	e->state = IP_NDP_INCOMPLETE;
	count_entry(n, e, 1);
	return e;
}

int ip_ndp_solicit(struct ip_ndp *n, uint32_t port, const struct dsf_ip6 *address, dsf_instant now)
{
	struct ip_ndp_entry *e;
	int err = 0;

	assert(port < n->ports_count);
	if (!is_on_link(&n->ports[port], address))
		return -DSF_E_BADFIELD;
	e = entry_make(n, port, address, true, &err);
	if (e == NULL)
		return err;
	if (!e->target) {
		count_entry(n, e, UINT32_MAX);
		e->target = true;
		count_entry(n, e, 1);
	}
	if (e->state != IP_NDP_INCOMPLETE || e->tries > 0 || !n->ports[port].carrier)
		return 0;
	err = solicit(n, e, now);
	if (err < 0)
		set_state(n, e, IP_NDP_GONE, &no_mac);
	return err;
}

void ip_ndp_carrier(struct ip_ndp *n, uint32_t port, bool up, dsf_instant now)
{
	struct ip_ndp_entry *e, *next;

	assert(port < n->ports_count);
	if (n->ports[port].carrier == up)
		return;
	n->ports[port].carrier = up;
	for (e = dsf_hash_next(&n->entries, NULL); e != NULL; e = next) {
		next = dsf_hash_next(&n->entries, e);
		if (e->key.port != port || e->state == IP_NDP_GONE)
			continue;
		if (!up)
			set_state(n, e, e->target ? IP_NDP_INCOMPLETE : IP_NDP_GONE, &no_mac);
		else if (solicit(n, e, now) < 0)
			set_state(n, e, IP_NDP_GONE, &no_mac);
	}
}

/* A neighbour showed its MAC, and confirmed is true when that answers us. */
static int learn(struct ip_ndp *n, uint32_t port, const struct dsf_ip6 *address,
	const struct dsf_mac *mac, bool confirmed, dsf_instant now)
{
	struct ip_ndp_entry *e;
	int err = 0;

	if (!is_on_link(&n->ports[port], address))
		return -DSF_E_BADFIELD;
	e = entry_make(n, port, address, false, &err);
	if (e == NULL)
		return err;
	if (e->state == IP_NDP_REACHABLE && mac_equal(&e->mac, mac) && !confirmed)
		return 0; /* it may not hear us: only an answer proves that it does */
	err = arm(n, e, n->reachable_ns, now);
	if (err < 0) {
		set_state(n, e, e->target ? e->state : IP_NDP_GONE, &no_mac);
		return err;
	}
	set_state(n, e, IP_NDP_REACHABLE, mac);
	return 0;
}

static int input_solicit(struct ip_ndp *n, uint32_t port, const struct ip_packet *p,
	const struct ip_ndp_message *m, dsf_instant now)
{
	bool probe = dsf_ip6_is_unspecified(&p->source); /* duplicate address detection */
	struct answer *answer;
	int err = 0;

	if (!is_own(&n->ports[port], &m->target))
		return 0;
	if (!probe && is_own(&n->ports[port], &p->source)) {
		n->counters.duplicate++;
		return -DSF_E_DUPLICATE;
	}
	if (m->has_mac)
		err = learn(n, port, &p->source, &m->mac, false, now);
	if (n->answers_count == IP_NDP_ANSWERS_MAX) {
		n->counters.full++;
		return -DSF_E_FULL;
	}
	answer = &n->answers[(n->answers_first + n->answers_count++) % IP_NDP_ANSWERS_MAX];
	*answer = (struct answer){ .port = port, .target = m->target, .solicited = !probe };
	if (probe) {
		answer->destination = (struct dsf_ip6){ { 0xff, 0x02, [15] = 1 } };
		answer->mac = ip_ndp_wire_mac(&answer->destination);
	} else {
		answer->destination = p->source;
		answer->mac = m->has_mac ? m->mac : p->source_mac;
	}
	return err;
}

static int input_advertise(
	struct ip_ndp *n, uint32_t port, const struct ip_ndp_message *m, dsf_instant now)
{
	struct ip_ndp_key key = { m->target, port };
	struct ip_ndp_entry *e;
	bool solicited = m->flags & IP_NDP_FLAG_SOLICITED;

	if (is_own(&n->ports[port], &m->target)) {
		n->counters.duplicate++;
		return -DSF_E_DUPLICATE;
	}
	e = dsf_hash_get(&n->entries, &key);
	if (e != NULL && e->state == IP_NDP_REACHABLE) {
		bool same = !m->has_mac || mac_equal(&m->mac, &e->mac);

		if (!same && !(m->flags & IP_NDP_FLAG_OVERRIDE)) {
			/* Two claim the address: ask the one we use whether it is still there. */
			if (e->probing)
				return 0;
			e->probing = true;
			e->tries = 0;
			return solicit(n, e, now);
		}
		return learn(n, port, &m->target, same ? &e->mac : &m->mac, solicited, now);
	}
	if (!m->has_mac)
		return 0; /* RFC 4861 7.2.5: nothing learned */
	return learn(n, port, &m->target, &m->mac, solicited, now);
}

int ip_ndp_input(struct ip_ndp *n, uint32_t port, const struct ip_packet *p, const uint8_t *frame,
	uint32_t stored, dsf_instant now)
{
	struct ip_ndp_message m;
	int err;

	assert(port < n->ports_count);
	if (!n->ports[port].carrier)
		return -DSF_E_STATE;
	err = ip_ndp_wire_read(&m, p, frame, stored);
	if (err < 0) {
		n->counters.invalid++;
		return err;
	}
	if (m.advertisement) {
		n->counters.advertisements_received++;
		return input_advertise(n, port, &m, now);
	}
	n->counters.solicits_received++;
	return input_solicit(n, port, p, &m, now);
}

static size_t output_answer(struct ip_ndp *n, uint32_t *port, uint8_t *buf)
{
	const struct answer *a = &n->answers[n->answers_first];
	uint32_t flags = (n->router ? IP_NDP_FLAG_ROUTER : 0) |
			 (a->solicited ? IP_NDP_FLAG_SOLICITED : 0) | IP_NDP_FLAG_OVERRIDE;

	n->answers_first = (n->answers_first + 1) % IP_NDP_ANSWERS_MAX;
	n->answers_count--;
	n->counters.advertisements_sent++;
	*port = a->port;
	return ip_ndp_wire_write(buf, IP_NDP_ADVERTISE, flags, &a->target,
		&n->ports[a->port].config.mac, &a->target, &a->mac, &a->destination);
}

size_t ip_ndp_output(struct ip_ndp *n, uint32_t *port, uint8_t *buf, size_t cap, dsf_instant now)
{
	struct dsf_ip6 destination;
	struct ip_ndp_entry *e;
	struct dsf_mac mac;
	const struct port *from;

	(void)now;
	assert(cap >= IP_NDP_FRAME_SIZE);
	while (n->answers_count > 0) {
		if (n->ports[n->answers[n->answers_first].port].carrier)
			return output_answer(n, port, buf);
		n->answers_first = (n->answers_first + 1) % IP_NDP_ANSWERS_MAX;
		n->answers_count--;
	}
	e = solicit_pop(n);
	if (e == NULL)
		return 0;
	if (e->state == IP_NDP_REACHABLE) {
		destination = e->key.address;
		mac = e->mac;
	} else {
		destination = ip_ndp_wire_group(&e->key.address);
		mac = ip_ndp_wire_mac(&destination);
	}
	from = &n->ports[e->key.port];
	n->counters.solicits_sent++;
	*port = e->key.port;
	return ip_ndp_wire_write(buf, IP_NDP_SOLICIT, 0, &e->key.address, &from->config.mac,
		dsf_ip6_is_link_local(&e->key.address) ? &from->link_local : &from->config.address,
		&mac, &destination);
}

dsf_instant ip_ndp_deadline(const struct ip_ndp *n)
{
	return dsf_heap_at(&n->timers);
}

static void expire_entry(struct ip_ndp *n, struct ip_ndp_entry *e, dsf_instant now)
{
	if (e->state == IP_NDP_REACHABLE && !e->probing) {
		e->probing = true;
		e->tries = 0;
	} else if (e->state == IP_NDP_REACHABLE && e->tries >= IP_NDP_PROBES_MAX) {
		n->counters.timed_out++;
		set_state(n, e, e->target ? IP_NDP_INCOMPLETE : IP_NDP_GONE, &no_mac);
		if (!e->target)
			return;
	} else if (!e->target && e->tries >= IP_NDP_SOLICITS_MAX) {
		n->counters.timed_out++;
		set_state(n, e, IP_NDP_GONE, &no_mac);
		return;
	}
	if (solicit(n, e, now) < 0)
		set_state(n, e, IP_NDP_GONE, &no_mac);
}

void ip_ndp_expire(struct ip_ndp *n, dsf_instant now)
{
	while (dsf_time_due(dsf_heap_at(&n->timers), now) && n->timers.count > 0)
		expire_entry(n,
			DSF_CONTAINER(dsf_heap_first(&n->timers), struct ip_ndp_entry, timer), now);
}

const struct dsf_mac *ip_ndp_lookup(
	const struct ip_ndp *n, uint32_t port, const struct dsf_ip6 *address)
{
	struct ip_ndp_key key = { *address, port };
	const struct ip_ndp_entry *e = dsf_hash_get(&n->entries, &key);

	return e != NULL && e->state == IP_NDP_REACHABLE ? &e->mac : NULL;
}

int ip_ndp_resolve(struct ip_ndp *n, uint32_t port, const struct dsf_ip6 *address, dsf_instant now)
{
	struct ip_ndp_key key = { *address, port };
	struct ip_ndp_entry *e;
	int err = 0;

	assert(port < n->ports_count);
	if (!n->ports[port].carrier)
		return -DSF_E_STATE;
	if (!is_on_link(&n->ports[port], address))
		return -DSF_E_BADFIELD;
	e = dsf_hash_get(&n->entries, &key);
	if ((e == NULL || e->state == IP_NDP_GONE) &&
		n->ports[port].incomplete == IP_NDP_INCOMPLETE_MAX) {
		n->counters.full++;
		return -DSF_E_FULL;
	}
	e = entry_make(n, port, address, false, &err);
	if (e == NULL)
		return err;
	n->counters.unresolved++;
	if (e->state == IP_NDP_INCOMPLETE && e->tries == 0) {
		err = solicit(n, e, now);
		if (err < 0) {
			set_state(n, e, IP_NDP_GONE, &no_mac);
			return err;
		}
	}
	return -DSF_E_NONEIGHBOR;
}

bool ip_ndp_changed(struct ip_ndp *n, struct ip_ndp_change *change)
{
	struct ip_ndp_entry *e;

	while ((e = n->changes.first) != NULL) {
		bool reachable = e->state == IP_NDP_REACHABLE;
		bool news = reachable != e->told_reachable ||
			    (reachable && !mac_equal(&e->mac, &e->told_mac));

		n->changes.first = e->changed_next;
		if (n->changes.first == NULL)
			n->changes.last = NULL;
		e->changed = false;
		e->told_reachable = reachable;
		e->told_mac = e->mac;
		*change = (struct ip_ndp_change){ e->key.port, e->key.address, e->mac, reachable };
		if (e->state == IP_NDP_GONE)
			dsf_hash_remove(&n->entries, e);
		if (news)
			return true;
	}
	return false;
}

const struct ip_ndp_entry *ip_ndp_next(const struct ip_ndp *n, const struct ip_ndp_entry *previous)
{
	const struct ip_ndp_entry *e = dsf_hash_next(&n->entries, previous);

	while (e != NULL && e->state == IP_NDP_GONE)
		e = dsf_hash_next(&n->entries, e);
	return e;
}

uint32_t ip_ndp_missing(const struct ip_ndp *n)
{
	return n->missing;
}

const struct ip_ndp_counters *ip_ndp_count(const struct ip_ndp *n)
{
	return &n->counters;
}
