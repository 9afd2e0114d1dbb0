/*
 * cmd_capture.c - watch a node's ports
 *
 * tcpdump for the terminal, dumpcap for a file: both are started inside the node's namespace and
 * watched through their stderr. Three promises:
 *
 *   live   is said when the tool has opened its sockets and set its filter, which both tools show
 *          by a line of their own (dumpcap "File:", tcpdump "listening on"); every frame from then
 *          on is in the capture.
 *   end    Ctrl-C comes to us alone. The kernel hands frames over in blocks, so the tool is told to
 *          end only when what came before has reached its file.
 *   drops  what the kernel could not hand over is counted by the tool; any makes the command fail.
 *
 * dumpcap runs without the right to open files of other users (it gives up what root may do
 * beyond capturing), so the file is opened here and handed over as its standard output.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "cli/commands.h"
#include "cli/lab_call.h"
#include "cli/log.h"
#include "cli/output.h"
#include "netns/ns.h"
#include "topo/model.h"
#include "view/json.h"

#define ARGUMENTS_MAX  32u /* of a tool, beside "-i NAME" for each interface */
#define INTERFACES_MAX 256u
#define LINE_SIZE      512u
#define FILTER_SIZE    4096u
#define TEXT_SIZE      512u
#define PATH_SIZE      4096u

/* Buffer of the kernel for each interface, MiB. All together stay below the first number. */
#define BUFFER_ALL_MIB 256u
#define BUFFER_MAX_MIB 64u
#define BUFFER_MIN_MIB 4u

/* dumpcap waits up to 250 ms for a block to fill, and its writer as long for its reader. */
#define DRAIN_FILE_MS     700
#define DRAIN_STILL_MS    350 /* the file hasn't grown for so long */
#define DRAIN_MAX_MS      5000
#define DRAIN_TERMINAL_MS 100
#define END_MS            10000 /* for the tool to end once told */
#define TICK_MS           50

enum tool { TOOL_TCPDUMP, TOOL_DUMPCAP };

static const struct tool_facts {
	const char *name;
	const char *live;    /* how the line begins that shows it is capturing */
	const char *package; /* to install */
} tools[] = {
	[TOOL_TCPDUMP] = { "tcpdump", "listening on ", "tcpdump" },
	[TOOL_DUMPCAP] = { "dumpcap", "File: ", "wireshark-common" },
};

struct capture {
	const struct cli_options *options;
	char lab[TOPO_LAB_NAME_MAX + 1];
	char node[TOPO_NODE_NAME_MAX + 1];
	char interfaces[INTERFACES_MAX][IF_NAMESIZE];
	size_t interfaces_count;
	bool all;         /* no interface was named */
	const char *file; /* of -w; NULL: terminal */
	enum tool tool;
	char tool_path[PATH_SIZE];
	int out_fd; /* the tool's stdout */
	pid_t pid;
	int errors_fd; /* the tool's stderr */
	char line[LINE_SIZE];
	size_t line_size;
	bool live, told; /* told: a line of the tool that explains a failure was passed on */
	uint64_t packets, dropped;
};

static volatile sig_atomic_t stop_signals;

static void on_stop(int number)
{
	(void)number;
	stop_signals++;
}

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* The tool in PATH, or where root's tools are, which isn't in every PATH. */
static int find_tool(struct capture *c)
{
	const char *path = getenv("PATH"), *name = tools[c->tool].name;
	char all[PATH_SIZE];

	snprintf(all, sizeof(all), "%s:/usr/sbin:/sbin", path != NULL ? path : "");
	for (char *save, *dir = strtok_r(all, ":", &save); dir != NULL;
		dir = strtok_r(NULL, ":", &save)) {
		int size = snprintf(c->tool_path, sizeof(c->tool_path), "%s/%s", dir, name);

		if (size > 0 && (size_t)size < sizeof(c->tool_path) &&
			access(c->tool_path, X_OK) == 0)
			return CLI_OK;
	}
	log_err("capture: %s is not installed: install the package %s", name,
		tools[c->tool].package);
	return CLI_UNABLE;
}

