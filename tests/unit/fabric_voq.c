#include "fabric/voq.h"
#include "base/err.h"
#include "base/rng.h"
#include "tests/memory.h"
#include "tests/tap.h"

#define CREDIT      4096u
#define LOOP_NS     4000u
#define WATCHDOG_NS 5000000u
#define IDLE_NS     50000000u
#define SIZE        1000u /* frame; 1024 on the wire */
#define WIRE        (SIZE + FABRIC_ETHERNET_OVERHEAD)

static struct test_memory memory = TEST_MEMORY(memory);
static struct fabric_packets packets;
static struct fabric_voqs voqs;
static struct fabric_voq *q;
static dsf_instant now;

static const struct fabric_voq_config config = { .credit_bytes = CREDIT,
	.voq_bytes = 100 * WIRE,
	.buffer_bytes = 150 * WIRE,
	.ecn_min_ns = 2 * LOOP_NS,
	.watchdog_ns = WATCHDOG_NS,
	.retry_ns = FABRIC_VOQ_RETRY_LOOPS * LOOP_NS,
	.age_ns = FABRIC_VOQ_AGE_LOOPS * LOOP_NS,
	.idle_ns = IDLE_NS };

static struct fabric_voq *get(uint32_t system_port)
{
	struct fabric_voq_key key = { system_port, FABRIC_CLASS_RDMA };

	return fabric_voq_get(&voqs, key, 3, true, now);
}

static void open_all(void)
{
	now = (dsf_instant){ 1000000 };
	fabric_packets_init(&packets, &memory.memory, 1 << 20);
	fabric_voqs_init(&voqs, &memory.memory, &packets, &config);
}

static void open_one(void)
{
	open_all();
	q = get(200);
}

static void close_all(const char *name)
{
	fabric_voqs_close(&voqs);
	for (int i = 0; i < FABRIC_PACKET_POOLS; i++)
		if (packets.pools[i].used != 0)
			TAP_EQ(packets.pools[i].used, 0, "%s: packets of pool %d are out", name, i);
	fabric_packets_close(&packets);
	TAP_EQ(memory.live, 0, "%s: nothing is left", name);
}

static int push_to(struct fabric_voq *to)
{
	struct fabric_packet *p = fabric_packet_new(&packets, 64);

	if (p == NULL)
		return -DSF_E_NOMEM;
	p->size = SIZE;
	p->class = FABRIC_CLASS_RDMA;
	p->ecn_capable = true;
	return fabric_voq_push(&voqs, to, p, now);
}

static int push(uint32_t count)
{
	int err = 0;

	while (count-- > 0 && err == 0)
		err = push_to(q);
	return err;
}

/* Sends what may be sent; packets. */
static uint32_t drain(void)
{
	struct fabric_voq *ready;
	uint32_t count = 0;

	while ((ready = fabric_voqs_next_ready(&voqs)) != NULL) {
		bool mark;
		struct fabric_packet *p = fabric_voq_pop(&voqs, ready, now, &mark);

		if (p != NULL) {
			count++;
			fabric_packet_free(&packets, p);
		}
		fabric_voq_requeue(&voqs, ready);
	}
	return count;
}

/* The total that the next request states; 0: nobody asks. */
static uint64_t request(void)
{
	struct fabric_voq *asks = fabric_voqs_next_request(&voqs, now);

	return asks == NULL ? 0 : asks->requested;
}

static void forward(uint64_t ns)
{
	dsf_instant until = dsf_time_after(now, ns);

	while (dsf_time_due(fabric_voqs_deadline(&voqs), until)) {
		now = dsf_time_max(now, fabric_voqs_deadline(&voqs));
		fabric_voqs_expire(&voqs, now);
	}
	now = until;
}

