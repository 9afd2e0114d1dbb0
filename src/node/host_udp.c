#include "node/host_state.h"

/* A flow that can't send at its rate is behind by at most so many datagrams. */
#define BEHIND_MAX 16u

static uint32_t wire_bytes(const struct node_host *h)
{
	return NODE_HOST_HEADERS + (uint32_t)h->spec.size_bytes + FABRIC_ETHERNET_OVERHEAD;
}

static bool uses_plane(const struct node_host *h, const struct node_host_flow *flow, uint32_t plane)
{
	static const struct dsf_ip6 none;

	return (h->spec.plane == UINT32_MAX || h->spec.plane == plane) &&
	       flow->nic->port[plane] != TOPO_NONE &&
	       !dsf_ip6_equal(&flow->peer.address[plane], &none);
}

int node_host_udp_open(struct node_host *h, struct node_host_flow *flow)
{
	uint64_t rate_bps = 0;
	uint32_t usable = 0;

	flow->udp = dsf_memory_new(h->memory, sizeof(*flow->udp));
	if (!flow->sender)
		flow->fct = dsf_memory_new(h->memory, sizeof(*flow->fct));
	if (flow->udp == NULL || (flow->fct == NULL && !flow->sender))
		return -DSF_E_NOMEM;
	flow->udp->flow = flow;
	for (uint32_t plane = 0; plane < h->topo->planes && plane < METAROCE_PLANES_MAX; plane++) {
		if (!uses_plane(h, flow, plane))
			continue;
		usable++;
		rate_bps += h->ports[flow->nic->port[plane]].rate_bps;
	}
	if (usable == 0)
		return -DSF_E_UNREACHABLE;
	if (h->spec.rate_bps > 0)
		rate_bps = h->spec.rate_bps;
	flow->udp->interval_ns = dsf_time_of_bytes(wire_bytes(h), rate_bps);
	return 0;
}

void node_host_udp_close(struct node_host *h, struct node_host_flow *flow)
{
	metaroce_list_remove(&flow->udp->link);
	dsf_memory_delete(h->memory, flow->udp, sizeof(*flow->udp));
	flow->udp = NULL;
}

dsf_instant node_host_udp_end(const struct node_host *h, const struct node_host_flow *flow)
{
	unsigned __int128 ns = (unsigned __int128)flow->udp->interval_ns * h->spec.iterations;

	if (h->spec.iterations == 0 || ns > UINT64_MAX / 2)
		return DSF_NEVER;
	return dsf_time_after(h->spec.start_at, (uint64_t)ns);
}

/* The next plane in turn that has carrier; TOPO_NONE: none has. */
static uint32_t next_port(struct node_host *h, struct node_host_flow *flow)
{
	struct node_host_datagrams *u = flow->udp;

	for (uint32_t i = 0; i < h->topo->planes && i < METAROCE_PLANES_MAX; i++) {
		uint32_t plane = u->plane;

		u->plane = u->plane + 1 >= h->topo->planes ? 0 : u->plane + 1;
		if (uses_plane(h, flow, plane) && h->ports[flow->nic->port[plane]].carrier)
			return flow->nic->port[plane];
	}
	return TOPO_NONE;
}

void node_host_udp_due(struct node_host *h, struct node_host_flow *flow, dsf_instant now)
{
	struct node_host_datagrams *u = flow->udp;
	uint32_t port;

	if (dsf_time_is_never(flow->first_at)) {
		flow->first_at = now;
		u->next_at = now;
	}
	if (dsf_time_due(h->spec.stop_at, now))
		flow->stopped = true;
	if (flow->stopped || (h->spec.iterations > 0 && flow->posted >= h->spec.iterations)) {
		metaroce_list_remove(&u->link);
		flow->last_at =
			now; /* the last datagram's turn is over when the next one's comes */
		node_host_flow_ended(h, flow, now);
		return;
	}
	port = next_port(h, flow);
	if (port != TOPO_NONE) {
		metaroce_list_push(&h->ports[port].datagrams, &u->link);
		return;
	}
	/* No port has carrier: what is due now is lost like on any dead port, in time. */
	flow->posted++;
	flow->completed++;
	flow->bytes += h->spec.size_bytes;
	u->next_at = dsf_time_after(
		dsf_time_max(u->next_at, now), u->interval_ns > 0 ? u->interval_ns : NS_PER_US);
	(void)dsf_heap_set(&h->timers, &flow->start, u->next_at);
}

static uint16_t source_port(const struct node_host_flow *flow)
{
	return (uint16_t)(METAROCE_SOURCE_PORT | (dsf_mix(flow->memory) & 0x3fff));
}

bool node_host_udp_output(struct node_host *h, struct node_host_port *p,
	struct node_host_frame *frame, struct node_output *out, dsf_instant now)
{
	struct metaroce_link *link = metaroce_list_first(&p->datagrams);
	struct node_host_datagram d = { .target_port = NODE_HOST_UDP_PORT,
		.dscp = h->spec.dscp,
		.ecn = IP_ECN_NOT_ECT, /* nobody would heed a mark */
		.head_size = NODE_HOST_UDP_HEAD };
	uint8_t *head = frame->bytes + NODE_HOST_HEADERS;
	struct node_host_datagrams *u;
	struct node_host_flow *flow;
	uint64_t behind_ns;

