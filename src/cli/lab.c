#include "cli/lab.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cli/json_span.h"
#include "topo/file.h"

#define FOLDER_DEPTH_MAX 64 /* folders of external nodes; each is a descriptor */

bool lab_name_valid(const char *name)
{
	size_t size = strlen(name);

	if (size == 0 || size > TOPO_LAB_NAME_MAX || name[0] < 'a' || name[0] > 'z')
		return false;
	return strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == size;
}

char *lab_path(char *path, const char *lab, const char *file)
{
	snprintf(path, LAB_PATH_MAX, "%s/%s/%s", LAB_DIR, lab, file);
	return path;
}

static int make_directory(const char *lab)
{
	char path[LAB_PATH_MAX];

	if (mkdir(LAB_DIR, 0755) < 0 && errno != EEXIST)
		return -errno;
	snprintf(path, sizeof(path), "%s/%s", LAB_DIR, lab);
	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		return -errno;
	return 0;
}

/* One try; -ESTALE: the file was removed between open and lock. */
static int lock_once(const char *lab)
{
	char path[LAB_PATH_MAX];
	struct stat held, named;
	int fd, err = make_directory(lab);

	if (err < 0)
		return err;
	fd = open(lab_path(path, lab, "lock"), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (fd < 0)
		return errno == ENOENT ? -ESTALE : -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		err = -errno;
	} else if (fstat(fd, &held) < 0 || stat(path, &named) < 0 || held.st_ino != named.st_ino ||
		   held.st_dev != named.st_dev) {
		err = -ESTALE;
	}
	if (err < 0) {
		close(fd);
		return err;
	}
	return fd;
}

static int write_owner(int fd)
{
	char text[32];
	int size = snprintf(text, sizeof(text), "%d\n", (int)getpid());

	if (ftruncate(fd, 0) < 0 || pwrite(fd, text, (size_t)size, 0) != size)
		return errno != 0 ? -errno : -EIO;
	return 0;
}

int lab_lock(const char *lab)
{
	int fd, err;

	do
		fd = lock_once(lab);
	while (fd == -ESTALE);
	if (fd < 0)
		return fd;
	err = write_owner(fd);
	if (err < 0) {
		close(fd);
		return err;
	}
	return fd;
}

pid_t lab_lock_owner(const char *lab)
{
	char path[LAB_PATH_MAX], *text;
	size_t size;
	long pid;

	if (lab_read_file(lab_path(path, lab, "lock"), 64, &text, &size) < 0)
		return 0;
	pid = strtol(text, NULL, 10);
	free(text);
	return pid > 0 ? (pid_t)pid : 0;
}

bool lab_running(const char *lab)
{
	char path[LAB_PATH_MAX];
	int fd = open(lab_path(path, lab, "lock"), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	bool held;

	if (fd < 0)
		return false;
	held = flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
	close(fd);
	return held;
}

static void remove_logs(const char *lab)
{
	char path[LAB_PATH_MAX], file[LAB_PATH_MAX + 300];
	DIR *logs = opendir(lab_path(path, lab, "log"));
	struct dirent *entry;

	if (logs == NULL)
		return;
	while ((entry = readdir(logs)) != NULL) {
		snprintf(file, sizeof(file), "%s/%s", path, entry->d_name);
		if (entry->d_name[0] != '.')
			unlink(file);
	}
	closedir(logs);
	rmdir(path);
}

/* Empties a folder, whatever a command left in it. Who writes there may not be root: no link is
 * followed. Takes fd. */
static void empty_folder(int fd, unsigned depth)
{
	DIR *folder = fdopendir(fd);
	struct dirent *entry;

	if (folder == NULL) {
		close(fd);
		return;
	}
	while ((entry = readdir(folder)) != NULL) {
		const char *name = entry->d_name;
		int below;

		if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || unlinkat(fd, name, 0) == 0)
			continue;
		below = depth < FOLDER_DEPTH_MAX
				? openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
				: -1;
		if (below >= 0)
			empty_folder(below, depth + 1);
		(void)unlinkat(fd, name, AT_REMOVEDIR);
	}
	closedir(folder);
}

static void remove_nodes(const char *lab)
{
	char path[LAB_PATH_MAX];
	int fd = open(lab_path(path, lab, "node"), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd >= 0)
		empty_folder(fd, 0);
	rmdir(path);
}

static void remove_state(const char *lab)
{
	static const char *const files[] = { "control", "lab.json", "lab.json.new", "pids",
		"pids.new" };
	char path[LAB_PATH_MAX];

	remove_logs(lab);
	remove_nodes(lab);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		unlink(lab_path(path, lab, files[i]));
}

void lab_remove_files(const char *lab)
{
	char path[LAB_PATH_MAX];

	remove_state(lab);
	unlink(lab_path(path, lab, "lock"));
	snprintf(path, sizeof(path), "%s/%s", LAB_DIR, lab);
	rmdir(path);
	rmdir(LAB_DIR); /* while another lab is there it stays */
}

struct cleaner {
	const char *lab;
	const struct netns_sweep *sweep;
	lab_stranger_fn fn;
	void *user;
};

static void tell_stranger(void *user, const struct netns_sweep_process *process)
{
	struct cleaner *c = user;

	if (c->fn != NULL)
		c->fn(c->user, c->lab, process, c->sweep->namespaces[process->ns].name);
}

