#include "fabric/pressure.h"
#include "base/bitset.h"
#include "base/err.h"

static uint64_t *feeders_of(const struct fabric_pressure *s, uint32_t out)
{
	return s->feeders + (size_t)out * s->port_words;
}

void fabric_pressure_close(struct fabric_pressure *s)
{
	size_t row = s->port_words * sizeof(uint64_t);

	if (s->memory == NULL)
		return;
	dsf_memory_delete(s->memory, s->feeders, s->ports_count * row);
	dsf_memory_delete(s->memory, s->full, row);
	dsf_memory_delete(s->memory, s->stops, s->ports_count * sizeof(*s->stops));
	s->feeders = s->full = NULL;
	s->stops = NULL;
}

int fabric_pressure_init(
	struct fabric_pressure *s, const struct dsf_memory *memory, uint32_t ports_count)
{
	size_t row = DSF_BITSET_WORDS(ports_count) * sizeof(uint64_t);

	*s = (struct fabric_pressure){ .memory = memory,
		.ports_count = ports_count,
		.port_words = DSF_BITSET_WORDS(ports_count) };
	s->feeders = dsf_memory_new(memory, ports_count * row);
	s->full = dsf_memory_new(memory, row);
	s->stops = dsf_memory_new(memory, ports_count * sizeof(*s->stops));
	if (s->feeders != NULL && s->full != NULL && s->stops != NULL)
		return 0;
	fabric_pressure_close(s);
	return -DSF_E_NOMEM;
}

bool fabric_pressure_add(struct fabric_pressure *s, uint32_t out, uint32_t in)
{
	uint64_t *feeders = feeders_of(s, out);

	if (dsf_bitset_has(feeders, in))
		return false;
	dsf_bitset_add(feeders, in);
	s->full_count += !dsf_bitset_has(s->full, out);
	dsf_bitset_add(s->full, out);
	return s->stops[in]++ == 0;
}

uint32_t fabric_pressure_remove(struct fabric_pressure *s, uint32_t out)
{
	uint64_t *feeders = feeders_of(s, out);

	if (!dsf_bitset_has(s->full, out))
		return FABRIC_PRESSURE_NONE;
	for (uint32_t in = dsf_bitset_next(feeders, 0, s->ports_count); in < s->ports_count;
		in = dsf_bitset_next(feeders, in + 1, s->ports_count)) {
		dsf_bitset_remove(feeders, in);
		if (--s->stops[in] == 0)
			return in;
	}
	dsf_bitset_remove(s->full, out);
	s->full_count--;
	return FABRIC_PRESSURE_NONE;
}
