#include "view/read.h"
#include <stdio.h>
#include <string.h>
#include "base/err.h"
#include "view/json.h"
#include "view/rows.h"

static bool flag(const cJSON *json, const char *key)
{
	return cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(json, key));
}

/* Number of a node's port; NODE_PORT_INBAND for others than the topology's. */
static uint32_t port_number(const struct topo *t, uint32_t node, const char *name)
{
	char full[TOPO_NODE_NAME_MAX + TOPO_PORT_NAME_MAX + 2];
	uint32_t port;

	if (strlen(name) > TOPO_PORT_NAME_MAX)
		return NODE_PORT_INBAND;
	snprintf(full, sizeof(full), "%s:%s", t->nodes[node].name, name);
	port = topo_find_port(t, full);
	return port == TOPO_NONE ? NODE_PORT_INBAND : t->ports[port].number;
}

static bool is_text(const cJSON *json, const char *key, const char *text)
{
	const char *value = view_json_text(json, key);

	return value != NULL && strcmp(value, text) == 0;
}

static int read_port(const struct topo *t, const cJSON *json, struct view_read *r)
{
	const char *name = view_json_text(json, "port");

	if (name == NULL)
		return -DSF_E_BADFIELD;
	r->row.port = (struct node_row_port){ .port = port_number(t, r->row.node, name),
		.carrier = flag(json, "carrier"),
		.live = flag(json, "live"),
		.isolated = flag(json, "isolated"),
		.active = is_text(json, "active_state", "active"),
		.drained = flag(json, "drained"),
		.peer_drained = flag(json, "peer_drained"),
		.frames_tx = view_json_u64(json, "frames_tx"),
		.bytes_tx = view_json_u64(json, "bytes_tx"),
		.cell_bytes_tx = view_json_u64(json, "cell_bytes_tx"),
		.cells_tx = view_json_u64(json, "cells_tx"),
		.cells_rx = view_json_u64(json, "cells_rx"),
		.lost_rx = view_json_u64(json, "lost_rx"),
		.stops_tx = view_json_u64(json, "stops_tx") };
	return 0;
}

static void read_counters(const cJSON *json, struct node_row_counters *c)
{
	*c = (struct node_row_counters){
		.cells_tx = view_json_u64(json, "cells_tx"),
		.cells_rx = view_json_u64(json, "cells_rx"),
		.cells_lost = view_json_u64(json, "cells_lost"),
		.reassembly_errors = view_json_u64(json, "reassembly_errors"),
		.fabric_link_down_dropped = view_json_u64(json, "fabric_link_down_dropped"),
		.fabric_unreachable_dropped = view_json_u64(json, "fabric_unreachable_dropped"),
		.fabric_drops = view_json_u64(json, "fabric_drops"),
		.voq_drops = view_json_u64(json, "voq_drops"),
		.watchdog_drops = view_json_u64(json, "watchdog_drops"),
		.impaired_drops = view_json_u64(json, "impaired_drops"),
		.corrupt_drops = view_json_u64(json, "corrupt_drops"),
		.egress_drops = view_json_u64(json, "egress_drops"),
	};
}

static int read_reachability(const struct topo *t, const cJSON *json, struct view_read *r)
{
	const char *destination = view_json_text(json, "destination");
	const cJSON *ports = cJSON_GetObjectItemCaseSensitive(json, "output"), *name;
	uint32_t node = destination == NULL ? TOPO_NONE : topo_find_node(t, destination);

	if (node == TOPO_NONE || !cJSON_IsArray(ports))
		return -DSF_E_BADFIELD;
	memset(r->output, 0, sizeof(r->output));
	cJSON_ArrayForEach(name, ports)
	{
		uint32_t number = cJSON_IsString(name)
					  ? port_number(t, r->row.node, name->valuestring)
					  : NODE_PORT_INBAND;

		if (number >= t->nodes[r->row.node].ports_count)
			return -DSF_E_BADFIELD;
		dsf_bitset_add(r->output, number);
	}
	r->row.reachability = (struct node_row_reachability){ .destination = node,
		.output = r->output,
		.cut_by_balance = flag(json, "cut_by_balance") };
	return 0;
}

int view_read_row(
	const struct topo *t, const cJSON *json, enum node_query query, struct view_read *r)
{
	const char *name = view_json_text(json, "node");

	r->row.query = query;
	r->row.node = name == NULL ? TOPO_NONE : topo_find_node(t, name);
	if (r->row.node == TOPO_NONE)
		return -DSF_E_BADFIELD;
	switch (query) {
	case NODE_QUERY_PORT: return read_port(t, json, r);
	case NODE_QUERY_COUNTERS: read_counters(json, &r->row.counters); return 0;
	case NODE_QUERY_REACHABILITY: return read_reachability(t, json, r);
	case NODE_QUERY_WORKLOAD: return view_rows_read_flow(json, &r->row.flow, &r->fct);
	case NODE_QUERY_BALANCE:
	case NODE_QUERY_VOQ:
	case NODE_QUERY_SYSTEM_PORT:
	case NODE_QUERY_NDP:
	case NODE_QUERY_FSDB_SESSION:
	case NODE_QUERY_FSDB:
	case NODE_QUERY_BGP_PEER:
	case NODE_QUERY_BGP_TABLE:
	case NODE_QUERY_ROUTE:
	case NODE_QUERY_NIC:
	case NODE_QUERY_PATHS:
	case NODE_QUERY_QP:
	case NODE_QUERY_READY: break;
	}
	return -DSF_E_UNSUPPORTED;
}
