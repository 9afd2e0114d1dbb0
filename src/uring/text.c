#include "uring/text.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CAPACITY_FIRST 4096u

static char *room(struct uring_text *t, size_t size)
{
	size_t capacity = t->capacity == 0 ? CAPACITY_FIRST : t->capacity;
	char *grown;

	if (t->failed || size > URING_TEXT_MAX - t->size) {
		t->failed = true;
		return NULL;
	}
	while (capacity < t->size + size)
		capacity *= 2;
	if (capacity > t->capacity) {
		grown = realloc(t->bytes, capacity);
		if (grown == NULL) {
			t->failed = true;
			return NULL;
		}
		t->bytes = grown;
		t->capacity = capacity;
	}
	return t->bytes + t->size;
}

void uring_text_add(struct uring_text *t, const char *bytes, size_t size)
{
	char *at = room(t, size);

	if (at == NULL || size == 0)
		return;
	memcpy(at, bytes, size);
	t->size += size;
}

void uring_text_print(struct uring_text *t, const char *format, ...)
{
	char line[512];
	va_list arguments;
	int size;

	va_start(arguments, format);
	size = vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	if (size < 0 || (size_t)size >= sizeof(line))
		t->failed = true;
	else
		uring_text_add(t, line, (size_t)size);
}

void uring_text_string(struct uring_text *t, const char *string)
{
	uring_text_add(t, "\"", 1);
	for (; *string != '\0'; string++) {
		unsigned char c = (unsigned char)*string;

		if (c == '"' || c == '\\')
			uring_text_print(t, "\\%c", c);
		else if (c < 0x20)
			uring_text_print(t, "\\u%04x", c);
		else
			uring_text_add(t, string, 1);
	}
	uring_text_add(t, "\"", 1);
}

void uring_text_cut(struct uring_text *t, size_t size)
{
	t->size = size;
	t->failed = false;
}

void uring_text_end_line(struct uring_text *t, size_t start)
{
	uring_text_add(t, "\n", 1);
	if (t->failed)
		uring_text_cut(t, start);
}

void uring_text_close(struct uring_text *t)
{
	free(t->bytes);
	memset(t, 0, sizeof(*t));
}
