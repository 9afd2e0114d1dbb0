/*
 * bgp_rib.c - what paths cost the BGP core, in CPU time and bytes
 *
 * usage: bgp_rib [PREFIXES PATHS [SESSIONS]]
 *
 * Feeds encoded UPDATEs to one speaker in pieces of 64 KB, as a socket would, with the CPU time
 * spent as its clock: decisions come when they would come to a process that does nothing else.
 * PATHS path ids of each prefix are spread over SESSIONS sessions; PATHS 0: plain prefixes, 100 to
 * an UPDATE. Prints one JSON object a row: seconds of CPU to absorb, withdraw, absorb again and lose
 * the sessions, nanoseconds a path, and bytes that a path takes. Without arguments: several rows.
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "bgp/bgp.h"
#include "bgp/update.h"

#define CHUNK      65536u
#define SESSIONS   512u
#define SPEAKER_AS 65000u
#define PER_UPDATE 100u

static size_t live_bytes;
static double spent_before;

static void *take(void *user, size_t size)
{
	(void)user;
	live_bytes += size;
	return calloc(1, size);
}

static void give(void *user, void *block, size_t size)
{
	(void)user;
	live_bytes -= size;
	free(block);
}

static double cpu_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static dsf_instant now(void)
{
	return (dsf_instant){ NS_PER_S + (uint64_t)(cpu_s() * 1e9) };
}

struct stream {
	uint8_t *bytes;
	size_t size, cap;
};

static uint8_t *room(struct stream *s, size_t size)
{
	if (s->cap - s->size < size) {
		s->cap = s->cap * 2 + (1u << 20);
		s->bytes = realloc(s->bytes, s->cap);
		if (s->bytes == NULL)
			abort();
	}
	return s->bytes + s->size;
}

static const uint8_t attributes[] = { 0x40, 1, 1, 0, 0x40, 2, 14, 2, 3, 0xfa, 0x57, 0, 0, 0xfa,
	0x56, 0xea, 2, 0xfa, 0x56, 0xea, 3, 0x40, 5, 4, 0, 0, 0, 100 };

static struct dsf_ip6 hop_of(uint32_t path)
{
	return (struct dsf_ip6){ { 0xfd, 0x5f, 0, 0, (uint8_t)(path >> 8),
		(uint8_t)path, [15] = 2 } };
}

/* All prefixes of one path id, announced or withdrawn. */
static void encode(struct stream *s, uint32_t prefixes, uint32_t path, bool add_path, bool withdraw)
{
	struct bgp_nlri nlri = { .path_id = path };
	struct dsf_ip6 hop = hop_of(path);
	struct bgp_update_writer w;
	uint32_t i = 0;

	while (i < prefixes) {
		uint8_t *to = room(s, BGP_MESSAGE_MAX);

		if (withdraw)
			bgp_update_unreach(&w, to, BGP_MESSAGE_MAX, add_path);
		else
			(void)bgp_update_reach(&w, to, BGP_MESSAGE_MAX, add_path, &hop, attributes,
				sizeof(attributes));
		for (uint32_t count = 0; i < prefixes && (add_path || count < PER_UPDATE);
			count++) {
			nlri.key.length = 48;
			nlri.key.address = (struct dsf_ip6){ { 0x20, 1, (uint8_t)(i >> 16),
				(uint8_t)(i >> 8), (uint8_t)i } };
			if (!bgp_update_add(&w, &nlri))
				break;
			i++;
		}
		s->size += bgp_update_finish(&w);
	}
}

static void turn(struct bgp *b)
{
	static uint8_t buf[CHUNK];
	struct bgp_action action;
	struct bgp_change change;

	if (dsf_time_due(bgp_deadline(b), now()))
		bgp_expire(b, now());
	while (bgp_output(b, &action, buf, sizeof(buf), now()))
		continue;
	while (bgp_changed(b, &change))
		continue;
}

/* Until nothing is left to decide; the time to wait for isn't CPU time of ours. */
static void rest(struct bgp *b)
{
	turn(b);
	bgp_expire(b, dsf_time_after(now(), NS_PER_S));
	turn(b);
}

static uint32_t paths_of(struct bgp *b, uint32_t sessions)
{
	struct bgp_peer_view view;
	uint32_t count = 0;

	for (uint32_t i = 0; i < sessions; i++) {
		bgp_peer_view(b, i, now(), &view);
		count += view.paths;
	}
	return count;
}

static uint32_t streams[SESSIONS];

static void open_session(struct bgp *b, uint32_t i, bool add_path)
{
	struct bgp_open open = { .as = SPEAKER_AS,
		.hold_s = 0,
		.id = i + 1,
		.ipv6 = true,
		.as4 = true,
		.extended = true,
		.add_path = add_path ? BGP_ADD_PATH_SEND : 0 };
	struct dsf_ip6 remote = { { 0xfd, [14] = (uint8_t)(i >> 8), (uint8_t)i } };
	struct dsf_ip6 local = { { 0xfc } };
	uint8_t bytes[BGP_MESSAGE_MAX];
	size_t size = bgp_wire_open_encode(bytes, &open);

	streams[i] = (uint32_t)bgp_accept(b, &remote, &local, now());
	size += bgp_wire_keepalive_encode(bytes + size);
	bgp_input(b, streams[i], bytes, size, now());
	turn(b);
}

