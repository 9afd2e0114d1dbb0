#include "uring/transmit.h"
#include <assert.h>
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <net/ethernet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>
#include "fabric/cell.h"

#define PAYLOAD_BYTES    (32u * FABRIC_PACKET_MAX) /* gathered between two enters */
#define WAITING_PER_SLAB 64u
#define SEND_PARTS_MAX   3u /* virtio header, head, payload */

struct uring_send {
	struct msghdr message;
	struct iovec parts[SEND_PARTS_MAX];
	struct virtio_net_hdr header;
	struct sockaddr_ll member; /* hyperports: the device that it leaves by */
	void *buffer;              /* the node's */
};

struct waiting {
	struct dsf_heap_entry entry;
	struct uring_port *port;
	struct node_output out;
};

int uring_transmit_open(struct uring_transmit *t, struct uring_loop *loop,
	const struct dsf_memory *own, struct uring_memory *memory, struct node *node)
{
	memset(t, 0, sizeof(*t));
	t->loop = loop;
	t->memory = memory;
	t->node = node;
	dsf_heap_init(&t->heap, own);
	dsf_pool_init(&t->pool, own, sizeof(struct waiting), WAITING_PER_SLAB, URING_WAITING_MAX);
	t->sends = calloc(URING_SQ_ENTRIES, sizeof(*t->sends));
	return t->sends == NULL ? -ENOMEM : 0;
}

void uring_transmit_close(struct uring_transmit *t)
{
	if (t->loop == NULL)
		return;
	dsf_heap_close(&t->heap);
	dsf_pool_close(&t->pool);
	free(t->payload);
	free(t->sends);
	memset(t, 0, sizeof(*t));
}

void uring_transmit_settle(struct uring_transmit *t)
{
	if (io_uring_sq_ready(&t->loop->ring) > 0)
		return;
	for (uint32_t i = 0; i < t->sends_count; i++)
		node_frame_done(t->node, t->sends[i].buffer);
	t->sends_count = 0;
	t->payload_used = 0;
}

static bool flush(struct uring_transmit *t)
{
	if (uring_loop_flush(t->loop) < 0)
		return false;
	uring_transmit_settle(t);
	return t->sends_count == 0;
}

/* Room for size bytes of payload that stays until the kernel has taken it; NULL: none. */
static uint8_t *payload_room(struct uring_transmit *t, size_t size)
{
	if (t->payload == NULL)
		t->payload = malloc(PAYLOAD_BYTES);
	if (t->payload == NULL || size > PAYLOAD_BYTES)
		return NULL;
	if (t->payload_used + size > PAYLOAD_BYTES && !flush(t))
		return NULL;
	t->payload_used += size;
	return t->payload + t->payload_used - size;
}

static bool gather(struct uring_transmit *t, const struct node_output *out, struct iovec *part)
{
	size_t size = out->size - out->head_size, done = 0;
	uint8_t *room = payload_room(t, size);

	if (room == NULL)
		return false;
	for (uint32_t i = 0; i < out->spans_count; i++) {
		assert(done + out->spans[i].size <= size);
		if (uring_memory_gather(t->memory, &out->spans[i], room + done) < 0)
			return false;
		done += out->spans[i].size;
	}
	*part = (struct iovec){ room, done };
	return true;
}

static void fill_header(struct virtio_net_hdr *header, const struct node_output *out)
{
	memset(header, 0, sizeof(*header));
	if (out->checksum_start == NODE_CHECKSUM_NONE)
		return;
	header->flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
	header->csum_start = out->checksum_start;
	header->csum_offset = out->checksum_offset;
}

/* The socket that hears a whole hyperport is bound to none of its members. */
static void fill_member(struct uring_send *send, const struct uring_port *p)
{
	send->message.msg_name = p->config.joined ? &send->member : NULL;
	send->message.msg_namelen = p->config.joined ? sizeof(send->member) : 0;
	send->member = (struct sockaddr_ll){ .sll_family = AF_PACKET,
		.sll_protocol = htons(ETHERTYPE_IPV6),
		.sll_ifindex = (int)p->ifindex };
}

