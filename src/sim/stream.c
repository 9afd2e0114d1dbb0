#include "sim/stream.h"
#include <assert.h>
#include "base/err.h"
#include "base/hash.h"
#include "base/heap.h"
#include "base/rng.h"
#include "ip/packet.h"
#include "sim/segment.h"

#define BUFFER_FIRST  256u
#define ANSWERS_MAX   256u   /* segments without a stream that wait to go out */
#define PORT_FIRST    49152u /* RFC 6335: dynamic ports */
#define PORTS         16384u
#define DUPLICATE_MAX 3u /* RFC 5681 3.2 */

enum state {
	SYN_SENT,
	SYN_RECEIVED, /* nobody knows it yet */
	OPEN,
	FIN_WAIT, /* its owner has closed it; what was written and FIN are under way */
};

struct stream {
	struct node_stream_ends ends; /* key */
	enum state state;
	uint32_t number;
	/* Sequence numbers: the first byte that isn't acknowledged, the next to send, behind the
	 * last ever sent, the next to come. */
	uint32_t acknowledged, next, sent, expected;
	uint8_t *buffer; /* from acknowledged on */
	uint32_t size, capacity;
	uint32_t room; /* that the owner knows of */
	bool answer;   /* an acknowledgment is due */
	bool queued;
	struct stream *queue_previous, *queue_next;
	uint32_t duplicates, tries;
	bool timed; /* timed_sequence measures a round trip */
	uint32_t timed_sequence;
	dsf_instant timed_at;
	uint64_t rtt_ns, rto_ns; /* rtt 0: not measured */
	struct dsf_heap_entry timer;
};

static_assert(sizeof(struct node_stream_ends) == 36, "a key without holes");

/* The owner's number of a stream. */
struct number {
	uint32_t number; /* key */
	struct stream *stream;
};

struct key {
	struct dsf_ip6 remote; /* key of the table */
	uint64_t signature;
};

struct sim_streams {
	const struct dsf_memory *memory;
	struct sim_stream_owner owner;
	struct dsf_rng rng;
	struct dsf_hash streams, numbers, keys;
	struct dsf_heap timers;
	struct stream *queue_first, *queue_last; /* those with something to send */
	struct sim_segment answers[ANSWERS_MAX];
	uint32_t answers_first, answers_count;
};

struct sim_streams *sim_streams_new(
	const struct dsf_memory *memory, const struct sim_stream_owner *owner, uint64_t seed)
{
	struct sim_streams *s = dsf_memory_new(memory, sizeof(*s));

	if (s == NULL)
		return NULL;
	s->memory = memory;
	s->owner = *owner;
	dsf_rng_init(&s->rng, seed);
	dsf_hash_init(&s->streams, memory, sizeof(struct node_stream_ends), sizeof(struct stream),
		SIM_STREAMS_MAX);
	dsf_hash_init(
		&s->numbers, memory, sizeof(uint32_t), sizeof(struct number), SIM_STREAMS_MAX);
	dsf_hash_init(
		&s->keys, memory, sizeof(struct dsf_ip6), sizeof(struct key), SIM_STREAMS_MAX);
	dsf_heap_init(&s->timers, memory);
	return s;
}

void sim_streams_free(struct sim_streams *s)
{
	if (s == NULL)
		return;
	for (struct stream *c = dsf_hash_next(&s->streams, NULL); c != NULL;
		c = dsf_hash_next(&s->streams, c))
		dsf_memory_delete(s->memory, c->buffer, c->capacity);
	dsf_hash_close(&s->streams);
	dsf_hash_close(&s->numbers);
	dsf_hash_close(&s->keys);
	dsf_heap_close(&s->timers);
	dsf_memory_delete(s->memory, s, sizeof(*s));
}

