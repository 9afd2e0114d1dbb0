#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>
#include "cli/commands.h"
#include "cli/lab_call.h"
#include "cli/lab_down.h"
#include "cli/lab_limits.h"
#include "cli/lab_status.h"
#include "cli/log.h"
#include "cli/output.h"
#include "cli/supervisor.h"
#include "cli/topology.h"
#include "cli/units.h"
#include "topo/file.h"

#define TIMEOUT_S     60u
#define TIMEOUT_S_MAX 86400u

struct up {
	const struct cli_options *options;
	char path[PATH_MAX];
	char *text;
	size_t size;
	struct topo *topo;
	struct supervisor_options start;
	char lab[TOPO_LAB_NAME_MAX + 1];
	int64_t began_ms;
	bool progress_shown;
	int signal_number; /* that asked us to stop; 0: none */
};

static int read_topology(struct up *u, const char *word)
{
	struct topo_error error;
	char line[2048];
	int err;

	cli_find_topology(word, u->path, sizeof(u->path));
	err = lab_read_file(u->path, TOPO_TEXT_BYTES_MAX, &u->text, &u->size);
	if (err < 0) {
		log_err("%s: %s", u->path, log_text(err));
		return CLI_USAGE;
	}
	err = topo_load_text(u->text, u->size, u->path, &u->topo, &error);
	if (err == 0)
		return CLI_OK;
	log_err("%s", topo_error_line(&error, line, sizeof(line)));
	return CLI_USAGE;
}

static int read_dilation(struct up *u)
{
	const char *text = cli_option(u->options, "time-dilation");
	char *end;
	unsigned long value;

	if (text == NULL || strcmp(text, "auto") == 0)
		return CLI_OK;
	errno = 0;
	value = strtoul(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || value < 1 ||
		value > TOPO_DILATION_MAX)
		return cli_wrong(u->options, "--time-dilation takes auto or 1 to %d, not %s",
			TOPO_DILATION_MAX, text);
	u->start.time_dilation = (uint32_t)value;
	return CLI_OK;
}

/* Waiting is done by people and machines, so this duration is always wall time. */
static int read_timeout(struct up *u)
{
	const char *text = cli_option(u->options, "timeout");
	char plain[24];
	uint64_t ns;
	bool wall;

	u->start.timeout_s = TIMEOUT_S;
	if (text == NULL)
		return CLI_OK;
	snprintf(plain, sizeof(plain), "%s", text);
	if (strspn(text, "0123456789") == strlen(text))
		snprintf(plain, sizeof(plain), "%.20ss", text);
	if (strlen(text) > 20 || !units_duration(plain, &ns, &wall) || ns < NS_PER_S ||
		ns > TIMEOUT_S_MAX * NS_PER_S)
		return cli_wrong(u->options, "--timeout takes seconds (wall time), 1 to %u, not %s",
			TIMEOUT_S_MAX, text);
	u->start.timeout_s = (uint32_t)((ns + NS_PER_S - 1) / NS_PER_S);
	return CLI_OK;
}

static int read_name(struct up *u)
{
	const char *name = cli_option(u->options, "name");

	if (name != NULL && !lab_name_valid(name))
		return cli_wrong(u->options,
			"--name takes a lower-case letter and up to %d letters, digits and _, not "
			"%s",
			TOPO_LAB_NAME_MAX - 1, name);
	snprintf(u->lab, sizeof(u->lab), "%s", name != NULL ? name : u->topo->name);
	u->start.lab = u->lab;
	return CLI_OK;
}

static int put_text(struct up *u)
{
	int fd = memfd_create("topology", MFD_CLOEXEC);

	if (fd < 0 || write(fd, u->text, u->size) != (ssize_t)u->size) {
		log_err("%s: can't hand it on: %s", u->path, strerror(errno));
		if (fd >= 0)
			close(fd);
		return CLI_FAILED;
	}
	u->start.text_fd = fd;
	return CLI_OK;
}

