/*
 * glue_kernel.h - the kernel below one process, played by the test
 *
 * A ring that is only memory, a clock that the test moves, sockets that are lists of what has
 * arrived: so the whole turn of a process runs, from completions to entries, with every wake-up
 * under control. The program is linked with --wrap for clock_gettime, uring_loop_flush,
 * uring_loop_wait and netns_monitor_read.
 */
#ifndef DSF_TESTS_GLUE_KERNEL_H
#define DSF_TESTS_GLUE_KERNEL_H
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/virtio_net.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "tests/memory.h"
#include "tests/unit/glue_lab.h"
#include "uring/process.h"
#include "uring/setup.h"

#define KERNEL_EPOCH_NS    (1000 * NS_PER_S)
#define KERNEL_REALTIME_NS (77777 * NS_PER_S) /* wall clock ahead of the monotonic one */
#define KERNEL_DILATION    1000u
#define KERNEL_STAMP_BYTES CMSG_SPACE(sizeof(struct timespec))

struct arrival {
	uint64_t at_ns; /* wall */
	const struct glue_item *item;
};

struct glue_socket {
	const struct glue_item **waiting;
	uint32_t head, tail;
	bool armed;
};

struct glue_kernel {
	struct uring_process *process;
	uint64_t wall_ns, limit_ns; /* waits end at limit */
	struct arrival *arrivals;   /* in order of time */
	uint32_t arrivals_count, arrived;
	struct glue_socket sockets[TOPO_PORTS_PER_SWITCH];
	const struct glue_item *news[TOPO_PORTS_PER_SWITCH]; /* carrier changes not yet read */
	uint32_t news_count;
	bool polling, news_told;
	uint64_t late_max_ns; /* fabric: how late a wait ends, at most */
	bool spurious;        /* waits end for no reason */
	uint64_t enters;
	uint16_t taken[2]; /* buffers taken from each group's ring */
	uint32_t starved;  /* receives that found no buffer */
	uint32_t early;    /* Ethernet frames that were sent before their time */
	uint32_t inexact;  /* or after it */
	struct dsf_rng rng;
	unsigned sq_head, cq_head, cq_tail, flags;
	struct io_uring_sqe sqes[URING_SQ_ENTRIES];
	struct io_uring_cqe cqes[URING_CQ_ENTRIES];
};

static struct glue_kernel kernel;
static struct test_memory glue_memory = TEST_MEMORY(glue_memory); /* of a process */

int __wrap_clock_gettime(clockid_t id, struct timespec *t);
int __wrap_uring_loop_flush(struct uring_loop *l);
int __wrap_uring_loop_wait(struct uring_loop *l, unsigned count, uint64_t timeout_ns);
int __wrap_netns_monitor_read(struct netns_monitor *m, netns_link_fn fn, void *user);

static uint64_t wall_of(dsf_instant at)
{
	return KERNEL_EPOCH_NS + at.ns * KERNEL_DILATION;
}

static dsf_instant fabric_now(void)
{
	return (dsf_instant){ (kernel.wall_ns - KERNEL_EPOCH_NS) / KERNEL_DILATION };
}

int __wrap_clock_gettime(clockid_t id, struct timespec *t)
{
	uint64_t ns = kernel.wall_ns + (id == CLOCK_REALTIME ? KERNEL_REALTIME_NS : 0);

	*t = (struct timespec){ (time_t)(ns / NS_PER_S), (long)(ns % NS_PER_S) };
	return 0;
}

int __wrap_netns_monitor_read(struct netns_monitor *m, netns_link_fn fn, void *user)
{
	(void)m;
	for (uint32_t i = 0; i < kernel.news_count; i++) {
		struct netns_link_state state = { .ifindex = kernel.news[i]->port + 1,
			.carrier = kernel.news[i]->kind == GLUE_UP };

		fn(user, &state);
	}
	kernel.news_count = 0;
	kernel.news_told = false;
	return 0;
}