int sim_stream_key(struct sim_streams *s, const struct dsf_ip6 *remote, const char *key)
{
	struct key *k = dsf_hash_put(&s->keys, remote);

	if (k == NULL)
		return -DSF_E_NOMEM;
	for (k->signature = 0; *key != '\0'; key++)
		k->signature = dsf_mix((k->signature ^ (uint8_t)*key) + 0x9e3779b97f4a7c15ull);
	return 0;
}

/* 0: none. */
static uint64_t signature_of(const struct sim_streams *s, const struct node_stream_ends *ends)
{
	const struct key *k = dsf_hash_get(&s->keys, &ends->remote);
	bool bgp = ends->local_port == NODE_STREAM_BGP || ends->remote_port == NODE_STREAM_BGP;

	return k == NULL || !bgp ? 0 : k->signature;
}

static bool before(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0;
}

static void enqueue(struct sim_streams *s, struct stream *c)
{
	if (c->queued)
		return;
	c->queued = true;
	c->queue_next = NULL;
	c->queue_previous = s->queue_last;
	*(s->queue_last != NULL ? &s->queue_last->queue_next : &s->queue_first) = c;
	s->queue_last = c;
}

static void dequeue(struct sim_streams *s, struct stream *c)
{
	if (!c->queued)
		return;
	c->queued = false;
	*(c->queue_previous != NULL ? &c->queue_previous->queue_next : &s->queue_first) =
		c->queue_next;
	*(c->queue_next != NULL ? &c->queue_next->queue_previous : &s->queue_last) =
		c->queue_previous;
}

static bool is_known(const struct stream *c)
{
	return c->state == SYN_SENT || c->state == OPEN;
}

static void stream_delete(struct sim_streams *s, struct stream *c)
{
	struct number *n = is_known(c) ? dsf_hash_get(&s->numbers, &c->number) : NULL;

	if (n != NULL)
		dsf_hash_remove(&s->numbers, n);
	dequeue(s, c);
	dsf_heap_remove(&s->timers, &c->timer);
	dsf_memory_delete(s->memory, c->buffer, c->capacity);
	dsf_hash_remove(&s->streams, c);
}

/* It is over, and its owner is told if it knew of it. */
static void stream_end(struct sim_streams *s, struct stream *c, bool reset, dsf_instant now)
{
	bool known = is_known(c);
	uint32_t number = c->number;

	stream_delete(s, c);
	if (known)
		s->owner.closed(s->owner.user, number, reset, now);
}

static struct stream *find_number(struct sim_streams *s, uint32_t number)
{
	const struct number *n = dsf_hash_get(&s->numbers, &number);

	return n == NULL ? NULL : n->stream;
}

static int know(struct sim_streams *s, struct stream *c, uint32_t number)
{
	struct number *n = dsf_hash_put(&s->numbers, &number);

	if (n == NULL)
		return -DSF_E_NOMEM;
	assert(n->stream == NULL); /* the owner names each but once */
	n->stream = c;
	c->number = number;
	return 0;
}

/* Its timer has a place in the heap from now on, so that setting it can't fail. NULL: no room. */
static struct stream *stream_new(struct sim_streams *s, const struct node_stream_ends *ends,
	enum state state, dsf_instant now)
{
	struct stream *c;

	if (dsf_heap_reserve(&s->timers, s->streams.count + 1) < 0)
		return NULL;
	c = dsf_hash_put(&s->streams, ends);
	if (c == NULL)
		return NULL;
	c->state = state;
	/* RFC 9293 3.4.1: first numbers follow a clock of 4 us, and aren't guessed. */
	c->acknowledged = (uint32_t)(now.ns / 4000) + (uint32_t)dsf_rng_next(&s->rng);
	c->next = c->sent = c->acknowledged;
	c->rto_ns = SIM_STREAM_RTO_FIRST_NS;
	enqueue(s, c);
	return c;
}

