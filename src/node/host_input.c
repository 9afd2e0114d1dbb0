#include "ip/icmp.h"
#include "ip/ndp_wire.h"
#include "node/host_state.h"

int node_host_drop(struct node_host *h, int err)
{
	if (err < 0)
		h->errors[DSF_ERR_INDEX(err)]++;
	return err;
}

/* The checksum covers what is stored: everything, or the head and the name of the payload. */
static bool checksum_right(const struct ip_packet *ip, const uint8_t *bytes, uint32_t stored)
{
	uint32_t end = ip->transport_offset + ip->transport_size;
	uint64_t sum = ip_checksum_pseudo(
		&ip->source, &ip->destination, ip->transport_size, IP_PROTOCOL_UDP);

	if (stored < end)
		end = stored;
	if (dsf_load_be16(bytes + ip->transport_offset + 6) == 0)
		return false; /* RFC 8200 8.1: UDP over IPv6 always has one */
	return ip_checksum_fold(ip_checksum_add(sum, 0, bytes + ip->transport_offset,
		       end - ip->transport_offset)) == 0xffffu;
}

static int transport_input(struct node_host *h, struct node_host_port *p,
	const struct ip_packet *ip, const uint8_t *bytes, uint32_t stored, dsf_instant now)
{
	struct node_host_nic *nic = &h->nics[p->rail];
	uint32_t head = ip->transport_offset + IP_UDP_SIZE;
	uint32_t end = ip->transport_offset + ip->transport_size;
	struct metaroce_placement place;
	int err;

	if (stored > end)
		stored = end; /* Ethernet padding */
	err = metaroce_input(nic->transport, p->plane, &ip->source, ip->ecn == IP_ECN_CE,
		bytes + head, stored - head, end - head, &place, now);
	if (place.request != 0) {
		/* Pattern memory is placed here and now, by looking whether what came is what
		 * belongs there. */
		size_t wrong = metaroce_payload_check(place.memory, place.offset,
			bytes + head + place.head, stored - head - place.head, place.size);

		metaroce_placed(nic->transport, place.request, wrong > 0 ? -DSF_E_CORRUPT : 0, now);
	}
	node_host_flow_completions(h, nic, now);
	return err;
}

/* A simulated host answers for its kernel. */
static int kernel_input(struct node_host *h, struct node_host_port *p, struct ip_packet *ip,
	const struct node_frame *frame)
{
	struct ip_ndp_message m;
	uint8_t answer[IP_NDP_FRAME_SIZE];
	bool unspecified = dsf_ip6_is_unspecified(&ip->source);
	struct dsf_ip6 target;
	struct dsf_mac target_mac;
	size_t size;
	int err;

	if (!ip_ndp_wire_is(ip, frame->bytes, frame->stored))
		return -DSF_E_UNSUPPORTED;
	err = ip_ndp_wire_read(&m, ip, frame->bytes, frame->stored);
	if (err < 0)
		return err;
	if (m.advertisement || !dsf_ip6_equal(&m.target, &p->port->address))
		return 0; /* not for us, or news that we don't need: our gateway is given */
	target = ip->source;
	target_mac = m.has_mac ? m.mac : ip->source_mac;
	if (unspecified) {
		/* Duplicate address detection: to all nodes. */
		target = (struct dsf_ip6){ { 0xff, 0x02, [15] = 1 } };
		target_mac = ip_ndp_wire_mac(&target);
	}
	size = ip_ndp_wire_write(answer, IP_NDP_ADVERTISE,
		IP_NDP_FLAG_OVERRIDE | (unspecified ? 0 : IP_NDP_FLAG_SOLICITED), &p->port->address,
		&p->port->mac, &p->port->address, &target_mac, &target);
	return node_host_port_reply(h, p, answer, (uint32_t)size, (uint32_t)size) ? 0 : -DSF_E_FULL;
}

static int echo_input(struct node_host *h, struct node_host_port *p, struct ip_packet *ip,
	const struct node_frame *frame)
{
	struct node_host_frame *reply;

	if (!node_host_port_reply(h, p, frame->bytes, frame->stored, frame->size))
		return -DSF_E_FULL;
	reply = p->reply_last;
	ip_icmp_echo_reply(ip, reply->bytes);
	return 0;
}

static bool is_udp_of_ours(const struct ip_packet *ip)
{
	return ip->protocol == IP_PROTOCOL_UDP && !ip->fragment &&
	       ip->transport_size >= IP_UDP_SIZE &&
	       (ip->target_port == METAROCE_UDP_PORT || ip->target_port == NODE_HOST_UDP_PORT);
}

int node_host_frame_input(
	struct node_host *h, uint32_t port, const struct node_frame *frame, dsf_instant now)
{
	struct node_host_port *p;
	struct ip_packet ip;
	int err;

	if (port >= h->ports_count)
		return node_host_drop(h, -DSF_E_UNKNOWN);
	p = &h->ports[port];
	p->view.frames_rx++;
	p->view.bytes_rx += frame->size;
	h->packets_rx++;
	err = ip_packet_parse_frame(&ip, frame->bytes, frame->stored, frame->size);
	if (err < 0)
		return h->simulated ? node_host_drop(h, err) : 0; /* the kernel's to judge */
	if (h->simulated && !is_udp_of_ours(&ip)) {
		if (dsf_ip6_equal(&ip.destination, &p->port->address) &&
			ip_icmp_is_echo_request(&ip, frame->bytes, frame->stored))
			return node_host_drop(h, echo_input(h, p, &ip, frame));
		return node_host_drop(h, kernel_input(h, p, &ip, frame));
	}
	if (!is_udp_of_ours(&ip))
		return 0; /* the kernel's */
	if (memcmp(&ip.target_mac, &p->port->mac, sizeof(ip.target_mac)) != 0 ||
		!dsf_ip6_equal(&ip.destination, &p->port->address))
		return node_host_drop(h, -DSF_E_UNKNOWN);
	if (frame->stored < ip.transport_offset + IP_UDP_SIZE)
		return node_host_drop(h, -DSF_E_TRUNCATED);
	if (dsf_load_be16(frame->bytes + ip.transport_offset + 4) != ip.transport_size)
		return node_host_drop(h, -DSF_E_BADFIELD);
	/* A partial checksum says that the packet never left this machine's memory. */
	if (frame->checksum_start == NODE_CHECKSUM_NONE &&
		!checksum_right(&ip, frame->bytes, frame->stored))
		return node_host_drop(h, -DSF_E_CHECKSUM);
	if (ip.target_port == METAROCE_UDP_PORT)
		err = transport_input(h, p, &ip, frame->bytes, frame->stored, now);
	else
		err = node_host_udp_input(h, p, &ip, frame->bytes, frame->stored, now);
	return node_host_drop(h, err);
}