static void complete(uint64_t tag, int res, uint32_t flags)
{
	assert(kernel.cq_tail - kernel.cq_head < URING_CQ_ENTRIES);
	kernel.cqes[kernel.cq_tail++ % URING_CQ_ENTRIES] =
		(struct io_uring_cqe){ .user_data = tag, .res = res, .flags = flags };
}

/* An Ethernet frame as a multishot recvmsg leaves it: header, stamp, virtio header, frame. */
static int write_packet(uint8_t *at, const struct glue_item *item)
{
	struct io_uring_recvmsg_out out = { .controllen = KERNEL_STAMP_BYTES,
		.payloadlen = item->size + URING_PORT_VNET_HEADER };
	uint64_t stamp_ns = wall_of(item->at) + KERNEL_REALTIME_NS;
	struct timespec stamp = { (time_t)(stamp_ns / NS_PER_S), (long)(stamp_ns % NS_PER_S) };
	struct cmsghdr cmsg = { .cmsg_len = CMSG_LEN(sizeof(stamp)),
		.cmsg_level = SOL_SOCKET,
		.cmsg_type = SCM_TIMESTAMPNS };
	uint8_t *to = at;

	memcpy(to, &out, sizeof(out));
	to += sizeof(out);
	memset(to, 0, KERNEL_STAMP_BYTES + URING_PORT_VNET_HEADER);
	memcpy(to, &cmsg, sizeof(cmsg));
	memcpy(to + CMSG_LEN(0), &stamp, sizeof(stamp));
	to += KERNEL_STAMP_BYTES + URING_PORT_VNET_HEADER;
	memcpy(to, item->bytes, item->size);
	return (int)(to + item->size - at);
}

/* False: no buffer, the receive has ended. */
static bool receive_one(struct uring_port *port, struct glue_socket *s)
{
	struct uring_buffers *b = port->buffers;
	uint16_t *taken = &kernel.taken[b->group];
	const struct glue_item *item = s->waiting[s->head % kernel.arrivals_count];
	uint64_t tag = uring_tag(URING_KIND_PORT_RX, port->config.index);
	struct io_uring_buf *buffer;
	int size = (int)item->size;

	if (*taken == b->ring->tail) {
		kernel.starved++;
		s->armed = false;
		complete(tag, -ENOBUFS, 0);
		return false;
	}
	buffer = &b->ring->bufs[(*taken)++ & (b->count_max - 1)];
	assert(item->size + uring_port_overhead(port->config.kind) <= buffer->len);
	if (port->config.kind == URING_PORT_FABRIC)
		memcpy((void *)(uintptr_t)buffer->addr, item->bytes, item->size);
	else
		size = write_packet((void *)(uintptr_t)buffer->addr, item);
	s->head++;
	complete(tag, size,
		IORING_CQE_F_BUFFER | IORING_CQE_F_MORE |
			(uint32_t)buffer->bid << IORING_CQE_BUFFER_SHIFT);
	return true;
}

/* What has come by now: news first, then port by port. */
static void bring_in_arrivals(void)
{
	struct uring_process *p = kernel.process;

	if (kernel.news_count > 0 && !kernel.news_told && kernel.polling &&
		kernel.wall_ns >= wall_of(kernel.news[0]->at)) {
		complete(uring_tag(URING_KIND_LINKS, 0), 1, IORING_CQE_F_MORE);
		kernel.news_told = true;
	}
	for (; kernel.arrived < kernel.arrivals_count &&
		kernel.arrivals[kernel.arrived].at_ns <= kernel.wall_ns;
		kernel.arrived++) {
		const struct glue_item *item = kernel.arrivals[kernel.arrived].item;
		struct glue_socket *s = &kernel.sockets[item->port];

		s->waiting[s->tail++ % kernel.arrivals_count] = item;
	}
	for (uint32_t i = 0; i < p->self->ports_count; i++) {
		struct glue_socket *s = &kernel.sockets[i];

		while (s->armed && s->head != s->tail && receive_one(&p->ports[i], s))
			;
	}
}

