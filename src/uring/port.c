#include "uring/port.h"
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <linux/virtio_net.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "fabric/cell.h"
#include "fabric/port.h"
#include "node/node.h"
#include "uring/log.h"

#define STAMP_BYTES CMSG_SPACE(sizeof(struct timespec))

/* Our peers' clocks are ours. This is for an impairment that one end hears of before the other. */
#define AHEAD_SLACK_WALL_NS (10 * NS_PER_S)

static_assert(sizeof(struct virtio_net_hdr) == URING_PORT_VNET_HEADER, "header of 10 bytes");

uint32_t uring_port_overhead(enum uring_port_kind kind)
{
	if (kind == URING_PORT_FABRIC)
		return 0;
	return sizeof(struct io_uring_recvmsg_out) + sizeof(struct sockaddr_ll) + STAMP_BYTES +
	       URING_PORT_VNET_HEADER;
}

static int set_option(int fd, int level, int option, int value)
{
	return setsockopt(fd, level, option, &value, sizeof(value)) < 0 ? -errno : 0;
}

/* Passes IPv6 + UDP without extension headers to one of the given ports, and nothing else. */
static int attach_filter(int fd, const struct uring_port_config *c)
{
	struct sock_filter code[6 + URING_PORT_UDP_PORTS_MAX + 2];
	struct sock_fprog program = { 0, code };
	uint8_t count = (uint8_t)c->udp_ports_count;
	unsigned n = 0;

	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 12);
	code[n++] = (struct sock_filter)BPF_JUMP(
		BPF_JMP | BPF_JEQ | BPF_K, ETHERTYPE_IPV6, 0, (uint8_t)(count + 3));
	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 20);
	code[n++] = (struct sock_filter)BPF_JUMP(
		BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_UDP, 0, (uint8_t)(count + 1));
	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 56);
	for (uint8_t i = 0; i < count; i++)
		code[n++] = (struct sock_filter)BPF_JUMP(
			BPF_JMP | BPF_JEQ | BPF_K, c->udp_ports[i], (uint8_t)(count - i), 0);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 0);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 0x40000);
	program.len = (unsigned short)n;
	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) < 0 ? -errno
											   : 0;
}

static int set_options(int fd, const struct uring_port_config *c)
{
	int err = set_option(fd, SOL_SOCKET, SO_RCVBUFFORCE, URING_PORT_RECEIVE_BYTES);

	if (err == 0)
		err = set_option(fd, SOL_SOCKET, SO_SNDBUFFORCE, URING_PORT_SEND_BYTES);
	if (err == 0)
		err = set_option(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, 1);
	if (err < 0 || c->kind == URING_PORT_FABRIC)
		return err;
	err = set_option(fd, SOL_PACKET, PACKET_VNET_HDR, 1);
	if (err == 0)
		err = set_option(fd, SOL_SOCKET, SO_TIMESTAMPNS, 1);
	if (err == 0 && c->kind == URING_PORT_HOST)
		err = attach_filter(fd, c);
	return err;
}

/* The socket hears nothing before it is bound, so nothing unfiltered ever comes in. Protocol 0: it
 * hears nothing then either. */
static int bind_to(int fd, uint16_t protocol, uint32_t ifindex)
{
	struct sockaddr_ll address;

	memset(&address, 0, sizeof(address));
	address.sll_family = AF_PACKET;
	address.sll_protocol = htons(protocol);
	address.sll_ifindex = (int)ifindex;
	return bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ? -errno : 0;
}

static int bind_socket(int fd, const struct uring_port_config *c, uint32_t ifindex)
{
	if (c->joined)
		return bind_to(fd, 0, ifindex);
	return bind_to(fd, c->kind == URING_PORT_FABRIC ? FABRIC_ETHERTYPE : ETH_P_ALL, ifindex);
}

/* Passes what comes by a member of the hyperport for which p stands, and nothing else. */
static int attach_members(
	const struct uring_port *p, const struct uring_port *ports, uint32_t count)
{
	struct sock_filter code[2 * TOPO_ETHERNET_PORTS_MAX + 2];
	struct sock_fprog program = { 0, code };
	unsigned n = 0;

	code[n++] = (struct sock_filter)BPF_STMT(
		BPF_LD | BPF_W | BPF_ABS, (uint32_t)(SKF_AD_OFF + SKF_AD_IFINDEX));
	for (uint32_t i = 0; i < count; i++) {
		if (!ports[i].config.joined || ports[i].config.whole != p->config.number)
			continue;
		if (n + 3 > sizeof(code) / sizeof(code[0]))
			return -E2BIG;
		code[n++] = (struct sock_filter)BPF_JUMP(
			BPF_JMP | BPF_JEQ | BPF_K, ports[i].ifindex, 0, 1);
		code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 0x40000);
	}
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 0);
	program.len = (unsigned short)n;
	return setsockopt(p->fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) < 0
		       ? -errno
		       : 0;
}