	if (link == NULL)
		return false;
	u = DSF_CONTAINER(link, struct node_host_datagrams, link);
	flow = u->flow;
	metaroce_list_remove(link);
	dsf_store_be32(head, h->run);
	dsf_store_be32(head + 4, flow->index);
	dsf_store_be64(head + 8, flow->posted);
	dsf_store_be64(head + 16, now.ns);
	d.target = flow->peer.address[p->plane];
	d.source_port = source_port(flow);
	d.memory = flow->memory;
	d.payload_size = (uint32_t)h->spec.size_bytes - NODE_HOST_UDP_HEAD;
	d.offset = flow->posted * d.payload_size;
	node_host_port_finish(h, p, frame, &d, out);
	flow->posted++;
	flow->completed++;
	flow->bytes += h->spec.size_bytes;
	u->next_at = dsf_time_after(u->next_at, u->interval_ns);
	behind_ns = BEHIND_MAX * u->interval_ns;
	if (u->next_at.ns + behind_ns < now.ns)
		u->next_at.ns = now.ns - behind_ns;
	if (dsf_time_due(u->next_at, now))
		node_host_udp_due(h, flow, now);
	else
		(void)dsf_heap_set(&h->timers, &flow->start, u->next_at);
	return true;
}

/* Once, in order, or late: what the sequence number says. */
static void count(struct node_host_flow *flow, uint64_t sequence)
{
	struct node_host_datagrams *u = flow->udp;
	uint64_t bit = sequence % NODE_HOST_UDP_WINDOW;

	if (sequence >= u->highest) {
		/* Numbers between the highest so far and this one haven't come (yet). */
		uint64_t skipped = sequence - u->highest;

		if (skipped >= NODE_HOST_UDP_WINDOW) {
			memset(u->seen, 0, sizeof(u->seen));
		} else {
			for (uint64_t i = u->highest; i < sequence; i++)
				u->seen[i % NODE_HOST_UDP_WINDOW / 64] &= ~(1ull << (i % 64));
		}
		u->highest = sequence + 1;
	} else {
		flow->reordered++;
		/* Older than we remember counts as a repeat: it can't be told from one. */
		if (u->highest - sequence > NODE_HOST_UDP_WINDOW ||
			(u->seen[bit / 64] >> (bit % 64) & 1u) != 0) {
			flow->duplicated++;
			return;
		}
	}
	u->seen[bit / 64] |= 1ull << (bit % 64);
	u->unique++;
	flow->completed++;
}

static struct node_host_flow *receiver_of(struct node_host *h, uint32_t index)
{
	uint32_t low = 0, high = h->flows_count;

	/* Flows are in the spec's order, the receiving half of one first. */
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (h->flows[middle].index < index)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == h->flows_count || h->flows[low].index != index || h->flows[low].sender)
		return NULL;
	return &h->flows[low];
}

int node_host_udp_input(struct node_host *h, struct node_host_port *p, const struct ip_packet *ip,
	const uint8_t *bytes, uint32_t stored, dsf_instant now)
{
	const uint8_t *head = bytes + ip->transport_offset + IP_UDP_SIZE;
	uint32_t size = ip->transport_size - IP_UDP_SIZE;
	uint32_t here = stored - ip->transport_offset - IP_UDP_SIZE;
	struct node_host_flow *flow;
	uint64_t sequence, before;
	uint32_t payload;

	if (here > size)
		here = size; /* Ethernet padding */
	if (here < NODE_HOST_UDP_HEAD)
		return -DSF_E_TRUNCATED;
	flow = receiver_of(h, dsf_load_be32(head + 4));
	sequence = dsf_load_be64(head + 8);
	if (flow == NULL || flow->udp == NULL || dsf_load_be32(head) != h->run ||
		size != h->spec.size_bytes || &h->nics[p->rail] != flow->nic ||
		!dsf_ip6_equal(&ip->source, &flow->peer.address[p->plane]))
		return -DSF_E_UNKNOWN;
	if (h->spec.iterations > 0 && sequence >= h->spec.iterations)
		return -DSF_E_BADFIELD;
	before = flow->udp->unique;
	count(flow, sequence);
	if (flow->udp->unique == before)
		return -DSF_E_DUPLICATE;
	payload = size - NODE_HOST_UDP_HEAD;
	flow->bytes += size;
	flow->bytes_wrong += metaroce_payload_check(flow->memory, sequence * payload,
		head + NODE_HOST_UDP_HEAD, here - NODE_HOST_UDP_HEAD, payload);
	flow->marked += ip->ecn == IP_ECN_CE;
	if (dsf_time_is_never(flow->first_at))
		flow->first_at = now;
	flow->last_at = now;
	dsf_histogram_add(
		flow->fct, dsf_time_since((dsf_instant){ dsf_load_be64(head + 16) }, now));
	return 0;
}
