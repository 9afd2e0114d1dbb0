#include "bgp/update.h"
#include <assert.h>
#include "base/bitset.h"

/* What a wrong attribute costs. */
enum cost { DISCARD, WITHDRAW };

#define WELL_KNOWN               BGP_FLAG_TRANSITIVE
#define OPTIONAL                 BGP_FLAG_OPTIONAL
#define OPTIONAL_TRANSITIVE      (BGP_FLAG_OPTIONAL | BGP_FLAG_TRANSITIVE)
#define KIND_FLAGS               (BGP_FLAG_OPTIONAL | BGP_FLAG_TRANSITIVE)
#define KIND(type, flags, wrong) [type] = { (flags), (wrong), true }

/* Flags of each attribute that we know, and what it costs when it is wrong: RFC 7606 7; 6793 6 for
 * the AS4 ones; 8092 6 for large communities. */
static const struct kind {
	uint8_t flags;
	uint8_t wrong; /* enum cost */
	bool known;
} kinds[] = {
	KIND(BGP_ORIGIN, WELL_KNOWN, WITHDRAW),
	KIND(BGP_AS_PATH, WELL_KNOWN, WITHDRAW),
	KIND(BGP_NEXT_HOP, WELL_KNOWN, DISCARD),
	KIND(BGP_MED, OPTIONAL, WITHDRAW),
	KIND(BGP_LOCAL_PREF, WELL_KNOWN, WITHDRAW),
	KIND(BGP_ATOMIC_AGGREGATE, WELL_KNOWN, DISCARD),
	KIND(BGP_AGGREGATOR, OPTIONAL_TRANSITIVE, DISCARD),
	KIND(BGP_COMMUNITIES, OPTIONAL_TRANSITIVE, WITHDRAW),
	KIND(BGP_ORIGINATOR_ID, OPTIONAL, WITHDRAW),
	KIND(BGP_CLUSTER_LIST, OPTIONAL, WITHDRAW),
	KIND(BGP_MP_REACH, OPTIONAL, WITHDRAW),
	KIND(BGP_MP_UNREACH, OPTIONAL, WITHDRAW),
	KIND(BGP_EXTENDED_COMMUNITIES, OPTIONAL_TRANSITIVE, WITHDRAW),
	KIND(BGP_AS4_PATH, OPTIONAL_TRANSITIVE, DISCARD),
	KIND(BGP_AS4_AGGREGATOR, OPTIONAL_TRANSITIVE, DISCARD),
	KIND(BGP_LARGE_COMMUNITIES, OPTIONAL_TRANSITIVE, WITHDRAW),
};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* One message under way. */
struct reading {
	const struct bgp_update_rules *rules;
	struct bgp_update *u;
	struct bgp_notification *n;
	uint64_t seen[4];        /* bit per type */
	bool others;             /* attributes but MP_UNREACH */
	bool reach;              /* prefixes of any family */
	struct bgp_span whole;   /* the attribute under way with its header */
	uint8_t subcode;         /* of what made it a withdrawal first, ... */
	struct bgp_span culprit; /* ... and the attribute */
};

bool bgp_nlri_decode(struct dsf_cursor *in, bool add_path, struct bgp_nlri *nlri)
{
	const uint8_t *bytes;
	uint8_t size;

	if (dsf_cursor_left(in) == 0)
		return false;
	nlri->path_id = add_path ? (uint32_t)dsf_cursor_be(in, 4) : 0;
	nlri->key.length = (uint8_t)dsf_cursor_be(in, 1);
	if (nlri->key.length > 128)
		in->failed = true;
	size = (uint8_t)((nlri->key.length + 7) / 8);
	bytes = dsf_cursor_bytes(in, size);
	if (in->failed)
		return false;
	memset(&nlri->key.address, 0, sizeof(nlri->key.address));
	if (size > 0)
		memcpy(nlri->key.address.bytes, bytes, size);
	if (nlri->key.length % 8 != 0)
		nlri->key.address.bytes[size - 1] &= (uint8_t)(0xff00u >> nlri->key.length % 8);
	return true;
}

void bgp_nlri_encode(struct dsf_writer *w, bool add_path, const struct bgp_nlri *nlri)
{
	if (add_path)
		dsf_writer_be(w, nlri->path_id, 4);
	dsf_writer_be(w, nlri->key.length, 1);
	dsf_writer_bytes(w, nlri->key.address.bytes, (nlri->key.length + 7u) / 8u);
}

