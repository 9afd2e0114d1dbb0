#include "ip/route.h"
#include "base/bitset.h"
#include "base/cursor.h"
#include "base/err.h"
#include "base/rng.h"

#define SLOTS_FIRST 8u

struct key {
	uint64_t high, low;
};

static struct key key_of(const struct dsf_ip6 *a, unsigned length)
{
	struct key key = { dsf_load_be64(a->bytes), dsf_load_be64(a->bytes + 8) };

	if (length <= 64) {
		key.low = 0;
		key.high = length == 0 ? 0 : key.high & UINT64_MAX << (64 - length);
	} else {
		key.low &= UINT64_MAX << (128 - length);
	}
	return key;
}

static uint32_t home(struct key key, uint32_t slots_count)
{
	return (uint32_t)dsf_mix(dsf_mix(key.high) ^ key.low) & (slots_count - 1);
}

/* The slot of key, or the free one where it would go. There is always a free one. */
static struct ip_route_slot *find(struct ip_route_slot *slots, uint32_t slots_count, struct key key)
{
	uint32_t at = home(key, slots_count);

	while (slots[at].used && (slots[at].high != key.high || slots[at].low != key.low))
		at = (at + 1) & (slots_count - 1);
	return &slots[at];
}

void ip_route_init(struct ip_route *r, const struct dsf_memory *memory)
{
	memset(r, 0, sizeof(*r));
	r->memory = memory;
}

static void free_length(struct ip_route *r, unsigned length)
{
	dsf_memory_delete(
		r->memory, r->slots[length], r->slots_count[length] * sizeof(struct ip_route_slot));
	r->slots[length] = NULL;
	r->slots_count[length] = 0;
}

void ip_route_close(struct ip_route *r)
{
	for (unsigned length = 0; length < IP_ROUTE_LENGTHS; length++)
		free_length(r, length);
	ip_route_init(r, r->memory);
}

static int grow(struct ip_route *r, unsigned length)
{
	uint32_t count = r->slots_count[length] == 0 ? SLOTS_FIRST : 2 * r->slots_count[length];
	struct ip_route_slot *slots = dsf_memory_new(r->memory, count * sizeof(*slots));

	if (slots == NULL)
		return -DSF_E_NOMEM;
	for (uint32_t i = 0; i < r->slots_count[length]; i++) {
		const struct ip_route_slot *old = &r->slots[length][i];

		if (old->used)
			*find(slots, count, (struct key){ old->high, old->low }) = *old;
	}
	free_length(r, length);
	r->slots[length] = slots;
	r->slots_count[length] = count;
	return 0;
}

int ip_route_set(struct ip_route *r, const struct dsf_ip6 *prefix, unsigned length, uint32_t value)
{
	struct ip_route_slot *slot;
	struct key key;

	if (length > 128)
		return -DSF_E_BADFIELD;
	key = key_of(prefix, length);
	if (r->slots_count[length] > 0) {
		slot = find(r->slots[length], r->slots_count[length], key);
		if (slot->used) {
			slot->value = value;
			return 0;
		}
	}
	if (r->count == IP_ROUTE_PREFIXES_MAX)
		return -DSF_E_FULL;
	/* At most two thirds full, so that runs stay short. */
	if (3 * (r->used[length] + 1) > 2 * r->slots_count[length] && grow(r, length) < 0)
		return -DSF_E_NOMEM;
	slot = find(r->slots[length], r->slots_count[length], key);
	*slot = (struct ip_route_slot){ key.high, key.low, value, true };
	r->used[length]++;
	r->count++;
	dsf_bitset_add(r->lengths, 128 - length);
	return 0;
}

int ip_route_remove(struct ip_route *r, const struct dsf_ip6 *prefix, unsigned length)
{
	struct ip_route_slot *slots;
	uint32_t mask, hole, at;

	if (length > 128 || r->slots_count[length] == 0)
		return -DSF_E_NOROUTE;
	slots = r->slots[length];
	mask = r->slots_count[length] - 1;
	hole = (uint32_t)(find(slots, mask + 1, key_of(prefix, length)) - slots);
	if (!slots[hole].used)
		return -DSF_E_NOROUTE;
	/* Close the hole: move back what a lookup would otherwise no longer find behind it. */
	for (at = (hole + 1) & mask; slots[at].used; at = (at + 1) & mask) {
		uint32_t wanted = home((struct key){ slots[at].high, slots[at].low }, mask + 1);

		if (((at - wanted) & mask) >= ((at - hole) & mask)) {
			slots[hole] = slots[at];
			hole = at;
		}
	}
	slots[hole].used = false;
	r->count--;
	if (--r->used[length] == 0) {
		free_length(r, length);
		dsf_bitset_remove(r->lengths, 128 - length);
	}
	return 0;
}

int ip_route_lookup(const struct ip_route *r, const struct dsf_ip6 *address, uint32_t *value)
{
	uint32_t bit = 0;

	while ((bit = dsf_bitset_next(r->lengths, bit, IP_ROUTE_LENGTHS)) < IP_ROUTE_LENGTHS) {
		unsigned length = 128 - bit++;
		const struct ip_route_slot *slot =
			find(r->slots[length], r->slots_count[length], key_of(address, length));

		if (slot->used) {
			*value = slot->value;
			return 0;
		}
	}
	return -DSF_E_NOROUTE;
}
