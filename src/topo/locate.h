/*
 * locate.h - second reading of a topology file's text: its lines, and what libcjson lets pass
 *
 * libcjson gives a tree without positions, cuts strings at \u0000, rounds large integers and takes
 * numbers that JSON doesn't have. This scanner reads the same text strictly by RFC 8259 and keeps
 * count: it finds syntax faults before libcjson runs, and afterwards the line of any value by its
 * steps (the n-th child of the m-th child ...), which no odd key can confuse.
 */
#ifndef DSF_TOPO_LOCATE_H
#define DSF_TOPO_LOCATE_H
#include <stddef.h>
#include <stdint.h>
#include "topo/error.h"

#define TOPO_DEPTH_MAX 32 /* nested arrays and objects; the deepest known key is at 5 */

/* 0, or -DSF_E_BADFIELD with line, path and text of the first fault in *err. */
int topo_locate_check(const char *text, size_t size, struct topo_error *err);

struct topo_place {
	uint32_t line;     /* of the value, or of its key */
	const char *value; /* first byte of the value */
	size_t value_size; /* bytes up to its end, for numbers and strings */
};

/* The place of the value that steps lead to from the top; the text must have passed the check.
 * Line 1 and an empty value when there is no such value. */
struct topo_place topo_locate(
	const char *text, size_t size, const uint32_t *steps, uint32_t steps_count);

#endif
