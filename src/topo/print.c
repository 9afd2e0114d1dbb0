/*
 * print.c - the explicit form of a topology as JSON text
 *
 * Written by hand, not with libcjson: one line a node and link keeps a diff readable, integers keep
 * all digits, and a lab of a million links needs no tree.
 */
#include "topo/file.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/time.h"

struct text {
	char *bytes; /* NULL: memory was short, and stays so */
	size_t size, cap;
};

static void add(struct text *x, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct text *x, const char *format, ...)
{
	while (x->bytes != NULL) {
		va_list args;
		size_t left = x->cap - x->size;
		char *grown;
		int size;

		va_start(args, format);
		size = vsnprintf(x->bytes + x->size, left, format, args);
		va_end(args);
		if ((size_t)size < left) {
			x->size += (size_t)size;
			return;
		}
		grown = realloc(x->bytes, x->cap * 2);
		if (grown == NULL)
			free(x->bytes);
		x->bytes = grown;
		x->cap *= 2;
	}
}

static const char *mode_name(enum topo_fabric_mode mode)
{
	switch (mode) {
	case TOPO_FABRIC_DSF: return "dsf";
	case TOPO_FABRIC_ECMP: return "ecmp";
	}
	return "?";
}

static const char *draw_name(enum topo_draw draw)
{
	switch (draw) {
	case TOPO_DRAW_STRATIFIED: return "stratified";
	case TOPO_DRAW_RANDOM: return "random";
	case TOPO_DRAW_FORCED: return "forced";
	}
	return "?";
}

/* Nodes that have forced orders, with their ports by place. */
static void add_orders(struct text *x, const struct topo *t)
{
	bool any = false;

	for (uint32_t i = 0; i < t->nodes_count; i++) {
		const struct topo_node *n = &t->nodes[i];
		uint32_t placed = 0;

		for (uint32_t place = 0; place < n->ports_count; place++) {
			for (uint32_t k = 0; k < n->ports_count; k++) {
				if (topo_node_port(t, n, k)->withhold != place)
					continue;
				if (placed == 0)
					add(x, "%s{\"node\": \"%s\", \"ports\": [",
						any ? ", " : ", \"orders\": [", n->name);
				add(x, "%s\"%s\"", placed > 0 ? ", " : "",
					topo_node_port(t, n, k)->name);
				placed++;
			}
		}
		if (placed > 0)
			add(x, "]}");
		any = any || placed > 0;
	}
	if (any)
		add(x, "]");
}

static void add_settings(struct text *x, const struct topo *t)
{
	const struct topo_fabric *f = &t->fabric;

	add(x, "{\n  \"name\": \"%s\",\n  \"seed\": %" PRIu64 ",\n", t->name, t->seed);
	if (t->time_dilation == 0)
		add(x, "  \"time_dilation\": \"auto\",\n");
	else
		add(x, "  \"time_dilation\": %u,\n", t->time_dilation);
	add(x, "  \"planes\": %u,\n", t->planes);
	add(x,
		"  \"fabric\": {\"mode\": \"%s\", \"cell_bytes\": %u, \"credit_bytes\": %u, "
		"\"train_bytes\": %u, \"input_balanced\": %s, \"draw\": \"%s\", \"voq_bytes\": %u, "
		"\"buffer_bytes\": %u, \"ecn_min\": %" PRIu64 ", \"reach_refresh\": %" PRIu64
		", \"reassembly_timeout\": %" PRIu64 ", \"credit_watchdog\": %" PRIu64
		", \"min_links_to_join\": %u, \"min_links_to_remain\": %u"
		", \"weights\": {\"rdma\": %u, \"default\": %u}",
		mode_name(f->mode), f->cell_bytes, f->credit_bytes, f->train_bytes,
		f->input_balanced ? "true" : "false", draw_name(f->draw), f->voq_bytes,
		f->buffer_bytes, f->ecn_min_ns, f->reach_refresh_ns, f->reassembly_timeout_ns,
		f->credit_watchdog_ns, f->min_links_to_join, f->min_links_to_remain, f->weight_rdma,
		f->weight_default);
	if (f->draw == TOPO_DRAW_FORCED)
		add_orders(x, t);
	add(x, "},\n");
	add(x, "  \"transport\": {\"name\": \"%s\", \"paths\": %u, \"payload_bytes\": %u},\n",
		t->transport.name == TOPO_TRANSPORT_METAROCE ? "metaroce" : "rocev2",
		t->transport.paths, t->transport.payload_bytes);
}

