#include "uring/log.h"
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "base/err.h"

#define LINE_MAX_BYTES   1024
#define LINES_BURST      100u /* lines that may come at once */
#define LINES_PER_SECOND 20u

static const char *log_name = "node";
static enum uring_log_level log_level = URING_LOG_INFO;
static unsigned log_tokens = LINES_BURST;
static time_t log_filled_at;
static uint64_t log_held_back;

void uring_log_open(const char *name, enum uring_log_level level)
{
	log_name = name;
	log_level = level;
}

static int take_token(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	if (now.tv_sec > log_filled_at) {
		uint64_t filled =
			log_tokens + (uint64_t)(now.tv_sec - log_filled_at) * LINES_PER_SECOND;

		log_tokens = filled > LINES_BURST ? LINES_BURST : (unsigned)filled;
		log_filled_at = now.tv_sec;
	}
	if (log_tokens == 0)
		return 0;
	log_tokens--;
	return 1;
}

void uring_log(enum uring_log_level level, const char *format, ...)
{
	static const char *const names[] = { "error", "warning", "info", "debug" };
	char line[LINE_MAX_BYTES];
	va_list arguments;

	if (level > log_level)
		return;
	if (!take_token()) {
		log_held_back++;
		return;
	}
	va_start(arguments, format);
	vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	if (log_held_back > 0)
		fprintf(stderr, "dsfemu[%s]: %s: %s (and %llu lines held back before)\n", log_name,
			names[level], line, (unsigned long long)log_held_back);
	else
		fprintf(stderr, "dsfemu[%s]: %s: %s\n", log_name, names[level], line);
	log_held_back = 0;
}

const char *uring_err_text(int err)
{
	int positive = err < 0 ? -err : err;

	return positive > DSF_ERR_BASE ? dsf_err_text(err) : strerror(positive);
}
