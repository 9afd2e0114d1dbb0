/*
 * model.h - a lab's topology as one read-only table
 *
 * topo/ turns a topology file into a struct topo in which nothing is left to a default: every
 * node, port and link with its name, number, address, rate and delay. It is parsed once, shared by
 * all devices (forked processes share its pages, the simulator's devices the pointer) and never
 * changes afterwards. What a device learns lives in the device.
 *
 * Order: nodes as generated (or as in the file), ports by node then port number, links as
 * generated. Indexes are into these arrays. Rates are bit/s (0: unlimited), times fabric
 * nanoseconds, sizes bytes.
 *
 * A hyperport is the parallel edge links of two switches as one port. Its first member stands for
 * it: by that one's name, number, system port, MAC and address it goes, and other members have
 * none of these of their own but name and number (their MAC is the first one's). At both ends the
 * first member is the same link's.
 */
#ifndef DSF_TOPO_MODEL_H
#define DSF_TOPO_MODEL_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/address.h"

#define TOPO_NONE UINT32_MAX

#define TOPO_LAB_NAME_MAX        32 /* characters: [a-z][a-z0-9_]{0,31} */
#define TOPO_NODE_NAME_MAX       48 /* characters: [a-z0-9-]{1,48} */
#define TOPO_PORT_NAME_MAX       15 /* IFNAMSIZ - 1 */
#define TOPO_NODES_MAX           65536
#define TOPO_LINKS_MAX           1048576
#define TOPO_SWITCHES_MAX        16384 /* switch indexes of a lab, over all its fabrics */
#define TOPO_FABRIC_SWITCHES_MAX 4064  /* of one building and plane: published ceiling */
#define TOPO_PORTS_PER_SWITCH    64    /* system port = switch index * 64 + Ethernet port number */
#define TOPO_ETHERNET_PORTS_MAX  63    /* of an interface node: the last one is its host port's */
#define TOPO_PLANES_MAX          16
#define TOPO_RAILS_MAX           64
#define TOPO_PORTS_MAX           2048 /* of one node */
#define TOPO_COMMAND_WORDS_MAX   64   /* of an external node */
#define TOPO_COMMAND_WORD_MAX    4096 /* bytes of one word */
#define TOPO_FILES_MAX           64   /* of an external node */
#define TOPO_FILE_NAME_MAX       64
#define TOPO_FILE_BYTES_MAX      (1u << 20)
#define TOPO_TRAIN_BYTES_MAX     16384 /* what receivers have buffers for */
#define TOPO_TRAIN_HEADER_MAX    64    /* room beside one cell in a frame of a cell link */
#define TOPO_TRAIN_CONTROL_BYTES 1024  /* of a train that data leaves to control cells */
#define TOPO_ETHERNET_MTU_MIN    1280  /* RFC 8200 part 5 */
#define TOPO_ETHERNET_MTU_MAX    9200  /* fits the 9,216 bytes of a frame that the fabric takes */
#define TOPO_DILATION_MAX        10000000
#define TOPO_BGP_NEIGHBORS_MAX   1024             /* that the file gives a node */
#define TOPO_BGP_RULES_MAX       256              /* of one policy */
#define TOPO_BGP_ORIGINS_MAX     1024             /* of a node */
#define TOPO_BGP_PATHS_MAX       1048576          /* as bgp/bgp.h */
#define TOPO_BGP_MD5_MAX         80               /* characters; Linux: TCP_MD5SIG_MAXKEYLEN */
#define TOPO_RATE_MIN            1000000u         /* 1 Mbit/s: one train takes 131 ms */
#define TOPO_RATE_MAX            100000000000000u /* 100 Tbit/s */

enum topo_role {
	TOPO_ROLE_RDSW,
	TOPO_ROLE_EDSW,
	TOPO_ROLE_FDSW,
	TOPO_ROLE_SDSW,
	TOPO_ROLE_SSW,
	TOPO_ROLE_HOST,
	TOPO_ROLE_EXTERNAL,
};
#define TOPO_ROLES_COUNT 7

