/*
 * tap.h - plain TAP from a C test
 *
 * TAP_OK and TAP_EQ print one line each and give back whether they held, so that a test can stop
 * where going on makes no sense. main() ends with `return TAP_DONE();`: that prints the plan, and
 * a test that ran nothing has failed.
 */
#ifndef DSF_TESTS_TAP_H
#define DSF_TESTS_TAP_H
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

static unsigned tap_count, tap_failed;

__attribute__((format(printf, 2, 3), unused)) static bool tap_result(
	bool held, const char *format, ...)
{
	va_list arguments;

	tap_count++;
	if (!held)
		tap_failed++;
	printf("%sok %u - ", held ? "" : "not ", tap_count);
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	putchar('\n');
	fflush(stdout); /* what was said survives an abort */
	return held;
}

__attribute__((unused)) static bool tap_where(
	bool held, const char *file, int line, const char *text)
{
	if (!held)
		printf("# %s:%d: %s\n", file, line, text);
	fflush(stdout);
	return held;
}

__attribute__((unused)) static void tap_values(bool held, intmax_t got, intmax_t want)
{
	if (!held)
		printf("#   got %" PRIdMAX " (0x%" PRIxMAX "), want %" PRIdMAX " (0x%" PRIxMAX
		       ")\n",
			got, (uintmax_t)got, want, (uintmax_t)want);
	fflush(stdout);
}

__attribute__((unused)) static int tap_done(void)
{
	if (tap_count == 0)
		printf("not ok 1 - no test ran\n");
	printf("1..%u\n", tap_count == 0 ? 1 : tap_count);
	fflush(stdout);
	return tap_count == 0 || tap_failed > 0;
}

__attribute__((unused)) static bool tap_equal(
	intmax_t got, intmax_t want, const char *file, int line, const char *text)
{
	bool held = got == want;

	tap_where(held, file, line, text);
	tap_values(held, got, want);
	return held;
}

/* TAP_OK(condition, "name of the test with %d", ...) */
#define TAP_OK(condition, ...)                                                                     \
	tap_result(tap_where((condition), __FILE__, __LINE__, #condition), __VA_ARGS__)

/* TAP_EQ(got, want, "name", ...): integers of up to 64 bits; shows both where they differ. */
#define TAP_EQ(got, want, ...)                                                                     \
	tap_result(tap_equal((intmax_t)(got), (intmax_t)(want), __FILE__, __LINE__,                \
			   #got " == " #want),                                                     \
		__VA_ARGS__)

/* The rest of this program can't run here, and why. */
#define TAP_SKIP(...)                                                                              \
	(tap_count++, printf("ok %u # SKIP ", tap_count), printf(__VA_ARGS__), putchar('\n'))

#define TAP_DONE() tap_done()

#endif
