#include "view/rows.h"
#include <stdlib.h>
#include <string.h>
#include "base/err.h"
#include "fabric/cell.h"
#include "tests/tap.h"
#include "topo/file.h"
#include "view/json.h"
#include "view/show.h"
#include "view/table.h"

#define TOPOLOGY                                                                                   \
	"{ \"name\": \"t\", \"planes\": 1, \"buildings\": [ { \"name\": \"b0\", \"zones\": ["      \
	" { \"name\": \"z0\", \"scaling_units\": 1, \"rails\": 2, \"hosts_per_unit\": 1,"          \
	" \"fdsw\": 2 } ] } ] }"

static struct topo *topo;

static uint32_t node(const char *name)
{
	uint32_t index = topo_find_node(topo, name);

	if (index == TOPO_NONE) {
		printf("Bail out! no node %s\n", name);
		exit(1);
	}
	return index;
}

/* JSON text of one row. */
static char *text_of(const struct node_row *row)
{
	struct view_rows v;
	cJSON *array;
	char *text;

	view_rows_begin(&v, topo, NULL);
	view_rows_append(&v, row);
	array = view_rows_finish(&v);
	text = array != NULL ? view_json_print(array, false) : NULL;
	cJSON_Delete(array);
	return text;
}

static void expect(const struct node_row *row, const char *want, const char *name)
{
	char *text = text_of(row);

	if (!TAP_OK(text != NULL && strcmp(text, want) == 0, "%s", name))
		printf("# got  %s# want %s", text != NULL ? text : "nothing\n", want);
	free(text);
}