/* "NODE" or "NODE:IF", checked against the lab. */
static int find_target(struct capture *c, const char *word)
{
	const char *colon = strchr(word, ':');
	size_t size = colon != NULL ? (size_t)(colon - word) : strlen(word);
	char text[TEXT_SIZE];
	struct topo *topo;
	uint64_t epoch_ns;
	bool known;
	int code = lab_call_choose(c->options, NULL, c->lab);

	if (code != CLI_OK)
		return code;
	if (lab_topology(c->lab, &topo, &epoch_ns, text, sizeof(text)) < 0) {
		log_err("capture: %s", text);
		return CLI_FAILED;
	}
	known = size > 0 && size < sizeof(c->node);
	if (known) {
		memcpy(c->node, word, size);
		known = topo_find_node(topo, c->node) != TOPO_NONE;
	}
	topo_free(topo);
	if (!known)
		return cli_wrong(c->options, "no node %.*s in lab %s", (int)size, word, c->lab);
	c->all = colon == NULL;
	if (c->all)
		return CLI_OK;
	if (strlen(colon + 1) == 0 || strlen(colon + 1) >= IF_NAMESIZE)
		return cli_wrong(c->options, "%s: no interface of that name", word);
	strcpy(c->interfaces[c->interfaces_count++], colon + 1);
	return CLI_OK;
}

/* Takes this process into the node's namespace for good and finds the interfaces there. */
static int enter(struct capture *c)
{
	char name[NETNS_NS_NAME_MAX + 1];
	struct if_nameindex *list;
	int fd, err;

	snprintf(name, sizeof(name), "%s-%s", c->lab, c->node);
	fd = netns_ns_open(name);
	err = fd < 0 ? fd : netns_ns_enter(fd);
	if (fd >= 0)
		close(fd);
	if (err < 0) {
		log_err("capture: namespace %s: %s", name, log_text(err));
		return err == -EPERM || err == -EACCES ? CLI_UNABLE : CLI_FAILED;
	}
	if (!c->all && if_nametoindex(c->interfaces[0]) == 0)
		return cli_wrong(
			c->options, "node %s has no interface %s", c->node, c->interfaces[0]);
	if (!c->all)
		return CLI_OK;
	list = if_nameindex();
	for (size_t i = 0; list != NULL && list[i].if_index != 0; i++) {
		if (strcmp(list[i].if_name, "lo") != 0 && c->interfaces_count < INTERFACES_MAX)
			strcpy(c->interfaces[c->interfaces_count++], list[i].if_name);
	}
	if (list != NULL)
		if_freenameindex(list);
	if (c->interfaces_count > 0)
		return CLI_OK;
	log_err("capture: node %s has no interfaces", c->node);
	return CLI_FAILED;
}

/* The words behind "--" as one expression. False: too long. */
static bool join_filter(const struct cli_options *o, char filter[FILTER_SIZE])
{
	size_t size = 0;

	filter[0] = '\0';
	for (int i = 0; i < o->rest_count && size < FILTER_SIZE; i++) {
		int added = snprintf(
			filter + size, FILTER_SIZE - size, "%s%s", i > 0 ? " " : "", o->rest[i]);

		size += added > 0 ? (size_t)added : 0;
	}
	return size < FILTER_SIZE;
}

/* The tool's command line; what it points to lives until exec. */
static void make_arguments(
	struct capture *c, const char **argv, const char *filter, char buffer[16])
{
	uint32_t mib = BUFFER_ALL_MIB / (uint32_t)c->interfaces_count;
	size_t count = 0;

