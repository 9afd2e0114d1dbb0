#include "uring/loop.h"
#include <errno.h>
#include <string.h>
#include "base/time.h"

static int open_ring(struct uring_loop *l, unsigned flags)
{
	struct io_uring_params params;

	memset(&params, 0, sizeof(params));
	params.flags = flags | IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP;
	params.cq_entries = URING_CQ_ENTRIES;
	return io_uring_queue_init_params(URING_SQ_ENTRIES, &l->ring, &params);
}

int uring_loop_open(struct uring_loop *l, uint32_t files_max)
{
	int err;

	memset(l, 0, sizeof(*l));
	/* The best flags came with 6.0 and 6.1; older kernels refuse them with EINVAL. */
	err = open_ring(l, IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN);
	l->deferred = err == 0;
	if (err == -EINVAL)
		err = open_ring(l, IORING_SETUP_COOP_TASKRUN);
	if (err == -EINVAL)
		err = open_ring(l, 0);
	if (err < 0)
		return err;
	l->open = true;
	io_uring_register_ring_fd(&l->ring); /* saves a lookup; nothing lost where refused */
	l->fixed_files = io_uring_register_files_sparse(&l->ring, files_max) == 0;
	l->files_max = files_max;
	return 0;
}

/* Until the kernel says that all is ended. It can only refuse where it is too old for "any". */
static void cancel_all(struct uring_loop *l)
{
	struct io_uring_sqe *sqe = uring_loop_entry(l);
	struct io_uring_cqe *cqe;
	bool done = sqe == NULL;

	if (sqe != NULL) {
		io_uring_prep_cancel64(sqe, 0, IORING_ASYNC_CANCEL_ANY | IORING_ASYNC_CANCEL_ALL);
		sqe->user_data = UINT64_MAX;
	}
	while (!done && io_uring_submit_and_wait(&l->ring, 1) >= 0) {
		while (io_uring_peek_cqe(&l->ring, &cqe) == 0) {
			done |= cqe->user_data == UINT64_MAX;
			io_uring_cqe_seen(&l->ring, cqe);
		}
	}
}

void uring_loop_close(struct uring_loop *l)
{
	if (l->open) {
		cancel_all(l);
		if (l->fixed_files)
			io_uring_unregister_files(&l->ring);
		io_uring_queue_exit(&l->ring);
	}
	l->open = false;
}

int uring_loop_add_file(struct uring_loop *l, int fd)
{
	int err;

	if (!l->fixed_files)
		return fd;
	if (l->files_count == l->files_max)
		return -EMFILE;
	err = io_uring_register_files_update(&l->ring, l->files_count, &fd, 1);
	if (err < 0)
		return err;
	return (int)l->files_count++;
}

struct io_uring_sqe *uring_loop_entry(struct uring_loop *l)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&l->ring);

	if (sqe != NULL)
		return sqe;
	if (uring_loop_flush(l) < 0)
		return NULL;
	return io_uring_get_sqe(&l->ring);
}

static int no_error_of(int err)
{
	/* EBUSY: the completion queue is full; the caller empties it and comes back. */
	if (err == -ETIME || err == -EINTR || err == -EBUSY)
		return 0;
	return err < 0 ? err : 0;
}

int uring_loop_flush(struct uring_loop *l)
{
	l->enters++;
	return no_error_of(io_uring_submit_and_get_events(&l->ring));
}

int uring_loop_wait(struct uring_loop *l, unsigned count, uint64_t timeout_ns)
{
	struct __kernel_timespec limit;
	struct io_uring_cqe *cqe;

	l->enters++;
	if (timeout_ns == UINT64_MAX)
		return no_error_of(io_uring_submit_and_wait(&l->ring, count));
	limit.tv_sec = (long long)(timeout_ns / NS_PER_S);
	limit.tv_nsec = (long long)(timeout_ns % NS_PER_S);
	return no_error_of(io_uring_submit_and_wait_timeout(&l->ring, &cqe, count, &limit, NULL));
}
