/*
 * draft.h - a topology while it is being made
 *
 * The templates (expand.c) and the explicit arrays (explicit.c) add nodes and links to one draft;
 * number.c gives them switch indexes and addresses, finish.c turns them into the read-only table,
 * check.c judges it. Each node and link remembers which part of the file it came from, so that a
 * fault found late still has a line and a JSON path.
 */
#ifndef DSF_TOPO_DRAFT_H
#define DSF_TOPO_DRAFT_H
#include "base/hash.h"
#include "topo/file.h"
#include "topo/keys.h"
#include "topo/model.h"
#include "topo/value.h"

enum topo_origin_kind {
	TOPO_ORIGIN_NODE,       /* nodes[a] */
	TOPO_ORIGIN_LINK,       /* links[a] */
	TOPO_ORIGIN_ZONE,       /* buildings[a].zones[b] */
	TOPO_ORIGIN_EDGE,       /* buildings[a].edge */
	TOPO_ORIGIN_BUILDING,   /* buildings[a] */
	TOPO_ORIGIN_SUPERSPINE, /* superspine */
	TOPO_ORIGIN_FABRIC,     /* fabric */
};

struct topo_origin {
	enum topo_origin_kind kind;
	uint32_t a, b;
};

/* What an address of a node and of its ports starts with: PP BB ZZ SS. */
struct topo_scheme {
	uint8_t plane, building, zone, ordinal;
};

struct topo_draft_node {
	struct topo_node node; /* its name points nowhere until finish */
	char name[TOPO_NODE_NAME_MAX + 1];
	struct topo_origin origin;
	struct topo_scheme scheme;
	bool routed;                 /* has a scheme and a loopback */
	const char *address_given;   /* borrowed from the tree; NULL: takes the next ordinal */
	uint32_t eth_next, fab_next; /* templates: next free ordinals */
	/* External nodes: borrowed from the tree; NULL: none. */
	const cJSON *command, *files;
};

enum topo_port_class { TOPO_PORT_GPU, TOPO_PORT_ETH, TOPO_PORT_FAB };

struct topo_draft_end {
	uint32_t node;
	enum topo_port_class class;
	uint32_t ordinal; /* eth, fab: number; gpu: rail */
	uint32_t plane;   /* gpu only */
};

struct topo_draft_link {
	struct topo_link link;        /* ports unset until finish */
	struct topo_draft_end end[2]; /* a, b */
	/* What the plan has at the other end of each; node TOPO_NONE: nothing. */
	struct topo_draft_end expected[2];
	struct topo_origin origin;
};

/* Settings of a link while defaults and the file's own are laid over each other. */
struct topo_settings {
	uint64_t value[TOPO_DEFAULTS_COUNT];
};

struct topo_draft {
	const struct topo_reader *reader;
	struct topo_path top;
	const struct topo_choice *choice; /* instead of what the file says; NULL: nothing */
	char name[TOPO_LAB_NAME_MAX + 1];
	uint64_t seed;
	uint64_t time_dilation;    /* TOPO_AUTO */
	uint32_t planes;           /* 0: not given */
	struct topo_fabric fabric; /* ecn_min_ns: TOPO_AUTO until derived */
	struct topo_transport_settings transport;
	struct topo_settings defaults[TOPO_KINDS_COUNT];
	struct topo_draft_node *nodes;
	struct topo_draft_link *links;
	uint32_t nodes_count, nodes_cap, links_count, links_cap;
	uint32_t first_explicit_link; /* links[0] of the file */
	struct dsf_hash names;        /* node name -> index */
};

void topo_draft_init(struct topo_draft *d, const struct topo_reader *r, const cJSON *root);
void topo_draft_close(struct topo_draft *d);

/* Adds a node; its index, or a negative error (told to the reader) when the name is bad or taken
 * or there are too many. */
int64_t topo_draft_node(
	struct topo_draft *d, const char *name, enum topo_role role, struct topo_origin origin);

/* TOPO_NONE when there is none. */
uint32_t topo_draft_find(const struct topo_draft *d, const char *name);

/* Adds a link with the given settings; its index or a negative error. The ends must be in order:
 * a is the lower tier. */
int64_t topo_draft_link(struct topo_draft *d, enum topo_link_kind kind,
	const struct topo_settings *settings, struct topo_draft_end a, struct topo_draft_end b,
	struct topo_origin origin);

/* Fails at the part of the file that origin names, or at its key when that is there. */
int topo_draft_fail(const struct topo_draft *d, struct topo_origin origin, const char *key,
	const char *format, ...) __attribute__((format(printf, 4, 5)));

/* "eth3", "fab0", "gpu1p0" into name. */
void topo_draft_port_name(const struct topo_draft_end *end, char name[TOPO_PORT_NAME_MAX + 1]);

/* The parts, in order of use. All return 0 or a negative error. */
int topo_draft_top(struct topo_draft *d, struct topo_slot *top);             /* settings.c */
int topo_draft_templates(struct topo_draft *d, const struct topo_slot *top); /* expand.c */
int topo_draft_explicit(struct topo_draft *d, const struct topo_slot *top);  /* explicit.c */
int topo_draft_number(struct topo_draft *d);                                 /* number.c */
int topo_draft_finish(struct topo_draft *d, struct topo **out);              /* finish.c */
int topo_draft_given(const struct topo_draft *d, const struct topo *t,
	const struct topo_slot *top); /* explicit.c */
int topo_draft_orders(const struct topo_draft *d, const struct topo *t, struct topo_port *ports,
	const struct topo_slot *top); /* orders.c */
int topo_draft_bgp(
	const struct topo_draft *d, struct topo *t, const struct topo_slot *top); /* bgp_file.c */
int topo_draft_check(const struct topo_draft *d, const struct topo *t);           /* check.c */
void topo_derive(struct topo *t);                                                 /* derive.c */

/* external.c: what a node's keys say of command and files. 0 or negative. */
int topo_draft_external(const struct topo_draft *d, const struct topo_path *path,
	const struct topo_slot *slots, struct topo_draft_node *n);

/* What a node with command or files runs, one block that the caller frees; NULL: no memory. */
struct topo_external *topo_draft_external_make(const struct topo_draft_node *n);

/* The /64 of a link whose lower or serving end is a node with this scheme, and MACs and addresses
 * of its ends. */
struct dsf_ip6 topo_scheme_loopback(struct topo_scheme s);
struct dsf_ip6 topo_scheme_address(
	struct topo_scheme s, const struct topo_draft_end *end, bool far);
struct dsf_mac topo_scheme_mac(struct topo_scheme s, uint32_t ordinal, bool far);

#endif
