#include "netns/sweep.h"
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "netns/link.h"
#include "netns/spawn.h"

#define ENVIRONMENT_BYTES 131072 /* read of a process's environment; ours is near its start */

static int compare_inode(const void *a, const void *b)
{
	const struct netns_sweep_ns *x = a, *y = b;

	return (x->inode > y->inode) - (x->inode < y->inode);
}

static int remember(struct netns_sweep *s, const char *name, uint64_t inode)
{
	struct netns_sweep_ns *item;

	if (s->count == s->size) {
		uint32_t size = s->size == 0 ? 64 : 2 * s->size;
		struct netns_sweep_ns *grown = realloc(s->namespaces, size * sizeof(*grown));

		if (grown == NULL)
			return -ENOMEM;
		s->namespaces = grown;
		s->size = size;
	}
	item = &s->namespaces[s->count++];
	*item = (struct netns_sweep_ns){ .inode = inode };
	snprintf(item->name, sizeof(item->name), "%s", name);
	return 0;
}

/* One name that starts like one of the lab's: ours only if its mark says so. */
static int look_at(struct netns_sweep *s, const char *name, const char *node)
{
	char mark[NETNS_NS_MARK_MAX + 1], want[NETNS_NS_MARK_MAX + 1];
	struct stat status;
	int fd = netns_ns_open(name);
	int err;

	if (fd < 0) {
		if (fd == -ENOENT && netns_ns_is_stump(name, s->lab))
			return remember(s, name, 0);
		return fd == -EMFILE || fd == -ENFILE || fd == -ENOMEM ? fd : 0;
	}
	snprintf(want, sizeof(want), "dsfemu:%s:%s", s->lab, node);
	err = netns_ns_mark(fd, mark);
	if (err == 0 && strcmp(mark, want) == 0)
		err = fstat(fd, &status) < 0 ? -errno : remember(s, name, status.st_ino);
	close(fd);
	return err;
}

static int look_at_all(struct netns_sweep *s, DIR *names)
{
	size_t size = strlen(s->lab);
	struct dirent *entry;
	int err = 0;

	while (err == 0 && (entry = readdir(names)) != NULL)
		if (strncmp(entry->d_name, s->lab, size) == 0 && entry->d_name[size] == '-' &&
			strlen(entry->d_name) <= NETNS_NS_NAME_MAX)
			err = look_at(s, entry->d_name, entry->d_name + size + 1);
	return err;
}

int netns_sweep_open(struct netns_sweep *s, const char *lab)
{
	DIR *names;
	int home, err;

	memset(s, 0, sizeof(*s));
	snprintf(s->lab, sizeof(s->lab), "%s", lab);
	names = opendir(NETNS_NS_DIR);
	if (names == NULL)
		return errno == ENOENT ? 0 : -errno;
	home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	if (home < 0) {
		err = -errno;
		closedir(names);
		return err;
	}
	err = look_at_all(s, names);
	closedir(names);
	if (netns_ns_enter(home) < 0)
		abort(); /* never go on in somebody else's namespace */
	close(home);
	if (s->count > 0)
		qsort(s->namespaces, s->count, sizeof(*s->namespaces), compare_inode);
	return err;
}

void netns_sweep_close(struct netns_sweep *s)
{
	free(s->namespaces);
	memset(s, 0, sizeof(*s));
}

static struct netns_sweep_ns *find_inode(struct netns_sweep *s, uint64_t inode)
{
	struct netns_sweep_ns key = { .inode = inode };

	if (s->count == 0 || inode == 0) /* 0: a stump, or a process that is gone */
		return NULL;
	return bsearch(&key, s->namespaces, s->count, sizeof(key), compare_inode);
}

/* The namespace of a process as /proc shows it, or 0. */
static uint64_t process_inode(pid_t pid)
{
	char path[40], target[64];
	unsigned long long inode = 0;
	ssize_t size;

	snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)pid);
	size = readlink(path, target, sizeof(target) - 1);
	if (size <= 0)
		return 0;
	target[size] = '\0';
	return sscanf(target, "net:[%llu]", &inode) == 1 ? inode : 0;
}

static size_t read_proc(pid_t pid, const char *file, char *text, size_t cap)
{
	char path[40];
	ssize_t got;
	size_t size = 0;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	while (size < cap && (got = read(fd, text + size, cap - size)) > 0)
		size += (size_t)got;
	close(fd);
	return size;
}

static bool has_setting(pid_t pid, const char *want, char *text)
{
	size_t size = read_proc(pid, "environ", text, ENVIRONMENT_BYTES);
	size_t want_size = strlen(want) + 1;

	for (size_t at = 0; at + want_size <= size;) {
		const char *end = memchr(text + at, '\0', size - at);

		if (memcmp(text + at, want, want_size) == 0)
			return true;
		if (end == NULL)
			break;
		at = (size_t)(end - text) + 1;
	}
	return false;
}

