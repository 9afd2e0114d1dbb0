#include "base/cursor.h"
#include "tests/tap.h"

static void reads(void)
{
	static const uint8_t bytes[] = { 0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0xff };
	static const uint64_t want[] = { 0, 0x01, 0x0123, 0x012345, 0x01234567, 0x0123456789,
		0x0123456789ab, 0x0123456789abcd, 0x0123456789abcdef };

	for (unsigned size = 1; size <= 8; size++) {
		struct dsf_cursor c = { bytes, bytes + sizeof(bytes), false };

		TAP_EQ(dsf_cursor_be(&c, size), want[size], "%u bytes, big-endian", size);
		TAP_EQ(dsf_cursor_left(&c), sizeof(bytes) - size, "%u bytes: the rest is left",
			size);
	}
}

static void past_the_end(void)
{
	static const uint8_t bytes[] = { 1, 2, 3 };
	struct dsf_cursor c = { bytes, bytes + 3, false };

	TAP_EQ(dsf_cursor_be(&c, 2), 0x0102, "two of three");
	TAP_EQ(dsf_cursor_be(&c, 2), 0, "two of one: zero");
	TAP_OK(c.failed, "and it failed");
	TAP_EQ(c.at - bytes, 2, "and it did not move");
	TAP_EQ(dsf_cursor_be(&c, 1), 0, "the byte that is there is not read any more");
	TAP_OK(dsf_cursor_bytes(&c, 0) == NULL, "not even nothing");
	TAP_EQ(c.at - bytes, 2, "and it never moves again");
	c = (struct dsf_cursor){ bytes, bytes + 3, false };
	TAP_OK(dsf_cursor_bytes(&c, 3) == bytes && !c.failed, "all bytes at once");
	TAP_OK(dsf_cursor_bytes(&c, 0) != NULL && !c.failed, "nothing at the end is fine");
	TAP_OK(dsf_cursor_bytes(&c, 1) == NULL && c.failed, "one byte at the end is not");
	c = (struct dsf_cursor){ bytes, bytes + 3, false };
	TAP_OK(dsf_cursor_bytes(&c, SIZE_MAX) == NULL && c.failed, "SIZE_MAX bytes do not wrap");
	c = (struct dsf_cursor){ bytes, bytes + 3, false };
	dsf_cursor_skip(&c, 3);
	TAP_OK(!c.failed && dsf_cursor_left(&c) == 0, "skip to the end");
	dsf_cursor_skip(&c, 1);
	TAP_OK(c.failed, "skip past the end");
}

static void empty(void)
{
	struct dsf_cursor c = { NULL, NULL, false };
	struct dsf_writer w = { NULL, NULL, false };

	TAP_OK(dsf_cursor_bytes(&c, 0) == NULL && !c.failed, "nothing of nothing is no failure");
	TAP_EQ(dsf_cursor_be(&c, 1), 0, "a byte of nothing");
	TAP_OK(c.failed, "is a failure");
	dsf_writer_bytes(&w, NULL, 0);
	TAP_OK(!w.failed, "writing nothing to nowhere is no failure");
	dsf_writer_be(&w, 1, 1);
	TAP_OK(w.failed, "writing a byte is");
}

static void writes(void)
{
	uint8_t bytes[16];

	for (unsigned size = 1; size <= 8; size++) {
		struct dsf_writer w = { bytes, bytes + size, false };
		struct dsf_cursor c = { bytes, bytes + size, false };
		uint64_t value = 0xfedcba9876543210ull;
		uint64_t want = size == 8 ? value : value & ((1ull << (8 * size)) - 1);

		memset(bytes, 0x5c, sizeof(bytes));
		dsf_writer_be(&w, value, size);
		TAP_OK(!w.failed && w.at == bytes + size, "%u bytes fit exactly", size);
		TAP_EQ(dsf_cursor_be(&c, size), want, "%u bytes: low bytes come back", size);
		TAP_EQ(bytes[size], 0x5c, "%u bytes: nothing behind them", size);
		w = (struct dsf_writer){ bytes, bytes + size - 1, false };
		memset(bytes, 0x5c, sizeof(bytes));
		dsf_writer_be(&w, value, size);
		TAP_OK(w.failed && bytes[0] == 0x5c, "%u bytes into %u: nothing written", size,
			size - 1);
		dsf_writer_be(&w, 0, 1);
		TAP_OK(w.at == bytes && bytes[0] == 0x5c, "%u bytes: a failed writer stays", size);
	}
}

static void fixed_offsets(void)
{
	uint8_t bytes[9] = { 0 };

	dsf_store_be16(bytes + 1, 0x0102);
	TAP_OK(bytes[1] == 1 && bytes[2] == 2 && bytes[3] == 0, "store 16 unaligned");
	TAP_EQ(dsf_load_be16(bytes + 1), 0x0102, "load 16 unaligned");
	dsf_store_be32(bytes + 1, 0x01020304);
	TAP_OK(bytes[1] == 1 && bytes[4] == 4 && bytes[5] == 0, "store 32 unaligned");
	TAP_EQ(dsf_load_be32(bytes + 1), 0x01020304, "load 32 unaligned");
	dsf_store_be64(bytes + 1, 0x0102030405060708ull);
	TAP_OK(bytes[1] == 1 && bytes[8] == 8, "store 64 unaligned");
	TAP_EQ(dsf_load_be64(bytes + 1), 0x0102030405060708ull, "load 64 unaligned");
	TAP_EQ(dsf_load_le64(bytes + 1), 0x0807060504030201ull, "the other way round");
	dsf_store_le64(bytes + 1, 0x0102030405060708ull);
	TAP_EQ(dsf_load_be64(bytes + 1), 0x0807060504030201ull, "store the other way round");
	dsf_store_be64(bytes + 1, 0x0102030405060708ull);
}

int main(void)
{
	reads();
	past_the_end();
	empty();
	writes();
	fixed_offsets();
	return TAP_DONE();
}
