#include "view/rows.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/bitset.h"
#include "base/err.h"
#include "fabric/cell.h"
#include "view/json.h"

#define PORT_NAME_MAX  (TOPO_NODE_NAME_MAX + 1 + TOPO_PORT_NAME_MAX + 1)
#define NIC_NAME_MAX   16
#define ARRAY_COUNT(a) (sizeof(a) / sizeof(*(a)))

/* An unsigned member of a row: table-driven, since most rows are mostly numbers. */
struct number {
	const char *key;
	uint64_t value;
};

static bool add_numbers(cJSON *o, const struct number *numbers, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (!view_json_add_u64(o, numbers[i].key, numbers[i].value))
			return false;
	}
	return true;
}

#define ADD_NUMBERS(o, ...)                                                                        \
	add_numbers((o), (const struct number[]){ __VA_ARGS__ },                                   \
		ARRAY_COUNT(((const struct number[]){ __VA_ARGS__ })))

static const char *node_name(const struct topo *t, uint32_t node)
{
	return node < t->nodes_count ? t->nodes[node].name : NULL;
}

/* Name of a port by its number in its node; NULL for TOPO_NONE. */
static const char *port_name(const struct topo *t, uint32_t node, uint32_t number)
{
	if (number == NODE_PORT_INBAND)
		return "inband0";
	if (node >= t->nodes_count || number >= t->nodes[node].ports_count)
		return NULL;
	return topo_node_port(t, &t->nodes[node], number)->name;
}

/* "NODE:IF" of a port by its index in the topology; NULL for TOPO_NONE. */
static const char *full_port_name(const struct topo *t, uint32_t port, char text[PORT_NAME_MAX])
{
	if (port >= t->ports_count)
		return NULL;
	snprintf(text, PORT_NAME_MAX, "%s:%s", node_name(t, t->ports[port].node),
		t->ports[port].name);
	return text;
}

/* A number, or null where there is none. */
static bool add_optional(cJSON *o, const char *key, uint32_t value)
{
	return value == TOPO_NONE ? view_json_add_text(o, key, NULL)
				  : view_json_add_u64(o, key, value);
}

static bool add_nic(cJSON *o, uint32_t rail)
{
	char text[NIC_NAME_MAX];

	snprintf(text, sizeof(text), "gpu%" PRIu32, rail);
	return view_json_add_text(o, "nic", text);
}

/* Members of a bitset over port numbers, as names. */
static cJSON *port_names(const struct topo *t, uint32_t node, const uint64_t *set)
{
	uint32_t bits = t->nodes[node].ports_count;
	cJSON *array = cJSON_CreateArray();

	for (uint32_t i = dsf_bitset_next(set, 0, bits); array != NULL && i < bits;
		i = dsf_bitset_next(set, i + 1, bits)) {
		if (!view_json_append(array, cJSON_CreateString(port_name(t, node, i)))) {
			cJSON_Delete(array);
			return NULL;
		}
	}
	return array;
}

static const char *drain_name(enum node_drain drain)
{
	switch (drain) {
	case NODE_DRAIN_NONE: return "undrained";
	case NODE_DRAIN_ASKED: return "drained";
	case NODE_DRAIN_MIN_LINKS: return "below minimum links";
	}
	return "unknown";
}

cJSON *view_impairment(const struct node_impairment *i, const struct node_impairment *base)
{
	const struct {
		const char *key;
		uint64_t value, base;
	} knobs[] = { { "loss_ppm", i->loss_ppm, base->loss_ppm },
		{ "corrupt_ppm", i->corrupt_ppm, base->corrupt_ppm },
		{ "reorder_ppm", i->reorder_ppm, base->reorder_ppm },
		{ "delay_ns", i->delay_ns, base->delay_ns },
		{ "jitter_ns", i->jitter_ns, base->jitter_ns },
		{ "rate_bps", i->rate_bps, base->rate_bps } };
	cJSON *o = cJSON_CreateObject();

	for (size_t k = 0; o != NULL && k < ARRAY_COUNT(knobs); k++) {
		if (knobs[k].value != knobs[k].base &&
			!view_json_add_u64(o, knobs[k].key, knobs[k].value)) {
			cJSON_Delete(o);
			return NULL;
		}
	}
	return o;
}

/* What impairs the port, if anything does; the rate is told anyway. */
static bool add_impairment(cJSON *o, const struct node_impairment *i)
{
	struct node_impairment none = { .rate_bps = i->rate_bps };
	cJSON *impairment;

	if (node_impairment_equal(i, &none))
		return view_json_add_text(o, "impairment", NULL);
	impairment = view_impairment(i, &none);
	if (impairment != NULL && i->silent && !view_json_add_bool(impairment, "silent", true)) {
		cJSON_Delete(impairment);
		return false;
	}
	return view_json_add(o, "impairment", impairment);
}

