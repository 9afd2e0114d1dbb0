#include "fabric/credit.h"
#include "base/err.h"
#include "base/rng.h"
#include "fabric/voq.h"
#include "tests/memory.h"
#include "tests/tap.h"

#define SELF        5u
#define FIRST_PORT  (SELF * 64u)
#define RATE        400000000000ull
#define CREDIT      4096u
#define LOOP_NS     4000u
#define IDLE_NS     50000000u
#define SETTLE_NS   30000u
#define SILENT_NS   100000u
#define QUEUE       1048576u
#define WINDOW      (QUEUE - QUEUE / FABRIC_CREDIT_WINDOW_SPARE)
#define SPARE       (FABRIC_VOQ_SPARE_CREDITS * CREDIT)
#define SOURCES_MAX 64u

static struct test_memory memory = TEST_MEMORY(memory);
static struct fabric_credits credits;
static dsf_instant now;
static bool withheld; /* packets don't come before deliver() */

/* What the sources at the other end have asked for and got. */
static struct source {
	uint64_t requested, granted;
	uint32_t grants;
} sources[SOURCES_MAX][FABRIC_CLASSES];

static int open_all(void)
{
	struct fabric_credit_config config = { .self = SELF,
		.first_system_port = FIRST_PORT,
		.ports_count = 64,
		.credit_bytes = CREDIT,
		.weights = { 1, 8, 5 },
		.loop_ns = LOOP_NS,
		.idle_ns = IDLE_NS,
		.settle_ns = SETTLE_NS,
		.silent_ns = SILENT_NS };
	int err;

	memset(sources, 0, sizeof(sources));
	withheld = false;
	now = (dsf_instant){ 1000 };
	err = fabric_credits_init(&credits, &memory.memory, &config);
	if (err == 0)
		fabric_credit_fabric(&credits, true, 0, now);
	return err;
}

static void open_port(uint64_t rate_bps)
{
	open_all();
	fabric_credit_port(&credits, FIRST_PORT, rate_bps, QUEUE, true, now);
}

static void close_all(const char *name)
{
	fabric_credits_close(&credits);
	TAP_EQ(memory.live, 0, "%s: nothing is left", name);
}

static int ask_port(uint32_t port, uint16_t source, uint16_t class, uint64_t more)
{
	struct source *s = &sources[source][class];
	struct fabric_credit_key key = { port, source, class };

	s->requested += more;
	return fabric_credit_request(&credits, &key, 9, s->requested,
		(uint32_t)(s->requested > s->granted ? s->requested - s->granted : 0), now);
}

static void deliver(uint32_t port, uint16_t source, uint16_t class, uint64_t bytes)
{
	struct fabric_credit_key key = { port, source, class };

	fabric_credit_arrived(&credits, &key, (uint32_t)bytes, now);
}

static int ask(uint16_t source, uint16_t class, uint64_t more)
{
	return ask_port(FIRST_PORT, source, class, more);
}

static void take_grants(void)
{
	struct fabric_credit_grant grant;

	while (fabric_credits_next_grant(&credits, &grant)) {
		struct source *s = &sources[grant.source][grant.class];

		if (!withheld && grant.total > s->granted)
			deliver(grant.system_port, grant.source, grant.class,
				grant.total - s->granted);
		s->granted = grant.total;
		s->grants++;
	}
}

/* Port 0 has to send what it granted, less what its time has been enough for. */
static void report_backlog(uint64_t rate_bps, dsf_instant since)
{
	uint64_t granted = credits.ports[0].granted_total;
	uint64_t sent = dsf_bytes_of_time(dsf_time_since(since, now), rate_bps);

	fabric_credit_backlog(&credits, FIRST_PORT, granted > sent ? granted - sent : 0, now);
}

/* Runs the scheduler's deadlines for ns. */
static void run(uint64_t ns)
{
	dsf_instant until = dsf_time_after(now, ns);

	while (dsf_time_due(fabric_credits_deadline(&credits), until)) {
		now = dsf_time_max(now, fabric_credits_deadline(&credits));
		fabric_credits_expire(&credits, now);
		take_grants();
	}
	now = until;
	take_grants();
}

