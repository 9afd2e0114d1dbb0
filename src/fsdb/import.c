#include "fsdb/import.h"
#include "base/err.h"
#include "fsdb/table.h"

/* Entries are moved when most of more than some have gone, so that it costs nothing on average. */
#define SHRINK_MIN  64u
#define SHRINK_PART 4u

void fsdb_import_init(struct fsdb_imports *i, const struct dsf_memory *memory, uint32_t own_first)
{
	*i = (struct fsdb_imports){ .own_first = own_first };
	dsf_hash_init(&i->entries, memory, sizeof(struct dsf_ip6), sizeof(struct fsdb_import),
		FSDB_IMPORTS_MAX);
}

void fsdb_import_close(struct fsdb_imports *i)
{
	dsf_hash_close(&i->entries);
}

static bool is_own(const struct fsdb_imports *i, uint32_t system_port)
{
	return system_port - i->own_first < FSDB_PORTS_MAX;
}

/* Is there somebody else who has it? */
static bool is_there(const struct fsdb_imports *i, const struct fsdb_import *e)
{
	return e->held && !is_own(i, e->system_port);
}

static bool is_news(const struct fsdb_imports *i, const struct fsdb_import *e)
{
	bool there = is_there(i, e);

	if (there != e->told)
		return true;
	return there && (e->system_port != e->told_port || memcmp(&e->mac, &e->told_mac, 6) != 0);
}

/* It is told of, or, without meaning, removed. */
void fsdb_import_settle(struct fsdb_imports *i, struct fsdb_import *e)
{
	if (!e->changed && is_news(i, e)) {
		e->changed = true;
		e->changed_next = NULL;
		*(i->last != NULL ? &i->last->changed_next : &i->first) = e;
		i->last = e;
	}
	if (!e->changed && !e->held && !e->told)
		dsf_hash_remove(&i->entries, e);
}

bool fsdb_import_usable(const struct fsdb_record *neighbor)
{
	return neighbor->kind == FSDB_KIND_NEIGHBOR && neighbor->state == FSDB_REACHABLE &&
	       !dsf_ip6_is_link_local(&neighbor->address);
}

static uint64_t strength(const struct fsdb_record *neighbor)
{
	return neighbor->state == FSDB_STATIC ? UINT64_MAX : neighbor->since_ns;
}

static bool is_weaker(const struct fsdb_import *e, uint64_t since_ns, uint32_t system_port)
{
	return e->since_ns < since_ns || (e->since_ns == since_ns && e->system_port < system_port);
}

int fsdb_import_claim(struct fsdb_imports *i, const struct fsdb_record *neighbor)
{
	struct fsdb_import *e = dsf_hash_put(&i->entries, &neighbor->address);
	uint64_t since_ns = strength(neighbor);
	int again = 0;

	if (e == NULL)
		return i->entries.count == FSDB_IMPORTS_MAX ? -DSF_E_FULL : -DSF_E_NOMEM;
	if (e->held && e->system_port == neighbor->system_port)
		again = since_ns < e->since_ns;
	else if (e->held && !is_weaker(e, since_ns, neighbor->system_port))
		return 0;
	e->held = true;
	e->since_ns = since_ns;
	e->system_port = neighbor->system_port;
	e->mac = neighbor->mac;
	fsdb_import_settle(i, e);
	return again;
}

struct fsdb_import *fsdb_import_drop(struct fsdb_imports *i, const struct fsdb_record *neighbor)
{
	struct fsdb_import *e = dsf_hash_get(&i->entries, &neighbor->address);

	if (e == NULL || !e->held || e->system_port != neighbor->system_port)
		return NULL;
	e->held = false;
	return e;
}

/* Nobody points to entries now. Peers that are gone leave nothing behind. */
static void shrink(struct fsdb_imports *i)
{
	if (i->entries.pool.count > SHRINK_MIN &&
		i->entries.count < i->entries.pool.count / SHRINK_PART)
		dsf_hash_shrink(&i->entries);
}

bool fsdb_import_changed(struct fsdb_imports *i, struct fsdb_change *change)
{
	while (i->first != NULL) {
		struct fsdb_import *e = i->first;
		bool news = is_news(i, e);

		i->first = e->changed_next;
		if (i->first == NULL)
			i->last = NULL;
		e->changed = false;
		e->told = is_there(i, e);
		e->told_port = e->system_port;
		e->told_mac = e->mac;
		*change = (struct fsdb_change){ e->address, e->told, e->system_port, e->mac };
		fsdb_import_settle(i, e);
		if (news)
			return true;
	}
	shrink(i);
	return false;
}
