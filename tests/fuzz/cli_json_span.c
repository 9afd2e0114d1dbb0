/* What is valid for json_span is valid for libcjson and has the same values, as far as both go. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cjson/cJSON.h>
#include "cli/json_span.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct json_span span;
	char name[16];
	int64_t number;
	cJSON *value;

	if (!json_span_valid(text, size))
		return 0;
	span = json_span_get(text, size, "a");
	if (span.at != NULL) {
		assert(span.at >= text && span.at + span.size <= text + size);
		assert(json_span_valid(span.at, span.size));
		(void)json_span_integer(span, &number);
		(void)json_span_string(span, name, sizeof(name));
		(void)json_span_elements(span);
	}
	/* libcjson takes more than JSON, so only this direction; it knows no raw bytes 0. */
	value = cJSON_ParseWithLength(text, size);
	if (value != NULL && cJSON_IsObject(value) && memchr(data, '\\', size) == NULL)
		assert((cJSON_GetObjectItemCaseSensitive(value, "a") != NULL) == (span.at != NULL));
	cJSON_Delete(value);
	return 0;
}
