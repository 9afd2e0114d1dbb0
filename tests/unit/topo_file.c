/*
 * Topology files to tables: names, numbers and addresses as the scheme has them; printing again.
 */
#include <stdlib.h>
#include <string.h>
#include <cjson/cJSON.h>
#include "tests/tap.h"
#include "topo/file.h"
#include "topo/keys.h"

static char *read_source(const char *name, size_t *size)
{
	const char *source = getenv("DSF_SOURCE");
	char path[4096];
	FILE *file;
	char *text = malloc(1 << 20);

	snprintf(path, sizeof(path), "%s/%s", source == NULL ? "." : source, name);
	file = fopen(path, "rb");
	if (file == NULL || text == NULL) {
		TAP_OK(false, "%s can be read", path);
		exit(TAP_DONE());
	}
	*size = fread(text, 1, 1 << 20, file);
	fclose(file);
	return text;
}

static struct topo *load_text(const char *text, size_t size, const char *name)
{
	struct topo_error err;
	struct topo *t;
	char line[2048];

	if (!TAP_OK(topo_load_text(text, size, name, &t, &err) == 0, "%s loads", name)) {
		printf("# %s\n", topo_error_line(&err, line, sizeof(line)));
		exit(TAP_DONE());
	}
	return t;
}

static struct topo *load(const char *name)
{
	size_t size;
	char *text = read_source(name, &size);
	struct topo *t = load_text(text, size, name);

	free(text);
	return t;
}

static const struct topo_node *node(const struct topo *t, const char *name)
{
	uint32_t index = topo_find_node(t, name);

	if (!TAP_OK(index != TOPO_NONE, "there is %s", name))
		exit(TAP_DONE());
	return &t->nodes[index];
}

static const struct topo_port *port(const struct topo *t, const char *name)
{
	uint32_t index = topo_find_port(t, name);

	if (!TAP_OK(index != TOPO_NONE, "there is %s", name))
		exit(TAP_DONE());
	return &t->ports[index];
}

struct want_node {
	const char *name, *loopback;
	uint32_t switch_index, ports, asn;
};

struct want_port {
	const char *name, *peer, *address, *mac;
	uint32_t system_port; /* TOPO_NONE */
};

static void check_nodes(const struct topo *t, const struct want_node *want, size_t count)
{
	char text[DSF_IP6_TEXT_MAX];

	for (size_t i = 0; i < count; i++) {
		const struct topo_node *n = node(t, want[i].name);

		TAP_OK(strcmp(dsf_ip6_text(&n->loopback, text), want[i].loopback) == 0,
			"%s: loopback %s is %s", want[i].name, text, want[i].loopback);
		TAP_EQ(n->switch_index, want[i].switch_index, "%s: switch index", want[i].name);
		TAP_EQ(n->ports_count, want[i].ports, "%s: ports", want[i].name);
		TAP_EQ(n->asn, want[i].asn, "%s: AS", want[i].name);
	}
}

