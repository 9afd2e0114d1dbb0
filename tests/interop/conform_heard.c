/* conform_heard.c - what the target says: its messages, and the routes that it tells */
#include <stdlib.h>
#include <string.h>
#include "base/cursor.h"
#include "tests/hex.h"
#include "tests/interop/conform.h"

/* ---- routes that the target tells */

static struct route *find_route(
	const struct peer *p, const uint8_t *prefix, uint8_t length, uint32_t path_id)
{
	struct route *r = p->routes;

	while (r != NULL && (memcmp(r->prefix, prefix, 16) != 0 || r->length != length ||
				    r->path_id != path_id))
		r = r->next;
	return r;
}

static void drop_route(struct peer *p, struct route *r)
{
	struct route **at = &p->routes;

	while (*at != r)
		at = &(*at)->next;
	*at = r->next;
	free(r->attributes);
	free(r);
}

static bool read_prefix(struct peer *p, struct dsf_cursor *in, struct route *r)
{
	uint8_t size;

	if (dsf_cursor_left(in) == 0)
		return false;
	memset(r, 0, sizeof(*r));
	if (p->takes_ids)
		r->path_id = (uint32_t)dsf_cursor_be(in, 4);
	r->length = (uint8_t)dsf_cursor_be(in, 1);
	size = (uint8_t)((r->length + 7) / 8);
	if (r->length > 128 || in->failed || dsf_cursor_left(in) < size) {
		p->wrong = "its prefix is wrong";
		return false;
	}
	memcpy(r->prefix, in->at, size);
	dsf_cursor_skip(in, size);
	return true;
}

static void take_withdrawn(struct peer *p, struct dsf_cursor in)
{
	struct route r, *old;

	dsf_cursor_skip(&in, 3);
	p->end_of_ribs += dsf_cursor_left(&in) == 0;
	while (read_prefix(p, &in, &r)) {
		old = find_route(p, r.prefix, r.length, r.path_id);
		if (old != NULL)
			drop_route(p, old);
	}
}

static void take_route(struct peer *p, const struct route *r, struct dsf_cursor attributes)
{
	struct route *new = find_route(p, r->prefix, r->length, r->path_id);

	if (new == NULL) {
		new = calloc(1, sizeof(*new));
		if (new == NULL)
			abort();
		*new = *r;
		new->next = p->routes;
		p->routes = new;
	}
	free(new->attributes);
	new->told++;
	new->size = dsf_cursor_left(&attributes);
	new->attributes = malloc(new->size + 1);
	if (new->attributes == NULL)
		abort();
	memcpy(new->attributes, attributes.at, new->size);
	memcpy(new->hop, r->hop, sizeof(new->hop));
	new->hop_size = r->hop_size;
}

static void take_announced(struct peer *p, struct dsf_cursor in, struct dsf_cursor attributes)
{
	uint8_t hop[32], hop_size;
	const uint8_t *bytes;
	struct route r;

	dsf_cursor_skip(&in, 3);
	hop_size = (uint8_t)dsf_cursor_be(&in, 1);
	bytes = dsf_cursor_bytes(&in, hop_size);
	dsf_cursor_skip(&in, 1);
	if (in.failed || (hop_size != 16 && hop_size != 32)) {
		p->wrong = "its next hop is wrong";
		return;
	}
	memcpy(hop, bytes, hop_size);
	while (read_prefix(p, &in, &r)) {
		memcpy(r.hop, hop, hop_size);
		r.hop_size = hop_size;
		take_route(p, &r, attributes);
	}
}

/* The next attribute: type, flags and value; false at the end. */
static bool read_attribute(
	struct dsf_cursor *in, uint8_t *flags, uint8_t *type, struct dsf_cursor *value)
{
	size_t size;

	if (dsf_cursor_left(in) == 0)
		return false;
	*flags = (uint8_t)dsf_cursor_be(in, 1);
	*type = (uint8_t)dsf_cursor_be(in, 1);
	size = dsf_cursor_be(in, (*flags & 0x10) != 0 ? 2 : 1);
	value->at = dsf_cursor_bytes(in, size);
	value->end = value->at == NULL ? NULL : value->at + size;
	value->failed = false;
	return !in->failed;
}