/* A segment that no stream sends: an answer to one that found none, or the last word of one. */
static void answer(struct sim_streams *s, const struct node_stream_ends *ends, uint32_t sequence,
	uint32_t acknowledged, uint8_t flags)
{
	struct sim_segment *a;

	if (s->answers_count == ANSWERS_MAX)
		return; /* it will be asked again */
	a = &s->answers[(s->answers_first + s->answers_count++) % ANSWERS_MAX];
	*a = (struct sim_segment){
		.ends = *ends, .sequence = sequence, .acknowledged = acknowledged, .flags = flags
	};
}

/* RFC 9293 3.5.2: for a segment that belongs to nobody. */
static void refuse(struct sim_streams *s, const struct sim_segment *segment)
{
	if (segment->flags & SIM_SEGMENT_RST)
		return;
	if (segment->flags & SIM_SEGMENT_ACK)
		answer(s, &segment->ends, segment->acknowledged, 0, SIM_SEGMENT_RST);
	else
		answer(s, &segment->ends, 0, segment->sequence + sim_segment_length(segment),
			SIM_SEGMENT_RST | SIM_SEGMENT_ACK);
}

static void tell_room(struct sim_streams *s, struct stream *c, dsf_instant now)
{
	c->room = SIM_STREAM_BUFFER - c->size;
	s->owner.writable(s->owner.user, c->number, c->room, now);
}

int sim_stream_open(struct sim_streams *s, uint32_t stream, const struct node_stream_ends *ends,
	dsf_instant now)
{
	struct node_stream_ends own = *ends;
	struct stream *c;
	int err;

	for (uint32_t i = 0; own.local_port == 0 || dsf_hash_get(&s->streams, &own) != NULL; i++) {
		if (i == PORTS)
			return -DSF_E_FULL;
		own.local_port = (uint16_t)(PORT_FIRST + dsf_rng_below(&s->rng, PORTS));
	}
	c = stream_new(s, &own, SYN_SENT, now);
	if (c == NULL)
		return -DSF_E_NOMEM;
	err = know(s, c, stream);
	if (err < 0)
		stream_delete(s, c);
	return err;
}

/* Bytes of the owner join what waits. 0, or -DSF_E_NOMEM. */
static int append(struct sim_streams *s, struct stream *c, const uint8_t *bytes, uint32_t size)
{
	uint32_t capacity = c->capacity == 0 ? BUFFER_FIRST : c->capacity;

	assert(size <= c->room);
	while (capacity < c->size + size)
		capacity *= 2;
	if (capacity > c->capacity) {
		uint8_t *grown = dsf_memory_grow(s->memory, c->buffer, c->capacity, capacity);

		if (grown == NULL)
			return -DSF_E_NOMEM;
		c->buffer = grown;
		c->capacity = capacity;
	}
	memcpy(c->buffer + c->size, bytes, size);
	c->size += size;
	c->room -= size;
	return 0;
}

static void say_reset(struct sim_streams *s, const struct stream *c)
{
	answer(s, &c->ends, c->sent, c->expected, SIM_SEGMENT_RST | SIM_SEGMENT_ACK);
}

void sim_stream_write(struct sim_streams *s, uint32_t stream, const uint8_t *bytes, uint32_t size,
	dsf_instant now)
{
	struct stream *c = find_number(s, stream);

	if (c == NULL)
		return;
	if (append(s, c, bytes, size) < 0) {
		say_reset(s, c);
		stream_end(s, c, true, now);
		return;
	}
	enqueue(s, c);
}

void sim_stream_close(struct sim_streams *s, uint32_t stream, bool reset, dsf_instant now)
{
	struct stream *c = find_number(s, stream);

	(void)now;
	if (c == NULL)
		return;
	if (c->state == SYN_SENT) {
		stream_delete(s, c); /* an answer will find nobody */
	} else if (reset) {
		say_reset(s, c);
		stream_delete(s, c);
	} else {
		dsf_hash_remove(&s->numbers, dsf_hash_get(&s->numbers, &c->number));
		c->state = FIN_WAIT;
		enqueue(s, c);
	}
}

