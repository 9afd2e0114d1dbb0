#include "view/show.h"
#include <stdlib.h>
#include <string.h>
#include "base/err.h"
#include "tests/tap.h"
#include "topo/file.h"
#include "view/json.h"
#include "view/rows.h"
#include "view/table.h"

#define TOPOLOGY                                                                                   \
	"{ \"name\": \"t\", \"planes\": 1, \"buildings\": [ { \"name\": \"b0\", \"zones\": ["      \
	" { \"name\": \"z0\", \"scaling_units\": 1, \"rails\": 2, \"hosts_per_unit\": 1,"          \
	" \"fdsw\": 1 } ] } ] }"

/* Two Ethernet and two fabric ports at a leaf switch. */
#define TOPOLOGY_TWO                                                                               \
	"{ \"name\": \"t\", \"planes\": 1, \"buildings\": [ { \"name\": \"b0\", \"zones\": ["      \
	" { \"name\": \"z0\", \"scaling_units\": 1, \"rails\": 2, \"hosts_per_unit\": 2,"          \
	" \"fdsw\": 2 } ] } ] }"

static struct topo *topo, *topo_two;

/* A lab in which fdsw0 hears nothing from rdsw1 and host ports are up. */
static cJSON *rows(void *user, enum node_query query, uint32_t only)
{
	struct view_rows v;

	(void)user;
	view_rows_begin(&v, topo, NULL);
	for (uint32_t i = 0; i < topo->nodes_count; i++) {
		const struct topo_node *n = &topo->nodes[i];
		struct node_row row = { .query = query, .node = i };

		if (only != TOPO_NONE && only != i)
			continue;
		if (query == NODE_QUERY_PORT) {
			for (uint32_t p = 0; p < n->ports_count; p++) {
				row.port = (struct node_row_port){ .port = p,
					.carrier = true,
					.live = !(n->role == TOPO_ROLE_FDSW && p == 1),
					.active = !(n->role == TOPO_ROLE_FDSW && p < 2),
					.drained = n->role == TOPO_ROLE_FDSW && p == 0 };
				view_rows_append(&v, &row);
			}
		} else if (query == NODE_QUERY_REACHABILITY && n->role != TOPO_ROLE_HOST) {
			for (uint32_t d = 0; d < topo->nodes_count; d++) {
				uint64_t output[1] = {
					d == topo_find_node(topo, "b0-z0-p0-rdsw1") ? 0 : 1
				};
				uint64_t none[1] = { 0 };

				if (topo->nodes[d].role != TOPO_ROLE_RDSW)
					continue;
				row.reachability = (struct node_row_reachability){ d, output, none,
					none, false };
				view_rows_append(&v, &row);
			}
		}
	}
	return view_rows_finish(&v);
}

static cJSON *no_rows(void *user, enum node_query query, uint32_t only)
{
	(void)user;
	(void)query;
	(void)only;
	return NULL;
}

static void test_unknown(void)
{
	const char *words[] = { "bgp" };
	char why[VIEW_SHOW_WHY_MAX] = "";
	struct view_show show;

	(void)view_show_parse(topo, words, 1, &show, why);
	TAP_OK(strstr(why, "bgp summary, bgp neighbors, bgp table") != NULL, "refused: %s", why);
}

