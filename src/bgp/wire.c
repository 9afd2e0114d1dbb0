#include "bgp/wire.h"
#include <assert.h>
#include "base/cursor.h"
#include "base/err.h"
#include "base/utf8.h"

#define MARKER_SIZE 16u

/* RFC 4271 4.2, 5492 4, 9072 2 */
#define PARAMETER_CAPABILITIES 2u
#define PARAMETERS_EXTENDED    255u

enum capability {
	CAPABILITY_MULTIPROTOCOL = 1,
	CAPABILITY_REFRESH = 2,
	CAPABILITY_EXTENDED_MESSAGE = 6,
	CAPABILITY_GRACEFUL = 64,
	CAPABILITY_AS4 = 65,
	CAPABILITY_ADD_PATH = 69,
	CAPABILITY_ENHANCED_REFRESH = 70,
};

#define RESTART_R     0x8000u
#define RESTART_F     0x80u
#define OPEN_BODY_MIN 10u
#define REFRESH_BODY  4u

int bgp_wire_refuse(
	struct bgp_notification *n, uint8_t code, uint8_t subcode, const void *data, size_t size)
{
	n->code = code;
	n->subcode = subcode;
	n->size = (uint16_t)(size < BGP_DATA_MAX ? size : BGP_DATA_MAX);
	if (n->size > 0)
		memcpy(n->data, data, n->size);
	return -DSF_E_PEER;
}

static bool is_marker(const uint8_t *bytes)
{
	for (unsigned i = 0; i < MARKER_SIZE; i++) {
		if (bytes[i] != 0xff)
			return false;
	}
	return true;
}

/* RFC 4271 6.1: each type has a least size; RFC 8654 4: two types never grow. */
static bool is_size_possible(uint8_t type, uint16_t size)
{
	switch (type) {
	case BGP_OPEN: return size >= BGP_HEADER_SIZE + OPEN_BODY_MIN && size <= BGP_MESSAGE_MAX;
	case BGP_UPDATE: return size >= BGP_HEADER_SIZE + 4;
	case BGP_NOTIFICATION: return size >= BGP_HEADER_SIZE + 2;
	case BGP_KEEPALIVE: return size == BGP_HEADER_SIZE;
	default: return true; /* ROUTE-REFRESH has an error of its own */
	}
}

int bgp_wire_header_decode(const uint8_t *bytes, size_t size, bool extended, struct bgp_header *h,
	struct bgp_notification *n)
{
	if (size < BGP_HEADER_SIZE)
		return 0;
	if (!is_marker(bytes))
		return bgp_wire_refuse(n, BGP_ERR_HEADER, BGP_HEADER_MARKER, NULL, 0);
	h->size = dsf_load_be16(bytes + MARKER_SIZE);
	h->type = bytes[MARKER_SIZE + 2];
	if (h->size < BGP_HEADER_SIZE || (!extended && h->size > BGP_MESSAGE_MAX))
		return bgp_wire_refuse(
			n, BGP_ERR_HEADER, BGP_HEADER_LENGTH, bytes + MARKER_SIZE, 2);
	if (h->type < BGP_OPEN || h->type > BGP_ROUTE_REFRESH)
		return bgp_wire_refuse(
			n, BGP_ERR_HEADER, BGP_HEADER_TYPE, bytes + MARKER_SIZE + 2, 1);
	if (!is_size_possible(h->type, h->size))
		return bgp_wire_refuse(
			n, BGP_ERR_HEADER, BGP_HEADER_LENGTH, bytes + MARKER_SIZE, 2);
	return 1;
}

void bgp_wire_header_encode(uint8_t *to, enum bgp_type type, size_t size)
{
	assert(size >= BGP_HEADER_SIZE && size <= BGP_MESSAGE_EXTENDED_MAX);
	memset(to, 0xff, MARKER_SIZE);
	dsf_store_be16(to + MARKER_SIZE, (uint16_t)size);
	to[MARKER_SIZE + 2] = (uint8_t)type;
}

static void write_capability(struct dsf_writer *w, enum capability code, unsigned size)
{
	dsf_writer_be(w, code, 1);
	dsf_writer_be(w, size, 1);
}

