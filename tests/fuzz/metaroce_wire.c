/*
 * The decoders: the first two bytes say how much payload is only named; the rest is a packet.
 * What decodes and can be encoded must give back the bytes that carry meaning.
 */
#include <stdlib.h>
#include <string.h>
#include "metaroce/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool held)
{
	if (!held)
		abort();
}

static void data_again(const uint8_t *bytes, int head, const struct metaroce_mch *mch,
	const struct metaroce_data *in)
{
	uint8_t again[METAROCE_HEAD_MAX];
	struct metaroce_mch mch_seen;
	struct metaroce_data out;
	uint32_t size = metaroce_wire_data_encode(again, mch, in);

	must((int)size == head && size == metaroce_wire_data_head(in->opcode, in->moved));
	must(memcmp(again, bytes, METAROCE_MCH_SIZE + METAROCE_MSGH_SIZE) == 0);
	must(metaroce_wire_mch_decode(again, size, &mch_seen) == 0);
	must(metaroce_wire_data_decode(again, size, size + in->payload, &mch_seen, &out) == head);
	must(out.msn == in->msn && out.offset == in->offset && out.payload == in->payload);
}

static void ack_again(const uint8_t *bytes, size_t size)
{
	struct metaroce_ack ack;

	if (metaroce_wire_ack_decode(bytes, size, &ack) < 0)
		return;
	for (uint32_t i = 0; i < ack.pblks; i++) {
		struct metaroce_pblk pblk;
		uint8_t again[METAROCE_PBLK_SIZE];
		uint32_t at = METAROCE_MCH_SIZE + METAROCE_ACKH_SIZE + 4u * ack.planes +
			      METAROCE_PBLK_SIZE * i;

		metaroce_wire_pblk_decode(bytes, &ack, i, &pblk);
		must(pblk.path < METAROCE_PATHS_MAX);
		metaroce_wire_pblk_encode(again, &pblk);
		must(memcmp(again, bytes + at, METAROCE_PBLK_SIZE - 2) == 0);
	}
	for (uint32_t i = 0; i < ack.sblks; i++) {
		struct metaroce_sblk sblk;

		metaroce_wire_sblk_decode(bytes, &ack, i, &sblk);
		must(sblk.qp <= METAROCE_QPN_MAX);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t again[METAROCE_HEAD_MAX];
	struct metaroce_hello hello;
	struct metaroce_probe probe;
	struct metaroce_nack nack;
	struct metaroce_mch mch;
	struct metaroce_data d;
	size_t named;
	int head;

	if (size < 2)
		return 0;
	named = (size_t)data[0] << 8 | data[1];
	data += 2;
	size -= 2;
	if (metaroce_wire_mch_decode(data, size, &mch) < 0)
		return 0;
	switch ((enum metaroce_type)mch.type) {
	case METAROCE_TYPE_DATA:
		head = metaroce_wire_data_decode(data, size, size + named, &mch, &d);
		if (head >= 0)
			data_again(data, head, &mch, &d);
		break;
	case METAROCE_TYPE_ACK: ack_again(data, size); break;
	case METAROCE_TYPE_NACK:
		if (metaroce_wire_nack_decode(data, size, &nack) == 0) {
			metaroce_wire_nack_encode(again, &mch, &nack);
			must(memcmp(again, data, 31) == 0);
		}
		break;
	case METAROCE_TYPE_CONN:
		if (metaroce_wire_hello_decode(data, size, &hello) == 0) {
			must(metaroce_wire_hello_encode(again, &mch, &hello) <= size);
			must(memcmp(again, data, METAROCE_CONN_SIZE - 2) == 0);
		}
		break;
	case METAROCE_TYPE_PROBE:
		if (metaroce_wire_probe_decode(data, size, &probe) == 0) {
			metaroce_wire_probe_encode(again, &mch, &probe);
			must(memcmp(again, data, METAROCE_PROBE_SIZE) == 0);
		}
		break;
	}
	return 0;
}
