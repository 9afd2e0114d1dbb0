#include "tests/sim/generator.h"
#include <stdlib.h>
#include "base/cursor.h"
#include "base/err.h"
#include "base/pool.h"
#include "base/rng.h"
#include "fabric/packet.h"
#include "ip/ndp.h"
#include "node/host.h"

#define PORTS_MAX  16u
#define UDP_TARGET 7000u
#define HEAD       96u /* bytes carried of a packet whose rest goes by name */
#define AT_UDP     (IP_ETHERNET_SIZE + IP_HEADER_SIZE)
#define AT_FLOW    (AT_UDP + IP_UDP_SIZE)
#define AT_NUMBER  (AT_FLOW + 4)
#define AT_SENT    (AT_NUMBER + 8)
#define AT_FILL    (AT_SENT + 8)

struct packet {
	struct packet *next;
	dsf_instant depart;
	uint32_t port, size, stored;
	bool large;
	uint8_t bytes[];
};

struct node_host {
	const struct topo *topo;
	const struct topo_node *self;
	const struct dsf_memory *memory;
	uint32_t index;
	struct ip_ndp *ndp;
	struct dsf_pool small, large;
	struct packet *first, *last;
	bool carrier[PORTS_MAX];
	dsf_instant free_at[PORTS_MAX];
};

/* The table of the test that runs. */
static const struct topo *topo;
static struct flow {
	struct generator_flow flow;
	struct generator_count count;
	uint32_t host;
	const struct topo_port *source, *target;
	dsf_instant next;
	uint64_t number, expected;
} flows[GENERATOR_FLOWS_MAX];
static uint32_t flows_count;

void generator_reset(const struct topo *t)
{
	topo = t;
	flows_count = 0;
	memset(flows, 0, sizeof(flows));
}

uint32_t generator_add(const struct generator_flow *flow)
{
	struct flow *f = &flows[flows_count];

	if (flows_count == GENERATOR_FLOWS_MAX || flow->size < GENERATOR_SIZE_MIN)
		abort();
	f->flow = *flow;
	f->host = topo_endpoint(topo, flow->source).host;
	f->source = topo_endpoint_port(topo, flow->source, flow->plane);
	f->target = topo_endpoint_port(topo, flow->target, flow->plane);
	if (f->source == NULL || f->target == NULL)
		abort();
	if (f->flow.rate_bps == 0)
		f->flow.rate_bps = topo->links[f->source->link].rate_bps;
	f->next = flow->start;
	return flows_count++;
}

void generator_kick(struct sim *s)
{
	struct node_command nothing = { .kind = NODE_COMMAND_WORKLOAD_STOP };

	for (uint32_t i = 0; i < topo->nodes_count; i++)
		if (topo->nodes[i].role == TOPO_ROLE_HOST)
			(void)sim_command(s, i, &nothing);
}

void generator_stop(dsf_instant now)
{
	for (uint32_t i = 0; i < flows_count; i++)
		flows[i].flow.stop = now;
}

uint32_t generator_flows(void)
{
	return flows_count;
}

const struct generator_count *generator_count(uint32_t flow)
{
	return &flows[flow].count;
}

struct generator_count generator_since(uint32_t flow, const struct generator_count *before)
{
	struct generator_count c = flows[flow].count;

	c.sent -= before->sent;
	c.received -= before->received;
	c.bytes -= before->bytes;
	c.marked -= before->marked;
	return c;
}

struct node_host *node_host_new(const struct node_config *config, dsf_instant now)
{
	struct node_host *h = dsf_memory_new(config->memory, sizeof(*h));
	struct ip_ndp_port ports[PORTS_MAX];
	struct ip_ndp_config ndp = { .memory = config->memory, .ports = ports };

	(void)now;
	if (h == NULL)
		return NULL;
	h->topo = config->topo;
	h->self = &config->topo->nodes[config->index];
	h->memory = config->memory;
	h->index = config->index;
	for (uint32_t i = 0; i < h->self->ports_count && i < PORTS_MAX; i++) {
		const struct topo_port *p = topo_node_port(h->topo, h->self, i);

		ports[i] = (struct ip_ndp_port){ p->mac, p->address, p->prefix_length };
	}
	ndp.ports_count = h->self->ports_count;
	h->ndp = ip_ndp_new(&ndp);
	dsf_pool_init(&h->small, h->memory, sizeof(struct packet) + HEAD, 256, UINT32_MAX);
	dsf_pool_init(
		&h->large, h->memory, sizeof(struct packet) + FABRIC_PACKET_MAX, 16, UINT32_MAX);
	if (h->ndp == NULL || h->self->ports_count > PORTS_MAX)
		abort();
	return h;
}

