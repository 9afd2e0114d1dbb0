#include "metaroce/wire.h"
#include <string.h>
#include "base/cursor.h"
#include "base/err.h"

#define RETH_SIZE       16u
#define ATOMICETH_SIZE  28u
#define AETH_SIZE       4u
#define ATOMICACK_SIZE  8u
#define IMMEDIATE_SIZE  4u
#define HELLO_BODY_SIZE 48u

#define BTH_PKEY_DEFAULT 0xffffu
#define BTH_SOLICITED    0x80u
#define BTH_ACKREQ       0x80u

/* Headers that follow BTH, in this order. */
#define HAS_RETH      0x01u
#define HAS_ATOMIC    0x02u
#define HAS_AETH      0x04u
#define HAS_ATOMICACK 0x08u
#define HAS_IMMEDIATE 0x10u
#define KNOWN         0x80u

static uint8_t headers_of(uint8_t opcode)
{
	switch (opcode) {
	case METAROCE_OP_SEND: return KNOWN;
	case METAROCE_OP_SEND_IMM: return KNOWN | HAS_IMMEDIATE;
	case METAROCE_OP_WRITE: return KNOWN | HAS_RETH;
	case METAROCE_OP_WRITE_IMM: return KNOWN | HAS_RETH | HAS_IMMEDIATE;
	case METAROCE_OP_READ_REQUEST: return KNOWN | HAS_RETH;
	case METAROCE_OP_READ_RESPONSE: return KNOWN | HAS_AETH;
	case METAROCE_OP_ATOMIC_RESPONSE: return KNOWN | HAS_AETH | HAS_ATOMICACK;
	case METAROCE_OP_COMPARE_SWAP:
	case METAROCE_OP_FETCH_ADD: return KNOWN | HAS_ATOMIC;
	default: return 0;
	}
}

static uint32_t size_of(uint8_t headers)
{
	return (headers & HAS_RETH ? RETH_SIZE : 0) + (headers & HAS_ATOMIC ? ATOMICETH_SIZE : 0) +
	       (headers & HAS_AETH ? AETH_SIZE : 0) +
	       (headers & HAS_ATOMICACK ? ATOMICACK_SIZE : 0) +
	       (headers & HAS_IMMEDIATE ? IMMEDIATE_SIZE : 0);
}

uint32_t metaroce_wire_data_head(uint8_t opcode, bool moved)
{
	uint8_t headers = headers_of(opcode);

	if (headers == 0)
		return 0;
	return METAROCE_MCH_SIZE + METAROCE_MSGH_SIZE + (moved ? METAROCE_MOVE_SIZE : 0) +
	       METAROCE_BTH_SIZE + size_of(headers);
}

static void store_be24(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 16);
	p[1] = (uint8_t)(v >> 8);
	p[2] = (uint8_t)v;
}

static uint32_t load_be24(const uint8_t *p)
{
	return (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];
}

static void mch_encode(uint8_t *to, const struct metaroce_mch *mch)
{
	to[0] = (uint8_t)(METAROCE_VERSION << 4 | mch->type);
	to[1] = mch->flags;
	dsf_store_be16(to + 2, mch->path);
	dsf_store_be32(to + 4, mch->connection);
	dsf_store_be32(to + 8, mch->sequence);
	dsf_store_be32(to + 12, mch->tx_ts);
	to[16] = mch->epoch;
	to[17] = mch->plane;
	dsf_store_be16(to + 18, mch->backlog);
}

int metaroce_wire_mch_decode(const uint8_t *bytes, size_t stored, struct metaroce_mch *mch)
{
	if (stored < METAROCE_MCH_SIZE)
		return -DSF_E_TRUNCATED;
	if (bytes[0] >> 4 != METAROCE_VERSION)
		return -DSF_E_VERSION;
	mch->type = bytes[0] & 0x0f;
	mch->flags = bytes[1];
	if (mch->type > METAROCE_TYPE_PROBE || (mch->flags & ~METAROCE_FLAGS_KNOWN) != 0)
		return -DSF_E_BADFIELD;
	mch->path = dsf_load_be16(bytes + 2);
	mch->connection = dsf_load_be32(bytes + 4);
	mch->sequence = dsf_load_be32(bytes + 8);
	mch->tx_ts = dsf_load_be32(bytes + 12);
	mch->epoch = bytes[16];
	mch->plane = bytes[17];
	mch->backlog = dsf_load_be16(bytes + 18);
	if (mch->path >= METAROCE_PATHS_MAX || mch->plane >= METAROCE_PLANES_MAX)
		return -DSF_E_BADFIELD;
	return 0;
}