static int prepare(struct up *u, const char *word)
{
	int code = lab_call_root("up");

	if (code == CLI_OK)
		code = read_topology(u, word);
	if (code == CLI_OK)
		code = cli_check_runs(word, u->topo, true);
	if (code == CLI_OK)
		code = read_name(u);
	if (code == CLI_OK)
		code = read_dilation(u);
	if (code == CLI_OK)
		code = read_timeout(u);
	if (code == CLI_OK)
		code = lab_limits_check(u->topo);
	if (code == CLI_OK)
		code = put_text(u);
	u->start.file = u->path;
	u->start.keep = cli_flag(u->options, "keep");
	return code;
}

static void show_progress(struct up *u, const cJSON *message)
{
	const cJSON *done = cJSON_GetObjectItemCaseSensitive(message, "done");
	const cJSON *total = cJSON_GetObjectItemCaseSensitive(message, "total");

	if (u->options->quiet || !isatty(STDERR_FILENO) || !cJSON_IsNumber(done) ||
		!cJSON_IsNumber(total))
		return;
	fprintf(stderr, "\r\033[Klab %s: %s %.0f of %.0f", u->lab,
		lab_status_text(message, "progress"), done->valuedouble, total->valuedouble);
	fflush(stderr);
	u->progress_shown = true;
}

static void hide_progress(struct up *u)
{
	if (u->progress_shown)
		fputs("\r\033[K", stderr);
	u->progress_shown = false;
}

/* The supervisor's next message; NULL: it has gone. Passes on a signal that comes meanwhile. */
static cJSON *next_message(struct up *u, struct lab_client *c, int signal_fd)
{
	struct pollfd pollers[2] = { { .fd = c->fd, .events = POLLIN },
		{ .fd = signal_fd, .events = POLLIN } };
	struct signalfd_siginfo info;
	size_t size;
	char *line;
	int err;

	for (;;) {
		line = lab_client_receive(c, 0, &size, &err);
		if (line != NULL)
			return cJSON_ParseWithLength(line, size);
		if (err != -ETIMEDOUT)
			return NULL;
		(void)poll(pollers, 2, -1);
		if (pollers[1].revents == 0 || read(signal_fd, &info, sizeof(info)) != sizeof(info))
			continue;
		if (u->signal_number == 0) {
			u->signal_number = (int)info.ssi_signo;
			(void)lab_client_send(c, "stop");
		}
	}
}

/* Routers that aren't ours may be started later; who waits for them is told, and no more. */
static void tell_awaited(const struct up *u, const cJSON *awaited)
{
	const cJSON *row;

	cJSON_ArrayForEach(row, awaited)
	{
		log_warn("lab %s: %s has no BGP session with %s (%s) yet", u->lab,
			lab_status_text(row, "node"), lab_status_text(row, "peer_node"),
			lab_status_text(row, "peer"));
	}
}

/* The last message: {"status","error"?,"missing"?,"awaited"?,"code"}. */
static int finish(struct up *u, cJSON *last)
{
	cJSON *status = cJSON_DetachItemFromObjectCaseSensitive(last, "status");
	cJSON *missing = cJSON_GetObjectItemCaseSensitive(last, "missing");
	cJSON *awaited = cJSON_GetObjectItemCaseSensitive(last, "awaited");
	const cJSON *code_item = cJSON_GetObjectItemCaseSensitive(last, "code");
	const char *error = lab_status_text(last, "error");
	int code = cJSON_IsNumber(code_item) ? code_item->valueint : CLI_FAILED;
	int told = CLI_OK;

	hide_progress(u);
	if (error[0] != '\0') {
		log_err("lab %s: %s", u->lab, error);
		lab_status_tell_missing(missing);
	}
	tell_awaited(u, awaited);
	if (u->options->json && cJSON_IsObject(status)) {
		if (cJSON_GetArraySize(awaited) > 0)
			cJSON_AddItemToObject(
				status, "awaited", cJSON_DetachItemViaPointer(last, awaited));
		if (error[0] != '\0')
			cJSON_AddStringToObject(status, "error", error);
		if (cJSON_IsArray(missing))
			cJSON_AddItemToObject(
				status, "missing", cJSON_DetachItemViaPointer(last, missing));
		told = output_json(status);
	} else {
		if (cJSON_IsObject(status) && error[0] == '\0' && !u->options->quiet)
			told = lab_status_print_line(
				status, (double)(supervisor_clock_ms() - u->began_ms) / 1000);
		cJSON_Delete(status);
	}
	if (told == CLI_OK)
		return code;
	/* A command that fails leaves nothing, whatever it failed at. */
	if (code == CLI_OK) {
		log_err("lab %s: undone, for nobody can be told of it", u->lab);
		(void)lab_down(u->lab, false);
	}
	return CLI_FAILED;
}

