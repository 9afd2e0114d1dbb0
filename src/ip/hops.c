#include "ip/hops.h"
#include <assert.h>
#include "base/cursor.h"
#include "base/err.h"
#include "base/rng.h"

#define SETS_FIRST 8u

static size_t size_of(uint32_t count)
{
	return sizeof(struct ip_hops_set) + count * (sizeof(uint64_t) + sizeof(struct dsf_ip6));
}

static uint64_t mix_address(uint64_t hash, const struct dsf_ip6 *a)
{
	hash = dsf_mix(hash ^ dsf_load_be64(a->bytes)) + 0x9e3779b97f4a7c15ull;
	return dsf_mix(hash ^ dsf_load_be64(a->bytes + 8)) + 0x9e3779b97f4a7c15ull;
}

/* A member's weight for a flow is the product with the flow's hash. Odd, so that no bit of the hash
 * is lost. */
static uint64_t factor_of(const struct dsf_ip6 *address)
{
	return mix_address(0, address) | 1;
}

void ip_hops_init(
	struct ip_hops *h, const struct dsf_memory *memory, ip_hops_usable_fn usable, void *user)
{
	memset(h, 0, sizeof(*h));
	h->memory = memory;
	h->usable = usable;
	h->user = user;
}

void ip_hops_close(struct ip_hops *h)
{
	for (uint32_t i = 0; i < h->sets_room; i++)
		if (h->sets[i] != NULL)
			dsf_memory_delete(h->memory, h->sets[i], size_of(h->sets[i]->count));
	dsf_memory_delete(h->memory, h->sets, h->sets_room * sizeof(*h->sets));
	ip_hops_init(h, h->memory, h->usable, h->user);
}

/* -DSF_E_BADFIELD: they don't rise. */
static int hash_of(const struct dsf_ip6 *hops, uint32_t count, uint64_t *hash)
{
	*hash = count;
	for (uint32_t i = 0; i < count; i++) {
		if (i > 0 && memcmp(&hops[i - 1], &hops[i], sizeof(*hops)) >= 0)
			return -DSF_E_BADFIELD;
		*hash = mix_address(*hash, &hops[i]);
	}
	return 0;
}

static struct ip_hops_set **chain_of(struct ip_hops *h, uint64_t hash)
{
	return &h->chains[hash % IP_HOPS_CHAINS];
}

/* The lowest free id; the table has room for it afterwards. */
static int free_id(struct ip_hops *h, uint32_t *id)
{
	uint32_t room = h->sets_room == 0 ? SETS_FIRST : 2 * h->sets_room;
	struct ip_hops_set **sets;

	for (*id = 0; *id < h->sets_room && h->sets[*id] != NULL; ++*id)
		;
	if (*id < h->sets_room)
		return 0;
	if (h->sets_room == IP_HOPS_SETS_MAX)
		return -DSF_E_FULL;
	sets = dsf_memory_grow(
		h->memory, h->sets, h->sets_room * sizeof(*sets), room * sizeof(*sets));
	if (sets == NULL)
		return -DSF_E_NOMEM;
	h->sets = sets;
	h->sets_room = room;
	return 0;
}

static void fill(const struct ip_hops *h, struct ip_hops_set *s, const struct dsf_ip6 *hops)
{
	s->factors = (uint64_t *)(void *)(s + 1);
	s->hops = (struct dsf_ip6 *)(void *)(s->factors + s->count);
	memcpy(s->hops, hops, s->count * sizeof(*hops));
	for (uint32_t i = 0; i < s->count; i++) {
		if (h->usable != NULL && !h->usable(h->user, &hops[i]))
			continue;
		s->factors[i] = factor_of(&hops[i]);
		s->usable++;
	}
}

int ip_hops_find(struct ip_hops *h, const struct dsf_ip6 *hops, uint32_t count, uint32_t *id)
{
	struct ip_hops_set *s, **chain;
	uint64_t hash;
	int err;

	if (count == 0 || count > IP_HOPS_MEMBERS_MAX || hash_of(hops, count, &hash) < 0)
		return -DSF_E_BADFIELD;
	chain = chain_of(h, hash);
	for (s = *chain; s != NULL; s = s->next) {
		if (s->hash != hash || s->count != count ||
			memcmp(s->hops, hops, count * sizeof(*hops)) != 0)
			continue;
		s->users++;
		*id = s->id;
		return 0;
	}
	err = free_id(h, id);
	if (err < 0)
		return err;
	s = dsf_memory_new(h->memory, size_of(count));
	if (s == NULL)
		return -DSF_E_NOMEM;
	*s = (struct ip_hops_set){
		.next = *chain, .hash = hash, .id = *id, .users = 1, .count = count
	};
	fill(h, s, hops);
	*chain = h->sets[*id] = s;
	h->count++;
	return 0;
}

void ip_hops_drop(struct ip_hops *h, uint32_t id)
{
	struct ip_hops_set *s, **at;

	assert(id < h->sets_room && h->sets[id] != NULL);
	s = h->sets[id];
	if (--s->users > 0)
		return;
	for (at = chain_of(h, s->hash); *at != s; at = &(*at)->next)
		;
	*at = s->next;
	h->sets[id] = NULL;
	h->count--;
	dsf_memory_delete(h->memory, s, size_of(s->count));
}

const struct dsf_ip6 *ip_hops_pick(const struct ip_hops *h, uint32_t id, uint64_t flow_hash)
{
	const struct ip_hops_set *s = ip_hops_get(h, id);
	uint64_t most = 0;
	uint32_t best = 0;

	/* The product of odd numbers is never 0, so 0 is who can't be used. Of equal weights, which
	 * are as rare as equal hashes, the lower address has it. */
	flow_hash |= 1;
	for (uint32_t i = 0; i < s->count; i++) {
		uint64_t weight = s->factors[i] * flow_hash;

		if (weight > most) {
			most = weight;
			best = i;
		}
	}
	return most == 0 ? NULL : &s->hops[best];
}

static void change_in(struct ip_hops_set *s, const struct dsf_ip6 *address, bool usable)
{
	uint32_t low = 0, high = s->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (memcmp(&s->hops[middle], address, sizeof(*address)) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == s->count || !dsf_ip6_equal(&s->hops[low], address) ||
		(s->factors[low] != 0) == usable)
		return;
	s->factors[low] = usable ? factor_of(address) : 0;
	s->usable += usable ? 1u : ~0u;
}

void ip_hops_change(struct ip_hops *h, const struct dsf_ip6 *address, bool usable)
{
	for (uint32_t i = 0; i < h->sets_room; i++)
		if (h->sets[i] != NULL)
			change_in(h->sets[i], address, usable);
}

const struct ip_hops_set *ip_hops_get(const struct ip_hops *h, uint32_t id)
{
	assert(id < h->sets_room && h->sets[id] != NULL);
	return h->sets[id];
}