enum topo_link_kind {
	TOPO_LINK_GPU,    /* host - RDSW, Ethernet */
	TOPO_LINK_FABRIC, /* interface node - FDSW, cells */
	TOPO_LINK_SPINE,  /* FDSW - SDSW, cells */
	TOPO_LINK_EDGE,   /* EDSW - SSW, Ethernet */
};
#define TOPO_KINDS_COUNT 4

enum topo_fabric_mode { TOPO_FABRIC_DSF, TOPO_FABRIC_ECMP };
enum topo_draw { TOPO_DRAW_STRATIFIED, TOPO_DRAW_RANDOM, TOPO_DRAW_FORCED };
enum topo_transport { TOPO_TRANSPORT_METAROCE, TOPO_TRANSPORT_ROCEV2 };

enum topo_bgp_add_path {
	TOPO_BGP_ADD_PATH_NONE,
	TOPO_BGP_ADD_PATH_RECEIVE,
	TOPO_BGP_ADD_PATH_SEND,
	TOPO_BGP_ADD_PATH_BOTH,
};

struct topo_port {
	char name[TOPO_PORT_NAME_MAX + 1]; /* "fab0", "eth3", "gpu0p1" */
	uint32_t node;
	uint32_t link;
	uint32_t peer;    /* index of the port at the other end */
	uint32_t number;  /* port number within its node, from 0; also its place after first_port */
	uint32_t ordinal; /* number within its kind: fab<ordinal>, eth<ordinal>; 0 for hosts */
	uint32_t rail, plane; /* hosts: gpu<rail>p<plane>; else TOPO_NONE and the node's plane */
	uint32_t withhold;    /* place in its node's forced order of withholding, or TOPO_NONE */
	uint32_t system_port; /* Ethernet ports of interface nodes; else TOPO_NONE */
	uint32_t hyperport;   /* members of one: the port that stands for it; else TOPO_NONE */
	bool ethernet;        /* false: fabric port, cells */
	/* Fabric ports: what the plan has at the other end, by node and fab<ordinal>; TOPO_NONE:
	 * nothing. Unless the file says otherwise, the port that is there. */
	uint32_t expected_node, expected_ordinal;
	struct dsf_mac mac;
	struct dsf_ip6 address; /* Ethernet ports: inside the link's /64; else all zero. Of a
				   hyperport only the first member's */
	uint8_t prefix_length;  /* 64; 0 without address */
};

/* A file that an external node's command finds in its folder. */
struct topo_node_file {
	const char *name; /* [A-Za-z0-9][A-Za-z0-9._-]{0,63} */
	const char *text;
};

/* What an external node runs. */
struct topo_external {
	const char *const *command; /* words, then NULL; NULL: it runs nothing */
	const struct topo_node_file *files;
	uint32_t files_count;
};

struct topo_node {
	const char *name;
	enum topo_role role;
	uint32_t building; /* TOPO_NONE where it has none */
	uint32_t plane;    /* switches; TOPO_NONE for hosts and external nodes */
	uint32_t cluster; /* zone number across the building, edge pod last; TOPO_NONE: SDSW, SSW */
	uint32_t zone;    /* ordinal in its building; TOPO_NONE: edge pod, SDSW, SSW */
	uint32_t first_port, ports_count;
	uint32_t switch_index; /* cell switch id; interface and fabric nodes only, else TOPO_NONE */
	struct dsf_ip6 loopback; /* routed switches; else all zero */
	uint32_t asn;            /* routed switches: AS number; else 0 */
	uint32_t rails;          /* hosts: number of GPUs (NICs) */
	uint32_t bgp;            /* what the file says of its BGP, in topo->bgp; else TOPO_NONE */
	/* NULL: no command and no files. */
	const struct topo_external *external;
};

/* Which prefixes a rule is about: those that lie in its own and have a length of these bounds. */
struct topo_bgp_rule {
	struct dsf_ip6 prefix;
	uint8_t length, length_min, length_max;
	bool permit;
	bool set_local_pref, set_med;
	uint32_t local_pref, med;
};

/* The first rule that matches decides; what none matches is denied. */
struct topo_bgp_policy {
	bool given;            /* else everything is permitted */
	uint32_t first, count; /* in topo->bgp_rules */
};