static void check_ports(const struct topo *t, const struct want_port *want, size_t count)
{
	char address[DSF_IP6_TEXT_MAX], mac[DSF_MAC_TEXT_MAX];

	for (size_t i = 0; i < count; i++) {
		const struct topo_port *p = port(t, want[i].name);

		TAP_OK(&t->ports[p->peer] == port(t, want[i].peer), "%s: leads to %s", want[i].name,
			want[i].peer);
		TAP_OK(strcmp(dsf_ip6_text(&p->address, address), want[i].address) == 0,
			"%s: address %s is %s", want[i].name, address, want[i].address);
		TAP_OK(strcmp(dsf_mac_text(&p->mac, mac), want[i].mac) == 0, "%s: MAC %s is %s",
			want[i].name, mac, want[i].mac);
		TAP_EQ(p->system_port, want[i].system_port, "%s: system port", want[i].name);
	}
}

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static void mini_is_as_the_scheme_says(void)
{
	static const struct want_node nodes[] = {
		{ "b0-z0-h0", "::", TOPO_NONE, 4, 0 },
		{ "b0-z0-h3", "::", TOPO_NONE, 4, 0 },
		{ "b0-z0-p0-rdsw0", "fd5f:0:0:ff00::1", 0, 4, 4200000000u },
		{ "b0-z0-p0-rdsw3", "fd5f:0:3:ff00::1", 3, 4, 4200000000u },
		{ "b0-z0-p0-fdsw1", "::", 5, 4, 0 },
		{ "b0-z0-p1-rdsw2", "fd5f:100:2:ff00::1", 8, 4, 4200000000u },
		{ "b0-z0-p1-fdsw0", "::", 10, 4, 0 },
	};
	/* GPU r of a host in unit u is at RDSW u x 2 + r of each plane. */
	static const struct want_port ports[] = {
		{ "b0-z0-h0:gpu0p0", "b0-z0-p0-rdsw0:eth0", "fd5f::2", "06:00:00:00:00:00",
			TOPO_NONE },
		{ "b0-z0-p0-rdsw0:eth0", "b0-z0-h0:gpu0p0", "fd5f::1", "02:00:00:00:00:00", 0 },
		{ "b0-z0-h1:gpu0p1", "b0-z0-p1-rdsw0:eth1", "fd5f:100:0:100::2",
			"06:01:00:00:00:01", TOPO_NONE },
		{ "b0-z0-p1-rdsw0:eth1", "b0-z0-h1:gpu0p1", "fd5f:100:0:100::1",
			"02:01:00:00:00:01", 6 * 64 + 1 },
		{ "b0-z0-h3:gpu1p1", "b0-z0-p1-rdsw3:eth1", "fd5f:100:3:100::2",
			"06:01:00:00:03:01", TOPO_NONE },
		{ "b0-z0-p1-rdsw3:eth1", "b0-z0-h3:gpu1p1", "fd5f:100:3:100::1",
			"02:01:00:00:03:01", 9 * 64 + 1 },
		{ "b0-z0-p0-rdsw1:fab1", "b0-z0-p0-fdsw1:fab1", "::", "0a:00:00:00:00:13",
			TOPO_NONE },
		{ "b0-z0-p0-fdsw1:fab1", "b0-z0-p0-rdsw1:fab1", "::", "0e:00:00:00:00:13",
			TOPO_NONE },
	};
	struct topo *t = load("topologies/mini.json");

	TAP_EQ(t->nodes_count, 16, "16 processes");
	TAP_EQ(t->endpoints_count, 8, "8 GPUs");
	TAP_EQ(t->switches_count, 12, "12 switches");
	TAP_EQ(t->links_count, 16 + 16, "16 GPU links and 16 fabric links");
	check_nodes(t, nodes, COUNT(nodes));
	check_ports(t, ports, COUNT(ports));
	topo_free(t);
}

static void l1_zone_has_its_counts(void)
{
	struct topo *t = load("topologies/l1-zone.json");
	uint32_t roles[TOPO_ROLES_COUNT] = { 0 }, kinds[TOPO_KINDS_COUNT] = { 0 };

	for (uint32_t i = 0; i < t->nodes_count; i++)
		roles[t->nodes[i].role]++;
	for (uint32_t i = 0; i < t->links_count; i++)
		kinds[t->links[i].kind]++;
	TAP_EQ(t->endpoints_count, 16, "16 GPUs");
	TAP_EQ(roles[TOPO_ROLE_HOST], 4, "4 hosts");
	TAP_EQ(roles[TOPO_ROLE_RDSW], 2 * 8, "8 RDSWs a plane");
	TAP_EQ(roles[TOPO_ROLE_FDSW], 2 * 4, "4 FDSWs a plane");
	TAP_EQ(kinds[TOPO_LINK_GPU], 2 * 16, "a link a GPU and plane");
	TAP_EQ(kinds[TOPO_LINK_FABRIC], 2 * 8 * 4, "each RDSW to each FDSW");
	TAP_EQ(t->links[t->links_count - 1].rate_bps, 222500000000ull, "222.5G");
	topo_free(t);
}

