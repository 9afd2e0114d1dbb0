/*
 * settings.c - what holds for the whole lab: name, seed, link defaults, fabric, transport
 *
 * Every default of a topology file is written down here and nowhere else.
 */
#include "topo/draft.h"
#include <string.h>
#include "base/time.h"

#define KB (1u << 10)
#define MB (1u << 20)

/* Order: rate, delay, jitter, loss, corrupt, queue, ecn_min, ecn_max, mtu, hyperport, parallel.
 * mtu 0 of cell links: decided by the train size. Queues of cell links push back and never drop;
 * 128 KB are 2.4 us at 445G, so that a queue over its mark is felt by the egress scheduler (one
 * fabric round trip is about 3 us) before it is full. A GPU port's 1 MB are two credit loops of a
 * two-stage fabric at 400G: the scheduler grants no more than fits (fabric/credit.h). ECN marks of
 * routed queues start at 5 us. */
static const struct topo_settings kind_defaults[TOPO_KINDS_COUNT] = {
	[TOPO_LINK_GPU] = { { 400000000000, 500, 0, 0, 0, MB, 256 * KB, MB, 9000, 0, 1 } },
	[TOPO_LINK_FABRIC] = { { 445000000000, 500, 0, 0, 0, 128 * KB, 64 * KB, 128 * KB, 0, 0,
		1 } },
	[TOPO_LINK_SPINE] = { { 445000000000, 1000, 0, 0, 0, 128 * KB, 64 * KB, 128 * KB, 0, 0,
		1 } },
	[TOPO_LINK_EDGE] = { { 800000000000, 2000, 0, 0, 0, 4 * MB, 512 * KB, 2 * MB, 9000, 0,
		1 } },
};

static int read_name(struct topo_draft *d, const struct topo_slot *slot)
{
	const char *name = slot->item->valuestring;
	size_t size = strlen(name);
	struct topo_quote quote;

	if (size == 0 || size > TOPO_LAB_NAME_MAX || name[0] < 'a' || name[0] > 'z' ||
		strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != size)
		return topo_fail(d->reader, &d->top, slot,
			"bad lab name %s: must be 1 to 32 of a-z, 0-9 and '_', a letter first",
			topo_quote(&quote, name, size));
	memcpy(d->name, name, size + 1);
	return 0;
}

static struct topo_path below(const struct topo_path *up, const struct topo_slot *slot)
{
	return (struct topo_path){ .up = up, .item = slot->item, .child = slot->child };
}

static int read_weights(
	struct topo_draft *d, const struct topo_path *fabric, const struct topo_slot *slot)
{
	struct topo_slot slots[TOPO_WEIGHTS_COUNT];
	struct topo_path path = below(fabric, slot);
	int err = topo_read(d->reader, &path, &topo_keys_weights, slots);

	if (err < 0)
		return err;
	if (slots[TOPO_WEIGHTS_RDMA].given)
		d->fabric.weight_rdma = (uint32_t)slots[TOPO_WEIGHTS_RDMA].number;
	if (slots[TOPO_WEIGHTS_DEFAULT].given)
		d->fabric.weight_default = (uint32_t)slots[TOPO_WEIGHTS_DEFAULT].number;
	return 0;
}

static void take32(const struct topo_slot *slot, uint32_t *value)
{
	if (slot->given)
		*value = (uint32_t)slot->number;
}

static void take64(const struct topo_slot *slot, uint64_t *value)
{
	if (slot->given)
		*value = slot->number;
}

/* Who may leave with fewer links than he may join with would come and go for ever. */
static int read_minimum(
	struct topo_draft *d, const struct topo_path *path, const struct topo_slot *s)
{
	struct topo_fabric *f = &d->fabric;

	take32(&s[TOPO_FABRIC_MIN_LINKS_TO_REMAIN], &f->min_links_to_remain);
	f->min_links_to_join = f->min_links_to_remain;
	take32(&s[TOPO_FABRIC_MIN_LINKS_TO_JOIN], &f->min_links_to_join);
	if (f->min_links_to_join >= f->min_links_to_remain)
		return 0;
	return topo_fail(d->reader, path, &s[TOPO_FABRIC_MIN_LINKS_TO_JOIN],
		"min_links_to_join %u is below min_links_to_remain %u: a switch would join and "
		"leave without end",
		f->min_links_to_join, f->min_links_to_remain);
}

