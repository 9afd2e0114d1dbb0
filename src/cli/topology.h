/*
 * topology.h - finds, reads and loads the topology file that a word names
 */
#ifndef DSF_CLI_TOPOLOGY_H
#define DSF_CLI_TOPOLOGY_H
#include <stdbool.h>
#include "cli/options.h"
#include "topo/model.h"

/* True when a word that could be a lab's name means a file: it has a '/' or ends with ".json". */
bool cli_is_file(const char *word);

/* Path of the file that word names: as it stands, else beside the program (build root), else under
 * datadir; each also in its topologies/. Into path[size]; word itself when there is none. */
void cli_find_topology(const char *word, char *path, size_t size);

/* The same for another folder of data: "drills". */
void cli_find_data(const char *folder, const char *word, char *path, size_t size);

/* Reads the file that word names and loads it. CLI_OK and *out, which the caller frees by
 * topo_free; else the error is told and the exit code returned. */
int cli_load_topology(const char *word, struct topo **out);

/* The same as another fabric or with another transport (topo/file.h). */
struct topo_choice;
int cli_load_topology_as(const char *word, const struct topo_choice *choice, struct topo **out);

/* Whether this version can run a topology that it can read: CLI_OK, or what it can't do is told
 * (word names the file) and CLI_USAGE returned. A file that asks for another fabric or transport
 * must not run as if it hadn't. That external nodes say
 * nothing in the simulator is told. */
int cli_check_runs(const char *word, const struct topo *t, bool live);

/* Adds the links of --fail LINK ... to a bitset over links: the values of the option, and the words
 * behind the file when there is one. CLI_OK, or CLI_USAGE and what is wrong is told. */
int cli_failed_links(const struct cli_options *options, int words_count, char **words,
	const struct topo *t, uint64_t *failed);

#endif
