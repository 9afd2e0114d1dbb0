/*
 * wire.h - what MetaRoCE packets look like
 *
 * The published text gives mechanisms, not formats: this layout is our own. A packet is
 *
 *   Ethernet | IPv6 | UDP (source port = the path's entropy, checksum always set) | MCH | body
 *
 *   DATA   MCH 20 | MSGH 20 | [MOVE 8] | BTH 12 | [RETH 16 / AtomicETH 28 / AETH 4 [AtomicAck 8]]
 *          | [ImmDt 4] | payload
 *   ACK    MCH 20 | ACKH 16 | planes x share 4 | n x PBLK 56 | m x SBLK 8
 *   NACK   MCH 20 | 24
 *   CONN   MCH 20 | 48 | planes x address 16
 *   PROBE  MCH 20 | 16
 *
 * All numbers are big-endian. The inner headers from BTH on are InfiniBand's, always of the "ONLY"
 * family since every packet places itself; there is no ICRC, the UDP checksum covers everything.
 *
 * Decoders take what is stored of a packet and the size it stands for (they differ where payload
 * is carried by name) and check every length; encoders are given room for the largest head.
 */
#ifndef DSF_METAROCE_WIRE_H
#define DSF_METAROCE_WIRE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/address.h"

#define METAROCE_UDP_PORT    4794    /* ours; 4791 is RoCEv2 */
#define METAROCE_SOURCE_PORT 0xc000u /* source ports are 0xc000 .. 0xffff */
#define METAROCE_VERSION     1u

#define METAROCE_SACK_BITS  256 /* published: "256-bit selective acknowledgment bitvector" */
#define METAROCE_SACK_WORDS (METAROCE_SACK_BITS / 64)
#define METAROCE_PLANES_MAX 16u
#define METAROCE_PATHS_MAX  256u
#define METAROCE_PBLKS_MAX  8u
#define METAROCE_SBLKS_MAX  32u

#define METAROCE_MCH_SIZE   20u
#define METAROCE_MSGH_SIZE  20u
#define METAROCE_MOVE_SIZE  8u
#define METAROCE_BTH_SIZE   12u
#define METAROCE_ACKH_SIZE  16u
#define METAROCE_PBLK_SIZE  56u
#define METAROCE_SBLK_SIZE  8u
#define METAROCE_NACK_SIZE  44u /* MCH included */
#define METAROCE_CONN_SIZE  68u /* MCH included, addresses not */
#define METAROCE_PROBE_SIZE 36u /* MCH included */

/* Largest head of a DATA packet (with MOVE, AtomicETH and ImmDt) and of any packet. */
#define METAROCE_DATA_HEAD_MAX (20u + 20u + 8u + 12u + 28u + 4u)
#define METAROCE_HEAD_MAX                                                                          \
	(METAROCE_MCH_SIZE + METAROCE_ACKH_SIZE + 4u * METAROCE_PLANES_MAX +                       \
		METAROCE_PBLK_SIZE * METAROCE_PBLKS_MAX + METAROCE_SBLK_SIZE * METAROCE_SBLKS_MAX)

/* tx_ts counts these; it wraps after 274 s. */
#define METAROCE_TICK_NS 64u
/* Unit of backlog and max_inflight. */
#define METAROCE_BACKLOG_UNIT 4096u
/* Unit of rates. */
#define METAROCE_RATE_UNIT_BPS 10000u

enum metaroce_type {
	METAROCE_TYPE_DATA,
	METAROCE_TYPE_ACK,
	METAROCE_TYPE_NACK,
	METAROCE_TYPE_CONN,
	METAROCE_TYPE_PROBE,
};

#define METAROCE_FLAG_RTX          0x80u
#define METAROCE_FLAG_ACKREQ       0x40u /* the sender waits for an answer */
#define METAROCE_FLAG_FIRST        0x20u /* of its message */
#define METAROCE_FLAG_LAST         0x10u /* of its message */
#define METAROCE_FLAG_MOVED        0x08u /* MOVE header present */
#define METAROCE_FLAG_IDLE_AFTER   0x04u /* the sender has nothing more to send */
#define METAROCE_FLAG_HINT_LIMITED 0x02u /* the sender is held back by the rate hint alone */
#define METAROCE_FLAGS_KNOWN       0xfeu

/* The common header. */
struct metaroce_mch {
	uint8_t type;  /* enum metaroce_type */
	uint8_t flags; /* METAROCE_FLAG_* */
	uint16_t path;
	uint32_t connection; /* the receiver's id of it */
	uint32_t sequence;   /* DATA: of the path. ACK, NACK: running number of such packets */
	uint32_t tx_ts;      /* sender's clock in METAROCE_TICK_NS */
	uint8_t epoch;       /* changes with the path's source port or plane */
	uint8_t plane;
	uint16_t backlog; /* bytes that wait at the sender, in METAROCE_BACKLOG_UNIT, saturating */
};

