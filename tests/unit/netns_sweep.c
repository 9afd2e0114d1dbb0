/* Namespaces that are made, marked, found by the mark and removed; strangers are left alone. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "netns/netns.h"
#include "tests/tap.h"

static char lab[33], longer[40], stranger[80], stranger_path[128], stump_path[128];

static bool exists(const char *name)
{
	char path[160];
	struct stat status;

	snprintf(path, sizeof(path), "%s/%s", NETNS_NS_DIR, name);
	return lstat(path, &status) == 0;
}

static int make(const char *of, const char *node, enum netns_ns_kind kind)
{
	struct netns_ns_maker maker;
	struct netns_ns ns;
	int err = netns_ns_maker_open(&maker, of);

	if (err < 0)
		return err;
	err = netns_ns_create(&maker, node, kind, &ns);
	netns_ns_maker_close(&maker);
	if (err == 0)
		netns_ns_close(&ns);
	return err;
}

static uint64_t own_inode(void)
{
	struct stat status = { 0 };

	(void)stat("/proc/self/ns/net", &status);
	return status.st_ino;
}

struct found {
	unsigned marked, foreign;
	pid_t last_foreign;
};

static void note(void *user, const struct netns_sweep_process *process)
{
	struct found *found = user;

	if (process->marked) {
		found->marked++;
	} else {
		found->foreign++;
		found->last_foreign = process->pid;
	}
}

/* A process inside a namespace; exec, so that the environment is what the kernel shows. */
static pid_t inside(const char *name, const char *environment)
{
	int ns = netns_ns_open(name), ready[2];
	char *arguments[] = { "sleep", "1000", NULL };
	char *variables[] = { (char *)environment, NULL };
	char byte;
	pid_t pid;

	if (ns < 0 || pipe2(ready, O_CLOEXEC) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		if (netns_ns_enter(ns) < 0)
			_exit(1);
		execve("/bin/sleep", arguments, variables);
		_exit(1);
	}
	close(ready[1]);
	(void)!read(ready[0], &byte, 1); /* ends at exec */
	close(ready[0]);
	close(ns);
	return pid;
}

static void test_create(void)
{
	uint64_t home = own_inode();
	char name[80], mark[NETNS_NS_MARK_MAX + 1];
	int fd, root = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);

	TAP_EQ(make(lab, "h0", NETNS_NS_HOST), 0, "a host's namespace");
	TAP_EQ(make(lab, "fdsw0", NETNS_NS_CELLS), 0, "a fabric node's");
	TAP_EQ(make(lab, "rdsw0", NETNS_NS_ROUTED), 0, "an interface node's");
	TAP_EQ(make(lab, "x0", NETNS_NS_EXTERNAL), 0, "an external one's");
	TAP_EQ(make(lab, "h0", NETNS_NS_HOST), -EEXIST, "a name that is taken is refused");
	TAP_OK(own_inode() == home, "we are back where we came from");
	snprintf(name, sizeof(name), "%s-rdsw0", lab);
	fd = netns_ns_open(name);
	TAP_OK(fd >= 0, "it opens by name");
	TAP_EQ(netns_ns_mark(fd, mark), 0, "its mark is read");
	snprintf(name, sizeof(name), "dsfemu:%s:rdsw0", lab);
	TAP_OK(strcmp(mark, name) == 0, "and says %s", mark);
	TAP_EQ(netns_ns_ipv6_on(), 0, "IPv6 for later links is switched on");
	TAP_EQ(netns_ns_enter(root), 0, "home again");
	close(fd);
	close(root);
	TAP_EQ(netns_ns_open("there-is-none"), -ENOENT, "no such name");
}

/* Similar names that aren't ours: another lab's, a stranger's namespace, a stranger's file. */
static void make_strangers(void)
{
	char path[160];
	int fd, root = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);

	TAP_EQ(make(longer, "h0", NETNS_NS_HOST), 0, "a lab whose name only starts the same");
	fd = open(stranger_path, O_CREAT | O_EXCL | O_RDONLY | O_CLOEXEC, 0444);
	close(fd);
	TAP_OK(unshare(CLONE_NEWNET) == 0 &&
			mount("/proc/self/ns/net", stranger_path, "none", MS_BIND, NULL) == 0,
		"a stranger's namespace with a name like ours");
	TAP_EQ(netns_ns_enter(root), 0, "home again");
	snprintf(path, sizeof(path), "%s-file", stranger_path);
	fd = open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0644);
	TAP_OK(fd >= 0 && write(fd, "dsfemu:other\n", 13) == 13, "a stranger's file");
	close(fd);
	close(root);
}

