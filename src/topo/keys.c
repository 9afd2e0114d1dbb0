#include "topo/keys.h"
#include "topo/model.h"
#include "base/time.h"

#define DELAY_MAX     NS_PER_S
#define QUEUE_MAX     (1u << 30)
#define SHARE_MAX     1000000u
#define COUNT_MAX     4096u /* switches of one kind in one place; sums have limits of their own */
#define BUILDINGS_MAX 255u  /* one byte of an address; ff is the super spine */
#define ZONES_MAX     125u  /* half a byte's values are zones, the others their fabric nodes */
#define CELL_MIN      192u  /* as fabric/cell.h: a largest packet is 64 cells at most */
#define MTU_MIN       192u  /* one small cell a frame; Ethernet: TOPO_ETHERNET_MTU_MIN */
#define MTU_MAX       TOPO_TRAIN_BYTES_MAX
#define RESTART_MAX   (4095 * NS_PER_S) /* RFC 4724 3: 12 bits */

static const char *const mode_words[] = { "dsf", "ecmp", NULL };
static const char *const draw_words[] = { "stratified", "random", "forced", NULL };
static const char *const transport_words[] = { "metaroce", "rocev2", NULL };
static const char *const role_words[] = { "rdsw", "edsw", "fdsw", "sdsw", "ssw", "host", "external",
	NULL };
static const char *const kind_words[] = { "gpu", "fabric", "spine", "edge", NULL };
static const char *const add_path_words[] = { "none", "receive", "send", "both", NULL };