/* Between our switches there is nothing but IPv6; other protocols' frames, trains above all, don't
 * pass a socket that is bound to no device. */
int uring_port_join(struct uring_port *p, const struct uring_port *ports, uint32_t count)
{
	int err = attach_members(p, ports, count);

	p->receive.msg_namelen = sizeof(struct sockaddr_ll);
	return err < 0 ? err : bind_to(p->fd, ETH_P_IPV6, 0);
}

int uring_port_open(struct uring_port *p, const struct uring_port_config *config,
	struct uring_loop *loop, struct uring_buffers *buffers)
{
	int err;

	memset(p, 0, sizeof(*p));
	p->config = *config;
	p->buffers = buffers;
	p->fd = -1;
	p->ifindex = if_nametoindex(config->name);
	if (p->ifindex == 0)
		return -errno;
	p->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (p->fd < 0)
		return -errno;
	err = set_options(p->fd, config);
	if (err == 0)
		err = bind_socket(p->fd, config, p->ifindex);
	if (err == 0)
		err = uring_loop_add_file(loop, p->fd);
	if (err < 0) {
		uring_port_close(p);
		return err;
	}
	p->slot = err;
	p->ahead_ns = 0;
	p->receive.msg_controllen = STAMP_BYTES;
	return 0;
}

void uring_port_close(struct uring_port *p)
{
	if (p->fd >= 0)
		close(p->fd);
	p->fd = -1;
}

bool uring_port_arm(struct uring_port *p, struct uring_loop *loop)
{
	struct io_uring_sqe *sqe = uring_loop_entry(loop);

	if (sqe == NULL)
		return false;
	switch (p->config.kind) {
	case URING_PORT_FABRIC: io_uring_prep_recv_multishot(sqe, p->slot, NULL, 0, 0); break;
	case URING_PORT_ETHERNET:
	case URING_PORT_HOST: io_uring_prep_recvmsg_multishot(sqe, p->slot, &p->receive, 0); break;
	case URING_PORT_TUN: io_uring_prep_read(sqe, p->slot, NULL, p->buffers->size, 0); break;
	}
	sqe->flags |= IOSQE_BUFFER_SELECT;
	sqe->buf_group = p->buffers->group;
	uring_loop_entry_done(loop, sqe, uring_tag(URING_KIND_PORT_RX, p->config.index));
	p->armed = true;
	return true;
}

static dsf_instant arrival_of(
	struct uring_port *p, const struct uring_clock *clock, struct io_uring_recvmsg_out *out)
{
	struct cmsghdr *cmsg = io_uring_recvmsg_cmsg_firsthdr(out, &p->receive);
	dsf_instant at = clock->last;
	struct timespec stamp;

	if (cmsg != NULL && cmsg->cmsg_level == SOL_SOCKET && cmsg->cmsg_type == SCM_TIMESTAMPNS &&
		cmsg->cmsg_len >= CMSG_LEN(sizeof(stamp))) {
		memcpy(&stamp, CMSG_DATA(cmsg), sizeof(stamp));
		at = uring_clock_of_stamp(clock, &stamp);
	}
	p->arrived_at = dsf_time_max(p->arrived_at, at);
	return p->arrived_at;
}

static int parse_packet(struct uring_port *p, const struct uring_clock *clock, uint8_t *buffer,
	uint32_t size, struct uring_arrival *a)
{
	struct io_uring_recvmsg_out *out =
		io_uring_recvmsg_validate(buffer, (int)size, &p->receive);
	struct virtio_net_hdr header;

	if (out == NULL)
		return -EBADMSG;
	a->bytes = io_uring_recvmsg_payload(out, &p->receive);
	a->size = io_uring_recvmsg_payload_length(out, (int)size, &p->receive);
	if (a->size < sizeof(header) + ETHER_HDR_LEN)
		return -EBADMSG;
	memcpy(&header, a->bytes, sizeof(header));
	a->bytes += sizeof(header);
	a->size -= sizeof(header);
	if (header.gso_type != VIRTIO_NET_HDR_GSO_NONE)
		return -EPROTO;
	if (out->flags & MSG_TRUNC)
		return -EMSGSIZE;
	if (p->receive.msg_namelen > 0) {
		struct sockaddr_ll from;

		memcpy(&from, io_uring_recvmsg_name(out), sizeof(from));
		a->ifindex = (uint32_t)from.sll_ifindex;
	}
	a->due = dsf_time_after(arrival_of(p, clock, out), p->config.delay_ns);
	if (header.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM) {
		a->checksum_start = header.csum_start;
		a->checksum_offset = header.csum_offset;
	}
	return 0;
}