static int read_fabric(struct topo_draft *d, const struct topo_slot *slot)
{
	struct topo_slot s[TOPO_FABRIC_COUNT];
	struct topo_path path = below(&d->top, slot);
	struct topo_fabric *f = &d->fabric;
	int err = topo_read(d->reader, &path, &topo_keys_fabric, s);
	uint32_t least;

	if (err < 0)
		return err;
	if (s[TOPO_FABRIC_MODE].given)
		f->mode = (enum topo_fabric_mode)s[TOPO_FABRIC_MODE].number;
	if (s[TOPO_FABRIC_DRAW].given)
		f->draw = (enum topo_draw)s[TOPO_FABRIC_DRAW].number;
	if (s[TOPO_FABRIC_INPUT_BALANCED].given)
		f->input_balanced = s[TOPO_FABRIC_INPUT_BALANCED].number != 0;
	take32(&s[TOPO_FABRIC_CELL_BYTES], &f->cell_bytes);
	take32(&s[TOPO_FABRIC_CREDIT_BYTES], &f->credit_bytes);
	take32(&s[TOPO_FABRIC_TRAIN_BYTES], &f->train_bytes);
	take32(&s[TOPO_FABRIC_VOQ_BYTES], &f->voq_bytes);
	take32(&s[TOPO_FABRIC_BUFFER_BYTES], &f->buffer_bytes);
	take64(&s[TOPO_FABRIC_ECN_MIN], &f->ecn_min_ns);
	take64(&s[TOPO_FABRIC_REACH_REFRESH], &f->reach_refresh_ns);
	take64(&s[TOPO_FABRIC_REASSEMBLY_TIMEOUT], &f->reassembly_timeout_ns);
	take64(&s[TOPO_FABRIC_CREDIT_WATCHDOG], &f->credit_watchdog_ns);
	least = f->cell_bytes + TOPO_TRAIN_HEADER_MAX + TOPO_TRAIN_CONTROL_BYTES;
	if (f->train_bytes != 0 && f->train_bytes < least)
		return topo_fail(d->reader, &path, &s[TOPO_FABRIC_TRAIN_BYTES],
			"train_bytes %u has no room for a cell beside control cells: must be 0 "
			"(one cell a frame) or at least cell_bytes + %d",
			f->train_bytes, TOPO_TRAIN_HEADER_MAX + TOPO_TRAIN_CONTROL_BYTES);
	if (f->voq_bytes > f->buffer_bytes)
		return topo_fail(d->reader, &path, &s[TOPO_FABRIC_VOQ_BYTES],
			"voq_bytes %u is above buffer_bytes %u", f->voq_bytes, f->buffer_bytes);
	err = read_minimum(d, &path, s);
	if (err < 0)
		return err;
	if (s[TOPO_FABRIC_WEIGHTS].given)
		return read_weights(d, &path, &s[TOPO_FABRIC_WEIGHTS]);
	return 0;
}

static int read_transport(struct topo_draft *d, const struct topo_slot *slot)
{
	struct topo_slot s[TOPO_TRANSPORT_KEY_COUNT];
	struct topo_path path = below(&d->top, slot);
	int err = topo_read(d->reader, &path, &topo_keys_transport, s);

	if (err < 0)
		return err;
	if (s[TOPO_TRANSPORT_KEY_NAME].given)
		d->transport.name = (enum topo_transport)s[TOPO_TRANSPORT_KEY_NAME].number;
	take32(&s[TOPO_TRANSPORT_KEY_PATHS], &d->transport.paths);
	take32(&s[TOPO_TRANSPORT_KEY_PAYLOAD_BYTES], &d->transport.payload_bytes);
	return 0;
}

/* What the mode and the train size decide about cell links. */
static void resolve_defaults(struct topo_draft *d)
{
	const struct topo_fabric *f = &d->fabric;

	memcpy(d->defaults, kind_defaults, sizeof(kind_defaults));
	for (uint32_t kind = TOPO_LINK_FABRIC; kind <= TOPO_LINK_SPINE; kind++) {
		uint64_t *value = d->defaults[kind].value;

		if (f->mode == TOPO_FABRIC_ECMP) {
			value[TOPO_SETTING_QUEUE_BYTES] = 4 * MB;
			value[TOPO_SETTING_ECN_MIN_BYTES] = 256 * KB;
			value[TOPO_SETTING_ECN_MAX_BYTES] = MB;
			value[TOPO_SETTING_MTU] = 9000;
		} else {
			value[TOPO_SETTING_MTU] = f->train_bytes != 0
							  ? f->train_bytes
							  : f->cell_bytes + TOPO_TRAIN_HEADER_MAX;
		}
	}
}

