#include <string.h>
#include "cli/json_span.h"
#include "tests/tap.h"

static void test_valid(void)
{
	static const struct {
		const char *name, *text;
		bool want;
	} rows[] = {
		{ "nothing", "", false },
		{ "space", " \t", false },
		{ "half an object", "{\"a\":1", false },
		{ "half an array", "[1,", false },
		{ "half a string", "\"abc", false },
		{ "no value", "{\"a\":}", false },
		{ "no colon", "{\"a\" 1}", false },
		{ "comma at the end of an array", "[1,]", false },
		{ "comma at the start", "[,1]", false },
		{ "comma at the end of an object", "{\"a\":1,}", false },
		{ "no comma", "[1 2]", false },
		{ "brackets that don't match", "[1}", false },
		{ "two values", "1 2", false },
		{ "something behind", "{} x", false },
		{ "key that is no string", "{1:2}", false },
		{ "leading zero", "01", false },
		{ "no digits", "-", false },
		{ "no fraction", "1.", false },
		{ "no exponent", "1e", false },
		{ "plus", "+1", false },
		{ "half a word", "tru", false },
		{ "long word", "nulll", false },
		{ "control character in a string", "\"a\nb\"", false },
		{ "bad escape", "\"\\x\"", false },
		{ "short unicode escape", "\"\\u12\"", false },
		{ "escape at the end", "\"\\", false },
		{ "object", " { \"a\" : [ 1 , -2.5e+3 , true , null ] , \"b\" : {} } ", true },
		{ "empty array", "[]", true },
		{ "nested", "[[[[]]],{\"a\":[{}]}]", true },
		{ "string with escapes", "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\"", true },
		{ "number", "-0.1E-7", true },
		{ "word", "false", true },
	};
	char deep[4 * JSON_SPAN_DEPTH_MAX];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		TAP_EQ(json_span_valid(rows[i].text, strlen(rows[i].text)), rows[i].want,
			"valid: %s", rows[i].name);
	memset(deep, '[', JSON_SPAN_DEPTH_MAX);
	memset(deep + JSON_SPAN_DEPTH_MAX, ']', JSON_SPAN_DEPTH_MAX);
	TAP_OK(json_span_valid(deep, 2 * JSON_SPAN_DEPTH_MAX), "as deep as may be");
	memset(deep, '[', JSON_SPAN_DEPTH_MAX + 1);
	memset(deep + JSON_SPAN_DEPTH_MAX + 1, ']', JSON_SPAN_DEPTH_MAX + 1);
	TAP_OK(!json_span_valid(deep, 2 * JSON_SPAN_DEPTH_MAX + 2), "one level too deep");
}

static bool got(const char *text, const char *key, const char *want)
{
	struct json_span span = json_span_get(text, strlen(text), key);

	if (want == NULL)
		return span.at == NULL;
	return span.at != NULL && span.size == strlen(want) &&
	       memcmp(span.at, want, span.size) == 0;
}

static void test_get(void)
{
	const char *text =
		"{ \"id\" : 18446744073709551615 , \"idx\":2,\"result\":[{\"id\":3}, 4 ],"
		"\"id\":5,\"text\":\"a\\\"}b\",\"\":6}";

	TAP_OK(got(text, "id", "18446744073709551615"), "all digits, and the first of two");
	TAP_OK(got(text, "idx", "2"), "a key that starts like another");
	TAP_OK(got(text, "i", NULL), "a key that another starts with");
	TAP_OK(got(text, "result", "[{\"id\":3}, 4 ]"), "an array, untouched");
	TAP_OK(got(text, "text", "\"a\\\"}b\""), "a string with a quote and a brace");
	TAP_OK(got(text, "", "6"), "the empty key");
	TAP_OK(got(text, "none", NULL), "a key that isn't there");
	TAP_OK(got("{}", "a", NULL), "an empty object");
	TAP_OK(got("[1]", "a", NULL), "no object");
	TAP_OK(got("{\"a\"", "a", NULL), "an object that is cut");
}

static struct json_span span_of(const char *text)
{
	return (struct json_span){ text, strlen(text) };
}

static void test_values(void)
{
	struct json_span none = { NULL, 0 }, elements;
	int64_t number = 7;
	char text[5];

	TAP_OK(!json_span_integer(none, &number), "absent is no integer");
	TAP_OK(!json_span_integer(span_of("1.5"), &number), "nor is a fraction");
	TAP_OK(!json_span_integer(span_of("-"), &number), "nor a sign");
	TAP_OK(!json_span_integer(span_of("1234567890123456789"), &number), "nor 19 digits");
	TAP_EQ(number, 7, "and nothing was changed");
	TAP_OK(json_span_integer(span_of("-123456789012345678"), &number), "18 digits are");
	TAP_EQ(number, -123456789012345678, "exactly");
	TAP_OK(json_span_is(span_of("\"up\""), "up"), "a string is the same");
	TAP_OK(!json_span_is(span_of("\"up\""), "u"), "is longer");
	TAP_OK(!json_span_is(none, "up"), "is absent");
	TAP_OK(json_span_string(span_of("\"abcd\""), text, sizeof(text)), "a string that fits");
	TAP_OK(strcmp(text, "abcd") == 0, "is copied");
	TAP_OK(!json_span_string(span_of("\"abcde\""), text, sizeof(text)), "one that doesn't");
	TAP_OK(!json_span_string(span_of("\"a\\n\""), text, sizeof(text)), "one with an escape");
	TAP_OK(!json_span_string(span_of("5"), text, sizeof(text)), "no string");
	elements = json_span_elements(span_of("[ 1, 2 ]"));
	TAP_OK(elements.size == 4 && memcmp(elements.at, "1, 2", 4) == 0, "elements of an array");
	elements = json_span_elements(span_of("[ ]"));
	TAP_OK(elements.at != NULL && elements.size == 0, "of an empty one");
	TAP_OK(json_span_elements(span_of("{}")).at == NULL, "of an object");
	TAP_OK(json_span_elements(none).at == NULL, "of nothing");
}

int main(void)
{
	test_valid();
	test_get();
	test_values();
	return TAP_DONE();
}
