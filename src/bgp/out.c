/* out.c - what is told to whom, and how far each has come */
#include <assert.h>
#include "base/err.h"
#include "bgp/speaker.h"

/* ---- the ring */

static struct bgp_out *out_of(struct bgp_node *node)
{
	return (struct bgp_out *)(void *)node;
}

static void insert_before(struct bgp_node *place, struct bgp_node *node)
{
	node->next = place;
	node->previous = place->previous;
	node->previous->next = node;
	place->previous = node;
}

static void take_out(struct bgp_node *node)
{
	if (node->next == NULL)
		return;
	node->previous->next = node->next;
	node->next->previous = node->previous;
	node->next = node->previous = NULL;
}

/* ---- announcements */

static void unlist(struct bgp_out *out)
{
	struct bgp_out **at = out->at;

	if (at == NULL)
		return;
	while (*at != out)
		at = &(*at)->sibling;
	*at = out->sibling;
}

static void free_out(struct bgp *b, struct bgp_out *out)
{
	struct bgp_prefix *prefix = out->prefix;

	take_out(&out->node);
	unlist(out);
	if (out->bundle != NULL) {
		out->group->told--;
		bgp_bundle_give(&b->store, out->bundle);
	} else {
		out->group->withdrawn--;
	}
	dsf_memory_delete(b->config.memory, out, sizeof(*out));
	prefix->outs_count--;
	bgp_rib_release(b, prefix);
}

/* Withdraws; the announcement stays as a withdrawal until all members have passed it. */
static void withdraw(struct bgp *b, struct bgp_out *out)
{
	if (out->bundle == NULL)
		return;
	take_out(&out->node);
	bgp_bundle_give(&b->store, out->bundle);
	out->bundle = NULL;
	out->group->told--;
	out->group->withdrawn++;
	out->batch_next = NULL;
	*(b->withdrawn_last != NULL ? &b->withdrawn_last->batch_next : &b->withdrawn_first) = out;
	b->withdrawn_last = out;
}

static void announce(struct bgp *b, struct bgp_out *out, struct bgp_bundle *bundle)
{
	take_out(&out->node);
	if (out->bundle != NULL) {
		bgp_bundle_give(&b->store, out->bundle);
	} else {
		out->group->told++;
	}
	out->bundle = bundle;
	out->batch_next = NULL;
	if (bundle->batch_first == NULL) {
		bundle->batch_next = NULL;
		*(b->batch_last != NULL ? &b->batch_last->batch_next : &b->batch_first) = bundle;
		b->batch_last = bundle;
		bundle->batch_first = out;
	} else {
		bundle->batch_last->batch_next = out;
	}
	bundle->batch_last = out;
}

bool bgp_out_set(struct bgp *b, struct bgp_group *g, struct bgp_prefix *prefix, struct bgp_out **at,
	const struct bgp_path *path, struct bgp_bundle *bundle)
{
	struct bgp_out *out = *at;

	while (out != NULL && out->group != g)
		out = out->sibling;
	if (bundle == NULL) {
		if (out != NULL)
			withdraw(b, out);
		return true;
	}
	if (out == NULL) {
		out = dsf_memory_new(b->config.memory, sizeof(*out));
		if (out == NULL) {
			bgp_bundle_give(&b->store, bundle);
			return false;
		}
		out->group = g;
		out->prefix = prefix;
		out->path_id = g->add_path ? path->number : 0;
		out->at = at;
		out->sibling = *at;
		*at = out;
		prefix->outs_count++;
	} else if (out->bundle == bundle && out->source == path->peer->number) {
		bgp_bundle_give(&b->store, bundle);
		return true;
	} else {
		out->moved = out->moved || out->source != path->peer->number;
		if (out->bundle == NULL)
			g->withdrawn--;
	}
	out->source = path->peer->number;
	announce(b, out, bundle);
	return true;
}

void bgp_out_retire(struct bgp *b, struct bgp_out **at)
{
	while (*at != NULL) {
		struct bgp_out *out = *at;

		*at = out->sibling;
		out->at = NULL;
		withdraw(b, out);
	}
}

