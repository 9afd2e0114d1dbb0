#include "netns/nl.h"
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <linux/netlink.h>

#ifndef SOL_NETLINK
#define SOL_NETLINK 270
#endif

int netns_nl_open(void)
{
	int on = 1;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	if (fd < 0)
		return -errno;
	/* Short answers with the kernel's own words; an old kernel without them does as well. */
	(void)setsockopt(fd, SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof(on));
	(void)setsockopt(fd, SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof(on));
	return fd;
}

void netns_batch_init(struct netns_batch *b)
{
	b->fd = -1;
	b->sequence = 1;
	netns_batch_reset(b);
}

void netns_batch_reset(struct netns_batch *b)
{
	b->sequence += b->count;
	b->count = 0;
	b->size = 0;
	b->open = NULL;
	b->error = (struct netns_error){ .err = 0 };
}

void netns_batch_use(struct netns_batch *b, int fd)
{
	assert(b->count == 0);
	b->fd = fd;
}

/* The open message has its final length now. */
static void close_message(struct netns_batch *b)
{
	if (b->open == NULL)
		return;
	assert(b->open->nlmsg_len <= NETNS_MESSAGE_BYTES_MAX);
	b->size += MNL_ALIGN(b->open->nlmsg_len);
	b->open = NULL;
}

struct nlmsghdr *netns_batch_add(
	struct netns_batch *b, uint16_t type, uint16_t flags, const char *what, uint32_t tag)
{
	struct nlmsghdr *message;

	close_message(b);
	if (b->count == NETNS_BATCH_MESSAGES_MAX ||
		b->size + NETNS_MESSAGE_BYTES_MAX > NETNS_BATCH_BYTES)
		(void)netns_batch_flush(b); /* a failure stays in b->error */
	message = mnl_nlmsg_put_header(b->bytes + b->size);
	message->nlmsg_type = type;
	message->nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags);
	message->nlmsg_seq = b->sequence + b->count;
	b->tags[b->count] = tag;
	b->whats[b->count] = what;
	b->count++;
	b->open = message;
	return message;
}

static int error_text(const struct nlattr *attribute, void *user)
{
	struct netns_error *error = user;

	if (mnl_attr_get_type(attribute) == NLMSGERR_ATTR_MSG &&
		mnl_attr_validate(attribute, MNL_TYPE_NUL_STRING) >= 0)
		snprintf(error->text, sizeof(error->text), "%s", mnl_attr_get_str(attribute));
	return MNL_CB_OK;
}

/* Takes one NLMSG_ERROR; true when it answers the batch's last message. */
static bool take_answer(struct netns_batch *b, const struct nlmsghdr *answer)
{
	const struct nlmsgerr *e = mnl_nlmsg_get_payload(answer);
	uint32_t place = answer->nlmsg_seq - b->sequence;

	if (answer->nlmsg_type != NLMSG_ERROR || place >= b->count ||
		mnl_nlmsg_get_payload_len(answer) < sizeof(*e))
		return false;
	if (e->error != 0 && b->error.err == 0) {
		b->error.err = e->error;
		b->error.tag = b->tags[place];
		b->error.what = b->whats[place];
		if ((answer->nlmsg_flags & (NLM_F_ACK_TLVS | NLM_F_CAPPED)) ==
			(NLM_F_ACK_TLVS | NLM_F_CAPPED))
			(void)mnl_attr_parse(answer, sizeof(*e), error_text, &b->error);
	}
	return place + 1 == b->count;
}

static int read_answers(struct netns_batch *b)
{
	uint8_t bytes[8192] __attribute__((aligned(8)));

	for (;;) {
		ssize_t got = recv(b->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
		const struct nlmsghdr *answer = (const struct nlmsghdr *)bytes;
		int left = (int)got;

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return errno == EAGAIN ? -EPROTO : -errno;
		for (; mnl_nlmsg_ok(answer, left); answer = mnl_nlmsg_next(answer, &left))
			if (take_answer(b, answer))
				return 0;
	}
}

static void fail(struct netns_batch *b, int err)
{
	if (b->error.err == 0)
		b->error = (struct netns_error){ err, b->tags[0], b->whats[0], "" };
}

int netns_batch_flush(struct netns_batch *b)
{
	ssize_t sent;
	int err;

	close_message(b);
	if (b->count > 0 && b->error.err == 0) {
		struct nlmsghdr *message = (struct nlmsghdr *)b->bytes;

		for (uint32_t i = 1; i < b->count; i++)
			message = (struct nlmsghdr *)((uint8_t *)message +
						      MNL_ALIGN(message->nlmsg_len));
		message->nlmsg_flags |= NLM_F_ACK;
		do
			sent = send(b->fd, b->bytes, b->size, 0);
		while (sent < 0 && errno == EINTR);
		err = sent < 0 ? -errno : read_answers(b);
		if (err < 0)
			fail(b, err);
	}
	b->sequence += b->count;
	b->count = 0;
	b->size = 0;
	return b->error.err;
}

int netns_nl_dump(int fd, struct nlmsghdr *request, mnl_cb_t fn, void *user)
{
	uint8_t bytes[32768] __attribute__((aligned(8)));
	int more = MNL_CB_OK;

	request->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	if (send(fd, request, request->nlmsg_len, 0) < 0)
		return -errno;
	while (more > MNL_CB_STOP) {
		ssize_t got = recv(fd, bytes, sizeof(bytes), 0);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		more = mnl_cb_run(bytes, (size_t)got, request->nlmsg_seq, 0, fn, user);
		if (more < 0)
			return -errno;
	}
	return 0;
}
