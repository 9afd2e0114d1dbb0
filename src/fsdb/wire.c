#include "fsdb/wire.h"
#include <assert.h>
#include "base/err.h"

int fsdb_wire_size(const uint8_t *bytes, size_t size)
{
	uint32_t whole;

	if (size < 2)
		return 0;
	whole = dsf_load_be16(bytes);
	return whole < FSDB_HEADER_SIZE || whole > FSDB_MESSAGE_MAX ? -DSF_E_BADFIELD : (int)whole;
}

static int read_body(struct fsdb_message *m, struct dsf_cursor *in)
{
	bool bad = false;

	switch (m->type) {
	case FSDB_HELLO:
		bad = dsf_cursor_be(in, 4) != FSDB_WIRE_MAGIC;
		m->id = (uint32_t)dsf_cursor_be(in, 4);
		break;
	case FSDB_SYNC: m->revision = dsf_cursor_be(in, 8); break;
	case FSDB_SYNCED: m->count = (uint32_t)dsf_cursor_be(in, 4); break;
	case FSDB_UPDATE:
		m->revision = dsf_cursor_be(in, 8);
		m->records = *in;
		in->at = in->end;
		break;
	case FSDB_STATE:
		m->value = (uint8_t)dsf_cursor_be(in, 1);
		bad = m->value > 1;
		break;
	case FSDB_GOODBYE:
		m->value = (uint8_t)dsf_cursor_be(in, 1);
		bad = m->value > FSDB_GOODBYE_EXIT;
		break;
	case FSDB_SUBSCRIBE:
	case FSDB_HEARTBEAT: break;
	}
	if (in->failed)
		return -DSF_E_TRUNCATED;
	return bad || dsf_cursor_left(in) > 0 ? -DSF_E_BADFIELD : 0;
}

int fsdb_wire_read(struct fsdb_message *m, const uint8_t *bytes, size_t size)
{
	struct dsf_cursor in = { bytes, bytes + size, false };
	uint64_t version, type;

	memset(m, 0, sizeof(*m));
	if (dsf_cursor_be(&in, 2) != size)
		return -DSF_E_BADFIELD;
	version = dsf_cursor_be(&in, 1);
	type = dsf_cursor_be(&in, 1);
	if (in.failed)
		return -DSF_E_TRUNCATED;
	if (version != FSDB_WIRE_VERSION)
		return -DSF_E_VERSION;
	if (type < FSDB_HELLO || type > FSDB_GOODBYE)
		return -DSF_E_BADFIELD;
	m->type = (enum fsdb_message_type)type;
	return read_body(m, &in);
}

static void read_mac(struct dsf_cursor *in, struct dsf_mac *mac)
{
	const uint8_t *bytes = dsf_cursor_bytes(in, sizeof(mac->bytes));

	if (bytes != NULL)
		memcpy(mac->bytes, bytes, sizeof(mac->bytes));
}

static void read_address(struct dsf_cursor *in, struct dsf_ip6 *address)
{
	const uint8_t *bytes = dsf_cursor_bytes(in, sizeof(address->bytes));

	if (bytes != NULL)
		memcpy(address->bytes, bytes, sizeof(address->bytes));
}

/* What is behind a record's key; false: a field has an impossible value. */
static bool read_fields(struct dsf_cursor *in, struct fsdb_record *r)
{
	switch ((enum fsdb_kind)r->kind) {
	case FSDB_KIND_PORT:
		r->scope = (uint8_t)dsf_cursor_be(in, 1);
		r->state = (uint8_t)dsf_cursor_be(in, 1);
		r->rate_bps = dsf_cursor_be(in, 8);
		return r->scope <= FSDB_SCOPE_LOCAL && r->state <= 1;
	case FSDB_KIND_INTERFACE:
		r->scope = (uint8_t)dsf_cursor_be(in, 1);
		r->prefix_length = (uint8_t)dsf_cursor_be(in, 1);
		r->mtu = (uint16_t)dsf_cursor_be(in, 2);
		read_mac(in, &r->mac);
		read_address(in, &r->address);
		return r->scope <= FSDB_SCOPE_LOCAL && r->prefix_length <= 128;
	case FSDB_KIND_NEIGHBOR:
		r->state = (uint8_t)dsf_cursor_be(in, 1);
		read_mac(in, &r->mac);
		read_address(in, &r->address);
		r->since_ns = dsf_cursor_be(in, 8);
		return r->state <= FSDB_STATIC;
	}
	return false;
}

