/*
 * bgp.h - one BGP speaker for IPv6 unicast
 *
 * Theory. A speaker has neighbours (peers). From each it takes routes: a prefix, a next hop,
 * attributes, and with add-path a number that keeps several routes of one prefix apart. For each
 * prefix it decides which routes are as good as each other; their next hops together are what the
 * prefix is forwarded to (multipath). To each peer it tells, where policy lets it, its best route,
 * or with add-path every one.
 *
 * In a region (DESIGN 3) an edge switch has a few eBGP sessions to super spines and one iBGP
 * session with add-path to each of 512 leaves. A leaf learns each of 128 aggregates 2,000 times,
 * once for each link of the edge. So what counts is the cost of one path, and that it doesn't grow
 * with the paths of its prefix:
 *
 *   in       a path is found by (peer, prefix, path id) in a table of its peer; one path of each
 *            prefix by the prefix itself, so that plain prefixes are in one table only. Taking it
 *            marks the prefix, nothing else. Prefixes and paths lie in slabs in order of coming,
 *            and an UPDATE is looked at ahead: what costs at this size is what isn't in the cache
 *   decide   marked prefixes are decided once for all that came: the first change at once, the next
 *            ones BGP_DECIDE_NS later, or more after a decision over many paths. Paths of a
 *            prefix lie in order of next hop; new ones are merged in, so a decision is a walk over
 *            its paths, and the set of next hops comes out sorted. Sets and attributes are kept
 *            once and shared (store.h)
 *   out      peers to which the same is told form a group. A group has one list of announcements in
 *            order of their last change, and each member a marker in it: what is behind the marker
 *            hasn't been told. Announcements of one decision lie together by attributes, so that
 *            messages are full. A withdrawal stays until the last member has passed it
 *
 * A peer's routes go with its session, unless it has promised to come back (graceful restart, RFC
 * 4724): then they stay, marked stale, until it has told all again or its time is over. So do they
 * during an enhanced route refresh (RFC 7313).
 *
 * Streams. The speaker speaks through ordered streams of bytes. It says when to open, close and
 * write one; whoever carries them tells it what comes. Names of streams are the speaker's. A stream
 * whose bytes can't go on is blocked, and the speaker writes no more until it isn't; what waits is
 * the list, never a buffer.
 *
 * Choices. Multipath takes paths of equal length through whatever ASes; MEDs compare within one
 * neighbouring AS. No advertisement interval: decisions are batched, so what is told is. Next hops
 * are taken as they come: whether one resolves is known where packets are forwarded, and a set
 * whose member doesn't is used without it. No route reflection: iBGP routes go to eBGP peers only.
 * Without a policy everything is permitted, by eBGP too (RFC 8212 asks for the contrary): who is a
 * peer in a lab was named in its file.
 *
 * A hostile peer can send what it likes: messages end its session, paths and bytes of attributes
 * have limits, and with the session goes all the memory.
 *
 * Files: wire, update, attributes (bytes), session (state machine), table, store (shared things),
 * policy, rib (paths in), decide, out (announcements), peer (one neighbour), bgp (this).
 */
#ifndef DSF_BGP_BGP_H
#define DSF_BGP_BGP_H
#include "bgp/policy.h"
#include "bgp/session.h"

#define BGP_PEERS_MAX     4095u
#define BGP_PATHS_MAX     (1u << 20)       /* of one peer; ours */
#define BGP_BUNDLE_BYTES  (64ull << 20)    /* of attributes that one peer brought; ours */
#define BGP_WITHDRAWN_MAX (1u << 19)       /* of a group, not told to all; ours */
#define BGP_MULTIPATH_MAX 4096u            /* next hops of a prefix; ours: twice the published 2K */
#define BGP_DECIDE_NS     (10 * NS_PER_MS) /* least time between decisions; ours */
/* And for each path that the last one walked: five times what that takes (measured: 40 ns), so that
 * decisions never take most of the time, however paths come. */
#define BGP_DECIDE_PATH_NS 200ull
#define BGP_DEFER_NS       (120 * NS_PER_S) /* published: End-of-RIB wait default 120 s */
#define BGP_STALE_NS       (360 * NS_PER_S) /* ours, as FRR: longest that stale routes stay */

/* One neighbour. Addresses identify: no two peers have the same. */
struct bgp_peer_config {
	struct dsf_ip6 address;
	uint32_t as;
	bool passive;
	uint16_t hold_s;    /* 0: none, else at least 3 */
	uint8_t add_path;   /* BGP_ADD_PATH_* that we offer */
	uint16_t restart_s; /* graceful restart that we ask for; 0: none */
	uint64_t retry_ns;
	bool next_hop_self; /* iBGP: tell our address instead of the route's next hop */
	uint32_t paths_max; /* more paths end the session; at most BGP_PATHS_MAX */
	uint64_t idle_ns;   /* ... for so long; UINT64_MAX: until started again */
	const struct bgp_policy *import, *export; /* NULL: everything; borrowed */
	const char *md5; /* RFC 2385 key, for whoever makes the connection; NULL: none; borrowed */
};

/* Writes the defaults. */
void bgp_peer_config_init(
	struct bgp_peer_config *config, const struct dsf_ip6 *address, uint32_t as);

