#include "uring/files.h"
#include <pthread.h>
#include <unistd.h>

#define THREADS_MAX 32u
#define STACK_BYTES (64u << 10)

struct slice {
	const int *fds;
	uint32_t first, count, step;
	pthread_t thread;
};

static void *close_slice(void *user)
{
	const struct slice *s = user;

	for (uint32_t i = s->first; i < s->count; i += s->step)
		if (s->fds[i] >= 0)
			close(s->fds[i]);
	return NULL;
}

void uring_files_close(const int *fds, uint32_t count)
{
	struct slice slices[THREADS_MAX];
	uint32_t threads = count < THREADS_MAX ? count : THREADS_MAX, started = 0;
	pthread_attr_t attributes;

	if (pthread_attr_init(&attributes) == 0) {
		(void)pthread_attr_setstacksize(&attributes, STACK_BYTES);
		for (; started < threads; started++) {
			struct slice *s = &slices[started];

			*s = (struct slice){ fds, started, count, threads, 0 };
			if (pthread_create(&s->thread, &attributes, close_slice, s) != 0)
				break;
		}
		pthread_attr_destroy(&attributes);
	}
	for (uint32_t i = started; i < threads; i++) { /* those that got no thread */
		struct slice s = { fds, i, count, threads, 0 };

		close_slice(&s);
	}
	for (uint32_t i = 0; i < started; i++)
		pthread_join(slices[i].thread, NULL);
}