static void half_right(void)
{
	struct fabric_credit_key key = { FIRST_PORT + 1, 1, FABRIC_CLASS_RDMA };

	open_port(RATE);
	TAP_EQ(fabric_credit_request(&credits, &key, 9, 100, 100, now), -DSF_E_UNKNOWN,
		"a port that isn't there");
	key.system_port = FIRST_PORT - 1;
	TAP_EQ(fabric_credit_request(&credits, &key, 9, 100, 100, now), -DSF_E_UNKNOWN,
		"another switch's port");
	key.system_port = FIRST_PORT + 64;
	TAP_EQ(fabric_credit_request(&credits, &key, 9, 100, 100, now), -DSF_E_UNKNOWN,
		"the next switch's port");
	fabric_credit_congested(&credits, FIRST_PORT + 3);
	fabric_credit_backlog(&credits, UINT32_MAX, 1 << 30, now);
	key.system_port = FIRST_PORT;
	TAP_EQ(fabric_credit_request(&credits, &key, 9, UINT64_MAX, 0, now), -DSF_E_BADFIELD,
		"a total that nobody can have reached");
	TAP_EQ(credits.sources.count, 0, "none of them makes state");
	TAP_OK(dsf_time_is_never(fabric_credits_deadline(&credits)), "or a timer");
	close_all("half right");
}

/* Nothing without a request, no more than asked rounded up to a credit. */
static void no_more_than_asked(void)
{
	open_port(RATE);
	run(100000);
	TAP_EQ(sources[1][1].grants, 0, "nobody asked, nothing is granted");
	ask(1, FABRIC_CLASS_RDMA, 1);
	run(100000);
	TAP_EQ(sources[1][1].granted, CREDIT, "one byte is one credit");
	ask(1, FABRIC_CLASS_RDMA, CREDIT - 1);
	run(100000);
	TAP_EQ(sources[1][1].granted, CREDIT, "what was granted already is not granted again");
	TAP_EQ(sources[1][1].grants, 2, "but said again: the grant may have been lost");
	ask(1, FABRIC_CLASS_RDMA, 10 * CREDIT + 1);
	run(100000);
	TAP_EQ(sources[1][1].granted, 12 * CREDIT, "eleven more");
	TAP_EQ(credits.timers.count, 0, "then nothing ticks");
	TAP_EQ(credits.ports[0].granted_total, 12 * CREDIT, "all is counted");
	close_all("no more than asked");
}

static void down(void)
{
	open_port(RATE);
	fabric_credit_port(&credits, FIRST_PORT, RATE, QUEUE, false, now);
	ask(1, FABRIC_CLASS_RDMA, 100 * CREDIT);
	run(1000000);
	TAP_EQ(sources[1][1].granted, 0, "a port that can't send grants nothing");
	fabric_credit_port(&credits, FIRST_PORT, RATE, QUEUE, true, now);
	run(1000000);
	TAP_EQ(sources[1][1].granted, 100 * CREDIT, "when it can, it remembers who asked");
	close_all("down");
}

/* The port's rate over a long time, and what it keeps in front of itself. */
static void rate(void)
{
	static const uint64_t rates[] = { 1, 100, 300, 1000000, 1000000000, 400000000000ull,
		800000000000ull, 1600000000000ull };

	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		uint64_t ns = 1000 * dsf_time_of_bytes(FABRIC_CREDIT_BURST_BYTES, rates[i]);
		uint64_t want = 1000 * FABRIC_CREDIT_BURST_BYTES, got;

		dsf_instant since;

		open_port(rates[i]);
		credits.config.idle_ns = ns; /* at 1 bit/s this takes four years */
		since = now;
		ask(1, FABRIC_CLASS_RDMA, 2 * want);
		for (int k = 0; k < 1000; k++) {
			report_backlog(rates[i], since);
			run(ns / 1000);
		}
		got = sources[1][1].granted;
		TAP_OK(got >= want - FABRIC_CREDIT_BURST_BYTES &&
				got <= want + credits.ports[0].mark_bytes +
						4 * FABRIC_CREDIT_BURST_BYTES,
			"at %" PRIu64 " bit/s: %" PRIu64 " bytes in the time of %" PRIu64, rates[i],
			got, want);
		fabric_credits_close(&credits);
	}
	TAP_EQ(memory.live, 0, "rate: nothing is left");
}

