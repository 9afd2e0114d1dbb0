/*
 * Exact bytes of every packet kind, encode and decode giving back what went in, and everything
 * that a decoder has to refuse.
 */
#include <stdlib.h>
#include <string.h>
#include "base/err.h"
#include "metaroce/wire.h"
#include "tests/hex.h"
#include "tests/tap.h"

static const struct metaroce_mch mch = { .type = METAROCE_TYPE_DATA,
	.flags = METAROCE_FLAG_RTX | METAROCE_FLAG_LAST,
	.path = 5,
	.connection = 0x11223344,
	.sequence = 0x55667788,
	.tx_ts = 0x99aabbcc,
	.epoch = 7,
	.plane = 3,
	.backlog = 0x0102 };

static bool same(const uint8_t *got, size_t size, const char *want)
{
	uint8_t bytes[METAROCE_HEAD_MAX];
	size_t count = from_hex(want, bytes);

	if (count == size && memcmp(got, bytes, size) == 0)
		return true;
	printf("# got ");
	for (size_t i = 0; i < size; i++)
		printf("%02x%s", got[i], i % 4 == 3 ? " " : "");
	printf("\n");
	return false;
}

static const struct metaroce_data write_data = { .opcode = METAROCE_OP_WRITE,
	.mflags = METAROCE_MFLAG_SOLICITED,
	.msn = 0x01020304,
	.offset = 0x2000,
	.message_size = 0x3000,
	.source_qp = 0xabcdef,
	.target_qp = 0x123456,
	.address = 0x1122334455667788,
	.key = 0xdeadbeef,
	.length = 0x1000 };

static void write_has_these_bytes(void)
{
	uint8_t bytes[METAROCE_HEAD_MAX];
	uint32_t size = metaroce_wire_data_encode(bytes, &mch, &write_data);

	TAP_EQ(size, 68, "write: head size");
	TAP_EQ(metaroce_wire_data_head(METAROCE_OP_WRITE, false), 68, "write: as announced");
	TAP_OK(same(bytes, size,
		       "10 90 0005 11223344 55667788 99aabbcc 07 03 0102"
		       "01020304 00000000 00002000 00003000 abcdef 01"
		       "0a 80 ffff 00 123456 00 020304"
		       "1122334455667788 deadbeef 00001000"),
		"write: exact bytes");
}

static void moved_write_has_these_bytes(void)
{
	struct metaroce_mch moved_mch = mch;
	struct metaroce_data data = write_data;
	uint8_t bytes[METAROCE_HEAD_MAX];
	uint32_t size;

	moved_mch.flags = METAROCE_FLAG_MOVED | METAROCE_FLAG_ACKREQ;
	data.moved = true;
	data.moved_path = 9;
	data.moved_epoch = 2;
	data.moved_sequence = 0xcafef00d;
	data.mflags = 0;
	size = metaroce_wire_data_encode(bytes, &moved_mch, &data);
	TAP_OK(same(bytes, size,
		       "10 48 0005 11223344 55667788 99aabbcc 07 03 0102"
		       "01020304 00000000 00002000 00003000 abcdef 00"
		       "0009 02 00 cafef00d"
		       "0a 00 ffff 00 123456 80 020304"
		       "1122334455667788 deadbeef 00001000"),
		"moved write: exact bytes");
}