static double timed(struct bgp *b, const struct stream *s, uint32_t sessions)
{
	size_t at[SESSIONS] = { 0 };
	bool more = true;

	spent_before = cpu_s();
	while (more) { /* sessions in turn, as their sockets become readable */
		more = false;
		for (uint32_t i = 0; i < sessions; i++) {
			size_t size = s[i].size - at[i] < CHUNK ? s[i].size - at[i] : CHUNK;

			if (size == 0)
				continue;
			bgp_input(b, streams[i], s[i].bytes + at[i], size, now());
			at[i] += size;
			turn(b);
			more = true;
		}
	}
	rest(b);
	return cpu_s() - spent_before;
}

static double lose(struct bgp *b, uint32_t sessions)
{
	spent_before = cpu_s();
	for (uint32_t i = 0; i < sessions; i++) {
		bgp_closed(b, streams[i], now());
		turn(b);
	}
	rest(b);
	return cpu_s() - spent_before;
}

static void require(bool held, const char *what)
{
	if (held)
		return;
	fprintf(stderr, "bgp_rib: %s\n", what);
	exit(1);
}

static struct bgp *make(uint32_t sessions, bool add_path)
{
	static const struct dsf_memory memory = { take, give, NULL };
	static struct bgp_peer_config peers[SESSIONS];
	struct bgp_config config;
	struct bgp *b;

	bgp_config_init(&config);
	config.memory = &memory;
	config.as = SPEAKER_AS;
	config.id = 0x7f000001;
	config.peers = peers;
	config.peers_count = sessions;
	for (uint32_t i = 0; i < sessions; i++) {
		struct dsf_ip6 remote = { { 0xfd, [14] = (uint8_t)(i >> 8), (uint8_t)i } };

		bgp_peer_config_init(&peers[i], &remote, SPEAKER_AS);
		peers[i].passive = true;
		peers[i].add_path = add_path ? BGP_ADD_PATH_RECEIVE : 0;
	}
	b = bgp_new(&config, now());
	for (uint32_t i = 0; i < sessions; i++) {
		bgp_peer_start(b, i, now());
		open_session(b, i, add_path);
	}
	return b;
}

static void row(uint32_t prefixes, uint32_t paths, uint32_t sessions)
{
	static struct stream up[SESSIONS], down[SESSIONS];
	bool add_path = paths > 0;
	uint32_t per_prefix = add_path ? paths : 1, total = prefixes * per_prefix;
	struct bgp *b = make(sessions, add_path);
	size_t before = live_bytes, heap_before = mallinfo2().uordblks, bytes, heap;
	double absorb, withdraw, again, loss;

	for (uint32_t i = 0; i < sessions; i++)
		up[i].size = down[i].size = 0;
	for (uint32_t i = 0; i < per_prefix; i++) {
		encode(&up[i % sessions], prefixes, i + 1, add_path, false);
		encode(&down[i % sessions], prefixes, i + 1, add_path, true);
	}
	heap_before = mallinfo2().uordblks;
	absorb = timed(b, up, sessions);
	require(paths_of(b, sessions) == total, "not all paths are there");
	bytes = live_bytes - before;
	heap = mallinfo2().uordblks - heap_before;
	withdraw = timed(b, down, sessions);
	require(paths_of(b, sessions) == 0, "paths are left");
	again = timed(b, up, sessions);
	loss = lose(b, sessions);
	require(paths_of(b, sessions) == 0, "paths are left after the sessions");
	printf("{\"prefixes\":%u,\"paths\":%u,\"sessions\":%u,\"absorb_s\":%.3f,\"withdraw_s\":%."
	       "3f,"
	       "\"again_s\":%.3f,\"loss_s\":%.3f,\"absorb_ns_per_path\":%.0f,\"bytes_per_path\":%."
	       "1f,"
	       "\"heap_mb\":%.1f}\n",
		prefixes, total, sessions, absorb, withdraw, again, loss, absorb * 1e9 / total,
		(double)bytes / total, (double)heap / 1e6);
	fflush(stdout);
	bgp_free(b);
	require(live_bytes == 0, "memory is left");
}

int main(int argc, char **argv)
{
	if (argc >= 3) {
		row((uint32_t)atoi(argv[1]), (uint32_t)atoi(argv[2]),
			argc > 3 ? (uint32_t)atoi(argv[3]) : 1);
		return 0;
	}
	row(16, 2000, 1);
	row(128, 250, 1);
	row(128, 500, 1);
	row(128, 1000, 1);
	row(128, 2000, 1);
	row(128, 4000, 1);
	row(128, 2000, 128);
	row(100000, 0, 1);
	return 0;
}
