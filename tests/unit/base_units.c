#include "base/units.h"
#include "tests/tap.h"

static const struct dsf_unit times[] = { { "ns", 1 }, { "us", 1000 }, { "s", 1000000000 },
	{ NULL, 0 } };
static const struct dsf_unit rates[] = { { "", 1 }, { "K", 1000 }, { "T", 1000000000000 },
	{ NULL, 0 } };

#define UNTOUCHED 77u

static void refuse(const struct dsf_unit *units, const char *text)
{
	uint64_t value = UNTOUCHED;

	TAP_OK(!dsf_units_parse(text, units, &value) && value == UNTOUCHED, "\"%s\" is refused",
		text);
}

static void take(const struct dsf_unit *units, const char *text, uint64_t want)
{
	uint64_t value = UNTOUCHED;
	bool taken = dsf_units_parse(text, units, &value);

	TAP_OK(taken && value == want, "\"%s\" is %llu", text, (unsigned long long)want);
}

int main(void)
{
	refuse(times, "");
	refuse(times, "ns");
	refuse(times, ".5us");
	refuse(times, "1.us");
	refuse(times, "1.2.3us");
	refuse(times, "-1us");
	refuse(times, "+1us");
	refuse(times, " 1us");
	refuse(times, "1us ");
	refuse(times, "1 us");
	refuse(times, "1u");
	refuse(times, "1usx");
	refuse(times, "1US");
	refuse(times, "1");
	refuse(times, "0x10ns");
	refuse(times, "1e3ns");
	refuse(times, "0.5ns");    /* not whole */
	refuse(times, "1.0005us"); /* half a nanosecond */
	refuse(times, "18446744073709551616ns");
	refuse(times, "9223372036854775808ns");
	refuse(times, "9223372037s"); /* above 2^63 ns */
	refuse(rates, "0.00000000000000000001T");
	refuse(rates, "340282366920938463463374607431768211456K"); /* 2^128 */

	take(times, "0ns", 0);
	take(times, "007ns", 7);
	take(times, "1.5us", 1500);
	take(times, "1.500us", 1500);
	take(times, "0.000000001s", 1);
	take(times, "9223372036854775807ns", INT64_MAX);
	take(rates, "400", 400);
	take(rates, "2.4T", 2400000000000);
	return TAP_DONE();
}
