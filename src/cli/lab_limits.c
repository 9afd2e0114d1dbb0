#include "cli/lab_limits.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include "cli/lab.h"
#include "cli/log.h"
#include "cli/options.h"
#include "topo/plan.h"

#define CGROUP_ROOT       "/sys/fs/cgroup"
#define SPARE_DESCRIPTORS 128 /* clients, files that are open for a moment */
#define SPARE_PROCESSES   16  /* commands that run beside the lab */
#define COMMAND_PROCESSES 8   /* of an external node: FRR has about so many */

void lab_needs(const struct topo *t, struct lab_needs *needs)
{
	uint64_t hosts = 0, commands = 0, external_ports = 0, ports_max = 0, supervisor;
	struct topo_plan plan;

	for (uint32_t i = 0; i < t->nodes_count; i++) {
		hosts += t->nodes[i].role == TOPO_ROLE_HOST;
		commands += topo_has_command(&t->nodes[i]);
		if (t->nodes[i].role == TOPO_ROLE_EXTERNAL)
			external_ports += t->nodes[i].ports_count;
		if (t->nodes[i].ports_count > ports_max)
			ports_max = t->nodes[i].ports_count;
	}
	topo_plan(t, 1, &plan);
	/* While building: a namespace, its netlink socket; later a control socket and a pidfd. */
	supervisor = 3 * (uint64_t)t->nodes_count + hosts;
	needs->descriptors =
		(supervisor > ports_max + 32 ? supervisor : ports_max + 32) + SPARE_DESCRIPTORS;
	needs->processes = t->nodes_count + commands * COMMAND_PROCESSES + SPARE_PROCESSES;
	needs->namespaces = t->nodes_count;
	needs->neighbors = external_ports;
	needs->memory_bytes = plan.memory_bytes;
}

/* First number in a file; false: no such file, or "max". */
static bool read_number(const char *path, uint64_t *value)
{
	char *text, *end;
	size_t size;
	bool good;

	if (lab_read_file(path, 4096, &text, &size) < 0)
		return false;
	*value = strtoull(text, &end, 10);
	good = end != text;
	free(text);
	return good;
}

static uint64_t left(uint64_t limit, uint64_t used)
{
	return limit > used ? limit - used : 0;
}

/* Room for processes in the cgroup at path and all above it; *at becomes the tightest one. */
static uint64_t pids_free(const char *root, const char *path, char *at, size_t size)
{
	char folder[1024], file[1100];
	uint64_t least = UINT64_MAX;

	snprintf(folder, sizeof(folder), "%s%s", root, path);
	for (;;) {
		uint64_t max, current = 0;
		char *slash = strrchr(folder, '/');

		snprintf(file, sizeof(file), "%s/pids.max", folder);
		if (read_number(file, &max)) {
			snprintf(file, sizeof(file), "%s/pids.current", folder);
			(void)read_number(file, &current);
			if (left(max, current) < least) {
				least = left(max, current);
				snprintf(at, size, "%.240s/pids.max", folder);
			}
		}
		if (strlen(folder) <= strlen(root) || slash == NULL)
			return least;
		*slash = '\0';
	}
}

/* The pids controller of our cgroup: version 2, or the one of version 1. */
static uint64_t cgroup_pids_free(char *name, size_t size)
{
	char *text, *line, *next;
	uint64_t least = UINT64_MAX;
	size_t text_size;

	snprintf(name, size, "pids.max of the cgroup");
	if (lab_read_file("/proc/self/cgroup", 65536, &text, &text_size) < 0)
		return UINT64_MAX;
	for (line = text; line != NULL; line = next) {
		char *controllers = strchr(line, ':'), *path;
		char at[256] = "";
		const char *root = NULL;
		uint64_t room;

		next = strchr(line, '\n');
		if (next != NULL)
			*next++ = '\0';
		path = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
		if (path == NULL)
			continue;
		*path++ = '\0';
		if (controllers[1] == '\0')
			root = CGROUP_ROOT;
		else if (strcmp(controllers + 1, "pids") == 0)
			root = CGROUP_ROOT "/pids";
		room = root != NULL
			       ? pids_free(root, strcmp(path, "/") == 0 ? "" : path, at, sizeof(at))
			       : UINT64_MAX;
		if (room < least) {
			least = room;
			snprintf(name, size, "%s", at);
		}
	}
	free(text);
	return least;
}

/* Tasks that exist: "0.1 0.2 0.3 running/TASKS lastpid". */
static uint64_t tasks(void)
{
	char *text, *slash;
	uint64_t count = 0;
	size_t size;

	if (lab_read_file("/proc/loadavg", 256, &text, &size) < 0)
		return 0;
	slash = strchr(text, '/');
	if (slash != NULL)
		count = strtoull(slash + 1, NULL, 10);
	free(text);
	return count;
}

