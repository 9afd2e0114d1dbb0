#include "cli/units.h"
#include <stddef.h>
#include <string.h>
#include "base/time.h"
#include "base/units.h"

bool units_duration(const char *text, uint64_t *ns, bool *wall)
{
	static const struct dsf_unit units[] = { { "ns", 1 }, { "us", NS_PER_US },
		{ "ms", NS_PER_MS }, { "s", NS_PER_S }, { "m", 60 * NS_PER_S },
		{ "min", 60 * NS_PER_S }, { NULL, 0 } };
	char plain[40];
	size_t size = strlen(text);

	*wall = size > 0 && text[size - 1] == 'w';
	if (*wall)
		size--;
	if (size >= sizeof(plain))
		return false;
	memcpy(plain, text, size);
	plain[size] = '\0';
	return dsf_units_parse(plain, units, ns);
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

bool units_count(const char *text, uint64_t *count)
{
	static const struct dsf_unit units[] = { { "", 1 }, { NULL, 0 } };

	return dsf_units_parse(text, units, count);
}

bool units_bytes(const char *text, uint64_t *bytes)
{
	static const struct dsf_unit units[] = { { "", 1 }, { "K", 1ull << 10 },
		{ "M", 1ull << 20 }, { "G", 1ull << 30 }, { NULL, 0 } };

	return dsf_units_parse(text, units, bytes);
}

bool units_rate(const char *text, uint64_t *bps)
{
	static const struct dsf_unit units[] = { { "", 1 }, { "K", 1000 }, { "M", 1000000 },
		{ "G", 1000000000 }, { "T", 1000000000000 }, { NULL, 0 } };

	return dsf_units_parse(text, units, bps);
}

bool units_ppm(const char *text, uint32_t *ppm)
{
	static const struct dsf_unit units[] = { { "%", 10000 }, { "ppm", 1 }, { NULL, 0 } };
	uint64_t value;

	if (!dsf_units_parse(text, units, &value) || value > 1000000)
		return false;
	*ppm = (uint32_t)value;
	return true;
}
