/*
 * nl.h - batches of route netlink messages
 *
 * Everything here is built as netlink messages that go to the kernel many at a time: one sendmsg
 * carries up to NETNS_BATCH_MESSAGES_MAX of them, and only the last asks for an acknowledgement
 * (a message that fails is answered without asking). The kernel has handled the whole batch when
 * sendmsg returns, so no call here waits.
 *
 * A batch remembers the first failure with the tag its message was given (by convention the index
 * of the node, port or link it is about) and the kernel's own words; after a failure nothing more
 * is sent until netns_batch_reset. So messages may be added without looking, and one check
 * of netns_batch_flush tells whether everything was done.
 */
#ifndef DSF_NETNS_NL_H
#define DSF_NETNS_NL_H
#include <stddef.h>
#include <stdint.h>
#include <libmnl/libmnl.h>

#define NETNS_BATCH_BYTES        32768
#define NETNS_BATCH_MESSAGES_MAX 64
#define NETNS_MESSAGE_BYTES_MAX  1024 /* no message built here is longer */
#define NETNS_ERROR_TEXT_MAX     96

struct netns_error {
	int err;                         /* 0, or -errno */
	uint32_t tag;                    /* of the message that failed */
	const char *what;                /* what it was to do: "create link" ... */
	char text[NETNS_ERROR_TEXT_MAX]; /* the kernel's explanation, often empty */
};

struct netns_batch {
	int fd;            /* borrowed netlink socket; says in which namespace things happen */
	uint32_t sequence; /* of the batch's first message */
	uint32_t count;
	size_t size;
	struct nlmsghdr *open; /* the message under construction, the last one */
	struct netns_error error;
	uint32_t tags[NETNS_BATCH_MESSAGES_MAX];
	const char *whats[NETNS_BATCH_MESSAGES_MAX];
	_Alignas(8) uint8_t bytes[NETNS_BATCH_BYTES];
};

/* A route netlink socket in the calling thread's namespace; negative: -errno. */
int netns_nl_open(void);

void netns_batch_init(struct netns_batch *b);

/* Later messages go to fd. The batch must have been flushed. */
void netns_batch_use(struct netns_batch *b, int fd);

/* A new message of type with `extra` zeroed bytes after its header; what must be static text. */
struct nlmsghdr *netns_batch_add(
	struct netns_batch *b, uint16_t type, uint16_t flags, const char *what, uint32_t tag);

/* Sends what is waiting. 0, or the first failure since the last reset (also in b->error). */
int netns_batch_flush(struct netns_batch *b);

/* Forgets a failure and everything not sent. */
void netns_batch_reset(struct netns_batch *b);

/* Sends a dump request on fd (a socket without a receive queue of its own, i.e. no monitor) and
 * calls fn for each answer. 0 or -errno. */
int netns_nl_dump(int fd, struct nlmsghdr *request, mnl_cb_t fn, void *user);

#endif
