/*
 * output.h - a command's result on stdout, whole or not at all
 *
 * A result is made in memory and written at the end, so a command that fails half-way prints
 * nothing. A reader that has gone away or a full disk ends the command with CLI_FAILED.
 */
#ifndef DSF_CLI_OUTPUT_H
#define DSF_CLI_OUTPUT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cjson/cJSON.h>

/* Writes all of size bytes to stdout. CLI_OK, or CLI_FAILED with the error told (but for a reader
 * that went away). */
int output_write(const char *bytes, size_t size);

/* Writes one JSON document and a line end. Takes doc: it is deleted. NULL (no memory) fails. */
int output_json(cJSON *doc);

/* doc[key] = value with all its digits, as libcjson's numbers are doubles; false when memory is
 * short. */
bool output_json_uint64(cJSON *object, const char *key, uint64_t value);

/* Text that grows; it stays empty (and output_text_write fails) once memory was short. */
struct output_text {
	char *bytes;
	size_t size, cap;
	bool failed;
};

void output_text_add(struct output_text *t, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Writes the text and frees it. */
int output_text_write(struct output_text *t);

/* Lays out a table for people: columns as wide as their widest cell, numbers to the right. Cells
 * are text without line ends. */
struct output_table {
	int columns;
	char **cells; /* row by row, the titles first */
	size_t count, cap;
	bool failed;
};

/* titles has `columns` of them. */
void output_table_begin(struct output_table *t, int columns, const char *const *titles);
void output_table_cell(struct output_table *t, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Adds the table to a text and frees it. */
void output_table_end(struct output_table *t, struct output_text *text);

#endif
