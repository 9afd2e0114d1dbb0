/*
 * units.h - a number with a unit behind it, as text
 *
 * "500ns", "1.5ms", "400G", "0.1%": digits, perhaps a point and more digits, a unit. The value is
 * exact or there is none: a text that stands for a fraction of the smallest unit is refused, never
 * rounded. Which units there are is the caller's table.
 */
#ifndef DSF_BASE_UNITS_H
#define DSF_BASE_UNITS_H
#include <stdbool.h>
#include <stdint.h>

/* A table ends with a NULL name; the name "" allows a number alone. */
struct dsf_unit {
	const char *name;
	uint64_t factor;
};

/* False, and *value as it was: not a number with one of the units, not whole, or above INT64_MAX.
 */
bool dsf_units_parse(const char *text, const struct dsf_unit *units, uint64_t *value);

#endif
