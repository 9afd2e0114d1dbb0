#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "cli/json_span.h"
#include "cli/options.h"
#include "cli/supervisor.h"
#include "uring/node_main.h"

static const struct topo_node *node_of(const struct supervisor_node *n)
{
	return &n->s->topo->nodes[n->index];
}

static bool is_external(const struct supervisor_node *n)
{
	return node_of(n)->role == TOPO_ROLE_EXTERNAL;
}

bool supervisor_node_answers(const struct supervisor_node *n)
{
	return n->state == SUPERVISOR_NODE_ALIVE && !is_external(n);
}

const char *supervisor_node_state_name(const struct supervisor_node *n)
{
	bool external = is_external(n);

	switch (n->state) {
	case SUPERVISOR_NODE_EXTERNAL: return "external";
	case SUPERVISOR_NODE_NONE: return "starting";
	case SUPERVISOR_NODE_ALIVE:
		if (external)
			return n->ready ? "running" : "starting";
		return n->ready ? "ready" : n->was_ready ? "degraded" : "starting";
	case SUPERVISOR_NODE_FROZEN: return "frozen";
	case SUPERVISOR_NODE_STOPPED: return "stopped";
	case SUPERVISOR_NODE_DEAD: return external ? "exited" : "dead";
	}
	return "unknown";
}

/* Namespaces. */

/* The node's namespace by name, but only the one that we made. */
int supervisor_node_namespace(const struct supervisor_node *n)
{
	char name[NETNS_NS_NAME_MAX + 1];
	struct stat status;
	int fd;

	if (n->ns.fd >= 0)
		return fcntl(n->ns.fd, F_DUPFD_CLOEXEC, 3);
	snprintf(name, sizeof(name), "%s-%s", n->s->topo->name, node_of(n)->name);
	fd = netns_ns_open(name);
	if (fd >= 0 && (fstat(fd, &status) < 0 || status.st_ino != n->inode)) {
		close(fd);
		return -ENOENT;
	}
	return fd;
}

struct visit {
	int home, nl;
};

static void leave(struct visit *v)
{
	if (v->nl >= 0)
		close(v->nl);
	if (v->home >= 0 && netns_ns_enter(v->home) < 0)
		abort(); /* never go on in somebody else's namespace */
	if (v->home >= 0)
		close(v->home);
}

/* Goes into the node's namespace with the batch of s; 0, or -errno and we are home. */
static int visit(struct supervisor_node *n, struct visit *v)
{
	int fd = supervisor_node_namespace(n);
	int err;

	*v = (struct visit){ -1, -1 };
	if (fd < 0)
		return fd;
	v->home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	err = v->home < 0 ? -errno : netns_ns_enter(fd);
	close(fd);
	if (err == 0) {
		v->nl = netns_nl_open();
		err = v->nl < 0 ? v->nl : 0;
	}
	if (err < 0) {
		leave(v);
		return err;
	}
	netns_batch_reset(&n->s->batch);
	netns_batch_use(&n->s->batch, v->nl);
	return 0;
}

/* Sends what the visit was for and goes home. */
static int finish_visit(struct supervisor_node *n, struct visit *v)
{
	int err = netns_batch_flush(&n->s->batch);

	if (err < 0)
		supervisor_log(n->s, "%s: %s: %s %s", node_of(n)->name, n->s->batch.error.what,
			strerror(-err), n->s->batch.error.text);
	leave(v);
	return err;
}

/* Ports. */

/* The end of a link that is set down to break it: a switch's, because a host's kernel forgets
 * routes when its own end goes down. */
static uint32_t break_port(const struct topo *t, uint32_t link)
{
	enum topo_role a = t->nodes[t->ports[t->links[link].port_a].node].role;

	return a == TOPO_ROLE_HOST || a == TOPO_ROLE_EXTERNAL ? t->links[link].port_b
							      : t->links[link].port_a;
}

static bool port_wanted(const struct supervisor_node *n, uint32_t port)
{
	uint32_t link = n->s->topo->ports[port].link;

	if ((n->state == SUPERVISOR_NODE_STOPPED || n->state == SUPERVISOR_NODE_DEAD) &&
		!is_external(n))
		return false; /* a dead box has no light */
	return !n->s->links[link].down || break_port(n->s->topo, link) != port;
}

