/*
 * external.c - what an external node runs: its command, and the files that this one finds
 */
#include "topo/draft.h"
#include <stdlib.h>
#include <string.h>

#define NAME_START "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
#define NAME_REST  NAME_START "._-"

static int read_command(
	const struct topo_draft *d, const struct topo_path *node, const struct topo_slot *slot)
{
	struct topo_path path = { .up = node, .item = slot->item, .child = slot->child };
	struct topo_path word = { .up = &path, .item = slot->item->child };

	for (; word.item != NULL; word.item = word.item->next, word.child++) {
		if (!cJSON_IsString(word.item))
			return topo_fail(d->reader, &word, NULL,
				"wrong type: a command's words are strings");
		if (strlen(word.item->valuestring) > TOPO_COMMAND_WORD_MAX)
			return topo_fail(d->reader, &word, NULL,
				"the word is too long: at most %d bytes", TOPO_COMMAND_WORD_MAX);
		if (word.child == 0 && word.item->valuestring[0] == '\0')
			return topo_fail(d->reader, &word, NULL,
				"a command starts with the name of a program");
	}
	return 0;
}

static bool is_comment(const cJSON *file)
{
	return file->string[0] == '_';
}

/* Bytes of a file's text; lines end with a line feed each. */
static size_t text_size(const cJSON *text)
{
	size_t size = 0;

	if (cJSON_IsString(text))
		return strlen(text->valuestring);
	for (const cJSON *line = text->child; line != NULL; line = line->next)
		size += strlen(line->valuestring) + 1;
	return size;
}

static int read_file(const struct topo_draft *d, const struct topo_path *path)
{
	struct topo_path line = { .up = path, .item = path->item->child };
	const char *name = path->item->string;
	struct topo_quote quote;
	size_t size = strlen(name);

	if (size > TOPO_FILE_NAME_MAX || strspn(name, NAME_START) == 0 ||
		strspn(name, NAME_REST) != size)
		return topo_fail(d->reader, path, NULL,
			"bad file name %s: must be 1 to %d of a-z, A-Z, 0-9, '.', '_' and '-', a "
			"letter or digit first",
			topo_quote(&quote, name, size), TOPO_FILE_NAME_MAX);
	if (!cJSON_IsString(path->item) && !cJSON_IsArray(path->item))
		return topo_fail(d->reader, path, NULL,
			"wrong type: a file's text is a string or an array of lines");
	for (; cJSON_IsArray(path->item) && line.item != NULL;
		line.item = line.item->next, line.child++)
		if (!cJSON_IsString(line.item))
			return topo_fail(
				d->reader, &line, NULL, "wrong type: a file's lines are strings");
	if (text_size(path->item) > TOPO_FILE_BYTES_MAX)
		return topo_fail(d->reader, path, NULL, "the file is too long: at most %u bytes",
			TOPO_FILE_BYTES_MAX);
	return 0;
}

static int read_files(
	const struct topo_draft *d, const struct topo_path *node, const struct topo_slot *slot)
{
	struct topo_path path = { .up = node, .item = slot->item, .child = slot->child };
	struct topo_path file = { .up = &path, .item = slot->item->child };
	uint32_t count = 0;
	int err = 0;

	for (; file.item != NULL && err == 0; file.item = file.item->next, file.child++) {
		if (is_comment(file.item))
			continue;
		if (count++ == TOPO_FILES_MAX)
			return topo_fail(d->reader, &file, NULL,
				"too many files: a node has at most %d", TOPO_FILES_MAX);
		err = read_file(d, &file);
	}
	return err;
}

int topo_draft_external(const struct topo_draft *d, const struct topo_path *path,
	const struct topo_slot *slots, struct topo_draft_node *n)
{
	const struct topo_slot *command = &slots[TOPO_NODE_COMMAND], *files;
	int err = 0;

	files = &slots[TOPO_NODE_FILES];
	if (n->node.role != TOPO_ROLE_EXTERNAL && (command->given || files->given))
		return topo_fail(d->reader, path, command->given ? command : files,
			"only external nodes have it: leave it out");
	if (command->given)
		err = read_command(d, path, command);
	if (err == 0 && files->given)
		err = read_files(d, path, files);
	n->command = command->given ? command->item : NULL;
	n->files = files->given ? files->item : NULL;
	return err;
}

/* The place of each part in one block: the structure, words, files, then all strings. */
struct layout {
	uint32_t words, files;
	size_t bytes; /* of strings */
};

static struct layout measure(const struct topo_draft_node *n)
{
	struct layout l = { 0 };

	for (const cJSON *c = n->command != NULL ? n->command->child : NULL; c != NULL;
		c = c->next) {
		l.words++;
		l.bytes += strlen(c->valuestring) + 1;
	}
	for (const cJSON *c = n->files != NULL ? n->files->child : NULL; c != NULL; c = c->next) {
		if (is_comment(c))
			continue;
		l.files++;
		l.bytes += strlen(c->string) + 1 + text_size(c) + 1;
	}
	return l;
}

/* Copies a string to *at, which moves behind it, without its final zero. */
static const char *place(char **at, const char *text)
{
	const char *start = *at;
	size_t size = strlen(text);

	memcpy(*at, text, size);
	*at += size;
	return start;
}

static const char *place_text(char **at, const cJSON *text)
{
	const char *start = *at;

	if (cJSON_IsString(text))
		return place(at, text->valuestring);
	for (const cJSON *line = text->child; line != NULL; line = line->next) {
		place(at, line->valuestring);
		*(*at)++ = '\n';
	}
	return start;
}

struct topo_external *topo_draft_external_make(const struct topo_draft_node *n)
{
	struct layout l = measure(n);
	struct topo_external *e =
		calloc(1, sizeof(*e) + (l.words + 1) * sizeof(char *) +
				  l.files * sizeof(struct topo_node_file) + l.bytes);
	struct topo_node_file *files;
	const char **command;
	char *at;

	if (e == NULL)
		return NULL;
	command = (const char **)(e + 1);
	files = (struct topo_node_file *)(command + l.words + 1);
	at = (char *)(files + l.files);
	for (const cJSON *c = n->command != NULL ? n->command->child : NULL; c != NULL;
		c = c->next, at++)
		*command++ = place(&at, c->valuestring);
	for (const cJSON *c = n->files != NULL ? n->files->child : NULL; c != NULL; c = c->next) {
		if (is_comment(c))
			continue;
		files[e->files_count].name = place(&at, c->string);
		at++; /* zeroes are there */
		files[e->files_count++].text = place_text(&at, c);
		at++;
	}
	e->command = l.words > 0 ? command - l.words : NULL;
	e->files = files;
	return e;
}