static void every_opcode_comes_back(void)
{
	static const struct {
		uint8_t opcode;
		uint32_t size;
	} kinds[] = { { METAROCE_OP_SEND, 52 }, { METAROCE_OP_SEND_IMM, 56 },
		{ METAROCE_OP_WRITE, 68 }, { METAROCE_OP_WRITE_IMM, 72 },
		{ METAROCE_OP_READ_REQUEST, 68 }, { METAROCE_OP_READ_RESPONSE, 56 },
		{ METAROCE_OP_ATOMIC_RESPONSE, 64 }, { METAROCE_OP_COMPARE_SWAP, 80 },
		{ METAROCE_OP_FETCH_ADD, 80 } };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct metaroce_data in = write_data, out;
		struct metaroce_mch seen;
		uint8_t bytes[METAROCE_HEAD_MAX] = { 0 };
		uint32_t size, payload = kinds[i].opcode == METAROCE_OP_READ_REQUEST ? 0 : 100;

		in.opcode = kinds[i].opcode;
		in.rq_match = 77;
		in.length = 100;
		in.swap_add = 0x0102030405060708;
		in.compare = 0x1112131415161718;
		in.original = 0x2122232425262728;
		in.syndrome = 0x60000001;
		in.immediate = 0xa1b2c3d4;
		size = metaroce_wire_data_encode(bytes, &mch, &in);
		TAP_EQ(size, kinds[i].size, "opcode %02x: size", kinds[i].opcode);
		TAP_EQ(metaroce_wire_mch_decode(bytes, size, &seen), 0, "opcode %02x: header",
			kinds[i].opcode);
		memset(&out, 0, sizeof(out));
		TAP_EQ(metaroce_wire_data_decode(bytes, size, size + payload, &seen, &out),
			(int)size, "opcode %02x: decodes", kinds[i].opcode);
		TAP_OK(out.opcode == in.opcode && out.msn == in.msn && out.rq_match == 77 &&
				out.offset == in.offset && out.message_size == in.message_size &&
				out.source_qp == in.source_qp && out.target_qp == in.target_qp &&
				out.mflags == in.mflags && out.payload == payload && !out.moved,
			"opcode %02x: message header", kinds[i].opcode);
		TAP_OK((out.address == in.address && out.key == in.key) || kinds[i].size == 52 ||
				kinds[i].size == 56 || kinds[i].size == 64,
			"opcode %02x: address and key", kinds[i].opcode);
		for (uint32_t cut = 0; cut < size; cut++) {
			int err = cut < METAROCE_MCH_SIZE
					  ? metaroce_wire_mch_decode(bytes, cut, &seen)
					  : metaroce_wire_data_decode(
						    bytes, cut, cut + payload, &seen, &out);

			if (err != -DSF_E_TRUNCATED)
				TAP_EQ(err, -DSF_E_TRUNCATED, "opcode %02x cut at %u",
					kinds[i].opcode, cut);
		}
	}
}

static void bad_heads_are_refused(void)
{
	static const struct {
		const char *name;
		uint32_t at;
		uint8_t value;
		int want;
	} bad[] = { { "version 0", 0, 0x00, -DSF_E_VERSION },
		{ "version 2", 0, 0x20, -DSF_E_VERSION }, { "type 5", 0, 0x15, -DSF_E_BADFIELD },
		{ "reserved flag", 1, 0x01, -DSF_E_BADFIELD },
		{ "path 256", 2, 0x01, -DSF_E_BADFIELD }, { "plane 16", 17, 16, -DSF_E_BADFIELD },
		{ "message flag", 39, 0x10, -DSF_E_BADFIELD },
		{ "offset behind the end", 28, 1, -DSF_E_BADFIELD },
		{ "opcode 0", 40, 0x00, -DSF_E_UNSUPPORTED },
		{ "CNP", 40, 0x81, -DSF_E_UNSUPPORTED },
		{ "length isn't the payload's", 66, 0x11, -DSF_E_BADFIELD } };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		uint8_t bytes[METAROCE_HEAD_MAX];
		struct metaroce_mch seen;
		struct metaroce_data data;
		uint32_t size = metaroce_wire_data_encode(bytes, &mch, &write_data);
		int err;

		bytes[bad[i].at] = bad[i].value;
		err = metaroce_wire_mch_decode(bytes, size, &seen);
		if (err == 0)
			err = metaroce_wire_data_decode(bytes, size, size + 0x1000, &seen, &data);
		TAP_EQ(err, bad[i].want, "%s", bad[i].name);
	}
}

