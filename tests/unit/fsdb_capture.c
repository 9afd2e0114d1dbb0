/*
 * fsdb_capture.c - a session's bytes, which the corpus and the dissector's test have as files
 *
 * Two nodes say all that a session has to say. What each wrote is compared with
 * tests/fuzz/corpus/fsdb_wire/session0 and session1; with FSDB_CAPTURE set to a folder it is
 * written there, to take their place when the format has changed.
 */
#include "fsdb/mesh.h"
#include "tests/source.h"
#include "tests/unit/fsdb_net.h"

static struct test_memory memory = TEST_MEMORY(memory);
static uint8_t taps[2][NET_TAP_MAX];
static struct net n;

static struct dsf_ip6 host(uint32_t number)
{
	return (struct dsf_ip6){ { 0xfd, 0x5f, [13] = 1, [15] = (uint8_t)number } };
}

static void publish(uint32_t node, const struct fsdb_record *record)
{
	if (fsdb_mesh_publish(n.meshes[node], record) < 0)
		TAP_OK(false, "a record is published");
}

/* Full states, changes, a rejected update and what follows, silence, a farewell. */
static void talk(void)
{
	struct fsdb_record r;

	for (uint32_t i = 0; i < 200; i++) { /* more than a message holds */
		struct dsf_ip6 address = host(i);

		r = net_neighbor(1, i % 2, &address, i);
		publish(1, &r);
	}
	net_reach_all(&n);
	r.state = FSDB_INCOMPLETE;
	publish(1, &r);
	net_settle(&n);
	fsdb_mesh_withdraw(n.meshes[1], &r);
	net_settle(&n);
	r.since_ns = UINT64_MAX;
	publish(1, &r);
	net_settle(&n);
	r.since_ns = 7;
	publish(1, &r);
	net_pass(&n, FSDB_RETRY_NS + FSDB_HEARTBEAT_NS);
	r = net_record(FSDB_KIND_PORT, 0, 1);
	r.state = 0;
	r.scope = FSDB_SCOPE_LOCAL;
	publish(0, &r);
	net_settle(&n);
	fsdb_mesh_leave(n.meshes[0], FSDB_GOODBYE_RESTART);
	net_settle(&n);
}

static void compare(uint32_t node)
{
	const char *folder = getenv("FSDB_CAPTURE");
	char name[256];
	size_t size;
	char *want;

	snprintf(name, sizeof(name), "%s/session%u",
		folder != NULL ? folder : "tests/fuzz/corpus/fsdb_wire", node);
	if (folder != NULL) {
		FILE *file = fopen(name, "wb");

		TAP_OK(file != NULL &&
				fwrite(taps[node], 1, n.tap_size[node], file) == n.tap_size[node] &&
				fclose(file) == 0,
			"%s is written", name);
		return;
	}
	want = source_read(name, &size);
	TAP_OK(size == n.tap_size[node] && memcmp(want, taps[node], size) == 0,
		"%s: %zu bytes, as node %u wrote them", name, size, node);
	free(want);
}

int main(void)
{
	if (!net_open(&n, 2, &memory.memory))
		return 1;
	n.tap[0] = taps[0];
	n.tap[1] = taps[1];
	talk();
	TAP_OK(net_session(&n, 0, 1)->rejected == 1, "one update was rejected");
	compare(0);
	compare(1);
	net_close(&n);
	TAP_EQ(memory.live, 0, "nothing is left");
	return TAP_DONE();
}
