/*
 * sweep.h - what is left of a lab, found by its marks, and its removal
 */
#ifndef DSF_NETNS_SWEEP_H
#define DSF_NETNS_SWEEP_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "netns/ns.h"

#define NETNS_SWEEP_LAB_MAX 32
#define NETNS_SWEEP_STOP_MS 1000 /* between SIGTERM and SIGKILL */

/* No descriptors are held: a sweep must work where the limit on them is low. */
struct netns_sweep_ns {
	char name[NETNS_NS_NAME_MAX + 1];
	uint64_t inode; /* 0: a stump, see netns_ns_is_stump */
	bool held;      /* a stranger's process is inside */
};

struct netns_sweep {
	char lab[NETNS_SWEEP_LAB_MAX + 1];
	struct netns_sweep_ns *namespaces; /* ascending by inode */
	uint32_t count, size;
};

/* A process inside one of the namespaces. */
struct netns_sweep_process {
	pid_t pid;
	uint32_t ns; /* index in namespaces */
	bool marked; /* ours: DSFEMU_LAB is in its environment */
	char comm[17];
};

/* True when DSFEMU_LAB=<lab> is in the environment that the process was started with. */
bool netns_sweep_marked(pid_t pid, const char *lab);

/* The same for any NAME=VALUE. */
bool netns_sweep_has(pid_t pid, const char *setting);

typedef void (*netns_sweep_fn)(void *user, const struct netns_sweep_process *process);

/* Finds what carries the lab's mark. 0 or -errno; netns_sweep_close in any case. */
int netns_sweep_open(struct netns_sweep *s, const char *lab);
void netns_sweep_close(struct netns_sweep *s);

/* Calls fn for every process inside. 0 or -errno. */
int netns_sweep_processes(struct netns_sweep *s, netns_sweep_fn fn, void *user);

/* Ends the marked processes (and with all, every other one inside), SIGTERM first. fn is called
 * for each one that is left alone; may be NULL. 0 or -errno. */
int netns_sweep_stop(struct netns_sweep *s, bool all, netns_sweep_fn fn, void *user);

/* Deletes the links of namespaces that strangers hold (as netns_sweep_stop saw), then takes all
 * names away. 0 or the first -errno; goes on after errors. */
int netns_sweep_delete(struct netns_sweep *s);

/* Names of all labs that have a marked namespace, each once, ascending; *labs and its strings are
 * one malloc-ed block that the caller frees. 0 or -errno. */
int netns_sweep_labs(char (**labs)[NETNS_SWEEP_LAB_MAX + 1], uint32_t *count);

#endif
