/*
 * log.h - messages of the program on stderr
 *
 * "dsfemu: what: why": lower case, no full stop, node and peer named. --quiet leaves errors only,
 * -v adds debug. stdout is for results alone (output.h).
 */
#ifndef DSF_CLI_LOG_H
#define DSF_CLI_LOG_H

enum log_level { LOG_LEVEL_ERR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

/* Messages up to this level are written; LOG_LEVEL_INFO at first. */
void log_set_level(enum log_level level);

void log_err(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Text of a negative error of either kind: -errno or -DSF_E_*. Valid until the next call. */
const char *log_text(int err);

#endif
