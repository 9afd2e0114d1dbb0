#include "view/show.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/err.h"
#include "fabric/cell.h"
#include "view/json.h"
#include "view/table.h"

#define ARRAY_COUNT(a)      (sizeof(a) / sizeof(*(a)))
#define PORT_NAME_MAX       (TOPO_NODE_NAME_MAX + 1 + TOPO_PORT_NAME_MAX + 1)
#define COMMAND_WORDS_MAX   2u
#define COMMAND_COLUMNS_MAX 20u

/* Of each command: its words, the rows that are its result as they come (or what it makes of
 * several), and the columns of its table. JSON has more than fits a terminal. */
static const struct command {
	const char *words[COMMAND_WORDS_MAX];
	enum node_query query;
	struct view_table_column columns[COMMAND_COLUMNS_MAX];
} commands[] = {
	[VIEW_SHOW_FABRIC] = { { "fabric" }, NODE_QUERY_PORT,
		{ { "NODE", "node", 0 }, { "ROLE", "role", 0 }, { "STATE", "state", 0 },
			{ "PLANE", "plane", 0 }, { "CLUSTER", "cluster", 0 },
			{ "FABRIC PORTS", "fabric_ports", 0 }, { "LIVE", "fabric_ports_live", 0 },
			{ "ACTIVE", "fabric_ports_active", 0 },
			{ "ISOLATED", "fabric_ports_isolated", 0 },
			{ "MISCABLED", "fabric_ports_miscabled", 0 },
			{ "DESTINATIONS", "destinations", 0 },
			{ "REACHED", "destinations_reached", 0 },
			{ "CUT BY BALANCE", "cut_by_balance", 0 },
			{ "OVERDRAIN %", "overdrain_percent", 0 } } },
	[VIEW_SHOW_REACHABILITY] = { { "fabric", "reachability" }, NODE_QUERY_REACHABILITY,
		{ { "NODE", "node", 0 }, { "DESTINATION", "destination", 0 },
			{ "CUT BY BALANCE", "cut_by_balance", 0 }, { "OUTPUT", "output", 0 },
			{ "ADVERTISED", "advertised", 0 }, { "WITHDRAWN", "withdrawn", 0 } } },
	[VIEW_SHOW_BALANCE] = { { "fabric", "inputbalance" }, NODE_QUERY_BALANCE,
		{ { "NODE", "node", 0 }, { "DESTINATION", "destination", 0 },
			{ "GROUP", "group", 0 }, { "INPUT", "input", 0 }, { "OUTPUT", "output", 0 },
			{ "ALLOWED", "allowed", 0 }, { "BALANCED", "balanced", 0 } } },
	[VIEW_SHOW_TOPOLOGY] = { { "fabric", "topology" }, NODE_QUERY_PORT,
		{ { "A", "a", 0 }, { "B", "b", 0 }, { "KIND", "kind", 0 },
			{ "RATE", "rate_bps", VIEW_TABLE_RATE },
			{ "DELAY", "delay_ns", VIEW_TABLE_TIME }, { "STATE", "state", 0 },
			{ "A EXPECTS", "a_expected", 0 }, { "A HEARS", "a_actual", 0 },
			{ "B EXPECTS", "b_expected", 0 }, { "B HEARS", "b_actual", 0 },
			{ "MATCH", "match", 0 } } },
	[VIEW_SHOW_SYSTEM_PORT] = { { "systemport" }, NODE_QUERY_SYSTEM_PORT,
		{ { "NODE", "node", 0 }, { "SYSTEM PORT", "system_port", 0 }, { "PORT", "port", 0 },
			{ "RATE", "rate_bps", VIEW_TABLE_RATE }, { "SCOPE", "scope", 0 },
			{ "STATE", "state", 0 }, { "LIVENESS", "liveness", 0 } } },
	[VIEW_SHOW_VOQ] = { { "voq" }, NODE_QUERY_VOQ,
		{ { "NODE", "node", 0 }, { "SYSTEM PORT", "system_port", 0 },
			{ "CLASS", "class", 0 }, { "PACKETS", "packets", 0 },
			{ "BYTES", "bytes", 0 }, { "REQUESTED", "credits_requested", 0 },
			{ "GRANTED", "credits_granted", 0 }, { "SENT", "sent_packets", 0 },
			{ "DROPPED", "dropped", 0 }, { "MARKED", "ecn_marked", 0 } } },
	[VIEW_SHOW_NDP] = { { "ndp" }, NODE_QUERY_NDP,
		{ { "NODE", "node", 0 }, { "ADDRESS", "address", 0 }, { "MAC", "mac", 0 },
			{ "SYSTEM PORT", "system_port", 0 }, { "SWITCH", "switch", 0 },
			{ "STATE", "state", 0 }, { "SCOPE", "scope", 0 } } },
	[VIEW_SHOW_SUBSCRIPTION] = { { "dsf", "subscription" }, NODE_QUERY_FSDB_SESSION,
		{ { "NODE", "node", 0 }, { "PEER", "peer", 0 }, { "STATE", "state", 0 },
			{ "LIVENESS", "liveness", 0 },
			{ "ESTABLISHED AT", "established_at_ns", VIEW_TABLE_TIME },
			{ "FLAPS", "flaps", 0 }, { "REJECTED", "rejected", 0 },
			{ "RECORDS", "records", 0 } } },
	[VIEW_SHOW_FSDB] = { { "fsdb" }, NODE_QUERY_FSDB,
		{ { "NODE", "node", 0 }, { "PUBLISHER", "publisher", 0 }, { "KIND", "kind", 0 },
			{ "SYSTEM PORT", "system_port", 0 }, { "ADDRESS", "address", 0 },
			{ "MAC", "mac", 0 }, { "STATE", "state", 0 },
			{ "LIVENESS", "liveness", 0 } } },
	[VIEW_SHOW_BGP_SUMMARY] = { { "bgp", "summary" }, NODE_QUERY_BGP_PEER,
		{ { "NODE", "node", 0 }, { "PEER", "peer", 0 }, { "PEER NODE", "peer_node", 0 },
			{ "AS", "asn", 0 }, { "STATE", "state", 0 }, { "RECEIVED", "received", 0 },
			{ "SENT", "sent", 0 } } },
	[VIEW_SHOW_BGP_NEIGHBORS] = { { "bgp", "neighbors" }, NODE_QUERY_BGP_PEER,
		{ { "NODE", "node", 0 }, { "PEER", "peer", 0 }, { "PEER NODE", "peer_node", 0 },
			{ "LOCAL", "local", 0 }, { "AS", "asn", 0 }, { "TYPE", "type", 0 },
			{ "STATE", "state", 0 },
			{ "ESTABLISHED AT", "established_at_ns", VIEW_TABLE_TIME },
			{ "TIMES", "established_times", 0 }, { "HOLD S", "hold_s", 0 },
			{ "ADD-PATH RX", "add_path_receive", 0 },
			{ "ADD-PATH TX", "add_path_send", 0 }, { "MD5", "md5", 0 },
			{ "STALE", "stale", 0 }, { "ERROR SENT", "error_sent", 0 },
			{ "ERROR RECEIVED", "error_received", 0 },
			{ "TEXT", "text_received", 0 } } },
	[VIEW_SHOW_BGP_TABLE] = { { "bgp", "table" }, NODE_QUERY_BGP_TABLE,
		{ { "NODE", "node", 0 }, { "PREFIX", "prefix", 0 }, { "NEXT HOP", "next_hop", 0 },
			{ "PATH ID", "path_id", 0 }, { "AS PATH", "as_path", 0 },
			{ "BEST", "best", 0 }, { "MULTIPATH", "multipath", 0 },
			{ "FROM", "peer_node", 0 }, { "LOCAL PREF", "local_pref", 0 },
			{ "MED", "med", 0 } } },
	[VIEW_SHOW_ROUTE] = { { "route" }, NODE_QUERY_ROUTE,
		{ { "NODE", "node", 0 }, { "PREFIX", "prefix", 0 }, { "ORIGIN", "origin", 0 },
			{ "SYSTEM PORT", "system_port", 0 }, { "PORT", "port", 0 },
			{ "HOPS", "hops", 0 }, { "USABLE", "usable", 0 },
			{ "NEXT HOPS", "next_hops", VIEW_TABLE_FEW } } },
	[VIEW_SHOW_PORT] = { { "port" }, NODE_QUERY_PORT,
		{ { "NODE", "node", 0 }, { "PORT", "port", 0 }, { "PEER", "peer", 0 },
			{ "HYPERPORT", "hyperport", 0 }, { "BYTES TX", "bytes_tx", 0 },
			{ "BYTES RX", "bytes_rx", 0 }, { "ADMIN", "admin_state", 0 },
			{ "CARRIER", "carrier", 0 }, { "LIVE", "live", 0 },
			{ "ISOLATED", "isolated", 0 }, { "ACTIVE", "active_state", 0 },
			{ "DRAINED", "drained", 0 }, { "PEER DRAINED", "peer_drained", 0 },
			{ "RATE", "rate_bps", VIEW_TABLE_RATE }, { "CELLS TX", "cells_tx", 0 },
			{ "CELLS RX", "cells_rx", 0 }, { "DROPPED TX", "dropped_tx", 0 },
			{ "LOST RX", "lost_rx", 0 }, { "IMPAIRED", "impairment", 0 } } },
	[VIEW_SHOW_COUNTERS] = { { "counters" }, NODE_QUERY_COUNTERS,
		{ { "NODE", "node", 0 }, { "PACKETS RX", "packets_rx", 0 },
			{ "PACKETS TX", "packets_tx", 0 }, { "CELLS RX", "cells_rx", 0 },
			{ "CELLS TX", "cells_tx", 0 }, { "LOST", "cells_lost", 0 },
			{ "REASM ERRORS", "reassembly_errors", 0 },
			{ "FABRIC DROPS", "fabric_drops", 0 }, { "VOQ DROPS", "voq_drops", 0 },
			{ "EGRESS DROPS", "egress_drops", 0 }, { "NIC DROPS", "nic_drops", 0 },
			{ "ECN MARKS", "ecn_marks", 0 },
			{ "EMULATOR DROPS", "emulator_drops", 0 } } },
	[VIEW_SHOW_NIC] = { { "nic" }, NODE_QUERY_NIC,
		{ { "NODE", "node", 0 }, { "NIC", "nic", 0 }, { "PORTS", "ports", 0 },
			{ "UP", "ports_up", 0 }, { "CONNECTIONS", "connections", 0 },
			{ "PACKETS TX", "packets_tx", 0 }, { "PACKETS RX", "packets_rx", 0 },
			{ "BYTES TX", "bytes_tx", 0 }, { "BYTES RX", "bytes_rx", 0 },
			{ "RETRANSMITS", "retransmits", 0 }, { "DUPLICATES", "duplicates", 0 } } },
	[VIEW_SHOW_PATHS] = { { "paths" }, NODE_QUERY_PATHS,
		{ { "NODE", "node", 0 }, { "NIC", "nic", 0 }, { "CONNECTION", "connection", 0 },
			{ "PATH", "path", 0 }, { "PLANE", "plane", 0 },
			{ "UDP PORT", "udp_source_port", 0 }, { "STATE", "state", 0 },
			{ "RTT", "rtt_ns", VIEW_TABLE_TIME }, { "CWND", "cwnd_bytes", 0 },
			{ "ECN", "ecn_fraction", 0 }, { "BYTES", "bytes", 0 },
			{ "RETRANSMITS", "retransmits", 0 } } },
	[VIEW_SHOW_QP] = { { "qp" }, NODE_QUERY_QP,
		{ { "NODE", "node", 0 }, { "NIC", "nic", 0 }, { "CONNECTION", "connection", 0 },
			{ "QP", "qp", 0 }, { "SENT", "messages_sent", 0 },
			{ "DONE", "messages_done", 0 }, { "BYTES SENT", "bytes_sent", 0 },
			{ "BYTES RECEIVED", "bytes_received", 0 } } },
};

