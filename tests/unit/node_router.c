/*
 * A leaf of a routed fabric by hand: the way of packets, what is answered, next hops that come and
 * go, and an allocator that fails at any call.
 */
#include "base/cursor.h"
#include "base/err.h"
#include "ip/icmp.h"
#include "ip/ndp_wire.h"
#include "node/node.h"
#include "node/row.h"
#include "tests/memory.h"
#include "tests/tap.h"
#include "topo/file.h"

static const char clos[] =
	"{\"name\":\"unit\",\"seed\":1,\"planes\":1,\"buildings\":[{\"name\":\"b0\",\"zones\":[{"
	"\"name\":\"z0\",\"scaling_units\":1,\"rails\":2,\"hosts_per_unit\":2,\"fdsw\":4}]}],"
	"\"link_defaults\":{\"fabric\":{\"mtu\":2000}},\"fabric\":{\"mode\":\"ecmp\"}}";

#define FLOWS 256u

static struct test_memory memory = TEST_MEMORY(memory);
static struct topo *topo;
static struct node *node;
static const struct topo_node *self;
static dsf_instant now;

/* What came out last, but for NDP. */
static struct {
	uint32_t count, port, size;
	uint8_t bytes[2048];
	struct ip_packet packet;
} out;

static uint32_t port_of(const char *name)
{
	for (uint32_t i = 0; i < self->ports_count; i++)
		if (strcmp(topo_node_port(topo, self, i)->name, name) == 0)
			return i;
	return TOPO_NONE;
}

static const struct topo_port *peer_of(uint32_t port)
{
	return &topo->ports[topo_node_port(topo, self, port)->peer];
}

/* The neighbour at the other end answers. */
static void answer(uint32_t port, const uint8_t *bytes, const struct ip_packet *p)
{
	const struct topo_port *own = topo_node_port(topo, self, port), *peer = peer_of(port);
	struct ip_ndp_message m;
	uint8_t frame[IP_NDP_FRAME_SIZE];
	struct node_frame in = { frame, 0, 0, NODE_CHECKSUM_NONE, 0 };

	if (ip_ndp_wire_read(&m, p, bytes, p->header_offset + p->size) < 0 || m.advertisement ||
		!dsf_ip6_equal(&m.target, &peer->address))
		return;
	in.stored = in.size = (uint32_t)ip_ndp_wire_write(frame, IP_NDP_ADVERTISE,
		IP_NDP_FLAG_OVERRIDE | IP_NDP_FLAG_SOLICITED, &peer->address, &peer->mac,
		&peer->address, &own->mac, &own->address);
	(void)node_frame_input(node, port, &in, now);
}

static void drain(void)
{
	struct node_output o;

	while (node_output(node, &o, now)) {
		uint8_t bytes[2048];
		struct ip_packet p;
		int err;

		memcpy(bytes, o.head, o.head_size < sizeof(bytes) ? o.head_size : sizeof(bytes));
		node_frame_done(node, o.buffer);
		err = o.port == NODE_PORT_INBAND
			      ? ip_packet_parse_bare(&p, bytes, o.head_size, o.size)
			      : ip_packet_parse_frame(&p, bytes, o.head_size, o.size);
		if (err < 0)
			continue;
		if (ip_ndp_wire_is(&p, bytes, o.head_size)) {
			answer(o.port, bytes, &p);
			continue;
		}
		out.count++;
		out.port = o.port;
		out.size = o.size;
		out.packet = p;
		memcpy(out.bytes, bytes, sizeof(bytes));
	}
}

static bool make(void)
{
	struct node_config config = {
		.topo = topo,
		.memory = &memory.memory,
		.seed = 1,
		.control_dilation = 1,
		.starting = true,
	};

	while (topo->nodes[config.index].role != TOPO_ROLE_RDSW)
		config.index++;
	self = &topo->nodes[config.index];
	now = (dsf_instant){ 1000 };
	node = node_new(&config, now);
	return node != NULL;
}

static void all_up(void)
{
	for (uint32_t i = 0; i < self->ports_count; i++) {
		node_carrier(node, i, true, now);
		drain();
	}
}

/* A UDP packet into a port. */
struct sending {
	uint32_t port; /* or NODE_PORT_INBAND */
	struct dsf_ip6 to;
	uint16_t source_port;
	uint8_t hop_limit;
	uint32_t size; /* IP bytes */
	bool stranger; /* to another MAC */
};

