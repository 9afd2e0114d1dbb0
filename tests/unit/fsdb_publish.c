#include "fsdb/publish.h"
#include "base/err.h"
#include "tests/memory.h"
#include "tests/tap.h"

static struct test_memory memory = TEST_MEMORY(memory);
static struct fsdb_publisher p;

static struct fsdb_record port(uint32_t number, uint64_t rate_bps)
{
	return (struct fsdb_record){
		.kind = FSDB_KIND_PORT, .system_port = number, .rate_bps = rate_bps
	};
}

static int set(uint32_t number, uint64_t rate_bps)
{
	struct fsdb_record r = port(number, rate_bps);

	return fsdb_publish_set(&p, &r);
}

static void remove_port(uint32_t number)
{
	struct fsdb_record r = port(number, 0);

	fsdb_publish_remove(&p, &r);
}

/* A listener: its own table, and where it has read up to. */
struct listener {
	struct fsdb_table table;
	uint64_t revision;
	bool full, syncing;
	uint32_t fulls, updates, bad;
};

static void hear(struct listener *l, const struct fsdb_message *m)
{
	struct dsf_cursor in = m->records;
	struct fsdb_record r;
	bool is_set;

	switch (m->type) {
	case FSDB_SYNC:
		fsdb_table_close(&l->table, &memory.memory);
		l->syncing = true;
		l->revision = m->revision;
		l->fulls++;
		break;
	case FSDB_SYNCED:
		l->bad += !l->syncing || m->count != l->table.count;
		l->syncing = false;
		break;
	case FSDB_UPDATE:
		l->bad += m->revision != l->revision + !l->syncing;
		l->revision = m->revision;
		l->updates++;
		while (fsdb_wire_read_record(&in, &r, &is_set) > 0) {
			if (is_set)
				fsdb_table_set(&l->table, &memory.memory, &r);
			else
				l->bad += fsdb_table_remove(&l->table, &r) < 0;
		}
		break;
	default: l->bad++;
	}
}

/* One chunk; false: there was none. */
static bool read_chunk(struct listener *l)
{
	struct fsdb_chunk *chunk = fsdb_publish_next(&p, l->revision, l->full);
	struct fsdb_message m;

	if (chunk == NULL)
		return false;
	for (uint32_t at = 0; at < chunk->size;) {
		int size = fsdb_wire_size(chunk->bytes + at, chunk->size - at);

		if (size <= 0 || fsdb_wire_read(&m, chunk->bytes + at, (size_t)size) < 0) {
			l->bad++;
			break;
		}
		hear(l, &m);
		at += (uint32_t)size;
	}
	l->bad += l->revision != chunk->revision;
	l->full = false;
	fsdb_chunk_release(&memory.memory, chunk);
	return true;
}

static void read_all(struct listener *l)
{
	fsdb_publish_commit(&p);
	while (read_chunk(l))
		;
}

static bool same(const struct listener *l)
{
	if (l->table.count != p.table.count)
		return false;
	for (uint32_t i = 0; i < l->table.count; i++)
		if (!fsdb_table_same(&l->table.records[i], &p.table.records[i]))
			return false;
	return l->bad == 0;
}

static void close_all(struct listener *listeners, uint32_t count, const char *name)
{
	for (uint32_t i = 0; i < count; i++)
		fsdb_table_close(&listeners[i].table, &memory.memory);
	fsdb_publish_close(&p);
	TAP_EQ(memory.live, 0, "%s: nothing is left", name);
}