/* Whatever the file, the table's parts agree with each other. */
static void table_is_consistent(const struct topo *t, const char *name)
{
	bool ports = true, order = true, found = true, indexes = true;

	for (uint32_t i = 0; i < t->ports_count; i++) {
		const struct topo_port *p = &t->ports[i], *q = &t->ports[p->peer];
		const struct topo_link *l = &t->links[p->link];
		char full[TOPO_NODE_NAME_MAX + TOPO_PORT_NAME_MAX + 2];

		snprintf(full, sizeof(full), "%s:%s", t->nodes[p->node].name, p->name);
		ports = ports && q->peer == i && q->link == p->link &&
			(l->port_a == i || l->port_b == i) && p->ethernet == q->ethernet;
		order = order && t->nodes[p->node].first_port + p->number == i &&
			p->number < t->nodes[p->node].ports_count;
		found = found && topo_find_port(t, full) == i;
		indexes = indexes &&
			  (p->system_port == TOPO_NONE || t->system_port_port[p->system_port] == i);
	}
	for (uint32_t i = 0; i < t->nodes_count; i++) {
		const struct topo_node *n = &t->nodes[i];

		found = found && topo_find_node(t, n->name) == i;
		indexes = indexes && (n->switch_index == TOPO_NONE ||
					     (n->switch_index < t->switches_count &&
						     t->switch_node[n->switch_index] == i));
	}
	TAP_OK(ports, "%s: ports, peers and links agree", name);
	TAP_OK(order, "%s: ports lie by node and number", name);
	TAP_OK(found, "%s: every node and port is found by name", name);
	TAP_OK(indexes, "%s: indexes lead back", name);
	TAP_EQ(topo_find_node(t, "nobody"), TOPO_NONE, "%s: an unknown node", name);
	TAP_EQ(topo_find_node(t, ""), TOPO_NONE, "%s: no node's name", name);
	TAP_EQ(topo_find_port(t, t->nodes[0].name), TOPO_NONE, "%s: a node is no port", name);
}

static void ranks_are_right(const struct topo *t, const char *name)
{
	bool ok = true;

	for (uint32_t r = 0; r < t->endpoints_count; r++) {
		struct topo_endpoint e = topo_endpoint(t, r);
		bool any = false;

		if (r > 0) {
			struct topo_endpoint before = topo_endpoint(t, r - 1);

			ok = ok && (before.host < e.host ||
					   (before.host == e.host && before.rail + 1 == e.rail));
		}
		for (uint32_t plane = 0; plane < t->planes; plane++) {
			const struct topo_port *p = topo_endpoint_port(t, r, plane);

			any = any || p != NULL;
			ok = ok && (p == NULL || (p->node == e.host && p->rail == e.rail &&
							 p->plane == plane));
		}
		ok = ok && any && e.rail < t->nodes[e.host].rails &&
		     topo_endpoint_port(t, r, t->planes) == NULL;
	}
	TAP_OK(ok && t->endpoints_count > 0, "%s: ranks by host, then rail, with their ports",
		name);
}

static const char *const good_files[] = { "topologies/bird.json", "topologies/frr.json",
	"topologies/mini.json", "topologies/l1-zone.json", "topologies/figures.json",
	"topologies/l2-zone.json", "topologies/region.json", "tests/topologies/forced.json",
	"tests/topologies/region.json", "tests/topologies/ecmp.json",
	"tests/topologies/explicit.json", "tests/topologies/beside.json",
	"tests/topologies/external.json", "tests/topologies/miscabled.json",
	"tests/topologies/bgp.json", "tests/topologies/hyperport.json" };

static bool same_ports(const struct topo *a, const struct topo *b)
{
	bool same = a->ports_count == b->ports_count;

	for (uint32_t i = 0; same && i < a->ports_count; i++)
		same = strcmp(a->ports[i].name, b->ports[i].name) == 0 &&
		       a->ports[i].withhold == b->ports[i].withhold &&
		       a->ports[i].node == b->ports[i].node &&
		       a->ports[i].peer == b->ports[i].peer &&
		       a->ports[i].link == b->ports[i].link &&
		       a->ports[i].system_port == b->ports[i].system_port &&
		       a->ports[i].hyperport == b->ports[i].hyperport;
	return same;
}

static void expanding_twice_gives_the_same_bytes(void)
{
	for (size_t i = 0; i < COUNT(good_files); i++) {
		struct topo *first = load(good_files[i]), *second;
		char *once = topo_print_expanded(first), *twice;

		table_is_consistent(first, good_files[i]);
		ranks_are_right(first, good_files[i]);
		second = load_text(once, strlen(once), "expanded");
		twice = topo_print_expanded(second);
		TAP_OK(strcmp(once, twice) == 0, "%s: expanding twice", good_files[i]);
		TAP_OK(same_ports(first, second), "%s: the table is the same too", good_files[i]);
		TAP_OK(first->credit_loop_ns == second->credit_loop_ns &&
				first->base_rtt_ns == second->base_rtt_ns &&
				first->delay_skew_ns == second->delay_skew_ns,
			"%s: what is derived is the same", good_files[i]);
		free(once);
		free(twice);
		topo_free(first);
		topo_free(second);
	}
}

