/*
 * json_span.h - parts of a JSON text, untouched
 *
 * The supervisor hands requests to nodes and their answers to clients without understanding them:
 * tables of a large lab are tens of megabytes, and a parser that turns numbers into doubles would
 * change 64-bit counters. This finds the bytes of one value inside an object after having checked
 * that the whole text is well-formed JSON.
 */
#ifndef DSF_CLI_JSON_SPAN_H
#define DSF_CLI_JSON_SPAN_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JSON_SPAN_DEPTH_MAX 64

struct json_span {
	const char *at; /* NULL: absent */
	size_t size;
};

/* True when text is one JSON value and nothing but white space around it. */
bool json_span_valid(const char *text, size_t size);

/* The value of key in the object that text is (a valid one, see above); absent when there is
 * none. Of a key that comes twice the first counts. Keys are compared as written: no escapes. */
struct json_span json_span_get(const char *text, size_t size, const char *key);

/* What is between the brackets of an array, trimmed; absent when the span is no array. */
struct json_span json_span_elements(struct json_span array);

/* An integer of at most 18 digits without fraction or exponent. */
bool json_span_integer(struct json_span value, int64_t *number);

bool json_span_is_true(struct json_span value);

/* A string without escapes equals text. */
bool json_span_is(struct json_span value, const char *text);

/* A string without escapes into text[size]; false when it is no such string or too long. */
bool json_span_string(struct json_span value, char *text, size_t size);

#endif
