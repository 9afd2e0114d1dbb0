#include "node/ethernet.h"
#include "node/host_state.h"

#define RNG_KIND 0x686f7374706f7274ull /* "hostport" */

int node_host_port_init(struct node_host *h, struct node_host_port *p, uint32_t number)
{
	const struct topo *t = h->topo;
	struct node_impairment impairment;

	p->port = topo_node_port(t, h->self, number);
	p->link = &t->links[p->port->link];
	p->gateway = t->ports[p->port->peer].mac;
	p->number = number;
	p->rail = p->port->rail;
	p->plane = p->port->plane;
	p->view.port = number;
	metaroce_list_init(&p->datagrams);
	dsf_rng_fork(&p->rng, h->seed, RNG_KIND, (uint64_t)h->index << 16 | number);
	impairment = node_impairment_own(p->link);
	node_host_port_impair(p, &impairment);
	return p->rail < h->nics_count && p->plane < METAROCE_PLANES_MAX ? 0 : -DSF_E_BADFIELD;
}

void node_host_frame_give(struct node_host *h, struct node_host_frame *frame)
{
	if (frame->extra_size > 0)
		dsf_memory_delete(h->memory, frame, frame->extra_size);
	else
		dsf_pool_give(&h->frames, frame);
}

static void drop_replies(struct node_host *h, struct node_host_port *p)
{
	while (p->reply_first != NULL) {
		struct node_host_frame *frame = p->reply_first;

		p->reply_first = frame->next;
		node_host_frame_give(h, frame);
	}
	p->reply_last = NULL;
	p->replies = 0;
}

void node_host_port_close(struct node_host *h, struct node_host_port *p)
{
	drop_replies(h, p);
}

void node_host_port_carrier(struct node_host *h, struct node_host_port *p, bool up, dsf_instant now)
{
	if (p->carrier == up)
		return;
	p->carrier = up;
	h->ports_up += up ? 1u : 0u - 1u;
	p->free_at = p->last_depart = now;
	p->burst = 0;
	if (!up)
		drop_replies(h, p);
	metaroce_carrier(h->nics[p->rail].transport, p->plane, up, now);
	dsf_trace_emit(h->trace, now, up ? DSF_EVENT_PORT_UP : DSF_EVENT_PORT_DOWN, h->index,
		p->number, 0);
}

void node_host_port_impair(struct node_host_port *p, const struct node_impairment *i)
{
	p->impairment = *i;
	p->rate_bps = i->rate_bps > 0 ? i->rate_bps : p->link->rate_bps;
	p->view.rate_bps = p->rate_bps;
}

struct node_host_frame *node_host_frame_take(struct node_host *h)
{
	struct node_host_frame *frame = dsf_pool_take(&h->frames);

	if (frame != NULL) {
		frame->extra_size = 0;
		frame->next = NULL;
	}
	return frame;
}

bool node_host_port_reply(struct node_host *h, struct node_host_port *p, const uint8_t *bytes,
	uint32_t stored, uint32_t size)
{
	struct node_host_frame *frame;
	uint32_t extra = 0;

	if (p->replies == NODE_HOST_REPLIES_MAX)
		return false;
	if (stored <= sizeof(frame->bytes)) {
		frame = node_host_frame_take(h);
	} else {
		extra = (uint32_t)sizeof(*frame) + stored;
		frame = dsf_memory_new(h->memory, extra);
	}
	if (frame == NULL)
		return false;
	frame->extra_size = extra;
	frame->next = NULL;
	frame->stored = stored;
	frame->size = size;
	memcpy(frame->bytes, bytes, stored);
	if (p->reply_last != NULL)
		p->reply_last->next = frame;
	else
		p->reply_first = frame;
	p->reply_last = frame;
	p->replies++;
	return true;
}

void node_host_port_finish(struct node_host *h, const struct node_host_port *p,
	struct node_host_frame *frame, const struct node_host_datagram *d, struct node_output *out)
{
	uint8_t *udp = frame->bytes + IP_ETHERNET_SIZE + IP_HEADER_SIZE;
	uint32_t udp_size = IP_UDP_SIZE + d->head_size + d->payload_size;
	uint32_t here = IP_UDP_SIZE + d->head_size;
	uint64_t sum = ip_checksum_pseudo(&p->port->address, &d->target, udp_size, IP_PROTOCOL_UDP);

	ip_packet_write_ethernet(frame->bytes, &p->gateway, &p->port->mac);
	ip_packet_write_header(frame->bytes + IP_ETHERNET_SIZE, &p->port->address, &d->target,
		d->dscp, d->ecn, IP_PROTOCOL_UDP, IP_HOP_LIMIT, udp_size);
	dsf_store_be16(udp, d->source_port);
	dsf_store_be16(udp + 2, d->target_port);
	dsf_store_be16(udp + 4, (uint16_t)udp_size);
	dsf_store_be16(udp + 6, 0);
	out->checksum_start = out->checksum_offset = NODE_CHECKSUM_NONE;
	out->spans_count = 0;
	if (h->simulated && d->payload_size > 0)
		here += metaroce_name_put(udp + here, d->memory, d->offset, d->payload_size);
	if (h->simulated || d->payload_size == 0) {
		ip_checksum_store(udp + 6, ip_checksum_add(sum, 0, udp, here));
	} else {
		/* Whoever puts the payload behind the head sums it too. */
		uint16_t partial = ip_checksum_fold(sum);

		memcpy(udp + 6, &partial, sizeof(partial));
		out->checksum_start = IP_ETHERNET_SIZE + IP_HEADER_SIZE;
		out->checksum_offset = 6;
		out->spans_count = 1;
		out->spans[0] = (struct node_span){ d->memory, d->offset, d->payload_size };
	}
	frame->stored = IP_ETHERNET_SIZE + IP_HEADER_SIZE + here;
	frame->size = IP_ETHERNET_SIZE + IP_HEADER_SIZE + udp_size;
}