static void region_has_all_tiers(void)
{
	static const struct want_node nodes[] = {
		{ "b0-west-p1-rdsw1", "fd5f:100:101:ff00::1", 19, 3, 4200000000u },
		{ "b0-p0-sdsw1", "::", 9, 12, 0 },
		{ "b0-e-p0-edsw1", "fd5f:0:ff01:ff00::1", 11, 6, 4200000000u },
		{ "b0-e-p0-fdsw0", "::", 12, 6, 0 },
		{ "south-e-p1-edsw2", "fd5f:101:ff02:ff00::1", 47, 6, 4200000001u },
		{ "p1-ssw2", "fd5f:1ff:ff02:ff00::1", TOPO_NONE, 6, 4200065536u },
	};
	static const struct want_port ports[] = {
		/* EDSW e takes SSWs 2e and 2e + 1 (mod 3), two links each. */
		{ "b0-e-p0-edsw1:eth0", "p0-ssw2:eth0", "fd5f:0:ff01::1", "02:00:00:ff:01:00",
			11 * 64 },
		{ "p0-ssw2:eth0", "b0-e-p0-edsw1:eth0", "fd5f:0:ff01::2", "06:00:00:ff:01:00",
			TOPO_NONE },
		{ "b0-e-p0-edsw1:eth2", "p0-ssw0:eth2", "fd5f:0:ff01:200::1", "02:00:00:ff:01:02",
			11 * 64 + 2 },
		/* The second link of a hyperport has nothing of its own. */
		{ "b0-e-p0-edsw1:eth3", "p0-ssw0:eth3", "::", "02:00:00:ff:01:02", TOPO_NONE },
		{ "p0-ssw0:eth3", "b0-e-p0-edsw1:eth3", "::", "06:00:00:ff:01:02", TOPO_NONE },
	};
	struct topo *t = load("tests/topologies/region.json");

	check_nodes(t, nodes, COUNT(nodes));
	check_ports(t, ports, COUNT(ports));
	TAP_OK(t->seed == UINT64_MAX, "a seed keeps all 64 bits");
	TAP_EQ(t->time_dilation, 5000, "D as set");
	TAP_EQ(t->fabric.ecn_min_ns, 7500, "ecn_min as set");
	TAP_EQ(t->fabric.weight_default, 6, "weight as set");
	TAP_EQ(t->fabric.weight_rdma, 8, "the other one by default");
	TAP_EQ(t->fabric.draw, TOPO_DRAW_RANDOM, "draw as set");
	TAP_EQ(t->links[0].loss_ppm, 1000, "0.1%% loss");
	TAP_EQ(t->links[0].corrupt_ppm, 5, "5 ppm corruption");
	TAP_EQ(t->links[0].jitter_ns, 10, "10 ns of jitter");
	TAP_EQ(node(t, "b0-e-p0-fdsw0")->zone, TOPO_NONE, "an edge PoD is no zone");
	TAP_EQ(node(t, "b0-e-p0-fdsw0")->cluster, 2, "but a cluster, the last");
	TAP_EQ(node(t, "b0-west-h0")->zone, 1, "a host's zone");
	topo_free(t);
}

