#include "view/table.h"
#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "view/json.h"

#define COLUMNS_MAX 32u
#define GAP         2u /* spaces between columns */
#define LIST_FEW    3  /* of VIEW_TABLE_FEW */

struct text {
	char *bytes;
	size_t size, capacity;
	bool failed;
};

static void text_put(struct text *t, const char *bytes, size_t size)
{
	if (t->failed)
		return;
	if (t->size + size + 1 > t->capacity) {
		size_t capacity = 2 * (t->size + size + 1) + 256;
		char *grown = realloc(t->bytes, capacity);

		if (grown == NULL) {
			t->failed = true;
			return;
		}
		t->bytes = grown;
		t->capacity = capacity;
	}
	memcpy(t->bytes + t->size, bytes, size);
	t->size += size;
	t->bytes[t->size] = '\0';
}

static void text_pad(struct text *t, size_t count)
{
	while (count-- > 0)
		text_put(t, " ", 1);
}

__attribute__((format(printf, 2, 3))) static void text_print(
	struct text *t, const char *format, ...)
{
	char line[64];
	va_list arguments;
	int size;

	va_start(arguments, format);
	size = vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	if (size > 0)
		text_put(t, line, (size_t)size < sizeof(line) ? (size_t)size : sizeof(line) - 1);
}

/* With the largest unit that leaves at most three digits behind the point. */
static void put_scaled(struct text *t, uint64_t value, const char *const *units, size_t units_count)
{
	uint64_t scale = 1;
	size_t unit = 0;

	while (unit + 1 < units_count && value / 1000 >= scale) {
		scale *= 1000;
		unit++;
	}
	if (value % scale == 0)
		text_print(t, "%" PRIu64 "%s", value / scale, units[unit]);
	else
		text_print(t, "%.4g%s", (double)value / (double)scale, units[unit]);
}

static void put_number(
	struct text *t, const cJSON *item, uint64_t value, enum view_table_format format)
{
	static const char *const rate_units[] = { "", "k", "M", "G", "T" };
	static const char *const time_units[] = { "ns", "us", "ms", "s" };

	switch (format) {
	case VIEW_TABLE_PLAIN:
	case VIEW_TABLE_FEW:
		if (cJSON_IsRaw(item))
			text_put(t, item->valuestring, strlen(item->valuestring));
		else
			text_print(t, "%.10g", item->valuedouble);
		return;
	case VIEW_TABLE_RATE:
		if (value == 0)
			text_put(t, "unlimited", 9);
		else
			put_scaled(t, value, rate_units, 5);
		return;
	case VIEW_TABLE_TIME: put_scaled(t, value, time_units, 4); return;
	}
}

/* Names come from checked topologies, but what ends on a terminal is made harmless all the same. */
static void put_string(struct text *t, const char *string)
{
	for (; *string != '\0'; string++)
		text_put(t, (unsigned char)*string < ' ' || *string == 127 ? "?" : string, 1);
}

/* A number that its key ends with the unit of: "loss 1 %", "delay 10 us". */
static void put_quantity(struct text *t, const char *key, uint64_t value)
{
	static const char *const rate_units[] = { " bit/s", " kbit/s", " Mbit/s", " Gbit/s",
		" Tbit/s" };
	static const char *const time_units[] = { " ns", " us", " ms", " s" };
	const char *unit = strrchr(key, '_');

	if (unit == NULL)
		unit = key + strlen(key);
	text_print(t, "%.*s ", (int)(unit - key), key);
	if (strcmp(unit, "_ppm") == 0)
		text_print(t, "%.7g %%", (double)value / 1e4);
	else if (strcmp(unit, "_ns") == 0)
		put_scaled(t, value, time_units, 4);
	else if (strcmp(unit, "_bps") == 0)
		put_scaled(t, value, rate_units, 5);
	else
		text_print(t, "%" PRIu64, value);
}