static uint8_t *extensions_encode(uint8_t *at, uint8_t headers, const struct metaroce_data *data)
{
	if (headers & HAS_RETH) {
		dsf_store_be64(at, data->address);
		dsf_store_be32(at + 8, data->key);
		dsf_store_be32(at + 12, data->length);
		at += RETH_SIZE;
	}
	if (headers & HAS_ATOMIC) {
		dsf_store_be64(at, data->address);
		dsf_store_be32(at + 8, data->key);
		dsf_store_be64(at + 12, data->swap_add);
		dsf_store_be64(at + 20, data->compare);
		at += ATOMICETH_SIZE;
	}
	if (headers & HAS_AETH) {
		dsf_store_be32(at, data->syndrome);
		at += AETH_SIZE;
	}
	if (headers & HAS_ATOMICACK) {
		dsf_store_be64(at, data->original);
		at += ATOMICACK_SIZE;
	}
	if (headers & HAS_IMMEDIATE) {
		dsf_store_be32(at, data->immediate);
		at += IMMEDIATE_SIZE;
	}
	return at;
}

uint32_t metaroce_wire_data_encode(
	uint8_t *to, const struct metaroce_mch *mch, const struct metaroce_data *data)
{
	uint8_t *at = to + METAROCE_MCH_SIZE;

	mch_encode(to, mch);
	dsf_store_be32(at, data->msn);
	dsf_store_be32(at + 4, data->rq_match);
	dsf_store_be32(at + 8, data->offset);
	dsf_store_be32(at + 12, data->message_size);
	store_be24(at + 16, data->source_qp);
	at[19] = data->mflags;
	at += METAROCE_MSGH_SIZE;
	if (data->moved) {
		dsf_store_be16(at, data->moved_path);
		at[2] = data->moved_epoch;
		at[3] = 0;
		dsf_store_be32(at + 4, data->moved_sequence);
		at += METAROCE_MOVE_SIZE;
	}
	at[0] = data->opcode;
	at[1] = data->mflags & METAROCE_MFLAG_SOLICITED ? BTH_SOLICITED : 0;
	dsf_store_be16(at + 2, BTH_PKEY_DEFAULT);
	at[4] = 0;
	store_be24(at + 5, data->target_qp);
	at[8] = mch->flags & METAROCE_FLAG_ACKREQ ? BTH_ACKREQ : 0;
	store_be24(at + 9, data->msn & 0xffffffu);
	at += METAROCE_BTH_SIZE;
	at = extensions_encode(at, headers_of(data->opcode), data);
	return (uint32_t)(at - to);
}

static void extensions_decode(const uint8_t *at, uint8_t headers, struct metaroce_data *data)
{
	if (headers & HAS_RETH) {
		data->address = dsf_load_be64(at);
		data->key = dsf_load_be32(at + 8);
		data->length = dsf_load_be32(at + 12);
		at += RETH_SIZE;
	}
	if (headers & HAS_ATOMIC) {
		data->address = dsf_load_be64(at);
		data->key = dsf_load_be32(at + 8);
		data->swap_add = dsf_load_be64(at + 12);
		data->compare = dsf_load_be64(at + 20);
		at += ATOMICETH_SIZE;
	}
	if (headers & HAS_AETH) {
		data->syndrome = dsf_load_be32(at);
		at += AETH_SIZE;
	}
	if (headers & HAS_ATOMICACK) {
		data->original = dsf_load_be64(at);
		at += ATOMICACK_SIZE;
	}
	if (headers & HAS_IMMEDIATE)
		data->immediate = dsf_load_be32(at);
}

static bool data_possible(const struct metaroce_data *data)
{
	if ((data->mflags & ~METAROCE_MFLAGS_KNOWN) != 0)
		return false;
	if (data->opcode == METAROCE_OP_WRITE || data->opcode == METAROCE_OP_WRITE_IMM) {
		if (data->length != data->payload)
			return false;
	}
	return data->offset <= data->message_size &&
	       data->payload <= data->message_size - data->offset;
}

