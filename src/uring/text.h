/*
 * text.h - JSON text that grows
 *
 * One line of JSON at a time. When memory is short the text is marked failed and stays as it is;
 * the writer of a line asks once, at its end.
 */
#ifndef DSF_URING_TEXT_H
#define DSF_URING_TEXT_H
#include <stdbool.h>
#include <stddef.h>

#define URING_TEXT_MAX (64u << 20) /* bytes: no answer is longer */

struct uring_text {
	char *bytes;
	size_t size;
	size_t capacity;
	bool failed; /* out of memory, or over the limit */
};

void uring_text_add(struct uring_text *t, const char *bytes, size_t size);

__attribute__((format(printf, 2, 3))) void uring_text_print(
	struct uring_text *t, const char *format, ...);

/* As a JSON string, quotes included. Bytes that are no ASCII are passed on as they are. */
void uring_text_string(struct uring_text *t, const char *string);

/* Back to size, as it was before a line failed. */
void uring_text_cut(struct uring_text *t, size_t size);

/* Ends the line that began at start; one that failed goes. */
void uring_text_end_line(struct uring_text *t, size_t start);

void uring_text_close(struct uring_text *t);

#endif
