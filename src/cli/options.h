/*
 * options.h - what stands on the command line
 *
 * dsfemu COMMAND [OPTIONS] WORDS: options stand before or after words, also before the command, up
 * to "--". A command is one struct cli_command in its own file; main.c's table lists them all.
 * Parsing checks options and the number of words, so a command's run starts with a right call.
 */
#ifndef DSF_CLI_OPTIONS_H
#define DSF_CLI_OPTIONS_H
#include <stdbool.h>
#include <stddef.h>

/* Exit codes. */
#define CLI_OK     0
#define CLI_FAILED 1 /* failed, or a check did not hold */
#define CLI_USAGE  2 /* wrong use, or a bad file */
#define CLI_UNABLE 3 /* the machine can't */

#define CLI_WORDS_ANY (-1)
#define CLI_GIVEN_MAX 256 /* options on one command line */

struct cli_option {
	const char *name;     /* "format" for --format, "w" for -w */
	const char *argument; /* "FORMAT"; NULL: a flag */
	bool repeats;         /* may be given more than once */
	const char *help;     /* one line */
};

struct cli_options;

struct cli_command {
	const char *name;
	const char *usage;                /* what follows the name, options left out: "FILE" */
	const char *summary;              /* one line, lower case, no full stop */
	const char *help;                 /* more, in lines of at most 80 columns; NULL: nothing */
	const struct cli_option *options; /* ends with a NULL name; NULL: none of its own */
	int words_min, words_max;         /* words after the name; CLI_WORDS_ANY: no limit */
	bool takes_rest;                  /* words behind "--" are kept apart: cli_options.rest */
	/* argv[0..argc-1] are the words after the command's name. Returns the exit code. */
	int (*run)(int argc, char **argv, const struct cli_options *options);
};

struct cli_given {
	const char *name;  /* as in the table */
	const char *value; /* NULL: a flag */
};

struct cli_options {
	const struct cli_command *command;
	bool json;
	bool verbose, quiet;
	const char *lab; /* --lab, else DSFEMU_LAB, else NULL */
	int rest_count;  /* words behind "--"; -1: there was no "--" */
	char **rest;
	struct cli_given given[CLI_GIVEN_MAX]; /* the command's own options, in order */
	int given_count;
};

/* Value of one of the command's own options; NULL when it was not given. */
const char *cli_option(const struct cli_options *o, const char *name);

/* True when a flag (or option) was given. */
bool cli_flag(const struct cli_options *o, const char *name);

/* The n-th value of an option that repeats, from 0; NULL behind the last. */
const char *cli_option_at(const struct cli_options *o, const char *name, int n);

/* What parsing found to do. */
enum cli_action { CLI_RUN, CLI_HELP, CLI_VERSION, CLI_WRONG };

/*
 * Takes the command line apart. commands ends with NULL. CLI_RUN: *o is filled, words[0..*count-1]
 * (room for argc) are the command's words. CLI_HELP: print help of o->command, or of all when that
 * is NULL. CLI_WRONG: the error is printed already.
 */
enum cli_action cli_parse(const struct cli_command *const *commands, int argc, char **argv,
	struct cli_options *o, char **words, int *count);

/* NULL when there is none. */
const struct cli_command *cli_find_command(
	const struct cli_command *const *commands, const char *name);

/* The word of a list (ends with NULL) that a mistyped word is nearest to; NULL: none is near. */
const char *cli_nearest(const char *word, const char *const *list);

/* Help on stdout: of one command, or the list of all. CLI_OK or CLI_FAILED. */
int cli_help(const struct cli_command *const *commands, const struct cli_command *one);

/* Fails a command for wrong use: "dsfemu: COMMAND: ..." and a line that points to help; returns
 * CLI_USAGE. */
int cli_wrong(const struct cli_options *o, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