static void hyperports_are_one_port(void)
{
	static const struct want_port ports[] = {
		{ "b0-e-p0-edsw0:eth0", "p0-ssw0:eth0", "fd5f:0:ff00::1", "02:00:00:ff:00:00",
			5 * 64 },
		/* Other members have nothing of their own. */
		{ "b0-e-p0-edsw0:eth3", "p0-ssw0:eth3", "::", "02:00:00:ff:00:00", TOPO_NONE },
		{ "p0-ssw0:eth3", "b0-e-p0-edsw0:eth3", "::", "06:00:00:ff:00:00", TOPO_NONE },
		/* The lowest port of the EDSW, and its peer, stand for it. */
		{ "r:eth9", "b0-e-p0-edsw0:eth4", "fd5f:0:ff00:400::2", "06:00:00:ff:00:04",
			TOPO_NONE },
		{ "r:eth8", "b0-e-p0-edsw0:eth5", "::", "06:00:00:ff:00:04", TOPO_NONE },
		/* A link beside it isn't in it. */
		{ "b0-e-p0-edsw0:eth6", "r:eth7", "fd5f:0:ff00:600::1", "02:00:00:ff:00:06",
			5 * 64 + 6 },
	};
	struct topo *t = load("tests/topologies/hyperport.json");
	const struct topo_port *first = port(t, "r:eth9"), *other = port(t, "r:eth8");

	check_ports(t, ports, COUNT(ports));
	TAP_OK(topo_port_whole(t, other) == first && topo_port_whole(t, first) == first,
		"the first member stands for the hyperport");
	TAP_EQ(port(t, "r:eth7")->hyperport, TOPO_NONE, "other ports are none");
	TAP_OK(topo_port_whole(t, port(t, "r:eth7")) == port(t, "r:eth7"),
		"and stand for themselves");
	TAP_EQ(topo_port_rate(t, port(t, "p0-ssw0:eth0")), 400000000000, "its members' rates");
	TAP_EQ(topo_port_rate(t, port(t, "r:eth7")), 100000000000, "a port's own");
	topo_free(t);
}

static void explicit_files_keep_what_they_say(void)
{
	static const struct want_node nodes[] = {
		{ "x-rdsw1", "fd5f:0:9:ff00::1", 3, 2, 4200000000u },
		{ "y-rdsw0", "fd5f:0:100:ff00::1", 40, 2, 4200000000u },
		{ "x-rdsw0", "fd5f:0:a:ff00::1", 41, 2, 65000 },
	};
	static const struct want_port ports[] = {
		{ "x-rdsw1:eth5", "h-x:gpu0p0", "fd5f:0:9:500::1", "02:00:00:00:09:05",
			3 * 64 + 5 },
		{ "sdsw0:fab7", "y-fdsw0:fab9", "::", "0e:00:00:00:00:00", TOPO_NONE },
	};
	struct topo *t = load("tests/topologies/explicit.json");

	check_nodes(t, nodes, COUNT(nodes));
	check_ports(t, ports, COUNT(ports));
	TAP_EQ(t->links[0].rate_bps, 0, "unlimited is 0");
	TAP_EQ(t->links[0].mtu, 256 + TOPO_TRAIN_HEADER_MAX, "one cell a frame");
	TAP_EQ(t->planes, 1, "planes follow from the nodes");
	TAP_EQ(port(t, "x-rdsw1:eth5")->number, 0, "eth ports come first");
	TAP_EQ(port(t, "sdsw0:fab3")->number, 0, "ports go by name, not by link");
	TAP_EQ(node(t, "h-y")->cluster, 1, "a host's cluster");
	TAP_EQ(node(t, "h-x")->cluster, 0, "a host is where its links lead");
	TAP_EQ(t->delay_skew_ns, 2 * (700 - 500) + 2 * (3000 - 1000), "skew of unequal links");
	topo_free(t);
}

static void external_nodes_keep_their_texts(void)
{
	static const struct topo_node_file want[] = { { "lines.conf", "one\n\n\ttwo\n" },
		{ "Text-1", "one\ntwo" }, { "empty", "" } };
	struct topo *t = load("tests/topologies/beside.json");
	char *once = topo_print_expanded(t);
	struct topo *again = load_text(once, strlen(once), "expanded");

	for (int i = 0; i < 2; i++) {
		const struct topo_external *e = node(i == 0 ? t : again, "frr")->external;

		TAP_OK(e != NULL && e->command != NULL && strcmp(e->command[0], "sh") == 0 &&
				strcmp(e->command[1], "-c") == 0 && e->command[3] == NULL,
			"the words of a command");
		TAP_OK(strcmp(e->command[2], "exec sleep 1000 # \"\\\x07\xc3\xa9") == 0,
			"whatever is in them");
		TAP_EQ(e->files_count, COUNT(want), "files");
		for (size_t k = 0; k < COUNT(want); k++)
			TAP_OK(strcmp(e->files[k].name, want[k].name) == 0 &&
					strcmp(e->files[k].text, want[k].text) == 0,
				"file %s", want[k].name);
	}
	TAP_OK(node(t, "late")->external == NULL, "a host runs nothing of the file's");
	TAP_OK(strstr(once, "\"files\": {\"lines.conf\": [\"one\", \"\", \"\\u0009two\"], "
			    "\"Text-1\": \"one\\u000atwo\", \"empty\": \"\"}") != NULL,
		"and how they are printed");
	free(once);
	topo_free(again);
	topo_free(t);
}