static void credit_only(void)
{
	open_one();
	TAP_EQ(drain(), 0, "an empty queue sends nothing");
	TAP_EQ(request(), 0, "and asks for nothing");
	push(10);
	TAP_EQ(drain(), 0, "no credit, no packet");
	TAP_EQ(request(), 10 * WIRE, "it asks for all that waits");
	TAP_EQ(request(), 0, "once");
	TAP_EQ(fabric_voq_grant(&voqs, q, q->epoch + 1, CREDIT, now), -DSF_E_STALE,
		"a grant for another epoch");
	TAP_EQ(fabric_voq_grant(&voqs, q, q->epoch, 10 * WIRE + CREDIT, now), -DSF_E_PEER,
		"a grant of a credit more than was asked for");
	TAP_EQ(fabric_voq_grant(&voqs, q, q->epoch, UINT64_MAX, now), -DSF_E_PEER,
		"a grant of everything");
	TAP_EQ(drain(), 0, "none of them lets a packet out");
	TAP_EQ(fabric_voq_grant(&voqs, q, q->epoch, CREDIT, now), 0, "one credit");
	TAP_EQ(drain(), 4, "sends four packets of a quarter each");
	TAP_EQ(fabric_voq_grant(&voqs, q, q->epoch, CREDIT, now), 0, "the same total again");
	TAP_EQ(drain(), 0, "is no credit");
	fabric_voq_grant(&voqs, q, q->epoch, 3 * CREDIT, now);
	fabric_voq_grant(&voqs, q, q->epoch, 2 * CREDIT, now);
	TAP_EQ(drain(), 6, "a total that was overtaken takes nothing away");
	TAP_EQ(request(), 0, "nothing waits, nothing is asked for");
	TAP_EQ(q->sent_bytes, 10 * WIRE, "bytes are counted");
	close_all("credit only");
}

/* What was left over serves the next packets without a loop, two credits at most, for a while. */
static void spare(void)
{
	open_one();
	push(16);
	request();
	fabric_voq_grant(&voqs, q, q->epoch, 4 * CREDIT, now);
	TAP_EQ(drain(), 16, "four credits carry 16 packets");
	push(1);
	request();
	fabric_voq_grant(&voqs, q, q->epoch, 5 * CREDIT, now);
	TAP_EQ(drain(), 1, "one packet takes a quarter of a credit");
	push(3);
	TAP_EQ(request(), 0, "the rest serves three more");
	TAP_EQ(drain(), 3, "at once");
	push(2);
	request();
	fabric_voq_grant(&voqs, q, q->epoch, 6 * CREDIT, now);
	drain();
	forward(FABRIC_VOQ_AGE_LOOPS * LOOP_NS);
	push(1);
	TAP_EQ(drain(), 0, "credit of an empty queue ages out");
	TAP_EQ(request(), 6 * CREDIT + WIRE, "and is asked for anew");
	forward(100 * LOOP_NS);
	close_all("spare");
}

static void by_hand(void)
{
	open_one();
	push(40);
	request();
	TAP_EQ(q->requested, 40 * WIRE, "asks for ten credits");
	fabric_voq_reachable(&voqs, q, false, now);
	fabric_voq_grant(&voqs, q, q->epoch, 10 * CREDIT, now);
	fabric_voq_reachable(&voqs, q, true, now);
	for (int i = 0; i < 40; i++) {
		bool mark;
		struct fabric_packet *p = fabric_voq_pop(&voqs, q, now, &mark);

		fabric_packet_free(&packets, p);
	}
	TAP_EQ(q->granted - q->spent, 0, "a queue that took all it got has nothing over");
	close_all("by hand");
}

static void tail_drop(void)
{
	struct fabric_voq *other;

	open_one();
	TAP_EQ(push(100), 0, "a queue takes its bytes");
	TAP_EQ(push(1), -DSF_E_FULL, "not one packet more");
	TAP_OK(q->dropped == 1 && voqs.dropped == 1, "counted once each");
	other = get(201);
	for (int i = 0; i < 50; i++)
		push_to(other);
	TAP_EQ(push_to(other), -DSF_E_FULL, "all queues together have a limit");
	TAP_OK(other->dropped == 1 && voqs.dropped == 2, "counted once each");
	TAP_EQ(voqs.bytes, 150 * WIRE, "bytes of all queues");
	request();
	fabric_voq_grant(&voqs, q, q->epoch, CREDIT, now);
	TAP_EQ(drain(), 4, "a credit's worth leaves");
	TAP_EQ(voqs.bytes, 146 * WIRE, "and makes room");
	TAP_EQ(push_to(other), 0, "for others");
	close_all("tail drop");
}

