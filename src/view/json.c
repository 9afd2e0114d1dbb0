#include "view/json.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_TEXT_MAX 24
#define INTEGER_MAX     9007199254740992.0 /* 2^53: doubles below are exact integers */

static cJSON *make_u64(uint64_t value)
{
	char text[NUMBER_TEXT_MAX];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	return cJSON_CreateRaw(text);
}

bool view_json_add(cJSON *object, const char *key, cJSON *value)
{
	if (value != NULL && cJSON_AddItemToObject(object, key, value))
		return true;
	cJSON_Delete(value);
	return false;
}

bool view_json_append(cJSON *array, cJSON *value)
{
	if (value != NULL && cJSON_AddItemToArray(array, value))
		return true;
	cJSON_Delete(value);
	return false;
}

bool view_json_add_u64(cJSON *object, const char *key, uint64_t value)
{
	return view_json_add(object, key, make_u64(value));
}

bool view_json_add_bool(cJSON *object, const char *key, bool value)
{
	return view_json_add(object, key, cJSON_CreateBool(value));
}

bool view_json_add_text(cJSON *object, const char *key, const char *text)
{
	return view_json_add(
		object, key, text == NULL ? cJSON_CreateNull() : cJSON_CreateString(text));
}

bool view_json_integer(const cJSON *item, uint64_t *value)
{
	char *end;

	if (cJSON_IsRaw(item) && item->valuestring[0] >= '0' && item->valuestring[0] <= '9') {
		errno = 0;
		*value = strtoull(item->valuestring, &end, 10);
		return errno == 0 && *end == '\0';
	}
	if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0 && item->valuedouble < INTEGER_MAX))
		return false;
	*value = (uint64_t)item->valuedouble;
	return (double)*value == item->valuedouble;
}

uint64_t view_json_u64(const cJSON *object, const char *key)
{
	uint64_t value;

	if (!view_json_integer(cJSON_GetObjectItemCaseSensitive(object, key), &value))
		return 0;
	return value;
}

const char *view_json_text(const cJSON *object, const char *key)
{
	return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
}

/* The next number in JSON text that is known to be well-formed, or the end of it. */
static const char *next_number(const char *at, const char *end)
{
	for (; at < end && *at != '-' && (*at < '0' || *at > '9'); at++) {
		if (*at != '"')
			continue;
		for (at++; at < end && *at != '"'; at++)
			at += *at == '\\';
	}
	return at;
}

/* Turns a parsed number into the raw digits that *at is behind, and moves *at behind them. Numbers
 * with a fraction or an exponent stay doubles. */
static bool exact_number(cJSON *item, const char **at, const char *end)
{
	const char *start = next_number(*at, end);
	bool integer = true;
	size_t size = 0;
	char *copy;

	for (; start + size < end && strchr("+-.0123456789eE", start[size]) != NULL; size++)
		integer = integer && strchr(".eE", start[size]) == NULL;
	*at = start + size;
	if (!integer)
		return true;
	copy = cJSON_malloc(size + 1);
	if (copy == NULL)
		return false;
	memcpy(copy, start, size);
	copy[size] = '\0';
	item->valuestring = copy;
	item->type = (item->type & ~0xff) | cJSON_Raw;
	return true;
}

/* The parser keeps the order of the text, so tree and text are walked side by side. */
static bool exact(cJSON *json, const char **at, const char *end)
{
	cJSON *item;

	if (cJSON_IsNumber(json))
		return exact_number(json, at, end);
	cJSON_ArrayForEach(item, json)
	{
		if (!exact(item, at, end))
			return false;
	}
	return true;
}

cJSON *view_json_parse(const char *text, size_t size)
{
	const char *at = text;
	cJSON *json = cJSON_ParseWithLengthOpts(text, size, NULL, false);

	if (json == NULL || exact(json, &at, text + size))
		return json;
	cJSON_Delete(json);
	return NULL;
}

char *view_json_print(const cJSON *json, bool pretty)
{
	char *text = pretty ? cJSON_Print(json) : cJSON_PrintUnformatted(json);
	char *line;
	size_t size;

	if (text == NULL)
		return NULL;
	size = strlen(text);
	line = malloc(size + 2);
	if (line != NULL) {
		memcpy(line, text, size);
		strcpy(line + size, "\n");
	}
	cJSON_free(text);
	return line;
}