static int find_node(
	const struct topo *t, const char *name, uint32_t *node, char why[VIEW_SHOW_WHY_MAX])
{
	*node = topo_find_node(t, name);
	if (*node != TOPO_NONE)
		return 0;
	snprintf(why, VIEW_SHOW_WHY_MAX, "no node %.*s in lab %s", TOPO_NODE_NAME_MAX, name,
		t->name);
	return -DSF_E_UNKNOWN;
}

static int find_destination(
	const struct topo *t, const char *name, uint32_t *node, char why[VIEW_SHOW_WHY_MAX])
{
	int err = find_node(t, name, node, why);

	if (err < 0 || topo_is_interface_node(t->nodes[*node].role))
		return err;
	snprintf(why, VIEW_SHOW_WHY_MAX,
		"%.64s is no destination of cells, only RDSWs and EDSWs are", name);
	return -DSF_E_UNKNOWN;
}

/* The command with the most words of which all are there, in order. */
static const struct command *find_command(const char *const *words, size_t count, size_t *taken)
{
	const struct command *best = NULL;

	*taken = 0;
	for (size_t i = 0; i < ARRAY_COUNT(commands); i++) {
		size_t have = 0;

		while (have < COMMAND_WORDS_MAX && commands[i].words[have] != NULL &&
			have < count && strcmp(words[have], commands[i].words[have]) == 0)
			have++;
		if ((have == COMMAND_WORDS_MAX || commands[i].words[have] == NULL) &&
			have > *taken) {
			best = &commands[i];
			*taken = have;
		}
	}
	return best;
}