int fsdb_wire_read_record(struct dsf_cursor *records, struct fsdb_record *r, bool *set)
{
	uint64_t operation;
	bool good = true;

	if (dsf_cursor_left(records) == 0)
		return 0;
	memset(r, 0, sizeof(*r));
	operation = dsf_cursor_be(records, 1);
	r->kind = (uint8_t)dsf_cursor_be(records, 1);
	r->system_port = (uint32_t)dsf_cursor_be(records, 4);
	if (operation > 1 || r->kind < FSDB_KIND_PORT || r->kind > FSDB_KIND_NEIGHBOR)
		return records->failed ? -DSF_E_TRUNCATED : -DSF_E_BADFIELD;
	*set = operation == 1;
	if (*set)
		good = read_fields(records, r);
	else if (r->kind == FSDB_KIND_NEIGHBOR)
		read_address(records, &r->address);
	if (records->failed)
		return -DSF_E_TRUNCATED;
	return good ? 1 : -DSF_E_BADFIELD;
}

static uint32_t body_size(enum fsdb_message_type type)
{
	switch (type) {
	case FSDB_HELLO:
	case FSDB_SYNC:
	case FSDB_UPDATE: return 8;
	case FSDB_SYNCED: return 4;
	case FSDB_STATE:
	case FSDB_GOODBYE: return 1;
	case FSDB_SUBSCRIBE:
	case FSDB_HEARTBEAT: break;
	}
	return 0;
}

static_assert(FSDB_HEADER_SIZE + 8 == FSDB_CONTROL_MAX, "HELLO and SYNC are the largest");

void fsdb_wire_write(struct dsf_writer *w, const struct fsdb_message *m)
{
	dsf_writer_be(w, FSDB_HEADER_SIZE + body_size(m->type), 2);
	dsf_writer_be(w, FSDB_WIRE_VERSION, 1);
	dsf_writer_be(w, m->type, 1);
	switch (m->type) {
	case FSDB_HELLO:
		dsf_writer_be(w, FSDB_WIRE_MAGIC, 4);
		dsf_writer_be(w, m->id, 4);
		break;
	case FSDB_SYNC:
	case FSDB_UPDATE: dsf_writer_be(w, m->revision, 8); break;
	case FSDB_SYNCED: dsf_writer_be(w, m->count, 4); break;
	case FSDB_STATE:
	case FSDB_GOODBYE: dsf_writer_be(w, m->value, 1); break;
	case FSDB_SUBSCRIBE:
	case FSDB_HEARTBEAT: break;
	}
}

static void write_fields(struct dsf_writer *w, const struct fsdb_record *r)
{
	switch ((enum fsdb_kind)r->kind) {
	case FSDB_KIND_PORT:
		dsf_writer_be(w, r->scope, 1);
		dsf_writer_be(w, r->state, 1);
		dsf_writer_be(w, r->rate_bps, 8);
		break;
	case FSDB_KIND_INTERFACE:
		dsf_writer_be(w, r->scope, 1);
		dsf_writer_be(w, r->prefix_length, 1);
		dsf_writer_be(w, r->mtu, 2);
		dsf_writer_bytes(w, r->mac.bytes, sizeof(r->mac.bytes));
		dsf_writer_bytes(w, r->address.bytes, sizeof(r->address.bytes));
		break;
	case FSDB_KIND_NEIGHBOR:
		dsf_writer_be(w, r->state, 1);
		dsf_writer_bytes(w, r->mac.bytes, sizeof(r->mac.bytes));
		dsf_writer_bytes(w, r->address.bytes, sizeof(r->address.bytes));
		dsf_writer_be(w, r->since_ns, 8);
		break;
	}
}

void fsdb_wire_write_record(struct dsf_writer *w, const struct fsdb_record *r, bool set)
{
	dsf_writer_be(w, set, 1);
	dsf_writer_be(w, r->kind, 1);
	dsf_writer_be(w, r->system_port, 4);
	if (set)
		write_fields(w, r);
	else if (r->kind == FSDB_KIND_NEIGHBOR)
		dsf_writer_bytes(w, r->address.bytes, sizeof(r->address.bytes));
}

void fsdb_wire_finish(uint8_t *message, size_t size)
{
	assert(size >= FSDB_HEADER_SIZE && size <= FSDB_MESSAGE_MAX);
	dsf_store_be16(message, (uint16_t)size);
}
