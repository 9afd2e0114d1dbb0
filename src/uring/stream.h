/*
 * stream.h - the byte streams of control protocols, over the kernel's TCP
 *
 * FSDB and BGP see ordered byte streams at the switch's host port (node.h). Here they are TCP
 * sockets in the switch's namespace: what the kernel makes of them leaves through the TUN device
 * inband0 as IPv6 packets and crosses VOQs and cells like any traffic.
 *
 * Everything goes through the process's ring: connects, accepts (multishot), receives into buffers
 * that all streams share, one send under way a stream. What completes is noted and handed to the
 * node later in the turn, when all frames that came before have been (uring_streams_handle).
 *
 * A stream that is over lives on until the kernel has given back its last entry; a number that the
 * node gave is free again at once. Sockets are plain blocking descriptors: entries on non-blocking
 * ones fail instead of waiting in the ring.
 */
#ifndef DSF_URING_STREAM_H
#define DSF_URING_STREAM_H
#include "base/hash.h"
#include "node/node.h"
#include "uring/buffers.h"
#include "uring/loop.h"

#define URING_STREAMS_MAX   16384u
#define URING_STREAM_BUFFER 65536u /* bytes of a stream that wait to be sent */
/* Receive buffers, shared: what a TUN packet carries at most, and as many as come in a turn. */
#define URING_STREAM_RECEIVE_SIZE 9216u
#define URING_STREAM_RECEIVES_MAX 64u
#define URING_STREAM_LISTENERS    2u
#define URING_STREAM_KEY_MAX      80u   /* TCP_MD5SIG_MAXKEYLEN */
#define URING_STREAM_EVENTS_MAX   1024u /* more than a turn brings in */

struct uring_stream;

struct uring_stream_event {
	enum uring_kind kind;
	uint32_t index; /* of the slot, or of the listener */
	int result;
	uint16_t buffer;
	bool has_buffer, more;
};

struct uring_streams {
	struct uring_loop *loop; /* NULL: not open */
	const struct dsf_memory *memory;
	struct node *node;
	struct uring_buffers buffers;
	struct {
		int fd;
		bool armed;
	} listeners[URING_STREAM_LISTENERS];
	struct uring_stream **slots; /* by the index in their tags; NULL: free */
	uint32_t slots_count, slots_used;
	struct dsf_hash numbers, keys;
	struct uring_stream *work; /* those with something to put into the ring */
	struct uring_stream_event events[URING_STREAM_EVENTS_MAX];
	uint32_t events_count;
	uint64_t refused; /* streams that found no room here */
};

/* Listens at address, :: for all. group: of the receive buffers. 0 or -errno. */
int uring_streams_open(struct uring_streams *s, struct uring_loop *loop,
	const struct dsf_memory *memory, struct node *node, uint16_t group,
	const struct dsf_ip6 *address);

/* BGP's streams with remote are signed with a key (RFC 2385) of 1 to URING_STREAM_KEY_MAX
 * characters, and others with it are dropped by the kernel. 0 or -errno. */
int uring_streams_key(struct uring_streams *s, const struct dsf_ip6 *remote, const char *key);

/* Breaks all streams off; after uring_loop_close, which ends their entries. */
void uring_streams_close(struct uring_streams *s);

/* What the node asked for: NODE_OUTPUT_OPEN, _WRITE, _CLOSE. */
void uring_streams_output(struct uring_streams *s, const struct node_output *out, dsf_instant now);

/* A completion of a kind URING_KIND_STREAM_*. */
void uring_streams_note(struct uring_streams *s, const struct io_uring_cqe *cqe);

static inline bool uring_streams_news(const struct uring_streams *s)
{
	return s->events_count > 0;
}

/* Tells the node what was noted. */
void uring_streams_handle(struct uring_streams *s, dsf_instant now);

/* Puts what there is to do into the ring, once a turn. */
void uring_streams_arm(struct uring_streams *s);

#endif