static bool is_nlri_good(struct bgp_span span, bool add_path)
{
	struct dsf_cursor in = bgp_span_read(span);
	struct bgp_nlri nlri;

	while (bgp_nlri_decode(&in, add_path, &nlri))
		continue;
	return !in.failed;
}

/* IPv4 prefixes, which mean nothing to us but have to be in order. */
static bool is_ipv4_good(const uint8_t *bytes, size_t size)
{
	struct dsf_cursor in = { bytes, bytes + size, false };

	while (dsf_cursor_left(&in) > 0 && !in.failed) {
		uint64_t length = dsf_cursor_be(&in, 1);

		if (length > 32)
			return false;
		dsf_cursor_skip(&in, (length + 7) / 8);
	}
	return !in.failed;
}

static int reset(struct reading *r, enum bgp_update_error subcode, struct bgp_span culprit)
{
	return bgp_wire_refuse(r->n, BGP_ERR_UPDATE, (uint8_t)subcode, culprit.bytes, culprit.size);
}

/* The message as a whole is wrong: there is no attribute to show. */
static int reset_message(struct reading *r, enum bgp_update_error subcode)
{
	return reset(r, subcode, (struct bgp_span){ NULL, 0 });
}

static void withdraw(struct reading *r, enum bgp_update_error subcode)
{
	if (!r->u->withdraw) {
		r->subcode = (uint8_t)subcode;
		r->culprit = r->whole;
	}
	r->u->withdraw = true;
}

/* RFC 2545 3: global, or global and link-local. One that nobody can forward to costs the routes. */
static bool is_next_hop_good(const struct dsf_ip6 *a)
{
	return !dsf_ip6_is_unspecified(a) && !dsf_ip6_is_multicast(a) && !dsf_ip6_is_link_local(a);
}

static int read_reach(struct reading *r, const uint8_t *bytes, size_t size)
{
	struct dsf_cursor in = { bytes, bytes + size, false };
	uint64_t afi = dsf_cursor_be(&in, 2), safi = dsf_cursor_be(&in, 1);
	uint64_t hop_size = dsf_cursor_be(&in, 1);
	const uint8_t *hop = dsf_cursor_bytes(&in, hop_size);

	dsf_cursor_skip(&in, 1); /* reserved */
	if (in.failed)
		return reset(r, BGP_UPDATE_OPTIONAL, r->whole);
	r->reach = dsf_cursor_left(&in) > 0;
	if (afi != BGP_AFI_IPV6 || safi != BGP_SAFI_UNICAST)
		return 0;
	r->u->reach = (struct bgp_span){ in.at, dsf_cursor_left(&in) };
	if ((hop_size != 16 && hop_size != 32) || !is_nlri_good(r->u->reach, r->rules->add_path))
		return reset(r, BGP_UPDATE_OPTIONAL, r->whole); /* RFC 7606 5.3, 7.11 */
	memcpy(r->u->next_hop.bytes, hop, 16);
	if (r->reach && !is_next_hop_good(&r->u->next_hop))
		withdraw(r, BGP_UPDATE_NEXT_HOP);
	return 0;
}

static int read_unreach(struct reading *r, const uint8_t *bytes, size_t size)
{
	struct dsf_cursor in = { bytes, bytes + size, false };
	uint64_t afi = dsf_cursor_be(&in, 2), safi = dsf_cursor_be(&in, 1);

	if (in.failed)
		return reset(r, BGP_UPDATE_OPTIONAL, r->whole);
	if (afi != BGP_AFI_IPV6 || safi != BGP_SAFI_UNICAST)
		return 0;
	r->u->unreach = (struct bgp_span){ in.at, dsf_cursor_left(&in) };
	if (!is_nlri_good(r->u->unreach, r->rules->add_path))
		return reset(r, BGP_UPDATE_OPTIONAL, r->whole);
	r->u->end_of_rib = r->u->unreach.size == 0;
	return 0;
}

static bool is_list(size_t size, size_t of)
{
	return size > 0 && size % of == 0;
}

/* An AS number that isn't 0 (RFC 7607 2), and an address. */
static bool is_aggregator(const uint8_t *bytes, size_t size, unsigned as_size)
{
	struct dsf_cursor in = { bytes, bytes + size, false };

	return size == as_size + 4u && dsf_cursor_be(&in, as_size) != 0;
}

