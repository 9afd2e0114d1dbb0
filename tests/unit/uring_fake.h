/*
 * uring_fake.h - a node that shows what its driver does, and a topology around it
 *
 * The driver's tests link this in place of node/: it records what it is given and forwards a frame
 * that came in on port i to port i ^ 1. Included by one source per program.
 */
#ifndef DSF_TESTS_URING_FAKE_H
#define DSF_TESTS_URING_FAKE_H
#include <stdlib.h>
#include <string.h>
#include "base/err.h"
#include "node/node.h"
#include "uring/node_main.h"
#include "workload/spec.h"

#define FAKE_PORTS     4
#define FAKE_RECORDS   262144
#define FAKE_PENDING   8192
#define FAKE_FRAME_MAX 20000

struct fake_record {
	enum { FAKE_FRAME, FAKE_EXPIRE, FAKE_CARRIER } kind;
	uint32_t port, size;
	dsf_instant now;
	uint16_t checksum_start, checksum_offset;
	uint8_t tag; /* last byte of a frame; up of a carrier change */
};

struct fake_pending {
	uint32_t port, size;
	dsf_instant depart;
	uint16_t checksum_start, checksum_offset;
	uint8_t *bytes;
};

struct node {
	struct node_config config;
	dsf_instant deadline;
	uint64_t period_ns; /* expire moves the deadline by it; 0: to never */
	uint64_t hold_ns;   /* outputs depart this much after their input */
	bool forward;
	bool sends; /* at every deadline, which moves only when the driver asks for output */
	bool carrier[FAKE_PORTS];
	uint32_t frames, frames_without_carrier, expired, done, went_back;
	dsf_instant last;
	struct fake_record records[FAKE_RECORDS];
	uint32_t records_count;
	struct fake_pending pending[FAKE_PENDING]; /* ring */
	uint32_t head, tail;
	bool ready;
	uint32_t commands;
	struct node_command impaired; /* the last of its kind */
	struct workload_spec spec;    /* the last one; its flows are gone */
	struct workload_flow first_flow;
};

static struct node *fake; /* the one that node_new made */

static void fake_note(struct node *n, const struct fake_record *r)
{
	if (dsf_time_before(r->now, n->last))
		n->went_back++;
	n->last = r->now;
	if (n->records_count < FAKE_RECORDS)
		n->records[n->records_count++] = *r;
}

struct node *node_new(const struct node_config *config, dsf_instant now)
{
	fake = calloc(1, sizeof(*fake));
	if (fake == NULL)
		return NULL;
	fake->config = *config;
	fake->deadline = DSF_NEVER;
	fake->last = now;
	fake->forward = true;
	return fake;
}

void node_free(struct node *n)
{
	for (; n->head != n->tail; n->head++)
		free(n->pending[n->head % FAKE_PENDING].bytes);
	if (n == fake)
		fake = NULL;
	free(n);
}

/* Something for node_output; NULL: too much waits. */
static struct fake_pending *fake_output(
	struct node *n, uint32_t port, const uint8_t *bytes, uint32_t size, dsf_instant depart)
{
	struct fake_pending *out = &n->pending[n->tail % FAKE_PENDING];

	if (n->tail - n->head == FAKE_PENDING)
		return NULL;
	out->port = port;
	out->size = size;
	out->depart = depart;
	out->checksum_start = out->checksum_offset = NODE_CHECKSUM_NONE;
	out->bytes = malloc(size);
	memcpy(out->bytes, bytes, size);
	n->tail++;
	return out;
}

int node_frame_input(struct node *n, uint32_t port, const struct node_frame *frame, dsf_instant now)
{
	struct fake_record r = { FAKE_FRAME, port, frame->size, now, frame->checksum_start,
		frame->checksum_offset, frame->bytes[frame->size - 1] };
	struct fake_pending *out;

	n->frames++;
	fake_note(n, &r);
	if (port < FAKE_PORTS && !n->carrier[port])
		n->frames_without_carrier++;
	if (!n->forward || port == NODE_PORT_INBAND)
		return 0;
	out = fake_output(n, port ^ 1, frame->bytes, frame->size, dsf_time_after(now, n->hold_ns));
	if (out != NULL) {
		out->checksum_start = frame->checksum_start;
		out->checksum_offset = frame->checksum_offset;
	}
	return 0;
}

void node_carrier(struct node *n, uint32_t port, bool up, dsf_instant now)
{
	struct fake_record r = { .kind = FAKE_CARRIER, .port = port, .now = now, .tag = up };

	fake_note(n, &r);
	n->carrier[port] = up;
}

dsf_instant node_deadline(const struct node *n)
{
	return n->deadline;
}

void node_expire(struct node *n, dsf_instant now)
{
	struct fake_record r = { .kind = FAKE_EXPIRE, .now = now };

	fake_note(n, &r);
	n->expired++;
	if (!n->sends)
		n->deadline =
			n->period_ns == 0 ? DSF_NEVER : dsf_time_after(n->deadline, n->period_ns);
}

struct node_sessions node_sessions(const struct node *n)
{
	(void)n;
	return (struct node_sessions){ 0 };
}

bool node_ready(const struct node *n)
{
	return n->ready;
}

