/*
 * spray.h - which link the next cell takes
 *
 * Theory. Cells for a destination go evenly over all live links that reach it: in turn, in an
 * order that is drawn anew after each round, so that no pattern in the traffic (every ninth cell
 * is short) falls on one link. A link whose queue has no room, or whose peer has told it to stop,
 * is passed over while another has. That mark is below the one at which cells are flagged: while
 * there are other ways a queue alone is no congestion. State exists for destinations that are in
 * use only.
 */
#ifndef DSF_FABRIC_SPRAY_H
#define DSF_FABRIC_SPRAY_H
#include "base/memory.h"
#include "base/rng.h"
#include "fabric/port.h"
#include "fabric/reach.h"

struct fabric_spray_set;

struct fabric_spray {
	const struct dsf_memory *memory;
	struct fabric_spray_set **sets; /* by destination switch */
	uint32_t destinations_count;
	struct dsf_rng rng;
};

#define FABRIC_SPRAY_NONE UINT32_MAX

int fabric_spray_init(struct fabric_spray *s, const struct dsf_memory *memory,
	uint32_t destinations_count, uint64_t seed, uint64_t id);
void fabric_spray_close(struct fabric_spray *s);

/* The links of destination changed: its order is made anew on next use. */
void fabric_spray_forget(struct fabric_spray *s, uint32_t destination);

/*
 * The port for the next cell to destination; FABRIC_SPRAY_NONE when no live link reaches it (or
 * memory is short). Where no queue has room it is the one with the shortest queue.
 */
uint32_t fabric_spray_next(struct fabric_spray *s, uint32_t destination,
	const struct fabric_reach *reach, const struct fabric_ports *ports);

/* True when some link to destination has room for a VOQ's next packet. */
bool fabric_spray_has_room(struct fabric_spray *s, uint32_t destination,
	const struct fabric_reach *reach, const struct fabric_ports *ports);

#endif