static void marks(void)
{
	bool mark;
	struct fabric_packet *p;

	open_one();
	push(1);
	now = dsf_time_after(now, config.ecn_min_ns);
	push(2);
	q->queue.last->ecn_capable = false;
	request();
	fabric_voq_grant(&voqs, q, q->epoch, CREDIT, now);
	p = fabric_voq_pop(&voqs, q, now, &mark);
	TAP_OK(!mark, "waited just as long as it may");
	fabric_packet_free(&packets, p);
	now = dsf_time_after(now, config.ecn_min_ns + 1);
	p = fabric_voq_pop(&voqs, q, now, &mark);
	TAP_OK(mark, "waited longer: marked");
	fabric_packet_free(&packets, p);
	p = fabric_voq_pop(&voqs, q, now, &mark);
	TAP_OK(!mark, "never one that isn't ECN capable");
	fabric_packet_free(&packets, p);
	TAP_OK(q->ecn_marked == 1 && voqs.marked == 1, "counted once each");
	TAP_OK(fabric_voq_pop(&voqs, q, now, &mark) == NULL, "an empty queue pops nothing");
	close_all("marks");
}

/* Every request is lost, then every grant: the VOQ says it again every few loops. */
static void lost_control(void)
{
	uint32_t requests = 0;
	uint64_t total = 0;

	open_one();
	push(4);
	total = request();
	for (int i = 0; i < 50; i++) {
		forward(LOOP_NS);
		requests += request() == total;
	}
	TAP_OK(requests >= 5 && requests <= 7, "an unanswered request is repeated: %u in 50 loops",
		requests);
	fabric_voq_grant(&voqs, q, q->epoch, CREDIT, now);
	TAP_EQ(drain(), 4, "until the answer comes");
	forward(100 * LOOP_NS);
	TAP_EQ(request(), 0, "then it is quiet");
	TAP_EQ(voqs.timers.count, 0, "and has no timer");
	close_all("lost control");
}

static void watchdog(void)
{
	uint32_t epoch, repeats = 0;
	uint64_t total;

	open_one();
	push(10);
	request();
	fabric_voq_grant(&voqs, q, q->epoch, CREDIT, now);
	drain();
	q->packet_sequence = 4;
	epoch = q->epoch;
	for (uint64_t ns = 0; ns + LOOP_NS < WATCHDOG_NS; ns += LOOP_NS) {
		forward(LOOP_NS);
		repeats += request() > 0;
	}
	TAP_OK(repeats > 50, "it asks to the end");
	TAP_EQ(q->packets, 6, "nothing is deleted before the watchdog's time");
	forward(2 * LOOP_NS);
	TAP_OK(q->packets == 0 && q->bytes == 0 && voqs.bytes == 0, "then the queue is emptied");
	TAP_OK(q->watchdog_dropped == 6 && voqs.watchdog_dropped == 6, "and counted");
	TAP_OK(q->epoch != epoch && q->packet_sequence == 0, "what follows is a new epoch");
	forward(2 * WATCHDOG_NS);
	TAP_EQ(request(), 0, "an empty queue asks for nothing");
	push(1);
	total = request();
	TAP_EQ(total - q->spent, WIRE, "the next request asks for what waits alone");
	TAP_EQ(fabric_voq_grant(&voqs, q, epoch, total, now), -DSF_E_STALE, "an old grant is late");
	TAP_EQ(fabric_voq_grant(&voqs, q, q->epoch, q->spent + CREDIT, now), 0, "a new one serves");
	TAP_EQ(drain(), 1, "and traffic goes on");
	close_all("watchdog");
}

static void unreachable(void)
{
	open_one();
	fabric_voq_reachable(&voqs, q, false, now);
	push(3);
	TAP_EQ(request(), 0, "an unreachable queue asks for nothing");
	forward(10 * LOOP_NS);
	TAP_EQ(request(), 0, "also later");
	fabric_voq_reachable(&voqs, q, true, now);
	TAP_EQ(request(), 3 * WIRE, "when it is reachable again it asks at once");
	fabric_voq_reachable(&voqs, q, false, now);
	fabric_voq_grant(&voqs, q, q->epoch, CREDIT, now);
	TAP_EQ(drain(), 0, "with credit but no way it sends nothing");
	fabric_voq_reachable(&voqs, q, true, now);
	TAP_EQ(drain(), 3, "with both it does");
	push(3);
	fabric_voq_reachable(&voqs, q, false, now);
	forward(WATCHDOG_NS + LOOP_NS);
	TAP_EQ(q->packets, 0, "a queue without a way is emptied by the watchdog");
	close_all("unreachable");
}

