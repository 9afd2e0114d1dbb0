#include "cli/json_span.h"
#include <string.h>

struct scan {
	const char *at, *end;
};

static void skip_space(struct scan *s)
{
	while (s->at < s->end &&
		(*s->at == ' ' || *s->at == '\t' || *s->at == '\n' || *s->at == '\r'))
		s->at++;
}

static bool take(struct scan *s, char c)
{
	if (s->at == s->end || *s->at != c)
		return false;
	s->at++;
	return true;
}

static bool is_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool scan_string(struct scan *s)
{
	if (!take(s, '"'))
		return false;
	while (s->at < s->end && *s->at != '"') {
		if ((unsigned char)*s->at < ' ')
			return false;
		if (*s->at++ != '\\')
			continue;
		if (s->at == s->end || strchr("\"\\/bfnrtu", *s->at) == NULL || *s->at == '\0')
			return false;
		if (*s->at++ == 'u') {
			for (int i = 0; i < 4; i++, s->at++)
				if (s->at == s->end || !is_hex(*s->at))
					return false;
		}
	}
	return take(s, '"');
}

static bool scan_digits(struct scan *s)
{
	const char *start = s->at;

	while (s->at < s->end && *s->at >= '0' && *s->at <= '9')
		s->at++;
	return s->at > start;
}

static bool scan_number(struct scan *s)
{
	const char *start;

	(void)take(s, '-');
	start = s->at;
	if (!scan_digits(s) || (*start == '0' && s->at - start > 1))
		return false;
	if (take(s, '.') && !scan_digits(s))
		return false;
	if (take(s, 'e') || take(s, 'E')) {
		if (!take(s, '+'))
			(void)take(s, '-');
		return scan_digits(s);
	}
	return true;
}

static bool scan_word(struct scan *s, const char *word)
{
	size_t size = strlen(word);

	if ((size_t)(s->end - s->at) < size || memcmp(s->at, word, size) != 0)
		return false;
	s->at += size;
	return true;
}

static bool scan_scalar(struct scan *s)
{
	if (s->at == s->end)
		return false;
	switch (*s->at) {
	case '"': return scan_string(s);
	case 't': return scan_word(s, "true");
	case 'f': return scan_word(s, "false");
	case 'n': return scan_word(s, "null");
	default: return scan_number(s);
	}
}

/* A value's beginning: opens a container (pushed on the stack, returns true with *opened), or is
 * a scalar. */
static bool scan_begin(struct scan *s, char *stack, unsigned *depth, bool *opened)
{
	skip_space(s);
	*opened = s->at < s->end && (*s->at == '{' || *s->at == '[');
	if (!*opened)
		return scan_scalar(s);
	if (*depth == JSON_SPAN_DEPTH_MAX)
		return false;
	stack[(*depth)++] = *s->at++;
	return true;
}

static bool scan_key(struct scan *s)
{
	skip_space(s);
	if (!scan_string(s))
		return false;
	skip_space(s);
	return take(s, ':');
}

/* One value; s->at is behind it afterwards. */
static bool scan_value(struct scan *s)
{
	char stack[JSON_SPAN_DEPTH_MAX];
	unsigned depth = 0;
	bool opened;

	if (!scan_begin(s, stack, &depth, &opened))
		return false;
	while (depth > 0) {
		bool object = stack[depth - 1] == '{';

		skip_space(s);
		if (take(s, object ? '}' : ']')) {
			depth--;
			opened = false;
			continue;
		}
		/* Just opened: a first element follows; else a comma must. */
		if (!opened && !take(s, ','))
			return false;
		if (object && !scan_key(s))
			return false;
		if (!scan_begin(s, stack, &depth, &opened))
			return false;
	}
	return true;
}

bool json_span_valid(const char *text, size_t size)
{
	struct scan s = { text, text + size };

	if (!scan_value(&s))
		return false;
	skip_space(&s);
	return s.at == s.end;
}

struct json_span json_span_get(const char *text, size_t size, const char *key)
{
	struct scan s = { text, text + size };
	size_t key_size = strlen(key);

	skip_space(&s);
	if (!take(&s, '{'))
		return (struct json_span){ NULL, 0 };
	do {
		const char *name, *value;
		bool found;

		skip_space(&s);
		name = s.at;
		if (!scan_key(&s))
			break;
		found = strncmp(name + 1, key, key_size) == 0 && name[key_size + 1] == '"';
		skip_space(&s);
		value = s.at;
		if (!scan_value(&s))
			break;
		if (found)
			return (struct json_span){ value, (size_t)(s.at - value) };
		skip_space(&s);
	} while (take(&s, ','));
	return (struct json_span){ NULL, 0 };
}

struct json_span json_span_elements(struct json_span array)
{
	struct scan s = { array.at, array.at + array.size };

	if (array.at == NULL || array.size < 2 || array.at[0] != '[' ||
		array.at[array.size - 1] != ']')
		return (struct json_span){ NULL, 0 };
	s.at++;
	s.end--;
	skip_space(&s);
	while (s.end > s.at &&
		(s.end[-1] == ' ' || s.end[-1] == '\t' || s.end[-1] == '\n' || s.end[-1] == '\r'))
		s.end--;
	return (struct json_span){ s.at, (size_t)(s.end - s.at) };
}

bool json_span_integer(struct json_span value, int64_t *number)
{
	int64_t result = 0;
	bool negative = value.size > 0 && value.at[0] == '-';
	size_t at = negative ? 1 : 0;

	if (value.at == NULL || value.size == at || value.size - at > 18)
		return false;
	for (; at < value.size; at++) {
		if (value.at[at] < '0' || value.at[at] > '9')
			return false;
		result = 10 * result + (value.at[at] - '0');
	}
	*number = negative ? -result : result;
	return true;
}

bool json_span_is_true(struct json_span value)
{
	return value.size == 4 && memcmp(value.at, "true", 4) == 0;
}

bool json_span_is(struct json_span value, const char *text)
{
	size_t size = strlen(text);

	return value.at != NULL && value.size == size + 2 && value.at[0] == '"' &&
	       memcmp(value.at + 1, text, size) == 0;
}

bool json_span_string(struct json_span value, char *text, size_t size)
{
	if (value.at == NULL || value.size < 2 || value.at[0] != '"' || value.size - 2 >= size ||
		memchr(value.at, '\\', value.size) != NULL)
		return false;
	memcpy(text, value.at + 1, value.size - 2);
	text[value.size - 2] = '\0';
	return true;
}
