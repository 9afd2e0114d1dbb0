/*
 * file.h - a topology file's text to a struct topo, and back
 *
 * No I/O here: the caller reads the file and hands in its text. Loading runs in this order, and the
 * first fault ends it: strict syntax and duplicate keys (locate.h, value.h); settings and defaults
 * (settings.c); templates (expand.c); explicit nodes and links (explicit.c); numbers and addresses
 * (number.c); the table (finish.c); consistency (check.c); what follows from it (derive.c).
 */
#ifndef DSF_TOPO_FILE_H
#define DSF_TOPO_FILE_H
#include <stddef.h>
#include "topo/error.h"
#include "topo/model.h"

#define TOPO_TEXT_BYTES_MAX (1u << 29) /* of a file */

/* 0 and *out, which the caller frees by topo_free; or -DSF_E_BADFIELD with *err filled, or
 * -DSF_E_NOMEM with *err's text. *out is NULL on failure. file_name is for messages only. */
int topo_load_text(const char *text, size_t size, const char *file_name, struct topo **out,
	struct topo_error *err);

/* What holds instead of the file's fabric.mode and transport.name. */
struct topo_choice {
	enum topo_fabric_mode mode;
	enum topo_transport transport;
};

/* The same lab as another fabric or with another transport: everything that the file leaves out
 * follows from choice. NULL: as topo_load_text. */
int topo_load_as(const char *text, size_t size, const char *file_name,
	const struct topo_choice *choice, struct topo **out, struct topo_error *err);

/* The explicit form as JSON text with every setting resolved; loading it and printing again gives
 * the same bytes. The caller frees it; NULL when memory is short. */
char *topo_print_expanded(const struct topo *t);

#endif
