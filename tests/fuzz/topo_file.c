/*
 * Any text as a topology file: refused with a full error, or loaded; then what is printed of it
 * must load again and print the same.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include "base/err.h"
#include "topo/file.h"
#include "topo/plan.h"

#define NODES_MAX 2000 /* beyond, one run would take too long */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_error(const struct topo_error *err, int code)
{
	char line[2048];

	if (code != -DSF_E_BADFIELD || err->line == 0 || err->path[0] == '\0' ||
		err->text[0] == '\0' || strlen(topo_error_line(err, line, sizeof(line))) < 8)
		abort();
	for (const char *c = line; *c != '\0'; c++) {
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			abort(); /* foreign control characters on a terminal */
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct topo_error err;
	struct topo_plan plan;
	struct topo *t, *again;
	char *once, *twice;
	int code = topo_load_text((const char *)data, size, "fuzz", &t, &err);

	if (code < 0) {
		check_error(&err, code);
		return 0;
	}
	if (t->nodes_count > NODES_MAX) {
		topo_free(t);
		return 0;
	}
	topo_plan(t, 2, &plan);
	once = topo_print_expanded(t);
	if (topo_load_text(once, strlen(once), "again", &again, &err) < 0)
		abort();
	twice = topo_print_expanded(again);
	if (strcmp(once, twice) != 0)
		abort();
	free(once);
	free(twice);
	topo_free(again);
	topo_free(t);
	return 0;
}
