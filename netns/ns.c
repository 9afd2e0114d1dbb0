#include "netns/ns.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <linux/magic.h>
#include "netns/link.h"

#ifndef NSFS_MAGIC
#define NSFS_MAGIC 0x6e736673
#endif

#define IPV6_ALL     "/proc/sys/net/ipv6/conf/all/"
#define IPV6_DEFAULT "/proc/sys/net/ipv6/conf/default/"
#define PATH_BYTES   (sizeof(NETNS_NS_DIR) + 1 + NETNS_NS_NAME_MAX)

static int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int err = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		err = -errno;
	close(fd);
	return err;
}

static void name_path(char *path, const char *name)
{
	int size = snprintf(path, PATH_BYTES, "%s/%s", NETNS_NS_DIR, name);

	assert(size > 0 && (size_t)size < PATH_BYTES);
	(void)size;
}

/*
 * As `ip netns add` does: the directory is a mount point of its own with shared propagation, so
 * that names taken away here vanish in other mount namespaces too. (Were it done later by
 * `ip netns add`, our names would be copied to a layer that nobody can unmount by name.)
 */
static int prepare_directory(void)
{
	if (mkdir(NETNS_NS_DIR, 0755) < 0 && errno != EEXIST)
		return -errno;
	if (mount("", NETNS_NS_DIR, "none", MS_SHARED | MS_REC, NULL) == 0)
		return 0;
	if (errno != EINVAL)
		return -errno;
	if (mount(NETNS_NS_DIR, NETNS_NS_DIR, "none", MS_BIND | MS_REC, NULL) < 0 ||
		mount("", NETNS_NS_DIR, "none", MS_SHARED | MS_REC, NULL) < 0)
		return -errno;
	return 0;
}

static int mark_file_open(const char *lab)
{
	char text[64];
	int size = snprintf(text, sizeof(text), "dsfemu:%s\n", lab);
	int fd = open(NETNS_NS_DIR, O_TMPFILE | O_RDWR | O_CLOEXEC, 0444);
	int err;

	if (fd < 0)
		return -errno;
	if (write(fd, text, (size_t)size) != size) {
		err = errno != 0 ? -errno : -EIO;
		close(fd);
		return err;
	}
	return fd;
}

int netns_ns_maker_open(struct netns_ns_maker *m, const char *lab)
{
	int err = prepare_directory();

	if (err < 0)
		return err;
	m->lab = lab;
	m->mark_fd = mark_file_open(lab);
	if (m->mark_fd < 0)
		return m->mark_fd;
	m->root_fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	if (m->root_fd < 0) {
		err = -errno;
		close(m->mark_fd);
		return err;
	}
	netns_batch_init(&m->batch);
	return 0;
}

void netns_ns_maker_close(struct netns_ns_maker *m)
{
	/* Going home can only fail for want of memory; carrying on elsewhere would be worse. */
	if (setns(m->root_fd, CLONE_NEWNET) < 0)
		abort();
	close(m->root_fd);
	close(m->mark_fd);
}

static int set_sysctls(enum netns_ns_kind kind)
{
	int err = 0;

	switch (kind) {
	case NETNS_NS_CELLS:
	case NETNS_NS_ROUTED: err = write_file(IPV6_DEFAULT "disable_ipv6", "1"); break;
	case NETNS_NS_HOST:
		err = write_file(IPV6_DEFAULT "accept_dad", "0");
		if (err == 0)
			err = write_file(IPV6_DEFAULT "accept_ra", "0");
		if (err == 0) /* or setting a port down would take its addresses */
			err = write_file(IPV6_DEFAULT "keep_addr_on_down", "1");
		break;
	case NETNS_NS_EXTERNAL:
		err = write_file(IPV6_ALL "forwarding", "1");
		if (err == 0)
			err = write_file(IPV6_DEFAULT "accept_dad", "0");
		if (err == 0)
			err = write_file(IPV6_DEFAULT "keep_addr_on_down", "1");
		break;
	}
	return err;
}

/* The calling thread is in the namespace. */
static int set_up(
	struct netns_ns_maker *m, struct netns_ns *ns, const char *node, enum netns_ns_kind kind)
{
	char mark[NETNS_NS_MARK_MAX + 1];
	int err = set_sysctls(kind);