static void fill_message(struct uring_send *send, const struct uring_port *p,
	const struct node_output *out, struct iovec payload)
{
	fill_header(&send->header, out);
	fill_member(send, p);
	send->parts[0] = (struct iovec){ &send->header, sizeof(send->header) };
	send->parts[1] = (struct iovec){ (void *)(uintptr_t)out->head, out->head_size };
	send->parts[2] = payload;
	send->message.msg_iov = send->parts;
	send->message.msg_iovlen = payload.iov_len > 0 ? SEND_PARTS_MAX : SEND_PARTS_MAX - 1;
}

static bool prepare(struct uring_transmit *t, struct uring_port *p, const struct node_output *out)
{
	struct iovec payload = { NULL, 0 };
	struct io_uring_sqe *sqe;
	struct uring_send *send;

	if (t->sends_count == URING_SQ_ENTRIES && !flush(t))
		return false;
	if (out->spans_count > 0 && !gather(t, out, &payload))
		return false;
	sqe = uring_loop_entry(t->loop);
	if (sqe == NULL)
		return false;
	send = &t->sends[t->sends_count++];
	send->buffer = out->buffer;
	switch (p->config.kind) {
	case URING_PORT_FABRIC:
		io_uring_prep_send(sqe, p->slot, out->head, out->head_size, MSG_DONTWAIT);
		break;
	case URING_PORT_ETHERNET:
	case URING_PORT_HOST:
		fill_message(send, p, out, payload);
		io_uring_prep_sendmsg(sqe, p->slot, &send->message, MSG_DONTWAIT);
		break;
	case URING_PORT_TUN: return false; /* uring_transmit_send has written it */
	}
	sqe->flags |= IOSQE_CQE_SKIP_SUCCESS;
	uring_loop_entry_done(t->loop, sqe, uring_tag(URING_KIND_PORT_TX, p->config.index));
	return true;
}

void uring_transmit_send(
	struct uring_transmit *t, struct uring_port *p, const struct node_output *out)
{
	bool taken;

	/* A TUN write may outlive its submission where the kernel hands it to a worker, so it is
	 * made at once. It never blocks: the device has no limit on bytes under way. */
	if (p->config.kind == URING_PORT_TUN)
		taken = write(p->fd, out->head, out->head_size) == (ssize_t)out->head_size;
	else if (prepare(t, p, out))
		return;
	else
		taken = false;
	if (!taken)
		p->refused++;
	node_frame_done(t->node, out->buffer);
}

bool uring_transmit_wait(
	struct uring_transmit *t, struct uring_port *port, const struct node_output *out)
{
	struct waiting *waiting = dsf_pool_take(&t->pool);

	if (waiting == NULL)
		return false;
	waiting->entry.place = 0;
	waiting->port = port;
	waiting->out = *out;
	if (dsf_heap_set(&t->heap, &waiting->entry, out->depart) < 0) {
		dsf_pool_give(&t->pool, waiting);
		return false;
	}
	return true;
}

void uring_transmit_due(struct uring_transmit *t, dsf_instant now)
{
	while (dsf_time_due(dsf_heap_at(&t->heap), now)) {
		struct dsf_heap_entry *first = dsf_heap_first(&t->heap);
		struct waiting *waiting;

		if (first == NULL)
			return;
		waiting = DSF_CONTAINER(first, struct waiting, entry);
		dsf_heap_remove(&t->heap, first);
		uring_transmit_send(t, waiting->port, &waiting->out);
		dsf_pool_give(&t->pool, waiting);
	}
}

uint32_t uring_transmit_cut(struct uring_transmit *t, const struct uring_port *port)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < t->heap.count;) {
		struct waiting *waiting = DSF_CONTAINER(t->heap.entries[i], struct waiting, entry);

		if (waiting->port != port) {
			i++;
			continue;
		}
		/* The heap moves another entry to this place or before it: begin again. */
		dsf_heap_remove(&t->heap, &waiting->entry);
		node_frame_done(t->node, waiting->out.buffer);
		dsf_pool_give(&t->pool, waiting);
		count++;
		i = 0;
	}
	return count;
}