static void unlimited(void)
{
	struct fabric_credit_key key = { FIRST_PORT, 2, FABRIC_CLASS_RDMA };

	open_port(0);
	ask(1, FABRIC_CLASS_RDMA, 4000000);
	run(1000);
	TAP_EQ(sources[1][1].granted, (4000000 + CREDIT - 1) / CREDIT * CREDIT,
		"an unlimited port grants all that is asked for");
	TAP_EQ(fabric_credit_request(&credits, &key, 9, 1, 1, now), 0, "another source");
	TAP_EQ(fabric_credit_request(&credits, &key, 9, INT64_MAX, UINT32_MAX, now), -DSF_E_PEER,
		"may not ask for more than a request can state");
	TAP_EQ(fabric_credit_request(&credits, &key, 9, UINT32_MAX, UINT32_MAX, now), 0,
		"but for as much");
	fabric_credits_expire(&credits, now);
	take_grants();
	TAP_OK(sources[2][1].granted <= 2 * FABRIC_CREDIT_UNLIMITED_BYTES,
		"which is granted in parts, not in one go");
	close_all("unlimited");
}

static double jain(const uint64_t *values, uint32_t count)
{
	double sum = 0, squares = 0;

	for (uint32_t i = 0; i < count; i++) {
		sum += (double)values[i];
		squares += (double)values[i] * (double)values[i];
	}
	return sum * sum / (count * squares);
}

/* Everyone always wants more; requests come in a seeded order and size. The switch itself is
 * one of the sources. */
static void fairness(uint64_t seed, uint32_t count)
{
	uint64_t values[SOURCES_MAX], least = UINT64_MAX, most = 0;
	struct dsf_rng rng;

	dsf_rng_init(&rng, seed);
	open_port(RATE);
	for (uint32_t round = 0; round < 2000; round++) {
		for (uint32_t i = 0; i < count; i++) {
			struct source *s = &sources[i][FABRIC_CLASS_RDMA];

			if (s->requested < s->granted + 8 * CREDIT)
				ask((uint16_t)i, FABRIC_CLASS_RDMA,
					8 * CREDIT + dsf_rng_below(&rng, 200000));
		}
		run(1000);
	}
	for (uint32_t i = 0; i < count; i++) {
		values[i] = sources[i][FABRIC_CLASS_RDMA].granted;
		least = values[i] < least ? values[i] : least;
		most = values[i] > most ? values[i] : most;
	}
	TAP_OK(jain(values, count) >= 0.99, "seed %" PRIu64 ": %u sources share, Jain %.5f", seed,
		count, jain(values, count));
	TAP_OK(most - least <= 4 * CREDIT, "to within a few credits: %" PRIu64, most - least);
	fabric_credits_close(&credits);
}

/* rdma 8 : default 5 while both want; either takes all alone; nc before both. */
static void weights(void)
{
	uint64_t rdma, def, nc, before;

	open_port(RATE);
	for (uint16_t i = 0; i < 4; i++) {
		ask(i, FABRIC_CLASS_RDMA, 100000000);
		ask(i, FABRIC_CLASS_DEFAULT, 100000000);
	}
	run(2000000);
	rdma = def = 0;
	for (uint16_t i = 0; i < 4; i++) {
		rdma += sources[i][FABRIC_CLASS_RDMA].granted;
		def += sources[i][FABRIC_CLASS_DEFAULT].granted;
	}
	TAP_OK(rdma * 5 > def * 8 * 98 / 100 && rdma * 5 < def * 8 * 102 / 100,
		"rdma %" PRIu64 " : default %" PRIu64 " is 8 : 5 within 2 %%", rdma, def);
	ask(7, FABRIC_CLASS_NC, 2000000);
	before = credits.ports[0].granted_total;
	run(2000000 / 50 + 700); /* 400 Gbit/s: 50 bytes a nanosecond */
	nc = sources[7][FABRIC_CLASS_NC].granted;
	TAP_OK(nc >= 2000000 && credits.ports[0].granted_total - before <= nc + 8 * 16384,
		"nc has all of the port while it wants it");
	fabric_credits_close(&credits);

	open_port(RATE);
	ask(1, FABRIC_CLASS_DEFAULT, 100000000);
	run(1000000);
	TAP_OK(sources[1][FABRIC_CLASS_DEFAULT].granted >= 49900000,
		"default alone has the whole port");
	/* rdma wants little: what it leaves goes to default */
	for (int i = 0; i < 1000; i++) {
		ask(2, FABRIC_CLASS_RDMA, 4096);
		run(1000);
	}
	TAP_OK(sources[2][FABRIC_CLASS_RDMA].granted >= 999 * 4096,
		"a class that wants less than its share gets it");
	TAP_OK(sources[1][FABRIC_CLASS_DEFAULT].granted + sources[2][FABRIC_CLASS_RDMA].granted >=
			99800000,
		"and nothing of the port is wasted");
	close_all("weights");
}

