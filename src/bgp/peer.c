/* peer.c - one neighbour: its session and its routes brought together */
#include "base/err.h"
#include "bgp/speaker.h"

#define AHEAD 16u /* prefixes; ours: about the cache misses that a core waits for at once, twice */

void bgp_peer_ready(struct bgp_peer *p)
{
	struct bgp *b = p->bgp;

	if (p->ready)
		return;
	p->ready = true;
	p->ready_next = NULL;
	*(b->ready_last != NULL ? &b->ready_last->ready_next : &b->ready_first) = p;
	b->ready_last = p;
}

static struct bgp_connection *connection_of(struct bgp_peer *p)
{
	return &p->session.slots[p->slot];
}

/* Ends the session with an error of ours. */
static void fail(struct bgp_peer *p, const struct bgp_notification *n, dsf_instant now)
{
	if (bgp_session_established(&p->session) >= 0)
		bgp_session_fail(&p->session, n, 0, now);
}

static void fail_resources(struct bgp_peer *p, dsf_instant now)
{
	struct bgp_notification n;

	(void)bgp_wire_refuse(&n, BGP_ERR_CEASE, BGP_CEASE_RESOURCES, NULL, 0);
	p->limit_reached++;
	fail(p, &n, now);
}

/* RFC 4486 4: which family, and how many there may be. */
static void fail_prefixes(struct bgp_peer *p, dsf_instant now)
{
	uint8_t data[7] = { 0, BGP_AFI_IPV6, BGP_SAFI_UNICAST };
	struct bgp_notification n;

	dsf_store_be32(data + 3, p->config.paths_max);
	(void)bgp_wire_refuse(&n, BGP_ERR_CEASE, BGP_CEASE_PREFIXES, data, sizeof(data));
	p->limit_reached++;
	if (bgp_session_established(&p->session) >= 0)
		bgp_session_fail(&p->session, &n, p->config.idle_ns, now);
}

/* ---- coming up and going down */

static void note_news(struct bgp_peer *p)
{
	struct bgp *b = p->bgp;

	if (p->news)
		return;
	p->news = true;
	p->news_next = NULL;
	*(b->news_last != NULL ? &b->news_last->news_next : &b->news_first) = p;
	b->news_last = p;
}

static void go_up(struct bgp_peer *p, unsigned slot, dsf_instant now)
{
	const struct bgp_open *open = &p->session.slots[slot].peer;

	p->up = true;
	note_news(p);
	p->slot = slot;
	p->up_since = now;
	p->id = open->id;
	p->end_of_rib = !open->graceful;
	p->restart_ns = open->graceful_ipv6 ? open->restart_s * NS_PER_S : 0;
	if (p->paths_stale > 0 && !(open->graceful_ipv6 && open->forwarding)) {
		bgp_rib_flush(p, true, now); /* RFC 4724 4.2: nothing was kept */
		p->stale_until = DSF_NEVER;
	} else if (p->paths_stale > 0) {
		p->stale_until = dsf_time_after(now, p->bgp->config.stale_ns);
	}
	if (bgp_out_join(p->bgp, p, now) < 0)
		fail_resources(p, now);
}

static void go_down(struct bgp_peer *p, dsf_instant now)
{
	p->up = false;
	note_news(p);
	if (p->group != NULL)
		bgp_out_leave(p->bgp, p);
	if (p->restart_ns == 0 || p->session.notified || !p->session.started) {
		bgp_rib_flush(p, false, now);
		p->stale_until = DSF_NEVER;
		return;
	}
	bgp_rib_flush(p, true, now); /* what was stale before has had its time, RFC 4724 4.2 */
	bgp_rib_mark_stale(p);
	p->stale_until = dsf_time_after(now, p->restart_ns);
}

void bgp_peer_settle(struct bgp_peer *p, dsf_instant now)
{
	int slot = bgp_session_established(&p->session);

	if (p->up && slot != (int)p->slot)
		go_down(p, now);
	if (!p->up && slot >= 0) {
		go_up(p, (unsigned)slot, now);
		slot = bgp_session_established(&p->session);
		if (slot < 0)
			go_down(p, now);
	}
	bgp_check_deferral(p->bgp, now);
	(void)dsf_heap_set(&p->bgp->timers, &p->timer,
		dsf_time_min(bgp_session_deadline(&p->session), p->stale_until));
	bgp_peer_ready(p);
}

