#include "ip/neighbor.h"
#include "base/err.h"

void ip_neighbor_init(struct ip_neighbor_table *t, const struct dsf_memory *memory,
	const struct ip_neighbor_table *base)
{
	t->base = base;
	dsf_hash_init(&t->entries, memory, sizeof(struct dsf_ip6), sizeof(struct ip_neighbor),
		IP_NEIGHBORS_MAX);
}

void ip_neighbor_close(struct ip_neighbor_table *t)
{
	dsf_hash_close(&t->entries);
}

int ip_neighbor_set(struct ip_neighbor_table *t, const struct ip_neighbor *neighbor)
{
	struct ip_neighbor *entry = dsf_hash_put(&t->entries, &neighbor->address);

	if (entry == NULL)
		return t->entries.count == IP_NEIGHBORS_MAX ? -DSF_E_FULL : -DSF_E_NOMEM;
	*entry = *neighbor;
	return 0;
}

int ip_neighbor_remove(struct ip_neighbor_table *t, const struct dsf_ip6 *address)
{
	void *entry = dsf_hash_get(&t->entries, address);

	if (entry == NULL)
		return -DSF_E_UNKNOWN;
	dsf_hash_remove(&t->entries, entry);
	return 0;
}

const struct ip_neighbor *ip_neighbor_lookup(
	const struct ip_neighbor_table *t, const struct dsf_ip6 *address)
{
	const struct ip_neighbor *entry = NULL;

	for (; t != NULL && entry == NULL; t = t->base)
		entry = dsf_hash_get(&t->entries, address);
	return entry;
}

const struct ip_neighbor *ip_neighbor_next(
	const struct ip_neighbor_table *t, const struct ip_neighbor *previous)
{
	const struct ip_neighbor_table *at = t;
	const struct ip_neighbor *entry = previous;

	/* Whose entry was the previous one? */
	while (entry != NULL && dsf_hash_get(&at->entries, &entry->address) != entry)
		at = at->base;
	for (;;) {
		entry = dsf_hash_next(&at->entries, entry);
		if (entry != NULL) {
			if (ip_neighbor_lookup(t, &entry->address) == entry)
				return entry;
			continue;
		}
		at = at->base;
		if (at == NULL)
			return NULL;
	}
}