/* Remote grants of all ports together stay below the fabric's rate, local ones don't count. */
static void fabric_limit(void)
{
	uint64_t remote = 0;

	open_port(RATE);
	fabric_credit_port(&credits, FIRST_PORT + 1, RATE, QUEUE, true, now);
	fabric_credit_fabric(&credits, true, RATE, now); /* half of what the ports could take */
	ask_port(FIRST_PORT, 1, FABRIC_CLASS_RDMA, 1000000000);
	ask_port(FIRST_PORT + 1, 2, FABRIC_CLASS_RDMA, 1000000000);
	run(10000000);
	remote = sources[1][1].granted + sources[2][1].granted;
	TAP_OK(remote <= 500000000 + 4 * 16384 && remote >= 500000000 * 98ull / 100,
		"two ports of 400G behind 400G of fabric get %" PRIu64 " of 500000000", remote);
	TAP_OK(sources[1][1].granted * 100 > sources[2][1].granted * 98 &&
			sources[2][1].granted * 100 > sources[1][1].granted * 98,
		"and share it: %" PRIu64 " and %" PRIu64, sources[1][1].granted,
		sources[2][1].granted);
	close_all("fabric limit");
}

/* A local source isn't held up by a fabric that others fill. */
static void local_beside_fabric(void)
{
	uint64_t total;

	open_port(RATE);
	fabric_credit_port(&credits, FIRST_PORT + 1, RATE, QUEUE, true, now);
	fabric_credit_fabric(&credits, true, RATE / 4, now);
	ask_port(FIRST_PORT, 1, FABRIC_CLASS_RDMA, 1000000000);
	ask_port(FIRST_PORT, SELF, FABRIC_CLASS_RDMA, 1000000000);
	run(10000000);
	total = sources[1][1].granted + sources[SELF][1].granted;
	TAP_OK(total >= 500000000 * 98ull / 100,
		"a local source uses what a slow fabric leaves: %" PRIu64 " of 500000000", total);
	TAP_OK(sources[1][1].granted >= 125000000 * 95ull / 100,
		"and the remote one has the fabric: %" PRIu64 " of 125000000",
		sources[1][1].granted);
	close_all("local beside fabric");
}

/* Without a live link remote sources wait, local ones don't; what was granted at a crawl doesn't
 * hold up anybody when the links are back. */
static void fabric_gone(void)
{
	open_port(RATE);
	fabric_credit_fabric(&credits, false, 0, now);
	ask(1, FABRIC_CLASS_RDMA, 100000000);
	run(100000);
	TAP_EQ(sources[1][1].granted, 0, "without a fabric nothing remote is granted");
	TAP_EQ(credits.timers.count, 0, "and nothing ticks");
	ask(SELF, FABRIC_CLASS_RDMA, 100000);
	run(100000);
	TAP_OK(sources[SELF][1].granted >= 100000 && sources[1][1].granted == 0,
		"our own switch is served at once");
	fabric_credit_fabric(&credits, true, 1, now);
	run(1000000);
	TAP_OK(sources[1][1].granted > 0 && sources[1][1].granted <= 2 * 16384,
		"a fabric of 1 bit/s is given a burst or two");
	fabric_credit_fabric(&credits, true, RATE, now);
	run(1000000);
	TAP_OK(sources[1][1].granted >= 49000000, "and a fast one at once what it can: %" PRIu64,
		sources[1][1].granted);
	close_all("fabric gone");
}

static uint64_t granted_in(uint64_t ns)
{
	uint64_t before = credits.ports[0].granted_total;

	run(ns);
	return credits.ports[0].granted_total - before;
}

