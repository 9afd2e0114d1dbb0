/*
 * import.h - who has an address, of all who say so
 *
 * A host that moves is claimed by two switches for a while. The later claim holds (the instant at
 * which the neighbor was resolved), of two at one instant that of the higher system port; so the
 * order in which claims arrive doesn't matter, and every switch comes to the same answer. A claim
 * of our own takes part, and one that is STATIC holds against all others. What the holder says is
 * news unless it is ours; news of one address is told once, however often it changed meanwhile.
 */
#ifndef DSF_FSDB_IMPORT_H
#define DSF_FSDB_IMPORT_H
#include "base/hash.h"
#include "fsdb/wire.h"

#define FSDB_IMPORTS_MAX (1u << 20)

struct fsdb_import {
	struct dsf_ip6 address; /* key */
	uint64_t since_ns;
	uint32_t system_port, told_port;
	struct dsf_mac mac, told_mac;
	bool held; /* there is a claim: the fields above */
	bool told; /* that somebody else has it, and what */
	bool changed;
	struct fsdb_import *changed_next;
};

struct fsdb_imports {
	struct dsf_hash entries;
	struct fsdb_import *first, *last; /* changed ones */
	uint32_t own_first;               /* our first system port */
};

/* What became of an address that others claim. */
struct fsdb_change {
	struct dsf_ip6 address;
	bool present;         /* false: nobody else has it any more */
	uint32_t system_port; /* of the holder */
	struct dsf_mac mac;
};

void fsdb_import_init(struct fsdb_imports *i, const struct dsf_memory *memory, uint32_t own_first);
void fsdb_import_close(struct fsdb_imports *i);

/* May others use it: resolved and not link-local. (Published import rules.) */
bool fsdb_import_usable(const struct fsdb_record *neighbor);

/* A claim is made or changed. 0; 1: the holder's own claim is a weaker one now, so that all have to
 * be made again; -DSF_E_FULL or -DSF_E_NOMEM and it isn't heard. */
int fsdb_import_claim(struct fsdb_imports *i, const struct fsdb_record *neighbor);

/* A claim is gone. NULL, or it was the holder's: then all that are left have to be made again,
 * which can't fail, and fsdb_import_settle ends it. */
struct fsdb_import *fsdb_import_drop(struct fsdb_imports *i, const struct fsdb_record *neighbor);
void fsdb_import_settle(struct fsdb_imports *i, struct fsdb_import *e);

/* The next news; false when all has been told. */
bool fsdb_import_changed(struct fsdb_imports *i, struct fsdb_change *change);

#endif
