/*
 * loop.h - the process's one io_uring
 *
 * Everything that a node process waits for goes through one ring: packets of every port, the TUN
 * device, link changes, control, signals and the next deadline. One io_uring_enter a turn submits
 * the sends of the last turn, waits and brings in what has come: at load that is 0.02 syscalls a
 * frame, idle one a hop.
 *
 * A completion is told apart by its tag, kind and index; the process (process.c) dispatches by a
 * switch over the kind. Sends report only failures.
 */
#ifndef DSF_URING_LOOP_H
#define DSF_URING_LOOP_H
#include <liburing.h>
#include <stdbool.h>
#include <stdint.h>

#define URING_SQ_ENTRIES 1024u
#define URING_CQ_ENTRIES 4096u

enum uring_kind {
	URING_KIND_PORT_RX = 1, /* index: place of the port */
	URING_KIND_PORT_TX,     /* same; comes only when a send failed */
	URING_KIND_LINKS,
	URING_KIND_CONTROL_RX,
	URING_KIND_CONTROL_TX,
	URING_KIND_SIGNAL,
	URING_KIND_STREAM_ACCEPT,  /* index: the listener */
	URING_KIND_STREAM_CONNECT, /* index: the stream's slot */
	URING_KIND_STREAM_RX,
	URING_KIND_STREAM_TX,
	URING_KIND_STREAM_CANCEL,
};

struct uring_loop {
	struct io_uring ring;
	bool open;
	bool deferred;    /* SINGLE_ISSUER | DEFER_TASKRUN were granted */
	bool fixed_files; /* slots are registered files; else they are plain descriptors */
	uint32_t files_count, files_max;
	uint64_t enters; /* turns that went into the kernel */
};

static inline uint64_t uring_tag(enum uring_kind kind, uint32_t index)
{
	return (uint64_t)kind << 32 | index;
}

static inline enum uring_kind uring_tag_kind(uint64_t tag)
{
	return (enum uring_kind)(tag >> 32);
}

static inline uint32_t uring_tag_index(uint64_t tag)
{
	return (uint32_t)tag;
}

/* Sets up the ring with the best flags that the kernel grants, for files_max calls of add_file.
 * 0 or -errno. */
int uring_loop_open(struct uring_loop *l, uint32_t files_max);
/* Ends all requests and lets go of the files first, so that they can be closed. */
void uring_loop_close(struct uring_loop *l);

/* Makes fd usable in entries: returns the number to prepare entries with, or -errno. The caller
 * keeps fd open; set_file on the entry says which kind of number it is. */
int uring_loop_add_file(struct uring_loop *l, int fd);

/* A cleared entry; a full queue is submitted first. NULL only when the kernel takes nothing, which
 * is then out of memory. */
struct io_uring_sqe *uring_loop_entry(struct uring_loop *l);

static inline void uring_loop_entry_done(
	const struct uring_loop *l, struct io_uring_sqe *sqe, uint64_t tag)
{
	if (l->fixed_files)
		sqe->flags |= IOSQE_FIXED_FILE;
	sqe->user_data = tag;
}

/* Submits and runs what has completed, without waiting. 0 or -errno. */
int uring_loop_flush(struct uring_loop *l);

/* Submits and waits until count completions have come or timeout_ns have passed (UINT64_MAX: no
 * limit). 0 or -errno; a timeout or a signal is 0. */
int uring_loop_wait(struct uring_loop *l, unsigned count, uint64_t timeout_ns);

#endif