static void factors(void)
{
	uint64_t full, less, back;

	open_port(RATE);
	ask(1, FABRIC_CLASS_RDMA, 4000000000u);
	full = granted_in(1000000);
	for (int i = 0; i < 200; i++) {
		fabric_credit_congested(&credits, FIRST_PORT);
		run(LOOP_NS);
	}
	TAP_OK(credits.ports[0].factor >= FABRIC_CREDIT_FACTOR_MIN &&
			credits.ports[0].factor < 2 * FABRIC_CREDIT_FACTOR_MIN,
		"congestion for long brings the rate down to its least");
	less = 0;
	for (int i = 0; i < 250; i++) {
		fabric_credit_congested(&credits, FIRST_PORT);
		less += granted_in(LOOP_NS);
	}
	TAP_OK(less < full / 4 && less > full / 16, "about an 8th is left: %" PRIu64 " of %" PRIu64,
		less, full);
	run(200 * LOOP_NS);
	back = granted_in(1000000);
	TAP_OK(back >= full * 99 / 100, "without congestion it comes back");
	less = 0;
	for (int i = 0; i < 1000; i++) {
		fabric_credit_backlog(&credits, FIRST_PORT, 100000, now);
		less += granted_in(1000);
	}
	TAP_OK(less < full * 96 / 100 && less > full * 9 / 10, "a backlog takes a little off");
	fabric_credit_backlog(&credits, FIRST_PORT, 1600000, now);
	run(1000);
	TAP_EQ(granted_in(10000), 0, "a long one stops grants");
	run(20000);
	TAP_OK(granted_in(1000000) > full * 99 / 100, "until it must have drained");
	close_all("factors");
}

/* A request of a new epoch while the old one waits in the list; old ones are refused. */
static void epochs(void)
{
	struct fabric_credit_key key = { FIRST_PORT, 1, FABRIC_CLASS_RDMA };
	struct fabric_credit_grant grant;

	open_port(RATE);
	TAP_EQ(fabric_credit_request(&credits, &key, 100, 1000000, 1000000, now), 0, "first");
	TAP_EQ(fabric_credit_request(&credits, &key, 99, 5, 5, now), -DSF_E_STALE,
		"an older epoch is refused");
	TAP_EQ(fabric_credit_request(&credits, &key, 101, 7000, 0, now), 0,
		"a new one that wants nothing, while the old waits in the list");
	run(100000);
	TAP_EQ(sources[1][1].granted, 7000, "gets nothing");
	TAP_EQ(fabric_credit_request(&credits, &key, 102, 1000000, 4096, now), 0,
		"one that had much already and wants a credit");
	run(100000);
	TAP_EQ(sources[1][1].granted, 1000000, "gets it");
	TAP_EQ(fabric_credit_request(&credits, &key, 102 + 0x80000000u, 8192, 8192, now), 0,
		"one of hours later, when the number has gone half round");
	run(100000);
	TAP_EQ(sources[1][1].granted, 8192, "is new, not old");
	while (fabric_credits_next_grant(&credits, &grant))
		;
	close_all("epochs");
}

/* What has been granted and hasn't come, with what waits at the port, fits into its queue. */
static void window(void)
{
	uint64_t got;

	open_port(RATE);
	withheld = true;
	ask(1, FABRIC_CLASS_RDMA, 100000000);
	run(SILENT_NS / 3);
	got = sources[1][1].granted;
	TAP_OK(got > WINDOW + SPARE - CREDIT && got <= WINDOW + SPARE,
		"window: %" PRIu64 " bytes are granted while nothing comes", got);
	deliver(FIRST_PORT, 1, FABRIC_CLASS_RDMA, 10 * CREDIT);
	run(SILENT_NS / 3);
	TAP_EQ(sources[1][1].granted, got + 10 * CREDIT, "window: what comes makes room");
	fabric_credit_backlog(&credits, FIRST_PORT, 10 * CREDIT, now);
	deliver(FIRST_PORT, 1, FABRIC_CLASS_RDMA, 10 * CREDIT);
	run(1);
	TAP_EQ(sources[1][1].granted, got + 10 * CREDIT, "window: but not while it waits here");
	run(SILENT_NS / 3);
	TAP_EQ(sources[1][1].granted, got + 20 * CREDIT, "window: when the port has sent it");
	run(10 * SILENT_NS);
	TAP_OK(sources[1][1].granted > 5 * got,
		"window: a source that is silent for so long has nothing under way");
	close_all("window");

	open_port(8 * RATE);
	withheld = true;
	ask(1, FABRIC_CLASS_RDMA, 100000000);
	run(1000000);
	TAP_OK(sources[1][1].granted >= dsf_bytes_of_time(LOOP_NS, 8 * RATE) * 3 / 2,
		"window: a port too fast for its queue still gets a loop and a half");
	close_all("window of a fast port");
}