	mib = mib > BUFFER_MAX_MIB ? BUFFER_MAX_MIB : mib < BUFFER_MIN_MIB ? BUFFER_MIN_MIB : mib;
	argv[count++] = tools[c->tool].name;
	argv[count++] = "-B";
	argv[count++] = buffer;
	argv[count++] = "-s";
	argv[count++] = "0"; /* whole frames */
	if (c->tool == TOOL_TCPDUMP) {
		snprintf(buffer, 16, "%" PRIu32, mib * 1024);
		argv[count++] = "-n";
		argv[count++] = "-e";
		argv[count++] = "-l";
		argv[count++] = "--immediate-mode";
		argv[count++] = "-i";
		argv[count++] = c->all ? "any" : c->interfaces[0];
		argv[count++] = "--";
		if (filter[0] != '\0')
			argv[count++] = filter;
		return;
	}
	snprintf(buffer, 16, "%" PRIu32, mib);
	argv[count++] = "-q";
	if (filter[0] != '\0') {
		argv[count++] = "-f";
		argv[count++] = filter;
	}
	for (size_t i = 0; i < c->interfaces_count; i++) {
		argv[count++] = "-i";
		argv[count++] = c->interfaces[i];
	}
	argv[count++] = "-w";
	argv[count++] = "-";
}

/* In the child: the tool gets no input, its output and a pipe for its errors. */
__attribute__((noreturn)) static void exec_tool(
	struct capture *c, char *const *argv, int errors_fd, const sigset_t *mask)
{
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	/* Its own group: Ctrl-C is for us, who know when it may end. */
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGINT);
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	signal(SIGHUP, SIG_DFL);
	signal(SIGPIPE, SIG_DFL);
	sigprocmask(SIG_SETMASK, mask, NULL);
	if (null_fd >= 0 && dup2(null_fd, 0) == 0 && dup2(c->out_fd, 1) == 1 &&
		dup2(errors_fd, 2) == 2)
		execv(c->tool_path, argv);
	_exit(127);
}

static int start(struct capture *c, const sigset_t *mask)
{
	const char *argv[ARGUMENTS_MAX + 2 * INTERFACES_MAX] = { NULL };
	static char filter[FILTER_SIZE];
	char buffer[16];
	int pipe_fds[2];

	if (!join_filter(c->options, filter))
		return cli_wrong(c->options, "the filter is longer than %u bytes", FILTER_SIZE);
	make_arguments(c, argv, filter, buffer);
	if (setenv("DSFEMU_LAB", c->lab, 1) < 0 || pipe2(pipe_fds, O_CLOEXEC) < 0) {
		log_err("capture: %s", strerror(errno));
		return CLI_FAILED;
	}
	fflush(NULL);
	c->pid = fork();
	if (c->pid == 0)
		exec_tool(c, (char *const *)argv, pipe_fds[1], mask);
	close(pipe_fds[1]);
	c->errors_fd = pipe_fds[0];
	if (c->pid > 0)
		return CLI_OK;
	log_err("capture: %s: %s", c->tool_path, strerror(errno));
	close(pipe_fds[0]);
	return CLI_FAILED;
}

static void say_live(struct capture *c)
{
	char list[TEXT_SIZE] = "";
	size_t size = 0;

	for (size_t i = 0; i < c->interfaces_count && size < sizeof(list); i++) {
		int added = snprintf(list + size, sizeof(list) - size, "%s%s", i > 0 ? ", " : "",
			c->interfaces[i]);

		size += added > 0 ? (size_t)added : 0;
	}
	c->live = true;
	log_info("capture: live on %s: %s", c->node, list);
}

static bool starts_with(const char *line, const char *start)
{
	return strncmp(line, start, strlen(start)) == 0;
}

