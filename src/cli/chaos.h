/*
 * chaos.h - a drill on a live lab
 *
 * Two connections: one asks, the other breaks. What the second one broke the supervisor heals when
 * it closes, whatever ended us, and by itself when its time is over should we be stopped; so the
 * lab is healed in any case (supervisor_heal.c).
 */
#ifndef DSF_CLI_CHAOS_H
#define DSF_CLI_CHAOS_H
#include <signal.h>
#include "cli/drill.h"
#include "cli/fidelity.h"
#include "cli/lab.h"
#include "node/drill.h"
#include "uring/clock.h"
#include "view/report.h"

struct chaos_link {
	bool down;
	bool drained[2];
	struct node_impairment impairment[2];
};

struct chaos {
	const struct topo *topo;
	struct lab_client ask, hold;
	const struct cli_drill *drill;
	struct node_drill *course;
	struct uring_clock clock;
	struct chaos_link *links; /* as they were told last */
	struct fidelity *fidelity;
	bool trusting; /* lateness counts */
	bool progress; /* tell it on stderr */
	const volatile sig_atomic_t *interrupts;
	uint32_t refusals; /* requests that the supervisor refused */
};

/* Opens both connections and makes the course. CLI_OK, or told; chaos_close in any case. */
int chaos_open(struct chaos *c, const char *lab, uint64_t epoch_ns);
/* Plays the drill to its end, or until a second interrupt. CLI_OK: the course is done. */
int chaos_play(struct chaos *c);
void chaos_fidelity(const struct chaos *c, struct view_fidelity *fidelity);
/* Closing heals what is still broken. */
void chaos_close(struct chaos *c);

#endif
