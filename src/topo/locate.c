#include "topo/locate.h"
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include "base/err.h"

struct step {
	const char *key; /* NULL in an array */
	size_t key_size;
	uint32_t child; /* place among its parent's children */
};

struct scan {
	const char *at, *end;
	const char *fault_at; /* NULL while all is well */
	const char *fault;
	struct step steps[TOPO_DEPTH_MAX];
	uint32_t depth;
	/* What topo_locate looks for. */
	const uint32_t *want;
	uint32_t want_count;
	bool wanted, found;
	const char *found_at, *found_value, *found_end;
};

static bool scan_value(struct scan *s);

static bool fail_at(struct scan *s, const char *at, const char *fault)
{
	if (s->fault_at == NULL) {
		s->fault_at = at;
		s->fault = fault;
	}
	return false;
}

static void skip_space(struct scan *s)
{
	while (s->at < s->end &&
		(*s->at == ' ' || *s->at == '\t' || *s->at == '\n' || *s->at == '\r'))
		s->at++;
}

static bool is_digit(const struct scan *s)
{
	return s->at < s->end && *s->at >= '0' && *s->at <= '9';
}

static bool scan_digits(struct scan *s)
{
	if (!is_digit(s))
		return fail_at(s, s->at, "a digit is missing in a number");
	while (is_digit(s))
		s->at++;
	return true;
}

static bool scan_number(struct scan *s)
{
	if (*s->at == '-')
		s->at++;
	if (s->at < s->end && *s->at == '0') {
		s->at++;
		if (is_digit(s))
			return fail_at(s, s->at, "a number may not start with 0");
	} else if (!scan_digits(s)) {
		return false;
	}
	if (s->at < s->end && *s->at == '.') {
		s->at++;
		if (!scan_digits(s))
			return false;
	}
	if (s->at < s->end && (*s->at == 'e' || *s->at == 'E')) {
		s->at++;
		if (s->at < s->end && (*s->at == '+' || *s->at == '-'))
			s->at++;
		return scan_digits(s);
	}
	return true;
}

/* Four hex digits after \u; -1 when there are not. */
static int scan_hex4(struct scan *s)
{
	int value = 0;

	for (int i = 0; i < 4; i++, s->at++) {
		char c = s->at < s->end ? *s->at : 0;

		if (c >= '0' && c <= '9')
			value = value * 16 + (c - '0');
		else if (c >= 'a' && c <= 'f')
			value = value * 16 + (c - 'a' + 10);
		else if (c >= 'A' && c <= 'F')
			value = value * 16 + (c - 'A' + 10);
		else
			return -1;
	}
	return value;
}

static bool scan_escape(struct scan *s)
{
	const char *start = s->at++;
	int code;

	if (s->at < s->end && *s->at != '\0' && strchr("\"\\/bfnrt", *s->at) != NULL) {
		s->at++;
		return true;
	}
	if (s->at == s->end || *s->at != 'u')
		return fail_at(s, start, "unknown escape in a string");
	s->at++;
	code = scan_hex4(s);
	if (code < 0)
		return fail_at(s, start, "\\u needs four hex digits");
	if (code == 0)
		return fail_at(s, start, "\\u0000 in a string: remove it");
	if (code >= 0xdc00 && code < 0xe000)
		return fail_at(s, start, "half of a surrogate pair in a string");
	if (code >= 0xd800 && code < 0xdc00) {
		if (s->end - s->at < 6 || s->at[0] != '\\' || s->at[1] != 'u')
			return fail_at(s, start, "half of a surrogate pair in a string");
		s->at += 2;
		code = scan_hex4(s);
		if (code < 0xdc00 || code >= 0xe000)
			return fail_at(s, start, "half of a surrogate pair in a string");
	}
	return true;
}

/* One well-formed UTF-8 sequence of more than one byte (RFC 3629). */
static bool scan_utf8(struct scan *s)
{
	const unsigned char *at = (const unsigned char *)s->at;
	size_t left = (size_t)(s->end - s->at);
	size_t size = at[0] >= 0xf0 ? 4 : at[0] >= 0xe0 ? 3 : 2;
	unsigned char low = 0x80, high = 0xbf;

	if (at[0] < 0xc2 || at[0] > 0xf4 || size > left)
		return fail_at(s, s->at, "a byte that is not UTF-8");
	if (at[0] == 0xe0)
		low = 0xa0;
	if (at[0] == 0xed)
		high = 0x9f;
	if (at[0] == 0xf0)
		low = 0x90;
	if (at[0] == 0xf4)
		high = 0x8f;
	for (size_t i = 1; i < size; i++) {
		if (at[i] < (i == 1 ? low : 0x80) || at[i] > (i == 1 ? high : 0xbf))
			return fail_at(s, s->at, "a byte that is not UTF-8");
	}
	s->at += size;
	return true;
}

static bool scan_string(struct scan *s)
{
	const char *start = s->at++;

	while (s->at < s->end && *s->at != '"') {
		unsigned char c = (unsigned char)*s->at;

		if (c == '\\') {
			if (!scan_escape(s))
				return false;
		} else if (c < 0x20) {
			return fail_at(s, s->at,
				c == 0 ? "a NUL byte in a string"
				       : "a string does not end on its line, or holds a control "
					 "character");
		} else if (c >= 0x80) {
			if (!scan_utf8(s))
				return false;
		} else {
			s->at++;
		}
	}
	if (s->at == s->end)
		return fail_at(s, start, "a string that does not end");
	s->at++;
	return true;
}