int metaroce_wire_data_decode(const uint8_t *bytes, size_t stored, size_t size,
	const struct metaroce_mch *mch, struct metaroce_data *data)
{
	const uint8_t *at = bytes + METAROCE_MCH_SIZE;
	size_t fixed = METAROCE_MCH_SIZE + METAROCE_MSGH_SIZE + METAROCE_BTH_SIZE;
	uint8_t headers;

	data->moved = (mch->flags & METAROCE_FLAG_MOVED) != 0;
	if (data->moved)
		fixed += METAROCE_MOVE_SIZE;
	if (stored < fixed || size < stored)
		return -DSF_E_TRUNCATED;
	data->msn = dsf_load_be32(at);
	data->rq_match = dsf_load_be32(at + 4);
	data->offset = dsf_load_be32(at + 8);
	data->message_size = dsf_load_be32(at + 12);
	data->source_qp = load_be24(at + 16);
	data->mflags = at[19];
	at += METAROCE_MSGH_SIZE;
	data->moved_path = 0;
	data->moved_epoch = 0;
	data->moved_sequence = 0;
	if (data->moved) {
		data->moved_path = dsf_load_be16(at);
		data->moved_epoch = at[2];
		data->moved_sequence = dsf_load_be32(at + 4);
		at += METAROCE_MOVE_SIZE;
		if (data->moved_path >= METAROCE_PATHS_MAX)
			return -DSF_E_BADFIELD;
	}
	data->opcode = at[0];
	data->target_qp = load_be24(at + 5);
	headers = headers_of(data->opcode);
	if (headers == 0)
		return -DSF_E_UNSUPPORTED;
	fixed += size_of(headers);
	if (stored < fixed)
		return -DSF_E_TRUNCATED;
	extensions_decode(at + METAROCE_BTH_SIZE, headers, data);
	data->payload = (uint32_t)(size - fixed);
	return data_possible(data) ? (int)fixed : -DSF_E_BADFIELD;
}

uint32_t metaroce_wire_ack_encode(
	uint8_t *to, const struct metaroce_mch *mch, const struct metaroce_ack *ack)
{
	uint8_t *at = to + METAROCE_MCH_SIZE;

	mch_encode(to, mch);
	at[0] = ack->pblks;
	at[1] = ack->sblks;
	at[2] = ack->planes;
	at[3] = 0;
	dsf_store_be16(at + 4, ack->active_senders);
	dsf_store_be16(at + 6, ack->hint_epoch);
	dsf_store_be32(at + 8, ack->rx_bytes);
	dsf_store_be32(at + 12, ack->max_inflight);
	at += METAROCE_ACKH_SIZE;
	for (uint32_t i = 0; i < ack->planes; i++, at += 4)
		dsf_store_be32(at, ack->share[i]);
	return (uint32_t)(at - to);
}

void metaroce_wire_pblk_encode(uint8_t *to, const struct metaroce_pblk *pblk)
{
	dsf_store_be16(to, pblk->path);
	to[2] = pblk->epoch;
	to[3] = pblk->flags;
	dsf_store_be32(to + 4, pblk->next);
	for (int i = 0; i < METAROCE_SACK_WORDS; i++)
		dsf_store_be64(to + 8 + 8 * i, pblk->sack[i]);
	dsf_store_be32(to + 40, pblk->ecn_packets);
	dsf_store_be32(to + 44, pblk->rx_packets);
	dsf_store_be32(to + 48, pblk->ts_echo);
	dsf_store_be16(to + 52, pblk->ack_delay);
	dsf_store_be16(to + 54, 0);
}

void metaroce_wire_sblk_encode(uint8_t *to, const struct metaroce_sblk *sblk)
{
	store_be24(to, sblk->qp);
	to[3] = sblk->syndrome;
	dsf_store_be32(to + 4, sblk->msn);
}