/* And what begins with that word. */
static void say_unknown(const char *word, char why[VIEW_SHOW_WHY_MAX])
{
	int size = snprintf(why, VIEW_SHOW_WHY_MAX, "nothing to show is called %.64s", word);
	const char *before = " alone, but ";

	for (size_t i = 0; i < ARRAY_COUNT(commands) && size < VIEW_SHOW_WHY_MAX; i++) {
		if (strcmp(commands[i].words[0], word) != 0)
			continue;
		size += snprintf(why + size, VIEW_SHOW_WHY_MAX - (size_t)size, "%s%s", before,
			view_show_name((enum view_show_what)i));
		before = ", ";
	}
}

int view_show_parse(const struct topo *t, const char *const *words, size_t count,
	struct view_show *show, char why[VIEW_SHOW_WHY_MAX])
{
	const char *plain[COMMAND_WORDS_MAX + 1];
	const struct command *command;
	size_t plain_count = 0, taken;

	*show = (struct view_show){ .node = TOPO_NONE, .destination = TOPO_NONE };
	for (size_t i = 0; i < count; i++) {
		const char *name = NULL;

		if (strcmp(words[i], "--node") == 0)
			name = i + 1 < count ? words[++i] : "";
		else if (strncmp(words[i], "--node=", 7) == 0)
			name = words[i] + 7;
		if (name != NULL && find_node(t, name, &show->node, why) < 0)
			return -DSF_E_UNKNOWN;
		if (name != NULL)
			continue;
		if (plain_count == ARRAY_COUNT(plain)) {
			snprintf(why, VIEW_SHOW_WHY_MAX, "too many words at %.64s", words[i]);
			return -DSF_E_UNKNOWN;
		}
		plain[plain_count++] = words[i];
	}
	command = find_command(plain, plain_count, &taken);
	if (command == NULL) {
		say_unknown(plain_count > 0 ? plain[0] : "\"\"", why);
		return -DSF_E_UNKNOWN;
	}
	show->what = (enum view_show_what)(command - commands);
	if (taken == plain_count)
		return 0;
	if ((show->what == VIEW_SHOW_REACHABILITY || show->what == VIEW_SHOW_BALANCE) &&
		plain_count == taken + 1)
		return find_destination(t, plain[taken], &show->destination, why);
	snprintf(why, VIEW_SHOW_WHY_MAX, "%.64s has no part %.64s", view_show_name(show->what),
		plain[taken]);
	return -DSF_E_UNKNOWN;
}

