/*
 * replay.c - main() of a fuzz target that is built without libFuzzer
 *
 * Feeds every file of tests/fuzz/corpus/<target>/ to the target, and every shorter beginning of
 * small ones, since a decoder's mistakes like to sit where a message ends early. A target without
 * a corpus fails. Files given as arguments are run instead, to replay a find.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "tests/tap.h"

#define INPUT_MAX    (1u << 20)
#define PREFIXES_MAX 2048u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv) __attribute__((weak));

/* An allocation of exactly size bytes, so that a sanitizer sees the first byte read too many. */
static void run_exact(const uint8_t *bytes, size_t size)
{
	uint8_t *exact = malloc(size > 0 ? size : 1);

	if (exact == NULL)
		abort();
	if (size > 0)
		memcpy(exact, bytes, size);
	LLVMFuzzerTestOneInput(exact, size);
	free(exact);
}

static void run_file(const char *path)
{
	FILE *file = fopen(path, "rb");
	uint8_t *bytes = malloc(INPUT_MAX);
	size_t size;

	if (file == NULL || bytes == NULL) {
		TAP_OK(false, "%s: %s", path, strerror(errno));
	} else {
		size = fread(bytes, 1, INPUT_MAX, file);
		run_exact(bytes, size);
		if (size <= PREFIXES_MAX) {
			for (size_t shorter = 0; shorter < size; shorter++)
				run_exact(bytes, shorter);
		}
		TAP_OK(!ferror(file), "%s", path);
	}
	free(bytes);
	if (file != NULL)
		fclose(file);
}

static int is_input(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static void run_folder(const char *folder)
{
	struct dirent **entries;
	int count = scandir(folder, &entries, is_input, alphasort);

	TAP_OK(count > 0, "%s: has a corpus", folder);
	for (int i = 0; i < count; i++) {
		char path[4096];

		snprintf(path, sizeof(path), "%s/%s", folder, entries[i]->d_name);
		run_file(path);
		free(entries[i]);
	}
	if (count >= 0)
		free(entries);
}

int main(int argc, char **argv)
{
	const char *source = getenv("srcdir");
	const char *name = strrchr(argv[0], '/');
	char folder[2048];

	if (LLVMFuzzerInitialize != NULL)
		LLVMFuzzerInitialize(&argc, &argv);
	for (int i = 1; i < argc; i++)
		run_file(argv[i]);
	if (argc == 1) {
		name = name == NULL ? argv[0] : name + 1;
		if (strncmp(name, "lt-", 3) == 0)
			name += 3;
		snprintf(folder, sizeof(folder), "%s/tests/fuzz/corpus/%s",
			source == NULL ? "." : source, name);
		run_folder(folder);
	}
	return TAP_DONE();
}
