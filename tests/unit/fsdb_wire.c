#include "fsdb/wire.h"
#include "base/err.h"
#include "tests/tap.h"

struct row {
	const char *name;
	const char *bytes;
	size_t size;
	int want;
};

#define ROW(name, bytes, want)                                                                     \
	{                                                                                          \
		name, bytes, sizeof(bytes) - 1, want                                               \
	}

static const struct row messages[] = {
	ROW("only a size", "\0\2", -DSF_E_TRUNCATED),
	ROW("size is another", "\0\5\1\7", -DSF_E_BADFIELD),
	ROW("version 0", "\0\4\0\7", -DSF_E_VERSION),
	ROW("version 2", "\0\4\2\7", -DSF_E_VERSION),
	ROW("type 0", "\0\4\1\0", -DSF_E_BADFIELD),
	ROW("type 9", "\0\4\1\11", -DSF_E_BADFIELD),
	ROW("HELLO without id", "\0\10\1\1FSDB", -DSF_E_TRUNCATED),
	ROW("HELLO with another magic", "\0\14\1\1FSDC\0\0\0\3", -DSF_E_BADFIELD),
	ROW("HELLO", "\0\14\1\1FSDB\0\0\0\3", 0),
	ROW("HELLO with more behind it", "\0\15\1\1FSDB\0\0\0\3\0", -DSF_E_BADFIELD),
	ROW("SUBSCRIBE", "\0\4\1\2", 0),
	ROW("SUBSCRIBE with a body", "\0\5\1\2\0", -DSF_E_BADFIELD),
	ROW("SYNC of 7 bytes", "\0\13\1\3\0\0\0\0\0\0\0", -DSF_E_TRUNCATED),
	ROW("SYNC", "\0\14\1\3\0\0\0\0\0\0\0\1", 0),
	ROW("SYNCED", "\0\10\1\4\0\0\0\1", 0),
	ROW("SYNCED of 3 bytes", "\0\7\1\4\0\0\1", -DSF_E_TRUNCATED),
	ROW("UPDATE without revision", "\0\4\1\5", -DSF_E_TRUNCATED),
	ROW("UPDATE without records", "\0\14\1\5\0\0\0\0\0\0\0\1", 0),
	ROW("STATE 0", "\0\5\1\6\0", 0),
	ROW("STATE 1", "\0\5\1\6\1", 0),
	ROW("STATE 2", "\0\5\1\6\2", -DSF_E_BADFIELD),
	ROW("STATE without a value", "\0\4\1\6", -DSF_E_TRUNCATED),
	ROW("HEARTBEAT", "\0\4\1\7", 0),
	ROW("GOODBYE", "\0\5\1\10\1", 0),
	ROW("GOODBYE for no known reason", "\0\5\1\10\2", -DSF_E_BADFIELD),
};

static const struct row sizes[] = {
	ROW("nothing", "", 0),
	ROW("one byte", "\0", 0),
	ROW("3: less than a header", "\0\3", -DSF_E_BADFIELD),
	ROW("4", "\0\4", 4),
	ROW("4096", "\20\0", 4096),
	ROW("4097: above the limit", "\20\1", -DSF_E_BADFIELD),
};

#define PORT      "\1\1\0\0\0\5"
#define INTERFACE "\1\2\0\0\0\5"
#define NEIGHBOR  "\1\3\0\0\0\5"
#define ADDRESS   "\xfd\x5f\0\0\0\0\0\0\0\0\0\0\0\0\0\1"
#define MAC       "\2\0\0\0\0\1"

static const struct row records[] = {
	ROW("no record", "", 0),
	ROW("only an operation", "\1", -DSF_E_TRUNCATED),
	ROW("operation 2", "\2\1\0\0\0\5", -DSF_E_BADFIELD),
	ROW("kind 0", "\1\0\0\0\0\5", -DSF_E_BADFIELD),
	ROW("kind 4", "\1\4\0\0\0\5", -DSF_E_BADFIELD),
	ROW("a port's removal", "\0\1\0\0\0\5", 1),
	ROW("a port's removal, cut", "\0\1\0\0\0", -DSF_E_TRUNCATED),
	ROW("port", PORT "\0\1\0\0\0\0\0\0\0\1", 1),
	ROW("port, cut", PORT "\0\1\0\0\0\0\0\0\0", -DSF_E_TRUNCATED),
	ROW("port of scope 2", PORT "\2\1\0\0\0\0\0\0\0\1", -DSF_E_BADFIELD),
	ROW("port that is up 2", PORT "\0\2\0\0\0\0\0\0\0\1", -DSF_E_BADFIELD),
	ROW("interface", INTERFACE "\1\100\x23\x28" MAC ADDRESS, 1),
	ROW("interface, cut", INTERFACE "\1\100\x23\x28" MAC, -DSF_E_TRUNCATED),
	ROW("interface of scope 2", INTERFACE "\2\100\x23\x28" MAC ADDRESS, -DSF_E_BADFIELD),
	ROW("interface with a prefix of 129", INTERFACE "\0\x81\x23\x28" MAC ADDRESS,
		-DSF_E_BADFIELD),
	ROW("neighbor", NEIGHBOR "\1" MAC ADDRESS "\0\0\0\0\0\0\0\1", 1),
	ROW("neighbor, cut", NEIGHBOR "\1" MAC ADDRESS "\0\0\0\0\0\0\0", -DSF_E_TRUNCATED),
	ROW("neighbor in state 3", NEIGHBOR "\3" MAC ADDRESS "\0\0\0\0\0\0\0\1", -DSF_E_BADFIELD),
	ROW("a neighbor's removal", "\0\3\0\0\0\5" ADDRESS, 1),
	ROW("a neighbor's removal without address", "\0\3\0\0\0\5", -DSF_E_TRUNCATED),
};

