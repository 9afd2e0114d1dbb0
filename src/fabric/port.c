#include "fabric/port.h"
#include <assert.h>
#include "base/bitset.h"
#include "base/err.h"

#define FRAMES_SLAB       8u
#define SHORT_FRAMES_SLAB 64u
#define RNG_KIND          0x706f7274ull /* "port" */
#define BUSY_BYTES_REBASE (1ull << 30)  /* dsf_time_of_bytes is exact below 2 GB */

/* Queue marks in trains. Two trains of the normal working of a busy port (one under way, one
 * filling) are not congestion; the rest is our choice. */
#define MARK_TRAINS 3u
#define ROOM_TRAINS 2u

static size_t set_size(const struct fabric_ports *s)
{
	return DSF_BITSET_WORDS(s->count) * sizeof(uint64_t);
}

void fabric_ports_close(struct fabric_ports *s)
{
	dsf_heap_close(&s->timers);
	dsf_pool_close(&s->frames);
	dsf_pool_close(&s->short_frames);
	dsf_memory_delete(s->memory, s->telling, set_size(s));
	dsf_memory_delete(s->memory, s->ports, s->count * sizeof(*s->ports));
	s->telling = NULL;
	s->ports = NULL;
}

int fabric_ports_init(struct fabric_ports *s, const struct dsf_memory *memory, uint32_t count,
	uint16_t switch_index, uint32_t train_bytes, uint64_t seed)
{
	uint32_t overhead = FABRIC_TRAIN_HEADER + FABRIC_TRAIN_CONTROL_BYTES;

	memset(s, 0, sizeof(*s));
	s->memory = memory;
	s->count = count;
	s->ports = dsf_memory_new(memory, count * sizeof(*s->ports));
	s->telling = dsf_memory_new(memory, set_size(s));
	s->switch_index = switch_index;
	s->data_max = train_bytes > overhead ? train_bytes - overhead : 0;
	s->train_max = train_bytes < FABRIC_TRAIN_MAX ? train_bytes : FABRIC_TRAIN_MAX;
	s->mark_bytes = MARK_TRAINS * FABRIC_TRAIN_MAX;
	s->room_bytes = ROOM_TRAINS * FABRIC_TRAIN_MAX;
	dsf_pool_init(&s->frames, memory, sizeof(struct fabric_frame) + FABRIC_TRAIN_MAX,
		FRAMES_SLAB, FABRIC_TRAINS_MAX);
	dsf_pool_init(&s->short_frames, memory, sizeof(struct fabric_frame) + FABRIC_TRAIN_SHORT,
		SHORT_FRAMES_SLAB, FABRIC_TRAINS_MAX);
	dsf_heap_init(&s->timers, memory);
	if (s->ports == NULL || s->telling == NULL || dsf_heap_reserve(&s->timers, count) < 0) {
		fabric_ports_close(s);
		return -DSF_E_NOMEM;
	}
	for (uint32_t i = 0; i < count; i++) {
		s->ports[i].number = (uint16_t)i;
		dsf_rng_fork(&s->ports[i].rng, seed, RNG_KIND, (uint64_t)switch_index << 16 | i);
	}
	return 0;
}

static struct dsf_pool *pool_of(struct fabric_ports *s, uint32_t capacity)
{
	return capacity == FABRIC_TRAIN_SHORT ? &s->short_frames : &s->frames;
}

void fabric_frame_free(struct fabric_ports *s, struct fabric_frame *frame)
{
	dsf_pool_give(pool_of(s, frame->capacity), frame);
}

/* An empty train with room for so many bytes. NULL, counted: no buffer. */
static struct fabric_frame *frame_new(
	struct fabric_ports *s, const struct fabric_port *p, uint32_t bytes)
{
	uint32_t capacity = bytes <= FABRIC_TRAIN_SHORT ? FABRIC_TRAIN_SHORT : FABRIC_TRAIN_MAX;
	struct fabric_frame *f = dsf_pool_take(pool_of(s, capacity));

