/*
 * stream.h - ordered byte streams of one simulated device
 *
 * Live, FSDB and BGP run over the kernel's TCP at the switch's host port. Here this stands in the
 * kernel's place: packets that the device puts out at its host port come in, packets for it to
 * route go out, so that streams cross VOQs and cells like any traffic and die with them.
 *
 * Segments are TCP's (RFC 9293): handshake, FIN, RST, sequence and acknowledgment numbers mean what
 * they mean there. Left out: options, window scaling and congestion control (a stream has at most
 * SIM_STREAM_BUFFER bytes under way, the fabric gives credit, class nc comes first), half-closed
 * streams (who hears FIN is done), TIME_WAIT (first sequence numbers follow clock and seed).
 * What is lost is repeated from the first missing byte on: VOQs keep packets in order, so there is
 * nothing behind a gap that would be worth keeping.
 *
 * Nobody gives up: a stream whose peer has vanished repeats itself until its owner closes it. A
 * segment for a stream that isn't there is answered by RST, which ends half-open ones.
 */
#ifndef DSF_SIM_STREAM_H
#define DSF_SIM_STREAM_H
#include "base/memory.h"
#include "node/node.h"

#define SIM_STREAMS_MAX    16384u /* of a device */
#define SIM_STREAM_BUFFER  16384u /* bytes that wait or are under way, a stream */
#define SIM_STREAM_SEGMENT 1220u  /* fits the least MTU of IPv6 */
#define SIM_STREAM_PACKET  1280u  /* the largest packet that is put out */

/* Ours: a round trip through a fabric takes 10 to 50 us. */
#define SIM_STREAM_RTO_FIRST_NS NS_PER_MS
#define SIM_STREAM_RTO_MIN_NS   (100 * NS_PER_US)
#define SIM_STREAM_RTO_MAX_NS   (100 * NS_PER_MS)
#define SIM_STREAM_TRIES_MAX    8u /* of an opening we were asked for, and of a FIN */

/* Who owns the streams' ends: the device, by node_stream_*. */
struct sim_stream_owner {
	int (*accept)(void *user, const struct node_stream_ends *ends, dsf_instant now);
	void (*connected)(void *user, uint32_t stream, dsf_instant now);
	void (*input)(
		void *user, uint32_t stream, const uint8_t *bytes, uint32_t size, dsf_instant now);
	void (*writable)(void *user, uint32_t stream, uint32_t room, dsf_instant now);
	void (*closed)(void *user, uint32_t stream, bool reset, dsf_instant now);
	void *user;
};

struct sim_streams;

/* seed: of ports and first sequence numbers; another one for each device and each of its lives.
 * NULL when memory is short. */
struct sim_streams *sim_streams_new(
	const struct dsf_memory *memory, const struct sim_stream_owner *owner, uint64_t seed);
void sim_streams_free(struct sim_streams *s);

/* Openings of BGP's streams from and to remote need the same key at both ends, or none at either.
 * 0, -DSF_E_FULL or -DSF_E_NOMEM. */
int sim_stream_key(struct sim_streams *s, const struct dsf_ip6 *remote, const char *key);

/* What the owner asks for. open: 0, or -DSF_E_FULL or -DSF_E_NOMEM: the owner has to be told that
 * it is closed. Unknown numbers are ignored; what is written must have had room. */
int sim_stream_open(struct sim_streams *s, uint32_t stream, const struct node_stream_ends *ends,
	dsf_instant now);
void sim_stream_write(struct sim_streams *s, uint32_t stream, const uint8_t *bytes, uint32_t size,
	dsf_instant now);
void sim_stream_close(struct sim_streams *s, uint32_t stream, bool reset, dsf_instant now);

/* A packet came up the host port: bare IPv6. What isn't a stream's is ignored. */
void sim_stream_input(struct sim_streams *s, const uint8_t *packet, uint32_t size, dsf_instant now);

/* The next packet to send, into SIM_STREAM_PACKET bytes; its size, 0: none. */
uint32_t sim_stream_output(struct sim_streams *s, uint8_t *packet, dsf_instant now);

dsf_instant sim_stream_deadline(const struct sim_streams *s);
void sim_stream_expire(struct sim_streams *s, dsf_instant now);

#endif
