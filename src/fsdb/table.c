#include "fsdb/table.h"
#include "base/err.h"

#define RECORDS_FIRST 16u

int fsdb_table_order(const struct fsdb_record *a, const struct fsdb_record *b)
{
	int order;

	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	if (a->kind == FSDB_KIND_NEIGHBOR) {
		order = memcmp(&a->address, &b->address, sizeof(a->address));
		if (order != 0)
			return order;
	}
	return a->system_port < b->system_port ? -1 : a->system_port > b->system_port;
}

bool fsdb_table_same(const struct fsdb_record *a, const struct fsdb_record *b)
{
	return fsdb_table_order(a, b) == 0 && a->since_ns == b->since_ns && a->mtu == b->mtu &&
	       a->scope == b->scope && a->state == b->state &&
	       a->prefix_length == b->prefix_length && memcmp(&a->mac, &b->mac, 6) == 0 &&
	       dsf_ip6_equal(&a->address, &b->address);
}

uint32_t fsdb_table_seek(const struct fsdb_table *t, const struct fsdb_record *key)
{
	uint32_t low = 0, high = t->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (fsdb_table_order(&t->records[middle], key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool is_at(const struct fsdb_table *t, uint32_t at, const struct fsdb_record *key)
{
	return at < t->count && fsdb_table_order(&t->records[at], key) == 0;
}

const struct fsdb_record *fsdb_table_find(const struct fsdb_table *t, const struct fsdb_record *key)
{
	uint32_t at = fsdb_table_seek(t, key);

	return is_at(t, at, key) ? &t->records[at] : NULL;
}

static int grow(struct fsdb_table *t, const struct dsf_memory *memory)
{
	uint32_t capacity = t->capacity == 0 ? RECORDS_FIRST : 2 * t->capacity;
	void *records;

	if (t->count == FSDB_RECORDS_MAX)
		return -DSF_E_FULL;
	if (t->count < t->capacity)
		return 0;
	if (capacity > FSDB_RECORDS_MAX)
		capacity = FSDB_RECORDS_MAX;
	records = dsf_memory_grow(memory, t->records, t->capacity * sizeof(*t->records),
		capacity * sizeof(*t->records));
	if (records == NULL)
		return -DSF_E_NOMEM;
	t->records = records;
	t->capacity = capacity;
	return 0;
}

int fsdb_table_set(
	struct fsdb_table *t, const struct dsf_memory *memory, const struct fsdb_record *record)
{
	uint32_t at = fsdb_table_seek(t, record);
	int err;

	if (!is_at(t, at, record)) {
		err = grow(t, memory);
		if (err < 0)
			return err;
		memmove(&t->records[at + 1], &t->records[at],
			(t->count - at) * sizeof(*t->records));
		t->count++;
	}
	t->records[at] = *record;
	return 0;
}

int fsdb_table_remove(struct fsdb_table *t, const struct fsdb_record *key)
{
	uint32_t at = fsdb_table_seek(t, key);

	if (!is_at(t, at, key))
		return -DSF_E_UNKNOWN;
	t->count--;
	memmove(&t->records[at], &t->records[at + 1], (t->count - at) * sizeof(*t->records));
	return 0;
}

int fsdb_table_copy(
	struct fsdb_table *to, const struct fsdb_table *from, const struct dsf_memory *memory)
{
	size_t size = from->count * sizeof(*from->records);

	if (from->count == 0)
		return 0;
	to->records = dsf_memory_new(memory, size);
	if (to->records == NULL)
		return -DSF_E_NOMEM;
	memcpy(to->records, from->records, size);
	to->count = to->capacity = from->count;
	return 0;
}

void fsdb_table_drop_neighbors(struct fsdb_table *t)
{
	struct fsdb_record first = { .kind = FSDB_KIND_NEIGHBOR };

	t->count = fsdb_table_seek(t, &first);
}

static bool is_unicast(const struct dsf_ip6 *address)
{
	return !dsf_ip6_is_multicast(address) && !dsf_ip6_is_unspecified(address);
}

int fsdb_table_check(const struct fsdb_table *t, uint32_t first, dsf_instant latest)
{
	uint64_t ports = 0, interfaces = 0;

	for (uint32_t i = 0; i < t->count; i++) {
		const struct fsdb_record *r = &t->records[i];
		uint32_t port = r->system_port - first;
		bool good = port < FSDB_PORTS_MAX;
		uint64_t bit = good ? 1ull << port : 0;

		switch ((enum fsdb_kind)r->kind) {
		case FSDB_KIND_PORT: ports |= bit; break;
		case FSDB_KIND_INTERFACE:
			good = (ports & bit) != 0 && is_unicast(&r->address);
			interfaces |= bit;
			break;
		case FSDB_KIND_NEIGHBOR:
			good = (interfaces & bit) != 0 && is_unicast(&r->address) &&
			       r->since_ns <= latest.ns;
			break;
		}
		if (!good)
			return -DSF_E_PEER;
	}
	return 0;
}

uint64_t fsdb_table_global(const struct fsdb_table *t)
{
	uint64_t ports = 0, interfaces = 0;

	for (uint32_t i = 0; i < t->count && t->records[i].kind != FSDB_KIND_NEIGHBOR; i++) {
		const struct fsdb_record *r = &t->records[i];
		uint64_t bit = 1ull << r->system_port % FSDB_PORTS_MAX;

		if (r->scope == FSDB_SCOPE_GLOBAL)
			*(r->kind == FSDB_KIND_PORT ? &ports : &interfaces) |= bit;
	}
	return ports & interfaces;
}

void fsdb_table_close(struct fsdb_table *t, const struct dsf_memory *memory)
{
	dsf_memory_delete(memory, t->records, t->capacity * sizeof(*t->records));
	*t = (struct fsdb_table){ 0 };
}
