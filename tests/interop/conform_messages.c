/* conform_messages.c - messages from text */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <poll.h>
#include "base/cursor.h"
#include "tests/interop/conform.h"

#define TRANS 23456u

struct composing {
	const struct peer *p;
	struct dsf_writer w;
	const char *at;
};

/* bare: its eight octets alone */
static void write_prefix(struct composing *c, bool bare)
{
	unsigned prefix = (unsigned)strtoul(c->at, (char **)(uintptr_t)&c->at, 10);
	unsigned path_id = 1;

	if (*c->at == '#')
		path_id = (unsigned)strtoul(c->at + 1, (char **)(uintptr_t)&c->at, 10);
	if (c->p->sends_ids && !bare)
		dsf_writer_be(&c->w, path_id, 4);
	if (!bare)
		dsf_writer_be(&c->w, 64, 1);
	dsf_writer_be(&c->w, 0x20010db8, 4);
	dsf_writer_be(&c->w, conform_number, 2);
	dsf_writer_be(&c->w, prefix, 2);
}

static void write_mp(struct composing *c, bool reach)
{
	uint8_t *size;

	dsf_writer_be(&c->w, reach ? 0x800e : 0x800f, 2);
	size = dsf_writer_room(&c->w, 1);
	dsf_writer_be(&c->w, 0x000201, 3);
	if (reach) {
		dsf_writer_be(&c->w, 16, 1);
		dsf_writer_bytes(&c->w, c->p->who->address.s6_addr, 16);
		dsf_writer_be(&c->w, 0, 1);
	}
	write_prefix(c, false);
	*size = (uint8_t)(c->w.at - size - 1);
}

static void write_path(struct composing *c)
{
	const struct peer *p = c->p;
	unsigned as_size = p->as4 ? 4 : 2;

	dsf_writer_be(&c->w, 0x4002, 2);
	if (p->who->internal) {
		dsf_writer_be(&c->w, 0, 1);
		return;
	}
	dsf_writer_be(&c->w, 2 + as_size, 1);
	dsf_writer_be(&c->w, 0x0201, 2);
	dsf_writer_be(&c->w, p->who->as, as_size);
}

static void write_word(struct composing *c, char word)
{
	const struct neighbour *n = c->p->who;

	switch (word) {
	case 'O': dsf_writer_be(&c->w, 0x40010100, 4); break;
	case 'P': write_path(c); break;
	case 'L':
		if (n->internal) {
			dsf_writer_be(&c->w, 0x400504, 3);
			dsf_writer_be(&c->w, 100, 4);
		}
		break;
	case 'R': write_mp(c, true); break;
	case 'U': write_mp(c, false); break;
	case 'N': write_prefix(c, false); break;
	case 'B': write_prefix(c, true); break;
	case 'H': dsf_writer_bytes(&c->w, n->address.s6_addr, 16); break;
	case 'T': dsf_writer_bytes(&c->w, conform_target.s6_addr, 16); break;
	case 'I': dsf_writer_be(&c->w, n->id, 4); break;
	case 'A': dsf_writer_be(&c->w, n->as, 4); break;
	case 'M': dsf_writer_be(&c->w, n->as > UINT16_MAX ? TRANS : n->as, 2); break;
	default: abort();
	}
}

size_t compose(const struct peer *p, uint8_t *to, size_t cap, const char *text)
{
	struct composing c = { p, { to, to + cap, false }, text };

	while (*c.at != '\0') {
		char first = *c.at;

		if (first == ' ') {
			c.at++;
		} else if (first >= 'A' && first <= 'Z') {
			c.at++;
			write_word(&c, first);
		} else {
			dsf_writer_be(&c.w, strtoul((char[]){ first, c.at[1], '\0' }, NULL, 16), 1);
			c.at += 2;
		}
	}
	if (c.w.failed)
		abort();
	return (size_t)(c.w.at - to);
}

bool say_bytes(struct peer *p, const uint8_t *bytes, size_t size)
{
	while (size > 0) {
		ssize_t got = write(p->fd, bytes, size);

		if (got < 0 && errno == EAGAIN) {
			struct pollfd room = { p->fd, POLLOUT, 0 };

			if (poll(&room, 1, (int)conform_limit_ms) <= 0)
				return false;
			continue;
		}
		if (got <= 0)
			return false;
		bytes += got;
		size -= (size_t)got;
	}
	return true;
}