static uint64_t memory_free(void)
{
	char *text, *line;
	uint64_t kilobytes = UINT64_MAX / 1024;
	size_t size;

	if (lab_read_file("/proc/meminfo", 65536, &text, &size) < 0)
		return UINT64_MAX;
	line = strstr(text, "MemAvailable:");
	if (line != NULL)
		kilobytes = strtoull(line + strlen("MemAvailable:"), NULL, 10);
	free(text);
	return kilobytes * 1024;
}

static uint64_t mounts(void)
{
	char *text;
	uint64_t count = 0;
	size_t size;

	if (lab_read_file("/proc/self/mountinfo", 64u << 20, &text, &size) < 0)
		return 0;
	for (size_t i = 0; i < size; i++)
		count += text[i] == '\n';
	free(text);
	return count;
}

/* Room under a sysctl; UINT64_MAX where the kernel has none. */
static uint64_t sysctl_free(const char *sysctl, uint64_t used, char *name, char *mend, size_t size)
{
	char path[96];
	uint64_t limit;

	snprintf(name, size, "%s", sysctl);
	snprintf(mend, size, "sysctl -w %s=N", sysctl);
	snprintf(path, sizeof(path), "/proc/sys/%s", sysctl);
	for (char *at = path; *at != '\0'; at++)
		if (*at == '.')
			*at = '/';
	return read_number(path, &limit) ? left(limit, used) : UINT64_MAX;
}

static uint64_t descriptors_free(char *name, char *mend, size_t size)
{
	struct rlimit limit;

	snprintf(name, size, "open files of a process (ulimit -Hn)");
	snprintf(mend, size, "ulimit -n N, or LimitNOFILE= of the service");
	lab_raise_limits();
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY)
		return UINT64_MAX;
	return limit.rlim_cur;
}

/* Root and who may administrate the system is exempt, as the kernel does it. */
static uint64_t processes_free(char *name, char *mend, size_t size)
{
	struct rlimit limit;

	snprintf(name, size, "processes of a user (ulimit -u)");
	snprintf(mend, size, "ulimit -u N");
	if (geteuid() == 0 || getrlimit(RLIMIT_NPROC, &limit) < 0 ||
		limit.rlim_cur == RLIM_INFINITY)
		return UINT64_MAX;
	return limit.rlim_cur;
}

uint64_t lab_limit_free(enum lab_limit limit, char *name, char *mend, size_t size)
{
	switch (limit) {
	case LAB_LIMIT_DESCRIPTORS: return descriptors_free(name, mend, size);
	case LAB_LIMIT_CGROUP_PIDS:
		snprintf(mend, size, "write a larger number into it, or TasksMax= of the service");
		return cgroup_pids_free(name, size);
	case LAB_LIMIT_THREADS: return sysctl_free("kernel.threads-max", tasks(), name, mend, size);
	case LAB_LIMIT_PROCESSES: return processes_free(name, mend, size);
	case LAB_LIMIT_NAMESPACES:
		return sysctl_free("user.max_net_namespaces", 0, name, mend, size);
	case LAB_LIMIT_MOUNTS: return sysctl_free("fs.mount-max", mounts(), name, mend, size);
	case LAB_LIMIT_NEIGHBORS:
		return sysctl_free("net.ipv6.neigh.default.gc_thresh3", 0, name, mend, size);
	case LAB_LIMIT_MEMORY:
		snprintf(name, size, "available memory in bytes");
		snprintf(mend, size, "a smaller lab, or a larger machine");
		return memory_free();
	case LAB_LIMIT_COUNT: break;
	}
	return UINT64_MAX;
}

uint64_t lab_limit_need(enum lab_limit limit, const struct lab_needs *needs)
{
	switch (limit) {
	case LAB_LIMIT_DESCRIPTORS: return needs->descriptors;
	case LAB_LIMIT_CGROUP_PIDS:
	case LAB_LIMIT_THREADS:
	case LAB_LIMIT_PROCESSES: return needs->processes;
	case LAB_LIMIT_NAMESPACES:
	case LAB_LIMIT_MOUNTS: return needs->namespaces;
	case LAB_LIMIT_NEIGHBORS: return needs->neighbors;
	case LAB_LIMIT_MEMORY: return needs->memory_bytes;
	case LAB_LIMIT_COUNT: break;
	}
	return 0;
}

int lab_limits_check(const struct topo *t)
{
	struct lab_needs needs;

	lab_needs(t, &needs);
	for (int i = 0; i < LAB_LIMIT_COUNT; i++) {
		char name[320], mend[320];
		uint64_t need = lab_limit_need((enum lab_limit)i, &needs);
		uint64_t room = lab_limit_free((enum lab_limit)i, name, mend, sizeof(name));

		if (need <= room)
			continue;
		log_err("%s: the limit is too low: this lab needs %" PRIu64 ", %" PRIu64
			" are left: raise it: %s",
			name, need, room, mend);
		return CLI_UNABLE;
	}
	return CLI_OK;
}