static void append(struct bgp_out *out)
{
	out->version = ++out->group->version;
	out->group->fresh = true;
	insert_before(&out->group->list, &out->node);
}

/* Withdrawals that a member doesn't take must not pile up for ever: it loses its session. */
static void shed(struct bgp *b, struct bgp_group *g, dsf_instant now)
{
	struct bgp_notification n;

	if (g->withdrawn <= BGP_WITHDRAWN_MAX)
		return;
	(void)bgp_wire_refuse(&n, BGP_ERR_CEASE, BGP_CEASE_RESOURCES, NULL, 0);
	for (uint32_t i = 1; i < b->peers_count; i++) {
		struct bgp_peer *p = &b->peers[i];

		if (p->group == g && p->session.slots[p->slot].blocked &&
			bgp_session_established(&p->session) >= 0) {
			bgp_session_fail(&p->session, &n, 0, now);
			p->limit_reached++;
		}
	}
}

void bgp_out_flush(struct bgp *b, dsf_instant now)
{
	struct bgp_out *out, *next;
	struct bgp_bundle *bundle, *next_bundle;

	for (out = b->withdrawn_first; out != NULL; out = next) {
		next = out->batch_next;
		out->waiting = out->group->members;
		append(out);
	}
	for (bundle = b->batch_first; bundle != NULL; bundle = next_bundle) {
		next_bundle = bundle->batch_next;
		for (out = bundle->batch_first; out != NULL; out = next) {
			next = out->batch_next;
			append(out);
		}
		bundle->batch_first = bundle->batch_last = NULL;
	}
	b->withdrawn_first = b->withdrawn_last = NULL;
	b->batch_first = b->batch_last = NULL;
	for (struct bgp_group *g = b->groups; g != NULL; g = g->next)
		shed(b, g, now);
}

void bgp_out_built(struct bgp *b)
{
	for (uint32_t i = 1; i < b->peers_count; i++) {
		const struct bgp_group *g = b->peers[i].group;

		if (g != NULL && (g->fresh || g->building))
			bgp_peer_ready(&b->peers[i]);
	}
	for (struct bgp_group *g = b->groups; g != NULL; g = g->next)
		g->fresh = g->building = false;
}

/* ---- groups */

static bool fits(const struct bgp *b, const struct bgp_group *g, const struct bgp_peer *p)
{
	const struct bgp_connection *c = &p->session.slots[p->slot];
	bool add_path = (p->config.add_path & BGP_ADD_PATH_SEND) != 0 &&
			(c->peer.add_path & BGP_ADD_PATH_RECEIVE) != 0;

	return g->external == bgp_is_external(b, p) && g->add_path == add_path &&
	       g->next_hop_self == p->config.next_hop_self && g->policy == p->config.export &&
	       dsf_ip6_equal(&g->local, &p->local[p->slot]);
}

static struct bgp_group *make_group(struct bgp *b, const struct bgp_peer *p)
{
	const struct bgp_connection *c = &p->session.slots[p->slot];
	struct bgp_group *g = dsf_memory_new(b->config.memory, sizeof(*g));

	if (g == NULL)
		return NULL;
	g->external = bgp_is_external(b, p);
	g->add_path = (p->config.add_path & BGP_ADD_PATH_SEND) != 0 &&
		      (c->peer.add_path & BGP_ADD_PATH_RECEIVE) != 0;
	g->next_hop_self = p->config.next_hop_self;
	g->policy = p->config.export;
	g->local = p->local[p->slot];
	g->list.next = g->list.previous = &g->list;
	g->list.is_marker = true;
	g->building = true;
	g->next = b->groups;
	b->groups = g;
	return g;
}

int bgp_out_join(struct bgp *b, struct bgp_peer *p, dsf_instant now)
{
	struct bgp_group *g = b->groups;

	while (g != NULL && !fits(b, g, p))
		g = g->next;
	if (g == NULL) {
		g = make_group(b, p);
		if (g == NULL)
			return -DSF_E_NOMEM;
		for (struct bgp_prefix *prefix = b->first; prefix != NULL; prefix = prefix->next)
			bgp_rib_touch(b, prefix, now);
		if (dsf_time_is_never(b->decide_at)) /* also with nothing to tell */
			b->decide_at = now;
	}
	p->group = g;
	g->members++;
	p->marker.is_marker = p->walker.is_marker = true;
	insert_before(&g->list, &p->marker);
	p->walk = BGP_WALK_START;
	p->walk_is_refresh = p->walk_again = false;
	return 0;
}

