#include "fabric/cell.h"
#include <string.h>
#include "base/err.h"
#include "base/rng.h"
#include "tests/tap.h"

#define PAYLOAD 40u

static const struct fabric_train train = { .flags = FABRIC_TRAIN_HEARD,
	.cells = 3,
	.bytes = 100,
	.source_switch = 0x1234,
	.source_port = 0x0567,
	.depart = { 0x1122334455667788ull } };

static const struct fabric_cell data = { .kind = FABRIC_CELL_DATA,
	.flags = FABRIC_CELL_LAST | FABRIC_CELL_CE,
	.class = FABRIC_CLASS_DEFAULT,
	.index = 63,
	.size = PAYLOAD,
	.stored = PAYLOAD,
	.source = 0xa1b2,
	.destination = 0xc3d4,
	.system_port = 0x01020304,
	.link_sequence = 0xfffffffe,
	.packet_sequence = 0x89abcdef,
	.packet_size = 9216,
	.packet_stored = 9000,
	.epoch = 0x80000001 };

static const struct fabric_cell request = { .kind = FABRIC_CELL_REQUEST,
	.class = FABRIC_CLASS_RDMA,
	.source = 1,
	.destination = 0xffff,
	.system_port = UINT32_MAX,
	.link_sequence = 7,
	.epoch = UINT32_MAX,
	.waiting = 0xdeadbeef,
	.total = 0x0123456789abcdefull };

static bool same(const struct fabric_cell *a, const struct fabric_cell *b)
{
	return a->kind == b->kind && a->flags == b->flags && a->class == b->class &&
	       a->index == b->index && a->size == b->size && a->stored == b->stored &&
	       a->source == b->source && a->destination == b->destination &&
	       a->system_port == b->system_port && a->link_sequence == b->link_sequence &&
	       a->epoch == b->epoch;
}

static void trains(void)
{
	uint8_t frame[FABRIC_TRAIN_HEADER + 100] = { 0 };
	struct fabric_train got;
	dsf_instant depart;
	static const struct {
		const char *name;
		unsigned at;
		uint8_t value;
		int want;
	} wrong[] = {
		{ "another EtherType, high byte", 12, 0x86, -DSF_E_BADFIELD },
		{ "another EtherType, low byte", 13, 0xb6, -DSF_E_BADFIELD },
		{ "version 0", 14, 0, -DSF_E_VERSION },
		{ "version 2", 14, 2, -DSF_E_VERSION },
		{ "one byte more than there is", 19, 101, -DSF_E_TRUNCATED },
		{ "64 KB more than there is", 18, 0xff, -DSF_E_TRUNCATED },
	};

	fabric_train_encode(&train, frame);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		uint8_t right = frame[wrong[i].at];

		frame[wrong[i].at] = wrong[i].value;
		TAP_EQ(fabric_train_decode(&got, frame, sizeof(frame)), wrong[i].want, "train: %s",
			wrong[i].name);
		frame[wrong[i].at] = right;
	}
	for (size_t size = 0; size < sizeof(frame); size++)
		if (fabric_train_decode(&got, frame, size) != -DSF_E_TRUNCATED)
			TAP_OK(false, "train: cut to %zu bytes", size);
	TAP_OK(!fabric_train_departure(frame, FABRIC_TRAIN_HEADER - 1, &depart),
		"departure: a cut header is no train");
	frame[12] = 0x86;
	TAP_OK(!fabric_train_departure(frame, sizeof(frame), &depart),
		"departure: another EtherType is no train");
	fabric_train_encode(&train, frame);
	TAP_OK(fabric_train_departure(frame, sizeof(frame), &depart) &&
			depart.ns == train.depart.ns,
		"departure is read without decoding");
	TAP_EQ(fabric_train_decode(&got, frame, sizeof(frame)), 0, "train: decodes");
	TAP_OK(got.flags == train.flags && got.cells == train.cells && got.bytes == train.bytes &&
			got.source_switch == train.source_switch &&
			got.source_port == train.source_port && got.depart.ns == train.depart.ns,
		"train: every field comes back");
	TAP_EQ(fabric_train_decode(&got, frame, sizeof(frame) - 0), 0,
		"train: bytes exactly as many as there are");
}

