#include "cli/supervisor.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "cli/json_span.h"
#include "cli/options.h"
#include "topo/file.h"
#include "topo/plan.h"
#include "uring/node_main.h"

#define EVENTS_MAX   64
#define TERM_MS      1500 /* for nodes to end by themselves */
#define KILL_MS      5000 /* for killed nodes to be gone */
#define PROGRESS_MS  50   /* between two progress messages */
#define LAST_WORD_MS 2000 /* for `up` to take the end of the story */
#define TITLE_PADDING                                                                              \
	"........................................................................................" \
	"........................................"

int64_t supervisor_clock_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Start, in `up`'s process. */

static void exec_supervisor(const struct supervisor_options *o, int up_fd)
{
	char dilation[16], timeout[16], up[16], text[16];
	char *arguments[] = { "dsfemu", SUPERVISOR_COMMAND, (char *)o->lab, (char *)o->file,
		dilation, timeout, o->keep ? "keep" : "undo", up, text, TITLE_PADDING, NULL };
	sigset_t none;

	snprintf(dilation, sizeof(dilation), "%" PRIu32, o->time_dilation);
	snprintf(timeout, sizeof(timeout), "%" PRIu32, o->timeout_s);
	snprintf(up, sizeof(up), "%d", up_fd);
	snprintf(text, sizeof(text), "%d", o->text_fd);
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)setsid(); /* Ctrl-C in the terminal is for `up`, which then tells us */
	if (fcntl(up_fd, F_SETFD, 0) == 0 && fcntl(o->text_fd, F_SETFD, 0) == 0 &&
		setenv("DSFEMU_LAB", o->lab, 1) == 0)
		execv("/proc/self/exe", arguments);
	_exit(CLI_UNABLE);
}

pid_t supervisor_start(const struct supervisor_options *options, int *fd)
{
	int ends[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	pid = fork();
	if (pid == 0)
		exec_supervisor(options, ends[1]);
	close(ends[1]);
	if (pid < 0) {
		close(ends[0]);
		return -errno;
	}
	*fd = ends[0];
	return pid;
}

/* The event loop. */

int supervisor_watch(
	struct supervisor *s, int fd, struct supervisor_source *source, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = source };

	return epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

void supervisor_rewatch(
	struct supervisor *s, int fd, struct supervisor_source *source, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = source };

	(void)epoll_ctl(s->epoll_fd, EPOLL_CTL_MOD, fd, &event);
}

void supervisor_fail(struct supervisor *s, int exit_code, const char *format, ...)
{
	va_list arguments;

	if (s->phase == SUPERVISOR_ENDING)
		return;
	s->phase = SUPERVISOR_ENDING;
	s->exit_code = exit_code;
	va_start(arguments, format);
	vsnprintf(s->failure, sizeof(s->failure), format, arguments);
	va_end(arguments);
	supervisor_log(s, "ending: %s", s->failure);
}

/* Talking to `up`. */

static void tell_up(struct supervisor *s, const char *text)
{
	if (s->up.ended)
		return;
	(void)channel_put(&s->up, text, strlen(text));
	(void)channel_put(&s->up, "\n", 1);
	if (channel_send(&s->up) == 0 && channel_sending(&s->up))
		supervisor_rewatch(s, s->up.fd, &s->up_source, EPOLLIN | EPOLLOUT);
}

void supervisor_progress(struct supervisor *s, const char *what, uint32_t done, uint32_t total)
{
	static int64_t next_ms;
	int64_t now = supervisor_clock_ms();
	char text[128];

	/* Whoever doesn't read its progress (stopped in the shell) must not grow a queue. */
	if (now < next_ms || channel_sending(&s->up))
		return;
	next_ms = now + PROGRESS_MS;
	snprintf(text, sizeof(text),
		"{\"progress\":\"%s\",\"done\":%" PRIu32 ",\"total\":%" PRIu32 "}", what, done,
		total);
	tell_up(s, text);
}

/* The end of the story for `up`, taken over; the connection closes once it is sent. */
void supervisor_tell_last(struct supervisor *s, cJSON *object)
{
	char *text = object != NULL ? cJSON_PrintUnformatted(object) : NULL;

	cJSON_Delete(object);
	if (text != NULL)
		tell_up(s, text);
	cJSON_free(text);
	s->up_told = true;
	if (!channel_sending(&s->up))
		channel_close(&s->up);
}