	if (f == NULL) {
		s->drops++;
		return NULL;
	}
	f->next = NULL;
	f->used = FABRIC_TRAIN_HEADER;
	f->wire = f->data_wire = 0;
	f->cells = 0;
	f->port = p->number;
	f->capacity = capacity;
	return f;
}

/* When the first train's last cell will have been serialised, as things are. */
static dsf_instant first_departs(const struct fabric_port *p)
{
	return dsf_time_after(
		p->busy_since, dsf_time_of_bytes(p->busy_bytes + p->first->wire, p->rate_bps));
}

/* The first train begins: at once if the port is idle, else when the one before it has left. */
static void start_first(struct fabric_ports *s, struct fabric_port *p)
{
	if (p->rate_bps == 0) {
		if (!p->flush_wanted) {
			p->flush_wanted = true;
			p->flush_next = s->flush_first;
			s->flush_first = p;
		}
		return;
	}
	/* Can't fail: there is room for every port's timer. */
	(void)dsf_heap_set(&s->timers, &p->timer, first_departs(p));
}

static void begin_busy(struct fabric_port *p, dsf_instant now)
{
	dsf_instant idle_at =
		dsf_time_after(p->busy_since, dsf_time_of_bytes(p->busy_bytes, p->rate_bps));

	if (dsf_time_before(idle_at, now)) {
		p->busy_since = now;
		p->busy_bytes = 0;
	}
}

/* Puts trains, one behind the other, at the queue's end. */
static void append(struct fabric_port *p, struct fabric_frame *first, struct fabric_frame *last,
	dsf_instant now)
{
	if (p->first == NULL)
		begin_busy(p, now);
	*(p->first == NULL ? &p->first : &p->last->next) = first;
	p->last = last;
}

static struct fabric_frame *append_train(
	struct fabric_ports *s, struct fabric_port *p, uint32_t stored, dsf_instant now)
{
	struct fabric_frame *f = frame_new(s, p, FABRIC_TRAIN_HEADER + stored);

	if (f != NULL)
		append(p, f, f, now);
	return f;
}

/* The same for data that wait until the peer wants them. */
static struct fabric_frame *keep_train(
	struct fabric_ports *s, struct fabric_port *p, uint32_t stored)
{
	struct fabric_frame *f = frame_new(s, p, FABRIC_TRAIN_HEADER + stored);

	if (f == NULL)
		return NULL;
	*(p->kept_first == NULL ? &p->kept_first : &p->kept_last->next) = f;
	p->kept_last = f;
	return f;
}

/* The same train of a queue in a buffer with room for so many bytes more. */
static struct fabric_frame *make_room(struct fabric_ports *s, struct fabric_port *p,
	struct fabric_frame **link, struct fabric_frame *f, uint32_t stored)
{
	struct fabric_frame *larger;

	if (f->used + stored <= f->capacity)
		return f;
	larger = frame_new(s, p, f->used + stored);
	if (larger == NULL)
		return NULL;
	while (*link != f)
		link = &(*link)->next;
	larger->next = f->next;
	larger->used = f->used;
	larger->wire = f->wire;
	larger->data_wire = f->data_wire;
	larger->cells = f->cells;
	memcpy(larger->bytes + FABRIC_TRAIN_HEADER, f->bytes + FABRIC_TRAIN_HEADER,
		f->used - FABRIC_TRAIN_HEADER);
	*link = larger;
	if (p->last == f)
		p->last = larger;
	if (p->kept_last == f)
		p->kept_last = larger;
	fabric_frame_free(s, f);
	return larger;
}

static uint8_t *add_cell(struct fabric_ports *s, struct fabric_port *p, struct fabric_frame *f,
	uint32_t stored, uint32_t wire)
{
	uint8_t *at = f->bytes + f->used;

	f->used += stored;
	f->wire += wire;
	f->cells++;
	p->queue_bytes += wire;
	if (f == p->first) {
		if (p->timer.place == 0)
			start_first(s, p);
		else
			s->put_off = true;
	}
	return at;
}

