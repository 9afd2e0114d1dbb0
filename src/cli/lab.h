/*
 * lab.h - labs on this machine: where their state is, who runs them, how to talk to them
 *
 * A lab's state is in /run/dsfemu/<lab>/:
 *
 *   lock      held (flock) by the supervisor and its nodes; contains the supervisor's pid
 *   control   the supervisor's Unix stream socket
 *   lab.json  the expanded topology with the lab's time dilation and epoch
 *   pids      "PID START NODE" a line, the supervisor's NODE is "-"
 *   log/      one file per node that said something, and supervisor.log
 *   node/     a folder per external node: its files; its command's working directory
 *
 * Nobody needs any of it to clean up: see netns/netns.h.
 */
#ifndef DSF_CLI_LAB_H
#define DSF_CLI_LAB_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "netns/sweep.h"
#include "topo/model.h"

#define LAB_DIR      "/run/dsfemu"
#define LAB_PATH_MAX 200
#define LAB_LINE_MAX (256u << 20) /* an answer: tables of a very large lab */

struct topo_error;
struct cJSON;

bool lab_name_valid(const char *name);

/* LAB_DIR/<lab>/<file> into path[LAB_PATH_MAX]; returns path. */
char *lab_path(char *path, const char *lab, const char *file);

/* Makes the lab's directory and takes its lock. The descriptor, closed on exec; -EWOULDBLOCK: held
 * by a living lab; -errno. */
int lab_lock(const char *lab);

/* The pid that the lock's holder wrote, 0 when unknown. */
pid_t lab_lock_owner(const char *lab);

/* True while somebody holds the lock. */
bool lab_running(const char *lab);

/* Removes the lab's files; the caller holds the lock (which goes last) and closes it afterwards. */
void lab_remove_files(const char *lab);

/* A stranger's process that lab_clean left alone. */
typedef void (*lab_stranger_fn)(
	void *user, const char *lab, const struct netns_sweep_process *process, const char *ns);

/* Removes what is left of a lab whose lock the caller holds: processes, namespaces, links, files
 * but the lock. With all, strangers' processes inside are ended too. 0 or -errno. */
int lab_clean(const char *lab, bool all, lab_stranger_fn fn, void *user);

struct lab_list {
	char (*names)[TOPO_LAB_NAME_MAX + 1]; /* ascending */
	uint32_t count;
};

/* All labs that run or have left something. 0 or -errno; lab_list_close in any case. */
int lab_list_open(struct lab_list *list);
void lab_list_close(struct lab_list *list);

/* Which lab a command means: wanted, else the environment's DSFEMU_LAB, else the only one there
 * is. 0 with the name in lab; else an exit code, and the reason in text. */
int lab_choose(const char *wanted, char lab[TOPO_LAB_NAME_MAX + 1], char *text, size_t size);

/* A conversation with a lab's supervisor. */
struct lab_client {
	int fd;
	char *bytes;
	size_t start, end, cap;
};

/* 0 or -errno: -ENOENT or -ECONNREFUSED when the lab doesn't run. */
int lab_client_open(struct lab_client *c, const char *lab);
void lab_client_close(struct lab_client *c);

/* Sends one line (text without newline). 0 or -errno. */
int lab_client_send(struct lab_client *c, const char *text);

/* The next line, without newline and zero-terminated, valid until the next call; NULL with *err:
 * -EPIPE the lab has gone, -ETIMEDOUT (time_ms < 0: never), -EINTR a signal came, -errno. */
char *lab_client_receive(struct lab_client *c, int time_ms, size_t *size, int *err);

/* Loads the lab's lab.json. 0 and *topo; else -errno or -DSF_E_* and the reason in text. */
int lab_topology(const char *lab, struct topo **topo, uint64_t *epoch_ns, char *text, size_t size);

/* Reads a whole file into *text (zero-terminated, malloc-ed). 0, -EFBIG or -errno. */
int lab_read_file(const char *path, size_t size_max, char **text, size_t *size);

/* Writes a file so that it has the old content or the whole new one. 0 or -errno. */
int lab_write_file(const char *path, const char *text, size_t size);

/* Raises the soft limit on descriptors to the hard one. */
void lab_raise_limits(void);

#endif
