/*
 * keys.h - every key of a topology file: its type, its bounds, and the order of its slots
 *
 * The JSON Schema (topologies/dsfemu.schema.json) lists the same keys; a test compares the two.
 */
#ifndef DSF_TOPO_KEYS_H
#define DSF_TOPO_KEYS_H
#include "topo/value.h"

enum topo_top_key {
	TOPO_TOP_NAME,
	TOPO_TOP_SEED,
	TOPO_TOP_TIME_DILATION,
	TOPO_TOP_PLANES,
	TOPO_TOP_BUILDINGS,
	TOPO_TOP_SUPERSPINE,
	TOPO_TOP_LINK_DEFAULTS,
	TOPO_TOP_FABRIC,
	TOPO_TOP_TRANSPORT,
	TOPO_TOP_NODES,
	TOPO_TOP_LINKS,
	TOPO_TOP_COUNT
};

enum topo_building_key {
	TOPO_BUILDING_NAME,
	TOPO_BUILDING_SDSW,
	TOPO_BUILDING_ZONES,
	TOPO_BUILDING_EDGE,
	TOPO_BUILDING_COUNT
};

enum topo_zone_key {
	TOPO_ZONE_NAME,
	TOPO_ZONE_SCALING_UNITS,
	TOPO_ZONE_RAILS,
	TOPO_ZONE_HOSTS_PER_UNIT,
	TOPO_ZONE_FDSW,
	TOPO_ZONE_COUNT
};

enum topo_pod_key { TOPO_POD_EDSW, TOPO_POD_FDSW, TOPO_POD_COUNT };

enum topo_superspine_key {
	TOPO_SUPERSPINE_SWITCHES,
	TOPO_SUPERSPINE_PER_EDSW,
	TOPO_SUPERSPINE_COUNT
};

enum topo_fabric_key {
	TOPO_FABRIC_MODE,
	TOPO_FABRIC_CELL_BYTES,
	TOPO_FABRIC_CREDIT_BYTES,
	TOPO_FABRIC_TRAIN_BYTES,
	TOPO_FABRIC_INPUT_BALANCED,
	TOPO_FABRIC_DRAW,
	TOPO_FABRIC_VOQ_BYTES,
	TOPO_FABRIC_BUFFER_BYTES,
	TOPO_FABRIC_ECN_MIN,
	TOPO_FABRIC_REACH_REFRESH,
	TOPO_FABRIC_REASSEMBLY_TIMEOUT,
	TOPO_FABRIC_CREDIT_WATCHDOG,
	TOPO_FABRIC_MIN_LINKS_TO_JOIN,
	TOPO_FABRIC_MIN_LINKS_TO_REMAIN,
	TOPO_FABRIC_WEIGHTS,
	TOPO_FABRIC_ORDERS,
	TOPO_FABRIC_COUNT
};

enum topo_order_key { TOPO_ORDER_NODE, TOPO_ORDER_PORTS, TOPO_ORDER_COUNT };

enum topo_weights_key { TOPO_WEIGHTS_RDMA, TOPO_WEIGHTS_DEFAULT, TOPO_WEIGHTS_COUNT };

enum topo_transport_key {
	TOPO_TRANSPORT_KEY_NAME,
	TOPO_TRANSPORT_KEY_PATHS,
	TOPO_TRANSPORT_KEY_PAYLOAD_BYTES,
	TOPO_TRANSPORT_KEY_COUNT
};

/* Settings that a link and link_defaults share, in both tables the first. */
enum topo_setting_key {
	TOPO_SETTING_RATE,
	TOPO_SETTING_DELAY,
	TOPO_SETTING_JITTER,
	TOPO_SETTING_LOSS,
	TOPO_SETTING_CORRUPT,
	TOPO_SETTING_QUEUE_BYTES,
	TOPO_SETTING_ECN_MIN_BYTES,
	TOPO_SETTING_ECN_MAX_BYTES,
	TOPO_SETTING_MTU,
	TOPO_SETTING_HYPERPORT,
	TOPO_SETTING_COUNT,
	/* link_defaults only */
	TOPO_SETTING_PARALLEL = TOPO_SETTING_COUNT,
	TOPO_DEFAULTS_COUNT
};

enum topo_link_key {
	TOPO_LINK_A = TOPO_SETTING_COUNT,
	TOPO_LINK_B,
	TOPO_LINK_KIND,
	TOPO_LINK_ADDRESS_A,
	TOPO_LINK_ADDRESS_B,
	TOPO_LINK_MAC_A,
	TOPO_LINK_MAC_B,
	TOPO_LINK_SYSTEM_PORT,
	TOPO_LINK_EXPECTED_A,
	TOPO_LINK_EXPECTED_B,
	TOPO_LINK_COUNT
};

enum topo_node_key {
	TOPO_NODE_NAME,
	TOPO_NODE_ROLE,
	TOPO_NODE_BUILDING,
	TOPO_NODE_PLANE,
	TOPO_NODE_CLUSTER,
	TOPO_NODE_ADDRESS,
	TOPO_NODE_ASN,
	TOPO_NODE_SWITCH_INDEX,
	TOPO_NODE_COUNT
};

/* link_defaults has TOPO_KINDS_COUNT keys, in the order of enum topo_link_kind. */

extern const struct topo_keys topo_keys_top, topo_keys_building, topo_keys_zone, topo_keys_edge,
	topo_keys_superspine, topo_keys_link_defaults, topo_keys_link_default, topo_keys_fabric,
	topo_keys_order, topo_keys_weights, topo_keys_transport, topo_keys_node, topo_keys_link;

/* All of them, ended by NULL, for the test that compares them with the schema. */
extern const struct topo_keys *const topo_keys_all[];

#endif