int metaroce_wire_ack_decode(const uint8_t *bytes, size_t stored, struct metaroce_ack *ack)
{
	const uint8_t *at = bytes + METAROCE_MCH_SIZE;

	if (stored < METAROCE_MCH_SIZE + METAROCE_ACKH_SIZE)
		return -DSF_E_TRUNCATED;
	ack->pblks = at[0];
	ack->sblks = at[1];
	ack->planes = at[2];
	if (ack->pblks > METAROCE_PBLKS_MAX || ack->sblks > METAROCE_SBLKS_MAX ||
		ack->planes > METAROCE_PLANES_MAX)
		return -DSF_E_BADFIELD;
	if (stored < METAROCE_MCH_SIZE + METAROCE_ACKH_SIZE + 4u * ack->planes +
			     METAROCE_PBLK_SIZE * ack->pblks + METAROCE_SBLK_SIZE * ack->sblks)
		return -DSF_E_TRUNCATED;
	ack->active_senders = dsf_load_be16(at + 4);
	ack->hint_epoch = dsf_load_be16(at + 6);
	ack->rx_bytes = dsf_load_be32(at + 8);
	ack->max_inflight = dsf_load_be32(at + 12);
	memset(ack->share, 0, sizeof(ack->share));
	for (uint32_t i = 0; i < ack->planes; i++)
		ack->share[i] = dsf_load_be32(at + METAROCE_ACKH_SIZE + 4u * i);
	for (uint32_t i = 0; i < ack->pblks; i++) {
		at = bytes + METAROCE_MCH_SIZE + METAROCE_ACKH_SIZE + 4u * ack->planes +
		     METAROCE_PBLK_SIZE * i;
		if (dsf_load_be16(at) >= METAROCE_PATHS_MAX)
			return -DSF_E_BADFIELD;
	}
	return 0;
}

void metaroce_wire_pblk_decode(const uint8_t *bytes, const struct metaroce_ack *ack, uint32_t index,
	struct metaroce_pblk *pblk)
{
	const uint8_t *at = bytes + METAROCE_MCH_SIZE + METAROCE_ACKH_SIZE + 4u * ack->planes +
			    METAROCE_PBLK_SIZE * index;

	pblk->path = dsf_load_be16(at);
	pblk->epoch = at[2];
	pblk->flags = at[3];
	pblk->next = dsf_load_be32(at + 4);
	for (int i = 0; i < METAROCE_SACK_WORDS; i++)
		pblk->sack[i] = dsf_load_be64(at + 8 + 8 * i);
	pblk->ecn_packets = dsf_load_be32(at + 40);
	pblk->rx_packets = dsf_load_be32(at + 44);
	pblk->ts_echo = dsf_load_be32(at + 48);
	pblk->ack_delay = dsf_load_be16(at + 52);
}

void metaroce_wire_sblk_decode(const uint8_t *bytes, const struct metaroce_ack *ack, uint32_t index,
	struct metaroce_sblk *sblk)
{
	const uint8_t *at = bytes + METAROCE_MCH_SIZE + METAROCE_ACKH_SIZE + 4u * ack->planes +
			    METAROCE_PBLK_SIZE * ack->pblks + METAROCE_SBLK_SIZE * index;

	sblk->qp = load_be24(at);
	sblk->syndrome = at[3];
	sblk->msn = dsf_load_be32(at + 4);
}

void metaroce_wire_nack_encode(
	uint8_t *to, const struct metaroce_mch *mch, const struct metaroce_nack *nack)
{
	uint8_t *at = to + METAROCE_MCH_SIZE;

	mch_encode(to, mch);
	at[0] = nack->code;
	at[1] = nack->timer;
	dsf_store_be16(at + 2, nack->path);
	dsf_store_be32(at + 4, nack->sequence);
	store_be24(at + 8, nack->qp);
	at[11] = 0;
	dsf_store_be32(at + 12, nack->msn);
	dsf_store_be32(at + 16, nack->rq_match);
	dsf_store_be32(at + 20, nack->offset);
}

int metaroce_wire_nack_decode(const uint8_t *bytes, size_t stored, struct metaroce_nack *nack)
{
	const uint8_t *at = bytes + METAROCE_MCH_SIZE;

	if (stored < METAROCE_NACK_SIZE)
		return -DSF_E_TRUNCATED;
	nack->code = at[0];
	nack->timer = at[1];
	nack->path = dsf_load_be16(at + 2);
	nack->sequence = dsf_load_be32(at + 4);
	nack->qp = load_be24(at + 8);
	nack->msn = dsf_load_be32(at + 12);
	nack->rq_match = dsf_load_be32(at + 16);
	nack->offset = dsf_load_be32(at + 20);
	return nack->path < METAROCE_PATHS_MAX ? 0 : -DSF_E_BADFIELD;
}