void node_host_free(struct node_host *h)
{
	ip_ndp_free(h->ndp);
	dsf_pool_close(&h->small);
	dsf_pool_close(&h->large);
	dsf_memory_delete(h->memory, h, sizeof(*h));
}

static uint8_t fill_of(uint32_t flow, uint64_t number, uint32_t at)
{
	return (uint8_t)(dsf_mix(number << 10 | flow) >> (at & 31)) ^ (uint8_t)(at >> 5);
}

static void take_udp(struct node_host *h, uint32_t port, const struct ip_packet *p,
	const struct node_frame *frame, dsf_instant now)
{
	uint32_t id = dsf_load_be32(frame->bytes + AT_FLOW), wrong = 0;
	uint64_t number = dsf_load_be64(frame->bytes + AT_NUMBER), delay_ns;
	struct flow *f = &flows[id];
	struct generator_count *c;

	if (id >= flows_count)
		abort();
	c = &f->count;
	wrong += topo_node_port(h->topo, h->self, port) != f->target;
	wrong += frame->size != f->flow.size || p->dscp != f->flow.dscp;
	wrong += p->hop_limit != IP_HOP_LIMIT - (f->flow.routers == 0 ? 1u : f->flow.routers);
	for (uint32_t at = AT_FILL; at < frame->stored; at++)
		wrong += frame->bytes[at] != fill_of(id, number, at);
	c->wrong += wrong > 0;
	if (c->received == 0)
		c->first_at = now;
	else if (number + 1 == f->expected)
		c->duplicated++;
	else if (number < f->expected)
		c->reordered++;
	f->expected = number + 1 > f->expected ? number + 1 : f->expected;
	c->received++;
	c->bytes += frame->size + 24u;
	c->marked += p->ecn == IP_ECN_CE;
	c->last_at = now;
	delay_ns = now.ns - dsf_load_be64(frame->bytes + AT_SENT);
	c->delay_sum_ns += delay_ns;
	c->delay_max_ns = delay_ns > c->delay_max_ns ? delay_ns : c->delay_max_ns;
}

int node_host_frame_input(
	struct node_host *h, uint32_t port, const struct node_frame *frame, dsf_instant now)
{
	struct ip_packet p;
	int err = ip_packet_parse_frame(&p, frame->bytes, frame->stored, frame->size);

	if (err < 0)
		return err;
	if (ip_ndp_wire_is(&p, frame->bytes, frame->stored))
		return ip_ndp_input(h->ndp, port, &p, frame->bytes, frame->stored, now);
	if (p.protocol == IP_PROTOCOL_UDP && p.target_port == UDP_TARGET)
		take_udp(h, port, &p, frame, now);
	return 0;
}

void node_host_carrier(struct node_host *h, uint32_t port, bool up, dsf_instant now)
{
	h->carrier[port] = up;
	h->free_at[port] = now;
	ip_ndp_carrier(h->ndp, port, up, now);
}

dsf_instant node_host_deadline(const struct node_host *h)
{
	dsf_instant at = ip_ndp_deadline(h->ndp);

	for (uint32_t i = 0; i < flows_count; i++)
		if (flows[i].host == h->index && dsf_time_before(flows[i].next, flows[i].flow.stop))
			at = dsf_time_min(at, flows[i].next);
	return at;
}

static struct packet *make_packet(struct node_host *h, uint32_t size, uint32_t stored)
{
	bool large = stored > HEAD;
	struct packet *p = dsf_pool_take(large ? &h->large : &h->small);

	if (p == NULL)
		abort();
	p->next = NULL;
	p->size = size;
	p->stored = stored;
	p->large = large;
	return p;
}

static void queue(struct node_host *h, struct packet *p)
{
	*(h->last != NULL ? &h->last->next : &h->first) = p;
	h->last = p;
}

