#include "view/json.h"
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

uint64_t view_json_u64(const cJSON *object, const char *key)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);

	if (cJSON_IsRaw(item))
		return strtoull(item->valuestring, NULL, 10);
	if (!cJSON_IsNumber(item) || !(item->valuedouble > 0))
		return 0;
	return item->valuedouble >= 18446744073709551615.0 ? UINT64_MAX
							   : (uint64_t)item->valuedouble;
}

const char *view_json_text(const cJSON *object, const char *key)
{
	return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
}

static bool exact_number(cJSON *item)
{
	char text[NUMBER_TEXT_MAX];
	double value = item->valuedouble;
	char *copy;

	if (!(value > -INTEGER_MAX && value < INTEGER_MAX) || value != (double)(int64_t)value)
		return true;
	snprintf(text, sizeof(text), "%" PRId64, (int64_t)value);
	copy = cJSON_malloc(strlen(text) + 1);
	if (copy == NULL)
		return false;
	strcpy(copy, text);
	item->valuestring = copy;
	item->type = (item->type & ~0xff) | cJSON_Raw;
	return true;
}

bool view_json_exact(cJSON *json)
{
	cJSON *item;

	if (cJSON_IsNumber(json))
		return exact_number(json);
	cJSON_ArrayForEach(item, json)
	{
		if (!view_json_exact(item))
			return false;
	}
	return true;
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