static bool process_marked(pid_t pid, const char *lab, char *text)
{
	char want[sizeof("DSFEMU_LAB=") + NETNS_SWEEP_LAB_MAX];

	snprintf(want, sizeof(want), "DSFEMU_LAB=%s", lab);
	return has_setting(pid, want, text);
}

bool netns_sweep_has(pid_t pid, const char *setting)
{
	char *text = malloc(ENVIRONMENT_BYTES);
	bool has = text != NULL && has_setting(pid, setting, text);

	free(text);
	return has;
}

bool netns_sweep_marked(pid_t pid, const char *lab)
{
	char *text = malloc(ENVIRONMENT_BYTES);
	bool marked = text != NULL && process_marked(pid, lab, text);

	free(text);
	return marked;
}

int netns_sweep_processes(struct netns_sweep *s, netns_sweep_fn fn, void *user)
{
	char *text;
	DIR *all;
	struct dirent *entry;

	if (s->count == 0)
		return 0;
	text = malloc(ENVIRONMENT_BYTES);
	all = text != NULL ? opendir("/proc") : NULL;
	if (all == NULL) {
		free(text);
		return text == NULL ? -ENOMEM : -errno;
	}
	while ((entry = readdir(all)) != NULL) {
		struct netns_sweep_process process = { .pid = atoi(entry->d_name) };
		struct netns_sweep_ns *ns;
		size_t size;

		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		ns = find_inode(s, process_inode(process.pid));
		if (ns == NULL)
			continue;
		process.ns = (uint32_t)(ns - s->namespaces);
		process.marked = process_marked(process.pid, s->lab, text);
		size = read_proc(process.pid, "comm", process.comm, sizeof(process.comm) - 1);
		while (size > 0 && (unsigned char)process.comm[size - 1] < ' ')
			process.comm[--size] = '\0';
		fn(user, &process);
	}
	closedir(all);
	free(text);
	return 0;
}

struct stopper {
	struct netns_sweep *sweep;
	struct pollfd *pidfds;
	uint32_t count, size;
	bool all;
	bool more; /* there were more than we could hold descriptors of */
	int err;
	netns_sweep_fn left; /* told once, in the first round */
	void *user;
};

/* pid -> pidfd; the process must still be the one that was looked at. */
static int hold_process(struct stopper *stop, const struct netns_sweep_process *process)
{
	int fd;

	if (stop->count == stop->size) {
		uint32_t size = stop->size == 0 ? 64 : 2 * stop->size;
		struct pollfd *grown = realloc(stop->pidfds, size * sizeof(*grown));

		if (grown == NULL)
			return -ENOMEM;
		stop->pidfds = grown;
		stop->size = size;
	}
	fd = netns_pidfd_open(process->pid);
	if (fd == -EMFILE && stop->count > 0) {
		stop->more = true;
		return 0;
	}
	if (fd < 0)
		return fd == -ESRCH ? 0 : fd;
	if (find_inode(stop->sweep, process_inode(process->pid)) == NULL)
		close(fd);
	else
		stop->pidfds[stop->count++] = (struct pollfd){ .fd = fd, .events = POLLIN };
	return 0;
}

static void stop_one(void *user, const struct netns_sweep_process *process)
{
	struct stopper *stop = user;
	int err = 0;

	if (process->pid == getpid())
		return;
	if (process->marked || stop->all) {
		err = stop->more ? 0 : hold_process(stop, process);
	} else {
		stop->sweep->namespaces[process->ns].held = true;
		if (stop->left != NULL)
			stop->left(stop->user, process);
	}
	if (stop->err == 0)
		stop->err = err;
}

static int64_t clock_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Waits until all have ended or time_ms is over; what has ended is closed and forgotten. */
static void wait_all(struct stopper *stop, int time_ms)
{
	int64_t end = clock_ms() + time_ms;

	while (stop->count > 0) {
		int64_t left = end - clock_ms();
		uint32_t kept = 0;

		if (left < 0 || poll(stop->pidfds, stop->count, (int)left) == 0)
			return;
		for (uint32_t i = 0; i < stop->count; i++) {
			if (stop->pidfds[i].revents != 0)
				close(stop->pidfds[i].fd);
			else
				stop->pidfds[kept++] = stop->pidfds[i];
		}
		stop->count = kept;
	}
}