/* True when the value of an attribute that we know can be what it is. */
static bool is_value_good(
	const struct bgp_update_rules *rules, uint8_t type, const uint8_t *bytes, size_t size)
{
	switch ((enum bgp_attribute_type)type) {
	case BGP_ORIGIN: return size == 1 && bytes[0] <= BGP_ORIGIN_INCOMPLETE;
	case BGP_AS_PATH: return bgp_as_path_is_good(bytes, size, rules->as4 ? 4 : 2);
	case BGP_AS4_PATH: return size > 0 && bgp_as_path_is_good(bytes, size, 4);
	case BGP_NEXT_HOP:
	case BGP_MED:
	case BGP_LOCAL_PREF:
	case BGP_ORIGINATOR_ID: return size == 4;
	case BGP_ATOMIC_AGGREGATE: return size == 0;
	case BGP_AGGREGATOR: return is_aggregator(bytes, size, rules->as4 ? 4 : 2);
	case BGP_AS4_AGGREGATOR: return is_aggregator(bytes, size, 4);
	case BGP_COMMUNITIES:
	case BGP_CLUSTER_LIST: return is_list(size, 4);
	case BGP_EXTENDED_COMMUNITIES: return is_list(size, 8);
	case BGP_LARGE_COMMUNITIES: return is_list(size, 12);
	case BGP_MP_REACH:
	case BGP_MP_UNREACH: return true; /* read_reach, read_unreach */
	}
	return true;
}

/* Attributes that are read over: IPv4's next hop, and what only an iBGP peer may say. */
static bool is_ignored(const struct bgp_update_rules *rules, uint8_t type)
{
	return type == BGP_NEXT_HOP ||
	       (rules->external && (type == BGP_LOCAL_PREF || type == BGP_ORIGINATOR_ID ||
					   type == BGP_CLUSTER_LIST)) ||
	       (rules->as4 && (type == BGP_AS4_PATH || type == BGP_AS4_AGGREGATOR));
}

static enum bgp_update_error subcode_of(uint8_t type, bool flags_good)
{
	if (!flags_good)
		return BGP_UPDATE_FLAGS;
	switch (type) {
	case BGP_ORIGIN: return BGP_UPDATE_ORIGIN;
	case BGP_AS_PATH: return BGP_UPDATE_AS_PATH;
	default: return BGP_UPDATE_LENGTH;
	}
}

static void keep(struct reading *r, uint8_t type, uint8_t flags, const uint8_t *bytes, size_t size)
{
	if (!bgp_attributes_set(&r->u->attributes, type, flags, bytes, size))
		withdraw(r, BGP_UPDATE_LIST); /* more attributes than we carry */
}

static int read_known(
	struct reading *r, uint8_t type, uint8_t flags, const uint8_t *bytes, size_t size)
{
	bool flags_good = (flags & KIND_FLAGS) == kinds[type].flags;

	if (is_ignored(r->rules, type)) {
		r->u->discarded += type != BGP_NEXT_HOP;
		return 0;
	}
	if (!flags_good || !is_value_good(r->rules, type, bytes, size)) {
		if (flags_good && kinds[type].wrong == DISCARD) { /* flags: RFC 7606 3 (c) */
			r->u->discarded++;
			return 0;
		}
		withdraw(r, subcode_of(type, flags_good));
	}
	if (type == BGP_MP_REACH)
		return read_reach(r, bytes, size);
	if (type == BGP_MP_UNREACH)
		return read_unreach(r, bytes, size);
	keep(r, type, flags & (KIND_FLAGS | BGP_FLAG_PARTIAL), bytes, size);
	return 0;
}

static bool is_mp(uint8_t type)
{
	return type == BGP_MP_REACH || type == BGP_MP_UNREACH;
}

static int read_attribute(
	struct reading *r, uint8_t type, uint8_t flags, const uint8_t *bytes, size_t size)
{
	bool again = dsf_bitset_has(r->seen, type);

	dsf_bitset_add(r->seen, type);
	if (again && is_mp(type))
		return reset_message(r, BGP_UPDATE_LIST); /* RFC 7606 3 (g) */
	if (again) {
		r->u->discarded++;
		return 0;
	}
	if (type < KINDS && kinds[type].known)
		return read_known(r, type, flags, bytes, size);
	if ((flags & BGP_FLAG_OPTIONAL) == 0)
		return reset(r, BGP_UPDATE_WELL_KNOWN, r->whole);
	if ((flags & BGP_FLAG_TRANSITIVE) != 0)
		keep(r, type, OPTIONAL_TRANSITIVE | BGP_FLAG_PARTIAL, bytes, size);
	return 0;
}

