#include "view/report.h"
#include <stdlib.h>
#include <string.h>
#include "tests/memory.h"
#include "tests/tap.h"
#include "topo/file.h"
#include "view/json.h"

#define TOPOLOGY                                                                                   \
	"{ \"name\": \"t\", \"planes\": 1, \"buildings\": [ { \"name\": \"b0\", \"zones\": ["      \
	" { \"name\": \"z0\", \"scaling_units\": 2, \"rails\": 1, \"hosts_per_unit\": 1,"          \
	" \"fdsw\": 1 } ] } ] }"

static struct topo *topo;

static void add(struct node_report *r, bool sender, uint64_t at_ns, const struct dsf_histogram *fct)
{
	struct node_row_flow row = { .source = 0,
		.target = 1,
		.sender = sender,
		.done = true,
		.messages = 4,
		.bytes = 4096,
		.first_at = { 1000 },
		.last_at = { at_ns },
		.fct = fct,
		.retransmits = sender ? 2 : 0 };

	TAP_EQ(node_report_add(r, &row), 0, "%s's half", sender ? "sender" : "receiver");
}

static void test_report(void)
{
	struct test_memory memory = TEST_MEMORY(memory);
	struct workload_flow flow = { 0, 1 };
	struct workload_spec spec = { .kind = WORKLOAD_WRITE,
		.flows = &flow,
		.flows_count = 1,
		.size_bytes = 1024,
		.iterations = 4,
		.stop_at = DSF_NEVER };
	struct view_fidelity fidelity = { false, 123, 328, 5, 2000 };
	struct dsf_histogram fct = { 0 };
	struct node_report r;
	const cJSON *part;
	cJSON *o;
	char *text;

	dsf_histogram_add(&fct, 500);
	TAP_EQ(node_report_init(&r, topo, &spec, &memory.memory), 0, "a report");
	add(&r, true, 2000, &fct);
	add(&r, false, 3000, NULL);
	node_report_finish(&r);
	o = view_report_json(&r, 17, &fidelity);
	TAP_OK(strcmp(view_json_text(o, "workload"), "write") == 0 &&
			strcmp(view_json_text(o, "transport"), "metaroce") == 0 &&
			strcmp(view_json_text(o, "fabric"), "dsf") == 0,
		"says what ran");
	part = cJSON_GetObjectItemCaseSensitive(o, "hosts");
	TAP_OK(cJSON_GetArraySize(part) == 2 &&
			strcmp(cJSON_GetArrayItem(part, 0)->valuestring, "b0-z0-h0") == 0,
		"on which hosts");
	TAP_OK(view_json_u64(o, "bytes") == 4096 && view_json_u64(o, "bytes_zone") == 4096 &&
			view_json_u64(o, "bytes_local") == 0 && view_json_u64(o, "messages") == 4 &&
			view_json_u64(o, "retransmits") == 2 &&
			view_json_u64(o, "network_drops") == 17 &&
			view_json_u64(o, "duration_ns") == 2000,
		"and what came of it");
	TAP_OK(cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(o, "verified")), "verified");
	part = cJSON_GetObjectItemCaseSensitive(o, "fct_ns");
	TAP_EQ(view_json_u64(part, "max"), 500, "completion times");
	part = cJSON_GetObjectItemCaseSensitive(o, "fidelity");
	TAP_OK(cJSON_IsFalse(cJSON_GetObjectItemCaseSensitive(part, "valid")) &&
			view_json_u64(part, "suggested_time_dilation") == 2000,
		"fidelity");
	text = view_report_text(o);
	TAP_OK(text != NULL && strstr(text, "fidelity    INVALID") != NULL &&
			strstr(text, "try time dilation 2000\n") != NULL &&
			strstr(text, "100.0 % the zone") != NULL,
		"as text");
	free(text);
	cJSON_Delete(o);
	node_report_close(&r);
	TAP_EQ(memory.live, 0, "nothing leaks");
}

static void test_drops(void)
{
	cJSON *rows =
		cJSON_Parse("[{\"voq_drops\":1,\"nic_drops\":2,\"emulator_drops\":100,"
			    "\"reassembly_errors\":100},{\"impaired_drops\":4,\"cells_tx\":9}]");

	TAP_EQ(view_report_network_drops(rows), 7, "drops of the network, none of the emulator's");
	cJSON_Delete(rows);
}

int main(void)
{
	struct topo_error err;

	if (topo_load_text(TOPOLOGY, strlen(TOPOLOGY), "test", &topo, &err) < 0) {
		printf("Bail out! topology\n");
		return 1;
	}
	test_report();
	test_drops();
	topo_free(topo);
	return TAP_DONE();
}
