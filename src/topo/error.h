/*
 * error.h - what is wrong with a topology file, and where
 *
 * The first fault ends a load. Its text says what is wrong, why, and how to mend it; file, line and
 * JSON path say where. Text taken from the file is made safe to print: control characters are
 * escaped and long strings cut.
 */
#ifndef DSF_TOPO_ERROR_H
#define DSF_TOPO_ERROR_H
#include <stddef.h>
#include <stdint.h>

#define TOPO_ERROR_FILE_MAX 512
#define TOPO_ERROR_PATH_MAX 256
#define TOPO_ERROR_TEXT_MAX 512
#define TOPO_QUOTE_MAX      64 /* bytes of a foreign string that a message shows */

struct topo_error {
	char file[TOPO_ERROR_FILE_MAX];
	char path[TOPO_ERROR_PATH_MAX]; /* "buildings[0].zones[1].rails"; "(top)" for the whole */
	char text[TOPO_ERROR_TEXT_MAX];
	uint32_t line; /* from 1; 0 when no line is at fault */
};

/* "FILE:LINE: PATH: TEXT" into out[size]; returns out. */
char *topo_error_line(const struct topo_error *err, char *out, size_t size);

/* Appends one step to a path text, cut where it does not fit. */
void topo_path_add_key(char *path, size_t size, const char *key, size_t key_size);
void topo_path_add_index(char *path, size_t size, uint32_t index);

/* A foreign string in quotes, safe for a terminal, into out; returns out. */
struct topo_quote {
	char text[4 * TOPO_QUOTE_MAX + 8];
};
const char *topo_quote(struct topo_quote *out, const char *string, size_t size);

#endif