static void sent(uint32_t port, const uint8_t *bytes, size_t size, dsf_instant due)
{
	glue_list_add(glue.sent, GLUE_FRAME, port, due, bytes, (uint32_t)size);
}

static void send_packet(struct uring_port *port, const struct msghdr *message)
{
	const struct iovec *frame = &message->msg_iov[1];

	assert(message->msg_iovlen == 2 && message->msg_iov[0].iov_len == URING_PORT_VNET_HEADER);
	sent(port->config.number, frame->iov_base, frame->iov_len, fabric_now());
}

static void send_train(struct uring_port *port, const uint8_t *bytes, size_t size)
{
	dsf_instant depart = DSF_NEVER, due, cut;
	bool train = fabric_train_departure(bytes, size, &depart);

	assert(train && dsf_time_due(depart, fabric_now()));
	due = dsf_time_after(depart, port->config.delay_ns);
	/* The far end lets go of what it holds when the link goes down. */
	cut = glue_list_down_after(glue.inputs, port->config.number, depart);
	if (!dsf_time_before(cut, due))
		sent(port->config.number, bytes, size, due);
}

static void take_entry(const struct io_uring_sqe *sqe)
{
	uint32_t index = uring_tag_index(sqe->user_data);
	struct uring_port *port = &kernel.process->ports[index];

	switch (sqe->opcode) {
	case IORING_OP_RECV:
	case IORING_OP_RECVMSG: kernel.sockets[index].armed = true; break;
	case IORING_OP_READ: break; /* the host port: nothing comes from there */
	case IORING_OP_POLL_ADD: kernel.polling = true; break;
	case IORING_OP_SEND:
		send_train(port, (const uint8_t *)(uintptr_t)sqe->addr, sqe->len);
		break;
	case IORING_OP_SENDMSG:
		send_packet(port, (const struct msghdr *)(uintptr_t)sqe->addr);
		break;
	default: assert(!"an entry that the test doesn't know");
	}
}

static void enter(struct uring_loop *l)
{
	kernel.enters++;
	for (; kernel.sq_head != l->ring.sq.sqe_tail; kernel.sq_head++)
		take_entry(&kernel.sqes[kernel.sq_head % URING_SQ_ENTRIES]);
	bring_in_arrivals();
}

int __wrap_uring_loop_flush(struct uring_loop *l)
{
	enter(l);
	return 0;
}

static void pass_until(uint64_t wall_ns)
{
	kernel.wall_ns = wall_ns < kernel.limit_ns ? wall_ns : kernel.limit_ns;
	bring_in_arrivals();
}

int __wrap_uring_loop_wait(struct uring_loop *l, unsigned count, uint64_t timeout_ns)
{
	uint64_t end_ns =
		UINT64_MAX - kernel.wall_ns > timeout_ns ? kernel.wall_ns + timeout_ns : UINT64_MAX;

	enter(l);
	if (kernel.spurious && dsf_rng_below(&kernel.rng, 4) == 0)
		return 0;
	if (end_ns > kernel.limit_ns)
		end_ns = kernel.limit_ns;
	while (kernel.cq_tail - kernel.cq_head < count) {
		uint64_t next_ns = kernel.arrived == kernel.arrivals_count
					   ? UINT64_MAX
					   : kernel.arrivals[kernel.arrived].at_ns;

		pass_until(next_ns < end_ns ? next_ns : end_ns);
		if (next_ns >= end_ns)
			break;
	}
	if (kernel.late_max_ns > 0)
		pass_until(kernel.wall_ns +
			   dsf_rng_below(&kernel.rng, kernel.late_max_ns * KERNEL_DILATION));
	return 0;
}

/* A turn that didn't enter takes time, but nothing is brought in. */
static void spin(void)
{
	kernel.wall_ns += KERNEL_DILATION / 2;
	if (kernel.wall_ns > kernel.limit_ns)
		kernel.wall_ns = kernel.limit_ns;
}

/* A process without a kernel. */