/* The port that is heard, or what it says of itself. */
static const char *neighbor_name(
	const struct topo *t, const struct node_row_port *r, char name[PORT_NAME_MAX])
{
	uint32_t node = r->neighbor_switch < t->switches_count ? t->switch_node[r->neighbor_switch]
							       : TOPO_NONE;

	if (!r->attached)
		return NULL;
	if (node != TOPO_NONE && r->neighbor_port < t->nodes[node].ports_count)
		return full_port_name(t, t->nodes[node].first_port + r->neighbor_port, name);
	snprintf(name, PORT_NAME_MAX, "switch %u port %u", r->neighbor_switch, r->neighbor_port);
	return name;
}

static const char *expected_name(
	const struct topo *t, const struct topo_port *p, char name[PORT_NAME_MAX])
{
	if (p->expected_node == TOPO_NONE)
		return NULL;
	snprintf(name, PORT_NAME_MAX, "%.48s:fab%u", t->nodes[p->expected_node].name,
		p->expected_ordinal % 10000);
	return name;
}

static const char *cabling_name(const struct node_row_port *r)
{
	if (r->disabled)
		return "loop";
	if (r->bogus)
		return "bogus";
	if (r->mismatch)
		return "mismatch";
	return r->missing ? "missing" : "ok";
}

/* Against the plan; what has none (Ethernet ports) has no cabling. */
static bool add_cabling(
	cJSON *o, const struct topo *t, const struct topo_port *p, const struct node_row_port *r)
{
	bool cells = p != NULL && !p->ethernet;
	char name[PORT_NAME_MAX];

	return view_json_add_text(o, "admin_state", r->disabled ? "disabled" : "enabled") &&
	       view_json_add_text(o, "error", r->disabled ? "loop detected" : NULL) &&
	       view_json_add_text(o, "expected", cells ? expected_name(t, p, name) : NULL) &&
	       view_json_add_text(o, "neighbor", cells ? neighbor_name(t, r, name) : NULL) &&
	       view_json_add_text(o, "cabling", cells ? cabling_name(r) : NULL);
}

/* The port that stands for the hyperport of which this one is a member. */
static const char *hyperport_name(const struct topo *t, const struct topo_port *p)
{
	return p == NULL || p->hyperport == TOPO_NONE ? NULL : t->ports[p->hyperport].name;
}

static bool port_row(cJSON *o, const struct topo *t, uint32_t node, const struct node_row_port *r)
{
	char peer[PORT_NAME_MAX];
	const struct topo_port *port = NULL;

	if (r->port < t->nodes[node].ports_count)
		port = topo_node_port(t, &t->nodes[node], r->port);
	return view_json_add_text(o, "port", port_name(t, node, r->port)) &&
	       view_json_add_text(
		       o, "peer", port != NULL ? full_port_name(t, port->peer, peer) : NULL) &&
	       view_json_add_text(o, "kind",
		       port != NULL ? topo_link_kind_name(t->links[port->link].kind) : "inband") &&
	       view_json_add_text(o, "hyperport", hyperport_name(t, port)) &&
	       view_json_add_bool(o, "carrier", r->carrier) &&
	       view_json_add_bool(o, "live", r->live) &&
	       view_json_add_bool(o, "isolated", r->isolated) &&
	       view_json_add_text(o, "active_state", r->active ? "active" : "inactive") &&
	       view_json_add_bool(o, "drained", r->drained) &&
	       view_json_add_bool(o, "peer_drained", r->peer_drained) &&
	       view_json_add_text(o, "switch_state", drain_name(r->switch_drain)) &&
	       add_cabling(o, t, port, r) &&
	       ADD_NUMBERS(o, { "rate_bps", r->rate_bps }, { "frames_tx", r->frames_tx },
		       { "frames_rx", r->frames_rx }, { "bytes_tx", r->bytes_tx },
		       { "bytes_rx", r->bytes_rx }, { "cells_tx", r->cells_tx },
		       { "cells_rx", r->cells_rx }, { "cell_bytes_tx", r->cell_bytes_tx },
		       { "cell_bytes_rx", r->cell_bytes_rx }, { "dropped_tx", r->dropped_tx },
		       { "lost_rx", r->lost_rx }, { "corrupt_rx", r->corrupt_rx },
		       { "queue_bytes", r->queue_bytes }, { "stops_tx", r->stops_tx },
		       { "ecn_marked", r->ecn_marked }) &&
	       add_impairment(o, &r->impairment);
}