static int read_attributes(struct reading *r, struct dsf_cursor in)
{
	int err = 0;

	while (err == 0 && dsf_cursor_left(&in) > 0) {
		const uint8_t *start = in.at, *bytes;
		uint8_t flags = (uint8_t)dsf_cursor_be(&in, 1),
			type = (uint8_t)dsf_cursor_be(&in, 1);
		size_t size = dsf_cursor_be(&in, (flags & BGP_FLAG_EXTENDED) != 0 ? 2 : 1);

		bytes = dsf_cursor_bytes(&in, size);
		r->others = r->others || type != BGP_MP_UNREACH;
		r->whole = (struct bgp_span){ start, (size_t)(in.at - start) };
		if (in.failed &&
			is_mp(type)) /* RFC 7606 3 (j): whose routes they are isn't known */
			return reset_message(r, BGP_UPDATE_LIST);
		if (in.failed) { /* RFC 7606 4 */
			withdraw(r, BGP_UPDATE_LIST);
			break;
		}
		err = read_attribute(r, type, flags, bytes, size);
	}
	return err;
}

/* Writes the first hops of a path of 2-octet numbers with 4 octets each. */
static void widen(struct dsf_writer *w, const uint8_t *bytes, size_t size, uint32_t hops)
{
	struct dsf_cursor in = { bytes, bytes + size, false };

	while (dsf_cursor_left(&in) > 0 && hops > 0) {
		uint64_t segment = dsf_cursor_be(&in, 1), count = dsf_cursor_be(&in, 1),
			 taken = count;

		if (segment == BGP_AS_SEQUENCE && count > hops)
			taken = hops;
		hops -= segment == BGP_AS_SET ? 1u : (uint32_t)taken;
		dsf_writer_be(w, segment, 1);
		dsf_writer_be(w, taken, 1);
		for (uint64_t i = 0; i < count; i++) {
			uint64_t as = dsf_cursor_be(&in, 2);

			if (i < taken)
				dsf_writer_be(w, as, 4);
		}
	}
}

/* RFC 6793 4.2.3: an aggregator that isn't AS_TRANS says that an old speaker was the last to touch
 * the path, and what the new attributes say is out of date. */
static bool widen_aggregator(struct reading *r, struct dsf_writer *w)
{
	struct bgp_attributes *a = &r->u->attributes;
	const struct bgp_attribute *old = bgp_attributes_find(a, BGP_AGGREGATOR);
	const struct bgp_attribute *new = bgp_attributes_find(a, BGP_AS4_AGGREGATOR);
	uint8_t *start = w->at;

	if (old == NULL)
		return true;
	if (dsf_load_be16(old->bytes) == BGP_AS_TRANS && new != NULL) {
		bgp_attributes_set(a, BGP_AGGREGATOR, old->flags, new->bytes, new->size);
		return true;
	}
	dsf_writer_be(w, dsf_load_be16(old->bytes), 4);
	dsf_writer_bytes(w, old->bytes + 2, 4);
	if (w->failed)
		bgp_attributes_remove(a, BGP_AGGREGATOR);
	else
		bgp_attributes_set(a, BGP_AGGREGATOR, old->flags, start, 8);
	return new == NULL;
}

/* Turns what a speaker of 2-octet numbers sent into 4-octet form (RFC 6793 4.2.3). */
static void widen_all(struct reading *r)
{
	struct bgp_attributes *a = &r->u->attributes;
	struct dsf_writer w = { r->rules->scratch, r->rules->scratch + r->rules->scratch_size,
		false };
	bool trusted = widen_aggregator(r, &w);
	const struct bgp_attribute *old = bgp_attributes_find(a, BGP_AS_PATH);
	const struct bgp_attribute *new = bgp_attributes_find(a, BGP_AS4_PATH);
	uint8_t *start = w.at;
	uint32_t hops, new_hops = 0;

	if (old != NULL && old->size > 0) {
		hops = bgp_as_path_hops(old->bytes, old->size, 2);
		if (new != NULL && trusted)
			new_hops = bgp_as_path_hops(new->bytes, new->size, 4);
		if (new_hops > hops)
			new_hops = 0; /* the new path is longer: it is ignored */
		widen(&w, old->bytes, old->size, hops - new_hops);
		if (new_hops > 0)
			dsf_writer_bytes(&w, new->bytes, new->size);
		if (w.failed)
			withdraw(r, BGP_UPDATE_AS_PATH);
		else
			bgp_attributes_set(
				a, BGP_AS_PATH, old->flags, start, (size_t)(w.at - start));
	}
	bgp_attributes_remove(a, BGP_AS4_PATH);
	bgp_attributes_remove(a, BGP_AS4_AGGREGATOR);
}

