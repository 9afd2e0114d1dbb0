/*
 * source.h - files for tests and benchmarks: of the source tree, by DSF_SOURCE or from where they
 * are, or of any path
 *
 * A file that isn't there ends the program: nothing would be tested.
 */
#ifndef DSF_TESTS_SOURCE_H
#define DSF_TESTS_SOURCE_H
#include <stdio.h>
#include <stdlib.h>
#include "topo/file.h"

#define SOURCE_BYTES_MAX (16u << 20)

/* The whole file at path, with a zero byte behind it; the caller frees it. */
static inline char *source_read_path(const char *path, size_t *size)
{
	char *text = calloc(1, SOURCE_BYTES_MAX);
	FILE *file = fopen(path, "rb");

	if (file == NULL || text == NULL) {
		printf("Bail out! %s can't be read\n", path);
		exit(1);
	}
	*size = fread(text, 1, SOURCE_BYTES_MAX - 1, file);
	fclose(file);
	return text;
}

/* A file of the source tree. */
static inline char *source_read(const char *name, size_t *size)
{
	const char *source = getenv("DSF_SOURCE");
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s", source != NULL ? source : ".", name);
	return source_read_path(path, size);
}

static inline struct topo *source_topo_text(char *text, size_t size, const char *name)
{
	struct topo_error err;
	struct topo *t;

	if (topo_load_text(text, size, name, &t, &err) < 0) {
		printf("Bail out! %s: %s\n", name, err.text);
		exit(1);
	}
	free(text);
	return t;
}

/* The topology in the file at path; the caller frees it with topo_free. */
static inline struct topo *source_topo_path(const char *path)
{
	size_t size;
	char *text = source_read_path(path, &size);

	return source_topo_text(text, size, path);
}

/* One of the source tree. */
static inline struct topo *source_topo(const char *name)
{
	size_t size;
	char *text = source_read(name, &size);

	return source_topo_text(text, size, name);
}

#endif
