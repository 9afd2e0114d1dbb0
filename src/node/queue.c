#include "node/queue.h"
#include "base/err.h"
#include "node/edge.h"

#define RNG_KIND 0x65636e206d61726bull /* "ecn mark" */

/* A weight of 1 is so many bytes a turn, so that every class whose turn it is has room for some
 * packets of usual size (ours). */
#define TURN_BYTES 2048u

int node_queues_init(struct node_queues *q, struct node_ethernet *ethernet,
	const struct topo_fabric *fabric, uint64_t seed, uint64_t id)
{
	memset(q, 0, sizeof(*q));
	q->memory = ethernet->memory;
	q->ethernet = ethernet;
	q->train_bytes = fabric->train_bytes;
	q->weights[FABRIC_CLASS_RDMA] = fabric->weight_rdma;
	q->weights[FABRIC_CLASS_DEFAULT] = fabric->weight_default;
	dsf_heap_init(&q->timers, q->memory);
	q->ports = dsf_memory_new(q->memory, ethernet->count * sizeof(*q->ports));
	if (q->ports == NULL)
		return -DSF_E_NOMEM;
	q->count = ethernet->count;
	for (uint32_t i = 0; i < q->count; i++) {
		q->ports[i].turn = FABRIC_CLASS_RDMA;
		q->ports[i].limit_bytes = node_ethernet_queue_bytes(ethernet, i);
		q->ports[i].ecn_min_bytes = q->ports[i].ecn_max_bytes = UINT64_MAX;
		dsf_rng_fork(&q->ports[i].rng, seed, RNG_KIND, id << 16 | i);
	}
	return dsf_heap_reserve(&q->timers, q->count);
}

void node_queues_close(struct node_queues *q)
{
	for (uint32_t i = 0; i < q->count; i++)
		node_queues_flush(q, i);
	dsf_memory_delete(q->memory, q->ports, q->count * sizeof(*q->ports));
	dsf_heap_close(&q->timers);
	q->ports = NULL;
	q->count = 0;
}

/* In parts of a million. */
static uint32_t mark_ppm(const struct node_queue_port *p, uint64_t bytes)
{
	if (bytes >= p->ecn_max_bytes)
		return 1000000;
	if (bytes <= p->ecn_min_bytes)
		return 0;
	return (uint32_t)((bytes - p->ecn_min_bytes) * 1000000u /
			  (p->ecn_max_bytes - p->ecn_min_bytes));
}

/* What the next packet of a class takes; 0: none waits. */
static uint32_t first_bytes(const struct node_queue_class *c)
{
	return c->packets.first == NULL ? 0 : fabric_packet_wire_bytes(c->packets.first);
}

static bool waits(const struct node_queue_port *p)
{
	for (int i = 0; i < FABRIC_CLASSES; i++)
		if (p->classes[i].packets.first != NULL)
			return true;
	return false;
}

/* Who sends next; something waits. */
static struct node_queue_class *choose(const struct node_queues *q, struct node_queue_port *p)
{
	struct node_queue_class *c = &p->classes[FABRIC_CLASS_NC];

	if (c->packets.first != NULL)
		return c;
	for (;;) {
		c = &p->classes[p->turn];
		if (c->packets.first != NULL && c->deficit_bytes >= first_bytes(c))
			return c;
		if (c->packets.first == NULL)
			c->deficit_bytes = 0; /* who has nothing to send saves nothing */
		p->turn = p->turn + 1 == FABRIC_CLASSES ? FABRIC_CLASS_RDMA : p->turn + 1;
		c = &p->classes[p->turn];
		c->deficit_bytes += (uint64_t)q->weights[p->turn] * TURN_BYTES;
	}
}

/* The port takes what it may. */
static void serve(struct node_queues *q, uint32_t port, dsf_instant now)
{
	const struct node_ethernet *e = q->ethernet;
	struct node_queue_port *p = &q->ports[port];

	while (waits(p) && (node_ethernet_backlog(e, port, now) < q->train_bytes ||
				   dsf_time_due(node_ethernet_free_at(e, port), now))) {
		struct node_queue_class *c = choose(q, p);
		struct fabric_packet *packet = fabric_packet_queue_pop(&c->packets);
		uint32_t bytes = fabric_packet_wire_bytes(packet);

		c->bytes -= bytes;
		if (c != &p->classes[FABRIC_CLASS_NC])
			c->deficit_bytes -= bytes;
		node_ethernet_send(q->ethernet, port, packet, now);
	}
	if (!waits(p)) {
		dsf_heap_remove(&q->timers, &p->timer);
		return;
	}
	/* Half of what it has taken leaves meanwhile. There is room for all timers. */
	(void)dsf_heap_set(&q->timers, &p->timer,
		dsf_time_after(now, (dsf_time_since(now, node_ethernet_free_at(e, port)) + 1) / 2));
}

int node_queues_push(
	struct node_queues *q, uint32_t port, struct fabric_packet *packet, dsf_instant now)
{
	struct node_queue_port *p = &q->ports[port];
	struct node_queue_class *c = &p->classes[packet->class];
	uint32_t bytes = fabric_packet_wire_bytes(packet);

	if (c->bytes + bytes > p->limit_bytes) {
		p->dropped++;
		fabric_packet_free(q->ethernet->packets, packet);
		return -DSF_E_FULL;
	}
	if (packet->ecn_capable && dsf_rng_chance(&p->rng, mark_ppm(p, c->bytes))) {
		p->marked++;
		node_edge_set_ce(packet->bytes);
	}
	fabric_packet_queue_push(&c->packets, packet);
	c->bytes += bytes;
	if (p->timer.place == 0)
		serve(q, port, now);
	return 0;
}

void node_queues_flush(struct node_queues *q, uint32_t port)
{
	struct node_queue_port *p = &q->ports[port];
	struct fabric_packet *packet;

	for (int i = 0; i < FABRIC_CLASSES; i++) {
		while ((packet = fabric_packet_queue_pop(&p->classes[i].packets)) != NULL) {
			p->dropped++;
			fabric_packet_free(q->ethernet->packets, packet);
		}
		p->classes[i].bytes = p->classes[i].deficit_bytes = 0;
	}
	dsf_heap_remove(&q->timers, &p->timer);
}

uint64_t node_queues_bytes(const struct node_queues *q, uint32_t port)
{
	uint64_t bytes = 0;

	for (int i = 0; i < FABRIC_CLASSES; i++)
		bytes += q->ports[port].classes[i].bytes;
	return bytes;
}

dsf_instant node_queues_deadline(const struct node_queues *q)
{
	return dsf_heap_at(&q->timers);
}

void node_queues_expire(struct node_queues *q, dsf_instant now)
{
	while (dsf_time_due(dsf_heap_at(&q->timers), now)) {
		struct node_queue_port *p =
			DSF_CONTAINER(dsf_heap_first(&q->timers), struct node_queue_port, timer);

		serve(q, (uint32_t)(p - q->ports), now);
	}
}
