/*
 * json.h - what cJSON leaves to do
 *
 * cJSON keeps numbers as doubles: above 2^53 it loses digits, and from 10^15 on it may print
 * 2000000000000000 as 2e+15. Counters are 64-bit integers, so they are made as raw decimal text,
 * and view_json_parse gives integers that form too.
 */
#ifndef DSF_VIEW_JSON_H
#define DSF_VIEW_JSON_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cjson/cJSON.h>

/* Each adds a member to an object and returns false when memory is short. */
bool view_json_add_u64(cJSON *object, const char *key, uint64_t value);
bool view_json_add_bool(cJSON *object, const char *key, bool value);
bool view_json_add_text(cJSON *object, const char *key, const char *text); /* NULL: null */
/* Adds value, which object owns from then on; deletes it and returns false on failure. value may
 * be NULL (memory was short when it was made). */
bool view_json_add(cJSON *object, const char *key, cJSON *value);

/* An array item; as view_json_add. */
bool view_json_append(cJSON *array, cJSON *value);

/* Value of an item that is an unsigned integer, made or parsed; false when it is anything else. */
bool view_json_integer(const cJSON *item, uint64_t *value);
/* Value of an integer member, 0 when it is absent or something else. */
uint64_t view_json_u64(const cJSON *object, const char *key);
/* Text of a string member, NULL when it is absent or not a string. */
const char *view_json_text(const cJSON *object, const char *key);

/* Parses one JSON document, in which integers keep the digits they were written with. NULL when it
 * isn't one, or memory is short. */
cJSON *view_json_parse(const char *text, size_t size);

/* One document as text that ends in a newline, indented for readers when pretty; malloc'd, NULL
 * when memory is short. */
char *view_json_print(const cJSON *json, bool pretty);

#endif
