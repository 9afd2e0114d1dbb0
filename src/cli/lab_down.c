#include "cli/lab_down.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "cli/json_span.h"
#include "cli/lab.h"
#include "cli/lab_status.h"
#include "cli/log.h"
#include "cli/options.h"
#include "netns/spawn.h"

#define RETRY_MS   5
#define ASK_MS     20000 /* a supervisor that answers nothing for so long is ended by force */
#define END_MS     5000  /* from its last word to its end */
#define REACH_MS   3000  /* between its lock and its control socket */
#define GIVE_UP_MS 30000

static void tell_stranger(
	void *user, const char *lab, const struct netns_sweep_process *process, const char *ns)
{
	(void)user;
	log_warn("lab %s: process %d (%s) isn't ours and stays, in %s without a network (--kill "
		 "ends it)",
		lab, (int)process->pid, process->comm, ns);
}

static void tell_strangers(const char *lab, const char *line, size_t size)
{
	struct json_span result = json_span_get(line, size, "result");
	cJSON *object = result.at != NULL ? cJSON_ParseWithLength(result.at, result.size) : NULL;
	const cJSON *row;

	cJSON_ArrayForEach(row, cJSON_GetObjectItemCaseSensitive(object, "strangers"))
	{
		const cJSON *pid = cJSON_GetObjectItemCaseSensitive(row, "pid");
		struct netns_sweep_process process = { .pid = cJSON_IsNumber(pid) ? pid->valueint
										  : 0 };

		snprintf(process.comm, sizeof(process.comm), "%s", lab_status_text(row, "name"));
		tell_stranger(NULL, lab, &process, lab_status_text(row, "netns"));
	}
	cJSON_Delete(object);
}

/* Nobody holds the lock, we do: removes what there is. */
static int remove_rest(const char *lab, int lock, bool kill)
{
	int err = lab_clean(lab, kill, tell_stranger, NULL);

	lab_remove_files(lab);
	close(lock);
	if (err == 0)
		return CLI_OK;
	log_err("lab %s: can't remove all of it: %s", lab, strerror(-err));
	return CLI_FAILED;
}

/* The supervisor doesn't answer: SIGKILL, after a check that it is the one. */
static void end_by_force(const char *lab)
{
	pid_t pid = lab_lock_owner(lab);
	int pidfd = pid > 1 ? netns_pidfd_open(pid) : -1;

	if (pidfd < 0)
		return;
	if (netns_sweep_marked(pid, lab)) {
		log_warn("lab %s: its supervisor (process %d) doesn't answer: killed", lab,
			(int)pid);
		(void)netns_pidfd_kill(pidfd, SIGKILL);
	}
	close(pidfd);
}

/* Asks the supervisor. 0: it has ended the lab; -ENOENT: there is no socket; -EBUSY: it refused,
 * too many others are connected; -errno. */
static int ask(const char *lab, bool kill)
{
	struct lab_client client;
	size_t size;
	char *line;
	int err = lab_client_open(&client, lab);

	if (err < 0)
		return err;
	err = lab_client_send(
		&client, kill ? "{\"op\":\"down\",\"kill\":true}" : "{\"op\":\"down\"}");
	if (err == 0) {
		line = lab_client_receive(&client, ASK_MS, &size, &err);
		if (line != NULL && json_span_get(line, size, "result").at == NULL)
			err = -EBUSY;
		else if (line != NULL)
			tell_strangers(lab, line, size);
	}
	lab_client_close(&client);
	return err;
}

/* It said that it ends: until its process is gone, which is a moment after its files are. */
static void wait_end(int pidfd)
{
	struct pollfd end = { .fd = pidfd, .events = POLLIN };

	while (pidfd >= 0 && poll(&end, 1, END_MS) < 0 && errno == EINTR)
		;
}

/* Its nodes hold the lock beyond their supervisor's death, for the moment they need to die. */
static void end_nodes(const char *lab)
{
	struct netns_sweep sweep;

	if (netns_sweep_open(&sweep, lab) == 0)
		(void)netns_sweep_stop(&sweep, false, NULL, NULL);
	netns_sweep_close(&sweep);
}

int lab_down(const char *lab, bool kill)
{
	for (int waited = 0; waited < GIVE_UP_MS; waited += RETRY_MS) {
		int lock = lab_lock(lab), err, pidfd;

		if (lock >= 0)
			return remove_rest(lab, lock, kill);
		if (lock != -EWOULDBLOCK) {
			log_err("lab %s: %s/%s: %s", lab, LAB_DIR, lab, strerror(-lock));
			return CLI_FAILED;
		}
		pidfd = netns_pidfd_open(lab_lock_owner(lab));
		err = ask(lab, kill);
		if (err == 0)
			wait_end(pidfd);
		if (pidfd >= 0)
			close(pidfd);
		if (err == 0)
			return CLI_OK;
		if (err == -ETIMEDOUT || waited % REACH_MS == REACH_MS - RETRY_MS) {
			end_by_force(lab);
			end_nodes(lab);
		}
		/* No socket yet (just starting), or not any more, or only its nodes are left, or no
		 * room among its clients. */
		poll(NULL, 0, RETRY_MS);
	}
	log_err("lab %s: process %d holds %s/%s/lock and doesn't end", lab,
		(int)lab_lock_owner(lab), LAB_DIR, lab);
	return CLI_FAILED;
}