/* Inputs that were dropped, by cause; causes that never happened are left out. */
static cJSON *error_counts(const uint64_t *errors)
{
	cJSON *o = cJSON_CreateObject();

	for (int i = 0; o != NULL && errors != NULL && i < DSF_ERR_COUNT; i++) {
		if (errors[i] > 0 &&
			!view_json_add_u64(o, dsf_err_counter(DSF_E_FIRST + 1 + i), errors[i])) {
			cJSON_Delete(o);
			return NULL;
		}
	}
	return o;
}

static bool counters_row(
	cJSON *o, const struct node_row_counters *r, const struct view_driver_counts *driver)
{
	return ADD_NUMBERS(o, { "packets_tx", r->packets_tx }, { "packets_rx", r->packets_rx },
		       { "cells_tx", r->cells_tx }, { "cells_rx", r->cells_rx },
		       { "cells_lost", r->cells_lost }, { "control_cells_tx", r->control_cells_tx },
		       { "control_cells_rx", r->control_cells_rx },
		       { "packets_reassembled", r->packets_reassembled },
		       { "cabling_missing", r->cabling_missing },
		       { "cabling_mismatch", r->cabling_mismatch },
		       { "cabling_bogus", r->cabling_bogus },
		       { "reassembly_errors", r->reassembly_errors },
		       { "fabric_link_down_dropped", r->fabric_link_down_dropped },
		       { "fabric_unreachable_dropped", r->fabric_unreachable_dropped },
		       { "fabric_drops", r->fabric_drops }, { "voq_drops", r->voq_drops },
		       { "watchdog_drops", r->watchdog_drops }, { "egress_drops", r->egress_drops },
		       { "impaired_drops", r->impaired_drops + driver->impaired_drops },
		       { "corrupt_drops", r->corrupt_drops + driver->corrupt_drops },
		       { "nic_drops", driver->nic_drops },
		       { "emulator_drops", driver->emulator_drops }, { "ecn_marks", r->ecn_marks },
		       { "credit_bytes_sent", r->credits_sent },
		       { "credit_bytes_received", r->credits_received },
		       { "retransmits", r->retransmits }, { "duplicates", r->duplicates }) &&
	       view_json_add(o, "input_errors", error_counts(r->errors));
}

static bool reachability_row(
	cJSON *o, const struct topo *t, uint32_t node, const struct node_row_reachability *r)
{
	return view_json_add_text(o, "destination", node_name(t, r->destination)) &&
	       view_json_add(o, "output", port_names(t, node, r->output)) &&
	       view_json_add(o, "advertised", port_names(t, node, r->advertised)) &&
	       view_json_add(o, "withdrawn", port_names(t, node, r->withdrawn)) &&
	       view_json_add_bool(o, "cut_by_balance", r->cut_by_balance);
}

static bool balance_row(cJSON *o, const struct topo *t, const struct node_row_balance *r)
{
	char cluster[32];
	const char *group = "down";

	switch (r->kind) {
	case FABRIC_BALANCE_DOWN: break;
	case FABRIC_BALANCE_UP: group = "up"; break;
	case FABRIC_BALANCE_NODE: group = node_name(t, r->key); break;
	case FABRIC_BALANCE_CLUSTER:
		snprintf(cluster, sizeof(cluster), "cluster %u", r->key);
		group = cluster;
		break;
	}
	return view_json_add_text(o, "destination", node_name(t, r->destination)) &&
	       view_json_add_text(o, "group", group) &&
	       ADD_NUMBERS(o, { "input", r->input }, { "output", r->output },
		       { "allowed", r->allowed }) &&
	       view_json_add_bool(o, "balanced", r->balanced);
}

static bool voq_row(cJSON *o, const struct node_row_voq *r)
{
	return ADD_NUMBERS(o, { "system_port", r->system_port }) &&
	       view_json_add_text(o, "class", fabric_class_name(r->traffic_class)) &&
	       ADD_NUMBERS(o, { "packets", r->packets }, { "bytes", r->bytes },
		       { "credits_requested", r->credits_requested },
		       { "credits_granted", r->credits_granted }, { "dropped", r->dropped },
		       { "ecn_marked", r->ecn_marked }, { "watchdog_dropped", r->watchdog_dropped },
		       { "sent_packets", r->sent_packets }, { "sent_bytes", r->sent_bytes });
}

