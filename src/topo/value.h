/*
 * value.h - typed values out of a JSON object, by a table of its keys
 *
 * Each object of the file has one table (keys.h) that names every key, its type and its bounds.
 * topo_read takes an object apart by that table; what is unknown, missing, of a wrong type or out
 * of bounds ends the load with file, line and JSON path.
 */
#ifndef DSF_TOPO_VALUE_H
#define DSF_TOPO_VALUE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cjson/cJSON.h>
#include "topo/error.h"

#define TOPO_AUTO UINT64_MAX /* value of "auto" */

enum topo_value {
	TOPO_VALUE_INT,      /* a whole number */
	TOPO_VALUE_INT_AUTO, /* or "auto" */
	TOPO_VALUE_UINT64,   /* a whole number with all of its 64 bits */
	TOPO_VALUE_BOOL,
	TOPO_VALUE_STRING, /* the caller checks its form */
	TOPO_VALUE_WORD,   /* one of a list; value: its place in the list */
	TOPO_VALUE_RATE,   /* bit/s, "400G", "unlimited" (0) */
	TOPO_VALUE_TIME,   /* ns, "500ns" */
	TOPO_VALUE_TIME_AUTO,
	TOPO_VALUE_SHARE, /* ppm, "1%" */
	TOPO_VALUE_BYTES, /* bytes, "4M" (2^20) */
	TOPO_VALUE_OBJECT,
	TOPO_VALUE_ARRAY,
};

/* What a key's value became. */
struct topo_slot {
	bool given;
	uint32_t child;    /* place of the key in its object */
	uint64_t number;   /* all but strings, objects, arrays */
	const cJSON *item; /* borrowed from the tree */
};

struct topo_key {
	const char *name;
	enum topo_value type;
	bool required;
	uint64_t min, max;        /* numbers; arrays: elements */
	const char *const *words; /* ends with NULL */
};

struct topo_keys {
	const char *object; /* its name in the JSON Schema: "#/$defs/OBJECT" */
	const struct topo_key *keys;
	uint32_t count;
};

#define TOPO_KEYS_MAX 32 /* keys of one object */

/* Where we are: a chain up to the top, kept on the stack of those who descend. */
struct topo_path {
	const struct topo_path *up; /* NULL at the top */
	const cJSON *item;
	uint32_t child; /* place among its parent's children */
};

struct topo_reader {
	const char *text; /* the file; borrowed */
	size_t size;
	struct topo_error *err;
};

/* The whole text as a tree, after a strict check of its syntax; *r->err is cleared and names the
 * file. 0 and *root, which the caller deletes; -DSF_E_BADFIELD, or -DSF_E_NOMEM with a text. */
int topo_read_text(const struct topo_reader *r, const char *file_name, cJSON **root);

/* Fills *r->err for the value at path (or for its child `slot`, when that is not NULL) and returns
 * -DSF_E_BADFIELD. */
int topo_fail(const struct topo_reader *r, const struct topo_path *path,
	const struct topo_slot *slot, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* Reads the object at path into slots[keys->count], in the order of the table. 0 or negative. */
int topo_read(const struct topo_reader *r, const struct topo_path *path,
	const struct topo_keys *keys, struct topo_slot *slots);

/* 0, or -DSF_E_BADFIELD when an object anywhere has one key twice. */
int topo_read_duplicates(const struct topo_reader *r, const struct topo_path *path);

#endif