uint8_t *fabric_port_push(
	struct fabric_ports *s, uint32_t port, uint32_t stored, uint32_t wire, dsf_instant now)
{
	struct fabric_port *p = &s->ports[port];
	struct fabric_frame *f = p->stopped ? p->kept_last : p->last;

	assert(p->carrier && stored <= wire);
	if (f == NULL || s->data_max == 0 || f->used + stored > s->train_max ||
		(f->data_wire > 0 && f->data_wire + wire > s->data_max))
		f = p->stopped ? keep_train(s, p, stored) : append_train(s, p, stored, now);
	else
		f = make_room(s, p, p->stopped ? &p->kept_first : &p->first, f, stored);
	if (f == NULL)
		return NULL;
	f->data_wire += wire;
	p->counters.data_cells++;
	return add_cell(s, p, f, stored, wire);
}

uint8_t *fabric_port_push_control(
	struct fabric_ports *s, uint32_t port, uint32_t stored, dsf_instant now)
{
	struct fabric_port *p = &s->ports[port];
	struct fabric_frame *f = p->first;

	assert(p->carrier && stored <= FABRIC_TRAIN_CONTROL_BYTES);
	if (s->data_max == 0)
		f = NULL; /* one cell a frame; the few control cells go behind */
	while (f != NULL && (f->used + stored > s->train_max ||
				    (f->data_wire > 0 && f->wire - f->data_wire + stored >
								 FABRIC_TRAIN_CONTROL_BYTES)))
		f = f->next;
	f = f == NULL ? append_train(s, p, stored, now) : make_room(s, p, &p->first, f, stored);
	if (f == NULL)
		return NULL;
	p->counters.control_cells++;
	return add_cell(s, p, f, stored, stored);
}

void fabric_port_stop(struct fabric_ports *s, uint32_t port, bool stopped, dsf_instant now)
{
	struct fabric_port *p = &s->ports[port];
	struct fabric_frame *goes = p->first, *first = p->kept_first, *last = p->kept_last;

	if (p->stopped == stopped || !p->carrier)
		return;
	p->stopped = stopped;
	if (stopped) {
		for (struct fabric_frame *f = p->first; f != NULL; f = f->next)
			goes = f->wire > f->data_wire ? f : goes;
		if (goes == NULL || goes->next == NULL)
			return;
		p->kept_first = goes->next;
		p->kept_last = p->last;
		goes->next = NULL;
		p->last = goes;
		return;
	}
	p->kept_first = p->kept_last = NULL;
	if (first == NULL)
		return;
	append(p, first, last, now);
	if (p->timer.place == 0)
		start_first(s, p);
}

static uint32_t cell_stored(const uint8_t *cell)
{
	if (cell[FABRIC_CELL_AT_KIND] == FABRIC_CELL_REQUEST ||
		cell[FABRIC_CELL_AT_KIND] == FABRIC_CELL_GRANT)
		return FABRIC_CELL_HEADER;
	return FABRIC_CELL_HEADER + dsf_load_be16(cell + FABRIC_CELL_AT_STORED);
}

/* Numbers the cells and lets the link lose and corrupt some; what is lost leaves no bytes. */
static void finish_cells(struct fabric_ports *s, struct fabric_port *p, struct fabric_frame *f)
{
	uint8_t *from = f->bytes + FABRIC_TRAIN_HEADER, *to = from;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < f->cells; i++) {
		uint32_t size = cell_stored(from);

		dsf_store_be32(from + FABRIC_CELL_AT_LINK_SEQ, p->link_sequence++);
		if (from[FABRIC_CELL_AT_KIND] == FABRIC_CELL_REACH)
			dsf_bitset_remove(s->telling, p->number);
		if (p->impairment.silent || dsf_rng_chance(&p->rng, p->impairment.loss_ppm)) {
			p->counters.lost_cells++;
			from += size;
			continue;
		}
		if (dsf_rng_chance(&p->rng, p->impairment.corrupt_ppm)) {
			from[FABRIC_CELL_AT_FLAGS] |= FABRIC_CELL_CORRUPT;
			p->counters.corrupted_cells++;
		}
		if (to != from)
			memmove(to, from, size);
		to += size;
		from += size;
		kept++;
	}
	f->cells = (uint16_t)kept;
	f->used = (uint32_t)(to - f->bytes);
}

