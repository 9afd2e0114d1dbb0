/*
 * channel.h - lines of JSON over a stream socket, without ever waiting
 *
 * Both kinds of the supervisor's conversations (with its nodes and with commands) are lines of
 * text. A channel collects what comes until a line is whole and keeps what the other side doesn't
 * take yet. Both sides of it are bounded: a peer that sends an endless line, or asks for much and
 * reads nothing, loses its channel, nobody else anything.
 */
#ifndef DSF_CLI_CHANNEL_H
#define DSF_CLI_CHANNEL_H
#include <stdbool.h>
#include <stddef.h>

struct channel_buffer {
	char *bytes;
	size_t start, end, cap; /* waiting: bytes[start..end) */
};

struct channel {
	int fd; /* owned; -1: closed */
	struct channel_buffer in, out;
	size_t scanned; /* of in: known to hold no newline */
	size_t in_max, out_max;
	bool eof;   /* the peer sends nothing any more; it may still read */
	bool ended; /* of no use any more: failed, or broke a limit */
};

/* Takes over fd and makes it non-blocking. 0 or -errno. */
int channel_open(struct channel *c, int fd, size_t in_max, size_t out_max);
void channel_close(struct channel *c);

/* Reads what is there. 0; -EPIPE: the peer sends nothing any more; or an error, after which
 * c->ended is set: -EMSGSIZE its line is too long, -errno. Lines that came before are still there
 * to be taken. */
int channel_receive(struct channel *c);

/* The next whole line without its newline, valid until the next channel_receive; NULL when there
 * is none. It ends with a zero byte that isn't counted. */
char *channel_line(struct channel *c, size_t *size);

/* Puts bytes behind what waits. -EMSGSIZE: more waits than may; -ENOMEM; c->ended is set then. */
int channel_put(struct channel *c, const char *bytes, size_t size);

/* Sends what the peer takes. 0 or an error as above. */
int channel_send(struct channel *c);

static inline bool channel_sending(const struct channel *c)
{
	return c->out.end > c->out.start;
}

#endif