/* A string of the file, which is UTF-8. */
static void add_string(struct text *x, const char *text, size_t size)
{
	add(x, "\"");
	while (size > 0) {
		size_t plain = 0;

		while (plain < size && (unsigned char)text[plain] >= 0x20 && text[plain] != '"' &&
			text[plain] != '\\')
			plain++;
		add(x, "%.*s", (int)plain, text);
		if (plain == size)
			break;
		if ((unsigned char)text[plain] < 0x20)
			add(x, "\\u%04x", (unsigned char)text[plain]);
		else
			add(x, "\\%c", text[plain]);
		text += plain + 1;
		size -= plain + 1;
	}
	add(x, "\"");
}

static const char *add_path_name(enum topo_bgp_add_path add_path)
{
	switch (add_path) {
	case TOPO_BGP_ADD_PATH_NONE: return "none";
	case TOPO_BGP_ADD_PATH_RECEIVE: return "receive";
	case TOPO_BGP_ADD_PATH_SEND: return "send";
	case TOPO_BGP_ADD_PATH_BOTH: return "both";
	}
	return "?";
}

static void add_prefix(struct text *x, const struct dsf_ip6 *prefix, uint8_t length)
{
	char text[DSF_IP6_TEXT_MAX];

	add(x, "\"prefix\": \"%s/%u\"", dsf_ip6_text(prefix, text), length);
}

static void add_policy(
	struct text *x, const struct topo *t, const char *key, const struct topo_bgp_policy *policy)
{
	if (!policy->given)
		return;
	add(x, ", \"%s\": [", key);
	for (uint32_t i = 0; i < policy->count; i++) {
		const struct topo_bgp_rule *r = &t->bgp_rules[policy->first + i];

		add(x, "%s{", i > 0 ? ", " : "");
		add_prefix(x, &r->prefix, r->length);
		add(x, ", \"ge\": %u, \"le\": %u, \"permit\": %s", r->length_min, r->length_max,
			r->permit ? "true" : "false");
		if (r->set_local_pref)
			add(x, ", \"local_pref\": %u", r->local_pref);
		if (r->set_med)
			add(x, ", \"med\": %u", r->med);
		add(x, "}");
	}
	add(x, "]");
}

static void add_neighbor(struct text *x, const struct topo *t, const struct topo_bgp_neighbor *b)
{
	char text[DSF_IP6_TEXT_MAX];

	add(x, "{\"address\": \"%s\", \"asn\": %u, \"passive\": %s",
		dsf_ip6_text(&b->address, text), b->asn, b->passive ? "true" : "false");
	add(x, ", \"hold\": %" PRIu64, (uint64_t)(b->hold_s * NS_PER_S));
	if (b->md5[0] != '\0') {
		add(x, ", \"md5\": ");
		add_string(x, b->md5, strlen(b->md5));
	}
	add(x,
		", \"add_path\": \"%s\", \"max_paths\": %u, \"graceful_restart\": %" PRIu64
		", \"next_hop_self\": %s",
		add_path_name(b->add_path), b->paths_max, (uint64_t)(b->restart_s * NS_PER_S),
		b->next_hop_self ? "true" : "false");
	add_policy(x, t, "import", &b->import);
	add_policy(x, t, "export", &b->export);
	add(x, "}");
}

static void add_bgp(struct text *x, const struct topo *t, const struct topo_bgp *b)
{
	add(x, ", \"bgp\": {\"router_id\": \"%u.%u.%u.%u\", \"neighbors\": [", b->router_id >> 24,
		b->router_id >> 16 & 255, b->router_id >> 8 & 255, b->router_id & 255);
	for (uint32_t i = 0; i < b->neighbors_count; i++) {
		add(x, "%s", i > 0 ? ", " : "");
		add_neighbor(x, t, &t->bgp_neighbors[b->first_neighbor + i]);
	}
	add(x, "], \"originate\": [");
	for (uint32_t i = 0; i < b->origins_count; i++) {
		const struct topo_bgp_origin *o = &t->bgp_origins[b->first_origin + i];

		add(x, "%s{", i > 0 ? ", " : "");
		add_prefix(x, &o->prefix, o->length);
		add(x, ", \"min_contributors\": %u}", o->contributors_min);
	}
	add(x, "]}");
}

/* As lines, or as one string where the last line doesn't end. */
static void add_file(struct text *x, const struct topo_node_file *file)
{
	size_t size = strlen(file->text);
	const char *line = file->text, *end = line + size;

	add(x, "\"%s\": ", file->name);
	if (size == 0 || end[-1] != '\n') {
		add_string(x, file->text, size);
		return;
	}
	for (const char *feed; line < end; line = feed + 1) {
		feed = strchr(line, '\n');
		add(x, line == file->text ? "[" : ", ");
		add_string(x, line, (size_t)(feed - line));
	}
	add(x, "]");
}

static void add_external(struct text *x, const struct topo_external *e)
{
	for (uint32_t i = 0; e->command != NULL && e->command[i] != NULL; i++) {
		add(x, i == 0 ? ", \"command\": [" : ", ");
		add_string(x, e->command[i], strlen(e->command[i]));
	}
	if (e->command != NULL)
		add(x, "]");
	for (uint32_t i = 0; i < e->files_count; i++) {
		add(x, i == 0 ? ", \"files\": {" : ", ");
		add_file(x, &e->files[i]);
	}
	if (e->files_count > 0)
		add(x, "}");
}

