#include "base/units.h"
#include <string.h>

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool same_text(const char *a, const char *b)
{
	size_t size = strlen(a);

	return size == strlen(b) && memcmp(a, b, size) == 0;
}

static const struct dsf_unit *find_unit(const char *name, const struct dsf_unit *units)
{
	for (; units->name != NULL; units++)
		if (same_text(units->name, name))
			return units;
	return NULL;
}

bool dsf_units_parse(const char *text, const struct dsf_unit *units, uint64_t *value)
{
	unsigned __int128 digits = 0, scale = 1;
	const char *at = text;
	bool point = false;

	for (; is_digit(*at) || (*at == '.' && !point && at != text); at++) {
		if (*at == '.') {
			point = true;
			continue;
		}
		digits = digits * 10 + (unsigned)(*at - '0');
		scale *= point ? 10 : 1;
		if (digits > UINT64_MAX || scale > UINT64_MAX)
			return false;
	}
	if (at == text || at[-1] == '.')
		return false;
	units = find_unit(at, units);
	if (units == NULL)
		return false;
	digits *= units->factor;
	if (digits % scale != 0 || digits / scale > INT64_MAX)
		return false;
	*value = (uint64_t)(digits / scale);
	return true;
}