static void ecmp_routes_everywhere(void)
{
	struct topo *t = load("tests/topologies/ecmp.json");
	char text[DSF_IP6_TEXT_MAX];
	bool unique = true;

	for (uint32_t i = 0; i < t->ports_count; i++) {
		for (uint32_t j = 0; j < i; j++)
			unique = unique &&
				 !dsf_ip6_equal(&t->ports[i].address, &t->ports[j].address);
		unique = unique && t->ports[i].ethernet && t->ports[i].prefix_length == 64;
	}
	TAP_OK(unique, "every port has an address of its own");
	TAP_OK(strcmp(dsf_ip6_text(&port(t, "b0-z1-p0-fdsw1:fab0")->address, text),
		       "fd5f:0:100:101::2") == 0,
		"far end of a fabric link: %s", text);
	TAP_OK(strcmp(dsf_ip6_text(&node(t, "b0-z1-p0-fdsw1")->loopback, text),
		       "fd5f:0:8101:ff00::1") == 0,
		"loopback of an FDSW: %s", text);
	TAP_EQ(t->credit_loop_ns, 0, "no credits");
	TAP_EQ(t->transport.payload_bytes, 8192, "8K");
	topo_free(t);
}

/* The schema's object of a key table, where the top stands for the whole. */
static const cJSON *schema_object(const cJSON *schema, const char *name)
{
	const cJSON *defs = cJSON_GetObjectItemCaseSensitive(schema, "$defs");

	return strcmp(name, "top") == 0 ? schema : cJSON_GetObjectItemCaseSensitive(defs, name);
}

static void schema_knows_the_same_keys(void)
{
	size_t size;
	char *text = read_source("topologies/dsfemu.schema.json", &size);
	cJSON *schema = cJSON_ParseWithLength(text, size);

	for (int i = 0; topo_keys_all[i] != NULL; i++) {
		const struct topo_keys *keys = topo_keys_all[i];
		const cJSON *object = schema_object(schema, keys->object);
		const cJSON *properties = cJSON_GetObjectItemCaseSensitive(object, "properties");
		const cJSON *required = cJSON_GetObjectItemCaseSensitive(object, "required");
		int known = cJSON_GetArraySize(properties), needed = 0;

		for (uint32_t k = 0; k < keys->count; k++) {
			bool in_list = false;

			TAP_OK(cJSON_GetObjectItemCaseSensitive(properties, keys->keys[k].name) !=
					NULL,
				"schema: %s has %s", keys->object, keys->keys[k].name);
			for (const cJSON *c = required == NULL ? NULL : required->child; c != NULL;
				c = c->next)
				in_list =
					in_list || strcmp(c->valuestring, keys->keys[k].name) == 0;
			TAP_EQ(in_list, keys->keys[k].required, "schema: %s needs %s", keys->object,
				keys->keys[k].name);
			needed += keys->keys[k].required;
		}
		TAP_EQ(known - (object == schema), keys->count, "schema: %s has no other keys",
			keys->object);
		TAP_EQ(cJSON_GetArraySize(required), needed, "schema: %s needs no others",
			keys->object);
		TAP_OK(cJSON_IsFalse(
			       cJSON_GetObjectItemCaseSensitive(object, "additionalProperties")),
			"schema: %s refuses unknown keys", keys->object);
	}
	cJSON_Delete(schema);
	free(text);
}

int main(void)
{
	mini_is_as_the_scheme_says();
	l1_zone_has_its_counts();
	expanding_twice_gives_the_same_bytes();
	region_has_all_tiers();
	hyperports_are_one_port();
	explicit_files_keep_what_they_say();
	external_nodes_keep_their_texts();
	ecmp_routes_everywhere();
	schema_knows_the_same_keys();
	return TAP_DONE();
}