/* A neighbour that the file gives; derived ones: topo/bgp.h. */
struct topo_bgp_neighbor {
	struct dsf_ip6 address;
	struct dsf_ip6 local; /* ours: of the port with its subnet, else the loopback */
	uint32_t port;        /* number of that port; TOPO_NONE: by loopbacks */
	uint32_t node;        /* at the other end */
	uint32_t asn;
	bool passive;
	bool next_hop_self;
	uint16_t hold_s; /* 0: none */
	uint16_t restart_s;
	enum topo_bgp_add_path add_path;
	uint32_t paths_max;
	struct topo_bgp_policy import, export;
	char md5[TOPO_BGP_MD5_MAX + 1]; /* RFC 2385 key; "": none */
};

/* A prefix of a node's own, told while it has so many more specific ones. */
struct topo_bgp_origin {
	struct dsf_ip6 prefix;
	uint8_t length;
	uint32_t contributors_min;
};

struct topo_bgp {
	uint32_t router_id;
	uint32_t first_neighbor, neighbors_count; /* in topo->bgp_neighbors */
	uint32_t first_origin, origins_count;     /* in topo->bgp_origins */
};

struct topo_link {
	enum topo_link_kind kind;
	uint32_t port_a, port_b; /* a is the lower tier: host, interface node, FDSW, EDSW */
	uint64_t rate_bps;
	uint64_t delay_ns;
	uint64_t jitter_ns;
	uint32_t loss_ppm;
	uint32_t corrupt_ppm;
	uint32_t queue_bytes;   /* output queue of each end */
	uint32_t ecn_min_bytes; /* SSW and ecmp mode: queue length of first mark */
	uint32_t ecn_max_bytes;
	/* Ethernet: IP bytes; fabric: bytes of a train frame without its Ethernet header. */
	uint32_t mtu;
	bool hyperport; /* a member of one */
	bool loop;      /* a switch's cable to itself: no data crosses it */
};

struct topo_fabric {
	enum topo_fabric_mode mode;
	enum topo_draw draw;
	bool input_balanced;
	uint32_t cell_bytes;   /* largest cell, header included */
	uint32_t credit_bytes; /* published: 4096 */
	uint32_t train_bytes;  /* largest train; 0: one cell a frame */
	uint32_t voq_bytes;    /* tail drop of one VOQ */
	uint32_t buffer_bytes; /* tail drop of all VOQs of a switch */
	uint64_t ecn_min_ns;   /* queue delay of the first mark; "auto" is resolved */
	uint64_t reach_refresh_ns;
	uint64_t reassembly_timeout_ns; /* without the largest delay skew */
	uint64_t credit_watchdog_ns;
	uint32_t weight_rdma, weight_default; /* class nc is strict */
	/* Interface nodes: fewer usable fabric links than to_remain drain one, to_join bring it
	 * back. 0: none. */
	uint32_t min_links_to_join, min_links_to_remain;
};

struct topo_transport_settings {
	enum topo_transport name;
	uint32_t paths;         /* of one connection, over all planes */
	uint32_t payload_bytes; /* largest payload of a packet */
};

/* A GPU (NIC) of a host, as rank of a workload. */
struct topo_endpoint {
	uint32_t host; /* node */
	uint32_t rail;
};

struct topo {
	char name[TOPO_LAB_NAME_MAX + 1];
	uint64_t seed;
	uint32_t time_dilation; /* 0: auto, not yet decided */
	uint32_t planes;
	struct topo_fabric fabric;
	struct topo_transport_settings transport;
	const struct topo_node *nodes;
	const struct topo_port *ports;
	const struct topo_link *links;
	uint32_t nodes_count, ports_count, links_count;
	uint32_t switches_count; /* switch indexes are below this */
	/* Derived once, so that no device needs a search or a table of its own. */
	const uint32_t *switch_node;    /* [switches_count]: node of a switch index */
	const uint32_t *switch_cluster; /* [switches_count]: cluster of it, or TOPO_NONE */
	const uint64_t *below;          /* [switches_count][switch_words]: see topo_below */
	uint32_t switch_words;
	const uint32_t *system_port_port;      /* [switches_count * 64]: port, or TOPO_NONE */
	const struct topo_endpoint *endpoints; /* ranks: by host, then rail */
	uint32_t endpoints_count;
	uint64_t delay_skew_ns;        /* largest difference of fabric path delays in the lab */
	uint64_t credit_loop_ns;       /* longest way of a request and its grant in a cell fabric */
	uint64_t base_rtt_ns;          /* longest round trip of two hosts, empty network */
	const uint32_t *nodes_by_name; /* [nodes_count]: sorted by name */
	const char *names;             /* what the nodes' names point into */
	const struct topo_bgp *bgp;    /* by rising node; of those that have one in the file */
	const struct topo_bgp_neighbor *bgp_neighbors;
	const struct topo_bgp_rule *bgp_rules;
	const struct topo_bgp_origin *bgp_origins;
};

