/*
 * One process between veth pairs, driven turn by turn, with a fake node: nothing is lost, frames
 * come in the order in which they are due, with their due instants, deadlines among them.
 */
#include "tests/unit/uring_net.h"

static unsigned count_received(int fd, uint8_t *first_out_of_order)
{
	uint8_t bytes[FAKE_FRAME_MAX], want = 0;
	unsigned count = 0;
	ssize_t size;

	*first_out_of_order = 0;
	while ((size = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0) {
		if (bytes[size - 1] != want && *first_out_of_order == 0)
			*first_out_of_order = 1;
		want = (uint8_t)(bytes[size - 1] + 1);
		count++;
	}
	return count;
}

/* Everything that goes in at one side comes out at the other, in order, at every size. */
static void test_forward(const char *kinds, size_t size, unsigned frames)
{
	bool trains = kinds[0] == 'f';
	int in, out;
	uint8_t frame[FAKE_FRAME_MAX], disorder;
	unsigned sent = 0, received = 0;

	if (!TAP_OK(start(TOPO_ROLE_FDSW, kinds, 500, 1), "%s: starts", kinds))
		return;
	in = packet_socket("q0", trains ? FABRIC_ETHERTYPE : ETH_P_IPV6);
	out = packet_socket("q1", trains ? FABRIC_ETHERTYPE : ETH_P_IPV6);
	disorder = 0;
	for (unsigned i = 0; i < frames; i++) {
		size_t n = trains ? make_train(frame, size, uring_clock_read(&process.clock),
					    (uint8_t)i)
				  : make_packet(frame, size, (uint8_t)i);

		sent += send(in, frame, n, 0) == (ssize_t)n;
		if (i % 64 == 63)
			uring_process_turn(&process);
	}
	turn_for_ms(20);
	received = count_received(out, &disorder);
	TAP_EQ(sent, frames, "%s %zu B: all sent", kinds, size);
	TAP_EQ(received, frames, "%s %zu B: all came through", kinds, size);
	TAP_EQ(disorder, 0, "%s %zu B: in order", kinds, size);
	TAP_EQ(fake->went_back, 0, "%s %zu B: now never goes back", kinds, size);
	TAP_EQ(fake->done, frames, "%s %zu B: every buffer was given back", kinds, size);
	uring_process_collect_drops(&process);
	TAP_EQ(uring_fidelity_drops(&process.fidelity), 0, "%s %zu B: no emulator drop", kinds,
		size);
	TAP_EQ(process.fidelity.late.count, fake->frames + fake->expired,
		"%s %zu B: lateness of every frame and deadline", kinds, size);
	close(in);
	close(out);
	uring_setup_close(&process);
}

#define ORDER_DELAY_NS (100 * NS_PER_MS)
#define ORDER_TRAINS   30 /* of each port */

/* Sends trains port by port, so that they arrive in an order that isn't that of their departures.
 * False: the machine was so slow that some were due before all had come. */
static bool send_disordered(const int *fds, dsf_instant *base)
{
	uint8_t frame[256];

	*base = uring_clock_read(&process.clock);
	for (unsigned port = 0; port < FAKE_PORTS; port++)
		for (unsigned i = 0; i < ORDER_TRAINS; i++) {
			uint64_t after_ns = i * 40000 + port * 10000;

			make_train(frame, sizeof(frame), dsf_time_after(*base, after_ns),
				(uint8_t)port);
			send(fds[port], frame, sizeof(frame), 0);
		}
	while (process.hold.heap.count < FAKE_PORTS * ORDER_TRAINS)
		uring_process_turn(&process);
	return uring_clock_read(&process.clock).ns < base->ns + ORDER_DELAY_NS;
}

/* Trains from four ports and deadlines are handled in the order of their due instants, and `now` is
 * the due instant. More are held than there are receive buffers. */
static void test_order(void)
{
	static const char *const names[FAKE_PORTS] = { "q0", "q1", "q2", "q3" };
	uint32_t wrong = 0, trains = 0;
	dsf_instant base, last = DSF_EPOCH;
	int fds[FAKE_PORTS];

	if (!TAP_OK(start(TOPO_ROLE_FDSW, "ffff", ORDER_DELAY_NS, 1), "order: starts"))
		return;
	fake->forward = false;
	for (int i = 0; i < FAKE_PORTS; i++)
		fds[i] = packet_socket(names[i], FABRIC_ETHERTYPE);
	fake->period_ns = 50000;
	while (!send_disordered(fds, &base)) {
		while (process.hold.heap.count > 0)
			uring_process_turn(&process);
		fake->records_count = 0;
	}
	while (process.hold.heap.count > 0)
		uring_process_turn(&process);
	for (uint32_t i = 0; i < fake->records_count; i++) {
		const struct fake_record *r = &fake->records[i];

		if (r->kind == FAKE_CARRIER)
			continue;
		wrong += dsf_time_before(r->now, last);
		last = r->now;
		if (r->kind == FAKE_FRAME) {
			wrong += r->now.ns != base.ns + trains * 10000 + ORDER_DELAY_NS;
			wrong += r->port != trains % FAKE_PORTS;
			trains++;
		}
	}
	TAP_EQ(trains, FAKE_PORTS * ORDER_TRAINS, "order: all trains");
	TAP_EQ(wrong, 0, "order: each at its due instant, deadlines between");
	TAP_EQ(process.trains.taken, 0, "order: all receive buffers given back");
	TAP_EQ(process.trains.copies.used, 0, "order: all copies given back");
	TAP_OK(process.trains.copies.used_peak > 0, "order: more were held than there are buffers");
	for (int i = 0; i < FAKE_PORTS; i++)
		close(fds[i]);
	uring_setup_close(&process);
}

/* A node that is asked for output once a deadline, as a host is, is asked at that deadline's
 * instant, and told of it once, however late its process is. */
static void test_sending(void)
{
	unsigned received;
	uint8_t disorder;
	int out;

	if (!TAP_OK(start(TOPO_ROLE_FDSW, "e", 500, 1), "sending: starts"))
		return;
	out = packet_socket("q0", ETH_P_IPV6);
	fake->period_ns = 20 * NS_PER_US;
	fake->sends = true;
	for (unsigned i = 0; i < 20; i++) {
		usleep(2000);
		for (unsigned turns = 0; turns < 20; turns++)
			uring_process_turn(&process);
	}
	fake->sends = false;
	turn_for_ms(5);
	received = count_received(out, &disorder);
	TAP_OK(received > 1000, "sending: %u frames", received);
	TAP_OK(fake->expired <= received + 1000, "sending: told %u times", fake->expired);
	close(out);
	uring_setup_close(&process);
}

/* A process that was stopped is late and has lost what it had no room for: that is the failure, and
 * doesn't count. What is due after it went on does. */
static void test_frozen(void)
{
	uint8_t frame[FAKE_FRAME_MAX];
	uint64_t skipped, expired, counted;
	dsf_instant thawed_at, departure;
	uint32_t sent = 0;
	int in, out;

	if (!TAP_OK(start(TOPO_ROLE_FDSW, "ff", 500, 1), "frozen: starts"))
		return;
	fake->forward = false;
	in = packet_socket("q0", FABRIC_ETHERTYPE);
	turn_for_ms(5);
	for (unsigned stop = 0; stop < 2; stop++) {
		expired = fake->expired;
		counted = process.fidelity.late.count;
		usleep(100000); /* deadlines: one a millisecond */
		if (stop == 1)
			raise(SIGCONT);
		for (unsigned i = 0; i < 200; i++)
			uring_process_turn(&process);
		skipped = fake->expired - expired - (process.fidelity.late.count - counted);
		TAP_OK(stop == 0 ? skipped == 0 : skipped >= 99,
			"%s: %" PRIu64 " of %" PRIu64 " deadlines don't count",
			stop == 1 ? "frozen" : "held up", skipped, fake->expired - expired);
	}
	out = packet_socket("q1", FABRIC_ETHERTYPE);
	make_train(frame, 256, process.now, 1);
	fake_output(fake, 1, frame, 256, process.now);
	usleep(10000);
	thawed_at = uring_clock_now(&process.clock);
	raise(SIGCONT);
	turn_for_ms(5);
	TAP_OK(recv(out, frame, sizeof(frame), MSG_DONTWAIT) == 256 &&
			fabric_train_departure(frame, 256, &departure) &&
			!dsf_time_before(departure, thawed_at),
		"frozen: what should have left meanwhile leaves when it goes on");
	close(out);
	TAP_EQ(process.fidelity.catching_up, 0, "frozen: until it has caught up");
	fake->frames = 0;
	for (unsigned i = 0; i < 3000; i++)
		sent += send(in, frame, make_train(frame, 16384, process.now, 1), 0) == 16384;
	raise(SIGCONT);
	turn_for_ms(50);
	uring_process_collect_drops(&process);
	TAP_OK(fake->frames < sent && process.fidelity.cut == sent - fake->frames,
		"frozen: %u of %u frames found no room", sent - fake->frames, sent);
	TAP_EQ(uring_fidelity_drops(&process.fidelity), 0, "frozen: no emulator drop");
	close(in);
	uring_setup_close(&process);
}

/* A frame that comes when the node has long done what was due after it is as good as lost, and told
 * as such; it isn't if this process was stopped meanwhile. */
static void test_behind(void)
{
	static const struct {
		uint64_t behind_ns;
		bool stopped;
		unsigned drops;
	} cases[] = { { 0, false, 0 }, { 100 * NS_PER_MS, false, 0 }, { 160 * NS_PER_MS, false, 1 },
		{ 200 * NS_PER_MS, false, 2 }, { 200 * NS_PER_MS, true, 2 } };
	uint8_t frame[FAKE_FRAME_MAX];
	int in;

	if (!TAP_OK(start(TOPO_ROLE_FDSW, "ff", 500, 1), "behind: starts"))
		return;
	in = packet_socket("q0", FABRIC_ETHERTYPE);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		dsf_instant now;

		turn_for_ms(250); /* frames of a host are due in order */
		now = uring_process_catch_up(&process);
		if (cases[i].stopped)
			raise(SIGCONT);
		make_train(frame, 256, (dsf_instant){ now.ns - cases[i].behind_ns }, 1);
		send(in, frame, 256, 0);
		fake->frames = 0;
		for (unsigned turns = 0; turns < 5000 && fake->frames == 0; turns++)
			uring_process_turn(&process);
		TAP_OK(fake->frames == 1 &&
				process.fidelity.drops[URING_DROP_LATE] == cases[i].drops,
			"behind: by %" PRIu64 " ms%s: handed on, %" PRIu64 " called lost",
			(uint64_t)(cases[i].behind_ns / NS_PER_MS),
			cases[i].stopped ? ", stopped" : "",
			process.fidelity.drops[URING_DROP_LATE]);
	}
	close(in);
	uring_setup_close(&process);
}