static void set_port(struct supervisor_node *n, uint32_t port)
{
	bool up = port_wanted(n, port);

	netns_link_set(&n->s->batch, SUPERVISOR_IFINDEX_BASE + port, up, port);
	if (up && node_of(n)->role == TOPO_ROLE_HOST)
		supervisor_configure_port(n->s, port, false);
}

int supervisor_node_ports(struct supervisor_node *n)
{
	const struct topo_node *node = node_of(n);
	struct visit v;
	int err = visit(n, &v);

	if (err < 0) {
		supervisor_log(
			n->s, "%s: can't enter its namespace: %s", node->name, strerror(-err));
		return err;
	}
	for (uint32_t i = 0; i < node->ports_count; i++)
		set_port(n, node->first_port + i);
	return finish_visit(n, &v);
}

int supervisor_link_apply(struct supervisor *s, uint32_t link)
{
	uint32_t ports[2] = { s->topo->links[link].port_a, s->topo->links[link].port_b };
	int first = 0;

	for (int i = 0; i < 2; i++) {
		struct supervisor_node *n = &s->nodes[s->topo->ports[ports[i]].node];
		struct visit v;
		int err = visit(n, &v);

		if (err == 0) {
			set_port(n, ports[i]);
			err = finish_visit(n, &v);
		}
		if (first == 0)
			first = err;
	}
	return first;
}

/*
 * Who sets a host's port down and up again by hand takes its routes away: the kernel drops them at
 * "down". So hosts' links are watched, and what a port needs is added again when it comes up.
 */
struct port_news {
	struct supervisor_node *n;
	bool restore;
};

static void hear_port(void *user, const struct netns_link_state *state)
{
	struct port_news *news = user;
	const struct topo_node *node = node_of(news->n);
	uint32_t first = SUPERVISOR_IFINDEX_BASE + node->first_port;
	bool *up;

	if (state->ifindex < first || state->ifindex >= first + node->ports_count)
		return;
	up = &news->n->s->port_up[state->ifindex - SUPERVISOR_IFINDEX_BASE];
	if (state->up && !*up)
		news->restore = true;
	*up = state->up && !state->deleted;
}

static void hear_ports(void *user, uint32_t events)
{
	struct supervisor_node *n = user;
	struct port_news news = { n, false };
	const struct topo_node *node = node_of(n);
	struct visit v;

	(void)events;
	if (netns_monitor_read(&n->monitor, hear_port, &news) < 0)
		netns_monitor_close(&n->monitor); /* out of memory; asked state still works */
	if (!news.restore || visit(n, &v) < 0)
		return;
	for (uint32_t i = 0; i < node->ports_count; i++)
		if (n->s->port_up[node->first_port + i])
			supervisor_configure_port(n->s, node->first_port + i, false);
	(void)finish_visit(n, &v);
}

int supervisor_node_watch_ports(struct supervisor_node *n)
{
	const struct topo_node *node = node_of(n);
	int err = netns_monitor_open(&n->monitor);

	if (err < 0)
		return err;
	for (uint32_t i = 0; i < node->ports_count; i++)
		n->s->port_up[node->first_port + i] = true;
	n->monitor_source = (struct supervisor_source){ hear_ports, n };
	return supervisor_watch(n->s, netns_monitor_fd(&n->monitor), &n->monitor_source, EPOLLIN);
}

/* The process's end. */

void supervisor_node_set_ready(struct supervisor_node *n, bool ready)
{
	if (n->ready == ready)
		return;
	n->ready = ready;
	n->was_ready |= ready;
	n->s->ready_count += ready ? 1u : -1u;
}

static void close_control(struct supervisor_node *n, const char *why)
{
	if (n->control.fd >= 0)
		channel_close(&n->control);
	supervisor_node_requests_fail(n, why);
}

/* `up` has to fail. */
static void fail_up(struct supervisor_node *n)
{
	const char *said = n->last_line[0] != '\0' ? n->last_line : "it said nothing";

	if (is_external(n) && n->exit_code == 0)
		said = "it has to stay in the foreground";
	supervisor_fail(n->s, CLI_FAILED, "%s: its %s ended with %s %d: %s", node_of(n)->name,
		is_external(n) ? "command" : "process", n->exit_code > 128 ? "signal" : "code",
		n->exit_code > 128 ? n->exit_code - 128 : n->exit_code, said);
}