void uring_port_expect(
	struct uring_port *p, const struct node_impairment *impairment, uint64_t rate_bps)
{
	uint64_t ahead_ns = impairment->delay_ns + impairment->jitter_ns;

	if (impairment->rate_bps > 0)
		rate_bps = impairment->rate_bps;
	ahead_ns += fabric_port_reorder_ns(rate_bps);
	/* What is on its way was put off by what was asked before. */
	if (ahead_ns > p->ahead_ns)
		p->ahead_ns = ahead_ns;
}

/* Nobody of the lab departs so late: who said so would keep a place of the hold queue for ever. */
static bool is_too_far_ahead(
	const struct uring_port *p, const struct uring_clock *clock, dsf_instant depart)
{
	uint64_t ahead_ns = p->ahead_ns + AHEAD_SLACK_WALL_NS / clock->dilation;

	/* The last reading may be old: this process may have stood still since. */
	return dsf_time_before(dsf_time_after(clock->last, ahead_ns), depart) &&
	       dsf_time_before(dsf_time_after(uring_clock_now(clock), ahead_ns), depart);
}

int uring_port_parse(struct uring_port *p, const struct uring_clock *clock, uint8_t *buffer,
	uint32_t size, struct uring_arrival *a)
{
	dsf_instant depart;

	a->checksum_start = a->checksum_offset = NODE_CHECKSUM_NONE;
	a->ifindex = 0;
	if (p->config.kind == URING_PORT_ETHERNET || p->config.kind == URING_PORT_HOST)
		return parse_packet(p, clock, buffer, size, a);
	a->bytes = buffer;
	a->size = size;
	a->due = clock->last; /* what we can't read is the node's to refuse, at once */
	if (p->config.kind != URING_PORT_FABRIC || !fabric_train_departure(buffer, size, &depart))
		return 0;
	if (is_too_far_ahead(p, clock, depart))
		return -ERANGE;
	a->due = dsf_time_after(depart, p->config.delay_ns);
	return 0;
}

void uring_port_collect_drops(struct uring_port *p, struct uring_fidelity *f)
{
	struct tpacket_stats stats;
	socklen_t size = sizeof(stats);

	if (p->fd >= 0 && p->config.kind != URING_PORT_TUN &&
		getsockopt(p->fd, SOL_PACKET, PACKET_STATISTICS, &stats, &size) == 0)
		*(f->catching_up ? &f->cut : &f->drops[URING_DROP_SOCKET]) += stats.tp_drops;
}

/* Carrier as it is now; the netlink news of a change may still be under way. */
static bool link_is_up(const struct uring_port *p)
{
	struct ethtool_value value = { .cmd = ETHTOOL_GLINK };
	struct ifreq request;

	memset(&request, 0, sizeof(request));
	strncpy(request.ifr_name, p->config.name, sizeof(request.ifr_name) - 1);
	request.ifr_data = (char *)&value;
	return ioctl(p->fd, SIOCETHTOOL, &request) == 0 && value.data != 0;
}

void uring_port_settle(struct uring_port *p, struct uring_fidelity *f, bool went_down)
{
	if (p->refused == 0)
		return;
	if (p->config.kind == URING_PORT_TUN) {
		f->drops[URING_DROP_TUN] += p->refused;
		log_warn("%s: the kernel refused %u packets", p->config.name, p->refused);
	} else if (went_down || !link_is_up(p)) {
		f->cut += p->refused;
	} else if (p->config.kind == URING_PORT_HOST) {
		f->nic_drops += p->refused;
	} else {
		f->drops[URING_DROP_SEND] += p->refused;
		log_warn("%s: the kernel refused %u frames", p->config.name, p->refused);
	}
	p->refused = 0;
}
