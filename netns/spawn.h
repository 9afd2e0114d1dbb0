/*
 * spawn.h - a process in a namespace, by fork without exec
 */
#ifndef DSF_NETNS_SPAWN_H
#define DSF_NETNS_SPAWN_H
#include <sys/types.h>

#define NETNS_SPAWN_TITLE_MAX 127
#define NETNS_SPAWN_COMM_MAX  15

struct netns_spawn {
	int ns_fd;
	int stderr_fd;       /* becomes descriptor 2; stdin and stdout are /dev/null */
	const int *keep_fds; /* stay open, with the numbers they have; ascending */
	unsigned keep_count;
	const char *comm;       /* process name, at most NETNS_SPAWN_COMM_MAX characters */
	const char *title;      /* what ps shows as command line */
	int (*run)(void *user); /* its result is the exit code */
	void *user;
};

/*
 * Starts the process; it dies with the calling thread (SIGKILL). Returns its pid, and a pidfd that
 * the caller closes; negative: -errno and no process. In the child an error before run writes
 * a line to stderr_fd and exits with 125. The caller reaps.
 */
pid_t netns_spawn(const struct netns_spawn *spawn, int *pidfd);

/* main's arguments: netns_spawn_title writes over them, so a program that wants titles is started
 * with NETNS_SPAWN_TITLE_MAX bytes of them. */
void netns_spawn_title_room(int argc, char **argv);

/* Sets the calling process's name and, as far as there is room, the command line that ps shows. */
void netns_spawn_title(const char *comm, const char *title);

/* Start time of a process in clock ticks since boot; 0 when there is none. With the pid it names a
 * process for good. */
unsigned long long netns_spawn_start_time(pid_t pid);

int netns_pidfd_open(pid_t pid);
int netns_pidfd_kill(int pidfd, int signal_number);

#endif