/* One line of the tool's stderr: what we know is taken, the rest passed on. */
static void hear_line(struct capture *c, const char *line)
{
	static const char *const noise[] = { "Capturing on ", "tcpdump: verbose output suppressed",
		"tcpdump: data link type ", "tcpdump: WARNING: any: That device doesn't support",
		"tcpdump: listening on " };
	uint64_t received, dropped;
	const char *text;
	int end = 0;

	if (!c->live && starts_with(line, tools[c->tool].live)) {
		say_live(c);
		return;
	}
	for (size_t i = 0; i < sizeof(noise) / sizeof(*noise); i++) {
		if (starts_with(line, noise[i]))
			return;
	}
	if (sscanf(line, "Packets captured: %" SCNu64, &c->packets) == 1)
		return;
	text = starts_with(line, "Packets received/dropped on interface ") ? strrchr(line, '\'')
									   : NULL;
	if (text != NULL && sscanf(text, "': %" SCNu64 "/%" SCNu64, &received, &dropped) == 2) {
		c->dropped += dropped;
		return;
	}
	if (sscanf(line, "%" SCNu64 " packets captured%n", &received, &end) == 1 && end > 0) {
		c->packets = received;
		return;
	}
	if (sscanf(line, "%" SCNu64 " packets received by filter%n", &received, &end) == 1 &&
		end > 0)
		return;
	if (sscanf(line, "%" SCNu64 " packets dropped by %n", &dropped, &end) == 1 && end > 0) {
		c->dropped += dropped;
		return;
	}
	if (line[0] == '\0')
		return;
	log_warn("capture: %s: %s", tools[c->tool].name, line);
	c->told = true;
}

/* What the tool said since the last look. False when it has closed its stderr. */
static bool hear(struct capture *c)
{
	char bytes[LINE_SIZE];
	ssize_t got = read(c->errors_fd, bytes, sizeof(bytes));

	for (ssize_t i = 0; i < got; i++) {
		/* dumpcap shows counts on one line that it writes over. */
		bool end = bytes[i] == '\n' || bytes[i] == '\r';

		if (!end && c->line_size < sizeof(c->line) - 1)
			c->line[c->line_size++] = bytes[i];
		if (!end)
			continue;
		c->line[c->line_size] = '\0';
		c->line_size = 0;
		hear_line(c, c->line);
	}
	return got > 0 || (got < 0 && errno == EINTR);
}

/* Has what came before `since` reached the file? still_since is when it last grew. */
static bool drained(const struct capture *c, int64_t since, int64_t *size, int64_t *still_since)
{
	int64_t now = now_ms();
	struct stat file;

	if (c->tool == TOOL_TCPDUMP)
		return now - since >= DRAIN_TERMINAL_MS;
	if (fstat(c->out_fd, &file) == 0 && file.st_size != *size) {
		*size = file.st_size;
		*still_since = now;
	}
	if (now - since >= DRAIN_MAX_MS)
		return true;
	return now - since >= DRAIN_FILE_MS && now - *still_since >= DRAIN_STILL_MS;
}

/* Runs until the tool has ended. Signals are blocked but while we wait. */
static void watch(struct capture *c, const sigset_t *unblocked)
{
	struct pollfd poller = { .fd = c->errors_fd, .events = POLLIN };
	int64_t stop_at = 0, end_at = 0, size = -1, still_since = 0;

	for (;;) {
		struct timespec tick = { 0, TICK_MS * 1000000 };

		if (ppoll(&poller, 1, &tick, unblocked) > 0 && !hear(c))
			return;
		if (stop_signals > 0 && stop_at == 0)
			stop_at = still_since = now_ms();
		if (stop_at == 0)
			continue;
		/* The second Ctrl-C doesn't wait for the kernel's blocks. */
		if (end_at == 0 && (!c->live || stop_signals > 1 ||
					   drained(c, stop_at, &size, &still_since))) {
			end_at = now_ms();
			kill(c->pid, SIGINT);
		}
		if (end_at != 0 && now_ms() - end_at >= END_MS) {
			log_err("capture: %s doesn't end: killed", tools[c->tool].name);
			kill(c->pid, SIGKILL);
			end_at = now_ms();
		}
	}
}

