/*
 * conform.c - runs cases against one BGP speaker and counts (conform.h has the idea)
 *
 * usage: conform target=ADDRESS [name=NAME] [hook=PROGRAM] [scores=FILE] [limit=MS] [cases=hostile]
 *                [case=WORD]...
 *   name     of the target, for the report
 *   hook     run as PROGRAM WHAT ADDRESS [TEXT] for what only the target's own commands can do
 *   scores   a file to which the result is written as one JSON object
 *   limit    how long what must come has to come
 *   cases    hostile: not what RFCs ask, but neighbours that mean harm
 *   case     only cases with this word in their name or RFC
 *
 * Prints a line a case (TAP: a case that means nothing to the target is skipped) and the score.
 * Exit: 0 all passed or don't apply, 1 some failed, 2 wrong use.
 */
#include <arpa/inet.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/interop/conform.h"

#define WORDS 16u

struct in6_addr conform_target;
uint64_t conform_limit_ms = 10000;
unsigned conform_number;

static const struct conform_case *const conformance[] = { conform_open_cases, conform_state_cases,
	conform_update_cases, conform_route_cases, conform_session_cases, NULL };
static const struct conform_case *const hostile[] = { conform_hostile_cases, NULL };
static const struct conform_case *const *lists = conformance;

static const char *name = "target", *hook, *scores_path;
static const char *words[WORDS];
static unsigned words_count, passed, failed, skipped;
static unsigned restarts, started; /* of the target; when the slow cases were begun */

const char *conform_reason(const char *format, ...)
{
	static char texts[2][512];
	static unsigned turn;
	char *text = texts[turn++ % 2];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(texts[0]), format, arguments);
	va_end(arguments);
	return text;
}

bool conform_hook(const char *what, const struct neighbour *n, const char *text)
{
	char address[INET6_ADDRSTRLEN] = "";
	int status = -1;
	pid_t pid;

	if (hook == NULL)
		return false;
	if (n != NULL)
		inet_ntop(AF_INET6, &n->address, address, sizeof(address));
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		dup2(2, 1); /* it prints among what the report is */
		execl(hook, hook, what, address, text, (char *)NULL);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
		return false;
	restarts += strcmp(what, "restart") == 0;
	return true;
}

static bool is_chosen(const struct conform_case *c)
{
	for (unsigned i = 0; i < words_count; i++) {
		if (strstr(c->name, words[i]) != NULL || strstr(c->rfc, words[i]) != NULL)
			return true;
	}
	return words_count == 0;
}

static const char *run(const struct conform_case *c)
{
	const char *why = peers_observe();

	if (c->start != NULL && restarts != started) /* the target has lost what was begun */
		c->start();
	if (why == NULL)
		why = c->run(c);
	return why == NULL ? peers_wrong() : why;
}

static void judge(const struct conform_case *c, FILE *scores)
{
	const char *why = run(c);
	bool applies = why == NULL || strncmp(why, "n/a", 3) != 0;

	passed += why == NULL;
	skipped += !applies;
	failed += why != NULL && applies;
	printf("%sok %u - RFC %s: %s%s%s\n", why != NULL && applies ? "not " : "", conform_number,
		c->rfc, c->name, applies ? "" : " # SKIP ", applies ? "" : why);
	if (why != NULL && applies)
		printf("#   %s\n", why);
	fflush(stdout);
	fprintf(scores,
		"%s\n{\"number\":%u,\"rfc\":\"%s\",\"case\":\"%s\",\"result\":\"%s\",\"why\":\"%"
		"s\"}",
		conform_number > 1 ? "," : "", conform_number, c->rfc, c->name,
		why == NULL ? "passed"
		: applies   ? "failed"
			    : "not applicable",
		why == NULL ? "" : why);
	peers_end_case();
}

static void read_word(const char *word)
{
	const char *value = strchr(word, '=') == NULL ? "" : strchr(word, '=') + 1;

	if (strncmp(word, "target=", 7) == 0 && inet_pton(AF_INET6, value, &conform_target) == 1)
		return;
	if (strncmp(word, "name=", 5) == 0)
		name = value;
	else if (strncmp(word, "hook=", 5) == 0)
		hook = value;
	else if (strncmp(word, "scores=", 7) == 0)
		scores_path = value;
	else if (strncmp(word, "limit=", 6) == 0)
		conform_limit_ms = strtoull(value, NULL, 10);
	else if (strcmp(word, "cases=hostile") == 0)
		lists = hostile;
	else if (strncmp(word, "case=", 5) == 0 && words_count < WORDS)
		words[words_count++] = value;
	else {
		fprintf(stderr, "conform: %s: unknown word, or wrong\n", word);
		exit(2);
	}
}

/* Calls back for every chosen case, with its number set. */
static unsigned walk(void (*each)(const struct conform_case *c, FILE *file), FILE *file)
{
	conform_number = 0;
	for (unsigned i = 0; lists[i] != NULL; i++) {
		for (const struct conform_case *c = lists[i]; c->name != NULL; c++) {
			if (!is_chosen(c))
				continue;
			conform_number++;
			each(c, file);
		}
	}
	return conform_number;
}

static void start(const struct conform_case *c, FILE *file)
{
	(void)file;
	if (c->start != NULL)
		c->start();
}

int main(int argc, char **argv)
{
	FILE *scores;

	for (int i = 1; i < argc; i++)
		read_word(argv[i]);
	scores = fopen(scores_path == NULL ? "/dev/null" : scores_path, "w");
	if (scores == NULL || IN6_IS_ADDR_UNSPECIFIED(&conform_target)) {
		fprintf(stderr, "usage: conform target=ADDRESS [name=NAME] [hook=PROGRAM] "
				"[scores=FILE] [limit=MS] [cases=hostile] [case=WORD]...\n");
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	peers_init();
	fprintf(scores, "{\"target\":\"%s\",\"cases\":[", name);
	walk(start, NULL);
	started = restarts;
	walk(judge, scores);
	fprintf(scores, "],\n\"passed\":%u,\"failed\":%u,\"not_applicable\":%u}\n", passed, failed,
		skipped);
	fclose(scores);
	peers_free();
	printf("1..%u\n# %s: %u passed, %u failed, %u not applicable\n", conform_number, name,
		passed, failed, skipped);
	return failed > 0;
}