static void open_ring(struct uring_loop *l)
{
	struct io_uring *r = &l->ring;

	r->sq.khead = &kernel.sq_head;
	r->sq.kflags = &kernel.flags;
	r->sq.sqes = kernel.sqes;
	r->sq.ring_entries = URING_SQ_ENTRIES;
	r->sq.ring_mask = URING_SQ_ENTRIES - 1;
	r->cq.khead = &kernel.cq_head;
	r->cq.ktail = &kernel.cq_tail;
	r->cq.cqes = kernel.cqes;
	r->cq.ring_entries = URING_CQ_ENTRIES;
	r->cq.ring_mask = URING_CQ_ENTRIES - 1;
	l->fixed_files = true;
}

static void open_buffers(
	struct uring_process *p, struct uring_buffers *b, uint16_t group, uint16_t count_max)
{
	b->size = 16384 + 128;
	b->group = group;
	b->count_max = count_max;
	b->ring = aligned_alloc(4096, 4096 * sizeof(struct io_uring_buf));
	b->bytes = malloc((size_t)count_max * b->size);
	if (b->ring == NULL || b->bytes == NULL)
		abort();
	io_uring_buf_ring_init(b->ring);
	dsf_pool_init(&b->copies, &glue_memory.memory, b->size, 16, URING_COPIES_MAX);
	b->loop = &p->loop;
	uring_buffers_grow(b);
}

static void close_buffers(struct uring_buffers *b)
{
	dsf_pool_close(&b->copies);
	free(b->ring);
	free(b->bytes);
}

static void open_ports(struct uring_process *p)
{
	p->ports_count = p->self->ports_count;
	p->ports = calloc(p->ports_count + 1, sizeof(*p->ports));
	if (p->ports == NULL)
		abort();
	for (uint32_t i = 0; i < p->ports_count; i++) {
		struct uring_port *port = &p->ports[i];

		port->config = uring_setup_port(p->topo, p->self, i);
		port->buffers = port->config.kind == URING_PORT_FABRIC ? &p->trains : &p->packets;
		port->fd = p->links.fd;
		port->ifindex = i + 1;
		port->receive.msg_controllen = KERNEL_STAMP_BYTES;
	}
	if (topo_is_interface_node(p->self->role)) {
		struct uring_port *tun = &p->ports[p->ports_count];

		tun->config = (struct uring_port_config){ .name = "inband0",
			.number = NODE_PORT_INBAND,
			.index = p->ports_count++,
			.kind = URING_PORT_TUN };
		tun->fd = p->links.fd; /* takes what is written */
		tun->buffers = &p->packets;
		tun->armed = true;
	}
}

static void open_process(struct uring_process *p, const struct topo *t, uint32_t self,
	const struct node_config *node, uint16_t buffers_max)
{
	memset(p, 0, sizeof(*p));
	p->config = (struct uring_node_config){ .topo = t, .index = self };
	p->topo = t;
	p->self = &t->nodes[self];
	p->links.fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	p->signal_fd = p->control.fd = -1;
	uring_clock_init(&p->clock, KERNEL_EPOCH_NS, KERNEL_DILATION);
	uring_hold_init(&p->hold, &glue_memory.memory);
	p->timeout_ns = UINT64_MAX; /* nobody is as late as that here */
	open_ring(&p->loop);
	open_buffers(p, &p->trains, 0, buffers_max);
	open_buffers(p, &p->packets, 1, buffers_max);
	open_ports(p);
	p->node = node_new(node, p->clock.last);
	p->now = p->clock.last;
	if (p->node == NULL || uring_transmit_open(&p->transmit, &p->loop, &glue_memory.memory,
				       &p->payload, p->node) < 0)
		abort();
	p->rearm = true;
}

static void close_process(struct uring_process *p)
{
	close(p->links.fd);
	free(p->ports);
	uring_transmit_close(&p->transmit);
	uring_hold_close(&p->hold);
	close_buffers(&p->trains);
	close_buffers(&p->packets);
	node_free(p->node);
}

#endif