uint64_t fabric_port_reorder_ns(uint64_t rate_bps)
{
	uint64_t trains_ns = dsf_time_of_bytes(2u * FABRIC_TRAIN_MAX, rate_bps);

	return trains_ns > FABRIC_REORDER_NS_MIN ? trains_ns : FABRIC_REORDER_NS_MIN;
}

static dsf_instant impaired_departure(struct fabric_port *p, dsf_instant depart)
{
	const struct fabric_impairment *i = &p->impairment;
	uint64_t extra_ns = i->delay_ns;

	if (i->jitter_ns > 0)
		extra_ns += dsf_rng_below(&p->rng, i->jitter_ns + 1);
	depart = dsf_time_max(dsf_time_after(depart, extra_ns), p->last_depart);
	if (dsf_rng_chance(&p->rng, i->reorder_ppm))
		return dsf_time_after(depart, fabric_port_reorder_ns(p->rate_bps));
	p->last_depart = depart;
	return depart;
}

static void finish_train(struct fabric_ports *s, struct fabric_port *p, struct fabric_frame *f)
{
	struct fabric_train header;

	finish_cells(s, p, f);
	f->depart = impaired_departure(p, f->depart);
	header = (struct fabric_train){ .flags = (uint8_t)((p->heard ? FABRIC_TRAIN_HEARD : 0) |
							   (p->stop ? FABRIC_TRAIN_STOP : 0)),
		.cells = f->cells,
		.bytes = (uint16_t)(f->used - FABRIC_TRAIN_HEADER),
		.source_switch = s->switch_index,
		.source_port = p->number,
		.depart = f->depart };
	memcpy(f->bytes, p->macs, sizeof(p->macs));
	fabric_train_encode(&header, f->bytes);
	if (f->cells == 0) {
		fabric_frame_free(s, f);
		return;
	}
	p->counters.frames++;
	p->counters.bytes += f->used;
	f->next = NULL;
	*(s->ready_last != NULL ? &s->ready_last->next : &s->ready_first) = f;
	s->ready_last = f;
}

static void depart_first(struct fabric_ports *s, struct fabric_port *p, dsf_instant at)
{
	struct fabric_frame *f = p->first;

	p->first = f->next;
	if (p->first == NULL)
		p->last = NULL;
	p->queue_bytes -= f->wire;
	p->busy_bytes += f->wire;
	if (p->busy_bytes > BUSY_BYTES_REBASE) {
		p->busy_since = at;
		p->busy_bytes = 0;
	}
	p->counters.cell_bytes += f->wire;
	f->depart = at;
	finish_train(s, p, f);
}

/* Brings the first timers up to date: cells that came since they were set put departures off. */
static void correct_timers(struct fabric_ports *s)
{
	struct dsf_heap_entry *first;

	while ((first = dsf_heap_first(&s->timers)) != NULL) {
		struct fabric_port *p = DSF_CONTAINER(first, struct fabric_port, timer);
		dsf_instant at = first_departs(p);

		if (!dsf_time_before(first->at, at))
			return;
		(void)dsf_heap_set(&s->timers, first, at);
	}
}

void fabric_ports_settle(struct fabric_ports *s)
{
	if (!s->put_off)
		return;
	s->put_off = false;
	correct_timers(s);
}