const char *view_show_name(enum view_show_what what)
{
	switch (what) {
	case VIEW_SHOW_REACHABILITY: return "fabric reachability";
	case VIEW_SHOW_BALANCE: return "fabric inputbalance";
	case VIEW_SHOW_TOPOLOGY: return "fabric topology";
	case VIEW_SHOW_SUBSCRIPTION: return "dsf subscription";
	case VIEW_SHOW_BGP_SUMMARY: return "bgp summary";
	case VIEW_SHOW_BGP_NEIGHBORS: return "bgp neighbors";
	case VIEW_SHOW_BGP_TABLE: return "bgp table";
	case VIEW_SHOW_FABRIC:
	case VIEW_SHOW_SYSTEM_PORT:
	case VIEW_SHOW_VOQ:
	case VIEW_SHOW_NDP:
	case VIEW_SHOW_FSDB:
	case VIEW_SHOW_ROUTE:
	case VIEW_SHOW_PORT:
	case VIEW_SHOW_COUNTERS:
	case VIEW_SHOW_NIC:
	case VIEW_SHOW_PATHS:
	case VIEW_SHOW_QP: break;
	}
	return commands[what].words[0];
}

/* Leaves the rows whose destination it is. */
static void keep_destination(cJSON *rows, const char *destination)
{
	cJSON *row = rows->child, *next;

	for (; row != NULL; row = next) {
		const char *name = view_json_text(row, "destination");

		next = row->next;
		if (name == NULL || strcmp(name, destination) != 0)
			cJSON_Delete(cJSON_DetachItemViaPointer(rows, row));
	}
}