static void take_update(struct peer *p, struct dsf_cursor in)
{
	uint64_t withdrawn = dsf_cursor_be(&in, 2);
	struct dsf_cursor attributes, walk, value;
	uint8_t flags, type;
	uint64_t size;

	dsf_cursor_skip(&in, withdrawn);
	size = dsf_cursor_be(&in, 2);
	attributes = (struct dsf_cursor){ in.at, in.at + size, false };
	dsf_cursor_skip(&in, size);
	if (in.failed) {
		p->wrong = "its UPDATE's lengths don't fit";
		return;
	}
	walk = attributes;
	while (read_attribute(&walk, &flags, &type, &value)) {
		bool ours = dsf_cursor_left(&value) >= 3 && memcmp(value.at, "\0\2\1", 3) == 0;

		if (ours && type == MP_UNREACH)
			take_withdrawn(p, value);
		if (ours && type == MP_REACH)
			take_announced(p, value, attributes);
	}
	if (walk.failed)
		p->wrong = "its attributes overrun";
}

static bool is_prefix(const struct route *r, unsigned number, unsigned prefix)
{
	uint8_t bytes[16] = { 0x20, 1, 0xd, 0xb8 };

	dsf_store_be16(bytes + 4, (uint16_t)number);
	dsf_store_be16(bytes + 6, (uint16_t)prefix);
	return r->length == 64 && memcmp(r->prefix, bytes, 16) == 0;
}

struct route *route_numbered(const struct peer *p, unsigned number, unsigned prefix)
{
	struct route *r = p->routes;

	while (r != NULL && !is_prefix(r, number, prefix))
		r = r->next;
	return r;
}

struct route *route_of(const struct peer *p, unsigned prefix)
{
	return route_numbered(p, conform_number, prefix);
}

unsigned routes_of(const struct peer *p, unsigned prefix)
{
	unsigned count = 0;

	for (const struct route *r = p->routes; r != NULL; r = r->next)
		count += is_prefix(r, conform_number, prefix);
	return count;
}

unsigned routes_of_case(const struct peer *p)
{
	uint8_t bytes[6] = { 0x20, 1, 0xd, 0xb8 };
	unsigned count = 0;

	dsf_store_be16(bytes + 4, (uint16_t)conform_number);
	for (const struct route *r = p->routes; r != NULL; r = r->next)
		count += memcmp(r->prefix, bytes, sizeof(bytes)) == 0;
	return count;
}

const uint8_t *attribute_of(const struct route *r, uint8_t type, size_t *size, uint8_t *flags)
{
	struct dsf_cursor in = { r->attributes, r->attributes + r->size, false }, value;
	uint8_t found;

	while (read_attribute(&in, flags, &found, &value)) {
		*size = dsf_cursor_left(&value);
		if (found == type)
			return value.at;
	}
	return NULL;
}

bool attribute_is(const struct route *r, uint8_t type, const char *hex)
{
	uint8_t want[256], flags;
	size_t size, want_size = from_hex(hex, want);
	const uint8_t *value = attribute_of(r, type, &size, &flags);

	return value != NULL && size == want_size && memcmp(value, want, size) == 0;
}

/* ---- messages that the target sends */

/* The next capability of the target's OPEN; *in begins behind the BGP identifier. */
static void find_capabilities(const struct peer *p, struct dsf_cursor *in, unsigned *size_size)
{
	*in = (struct dsf_cursor){ p->open + 10, p->open + p->open_size, false };
	*size_size = 1;
	if (p->open[9] == 255 && dsf_cursor_left(in) > 3 && in->at[0] == 255) {
		dsf_cursor_skip(in, 3);
		*size_size = 2;
	}
}

static bool holds(struct dsf_cursor value, const uint8_t *want, size_t size)
{
	for (; dsf_cursor_left(&value) >= size; dsf_cursor_skip(&value, 4)) {
		if (memcmp(value.at, want, size) == 0)
			return true;
		if (dsf_cursor_left(&value) < 4)
			break;
	}
	return false;
}