/* "delay 500 ns, silent x-rdsw0:fab0" */
static void put_members(struct text *t, const cJSON *object)
{
	const cJSON *member, *item;

	cJSON_ArrayForEach(member, object)
	{
		if (member != object->child)
			text_put(t, ", ", 2);
		if (cJSON_IsTrue(member)) {
			put_string(t, member->string);
		} else if (cJSON_IsArray(member)) {
			put_string(t, member->string);
			cJSON_ArrayForEach(item, member)
			{
				text_put(t, " ", 1);
				put_string(t, cJSON_IsString(item) ? item->valuestring : "?");
			}
		} else {
			put_quantity(t, member->string, view_json_u64(object, member->string));
		}
	}
}

/* "fab0,fab1"; of a few: "fab0,fab1,fab2,and 5 more" */
static void put_list(struct text *t, const cJSON *list, enum view_table_format format)
{
	const cJSON *member;
	int count = 0;

	cJSON_ArrayForEach(member, list)
	{
		if (count > 0)
			text_put(t, ",", 1);
		if (format == VIEW_TABLE_FEW && count == LIST_FEW && member->next != NULL) {
			text_print(t, "and %d more", cJSON_GetArraySize(list) - count);
			return;
		}
		put_string(t, cJSON_IsString(member) ? member->valuestring : "?");
		count++;
	}
}

char *view_members_text(const cJSON *object)
{
	struct text t = { 0 };

	text_put(&t, "", 0);
	put_members(&t, object);
	if (!t.failed)
		return t.bytes;
	free(t.bytes);
	return NULL;
}

static void put_cell(struct text *t, const cJSON *row, const struct view_table_column *column)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(row, column->key);

	if (cJSON_IsString(item)) {
		put_string(t, item->valuestring);
	} else if (cJSON_IsBool(item)) {
		put_string(t, cJSON_IsTrue(item) ? "yes" : "no");
	} else if (cJSON_IsNumber(item) || cJSON_IsRaw(item)) {
		put_number(t, item, view_json_u64(row, column->key), column->format);
	} else if (cJSON_IsArray(item) && item->child != NULL) {
		put_list(t, item, column->format);
	} else if (cJSON_IsObject(item) && item->child != NULL) {
		put_members(t, item);
	} else {
		text_put(t, "-", 1);
	}
}

static bool is_number(const cJSON *row, const char *key)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(row, key);

	return cJSON_IsNumber(item) || cJSON_IsRaw(item);
}

static void measure(const cJSON *rows, const struct view_table_column *columns, size_t count,
	size_t *width, bool *right)
{
	struct text cell = { 0 };
	const cJSON *row;

	for (size_t i = 0; i < count; i++) {
		width[i] = strlen(columns[i].title);
		right[i] = false;
	}
	cJSON_ArrayForEach(row, rows)
	{
		for (size_t i = 0; i < count; i++) {
			cell.size = 0;
			put_cell(&cell, row, &columns[i]);
			if (cell.size > width[i])
				width[i] = cell.size;
			right[i] = right[i] || is_number(row, columns[i].key);
		}
	}
	free(cell.bytes);
}

/* A cell or a title in its column; what ends a line has no spaces behind it. */
static void put_padded(
	struct text *out, const char *bytes, size_t size, size_t width, bool right, bool last)
{
	size_t pad = width > size ? width - size : 0;

	if (right)
		text_pad(out, pad);
	text_put(out, bytes, size);
	if (last)
		text_put(out, "\n", 1);
	else
		text_pad(out, right ? GAP : pad + GAP);
}

char *view_table_text(const cJSON *rows, const struct view_table_column *columns, size_t count)
{
	struct text out = { 0 }, cell = { 0 };
	size_t width[COLUMNS_MAX];
	bool right[COLUMNS_MAX];
	const cJSON *row;

	assert(count > 0 && count <= COLUMNS_MAX);
	measure(rows, columns, count, width, right);
	for (size_t i = 0; i < count; i++)
		put_padded(&out, columns[i].title, strlen(columns[i].title), width[i], right[i],
			i + 1 == count);
	cJSON_ArrayForEach(row, rows)
	{
		for (size_t i = 0; i < count; i++) {
			cell.size = 0;
			put_cell(&cell, row, &columns[i]);
			put_padded(&out, cell.bytes, cell.size, width[i], right[i], i + 1 == count);
		}
	}
	out.failed = out.failed || cell.failed;
	free(cell.bytes);
	if (!out.failed)
		return out.bytes;
	free(out.bytes);
	return NULL;
}