#define TABLE(name, object)                                                                        \
	const struct topo_keys topo_keys_##name = { object, name##_keys,                           \
		sizeof(name##_keys) / sizeof(name##_keys[0]) }

#define INT(name, min, max)                                                                        \
	{                                                                                          \
		name, TOPO_VALUE_INT, false, min, max, NULL                                        \
	}
#define COUNT(name, min, max)                                                                      \
	{                                                                                          \
		name, TOPO_VALUE_INT, true, min, max, NULL                                         \
	}
#define TIME(name, max)                                                                            \
	{                                                                                          \
		name, TOPO_VALUE_TIME, false, 0, max, NULL                                         \
	}
#define BYTES(name, min, max)                                                                      \
	{                                                                                          \
		name, TOPO_VALUE_BYTES, false, min, max, NULL                                      \
	}
#define STRING(name)                                                                               \
	{                                                                                          \
		name, TOPO_VALUE_STRING, false, 0, 0, NULL                                         \
	}
#define WORD(name, words)                                                                          \
	{                                                                                          \
		name, TOPO_VALUE_WORD, false, 0, 0, words                                          \
	}
#define OBJECT(name)                                                                               \
	{                                                                                          \
		name, TOPO_VALUE_OBJECT, false, 0, 0, NULL                                         \
	}

static const struct topo_key top_keys[TOPO_TOP_COUNT] = {
	[TOPO_TOP_NAME] = { "name", TOPO_VALUE_STRING, true, 0, 0, NULL },
	[TOPO_TOP_SEED] = { "seed", TOPO_VALUE_UINT64, false, 0, UINT64_MAX, NULL },
	[TOPO_TOP_TIME_DILATION] = { "time_dilation", TOPO_VALUE_INT_AUTO, false, 1,
		TOPO_DILATION_MAX, NULL },
	[TOPO_TOP_PLANES] = INT("planes", 1, TOPO_PLANES_MAX),
	[TOPO_TOP_BUILDINGS] = { "buildings", TOPO_VALUE_ARRAY, false, 1, BUILDINGS_MAX, NULL },
	[TOPO_TOP_SUPERSPINE] = OBJECT("superspine"),
	[TOPO_TOP_LINK_DEFAULTS] = OBJECT("link_defaults"),
	[TOPO_TOP_FABRIC] = OBJECT("fabric"),
	[TOPO_TOP_TRANSPORT] = OBJECT("transport"),
	[TOPO_TOP_NODES] = { "nodes", TOPO_VALUE_ARRAY, false, 0, TOPO_NODES_MAX, NULL },
	[TOPO_TOP_LINKS] = { "links", TOPO_VALUE_ARRAY, false, 0, TOPO_LINKS_MAX, NULL },
};

static const struct topo_key building_keys[TOPO_BUILDING_COUNT] = {
	[TOPO_BUILDING_NAME] = STRING("name"),
	[TOPO_BUILDING_SDSW] = INT("sdsw", 0, COUNT_MAX),
	[TOPO_BUILDING_ZONES] = { "zones", TOPO_VALUE_ARRAY, true, 1, ZONES_MAX, NULL },
	[TOPO_BUILDING_EDGE] = OBJECT("edge"),
};

static const struct topo_key zone_keys[TOPO_ZONE_COUNT] = {
	[TOPO_ZONE_NAME] = STRING("name"),
	[TOPO_ZONE_SCALING_UNITS] = COUNT("scaling_units", 1, 256),
	[TOPO_ZONE_RAILS] = COUNT("rails", 1, TOPO_RAILS_MAX),
	[TOPO_ZONE_HOSTS_PER_UNIT] = COUNT("hosts_per_unit", 1, TOPO_ETHERNET_PORTS_MAX),
	[TOPO_ZONE_FDSW] = COUNT("fdsw", 1, COUNT_MAX),
};

static const struct topo_key edge_keys[TOPO_POD_COUNT] = {
	[TOPO_POD_EDSW] = COUNT("edsw", 1, 256),
	[TOPO_POD_FDSW] = COUNT("fdsw", 1, COUNT_MAX),
};

static const struct topo_key superspine_keys[TOPO_SUPERSPINE_COUNT] = {
	[TOPO_SUPERSPINE_SWITCHES] = COUNT("switches", 1, 256),
	[TOPO_SUPERSPINE_PER_EDSW] = COUNT("per_edsw", 1, TOPO_ETHERNET_PORTS_MAX),
};

static const struct topo_key link_defaults_keys[TOPO_KINDS_COUNT] = {
	[TOPO_LINK_GPU] = OBJECT("gpu"),
	[TOPO_LINK_FABRIC] = OBJECT("fabric"),
	[TOPO_LINK_SPINE] = OBJECT("spine"),
	[TOPO_LINK_EDGE] = OBJECT("edge"),
};

#define SETTINGS                                                                                   \
	[TOPO_SETTING_RATE] = { "rate", TOPO_VALUE_RATE, false, TOPO_RATE_MIN, TOPO_RATE_MAX,      \
		NULL },                                                                            \
	[TOPO_SETTING_DELAY] = TIME("delay", DELAY_MAX),                                           \
	[TOPO_SETTING_JITTER] = TIME("jitter", DELAY_MAX),                                         \
	[TOPO_SETTING_LOSS] = { "loss", TOPO_VALUE_SHARE, false, 0, SHARE_MAX, NULL },             \
	[TOPO_SETTING_CORRUPT] = { "corrupt", TOPO_VALUE_SHARE, false, 0, SHARE_MAX, NULL },       \
	[TOPO_SETTING_QUEUE_BYTES] = BYTES("queue_bytes", 16384, QUEUE_MAX),                       \
	[TOPO_SETTING_ECN_MIN_BYTES] = BYTES("ecn_min_bytes", 0, QUEUE_MAX),                       \
	[TOPO_SETTING_ECN_MAX_BYTES] = BYTES("ecn_max_bytes", 0, QUEUE_MAX),                       \
	[TOPO_SETTING_MTU] = BYTES("mtu", MTU_MIN, MTU_MAX),                                       \
	[TOPO_SETTING_HYPERPORT] = { "hyperport", TOPO_VALUE_BOOL, false, 0, 1, NULL }

static const struct topo_key link_default_keys[TOPO_DEFAULTS_COUNT] = {
	SETTINGS,
	[TOPO_SETTING_PARALLEL] = INT("parallel", 1, TOPO_PORTS_PER_SWITCH),
};

static const struct topo_key link_keys[TOPO_LINK_COUNT] = {
	SETTINGS,
	[TOPO_LINK_A] = { "a", TOPO_VALUE_STRING, true, 0, 0, NULL },
	[TOPO_LINK_B] = { "b", TOPO_VALUE_STRING, true, 0, 0, NULL },
	[TOPO_LINK_KIND] = WORD("kind", kind_words),
	[TOPO_LINK_ADDRESS_A] = STRING("address_a"),
	[TOPO_LINK_ADDRESS_B] = STRING("address_b"),
	[TOPO_LINK_MAC_A] = STRING("mac_a"),
	[TOPO_LINK_MAC_B] = STRING("mac_b"),
	[TOPO_LINK_SYSTEM_PORT] = INT("system_port", 0, UINT32_MAX - 1),
	[TOPO_LINK_EXPECTED_A] = STRING("expected_a"),
	[TOPO_LINK_EXPECTED_B] = STRING("expected_b"),
};

static const struct topo_key fabric_keys[TOPO_FABRIC_COUNT] = {
	[TOPO_FABRIC_MODE] = WORD("mode", mode_words),
	[TOPO_FABRIC_CELL_BYTES] = BYTES("cell_bytes", CELL_MIN, 4096),
	[TOPO_FABRIC_CREDIT_BYTES] = BYTES("credit_bytes", 256, 65536),
	[TOPO_FABRIC_TRAIN_BYTES] = BYTES("train_bytes", 0, TOPO_TRAIN_BYTES_MAX),
	[TOPO_FABRIC_INPUT_BALANCED] = { "input_balanced", TOPO_VALUE_BOOL, false, 0, 1, NULL },
	[TOPO_FABRIC_DRAW] = WORD("draw", draw_words),
	[TOPO_FABRIC_VOQ_BYTES] = BYTES("voq_bytes", 16384, QUEUE_MAX),
	[TOPO_FABRIC_BUFFER_BYTES] = BYTES("buffer_bytes", 16384, QUEUE_MAX),
	[TOPO_FABRIC_ECN_MIN] = { "ecn_min", TOPO_VALUE_TIME_AUTO, false, 0, NS_PER_S, NULL },
	[TOPO_FABRIC_REACH_REFRESH] = { "reach_refresh", TOPO_VALUE_TIME, false, NS_PER_US,
		10 * NS_PER_S, NULL },
	[TOPO_FABRIC_REASSEMBLY_TIMEOUT] = { "reassembly_timeout", TOPO_VALUE_TIME, false,
		NS_PER_US, 10 * NS_PER_S, NULL },
	[TOPO_FABRIC_CREDIT_WATCHDOG] = { "credit_watchdog", TOPO_VALUE_TIME, false, NS_PER_US,
		10 * NS_PER_S, NULL },
	[TOPO_FABRIC_MIN_LINKS_TO_JOIN] = INT("min_links_to_join", 0, TOPO_PORTS_MAX),
	[TOPO_FABRIC_MIN_LINKS_TO_REMAIN] = INT("min_links_to_remain", 0, TOPO_PORTS_MAX),
	[TOPO_FABRIC_WEIGHTS] = OBJECT("weights"),
	[TOPO_FABRIC_ORDERS] = { "orders", TOPO_VALUE_ARRAY, false, 0, TOPO_NODES_MAX, NULL },
};

static const struct topo_key order_keys[TOPO_ORDER_COUNT] = {
	[TOPO_ORDER_NODE] = { "node", TOPO_VALUE_STRING, true, 0, 0, NULL },
	[TOPO_ORDER_PORTS] = { "ports", TOPO_VALUE_ARRAY, true, 0, TOPO_PORTS_MAX, NULL },
};

static const struct topo_key weights_keys[TOPO_WEIGHTS_COUNT] = {
	[TOPO_WEIGHTS_RDMA] = INT("rdma", 1, 255),
	[TOPO_WEIGHTS_DEFAULT] = INT("default", 1, 255),
};

static const struct topo_key transport_keys[TOPO_TRANSPORT_KEY_COUNT] = {
	[TOPO_TRANSPORT_KEY_NAME] = WORD("name", transport_words),
	[TOPO_TRANSPORT_KEY_PATHS] = INT("paths", 1, 256),
	[TOPO_TRANSPORT_KEY_PAYLOAD_BYTES] = BYTES("payload_bytes", 256, 8192),
};

static const struct topo_key node_keys[TOPO_NODE_COUNT] = {
	[TOPO_NODE_NAME] = { "name", TOPO_VALUE_STRING, true, 0, 0, NULL },
	[TOPO_NODE_ROLE] = WORD("role", role_words), /* left out: a template has made the node */
	[TOPO_NODE_BUILDING] = INT("building", 0, BUILDINGS_MAX - 1),
	[TOPO_NODE_PLANE] = INT("plane", 0, TOPO_PLANES_MAX - 1),
	[TOPO_NODE_CLUSTER] = INT("cluster", 0, ZONES_MAX),
	[TOPO_NODE_ADDRESS] = STRING("address"),
	[TOPO_NODE_ASN] = INT("asn", 1, UINT32_MAX - 1),
	[TOPO_NODE_SWITCH_INDEX] = INT("switch_index", 0, TOPO_SWITCHES_MAX - 1),
	[TOPO_NODE_COMMAND] = { "command", TOPO_VALUE_ARRAY, false, 1, TOPO_COMMAND_WORDS_MAX,
		NULL },
	[TOPO_NODE_FILES] = OBJECT("files"),
	[TOPO_NODE_BGP] = OBJECT("bgp"),
};

static const struct topo_key bgp_keys[TOPO_BGP_COUNT] = {
	[TOPO_BGP_ROUTER_ID] = STRING("router_id"),
	[TOPO_BGP_NEIGHBORS] = { "neighbors", TOPO_VALUE_ARRAY, false, 0, TOPO_BGP_NEIGHBORS_MAX,
		NULL },
	[TOPO_BGP_ORIGINATE] = { "originate", TOPO_VALUE_ARRAY, false, 0, TOPO_BGP_ORIGINS_MAX,
		NULL },
};

static const struct topo_key bgp_neighbor_keys[TOPO_BGP_NEIGHBOR_COUNT] = {
	[TOPO_BGP_NEIGHBOR_ADDRESS] = { "address", TOPO_VALUE_STRING, true, 0, 0, NULL },
	[TOPO_BGP_NEIGHBOR_ASN] = COUNT("asn", 1, UINT32_MAX - 1),
	[TOPO_BGP_NEIGHBOR_PASSIVE] = { "passive", TOPO_VALUE_BOOL, false, 0, 1, NULL },
	[TOPO_BGP_NEIGHBOR_HOLD] = TIME("hold", UINT16_MAX *NS_PER_S),
	[TOPO_BGP_NEIGHBOR_MD5] = STRING("md5"),
	[TOPO_BGP_NEIGHBOR_ADD_PATH] = WORD("add_path", add_path_words),
	[TOPO_BGP_NEIGHBOR_MAX_PATHS] = INT("max_paths", 1, TOPO_BGP_PATHS_MAX),
	[TOPO_BGP_NEIGHBOR_GRACEFUL_RESTART] = TIME("graceful_restart", RESTART_MAX),
	[TOPO_BGP_NEIGHBOR_NEXT_HOP_SELF] = { "next_hop_self", TOPO_VALUE_BOOL, false, 0, 1, NULL },
	[TOPO_BGP_NEIGHBOR_IMPORT] = { "import", TOPO_VALUE_ARRAY, false, 0, TOPO_BGP_RULES_MAX,
		NULL },
	[TOPO_BGP_NEIGHBOR_EXPORT] = { "export", TOPO_VALUE_ARRAY, false, 0, TOPO_BGP_RULES_MAX,
		NULL },
};

static const struct topo_key bgp_rule_keys[TOPO_BGP_RULE_COUNT] = {
	[TOPO_BGP_RULE_PREFIX] = { "prefix", TOPO_VALUE_STRING, true, 0, 0, NULL },
	[TOPO_BGP_RULE_GE] = INT("ge", 0, 128),
	[TOPO_BGP_RULE_LE] = INT("le", 0, 128),
	[TOPO_BGP_RULE_PERMIT] = { "permit", TOPO_VALUE_BOOL, false, 0, 1, NULL },
	[TOPO_BGP_RULE_LOCAL_PREF] = INT("local_pref", 0, UINT32_MAX),
	[TOPO_BGP_RULE_MED] = INT("med", 0, UINT32_MAX),
};

static const struct topo_key bgp_origin_keys[TOPO_BGP_ORIGIN_COUNT] = {
	[TOPO_BGP_ORIGIN_PREFIX] = { "prefix", TOPO_VALUE_STRING, true, 0, 0, NULL },
	[TOPO_BGP_ORIGIN_MIN_CONTRIBUTORS] = INT("min_contributors", 0, TOPO_BGP_PATHS_MAX),
};

TABLE(top, "top");
TABLE(building, "building");
TABLE(zone, "zone");
TABLE(edge, "edge");
TABLE(superspine, "superspine");
TABLE(link_defaults, "link_defaults");
TABLE(link_default, "link_default");
TABLE(fabric, "fabric");
TABLE(order, "order");
TABLE(weights, "weights");
TABLE(transport, "transport");
TABLE(node, "node");
TABLE(link, "link");
TABLE(bgp, "bgp");
TABLE(bgp_neighbor, "bgp_neighbor");
TABLE(bgp_rule, "bgp_rule");
TABLE(bgp_origin, "bgp_origin");

const struct topo_keys *const topo_keys_all[] = { &topo_keys_top, &topo_keys_building,
	&topo_keys_zone, &topo_keys_edge, &topo_keys_superspine, &topo_keys_link_defaults,
	&topo_keys_link_default, &topo_keys_fabric, &topo_keys_order, &topo_keys_weights,
	&topo_keys_transport, &topo_keys_node, &topo_keys_link, &topo_keys_bgp,
	&topo_keys_bgp_neighbor, &topo_keys_bgp_rule, &topo_keys_bgp_origin, NULL };