static bool system_port_row(cJSON *o, const struct topo *t, const struct node_row_system_port *r)
{
	char name[PORT_NAME_MAX];

	return ADD_NUMBERS(o, { "system_port", r->system_port }) &&
	       view_json_add_text(o, "port", full_port_name(t, r->port, name)) &&
	       ADD_NUMBERS(o, { "rate_bps", r->rate_bps }) &&
	       view_json_add_text(o, "scope", r->local ? "local" : "remote") &&
	       view_json_add_text(o, "state", r->up ? "up" : "down") &&
	       view_json_add_text(o, "liveness", r->stale ? "STALE" : "LIVE");
}

/* Null: not known, or behind a host port, where there is none. */
static bool add_mac(cJSON *o, const struct dsf_mac *mac)
{
	static const struct dsf_mac none = { { 0 } };
	char text[DSF_MAC_TEXT_MAX];
	bool known = mac != NULL && memcmp(mac, &none, sizeof(none)) != 0;

	return view_json_add_text(o, "mac", known ? dsf_mac_text(mac, text) : NULL);
}

static bool neighbor_row(cJSON *o, const struct topo *t, const struct node_row_neighbor *r)
{
	static const char *const states[] = {
		[NODE_NEIGHBOR_INCOMPLETE] = "incomplete",
		[NODE_NEIGHBOR_REACHABLE] = "reachable",
		[NODE_NEIGHBOR_STATIC] = "static",
	};
	bool known = r->state != NODE_NEIGHBOR_INCOMPLETE;
	char address[DSF_IP6_TEXT_MAX];

	return view_json_add_text(o, "address", dsf_ip6_text(&r->address, address)) &&
	       add_mac(o, known ? &r->mac : NULL) &&
	       add_optional(o, "system_port", r->system_port) &&
	       view_json_add_text(o, "switch", node_name(t, r->owner)) &&
	       view_json_add_text(o, "state", states[r->state]) &&
	       view_json_add_text(o, "scope", r->local ? "local" : "remote");
}

/* Null: not yet. */
static bool add_instant(cJSON *o, const char *key, dsf_instant at)
{
	return dsf_time_is_never(at) ? view_json_add(o, key, cJSON_CreateNull())
				     : view_json_add_u64(o, key, at.ns);
}

static bool fsdb_session_row(cJSON *o, const struct topo *t, const struct node_row_fsdb_session *r)
{
	static const char *const states[] = {
		[FSDB_CONNECT] = "CONNECT",
		[FSDB_WAIT_FOR_REMOTE] = "WAIT_FOR_REMOTE",
		[FSDB_ESTABLISHED] = "ESTABLISHED",
	};

	return view_json_add_text(o, "peer", node_name(t, r->peer)) &&
	       view_json_add_text(o, "state", states[r->state]) &&
	       view_json_add_text(o, "liveness", r->stale ? "STALE" : "LIVE") &&
	       add_instant(o, "established_at_ns", r->established_at) &&
	       add_instant(o, "disconnected_at_ns", r->disconnected_at) &&
	       ADD_NUMBERS(o, { "flaps", r->flaps }, { "rejected", r->rejected },
		       { "expired", r->expired }, { "records", r->records });
}

static const char *fsdb_state(const struct fsdb_record *r)
{
	static const char *const states[] = {
		[FSDB_INCOMPLETE] = "incomplete",
		[FSDB_REACHABLE] = "reachable",
		[FSDB_STATIC] = "static",
	};

	switch ((enum fsdb_kind)r->kind) {
	case FSDB_KIND_PORT: return r->state ? "up" : "down";
	case FSDB_KIND_INTERFACE: break;
	case FSDB_KIND_NEIGHBOR: return states[r->state];
	}
	return NULL;
}

static bool fsdb_row(cJSON *o, const struct topo *t, const struct node_row_fsdb *r)
{
	static const char *const kinds[] = {
		[FSDB_KIND_PORT] = "port",
		[FSDB_KIND_INTERFACE] = "interface",
		[FSDB_KIND_NEIGHBOR] = "neighbor",
	};
	const struct fsdb_record *record = r->record;
	bool port = record->kind == FSDB_KIND_PORT;
	char address[DSF_IP6_TEXT_MAX];

	return view_json_add_text(o, "publisher", node_name(t, r->publisher)) &&
	       view_json_add_text(o, "kind", kinds[record->kind]) &&
	       view_json_add_u64(o, "system_port", record->system_port) &&
	       view_json_add_text(
		       o, "address", port ? NULL : dsf_ip6_text(&record->address, address)) &&
	       add_mac(o, port ? NULL : &record->mac) &&
	       view_json_add_text(o, "state", fsdb_state(record)) &&
	       view_json_add_text(o, "liveness", r->stale ? "STALE" : "LIVE");
}

