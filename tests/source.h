/*
 * source.h - files of the source tree, which tests find by DSF_SOURCE or from where they are
 *
 * A file that isn't there ends the program: nothing would be tested.
 */
#ifndef DSF_TESTS_SOURCE_H
#define DSF_TESTS_SOURCE_H
#include <stdio.h>
#include <stdlib.h>
#include "topo/file.h"

#define SOURCE_BYTES_MAX (1u << 20)

/* The whole file, with a zero byte behind it; the caller frees it. */
static inline char *source_read(const char *name, size_t *size)
{
	const char *source = getenv("DSF_SOURCE");
	char path[4096], *text = calloc(1, SOURCE_BYTES_MAX);
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", source != NULL ? source : ".", name);
	file = fopen(path, "rb");
	if (file == NULL || text == NULL) {
		printf("Bail out! %s can't be read\n", path);
		exit(1);
	}
	*size = fread(text, 1, SOURCE_BYTES_MAX - 1, file);
	fclose(file);
	return text;
}

/* A topology file; the caller frees it with topo_free. */
static inline struct topo *source_topo(const char *name)
{
	struct topo_error err;
	struct topo *t;
	size_t size;
	char *text = source_read(name, &size);

	if (topo_load_text(text, size, name, &t, &err) < 0) {
		printf("Bail out! %s: %s\n", name, err.text);
		exit(1);
	}
	free(text);
	return t;
}

#endif