static void tell_end(struct supervisor_node *n)
{
	const char *name = node_of(n)->name;

	if (n->exit_code > 128)
		supervisor_log(n->s, "%s: process %d ended by signal %d", name, (int)n->pid,
			n->exit_code - 128);
	else
		supervisor_log(
			n->s, "%s: process %d ended with code %d", name, (int)n->pid, n->exit_code);
	if (n->s->phase < SUPERVISOR_RUNNING)
		fail_up(n);
	supervisor_event_process(n, n->stop_asked ? "stopped" : "died");
}

static void reap(void *user, uint32_t events)
{
	struct supervisor_node *n = user;
	siginfo_t info = { .si_pid = 0 };

	(void)events;
	if (waitid(P_PIDFD, (id_t)n->pidfd, &info, WEXITED | WNOHANG) < 0 || info.si_pid == 0)
		return;
	n->s->log_source.fn(n->s->log_source.user, EPOLLIN); /* its last words come first */
	supervisor_external_hear(n);
	n->exit_code = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
	close(n->pidfd);
	n->pidfd = -1;
	close_control(n, "its process has ended");
	supervisor_node_set_ready(n, false);
	if (n->started)
		n->s->started_count--;
	n->started = false;
	n->state = n->stop_asked ? SUPERVISOR_NODE_STOPPED : SUPERVISOR_NODE_DEAD;
	tell_end(n);
	n->pid = 0;
	if (n->s->phase == SUPERVISOR_ENDING)
		return;
	if (is_external(n))
		supervisor_external_ended(n);
	else
		(void)supervisor_node_ports(n);
	supervisor_write_pids(n->s);
}

/* What it says. */

/* Other than what a new process starts with. */
static bool impaired_port(const struct supervisor *s, uint32_t port)
{
	uint32_t link = s->topo->ports[port].link;
	struct node_impairment own = node_impairment_own(&s->topo->links[link]);

	return !node_impairment_equal(&s->links[link].impairment[0], &own) ||
	       !node_impairment_equal(&s->links[link].impairment[1], &own);
}

static void hear_event(
	struct supervisor_node *n, const char *line, size_t size, struct json_span event)
{
	if (json_span_is(event, "started") && !n->started) {
		n->started = true;
		n->s->started_count++;
		for (uint32_t i = 0; i < node_of(n)->ports_count; i++)
			if (impaired_port(n->s, node_of(n)->first_port + i))
				supervisor_node_impair(n, node_of(n)->first_port + i);
	} else if (json_span_is(event, "ready")) {
		struct json_span ready = json_span_get(line, size, "ready");

		supervisor_node_set_ready(n, ready.size == 4 && memcmp(ready.at, "true", 4) == 0);
	}
	supervisor_event_relay(n, line);
}

static void hear_line(struct supervisor_node *n, const char *line, size_t size)
{
	struct json_span event, id;
	int64_t number;

	if (!json_span_valid(line, size)) {
		supervisor_log(n->s, "%s: sent a line that isn't JSON", node_of(n)->name);
		return;
	}
	event = json_span_get(line, size, "event");
	id = json_span_get(line, size, "id");
	if (event.at != NULL)
		hear_event(n, line, size, event);
	else if (json_span_integer(id, &number))
		supervisor_node_answer(n, number, line, size);
	else
		supervisor_log(n->s, "%s: sent neither an event nor an answer", node_of(n)->name);
}

static void control(void *user, uint32_t events)
{
	struct supervisor_node *n = user;
	size_t size;
	char *line;
	int err = 0;

	if (n->control.fd < 0)
		return;
	if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0)
		err = channel_receive(&n->control);
	while ((line = channel_line(&n->control, &size)) != NULL)
		hear_line(n, line, size);
	if (err == 0 && (events & EPOLLOUT) != 0) {
		err = channel_send(&n->control);
		if (err == 0 && !channel_sending(&n->control))
			supervisor_rewatch(n->s, n->control.fd, &n->control_source, EPOLLIN);
	}
	if (err == 0)
		return;
	if (err != -EPIPE && err != -ECONNRESET)
		supervisor_log(n->s, "%s: its control connection failed: %s", node_of(n)->name,
			strerror(-err));
	close_control(n, "its control connection has ended");
	/* Usually it is ending anyway; a process that can't be told anything is of no use. */
	supervisor_node_signal(n, SIGKILL);
}