	if (err < 0)
		return err;
	ns->nl = netns_nl_open();
	if (ns->nl < 0)
		return ns->nl;
	snprintf(mark, sizeof(mark), "dsfemu:%s:%s", m->lab, node);
	netns_batch_reset(&m->batch);
	netns_batch_use(&m->batch, ns->nl);
	netns_link_alias(&m->batch, NETNS_LINK_LO, mark, 0);
	if (kind != NETNS_NS_CELLS)
		netns_link_set(&m->batch, NETNS_LINK_LO, true, 0);
	return netns_batch_flush(&m->batch);
}

static int give_name(struct netns_ns_maker *m, const char *node, const struct netns_ns *ns)
{
	char name[NETNS_NS_NAME_MAX + 1], path[PATH_BYTES], mark_path[40], ns_path[40];
	int err;

	snprintf(name, sizeof(name), "%s-%s", m->lab, node);
	name_path(path, name);
	snprintf(mark_path, sizeof(mark_path), "/proc/self/fd/%d", m->mark_fd);
	snprintf(ns_path, sizeof(ns_path), "/proc/self/fd/%d", ns->fd);
	if (linkat(AT_FDCWD, mark_path, AT_FDCWD, path, AT_SYMLINK_FOLLOW) < 0)
		return -errno;
	if (mount(ns_path, path, "none", MS_BIND, NULL) < 0) {
		err = -errno;
		unlink(path);
		return err;
	}
	return 0;
}

int netns_ns_create(
	struct netns_ns_maker *m, const char *node, enum netns_ns_kind kind, struct netns_ns *ns)
{
	int err;

	ns->fd = ns->nl = -1;
	if (unshare(CLONE_NEWNET) < 0)
		return -errno;
	ns->fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	err = ns->fd < 0 ? -errno : set_up(m, ns, node, kind);
	if (err == 0)
		err = give_name(m, node, ns);
	if (err < 0)
		netns_ns_close(ns);
	return err;
}

void netns_ns_close(struct netns_ns *ns)
{
	if (ns->nl >= 0)
		close(ns->nl);
	if (ns->fd >= 0)
		close(ns->fd);
	ns->fd = ns->nl = -1;
}

int netns_ns_ipv6_on(void)
{
	return write_file(IPV6_DEFAULT "disable_ipv6", "0");
}

int netns_ns_open(const char *name)
{
	char path[PATH_BYTES];
	struct statfs fs;
	int fd;

	if (strlen(name) > NETNS_NS_NAME_MAX)
		return -ENOENT;
	name_path(path, name);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	if (fstatfs(fd, &fs) < 0 || fs.f_type != NSFS_MAGIC) {
		close(fd);
		return -ENOENT;
	}
	return fd;
}

int netns_ns_enter(int fd)
{
	return setns(fd, CLONE_NEWNET) < 0 ? -errno : 0;
}

int netns_ns_mark(int fd, char *mark)
{
	char alias[NETNS_LINK_ALIAS_MAX + 1];
	int nl, err = netns_ns_enter(fd);

	mark[0] = '\0';
	if (err < 0)
		return err;
	nl = netns_nl_open();
	if (nl < 0)
		return nl;
	err = netns_link_alias_get(nl, NETNS_LINK_LO, alias);
	close(nl);
	if (err == 0 && strlen(alias) <= NETNS_NS_MARK_MAX)
		strcpy(mark, alias);
	return err;
}

int netns_ns_unname(const char *name)
{
	char path[PATH_BYTES];

	name_path(path, name);
	if (umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) < 0 && errno != EINVAL && errno != ENOENT)
		return -errno; /* EINVAL: a stump, nothing is mounted there */
	return unlink(path) < 0 && errno != ENOENT ? -errno : 0;
}

bool netns_ns_is_stump(const char *name, const char *lab)
{
	char path[PATH_BYTES], want[64], got[64];
	struct stat status;
	ssize_t size;
	int fd;

	if (strlen(name) > NETNS_NS_NAME_MAX)
		return false;
	name_path(path, name);
	if (lstat(path, &status) < 0 || !S_ISREG(status.st_mode))
		return false;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return false;
	size = read(fd, got, sizeof(got)); /* fails on a namespace */
	close(fd);
	snprintf(want, sizeof(want), "dsfemu:%s\n", lab);
	return size == (ssize_t)strlen(want) && memcmp(got, want, (size_t)size) == 0;
}