static bool add_prefix(cJSON *o, const struct dsf_ip6 *prefix, uint8_t length)
{
	char address[DSF_IP6_TEXT_MAX], text[DSF_IP6_TEXT_MAX + 4];

	snprintf(text, sizeof(text), "%s/%u", dsf_ip6_text(prefix, address), length);
	return view_json_add_text(o, "prefix", text);
}

/* Next hops that can be sent to, or those that can't. */
static cJSON *next_hops(const struct ip_hops_set *set, bool usable)
{
	cJSON *array = cJSON_CreateArray();
	char text[DSF_IP6_TEXT_MAX];

	for (uint32_t i = 0; array != NULL && set != NULL && i < set->count; i++) {
		if ((set->factors[i] != 0) != usable ||
			view_json_append(
				array, cJSON_CreateString(dsf_ip6_text(&set->hops[i], text))))
			continue;
		cJSON_Delete(array);
		return NULL;
	}
	return array;
}

static bool route_row(cJSON *o, const struct topo *t, uint32_t node, const struct node_row_route *r)
{
	uint64_t hops = r->set == NULL ? 0 : r->set->count;
	uint64_t usable = r->set == NULL ? 0 : r->set->usable;

	return add_prefix(o, &r->prefix, r->prefix_length) &&
	       view_json_add_text(o, "origin", r->origin) &&
	       add_optional(o, "system_port", r->system_port) &&
	       view_json_add_text(o, "port", port_name(t, node, r->port)) &&
	       view_json_add(o, "next_hops", next_hops(r->set, true)) &&
	       view_json_add(o, "unusable", next_hops(r->set, false)) &&
	       ADD_NUMBERS(o, { "hops", hops }, { "usable", usable });
}

/* "6/2": code and subcode; null: none. */
static bool add_notification(cJSON *o, const char *key, const struct bgp_notification *n)
{
	char text[16];

	snprintf(text, sizeof(text), "%u/%u", n->code, n->subcode);
	return view_json_add_text(o, key, n->code == 0 ? NULL : text);
}

static bool bgp_peer_row(cJSON *o, const struct topo *t, const struct node_row_bgp_peer *r)
{
	const struct bgp_peer_view *v = r->view;
	const struct bgp_session_counters *c = &v->session->counters;
	char address[DSF_IP6_TEXT_MAX], local[DSF_IP6_TEXT_MAX], text[BGP_TEXT_MAX + 1];
	bool told = bgp_wire_text(&v->session->received, text);

	return view_json_add_text(o, "peer", dsf_ip6_text(&r->address, address)) &&
	       view_json_add_text(o, "peer_node", node_name(t, r->peer)) &&
	       view_json_add_u64(o, "asn", v->config->as) &&
	       view_json_add_text(o, "state", bgp_state_name(v->state)) &&
	       ADD_NUMBERS(o, { "received", v->paths }, { "sent", v->told }) &&
	       view_json_add_text(o, "type", r->internal ? "internal" : "external") &&
	       view_json_add_text(o, "from", r->derived ? "topology" : "file") &&
	       view_json_add_text(o, "local", dsf_ip6_text(&r->local, local)) &&
	       add_instant(o, "established_at_ns", r->established_at) &&
	       view_json_add_u64(o, "established_times", c->established) &&
	       view_json_add_u64(o, "hold_s", v->config->hold_s) &&
	       view_json_add_bool(o, "add_path_receive", v->add_path_receive) &&
	       view_json_add_bool(o, "add_path_send", v->add_path_send) &&
	       view_json_add_bool(o, "md5", v->config->md5 != NULL) &&
	       ADD_NUMBERS(o, { "stale", v->paths_stale },
		       { "messages_received", c->messages_received },
		       { "messages_sent", c->messages_sent },
		       { "updates_received", v->updates_received },
		       { "updates_sent", v->updates_sent }, { "looped", v->looped },
		       { "refused", v->refused }, { "withdrawn_by_error", v->withdrawn_by_error },
		       { "limit_reached", v->limit_reached }) &&
	       add_notification(o, "error_sent", &v->session->sent) &&
	       add_notification(o, "error_received", &v->session->received) &&
	       view_json_add_text(o, "text_received", told ? text : NULL);
}