/* Two queues with credit take turns; a blocked one goes first when there is room again. */
static void turns(void)
{
	struct fabric_voq *a, *b;

	open_all();
	a = get(1);
	b = get(2);
	TAP_OK(a != NULL && b != NULL && get(1) == a, "a queue is made once");
	for (int i = 0; i < 4; i++) {
		push_to(a);
		push_to(b);
	}
	while (request() > 0)
		;
	fabric_voq_grant(&voqs, a, a->epoch, CREDIT, now);
	fabric_voq_grant(&voqs, b, b->epoch, CREDIT, now);
	TAP_OK(fabric_voqs_next_ready(&voqs) == a, "first a");
	fabric_voq_block(&voqs, a);
	TAP_OK(fabric_voqs_next_ready(&voqs) == b, "then b");
	fabric_voq_block(&voqs, b);
	TAP_OK(fabric_voqs_next_ready(&voqs) == NULL, "both are blocked");
	fabric_voq_grant(&voqs, a, a->epoch, CREDIT + 1, now);
	TAP_OK(fabric_voqs_next_ready(&voqs) == NULL, "a grant doesn't unblock");
	fabric_voqs_unblock(&voqs);
	TAP_EQ(drain(), 8, "room does, for both");
	close_all("turns");
}

/* Against a perfect egress: any order of pushes, grants, losses of either control cell, time. */
static void any_history(uint64_t seed)
{
	struct dsf_rng rng;
	uint64_t told = 0, granted = 0, pushed = 0, sent = 0, over = 0;

	dsf_rng_init(&rng, seed);
	open_one();
	for (uint32_t i = 0; i < 20000; i++) {
		uint64_t total;

		switch (dsf_rng_below(&rng, 4)) {
		case 0: pushed += push(1) == 0; break;
		case 1:
			total = request();
			if (total > told && dsf_rng_below(&rng, 5) > 0)
				told = total;
			break;
		case 2:
			if (granted < told)
				granted += CREDIT;
			if (dsf_rng_below(&rng, 5) > 0 &&
				fabric_voq_grant(&voqs, q, q->epoch, granted, now) < 0)
				over++;
			break;
		default: forward(dsf_rng_below(&rng, LOOP_NS)); break;
		}
		sent += drain();
		over += q->spent > q->granted + WIRE;
	}
	for (int i = 0; i < 200 && q->packets > 0; i++) {
		uint64_t total = request();

		told = total > told ? total : told;
		granted = told > granted ? told : granted;
		fabric_voq_grant(&voqs, q, q->epoch, granted, now);
		forward(LOOP_NS);
		sent += drain();
	}
	TAP_OK(over == 0 && sent == pushed && q->watchdog_dropped == 0,
		"seed %" PRIu64 ": %" PRIu64 " packets, each with credit, none stuck", seed, sent);
	close_all("any history");
}

static void failing_memory(void)
{
	uint32_t failed = 0;

	for (unsigned long nth = 1; nth < 30; nth++) {
		uint64_t pushed = 0, dropped = 0, sent = 0;

		open_all();
		memory.fail_at = nth;
		memory.failed = false;
		for (uint32_t i = 0; i < 60; i++) {
			struct fabric_voq *to = get(i);

			if (to == NULL || push_to(to) < 0)
				continue;
			pushed++;
		}
		memory.fail_at = 0;
		/* Only the watchdog can still empty the queues: each must have its timer. */
		forward(2 * WATCHDOG_NS);
		dropped = voqs.watchdog_dropped;
		sent = drain();
		failed += memory.failed;
		if (dropped != pushed || sent != 0)
			TAP_OK(false,
				"allocation %lu fails: %" PRIu64 " of %" PRIu64 " packets deleted",
				nth, dropped, pushed);
		fabric_voqs_close(&voqs);
		fabric_packets_close(&packets);
		if (memory.live != 0)
			TAP_EQ(memory.live, 0, "allocation %lu fails: a leak", nth);
	}
	TAP_OK(failed >= 10, "%u allocations failed, one a run", failed);
}