static int send(const struct sending *s)
{
	uint8_t frame[IP_ETHERNET_SIZE + 9216] = { 0 };
	uint8_t *header = frame + IP_ETHERNET_SIZE;
	struct node_frame in = { frame, IP_ETHERNET_SIZE + s->size, IP_ETHERNET_SIZE + s->size,
		NODE_CHECKSUM_NONE, 0 };
	const struct dsf_ip6 *from = &self->loopback;
	int err;

	if (s->port != NODE_PORT_INBAND) {
		struct dsf_mac mac = topo_node_port(topo, self, s->port)->mac;

		mac.bytes[5] ^= s->stranger ? 0x55 : 0;
		from = &peer_of(s->port)->address;
		ip_packet_write_ethernet(frame, &mac, &peer_of(s->port)->mac);
	} else {
		in = (struct node_frame){ header, s->size, s->size, NODE_CHECKSUM_NONE, 0 };
	}
	ip_packet_write_header(header, from, &s->to, 50, IP_ECN_ECT0, IP_PROTOCOL_UDP, s->hop_limit,
		s->size - IP_HEADER_SIZE);
	dsf_store_be16(header + IP_HEADER_SIZE, s->source_port);
	dsf_store_be16(header + IP_HEADER_SIZE + 2, 4791);
	memset(&out, 0, sizeof(out));
	err = node_frame_input(node, s->port, &in, now);
	drain();
	return err;
}

/* A host behind the other leaf. */
static struct dsf_ip6 remote(void)
{
	for (uint32_t i = 0; i < topo->nodes_count; i++) {
		const struct topo_node *n = &topo->nodes[i];

		if (n->role == TOPO_ROLE_RDSW && n != self)
			return topo->ports[topo_node_port(topo, n, 0)->peer].address;
	}
	return self->loopback;
}

static bool is_error(uint8_t type, uint8_t code, uint32_t port)
{
	const uint8_t *icmp = out.bytes + out.packet.transport_offset;

	return out.count == 1 && out.port == port && out.packet.protocol == IP_PROTOCOL_ICMP6 &&
	       icmp[0] == type && icmp[1] == code &&
	       dsf_ip6_equal(&out.packet.source, &topo_node_port(topo, self, port)->address) &&
	       dsf_ip6_equal(&out.packet.destination, &peer_of(port)->address);
}

static void forwarding(void)
{
	uint32_t eth0 = port_of("eth0"), eth1 = port_of("eth1"), fab0 = port_of("fab0");
	struct sending s = { eth0, remote(), 1, 64, 200, false };

	TAP_EQ(send(&s), 0, "to a host behind the other leaf");
	TAP_OK(out.count == 1 && out.port >= fab0 && out.port < fab0 + 4, "leaves by an uplink");
	TAP_EQ(out.packet.hop_limit, 63, "one hop less");
	TAP_OK(memcmp(&out.packet.target_mac, &peer_of(out.port)->mac, 6) == 0 &&
			memcmp(&out.packet.source_mac, &topo_node_port(topo, self, out.port)->mac,
				6) == 0,
		"with the MACs of that link");
	TAP_OK(dsf_ip6_equal(&out.packet.destination, &s.to) && out.size == 214, "as it was");
	s.to = peer_of(eth1)->address;
	TAP_OK(send(&s) == 0 && out.port == eth1, "to a host of our own");
	s.to = self->loopback;
	TAP_OK(send(&s) == 0 && out.port == NODE_PORT_INBAND && out.packet.hop_limit == 64,
		"to our loopback: up the host port");
	s.to = topo_node_port(topo, self, fab0)->address;
	TAP_OK(send(&s) == 0 && out.port == NODE_PORT_INBAND, "to the address of an uplink too");
	s = (struct sending){ NODE_PORT_INBAND, remote(), 1, 1, 200, false };
	TAP_OK(send(&s) == 0 && out.port >= fab0 && out.packet.hop_limit == 1,
		"what our kernel sends keeps its hop limit");
	s = (struct sending){ eth0, remote(), 1, 64, 200, true };
	TAP_OK(send(&s) == -DSF_E_UNKNOWN && out.count == 0, "not to our MAC: dropped");
}

static void errors(void)
{
	uint32_t eth0 = port_of("eth0");
	struct sending s = { eth0, remote(), 1, 1, 200, false };

	TAP_EQ(send(&s), -DSF_E_HOPLIMIT, "the last hop");
	TAP_OK(is_error(3, 0, eth0), "is answered: time exceeded");
	s.hop_limit = 64;
	s.size = 2001;
	TAP_EQ(send(&s), -DSF_E_TOOBIG, "larger than an uplink takes");
	TAP_OK(is_error(2, 0, eth0) &&
			dsf_load_be32(out.bytes + out.packet.transport_offset + 4) == 2000,
		"is answered: too big, with what fits");
	s.size = 2000;
	TAP_OK(send(&s) == 0 && out.count == 1, "what fits goes");
	s.to = (struct dsf_ip6){ { 0xfd, 0x5f, 0, 9, [15] = 1 } };
	TAP_EQ(send(&s), -DSF_E_NOROUTE, "to nowhere");
	TAP_OK(is_error(1, 0, eth0), "is answered: no route");
	s.to = peer_of(eth0)->address;
	s.to.bytes[15] = 77;
	TAP_EQ(send(&s), -DSF_E_NONEIGHBOR, "who isn't known is looked for");
	s.to = (struct dsf_ip6){ { 0xff, 0x0e, [15] = 1 } };
	TAP_EQ(send(&s), -DSF_E_BADFIELD, "multicast isn't routed");
}

