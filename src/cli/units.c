#include "cli/units.h"
#include <stddef.h>
#include <string.h>

struct unit {
	const char *name;
	uint64_t factor;
};

/* Digits with at most one point in them, and the unit that follows, as value * factor; what is
 * below 1 is cut off. *rest is what follows the number. */
static bool read_number(const char *text, const struct unit *units, uint64_t *value)
{
	uint64_t whole = 0, part = 0, scale = 1;
	const char *at = text;

	if (*at < '0' || *at > '9')
		return false;
	for (; *at >= '0' && *at <= '9'; at++) {
		if (whole > UINT64_MAX / 10 - 10)
			return false;
		whole = 10 * whole + (uint64_t)(*at - '0');
	}
	if (*at == '.') {
		if (at[1] < '0' || at[1] > '9')
			return false;
		for (at++; *at >= '0' && *at <= '9'; at++) {
			if (scale == 1000000000000u)
				return false;
			part = 10 * part + (uint64_t)(*at - '0');
			scale *= 10;
		}
	}
	for (const struct unit *u = units; u->name != NULL; u++) {
		unsigned __int128 total;

		if (strcmp(at, u->name) != 0)
			continue;
		total = (unsigned __int128)whole * u->factor +
			(unsigned __int128)part * u->factor / scale;
		*value = (uint64_t)total;
		return total <= INT64_MAX;
	}
	return false;
}

bool units_duration(const char *text, uint64_t *ns, bool *wall)
{
	static const struct unit units[] = { { "ns", 1 }, { "us", 1000 }, { "ms", 1000000 },
		{ "s", 1000000000 }, { "m", 60000000000 }, { "min", 60000000000 }, { NULL, 0 } };
	char plain[40];
	size_t size = strlen(text);

	*wall = size > 0 && text[size - 1] == 'w';
	if (*wall)
		size--;
	if (size >= sizeof(plain))
		return false;
	memcpy(plain, text, size);
	plain[size] = '\0';
	return read_number(plain, units, ns);
}

bool units_fabric_duration(const char *text, uint32_t time_dilation, uint64_t *ns)
{
	bool wall;

	if (!units_duration(text, ns, &wall))
		return false;
	if (wall && time_dilation > 0)
		*ns /= time_dilation;
	return true;
}

bool units_rate(const char *text, uint64_t *bps)
{
	static const struct unit units[] = { { "", 1 }, { "K", 1000 }, { "M", 1000000 },
		{ "G", 1000000000 }, { "T", 1000000000000 }, { NULL, 0 } };

	return read_number(text, units, bps);
}

bool units_ppm(const char *text, uint32_t *ppm)
{
	static const struct unit units[] = { { "%", 10000 }, { "ppm", 1 }, { NULL, 0 } };
	uint64_t value;

	if (!read_number(text, units, &value) || value > 1000000)
		return false;
	*ppm = (uint32_t)value;
	return true;
}
