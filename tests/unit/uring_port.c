/*
 * What can happen to a port: its link goes and comes, its buffers run out, its peer sends what it
 * should not, its own sends are refused; and what goes out waits for its departure.
 */
#include "tests/descriptors.h"
#include "tests/unit/uring_net.h"
#include <linux/udp.h>
#include <malloc.h>
#include <sys/ioctl.h>

#define PATIENCE_NS (10 * NS_PER_S) /* of a slow machine */

static unsigned drain(int fd)
{
	uint8_t bytes[FAKE_FRAME_MAX];
	unsigned count = 0;

	while (recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		count++;
	return count;
}

/* Turns until port 0's carrier at the node is as wanted; false: a good while has passed. */
static bool carrier_becomes(bool up)
{
	uint64_t end_ns = uring_clock_wall_ns() + PATIENCE_NS;

	while (fake->carrier[0] != up && uring_clock_wall_ns() < end_ns)
		uring_process_turn(&process);
	return fake->carrier[0] == up;
}

/* Until the kernel has given our own end its queue: what is sent before vanishes. */
static bool sends(const char *end)
{
	struct ifreq request = { .ifr_flags = 0 };
	uint64_t end_ns = uring_clock_wall_ns() + PATIENCE_NS;
	int fd = socket(AF_INET6, SOCK_DGRAM, 0);

	strncpy(request.ifr_name, end, sizeof(request.ifr_name) - 1);
	while ((request.ifr_flags & IFF_RUNNING) == 0 && uring_clock_wall_ns() < end_ns) {
		uring_process_turn(&process);
		if (ioctl(fd, SIOCGIFFLAGS, &request) < 0)
			break;
	}
	close(fd);
	return (request.ifr_flags & IFF_RUNNING) != 0;
}

static unsigned send_trains(int fd, unsigned count, size_t size, dsf_instant depart)
{
	uint8_t frame[FAKE_FRAME_MAX];
	unsigned sent = 0;

	for (unsigned i = 0; i < count; i++) {
		make_train(frame, size, depart, (uint8_t)i);
		sent += send(fd, frame, size, 0) == (ssize_t)size;
	}
	return sent;
}

static void test_flap(const char *end)
{
	char down[64], up[64];
	int in, out;

	snprintf(down, sizeof(down), "ip link set %s down", end);
	snprintf(up, sizeof(up), "ip link set %s up", end);
	if (!TAP_OK(start(TOPO_ROLE_FDSW, "ff", 500, 1), "flap of %s: starts", end))
		return;
	in = packet_socket("q0", FABRIC_ETHERTYPE);
	out = packet_socket("q1", FABRIC_ETHERTYPE);
	TAP_OK(fake->carrier[0] && fake->carrier[1], "flap of %s: carrier is known at once", end);
	for (unsigned round = 0; round < 3; round++) {
		run(down);
		TAP_OK(carrier_becomes(false), "flap of %s: carrier lost", end);
		run(up);
		TAP_OK(carrier_becomes(true) && sends("q0"), "flap of %s: carrier back", end);
		drain(out);
		recv(in, down + 32, 1, MSG_DONTWAIT); /* takes the error of q0's own socket */
		TAP_EQ(send_trains(in, 10, 200, process.now), 10, "flap of %s: sent", end);
		turn_for_ms(10);
		TAP_EQ(drain(out), 10, "flap of %s: received again", end);
	}
	close(in);
	close(out);
	uring_setup_close(&process);
}

/* What is on a link when it loses carrier is the node's to count. */
static void test_cut(void)
{
	int in, out;

	if (!TAP_OK(start(TOPO_ROLE_FDSW, "ff", NS_PER_S, 1), "cut: starts"))
		return;
	in = packet_socket("q0", FABRIC_ETHERTYPE);
	out = packet_socket("q1", FABRIC_ETHERTYPE);
	send_trains(in, 20, 200, process.now);
	while (process.hold.heap.count < 20)
		uring_process_turn(&process);
	run("ip link set q0 down");
	carrier_becomes(false);
	TAP_EQ(fake->frames_without_carrier, 20, "cut: held frames go to a node without carrier");
	TAP_EQ(process.hold.heap.count, 0, "cut: nothing is held any more");
	TAP_EQ(process.trains.taken, 0, "cut: all buffers given back");
	/* And what we send over a dead link is lost with it, not by the emulator. */
	run("ip link set q1 down");
	send_trains(in, 1, 200, process.now);
	turn_for_ms(10);
	TAP_EQ(uring_fidelity_drops(&process.fidelity), 0, "cut: no emulator drop");
	run("ip link set q0 up");
	run("ip link set q1 up");
	TAP_OK(sends("q0") && sends("q1"), "cut: back");
	close(in);
	close(out);
	uring_setup_close(&process);
}

/* A link that flaps is up again before anybody asks: what it refused meanwhile is lost with it. */
static void test_refused(void)
{
	int in;

	if (!TAP_OK(start(TOPO_ROLE_FDSW, "ff", 500, 1), "refused: starts"))
		return;
	fake->forward = false;
	in = packet_socket("q0", FABRIC_ETHERTYPE);
	turn_for_ms(10);
	process.ports[1].refused = 1;
	send_trains(in, 1, 200, process.now);
	turn_for_ms(10);
	TAP_EQ(process.fidelity.drops[URING_DROP_SEND], 1, "refused: by a link that was up");
	run("ip link set q1 down");
	run("ip link set q1 up");
	process.ports[1].refused = 2;
	send_trains(in, 1, 200, process.now);
	turn_for_ms(10);
	TAP_EQ(process.fidelity.cut, 2, "refused: by one that has gone and come");
	TAP_EQ(process.fidelity.drops[URING_DROP_SEND], 1, "refused: that is no emulator drop");
	carrier_becomes(true);
	process.ports[1].refused = 4;
	send_trains(in, 1, 200, process.now);
	turn_for_ms(10);
	TAP_EQ(process.fidelity.drops[URING_DROP_SEND], 5, "refused: up for good again");
	close(in);
	uring_setup_close(&process);
}

/* Who says that a train departs when nobody can has no place in the hold queue. */
static void test_ahead(void)
{
	static const struct node_impairment slow = { .delay_ns = 100 * NS_PER_S,
		.jitter_ns = 20 * NS_PER_S };
	dsf_instant now;
	int in;

	if (!TAP_OK(start(TOPO_ROLE_FDSW, "ff", 500, 1), "ahead: starts"))
		return;
	in = packet_socket("q0", FABRIC_ETHERTYPE);
	now = uring_clock_read(&process.clock);
	send_trains(in, 30, 200, dsf_time_after(now, 100 * NS_PER_S));
	send_trains(in, 1, 200, DSF_NEVER);
	turn_for_ms(10);
	TAP_EQ(process.fidelity.drops[URING_DROP_AHEAD], 31, "ahead: each is counted");
	TAP_OK(process.hold.heap.count == 0 && process.trains.taken == 0 && fake->frames == 0,
		"ahead: and none is held, or handed on");
	uring_port_expect(&process.ports[0], &slow, 400000000000);
	send_trains(in, 3, 200, dsf_time_after(now, 100 * NS_PER_S));
	turn_for_ms(10);
	TAP_OK(process.hold.heap.count == 3 && process.fidelity.drops[URING_DROP_AHEAD] == 31,
		"ahead: on a link that is as slow as that they are held");
	uring_port_expect(&process.ports[0], &(struct node_impairment){ 0 }, 400000000000);
	send_trains(in, 1, 200, dsf_time_after(now, 100 * NS_PER_S));
	turn_for_ms(10);
	TAP_EQ(process.hold.heap.count, 4,
		"ahead: also what is still on its way when it is so no more");
	send_trains(in, 1, 200, dsf_time_after(now, 1000 * NS_PER_S));
	turn_for_ms(10);
	TAP_EQ(process.fidelity.drops[URING_DROP_AHEAD], 32, "ahead: but nothing beyond");
	close(in);
	uring_setup_close(&process);
}

/* More than the receive buffers hold waits in the socket; more than the socket holds is counted. */
static void test_exhaustion(void)
{
	unsigned sent, received;
	int in, out;

	if (!TAP_OK(start(TOPO_ROLE_FDSW, "ff", 500, 1), "exhaustion: starts"))
		return;
	in = packet_socket("q0", FABRIC_ETHERTYPE);
	out = packet_socket("q1", FABRIC_ETHERTYPE);
	sent = send_trains(in, 4000, 256, process.now);
	turn_for_ms(50);
	TAP_EQ(fake->frames, sent, "exhaustion: 4000 frames in one go, none lost");
	TAP_EQ(process.trains.count, process.trains.count_max, "exhaustion: all buffers in use");
	TAP_EQ(drain(out), sent, "exhaustion: all came through");
	uring_process_collect_drops(&process);
	TAP_EQ(uring_fidelity_drops(&process.fidelity), 0, "exhaustion: no emulator drop");

	fake->forward = false;
	fake->frames = 0;
	sent = send_trains(in, 3000, 16384, process.now);
	turn_for_ms(50);
	received = fake->frames;
	uring_process_collect_drops(&process);
	TAP_OK(received < sent, "exhaustion: a socket of 8 MB can't hold 48 MB (%u of %u)",
		received, sent);
	TAP_EQ(process.fidelity.drops[URING_DROP_SOCKET], sent - received,
		"exhaustion: each lost frame is counted");
	uring_fidelity_reset(&process.fidelity);
	TAP_EQ(process.fidelity.past_drops, sent - received, "exhaustion: kept over a reset");
	close(in);
	close(out);
	uring_setup_close(&process);
}

/* A packet waits for its departure and then the link's delay. */
static void test_departure(void)
{
	uint8_t frame[100], bytes[FAKE_FRAME_MAX];
	uint64_t before_ns, after_ns = 0;
	int in, out;

	if (!TAP_OK(start(TOPO_ROLE_FDSW, "ee", 10 * NS_PER_MS, 1), "departure: starts"))
		return;
	in = packet_socket("q0", ETH_P_IPV6);
	out = packet_socket("q1", ETH_P_IPV6);
	fake->hold_ns = 20 * NS_PER_MS;
	before_ns = uring_clock_wall_ns();
	send(in, frame, make_packet(frame, sizeof(frame), 1), 0);
	for (unsigned turns = 0; turns < 5000 && after_ns == 0; turns++) {
		uring_process_turn(&process);
		if (recv(out, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
			after_ns = uring_clock_wall_ns();
	}
	TAP_OK(after_ns >= before_ns + 40 * NS_PER_MS,
		"departure: delay in, 20 ms in the node, delay out");
	/* Waiting packets of a link that dies are lost with it. */
	fake->hold_ns = 60 * NS_PER_S;
	send(in, frame, make_packet(frame, sizeof(frame), 2), 0);
	while (process.transmit.heap.count == 0)
		uring_process_turn(&process);
	run("ip link set q1 down");
	for (unsigned turns = 0; turns < 5000 && fake->carrier[1]; turns++)
		uring_process_turn(&process);
	TAP_EQ(process.transmit.heap.count, 0, "departure: given up at carrier loss");
	TAP_EQ(process.fidelity.cut, 1, "departure: and counted as modelled");
	TAP_EQ(fake->done, 2, "departure: its buffer is back");
	run("ip link set q1 up");
	close(in);
	close(out);
	uring_setup_close(&process);
}

static int vnet_socket(const char *name)
{
	int fd = packet_socket(name, ETH_P_IPV6), yes = 1;

	setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &yes, sizeof(yes));
	return fd;
}

/* An IPv6 + UDP frame with a virtio header in front. */
static size_t make_udp(uint8_t *bytes, size_t payload, const struct virtio_net_hdr *header)
{
	uint8_t *frame = bytes + sizeof(*header);
	size_t size = 14 + 40 + 8 + payload;

	memset(frame, 0, size);
	memcpy(bytes, header, sizeof(*header));
	memset(frame, 2, 12);
	dsf_store_be16(frame + 12, ETH_P_IPV6);
	frame[14] = 0x60;
	dsf_store_be16(frame + 18, (uint16_t)(8 + payload));
	frame[20] = IPPROTO_UDP;
	dsf_store_be16(frame + 58, (uint16_t)(8 + payload));
	return sizeof(*header) + size;
}

static void test_virtio(void)
{
	struct virtio_net_hdr header = {
		.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM, .csum_start = 54, .csum_offset = 6
	};
	uint8_t bytes[FAKE_FRAME_MAX];
	ssize_t size;
	int in, out;

	if (!TAP_OK(start(TOPO_ROLE_FDSW, "ee", 500, 1), "virtio: starts"))
		return;
	in = vnet_socket("q0");
	out = vnet_socket("q1");
	size = (ssize_t)make_udp(bytes, 50, &header);
	TAP_EQ(send(in, bytes, (size_t)size, 0), size, "virtio: partial checksum sent");
	turn_for_ms(10);
	TAP_EQ(fake->frames, 1, "virtio: received");
	for (uint32_t i = 0; i < fake->records_count; i++)
		if (fake->records[i].kind == FAKE_FRAME) {
			TAP_EQ(fake->records[i].size, size - 10, "virtio: size of the frame alone");
			TAP_EQ(fake->records[i].checksum_start, 54, "virtio: start in");
			TAP_EQ(fake->records[i].checksum_offset, 6, "virtio: offset in");
		}
	TAP_EQ(recv(out, bytes, sizeof(bytes), MSG_DONTWAIT), size, "virtio: forwarded");
	memcpy(&header, bytes, sizeof(header));
	TAP_OK(header.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM, "virtio: still to be completed");
	TAP_EQ(header.csum_start, 54, "virtio: start out");

	header.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
	header.csum_offset = 16;
	header.gso_type = VIRTIO_NET_HDR_GSO_TCPV6;
	header.gso_size = 1000;
	header.hdr_len = 74;
	size = (ssize_t)make_udp(bytes, 3000, &header);
	bytes[sizeof(header) + 20] = IPPROTO_TCP;
	bytes[sizeof(header) + 66] = 5 << 4;
	TAP_EQ(send(in, bytes, (size_t)size, 0), size, "virtio: several segments sent");
	turn_for_ms(10);
	TAP_EQ(process.fidelity.drops[URING_DROP_SEGMENTS], 1, "virtio: segments are counted");
	memset(&header, 0, sizeof(header));
	size = (ssize_t)make_udp(bytes, 12000, &header);
	TAP_EQ(send(in, bytes, (size_t)size, 0), size, "virtio: oversize sent");
	turn_for_ms(10);
	TAP_EQ(process.fidelity.drops[URING_DROP_OVERSIZE], 1, "virtio: oversize is counted");
	TAP_EQ(fake->frames, 1, "virtio: neither reached the node");
	TAP_EQ(process.packets.taken, 0, "virtio: all buffers given back");
	close(in);
	close(out);
	uring_setup_close(&process);
}

/* What the switch's kernel sends comes in by the host port, and the other way round. */
static void test_inband(void)
{
	struct sockaddr_in6 from = { .sin6_family = AF_INET6, .sin6_port = htons(7000) };
	struct sockaddr_in6 to = { .sin6_family = AF_INET6, .sin6_port = htons(7001) };
	uint8_t packet[64] = { 0x60, 0, 0, 0, 0, 16, IPPROTO_UDP, 64 }, bytes[64];
	uint32_t seen = 0;
	int fd, yes = 1;

	if (!TAP_OK(start(TOPO_ROLE_RDSW, "fe", 500, 1), "inband: starts"))
		return;
	fake->forward = false;
	memcpy(&from.sin6_addr, &lab.nodes[0].loopback, 16);
	memcpy(&to.sin6_addr, &lab.nodes[0].loopback, 16);
	to.sin6_addr.s6_addr[14] = 1;
	fd = socket(AF_INET6, SOCK_DGRAM, 0);
	setsockopt(fd, IPPROTO_UDP, UDP_NO_CHECK6_RX, &yes, sizeof(yes));
	TAP_EQ(bind(fd, (struct sockaddr *)&from, sizeof(from)), 0,
		"inband: the loopback is there");
	TAP_EQ(sendto(fd, "12345678", 8, 0, (struct sockaddr *)&to, sizeof(to)), 8,
		"inband: there is a route into the lab");
	turn_for_ms(20);
	for (uint32_t i = 0; i < fake->records_count; i++)
		seen += fake->records[i].kind == FAKE_FRAME &&
			fake->records[i].port == NODE_PORT_INBAND && fake->records[i].size == 56;
	TAP_EQ(seen, 1, "inband: the kernel's packet reached the node");
	memcpy(packet + 8, &to.sin6_addr, 16);
	memcpy(packet + 24, &from.sin6_addr, 16);
	dsf_store_be16(packet + 40, 7001);
	dsf_store_be16(packet + 42, 7000);
	dsf_store_be16(packet + 44, 16);
	fake_output(fake, NODE_PORT_INBAND, packet, 56, process.now);
	turn_for_ms(20);
	TAP_EQ(recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT), 8,
		"inband: the node's packet reached the kernel");
	uring_process_collect_drops(&process);
	TAP_EQ(uring_fidelity_drops(&process.fidelity), 0, "inband: no emulator drop");
	close(fd);
	uring_setup_close(&process);
}

static void test_leaks(void)
{
	unsigned descriptors = descriptors_count();
	size_t used;

	start(TOPO_ROLE_RDSW, "fe", 500, 1);
	uring_setup_close(&process);
	used = mallinfo2().uordblks;
	for (unsigned i = 0; i < 20; i++) {
		if (!start(TOPO_ROLE_RDSW, "fe", 500, 1))
			TAP_OK(false, "leaks: starts");
		turn_for_ms(2);
		uring_setup_close(&process);
	}
	TAP_EQ(descriptors_count(), descriptors, "leaks: every descriptor is closed");
	TAP_EQ(mallinfo2().uordblks, used, "leaks: all memory is freed");
	run("ip link set p0 name pX");
	TAP_OK(!start(TOPO_ROLE_RDSW, "fe", 500, 1), "leaks: a missing port is an error");
	run("ip link set pX name p0");
	TAP_EQ(descriptors_count(), descriptors, "leaks: which leaves no descriptor");
	TAP_EQ(mallinfo2().uordblks, used, "leaks: and no memory");
}

int main(void)
{
	if (!enter_namespace()) {
		TAP_SKIP("needs root to make a network namespace");
		return TAP_DONE();
	}
	make_pairs(2);
	test_flap("q0");
	test_flap("p0");
	test_cut();
	test_refused();
	test_ahead();
	test_exhaustion();
	test_departure();
	test_virtio();
	test_inband();
	test_leaks();
	return TAP_DONE();
}