/* Impairments in words, whole numbers and parts of units. */
static void test_members(void)
{
	static const struct {
		const char *json, *want;
	} cases[] = {
		{ "{\"loss_ppm\":10000,\"delay_ns\":10000,\"rate_bps\":100000000000}",
			"loss 1 %, delay 10 us, rate 100 Gbit/s" },
		{ "{\"reorder_ppm\":5,\"jitter_ns\":1500,\"silent\":true}",
			"reorder 0.0005 %, jitter 1.5 us, silent" },
		{ "{\"corrupt_ppm\":1000000,\"delay_ns\":0,\"silent\":[\"a:fab0\",\"b:fab1\"]}",
			"corrupt 100 %, delay 0 ns, silent a:fab0 b:fab1" },
		{ "{\"loss_ppm\":123457,\"lines\":7}", "loss 12.3457 %, lines 7" },
		{ "{}", "" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		cJSON *object = view_json_parse(cases[i].json, strlen(cases[i].json));
		char *text = view_members_text(object);

		if (!TAP_OK(text != NULL && strcmp(text, cases[i].want) == 0, "members: \"%s\"",
			    cases[i].want))
			printf("# got \"%s\"\n", text != NULL ? text : "nothing");
		free(text);
		cJSON_Delete(object);
	}
}

static void test_rows(void)
{
	uint64_t output[1] = { 0x5 }, none[1] = { 0 };
	struct node_row row = { .query = NODE_QUERY_REACHABILITY, .node = node("b0-z0-p0-fdsw1") };

	row.reachability = (struct node_row_reachability){ .destination = node("b0-z0-p0-rdsw1"),
		.output = output,
		.advertised = none,
		.withdrawn = none };
	output[0] = 0x3;
	expect(&row,
		"[{\"node\":\"b0-z0-p0-fdsw1\",\"destination\":\"b0-z0-p0-rdsw1\",\"output\":"
		"[\"fab0\",\"fab1\"],\"advertised\":[],\"withdrawn\":[],\"cut_by_balance\":false}]"
		"\n",
		"reachability: names of ports in port order");

	row = (struct node_row){ .query = NODE_QUERY_VOQ, .node = node("b0-z0-p0-rdsw0") };
	row.voq = (struct node_row_voq){ .system_port = 64,
		.traffic_class = FABRIC_CLASS_RDMA,
		.bytes = 18446744073709551615ull,
		.credits_granted = 9007199254740993ull,
		.credits_requested = 2000000000000000ull };
	expect(&row,
		"[{\"node\":\"b0-z0-p0-rdsw0\",\"system_port\":64,\"class\":\"rdma\",\"packets\":0,"
		"\"bytes\":18446744073709551615,\"credits_requested\":2000000000000000,"
		"\"credits_granted\":9007199254740993,\"dropped\":0,\"ecn_marked\":0,"
		"\"watchdog_dropped\":0,\"sent_packets\":0,\"sent_bytes\":0}]\n",
		"voq: 64-bit integers keep every digit");

	row = (struct node_row){ .query = NODE_QUERY_NDP, .node = node("b0-z0-p0-rdsw0") };
	row.neighbor = (struct node_row_neighbor){ .address = { { 0xfd, 0x5f, [15] = 2 } },
		.system_port = 3,
		.owner = node("b0-z0-p0-rdsw1"),
		.state = NODE_NEIGHBOR_INCOMPLETE };
	expect(&row,
		"[{\"node\":\"b0-z0-p0-rdsw0\",\"address\":\"fd5f::2\",\"mac\":null,"
		"\"system_port\":3,\"switch\":\"b0-z0-p0-rdsw1\",\"state\":\"incomplete\","
		"\"scope\":\"remote\"}]\n",
		"ndp: an unresolved neighbour has no MAC");

	row = (struct node_row){ .query = NODE_QUERY_PATHS, .node = node("b0-z0-h0") };
	row.path = (struct node_row_path){ .rail = 1,
		.path = 3,
		.udp_source_port = 49152,
		.state = NODE_PATH_SUSPECT,
		.rtt_ns = 12345,
		.ecn_ppm = 125000 };
	expect(&row,
		"[{\"node\":\"b0-z0-h0\",\"nic\":\"gpu1\",\"connection\":0,\"path\":3,\"plane\":0,"
		"\"udp_source_port\":49152,\"state\":\"suspect\",\"rtt_ns\":12345,\"cwnd_bytes\":0,"
		"\"ecn_fraction\":0.125,\"bytes\":0,\"retransmits\":0}]\n",
		"paths");

	row = (struct node_row){ .query = NODE_QUERY_READY, .node = node("b0-z0-h0") };
	row.missing = (struct node_row_missing){ "port", 1, TOPO_NONE };
	expect(&row,
		"[{\"node\":\"b0-z0-h0\",\"what\":\"port\",\"port\":\"gpu1p0\",\"other\":null}]\n",
		"ready: what is missing");
}

static void test_counters(void)
{
	struct view_driver_counts driver = { .nic_drops = 3, .emulator_drops = 4 };
	uint64_t errors[DSF_ERR_COUNT] = { 0 };
	struct node_row row = { .query = NODE_QUERY_COUNTERS, .node = node("b0-z0-p0-rdsw0") };
	struct view_rows v;
	cJSON *array, *o;

	errors[DSF_ERR_INDEX(DSF_E_NONEIGHBOR)] = 7;
	row.counters = (struct node_row_counters){ .cells_tx = 5, .errors = errors };
	view_rows_begin(&v, topo, &driver);
	view_rows_append(&v, &row);
	array = view_rows_finish(&v);
	o = cJSON_GetArrayItem(array, 0);
	TAP_EQ(view_json_u64(o, "nic_drops"), 3, "counters: the driver's drops are there");
	TAP_EQ(view_json_u64(o, "emulator_drops"), 4, "and are kept apart");
	o = cJSON_GetObjectItemCaseSensitive(o, "input_errors");
	TAP_OK(cJSON_GetArraySize(o) == 1 && view_json_u64(o, "no_neighbor") == 7,
		"errors: only causes that happened");
	cJSON_Delete(array);
}

static void test_flow(void)
{
	struct dsf_histogram fct = { 0 }, back;
	struct node_row row = { .query = NODE_QUERY_WORKLOAD, .node = node("b0-z0-h0") };
	struct node_row_flow flow;
	char *text, *again;
	cJSON *parsed;

	dsf_histogram_add(&fct, 10);
	dsf_histogram_add(&fct, 1000000);
	dsf_histogram_add(&fct, 1000000);
	row.flow = (struct node_row_flow){ .source = 1,
		.target = 2,
		.sender = true,
		.done = true,
		.messages = 3,
		.bytes = 1ull << 52,
		.first_at = { 123456789012345678ull >> 4 },
		.last_at = DSF_EPOCH,
		.fct = &fct,
		.retransmits = 9 };
	text = text_of(&row);
	parsed = text != NULL ? view_json_parse(text, strlen(text)) : NULL;
	TAP_EQ(view_rows_read_flow(cJSON_GetArrayItem(parsed, 0), &flow, &back), 0,
		"a flow row is read back");
	TAP_OK(memcmp(&back, &fct, sizeof(fct)) == 0, "its histogram is the same");
	row.flow = flow;
	again = text_of(&row);
	TAP_OK(again != NULL && strcmp(text, again) == 0, "and so is everything else");
	free(again);
	again = view_json_print(parsed, false);
	TAP_OK(again != NULL && strcmp(text, again) == 0,
		"and a parsed document prints as it came");
	cJSON_Delete(parsed);
	free(again);
	free(text);

	parsed = cJSON_Parse("{\"half\":\"sender\",\"done\":true,\"fct\":{\"bins\":[[976,1]]}}");
	TAP_EQ(view_rows_read_flow(parsed, &flow, &back), -DSF_E_BADFIELD,
		"a bin that isn't there");
	cJSON_Delete(parsed);
	parsed = cJSON_Parse("{\"half\":3}");
	TAP_EQ(view_rows_read_flow(parsed, &flow, &back), -DSF_E_BADFIELD, "no flow row");
	cJSON_Delete(parsed);
}

static void test_json(void)
{
	static const char *const cases[] = {
		"{\"a\":18446744073709551615,\"b\\\"9\":[-9007199254740993,1.5,0,0.25]}",
		"[2000000000000000,\"12\",true,null,{\"1\":{},\"2\":[]}]",
		"12345678901234567890",
	};
	uint64_t value;
	cJSON *json;

	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char *text;

		json = view_json_parse(cases[i], strlen(cases[i]));
		text = json != NULL ? view_json_print(json, false) : NULL;
		TAP_OK(text != NULL && strncmp(text, cases[i], strlen(cases[i])) == 0 &&
				strcmp(text + strlen(cases[i]), "\n") == 0,
			"digits are kept: %s", cases[i]);
		free(text);
		cJSON_Delete(json);
	}
	TAP_OK(view_json_parse("[1,", 3) == NULL, "half a document");
	json = view_json_parse("{\"a\":-1,\"b\":18446744073709551616,\"c\":1.5,\"d\":7}", 48);
	TAP_OK(json != NULL && view_json_u64(json, "a") == 0 && view_json_u64(json, "b") == 0 &&
			view_json_u64(json, "c") == 0 && view_json_u64(json, "d") == 7 &&
			!view_json_integer(json, &value),
		"only unsigned 64-bit integers are read as such");
	cJSON_Delete(json);
}

static void test_queries(void)
{
	enum node_query query, back;
	unsigned wrong = 0;

	for (query = NODE_QUERY_PORT; query <= NODE_QUERY_READY; query++)
		wrong += view_rows_query_parse(view_rows_query_name(query), &back) < 0 ||
			 back != query;
	TAP_EQ(wrong, 0, "names of queries lead back to them");
	TAP_EQ(view_rows_query_parse("ports", &query), -DSF_E_UNKNOWN, "no such query");
}

int main(void)
{
	struct topo_error err;

	if (topo_load_text(TOPOLOGY, strlen(TOPOLOGY), "test", &topo, &err) < 0) {
		printf("Bail out! topology\n");
		return 1;
	}
	test_members();
	test_rows();
	test_counters();
	test_flow();
	test_json();
	test_queries();
	topo_free(topo);
	return TAP_DONE();
}
