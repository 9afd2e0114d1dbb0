#include "cli/options.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/log.h"
#include "cli/output.h"

#define NAME_MAX_HERE 64 /* longer words are nearest to nothing */

static const struct cli_option global_options[] = {
	{ "json", NULL, false, "one JSON document on stdout instead of tables" },
	{ "lab", "NAME", false, "which lab (else DSFEMU_LAB, else the only one that runs)" },
	{ "quiet", NULL, false, "errors only on stderr" },
	{ "v", NULL, true, "more on stderr" },
	{ "help", NULL, true, "this text" },
	{ "version", NULL, true, "the version" },
	{ NULL, NULL, false, NULL },
};

static const struct cli_given *find_given(const struct cli_options *o, const char *name, int n)
{
	for (int i = 0; i < o->given_count; i++) {
		if (strcmp(o->given[i].name, name) == 0 && n-- == 0)
			return &o->given[i];
	}
	return NULL;
}

const char *cli_option(const struct cli_options *o, const char *name)
{
	return cli_option_at(o, name, 0);
}

bool cli_flag(const struct cli_options *o, const char *name)
{
	return find_given(o, name, 0) != NULL;
}

const char *cli_option_at(const struct cli_options *o, const char *name, int n)
{
	const struct cli_given *given = find_given(o, name, n);

	return given == NULL ? NULL : given->value;
}

const struct cli_command *cli_find_command(
	const struct cli_command *const *commands, const char *name)
{
	for (; *commands != NULL; commands++) {
		if (strcmp((*commands)->name, name) == 0)
			return *commands;
	}
	return NULL;
}

/* Changes of one character (insert, delete, replace) between two words. */
static int edit_distance(const char *a, const char *b)
{
	int row[NAME_MAX_HERE + 1];
	size_t size = strlen(b);

	for (size_t j = 0; j <= size; j++)
		row[j] = (int)j;
	for (size_t i = 1; a[i - 1] != '\0'; i++) {
		int corner = row[0];

		row[0] = (int)i;
		for (size_t j = 1; j <= size; j++) {
			int replace = corner + (a[i - 1] != b[j - 1]);
			int best = row[j] < row[j - 1] ? row[j] + 1 : row[j - 1] + 1;

			corner = row[j];
			row[j] = best < replace ? best : replace;
		}
	}
	return row[size];
}

const char *cli_nearest(const char *word, const char *const *list)
{
	const char *nearest = NULL;
	int least = strlen(word) <= 3 ? 2 : 3; /* below this */

	for (; *list != NULL; list++) {
		int distance;

		if (strlen(word) > NAME_MAX_HERE || strlen(*list) > NAME_MAX_HERE)
			continue;
		distance = edit_distance(word, *list);
		if (distance < least && distance < (int)strlen(*list)) {
			least = distance;
			nearest = *list;
		}
	}
	return nearest;
}

#define HINTS_MAX 96

static void wrong_command(const struct cli_command *const *commands, const char *word)
{
	const char *names[HINTS_MAX + 1] = { NULL }, *nearest;

	for (int i = 0; commands[i] != NULL && i < HINTS_MAX; i++)
		names[i] = commands[i]->name;
	nearest = cli_nearest(word, names);
	if (nearest != NULL)
		log_err("%s: unknown command: did you mean %s?", word, nearest);
	else
		log_err("%s: unknown command: see dsfemu help", word);
}

static int add_names(const struct cli_option *options, const char **names, int count)
{
	for (; options != NULL && options->name != NULL && count < HINTS_MAX; options++)
		names[count++] = options->name;
	return count;
}

static void wrong_option(const struct cli_command *command, const char *word)
{
	const char *names[HINTS_MAX + 1] = { NULL }, *nearest;
	const char *bare = word + strspn(word, "-");
	int count = add_names(global_options, names, 0);

	if (command != NULL)
		add_names(command->options, names, count);
	nearest = cli_nearest(bare, names);
	if (nearest != NULL)
		log_err("%s: unknown option: did you mean %s%s?", word,
			nearest[1] == '\0' ? "-" : "--", nearest);
	else if (command != NULL)
		log_err("%s: unknown option: see dsfemu help %s", word, command->name);
	else
		log_err("%s: unknown option: see dsfemu help", word);
}

/* The option of a list that name[0..size-1] names; dashes are 1 or 2. */
static const struct cli_option *find_option(
	const struct cli_option *list, const char *name, size_t size, size_t dashes)
{
	for (; list != NULL && list->name != NULL; list++) {
		if (strlen(list->name) == size && memcmp(list->name, name, size) == 0 &&
			(size == 1) == (dashes == 1))
			return list;
	}
	return NULL;
}

static bool take_global(struct cli_options *o, const struct cli_option *option, const char *value,
	enum cli_action *action)
{
	if (strcmp(option->name, "json") == 0)
		o->json = true;
	else if (strcmp(option->name, "lab") == 0)
		o->lab = value;
	else if (strcmp(option->name, "quiet") == 0)
		o->quiet = true;
	else if (strcmp(option->name, "v") == 0)
		o->verbose = true;
	else if (strcmp(option->name, "help") == 0)
		*action = CLI_HELP;
	else if (strcmp(option->name, "version") == 0 && *action != CLI_HELP)
		*action = CLI_VERSION;
	return true;
}

static bool take_own(struct cli_options *o, const struct cli_option *option, const char *value)
{
	if (!option->repeats && cli_flag(o, option->name)) {
		log_err("%s%s: given twice", option->name[1] == '\0' ? "-" : "--", option->name);
		return false;
	}
	if (o->given_count == CLI_GIVEN_MAX) {
		log_err("too many options: at most %d", CLI_GIVEN_MAX);
		return false;
	}
	o->given[o->given_count++] = (struct cli_given){ option->name, value };
	return true;
}