bool node_output(struct node *n, struct node_output *out, dsf_instant now)
{
	struct fake_pending *p = &n->pending[n->head % FAKE_PENDING];
	static const uint8_t frame[64] = { [12] = 0x86, 0xdd };

	if (n->sends && dsf_time_due(n->deadline, now)) {
		fake_output(n, 0, frame, sizeof(frame), now);
		n->deadline = dsf_time_after(n->deadline, n->period_ns);
	}
	if (n->head == n->tail)
		return false;
	memset(out, 0, sizeof(*out));
	out->kind = NODE_OUTPUT_FRAME;
	out->port = p->port;
	out->depart = p->depart;
	out->head = p->bytes;
	out->head_size = out->size = p->size;
	out->checksum_start = p->checksum_start;
	out->checksum_offset = p->checksum_offset;
	out->buffer = p->bytes;
	n->head++;
	return true;
}

void node_frame_done(struct node *n, void *buffer)
{
	n->done++;
	free(buffer);
}

void node_memory_done(struct node *n, uint64_t request, int status, dsf_instant now)
{
	(void)n;
	(void)request;
	(void)status;
	(void)now;
}

/* This one asks for no streams. */
int node_stream_accept(struct node *n, const struct node_stream_ends *ends, dsf_instant now)
{
	(void)n;
	(void)ends;
	(void)now;
	return -DSF_E_UNKNOWN;
}

void node_stream_connected(struct node *n, uint32_t stream, dsf_instant now)
{
	(void)n;
	(void)stream;
	(void)now;
}

void node_stream_input(
	struct node *n, uint32_t stream, const uint8_t *bytes, uint32_t size, dsf_instant now)
{
	(void)n;
	(void)stream;
	(void)bytes;
	(void)size;
	(void)now;
}

void node_stream_writable(struct node *n, uint32_t stream, uint32_t room, dsf_instant now)
{
	(void)n;
	(void)stream;
	(void)room;
	(void)now;
}

void node_stream_closed(struct node *n, uint32_t stream, bool reset, dsf_instant now)
{
	(void)n;
	(void)stream;
	(void)reset;
	(void)now;
}

int node_command(struct node *n, const struct node_command *command, dsf_instant now)
{
	(void)now;
	n->commands++;
	if (command->kind == NODE_COMMAND_IMPAIR)
		n->impaired = *command;
	if (command->kind == NODE_COMMAND_WORKLOAD_START) {
		n->spec = *command->workload;
		n->first_flow = n->spec.flows[0];
	}
	return 0;
}

void node_view(const struct node *n, enum node_query query, uint32_t filter, node_row_fn row_fn,
	void *user, dsf_instant now)
{
	(void)n;
	(void)query;
	(void)filter;
	(void)row_fn;
	(void)user;
	(void)now;
}

/* A topology of two nodes: node 0 is the device, its port i is named name[i] and leads to port i of
 * node 1. */

struct fake_topo {
	struct topo topo;
	struct topo_node nodes[2];
	struct topo_port ports[2 * FAKE_PORTS];
	struct topo_link links[FAKE_PORTS];
};

static void fake_topo_port(struct fake_topo *f, uint32_t index, const char *name, bool ethernet)
{
	struct topo_port *port = &f->ports[index];

	snprintf(port->name, sizeof(port->name), "%s", name);
	port->node = index / FAKE_PORTS;
	port->number = index % FAKE_PORTS;
	port->link = port->number;
	port->peer = (index + FAKE_PORTS) % (2 * FAKE_PORTS);
	port->ethernet = ethernet;
	port->hyperport = TOPO_NONE;
}

/* kinds: one letter per port, f: fabric, e: Ethernet. */
static void fake_topo_init(
	struct fake_topo *f, enum topo_role role, const char *kinds, uint64_t delay_ns)
{
	memset(f, 0, sizeof(*f));
	for (uint32_t i = 0; i < strlen(kinds); i++) {
		char name[16];

		snprintf(name, sizeof(name), "p%u", i);
		fake_topo_port(f, i, name, kinds[i] == 'e');
		snprintf(name, sizeof(name), "q%u", i);
		fake_topo_port(f, FAKE_PORTS + i, name, kinds[i] == 'e');
		f->links[i].kind = kinds[i] == 'e' ? TOPO_LINK_GPU : TOPO_LINK_FABRIC;
		f->links[i].port_a = i;
		f->links[i].port_b = FAKE_PORTS + i;
		f->links[i].delay_ns = delay_ns;
		f->links[i].mtu = kinds[i] == 'e' ? 9000 : 16384;
	}
	f->nodes[0] = (struct topo_node){ .name = "device", .role = role, .bgp = TOPO_NONE };
	f->nodes[0].ports_count = (uint32_t)strlen(kinds);
	if (!topo_is_fabric_node(role)) /* they route nothing, and have no host port */
		f->nodes[0].loopback =
			(struct dsf_ip6){ { 0xfd, 0x5f, 0, 0, 0, 0, 0xff, 0, [15] = 1 } };
	f->nodes[1] = (struct topo_node){
		.name = "peer", .role = TOPO_ROLE_HOST, .bgp = TOPO_NONE
	};
	f->nodes[1].first_port = FAKE_PORTS;
	f->nodes[1].ports_count = f->nodes[0].ports_count;
	f->topo.nodes = f->nodes;
	f->topo.ports = f->ports;
	f->topo.links = f->links;
	f->topo.nodes_count = 2;
	f->topo.ports_count = 2 * FAKE_PORTS;
	f->topo.links_count = f->nodes[0].ports_count;
	f->topo.switch_words = 2;
	f->topo.time_dilation = 1;
	f->topo.fabric.train_bytes = 16384;
}

#endif
