/*
 * err.h - errors that cores return
 *
 * One int everywhere: 0 or more is success, negative is an error. Drivers pass on
 * -errno; cores return -DSF_E_*, numbered above every errno, so that one int carries
 * either kind. The list also names the counter that a dropped input is booked on.
 */
#ifndef DSF_BASE_ERR_H
#define DSF_BASE_ERR_H

#define DSF_ERR_BASE 10000

/* code, text, counter */
#define DSF_ERR_LIST(X)                                                                            \
	X(TRUNCATED, "message ends too early", "truncated")                                        \
	X(BADFIELD, "a field has an impossible value", "bad_field")                                \
	X(VERSION, "unknown version", "bad_version")                                               \
	X(CHECKSUM, "checksum does not match", "bad_checksum")                                     \
	X(CORRUPT, "frame was corrupted on the wire", "corrupt")                                   \
	X(PEER, "peer broke the protocol", "peer_error")                                           \
	X(UNKNOWN, "no such destination", "unknown_destination")                                   \
	X(UNREACHABLE, "destination is not reachable", "unreachable")                              \
	X(NOROUTE, "no route", "no_route")                                                         \
	X(NONEIGHBOR, "neighbour is not resolved", "no_neighbor")                                  \
	X(TOOBIG, "larger than the limit", "too_big")                                              \
	X(HOPLIMIT, "hop limit exceeded", "hop_limit")                                             \
	X(FULL, "queue is full", "full")                                                           \
	X(NOMEM, "out of memory", "no_memory")                                                     \
	X(DUPLICATE, "seen before", "duplicate")                                                   \
	X(STALE, "out of date", "stale")                                                           \
	X(STATE, "not possible in this state", "bad_state")                                        \
	X(ACCESS, "access not allowed", "access")                                                  \
	X(UNSUPPORTED, "not supported", "unsupported")

enum dsf_err {
	DSF_E_FIRST = DSF_ERR_BASE,
#define X(code, text, counter) DSF_E_##code,
	DSF_ERR_LIST(X)
#undef X
		DSF_E_END
};

#define DSF_ERR_COUNT (DSF_E_END - DSF_E_FIRST - 1)

/* Index of a core error (negative or positive) in a table of DSF_ERR_COUNT counters. */
#define DSF_ERR_INDEX(err) ((err) < 0 ? -((err) + DSF_E_FIRST + 1) : (err)-DSF_E_FIRST - 1)

/* Text of a core error (either sign); "error" for anything else. Drivers use dsf_err_text
 * through cli/log.h, which adds errno texts. Static storage. */
const char *dsf_err_text(int err);

/* Name of the drop counter of a core error (either sign); NULL for anything else. */
const char *dsf_err_counter(int err);

#endif