static void send(struct node_host *h, uint32_t id, dsf_instant now)
{
	struct flow *f = &flows[id];
	uint32_t size = f->flow.size, port = f->source->number;
	uint64_t number = f->number++;
	struct packet *p;
	uint8_t *b;

	if (!h->carrier[port]) {
		f->count.no_carrier++;
		return;
	}
	p = make_packet(h, size, f->flow.whole || size < HEAD ? size : HEAD);
	b = p->bytes;
	ip_packet_write_ethernet(b, &h->topo->ports[f->source->peer].mac, &f->source->mac);
	ip_packet_write_header(b + IP_ETHERNET_SIZE, &f->source->address, &f->target->address,
		f->flow.dscp, f->flow.ecn, IP_PROTOCOL_UDP, IP_HOP_LIMIT, size - AT_UDP);
	dsf_store_be16(b + AT_UDP, (uint16_t)(1024 + id));
	dsf_store_be16(b + AT_UDP + 2, UDP_TARGET);
	dsf_store_be16(b + AT_UDP + 4, (uint16_t)(size - AT_UDP));
	dsf_store_be16(b + AT_UDP + 6, 0);
	dsf_store_be32(b + AT_FLOW, id);
	dsf_store_be64(b + AT_NUMBER, number);
	dsf_store_be64(b + AT_SENT, now.ns);
	for (uint32_t at = AT_FILL; at < p->stored; at++)
		b[at] = fill_of(id, number, at);
	p->port = port;
	h->free_at[port] = dsf_time_after(dsf_time_max(h->free_at[port], now),
		dsf_time_of_bytes(size + 24u, h->topo->links[f->source->link].rate_bps));
	p->depart = h->free_at[port];
	f->count.sent++;
	queue(h, p);
}

void node_host_expire(struct node_host *h, dsf_instant now)
{
	ip_ndp_expire(h->ndp, now);
	for (uint32_t i = 0; i < flows_count; i++) {
		struct flow *f = &flows[i];

		if (f->host != h->index)
			continue;
		while (dsf_time_due(f->next, now) && dsf_time_before(f->next, f->flow.stop)) {
			send(h, i, now);
			f->next = dsf_time_after(
				f->next, dsf_time_of_bytes(f->flow.size + 24u, f->flow.rate_bps));
		}
	}
}

bool node_host_output(struct node_host *h, struct node_output *out, dsf_instant now)
{
	struct packet *p;

	if (h->first == NULL) {
		uint8_t frame[IP_NDP_FRAME_SIZE];
		uint32_t port;
		size_t size = ip_ndp_output(h->ndp, &port, frame, sizeof(frame), now);

		if (size == 0)
			return false;
		p = make_packet(h, (uint32_t)size, (uint32_t)size);
		memcpy(p->bytes, frame, size);
		p->port = port;
		p->depart = dsf_time_max(now, h->free_at[port]);
		queue(h, p);
	}
	p = h->first;
	h->first = p->next;
	if (h->first == NULL)
		h->last = NULL;
	*out = (struct node_output){ .kind = NODE_OUTPUT_FRAME,
		.port = p->port,
		.depart = p->depart,
		.head = p->bytes,
		.head_size = p->stored,
		.size = p->size,
		.checksum_start = NODE_CHECKSUM_NONE,
		.buffer = p };
	return true;
}

void node_host_frame_done(struct node_host *h, void *buffer)
{
	struct packet *p = buffer;

	dsf_pool_give(p->large ? &h->large : &h->small, p);
}

void node_host_memory_done(struct node_host *h, uint64_t request, int status, dsf_instant now)
{
	(void)h;
	(void)request;
	(void)status;
	(void)now;
}

int node_host_command(struct node_host *h, const struct node_command *command, dsf_instant now)
{
	(void)h;
	(void)command;
	(void)now;
	return 0;
}

bool node_host_ready(const struct node_host *h)
{
	for (uint32_t i = 0; i < h->self->ports_count; i++)
		if (!h->carrier[i])
			return false;
	return true;
}

void node_host_view(const struct node_host *h, enum node_query query, uint32_t filter,
	node_row_fn row_fn, void *user, dsf_instant now)
{
	(void)h;
	(void)query;
	(void)filter;
	(void)row_fn;
	(void)user;
	(void)now;
}
