/*
 * Decoders of BGP messages. The first octet says what was agreed on, the rest is a stream of
 * messages. What is taken must come back the same after it was written.
 */
#include <stdlib.h>
#include <string.h>
#include "bgp/update.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint8_t scratch[2 * BGP_MESSAGE_EXTENDED_MAX];
static uint8_t canonical[2 * BGP_MESSAGE_EXTENDED_MAX], again[2 * BGP_MESSAGE_EXTENDED_MAX];
static uint8_t narrow[4 * BGP_MESSAGE_EXTENDED_MAX], message[BGP_MESSAGE_EXTENDED_MAX];

static void require(bool held)
{
	if (!held)
		abort();
}

static size_t canonical_of(const struct bgp_attributes *a, uint8_t *to, size_t cap)
{
	struct dsf_writer w = { to, to + cap, false };

	bgp_attributes_write(a, &w);
	require(!w.failed);
	return (size_t)(w.at - to);
}

static void check_open(const uint8_t *body, size_t size)
{
	uint8_t bytes[BGP_MESSAGE_MAX];
	struct bgp_notification n = { 0 };
	struct bgp_open open, back;

	if (bgp_wire_open_decode(body, size, &open, &n) < 0) {
		require(n.code == BGP_ERR_OPEN);
		return;
	}
	if (!open.as4 && open.as > UINT16_MAX)
		abort();
	size = bgp_wire_open_encode(bytes, &open);
	require(bgp_wire_open_decode(bytes + BGP_HEADER_SIZE, size - BGP_HEADER_SIZE, &back, &n) ==
		0);
	require(memcmp(&open, &back, sizeof(open)) == 0);
}

/* Writes all that u announces in as many messages as it takes and reads them again. */
static void check_reach(const struct bgp_update *u, struct bgp_update_rules *rules,
	const uint8_t *attributes, size_t attributes_size)
{
	struct dsf_cursor in = bgp_span_read(u->reach);
	struct bgp_nlri nlri, back_nlri;
	bool more = bgp_nlri_decode(&in, rules->add_path, &nlri);

	while (more) {
		struct bgp_notification n;
		struct bgp_update_writer w;
		struct bgp_update back;
		struct dsf_cursor out;
		size_t size;

		if (!bgp_update_reach(&w, message, sizeof(message), rules->add_path, &u->next_hop,
			    attributes, attributes_size))
			return;
		require(bgp_update_add(&w, &nlri));
		while ((more = bgp_nlri_decode(&in, rules->add_path, &back_nlri)) &&
			bgp_update_add(&w, &back_nlri))
			continue;
		size = bgp_update_finish(&w);
		require(bgp_update_decode(message + BGP_HEADER_SIZE, size - BGP_HEADER_SIZE, rules,
				&back, &n) == 0);
		require(!back.withdraw && dsf_ip6_equal(&back.next_hop, &u->next_hop));
		out = bgp_span_read(back.reach);
		struct bgp_nlri first = nlri;

		require(bgp_nlri_decode(&out, rules->add_path, &nlri));
		require(memcmp(&nlri.key, &first.key, sizeof(nlri.key)) == 0 &&
			nlri.path_id == first.path_id);
		require(canonical_of(&back.attributes, again, sizeof(again)) > 0);
		nlri = back_nlri;
	}
}

static void check_update(const uint8_t *body, size_t size, struct bgp_update_rules *rules)
{
	struct bgp_notification n = { 0 };
	struct bgp_update u;
	struct bgp_attributes back;
	size_t canonical_size;

	if (bgp_update_decode(body, size, rules, &u, &n) < 0) {
		require(n.code == BGP_ERR_UPDATE && n.subcode > 0);
		return;
	}
	if (u.withdraw || u.reach.size == 0)
		return;
	canonical_size = canonical_of(&u.attributes, canonical, sizeof(canonical));
	bgp_attributes_read(&back, canonical, canonical_size);
	require(canonical_of(&back, again, sizeof(again)) == canonical_size &&
		memcmp(canonical, again, canonical_size) == 0);
	size = bgp_update_as2(narrow, sizeof(narrow), canonical, canonical_size);
	require(size > 0);
	if (!rules->as4) {
		check_reach(&u, rules, narrow, size);
	} else {
		check_reach(&u, rules, canonical, canonical_size);
	}
}

static void check_notification(const uint8_t *body, size_t size)
{
	char text[BGP_TEXT_MAX + 1];
	struct bgp_notification n, again_n = { 0 };

	bgp_wire_notification_decode(body, size, &n);
	if (!bgp_wire_text(&n, text))
		return;
	again_n.code = n.code;
	again_n.subcode = n.subcode;
	bgp_wire_text_set(&again_n, text);
	require(again_n.size <= n.size); /* less where the text has an octet 0 */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bgp_update_rules rules = {
		.as = 65001, .scratch = scratch, .scratch_size = sizeof(scratch)
	};
	struct bgp_notification n;
	struct bgp_refresh refresh;
	struct bgp_header h;
	bool extended;

	if (size == 0)
		return 0;
	rules.external = data[0] & 1u;
	rules.as4 = data[0] & 2u;
	rules.add_path = data[0] & 4u;
	extended = data[0] & 8u;
	data++, size--;
	while (bgp_wire_header_decode(data, size, extended, &h, &n) > 0 && h.size <= size) {
		const uint8_t *body = data + BGP_HEADER_SIZE;
		size_t body_size = h.size - BGP_HEADER_SIZE;

		switch ((enum bgp_type)h.type) {
		case BGP_OPEN: check_open(body, body_size); break;
		case BGP_UPDATE: check_update(body, body_size, &rules); break;
		case BGP_NOTIFICATION: check_notification(body, body_size); break;
		case BGP_ROUTE_REFRESH:
			(void)bgp_wire_refresh_decode(body, body_size, &refresh, &n);
			break;
		case BGP_KEEPALIVE: break;
		}
		data += h.size;
		size -= h.size;
	}
	return 0;
}