static void free_group(struct bgp *b, struct bgp_group *g)
{
	struct bgp_group **at = &b->groups;

	while (g->list.next != &g->list)
		free_out(b, out_of(g->list.next));
	assert(g->told == 0 && g->withdrawn == 0);
	while (*at != g)
		at = &(*at)->next;
	*at = g->next;
	dsf_memory_delete(b->config.memory, g, sizeof(*g));
}

void bgp_out_leave(struct bgp *b, struct bgp_peer *p)
{
	struct bgp_group *g = p->group;
	struct bgp_node *node = p->marker.next, *next;

	take_out(&p->walker);
	for (; node != &g->list; node = next) { /* withdrawals that wait for this member */
		next = node->next;
		if (!node->is_marker && out_of(node)->bundle == NULL &&
			--out_of(node)->waiting == 0)
			free_out(b, out_of(node));
	}
	take_out(&p->marker);
	p->group = NULL;
	p->walk = BGP_WALK_NONE;
	if (--g->members == 0)
		free_group(b, g);
}

void bgp_out_refresh(struct bgp_peer *p)
{
	if (p->walk == BGP_WALK_NONE || p->walk == BGP_WALK_START) {
		p->walk_is_refresh = p->walk == BGP_WALK_NONE || p->walk_is_refresh;
		p->walk = BGP_WALK_START;
	} else {
		p->walk_again = true;
	}
}

/* ---- messages */

enum telling { NOTHING, ANNOUNCE, WITHDRAW };

/* What a member has to hear of an announcement. A route isn't told to where it comes from; but who
 * may have heard of another one before has to know that that is gone. */
static enum telling telling_of(const struct bgp_peer *p, const struct bgp_out *out, bool walking)
{
	if (out->bundle == NULL)
		return walking ? NOTHING : WITHDRAW;
	if (out->source == p->number)
		return out->moved && !walking ? WITHDRAW : NOTHING;
	return ANNOUNCE;
}

/* The announcement behind a marker, other markers apart; NULL at the end of its way. */
static struct bgp_out *look(const struct bgp_peer *p, const struct bgp_node *marker)
{
	struct bgp_node *node = marker->next;

	while (node->is_marker) {
		if (node == &p->group->list || (marker == &p->walker && node == &p->marker))
			return NULL;
		node = node->next;
	}
	return out_of(node);
}

/* Moves a marker behind an announcement; a withdrawal that all have passed is over. */
static void pass(struct bgp *b, struct bgp_node *marker, struct bgp_out *out, bool walking)
{
	take_out(marker);
	insert_before(out->node.next, marker);
	if (!walking && out->bundle == NULL && --out->waiting == 0)
		free_out(b, out);
}

struct message {
	struct bgp_update_writer w;
	enum telling what;
	struct bgp_bundle *bundle;
};

/* Begins a message for an announcement. One that is too long for the peer is withdrawn instead (RFC
 * 8654 4). */
static void begin(struct bgp *b, struct bgp_peer *p, struct message *m, const struct bgp_out *out,
	uint8_t *to, size_t cap)
{
	const uint8_t *attributes;
	size_t size;
	bool add_path = p->group->add_path;

	m->bundle = out->bundle;
	if (m->what == ANNOUNCE) {
		attributes = out->bundle->bytes;
		size = out->bundle->size;
		if (!p->session.slots[p->slot].peer.as4) {
			size = bgp_update_as2(b->scratch + BGP_SCRATCH_AS2,
				BGP_SCRATCH - BGP_SCRATCH_AS2, attributes, size);
			attributes = b->scratch + BGP_SCRATCH_AS2;
		}
		if (size > 0 && bgp_update_reach(&m->w, to, cap, add_path, &out->bundle->next_hop,
					attributes, size))
			return;
		m->what = WITHDRAW;
	}
	bgp_update_unreach(&m->w, to, cap, add_path);
}