/* One option at argv[*at], with its argument behind '=' or in the next word. */
static bool take_option(
	struct cli_options *o, char **argv, int argc, int *at, enum cli_action *action)
{
	const char *word = argv[*at], *name = word + strspn(word, "-"), *value = NULL;
	size_t dashes = (size_t)(name - word), size = strcspn(name, "=");
	const struct cli_option *option = find_option(global_options, name, size, dashes);
	bool global = option != NULL;

	if (strcmp(word, "-h") == 0) {
		*action = CLI_HELP;
		return true;
	}
	if (!global && o->command != NULL)
		option = find_option(o->command->options, name, size, dashes);
	if (option == NULL) {
		wrong_option(o->command, word);
		return false;
	}
	if (name[size] == '=')
		value = name + size + 1;
	if (option->argument == NULL && value != NULL) {
		log_err("%s: takes no argument", word);
		return false;
	}
	if (option->argument != NULL && value == NULL) {
		if (*at + 1 >= argc) {
			log_err("%s: %s is missing", word, option->argument);
			return false;
		}
		value = argv[++*at];
	}
	return global ? take_global(o, option, value, action) : take_own(o, option, value);
}

static bool words_fit(const struct cli_options *o, int count)
{
	const struct cli_command *c = o->command;
	const char *why = NULL;

	if (count < c->words_min)
		why = "too few words";
	else if (c->words_max != CLI_WORDS_ANY && count > c->words_max)
		why = "too many words";
	else if (o->rest_count > 0 && !c->takes_rest)
		why = "nothing may follow \"--\"";
	if (why == NULL)
		return true;
	log_err("%s: %s: usage: dsfemu %s%s%s", c->name, why, c->name, c->usage[0] ? " " : "",
		c->usage);
	return false;
}

/* The command is the first word; options before it may be global ones only. */
static const char *first_word(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--") == 0)
			return NULL;
		if (argv[i][0] != '-' || argv[i][1] == '\0')
			return argv[i];
		if (strcmp(argv[i], "--lab") == 0)
			i++;
	}
	return NULL;
}

enum cli_action cli_parse(const struct cli_command *const *commands, int argc, char **argv,
	struct cli_options *o, char **words, int *count)
{
	const char *name = first_word(argc, argv);
	enum cli_action action = CLI_RUN;

	*o = (struct cli_options){ .lab = getenv("DSFEMU_LAB"), .rest_count = -1 };
	*count = 0;
	if (name != NULL) {
		o->command = cli_find_command(commands, name);
		if (o->command == NULL) {
			wrong_command(commands, name);
			return CLI_WRONG;
		}
	}
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--") == 0) {
			o->rest_count = argc - i - 1;
			o->rest = argv + i + 1;
			break;
		}
		if (argv[i][0] != '-' || argv[i][1] == '\0')
			words[(*count)++] = argv[i];
		else if (!take_option(o, argv, argc, &i, &action))
			return CLI_WRONG;
	}
	if (o->lab != NULL && o->lab[0] == '\0')
		o->lab = NULL;
	if (action != CLI_RUN)
		return action;
	if (o->command == NULL) {
		log_err("no command: see dsfemu help");
		return CLI_WRONG;
	}
	--*count;
	memmove(words, words + 1, (size_t)*count * sizeof(*words));
	if (o->rest_count > 0 && !o->command->takes_rest &&
		*count + o->rest_count <= argc) { /* "--" ends options: the rest are words */
		memcpy(words + *count, o->rest, (size_t)o->rest_count * sizeof(*words));
		*count += o->rest_count;
		o->rest_count = 0;
	}
	return words_fit(o, *count) ? CLI_RUN : CLI_WRONG;
}

static void add_options(struct output_text *text, const struct cli_option *list)
{
	for (; list != NULL && list->name != NULL; list++) {
		char left[64];

		snprintf(left, sizeof(left), "%s%s%s%s", list->name[1] == '\0' ? "-" : "--",
			list->name, list->argument ? " " : "",
			list->argument ? list->argument : "");
		output_text_add(text, "  %-22s %s\n", left, list->help);
	}
}

int cli_help(const struct cli_command *const *commands, const struct cli_command *one)
{
	struct output_text text = { .failed = false };

	if (one == NULL) {
		output_text_add(&text, "usage: dsfemu COMMAND [OPTIONS] ...\n\ncommands:\n");
		for (; *commands != NULL; commands++)
			output_text_add(
				&text, "  %-12s %s\n", (*commands)->name, (*commands)->summary);
		output_text_add(&text, "\noptions of every command:\n");
		add_options(&text, global_options);
		output_text_add(&text, "\ndsfemu help COMMAND tells more\n");
		return output_text_write(&text);
	}
	output_text_add(&text, "usage: dsfemu %s [OPTIONS]%s%s\n\n%s\n", one->name,
		one->usage[0] ? " " : "", one->usage, one->summary);
	if (one->help != NULL)
		output_text_add(&text, "\n%s\n", one->help);
	if (one->options != NULL) {
		output_text_add(&text, "\noptions:\n");
		add_options(&text, one->options);
	}
	output_text_add(&text, "\noptions of every command:\n");
	add_options(&text, global_options);
	return output_text_write(&text);
}

int cli_wrong(const struct cli_options *o, const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	log_err("%s: %s (see dsfemu help %s)", o->command->name, text, o->command->name);
	return CLI_USAGE;
}