static void test_once(void)
{
	struct listener l[100] = { 0 };
	uint64_t encoded;
	bool all = true;

	fsdb_publish_init(&p, &memory.memory);
	for (uint32_t i = 0; i < 100; i++)
		l[i].full = true;
	for (uint32_t i = 0; i < 64; i++)
		set(i, 1);
	for (uint32_t i = 0; i < 100; i++)
		read_all(&l[i]);
	TAP_EQ(p.encoded, 2, "a delta and the full state are encoded once for a hundred");
	encoded = p.encoded;
	set(5, 2);
	set(6, 2);
	remove_port(7);
	for (uint32_t i = 0; i < 100; i++)
		read_all(&l[i]);
	TAP_EQ(p.encoded, encoded + 1, "three changes at once are one delta");
	set(5, 2);
	remove_port(7);
	TAP_OK(!fsdb_publish_commit(&p), "what changes nothing is no change");
	l[0].full = true;
	read_all(&l[0]);
	l[1].full = true;
	read_all(&l[1]);
	TAP_EQ(p.encoded, encoded + 2, "two latecomers share a new full state");
	for (uint32_t i = 0; i < 100; i++)
		all &= same(&l[i]);
	TAP_OK(all, "all have what is published");
	close_all(l, 100, "once");
}

static void test_behind(void)
{
	struct listener l[2] = { { .full = true }, { .full = true } };

	fsdb_publish_init(&p, &memory.memory);
	set(0, 1);
	read_all(&l[0]);
	read_all(&l[1]);
	for (uint32_t i = 0; i < FSDB_LOG_MAX; i++) {
		set(1, i);
		read_all(&l[0]);
	}
	read_all(&l[1]);
	TAP_EQ(l[1].fulls, 1, "who is as far behind as the log reaches gets deltas");
	for (uint32_t i = 0; i <= FSDB_LOG_MAX; i++) {
		set(2, i + 7);
		read_all(&l[0]);
	}
	read_all(&l[1]);
	TAP_EQ(l[1].fulls, 2, "who is further behind gets the full state");
	TAP_EQ(l[0].fulls, 1, "who isn't doesn't");
	TAP_OK(same(&l[0]) && same(&l[1]), "both have what is published");
	close_all(l, 2, "behind");
}

/* Full states and deltas of more than a message. */
static void test_large(void)
{
	struct listener l = { .full = true };
	struct fsdb_record r = { .kind = FSDB_KIND_NEIGHBOR, .system_port = 1 };
	int err = 0;

	fsdb_publish_init(&p, &memory.memory);
	read_all(&l);
	for (uint32_t i = 0; err == 0; i++) {
		r.address = (struct dsf_ip6){ { [0] = 0xfd,
			[1] = (uint8_t)(i * 7),
			[14] = (uint8_t)(i >> 8),
			[15] = (uint8_t)i } };
		err = fsdb_publish_set(&p, &r);
	}
	TAP_EQ(err, -DSF_E_FULL, "there is a limit");
	read_all(&l);
	TAP_OK(l.updates > 9, "many records go by several messages");
	TAP_OK(same(&l), "deltas have said all of it");
	l.full = true;
	read_all(&l);
	TAP_OK(same(&l) && l.fulls == 2, "and so does the full state");
	close_all(&l, 1, "large");
}

/* Whatever allocation of the publisher fails, its listener has all of it in the end. */
static void test_memory(void)
{
	bool all = true;
	unsigned long fail = 0;

	do {
		struct listener l = { .full = true };
		struct fsdb_chunk *chunk;

		fsdb_publish_init(&p, &memory.memory);
		set(0, 1);
		read_all(&l);
		memory.failed = false;
		memory.fail_at = ++fail;
		for (uint32_t i = 1; i < 20; i++)
			(void)set(i, 2);
		fsdb_publish_commit(&p);
		chunk = fsdb_publish_next(&p, l.revision, fail % 2);
		fsdb_chunk_release(&memory.memory, chunk);
		memory.fail_at = 0;
		read_all(&l);
		all &= same(&l);
		fsdb_table_close(&l.table, &memory.memory);
		fsdb_publish_close(&p);
	} while (memory.failed && all);
	TAP_OK(all, "any of %lu allocations may fail", fail);
	TAP_OK(fail > 2, "and some did");
	TAP_EQ(memory.live, 0, "memory: nothing is left");
}

int main(void)
{
	test_once();
	test_behind();
	test_large();
	test_memory();
	return TAP_DONE();
}