uint32_t metaroce_wire_hello_encode(
	uint8_t *to, const struct metaroce_mch *mch, const struct metaroce_hello *hello)
{
	uint8_t *at = to + METAROCE_MCH_SIZE;

	mch_encode(to, mch);
	at[0] = hello->op;
	at[1] = hello->version;
	dsf_store_be16(at + 2, hello->paths);
	dsf_store_be32(at + 4, hello->connection);
	dsf_store_be64(at + 8, hello->cookie);
	memcpy(at + 16, hello->address.bytes, 16);
	dsf_store_be32(at + 32, hello->rate);
	dsf_store_be16(at + 36, hello->payload_max);
	dsf_store_be16(at + 38, hello->sack_bits);
	dsf_store_be32(at + 40, hello->features);
	at[44] = hello->planes;
	at[45] = hello->status;
	dsf_store_be16(at + 46, 0);
	at += HELLO_BODY_SIZE;
	for (uint32_t i = 0; i < hello->planes; i++, at += 16)
		memcpy(at, hello->plane_address[i].bytes, 16);
	return (uint32_t)(at - to);
}

int metaroce_wire_hello_decode(const uint8_t *bytes, size_t stored, struct metaroce_hello *hello)
{
	const uint8_t *at = bytes + METAROCE_MCH_SIZE;

	if (stored < METAROCE_CONN_SIZE)
		return -DSF_E_TRUNCATED;
	memset(hello, 0, sizeof(*hello));
	hello->op = at[0];
	hello->version = at[1];
	hello->paths = dsf_load_be16(at + 2);
	hello->connection = dsf_load_be32(at + 4);
	hello->cookie = dsf_load_be64(at + 8);
	memcpy(hello->address.bytes, at + 16, 16);
	hello->rate = dsf_load_be32(at + 32);
	hello->payload_max = dsf_load_be16(at + 36);
	hello->sack_bits = dsf_load_be16(at + 38);
	hello->features = dsf_load_be32(at + 40);
	hello->planes = at[44];
	hello->status = at[45];
	if (hello->op < METAROCE_CONN_REQUEST || hello->op > METAROCE_CONN_PLANE_UPDATE ||
		hello->planes > METAROCE_PLANES_MAX || hello->paths == 0 ||
		hello->paths > METAROCE_PATHS_MAX || hello->payload_max == 0)
		return -DSF_E_BADFIELD;
	if (hello->version != METAROCE_VERSION)
		return -DSF_E_VERSION;
	if (stored < METAROCE_CONN_SIZE + 16u * hello->planes)
		return -DSF_E_TRUNCATED;
	at += HELLO_BODY_SIZE;
	for (uint32_t i = 0; i < hello->planes; i++, at += 16)
		memcpy(hello->plane_address[i].bytes, at, 16);
	return 0;
}

void metaroce_wire_probe_encode(
	uint8_t *to, const struct metaroce_mch *mch, const struct metaroce_probe *probe)
{
	uint8_t *at = to + METAROCE_MCH_SIZE;

	mch_encode(to, mch);
	dsf_store_be32(at, probe->id);
	dsf_store_be32(at + 4, probe->tail);
	store_be24(at + 8, probe->qp);
	at[11] = probe->kind;
	dsf_store_be32(at + 12, probe->msn);
}

int metaroce_wire_probe_decode(const uint8_t *bytes, size_t stored, struct metaroce_probe *probe)
{
	const uint8_t *at = bytes + METAROCE_MCH_SIZE;

	if (stored < METAROCE_PROBE_SIZE)
		return -DSF_E_TRUNCATED;
	probe->id = dsf_load_be32(at);
	probe->tail = dsf_load_be32(at + 4);
	probe->qp = load_be24(at + 8);
	probe->kind = at[11];
	probe->msn = dsf_load_be32(at + 12);
	return probe->kind <= METAROCE_PROBE_FILL ? 0 : -DSF_E_BADFIELD;
}
