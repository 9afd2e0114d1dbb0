/*
 * speaker.h - what the parts of a speaker share (bgp.h has the theory)
 */
#ifndef DSF_BGP_SPEAKER_H
#define DSF_BGP_SPEAKER_H
#include "base/heap.h"
#include "bgp/bgp.h"
#include "bgp/store.h"

struct bgp_group;
struct bgp_peer;

/* A prefix that has paths, or had some that not everybody has been told about. */
struct bgp_prefix {
	struct bgp_link link; /* id: place in its slab */
	struct bgp_prefix_key key;
	bool dirty, changed;    /* in the list of that name */
	bool again;             /* memory was short: the next decision looks at every path anew */
	bool reachable;         /* counts as a contributor */
	uint32_t outs_count;    /* of paths too, and withdrawals under way */
	struct bgp_path *paths; /* in order of next hop, as of the last decision */
	struct bgp_path *arrivals; /* since then, the last one first */
	struct bgp_path *best;
	struct bgp_path *lone; /* found here, not in its peer's table; NULL: none */
	struct bgp_hops *hops; /* held; NULL: unreachable, or ours */
	struct bgp_out *outs;  /* its announcements in groups without add-path */
	struct bgp_prefix *dirty_next, *changed_next;
	struct bgp_prefix *previous, *next; /* in order of coming */
};

/* Prefixes are made so many at a time: with its header a slab is 4 KB. */
#define BGP_SLAB_PREFIXES 31u

struct bgp_prefix_slab {
	struct bgp_prefix_slab *previous, *next; /* in the list of those with room */
	struct bgp_prefix *free;
	uint32_t used;
	struct bgp_prefix prefixes[BGP_SLAB_PREFIXES];
};

/* A path from a peer. Gone ones (no bundle) wait for the next decision of their prefix. */
struct bgp_path {
	struct bgp_link link;      /* in its peer's table; id: the path id that the peer gave it */
	struct bgp_path *next;     /* of the prefix */
	struct bgp_prefix *prefix; /* NULL: a free place */
	struct bgp_peer *peer;
	struct bgp_bundle *bundle; /* held; NULL: gone */
	struct bgp_out *outs;      /* its announcements in groups with add-path */
	uint32_t number;           /* our path id of it: no other path of the speaker has it */
	bool changed;              /* since the last decision */
	bool stale, multipath;
};

/* Paths are made so many at a time. */
#define BGP_SLAB_PATHS 64u

struct bgp_slab {
	struct bgp_slab *next;
	struct bgp_path paths[BGP_SLAB_PATHS];
};

/* Places in a group's list: announcements, and markers of members. */
struct bgp_node {
	struct bgp_node *previous, *next;
	bool is_marker;
};

/* What a group tells about one prefix, or one path of it. */
struct bgp_out {
	struct bgp_node node;
	bool moved; /* it was another peer's route before, and its new source may have been told */
	uint16_t source;  /* number of the peer whose route it is */
	uint32_t waiting; /* withdrawn: members that haven't been told */
	uint32_t path_id;
	uint64_t version;
	struct bgp_group *group;
	struct bgp_prefix *prefix;
	struct bgp_out **at;     /* list of its path or prefix; NULL: the path is gone */
	struct bgp_out *sibling; /* next of that list, in another group */
	struct bgp_out *batch_next;
	struct bgp_bundle *bundle; /* held; NULL: withdrawn */
};

/* Peers to which the same is told. */
struct bgp_group {
	struct bgp_group *next;
	bool external, add_path, next_hop_self;
	struct dsf_ip6 local; /* next hop of ours */
	const struct bgp_policy *policy;
	bool building; /* new: its list isn't complete before the next decision */
	bool fresh;    /* its list has grown by the decision under way */
	uint32_t members, told, withdrawn;
	uint64_t version;
	struct bgp_node list; /* head of the ring, oldest change first */
};

/* How far the telling of all (at the start, or on request) has come. */
enum bgp_walk { BGP_WALK_NONE, BGP_WALK_START, BGP_WALK_UNDER_WAY, BGP_WALK_END };

