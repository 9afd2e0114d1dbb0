#include "uring/inbound.h"
#include <string.h>
#include "node/ethernet.h"

#define RNG_KIND 0x696e626f756e64ull /* "inbound" */

void uring_inbound_init(struct uring_inbound *in, const struct topo *t,
	const struct topo_node *self, uint32_t number)
{
	const struct topo_port *port = topo_node_port(t, self, number);
	const struct topo_link *link = &t->links[port->link];
	enum topo_role peer = t->nodes[t->ports[port->peer].node].role;

	memset(in, 0, sizeof(*in));
	in->used = self->role != TOPO_ROLE_HOST &&
		   (peer == TOPO_ROLE_HOST || peer == TOPO_ROLE_EXTERNAL);
	in->impairment = node_impairment_own(link);
	in->rate_bps = link->rate_bps;
	dsf_rng_fork(&in->rng, t->seed, RNG_KIND, (uint64_t)(port - t->ports));
}

bool uring_inbound_pass(struct uring_inbound *in, dsf_instant *due)
{
	if (!in->used)
		return true;
	*due = node_ethernet_departure(
		&in->impairment, &in->rng, in->rate_bps, *due, &in->last_due);
	if (in->impairment.silent || dsf_rng_chance(&in->rng, in->impairment.loss_ppm)) {
		in->lost++;
		return false;
	}
	if (dsf_rng_chance(&in->rng, in->impairment.corrupt_ppm)) {
		in->corrupted++;
		return false;
	}
	return true;
}
