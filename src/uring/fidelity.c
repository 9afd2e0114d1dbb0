#include "uring/fidelity.h"
#include <string.h>

const char *uring_drop_name(enum uring_drop drop)
{
	switch (drop) {
	case URING_DROP_SOCKET: return "socket";
	case URING_DROP_SEND: return "send";
	case URING_DROP_TUN: return "tun";
	case URING_DROP_SEGMENTS: return "segments";
	case URING_DROP_OVERSIZE: return "oversize";
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

	memset(f, 0, sizeof(*f));
	f->past_drops = past_drops;
	f->past_nic_drops = past_nic_drops;
}