struct voq_order {
	cJSON *row;
	uint32_t node;
	uint64_t system_port;
	const char *class;
};

static int compare_voqs(const void *left, const void *right)
{
	const struct voq_order *a = left, *b = right;

	if (a->node != b->node)
		return a->node < b->node ? -1 : 1;
	if (a->system_port != b->system_port)
		return a->system_port < b->system_port ? -1 : 1;
	return strcmp(a->class, b->class);
}

/* By node, port and class: nodes give them as their table has them. False: no memory. */
static bool sort_voqs(const struct topo *t, cJSON *rows)
{
	size_t count = (size_t)cJSON_GetArraySize(rows);
	struct voq_order *all = calloc(count + 1, sizeof(*all));

	if (all == NULL)
		return false;
	for (size_t i = 0; i < count; i++) {
		cJSON *row = cJSON_DetachItemViaPointer(rows, rows->child);
		const char *node = view_json_text(row, "node"),
			   *class = view_json_text(row, "class");

		all[i] = (struct voq_order){ .row = row,
			.node = node != NULL ? topo_find_node(t, node) : TOPO_NONE,
			.system_port = view_json_u64(row, "system_port"),
			.class = class != NULL ? class : "" };
	}
	qsort(all, count, sizeof(*all), compare_voqs);
	for (size_t i = 0; i < count; i++)
		cJSON_AddItemToArray(rows, all[i].row);
	free(all);
	return true;
}

/* What `show fabric` says of one switch. */
struct summary {
	const char *state;
	uint32_t ports, live, active, isolated, miscabled, destinations, reached, cut;
	uint64_t ethernet_bps,
		fabric_bps; /* of Ethernet ports that are up and fabric links that are active */
	bool seen;
};

