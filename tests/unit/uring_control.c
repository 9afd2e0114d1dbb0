/*
 * The control socket: requests that make sense, requests that don't, lines that are too long, a
 * supervisor that doesn't read, and the ends of it all.
 */
#include "tests/unit/uring_net.h"
#include <fcntl.h>
#include <signal.h>

static int supervisor; /* our end */

static bool begin(const char *name)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return false;
	supervisor = pair[0];
	lab_control_fd = pair[1];
	return TAP_OK(start(TOPO_ROLE_FDSW, "fe", 500, 1), "%s: starts", name);
}

static void end(void)
{
	uring_setup_close(&process);
	close(supervisor);
	close(lab_control_fd);
	lab_control_fd = -1;
}

static void say(const char *text)
{
	if (write(supervisor, text, strlen(text)) != (ssize_t)strlen(text))
		printf("# short write\n");
}

/* Turns the process until a line has come, or a good while has passed. */
static const char *hear(void)
{
	static char line[65536];
	size_t size = 0;

	for (unsigned turns = 0; turns < 5000 && size < sizeof(line) - 1; turns++) {
		while (recv(supervisor, line + size, 1, MSG_DONTWAIT) == 1)
			if (line[size++] == '\n') {
				line[size - 1] = '\0';
				return line;
			}
		uring_process_turn(&process);
	}
	line[size] = '\0';
	return line;
}

static bool answers(const char *request, const char *want)
{
	const char *line;

	say(request);
	line = hear();
	if (strcmp(line, want) != 0)
		printf("#   got  %s\n#   want %s\n", line, want);
	return strcmp(line, want) == 0;
}

static const struct {
	const char *name, *request, *want;
} requests[] = {
	{ "no JSON", "hello\n", "{\"id\":null,\"error\":\"the request is no JSON object\"}" },
	{ "half JSON", "{\"id\":1,\n",
		"{\"id\":null,\"error\":\"the request is no JSON object\"}" },
	{ "two on a line", "{\"id\":1,\"op\":\"now\"}{\"id\":2}\n",
		"{\"id\":null,\"error\":\"the request is no JSON object\"}" },
	{ "array", "[1,2]\n", "{\"id\":null,\"error\":\"the request is no JSON object\"}" },
	{ "no id", "{\"op\":\"now\"}\n", "{\"id\":null,\"error\":\"the request has no id\"}" },
	{ "negative id", "{\"id\":-1,\"op\":\"now\"}\n",
		"{\"id\":null,\"error\":\"the request has no id\"}" },
	{ "no op", "{\"id\":7}\n", "{\"id\":7,\"error\":\"unknown op\"}" },
	{ "op of a wrong type", "{\"id\":8,\"op\":[]}\n", "{\"id\":8,\"error\":\"unknown op\"}" },
	{ "unknown query", "{\"id\":9,\"op\":\"view\",\"query\":\"x\"}\n",
		"{\"id\":9,\"error\":\"view: no such query\"}" },
	{ "view", "{\"id\":10,\"op\":\"view\",\"query\":\"port\"}\n", "{\"id\":10,\"result\":[]}" },
	{ "impair without port", "{\"id\":11,\"op\":\"impair\",\"impairment\":{}}\n",
		"{\"id\":11,\"error\":\"impair: no such port\"}" },
	{ "impossible loss",
		"{\"id\":12,\"op\":\"impair\",\"port\":\"p0\",\"impairment\":{\"loss_ppm\":"
		"1000001}}\n",
		"{\"id\":12,\"error\":\"impair: impossible impairment\"}" },
	{ "fractional delay",
		"{\"id\":13,\"op\":\"impair\",\"port\":\"p0\",\"impairment\":{\"delay_ns\":"
		"0.5}}\n",
		"{\"id\":13,\"error\":\"impair: impossible impairment\"}" },
	{ "impair",
		"{\"id\":14,\"op\":\"impair\",\"port\":\"p1\",\"impairment\":"
		"{\"loss_ppm\":5,\"delay_ns\":\"18014398509481985\",\"silent\":true}}\n",
		"{\"id\":14,\"result\":{}}" },
	{ "workload without flows",
		"{\"id\":15,\"op\":\"workload\",\"spec\":{\"kind\":\"write\"}}\n",
		"{\"id\":15,\"error\":\"workload: flows must be pairs of ranks of this "
		"lab\"}" },
	{ "workload beyond the lab",
		"{\"id\":16,\"op\":\"workload\",\"spec\":{\"kind\":\"write\",\"flows\":[[0,"
		"4]]}}\n",
		"{\"id\":16,\"error\":\"workload: flows must be pairs of ranks of this "
		"lab\"}" },
	{ "workload of no kind",
		"{\"id\":17,\"op\":\"workload\",\"spec\":{\"kind\":\"?\",\"flows\":[[0,1]]}"
		"}\n",
		"{\"id\":17,\"error\":\"workload: impossible spec\"}" },
	{ "workload",
		"{\"id\":18,\"op\":\"workload\",\"spec\":{\"kind\":\"udp\",\"flows\":[[2,1]"
		",[0,3]],"
		"\"size_bytes\":100,\"plane\":null,\"dscp\":50,\"stop_at_ns\":77}}\n",
		"{\"id\":18,\"result\":{}}" },
	{ "started", "{\"id\":19,\"op\":\"started\"}\n", "{\"id\":19,\"result\":{}}" },
};