/* A route of our own. An aggregate has a minimum of contributing routes: more specific prefixes
 * that are reachable. It is told while it is enabled and has as many. */
struct bgp_origin {
	struct bgp_prefix_key prefix;
	uint32_t contributors_min; /* 0: told whatever there is */
	bool enabled;
};

struct bgp_config {
	const struct dsf_memory *memory;
	uint32_t as, id;
	uint64_t seed;
	const struct bgp_peer_config *peers; /* copied, but for what they borrow */
	uint32_t peers_count;
	const struct bgp_origin *origins; /* copied */
	uint32_t origins_count;
	uint32_t multipath_max; /* 1 .. BGP_MULTIPATH_MAX */
	uint64_t defer_ns, stale_ns;
	bool restarting; /* what we forwarded before is still forwarded (RFC 4724 4.1) */
};

/* Defaults of all but memory, as, id, peers and origins. */
void bgp_config_init(struct bgp_config *config);

struct bgp;

/* NULL when memory is short. Peers are stopped. */
struct bgp *bgp_new(const struct bgp_config *config, dsf_instant now);
void bgp_free(struct bgp *b);

/* Peers are numbered as configured, from 0. */
void bgp_peer_start(struct bgp *b, uint32_t peer, dsf_instant now);

/* Ends the session with a Cease (BGP_CEASE_SHUTDOWN, BGP_CEASE_RESET ...) and a text, which may be
 * NULL; stays stopped. */
void bgp_peer_stop(
	struct bgp *b, uint32_t peer, enum bgp_cease subcode, const char *text, dsf_instant now);

/* Asks the peer to tell all again, where it knows how to. */
void bgp_peer_refresh(struct bgp *b, uint32_t peer);

/* Enables or disables a route of our own, by its number as configured. */
void bgp_originate(struct bgp *b, uint32_t origin, bool enabled, dsf_instant now);

/* A connection from remote to local. Its stream, or -DSF_E_UNKNOWN (no such peer), -DSF_E_STATE
 * (not now): refuse it. */
int64_t bgp_accept(
	struct bgp *b, const struct dsf_ip6 *remote, const struct dsf_ip6 *local, dsf_instant now);

/* What happened to a stream; names that are no longer known mean nothing. connected: one that we
 * asked for stands. closed: it ended, was reset, or couldn't be made. */
void bgp_connected(struct bgp *b, uint32_t stream, const struct dsf_ip6 *local, dsf_instant now);
void bgp_closed(struct bgp *b, uint32_t stream, dsf_instant now);
void bgp_input(struct bgp *b, uint32_t stream, const uint8_t *bytes, size_t size, dsf_instant now);

/* Bytes written last wait (true), or can go on. */
void bgp_blocked(struct bgp *b, uint32_t stream, bool blocked, dsf_instant now);

enum bgp_action_kind {
	BGP_ACTION_CONNECT, /* make a connection to peer, call it stream */
	BGP_ACTION_WRITE,   /* size bytes of the buffer */
	BGP_ACTION_CLOSE,   /* after what was written; the name is free */
};

struct bgp_action {
	enum bgp_action_kind kind;
	uint32_t peer, stream;
	size_t size;
};

/* The next thing to do; false when there is nothing. cap is at least BGP_MESSAGE_MAX. */
bool bgp_output(
	struct bgp *b, struct bgp_action *action, uint8_t *buf, size_t cap, dsf_instant now);

dsf_instant bgp_deadline(const struct bgp *b);
void bgp_expire(struct bgp *b, dsf_instant now);

/* What a prefix is forwarded to, as it has changed. */
struct bgp_change {
	struct bgp_prefix_key prefix;
	const struct dsf_ip6 *hops; /* in order; valid until the next call that changes b */
	uint32_t hops_count;        /* 0: no longer reachable by BGP */
};

/* The next prefix whose next hops are no longer what was told last; false when all was told. */
bool bgp_changed(struct bgp *b, struct bgp_change *change);

/* The next peer whose session is Established, or no longer, other than was told last; false when
 * all was told. */
bool bgp_peer_changed(struct bgp *b, uint32_t *peer, bool *up);

/* One peer as it is. */
struct bgp_peer_view {
	const struct bgp_peer_config *config;
	const struct bgp_session *session;
	enum bgp_state state;
	dsf_instant up_since; /* Established */
	uint32_t paths;       /* taken from it, stale ones too */
	uint32_t paths_stale;
	uint32_t told; /* routes that its group has to tell */
	bool told_all; /* and has */
	bool add_path_receive, add_path_send;
	uint64_t bundle_bytes;
	uint64_t updates_received, updates_sent, refused, withdrawn_by_error, attributes_discarded,
		looped, limit_reached;
};

void bgp_peer_view(const struct bgp *b, uint32_t peer, dsf_instant now, struct bgp_peer_view *view);

/* One path of the table. */
struct bgp_row {
	struct bgp_prefix_key prefix;
	uint32_t peer; /* UINT32_MAX: our own */
	uint32_t path_id;
	struct dsf_ip6 next_hop;
	struct bgp_attributes attributes; /* borrowed */
	bool best, multipath, stale;
};

/* Every path, prefix by prefix in order of their coming. row returns false to end. */
void bgp_rows(const struct bgp *b, bool (*row)(void *user, const struct bgp_row *row), void *user);

#endif
