/*
 * port.h - the sending end of a fabric link: queue, rate, trains, impairments
 *
 * Theory. Cells wait in the very frames they will leave in: each port has a queue of train
 * buffers, cells are copied into the last one, and the first one is being serialised. A train
 * grows while the port is busy. It departs when its last cell has been serialised, that is when
 * the port would fall idle or the train is full (one quantum), whichever is first; so nothing waits
 * for a fuller train, and a saturated port sends full ones. Time is counted from the start of the
 * busy period in whole bytes, so that rounding never adds up.
 *
 * Control cells have strict priority: they join the first train that has room, ahead of all cells
 * that wait behind it. A part of each train is kept free for them.
 *
 * An unlimited port has no serialisation: what is in the queue leaves when the driver asks for
 * output. Impairments act at departure, per cell: loss, corruption, silence; delay and jitter go
 * into the departure instant (jitter keeps order). Reordering holds single trains back, so that
 * those behind overtake.
 */
#ifndef DSF_FABRIC_PORT_H
#define DSF_FABRIC_PORT_H
#include <stdbool.h>
#include "base/heap.h"
#include "base/pool.h"
#include "base/rng.h"
#include "fabric/cell.h"

/* Bytes of a train that data leaves free for control cells. */
#define FABRIC_TRAIN_CONTROL_BYTES 1024u

/* Most trains that a switch holds, all ports together: 256 MiB. As many short ones. */
#define FABRIC_TRAINS_MAX 16384u

/* A train begins in a short buffer and moves to one for a whole train when it grows out of it: in a
 * large fabric that wakes up every link has one train of one cell. Ours: two reachability cells of
 * the largest kind fit. */
#define FABRIC_TRAIN_SHORT 1024u

/* A reordered train is held for the time of two trains, at least for this (ours). */
#define FABRIC_REORDER_NS_MIN 1000u

struct fabric_frame {
	struct fabric_frame *next;
	dsf_instant depart;
	uint32_t used;      /* bytes at bytes[], train header included */
	uint32_t wire;      /* bytes that its cells cost on the link */
	uint32_t data_wire; /* of those, data cells */
	uint16_t cells;
	uint16_t port;
	uint32_t capacity; /* of bytes[]: FABRIC_TRAIN_SHORT or FABRIC_TRAIN_MAX */
	uint8_t bytes[];
};

struct fabric_impairment {
	uint32_t loss_ppm, corrupt_ppm, reorder_ppm;
	uint64_t delay_ns, jitter_ns;
	bool silent;
};

struct fabric_port_counters {
	uint64_t frames, bytes;
	uint64_t data_cells, control_cells;
	uint64_t cell_bytes;
	uint64_t lost_cells, corrupted_cells; /* by impairment */
	uint64_t discarded_cells;             /* no carrier */
};

struct fabric_port {
	uint64_t rate_bps; /* 0: unlimited */
	uint16_t number;
	bool carrier;
	bool heard;        /* what the train's "I hear you" says; kept by reach */
	bool flush_wanted; /* unlimited: is in the flush list */
	bool stop;         /* what the train tells the peer: send no data */
	bool stopped;      /* what the peer told us */
	struct fabric_frame *first, *last;
	struct fabric_frame *kept_first, *kept_last; /* stopped: trains that wait for the peer */
	uint64_t queue_bytes; /* wire bytes in both, the train under way included */
	uint64_t full_bytes;  /* queue above: who fills it is pushed back */
	uint64_t stops;       /* times that the peer was told to stop */
	dsf_instant busy_since;
	uint64_t busy_bytes;     /* sent since then */
	dsf_instant last_depart; /* with delay and jitter: keeps order */
	uint32_t link_sequence;
	struct fabric_impairment impairment;
	struct dsf_rng rng;
	struct dsf_heap_entry timer;
	struct fabric_port *flush_next;
	uint8_t macs[12]; /* destination, source */
	struct fabric_port_counters counters;
};

/* All fabric ports of one switch. */
struct fabric_ports {
	const struct dsf_memory *memory;
	struct fabric_port *ports; /* index: port number; Ethernet ports' entries stay unused */
	uint32_t count;
	uint16_t switch_index;
	uint32_t data_max;   /* data bytes of a full train; 0: one cell a frame */
	uint32_t train_max;  /* bytes of a frame that has more than one cell */
	uint32_t mark_bytes; /* queue above: cells are flagged */
	uint32_t room_bytes; /* queue above: spraying looks elsewhere, VOQs wait */
	uint64_t *
		telling; /* bitset: ports with a reachability cell in their queue; the owner adds */
	struct dsf_pool frames, short_frames;
	struct dsf_heap timers; /* of a train that grew: too early, until fabric_ports_settle */
	bool put_off;           /* a train under way grew since then */
	struct fabric_port *flush_first;
	bool flushed; /* unlimited trains were taken, so there is room; the owner clears it */
	struct fabric_frame *ready_first, *ready_last; /* departed, not yet output */
	uint64_t drops;                                /* no buffer: never in a credited fabric */
};

/* train_bytes 0: one cell a frame. 0, or -DSF_E_NOMEM. */
int fabric_ports_init(struct fabric_ports *s, const struct dsf_memory *memory, uint32_t count,
	uint16_t switch_index, uint32_t train_bytes, uint64_t seed);
void fabric_ports_close(struct fabric_ports *s);

/* Carrier loss discards what waits or has not been output and counts it. */
void fabric_port_carrier(struct fabric_ports *s, uint32_t port, bool up, dsf_instant now);

/* From now on at rate_bps, also what is left of the train under way. */
void fabric_port_rate(struct fabric_ports *s, uint32_t port, uint64_t rate_bps, dsf_instant now);

/*
 * Room for a data cell of stored bytes (header included) that costs wire bytes; the caller writes
 * all of it at once. NULL, counted: no buffer. The port must have carrier.
 */
uint8_t *fabric_port_push(
	struct fabric_ports *s, uint32_t port, uint32_t stored, uint32_t wire, dsf_instant now);

/* The same for a control cell, ahead of all data that isn't under way. */
uint8_t *fabric_port_push_control(
	struct fabric_ports *s, uint32_t port, uint32_t stored, dsf_instant now);

static inline bool fabric_port_over_mark(const struct fabric_ports *s, uint32_t port)
{
	return s->ports[port].queue_bytes > s->mark_bytes;
}

static inline bool fabric_port_has_room(const struct fabric_ports *s, uint32_t port)
{
	return !s->ports[port].stopped && s->ports[port].queue_bytes <= s->room_bytes;
}

/* The peer wants no data, or wants it again. Control cells, and trains that hold some already, go
 * on; so does the train under way. */
void fabric_port_stop(struct fabric_ports *s, uint32_t port, bool stopped, dsf_instant now);

/* Ends a change: the deadline is that of a train that will leave then. The owner calls it after it
 * has pushed cells; who doesn't is woken too early, no more. */
void fabric_ports_settle(struct fabric_ports *s);

static inline dsf_instant fabric_ports_deadline(const struct fabric_ports *s)
{
	return dsf_heap_at(&s->timers);
}

/* So long a reordered train is held: what follows can overtake it. */
uint64_t fabric_port_reorder_ns(uint64_t rate_bps);

/* Trains whose instant has come depart. True when any did. */
bool fabric_ports_expire(struct fabric_ports *s, dsf_instant now);

/* The next departed train, or NULL; the caller gives it back by fabric_frame_free. */
struct fabric_frame *fabric_ports_output(struct fabric_ports *s, dsf_instant now);
void fabric_frame_free(struct fabric_ports *s, struct fabric_frame *frame);

#endif