struct bgp_peer {
	uint16_t number; /* from 1; 0 is the speaker itself */
	struct bgp *bgp;
	struct bgp_peer_config config;
	struct bgp_session session;
	uint16_t generation[BGP_SLOTS]; /* of stream names */
	bool opened[BGP_SLOTS];         /* the slot has a stream */
	struct dsf_ip6 local[BGP_SLOTS];
	/* established */
	bool up;
	unsigned slot;
	uint32_t id;         /* the peer's; also of the session before */
	uint64_t restart_ns; /* how long its routes stay when it goes; 0: it is not graceful */
	dsf_instant up_since;
	bool end_of_rib; /* heard */
	/* in */
	struct bgp_table paths;
	struct bgp_slab *slabs;
	struct bgp_path *free;
	uint32_t slots_made, slots_used;
	uint32_t paths_count, paths_stale; /* with a bundle */
	uint64_t bundle_bytes;
	dsf_instant stale_until; /* DSF_NEVER: nothing is stale */
	/* out */
	struct bgp_group *group;
	struct bgp_node marker, walker;
	enum bgp_walk walk;
	bool walk_is_refresh, walk_again;
	uint64_t walk_version; /* what is newer isn't part of the walk */
	/* work */
	struct bgp_peer *ready_next, *news_next;
	bool ready;
	bool news, told_up; /* in the list of that name; what was told last */
	struct dsf_heap_entry timer;
	uint64_t updates_received, updates_sent, refused, withdrawn_by_error, attributes_discarded,
		looped, limit_reached;
};

struct bgp_own {
	struct bgp_origin origin;
	uint32_t contributors;
	bool told;
};

struct bgp {
	struct bgp_config config;
	struct bgp_store store;
	struct bgp_table prefixes;
	struct bgp_prefix_slab *roomy; /* slabs with free places */
	struct bgp_prefix *first, *last;
	struct bgp_prefix *dirty_first, *dirty_last;
	struct bgp_prefix *changed_first, *changed_last;
	struct bgp_peer *peers; /* [0] is ourselves */
	uint32_t peers_count;   /* with that one */
	struct bgp_own *own;
	struct bgp_group *groups;
	struct bgp_peer *ready_first, *ready_last;
	struct bgp_peer *news_first, *news_last; /* whose session came up or ended */
	struct dsf_heap timers;
	struct bgp_bundle *batch_first, *batch_last;      /* announced by the decision under way */
	struct bgp_out *withdrawn_first, *withdrawn_last; /* and withdrawn */
	dsf_instant decide_at;                            /* DSF_NEVER: nothing is marked */
	dsf_instant undecided_at;                         /* no decision before */
	uint64_t walked;                                  /* paths, by the decision under way */
	dsf_instant defer_until;                          /* restarting: no decision before */
	uint64_t bundle_bytes;                            /* of attributes that are ours */
	struct dsf_ip6 *hops;                             /* scratch of a decision */
	uint32_t hops_cap;
	uint32_t *meds;
	uint32_t meds_cap;
	uint8_t *scratch; /* BGP_SCRATCH bytes */
};

/* Room for attributes that are rewritten: parts as large as the largest UPDATE, or twice that. */
#define BGP_SCRATCH_CANONICAL 0u
#define BGP_SCRATCH_PATH      65536u
#define BGP_SCRATCH_AS2       (2u * 65536u) /* to its end: paths of 2-octet numbers */
#define BGP_SCRATCH           (4u * 65536u)

static inline bool bgp_is_external(const struct bgp *b, const struct bgp_peer *p)
{
	return p->config.as != b->config.as;
}

static inline bool bgp_is_own(const struct bgp_peer *p)
{
	return p->number == 0;
}

/* rib.c: paths */

/* A path that is added or removed, and what it is found by. */
struct bgp_sought {
	struct bgp_nlri nlri;
	uint32_t prefix_hash, path_hash;
};

