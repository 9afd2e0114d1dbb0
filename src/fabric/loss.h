/*
 * loss.h - whether a link loses too much
 *
 * Theory. Every cell carries a sequence of its link. Gaps that don't close within a period are
 * losses, and so are corrupted cells; what is missing may also come late, on a link that reorders.
 * A link is judged once a period, over the last few thousand cells.
 */
#ifndef DSF_FABRIC_LOSS_H
#define DSF_FABRIC_LOSS_H
#include <stdbool.h>
#include <stdint.h>

/* Cells from this far back come late on a link that reorders: 16 trains of bare headers (ours). */
#define FABRIC_LOSS_LATE_MAX 8192u

/* Too much: more than one cell in 200 lost, and at least 4, among the last few thousand. Ours: a
 * link that loses 1 % must go, a burst of three must not. */
#define FABRIC_LOSS_SHARE  200u
#define FABRIC_LOSS_MIN    4u
#define FABRIC_LOSS_WINDOW 4096u

struct fabric_loss {
	bool known; /* the sequence of the next cell */
	uint32_t next;
	uint32_t window_received, window_lost;
	uint32_t previous_lost, period_lost; /* not yet in window_lost: they may come late */
	uint64_t lost;                       /* cells, total */
};

/* A cell with this link sequence came in. Returns how many are missing before it. */
uint32_t fabric_loss_sequence(struct fabric_loss *l, uint32_t sequence);

/* Cells came in that were no good: as bad as lost. */
void fabric_loss_bad(struct fabric_loss *l, uint32_t cells);

/* A period is over: is it too much? */
bool fabric_loss_judge(struct fabric_loss *l);

/* Judges anew from here on. */
void fabric_loss_forget(struct fabric_loss *l);

#endif