#define AHEAD_NS (200 * NS_PER_MS)

/* When the node gets a train that leaves a little ahead: as long after that. A machine so slow that
 * it was gone before it had come tries again. */
static uint64_t delay_of_a_train(int fd)
{
	uint8_t frame[256];
	dsf_instant depart;

	do {
		while (process.hold.heap.count > 0)
			uring_process_turn(&process);
		fake->records_count = 0;
		depart = dsf_time_after(uring_clock_read(&process.clock), AHEAD_NS);
		make_train(frame, sizeof(frame), depart, 7);
		send(fd, frame, sizeof(frame), 0);
		while (process.hold.heap.count == 0)
			uring_process_turn(&process);
	} while (dsf_time_due(depart, uring_clock_read(&process.clock)));
	while (process.hold.heap.count > 0)
		uring_process_turn(&process);
	for (uint32_t i = 0; i < fake->records_count; i++)
		if (fake->records[i].kind == FAKE_FRAME)
			return dsf_time_since(depart, fake->records[i].now);
	return UINT64_MAX;
}

#define START_DELAY_NS (50 * NS_PER_MS)

/* Until a lab has started, its links have no delay; then they have, either way. */
static void test_starting(void)
{
	int fd;

	lab_starting = true;
	if (!TAP_OK(start(TOPO_ROLE_FDSW, "fe", START_DELAY_NS, 1), "starting: starts"))
		return;
	lab_starting = false;
	fd = packet_socket("q0", FABRIC_ETHERTYPE);
	fake->forward = false;
	TAP_EQ(delay_of_a_train(fd), 0, "starting: a train comes when it has left");
	TAP_EQ(process.ports[1].config.hold_ns, 0, "starting: and goes to a host then");
	uring_setup_started(&process);
	TAP_EQ(delay_of_a_train(fd), START_DELAY_NS, "started: it comes after the link's delay");
	TAP_EQ(process.ports[1].config.hold_ns, START_DELAY_NS, "started: and goes");
	close(fd);
	uring_setup_close(&process);
}

int main(void)
{
	if (!enter_namespace()) {
		TAP_SKIP("needs root to make a network namespace");
		return TAP_DONE();
	}
	make_pairs(4);
	test_forward("ff", 256, 20000);
	test_forward("ff", 16384, 2000);
	test_forward("ee", 64, 20000);
	test_forward("ee", 9014, 3000);
	test_order();
	test_sending();
	test_frozen();
	test_behind();
	test_starting();
	remove_pairs(4);
	return TAP_DONE();
}
