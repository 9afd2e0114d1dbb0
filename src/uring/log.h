/*
 * log.h - what a node process says to its operator
 *
 * Lines on stderr, which the supervisor keeps in the lab's log: "dsfemu[NODE]: level: message". A
 * token bucket caps what a peer can make us say; what it held back is told with the next line.
 */
#ifndef DSF_URING_LOG_H
#define DSF_URING_LOG_H

enum uring_log_level { URING_LOG_ERR, URING_LOG_WARN, URING_LOG_INFO, URING_LOG_DEBUG };

/* name is borrowed until the process ends. Lines above level are not written. */
void uring_log_open(const char *name, enum uring_log_level level);

__attribute__((format(printf, 2, 3))) void uring_log(
	enum uring_log_level level, const char *format, ...);

#define log_err(...)   uring_log(URING_LOG_ERR, __VA_ARGS__)
#define log_warn(...)  uring_log(URING_LOG_WARN, __VA_ARGS__)
#define log_info(...)  uring_log(URING_LOG_INFO, __VA_ARGS__)
#define log_debug(...) uring_log(URING_LOG_DEBUG, __VA_ARGS__)

/* Text of an errno or of a core's error, either sign. Valid until the next call. */
const char *uring_err_text(int err);

#endif
