/*
 * cursor.h - reading and writing wire bytes
 *
 * All wire bytes go through these; no struct is laid over a buffer. A cursor that runs past its
 * end sets failed, returns zeros and never moves again, so that a decoder checks once, at the end.
 * Numbers are big-endian (network order), 1 to 8 bytes.
 */
#ifndef DSF_BASE_CURSOR_H
#define DSF_BASE_CURSOR_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct dsf_cursor {
	const uint8_t *at;
	const uint8_t *end;
	bool failed;
};

struct dsf_writer {
	uint8_t *at;
	uint8_t *end;
	bool failed;
};

static inline size_t dsf_cursor_left(const struct dsf_cursor *c)
{
	return (size_t)(c->end - c->at);
}

/* The next size bytes, borrowed; NULL when there are fewer (and size > 0). */
static inline const uint8_t *dsf_cursor_bytes(struct dsf_cursor *c, size_t size)
{
	const uint8_t *bytes = c->at;

	if (c->failed || dsf_cursor_left(c) < size) {
		c->failed = true;
		return NULL;
	}
	if (size > 0) /* at may be NULL in an empty cursor */
		c->at += size;
	return bytes;
}

static inline uint64_t dsf_cursor_be(struct dsf_cursor *c, unsigned size)
{
	const uint8_t *bytes = dsf_cursor_bytes(c, size);
	uint64_t value = 0;

	if (bytes == NULL)
		return 0;
	for (unsigned i = 0; i < size; i++)
		value = value << 8 | bytes[i];
	return value;
}

static inline void dsf_cursor_skip(struct dsf_cursor *c, size_t size)
{
	(void)dsf_cursor_bytes(c, size);
}

/* Room for size bytes to be written by the caller; NULL when there is none. */
static inline uint8_t *dsf_writer_room(struct dsf_writer *w, size_t size)
{
	uint8_t *room = w->at;

	if (w->failed || (size_t)(w->end - w->at) < size) {
		w->failed = true;
		return NULL;
	}
	if (size > 0)
		w->at += size;
	return room;
}

static inline void dsf_writer_be(struct dsf_writer *w, uint64_t value, unsigned size)
{
	uint8_t *room = dsf_writer_room(w, size);

	if (room == NULL)
		return;
	for (unsigned i = size; i-- > 0; value >>= 8)
		room[i] = (uint8_t)value;
}

static inline void dsf_writer_bytes(struct dsf_writer *w, const void *bytes, size_t size)
{
	uint8_t *room = dsf_writer_room(w, size);

	if (room != NULL && size > 0)
		memcpy(room, bytes, size);
}

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define DSF_BE16(v) __builtin_bswap16(v)
#define DSF_BE32(v) __builtin_bswap32(v)
#define DSF_BE64(v) __builtin_bswap64(v)
#else
#define DSF_BE16(v) (v)
#define DSF_BE32(v) (v)
#define DSF_BE64(v) (v)
#endif

/* Fixed offsets in a header whose size was checked before; the compiler makes one swap of each. */
static inline uint16_t dsf_load_be16(const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return DSF_BE16(v);
}

static inline uint32_t dsf_load_be32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return DSF_BE32(v);
}

static inline uint64_t dsf_load_be64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return DSF_BE64(v);
}

/* Least significant byte first: words of a bitmap. */
static inline uint64_t dsf_load_le64(const uint8_t *p)
{
	return __builtin_bswap64(dsf_load_be64(p));
}

static inline void dsf_store_be16(uint8_t *p, uint16_t v)
{
	v = DSF_BE16(v);
	memcpy(p, &v, sizeof(v));
}

static inline void dsf_store_be32(uint8_t *p, uint32_t v)
{
	v = DSF_BE32(v);
	memcpy(p, &v, sizeof(v));
}

static inline void dsf_store_be64(uint8_t *p, uint64_t v)
{
	v = DSF_BE64(v);
	memcpy(p, &v, sizeof(v));
}

static inline void dsf_store_le64(uint8_t *p, uint64_t v)
{
	dsf_store_be64(p, __builtin_bswap64(v));
}

#endif