static void set_timer(struct sim_streams *s, struct stream *c, dsf_instant now)
{
	if (c->sent == c->acknowledged)
		dsf_heap_remove(&s->timers, &c->timer);
	else
		(void)dsf_heap_set(&s->timers, &c->timer, dsf_time_after(now, c->rto_ns));
}

static void measure(struct stream *c, dsf_instant now)
{
	uint64_t sample_ns = dsf_time_since(c->timed_at, now);

	c->timed = false;
	c->rtt_ns = c->rtt_ns == 0 ? sample_ns : (7 * c->rtt_ns + sample_ns) / 8;
}

static uint64_t rto(const struct stream *c)
{
	uint64_t rto_ns = 4 * c->rtt_ns;

	if (c->rtt_ns == 0)
		return SIM_STREAM_RTO_FIRST_NS;
	if (rto_ns < SIM_STREAM_RTO_MIN_NS)
		return SIM_STREAM_RTO_MIN_NS;
	return rto_ns < SIM_STREAM_RTO_MAX_NS ? rto_ns : SIM_STREAM_RTO_MAX_NS;
}

/* From the first byte that isn't acknowledged on. */
static void repeat(struct sim_streams *s, struct stream *c)
{
	c->next = c->acknowledged;
	c->timed = false;
	enqueue(s, c);
}

/* The peer has everything before acknowledged. False: that ended the stream. */
static bool take_progress(
	struct sim_streams *s, struct stream *c, uint32_t acknowledged, dsf_instant now)
{
	uint32_t progress = acknowledged - c->acknowledged;
	uint32_t bytes = progress < c->size ? progress : c->size;

	if (c->timed && !before(acknowledged, c->timed_sequence))
		measure(c, now);
	c->size -= bytes;
	if (c->size > 0) {
		memmove(c->buffer, c->buffer + bytes, c->size);
	} else {
		dsf_memory_delete(s->memory, c->buffer, c->capacity);
		c->buffer = NULL;
		c->capacity = 0;
	}
	if (c->state == FIN_WAIT && progress > bytes) {
		stream_delete(s, c);
		return false;
	}
	c->acknowledged = acknowledged;
	if (before(c->next, acknowledged))
		c->next = acknowledged;
	c->duplicates = c->tries = 0;
	c->rto_ns = rto(c);
	set_timer(s, c, now);
	if (c->state == OPEN && c->room < SIM_STREAM_BUFFER / 2 &&
		SIM_STREAM_BUFFER - c->size >= SIM_STREAM_BUFFER / 2)
		tell_room(s, c, now);
	return true;
}

static bool take_acknowledgment(
	struct sim_streams *s, struct stream *c, const struct sim_segment *segment, dsf_instant now)
{
	if (before(c->sent, segment->acknowledged))
		return true; /* of what we never said */
	if (before(c->acknowledged, segment->acknowledged))
		return take_progress(s, c, segment->acknowledged, now);
	if (segment->acknowledged == c->acknowledged && c->sent != c->acknowledged &&
		sim_segment_length(segment) == 0 && ++c->duplicates == DUPLICATE_MAX)
		repeat(s, c);
	return true;
}

static void take_data(
	struct sim_streams *s, struct stream *c, const struct sim_segment *segment, dsf_instant now)
{
	uint32_t known = c->expected - segment->sequence; /* of its bytes */

	if (sim_segment_length(segment) == 0)
		return;
	c->answer = true;
	enqueue(s, c);
	if (before(c->expected, segment->sequence))
		return; /* something is missing: the sender goes back to it */
	if (known < segment->size) {
		c->expected += segment->size - known;
		if (c->state == OPEN)
			s->owner.input(s->owner.user, c->number, segment->data + known,
				segment->size - known, now);
	}
	if ((segment->flags & SIM_SEGMENT_FIN) != 0 &&
		segment->sequence + segment->size == c->expected) {
		answer(s, &c->ends, c->sent, c->expected + 1, SIM_SEGMENT_ACK);
		stream_end(s, c, false, now);
	}
}