static bool say_message(struct peer *p, enum type type, uint8_t *message, size_t size)
{
	memset(message, 0xff, 16);
	dsf_store_be16(message + 16, (uint16_t)size);
	message[18] = (uint8_t)type;
	return say_bytes(p, message, size);
}

bool say(struct peer *p, enum type type, const char *text)
{
	static uint8_t message[MESSAGE_MAX];

	return say_message(p, type, message,
		HEADER_SIZE +
			compose(p, message + HEADER_SIZE, sizeof(message) - HEADER_SIZE, text));
}

bool say_text(struct peer *p, const char *text)
{
	static uint8_t bytes[MESSAGE_MAX];

	return say_bytes(p, bytes, compose(p, bytes, sizeof(bytes), text));
}

bool say_update(struct peer *p, const char *text)
{
	static uint8_t message[MESSAGE_MAX];
	uint8_t *body = message + HEADER_SIZE;
	size_t size = compose(p, body + 4, sizeof(message) - HEADER_SIZE - 4, text);

	dsf_store_be16(body, 0);
	dsf_store_be16(body + 2, (uint16_t)size);
	return say_message(p, UPDATE, message, HEADER_SIZE + 4 + size);
}

bool say_many(struct peer *p, const char *text, unsigned first, unsigned count, const char *last)
{
	static uint8_t message[MESSAGE_MAX];
	struct dsf_writer w = { message + HEADER_SIZE + 4, message + sizeof(message), false };
	uint8_t *size;
	char prefix[16];

	w.at += compose(p, w.at, (size_t)(w.end - w.at), text);
	size = w.at + 2;
	w.at += compose(p, w.at, (size_t)(w.end - w.at), "90 0e 0000 0002 01 10 H 00");
	for (unsigned i = 0; i < count; i++) {
		snprintf(prefix, sizeof(prefix), "N%u", first + i);
		w.at += compose(p, w.at, (size_t)(w.end - w.at), prefix);
	}
	w.at += compose(p, w.at, (size_t)(w.end - w.at), last);
	dsf_store_be16(size, (uint16_t)(w.at - size - 2));
	dsf_store_be16(message + HEADER_SIZE, 0);
	dsf_store_be16(message + HEADER_SIZE + 2, (uint16_t)(w.at - message - HEADER_SIZE - 4));
	return say_message(p, UPDATE, message, (size_t)(w.at - message));
}

/* Marks what the capabilities in text mean for the session. */
static void note_capabilities(struct peer *p, const uint8_t *bytes, size_t size)
{
	struct dsf_cursor in = { bytes, bytes + size, false };

	while (dsf_cursor_left(&in) > 0 && !in.failed) {
		uint64_t code = dsf_cursor_be(&in, 1), length = dsf_cursor_be(&in, 1);
		const uint8_t *value = dsf_cursor_bytes(&in, length);

		if (code == 6)
			p->extended = true;
		if (code == 69 && length == 4)
			p->add_path = value[3];
	}
}

bool say_open(struct peer *p, uint16_t hold_s, bool as4, const char *more)
{
	uint8_t message[ORDINARY_MAX], capabilities[512];
	struct dsf_writer w = { message + HEADER_SIZE, message + sizeof(message), false };
	size_t size;

	p->as4 = as4;
	size = compose(p, capabilities, sizeof(capabilities), "01 04 0002 00 01 02 00");
	if (as4)
		size += compose(p, capabilities + size, sizeof(capabilities) - size, "41 04 A");
	size += compose(p, capabilities + size, sizeof(capabilities) - size, more);
	note_capabilities(p, capabilities, size);
	w.at += compose(p, w.at, 16, "04 M");
	dsf_writer_be(&w, hold_s, 2);
	w.at += compose(p, w.at, 16, "I");
	dsf_writer_be(&w, size + 2, 1);
	dsf_writer_be(&w, 2, 1);
	dsf_writer_be(&w, size, 1);
	dsf_writer_bytes(&w, capabilities, size);
	if (w.failed || size > 250)
		abort();
	return say_message(p, OPEN, message, (size_t)(w.at - message));
}