static void take_ways(uint32_t *ways)
{
	struct sending s = { port_of("eth0"), remote(), 0, 64, 200, false };

	for (uint32_t i = 0; i < FLOWS; i++) {
		s.source_port = (uint16_t)(1024 + i);
		ways[i] = send(&s) == 0 ? out.port : TOPO_NONE;
		now = dsf_time_after(now, 1000);
	}
}

static void next_hops(void)
{
	uint32_t before[FLOWS], after[FLOWS], shares[4] = { 0 }, fab0 = port_of("fab0");
	uint32_t moved = 0, gone = 0;
	struct sending s = { port_of("eth0"), remote(), 1, 64, 200, false };

	take_ways(before);
	for (uint32_t i = 0; i < FLOWS; i++)
		shares[before[i] - fab0]++;
	TAP_OK(shares[0] > 35 && shares[1] > 35 && shares[2] > 35 && shares[3] > 35,
		"flows spread: %u %u %u %u", shares[0], shares[1], shares[2], shares[3]);
	node_carrier(node, fab0 + 2, false, now);
	drain();
	take_ways(after);
	for (uint32_t i = 0; i < FLOWS; i++) {
		moved += before[i] != fab0 + 2 && after[i] != before[i];
		gone += after[i] == fab0 + 2 || after[i] == TOPO_NONE;
	}
	TAP_OK(moved == 0 && gone == 0, "an uplink is lost: its flows move, at once, no others");
	node_carrier(node, fab0 + 2, true, now);
	drain();
	take_ways(after);
	TAP_OK(memcmp(before, after, sizeof(before)) == 0, "it is back: all is as it was");
	for (uint32_t i = 0; i < 4; i++)
		node_carrier(node, fab0 + i, false, now);
	drain();
	TAP_EQ(send(&s), -DSF_E_NOROUTE, "without uplinks there is no route");
	for (uint32_t i = 0; i < 4; i++)
		node_carrier(node, fab0 + i, true, now);
	drain();
	TAP_EQ(send(&s), 0, "with them there is");
}

static uint64_t inband_rate;

static void take_inband(void *user, const struct node_row *row)
{
	(void)user;
	if (row->port.port == NODE_PORT_INBAND)
		inband_rate = row->port.rate_bps;
}

static uint64_t rate_of_inband(void)
{
	node_view(node, NODE_QUERY_PORT, TOPO_NONE, take_inband, NULL, now);
	return inband_rate;
}

static void commands(void)
{
	struct node_command c = { .kind = NODE_COMMAND_DRAIN_NODE, .drained = true };

	TAP_EQ(node_command(node, &c, now), -DSF_E_UNSUPPORTED, "routers aren't drained");
	c.kind = NODE_COMMAND_DRAIN_PORT;
	TAP_EQ(node_command(node, &c, now), -DSF_E_UNSUPPORTED, "nor are their ports");
	TAP_EQ(rate_of_inband(), 0, "while the lab starts the host port has no rate");
	c.kind = NODE_COMMAND_STARTED;
	TAP_EQ(node_command(node, &c, now), 0, "it has started");
	TAP_EQ(rate_of_inband(), 100000000000, "then that of the published recycle port");
	c = (struct node_command){ .kind = NODE_COMMAND_IMPAIR,
		.port = port_of("fab0"),
		.impairment = { .loss_ppm = 1000000 } };
	TAP_EQ(node_command(node, &c, now), 0, "a port is impaired");
}

static void live(void)
{
	struct sending s = { port_of("eth0"), remote(), 1, 64, 200, false };

	all_up();
	for (uint32_t i = 0; i < 20; i++) {
		s.source_port = (uint16_t)i;
		(void)send(&s);
	}
	node_carrier(node, port_of("fab1"), false, now);
	(void)send(&s);
	drain();
}

static void failing_memory(void)
{
	unsigned long nth, failed = 0;

	for (nth = 1; nth < 400; nth++) {
		memory.failed = false;
		memory.fail_at = nth;
		if (make()) {
			live();
			node_free(node);
		}
		failed += memory.failed;
		memory.fail_at = 0;
		if (memory.live != 0)
			TAP_EQ(memory.live, 0, "allocation %lu fails: a leak", nth);
		if (!memory.failed)
			break;
	}
	TAP_OK(failed >= 10 && memory.live == 0, "each of %lu allocations failed once", failed);
}

int main(void)
{
	struct topo_error err;

	if (!TAP_EQ(topo_load_text(clos, strlen(clos), "clos", &topo, &err), 0, "the lab"))
		return TAP_DONE();
	if (!TAP_OK(make(), "a leaf"))
		return TAP_DONE();
	TAP_OK(!node_ready(node), "not ready without carrier");
	all_up();
	TAP_OK(node_ready(node), "ready when all neighbours are known");
	forwarding();
	errors();
	next_hops();
	commands();
	node_free(node);
	TAP_EQ(memory.live, 0, "nothing leaks");
	failing_memory();
	topo_free(topo);
	return TAP_DONE();
}