/* InfiniBand opcodes (reliable connection) that DATA carries. */
enum metaroce_opcode {
	METAROCE_OP_SEND = 0x04,
	METAROCE_OP_SEND_IMM = 0x05,
	METAROCE_OP_WRITE = 0x0a,
	METAROCE_OP_WRITE_IMM = 0x0b,
	METAROCE_OP_READ_REQUEST = 0x0c,
	METAROCE_OP_READ_RESPONSE = 0x10,
	METAROCE_OP_ATOMIC_RESPONSE = 0x12,
	METAROCE_OP_COMPARE_SWAP = 0x13,
	METAROCE_OP_FETCH_ADD = 0x14,
};

#define METAROCE_MFLAG_SOLICITED  0x01u
#define METAROCE_MFLAG_FENCE      0x02u
#define METAROCE_MFLAG_TAIL_HOLD  0x04u
#define METAROCE_MFLAG_INVALIDATE 0x08u
#define METAROCE_MFLAGS_KNOWN     0x0fu

#define METAROCE_QPN_MAX 0xffffffu

/* A DATA packet behind its common header. */
struct metaroce_data {
	uint8_t opcode; /* enum metaroce_opcode */
	uint8_t mflags;
	uint32_t msn; /* message number on the stream */
	uint32_t rq_match;
	uint32_t offset; /* of this payload in the message */
	uint32_t message_size;
	uint32_t source_qp, target_qp;
	bool moved; /* MOVE: where the packet was sent first */
	uint16_t moved_path;
	uint8_t moved_epoch;
	uint32_t moved_sequence;
	uint64_t address; /* RETH, AtomicETH */
	uint32_t key;
	uint32_t length;                      /* RETH */
	uint64_t swap_add, compare, original; /* AtomicETH, AtomicAckETH */
	uint32_t syndrome;                    /* AETH: 8 bits and the 24-bit message number */
	uint32_t immediate;
	uint32_t payload; /* decode: bytes of it */
};

/* Head size of an opcode, payload excluded; 0 when we don't know the opcode. */
uint32_t metaroce_wire_data_head(uint8_t opcode, bool moved);

/* Encodes MCH and DATA headers; room for metaroce_wire_data_head bytes. Returns their size. */
uint32_t metaroce_wire_data_encode(
	uint8_t *to, const struct metaroce_mch *mch, const struct metaroce_data *data);

/* Any packet starts with this. 0, or -DSF_E_TRUNCATED, -DSF_E_VERSION, -DSF_E_BADFIELD. */
int metaroce_wire_mch_decode(const uint8_t *bytes, size_t stored, struct metaroce_mch *mch);

/* bytes: from MCH on, which was decoded before. Returns the offset of the payload, or
 * -DSF_E_TRUNCATED, -DSF_E_BADFIELD, -DSF_E_UNSUPPORTED (opcode). */
int metaroce_wire_data_decode(const uint8_t *bytes, size_t stored, size_t size,
	const struct metaroce_mch *mch, struct metaroce_data *data);

#define METAROCE_PBLK_GAP            0x01u
#define METAROCE_PBLK_DUPLICATE      0x02u
#define METAROCE_PBLK_PROBE_RESPONSE 0x04u
#define METAROCE_PBLK_EPOCH_CROSSED  0x08u

/* What the receiver has of one path. */
struct metaroce_pblk {
	uint16_t path;
	uint8_t epoch;                      /* latest seen */
	uint8_t flags;                      /* METAROCE_PBLK_* */
	uint32_t next;                      /* next expected: everything before it was received */
	uint64_t sack[METAROCE_SACK_WORDS]; /* bit i: next + 1 + i was received */
	uint32_t ecn_packets, rx_packets;   /* totals: CE-marked, and all, of this path */
	uint32_t ts_echo;                   /* tx_ts of the packet that came last */
	uint16_t ack_delay;                 /* in METAROCE_TICK_NS, since that packet */
};

/* Progress of one stream. */
struct metaroce_sblk {
	uint32_t qp; /* the ACK receiver's */
	uint8_t syndrome;
	uint32_t msn; /* all messages before this one are complete */
};

struct metaroce_ack {
	uint8_t pblks, sblks, planes;
	uint16_t active_senders;
	uint16_t hint_epoch;
	uint32_t rx_bytes;                   /* payload received on this connection, modulo 2^32 */
	uint32_t max_inflight;               /* in METAROCE_BACKLOG_UNIT; 0: no bound */
	uint32_t share[METAROCE_PLANES_MAX]; /* in METAROCE_RATE_UNIT_BPS; 0: none */
};

