#include "netns/spawn.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "netns/ns.h"

#define EXIT_SPAWN 125

int netns_pidfd_open(pid_t pid)
{
	long fd = syscall(SYS_pidfd_open, pid, 0u);

	return fd < 0 ? -errno : (int)fd;
}

int netns_pidfd_kill(int pidfd, int signal_number)
{
	return syscall(SYS_pidfd_send_signal, pidfd, signal_number, NULL, 0u) < 0 ? -errno : 0;
}

/* Where the kernel looks for the command line: the strings that exec put there. */
static char *title_room;
static size_t title_size;

void netns_spawn_title_room(int argc, char **argv)
{
	char *end = argv[0];

	for (int i = 0; i < argc && argv[i] == end; i++)
		end += strlen(argv[i]) + 1;
	title_room = argv[0];
	title_size = (size_t)(end - argv[0]);
}

void netns_spawn_title(const char *comm, const char *title)
{
	size_t size = strlen(title);

	(void)prctl(PR_SET_NAME, comm, 0L, 0L, 0L);
	if (title_size == 0)
		return;
	if (size > title_size - 1)
		size = title_size - 1;
	memset(title_room, 0, title_size);
	memcpy(title_room, title, size);
}

unsigned long long netns_spawn_start_time(pid_t pid)
{
	char path[32], text[1024], *at;
	unsigned long long start = 0;
	ssize_t size;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	size = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (size <= 0)
		return 0;
	text[size] = '\0';
	at = strrchr(text, ')'); /* a name may contain anything */
	for (int field = 2; at != NULL && field < 22; field++)
		at = strchr(at + 1, ' ');
	if (at != NULL)
		start = strtoull(at, NULL, 10);
	return start;
}

static void close_others(const struct netns_spawn *s)
{
	unsigned first = 3;

	for (unsigned i = 0; i < s->keep_count; i++) {
		unsigned keep = (unsigned)s->keep_fds[i];

		if (keep < first)
			continue;
		if (keep > first)
			(void)close_range(first, keep - 1, 0);
		first = keep + 1;
	}
	(void)close_range(first, ~0u, 0);
}

static int child_enter(const struct netns_spawn *s, pid_t parent)
{
	sigset_t none;
	int null, err;

	if (prctl(PR_SET_PDEATHSIG, (unsigned long)SIGKILL) < 0)
		return -errno;
	if (getppid() != parent) /* it died before we asked */
		_exit(EXIT_SPAWN);
	err = netns_ns_enter(s->ns_fd);
	if (err < 0)
		return err;
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(s->stderr_fd, 2) < 0)
		return -errno;
	close_others(s);
	sigemptyset(&none);
	(void)signal(SIGPIPE, SIG_DFL); /* the only one that the program ignores */
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	netns_spawn_title(s->comm, s->title);
	return 0;
}

pid_t netns_spawn(const struct netns_spawn *s, int *pidfd)
{
	pid_t parent = getpid();
	pid_t pid = fork();
	int err;

	if (pid < 0)
		return -errno;
	if (pid == 0) {
		err = child_enter(s, parent);
		if (err < 0) {
			dprintf(s->stderr_fd, "%s: can't start: %s\n", s->title, strerror(-err));
			_exit(EXIT_SPAWN);
		}
		_exit(s->run(s->user));
	}
	*pidfd = netns_pidfd_open(pid);
	if (*pidfd < 0) {
		err = *pidfd;
		kill(pid, SIGKILL);
		(void)waitpid(pid, NULL, 0);
		return err;
	}
	return pid;
}