static void write_capabilities(struct dsf_writer *w, const struct bgp_open *o)
{
	if (o->ipv6) {
		write_capability(w, CAPABILITY_MULTIPROTOCOL, 4);
		dsf_writer_be(w, BGP_AFI_IPV6 << 16 | BGP_SAFI_UNICAST, 4);
	}
	if (o->refresh)
		write_capability(w, CAPABILITY_REFRESH, 0);
	if (o->extended)
		write_capability(w, CAPABILITY_EXTENDED_MESSAGE, 0);
	if (o->graceful) {
		write_capability(w, CAPABILITY_GRACEFUL, o->graceful_ipv6 ? 6 : 2);
		dsf_writer_be(w, (o->restarting ? RESTART_R : 0u) | o->restart_s, 2);
		if (o->graceful_ipv6) {
			dsf_writer_be(w, BGP_AFI_IPV6 << 8 | BGP_SAFI_UNICAST, 3);
			dsf_writer_be(w, o->forwarding ? RESTART_F : 0, 1);
		}
	}
	if (o->as4) {
		write_capability(w, CAPABILITY_AS4, 4);
		dsf_writer_be(w, o->as, 4);
	}
	if (o->add_path != 0) {
		write_capability(w, CAPABILITY_ADD_PATH, 4);
		dsf_writer_be(w, BGP_AFI_IPV6 << 8 | BGP_SAFI_UNICAST, 3);
		dsf_writer_be(w, o->add_path, 1);
	}
	if (o->enhanced)
		write_capability(w, CAPABILITY_ENHANCED_REFRESH, 0);
}

size_t bgp_wire_open_encode(uint8_t *to, const struct bgp_open *o)
{
	struct dsf_writer w = { to + BGP_HEADER_SIZE, to + BGP_MESSAGE_MAX, false };
	uint8_t *lengths, *capabilities;

	assert(o->restart_s <= BGP_RESTART_TIME_MAX);
	dsf_writer_be(&w, BGP_VERSION, 1);
	dsf_writer_be(&w, o->as > UINT16_MAX ? BGP_AS_TRANS : o->as, 2);
	dsf_writer_be(&w, o->hold_s, 2);
	dsf_writer_be(&w, o->id, 4);
	lengths = dsf_writer_room(&w, 3);
	capabilities = w.at;
	write_capabilities(&w, o);
	lengths[0] = (uint8_t)(w.at - capabilities + 2);
	lengths[1] = PARAMETER_CAPABILITIES;
	lengths[2] = (uint8_t)(w.at - capabilities);
	assert(!w.failed && w.at - capabilities + 2 < (int)PARAMETERS_EXTENDED);
	bgp_wire_header_encode(to, BGP_OPEN, (size_t)(w.at - to));
	return (size_t)(w.at - to);
}

static bool is_ipv6_unicast(struct dsf_cursor *in)
{
	uint64_t afi = dsf_cursor_be(in, 2), safi = dsf_cursor_be(in, 1);

	return afi == BGP_AFI_IPV6 && safi == BGP_SAFI_UNICAST;
}

static void read_graceful(struct bgp_open *o, struct dsf_cursor in)
{
	uint64_t head = dsf_cursor_be(&in, 2);

	if (in.failed || dsf_cursor_left(&in) % 4 != 0)
		return;
	o->graceful = true; /* the last one counts, RFC 4724 3 */
	o->graceful_ipv6 = o->forwarding = false;
	o->restarting = (head & RESTART_R) != 0;
	o->restart_s = head & BGP_RESTART_TIME_MAX;
	while (dsf_cursor_left(&in) > 0) {
		bool ours = is_ipv6_unicast(&in);
		uint64_t flags = dsf_cursor_be(&in, 1);

		if (ours) {
			o->graceful_ipv6 = true;
			o->forwarding = (flags & RESTART_F) != 0;
		}
	}
}

static void read_add_path(struct bgp_open *o, struct dsf_cursor in)
{
	if (dsf_cursor_left(&in) % 4 != 0)
		return;
	while (dsf_cursor_left(&in) > 0) {
		bool ours = is_ipv6_unicast(&in);
		uint64_t mode = dsf_cursor_be(&in, 1);

		if (ours && mode >= BGP_ADD_PATH_RECEIVE &&
			mode <= (BGP_ADD_PATH_RECEIVE | BGP_ADD_PATH_SEND)) /* RFC 7911 4 */
			o->add_path = (uint8_t)mode;
	}
}

/* A capability of the wrong size is as good as none, but for AS numbers: a peer that says it sends
 * four octets can't be read as one that sends two. */