static void ack_comes_back(void)
{
	struct metaroce_mch ack_mch = mch;
	struct metaroce_ack in = { .pblks = 2,
		.sblks = 3,
		.planes = 4,
		.active_senders = 9,
		.hint_epoch = 10,
		.rx_bytes = 0x12345678,
		.max_inflight = 99,
		.share = { 40000000, 0, 1, UINT32_MAX } },
			    out;
	struct metaroce_pblk pblk = { .path = 17,
		.epoch = 3,
		.flags = METAROCE_PBLK_GAP,
		.next = 1000,
		.sack = { 1, 2, 3, 1ull << 63 },
		.ecn_packets = 5,
		.rx_packets = 6,
		.ts_echo = 7,
		.ack_delay = 8 },
			     got;
	struct metaroce_sblk sblk = { .qp = 0x00ffee, .syndrome = 0, .msn = 44 }, stream;
	uint8_t bytes[METAROCE_HEAD_MAX];
	uint32_t size;

	ack_mch.type = METAROCE_TYPE_ACK;
	ack_mch.flags = 0;
	size = metaroce_wire_ack_encode(bytes, &ack_mch, &in);
	TAP_OK(same(bytes, size,
		       "11 00 0005 11223344 55667788 99aabbcc 07 03 0102"
		       "02 03 04 00 0009 000a 12345678 00000063"
		       "02625a00 00000000 00000001 ffffffff"),
		"ack: exact bytes of the head");
	for (uint32_t i = 0; i < 2; i++, size += METAROCE_PBLK_SIZE)
		metaroce_wire_pblk_encode(bytes + size, &pblk);
	TAP_OK(same(bytes + size - METAROCE_PBLK_SIZE, METAROCE_PBLK_SIZE,
		       "0011 03 01 000003e8 0000000000000001 0000000000000002 0000000000000003"
		       "8000000000000000 00000005 00000006 00000007 0008 0000"),
		"ack: exact bytes of a path block");
	for (uint32_t i = 0; i < 3; i++, size += METAROCE_SBLK_SIZE)
		metaroce_wire_sblk_encode(bytes + size, &sblk);
	TAP_OK(same(bytes + size - METAROCE_SBLK_SIZE, METAROCE_SBLK_SIZE, "00ffee 00 0000002c"),
		"ack: exact bytes of a stream block");
	TAP_EQ(metaroce_wire_ack_decode(bytes, size, &out), 0, "ack: decodes");
	TAP_OK(out.pblks == 2 && out.sblks == 3 && out.planes == 4 && out.share[0] == 40000000 &&
			out.share[3] == UINT32_MAX && out.active_senders == 9 &&
			out.hint_epoch == 10,
		"ack: what went in");
	metaroce_wire_pblk_decode(bytes, &out, 1, &got);
	TAP_OK(got.path == 17 && got.epoch == 3 && got.next == 1000 && got.sack[3] == 1ull << 63 &&
			got.ecn_packets == 5 && got.rx_packets == 6 && got.ts_echo == 7 &&
			got.ack_delay == 8,
		"ack: path block");
	metaroce_wire_sblk_decode(bytes, &out, 2, &stream);
	TAP_OK(stream.qp == 0x00ffee && stream.msn == 44, "ack: stream block");
	for (uint32_t cut = 0; cut < size; cut++) {
		if (metaroce_wire_ack_decode(bytes, cut, &out) != -DSF_E_TRUNCATED)
			TAP_OK(false, "ack cut at %u is refused", cut);
	}
	bytes[20] = METAROCE_PBLKS_MAX + 1;
	TAP_EQ(metaroce_wire_ack_decode(bytes, size, &out), -DSF_E_BADFIELD,
		"ack: too many path blocks");
	bytes[20] = 0;
	bytes[21] = METAROCE_SBLKS_MAX + 1;
	TAP_EQ(metaroce_wire_ack_decode(bytes, size, &out), -DSF_E_BADFIELD,
		"ack: too many stream blocks");
	bytes[21] = 0;
	bytes[22] = METAROCE_PLANES_MAX + 1;
	TAP_EQ(metaroce_wire_ack_decode(bytes, size, &out), -DSF_E_BADFIELD,
		"ack: too many planes");
}

static void nack_and_probe_come_back(void)
{
	struct metaroce_mch head = mch;
	struct metaroce_nack nack = { .code = METAROCE_NACK_ACCESS,
		.timer = 3,
		.path = 4,
		.sequence = 5,
		.qp = 6,
		.msn = 7,
		.rq_match = 8,
		.offset = 9 },
			     nack_seen;
	struct metaroce_probe probe = { .id = 1,
		.tail = 2,
		.qp = 3,
		.kind = METAROCE_PROBE_FILL,
		.msn = 4 },
			      probe_seen;
	uint8_t bytes[METAROCE_HEAD_MAX];

	head.type = METAROCE_TYPE_NACK;
	metaroce_wire_nack_encode(bytes, &head, &nack);
	TAP_OK(same(bytes + 20, METAROCE_NACK_SIZE - 20,
		       "62 03 0004 00000005 000006 00 00000007 00000008 00000009"),
		"nack: exact bytes");
	TAP_EQ(metaroce_wire_nack_decode(bytes, METAROCE_NACK_SIZE, &nack_seen), 0,
		"nack: decodes");
	TAP_OK(memcmp(&nack, &nack_seen, sizeof(nack)) == 0, "nack: what went in");
	TAP_EQ(metaroce_wire_nack_decode(bytes, METAROCE_NACK_SIZE - 1, &nack_seen),
		-DSF_E_TRUNCATED, "nack: too short");
	head.type = METAROCE_TYPE_PROBE;
	metaroce_wire_probe_encode(bytes, &head, &probe);
	TAP_OK(same(bytes + 20, METAROCE_PROBE_SIZE - 20, "00000001 00000002 000003 04 00000004"),
		"probe: exact bytes");
	TAP_EQ(metaroce_wire_probe_decode(bytes, METAROCE_PROBE_SIZE, &probe_seen), 0,
		"probe: decodes");
	TAP_OK(probe_seen.id == 1 && probe_seen.tail == 2 && probe_seen.qp == 3 &&
			probe_seen.msn == 4,
		"probe: what went in");
	bytes[31] = METAROCE_PROBE_FILL + 1;
	TAP_EQ(metaroce_wire_probe_decode(bytes, METAROCE_PROBE_SIZE, &probe_seen), -DSF_E_BADFIELD,
		"probe: unknown kind");
	TAP_EQ(metaroce_wire_probe_decode(bytes, METAROCE_PROBE_SIZE - 1, &probe_seen),
		-DSF_E_TRUNCATED, "probe: too short");
}