static void test_parse(void)
{
	static const struct {
		const char *words[6];
		size_t count;
		int want;
		enum view_show_what what;
	} cases[] = {
		{ { "fabric" }, 1, 0, VIEW_SHOW_FABRIC },
		{ { "fabric", "topology" }, 2, 0, VIEW_SHOW_TOPOLOGY },
		{ { "fabric", "reachability" }, 2, 0, VIEW_SHOW_REACHABILITY },
		{ { "fabric", "reachability", "b0-z0-p0-rdsw1" }, 3, 0, VIEW_SHOW_REACHABILITY },
		{ { "dsf", "subscription" }, 2, 0, VIEW_SHOW_SUBSCRIPTION },
		{ { "dsf" }, 1, -DSF_E_UNKNOWN, VIEW_SHOW_SUBSCRIPTION },
		{ { "fsdb" }, 1, 0, VIEW_SHOW_FSDB },
		{ { "--node", "b0-z0-h0", "paths" }, 3, 0, VIEW_SHOW_PATHS },
		{ { "qp", "--node=b0-z0-h0" }, 2, 0, VIEW_SHOW_QP },
		{ { "fabric", "reachability", "nobody" }, 3, -DSF_E_UNKNOWN, 0 },
		{ { "fabric", "topology", "b0-z0-h0" }, 3, -DSF_E_UNKNOWN, 0 },
		{ { "fabric", "reachability", "b0-z0-h0", "x" }, 4, -DSF_E_UNKNOWN, 0 },
		{ { "port", "--node" }, 2, -DSF_E_UNKNOWN, 0 },
		{ { "reachability" }, 1, -DSF_E_UNKNOWN, 0 },
		{ { "bgp" }, 1, -DSF_E_UNKNOWN, 0 },
		{ { NULL }, 0, -DSF_E_UNKNOWN, 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char why[VIEW_SHOW_WHY_MAX] = "";
		struct view_show show;
		int err = view_show_parse(topo, cases[i].words, cases[i].count, &show, why);

		TAP_OK(err == cases[i].want &&
				(err < 0 ? why[0] != '\0' : show.what == cases[i].what),
			"%zu words: %s %s%s", cases[i].count,
			cases[i].count > 0 ? cases[i].words[0] : "",
			cases[i].count > 1 ? cases[i].words[1] : "", err < 0 ? ": refused" : "");
	}
	test_unknown();
}

static void test_run(void)
{
	struct view_show_source source = { rows, NULL };
	struct view_show show = { VIEW_SHOW_FABRIC, TOPO_NONE, TOPO_NONE };
	cJSON *result = view_show_run(&show, topo, &source), *row;
	unsigned silent = 0, drained = 0, up = 0;
	char *text;

	TAP_EQ(cJSON_GetArraySize(result), 3, "fabric: a row for each switch");
	row = cJSON_GetArrayItem(result, 2);
	TAP_OK(strcmp(view_json_text(row, "node"), "b0-z0-p0-fdsw0") == 0 &&
			view_json_u64(row, "fabric_ports") == 2 &&
			view_json_u64(row, "fabric_ports_live") == 1 &&
			view_json_u64(row, "destinations") == 2 &&
			view_json_u64(row, "destinations_reached") == 1,
		"ports and destinations are counted");
	row = cJSON_GetArrayItem(result, 0);
	TAP_OK(view_json_u64(row, "fabric_ports") == 1 && view_json_u64(row, "destinations") == 1,
		"neither Ethernet ports nor oneself");
	text = view_show_text(&show, result);
	TAP_OK(text != NULL && strstr(text, "b0-z0-p0-fdsw0") != NULL, "and printed");
	free(text);
	cJSON_Delete(result);

	show.what = VIEW_SHOW_TOPOLOGY;
	result = view_show_run(&show, topo, &source);
	TAP_EQ(cJSON_GetArraySize(result), topo->links_count, "topology: a row for each link");
	cJSON_ArrayForEach(row, result)
	{
		silent += strcmp(view_json_text(row, "state"), "silent") == 0;
		drained += strcmp(view_json_text(row, "state"), "drained") == 0;
		up += strcmp(view_json_text(row, "state"), "up") == 0;
	}
	TAP_OK(silent == 1 && drained == 1 && up == topo->links_count - 2,
		"one of them silent at one end, one drained");
	cJSON_Delete(result);

	show.what = VIEW_SHOW_REACHABILITY;
	show.destination = topo_find_node(topo, "b0-z0-p0-rdsw1");
	result = view_show_run(&show, topo, &source);
	TAP_EQ(cJSON_GetArraySize(result), 3, "reachability of one destination: a row a switch");
	cJSON_Delete(result);
	source.rows = no_rows;
	for (show.what = VIEW_SHOW_FABRIC; show.what <= VIEW_SHOW_QP; show.what++)
		TAP_OK(view_show_run(&show, topo, &source) == NULL, "%s: a source that fails",
			view_show_name(show.what));
}

/* What the leaf switch's two Ethernet and two fabric ports are. */
static struct node_row_port overdrained[4];

static cJSON *port_rows(void *user, enum node_query query, uint32_t only)
{
	uint32_t node = topo_find_node(topo_two, "b0-z0-p0-rdsw0");
	struct node_row row = { .query = query, .node = node };
	struct view_rows v;

	(void)user;
	(void)only;
	view_rows_begin(&v, topo_two, NULL);
	for (uint32_t p = 0; p < topo_two->nodes[node].ports_count && query == NODE_QUERY_PORT;
		p++) {
		row.port = overdrained[p];
		view_rows_append(&v, &row);
	}
	return view_rows_finish(&v);
}

static void test_overdrain(void)
{
	static const uint64_t G = 1000000000;
	static const struct {
		uint64_t ethernet_bps[2], fabric_bps[2];
		bool down[4]; /* no carrier, or not live */
		uint64_t want;
		const char *name;
	} cases[] = {
		{ { 400, 400 }, { 445, 445 }, { false }, 0, "healthy" },
		{ { 400, 400 }, { 426, 426 }, { false }, 1, "two ports need 853.3G: rounded up" },
		{ { 400, 400 }, { 427, 427 }, { false }, 0, "and have them" },
		{ { 400, 400 }, { 445, 445 }, { false, false, false, true }, 52, "a link is away" },
		{ { 400, 400 }, { 445, 445 }, { false, true, false, true }, 0,
			"a port that is down needs nothing" },
		{ { 400, 400 }, { 445, 445 }, { false, false, true, true }, 100, "no fabric" },
		{ { 400, 400 }, { 1, 1 }, { false }, 100, "next to none: never above 100" },
		{ { 400, 400 }, { 445, 445 }, { true, true, true, true }, 0, "no port" },
		{ { 0, 400 }, { 445, 445 }, { false }, 100, "an unlimited port" },
		{ { 400, 400 }, { 0, 445 }, { false }, 0, "an unlimited link" },
	};
	struct view_show_source source = { port_rows, NULL };
	struct view_show show = { VIEW_SHOW_FABRIC, TOPO_NONE, TOPO_NONE };

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		uint32_t seen[2] = { 0, 0 }, p = 0;
		const struct topo_node *n =
			&topo_two->nodes[topo_find_node(topo_two, "b0-z0-p0-rdsw0")];
		cJSON *result;

		for (; p < n->ports_count; p++) {
			bool cells = !topo_node_port(topo_two, n, p)->ethernet;
			uint32_t k = seen[cells]++;
			bool up = !cases[i].down[2 * cells + k];
			uint64_t rate = cells ? cases[i].fabric_bps[k] : cases[i].ethernet_bps[k];

			overdrained[p] = (struct node_row_port){ .port = p,
				.carrier = up,
				.live = up,
				.active = up,
				.rate_bps = rate * G };
		}
		result = view_show_run(&show, topo_two, &source);
		TAP_EQ(view_json_u64(cJSON_GetArrayItem(result, 0), "overdrain_percent"),
			cases[i].want, "overdrain: %s", cases[i].name);
		cJSON_Delete(result);
	}
}