static bool read_capability(struct bgp_open *o, uint8_t code, struct dsf_cursor in)
{
	size_t size = dsf_cursor_left(&in);

	switch (code) {
	case CAPABILITY_MULTIPROTOCOL:
		if (size == 4 && dsf_load_be16(in.at) == BGP_AFI_IPV6 &&
			in.at[3] == BGP_SAFI_UNICAST)
			o->ipv6 = true;
		break;
	case CAPABILITY_REFRESH: o->refresh = true; break;
	case CAPABILITY_EXTENDED_MESSAGE: o->extended = true; break;
	case CAPABILITY_ENHANCED_REFRESH: o->enhanced = true; break;
	case CAPABILITY_GRACEFUL: read_graceful(o, in); break;
	case CAPABILITY_ADD_PATH: read_add_path(o, in); break;
	case CAPABILITY_AS4:
		if (size != 4)
			return false;
		o->as4 = true;
		o->as = dsf_load_be32(in.at);
		break;
	default: break;
	}
	return true;
}

static bool read_capabilities(struct bgp_open *o, struct dsf_cursor in)
{
	while (dsf_cursor_left(&in) > 0) {
		uint64_t code = dsf_cursor_be(&in, 1), size = dsf_cursor_be(&in, 1);
		const uint8_t *value = dsf_cursor_bytes(&in, size);
		struct dsf_cursor inside = { value, value == NULL ? NULL : value + size, false };

		if (in.failed || !read_capability(o, (uint8_t)code, inside))
			return false;
	}
	return true;
}

/* in: all that follows the one-octet length of the optional parameters. */
static int read_parameters(
	struct bgp_open *o, struct dsf_cursor in, uint8_t length, struct bgp_notification *n)
{
	unsigned size_size = 1;

	if (length == PARAMETERS_EXTENDED && dsf_cursor_left(&in) > 0 &&
		in.at[0] == PARAMETERS_EXTENDED) { /* RFC 9072 2 */
		size_size = 2;
		dsf_cursor_skip(&in, 1);
		if (dsf_cursor_be(&in, 2) != dsf_cursor_left(&in))
			in.failed = true;
	} else if (length != dsf_cursor_left(&in)) {
		in.failed = true;
	}
	while (!in.failed && dsf_cursor_left(&in) > 0) {
		uint64_t type = dsf_cursor_be(&in, 1), size = dsf_cursor_be(&in, size_size);
		const uint8_t *value = dsf_cursor_bytes(&in, size);
		struct dsf_cursor inside = { value, value == NULL ? NULL : value + size, false };

		if (in.failed)
			break;
		if (type != PARAMETER_CAPABILITIES)
			return bgp_wire_refuse(n, BGP_ERR_OPEN, BGP_OPEN_PARAMETER, NULL, 0);
		if (!read_capabilities(o, inside))
			in.failed = true;
	}
	return in.failed ? bgp_wire_refuse(n, BGP_ERR_OPEN, BGP_OPEN_UNSPECIFIC, NULL, 0) : 0;
}

int bgp_wire_open_decode(
	const uint8_t *body, size_t size, struct bgp_open *o, struct bgp_notification *n)
{
	struct dsf_cursor in = { body, body + size, false };
	static const uint8_t version[2] = { 0, BGP_VERSION };
	uint8_t length;
	int err;

	memset(o, 0, sizeof(*o));
	if (dsf_cursor_be(&in, 1) != BGP_VERSION)
		return bgp_wire_refuse(n, BGP_ERR_OPEN, BGP_OPEN_VERSION, version, sizeof(version));
	o->as = (uint32_t)dsf_cursor_be(&in, 2);
	o->hold_s = (uint16_t)dsf_cursor_be(&in, 2);
	o->id = (uint32_t)dsf_cursor_be(&in, 4);
	length = (uint8_t)dsf_cursor_be(&in, 1);
	if (in.failed)
		return bgp_wire_refuse(n, BGP_ERR_OPEN, BGP_OPEN_UNSPECIFIC, NULL, 0);
	err = read_parameters(o, in, length, n);
	if (err < 0)
		return err;
	if (o->as == 0) /* RFC 7607 2 */
		return bgp_wire_refuse(n, BGP_ERR_OPEN, BGP_OPEN_PEER_AS, NULL, 0);
	if (o->id == 0)
		return bgp_wire_refuse(n, BGP_ERR_OPEN, BGP_OPEN_IDENTIFIER, NULL, 0);
	if (o->hold_s == 1 || o->hold_s == 2)
		return bgp_wire_refuse(n, BGP_ERR_OPEN, BGP_OPEN_HOLD, NULL, 0);
	return 0;
}