/* RFC 7606 3 (d); 4271 6.3: an eBGP path begins with the peer's AS. */
static void check_mandatory(struct reading *r)
{
	const struct bgp_attributes *a = &r->u->attributes;
	struct bgp_as_walk walk;
	uint32_t first;

	if (bgp_attributes_find(a, BGP_ORIGIN) == NULL ||
		bgp_attributes_find(a, BGP_AS_PATH) == NULL ||
		(!r->rules->external && bgp_attributes_find(a, BGP_LOCAL_PREF) == NULL))
		withdraw(r, BGP_UPDATE_MISSING);
	if (r->u->withdraw || !r->rules->external)
		return;
	bgp_as_walk_start(&walk, a);
	if (!bgp_as_walk_next(&walk, &first) || walk.segment != BGP_AS_SEQUENCE ||
		first != r->rules->as)
		withdraw(r, BGP_UPDATE_AS_PATH);
}

int bgp_update_decode(const uint8_t *body, size_t size, const struct bgp_update_rules *rules,
	struct bgp_update *u, struct bgp_notification *n)
{
	struct dsf_cursor in = { body, body + size, false };
	struct reading r = { .rules = rules, .u = u, .n = n };
	uint64_t withdrawn_size = dsf_cursor_be(&in, 2);
	const uint8_t *withdrawn = dsf_cursor_bytes(&in, withdrawn_size);
	uint64_t attributes_size = dsf_cursor_be(&in, 2);
	const uint8_t *attributes = dsf_cursor_bytes(&in, attributes_size);
	int err;

	u->attributes.count = 0;
	u->reach = u->unreach = (struct bgp_span){ NULL, 0 };
	u->withdraw = u->end_of_rib = false;
	u->discarded = 0;
	if (in.failed)
		return reset_message(&r, BGP_UPDATE_LIST);
	if (!is_ipv4_good(withdrawn, withdrawn_size) || !is_ipv4_good(in.at, dsf_cursor_left(&in)))
		return reset_message(&r, BGP_UPDATE_NETWORK);
	err = read_attributes(
		&r, (struct dsf_cursor){ attributes, attributes + attributes_size, false });
	if (err < 0)
		return err;
	r.reach = r.reach || dsf_cursor_left(&in) > 0;
	if (u->withdraw && !r.reach && r.others) /* RFC 7606 5.2: nothing to withdraw for it */
		return reset(&r, r.subcode, r.culprit);
	if (u->reach.size > 0) {
		if (!rules->as4 && !u->withdraw)
			widen_all(&r);
		check_mandatory(&r);
	}
	/* RFC 4724 2: MP_UNREACH alone */
	u->end_of_rib = u->end_of_rib && !r.others && !r.reach && withdrawn_size == 0;
	return 0;
}

static void begin(struct bgp_update_writer *u, uint8_t *to, size_t cap, bool add_path)
{
	if (cap > BGP_MESSAGE_EXTENDED_MAX)
		cap = BGP_MESSAGE_EXTENDED_MAX;
	memset(u, 0, sizeof(*u));
	u->start = to;
	u->w = (struct dsf_writer){ to + BGP_HEADER_SIZE, to + cap, false };
	u->add_path = add_path;
	dsf_writer_be(&u->w, 0, 4); /* no IPv4 withdrawals; size of attributes follows later */
}

static void begin_mp(struct bgp_update_writer *u, enum bgp_attribute_type type)
{
	dsf_writer_be(&u->w, BGP_FLAG_OPTIONAL | BGP_FLAG_EXTENDED, 1);
	dsf_writer_be(&u->w, type, 1);
	u->value_size = dsf_writer_room(&u->w, 2);
	dsf_writer_be(&u->w, BGP_AFI_IPV6 << 8 | BGP_SAFI_UNICAST, 3);
}