bool fabric_ports_expire(struct fabric_ports *s, dsf_instant now)
{
	bool departed = false;

	while (dsf_time_due(dsf_heap_at(&s->timers), now)) {
		struct fabric_port *p =
			DSF_CONTAINER(dsf_heap_first(&s->timers), struct fabric_port, timer);
		dsf_instant at = first_departs(p);

		/* Cells that came since the timer was set put the departure off. */
		if (dsf_time_due(at, now)) {
			depart_first(s, p, at);
			departed = true;
			if (p->first == NULL) {
				dsf_heap_remove(&s->timers, &p->timer);
				continue;
			}
			at = first_departs(p);
		}
		(void)dsf_heap_set(&s->timers, &p->timer, at);
	}
	correct_timers(s);
	return departed;
}

static void flush_unlimited(struct fabric_ports *s, dsf_instant now)
{
	while (s->flush_first != NULL) {
		struct fabric_port *p = s->flush_first;

		s->flush_first = p->flush_next;
		s->flushed = true;
		p->flush_wanted = false;
		while (p->first != NULL && p->rate_bps == 0) /* it may be limited by now */
			depart_first(s, p, now);
	}
}

struct fabric_frame *fabric_ports_output(struct fabric_ports *s, dsf_instant now)
{
	struct fabric_frame *f;

	if (s->ready_first == NULL)
		flush_unlimited(s, now);
	f = s->ready_first;
	if (f != NULL) {
		s->ready_first = f->next;
		if (s->ready_first == NULL)
			s->ready_last = NULL;
	}
	return f;
}

/* Takes the port's trains out of the list of departed ones: they were still on the dead link. */
static void discard_ready(struct fabric_ports *s, struct fabric_port *p)
{
	struct fabric_frame **at = &s->ready_first;

	s->ready_last = NULL;
	while (*at != NULL) {
		struct fabric_frame *f = *at;

		if (f->port == p->number) {
			*at = f->next;
			p->counters.discarded_cells += f->cells;
			fabric_frame_free(s, f);
			continue;
		}
		s->ready_last = f;
		at = &f->next;
	}
}

void fabric_port_carrier(struct fabric_ports *s, uint32_t port, bool up, dsf_instant now)
{
	struct fabric_port *p = &s->ports[port];

	if (p->carrier == up)
		return;
	fabric_port_stop(s, port, false, now);
	p->carrier = up;
	p->busy_since = p->last_depart = now;
	p->busy_bytes = 0;
	if (up)
		return;
	discard_ready(s, p);
	dsf_heap_remove(&s->timers, &p->timer);
	while (p->first != NULL) {
		struct fabric_frame *f = p->first;

		p->first = f->next;
		p->counters.discarded_cells += f->cells;
		fabric_frame_free(s, f);
	}
	p->last = NULL;
	p->queue_bytes = 0;
	dsf_bitset_remove(s->telling, port);
}

/* Bytes of the first train that have been serialised. */
static uint64_t first_sent(const struct fabric_port *p, dsf_instant now)
{
	uint64_t sent;

	if (p->first == NULL || p->rate_bps == 0)
		return 0;
	sent = dsf_bytes_of_time(dsf_time_since(p->busy_since, now), p->rate_bps);
	if (sent <= p->busy_bytes)
		return 0;
	sent -= p->busy_bytes;
	return sent < p->first->wire ? sent : p->first->wire;
}

void fabric_port_rate(struct fabric_ports *s, uint32_t port, uint64_t rate_bps, dsf_instant now)
{
	struct fabric_port *p = &s->ports[port];
	uint64_t sent_ns = dsf_time_of_bytes(first_sent(p, now), rate_bps);

	if (rate_bps == p->rate_bps)
		return;
	p->rate_bps = rate_bps;
	p->busy_since = (dsf_instant){ now.ns > sent_ns ? now.ns - sent_ns : 0 };
	p->busy_bytes = 0;
	if (p->first == NULL)
		return;
	dsf_heap_remove(&s->timers, &p->timer);
	start_first(s, p);
}