static void test_table(void)
{
	static const struct view_table_column columns[] = {
		{ "NAME", "name", VIEW_TABLE_PLAIN },
		{ "RATE", "rate", VIEW_TABLE_RATE },
		{ "TIME", "time", VIEW_TABLE_TIME },
		{ "PORTS", "ports", VIEW_TABLE_PLAIN },
		{ "OK", "ok", VIEW_TABLE_PLAIN },
	};
	cJSON *json = cJSON_Parse(
		"[{\"name\":\"a\",\"rate\":400000000000,\"time\":1500,\"ports\":[\"x\",\"y\"],"
		"\"ok\":true},{\"name\":\"long\\u001bname\",\"rate\":0,\"time\":328,\"ports\":[]},"
		"{\"name\":\"b\",\"rate\":1,\"time\":1000000000,\"ports\":null,\"ok\":false}]");
	char *text = view_table_text(json, columns, 5);
	const char *want = "NAME            RATE   TIME  PORTS  OK\n"
			   "a               400G  1.5us  x,y    yes\n"
			   "long?name  unlimited  328ns  -      -\n"
			   "b                  1     1s  -      no\n";

	if (!TAP_OK(text != NULL && strcmp(text, want) == 0, "a table is aligned"))
		printf("# got:\n%s", text);
	free(text);
	cJSON_Delete(json);
	json = cJSON_CreateArray();
	text = view_table_text(json, columns, 2);
	TAP_OK(text != NULL && strcmp(text, "NAME  RATE\n") == 0, "an empty one has titles");
	free(text);
	cJSON_Delete(json);
}

int main(void)
{
	struct topo_error err;

	if (topo_load_text(TOPOLOGY, strlen(TOPOLOGY), "test", &topo, &err) < 0 ||
		topo_load_text(TOPOLOGY_TWO, strlen(TOPOLOGY_TWO), "test", &topo_two, &err) < 0) {
		printf("Bail out! topology\n");
		return 1;
	}
	test_parse();
	test_run();
	test_overdrain();
	test_table();
	topo_free(topo);
	topo_free(topo_two);
	return TAP_DONE();
}
