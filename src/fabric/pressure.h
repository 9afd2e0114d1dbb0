/*
 * pressure.h - push-back: whom a fabric node tells to send it no more
 *
 * Theory. A fabric node can't refuse a cell that has come, so it stops who sends: a link whose
 * cells found an output queue full is told to stop, by a flag in every train that goes the other
 * way, and to go on when the queue has drained to half. Links that feed other queues aren't
 * touched. A stopped link keeps its data; control cells go on. Who sprays passes it over; when all
 * its links are stopped or full, its own queues fill and push back in turn, or its VOQs wait. Cells
 * climb once and descend once (reach.h) and an interface node never stops anybody, so stops form no
 * ring and every queue drains in the end.
 *
 * A queue may exceed its mark by what is on its way on the links that feed it: their delay both
 * ways and the trains that were being sent. Nothing is dropped for that.
 */
#ifndef DSF_FABRIC_PRESSURE_H
#define DSF_FABRIC_PRESSURE_H
#include <stdbool.h>
#include <stdint.h>
#include "base/memory.h"

#define FABRIC_PRESSURE_NONE UINT32_MAX

struct fabric_pressure {
	const struct dsf_memory *memory;
	uint32_t ports_count, port_words;
	uint64_t *feeders; /* [ports_count][port_words]: whom a full port has stopped */
	uint64_t *full;    /* [port_words]: ports that have stopped somebody */
	uint32_t *stops;   /* [ports_count]: by how many ports it is stopped */
	uint32_t full_count;
};

/* 0, or -DSF_E_NOMEM. */
int fabric_pressure_init(
	struct fabric_pressure *s, const struct dsf_memory *memory, uint32_t ports_count);
void fabric_pressure_close(struct fabric_pressure *s);

/* A cell that came in at port in found the queue of port out full. True: in's peer is to be told to
 * stop; false: it has been. */
bool fabric_pressure_add(struct fabric_pressure *s, uint32_t out, uint32_t in);

/* The queue of out has drained: the next port whose peer is to be told to go on, until
 * FABRIC_PRESSURE_NONE. */
uint32_t fabric_pressure_remove(struct fabric_pressure *s, uint32_t out);

#endif