/* Fills in the hashes. What is looked for comes into the cache by and by: call seek some paths
 * before it is needed, near when half of them have been dealt with. */
void bgp_rib_seek(const struct bgp_peer *p, struct bgp_sought *sought);
void bgp_rib_near(const struct bgp_peer *p, const struct bgp_sought *sought);

/* A path of peer with a bundle, which it holds from now on (the caller's hold is taken over, also
 * on error). 0, -DSF_E_NOMEM, or -DSF_E_FULL: the peer has all the paths that it may have. */
int bgp_rib_add(struct bgp_peer *p, const struct bgp_sought *sought, struct bgp_bundle *bundle,
	dsf_instant now);

/* Nothing happens when there is none. */
void bgp_rib_remove(struct bgp_peer *p, const struct bgp_sought *sought, dsf_instant now);

/* All paths of a peer, or the stale ones only. */
void bgp_rib_flush(struct bgp_peer *p, bool stale_only, dsf_instant now);
void bgp_rib_mark_stale(struct bgp_peer *p);

/* Marks a prefix for the next decision. */
void bgp_rib_touch(struct bgp *b, struct bgp_prefix *prefix, dsf_instant now);

/* Frees a path that is gone and was taken out of its prefix's list. */
void bgp_rib_free_path(struct bgp_path *path);

/* Frees a prefix when nothing is left of it. */
void bgp_rib_release(struct bgp *b, struct bgp_prefix *prefix);

/* decide.c */

/* Decides what is marked. */
void bgp_decide(struct bgp *b, dsf_instant now);

/* Tells or withdraws a route of ours, as it is enabled and has contributors. */
void bgp_own_check(struct bgp *b, struct bgp_own *own, dsf_instant now);

/* out.c */

/* What a group tells of a path (of add-path groups), or of a prefix by its best path, which is NULL
 * when there is none. bundle is taken over; NULL: nothing. at: the list in which the announcement
 * is or will be. False: memory is short. */
bool bgp_out_set(struct bgp *b, struct bgp_group *g, struct bgp_prefix *prefix, struct bgp_out **at,
	const struct bgp_path *path, struct bgp_bundle *bundle);

/* Withdraws what all groups told of a path that is gone. */
void bgp_out_retire(struct bgp *b, struct bgp_out **at);

/* Puts what a decision has changed into the lists of the groups. */
void bgp_out_flush(struct bgp *b, dsf_instant now);

/* A decision is over: lists of new groups are complete, and members have something to hear. */
void bgp_out_built(struct bgp *b);

/* A peer that is established, and no longer. */
int bgp_out_join(struct bgp *b, struct bgp_peer *p, dsf_instant now);
void bgp_out_leave(struct bgp *b, struct bgp_peer *p);

/* Tells all again. */
void bgp_out_refresh(struct bgp_peer *p);

/* True when a peer in a group has been told everything. */
bool bgp_out_is_done(const struct bgp_peer *p);

/* The next message about routes; 0 when there is none. */
size_t bgp_out_write(struct bgp *b, struct bgp_peer *p, uint8_t *to, size_t cap);

/* export.c: the bundle in which a group hears of a path, held; *bundle is NULL where it doesn't.
 * False: memory is short. */
bool bgp_export(struct bgp *b, const struct bgp_group *g, const struct bgp_path *path,
	struct bgp_bundle **bundle);

/* peer.c */

/* Puts the peer in line for bgp_output. */
void bgp_peer_ready(struct bgp_peer *p);

void bgp_peer_update(struct bgp_peer *p, const struct bgp_message *m, dsf_instant now);
void bgp_peer_route_refresh(struct bgp_peer *p, const struct bgp_message *m, dsf_instant now);

/* After anything happened to the session: what follows from its coming up or going down. */
void bgp_peer_settle(struct bgp_peer *p, dsf_instant now);

/* The stale time of a peer is over. */
void bgp_peer_expire_stale(struct bgp_peer *p, dsf_instant now);

/* bgp.c: is restarting over? */
void bgp_check_deferral(struct bgp *b, dsf_instant now);

#endif