static void make_stump(void)
{
	char text[64];
	int fd = open(stump_path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0444);
	int size = snprintf(text, sizeof(text), "dsfemu:%s\n", lab);

	TAP_OK(fd >= 0 && write(fd, text, (size_t)size) == size, "a name that was cut short");
	close(fd);
}

static void test_processes(void)
{
	char host[80], marked[64], similar[64];
	struct netns_sweep sweep;
	struct found found = { 0 };
	pid_t ours, foreign;
	int status;

	snprintf(host, sizeof(host), "%s-h0", lab);
	snprintf(marked, sizeof(marked), "DSFEMU_LAB=%s", lab);
	snprintf(similar, sizeof(similar), "DSFEMU_LAB=%sx", lab);
	ours = inside(host, marked);
	foreign = inside(host, similar);
	TAP_EQ(netns_sweep_open(&sweep, lab), 0, "the lab is found");
	TAP_EQ(sweep.count, 5, "four namespaces and a stump, nothing of strangers");
	TAP_EQ(netns_sweep_processes(&sweep, note, &found), 0, "processes are looked for");
	TAP_OK(found.marked == 1 && found.foreign == 1, "one of ours, one stranger");
	found = (struct found){ 0 };
	TAP_EQ(netns_sweep_stop(&sweep, false, note, &found), 0, "ours is stopped");
	TAP_OK(waitpid(ours, &status, 0) == ours && WIFSIGNALED(status) &&
			WTERMSIG(status) == SIGTERM,
		"by SIGTERM");
	TAP_EQ(found.last_foreign, foreign, "the stranger is told of");
	TAP_EQ(waitpid(foreign, &status, WNOHANG), 0, "and still there");
	TAP_EQ(netns_sweep_delete(&sweep), 0, "everything is deleted");
	netns_sweep_close(&sweep);
	TAP_OK(!exists(host), "the name is gone though a stranger is inside");
	kill(foreign, SIGKILL);
	waitpid(foreign, &status, 0);
}

static void test_nothing(void)
{
	struct netns_sweep sweep;

	TAP_EQ(netns_sweep_open(&sweep, lab), 0, "a lab that isn't there");
	TAP_EQ(sweep.count, 0, "has no namespaces");
	TAP_EQ(netns_sweep_stop(&sweep, true, NULL, NULL), 0, "no processes");
	TAP_EQ(netns_sweep_delete(&sweep), 0, "and can be deleted");
	netns_sweep_close(&sweep);
}

static void sweep_away(const char *of)
{
	struct netns_sweep sweep;

	if (netns_sweep_open(&sweep, of) == 0) {
		(void)netns_sweep_stop(&sweep, true, NULL, NULL);
		(void)netns_sweep_delete(&sweep);
	}
	netns_sweep_close(&sweep);
}

static void clean_up(void)
{
	char path[160];

	sweep_away(lab);
	sweep_away(longer);
	umount2(stranger_path, MNT_DETACH);
	unlink(stranger_path);
	snprintf(path, sizeof(path), "%s-file", stranger_path);
	unlink(path);
	unlink(stump_path);
}

int main(void)
{
	char(*labs)[NETNS_SWEEP_LAB_MAX + 1];
	uint32_t count, seen = 0;
	int err;

	if (geteuid() != 0) {
		TAP_SKIP("needs root");
		return TAP_DONE();
	}
	snprintf(lab, sizeof(lab), "unit%d", (int)getpid());
	snprintf(longer, sizeof(longer), "%s_b", lab);
	snprintf(stranger, sizeof(stranger), "%s-stranger", lab);
	snprintf(stranger_path, sizeof(stranger_path), "%s/%s", NETNS_NS_DIR, stranger);
	snprintf(stump_path, sizeof(stump_path), "%s/%s-stump", NETNS_NS_DIR, lab);
	atexit(clean_up);
	test_create();
	make_strangers();
	make_stump();
	err = netns_sweep_labs(&labs, &count);
	for (uint32_t i = 0; i < count; i++)
		seen += strcmp(labs[i], lab) == 0 || strcmp(labs[i], longer) == 0;
	TAP_OK(err == 0 && seen == 2, "both labs are listed, each once");
	free(labs);
	test_processes();
	test_nothing();
	TAP_OK(exists(stranger), "the stranger's namespace is still there");
	snprintf(stump_path, sizeof(stump_path), "%s-h0", longer);
	TAP_OK(exists(stump_path), "so is the other lab");
	snprintf(stump_path, sizeof(stump_path), "%s-file", stranger);
	TAP_OK(exists(stump_path), "and the stranger's file");
	snprintf(stump_path, sizeof(stump_path), "%s/%s-stump", NETNS_NS_DIR, lab);
	return TAP_DONE();
}