int lab_clean(const char *lab, bool all, lab_stranger_fn fn, void *user)
{
	struct netns_sweep sweep;
	struct cleaner cleaner = { lab, &sweep, fn, user };
	int first = netns_sweep_open(&sweep, lab);
	int err = netns_sweep_stop(&sweep, all, tell_stranger, &cleaner);

	if (first == 0)
		first = err;
	err = netns_sweep_delete(&sweep);
	if (first == 0)
		first = err;
	netns_sweep_close(&sweep);
	remove_state(lab);
	return first;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* Directories of LAB_DIR behind the names in list. */
static int add_directories(struct lab_list *list)
{
	DIR *labs = opendir(LAB_DIR);
	struct dirent *entry;
	int err = 0;

	if (labs == NULL)
		return errno == ENOENT ? 0 : -errno;
	while (err == 0 && (entry = readdir(labs)) != NULL) {
		void *grown;

		if (!lab_name_valid(entry->d_name))
			continue;
		grown = realloc(list->names, (list->count + 1) * sizeof(*list->names));
		if (grown == NULL) {
			err = -ENOMEM;
			break;
		}
		list->names = grown;
		strcpy(list->names[list->count++], entry->d_name);
	}
	closedir(labs);
	return err;
}

int lab_list_open(struct lab_list *list)
{
	uint32_t kept = 0;
	int err = geteuid() == 0 ? netns_sweep_labs(&list->names, &list->count) : 0;

	if (geteuid() != 0)
		*list = (struct lab_list){ .names = NULL };
	if (err == 0)
		err = add_directories(list);
	if (list->count > 0)
		qsort(list->names, list->count, sizeof(*list->names), compare_names);
	for (uint32_t i = 0; i < list->count; i++)
		if (kept == 0 || strcmp(list->names[kept - 1], list->names[i]) != 0)
			memmove(list->names[kept++], list->names[i], sizeof(*list->names));
	list->count = kept;
	return err;
}

void lab_list_close(struct lab_list *list)
{
	free(list->names);
	*list = (struct lab_list){ .names = NULL };
}

static int choose_only(char *lab, char *text, size_t size)
{
	struct lab_list list;
	int err = lab_list_open(&list);
	size_t at = 0;

	if (err < 0) {
		snprintf(text, size, "can't look for labs: %s", strerror(-err));
	} else if (list.count == 0) {
		snprintf(text, size, "no lab is running: start one with dsfemu up FILE");
	} else if (list.count == 1) {
		strcpy(lab, list.names[0]);
	} else {
		at = (size_t)snprintf(
			text, size, "several labs are running: choose one with --lab:");
		for (uint32_t i = 0; i < list.count && at < size; i++)
			at += (size_t)snprintf(text + at, size - at, " %s", list.names[i]);
	}
	err = err < 0 || list.count != 1 ? (list.count > 1 ? 2 : 1) : 0;
	lab_list_close(&list);
	return err;
}

int lab_choose(const char *wanted, char lab[TOPO_LAB_NAME_MAX + 1], char *text, size_t size)
{
	if (wanted == NULL || wanted[0] == '\0')
		wanted = getenv("DSFEMU_LAB");
	if (wanted == NULL || wanted[0] == '\0')
		return choose_only(lab, text, size);
	if (!lab_name_valid(wanted)) {
		snprintf(text, size, "not a lab's name: %.40s", wanted);
		return 2;
	}
	strcpy(lab, wanted);
	return 0;
}

int lab_topology(const char *lab, struct topo **topo, uint64_t *epoch_ns, char *text, size_t size)
{
	char path[LAB_PATH_MAX], *bytes, line[1400];
	struct topo_error error;
	size_t bytes_size;
	int64_t epoch = 0;
	int err = lab_read_file(
		lab_path(path, lab, "lab.json"), TOPO_TEXT_BYTES_MAX, &bytes, &bytes_size);

	if (err < 0) {
		snprintf(text, size, "%s: %s", path, strerror(-err));
		return err;
	}
	err = topo_load_text(bytes, bytes_size, path, topo, &error);
	if (err < 0)
		snprintf(text, size, "%s", topo_error_line(&error, line, sizeof(line)));
	else if (epoch_ns != NULL)
		*epoch_ns = json_span_integer(json_span_get(bytes, bytes_size, "_epoch_ns"), &epoch)
				    ? (uint64_t)epoch
				    : 0;
	free(bytes);
	return err;
}

int lab_read_file(const char *path, size_t size_max, char **text, size_t *size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t cap = 0, used = 0;
	char *bytes = NULL;
	ssize_t got = 1;
	int err = fd < 0 ? -errno : 0;

	while (err == 0 && got > 0) {
		if (used + 1 >= cap) {
			char *grown;

			cap = cap == 0 ? 65536 : 2 * cap;
			grown = realloc(bytes, cap);
			if (grown == NULL) {
				err = -ENOMEM;
				break;
			}
			bytes = grown;
		}
		got = read(fd, bytes + used, cap - used - 1);
		if (got > 0)
			used += (size_t)got;
		else if (got < 0)
			err = errno == EINTR ? 0 : -errno;
		if (got < 0 && err == 0)
			got = 1;
		if (used > size_max)
			err = -EFBIG;
	}
	if (fd >= 0)
		close(fd);
	if (err < 0) {
		free(bytes);
		return err;
	}
	bytes[used] = '\0';
	*text = bytes;
	*size = used;
	return 0;
}

int lab_write_file(const char *path, const char *text, size_t size)
{
	char new_path[LAB_PATH_MAX + 4];
	int fd, err = 0;

	snprintf(new_path, sizeof(new_path), "%s.new", path);
	fd = open(new_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (fd < 0)
		return -errno;
	while (size > 0 && err == 0) {
		ssize_t put = write(fd, text, size);

		if (put > 0) {
			text += put;
			size -= (size_t)put;
		} else if (put == 0 || errno != EINTR) {
			err = put == 0 ? -EIO : -errno;
		}
	}
	close(fd);
	if (err == 0 && rename(new_path, path) < 0)
		err = -errno;
	if (err < 0)
		unlink(new_path);
	return err;
}

void lab_raise_limits(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
	}
}