/* What the shell expects of a command that a signal ended; and nothing is left. */
static int interrupted(struct up *u)
{
	hide_progress(u);
	(void)lab_down(u->lab, false);
	log_err("lab %s: interrupted, nothing is left", u->lab);
	return 128 + u->signal_number;
}

static int follow(struct up *u, int fd, int signal_fd)
{
	struct lab_client client = { .fd = fd };
	cJSON *message;
	int code = CLI_FAILED;

	while ((message = next_message(u, &client, signal_fd)) != NULL) {
		if (!cJSON_HasObjectItem(message, "progress"))
			break;
		show_progress(u, message);
		cJSON_Delete(message);
	}
	lab_client_close(&client);
	if (u->signal_number != 0) {
		code = interrupted(u);
	} else if (message == NULL) {
		hide_progress(u);
		log_err("lab %s: its supervisor ended without a word: dsfemu down %s removes what "
			"is left",
			u->lab, u->lab);
	} else {
		code = finish(u, message);
	}
	cJSON_Delete(message);
	return code;
}

/* Starts the supervisor and waits for its end of the story. */
static int build(struct up *u)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	sigset_t set;
	int code = CLI_FAILED, fd, signal_fd;
	pid_t pid;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaddset(&set, signals[i]);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (signal_fd < 0) {
		log_err("can't wait for signals: %s", strerror(errno));
		return CLI_FAILED;
	}
	pid = supervisor_start(&u->start, &fd);
	if (pid < 0)
		log_err("can't start the supervisor: %s", strerror((int)-pid));
	else
		code = follow(u, fd, signal_fd);
	close(signal_fd);
	return code;
}

static int run_up(int argc, char **argv, const struct cli_options *options)
{
	struct up *u = calloc(1, sizeof(*u));
	int code;

	(void)argc;
	if (options->lab != NULL && options->lab != getenv("DSFEMU_LAB")) {
		free(u);
		log_err("up: --lab names a lab that is there: name a new one by --name %s",
			options->lab);
		return CLI_USAGE;
	}
	if (u == NULL) {
		log_err("out of memory");
		return CLI_FAILED;
	}
	u->options = options;
	u->start.text_fd = -1;
	u->began_ms = supervisor_clock_ms();
	code = prepare(u, argv[0]);
	if (code == CLI_OK)
		code = build(u);
	if (u->start.text_fd >= 0)
		close(u->start.text_fd);
	topo_free(u->topo);
	free(u->text);
	free(u);
	return code;
}

static const struct cli_option up_options[] = {
	{ "name", "LAB", false, "name of the lab (the file's)" },
	{ "time-dilation", "D", false, "wall seconds of one fabric second, or auto (the file's)" },
	{ "timeout", "S", false, "give up when it isn't ready after S wall seconds (60)" },
	{ "keep", NULL, false, "leave a lab that isn't ready in time for inspection" },
	{ NULL, NULL, false, NULL },
};

const struct cli_command cmd_up = {
	.name = "up",
	.usage = "FILE",
	.summary = "build a lab, start it, wait until it is ready",
	.help = "All or nothing: a failure, Ctrl-C or a time-out undoes everything. A time-out "
		"names\n"
		"what is missing. The lab runs on after the command; dsfemu down ends it.",
	.options = up_options,
	.words_min = 1,
	.words_max = 1,
	.run = run_up,
};