static int read_link_defaults(struct topo_draft *d, const struct topo_slot *slot)
{
	struct topo_slot kinds[TOPO_KINDS_COUNT];
	struct topo_path path = below(&d->top, slot);
	int err = topo_read(d->reader, &path, &topo_keys_link_defaults, kinds);

	for (uint32_t kind = 0; kind < TOPO_KINDS_COUNT && err == 0; kind++) {
		struct topo_path at = below(&path, &kinds[kind]);
		struct topo_slot s[TOPO_DEFAULTS_COUNT];

		if (!kinds[kind].given)
			continue;
		err = topo_read(d->reader, &at, &topo_keys_link_default, s);
		if (err < 0)
			return err;
		for (uint32_t i = 0; i < TOPO_DEFAULTS_COUNT; i++)
			take64(&s[i], &d->defaults[kind].value[i]);
		if (s[TOPO_SETTING_HYPERPORT].given && kind != TOPO_LINK_EDGE)
			return topo_fail(d->reader, &at, &s[TOPO_SETTING_HYPERPORT],
				"only edge links can be hyper ports");
		if (s[TOPO_SETTING_PARALLEL].given && kind == TOPO_LINK_GPU &&
			s[TOPO_SETTING_PARALLEL].number != 1)
			return topo_fail(d->reader, &at, &s[TOPO_SETTING_PARALLEL],
				"a GPU has one link a plane: leave it out");
	}
	return err;
}

int topo_draft_top(struct topo_draft *d, struct topo_slot *top)
{
	int err = topo_read(d->reader, &d->top, &topo_keys_top, top);

	if (err < 0)
		return err;
	d->seed = top[TOPO_TOP_SEED].given ? top[TOPO_TOP_SEED].number : 1;
	d->time_dilation = TOPO_AUTO;
	take64(&top[TOPO_TOP_TIME_DILATION], &d->time_dilation);
	d->planes = 0;
	take32(&top[TOPO_TOP_PLANES], &d->planes);
	d->fabric = (struct topo_fabric){
		.mode = TOPO_FABRIC_DSF,
		.draw = TOPO_DRAW_STRATIFIED,
		.input_balanced = true,
		.cell_bytes = 512,    /* published: 512 B with a 32 B header */
		.credit_bytes = 4096, /* published */
		.train_bytes = TOPO_TRAIN_BYTES_MAX,
		.voq_bytes = 4 * MB,
		.buffer_bytes = 64 * MB,
		.ecn_min_ns = TOPO_AUTO,
		.reach_refresh_ns = 45 * NS_PER_US, /* published: a cycle over all links 44.8 us */
		.reassembly_timeout_ns = 20 * NS_PER_US,
		.credit_watchdog_ns = 5 * NS_PER_MS, /* published: 500 ms, too slow to watch */
		.weight_rdma = 8,                    /* published */
		.weight_default = 5,                 /* published */
	};
	d->transport = (struct topo_transport_settings){
		.name = TOPO_TRANSPORT_METAROCE, .paths = 16, .payload_bytes = 4096
	};
	err = read_name(d, &top[TOPO_TOP_NAME]);
	if (err == 0 && top[TOPO_TOP_FABRIC].given)
		err = read_fabric(d, &top[TOPO_TOP_FABRIC]);
	if (err == 0 && top[TOPO_TOP_TRANSPORT].given)
		err = read_transport(d, &top[TOPO_TOP_TRANSPORT]);
	if (d->choice != NULL) {
		d->fabric.mode = d->choice->mode;
		d->transport.name = d->choice->transport;
	}
	resolve_defaults(d);
	if (err == 0 && top[TOPO_TOP_LINK_DEFAULTS].given)
		err = read_link_defaults(d, &top[TOPO_TOP_LINK_DEFAULTS]);
	if (err == 0 && !top[TOPO_TOP_BUILDINGS].given && !top[TOPO_TOP_NODES].given)
		err = topo_fail(d->reader, &d->top, NULL,
			"no nodes: \"buildings\" (templates) or \"nodes\" (explicit) is missing");
	return err;
}