static struct summary *summary_of(const struct topo *t, struct summary *all, const cJSON *row)
{
	const char *name = view_json_text(row, "node");
	uint32_t node = name != NULL ? topo_find_node(t, name) : TOPO_NONE;

	return node == TOPO_NONE ? NULL : &all[node];
}

static bool is_true(const cJSON *row, const char *key)
{
	return cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(row, key));
}

static bool is_text(const cJSON *row, const char *key, const char *text)
{
	const char *value = view_json_text(row, key);

	return value != NULL && strcmp(value, text) == 0;
}

static bool is_kind(const cJSON *row, enum topo_link_kind kind)
{
	const char *text = view_json_text(row, "kind");

	return text != NULL && strcmp(text, topo_link_kind_name(kind)) == 0;
}

/* An unlimited port counts as the fastest that there can be. */
static uint64_t rate_of(const cJSON *row)
{
	uint64_t rate_bps = view_json_u64(row, "rate_bps");

	return rate_bps == 0 ? TOPO_RATE_MAX : rate_bps;
}

static void sum_ports(const struct topo *t, struct summary *all, const cJSON *rows)
{
	const cJSON *row;

	cJSON_ArrayForEach(row, rows)
	{
		struct summary *s = summary_of(t, all, row);
		bool live = is_true(row, "live"), active = is_text(row, "active_state", "active");

		if (s == NULL || view_json_text(row, "kind") == NULL)
			continue;
		s->seen = true;
		if (live && (is_kind(row, TOPO_LINK_GPU) || is_kind(row, TOPO_LINK_EDGE)))
			s->ethernet_bps += rate_of(row);
		if (!is_kind(row, TOPO_LINK_FABRIC) && !is_kind(row, TOPO_LINK_SPINE))
			continue;
		s->ports++;
		s->state = view_json_text(row, "switch_state");
		s->live += live;
		s->active += active;
		s->isolated += is_true(row, "isolated");
		s->miscabled += !is_text(row, "cabling", "ok");
		s->fabric_bps += active ? rate_of(row) : 0;
	}
}

/* How much of what the Ethernet ports can take in has no way out into the fabric; the published
 * formula, rounded up. The published overhead is 1.06 (J3) for cells of 512 B with 32 B of header;
 * ours is what a cell of this lab carries, 512/480 = 1.067 by default: as credits reckon with. */
static uint64_t overdrain_percent(const struct topo *t, const struct summary *s)
{
	uint64_t cell = t->fabric.cell_bytes, payload = cell - FABRIC_CELL_HEADER;
	unsigned __int128 needed = (unsigned __int128)s->ethernet_bps * cell;
	unsigned __int128 there = (unsigned __int128)s->fabric_bps * payload;
	unsigned __int128 whole = (unsigned __int128)s->ethernet_bps * payload;
	uint64_t percent;

	if (needed <= there)
		return 0;
	percent = (uint64_t)(((needed - there) * 100 + whole - 1) / whole);
	return percent > 100 ? 100 : percent; /* all, though headers had no way either */
}

static void sum_destinations(const struct topo *t, struct summary *all, const cJSON *rows)
{
	const cJSON *row;

	cJSON_ArrayForEach(row, rows)
	{
		const cJSON *output = cJSON_GetObjectItemCaseSensitive(row, "output");
		const char *destination = view_json_text(row, "destination");
		struct summary *s = summary_of(t, all, row);

		/* A node's row about itself has no output: it is there. */
		if (s == NULL || destination == NULL ||
			strcmp(destination, view_json_text(row, "node")) == 0)
			continue;
		s->destinations++;
		s->reached += output != NULL && output->child != NULL;
		s->cut += is_true(row, "cut_by_balance");
	}
}

static bool add_optional(cJSON *o, const char *key, uint32_t value)
{
	return value == TOPO_NONE ? view_json_add_text(o, key, NULL)
				  : view_json_add_u64(o, key, value);
}

