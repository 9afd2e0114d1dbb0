#include "uring/fidelity.h"
#include <errno.h>
#include <signal.h>
#include <string.h>

static volatile sig_atomic_t went_on;

static void note_going_on(int number)
{
	(void)number;
	went_on = 1;
}

/* A handler, since it runs before anything else of the process does. */
int uring_fidelity_watch(void)
{
	struct sigaction action = { .sa_handler = note_going_on, .sa_flags = SA_RESTART };

	return sigaction(SIGCONT, &action, NULL) < 0 ? -errno : 0;
}

bool uring_fidelity_went_on(void)
{
	bool was = went_on != 0;

	if (was)
		went_on = 0;
	return was;
}

const char *uring_drop_name(enum uring_drop drop)
{
	switch (drop) {
	case URING_DROP_SOCKET: return "socket";
	case URING_DROP_SEND: return "send";
	case URING_DROP_TUN: return "tun";
	case URING_DROP_SEGMENTS: return "segments";
	case URING_DROP_OVERSIZE: return "oversize";
	case URING_DROP_AHEAD: return "ahead";
	case URING_DROP_LATE: return "late";
	case URING_DROP_COUNT: break;
	}
	return "";
}

uint64_t uring_fidelity_drops(const struct uring_fidelity *f)
{
	uint64_t total = 0;

	for (unsigned i = 0; i < URING_DROP_COUNT; i++)
		total += f->drops[i];
	return total;
}

void uring_fidelity_reset(struct uring_fidelity *f)
{
	uint64_t past_drops = f->past_drops + uring_fidelity_drops(f);
	uint64_t past_nic_drops = f->past_nic_drops + f->nic_drops;
	dsf_instant thawed_at = f->thawed_at;
	unsigned catching_up = f->catching_up;

	memset(f, 0, sizeof(*f));
	f->catching_up = catching_up;
	f->thawed_at = thawed_at;
	f->past_drops = past_drops;
	f->past_nic_drops = past_nic_drops;
}
