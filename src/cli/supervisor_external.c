/*
 * External nodes: folders with the files that the lab file has for them, and their commands.
 *
 * A command isn't ours: it answers no questions, and is ready when it has run for a moment. It
 * stands for all that it starts. When its first process ends, what that left behind ends too: TERM,
 * then KILL. A process is the command's when it is in the node's namespace and has the mark
 * DSFEMU_COMMAND=<node> in its environment, whatever parent, session or user it has; what `exec`
 * and `shell` start there hasn't.
 *
 * The node's ports stay up whatever becomes of its command: the namespace with its kernel is the
 * box, the command its control plane, which may restart while packets are forwarded.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cli/lab_enter.h"
#include "cli/options.h"
#include "cli/supervisor.h"

#define SETTLE_MS   250  /* a command that can't work ends within: up then fails, and says why */
#define END_MS      2000 /* from TERM to KILL */
#define GIVE_UP_MS  5000 /* for killed processes to be gone */
#define LOOK_MS     50   /* until what is left of a command is looked for again */
#define READS_MAX   16   /* at once, so that who talks without end keeps nobody waiting */
#define DESCRIPTORS 1024 /* the usual limit: ours is raised, and FRR makes tables of its size */

static const struct topo_node *node_of(const struct supervisor_node *n)
{
	return &n->s->topo->nodes[n->index];
}

static void folder_of(const struct supervisor_node *n, char *path)
{
	char folder[TOPO_NODE_NAME_MAX + 8];

	snprintf(folder, sizeof(folder), "node/%s", node_of(n)->name);
	lab_path(path, n->s->topo->name, folder);
}

/* Files. */

static int write_files(const struct supervisor_node *n)
{
	const struct topo_external *e = node_of(n)->external;
	char path[LAB_PATH_MAX], file[TOPO_NODE_NAME_MAX + TOPO_FILE_NAME_MAX + 8];
	int err = 0;

	folder_of(n, path);
	if (mkdir(path, 0755) < 0)
		return -errno;
	for (uint32_t i = 0; e != NULL && i < e->files_count && err == 0; i++) {
		snprintf(file, sizeof(file), "node/%s/%s", node_of(n)->name, e->files[i].name);
		err = lab_write_file(lab_path(path, n->s->topo->name, file), e->files[i].text,
			strlen(e->files[i].text));
	}
	return err;
}

int supervisor_external_files(struct supervisor *s)
{
	char path[LAB_PATH_MAX];
	int err = 0;

	for (uint32_t i = 0; i < s->topo->nodes_count && err == 0; i++) {
		if (s->topo->nodes[i].role != TOPO_ROLE_EXTERNAL)
			continue;
		if (mkdir(lab_path(path, s->topo->name, "node"), 0755) < 0 && errno != EEXIST)
			err = -errno;
		if (err == 0)
			err = write_files(&s->nodes[i]);
		if (err < 0)
			supervisor_fail(s, CLI_FAILED, "%s: can't write its files: %s",
				s->topo->nodes[i].name, strerror(-err));
	}
	return err;
}

/* All processes of a command. */

struct aim {
	int signal_number;
	uint32_t found;
	char mark[sizeof("DSFEMU_COMMAND=") + TOPO_NODE_NAME_MAX];
};

static void hit(void *user, const struct netns_sweep_process *process)
{
	struct aim *aim = user;
	int fd;

	if (!process->marked || !netns_sweep_has(process->pid, aim->mark))
		return;
	aim->found++;
	fd = aim->signal_number != 0 ? netns_pidfd_open(process->pid) : -1;
	if (fd < 0)
		return;
	if (netns_sweep_has(process->pid, aim->mark)) /* still the same one */
		(void)netns_pidfd_kill(fd, aim->signal_number);
	close(fd);
}

uint32_t supervisor_external_signal(struct supervisor_node *n, int signal_number)
{
	struct netns_sweep_ns space = { .inode = n->inode };
	struct netns_sweep sweep = { .namespaces = &space, .count = 1 };
	struct aim aim = { .signal_number = signal_number };

	snprintf(sweep.lab, sizeof(sweep.lab), "%s", n->s->topo->name);
	snprintf(aim.mark, sizeof(aim.mark), "DSFEMU_COMMAND=%s", node_of(n)->name);
	if (netns_sweep_processes(&sweep, hit, &aim) < 0)
		supervisor_log(n->s, "%s: can't look for its processes", node_of(n)->name);
	return aim.found;
}

/* The end. */

static bool never(struct supervisor_job *job)
{
	(void)job;
	return false;
}

/* done after time_ms, whatever happens. False: not at all. */
static bool later(struct supervisor_node *n, int time_ms, void (*done)(struct supervisor_job *job))
{
	struct supervisor_job *job = supervisor_job_new(n->s, NULL, NULL, time_ms, done);

	if (job == NULL)
		return false;
	job->node = n->index;
	job->over = never;
	return true;
}

static void look_again(struct supervisor_job *job)
{
	struct supervisor_node *n = &job->s->nodes[job->node];
	int64_t late_ms = supervisor_clock_ms() - n->gone_ms;

	n->leaving = supervisor_external_signal(n, late_ms < 0 ? 0 : SIGKILL) > 0 &&
		     late_ms < GIVE_UP_MS && later(n, LOOK_MS, look_again);
}