static int report(struct capture *c, int status)
{
	bool failed = !WIFEXITED(status) || WEXITSTATUS(status) != 0;
	cJSON *o, *names;

	if (!c->live) {
		if (stop_signals == 0 && (!c->told || !failed))
			log_err("capture: %s ended before the capture began", tools[c->tool].name);
		return CLI_FAILED;
	}
	log_info("capture: %" PRIu64 " packets, %" PRIu64 " dropped by the kernel", c->packets,
		c->dropped);
	if (c->dropped > 0)
		log_err("capture: %" PRIu64 " packets are missing: the kernel's buffer was full; "
			"capture fewer ports, or with a filter",
			c->dropped);
	if (failed && WIFEXITED(status))
		log_err("capture: %s failed with code %d", tools[c->tool].name,
			WEXITSTATUS(status));
	else if (failed)
		log_err("capture: %s was ended by signal %d", tools[c->tool].name,
			WTERMSIG(status));
	if (failed || c->dropped > 0)
		return CLI_FAILED;
	if (!c->options->json)
		return CLI_OK;
	o = cJSON_CreateObject();
	names = cJSON_AddArrayToObject(o, "interfaces");
	for (size_t i = 0; i < c->interfaces_count; i++)
		view_json_append(names, cJSON_CreateString(c->interfaces[i]));
	if (names != NULL && view_json_add_text(o, "node", c->node) &&
		view_json_add_text(o, "file", c->file) &&
		view_json_add_u64(o, "packets", c->packets) &&
		view_json_add_u64(o, "kernel_drops", c->dropped))
		return output_json(o);
	cJSON_Delete(o);
	return output_json(NULL);
}

/* Opens what the tool writes to. */
static int open_output(struct capture *c)
{
	c->out_fd = 1;
	if (c->file == NULL || strcmp(c->file, "-") == 0)
		return CLI_OK;
	c->out_fd = open(c->file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (c->out_fd >= 0)
		return CLI_OK;
	log_err("capture: %s: %s", c->file, strerror(errno));
	return CLI_FAILED;
}

static int capture(struct capture *c)
{
	struct sigaction action = { .sa_handler = on_stop };
	sigset_t stops, before;
	int status = 0, code;

	sigemptyset(&stops);
	sigaddset(&stops, SIGINT);
	sigaddset(&stops, SIGTERM);
	sigaddset(&stops, SIGHUP);
	sigprocmask(SIG_BLOCK, &stops, &before);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	code = start(c, &before);
	if (code == CLI_OK) {
		watch(c, &before);
		while (waitpid(c->pid, &status, 0) < 0 && errno == EINTR)
			;
		close(c->errors_fd);
		code = report(c, status);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	return code;
}

static int run(int argc, char **argv, const struct cli_options *options)
{
	static struct capture c;
	int code;

	(void)argc;
	c.options = options;
	c.file = cli_option(options, "w");
	c.tool = c.file != NULL ? TOOL_DUMPCAP : TOOL_TCPDUMP;
	if (options->json && (c.file == NULL || strcmp(c.file, "-") == 0))
		return cli_wrong(options, "--json needs -w FILE: stdout is the capture's");
	code = lab_call_root("capture");
	if (code == CLI_OK)
		code = find_target(&c, argv[0]);
	if (code == CLI_OK)
		code = find_tool(&c);
	if (code == CLI_OK)
		code = enter(&c);
	if (code == CLI_OK)
		code = open_output(&c);
	if (code != CLI_OK)
		return code;
	code = capture(&c);
	if (c.out_fd > 2)
		close(c.out_fd);
	return code;
}

static const struct cli_option capture_options[] = {
	{ "w", "FILE", false, "write pcapng to FILE (-: stdout), by dumpcap" },
	{ NULL, NULL, false, NULL },
};

const struct cli_command cmd_capture = {
	.name = "capture",
	.usage = "NODE[:IF] [-- FILTER]",
	.summary = "watches the frames of a node's ports",
	.help = "Prints frames by tcpdump until Ctrl-C, or writes them to a file by dumpcap. "
		"Without\n"
		"IF all ports of the node are watched. FILTER is a capture filter as in\n"
		"pcap-filter(7). \"live on\" is said on stderr once nothing is missed any more.\n"
		"Packets that the kernel had to drop make the command fail.",
	.options = capture_options,
	.words_min = 1,
	.words_max = 1,
	.takes_rest = true,
	.run = run,
};