size_t bgp_wire_keepalive_encode(uint8_t *to)
{
	bgp_wire_header_encode(to, BGP_KEEPALIVE, BGP_HEADER_SIZE);
	return BGP_HEADER_SIZE;
}

size_t bgp_wire_notification_encode(uint8_t *to, const struct bgp_notification *n)
{
	assert(n->size <= BGP_DATA_MAX);
	bgp_wire_header_encode(to, BGP_NOTIFICATION, BGP_HEADER_SIZE + 2u + n->size);
	to[BGP_HEADER_SIZE] = n->code;
	to[BGP_HEADER_SIZE + 1] = n->subcode;
	memcpy(to + BGP_HEADER_SIZE + 2, n->data, n->size);
	return BGP_HEADER_SIZE + 2u + n->size;
}

void bgp_wire_notification_decode(const uint8_t *body, size_t size, struct bgp_notification *n)
{
	struct dsf_cursor in = { body, body + size, false };
	uint8_t code = (uint8_t)dsf_cursor_be(&in, 1), subcode = (uint8_t)dsf_cursor_be(&in, 1);

	(void)bgp_wire_refuse(n, code, subcode, in.at, dsf_cursor_left(&in));
}

void bgp_wire_text_set(struct bgp_notification *n, const char *text)
{
	const uint8_t *bytes = (const uint8_t *)text;
	size_t size = strlen(text), used = 0;

	while (used < size) {
		unsigned count = dsf_utf8_size(bytes + used, size - used);

		if (count == 0 || used + count > BGP_TEXT_MAX)
			break;
		used += count;
	}
	n->data[0] = (uint8_t)used;
	memcpy(n->data + 1, text, used);
	n->size = (uint16_t)(used + 1);
}

bool bgp_wire_text(const struct bgp_notification *n, char *text)
{
	const uint8_t *bytes = n->data + 1;
	unsigned count;

	text[0] = '\0';
	if (n->code != BGP_ERR_CEASE ||
		(n->subcode != BGP_CEASE_SHUTDOWN && n->subcode != BGP_CEASE_RESET))
		return false;
	if (n->size < 2 || n->data[0] != n->size - 1)
		return false;
	for (size_t used = 0; used < n->data[0]; used += count) {
		count = dsf_utf8_size(bytes + used, n->data[0] - used);
		if (count == 0 || bytes[used] < 0x20 || bytes[used] == 0x7f)
			return false;
	}
	memcpy(text, bytes, n->data[0]);
	text[n->data[0]] = '\0';
	return true;
}

size_t bgp_wire_refresh_encode(uint8_t *to, enum bgp_refresh_subtype subtype)
{
	bgp_wire_header_encode(to, BGP_ROUTE_REFRESH, BGP_HEADER_SIZE + REFRESH_BODY);
	dsf_store_be16(to + BGP_HEADER_SIZE, BGP_AFI_IPV6);
	to[BGP_HEADER_SIZE + 2] = (uint8_t)subtype;
	to[BGP_HEADER_SIZE + 3] = BGP_SAFI_UNICAST;
	return BGP_HEADER_SIZE + REFRESH_BODY;
}

int bgp_wire_refresh_decode(
	const uint8_t *body, size_t size, struct bgp_refresh *r, struct bgp_notification *n)
{
	uint8_t message[BGP_DATA_MAX] = { 0 };
	size_t shown =
		size < BGP_DATA_MAX - BGP_HEADER_SIZE ? size : BGP_DATA_MAX - BGP_HEADER_SIZE;

	if (size == REFRESH_BODY) {
		r->afi = dsf_load_be16(body);
		r->subtype = body[2];
		r->safi = body[3];
		return 0;
	}
	bgp_wire_header_encode(message, BGP_ROUTE_REFRESH, BGP_HEADER_SIZE + size);
	if (shown > 0)
		memcpy(message + BGP_HEADER_SIZE, body, shown);
	return bgp_wire_refuse(n, BGP_ERR_REFRESH, 1, message, BGP_HEADER_SIZE + shown);
}
