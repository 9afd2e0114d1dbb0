#include "fabric/spray.h"
#include "base/err.h"

#define RNG_KIND 0x7370726179ull /* "spray" */

struct fabric_spray_set {
	uint32_t count, cursor;
	uint32_t ports[];
};

int fabric_spray_init(struct fabric_spray *s, const struct dsf_memory *memory,
	uint32_t destinations_count, uint64_t seed, uint64_t id)
{
	s->memory = memory;
	s->destinations_count = destinations_count;
	dsf_rng_fork(&s->rng, seed, RNG_KIND, id);
	s->sets = dsf_memory_new(memory, destinations_count * sizeof(*s->sets));
	return s->sets == NULL ? -DSF_E_NOMEM : 0;
}

static size_t set_size(uint32_t count)
{
	return sizeof(struct fabric_spray_set) + count * sizeof(uint32_t);
}

void fabric_spray_forget(struct fabric_spray *s, uint32_t destination)
{
	struct fabric_spray_set *set = s->sets[destination];

	if (set == NULL)
		return;
	dsf_memory_delete(s->memory, set, set_size(set->count));
	s->sets[destination] = NULL;
}

void fabric_spray_close(struct fabric_spray *s)
{
	for (uint32_t i = 0; s->sets != NULL && i < s->destinations_count; i++)
		fabric_spray_forget(s, i);
	dsf_memory_delete(s->memory, s->sets, s->destinations_count * sizeof(*s->sets));
	s->sets = NULL;
}

static struct fabric_spray_set *make_set(
	struct fabric_spray *s, uint32_t destination, const struct fabric_reach *reach)
{
	uint64_t resort[DSF_BITSET_WORDS(FABRIC_REACH_PORTS_MAX)];
	const uint64_t *ports = fabric_reach_ports(reach, destination);
	uint32_t count = dsf_bitset_count(ports, reach->port_words), at = 0;
	struct fabric_spray_set *set;

	if (count == 0) {
		fabric_reach_last_resort(reach, destination, resort);
		ports = resort;
		count = dsf_bitset_count(ports, reach->port_words);
	}
	if (count == 0)
		return NULL;
	set = dsf_memory_new(s->memory, set_size(count));
	if (set == NULL)
		return NULL;
	set->count = set->cursor = count;
	for (uint32_t i = dsf_bitset_next(ports, 0, reach->ports_count); i < reach->ports_count;
		i = dsf_bitset_next(ports, i + 1, reach->ports_count))
		set->ports[at++] = i;
	s->sets[destination] = set;
	return set;
}

static struct fabric_spray_set *find_set(
	struct fabric_spray *s, uint32_t destination, const struct fabric_reach *reach)
{
	struct fabric_spray_set *set;

	if (destination >= s->destinations_count)
		return NULL;
	set = s->sets[destination];
	return set != NULL ? set : make_set(s, destination, reach);
}

static uint32_t turn(struct fabric_spray *s, struct fabric_spray_set *set)
{
	if (set->cursor >= set->count) {
		set->cursor = 0;
		if (set->count > 1)
			dsf_rng_shuffle(&s->rng, set->ports, set->count);
	}
	return set->ports[set->cursor++];
}

static bool shorter(const struct fabric_port *a, const struct fabric_port *b)
{
	if (a->stopped != b->stopped)
		return b->stopped;
	return a->queue_bytes < b->queue_bytes;
}

/* The link with the shortest queue, before any whose peer has stopped it; of equal ones the first
 * of those whose turn comes next. */
static uint32_t shortest(const struct fabric_spray_set *set, const struct fabric_ports *ports)
{
	uint32_t best = set->ports[set->cursor % set->count];

	for (uint32_t i = 1; i < set->count; i++) {
		uint32_t port = set->ports[(set->cursor + i) % set->count];

		if (shorter(&ports->ports[port], &ports->ports[best]))
			best = port;
	}
	return best;
}

uint32_t fabric_spray_next(struct fabric_spray *s, uint32_t destination,
	const struct fabric_reach *reach, const struct fabric_ports *ports)
{
	struct fabric_spray_set *set = find_set(s, destination, reach);
	uint32_t port;

	if (set == NULL)
		return FABRIC_SPRAY_NONE;
	port = turn(s, set);
	return fabric_port_has_room(ports, port) ? port : shortest(set, ports);
}

bool fabric_spray_has_room(struct fabric_spray *s, uint32_t destination,
	const struct fabric_reach *reach, const struct fabric_ports *ports)
{
	struct fabric_spray_set *set = find_set(s, destination, reach);

	for (uint32_t i = 0; set != NULL && i < set->count; i++)
		if (fabric_port_has_room(ports, set->ports[i]))
			return true;
	return false;
}