/* The interface nodes to which cells of a fabric node can only descend, as a bitset of switch_words
 * over switch indexes: those at an FDSW's own links; at an SDSW all that its FDSWs have. */
static inline const uint64_t *topo_below(const struct topo *t, uint32_t switch_index)
{
	return t->below + (size_t)switch_index * t->switch_words;
}

struct topo_endpoint topo_endpoint(const struct topo *t, uint32_t rank);

/* Port of an endpoint on a plane; NULL when it has none there. */
const struct topo_port *topo_endpoint_port(const struct topo *t, uint32_t rank, uint32_t plane);

/* Index by name; TOPO_NONE when there is none. A port is "NODE:IF". O(log n). */
uint32_t topo_find_node(const struct topo *t, const char *name);
uint32_t topo_find_port(const struct topo *t, const char *name);

static inline const struct topo_port *topo_node_port(
	const struct topo *t, const struct topo_node *n, uint32_t number)
{
	return &t->ports[n->first_port + number];
}

/* An Ethernet port with an address: one by itself, or one that stands for a hyperport. */
static inline bool topo_port_has_address(const struct topo_port *p)
{
	return p->prefix_length > 0;
}

/* The port that stands for the hyperport of which p is a member; p, if of none. */
static inline const struct topo_port *topo_port_whole(
	const struct topo *t, const struct topo_port *p)
{
	return p->hyperport == TOPO_NONE ? p : &t->ports[p->hyperport];
}

static inline bool topo_is_interface_node(enum topo_role role)
{
	return role == TOPO_ROLE_RDSW || role == TOPO_ROLE_EDSW;
}

static inline bool topo_is_fabric_node(enum topo_role role)
{
	return role == TOPO_ROLE_FDSW || role == TOPO_ROLE_SDSW;
}

/* Does the node run a command that the file gives? */
static inline bool topo_has_command(const struct topo_node *n)
{
	return n->external != NULL && n->external->command != NULL;
}

/* FSDB is spoken between the interface nodes of a plane of a building, each with each other. */
static inline bool topo_are_fsdb_peers(const struct topo_node *a, const struct topo_node *b)
{
	return topo_is_interface_node(a->role) && topo_is_interface_node(b->role) && a != b &&
	       a->plane == b->plane && a->building == b->building;
}

/* With how many others a node speaks FSDB. O(n). */
static inline uint32_t topo_fsdb_peers(const struct topo *t, const struct topo_node *n)
{
	uint32_t count = 0;

	for (uint32_t i = 0; topo_is_interface_node(n->role) && i < t->switches_count; i++)
		count += topo_are_fsdb_peers(n, &t->nodes[t->switch_node[i]]);
	return count;
}

/* FSDB sessions of the lab, each counted once. O(n^2). */
uint64_t topo_fsdb_sessions(const struct topo *t);

/* Of a hyperport, by what stands for it, all members come to. 0: unlimited. */
static inline uint64_t topo_port_rate(const struct topo *t, const struct topo_port *p)
{
	const struct topo_node *n = &t->nodes[p->node];
	uint64_t rate = t->links[p->link].rate_bps, members = 0;

	if (p->hyperport == TOPO_NONE)
		return rate;
	for (uint32_t i = 0; i < n->ports_count; i++)
		members += topo_node_port(t, n, i)->hyperport == p->hyperport;
	return members * rate; /* they are alike */
}

const char *topo_role_name(enum topo_role role);
const char *topo_link_kind_name(enum topo_link_kind kind);

/* Frees a topology that topo_load or topo_expand made; NULL is fine. */
void topo_free(struct topo *t);

#endif