static void test_requests(void)
{
	uint32_t commands;

	if (!begin("requests"))
		return;
	lab.topo.endpoints_count = 4;
	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++)
		TAP_OK(answers(requests[i].request, requests[i].want), "request: %s",
			requests[i].name);
	commands = fake->commands;
	TAP_EQ(commands, 3, "only what made sense reached the node");
	TAP_EQ(fake->impaired.port, 1, "impair: the port");
	TAP_EQ(fake->impaired.impairment.delay_ns, 18014398509481985, "impair: no digit lost");
	TAP_OK(fake->impaired.impairment.silent, "impair: silent");
	TAP_EQ(fake->spec.flows_count, 2, "workload: the flows");
	TAP_EQ(fake->first_flow.source, 0, "workload: sorted");
	TAP_EQ(fake->spec.plane, UINT32_MAX, "workload: all planes");
	TAP_EQ(fake->spec.stop_at.ns, 77, "workload: its end");
	end();
}

/* The next line without its stamps, which must have the instant at_ns (0: any) and a wall time that
 * isn't before since_us. */
static const char *heard(uint64_t at_ns, uint64_t since_us)
{
	static char text[1024];
	const char *line = hear(), *at = strstr(line, ",\"at_ns\":");
	unsigned long long stamp_ns, wall_us;
	int size = 0;

	if (at == NULL ||
		sscanf(at, ",\"at_ns\":%llu,\"wall_us\":%llu%n", &stamp_ns, &wall_us, &size) != 2 ||
		(at_ns > 0 && stamp_ns != at_ns) || wall_us < since_us)
		return line;
	snprintf(text, sizeof(text), "%.*s%s", (int)(at - line), line, at + size);
	return text;
}

static uint64_t unix_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* One event of the node's. */
static void emit(enum dsf_event_kind kind, uint64_t at_ns, uint64_t a, uint64_t b)
{
	uring_news_trace(
		&process, &(struct dsf_event){ .at = { at_ns }, .kind = kind, .a = a, .b = b });
}

static void test_events(void)
{
	uint64_t since_us = unix_us();

	if (!begin("events"))
		return;
	uring_news_started(&process);
	TAP_OK(strcmp(heard(0, since_us), "{\"event\":\"started\"}") == 0, "event: started");
	fake->ready = true;
	TAP_OK(strcmp(heard(0, since_us), "{\"event\":\"ready\",\"ready\":true}") == 0,
		"event: ready");
	fake->ready = false;
	TAP_OK(strcmp(heard(0, since_us), "{\"event\":\"ready\",\"ready\":false}") == 0,
		"event: not ready");
	emit(DSF_EVENT_WORKLOAD_DONE, 5, 1, 2);
	TAP_OK(strcmp(heard(0, since_us), "{\"event\":\"workload_done\"}") == 0,
		"event: workload_done");
	emit(DSF_EVENT_LINK_ISOLATED, 7, 1, 12);
	TAP_OK(strcmp(heard(7, since_us),
		       "{\"event\":\"link_isolated\",\"port\":\"p1\",\"lost\":12}") == 0,
		"event: a link, by its port's name");
	for (unsigned i = 0; i < 100000; i++)
		emit(DSF_EVENT_PORT_UP, 8, 0, 0);
	TAP_OK(process.control.next.size < 1 << 20, "a flood of events is held back");
	TAP_OK(process.news.missed > 90000, "and counted");
	end();
}

