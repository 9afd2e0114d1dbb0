#include "fabric/loss.h"

/* A cell that was taken for lost has come after all. */
static void take_late(struct fabric_loss *l)
{
	uint32_t *lost = l->period_lost > 0     ? &l->period_lost
			 : l->previous_lost > 0 ? &l->previous_lost
						: &l->window_lost;

	if (*lost > 0)
		(*lost)--;
	if (l->lost > 0)
		l->lost--;
}

uint32_t fabric_loss_sequence(struct fabric_loss *l, uint32_t sequence)
{
	uint32_t lost = l->known ? sequence - l->next : 0;

	if (++l->window_received > FABRIC_LOSS_WINDOW) {
		l->window_received /= 2;
		l->window_lost /= 2;
	}
	if (lost == 0 && l->known) { /* nearly always */
		l->next++;
		return 0;
	}
	if (-lost - 1 < FABRIC_LOSS_LATE_MAX) {
		take_late(l);
		return 0;
	}
	if (lost > UINT32_MAX / 2) /* far in the past: the peer began anew */
		lost = 0;
	l->known = true;
	l->next = sequence + 1;
	l->lost += lost;
	fabric_loss_bad(l, lost);
	return lost;
}

void fabric_loss_bad(struct fabric_loss *l, uint32_t cells)
{
	if (l->period_lost < FABRIC_LOSS_WINDOW)
		l->period_lost += cells < FABRIC_LOSS_WINDOW ? cells : FABRIC_LOSS_WINDOW;
}

bool fabric_loss_judge(struct fabric_loss *l)
{
	l->window_lost += l->previous_lost;
	l->previous_lost = l->period_lost;
	l->period_lost = 0;
	return l->window_lost >= FABRIC_LOSS_MIN &&
	       l->window_lost * FABRIC_LOSS_SHARE > l->window_received;
}

void fabric_loss_forget(struct fabric_loss *l)
{
	l->window_received = l->window_lost = l->previous_lost = l->period_lost = 0;
}