static int stop_round(struct stopper *stop)
{
	int err = netns_sweep_processes(stop->sweep, stop_one, stop);

	for (uint32_t i = 0; i < stop->count; i++) {
		(void)netns_pidfd_kill(stop->pidfds[i].fd, SIGTERM);
		(void)netns_pidfd_kill(stop->pidfds[i].fd, SIGCONT); /* a frozen one can't hear */
	}
	wait_all(stop, NETNS_SWEEP_STOP_MS);
	for (uint32_t i = 0; i < stop->count; i++)
		(void)netns_pidfd_kill(stop->pidfds[i].fd, SIGKILL);
	wait_all(stop, NETNS_SWEEP_STOP_MS);
	for (uint32_t i = 0; i < stop->count; i++)
		close(stop->pidfds[i].fd);
	if (err == 0)
		err = stop->err;
	if (err == 0 && stop->count > 0)
		err = -ETIMEDOUT;
	stop->count = 0;
	return err;
}

int netns_sweep_stop(struct netns_sweep *s, bool all, netns_sweep_fn fn, void *user)
{
	struct stopper stop = { .sweep = s, .all = all, .left = fn, .user = user };
	int err = stop_round(&stop);

	while (err == 0 && stop.more) {
		stop.more = false;
		stop.left = NULL;
		err = stop_round(&stop);
	}
	free(stop.pidfds);
	return err;
}

static int delete_links(const char *name)
{
	int fd = netns_ns_open(name);
	int nl, err = fd < 0 ? fd : netns_ns_enter(fd);

	if (fd >= 0)
		close(fd);
	if (err < 0)
		return err;
	nl = netns_nl_open();
	if (nl < 0)
		return nl;
	err = netns_link_delete_all(nl);
	close(nl);
	return err;
}

int netns_sweep_delete(struct netns_sweep *s)
{
	int home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	int first = home < 0 ? -errno : 0;

	for (uint32_t i = 0; home >= 0 && i < s->count; i++) {
		int err = s->namespaces[i].held ? delete_links(s->namespaces[i].name) : 0;

		if (first == 0)
			first = err;
	}
	if (home >= 0) {
		if (netns_ns_enter(home) < 0)
			abort(); /* never go on in somebody else's namespace */
		close(home);
	}
	/* In one go: while the kernel removes the first namespace the others queue up, and go
	 * together. */
	for (uint32_t i = 0; i < s->count; i++) {
		int err = netns_ns_unname(s->namespaces[i].name);

		if (first == 0)
			first = err;
	}
	return first;
}

static int compare_labs(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* The lab of a mark dsfemu:<lab>:<node> whose name is <lab>-<node>; false: not ours. */
static bool mark_lab(const char *mark, const char *name, char *lab)
{
	const char *start = mark + strlen("dsfemu:"), *end;
	char want[NETNS_NS_NAME_MAX + 1];
	size_t size;

	if (strncmp(mark, "dsfemu:", strlen("dsfemu:")) != 0)
		return false;
	end = strchr(start, ':');
	size = end != NULL ? (size_t)(end - start) : 0;
	if (size == 0 || size > NETNS_SWEEP_LAB_MAX || strlen(end + 1) > 48)
		return false;
	memcpy(lab, start, size);
	lab[size] = '\0';
	snprintf(want, sizeof(want), "%s-%.48s", lab, end + 1);
	return strcmp(want, name) == 0;
}

int netns_sweep_labs(char (**labs)[NETNS_SWEEP_LAB_MAX + 1], uint32_t *count)
{
	DIR *names = opendir(NETNS_NS_DIR);
	int home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	uint32_t size = 0, kept = 0;
	struct dirent *entry;
	int err = home < 0 ? -errno : 0;

	*labs = NULL;
	*count = 0;
	while (err == 0 && names != NULL && (entry = readdir(names)) != NULL) {
		char mark[NETNS_NS_MARK_MAX + 1], lab[NETNS_SWEEP_LAB_MAX + 1];
		int fd = strchr(entry->d_name, '-') != NULL ? netns_ns_open(entry->d_name) : -1;

		if (fd < 0)
			continue;
		if (netns_ns_mark(fd, mark) == 0 && mark_lab(mark, entry->d_name, lab) &&
			(*count == 0 || strcmp((*labs)[*count - 1], lab) != 0)) {
			if (*count == size) {
				char(*grown)[NETNS_SWEEP_LAB_MAX + 1];

				size = size == 0 ? 16 : 2 * size;
				grown = realloc(*labs, size * sizeof(*grown));
				if (grown == NULL) {
					err = -ENOMEM;
					close(fd);
					break;
				}
				*labs = grown;
			}
			strcpy((*labs)[(*count)++], lab);
		}
		close(fd);
	}
	if (names != NULL)
		closedir(names);
	if (home >= 0) {
		if (netns_ns_enter(home) < 0)
			abort(); /* never go on in somebody else's namespace */
		close(home);
	}
	if (*count > 0)
		qsort(*labs, *count, sizeof(**labs), compare_labs);
	for (uint32_t i = 0; i < *count; i++)
		if (kept == 0 || strcmp((*labs)[kept - 1], (*labs)[i]) != 0)
			memmove((*labs)[kept++], (*labs)[i], sizeof(**labs));
	*count = kept;
	return err;
}