static void test_read(void)
{
	for (size_t i = 0; i < sizeof(messages) / sizeof(*messages); i++) {
		struct fsdb_message m;

		TAP_EQ(fsdb_wire_read(&m, (const uint8_t *)messages[i].bytes, messages[i].size),
			messages[i].want, "message: %s", messages[i].name);
	}
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		TAP_EQ(fsdb_wire_size((const uint8_t *)sizes[i].bytes, sizes[i].size),
			sizes[i].want, "size: %s", sizes[i].name);
	for (size_t i = 0; i < sizeof(records) / sizeof(*records); i++) {
		const uint8_t *bytes = (const uint8_t *)records[i].bytes;
		struct dsf_cursor in = { bytes, bytes + records[i].size, false };
		struct fsdb_record r;
		bool set;

		TAP_EQ(fsdb_wire_read_record(&in, &r, &set), records[i].want, "record: %s",
			records[i].name);
	}
}

static const struct fsdb_record samples[] = {
	{ .kind = FSDB_KIND_PORT,
		.system_port = 0x01020304,
		.scope = FSDB_SCOPE_LOCAL,
		.state = 1,
		.rate_bps = 0x1122334455667788 },
	{ .kind = FSDB_KIND_INTERFACE,
		.system_port = 70,
		.scope = FSDB_SCOPE_LOCAL,
		.prefix_length = 64,
		.mtu = 9000,
		.mac = { { 1, 2, 3, 4, 5, 6 } },
		.address = { { 0xfd, [15] = 9 } } },
	{ .kind = FSDB_KIND_NEIGHBOR,
		.system_port = 71,
		.state = FSDB_STATIC,
		.mac = { { 6, 5, 4, 3, 2, 1 } },
		.address = { { 0xfd, [15] = 8 } },
		.since_ns = 0x8877665544332211 },
};

/* What is written is read back, whole, field by field. */
static void test_write(void)
{
	uint8_t bytes[FSDB_MESSAGE_MAX];
	struct dsf_writer w = { bytes, bytes + sizeof(bytes), false };
	struct fsdb_message m = { .type = FSDB_UPDATE, .revision = 0x0102030405060708 }, back;
	struct fsdb_record r;
	bool set;

	fsdb_wire_write(&w, &m);
	for (unsigned i = 0; i < 6; i++)
		fsdb_wire_write_record(&w, &samples[i % 3], i < 3);
	fsdb_wire_finish(bytes, (size_t)(w.at - bytes));
	TAP_EQ(fsdb_wire_read(&back, bytes, (size_t)(w.at - bytes)), 0, "an UPDATE is read back");
	TAP_EQ(back.revision, m.revision, "with its revision");
	for (unsigned i = 0; i < 6; i++) {
		struct fsdb_record want = samples[i % 3];

		if (i >= 3) {
			want = (struct fsdb_record){ .kind = want.kind,
				.system_port = want.system_port };
			if (want.kind == FSDB_KIND_NEIGHBOR)
				want.address = samples[2].address;
		}
		TAP_EQ(fsdb_wire_read_record(&back.records, &r, &set), 1, "record %u", i);
		TAP_EQ(set, i < 3, "record %u: its operation", i);
		TAP_OK(memcmp(&r, &want, sizeof(r)) == 0, "record %u: its fields", i);
	}
	TAP_EQ(fsdb_wire_read_record(&back.records, &r, &set), 0, "and no more");
}

static void test_limits(void)
{
	for (unsigned type = FSDB_HELLO; type <= FSDB_GOODBYE; type++) {
		struct fsdb_message m = { .type = (enum fsdb_message_type)type }, back;
		uint8_t bytes[FSDB_CONTROL_MAX];
		struct dsf_writer w = { bytes, bytes + sizeof(bytes), false };

		fsdb_wire_write(&w, &m);
		TAP_OK(!w.failed, "a message of type %u fits into FSDB_CONTROL_MAX", type);
		TAP_EQ(fsdb_wire_read(&back, bytes, (size_t)(w.at - bytes)), 0, "and is read back");
		TAP_EQ(back.type, type, "as that type");
	}
	for (unsigned i = 0; i < 3; i++) {
		uint8_t bytes[FSDB_RECORD_MAX];
		struct dsf_writer w = { bytes, bytes + sizeof(bytes), false };

		fsdb_wire_write_record(&w, &samples[i], true);
		TAP_OK(!w.failed, "a record of kind %u fits into FSDB_RECORD_MAX", samples[i].kind);
	}
}

int main(void)
{
	test_read();
	test_write();
	test_limits();
	return TAP_DONE();
}
