/*
 * reasm.h - cells back to packets, and packets back to order
 *
 * Theory. Cells of one packet arrive by many links, mixed with those of its neighbours. For each
 * (source switch, system port, class) there is a context: a window of packets by sequence, each
 * with a bit a cell. A packet is handed on when it is whole and all before it have been handed on
 * or given up, so that no flow is ever reordered. What lacks a cell for longer than the time-out
 * (links' delays differ by far less) is lost and counted, and the order goes on behind it.
 *
 * A context is there from its first cell until nothing of it is under way and it was unused for
 * idle_ns or twice that. That must be longer than its VOQ lives unused, since numbers begin anew
 * with a new VOQ only: a context that joins in the middle waits a time-out for what it never
 * missed.
 */
#ifndef DSF_FABRIC_REASM_H
#define DSF_FABRIC_REASM_H
#include "base/hash.h"
#include "base/heap.h"
#include "fabric/packet.h"

#define FABRIC_REASM_CONTEXTS_MAX 131072u
#define FABRIC_REASM_WINDOW_MAX   4096u      /* packets of one context under way; a power of two */
#define FABRIC_REASM_SLOTS_MAX    (1u << 21) /* of all windows of a switch: 48 MB (ours) */

struct fabric_reasm_key {
	uint32_t system_port;
	uint16_t source;
	uint16_t class;
};

struct fabric_reasm_slot {
	struct fabric_packet *packet;
	uint64_t cells_got; /* bit i: cell i */
	uint8_t cells_left; /* 0: whole */
	dsf_instant started_at;
};

struct fabric_reasm_context {
	struct fabric_reasm_key key; /* first: dsf_hash */
	uint32_t epoch;
	uint32_t next;        /* sequence that is handed on next */
	uint32_t end;         /* one past the highest sequence seen */
	uint32_t window;      /* slots; 0 before first use */
	uint16_t packet_size; /* of the last one that was handed on */
	bool synced;          /* something of this epoch was handed on */
	bool used;            /* since contexts were last looked through */
	struct fabric_reasm_slot *slots;
	struct dsf_heap_entry timer;
};

struct fabric_reasm {
	const struct dsf_memory *memory;
	struct fabric_packets *packets;
	struct dsf_hash contexts;
	struct fabric_reasm_context *recent; /* cells come in runs of one context */
	struct dsf_heap timers;
	uint32_t payload_max; /* of a cell */
	uint64_t timeout_ns, idle_ns;
	dsf_instant sweep_at;            /* DSF_NEVER: there are no contexts */
	uint32_t slots;                  /* of all windows */
	struct fabric_packet_queue done; /* whole, in order */
	struct fabric_packet_queue
		lost; /* given up; nothing but source, port, class, size is right */
	uint64_t packets_done, packets_lost, cells_duplicate;
	uint64_t slots_full; /* cells dropped because FABRIC_REASM_SLOTS_MAX was reached */
};

void fabric_reasm_init(struct fabric_reasm *r, const struct dsf_memory *memory,
	struct fabric_packets *packets, uint32_t cell_bytes, uint64_t timeout_ns, uint64_t idle_ns);
void fabric_reasm_close(struct fabric_reasm *r);

/* A data cell for a port of ours. 0, or dropped: -DSF_E_BADFIELD, -DSF_E_DUPLICATE, -DSF_E_STALE,
 * -DSF_E_FULL (too many windows), -DSF_E_NOMEM. Whole packets are in r->done afterwards and
 * those that were given up in r->lost; the caller takes and owns them. */
int fabric_reasm_input(struct fabric_reasm *r, const struct fabric_cell *cell,
	const uint8_t *payload, dsf_instant now);

static inline dsf_instant fabric_reasm_deadline(const struct fabric_reasm *r)
{
	return dsf_time_min(dsf_heap_at(&r->timers), r->sweep_at);
}

/* Packets as after fabric_reasm_input. */
void fabric_reasm_expire(struct fabric_reasm *r, dsf_instant now);

#endif