/* One message with what is behind the marker and not newer than version. */
static size_t write_some(struct bgp *b, struct bgp_peer *p, struct bgp_node *marker,
	uint64_t version, uint8_t *to, size_t cap)
{
	bool walking = marker == &p->walker;
	struct message m = { .what = NOTHING };
	struct bgp_out *out;

	while ((out = look(p, marker)) != NULL && out->version <= version) {
		enum telling what = telling_of(p, out, walking);
		struct bgp_nlri nlri = { out->prefix->key, out->path_id };

		if (what != NOTHING && m.what == NOTHING) {
			m.what = what;
			begin(b, p, &m, out, to, cap);
			what = m.what;
		}
		if (what != NOTHING) {
			if (what != m.what || (what == ANNOUNCE && out->bundle != m.bundle) ||
				!bgp_update_add(&m.w, &nlri))
				break;
		}
		pass(b, marker, out, walking);
	}
	return m.what == NOTHING ? 0 : bgp_update_finish(&m.w);
}

static bool is_enhanced(const struct bgp_peer *p)
{
	return p->walk_is_refresh && p->session.slots[p->slot].peer.enhanced;
}

static size_t start_walk(struct bgp_peer *p, uint8_t *to)
{
	insert_before(p->group->list.next, &p->walker);
	p->walk = BGP_WALK_UNDER_WAY;
	p->walk_version = p->group->version;
	return is_enhanced(p) ? bgp_wire_refresh_encode(to, BGP_REFRESH_BEGIN) : 0;
}

/* All is told: End-of-RIB at the start (RFC 4724 2), the end of an enhanced refresh. */
static size_t end_walk(struct bgp_peer *p, uint8_t *to, size_t cap)
{
	struct bgp_update_writer w;
	size_t size = 0;

	if (is_enhanced(p)) {
		size = bgp_wire_refresh_encode(to, BGP_REFRESH_END);
	} else if (!p->walk_is_refresh && p->session.slots[p->slot].peer.graceful) {
		bgp_update_unreach(&w, to, cap, p->group->add_path);
		size = bgp_update_finish(&w);
	}
	p->walk = p->walk_again ? BGP_WALK_START : BGP_WALK_NONE;
	p->walk_is_refresh = p->walk_is_refresh || p->walk_again;
	p->walk_again = false;
	return size;
}

static size_t write_next(struct bgp *b, struct bgp_peer *p, uint8_t *to, size_t cap)
{
	size_t size = 0;

	if (p->walk == BGP_WALK_START) {
		size = start_walk(p, to);
		if (size > 0)
			return size;
	}
	if (p->walk == BGP_WALK_UNDER_WAY) {
		size = write_some(b, p, &p->walker, UINT64_MAX, to, cap);
		if (size > 0)
			return size;
		take_out(&p->walker);
		p->walk = BGP_WALK_END;
	}
	if (p->walk == BGP_WALK_END) {
		size = write_some(b, p, &p->marker, p->walk_version, to, cap);
		if (size == 0)
			size = end_walk(p, to, cap);
		if (size > 0 || p->walk == BGP_WALK_START)
			return size > 0 ? size : write_next(b, p, to, cap);
	}
	return write_some(b, p, &p->marker, UINT64_MAX, to, cap);
}

bool bgp_out_is_done(const struct bgp_peer *p)
{
	return !p->group->building && p->walk == BGP_WALK_NONE && look(p, &p->marker) == NULL;
}

size_t bgp_out_write(struct bgp *b, struct bgp_peer *p, uint8_t *to, size_t cap)
{
	size_t most = p->session.slots[p->slot].peer.extended ? BGP_MESSAGE_EXTENDED_MAX
							      : BGP_MESSAGE_MAX;
	size_t size;

	if (p->group == NULL || p->group->building)
		return 0;
	size = write_next(b, p, to, cap < most ? cap : most);
	p->updates_sent += size > 0;
	return size;
}
