#include "uring/node_main.h"
#include <sched.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include "uring/log.h"
#include "uring/news.h"
#include "uring/setup.h"

static enum uring_log_level level_from_environment(void)
{
	return getenv("DSFEMU_DEBUG") != NULL ? URING_LOG_DEBUG : URING_LOG_INFO;
}

/* Whoever wakes us goes on with what it has for us: a sixth more packets/s through a chain of three
 * switches than by the default, and an idle ping that is a tenth shorter. */
static void choose_scheduler(void)
{
	const struct sched_param none = { 0 };

	if (sched_setscheduler(0, SCHED_BATCH, &none) < 0)
		log_warn("SCHED_BATCH was refused");
}

int uring_node_main(const struct uring_node_config *config)
{
	const char *name = config->topo->nodes[config->index].name;
	struct uring_process *process = calloc(1, sizeof(*process));
	int err;

	uring_log_open(name, level_from_environment());
	prctl(PR_SET_NAME, name); /* the kernel cuts it at 15 characters */
	prctl(PR_SET_TIMERSLACK, 1000ul);
	choose_scheduler();
	if (process == NULL) {
		log_err("out of memory");
		return 1;
	}
	err = uring_setup_open(process, config);
	if (err == 0) {
		uring_news_started(process);
		while (err == 0 && !process->stopping)
			err = uring_process_turn(process);
		if (err < 0)
			log_err("io_uring: %s", uring_err_text(err));
		uring_setup_close(process);
	}
	free(process);
	return err < 0 ? 1 : 0;
}