/* A VOQ is there for as long as it is used, and what comes after it is a new one. */
static void unused(void)
{
	uint32_t epoch;

	open_one();
	epoch = q->epoch;
	forward(10 * IDLE_NS);
	TAP_EQ(voqs.table.count, 0, "unused: gone");
	TAP_OK(dsf_time_is_never(fabric_voqs_deadline(&voqs)), "unused: and nothing ticks");

	q = get(200);
	TAP_OK(q->epoch != epoch && !fabric_epoch_older(q->epoch, epoch),
		"unused: the next one is newer");
	epoch = q->epoch;
	for (int i = 0; i < 20; i++) {
		push(1);
		fabric_voq_grant(&voqs, q, q->epoch, request(), now);
		drain();
		forward(IDLE_NS - 1);
		q = get(200);
	}
	TAP_EQ(q->epoch, epoch, "unused: not while a packet comes now and then");

	push(1);
	forward(2 * WATCHDOG_NS);
	TAP_EQ(q->packets, 0, "unused: the watchdog emptied it");
	push(1);
	forward(WATCHDOG_NS - 1);
	TAP_EQ(voqs.table.count, 1, "unused: not while a packet waits");
	close_all("unused");

	/* Waits for longer than that, since the watchdog is set so. */
	open_all();
	voqs.config.watchdog_ns = 100ull * IDLE_NS;
	q = get(200);
	(void)get(201);
	push(1);
	forward(10 * IDLE_NS);
	TAP_OK(voqs.table.count == 1 && q->packets == 1, "unused: only those without a packet");
	fabric_voq_grant(&voqs, q, q->epoch, request() + CREDIT - 1, now);
	voqs.config.age_ns = 100ull * IDLE_NS;
	TAP_EQ(drain(), 1, "unused: it is sent");
	forward(10 * IDLE_NS);
	TAP_EQ(voqs.table.count, 1, "unused: not while it has credit left");
	forward(100ull * IDLE_NS);
	TAP_EQ(voqs.table.count, 0, "unused: when that has aged out");
	close_all("unused with a long watchdog");
}

/* Numbers of epochs come round every 275 s: one that goes just before must not come back as old. */
static void unused_epochs(void)
{
	const uint64_t round_ns = (uint64_t)FABRIC_EPOCH_UNIT_NS << 32;
	uint32_t older = 0;

	for (uint64_t before = 1; before < 30 * NS_PER_S; before += 17 * NS_PER_MS) {
		uint32_t epoch;

		open_one();
		epoch = q->epoch;
		/* In use until now, a while before its own number comes round again. */
		now = dsf_time_after(now, round_ns - before);
		voqs.sweep_at = now;
		forward(2 * IDLE_NS);
		q = get(200);
		older += q->epoch != epoch && fabric_epoch_older(q->epoch, epoch);
		for (uint64_t at = 0; at < 4 && q->epoch == epoch; at++) {
			forward(2 * NS_PER_S);
			q = get(200);
			older += q->epoch != epoch && fabric_epoch_older(q->epoch, epoch);
		}
		fabric_voqs_close(&voqs);
		fabric_packets_close(&packets);
	}
	TAP_EQ(older, 0, "unused: none that follows is taken for an older one");
	TAP_EQ(memory.live, 0, "unused: nothing is left");
}

/* The last packet may leave on part of a credit; the rest of what it asked for comes after it. */
static void late_credit(void)
{
	uint64_t total;

	open_one();
	push(5);
	total = request();
	fabric_voq_grant(&voqs, q, q->epoch, CREDIT, now);
	TAP_EQ(drain(), 4, "late credit: four leave on the first one");
	fabric_voq_grant(&voqs, q, q->epoch, CREDIT + 1, now);
	TAP_EQ(drain(), 1, "late credit: the last on its beginning");
	fabric_voq_grant(&voqs, q, q->epoch, 2 * CREDIT, now);
	TAP_OK(total == 5 * WIRE && q->granted > q->spent, "late credit: there is some left");
	forward(FABRIC_VOQ_AGE_LOOPS * LOOP_NS + 1);
	TAP_OK(q->granted <= q->spent, "late credit: it ages like any other");
	close_all("late credit");
}

int main(void)
{
	credit_only();
	spare();
	by_hand();
	tail_drop();
	marks();
	lost_control();
	watchdog();
	unreachable();
	turns();
	unused();
	unused_epochs();
	late_credit();
	for (uint64_t seed = 1; seed <= 20; seed++)
		any_history(seed);
	failing_memory();
	return TAP_DONE();
}