/* Destinations in a line, the last one's stamp, however often each of them changed. */
static void test_reachability(void)
{
	uint64_t since_us;

	if (!begin("reachability"))
		return;
	since_us = unix_us();
	for (uint32_t d = 0; d < 70; d++)
		emit(DSF_EVENT_REACH_CHANGED, 10 + d, d, 1);
	emit(DSF_EVENT_REACH_CHANGED, 90, 3, 2);
	TAP_OK(strcmp(heard(90, since_us), "{\"event\":\"reachability\",\"changed\":70,\"lost\":0,"
					   "\"gained\":70,\"reached\":70}") == 0,
		"all that comes at first");
	emit(DSF_EVENT_REACH_CHANGED, 100, 3, 1);
	emit(DSF_EVENT_REACH_CHANGED, 101, 69, 0);
	emit(DSF_EVENT_REACH_CHANGED, 102, 5, 0);
	emit(DSF_EVENT_REACH_CHANGED, 103, 5, 1);
	TAP_OK(strcmp(heard(103, since_us), "{\"event\":\"reachability\",\"changed\":3,\"lost\":1,"
					    "\"gained\":0,\"reached\":69}") == 0,
		"what went and came back wasn't lost");
	process.news.tokens_left = 0;
	process.news.filled_at = uring_clock_wall_ns(); /* no more for now */
	emit(DSF_EVENT_REACH_CHANGED, 110, 1, 0);
	uring_process_turn(&process);
	emit(DSF_EVENT_REACH_CHANGED, 111, 2, 0);
	process.news.tokens_left = 1;
	TAP_OK(strcmp(heard(111, since_us), "{\"event\":\"reachability\",\"changed\":2,\"lost\":2,"
					    "\"gained\":0,\"reached\":67}") == 0,
		"what had to wait is in the next line");
	end();
}

static void test_long_lines(void)
{
	static char line[URING_CONTROL_LINE_MAX];
	size_t sent = 0, total = 3 * (size_t)URING_CONTROL_LINE_MAX;

	if (!begin("long lines"))
		return;
	memset(line, 'x', sizeof(line));
	fcntl(supervisor, F_SETFL, O_NONBLOCK);
	while (sent < total) {
		size_t left = total - sent;
		ssize_t n = write(supervisor, line, left < sizeof(line) ? left : sizeof(line));

		sent += n > 0 ? (size_t)n : 0;
		uring_process_turn(&process);
	}
	TAP_OK(answers("\n", "{\"id\":null,\"error\":\"the request is too long\"}"),
		"a line over the limit is refused once");
	TAP_OK(answers("{\"id\":1,\"op\":\"x\"}\n", "{\"id\":1,\"error\":\"unknown op\"}"),
		"the next line is read");
	TAP_OK(answers("\n\n{\"id\":2,\"op\":\"x\"}\n", "{\"id\":2,\"error\":\"unknown op\"}"),
		"empty lines say nothing");
	end();
}

/* A supervisor that asks and never reads must not make the node grow. */
static void test_back_pressure(void)
{
	static const char request[] = "{\"id\":3,\"op\":\"fidelity\"}\n";
	unsigned asked = 0, answered = 0;
	size_t most = 0;
	char bytes[65536];
	ssize_t n;

	if (!begin("back-pressure"))
		return;
	fcntl(supervisor, F_SETFL, O_NONBLOCK);
	for (unsigned i = 0; i < 30000; i++) {
		/* Whole requests only: a short write would leave half of one. */
		if (write(supervisor, request, sizeof(request) - 1) == sizeof(request) - 1)
			asked++;
		if (i % 16 == 0)
			uring_process_turn(&process);
		if (process.control.next.size > most)
			most = process.control.next.size;
	}
	TAP_OK(asked < 30000, "the socket fills up");
	TAP_OK(most < 16 * URING_CONTROL_BACKLOG, "what waits is bounded (%zu bytes)", most);
	for (unsigned turns = 0; turns < 20000 && answered < asked; turns++) {
		uring_process_turn(&process);
		while ((n = recv(supervisor, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0)
			for (ssize_t i = 0; i < n; i++)
				answered += bytes[i] == '\n';
	}
	TAP_EQ(answered, asked, "every request is answered in the end");
	end();
}

static void test_ends(void)
{
	if (!begin("stop"))
		return;
	TAP_OK(answers("{\"id\":1,\"op\":\"stop\"}\n", "{\"id\":1,\"result\":{}}"),
		"stop is answered");
	TAP_OK(process.stopping, "and stops");
	end();
	if (!begin("end of the socket"))
		return;
	say("{\"id\":1,\"op\":");
	shutdown(supervisor, SHUT_RDWR);
	turn_for_ms(20);
	TAP_OK(process.stopping, "the end of the socket stops it");
	end();
	if (!begin("SIGTERM"))
		return;
	kill(getpid(), SIGTERM);
	turn_for_ms(20);
	TAP_OK(process.stopping, "SIGTERM stops it");
	end();
}

int main(void)
{
	if (!enter_namespace()) {
		TAP_SKIP("needs root to make a network namespace");
		return TAP_DONE();
	}
	make_pairs(2);
	test_requests();
	test_events();
	test_reachability();
	test_long_lines();
	test_back_pressure();
	test_ends();
	return TAP_DONE();
}
