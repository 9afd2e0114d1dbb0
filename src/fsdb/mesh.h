/*
 * mesh.h - FSDB of one interface node, and the theory of src/fsdb
 *
 * Any interface node forwards to any port of the virtual switch, so each has to know the neighbors
 * of all others. Between the interface nodes of a plane and building there is a full mesh of
 * sessions over ordered byte streams (TCP between loopbacks, inband). Over each, either side
 * publishes what it has: system ports, interfaces, and the neighbors behind them as (address, MAC,
 * system port, state). First all of it, then what changes. The parts:
 *
 *   wire     messages and records as bytes                      (format is our own)
 *   table    the records of one node, and what is wrong in them
 *   publish  what we say, encoded once for all peers
 *   session  one peer: states, hold time, both directions of one stream
 *   import   of all who claim an address, who has it
 *   mesh     all peers of a node                                (this file)
 *
 * What we import (published rules, FBOSS): neighbors that are REACHABLE, never link-local ones,
 * never from behind a port or interface whose scope is LOCAL, never over one of our own that is
 * STATIC. Routes follow from interfaces; a static way to every peer's loopback is there before any
 * session, or none could begin.
 *
 * Streams. One a pair: the node with the lower id connects when the fabric reaches the other, the
 * other accepts. Streams have numbers; those of a stream that is over are ignored. What the driver
 * says: accept, connected, input, writable, closed; what it is told: OPEN, WRITE, CLOSE.
 *
 * Cost. A change is encoded once; per peer it costs a walk through one leaf's records at the
 * receiver and a pointer at the sender. A session without news costs a heartbeat. What a peer can
 * make us keep: FSDB_RECORDS_MAX records twice, one message, and an import per neighbor.
 */
#ifndef DSF_FSDB_MESH_H
#define DSF_FSDB_MESH_H
#include "base/trace.h"
#include "fsdb/import.h"
#include "fsdb/session.h"

#define FSDB_PEERS_MAX 4096u /* above the published ceiling of switches in a fabric */

struct fsdb_peer {
	uint32_t id; /* its system ports begin at id * FSDB_PORTS_MAX */
	struct dsf_ip6 address;
};

struct fsdb_config {
	const struct dsf_memory *memory;
	const struct dsf_trace *trace; /* NULL: nobody listens */
	uint32_t node;                 /* whose events these are */
	uint32_t id;                   /* ours */
	const struct fsdb_peer
		*peers; /* [peers_count], by rising id, without us; outlives the mesh */
	uint32_t peers_count;
	struct fsdb_timers timers;
};

struct fsdb_mesh;

/* The published timers, divided. */
struct fsdb_timers fsdb_mesh_timers(uint32_t control_dilation);

/* NULL when memory is short. */
struct fsdb_mesh *fsdb_mesh_new(const struct fsdb_config *config);
void fsdb_mesh_free(struct fsdb_mesh *m);

/* What we say from now on. 0, -DSF_E_FULL or -DSF_E_NOMEM: not published. */
int fsdb_mesh_publish(struct fsdb_mesh *m, const struct fsdb_record *record);
void fsdb_mesh_withdraw(struct fsdb_mesh *m, const struct fsdb_record *key);

/* The fabric reaches a peer, or no longer; ids of others are ignored. */
void fsdb_mesh_reachable(struct fsdb_mesh *m, uint32_t id, bool reachable, dsf_instant now);

/* A stream from address. Its number, or -DSF_E_UNKNOWN (no peer), -DSF_E_PEER (we connect). */
int fsdb_mesh_accept(struct fsdb_mesh *m, const struct dsf_ip6 *address, dsf_instant now);

/* Of a stream by its number; ignored when that one is over. */
void fsdb_mesh_connected(struct fsdb_mesh *m, uint32_t stream, dsf_instant now);
void fsdb_mesh_writable(struct fsdb_mesh *m, uint32_t stream, uint32_t room);
void fsdb_mesh_closed(struct fsdb_mesh *m, uint32_t stream, bool reset, dsf_instant now);

/* Bytes are borrowed for the call. 0, or -DSF_E_*: the stream is broken off (-DSF_E_STALE: it was
 * over before). */
int fsdb_mesh_input(
	struct fsdb_mesh *m, uint32_t stream, const uint8_t *bytes, size_t size, dsf_instant now);

/* Says GOODBYE to all. */
void fsdb_mesh_leave(struct fsdb_mesh *m, enum fsdb_goodbye goodbye);

/* The next thing to do; false when there is nothing. */
bool fsdb_mesh_output(struct fsdb_mesh *m, struct fsdb_output *out, dsf_instant now);

/* The next neighbor of others that came, moved or went. */
bool fsdb_mesh_changed(struct fsdb_mesh *m, struct fsdb_change *change);

dsf_instant fsdb_mesh_deadline(const struct fsdb_mesh *m);
void fsdb_mesh_expire(struct fsdb_mesh *m, dsf_instant now);

uint32_t fsdb_mesh_established(const struct fsdb_mesh *m); /* O(1) */

/* A session by its peer's place in config->peers, or by its id. */
const struct fsdb_session *fsdb_mesh_session(const struct fsdb_mesh *m, uint32_t index);
const struct fsdb_session *fsdb_mesh_find(const struct fsdb_mesh *m, uint32_t id); /* or NULL */
const struct fsdb_publisher *fsdb_mesh_publisher(const struct fsdb_mesh *m);

#endif