void supervisor_external_ended(struct supervisor_node *n)
{
	n->gone_ms = supervisor_clock_ms() + END_MS;
	n->ending = true;
	n->leaving = supervisor_external_signal(n, SIGTERM) > 0 && later(n, LOOK_MS, look_again);
}

static bool has_ended(struct supervisor_job *job)
{
	return job->s->nodes[job->node].pid == 0;
}

static void kill_slow(struct supervisor_job *job)
{
	if (job->expired)
		supervisor_node_signal(&job->s->nodes[job->node], SIGKILL);
}

void supervisor_external_ending(struct supervisor_node *n)
{
	struct supervisor_job *job = supervisor_job_new(n->s, NULL, NULL, END_MS, kill_slow);

	if (job == NULL)
		return;
	job->node = n->index;
	job->over = has_ended;
}

void supervisor_external_why(const struct supervisor_node *n, char *text, size_t size)
{
	snprintf(text, size, "%s %d%s%s", n->exit_code > 128 ? "signal" : "code",
		n->exit_code > 128 ? n->exit_code - 128 : n->exit_code,
		n->last_line[0] != '\0' ? ": " : "", n->last_line);
}

/* What it says. */

static void close_output(struct supervisor_node *n)
{
	if (n->output_fd >= 0)
		close(n->output_fd); /* which takes it out of the epoll */
	n->output_fd = -1;
}

void supervisor_external_hear(struct supervisor_node *n)
{
	char text[4096];
	ssize_t got = -1;

	for (int i = 0; n->output_fd >= 0 && i < READS_MAX; i++) {
		got = read(n->output_fd, text, sizeof(text));
		if (got <= 0)
			break;
		supervisor_log_node(n, text, (size_t)got);
	}
	if (got == 0)
		close_output(n); /* nobody is left who could say something */
}

static void hear(void *user, uint32_t events)
{
	(void)events;
	supervisor_external_hear(user);
}

/* Start. */

static int run_command(void *user)
{
	const struct supervisor_node *n = user;
	const char *const *command = node_of(n)->external->command;
	struct rlimit limit;
	char path[LAB_PATH_MAX];
	int err;

	folder_of(n, path);
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur > DESCRIPTORS) {
		limit.rlim_cur = DESCRIPTORS;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
	}
	if (setsid() < 0 || dup2(2, 1) < 0 || chdir(path) < 0 ||
		setenv("DSFEMU_NODE", node_of(n)->name, 1) < 0 ||
		setenv("DSFEMU_COMMAND", node_of(n)->name, 1) < 0) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		return LAB_ENTER_FAILED;
	}
	lab_enter_sys();
	execvp(command[0], (char *const *)command);
	err = errno;
	fprintf(stderr, "%s: %s%s\n", command[0], strerror(err),
		err == ENOENT ? ": install it, or name its path" : "");
	return err == ENOENT ? LAB_ENTER_MISSING : LAB_ENTER_UNUSABLE;
}

static void settle(struct supervisor_job *job)
{
	struct supervisor_node *n = &job->s->nodes[job->node];

	if (n->pid != 0 && supervisor_clock_ms() >= n->settled_ms)
		supervisor_node_set_ready(n, true);
}

static int open_output(struct supervisor_node *n, int ends[2])
{
	close_output(n);
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	n->output_fd = ends[0];
	n->output_source = (struct supervisor_source){ hear, n };
	if (fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	return supervisor_watch(n->s, ends[0], &n->output_source, EPOLLIN);
}

static pid_t spawn(struct supervisor_node *n, int ns_fd, int output_fd)
{
	char title[NETNS_SPAWN_TITLE_MAX + 1];
	struct netns_spawn spawn = { .ns_fd = ns_fd,
		.stderr_fd = output_fd,
		.comm = "dsfemu",
		.title = title,
		.run = run_command,
		.user = n };

	snprintf(title, sizeof(title), "dsfemu-node %s %s", n->s->topo->name, node_of(n)->name);
	return netns_spawn(&spawn, &n->pidfd);
}

int supervisor_external_spawn(struct supervisor_node *n)
{
	int ends[2] = { -1, -1 }, ns_fd = supervisor_node_namespace(n);
	int err = ns_fd < 0 ? ns_fd : open_output(n, ends);
	pid_t pid = 0;

	if (err == 0) {
		pid = spawn(n, ns_fd, ends[1]);
		err = pid < 0 ? (int)pid : 0;
	}
	if (ns_fd >= 0)
		close(ns_fd);
	if (ends[1] >= 0)
		close(ends[1]);
	if (err == 0)
		err = supervisor_node_adopt(n, pid);
	if (err < 0) {
		close_output(n);
		return err;
	}
	n->started = true;
	n->s->started_count++;
	n->settled_ms = supervisor_clock_ms() + SETTLE_MS;
	if (!later(n, SETTLE_MS, settle))
		supervisor_node_set_ready(n, true);
	return 0;
}
