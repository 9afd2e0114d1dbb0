/*
 * cell.h - cells and the trains they travel in
 *
 * Theory. A packet that enters the fabric is cut into cells of at most cell_bytes (512, published
 * for the J3 generation, of which 32 are header). The last cell of a packet is only as long as it
 * needs to be. Each cell finds its own way to the egress switch; header and payload together are
 * what a fabric link's rate is charged for. Control cells (credit request, credit grant,
 * reachability, fill) are cells too, mostly a bare header.
 *
 * All cells that leave by one link within one quantum share one veth frame, the train. The train's
 * own header is the emulator's, not the modelled network's: it costs no link rate. It carries the
 * instant at which the last cell has left, so that the receiver can count the link's delay from
 * there, however late the frame itself was sent or read.
 *
 * The real cell layout is not public. This one is our own choice; scripts/wireshark/dsf.lua knows
 * it. Numbers are big-endian.
 *
 *   train:  0 destination MAC 6   6 source MAC 6   12 EtherType 2
 *          14 version 1  15 flags 1  16 cells 2  18 bytes of cells 2
 *          20 source switch 2  22 source port number 2  24 departure, fabric ns 8
 *          32 cells, one behind the other
 *   cell:   0 kind 1  1 flags 1  2 payload size 2  4 payload bytes present 2
 *           6 source switch 2  8 destination switch 2  10 class 1  11 cell index 1
 *          12 system port 4  16 link sequence 4
 *          20 packet sequence 4  24 packet size 2  26 packet bytes present 2  28 epoch 4
 *          32 payload
 *   request and grant: 2 epoch 4, 20 waiting bytes 4 (request), 24 total bytes 8, no payload
 *   reachability: payload: reach_cell.h
 *
 * "Present" is less than "size" in the simulator only, where payload is carried by name.
 */
#ifndef DSF_FABRIC_CELL_H
#define DSF_FABRIC_CELL_H
#include <stdbool.h>
#include <stddef.h>
#include "base/cursor.h"
#include "base/time.h"

#define FABRIC_ETHERTYPE     0x88b5 /* IEEE 802 local experimental ethertype 1 */
#define FABRIC_TRAIN_VERSION 1
#define FABRIC_TRAIN_HEADER  32u
#define FABRIC_TRAIN_MAX     16384u /* bytes of a whole train frame: dataplane measurements */
#define FABRIC_CELL_HEADER   32u    /* published: 512 B cell minus 32 B header */
#define FABRIC_CELL_MIN      192u   /* our choice: least cell_bytes that a topology may ask for */
#define FABRIC_CELL_MAX      4096u
#define FABRIC_PACKET_MAX    9216u /* largest Ethernet frame that enters the fabric */

/* Cells of one packet: 9216 / (192 - 32) at the smallest cell size is 58; 64 are a word of bits. */
#define FABRIC_PACKET_CELLS_MAX 64u

#define FABRIC_TRAIN_HEARD 0x01 /* I hear you */
#define FABRIC_TRAIN_STOP  0x02 /* send me no data: pressure.h */

#define FABRIC_CELL_LAST      0x01 /* last cell of its packet */
#define FABRIC_CELL_CONGESTED 0x02 /* met a queue over its mark */
#define FABRIC_CELL_CORRUPT   0x04 /* stands for a bad cell checksum; receivers drop it */
#define FABRIC_CELL_CE        0x08 /* the packet was marked at its VOQ */

enum fabric_cell_kind {
	FABRIC_CELL_DATA = 1,
	FABRIC_CELL_REQUEST,
	FABRIC_CELL_GRANT,
	FABRIC_CELL_REACH,
	FABRIC_CELL_FILL, /* keeps a link that isn't used under test */
	FABRIC_CELL_KIND_END
};

enum fabric_class {
	FABRIC_CLASS_NC,      /* DSCP 48; strict priority */
	FABRIC_CLASS_RDMA,    /* DSCP 50-59; published weight 8 */
	FABRIC_CLASS_DEFAULT, /* the rest; published weight 5 */
	FABRIC_CLASSES
};