static cJSON *summary_row(const struct topo *t, const struct topo_node *n, const struct summary *s)
{
	cJSON *o = cJSON_CreateObject();

	if (o != NULL && view_json_add_text(o, "node", n->name) &&
		view_json_add_text(o, "role", topo_role_name(n->role)) &&
		add_optional(o, "plane", n->plane) && add_optional(o, "cluster", n->cluster) &&
		view_json_add_u64(o, "fabric_ports", s->ports) &&
		view_json_add_text(o, "state", s->state) &&
		view_json_add_u64(o, "fabric_ports_live", s->live) &&
		view_json_add_u64(o, "fabric_ports_active", s->active) &&
		view_json_add_u64(o, "fabric_ports_isolated", s->isolated) &&
		view_json_add_u64(o, "fabric_ports_miscabled", s->miscabled) &&
		view_json_add_u64(o, "destinations", s->destinations) &&
		view_json_add_u64(o, "destinations_reached", s->reached) &&
		view_json_add_u64(o, "cut_by_balance", s->cut) &&
		view_json_add_u64(o, "overdrain_percent", overdrain_percent(t, s)))
		return o;
	cJSON_Delete(o);
	return NULL;
}

static cJSON *run_fabric(
	const struct view_show *show, const struct topo *t, const struct view_show_source *source)
{
	struct summary *all = calloc(t->nodes_count, sizeof(*all));
	cJSON *ports = source->rows(source->user, NODE_QUERY_PORT, show->node);
	cJSON *reach = ports == NULL
			       ? NULL
			       : source->rows(source->user, NODE_QUERY_REACHABILITY, show->node);
	cJSON *result = all == NULL || reach == NULL ? NULL : cJSON_CreateArray();

	if (result != NULL) {
		sum_ports(t, all, ports);
		sum_destinations(t, all, reach);
	}
	for (uint32_t i = 0; result != NULL && i < t->nodes_count; i++) {
		if (!all[i].seen || t->nodes[i].switch_index == TOPO_NONE)
			continue;
		if (!view_json_append(result, summary_row(t, &t->nodes[i], &all[i]))) {
			cJSON_Delete(result);
			result = NULL;
		}
	}
	cJSON_Delete(ports);
	cJSON_Delete(reach);
	free(all);
	return result;
}

/* The port rows by index of the port in the topology; NULL where a node gave none. */
static const cJSON **index_ports(const struct topo *t, const cJSON *rows)
{
	const cJSON **by_port = calloc(t->ports_count + 1u, sizeof(*by_port)), *row;

	if (by_port == NULL)
		return NULL;
	cJSON_ArrayForEach(row, rows)
	{
		const char *node = view_json_text(row, "node"), *port = view_json_text(row, "port");
		char name[PORT_NAME_MAX];
		uint32_t index;

		if (node == NULL || port == NULL)
			continue;
		snprintf(name, sizeof(name), "%s:%s", node, port);
		index = topo_find_port(t, name);
		if (index != TOPO_NONE)
			by_port[index] = row;
	}
	return by_port;
}

/* What both ends think of a link; an end that says nothing is a dead node's, or external. */
static const char *link_state(const cJSON *a, const cJSON *b)
{
	if ((a != NULL && !is_true(a, "carrier")) || (b != NULL && !is_true(b, "carrier")))
		return "down";
	if (a == NULL && b == NULL)
		return "unknown";
	if ((a != NULL && is_true(a, "isolated")) || (b != NULL && is_true(b, "isolated")))
		return "isolated";
	if ((a != NULL && !is_true(a, "live")) || (b != NULL && !is_true(b, "live")))
		return "silent";
	if ((a != NULL && !is_text(a, "active_state", "active")) ||
		(b != NULL && !is_text(b, "active_state", "active")))
		return "drained";
	return "up";
}

/* What an end of a cell link expects and hears; nothing where its node gave no row. */
static bool add_end(cJSON *o, const char *expected, const char *actual, const cJSON *row)
{
	return view_json_add_text(
		       o, expected, row != NULL ? view_json_text(row, "expected") : NULL) &&
	       view_json_add_text(o, actual, row != NULL ? view_json_text(row, "neighbor") : NULL);
}