void bgp_peer_expire_stale(struct bgp_peer *p, dsf_instant now)
{
	bgp_rib_flush(p, true, now);
	p->stale_until = DSF_NEVER;
}

/* ---- routes that come in */

/* Routes that have been where they come to (RFC 4271 9.1.2, 4456 8), or lead to ourselves. */
static bool is_loop(const struct bgp_peer *p, const struct bgp_update *u)
{
	const struct bgp *b = p->bgp;
	const struct bgp_attribute *clusters =
		bgp_attributes_find(&u->attributes, BGP_CLUSTER_LIST);
	struct bgp_as_walk walk;
	uint32_t as;

	bgp_as_walk_start(&walk, &u->attributes);
	while (bgp_as_walk_next(&walk, &as)) {
		if (as == b->config.as)
			return true;
	}
	for (size_t at = 0; clusters != NULL && at < clusters->size; at += 4) {
		if (dsf_load_be32(bgp_attribute_bytes(clusters) + at) == b->config.id)
			return true;
	}
	return bgp_attributes_get32(&u->attributes, BGP_ORIGINATOR_ID, 0) == b->config.id ||
	       dsf_ip6_equal(&u->next_hop, &p->local[p->slot]);
}

/* RFC 4271 6.3: a prefix that can't be forwarded to is passed over. */
static bool is_usable(const struct bgp_prefix_key *key)
{
	return key->length == 0 ||
	       (!dsf_ip6_is_multicast(&key->address) &&
		       !(key->length >= 10 && dsf_ip6_is_link_local(&key->address)));
}

/* Prefixes of an UPDATE in order, and looked at some before they are dealt with: most of their cost
 * is that tables of many prefixes aren't in the cache. */
struct walk {
	struct bgp_peer *peer;
	bool add_path;
	struct dsf_cursor in;
	unsigned at, end; /* in the ring, which has room for AHEAD of them */
	struct bgp_sought ring[AHEAD];
};

static void look_ahead(struct walk *w)
{
	struct bgp_sought *sought = &w->ring[w->end % AHEAD];

	if (!bgp_nlri_decode(&w->in, w->add_path, &sought->nlri))
		return;
	w->end++;
	bgp_rib_seek(w->peer, sought);
}

static void walk_start(struct walk *w, struct bgp_peer *p, struct bgp_span span, bool add_path)
{
	w->peer = p;
	w->add_path = add_path;
	w->in = bgp_span_read(span);
	w->at = w->end = 0;
	for (unsigned i = 0; i < AHEAD; i++)
		look_ahead(w);
}

/* False at the end. */
static bool walk_next(struct walk *w, struct bgp_sought *sought)
{
	if (w->at == w->end)
		return false;
	*sought = w->ring[w->at++ % AHEAD];
	look_ahead(w);
	if (w->end - w->at > AHEAD / 2)
		bgp_rib_near(w->peer, &w->ring[(w->at + AHEAD / 2) % AHEAD]);
	return true;
}

static void take_unreach(struct bgp_peer *p, struct bgp_span span, bool add_path, dsf_instant now)
{
	struct bgp_sought sought;
	struct walk w;

	walk_start(&w, p, span, add_path);
	while (walk_next(&w, &sought))
		bgp_rib_remove(p, &sought, now);
}

static struct bgp_bundle *make_bundle(
	struct bgp_peer *p, const struct bgp_update *u, const struct bgp_rule *rule)
{
	struct bgp *b = p->bgp;
	struct bgp_attributes a = u->attributes;

	if (bgp_is_external(b, p))
		bgp_attributes_set32(
			&a, BGP_LOCAL_PREF, BGP_FLAG_TRANSITIVE, BGP_LOCAL_PREF_DEFAULT);
	bgp_policy_apply(rule, &a);
	return bgp_store_bundle(
		&b->store, &a, &u->next_hop, &p->bundle_bytes, b->scratch, BGP_SCRATCH_PATH);
}

