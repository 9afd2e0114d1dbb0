#include <string.h>
#include "cli/units.h"
#include "tests/tap.h"

static void test_durations(void)
{
	static const struct {
		const char *text;
		bool good, wall;
		uint64_t ns;
	} rows[] = {
		{ "", false, false, 0 },
		{ "5", false, false, 0 },
		{ "us", false, false, 0 },
		{ "-5us", false, false, 0 },
		{ "5 us", false, false, 0 },
		{ "5.us", false, false, 0 },
		{ ".5us", false, false, 0 },
		{ "5usx", false, false, 0 },
		{ "5usww", false, false, 0 },
		{ "99999999999999999999s", false, false, 0 },
		{ "9999999999999s", false, false, 0 },
		{ "0.0000000000001s", false, false, 0 },
		{ "0ns", true, false, 0 },
		{ "500ns", true, false, 500 },
		{ "1.5us", true, false, 1500 },
		{ "0.25ms", true, false, 250000 },
		{ "2s", true, false, 2000000000 },
		{ "2sw", true, true, 2000000000 },
		{ "1.0000000005s", false, false, 0 }, /* half a nanosecond */
		{ "3min", true, false, 180000000000 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t ns = 0;
		bool wall = false, good = units_duration(rows[i].text, &ns, &wall);

		TAP_OK(good == rows[i].good &&
				(!good || (ns == rows[i].ns && wall == rows[i].wall)),
			"duration \"%s\"", rows[i].text);
	}
}

int main(void)
{
	uint64_t value = 0;
	uint32_t ppm = 0;

	test_durations();
	TAP_OK(units_fabric_duration("2sw", 1000, &value) && value == 2000000,
		"wall time is divided");
	TAP_OK(units_fabric_duration("2us", 1000, &value) && value == 2000, "fabric time isn't");
	TAP_OK(units_rate("400G", &value) && value == 400000000000, "400G");
	TAP_OK(units_rate("1.6T", &value) && value == 1600000000000, "1.6T");
	TAP_OK(units_rate("0", &value) && value == 0, "0");
	TAP_OK(!units_rate("400g", &value) && !units_rate("G", &value) &&
			!units_rate("4e5", &value),
		"no rates");
	TAP_OK(units_ppm("1%", &ppm) && ppm == 10000, "1%%");
	TAP_OK(units_ppm("0.01%", &ppm) && ppm == 100, "0.01%%");
	TAP_OK(units_ppm("100%", &ppm) && ppm == 1000000, "100%%");
	TAP_OK(units_ppm("7ppm", &ppm) && ppm == 7, "7ppm");
	TAP_OK(!units_ppm("100.1%", &ppm) && !units_ppm("1", &ppm) && !units_ppm("x%", &ppm),
		"no parts");
	return TAP_DONE();
}