/* The handshake is over. */
static void stand(struct sim_streams *s, struct stream *c, dsf_instant now)
{
	if (c->timed)
		measure(c, now);
	c->acknowledged = c->next = c->sent;
	c->rto_ns = rto(c);
	c->tries = 0;
	c->state = OPEN;
	set_timer(s, c, now);
	tell_room(s, c, now);
}

/* The last segment of a handshake that the peer has begun. False: it came to nothing. */
static bool take_opening(struct sim_streams *s, struct stream *c, dsf_instant now)
{
	int number = s->owner.accept(s->owner.user, &c->ends, now);

	if (number >= 0 && know(s, c, (uint32_t)number) == 0) {
		stand(s, c, now);
		return true;
	}
	if (number >= 0)
		s->owner.closed(s->owner.user, (uint32_t)number, true, now);
	say_reset(s, c);
	stream_delete(s, c);
	return false;
}

static void take_answer(
	struct sim_streams *s, struct stream *c, const struct sim_segment *segment, dsf_instant now)
{
	uint8_t both = SIM_SEGMENT_SYN | SIM_SEGMENT_ACK;

	if ((segment->flags & SIM_SEGMENT_ACK) != 0 &&
		(segment->acknowledged != c->sent || c->sent == c->acknowledged)) {
		refuse(s, segment); /* to an opening of an earlier life */
		return;
	}
	if ((segment->flags & both) != both)
		return;
	c->expected = segment->sequence + 1;
	c->answer = true;
	enqueue(s, c);
	s->owner.connected(s->owner.user, c->number, now);
	stand(s, c, now);
}

static void listen(struct sim_streams *s, const struct sim_segment *segment, dsf_instant now)
{
	struct stream *c;

	if ((segment->flags & (SIM_SEGMENT_SYN | SIM_SEGMENT_ACK | SIM_SEGMENT_RST)) !=
		SIM_SEGMENT_SYN) {
		refuse(s, segment);
		return;
	}
	if (segment->signature != signature_of(s, &segment->ends))
		return; /* as if it had not been heard */
	c = stream_new(s, &segment->ends, SYN_RECEIVED, now);
	if (c != NULL)
		c->expected = segment->sequence + 1;
}

static bool is_reset(const struct stream *c, const struct sim_segment *segment)
{
	if ((segment->flags & SIM_SEGMENT_RST) == 0)
		return false;
	if (c->state == SYN_SENT)
		return (segment->flags & SIM_SEGMENT_ACK) != 0 &&
		       segment->acknowledged == c->sent && c->sent != c->acknowledged;
	return segment->sequence == c->expected;
}

/* SYN on a stream that stands: an old one, or by a peer that knows nothing of the stream and says
 * so when it hears of it (RFC 5961 4). */
static void take_syn(
	struct sim_streams *s, struct stream *c, const struct sim_segment *segment, dsf_instant now)
{
	if (c->state != SYN_RECEIVED) {
		c->answer = true;
		enqueue(s, c);
	} else if (segment->sequence + 1 == c->expected) {
		repeat(s, c);
	} else {
		stream_end(s, c, true, now);
		listen(s, segment, now);
	}
}

static void take_segment(
	struct sim_streams *s, struct stream *c, const struct sim_segment *segment, dsf_instant now)
{
	if (is_reset(c, segment))
		stream_end(s, c, true, now);
	else if ((segment->flags & SIM_SEGMENT_RST) != 0)
		return;
	else if (c->state == SYN_SENT)
		take_answer(s, c, segment, now);
	else if ((segment->flags & SIM_SEGMENT_SYN) != 0)
		take_syn(s, c, segment, now);
	else if ((segment->flags & SIM_SEGMENT_ACK) == 0)
		return;
	else if (c->state == SYN_RECEIVED &&
		 (segment->acknowledged != c->sent || c->sent == c->acknowledged))
		refuse(s, segment);
	else if ((c->state != SYN_RECEIVED || take_opening(s, c, now)) &&
		 take_acknowledgment(s, c, segment, now))
		take_data(s, c, segment, now);
}

