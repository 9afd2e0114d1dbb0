#include "topo/error.h"
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

char *topo_error_line(const struct topo_error *err, char *out, size_t size)
{
	if (err->line == 0)
		snprintf(out, size, "%s: %s: %s", err->file, err->path, err->text);
	else
		snprintf(out, size, "%s:%u: %s: %s", err->file, err->line, err->path, err->text);
	return out;
}

/* Length of the UTF-8 sequence that lead starts; 1 for ASCII and for stray bytes. */
static size_t utf8_size(unsigned char lead)
{
	return lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc2 ? 2 : 1;
}

/* A character as it may stand on a terminal: C0, C1, DEL, quotes and stray bytes are escaped. */
static size_t quote_char(char *out, const unsigned char *at, size_t size)
{
	size_t need = utf8_size(at[0]);
	bool plain = at[0] >= 0x20 && at[0] < 0x7f && at[0] != '"' && at[0] != '\\';

	if (at[0] >= 0xc2 && need <= size)
		plain = !(at[0] == 0xc2 && at[1] < 0xa0);
	if (plain) {
		memcpy(out, at, need);
		out[need] = '\0';
		return need;
	}
	if (at[0] == '"' || at[0] == '\\')
		snprintf(out, 5, "\\%c", at[0]);
	else
		snprintf(out, 5, "\\x%02x", at[0]);
	return 1;
}

const char *topo_quote(struct topo_quote *out, const char *string, size_t size)
{
	const unsigned char *bytes = (const unsigned char *)string;
	char *to = out->text;
	size_t at = 0;

	*to++ = '"';
	while (at < size && at < TOPO_QUOTE_MAX) {
		char one[8];

		at += quote_char(one, bytes + at, size - at);
		memcpy(to, one, strlen(one));
		to += strlen(one);
	}
	memcpy(to, at < size ? "...\"" : "\"", at < size ? 5 : 2);
	return out->text;
}

static bool key_is_plain(const char *key, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		char c = key[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
			c != '_' && c != '-' && c != '$')
			return false;
	}
	return size > 0 && size <= TOPO_QUOTE_MAX;
}

void topo_path_add_key(char *path, size_t size, const char *key, size_t key_size)
{
	size_t used = strlen(path);
	struct topo_quote quote;

	if (key_is_plain(key, key_size))
		snprintf(path + used, size - used, "%s%.*s", used > 0 ? "." : "", (int)key_size,
			key);
	else
		snprintf(path + used, size - used, "[%s]", topo_quote(&quote, key, key_size));
}

void topo_path_add_index(char *path, size_t size, uint32_t index)
{
	size_t used = strlen(path);

	snprintf(path + used, size - used, "[%u]", index);
}