/* "4200065536 4200000001", sets in braces. */
static bool add_as_path(cJSON *o, const struct bgp_attributes *attributes)
{
	const struct bgp_attribute *path = bgp_attributes_find(attributes, BGP_AS_PATH);
	size_t room = path == NULL ? 1 : 4 * (size_t)path->size + 16, at = 0;
	char *text = calloc(1, room);
	uint8_t segment = BGP_AS_SEQUENCE;
	struct bgp_as_walk walk;
	uint32_t as;
	bool added;

	if (text == NULL)
		return false;
	bgp_as_walk_start(&walk, attributes);
	while (bgp_as_walk_next(&walk, &as)) {
		const char *gap = at > 0 ? " " : "";

		if (walk.segment == BGP_AS_SET && segment != BGP_AS_SET)
			at += (size_t)snprintf(text + at, room - at, "%s{", gap), gap = "";
		segment = walk.segment;
		at += (size_t)snprintf(text + at, room - at, "%s%" PRIu32, gap, as);
		if (segment == BGP_AS_SET && walk.left == 0) {
			at += (size_t)snprintf(text + at, room - at, "}");
			segment = BGP_AS_SEQUENCE;
		}
	}
	added = view_json_add_text(o, "as_path", text);
	free(text);
	return added;
}

static bool add_communities(cJSON *o, const struct bgp_attributes *attributes)
{
	const struct bgp_attribute *a = bgp_attributes_find(attributes, BGP_COMMUNITIES);
	cJSON *array = cJSON_CreateArray();

	for (size_t at = 0; array != NULL && a != NULL && at + 4 <= a->size; at += 4) {
		const uint8_t *bytes = bgp_attribute_bytes(a) + at;
		char text[16];

		snprintf(text, sizeof(text), "%u:%u", bytes[0] << 8 | bytes[1],
			bytes[2] << 8 | bytes[3]);
		if (!view_json_append(array, cJSON_CreateString(text))) {
			cJSON_Delete(array);
			return false;
		}
	}
	return view_json_add(o, "communities", array);
}

static const char *origin_name(const struct bgp_attributes *attributes)
{
	static const char *const names[] = { "IGP", "EGP", "incomplete" };
	const struct bgp_attribute *a = bgp_attributes_find(attributes, BGP_ORIGIN);
	uint8_t code = a == NULL || a->size == 0 ? UINT8_MAX : bgp_attribute_bytes(a)[0];

	return code < ARRAY_COUNT(names) ? names[code] : NULL;
}

static bool bgp_path_row(cJSON *o, const struct topo *t, const struct node_row_bgp_path *r)
{
	const struct bgp_row *row = r->row;
	bool own = row->peer == UINT32_MAX;
	char next_hop[DSF_IP6_TEXT_MAX], from[DSF_IP6_TEXT_MAX];

	return add_prefix(o, &row->prefix.address, row->prefix.length) &&
	       view_json_add_text(
		       o, "next_hop", own ? NULL : dsf_ip6_text(&row->next_hop, next_hop)) &&
	       view_json_add_u64(o, "path_id", row->path_id) && add_as_path(o, &row->attributes) &&
	       view_json_add_bool(o, "best", row->best) &&
	       view_json_add_bool(o, "multipath", row->multipath) &&
	       view_json_add_bool(o, "stale", row->stale) &&
	       view_json_add_text(o, "peer", own ? NULL : dsf_ip6_text(&r->from, from)) &&
	       view_json_add_text(o, "peer_node", node_name(t, r->peer)) &&
	       view_json_add_text(o, "origin", origin_name(&row->attributes)) &&
	       ADD_NUMBERS(o,
		       { "local_pref",
			       bgp_attributes_get32(&row->attributes, BGP_LOCAL_PREF, 100) },
		       { "med", bgp_attributes_get32(&row->attributes, BGP_MED, 0) }) &&
	       add_communities(o, &row->attributes);
}

static bool nic_row(cJSON *o, const struct node_row_nic *r)
{
	return add_nic(o, r->rail) &&
	       ADD_NUMBERS(o, { "ports", r->ports }, { "ports_up", r->ports_up },
		       { "connections", r->connections }, { "packets_tx", r->packets_tx },
		       { "packets_rx", r->packets_rx }, { "bytes_tx", r->bytes_tx },
		       { "bytes_rx", r->bytes_rx }, { "retransmits", r->retransmits },
		       { "duplicates", r->duplicates });
}

static bool path_row(cJSON *o, const struct node_row_path *r)
{
	static const char *const states[] = {
		[NODE_PATH_GOOD] = "good",
		[NODE_PATH_SUSPECT] = "suspect",
		[NODE_PATH_DEAD] = "dead",
	};

	return add_nic(o, r->rail) &&
	       ADD_NUMBERS(o, { "connection", r->connection }, { "path", r->path },
		       { "plane", r->plane }, { "udp_source_port", r->udp_source_port }) &&
	       view_json_add_text(o, "state", states[r->state]) &&
	       (r->rtt_ns > 0 ? view_json_add_u64(o, "rtt_ns", r->rtt_ns) /* null: none measured */
			      : view_json_add(o, "rtt_ns", cJSON_CreateNull())) &&
	       view_json_add_u64(o, "cwnd_bytes", r->cwnd_bytes) &&
	       view_json_add(o, "ecn_fraction", cJSON_CreateNumber(r->ecn_ppm / 1e6)) &&
	       ADD_NUMBERS(o, { "bytes", r->bytes }, { "retransmits", r->retransmits });
}

