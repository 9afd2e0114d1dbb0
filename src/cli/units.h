/*
 * units.h - numbers with units on the command line
 *
 * "500ns", "2us", "1.5ms", "3s" are fabric time; with w behind ("2sw") wall time. "64K" are bytes
 * (powers of 1024), "400G" bit/s (powers of 1000), "1%", "0.01%", "100ppm" parts. All are exact or
 * refused; above 2^63 they are refused.
 */
#ifndef DSF_CLI_UNITS_H
#define DSF_CLI_UNITS_H
#include <stdbool.h>
#include <stdint.h>

/* Nanoseconds. wall: it had the w. False: not a duration. */
bool units_duration(const char *text, uint64_t *ns, bool *wall);

/* Fabric nanoseconds of a duration, wall time divided by time_dilation. */
bool units_fabric_duration(const char *text, uint32_t time_dilation, uint64_t *ns);

/* A number without a unit. */
bool units_count(const char *text, uint64_t *count);

/* Bytes: an integer or K, M, G of 1024. */
bool units_bytes(const char *text, uint64_t *bytes);

/* Bit/s: an integer or K, M, G, T of 1000. */
bool units_rate(const char *text, uint64_t *bps);

/* Parts per million, 0 to 1000000. */
bool units_ppm(const char *text, uint32_t *ppm);

#endif
