/*
 * Any text as a drill file of a small lab: refused with a full error, or loaded; then its faults
 * are within bounds, sorted, on targets that exist, and loading it again gives the same.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include "base/err.h"
#include "topo/drill.h"
#include "topo/file.h"

static const char lab[] =
	"{\"name\": \"mini\", \"planes\": 2, \"buildings\": [{\"name\": \"b0\", \"zones\": "
	"[{\"name\": \"z0\", \"scaling_units\": 2, \"rails\": 2, \"hosts_per_unit\": 2, \"fdsw\": "
	"2}]}]}";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_error(const struct topo_error *err, int code)
{
	char line[2048];

	if (code != -DSF_E_BADFIELD || err->line == 0 || err->path[0] == '\0' ||
		err->text[0] == '\0' || strlen(topo_error_line(err, line, sizeof(line))) < 8)
		abort();
	for (const char *c = line; *c != '\0'; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			abort(); /* foreign control characters on a terminal */
}

static void check_drill(const struct topo *t, const struct topo_drill *d)
{
	char target[TOPO_DRILL_TARGET_MAX];

	if (d->faults_count == 0 || d->faults_count > TOPO_DRILL_FAULTS_MAX || d->name[0] == '\0')
		abort();
	for (uint32_t i = 0; i < d->faults_count; i++) {
		const struct topo_drill_fault *f = &d->faults[i];

		if (topo_drill_kind_is_link(f->kind) ? f->port >= t->ports_count
						     : f->node >= t->nodes_count)
			abort();
		if (f->for_ns == 0 || topo_drill_collides(t, d, f) ||
			strlen(topo_drill_target(t, f, target)) == 0)
			abort();
		if (i > 0 && d->faults[i - 1].at_ns > f->at_ns)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct topo *t;
	struct topo_drill *d, *again;
	struct topo_error err;
	int code;

	if (t == NULL && topo_load_text(lab, sizeof(lab) - 1, "lab", &t, &err) < 0)
		abort();
	code = topo_drill_load((const char *)data, size, "fuzz", t, &d, &err);
	if (code < 0) {
		check_error(&err, code);
		return 0;
	}
	check_drill(t, d);
	if (topo_drill_load((const char *)data, size, "fuzz", t, &again, &err) < 0 ||
		again->faults_count != d->faults_count ||
		memcmp(again->faults, d->faults, d->faults_count * sizeof(*d->faults)) != 0)
		abort();
	topo_drill_free(again);
	topo_drill_free(d);
	return 0;
}