static void hear_up(void *user, uint32_t events)
{
	struct supervisor *s = user;
	size_t size;

	if (s->up.fd < 0)
		return;
	if ((events & EPOLLOUT) != 0 && channel_send(&s->up) == 0 && !channel_sending(&s->up))
		supervisor_rewatch(s, s->up.fd, &s->up_source, EPOLLIN);
	if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0)
		(void)channel_receive(&s->up);
	if (channel_line(&s->up, &size) != NULL && !s->up_told) /* whatever it says, it says stop */
		supervisor_fail(s, CLI_FAILED, "interrupted");
	if ((s->up.eof || s->up.ended) && s->phase < SUPERVISOR_RUNNING)
		supervisor_fail(s, CLI_FAILED, "the command that started the lab has gone");
	if (s->up.eof || s->up.ended || (s->up_told && !channel_sending(&s->up)))
		channel_close(&s->up);
}

static void hear_signal(void *user, uint32_t events)
{
	struct supervisor *s = user;
	struct signalfd_siginfo info;

	(void)events;
	while (read(s->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		supervisor_fail(s, CLI_FAILED, "stopped by signal %" PRIu32, info.ssi_signo);
}

/* Waiting. */

static int time_until(struct supervisor *s, int time_ms)
{
	int64_t now = supervisor_clock_ms(), first = supervisor_jobs_deadline(s);
	int64_t heal = supervisor_heals_deadline(s);

	if (s->phase == SUPERVISOR_RUNNING && heal < first)
		first = heal;
	if (s->phase == SUPERVISOR_STARTING && s->deadline_ms < first)
		first = s->deadline_ms;
	if (first == INT64_MAX)
		return time_ms;
	if (first <= now)
		return 0;
	return time_ms < 0 || first - now < time_ms ? (int)(first - now) : time_ms;
}

bool supervisor_turn(struct supervisor *s, int time_ms)
{
	struct epoll_event events[EVENTS_MAX];
	int count = epoll_wait(s->epoll_fd, events, EVENTS_MAX, time_until(s, time_ms));

	for (int i = 0; i < count; i++) {
		struct supervisor_source *source = events[i].data.ptr;

		source->fn(source->user, events[i].events);
	}
	supervisor_jobs_run(s);
	supervisor_heals_run(s);
	supervisor_ready_look(s);
	supervisor_clients_reap(s);
	return s->phase != SUPERVISOR_ENDING;
}

/* The end. */

static uint32_t processes_left(const struct supervisor *s)
{
	uint32_t left = 0;

	for (uint32_t i = 0; s->nodes != NULL && i < s->topo->nodes_count; i++)
		left += s->nodes[i].pid != 0;
	return left;
}

static void signal_nodes(struct supervisor *s, int signal_number, int64_t wait_ms)
{
	int64_t end = supervisor_clock_ms() + wait_ms;

	for (uint32_t i = 0; s->nodes != NULL && i < s->topo->nodes_count; i++) {
		struct supervisor_node *n = &s->nodes[i];

		n->stop_asked = true;
		supervisor_node_signal(
			n, n->state == SUPERVISOR_NODE_FROZEN ? SIGKILL : signal_number);
	}
	while (processes_left(s) > 0 && supervisor_clock_ms() < end)
		(void)supervisor_turn(s, 10);
}

/* A node closes its sockets faster than the kernel does for a killed one (uring/files.h). */
static void stop_nodes(struct supervisor *s)
{
	signal_nodes(s, SIGTERM, TERM_MS);
	if (processes_left(s) > 0)
		signal_nodes(s, SIGKILL, KILL_MS);
}

static void note_stranger(
	void *user, const char *lab, const struct netns_sweep_process *process, const char *ns)
{
	cJSON *strangers = user, *row = cJSON_CreateObject();

	(void)lab;
	cJSON_AddNumberToObject(row, "pid", process->pid);
	cJSON_AddStringToObject(row, "name", process->comm);
	cJSON_AddStringToObject(row, "netns", ns);
	cJSON_AddItemToArray(strangers, row);
}

/* Ends the lab, whatever there is of it. */
static void end_lab(struct supervisor *s)
{
	cJSON *strangers = cJSON_CreateArray(), *object = cJSON_CreateObject();
	int64_t end;
	int err;

	stop_nodes(s);
	if (!s->up.ended && s->nodes != NULL)
		cJSON_AddItemToObject(object, "status", supervisor_status_failed(s));
	err = lab_clean(s->options.lab, s->kill_all, note_stranger, strangers);
	if (err < 0) {
		size_t size = strlen(s->failure);

		snprintf(s->failure + size, sizeof(s->failure) - size,
			"; and undoing it failed: %s", strerror(-err));
	}
	cJSON_AddStringToObject(object, "error", s->failure);
	cJSON_AddNumberToObject(object, "code", s->exit_code);
	if (s->missing != NULL)
		cJSON_AddItemToObject(object, "missing", s->missing);
	s->missing = NULL;
	end = supervisor_clock_ms() + LAST_WORD_MS;
	supervisor_tell_last(s, object);
	while (s->up.fd >= 0 && supervisor_clock_ms() < end)
		(void)supervisor_turn(s, 10);
	supervisor_clients_end(s, strangers);
	lab_remove_files(s->options.lab);
}

/* The beginning. */

static int open_signals(struct supervisor *s)
{
	static const int signals[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT };
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaddset(&set, signals[i]);
	(void)signal(SIGPIPE, SIG_IGN);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	s->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (s->signal_fd < 0)
		return -errno;
	s->signal_source = (struct supervisor_source){ hear_signal, s };
	return supervisor_watch(s, s->signal_fd, &s->signal_source, EPOLLIN);
}

static int open_loop(struct supervisor *s)
{
	int err;

	s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (s->epoll_fd < 0)
		return -errno;
	err = open_signals(s);
	if (err == 0)
		err = channel_open(&s->up, s->options.up_fd, 4096 * 4, LAB_LINE_MAX);
	s->up_source = (struct supervisor_source){ hear_up, s };
	(void)fcntl(s->options.up_fd, F_SETFD, FD_CLOEXEC);
	return err < 0 ? err : supervisor_watch(s, s->up.fd, &s->up_source, EPOLLIN);
}

/* stderr into our log, so that an assertion's words aren't lost; nothing else of `up`'s. */
static void leave_terminal(struct supervisor *s)
{
	char path[LAB_PATH_MAX];
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int log = open(lab_path(path, s->options.lab, "log/supervisor.log"),
		O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0644);

	if (chdir("/") < 0 || null < 0)
		return;
	for (int fd = 0; fd < 3; fd++)
		(void)dup2(fd == 2 && log >= 0 ? log : null, fd);
	if (null > 2)
		close(null);
	if (log > 2)
		close(log);
}

static int load(struct supervisor *s)
{
	struct topo_error error;
	char path[48], line[1400], *text;
	size_t size;
	int err;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", s->options.text_fd);
	err = lab_read_file(path, TOPO_TEXT_BYTES_MAX, &text, &size);
	if (err < 0) {
		supervisor_fail(s, CLI_FAILED, "%s: %s", s->options.file, strerror(-err));
		return err;
	}
	close(s->options.text_fd);
	err = topo_load_text(text, size, s->options.file, &s->topo, &error);
	free(text);
	if (err < 0) {
		supervisor_fail(s, CLI_USAGE, "%s", topo_error_line(&error, line, sizeof(line)));
		return err;
	}
	snprintf(s->topo->name, sizeof(s->topo->name), "%s", s->options.lab);
	s->sessions = uring_runs_sessions(s->topo);
	if (s->options.time_dilation > 0)
		s->topo->time_dilation = s->options.time_dilation;
	if (s->topo->time_dilation == 0) {
		cpu_set_t cores;
		int count =
			sched_getaffinity(0, sizeof(cores), &cores) == 0 ? CPU_COUNT(&cores) : 1;

		s->topo->time_dilation =
			topo_auto_dilation(s->topo, count > 0 ? (uint32_t)count : 1);
	}
	return 0;
}

/* lab.json: the expanded topology, and when its fabric time began. */
static int write_lab(struct supervisor *s)
{
	char path[LAB_PATH_MAX], *text = topo_print_expanded(s->topo), *brace, *all;
	struct timespec now;
	size_t size;
	int err;

	clock_gettime(CLOCK_MONOTONIC, &now);
	s->epoch_ns = (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
	brace = text != NULL ? strchr(text, '{') : NULL;
	size = brace != NULL ? strlen(brace) + 64 : 0;
	all = brace != NULL ? malloc(size) : NULL;
	if (all == NULL) {
		free(text);
		return -ENOMEM;
	}
	snprintf(all, size, "{\n\"_epoch_ns\": %" PRIu64 ",%s", s->epoch_ns, brace + 1);
	err = lab_write_file(lab_path(path, s->topo->name, "lab.json"), all, strlen(all));
	free(text);
	free(all);
	return err;
}

static int make_tables(struct supervisor *s)
{
	s->nodes = calloc(s->topo->nodes_count + 1, sizeof(*s->nodes));
	s->links = calloc(s->topo->links_count + 1, sizeof(*s->links));
	s->port_up = calloc(s->topo->ports_count + 1, sizeof(*s->port_up));
	if (s->nodes == NULL || s->links == NULL || s->port_up == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->topo->nodes_count; i++) {
		struct supervisor_node *n = &s->nodes[i];
		bool plain = s->topo->nodes[i].role == TOPO_ROLE_EXTERNAL &&
			     !topo_has_command(&s->topo->nodes[i]);

		n->s = s;
		n->index = i;
		n->state = plain ? SUPERVISOR_NODE_EXTERNAL : SUPERVISOR_NODE_NONE;
		n->pidfd = n->control.fd = n->output_fd = n->monitor.fd = n->ns.fd = n->ns.nl = -1;
		n->next_id = 1;
		s->processes_count += plain ? 0 : 1;
	}
	for (uint32_t i = 0; i < s->topo->links_count; i++)
		s->links[i].impairment[0] = s->links[i].impairment[1] =
			node_impairment_own(&s->topo->links[i]);
	netns_batch_init(&s->batch);
	return 0;
}

/* Everything until the nodes run. The lock is ours. */
static void begin(struct supervisor *s)
{
	int err = lab_clean(s->options.lab, false, NULL, NULL); /* what a killed one left */

	if (err < 0)
		supervisor_fail(
			s, CLI_FAILED, "can't remove what an earlier lab left: %s", strerror(-err));
	if (err == 0)
		err = supervisor_log_open(s);
	leave_terminal(s);
	if (err == 0)
		err = supervisor_listen(s);
	if (err == 0)
		err = make_tables(s);
	if (err == 0)
		err = write_lab(s);
	if (err < 0) {
		supervisor_fail(
			s, CLI_FAILED, "%s/%s: %s", LAB_DIR, s->options.lab, strerror(-err));
		return;
	}
	supervisor_log(s, "lab %s, %" PRIu32 " nodes, %" PRIu32 " links, time dilation %" PRIu32,
		s->topo->name, s->topo->nodes_count, s->topo->links_count, s->topo->time_dilation);
	if (supervisor_build(s) < 0)
		return;
	if (s->phase == SUPERVISOR_BUILDING)
		s->phase = SUPERVISOR_STARTING;
	s->deadline_ms = supervisor_clock_ms() + (int64_t)s->options.timeout_s * 1000;
}

static bool take_lock(struct supervisor *s)
{
	char text[512];

	s->lock_fd = lab_lock(s->options.lab);
	if (s->lock_fd >= 0)
		return true;
	if (s->lock_fd == -EWOULDBLOCK)
		snprintf(text, sizeof(text),
			"{\"code\":1,\"error\":\"lab %s is up already: end it by dsfemu down %s, "
			"or give this one another name by --name\"}",
			s->options.lab, s->options.lab);
	else
		snprintf(text, sizeof(text), "{\"code\":3,\"error\":\"%s/%s: %s\"}", LAB_DIR,
			s->options.lab, strerror(-s->lock_fd));
	tell_up(s, text);
	return false;
}

static bool read_arguments(struct supervisor_options *o, int argc, char **argv)
{
	if (argc < 9 || !lab_name_valid(argv[2]))
		return false;
	*o = (struct supervisor_options){ .lab = strdup(argv[2]),
		.file = strdup(argv[3]),
		.time_dilation = (uint32_t)strtoul(argv[4], NULL, 10),
		.timeout_s = (uint32_t)strtoul(argv[5], NULL, 10),
		.keep = strcmp(argv[6], "keep") == 0,
		.up_fd = atoi(argv[7]),
		.text_fd = atoi(argv[8]) };
	return o->lab != NULL && o->file != NULL;
}

/* The kernel would do it too; this shows that nothing else is lost over a lab's life. */
static void release(struct supervisor *s)
{
	for (uint32_t i = 0; s->nodes != NULL && i < s->topo->nodes_count; i++) {
		channel_close(&s->nodes[i].control);
		netns_monitor_close(&s->nodes[i].monitor);
	}
	if (s->nodes != NULL)
		supervisor_jobs_free(s);
	supervisor_heals_free(s);
	channel_close(&s->up);
	cJSON_Delete(s->missing);
	topo_free(s->topo);
	free(s->nodes);
	free(s->links);
	free(s->port_up);
	free((char *)s->options.lab);
	free((char *)s->options.file);
	free(s);
}

/* From the lock to the lab's end. */
static int keep_lab(struct supervisor *s)
{
	if (open_loop(s) < 0)
		return CLI_UNABLE;
	if (!take_lock(s))
		return CLI_FAILED;
	if (load(s) == 0)
		begin(s);
	while (s->phase != SUPERVISOR_ENDING)
		(void)supervisor_turn(s, -1);
	end_lab(s);
	return s->exit_code;
}

int supervisor_main(int argc, char **argv)
{
	struct supervisor *s = calloc(1, sizeof(*s));
	char title[64];
	int code = CLI_USAGE;

	if (s == NULL)
		return CLI_FAILED;
	s->up.fd = -1;
	if (read_arguments(&s->options, argc, argv)) {
		netns_spawn_title_room(argc, argv);
		snprintf(title, sizeof(title), "dsfemu: lab %s", s->options.lab);
		netns_spawn_title("dsfemu", title);
		lab_raise_limits();
		umask(022);
		code = keep_lab(s);
	}
	release(s);
	return code;
}