bool bgp_update_reach(struct bgp_update_writer *u, uint8_t *to, size_t cap, bool add_path,
	const struct dsf_ip6 *next_hop, const uint8_t *attributes, size_t attributes_size)
{
	begin(u, to, cap, add_path);
	begin_mp(u, BGP_MP_REACH);
	dsf_writer_be(&u->w, sizeof(next_hop->bytes), 1);
	dsf_writer_bytes(&u->w, next_hop->bytes, sizeof(next_hop->bytes));
	dsf_writer_be(&u->w, 0, 1);
	u->rest = (struct bgp_span){ attributes, attributes_size };
	return !u->w.failed && (size_t)(u->w.end - u->w.at) >= attributes_size + BGP_NLRI_SIZE_MAX;
}

void bgp_update_unreach(struct bgp_update_writer *u, uint8_t *to, size_t cap, bool add_path)
{
	begin(u, to, cap, add_path);
	begin_mp(u, BGP_MP_UNREACH);
	assert(!u->w.failed);
}

bool bgp_update_add(struct bgp_update_writer *u, const struct bgp_nlri *nlri)
{
	size_t size = (u->add_path ? 5u : 1u) + (nlri->key.length + 7u) / 8u;

	if ((size_t)(u->w.end - u->w.at) < size + u->rest.size)
		return false;
	bgp_nlri_encode(&u->w, u->add_path, nlri);
	return true;
}

size_t bgp_update_finish(struct bgp_update_writer *u)
{
	size_t size;

	dsf_store_be16(u->value_size, (uint16_t)(u->w.at - u->value_size - 2));
	dsf_writer_bytes(&u->w, u->rest.bytes, u->rest.size);
	assert(!u->w.failed);
	size = (size_t)(u->w.at - u->start);
	dsf_store_be16(u->start + BGP_HEADER_SIZE + 2, (uint16_t)(size - BGP_HEADER_SIZE - 4));
	bgp_wire_header_encode(u->start, BGP_UPDATE, size);
	return size;
}

/* A path of 4-octet numbers with 2 octets each; true when all of them fit. */
static bool narrow(struct dsf_writer *w, const uint8_t *bytes, size_t size)
{
	struct dsf_cursor in = { bytes, bytes + size, false };
	bool fits = true;

	while (dsf_cursor_left(&in) > 0) {
		uint64_t segment = dsf_cursor_be(&in, 1), count = dsf_cursor_be(&in, 1);

		dsf_writer_be(w, segment, 1);
		dsf_writer_be(w, count, 1);
		for (; count > 0; count--) {
			uint64_t as = dsf_cursor_be(&in, 4);

			fits = fits && as <= UINT16_MAX;
			dsf_writer_be(w, as > UINT16_MAX ? BGP_AS_TRANS : as, 2);
		}
	}
	return fits;
}

size_t bgp_update_as2(uint8_t *to, size_t cap, const uint8_t *attributes, size_t size)
{
	struct bgp_attributes a;
	const struct bgp_attribute *path, *aggregator;
	uint8_t old_aggregator[6];
	/* the narrow path lies behind the room for the result, which it never outgrows */
	struct dsf_writer w = { to + cap / 2, to + cap, false }, out = { to, to + cap / 2, false };

	bgp_attributes_read(&a, attributes, size);
	aggregator = bgp_attributes_find(&a, BGP_AGGREGATOR);
	if (aggregator != NULL && aggregator->size == 8) {
		const uint8_t *bytes = bgp_attribute_bytes(aggregator);
		uint32_t as = dsf_load_be32(bytes);
		uint8_t flags = aggregator->flags;

		dsf_store_be16(old_aggregator, as > UINT16_MAX ? BGP_AS_TRANS : (uint16_t)as);
		memcpy(old_aggregator + 2, bytes + 4, 4);
		if (as > UINT16_MAX)
			bgp_attributes_set(&a, BGP_AS4_AGGREGATOR, OPTIONAL_TRANSITIVE, bytes, 8);
		bgp_attributes_set(&a, BGP_AGGREGATOR, flags, old_aggregator, 6);
	}
	path = bgp_attributes_find(&a, BGP_AS_PATH);
	if (path != NULL && path->size > 0) {
		uint8_t *start = w.at;
		struct bgp_attribute old = *path;

		if (!narrow(&w, old.bytes, old.size))
			bgp_attributes_set(
				&a, BGP_AS4_PATH, OPTIONAL_TRANSITIVE, old.bytes, old.size);
		bgp_attributes_set(&a, BGP_AS_PATH, old.flags, start, (size_t)(w.at - start));
	}
	bgp_attributes_write(&a, &out);
	return w.failed || out.failed ? 0 : (size_t)(out.at - to);
}