/* Writes MCH, ACKH and shares; PBLKs, then SBLKs follow in the counts announced. Returns the size
 * of what it wrote. */
uint32_t metaroce_wire_ack_encode(
	uint8_t *to, const struct metaroce_mch *mch, const struct metaroce_ack *ack);
void metaroce_wire_pblk_encode(uint8_t *to, const struct metaroce_pblk *pblk);
void metaroce_wire_sblk_encode(uint8_t *to, const struct metaroce_sblk *sblk);

/* 0 or -DSF_E_TRUNCATED, -DSF_E_BADFIELD; afterwards the blocks can be read by their index. */
int metaroce_wire_ack_decode(const uint8_t *bytes, size_t stored, struct metaroce_ack *ack);
void metaroce_wire_pblk_decode(const uint8_t *bytes, const struct metaroce_ack *ack, uint32_t index,
	struct metaroce_pblk *pblk);
void metaroce_wire_sblk_decode(const uint8_t *bytes, const struct metaroce_ack *ack, uint32_t index,
	struct metaroce_sblk *sblk);

enum metaroce_nack_code {
	METAROCE_NACK_TRIMMED = 0x01,
	METAROCE_NACK_TRIMMED_LAST_HOP = 0x02,
	METAROCE_NACK_NOT_READY = 0x20,
	METAROCE_NACK_INVALID = 0x61,
	METAROCE_NACK_ACCESS = 0x62,
	METAROCE_NACK_OPERATION = 0x63,
	METAROCE_NACK_UNKNOWN_CONNECTION = 0x80,
	METAROCE_NACK_STALE_EPOCH = 0x81,
	METAROCE_NACK_NO_RESOURCE = 0x82,
	METAROCE_NACK_OUTSIDE_WINDOW = 0x83,
};

struct metaroce_nack {
	uint8_t code; /* enum metaroce_nack_code */
	uint8_t timer;
	uint16_t path;
	uint32_t sequence;
	uint32_t qp; /* the NACK receiver's */
	uint32_t msn, rq_match, offset;
};

void metaroce_wire_nack_encode(
	uint8_t *to, const struct metaroce_mch *mch, const struct metaroce_nack *nack);
int metaroce_wire_nack_decode(const uint8_t *bytes, size_t stored, struct metaroce_nack *nack);

enum metaroce_conn_op {
	METAROCE_CONN_REQUEST = 1,
	METAROCE_CONN_REPLY,
	METAROCE_CONN_READY,
	METAROCE_CONN_CLOSE,
	METAROCE_CONN_CLOSE_ACK,
	METAROCE_CONN_RESET,
	METAROCE_CONN_PLANE_UPDATE,
};

struct metaroce_hello {
	uint8_t op; /* enum metaroce_conn_op */
	uint8_t version;
	uint16_t paths;         /* that the sender of this will send on */
	uint32_t connection;    /* the sender's id */
	uint64_t cookie;        /* names this life of the connection */
	struct dsf_ip6 address; /* names the NIC: its first port's */
	uint32_t rate;          /* of one port, in METAROCE_RATE_UNIT_BPS */
	uint16_t payload_max;
	uint16_t sack_bits;
	uint32_t features; /* bit p: the sender's plane p is up */
	uint8_t status;
	uint8_t planes;
	struct dsf_ip6 plane_address[METAROCE_PLANES_MAX]; /* all zero: no port there */
};

/* Returns the size. */
uint32_t metaroce_wire_hello_encode(
	uint8_t *to, const struct metaroce_mch *mch, const struct metaroce_hello *hello);
int metaroce_wire_hello_decode(const uint8_t *bytes, size_t stored, struct metaroce_hello *hello);

enum metaroce_probe_kind {
	METAROCE_PROBE_PATH,
	METAROCE_PROBE_TAIL,
	METAROCE_PROBE_STREAM,
	METAROCE_PROBE_KEEPALIVE,
	METAROCE_PROBE_FILL, /* MCH's sequence was given up: count it as received, nothing is in it
			      */
};

struct metaroce_probe {
	uint32_t id;
	uint32_t tail; /* highest sequence sent on the path */
	uint32_t qp;   /* STREAM: which */
	uint8_t kind;  /* enum metaroce_probe_kind */
	uint32_t msn;
};

void metaroce_wire_probe_encode(
	uint8_t *to, const struct metaroce_mch *mch, const struct metaroce_probe *probe);
int metaroce_wire_probe_decode(const uint8_t *bytes, size_t stored, struct metaroce_probe *probe);

#endif
