/*
 * derive.c - delays and loops of the whole lab, from its links alone
 *
 * All figures are for an empty network and never below the true longest path: each stage counts
 * with its slowest link. In the cell fabric a hop takes the link's delay and one train at its rate
 * (a train departs when its last cell has left).
 *
 *   fabric path   2 fabric hops, with clusters in between 2 spine hops more
 *   credit loop   a request one way and its grant the other: 2 fabric paths
 *   one way       GPU link, credit loop, fabric path, GPU link; between buildings once more
 *                 credit loop and fabric path, and two edge links between
 *   base RTT      one way with a full packet, one way back with the smallest
 */
#include "topo/draft.h"
#include "base/time.h"

#define PACKET_WIRE_BYTES 24   /* preamble, FCS, gap: what a packet takes beside its frame */
#define FRAME_HEADER      14   /* Ethernet */
#define SMALL_PACKET      128  /* an ACK of the transport, IPv6 and UDP headers included */
#define ECN_MIN_LEAST_NS  1000 /* where there is no loop, a mark still needs a queue */

/* Extremes of one kind of link. */
struct extent {
	uint64_t delay_min, delay_max;
	uint64_t train_max; /* longest time of one train */
	uint64_t rate_min;  /* UINT64_MAX: none limited */
	bool any;
};

struct picture {
	struct extent kind[TOPO_KINDS_COUNT];
	bool spine;      /* some fabric has a second level */
	bool superspine; /* hosts reach other buildings */
};

static uint64_t hop_train(const struct topo *t, const struct topo_link *l)
{
	uint32_t bytes = t->fabric.train_bytes != 0 ? t->fabric.train_bytes : t->fabric.cell_bytes;

	return dsf_time_of_bytes(bytes, l->rate_bps);
}

static void take_picture(const struct topo *t, struct picture *p)
{
	bool ssw = false;
	uint32_t building = TOPO_NONE;

	for (uint32_t k = 0; k < TOPO_KINDS_COUNT; k++)
		p->kind[k] = (struct extent){ .delay_min = UINT64_MAX, .rate_min = UINT64_MAX };
	for (uint32_t i = 0; i < t->links_count; i++) {
		const struct topo_link *l = &t->links[i];
		struct extent *e = &p->kind[l->kind];
		uint64_t train = hop_train(t, l);

		e->any = true;
		e->delay_min = l->delay_ns < e->delay_min ? l->delay_ns : e->delay_min;
		e->delay_max = l->delay_ns > e->delay_max ? l->delay_ns : e->delay_max;
		e->train_max = train > e->train_max ? train : e->train_max;
		if (l->rate_bps != 0 && l->rate_bps < e->rate_min)
			e->rate_min = l->rate_bps;
	}
	p->spine = p->kind[TOPO_LINK_SPINE].any;
	p->superspine = false;
	for (uint32_t i = 0; i < t->nodes_count; i++) {
		const struct topo_node *n = &t->nodes[i];

		ssw = ssw || n->role == TOPO_ROLE_SSW;
		if (n->role == TOPO_ROLE_HOST && building == TOPO_NONE)
			building = n->building;
		else if (n->role == TOPO_ROLE_HOST && n->building != building)
			p->superspine = true;
	}
	p->superspine = p->superspine && ssw;
}

/* One Ethernet hop of a packet: delay and its time on the wire. */
static uint64_t ethernet_hop(const struct extent *e, uint32_t packet)
{
	uint64_t rate = e->rate_min == UINT64_MAX ? 0 : e->rate_min;

	if (!e->any)
		return 0;
	return e->delay_max + dsf_time_of_bytes(packet + FRAME_HEADER + PACKET_WIRE_BYTES, rate);
}

/* One way between two interface nodes of a fabric. */
static uint64_t fabric_path(const struct topo *t, const struct picture *p, uint32_t packet)
{
	const struct extent *fabric = &p->kind[TOPO_LINK_FABRIC];
	const struct extent *spine = &p->kind[TOPO_LINK_SPINE];

	if (t->fabric.mode == TOPO_FABRIC_ECMP)
		return 2 * ethernet_hop(fabric, packet) + 2 * ethernet_hop(spine, packet);
	return 2 * (fabric->delay_max + fabric->train_max) +
	       (p->spine ? 2 * (spine->delay_max + spine->train_max) : 0);
}

static uint64_t one_way(const struct topo *t, const struct picture *p, uint32_t packet)
{
	uint64_t crossing = fabric_path(t, p, packet) + t->credit_loop_ns;
	uint64_t ns = 2 * ethernet_hop(&p->kind[TOPO_LINK_GPU], packet) + crossing;

	if (p->superspine)
		ns += crossing + 2 * ethernet_hop(&p->kind[TOPO_LINK_EDGE], packet);
	return ns;
}

static uint64_t spread(const struct extent *e)
{
	return e->any ? e->delay_max - e->delay_min : 0;
}

void topo_derive(struct topo *t)
{
	struct picture p;
	uint32_t packet = t->transport.payload_bytes;

	take_picture(t, &p);
	t->delay_skew_ns =
		2 * spread(&p.kind[TOPO_LINK_FABRIC]) + 2 * spread(&p.kind[TOPO_LINK_SPINE]);
	t->credit_loop_ns = t->fabric.mode == TOPO_FABRIC_DSF && p.kind[TOPO_LINK_FABRIC].any
				    ? 2 * fabric_path(t, &p, 0)
				    : 0;
	t->base_rtt_ns = one_way(t, &p, packet) + one_way(t, &p, SMALL_PACKET);
	if (t->fabric.ecn_min_ns == TOPO_AUTO)
		t->fabric.ecn_min_ns = 2 * t->credit_loop_ns > ECN_MIN_LEAST_NS
					       ? 2 * t->credit_loop_ns
					       : ECN_MIN_LEAST_NS;
}