/* Offsets, for code that patches one field of a raw cell. */
#define FABRIC_CELL_AT_KIND        0
#define FABRIC_CELL_AT_FLAGS       1
#define FABRIC_CELL_AT_SIZE        2
#define FABRIC_CELL_AT_STORED      4
#define FABRIC_CELL_AT_SOURCE      6
#define FABRIC_CELL_AT_DESTINATION 8
#define FABRIC_CELL_AT_LINK_SEQ    16

struct fabric_train {
	uint8_t flags;
	uint16_t cells;
	uint16_t bytes; /* of the cells that follow */
	uint16_t source_switch;
	uint16_t source_port;
	dsf_instant depart;
};

/* A decoded cell header. Which fields mean something depends on kind. */
struct fabric_cell {
	uint8_t kind, flags, class, index;
	uint16_t size, stored;
	uint16_t source, destination;
	uint32_t system_port;
	uint32_t link_sequence;
	uint32_t packet_sequence;
	uint16_t packet_size, packet_stored;
	uint32_t epoch;   /* of the VOQ's totals and sequences: a restarted one has a later epoch */
	uint32_t waiting; /* request: of total, what is in the VOQ; the rest is spent */
	uint64_t total;
};

static inline enum fabric_class fabric_class_of_dscp(uint8_t dscp)
{
	if (dscp == 48)
		return FABRIC_CLASS_NC;
	return dscp >= 50 && dscp <= 59 ? FABRIC_CLASS_RDMA : FABRIC_CLASS_DEFAULT;
}

/* Epochs come from the clock and go round in minutes, so "older" holds for a short way back only:
 * what is further away is a new one, whatever its number. A VOQ that was made anew within that way
 * of a whole round would be taken for old; the shorter the way, the less likely (ours: 1 in 4,096).
 * Nothing of an old epoch is under way for longer than 67 ms of fabric time. */
#define FABRIC_EPOCH_UNIT_NS   64u
#define FABRIC_EPOCH_OLDER_MAX (1u << 20)

static inline bool fabric_epoch_older(uint32_t epoch, uint32_t than)
{
	return than - epoch - 1 < FABRIC_EPOCH_OLDER_MAX;
}

const char *fabric_class_name(enum fabric_class class);

/* Reads the header of a train frame. 0, or -DSF_E_TRUNCATED (fewer bytes than it says),
 * -DSF_E_VERSION, -DSF_E_BADFIELD (not our EtherType). */
int fabric_train_decode(struct fabric_train *t, const uint8_t *frame, size_t size);

/* Writes FABRIC_TRAIN_HEADER bytes; MACs are the caller's (6 bytes each at 0 and 6). */
void fabric_train_encode(const struct fabric_train *t, uint8_t *frame);

/* For drivers: the instant of departure, without a look at anything else. False: not a train. */
static inline bool fabric_train_departure(const uint8_t *frame, size_t size, dsf_instant *depart)
{
	if (size < FABRIC_TRAIN_HEADER || dsf_load_be16(frame + 12) != FABRIC_ETHERTYPE)
		return false;
	depart->ns = dsf_load_be64(frame + 24);
	return true;
}

/* The same train with another departure. */
static inline void fabric_train_put_off(uint8_t *frame, size_t size, dsf_instant depart)
{
	if (size >= FABRIC_TRAIN_HEADER)
		dsf_store_be64(frame + 24, depart.ns);
}

/* Reads the cell at cells, of which size bytes are left in the train. Returns the bytes it takes
 * (header + present payload), or -DSF_E_TRUNCATED / -DSF_E_BADFIELD: the rest of the train can't be
 * read either. */
int fabric_cell_decode(struct fabric_cell *c, const uint8_t *cells, size_t size);

/* Writes FABRIC_CELL_HEADER bytes. */
void fabric_cell_encode(const struct fabric_cell *c, uint8_t *at);

/* Bytes that a cell is charged for on a link. */
static inline uint32_t fabric_cell_wire_bytes(const uint8_t *cell)
{
	if (cell[FABRIC_CELL_AT_KIND] == FABRIC_CELL_REQUEST ||
		cell[FABRIC_CELL_AT_KIND] == FABRIC_CELL_GRANT)
		return FABRIC_CELL_HEADER;
	return FABRIC_CELL_HEADER + dsf_load_be16(cell + FABRIC_CELL_AT_SIZE);
}

#endif
