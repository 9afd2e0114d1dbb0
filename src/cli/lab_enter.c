#include "cli/lab_enter.h"
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>
#include "cli/lab.h"
#include "cli/lab_call.h"
#include "cli/log.h"
#include "netns/ns.h"

/* Into the namespace of lab's node, which must be one of ours. */
static int enter_namespace(const char *lab, const char *node)
{
	char name[NETNS_NS_NAME_MAX + 1], mark[NETNS_NS_MARK_MAX + 1], want[NETNS_NS_MARK_MAX + 1];
	int fd, err;

	if (strlen(node) > TOPO_NODE_NAME_MAX)
		return -ENOENT;
	snprintf(name, sizeof(name), "%s-%.48s", lab, node);
	snprintf(want, sizeof(want), "dsfemu:%s:%.48s", lab, node);
	fd = netns_ns_open(name);
	if (fd < 0)
		return fd;
	err = netns_ns_mark(fd, mark); /* leaves us inside */
	close(fd);
	if (err == 0 && strcmp(mark, want) != 0)
		err = -ENOENT;
	return err;
}

/* As `ip netns exec` does: /sys/class/net of the old namespace would mislead. */
void lab_enter_sys(void)
{
	if (unshare(CLONE_NEWNS) < 0 || mount("", "/", "none", MS_SLAVE | MS_REC, NULL) < 0)
		return;
	if (mount("dsfemu", "/sys", "sysfs", 0, NULL) < 0)
		log_debug("/sys shows the root namespace: %s", strerror(errno));
}

static int prepare(const struct cli_options *o, const char *node)
{
	char lab[TOPO_LAB_NAME_MAX + 1];
	int err;

	if (lab_call_root(o->command->name) != CLI_OK || lab_call_choose(o, NULL, lab) != CLI_OK)
		return -EINVAL;
	err = enter_namespace(lab, node);
	if (err == -ENOENT)
		log_err("lab %s: no such node: %s", lab, node);
	else if (err < 0)
		log_err("lab %s: %s: can't enter its namespace: %s", lab, node, strerror(-err));
	if (err < 0)
		return err;
	lab_enter_sys();
	if (setenv("DSFEMU_LAB", lab, 1) < 0 || setenv("DSFEMU_NODE", node, 1) < 0) {
		log_err("out of memory");
		return -ENOMEM;
	}
	return 0;
}

int lab_enter(const struct cli_options *o, const char *node, char *const *command)
{
	int err;

	if (prepare(o, node) < 0)
		return LAB_ENTER_FAILED;
	(void)signal(SIGPIPE, SIG_DFL); /* main ignores it, and that would be inherited */
	execvp(command[0], command);
	err = errno;
	log_err("%s: %s", command[0], strerror(err));
	return err == ENOENT || err == ENOTDIR ? LAB_ENTER_MISSING : LAB_ENTER_UNUSABLE;
}