/* Start. */

static int run_node(void *user)
{
	struct supervisor_node *n = user;
	static const struct dsf_ip6 none;
	struct uring_node_config config = { .topo = n->s->topo,
		.index = n->index,
		.epoch_ns = n->s->epoch_ns,
		.drained_ports = supervisor_drain_ports(n),
		.drained = n->drained,
		.sessions = n->s->sessions,
		.starting = n->s->phase < SUPERVISOR_RUNNING,
		.control_fd = n->control.fd };
	int err;

	if (node_of(n)->role != TOPO_ROLE_HOST && !dsf_ip6_equal(&node_of(n)->loopback, &none)) {
		err = netns_ns_ipv6_on(); /* for the host port; the ports stay without */
		if (err < 0) {
			fprintf(stderr, "can't switch IPv6 on: %s\n", strerror(-err));
			return CLI_FAILED;
		}
	}
	return uring_node_main(&config);
}

static pid_t spawn_at(struct supervisor_node *n, int ns_fd, int control_fd)
{
	const char *name = node_of(n)->name;
	size_t name_size = strlen(name);
	char comm[NETNS_SPAWN_COMM_MAX + 1], title[NETNS_SPAWN_TITLE_MAX + 1];
	int keep[2] = { n->s->lock_fd, control_fd };
	struct netns_spawn spawn = { .ns_fd = ns_fd,
		.stderr_fd = n->s->log_fd[1],
		.keep_fds = keep,
		.keep_count = 2,
		.comm = comm,
		.title = title,
		.run = run_node,
		.user = n };
	struct channel parents = n->control;
	pid_t pid = 0;

	/* Of a long name the end tells more. */
	snprintf(comm, sizeof(comm), "%s",
		name + (name_size > NETNS_SPAWN_COMM_MAX ? name_size - NETNS_SPAWN_COMM_MAX : 0));
	snprintf(title, sizeof(title), "dsfemu-node %s %s", n->s->topo->name, name);
	if (keep[0] > keep[1]) {
		keep[0] = control_fd;
		keep[1] = n->s->lock_fd;
	}
	n->control.fd = control_fd; /* as the child shall find it */
	pid = netns_spawn(&spawn, &n->pidfd);
	n->control = parents;
	return pid;
}

static void abandon(struct supervisor_node *n)
{
	(void)netns_pidfd_kill(n->pidfd, SIGKILL);
	(void)waitpid(n->pid, NULL, 0);
	close(n->pidfd);
	n->pidfd = -1;
	n->pid = 0;
}

int supervisor_node_adopt(struct supervisor_node *n, pid_t pid)
{
	int err;

	n->pid = pid;
	n->start_time = netns_spawn_start_time(pid);
	n->state = SUPERVISOR_NODE_ALIVE;
	n->stop_asked = n->was_ready = n->ending = false;
	n->last_line[0] = '\0';
	n->pidfd_source = (struct supervisor_source){ reap, n };
	err = supervisor_watch(n->s, n->pidfd, &n->pidfd_source, EPOLLIN);
	if (err < 0)
		abandon(n);
	return err;
}

int supervisor_node_spawn(struct supervisor_node *n)
{
	int ends[2], ns_fd, err;
	pid_t pid = 0;

	if (is_external(n))
		return supervisor_external_spawn(n);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	ns_fd = supervisor_node_namespace(n);
	err = ns_fd < 0 ? ns_fd
			: channel_open(&n->control, ends[0], SUPERVISOR_ANSWER_BYTES_MAX,
				  SUPERVISOR_REQUEST_BYTES_MAX);
	if (err == 0) {
		pid = spawn_at(n, ns_fd, ends[1]);
		err = pid < 0 ? (int)pid : 0;
	}
	if (ns_fd >= 0)
		close(ns_fd);
	close(ends[1]);
	if (err < 0) {
		close(ends[0]);
		n->control.fd = -1;
		return err;
	}
	n->control_source = (struct supervisor_source){ control, n };
	err = supervisor_node_adopt(n, pid);
	if (err == 0) {
		err = supervisor_watch(n->s, n->control.fd, &n->control_source, EPOLLIN);
		if (err < 0)
			abandon(n);
	}
	if (err < 0)
		channel_close(&n->control);
	return err;
}