static bool transport_output(struct node_host *h, struct node_host_port *p,
	struct node_host_frame *frame, struct node_output *out, dsf_instant now)
{
	struct node_host_nic *nic = &h->nics[p->rail];
	struct node_host_datagram d = { .target_port = METAROCE_UDP_PORT };
	struct metaroce_packet packet;

	if (!metaroce_output(
		    nic->transport, p->plane, frame->bytes + NODE_HOST_HEADERS, &packet, now))
		return false;
	d.target = packet.target;
	d.source_port = packet.source_port;
	d.ecn = packet.ect ? IP_ECN_ECT0 : IP_ECN_NOT_ECT;
	d.dscp = packet.control ? NODE_HOST_CONTROL_DSCP : NODE_HOST_DSCP;
	d.head_size = packet.head_size;
	d.memory = packet.memory;
	d.offset = packet.offset;
	d.payload_size = packet.payload_size;
	node_host_port_finish(h, p, frame, &d, out);
	if (packet.sent != NULL)
		node_host_flow_sent(h, (struct node_host_flow *)(uintptr_t)packet.sent_user, now);
	return true;
}

static bool transport_wants(const struct node_host *h, const struct node_host_port *p)
{
	return metaroce_wants(h->nics[p->rail].transport, p->plane);
}

bool node_host_port_wants(const struct node_host *h, const struct node_host_port *p)
{
	return p->carrier && (p->reply_first != NULL || !metaroce_list_empty(&p->datagrams) ||
				     transport_wants(h, p));
}

/* Transport and datagrams take turns, answers of the host itself go first. */
static struct node_host_frame *next_frame(
	struct node_host *h, struct node_host_port *p, struct node_output *out, dsf_instant now)
{
	struct node_host_frame *frame = p->reply_first;
	bool made;

	out->checksum_start = out->checksum_offset = NODE_CHECKSUM_NONE;
	out->spans_count = 0;
	if (frame != NULL) {
		p->reply_first = frame->next;
		if (p->reply_first == NULL)
			p->reply_last = NULL;
		p->replies--;
		return frame;
	}
	frame = node_host_frame_take(h);
	if (frame == NULL)
		return NULL;
	p->datagram_turn = !p->datagram_turn;
	made = (p->datagram_turn && node_host_udp_output(h, p, frame, out, now)) ||
	       transport_output(h, p, frame, out, now) ||
	       (!p->datagram_turn && node_host_udp_output(h, p, frame, out, now));
	if (made)
		return frame;
	node_host_frame_give(h, frame);
	return NULL;
}

/* Takes the line for a frame. */
static void occupy(struct node_host_port *p, uint32_t size, dsf_instant now)
{
	dsf_instant begin = dsf_time_max(p->free_at, now);

	if (p->rate_bps > 0) {
		p->free_at = dsf_time_after(
			begin, dsf_time_of_bytes(size + FABRIC_ETHERNET_OVERHEAD, p->rate_bps));
		return;
	}
	p->burst = dsf_time_before(p->free_at, now) ? 1 : p->burst + 1;
	p->free_at = begin;
	if (p->burst >= NODE_HOST_BURST) {
		p->free_at = dsf_time_after(now, NODE_HOST_BURST_NS);
		p->burst = 0;
	}
}

bool node_host_port_output(
	struct node_host *h, struct node_host_port *p, struct node_output *out, dsf_instant now)
{
	/* Live, the switch at the far end does it, to what the kernel sends too: uring/inbound. */
	static const struct node_impairment none;
	const struct node_impairment *i = h->simulated ? &p->impairment : &none;
	struct node_host_frame *frame;

	while (dsf_time_due(p->free_at, now) && node_host_port_wants(h, p)) {
		frame = next_frame(h, p, out, now);
		if (frame == NULL)
			return false;
		occupy(p, frame->size, now);
		if (i->silent || dsf_rng_chance(&p->rng, i->loss_ppm)) {
			p->impaired++;
			p->view.dropped_tx++;
			node_host_frame_give(h, frame);
			continue;
		}
		if (dsf_rng_chance(&p->rng, i->corrupt_ppm)) {
			p->corrupted++;
			p->view.dropped_tx++;
			node_host_frame_give(h, frame);
			continue;
		}
		out->kind = NODE_OUTPUT_FRAME;
		out->port = p->number;
		out->depart = node_ethernet_departure(
			i, &p->rng, p->rate_bps, p->free_at, &p->last_depart);
		out->head = frame->bytes;
		out->head_size = frame->stored;
		out->size = frame->size;
		out->buffer = frame;
		out->request = 0;
		p->view.frames_tx++;
		p->view.bytes_tx += frame->size;
		h->packets_tx++;
		return true;
	}
	return false;
}