static void cells(void)
{
	uint8_t raw[FABRIC_CELL_HEADER + PAYLOAD] = { 0 };
	struct fabric_cell got;
	static const struct {
		const char *name;
		unsigned at;
		uint8_t value;
		int want;
	} wrong[] = {
		{ "kind 0", FABRIC_CELL_AT_KIND, 0, -DSF_E_BADFIELD },
		{ "kind one past the last", FABRIC_CELL_AT_KIND, FABRIC_CELL_KIND_END,
			-DSF_E_BADFIELD },
		{ "kind 255", FABRIC_CELL_AT_KIND, 255, -DSF_E_BADFIELD },
		{ "class one past the last", 10, FABRIC_CLASSES, -DSF_E_BADFIELD },
		{ "more present than it stands for", FABRIC_CELL_AT_SIZE + 1, PAYLOAD - 1,
			-DSF_E_BADFIELD },
		{ "larger than any cell", FABRIC_CELL_AT_SIZE, 0x11, -DSF_E_BADFIELD },
	};

	fabric_cell_encode(&data, raw);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		uint8_t right = raw[wrong[i].at];

		raw[wrong[i].at] = wrong[i].value;
		TAP_EQ(fabric_cell_decode(&got, raw, sizeof(raw)), wrong[i].want, "cell: %s",
			wrong[i].name);
		raw[wrong[i].at] = right;
	}
	for (size_t size = 0; size < sizeof(raw); size++)
		if (fabric_cell_decode(&got, raw, size) != -DSF_E_TRUNCATED)
			TAP_OK(false, "cell: cut to %zu bytes", size);
	TAP_EQ(fabric_cell_decode(&got, raw, sizeof(raw)), sizeof(raw), "cell: decodes");
	TAP_OK(same(&got, &data) && got.packet_sequence == data.packet_sequence &&
			got.packet_size == data.packet_size &&
			got.packet_stored == data.packet_stored,
		"cell: every field comes back");
	TAP_EQ(fabric_cell_wire_bytes(raw), FABRIC_CELL_HEADER + PAYLOAD,
		"cell: is charged header and payload");
	raw[FABRIC_CELL_AT_STORED + 1] = 0;
	TAP_EQ(fabric_cell_decode(&got, raw, FABRIC_CELL_HEADER), FABRIC_CELL_HEADER,
		"cell: payload by name takes no bytes");
	TAP_EQ(fabric_cell_wire_bytes(raw), FABRIC_CELL_HEADER + PAYLOAD,
		"cell: payload by name is charged all the same");
	fabric_cell_encode(&request, raw);
	TAP_EQ(fabric_cell_decode(&got, raw, FABRIC_CELL_HEADER), FABRIC_CELL_HEADER,
		"request: a bare header");
	TAP_OK(same(&got, &request) && got.waiting == request.waiting && got.total == request.total,
		"request: every field comes back");
	TAP_EQ(fabric_cell_wire_bytes(raw), FABRIC_CELL_HEADER,
		"request: the bits of its epoch are no payload");
}

/* Any bytes: an error or a size that lies within what there is. */
static void noise(void)
{
	struct dsf_rng rng;
	unsigned outside = 0, good = 0;

	dsf_rng_init(&rng, 1);
	for (unsigned i = 0; i < 200000; i++) {
		uint8_t raw[96];
		struct fabric_cell cell;
		size_t size = dsf_rng_below(&rng, sizeof(raw) + 1);
		int taken;

		for (size_t at = 0; at < sizeof(raw); at++)
			raw[at] = (uint8_t)dsf_rng_next(&rng);
		raw[0] = (uint8_t)dsf_rng_below(&rng, 8);
		raw[10] = (uint8_t)dsf_rng_below(&rng, 4);
		if (i % 2 == 0)
			memset(raw + 2, 0, 4);
		taken = fabric_cell_decode(&cell, raw, size);
		good += taken >= 0;
		outside += taken > (int)size;
	}
	TAP_OK(outside == 0 && good > 1000, "noise: %u of 200000 decode, none beyond its end",
		good);
}

static void classes(void)
{
	unsigned wrong = 0;

	for (unsigned dscp = 0; dscp < 64; dscp++) {
		enum fabric_class want = dscp == 48                 ? FABRIC_CLASS_NC
					 : dscp >= 50 && dscp <= 59 ? FABRIC_CLASS_RDMA
								    : FABRIC_CLASS_DEFAULT;

		wrong += fabric_class_of_dscp((uint8_t)dscp) != want;
	}
	TAP_EQ(wrong, 0, "classes: 48 is nc, 50 to 59 rdma, the rest default");
	TAP_OK(strcmp(fabric_class_name(FABRIC_CLASS_NC), "nc") == 0 &&
			strcmp(fabric_class_name(FABRIC_CLASS_RDMA), "rdma") == 0 &&
			strcmp(fabric_class_name(FABRIC_CLASS_DEFAULT), "default") == 0 &&
			strcmp(fabric_class_name(FABRIC_CLASSES), "unknown") == 0,
		"classes have names");
}

int main(void)
{
	trains();
	cells();
	noise();
	classes();
	return TAP_DONE();
}