int supervisor_node_start(struct supervisor_node *n)
{
	int err;

	n->state = SUPERVISOR_NODE_ALIVE; /* that its ports are to be up */
	err = supervisor_node_ports(n);
	if (err == 0)
		err = supervisor_node_spawn(n);
	if (err < 0) {
		n->state = SUPERVISOR_NODE_DEAD;
		(void)supervisor_node_ports(n);
	}
	supervisor_write_pids(n->s);
	return err;
}

void supervisor_node_signal(struct supervisor_node *n, int signal_number)
{
	if (n->pidfd >= 0)
		(void)netns_pidfd_kill(n->pidfd, signal_number);
	if (n->pidfd >= 0 && is_external(n))
		(void)supervisor_external_signal(n, signal_number);
}

/* Impairments. */

static void impaired(struct supervisor_job *job)
{
	for (uint32_t i = 0; i < job->answers_count; i++)
		if (job->answers[i].failed)
			supervisor_log(job->s, "%s: what was asked of it is not applied: %s",
				job->s->topo->nodes[job->answers[i].node].name,
				job->answers[i].text != NULL ? job->answers[i].text : "no answer");
}

static void ask_impair(struct supervisor_job *job, struct supervisor_node *n, uint32_t port)
{
	char text[SUPERVISOR_IMPAIR_TEXT_MAX];
	int size = supervisor_impair_text(n->s, port, text, sizeof(text));

	supervisor_job_ask(job, n, "impair", text, (size_t)size);
}

void supervisor_node_impair(struct supervisor_node *n, uint32_t port)
{
	struct supervisor_job *job =
		supervisor_job_new(n->s, NULL, NULL, SUPERVISOR_ANSWER_MS, impaired);

	if (job != NULL)
		ask_impair(job, n, port);
}

void supervisor_node_thaw(struct supervisor_node *n)
{
	struct supervisor_job *job;

	supervisor_event_process(n, "thawed");
	supervisor_node_signal(n, SIGCONT);
	n->state = SUPERVISOR_NODE_ALIVE;
	if (is_external(n))
		return;
	job = supervisor_job_new(n->s, NULL, NULL, SUPERVISOR_ANSWER_MS, impaired);
	/* What was asked while it couldn't hear. */
	for (uint32_t i = 0; job != NULL && i < node_of(n)->ports_count; i++)
		ask_impair(job, n, node_of(n)->first_port + i);
	for (uint32_t i = 0; job != NULL && i < node_of(n)->ports_count; i++)
		if (!n->s->topo->ports[node_of(n)->first_port + i].ethernet)
			supervisor_drain_ask_port(job, node_of(n)->first_port + i);
	if (job != NULL && node_of(n)->switch_index != TOPO_NONE)
		supervisor_drain_ask_node(job, n);
}

void supervisor_write_pids(struct supervisor *s)
{
	char path[LAB_PATH_MAX];
	size_t size = 0, cap = (s->topo->nodes_count + 1) * (TOPO_NODE_NAME_MAX + 48u);
	char *text = malloc(cap);
	int err;

	if (text == NULL)
		return;
	size += (size_t)snprintf(text + size, cap - size, "%d %llu -\n", (int)getpid(),
		netns_spawn_start_time(getpid()));
	for (uint32_t i = 0; i < s->topo->nodes_count; i++)
		if (s->nodes[i].pid != 0)
			size += (size_t)snprintf(text + size, cap - size, "%d %llu %s\n",
				(int)s->nodes[i].pid, s->nodes[i].start_time,
				s->topo->nodes[i].name);
	err = lab_write_file(lab_path(path, s->topo->name, "pids"), text, size);
	free(text);
	if (err < 0)
		supervisor_log(s, "%s: %s", path, strerror(-err));
}
