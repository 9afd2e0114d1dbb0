/*
 * fidelity.h - how late this process was, and what the emulator lost
 *
 * Lateness is the instant at which something was handled minus the instant at which it was due, in
 * fabric time, for every train or packet received and every deadline. Emulator drops are what the
 * modelled network would not have lost: full socket buffers, failed sends, TUN overruns, frames
 * that nobody could have sent in the model, and frames that a sender who got no processor sent so
 * late that what waited for them may have given them up. They are never mixed with modelled losses.
 *
 * A process that was stopped (SIGSTOP: `node freeze`, the gray failure) and goes on is late with
 * all that came meanwhile, and has lost what found no room. That is the failure and not the
 * machine, so it doesn't count. As in the simulator it does all of it at the instant at which it
 * went on: a box that stood still has sent nothing meanwhile.
 */
#ifndef DSF_URING_FIDELITY_H
#define DSF_URING_FIDELITY_H
#include <stdbool.h>
#include <stdint.h>
#include "base/histogram.h"
#include "base/time.h"

enum uring_drop {
	URING_DROP_SOCKET,   /* a receive buffer was full: PACKET_STATISTICS */
	URING_DROP_SEND,     /* a send was refused while the link was up */
	URING_DROP_TUN,      /* TUN queue overrun, or a write was refused */
	URING_DROP_SEGMENTS, /* a frame of many segments: offloads of the peer are wrong */
	URING_DROP_OVERSIZE, /* a frame larger than the port's buffers */
	URING_DROP_AHEAD,    /* a train that departs when none of its peer's can */
	URING_DROP_LATE,     /* handed to the node, but after its time-outs: as good as lost */
	URING_DROP_COUNT
};

struct uring_fidelity {
	struct dsf_histogram late; /* fabric ns; count is what was handled */
	uint64_t drops[URING_DROP_COUNT];
	/* Modelled losses that only the driver sees. */
	uint64_t cut;       /* frames that were on a link when it lost carrier, or came to a frozen
			     * process that had no room for them */
	uint64_t nic_drops; /* host: refused by the port's own queueing discipline */
	/* Of earlier runs, since the process started: what a reset took out of the above. */
	uint64_t past_drops, past_nic_drops;
	dsf_instant thawed_at; /* the last time it went on after a stop; DSF_EPOCH: never */
	unsigned catching_up;  /* since then: idle turns until nothing of it is left; 0: done */
};

static inline void uring_fidelity_late(
	struct uring_fidelity *f, dsf_instant due, dsf_instant handled)
{
	if (dsf_time_before(f->thawed_at, due))
		dsf_histogram_add(&f->late, dsf_time_since(due, handled));
}

/* A frame that was due then is handed to a node that has done what was due by `done`. Frames of one
 * packet that differ by half a time-out may, with what their links differ by, be one apart. */
static inline void uring_fidelity_behind(
	struct uring_fidelity *f, dsf_instant due, dsf_instant done, uint64_t timeout_ns)
{
	if (dsf_time_before(f->thawed_at, due) && dsf_time_since(due, done) >= timeout_ns / 2)
		f->drops[URING_DROP_LATE]++;
}

/* Makes the process notice that it goes on after a stop. 0 or -errno. */
int uring_fidelity_watch(void);

/* Has it gone on since the last call? */
bool uring_fidelity_went_on(void);

const char *uring_drop_name(enum uring_drop drop);

uint64_t uring_fidelity_drops(const struct uring_fidelity *f);

/* A new run begins. */
void uring_fidelity_reset(struct uring_fidelity *f);

#endif