static void hello_comes_back(void)
{
	struct metaroce_mch head = mch;
	struct metaroce_hello in = { .op = METAROCE_CONN_REQUEST,
		.version = METAROCE_VERSION,
		.paths = 16,
		.connection = 0x01020304,
		.cookie = 0x1122334455667788,
		.rate = 40000000,
		.payload_max = 4096,
		.sack_bits = 256,
		.features = 3,
		.planes = 2,
		.address = { { 0xfd, [15] = 1 } },
		.plane_address = { { { 0xfd, [15] = 1 } }, { { 0xfd, [15] = 2 } } } },
			      out;
	uint8_t bytes[METAROCE_HEAD_MAX];
	uint32_t size;

	head.type = METAROCE_TYPE_CONN;
	size = metaroce_wire_hello_encode(bytes, &head, &in);
	TAP_EQ(size, METAROCE_CONN_SIZE + 32, "hello: size");
	TAP_OK(same(bytes + 20, size - 20,
		       "01 01 0010 01020304 1122334455667788 fd0000000000000000000000 00000001"
		       "02625a00 1000 0100 00000003 02 00 0000"
		       "fd0000000000000000000000 00000001 fd0000000000000000000000 00000002"),
		"hello: exact bytes");
	TAP_EQ(metaroce_wire_hello_decode(bytes, size, &out), 0, "hello: decodes");
	TAP_OK(memcmp(&in, &out, sizeof(in)) == 0, "hello: what went in");
	for (uint32_t cut = 0; cut < size; cut++) {
		if (metaroce_wire_hello_decode(bytes, cut, &out) != -DSF_E_TRUNCATED)
			TAP_OK(false, "hello cut at %u is refused", cut);
	}
	bytes[21] = 2;
	TAP_EQ(metaroce_wire_hello_decode(bytes, size, &out), -DSF_E_VERSION, "hello: version");
	bytes[21] = 1;
	bytes[20] = 8;
	TAP_EQ(metaroce_wire_hello_decode(bytes, size, &out), -DSF_E_BADFIELD, "hello: op");
	bytes[20] = 1;
	bytes[56] = 0;
	TAP_EQ(metaroce_wire_hello_decode(bytes, size, &out), -DSF_E_BADFIELD,
		"hello: no payload at all");
	bytes[56] = 0x10;
	bytes[22] = bytes[23] = 0;
	TAP_EQ(metaroce_wire_hello_decode(bytes, size, &out), -DSF_E_BADFIELD, "hello: no paths");
	bytes[22] = 2;
	TAP_EQ(metaroce_wire_hello_decode(bytes, size, &out), -DSF_E_BADFIELD,
		"hello: too many paths");
	bytes[22] = 0;
	bytes[23] = 16;
	bytes[64] = METAROCE_PLANES_MAX + 1;
	TAP_EQ(metaroce_wire_hello_decode(bytes, size, &out), -DSF_E_BADFIELD,
		"hello: too many planes");
}

int main(void)
{
	write_has_these_bytes();
	moved_write_has_these_bytes();
	every_opcode_comes_back();
	bad_heads_are_refused();
	ack_comes_back();
	nack_and_probe_come_back();
	hello_comes_back();
	return TAP_DONE();
}
