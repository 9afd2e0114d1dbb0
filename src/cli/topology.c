#include "cli/topology.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/bitset.h"
#include "base/err.h"
#include "cli/log.h"
#include "cli/options.h"
#include "topo/file.h"

bool cli_is_file(const char *word)
{
	size_t size = strlen(word);

	return strchr(word, '/') != NULL || (size > 5 && strcmp(word + size - 5, ".json") == 0);
}

/* Folder of the running program; false when the kernel doesn't say. */
static bool program_folder(char *folder, size_t size)
{
	ssize_t got = readlink("/proc/self/exe", folder, size - 1);
	char *slash;

	if (got <= 0)
		return false;
	folder[got] = '\0';
	slash = strrchr(folder, '/');
	if (slash == NULL)
		return false;
	*slash = '\0';
	return true;
}

void cli_find_data(const char *data, const char *word, char *path, size_t size)
{
	char folder[PATH_MAX];
	const char *roots[2] = { program_folder(folder, sizeof(folder)) ? folder : NULL,
		DSF_DATADIR };

	snprintf(path, size, "%s", word);
	if (word[0] == '/' || access(path, F_OK) == 0)
		return;
	for (int i = 0; i < 2; i++) {
		if (roots[i] == NULL)
			continue;
		if (snprintf(path, size, "%s/%s", roots[i], word) < (int)size &&
			access(path, F_OK) == 0)
			return;
		if (snprintf(path, size, "%s/%s/%s", roots[i], data, word) < (int)size &&
			access(path, F_OK) == 0)
			return;
	}
	snprintf(path, size, "%s", word);
}

void cli_find_topology(const char *word, char *path, size_t size)
{
	cli_find_data("topologies", word, path, size);
}

/* The whole file; -errno, or -EFBIG above the limit. The caller frees *text. */
static int read_file(const char *path, char **text, size_t *size)
{
	size_t cap = 1u << 16;
	int fd = open(path, O_RDONLY | O_CLOEXEC), err = 0;

	if (fd < 0)
		return -errno;
	*text = malloc(cap);
	*size = 0;
	while (*text != NULL) {
		ssize_t got = read(fd, *text + *size, cap - *size);
		char *grown;

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			err = -errno;
		if (got <= 0)
			break;
		*size += (size_t)got;
		if (*size < cap)
			continue;
		if (cap > TOPO_TEXT_BYTES_MAX) {
			err = -EFBIG;
			break;
		}
		grown = realloc(*text, cap *= 2);
		if (grown == NULL)
			free(*text);
		*text = grown;
	}
	close(fd);
	if (*text == NULL)
		return -ENOMEM;
	if (err < 0)
		free(*text);
	return err;
}

int cli_load_topology_as(const char *word, const struct topo_choice *choice, struct topo **out)
{
	struct topo_error error;
	char path[PATH_MAX], line[2048];
	char *text = NULL;
	size_t size = 0;
	int err;

	*out = NULL;
	cli_find_topology(word, path, sizeof(path));
	err = read_file(path, &text, &size);
	if (err < 0) {
		log_err("%s: %s", path, log_text(err));
		return err == -ENOMEM ? CLI_FAILED : CLI_USAGE;
	}
	err = topo_load_as(text, size, path, choice, out, &error);
	free(text);
	if (err == 0)
		return CLI_OK;
	log_err("%s", topo_error_line(&error, line, sizeof(line)));
	return err == -DSF_E_NOMEM ? CLI_FAILED : CLI_USAGE;
}

int cli_load_topology(const char *word, struct topo **out)
{
	return cli_load_topology_as(word, NULL, out);
}

static int add_link(const struct topo *t, const char *name, uint64_t *failed)
{
	uint32_t port = topo_find_port(t, name);

	if (port == TOPO_NONE) {
		log_err("--fail: %s: no such link, want NODE:IF of one of its ends", name);
		return CLI_USAGE;
	}
	dsf_bitset_add(failed, t->ports[port].link);
	return CLI_OK;
}

int cli_failed_links(const struct cli_options *options, int words_count, char **words,
	const struct topo *t, uint64_t *failed)
{
	const char *name;
	int code = CLI_OK;

	if (words_count > 0 && cli_option_at(options, "fail", 0) == NULL)
		return cli_wrong(options, "too many words at %s", words[0]);
	for (int i = 0; code == CLI_OK && (name = cli_option_at(options, "fail", i)) != NULL; i++)
		code = add_link(t, name, failed);
	for (int i = 0; code == CLI_OK && i < words_count; i++)
		code = add_link(t, words[i], failed);
	return code;
}

int cli_check_runs(const char *word, const struct topo *t, bool live)
{
	if (t->transport.name != TOPO_TRANSPORT_METAROCE) {
		log_err("%s: transport.name rocev2: this version has metaroce only", word);
		return CLI_USAGE;
	}
	for (uint32_t i = 0; i < t->nodes_count; i++) {
		const struct topo_node *n = &t->nodes[i];

		if (n->role == TOPO_ROLE_EXTERNAL && !live)
			log_warn("%s: %s: an external node says nothing in the simulator", word,
				n->name);
	}
	return CLI_OK;
}