bool is_capable(const struct peer *p, uint8_t code, const char *hex)
{
	uint8_t want[256];
	size_t want_size = from_hex(hex, want);
	struct dsf_cursor in;
	unsigned size_size;

	find_capabilities(p, &in, &size_size);
	while (dsf_cursor_left(&in) > 0 && !in.failed) {
		uint64_t type = dsf_cursor_be(&in, 1), size = dsf_cursor_be(&in, size_size);
		const uint8_t *bytes = dsf_cursor_bytes(&in, size);
		struct dsf_cursor one = { bytes, bytes == NULL ? NULL : bytes + size, false };

		while (type == 2 && dsf_cursor_left(&one) > 0 && !one.failed) {
			uint64_t found = dsf_cursor_be(&one, 1), length = dsf_cursor_be(&one, 1);
			const uint8_t *value = dsf_cursor_bytes(&one, length);

			if (value != NULL && found == code &&
				holds((struct dsf_cursor){ value, value + length, false }, want,
					want_size))
				return true;
		}
	}
	return false;
}

static void take_open(struct peer *p, struct dsf_cursor in)
{
	if (p->opened)
		p->wrong = "it says OPEN twice";
	p->opened = true;
	p->open_size = dsf_cursor_left(&in);
	if (p->open_size < 10 || p->open_size > sizeof(p->open)) {
		p->wrong = "its OPEN has a wrong size";
		p->open_size = 10;
		return;
	}
	memcpy(p->open, in.at, p->open_size);
}

static void take_refresh(struct peer *p, struct dsf_cursor in)
{
	uint64_t afi = dsf_cursor_be(&in, 2), subtype = dsf_cursor_be(&in, 1);

	if (dsf_cursor_left(&in) != 1)
		p->wrong = "its ROUTE-REFRESH has a wrong size";
	if (afi != 2)
		return;
	p->refreshes += subtype == 0;
	p->begins += subtype == 1;
	p->ends += subtype == 2;
}

static void take_notification(struct peer *p, struct dsf_cursor in)
{
	p->noted = true;
	p->code = (uint8_t)dsf_cursor_be(&in, 1);
	p->subcode = (uint8_t)dsf_cursor_be(&in, 1);
	p->data_size = dsf_cursor_left(&in);
	if (p->data_size > sizeof(p->data))
		p->data_size = sizeof(p->data);
	memcpy(p->data, in.at, p->data_size);
	if (in.failed)
		p->wrong = "its NOTIFICATION is too short";
}

static void take_message(struct peer *p, const uint8_t *message, size_t size)
{
	struct dsf_cursor in = { message + HEADER_SIZE, message + size, false };

	if (p->noted)
		p->wrong = "it goes on behind its NOTIFICATION";
	switch (message[18]) {
	case OPEN: take_open(p, in); break;
	case UPDATE: take_update(p, in); break;
	case NOTIFICATION: take_notification(p, in); break;
	case KEEPALIVE:
		p->confirmed = true;
		p->keepalives++;
		break;
	case REFRESH: take_refresh(p, in); break;
	default: p->wrong = "it sends a message of no known type";
	}
}

void peer_hear(struct peer *p)
{
	static const uint8_t marker[16] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
	size_t at = 0;

	while (p->in_size - at >= HEADER_SIZE && p->wrong == NULL) {
		size_t size = dsf_load_be16(p->in + at + 16);
		bool extended = p->extended && p->opened && is_capable(p, 6, "");

		if (memcmp(p->in + at, marker, 16) != 0)
			p->wrong = "its marker isn't all ones";
		else if (size < HEADER_SIZE || (!extended && size > ORDINARY_MAX))
			p->wrong = "its message has an impossible length";
		if (p->wrong != NULL || p->in_size - at < size)
			break;
		take_message(p, p->in + at, size);
		at += size;
	}
	p->in_size -= at;
	memmove(p->in, p->in + at, p->in_size);
}

void peer_forget(struct peer *p)
{
	while (p->routes != NULL)
		drop_route(p, p->routes);
}