/* Grants that get lost: who asks again is told again, though he gets no more. */
static void lost_grants(void)
{
	uint32_t grants;

	open_port(RATE);
	withheld = true;
	ask(1, FABRIC_CLASS_RDMA, 100000000);
	run(SILENT_NS / 3);
	grants = sources[1][1].grants;
	ask(1, FABRIC_CLASS_RDMA, 1000);
	run(1000);
	TAP_EQ(sources[1][1].grants, grants + 1, "lost grants: said again when the window is full");
	close_all("lost grants");
}

/* One that has its share under way and can't send leaves the rest to the others. */
static void shares(void)
{
	struct fabric_credit_key key = { FIRST_PORT, 1, FABRIC_CLASS_RDMA };
	uint64_t before;

	open_port(RATE);
	withheld = true;
	ask(1, FABRIC_CLASS_RDMA, 100000000);
	ask(2, FABRIC_CLASS_RDMA, 100000000);
	for (int i = 0; i < 1000; i++) {
		before = sources[2][1].granted;
		run(1000);
		deliver(FIRST_PORT, 2, FABRIC_CLASS_RDMA, sources[2][1].granted - before);
		fabric_credit_request(&credits, &key, 9, 100000000, 100000000, now);
	}
	TAP_OK(sources[1][1].granted <= WINDOW / 2 + SPARE + CREDIT,
		"shares: one of two that can't send has %" PRIu64 " under way",
		sources[1][1].granted);
	TAP_OK(sources[2][1].granted > 49000000, "shares: the other has the port: %" PRIu64,
		sources[2][1].granted);
	deliver(FIRST_PORT, 1, FABRIC_CLASS_RDMA, sources[1][1].granted);
	run(10000);
	TAP_OK(sources[1][1].granted > WINDOW / 2 + SPARE + CREDIT,
		"shares: it goes on when something of it comes");
	close_all("shares");
}

/* Bytes that were lost don't make the window smaller for ever: the VOQ says that it has spent
 * them, and they don't come. */
static void forgetting(void)
{
	struct fabric_credit_key key = { FIRST_PORT, 1, FABRIC_CLASS_RDMA };
	uint64_t asked = 100000000, got;

	open_port(RATE);
	withheld = true;
	ask(1, FABRIC_CLASS_RDMA, asked);
	run(SILENT_NS / 3);
	got = sources[1][1].granted;
	fabric_credit_request(&credits, &key, 9, asked, (uint32_t)(asked - got), now);
	run(SETTLE_NS - 1);
	fabric_credit_request(&credits, &key, 9, asked, (uint32_t)(asked - got), now);
	run(1000);
	TAP_EQ(sources[1][1].granted, got, "forgetting: what was spent may still come");
	fabric_credit_request(&credits, &key, 9, asked, (uint32_t)(asked - got), now);
	run(SILENT_NS / 3);
	TAP_OK(sources[1][1].granted > 2 * got - SPARE - CREDIT &&
			sources[1][1].granted <= 2 * got + CREDIT,
		"forgetting: then it is lost, and as much is granted again");
	/* What was in the VOQ is not lost. */
	for (int i = 0; i < 10; i++) {
		fabric_credit_request(&credits, &key, 9, asked, (uint32_t)(asked - got), now);
		run(SETTLE_NS);
	}
	TAP_OK(sources[1][1].granted <= 2 * got + CREDIT,
		"forgetting: credit that is not spent isn't forgotten");
	close_all("forgetting");

	/* Many that keep a little don't close the window for the others. */
	open_port(RATE);
	withheld = true;
	for (uint16_t i = 2; i < SOURCES_MAX; i++)
		for (uint16_t class = 0; class < FABRIC_CLASSES; class ++)
			ask(i, class, 2 * CREDIT);
	run(1000000);
	withheld = false;
	got = 0;
	for (int i = 0; i < 1000; i++) {
		ask(1, FABRIC_CLASS_RDMA, 100000);
		run(1000);
	}
	TAP_OK(sources[1][1].granted > 49000000, "forgetting: spare credit doesn't count");
	close_all("spare credit");
}