/* Adds what the UPDATE announces. Prefixes for which the same rule holds share a bundle. */
static int take_reach(
	struct bgp_peer *p, const struct bgp_update *u, bool add_path, dsf_instant now)
{
	const struct bgp_rule *rule = NULL, *last = NULL;
	struct bgp_bundle *bundle = NULL;
	struct bgp_sought sought;
	struct walk w;
	int err = 0;

	walk_start(&w, p, u->reach, add_path);
	while (err == 0 && walk_next(&w, &sought)) {
		if (!is_usable(&sought.nlri.key) ||
			!bgp_policy_permits(p->config.import, &sought.nlri.key, &rule)) {
			bgp_rib_remove(p, &sought, now);
			continue;
		}
		if (bundle == NULL || rule != last) {
			if (bundle != NULL)
				bgp_bundle_give(&p->bgp->store, bundle);
			bundle = make_bundle(p, u, rule);
			last = rule;
		}
		err = bundle == NULL ? -DSF_E_NOMEM
				     : bgp_rib_add(p, &sought, bgp_bundle_hold(bundle), now);
	}
	if (bundle != NULL)
		bgp_bundle_give(&p->bgp->store, bundle);
	return err;
}

void bgp_peer_update(struct bgp_peer *p, const struct bgp_message *m, dsf_instant now)
{
	const struct bgp_open *open = &connection_of(p)->peer;
	struct bgp_update_rules rules = { .external = bgp_is_external(p->bgp, p),
		.as4 = open->as4,
		.add_path = (p->config.add_path & BGP_ADD_PATH_RECEIVE) != 0 &&
			    (open->add_path & BGP_ADD_PATH_SEND) != 0,
		.as = p->config.as,
		.scratch = p->bgp->scratch + BGP_SCRATCH_AS2,
		.scratch_size = BGP_SCRATCH - BGP_SCRATCH_AS2 };
	struct bgp_notification n;
	struct bgp_update u;
	int err;

	p->updates_received++;
	if (bgp_update_decode(m->body, m->size, &rules, &u, &n) < 0) {
		p->refused++;
		fail(p, &n, now);
		return;
	}
	p->attributes_discarded += u.discarded;
	take_unreach(p, u.unreach, rules.add_path, now);
	if (u.withdraw || (u.reach.size > 0 && is_loop(p, &u))) {
		*(u.withdraw ? &p->withdrawn_by_error : &p->looped) += 1;
		take_unreach(p, u.reach, rules.add_path, now);
	} else {
		err = take_reach(p, &u, rules.add_path, now);
		if (err == -DSF_E_FULL)
			fail_prefixes(p, now);
		else if (err < 0 || p->bundle_bytes > BGP_BUNDLE_BYTES)
			fail_resources(p, now);
	}
	if (u.end_of_rib) {
		p->end_of_rib = true;
		bgp_peer_expire_stale(p, now);
		bgp_check_deferral(p->bgp, now);
	}
}

void bgp_peer_route_refresh(struct bgp_peer *p, const struct bgp_message *m, dsf_instant now)
{
	struct bgp_notification n;
	struct bgp_refresh r;

	if (bgp_wire_refresh_decode(m->body, m->size, &r, &n) < 0) {
		p->refused++;
		fail(p, &n, now);
		return;
	}
	if (r.afi != BGP_AFI_IPV6 || r.safi != BGP_SAFI_UNICAST)
		return;
	switch (r.subtype) {
	case BGP_REFRESH_REQUEST: bgp_out_refresh(p); break;
	case BGP_REFRESH_BEGIN: /* RFC 7313 4: what isn't told again until the end is gone */
		if (!connection_of(p)->peer.enhanced)
			break;
		bgp_rib_mark_stale(p);
		p->stale_until = dsf_time_after(now, p->bgp->config.stale_ns);
		break;
	case BGP_REFRESH_END:
		if (connection_of(p)->peer.enhanced)
			bgp_peer_expire_stale(p, now);
		break;
	default: break;
	}
}
