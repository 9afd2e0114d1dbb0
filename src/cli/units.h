/*
 * units.h - numbers with units on the command line
 *
 * "500ns", "2us", "1.5ms", "3s" are fabric time; with w behind ("2sw") wall time. "400G" is bit/s.
 * "1%", "0.01%", "100ppm" are parts.
 */
#ifndef DSF_CLI_UNITS_H
#define DSF_CLI_UNITS_H
#include <stdbool.h>
#include <stdint.h>

/* Nanoseconds, exact where the text is. wall: it had the w. False: not a duration, or over 2^63. */
bool units_duration(const char *text, uint64_t *ns, bool *wall);

/* Fabric nanoseconds of a duration, wall time divided by time_dilation. */
bool units_fabric_duration(const char *text, uint32_t time_dilation, uint64_t *ns);

/* Bit/s: an integer or K, M, G, T of 1000. */
bool units_rate(const char *text, uint64_t *bps);

/* Parts per million, 0 to 1000000. */
bool units_ppm(const char *text, uint32_t *ppm);

#endif