static void add_node(struct text *x, const struct topo *t, const struct topo_node *n)
{
	static const struct dsf_ip6 none;
	char address[DSF_IP6_TEXT_MAX];

	add(x, "{\"name\": \"%s\", \"role\": \"%s\"", n->name, topo_role_name(n->role));
	if (n->building != TOPO_NONE)
		add(x, ", \"building\": %u", n->building);
	if (n->plane != TOPO_NONE)
		add(x, ", \"plane\": %u", n->plane);
	if (n->cluster != TOPO_NONE)
		add(x, ", \"cluster\": %u", n->cluster);
	if (!dsf_ip6_equal(&n->loopback, &none))
		add(x, ", \"address\": \"%s\"", dsf_ip6_text(&n->loopback, address));
	if (n->asn != 0)
		add(x, ", \"asn\": %u", n->asn);
	if (n->switch_index != TOPO_NONE)
		add(x, ", \"switch_index\": %u", n->switch_index);
	if (n->external != NULL)
		add_external(x, n->external);
	if (n->bgp != TOPO_NONE)
		add_bgp(x, t, &t->bgp[n->bgp]);
	add(x, "}");
}

static void add_port(struct text *x, const struct topo_port *p, char end)
{
	char address[DSF_IP6_TEXT_MAX], mac[DSF_MAC_TEXT_MAX];

	if (p->prefix_length != 0)
		add(x, ", \"address_%c\": \"%s\"", end, dsf_ip6_text(&p->address, address));
	add(x, ", \"mac_%c\": \"%s\"", end, dsf_mac_text(&p->mac, mac));
}

/* Only where the plan has something else than what is there. */
static void add_expected(struct text *x, const struct topo *t, const struct topo_port *p, char end)
{
	const struct topo_port *peer = &t->ports[p->peer];

	if (p->ethernet || (p->expected_node == peer->node && p->expected_ordinal == peer->ordinal))
		return;
	if (p->expected_node == TOPO_NONE)
		add(x, ", \"expected_%c\": \"none\"", end);
	else
		add(x, ", \"expected_%c\": \"%s:fab%u\"", end, t->nodes[p->expected_node].name,
			p->expected_ordinal);
}

static void add_link(struct text *x, const struct topo *t, const struct topo_link *l)
{
	const struct topo_port *a = &t->ports[l->port_a], *b = &t->ports[l->port_b];

	add(x, "{\"a\": \"%s:%s\", \"b\": \"%s:%s\", \"kind\": \"%s\"", t->nodes[a->node].name,
		a->name, t->nodes[b->node].name, b->name, topo_link_kind_name(l->kind));
	if (l->rate_bps == 0)
		add(x, ", \"rate\": \"unlimited\"");
	else
		add(x, ", \"rate\": %" PRIu64, l->rate_bps);
	add(x, ", \"delay\": %" PRIu64 ", \"jitter\": %" PRIu64 ", \"loss\": %u, \"corrupt\": %u",
		l->delay_ns, l->jitter_ns, l->loss_ppm, l->corrupt_ppm);
	add(x, ", \"queue_bytes\": %u, \"ecn_min_bytes\": %u, \"ecn_max_bytes\": %u, \"mtu\": %u",
		l->queue_bytes, l->ecn_min_bytes, l->ecn_max_bytes, l->mtu);
	if (l->kind == TOPO_LINK_EDGE)
		add(x, ", \"hyperport\": %s", l->hyperport ? "true" : "false");
	add_port(x, a, 'a');
	add_port(x, b, 'b');
	if (a->system_port != TOPO_NONE || b->system_port != TOPO_NONE)
		add(x, ", \"system_port\": %u",
			a->system_port != TOPO_NONE ? a->system_port : b->system_port);
	add_expected(x, t, a, 'a');
	add_expected(x, t, b, 'b');
	add(x, "}");
}

char *topo_print_expanded(const struct topo *t)
{
	struct text x = { .bytes = malloc(1 << 16), .cap = 1 << 16 };

	add_settings(&x, t);
	add(&x, "  \"nodes\": [");
	for (uint32_t i = 0; i < t->nodes_count; i++) {
		add(&x, "%s\n    ", i > 0 ? "," : "");
		add_node(&x, t, &t->nodes[i]);
	}
	add(&x, "\n  ],\n  \"links\": [");
	for (uint32_t i = 0; i < t->links_count; i++) {
		add(&x, "%s\n    ", i > 0 ? "," : "");
		add_link(&x, t, &t->links[i]);
	}
	add(&x, "\n  ]\n}\n");
	return x.bytes;
}