static bool scan_word(struct scan *s)
{
	static const char *const words[] = { "true", "false", "null" };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		size_t size = strlen(words[i]);

		if ((size_t)(s->end - s->at) >= size && memcmp(s->at, words[i], size) == 0) {
			s->at += size;
			return true;
		}
	}
	return fail_at(s, s->at, "not JSON: a value is expected here");
}

/* True when the steps so far are those that topo_locate looks for. */
static bool at_wanted(const struct scan *s)
{
	if (!s->wanted || s->depth != s->want_count)
		return false;
	for (uint32_t i = 0; i < s->depth; i++) {
		if (s->steps[i].child != s->want[i])
			return false;
	}
	return true;
}

static bool scan_key(struct scan *s, struct step *step)
{
	skip_space(s);
	if (s->at == s->end || *s->at != '"')
		return fail_at(s, s->at, "not JSON: a key in double quotes is expected here");
	step->key = s->at + 1;
	if (!scan_string(s))
		return false;
	step->key_size = (size_t)(s->at - step->key) - 1;
	skip_space(s);
	if (s->at == s->end || *s->at != ':')
		return fail_at(s, s->at, "not JSON: ':' is expected after a key");
	s->at++;
	return true;
}

/* One member or element. */
static bool scan_child(struct scan *s, bool object, uint32_t child)
{
	struct step *step = &s->steps[s->depth++];

	*step = (struct step){ .child = child };
	skip_space(s);
	if (at_wanted(s))
		s->found_at = s->at;
	if (object && !scan_key(s, step)) {
		step->key = NULL;
		s->depth--; /* the fault belongs to the object */
		return false;
	}
	if (!scan_value(s))
		return false;
	s->depth--;
	skip_space(s);
	return true;
}

static bool scan_container(struct scan *s)
{
	bool object = *s->at == '{';
	char close = object ? '}' : ']';
	const char *start = s->at++;

	if (s->depth == TOPO_DEPTH_MAX)
		return fail_at(s, start, "nested too deeply: at most 32 levels");
	skip_space(s);
	if (s->at < s->end && *s->at == close) {
		s->at++;
		return true;
	}
	for (uint32_t child = 0;; child++) {
		if (!scan_child(s, object, child))
			return false;
		if (s->at == s->end)
			return fail_at(s, s->at, "the file ends too early");
		if (*s->at == close)
			break;
		if (*s->at != ',')
			return fail_at(s, s->at,
				object ? "not JSON: ',' or '}' is expected here"
				       : "not JSON: ',' or ']' is expected here");
		s->at++;
	}
	s->at++;
	return true;
}

static bool scan_value(struct scan *s)
{
	const char *start;
	bool wanted = at_wanted(s), ok;

	skip_space(s);
	start = s->at;
	if (s->at == s->end)
		return fail_at(s, s->at, "the file ends too early");
	if (*s->at == '{' || *s->at == '[')
		ok = scan_container(s);
	else if (*s->at == '"')
		ok = scan_string(s);
	else if (*s->at == '-' || is_digit(s))
		ok = scan_number(s);
	else
		ok = scan_word(s);
	if (ok && wanted) {
		s->found = true;
		s->found_value = start;
		s->found_end = s->at;
	}
	return ok;
}

static uint32_t line_of(const char *text, const char *at)
{
	uint32_t line = 1;

	for (const char *c = text; c < at; c++)
		line += *c == '\n';
	return line;
}

int topo_locate_check(const char *text, size_t size, struct topo_error *err)
{
	struct scan s = { .at = text, .end = text + size };

	if (scan_value(&s)) {
		skip_space(&s);
		if (s.at != s.end)
			fail_at(&s, s.at, "something follows the end of the JSON document");
	}
	if (s.fault_at == NULL)
		return 0;
	err->line = line_of(text, s.fault_at);
	err->path[0] = '\0';
	for (uint32_t i = 0; i < s.depth; i++) {
		if (s.steps[i].key != NULL)
			topo_path_add_key(
				err->path, sizeof(err->path), s.steps[i].key, s.steps[i].key_size);
		else
			topo_path_add_index(err->path, sizeof(err->path), s.steps[i].child);
	}
	if (err->path[0] == '\0')
		snprintf(err->path, sizeof(err->path), "(top)");
	snprintf(err->text, sizeof(err->text), "%s", s.fault);
	return -DSF_E_BADFIELD;
}

struct topo_place topo_locate(
	const char *text, size_t size, const uint32_t *steps, uint32_t steps_count)
{
	struct scan s = { .at = text,
		.end = text + size,
		.want = steps,
		.want_count = steps_count,
		.wanted = true };
	struct topo_place place = { .line = 1, .value = text, .value_size = 0 };

	s.found_at = text;
	if (!scan_value(&s) || !s.found)
		return place;
	place.line = line_of(text, steps_count == 0 ? s.found_value : s.found_at);
	place.value = s.found_value;
	place.value_size = (size_t)(s.found_end - s.found_value);
	return place;
}
