#include "node/ethernet.h"
#include "base/err.h"

#define RNG_KIND 0x65746865726e6574ull /* "ethernet" */

int node_ethernet_init(struct node_ethernet *e, const struct dsf_memory *memory,
	struct fabric_packets *packets, uint32_t count, uint64_t seed, uint64_t id)
{
	memset(e, 0, sizeof(*e));
	e->memory = memory;
	e->packets = packets;
	e->ports = dsf_memory_new(memory, count * sizeof(*e->ports));
	if (e->ports == NULL)
		return -DSF_E_NOMEM;
	e->count = count;
	for (uint32_t i = 0; i < count; i++) {
		e->ports[i].whole = e->ports[i].next = i;
		dsf_rng_fork(&e->ports[i].rng, seed, RNG_KIND, id << 16 | i);
	}
	return 0;
}

void node_ethernet_close(struct node_ethernet *e)
{
	struct fabric_packet *packet;

	while ((packet = fabric_packet_queue_pop(&e->out)) != NULL)
		fabric_packet_free(e->packets, packet);
	dsf_memory_delete(e->memory, e->ports, e->count * sizeof(*e->ports));
	e->ports = NULL;
}

void node_ethernet_join(struct node_ethernet *e, uint32_t member, uint32_t whole)
{
	if (member == whole)
		return;
	e->ports[member].whole = whole;
	e->ports[member].next = e->ports[whole].next;
	e->ports[whole].next = member;
}

/* The member of a hyperport that has carrier and is free first; NULL: none has carrier. Who was
 * idle for longest is taken first, so idle members take turns. */
static struct node_ethernet_port *free_first(const struct node_ethernet *e, uint32_t port)
{
	struct node_ethernet_port *first = NULL;
	uint32_t i = port;

	do {
		struct node_ethernet_port *p = &e->ports[i];

		if (p->carrier && (first == NULL || dsf_time_before(p->free_at, first->free_at)))
			first = p;
		i = p->next;
	} while (i != port);
	return first;
}

void node_ethernet_carrier(struct node_ethernet *e, uint32_t port, bool up, dsf_instant now)
{
	struct node_ethernet_port *p = &e->ports[port];

	p->carrier = false;
	if (free_first(e, p->whole) == NULL) /* nothing is under way that could be overtaken */
		e->ports[p->whole].last_depart = now;
	p->carrier = up;
	p->free_at = now;
}

bool node_ethernet_is_up(const struct node_ethernet *e, uint32_t port)
{
	return free_first(e, port) != NULL;
}

uint64_t node_ethernet_rate(const struct node_ethernet *e, uint32_t port)
{
	bool up = node_ethernet_is_up(e, port);
	uint64_t sum = 0;
	uint32_t i = port;

	do {
		const struct node_ethernet_port *p = &e->ports[i];

		if (p->rate_bps == 0)
			return 0;
		if (p->carrier == up)
			sum += p->rate_bps;
		i = p->next;
	} while (i != port);
	return sum;
}

uint64_t node_ethernet_queue_bytes(const struct node_ethernet *e, uint32_t port)
{
	uint64_t sum = 0;
	uint32_t i = port;

	do {
		sum += e->ports[i].queue_bytes;
		i = e->ports[i].next;
	} while (i != port);
	return sum;
}

uint64_t node_ethernet_backlog(const struct node_ethernet *e, uint32_t port, dsf_instant now)
{
	uint64_t sum = 0;
	uint32_t i = port;

	do {
		const struct node_ethernet_port *p = &e->ports[i];

		if (p->carrier)
			sum += dsf_bytes_of_time(dsf_time_since(now, p->free_at), p->rate_bps);
		i = p->next;
	} while (i != port);
	return sum;
}

dsf_instant node_ethernet_free_at(const struct node_ethernet *e, uint32_t port)
{
	const struct node_ethernet_port *p = free_first(e, port);

	return p == NULL ? DSF_NEVER : p->free_at;
}

bool node_ethernet_send(
	struct node_ethernet *e, uint32_t port, struct fabric_packet *packet, dsf_instant now)
{
	struct node_ethernet_port *p = free_first(e, port);
	uint32_t size = packet->size;

	if (p == NULL || node_ethernet_backlog(e, port, now) > node_ethernet_queue_bytes(e, port)) {
		e->ports[port].dropped++;
		fabric_packet_free(e->packets, packet);
		return false;
	}
	p->free_at = dsf_time_after(dsf_time_max(p->free_at, now),
		dsf_time_of_bytes(fabric_packet_wire_bytes(packet), p->rate_bps));
	packet->since = node_ethernet_departure(
		&p->impairment, &p->rng, p->rate_bps, p->free_at, &e->ports[port].last_depart);
	packet->system_port = (uint32_t)(p - e->ports);
	if (p->impairment.silent || dsf_rng_chance(&p->rng, p->impairment.loss_ppm)) {
		p->impaired++;
		fabric_packet_free(e->packets, packet);
		return false;
	}
	if (dsf_rng_chance(&p->rng, p->impairment.corrupt_ppm)) {
		p->corrupted++;
		fabric_packet_free(e->packets, packet);
		return false;
	}
	p->frames_tx++;
	p->bytes_tx += size;
	fabric_packet_queue_push(&e->out, packet);
	return true;
}

void node_ethernet_impair(struct node_ethernet *e, uint32_t port,
	const struct node_impairment *impairment, uint64_t link_rate_bps)
{
	struct node_ethernet_port *p = &e->ports[port];

	p->impairment = *impairment;
	p->rate_bps = impairment->rate_bps > 0 ? impairment->rate_bps : link_rate_bps;
}