static bool add_cabling(
	cJSON *o, const struct topo *t, const struct topo_link *link, const cJSON **by_port)
{
	const cJSON *a = by_port[link->port_a], *b = by_port[link->port_b];
	bool match = (a == NULL || is_text(a, "cabling", "ok")) &&
		     (b == NULL || is_text(b, "cabling", "ok"));

	if (!add_end(o, "a_expected", "a_actual", a) || !add_end(o, "b_expected", "b_actual", b))
		return false;
	if (t->ports[link->port_a].ethernet || (a == NULL && b == NULL))
		return view_json_add_text(o, "match", NULL);
	return view_json_add_bool(o, "match", match);
}

static cJSON *link_row(const struct topo *t, const struct topo_link *link, const cJSON **by_port)
{
	const char *state =
		link->loop ? "loop" : link_state(by_port[link->port_a], by_port[link->port_b]);
	const struct topo_port *a = &t->ports[link->port_a], *b = &t->ports[link->port_b];
	char name_a[PORT_NAME_MAX], name_b[PORT_NAME_MAX];
	cJSON *o = cJSON_CreateObject();

	snprintf(name_a, sizeof(name_a), "%s:%s", t->nodes[a->node].name, a->name);
	snprintf(name_b, sizeof(name_b), "%s:%s", t->nodes[b->node].name, b->name);
	if (o != NULL && view_json_add_text(o, "a", name_a) && view_json_add_text(o, "b", name_b) &&
		view_json_add_text(o, "kind", topo_link_kind_name(link->kind)) &&
		view_json_add_u64(o, "rate_bps", link->rate_bps) &&
		view_json_add_u64(o, "delay_ns", link->delay_ns) &&
		view_json_add_text(o, "state", state) && add_cabling(o, t, link, by_port))
		return o;
	cJSON_Delete(o);
	return NULL;
}

static cJSON *run_topology(
	const struct view_show *show, const struct topo *t, const struct view_show_source *source)
{
	cJSON *ports = source->rows(source->user, NODE_QUERY_PORT, TOPO_NONE);
	const cJSON **by_port = ports != NULL ? index_ports(t, ports) : NULL;
	cJSON *result = by_port != NULL ? cJSON_CreateArray() : NULL;

	for (uint32_t i = 0; result != NULL && i < t->links_count; i++) {
		const struct topo_link *link = &t->links[i];

		if (show->node != TOPO_NONE && t->ports[link->port_a].node != show->node &&
			t->ports[link->port_b].node != show->node)
			continue;
		if (!view_json_append(result, link_row(t, link, by_port))) {
			cJSON_Delete(result);
			result = NULL;
		}
	}
	free(by_port);
	cJSON_Delete(ports);
	return result;
}

cJSON *view_show_run(
	const struct view_show *show, const struct topo *t, const struct view_show_source *source)
{
	cJSON *rows;

	if (show->what == VIEW_SHOW_FABRIC)
		return run_fabric(show, t, source);
	if (show->what == VIEW_SHOW_TOPOLOGY)
		return run_topology(show, t, source);
	rows = source->rows(source->user, commands[show->what].query, show->node);
	if (rows != NULL && show->destination != TOPO_NONE)
		keep_destination(rows, t->nodes[show->destination].name);
	if (rows != NULL && show->what == VIEW_SHOW_VOQ && !sort_voqs(t, rows)) {
		cJSON_Delete(rows);
		return NULL;
	}
	return rows;
}

char *view_show_text(const struct view_show *show, const cJSON *result)
{
	const struct command *command = &commands[show->what];
	size_t columns = 0;

	while (columns < COMMAND_COLUMNS_MAX && command->columns[columns].title != NULL)
		columns++;
	return view_table_text(result, command->columns, columns);
}
