#include "cli/log.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "base/err.h"

static enum log_level log_level = LOG_LEVEL_INFO;

void log_set_level(enum log_level level)
{
	log_level = level;
}

/* One write a message, so that messages of several processes don't mix within a line. */
static void write_message(enum log_level level, const char *mark, const char *format, va_list args)
{
	char text[2048];
	int size;

	if (level > log_level)
		return;
	size = snprintf(text, sizeof(text), "dsfemu: %s", mark);
	vsnprintf(text + size, sizeof(text) - (size_t)size, format, args);
	fprintf(stderr, "%s\n", text);
}

#define LOG_FUNCTION(function, level, mark)                                                        \
	void function(const char *format, ...)                                                     \
	{                                                                                          \
		va_list args;                                                                      \
                                                                                                   \
		va_start(args, format);                                                            \
		write_message(level, mark, format, args);                                          \
		va_end(args);                                                                      \
	}

LOG_FUNCTION(log_err, LOG_LEVEL_ERR, "")
LOG_FUNCTION(log_warn, LOG_LEVEL_WARN, "warning: ")
LOG_FUNCTION(log_info, LOG_LEVEL_INFO, "")
LOG_FUNCTION(log_debug, LOG_LEVEL_DEBUG, "debug: ")

const char *log_text(int err)
{
	if (err <= -DSF_ERR_BASE)
		return dsf_err_text(err);
	return strerror(err < 0 ? -err : err);
}