void sim_stream_input(struct sim_streams *s, const uint8_t *packet, uint32_t size, dsf_instant now)
{
	struct sim_segment segment;
	struct stream *c;

	if (sim_segment_read(&segment, packet, size) < 0)
		return;
	c = dsf_hash_get(&s->streams, &segment.ends);
	if (c == NULL)
		listen(s, &segment, now);
	else
		take_segment(s, c, &segment, now);
}

/* The next segment of a stream; false: it has nothing to say. */
static bool next_segment(struct stream *c, struct sim_segment *segment)
{
	uint32_t at = c->next - c->acknowledged, left = at < c->size ? c->size - at : 0;

	*segment = (struct sim_segment){ .ends = c->ends,
		.sequence = c->next,
		.acknowledged = c->expected,
		.flags = SIM_SEGMENT_ACK };
	switch (c->state) {
	case SYN_SENT:
		segment->acknowledged = 0;
		segment->flags = SIM_SEGMENT_SYN;
		return at == 0;
	case SYN_RECEIVED: segment->flags |= SIM_SEGMENT_SYN; return at == 0;
	case OPEN:
	case FIN_WAIT: break;
	}
	segment->size = left < SIM_STREAM_SEGMENT ? left : SIM_STREAM_SEGMENT;
	segment->data = segment->size > 0 ? c->buffer + at : NULL;
	if (c->state == FIN_WAIT && at <= c->size && segment->size == left)
		segment->flags |= SIM_SEGMENT_FIN;
	return sim_segment_length(segment) > 0 || c->answer;
}

static void sent_segment(
	struct sim_streams *s, struct stream *c, const struct sim_segment *segment, dsf_instant now)
{
	uint32_t length = sim_segment_length(segment);

	c->answer = false;
	c->next += length;
	if (length > 0 && !c->timed && c->sent == segment->sequence) {
		c->timed = true;
		c->timed_sequence = c->next;
		c->timed_at = now;
	}
	if (before(c->sent, c->next))
		c->sent = c->next;
	if (length > 0 && c->timer.place == 0)
		set_timer(s, c, now);
}

uint32_t sim_stream_output(struct sim_streams *s, uint8_t *packet, dsf_instant now)
{
	struct sim_segment segment;
	struct stream *c;

	if (s->answers_count > 0) {
		const struct sim_segment *a = &s->answers[s->answers_first];

		s->answers_first = (s->answers_first + 1) % ANSWERS_MAX;
		s->answers_count--;
		return sim_segment_write(a, SIM_STREAM_BUFFER, packet);
	}
	while ((c = s->queue_first) != NULL) {
		dequeue(s, c);
		if (!next_segment(c, &segment))
			continue;
		if ((segment.flags & SIM_SEGMENT_SYN) != 0)
			segment.signature = signature_of(s, &c->ends);
		sent_segment(s, c, &segment, now);
		enqueue(s, c); /* it may have more */
		return sim_segment_write(&segment, SIM_STREAM_BUFFER, packet);
	}
	return 0;
}

dsf_instant sim_stream_deadline(const struct sim_streams *s)
{
	return dsf_heap_at(&s->timers);
}

static void expire(struct sim_streams *s, struct stream *c, dsf_instant now)
{
	if (++c->tries > SIM_STREAM_TRIES_MAX && !is_known(c)) {
		stream_delete(s, c);
		return;
	}
	repeat(s, c);
	c->rto_ns = c->rto_ns < SIM_STREAM_RTO_MAX_NS / 2 ? 2 * c->rto_ns : SIM_STREAM_RTO_MAX_NS;
	set_timer(s, c, now);
}

void sim_stream_expire(struct sim_streams *s, dsf_instant now)
{
	while (s->timers.count > 0 && dsf_time_due(dsf_heap_at(&s->timers), now))
		expire(s, DSF_CONTAINER(dsf_heap_first(&s->timers), struct stream, timer), now);
}