static bool qp_row(cJSON *o, const struct node_row_qp *r)
{
	return add_nic(o, r->rail) &&
	       ADD_NUMBERS(o, { "connection", r->connection }, { "qp", r->qp },
		       { "messages_sent", r->messages_sent }, { "messages_done", r->messages_done },
		       { "bytes_sent", r->bytes_sent }, { "bytes_received", r->bytes_received });
}

/* A histogram with its bins, so that those of several hosts can be merged. */
static cJSON *histogram(const struct dsf_histogram *h)
{
	cJSON *o = cJSON_CreateObject(), *bins;
	bool held = o != NULL &&
		    ADD_NUMBERS(o, { "count", h->count }, { "max", h->max }, { "sum", h->sum });

	bins = held ? cJSON_AddArrayToObject(o, "bins") : NULL;
	held = bins != NULL;
	for (int i = 0; held && i < DSF_HISTOGRAM_BINS; i++) {
		double pair[2] = { i, h->bins[i] };

		if (h->bins[i] > 0)
			held = view_json_append(bins, cJSON_CreateDoubleArray(pair, 2));
	}
	if (held)
		return o;
	cJSON_Delete(o);
	return NULL;
}

static bool flow_row(cJSON *o, const struct node_row_flow *r)
{
	return ADD_NUMBERS(o, { "source", r->source }, { "target", r->target }) &&
	       view_json_add_text(o, "half", r->sender ? "sender" : "receiver") &&
	       view_json_add_bool(o, "done", r->done) &&
	       ADD_NUMBERS(o, { "messages", r->messages }, { "bytes", r->bytes },
		       { "bytes_wrong", r->bytes_wrong }, { "lost", r->lost },
		       { "duplicated", r->duplicated }, { "reordered", r->reordered },
		       { "first_at_ns", r->first_at.ns }, { "last_at_ns", r->last_at.ns },
		       { "retransmits", r->retransmits }, { "ecn_marks", r->ecn_marks }) &&
	       view_json_add(o, "fct", r->fct == NULL ? cJSON_CreateNull() : histogram(r->fct));
}

static bool missing_row(
	cJSON *o, const struct topo *t, uint32_t node, const struct node_row_missing *r)
{
	return view_json_add_text(o, "what", r->what) &&
	       view_json_add_text(o, "port", port_name(t, node, r->port)) &&
	       view_json_add_text(o, "other", node_name(t, r->other));
}

static bool fill(const struct view_rows *v, cJSON *o, const struct node_row *row)
{
	const struct topo *t = v->topo;

	switch (row->query) {
	case NODE_QUERY_PORT: return port_row(o, t, row->node, &row->port);
	case NODE_QUERY_COUNTERS: return counters_row(o, &row->counters, &v->driver);
	case NODE_QUERY_REACHABILITY: return reachability_row(o, t, row->node, &row->reachability);
	case NODE_QUERY_BALANCE: return balance_row(o, t, &row->balance);
	case NODE_QUERY_VOQ: return voq_row(o, &row->voq);
	case NODE_QUERY_SYSTEM_PORT: return system_port_row(o, t, &row->system_port);
	case NODE_QUERY_NDP: return neighbor_row(o, t, &row->neighbor);
	case NODE_QUERY_FSDB_SESSION: return fsdb_session_row(o, t, &row->fsdb_session);
	case NODE_QUERY_FSDB: return fsdb_row(o, t, &row->fsdb);
	case NODE_QUERY_BGP_PEER: return bgp_peer_row(o, t, &row->bgp_peer);
	case NODE_QUERY_BGP_TABLE: return bgp_path_row(o, t, &row->bgp_path);
	case NODE_QUERY_ROUTE: return route_row(o, t, row->node, &row->route);
	case NODE_QUERY_NIC: return nic_row(o, &row->nic);
	case NODE_QUERY_PATHS: return path_row(o, &row->path);
	case NODE_QUERY_QP: return qp_row(o, &row->qp);
	case NODE_QUERY_WORKLOAD: return flow_row(o, &row->flow);
	case NODE_QUERY_READY: return missing_row(o, t, row->node, &row->missing);
	}
	return false;
}

