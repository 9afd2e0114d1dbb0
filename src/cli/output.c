#include "cli/output.h"
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cli/log.h"
#include "cli/options.h"

#define TABLE_GAP 2 /* blanks between columns */

int output_write(const char *bytes, size_t size)
{
	while (size > 0) {
		ssize_t written = write(STDOUT_FILENO, bytes, size);

		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0) {
			if (errno != EPIPE)
				log_err("stdout: %s", strerror(errno));
			return CLI_FAILED;
		}
		bytes += written;
		size -= (size_t)written;
	}
	return CLI_OK;
}

int output_json(cJSON *doc)
{
	char *text = doc == NULL ? NULL : cJSON_Print(doc);
	int code;

	cJSON_Delete(doc);
	if (text == NULL) {
		log_err("out of memory");
		return CLI_FAILED;
	}
	code = output_write(text, strlen(text));
	cJSON_free(text);
	return code == CLI_OK ? output_write("\n", 1) : code;
}

bool output_json_uint64(cJSON *object, const char *key, uint64_t value)
{
	char digits[24];

	snprintf(digits, sizeof(digits), "%" PRIu64, value);
	return cJSON_AddRawToObject(object, key, digits) != NULL;
}

static bool text_reserve(struct output_text *t, size_t size)
{
	char *grown;
	size_t cap = t->cap == 0 ? 4096 : t->cap;

	if (t->failed)
		return false;
	while (cap - t->size <= size)
		cap *= 2;
	if (cap == t->cap)
		return true;
	grown = realloc(t->bytes, cap);
	if (grown == NULL) {
		t->failed = true;
		return false;
	}
	t->bytes = grown;
	t->cap = cap;
	return true;
}

void output_text_add(struct output_text *t, const char *format, ...)
{
	va_list args;
	int size;

	va_start(args, format);
	size = vsnprintf(NULL, 0, format, args);
	va_end(args);
	if (size < 0 || !text_reserve(t, (size_t)size))
		return;
	va_start(args, format);
	vsnprintf(t->bytes + t->size, t->cap - t->size, format, args);
	va_end(args);
	t->size += (size_t)size;
}

int output_text_write(struct output_text *t)
{
	int code = CLI_FAILED;

	if (t->failed)
		log_err("out of memory");
	else
		code = output_write(t->bytes, t->size);
	free(t->bytes);
	*t = (struct output_text){ .failed = false };
	return code;
}

static void table_add(struct output_table *t, char *cell)
{
	if (t->count == t->cap) {
		size_t cap = t->cap == 0 ? 64 : t->cap * 2;
		char **grown = realloc(t->cells, cap * sizeof(*grown));

		if (grown == NULL) {
			free(cell);
			t->failed = true;
			return;
		}
		t->cells = grown;
		t->cap = cap;
	}
	t->cells[t->count++] = cell;
}

void output_table_begin(struct output_table *t, int columns, const char *const *titles)
{
	*t = (struct output_table){ .columns = columns };
	for (int i = 0; i < columns; i++)
		output_table_cell(t, "%s", titles[i]);
}

void output_table_cell(struct output_table *t, const char *format, ...)
{
	va_list args;
	char *cell;
	int size;

	va_start(args, format);
	size = vsnprintf(NULL, 0, format, args);
	va_end(args);
	cell = size < 0 ? NULL : malloc((size_t)size + 1);
	if (cell == NULL) {
		t->failed = true;
		return;
	}
	va_start(args, format);
	vsnprintf(cell, (size_t)size + 1, format, args);
	va_end(args);
	table_add(t, cell);
}

/* Characters on a terminal: bytes that don't continue a UTF-8 sequence. */
static int cell_width(const char *cell)
{
	int width = 0;

	for (; *cell != '\0'; cell++)
		width += ((unsigned char)*cell & 0xc0) != 0x80;
	return width;
}

static bool is_number(const char *cell)
{
	return *cell != '\0' && cell[strspn(cell, "0123456789.,%x-")] == '\0';
}

/* A column goes to the right when all its cells below the title are numbers or empty. */
static bool is_right(const struct output_table *t, size_t column)
{
	bool number = false;

	for (size_t i = (size_t)t->columns + column; i < t->count; i += (size_t)t->columns) {
		if (t->cells[i][0] == '\0')
			continue;
		if (!is_number(t->cells[i]))
			return false;
		number = true;
	}
	return number;
}

static void add_cell(const struct output_table *t, struct output_text *text, size_t index,
	const int *widths, const bool *right)
{
	size_t column = index % (size_t)t->columns;
	bool last = column + 1 == (size_t)t->columns;
	int pad = widths[column] - cell_width(t->cells[index]);

	if (right[column])
		output_text_add(text, "%*s%s", pad, "", t->cells[index]);
	else
		output_text_add(text, "%s%*s", t->cells[index], last ? 0 : pad, "");
	output_text_add(text, "%*s", last ? 0 : TABLE_GAP, "");
	if (last)
		output_text_add(text, "\n");
}

void output_table_end(struct output_table *t, struct output_text *text)
{
	int *widths = calloc((size_t)t->columns, sizeof(*widths));
	bool *right = calloc((size_t)t->columns, sizeof(*right));

	if (widths == NULL || right == NULL || t->failed) {
		text->failed = true;
	} else {
		assert(t->count % (size_t)t->columns == 0);
		for (size_t i = 0; i < t->count; i++) {
			int width = cell_width(t->cells[i]);

			if (width > widths[i % (size_t)t->columns])
				widths[i % (size_t)t->columns] = width;
		}
		for (int c = 0; c < t->columns; c++)
			right[c] = is_right(t, (size_t)c);
		for (size_t i = 0; i < t->count; i++)
			add_cell(t, text, i, widths, right);
	}
	for (size_t i = 0; i < t->count; i++)
		free(t->cells[i]);
	free(t->cells);
	free(widths);
	free(right);
	*t = (struct output_table){ .columns = 0 };
}
