/*
 * memory.h - which memory a span or a placement means, and memory that is a pattern
 *
 * The transport never touches payload: it names it as (memory, offset, size) and the driver
 * gathers and places. A memory's kind is in the top byte of its number.
 *
 * Pattern memory isn't stored anywhere: its bytes are a function of seed and offset, so whoever
 * sends can make them and whoever receives can check them. Where frames carry payload by name
 * (the simulator) a packet has the 16-byte name of its payload instead: memory, then offset, both
 * big-endian. Payload of at most 16 bytes is carried itself.
 */
#ifndef DSF_METAROCE_MEMORY_H
#define DSF_METAROCE_MEMORY_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "base/cursor.h"
#include "base/rng.h"

enum metaroce_memory_kind {
	METAROCE_MEMORY_PATTERN = 1,
	METAROCE_MEMORY_CLIENT = 2, /* a program's, registered through src/nic */
	METAROCE_MEMORY_OWN = 3,    /* the host process's own */
};

#define METAROCE_MEMORY_KIND_SHIFT 56
#define METAROCE_NAME_SIZE         16u

static inline uint64_t metaroce_memory_pattern(uint64_t seed)
{
	return (uint64_t)METAROCE_MEMORY_PATTERN << METAROCE_MEMORY_KIND_SHIFT |
	       (seed & ((1ull << METAROCE_MEMORY_KIND_SHIFT) - 1));
}

static inline unsigned metaroce_memory_kind(uint64_t memory)
{
	return (unsigned)(memory >> METAROCE_MEMORY_KIND_SHIFT);
}

#define METAROCE_PATTERN_STEP 0x9e3779b97f4a7c15ull

/* Word `index` (bytes 8 * index ...) of a pattern, stored least byte first. */
static inline uint64_t metaroce_pattern_word(uint64_t start, uint64_t index)
{
	uint64_t word = start + index * METAROCE_PATTERN_STEP;

	return word ^ word >> 29;
}

static inline uint64_t metaroce_pattern_start(uint64_t memory)
{
	return dsf_mix(memory + METAROCE_PATTERN_STEP);
}

static inline uint8_t metaroce_pattern_byte(uint64_t start, uint64_t offset)
{
	return (uint8_t)(metaroce_pattern_word(start, offset / 8) >> (offset % 8 * 8));
}

/* Writes bytes offset .. offset + size - 1 of the pattern to to. */
static inline void metaroce_pattern_fill(uint64_t memory, uint64_t offset, uint8_t *to, size_t size)
{
	uint64_t start = metaroce_pattern_start(memory);
	size_t at = 0;
	uint64_t index;
	size_t words;

	for (; at < size && (offset + at) % 8 != 0; at++)
		to[at] = metaroce_pattern_byte(start, offset + at);
	index = (offset + at) / 8;
	words = (size - at) / 8;
	for (size_t i = 0; i < words; i++) {
		uint64_t word = metaroce_pattern_word(start, index + i);

		memcpy(to + at + 8 * i, &word, 8);
	}
	for (at += 8 * words; at < size; at++)
		to[at] = metaroce_pattern_byte(start, offset + at);
}

/* How many of size bytes at from differ from the pattern at offset. */
static inline size_t metaroce_pattern_check(
	uint64_t memory, uint64_t offset, const uint8_t *from, size_t size)
{
	uint64_t start = metaroce_pattern_start(memory);
	uint64_t difference = 0;
	size_t at = 0, wrong = 0;
	uint64_t index;
	size_t words;

	for (; at < size && (offset + at) % 8 != 0; at++)
		difference |= from[at] ^ metaroce_pattern_byte(start, offset + at);
	index = (offset + at) / 8;
	words = (size - at) / 8;
	for (size_t i = 0; i < words; i++) {
		uint64_t word;

		memcpy(&word, from + at + 8 * i, 8);
		difference |= word ^ metaroce_pattern_word(start, index + i);
	}
	for (at += 8 * words; at < size; at++)
		difference |= from[at] ^ metaroce_pattern_byte(start, offset + at);
	if (difference == 0)
		return 0;
	for (at = 0; at < size; at++)
		wrong += from[at] != metaroce_pattern_byte(start, offset + at);
	return wrong;
}

/* Puts what stands for size bytes of payload into room for METAROCE_NAME_SIZE bytes: its name, or
 * the payload itself where that is no longer. Returns how many bytes. */
static inline uint32_t metaroce_name_put(
	uint8_t *to, uint64_t memory, uint64_t offset, uint32_t size)
{
	if (size <= METAROCE_NAME_SIZE) {
		metaroce_pattern_fill(memory, offset, to, size);
		return size;
	}
	dsf_store_be64(to, memory);
	dsf_store_be64(to + 8, offset);
	return METAROCE_NAME_SIZE;
}

/* How many of size bytes that came for (memory, offset) are wrong; `stored` of them are there:
 * all, or a name. */
static inline size_t metaroce_payload_check(
	uint64_t memory, uint64_t offset, const uint8_t *from, size_t stored, size_t size)
{
	if (stored == size)
		return metaroce_pattern_check(memory, offset, from, size);
	if (stored != METAROCE_NAME_SIZE || dsf_load_be64(from) != memory ||
		dsf_load_be64(from + 8) != offset)
		return size;
	return 0;
}

#endif