void view_rows_begin(
	struct view_rows *v, const struct topo *topo, const struct view_driver_counts *driver)
{
	*v = (struct view_rows){ .topo = topo, .array = cJSON_CreateArray() };
	if (driver != NULL)
		v->driver = *driver;
	v->failed = v->array == NULL;
}

void view_rows_append(void *user, const struct node_row *row)
{
	struct view_rows *v = user;
	cJSON *o;

	if (v->failed)
		return;
	o = cJSON_CreateObject();
	if (o != NULL && view_json_add_text(o, "node", node_name(v->topo, row->node)) &&
		fill(v, o, row) && cJSON_AddItemToArray(v->array, o))
		return;
	cJSON_Delete(o);
	v->failed = true;
}

cJSON *view_rows_finish(struct view_rows *v)
{
	cJSON *array = v->array;

	v->array = NULL;
	if (!v->failed)
		return array;
	cJSON_Delete(array);
	return NULL;
}

static const char *const query_names[] = {
	[NODE_QUERY_PORT] = "port",
	[NODE_QUERY_COUNTERS] = "counters",
	[NODE_QUERY_REACHABILITY] = "reachability",
	[NODE_QUERY_BALANCE] = "inputbalance",
	[NODE_QUERY_VOQ] = "voq",
	[NODE_QUERY_SYSTEM_PORT] = "system_port",
	[NODE_QUERY_NDP] = "ndp",
	[NODE_QUERY_FSDB_SESSION] = "fsdb_session",
	[NODE_QUERY_FSDB] = "fsdb",
	[NODE_QUERY_BGP_PEER] = "bgp_peer",
	[NODE_QUERY_BGP_TABLE] = "bgp_table",
	[NODE_QUERY_ROUTE] = "route",
	[NODE_QUERY_NIC] = "nic",
	[NODE_QUERY_PATHS] = "paths",
	[NODE_QUERY_QP] = "qp",
	[NODE_QUERY_WORKLOAD] = "workload",
	[NODE_QUERY_READY] = "ready",
};

const char *view_rows_query_name(enum node_query query)
{
	return query_names[query];
}

int view_rows_query_parse(const char *name, enum node_query *query)
{
	for (size_t i = 0; i < ARRAY_COUNT(query_names); i++) {
		if (strcmp(name, query_names[i]) == 0) {
			*query = (enum node_query)i;
			return 0;
		}
	}
	return -DSF_E_UNKNOWN;
}

static int read_histogram(const cJSON *o, struct dsf_histogram *h)
{
	const cJSON *bins = cJSON_GetObjectItemCaseSensitive(o, "bins"), *pair;

	memset(h, 0, sizeof(*h));
	h->count = view_json_u64(o, "count");
	h->max = view_json_u64(o, "max");
	h->sum = view_json_u64(o, "sum");
	cJSON_ArrayForEach(pair, bins)
	{
		uint64_t bin, count;

		if (!view_json_integer(cJSON_GetArrayItem(pair, 0), &bin) ||
			!view_json_integer(cJSON_GetArrayItem(pair, 1), &count) ||
			bin >= DSF_HISTOGRAM_BINS || count > UINT32_MAX)
			return -DSF_E_BADFIELD;
		h->bins[bin] = (uint32_t)count;
	}
	return 0;
}

int view_rows_read_flow(const cJSON *row, struct node_row_flow *flow, struct dsf_histogram *fct)
{
	const cJSON *fct_row = cJSON_GetObjectItemCaseSensitive(row, "fct");
	const char *half = view_json_text(row, "half");

	if (half == NULL || !cJSON_IsBool(cJSON_GetObjectItemCaseSensitive(row, "done")))
		return -DSF_E_BADFIELD;
	*flow = (struct node_row_flow){
		.source = (uint32_t)view_json_u64(row, "source"),
		.target = (uint32_t)view_json_u64(row, "target"),
		.sender = strcmp(half, "sender") == 0,
		.done = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(row, "done")),
		.messages = view_json_u64(row, "messages"),
		.bytes = view_json_u64(row, "bytes"),
		.bytes_wrong = view_json_u64(row, "bytes_wrong"),
		.lost = view_json_u64(row, "lost"),
		.duplicated = view_json_u64(row, "duplicated"),
		.reordered = view_json_u64(row, "reordered"),
		.first_at = { view_json_u64(row, "first_at_ns") },
		.last_at = { view_json_u64(row, "last_at_ns") },
		.retransmits = view_json_u64(row, "retransmits"),
		.ecn_marks = view_json_u64(row, "ecn_marks"),
	};
	if (!cJSON_IsObject(fct_row))
		return 0;
	flow->fct = fct;
	return read_histogram(fct_row, fct);
}