static void failing_memory(void)
{
	uint32_t failed = 0;

	for (unsigned long nth = 1; nth < 30; nth++) {
		uint64_t got = 0, refused = 0;

		memory.fail_at = nth;
		memory.failed = false;
		if (open_all() < 0) {
			TAP_OK(memory.live == 0, "init fails at allocation %lu, without a leak",
				nth);
			failed++;
			continue;
		}
		for (uint32_t port = 0; port < 20; port++)
			fabric_credit_port(&credits, FIRST_PORT + port, RATE, QUEUE, true, now);
		for (uint16_t i = 0; i < 60; i++) {
			int err = ask_port(FIRST_PORT + i % 20, i, FABRIC_CLASS_RDMA, CREDIT);

			refused += err < 0;
			if (err < 0 && err != -DSF_E_FULL && err != -DSF_E_NOMEM)
				TAP_EQ(err, -DSF_E_FULL, "what failing memory gives");
		}
		run(1000000);
		for (uint16_t i = 0; i < 60; i++)
			got += sources[i][FABRIC_CLASS_RDMA].granted / CREDIT;
		if (got + refused != 60)
			TAP_OK(false,
				"allocation %lu fails: %" PRIu64 " granted, %" PRIu64
				" refused of 60",
				nth, got, refused);
		failed += memory.failed;
		memory.fail_at = 0;
		fabric_credits_close(&credits);
		if (memory.live != 0)
			TAP_EQ(memory.live, 0, "allocation %lu fails: a leak", nth);
	}
	TAP_OK(failed >= 8, "%u allocations failed, one a run", failed);
}

/* Sources are remembered while they ask or get something. */
static void unused(void)
{
	open_port(RATE);
	ask(1, FABRIC_CLASS_RDMA, 10 * CREDIT);
	ask(SELF, FABRIC_CLASS_RDMA, 10 * CREDIT);
	run(IDLE_NS / 2);
	TAP_OK(sources[1][FABRIC_CLASS_RDMA].granted == 10 * CREDIT && credits.sources.count == 2,
		"unused: two sources got what they wanted");
	run(10 * IDLE_NS);
	TAP_EQ(credits.sources.count, 0, "unused: and are gone");
	TAP_OK(dsf_time_is_never(fabric_credits_deadline(&credits)), "unused: nothing ticks");
	/* They count on from where they were. */
	ask(1, FABRIC_CLASS_RDMA, CREDIT);
	ask(SELF, FABRIC_CLASS_RDMA, CREDIT);
	run(IDLE_NS / 2);
	TAP_OK(sources[1][FABRIC_CLASS_RDMA].granted == 11 * CREDIT &&
			sources[SELF][FABRIC_CLASS_RDMA].granted == 11 * CREDIT,
		"unused: they get what they want when they are back");
	for (int i = 0; i < 10; i++) {
		run(IDLE_NS - 1);
		ask(1, FABRIC_CLASS_RDMA, CREDIT);
	}
	TAP_EQ(credits.sources.count, 1, "unused: not who asks now and then");
	close_all("unused");

	/* A port so slow that one burst takes 131 s. */
	open_port(1000);
	ask(1, FABRIC_CLASS_RDMA, 100 * CREDIT);
	ask(2, FABRIC_CLASS_RDMA, 100 * CREDIT);
	run(20 * IDLE_NS);
	TAP_EQ(credits.sources.count, 2, "unused: not who waits for his turn");
	fabric_credit_port(&credits, FIRST_PORT, 1000, QUEUE, false, now);
	for (int i = 0; i < 10; i++) {
		run(IDLE_NS / 2);
		ask(1, FABRIC_CLASS_RDMA, 0);
	}
	TAP_EQ(credits.sources.count, 1, "unused: at a port that is down, who asks no more");
	fabric_credit_port(&credits, FIRST_PORT, RATE, QUEUE, true, now);
	run(IDLE_NS / 2);
	TAP_EQ(sources[1][FABRIC_CLASS_RDMA].granted, 100 * CREDIT,
		"unused: the other one is served when it is up again");
	ask(2, FABRIC_CLASS_RDMA, 0);
	run(IDLE_NS / 2);
	TAP_EQ(sources[2][FABRIC_CLASS_RDMA].granted, 100 * CREDIT,
		"unused: and so is the one that asks again");
	close_all("unused at a slow port");
}

int main(void)
{
	half_right();
	no_more_than_asked();
	down();
	rate();
	unlimited();
	for (uint64_t seed = 1; seed <= 5; seed++)
		fairness(seed, (uint32_t)seed * 7 + 2);
	TAP_EQ(memory.live, 0, "fairness: nothing is left");
	weights();
	fabric_limit();
	local_beside_fabric();
	fabric_gone();
	factors();
	epochs();
	unused();
	window();
	lost_grants();
	shares();
	forgetting();
	failing_memory();
	return TAP_DONE();
}
